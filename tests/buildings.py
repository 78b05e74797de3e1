"""Maps for tests: a building with three passages, and an open field with two obstacles."""

from __future__ import annotations

from pathlib import Path

import numpy as np


def building(folder: Path) -> str:
    """A nav2 map of 200 x 150 pixels: a south hall and a north hall, joined by a west, a middle and an east passage.

    There are doors, pillars and a table in the halls. Returns the source of the model, from the middle of the south to the
    middle of the north.
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
    return f"{folder / 'building.yaml'}?start=10,1.5&goal=10,13.5&coarsen=2"


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
