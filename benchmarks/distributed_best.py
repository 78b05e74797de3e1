"""One cold `best` on several processes:

    mpirun -n 2 python benchmarks/distributed_best.py rooms.h5 [--discount 0.99] [--solver gmres] [--fill 2]

The solver is a Krylov method of PETSc, with an incomplete factorisation of so many levels of fill. Prints one JSON object: the value and its proved bound, iterations, seconds, and CPU time and largest memory of the processes.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path

from manyways.distributed import linear_system
from manyways.distributed.oracle import SharedOracle
from manyways.distributed.part import ModelPart
from manyways.distributed.team import Team


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("model", type=Path)
    arguments.add_argument("--discount", type=float, default=1.0)
    arguments.add_argument("--solver", default=linear_system.ATTEMPTS[0][0])
    arguments.add_argument("--fill", type=int, default=linear_system.ATTEMPTS[0][1])
    given = arguments.parse_args()
    linear_system.ATTEMPTS = ((given.solver, given.fill),) * 2
    team = Team()
    part = ModelPart(given.model, team)
    began, cpu = time.perf_counter(), time.process_time()
    oracle = SharedOracle(part, given.discount)
    best = oracle.best(part.reward)
    used = team.comm.allgather(
        (time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, part.halo.sent)
    )
    if team.rank == 0:
        answer = {
            "states": part.n_states,
            "processes": team.size,
            "value": best.value,
            "above": best.bound - best.value,
            "outer": oracle.outer,
            "inner": oracle.inner,
            "seconds": round(time.perf_counter() - began, 2),
            "cpu_s": [round(cpu, 2) for cpu, *_ in used],
            "mib": [mib for _, mib, _ in used],
            "values_sent_per_exchange": [sent for *_, sent in used],
        }
        print(json.dumps(answer))


if __name__ == "__main__":
    main()
