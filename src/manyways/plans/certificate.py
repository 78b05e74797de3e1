"""The certificate of a plan set: what was recomputed, how far off it was, and how far off it may be."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing recomputed: how far off it was, and how far off it may be."""

    name: str
    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        return bool(self.error <= self.tolerance)


@dataclass(frozen=True)
class Certificate:
    """The checks that were made of a plan set.

    Right after planning these are the checks that can fail then; `verify` makes more of them, because a file may claim
    anything.
    """

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.ok)

    def __repr__(self) -> str:
        result = "FAILED: " + ", ".join(check.name for check in self.failed) if self.failed else "ok"
        return f"Certificate({result}, {len(self.checks)} checks)"
