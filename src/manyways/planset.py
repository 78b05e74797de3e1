"""The result: a frozen set of plans, with everything needed to check, show, keep and repeat it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.behaviour import Behaviour, Labels, StateActions, States
from manyways.errors import ModelError, PlanFileError, SettingError
from manyways.formats.archive import read_archive, write_archive
from manyways.formats.model_arrays import model_from_arrays, model_to_arrays
from manyways.mdp import MDP, Floats
from manyways.methods import FrankWolfe, Method, ProjectedGradient, Status, Trace, VertexAscent
from manyways.polytope import Average, Criterion, Discounted

SCHEMA = "manyways plans"
VERSION = 1
NEAR_DUPLICATE = 0.01
"""Plans closer than this (in nats, of at most 0.693) are as good as the same."""

_KINDS = {
    kind.__name__: kind
    for kind in (Average, Discounted, StateActions, States, Labels, FrankWolfe, ProjectedGradient, VertexAscent)
}


@dataclass(frozen=True)
class Check:
    """One thing recomputed: how far off it was, and how far it may be."""

    name: str
    error: float
    tolerance: float

    @property
    def ok(self) -> bool:
        return bool(self.error <= self.tolerance)


@dataclass(frozen=True)
class Certificate:
    """What `verify` found when it recomputed a plan set from the model alone."""

    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def __repr__(self) -> str:
        failed = [check.name for check in self.checks if not check.ok]
        return f"Certificate({'ok' if self.ok else 'FAILED: ' + ', '.join(failed)}, {len(self.checks)} checks)"


@dataclass(frozen=True, eq=False, repr=False)
class PlanSet:
    """k plans for one model, best reward first.

    Attributes:
        mdp: the model.
        policies: (k, N) probability of each choice within its state.
        occupancies: (k, N) time that each policy spends on each choice, run from the start.
        rewards: (k,) reward per step of each plan.
        distances: (k, k) pairwise Jensen-Shannon divergences of the behaviours, in nats.
        objective: eq. (main): mean reward + tradeoff x mean distance.
        optimal_reward: the highest reward per step that any policy has.
        gap: the Frank-Wolfe gap of the set, an upper bound: 0 at a stationary point.
        status: how the method ended.
        trace: how it got there.
        tradeoff, criterion, behaviour, method, seed: the settings.
        seconds: how long the method ran.
        versions: of the programs that computed it.
        certificate: what `verify` found, right after planning.
    """

    mdp: MDP
    policies: Floats
    occupancies: Floats
    rewards: Floats
    distances: Floats
    objective: float
    optimal_reward: float
    gap: float
    status: Status
    trace: Trace
    tradeoff: float
    criterion: Criterion
    behaviour: Behaviour
    method: Method
    seed: int
    seconds: float
    versions: Mapping[str, str]
    certificate: Certificate | None = None

    @property
    def k(self) -> int:
        return len(self.policies)

    @property
    def diversity(self) -> float:
        """Mean pairwise Jensen-Shannon divergence, in nats; zero for a single plan."""
        return float(self.distances.sum() / (self.k * (self.k - 1))) if self.k > 1 else 0.0

    @property
    def near_duplicates(self) -> list[tuple[int, int]]:
        """Pairs of plans (counted from 0) that are as good as the same."""
        first, second = np.nonzero(np.triu(self.distances < NEAR_DUPLICATE, 1))
        return [(int(i), int(j)) for i, j in zip(first, second, strict=True)]

    def __repr__(self) -> str:
        return (
            f"PlanSet({self.mdp.name!r}, k={self.k}, objective={self.objective:.4f}, reward={self.rewards.mean():.4f} "
            f"of {self.optimal_reward:.4f}, diversity={self.diversity:.4f}, {self.status})"
        )

    def draw(self, path: str | PathLike[str]) -> Path:
        """Write the picture of the plans' occupancy maps (.png, .svg or .pdf); returns where."""
        from manyways.draw import occupancy_maps, save_picture  # matplotlib takes its time to load

        titles = [f"plan {i + 1}: reward {reward:.3f}" for i, reward in enumerate(self.rewards)]
        heading = f"{self.mdp.name}: {self.k} plans, mean reward {self.rewards.mean():.3f} of {self.optimal_reward:.3f}, diversity {self.diversity:.3f}"
        save_picture(occupancy_maps(self.mdp, self.occupancies, titles, heading), Path(path))
        return Path(path)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything, the model included, to one file; returns where."""
        model_header, arrays = model_to_arrays(self.mdp)
        header = {
            "model": model_header,
            "settings": {
                "tradeoff": self.tradeoff,
                "seed": self.seed,
                "criterion": _described(self.criterion),
                "behaviour": _described(self.behaviour),
                "method": _described(self.method),
            },
            "result": {
                "objective": self.objective,
                "optimal_reward": self.optimal_reward,
                "gap": self.gap,
                "status": self.status.name,
                "seconds": self.seconds,
            },
            "versions": dict(self.versions),
            "certificate": None if self.certificate is None else [asdict(check) for check in self.certificate.checks],
        }
        arrays |= {
            "policies": self.policies,
            "occupancies": self.occupancies,
            "rewards": self.rewards,
            "distances": self.distances,
        } | {f"trace/{name}": column for name, column in vars(self.trace).items()}
        write_archive(Path(path), SCHEMA, VERSION, header, arrays)
        return Path(path)

    def with_certificate(self, certificate: Certificate) -> PlanSet:
        return replace(self, certificate=certificate)


def load(path: str | PathLike[str]) -> PlanSet:
    """Read a plan set that `PlanSet.save` wrote."""
    header, arrays = read_archive(Path(path), SCHEMA, VERSION)
    try:
        mdp = model_from_arrays(header["model"], arrays)
        if mdp.digest != header["model"]["digest"]:
            raise PlanFileError(
                f"{path} is damaged: its model is not the one that was planned for (digest {mdp.digest[:8]})"
            )
        result, settings = header["result"], header["settings"]
        checks = header["certificate"]
        return PlanSet(
            mdp=mdp,
            policies=_matching(arrays["policies"], mdp),
            occupancies=_matching(arrays["occupancies"], mdp),
            rewards=arrays["rewards"],
            distances=arrays["distances"],
            objective=result["objective"],
            optimal_reward=result["optimal_reward"],
            gap=result["gap"],
            status=Status[result["status"]],
            trace=Trace(**{name: arrays[f"trace/{name}"] for name in Trace.__dataclass_fields__}),
            tradeoff=settings["tradeoff"],
            criterion=_rebuilt(settings["criterion"]),
            behaviour=_rebuilt(settings["behaviour"]),
            method=_rebuilt(settings["method"]),
            seed=settings["seed"],
            seconds=result["seconds"],
            versions=header["versions"],
            certificate=None if checks is None else Certificate(tuple(Check(**check) for check in checks)),
        )
    except (KeyError, TypeError, IndexError, ModelError, SettingError) as error:
        raise PlanFileError(f"{path} is damaged: {error}") from None


def _matching(array: np.ndarray, mdp: MDP) -> Floats:
    if array.ndim != 2 or array.shape[1] != mdp.n_choices or array.dtype != np.float64:
        raise ModelError(f"plans of shape {array.shape} do not fit a model of {mdp.n_choices} choices")
    return array


def _described(value: Any) -> dict[str, Any]:
    """A frozen dataclass of plain settings as JSON."""
    return {"type": type(value).__name__} | asdict(value)


def _rebuilt(description: dict[str, Any]) -> Any:
    fields = dict(description)
    kind = fields.pop("type")
    return _KINDS[kind](**fields)
