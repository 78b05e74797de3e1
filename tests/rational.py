"""Exact answers in rational arithmetic, and random models of the kinds that are hard for floating point."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
from scipy import sparse

from manyways import MDP

Vector = list[Fraction]
KINDS = ("plain", "periodic", "penalty", "multichain", "stiff", "loops", "both")
ORDINARY = KINDS[:4]


@dataclass(frozen=True)
class ExactMdp:
    """A model with rows, start and policies divided by their exact sums, under a discount.

    Attributes:
        rows: by choice, the exact probability of each next state.
        start: the exact start distribution.
        reward: by choice.
        discount: 1 for the long-run average.
    """

    mdp: MDP
    rows: list[Vector]
    start: Vector
    reward: Vector
    discount: Fraction

    @staticmethod
    def of(mdp: MDP, discount: float) -> ExactMdp:
        dense = mdp.transitions.toarray()
        rows = [_normalised([Fraction(float(p)) for p in row]) for row in dense]
        start = _normalised([Fraction(float(p)) for p in mdp.start])
        return ExactMdp(mdp, rows, start, [Fraction(float(r)) for r in mdp.reward], Fraction(discount))

    def chain(self, policy: np.ndarray) -> tuple[list[Vector], Vector]:
        """The transitions between states under a policy, and the exact share of each choice in its state."""
        n, owner = self.mdp.n_states, self.mdp.choice_state
        given = [Fraction(float(p)) for p in policy]
        total = [sum((p for p, s in zip(given, owner, strict=True) if s == state), Fraction(0)) for state in range(n)]
        share = [p / total[s] for p, s in zip(given, owner, strict=True)]
        chain = [[Fraction(0)] * n for _ in range(n)]
        for x, part in enumerate(share):
            for j, p in enumerate(self.rows[x]):
                if part and p:
                    chain[owner[x]][j] += part * p
        return chain, share

    def classes(self, policy: np.ndarray) -> list[list[int]]:
        """The recurrent classes within reach of the start."""
        chain, _ = self.chain(policy)
        n = len(chain)
        reach = [{s} for s in range(n)]
        for _ in range(n):
            reach = [seen | {j for i in seen for j in range(n) if chain[i][j]} for seen in reach]
        met = set().union(*(reach[s] for s in range(n) if self.start[s]))
        return sorted({tuple(sorted(reach[s])) for s in met if all(s in reach[j] for j in reach[s])})

    def occupancy(self, policy: np.ndarray) -> Vector:
        """By choice; of several recurrent classes, each with the chance that the policy ends in it."""
        owner, (chain, share) = self.mdp.choice_state, self.chain(policy)
        n = len(chain)
        if self.discount < 1:
            system = [[Fraction(int(i == j)) - self.discount * chain[i][j] for i in range(n)] for j in range(n)]
            visits = solve(system, [(1 - self.discount) * p for p in self.start])
            return [visits[owner[x]] * share[x] for x in range(len(share))]
        visits, classes = [Fraction(0)] * n, self.classes(policy)
        for members in classes:
            system = [[Fraction(int(i == j)) - chain[i][j] for i in members] for j in members]
            system[0] = [Fraction(1)] * len(members)
            within = solve(system, [Fraction(int(i == 0)) for i in range(len(members))])
            chance = self._ends_in(chain, set(members), {s for other in classes for s in other})
            for s, part in zip(members, within, strict=True):
                visits[s] = chance * part
        return [visits[owner[x]] * share[x] for x in range(len(share))]

    def _ends_in(self, chain: list[Vector], there: set[int], ends: set[int]) -> Fraction:
        """The chance that the first of the states `ends` that is met is in `there`."""
        n = len(chain)
        left = [s for s in range(n) if s not in ends and self._leads_to(chain, s, ends)]
        system = [[Fraction(int(i == j)) - chain[i][j] for j in left] for i in left]
        found = solve(system, [sum((chain[i][j] for j in there), Fraction(0)) for i in left])
        value = {s: Fraction(1) for s in there} | dict(zip(left, found, strict=True))
        return sum((self.start[s] * v for s, v in value.items()), Fraction(0))

    @staticmethod
    def _leads_to(chain: list[Vector], state: int, ends: set[int]) -> bool:
        seen = {state}
        for _ in chain:
            seen |= {j for i in seen for j in range(len(chain)) if chain[i][j]}
        return bool(seen & ends)

    def best(self, c: Vector) -> tuple[Fraction, list[int]]:
        """The highest reward of any policy, for rewards c, and a policy that has it, with one recurrent class if possible.

        By policy iteration or, in models with policies of several recurrent classes, by trying all of them.
        """
        n, first = self.mdp.n_states, self.mdp.first_choice
        if self.mdp.name == "multichain" and self.discount == 1:
            policies = list(product(*(range(a, b) for a, b in pairwise(first))))
            rows = [np.isin(np.arange(first[-1]), policy).astype(float) for policy in policies]
            worth = [(dot(c, self.occupancy(row)), -len(self.classes(row))) for row in rows]
            top = max(range(len(rows)), key=worth.__getitem__)
            return worth[top][0], [int(x) for x in policies[top]]
        choices = [int(x) for x in first[:-1]]
        while True:
            rows = [
                [Fraction(int(j == s)) - self.discount * self.rows[x][j] for j in range(n)]
                for s, x in enumerate(choices)
            ]
            if self.discount == 1:  # the gain in place of the first value, which is zero
                found = solve([[Fraction(1), *row[1:]] for row in rows], [c[x] for x in choices])
                gain, h = found[0], [Fraction(0), *found[1:]]
            else:
                h = solve(rows, [c[x] for x in choices])
                gain = (1 - self.discount) * dot(self.start, h)
            better = [
                max(range(first[s], first[s + 1]), key=lambda x, s=s: (self._value(c, x, h), x == choices[s]))
                for s in range(n)
            ]
            if better == choices:
                return gain, choices
            choices = better

    def _value(self, c: Vector, x: int, h: Vector) -> Fraction:
        return c[x] + self.discount * dot(self.rows[x], h)


def dot(a: Vector, b: Vector) -> Fraction:
    return sum((p * q for p, q in zip(a, b, strict=True) if p and q), Fraction(0))


def solve(system: list[Vector], right: Vector) -> Vector:
    """Gauss-Jordan elimination."""
    n = len(system)
    rows = [[*row, value] for row, value in zip(system, right, strict=True)]
    for i in range(n):
        pivot = next(r for r in range(i, n) if rows[r][i] != 0)
        rows[i], rows[pivot] = rows[pivot], rows[i]
        scale = 1 / rows[i][i]
        rows[i] = [value * scale if value else value for value in rows[i]]
        for r in range(n):
            if r != i and rows[r][i] != 0:
                factor = rows[r][i]
                rows[r] = [a - factor * b if b else a for a, b in zip(rows[r], rows[i], strict=True)]
    return [row[n] for row in rows]


def divergence(p: Vector, q: Vector) -> Decimal:
    """Jensen-Shannon, to 60 digits."""
    with localcontext() as context:
        context.prec = 80
        total = Decimal(0)
        for a, b in zip(map(decimal, p), map(decimal, q), strict=True):
            for part in (a, b):
                if part > 0:
                    total += part * (2 * part / (a + b)).ln()
        return total / 2


def decimal(f: Fraction) -> Decimal:
    with localcontext() as context:
        context.prec = 80
        return Decimal(f.numerator) / Decimal(f.denominator)


def hard_model(rng: np.random.Generator, kind: str) -> MDP:
    """A small model in which every policy has one recurrent class, as state 0 can be reached by every choice.

    Not so "multichain": the first choices form a ring, others may stay where they are or move within a part of the model.
    "stiff": links down to 1e-12; "loops": self-loops of 1 - 2^-40; "both"; "penalty": some rewards of -10^p for p up to
    15 times the others; rewards are scaled by 1e-12 to 1e12.
    """
    n, scale = int(rng.integers(2, 5 if kind == "multichain" else 6)), 10.0 ** rng.uniform(-12, 12)
    rows: list[np.ndarray] = []
    rewards, first = [], [0]
    for s in range(n):
        for number in range(int(rng.integers(1, 4))):
            row = _split_row(rng, s, n, number) if kind == "multichain" else _hard_row(rng, kind, s, n)
            rows.append(row)
            rewards.append(rng.normal() * scale * (10.0 ** rng.uniform(-6, 0) if rng.random() < 0.3 else 1.0))
            if kind == "penalty" and rng.random() < 0.2:
                rewards[-1] = -(10.0 ** rng.uniform(3, 15)) * scale
        first.append(len(rows))
    start = np.eye(n)[0] if rng.random() < 0.5 else rng.dirichlet(np.ones(n))
    return MDP.from_csr(sparse.csr_array(np.stack(rows)), rewards, first, start=start, name=kind)


def _split_row(rng: np.random.Generator, s: int, n: int, number: int) -> np.ndarray:
    """Onwards round the ring, perhaps; otherwise to states of the same half, often the same state."""
    if number == 0:
        return rng.dirichlet(np.ones(2)) @ np.eye(n)[[s, (s + 1) % n]]
    half = [j for j in range(n) if j % 2 == s % 2]
    targets = [s] if rng.random() < 0.5 else rng.choice(half, int(rng.integers(1, len(half) + 1)), replace=False)
    return rng.dirichlet(np.ones(len(targets))) @ np.eye(n)[targets]


def _hard_row(rng: np.random.Generator, kind: str, s: int, n: int) -> np.ndarray:
    row = np.zeros(n)
    if kind == "periodic":  # onwards or back to the first state
        ahead = [*range(s + 1, n), 0]
        targets = rng.choice(ahead, min(len(ahead), int(rng.integers(1, 3))), replace=False)
        row[targets] = rng.dirichlet(np.ones(len(targets)))
        return row
    targets = rng.choice(n, int(rng.integers(1, n + 1)), replace=False)
    row[targets] = rng.dirichlet(np.ones(len(targets)))
    if kind in ("stiff", "both") and rng.random() < 0.6:
        row[targets] *= 10.0 ** rng.uniform(-12, 0, len(targets))
        row[targets[0]] = 1.0
    if kind in ("loops", "both") and rng.random() < 0.6:
        row[s] = 0.0
        row = row / row.sum() * 2.0**-40 if row.any() else row
        row[s] = 1 - 2.0**-40
    if row[0] == 0:
        row[0] = row.sum() * (1e-12 if kind in ("stiff", "both") else 2.0**-40 if kind == "loops" else 0.1)
    return row / row.sum()


def _normalised(row: Vector) -> Vector:
    total = sum(row)
    return [p / total for p in row]
