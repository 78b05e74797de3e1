"""What may happen on one trip of a plan: how its return is distributed, what it may touch, where it would be worst off.

Everything comes from the chain of the plan, nothing is simulated. Mean and spread of the return are sums over a linear
system. Its distribution is followed step by step in bins. Where all rewards on the way are multiples of one unit the bins are
those multiples, and the distribution is exact. Otherwise the mass of a step is shared between the two bins around its reward,
which keeps the mean and adds at most a quarter of a squared bin to the variance at each step; `Returns.blur` is the standard
deviation of that.

The reward of a step is the mean reward of its choice: where a reward depends on where a step leads, the model has only the
mean. What ends earn is told apart again where that is possible (`_Steps`); otherwise the distribution of such a model is that of sums
of means, and is not told in numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import gcd, isfinite, sqrt

import numpy as np
from scipy import sparse

from manyways.describe.wording import ROUNDED, Terms, number, percent, short
from manyways.errors import SettingError
from manyways.kernels import returns
from manyways.kernels.threads import one_blas_thread
from manyways.methods import Progress, Watch
from manyways.model.episodes import rewards_by_end
from manyways.model.mdp import MDP
from manyways.model.trips import Trip, Trips, trips_of
from manyways.plans import PlanSet
from manyways.types import Floats, Ints, Sparse

BINS, FEWEST_BINS = 1000, 60
MOST_MULTIPLES = 4000
"""With more multiples of the unit than this, bins are wider than the unit."""
MOST_WORK = 1e10
"""Steps times transitions times bins, for one plan, of which a tenth or less is used; with more there are fewer bins, and in the
end no distribution."""
UNFINISHED = 1e-9
LENGTHS, MOST_LENGTHS = 20, 10
"""Trips are followed for about 20 times their mean length, and for at most ten times as long."""
SPREADS = 12.0
"""The bins reach this many standard deviations to both sides of the mean."""
DECIMALS = 6
"""Rewards with at most so many decimals have a unit."""
STATES_UP_TO = 50_000
NOTICED = 0.01
"""The worst place on the way is one that at least this share of trips meets."""
WORSE = 0.05
"""A worst place is worth a sentence if at least this share of the value from the start is lost there."""
BLURRED = 0.02
"""A distribution that its bins widen by more than this share of its spread is not told in numbers."""


@dataclass(frozen=True, eq=False)
class Returns:
    """The distribution of the return of one trip, of those that end.

    Attributes:
        values: (B,) possible returns, rising.
        chances: (B,) how likely each is; they sum to the chance that a trip ends.
        blur: the standard deviation that the bins add; 0 if the distribution is exact.
    """

    values: Floats
    chances: Floats
    blur: float

    def quantile(self, share: float) -> float:
        """The least return that at least this share of the trips that end do not exceed."""
        total = np.cumsum(self.chances)
        return float(
            self.values[min(int(np.searchsorted(total, share * total[-1] * (1 - 1e-12))), len(self.values) - 1)]
        )

    def chance_below(self, value: float) -> float:
        """The chance that a trip ends with a return below a value."""
        return float(self.chances[self.values < value - 1e-9 * max(abs(value), 1.0)].sum())

    def tail(self) -> Tail | None:
        """How bad the worst twentieth of the trips is; where many trips have the same return, how many are as bad as that. None
        if nearly all trips have one and the same return."""
        total = float(self.chances.sum())
        met = self.values[self.chances > ROUNDED * total]
        low = self.quantile(0.05)
        if low >= met[-1]:  # nearly all trips have the best return
            if len(met) == 1:
                return None
            low = float(met[-2])
        return Tail(
            low, float(self.chances[self.values <= low].sum()) / total, low > met[0], float(met[met > low].min())
        )


@dataclass(frozen=True)
class Tail:
    """The worst trips of a plan.

    Attributes:
        value: the highest return of any of them.
        share: how many trips have this return or a lower one: about 1 in 20, unless many trips have the same return.
        open: whether some have a lower one.
        above: the next higher return.
    """

    value: float
    share: float
    open: bool
    above: float

    def bound(self, terms: Terms) -> str:
        """ "12 or less"; "33 or more" for a cost; "12" if no trip is worse."""
        beyond = f" or {'less' if terms.sign > 0 else 'more'}" if self.open else ""
        return f"{self._shown(terms)}{beyond}"

    def _shown(self, terms: Terms) -> str:
        """The value with so many digits that the share is that of the number as it is shown, too."""
        value = float(terms.shown(self.value))
        for text in (number(value), *(f"{value:,.{digits}f}" for digits in range(1, 7))):
            meant = terms.sign * float(text.replace(",", ""))
            if self.value - 1e-9 * abs(self.value) <= meant < self.above:
                return text
        return number(value)


@dataclass(frozen=True)
class WorstPlace:
    """Of the states that at least `NOTICED` of all trips meet, the one from which least is still to come.

    Attributes:
        state: its number.
        name: its name.
        met: the chance that a trip meets it.
        to_come: the expected return from there to the end of the trip.
        at_start: the same at the start.
        reaches: the chance to reach the goal from there.
        alone: whether no other such state is as bad, in the digits that are shown.
    """

    state: int
    name: str
    met: float
    to_come: float
    at_start: float
    reaches: float
    alone: bool

    def sentence(self, terms: Terms, whose: str = "its") -> str:
        """What is still to come there; empty if every trip meets it, if others are as bad, or if little is lost there."""
        lost = self.at_start - self.to_come
        if self.met >= 1 - 1e-9 or not self.alone or lost < WORSE * abs(self.at_start) or lost <= 0:
            return ""
        ahead, first = (number(float(terms.shown(value))) for value in (self.to_come, self.at_start))
        return (
            f"The worst place that at least 1 in {round(1 / NOTICED)} of {whose} trips meet is {short(self.name)} "
            f"({percent(self.met)} of them): from there a trip still {terms.verb}s {ahead}, from the start {first}."
        )


@dataclass(frozen=True, eq=False)
class Risk:
    """What may happen on one trip of a plan.

    Attributes:
        reaches: the chance that it reaches the goal.
        never_ends: the chance that it never ends.
        mean, spread: mean and standard deviation of its return, if it surely ends; NaN otherwise.
        returns: its distribution; None in models where that would take too long.
        touches: the chance that it meets each label of the model, or ends in each way that the model names.
        worst: the worst place on the way; None if trips may never end, or if no place is worse than a start.
        averaged: whether what a step earns depends on where it leads, of which the model has only the mean.
    """

    reaches: float
    never_ends: float
    mean: float
    spread: float
    returns: Returns | None
    touches: dict[str, float]
    worst: WorstPlace | None
    averaged: bool = False

    @property
    def told(self) -> Returns | None:
        """The distribution of the return, if its quantiles can be told in numbers."""
        sharp = self.returns is not None and self.returns.blur <= BLURRED * self.spread
        return self.returns if sharp and not self.averaged else None


def risk(plans: PlanSet, progress: Callable[[Progress], None] | None = None) -> tuple[Risk, ...]:
    """What may happen on one trip of each plan of a set.

    Args:
        plans: the set; its model must have episodes, or a goal.
        progress: called with a `Progress` for each plan.

    Example:
        >>> for card in risk(plans):
        ...     print(card.reaches, card.returns.quantile(0.05), card.returns.chance_below(0))
    """
    mdp, trips = plans.mdp, trips_of(plans.mdp)
    if trips is None:
        raise SettingError(
            f"{mdp.name} has neither episodes nor a goal, so there is no trip whose risk could be told; ",
            in_python="make it restart: mdp.restarting_at(states)",
            on_command_line="make it restart when it is read, with --restart LABEL",
        )
    if mdp.n_states > STATES_UP_TO:
        raise SettingError(
            f"risks are computed for models of up to {STATES_UP_TO:,} states, {mdp.name} has {mdp.n_states:,}"
        )
    watch, cards = Watch(None, progress), []
    with one_blas_thread():
        for number, policy in enumerate(plans.policies, 1):
            watch.check()
            cards.append(_card(mdp, trips, policy))
            watch.tell(number, plans.k, float("nan"), "following trips")
    return tuple(cards)


def _card(mdp: MDP, trips: Trips, policy: Floats) -> Risk:
    trip = trips.of(policy)
    touches = {label: trip.meets(mask) for label, mask in mdp.labels.items()}
    for end, chance in mdp.ends.items():  # where a model restarts within a step, no state is left that could be met
        if not touches.get(end):
            ends = np.add.reduceat(policy * chance, mdp.first_choice[:-1])[trip.states]
            touches[end] = float(np.clip(trip.visits @ ends, 0.0, 1.0))
    ended = float(np.clip(trip.visits @ trip.ends[:-1], 0.0, 1.0))
    never = 0.0 if trip.surely_ends else 1.0 - ended
    earned = np.append(np.add.reduceat(policy * mdp.reward, mdp.first_choice[:-1])[trip.states], 0.0)
    to_come = trip.solved(earned)
    mean = spread = np.nan
    worst = None
    steps = _Steps.of(mdp, trips, trip, policy)
    if trip.surely_ends:
        mean = float(trip.start @ to_come)
        squares = trip.solved(steps.squares(to_come))
        spread = sqrt(max(float(trip.start @ squares) - mean**2, 0.0))
        worst = _worst(mdp, trip, to_come)
    found = _distribution(steps, trip, to_come, mean, spread) if trip.surely_ends and isfinite(mean + spread) else None
    return Risk(trip.reaches, never, mean, spread, found, touches, worst, mdp.averaged and not steps.by_end)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The choices that a plan takes on its trips, with the states numbered as in its trip.

    Attributes:
        owner: (U,) the state of each.
        chance: (U,) how likely it is there.
        reward: (U,).
        step: (U, R + 1) CSR, the chance of each next state, the end included.
        by_end: whether it is known what each earns from how it ends.
    """

    owner: Ints
    chance: Floats
    reward: Floats
    step: Sparse
    by_end: bool = False

    @staticmethod
    def of(mdp: MDP, trips: Trips, trip: Trip, policy: Floats) -> _Steps:
        place = np.full(mdp.n_states, -1)
        place[trip.states] = np.arange(len(trip.states))
        used = np.flatnonzero((policy > 0) & (place[mdp.choice_state] >= 0))
        step = sparse.csr_array(trips.with_end[used][:, np.append(trip.states, mdp.n_states)])
        plain = _Steps(place[mdp.choice_state[used]], policy[used], mdp.reward[used], step)
        kinds = {end: chance[used] for end, chance in mdp.ends.items()} if trips.restarts else {}
        return plain._by_end(kinds)

    def _by_end(self, kinds: Mapping[str, Floats]) -> _Steps:
        """The same steps, those that end a trip apart from those that do not, if that tells what each earns.

        What a step earned is then known from how it ended (`rewards_by_end`), and the two are not blended.
        """
        if not any(((chance > 0) & (chance < 1)).any() for chance in kinds.values()):
            return self
        share = rewards_by_end(self.reward, kinds)
        if share is None:
            return self
        end = self.step.shape[1] - 1
        going_on = self.step.copy()
        going_on.data[going_on.indices == end] = 0.0
        going_on.eliminate_zeros()
        rows, rewards, which = [going_on], [np.full(len(self.owner), share[0])], [np.arange(len(self.owner))]
        for bonus, chance in zip(share[1:], kinds.values(), strict=True):
            ending = np.flatnonzero(chance)
            into = (chance[ending], (np.arange(len(ending)), np.full(len(ending), end)))
            rows.append(sparse.csr_array(into, shape=(len(ending), end + 1)))
            rewards.append(np.full(len(ending), share[0] + bonus))
            which.append(ending)
        own = np.concatenate(which)
        step = sparse.csr_array(sparse.vstack(rows))
        return _Steps(self.owner[own], self.chance[own], np.concatenate(rewards).round(12), step, by_end=True)

    def squares(self, to_come: Floats) -> Floats:
        """(R + 1,) what each step adds to the mean square of the return: r^2 + 2 r (what is to come after it)."""
        taken = self.chance * (self.step @ np.ones(len(to_come)))
        each = taken * self.reward**2 + 2 * self.chance * self.reward * (self.step @ to_come)
        return np.bincount(self.owner, weights=each, minlength=len(to_come)).astype(np.float64)


