"""Rules: what a plan does in which states, in one sentence over the variables of the states.

"Repairs at wear 3 or more, orders at wear 2 when parts are 0; otherwise runs; exact in 97 % of its time." A rule is a small
decision tree, fitted to the time that the plan spends on each action in each state. States that the plan can not reach from
the start have no part in it, since what a policy says there is arbitrary, and neither have states with only one action, in
which there is nothing to decide. States that it passes only at first have a small part.

A rule is for following, so it is evaluated as a policy. If it does not earn what the plan earns, a longer one is tried; if none
does, the text says that it is no full description.

For models with a map, where the plan goes says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from manyways.describe.action_words import does
from manyways.describe.conditions import all_hold, briefly, when
from manyways.describe.simpler_conditions import Way, merged, where_taken, without_idle
from manyways.describe.subject import NEVER, STATES_UP_TO, Plans, words_for
from manyways.describe.trees import (
    ACTIONS_AT_MOST,
    DEPTH,
    Column,
    Leaf,
    columns_of,
    conditions_of,
    fitted,
)
from manyways.describe.wording import joined, percent
from manyways.errors import SolverError
from manyways.model.graph import reachable
from manyways.model.mdp import MDP
from manyways.model.occupancy import chain
from manyways.types import Bools, Floats, Ints

FITS = 0.8
"""A rule that is exact in less of the plan's time than this is not said."""

NEARLY_ALWAYS = 0.95

PER_LEAF = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 1.0)
"""The share of time that each further leaf must be worth: the first with which the rule is short enough. With the last one, a
rule names a single action."""

LONGEST = 160
"""A rule has at most this many characters, without how exact it is."""

LONGEST_FULL = 300
"""A longer rule is taken if whoever follows a shorter one loses too much of what the plan earns."""

FINER = tuple((depth, per_leaf) for depth in (DEPTH, DEPTH + 1) for per_leaf in (0.01, 0.005, 0.002, 0.0005))
"""The depths of these longer rules and what each further leaf must be worth."""

KEEPS = 0.01
"""Whoever follows a rule loses at most this share of the best value, or the rule is called no full description."""

NOTICED = 0.02
"""An action that takes a larger share of the plan's time than this is named."""

PASSED = 0.05
"""What states that the plan only passes at first weigh in the fit, against 1 for the long run."""

STEPS_AT_FIRST = 500
EVALUATED = 20_000
"""In larger models it is not computed what a rule that is not exact earns."""


@dataclass(frozen=True)
class Case:
    """One part of a rule: the plan takes the action where all conditions hold; without conditions, in all other states."""

    action: str
    conditions: Way

    @property
    def said(self) -> str:
        """ "repairs at wear 3 or more"."""
        return f"{does(self.action)} {when(self.conditions)}".strip()


@dataclass(frozen=True)
class Rule:
    """What a plan does, in one sentence.

    Attributes:
        text: the sentence, without a capital and a full stop; it says so if no short rule fits.
        exact: the share of the plan's time in which it does what the cases say; only time in states with several actions
            counts, unless the plan is never in one. For a plan that randomises, this is the chance that the action it takes
            is the one named, averaged over this time.
        by_action: for each action that the plan decides for, where it does, in a few words: "wear 3 or more", "always"; or the
            share of this time, if the rule does not name the action.
        cases: the parts of the rule. The first that holds in a state counts; the last one has no conditions.
        ways: the same with conditions for every action.
        value: what whoever follows the rule from the start earns, under the criterion of the plans: the first case that holds and
            whose action is possible, and what the plan does where there is none. None if that was not computed.
        full: whether the rule can stand for the plan: it names every frequent action, and whoever follows it earns what the plan
            earns.
        lasting: the cases of the rule that would be said if states which the plan only passes at first did not count.
    """

    text: str
    exact: float
    by_action: Mapping[str, str]
    cases: tuple[Case, ...] = field(default=(), repr=False)
    ways: tuple[Case, ...] = field(default=(), repr=False)
    value: float | None = None
    full: bool = True
    lasting: tuple[Case, ...] = field(default=(), repr=False)

    def same_as(self, other: Rule) -> bool:
        """Whether two plans nearly always act by the same rule in the long run; then they differ only in the states that they are
        in and in what they do at first."""
        return (
            self.lasting == other.lasting and self.full and other.full and min(self.exact, other.exact) >= NEARLY_ALWAYS
        )

    @property
    def fits(self) -> bool:
        """Whether the rule is exact often enough to be said."""
        return self.exact >= FITS


