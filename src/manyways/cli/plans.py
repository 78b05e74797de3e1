"""The commands about plans: plan, show, verify."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from manyways.cli.common import (
    Cluster,
    Const,
    Discount,
    Floor,
    Goal,
    Json,
    Longer,
    Minimise,
    PlanFile,
    Restart,
    Reward,
    Slack,
    Source,
    Start,
    Tradeoff,
    Without,
    WithoutAction,
    app,
    console,
    note_on_costs,
    note_on_size,
    note_on_version,
    print_json,
    progress_bar,
    with_settings,
)
from manyways.cli.exit_codes import FAILED
from manyways.cli.notes import notes_on
from manyways.cli.tables import certificate_json, certificate_table, print_plans

if TYPE_CHECKING:
    from manyways.behaviours import Behaviour
    from manyways.model.mdp import MDP
    from manyways.objectives import Objective
    from manyways.plans import PlanSet, Policy
    from manyways.polytope import Criterion
    from manyways.registry import Registry
    from manyways.types import Floats

Picture = Annotated[Path | None, typer.Option(help="Write the plans' occupancy maps to this file (.png, .svg, .pdf).")]
Report = Annotated[Path | None, typer.Option(help="Write the page that compares the plans to this file (.html).")]
BehaviourWord = Annotated[
    str | None,
    typer.Option(
        help="What is compared between plans: state-actions, states, near, regions, labels, actions or features. By "
        "default state-actions."
    ),
]
OF_THE_MODEL = ("const", "reward", "start", "goal", "restart", "without", "without_action", "minimise")
"""Options that are settings of a source."""
OPTIONS = {"objective": "diversity", "radius": "apart"}
"""Kinds and settings whose options have other names."""


@app.command(
    epilog="Examples: manyways plan nine-rooms:7 --k 6 --slack 5% --out plans.mw  |  manyways plan map.txt --longer 20%  |  "
    "manyways plan nine-rooms:7 --tradeoff 8"
)
def plan(
    source: Source,
    k: Annotated[int, typer.Option(help="Number of plans.")] = 4,
    slack: Slack = None,
    floor: Floor = None,
    longer: Longer = None,
    tradeoff: Tradeoff = None,
    per: Annotated[
        str | None,
        typer.Option(
            help="What the value of a plan is counted per: step or episode. By default per episode where the model says "
            "how episodes end."
        ),
    ] = None,
    longest: Annotated[
        float | None,
        typer.Option(
            help="The longest mean length of an episode; by default twice that of the best plan, and at most the time limit of "
            "the environment. Implies --per episode."
        ),
    ] = None,
    fewer: Annotated[
        bool | None,
        typer.Option(
            "--fewer/--exactly-k",
            help="Whether to show fewer than k plans where no further plan is really different from the others; by default "
            "unless --tradeoff is given.",
        ),
    ] = None,
    randomised: Annotated[
        bool, typer.Option("--randomised", help="Allow plans to randomise where that is better within the limits.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of all random draws.")] = 0,
    method: Annotated[
        str, typer.Option(help="Search method: vertex-ascent, frank-wolfe or projected-gradient.")
    ] = "vertex-ascent",
    starts: Annotated[int | None, typer.Option(help="Starts of vertex-ascent; more starts find better plans.")] = None,
    workers: Annotated[
        int | None,
        typer.Option(help="Threads that share the work, by default one for each core; the plans do not depend on it."),
    ] = None,
    cluster: Cluster = None,
    discount: Discount = None,
    behaviour: BehaviourWord = None,
    apart: Annotated[
        float | None,
        typer.Option(
            metavar="RADIUS",
            help="Time spent within this distance counts as the same: cells, or metres for nav2 maps. Implies --behaviour near.",
        ),
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option(
            help="What a set is worth beside its reward, where that counts: mean, least, spread, joint, determinant, coverage or congestion. "
            "By default the mean distance; the last two are for teams."
        ),
    ] = None,
    purpose: Annotated[
        str | None,
        typer.Option(
            "--for",
            metavar="PURPOSE",
            help="What the set is for: preferences, so that a person whose preferences nobody wrote down gets most from "
            "choosing, or diversity. By default preferences, unless --tradeoff or --diversity is given.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Stop after this many seconds with the best plans so far.")
    ] = None,
    const: Const = None,
    reward: Reward = None,
    start: Start = None,
    goal: Goal = None,
    restart: Restart = None,
    without: Without = None,
    without_action: WithoutAction = None,
    minimise: Minimise = None,
    keep: Annotated[
        str | None,
        typer.Option(help="Keep these plans of a file and replace its others: plans.mw:1,3. They count among the k."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            help="Where to plan: petsc for models larger than one machine, in an .h5 file and started with mpirun, or on this "
            "machine in as many processes as --workers says; by default in this process."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Save the plans to this file (.mw).")] = None,
    picture: Picture = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Find k near-optimal plans that differ from one another."""
    options = {name: value for name, value in locals().items() if name in SETTINGS}
    from manyways.files import check_writable

    if engine is not None:
        from manyways.cli.engine import plan_on

        given = [name for name, value in options.items() if value != SETTINGS[name].default]
        others = {"keep": keep, "picture": picture, "report": report}
        given += [name for name, value in others.items() if value is not None]
        made = {"objective": _objective(options), "behaviour": chosen_behaviour(behaviour, apart)}
        plan_on(engine, source, {**options, **made}, given, out, as_json)
        return

    for path in (out, report):
        if path is not None:
            check_writable(path)
    if picture is not None:
        from manyways.draw import check_picture_path

        check_picture_path(picture)
    plans = planned(source, quiet=as_json, keep=keep, **options)
    written = {"plans": plans.save(out) if out else None, **_pictures(plans, out, picture, report)}
    print_plans(plans, written, as_json)
    if not plans.status.converged or (plans.certificate is not None and plans.certificate.failed):
        raise typer.Exit(FAILED)