def _worst(mdp: MDP, trip: Trip, to_come: Floats) -> WorstPlace | None:
    likely = np.flatnonzero(trip.visits >= NOTICED)  # a state is met at most as often as it is visited
    order = likely[np.argsort(to_come[likely], kind="stable")].tolist()
    worst: WorstPlace | None = None
    for at in order:
        if worst is not None and number(float(to_come[at])) != number(worst.to_come):
            break
        met = _meets(trip, at)
        if met < NOTICED:
            continue
        if worst is not None:
            return replace(worst, alone=False)
        if trip.start[at] > 0:
            return None
        state, first = int(trip.states[at]), float(trip.start @ to_come)
        chance = float(np.clip(trip.solved(trip.goal)[at], 0.0, 1.0))
        worst = WorstPlace(state, mdp.state_name(state), min(met, 1.0), float(to_come[at]), first, chance, True)
    return worst


def _meets(trip: Trip, at: int) -> float:
    """The chance that a trip meets the state with this place in it."""
    unit = np.zeros(len(trip.start))
    unit[at] = 1.0
    return float(trip.visits[at] / trip.solved(unit)[at])


# ---- the distribution -------------------------------------------------------------------------


def _distribution(steps: _Steps, trip: Trip, to_come: Floats, mean: float, spread: float) -> Returns | None:
    """The distribution of the return; None if it would take too long.

    Each state has bins of its own: around the mean return less what is to come from there, so that bins for the spread of
    the return suffice.
    """
    work = LENGTHS * float(trip.visits.sum()) * (steps.step.nnz + len(steps.owner))
    affordable = int(min(MOST_WORK / work, MOST_MULTIPLES))
    reach, unit = SPREADS * spread, unit_of(steps.reward)
    if unit > 0 and 2 * reach / unit + 3 <= affordable:
        width, count = unit, int(2 * reach / unit) + 3
        whole, part = np.rint(steps.reward / unit).astype(np.int64), np.zeros(len(steps.reward))
    else:
        count = min(BINS, affordable)
        if count < FEWEST_BINS:
            return None
        width = max(2 * reach, 1e-9 * max(float(np.abs(steps.reward).max()), 1e-300)) / (count - 3)
        whole = np.floor(steps.reward / width).astype(np.int64)
        part = steps.reward / width - whole
    first_bin = np.floor((mean - to_come - reach) / width).astype(np.int64) - 1
    chances = _followed(steps, trip, whole, part, first_bin, count)
    if chances is None:
        return None
    kept = np.flatnonzero(chances > 0)
    taken = np.append(trip.visits, 0.0)[steps.owner] * steps.chance * (steps.step @ np.ones(len(trip.start)))
    blur = width * sqrt(float(taken @ (part * (1 - part))))
    return Returns(width * (first_bin[-1] + kept), chances[kept], blur)


