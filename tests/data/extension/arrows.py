"""A format from outside the package: one line per transition, `state -action-> state probability reward`."""

import re
from pathlib import Path

import manyways as mw
from manyways.files import atomic, read_text

LINE = re.compile(r"(\S+) -(\S+)-> (\S+) (\S+) (\S+)")


def read_arrows(path: Path, scale: float = 1.0) -> mw.MDP:
    lines = read_text(path, 2**20, "expected lines such as 'home -bus-> work 1.0 -3.0'").splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    if None in found:
        raise mw.SourceError(f"{path}: line {found.index(None) + 1} is not 'state -action-> state probability reward'")
    rows = [match.groups() for match in found if match]
    return mw.MDP.from_transitions([(s, a, t, float(p), scale * float(r)) for s, a, t, p, r in rows], name=path.stem)


def write_arrows(mdp: mw.MDP, path: Path) -> None:
    with atomic(path) as file:
        for x, s in enumerate(mdp.choice_state):
            row = mdp.transitions[[x]].tocoo()
            for target, chance in zip(row.coords[1], row.data, strict=True):
                names = mdp.state_name(int(s)), mdp.action_name(x), mdp.state_name(int(target))
                file.write("{} -{}-> {} {!r} {!r}\n".format(*names, float(chance), float(mdp.reward[x])).encode())


mw.register(
    mw.Format(
        "arrows", read_arrows, endings=(".arrows",), settings={"scale": float}, write=write_arrows, example="m.arrows"
    )
)
