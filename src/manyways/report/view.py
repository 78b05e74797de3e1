"""A plan set as plain data for the page: formatted numbers, packed pictures, nothing that needs the model."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manyways.behaviours import BEHAVIOURS
from manyways.describe import GRADES, Measure, Portrait, Survey, measures, portraits, survey_of
from manyways.describe.subject import NEVER
from manyways.describe.survey import negligible
from manyways.describe.wording import joined, percent, quoted, raised, terms_of
from manyways.errors import SettingError
from manyways.model.mdp import MDP
from manyways.plans.guarantee import length_of_best
from manyways.plans.planset import PlanSet
from manyways.plans.route import likely_route
from manyways.report.chart import price_chart
from manyways.report.graph_drawing import graph_overview
from manyways.report.groups import Group, alike_groups, groups_of, tints_of
from manyways.report.handing_out import handed_out, routes_handed_out
from manyways.report.headline import chips, headline, strip
from manyways.report.leeway import leeway
from manyways.report.offers import offers_of
from manyways.report.outcomes import changes, closing, trips_told
from manyways.report.overview import directions, map_overview, reached_cells, route_of
from manyways.report.pictures import Canvas, bars, canvas_of, choice_name, map_marks, picture_of, world_of
from manyways.report.reference import Reference, best_of
from manyways.report.reproduction import checks, facts, reproduction
from manyways.report.rule_tables import decision_table, rule_table
from manyways.report.runs import sampled_runs
from manyways.report.suits import suits_of
from manyways.report.table_overview import table_overview
from manyways.report.tables import distance_table, labelled_plans, measure_table, texts_of
from manyways.types import Floats

if TYPE_CHECKING:
    from manyways.studies.sweeps import Sweep

ON_CARDS = ("steps to goal", "reaches goal", "chance of reaching goal")
"""The measures on the card of each plan, besides the first two: reward and loss."""
INK = 9
"""The tint of plans where colours mean something else."""
NAMED_GROUPS, NAMED_PLANS = 2, 5
"""At most so many groups of plans that are alike are named, of at most so many plans."""
ARROWED = 40
"""Maps with at most this many columns show the moves of the plan that is pointed at as arrows."""
COMPARED = 40
"""The choices by which plans without a map are compared: at most this many."""


def view_of(
    plans: PlanSet,
    sweep: Sweep | None = None,
    plans_file: Path | None = None,
) -> dict[str, Any]:
    """Everything that the page shows of a plan set.

    Args:
        plans: the set.
        sweep: a sweep of the same model, whose curve is drawn beside the set.
        plans_file: where the plans are saved, for the commands that the page shows.
    """
    survey, terms, canvas = survey_of(plans), terms_of(plans.mdp), canvas_of(plans.mdp)
    measured, words = measures(survey), portraits(survey)
    suits = suits_of(plans, canvas)
    groups = groups_of(survey)
    tints = tints_of(plans.k, groups)
    best = best_of(plans, survey, measured)
    overview = _overview(plans, survey, canvas, tints, best)
    if overview is not None and overview["kind"] == "table":  # there colour is what a plan does
        tints = [INK if tint else 0 for tint in tints]
    reference = None if best is None else best.values
    closed, trips = closing(plans, canvas), trips_told(plans)
    has_way = [canvas is not None and route_of(survey, i, canvas) is not None for i in range(plans.k)]
    costs = [[*own, *(_metres(plans, i) if has_way[i] else [])] for i, own in enumerate(chips(plans, measured))]
    tradeoff = None if plans.tradeoff in (None, inf) else f"{plans.tradeoff:.6g}"
    return {
        "model": plans.mdp.name,
        "k": plans.k,
        "headline": headline(plans, survey),
        "strip": strip(plans, tints, next(m for m in measured if m.name == terms.loss)),
        "overview": overview,
        "rules": rule_table(survey),
        "decisions": decision_table(plans, survey, tints) if canvas is None and plans.k > 1 else None,
        "groups": None if groups is None else [_group(plans, group, words) for group in groups],
        "guarantee": plans.guarantee,
        "ways": plans.ways,
        "promise": _promise(plans),
        "settings": {
            "k": plans.k,
            "tradeoff": tradeoff,
            "slack": "" if plans.limits.slack is None else f"{100 * plans.limits.slack:.6g}",
            "slack_required": tradeoff is None and plans.limits.slack is not None,  # nothing else limits such plans
            "seed": plans.seed,
            "behaviour": BEHAVIOURS.word_for(type(plans.behaviour).__name__),
            "per": "" if plans.criterion.discount < 1 else plans.criterion.unit.removeprefix("per "),
        },
        "offers": offers_of(plans),
        "drawn": plans.mdp.layout is not None,
        "route_endings": []
        if plans.mdp.layout is None
        else ["csv", "json", *(["yaml"] if plans.mdp.layout.unit == "m" else [])],
        "marks": map_marks(plans.mdp),
        "cards": [
            _card(plans, i, words, measured, survey.by_state, suits)
            | {"tint": tints[i], "chips": costs[i], "has_way": has_way[i], "trip": () if trips is None else trips[i]}
            for i in range(plans.k)
        ],
        "terms": terms,
        "unit": plans.criterion.unit,
        "optimum": f"{terms.shown(plans.optimal_reward):.4g}",
        "diversity": f"{plans.diversity:.3f}",
        "table": measure_table(measured, plans.k, reference),
        "several_best": best is not None and best.several,
        "distances": distance_table(plans),
        "heat_labels": labelled_plans(plans.k),
        "duplicates": _duplicates(plans, survey),
        "chart": price_chart(plans, sweep, tints) if _has_price(plans, measured[0]) or sweep is not None else None,
        "leeway": leeway(plans, survey.by_state, [portrait.title for portrait in words]),
        "suits": suits,
        "closing": closed,
        "facts": facts(plans),
        "certificate": None if plans.certificate is None else checks(plans.certificate),
        "verified": plans.certificate is not None and plans.certificate.ok,
        "failed_checks": [] if plans.certificate is None else [check.name for check in plans.certificate.failed],
        "file": None if plans_file is None else shlex.quote(str(plans_file)),
        "reproduction": reproduction(plans, plans_file),
        "compared": plans.behaviour.describe(),
        "nearby": survey.likeness.radius,
        "difference": "" if plans.ways else _difference(survey),
        "data": _script_data(plans, words, measured, survey)
        | {
            "suits": None if suits is None else suits.pop("pictures"),
            "tints": tints,
            "file": _file_name(plans.mdp),
            "policies": handed_out(plans),
            "closures": None if closed is None else closed.pop("data"),
            "changes": changes(plans, canvas),
        },
    }


def telling(words: Sequence[Portrait], i: int) -> list[str]:
    """The sentences about plan i, those that are said of no other plan of the set first."""
    others = {sentence for j, other in enumerate(words) if j != i for sentence in other.sentences}
    return sorted(words[i].sentences, key=lambda sentence: sentence in others)


def _metres(plans: PlanSet, i: int) -> list[dict[str, str]]:
    """The length of a plan's likely way on a map in metres."""
    if plans.mdp.layout is None or plans.mdp.layout.unit != "m":
        return []
    with suppress(SettingError):  # it never reaches the goal
        length = likely_route(plans.mdp, plans.policies[i]).length
        return [{"text": f"{length:.1f} m", "title": "Length of its most likely way."}]
    return []


