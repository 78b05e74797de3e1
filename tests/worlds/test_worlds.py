"""Grid and room worlds: their maps and their dynamics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import manyways as mw

SEEDS = range(200)


@dataclass(frozen=True)
class Kind:
    """What the paper says about one of its worlds."""

    make: Callable[..., mw.MDP]
    rooms: int
    room_size: int
    rewards: dict[str, float]

    @property
    def lines(self) -> list[int]:
        return [i * (self.room_size + 1) for i in range(self.rooms + 1)]

    @property
    def insides(self) -> list[slice]:
        return [slice(line + 1, line + 1 + self.room_size) for line in self.lines[:-1]]


KINDS = {
    "four-rooms": Kind(mw.four_rooms, 2, 8, {"wall": -200.0, "goal": 400.0, "step": -4.0}),
    "nine-rooms": Kind(mw.nine_rooms, 3, 5, {"wall": -40.0, "goal": 200.0, "step": -1.2}),
}


@cache
def worlds(name: str) -> list[mw.MDP]:
    return [KINDS[name].make(seed) for seed in SEEDS]


@cache
def pictures(name: str) -> dict[str, np.ndarray]:
    """(seeds, rows, columns) masks: wall, start, goal, door."""
    return pictures_of(worlds(name))


def pictures_of(mdps: list[mw.MDP]) -> dict[str, np.ndarray]:
    return {
        label: np.stack([mdp.labels[label].reshape(mdp.layout.shape) for mdp in mdps])
        for label in ("wall", "start", "goal", "door")
    }


def grown(mask: np.ndarray) -> np.ndarray:
    """(..., rows, columns): the mask and all its neighbours."""
    wide = np.pad(mask, [(0, 0)] * (mask.ndim - 2) + [(1, 1), (1, 1)])
    return (
        wide[..., 1:-1, 1:-1] | wide[..., :-2, 1:-1] | wide[..., 2:, 1:-1] | wide[..., 1:-1, :-2] | wide[..., 1:-1, 2:]
    )


def walkable_from_start(picture: dict[str, np.ndarray]) -> np.ndarray:
    """The cells that can be reached from the start without entering a wall."""
    reached = picture["start"]
    while (more := grown(reached) & ~picture["wall"]).sum() > reached.sum():
        reached = more
    return reached


@pytest.fixture(params=KINDS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


# ---- rooms ------------------------------------------------------------------------------------


def test_rooms_are_19_by_19_and_every_cell_is_a_state(name):
    assert pictures(name)["wall"].shape == (len(SEEDS), 19, 19)
    assert {mdp.n_states for mdp in worlds(name)} == {361}


def test_walls_surround_every_room_and_are_open_only_at_doors(name):
    lines, picture = KINDS[name].lines, pictures(name)
    closed = picture["wall"] | picture["door"]
    assert lines[-1] == 18
    assert closed[:, lines, :].all()
    assert closed[:, :, lines].all()
    assert not (picture["wall"] & picture["door"]).any()


def test_every_wall_between_two_rooms_has_one_door(name):
    kind, doors = KINDS[name], pictures(name)["door"]
    for line in kind.lines[1:-1]:
        for inside in kind.insides:
            assert (doors[:, line, inside].sum(axis=1) == 1).all()
            assert (doors[:, inside, line].sum(axis=1) == 1).all()
    assert (doors.sum(axis=(1, 2)) == 2 * kind.rooms * (kind.rooms - 1)).all(), "there is no door anywhere else"


def test_every_room_has_one_obstacle(name):
    kind, walls = KINDS[name], pictures(name)["wall"]
    for rows in kind.insides:
        for columns in kind.insides:
            assert (walls[:, rows, columns].sum(axis=(1, 2)) == 1).all()


def test_no_obstacle_is_on_an_end_or_next_to_a_door(name):
    kind, picture = KINDS[name], pictures(name)
    obstacles = picture["wall"].copy()
    obstacles[:, kind.lines, :] = False
    obstacles[:, :, kind.lines] = False
    assert not (obstacles & (picture["start"] | picture["goal"] | grown(picture["door"]))).any()


def test_start_lies_top_left_and_goal_bottom_right(name):
    kind, picture = KINDS[name], pictures(name)
    first, last = kind.insides[0], kind.insides[-1]
    assert (picture["start"].sum(axis=(1, 2)) == 1).all()
    assert (picture["goal"].sum(axis=(1, 2)) == 1).all()
    assert (picture["start"][:, first, first].sum(axis=(1, 2)) == 1).all()
    assert (picture["goal"][:, last, last].sum(axis=(1, 2)) == 1).all()


def test_start_and_goal_may_lie_anywhere_in_their_rooms(name):
    kind, picture = KINDS[name], pictures(name)
    for end, room in (("start", kind.insides[0]), ("goal", kind.insides[-1])):
        assert picture[end][:, room, room].any(axis=0).mean() > 0.9, f"200 seeds leave most cells without a {end}"


def test_goal_can_be_reached_without_entering_a_wall(name):
    picture = pictures(name)
    assert (walkable_from_start(picture) & picture["goal"]).any(axis=(1, 2)).all()


def test_same_seed_same_world_and_other_seed_other_world(name):
    digests = [mdp.digest for mdp in worlds(name)]
    assert [KINDS[name].make(seed).digest for seed in range(5)] == digests[:5]
    assert len(set(digests)) == len(digests)


def test_rooms_have_the_rewards_of_the_paper(name):
    mdp, rewards = worlds(name)[0], KINDS[name].rewards
    by_state = mdp.reward[mdp.first_choice[:-1]]
    assert set(by_state[mdp.labels["goal"]]) == {rewards["goal"]}
    assert set(by_state[mdp.labels["wall"]]) == {rewards["wall"]}
    assert set(by_state[~mdp.labels["wall"] & ~mdp.labels["goal"]]) == {rewards["step"]}
    assert (mdp.reward == by_state[mdp.choice_state]).all()


def test_rooms_move_as_intended_95_times_in_100_by_default(name):
    make = KINDS[name].make
    assert make(3).digest == make(3, correct_transition=0.95).digest
    assert make(3).transitions.max() == 1.0
    assert np.isclose(make(3, correct_transition=0.6).transitions.toarray(), 0.6).any()


@pytest.mark.parametrize("setting", ["correct_transition", "wall_reward", "goal_reward", "step_reward"])
def test_every_setting_of_a_room_world_reaches_the_grid(name, setting):
    mdp = KINDS[name].make(4, **{setting: 0.125})
    same = mw.grid_world(
        mdp.layout.blocked,
        *ends(mdp),
        labels={"door": mdp.labels["door"]},
        **({f"{what}_reward": value for what, value in KINDS[name].rewards.items()} | {setting: 0.125}),
    )
    assert mdp.digest == same.digest


def test_room_worlds_are_named_after_their_seed(name):
    assert KINDS[name].make(17).name == f"{name}:17"
    assert mw.room_world(17, 4, 3).name == "rooms-4x4:3"
    assert mw.room_world(17, 4, 3, name="mine").name == "mine"


@pytest.mark.parametrize(("size", "rooms"), [(9, 2), (10, 2), (13, 3), (14, 3), (15, 3), (16, 3), (29, 5)])
def test_rooms_of_any_size_are_solvable(size, rooms):
    picture = pictures_of([mw.room_world(size, rooms, seed) for seed in range(25)])
    assert picture["wall"].shape[1:] == (size, size)
    assert (picture["door"].sum(axis=(1, 2)) == 2 * rooms * (rooms - 1)).all()
    assert (walkable_from_start(picture) & picture["goal"]).any(axis=(1, 2)).all()


@pytest.mark.parametrize(
    ("size", "rooms", "message"),
    [
        (8, 2, "2 x 2 rooms need .* size >= 9 .* found size 8"),
        (12, 3, "3 x 3 rooms need .* size >= 13 .* found size 12"),
        (19, 1, "rooms >= 2"),
        (19, 0, "rooms must be an integer of at least 1, found 0"),
        (19, -2, "rooms must be an integer of at least 1, found -2"),
        (19.5, 2, "must be an integer"),
        (19, 2.0, "must be an integer"),
    ],
)
def test_rooms_that_do_not_fit_are_refused(size, rooms, message):
    with pytest.raises(mw.SettingError, match=message):
        mw.room_world(size, rooms)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", None])
def test_seed_of_a_world_is_an_integer(name, seed):
    with pytest.raises(mw.SettingError, match="seed"):
        KINDS[name].make(seed)


# ---- dynamics ---------------------------------------------------------------------------------

MAP = ["S.#.", ".#..", "...G"]
WALLS = np.array([[cell == "#" for cell in row] for row in MAP])
START, GOAL = (0, 0), (2, 3)
MOVES = {"down": (1, 0), "left": (0, -1), "up": (-1, 0), "right": (0, 1)}

Cell = tuple[int, int]


def ends(mdp: mw.MDP) -> tuple[Cell, Cell]:
    start, goal = (mdp.layout.position(int(np.argmax(mdp.labels[end]))) for end in ("start", "goal"))
    return start, goal


def expected_choices(
    shape: tuple[int, int], start: Cell, goal: Cell, correct: float
) -> dict[Cell, dict[str, dict[Cell, float]]]:
    """Cell -> action -> next cell -> probability, written independently from the paper's description."""

    def inside(cell: Cell) -> bool:
        return 0 <= cell[0] < shape[0] and 0 <= cell[1] < shape[1]

    choices = {}
    for r in range(shape[0]):
        for c in range(shape[1]):
            if (r, c) == goal:
                choices[r, c] = {"stop": {start: 1.0}}
                continue
            near = {name: (r + dr, c + dc) for name, (dr, dc) in MOVES.items() if inside((r + dr, c + dc))}
            choices[r, c] = {"stop": {(r, c): 1.0}}
            for name, target in near.items():
                others = [cell for cell in near.values() if cell != target]
                slips = {cell: (1 - correct) / len(others) for cell in others}
                aimed = {target: correct if others else 1.0}
                choices[r, c][name] = {cell: p for cell, p in (slips | aimed).items() if p > 0}
    return choices


