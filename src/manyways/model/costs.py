"""Rewards that are probably costs.

Model checkers use one word, reward, for what should be high and for what should be low, and a file does not say which of
the two a reward structure is. Planning maximises rewards unless it is asked to minimise them.
"""

from __future__ import annotations

import numpy as np

from manyways.model.episodes import GOAL, episode_ends
from manyways.model.graph import reachable_from_start
from manyways.model.mdp import MDP
from manyways.model.search import peeled


def looks_like_a_cost(mdp: MDP) -> bool:
    """Whether the reward of a model is probably a cost that should be low. Decided in linear time.

    It is if no reward is negative, some are positive, and

    - neither the goal nor the end of an episode pays more than other steps, since what is paid for arriving is no cost; and
    - in a model with episodes: something is paid on the way; in a model without episodes: some policy is paid nothing
      from some time on. Such a policy exists exactly if the choices that pay nothing contain an end component, that is,
      if some states are left when all choices that pay are removed with everything that depends on them.

    A model marked by `MDP.minimising` does not need to be asked about. The answer is a guess: work that is done for money
    where one may also rest looks like this, too.
    """
    paid = mdp.reward > 0
    if mdp.costs or (mdp.reward < 0).any() or not paid.any():
        return False
    ends = episode_ends(mdp)
    arriving = np.zeros(mdp.n_choices, bool) if ends is None else ends > 0
    if GOAL in mdp.labels:
        arriving |= mdp.labels[GOAL][mdp.choice_state]
    if mdp.reward[arriving].max(initial=0.0) > mdp.reward[~arriving].max(initial=0.0):
        return False
    if ends is not None:
        return True
    resting = peeled(mdp.transitions, mdp.first_choice, np.zeros(mdp.n_states, bool), paid)[0]
    return bool((resting & reachable_from_start(mdp)).any())
