"""What `plan` says before and after the work."""

import pytest

import manyways as mw


def test_more_plans_than_the_model_has_are_said_to_be_equal():
    only = mw.MDP.from_transitions([("a", "go", "b", 1.0, 1.0), ("b", "back", "a", 1.0, 0.0)])
    plans = mw.plan(only, 3)
    assert plans.status is mw.Status.FEWER_PLANS
    assert plans.status.converged
    assert plans.diversity == 0


def test_the_memory_that_is_not_there_is_named_before_the_work(monkeypatch):
    monkeypatch.setattr("os.sysconf", lambda _: 10)
    with pytest.raises(mw.SettingError, match=r"needs about .* GiB, .* GiB are free"):
        mw.plan(mw.four_rooms(0), 2)
