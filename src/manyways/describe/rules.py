"""Rules: what a plan does in which states, in one sentence over the variables of the states.

"Repairs at wear 3 or more, orders at wear 2 when parts are 0; otherwise runs; exact in 97 % of its time." A rule is a small
decision tree, fitted to the time that the plan spends on each action in each state. States that the plan never comes to have
no part in it, since what a policy says there is arbitrary, and neither have states with only one action, in which there is
nothing to decide. For models with a map, where the plan goes says more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from manyways.describe.action_words import does
from manyways.describe.conditions import Condition, all_hold, briefly, hull, when
from manyways.describe.subject import NEVER, STATES_UP_TO, Plans, words_for
from manyways.describe.trees import ACTIONS_AT_MOST, Column, columns_of, conditions_of, fitted
from manyways.describe.wording import percent
from manyways.model.mdp import MDP
from manyways.model.variables import Values
from manyways.types import Bools, Floats, Ints

FITS = 0.8
"""A rule that is exact in less of the plan's time than this is not said."""

NEARLY_ALWAYS = 0.95

PER_LEAF = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 1.0)
"""The share of time that each further leaf must be worth: the first with which the rule is short enough. With the last one, a
rule names a single action."""

LONGEST = 160
"""A rule has at most this many characters, without how exact it is."""

Way = tuple[Condition, ...]
"""Conditions that all hold; a rule may name several such ways for one action."""


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
    """

    text: str
    exact: float
    by_action: Mapping[str, str]
    cases: tuple[Case, ...] = field(default=(), repr=False)
    ways: tuple[Case, ...] = field(default=(), repr=False)

    def same_as(self, other: Rule) -> bool:
        """Whether two plans nearly always act by the same rule; then they differ only in the states that they are in."""
        return self.cases == other.cases and min(self.exact, other.exact) >= NEARLY_ALWAYS

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
    return tuple(_rule(plans, plan, by_state[plan] > NEVER, several) for plan in range(plans.k))


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


def _rule(plans: Plans, plan: int, comes: Bools, several: Bools) -> Rule:
    """The rule of a plan that (S,) comes to some states, of which (S,) some have several actions."""
    mdp, decides = plans.mdp, comes & several
    always = not (comes & ~several).any() or not decides.any()
    states = np.flatnonzero(comes if always else decides)
    occupancy = plans.occupancies[plan] if always else plans.occupancies[plan] * several[mdp.choice_state]
    whole = max(float(occupancy.sum()), 1e-300)
    shares = np.bincount(actions_by_name(mdp), occupancy, len(mdp.action_names)) / whole
    used = np.argsort(-shares, kind="stable")[:ACTIONS_AT_MOST]
    used = used[shares[used] > NEVER]
    names = [mdp.action_names[action] for action in used]
    time, columns = _time_on(mdp, occupancy, states, used), columns_of(mdp.variables, states)
    ways, cases = {}, ()
    for per_leaf in PER_LEAF:
        ways = _ways(mdp, states, columns, time, names, per_leaf)
        cases = _cases(ways, dict(zip(names, shares[used].tolist(), strict=True)))
        if len(_sentence(cases)) <= LONGEST:
            break
    right = actions_by_name(mdp) == named_actions(cases, mdp)[mdp.choice_state]
    exact = min(max(float(occupancy[right].sum()) / whole, 0.0), 1.0)
    its_time = f"of its {words_for(plans, 'time' if always else 'decisions')}"
    by_action = {
        name: f"in {percent(float(shares[action]))} {its_time}" for name, action in zip(names, used, strict=True)
    }
    every = tuple(Case(action, way) for action, leaves in ways.items() for way in leaves)
    if exact < FITS:
        text = f"no short rule fits: the best one found is exact in {percent(exact)} {its_time}"
        return Rule(text, exact, by_action, cases, every)
    by_action |= {action: "; ".join(map(briefly, leaves)) for action, leaves in ways.items()}
    said = "" if exact >= 1 - 1e-9 else f"; exact in {percent(exact)} {its_time}"
    text = f"{_sentence(cases)}{'' if _rest_is_possible(cases, mdp, states) else ' where possible'}{said}"
    return Rule(text, exact, by_action, cases, every)


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
    mdp: MDP, states: Ints, columns: Sequence[Column], time: Floats, names: Sequence[str], per_leaf: float
) -> dict[str, list[Way]]:
    """By action, the conditions under which the tree names it, made as simple as the plan's (n,) states allow."""
    variables = {column.name: mdp.variables[column.name][states] for column in columns}
    found: dict[str, list[Way]] = {}
    for leaf in fitted(columns, time, per_leaf):
        found.setdefault(names[leaf.answer], []).append(conditions_of(leaf, columns))
    count = len(states)
    ways = {
        action: [_without_idle(way, variables, count) for way in _merged(leaves, variables, count)]
        for action, leaves in found.items()
    }
    can = {action: _possible(mdp, action)[states] for action in ways}
    return {action: [_where_possible(way, variables, can[action]) for way in found] for action, found in ways.items()}


