"""Survival under closures: against simulation, enumeration and Storm."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from luck import trips_by_luck, within
from manyways.describe.wording import joined, percent
from manyways.formats.writer import write_model
from manyways.model.episodes import episode_ends
from manyways.model.occupancy import chain, deterministic, long_run_occupancy
from manyways.model.trips import fewest_steps, trips_of
from manyways.plans.outcomes import Setting, best_by_value
from problems import all_deterministic_policies, random_accessible_mdp

CUT = 200
"""Trips by luck are cut off after so many steps."""


def test_outcomes_are_those_of_many_trips():
    """100,000 trips of each plan with each door of a small world closed, within three standard errors or so."""
    plans = mw.plan(mw.room_world(9, 2, seed=1), 2, slack=0.3)
    found = mw.survival(plans)
    assert found.best.values == pytest.approx(plans.optimal_reward)
    ends, checked = episode_ends(plans.mdp), 0
    for j, closure in enumerate(found.closures):
        model = closure.applied(plans.mdp)
        for i, policy in enumerate(plans.policies):
            if not found.survivors[i, j]:
                continue
            run = trips_by_luck(model, policy, ends, 100_000, 2000, seed=10 * j + i)
            assert run.reached.all()
            assert found.closed.reaches[i, j] == pytest.approx(1.0, abs=1e-9)
            assert within(found.closed.steps[i, j], run.steps - 1)  # the step back from the goal is no part of the way
            mean = run.returns - found.closed.values[i, j] * run.steps  # zero on average, if the value is right
            assert within(0.0, mean)
            checked += 1
    assert checked >= 2


def test_a_trip_may_fail():
    """FrozenLake without one of its actions: the chance of reaching the goal falls, and no plan beats a new one."""
    plans = mw.plan("gym:FrozenLake-v1", 3, slack=0.2)
    found = mw.survival(plans, mw.closures(plans.mdp, actions=True))
    policy = plans.policies[0]
    taken = np.flatnonzero(policy)
    for j, closure in enumerate(found.closures):
        model = closure.applied(plans.mdp)
        ends, goal = episode_ends(model), model.ends["goal"]
        going_on = (model.transitions.toarray() - ends[:, None] * model.start)[taken]
        chance, cut = np.zeros(model.n_states), np.zeros(model.n_states)
        for step in range(20_000):
            chance = goal[taken] + going_on @ chance
            cut = chance if step < CUT else cut
        assert found.closed.reaches[0, j] == pytest.approx(model.start @ chance, abs=1e-9)
        run = trips_by_luck(model, policy, ends, 100_000, CUT, seed=j, goal=goal)  # many trips take longer than that
        assert within(model.start @ cut, run.reached)
    assert (found.closed.values <= found.replanned.values + 1e-9)[~np.isnan(found.closed.values)].all()


# ---- what practically never happens -------------------------------------------------------------


def speckled_hall(folder) -> str:
    """A nav2 map of 60 x 44 pixels: two halls, joined by a north and a south corridor with a speckled wall."""
    free = np.zeros((44, 60), bool)
    free[2:42, 2:22] = free[2:42, 38:58] = True
    free[6:11, 22:38] = free[33:38, 22:38] = True
    free[10, 26] = free[6, 31] = free[37, 33] = free[20, 2] = False
    pixels = np.where(free, 254, 0).astype(np.uint8)
    (folder / "hall.pgm").write_bytes(b"P5\n60 44\n255\n" + pixels.tobytes())
    (folder / "hall.yaml").write_text(
        "image: hall.pgm\nresolution: 0.1\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.25\n"
    )
    return f"{folder / 'hall.yaml'}?start=0.5,2.2&goal=5.5,2.2&coarsen=2"


def followed(mdp: mw.MDP, closed: np.ndarray, policy: np.ndarray, most: int) -> tuple[float, float]:
    """The chance that a trip reaches the goal within so many steps where moves into `closed` fail, and the mean number of
    steps of those that do: step by step, on a table of its own."""
    table = np.zeros((mdp.n_states, mdp.n_states))
    for x in np.flatnonzero(policy):
        here = mdp.choice_state[x]
        for next_state, chance in zip(*mdp.transitions[[x]].nonzero()[1:], mdp.transitions[[x]].data, strict=True):
            fails = closed[next_state] and not closed[here]
            table[here, here if fails else next_state] += policy[x] * chance
    now, goal, arrived, steps = mdp.start.copy(), mdp.labels["goal"], 0.0, 0.0
    for step in range(1, most + 1):
        now = now @ table
        arrived, steps = arrived + now[goal].sum(), steps + step * now[goal].sum()
        now[goal] = 0.0
    return arrived, steps / arrived if arrived else np.nan


def test_a_closure_that_a_plan_practically_never_meets_does_not_matter(tmp_path):
    """A robot may slip, with a chance of 1e-14, to where its way leads to the closed passage, and then stays there for 1e15
    steps. It has a mean length of its own, and it is not that of the trips that people see."""
    plans = mw.plan(speckled_hall(tmp_path), 2, slack=0.3)
    mdp = plans.mdp
    rows = np.array([cell // mdp.layout.shape[1] for cell in mdp.layout.cells])
    columns = np.array([cell % mdp.layout.shape[1] for cell in mdp.layout.cells])
    middle = abs(columns - mdp.layout.shape[1] // 2) <= 1
    passages = [
        mw.Closure(name, middle & half, np.zeros(mdp.n_choices, bool))
        for name, half in (("north", rows < 11), ("south", rows > 11))
    ]
    found = mw.survival(plans, passages)
    assert found.survivors.sum(axis=0).tolist() == [1, 1]  # one plan goes by each passage
    with np.errstate(all="ignore"):
        lengths = [
            float(trip.start @ trip.solved(np.ones(len(trip.start))))
            for closure in passages
            for policy in plans.policies
            for trip in [trips_of(closure.applied(mdp)).of(policy)]
        ]
    assert not all(0 < length < 1e6 for length in lengths)  # in double precision they mean nothing
    for j, closure in enumerate(passages):
        for i, policy in enumerate(plans.policies):
            chance, steps = followed(mdp, closure.states, policy, found.deadline)
            assert found.closed.reaches[i, j] == pytest.approx(chance, abs=1e-9)
            if found.survivors[i, j]:
                assert found.closed.steps[i, j] == pytest.approx(steps, rel=1e-9)
                assert found.closed.steps[i, j] == pytest.approx(found.open.steps[i], rel=1e-3)
                assert found.closed.values[i, j] == pytest.approx(found.open.values[i], rel=1e-3)
                run = trips_by_luck(closure.applied(mdp), policy, episode_ends(mdp), 20_000, 2000, seed=j)
                assert run.reached.all()
                assert within(found.closed.steps[i, j], run.steps - 1)
    assert np.isfinite(found.closed.values).all()
    for j in range(2):
        told = found.sentence(j)
        assert "nan" not in told
        assert f"plan {int(np.argmax(found.survivors[:, j])) + 1} still reaches the goal" in told


def pocket(slip: float, out: float, deep: int) -> mw.MDP:
    """Ten steps to the goal, from each of which one may slip into a pocket. Out of it lead `deep` lucky steps in a row."""
    rows = [(f"way {n}", "go", f"way {n + 1}" if n < 9 else "home", 1 - slip, -1.0) for n in range(10)]
    rows += [(f"way {n}", "go", "pocket 1", slip, -1.0) for n in range(10)]
    for n in range(1, deep + 1):
        rows += [(f"pocket {n}", "climb", f"pocket {n + 1}" if n < deep else "way 0", out, -1.0)]
        rows += [(f"pocket {n}", "climb", "pocket 1", 1 - out, -1.0)]
    rows += [("home", "again", "way 0", 1.0, 5.0)]
    return mw.MDP.from_transitions(rows, labels={"goal": ["home"]}, start="way 0")


@pytest.mark.parametrize(("slip", "out", "deep"), [(2**-40, 2**-12, 5), (2**-6, 2**-12, 5), (2**-6, 0.5, 2)])
def test_chances_and_steps_by_the_deadline_are_exact(slip, out, deep):
    """In rational arithmetic, for pockets that one comes out of after two steps, and after 1e18."""
    mdp = pocket(slip, out, deep)
    plans = mw.plan(mdp, 1, floor=-100.0)
    found = mw.survival(plans, mw.closures(mdp, actions="again"))
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    table = [[(j, Fraction(float(p))) for j, p in enumerate(row) if p] for row in mdp.transitions.toarray()]
    now, arrived, steps = [Fraction(int(name == "way 0")) for name in names], Fraction(0), Fraction(0)
    most = min(found.deadline, 400)
    for step in range(1, most + 1):
        then = [Fraction(0)] * len(names)
        for own, row in zip(now, table, strict=True):
            for j, chance in row:
                then[j] += own * chance
        home = names.index("home")
        arrived, steps = arrived + then[home], steps + step * then[home]
        then[home] = Fraction(0)
        now = then
    trips = trips_of(mdp)
    trip = trips.of(plans.policies[0])
    known = trip.within(most, trips.passing(trip))
    assert known.chance == pytest.approx(float(arrived), abs=1e-12)
    assert known.steps == pytest.approx(float(steps / arrived), rel=1e-10)
    assert found.open.reaches[0] >= known.chance - 1e-12
    if deep == 2:  # nobody is late
        assert found.open.steps[0] == pytest.approx(known.steps, rel=1e-10)


@settings(max_examples=15)
@given(st.integers(0, 10**6))
def test_values_are_those_of_the_closed_model(seed):
    """The value of every plan is that of its policy in the closed model, and a new plan is the best of all policies there."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="restart")
    plans = mw.plan(mdp, 2, floor=-100.0)
    found = mw.survival(plans, mw.closures(mdp, states=[int(rng.integers(mdp.n_states))]))
    model = found.closures[0].applied(mdp)
    for i, policy in enumerate(plans.policies):
        assert found.closed.values[i, 0] == pytest.approx(long_run_occupancy(model, policy) @ model.reward, abs=1e-8)
    if not np.isnan(found.replanned.values[0]):
        every = (deterministic(model, choices) for choices in all_deterministic_policies(model))
        best = max(float(long_run_occupancy(model, policy) @ model.reward) for policy in every)
        assert found.replanned.values[0] <= best + 1e-8
        assert np.isnan(found.best_values[0]) or found.replanned.values[0] >= found.best_values[0] - 1e-8


