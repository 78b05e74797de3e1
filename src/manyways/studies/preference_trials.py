"""The trials of the preference study: plain settings in, one row of plain data out.

Rows have a list with an entry per person for each number that belongs to a person. The persons of a world and of its sets
are the same and in the same order, so rows of both kinds are joined by position (`shares`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from manyways.conversation import Conversation, Round
from manyways.polytope import Average
from manyways.studies.contestants import CONTESTANTS
from manyways.studies.persons import SLACK, Persons, persons_of, world_of

CHOOSERS = {"exact": 0.0, "noisy": 0.01}
"""How noisy the answers of persons are, as a share of the unit: a noisy person takes the better of two plans that differ by
so much with odds of 2.7 to 1. `Conversation` expects just that."""


def persons_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The persons of the world `source`, `persons` of each of the `families` (names with spaces between) and each strength, and their possible gains."""
    began, world = time.perf_counter(), world_of(settings["source"])
    people = persons_of(world, settings["persons"], settings["families"].split())
    return {
        **_who(people),
        "possible": (people.best(world.free) - people.base()).tolist(),
        "possible_within": (people.best(world.within) - people.base()).tolist(),
        "seconds": time.perf_counter() - began,
    }


def set_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What each person gains by the best plan for them of one set, `contestant` with `k` plans and a `seed`."""
    world = world_of(settings["source"])
    people, began = persons_of(world, settings["persons"], settings["families"].split()), time.perf_counter()
    plans = CONTESTANTS[settings["contestant"]](world, settings["k"], settings["seed"])
    seconds = time.perf_counter() - began
    return {
        "gain": (people.worths(plans).max(axis=1) - people.base()).tolist(),
        "worst_plan": float((plans @ world.mdp.reward).min() / abs(world.free.optimum.value)),
        "seconds": seconds,
    }


def rounds_row(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What each person gains by the plan that they take in each of `rounds` rounds of k plans, as a `chooser`."""
    began, world = time.perf_counter(), world_of(settings["source"])
    people = persons_of(world, settings["persons"], settings["families"].split())
    talk = Conversation(world.mdp, settings["k"], slack=SLACK, seed=settings["seed"], criterion=Average())
    known: dict[tuple[int, ...], tuple[Round, ...]] = {(): talk.rounds}
    noise = CHOOSERS[settings["chooser"]] * world.unit
    gains = np.empty((len(people.rewards), settings["rounds"]))
    for person, reward in enumerate(people.rewards):
        rng = np.random.default_rng([settings["seed"], person])
        answers: tuple[int, ...] = ()
        for number in range(settings["rounds"]):
            talk.rounds = known[answers]
            worth = talk.plans.occupancies @ reward
            taken = int(np.argmax(worth + noise * rng.gumbel(size=len(worth))))
            gains[person, number] = worth[taken]
            answers = (*answers, taken)
            if number + 1 < settings["rounds"] and answers not in known:  # nobody before has given the same answers
                talk.choose(taken)
                known[answers] = talk.rounds
    gains -= people.base()[:, None]
    return {
        **_who(people),
        "possible": (people.best(world.free) - people.base()).tolist(),
        "possible_within": (people.best(world.within) - people.base()).tolist(),
        **{f"round_{number + 1}": gains[:, number].tolist() for number in range(settings["rounds"])},
        "seconds": time.perf_counter() - began,
    }


def _who(people: Persons) -> dict[str, Any]:
    return {"unit": people.world.unit, "family": people.families, "strength": people.strengths}
