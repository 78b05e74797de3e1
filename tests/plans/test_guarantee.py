"""What a set promises, in words; and that the statements about floors on which it rests are true, in exact arithmetic."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

import manyways as mw
from manyways.errors import SolverError
from manyways.plans.checker import ExactModel, prove_plan, spare
from manyways.plans.proofs import prove
from manyways.polytope import Floor, Polytope
from problems import losses, stop_world
from rational import KINDS, ExactMdp, dot, hard_model

ONE = mw.VertexAscent(starts=1)


def ways(costs: bool = False) -> mw.MDP:
    """Ways of 2, 2, 3 and 10 steps to a goal that pays 12."""
    rows = [("start", "left", "l", 1.0, 0.0), ("start", "right", "r", 1.0, 0.0), ("start", "round", "a", 1.0, 0.0)]
    rows += [("start", "far", "f1", 1.0, 0.0), ("l", "on", "goal", 1.0, 0.0), ("r", "on", "goal", 1.0, 0.0)]
    rows += [("a", "on", "b", 1.0, 0.0), ("b", "on", "goal", 1.0, 0.0), ("goal", "again", "start", 1.0, 12.0)]
    rows += [(f"f{i}", "on", f"f{i + 1}" if i < 9 else "goal", 1.0, 0.0) for i in range(1, 10)]
    mdp = mw.MDP.from_transitions(rows, labels={"goal": ["goal"]}, name="ways")
    if costs:
        mdp = mdp.with_reward(np.where(mdp.reward > 0, 0.0, 1.0)).minimising()
    return mdp


# ---- words --------------------------------------------------------------------------------------


def test_a_share_of_the_best_value():
    plans = mw.plan(ways(), 2, slack=0.3, method=ONE)
    assert plans.limits.floor == pytest.approx(0.7 * 4)
    assert plans.guarantee == "Every plan earns at least 2.8 per step, within 30 % of the best possible."
    assert plans.kept_below == ()


def test_a_floor_has_no_share():
    assert mw.plan(ways(), 2, floor=3.0, method=ONE).guarantee == (
        "Every plan earns at least 3 per step; the best possible is 4."
    )


def test_a_longest_way():
    plans = mw.plan(ways(), 2, longer=0.5, method=ONE)
    assert plans.guarantee == (
        "Every plan reaches the goal in at most 3 steps on average, at most 50 % more than the shortest way."
    )


def test_both_limits():
    plans = mw.plan(ways(), 2, slack=0.5, longer=0.5, method=ONE)
    assert plans.guarantee == (
        "Every plan earns at least 2 per step, within 50 % of the best possible. "
        "Every plan reaches the goal in at most 3 steps on average, at most 50 % more than the shortest way."
    )


def test_values_per_episode_and_sums():
    per_episode = mw.plan(ways(), 2, slack=0.1, criterion=mw.Episodic(), method=ONE)
    assert per_episode.guarantee == "Every plan earns at least 10.8 per episode, within 10 % of the best possible."
    discounted = mw.plan(losses().mdp, 2, slack=0.5, criterion=mw.Discounted(0.9), method=ONE)
    assert discounted.guarantee.endswith("in all, within 50 % of the best possible.")
    assert discounted.guarantee.startswith(f"Every plan earns at least {discounted.limits.floor:.1f}")


def test_the_length_of_episodes_is_named_where_the_best_plan_needs_it():
    """The best way takes three steps, the way back to the start included."""
    mdp = mw.MDP.from_transitions(
        [
            ("start", "near", "goal", 1.0, 1.0),
            ("start", "far", "far", 1.0, 0.0),
            ("far", "on", "goal", 1.0, 5.0),
            ("goal", "again", "start", 1.0, 0.0),
        ],
        labels={"goal": ["goal"]},
    )
    for longest, told in ((3.0, True), (30.0, False)):
        plans = mw.plan(mdp, 1, slack=0.1, criterion=mw.Episodic(longest), method=ONE)
        assert plans.optimal_reward == pytest.approx(5.0)
        capped = " among plans whose episodes last at most 3 steps on average" if told else ""
        assert plans.guarantee == (f"It earns at least 4.5 per episode, within 10 % of the best possible{capped}.")


def test_costs_are_at_most():
    plans = mw.plan(ways(costs=True), 2, slack=0.5, criterion=mw.Episodic(), method=ONE)
    assert plans.guarantee == "Every plan costs at most 3 per episode, within 50 % of the best possible."
    assert plans.rewards.min() >= -3.0 - 1e-9


def test_no_limit_no_guarantee():
    assert mw.plan(ways(), 2, 8.0, method=ONE).guarantee is None


def test_kept_plans_below_the_limits():
    """The far way earns 12 / 11 of at most 4 per step."""
    mdp = ways()
    everywhere = np.ones(mdp.n_choices)
    everywhere[:4] = [0.0, 0.0, 0.0, 1.0]
    assert [mdp.action_name(x) for x in range(4)] == ["left", "right", "round", "far"]
    plans = mw.plan(mdp, 3, slack=0.3, keep=everywhere[None], method=ONE)
    assert plans.kept == plans.kept_below == (2,)
    assert plans.rewards[2] == pytest.approx(12 / 11)
    assert (plans.rewards[:2] >= 2.8 - 1e-12).all()
    assert plans.guarantee == (
        "Every new plan earns at least 2.8 per step, within 30 % of the best possible. "
        "Plan 3, kept from an earlier set, is worse than that."
    )
    assert plans.certificate.ok
    assert mw.verify(mdp, plans).ok
    again = mw.PlanSet.from_bytes(plans.to_bytes(), "again")
    assert again.guarantee == plans.guarantee


def test_several_kept_plans_below_the_limits():
    mdp = ways()
    two = np.ones((2, mdp.n_choices))
    two[0, :4], two[1, :4] = [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]
    plans = mw.plan(mdp, 3, slack=0.05, keep=two, method=ONE)
    assert plans.kept_below == (1, 2)
    assert plans.guarantee.endswith("Plans 2 and 3, kept from an earlier set, are worse than that.")


def test_kept_plans_within_the_limits_are_plans_like_others():
    mdp = ways()
    right = np.ones(mdp.n_choices)
    right[:4] = [0.0, 1.0, 0.0, 0.0]
    plans = mw.plan(mdp, 2, slack=0.05, keep=right[None], method=ONE)
    assert len(plans.kept) == 1
    assert plans.kept_below == ()
    assert plans.guarantee.startswith("Every plan earns")


# ---- statements about floors, in exact arithmetic -----------------------------------------------


def random_floor(rng: np.random.Generator, mdp: mw.MDP, x: np.ndarray) -> Floor:
    """A floor near an (N,) occupancy: on the reward, on other weights, or on both."""
    kind, size = int(rng.integers(3)), float(np.abs(mdp.reward) @ x) or 1.0
    extra = None if kind == 0 else rng.normal(size=mdp.n_choices) * size * 10.0 ** rng.uniform(-3, 3)
    floor = Floor("random", 0.0, per_reward=0.0 if kind == 1 else float(rng.uniform(0.1, 2)), extra=extra)
    held = float(floor.weights(mdp) @ x)
    near = (0.0, 1e-15, -1e-9, -0.1)[rng.integers(4)]
    return Floor("random", held + near * (abs(held) + size), floor.per_reward, floor.extra)


def exact_spare(exact: ExactMdp, floor: Floor, x: list[Fraction]) -> Fraction:
    extra = np.zeros(len(x)) if floor.extra is None else floor.extra
    others = dot([Fraction(float(w)) for w in extra], x)
    return Fraction(floor.per_reward) * dot(exact.reward, x) + others - Fraction(floor.level)


def best_within(c: list[Fraction], floors: list[list[Fraction]], points: list[list[Fraction]]) -> Fraction | None:
    """The largest <c, x> of some points, and of mixtures of two of them that just meet a floor, that meet all floors.

    floors[i][j] is what point j has above floor i.
    """
    worth = [dot(c, x) for x in points]
    found = [worth[j] for j in range(len(points)) if all(own[j] >= 0 for own in floors)]
    for (i, j), own in product(combinations(range(len(points)), 2), floors):
        if own[i] * own[j] < 0:
            share = own[i] / (own[i] - own[j])
            if all((1 - share) * other[i] + share * other[j] >= 0 for other in floors):
                found.append((1 - share) * worth[i] + share * worth[j])
    return max(found, default=None)


def floor_statements(seed: int, kind: str, *, spoil: bool) -> Counter[str]:
    rng = np.random.default_rng(seed)
    mdp, discount = hard_model(rng, kind), (1.0, 0.9, 1 - 1e-6)[rng.integers(3)]
    exact, model = ExactMdp.of(mdp, discount), ExactModel(mdp, discount)
    counts: Counter[str] = Counter()
    policies = []
    for _ in range(5):
        choices = [int(rng.integers(a, b)) for a, b in zip(mdp.first_choice[:-1], mdp.first_choice[1:], strict=True)]
        policies.append(np.isin(np.arange(mdp.n_choices), choices).astype(float))
    points = [exact.occupancy(policy) for policy in policies]
    rough = np.array([[float(p) for p in x] for x in points])
    floors = [random_floor(rng, mdp, rough[i]) for i in range(int(rng.integers(1, 3)))]
    above = [[exact_spare(exact, floor, x) for x in points] for floor in floors]
    for policy, x, j in zip(policies, rough, range(5), strict=True):
        proof = prove(model, policy, x)
        plan = None if proof is None else prove_plan(model, policy, proof)
        if plan is None:
            counts["silent"] += 1
            continue
        for floor, own in zip(floors, above, strict=True):
            low, high = spare(model, plan, floor)
            counts[f"spare {Fraction(low) <= own[j] <= Fraction(high)}"] += 1
    c = rng.normal(size=mdp.n_choices) * float(np.abs(mdp.reward).max() if rng.random() < 0.5 else 1.0)
    criterion = mw.Average() if discount == 1 else mw.Discounted(discount)
    multipliers, h = rng.exponential(size=len(floors)), rng.normal(size=mdp.n_states)
    inside = [j for j in range(5) if all(floor.shortfall(mdp, rough[j]) <= 0 for floor in floors)]
    if inside and not spoil:
        try:
            polytope = Polytope(mdp, criterion)
            answer = polytope.within(floors, polytope.vertex_of(np.flatnonzero(policies[inside[0]]))).best(c)
            multipliers, h = answer.multipliers, answer.dual
        except SolverError:
            pass
    best = best_within([Fraction(float(v)) for v in c], above, points)
    bound = model.upper_bound(c / model.unit, h[None] / model.unit, floors, multipliers) * model.unit
    if best is None:
        return counts
    counts[f"bound {bound == np.inf or Fraction(bound) >= best}"] += 1
    counts["tight"] += bound < np.inf and float(Fraction(bound) - best) <= 1e-9 * float(np.abs(c).max())
    return counts


@pytest.mark.parametrize("kind", KINDS)
def test_statements_about_floors_are_never_false(kind):
    """For good vectors, and for multipliers and relative values that are just random."""
    counts: Counter[str] = Counter()
    for seed in range(25):
        counts.update(floor_statements(seed, kind, spoil=False))
        counts.update(floor_statements(1000 + seed, kind, spoil=True))
    print(f"\n{kind}: {dict(counts)}")
    assert counts["spare False"] == counts["bound False"] == 0
    assert counts["spare True"] >= 100
    assert counts["bound True"] >= 15
    assert counts["tight"] >= 5, "the comparison is not with bounds so loose that they could not fail"


def test_multipliers_that_are_no_multipliers_prove_nothing():
    mdp = stop_world().mdp
    model, floor = ExactModel(mdp), Floor("value", 1.0, per_reward=1.0)
    for bad in (-1e-300, -1.0, np.nan, np.inf, 1e200):
        assert model.upper_bound(mdp.reward, np.zeros((1, 3)), [floor], [bad]) == np.inf
    assert model.upper_bound(mdp.reward, np.zeros((1, 3)), [floor], [0.0]) == pytest.approx(3.0)


BROKEN = {
    "lower ends too high": ("down", lambda v: v + 1e-12 * np.abs(v)),
    "upper ends too low": ("up", lambda v: v - 1e-12 * np.abs(v)),
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_a_broken_checker_is_noticed(broken, monkeypatch):
    """The comparison can fail."""
    monkeypatch.setattr(f"manyways.plans.checker.{broken[0]}", broken[1])
    for seed in range(100):
        counts = floor_statements(seed, KINDS[seed % 3], spoil=False)
        if counts["spare False"] or counts["bound False"]:
            return
    pytest.fail("nothing false was found")
