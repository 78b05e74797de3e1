"""A plan set as plain data for the page: numbers formatted, pictures packed, nothing that needs the model any more."""

from __future__ import annotations

import base64
import shlex
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from manyways.arrays import Floats, Ints
from manyways.behaviour import Labels, StateActions, States
from manyways.layout import Grid
from manyways.mdp import MDP
from manyways.methods import FrankWolfe, ProjectedGradient, VertexAscent
from manyways.occupancy import state_occupancy
from manyways.planset import PlanSet
from manyways.portrait import Measure, Portrait, measures, portraits
from manyways.report.chart import price_chart

if TYPE_CHECKING:
    from manyways.studies.sweeping import Sweep

LARGEST_SIDE = 256
"""Maps with more cells than this along a side are drawn in blocks of cells."""
BARS, STATES_COMPARED = 8, 40
RUNS = 3
STEPS_IN_ALL, LONGEST_RUN, SHORTEST_RUN, USUAL_RUN = 40_000, 2_000, 40, 200
"""Of the sampled runs that a page carries."""
NUMBERED_CELLS = 30
"""Up to so many plans, the distances are a table with numbers; beyond, a picture that tells them when pointed at."""


def view(plans: PlanSet, sweep: Sweep | None = None) -> dict[str, Any]:
    """All that the page shows of the plans."""
    found, words = measures(plans), portraits(plans)
    by_state = state_occupancy(plans.mdp, plans.occupancies)
    return {
        "model": plans.mdp.name,
        "size": f"{plans.mdp.n_states:,} states, {plans.mdp.n_choices:,} choices",
        "k": plans.k,
        "promise": _promise(plans),
        "settings": {"k": plans.k, "tradeoff": f"{plans.tradeoff:.6g}", "seed": plans.seed},
        "drawn": plans.mdp.layout is not None,
        "marks": _map_marks(plans.mdp),
        "cards": [_card(plans, i, words[i], found, by_state[i]) for i in range(plans.k)],
        "optimum": f"{plans.optimal_reward:.4g}",
        "diversity": f"{plans.diversity:.3f}",
        "table": _table(found, plans.k),
        "distances": _distances(plans),
        "duplicates": [(i + 1, j + 1) for i, j in plans.near_duplicates],
        "chart": price_chart(plans, sweep),
        "facts": _facts(plans),
        "certificate": None if plans.certificate is None else [_check(check) for check in plans.certificate.checks],
        "verified": plans.certificate is not None and plans.certificate.ok,
        "reproduction": _reproduction(plans),
        "data": _data(plans, words, found, by_state),
    }


def _promise(plans: PlanSet) -> str:
    """How good the plans are, in one sentence."""
    low, high, best = float(plans.rewards.min()), float(plans.rewards.max()), plans.optimal_reward
    if best <= 0:
        return f"These plans earn {low:.4g} to {high:.4g} a step, where no plan can earn more than {best:.4g}."
    least, most = (f"{100 * reward / best + 0.0:.0f}" for reward in (low, high))
    span = least if least == most else f"{least} to {most}"
    return f"These plans earn {span} % of what the very best plan earns."


# ---- cards ------------------------------------------------------------------------------------


def _card(plans: PlanSet, i: int, words: Portrait, found: list[Measure], by_state: Floats) -> dict[str, Any]:
    figures = [
        {"name": measure.name, "text": shown(measure.values[i], measure.unit), "meaning": measure.meaning}
        for measure in found[:3]
    ]
    return {
        "number": i + 1,
        "key": plans.key(i),
        "title": words.title,
        "sentences": words.sentences,
        "figures": figures,
        "share": _percent_of_optimum(plans, i),
        "bars": None if plans.mdp.layout is not None else _bars(plans.mdp, by_state),
        "kept": i in plans.kept,
    }


