"""The result: a frozen set of plans, with everything needed to check, show, keep and repeat it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from math import inf, isfinite
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyways.arrays import Floats, check_text
from manyways.behaviour import Behaviour, Labels, StateActions, States
from manyways.errors import ModelError, PlanFileError, SettingError, check_number, check_whole
from manyways.formats.archive import pack, unpack, write_whole
from manyways.formats.model_arrays import model_from_arrays, model_to_arrays
from manyways.mdp import MDP
from manyways.methods import FrankWolfe, Method, ProjectedGradient, Status, Trace, VertexAscent
from manyways.occupancy import check_policy
from manyways.policy import Policy
from manyways.polytope import Average, Criterion, Discounted

if TYPE_CHECKING:
    from manyways.studies.sweeping import Sweep

SCHEMA = "manyways plans"
VERSION = 1
NEAR_DUPLICATE = 0.01
"""Plans closer than this (in nats, of at most 0.693) are as good as the same."""

CRITERIA = (Average, Discounted)
BEHAVIOURS = (StateActions, States, Labels)
METHODS = (VertexAscent, FrankWolfe, ProjectedGradient)
"""The kinds of settings that a plan file may name."""


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
        gap: the Frank-Wolfe gap of the set, an upper bound: 0 at a stationary point. Infinite if its computation
            was interrupted.
        status: how the method ended.
        trace: how it got there.
        tradeoff, criterion, behaviour, method, seed: the settings.
        kept: the plans (counted from 0) that were given and stayed; the others were found around them.
        avoided: (m, N) policies that the plans found had to differ from as well.
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
    kept: tuple[int, ...] = ()
    avoided: Floats = field(default_factory=lambda: np.empty((0, 0)))

    def __post_init__(self) -> None:
        for name in ("policies", "occupancies", "rewards", "distances", "avoided"):
            array = np.array(getattr(self, name))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

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

    def policy(self, plan: int) -> Policy:
        """One plan, counted from 0, to act with, to run, to save."""
        return Policy(self.mdp, self.policies[plan])

    def key(self, plan: int) -> str:
        """The same for the same policy (counted from 0) in the same model, whatever set it is in."""
        content = self.mdp.digest.encode() + np.ascontiguousarray(self.policies[plan]).tobytes()
        return hashlib.sha256(content).hexdigest()[:16]

    def draw(self, path: str | PathLike[str]) -> Path:
        """Write the picture of the plans' occupancy maps (.png, .svg or .pdf); returns where."""
        from manyways.draw import occupancy_maps, save_picture  # matplotlib takes its time to load

        titles = [f"plan {i + 1}: reward {reward:.3f}" for i, reward in enumerate(self.rewards)]
        heading = f"{self.mdp.name}\n{self.k} plans, mean reward {self.rewards.mean():.3f} of {self.optimal_reward:.3f}, diversity {self.diversity:.3f}"
        save_picture(occupancy_maps(self.mdp, self.occupancies, titles, heading), Path(path))
        return Path(path)

    def report(
        self,
        path: str | PathLike[str],
        sweep: Sweep | None = None,
        plans_file: str | PathLike[str] | None = None,
    ) -> Path:
        """Write the page on which to compare the plans: one .html file, for any browser; returns where.

        Args:
            path: of the page.
            sweep: of the same model, whose curve the page shows beside this set.
            plans_file: where the plans are saved, for the commands that the page tells.
        """
        from manyways.report import write_report

        write_report(self, Path(path), sweep, None if plans_file is None else Path(plans_file))
        return Path(path)

    def _repr_html_(self) -> str:
        from manyways.report import notebook_view

        return notebook_view(self)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything, the model included, to one file; returns where."""
        write_whole(Path(path), self.to_bytes())
        return Path(path)

    def to_bytes(self) -> bytes:
        """What `save` writes."""
        model_header, arrays = model_to_arrays(self.mdp)
        header = {
            "model": model_header,
            "settings": {
                "tradeoff": self.tradeoff,
                "seed": self.seed,
                "criterion": _described(self.criterion),
                "behaviour": _described(self.behaviour),
                "method": _described(self.method),
                "kept": list(self.kept),
            },
            "result": {
                "objective": self.objective,
                "optimal_reward": self.optimal_reward,
                "gap": self.gap if isfinite(self.gap) else None,
                "status": self.status.name,
                "seconds": self.seconds,
            },
            "versions": dict(self.versions),
            "certificate": None
            if self.certificate is None
            else [_finite(asdict(check)) for check in self.certificate.checks],
        }
        arrays |= {
            "policies": self.policies,
            "occupancies": self.occupancies,
            "rewards": self.rewards,
            "distances": self.distances,
            "avoided": self.avoided.reshape(-1, self.mdp.n_choices),
        } | {f"trace/{name}": column for name, column in vars(self.trace).items()}
        return pack(SCHEMA, VERSION, header, arrays)

    def with_certificate(self, certificate: Certificate) -> PlanSet:
        return replace(self, certificate=certificate)


def load(path: str | PathLike[str]) -> PlanSet:
    """Read a plan set that `PlanSet.save` wrote."""
    return _rebuild(str(path), *unpack(Path(path), str(path), SCHEMA, VERSION))


def from_bytes(content: bytes, name: str) -> PlanSet:
    """What `load` reads, from memory; `name` is what errors call it."""
    return _rebuild(name, *unpack(io.BytesIO(content), name, SCHEMA, VERSION))


def _rebuild(path: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> PlanSet:
    try:
        mdp = model_from_arrays(header["model"], arrays)
        if mdp.digest != header["model"]["digest"]:
            raise PlanFileError(
                f"{path} is damaged: its model is not the one that was planned for (digest {mdp.digest[:8]})"
            )
        result, settings = header["result"], header["settings"]
        checks = header["certificate"]
        arrays = {"avoided": np.empty((0, mdp.n_choices)), **arrays}  # files of version 0.1.0 have none
        k, steps = len(arrays["policies"]), len(arrays["trace/objective"])
        if k < 1:
            raise ModelError("it holds no plans")
        return PlanSet(
            mdp=mdp,
            policies=np.stack([check_policy(mdp, row) for row in _fitting(arrays, "policies", k, mdp.n_choices)]),
            occupancies=_fitting(arrays, "occupancies", k, mdp.n_choices),
            rewards=_fitting(arrays, "rewards", k),
            distances=_fitting(arrays, "distances", k, k),
            objective=check_number("objective", result["objective"]),
            optimal_reward=check_number("optimal_reward", result["optimal_reward"]),
            gap=inf if result["gap"] is None else check_number("gap", result["gap"]),
            status=Status[result["status"]],
            trace=Trace(**{name: _fitting(arrays, f"trace/{name}", steps) for name in Trace.__dataclass_fields__}),
            tradeoff=check_number("tradeoff", settings["tradeoff"], 0),
            criterion=_rebuilt(settings["criterion"], CRITERIA),
            behaviour=_rebuilt(settings["behaviour"], BEHAVIOURS),
            method=_rebuilt(settings["method"], METHODS),
            seed=check_whole("seed", settings["seed"], 0),
            seconds=check_number("seconds", result["seconds"], 0),
            versions=dict(header["versions"]),
            certificate=None if checks is None else Certificate(tuple(_check(check) for check in checks)),
            kept=_positions(settings.get("kept", ()), k),
            avoided=_fitting(arrays, "avoided", len(arrays["avoided"]), mdp.n_choices),
        )
    except (KeyError, TypeError, IndexError, ValueError) as error:
        if isinstance(error, PlanFileError):
            raise
        raise PlanFileError(f"{path} is damaged: {error}") from None


def _fitting(arrays: Mapping[str, np.ndarray], name: str, *shape: int) -> np.ndarray:
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in "fi" or not np.isfinite(array).all():
        raise ModelError(
            f"the array {name!r} must hold finite numbers of shape {shape}, found {array.dtype} of shape {array.shape}"
        )
    return array


def _positions(given: Any, k: int) -> tuple[int, ...]:
    if not isinstance(given, (list, tuple)) or not all(type(i) is int and 0 <= i < k for i in given):
        raise SettingError(f"the plans kept must be numbers from 0 to {k - 1}, found {given!r:.60}")
    return tuple(given)


def _described(value: Any) -> dict[str, Any]:
    """A frozen dataclass of plain settings as JSON."""
    fields = {name: item.item() if isinstance(item, np.generic) else item for name, item in asdict(value).items()}
    return {"type": type(value).__name__} | fields


def _rebuilt(description: Mapping[str, Any], kinds: tuple[type, ...]) -> Any:
    if not isinstance(description, Mapping):
        raise SettingError(
            f"expected a description of one of {', '.join(kind.__name__ for kind in kinds)}, found {description!r}"
        )
    fields = {name: tuple(item) if isinstance(item, list) else item for name, item in description.items()}
    name = fields.pop("type")
    by_name = {kind.__name__: kind for kind in kinds}
    if name not in by_name:
        raise SettingError(f"expected one of {', '.join(by_name)}, found {name!r}")
    return by_name[name](**fields)


def _finite(check: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: an error that is not finite is written as null."""
    return check | {"error": check["error"] if np.isfinite(check["error"]) else None}


def _check(check: Mapping[str, Any]) -> Check:
    error = np.inf if check["error"] is None else check_number("error", check["error"])
    check_text(check=[check["name"]])
    return Check(str(check["name"]), error, check_number("tolerance", check["tolerance"]))
