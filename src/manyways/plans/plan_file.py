"""The file of a plan set (`.mw`): an archive of arrays with a JSON header, the model included.

This module turns the fields of a `PlanSet` into bytes and back; `PlanSet.save` and `load` are built on it.

Version 1 was written by manyways 0.1.0. Version 2 names the objective as well, and may hold arrays of settings. Version 3
has limits, holds the value of a discounted plan as a sum (earlier: times 1 - discount), and the best policy of a proof with
probabilities (earlier: one choice per state).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import asdict
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from manyways.behaviours import BEHAVIOURS
from manyways.errors import ModelError, PlanFileError, SettingError, check_integer, check_number
from manyways.files.archive import pack, unpack
from manyways.methods import METHODS, Status, Trace
from manyways.model.as_arrays import PLAN_SCHEMA, PLAN_VERSIONS, model_from_arrays, model_to_arrays
from manyways.model.checking import check_text
from manyways.model.mdp import MDP
from manyways.model.occupancy import check_policy, deterministic
from manyways.objectives import OBJECTIVES, MeanDivergence
from manyways.plans.certificate import Certificate, Check
from manyways.plans.checker import PlanProof, SetProof
from manyways.polytope import CRITERIA, Limits
from manyways.registry import UnknownKind

VERSION = 3


def to_bytes(fields: Mapping[str, Any]) -> bytes:
    """The content of a file, from the fields of a `PlanSet`.

    Raises:
        SettingError: if a setting is of a class that is not registered, since the file could not be read again.
    """
    mdp = fields["mdp"]
    model_header, arrays = model_to_arrays(mdp)
    header = header_of(fields, model_header, arrays)
    arrays |= {name: fields[name] for name in ("policies", "occupancies", "rewards", "distances")}
    arrays["avoided"] = fields["avoided"].reshape(-1, mdp.n_choices)
    arrays |= {f"trace/{name}": column for name, column in vars(fields["trace"]).items()}
    arrays |= _proof_arrays(fields["proof"])
    return pack(PLAN_SCHEMA, VERSION, header, arrays)


def header_of(
    fields: Mapping[str, Any], model_header: Mapping[str, Any], arrays: dict[str, np.ndarray]
) -> dict[str, Any]:
    """The header of a file, from the fields of a `PlanSet` that are no arrays; arrays of settings are added to `arrays`."""
    certificate, gap = fields["certificate"], fields["gap"]
    return {
        "model": model_header,
        "settings": {
            "objective": OBJECTIVES.to_plain(fields["maximised"], arrays),
            "criterion": CRITERIA.to_plain(fields["criterion"], arrays),
            "behaviour": BEHAVIOURS.to_plain(fields["behaviour"], arrays),
            "method": METHODS.to_plain(fields["method"], arrays),
            "seed": fields["seed"],
            "kept": list(fields["kept"]),
            "kept_titles": list(fields["kept_titles"]),
            "limits": asdict(fields["limits"]),
            "asked": fields["asked"],
            "fewer": fields["fewer"],
            "derived": fields["derived"],
        },
        "result": {
            "objective": fields["objective"],
            "optimal_reward": fields["optimal_reward"],
            "gap": gap if isfinite(gap) else None,
            "status": fields["status"].name,
            "seconds": fields["seconds"],
            "like": fields["like"],
        },
        "versions": dict(fields["versions"]),
        "certificate": None if certificate is None else [_finite(asdict(check)) for check in certificate.checks],
    }


def read_file(path: Path) -> dict[str, Any]:
    """The fields of the `PlanSet` in a file."""
    return _fields(str(path), *unpack(path, str(path), PLAN_SCHEMA, PLAN_VERSIONS))


def read_bytes(content: bytes, name: str) -> dict[str, Any]:
    """The fields of the `PlanSet` in the content of a file; `name` is what errors call it."""
    return _fields(name, *unpack(io.BytesIO(content), name, PLAN_SCHEMA, PLAN_VERSIONS))


def _fields(path: str, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    try:
        mdp = model_from_arrays(header["model"], arrays)
        if mdp.digest != header["model"]["digest"]:
            raise PlanFileError(
                f"{path} is damaged: its model is not the one that was planned for (digest {mdp.digest[:8]})"
            )
        result, settings = header["result"], header["settings"]
        checks = header["certificate"]
        arrays = {"avoided": np.empty((0, mdp.n_choices)), **arrays}  # early files have none
        criterion = CRITERIA.from_plain(settings["criterion"], arrays)
        one = criterion.value_of_one if header["version"] < 3 else 1.0
        k, steps = len(arrays["policies"]), len(arrays["trace/objective"])
        if k < 1:
            raise ModelError("it holds no plans")
        return {
            "mdp": mdp,
            "policies": np.stack([check_policy(mdp, row) for row in _fitting(arrays, "policies", k, mdp.n_choices)]),
            "occupancies": _fitting(arrays, "occupancies", k, mdp.n_choices),
            "rewards": one * _fitting(arrays, "rewards", k),
            "distances": _fitting(arrays, "distances", k, k),
            "objective": check_number("objective", result["objective"]),
            "optimal_reward": one * check_number("optimal_reward", result["optimal_reward"]),
            "gap": inf if result["gap"] is None else check_number("gap", result["gap"]),
            "status": Status[result["status"]],
            "trace": Trace(**{name: _fitting(arrays, f"trace/{name}", steps) for name in Trace.__dataclass_fields__}),
            "maximised": MeanDivergence(check_number("tradeoff", settings["tradeoff"], 0))
            if header["version"] == 1
            else OBJECTIVES.from_plain(settings["objective"], arrays),
            "criterion": criterion,
            "behaviour": BEHAVIOURS.from_plain(settings["behaviour"], arrays),
            "method": METHODS.from_plain(settings["method"], arrays),
            "seed": check_integer("seed", settings["seed"], 0),
            "seconds": check_number("seconds", result["seconds"], 0),
            "versions": dict(header["versions"]),
            "certificate": None if checks is None else Certificate(tuple(_check(check) for check in checks)),
            "proof": _proof(arrays, k, mdp),
            "kept": _positions(settings.get("kept", ()), k),
            "kept_titles": _titles(settings.get("kept_titles", ()), len(settings.get("kept", ()))),
            "avoided": _fitting(arrays, "avoided", len(arrays["avoided"]), mdp.n_choices),
            "limits": _limits(settings.get("limits", {})),
            "asked": None if settings.get("asked") is None else check_integer("asked", settings["asked"], k),
            "like": None if result.get("like") is None else _positions([result["like"]], k)[0],
            "fewer": settings.get("fewer") is True,
            "derived": settings.get("derived") is True,
        }
    except PlanFileError:
        raise
    except UnknownKind as error:
        raise PlanFileError(
            f"{path} cannot be read here: ", in_python=str(error), on_command_line=error.on_command_line
        ) from None
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise PlanFileError(f"{path} is damaged: {error}") from None


def _proof_arrays(proof: SetProof | None) -> dict[str, np.ndarray]:
    """The vectors of a proof, by the name of their array."""
    if proof is None:
        return {}
    arrays = {"proof/best": proof.best, "proof/optimum": proof.optimum}
    arrays |= {"proof/multipliers/optimum": proof.optimum_multipliers, "proof/multipliers/gap": proof.gap_multipliers}
    arrays |= {
        f"proof/{name}": value
        for name, value in (("gap", proof.gap), ("best_x", proof.best_x), ("way", proof.way))
        if value is not None
    }
    for name, part in {"best": proof.best_plan, **dict(enumerate(proof.plans))}.items():
        if part is not None:
            arrays |= {f"proof/{name}/{field}": np.asarray(value) for field, value in vars(part).items()}
    return arrays


def _proof(arrays: Mapping[str, np.ndarray], k: int, mdp: MDP) -> SetProof | None:
    """The proof in the arrays of a file; `verify` makes new vectors where they do not fit."""
    if "proof/best" not in arrays:
        return None

    def plan(name: object) -> PlanProof | None:
        parts = [arrays[key] for field in ("h", "w", "y", "reference") if (key := f"proof/{name}/{field}") in arrays]
        if len(parts) < 4 or any(part.dtype.kind not in "fi" for part in parts) or parts[3].size != 1:
            return None
        h, w, y, reference = parts
        return PlanProof(np.atleast_2d(h), np.atleast_2d(w), y, int(reference.ravel()[0]))

    best, optimum = arrays["proof/best"], arrays["proof/optimum"]
    own = arrays.get("proof/multipliers/optimum", np.empty(0))
    multipliers = arrays.get("proof/multipliers/gap", np.empty((k, 0)))
    if best.dtype.kind == "i" and best.shape == (mdp.n_states,):  # before version 3
        inside = (best >= mdp.first_choice[:-1]) & (best < mdp.first_choice[1:])
        best = deterministic(mdp, np.where(inside, best, mdp.first_choice[:-1]))
    if any(part.dtype.kind != "f" for part in (best, optimum, own, multipliers)):
        raise ModelError("the arrays of the proof must be numbers")
    plans = tuple(plan(i) for i in range(k))
    gap, best_x, way = (arrays.get(f"proof/{name}") for name in ("gap", "best_x", "way"))
    way = None if way is None else np.atleast_2d(way)
    return SetProof(plans, best, plan("best"), np.atleast_2d(optimum), gap, own, multipliers, best_x, way)


def _limits(given: Any) -> Limits:
    if not isinstance(given, Mapping):
        raise SettingError(f"expected the limits of plans, found {given!r:.60}")
    return Limits(**given)


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


def _titles(given: Any, kept: int) -> tuple[str, ...]:
    if (
        not isinstance(given, (list, tuple))
        or len(given) not in (0, kept)
        or not all(isinstance(t, str) for t in given)
    ):
        raise SettingError(f"expected the titles of {kept} kept plans, found {given!r:.60}")
    check_text(title=list(given))
    return tuple(given)


def _finite(check: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: an error that is not finite is written as null."""
    return check | {"error": check["error"] if np.isfinite(check["error"]) else None}


def _check(check: Mapping[str, Any]) -> Check:
    error = np.inf if check["error"] is None else check_number("error", check["error"])
    check_text(check=[check["name"]])
    return Check(str(check["name"]), error, check_number("tolerance", check["tolerance"]))
