"""The arrays that the compiled loops of `manyways.polytope.paired_sweeps` share, in groups.

S states, N choices; chunks and tiles are ranges of states (`paired_passes`). What is no `Ints` is unsigned; see `polytope.sweeps`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from manyways.kernels.announcements import APART, MEETINGS
from manyways.types import Bools, Floats, Ints


class Model(NamedTuple):
    """The choices of each state, from `first` (S + 1,), and their transitions as CSR arrays."""

    first: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: Floats


class Rows(NamedTuple):
    """A policy's rows packed in the order of the sweeps; see `kernels.sweeps`."""

    begin: np.ndarray
    target: np.ndarray
    weight: Floats
    inverse: Floats
    later: Floats
    ahead: np.ndarray


class Layout(NamedTuple):
    """How a policy is laid out, in chunks.

    Attributes:
        order: (S,) the states, and `place` (S,) where each stands among them.
        likely: (S,) the likely successor of each state under the policy.
        child, sibling: (S,) work space.
        laid: (S,) the choices that are laid out.
        longest: (S,) the number of transitions of the longest row of each state, so that one chunk can be laid out anew while
            the others stay.
        room: (chunks + 1,) where the rows of each chunk begin.
        nearest, farthest: (chunks,) the chunks that each leads to.
        last: (chunks,) see `paired_passes`.
        stale: (chunks,) whether a chunk must be laid out anew.
    """

    order: np.ndarray
    place: np.ndarray
    likely: np.ndarray
    child: np.ndarray
    sibling: np.ndarray
    laid: np.ndarray
    longest: np.ndarray
    room: Ints
    nearest: Ints
    farthest: Ints
    last: Ints
    stale: Bools


class Tiles(NamedTuple):
    """Where the policy is improved.

    Attributes:
        gains: (tiles,) the largest surplus of a choice over that of the policy's own.
        marked: (tiles,) those that the next pass looks at, and `marks` (2, tiles) those that two passes marked.
        last: (chunks,) see `paired_passes`, for passes over the states by their numbers.
    """

    gains: Floats
    marked: Bools
    marks: Bools
    last: Ints


class Crew(NamedTuple):
    """What two threads tell each other.

    Attributes:
        meetings: (MEETINGS,) see `announcements.meet`.
        done: (2 * APART,) see `paired_passes`; `changes` (2, 2, APART) what two passes changed, by turns.
        told: (2 * APART,) whatever else one found.
        alone, changes_alone: (2, 2 * APART) and (2, 2, 2, APART), the same as `done` and `changes` for passes that each thread
            makes by itself.
    """

    meetings: Ints
    done: Ints
    changes: Floats
    told: Floats
    alone: Ints
    changes_alone: Floats


def new_crew() -> Crew:
    """Two threads that have not told each other anything."""
    return Crew(
        np.zeros(MEETINGS, np.int64),
        np.zeros(2 * APART, np.int64),
        np.zeros((2, 2, APART)),
        np.zeros(2 * APART),
        np.zeros((2, 2 * APART), np.int64),
        np.zeros((2, 2, 2, APART)),
    )