def _lead(words: Sequence[Portrait], i: int) -> str:
    """The sentence that stands below the title of plan i: the most telling one that says more than the title and than the
    figures beside it, which say how well the plan does."""
    named = words[i].title.partition(" — ")[0].partition(" ")[2]  # the rooms of "By the west and south rooms"
    sentences = sorted(telling(words, i), key=lambda sentence: bool(named) and named in sentence)
    return min(sentences, key=lambda sentence: sentence in words[i].standing, default="")


def _overview(
    plans: PlanSet, survey: Survey, canvas: Canvas | None, tints: list[int], best: Reference | None
) -> dict[str, Any] | None:
    """The first picture, all plans in one: a map, boxes over two variables, or a drawing of the states of a small model."""
    if canvas is not None:
        way = None if best is None else route_of(best.survey, best.plan, canvas)
        return {"kind": "map"} | map_overview(plans, survey, canvas, tints, way)
    table = table_overview(survey, tints)
    if table is not None:
        return {"kind": "table"} | table
    drawn = graph_overview(plans, survey.by_state, tints)
    return None if drawn is None else {"kind": "graph"} | drawn


def _difference(survey: Survey) -> str:
    """Which plans are alike, in one sentence."""
    likeness, pairs = survey.likeness, list(combinations(range(survey.plans.k), 2))
    if likeness.all_same_way:
        return "All of them stay near each other most of the way."
    alike = [pair for pair in pairs if likeness.alike(*pair)]
    if not alike:
        return "All of them are really different."
    if all(likeness.act_alike(*pair) for pair in pairs):
        cases = [rule.cases for rule in survey.rules or ()]
        lasting = "" if all(case == cases[0] for case in cases) else " in the long run"
        return f"They act by the same rule{lasting}, in different states."
    if len(alike) == len(pairs):
        return "They are alike and differ only in detail."
    groups = alike_groups(survey)
    if len(groups) > NAMED_GROUPS or max(map(len, groups)) > NAMED_PLANS:
        different = [pair for pair in pairs if pair not in alike]
        if len(different) > NAMED_GROUPS:
            return f"Of their {len(pairs):,} pairs, {len(different):,} are really different."
        named = ", and ".join(f"plans {one + 1} and {other + 1}" for one, other in different)
        alike_by = "alike" if likeness.near is None else "alike, or near each other most of the way"
        return f"Only {named} are really different; all other pairs are {alike_by}."
    share = "stay near each other most of the way" if likeness.near is not None else "are alike"
    named = []
    for group in groups:
        inside, words = list(combinations(group, 2)), share
        if all(likeness.act_alike(*pair) for pair in inside):
            words = "act by the same rule"
        elif all(likeness.same_effect(*pair) for pair in inside):
            words = "differ only in actions that have the same effect"
        named.append(f"plans {joined([str(plan + 1) for plan in group])} {words}")
    return f"{raised('; '.join(named))}; all other pairs are really different."


