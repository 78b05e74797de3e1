"""How a plan set was made: its settings, its checks, and the command or program that makes it again."""

from __future__ import annotations

import shlex
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from manyways.behaviours import BEHAVIOURS, StateActions
from manyways.describe.wording import quantity, raised, terms_of
from manyways.methods import METHODS, VertexAscent
from manyways.objectives import OBJECTIVES, MeanDivergence
from manyways.plans.certificate import Certificate
from manyways.plans.guarantee import length_of_best
from manyways.plans.planset import PlanSet
from manyways.polytope import Average, Discounted, Episodic
from manyways.registry import Registry
from manyways.tasks import default_aim

OPTIONS = {"tradeoff": "--tradeoff", "radius": "--apart", "starts": "--starts"}
"""The settings that `manyways plan` has options for."""

WITHOUT_EFFECT = {("VertexAscent", "workers")}
"""Settings that the plans do not depend on."""


def facts(plans: PlanSet) -> list[tuple[str, str]]:
    """Names and texts of everything that was set and found."""
    proved = " (proved)" if plans.certificate is not None and plans.certificate.ok else ""
    terms, unit = terms_of(plans.mdp), plans.criterion.unit
    mean, best = terms.shown(plans.rewards.mean()), terms.shown(plans.optimal_reward)
    gap = f"{plans.gap:.4g}: the most that a first-order step could still gain"
    versions = ", ".join(f"{name} {version}" for name, version in plans.versions.items())
    found = [
        ("Model", f"{plans.mdp.name}: {plans.mdp.n_states:,} states, {plans.mdp.n_choices:,} choices"),
        ("Fingerprint of the model", plans.mdp.digest[:16]),
        ("Objective", f"{plans.objective:.6g}: {terms.objective(plans.maximised.describe(), plans.criterion)}; mean {terms.noun} {mean:.6g}, diversity {plans.diversity:.4f}"),
        (f"{raised(terms.best)} {terms.noun} of any plan", f"{best:.6g} {unit}{length_of_best(plans)}{proved}"),
        ("Limits", _limits_told(plans)),
        ("What counts as different", _described(plans.behaviour)),
        (f"What counts as {terms.noun}", _described(plans.criterion)),
        ("Search", f"{_described(plans.method)}, seed {plans.seed}: {plans.status}, {plans.seconds:.2f} s"),
        ("Frank-Wolfe gap", gap if isfinite(plans.gap) else "not computed, because it was interrupted"),
        ("Programs", versions),
    ]  # fmt: skip
    if plans.kept:
        kept = ", ".join(str(i + 1) for i in plans.kept)
        plural = "s" if len(plans.kept) > 1 else ""
        found.insert(2, ("Kept from an earlier set", f"plan{plural} {kept}; {len(plans.avoided)} avoided"))
    return found


def _limits_told(plans: PlanSet) -> str:
    """All limits that hold, also the length of episodes that was filled in by default."""
    parts = [] if plans.guarantee is None else [plans.guarantee]
    if isinstance(plans.criterion, Episodic) and plans.criterion.longest is not None:
        parts.append(f"Episodes last at most {quantity(plans.criterion.longest)} steps on average.")
    return " ".join(parts) or "none"


def _described(kind: Any) -> str:
    """What a setting means, and the setting itself."""
    words = kind.describe()
    return repr(kind) if words == repr(kind) else f"{words}: {kind!r}"


def checks(certificate: Certificate) -> list[dict[str, Any]]:
    """The checks of a certificate as texts."""
    return [
        {
            "name": check.name,
            "error": f"{check.error:.1e}" if isfinite(check.error) else "unknown",
            "tolerance": f"{check.tolerance:.0e}",
            "ok": check.ok,
        }
        for check in certificate.checks
    ]


def reproduction(plans: PlanSet, file: Path | None) -> dict[str, str]:
    """The command that gives the same plans again or, if no command can, the Python program."""
    options = _options(plans)
    if plans.mdp.source is not None and options is not None and not plans.kept and not len(plans.avoided):
        return {"kind": "command", "text": shlex.join(["manyways", "plan", plans.mdp.source, *options])}
    around = ", keep=plans.policies[list(plans.kept)], avoid=plans.avoided" if plans.kept or len(plans.avoided) else ""
    limits = "".join(f", {name}={value!r}" for name, value in _limits(plans).items())
    limits += ", randomised=True" if plans.limits.randomised else ""
    limits += ", fewer=True" if plans.fewer else ""
    objective = f"objective={_objective(plans)}, " if _objective(plans) else ""
    call = (
        f"mw.plan(plans.mdp, k={_asked(plans)}, {objective}seed={plans.seed}, method=plans.method, "
        f"criterion=plans.criterion, behaviour=plans.behaviour{limits}{around})"
    )
    saved = (
        f"mw.load({str(file)!r})" if file is not None else "mw.load('plans.mw')  # the file in which you saved this set"
    )
    needed = "".join(f"import {module}\n" for module in _modules_outside(plans))
    return {"kind": "call", "text": f"import manyways as mw\n{needed}\nplans = {saved}\nagain = {call}"}


