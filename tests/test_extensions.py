"""A behaviour, an objective, a method and a format from outside the package: each is one short file, and everything works.

The modules are in `data/extension`; a plug-in of one's own would look like them.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

import numpy as np
import pytest

import manyways as mw
from manyways import registry
from manyways.behaviours import BEHAVIOURS
from manyways.formats import write_model
from shared import DATA

EXTENSION = DATA / "extension"
MODULES = ("arrows", "random_vertices", "squared_distance")
arrows = random_vertices = squared_distance = ModuleType("imported by the fixture")


@pytest.fixture(autouse=True)
def registered(registrations, monkeypatch):  # noqa: ARG001
    """The modules of the extension, imported anew; what they and the tests register is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(EXTENSION))
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(globals(), name, import_module(name))
    yield
    for name in MODULES:
        sys.modules.pop(name, None)


TEXT = """\
home -bus-> work 1.0 -3.0
home -bike-> work 0.9 -1.0
home -bike-> home 0.1 -1.0
home -walk-> park 1.0 -2.0
park -walk-> work 1.0 -2.0
park -rest-> home 1.0 1.0
work -back-> home 1.0 10.0
"""


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "commute.arrows"
    path.write_text(TEXT)
    return path


@pytest.fixture
def plans(model) -> mw.PlanSet:
    return mw.plan(
        model,
        k=3,
        objective=squared_distance.SquaredDistance(weight=2.0),
        behaviour=squared_distance.Blurred(0.75),
        method=random_vertices.RandomVertices(tries=30),
    )


def test_each_takes_less_than_forty_lines():
    for path in EXTENSION.glob("*.py"):
        for node in ast.parse(path.read_text()).body:
            assert (node.end_lineno or 0) - node.lineno < 40, path
        assert len(path.read_text().splitlines()) < 60


def test_plans_are_made_with_them(plans):
    assert plans.mdp.source is not None
    assert plans.mdp.source.endswith("commute.arrows")
    assert plans.k == 3
    assert plans.certificate.ok
    assert plans.tradeoff is None
    image = squared_distance.Blurred(0.75).on(plans.mdp).forward(plans.occupancies)
    apart = ((image[:, None] - image[None]) ** 2).sum() / 2
    assert plans.objective == pytest.approx(plans.rewards.mean() + 2.0 * apart)


def test_they_are_saved_loaded_verified_and_reported(plans, tmp_path):
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    assert again.maximised == squared_distance.SquaredDistance(2.0)
    assert again.behaviour == squared_distance.Blurred(0.75)
    assert again.method == random_vertices.RandomVertices(30)
    np.testing.assert_array_equal(again.policies, plans.policies)
    assert mw.verify(again.mdp, again).ok
    page = again.report(tmp_path / "plans.html").read_text()
    assert "where time is spent, roughly" in page
    assert "RandomVertices(tries=30)" in page


def test_the_default_method_takes_a_foreign_objective_and_behaviour(model):
    settings = {"objective": squared_distance.SquaredDistance(40.0), "behaviour": squared_distance.Blurred()}
    best = mw.plan(model, k=2, **settings)
    assert best.status.converged
    assert best.objective >= mw.plan(model, k=2, method=mw.FrankWolfe(), **settings).objective - 1e-9


def test_a_tampered_file_of_foreign_kinds_does_not_verify(plans):
    claimed = replace(plans, objective=plans.objective + 0.01)
    assert [check.name for check in mw.verify(plans.mdp, claimed).failed] == ["objective"]


def test_models_are_written_in_a_foreign_format(model, tmp_path):
    mdp = mw.read(model)
    write_model(mdp, tmp_path / "again.arrows")
    assert mw.read(tmp_path / "again.arrows").digest == mdp.digest
    assert mw.read(f"{model}?scale=2").reward.max() == 20.0
    with pytest.raises(mw.SourceError, match="line 1 is not 'state -action-> state probability reward'"):
        mw.read(_written(tmp_path / "bad.arrows", "home to work"))
    with pytest.raises(mw.SourceError, match="unknown setting 'speed', expected one of scale, restart"):
        mw.read(f"{model}?speed=2")


def _written(path, text):
    path.write_text(text)
    return path


def test_files_name_what_is_missing_where_the_module_was_not_imported(plans, tmp_path):
    path = plans.save(tmp_path / "plans.mw")
    code = "import sys, manyways as mw\ntry: mw.load(sys.argv[1])\nexcept mw.PlanFileError as error: print(error)"
    said = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    assert "there is no objective 'SquaredDistance'" in said
    assert "import that package first" in said


