"""How many really different ways there are, and sets without clones."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import inf

import numpy as np
import pytest

import manyways as mw
from buildings import building, passages_of
from manyways.methods.clones import CLONE
from manyways.objectives.divergence import divergences_from
from problems import random_accessible_mdp


def diamond(ways: int, lengths: list[int] | None = None) -> mw.MDP:
    """From the start to the goal by so many separate ways, each of so many steps."""
    rows = []
    for way in range(ways):
        length = 3 if lengths is None else lengths[way]
        places = ["start", *(f"{way}.{i}" for i in range(length)), "goal"]
        rows += [(a, f"way {way}" if a == "start" else "on", b, 1.0, 0.0) for a, b in pairwise(places)]
    return mw.MDP.from_transitions(
        [*rows, ("goal", "again", "start", 1.0, 10.0)], labels={"goal": ["goal"]}, start="start"
    )


@pytest.mark.parametrize("ways", [1, 2, 3, 5])
def test_separate_ways_are_counted(ways):
    found = mw.how_many(diamond(ways), slack=0.05)
    assert len(found) == ways
    assert found.like is not None
    assert found.sentence.startswith("1 way was found" if ways == 1 else f"{ways} different ways were found")
    assert found.values == pytest.approx(np.full(ways, 2.0))
    assert all(distance > found.apart for distance in found.distances[:-1])
    assert found.distances[-1] < found.apart


def test_ways_beyond_the_limits_do_not_count():
    mdp = diamond(3, [3, 3, 9])
    assert len(mw.how_many(mdp, slack=0.1)) == 2
    assert len(mw.how_many(mdp, slack=0.7)) == 3
    assert len(mw.how_many(mdp, slack=0.7, most=2)) == 2
    assert mw.how_many(mdp, slack=0.7, most=2).sentence.startswith("At least 2 different ways")


def test_ways_of_limited_length_know_their_length():
    found = mw.how_many(diamond(3, [3, 3, 9]), longer=2.0)
    assert found.steps is not None
    assert sorted(found.steps) == pytest.approx([4, 4, 10])
    assert mw.how_many(diamond(2), slack=0.1).steps is None


def test_a_set_has_no_more_plans_than_there_are_ways():
    plans = mw.plan(diamond(3), 5, slack=0.1, fewer=True)
    assert (plans.k, plans.asked) == (3, 5)
    like = f"A search for one more only found one like plan {plans.like + 1}; allow more than 10 % for others."
    assert plans.ways == f"Three different ways were found. {like}"
    assert plans.certificate.ok
    again = mw.PlanSet.from_bytes(plans.to_bytes(), "again")
    assert again.ways == plans.ways
    assert plans.status is mw.Status.CONVERGED, "no two of the plans that are left are equal"
    assert mw.plan(diamond(3), 3, slack=0.1, fewer=True).ways is None
    assert mw.plan(diamond(3), 5, slack=0.1).k == 5


def test_k_plans_come_back_and_those_that_are_equal_say_so():
    plans = mw.plan(diamond(2), 4, slack=0.2)
    assert plans.k == 4
    assert plans.status is mw.Status.FEWER_PLANS
    assert plans.titles[2:] == ("The same as plan 1", "The same as plans 1 and 3")
    assert mw.plan(diamond(2), 4, slack=0.2, fewer=True).k == 2


def within_the_limits(plans: mw.PlanSet) -> np.ndarray:
    """The occupancies of all deterministic policies with one recurrent class that keep the limits of a set."""
    mdp, polytope = plans.mdp, mw.Polytope(plans.mdp)
    first = mdp.first_choice
    choices = product(*(range(first[s], first[s + 1]) for s in range(mdp.n_states)))
    found = [polytope.vertex_of_one_class(np.array(own)) for own in choices]
    x = np.stack([vertex.occupancy for vertex in found if vertex is not None])
    return x[x @ mdp.reward >= plans.limits.floor - 1e-10 * abs(plans.limits.floor)]


@pytest.mark.parametrize("first", range(0, 32, 16))
def test_no_default_set_has_clones(first):
    """No two plans are nearer than a fifth of the distance that a third one could have had."""
    for seed in range(first, first + 16):
        mdp = random_accessible_mdp(np.random.default_rng(seed), 4, 3)
        plans = mw.plan(mdp, 3)
        least = mw.LeastDivergence(inf).on(mdp, mw.StateActions().on(mdp))
        one, other = np.unravel_index(np.argmin(plans.distances + np.eye(3)), (3, 3))
        rest = np.delete(plans.occupancies, max(one, other), axis=0)
        away = max(
            (float(least.distances(np.stack([*rest, x]))[-1, :-1].min()) for x in within_the_limits(plans)), default=0.0
        )
        assert plans.distances[one, other] >= away / CLONE - 1e-9, seed


def test_a_plan_that_was_to_be_replaced_does_not_come_back():
    mdp, told = diamond(3), "One way was found. A search for one more only found one like"
    more = "; allow more than 10 % for others."
    plans = mw.plan(mdp, 3, slack=0.1, fewer=True)
    only = mw.plan(mdp, 2, slack=0.1, fewer=True, keep=[plans[0]], avoid=[plans[1], plans[2]])
    assert [plan.key for plan in only] == [plans[0].key]
    away = " Plans that were replaced do not come back."
    assert only.ways in (f"{told} plan 1{more}{away}", f"{told} one of the plans to be replaced{more}")
    assert replace(only, like=None).ways == f"{told} one of the plans to be replaced{more}"
    assert only.certificate.ok
    assert mw.PlanSet.from_bytes(only.to_bytes(), "again").ways == only.ways
    third = mw.plan(mdp, 2, slack=0.1, fewer=True, keep=[plans[0]], avoid=[plans[1]])
    np.testing.assert_allclose(third.occupancies[1 - third.kept[0]], plans.occupancies[2], atol=1e-9)
    assert third.ways is None
    # There is always a plan, even if all of them were to be avoided.
    assert mw.plan(mdp, 1, slack=0.1, fewer=True, avoid=plans).k == 1


def test_three_passages(tmp_path):
    mdp = mw.read(building(tmp_path))
    plans = mw.plan(mdp, 3, slack=0.15, behaviour=mw.Near(1.0))
    assert sorted(passages_of(plans)) == ["east", "middle", "west"]
    assert plans.certificate.ok
    more = mw.plan(mdp, 4, slack=0.15, behaviour=mw.Near(1.0), fewer=True)
    assert sorted(passages_of(more)) == ["east", "middle", "west"]
    assert more.ways.startswith("Three different ways were found. A search for one more only found one like plan ")


def test_ways_by_region_are_counted_though_they_share_their_rooms(tmp_path):
    """Two large rooms and two short passages: the passages take less than a tenth of the time, and are all that differs."""
    rows = ["." * 19 for _ in range(9)]
    wall = ["######.##.#########"] * 2
    text = [*rows, *wall, *rows]
    text[0] = text[0][:9] + "S" + text[0][10:]
    text[-1] = text[-1][:9] + "G" + text[-1][10:]
    (tmp_path / "hall.txt").write_text("\n".join(text))
    mdp = mw.read(tmp_path / "hall.txt")
    plans = mw.plan(mdp, 3, slack=0.4, behaviour=mw.Regions(), fewer=True)
    assert plans.distances.max() < mw.StateActions.apart
    assert plans.ways is not None
    assert plans.ways.startswith("Two different ways were found")
    assert set(plans.titles) == {"Through the west passage", "Through the east passage"}


def test_a_passage_in_which_little_time_is_spent_is_found(tmp_path):
    """Three gaps in a wall, the outer ones much longer ways. Staying in a gap earns less than going through it and spends
    more time there, so no weight of time against reward prefers to go through."""
    rows = ["......#......"] * 9
    rows[1] = rows[7] = "............."
    rows[4] = ".S.........G."
    (tmp_path / "hall.txt").write_text("\n".join(rows) + "\n")
    mdp = mw.read(tmp_path / "hall.txt")
    gaps = [[s for s in range(mdp.n_states) if mdp.layout.position(s) == (row, 6)] for row in (1, 4, 7)]
    plans = mw.plan(mdp, 3, slack=0.4, behaviour=mw.Regions(), fewer=True)
    time = np.array([[x[np.isin(mdp.choice_state, gap)].sum() for gap in gaps] for x in plans.occupancies])
    assert sorted(time.argmax(axis=1)) == [0, 1, 2]
    assert len(mw.how_many(mdp, slack=0.4, behaviour=mw.Regions())) >= 3


@pytest.mark.parametrize(
    ("apart", "most", "words"),
    [
        (0.0, 3, "the least distance of two ways must be"),
        (0.7, 3, "the least distance of two ways must be"),
        (0.1, 0, "most must be"),
    ],
)
def test_questions_that_mean_nothing(apart, most, words):
    with pytest.raises(mw.SettingError, match=words):
        mw.how_many(diamond(2), apart=apart, most=most)


def test_no_plan_of_a_set_is_far_from_all_ways():
    """Nine rooms 8: a search from plan to plan alone finds three ways and says that a fourth would be like the first."""
    mdp = mw.read("nine-rooms:8")
    ways = mw.how_many(mdp, slack=0.1, behaviour=mw.Near())
    near = mw.Near().on(mdp)
    found = [near.forward(mw.Average().occupancy(mdp, policy)) for policy in ways.policies]
    for x in mw.plan(mdp, 8, slack=0.1).occupancies:
        assert divergences_from(near.forward(x), found).min() < ways.apart


@pytest.mark.parametrize(
    ("source", "slack"),
    [("gym:FrozenLake-v1", 0.1), ("gym:FrozenLake-v1?map_name=8x8", 0.3), ("gym:CliffWalking-v1", 0.3)],
)
def test_there_are_at_least_as_many_ways_as_plan_finds(source, slack):
    """With the same settings, defaults included. The best plan of FrozenLake 8x8 randomises, to keep within its time limit."""
    mdp = mw.read(source)
    plans = mw.plan(mdp, 4, slack=slack, fewer=True)
    ways = mw.how_many(mdp, slack=slack)
    assert len(ways) >= plans.k >= 3
    assert ways.behaviour == plans.behaviour
    assert ways.values.max() <= plans.optimal_reward + 1e-9
    assert ways.values.min() >= plans.limits.floor - 1e-9
    x = np.stack([mw.Average().occupancy(mdp, policy) for policy in ways.policies])
    np.testing.assert_allclose(plans.criterion.values(mdp, x), ways.values, rtol=1e-9)
    images = [ways.behaviour.on(mdp).forward(row) for row in x]
    apart = [divergences_from(image, images[:i]).min() for i, image in enumerate(images) if i]
    assert min(apart) >= ways.apart
    np.testing.assert_allclose(apart, ways.distances[: len(apart)], atol=1e-9)


def test_a_best_plan_that_randomises_is_a_way():
    """No deterministic plan of FrozenLake 8x8 is as good as one whose episodes last exactly 100 steps on average."""
    ways = mw.how_many("gym:FrozenLake-v1?map_name=8x8", slack=0.1, behaviour=mw.Near(), most=1)
    assert len(ways) == 1
    assert ((ways.policies[0] > 0) & (ways.policies[0] < 1)).any()