SETTINGS: dict[str, Parameter] = {
    name: parameter
    for name, parameter in signature(plan, eval_str=True).parameters.items()
    if name not in ("source", "keep", "engine", "out", "picture", "report", "as_json")
}
"""The options of `plan` that say what to plan, which `serve` has too."""


def planned(source: str, *, quiet: bool = False, keep: str | None = None, **options: Any) -> PlanSet:
    """The plans that options of `plan` ask for; those that are not given have their defaults."""
    from manyways.methods import METHODS

    given = {name: options.get(name, parameter.default) for name, parameter in SETTINGS.items()}
    tradeoff, fewer, workers = (given[name] for name in ("tradeoff", "fewer", "workers"))
    objective = _objective(given)
    plans = read_and_plan(
        with_settings(source, **{name: given[name] for name in OF_THE_MODEL}),
        given["k"],
        tradeoff if objective is None else None,
        _criterion(given["discount"], given["per"], given["longest"]),
        quiet=quiet,
        keep=keep,
        fewer=tradeoff is None if fewer is None else fewer,
        method=_instance(METHODS, given["method"], starts=given["starts"], workers=workers),
        behaviour=chosen_behaviour(given["behaviour"], given["apart"]),
        objective=objective,
        time_limit_s=given["time_limit"],
        cluster=given["cluster"],
        **{name: given[name] for name in ("slack", "floor", "longer", "randomised", "seed")},
    )
    limited = any(given[name] is not None for name in ("slack", "floor", "longer"))
    for note in notes_on(plans, limited=limited):
        print(f"manyways: {note}", file=sys.stderr)
    return plans


