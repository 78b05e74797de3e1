"""The requests of the page, apart from HTTP: `Session` joins the store, the planning process and the page's text."""

from __future__ import annotations

import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from threading import Lock
from typing import Any

from manyways.errors import PlanFileError
from manyways.files import read_bytes
from manyways.plans import PlanSet
from manyways.plans.policy_files import FORMATS
from manyways.plans.route import WRITERS as ROUTES
from manyways.report import Live, offers_of, render, view_of
from manyways.report.reproduction import reproduction
from manyways.web.events import Refused, checked_mark
from manyways.web.planner import PlannedSet, PlanRequest, RoundRequest, set_label
from manyways.web.requests import integer, share
from manyways.web.rounds import RoundsDesk
from manyways.web.store import LARGEST_ARCHIVE, Choices, State, StoredSet, choices_path, no_set
from manyways.web.worker import Worker

MOST_PLANS = 50
SEEDS = 2**32
SETS_IN_MEMORY = 2
PAGES_IN_MEMORY = 4


class Session:
    """One plan file, the choices stored beside it, and the process that plans."""

    def __init__(self, plans_path: Path, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self.server = secrets.token_hex(8)  # job numbers are unique only within one server
        self._stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plans_path.stem).strip("-") or "plans"
        self._loading, self._rendering = Lock(), Lock()
        self._sets: OrderedDict[int, _LoadedSet] = OrderedDict()
        self._pages: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        archive = read_bytes(plans_path, LARGEST_ARCHIVE, PlanFileError)
        plans = PlanSet.from_bytes(archive, str(plans_path))
        self.choices = Choices(choices_path(plans_path))
        try:
            name = os.fsencode(plans_path.name).decode(errors="replace")  # a file name can be any bytes
            label = f"{name}: {set_label(plans)}"
            number = self.choices.add_plan_file(plans.mdp.digest, archive, [plan.key for plan in plans], label)
        except BaseException:
            self.choices.close()
            raise
        if number is not None:
            self._sets[number] = _LoadedSet(plans)
        self.worker = Worker(self._store)
        self.rounds = RoundsDesk(self.choices, self.worker, self.plans, time_limit_s)

    def close(self) -> None:
        self.worker.close()
        self.choices.close()

    def page(self, number: int | None = None) -> bytes:
        """The page of a set, by default the current one; rendered again only after a new event."""
        with self._rendering:
            state = self.choices.state(number)
            version = (state.shown.number, state.last_event)
            if version not in self._pages:
                sets = tuple({"number": stored.number, "label": stored.label} for stored in state.sets)
                begun = len(state.rounds.questions)
                live = Live(state.shown.number, sets, state.marks, state.last_event, state.chosen, state.current, begun)
                self._pages[version] = render(self._view(state), live).encode(errors="replace")
                while len(self._pages) > PAGES_IN_MEMORY:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(version)
            return self._pages[version]

    def page_file(self, number: int) -> tuple[bytes, str]:
        """The page of a set as a file for any browser, with what people said about its plans, and a name for it."""
        with self._rendering:
            state = self.choices.state(number)
            file = Path(f"{self._stem}-set{number}.mw")  # under this name the set is downloaded
            named = {"file": str(file), "reproduction": reproduction(self.plans(number), file)}
            page = render(self._view(state) | named, marks=state.marks)
        return page.encode(errors="replace"), f"{file.stem}.html"

    def _view(self, state: State) -> dict[str, Any]:
        """What the page of a set shows."""
        shown = self._loaded(state.shown.number)
        if shown.view is None:
            shown.view = view_of(shown.plans)
        return shown.view

    def state(self, since: int | None) -> dict[str, Any]:
        """The current set, the marks if there was an event after `since`, and the progress of planning."""
        # the job first: a client that sees it finished must also see the set that it made
        job, finished = self.worker.job(), self.worker.finished
        state = self.choices.state()
        answer = {"server": self.server, "set": state.shown.number, "last_event": state.last_event}
        answer |= {"job": job, "finished": finished, "rounds": state.rounds.event}
        if since is None or state.last_event > since:
            answer |= {"marks": state.marks, "chosen": state.chosen}
        return answer

    def plan(self, asked: Mapping[str, Any]) -> int:
        """Start planning from any stored set; returns the number of the job."""
        number = asked.get("set")
        if isinstance(number, bool) or not isinstance(number, int):
            raise Refused("'set' must be the number of a set")
        keep = _keys(asked.get("keep", []), self.choices.state(number).shown)
        k = integer("Plans", asked.get("k"), 1, MOST_PLANS)
        if k <= len(keep):
            raise Refused(_too_few(len(keep)))
        seed = integer("Seed", asked.get("seed", 0), 0, SEEDS - 1)
        tradeoff = self._tradeoff(asked.get("tradeoff"), number)
        slack = share(asked.get("slack"))
        request = PlanRequest(self.archive(number), k, tradeoff, slack, seed, keep, self._time_limit_s)
        return self.worker.start(replace(request, **self._changes(asked, number)))

    def _changes(self, asked: Mapping[str, Any], number: int) -> dict[str, Any]:
        """What is asked for besides: more plans like one, another behaviour or criterion, bans."""
        shown, offered = self.choices.state(number).shown, offers_of(self.plans(number))
        like = asked.get("like", "")
        if like and like not in shown.keys:
            raise Refused(f"there is no plan {str(like)[:20]!r} in set {number}")
        changes: dict[str, Any] = {"like": like}
        for name in ("behaviour", "per"):
            changes[name] = asked.get(name) or ""
            if changes[name] and changes[name] not in offered[name]:
                raise Refused(f"'{name}' must be one of {', '.join(offered[name])} or empty")
        for name in ("banned_labels", "banned_actions"):
            given = asked.get(name, [])
            if not isinstance(given, list) or not all(entry in offered[name] for entry in given):
                raise Refused(f"'{name}' must be a list of names that the model has")
            changes[name] = tuple(given)
        return changes

    def mark(self, sent: Mapping[str, Any]) -> State:
        """Store what someone said about a plan."""
        self.choices.mark(*checked_mark(sent))
        return self.choices.state()

    def archive(self, number: int) -> bytes:
        """The plan file of a set."""
        found = self.choices.archive(number)
        if found is None:
            raise no_set(number)
        return found

    def plans(self, number: int) -> PlanSet:
        """A set, from memory if it is one of the last that were used."""
        return self._loaded(number).plans

    def policy(self, number: int, plan: int, ending: str) -> tuple[bytes, str]:
        """One plan, counted from 1, as a policy file: its content and a name for it."""
        if ending not in FORMATS:
            raise Refused(f"a policy ends in one of {', '.join(FORMATS)}", 404)
        plans = self._plan_of(number, plan)
        return plans[plan - 1].policy.to_bytes(ending), f"{self._stem}-set{number}-plan{plan}{ending}"

    def route(self, number: int, plan: int, ending: str) -> tuple[bytes, str]:
        """The route of one plan, counted from 1, as a file: its content and a name for it."""
        if ending not in ROUTES:
            raise Refused(f"a route ends in one of {', '.join(ROUTES)}", 404)
        plans = self._plan_of(number, plan)
        return plans[plan - 1].route().to_bytes(ending), f"{self._stem}-set{number}-plan{plan}-route{ending}"

    def _plan_of(self, number: int, plan: int) -> PlanSet:
        plans = self.plans(number)
        if not 1 <= plan <= plans.k:
            raise Refused(f"set {number} has plans 1 to {plans.k}, found {plan}", 404)
        return plans

    def plans_file(self, number: int) -> tuple[bytes, str]:
        """A set as a plan file: its content and a name for it."""
        return self.archive(number), f"{self._stem}-set{number}.mw"

    def reward_file(self) -> tuple[bytes, str]:
        """What choosing by rounds has learned: a JSON file and a name for it."""
        return self.rounds.reward(), f"{self._stem}-learned.json"

    def conversation_file(self) -> tuple[bytes, str]:
        """The rounds so far: a file for `manyways choose --resume` and a name for it."""
        return self.rounds.conversation_file(), f"{self._stem}.mwc"

    def _store(self, planned: PlannedSet) -> int:
        if isinstance(planned.request, RoundRequest):
            return self.rounds.store(planned, planned.request)
        return self.choices.add_set(planned.label, planned.archive, planned.keys, planned.renamed)

    def _loaded(self, number: int) -> _LoadedSet:
        with self._loading:
            if number not in self._sets:
                self._sets[number] = _LoadedSet(PlanSet.from_bytes(self.archive(number), f"set {number}"))
                while len(self._sets) > SETS_IN_MEMORY:
                    self._sets.popitem(last=False)
            self._sets.move_to_end(number)
            return self._sets[number]

    def _tradeoff(self, given: Any, number: int) -> float | None:
        """The tradeoff to plan with; the page sends null for a set whose objective has no tradeoff."""
        if given is None and self.plans(number).tradeoff in (None, inf):
            return None
        if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given < 1e300:
            raise Refused("the worth of diversity (tradeoff) must be a finite number of at least 0")
        return float(given)


class _LoadedSet:
    """A plan set in memory, with what its page shows, which is computed when a page is first asked for."""

    def __init__(self, plans: PlanSet) -> None:
        self.plans = plans
        self.view: dict[str, Any] | None = None


def _keys(keep: Any, shown: StoredSet) -> tuple[str, ...]:
    """The keys of the plans to keep, each as often as the set holds that plan."""
    if not isinstance(keep, list) or not all(isinstance(key, str) for key in keep):
        raise Refused("'keep' must be a list of keys of plans")
    unknown = [key for key in keep if key not in shown.keys]
    if unknown:
        raise Refused(f"there is no plan {unknown[0][:20]!r} in set {shown.number} to keep")
    return tuple(key for key in shown.keys if key in keep)


def _too_few(kept: int) -> str:
    words = f"you keep {kept} plan{'s' if kept > 1 else ''}, "
    if kept >= MOST_PLANS:
        return words + f"and there can be {MOST_PLANS} at most: keep fewer"
    return words + f"so ask for at least {kept + 1}, or keep fewer"
