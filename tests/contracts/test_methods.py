"""What every method owes: feasible points, honest status, the same bits for the same seed, never more than the maximum.

A new method joins by one line in `METHODS`.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import manyways as mw
from manyways import (
    MDP,
    Average,
    Discounted,
    FrankWolfe,
    Polytope,
    ProjectedGradient,
    SettingError,
    Status,
    VertexAscent,
)
from manyways.methods import Ascent, Halted, Method, Trace, Watch
from problems import KNOWN, brute_force_optimum, random_accessible_mdp, random_mdp, vertices
from shared import paper_objective


@dataclass(frozen=True)
class Case:
    """A method and what may be asked of it.

    Attributes:
        method: with settings as good as its defaults for what every method owes.
        to_the_end: with settings under which one plan alone reaches the optimum.
        rising: whether its objective must never fall.
    """

    method: Method
    to_the_end: Method
    rising: bool


METHODS = {
    # Two starts do for what is asked of every method; test_vertex_ascent.py asks what the default reaches.
    "VertexAscent": Case(VertexAscent(starts=2), VertexAscent(), rising=False),
    "FrankWolfe": Case(FrankWolfe(), FrankWolfe(), rising=True),
    # For a linear objective, one long step lands on the optimal face; short ones may stop before it.
    "ProjectedGradient": Case(ProjectedGradient(), ProjectedGradient(steps=1e4), rising=False),
}

CRITERIA = {"average": Average(), "discounted": Discounted(0.9)}
RANDOM_MODELS = 200
TRADEOFF = 2.0
REACHED = 1e-6

PROBLEMS = {name: problem.mdp for name, problem in KNOWN.items()} | {
    "grid": mw.grid_world(np.zeros((3, 3), bool), (0, 0), (2, 2)),
    "random": random_accessible_mdp(np.random.default_rng(7), kind="dense"),
}

each_method = pytest.mark.parametrize("case", METHODS.values(), ids=METHODS)
each_criterion = pytest.mark.parametrize("criterion", CRITERIA.values(), ids=CRITERIA)
each_problem = pytest.mark.parametrize("mdp", PROBLEMS.values(), ids=PROBLEMS)


def run(method: Method, mdp: MDP, criterion=None, *, k: int = 2, seed: int = 0, watch: Watch | None = None) -> Ascent:
    return method.run(Polytope(mdp, criterion), paper_objective(mdp, TRADEOFF), k, seed, watch or Watch())


def assert_feasible(polytope: Polytope, point: np.ndarray, k: int) -> None:
    assert point.shape == (k, polytope.size)
    assert max(polytope.residual(x) for x in point) <= 1e-8


def assert_rising(values: np.ndarray) -> None:
    assert (np.diff(values) >= -1e-12 * np.abs(values).max()).all()


def assert_in_order(trace: Trace) -> None:
    """One entry a column and iteration; the clock and the count of calls only go up."""
    for column in (trace.objective, trace.measure, trace.step, trace.seconds, trace.oracle_calls):
        assert column.shape == (len(trace),)
        assert np.isfinite(column).all()
    assert (np.diff(trace.seconds) >= 0).all()
    assert (np.diff(trace.oracle_calls, prepend=0) > 0).all()


# ---- points -----------------------------------------------------------------------------------


@each_method
@each_criterion
@each_problem
@pytest.mark.parametrize("k", [1, 2, 4])
def test_points_are_feasible_and_the_trace_is_in_order(case, criterion, mdp, k):
    ascent = run(case.method, mdp, criterion, k=k)
    assert_feasible(Polytope(mdp, criterion), ascent.point, k)
    assert_in_order(ascent.trace)
    assert ascent.status in set(Status)
    if case.rising:
        assert_rising(np.append(ascent.trace.objective, paper_objective(mdp, TRADEOFF).value(ascent.point)))


@cache
def random_models(criterion) -> list[tuple[MDP, float]]:
    """Random models, each with the true maximum of eq. (main) for two plans."""
    rng = np.random.default_rng(0)
    make = random_accessible_mdp if isinstance(criterion, Average) else random_mdp
    models = [make(rng) for _ in range(RANDOM_MODELS)]
    return [(mdp, brute_force_optimum(mdp, TRADEOFF, criterion)) for mdp in models]


@each_method
@each_criterion
def test_two_plans_are_never_above_the_maximum(case, criterion):
    reached = []
    for seed, (mdp, maximum) in enumerate(random_models(criterion)):
        polytope, objective = Polytope(mdp, criterion), paper_objective(mdp, TRADEOFF)
        ascent = case.method.run(polytope, objective, 2, seed, Watch())
        assert_feasible(polytope, ascent.point, 2)
        value = objective.value(ascent.point)
        assert value <= maximum + 1e-9
        reached.append(value >= maximum - REACHED)
        if case.rising:
            assert_rising(np.append(ascent.trace.objective, value))
    print(f"\n{case.method} {criterion}: {np.mean(reached):.0%} of {len(reached)} runs reach the maximum")
    assert np.mean(reached) > 0.2  # far below what is measured: this is no benchmark, but a broken search shows


@each_method
@pytest.mark.parametrize("name", [name for name, problem in KNOWN.items() if problem.best_pair])
def test_two_plans_are_never_above_the_maximum_in_closed_form(case, name):
    problem = KNOWN[name]
    assert brute_force_optimum(problem.mdp, TRADEOFF, Average()) == pytest.approx(problem.best_pair(TRADEOFF))
    value = paper_objective(problem.mdp, TRADEOFF).value(run(case.method, problem.mdp).point)
    assert value <= problem.best_pair(TRADEOFF) + 1e-9


# ---- one plan, and more plans than there are ---------------------------------------------------


@each_method
@each_criterion
@pytest.mark.parametrize("name", KNOWN)
def test_one_plan_is_an_optimal_one(case, criterion, name):
    problem = KNOWN[name]
    ascent = run(case.to_the_end, problem.mdp, criterion, k=1)
    assert float(ascent.point[0] @ problem.mdp.reward) == pytest.approx(problem.best(criterion), abs=1e-6)


@each_method
@each_criterion
def test_one_plan_is_an_optimal_one_in_random_models(case, criterion):
    for mdp, _ in random_models(criterion)[:40]:
        ascent = run(case.to_the_end, mdp, criterion, k=1)
        best = (vertices(mdp, criterion) @ mdp.reward).max()
        assert float(ascent.point[0] @ mdp.reward) == pytest.approx(best, abs=1e-6)


@each_method
@each_criterion
@pytest.mark.parametrize("name", ["single", "2-cycle", "bandit", "cycle choice"])
def test_more_plans_than_policies(case, criterion, name):
    mdp, k = KNOWN[name].mdp, 5
    ascent = run(case.method, mdp, criterion, k=k)
    assert_feasible(Polytope(mdp, criterion), ascent.point, k)
    value = paper_objective(mdp, TRADEOFF).value(ascent.point)
    assert value <= brute_force_optimum(mdp, TRADEOFF, criterion, k) + 1e-9


# ---- seeds ------------------------------------------------------------------------------------


@each_method
@each_criterion
@pytest.mark.parametrize("name", ["grid", "random"])
def test_the_same_seed_gives_the_same_bits(case, criterion, name):
    first, again = (run(case.method, PROBLEMS[name], criterion, k=3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.point, again.point)
    np.testing.assert_array_equal(first.trace.objective, again.trace.objective)
    np.testing.assert_array_equal(first.trace.measure, again.trace.measure)
    assert first.status == again.status


@each_method
def test_another_seed_is_another_start(case):
    starts = [run(case.method, PROBLEMS["grid"], seed=seed).trace.objective[0] for seed in range(3)]
    assert len(set(starts)) == 3


# ---- stopping ---------------------------------------------------------------------------------


class ExpiresAtLook(Watch):
    """A clock that runs out at the n-th look at it."""

    def __init__(self, n: int) -> None:
        super().__init__(time_limit_s=1.0)
        object.__setattr__(self, "left", n)

    def expired(self) -> bool:
        object.__setattr__(self, "left", self.left - 1)
        return self.left <= 0


@each_method
def test_a_time_limit_is_a_status_with_a_feasible_point(case):
    mdp = PROBLEMS["grid"]
    ascent = run(case.method, mdp, watch=Watch(time_limit_s=1e-9))
    assert ascent.status == Status.TIME_LIMIT == "time limit"
    assert_feasible(Polytope(mdp), ascent.point, 2)


@each_method
def test_a_time_limit_keeps_what_has_been_reached(case):
    mdp = PROBLEMS["grid"]
    ascent = run(case.method, mdp, watch=ExpiresAtLook(2))
    assert ascent.status == Status.TIME_LIMIT
    assert len(ascent.trace) >= 1
    assert_feasible(Polytope(mdp), ascent.point, 2)
    if case.rising:
        assert paper_objective(mdp, TRADEOFF).value(ascent.point) >= ascent.trace.objective[0]


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        *[(s, f"the time limit must be a positive number of seconds, found {s}") for s in (0.0, -1.0)],
        *[(s, f"the time limit must be a finite number, found {s}") for s in (float("nan"), float("inf"), True)],
    ],
)
def test_a_time_limit_that_is_none_is_refused(seconds, message):
    with pytest.raises(SettingError, match=message):
        Watch(time_limit_s=seconds)


@each_method
def test_an_interrupt_while_reporting_ends_the_run_with_a_feasible_point(case):
    mdp = PROBLEMS["grid"]
    watch = Watch(report=lambda progress: watch.interrupted.set() if progress.done >= 1 else None)
    ascent = run(case.method, mdp, watch=watch)
    assert ascent.status == Status.INTERRUPTED == "interrupted"
    assert_feasible(Polytope(mdp), ascent.point, 2)


class InterruptedPolytope(Polytope):
    """Somebody interrupts at the n-th linear problem or projection."""

    calls_left = 3

    def _count(self) -> None:
        self.calls_left -= 1
        if self.calls_left == 0:
            raise Halted(Status.INTERRUPTED)

    def best(self, *arguments, **options):
        self._count()
        return super().best(*arguments, **options)

    def project(self, *arguments, **options):
        self._count()
        return super().project(*arguments, **options)


@each_method
def test_an_interrupt_in_the_middle_of_an_iteration_ends_the_run_with_a_feasible_point(case):
    mdp = PROBLEMS["grid"]
    polytope = InterruptedPolytope(mdp)
    ascent = case.method.run(polytope, paper_objective(mdp, TRADEOFF), 2, 0, Watch())
    assert ascent.status == Status.INTERRUPTED
    assert_feasible(Polytope(mdp), ascent.point, 2)


@each_method
def test_other_exceptions_are_not_swallowed(case):
    def fail(_: mw.Progress) -> None:
        raise RuntimeError("from the listener")

    with pytest.raises(RuntimeError, match="from the listener"):
        run(case.method, PROBLEMS["grid"], watch=Watch(report=fail))


@each_method
def test_progress_is_told_in_order(case):
    heard: list[mw.Progress] = []
    run(case.method, PROBLEMS["grid"], watch=Watch(report=heard.append))
    assert heard
    assert all(0 <= progress.done <= progress.total for progress in heard)
    assert (np.diff([progress.done for progress in heard]) >= 0).all()
    assert np.isfinite([progress.objective for progress in heard]).all()


@pytest.mark.parametrize("method", [FrankWolfe(iterations=0), ProjectedGradient(iterations=0)], ids=str)
def test_running_out_of_iterations_is_not_called_converged(method):
    ascent = run(method, PROBLEMS["grid"])
    assert ascent.status == Status.ITERATION_LIMIT
    assert len(ascent.trace) == 1


# ---- settings ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (FrankWolfe, {"iterations": -1}, "iterations must be an integer of at least 0, found -1"),
        (FrankWolfe, {"iterations": 2.5}, "iterations must be an integer"),
        (FrankWolfe, {"iterations": True}, "iterations must be an integer"),
        (FrankWolfe, {"tolerance": -1e-3}, "the tolerance must be a finite number of at least 0, found -0.001"),
        (FrankWolfe, {"tolerance": float("nan")}, "the tolerance must be a finite number of at least 0, found nan"),
        (FrankWolfe, {"shrinkage": 0.0}, "shrinkage must lie strictly between 0 and 1"),
        (FrankWolfe, {"shrinkage": 1.0}, "shrinkage must lie strictly between 0 and 1"),
        (FrankWolfe, {"smoothing": 0.0}, "smoothing must be positive"),
        (ProjectedGradient, {"iterations": -1}, "iterations must be an integer of at least 0, found -1"),
        (ProjectedGradient, {"tolerance": -1.0}, "the tolerance must be a finite number of at least 0, found -1.0"),
        (
            ProjectedGradient,
            {"mapping_tolerance": -1.0},
            "the mapping tolerance must be a finite number of at least 0, found -1",
        ),
        (ProjectedGradient, {"steps": 0.0}, "steps must be positive"),
        (ProjectedGradient, {"steps": []}, "steps must be positive"),
        (ProjectedGradient, {"steps": [0.1, -0.1]}, "steps must be positive"),
        (ProjectedGradient, {"steps": float("nan")}, "steps must be positive"),
        (ProjectedGradient, {"steps": float("inf")}, "steps must be positive"),
        (ProjectedGradient, {"rough_iterations": 0}, "rough_iterations must be an integer of at least 1"),
        (ProjectedGradient, {"smoothing": 0.0}, "smoothing must be positive"),
    ],
)
def test_bad_settings_are_refused(make, settings, message):
    with pytest.raises(SettingError, match=message):
        make(**settings)


def test_steps_may_be_a_list_whose_last_entry_goes_on():
    ascent = run(ProjectedGradient(steps=[0.3, 0.2, 0.1], iterations=4, tolerance=0), PROBLEMS["random"])
    np.testing.assert_allclose(ascent.trace.step, [0.3, 0.2, 0.1, 0.1, 0.1])


# ---- the helpers can fail ---------------------------------------------------------------------


def test_an_infeasible_point_is_noticed():
    polytope = Polytope(PROBLEMS["losses"])
    good = np.tile(polytope.best(polytope.mdp.reward).occupancy, (2, 1))
    assert_feasible(polytope, good, 2)
    for wrong in (good[:1], good[:, :3], good + 1e-7, good[:, ::-1] * [1.5, 0.5, 1.0, 1.0]):
        with pytest.raises(AssertionError):
            assert_feasible(polytope, wrong, 2)


def test_a_falling_objective_is_noticed():
    assert_rising(np.array([1.0, 1.0, 2.0]))
    with pytest.raises(AssertionError):
        assert_rising(np.array([1.0, 2.0, 2.0 - 1e-9]))


def test_a_disordered_trace_is_noticed():
    rows = [(0.0, 1.0, 1.0, 0.1, 2), (1.0, 0.0, 0.0, 0.2, 4)]
    assert_in_order(Trace.of(rows))
    for wrong in (rows[::-1], [rows[0], rows[0]], [(float("nan"), *rows[0][1:])]):
        with pytest.raises(AssertionError):
            assert_in_order(Trace.of(wrong))
    with pytest.raises(AssertionError):
        assert_in_order(Trace(np.zeros(2), np.zeros(1), np.zeros(2), np.zeros(2), np.arange(2)))
