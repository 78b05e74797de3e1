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


def test_ctrl_c_while_the_gap_is_computed_keeps_the_plans(tmp_path):
    def impatient(now: mw.Progress) -> None:
        if now.doing == "verifying":
            raise KeyboardInterrupt

    mdp = mw.four_rooms(0)
    plans = mw.plan(mdp, 2, 8.0, progress=impatient)
    assert plans.gap == float("inf")
    assert plans.certificate.ok
    again = mw.load(plans.save(tmp_path / "plans.mw"))
    assert again.gap == float("inf")
    assert mw.verify(mdp, again).ok
    assert plans.objective == mw.plan(mdp, 2, 8.0).objective


def test_progress_never_goes_back():
    seen: list[mw.Progress] = []
    mw.plan(mw.nine_rooms(0), 3, 8.0, method=mw.VertexAscent(starts=2), progress=seen.append)
    planning = [now.done / now.total for now in seen if now.doing == "planning"]
    assert planning == sorted(planning)
    assert planning[-1] == 1.0
    assert [(now.done, now.total) for now in seen if now.doing == "verifying"] == [(0, 3), (1, 3), (2, 3)]
