"""Teams: every measure against all pairs of trips of a tiny model, and against luck in rooms."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import manyways as mw
from manyways.errors import SettingError
from manyways.model.closures import Closure
from manyways.surviving import survival

TRIPS = 8_000


def forked() -> mw.MDP:
    """Two ways from the start to the goal; one of them leads over the other's state at times."""
    return mw.MDP.from_transitions(
        [
            ("start", "left", "a", 0.8, -1.0),
            ("start", "left", "b", 0.2, -1.0),
            ("start", "right", "b", 0.9, -1.0),
            ("start", "right", "start", 0.1, -1.0),
            ("a", "on", "goal", 0.7, -1.0),
            ("a", "on", "a", 0.3, -1.0),
            ("a", "back", "start", 1.0, -1.0),
            ("b", "on", "goal", 0.5, -1.0),
            ("b", "on", "a", 0.5, -1.0),
            ("goal", "again", "start", 1.0, 20.0),
        ],
        start="start",
        labels={"goal": ["goal"]},
        name="forked",
    )


def chain_of(mdp: mw.MDP, policy: np.ndarray) -> np.ndarray:
    """(S, S) dense."""
    choosing = np.zeros((mdp.n_states, mdp.n_choices))
    choosing[mdp.choice_state, np.arange(mdp.n_choices)] = policy
    return choosing @ mdp.transitions.toarray()


def all_trips(chain: np.ndarray, goal: int, path: tuple[int, ...], steps: int) -> list[tuple[float, tuple[int, ...]]]:
    """The chance of each way of at most so many steps that ends at the goal, or is not yet there."""
    if path[-1] == goal or steps == 0:
        return [(1.0, path)]
    return [
        (chance * rest, whole)
        for there, chance in enumerate(chain[path[-1]])
        if chance > 0
        for rest, whole in all_trips(chain, goal, (*path, there), steps - 1)
    ]


@pytest.mark.parametrize("deadline", [1, 2, 5])
@pytest.mark.parametrize("agents", [(0, 1), (0, 0)])
def test_against_all_pairs_of_trips(deadline, agents):
    mdp = forked()
    plans = mw.plan(mdp, 2, 5.0)
    closed = mw.closures(mdp, states=["a", "b"])
    found = mw.team(plans, agents, closed=closed, deadline=deadline)
    start, goal = mdp.start.argmax(), int(np.flatnonzero(mdp.labels["goal"])[0])
    places = [s for s in range(mdp.n_states) if s not in (start, goal)]

    def pairs(model: mw.MDP) -> list[tuple[float, tuple[tuple[int, ...], ...]]]:
        ways = [all_trips(chain_of(model, plans.policies[i]), goal, (int(start),), deadline) for i in agents]
        return [(one[0] * two[0], (one[1], two[1])) for one, two in product(*ways)]

    seen = first = 0.0
    for chance, paths in pairs(mdp):
        for place in places:
            times = [path.index(place) for path in paths if place in path]
            seen += chance * bool(times) / len(places)
            first += chance * min([*times, deadline]) / len(places)
    assert found.places == len(places)
    assert found.seen == pytest.approx(seen)
    assert found.first_visit == pytest.approx(first)
    for closure, reaches in zip(closed, found.reaches, strict=True):
        paired = pairs(closure.applied(mdp))
        assert reaches == pytest.approx(sum(chance for chance, paths in paired if any(goal in path for path in paths)))


def test_meetings_and_delays_by_hand():
    mdp = forked()
    plans = mw.plan(mdp, 3, 5.0)
    shares = []
    for policy in plans.policies:
        time = mdp.start
        for _ in range(400):
            time = time @ (0.5 * chain_of(mdp, policy) + 0.5 * np.eye(mdp.n_states))  # never periodic
        shares.append(time)
    counted = [s for s in range(mdp.n_states) if mdp.state_name(s) in ("a", "b")]
    met = [sum(shares[i][s] * shares[j][s] for j in range(3) if j != i for s in counted) for i in range(3)]
    found = mw.team(plans, closed=())
    assert found.meetings == pytest.approx(sum(met) / 2)
    assert found.reward == pytest.approx(plans.rewards.mean())
    assert found.delayed == pytest.approx(np.mean([r / (1 + m / 2) for r, m in zip(plans.rewards, met, strict=True)]))


