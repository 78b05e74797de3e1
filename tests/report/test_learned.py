"""What the answers of a conversation say: recomputed draw by draw."""

from __future__ import annotations

import base64

import numpy as np
import pytest

import manyways as mw
from manyways.describe import Portrait
from manyways.model.regions import find_regions
from manyways.report.learned import CLEAR, LITTLE, Leaning, leaning_rows, leanings, learned_picture, sentences
from manyways.report.pictures import canvas_of
from manyways.report.rounds import Standing, render_rounds, round_view
from manyways.report.view import telling


@pytest.fixture(scope="module")
def talk() -> mw.Conversation:
    """Two answers of someone who dislikes the middle room."""
    talk = mw.Conversation("nine-rooms:0")
    mdp = talk.plans.mdp
    regions = find_regions(mdp)
    disliked = (regions.of_state == regions.names.index("middle room"))[mdp.choice_state]
    for _ in range(2):
        talk.choose(int((talk.plans.occupancies @ (mdp.reward - 2 * disliked)).argmax()))
    return talk


@pytest.fixture(scope="module")
def commute() -> mw.Conversation:
    """A model without a map, and two answers of someone who dislikes the bus."""
    rows = []
    for i in range(3):
        for how, chance in {"bike": 0.7, "bus": 0.9, "train": 0.8}.items():
            there = f"stop {i + 1}" if i < 2 else "work"
            rows += [(f"stop {i}", how, there, chance, 1.0), (f"stop {i}", how, f"stop {i}", 1 - chance, 0.9)]
    rows += [("work", "home", "stop 0", 1.0, 1.1)]
    talk = mw.Conversation(mw.MDP.from_transitions(rows, labels={"far": ["stop 0"]}, name="commute"), k=4)
    bus = talk.plans.mdp.actions == talk.plans.mdp.action_names.index("bus")
    for _ in range(2):
        talk.choose(int((talk.plans.occupancies @ (talk.plans.mdp.reward - 2.0 * bus)).argmax()))
    return talk


def recomputed(talk: mw.Conversation, times: np.ndarray, shown: np.ndarray) -> np.ndarray:
    """(M,) for each draw, the slope of the worths of plans over their time in a place, times the range of that."""
    rewards = talk._learned().rewards(range(400)) / talk.plans.criterion.planned_per_reward
    return np.polyfit(times, shown @ rewards.T, 1)[0] * np.ptp(times)


def test_worths_of_places_are_slopes_over_the_shown_plans(talk):
    mdp, regions = talk.plans.mdp, find_regions(talk.plans.mdp)
    shown = np.concatenate([one.plans.occupancies for one in talk.rounds[:-1]])
    found = leanings(talk)
    named = {one.name: one for one in found}
    assert [abs(one.worth) for one in found] == sorted((abs(one.worth) for one in found), reverse=True)
    for i, name in enumerate(regions.names):
        times = shown[:, regions.of_state[mdp.choice_state] == i].sum(axis=1)
        meant = not name[-1].isdigit()  # numbers point nowhere
        assert (f"the {name}" in named) == (meant and np.ptp(times) >= 0.02)
        if f"the {name}" in named:
            one, worth = named[f"the {name}"], recomputed(talk, times, shown)
            np.testing.assert_allclose(one.times, times)
            np.testing.assert_allclose([one.worth, one.spread], [worth.mean(), worth.std()], rtol=1e-6, atol=1e-9)
            assert one.agreeing == pytest.approx((np.sign(worth) == np.sign(worth.mean())).mean(), abs=0.01)
    assert named["the middle room"].worth < 0
    assert "the middle room" in next(text for text in sentences(found) if "avoid" in text)


def test_a_model_without_a_map_is_described_by_labels_actions_and_states(commute):
    mdp = commute.plans.mdp
    shown = np.concatenate([one.plans.occupancies for one in commute.rounds[:-1]])
    found = {one.name: one for one in leanings(commute)}
    times = shown[:, mdp.actions == mdp.action_names.index("bus")].sum(axis=1)
    worth = recomputed(commute, times, shown)
    np.testing.assert_allclose(found["the action 'bus'"].worth, worth.mean(), rtol=1e-6, atol=1e-9)
    assert found["the action 'bus'"].worth < 0
    assert {name.split("'")[0] for name in found} <= {"the action ", "the state ", "states labelled "}
    assert "You seem to avoid the action 'bus'" in " ".join(sentences(list(found.values())))
    view = round_view(commute)
    assert view["data"]["learned"] is None
    assert view["learned"]["rows"][0]["name"] in ("action 'bus'", "action 'train'")