def actual_choices(mdp: mw.MDP) -> dict[Cell, dict[str, dict[Cell, float]]]:
    choices: dict[Cell, dict[str, dict[Cell, float]]] = {}
    p = mdp.transitions
    for choice in range(mdp.n_choices):
        entries = slice(p.indptr[choice], p.indptr[choice + 1])
        cell = mdp.layout.position(int(mdp.choice_state[choice]))
        choices.setdefault(cell, {})[mdp.action_name(choice)] = {
            mdp.layout.position(int(state)): float(chance)
            for state, chance in zip(p.indices[entries], p.data[entries], strict=True)
        }
    return choices


def approximately(choices: dict[Cell, dict[str, dict[Cell, float]]]) -> dict[Cell, dict[str, Any]]:
    return {cell: {name: pytest.approx(row, abs=1e-15) for name, row in rows.items()} for cell, rows in choices.items()}


@pytest.mark.parametrize("correct", [0.0, 0.5, 0.95, 1.0])
def test_every_transition_is_the_papers(correct):
    mdp = mw.grid_world(WALLS, START, GOAL, correct_transition=correct)
    assert actual_choices(mdp) == approximately(expected_choices((3, 4), START, GOAL, correct))


@pytest.mark.parametrize("shape", [(1, 2), (1, 6), (6, 1), (2, 2)])
@pytest.mark.parametrize("correct", [0.0, 0.5, 1.0])
def test_corridors(shape, correct):
    goal = (shape[0] - 1, shape[1] - 1)
    mdp = mw.grid_world(np.zeros(shape, bool), (0, 0), goal, correct_transition=correct)
    assert actual_choices(mdp) == approximately(expected_choices(shape, (0, 0), goal, correct))


