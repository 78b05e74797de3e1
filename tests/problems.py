"""Small models that carry their own answers, random models, and answers found by enumeration.

Everything here is dense, slow and independent of the library: only `MDP` itself is taken from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, combinations_with_replacement, product
from math import log

import numpy as np

from manyways import MDP, Average, Discounted

KINDS = ("dense", "sparse", "stop", "deterministic", "restart")


# ---- models with closed forms -----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Known:
    """A model and what is known about it.

    Attributes:
        mdp: the model; weakly accessible.
        policy: (N,) some policy.
        long_run: (N,) its long-run occupancy.
        best_average: the highest long-run reward of any policy.
        best_discounted: discount -> the highest discounted reward, times (1 - discount).
        best_pair: tradeoff -> the maximum of eq. (main) for k = 2 and the long-run average, where known.
    """

    mdp: MDP
    policy: np.ndarray
    long_run: np.ndarray
    best_average: float
    best_discounted: Callable[[float], float]
    best_pair: Callable[[float], float] | None = None

    def best(self, criterion: Average | Discounted) -> float:
        return self.best_average if isinstance(criterion, Average) else self.best_discounted(criterion.discount)


def two_state_chain(there: float = 0.3, back: float = 0.1) -> Known:
    """No choice at all; time splits as back : there. Reward 1 in the first state."""
    mdp = MDP.from_transitions(
        [
            ("on", "wait", "off", there, 1.0),
            ("on", "wait", "on", 1 - there, 1.0),
            ("off", "wait", "on", back, 0.0),
            ("off", "wait", "off", 1 - back, 0.0),
        ],
        name="two-state chain",
    )
    on, off = back / (there + back), there / (there + back)
    return Known(
        mdp,
        policy=np.ones(2),
        long_run=np.array([on, off]),
        best_average=on,
        best_discounted=lambda d: on + off * (1 - d) / (1 - d * (1 - there - back)),
        best_pair=lambda _: on,
    )


def cycle(length: int) -> Known:
    """Round and round, period `length`; reward 1 for each round."""
    mdp = MDP.from_transitions(
        [(i, "go", (i + 1) % length, 1.0, float(i == 0)) for i in range(length)], name=f"{length}-cycle"
    )
    return Known(
        mdp,
        policy=np.ones(length),
        long_run=np.full(length, 1 / length),
        best_average=1 / length,
        best_discounted=lambda d: (1 - d) / (1 - d**length),
        best_pair=lambda _: 1 / length,
    )


def stop_world() -> Known:
    """Three cells in a line where one may stop anywhere: most policies have many recurrent classes.

    Stopping everywhere stays at the start; the best is to walk to the last cell and stop there.
    """
    rows = []
    for cell, reward in enumerate([0.0, 1.0, 3.0]):
        rows.append((cell, "stop", cell, 1.0, reward))
        if cell > 0:
            rows.append((cell, "left", cell - 1, 1.0, reward))
        if cell < 2:
            rows.append((cell, "right", cell + 1, 1.0, reward))
    mdp = MDP.from_transitions(rows, name="stop world")
    stop = np.array([mdp.action_name(x) == "stop" for x in range(mdp.n_choices)], float)
    return Known(
        mdp,
        policy=stop,
        long_run=stop * (mdp.choice_state == 0),
        best_average=3.0,
        best_discounted=lambda d: (1 - d) * d + 3 * d**2,
        # One plan stops in the last cell, the other shuttles between the last two: they share no choice.
        best_pair=lambda tradeoff: max(3.0, (3.0 + 2.0) / 2 + tradeoff * log(2)),
    )


def gamblers_ruin(capital: int = 2, target: int = 5, win: float = 0.4) -> Known:
    """Bet one coin at a time until broke or rich; there, stay for ever or play again.

    Staying at both ends has two recurrent classes, entered with the textbook's chances.
    """
    rows = []
    for coins in range(1, target):
        rows += [(coins, "bet", coins + 1, win, 0.0), (coins, "bet", coins - 1, 1 - win, 0.0)]
    for end in (0, target):
        rows += [(end, "stay", end, 1.0, float(end == target)), (end, "again", capital, 1.0, 0.0)]
    mdp = MDP.from_transitions(rows, start=capital, name="gambler's ruin")
    names = [mdp.action_name(x) for x in range(mdp.n_choices)]
    odds = (1 - win) / win
    rich = (1 - odds**capital) / (1 - odds**target)
    chance = {str(target): rich, "0": 1 - rich}
    return Known(
        mdp,
        policy=np.array([float(name != "again") for name in names]),
        long_run=np.array(
            [
                chance[mdp.state_name(s)] * (a == "stay") if a != "bet" else 0.0
                for s, a in zip(mdp.choice_state, names, strict=True)
            ]
        ),
        best_average=1.0,
        best_discounted=lambda d: _rich_discounted(capital, target, win, d),
    )


def _rich_discounted(capital: int, target: int, win: float, d: float) -> float:
    """Play again when broke, stay when rich: E[d^T], T the time of getting rich.

    With u(c) = E[d^T from c coins], u = A x^c + B y^c for the roots of d win x^2 - x + d (1 - win) = 0,
    u(target) = 1 and u(0) = d u(capital).
    """
    x, y = np.roots([d * win, -1.0, d * (1 - win)])
    a, b = np.linalg.solve([[x**target, y**target], [1 - d * x**capital, 1 - d * y**capital]], [1.0, 0.0])
    return float(a * x**capital + b * y**capital)


def cycle_choice() -> Known:
    """From home, a round of two steps worth 1 or one of three steps worth 2."""
    mdp = MDP.from_transitions(
        [
            ("home", "short", "a", 1.0, 1.0),
            ("home", "long", "b", 1.0, 2.0),
            ("a", "on", "home", 1.0, 0.0),
            ("b", "on", "c", 1.0, 0.0),
            ("c", "on", "home", 1.0, 0.0),
        ],
        name="cycle choice",
    )
    return Known(
        mdp,
        policy=np.array([1.0, 0.0, 1.0, 1.0, 1.0]),
        long_run=np.array([1 / 2, 0, 1 / 2, 0, 0]),
        best_average=2 / 3,
        best_discounted=lambda d: max(1 / (1 - d**2), 2 / (1 - d**3)) * (1 - d),
        best_pair=lambda tradeoff: max(2 / 3, (1 / 2 + 2 / 3) / 2 + tradeoff * log(2)),
    )


def single() -> Known:
    """One state, one action."""
    mdp = MDP.from_transitions([("here", "stay", "here", 1.0, 2.5)], name="single")
    one = np.ones(1)
    return Known(mdp, one, one, 2.5, lambda _: 2.5, lambda _: 2.5)


def bandit(*rewards: float) -> Known:
    """One state, several actions."""
    mdp = MDP.from_transitions([(0, a, 0, 1.0, reward) for a, reward in enumerate(rewards)], name="bandit")
    uniform = np.full(len(rewards), 1 / len(rewards))
    first, second = sorted(rewards, reverse=True)[:2]
    return Known(
        mdp,
        policy=uniform,
        long_run=uniform,
        best_average=first,
        best_discounted=lambda _: first,
        best_pair=lambda tradeoff: max(first, (first + second) / 2 + tradeoff * log(2)),
    )


def losses() -> Known:
    """Nothing but costs: 2 to stay home, 4 to stay away, 1 and 1.5 to move."""
    mdp = MDP.from_transitions(
        [
            ("home", "stay", "home", 1.0, -2.0),
            ("home", "move", "away", 1.0, -1.0),
            ("away", "stay", "away", 1.0, -4.0),
            ("away", "move", "home", 1.0, -1.5),
        ],
        name="losses",
    )
    return Known(
        mdp,
        policy=np.array([1.0, 0.0, 1.0, 0.0]),
        long_run=np.array([1.0, 0.0, 0.0, 0.0]),
        best_average=-1.25,
        best_discounted=lambda d: max(-2.0, -(1 + 1.5 * d) / (1 + d)),
    )


def discounted_chain(length: int = 4) -> Known:
    """A line that ends in a state worth 1 for ever: from its beginning d^(length - 1)."""
    rows = [(i, "go", min(i + 1, length - 1), 1.0, float(i == length - 1)) for i in range(length)]
    mdp = MDP.from_transitions(rows, name="discounted chain")
    last = np.eye(length)[-1]
    return Known(mdp, np.ones(length), last, 1.0, lambda d: d ** (length - 1), lambda _: 1.0)


KNOWN: dict[str, Known] = {
    problem.mdp.name: problem
    for problem in (
        two_state_chain(),
        cycle(2),
        cycle(3),
        stop_world(),
        gamblers_ruin(),
        cycle_choice(),
        single(),
        bandit(1.0, 0.25, 0.5),
        losses(),
        discounted_chain(),
    )
}


def two_traps() -> MDP:
    """Two absorbing ends: no single long-run average."""
    return MDP.from_transitions(
        [
            ("fork", "left", "heaven", 1.0, 0.0),
            ("fork", "right", "hell", 1.0, 0.0),
            ("heaven", "stay", "heaven", 1.0, 1.0),
            ("hell", "stay", "hell", 1.0, -1.0),
        ],
        name="two traps",
    )


# ---- random models ----------------------------------------------------------------------------


def random_mdp(
    rng: np.random.Generator,
    max_states: int = 4,
    max_actions: int = 3,
    kind: str | None = None,
    *,
    min_states: int = 1,
) -> MDP:
    """A random model, each state with its own number of actions. Kinds:

    dense: every transition possible. sparse: one to two successors. stop: sparse, and every state
    may stay put, so that policies are multichain. deterministic: one successor, so that chains are
    periodic. restart: sparse, but some states only lead back to the start distribution.
    """
    kind = kind or KINDS[rng.integers(len(KINDS))]
    n_states = int(rng.integers(min_states, max_states + 1))
    n_actions = rng.integers(1, max_actions + 1, size=n_states)
    start = np.zeros(n_states)
    if rng.random() < 0.5:
        start[:] = rng.dirichlet(np.ones(n_states))
    else:
        start[rng.integers(n_states)] = 1.0
    restarts = rng.random(n_states) < 0.4
    rows = []
    for state in range(n_states):
        for action in range(n_actions[state]):
            if kind == "stop" and action == 0:
                rows.append(np.eye(n_states)[state])
            elif kind == "restart" and restarts[state]:
                rows.append(start)
            else:
                rows.append(_random_row(rng, n_states, kind))
    return MDP.from_csr(
        np.array(rows),
        np.round(rng.normal(size=len(rows)), 3),
        np.concatenate([[0], np.cumsum(n_actions)]),
        start=start,
        name=f"random {kind}",
    )


def _random_row(rng: np.random.Generator, n_states: int, kind: str) -> np.ndarray:
    successors = {"dense": n_states, "deterministic": 1}.get(kind, min(int(rng.integers(1, 3)), n_states))
    row = np.zeros(n_states)
    row[rng.choice(n_states, successors, replace=False)] = rng.dirichlet(np.ones(successors))
    return row


def random_accessible_mdp(
    rng: np.random.Generator, max_states: int = 4, max_actions: int = 3, kind: str | None = None
) -> MDP:
    """Random models of one kind and size until one is weakly accessible, as the average needs it."""
    kind = kind or KINDS[rng.integers(len(KINDS))]
    size = int(rng.integers(1, max_states + 1))
    while True:
        mdp = random_mdp(rng, size, max_actions, kind, min_states=size)
        if is_weakly_accessible(mdp):
            return mdp


def random_policy(rng: np.random.Generator, mdp: MDP) -> np.ndarray:
    """(N,) every choice with some probability, uniformly distributed."""
    return np.concatenate([rng.dirichlet(np.ones(n)) for n in np.diff(mdp.first_choice)])


# ---- answers by enumeration -------------------------------------------------------------------


def choices_of(mdp: MDP, state: int) -> range:
    return range(int(mdp.first_choice[state]), int(mdp.first_choice[state + 1]))


def all_deterministic_policies(mdp: MDP) -> Iterator[np.ndarray]:
    """(S,) one choice per state, every combination."""
    for choices in product(*(choices_of(mdp, state) for state in range(mdp.n_states))):
        yield np.array(choices)


def reaches(graph: np.ndarray) -> np.ndarray:
    """(S, S) boolean graph -> (S, S): is there a path, possibly of no steps?"""
    path = np.asarray(graph, bool) | np.eye(len(graph), dtype=bool)
    for _ in range(len(graph)):
        path = path @ path
    return path


def recurrent_classes(chain: np.ndarray) -> list[np.ndarray]:
    """The recurrent classes of a dense chain, as arrays of states."""
    path = reaches(chain > 0)
    recurrent = [s for s in range(len(chain)) if path[:, s][path[s]].all()]
    return [np.array(c) for c in sorted({tuple(np.flatnonzero(path[s])) for s in recurrent})]


def stationary(chain: np.ndarray) -> np.ndarray:
    """The stationary distribution of an irreducible dense chain, by least squares."""
    n = len(chain)
    system = np.vstack([chain.T - np.eye(n), np.ones(n)])
    return np.linalg.lstsq(system, np.eye(n + 1)[-1], rcond=None)[0]


def end_components_by_enumeration(mdp: MDP) -> list[tuple[int, ...]]:
    """All maximal end components: every set of states is tried."""
    support = mdp.transitions.toarray() > 0
    found: list[tuple[int, ...]] = []
    for size in range(mdp.n_states, 0, -1):
        for states in combinations(range(mdp.n_states), size):
            inside = np.isin(np.arange(mdp.n_states), states)
            staying = inside[mdp.choice_state] & ~support[:, ~inside].any(axis=1)
            if any(set(states) <= set(larger) for larger in found):
                continue
            if not all(staying[list(choices_of(mdp, s))].any() for s in states):
                continue
            graph = np.array([support[staying & (mdp.choice_state == s)].any(axis=0) for s in states])[:, inside]
            if reaches(graph).all():
                found.append(states)
    return sorted(found)


def is_weakly_accessible(mdp: MDP) -> bool:
    return len(end_components_by_enumeration(mdp)) == 1


def vertices(mdp: MDP, criterion: Average | Discounted) -> np.ndarray:
    """(V, N) the vertices of the occupancy polytope.

    Long run: the stationary distributions of every single recurrent class of every deterministic
    policy. Discounted: the occupancies of the deterministic policies, from the start.
    """
    p = mdp.transitions.toarray()
    found = []
    for choices in all_deterministic_policies(mdp):
        chain = p[choices]
        if isinstance(criterion, Average):
            for states in recurrent_classes(chain):
                x = np.zeros(mdp.n_choices)
                x[choices[states]] = stationary(chain[np.ix_(states, states)])
                found.append(x)
        else:
            d = criterion.discount
            x = np.zeros(mdp.n_choices)
            x[choices] = np.linalg.solve(np.eye(mdp.n_states) - d * chain.T, (1 - d) * mdp.start)
            found.append(x)
    _, first = np.unique(np.round(found, 10), axis=0, return_index=True)
    return np.maximum(np.array(found)[first], 0.0)


def jsd(p: np.ndarray, q: np.ndarray) -> float:
    """Jensen-Shannon divergence in nats, entry by entry."""
    total = 0.0
    for a, b in zip(p.tolist(), q.tolist(), strict=True):
        total += (a * log(2 * a / (a + b)) if a > 0 else 0.0) + (b * log(2 * b / (a + b)) if b > 0 else 0.0)
    return total / 2


def brute_force_optimum(
    mdp: MDP, tradeoff: float, criterion: Average | Discounted, k: int = 2, *, distinct: bool = False
) -> float:
    """The true maximum of eq. (main), over all sets of k plans, or over those without equal plans if there are any.

    The objective is convex, so a maximum lies at k vertices; every combination is tried.
    """
    corners = vertices(mdp, criterion)
    reward = corners @ mdp.reward
    apart = np.array([[jsd(p, q) for q in corners] for p in corners])
    combine = combinations if distinct and len(corners) >= k else combinations_with_replacement
    return max(
        reward[list(chosen)].mean() + tradeoff * np.mean([apart[i, j] for i, j in combinations(chosen, 2)] or [0.0])
        for chosen in combine(range(len(corners)), k)
    )