def _followed(steps: _Steps, trip: Trip, whole: Ints, part: Floats, first_bin: Ints, count: int) -> Floats | None:
    """(count,) the mass in the bins of the end, once hardly any trip is left; None if that takes too many steps."""
    size, end = len(trip.start), len(trip.states)
    mass, after = np.zeros((size, count)), np.zeros((size, count))
    zero = np.clip(-first_bin, 0, count - 1)  # a sum begins at 0
    mass[np.arange(size), zero] = trip.start
    low, high = np.where(trip.start > 0, zero, count), np.where(trip.start > 0, zero + 1, 0)
    ended = np.zeros(count)
    arrays = steps.owner, steps.chance, steps.step.indptr, steps.step.indices, steps.step.data, whole, part, first_bin
    for _ in range(int(MOST_LENGTHS * LENGTHS * float(trip.visits.sum())) + 1000):
        after_low, after_high = np.full(size, count), np.zeros(size, np.int64)
        returns.move(*arrays, low, high, mass, after, after_low, after_high)
        ended += after[end]
        after[end] = 0.0
        after_low[end], after_high[end] = count, 0
        mass, after, low, high = after, mass, after_low, after_high
        after[:] = 0.0
        if mass.sum() <= UNFINISHED:
            return ended
    return None


def unit_of(rewards: Floats) -> float:
    """The largest number of which all rewards are multiples; 0 if there is none with at most `DECIMALS` decimals."""
    scaled = rewards * 10**DECIMALS
    if not np.isfinite(scaled).all() or np.abs(scaled).max(initial=0.0) > 2**52:
        return 0.0
    near = np.rint(scaled)
    if (np.abs(scaled - near) > 1e-9 * np.maximum(np.abs(scaled), 1.0)).any():
        return 0.0
    return gcd(*near.astype(np.int64).tolist()) / 10**DECIMALS
