"""manyways: many good ways through a Markov decision process.

    import manyways as mw

    plans = mw.plan("nine-rooms:7", k=6, tradeoff=8.0)
    plans.objective, plans.rewards, plans.distances
    plans.draw("plans.png")

Names are loaded when they are first used, so that `import manyways` costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyways.behaviour import Labels, StateActions, States
    from manyways.errors import (
        EmptyDomain,
        ManywaysError,
        ModelError,
        NotWeaklyAccessible,
        OutputError,
        PlanFileError,
        SettingError,
        SolverError,
        SourceError,
    )
    from manyways.formats import read
    from manyways.formats.exploring import explore
    from manyways.formats.tables import from_mdptoolbox, from_quantecon
    from manyways.layout import Grid
    from manyways.mdp import MDP
    from manyways.methods import FrankWolfe, Progress, ProjectedGradient, Status, VertexAscent
    from manyways.objective import Objective
    from manyways.planning import plan
    from manyways.planset import Certificate, PlanSet, load
    from manyways.policy import Policy, load_policy
    from manyways.polytope import Average, Discounted, Polytope
    from manyways.simulation import simulate
    from manyways.structure import end_components, reachable_from_start
    from manyways.studies.experiments import paper
    from manyways.studies.results import Results
    from manyways.studies.sweeping import Sweep, sweep
    from manyways.verification import verify
    from manyways.worlds import four_rooms, grid_world, nine_rooms, room_world, tiled_rooms

_HOME = {
    "behaviour": ("Labels", "StateActions", "States"),
    "errors": (
        "EmptyDomain",
        "ManywaysError",
        "ModelError",
        "NotWeaklyAccessible",
        "OutputError",
        "PlanFileError",
        "SettingError",
        "SolverError",
        "SourceError",
    ),
    "formats": ("read",),
    "formats.exploring": ("explore",),
    "formats.tables": ("from_mdptoolbox", "from_quantecon"),
    "layout": ("Grid",),
    "mdp": ("MDP",),
    "methods": ("FrankWolfe", "Progress", "ProjectedGradient", "Status", "VertexAscent"),
    "objective": ("Objective",),
    "planning": ("plan",),
    "planset": ("Certificate", "PlanSet", "load"),
    "policy": ("Policy", "load_policy"),
    "polytope": ("Average", "Discounted", "Polytope"),
    "structure": ("end_components", "reachable_from_start"),
    "simulation": ("simulate",),
    "studies.experiments": ("paper",),
    "studies.results": ("Results",),
    "studies.sweeping": ("Sweep", "sweep"),
    "verification": ("verify",),
    "worlds": ("four_rooms", "grid_world", "nine_rooms", "room_world", "tiled_rooms"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "MDP",
    "Average",
    "Certificate",
    "Discounted",
    "EmptyDomain",
    "FrankWolfe",
    "Grid",
    "Labels",
    "ManywaysError",
    "ModelError",
    "NotWeaklyAccessible",
    "Objective",
    "OutputError",
    "PlanFileError",
    "PlanSet",
    "Policy",
    "Polytope",
    "Progress",
    "ProjectedGradient",
    "Results",
    "SettingError",
    "SolverError",
    "SourceError",
    "StateActions",
    "States",
    "Status",
    "Sweep",
    "VertexAscent",
    "end_components",
    "explore",
    "four_rooms",
    "from_mdptoolbox",
    "from_quantecon",
    "grid_world",
    "load",
    "load_policy",
    "nine_rooms",
    "paper",
    "plan",
    "reachable_from_start",
    "read",
    "room_world",
    "simulate",
    "sweep",
    "tiled_rooms",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # a third of the import's time, for a rare question

        return version("manyways")
    if name in _MODULE_OF:
        value = getattr(import_module(f"manyways.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'manyways' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
