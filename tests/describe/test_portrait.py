"""Portraits: titles, and sentences that hold for any plans."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from given_plans import EAST, along, commute, going, names, plan_set, repair_shop, rooms_world, value
from hypothesis import given, settings
from hypothesis import strategies as st

import manyways as mw
from manyways.describe import first_visits, measures, portraits, survey_of
from manyways.describe.wording import quantity, short
from manyways.model.layout import Grid
from manyways.model.occupancy import deterministic, state_occupancy
from problems import random_accessible_mdp, random_mdp, random_policy, single

NASTY = [
    "{x}",
    "{}",
    "a{",
    "a{0.__class__}",
    "{{ 7 }}",
    "Neverland",
    "Never",
    "%s",
    "\u202eabc",
    "a\nb",
    "",
    " ",
]


def test_an_action_of_its_own_is_the_title():
    mdp = commute()
    plans = plan_set(mdp, [going(mdp, ("home", "bike")), going(mdp, ("home", "bus"))])
    assert [portrait.title for portrait in portraits(plans)] == ["Bikes", "Takes 'bus'"]


def test_same_doors_are_told_apart():
    mdp = rooms_world()
    first, second = portraits(plan_set(mdp, [along(mdp, EAST), along(mdp, "drrrrddd")]))
    assert first.title != second.title
    assert first.title.startswith("By the north-east room — ")
    assert first.sentences[1].startswith(
        "Takes the same doors as plan 2, but keeps further north-east in the north-west room"
    )
    assert second.sentences[1].startswith("Takes the same doors as plan 1, but keeps further south-west")


def test_titles_use_the_words_of_the_sentences():
    method = mw.VertexAscent(
        starts=1, stages=(1.0, 0.35, 1e-3)
    )  # with these plans no two have nearly the lowest reward
    plans = mw.plan("nine-rooms:7", 6, 8.0, time_limit_s=60, method=method)
    found = portraits(plans)
    rewards, steps = plans.rewards, [value(plans, "steps to goal", plan) for plan in range(plans.k)]
    for plan, portrait in enumerate(found):
        _, _, words = portrait.title.partition(" — ")
        if words.startswith("further"):
            assert any(words in sentence for sentence in portrait.sentences)
        if words == "shortest":
            assert steps[plan] == min(steps)
        said = " ".join(portrait.sentences)
        assert ("reward" in said) == (rewards[plan] in (rewards.min(), rewards.max())) or len(portrait.sentences) == 2


def test_plans_that_stay():
    mdp = rooms_world()
    stays, goes = portraits(plan_set(mdp, [going(mdp), along(mdp, EAST)]))
    assert stays.title == "Stays at r1c1"
    assert stays.sentences[:2] == ("Stays at r1c1 for good.", "Never reaches the goal.")
    assert "Takes 8 steps to the goal on average." in goes.sentences
    assert "steps to goal" in names(plan_set(mdp, [going(mdp), along(mdp, EAST)]))


def test_one_state_and_one_plan():
    (portrait,) = portraits(plan_set(single().mdp, [np.ones(1)]))
    assert portrait.title == "Stays in 'here'"
    assert portrait.sentences == ("Stays in 'here' for good.", "Earns 2.5 per step, and no plan can earn more.")


def test_one_plan_is_compared_with_none():
    mdp = repair_shop()
    (portrait,) = portraits(plan_set(mdp, [going(mdp, ("worn", "repair"))]))
    assert portrait.title == "Mostly in good"
    assert not any(word in " ".join(portrait.sentences) for word in ("other", "set", "plans"))


@pytest.mark.parametrize("name", NASTY)
def test_any_name_can_be_shown(name):
    shown = short(name)
    rows = [("good", name, name, 1.0, 1.0), ("good", "go", "bad", 0.9, 2.0), ("good", "go", name, 0.1, 2.0)]
    rows += [("bad", "go", "good", 1.0, -3.0), (name, "go", "good", 1.0, 0.5), (name, name, "bad", 1.0, 0.0)]
    for labels in ({name: ["bad"]}, {name: [name], "goal": ["good"]}, {"goal": ["bad"], name: ["good"]}):
        mdp = mw.MDP.from_transitions(rows, labels=labels)
        for k in (1, 2, 3):
            rng = np.random.default_rng(k)
            mixed = random_policy(rng, mdp)
            policies = [going(mdp, ("good", name)), going(mdp, ("good", "go")), mixed][:k]
            for criterion in (mw.Average(), mw.Discounted(0.9)):
                plans = plan_set(mdp, policies, criterion)
                said = [s for p in portraits(plans) for s in (p.title, *p.sentences)]
                said += [text for row in measures(plans) for text in (row.name, row.meaning)]
                assert any(shown in text for text in said)
                for text in said:
                    assert text.encode()
                    assert not set(text) & set("\u202e\n")
                    assert "Hardly everland" not in text


def test_long_names_are_cut():
    long = "x" * 100
    mdp = mw.MDP.from_transitions([("a", long, long, 1.0, 0.0), (long, "back", "a", 1.0, 1.0)], labels={long: [long]})
    plans = plan_set(mdp, [np.ones(2)])
    said = " ".join([*(s for p in portraits(plans) for s in p.sentences), *names(plans)])
    assert "x" * 39 + "…" in said
    assert "x" * 40 not in said


def random_plans(rng: np.random.Generator) -> mw.PlanSet:
    """A random model with random labels and perhaps a map, and random plans for it, some alike."""
    discounted = rng.random() < 0.5
    mdp = random_mdp(rng, 7) if discounted else random_accessible_mdp(rng, 5)
    labels = {
        name: rng.random(mdp.n_states) < 0.4 for name in ("goal", "start", "door", "wall", "b c") if rng.random() < 0.6
    }
    layout = None
    if rng.random() < 0.6:
        shape = (int(rng.integers(1, 5)), int(rng.integers(1, 5)))
        layout = Grid(rng.integers(0, shape[0] * shape[1], mdp.n_states), rng.random(shape) < 0.3)
    mdp = replace(mdp, labels=labels, layout=layout)
    policies = []
    for _ in range(int(rng.integers(1, 5))):
        policy = random_policy(rng, mdp)
        choices = [rng.integers(a, b) for a, b in pairwise(mdp.first_choice)]
        policies.append(
            policies[0]
            if policies and rng.random() < 0.2
            else policy
            if rng.random() < 0.5
            else deterministic(mdp, np.array(choices))
        )
    return plan_set(mdp, policies, mw.Discounted(0.9) if discounted else None)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_any_plans_have_portraits(seed):
    plans = random_plans(np.random.default_rng(seed))
    found, rows = portraits(plans), measures(plans)
    assert len({portrait.title for portrait in found}) == len(found) == plans.k
    for row in rows:
        assert len(row.values) == plans.k
        known = [number for number in row.values if number is not None]
        assert np.isfinite(known).all()
        if row.unit == "share" and row.name != "below optimum":
            assert all(-1e-9 <= share <= 1 + 1e-9 for share in known)
    steps = next((row.values for row in rows if row.name == "steps to goal"), (None,) * plans.k)
    for plan, portrait in enumerate(found):
        assert 2 <= len(portrait.sentences) <= 5
        assert len(set(portrait.sentences)) == len(portrait.sentences)
        for sentence in portrait.sentences:
            assert sentence[0].isupper() or sentence[0].isdigit()
            assert sentence.endswith(".")
            assert not re.search(r"-0(\.0*)? |nan|inf\b|None|\{|  |(?<![\d.,])1 steps", sentence), sentence
            check_steps(sentence, steps, plan)


def check_steps(sentence: str, steps: tuple[float | None, ...], plan: int) -> None:
    """A sentence on length quotes the plan's own steps, and the fewest of the set."""
    own, known = steps[plan], [value for value in steps if value is not None]
    if match := re.search(r"([\d.,]+) steps? to the goal", sentence):
        assert own is not None
        assert match[1] == quantity(own)
    if match := re.search(r"\(([\d.,]+) steps? on average against ([\d.,]+)\)", sentence):
        assert own is not None
        assert (match[1], match[2]) == (quantity(own), quantity(min(known)))
        if more := re.match(r"(?:The longest, )?([\d.]+) % longer", sentence):
            assert float(more[1]) == pytest.approx(100 * (own / min(known) - 1), rel=0.06, abs=0.06)