def _group(plans: PlanSet, group: Group, words: list[Portrait]) -> dict[str, Any]:
    others = len(group.members) - 1
    return {
        "leader": group.leader,
        "members": group.members,
        "title": words[group.leader].title,
        "summary": f"{others} more like plan {group.leader + 1}" if others else "",
        "key": plans[group.leader].key,
    }


def _duplicates(plans: PlanSet, survey: Survey) -> str:
    """One sentence about plans that are nearly the same: at most three pairs are named."""
    pairs = [(i, j) for i, j in plans.near_duplicates if i < j] or plans.near_duplicates
    if not pairs:
        return ""
    named = [f"plans {i + 1} and {j + 1} are {GRADES[survey.likeness.grade(i, j)]}" for i, j in pairs[:3]]
    more = len(pairs) - len(named)
    text = "; ".join(named) + (f"; and {more} more pair{'s' if more > 1 else ''}" if more else "")
    return text[:1].upper() + text[1:] + "."


def _luck(plans: PlanSet, plan: int, time: Floats) -> list[str]:
    """Where a plan chooses at random, though plans that do were not asked for."""
    if plans.limits.randomised:
        return []
    mdp, policy = plans.mdp, plans.policies[plan]
    surest = np.maximum.reduceat(policy, mdp.first_choice[:-1])
    mixed = np.flatnonzero((time > NEVER) & (surest < 1 - 1e-6))
    if not len(mixed):
        return []
    if len(mixed) > 1:
        return [f"Chooses at random in {len(mixed)} of its states."]
    state = int(mixed[0])
    here = [x for x in range(mdp.first_choice[state], mdp.first_choice[state + 1]) if policy[x] > 1e-9]
    does = [
        f"{quoted(mdp.action_name(x))} in {percent(float(policy[x]))}" for x in sorted(here, key=lambda x: -policy[x])
    ]
    return [f"Chooses at random in {quoted(mdp.state_name(state))}: {', '.join(does)} of cases."]


def _has_price(plans: PlanSet, rewards: Measure) -> bool:
    """Whether diversity costs anything here: not where all rewards look the same."""
    best = float(terms_of(plans.mdp).shown(plans.optimal_reward))
    return plans.k > 1 and len(set(texts_of(replace(rewards, values=(*rewards.values, best))))) > 1


def _file_name(mdp: MDP) -> str:
    """The beginning of the names of files that the page hands out."""
    return re.sub(r"[^A-Za-z0-9]+", "-", mdp.name).strip("-")[:40] or "plans"


def _promise(plans: PlanSet) -> str:
    """How good the plans are, in one sentence."""
    terms, best = terms_of(plans.mdp), float(terms_of(plans.mdp).shown(plans.optimal_reward))
    ends = (float(end) for end in np.sort(terms.shown(plans.rewards))[[0, -1]])
    who = f"These plans {terms.verb}" if plans.k > 1 else f"It {terms.verb}s"
    if best <= negligible(plans):
        span = " to ".join(dict.fromkeys(f"{end:.4g}" for end in ends))
        return f"{who} {span} {plans.criterion.unit}, where no plan can {terms.beyond} than {best:.4g}{_cap(plans)}."
    span = " to ".join(dict.fromkeys(_percent_of_best(end / best) for end in ends))
    return f"{who} {span} % of what the very best plan {terms.verb}s{_cap(plans)}."


