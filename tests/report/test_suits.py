"""Whom each plan suits: shares, words and maps, recomputed person by person."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import manyways as mw
from manyways.describe import Measure, measures
from manyways.report.named_places import named_places
from manyways.report.page import render
from manyways.report.pictures import canvas_of
from manyways.report.suits import _distinct, _is_reason, likes, sentence, suits_of
from manyways.report.view import view_of


@pytest.fixture(scope="module")
def rooms() -> mw.PlanSet:
    return mw.plan("nine-rooms:0", 4)


def test_shares_and_maps_are_those_of_the_persons(rooms):
    aim = rooms.maximised
    rewards = aim.preferences.on(rooms.mdp, aim.unit).draw(400, np.random.default_rng(0)).rewards(range(400))
    taken = ((rooms.mdp.reward + rewards) @ rooms.occupancies.T).argmax(axis=1)
    shown = suits_of(rooms, canvas_of(rooms.mdp))
    for i, (own, picture) in enumerate(zip(shown["plans"], shown["pictures"], strict=True)):
        assert float(own["share"].removesuffix(" %")) == pytest.approx(100 * (taken == i).mean(), abs=0.5)
        wish = rewards[taken == i].mean(axis=0)
        by_state = np.zeros(rooms.mdp.n_states)
        np.add.at(by_state, rooms.mdp.choice_state, wish - wish @ rooms.occupancies.mean(axis=0))
        expected = rooms.mdp.layout.image(by_state / np.diff(rooms.mdp.first_choice)).ravel()
        mean = np.frombuffer(base64.b64decode(picture["mean"]), "<f4")
        np.testing.assert_allclose(mean, expected, rtol=1e-4, atol=1e-5)
        assert picture["full"] == pytest.approx(np.abs(expected).max(), rel=1e-5)


def test_the_gain_is_that_of_served(rooms):
    served = mw.served(rooms, persons=60)
    shown = suits_of(rooms, None)
    assert shown["gain"] == {
        "share": f"{100 * served.share:.0f}",
        "worst": f"{100 * served.worst_tenth:.0f}",
        "persons": "60",
        "gaining": str(np.count_nonzero(served.possible)),
        "few": False,
    }
    assert shown["pictures"] is None


PLACES = [("the yard", np.array([True, False, False])), ("the hall", np.array([False, True, False]))]


@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ([3.0, 0.0, 0.0], "Best if you like the yard."),
        ([0.0, -3.0, 0.0], "Best if you would rather avoid the hall."),
        ([3.0, -3.0, 0.0], "Best if you like the yard and would rather avoid the hall."),
        ([0.0, 0.0, 0.0], ""),
        ([8.0, 8.0, 8.0], ""),
    ],
)
def test_a_place_is_named_if_the_plan_is_worth_more_because_of_it(wish, expected):
    """Plan 1 is more in the yard and less in the hall than the other, and as much elsewhere."""
    x = np.array([[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])
    assert sentence(likes(x, np.array(wish), 0, PLACES)) == expected


@pytest.mark.parametrize(
    ("yard", "named"),
    [
        ((0.5, 0.1, 0.1, 0.1), True),
        ((0.5, 0.52, 0.1, 0.1), True),  # one other plan does a little more
        ((0.5, 0.6, 0.1, 0.1), False),  # one does clearly more
        ((0.5, 0.52, 0.52, 0.1), False),  # two do more
        ((0.5, 0.5, 0.5, 0.1), False),  # most do as much
    ],
)
def test_a_place_is_named_only_if_the_plan_stands_out_in_it(yard, named):
    assert _is_reason(np.array(yard), 0) == named


def test_one_place_is_not_named_twice():
    x = np.array([[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])
    both = [*PLACES, ("the action 'dig'", PLACES[0][1])]
    assert (
        len([name for _, name in likes(x, np.array([3.0, 0.0, 0.0]), 0, both) if "yard" in name or "dig" in name]) == 1
    )


def test_bad_labels_are_no_reasons(rooms):
    assert measured(rooms, "time in wall").better == -1
    assert not any("'wall'" in own["sentence"] for own in suits_of(rooms, None)["plans"])
    assert "places labelled 'wall'" in dict(named_places(rooms.mdp, rooms.occupancies))
    assert "places labelled 'wall'" not in dict(named_places(rooms.mdp, rooms.occupancies, ["wall"]))


def measured(plans: mw.PlanSet, name: str) -> Measure:
    return next(measure for measure in measures(plans) if measure.name == name)


def test_a_constant_preference_changes_no_sentence():
    x = np.array([[0.4, 0.1, 0.5], [0.1, 0.4, 0.5]])
    wish = np.array([3.0, -1.0, 0.5])
    assert likes(x, wish, 0, PLACES) == likes(x, wish + 100.0, 0, PLACES)


def test_what_is_said_is_true(rooms):
    """In a place that is said to be liked the plan spends more time than the mean plan, in one to avoid less."""
    named, typical, said = dict(named_places(rooms.mdp, rooms.occupancies)), rooms.occupancies.mean(axis=0), 0
    for i, own in enumerate(suits_of(rooms, None)["plans"]):
        words = own["sentence"].removeprefix("Best if you ").removesuffix(".")
        liked, _, avoided = words.partition("would rather avoid ")
        for sign, part in ((1, liked), (-1, avoided)):
            for name in part.removeprefix("like ").removesuffix(" and ").split(" and "):
                if name in named:
                    assert sign * (rooms.occupancies[i] - typical)[named[name]].sum() > 0
                    said += 1
    assert said >= 3


def test_other_sets_have_no_such_part():
    for plans in (mw.plan("four-rooms:0", 2, 8.0), mw.plan("four-rooms:0", 1)):
        assert suits_of(plans, None) is None
        assert 'id="suits"' not in render(view_of(plans))


def test_without_a_map_there_are_words_only():
    rows = [("home", how, "work", 1.0, 1.0) for how in ("bike", "bus", "train")] + [("work", "go", "home", 1.0, 2.0)]
    plans = mw.plan(mw.MDP.from_transitions(rows, name="commute"), 3)
    page = render(view_of(plans))
    assert "Whom each plan suits" in page
    assert "data-suits" not in page.partition("<script")[0]
    assert "Best if you like the action &#39;bus&#39;" in page


def test_no_two_plans_are_said_to_suit_the_same_people():
    """Both are liked for the yard; what is known of the second alone is added."""
    yard, hall, attic = (True, "the yard"), (False, "the hall"), (False, "the attic")
    why, known = [(yard,), (yard,), (hall,)], [(yard, attic), (yard, attic, hall), (hall,)]
    assert [_distinct(why, known, i) for i in range(3)] == [(yard,), (yard, hall), (hall,)]