def rules_for(plans: Plans, by_state: Floats) -> tuple[Rule, ...] | None:
    """A rule for each plan, given (k, S) the time in each state; None for models with a map, for large ones, and for models
    whose states have no variables that differ."""
    mdp = plans.mdp
    if mdp.layout is not None or mdp.n_states > STATES_UP_TO or not mdp.variables:
        return None
    if not columns_of(mdp.variables, np.flatnonzero((by_state > NEVER).any(axis=0))):
        return None
    several = deciding_states(mdp)
    rules = []
    for plan, time in enumerate(by_state):
        comes = time > NEVER
        reached, passed = _reached(plans, plan, comes)
        rule = lasting = _Plan(plans, plan, comes, several, reached, passed)
        if (reached & ~comes).any():
            lasting = _Plan(plans, plan, comes, several, comes, np.zeros_like(passed))
        rules.append(replace(rule.rule(), lasting=lasting.short.cases))
    return tuple(rules)


def deciding_states(mdp: MDP) -> Bools:
    """(S,) the states with at least two actions of different names."""
    named, first = actions_by_name(mdp), mdp.first_choice[:-1]
    return np.minimum.reduceat(named, first) < np.maximum.reduceat(named, first)


def actions_by_name(mdp: MDP) -> Ints:
    """(N,) the action of each choice by the first number that its name has; two actions may have one name."""
    first: dict[str, int] = {}
    numbers = [first.setdefault(name, number) for number, name in enumerate(mdp.action_names)]
    return np.array(numbers)[mdp.actions]


def named_actions(cases: Sequence[Case], mdp: MDP) -> Ints:
    """(S,) the action that the first case that holds names in each state, by its number; -1 where none holds."""
    found = np.full(mdp.n_states, -1, np.int64)
    for case in cases:
        here = all_hold(case.conditions, mdp.variables, mdp.n_states) & (found < 0)
        found[here] = mdp.action_names.index(case.action)
    return found