@app.command(epilog="Example: manyways show plans.mw --report plans.html")
def show(
    plans_file: PlanFile,
    picture: Picture = None,
    report: Report = None,
    sweep: Annotated[
        Path | None, typer.Option(help="A folder that 'manyways sweep --out' wrote; the report shows its curve.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the plans of a file: table, picture, page."""
    from manyways.errors import SettingError
    from manyways.plans import load

    if sweep is not None and report is None:
        raise SettingError("--sweep adds a curve to the report: give --report as well")
    plans = load(plans_file)
    print_plans(plans, _pictures(plans, plans_file, picture, report, sweep), as_json)


@app.command(epilog="Examples: manyways verify plans.mw  |  manyways verify plans.mw --model nine-rooms:7")
def verify(
    plans_file: PlanFile,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Check against this model, which is read again, instead of the copy in the file. A source as for 'manyways plan'.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check what a plan file claims about its model."""
    from manyways.formats import read
    from manyways.model.differences import model_differences, perhaps_reordered
    from manyways.plans import load
    from manyways.plans import verify as check

    plans = load(plans_file)
    mdp = plans.mdp if model is None else read(model, absorbing=plans.criterion.discount < 1)
    certificate = check(mdp, plans)
    other = model_differences(mdp, plans.mdp)
    if as_json:
        print_json(certificate_json(certificate) | {"other": other})
    else:
        console().print(certificate_table(certificate))
        if other:
            print(f"{model} differs from the model that was planned for in: {', '.join(other)}.")
            if perhaps_reordered(mdp, plans.mdp):
                print(
                    "Perhaps only the order of states or choices differs: rewards and probabilities are the same ones."
                )
            if plans.mdp.source:
                source = plans.mdp.source
                print(f"The plans were made for: {source}; to check against it: --model {shlex.quote(source)}")
    if not certificate.ok:
        raise typer.Exit(FAILED)


def read_and_plan(
    source: str,
    k: int,
    tradeoff: float | None,
    criterion: Criterion | None = None,
    *,
    quiet: bool = False,
    keep: str | None = None,
    **settings: Any,
) -> PlanSet:
    """Read a model and plan for it, with a progress bar.

    Args:
        source: of the model.
        k, tradeoff: as in `manyways.plan`.
        criterion: what the value of a plan is; by default what `manyways.plan` takes for the model.
        quiet: whether to show no progress bar.
        keep: which plans to keep, as in `plans.mw:1,3`.
        settings: further settings of `manyways.plan`.
    """
    from manyways.formats import read
    from manyways.planning import plan

    with progress_bar(quiet=quiet) as progress:
        mdp = read(source, absorbing=criterion is not None and criterion.discount < 1)
        note_on_costs(mdp)
        note_on_version(source, mdp)
        note_on_size(mdp)
        kept, replaced = (None, None) if keep is None else _kept(keep, mdp)
        return plan(mdp, k, tradeoff, criterion=criterion, progress=progress, keep=kept, avoid=replaced, **settings)


def chosen_behaviour(behaviour: str | None, apart: float | None) -> Behaviour:
    """What the options say is compared."""
    from manyways.behaviours import BEHAVIOURS

    word = behaviour or ("near" if apart is not None else "state-actions")
    return _instance(BEHAVIOURS, word, radius=apart)


def _objective(given: Mapping[str, Any]) -> Objective | None:
    """What the options say a set is worth; None if they leave it open."""
    from manyways.objectives import OBJECTIVES

    diversity = _diversity(given["purpose"], given["diversity"], given["tradeoff"])
    return None if diversity is None else _instance(OBJECTIVES, diversity, tradeoff=given["tradeoff"])


def _diversity(purpose: str | None, diversity: str | None, tradeoff: float | None) -> str | None:
    """The word for the diversity that is maximised; None for the default."""
    from manyways.errors import SettingError

    if purpose not in (None, "preferences", "diversity"):
        raise SettingError(f"--for must be preferences or diversity, found {purpose!r}")
    if purpose == "preferences" and (diversity is not None or tradeoff is not None):
        raise SettingError("--for preferences needs no tradeoff: leave --diversity and --tradeoff out")
    return "mean" if purpose == "diversity" and diversity is None else diversity


def _criterion(discount: float | None, per: str | None, longest: float | None) -> Criterion | None:
    """The criterion that the options ask for; None if they leave it open."""
    from manyways.errors import SettingError
    from manyways.polytope import Average, Discounted, Episodic

    if discount is not None:
        if per is not None or longest is not None:
            raise SettingError("--discount counts the sum of discounted rewards: leave --per and --longest out")
        return Discounted(discount)
    if per not in (None, "step", "episode"):
        raise SettingError(f"--per must be step or episode, found {per!r}")
    if longest is not None and per == "step":
        raise SettingError("--longest limits the length of episodes: leave --per step out")
    if per is None and longest is None:
        return None
    return Average() if per == "step" else Episodic(longest)


def _kept(given: str, mdp: MDP) -> tuple[list[Policy], Floats]:
    """`plans.mw:1,3` -> the policies of these plans with their titles, and those of the other plans of the file."""
    from manyways.errors import SettingError
    from manyways.plans import load

    file, colon, numbers = given.rpartition(":")
    if not colon or not all(number.isdigit() for number in numbers.split(",")):
        raise SettingError(f"--keep expects a file and numbers of its plans, such as plans.mw:1,3, found {given!r}")
    plans = load(file)
    kept = sorted({int(number) - 1 for number in numbers.split(",")})
    if kept[0] < 0 or kept[-1] >= plans.k:
        raise SettingError(f"--keep: {file} has plans 1 to {plans.k}, found {numbers}")
    if plans.mdp.digest != mdp.digest:  # such as the model without what is now banned
        return _carried_over(plans, kept, mdp, file)
    replaced = plans.policies[[i for i in range(plans.k) if i not in kept]]
    return [replace(plans[i].policy, title=plans[i].title) for i in kept], replaced


def _carried_over(plans: PlanSet, kept: list[int], mdp: MDP, file: str) -> tuple[list[Policy], Floats]:
    """The policies of these plans for another model with the same names; there are none to avoid."""
    import numpy as np

    from manyways.errors import SettingError

    found = []
    for i in kept:
        try:
            found.append(replace(plans[i].policy, title=plans[i].title).on(mdp))
        except SettingError as error:
            raise SettingError(
                f"--keep: {file} has plans for another model, {plans.mdp.name}, and plan {i + 1} does not fit this one: {error}"
            ) from None
    return found, np.empty((0, mdp.n_choices))


def _instance(registry: Registry[Any], word: str, **options: Any) -> Any:
    """The object that a word on the command line names, with those of the options that were given as its settings."""
    from manyways.errors import SettingError

    try:
        kind = registry.named(word)
    except SettingError:
        words = ", ".join(registry.words())
        raise SettingError(
            f"--{OPTIONS.get(registry.noun, registry.noun)} must be one of {words}, found {word!r}"
        ) from None
    given = {name: value for name, value in options.items() if value is not None}
    known = {field.name: field for field in fields(kind)}
    for name in given:
        if name not in known:
            raise SettingError(
                f"the {registry.noun} {word} has no setting {name}; leave --{OPTIONS.get(name, name)} out"
            )
    missing = [
        name
        for name, field in known.items()
        if name not in given and field.init and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        raise SettingError(
            f"the {registry.noun} {word} needs {', '.join(missing)}, for which there is no option: plan in Python"
        )
    return kind(**given)


def _pictures(
    plans: PlanSet, file: Path | None, picture: Path | None, report: Path | None, sweep: Path | None = None
) -> dict[str, Path | None]:
    """Write the picture and the page that were asked for, the page with what people said when the file was served."""
    curve = None
    if sweep is not None:
        from manyways.studies.sweeps import load_sweep

        curve = load_sweep(sweep, plans.mdp)
    if report is not None:
        from manyways.report import write_report
        from manyways.web.store import stored_marks

        write_report(plans, report, curve, file, {} if file is None else stored_marks(file))
    return {"picture": plans.draw(picture) if picture else None, "report": report}
