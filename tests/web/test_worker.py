"""The planning process: jobs, cancelling, crashes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil
import pytest
from clients import wait_for

import manyways as mw
from manyways.web.events import Refused
from manyways.web.planner import PlannedSet, PlanRequest
from manyways.web.worker import Worker


@dataclass(frozen=True)
class Jobs:
    worker: Worker
    planned: list[PlannedSet]

    def end(self) -> dict[str, Any]:
        wait_for(lambda: self.worker.job() is None)
        assert self.worker.finished is not None
        return self.worker.finished

    def at_work(self) -> None:
        wait_for(lambda: (self.worker.job() or {}).get("doing") not in (None, "starting"))


@pytest.fixture(scope="module")
def jobs() -> Iterator[Jobs]:
    planned: list[PlannedSet] = []

    def store(plans: PlannedSet) -> int:
        planned.append(plans)
        return len(planned)

    worker = Worker(store)
    yield Jobs(worker, planned)
    worker.close()
    assert worker.process_id is None


def request(plans: mw.PlanSet, **settings: Any) -> PlanRequest:
    return PlanRequest(
        plans.to_bytes(),
        **({"k": 3, "tradeoff": 8.0, "slack": None, "seed": 1, "keep": (), "time_limit_s": 60} | settings),
    )


def test_a_job_reports_and_ends(jobs, plans):
    job = jobs.worker.start(request(plans, keep=(plans[1].key,), k=4))
    jobs.at_work()
    report = jobs.worker.job()
    assert report is not None
    assert report["id"] == job
    assert 0 <= report["done"] <= report["total"]
    assert report["seconds"] >= 0
    assert jobs.end() == {"id": job, "ok": True, "message": "converged", "set": len(jobs.planned)}
    found = mw.PlanSet.from_bytes(jobs.planned[-1].archive, "found")
    assert jobs.planned[-1].keys == tuple(plan.key for plan in found)
    assert len(found) == 4
    assert jobs.planned[-1].label == "4 plans, tradeoff 8, seed 1, 1 kept"
    assert plans[1].key in jobs.planned[-1].keys
    assert plans[0].key not in jobs.planned[-1].keys


def test_a_plan_that_is_there_twice_is_kept_twice_and_not_avoided(jobs, plans):
    best = plans.policies[:1]
    twice = mw.plan(plans.mdp, k=3, tradeoff=8.0, keep=np.concatenate((best, best)))
    assert [plan.key for plan in twice].count(plans[0].key) == 2
    jobs.worker.start(request(twice, keep=(plans[0].key,), k=3))
    assert jobs.end()["ok"]
    found = mw.PlanSet.from_bytes(jobs.planned[-1].archive, "found")
    assert jobs.planned[-1].keys.count(plans[0].key) == 2
    assert len(found.avoided) == 1  # the third plan, and neither copy of the kept one
    assert (found.avoided != best).any()


def test_what_cannot_be_planned_is_said_in_a_sentence(jobs, plans):
    jobs.worker.start(request(plans, keep=tuple(plan.key for plan in plans), k=3))
    ended = jobs.end()
    assert not ended["ok"]
    assert "k must be at least 4" in ended["message"]
    jobs.worker.start(request(mw.plan(plans.mdp, 2, math.inf, slack=0.1), tradeoff=None))
    assert "a tradeoff of infinity means nothing but diversity, so plans need a limit" in jobs.end()["message"]
    jobs.worker.start(PlanRequest(b"no plans", 3, 1.0, None, 0, (), 60))
    assert "not a manyways plans file" in jobs.end()["message"]


def test_one_job_at_a_time_and_it_can_be_cancelled(jobs, plans):
    jobs.worker.start(request(plans, k=50))
    with pytest.raises(Refused, match="already") as refused:
        jobs.worker.start(request(plans))
    assert refused.value.status == 409
    jobs.at_work()
    before = jobs.worker.process_id
    assert jobs.worker.cancel()
    assert jobs.end()["message"] == "Stopped: nothing was changed."
    assert not jobs.worker.cancel()
    jobs.worker.start(request(plans))
    assert jobs.end()["ok"]
    assert jobs.worker.process_id != before


def test_time_limit_keeps_the_best_so_far(jobs, plans):
    jobs.worker.start(request(plans, k=6, time_limit_s=1e-6))
    assert jobs.end()["message"] == "time limit"
    assert len(jobs.planned[-1].keys) == 6


@pytest.mark.parametrize("at_work", [True, False])
def test_a_crash_is_reported_and_the_next_job_works(jobs, plans, at_work):
    jobs.worker.ensure_process()
    if at_work:
        jobs.worker.start(request(plans, k=50))
        jobs.at_work()
    process = psutil.Process(jobs.worker.process_id)
    process.kill()
    if at_work:
        ended = jobs.end()
        assert not ended["ok"]
        assert "SIGKILL, perhaps for lack of memory" in ended["message"]
    else:
        wait_for(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    jobs.worker.start(request(plans))
    assert jobs.end()["ok"]
