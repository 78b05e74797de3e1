"""What the gallery's pages say of closures, of one trip and of changing over is computed again, from the model and the policies.

Closed models are built here by the words of `manyways.model.closures`: a move into the closed part fails, nothing changes but the
time, and a step that fails earns nothing and costs what it would have cost.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import splu
from test_sentences import EXAMPLES, NEEDS, NUMBER, PERCENT, Page, is_number, is_percent, is_steps, page_of
from truth import Truth, reachable, state_of

import manyways as mw
from manyways.model.closures import Closure
from manyways.model.episodes import episode_ends
from manyways.model.mdp import MDP
from manyways.types import Floats

TRIPS, MOST_STEPS = 4000, 20_000
SLIPS = 0.03
"""By luck, shares of so many trips are known to within about this."""
TOLD = re.compile(
    rf"One trip earns (?P<mean>{NUMBER}) on average \(median (?P<middle>{NUMBER})\)"
    rf"(?:; (?:(?P<twentieth>1 in 20 earns)|(?P<share>{PERCENT}) of its trips earn) (?P<low>{NUMBER})(?P<less> or less)?)?\."
)
WORST = re.compile(
    rf"The worst place that at least 1 in 100 of its trips meet is (?P<state>.+) \((?P<met>{PERCENT}) of them\): from there a trip "
    rf"still earns (?P<ahead>{NUMBER}), from the start (?P<first>{NUMBER})\."
)


@pytest.fixture(scope="module", params=EXAMPLES, ids=lambda example: example.name)
def page(request) -> Page:
    for part, package in NEEDS.items():
        if part in request.param.source:
            pytest.importorskip(package)
    return page_of(request.param.name)


# ---- one episode, from the model ------------------------------------------------------------------------


class Episode:
    """One policy until its episode ends: the chain within the episode, in the states that it can come to."""

    def __init__(self, mdp: MDP, policy: Floats, ends: Floats) -> None:
        choice_state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.first_choice))
        mix = sparse.csr_array((policy, (choice_state, np.arange(mdp.n_choices))), (mdp.n_states, mdp.n_choices))
        again = sparse.csr_array(ends[:, None]) @ sparse.csr_array(mdp.start[None, :])
        step = sparse.csr_array(mix @ (mdp.transitions - again))
        step.data[np.abs(step.data) < 1e-13] = 0.0
        self.mdp, self.met = mdp, np.flatnonzero(reachable(step, mdp.start > 0))
        self.step = sparse.csr_array(step[self.met][:, self.met])
        self.reward, self.ends = (mix @ mdp.reward)[self.met], (mix @ ends)[self.met]
        self.goal = (mix @ mdp.ends.get("goal", ends))[self.met] if mdp.ends else self.ends
        self.start = mdp.start[self.met]
        self.paid_at_goal = "goal" in mdp.ends and np.allclose(mdp.reward, mdp.ends["goal"])

    def until_the_end(self, counts: Floats) -> Floats:
        """What is counted in each state -> the sum still to come, in the states from which the episode can end; 0 in others."""
        back = sparse.csr_array(self.step.T)
        able = np.flatnonzero(reachable(back, self.ends > 1e-13))
        found = np.zeros(len(self.met))
        if len(able):
            inside = sparse.csc_array(sparse.eye_array(len(able)) - self.step[able][:, able])
            found[able] = splu(inside).solve(counts[able])
        return found

    def reached_within(self, most: int, there: Floats) -> tuple[float, float]:
        """The chance that the goal is reached within so many steps, and the mean number of steps if it is. Where an episode is
        already `there`, its step leads only back."""
        now, back, chance, steps = self.start, sparse.csr_array(self.step.T), 0.0, 0.0
        for step in range(most + 1):
            here = now * self.goal
            arrived, later = float(here @ there), float(here @ ~there) if step < most else 0.0
            chance, steps = chance + arrived + later, steps + arrived * step + later * (step + 1)
            now = back @ now
            if now.sum() < 1e-14:
                break
        return chance, steps / chance if chance else np.nan

    def ever_meets(self, state: int) -> float:
        """The chance that the episode comes to a state."""
        at = int(np.flatnonzero(self.met == state)[0])
        others = np.flatnonzero(np.arange(len(self.met)) != at)
        inside = sparse.csc_array(sparse.eye_array(len(others)) - self.step[others][:, others])
        there = splu(inside).solve(self.step[others][:, [at]].toarray()[:, 0])
        return float(self.start[at] + self.start[others] @ there)

    def returns_by_luck(self, seed: int) -> Floats:
        """(TRIPS,) the returns of many episodes. A reward that is the chance of ending at the goal is 1 there, or 0."""
        rng = np.random.default_rng(seed)
        going_on = np.cumsum(np.clip(self.step.toarray(), 0, None), axis=1)
        at, returns, going = rng.choice(len(self.met), TRIPS, p=self.start), np.zeros(TRIPS), np.arange(TRIPS)
        for _ in range(MOST_STEPS):
            luck = rng.random(len(going))
            returns[going] += luck < self.goal[at[going]] if self.paid_at_goal else self.reward[at[going]]
            going = going[luck >= self.ends[at[going]]]
            if not len(going):
                return returns
            row = going_on[at[going]]
            at[going] = (rng.random(len(going))[:, None] * row[:, -1:] >= row).sum(axis=1)
        raise AssertionError("trips that do not end")


def test_one_trip(page):
    plans, mdp = page.truth.plans, page.mdp
    told = [card["trip"] for card in page.view["cards"]]
    if mdp.ends == {} and episode_ends(mdp) is None:
        assert not any(told)
        return
    for i, sentences in enumerate(told):
        episode = Episode(mdp, plans.policies[i], episode_ends(mdp))
        ahead = episode.until_the_end(episode.reward)
        mean = float(episode.start @ ahead)
        for sentence in sentences:
            trip, worst = TOLD.fullmatch(sentence), WORST.fullmatch(sentence)
            assert trip or worst, f"no form for: {sentence}"
            if worst:
                state = state_of(mdp, worst["state"].strip("'"))
                assert is_number(worst["first"], mean), sentence
                assert is_percent(worst["met"], episode.ever_meets(state)), sentence
                assert is_number(worst["ahead"], float(ahead[episode.met == state][0])), sentence
                as_bad = [
                    n
                    for n, to_come in zip(episode.met, ahead, strict=True)
                    if to_come <= float(ahead[episode.met == state][0])
                ]
                assert all(n == state or episode.ever_meets(n) < 0.01 for n in as_bad), sentence
                assert mdp.start[state] == 0, sentence
                assert mean - float(ahead[episode.met == state][0]) >= 0.05 * abs(mean), sentence
            if trip:
                assert is_number(trip["mean"], mean), sentence
                assert as_lucky(trip.groupdict(), episode.returns_by_luck(i)), sentence


def as_lucky(said: dict[str, str | None], returns: Floats) -> bool:
    """Whether the median and the worst returns are so on many trips, as far as luck and three digits can tell."""

    def at_most(text: str | None) -> tuple[float, float]:
        """The shares of trips clearly below a number, and not clearly above it."""
        value = float((text or "0").replace(",", ""))
        digit = max(abs(value) * 0.005, 1e-6)
        return float((returns < value - digit).mean()), float((returns <= value + digit).mean())

    low, high = at_most(said["middle"])
    if not (low <= 0.5 + SLIPS and high >= 0.5 - SLIPS):
        return False
    if said["low"] is None:
        return True
    share = 0.05 if said["twentieth"] else float((said["share"] or "").removesuffix(" %")) / 100
    low, high = at_most(said["low"])
    return low <= share + SLIPS and high >= share - SLIPS and (said["less"] is not None or low <= 1e-3)


# ---- closures -------------------------------------------------------------------------------------------


def closed(mdp: MDP, closure: Closure) -> MDP:
    """The model with something closed, row by row."""
    rows, reward = sparse.lil_array(mdp.transitions), mdp.reward.copy()
    ends = episode_ends(mdp)
    ends = np.zeros(mdp.n_choices) if ends is None else ends
    for state in range(mdp.n_states):
        for choice in range(mdp.first_choice[state], mdp.first_choice[state + 1]):
            nexts = np.array(rows.rows[choice], int)
            chance = np.array(rows.data[choice], float)
            moves = chance - ends[choice] * mdp.start[nexts]  # a restart is no move
            into = closure.states[nexts] & ~closure.states[state] & (moves > 1e-12)
            failing = 1.0 if closure.choices[choice] else float(moves[into].sum())
            if not failing:
                continue
            rows[choice, nexts] = 0.0 if closure.choices[choice] else np.where(into, chance - moves, chance)
            rows[choice, state] += failing
            reward[choice] -= failing * max(reward[choice], 0.0)
    kept = {name: np.where(closure.choices, 0.0, chance) for name, chance in mdp.ends.items()}
    return replace(mdp, transitions=sparse.csr_array(rows), reward=reward, ends=kept, source=None)


def outcome_holds(page: Page, mdp: MDP, policy: Floats, text: str) -> bool:
    if episode_ends(mdp) is None:
        if text == "stuck":
            return is_stuck(page.mdp, mdp, policy)
        criterion = page.truth.plans.criterion
        value = float(Truth(SimpleNamespace(mdp=mdp, k=1, policies=policy[None], criterion=criterion)).rewards[0])  # pyright: ignore[reportArgumentType]
        if text == "nearly 0":
            return 0 < abs(value) < 6e-4 * float(np.abs(page.truth.rewards).max())
        return is_number(text, value)
    ends = episode_ends(mdp)
    assert ends is not None
    episode = Episode(mdp, policy, ends)
    # A step at the goal, from which the next episode begins, is not on the way to it.
    there = mdp.labels["goal"] if "goal" in mdp.labels and not mdp.ends else np.zeros(mdp.n_states, bool)
    chance, steps = episode.reached_within(slowest(page), there[episode.met])
    return is_percent(text, chance) if text.endswith("%") else chance >= 1 - 1e-6 and is_steps(text, steps)


def is_stuck(plain: MDP, mdp: MDP, policy: Floats) -> bool:
    """Whether the policy surely ends where it goes on with nothing closed: from every state that it may come to, it may come to one
    that it never leaves in the closed model, but in the plain one."""
    taken = policy > 0
    step, free = (sparse.csr_array(policy[taken, None] * m.transitions[taken].toarray()) for m in (mdp, plain))
    own = np.repeat(np.arange(mdp.n_states), np.diff(mdp.first_choice))[taken]
    into = sparse.csr_array((np.ones(len(own)), (own, np.arange(len(own)))), shape=(mdp.n_states, len(own)))
    step, free = sparse.csr_array(into @ step), sparse.csr_array(into @ free)
    alone = [s for s in range(mdp.n_states) if step[[s]].indices.tolist() == [s] and free[[s]].indices.tolist() != [s]]
    at_last = np.isin(np.arange(mdp.n_states), alone)
    met, towards = reachable(step, mdp.start > 0), reachable(sparse.csr_array(step.T), at_last)
    return bool(towards[met].all())


def slowest(page: Page) -> int:
    """A hundred times the mean number of steps to the goal of the slowest plan with nothing closed; the step back to the start is
    none of them."""
    mdp, plans = page.mdp, page.truth.plans
    ends = episode_ends(mdp)
    on_the_way = np.minimum.reduceat(ends, mdp.first_choice[:-1]) < 1 - 1e-9
    own = [Episode(mdp, policy, ends) for policy in plans.policies]
    return int(np.ceil(100 * max(one.start @ one.until_the_end(on_the_way[one.met].astype(float)) for one in own)))


def test_what_is_closed(page):
    closing = page.view["closing"]
    if closing is None:
        return
    named = {closure.name: closure for closure in mw.closures(page.mdp)}
    policies = page.truth.plans.policies
    for i, text in enumerate(closing["open"][:-1]):
        assert outcome_holds(page, page.mdp, policies[i], text), f"plan {i + 1}, nothing closed: {text}"
    best = page.truth.plans.proof.best
    assert outcome_holds(page, page.mdp, best, closing["open"][-1]), f"the best plan: {closing['open'][-1]}"
    for j, name in enumerate(closing["names"]):
        model = closed(page.mdp, named[name])
        for i, row in enumerate(closing["rows"]):
            assert outcome_holds(page, model, policies[i], row[j]["text"]), (
                f"plan {i + 1}, {name} closed: {row[j]['text']}"
            )


def test_most_pages_have_something_to_check():
    pages = [page_of(name) for name in ("nine-rooms", "maintenance")]
    assert all(own.view["closing"] for own in pages)
    assert all(card["trip"] for card in pages[0].view["cards"])
