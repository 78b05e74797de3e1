"""A trial: plain data in, one row of plain data out."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from small_studies import small_trials

import manyways as mw
from manyways.errors import EmptyDomain, SettingError
from manyways.methods import METHODS
from manyways.studies import trial as trial_module
from manyways.studies.trial import TIMING, Trial, method_named, perform, warm_up


def test_a_row_holds_what_plan_finds():
    (trial,) = small_trials(1)
    plans = mw.plan("four-rooms:0", 2, 8.0, seed=0, method=mw.FrankWolfe())
    row = perform(trial)
    assert row["error"] is None
    assert row["objective"] == plans.objective
    assert row["reward"] == pytest.approx(plans.rewards.mean(), rel=1e-15)
    assert row["diversity"] == plans.diversity
    assert row["verified"]
    assert row["distinct_routes"] <= row["plans_at_goal"] <= 2


@pytest.mark.parametrize("method", ["frank-wolfe", "projected-gradient", "vertex-ascent"])
def test_a_trial_maximises_the_objective_of_the_paper_without_limits(monkeypatch, method):
    found: list[mw.PlanSet] = []
    plan = trial_module.plan_or_interrupt
    monkeypatch.setattr(
        trial_module, "plan_or_interrupt", lambda *given, **more: found.append(plan(*given, **more)) or found[-1]
    )
    (trial,) = small_trials(1)
    assert perform(Trial(trial.work, dict(trial.settings) | {"method": method}))["error"] is None
    plans = found[-1]
    assert plans.maximised == mw.MeanDivergence(8.0)
    assert plans.limits == mw.Limits()
    assert (plans.criterion, plans.behaviour) == (mw.Average(), mw.StateActions())
    assert plans.objective == pytest.approx(plans.rewards.mean() + 8 * plans.diversity)


def test_a_trial_is_known_by_its_settings():
    keys = {trial.key for trial in small_trials(4)}
    assert len(keys) == 4
    settings = dict(reversed(list(small_trials(1)[0].settings.items())))
    assert Trial("plan", settings).key == small_trials(1)[0].key
    assert Trial("theory", settings).key not in keys


def test_the_theory_trial_uses_half_of_the_largest_possible_delta():
    settings = {"source": "rooms-9:0?correct_transition=0.8", "k": 2, "tradeoff": 8.0, "iterations": 2, "seed": 0}
    row = perform(Trial("theory", settings | {"method": "frank-wolfe"}))
    assert row["error"] is None
    mdp, largest = mw.read(settings["source"]), 2 * row["delta"]
    assert mw.Polytope(mdp, at_least=largest * (1 - 1e-6)).at_least > 0
    with pytest.raises(EmptyDomain):
        mw.Polytope(mdp, at_least=largest * (1 + 1e-6))
    assert len(row["measured"]) == len(row["bound"]) == 3


def test_the_warm_up_runs_once_per_process_and_outside_of_trials(monkeypatch):
    planned: list[str] = []
    plan = trial_module.plan_or_interrupt
    monkeypatch.setattr(
        trial_module,
        "plan_or_interrupt",
        lambda *given, **more: planned.append(type(more["method"]).__name__) or plan(*given, **more),
    )
    warm_up.cache_clear()
    for trial in small_trials(2):
        assert perform(trial)[TIMING] > 0
    assert planned == ["VertexAscent", "ProjectedGradient", "FrankWolfe", "FrankWolfe"]


# ---- names of methods -------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS.words())
def test_a_registered_name_is_the_method_with_its_defaults(name):
    assert method_named(name) == METHODS.named(name)()


def test_the_variant_of_the_paper_has_a_name_of_its_own():
    assert method_named("projected-gradient-slsqp") == mw.ProjectedGradient(rough_iterations=10)


def test_an_unknown_method_is_refused():
    with pytest.raises(SettingError, match=r"no method 'guess', expected one of .*vertex-ascent"):
        method_named("guess")


@dataclass(frozen=True)
class Needy(mw.Method):
    size: int

    def run(self, *_):
        pytest.fail("it cannot be made, so it must not be run")


def test_a_method_that_needs_settings_cannot_be_named(monkeypatch):
    monkeypatch.setattr(METHODS, "_classes", {**METHODS._classes, "Needy": Needy})
    with pytest.raises(SettingError, match=r"the method needy cannot be used in a study without settings: .*'size'"):
        method_named("needy")