def _objective(plans: PlanSet) -> str:
    """The objective as an argument of `manyways.plan`; nothing if it is the default."""
    if not plans.derived:
        return "plans.maximised"
    aim = type(plans.maximised)
    return "" if aim is default_aim(plans.method) else f"mw.{aim.__name__}()"


def _objective_options(plans: PlanSet) -> list[str] | None:
    """The options for the objective, or None if there are none."""
    if not plans.derived:
        return _kind_options(plans.maximised, OBJECTIVES, MeanDivergence, "--diversity")
    aim = type(plans.maximised)
    return [] if aim is default_aim(plans.method) else ["--diversity", OBJECTIVES.word_for(aim.__name__)]


def _asked(plans: PlanSet) -> int:
    """How many plans were asked for."""
    return plans.k if plans.asked is None else plans.asked


def _modules_outside(plans: PlanSet) -> list[str]:
    """The modules outside of this package that define classes of the settings. `mw.load` needs them imported."""
    kinds = (plans.maximised, plans.criterion, plans.behaviour, plans.method)
    modules = {type(kind).__module__ for kind in kinds}
    return sorted(module for module in modules if module.partition(".")[0] not in ("manyways", "__main__"))


def _limits(plans: PlanSet) -> dict[str, float]:
    """The limits as arguments of `manyways.plan`: those that were asked for, not what follows from them."""
    limits = plans.limits
    floor = None if limits.slack is not None else limits.floor
    given = {"slack": limits.slack, "floor": floor, "longer": limits.longer}
    return {name: value for name, value in given.items() if value is not None}


def _options(plans: PlanSet) -> list[str] | None:
    """The options of `manyways plan`, or None if there are no options for some of the settings."""
    parts = (
        _limit_options(plans),
        _objective_options(plans),
        _criterion_options(plans),
        _kind_options(plans.behaviour, BEHAVIOURS, StateActions, "--behaviour"),
        _kind_options(plans.method, METHODS, VertexAscent, "--method"),
    )
    options = ["--k", str(_asked(plans)), "--seed", str(plans.seed)]
    if plans.fewer != plans.derived:  # what the command does by default depends on whether a tradeoff is given
        options.append("--fewer" if plans.fewer else "--exactly-k")
    for part in parts:
        if part is None:
            return None
        options += part
    return options


def _kind_options(kind: Any, registry: Registry[Any], default: type, option: str) -> list[str] | None:
    """The options for an object of settings and its class, or None if there are none."""
    if not type(kind).__module__.startswith("manyways."):
        return None
    options = [] if type(kind) is default else [option, registry.word_for(type(kind).__name__)]
    for field in _changed_fields(kind):
        if field not in OPTIONS:
            return None
        options += [OPTIONS[field], str(getattr(kind, field))]
    return options


def _limit_options(plans: PlanSet) -> list[str]:
    """The options for the limits."""
    limits = [word for name, value in _limits(plans).items() for word in (f"--{name}", repr(value))]
    return [*limits, "--randomised"] if plans.limits.randomised else limits


def _criterion_options(plans: PlanSet) -> list[str] | None:
    """The options for the criterion, or None if there are none."""
    criterion = plans.criterion
    if isinstance(criterion, Discounted):
        return ["--discount", str(criterion.discount)]
    if isinstance(criterion, Episodic):
        return ["--per", "episode", "--longest", str(criterion.longest)]
    if isinstance(criterion, Average):
        return ["--per", "step"] if plans.mdp.ends else []
    return None


def _changed_fields(kind: Any) -> list[str]:
    """The fields whose values are not the defaults and that the plans depend on."""
    values = [(field.name, getattr(kind, field.name), field.default) for field in fields(kind)]
    changed = [name for name, value, default in values if isinstance(value, np.ndarray) or value != default]
    return [name for name in changed if (type(kind).__name__, name) not in WITHOUT_EFFECT]