def test_before_the_first_answer_nothing_is_said():
    talk = mw.Conversation("four-rooms:0", k=2)
    assert leanings(talk) == []
    assert sentences([]) == [LITTLE]
    view = round_view(talk)
    assert (view["learned"], view["best"]) == (None, None)
    assert "take a plan first" in render_rounds(view, Standing(1, 2, (), 3, "10", "four-rooms:0", "four-rooms:0"))
    other = render_rounds(view, Standing(1, 2, (), 3, "10", "four-rooms:0", "four-rooms:0, without left"))
    assert "You come from plans for <bdi>four-rooms:0, without left</bdi>" in other


def leaning(name: str, worth: float, agreeing: float, times: list[float]) -> Leaning:
    return Leaning(name, np.array(times), worth, 1.0, agreeing)


def test_only_what_is_clear_is_said_and_nothing_twice():
    unclear = leaning("the hall", 3.0, CLEAR - 0.01, [0.1, 0.2, 0.3])
    assert sentences([unclear]) == [LITTLE]
    door = leaning("the door", 1.0, 0.95, [0.0, 0.01, 0.03])
    room = leaning("the room", 0.97, 0.95, [0.0, 0.11, 0.3])  # the same plans go there, and stay longer
    yard = leaning("the yard", -0.5, CLEAR, [0.3, 0.1, 0.0])
    other = leaning("the roof", -0.2, 0.99, [0.1, 0.3, 0.1])
    third = leaning("the lake", -0.1, 0.99, [0.1, 0.1, 0.4])
    assert sentences([unclear, door, room, yard, other, third]) == [
        "You seem to prefer the room.",
        "You seem to avoid the yard and the roof.",
    ]
    rows = leaning_rows([unclear, yard])
    assert [(row["name"], row["text"], row["spread"], row["sure"], row["width"]) for row in rows] == [
        ("hall", "+3", "1", False, 100.0),
        ("yard", "−0.5", "1", True, 16.7),
    ]
    assert (rows[1]["times"], rows[1]["agreeing"]) == ("0 % to 30 %", "90 %")


def test_an_open_field_is_described_by_nine_parts():
    talk = mw.Conversation(mw.grid_world([[0] * 9] * 9, (0, 0), (8, 8), name="field"), k=4)
    talk.choose(1)
    mdp = talk.plans.mdp
    assert len(find_regions(mdp).names) == 1
    row, column = np.divmod(mdp.layout.cells, 9)
    found = {one.name: one.times for one in leanings(talk)}
    north_east = ((row < 3) & (column >= 6))[mdp.choice_state]
    times = talk.rounds[0].plans.occupancies[:, north_east].sum(axis=1)
    assert np.ptp(times) > 0.02
    np.testing.assert_allclose(found["the north-east of the map"], times)


def test_the_map_shows_the_expected_preference_of_each_cell(talk):
    learned, layout = talk.preference, talk.plans.mdp.layout
    shown = learned_picture(learned, canvas_of(talk.plans.mdp))
    for name, values in (("mean", learned.by_state), ("spread", learned.spread_by_state)):
        drawn = np.frombuffer(base64.b64decode(shown[name]), "<f4")
        np.testing.assert_allclose(drawn[layout.cells], values, rtol=1e-6)
        assert np.isnan(np.delete(drawn, layout.cells)).all()
    free = learned.by_state[~layout.blocked.ravel()[layout.cells]]
    assert float(shown["least"].replace("−", "-")) == pytest.approx(free.min(), rel=0.01)
    assert float(shown["most"]) == pytest.approx(free.max(), rel=0.01)
    assert shown["full"] == pytest.approx(max(abs(free).max(), learned.before / 2))


def test_cards_show_the_figures_of_the_plans(talk):
    view, plans = round_view(talk), talk.plans
    best = talk.rounds[-1].best
    assert [card["picked"] for card in view["cards"]] == [i == best for i in range(plans.k)]
    for card, plan, reward in zip(view["cards"], plans, plans.rewards, strict=True):
        figures = {figure["name"]: figure["text"] for figure in card["figures"]}
        assert card["key"] == plan.key
        assert float(figures["reward"]) == pytest.approx(reward, abs=1e-3)
        lost = 100 * (plans.optimal_reward - reward) / plans.optimal_reward
        shown = figures["below optimum"]
        assert 0 < lost < 0.06 if shown == "under 0.1 %" else float(shown.split()[0]) == pytest.approx(lost, abs=0.06)
        assert set(figures) == {"reward", "below optimum", "steps to goal"}


def test_sentences_that_only_one_plan_has_come_first():
    words = [Portrait("", ("same", "one")), Portrait("", ("same", "two"))]
    assert [telling(words, i) for i in (0, 1)] == [["one", "same"], ["two", "same"]]
