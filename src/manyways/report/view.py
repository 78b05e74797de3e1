"""A plan set as plain data for the page: numbers formatted, pictures packed, nothing that needs the model any more."""

from __future__ import annotations

import base64
import shlex
from dataclasses import dataclass, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import numpy as np

from manyways.behaviours import StateActions
from manyways.describe import Measure, Portrait, measures, portraits
from manyways.methods import VertexAscent
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.objectives import MeanDivergence
from manyways.plans.planset import PlanSet
from manyways.polytope import Average
from manyways.registry import word_for
from manyways.types import Floats, Ints

LARGEST_SIDE = 256
"""Maps with more cells than this along a side are drawn in blocks of cells."""
BARS, COMPARED = 5, 40
LEAST_MORE = 0.002
"""A share of time by which a plan must exceed the mean of the others to be told."""
NOT_SHOWN = 0.0005
"""A share of time that would be told as 0.0 %."""
NOTHING = 1e-9
"""Rewards below this, relative to the model's largest, are rounding."""
LIKE = 0.005
"""Shares that differ by less are told as the same."""
RUNS, ROUNDS = 3, 2
STEPS_IN_ALL, LONGEST_RUN, SHORTEST_RUN, USUAL_RUN = 40_000, 2_000, 40, 200
"""Of the sampled runs that a page carries."""
ON_CARDS = ("steps to goal", "reaches goal", "chance of reaching goal")
"""The measures, beside reward and what is lost, that stand on the card of each plan."""
NUMBERED_CELLS = 30
"""Up to so many plans, the distances are a table with numbers; beyond, a picture that tells them when pointed at."""


def view(plans: PlanSet) -> dict[str, Any]:
    """All that the page shows of the plans themselves."""
    found, words = measures(plans), portraits(plans)
    by_state = state_occupancy(plans.mdp, plans.occupancies)
    return {
        "model": plans.mdp.name,
        "with": _settings_of_source(plans.mdp),
        "k": plans.k,
        "promise": _promise(plans),
        "settings": {"k": plans.k, "tradeoff": _tradeoff(plans), "seed": plans.seed},
        "drawn": plans.mdp.layout is not None,
        "marks": _map_marks(plans.mdp),
        "cards": [_card(plans, i, words[i], found, by_state[i]) for i in range(plans.k)],
        "optimum": f"{plans.optimal_reward:.4g}",
        "diversity": f"{plans.diversity:.3f}",
        "table": _table(found, plans.k),
        "distances": _distances(plans),
        "duplicates": [(i + 1, j + 1) for i, j in plans.near_duplicates],
        "facts": _facts(plans),
        "certificate": None if plans.certificate is None else [_check(check) for check in plans.certificate.checks],
        "verified": plans.certificate is not None and plans.certificate.ok,
        "data": _data(plans, words, found, by_state),
    }


def _settings_of_source(mdp: MDP) -> str:
    """The settings with which the model was read: "map_name=8x8, terminal=restart"."""
    query = (mdp.source or "").partition("?")[2]
    return ", ".join(f"{name}={value}" for name, value in parse_qsl(query, keep_blank_values=True))


def _tradeoff(plans: PlanSet) -> str:
    return "" if plans.tradeoff is None else f"{plans.tradeoff:.6g}"


def kept_in(plans: PlanSet, file: Path | None) -> dict[str, Any]:
    """What depends on where the plans are saved: the commands that the page tells."""
    return {"file": None if file is None else shlex.quote(str(file)), "reproduction": _reproduction(plans, file)}


def _promise(plans: PlanSet) -> str:
    """How good the plans are, in one sentence."""
    low, high, best = float(plans.rewards.min()), float(plans.rewards.max()), plans.optimal_reward
    who = "These plans earn" if plans.k > 1 else "It earns"
    if best <= NOTHING * float(np.abs(plans.mdp.reward).max()):
        span = " to ".join(dict.fromkeys((f"{low:.4g}", f"{high:.4g}")))
        return f"{who} {span} a step, where no plan can earn more than {best:.4g}."
    span = " to ".join(dict.fromkeys(_percent_of_best(reward / best) for reward in (low, high)))
    return f"{who} {span} % of what the very best plan earns."


def _percent_of_best(share: float) -> str:
    """Never 100 for less than all: what stands for it is rounded down there."""
    percent = 100 * share
    if percent > 100 - 1e-7:
        return "100"
    return f"{percent + 0.0:.0f}" if percent < 99 else f"{np.floor(10 * percent) / 10:.1f}"