def policy_by(cases: Sequence[Case], mdp: MDP, own: Floats) -> Floats:
    """(N,) the policy of whoever follows a rule: the first case that holds in a state and whose action is possible there; where
    there is none, the plan's (N,) own policy."""
    taken = np.full(mdp.n_states, -1, np.int64)
    for case in cases:
        here = all_hold(case.conditions, mdp.variables, mdp.n_states) & _possible(mdp, case.action) & (taken < 0)
        taken[here] = mdp.action_names.index(case.action)
    named = (actions_by_name(mdp) == taken[mdp.choice_state]).astype(np.float64)
    first = mdp.first_choice[:-1]
    weight = np.where((np.add.reduceat(named * own, first) > NEVER)[mdp.choice_state], named * own, named)
    weight = np.where((taken >= 0)[mdp.choice_state], weight, own)
    return weight / np.add.reduceat(weight, first)[mdp.choice_state]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A rule that was tried for a plan: its cases, the same with conditions for every action, and the sentence."""

    ways: dict[str, list[Way]]
    cases: tuple[Case, ...]
    text: str


class _Plan:
    """What a plan does in the states that it can reach, and the rules that are tried for it."""

    def __init__(self, plans: Plans, plan: int, comes: Bools, several: Bools, reached: Bools, passed: Floats) -> None:
        """(S,) `comes` says where the plan is in the long run, `several` where there are several actions; see `_reached`."""
        mdp = plans.mdp
        self.plans, self.mdp, self.plan, self.policy = plans, mdp, plan, plans.policies[plan]
        decides = comes & several
        self.states = np.flatnonzero(reached & several if decides.any() else reached)
        self.word = "time" if not (comes & ~several).any() or not decides.any() else "decisions"
        self.occupancy = (
            plans.occupancies[plan] * several[mdp.choice_state] if decides.any() else plans.occupancies[plan]
        )
        self.whole = max(float(self.occupancy.sum()), 1e-300)
        self.named = actions_by_name(mdp)
        shares = np.bincount(self.named, self.occupancy, len(mdp.action_names)) / self.whole
        weight = self.occupancy / self.whole + passed[mdp.choice_state] * self.policy
        inside = np.isin(mdp.choice_state, self.states)
        total = np.bincount(self.named[inside], weight[inside], len(mdp.action_names))
        used = np.argsort(-total, kind="stable")[:ACTIONS_AT_MOST]
        used = used[total[used] > NEVER]
        self.shares = {mdp.action_names[action]: float(shares[action]) for action in used}
        self.time = _time_on(mdp, weight, self.states, used)
        self.columns = columns_of(mdp.variables, self.states)
        self.values: dict[tuple[Case, ...], float | None] = {}

    def rule(self) -> Rule:
        """The finest rule that is short; if whoever follows it does not earn what the plan earns, a longer one that does; without
        that, the short one, which then says that it is no full description."""
        short = self.short
        for depth, per_leaf in () if self._is_full(short.cases) else FINER:
            found = self._fitted(per_leaf, depth)
            if len(found.text) <= LONGEST_FULL and self._is_full(found.cases):
                return self._said(found)
        return self._said(short)

    @cached_property
    def short(self) -> _Fitted:
        """The finest rule that is short."""
        found = self._fitted(PER_LEAF[0], DEPTH)
        for per_leaf in PER_LEAF[1:]:
            if len(found.text) <= LONGEST:
                break
            found = self._fitted(per_leaf, DEPTH)
        return found

    def _fitted(self, per_leaf: float, depth: int) -> _Fitted:
        ways = _ways(
            self.mdp, self.states, fitted(self.columns, self.time, per_leaf, depth), self.columns, [*self.shares]
        )
        cases = _cases(ways, self.shares)
        return _Fitted(ways, cases, _sentence(cases))

    def _unnamed(self, cases: Sequence[Case]) -> list[str]:
        """The actions that it takes noticeably often and no case names."""
        said = {case.action for case in cases}
        return [action for action, share in self.shares.items() if share > NOTICED and action not in said]

    def _is_exact(self, cases: Sequence[Case]) -> bool:
        """Whether it does in every state that it can reach what the first case that holds says."""
        right = self.named == named_actions(cases, self.mdp)[self.mdp.choice_state]
        chance = np.add.reduceat(self.policy * right, self.mdp.first_choice[:-1])
        return bool((chance[self.states] >= 1 - 1e-9).all())

    def _is_full(self, cases: tuple[Case, ...]) -> bool:
        """Whether the rule can be followed: it names every frequent action and earns what the plan earns."""
        if self._unnamed(cases):
            return False
        value = self._value(cases)
        return value is not None and value >= float(self.plans.rewards[self.plan]) - KEEPS * _size(self.plans)

    def _value(self, cases: tuple[Case, ...]) -> float | None:
        """What whoever follows the rule from the start earns; None if that is not known."""
        if cases not in self.values:
            self.values[cases] = self._computed_value(cases)
        return self.values[cases]

    def _computed_value(self, cases: tuple[Case, ...]) -> float | None:
        if self._is_exact(cases):
            return float(self.plans.rewards[self.plan])
        if self.mdp.n_states > EVALUATED:
            return None
        try:
            occupancy = self.plans.criterion.occupancy(self.mdp, policy_by(cases, self.mdp, self.policy))
        except SolverError:
            return None
        return float(self.plans.criterion.values(self.mdp, occupancy[None])[0])

    def _said(self, found: _Fitted) -> Rule:
        """The rule in words."""
        mdp, cases = self.mdp, found.cases
        right = self.named == named_actions(cases, mdp)[mdp.choice_state]
        exact = min(max(float(self.occupancy[right].sum()) / self.whole, 0.0), 1.0)
        its_time, full = f"of its {words_for(self.plans, self.word)}", self._is_full(cases)
        by_action = {
            action: f"in {percent(share)} {its_time}" if share > NEVER else "only at first"
            for action, share in self.shares.items()
        }
        every = tuple(Case(action, way) for action, leaves in found.ways.items() for way in leaves)
        if exact < FITS:
            text = f"no short rule fits: the best one found is exact in {percent(exact)} {its_time}"
            return Rule(text, exact, by_action, cases, every, self._value(cases), full)
        by_action |= {action: "; ".join(map(briefly, leaves)) for action, leaves in found.ways.items()}
        how_exact = f"exact in {percent(exact)} {its_time}" if exact < 1 - 1e-9 else "exact in the long run"
        if full:
            possible = "" if _rest_is_possible(cases, mdp, self.states) else " where possible"
            text = f"{found.text}{possible}{'' if self._is_exact(cases) else f'; {how_exact}'}"
        else:
            left = [f"{does(action)} in {percent(self.shares[action])} of them" for action in self._unnamed(cases)]
            without = f", and it {joined(left)}, for which no short rule was found" if left else ""
            text = f"{_sentence(cases, 'elsewhere mostly')}; no full description: {how_exact}{without}"
        return Rule(text, exact, by_action, cases, every, self._value(cases), full)


def _size(plans: Plans) -> float:
    """The size of the best value, in which a loss is measured; where that is practically 0, the size of what plans earn and pay."""
    gross = plans.criterion.value_of_one * float((plans.occupancies @ np.abs(plans.mdp.reward)).max())
    return abs(plans.optimal_reward) if abs(plans.optimal_reward) > 1e-9 * gross else gross


def _reached(plans: Plans, plan: int, comes: Bools) -> tuple[Bools, Floats]:
    """(S,) the states that a plan can reach from the start, and (S,) the weight of those that it only passes at first: in
    proportion to its visits there, `PASSED` in all. (S,) `comes` says where it is in the long run."""
    step = chain(plans.mdp, plans.policies[plan])
    reached = comes | reachable(step, plans.mdp.start > 0)
    only_passed = reached & ~comes
    visits, here = np.zeros(len(comes)), plans.mdp.start * only_passed
    for _ in range(STEPS_AT_FIRST):
        if here.sum() <= NEVER:
            break
        visits += here
        here = (here @ step) * only_passed
    return reached, PASSED * visits / max(float(visits.sum()), 1e-300)


def _rest_is_possible(cases: Sequence[Case], mdp: MDP, states: Ints) -> bool:
    """Whether the action of the last case can be taken in all of the (n,) states that no other case is about."""
    last = cases[-1].action
    left = named_actions(cases, mdp)[states] == mdp.action_names.index(last)
    return bool(_possible(mdp, last)[states[left]].all())


def _time_on(mdp: MDP, occupancy: Floats, states: Ints, actions: Ints) -> Floats:
    """(n, a) the time in each of n states on each of a actions."""
    row, column = np.full(mdp.n_states, -1), np.full(len(mdp.action_names), -1)
    row[states], column[actions] = np.arange(len(states)), np.arange(len(actions))
    at = row[mdp.choice_state], column[actions_by_name(mdp)]
    kept = (at[0] >= 0) & (at[1] >= 0)
    flat = at[0][kept] * len(actions) + at[1][kept]
    time = np.bincount(flat, occupancy[kept], len(states) * len(actions)).astype(np.float64)
    return time.reshape(len(states), len(actions))


def _ways(
    mdp: MDP, states: Ints, leaves: Sequence[Leaf], columns: Sequence[Column], names: Sequence[str]
) -> dict[str, list[Way]]:
    """By action, the conditions under which a tree names it, made as simple as the plan's (n,) states allow."""
    variables = {column.name: mdp.variables[column.name][states] for column in columns}
    found: dict[str, list[Way]] = {}
    for leaf in leaves:
        found.setdefault(names[leaf.answer], []).append(conditions_of(leaf, columns))
    count = len(states)
    ways = {
        action: [without_idle(way, variables, count) for way in merged(leaves, variables, count)]
        for action, leaves in found.items()
    }
    can = {action: _possible(mdp, action)[states] for action in ways}
    return {action: [where_taken(way, variables, can[action]) for way in found] for action, found in ways.items()}


