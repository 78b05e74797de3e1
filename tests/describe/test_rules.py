"""Rules: true, short, and about the states that a plan comes to. Every number is counted again state by state."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from given_plans import by_wear_and_parts, going, plan_set, workshop
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import manyways as mw
from manyways.describe import Rule, portraits, rules_of, survey_of
from manyways.describe.rules import FITS, LONGEST
from manyways.gallery import EXAMPLES, example_file
from manyways.model.occupancy import deterministic, long_run_occupancy
from manyways.report import view_of
from problems import random_accessible_mdp, random_policy


def late_repair(wear, parts):
    """Order at the last moment, repair at wear 2."""
    if wear >= 2:
        return "repair" if parts else "order"
    return "run"


def slow_and_stocked(wear, parts):
    """Keeps a part at hand, and runs slowly once the machine is worn."""
    if parts == 0:
        return "order"
    return "repair" if wear >= 3 else "run slowly" if wear >= 1 else "run"


def said(rule: Rule, mdp: mw.MDP, state: int) -> str:
    """The action that a rule names in a state, from the bounds and values of its conditions alone."""
    for case in rule.cases:
        for condition in case.conditions:
            value = mdp.variables[condition.variable][state].item()
            if value in ("",) or value != value:
                break
            if condition.values and (value in condition.values) == condition.negated:
                break
            if condition.low is not None and value < condition.low:
                break
            if condition.high is not None and value > condition.high:
                break
        else:
            return case.action
    raise AssertionError("no case holds")


def decided(mdp: mw.MDP, occupancy: np.ndarray) -> np.ndarray:
    """(N,) the time on each choice without that in states with a single action; all of it if nothing else is left."""
    names: dict[int, set[str]] = {}
    for x, state in enumerate(mdp.choice_state.tolist()):
        names.setdefault(state, set()).add(mdp.action_name(x))
    left = np.array([len(names[state]) > 1 for state in mdp.choice_state.tolist()]) * occupancy
    return left if left.sum() > 1e-12 else occupancy


def counted(rule: Rule, mdp: mw.MDP, occupancy: np.ndarray) -> float:
    """The share of its decisions in which a plan takes the action that its rule names, choice by choice."""
    right, occupancy = 0.0, decided(mdp, occupancy)
    for x, time in enumerate(occupancy.tolist()):
        if mdp.action_name(x) == said(rule, mdp, int(mdp.choice_state[x])):
            right += time
    return right / float(occupancy.sum())


def alone(mdp: mw.MDP, policy: np.ndarray, occupancy: np.ndarray) -> SimpleNamespace:
    """A single plan without a plan set around it."""
    rewards = np.array([occupancy @ mdp.reward])
    return SimpleNamespace(
        mdp=mdp,
        k=1,
        policies=policy[None],
        occupancies=occupancy[None],
        rewards=rewards,
        optimal_reward=float(rewards[0]),
        criterion=mw.Average(),
    )


@pytest.fixture(scope="module")
def shop() -> mw.MDP:
    return workshop()


@pytest.fixture(scope="module")
def plans(shop) -> mw.PlanSet:
    return plan_set(shop, [by_wear_and_parts(shop, late_repair), by_wear_and_parts(shop, slow_and_stocked)])


def test_rules_of_plans_made_by_rules(plans):
    late, slow = rules_of(plans)
    assert late.exact == slow.exact == 1.0
    assert late.text == "repairs when parts are 1, orders at wear 2 when parts are 0; otherwise runs"
    assert late.by_action == {"run": "wear 1 or less", "order": "wear 2, parts 0", "repair": "parts 1"}
    assert (
        slow.text
        == "runs at wear 0 when parts are 1, repairs at wear 3, orders when parts are 0; otherwise runs slowly"
    )
    for rule, occupancy in zip((late, slow), plans.occupancies, strict=True):
        assert counted(rule, plans.mdp, occupancy) == pytest.approx(1.0)
    assert rules_of(survey_of(plans)) == (late, slow)


def test_what_a_plan_says_where_it_never_comes_does_not_count(shop, plans):
    time = np.add.reduceat(plans.occupancies[0], shop.first_choice[:-1])
    first, last = shop.first_choice[:-1], shop.first_choice[1:] - 1
    own = [int(first[s] + np.argmax(plans.policies[0][first[s] : last[s] + 1])) for s in range(shop.n_states)]
    for elsewhere in (first, last):
        other = deterministic(shop, np.where(time > 0, own, elsewhere))
        assert rules_of(plan_set(shop, [other]))[0] == rules_of(plans)[0]


def test_a_simulation_agrees(shop):
    def often(wear, parts):
        return "repair" if parts else "order" if wear == 1 else "run"

    policy = 0.9 * by_wear_and_parts(shop, often) + 0.1 * by_wear_and_parts(shop, late_repair)
    plans = plan_set(shop, [policy])
    (rule,) = rules_of(plans)
    assert FITS < rule.exact < 1
    assert f"exact in {100 * rule.exact:.0f} % of its decisions" in rule.text
    run = plans[0].rollout(20_000, np.random.default_rng(1))
    right = [
        said(rule, shop, int(s)) == shop.action_name(int(x))
        for s, x in zip(run.states, run.choices, strict=False)
        if len(set(shop.actions[shop.choice_state == s])) > 1
    ]
    assert np.mean(right) == pytest.approx(rule.exact, abs=0.02)


def one_cut(mdp: mw.MDP, occupancy: np.ndarray) -> float:
    """The most time in which any rule with one condition on one variable is right, by trying all of them."""
    time, occupancy = {}, decided(mdp, occupancy) / decided(mdp, occupancy).sum()
    for x, share in enumerate(occupancy.tolist()):
        key = (int(mdp.choice_state[x]), mdp.action_name(x))
        time[key] = time.get(key, 0.0) + share
    actions = {action for _, action in time}

    def right(states):
        return max(sum(time.get((s, action), 0.0) for s in states) for action in actions)

    best = right(range(mdp.n_states))
    for values in mdp.variables.values():
        for value in set(values.tolist()):
            ordered = values.dtype.kind in "if"
            inside = [s for s, own in enumerate(values.tolist()) if (own >= value if ordered else own == value)]
            outside = [s for s in range(mdp.n_states) if s not in inside]
            best = max(best, right(inside) + right(outside))
    return best


@given(st.integers(0, 10**6), st.booleans())
@settings(max_examples=40)
def test_exactness_is_the_share_of_time_and_at_least_that_of_one_cut(seed, randomised):
    rng = np.random.default_rng(seed)
    mdp = random_accessible_mdp(rng, 8)
    n = mdp.n_states
    mdp = replace(
        mdp,
        variables={
            "level": rng.integers(0, 4, n),
            "heat": rng.normal(size=n),
            "hot": rng.random(n) < 0.5,
            "colour": rng.choice(["red", "green", "blue"], n),
        },
    )
    policy = random_policy(rng, mdp)
    if not randomised:
        policy = deterministic(mdp, np.array([rng.integers(a, b) for a, b in zip(mdp.first_choice[:-1], mdp.first_choice[1:], strict=True)]))  # fmt: skip
    occupancy = long_run_occupancy(mdp, policy)
    found = rules_of(alone(mdp, policy, occupancy))  # fmt: skip
    if found is None:
        return
    (rule,) = found
    assert rule.exact == pytest.approx(counted(rule, mdp, occupancy), abs=1e-9)
    assert rule.fits == (rule.exact >= FITS) == ("no short rule fits" not in rule.text)
    used = {mdp.action_name(x) for x in np.flatnonzero(decided(mdp, occupancy) > 1e-9)}
    assert used <= set(rule.by_action)
    if rule.fits:
        assert len(rule.text) <= LONGEST + 40
        assert rule.exact >= one_cut(mdp, occupancy) - 0.01


def test_no_short_rule(shop):
    rng = np.random.default_rng(0)
    plans = plan_set(shop, [random_policy(rng, shop)])
    (rule,) = rules_of(plans)
    assert not rule.fits
    assert rule.text == f"no short rule fits: the best one found is exact in {100 * rule.exact:.0f} % of its decisions"
    assert all(words.endswith("of its decisions") for words in rule.by_action.values())
    assert not any("rule" in sentence for sentence in portraits(plans)[0].sentences)


def test_sentences_have_the_rules(plans):
    for rule, portrait in zip(rules_of(plans), portraits(plans), strict=True):
        assert f"{rule.text[0].upper()}{rule.text[1:]}." in portrait.sentences


def test_models_without_rules(shop, plans):
    assert rules_of(mw.plan("four-rooms:0", 1)) is None
    for variables in ({"wear": np.zeros(shop.n_states, int)}, {"text": [f"t{s}" for s in range(shop.n_states)]}):
        found = rules_of(replace(plans, mdp=replace(shop, variables=variables)))
        assert (found is None) == ("wear" in variables)
    alone = mw.MDP.from_transitions([("a", "stay", "a", 1.0, 1.0)], variables={"x": [1]})
    assert rules_of(mw.plan(alone, 1)) is None


def test_texts_with_very_many_values_are_left_out():
    many = mw.MDP.from_csr(
        np.eye(60)[(np.arange(60) + 1) % 60],
        np.zeros(60),
        np.arange(61),
        variables={"name": [f"n{i}" for i in range(60)]},
    )
    assert rules_of(mw.plan(many, 1)) is None


def test_one_action_and_plans_that_are_the_same(shop):
    turning = mw.MDP.from_csr(
        np.eye(3)[[1, 2, 0]], np.zeros(3), np.arange(4), variables={"at": [0, 1, 2]}, action_names=["turn"]
    )
    (rule,) = rules_of(mw.plan(turning, 1))
    assert (rule.text, rule.exact, rule.by_action) == ("always turns", 1.0, {"turn": "always"})
    twice = plan_set(shop, [by_wear_and_parts(shop, late_repair)] * 2)
    one, other = rules_of(twice)
    assert one == other
    titles = [portrait.title for portrait in portraits(twice)]
    assert len(set(titles)) == 2


def test_variables_with_thousands_of_values():
    n = 4000
    level = np.random.default_rng(0).permutation(n)
    moves = np.concatenate([[(s + 1) % n, (s + 1) % n] for s in range(n)])
    matrix = sparse.csr_array((np.ones(2 * n), moves, np.arange(2 * n + 1)), shape=(2 * n, n))
    mdp = mw.MDP.from_csr(
        matrix, np.zeros(2 * n), np.arange(0, 2 * n + 1, 2), action_names=["fill", "drain"], variables={"level": level}
    )
    policy = deterministic(mdp, 2 * np.arange(n) + (level >= 2500))
    plans = alone(mdp, policy, policy / n)
    (rule,) = rules_of(plans)
    assert rule.text == "drains at level 2500 or more; otherwise fills"


def test_a_state_without_a_value_belongs_to_the_rest():
    """Two states with levels and one without: what is said of "otherwise" holds there, too."""
    rows = [(0, "fill", 1, 1.0, 0.0), (1, "drain", 2, 1.0, 0.0), (2, "fill", 0, 1.0, 0.0)]
    mdp = mw.MDP.from_transitions(rows, variables={"level": [0.0, 1.0, float("nan")]})
    (rule,) = rules_of(mw.plan(mdp, 1))
    assert rule.text == "drains at level 1; otherwise fills"
    assert rule.exact == 1.0


def test_two_actions_of_one_name():
    rows = np.eye(2)[[0, 1, 0]]
    mdp = mw.MDP.from_csr(
        rows, np.zeros(3), [0, 2, 3], actions=[0, 1, 2], action_names=["go", "go", "stop"], variables={"at": [0, 1]}
    )
    policy = np.array([0.5, 0.5, 1.0])
    plans = alone(mdp, policy, np.array([0.3, 0.3, 0.4]))
    (rule,) = rules_of(plans)
    assert rule.exact == 1.0
    assert set(rule.by_action) == {"go", "stop"}


def test_discounted_time_is_called_so(shop):
    policies = [0.95 * by_wear_and_parts(shop, late_repair) + 0.05 * by_wear_and_parts(shop, slow_and_stocked)]
    (rule,) = rules_of(plan_set(shop, policies, mw.Discounted(0.9)))
    assert rule.text.endswith("of its discounted time")


def test_plans_that_act_by_the_same_rule_in_other_states_are_not_called_really_different():
    """Two plans that repair at wear 1; one of them always keeps a part in stock that it never uses."""
    rows = []
    for parts in (0, 1):
        new, worn = f"wear0/parts{parts}", f"wear1/parts{parts}"
        rows += [(new, "run", worn, 1.0, 4.0), (worn, "run", worn, 1.0, 1.0), (worn, "repair", new, 1.0, 0.0)]
        rows += [(new, "trade", f"wear0/parts{1 - parts}", 1.0, 0.0)]
    shop = mw.MDP.from_transitions(rows, start="wear0/parts0")
    moves = [(f"wear1/parts{parts}", "repair") for parts in (0, 1)]
    none = going(shop, *moves, ("wear0/parts0", "run"), ("wear0/parts1", "trade"))
    one = going(shop, *moves, ("wear0/parts0", "trade"), ("wear0/parts1", "run"))
    plans = plan_set(shop, [none, one])
    assert plans.distances[0, 1] == pytest.approx(np.log(2))
    first, second = rules_of(plans)
    assert first.same_as(second)
    assert second.text == "repairs at wear 1, takes 'trade' when parts are 0; otherwise runs", (
        "it trades once, at first"
    )
    assert view_of(plans)["difference"] == "They act by the same rule in the long run, in different states."
    said = "Acts by the same rule as plan 1 in the long run; they differ only in the states they are in."
    assert said in portraits(plans)[1].sentences


def test_states_without_a_choice_have_no_part_in_a_rule():
    """A machine that is busy after each decision: what it does while it is busy is nobody's decision."""
    rows = [("wear0/busy0", "fast", "wear1/busy1", 1.0, 2.0), ("wear0/busy0", "slow", "wear0/busy2", 1.0, 1.0)]
    rows += [("wear1/busy0", "fast", "wear0/busy1", 1.0, 2.0), ("wear1/busy0", "slow", "wear1/busy2", 1.0, 1.0)]
    rows += [(f"wear{w}/busy{b}", "a0", f"wear{w}/busy0", 1.0, 0.0) for w in (0, 1) for b in (1, 2)]
    mdp = mw.MDP.from_transitions(rows)
    slow_when_worn = [
        {"wear0": "fast", "wear1": "slow"}.get(mdp.state_name(int(s)).partition("/")[0]) in (mdp.action_name(x), None)
        or mdp.action_name(x) == "a0"
        for x, s in enumerate(mdp.choice_state)
    ]
    plans = plan_set(mdp, [np.array(slow_when_worn, float)])
    (rule,) = rules_of(plans)
    assert rule.by_action == {"slow": "wear 1", "fast": "wear 0"}, "in the long run it is worn; at first it is not"
    assert rule.exact == 1.0
    assert "a0" not in rule.text