# ---- cards ------------------------------------------------------------------------------------


def _card(plans: PlanSet, i: int, words: Portrait, found: list[Measure], by_state: Floats) -> dict[str, Any]:
    figures = [
        {"name": measure.name, "text": _texts(measure)[i], "meaning": measure.meaning}
        for number, measure in enumerate(found)
        if number < 2 or measure.name in ON_CARDS
    ]
    return {
        "number": i + 1,
        "key": plans[i].key,
        "title": words.title,
        "sentences": words.sentences,
        "figures": figures,
        "bars": None if plans.mdp.layout is not None else _bars(plans, i, by_state),
        "origin": "" if not plans.kept else "kept" if i in plans.kept else "new",
    }


def _bars(plans: PlanSet, i: int, by_state: Floats) -> list[dict[str, Any]]:
    """What a plan does more than the others, the states that it visits most, and the labels; by share of time."""
    mdp = plans.mdp
    top = np.argsort(-by_state, kind="stable")[:BARS]
    rows = [(mdp.state_name(int(s)), float(by_state[s]), "Most visited states") for s in top if by_state[s] > NOT_SHOWN]
    marked = [(name, float(by_state[mask].sum()), "Labels") for name, mask in mdp.labels.items() if mask.any()]
    marked = sorted((row for row in marked if NOT_SHOWN < row[1] < 1), key=lambda row: -row[1])[:BARS]
    own: list[tuple[str, float, str]] = []
    if plans.k > 1:
        more = plans.occupancies[i] - np.delete(plans.occupancies, i, axis=0).mean(axis=0)
        most = np.argsort(-more, kind="stable")[:BARS]
        heading = f"Does more than the other{'s' if plans.k > 2 else ' plan'}"
        own = [
            (choice_name(mdp, int(x)), float(plans.occupancies[i, x]), heading) for x in most if more[x] > LEAST_MORE
        ]
        own.sort(key=lambda row: -row[1])
    # Bars are drawn to the longest of their kind: of thousands of states each has little, and the number says how much.
    return [
        {"name": name, "kind": kind, "share": f"{100 * share:.1f} %", "width": round(100 * share / part[0][1], 1)}
        for part in (own, marked, rows)
        for name, share, kind in part
    ]


def choice_name(mdp: MDP, choice: int) -> str:
    """ "home: bike"."""
    return f"{mdp.state_name(int(mdp.choice_state[choice]))}: {mdp.action_name(choice)}"


# ---- tables -----------------------------------------------------------------------------------


def _texts(measure: Measure) -> list[str]:
    """A measure's values as text, rewards all to the same place after the point."""
    known = [abs(value) for value in measure.values if value is not None and isfinite(value)]
    largest = max(known, default=0.0)
    spread = max(known, default=0.0) - min(known, default=0.0)
    finest = min((x for x in (largest, 10 * spread) if x > NOTHING * largest), default=1.0)
    digits = int(np.clip(3 - np.floor(np.log10(finest)), 0, 12))

    def text(value: float | None) -> str:
        if value is None or not isfinite(value):
            return "–"
        if measure.unit == "share":
            percent = 100 * value
            return f"{percent:.1f} %" if abs(percent) >= 0.05 or percent == 0 else f"{percent:.1g} %"
        if measure.unit == "steps":
            return f"{value:,.1f}"
        return f"{value + 0.0:,.{digits}f}"

    return [text(value) for value in measure.values]


@dataclass(frozen=True)
class Cell:
    """One number of the comparison: `tone` from -1, the worst of its column, to 1, the best; `rank` says which it is."""

    text: str
    tone: float
    sort: float
    rank: str = ""


def _table(found: list[Measure], k: int) -> dict[str, Any]:
    told = [m for i, m in enumerate(found) if i < 2 or k == 1 or not _alike(m)]
    columns = [{"name": m.name, "meaning": m.meaning, "better": m.better} for m in told]
    cells = [_column(measure) for measure in told]
    same = [(m.name, " to ".join(dict.fromkeys((min(_texts(m)), max(_texts(m)))))) for m in found if m not in told]
    return {"columns": columns, "rows": [[column[i] for column in cells] for i in range(k)], "same": same}


def _alike(measure: Measure) -> bool:
    """Whether the plans hardly differ in it."""
    known = [value for value in measure.values if value is not None]
    close = measure.unit == "share" and len(known) == len(measure.values) and max(known) - min(known) < LIKE
    return close or len(set(_texts(measure))) == 1


