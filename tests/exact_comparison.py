"""The checker against exact rational arithmetic on many models: `python tests/exact_comparison.py 20000`.

Prints for each family of models how many statements were made, how many of them are false, and which share could be
stated at all; a third of the models have spoiled vectors. The tests do the same on a few hundred models.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "plans")]

from test_checker import statements  # noqa: E402

from rational import KINDS  # noqa: E402


def main(models: int) -> int:
    wrong = 0
    print("| family | vectors | models | statements | false | stated of all |\n|---|---|---|---|---|---|")
    for kind in KINDS:
        for spoil, count in ((False, models * 2 // 3 // len(KINDS)), (True, models // 3 // len(KINDS))):
            found = Counter()
            for seed in range(count):
                found.update(value for _, value in statements(10_000 + seed, kind, spoil=spoil))
            made = found[True] + found[False]
            share = made / max(made + found[None], 1)
            wrong += found[False]
            print(
                f"| {kind} | {'spoiled' if spoil else 'good'} | {count} | {made} | {found[False]} | {share:.2%} |",
                flush=True,
            )
    return wrong


if __name__ == "__main__":
    sys.exit(1 if main(int(sys.argv[1]) if len(sys.argv) > 1 else 600) else 0)
