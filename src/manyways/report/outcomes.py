"""What may become of the plans, for the page: if something is closed, on one trip, and when changing over."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyways.changing_over import Switching, switching
from manyways.describe.remarks import place_of
from manyways.describe.wording import ROUNDED, Terms, counted, number, percent, raised, terms_of
from manyways.errors import SettingError, SolverError
from manyways.model.closures import Closure, closures
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.model.trips import trips_of
from manyways.plans.planset import PlanSet
from manyways.report.pictures import Canvas, bytes_text
from manyways.risks import Returns, Risk, risk
from manyways.surviving import survival

MOST_STATES, MOST_PLANS, MOST_CLOSURES = 2500, 12, 16
"""Larger models and sets get none of this on the page; `manyways survival` and `manyways risk` have no such limits."""
USED = 1e-6
"""A closure that makes fewer steps fail than this, as a share of all steps, concerns no plan."""
TIMED = 0.01
MOST_PIXELS = 60_000
"""Of all maps of changing over together: the page is to stay small."""
BLURRED = 0.02
"""A distribution that its bins widen by more than this share of its spread is not told in numbers."""


def closing(plans: PlanSet, canvas: Canvas | None) -> dict[str, Any] | None:
    """A table of plans and closures, and what the script needs to close one in the picture. Closures that change no number in
    the table are left out."""
    if plans.mdp.n_states > MOST_STATES or plans.k > MOST_PLANS:
        return None
    chosen = _that_matter(plans)
    if not chosen:
        return None
    found = survival(plans, chosen)
    opened = [found.told(found.open, i) for i in range(plans.k)]
    changing = [
        j
        for j in range(len(chosen))
        if not found.hopeless[j] and [found.told(found.closed, i, j) for i in range(plans.k)] != opened
    ]
    if not changing:
        return None
    hopeless = found.hopeless_told()
    if len(changing) < len(chosen):
        chosen = [chosen[j] for j in changing]
        found = survival(plans, chosen)
    terms = terms_of(plans.mdp)
    through = found.survivors if found.has_trips else np.ones((plans.k, len(chosen)), bool)
    return {
        "heading": "steps to the goal, or the chance of reaching it" if found.has_trips else terms.noun,
        "made_for": f"{terms.best} {terms.noun}",
        "trips": found.has_trips,
        "deadline": f"{found.deadline:,}",
        "hopeless": hopeless,
        "rows": [
            [{"text": found.told(found.closed, i, j), "lost": not through[i, j]} for j in range(len(chosen))]
            for i in range(plans.k)
        ],
        "replanned": [found.told(found.replanned, j) for j in range(len(chosen))],
        "open": [*opened, found.told(found.best)],
        "names": [closure.name for closure in chosen],
        "data": [
            {
                "name": closure.name,
                "sentence": found.sentence(j),
                "lost": np.flatnonzero(~through[:, j]).tolist(),
                "cells": [] if canvas is None else _cells(closure, canvas),
            }
            for j, closure in enumerate(chosen)
        ],
    }


def _that_matter(plans: PlanSet) -> list[Closure]:
    """The closures that concern some plan, those first that concern plans most."""
    try:
        found = closures(plans.mdp)
    except SettingError:
        return []
    failing = np.array([(plans.occupancies @ closure.failing(plans.mdp)).max() for closure in found])
    most = set(np.argsort(-failing, kind="stable")[:MOST_CLOSURES].tolist())
    return [closure for j, closure in enumerate(found) if j in most and failing[j] > USED]


def _cells(closure: Closure, canvas: Canvas) -> list[int]:
    return np.unique(canvas.cells(canvas.layout.cells[closure.states])).tolist()


# ---- one trip ---------------------------------------------------------------------------------


def trips_told(plans: PlanSet) -> list[tuple[str, ...]] | None:
    """For each plan, sentences about what may happen on one trip; None for models without trips, or too large."""
    trips = None if plans.mdp.n_states > MOST_STATES or plans.k > MOST_PLANS else trips_of(plans.mdp)
    if trips is None:
        return None
    try:
        return [_trip_told(plans.mdp, card) for card in risk(plans)]
    except SolverError:  # a plan that hardly ever ends a trip
        return None


def _trip_told(mdp: MDP, card: Risk) -> tuple[str, ...]:
    terms = terms_of(mdp)
    told = []
    if card.never_ends > 0:
        told.append(f"{percent(card.never_ends)} of its trips never end.")
    sharp = card.returns is not None and card.returns.blur <= BLURRED * card.spread
    if card.returns is not None and sharp and card.spread > 1e-9 * (abs(card.mean) + 1):
        mean, middle = (number(float(terms.shown(value))) for value in (card.mean, card.returns.quantile(0.5)))
        worst = _worst_told(card.returns, terms)
        told.append(f"One trip {terms.verb}s {mean} on average (median {middle}){worst}.")
    if card.worst is not None and (worst := card.worst.sentence(terms)):
        told.append(worst)
    return tuple(told)


def _worst_told(returns: Returns, terms: Terms) -> str:
    """How bad the worst twentieth of the trips is; where many trips have the same return, how many are as bad as that."""
    total = float(returns.chances.sum())
    met = returns.values[returns.chances > ROUNDED * total]
    low = returns.quantile(0.05)
    if low >= met[-1]:  # nearly all trips have the best return
        if len(met) == 1:
            return ""
        low = float(met[-2])
    share = float(returns.chances[returns.values <= low].sum()) / total
    who = f"1 in 20 {terms.verb}s" if abs(share - 0.05) <= 0.005 else f"{percent(share)} of its trips {terms.verb}"
    beyond = "" if low <= met[0] else f" or {'less' if terms.sign > 0 else 'more'}"
    return f"; {who} {number(float(terms.shown(low)))}{beyond}"


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
    text = f"{_watching(found)} {_cost_told(plans, found)}".strip()
    if canvas is None or np.isnan(found.mean) or plans.k**2 * np.prod(canvas.shape) > MOST_PIXELS:
        return {"text": text}
    time = state_occupancy(plans.mdp, plans.occupancies[i])
    cost = np.where((time > 0) & ~found.free, np.nan_to_num(np.maximum(found.cost, 0.0)), 0.0)
    by_cell = np.nan_to_num(canvas.means(np.where(time > TIMED * time.max(), cost, 0.0)))
    full = float(by_cell.max())
    return {"text": text, "cost": bytes_text(by_cell / full) if full > 0 else None}


def _watching(found: Switching) -> str:
    if np.isinf(found.watched):
        return "Whoever watches where they go cannot tell them apart: where their actions differ, these do the same."
    if found.counted_in == "trips":
        seen = counted(found.watched, "trip")
    else:  # steps from the start on
        seen = "the first step" if found.watched == 1 else f"the first {counted(found.watched, 'step')}"
    return f"Whoever watches where they go can tell them apart after {seen}, with at most 5 % errors."


def _cost_told(plans: PlanSet, found: Switching) -> str:
    time = state_occupancy(plans.mdp, plans.occupancies[found.first])
    if np.isnan(found.mean):
        return ""
    free = float(time[found.free].sum())
    usual = np.flatnonzero((time > TIMED * time.max()) & ~found.free & (found.cost > 0))
    one, other = found.first + 1, found.second + 1
    if not len(usual):
        more = "anywhere" if found.counted_in == "trips" else f"beyond what plan {other} earns less from then on"
        return f"Changing over from plan {one} to plan {other} on the way costs next to nothing {more}."
    worst = int(usual[np.argmax(found.cost[usual])])
    noun = terms_of(plans.mdp).noun
    most = f"{number(float(found.cost[worst]))} in {noun}, {place_of(plans.mdp, worst)}"
    if free <= 0:
        return f"Changing over from plan {one} to plan {other} on the way costs up to {most}."
    where = f"where plan {one} spends {percent(free)} of its time"
    return raised(f"changing over from plan {one} to plan {other} is free {where}, and costs up to {most}.")