def test_the_words_say_who_comes_through():
    plans = mw.plan("nine-rooms:8", 4, slack=0.1, objective=mw.Representative(mw.Preferences.closures()))
    found = mw.survival(plans)
    for j, closure in enumerate(found.closures):
        told = found.sentence(j)
        assert told.startswith(f"With the {closure.name} closed, ")
        who = np.flatnonzero(found.survivors[:, j] & (found.closed.reaches[:, j] >= 1 - 1e-6)) + 1
        if 0 < len(who) < plans.k:
            assert all(str(number) in told for number in who)
    only_way = mw.survival(plans, mw.closures(plans.mdp, states=np.flatnonzero(plans.mdp.labels["goal"])))
    assert only_way.sentence(0).endswith("no plan at all reaches the goal.")


def reaching(model: mw.MDP, policy: np.ndarray) -> float:
    """The chance that an episode of a policy reaches the goal, by iteration."""
    ends, goal = episode_ends(model), model.ends["goal"]
    going_on = chain(model, policy) - np.outer(np.add.reduceat(policy * ends, model.first_choice[:-1]), model.start)
    at_once = np.add.reduceat(policy * goal, model.first_choice[:-1])
    chance = np.zeros(model.n_states)
    for _ in range(20_000):
        chance = at_once + going_on @ chance
    return float(model.start @ chance)