def test_end_of_a_corridor_has_nowhere_to_slip_to():
    mdp = mw.grid_world(np.zeros((1, 3), bool), (0, 0), (0, 2), correct_transition=0.25)
    assert actual_choices(mdp)[0, 0] == {"right": {(0, 1): 1.0}, "stop": {(0, 0): 1.0}}
    assert actual_choices(mdp)[0, 1]["right"] == {(0, 2): 0.25, (0, 0): 0.75}


def test_no_move_leads_off_the_grid():
    choices = actual_choices(mw.grid_world(WALLS, START, GOAL))
    assert set(choices[0, 0]) == {"down", "right", "stop"}
    assert set(choices[1, 0]) == {"down", "up", "right", "stop"}
    assert set(choices[1, 1]) == {"down", "left", "up", "right", "stop"}


def test_stop_always_stays_and_goal_leads_to_the_start():
    choices = actual_choices(mw.grid_world(WALLS, START, GOAL, correct_transition=0.5))
    assert choices.pop(GOAL) == {"stop": {START: 1.0}}
    assert all(rows["stop"] == {cell: 1.0} for cell, rows in choices.items())


def test_walls_can_be_entered():
    assert actual_choices(mw.grid_world(WALLS, START, GOAL, correct_transition=1.0))[0, 1]["right"] == {(0, 2): 1.0}


