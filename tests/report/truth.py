"""What is true of the plans of a set, computed from the model and the policies alone.

Nothing here comes from `manyways.describe` or `manyways.report`, whose sentences it checks: chains are multiplied out, linear
systems are solved anew, and the best value is proved by policy iteration of its own or by a linear program.
"""

from __future__ import annotations

from functools import cache, cached_property

import numpy as np
from scipy import sparse
from scipy.optimize import linprog
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from manyways.behaviours import Near
from manyways.model.mdp import MDP
from manyways.model.regions import MapRegions, find_regions
from manyways.model.rooms import Rooms, rooms_of
from manyways.plans.planset import PlanSet
from manyways.polytope import Answer, Episodic
from manyways.types import Bools, Floats, Ints

AROUND = ("north-west", "north", "north-east", "east", "south-east", "south", "south-west", "west")
PROGRAMS_UP_TO = 500


class Truth:
    """The facts about one set of plans."""

    def __init__(self, plans: PlanSet) -> None:
        self.plans, self.mdp, self.k = plans, plans.mdp, plans.k
        mdp = plans.mdp
        self.state = np.repeat(np.arange(mdp.n_states), np.diff(mdp.first_choice))
        self.members = sparse.csr_array((np.ones(mdp.n_choices), (self.state, np.arange(mdp.n_choices))))
        self.chains = [self._chain(policy) for policy in plans.policies]
        time = np.stack([self._long_run(chain) for chain in self.chains])
        assert time.min() > -1e-12
        self.time = np.where(time > 1e-100, time, 0.0)
        self.x = self.time[:, self.state] * plans.policies

    def _chain(self, policy: Floats) -> sparse.csr_array:
        return sparse.csr_array((self.members * policy[None, :]) @ self.mdp.transitions)

    def _long_run(self, chain: sparse.csr_array) -> Floats:
        """(S,) the share of time in each state from the start: of each closed class by its chance to be entered."""
        discount, n = self.plans.criterion.discount, self.mdp.n_states
        if discount < 1:
            return splu(sparse.csc_array(sparse.eye_array(n) - discount * chain.T)).solve(
                (1 - discount) * self.mdp.start
            )
        reached = np.flatnonzero(reachable(chain, self.mdp.start > 0))
        p, start = sparse.csr_array(chain[reached][:, reached]), self.mdp.start[reached]
        count, number = csgraph.connected_components(p, connection="strong")
        flows = sparse.coo_array(p)
        leaves = np.zeros(count, bool)
        leaves[number[flows.row[(number[flows.row] != number[flows.col]) & (flows.data > 0)]]] = True
        inside = leaves[number]
        entering = start.copy()
        if inside.any():
            among = sparse.csc_array(sparse.eye_array(inside.sum()) - p[inside][:, inside].T)
            visits = splu(among).solve(start[inside])
            entering = entering + p.T @ np.where(inside, np.bincount(np.flatnonzero(inside), visits, len(start)), 0.0)
            entering[inside] = 0.0
        found = np.zeros(n)
        for own in np.flatnonzero(~leaves):
            at = np.flatnonzero(number == own)
            within = p[at][:, at]
            rest = sparse.csc_array(sparse.eye_array(len(at) - 1) - within[1:][:, 1:].T)
            visits = np.ones(len(at))  # per visit of the first state
            visits[1:] = splu(rest).solve(within[[0]].toarray()[0, 1:]) if len(at) > 1 else 0.0
            found[reached[at]] = entering[at].sum() * visits / visits.sum()
        return found

    # ---- values ---------------------------------------------------------------------------------

    @cached_property
    def ends(self) -> Floats:
        """(N,) the chance that a choice ends an episode."""
        return np.sum(list(self.mdp.ends.values()), axis=0)

    @cached_property
    def going_on(self) -> sparse.csr_array:
        """(N, S) the transitions within an episode."""
        again = sparse.csr_array(self.ends[:, None]) @ sparse.csr_array(self.mdp.start[None, :])
        return sparse.csr_array(self.mdp.transitions - again)

    def _per_episode(self, weights: Floats) -> Floats:
        """(N,) what each choice counts -> (k,) the expected sum over an episode."""
        found = []
        for policy in self.plans.policies:
            step = sparse.csr_array((self.members * policy[None, :]) @ self.going_on)
            step.data[np.abs(step.data) < 1e-14] = 0.0
            reached = np.flatnonzero(reachable(step, self.mdp.start > 0))
            counts = (self.members @ (policy * weights))[reached]
            system = sparse.csc_array(sparse.eye_array(len(reached)) - step[reached][:, reached])
            found.append(self.mdp.start[reached] @ splu(system).solve(counts))
        return np.array(found)

    @property
    def episodic(self) -> bool:
        return isinstance(self.plans.criterion, Episodic)

    @cached_property
    def rewards(self) -> Floats:
        if self.episodic:
            return self._per_episode(self.mdp.reward)
        return self.x @ self.mdp.reward * self.plans.criterion.value_of_one

    @cached_property
    def best(self) -> float:
        """The highest value of any plan, proved."""
        return self._best_episode if self.episodic else self._iterated[0]

    @cached_property
    def best_steps(self) -> float:
        """The steps to the goal of a best plan: of one in the set, if there is one."""
        if self.lost.min() == 0:
            return float(self.steps[int(np.argmin(self.lost))])
        return self._steps(self._chain(self._iterated[1]))

    @cached_property
    def _best_episode(self) -> float:
        """By a linear program over the expected visits in one episode."""
        balance = sparse.csc_array(self.members - self.going_on.T)
        limit = self.mdp.time_limit or 1e9
        short = sparse.csc_array(np.ones((1, self.mdp.n_choices)))
        found = linprog(-self.mdp.reward, short, [limit], balance, self.mdp.start)
        assert found.status == 0
        return -float(found.fun)

    @cached_property
    def _iterated(self) -> tuple[float, Floats]:
        """The best mean reward, and a policy that has it, by policy iteration from the best plan; weak duality proves it."""
        mdp, n = self.mdp, self.mdp.n_states
        plan = int(np.argmax(self.rewards))
        choices, at = self._towards(self.time[plan], self.plans.policies[plan]), int(np.argmax(self.time[plan]))
        for _ in range(200):
            cut = sparse.diags_array((np.arange(n) != at).astype(float))  # rounds from the reference back to it
            system = splu(sparse.csc_array(sparse.eye_array(n) - mdp.transitions[choices] @ cut))
            earned, passed = system.solve(mdp.reward[choices]), system.solve(np.ones(n))
            gain = float(earned[at] / passed[at])
            h = earned - gain * passed
            ahead = mdp.reward + mdp.transitions @ h
            top = np.maximum.reduceat(ahead, mdp.first_choice[:-1])
            better = top > ahead[choices] + 1e-9 * (1 + np.abs(top))
            if not better.any():
                bound = float((ahead - h[self.state]).max())
                assert gain <= bound <= gain + 1e-6 * (1 + abs(gain)), "the best value is not proved"
                policy = np.zeros(mdp.n_choices)
                policy[choices] = 1.0
                return gain, policy
            first = np.flatnonzero(ahead >= top[self.state])
            greedy = np.empty(n, np.int64)
            greedy[self.state[first][::-1]] = first[::-1]
            changed = np.where(better, greedy, choices)
            back = reachable(sparse.csr_array(mdp.transitions[changed].T), np.arange(n) == at)
            choices = np.where(back, changed, choices)  # all states still lead to the reference
        raise AssertionError("policy iteration did not end")

    def _towards(self, time: Floats, policy: Floats) -> Ints:
        """(S,) the choices of a plan where it goes, and elsewhere choices that lead there."""
        known = time > 1e-9
        best = np.lexsort((-policy, self.state))
        choices = best[np.searchsorted(self.state[best], np.arange(self.mdp.n_states))]
        while not known.all():
            there = self.mdp.transitions @ known.astype(float)
            best = np.lexsort((-there, self.state))
            main = best[np.searchsorted(self.state[best], np.arange(self.mdp.n_states))]
            new = ~known & (there[main] >= min(0.5, there[main][~known].max()))
            choices[new] = main[new]
            known |= new
        return choices

    @cached_property
    def lost(self) -> Floats:
        """(k,) the share of the best value that each plan gives up; differences by rounding are none."""
        lost = self.best - self.rewards
        return np.where(lost <= 1e-9 * (1 + abs(self.best)), 0.0, lost) / abs(self.best)

    @property
    def floor(self) -> float:
        """The least value that the limits allow."""
        assert self.plans.limits.slack is not None
        return self.best - self.plans.limits.slack * abs(self.best)

    def range_of(self, mask: Bools, answers: list[Answer]) -> tuple[float, float]:
        """The least and the largest share of time in some states within the limits: by linear programs or, in large models,
        by the proofs of the answers for the largest and the least share."""
        if self.mdp.n_states > PROGRAMS_UP_TO:
            weights = mask[self.state].astype(float)
            return -self._proved(-weights, answers[1]), self._proved(weights, answers[0])
        n, floor = self.mdp.n_choices, self.floor
        rows, right = [floor - self.mdp.reward], [0.0]
        if self.episodic:
            longest = self.plans.criterion.longest
            rows, right = [floor * self.ends - self.mdp.reward, -self.ends], [0.0, -1 / longest]
        balance = sparse.csc_array(sparse.vstack([self.members - self.mdp.transitions.T, np.ones((1, n))]))
        equal = np.append(np.zeros(self.mdp.n_states), 1.0)
        weights = mask[self.state].astype(float)
        ends = []
        for sign in (1, -1):
            found = linprog(sign * weights, sparse.csc_array(np.stack(rows)), right, balance, equal)
            assert found.status == 0
            ends.append(sign * float(found.fun))
        return ends[0], ends[1]

    def _proved(self, c: Floats, answer: Answer) -> float:
        """The largest <c, x> of any plan within the limits: the plan of the answer has it, and its dual allows no more."""
        assert not self.episodic
        assert answer.dual is not None
        assert answer.multipliers is not None
        x, h, price = answer.occupancy, answer.dual, float(answer.multipliers[0])
        assert x.min() >= -1e-12
        assert abs(x.sum() - 1) < 1e-9
        assert price >= 0
        assert np.abs(self.members @ x - self.mdp.transitions.T @ x).max() < 1e-9
        assert float(x @ self.mdp.reward) >= self.floor - 1e-7
        ahead = c + price * self.mdp.reward + self.mdp.transitions @ h - h[self.state]
        bound = float(ahead.max()) - price * self.floor
        assert -1e-7 < bound - float(c @ x) < 1e-5, "the range is not proved"
        return bound

    # ---- ways to the goal -------------------------------------------------------------------------

    @cached_property
    def goal(self) -> Bools | None:
        goal = self.mdp.labels.get("goal")
        return goal if goal is not None and goal.any() else None

    @cached_property
    def steps(self) -> Floats:
        if self.goal is None:
            return self._per_episode(np.ones(self.mdp.n_choices))
        return np.array([self._steps(chain) for chain in self.chains])

    @cached_property
    def reaches(self) -> Floats:
        """(k,) the share of episodes that end in the goal."""
        if self.goal is None:
            return self._per_episode(np.asarray(self.mdp.ends["goal"]))
        return np.array([self._chance(chain, self.goal) for chain in self.chains])

    def _steps(self, chain: sparse.csr_array) -> float:
        assert self.goal is not None
        before = ~self.goal & reachable(self._stopped(chain, self.goal), self.mdp.start > 0)
        system = sparse.csc_array(sparse.eye_array(before.sum()) - chain[before][:, before])
        return float(self.mdp.start[before] @ splu(system).solve(np.ones(before.sum())))

    def _chance(self, chain: sparse.csr_array, target: Bools) -> float:
        """The chance that a way meets a target before or at its first goal."""
        assert self.goal is not None
        stop = self.goal | target
        before = ~stop & reachable(self._stopped(chain, stop), self.mdp.start > 0)
        if not before.any():
            return float(self.mdp.start[target].sum())
        rows = chain[before]
        system = sparse.csc_array(sparse.eye_array(before.sum()) - rows[:, before])
        chances = splu(system).solve(rows @ target.astype(float))
        return float(self.mdp.start[before] @ chances + self.mdp.start[target].sum())

    @staticmethod
    def _stopped(chain: sparse.csr_array, stop: Bools) -> sparse.csr_array:
        return sparse.csr_array(sparse.diags_array((~stop).astype(float)) @ chain)

    @cache  # noqa: B019 (one object for each example)
    def passing(self, name: str) -> Floats:
        """(k,) the chance of passing a room, region, door (by its state) or label on the way to the goal."""
        mask = self.place(name)
        return np.array([self._chance(chain, mask) for chain in self.chains])

    def place(self, name: str) -> Bools:
        kind, _, own = name.partition(":")
        if kind == "room":
            assert self.rooms is not None
            return self.rooms.of_state == int(own)
        if kind == "door":
            return np.arange(self.mdp.n_states) == int(own)
        if kind == "region":
            assert self.regions is not None
            return self.regions.of_state == self.regions.names.index(own)
        assert self.goal is not None
        return self.mdp.labels[own] & ~self.goal

    @cached_property
    def rooms(self) -> Rooms | None:
        return rooms_of(self.mdp) if self.goal is not None else None

    @cached_property
    def regions(self) -> MapRegions | None:
        if self.mdp.layout is None or self.goal is None or self.rooms is not None:
            return None
        found = find_regions(self.mdp)
        return found if 1 < len(found.names) <= 50 else None

    @cached_property
    def places(self) -> list[str]:
        """All rooms and doors, or all regions."""
        if self.rooms is not None:
            doors = [f"door:{door}" for door in np.flatnonzero(self.mdp.labels["door"])]
            return doors + [f"room:{number}" for number in range(1, len(self.rooms.names) + 1)]
        return [] if self.regions is None else [f"region:{name}" for name in self.regions.names]

    @cached_property
    def same_passages(self) -> Bools | None:
        """(k, k) whether the chances of passing each place differ by less than a quarter."""
        if not self.places:
            return None
        chances = np.stack([self.passing(name) for name in self.places], axis=1)
        return np.abs(chances[:, None] - chances[None]).max(axis=2) < 0.25

    @cache  # noqa: B019
    def route(self, plan: int) -> tuple[tuple[int, ...], tuple[tuple[int, int, str], ...]] | None:
        """The rooms along the likeliest way, and (door or -1, room before it, direction) of each change of room."""
        assert self.goal is not None
        assert self.rooms is not None
        assert self.mdp.layout is not None
        chain, at = self.chains[plan].toarray(), int(np.argmax(self.mdp.start))
        path = [at]
        while not self.goal[at]:
            at = int(np.argmax(chain[at]))
            if at in path:
                return None
            path.append(at)
        rooms: list[int] = []
        changes: list[tuple[int, int, str]] = []
        door, last = -1, path[0]
        for state in path:
            room = int(self.rooms.of_state[state])
            if self.mdp.labels["door"][state]:
                door = state
            elif room:
                if rooms and room != rooms[-1]:
                    down, right = np.subtract(self.mdp.layout.position(state), self.mdp.layout.position(last))
                    changes.append((door, rooms[-1], direction(down, right)))
                if not rooms or room != rooms[-1]:
                    rooms.append(room)
                door, last = -1, state
        return tuple(rooms), tuple(changes)

    # ---- likeness -----------------------------------------------------------------------------------

    @cached_property
    def distances(self) -> Floats:
        """(k, k) in what the set compares."""
        return divergences(np.asarray(self.plans.behaviour.on(self.mdp).forward(self.x)))

    @property
    def neighbourly(self) -> bool:
        return self.mdp.layout is not None and min(self.mdp.layout.shape) >= 8

    @cached_property
    def near(self) -> Floats:
        """(k, k) by neighbourhoods on a map with at least 8 rows and columns, otherwise the distances."""
        if not self.neighbourly:
            return self.distances
        assert self.mdp.layout is not None
        radius = max(max(self.mdp.layout.shape) / 16, 1.0) * (self.mdp.layout.metres_per_cell or 1.0)
        return divergences(np.asarray(Near(radius).on(self.mdp).forward(self.x)))

    def same_way(self, one: int, other: int) -> bool:
        if not self.neighbourly or self.near[one, other] >= 0.2:
            return False
        return self.same_passages is None or bool(self.same_passages[one, other])

    def alike(self, one: int, other: int) -> bool:
        own, near = self.distances[one, other], self.near[one, other]
        if not self.neighbourly:
            return own < 0.1
        if own < 0.1:
            return own >= 0.01 or near < 0.2
        other_ways = self.same_passages is not None and not self.same_passages[one, other]
        return near < (0.1 if other_ways else 0.2)

    # ---- parts of a map -------------------------------------------------------------------------------

    @cached_property
    def on_the_way(self) -> Bools:
        """(S,) the states that are neither start nor goal."""
        found = np.ones(self.mdp.n_states, bool)
        for label in ("start", "goal"):
            found &= ~self.mdp.labels.get(label, np.zeros(self.mdp.n_states, bool))
        return found

    @cached_property
    def _at(self) -> tuple[Ints, Ints, Bools]:
        layout = self.mdp.layout
        assert layout is not None
        rows, columns = layout.cells // layout.shape[1], layout.cells % layout.shape[1]
        return rows, columns, ~layout.blocked.ravel()[layout.cells]

    def sector(self, name: str, counted: Bools | None = None) -> Bools:
        """(S,) the states in a ninth of the map: those of the way, or those that are counted."""
        rows, columns, free = self._at
        words = [name.partition("-")[0], name.partition("-")[2]] if "-" in name else [name, name]
        mask = self.on_the_way.copy() if counted is None else counted.copy()
        for at, first, last, word in ((rows, "north", "south", words[0]), (columns, "west", "east", words[1])):
            low, high = at[free].min(), at[free].max() + 1
            third = np.clip(3 * (at - low) // (high - low), 0, 2)
            assert high - low >= 3
            mask &= third == (0 if word == first else 2 if word == last else 1)
        return mask

    def side(self, name: str) -> Bools:
        i = AROUND.index(name)
        return self.sector(AROUND[i - 1]) | self.sector(name) | self.sector(AROUND[(i + 1) % 8])

    def edge(self, name: str) -> Bools:
        """The cells along an edge of the map, "north edge", or beside the cliff of CliffWalking, "cliff"."""
        rows, columns, free = self._at
        if name == "cliff":
            return self.on_the_way & (rows == 2) & (columns >= 1) & (columns <= 10)
        name = name.removesuffix(" edge")
        at, counted = rows if name in ("north", "south") else columns, free & self.on_the_way
        outermost = at[counted].min() if name in ("north", "west") else at[counted].max()
        return counted & (at == outermost)

    def shift(self, plan: int, other: int, mask: Bools) -> str:
        """The direction from the mean place of the other plan to that of the plan, among marked states."""
        rows, columns, _ = self._at
        down, right = (
            np.average(at[mask], weights=self.time[plan, mask]) - np.average(at[mask], weights=self.time[other, mask])
            for at in (rows, columns)
        )
        return direction(down, right)


def direction(down: float, right: float) -> str:
    """The compass direction of a move on the map; of two unequal parts the smaller counts from half of the larger."""
    words = []
    if down and 2 * abs(down) >= abs(right):
        words.append("south" if down > 0 else "north")
    if right and 2 * abs(right) >= abs(down):
        words.append("east" if right > 0 else "west")
    return "-".join(words)


def reachable(chain: sparse.csr_array, start: Bools) -> Bools:
    """(S,) the states that a chain can come to."""
    moves = sparse.coo_array(chain)
    some = moves.data > 0
    first, n = np.flatnonzero(start), len(start)  # one more state, which leads to all starts
    rows = np.concatenate([moves.row[some], np.full(len(first), n)])
    graph = sparse.csr_array(
        (np.ones(len(rows)), (rows, np.concatenate([moves.col[some], first]))), shape=(n + 1, n + 1)
    )
    found = np.zeros(n + 1, bool)
    found[csgraph.breadth_first_order(graph, n, return_predecessors=False)] = True
    return found[:n]


def divergences(x: Floats) -> Floats:
    """(k, B) -> (k, k) Jensen-Shannon divergences in nats."""
    found = np.zeros((len(x), len(x)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for i, p in enumerate(x):
            for j in range(i):
                middle = (p + x[j]) / 2
                parts = [np.where(q > 0, q * np.log(q / middle), 0.0).sum() / 2 for q in (p, x[j])]
                found[i, j] = found[j, i] = sum(parts)
    return found


def state_of(mdp: MDP, shown: str) -> int:
    """The state whose name is shown, perhaps cut to 40 characters."""
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    found = [s for s, name in enumerate(names) if shown == (name if len(name) <= 40 else name[:39] + "…")]
    assert len(found) == 1, f"{len(found)} states are shown as {shown}"
    return found[0]
