"""Gymnasium environments with tabular dynamics: FrozenLake, CliffWalking, Taxi, and others that have a table `P`.

The table says which transitions end an episode. What happens then is a rule:

- `restart`, for the long-run average: the step that ends an episode leads back to the start distribution, as the
  paper's goal does. No step is added, so that the model's reward per step is the environment's. What kind of end it
  was, the goal or a hole, the model keeps in its `ends`.
- `absorbing`, for discounted reward: where an episode ends is never left and pays nothing any more. An end in a place
  where episodes also go on is one more state, `end`.

Repeated successors are added up, states that nothing leads to are left out. `end_reward=50` adds a reward to every
step that ends an episode at the goal, or anywhere if it is not known where the goal is. Where no step pays anything and
all only cost, as in CliffWalking, the long-run average would give no reason to get anywhere: there reaching the goal
pays as much as the dearest step costs, unless `end_reward` says otherwise. The model's name tells.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, SettingError, SourceError
from manyways.formats.format import FORMATS, Format, any_text, any_value
from manyways.model.graph import reachable, reachable_from_start
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.types import Floats

PREFIX = "gym:"
RULES = ("restart", "absorbing")
DIRECTIONS = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


@dataclass(frozen=True)
class TabularEnvironment:
    """An environment and the model read from it.

    Attributes:
        env: the environment.
        mdp: its model.
        end_rewards: (n,) by observation, the reward that the model adds to a step that ends an episode there.
        end_reward: that reward where it is added.
    """

    env: Any
    mdp: MDP
    end_rewards: Floats
    end_reward: float


def is_environment(source: object) -> bool:
    """Whether an object is an environment with a table of its dynamics."""
    return hasattr(getattr(source, "unwrapped", None), "P")


def read_gym(place: Any, absorbing: bool = False, **settings: Any) -> MDP:
    """The model of an environment, or of one named as `gym:ID`; see `open_gym`."""
    if not isinstance(place, str):
        return model_of(place, RULES[absorbing]).mdp
    return open_gym(place, absorbing, **settings).mdp


def open_gym(
    place: str, absorbing: bool = False, terminal: str | None = None, end_reward: Any = None, **keywords: Any
) -> TabularEnvironment:
    """The environment named as `gym:ID`, and its model.

    Args:
        place: `gym:` and the id of an environment.
        absorbing: whether the rule for the end of an episode is "absorbing" instead of "restart".
        terminal: the rule by its name, in place of `absorbing`.
        end_reward: added to every step that ends an episode at the goal.
        keywords: for `gymnasium.make`.
    """
    rule = RULES[absorbing] if terminal is None else terminal
    if isinstance(end_reward, (str, bool)):
        raise SourceError(f"{place}: end_reward must be a number, found {end_reward!r}")
    if rule not in RULES:
        raise SourceError(f"{place}: terminal must be one of {', '.join(RULES)}, found {rule!r}")
    env, used = _made(place.removeprefix(PREFIX), keywords, place)
    opened = model_of(env, rule, used, end_reward)
    given = keywords | ({} if opened.end_reward == 0 and end_reward is None else {"end_reward": opened.end_reward})
    source = (
        f"{PREFIX}{used}?{urlencode({name: _written(value) for name, value in (given | {'terminal': rule}).items()})}"
    )
    return replace(opened, mdp=opened.mdp.read_from(source))


def _written(value: Any) -> str:
    """A setting as it stands in a source."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def model_of(
    env: Any, rule: str = "restart", name: str | None = None, end_reward: float | None = None
) -> TabularEnvironment:
    """The model of an environment whose `unwrapped.P[state][action]` lists (probability, next state, reward, ended)."""
    inner = env.unwrapped
    name = name or f"{type(inner).__name__}"
    if not is_environment(env):
        raise SourceError(f"{name} has no table of its dynamics (`env.unwrapped.P`), so it cannot be read as a model")
    rows = [
        (s, a, float(p), int(t), float(r), bool(ended))
        for s, actions in inner.P.items()
        for a, outcomes in actions.items()
        for p, t, r, ended in outcomes
    ]
    if not rows:
        raise ModelError(f"{name} has an empty table of dynamics")
    state, action, chance, target, reward, ended = (np.array(column) for column in zip(*rows, strict=True))
    n = int(max(state.max(), target.max())) + 1
    start, details = _start(inner, n), _details(inner, n)
    if end_reward is None:
        only_costs = rule == "restart" and "goal" in details.ends and reward.max() <= 0
        end_reward = max(0.0, -float(reward.min())) if only_costs else 0.0
    end_rewards = end_reward * details.ends.get("goal", np.ones(n))
    reward = reward + end_rewards[target] * ended
    kinds, again = details.ends, ended
    if rule == "absorbing":
        kinds, again = {}, np.zeros(len(ended), bool)
        final = _final(state, target, ended, start > 0)
        target = np.where(ended & ~final[target], n, target)
        chance = np.where(final[state], 0.0, chance)  # what an environment says of its ends, nobody ever does
    n_actions = int(action.max()) + 1
    taken = chance > 0
    keys, choice = np.unique((state * n_actions + action)[taken], return_inverse=True)

    def total(amount: np.ndarray) -> np.ndarray:
        """(N,) sums by choice, and nothing for the choices to stay that are added at the end."""
        return np.append(np.bincount(choice, amount[taken], minlength=len(keys)), np.zeros(len(stays)))

    stays = np.setdiff1d(np.arange(n + 1), keys // n_actions)
    owner = np.append(keys // n_actions, stays)
    going = sparse.csr_array(((chance * ~again)[taken], (choice, target[taken])), shape=(len(keys), n + 1))
    staying = sparse.csr_array((np.ones(len(stays)), (np.arange(len(stays)), stays)), shape=(len(stays), n + 1))
    restarting = sparse.csr_array(total(chance * again)[:, None]) @ sparse.csr_array(np.append(start, 0.0)[None, :])
    order = np.argsort(owner, kind="stable")
    mdp = MDP.from_csr(
        sparse.csr_array(sparse.vstack([going, staying]) + restarting)[order],
        total(chance * reward)[order],
        np.searchsorted(owner[order], np.arange(n + 2)),
        start=np.append(start, 0.0),
        actions=np.append(keys % n_actions, np.zeros(len(stays), np.int64))[order],
        action_names=DIRECTIONS.get(type(inner).__name__) or [str(a) for a in range(n_actions)],
        state_names=(*details.names, "end"),
        labels={name: np.append(mask, False) for name, mask in details.marks.items()},
        ends={name: total(chance * again * mask[target])[order] for name, mask in kinds.items()},
        observations=np.arange(n + 1),
        name=name,
    )
    mdp = mdp.restricted_to(reachable_from_start(mdp))
    seen = mdp.observations
    if details.grid is not None and seen is not None and seen.max() < n:
        mdp = replace(mdp, layout=replace(details.grid, cells=details.grid.cells[seen]))
    return TabularEnvironment(env, mdp, end_rewards, float(end_reward))


def _final(state: np.ndarray, target: np.ndarray, ended: np.ndarray, first: np.ndarray) -> np.ndarray:
    """(n,) the states in which episodes end and none begins or goes on."""
    n, on = len(first), ~ended
    going_on = reachable(sparse.csr_array((np.ones(on.sum()), (state[on], target[on])), shape=(n, n)), first)
    final = np.zeros(n, bool)
    final[target[ended & going_on[state]]] = True
    return final & ~going_on


@dataclass(frozen=True)
class _Details:
    """What is known about the states of an environment beyond their numbers; `ends` are those in which an episode
    that ends there has ended in one way or another."""

    names: tuple[str, ...]
    marks: dict[str, np.ndarray]
    ends: dict[str, np.ndarray]
    grid: Grid | None = None


def _details(inner: Any, n: int) -> _Details:
    kind = type(inner).__name__
    if kind == "FrozenLakeEnv":
        desc = np.array(inner.desc).astype("U1")
        found = _on_grid("hole", desc == "H", goal=desc == "G", start=desc == "S")
        ends = {"goal": (desc == "G").ravel(), "hole": (desc == "H").ravel()}
        return replace(found, marks=found.marks | ends, ends=ends)
    if kind == "CliffWalkingEnv":
        cells = np.arange(n).reshape(inner.shape)
        blocked = np.array(getattr(inner, "_cliff", np.zeros(inner.shape, bool)), bool)
        return _on_grid("cliff", blocked, goal=cells == n - 1, start=cells == inner.start_state_index)
    if kind == "TaxiEnv":
        return _taxi(inner, n)
    return _Details(tuple(f"s{s}" for s in range(n)), {}, {"end": np.ones(n, bool)})


def _on_grid(blocked_means: str, blocked: np.ndarray, *, goal: np.ndarray, start: np.ndarray) -> _Details:
    names = tuple(f"r{r}c{c}" for r in range(goal.shape[0]) for c in range(goal.shape[1]))
    marks = {"goal": goal.ravel(), "start": start.ravel()}
    ends = {"goal": np.ones(goal.size, bool)}
    grid = Grid(np.arange(goal.size), blocked, np.flatnonzero(goal.ravel()), blocked_means)
    return _Details(names, marks, ends, grid)


def _taxi(inner: Any, n: int) -> _Details:
    places = ("red", "green", "yellow", "blue", "taxi")
    decoded = np.array([list(inner.decode(s)) for s in range(n)])
    row, column, passenger, destination = decoded.T
    names = tuple(
        f"taxi r{r}c{c}, passenger {'in' if p == 4 else 'at'} {places[p]}, to {places[d]}" for r, c, p, d in decoded
    )
    return _Details(
        names,
        {"goal": passenger == destination, "carrying": passenger == 4}
        | {f"to {places[d]}": destination == d for d in range(4)}
        | {f"at {places[p]}": (row == r) & (column == c) for p, (r, c) in enumerate(inner.locs)},
        {"goal": np.ones(n, bool)},
    )


def _start(inner: Any, n: int) -> np.ndarray:
    given = getattr(inner, "initial_state_distrib", None)
    if given is None:
        raise SourceError(
            f"{type(inner).__name__} does not tell where episodes begin (`env.unwrapped.initial_state_distrib`); "
            "build the model with MDP.from_transitions and its start"
        )
    start = np.zeros(n)
    start[: len(given)] = given
    return start / start.sum()


def _made(name: str, settings: dict[str, Any], source: str) -> tuple[Any, str]:
    """The environment, without its limit on steps, which is no part of the dynamics; and the id that it was made of."""
    try:
        import gymnasium
        from gymnasium.error import DeprecatedEnv, Error
    except ImportError:
        raise SettingError("Gymnasium environments need Gymnasium: pip install 'manyways[gym]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions and wrappers; what matters is said below
        try:
            try:
                return gymnasium.make(name, max_episode_steps=-1, **settings), name
            except DeprecatedEnv:  # Gymnasium has retired this version: take the one that replaced it
                newest = _newest(gymnasium, name)
                return gymnasium.make(newest, max_episode_steps=-1, **settings), newest
        except (Error, TypeError, ValueError, ImportError, AttributeError) as error:
            raise SourceError(f"{source}: Gymnasium cannot make it: {str(error).splitlines()[0]}") from None


def _newest(gymnasium: Any, name: str) -> str:
    stem = name.rpartition("-v")[0]
    versions = [key for key in gymnasium.registry if key.rpartition("-v")[0] == stem]
    return max(versions, key=lambda key: int(key.rpartition("-v")[2]), default=name)


GYM = FORMATS.add(
    Format(
        "Gymnasium environments with a table of their dynamics",
        read_gym,
        names=f"{PREFIX}.+",
        settings={"terminal": any_text, "end_reward": any_value},
        other_settings=any_value,
        takes=is_environment,
        episodes=True,
        example="gym:FrozenLake-v1",
    )
)