def _possible(mdp: MDP, action: str) -> Bools:
    """(S,) the states in which there is a choice with the name of an action."""
    found = np.zeros(mdp.n_states, bool)
    found[mdp.choice_state[actions_by_name(mdp) == mdp.action_names.index(action)]] = True
    return found


def _cases(ways: Mapping[str, list[Way]], shares: Mapping[str, float]) -> tuple[Case, ...]:
    """The cases of a rule, the most frequent action first. The most frequent action is left for the rest, if the sentence is
    then not much longer than with another one."""

    def cases(rest: str) -> tuple[Case, ...]:
        named = sorted((action for action in ways if action != rest), key=lambda action: -round(shares[action], 9))
        return (*(Case(action, way) for action in named for way in ways[action]), Case(rest, ()))

    length = {action: len(_sentence(cases(action))) for action in ways}
    fitting = [action for action in ways if length[action] <= 1.2 * min(length.values())]
    return cases(max(fitting, key=lambda action: shares[action]))


def _sentence(cases: Sequence[Case], elsewhere: str = "otherwise") -> str:
    *named, rest = cases
    if not named:
        return f"always {does(rest.action)}"
    said: dict[str, list[str]] = {}
    for case in named:
        said.setdefault(case.action, []).append(when(case.conditions))
    parts = [f"{does(action)} {' or '.join(ways)}" for action, ways in said.items()]
    return f"{', '.join(parts)}; {elsewhere} {does(rest.action)}"