def test_the_words_do_not_promise_a_goal_that_is_reached_by_chance():
    """On slippery ice with a reward per step, quick plans are worth more than sure ones. The plan made for a closure is the surest:
    no policy of the closed model reaches the goal more often, by value iteration."""
    plans = mw.plan("gym:FrozenLake8x8-v1", 4, slack=0.2, criterion=mw.Average())
    found = mw.survival(plans, mw.closures(plans.mdp, actions=["right"]))
    model = found.closures[0].applied(plans.mdp)
    chances = [reaching(model, policy) for policy in plans.policies]
    ends, goal = episode_ends(model), model.ends["goal"]
    going_on = model.transitions.toarray() - np.outer(ends, model.start)
    chance = np.zeros(model.n_states)
    for _ in range(20_000):
        chance = np.maximum.reduceat(goal + going_on @ chance, model.first_choice[:-1])
    largest = float(model.start @ chance)
    assert max(chances) < largest < 1
    assert found.possible.reaches[0] == pytest.approx(largest, abs=1e-9)
    assert found.replanned.values[0] >= found.best_values[0]
    assert found.sentence(0).endswith(f"; one made for this closure does in {percent(largest)}.")


def workshop() -> mw.MDP:
    """Cutting and selling, or repairing a tool that breaks; without repairs one may still sew, for less; doing nothing costs nothing."""
    return mw.MDP.from_transitions(
        [
            ("ready", "cut", "ready", 0.9, 5.0),
            ("ready", "cut", "broken", 0.1, 5.0),
            ("ready", "sew", "ready", 1.0, 2.0),
            ("broken", "repair", "ready", 1.0, -4.0),
            ("broken", "sell", "broken", 1.0, -1.0),
        ]
    )