def test_against_luck():
    """Independent trips of three agents in rooms, with each door closed in turn."""
    mdp = mw.room_world(9, 2, 3)
    plans = mw.plan(mdp, 3, objective=mw.MeanDivergence(8.0))
    closed = mw.closures(mdp)
    found = mw.team(plans, closed=closed, deadline=12)
    rng, goal = np.random.default_rng(0), mdp.labels["goal"]

    def first_times(model: mw.MDP, policy: np.ndarray) -> np.ndarray:
        """(TRIPS, S) when each state is first met; one more than the deadline if it is not."""
        upto = np.cumsum(chain_of(model, policy), axis=1)
        times = np.full((TRIPS, mdp.n_states), 13)
        at = rng.choice(mdp.n_states, TRIPS, p=mdp.start)
        for step in range(13):
            times[np.arange(TRIPS), at] = np.minimum(times[np.arange(TRIPS), at], step)
            moved = (rng.random((TRIPS, 1)) >= upto[at]).sum(axis=1)
            at = np.where(goal[at], at, moved)  # a trip ends at the goal
        return times

    for number, closure in enumerate(closed):
        arrived = np.min(
            [first_times(closure.applied(mdp), policy)[:, goal].min(axis=1) for policy in plans.policies], axis=0
        )
        assert close_to(found.reaches[number], (arrived <= 12).astype(float))
    together = np.min([first_times(mdp, policy) for policy in plans.policies], axis=0)
    places = together[:, (mdp.start <= 0) & ~goal & ~mdp.labels["wall"]]
    assert found.places == places.shape[1]
    assert close_to(found.seen, (places <= 12).mean(axis=1))
    assert close_to(found.first_visit, np.minimum(places, 12).mean(axis=1))


def close_to(value: float, sample: np.ndarray) -> bool:
    """Within three standard errors; what never happened may have a chance of three in so many trips."""
    return abs(sample.mean() - value) <= 3 * sample.std() / np.sqrt(len(sample)) + (
        3 / TRIPS if np.ptp(sample) == 0 else 0
    )


def test_a_goal_that_the_last_step_reaches():
    """In some models the step to the goal is the last one, and there is no state in which the agent is there."""
    mdp = mw.MDP.from_transitions(
        [("s", "go", "a", 1.0, 0.0), ("a", "try", "s", 0.6, 1.0), ("a", "try", "a", 0.4, 1.0)], start="s"
    )
    mdp = replace(mdp, ends={"goal": np.array([0.0, 0.6])})
    nothing = Closure("nothing", np.zeros(2, bool), np.zeros(2, bool))
    plans = mw.plan(mdp, 1, 0.0)
    reaches = [mw.team(plans, closed=[nothing], deadline=deadline).reaches[0] for deadline in (1, 2, 3)]
    assert reaches == pytest.approx([0.0, 0.6, 0.84])
    assert mw.team(plans, closed=()).deadline == round(2 * (1 + 1 / 0.6))


def test_the_usual_deadline_is_twice_the_time_of_the_fastest_plan():
    plans = mw.plan(mw.room_world(9, 2, 3), 2, 8.0)
    fastest = np.nanmin(survival(plans, closed=()).open.steps)
    assert mw.team(plans, closed=()).deadline == round(2 * fastest)


def test_models_without_trips():
    mdp = mw.MDP.from_transitions(
        [("a", "go", "b", 1.0, 1.0), ("a", "stay", "a", 1.0, 0.9), ("b", "back", "a", 1.0, 1.0)]
    )
    found = mw.team(mw.plan(mdp, 2, 1.0))
    assert found.reaches.shape == (0,)
    assert np.isnan([found.seen, found.first_visit]).all()
    assert found.meetings >= 0


def test_agents_are_plans_of_the_set():
    plans = mw.plan(forked(), 2, 5.0)
    with pytest.raises(SettingError, match="plans of the set, 0 to 1"):
        mw.team(plans, [2])
