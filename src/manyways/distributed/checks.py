"""What is proved about plans on several machines, in plain arithmetic, by the bounds of `polytope.sweeps`.

The checks are those that `plans.verification` makes of plans that reach too many states for exact vectors. Nothing that a
solver claims is taken on trust: flows, surpluses and bounds are computed again from the model. The vectors from which they
follow are stored with the plans, so that `manyways verify` repeats the checks on a machine that has the memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.distributed.feasible_set import SharedPolytope
from manyways.distributed.oracle import SolveState
from manyways.distributed.part import ModelPart
from manyways.distributed.search import Choices
from manyways.kernels import partition as kernels
from manyways.kernels.sweeps import survey
from manyways.plans.certificate import Check
from manyways.plans.verification import EQUAL, PLAIN_EQUAL, SHARES
from manyways.polytope import Answer
from manyways.types import Floats
from manyways.vectors import plain


def values_of(answer: Answer) -> Floats:
    """(m,) the relative values that prove the bound of an answer of the oracle, whether floors are around it or not."""
    memory: Any = answer.memory
    while not isinstance(memory, SolveState):
        memory = memory.last.memory
    return memory.h


def upper_bound(part: ModelPart, discount: float, c: Floats, h: Floats) -> float:
    """No plan has more of (n,) c than this, whatever the values h (m,) are."""
    choice = part.first[:-1]
    _, _, top, _ = survey(part.first, *part.arrays, np.array(plain(c)), discount, part.filled(h), choice)
    return float(part.team.max(float(top))) + (1 - discount) * float(part.start @ h)


def certificate_checks(polytope: SharedPolytope, x: Floats, choices: Any, best: float) -> tuple[Check, ...]:
    """The checks of k plans: (k, n) occupancies and (k, m) policies with one choice per state; `best` is the optimum claimed."""
    part, discount = polytope.part, polytope.criterion.discount
    ceiling = polytope.ceiling
    bound = upper_bound(part, discount, plain(part.reward), values_of(ceiling)) * polytope.criterion.value_of_one
    size = float(ceiling.occupancy @ np.abs(part.reward)) * polytope.criterion.value_of_one
    checks = [
        Check("policies", max(_misplaced(part, own) for own in choices), SHARES),
        Check("occupancies", max(_off(part, discount, row, own) for row, own in zip(x, choices, strict=True)), EQUAL),
        Check("optimum proved", abs(bound - best) / size if size > 0 else abs(bound - best), PLAIN_EQUAL),
    ]
    if polytope.floors:
        below = max(floor.shortfall(polytope.mdp, row) for row in x for floor in polytope.floors)
        checks.append(Check("limits", max(below, 0.0), PLAIN_EQUAL))
    return tuple(checks)


def _misplaced(part: ModelPart, own: Any) -> float:
    """The number of states in which a policy (m,) takes no choice of theirs."""
    wrong = (own < part.first[:-1]) | (own >= part.first[1:])
    return float(part.team.sum(int(wrong.sum())))


def _off(part: ModelPart, discount: float, x: Floats, own: Any) -> float:
    """How far the policy (m,), run from the start, is from having the occupancy x (n,); infinite if from the start it can end
    in several recurrent classes."""
    team, time = part.team, plain(x)
    by_state = np.add.reduceat(time, part.first[:-1])
    elsewhere = by_state - time[own]
    into = np.zeros(part.known)
    kernels.flow(part.indptr, part.indices, part.data, discount, time, into)
    part.halo.add_back(into)
    imbalance = np.abs(by_state - into[: part.own] - (1 - discount) * plain(part.start)).max()
    wrong = float(team.max(np.array([imbalance, -time.min()])).max())
    wrong = max(wrong, abs(float(team.sum(float(time.sum()))) - 1), float(team.sum(float(np.abs(elsewhere).sum()))))
    if discount == 1:
        busiest = int(np.argmax(by_state))
        _, state = team.highest(float(by_state[busiest]), part.lo + busiest)
        policy, here = Choices(part, own), part.natural + part.lo == state
        stranded = policy.reached_from(plain(part.start) > 0) & ~policy.leading_to(here)
        if team.any(bool(stranded.any())):
            return float("inf")
    return wrong


def gap_of(polytope: SharedPolytope, gradient: Floats, x: Floats, choices: Any) -> tuple[float, list[Answer]]:
    """An upper bound on how much more than x (k, n) any plans have along the gradient, and the solves that prove it."""
    part, discount, bound, answers = polytope.part, polytope.criterion.discount, 0.0, []
    for costs, row, own in zip(gradient, x, choices, strict=True):
        answer = polytope.best(costs, Answer(row, own, value=0.0, bound=np.inf))
        used = answer.multipliers if answer.multipliers is not None else np.zeros(0)
        lifted = (
            plain(costs)
            + sum(m * plain(floor.weights(polytope.mdp)) for m, floor in zip(used, polytope.floors, strict=True))
            if len(used)
            else plain(costs)
        )
        level = sum(m * floor.level for m, floor in zip(used, polytope.floors, strict=True)) if len(used) else 0.0
        bound += upper_bound(part, discount, lifted, values_of(answer)) - level - float(costs @ row)
        answers.append(answer)
    return bound, answers
