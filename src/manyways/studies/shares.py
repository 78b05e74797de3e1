"""The measure of the preference study: the share of the possible gain that persons get from a set of plans.

    share = sum over persons (best of the set - best plan) / sum over persons (best of all - best plan)

with all values under the person's true reward, in units of their world. The sums run over all persons of a *cell*, one family
at one strength, in all worlds: a mean of ratios would be dominated by persons who could gain next to nothing. Shares of
several cells are averaged. Cells in which a person could gain less than 0.003 units on average are left out.

Two measures differ in the best of all: of *all* plans, or of the plans *within* the slack. Within the slack it is the best
plan that anybody found: the oracle for the person's true reward, or a set of the study. A set without limits has no share of
the second kind.

*Intervals.* The sums are formed again for each resampling of the worlds (`verdicts`), the kinds of worlds apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manyways.studies.contestants import UNLIMITED
from manyways.studies.results import Results
from manyways.studies.verdicts import Estimate, resampled_worlds
from manyways.types import Bools, Floats

ALL, WITHIN = "all", "within"
MEASURES = {ALL: "of all plans", WITHIN: "of the plans within the slack"}
LEAST_GAIN = 0.003
WORST = 0.1


@dataclass(frozen=True, eq=False)
class Shares:
    """What all persons of a study gain, and could gain.

    Attributes:
        worlds: the sources of the worlds.
        world: (P,) the world of each person, by number.
        family: (P,) names.
        strength: (P,) numbers.
        possible: by measure, (P,) what each person could gain, in units of their world.
        gains: by key, such as the name and the size of a set, (P,) what each person gains.
    """

    worlds: Sequence[str]
    world: np.ndarray
    family: np.ndarray
    strength: Floats
    possible: dict[str, Floats]
    gains: dict[Hashable, Floats]

    def families(self) -> list[str]:
        """The names of the families, in the order of the persons."""
        return list(dict.fromkeys(self.family.tolist()))

    def of(self, key: Hashable, families: Sequence[str], measure: str) -> Estimate:
        """The mean share of some families."""
        cells = self._cells(families, measure)
        got, possible = self._sums(self.gains[key])[:, cells], self._sums(self.possible[measure])[:, cells]
        if not cells.any():
            return Estimate(np.nan, np.full(len(self._weights), np.nan))
        with np.errstate(invalid="ignore"):  # a resampling may have nobody of a cell
            samples = np.nanmean((self._weights @ got) / (self._weights @ possible), axis=1)
        return Estimate(float((got.sum(axis=0) / possible.sum(axis=0)).mean()), samples)

    def counts(self, families: Sequence[str], measure: str) -> bool:
        """Whether some persons of these families could gain enough to count."""
        return bool(self._cells(families, measure).any())

    def worst_tenth(self, key: Hashable, families: Sequence[str], measure: str) -> float:
        """The share of the tenth of persons, among those with enough to gain, whose own shares are lowest."""
        counted = np.isin(self.family, families) & (self.possible[measure] >= LEAST_GAIN)
        got, possible = self.gains[key][counted], self.possible[measure][counted]
        if not len(got):
            return float("nan")
        worst = np.argsort(got / possible, kind="stable")[: max(1, int(WORST * len(got)))]
        return float(got[worst].sum() / possible[worst].sum())

    @cached_property
    def _weights(self) -> Floats:
        return resampled_worlds([source.partition(":")[0] for source in self.worlds])

    @cached_property
    def _cell(self) -> tuple[list[tuple[str, float]], np.ndarray]:
        """The cells, and (P,) the cell of each person, by number."""
        pairs = list(zip(self.family.tolist(), self.strength.tolist(), strict=True))
        cells = list(dict.fromkeys(pairs))
        number = {pair: i for i, pair in enumerate(cells)}
        return cells, np.array([number[pair] for pair in pairs])

    def _sums(self, numbers: Floats) -> Floats:
        """(P,) -> (W, C): the sums over the persons of each world and cell."""
        cells, cell = self._cell
        sums = np.zeros((len(self.worlds), len(cells)))
        np.add.at(sums, (self.world, cell), numbers)
        return sums

    def _cells(self, families: Sequence[str], measure: str) -> Bools:
        """(C,) which cells count."""
        cells, _ = self._cell
        possible = self._sums(self.possible[measure]).sum(axis=0)
        persons = self._sums(np.ones(len(self.world))).sum(axis=0)
        return np.array([family in families for family, _ in cells]) & (possible >= LEAST_GAIN * persons)


def shares_of_sets(found: Results) -> Shares | None:
    """The shares of sets; the keys are (contestant, k). Worlds in which a trial failed are left out; None if none is left."""
    failed = {row["source"] for row in found.failed}
    people = {row["source"]: row for row in found.good if "possible" in row and row["source"] not in failed}
    if not people:
        return None
    gains: dict[Hashable, dict[str, list[float]]] = {}
    for row in found.good:
        if "gain" in row and row["source"] in people:
            gains.setdefault((row["contestant"], row["k"]), {})[row["source"]] = row["gain"]
    limited = [key for key in gains if isinstance(key, tuple) and key[0] not in UNLIMITED]
    return _joined(list(people.values()), {key: [own[s] for s in people] for key, own in gains.items()}, limited)


def shares_of_rounds(found: Results) -> Shares | None:
    """The shares of the plans that persons take in rounds; the keys are (chooser, number of the round).

    Worlds in which a trial failed are left out; None if none is left.
    """
    failed = {row["source"] for row in found.failed}
    good = [row for row in found.good if row["source"] not in failed]
    if not good:
        return None
    choosers = list(dict.fromkeys(row["chooser"] for row in good))
    people = [row for row in good if row["chooser"] == choosers[0]]
    gains: dict[Hashable, list[list[float]]] = {
        (chooser, number): [row[f"round_{number}"] for row in good if row["chooser"] == chooser]
        for chooser in choosers
        for number in range(1, good[0]["rounds"] + 1)
    }
    return _joined(people, gains, list(gains))


def _joined(people: list[dict], gains: dict[Hashable, list[list[float]]], limited: Sequence[Hashable]) -> Shares:
    """One entry per person of all worlds, in units; `people` and each of the gains have a row for each world."""
    sizes = [len(row["family"]) for row in people]
    world = np.repeat(np.arange(len(people)), sizes)
    unit = np.repeat([row["unit"] for row in people], sizes)
    by_person = {key: np.concatenate(rows) / unit for key, rows in gains.items()}
    within = np.concatenate([row["possible_within"] for row in people]) / unit
    return Shares(
        [row["source"] for row in people],
        world,
        np.concatenate([row["family"] for row in people]),
        np.concatenate([row["strength"] for row in people]),
        {
            ALL: np.concatenate([row["possible"] for row in people]) / unit,
            WITHIN: np.maximum.reduce([within, *(by_person[key] for key in limited)]),
        },
        by_person,
    )
