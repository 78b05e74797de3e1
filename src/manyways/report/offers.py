"""What the live page offers for planning again: the settings that make sense for the model of a set."""

from __future__ import annotations

import numpy as np

from manyways.model.bans import bans_in
from manyways.model.episodes import episode_ends
from manyways.plans.planset import PlanSet

MOST_BANS = 40
"""At most this many labels and actions are offered for bans; more would be no help."""


def offers_of(plans: PlanSet) -> dict[str, list[str]]:
    """By setting, what can be chosen: words for behaviours, what values are counted per, labels and actions to ban; and what is
    banned already."""
    mdp = plans.mdp
    behaviours = ["state-actions", "states", "actions"]
    if mdp.layout is not None:
        behaviours[:0] = ["near", "regions"]
    if len(mdp.labels) > 1:
        behaviours.append("labels")
    labels = [name for name, mask in mdp.labels.items() if name not in ("start", "goal") and mask.any()]
    ends = [end for end in mdp.ends if end not in ("goal", *labels)]
    episodes = episode_ends(mdp) is not None
    actions = [mdp.action_names[i] for i in np.unique(mdp.actions)]
    return {
        "banned": bans_in(mdp.name),
        "behaviour": behaviours,
        "per": ["step", "episode"] if episodes and plans.criterion.discount == 1 else [],
        "banned_labels": [*labels, *ends][:MOST_BANS],
        "banned_actions": actions if 1 < len(actions) <= MOST_BANS else [],
    }