def test_reward_depends_on_the_current_cell():
    mdp = mw.grid_world(WALLS, START, GOAL, wall_reward=-7.0, goal_reward=11.0, step_reward=-0.5)
    for choice in range(mdp.n_choices):
        cell = mdp.layout.position(int(mdp.choice_state[choice]))
        assert mdp.reward[choice] == (11.0 if cell == GOAL else -7.0 if WALLS[cell] else -0.5)


# ---- arguments --------------------------------------------------------------------------------


def test_grid_world_keeps_what_it_is_given():
    shortcut = np.zeros((3, 4), bool)
    shortcut[1, 2] = True
    mdp = mw.grid_world(WALLS, START, GOAL, labels={"shortcut": shortcut}, name="mine")
    assert mdp.name == "mine"
    assert (mdp.layout.blocked == WALLS).all()
    assert ends(mdp) == (START, GOAL)
    assert (mdp.labels["wall"] == WALLS.ravel()).all()
    assert (mdp.labels["shortcut"] == shortcut.ravel()).all()
    assert mdp.start[0] == 1.0
    assert mdp.state_name(7) == "r1c3"


def test_grid_world_copies_its_walls():
    walls = WALLS.copy()
    mdp = mw.grid_world(walls, START, GOAL)
    walls[:] = True
    assert (mdp.layout.blocked == WALLS).all()


GOOD: dict[str, Any] = {"walls": WALLS, "start": START, "goal": GOAL}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"walls": np.zeros(4, bool)}, r"\(rows, columns\) array of walls, found shape \(4,\)"),
        ({"walls": np.zeros((0, 3), bool)}, r"found shape \(0, 3\)"),
        ({"walls": np.zeros((2, 2, 2), bool)}, r"found shape \(2, 2, 2\)"),
        ({"start": (3, 0)}, r"the start \(row 3, column 0\) lies outside the 3 x 4 grid"),
        ({"goal": (0, 4)}, r"the goal \(row 0, column 4\) lies outside the 3 x 4 grid"),
        ({"start": (-1, 0)}, r"the start \(row -1, column 0\) lies outside"),
        ({"start": (1, 1)}, r"the start \(row 1, column 1\) is in a wall"),
        ({"goal": (0, 2)}, r"the goal \(row 0, column 2\) is in a wall"),
        ({"goal": START}, r"start and goal are the same cell \(row 0, column 0\)"),
        ({"walls": np.eye(4, dtype=bool)[::-1], "goal": (3, 3)}, r"the goal \(row 3, column 3\) is walled in"),
        ({"labels": {"odd": np.zeros((2, 2), bool)}}, r"label 'odd' must have 12 cells, found .* \(4,\)"),
    ],
)
def test_impossible_grids_are_refused(change, message):
    with pytest.raises(mw.ModelError, match=message):
        mw.grid_world(**(GOOD | change))


@pytest.mark.parametrize("setting", ["wall_reward", "goal_reward", "step_reward"])
@pytest.mark.parametrize("reward", [float("nan"), float("inf"), float("-inf"), "high", None, True])
def test_rewards_are_finite_numbers(setting, reward):
    if (setting, reward) == ("goal_reward", None):
        return  # the default; see test_goal_reward.py
    with pytest.raises(mw.SettingError, match=f"{setting} must be a finite number, found {reward!r}"):
        mw.grid_world(WALLS, START, GOAL, **{setting: reward})


@pytest.mark.parametrize("chance", [-0.1, 1.1, float("nan"), float("inf"), "high", None])
def test_correct_transition_is_a_probability(chance):
    message = f"correct_transition must be a finite number from 0 to 1, found {chance!r}"
    with pytest.raises(mw.SettingError, match=message):
        mw.grid_world(WALLS, START, GOAL, correct_transition=chance)