def test_the_work_for_two_hundred_plans_grows_with_their_number_only(monkeypatch):
    """Each plan needs one factorisation for its goal and few others; no pair of plans needs any."""
    base = mw.plan("nine-rooms:7", 2, 8.0)
    rng = np.random.default_rng(0)
    mixed = [
        base.policies[0] * (1 - w) + base.policies[1] * w
        for w in rng.random(200)[:, None] * np.ones(base.mdp.n_choices)
    ]
    occupancies = np.stack([base.criterion.occupancy(base.mdp, policy) for policy in mixed])
    distances = np.abs(state_occupancy(base.mdp, occupancies) @ rng.random((base.mdp.n_states, 1)))
    plans = replace(
        base, policies=np.stack(mixed), occupancies=occupancies, rewards=occupancies @ base.mdp.reward,
        distances=np.abs(distances - distances.T),
    )  # fmt: skip
    calls, factorise = [], first_visits.splu
    monkeypatch.setattr(first_visits, "splu", lambda system: calls.append(1) or factorise(system))
    survey = survey_of(plans)
    assert len(measures(survey)) > 2
    assert len({portrait.title for portrait in portraits(survey)}) == 200
    assert 200 <= len(calls) <= 3 * 200


def test_the_first_sentence_is_about_this_plan():
    """All plans for the taxi are equally good and equally long: that is not what comes first."""
    for portrait in portraits(mw.plan("gym:Taxi-v3", 4, slack=0.05)):
        first, *rest = portrait.sentences
        assert first not in portrait.standing, portrait.title
        assert "as the others do" not in first
        assert any("as the others do" in sentence for sentence in rest)
