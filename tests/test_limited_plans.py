"""Whole calls of `plan` with limits: every plan keeps them, whatever the criterion, and the certificate says so."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
import pytest

import manyways as mw
from evaluation import occupancy_of, policies_of, policy_from, random_episodes, value_of
from manyways.methods import Status
from manyways.model.episodes import episode_ends
from manyways.polytope import Floor, PolicyIteration, Polytope, RenumberedSweeps, Sweeps
from problems import all_deterministic_policies, bandit, cycle, losses, random_accessible_mdp, single, stop_world
from shared import WORLDS

ONE = mw.VertexAscent(starts=1)
SLACKS = (0.0, 0.02, 0.1, 0.5)
CRITERIA = [mw.Average(), mw.Discounted(0.9), mw.Episodic()]


def random_model(seed: int, criterion: mw.Criterion) -> mw.MDP:
    rng = np.random.default_rng(seed)
    if isinstance(criterion, mw.Episodic):
        mdp = random_episodes(rng, 4, 3)
        return mdp.with_reward(mdp.reward - max(float(mdp.reward.max()), 0.0))  # costs, so that values are bounded
    return random_accessible_mdp(rng, 4, 3)


def values_of(plans: mw.PlanSet) -> np.ndarray:
    """Recomputed from the policies alone."""
    mdp = plans.mdp
    return np.array([value_of(mdp, policy, plans.criterion, episode_ends(mdp)) for policy in plans.policies])


def checks(plans: mw.PlanSet) -> dict[str, bool]:
    return {check.name: check.ok for check in mw.verify(plans.mdp, plans).checks}


def ring(n: int = 6, steps: float = -1.0) -> mw.MDP:
    """A ring with a start and, opposite, a goal that leads back to the start: two ways of n / 2 steps."""
    rows = [(i, "left", (i - 1) % n, 1.0, steps) for i in range(n) if i != n // 2]
    rows += [(i, "right", (i + 1) % n, 1.0, steps) for i in range(n) if i != n // 2]
    rows.append((n // 2, "again", 0, 1.0, 0.0))
    return mw.MDP.from_transitions(rows, start=0, labels={"goal": [n // 2]}, name="ring")


def balance(*, goal: bool) -> mw.MDP:
    """Rounds of +1 and -1 in several ways: the best value per step is 0.01, and the rewards are of size 1."""
    rows = []
    for way in "abc":
        rows += [("home", way, way, 1.0, 1.02), (way, "back", "home", 1.0, -1.0)]
    rows += [("home", "slow", "d", 1.0, 1.02), ("d", "on", "e", 1.0, 0.0), ("e", "back", "home", 1.0, -1.3)]
    labels = {"goal": ["a", "b", "c", "e"]} if goal else {}
    return mw.MDP.from_transitions(rows, labels=labels, name="balance")


# ---- every plan keeps the limits ----------------------------------------------------------------


@pytest.mark.parametrize("randomised", [False, True], ids=["deterministic", "randomised"])
@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_every_plan_keeps_a_share_of_the_best_value(criterion, randomised):
    refused: list[str] = []
    for seed in range(12):
        mdp, slack = random_model(seed, criterion), SLACKS[seed % 4]
        tradeoff = (None, 1.0, inf)[seed % 3]
        settings = {"criterion": criterion, "method": ONE, "tradeoff": tradeoff, "randomised": randomised}
        try:
            plans = mw.plan(mdp, 3, slack=slack, **settings)
        except mw.SettingError as error:
            refused.append(str(error))
            continue
        best, found = plans.optimal_reward, values_of(plans)
        assert plans.limits.floor == best - slack * abs(best)
        assert found.min() >= plans.limits.floor - 1e-9 * (1 + abs(best))
        np.testing.assert_allclose(found, plans.rewards, rtol=1e-8, atol=1e-8)
        assert plans.certificate.ok
        assert checks(plans)["limits"]
        assert mw.verify(mdp, plans).ok
        if not randomised:
            assert np.isin(plans.policies, (0.0, 1.0)).all()
    assert len(refused) <= 4
    assert all("is tiny against the rewards" in message for message in refused)


@pytest.mark.parametrize("criterion", CRITERIA, ids=lambda c: type(c).__name__)
def test_every_plan_has_at_least_the_given_value(criterion):
    for seed in range(30, 38):
        mdp = random_model(seed, criterion)
        every = [value_of(mdp, p, criterion, episode_ends(mdp)) for p in policies_of(mdp) if _ends(mdp, p, criterion)]
        floor = float(np.quantile(every, 0.7))
        plans = mw.plan(mdp, 3, floor=floor, criterion=criterion, method=ONE, tradeoff=inf)
        assert plans.limits == mw.Limits(floor=floor)
        assert values_of(plans).min() >= floor - 1e-9 * (1 + abs(floor))
        assert plans.optimal_reward == pytest.approx(max(every), abs=1e-8 * (1 + abs(max(every))))
        assert mw.verify(mdp, plans).ok


def _ends(mdp: mw.MDP, policy: np.ndarray, criterion: mw.Criterion) -> bool:
    return not isinstance(criterion, mw.Episodic) or occupancy_of(mdp, policy) @ episode_ends(mdp) > 1e-6


@pytest.mark.parametrize("criterion", [mw.Average(), mw.Episodic()], ids=lambda c: type(c).__name__)
def test_every_plan_has_a_way_of_at_most_the_given_length(criterion):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        mdp = random_episodes(rng, 4, 3, midway=bool(seed % 2))
        mdp, ends = mdp.with_reward(mdp.reward - max(float(mdp.reward.max()), 0.0)), mdp.ends["goal"]
        at_goal = np.logical_and.reduceat(ends > 1 - 1e-9, mdp.first_choice[:-1])[mdp.choice_state]
        longer = SLACKS[seed % 4]
        plans = mw.plan(mdp, 3, longer=longer, criterion=criterion, method=ONE)
        occupancies = np.array([occupancy_of(mdp, policy) for policy in policies_of(mdp)])
        ending = occupancies[occupancies @ ends > 1e-9]
        shortest = float((ending @ ~at_goal / (ending @ ends)).min())
        assert plans.limits.way == pytest.approx((1 + longer) * shortest, rel=1e-8, abs=1e-8)
        own = np.array([occupancy_of(mdp, policy) for policy in plans.policies])
        assert (own @ ~at_goal / (own @ ends)).max() <= plans.limits.way * (1 + 1e-8) + 1e-8
        assert mw.verify(mdp, plans).ok


def test_slack_and_longer_at_once():
    """A ring with a cheap way of 3 steps and a longer, cheaper one of 4 beside it."""
    rows = [(0, "left", 1, 1.0, -1.0), (1, "on", 2, 1.0, -1.0), (2, "on", "goal", 1.0, -1.0)]
    rows += [(0, "right", 3, 1.0, -0.5), (3, "on", 4, 1.0, -0.5), (4, "on", 5, 1.0, -0.5), (5, "on", "goal", 1.0, -0.5)]
    rows += [(0, "middle", 6, 1.0, -1.1), (6, "on", 7, 1.0, -1.0), (7, "on", "goal", 1.0, -1.0)]
    rows += [("goal", "again", 0, 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, start=0, labels={"goal": ["goal"]}, name="errands")
    found = mw.plan(mdp, 3, slack=0.6, longer=0.4, criterion=mw.Episodic(), method=ONE)
    assert found.optimal_reward == pytest.approx(-2.0)
    assert found.rewards.tolist() == pytest.approx([-2.0, -3.0, -3.1])
    found = mw.plan(mdp, 2, slack=0.6, longer=0.1, criterion=mw.Episodic(), method=ONE)
    assert found.rewards.tolist() == pytest.approx([-3.0, -3.1]), "the best plan itself is too long"
    assert found.certificate.ok
    with pytest.raises(mw.SettingError, match="no plan of errands keeps all limits at once") as caught:
        mw.plan(mdp, 2, slack=0.1, longer=0.1, criterion=mw.Episodic(), method=ONE)
    assert "(length of episodes and value and way to the goal): allow more slack" in str(caught.value)


@pytest.mark.parametrize(("world", "slack"), [(WORLDS[3], 0.02), (WORLDS[14], 0.1)], ids=["four rooms", "nine rooms"])
def test_worlds(world, slack):
    plans = mw.plan(world, 3, slack=slack, tradeoff=inf, method=ONE)
    assert plans.rewards.min() >= plans.limits.floor * (1 - 1e-11)
    for policy, reward in zip(plans.policies, plans.rewards, strict=True):
        assert mw.Average().occupancy(plans.mdp, policy) @ plans.mdp.reward == pytest.approx(reward, rel=1e-9)
    assert np.isin(plans.policies, (0.0, 1.0)).all()
    assert plans.certificate.ok
    assert mw.verify(plans.mdp, plans).ok
    paper = mw.plan(world, 3, slack=slack, method=ONE)
    assert plans.diversity > paper.diversity, "with nothing but diversity there is more of it"
    assert paper.rewards.mean() > plans.rewards.mean()


def test_frank_wolfe_keeps_limits_too():
    for seed in range(10):
        mdp = random_accessible_mdp(np.random.default_rng(seed), 4, 3)
        try:
            plans = mw.plan(mdp, 3, slack=0.3, method=mw.FrankWolfe(), tradeoff=1.0)
        except mw.SettingError:
            continue
        assert values_of(plans).min() >= plans.limits.floor - 1e-9
        assert checks(plans)["limits"]


def test_plans_without_a_common_state_are_not_mixed():
    """Half of the time on the left and half of it on the right meets the floor, but no policy does that."""
    rows = [("left", "stay", "left", 1.0, 1.0), ("left", "go", "middle", 1.0, 0.0)]
    rows += [("middle", "go left", "left", 1.0, -1.0), ("middle", "go right", "right", 1.0, -1.0)]
    rows += [("right", "stay", "right", 1.0, 0.5), ("right", "go", "middle", 1.0, 0.0)]
    plans = mw.plan(mw.MDP.from_transitions(rows), 2, slack=0.25, randomised=True, tradeoff=inf)
    assert values_of(plans).min() >= 0.75 - 1e-12
    assert plans.certificate.ok


@pytest.mark.parametrize(
    "settings",
    [{"slack": 0.5, "tradeoff": inf}, {"longer": 0.5}, {"floor": -3.5, "criterion": mw.Episodic()}],
    ids=["slack", "longer", "floor per episode"],
)
def test_the_set_with_limits_is_saved_and_read(settings):
    plans = mw.plan(ring(), 2, method=ONE, **settings)
    again = mw.PlanSet.from_bytes(plans.to_bytes(), "again")
    assert again.limits == plans.limits
    assert again.criterion == plans.criterion
    assert again.tradeoff == plans.tradeoff
    assert again.guarantee == plans.guarantee
    assert mw.verify(again.mdp, again).ok


def test_a_randomised_plan_randomises_in_one_state():
    """Also not in states that are met once in 10^8 steps."""
    plans = mw.plan(WORLDS[13], 4, slack=0.02, randomised=True, method=ONE)
    state = plans.mdp.choice_state
    randomised = [np.unique(state[(policy > 0) & (policy < 1)]).size for policy in plans.policies]
    assert max(randomised) == 1
    assert plans.rewards.min() >= plans.limits.floor * (1 - 1e-9)
    assert plans.certificate.ok


# ---- the default --------------------------------------------------------------------------------


def test_by_default_within_10_percent():
    plans = mw.plan(stop_world().mdp, 2, method=ONE)
    assert plans.limits == mw.Limits(slack=0.1, floor=3.0 - 0.1 * 3.0)
    assert plans.rewards.min() >= 2.7
    assert mw.plan(stop_world().mdp, 2, 1.0, method=ONE).limits == mw.Limits(), "a tradeoff alone sets no limit"
    assert mw.plan(stop_world().mdp, 2, method=mw.ProjectedGradient()).limits == mw.Limits()


def test_near_zero_the_default_limits_the_way():
    plans = mw.plan(balance(goal=True), 3, method=ONE)
    assert plans.limits == mw.Limits(longer=0.1, way=plans.limits.way)
    assert plans.limits.way == pytest.approx(1.1)
    assert plans.certificate.ok
    assert plans.guarantee.startswith("Every plan reaches the goal in at most 1.1 steps")


@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.99)], ids=str)
def test_near_zero_and_without_a_goal_the_default_is_a_tenth_of_the_spread_of_rewards(criterion):
    """In the units of the criterion: a discounted sum falls a hundred times as much as a reward per step."""
    mdp = balance(goal=False)
    plans = mw.plan(mdp, 3, criterion=criterion, method=ONE)
    assert plans.limits.slack is plans.limits.longer is None
    x = occupancy_of(mdp, plans.policies[0], criterion.discount)
    spread = float(x @ np.abs(mdp.reward - x @ mdp.reward))
    per_step = 1 if criterion.discount == 1 else 1 / (1 - criterion.discount)
    assert plans.limits.floor == pytest.approx(plans.optimal_reward - 0.1 * spread * per_step)
    assert values_of(plans).min() >= plans.limits.floor
    assert plans.diversity > 0.1
    assert plans.certificate.ok


def test_near_zero_and_with_unknown_kinds_of_ends_the_default_is_per_episode():
    """Ends called otherwise than goal: there is no way to them, and the spread counts for all steps of an episode."""
    mdp = balance(goal=False)
    back = np.array([mdp.action_name(x) == "back" for x in range(mdp.n_choices)], float)
    mdp = replace(mdp, ends={"shop": back * 0.5, "work": back * 0.5})
    plans = mw.plan(mdp, 3, method=ONE)
    assert isinstance(plans.criterion, mw.Episodic)
    assert plans.optimal_reward == pytest.approx(0.02)
    assert plans.limits == mw.Limits(floor=plans.limits.floor)
    assert plans.limits.floor == pytest.approx(0.02 - 0.1 * 1.01 * 2)
    assert plans.certificate.ok


def test_an_optimum_of_exactly_zero():
    """Nothing is earned and nothing is paid by staying at home: only such plans are within the limits."""
    rows = [("home", "stay", "home", 1.0, 0.0), ("home", "go", "away", 1.0, -1.0), ("away", "back", "home", 1.0, -1.0)]
    plans = mw.plan(mw.MDP.from_transitions(rows), 2, method=ONE)
    assert plans.rewards.tolist() == [0.0] * plans.k
    assert plans.certificate.ok
    nothing = mw.MDP.from_transitions([(s, a, (s + a) % 3, 1.0, 0.0) for s in range(3) for a in range(2)])
    assert mw.plan(nothing, 2, method=ONE).diversity > 0.5, "where all plans earn nothing, all are allowed"


# ---- few plans, small models --------------------------------------------------------------------


def within(mdp: mw.MDP, slack: float) -> int:
    """How many different long runs deterministic policies within the floor have."""
    found = [occupancy_of(mdp, policy_from(mdp, choices)) for choices in all_deterministic_policies(mdp)]
    best = max(float(x @ mdp.reward) for x in found)
    good = [tuple(np.round(x, 9)) for x in found if x @ mdp.reward >= best - slack * abs(best) - 1e-9]
    return len(set(good))


def test_more_plans_than_there_are_within_the_floor():
    """Two of the three arms are within 20 %."""
    mdp = bandit(1.0, 0.85, 0.5).mdp
    assert within(mdp, 0.2) == 2
    plans = mw.plan(mdp, 5, slack=0.2)
    assert set(np.round(plans.rewards, 9)) == {1.0, 0.85}
    assert plans.status in (mw.Status.FEWER_PLANS, mw.Status.CONVERGED)
    assert plans.certificate.ok
    assert plans.k == 2 or plans.status is mw.Status.FEWER_PLANS


@pytest.mark.parametrize("problem", [single(), cycle(3), cycle(2), bandit(1.0, 0.25)], ids=lambda p: p.mdp.name)
@pytest.mark.parametrize("criterion", [mw.Average(), mw.Discounted(0.9)], ids=str)
def test_models_with_one_state_one_action_or_a_period(problem, criterion):
    for slack in (0.0, 0.1):
        plans = mw.plan(problem.mdp, 2, slack=slack, criterion=criterion)
        best = problem.best(criterion) * (1 if criterion.discount == 1 else 10)
        np.testing.assert_allclose(plans.rewards, best, rtol=1e-9)
        assert plans.certificate.ok
        assert mw.verify(problem.mdp, plans).ok


def test_an_optimum_that_stays_in_one_state():
    """The best plan stays in the last cell; within a third of its 3, plans may shuttle between the last two cells."""
    mdp = stop_world().mdp
    assert within(mdp, 0.1) == 1
    assert within(mdp, 0.4) == 2
    tight, loose = mw.plan(mdp, 2, slack=0.1), mw.plan(mdp, 2, slack=0.4)
    assert tight.rewards.tolist() == [3.0] * tight.k
    np.testing.assert_allclose(loose.rewards, [3.0, 2.0])
    assert tight.certificate.ok
    assert loose.certificate.ok


def test_a_ring_has_two_ways_at_no_slack_at_all():
    plans = mw.plan(ring(), 2, slack=0.0, criterion=mw.Episodic())
    np.testing.assert_allclose(plans.rewards, -3.0)
    assert plans.diversity > 0.3
    assert plans.certificate.ok


def test_one_plan_is_the_best_one():
    for criterion in CRITERIA:
        mdp = ring() if isinstance(criterion, mw.Episodic) else losses().mdp
        plans = mw.plan(mdp, 1, slack=0.2, criterion=criterion)
        assert plans.rewards[0] == pytest.approx(plans.optimal_reward)
        assert plans.certificate.ok


# ---- certificates -------------------------------------------------------------------------------


def sets() -> dict[str, mw.PlanSet]:
    rooms = mw.read("four-rooms:3")
    return {
        "slack": mw.plan(rooms, 2, slack=0.1, method=ONE),
        "per episode": mw.plan(ring(8), 2, slack=0.3, criterion=mw.Episodic(), method=ONE),
        "discounted": mw.plan(losses().mdp, 2, slack=0.7, criterion=mw.Discounted(0.9), method=ONE),
    }


@pytest.fixture(scope="module")
def planned() -> dict[str, mw.PlanSet]:
    found = sets()
    assert all(mw.verify(plans.mdp, plans).ok for plans in found.values())
    return found


@pytest.mark.parametrize("factor", [1 + 1e-6, 1 - 1e-6, -1.0, 0.5])
@pytest.mark.parametrize("name", ["slack", "per episode", "discounted"])
def test_a_changed_limit_value_or_optimum_is_caught(planned, name, factor):
    plans = planned[name]
    limits = plans.limits
    changed = {
        "limits.floor": replace(plans, limits=replace(limits, floor=limits.floor * factor)),
        "optimal_reward": replace(plans, optimal_reward=plans.optimal_reward * factor),
        "rewards": replace(plans, rewards=plans.rewards * factor),
        "one reward": replace(plans, rewards=[*plans.rewards[:-1], plans.rewards[-1] * factor]),
    }
    if factor > 0:
        changed["limits.slack"] = replace(plans, limits=replace(limits, slack=limits.slack * factor))
    if isinstance(plans.criterion, mw.Episodic) and factor > 0:
        changed["longest"] = replace(plans, criterion=mw.Episodic(plans.criterion.longest * factor))
    for what, wrong in changed.items():
        assert not mw.verify(plans.mdp, wrong).ok, what


@pytest.mark.parametrize("name", ["slack", "per episode"])
def test_a_share_without_its_floor_is_caught(planned, name):
    plans = planned[name]
    for limits in (replace(plans.limits, floor=None), replace(plans.limits, slack=0.0)):
        assert not mw.verify(plans.mdp, replace(plans, limits=limits)).ok


def worse(mdp: mw.MDP, criterion: mw.Criterion, level: float) -> tuple[np.ndarray, np.ndarray]:
    """A policy whose value is below a level, and its occupancy."""
    rng = np.random.default_rng(0)
    while True:
        policy = np.concatenate([rng.dirichlet(np.ones(n)) for n in np.diff(mdp.first_choice)])
        x = criterion.occupancy(mdp, policy)
        if criterion.values(mdp, x[None])[0] < level - 1e-3 * abs(level):
            return policy, x


@pytest.mark.parametrize("name", ["slack", "per episode", "discounted"])
def test_a_plan_below_the_floor_fails_the_check_of_limits(planned, name):
    """All numbers of the set fit the new plan: only the limit is not kept."""
    plans = planned[name]
    policy, x = worse(plans.mdp, plans.criterion, plans.limits.floor)
    policies, occupancies = np.stack([plans.policies[0], policy]), np.stack([plans.occupancies[0], x])
    rewards = plans.criterion.values(plans.mdp, occupancies)
    model = plans.criterion.planned(plans.mdp, plans.optimal_reward)
    worth = plans.maximised.on(model, plans.behaviour.on(model))
    wrong = replace(
        plans,
        policies=policies,
        occupancies=occupancies,
        rewards=rewards,
        distances=worth.distances(occupancies),
        objective=worth.value(occupancies),
        gap=inf,
        proof=None,
    )
    found = checks(wrong)
    assert not found.pop("limits")
    assert all(found.values())
    assert mw.verify(wrong.mdp, replace(wrong, kept=(1,))).ok, "a plan that was kept need not keep the limits"


def test_limits_that_mean_nothing_on_the_model_are_a_failed_check(planned):
    plans = planned["discounted"]
    for wrong in (replace(plans, criterion=mw.Episodic(5.0)), replace(plans, limits=mw.Limits(longer=0.1, way=3.0))):
        assert not checks(wrong)["limits"]


# ---- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"slack": -0.1}, "slack must be a finite number of at least 0, found -0.1"),
        ({"longer": -0.1}, "longer must be a finite number of at least 0, found -0.1"),
        ({"slack": float("nan")}, "slack must be a finite number of at least 0, found nan"),
        ({"floor": inf}, "floor must be a finite number, found inf"),
        ({"slack": 0.1, "floor": 1.0}, "give the least value of a plan in one way: either slack, .* or floor"),
        ({"floor": 3.5}, "no plan of stop world has a value of 3.5; the best one has 3 per step"),
        ({"longer": 0.1}, "stop world has no goal that leads back to the start"),
        ({"tradeoff": inf}, "a tradeoff of infinity means nothing but diversity, so plans need a limit; give slack="),
        (
            {"slack": 0.1, "method": mw.ProjectedGradient()},
            r"ProjectedGradient\(.*\) cannot keep plans within limits; use a method that can, such as VertexAscent\(\)",
        ),
        ({"criterion": mw.Episodic()}, "stop world has no episodes"),
        ({"slack": 0.1, "objective": mw.MeanDivergence(1.0), "tradeoff": 1.0}, "either a tradeoff or an objective"),
    ],
    ids=str,
)
def test_settings_that_cannot_be(settings, words):
    with pytest.raises(mw.SettingError, match=words):
        mw.plan(stop_world().mdp, 2, **settings)


def test_a_share_of_an_optimum_near_zero():
    with pytest.raises(
        mw.SettingError, match=r"the best value of balance, 0\.01 per step, is tiny against the rewards"
    ):
        mw.plan(balance(goal=True), 2, slack=0.1)


def test_episodes_without_end_and_without_bound():
    never = mw.MDP.from_transitions(
        [("a", "stay", "a", 1.0, 0.0), ("goal", "again", "a", 1.0, 0.0)], labels={"goal": ["goal"]}, name="closed"
    )
    with pytest.raises(mw.SettingError, match="no plan of closed ever ends an episode"):
        mw.plan(never, 2, criterion=mw.Episodic())
    with pytest.raises(mw.SettingError, match="the longer an episode of ring lasts, the more it earns"):
        mw.plan(ring(steps=1.0), 2, criterion=mw.Episodic())
    with pytest.raises(mw.SettingError, match=r"no plan of ring has episodes of at most 3\.5 steps on average"):
        mw.plan(ring(), 2, criterion=mw.Episodic(3.5))
    plans = mw.plan(ring(steps=1.0), 2, criterion=mw.Episodic(20.0), method=ONE)
    assert plans.optimal_reward == pytest.approx(19.0)
    assert plans.certificate.ok


def test_ways_with_a_discount():
    with pytest.raises(mw.SettingError, match="longer limits the mean number of steps to the goal, which is not known"):
        mw.plan(ring(), 2, longer=0.1, criterion=mw.Discounted(0.9))


# ---- with the oracles of large models -----------------------------------------------------------


@pytest.mark.parametrize("oracle", [PolicyIteration, Sweeps, RenumberedSweeps])
def test_floors_hold_with_every_oracle(oracle):
    """The oracles of large models are exact to a tolerance only."""
    mdp = mw.read("nine-rooms:5")
    polytope = Polytope(mdp, oracle=oracle)
    floor = Floor("value", 0.95 * polytope.optimum.value, per_reward=1.0)
    answer = polytope.within([floor], polytope.optimum).best(np.random.default_rng(0).random(mdp.n_choices))
    exact = mw.Average().occupancy(mdp, policy_from(mdp, answer.choices))
    assert exact @ mdp.reward >= floor.level * (1 - 1e-10)
    assert answer.value >= answer.bound - 0.03 * abs(answer.bound)


@pytest.mark.parametrize("seconds", [1e-4, 1e-3])
@pytest.mark.parametrize("source", ["four-rooms:3", "gym:FrozenLake-v1"])
def test_a_time_limit_shorter_than_one_solve(source, seconds):
    plans = mw.plan(source, 3, time_limit_s=seconds)
    assert plans.status is Status.TIME_LIMIT
    assert plans.certificate.ok
    assert len(plans) == 3
