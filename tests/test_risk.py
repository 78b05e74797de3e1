"""The risk of one trip: against simulation, closed forms and exact moments."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from scipy import sparse

import manyways as mw
from luck import trips_by_luck, within
from manyways.describe.wording import COSTS, REWARDS
from manyways.model.episodes import episode_ends
from manyways.risks import Returns, unit_of
from problems import random_accessible_mdp


def test_a_card_tells_what_many_trips_do():
    """100,000 trips: chances, mean, spread and quantiles of the return, and labels that are touched."""
    plans = mw.plan(mw.room_world(9, 2, seed=1), 2, slack=0.3)
    ends = episode_ends(plans.mdp)
    for i, card in enumerate(mw.risk(plans)):
        run = trips_by_luck(plans.mdp, plans.policies[i], ends, 100_000, 5000, seed=i)
        assert card.never_ends == 0.0
        assert card.returns.blur == 0.0  # all rewards are multiples of one unit
        assert within(card.mean, run.returns)
        assert run.returns.std() == pytest.approx(card.spread, rel=0.05)
        for level in (-100.0, 0.0, 100.0, 150.0):
            assert within(card.returns.chance_below(level), run.returns < level - 1e-6)
        for label, mask in plans.mdp.labels.items():
            assert within(card.touches[label], run.met[:, mask].any(axis=1))
        assert within(card.worst.met, run.met[:, card.worst.state])
        assert card.returns.quantile(0.5) == pytest.approx(np.median(run.returns), abs=1e-6)


def test_ends_are_told_apart_where_the_model_knows_only_means():
    """FrozenLake pays 1 at the goal: the return is 0 or 1, and 1 as often as the goal is reached."""
    plans = mw.plan("gym:FrozenLake-v1", 2)
    for card in mw.risk(plans):
        assert card.returns.values.tolist() == [0.0, 1.0]
        assert card.returns.chances[1] == pytest.approx(card.reaches, abs=1e-7)
        assert card.spread == pytest.approx(sqrt(card.reaches * (1 - card.reaches)), abs=1e-9)
        assert card.touches["hole"] == pytest.approx(1 - card.reaches, abs=1e-9)


def test_a_geometric_number_of_steps():
    """A coin until heads: n steps of cost 1 with chance 2^-n."""
    coin = mw.MDP.from_transitions(
        [("toss", "go", "toss", 0.5, -1.0), ("toss", "go", "won", 0.5, -1.0), ("won", "again", "toss", 1.0, 0.0)],
        labels={"goal": ["won"]},
    )
    (card,) = mw.risk(mw.plan(coin, 1))
    assert card.mean == pytest.approx(-2.0)
    assert card.spread == pytest.approx(sqrt(2.0))
    found = dict(zip(card.returns.values.tolist(), card.returns.chances, strict=True))
    for n in range(1, 15):
        assert found[-float(n)] == pytest.approx(0.5**n, abs=1e-9)
    assert card.returns.quantile(0.5) == -1.0
    assert card.returns.chance_below(-3.0) == pytest.approx(0.125, abs=1e-9)


@settings(max_examples=20)
@given(st.integers(0, 10**6))
def test_the_distribution_has_the_exact_mean_and_spread(seed):
    """Rewards without a common unit: bins keep the mean, and widen the spread by no more than they say."""
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, kind="restart")
    mdp = mdp.restarting_at([int(rng.integers(mdp.n_states))])
    try:
        plans = mw.plan(mdp, 1, criterion=mw.Average())
    except mw.NotWeaklyAccessible:  # restarts may cut off a part of the model
        reject()
    (card,) = mw.risk(plans)
    if card.returns is None:
        return
    values, chances = card.returns.values, card.returns.chances
    scale = card.spread + abs(card.mean) + 1e-9
    assert chances.sum() == pytest.approx(1.0, abs=1e-8)
    assert values @ chances == pytest.approx(card.mean, abs=0.01 * scale)
    spread = sqrt(max(values**2 @ chances - (values @ chances) ** 2, 0.0))
    assert spread == pytest.approx(sqrt(card.spread**2 + card.returns.blur**2), abs=0.02 * scale)


def test_units():
    assert unit_of(np.array([200.0, -1.2, 0.0, -40.0])) == pytest.approx(0.4)
    assert unit_of(np.array([0.0, 3.0, -6.0])) == 3.0
    assert unit_of(np.array([np.pi, 1.0])) == 0.0
    assert unit_of(np.array([1e300])) == 0.0
    assert unit_of(np.zeros(3)) == 0.0


def test_trips_that_may_never_end():
    """A plan that prefers to stay has no return, and says how often it never ends."""
    mdp = mw.MDP.from_transitions(
        [
            ("start", "stay", "start", 1.0, 1.0),
            ("start", "try", "goal", 0.25, 0.0),
            ("start", "try", "trap", 0.75, 0.0),
            ("trap", "sit", "trap", 1.0, 0.5),
            ("goal", "rest", "goal", 1.0, 3.0),
        ],
        labels={"goal": ["goal"]},
    )
    plans = mw.plan(mdp, 2, criterion=mw.Discounted(0.9), floor=-10.0)
    by_first = {plan.policy.probabilities[1]: mw.risk(plans)[plan.index] for plan in plans}
    assert by_first[1.0].reaches == pytest.approx(0.25)
    assert by_first[1.0].never_ends == pytest.approx(0.75)
    assert by_first[1.0].returns is None
    assert np.isnan(by_first[1.0].mean)


def test_models_without_trips_are_refused():
    with pytest.raises(mw.SettingError, match="neither episodes nor a goal"):
        mw.risk(mw.plan(mw.MDP.from_transitions([("a", "go", "b", 1.0, 0.0), ("b", "go", "a", 1.0, 1.0)]), 1))


def test_the_start_is_no_worst_place():
    """Whatever comes after the start is better, and then nothing is said; a detour that is taken by bad luck is worse."""
    rows = [("home", "go", "work", 1.0, -1.0), ("work", "on", "home", 1.0, 5.0)]
    labels = {"goal": ["work"]}
    (card,) = mw.risk(mw.plan(mw.MDP.from_transitions(rows, labels=labels, start="home"), 1))
    assert card.worst is None or card.worst.name == "work"
    rows = [
        ("home", "go", "work", 0.75, -1.0),
        ("home", "go", "mud", 0.25, -1.0),
        ("mud", "wade", "work", 1.0, -7.0),
        rows[1],
    ]
    (card,) = mw.risk(mw.plan(mw.MDP.from_transitions(rows, labels=labels, start="home"), 1))
    told = card.worst.sentence(REWARDS)
    assert told == (
        "The worst place that at least 1 in 100 of its trips meet is mud (25 % of them): from there a trip still earns -2, from "
        "the start 2.25."
    )


def crossing(*ways: tuple[str, float, float], start: dict[str, float] | str = "home") -> mw.MDP:
    """From home to one of some places, each with its chance and what leaving it earns; then to work, for 20, and home again."""
    rows = [("home", "go", place, chance, 0.0) for place, chance, _ in ways]
    rows += [(place, "on", "work", 1.0, earned) for place, _, earned in ways]
    rows += [("work", "again", state, 1.0 if isinstance(start, str) else start[state], 20.0) for state in
             ([start] if isinstance(start, str) else start)]  # fmt: skip
    return mw.MDP.from_transitions(rows, labels={"goal": ["work"]}, start=start)


@pytest.mark.parametrize(
    ("ways", "worst"),
    [
        ([("road", 0.8, -1.0), ("mud", 0.2, -5.0)], "mud"),
        ([("road", 0.8, -1.0), ("mud", 0.2, -1.5)], None),  # less than a twentieth is lost there
        ([("road", 0.6, -1.0), ("mud", 0.2, -5.0), ("bog", 0.2, -5.0)], None),  # two are as bad
        ([("road", 0.6, -1.0), ("mud", 0.2, -5.0), ("bog", 0.2, -5.0001)], None),  # as shown
        ([("road", 0.795, -1.0), ("mud", 0.2, -5.0), ("bog", 0.005, -9.0)], "mud"),  # hardly any trip meets the bog
    ],
)
def test_a_worst_place_is_told_if_it_is_the_only_one_and_much_worse(ways, worst):
    (card,) = mw.risk(mw.plan(crossing(*ways), 1))
    told = "" if card.worst is None else card.worst.sentence(REWARDS)
    assert told.partition(" (")[0] == (
        "" if worst is None else f"The worst place that at least 1 in 100 of its trips meet is {worst}"
    )


def test_one_of_several_starts_is_no_worst_place():
    """Trips that start in the mud are worse off than any that comes from home: the mud is no place on the way."""
    mdp = crossing(("road", 0.8, -1.0), ("mud", 0.2, -5.0), start={"home": 0.5, "mud": 0.5})
    (card,) = mw.risk(mw.plan(mdp, 1))
    assert card.worst is None


def test_blurred_distributions_are_not_told_in_numbers():
    """Rewards without a common unit and many steps: every step widens the bins. Rewards of 1 are exact."""
    rng = np.random.default_rng(0)
    for rewards, exact in ((rng.normal(size=60), False), (np.ones(60), True)):
        rows = [(f"s{n}", "go", f"s{n + 1}", 0.9, rewards[n]) for n in range(60)]
        rows += [(f"s{n}", "go", f"s{n}", 0.1, rewards[n]) for n in range(60)]
        mdp = mw.MDP.from_transitions([*rows, ("s60", "again", "s0", 1.0, 50.0)], labels={"goal": ["s60"]}, start="s0")
        (card,) = mw.risk(mw.plan(mdp, 1))
        assert card.returns is not None
        assert (card.returns.blur == 0.0) == exact
        for share in (0.1, 0.001):
            blurred = replace(card, returns=replace(card.returns, blur=share * card.spread))
            assert (blurred.told is None) == (share > 0.02)


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ({15.0: 1.0}, None),
        ({30.0: 0.91, 33.0: 0.063, 40.0: 0.027}, ("33 or more", 0.09)),
        ({10.0: 0.94, 20.0: 0.06}, ("20", 0.06)),
    ],
)
def test_the_worst_trips_are_told_with_their_share(costs, told):
    """ "33 or more: 9 %": not 1 in 20, if 9 % of all trips cost 33 or more."""
    values = -np.array(sorted(costs, reverse=True))
    tail = Returns(values, np.array([costs[-value] for value in values]), 0.0).tail()
    assert (None if tail is None else (tail.bound(COSTS), pytest.approx(tail.share))) == told


def by_next_state() -> list[tuple]:
    """A trip of one step, which costs 1 or 3 by where it leads."""
    return [
        ("out", "go", "near", 0.5, -1.0),
        ("out", "go", "far", 0.5, -3.0),
        ("near", "on", "out", 1.0, 0.0),
        ("far", "on", "out", 1.0, 0.0),
    ]


def test_no_distribution_is_told_of_rewards_that_depend_on_where_a_step_leads(tmp_path):
    mdp = mw.MDP.from_transitions(by_next_state(), labels={"goal": ["near", "far"]})
    assert mdp.averaged
    plans = mw.plan(mdp, 1, slack=0.1)
    (card,) = mw.risk(mw.load(plans.save(tmp_path / "plans.mw")))
    assert card.mean == pytest.approx(-2.0)
    assert card.averaged
    assert card.told is None
    flat = mw.MDP.from_transitions(
        [(*row[:4], -2.0 * (row[0] == "out")) for row in by_next_state()], labels={"goal": ["near", "far"]}
    )
    assert not flat.averaged
    assert mw.risk(mw.plan(flat, 1, slack=0.1))[0].told.quantile(0.5) == -2.0
    assert not mdp.with_reward(mdp.reward).averaged
    assert mdp.minimising().averaged


def test_rewards_that_are_known_from_how_a_trip_ends_are_told():
    plans = mw.plan("gym:FrozenLake-v1", 1, slack=0.1)
    assert plans.mdp.averaged
    assert mw.risk(plans)[0].told is not None


def test_every_way_to_give_rewards_by_next_state_is_noticed(tmp_path):
    table = tmp_path / "table.csv"
    rows = "\n".join(f"{s},{a},{t},{p},{r}" for s, a, t, p, r in by_next_state())
    table.write_text(f"state,action,next,prob,reward\n{rows}\n")
    chances = np.array([[[0.5, 0.5]], [[0.5, 0.5]]])
    by_next = np.array([[[1.0, 3.0]], [[1.0, 3.0]]])
    explored = mw.explore(0, lambda _: ["go"], lambda s, _: [(0.5, 1 - s, 1.0), (0.5, s, 2.0)])
    dense = mw.MDP.from_dense(chances, by_next)
    csr = mw.MDP.from_csr(sparse.csr_array(chances[:, 0]), sparse.csr_array(by_next[:, 0]), [0, 1, 2])
    for mdp in (mw.read(str(table)), explored, dense, csr):
        assert mdp.averaged
    assert not mw.MDP.from_dense(chances, by_next.mean(axis=2)).averaged
    assert not mw.MDP.from_csr(csr.transitions, csr.reward, [0, 1, 2]).averaged