def _cap(plans: PlanSet) -> str:
    """The longest mean length of an episode, where the best plan needs it and the guarantee does not say it."""
    return "" if plans.limits.floor is not None else length_of_best(plans)


def _percent_of_best(share: float) -> str:
    """In percent, rounded away from 100 like the headline, so that only the optimum is called 100 %."""
    percent = 100 * share
    if abs(percent - 100) < 1e-7:
        return "100"
    unit, digits = (1, 0) if percent < 99 or percent > 110 else (10, 1)
    if 99.9 < percent < 100:
        return "over 99.9"
    rounded = np.floor(unit * percent + 1e-9) if percent < 100 else np.ceil(unit * percent - 1e-9)
    return f"{rounded / unit + 0.0:.{digits}f}"


def _card(
    plans: PlanSet,
    i: int,
    words: list[Portrait],
    measured: list[Measure],
    by_state: Floats,
    suits: dict[str, Any] | None,
) -> dict[str, Any]:
    figures = [
        {"name": measure.name, "text": texts_of(measure)[i], "meaning": measure.meaning}
        for number, measure in enumerate(measured)
        if number < 2 or measure.name in ON_CARDS
    ]
    return {
        "number": i + 1,
        "key": plans[i].key,
        "title": words[i].title,
        "lead": _lead(words, i),
        "sentences": (*words[i].sentences, *_luck(plans, i, by_state[i])),
        "suits": "" if suits is None else suits["plans"][i]["sentence"],
        "figures": figures,
        "bars": None if plans.mdp.layout is not None else bars(plans, i, by_state),
        "origin": "" if not plans.kept else "kept" if i in plans.kept else "new",
    }


def _script_data(plans: PlanSet, words: list[Portrait], measured: list[Measure], survey: Survey) -> dict[str, Any]:
    """What the script of the page draws, compares and plays."""
    mdp, canvas = plans.mdp, canvas_of(plans.mdp)
    runs = sampled_runs(plans, measured, canvas)
    if canvas is None:
        # The same choices for all plans, so that any two can be compared: those in which the plans differ most.
        compared = np.argsort(-np.ptp(plans.occupancies, axis=0), kind="stable")[:COMPARED]
        world = {"names": [choice_name(mdp, int(x)) for x in compared]}
        pictures = [{"shares": [round(float(x), 5) for x in row[compared]]} for row in plans.occupancies]
        taken = sorted({choice for own in runs for run in own for choice in run["at"]})
        visited = {choice: choice_name(mdp, choice) for choice in taken}
    else:
        world, visited = world_of(mdp, canvas), None
        pictures = [
            picture_of(row, canvas) | {"arrows": _arrows(plans, i, canvas, row)}
            for i, row in enumerate(survey.by_state)
        ]
    return {
        "noun": terms_of(mdp).noun,
        "world": world,
        "grades": GRADES,
        "likeness": [[survey.likeness.grade(i, j) for j in range(plans.k)] for i in range(plans.k)],
        "distances": [[round(float(x), 9) for x in row] for row in plans.distances],
        "plans": [
            {"key": plans[i].key, "title": words[i].title, **pictures[i], "runs": runs[i]}
            | {"routes": routes_handed_out(plans, i) if canvas is not None and route_of(survey, i, canvas) else []}
            for i in range(plans.k)
        ],
        "visited": visited,
    }


def _arrows(plans: PlanSet, plan: int, canvas: Canvas, by_state: Floats) -> list[int]:
    """The cells that a plan comes to and the direction in which it moves there, in steps of 15 degrees: 24 x cell + step."""
    if canvas.shape[1] > ARROWED or canvas.block > 1:
        return []
    # A state that is reached but hardly used still has a direction: time is only a weight within a cell.
    angle, _ = directions(plans, plan, canvas, np.maximum(by_state, 1e-300))
    steps = np.round(np.degrees(np.nan_to_num(angle)) / 15).astype(int) % 24
    cells = np.flatnonzero(reached_cells(plans, plan, canvas) & ~np.isnan(angle))
    return (24 * cells + steps[cells]).tolist()