def test_a_plan_that_stands_in_front_of_what_is_closed_is_stuck():
    """In the end it is in the state that it would leave by what fails. The plan made for the closure never cuts."""
    plans = mw.plan(workshop(), 2, floor=-100.0)
    found = mw.survival(plans, mw.closures(plans.mdp, actions=["repair", "sew"]))
    broken = [plans.mdp.state_name(s) for s in range(2)].index("broken")
    cutting = np.array([policy[plans.mdp.choice_state == 0][0] for policy in plans.policies])
    repairing = np.array([policy[plans.mdp.choice_state == 1][0] for policy in plans.policies])
    for i in range(2):
        if cutting[i] == 1 and repairing[i] == 1:
            assert found.closed.stuck[i, 0] == pytest.approx(1.0)
            assert found.closed.place[i, 0] == broken
            assert found.told(found.closed, i, 0) == "stuck"
            assert not found.survivors[i, 0]
    assert found.closed.stuck.max() == 1
    assert found.possible.stuck[0] == 0
    assert found.possible.values[0] == pytest.approx(2.0)  # sewing


def test_what_costs_little_because_nothing_goes_on_is_not_the_best():
    """Waiting at a closed ferry costs less per step than driving round; yet the plan made for it drives."""
    rows = [
        ("here", "ferry", "there", 1.0, -1.0),
        ("here", "drive", "there", 1.0, -5.0),
        ("there", "home", "here", 1.0, -2.0),
    ]
    mdp = replace(mw.MDP.from_transitions(rows), costs=True)
    plans = mw.plan(mdp, 1, slack=0.0)
    found = mw.survival(plans, mw.closures(mdp, actions=["ferry"]))
    assert found.told(found.closed, 0, 0) == "stuck"
    assert found.possible.values[0] == pytest.approx(-3.5)
    assert np.isnan(found.best_values[0])
    assert (
        found.sentence(0)
        == "If the action ferry fails, plan 1 gets stuck, in 'here'; one made for this closure has a cost of 3.5."
    )