def _possible(mdp: MDP, action: str) -> Bools:
    """(S,) the states in which there is a choice with the name of an action."""
    found = np.zeros(mdp.n_states, bool)
    found[mdp.choice_state[actions_by_name(mdp) == mdp.action_names.index(action)]] = True
    return found


def _where_possible(way: Way, variables: Mapping[str, Values], possible: Bools) -> Way:
    """The conditions with narrower bounds, where beyond these the action is not (n,) possible: "at wear 4 to 6" instead of "at wear 4
    or more", so that nobody who follows the rule comes to a state in which it names what cannot be done."""
    held = all_hold(way, variables, len(possible))
    within, beyond = held & possible, held & ~possible
    if not within.any() or not beyond.any():
        return way
    found = []
    for condition in way:
        values = variables[condition.variable]
        if condition.is_number:
            least, most = values[within].min(), values[within].max()
            low = least.item() if (values[beyond] < least).any() else condition.low
            high = most.item() if (values[beyond] > most).any() else condition.high
            condition = replace(condition, low=low, high=high)  # noqa: PLW2901
        found.append(condition)
    return tuple(found)


def _merged(ways: list[Way], variables: Mapping[str, Values], count: int) -> list[Way]:
    """The ways, with two of them made one where that changes nothing."""
    for i, one in enumerate(ways):
        for other in ways[i + 1 :]:
            both, either = hull(one, other), all_hold(one, variables, count) | all_hold(other, variables, count)
            if both and (all_hold(both, variables, count) == either).all():
                rest = [way for way in ways if way is not one and way is not other]
                return _merged([*rest, both], variables, count)
    return ways


def _without_idle(way: Way, variables: Mapping[str, Values], count: int) -> Way:
    """The conditions without those that exclude none of the plan's states."""
    kept, wanted = list(way), all_hold(way, variables, count)
    for condition in reversed(way):
        rest = [other for other in kept if other is not condition]
        if (all_hold(rest, variables, count) == wanted).all():
            kept = rest
    return tuple(kept)


def _cases(ways: Mapping[str, list[Way]], shares: Mapping[str, float]) -> tuple[Case, ...]:
    """The cases of a rule, the most frequent action first. The most frequent action is left for the rest, if the sentence is
    then not much longer than with another one."""

    def cases(rest: str) -> tuple[Case, ...]:
        named = sorted((action for action in ways if action != rest), key=lambda action: -round(shares[action], 9))
        return (*(Case(action, way) for action in named for way in ways[action]), Case(rest, ()))

    length = {action: len(_sentence(cases(action))) for action in ways}
    fitting = [action for action in ways if length[action] <= 1.2 * min(length.values())]
    return cases(max(fitting, key=lambda action: shares[action]))


def _sentence(cases: Sequence[Case]) -> str:
    *named, rest = cases
    if not named:
        return f"always {does(rest.action)}"
    said: dict[str, list[str]] = {}
    for case in named:
        said.setdefault(case.action, []).append(when(case.conditions))
    parts = [f"{does(action)} {' or '.join(ways)}" for action, ways in said.items()]
    return f"{', '.join(parts)}; otherwise {does(rest.action)}"
