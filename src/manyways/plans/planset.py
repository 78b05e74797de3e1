"""The result of planning: a frozen set of plans, with everything needed to check, show, keep and repeat it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from manyways.behaviours import Behaviour
from manyways.files import write_bytes
from manyways.files.data_frames import the_pandas
from manyways.methods import Method, Status, Trace
from manyways.model.mdp import MDP
from manyways.model.occupancy import state_occupancy
from manyways.objectives import Objective
from manyways.plans import plan_file
from manyways.plans.certificate import Certificate
from manyways.plans.checker import SetProof
from manyways.plans.guarantee import fewer_ways, guarantee
from manyways.plans.map_layer import write_layer
from manyways.plans.policy import Observation, Policy, Rollout
from manyways.plans.route import Route
from manyways.polytope import Criterion, Limits, floors_of
from manyways.types import Floats

if TYPE_CHECKING:
    import pandas

NEARLY_SAME = 0.1
"""Plans closer than this share of what their behaviour calls different count as nearly the same: 0.01 nats by default."""

PAGE = "manyways.report"
"""The module that renders the page. It needs plan sets, so it is found by name, as pandas finds its plotting backend."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanSet(Sequence["Plan"]):
    """k plans for one model, best reward first. It is a sequence: `plans[2]` is a `Plan`.

    Attributes:
        mdp: the model.
        policies: (k, N) probability of each choice within its state.
        occupancies: (k, N) share of time that each policy spends on each choice, run from the start.
        rewards: (k,) the value of each plan under the criterion: reward per step, return per episode, discounted sum.
        distances: (k, k) pairwise Jensen-Shannon divergences of the behaviours, in nats.
        objective: the value that was maximised; by default eq. (main), mean reward + tradeoff x mean distance.
        optimal_reward: the highest value of any policy.
        gap: the Frank-Wolfe gap of the set, an upper bound: 0 at a stationary point. Infinite if its computation was
            interrupted.
        status: how the method ended.
        trace: how it got there.
        maximised: the objective as settings, such as `MeanDivergence(tradeoff=8.0)`.
        criterion, behaviour, method, seed: the other settings.
        limits: how much worse than the best plan every plan may be, settled to numbers.
        asked: how many plans were asked for; there are fewer where no further plan is really different (`ways`).
        like: the plan (counted from 0) that a further plan would be like, if there are fewer than asked for.
        fewer: whether plans could be left out where no further plan is really different.
        derived: whether the objective is the default one, or its tradeoff was derived from the model. Then clones were
            replaced as well.
        kept: the plans (counted from 0) that were given and stayed; the others were found around them.
        kept_titles: for each of those, the title that it has kept; empty if it had none.
        avoided: (m, N) policies from which the plans had to differ as well.
        seconds: how long the method ran.
        versions: of the programs that computed it.
        certificate: the checks made right after planning.
        proof: the vectors from which `verify` proves the numbers above.
    """

    mdp: MDP
    policies: Floats
    occupancies: Floats
    rewards: Floats
    distances: Floats
    objective: float
    optimal_reward: float
    gap: float
    status: Status
    trace: Trace
    maximised: Objective
    criterion: Criterion
    behaviour: Behaviour
    method: Method
    seed: int
    seconds: float
    versions: Mapping[str, str]
    certificate: Certificate | None = None
    proof: SetProof | None = field(default=None, repr=False)
    kept: tuple[int, ...] = ()
    avoided: Floats = field(default_factory=lambda: np.empty((0, 0)))
    limits: Limits = field(default_factory=Limits)
    asked: int | None = None
    like: int | None = None
    fewer: bool = False
    derived: bool = False
    kept_titles: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("policies", "occupancies", "rewards", "distances", "avoided"):
            array = np.array(getattr(self, name))
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __len__(self) -> int:
        return len(self.policies)

    @overload
    def __getitem__(self, index: int) -> Plan: ...
    @overload
    def __getitem__(self, index: slice) -> list[Plan]: ...
    def __getitem__(self, index: int | slice) -> Plan | list[Plan]:
        if isinstance(index, slice):
            return [Plan(self, i) for i in range(*index.indices(self.k))]
        number = index + self.k if index < 0 else index
        if not 0 <= number < self.k:
            raise IndexError(f"there are plans 0 to {self.k - 1}, found {index}")
        return Plan(self, int(number))

    def __iter__(self) -> Iterator[Plan]:
        return (Plan(self, i) for i in range(self.k))

    @property
    def k(self) -> int:
        return len(self.policies)

    @property
    def tradeoff(self) -> float | None:
        """The worth of diversity in reward; None if the objective has no such weight."""
        return getattr(self.maximised, "tradeoff", None)

    @property
    def diversity(self) -> float:
        """Mean pairwise Jensen-Shannon divergence, in nats; zero for a single plan."""
        return float(self.distances.sum() / (self.k * (self.k - 1))) if self.k > 1 else 0.0

    @property
    def ways(self) -> str | None:
        """That there are fewer really different ways than were asked for, in one sentence; None if there are not."""
        return fewer_ways(self)

    @cached_property
    def guarantee(self) -> str | None:
        """What holds for every plan, in one sentence; None if plans were not limited, or that is not verified."""
        return None if self.status is Status.NOT_VERIFIED else guarantee(self)

    @property
    def kept_below(self) -> tuple[int, ...]:
        """The kept plans (counted from 0) that are worse than the limits allow for new ones."""
        floors = floors_of(self.limits, self.criterion, self.mdp, self.optimal_reward)
        planned = self.criterion.planned(self.mdp, self.optimal_reward)
        return tuple(i for i in self.kept if any(f.shortfall(planned, self.occupancies[i]) > 1e-9 for f in floors))

    @property
    def near_duplicates(self) -> list[tuple[int, int]]:
        """Pairs of plans (counted from 0) that are nearly the same."""
        first, second = np.nonzero(np.triu(self.distances < NEARLY_SAME * self.behaviour.apart, 1))
        return [(int(i), int(j)) for i, j in zip(first, second, strict=True)]

    @cached_property
    def titles(self) -> tuple[str, ...]:
        """A short title for each plan that says what sets it apart."""
        from manyways.describe import portraits

        return tuple(portrait.title for portrait in portraits(self))

    def frame(self) -> pandas.DataFrame:
        """One row per plan: title, reward and the other measures of `describe`."""
        from manyways.describe import measures, portraits, survey_of

        survey = survey_of(self)
        columns: dict[str, Any] = {"title": [portrait.title for portrait in portraits(survey)]}
        columns |= {measure.name: measure.values for measure in measures(survey)}
        pd = the_pandas()
        return pd.DataFrame(columns, index=pd.RangeIndex(1, self.k + 1, name="plan"))

    def __repr__(self) -> str:
        return (
            f"PlanSet({self.mdp.name!r}, k={self.k}, objective={self.objective:.4f}, reward={self.rewards.mean():.4f} "
            f"of {self.optimal_reward:.4f}, diversity={self.diversity:.4f}, {self.status})"
        )

    def draw(self, path: str | PathLike[str]) -> Path:
        """Write the picture of the plans' occupancy maps (.png, .svg or .pdf); returns the path."""
        from manyways.describe.wording import terms_of
        from manyways.draw import occupancy_maps, save_picture  # matplotlib takes long to load

        terms = terms_of(self.mdp)
        titles = [f"plan {i + 1}: {terms.noun} {value:.3f}" for i, value in enumerate(terms.shown(self.rewards))]
        mean, best = terms.shown(self.rewards.mean()), terms.shown(self.optimal_reward)
        heading = f"{self.mdp.name}\n{self.k} plans, mean {terms.noun} {mean:.3f} of {best:.3f}, diversity {self.diversity:.3f}"
        save_picture(occupancy_maps(self.mdp, self.occupancies, titles, heading), Path(path))
        return Path(path)

    def report(
        self, path: str | PathLike[str], sweep: Any = None, plans_file: str | PathLike[str] | None = None
    ) -> Path:
        """Write the page on which to compare the plans, one .html file for any browser; returns the path.

        Args:
            path: of the page.
            sweep: a `Sweep` of the same model, whose curve the page shows beside this set.
            plans_file: where the plans are saved, for the commands that the page shows.
        """
        import_module(PAGE).write_report(self, Path(path), sweep, None if plans_file is None else Path(plans_file))
        return Path(path)

    def _repr_html_(self) -> str:
        return import_module(PAGE).notebook_view(self)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything, the model included, to one file; returns the path."""
        write_bytes(Path(path), self.to_bytes())
        return Path(path)

    def to_bytes(self) -> bytes:
        """The bytes that `save` writes."""
        return plan_file.to_bytes({item.name: getattr(self, item.name) for item in fields(self)})

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> PlanSet:
        """The plan set in the bytes of a file; `name` is what errors call it."""
        return cls(**plan_file.read_bytes(content, name))


def load(path: str | PathLike[str]) -> PlanSet:
    """Read a plan set that `PlanSet.save` wrote."""
    return PlanSet(**plan_file.read_file(Path(path)))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """One plan of a set: to look at, to act with, to run, to save.

    Attributes:
        plans: the set that it belongs to.
        index: its position in the set, counted from 0.
    """

    plans: PlanSet
    index: int

    @cached_property
    def policy(self) -> Policy:
        """What to do in each state."""
        return Policy(self.plans.mdp, self.plans.policies[self.index])

    @property
    def occupancy(self) -> Floats:
        """(N,) the share of time that it spends on each choice."""
        return self.plans.occupancies[self.index]

    @property
    def reward(self) -> float:
        """Its value under the criterion."""
        return float(self.plans.rewards[self.index])

    @property
    def title(self) -> str:
        """What sets it apart from the other plans of the set, in a few words."""
        return self.plans.titles[self.index]

    @property
    def key(self) -> str:
        """An identifier: the same for the same policy of the same model, whatever set it is in."""
        content = self.plans.mdp.digest.encode() + np.ascontiguousarray(self.policy.probabilities).tobytes()
        return hashlib.sha256(content).hexdigest()[:16]

    def act(self, observation: Observation, rng: np.random.Generator | None = None) -> int:
        """The number of an action, whose name is `plans.mdp.action_names[number]`; see `Policy.act`."""
        return self.policy.act(observation, rng)

    def rollout(self, steps: int, rng: np.random.Generator) -> Rollout:
        """A run in the model; see `Policy.rollout`."""
        return self.policy.rollout(steps, rng)

    def route(self) -> Route:
        """The most likely way to the goal, as waypoints on the map; see `Policy.route`."""
        return self.policy.route()

    def save_layer(self, path: str | PathLike[str]) -> Path:
        """Write the time spent in each cell as a layer for the map (.pgm, and .yaml beside it); returns the path."""
        mdp = self.plans.mdp
        return write_layer(mdp, state_occupancy(mdp, self.occupancy), Path(path))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the policy (.json, .csv, .npz or .scheduler); returns the path."""
        return self.policy.save(path)

    def __repr__(self) -> str:
        return f"Plan({self.index + 1} of {self.plans.k} for {self.plans.mdp.name!r}, reward={self.reward:.4f})"
