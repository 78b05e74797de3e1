"""Choosing by rounds."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw
from manyways.objectives import Representative
from manyways.preferences import Posterior


@pytest.fixture(scope="module")
def world() -> mw.MDP:
    return mw.room_world(11, 2)


@pytest.fixture
def talk(world) -> mw.Conversation:
    return mw.Conversation(world, 4, slack=0.1)


def test_each_round_is_a_set_within_the_slack(talk):
    for i in (1, 2, 0):
        before = talk.plans
        after = talk.choose(i)
        assert after is talk.plans
        assert after.k == 4
        assert after.rewards.min() >= 0.9 * after.optimal_reward - 1e-12
        assert after.certificate.ok
        assert talk.best is not None
        np.testing.assert_array_equal(talk.best.policy.probabilities, before.policies[i])
    assert [one.better for one in talk.rounds] == [1, 2, 0, None]
    assert talk.rounds[0].over == (0, 2, 3)


def test_the_next_set_is_planned_for_the_posterior(talk):
    first = talk.plans
    second = talk.choose(2)
    learned = second.maximised
    assert isinstance(learned, Representative)
    assert isinstance(learned.preferences, Posterior)
    np.testing.assert_array_equal(learned.preferences.shown, first.occupancies[[2, 0, 1, 3]])
    assert learned.preferences.taken.tolist() == [0]
    assert learned.unit == first.maximised.unit


def test_one_plan_over_another(talk):
    talk.prefer(3, 1)
    assert (talk.rounds[0].better, talk.rounds[0].over) == (3, (1,))
    np.testing.assert_array_equal(talk.best.policy.probabilities, talk.rounds[0].plans.policies[3])


def test_undo_gives_the_same_question_again(talk):
    first = talk.plans
    second = talk.choose(0)
    talk.choose(1)
    assert talk.undo() is second
    assert talk.undo() is first
    assert talk.best is None
    np.testing.assert_array_equal(talk.choose(0).policies, second.policies)
    talk.undo()
    with pytest.raises(mw.SettingError, match="no answer to take back"):
        talk.undo()


def test_the_chosen_plan_is_liked_better_than_before(world):
    """What is learned from one choice makes that choice likelier."""
    talk = mw.Conversation(world, 4)
    shown = talk.plans.occupancies
    for i in range(4):
        talk.choose(i)
        worth = shown @ talk.preference.model().reward
        gain = worth - talk.rounds[0].plans.rewards
        assert gain[i] == pytest.approx(gain.max(), abs=0.1 * np.ptp(gain))
        talk.undo()


def test_the_learned_preference_is_a_reward(talk):
    talk.choose(3)
    learned = talk.preference
    mdp = talk.plans.mdp
    np.testing.assert_allclose(learned.model().reward, mdp.reward + learned.mean)
    state = np.array([learned.mean[a:b].mean() for a, b in zip(mdp.first_choice, mdp.first_choice[1:], strict=False)])
    np.testing.assert_allclose(learned.by_state, state)
    assert learned.spread_by_state.shape == (mdp.n_states,)
    assert learned.before > 0


def test_a_saved_conversation_goes_on_as_if_nothing_had_happened(talk, tmp_path):
    talk.choose(1)
    talk.prefer(0, 2)
    again = mw.Conversation.load(talk.save(tmp_path / "talk.mwc"))
    assert [(one.better, one.over, one.best) for one in again.rounds] == [
        (one.better, one.over, one.best) for one in talk.rounds
    ]
    np.testing.assert_array_equal(again.plans.policies, talk.plans.policies)
    np.testing.assert_array_equal(again.choose(2).policies, talk.choose(2).policies)
    again.undo()
    again.undo()
    assert len(again.rounds) == 2


def test_a_file_that_is_no_conversation(talk, tmp_path):
    plans = talk.plans.save(tmp_path / "plans.mw")
    with pytest.raises(mw.PlanFileError, match="is not a manyways conversation file"):
        mw.Conversation.load(plans)
    path = talk.save(tmp_path / "talk.mwc")
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(mw.PlanFileError, match="truncated"):
        mw.Conversation.load(path)


@pytest.mark.parametrize("answer", [-1, 4, "first", 1.5, None])
def test_answers_that_make_no_sense(talk, answer):
    with pytest.raises(mw.SettingError, match="expected a plan from 0 to 3"):
        talk.choose(answer)
    with pytest.raises(mw.SettingError, match="expected a plan from 0 to 3"):
        talk.prefer(0, answer)
    with pytest.raises(mw.SettingError, match="better than itself"):
        talk.prefer(2, 2)
    assert len(talk.rounds) == 1


def test_an_interrupted_round_has_no_answer(talk):
    def stop(_: mw.Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        talk.choose(0, progress=stop)
    assert talk.rounds[-1].better is None
    talk.choose(0)


@pytest.mark.parametrize("source", ["gym:FrozenLake-v1", "gym:CliffWalking-v1"])
def test_models_with_episodes(source):
    pytest.importorskip("gymnasium")
    talk = mw.Conversation(source, 3)
    talk.choose(0)
    assert isinstance(talk.plans.criterion, mw.Episodic)
    assert np.isfinite(talk.preference.mean).all()


def test_other_settings_reach_every_round(world):
    talk = mw.Conversation(world, 3, criterion=mw.Discounted(0.95), behaviour=mw.States())
    plans = talk.choose(1)
    assert (plans.criterion, plans.behaviour) == (mw.Discounted(0.95), mw.States())
