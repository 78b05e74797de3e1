"""Searches in a model of which each process has a part.

Each process searches its own part to the end; then the processes exchange what they found about states at the borders, until
nothing is new. So a search takes as many exchanges as ways lead from part to part, however long they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.distributed.part import ModelPart
from manyways.errors import NotWeaklyAccessible
from manyways.kernels import partition as kernels
from manyways.kernels.orders import likely_successors
from manyways.types import Bools, Floats


class Choices:
    """Some choices of each own state, first[s]:last[s], for searches along them: all choices, or those of a policy (m,)."""

    def __init__(self, part: ModelPart, policy: Any = None) -> None:
        self.part = part
        self.first, self.last = (part.first[:-1], part.first[1:]) if policy is None else (policy, policy + 1)
        self.indptr, self.indices, self.owner = part.indptr, part.indices, part.owner
        self._arrivals: tuple[Any, Any] | None = None

    @classmethod
    def likely(cls, part: ModelPart, policy: Any) -> Choices:
        """Of the transitions of a policy only those to the most likely successors."""
        one = cls(part)
        one.indices = np.empty(part.own, part.first.dtype)
        likely_successors(0, len(policy), policy, *part.arrays, one.indices)
        one.first = one.owner = part.natural
        one.last, one.indptr = one.first + 1, np.arange(part.own + 1, dtype=part.first.dtype)
        return one

    def loop_from(self, state: int) -> int:
        """Of likely successors: a state of the loop in which they end from a state of the whole model."""
        part, met = self.part, np.zeros(self.part.own, bool)
        while True:
            following = -1
            if part.lo <= state < part.hi:
                s = int(kernels.follow(state - part.lo, self.indices, met))
                # Each state has one likely successor, so a state that is met again lies on the loop.
                following = part.n_states + part.lo + s if s < part.own else int(part.ghosts[s - part.own])
            state = int(part.team.max(following))
            if state >= part.n_states:
                return state - part.n_states

    def arrivals(self) -> tuple[Any, Any]:
        """The choices that can lead to each known state; see `kernels.partition.arrivals`."""
        if self._arrivals is None:
            part = self.part
            count = int((self.indptr[self.last].astype(np.int64) - self.indptr[self.first]).sum())
            begin, source = np.empty(part.known + 1, part.first.dtype), np.empty(count, part.first.dtype)
            kernels.arrivals(self.first, self.last, self.indptr, self.indices, begin, source)
            self._arrivals = begin, source
        return self._arrivals

    def leading_to(self, targets: Bools) -> Bools:
        """(m,) -> (m,): the own states from which the choices can lead to one of the targets, themselves included."""
        part = self.part
        begin, source = self.arrivals()
        reached = part.filled(targets)
        queue, fresh = np.empty(part.known, part.first.dtype), np.flatnonzero(reached)
        while True:
            queue[: len(fresh)] = fresh
            kernels.spread_back(queue, len(fresh), begin, source, self.owner, reached)
            before = reached[part.own :].copy()
            part.halo.fill(reached)
            fresh = part.own + np.flatnonzero(reached[part.own :] & ~before)
            if not part.team.any(len(fresh) > 0):
                return reached[: part.own]

    def reached_from(self, sources: Bools) -> Bools:
        """(m,) -> (m,): the own states to which the choices can lead from one of the sources, themselves included."""
        part = self.part
        reached = np.zeros(part.known, bool)
        reached[: part.own] = sources
        queue, fresh = np.empty(part.known, part.first.dtype), np.flatnonzero(sources)
        told = np.zeros(len(part.ghosts), bool)
        while True:
            queue[: len(fresh)] = fresh
            kernels.spread_ahead(queue, len(fresh), self.first, self.last, self.indptr, self.indices, reached)
            news = np.zeros(part.known, np.int64)
            news[part.own :] = reached[part.own :] & ~told
            told |= reached[part.own :]
            part.halo.add_back(news)
            fresh = np.flatnonzero((news[: part.own] > 0) & ~reached[: part.own])
            reached[fresh] = True
            if not part.team.any(len(fresh) > 0):
                return reached[: part.own]

    def distances_to(self, targets: Bools) -> Floats:
        """(m,) -> (m + G,): the smallest sum of 1 / probability along a way to one of the targets; infinite if there is none."""
        part = self.part
        begin, source = self.arrivals()
        distance = part.filled(np.where(targets, 0.0, np.inf))
        queue, place = np.empty(part.known, part.first.dtype), np.full(part.known, -1, part.first.dtype)
        fresh = np.flatnonzero(distance == 0)
        while True:
            queue[: len(fresh)] = fresh
            kernels.nearest(queue, place, len(fresh), begin, source, part.owner, *part.arrays, distance)
            before = distance[part.own :].copy()
            part.halo.fill(distance)
            fresh = part.own + np.flatnonzero(distance[part.own :] < before)
            if not part.team.any(len(fresh) > 0):
                return distance


def towards(part: ModelPart, targets: Bools, choice: Any) -> Floats:
    """Send all own states that are not targets the nearest way there, by changing `choice` (m,) in place. Returns (m,) how far
    they are; targets keep their choices, and so do states from which no way leads there."""
    distance = Choices(part).distances_to(targets)
    kernels.homeward(part.first, *part.arrays, distance, choice, ~targets & np.isfinite(distance[: part.own]))
    return distance[: part.own]


def recurrent_core(part: ModelPart) -> Bools:
    """(m,) the own states that lie in the one maximal end component of a weakly accessible model; see `model.graph`.

    Raises:
        NotWeaklyAccessible: if there are several.
    """
    choices, state = Choices(part), 0
    while True:
        here = part.natural + part.lo == state
        ahead, back = choices.reached_from(here), choices.leading_to(here)
        lost = np.flatnonzero(ahead & ~back)  # from there, no way leads back
        _, following = part.team.highest(
            1.0 if len(lost) else 0.0, part.lo + int(lost[0]) if len(lost) else part.n_states
        )
        if following == part.n_states:
            break
        state = following
    if part.team.any(not back.all()) or _can_stay_out_of(part, ahead):
        raise NotWeaklyAccessible(
            f"{part.name} is not weakly accessible: a policy can stay forever in each of several separate sets of states, so "
            "the long-run average depends on the start; ",
            in_python="use Discounted(0.99), or restart the model at its final states before writing it",
            on_command_line="use --discount 0.99, or restart episodes at the states of a label before writing the file",
        )
    return ahead


def _can_stay_out_of(part: ModelPart, core: Bools) -> bool:
    """Whether some policy avoids the core forever from some state."""
    outside = part.filled(~core)
    while True:
        found = 0
        while more := kernels.avoid(part.first, part.indptr, part.indices, outside):
            found += more
        part.halo.fill(outside)
        if not part.team.any(found > 0):
            return part.team.any(bool(outside[: part.own].any()))
