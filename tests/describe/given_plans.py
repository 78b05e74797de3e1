"""Plan sets made of given policies, and small models whose plans are known by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import manyways as mw
from manyways.describe import measures
from manyways.formats.text_maps import world_from_rows
from manyways.model.occupancy import deterministic
from problems import jsd

ROOMS = ["#######", "#S.#..#", "#..+..#", "#+###+#", "#..#..#", "#..+.G#", "#######"]
EAST, SOUTH = "rdrrrddd", "rdlddrdrrr"
"""Two ways through the rooms: 8 steps by the east, 10 by the south."""


def plan_set(mdp: mw.MDP, policies: list[np.ndarray], criterion=None) -> mw.PlanSet:
    """A set of given policies, in the given order."""
    criterion = criterion or mw.Average()
    base = mw.plan(mdp, 1, criterion=criterion)
    occupancies = np.stack([criterion.occupancy(base.mdp, policy) for policy in policies])
    distances = np.array([[jsd(p, q) for q in occupancies] for p in occupancies])
    return replace(
        base,
        policies=np.stack(policies),
        occupancies=occupancies,
        rewards=criterion.value_of_one * (occupancies @ mdp.reward),
        distances=distances,
    )


def value(plans: mw.PlanSet, name: str, plan: int = 0) -> float | None:
    return next(measure for measure in measures(plans) if measure.name == name).values[plan]


def names(plans: mw.PlanSet) -> list[str]:
    return [measure.name for measure in measures(plans)]


def going(mdp: mw.MDP, *moves: tuple[object, str]) -> np.ndarray:
    """(N,) the policy that takes the given action in each named state, elsewhere the last action on offer."""
    choices = mdp.first_choice[1:] - 1
    index = {mdp.state_name(s): s for s in range(mdp.n_states)}
    for state, action in moves:
        s = index[str(state)]
        here = range(mdp.first_choice[s], mdp.first_choice[s + 1])
        choices[s] = next(x for x in here if mdp.action_name(x) == action)
    return deterministic(mdp, choices)


def along(mdp: mw.MDP, moves: str) -> np.ndarray:
    """(N,) the policy that goes right, left, up and down as `moves` says, from the start of a grid world."""
    words = {"r": ("right", 0, 1), "l": ("left", 0, -1), "u": ("up", -1, 0), "d": ("down", 1, 0)}
    assert mdp.layout is not None
    row, column = mdp.layout.position(int(np.argmax(mdp.start)))
    taken = []
    for move in moves:
        action, down, right = words[move]
        taken.append((f"r{row}c{column}", action))
        row, column = row + down, column + right
    return going(mdp, *taken)


def rooms_world(rows: list[str] | None = None, correct: float = 1.0) -> mw.MDP:
    """Rooms from text, + for doors."""
    rows = rows or ROOMS
    mdp = world_from_rows([row.replace("+", ".") for row in rows], "rooms", correct_transition=correct)
    return replace(mdp, labels=dict(mdp.labels) | {"door": np.array([c == "+" for row in rows for c in row])})


def repair_shop() -> mw.MDP:
    return mw.MDP.from_transitions(
        [
            ("good", "run", "good", 0.8, 3.0),
            ("good", "run", "worn", 0.2, 3.0),
            ("worn", "run", "worn", 0.7, 2.0),
            ("worn", "run", "broken", 0.3, 2.0),
            ("worn", "repair", "good", 1.0, 0.5),
            ("broken", "replace", "good", 1.0, -4.0),
        ],
        labels={"down": ["broken"]},
        name="shop",
    )


def commute() -> mw.MDP:
    rows = [("home", "bus", "work", 1, -3), ("home", "bike", "work", 0.9, -1), ("home", "bike", "home", 0.1, -5)]
    return mw.MDP.from_transitions([*rows, ("work", "go home", "home", 1, 10)])


def lottery() -> mw.MDP:
    """A ticket wins one time in four and loses as often, a gamble wins always; one may also wait forever."""
    mdp = mw.MDP.from_transitions(
        [
            ("home", "ticket", "home", 1.0, 0.5),
            ("home", "sure thing", "far", 1.0, 0.0),
            ("far", "on", "home", 1.0, 1.0),
            ("home", "wait", "away", 1.0, 0.0),
            ("away", "stay", "away", 1.0, 0.9),
            ("away", "back", "home", 1.0, 0.0),
        ],
        name="lottery",
    )
    choice = {mdp.action_name(x): x for x in range(mdp.n_choices)}
    goal, ruin = np.zeros(mdp.n_choices), np.zeros(mdp.n_choices)
    goal[choice["ticket"]], ruin[choice["ticket"]], goal[choice["on"]] = 0.25, 0.25, 1.0
    return replace(mdp, ends={"goal": goal, "ruin": ruin})


def workshop(worst: int = 3, shelf: int = 2) -> mw.MDP:
    """A machine that wears out and parts on a shelf, with the variables wear and parts: run, order a part, use it to repair."""
    rows = []
    for wear in range(worst + 1):
        for parts in range(shelf + 1):
            here = (wear, parts)
            if wear < worst:
                rows += [(here, "run", here, 0.6, 3.0 - wear), (here, "run", (wear + 1, parts), 0.4, 3.0 - wear)]
                rows += [(here, "run slowly", here, 0.8, 2.0 - wear / 2)]
                rows += [(here, "run slowly", (wear + 1, parts), 0.2, 2.0 - wear / 2)]
            if parts < shelf:
                rows += [(here, "order", (wear, parts + 1), 1.0, -1.0)]
            if parts > 0:
                rows += [(here, "repair", (0, parts - 1), 1.0, -1.0)]
    mdp = mw.MDP.from_transitions(rows, name="workshop")
    wear, parts = mdp.variables["x1"], mdp.variables["x2"]
    return replace(mdp, variables={"wear": wear, "parts": parts})


def by_wear_and_parts(mdp: mw.MDP, action) -> np.ndarray:
    """(N,) the policy of a workshop that takes `action(wear, parts)` in each state, and another one where it cannot."""
    wear, parts = mdp.variables["wear"].tolist(), mdp.variables["parts"].tolist()
    moves = []
    for state in range(mdp.n_states):
        on_offer = {mdp.action_name(x) for x in range(mdp.first_choice[state], mdp.first_choice[state + 1])}
        if (wanted := action(wear[state], parts[state])) in on_offer:
            moves.append((mdp.state_name(state), wanted))
    return going(mdp, *moves)
