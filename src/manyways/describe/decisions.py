"""Where plans decide differently, state by state, and the two variables over which a model without a map is best drawn."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from manyways.describe.conditions import missing
from manyways.describe.features import LEVELS_UP_TO
from manyways.describe.subject import NEVER, Plans
from manyways.describe.survey import FACTORISED, Survey
from manyways.errors import check_integer
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.objectives.divergence import pairwise_divergences
from manyways.types import Bools, Floats, Ints

OTHERWISE = 0.05
"""Two plans decide differently in a state if the chances of some action differ by more than this."""

PAIRED_AT_MOST = 12
"""Pairs are made of so many variables, those that alone separate the plans best."""


@dataclass(frozen=True)
class Taken:
    """What a plan does in a state.

    Attributes:
        actions: the actions that it takes, each with its chance, the likeliest first.
        share: the share of the plan's time in the state.
    """

    actions: tuple[tuple[str, float], ...]
    share: float

    @property
    def action(self) -> str:
        """The likeliest action."""
        return self.actions[0][0]


@dataclass(frozen=True)
class Decision:
    """A state in which plans decide differently.

    Attributes:
        state: its number.
        name: its name.
        taken: what each plan does there; None for a plan that never comes there.
        best: what the best plan does there; None if it never comes there, or is not known.
    """

    state: int
    name: str
    taken: tuple[Taken | None, ...]
    best: Taken | None


@dataclass(frozen=True)
class Decisions:
    """The states in which at least two plans that come there decide differently.

    Attributes:
        rows: the states, those with the most time of all plans together first.
        left_out: how many further states there are.
    """

    rows: tuple[Decision, ...]
    left_out: int


def decisions_of(plans: Plans | Survey, most: int = 40) -> Decisions:
    """The states in which plans decide differently, at most as many as `most`. The best plan is that of the plan set's proof."""
    check_integer("most", most, 1)
    by_state, plans = _surveyed(plans)
    mdp = plans.mdp
    comes = by_state > NEVER
    differ = _differ(mdp, plans.policies, comes)
    found = np.flatnonzero(differ)
    order = found[np.argsort(-by_state[:, found].sum(axis=0), kind="stable")]
    best = _best(plans)
    rows = []
    for state in order[:most].tolist():
        taken = tuple(
            _taken(mdp, plans.policies[plan], state, float(by_state[plan, state])) if comes[plan, state] else None
            for plan in range(plans.k)
        )
        reference = None
        if best is not None and best[1][state] > NEVER:
            reference = _taken(mdp, best[0], state, float(best[1][state]))
        rows.append(Decision(state, mdp.state_name(state), taken, reference))
    return Decisions(tuple(rows), len(order) - len(rows))


def _surveyed(plans: Plans | Survey) -> tuple[Floats, Plans]:
    """(k, S) the time of each plan in each state, and the plans."""
    if isinstance(plans, Survey):
        return plans.by_state, plans.plans
    return state_occupancy(plans.mdp, plans.occupancies), plans


def _differ(mdp: MDP, policies: Floats, comes: Bools) -> Bools:
    """(S,) where the chances of some action differ among the plans that (k, S) come there."""
    low, high = np.full(mdp.n_choices, np.inf), np.full(mdp.n_choices, -np.inf)
    for policy, here in zip(policies, comes, strict=True):  # one plan at a time, since (k, N) copies may be large
        present = here[mdp.choice_state]
        low = np.where(present, np.minimum(low, policy), low)
        high = np.where(present, np.maximum(high, policy), high)
    return np.maximum.reduceat(high - low, mdp.first_choice[:-1]) > OTHERWISE


def _taken(mdp: MDP, policy: Floats, state: int, share: float) -> Taken:
    here = range(int(mdp.first_choice[state]), int(mdp.first_choice[state + 1]))
    chances: dict[str, float] = {}
    for choice in here:
        name = mdp.action_name(choice)
        chances[name] = chances.get(name, 0.0) + float(policy[choice])
    named = [(name, chance) for name, chance in chances.items() if chance > NEVER]
    return Taken(tuple(sorted(named, key=lambda entry: -entry[1])), share)


def _best(plans: Plans) -> tuple[Floats, Floats] | None:
    """(N,) the best policy and (S,) its time in each state; None if the set does not hold it, or if that is too much work."""
    proof = getattr(plans, "proof", None)
    policy = getattr(proof, "best", None)
    if policy is None or len(policy) != plans.mdp.n_choices:
        return None
    occupancy = getattr(proof, "best_x", None)
    if occupancy is None and plans.mdp.n_states <= FACTORISED:
        occupancy = plans.criterion.occupancy(plans.mdp, policy)
    return None if occupancy is None else (policy, state_occupancy(plans.mdp, occupancy[None])[0])


# ---- two variables for a picture ----------------------------------------------------------------


def two_variables(plans: Plans | Survey) -> tuple[str, str] | None:
    """The names of the two variables over which the plans look most different, in the order of the model; None without two
    such variables.

    Both have at least 2 and at most 40 values in the states that the plans come to. The plans are compared by the time that
    they spend on each action at each pair of values: the mean divergence of two plans counts and, where it is equal, how
    well the pair of values says which action is taken.
    """
    by_state, plans = _surveyed(plans)
    mdp = plans.mdp
    if mdp.layout is not None:
        return None
    comes = np.asarray((by_state > NEVER).any(axis=0))
    codes = {name: code for name, values in mdp.variables.items() if (code := _codes(values, comes)) is not None}
    if len(codes) < 2:
        return None
    alone = {name: _separation(plans, code) for name, code in codes.items()}
    kept = sorted(codes, key=lambda name: alone[name], reverse=True)[:PAIRED_AT_MOST]
    pairs = combinations([name for name in codes if name in kept], 2)
    width = LEVELS_UP_TO + 1
    return max(pairs, key=lambda pair: _separation(plans, codes[pair[0]] * width + codes[pair[1]]))


def _codes(values: np.ndarray, comes: Bools) -> Ints | None:
    """(S,) the number of each state's value among those in the states marked; None if there are too few or too many. States
    without a value have a number of their own."""
    different = np.unique(values[comes & ~missing(values)])
    if not 2 <= len(different) <= LEVELS_UP_TO:
        return None
    place = np.searchsorted(different, values)
    fits = different[np.minimum(place, len(different) - 1)] == values
    return np.where(fits, place, LEVELS_UP_TO)


def _separation(plans: Plans, code: Ints) -> tuple[float, float]:
    """The mean divergence of two plans by (S,) codes and actions, and minus the uncertainty about the action at a code."""
    mdp = plans.mdp
    group = code[mdp.choice_state] * len(mdp.action_names) + mdp.actions
    different, place = np.unique(group, return_inverse=True)
    time = np.stack([np.bincount(place, x, len(different)) for x in plans.occupancies]).astype(np.float64)
    apart = pairwise_divergences(time)
    pairs = plans.k * (plans.k - 1)
    whole = np.unique(different // len(mdp.action_names), return_inverse=True)[1]
    there = np.stack([np.bincount(whole, row)[whole] for row in time])
    share = np.divide(time, there, out=np.ones_like(time), where=there > NEVER)
    unsure = -float((time * np.log(np.maximum(share, 1e-300))).sum()) / plans.k
    return (round(float(apart.sum()) / pairs, 9) if pairs else 0.0, -round(unsure, 9))
