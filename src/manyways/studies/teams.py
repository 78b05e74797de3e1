"""The team study: what are sets of plans good for if several agents run them at the same time?

Sets and trials: `team_trials`. Measures: `team_measures`. Rules: `team_claims`.

Two slacks by default: where 10 % leave only one way, no set within them can have another one, and 30 % show what a way round
is worth.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manyways.errors import SettingError, check_number
from manyways.studies.contestants import FRANK_WOLFE, LEAST, MEAN, NEAR, RANDOM_PLANS, REPRESENTATIVE
from manyways.studies.figures import GREY, kept_apart, label_axes, shown_size
from manyways.studies.results import Results
from manyways.studies.runs import run_studies
from manyways.studies.study import Report, Study, StudyResults, Table
from manyways.studies.study_worlds import KINDS, WorldSettings
from manyways.studies.team_claims import team_claims
from manyways.studies.team_measures import (
    BEST_VALUE,
    DELAYED,
    MEASURES,
    REACHES,
    REWARD,
    SEEN,
    WORST,
    Measures,
    measures_of,
)
from manyways.studies.team_trials import CLOSURES, CONGESTION, COPIES, COVERAGE, NO_SLACK, TEAM_SETS
from manyways.studies.trial import Trial
from manyways.studies.verdicts import interval

COLOURS = {
    COPIES: "black",
    FRANK_WOLFE: "#d95f0e",
    REPRESENTATIVE: "#08519c",
    MEAN: "#6baed6",
    LEAST: "#9e9ac8",
    NEAR: "#54278f",
    CLOSURES: "#238b45",
    CONGESTION: "#dd1c77",
    COVERAGE: "#8c6d31",
    RANDOM_PLANS: GREY,
}
FRAMED = (REACHES, WORST, BEST_VALUE, SEEN, DELAYED, REWARD)
"""The measures of the first figure."""


@dataclass(frozen=True)
class TeamSettings(WorldSettings):
    """The settings of the team study that a user can change.

    Attributes:
        trials, seed, worlds, sizes: see `WorldSettings`.
        slacks: how much of the best value every plan may give up.
    """

    slacks: tuple[float, ...] = (0.1, 0.3)

    def __post_init__(self) -> None:
        super().__post_init__()
        for slack in self.slacks:
            check_number("the slack", slack, 0)
        if not self.slacks:
            raise SettingError("the study needs at least one slack")

    def facts(self) -> str:
        """The settings in words, for the page."""
        slacks = " and ".join(f"{100 * slack:g} %" for slack in self.slacks)
        return f"Worlds: {', '.join(self.sources())}. Slack: {slacks}."


def _trials(settings: TeamSettings) -> list[Trial]:
    return [
        Trial("team", {"source": source, "set": name, "k": k, "slack": slack, "seed": 0})
        for source in settings.sources()
        for k in dict.fromkeys(settings.sizes)
        for name in TEAM_SETS
        for slack in ((None,) if name in NO_SLACK else dict.fromkeys(settings.slacks))
    ]


def _figures(found: Results, _: TeamSettings) -> dict[str, Figure]:
    measures = measures_of(found)
    if measures is None:
        return {}
    return {
        "teams-measures": _by_measure(measures),
        "teams-size": _by_size(measures),
        "teams-price": _by_price(measures),
    }


def _by_measure(measures: Measures) -> Figure:
    """Six measures of each set with their intervals; for each slack a mark of its own."""
    k = shown_size(measures.sizes)
    order = list(reversed(measures.sets))
    figure = Figure(figsize=(11, 7.2), layout="constrained")
    for panel, measure in zip(figure.subplots(2, 3, sharey=True).flat, FRAMED, strict=True):
        for number, slack in enumerate(measures.slacks):
            for y, name in enumerate(order):
                if name in NO_SLACK and number:
                    continue
                found = measures.of(name, k, slack, measure)
                at = y if name in NO_SLACK else y + 0.32 * (number / max(len(measures.slacks) - 1, 1) - 0.5)
                panel.plot(interval(found.samples), [at, at], color=COLOURS[name], linewidth=1.6)
                filled = COLOURS[name] if number or name in NO_SLACK else "white"
                panel.plot(found.value, at, "o", color=COLOURS[name], markerfacecolor=filled, markersize=5)
        panel.set_yticks(range(len(order)), order)
        panel.grid(axis="x", color="#dddddd", linewidth=0.6)
        label_axes(panel, _in_two_lines(MEASURES[measure]), "")
    first = f"{100 * measures.slacks[0]:g} %"
    rest = " and ".join(f"{100 * slack:g} %" for slack in measures.slacks[1:])
    slacks = f"slack {first} (hollow) and {rest} (filled)" if rest else f"slack {first}"
    figure.suptitle(f"Teams of {k}, {slacks}; 95 % intervals over {len(measures.worlds)} worlds", fontsize=11)
    return figure


def _in_two_lines(text: str) -> str:
    return text.replace(", ", ",\n", 1)


def _by_size(measures: Measures) -> Figure:
    """What more agents bring: arriving under a closure, and reward if meetings cost a step; a row for each slack."""
    figure = Figure(figsize=(11, 4.2 * len(measures.slacks)), layout="constrained")
    panels = np.atleast_2d(figure.subplots(len(measures.slacks), 2, sharex=True))
    for slack, row in zip(measures.slacks, panels, strict=True):
        for panel, measure in zip(row, (REACHES, DELAYED), strict=True):
            _lines(panel, measures, slack, measure)
            panel.set_title(f"slack {100 * slack:g} %", fontsize=11)
    return figure


def _lines(panel: Axes, measures: Measures, slack: float, measure: str) -> None:
    sizes, ends = measures.sizes, {}
    for name in measures.sets:
        found = [measures.of(name, k, slack, measure).value for k in sizes]
        panel.plot(sizes, found, "o-", color=COLOURS[name], linewidth=1.6, markersize=3.5)
        ends[name] = found[-1]
    panel.set_xticks(sizes)
    low, high = panel.get_ylim()
    names = sorted(ends, key=lambda name: ends[name])
    for name, at in zip(names, kept_apart([ends[name] for name in names], 0.05 * (high - low)), strict=True):
        panel.annotate(
            f"  {name}", (max(sizes), at), fontsize=8, va="center", annotation_clip=False, color=COLOURS[name]
        )
    label_axes(panel, "agents, k", _in_two_lines(MEASURES[measure]))


def _by_price(measures: Measures) -> Figure:
    """What a set costs and what it brings: the reward without closures against arriving, and seeing."""
    k = shown_size(measures.sizes)
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    for panel, measure in zip(figure.subplots(1, 2), (REACHES, SEEN), strict=True):
        for name in measures.sets:
            slacks = measures.slacks[:1] if name in NO_SLACK else measures.slacks
            x, y = ([measures.of(name, k, slack, of).value for slack in slacks] for of in (REWARD, measure))
            panel.plot(x, y, "-", color=COLOURS[name], linewidth=0.8)
            sizes = [16 + 30 * number for number in range(len(slacks))]
            panel.scatter(x, y, s=sizes, color=COLOURS[name], label=name, zorder=3)
        label_axes(panel, _in_two_lines(MEASURES[REWARD]), _in_two_lines(MEASURES[measure]))
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False, fontsize=9)
    figure.suptitle(f"Teams of {k}; larger dots: larger slack", fontsize=11)
    return figure


def _tables(found: Results) -> list[Table]:
    measures = measures_of(found)
    if measures is None:
        return []
    k = shown_size(measures.sizes)
    tables = [
        Table(
            f"Teams of {k}, slack {100 * slack:g} %",
            ["Set", *MEASURES.values()],
            [[name, *(str(measures.of(name, k, slack, one)) for one in MEASURES)] for name in measures.sets],
        )
        for slack in measures.slacks
    ]
    for measure in (REACHES, BEST_VALUE, DELAYED):
        tables += [
            Table(
                f"{MEASURES[measure].capitalize()}; slack {100 * slack:g} %",
                ["Set", *(f"k = {size}" for size in measures.sizes)],
                [
                    [name, *(str(measures.of(name, size, slack, measure)) for size in measures.sizes)]
                    for name in measures.sets
                ],
            )
            for slack in measures.slacks
        ]
    return tables


STUDIES: dict[str, Study[TeamSettings]] = {
    "teams": Study(
        "Which plans should a team of agents run?",
        "Are near-optimal diverse strategies useful for collaboration between groups of autonomous agents? Each set gives one "
        "plan to each agent.",
        _trials,
        _figures,
        team_claims,
        tables=_tables,
    ),
}

TEAMS = Report(
    "teams",
    "Plans for teams",
    (
        "Several agents run at the same time, each with a plan of its own and with independent luck; they do not talk to each "
        "other. One of the doors, passages or toll booths of the world may be closed, and no agent knows. Arriving in time means "
        "within twice the mean time of the best plan. A place is any cell or junction between start and goal.",
        "All sets but the copies of the best plan and Frank-Wolfe are within a slack of the best value. If a meeting costs a "
        "step, an agent that earns r per step and meets m others per step earns r / (1 + m / 2): one of the two waits.",
    ),
    TeamSettings,
    STUDIES,
)


def team_study(
    *,
    out: str | Path = "teams",
    trials: int = 5,
    seed: int = 0,
    worlds: Sequence[str] = KINDS,
    k: Sequence[int] = (2, 4, 6, 8),
    slack: Sequence[float] = (0.1, 0.3),
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, StudyResults]:
    """Measure what sets of plans are good for in a team of agents.

    Args:
        out: the output folder for rows, figures and teams.html. Rows that it already holds are not computed again.
        trials, seed, worlds: see `TeamSettings`.
        k: numbers of agents.
        slack: how much of the best value every plan may give up, one or several.
        workers, cluster, progress: as for `manyways.paper`.

    Returns:
        The rows and verdicts of the study `teams`.
    """
    settings = TeamSettings(trials, seed, tuple(worlds), tuple(k), tuple(slack))
    return run_studies(TEAMS, list(STUDIES), settings, out, workers=workers, cluster=cluster, progress=progress)