def _column(measure: Measure) -> list[Cell]:
    known = [value for value in measure.values if value is not None and isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    texts = _texts(measure)
    level = measure.better == 0 or len(set(texts)) == 1  # a difference that cannot be read is none
    cells = []
    for value, text in zip(measure.values, texts, strict=True):
        if value is None or not isfinite(value):
            cells.append(Cell(text, 0.0, float("-inf")))
            continue
        tone = 0.0 if level or high == low else measure.better * (2 * (value - low) / (high - low) - 1)
        cells.append(Cell(text, round(tone, 2), value))
    if level:
        return cells
    # What cannot be told apart when read is equally good.
    best, worst = (max(cells, key=lambda cell: sign * cell.tone).text for sign in (1, -1))
    ranks = {worst: "worst", best: "best"}
    return [replace(cell, rank=ranks.get(cell.text, "")) for cell in cells]


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
        ("Objective", f"{plans.objective:.6g}: {plans.maximised.describe()}; mean reward {plans.rewards.mean():.6g}, diversity {plans.diversity:.4f}"),
        ("Highest reward of any plan", f"{plans.optimal_reward:.6g} per step (proved)"),
        ("What counts as different", _described(plans.behaviour)),
        ("What counts as reward", _described(plans.criterion)),
        ("Search", f"{plans.method!r}, seed {plans.seed}: {plans.status}, {plans.seconds:.2f} s"),
        ("Frank-Wolfe gap", f"{plans.gap:.4g}: what a first-order step could still gain at most" if isfinite(plans.gap) else "not computed: it was interrupted"),
        ("Programs", versions),
    ]  # fmt: skip
    if plans.kept:
        kept = ", ".join(str(i + 1) for i in plans.kept)
        facts.insert(
            2, ("Kept from an earlier set", f"plan{'s' * (len(plans.kept) > 1)} {kept}; {len(plans.avoided)} avoided")
        )
    return facts


def _described(kind: Any) -> str:
    """What a setting means, and the setting itself."""
    words = kind.describe()
    return repr(kind) if words == repr(kind) else f"{words}: {kind!r}"


def _check(check: Any) -> dict[str, Any]:
    return {
        "name": check.name,
        "error": f"{check.error:.1e}" if isfinite(check.error) else "unknown",
        "tolerance": f"{check.tolerance:.0e}",
        "ok": check.ok,
    }


def _reproduction(plans: PlanSet, file: Path | None) -> dict[str, str]:
    """How to have these plans again: the command, or, for what no command can say, the call."""
    options = _options(plans)
    if plans.mdp.source is not None and options is not None and not plans.kept and not len(plans.avoided):
        return {"kind": "command", "text": shlex.join(["manyways", "plan", plans.mdp.source, *options])}
    around = ", keep=plans.policies[list(plans.kept)], avoid=plans.avoided" if plans.kept or len(plans.avoided) else ""
    call = (
        f"mw.plan(plans.mdp, k={plans.k}, objective=plans.maximised, seed={plans.seed}, method=plans.method, "
        f"criterion=plans.criterion, behaviour=plans.behaviour{around})"
    )
    saved = f"mw.load({str(file)!r})" if file is not None else "mw.load('plans.mw')  # wherever this very set is saved"
    return {"kind": "call", "text": f"import manyways as mw\n\nplans = {saved}\nagain = {call}"}


OPTIONS = {
    ("VertexAscent", "starts"): "--starts",
    ("VertexAscent", "workers"): "--workers",
    ("Discounted", "discount"): "--discount",
    ("MeanDivergence", "tradeoff"): "--tradeoff",
}
"""The settings of classes that `manyways plan` has options for."""


def _options(plans: PlanSet) -> list[str] | None:
    """The options of `manyways plan`, or None if the settings are beyond them."""
    options = ["--k", str(plans.k), "--seed", str(plans.seed)]
    kinds = (
        (plans.maximised, MeanDivergence, None),
        (plans.criterion, Average, None),
        (plans.behaviour, StateActions, "--behaviour"),
        (plans.method, VertexAscent, "--method"),
    )
    for kind, usual, option in kinds:
        changed = [item.name for item in fields(kind) if getattr(kind, item.name) != item.default]
        named = [OPTIONS.get((type(kind).__name__, name)) for name in changed]
        if None in named or (type(kind) is not usual and option is None and not named):
            return None
        if type(kind) is not usual and option is not None:
            options += [option, word_for(type(kind).__name__)]
        for name, flag in zip(changed, named, strict=True):
            options += [str(flag), str(getattr(kind, name))]
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