@settings(max_examples=25)
@given(st.integers(0, 10**6))
def test_a_plan_made_for_a_closure_is_the_best_of_all_policies_that_do_not_try_what_fails(seed):
    """Also where the closed model falls into parts: by enumeration, from the start."""
    rng = np.random.default_rng(seed)
    rows = [
        (f"s{s}", f"a{a}", f"s{int(rng.integers(4))}", 1.0, float(rng.integers(-5, 6)))
        for s in range(4)
        for a in range(3)
    ] + [("s0", "out", "s1", 0.5, 1.0), ("s0", "out", "s2", 0.5, 0.0), ("s1", "back", "s0", 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, start="s0")
    (closure,) = mw.closures(mdp, actions=["back"])
    setting = Setting.of(mdp, closure)
    policy = best_by_value(setting, mw.Average())
    tries = closure.choices
    every = [deterministic(setting.model, choices) for choices in all_deterministic_policies(setting.model)]
    values = [long_run_occupancy(setting.model, one) @ setting.model.reward for one in every if not one[tries].any()]
    assert long_run_occupancy(setting.model, policy) @ setting.model.reward == pytest.approx(max(values), abs=1e-6)


def test_no_plan_of_the_set_beats_the_one_made_for_a_closure():
    """Neither in rewards nor in costs, with several starts of which some are lost (taxi)."""
    for source in ("gym:Taxi-v3", "gym:FrozenLake-v1", "nine-rooms:8"):
        plans = mw.plan(source, 3, slack=0.1)
        found = mw.survival(plans, mw.closures(plans.mdp, actions=True))
        assert (found.possible.reaches >= found.closed.reaches - 1e-6).all()
        assert not np.isnan(found.possible.reaches).any()


def test_less_sure_by_less_than_a_thousandth_is_as_sure():
    found = mw.survival(mw.plan(mw.four_rooms(0), 2, slack=0.2))
    near, far = (
        replace(
            found,
            closed=replace(
                found.closed, reaches=found.open.reaches[:, None] - loss, steps=found.open.steps[:, None] + 0
            ),
        )
        for loss in (0.0009, 0.0011)
    )
    assert near.survivors.all()
    assert not far.survivors.any()


def test_plans_that_reach_the_goal_equally_often_are_all_named():
    plans = mw.plan("gym:FrozenLake-v1", 4, slack=0.2)
    found = mw.survival(plans, mw.closures(plans.mdp, actions=True))
    named = 0
    for j, closure in enumerate(found.closures):
        told = found.sentence(j)
        assert told.startswith(f"If the {closure.name} fails, ")
        chances = [percent(float(chance)) for chance in found.closed.reaches[:, j]]
        likely = found.closed.reaches[:, j].argmax()
        tied = [i + 1 for i, chance in enumerate(chances) if chance == chances[likely]]
        if found.closed.reaches[likely, j] > 0 and len(tied) > 1:
            assert f"plans {joined([str(i) for i in tied])} reach the goal" in told or "every plan" in told
            named += 1
    assert named


def test_sets_for_closures_are_the_best_under_closures():
    """On worlds that nothing was tuned on, against the default set and the paper's objective within the same slack."""
    gains = []
    for seed in range(600, 604):
        mdp = mw.nine_rooms(seed)
        best = [
            np.nan_to_num(mw.survival(mw.plan(mdp, 3, slack=0.1, objective=objective)).best_values).mean()
            for objective in (mw.Representative(mw.Preferences.closures()), None, mw.MeanDivergence())
        ]
        gains.append(best[0] - max(best[1:]))
    assert np.mean(gains) > 0


def test_what_nobody_can_help_is_one_sentence():
    plans = mw.plan("gym:CliffWalking-v1", 2)
    found = mw.survival(plans, mw.closures(plans.mdp, actions=True))
    hopeless = [closure.name for j, closure in enumerate(found.closures) if found.hopeless[j]]
    for closure in found.closures:
        model = closure.applied(found.plans.mdp)
        assert (closure.name in hopeless) == (fewest_steps(model) is None)
    assert found.hopeless_told().endswith(f"closed: {', '.join(hopeless)}.") if hopeless else not found.hopeless_told()


def test_closures_of_another_model_are_refused():
    plans = mw.plan("four-rooms:0", 1)
    with pytest.raises(mw.SettingError, match="is of another model"):
        mw.survival(plans, mw.closures(mw.read("gym:FrozenLake-v1"), actions=True))


LIFT = """mdp
module robot
  at : [0..5] init 0;
  [lift] at=0 -> 0.8 : (at'=3) + 0.15 : (at'=0) + 0.05 : (at'=5);
  [stairs] at=0 -> 0.9 : (at'=1) + 0.1 : (at'=0);
  [climb] at=1 -> 0.7 : (at'=2) + 0.28 : (at'=1) + 0.02 : (at'=5);
  [climb] at=2 -> 0.7 : (at'=3) + 0.28 : (at'=1) + 0.02 : (at'=5);
  [go] at=3 -> (at'=4);
  [rest] at>=4 -> true;
endmodule
label "goal" = at=4;
label "stairway" = at=1 | at=2;
label "broken" = at=5;
rewards "time" true : 1; endrewards
"""

ROADS = """mdp
const int L = 3;
module car
  x : [0..L] init 0;
  road : [0..1] init 0;
  lost : bool init false;
  [main] !lost & road=0 & x<L -> 0.75 : (x'=x+1) + 0.2 : true + 0.05 : (lost'=true);
  [turn] !lost & road=0 & x=0 -> (road'=1);
  [side] !lost & road=1 & x<L -> 0.5 : (x'=x+1) + 0.5 : true;
  [stop] lost | x=L -> true;
endmodule
label "goal" = !lost & x=L;
label "bridge" = !lost & road=0 & x=2;
rewards "time" true : 1; endrewards
"""


@pytest.mark.parametrize(("text", "label"), [(LIFT, "stairway"), (LIFT, "broken"), (ROADS, "bridge")])
def test_chances_are_storms(tmp_path, text, label):
    """The chance of reaching the goal, with and without a closure, and of touching a label on the way."""
    stormpy = pytest.importorskip("stormpy", minversion="2.0")
    path = tmp_path / "model.prism"
    path.write_text(text)
    plans = mw.plan(f"{path}?minimise=true", 2, criterion=mw.Discounted(0.95), floor=-100.0)
    found = mw.survival(plans, mw.closures(plans.mdp, labels=label))
    cards = mw.risk(plans)

    def storm(mdp: mw.MDP, policy: np.ndarray, formula: str) -> float:
        alone = mw.MDP.from_csr(
            chain(mdp, policy), np.zeros(mdp.n_states), np.arange(mdp.n_states + 1), start=mdp.start, labels=mdp.labels
        )
        write_model(alone, tmp_path / "chain.drn")
        model = stormpy.build_model_from_drn(str(tmp_path / "chain.drn"))
        wanted = stormpy.parse_properties(formula)[0]
        result = stormpy.model_checking(model, wanted, environment=stormpy.environments.sound())
        return float(result.get_value(model.initial_states[0]))

    closed = found.closures[0].applied(plans.mdp)
    for i, policy in enumerate(plans.policies):
        assert found.open.reaches[i] == pytest.approx(storm(plans.mdp, policy, 'Pmax=? [F "goal"]'), abs=1e-6)
        assert found.closed.reaches[i, 0] == pytest.approx(storm(closed, policy, 'Pmax=? [F "goal"]'), abs=1e-6)
        touched = storm(plans.mdp, policy, f'Pmax=? [!"goal" U "{label}"]')
        assert cards[i].touches[label] == pytest.approx(touched, abs=1e-6)
