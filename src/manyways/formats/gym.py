"""Gymnasium environments with tabular dynamics: FrozenLake, CliffWalking, Taxi, and others that have a table `P`.

The table says which transitions end an episode. What happens then is a rule:

- `restart`, for the long-run average: the step that ends an episode leads back to the start distribution, as the
  paper's goal does. No step is added, so that the model's reward per step is the environment's. What kind of end it
  was, the goal or a hole, the model keeps in its `ends`.
- `absorbing`, for discounted reward: it leads to one more state, `end`, which is never left and pays nothing.

Repeated successors are added up, states that nothing leads to are left out. `end_reward=50` adds a reward to every
step that ends an episode. Where no step pays anything and all only cost, as in CliffWalking, the long-run average would
give no reason to get anywhere: there the end of an episode pays as much as the dearest step costs, unless `end_reward`
says otherwise. The model's name tells.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from scipy import sparse

from manyways.arrays import Ints
from manyways.errors import ModelError, SettingError, SourceError
from manyways.layout import Grid
from manyways.mdp import MDP
from manyways.structure import reachable_from_start

PREFIX = "gym:"
RULES = ("restart", "absorbing")
DIRECTIONS = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


@dataclass(frozen=True)
class TabularEnvironment:
    """An environment, the model read from it, which observation (S,) each of the model's states is, and the reward
    that the model adds at the end of an episode."""

    env: Any
    mdp: MDP
    observations: Ints
    end_reward: float = 0.0


def is_environment(source: object) -> bool:
    return hasattr(getattr(source, "unwrapped", None), "P")


def read_gym(source: str, absorbing: bool = False) -> MDP:
    """The model behind `gym:ID` or `gym:ID?keyword=value&...`; `terminal=restart` or `absorbing` overrides the rule."""
    return open_gym(source, absorbing).mdp


def open_gym(source: str, absorbing: bool = False) -> TabularEnvironment:
    """The environment and its model."""
    place, _, query = source.removeprefix(PREFIX).partition("?")
    settings = {key: _value(text) for key, text in parse_qsl(query, keep_blank_values=True)}
    rule = settings.pop("terminal", RULES[absorbing])
    end_reward = settings.pop("end_reward", None)
    if isinstance(end_reward, (str, bool)):
        raise SourceError(f"{source}: end_reward must be a number, found {end_reward!r}")
    if rule not in RULES:
        raise SourceError(f"{source}: terminal must be one of {', '.join(RULES)}, found {rule!r}")
    env, used = _made(place, settings, source)
    options = [part for part in query.split("&") if part and not part.startswith("terminal=")]
    opened = model_of(env, rule, f"{PREFIX}{used}", end_reward)
    if end_reward is None and opened.end_reward:
        options.append(f"end_reward={opened.end_reward:g}")
    name = f"{opened.mdp.name}?" + "&".join([*options, f"terminal={rule}"])
    return replace(opened, mdp=replace(opened.mdp, name=name))


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
    if end_reward is None:
        end_reward = max(0.0, -float(reward.min())) if rule == "restart" and reward.max() <= 0 else 0.0
    reward = reward + end_reward * ended
    n = int(max(state.max(), target.max())) + 1
    start = _start(inner, n)
    keys, choice = np.unique(state * (int(action.max()) + 1) + action, return_inverse=True)
    shape = (len(keys), n + 1)
    matrix = sparse.csr_array((chance * ~ended, (choice, target)), shape=shape)
    ending = sparse.csr_array(np.bincount(choice, weights=chance * ended, minlength=len(keys))[:, None])
    details = _details(inner, n)
    kinds = {name: chance * ended * mask[target] for name, mask in details.ends.items()} if rule == "restart" else {}
    start_row = np.append(start, 0.0) if rule == "restart" else np.eye(1, n + 1, n)[0]
    matrix = sparse.csr_array(matrix + ending @ sparse.csr_array(start_row[None, :]))
    matrix.eliminate_zeros()
    owner = keys // (int(action.max()) + 1)
    # One more row: the end, which stays where it is. Where the rule is to restart, nothing leads to it.
    matrix = sparse.csr_array(sparse.vstack([matrix, sparse.csr_array(np.eye(1, n + 1, n))]))
    names = DIRECTIONS.get(type(inner).__name__) or [str(a) for a in range(int(action.max()) + 1)]
    without = np.setdiff1d(np.arange(n), owner)  # states that are only ever the end of an episode
    mdp = _model(
        matrix,
        np.append(np.bincount(choice, weights=chance * reward, minlength=len(keys)), 0.0),
        {name: np.append(np.bincount(choice, weights, len(keys)), 0.0) for name, weights in kinds.items()},
        np.append(owner, n),
        np.append(keys % (int(action.max()) + 1), 0),
        without,
        np.append(start, 0.0),
        names,
        name,
    )
    mdp = replace(mdp, state_names=(*details.names, "end"), labels=details.labels())
    kept = reachable_from_start(mdp)
    observations = np.flatnonzero(kept)
    mdp = mdp.restricted_to(kept)
    if details.grid is not None:
        there = observations < n
        if there.all():
            mdp = replace(mdp, layout=replace(details.grid, cells=details.grid.cells[observations]))
    return TabularEnvironment(env, mdp, observations, float(end_reward))


@dataclass(frozen=True)
class _Details:
    """What is known about the states of an environment beyond their numbers; `ends` are those in which an episode
    that ends there has ended in one way or another."""

    names: tuple[str, ...]
    marks: dict[str, np.ndarray]
    ends: dict[str, np.ndarray]
    grid: Grid | None = None

    def labels(self) -> dict[str, np.ndarray]:
        return {name: np.append(mask, False) for name, mask in self.marks.items()}


def _details(inner: Any, n: int) -> _Details:
    kind = type(inner).__name__
    if kind == "FrozenLakeEnv":
        desc = np.array(inner.desc).astype("U1")
        found = _on_grid("hole", desc == "H", goal=desc == "G", start=desc == "S")
        return replace(found, ends={"goal": (desc == "G").ravel(), "hole": (desc == "H").ravel()})
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
        {"carrying": passenger == 4}
        | {f"to {places[d]}": destination == d for d in range(4)}
        | {f"at {places[p]}": (row == r) & (column == c) for p, (r, c) in enumerate(inner.locs)},
        {"goal": np.ones(n, bool)},
    )


def _model(
    matrix: Any, reward: np.ndarray, ends: dict[str, np.ndarray], owner: np.ndarray, actions: np.ndarray, without: Ints,
    start: np.ndarray, names: Sequence[str], name: str,
) -> MDP:  # fmt: skip
    """Sort the choices by state; states that have none get one that stays, so that the model is one."""
    n = matrix.shape[1]
    if without.size:
        stay = sparse.csr_array((np.ones(len(without)), (np.arange(len(without)), without)), shape=(len(without), n))
        matrix = sparse.csr_array(sparse.vstack([matrix, stay]))
        owner = np.concatenate([owner, without])
        reward, actions, *chances = (
            np.concatenate([column, np.zeros(len(without), column.dtype)])
            for column in (reward, actions, *ends.values())
        )
        ends = dict(zip(ends, chances, strict=True))
    order = np.argsort(owner, kind="stable")
    return MDP.from_csr(
        matrix[order],
        reward[order],
        np.searchsorted(owner[order], np.arange(n + 1)),
        start=start,
        actions=actions[order],
        action_names=list(names),
        ends={end: chance[order] for end, chance in ends.items()},
        name=name,
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


def _value(text: str) -> Any:
    """true, false, a number, or the text itself."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
