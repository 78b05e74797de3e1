"""Points of the feasible set, and what an oracle answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from manyways.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Vertex:
    """A plan while it is searched for.

    Attributes:
        occupancy: (N,) the point.
        choices: (S,) the deterministic policy that has this occupancy, if one is known.
    """

    occupancy: Floats
    choices: Ints | None = None


@dataclass(frozen=True, eq=False)
class Answer(Vertex):
    """What an oracle answers for costs c.

    Attributes:
        value: <c, occupancy>.
        bound: no point of the feasible set has more than this; proved by weak duality, up to rounding.
        dual: (S,) the relative values that prove the bound, where the oracle has them.
        multipliers: (m,) of the floors that the oracle respects, if any: the dual proves the bound for c plus the
            multipliers times the floors' weights, minus the multipliers times their levels.
        memory: where the oracle stood at the end, for its next solve; of no use to anybody else.
    """

    value: float = field(kw_only=True)
    bound: float = field(kw_only=True)
    dual: Floats | None = field(default=None, kw_only=True, repr=False)
    multipliers: Floats | None = field(default=None, kw_only=True, repr=False)
    memory: Any = field(default=None, kw_only=True, repr=False)
