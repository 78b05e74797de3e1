"""The simulator of docs/scaling.md against the runs that were made."""

import importlib.util
import math
import sys
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "benchmarks" / "scaling.py"


@pytest.fixture(scope="module")
def scaling():
    spec = importlib.util.spec_from_file_location("scaling", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scaling"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["scaling"]


def test_predictions_agree_with_the_runs(scaling):
    runs = scaling.check()
    assert len(runs) >= 7
    for command, memory, time in runs:
        assert 0.9 < memory < 1.1, command
        assert math.isnan(time) or 0.6 < time < 1.6, command


def test_what_grows_and_what_does_not(scaling):
    small, large = scaling.Model(1e6), scaling.Model(4e6)
    assert scaling.memory_mib(large, 8) == pytest.approx(scaling.memory_mib(small, 2))
    assert scaling.memory_mib(small, 2, 4) > scaling.memory_mib(small, 2, 2) > scaling.memory_mib(small, 2)
    assert scaling.inner_iterations(large) == pytest.approx(2 * scaling.inner_iterations(small))
    assert scaling.solve_seconds(large, 4) == pytest.approx(2 * scaling.solve_seconds(small, 1))
    assert scaling.bytes_sent(large) == pytest.approx(2 * scaling.bytes_sent(small))
