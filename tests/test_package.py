"""The package as a whole: what importing it does and does not do."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import manyways as mw

SLOW_TO_IMPORT = ("numba", "matplotlib", "scipy", "numpy")
ALLOWED_S = 0.25


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)


def test_importing_is_quiet_and_loads_nothing_slow():
    answer = run("-c", "import sys, manyways; sys.stderr.write(' '.join(sys.modules))")
    assert answer.stdout == ""
    loaded = {module.partition(".")[0] for module in answer.stderr.split()}
    assert loaded.isdisjoint(SLOW_TO_IMPORT)


def test_every_public_name_has_a_home():
    homes = {name: module for module, names in mw._HOME.items() for name in names}
    assert sorted(homes) == sorted(mw.__all__)
    assert len(set(mw.__all__)) == len(mw.__all__)
    assert dir(mw) == sorted(mw.__all__)


def test_every_public_name_is_the_thing_and_not_a_module_of_the_same_name():
    """Whatever was imported before: `plan` and `verify` are functions, and live in modules so called."""
    modules = [import_module(f"manyways.{module}") for module in mw._HOME]
    for module, names in zip(modules, mw._HOME.values(), strict=True):
        for name in names:
            assert getattr(mw, name) is getattr(module, name), name


@pytest.mark.parametrize("first", [None, mw._MODULE_OF["plan"], mw._MODULE_OF["verify"], "cli"])
def test_plan_and_verify_are_functions_in_any_order(first):
    code = f"""
import manyways as mw
{f"import manyways.{first}" if first else ""}
mdp = mw.room_world(9, 2)
plans = mw.plan(mdp, 2, 1.0, method=mw.FrankWolfe())
assert mw.verify(mdp, plans).ok
assert mw.plan(mdp, 1, method=mw.FrankWolfe()).k == 1
"""
    assert run("-W", "error", "-c", code).stdout == ""


def test_names_can_be_imported_all_at_once():
    code = "from manyways import *; import manyways; assert all(n in globals() for n in manyways.__all__); assert callable(verify)"
    assert run("-c", code).stdout == ""


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'manyways' has no attribute 'plam'"):
        mw.plam  # noqa: B018


def test_version_is_the_installed_one():
    from importlib.metadata import version

    assert mw.__version__ == version("manyways")


def test_errors_are_one_tree():
    errors = [getattr(mw, name) for name in mw._HOME["errors"]]
    assert all(issubclass(error, mw.ManywaysError) for error in errors)
    caused_by_the_caller = {mw.ModelError, mw.SettingError, mw.SourceError, mw.PlanFileError, mw.OutputError}
    assert all(issubclass(error, ValueError) for error in caused_by_the_caller)


def fastest_of_five(*command: str) -> float:
    """Seconds of processor time, so that a busy machine does not count."""
    times = []
    for _ in range(5):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


@pytest.mark.parametrize(
    "command",
    [("-c", "import manyways"), (str(Path(sys.executable).with_name("manyways")), "--help")],
    ids=["import manyways", "manyways --help"],
)
def test_starting_is_fast(command):
    """The one test of time: at most a quarter of a second more than Python itself."""
    assert fastest_of_five(sys.executable, *command) <= fastest_of_five(sys.executable, "-c", "pass") + ALLOWED_S
