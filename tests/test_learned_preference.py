"""What a conversation has learned: shifted to the shown plans, saved as a reward, read back; conversations as bytes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import manyways as mw
from manyways.conversation import Round


@pytest.fixture(scope="module")
def talk() -> mw.Conversation:
    talk = mw.Conversation("four-rooms:0", k=3, slack=0.2)
    talk.choose(1)
    return talk


def test_preferences_are_measured_against_the_shown_plans(talk):
    learned = talk.preference
    shown = np.concatenate([one.plans.occupancies for one in talk.rounds])
    rewards = talk._learned().rewards(range(400))
    rewards = rewards - (shown @ rewards.T).mean(axis=0)[:, None]
    np.testing.assert_allclose(learned.mean, rewards.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(learned.spread, rewards.std(axis=0), rtol=1e-8)
    assert (shown @ learned.mean).mean() == pytest.approx(0, abs=1e-10)
    apart = shown[0] - shown[1]
    np.testing.assert_allclose(talk.worth(apart), rewards @ apart, atol=1e-10)
    np.testing.assert_allclose(learned.model().reward, talk.plans.mdp.reward + learned.mean)


def test_a_plan_that_was_taken_is_worth_more_than_one_that_was_left(talk):
    first = talk.rounds[0].plans
    worths = first.occupancies @ talk.preference.model().reward
    assert worths.argmax() == 1


def test_values_per_episode():
    talk = mw.Conversation("gym:FrozenLake-v1", k=3)
    talk.choose(1)
    half = talk.plans.criterion.planned_per_reward
    assert half != 1
    rewards = talk._learned().rewards(range(400)) / half
    apart = talk.plans.occupancies[0] - talk.plans.occupancies[1]
    np.testing.assert_allclose(talk.worth(apart), rewards @ apart, atol=1e-10)
    np.testing.assert_allclose(talk.preference.mean @ apart, (rewards @ apart).mean(), atol=1e-10)


def test_a_learned_preference_is_saved_and_read_back(talk, tmp_path):
    learned = talk.preference
    path = learned.save(tmp_path / "learned.json")
    written = json.loads(path.read_text())
    mdp = talk.plans.mdp
    assert (written["schema"], written["version"]) == ("manyways learned preference", 1)
    assert (written["model"], written["digest"]) == (mdp.name, mdp.digest)
    for x in (0, mdp.n_choices - 1):
        assert written["choices"][x] == {
            "state": mdp.state_name(int(mdp.choice_state[x])),
            "action": mdp.action_name(x),
            "preference": learned.mean[x],
            "spread": learned.spread[x],
        }
    other = mdp.with_reward(2 * mdp.reward)  # the same states and actions
    read = mw.LearnedPreference.load(path, other)
    np.testing.assert_array_equal(read.mean, learned.mean)
    np.testing.assert_array_equal(read.spread, learned.spread)
    assert read.before == learned.before
    np.testing.assert_allclose(read.model().reward, other.reward + learned.mean)
    assert mw.plan(read.model(), 1).rewards[0] == pytest.approx(
        mw.plan(other.with_reward(other.reward + learned.mean), 1).rewards[0]
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "something else"}, "expected 'manyways learned preference', version 1"),
        ({"version": 2}, "expected 'manyways learned preference', version 1"),
        ({"choices": []}, "choices, found 0; it was written for another model"),
        ({"choices": None}, "cannot use"),
        ({"before": "much"}, "before must be a finite number"),
    ],
    ids=str,
)
def test_wrong_files_are_refused(talk, tmp_path, change, message):
    path = tmp_path / "learned.json"
    path.write_text(json.dumps(json.loads(talk.preference.to_bytes()) | change))
    with pytest.raises(mw.SourceError, match=message):
        mw.LearnedPreference.load(path, talk.plans.mdp)


def test_names_and_numbers_are_checked(talk, tmp_path):
    written, path = json.loads(talk.preference.to_bytes()), tmp_path / "learned.json"
    path.write_text(
        json.dumps(written).replace('"preference": ', '"preference": "a', 1).replace(', "spread', '", "spread', 1)
    )
    with pytest.raises(mw.SourceError, match="the preference must be a finite number"):
        mw.LearnedPreference.load(path, talk.plans.mdp)
    del written["choices"][0]["spread"]
    path.write_text(json.dumps(written))
    with pytest.raises(mw.SourceError, match="it has no 'spread'"):
        mw.LearnedPreference.load(path, talk.plans.mdp)
    path.write_text("[" * 100_000)
    with pytest.raises(mw.SourceError, match="cannot use"):
        mw.LearnedPreference.load(path, talk.plans.mdp)
    talk.preference.save(path)
    with pytest.raises(mw.SourceError, match="written for another model"):
        mw.LearnedPreference.load(path, mw.read("four-rooms:1"))


def test_rounds_can_be_resumed(talk):
    again = mw.Conversation.resume(talk.rounds, 3)
    assert again.best.key == talk.best.key
    np.testing.assert_array_equal(again.preference.mean, talk.preference.mean)
    other = mw.Conversation.from_bytes(talk.to_bytes(), "bytes")
    assert other.plans.limits.slack == 0.2
    for one in (again, other):
        one.choose(0)
    assert [plan.key for plan in again.plans] == [plan.key for plan in other.plans]
    assert again.plans.limits == talk.plans.limits


def test_rounds_that_cannot_be_resumed(talk):
    with pytest.raises(mw.SettingError, match="without an answer"):
        mw.Conversation.resume(talk.rounds[:1], 3)
    with pytest.raises(mw.SettingError, match="without an answer"):
        mw.Conversation.resume([], 3)
    with pytest.raises(mw.SettingError, match="does not show"):
        mw.Conversation.resume([Round(talk.plans, best=7)], 3)
    with pytest.raises(mw.PlanFileError, match="not a manyways conversation file"):
        mw.Conversation.from_bytes(b"nothing", "bytes")
    broken = replace(talk.rounds[-1], best="1")
    with pytest.raises(mw.SettingError, match="does not show"):
        mw.Conversation.resume([*talk.rounds[:-1], broken], 3)
