"""What may become of the plans, for the page: if something is closed, on one trip, and when changing over."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.changing_over import Switching, switching
from manyways.describe.remarks import place_of
from manyways.describe.wording import Terms, aligned, counted, number, percent, raised, terms_of
from manyways.errors import SettingError, SolverError
from manyways.model.closures import Closure, closures
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.model.trips import trips_of
from manyways.plans.planset import PlanSet
from manyways.report.pictures import Canvas, bytes_text
from manyways.risks import Returns, Risk, risk
from manyways.surviving import survival
from manyways.types import Floats, Ints

MOST_STATES, MOST_PLANS, MOST_CLOSURES = 2500, 12, 16
"""Larger models and sets get none of this on the page, except for closures; the commands have no such limits."""
MOST_CLOSED = 150_000
"""States times plans and closures: with more, fewer closures are on the page, or none."""
USED = 1e-6
"""A closure that makes fewer steps fail than this, as a share of all steps, concerns no plan."""
TIMED = 0.01
MOST_PIXELS = 60_000
"""Of all maps of changing over together: the page is to stay small."""
SELDOM, WORTH_SAYING = 0.005, 0.05
"""Shares of time: below the first, the other plan is hardly ever lost; below the second, it is not worth saying where changing over
costs next to nothing."""
SAME = 0.01
"""What one trip is like is not said of each plan if the numbers of all plans differ by at most this share."""


def closing(plans: PlanSet, canvas: Canvas | None) -> dict[str, Any] | None:
    """A table of plans and closures, and what the script needs to close one in the picture. Closures that make no plan worse are left
    out, and those with which all do the same are in one sentence."""
    chosen = _that_matter(plans)
    if not chosen:
        return None
    found = survival(plans, chosen)
    words, shown = found.words, np.flatnonzero(~(found.harmless | found.hopeless | found.level)).tolist()
    sentences = [sentence for sentence in (words.level(), words.hopeless()) if sentence]
    if not shown and not sentences:
        return None
    return {
        "heading": words.counted,
        "made_for": words.made_for,
        "failing": words.failing,
        "late": words.late,
        "lost": words.lost,
        "sentences": sentences,
        "rows": [
            [{"text": found.told(found.closed, i, j), "lost": not found.survivors[i, j]} for j in shown]
            for i in range(plans.k)
        ],
        "possible": [found.told(found.possible, j) for j in shown],
        "open": [*(found.told(found.open, i) for i in range(plans.k)), found.told(found.possible_open)],
        "names": [chosen[j].name for j in shown],
        "data": [
            {
                "name": chosen[j].name,
                "sentence": found.sentence(j),
                "lost": np.flatnonzero(~found.survivors[:, j]).tolist(),
                "cells": [] if canvas is None else _cells(chosen[j], canvas),
            }
            for j in shown
        ],
    }


def _that_matter(plans: PlanSet) -> list[Closure]:
    """The closures that concern some plan, those first that concern plans most, as many as there is time for."""
    most = min(MOST_CLOSURES, MOST_CLOSED // (plans.mdp.n_states * (plans.k + 2)))
    if plans.k > MOST_PLANS or most < 1:
        return []
    try:
        found = closures(plans.mdp)
    except SettingError:
        return []
    failing = np.array([(plans.occupancies @ closure.failing(plans.mdp)).max() for closure in found])
    first = set(np.argsort(-failing, kind="stable")[:most].tolist())
    return [closure for j, closure in enumerate(found) if j in first and failing[j] > USED]


def _cells(closure: Closure, canvas: Canvas) -> list[int]:
    return np.unique(canvas.cells(canvas.layout.cells[closure.states])).tolist()


# ---- one trip ---------------------------------------------------------------------------------


def trips_told(plans: PlanSet) -> list[tuple[str, ...]] | None:
    """For each plan, sentences about what may happen on one trip; None for models without trips, or too large. What is nearly the
    same for all plans is left out."""
    trips = None if plans.mdp.n_states > MOST_STATES or plans.k > MOST_PLANS else trips_of(plans.mdp)
    if trips is None:
        return None
    try:
        cards = risk(plans)
    except SolverError:  # a plan that hardly ever ends a trip
        return None
    returns_alike = plans.k > 1 and _alike([_figures(card) for card in cards])
    return [_trip_told(plans.mdp, card, not returns_alike) for card in cards]


def _figures(card: Risk) -> Floats:
    """What sentences say of the return of a trip, in numbers: mean, median, worst trips; NaN for what is not told."""
    tail = None if card.told is None else card.told.tail()
    middle = np.nan if card.told is None else card.told.quantile(0.5)
    return np.array([card.mean, middle, *((np.nan, np.nan) if tail is None else (tail.value, tail.share))])


def _alike(rows: list[Floats]) -> bool:
    """Whether the numbers of all plans are nearly the same."""
    table = np.stack(rows)
    if (np.isnan(table) != np.isnan(table[0])).any():
        return False
    return bool((np.ptp(np.nan_to_num(table), axis=0) <= SAME * np.abs(np.nan_to_num(table)).max(axis=0)).all())


def _trip_told(mdp: MDP, card: Risk, with_returns: bool) -> tuple[str, ...]:
    terms = terms_of(mdp)
    told = []
    if card.never_ends > 0:
        told.append(f"{percent(card.never_ends)} of its trips never end.")
    if with_returns and card.told is not None and card.spread > 1e-9 * (abs(card.mean) + 1):
        mean, middle = (number(float(terms.shown(value))) for value in (card.mean, card.told.quantile(0.5)))
        told.append(f"One trip {terms.verb}s {mean} on average (median {middle}){_tail_told(card.told, terms)}.")
    if card.worst is not None and (worst := card.worst.sentence(terms)):
        told.append(worst)
    return tuple(told)


def _tail_told(returns: Returns, terms: Terms) -> str:
    """How bad the worst trips are."""
    tail = returns.tail()
    if tail is None:
        return ""
    rare = (
        f"1 in 20 {terms.verb}s"
        if abs(tail.share - 0.05) <= 0.005
        else f"{percent(tail.share)} of its trips {terms.verb}"
    )
    return f"; {rare} {tail.bound(terms)}"


# ---- changing over ----------------------------------------------------------------------------


def changes(plans: PlanSet, canvas: Canvas | None) -> list[list[dict[str, Any]]] | None:
    """For each pair of plans, what changing over costs and how long to watch; None for sets or models that are too large."""
    if plans.mdp.n_states > MOST_STATES or not 1 < plans.k <= MOST_PLANS:
        return None
    return [[_change(plans, canvas, i, j) for j in range(plans.k)] for i in range(plans.k)]


def _change(plans: PlanSet, canvas: Canvas | None, i: int, j: int) -> dict[str, Any]:
    if i == j:
        return {"text": ""}
    found = switching(plans, i, j)
    text = f"{_watching(plans, found)} {_cost_told(plans, found)}".strip()
    if canvas is None or np.isnan(found.mean) or plans.k**2 * np.prod(canvas.shape) > MOST_PIXELS:
        return {"text": text}
    time = state_occupancy(plans.mdp, plans.occupancies[i])
    cost = np.where((time > 0) & ~found.free, np.nan_to_num(np.maximum(found.cost, 0.0)), 0.0)
    by_cell = np.nan_to_num(canvas.means(np.where(time > TIMED * time.max(), cost, 0.0)))
    full = float(by_cell.max())
    return {"text": text, "cost": bytes_text(by_cell / full) if full > 0 else None}


def _watching(plans: PlanSet, found: Switching) -> str:
    """How long to watch. On a map one sees where they go; in other models also what they do."""
    on_map = plans.mdp.layout is not None
    who = "Whoever watches where they go" if on_map else "Whoever watches"
    if np.isinf(found.watched):
        alike = "where their actions differ, these do the same" if on_map else "they do the same"
        return f"{who} cannot tell them apart: {alike}."
    if found.counted_in == "trips":
        seen = counted(found.watched, "trip")
    else:  # steps from the start on
        seen = "the first step" if found.watched == 1 else f"the first {counted(found.watched, 'step')}"
    return f"{who} can tell them apart after {seen}, with at most 5 % errors."


def _cost_told(plans: PlanSet, found: Switching) -> str:
    """What changing over costs, where it costs next to nothing, and where the other plan does not find back."""
    if np.isnan(found.mean):
        return ""
    time = state_occupancy(plans.mdp, plans.occupancies[found.first])
    one, other = f"plan {found.first + 1}", f"plan {found.second + 1}"
    on_the_way = " on the way" if plans.mdp.layout is not None else ""
    usual = np.flatnonzero((time > TIMED * time.max()) & ~found.free & (found.cost > 0))
    free, away = float(time[found.free].sum()), float(time[found.lost].sum())
    told = f"changing over from {one} to {other}{on_the_way}"
    if not len(usual):
        told += " costs next to nothing" + (
            "" if found.lost.any() or (~found.free & (found.cost > 0)).any() else " anywhere"
        )
    else:
        nearly = f"costs next to nothing where {one} spends {percent(free)} of its time, and "
        told += f" {nearly if free >= WORTH_SAYING else ''}{_most_told(plans, found, usual)}"
    sentences = [f"{told}{_from_then_on(plans, found)}"]
    if away > SELDOM:
        sentences.append(f"where {one} spends {percent(away)} of its time, {other} does not surely find back")
    return " ".join(f"{raised(sentence)}." for sentence in sentences)


def _most_told(plans: PlanSet, found: Switching, usual: Ints) -> str:
    """ "loses up to 73.3 in reward, lost time included, at r5c7"."""
    terms, worst = terms_of(plans.mdp), int(usual[np.argmax(found.cost[usual])])
    most = number(float(found.cost[worst]))
    size = f"loses up to {most} in reward" if terms.sign > 0 else f"raises the cost by up to {most}"
    return f"{size}{', lost time included' if found.counts_time else ''}, {place_of(plans.mdp, worst)}"


def _from_then_on(plans: PlanSet, found: Switching) -> str:
    """How the values per step differ where the cost of changing over does not count that, in the digits that are shown."""
    if found.counted_in == "trips" or plans.criterion.discount < 1:
        return ""
    terms = terms_of(plans.mdp)
    shown = aligned(terms.shown(plans.rewards).tolist())
    before, after = (float(shown[i].replace(",", "")) for i in (found.first, found.second))
    if before == after:
        return ""
    more = "more" if after > before else "less"
    return f"; from then on plan {found.second + 1} {terms.verb}s {number(round(abs(after - before), 9))} {more} {plans.criterion.unit}"