def _map_marks(mdp: MDP) -> dict[str, Any]:
    """Which marks the legend of the maps explains, and what the dark cells are."""
    if mdp.layout is None:
        return {"wall": "", "start": False, "goal": False}
    entered = mdp.layout.blocked.ravel()[mdp.layout.cells].any()
    wall = mdp.layout.blocked_means or ("wall (can be crossed, at a cost)" if entered else "no way through")
    return {
        "wall": wall if mdp.layout.blocked.any() else "",
        "start": bool(mdp.start.any()),
        "goal": bool(mdp.layout.goals.size) or bool(mdp.labels.get("goal", np.zeros(1)).any()),
    }


def _data(plans: PlanSet, words: list[Portrait], found: list[Measure], by_state: Floats) -> dict[str, Any]:
    """What the page's script draws, compares and plays."""
    mdp = plans.mdp
    canvas = None if mdp.layout is None else _Canvas(mdp.layout, -(-max(mdp.layout.shape) // LARGEST_SIDE))
    if canvas is None:
        # The same choices for all plans, so that any two can be compared: those in which the plans differ most.
        told = np.argsort(-np.ptp(plans.occupancies, axis=0), kind="stable")[:COMPARED]
        world = {"names": [choice_name(mdp, int(x)) for x in told]}
        pictures = [{"shares": [round(float(x), 5) for x in row[told]]} for row in plans.occupancies]
    else:
        world = _world(mdp, canvas)
        pictures = [_packed(canvas.total(canvas.layout.image(row))) for row in by_state]
    runs = _runs(plans, found, canvas)
    return {
        "world": world,
        "distances": [[round(float(x), 3) for x in row] for row in plans.distances],
        "plans": [
            {"key": plans[i].key, "title": words[i].title, **pictures[i], "runs": runs[i]} for i in range(plans.k)
        ],
        "visited": _names_on_the_way(mdp, runs) if canvas is None else None,
    }


def _world(mdp: MDP, canvas: _Canvas) -> dict[str, Any]:
    layout = canvas.layout
    covered = canvas.total(np.ones(layout.shape))
    walls = canvas.total(layout.blocked.astype(float)) / np.maximum(covered, 1)
    goals = np.concatenate([layout.goals, layout.cells[mdp.labels.get("goal", np.zeros(mdp.n_states, bool))]])
    return {
        "rows": canvas.shape[0],
        "columns": canvas.shape[1],
        "block": canvas.block,
        "walls": _text(np.round(255 * walls).astype(np.uint8)),  # in blocks, thin walls are grey and doors show
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
    """A few sampled runs of each plan: where it was (without a map: its choice), what it could expect to have earned
    after each step, and when it met the goal, or when and how its episodes ended.

    All plans are run with the same seeds, so that side by side they meet the same luck. A run ends with its
    second visit to the goal, or the end of its second episode, if it comes to that.
    """
    mdp, kinds = plans.mdp, list(plans.mdp.ends)
    goal = mdp.labels.get("goal", np.zeros(mdp.n_states, bool))
    lengths = [measure.values for measure in found if measure.name in ("steps to goal", "steps per episode")]
    steps = lengths[0] if lengths else (None,) * plans.k
    most = STEPS_IN_ALL // (plans.k * RUNS)
    runs = []
    for i in range(plans.k):
        expected = steps[i]
        wanted = USUAL_RUN if expected is None else int(min(4 * expected, LONGEST_RUN))
        length = int(np.clip(wanted, SHORTEST_RUN, max(most, SHORTEST_RUN)))
        policy = plans[i].policy
        own = []
        for seed in range(RUNS):
            run = policy.rollout(length, np.random.default_rng(seed))
            met = np.flatnonzero(run.ends >= 0 if kinds else goal[run.states])[:ROUNDS].tolist()
            end = met[-1] + 1 if len(met) == ROUNDS else length
            at = run.choices if canvas is None else canvas.cells(canvas.layout.cells[run.states])
            earned = [float(f"{x:.5g}") for x in np.cumsum(run.rewards)[:end]]
            ends = [kinds[kind] for kind in run.ends[met]] if kinds else None
            own.append({"at": at[:end].tolist(), "earned": earned, "met": met, "ends": ends})
        runs.append(own)
    return runs


def _names_on_the_way(mdp: MDP, runs: list[list[dict[str, Any]]]) -> dict[int, str]:
    taken = {choice for own in runs for run in own for choice in run["at"]}
    return {choice: choice_name(mdp, choice) for choice in sorted(taken)}
