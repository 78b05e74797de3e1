"""One cold `best` on several processes: mpirun -n 2 python benchmarks/distributed_best.py rooms.h5 [DISCOUNT]

Prints one JSON object: the value and its proved bound, iterations, seconds, and CPU time and largest memory of the processes.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path

from manyways.distributed.oracle import SharedOracle
from manyways.distributed.part import ModelPart
from manyways.distributed.team import Team


def main() -> None:
    team = Team()
    part = ModelPart(Path(sys.argv[1]), team)
    began, cpu = time.perf_counter(), time.process_time()
    oracle = SharedOracle(part, float(sys.argv[2]) if len(sys.argv) > 2 else 1.0)
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
