"""Grid worlds with eight directions and with walls that cannot be entered."""

from __future__ import annotations

import numpy as np
import pytest

import manyways as mw

Cell = tuple[int, int]
Choices = dict[Cell, dict[str, dict[Cell, float]]]


def drawn(*rows: str) -> np.ndarray:
    return np.array([[cell == "#" for cell in row] for row in rows])


def choices_of(mdp: mw.MDP) -> Choices:
    """Cell -> action -> next cell -> probability."""
    choices: Choices = {}
    for choice in range(mdp.n_choices):
        row = mdp.transitions[[choice]].tocoo()
        choices.setdefault(mdp.layout.position(int(mdp.choice_state[choice])), {})[mdp.action_name(choice)] = {
            mdp.layout.position(int(s)): round(float(p), 12) for s, p in zip(row.coords[1], row.data, strict=True)
        }
    return choices


def position(mdp: mw.MDP, label: str) -> Cell:
    return mdp.layout.position(int(np.flatnonzero(mdp.labels[label])[0]))


def test_the_default_grid_is_that_of_the_paper():
    walls = drawn("..#.", ".#..", "....")
    plain = mw.grid_world(walls, (0, 0), (2, 3))
    assert plain.digest == mw.grid_world(walls, (0, 0), (2, 3), directions=4, enterable_walls=True).digest
    assert plain.digest.startswith("4e42a136f248cd76")
    assert mw.nine_rooms(7).digest.startswith("d0d56b1e0bb5a6cc")


def test_a_small_grid_with_eight_directions():
    mdp = mw.grid_world(drawn("...", "#.."), (0, 0), (1, 2), directions=8, correct_transition=0.8)
    assert mdp.action_names == (
        *("down", "left", "up", "right", "down-left", "down-right", "up-left", "up-right", "stop"),
    )
    quarter = 0.05
    assert choices_of(mdp) == {
        (0, 0): {
            "down": {(1, 0): 0.8, (0, 1): 0.1, (1, 1): 0.1},
            "right": {(0, 1): 0.8, (1, 0): 0.1, (1, 1): 0.1},
            "down-right": {(1, 1): 0.8, (0, 1): 0.1, (1, 0): 0.1},
            "stop": {(0, 0): 1.0},
        },
        (0, 1): {
            name: {cell: 0.8 if cell == aim else quarter for cell in ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))}
            for name, aim in {
                "down": (1, 1),
                "left": (0, 0),
                "right": (0, 2),
                "down-left": (1, 0),
                "down-right": (1, 2),
            }.items()
        }
        | {"stop": {(0, 1): 1.0}},
        (0, 2): {
            "down": {(1, 2): 0.8, (0, 1): 0.1, (1, 1): 0.1},
            "left": {(0, 1): 0.8, (1, 2): 0.1, (1, 1): 0.1},
            "down-left": {(1, 1): 0.8, (0, 1): 0.1, (1, 2): 0.1},
            "stop": {(0, 2): 1.0},
        },
        (1, 0): {
            "up": {(0, 0): 0.8, (0, 1): 0.1, (1, 1): 0.1},
            "right": {(1, 1): 0.8, (0, 0): 0.1, (0, 1): 0.1},
            "up-right": {(0, 1): 0.8, (0, 0): 0.1, (1, 1): 0.1},
            "stop": {(1, 0): 1.0},
        },
        (1, 1): {
            name: {cell: 0.8 if cell == aim else quarter for cell in ((0, 0), (0, 1), (0, 2), (1, 0), (1, 2))}
            for name, aim in {
                "left": (1, 0),
                "up": (0, 1),
                "right": (1, 2),
                "up-left": (0, 0),
                "up-right": (0, 2),
            }.items()
        }
        | {"stop": {(1, 1): 1.0}},
        (1, 2): {"stop": {(0, 0): 1.0}},
    }


def test_a_small_grid_with_closed_walls():
    mdp = mw.grid_world(drawn(".#", "..", ".#"), (0, 0), (2, 0), enterable_walls=False, correct_transition=0.8)
    assert mdp.layout.cells.tolist() == [0, 2, 3, 4]
    assert (mdp.layout.blocked == drawn(".#", "..", ".#")).all()
    assert not mdp.labels["wall"].any()
    assert choices_of(mdp) == {
        (0, 0): {"down": {(1, 0): 1.0}, "stop": {(0, 0): 1.0}},
        (1, 0): {
            "down": {(2, 0): 0.8, (0, 0): 0.1, (1, 1): 0.1},
            "up": {(0, 0): 0.8, (2, 0): 0.1, (1, 1): 0.1},
            "right": {(1, 1): 0.8, (0, 0): 0.1, (2, 0): 0.1},
            "stop": {(1, 0): 1.0},
        },
        (1, 1): {"left": {(1, 0): 1.0}, "stop": {(1, 1): 1.0}},
        (2, 0): {"stop": {(0, 0): 1.0}},
    }


