"""The sets of plans that the preference study compares.

Sets that `plan` finds: the paper's two at its tradeoff without limits, and within the slack five forms of diversity at the
default tradeoff, the first of them with `Near` as well, diversity alone, and the representative set.

Baselines, all within the slack as well. Each may solve as many linear problems as the representative set, about
`SOLVES` x k; what it does with them:

- `random preferences`: best plans for k random smooth rewards, added to the known one. More solves are of no use to it.
- `spread preferences`: best plans for `SOLVES` x k such rewards; k of them are picked one by one, each as far as possible
  from those before.
- `random plans`: best plans for white noise over choices instead of the reward: random corners of the plans within the slack.
- `farthest first`: the best plan, then one by one the plan that is found to be farthest from those before.
- `k-best`: the best policy, and the best of those that differ from it in a single state that it visits. The loss of each
  change is estimated to first order; of the `SOLVES` x k least losses, the true values are computed.
- `novelty search` (Lehman and Stanley, 2011): an archive of plans grows by mutation of the reward weights of the most novel
  ones. Novelty is the mean divergence from the three nearest plans of the archive.
- `MAP-Elites` (Mouret and Clune, 2015): an archive of 8 x 8 cells by two descriptors, time in two random halves of the model,
  over the range of the first plans. A cell keeps the plan of highest reward; mutants of random elites try to replace it.

Both evolve the weights of 32 random smooth rewards (standard normal at first, mutated by normal noise of size 0.5). From
their archives k plans are picked one by one, farthest first, beginning with the best plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any, cast

import numpy as np

from manyways.behaviours import Near, StateActions
from manyways.methods import FrankWolfe
from manyways.methods.farthest import farthest_plan
from manyways.model.occupancy import state_occupancy
from manyways.objectives import (
    DeterminantDivergence,
    JointDivergence,
    LeastDivergence,
    MeanDivergence,
    Representative,
    SpreadDivergence,
)
from manyways.objectives.divergence import divergences_from, pairwise_divergences
from manyways.planning import plan_or_interrupt
from manyways.plans import PlanSet
from manyways.polytope import Average, Vertex
from manyways.studies.persons import FAMILIES, SMOOTH, World
from manyways.types import Floats, Ints

SOLVES = 12
"""Linear solves per plan. Measured for the representative set in three models, k = 2 to 8: 11 to 14."""
PAPER_TRADEOFF = 8.0
PAPER_RATIO = 1.36
"""The paper's tradeoff as a multiple of the best reward per step in its nine-room worlds; for models with other rewards."""
PAPER_REWARDS = ("four-rooms:", "nine-rooms:", "field:", "network:")
STRENGTH = 0.4
"""Of the random preferences of the baselines, in units: the middle one of the persons'."""
BASIS, MUTATION, NEAREST, CELLS = 32, 0.5, 3, 8

Planned = Callable[[World, int, int], PlanSet]
"""(world, k, seed) -> k plans that `plan` finds."""
Contestant = Callable[[World, int, int], Floats]
"""(world, k, seed) -> (k, N) occupancies."""


def _paper_tradeoff(world: World) -> float:
    if world.source.startswith(PAPER_REWARDS):
        return PAPER_TRADEOFF
    return PAPER_RATIO * abs(world.free.optimum.value)


def within_slack(**settings: Any) -> Planned:
    """The plans that `plan` finds within the slack of the world."""

    def find(world: World, k: int, seed: int) -> PlanSet:
        return plan_or_interrupt(world.mdp, k, seed=seed, criterion=Average(), slack=world.slack, **settings)

    return find


def _at_papers_tradeoff(**settings: Any) -> Planned:
    def find(world: World, k: int, seed: int) -> PlanSet:
        return plan_or_interrupt(world.mdp, k, _paper_tradeoff(world), seed=seed, criterion=Average(), **settings)

    return find


def _occupancies(planned: Planned) -> Contestant:
    return lambda world, k, seed: planned(world, k, seed).occupancies


