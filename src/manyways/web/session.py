"""What the page can ask for, HTTP left out: it joins the store, the planning process and the page's text."""

from __future__ import annotations

import os
import re
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import Any

from manyways.errors import PlanFileError
from manyways.plans import PlanSet
from manyways.plans.policy_files import FORMATS, policy_bytes
from manyways.report import Live, render
from manyways.web.events import Refused, checked_mark
from manyways.web.planner import Found, Request, described
from manyways.web.store import Choices, KeptSet, State, choices_path, no_set
from manyways.web.worker import Worker

MOST_PLANS = 50
SEEDS = 2**32
SETS_IN_MEMORY = 2
PAGES_IN_MEMORY = 4


class Desk:
    """One plan file, the choices beside it, and the process that plans."""

    def __init__(self, plans_path: Path, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s
        self.server = secrets.token_hex(8)  # the jobs of another server have the same numbers
        self._stem = re.sub(r"[^A-Za-z0-9_-]+", "-", plans_path.stem).strip("-") or "plans"
        archive = _content(plans_path)
        plans = PlanSet.from_bytes(archive, str(plans_path))
        self.choices = Choices(choices_path(plans_path))
        try:
            name = os.fsencode(plans_path.name).decode(errors="replace")  # any bytes can be a file's name
            label = f"{name}: {described(plans)}"
            self.choices.begin(plans.mdp.digest, archive, [plan.key for plan in plans], label)
        except BaseException:
            self.choices.close()
            raise
        self.worker = Worker(self._keep)
        self._reading, self._rendering = Lock(), Lock()
        self._plans: OrderedDict[int, PlanSet] = OrderedDict()
        self._pages: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    def close(self) -> None:
        self.worker.close()
        self.choices.close()

    def page(self, number: int | None = None) -> bytes:
        """The page of a set, or of the current one; made anew only if something was said or planned since."""
        with self._rendering:
            state = self.choices.state(number)
            made_of = (state.shown.number, state.last_event)
            if made_of not in self._pages:
                sets = tuple({"number": kept.number, "label": kept.label} for kept in state.sets)
                live = Live(state.shown.number, sets, state.marks, state.last_event, state.chosen)
                self._pages[made_of] = render(self.plans(state.shown.number), live).encode(errors="replace")
                while len(self._pages) > PAGES_IN_MEMORY:
                    self._pages.popitem(last=False)
            self._pages.move_to_end(made_of)
            return self._pages[made_of]

    def state(self, since: int | None) -> dict[str, Any]:
        """What happened after event `since`, and how far the plan in the making is."""
        # the job first: whoever sees it finished must also see the set that it made
        job, finished = self.worker.job(), self.worker.finished
        state = self.choices.state()
        answer = {"server": self.server, "set": state.shown.number, "last_event": state.last_event}
        answer |= {"job": job, "finished": finished}
        if since is None or state.last_event > since:
            answer |= {"marks": state.marks, "chosen": state.chosen}
        return answer

    def plan(self, asked: Mapping[str, Any]) -> int:
        """Begin to plan as asked, from any set that is kept; returns the number of the job."""
        number = asked.get("set")
        if isinstance(number, bool) or not isinstance(number, int):
            raise Refused("'set' must be the number of a set")
        keep = _kept(asked.get("keep", []), self.choices.state(number).shown)
        k = _whole("Plans", asked.get("k"), 1, MOST_PLANS)
        if k <= len(keep):
            raise Refused(_too_few(len(keep)))
        seed = _whole("Seed", asked.get("seed", 0), 0, SEEDS - 1)
        tradeoff = asked.get("tradeoff")
        if isinstance(tradeoff, bool) or not isinstance(tradeoff, int | float) or not 0 <= tradeoff < 1e300:
            raise Refused("the worth of diversity (tradeoff) must be a finite number from 0 on")
        request = Request(self.archive(number), k, float(tradeoff), seed, keep, self._time_limit_s)
        return self.worker.start(request)

    def mark(self, said: Mapping[str, Any]) -> State:
        """Keep what someone said about a plan."""
        self.choices.mark(*checked_mark(said))
        return self.choices.state()

    def archive(self, number: int) -> bytes:
        found = self.choices.archive(number)
        if found is None:
            raise no_set(number)
        return found

    def plans(self, number: int) -> PlanSet:
        """A set, from memory if it was among the last that were asked for."""
        with self._reading:
            if number not in self._plans:
                self._plans[number] = PlanSet.from_bytes(self.archive(number), f"set {number}")
                while len(self._plans) > SETS_IN_MEMORY:
                    self._plans.popitem(last=False)
            self._plans.move_to_end(number)
            return self._plans[number]

    def policy(self, number: int, plan: int, ending: str) -> tuple[bytes, str]:
        """One plan, counted from 1, as a file: its content, and a name for it."""
        if ending not in FORMATS:
            raise Refused(f"a policy ends in one of {', '.join(FORMATS)}", 404)
        plans = self.plans(number)
        if not 1 <= plan <= plans.k:
            raise Refused(f"set {number} has plans 1 to {plans.k}, found {plan}", 404)
        return policy_bytes(plans[plan - 1].policy, ending), f"{self._stem}-set{number}-plan{plan}{ending}"

    def plans_file(self, number: int) -> tuple[bytes, str]:
        """A whole set as a file: its content, and a name for it."""
        return self.archive(number), f"{self._stem}-set{number}.mw"

    def _keep(self, found: Found) -> int:
        return self.choices.add_set(found.label, found.archive, found.keys)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise PlanFileError(f"there is no file {path}") from None
    except OSError as error:
        raise PlanFileError(f"cannot read {path}: {error.strerror or error}") from None


def _kept(keys: Any, shown: KeptSet) -> tuple[int, ...]:
    """Where the plans to keep are in the set: everywhere, if it holds the same plan more than once."""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise Refused("'keep' must be a list of keys of plans")
    unknown = [key for key in keys if key not in shown.keys]
    if unknown:
        raise Refused(f"there is no plan {unknown[0][:20]!r} in set {shown.number} to be kept")
    return tuple(i for i, key in enumerate(shown.keys) if key in keys)


def _too_few(kept: int) -> str:
    words = f"you keep {kept} plan{'s' if kept > 1 else ''}, "
    if kept >= MOST_PLANS:
        return words + f"and there can be {MOST_PLANS} at most: keep fewer"
    return words + f"so ask for at least {kept + 1}, or keep fewer"


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, float) and isfinite(value) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise Refused(f"{name} must be a whole number from {least} to {most}")
    return value
