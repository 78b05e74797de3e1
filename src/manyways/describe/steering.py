"""What actions are called in words, where the name of an action may promise more than it does.

On slippery ice, whoever takes `left` seldom goes left: such a plan "takes 'left'". A plan whose moves usually go where the
name says "goes left".
"""

from __future__ import annotations

import numpy as np

from manyways.describe.action_words import does
from manyways.describe.subject import NEVER, Plans
from manyways.describe.wording import quoted

MOVES = {
    "north": (-1, 0), "south": (1, 0), "west": (0, -1), "east": (0, 1),
    "up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1),
    "northwest": (-1, -1), "northeast": (-1, 1), "southwest": (1, -1), "southeast": (1, 1),
}  # fmt: skip
"""By the name of a direction, the signs of the steps down and to the right."""

USUALLY = 0.5


def deeds_of(plans: Plans) -> tuple[str, ...]:
    """What a plan does that takes each action, in the third person."""
    names = plans.mdp.action_names
    if plans.mdp.layout is None:
        return tuple(map(does, names))
    return tuple(
        f"takes {quoted(name)}" if _misleading(plans, number, name) else does(name) for number, name in enumerate(names)
    )


def _misleading(plans: Plans, action: int, name: str) -> bool:
    """Whether an action is called after a direction and, in the time that the plans take it, usually does not move that way."""
    layout, move = plans.mdp.layout, MOVES.get("".join(c for c in name.lower() if c.isalpha()))
    if layout is None or move is None:
        return False
    choices = np.flatnonzero(plans.mdp.actions == action)
    time = plans.occupancies[:, choices].sum(axis=0)
    if time.sum() <= NEVER:
        return False
    steps = plans.mdp.transitions[choices].tocoo()
    row, column = np.divmod(layout.cells, layout.shape[1])
    origin = plans.mdp.choice_state[choices][steps.row]
    down, right = (at[steps.col] - at[origin] for at in (row, column))
    there = (np.sign(down) == move[0]) & (np.sign(right) == move[1])
    moving = np.bincount(steps.row[there], steps.data[there], len(choices))
    return bool(time @ moving < USUALLY * time.sum())