def _percent_of_optimum(plans: PlanSet, i: int) -> str | None:
    if plans.optimal_reward <= 0:
        return None
    return f"{100 * plans.rewards[i] / plans.optimal_reward + 0.0:.0f} % of optimal"


def _bars(mdp: MDP, by_state: Floats) -> list[dict[str, Any]]:
    """The states most visited and the labels, by share of time, widest bar first."""
    top = np.argsort(-by_state, kind="stable")[:BARS]
    rows = [(mdp.state_name(int(s)), float(by_state[s]), "state") for s in top if by_state[s] > 0]
    marked = [(name, float(by_state[mask].sum()), "label") for name, mask in mdp.labels.items() if mask.any()]
    marked = sorted((row for row in marked if 0 < row[1] < 1), key=lambda row: -row[1])[:BARS]
    return [
        {"name": name, "kind": kind, "share": f"{100 * share:.1f} %", "width": round(100 * share, 2)}
        for name, share, kind in (*marked, *rows)
    ]


# ---- tables -----------------------------------------------------------------------------------


def shown(value: float | None, unit: str) -> str:
    """A measure's value as text."""
    if value is None or not isfinite(value):
        return "–"
    if unit == "share":
        percent = 100 * value
        return f"{percent:.1f} %" if abs(percent) >= 0.05 or percent == 0 else f"{percent:.1g} %"
    if unit == "steps":
        return f"{value:,.1f}"
    return f"{value + 0.0:.4g}"


@dataclass(frozen=True)
class Cell:
    """One number of the comparison: `tone` from -1, the worst of its column, to 1, the best."""

    text: str
    tone: float
    sort: float


def _table(found: list[Measure], k: int) -> dict[str, Any]:
    texts = {m.name: {shown(value, m.unit) for value in m.values} for m in found}
    told = [m for i, m in enumerate(found) if i < 2 or k == 1 or len(texts[m.name]) > 1]
    columns = [{"name": m.name, "meaning": m.meaning, "better": m.better} for m in told]
    cells = [_column(measure) for measure in told]
    same = [(m.name, *texts[m.name]) for m in found if m not in told]
    return {"columns": columns, "rows": [[column[i] for column in cells] for i in range(k)], "same": same}


