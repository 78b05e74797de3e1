"""Surveys: computed once, whatever is made of them."""

from __future__ import annotations

from given_plans import repair_shop

import manyways as mw
from manyways.describe import measures, portraits, survey, survey_of
from manyways.model.occupancy import chain


def test_measures_and_portraits_share_a_survey(monkeypatch):
    """The chain of each plan is computed once for both, and a survey gives the same as its plans."""
    plans = mw.plan(repair_shop(), 2)
    calls = []
    monkeypatch.setattr(survey, "chain", lambda *given: calls.append(1) or chain(*given))
    surveyed = survey_of(plans)
    found = measures(surveyed), portraits(surveyed)
    assert len(calls) == 2
    assert survey_of(surveyed) is surveyed
    assert found == (measures(plans), portraits(plans))
