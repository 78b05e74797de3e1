"""Sweeps: plans of one model over tradeoffs, set sizes and seeds, and the curve of reward against diversity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from manyways.draw import save_picture
from manyways.errors import SettingError, check_integer, check_number
from manyways.formats import read
from manyways.model.mdp import MDP
from manyways.planning import library_versions
from manyways.studies.engine import run_trials
from manyways.studies.results import Results
from manyways.studies.store import FILE, Store
from manyways.studies.trial import Trial, method_named

SHADES = ("#08519c", "#d95f0e", "#31a354", "#756bb1", "#636363", "#dd1c77", "#2b8cbe", "#8c6d31")


@dataclass(frozen=True)
class Knee:
    """Where the curve of one k bends most. Beyond it, additional diversity costs more reward than before.

    Attributes:
        k: the set size.
        tradeoff, reward, diversity: of the point.
    """

    k: int
    tradeoff: float
    reward: float
    diversity: float


@dataclass(frozen=True)
class Sweep(Results):
    """The rows of a sweep: one per tradeoff, k and seed."""

    def curve(self, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The tradeoffs, and the mean diversity and mean reward over the seeds at each of them."""
        own = Results(self.study, [row for row in self.rows if row["k"] == k])
        method = own.rows[0]["method"]
        tradeoffs, diversity, _ = own.series("tradeoff", "diversity", method)
        return tradeoffs, diversity, own.series("tradeoff", "reward", method)[1]

    def knees(self) -> list[Knee]:
        """The knees of all curves that have one. A curve needs at least three points, and reward that falls as diversity
        grows."""
        found = []
        for k in sorted({row["k"] for row in self.good}):
            tradeoffs, diversity, reward = self.curve(k)
            at = _knee(diversity, reward)
            if at is not None:
                found.append(Knee(k, float(tradeoffs[at]), float(reward[at]), float(diversity[at])))
        return found

    def draw(self) -> Figure:
        """Reward against diversity, with a curve for each k and marked knees."""
        figure = Figure(figsize=(7, 4.8), layout="constrained")
        panel = figure.subplots()
        for k, colour in zip(sorted({row["k"] for row in self.good}), SHADES * 99, strict=False):
            tradeoffs, diversity, reward = self.curve(k)
            panel.plot(diversity, reward, "o-", color=colour, markersize=4, label=f"k = {k}")
            for at in {0, len(tradeoffs) - 1}:
                panel.annotate(
                    f" {tradeoffs[at]:g}", (diversity[at], reward[at]), fontsize=8, color=colour, parse_math=False
                )
        for knee in self.knees():
            panel.plot(knee.diversity, knee.reward, "*", color="black", markersize=13, zorder=5)
            panel.annotate(f" knee, tradeoff {knee.tradeoff:g}", (knee.diversity, knee.reward), fontsize=9, va="bottom")
        if self.good:
            panel.axhline(max(row["optimal_reward"] for row in self.good), color="#888888", linewidth=1, linestyle=":")
        panel.set_xlabel("mean pairwise diversity (nats)")
        panel.set_ylabel("reward per plan (dotted: optimal)")
        panel.set_title("The price of diversity; small numbers are tradeoffs", fontsize=11)
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
        return figure


def sweep(
    source: MDP | str | PathLike[str],
    *,
    tradeoff: Sequence[float],
    k: Sequence[int] = (4,),
    seeds: int = 5,
    method: str = "vertex-ascent",
    out: str | Path | None = None,
    workers: int | None = None,
    cluster: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Sweep:
    """Plan for every combination of tradeoff, k and seed, to see how much reward diversity costs.

    Args:
        source: a model, or anything that `read` takes.
        tradeoff: the tradeoffs to try.
        k: the set sizes to try.
        seeds: the number of seeds at each point: 0, 1, 2, ...
        method: the name of a registered method, such as "vertex-ascent".
        out: a folder for rows.sqlite, sweep.csv, sweep.png and sweep.svg. Rows that it already holds are not computed
            again.
        workers, cluster: as for `manyways.paper`.
        progress: called with the number of rows computed so far and in total.

    Returns:
        The rows. Failed trials have rows with an `error`; they are not stored, so that the next run tries them again.

    Example:
        >>> found = sweep("nine-rooms:7", tradeoff=range(0, 17, 2), k=[4, 6], seeds=3)
        >>> found.knees()
    """
    tradeoffs = [check_number("a tradeoff", value, 0) for value in tradeoff]
    sizes = [check_integer("k", value, 1) for value in k]
    check_integer("seeds", seeds, 1)
    if not tradeoffs or not sizes:
        raise SettingError("a sweep needs at least one tradeoff and one k")
    method_named(method)  # an unknown name is refused before anything is written
    mdp = read(source)
    shared = {"source": mdp.name, "model": mdp.digest, "method": method}
    trials = [
        Trial("plan", shared | {"k": size, "tradeoff": value, "seed": seed})
        for size in dict.fromkeys(sizes)
        for value in dict.fromkeys(tradeoffs)
        for seed in range(seeds)
    ]
    folder = None if out is None else Path(out)
    with Store(folder) as store:
        settings = shared | {"tradeoff": tradeoffs, "k": sizes, "seeds": seeds}
        store.begin("sweep", settings | {"manyways": library_versions()["manyways"]})
        rows = run_trials("sweep", trials, store, workers=workers, cluster=cluster, model=mdp, progress=progress)
    found = Sweep("sweep", rows)
    if folder is not None:
        found.write_csv(folder / "sweep.csv")
        if found.good:
            for ending in (".png", ".svg"):
                save_picture(found.draw(), folder / f"sweep{ending}")
    return found


def load_sweep(folder: Path, mdp: MDP) -> Sweep:
    """The sweep of this model that a folder holds."""
    no_sweep = SettingError(
        f"there is no sweep in {folder}; ",
        in_python=f"make one with manyways.sweep(..., out={str(folder)!r})",
        on_command_line=f"make one with 'manyways sweep --out {folder}'",
    )
    if not (folder / FILE).exists():
        raise no_sweep
    with Store(folder) as store:
        settings, rows = store.settings("sweep"), list(store.rows("sweep").values())
    if settings is None or not rows:
        raise no_sweep
    if settings["model"] != mdp.digest:
        raise SettingError(f"the sweep in {folder} is of another model, {settings['source']}")
    return Sweep("sweep", rows)


def _knee(diversity: np.ndarray, reward: np.ndarray) -> int | None:
    """The index of the point farthest above the straight line between the curve's ends, with both axes scaled to one."""
    if len(diversity) < 3:
        return None
    width, height = diversity[-1] - diversity[0], reward[0] - reward[-1]
    if width <= 1e-9 or height <= 1e-9:
        return None
    above = (diversity - diversity[0]) / width - (reward[0] - reward) / height
    at = int(np.argmax(above))
    return at if above[at] > 1e-9 else None
