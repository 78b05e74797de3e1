"""The preference study: do sets of plans serve persons whose preferences nobody wrote down?

Two studies on the same worlds: `sets` compares sets of plans (`contestants`) for many simulated persons (`persons`), `rounds`
lets some of them choose by rounds (`Conversation`). Rules: `preference_claims`. Measure: `shares`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from manyways.errors import check_integer
from manyways.studies.contestants import CONTESTANTS, REPRESENTATIVE, UNLIMITED
from manyways.studies.figures import GREY, kept_apart, label_axes, shown_size
from manyways.studies.persons import FAMILIES, SMOOTH
from manyways.studies.preference_claims import round_claims, set_claims
from manyways.studies.preference_trials import CHOOSERS
from manyways.studies.results import Results
from manyways.studies.runs import run_studies
from manyways.studies.shares import ALL, MEASURES, WITHIN, Shares, shares_of_rounds, shares_of_sets
from manyways.studies.study import Report, Study, StudyResults, Table
from manyways.studies.study_worlds import KINDS, WorldSettings
from manyways.studies.trial import Trial
from manyways.studies.verdicts import interval

ROUND_K = 6
ROUND_FAMILIES = (*SMOOTH, "zones", "trend")
OWN, OTHER = "#08519c", GREY
"""Colours of the representative set and of the others."""
LOWEST_SHARE = -0.3
"""Figures cut off what is worse; the tables have the numbers."""


@dataclass(frozen=True)
class PreferenceSettings(WorldSettings):
    """The settings of the preference study that a user can change.

    Attributes:
        trials, seed, worlds, sizes: see `WorldSettings`.
        persons: how many persons there are of each family and strength; in rounds, one in eight of them, at least one.
        rounds: the number of rounds.
    """

    persons: int = 8
    rounds: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("persons", self.persons, 1)
        check_integer("rounds", self.rounds, 1)

    def facts(self) -> str:
        """The settings in words, for the page."""
        return (
            f"Worlds: {', '.join(self.sources())}. Persons of each family and strength in each world: {self.persons}; in "
            f"rounds: {self.persons_in_rounds}."
        )

    @property
    def persons_in_rounds(self) -> int:
        return max(1, self.persons // 8)


def _set_trials(settings: PreferenceSettings) -> list[Trial]:
    trials = []
    for source in settings.sources():
        world = {"source": source, "persons": settings.persons, "families": " ".join(FAMILIES)}
        trials.append(Trial("persons", world))
        trials += [
            Trial("set", world | {"contestant": name, "k": k, "seed": 0})
            for k in dict.fromkeys(settings.sizes)
            for name in CONTESTANTS
        ]
    return trials


def _round_trials(settings: PreferenceSettings) -> list[Trial]:
    shared = {
        "persons": settings.persons_in_rounds,
        "families": " ".join(ROUND_FAMILIES),
        "k": ROUND_K,
        "rounds": settings.rounds,
        "seed": 0,
    }
    return [
        Trial("rounds", shared | {"source": source, "chooser": chooser})
        for source in settings.sources()
        for chooser in CHOOSERS
    ]


def _set_figures(found: Results, settings: PreferenceSettings) -> dict[str, Figure]:
    shares, k = shares_of_sets(found), shown_size(settings.sizes)
    if shares is None:
        return {}
    return {"sets-smooth": _by_set(shares, k), "sets-families": _by_family(shares, k), "sets-size": _by_size(shares)}


def _by_set(shares: Shares, k: int) -> Figure:
    """The share of each set with its interval, for smooth preferences, by both measures."""
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    names = [name for name in CONTESTANTS if (name, k) in shares.gains]
    order = sorted(names, key=lambda name: shares.of((name, k), SMOOTH, ALL).value)
    for panel, measure in zip(panels, MEASURES, strict=True):
        for y, name in enumerate(order):
            if measure == WITHIN and name in UNLIMITED:
                continue
            share = shares.of((name, k), SMOOTH, measure)
            if np.isfinite(share.value):
                low, high = interval(share.samples)
                colour = OWN if name == REPRESENTATIVE else OTHER
                panel.plot([low, high], [y, y], color=colour, linewidth=2)
                panel.plot(share.value, y, "o", color=colour)
        panel.set_xlim(LOWEST_SHARE, 1.02)
        panel.axvline(0, color="black", linewidth=0.6)
        panel.set_xlabel(f"share of the possible gain\n{MEASURES[measure]}")
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(order)), order)
    figure.suptitle(f"Smooth preferences, k = {k}", fontsize=11)
    return figure


def _by_family(shares: Shares, k: int) -> Figure:
    """The share of each set for each family, within the slack, as shades."""
    names = [name for name in CONTESTANTS if (name, k) in shares.gains and name not in UNLIMITED]
    families = [family for family in shares.families() if shares.counts([family], WITHIN)]
    values = np.array([[shares.of((name, k), [family], WITHIN).value for family in families] for name in names])
    figure = Figure(figsize=(10, 5.4), layout="constrained")
    panel = figure.subplots()
    panel.imshow(values, cmap="Blues", vmin=0, vmax=1.3, aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        panel.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=9)
    panel.set_xticks(range(len(families)), families)
    panel.set_yticks(range(len(names)), names)
    panel.set_title(f"Share of the possible gain of the plans within the slack, k = {k}", fontsize=11)
    return figure


def _by_size(shares: Shares) -> Figure:
    """The share over k of the representative set and, in grey, of the others, for smooth preferences."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    sizes = sorted(key[1] for key in shares.gains if isinstance(key, tuple) and key[0] == REPRESENTATIVE)
    for panel, measure in zip(figure.subplots(1, 2), MEASURES, strict=True):
        lines: dict[str, float] = {}
        for name in reversed(CONTESTANTS):
            if measure == WITHIN and name in UNLIMITED:
                continue
            found = [shares.of((name, k), SMOOTH, measure).value for k in sizes]
            own = name == REPRESENTATIVE
            panel.plot(sizes, found, "o-", color=OWN if own else OTHER, linewidth=2.2 if own else 0.8, markersize=3)
            if found[-1] > LOWEST_SHARE:
                lines[name] = found[-1]
            panel.set_xticks(sizes)
        names = sorted(lines, key=lambda name: lines[name])
        for name, at in zip(names, kept_apart([lines[name] for name in names], 0.04), strict=True):
            panel.annotate(f"  {name}", (max(sizes), at), fontsize=7, va="center", annotation_clip=False)
        panel.set_ylim(LOWEST_SHARE, 1.02)
        label_axes(panel, "size of the set, k", f"share of the possible gain\n{MEASURES[measure]}")
    return figure


