"""Choosing by rounds: a person picks one of a few plans, and the next plans have learned from it.

Each round shows a set of plans that is best to choose from, given what the answers so far say about the person's preference.
Such a set is also the best question to ask (Viappiani and Boutilier, NIPS 2010), so a round is one call of `plan` with the
objective `Representative` and draws from the posterior (`preferences.posterior`). The best plan so far stays in every set.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from manyways.errors import PlanFileError, SettingError, SourceError, check_integer, check_number
from manyways.files import read_bytes, write_bytes
from manyways.files.archive import pack, unpack
from manyways.files.zipped_arrays import LARGEST
from manyways.methods import Progress
from manyways.model.mdp import MDP
from manyways.objectives import Representative
from manyways.planning import plan_or_interrupt
from manyways.plans import Plan, PlanSet
from manyways.preferences import PREFERENCES, Draws, Posterior, PreferencePrior, Preferences
from manyways.preferences.posterior import NOISE
from manyways.types import Floats

SCHEMA, VERSION = "manyways conversation", 1
DRAWS = 200
"""Preferences for which the plans of a round are made."""
SHOWN_DRAWS = 400
"""Preferences from which the mean and its uncertainty are computed."""
REWARD_SCHEMA, REWARD_VERSION = "manyways learned preference", 1
LARGEST_REWARD = 4 * 2**30


@dataclass(frozen=True, eq=False)
class Round:
    """A question and its answer.

    Attributes:
        plans: the plans that were shown.
        best: the plan (counted from 0) that was the best before the answer; None in the first round.
        better: the plan that was taken; None as long as there is no answer.
        over: the plans over which it was taken.
    """

    plans: PlanSet
    best: int | None = None
    better: int | None = None
    over: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class LearnedPreference:
    """What the answers say about the person's preference, as a reward to be added to the known one.

    Only differences can be learned from choices: a constant added to all rewards changes none of them. So each draw from the
    posterior is shifted such that the plans that were shown are worth 0 on average, each with the same weight.

    Attributes:
        mdp: the model.
        mean: (N,) the expected preference for each choice, in units of the reward.
        spread: (N,) its standard deviation.
        before: the mean standard deviation before any answer.
    """

    mdp: MDP
    mean: Floats
    spread: Floats
    before: float

    @property
    def by_state(self) -> Floats:
        """(S,) the mean of `mean` over the choices of each state."""
        first = self.mdp.first_choice
        return np.add.reduceat(self.mean, first[:-1]) / np.diff(first)

    @property
    def spread_by_state(self) -> Floats:
        """(S,) the mean of `spread` over the choices of each state."""
        first = self.mdp.first_choice
        return np.add.reduceat(self.spread, first[:-1]) / np.diff(first)

    def model(self) -> MDP:
        """The model with the expected preference added to its reward, to plan with elsewhere."""
        return self.mdp.with_reward(self.mdp.reward + self.mean)

    def to_bytes(self) -> bytes:
        """The content of a JSON file with one entry for each choice, in the order of the model; see docs/rounds.md."""
        mdp = self.mdp
        rows = [
            {"state": state, "action": action, "preference": mean, "spread": spread}
            for (state, action), mean, spread in zip(
                _choice_names(mdp), self.mean.tolist(), self.spread.tolist(), strict=True
            )
        ]
        header = {"schema": REWARD_SCHEMA, "version": REWARD_VERSION, "model": mdp.name, "digest": mdp.digest}
        return (json.dumps(header | {"before": self.before, "choices": rows}, indent=1) + "\n").encode()

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the preference to a JSON file; returns its path."""
        path = Path(path)
        write_bytes(path, self.to_bytes())
        return path

    @classmethod
    def load(cls, path: str | PathLike[str], mdp: MDP) -> LearnedPreference:
        """Read what `save` wrote. The model needs the same states and actions; its reward may be another one.

        Example:
            >>> plans = plan(LearnedPreference.load("learned.json", mdp).model(), k=6)
        """
        path = Path(path)
        content = read_bytes(path, LARGEST_REWARD)
        try:
            read = json.loads(content)
            if read["schema"] != REWARD_SCHEMA or read["version"] != REWARD_VERSION:
                raise SettingError(f"expected {REWARD_SCHEMA!r}, version {REWARD_VERSION}")
            rows, names = read["choices"], _choice_names(mdp)
            for row, (state, action) in zip(rows, names, strict=False):
                if (row["state"], row["action"]) != (state, action):
                    raise SettingError(
                        f"expected action {action[:60]!r} of state {state[:60]!r}, found {row['action']!r:.60} of "
                        f"{row['state']!r:.60}; it was written for another model"
                    )
            if len(rows) != len(names):
                raise SettingError(
                    f"{mdp.name} has {len(names)} choices, found {len(rows)}; it was written for another model"
                )
            mean, spread = (
                np.array([check_number(f"the {what}", row[what]) for row in rows]) for what in ("preference", "spread")
            )
            return cls(mdp, mean, spread, check_number("before", read["before"], 0))
        except (SettingError, ValueError, KeyError, TypeError, RecursionError) as error:
            reason = f"it has no {error}" if isinstance(error, KeyError) else error
            raise SourceError(f"cannot use {path} as a learned preference: {reason}") from None