def test_a_rule_names_an_action_only_where_it_is_possible():
    """A machine that is served at wear 4; now and then it breaks (wear 5), and can then only be rebuilt or left."""
    rows = [(wear, "run", wear + 1, 1.0, 1.0) for wear in range(4)] + [(4, "run", 4, 1.0, 0.0)]
    rows += [(wear, "serve", to, chance, 0.0) for wear in range(1, 5) for to, chance in ((0, 0.99), (5, 0.01))]
    rows += [(5, "rebuild", 0, 1.0, -5.0), (5, "leave", 5, 1.0, -1.0)]
    mdp = mw.MDP.from_transitions(rows, start=0, variables={"wear": range(6)})
    policy = going(mdp, *((wear, "run") for wear in range(4)), (4, "serve"), (5, "rebuild"))
    (rule,) = rules_of(plan_set(mdp, [policy]))
    assert rule.text.startswith("serves at wear 4; otherwise runs where possible; exact in 99"), "not at wear 4 or more"
    assert rule.exact == pytest.approx(counted(rule, mdp, long_run_occupancy(mdp, policy)))


def earned(rule: Rule, mdp: mw.MDP, own: np.ndarray) -> float:
    """What whoever follows the cases of a rule earns per step, from the powers of the chain that waits in every second step."""
    policy = np.zeros(mdp.n_choices)
    for state in range(mdp.n_states):
        here = list(range(mdp.first_choice[state], mdp.first_choice[state + 1]))
        for case in rule.cases:
            able = [x for x in here if mdp.action_name(x) == case.action]
            if able and said(replace(rule, cases=(case, replace(case, action="", conditions=()))), mdp, state):
                policy[able] = 1 / len(able)
                break
        else:
            policy[here] = own[here]
    step = np.zeros((mdp.n_states, mdp.n_states))
    np.add.at(step, mdp.choice_state, policy[:, None] * mdp.transitions.toarray())
    step = (step + np.eye(mdp.n_states)) / 2
    for _ in range(40):
        step = step @ step
        step /= step.sum(axis=1, keepdims=True)
    return float((mdp.start @ step)[mdp.choice_state] * policy @ mdp.reward)