def test_kinds_that_are_not_registered_are_refused_when_saving(model, tmp_path):
    @dataclass(frozen=True)
    class Mine(mw.Behaviour):
        def on(self, mdp):
            return mw.Grouping(mdp.actions)

    plans = mw.plan(model, k=2, behaviour=Mine())
    assert plans.certificate.ok
    with pytest.raises(mw.SettingError, match=r"put @manyways\.register above the class Mine"):
        plans.save(tmp_path / "plans.mw")
    assert not (tmp_path / "plans.mw").exists()


def test_settings_that_cannot_be_saved_are_refused_when_saving(model, tmp_path):
    @mw.register
    @dataclass(frozen=True)
    class WithFunction(mw.Behaviour):
        key: object = print

        def on(self, mdp):
            return mw.Grouping(mdp.actions)

    with pytest.raises(mw.SettingError, match="the setting behaviour/key cannot be saved"):
        mw.plan(model, k=2, behaviour=WithFunction()).save(tmp_path / "plans.mw")


def test_settings_may_hold_arrays_and_infinity(model, tmp_path):
    @mw.register
    @dataclass(frozen=True, eq=False)
    class Weighted(mw.Behaviour):
        matrix: np.ndarray
        worth: tuple[float, ...] = (1.0, float("inf"))

        def on(self, mdp):  # noqa: ARG002
            return mw.Mixing(self.matrix)

    matrix = np.random.default_rng(0).dirichlet(np.ones(3), size=mw.read(model).n_choices).T
    plans = mw.plan(model, k=2, behaviour=Weighted(matrix))
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    np.testing.assert_array_equal(again.behaviour.matrix, matrix)
    assert again.behaviour.worth == (1.0, float("inf"))
    assert mw.verify(again.mdp, again).ok


@pytest.mark.parametrize("kind", [int, 7, object(), type("Bare", (mw.Method,), {})])
def test_only_classes_of_an_axis_can_be_registered(kind):
    with pytest.raises(mw.SettingError, match=r"dataclass derived from"):
        mw.register(kind)


def test_a_name_is_taken_once():
    with pytest.raises(mw.SettingError, match=r"the method VertexAscent is registered already"):
        mw.register(dataclass(frozen=True)(type("VertexAscent", (mw.FrankWolfe,), {})))
    with pytest.raises(mw.SettingError, match=r"files that end in \.drn belong to the format"):
        mw.register(mw.Format("mine", arrows.read_arrows, endings=(".drn",)))


def test_the_command_line_knows_registered_kinds(model, tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); import arrows, squared_distance, random_vertices\n"
        "from manyways.cli import main; main()"
    )
    out = tmp_path / "plans.mw"
    options = [
        "plan",
        str(model),
        "--k",
        "2",
        "--behaviour",
        "blurred",
        "--method",
        "random-vertices",
        "--out",
        str(out),
    ]
    run = subprocess.run(
        [sys.executable, "-c", code, str(EXTENSION), *options], check=False, capture_output=True, text=True
    )
    assert run.returncode == 3, run.stderr  # the method never says that it has converged
    assert mw.load(out).behaviour == squared_distance.Blurred()


def test_installed_packages_are_imported_when_they_are_needed(monkeypatch):
    """A package names its module as an entry point in the group 'manyways'."""
    asked: list[str] = []

    @dataclass(frozen=True)
    class FromPackage(mw.Behaviour):
        def on(self, mdp):
            return mw.Grouping(mdp.actions)

    class EntryPoint:
        def load(self) -> None:
            mw.register(FromPackage)

    def entry_points(group: str) -> list[EntryPoint]:
        asked.append(group)
        return [EntryPoint()]

    monkeypatch.setattr("manyways.registry.entry_points", entry_points)
    registry._load_plugins.cache_clear()
    try:
        assert BEHAVIOURS.named("states") is mw.States
        assert asked == []
        assert BEHAVIOURS.named("from-package") is FromPackage
        with pytest.raises(
            mw.SettingError, match=r"there is no behaviour 'from-nowhere', expected one of actions, .*state-actions"
        ):
            BEHAVIOURS.named("from-nowhere")
        assert asked == ["manyways"]
    finally:
        registry._load_plugins.cache_clear()
