"""The numbers of the team study: means over worlds, with intervals from resamplings of the worlds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manyways.studies.results import Results
from manyways.studies.team_trials import NO_SLACK
from manyways.studies.verdicts import Estimate, mean_estimate, resampled_worlds
from manyways.types import Floats

REACHES, WORST, BEST_VALUE, SEEN, FIRST_VISIT, MEETINGS, DELAYED, REWARD = (
    "reaches",
    "reaches_worst",
    "best_value",
    "seen",
    "first_visit",
    "meetings",
    "delayed",
    "reward",
)
MEASURES = {
    REACHES: "somebody arrives in time, one unknown closure",
    WORST: "somebody arrives in time, worst closure",
    BEST_VALUE: "value of the best plan under a closure, of re-planning",
    SEEN: "share of places that somebody sees in time",
    FIRST_VISIT: "time to the first visit of a place, of the deadline",
    MEETINGS: "meetings per step",
    DELAYED: "reward if a meeting costs a step, of the best plan",
    REWARD: "reward without meetings, of the best plan",
}
"""The columns of rows that are measures, and what they are. Of `FIRST_VISIT` and `MEETINGS` less is better."""


@dataclass(frozen=True, eq=False)
class Measures:
    """What all sets do in all worlds.

    Attributes:
        worlds: the sources of the W worlds.
        numbers: by set, k, slack and measure, (W,).
    """

    worlds: list[str]
    numbers: dict[tuple[str, int, float | None, str], Floats]

    @property
    def sets(self) -> list[str]:
        return list(dict.fromkeys(name for name, _, _, _ in self.numbers))

    @property
    def sizes(self) -> list[int]:
        return sorted({k for _, k, _, _ in self.numbers})

    @property
    def slacks(self) -> list[float]:
        return sorted({slack for _, _, slack, _ in self.numbers if slack is not None})

    def of(self, name: str, k: int, slack: float, measure: str) -> Estimate:
        """The mean over worlds of a measure of one set."""
        numbers = self.numbers[name, k, None if name in NO_SLACK else slack, measure]
        return Estimate(float(numbers.mean()), self._weights @ numbers / len(self.worlds))

    def over_sizes(self, name: str, slack: float, measure: str) -> Estimate:
        """The same, on average over all k."""
        return mean_estimate([self.of(name, k, slack, measure) for k in self.sizes])

    @cached_property
    def _weights(self) -> Floats:
        return resampled_worlds([source.partition(":")[0] for source in self.worlds])


def measures_of(found: Results) -> Measures | None:
    """The measures of all sets. Worlds in which a trial failed are left out; None if none is left."""
    failed = {row["source"] for row in found.failed}
    good = [row for row in found.good if row["source"] not in failed]
    worlds = list(dict.fromkeys(row["source"] for row in good))
    if not worlds:
        return None
    numbers: dict[tuple[str, int, float | None, str], dict[str, float]] = {}
    for row in good:
        for measure in MEASURES:
            key = (row["set"], row["k"], row["slack"], measure)
            numbers.setdefault(key, {})[row["source"]] = row[measure]
    return Measures(worlds, {key: np.array([own[source] for source in worlds]) for key, own in numbers.items()})