def _column(measure: Measure) -> list[Cell]:
    known = [value for value in measure.values if value is not None and isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    texts = [shown(value, measure.unit) for value in measure.values]
    level = measure.better == 0 or len(set(texts)) == 1  # a difference that cannot be read is none
    cells = []
    for value, text in zip(measure.values, texts, strict=True):
        if value is None or not isfinite(value):
            cells.append(Cell(text, 0.0, float("-inf")))
            continue
        tone = 0.0 if level or high == low else measure.better * (2 * (value - low) / (high - low) - 1)
        cells.append(Cell(text, round(tone, 2), value))
    return cells


def _distances(plans: PlanSet) -> list[list[dict[str, Any]]] | None:
    if plans.k > NUMBERED_CELLS:
        return None
    most = np.log(2)
    return [
        [{"text": f"{value:.2f}", "share": round(float(value / most), 3), "own": i == j} for j, value in enumerate(row)]
        for i, row in enumerate(plans.distances)
    ]


# ---- for the curious --------------------------------------------------------------------------


def _facts(plans: PlanSet) -> list[tuple[str, str]]:
    versions = ", ".join(f"{name} {version}" for name, version in plans.versions.items())
    facts = [
        ("Model", f"{plans.mdp.name}: {plans.mdp.n_states:,} states, {plans.mdp.n_choices:,} choices"),
        ("Fingerprint of the model", plans.mdp.digest[:16]),
        ("Objective", f"{plans.objective:.6g} = mean reward {plans.rewards.mean():.6g} + {plans.tradeoff:g} × diversity {plans.diversity:.4f}"),
        ("Highest reward of any plan", f"{plans.optimal_reward:.6g} per step (proved)"),
        ("What counts as different", repr(plans.behaviour)),
        ("What counts as reward", repr(plans.criterion)),
        ("Search", f"{plans.method!r}, seed {plans.seed}: {plans.status}, {plans.seconds:.2f} s"),
        ("Frank-Wolfe gap", f"{plans.gap:.4g}" if isfinite(plans.gap) else "not computed: it was interrupted"),
        ("Programs", versions),
    ]  # fmt: skip
    if plans.kept:
        kept = ", ".join(str(i + 1) for i in plans.kept)
        facts.insert(
            2, ("Kept from an earlier set", f"plan{'s' * (len(plans.kept) > 1)} {kept}; {len(plans.avoided)} avoided")
        )
    return facts


def _check(check: Any) -> dict[str, Any]:
    return {
        "name": check.name,
        "error": f"{check.error:.1e}" if isfinite(check.error) else "unknown",
        "tolerance": f"{check.tolerance:.0e}",
        "ok": check.ok,
    }


def _reproduction(plans: PlanSet) -> dict[str, str]:
    """How to have these plans again: the command, or, for what no command can say, the call."""
    options = _options(plans)
    if plans.mdp.source is not None and options is not None and not plans.kept and not len(plans.avoided):
        return {"kind": "command", "text": shlex.join(["manyways", "plan", plans.mdp.source, *options])}
    around = ", keep=plans.policies[list(plans.kept)], avoid=plans.avoided" if plans.kept or len(plans.avoided) else ""
    call = (
        f"mw.plan(plans.mdp, k={plans.k}, tradeoff={plans.tradeoff!r}, seed={plans.seed}, method=mw.{plans.method!r}, "
        f"criterion=mw.{plans.criterion!r}, behaviour=mw.{plans.behaviour!r}{around})"
    )
    return {"kind": "call", "text": f"import manyways as mw\n\nplans = mw.load('plans.mw')\nagain = {call}"}


def _options(plans: PlanSet) -> list[str] | None:
    """The options of `manyways plan`, or None if the settings are beyond them."""
    options = ["--k", str(plans.k), "--tradeoff", repr(plans.tradeoff), "--seed", str(plans.seed)]
    if plans.criterion.discount < 1:
        options += ["--discount", repr(plans.criterion.discount)]
    names = {StateActions(): None, States(): "states", Labels(): "labels"}
    if plans.behaviour not in names:
        return None
    if names[plans.behaviour]:
        options += ["--behaviour", str(names[plans.behaviour])]
    method = plans.method
    if isinstance(method, VertexAscent):
        if asdict(method) != asdict(VertexAscent(starts=method.starts, workers=method.workers)):
            return None
        options += ["--starts", str(method.starts)] if method.starts else []
    elif method == FrankWolfe():
        options += ["--method", "frank-wolfe"]
    elif method == ProjectedGradient():
        options += ["--method", "projected-gradient"]
    else:
        return None
    return options


# ---- pictures and runs ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Canvas:
    """A grid as it is drawn: cells of the picture, each a block of `block` x `block` cells of the world."""

    layout: Grid
    block: int

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.layout.shape
        return -(-rows // self.block), -(-columns // self.block)

    def cells(self, world_cells: Ints) -> Ints:
        row, column = np.divmod(np.asarray(world_cells, np.int64), self.layout.shape[1])
        return row // self.block * self.shape[1] + column // self.block

    def total(self, picture: np.ndarray) -> Floats:
        """(rows, columns) of the world -> (cells of the picture,) sums."""
        cells = self.cells(np.arange(picture.size))
        return np.bincount(cells, weights=picture.ravel(), minlength=self.shape[0] * self.shape[1]).astype(np.float64)


def _map_marks(mdp: MDP) -> dict[str, bool]:
    """Which marks the legend of the maps explains."""
    if mdp.layout is None:
        return {"wall": False, "start": False, "goal": False}
    return {
        "wall": bool(mdp.layout.blocked.any()),
        "start": bool(mdp.start.any()),
        "goal": bool(mdp.layout.goals.size) or bool(mdp.labels.get("goal", np.zeros(1)).any()),
    }


def _data(plans: PlanSet, words: list[Portrait], found: list[Measure], by_state: Floats) -> dict[str, Any]:
    """What the page's script draws, compares and plays."""
    mdp = plans.mdp
    canvas = None if mdp.layout is None else _Canvas(mdp.layout, -(-max(mdp.layout.shape) // LARGEST_SIDE))
    if canvas is None:
        # The same states for all plans, so that any two can be compared.
        told = np.argsort(-by_state.max(axis=0), kind="stable")[:STATES_COMPARED]
        world = {"names": [mdp.state_name(int(s)) for s in told]}
        pictures = [{"shares": [round(float(x), 5) for x in row[told]]} for row in by_state]
    else:
        world = _world(mdp, canvas)
        pictures = [_packed(canvas.total(canvas.layout.image(row))) for row in by_state]
    runs = _runs(plans, found, canvas)
    return {
        "world": world,
        "distances": [[round(float(x), 3) for x in row] for row in plans.distances],
        "plans": [
            {"key": plans.key(i), "title": words[i].title, **pictures[i], "runs": runs[i]} for i in range(plans.k)
        ],
        "visited": _names_on_the_way(mdp, runs) if canvas is None else None,
    }


def _world(mdp: MDP, canvas: _Canvas) -> dict[str, Any]:
    layout = canvas.layout
    covered = canvas.total(np.ones(layout.shape))
    walls = canvas.total(layout.blocked.astype(float)) / np.maximum(covered, 1) > 0.5
    goals = np.concatenate([layout.goals, layout.cells[mdp.labels.get("goal", np.zeros(mdp.n_states, bool))]])
    return {
        "rows": canvas.shape[0],
        "columns": canvas.shape[1],
        "block": canvas.block,
        "walls": _text(np.packbits(walls)),
        "start": np.unique(canvas.cells(layout.cells[mdp.start > 0])).tolist()[:50],
        "goals": np.unique(canvas.cells(goals)).tolist()[:50],
    }


def _packed(time: Floats) -> dict[str, Any]:
    """A byte per cell. The square root lets a path that is walked once a round show beside a cell stayed in."""
    peak = max(float(time.max()), 1e-12)
    return {"peak": peak, "time": _text(np.round(255 * np.sqrt(time / peak)).astype(np.uint8))}


def _text(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def _runs(plans: PlanSet, found: list[Measure], canvas: _Canvas | None) -> list[list[dict[str, Any]]]:
    """A few sampled runs of each plan: where it was and what it had earned after each step.

    All plans are run with the same seeds, so that side by side they meet the same luck.
    """
    steps = next((measure.values for measure in found if measure.name == "steps to goal"), (None,) * plans.k)
    most = STEPS_IN_ALL // (plans.k * RUNS)
    runs = []
    for i in range(plans.k):
        expected = steps[i]
        wanted = USUAL_RUN if expected is None else int(min(2 * expected, LONGEST_RUN))
        length = int(np.clip(wanted, SHORTEST_RUN, max(most, SHORTEST_RUN)))
        policy = plans.policy(i)
        own = []
        for seed in range(RUNS):
            run = policy.rollout(length, np.random.default_rng(seed))
            at = run.states if canvas is None else canvas.cells(canvas.layout.cells[run.states])
            earned = [float(f"{x:.5g}") for x in np.cumsum(run.rewards)]
            own.append({"at": at.tolist(), "earned": earned})
        runs.append(own)
    return runs


def _names_on_the_way(mdp: MDP, runs: list[list[dict[str, Any]]]) -> dict[int, str]:
    visited = {state for own in runs for run in own for state in run["at"]}
    return {state: mdp.state_name(state) for state in sorted(visited)}
