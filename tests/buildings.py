"""Maps for tests: a building with three passages, and an open field with two obstacles."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def building(folder: Path) -> str:
    """A nav2 map of 200 x 150 pixels: a south hall and a north hall, joined by a west, a middle and an east passage.

    There are doors, pillars and a table in the halls. Diagonal moves take one step, so the passages are about equally far.
    Returns the source of the model, from the middle of the south to the middle of the north.
    """
    wide, high = 200, 150
    free = np.zeros((high, wide), bool)
    free[6:44, 6:194] = True  # north hall
    free[106:144, 6:194] = True  # south hall
    for left in (60, 94, 128):  # passages, each with a door at both ends
        free[44:106, left : left + 12] = True
        free[44:48, left : left + 2] = free[44:48, left + 10 : left + 12] = False
        free[102:106, left : left + 2] = free[102:106, left + 10 : left + 12] = False
    for row, column in ((22, 70), (22, 126), (124, 70), (124, 126)):  # pillars
        free[row : row + 6, column : column + 6] = False
    free[14:20, 20:40] = False  # a table
    pixels = np.where(free, 254, 0).astype(np.uint8)
    (folder / "building.pgm").write_bytes(f"P5\n{wide} {high}\n255\n".encode() + pixels.tobytes())
    (folder / "building.yaml").write_text(
        "image: building.pgm\nresolution: 0.1\norigin: [0, 0, 0]\nnegate: 0\noccupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    return f"{folder / 'building.yaml'}?start=10,1.5&goal=10,13.5&coarsen=2&diagonal_steps=1"


PASSAGES = {"west": (58, 74), "middle": (92, 108), "east": (126, 142)}
"""The columns of pixels of each passage."""


def passages_of(plans) -> list[str]:
    """The passage in which each plan spends most time."""
    layout = plans.mdp.layout
    rows, columns = np.divmod(layout.cells, layout.shape[1])
    side = 150 / layout.shape[0]
    between = (rows * side > 50) & (rows * side < 100)
    names = list(PASSAGES)
    found = []
    for x in plans.occupancies:
        time = np.bincount(plans.mdp.choice_state, x, minlength=plans.mdp.n_states)
        share = [
            time[between & (columns * side >= low) & (columns * side < high)].sum() for low, high in PASSAGES.values()
        ]
        found.append(names[int(np.argmax(share))])
    return found


def open_field(folder: Path) -> str:
    """A text map of 48 x 48 cells with two obstacles, from the north-west to the south-east."""
    cells = np.full((48, 48), ".")
    cells[10:20, 24:36] = "#"
    cells[28:38, 12:24] = "#"
    cells[3, 3], cells[44, 44] = "S", "G"
    path = folder / "field.txt"
    path.write_text("\n".join("".join(row) for row in cells) + "\n")
    return str(path)


def office(folder: Path, yaw: float = 0.0) -> str:
    """A nav2 map of 400 x 300 pixels of 0.05 m: a west and an east room, a wall between them with three passages.

    The passages are 0.8 m, 0.6 m and 0.9 m wide and 1 m long; desks stand in the rooms, and some pixels are noise.
    The frame begins at (-3 m, 1.5 m). Returns the source of the model, from the west to the east, with cells of 0.3 m.
    """
    wide, high, resolution = 400, 300, 0.05
    pixels = np.full((high, wide), 205, np.uint8)  # unknown
    pixels[8:292, 8:392] = 254
    pixels[[8, 9, 290, 291], 8:392] = pixels[8:292, [8, 9, 390, 391]] = 0
    pixels[10:290, 190:210] = 0
    for top, width in OFFICE_PASSAGES.values():
        pixels[top : top + width, 190:210] = 254
    for row, column in ((60, 60), (210, 90), (60, 290), (220, 320)):  # desks
        pixels[row : row + 24, column : column + 40] = 0
    rng = np.random.default_rng(0)
    pixels[rng.integers(12, 288, 25), rng.integers(220, 388, 25)] = 0
    (folder / "office.pgm").write_bytes(f"P5\n{wide} {high}\n255\n".encode() + pixels.tobytes())
    (folder / "office.yaml").write_text(
        f"image: office.pgm\nmode: trinary\nresolution: {resolution}\norigin: [-3.0, 1.5, {yaw!r}]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    right, up = 50 * resolution, 150 * resolution
    far = 350 * resolution
    ends = [
        f"{-3.0 + np.cos(yaw) * x - np.sin(yaw) * up:.4f},{1.5 + np.sin(yaw) * x + np.cos(yaw) * up:.4f}"
        for x in (right, far)
    ]
    return f"{folder / 'office.yaml'}?start={ends[0]}&goal={ends[1]}&coarsen=6"


OFFICE_PASSAGES = {"north": (111, 16), "middle": (145, 12), "south": (173, 18)}
"""The first row and the number of rows of pixels of each passage of the office."""
