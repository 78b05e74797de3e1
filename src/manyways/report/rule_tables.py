"""The tables of plans without a map: their rules side by side, and the states in which they decide differently."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from manyways.describe import Rule, Survey, Taken, decisions_of, rules_of
from manyways.describe.wording import percent, short
from manyways.plans.planset import PlanSet
from manyways.report.table_overview import action_colours

MOST_COLUMNS = 8
"""Models with more actions than this show no table of rules; the sentences of the plans say what they do."""
MOST_ROWS = 12


def rule_table(survey: Survey) -> dict[str, Any] | None:
    """Where each plan takes each action, in a few words; None without rules, or if hardly any of them fits."""
    rules = rules_of(survey)
    if rules is None or not any(rule.fits for rule in rules):
        return None
    actions = list(dict.fromkeys(action for rule in rules for action in rule.by_action))
    if len(actions) > MOST_COLUMNS:
        return None
    rows = [
        {"texts": [_where(rule, action) for action in actions], "exact": percent(rule.exact), "full": rule.full}
        for rule in rules
    ]
    return {"actions": [short(action) for action in actions], "rows": rows}


def _where(rule: Rule, action: str) -> str:
    """Where a plan takes an action: "always" only if it takes no other."""
    text = rule.by_action.get(action, "–")
    return "otherwise" if text == "always" and len(rule.by_action) > 1 else text


def decision_table(plans: PlanSet, survey: Survey, tints: Sequence[int]) -> dict[str, Any] | None:
    """The states in which plans decide differently, for the plans with a colour; None if there are none."""
    found = decisions_of(survey, MOST_ROWS)
    if not found.rows:
        return None
    shown = [i for i in range(plans.k) if tints[i]]
    colours = dict(zip(plans.mdp.action_names, action_colours(plans.mdp, plans.occupancies), strict=True))
    best = any(row.best is not None for row in found.rows)
    rows = []
    for row in found.rows:
        taken = [row.taken[i] for i in shown] + ([row.best] if best else [])
        rows.append({"name": short(row.name), "cells": [_cell(one, colours) for one in taken]})
    return {"plans": [i + 1 for i in shown], "best": best, "rows": rows, "left_out": found.left_out}


def _cell(taken: Taken | None, colours: dict[str, int]) -> dict[str, Any] | None:
    if taken is None:
        return None
    others = f" ({percent(taken.actions[0][1])})" if len(taken.actions) > 1 else ""
    strength = 25 + 75 * min(4 * taken.share, 1.0) ** 0.5
    return {
        "action": short(taken.action) + others,
        "share": percent(taken.share),
        "colour": colours[taken.action],
        "strength": round(strength),
    }
