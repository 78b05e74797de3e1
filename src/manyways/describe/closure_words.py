"""What is said of plans with something closed: sentences, headings and keys, on the page and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from manyways.describe.remarks import place_of
from manyways.describe.subject import Plans
from manyways.describe.wording import counted, joined, number, percent, quoted, raised, terms_of
from manyways.model.closures import Closure
from manyways.model.trips import NEVER
from manyways.types import Bools, Ints

PLACES = 3
"""With more different places than this it is not said where plans are stuck."""
NOWHERE = -1
"""In place of a state: a plan may be stuck in one of several places."""
FAILING = {
    "earn": "A failed step takes its time and earns nothing; what it would have lost, it still loses.",
    "cost": "A failed step takes its time and costs as usual.",
}


class Closed(Protocol):
    """What the sentences need of a `surviving.Survival`."""

    @property
    def plans(self) -> Plans: ...
    @property
    def closures(self) -> Sequence[Closure]: ...
    @property
    def closed(self) -> Any: ...
    @property
    def possible(self) -> Any: ...
    @property
    def has_goal(self) -> bool: ...
    @property
    def has_trips(self) -> bool: ...
    @property
    def counts_cost(self) -> bool: ...
    @property
    def survivors(self) -> Bools: ...
    @property
    def hopeless(self) -> Bools: ...
    @property
    def level(self) -> Bools: ...
    @property
    def harmless(self) -> Bools: ...
    def told(self, outcomes: Any, *at: int) -> str: ...


@dataclass(frozen=True, eq=False)
class ClosureWords:
    """The words for what becomes of the plans of a set."""

    found: Closed

    # ---- about all closures -------------------------------------------------------------------

    @property
    def counted(self) -> str:
        """What the numbers are."""
        terms, found = terms_of(self.found.plans.mdp), self.found
        if not found.has_trips:
            return f"{terms.noun} {found.plans.criterion.unit}"
        what = "the cost of a trip" if found.counts_cost else f"steps to the {'goal' if found.has_goal else 'end'}"
        return f"{what}, or the chance of {'reaching the goal' if found.has_goal else 'coming to an end'}"

    @property
    def made_for(self) -> str:
        """How the plan is the best one that was made with the closure known."""
        terms, found = terms_of(self.found.plans.mdp), self.found
        if not found.has_trips:
            return f"{terms.best} {terms.noun}"
        return f"surest, then {'cheapest' if found.counts_cost else 'highest reward'}"

    @property
    def lost(self) -> str:
        """What is crossed out."""
        if not self.found.has_trips:
            return "it gets stuck: it stays forever where it would go on with nothing closed"
        more = "costs more than twice as much" if self.found.counts_cost else "takes more than twice as long"
        return f"it {self._does} less surely than with nothing closed, or {more}"

    @property
    def late(self) -> str:
        """What counts as not arriving."""
        if not self.found.has_trips:
            return ""
        misses = "misses the goal" if self.found.has_goal else "never ends"
        return (
            "A trip that takes more than a hundred times as long as those of the slowest plan take with nothing closed counts "
            f"as one that {misses}."
        )

    @property
    def failing(self) -> str:
        """What a step that fails is worth."""
        return FAILING[terms_of(self.found.plans.mdp).verb]

    def hopeless(self) -> str:
        """What nobody can do anything about, in one sentence; empty if there is nothing."""
        if self.found.has_trips:
            lead = f"No plan was found that {self._does} with one of these closed"
        else:
            lead = "With one of these closed every plan of the set gets stuck"
        return self._listed(lead, self.found.hopeless)

    def level(self) -> str:
        """The closures with which all plans do the same, and none was found that does better."""
        chosen = self.found.level & ~self.found.harmless
        lead = "With one of these closed every plan does the same, and no better plan was found"
        return self._listed(lead, chosen, values=True)

    def harmless(self) -> str:
        """The closures with which no plan does worse."""
        return self._listed("No plan does worse with one of these closed", self.found.harmless)

    def _listed(self, lead: str, chosen: Bools, values: bool = False) -> str:
        which = np.flatnonzero(chosen).tolist()
        names = [
            f"{self.found.closures[j].name}{f' ({self.found.told(self.found.closed, 0, j)})' if values else ''}"
            for j in which
        ]
        return f"{lead}: {', '.join(names)}." if names else ""

    # ---- about one closure --------------------------------------------------------------------

    def sentence(self, j: int) -> str:
        """What happens if closure j (counted from 0) is closed, in plain words."""
        found, told = self.found, self._closed_told(self.found.closures[j])
        if not found.has_trips:
            return f"{told}, {self._values_told(j)}."
        if found.hopeless[j]:
            return f"{told}, no plan at all {self._does}."
        certain = found.closed.reaches[:, j] >= 1 - NEVER
        sure = np.flatnonzero(found.survivors[:, j] & certain)
        if len(sure):
            return f"{told}, {self._who(sure, 'still ')}{self._amount_told(sure, j)}{self._made_told(j)}."
        return f"{told}, {self._chance_told(j)}{self._made_told(j)}."

    def _closed_told(self, closure: Closure) -> str:
        """ "With the north passage closed", "With 'mud' closed" for a label, "If the action left fails"."""
        if closure.choices.any():
            return f"If the {closure.name} fails"
        name = quoted(closure.name) if closure.name in self.found.plans.mdp.labels else f"the {closure.name}"
        return f"With {name} closed"

    def _chance_told(self, j: int) -> str:
        """What the surest plan does, where none gets through for certain and in time."""
        reaches, steps = self.found.closed.reaches[:, j], self.found.closed.steps[:, j]
        if reaches.max() <= NEVER:
            return f"no plan of the set {self._does}"
        likely = int(np.lexsort((np.nan_to_num(steps, nan=np.inf), -reaches))[0])
        if reaches[likely] >= 1 - NEVER:
            return f"plan {likely + 1} {self._does} only by luck{self._amount_told(np.array([likely]), j)}"
        chance = percent(float(reaches[likely]))
        surest = np.flatnonzero([percent(float(other)) == chance for other in reaches])
        most = " most often," if len(surest) < self.found.plans.k else ""
        return f"{self._who(surest)}{most} in {chance} of all trips"

    def _amount_told(self, sure: Ints, j: int) -> str:
        """The cost, or the steps, of the best of the plans that reach the goal for certain."""
        best, found = self._best(sure, j), self.found
        which = (
            ""
            if len(sure) == 1
            else f", plan {best + 1} at the {terms_of(found.plans.mdp).best} {terms_of(found.plans.mdp).noun}"
        )
        if found.counts_cost:
            return f"{which or ', at a cost'} of {found.told(found.closed, best, j)}"
        return f"{which}, in {counted(float(found.closed.steps[best, j]), 'step')}"

    def _best(self, sure: Ints, j: int) -> int:
        """The best of some plans: that of the lowest cost of a trip, or of the highest value."""
        closed = self.found.closed
        return int(sure[np.argmax((closed.returns if self.found.counts_cost else closed.values)[sure, j])])

    def _made_told(self, j: int) -> str:
        """What a plan does that was made with the closure known, against the best one of the set."""
        found, again, closed = self.found, self.found.told(self.found.possible, j), self.found.closed
        chance = float(found.possible.reaches[j])
        certain = np.flatnonzero(found.survivors[:, j] & (closed.reaches[:, j] >= 1 - NEVER))
        if chance < 1 - NEVER or not len(certain) or found.counts_cost:
            if again in {found.told(closed, i, j) for i in range(found.plans.k)}:
                return "; no better plan was found"
            if chance < 1 - NEVER or not len(certain):
                return f"; one made for this closure does in {percent(chance)}"
            return f"; one made for this closure costs {again}"
        own, made = (float(value) for value in (closed.values[self._best(certain, j), j], found.possible.values[j]))
        if number(own) == number(made):
            return "; no better plan was found"
        return f"; one made for this closure earns more, in {counted(float(found.possible.steps[j]), 'step')}"

    def _values_told(self, j: int) -> str:
        """The best value of the plans that are not stuck, what a plan has that was made for the closure, and who is stuck."""
        found, terms = self.found, terms_of(self.found.plans.mdp)
        going = np.flatnonzero(found.survivors[:, j] & ~np.isnan(found.closed.values[:, j]))
        stuck = self._stuck_told(j)
        made = found.told(found.possible, j)
        better = made not in {found.told(found.closed, i, j) for i in range(found.plans.k)}
        again = f"one made for this closure has {made}" if better else "no better plan was found"
        if not len(going):
            made_has = f"one made for this closure has a {terms.noun} of {made}" if better else again
            return f"{stuck or f'no plan of the set has a {terms.noun}'}; {made_has}"
        best = int(going[np.argmax(found.closed.values[going, j])])
        told = f"the best plan of the set has a {terms.noun} of {found.told(found.closed, best, j)}; {again}"
        return f"{told}. {raised(stuck)}" if stuck else told

    def _stuck_told(self, j: int) -> str:
        """ "every plan gets stuck in 'depot'", "plans 2 and 4 get stuck in 'breakdown' and plan 3 in 'mill low'"."""
        found = self.found
        stuck = np.flatnonzero(found.closed.stuck[:, j] > NEVER)
        where: dict[int, list[int]] = {}
        for i in stuck.tolist():
            place = found.closed.place[i, j]
            where.setdefault(NOWHERE if np.isnan(place) else int(place), []).append(i)
        if not where:
            return ""
        may = "may get" if (found.closed.stuck[stuck, j] < 1 - NEVER).any() else ""
        if len(where) == 1 or len(where) > PLACES or NOWHERE in where:
            at = next(iter(where))
            place = f", {place_of(found.plans.mdp, at)}" if len(where) == 1 and at != NOWHERE else ""
            return f"{self._subject(stuck)} {may or ('get' if self._many(stuck) else 'gets')} stuck{place}"
        parts = [
            f"{self._subject(np.array(plans))} {may or ('get' if len(plans) > 1 else 'gets')} stuck {place_of(found.plans.mdp, at)}"
            for at, plans in where.items()
        ]
        return joined(parts)

    # ---- words --------------------------------------------------------------------------------

    def _many(self, which: Ints) -> bool:
        return 1 < len(which) < self.found.plans.k

    def _subject(self, which: Ints) -> str:
        """ "plans 1 and 3", "every plan"."""
        if len(which) == self.found.plans.k > 1:
            return "every plan"
        return f"plan{'s' * (len(which) > 1)} {joined([str(i + 1) for i in which])}"

    def _who(self, which: Ints, still: str = "") -> str:
        """ "plans 1 and 3 reach the goal", "every plan still reaches the goal"."""
        return f"{self._subject(which)} {still}{self._do if self._many(which) else self._does}"

    @property
    def _does(self) -> str:
        return "reaches the goal" if self.found.has_goal else "comes to an end"

    @property
    def _do(self) -> str:
        return "reach the goal" if self.found.has_goal else "come to an end"
