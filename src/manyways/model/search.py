"""Searches along the transitions of a model, on plain arrays, in time linear in the number of transitions.

The arrays are those of `MDP`, which uses this module: (N, S) CSR transitions of N choices between S states, and
`first_choice` (S + 1,), where the choices of each state begin.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from manyways.types import Bools, Ints, Sparse


def collapse(transitions: Sparse, first_choice: Ints, alive: Bools | None = None) -> Sparse:
    """(S, S) CSR with an entry wherever some choice of the row's state can lead to the column's.

    Args:
        transitions, first_choice: see the head of this module.
        alive: (N,) the choices that count; all of them if not given.
    """
    n_choices, n_states = transitions.shape
    count = np.ones(n_choices) if alive is None else alive.astype(np.float64)
    member = sparse.csr_array((count, np.arange(n_choices), first_choice), shape=(n_states, n_choices), copy=True)
    member.eliminate_zeros()
    return sparse.csr_array(member @ transitions)


def reachable(graph: Sparse, sources: Bools) -> Bools:
    """(S,) the nodes of an (S, S) graph that can be reached from the marked ones, themselves included."""
    # One more node, with an edge to every source, makes it a single search.
    nodes, entry = graph.shape[0], np.flatnonzero(sources)
    edges = np.concatenate([graph.data, np.ones(len(entry))])
    ends = np.concatenate([graph.indices, entry])
    entered = sparse.csr_array((edges, ends, np.append(graph.indptr, len(ends))), shape=(nodes + 1, nodes + 1))
    order = csgraph.breadth_first_order(entered, nodes, return_predecessors=False)
    reached = np.zeros(nodes + 1, bool)
    reached[order] = True
    return reached[:-1]


def peeled(transitions: Sparse, first_choice: Ints, lost: Bools, dropped: Bools) -> tuple[Bools, Bools]:
    """(S,) and (N,): what is left after removing some states and choices and everything that depends on them.

    A choice that can lead into a removed state is removed, and so is a state without choices, until nothing changes. The
    states left over are the largest set outside of `lost` in which every state has a choice that is not in `dropped` and
    never leaves the set.

    Args:
        transitions, first_choice: see the head of this module.
        lost: (S,) the states to remove.
        dropped: (N,) the choices to remove.
    """
    arrivals = transitions.tocsc()
    owner = np.repeat(np.arange(len(first_choice) - 1), np.diff(first_choice))
    gone, lost = dropped | lost[owner], lost.copy()
    left = np.diff(first_choice) - np.bincount(owner[gone], minlength=len(lost))
    lost |= left == 0
    frontier = np.flatnonzero(lost)
    while frontier.size:
        leading = np.unique(rows_of(arrivals, frontier))
        leading = leading[~gone[leading]]
        gone[leading] = True
        np.subtract.at(left, owner[leading], 1)
        candidates = np.unique(owner[leading])
        frontier = candidates[(left[candidates] == 0) & ~lost[candidates]]
        lost[frontier] = True
    return ~lost, ~gone


def rows_of(arrivals: Sparse, columns: Ints) -> Ints:
    """The row indices stored in the given columns of a CSC matrix, one after the other."""
    begin, end = arrivals.indptr[columns], arrivals.indptr[columns + 1]
    length = end - begin
    offset = np.repeat(begin - np.concatenate([[0], np.cumsum(length)[:-1]]), length)
    return arrivals.indices[offset + np.arange(length.sum())]
