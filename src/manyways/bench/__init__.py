"""Benchmarks: the speed of this package compared with others, as ratios measured in one run.

Machines differ and their load varies, so no result is judged in seconds. Each part times this package and what it is
compared with on the same model, in the same run, and reports the shortest of several times of each.
`benchmarks/README.md` says what each part shows.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from manyways.bench import measurements, search, sets
from manyways.bench.measurements import Row
from manyways.bench.report import draw_growth, environment, markdown
from manyways.files import write_bytes


@dataclass(frozen=True)
class Part:
    """One benchmark.

    Attributes:
        title: what it shows.
        run: measures, for worlds with the given sides where the benchmark depends on them.
    """

    title: str
    run: Callable[[list[int]], list[Row]]


PARTS = {
    "paper": Part("The default call against the paper's algorithm with cold LPs", search.against_the_paper),
    "sure": Part("One default call against the best known value", search.sureness),
    "others": Part("One `best` against other solvers", measurements.against_others),
    "growth": Part("One `best` over the size of the model", measurements.growth),
    "threads": Part("One `best` on two threads, against one", measurements.threads),
    "plans": Part("The cost of k", search.number_of_plans),
    "limits": Part("Diversity within a slack, against the best set by any tradeoff", sets.limits),
    "kinds": Part("The time of other kinds of sets, against a set by tradeoff", search.kinds_of_sets),
    "preferences": Part("Representative sets over draws and states", sets.preferences),
    "rounds": Part("A round of choices", sets.rounds),
    "near": Part("Plans compared by neighbourhoods, against state-action pairs", sets.neighbourhoods),
    "closures": Part("Six plans with 40 things closed, one at a time", sets.closed_doors),
    "certificates": Part("The time of certificates", measurements.certificates),
    "start": Part("Start-up", measurements.start_up),
    "memory": Part("Peak memory of one `best`", measurements.memory),
    "studies": Part("Workers on the paper's tradeoff study", measurements.studies),
    "reading": Part("Reading files", measurements.reading),
    "tables": Part("Reading a table of transitions", measurements.tables),
}


def run(parts: list[str], sizes: list[int], folder: Path | None, show: Callable[[str], None]) -> dict[str, list[Row]]:
    """Run benchmarks.

    Args:
        parts: keys of `PARTS`.
        sizes: sides of the square worlds, for the parts that depend on a size.
        folder: where to write RESULTS.md, results.json and, if `growth` is among the parts, growth.png.
        show: called with the table of each part when it is done.

    Returns:
        The rows of each part.
    """
    results: dict[str, list[Row]] = {}
    sections = []
    for name in parts:
        results[name] = PARTS[name].run(sizes)
        sections.append(markdown(PARTS[name].title, results[name]))
        show(sections[-1])
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        command = f"manyways bench {' '.join(parts)} --sizes {','.join(map(str, sizes))} --out {folder}"
        head = f"# Results\n\n{time.strftime('%Y-%m-%d')}; {environment()}.\n\nCommand: `{command}`\n"
        write_bytes(folder / "RESULTS.md", "\n".join([head, *sections]).encode())
        write_bytes(folder / "results.json", (json.dumps(results, indent=1, default=float) + "\n").encode())
        if "growth" in results:
            draw_growth(results["growth"], folder / "growth.png")
    return results