def _round_figures(found: Results, settings: PreferenceSettings) -> dict[str, Figure]:
    shares = shares_of_rounds(found)
    if shares is None:
        return {}
    figure = Figure(figsize=(10, 4), layout="constrained")
    numbers = range(1, settings.rounds + 1)
    groups = {"smooth": SMOOTH, **{name: (name,) for name in shares.families() if name not in SMOOTH}}
    marks = dict(zip(groups, "os^Dv", strict=False))
    for panel, chooser in zip(figure.subplots(1, len(CHOOSERS), sharey=True), CHOOSERS, strict=True):
        for name, families in groups.items():
            if not shares.counts(families, WITHIN):
                continue
            found_shares = [shares.of((chooser, number), families, WITHIN) for number in numbers]
            low, high = np.transpose([interval(share.samples) for share in found_shares])
            (line,) = panel.plot(numbers, [share.value for share in found_shares], marker=marks[name], label=name)
            panel.fill_between(numbers, low, high, color=line.get_color(), alpha=0.12, linewidth=0)
        panel.set_title(f"{chooser} answers", fontsize=11)
        panel.set_ylim(LOWEST_SHARE, 1.05)
        label_axes(panel, "round", f"share of the possible gain\n{MEASURES[WITHIN]}")
        panel.legend(frameon=False, fontsize=9)
    return {"rounds": figure}


