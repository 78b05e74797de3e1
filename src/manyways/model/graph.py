"""The graph of a model: reachability, end components, weak accessibility.

**Weak accessibility** (Bertsekas, vol. II, section 4.2; the paper assumes it): the states split into those that are
transient under every policy and one set in which any state can be reached from any other. An *end component* is a set
of states with some of their choices that never leaves the set and connects all of it; a state is transient under every
policy exactly if it lies in no end component. So a model is weakly accessible exactly if it has one maximal end
component.

This is decided in time linear in the number of transitions. A closed strong component of the whole graph is a maximal
end component with all its choices, so there must be exactly one of these, and no policy may avoid it forever.
"""

from __future__ import annotations

from typing import NoReturn
from urllib.parse import parse_qsl

import numpy as np
from scipy.sparse import csgraph

from manyways.errors import NotWeaklyAccessible
from manyways.kernels import chains
from manyways.model.mdp import MDP
from manyways.model.search import collapse, peeled, reachable
from manyways.types import Bools, Ints, Sparse

NAMED_AT_MOST = 4
END = "end"
"""The label of states that are not left, such as those of a table without rows of their own."""
BANS = ("without", "without_action")
"""The settings of a source that ban something."""


def levels_towards(mdp: MDP, targets: Bools) -> Ints:
    """(S,) the smallest number of choices that can lead from each state into `targets` (S,); -1 if none can."""
    level, order = np.full(mdp.n_states, -1, dtype=np.int64), np.empty(mdp.n_states, dtype=np.int64)
    level[targets] = 0
    known = np.flatnonzero(targets)
    order[: len(known)] = known
    arrivals = predecessors(mdp)
    chains.levels(order, len(known), arrivals.indptr, arrivals.indices, mdp.choice_state, level)
    return level


def reachable_from_start(mdp: MDP) -> Bools:
    """(S,) the states that some policy can reach from the start distribution."""
    return reachable(state_graph(mdp), mdp.start > 0)


def never_left(mdp: MDP) -> Bools:
    """(S,) the states in which every choice stays."""
    matrix, left = mdp.transitions, np.zeros(mdp.n_states, bool)
    state = np.repeat(mdp.choice_state, np.diff(matrix.indptr))
    left[state[(matrix.indices != state) & (matrix.data > 0)]] = True
    return ~left


def recurrent_core(mdp: MDP) -> Bools:
    """(S,) the one maximal end component of a weakly accessible model.

    Raises:
        NotWeaklyAccessible: naming the components, and the ways out.
    """
    component, closed = closed_components(state_graph(mdp))
    if np.count_nonzero(closed) == 1:
        core = closed[component]
        if core.all() or not _can_stay_out_of(mdp, core).any():
            return core
    _refuse(mdp)


def closed_components(graph: Sparse) -> tuple[Ints, Bools]:
    """Strong components of a graph: (S,) the component of each node, (C,) whether no edge leaves it."""
    count, component = csgraph.connected_components(graph, directed=True, connection="strong")
    source = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    leaves = component[source] != component[graph.indices]
    closed = np.ones(count, bool)
    closed[component[source[leaves]]] = False
    return component.astype(np.int64), closed


def end_components(mdp: MDP) -> list[Ints]:
    """All maximal end components, as arrays of states.

    Finds strong components and drops the choices that leave them, until nothing changes. Each round is linear. It is
    used to explain a refusal, after `recurrent_core` has decided.
    """
    alive = np.ones(mdp.n_choices, bool)
    while True:
        graph = collapse(mdp.transitions, mdp.first_choice, alive)
        _, component = csgraph.connected_components(graph, directed=True, connection="strong")
        here = component[mdp.choice_state]
        source = np.repeat(np.arange(mdp.n_choices), np.diff(mdp.transitions.indptr))
        leaves = np.zeros(mdp.n_choices, bool)
        leaves[source[component[mdp.transitions.indices] != here[source]]] = True
        if not (alive & leaves).any():
            break
        alive &= ~leaves
    staying = np.zeros(mdp.n_states, bool)
    staying[mdp.choice_state[alive]] = True
    members = np.flatnonzero(staying)
    order = members[np.argsort(component[members], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(component[order])) + 1) if order.size else []


def state_graph(mdp: MDP) -> Sparse:
    """(S, S) CSR with an entry wherever some choice of the row's state can lead to the column's."""
    return collapse(mdp.transitions, mdp.first_choice)


def predecessors(mdp: MDP) -> Sparse:
    """(N, S) the transitions by column: which choices can lead into a state."""
    return mdp.transitions.tocsc()


def _can_stay_out_of(mdp: MDP, states: Bools) -> Bools:
    """(S,) the states from which some policy avoids the marked ones forever."""
    return peeled(mdp.transitions, mdp.first_choice, states, np.zeros(mdp.n_choices, bool))[0]


def _without_rows(mdp: MDP) -> str:
    """States of a table without rows of their own may be names that are misspelt: ask to check them."""
    ends = mdp.labels.get(END)
    if ends is None or not never_left(mdp)[ends].all():
        return ""
    names = [repr(mdp.state_name(int(s))) for s in np.flatnonzero(ends)]
    more = f" and {len(names) - NAMED_AT_MOST} more" if len(names) > NAMED_AT_MOST else ""
    lead = "leads" if len(names) == 1 else "lead"
    return f"check the spelling of {', '.join(names[:NAMED_AT_MOST])}{more}, which {lead} nowhere; "


def _refuse(mdp: MDP) -> NoReturn:
    components = end_components(mdp)
    named = []
    for states in components[:NAMED_AT_MOST]:
        names = ", ".join(repr(mdp.state_name(int(s))) for s in states[:3])
        named.append(f"{{{names}{f', ... {states.size} states' if states.size > 3 else ''}}}")
    more = len(components) - len(named)
    listing = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    reached, restrict = reachable_from_start(mdp), ""
    if not reached.all():
        restrict = (
            "keep only what the start can reach with mdp.restricted_to(manyways.reachable_from_start(mdp)) "
            f"({np.count_nonzero(reached)} of {mdp.n_states} states), "
        )
    banned = [value for name, value in parse_qsl((mdp.source or "").partition("?")[2]) if name in BANS]
    without, less = "", ""
    if banned:
        without, less = (
            f" without {' and '.join(map(repr, banned))}",
            f"ban less than {' and '.join(map(repr, banned))}, ",
        )
    raise NotWeaklyAccessible(
        f"{mdp.name}{without} is not weakly accessible: a policy can stay forever in each of {len(components)} separate sets of "
        f"states, {listing}, so the long-run average depends on the start; {_without_rows(mdp)}",
        in_python=f"{less}{restrict}use Discounted(0.99), or make the final states lead back to the start with "
        "mdp.restarting_at(states)",
        on_command_line=f"{less}use --discount 0.99, or restart episodes at the states of a label with --restart LABEL",
    )
