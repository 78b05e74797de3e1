"""Simulated persons: preferences that nobody wrote down, and what each person could gain by them.

A person has the true reward r + w: the known reward of the model, and a preference w of their own. Preferences are made
here without any code of `manyways.preferences`, so that the study does not test a prior on its own draws.

    family           the preference                                                      in the default prior
    smooth-4/12/40   white noise over states, averaged by 4, 12 or 40 steps of a walk    similar
    zones            one to three rectangles of the map are disliked                     similar
    labels           each label has a worth                                              similar
    actions          each action has a worth                                             yes
    spots            one state in twenty is loved or hated                               no
    trend            the worth grows in one direction of the map                         no
    walls            states close to walls are liked or disliked                         no

*Strength.* w has a standard deviation over states (for zones, spots, labels and actions: about) of `strength` units. The
unit of a model is half of the mean distance of the rewards along the best plan from their mean. In the room worlds that is
about the reward per step of the best plan.

*Possible gain.* Against the best plan for r, a person gains at most max <r + w, x> - <r + w, x_best>: over all plans, or
over the plans within the slack. The latter is the value of the best deterministic plan that the oracle finds, and that is
not always the best one; hence a share of it can be slightly above one.

All values are per step (the criterion is `Average`), so a plan's worth for a person is linear in its occupancy.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import ndimage, sparse

from manyways.model.mdp import MDP
from manyways.objectives import MeanDivergence
from manyways.polytope import Average, Polytope
from manyways.studies.study_worlds import study_world
from manyways.tasks import asked_limits, settled_task
from manyways.types import Floats

SLACK = 0.1
STRENGTHS = (0.1, 0.4, 1.0)
WALK_STEPS = (4, 12, 40)
SPOTS = 20
"""One state in so many is a spot."""
SPOT_SIZE = 4.0


@dataclass(frozen=True, eq=False)
class World:
    """A model with what all contestants and persons share.

    Attributes:
        source: its name.
        mdp: the model.
        free: all plans.
        within: the plans within the slack.
        slack: how much of the best value every plan may give up.
    """

    source: str
    mdp: MDP
    free: Polytope
    within: Polytope
    slack: float

    @cached_property
    def unit(self) -> float:
        """A typical reward per step."""
        x = self.free.optimum.occupancy
        return float(x @ np.abs(self.mdp.reward - x @ self.mdp.reward)) / 2


def world_of(source: str, slack: float = SLACK) -> World:
    """The world of a source. Made anew for each trial: oracles remember earlier solves, and rows must not depend on them."""
    return world_on(source, study_world(source), slack)


def world_on(source: str, mdp: MDP, slack: float = SLACK) -> World:
    """The world of a model."""
    task = settled_task(Polytope(mdp, Average()), MeanDivergence(), asked_limits(slack, None, None, False))
    return World(source, mdp, Polytope(mdp, Average()), task.polytope, slack)


@dataclass(frozen=True, eq=False)
class Persons:
    """M persons of one world.

    Attributes:
        world: where they are.
        families: (M,) names of families.
        strengths: (M,) strengths of preferences, in units.
        rewards: (M, N) the true rewards r + w.
    """

    world: World
    families: list[str]
    strengths: list[float]
    rewards: Floats

    def worths(self, x: Floats) -> Floats:
        """(k, N) -> (M, k): what each plan is worth to each person."""
        return self.rewards @ x.T

    def base(self) -> Floats:
        """(M,) what the best plan for the known reward is worth."""
        return self.rewards @ self.world.free.optimum.occupancy

    def best(self, polytope: Polytope) -> Floats:
        """(M,) what the best of all plans in the polytope is worth."""
        return np.array([polytope.best(reward, polytope.optimum).value for reward in self.rewards])


def persons_of(world: World, per_cell: int, among: Sequence[str]) -> Persons:
    """So many persons for each strength and each of some families, where the model has what the family is about.

    Who they are does not depend on how many there are, nor on the other families.
    """
    families, strengths, rewards = [], [], []
    for name in among:
        for strength in STRENGTHS:
            for number in range(per_cell):
                identity = f"{world.source}|{name}|{strength:g}|{number}"
                w = FAMILIES[name](world.mdp, np.random.default_rng(zlib.crc32(identity.encode())))
                if w is not None:
                    families.append(name)
                    strengths.append(strength)
                    rewards.append(world.mdp.reward + strength * world.unit * w)
    return Persons(world, families, strengths, np.stack(rewards))


def _standard(by_state: Floats) -> Floats | None:
    """With mean 0 and standard deviation 1; None if all states are alike."""
    spread = float(by_state.std())
    return (by_state - by_state.mean()) / spread if spread > 1e-9 else None


def _per_choice(mdp: MDP, by_state: Floats | None) -> Floats | None:
    return None if by_state is None else by_state[mdp.choice_state]


def _smooth(steps: int) -> Callable[[MDP, np.random.Generator], Floats | None]:
    def make(mdp: MDP, rng: np.random.Generator) -> Floats | None:
        walk = _walk(mdp)
        worth = rng.standard_normal(mdp.n_states)
        for _ in range(steps):
            worth = walk @ worth
        return _per_choice(mdp, _standard(worth))

    return make


def _walk(mdp: MDP) -> sparse.csr_array:
    """(S, S): in each step stay, or move to one of the states to and from which moves lead, all equally likely."""
    owner = sparse.csr_array((np.ones(mdp.n_choices), (mdp.choice_state, np.arange(mdp.n_choices))))
    leads = sparse.csr_array((owner @ (mdp.transitions != 0)) != 0, dtype=np.float64)
    if mdp.layout is not None:  # walls are not passed
        free = sparse.diags_array((~mdp.layout.blocked.ravel()[mdp.layout.cells]).astype(np.float64))
        leads = free @ leads @ free
    both = sparse.csr_array(leads.multiply(leads.T))
    both.setdiag(1.0)
    return sparse.csr_array(sparse.diags_array(1 / both.sum(axis=1)) @ both)


def _zones(mdp: MDP, rng: np.random.Generator) -> Floats | None:
    if mdp.layout is None:
        return None
    high, wide = mdp.layout.shape
    disliked = np.zeros((high, wide))
    for _ in range(rng.integers(1, 4)):
        a, b = rng.integers(2, max(high // 2, 3)), rng.integers(2, max(wide // 2, 3))
        y, x = rng.integers(max(high - a, 0) + 1), rng.integers(max(wide - b, 0) + 1)
        disliked[y : y + a, x : x + b] = -2.0
    return disliked.ravel()[mdp.layout.cells][mdp.choice_state]


def _labels(mdp: MDP, rng: np.random.Generator) -> Floats | None:
    if not mdp.labels:
        return None
    worths = rng.standard_normal(len(mdp.labels))
    return (worths @ np.stack(list(mdp.labels.values())))[mdp.choice_state]


def _actions(mdp: MDP, rng: np.random.Generator) -> Floats:
    return rng.standard_normal(len(mdp.action_names))[mdp.actions]


def _spots(mdp: MDP, rng: np.random.Generator) -> Floats:
    worth = np.zeros(mdp.n_states)
    where = rng.choice(mdp.n_states, min(max(3, mdp.n_states // SPOTS), mdp.n_states), replace=False)
    worth[where] = SPOT_SIZE * rng.standard_normal(len(where))
    return worth[mdp.choice_state]


def _trend(mdp: MDP, rng: np.random.Generator) -> Floats | None:
    if mdp.layout is None:
        return None
    row, column = np.divmod(mdp.layout.cells, mdp.layout.shape[1])
    angle = rng.uniform(0, 2 * np.pi)
    return _per_choice(mdp, _standard(np.cos(angle) * row + np.sin(angle) * column))


def _walls(mdp: MDP, rng: np.random.Generator) -> Floats | None:
    if mdp.layout is None:
        return None
    away = np.asarray(ndimage.distance_transform_edt(~mdp.layout.blocked)).ravel()[mdp.layout.cells]
    worth = _standard(np.minimum(away, 3.0))
    return _per_choice(mdp, None if worth is None else worth * rng.choice([-1.0, 1.0]))


SMOOTH = tuple(f"smooth-{steps}" for steps in WALK_STEPS)
FAMILIES: dict[str, Callable[[MDP, np.random.Generator], Floats | None]] = {
    **{name: _smooth(steps) for name, steps in zip(SMOOTH, WALK_STEPS, strict=True)},
    "zones": _zones,
    "labels": _labels,
    "actions": _actions,
    "spots": _spots,
    "trend": _trend,
    "walls": _walls,
}
"""By name: (N,) a preference of about unit size, or None if the model has nothing that it could be about."""