def _choice_names(mdp: MDP) -> list[tuple[str, str]]:
    """(state, action) of each choice."""
    states = mdp.choice_state.tolist()
    return [(mdp.state_name(state), mdp.action_name(choice)) for choice, state in enumerate(states)]


class Conversation:
    """Plans to choose from, round by round.

    Args:
        source: a model, or anything that `read` takes.
        k: how many plans a round shows.
        slack: every plan has at least the best value minus this share of it; within 10 % by default, as for `plan`.
        preferences: what the person may prefer before any answer; `Preferences()` by default.
        noise: how uncertain choices are, as a share of a typical reward per step; see `Posterior`.
        seed: of every random draw.
        settings: further settings of `plan`, such as `criterion`, `behaviour`, `floor` or `longer`.

    Example:
        >>> talk = Conversation("nine-rooms:7")
        >>> talk.choose(2)  # the third plan is the best of these; returns the next set
        >>> talk.choose(0)
        >>> talk.best, talk.preference.by_state

    Attributes:
        rounds: all rounds so far; the last one has no answer yet.
    """

    def __init__(
        self,
        source: MDP | str | PathLike[str],
        k: int = 6,
        *,
        slack: float | None = None,
        preferences: PreferencePrior | None = None,
        noise: float = NOISE,
        seed: int = 0,
        progress: Callable[[Progress], None] | None = None,
        **settings: Any,
    ) -> None:
        self._k, self._seed = check_integer("k", k, 2), check_integer("seed", seed, 0)
        self._noise = check_number("noise", noise, 0)
        self._prior = Preferences() if preferences is None else PREFERENCES.check(preferences)
        self._settings = settings | {"slack": slack}
        self.rounds: tuple[Round, ...] = (Round(self._planned(source, self._prior, progress=progress)),)

    @property
    def plans(self) -> PlanSet:
        """The plans to choose from."""
        return self.rounds[-1].plans

    @property
    def best(self) -> Plan | None:
        """The plan that was taken last; None before the first answer."""
        last = self.rounds[-1]
        return None if last.best is None else last.plans[last.best]

    def choose(self, i: int, progress: Callable[[Progress], None] | None = None) -> PlanSet:
        """Plan i of `plans` (counted from 0) is the best of them. Returns the next plans."""
        self._check(i)
        return self._answer(i, tuple(j for j in range(self.plans.k) if j != i), progress)

    def prefer(self, i: int, j: int, progress: Callable[[Progress], None] | None = None) -> PlanSet:
        """Plan i of `plans` (counted from 0) is better than plan j. Returns the next plans."""
        self._check(i)
        self._check(j)
        if i == j:
            raise SettingError(f"a plan cannot be better than itself, found {i} twice")
        return self._answer(i, (j,), progress)

    def undo(self) -> PlanSet:
        """Take the last answer back. Returns the plans that it was about."""
        if len(self.rounds) == 1:
            raise SettingError("there is no answer to take back")
        self.rounds = (*self.rounds[:-2], replace(self.rounds[-2], better=None, over=()))
        return self.plans

    @property
    def preference(self) -> LearnedPreference:
        """What the answers so far say about the person's preference."""
        plans = self.plans
        typical = np.mean([one.plans.occupancies.mean(axis=0) for one in self.rounds], axis=0)
        scale = plans.criterion.planned_per_reward
        _, before = _moments(self._drawn(self._prior), typical)
        mean, spread = _moments(self._learned(), typical)
        return LearnedPreference(plans.mdp, mean / scale, spread / scale, float(before.mean()) / scale)

    def worth(self, x: Floats) -> Floats:
        """(..., N) -> (..., M): what occupancies, or differences of them, are worth to the person, known reward left out.

        One number for each of M preferences drawn from the posterior, in units of the reward.
        """
        return self._learned().values(x) / self.plans.criterion.planned_per_reward

    def to_bytes(self) -> bytes:
        """The conversation, with all plans that were shown, as the content of a file (.mwc)."""
        arrays = {f"plans/{i}": np.frombuffer(one.plans.to_bytes(), np.uint8) for i, one in enumerate(self.rounds)}
        header = {
            "k": self._k,
            "seed": self._seed,
            "noise": self._noise,
            "prior": PREFERENCES.to_plain(self._prior, arrays),
            "rounds": [{"best": one.best, "better": one.better, "over": list(one.over)} for one in self.rounds],
        }
        return pack(SCHEMA, VERSION, header, arrays)

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> Conversation:
        """What `to_bytes` returned; `name` is what errors call it."""
        header, arrays = unpack(io.BytesIO(content), name, SCHEMA, (VERSION,))
        try:
            rounds = []
            for i, one in enumerate(header["rounds"]):
                plans = PlanSet.from_bytes(arrays[f"plans/{i}"].tobytes(), f"round {i + 1} of {name}")
                rounds.append(Round(plans, one["best"], one["better"], tuple(one["over"])))
            prior = PREFERENCES.from_plain(header["prior"], arrays)
            return cls.resume(rounds, header["k"], preferences=prior, noise=header["noise"], seed=header["seed"])
        except PlanFileError:
            raise
        except (SettingError, KeyError, TypeError, IndexError, AttributeError) as error:
            raise PlanFileError(f"{name} is damaged: {error}") from None

    @classmethod
    def resume(
        cls,
        rounds: Sequence[Round],
        k: int,
        *,
        preferences: PreferencePrior | None = None,
        noise: float = NOISE,
        seed: int = 0,
        **settings: Any,
    ) -> Conversation:
        """Go on with rounds of an earlier conversation, with the limits, criterion, behaviour and method of its plans."""
        self = cls.__new__(cls)
        self._k, self._seed = check_integer("k", k, 2), check_integer("seed", seed, 0)
        self._noise = check_number("noise", noise, 0)
        self._prior = Preferences() if preferences is None else PREFERENCES.check(preferences)
        self.rounds = tuple(rounds)
        for one in self.rounds:
            numbers = [number for number in (one.best, one.better, *one.over) if number is not None]
            if any(type(number) is not int or not 0 <= number < one.plans.k for number in numbers):
                raise SettingError(f"a round names a plan that it does not show: {numbers}")
        if not self.rounds or self.rounds[-1].better is not None:
            raise SettingError("the last round of a conversation must be a question without an answer")
        first = self.rounds[0].plans
        limits = first.limits
        self._settings = settings | {
            "slack": limits.slack,
            "floor": None if limits.slack is not None else limits.floor,
            "longer": limits.longer,
            "randomised": limits.randomised,
            "criterion": first.criterion,
            "behaviour": first.behaviour,
            "method": first.method,
        }
        return self

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the conversation, with all plans that were shown, to a file (.mwc); returns its path."""
        path = Path(path)
        write_bytes(path, self.to_bytes())
        return path

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Conversation:
        """Go on with a conversation that was saved."""
        return cls.from_bytes(read_bytes(Path(path), LARGEST, PlanFileError), str(path))

    def _check(self, i: int) -> None:
        if not isinstance(i, (int, np.integer)) or not 0 <= i < self.plans.k:
            raise SettingError(f"expected a plan from 0 to {self.plans.k - 1}, found {i!r}")

    def _answer(self, better: int, over: tuple[int, ...], progress: Callable[[Progress], None] | None) -> PlanSet:
        before = self.rounds
        self.rounds = (*before[:-1], replace(before[-1], better=int(better), over=tuple(map(int, over))))
        try:
            plans = self._planned(self.plans.mdp, self._posterior(), before[-1].plans[better], progress)
        except BaseException:  # an interrupt, too, leaves the question without an answer
            self.rounds = before
            raise
        self.rounds = (*self.rounds, Round(plans, best=plans.kept[0]))
        return plans

    def _planned(
        self,
        source: MDP | str | PathLike[str],
        preferences: PreferencePrior,
        best: Plan | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> PlanSet:
        keep, number = (None, 0) if best is None else ([best], len(self.rounds))
        aim = Representative(preferences, DRAWS if number else 2 * DRAWS, self._seed + number)
        return plan_or_interrupt(
            source, self._k, objective=aim, keep=keep, seed=self._seed, progress=progress, **self._settings
        )

    def _learned(self) -> Draws:
        """What the person may prefer now, drawn once for all questions about it."""
        known = getattr(self, "_known", None)
        if known is None or known[0] is not self.rounds:
            known = self._known = (self.rounds, self._drawn(self._posterior()))
        return known[1]

    def _drawn(self, prior: PreferencePrior) -> Draws:
        plans = self.plans
        planned = plans.criterion.planned(plans.mdp, plans.optimal_reward)
        unit = getattr(plans.maximised, "unit", None) or 1.0
        return prior.on(planned, unit).draw(SHOWN_DRAWS, np.random.default_rng(self._seed))

    def _posterior(self) -> PreferencePrior:
        """What the person may prefer, after the answers so far."""
        answered = [one for one in self.rounds if one.better is not None]
        if not answered:
            return self._prior
        shown, question, taken = [], [], []
        for number, one in enumerate(answered):
            taken.append(len(question))
            rows = [one.better, *one.over]
            shown.append(one.plans.occupancies[rows])
            question += [number] * len(rows)
        return Posterior(
            self._prior, np.concatenate(shown), np.array(question), np.array(taken), self._noise, self._seed
        )


def _moments(draws: Draws, typical: Floats) -> tuple[Floats, Floats]:
    """(N,) mean and standard deviation, with each draw shifted such that the occupancy `typical` (N,) is worth 0."""
    mean, spread = draws.moments()
    levels = draws.values(typical)
    off = levels - levels.mean()
    variance = spread**2 - 2 * draws.reward(off / len(draws)) + (off**2).mean()
    return mean - levels.mean(), np.sqrt(np.maximum(variance, 0))