def _random_preferences(world: World, k: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    return np.stack([_best_for(world, _random_smooth(world, rng)) for _ in range(k)])


def _spread_preferences(world: World, k: int, seed: int) -> Floats:
    return _farthest_first(world, list(_random_preferences(world, SOLVES * k, seed)), k)


def random_plans(world: World, k: int, seed: int) -> Floats:
    rng, plans = np.random.default_rng(seed), world.within
    return np.stack([plans.best(rng.standard_normal(plans.size), plans.optimum).occupancy for _ in range(k)])


def _one_by_one(world: World, k: int, seed: int) -> Floats:
    least = LeastDivergence(inf).on(world.within.mdp, StateActions().on(world.mdp))
    found: list[Vertex] = [world.within.optimum]
    while len(found) < k:
        found.append(farthest_plan(world.within, least, found, seed))
    return np.stack([plan.occupancy for plan in found])


def _k_best(world: World, k: int, seed: int) -> Floats:
    del seed  # nothing is random
    mdp, best = world.mdp, world.free.optimum
    own, values = cast(Ints, best.choices), cast(Floats, best.dual)  # oracles of all plans have both
    time = state_occupancy(mdp, best.occupancy)[mdp.choice_state]
    ahead = mdp.reward + mdp.transitions @ values
    loss = time * (ahead[own][mdp.choice_state] - ahead)
    loss[own] = np.inf
    loss[time < 1e-9] = np.inf
    changed = []
    for choice in np.argsort(loss, kind="stable")[: SOLVES * k]:
        if np.isfinite(loss[choice]):
            choices = own.copy()
            choices[mdp.choice_state[choice]] = choice
            vertex = world.free.vertex_of_one_class(choices)
            if vertex is not None and world.within.meets_floors(vertex.occupancy):
                changed.append(vertex.occupancy)
    changed.sort(key=lambda x: -float(x @ mdp.reward))
    return _filled([best.occupancy, *changed], k)


def _novelty_search(world: World, k: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    basis = np.stack([_random_smooth(world, rng) for _ in range(BASIS)])
    total = SOLVES * k
    weights, plans, apart = np.empty((total, BASIS)), [], np.full((total, total), np.inf)
    for number in range(total):
        if number < 2 * k:
            weights[number] = rng.standard_normal(BASIS) / np.sqrt(BASIS)
        else:
            novelty = np.sort(apart[:number, :number], axis=1)[:, :NEAREST].mean(axis=1)
            parent = rng.choice(np.argsort(-novelty, kind="stable")[:k])
            weights[number] = weights[parent] + MUTATION * rng.standard_normal(BASIS) / np.sqrt(BASIS)
        x = _best_for(world, weights[number] @ basis)
        apart[number, :number] = apart[:number, number] = divergences_from(x, plans)
        plans.append(x)
    return _farthest_first(world, plans, k)


def _map_elites(world: World, k: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    basis = np.stack([_random_smooth(world, rng) for _ in range(BASIS)])
    halves = np.stack([_random_smooth(world, rng) > 0 for _ in range(2)])
    first = [(own, _best_for(world, own @ basis)) for own in rng.standard_normal((2 * k, BASIS)) / np.sqrt(BASIS)]
    seen = np.stack([halves @ x for _, x in first])
    low, width = seen.min(axis=0), np.maximum(np.ptp(seen, axis=0), 1e-9)
    archive: dict[tuple[int, int], tuple[Floats, Floats]] = {}

    def enter(own: Floats, x: Floats) -> None:
        row, column = np.clip((halves @ x - low) / width * CELLS, 0, CELLS - 1).astype(int).tolist()
        if (row, column) not in archive or archive[row, column][1] @ world.mdp.reward < x @ world.mdp.reward:
            archive[row, column] = (own, x)

    for own, x in first:
        enter(own, x)
    for _ in range((SOLVES - 2) * k):
        parent = list(archive.values())[rng.integers(len(archive))][0]
        own = parent + MUTATION * rng.standard_normal(BASIS) / np.sqrt(BASIS)
        enter(own, _best_for(world, own @ basis))
    return _farthest_first(world, [x for _, x in archive.values()], k)


def _random_smooth(world: World, rng: np.random.Generator) -> Floats:
    """(N,) a smooth preference of unit size, at a random scale."""
    w = FAMILIES[SMOOTH[rng.integers(len(SMOOTH))]](world.mdp, rng)
    return np.zeros(world.mdp.n_choices) if w is None else w


def _best_for(world: World, preference: Floats) -> Floats:
    """(N,) the best plan within the slack for the known reward plus a preference of unit size."""
    reward = world.mdp.reward + STRENGTH * world.unit * preference
    return world.within.best(reward, world.within.optimum).occupancy


def _farthest_first(world: World, plans: Sequence[Floats], k: int) -> Floats:
    """(k, N): the best plan and, one by one, the plan whose least divergence from those before is largest."""
    candidates = np.stack([world.within.optimum.occupancy, *plans])
    apart = pairwise_divergences(candidates)
    picked = [0]
    while len(picked) < k:
        picked.append(int(apart[picked].min(axis=0).argmax()))
    return candidates[picked]


def _filled(plans: Sequence[Floats], k: int) -> Floats:
    """(k, N): the first k plans; where there are fewer, the last one again."""
    return np.stack([*plans[:k], *[plans[-1]] * max(k - len(plans), 0)])


REPRESENTATIVE, FRANK_WOLFE, VERTEX_ASCENT = (
    "representative",
    "Frank-Wolfe, paper's tradeoff",
    "vertex ascent, paper's tradeoff",
)
MEAN, LEAST, NEAR, RANDOM_PLANS = "mean divergence", "least divergence", "near", "random plans"
UNLIMITED = (FRANK_WOLFE, VERTEX_ASCENT)
"""The sets whose plans need not be within the slack."""
PLANNED: dict[str, Planned] = {
    REPRESENTATIVE: within_slack(objective=Representative()),
    FRANK_WOLFE: _at_papers_tradeoff(method=FrankWolfe()),
    VERTEX_ASCENT: _at_papers_tradeoff(),
    MEAN: within_slack(objective=MeanDivergence()),
    LEAST: within_slack(objective=LeastDivergence()),
    "joint divergence": within_slack(objective=JointDivergence()),
    "determinant divergence": within_slack(objective=DeterminantDivergence()),
    "spread divergence": within_slack(objective=SpreadDivergence()),
    NEAR: within_slack(objective=MeanDivergence(), behaviour=Near()),
    "diversity alone": within_slack(tradeoff=inf),
}
"""By name: the sets that `plan` finds."""
CONTESTANTS: dict[str, Contestant] = {name: _occupancies(planned) for name, planned in PLANNED.items()} | {
    "random preferences": _random_preferences,
    "spread preferences": _spread_preferences,
    RANDOM_PLANS: random_plans,
    "farthest first": _one_by_one,
    "k-best": _k_best,
    "novelty search": _novelty_search,
    "MAP-Elites": _map_elites,
}
"""By name: every set of the study. The first is the one that the rules are about."""