def test_what_a_plan_does_only_at_first_is_in_its_rule():
    """Two parts are bought at first and kept for ever: whoever does not buy them breaks down for good."""
    rows = []
    for parts in range(3):
        new, worn = f"wear0/parts{parts}", f"wear1/parts{parts}"
        rows += [(new, "run", worn, 1.0, 4.0), (new, "order", f"wear0/parts{min(parts + 1, 2)}", 1.0, -1.0)]
        rows += [(worn, "run", worn, 1.0, -20.0), (worn, "replace", "wear0/parts0", 1.0, -90.0)]
        rows += [(worn, "repair", new, 1.0, -1.0)] if parts == 2 else []
    shop = mw.MDP.from_transitions(rows, start="wear0/parts0")
    policy = going(
        shop,
        ("wear0/parts0", "order"),
        ("wear0/parts1", "order"),
        ("wear0/parts2", "run"),
        ("wear1/parts2", "repair"),
    )
    (rule,) = rules_of(plan_set(shop, [policy]))
    assert rule.full
    assert rule.by_action["order"] == "parts 1 or fewer"
    assert rule.value == pytest.approx(earned(rule, shop, policy)) == pytest.approx(1.5)


@pytest.mark.parametrize("name", ["fleet", "robot", "maintenance", "reservoir"])
def test_whoever_follows_a_rule_earns_what_the_plan_earns(name):
    example = next(example for example in EXAMPLES if example.name == name)
    plans = mw.plan(str(example_file(example.source)), **example.settings)
    for i, rule in enumerate(rules_of(plans)):
        assert rule.value == pytest.approx(earned(rule, plans.mdp, plans.policies[i]), abs=1e-6)
        loses = plans.rewards[i] - rule.value > 0.01 * abs(plans.optimal_reward)
        assert rule.full or "no full description" in rule.text or not rule.fits
        assert not (rule.full and loses)
        taken = {}
        for x, time in enumerate(decided(plans.mdp, plans.occupancies[i]).tolist()):
            taken[plans.mdp.action_name(x)] = taken.get(plans.mdp.action_name(x), 0.0) + time
        frequent = {action for action, time in taken.items() if time > 0.02 * sum(taken.values())}
        assert not rule.full or frequent <= {case.action for case in rule.cases}
