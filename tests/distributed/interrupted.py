"""Plans for longer than any test lasts: mpirun -n 2 python interrupted.py MODEL OUT READY. Makes the file READY when the search has begun."""

import json
import sys
from pathlib import Path

import manyways as mw
from manyways.distributed.planning import plan_together

model, out, ready = map(Path, sys.argv[1:])


def watch(progress: mw.Progress) -> None:
    if progress.objective == progress.objective:  # there are plans: until then it is NaN
        ready.touch()


plans = plan_together(model, 3, 8.0, method=mw.VertexAscent(starts=100_000), out=out, progress=watch)
if plans.part.team.rank == 0:
    print(json.dumps([plans.status, plans.certificate.ok]))