def test_no_diagonal_cuts_a_corner_of_a_closed_wall():
    around = choices_of(mw.grid_world(drawn("...", ".#.", "..."), (0, 0), (2, 2), directions=8, enterable_walls=False))
    assert set(around[0, 1]) == {"left", "right", "stop"}
    assert around[0, 1]["right"] == {(0, 2): 0.95, (0, 0): 0.05}
    entered = choices_of(mw.grid_world(drawn("...", ".#.", "..."), (0, 0), (2, 2), directions=8))
    assert set(entered[0, 1]) == {"down", "left", "right", "down-left", "down-right", "stop"}


def test_unreachable_cells_are_not_states():
    walls = drawn("...#.", "##.##", ".....")
    mdp = mw.grid_world(walls, (0, 0), (2, 2), enterable_walls=False, labels={"left": np.indices(walls.shape)[1] < 2})
    assert [mdp.layout.position(s) for s in range(mdp.n_states)] == [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2)]
    assert mdp.labels["left"].tolist() == [True, True, False, False, False]
    assert (position(mdp, "start"), position(mdp, "goal")) == ((0, 0), (2, 2))
    assert mw.plan(mdp, k=1).optimal_reward > 0, "the cells behind the goal would make it not weakly accessible"


def brute_force(walls: np.ndarray, start: Cell, goal: Cell, directions: int, correct: float) -> Choices:
    """The rules of closed walls, implemented a second time, cell by cell."""
    names = {(1, 0): "down", (0, -1): "left", (-1, 0): "up", (0, 1): "right"}
    if directions == 8:
        names |= {(a, b): f"{names[a, 0]}-{names[0, b]}" for a in (1, -1) for b in (-1, 1)}

    def free(r: int, c: int) -> bool:
        return 0 <= r < walls.shape[0] and 0 <= c < walls.shape[1] and not walls[r, c]

    choices: Choices = {goal: {"stop": {start: 1.0}}}
    waiting = [start]
    while waiting:
        r, c = cell = waiting.pop()
        if cell in choices:
            continue
        near = {
            name: (r + a, c + b)
            for (a, b), name in names.items()
            if free(r + a, c + b) and free(r + a, c) and free(r, c + b)
        }
        choices[cell] = {"stop": {cell: 1.0}}
        for name, aim in near.items():
            row = {to: (1 - correct) / (len(near) - 1) for to in near.values() if to != aim}
            row[aim] = correct if row else 1.0
            choices[cell][name] = {to: round(p, 12) for to, p in row.items() if p > 0}
        waiting += near.values()
    return choices


@pytest.mark.parametrize("directions", [4, 8])
@pytest.mark.parametrize("seed", range(12))
def test_closed_walls_agree_with_brute_force(directions, seed):
    draw = np.random.default_rng(seed)
    walls = draw.random(draw.integers(2, 8, 2)) < 0.3
    walls[0] = walls[:, -1] = False
    start, goal = (0, 0), (walls.shape[0] - 1, walls.shape[1] - 1)
    correct = float(draw.choice([0.0, 0.5, 0.9, 1.0]))
    mdp = mw.grid_world(walls, start, goal, directions=directions, enterable_walls=False, correct_transition=correct)
    assert choices_of(mdp) == brute_force(walls, start, goal, directions, correct)


@pytest.mark.parametrize(
    ("setting", "value", "message"),
    [
        ("directions", 6, "directions must be 4 or 8, found 6"),
        ("directions", "8", "directions must be 4 or 8, found '8'"),
        ("directions", None, "directions must be 4 or 8, found None"),
        ("enterable_walls", "no", "enterable_walls must be False or True, found 'no'"),
        ("enterable_walls", 2, "enterable_walls must be False or True, found 2"),
    ],
)
def test_new_settings_are_checked(setting, value, message):
    with pytest.raises(mw.SettingError, match=message):
        mw.grid_world(np.zeros((2, 2), bool), (0, 0), (1, 1), **{setting: value})
