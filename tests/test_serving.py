"""How well sets serve people: shares against enumeration, and who takes which plan."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from problems import random_accessible_mdp, vertices


def test_shares_against_all_plans():
    """On small models the gain that is possible is found by looking at every plan."""
    rng = np.random.default_rng(4)
    prior = mw.Preferences(strength=1.0)
    for _ in range(5):
        mdp = random_accessible_mdp(rng, kind="dense")
        plans = mw.plan(mdp, 2, floor=-100.0, objective=mw.Representative(prior, unit=1.0))
        found = mw.served(plans, persons=30, seed=9)
        wishes = prior.on(mdp, 1.0).draw(30, np.random.default_rng(9)).rewards(range(30))
        rewards, every = mdp.reward + wishes, vertices(mdp, mw.Average())
        best = every[np.argmax(every @ mdp.reward)]
        base = rewards @ best
        gains = (rewards @ plans.occupancies.T).max(axis=1) - base
        possible = (rewards @ every.T).max(axis=1) - base
        np.testing.assert_allclose(found.gains, np.maximum(gains, 0), atol=1e-9)
        np.testing.assert_allclose(found.possible, np.maximum(possible, 0), atol=1e-9)
        total = possible[possible > 1e-9].sum()
        assert found.share == pytest.approx(np.maximum(gains, 0).sum() / total if total > 0 else 1.0)
        assert found.worst_tenth <= found.share + 1e-12


def test_more_plans_serve_better_and_a_representative_set_best():
    mdp = mw.room_world(13, 3)
    shares = [mw.served(mw.plan(mdp, k), persons=60).share for k in (1, 3, 6)]
    assert shares[0] == pytest.approx(0.0, abs=1e-9)
    assert shares[0] < shares[1] < shares[2] <= 1
    same = mw.plan(mdp, 6, objective=mw.MeanDivergence())
    assert mw.served(same, persons=60).share < shares[2]


def test_who_takes_which_plan():
    mdp = mw.room_world(11, 2)
    plans = mw.plan(mdp, 4)
    found = mw.audience(plans, persons=200)
    draws = plans.maximised.preferences.on(mdp, plans.maximised.unit).draw(200, np.random.default_rng(0))
    wishes = draws.rewards(range(200))
    taken = ((mdp.reward + wishes) @ plans.occupancies.T).argmax(axis=1)
    np.testing.assert_allclose(found.shares, np.bincount(taken, minlength=4) / 200)
    for i in np.unique(taken):
        np.testing.assert_allclose(found.wishes[i], wishes[taken == i].mean(axis=0), atol=1e-9)


def test_a_set_that_was_made_for_diversity_is_asked_in_the_same_unit():
    mdp = mw.room_world(11, 2)
    default = mw.plan(mdp, 3)
    other = mw.plan(mdp, 3, 1.0)
    shown = [mw.served(plans, persons=10).possible for plans in (default, other)]
    np.testing.assert_allclose(shown[0], shown[1], rtol=0.2, atol=1e-6)