def _set_tables(found: Results) -> list[Table]:
    shares = shares_of_sets(found)
    if shares is None:
        return []
    k = shown_size([row["k"] for row in found.good if "k" in row])
    others = [family for family in shares.families() if family not in SMOOTH]
    groups = {"smooth": SMOOTH, **{name: (name,) for name in others}}
    tables = []
    for measure in MEASURES:
        counted = {name: families for name, families in groups.items() if shares.counts(families, measure)}
        rows = []
        for name in CONTESTANTS:
            if (name, k) not in shares.gains or (measure == WITHIN and name in UNLIMITED):
                continue
            own = [row for row in found.good if row.get("contestant") == name and row["k"] == k]
            rows.append(
                [
                    name,
                    *(str(shares.of((name, k), families, measure)) for families in counted.values()),
                    f"{shares.worst_tenth((name, k), SMOOTH, measure):.2f}",
                    f"{np.mean([row['worst_plan'] for row in own]):.2f}",
                    f"{np.mean([row['seconds'] for row in own]):.2f}",
                ]
            )
        head = ["Set", *counted, "smooth, worst tenth", "worst plan, of the optimum", "seconds"]
        tables.append(Table(f"Share of the possible gain {MEASURES[measure]}, k = {k}", head, rows))
    return tables


def _round_tables(found: Results) -> list[Table]:
    shares = shares_of_rounds(found)
    if shares is None:
        return []
    groups = {"smooth": SMOOTH, **{name: (name,) for name in shares.families() if name not in SMOOTH}}
    tables = []
    for measure in MEASURES:
        rows = [
            [
                f"{key[0]}, round {key[1]}",
                *(str(shares.of(key, families, measure)) for families in groups.values()),
                f"{shares.worst_tenth(key, SMOOTH, measure):.2f}",
            ]
            for key in shares.gains
            if isinstance(key, tuple)
        ]
        tables.append(
            Table(
                f"Share of the possible gain {MEASURES[measure]}, k = {ROUND_K}",
                ["Answers", *groups, "smooth, worst tenth"],
                rows,
            )
        )
    return tables


STUDIES: dict[str, Study[PreferenceSettings]] = {
    "sets": Study(
        "Which set serves persons whose preferences nobody wrote down?",
        "The best plan of each set for each person, against the best plan for the known reward and the best plan for the "
        "person's true reward.",
        _set_trials,
        _set_figures,
        set_claims,
        tables=_set_tables,
        entry="person",
    ),
    "rounds": Study(
        "Choosing by rounds",
        "Persons take one of six representative plans in each round; the next six have learned from it.",
        _round_trials,
        _round_figures,
        round_claims,
        tables=_round_tables,
        entry="person",
    ),
}

PREFERENCES = Report(
    "preferences",
    "Plans for preferences that nobody wrote down",
    (
        "A person has a true reward: the known reward of the model, and a preference of their own that no plan was made "
        "for. This page says how much of what the person could gain by it they get from the best plan of a set. Preferences "
        "are smooth over the model at three scales, rectangular zones, worths of labels or actions, single spots, a trend in "
        "one direction, or closeness to walls, each at three strengths.",
        "The share of the possible gain is 0 for the best plan for the known reward alone, and 1 for the best plan for the "
        "person's true reward: of all plans, or of the plans within 10 % of the best value. All sets but two are within these "
        "10 %, and use about as many linear solves as the representative set.",
    ),
    PreferenceSettings,
    STUDIES,
)


def preference_study(
    *,
    out: str | Path = "preferences",
    trials: int = 5,
    seed: int = 0,
    worlds: Sequence[str] = KINDS,
    k: Sequence[int] = (2, 4, 6, 8),
    persons: int = 8,
    rounds: int = 6,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> dict[str, StudyResults]:
    """Measure how well sets of plans, and choosing by rounds, serve simulated persons with preferences of their own.

    Args:
        out: the output folder for rows, figures and preferences.html. Rows that it already holds are not computed again.
        trials, seed, worlds, persons, rounds: see `PreferenceSettings`.
        k: numbers of plans in a set.
        workers, cluster, progress: as for `manyways.paper`.

    Returns:
        The rows and verdicts of the studies `sets` and `rounds`.
    """
    settings = PreferenceSettings(trials, seed, tuple(worlds), tuple(k), persons, rounds)
    return run_studies(PREFERENCES, list(STUDIES), settings, out, workers=workers, cluster=cluster, progress=progress)
