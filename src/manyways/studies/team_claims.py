"""The rules of the team study. They were fixed, in words and in code, before the study was run on its worlds.

Numbers are means over worlds, and over all sizes of teams unless a claim names one.
"""

from __future__ import annotations

from collections.abc import Iterator

from manyways.studies.contestants import FRANK_WOLFE, RANDOM_PLANS, REPRESENTATIVE
from manyways.studies.results import Results
from manyways.studies.team_measures import (
    BEST_VALUE,
    DELAYED,
    FIRST_VISIT,
    REACHES,
    SEEN,
    WORST,
    Measures,
    measures_of,
)
from manyways.studies.team_trials import CLOSURES, CONGESTION, COPIES, COVERAGE, DIVERSE, NO_SLACK
from manyways.studies.verdicts import Estimate, Verdict, against, judged, least_lead

CLEARLY_MORE = 0.05
MORE_OFTEN_THAN_NOT = 0.5


def team_claims(found: Results) -> list[Verdict]:
    """What diverse plans are good for in a team, and whether sets made for one purpose serve it best."""
    measures = measures_of(found)
    if measures is None:
        return []
    return [verdict for slack in measures.slacks for verdict in _at(measures, slack)]


def _at(measures: Measures, slack: float) -> Iterator[Verdict]:
    within = f"within {100 * slack:g} %"
    for name in (*DIVERSE, FRANK_WOLFE, RANDOM_PLANS):
        yield _gets_through(measures, slack, name, within)
    for name in DIVERSE:
        yield _few_for_many(measures, slack, name, within)
    yield _worst_closure(measures, slack, within)
    for k in measures.sizes:
        yield _highest(
            measures,
            {name: measures.of(name, k, slack, BEST_VALUE) for name in measures.sets},
            CLOSURES,
            f"Of all sets of {k}, plans for closures ({within}) have the best plan with the highest value under one closure",
        )
    yield _highest(
        measures,
        {name: measures.over_sizes(name, slack, REACHES) for name in measures.sets},
        CLOSURES,
        f"Teams with plans for closures ({within}) arrive in time under an unknown closure more often than all others",
    )
    yield _highest(
        measures,
        {name: measures.over_sizes(name, slack, DELAYED) for name in measures.sets},
        CONGESTION,
        f"Plans that avoid meetings ({within}) have the highest reward if a meeting costs a step",
    )
    limited = [name for name in measures.sets if name not in NO_SLACK]
    yield _highest(
        measures,
        {name: measures.over_sizes(name, slack, SEEN) for name in limited},
        COVERAGE,
        f"Of the sets {within}, plans for coverage see most",
    )
    yield _highest(
        measures,
        {name: _negative(measures.over_sizes(name, slack, FIRST_VISIT)) for name in limited},
        COVERAGE,
        f"Of the sets {within}, plans for coverage are the first at a place on average (times are negative here)",
    )
    for name in (*DIVERSE, FRANK_WOLFE):
        yield _costs_more(measures, slack, name, within)


def _negative(estimate: Estimate) -> Estimate:
    return Estimate(-estimate.value, -estimate.samples)


def _told(name: str, within: str) -> str:
    return f"{name} ({'without limits' if name in NO_SLACK else within})"


def _gets_through(measures: Measures, slack: float, name: str, within: str) -> Verdict:
    own, copies = (measures.over_sizes(one, slack, REACHES) for one in (name, COPIES))
    return Verdict(
        f"With {_told(name, within)}, somebody arrives in time under an unknown closure clearly more often than with copies of "
        "the best plan",
        f"the chance is larger by at least {CLEARLY_MORE:g}",
        name,
        "",
        f"{own} against {copies}: {own - copies} more",
        judged(len(measures.worlds), (own - copies).samples >= CLEARLY_MORE),
    )


def _few_for_many(measures: Measures, slack: float, name: str, within: str) -> Verdict:
    few, many = measures.sizes[0], measures.sizes[-1]
    own, copies = measures.of(name, few, slack, REACHES), measures.of(COPIES, many, slack, REACHES)
    return Verdict(
        f"Under an unknown closure, {few} agents with {_told(name, within)} arrive more often than {many} copies",
        "the chance that somebody arrives in time is larger",
        name,
        "",
        f"{own} against {copies}: {own - copies} more",
        judged(len(measures.worlds), (own - copies).samples > 0),
    )


def _worst_closure(measures: Measures, slack: float, within: str) -> Verdict:
    k = measures.sizes[-1]
    own = measures.of(REPRESENTATIVE, k, slack, WORST)
    return Verdict(
        f"Whatever is closed, one of {k} agents with {_told(REPRESENTATIVE, within)}, the default, arrives more often than not",
        f"the chance under the worst closure is at least {MORE_OFTEN_THAN_NOT:g}",
        REPRESENTATIVE,
        "",
        str(own),
        judged(len(measures.worlds), own.samples >= MORE_OFTEN_THAN_NOT),
    )


def _highest(measures: Measures, estimates: dict[str, Estimate], name: str, claim: str) -> Verdict:
    others = {other: estimate for other, estimate in estimates.items() if other != name}
    return Verdict(
        claim,
        "its number is larger than that of every other set",
        name,
        "",
        against(estimates[name], others),
        judged(len(measures.worlds), least_lead(estimates[name], others) > 0),
    )


def _costs_more(measures: Measures, slack: float, name: str, within: str) -> Verdict:
    own, copies = (measures.over_sizes(one, slack, DELAYED) for one in (name, COPIES))
    return Verdict(
        f"{_told(name, within)} costs a team more reward than it saves in meetings",
        "with a step for each meeting, its reward is lower than that of copies of the best plan",
        name,
        "",
        f"{own} against {copies}: {own - copies} more",
        judged(len(measures.worlds), (own - copies).samples < 0),
    )
