"""manyways: many good ways through a Markov decision process.

    import manyways as mw

    plans = mw.plan("nine-rooms:7", k=6)  # each within 10 % of the best
    plans.guarantee, plans.rewards, plans.distances
    plans.draw("plans.png")

Names are loaded when they are first used, so that `import manyways` takes almost no time.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyways.behaviours import (
        Actions,
        Behaviour,
        Features,
        Grouping,
        Labels,
        Mixing,
        Near,
        Regions,
        StateActions,
        States,
    )
    from manyways.changing_over import Switching, switching
    from manyways.conversation import Conversation, LearnedPreference
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
    from manyways.extensions import register
    from manyways.formats import Format, read
    from manyways.formats.arrays import from_mdptoolbox, from_quantecon
    from manyways.formats.exploration import explore, explore_into
    from manyways.methods import Ascent, FrankWolfe, Method, Progress, ProjectedGradient, Status, VertexAscent
    from manyways.model.closures import Closure, closures
    from manyways.model.graph import end_components, reachable_from_start
    from manyways.model.layout import Grid
    from manyways.model.mdp import MDP
    from manyways.objectives import (
        Congestion,
        Coverage,
        DeterminantDivergence,
        JointDivergence,
        LeastDivergence,
        MeanDivergence,
        Objective,
        Representative,
        SetObjective,
        SpreadDivergence,
    )
    from manyways.planning import plan
    from manyways.plans import Certificate, Plan, PlanSet, Policy, Route, load, load_policy, verify
    from manyways.plans.simulation import simulate
    from manyways.polytope import Average, Criterion, Discounted, Episodic, Limits, Polytope
    from manyways.preferences import PossibleClosures, PossibleRewards, PreferencePrior, Preferences
    from manyways.ranges import Freedom, freedom
    from manyways.risks import Risk, risk
    from manyways.serving import Audience, Serving, audience, served
    from manyways.studies.experiments import paper
    from manyways.studies.results import Results
    from manyways.studies.sweeps import Sweep, sweep
    from manyways.surviving import Survival, survival
    from manyways.teams import Team, team
    from manyways.ways import Ways, how_many
    from manyways.worlds import four_rooms, grid_world, nine_rooms, room_world, tiled_rooms

_HOME = {
    "behaviours": (
        "Actions",
        "Behaviour",
        "Features",
        "Grouping",
        "Labels",
        "Mixing",
        "Near",
        "Regions",
        "StateActions",
        "States",
    ),
    "conversation": ("Conversation", "LearnedPreference"),
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
    "extensions": ("register",),
    "formats": ("Format", "read"),
    "formats.arrays": ("from_mdptoolbox", "from_quantecon"),
    "formats.exploration": ("explore", "explore_into"),
    "methods": ("Ascent", "FrankWolfe", "Method", "Progress", "ProjectedGradient", "Status", "VertexAscent"),
    "model.closures": ("Closure", "closures"),
    "model.graph": ("end_components", "reachable_from_start"),
    "model.layout": ("Grid",),
    "model.mdp": ("MDP",),
    "objectives": (
        "Congestion",
        "Coverage",
        "DeterminantDivergence",
        "JointDivergence",
        "LeastDivergence",
        "MeanDivergence",
        "Objective",
        "Representative",
        "SetObjective",
        "SpreadDivergence",
    ),
    "planning": ("plan",),
    "plans": ("Certificate", "Plan", "PlanSet", "Policy", "Route", "load", "load_policy", "verify"),
    "plans.simulation": ("simulate",),
    "polytope": ("Average", "Criterion", "Discounted", "Episodic", "Limits", "Polytope"),
    "preferences": ("PossibleClosures", "PossibleRewards", "PreferencePrior", "Preferences"),
    "ranges": ("Freedom", "freedom"),
    "risks": ("Risk", "risk"),
    "serving": ("Audience", "Serving", "audience", "served"),
    "studies.experiments": ("paper",),
    "studies.results": ("Results",),
    "studies.sweeps": ("Sweep", "sweep"),
    "surviving": ("Survival", "survival"),
    "changing_over": ("Switching", "switching"),
    "teams": ("Team", "team"),
    "ways": ("Ways", "how_many"),
    "worlds": ("four_rooms", "grid_world", "nine_rooms", "room_world", "tiled_rooms"),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "MDP",
    "Actions",
    "Ascent",
    "Audience",
    "Average",
    "Behaviour",
    "Certificate",
    "Closure",
    "Congestion",
    "Conversation",
    "Coverage",
    "Criterion",
    "DeterminantDivergence",
    "Discounted",
    "EmptyDomain",
    "Episodic",
    "Features",
    "Format",
    "FrankWolfe",
    "Freedom",
    "Grid",
    "Grouping",
    "JointDivergence",
    "Labels",
    "LearnedPreference",
    "LeastDivergence",
    "Limits",
    "ManywaysError",
    "MeanDivergence",
    "Method",
    "Mixing",
    "ModelError",
    "Near",
    "NotWeaklyAccessible",
    "Objective",
    "OutputError",
    "Plan",
    "PlanFileError",
    "PlanSet",
    "Policy",
    "Polytope",
    "PossibleClosures",
    "PossibleRewards",
    "PreferencePrior",
    "Preferences",
    "Progress",
    "ProjectedGradient",
    "Regions",
    "Representative",
    "Results",
    "Risk",
    "Route",
    "Serving",
    "SetObjective",
    "SettingError",
    "SolverError",
    "SourceError",
    "SpreadDivergence",
    "StateActions",
    "States",
    "Status",
    "Survival",
    "Sweep",
    "Switching",
    "Team",
    "VertexAscent",
    "Ways",
    "audience",
    "closures",
    "end_components",
    "explore",
    "explore_into",
    "four_rooms",
    "freedom",
    "from_mdptoolbox",
    "from_quantecon",
    "grid_world",
    "how_many",
    "load",
    "load_policy",
    "nine_rooms",
    "paper",
    "plan",
    "reachable_from_start",
    "read",
    "register",
    "risk",
    "room_world",
    "served",
    "simulate",
    "survival",
    "sweep",
    "switching",
    "team",
    "tiled_rooms",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version  # slow to import and rarely needed

        return version("manyways")
    if name in _MODULE_OF:
        value = getattr(import_module(f"manyways.{_MODULE_OF[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'manyways' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
