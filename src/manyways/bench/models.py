"""Models and maps that the benchmarks generate."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy import ndimage, sparse

from manyways.model.mdp import MDP
from manyways.types import Bools, Floats


def perturbed(mdp: MDP, visited: Floats, seed: int) -> Floats:
    """(N,) costs that resemble those of a method's next oracle call.

    They are the reward, changed at a fifth of the choices in the states that the (N,) occupancy `visited` visits.
    """
    rng = np.random.default_rng(seed)
    near = np.maximum.reduceat(visited > 1e-9, mdp.first_choice[:-1])[mdp.choice_state]
    return mdp.reward + 4.0 * rng.uniform(-3, 0.35, mdp.n_choices) * (near & (rng.random(mdp.n_choices) < 0.2))


def scattered_model(n_states: int) -> MDP:
    """A model with four choices in each state and four transitions per choice.

    Its probabilities and rewards are random numbers that need all their digits in a text file.
    """
    rng = np.random.default_rng(0)
    state, action = np.divmod(np.arange(4 * n_states), 4)
    target = (state[:, None] + np.array([1, 2, 3, 5]) * (1 + action)[:, None]) % n_states
    begin = np.arange(0, target.size + 1, 4)
    weights = rng.dirichlet(np.ones(4), len(target)).ravel()
    matrix = sparse.csr_array((weights, target.ravel(), begin), shape=(len(target), n_states))
    labels = {"odd": np.arange(n_states) % 2 == 1}
    return MDP.from_csr(
        matrix, rng.random(len(target)), np.arange(0, len(target) + 1, 4), actions=action, labels=labels
    )


def obstacles(side: int) -> Bools:
    """(side, side) a map with rectangular obstacles, whose free cells are all connected."""
    rng = np.random.default_rng(side)
    blocked = np.zeros((side, side), bool)
    for top, left, height, width in rng.integers(1, [side, side, side // 8 + 2, side // 8 + 2], (40, 4)):
        blocked[top : top + height, left : left + width] = True
    parts = np.zeros(blocked.shape, np.int32)
    ndimage.label(~blocked, output=parts)
    return parts != 1 + np.argmax(np.bincount(parts.ravel())[1:])


def write_maps(blocked: Bools, stem: Path) -> tuple[str, str]:
    """Write a map in the MovingAI and in the nav2 format.

    Returns:
        The source of each, with the first free cell as the start and the last one as the goal.
    """
    height, width = blocked.shape
    text = "\n".join("".join(row) for row in np.where(blocked, "@", "."))
    stem.with_suffix(".map").write_text(f"type octile\nheight {height}\nwidth {width}\nmap\n{text}\n")
    pixels = np.where(blocked, 0, 254).astype(np.uint8).tobytes()
    stem.with_suffix(".pgm").write_bytes(f"P5\n{width} {height}\n255\n".encode() + pixels)
    stem.with_suffix(".yaml").write_text(
        f"image: {stem.name}.pgm\nresolution: 0.05\norigin: [0, 0, 0]\nnegate: 0\n"
        "occupied_thresh: 0.65\nfree_thresh: 0.196\n"
    )
    (y, x), (bottom, right) = np.argwhere(~blocked)[[0, -1]].tolist()
    ends = f"start={x},{y}&goal={right},{bottom}"
    return f"{stem}.map?{ends}", f"{stem}.yaml?unit=cells&{ends}"
