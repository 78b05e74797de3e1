"""Gymnasium environments with tabular dynamics: FrozenLake, CliffWalking, Taxi, and others with a table `P`.

The table marks the transitions that end an episode. One of two rules says what happens then:

- `restart`, for the long-run average: the step that ends an episode leads back to the start distribution, like the goal
  of the paper. No step is added, so the reward per step of the model is that of the environment. The kind of end, the
  goal or a hole, is kept in the model's `ends`.
- `absorbing`, for discounted reward: a state in which an episode ends is never left and pays nothing. If episodes can
  also continue in that state, the end is an additional state, `end`.

Repeated successors are added up, and states that cannot be reached are removed. `end_reward=50` adds a reward to every
step that ends an episode at the goal, or anywhere if the goal is unknown: if no step of an environment has a positive
reward, as in CliffWalking, the average per step gives no reason to reach the goal. Plans are judged per episode by default
(`Episodic`), for which nothing needs to be added.

`mdp.name` is the id of the environment. `mdp.source` contains all settings, `gym:FrozenLake-v1?map_name=8x8&terminal=restart`,
and reading it again gives the same model.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any
from urllib.parse import urlencode

import numpy as np
from scipy import sparse

from manyways.errors import ModelError, SettingError, SourceError
from manyways.formats.format import FORMATS, Format, any_value, number
from manyways.model.graph import reachable, reachable_from_start
from manyways.model.layout import Grid
from manyways.model.mdp import MDP
from manyways.model.variables import fields_of
from manyways.types import Bools, Floats, Ints

PREFIX = "gym:"
RULES = ("restart", "absorbing")
RESETS = 1000
"""How often an environment without a start distribution is reset to find out where it starts."""
ACTION_NAMES = {
    "FrozenLakeEnv": ("left", "down", "right", "up"),
    "CliffWalkingEnv": ("up", "right", "down", "left"),
    "TaxiEnv": ("south", "north", "east", "west", "pick up", "drop off"),
}


@dataclass(frozen=True)
class TabularEnvironment:
    """An environment and its model.

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
    """Whether an object is an environment, with a table of its dynamics or without."""
    inner = getattr(source, "unwrapped", None)
    return hasattr(inner, "P") or all(hasattr(inner, name) for name in ("reset", "step", "action_space"))


def rule(text: str) -> str:
    """One of restart, absorbing."""
    if text not in RULES:
        raise ValueError
    return text


def read_gym(place: Any, absorbing: bool = False, **settings: Any) -> MDP:
    """The model of an environment object, or of the environment named `gym:ID`; see `open_gym`."""
    if not isinstance(place, str):
        return model_of(place, RULES[absorbing]).mdp
    return open_gym(place, absorbing, **settings).mdp


def open_gym(
    place: str, absorbing: bool = False, terminal: str | None = None, end_reward: float = 0.0, **keywords: Any
) -> TabularEnvironment:
    """The environment named `gym:ID`, and its model.

    Args:
        place: `gym:` and the id of an environment.
        absorbing: whether the rule for the end of an episode is "absorbing" instead of "restart".
        terminal: the name of the rule; takes precedence over `absorbing`.
        end_reward: added to every step that ends an episode at the goal; see the head of this module.
        keywords: for `gymnasium.make`.
    """
    rule = RULES[absorbing] if terminal is None else terminal
    env, used, limit = _make(place.removeprefix(PREFIX), keywords, place)
    opened = model_of(env, rule, used, end_reward, limit)
    given = keywords | ({} if end_reward == 0 else {"end_reward": end_reward})
    query = urlencode({name: _setting_text(value) for name, value in (given | {"terminal": rule}).items()})
    return replace(opened, mdp=opened.mdp.read_from(f"{PREFIX}{used}?{query}"))


def _setting_text(value: Any) -> str:
    """A setting as it is written in a source."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def model_of(
    env: Any,
    rule: str = "restart",
    name: str | None = None,
    end_reward: float = 0.0,
    time_limit: int | None = None,
) -> TabularEnvironment:
    """The model of an environment whose `unwrapped.P[state][action]` lists (probability, next state, reward, ended).

    Args:
        env: the environment.
        rule: one of `RULES`.
        name: of the model; by default the id of the environment, or its class if it has no id.
        end_reward: as for `open_gym`.
        time_limit: the number of steps after which an episode ends; by default that of the environment.
    """
    inner, spec = env.unwrapped, getattr(env, "spec", None)
    name = str(name or getattr(spec, "id", None) or type(inner).__name__)
    if not hasattr(inner, "P"):
        raise SourceError(
            f"{name} has no table of its dynamics (`env.unwrapped.P`), so it cannot be read as a model; if its states can be "
            "counted, describe it by its start and two functions: mw.explore(start, actions, outcomes)"
        )
    table = _Table.of(inner, name)
    start, details = _start(env, table.n), _details(inner, table.n)
    end_rewards = end_reward * details.ends.get("goal", np.ones(table.n))
    table = replace(table, reward=table.reward + end_rewards[table.target] * table.ended)
    if rule == "absorbing":
        table, details = table.absorbing(start > 0), replace(details, ends={})
    action_names = ACTION_NAMES.get(type(inner).__name__)
    mdp = _model(table, start, details, action_names, name)
    limit = time_limit or getattr(spec, "max_episode_steps", None)
    if rule == "restart" and limit is not None and limit > 0:
        mdp = replace(mdp, time_limit=int(limit))
    return TabularEnvironment(env, mdp, end_rewards, float(end_reward))


# ---- the table of dynamics --------------------------------------------------------------------


@dataclass(frozen=True)
class _Table:
    """The outcomes in an environment's table, one per row.

    Attributes:
        n: the number of observations.
        state, action: (rows,) the choice that an outcome belongs to.
        chance, target, reward: (rows,) the probability, the next state and the reward.
        ended: (rows,) whether the outcome ends the episode.
    """

    n: int
    state: Ints
    action: Ints
    chance: Floats
    target: Ints
    reward: Floats
    ended: Bools

    @classmethod
    def of(cls, inner: Any, name: str) -> _Table:
        try:
            rows = [
                (index(s), index(a), float(p), index(t), float(r), bool(ended))
                for s, actions in inner.P.items()
                for a, outcomes in actions.items()
                for p, t, r, ended in outcomes
            ]
        except (AttributeError, TypeError, ValueError) as error:
            raise SourceError(
                f"{name}: its table of dynamics must have the form P[state][action] = [(probability, next state, reward, ended), "
                f"...], where states and actions are integers, as in Gymnasium ({error}); for other states, describe it by its "
                "start and two functions: mw.explore(start, actions, outcomes)"
            ) from None
        if not rows:
            raise ModelError(f"{name} has an empty table of dynamics")
        state, action, chance, target, reward, ended = (np.array(column) for column in zip(*rows, strict=True))
        return cls(int(max(state.max(), target.max())) + 1, state, action, chance, target, reward, ended)

    def absorbing(self, first: Bools) -> _Table:
        """The table with final states instead of ends of episodes; state n is the end where episodes can also continue.

        `first` (n,) marks the states in which episodes begin.
        """
        continues = ~self.ended
        moves = sparse.csr_array(
            (np.ones(continues.sum()), (self.state[continues], self.target[continues])), shape=(self.n, self.n)
        )
        inside = reachable(moves, first)
        final = np.zeros(self.n, bool)
        final[self.target[self.ended & inside[self.state]]] = True
        final &= ~inside
        return replace(
            self,
            target=np.where(self.ended & ~final[self.target], self.n, self.target),
            chance=np.where(final[self.state], 0.0, self.chance),  # outcomes in final states never happen
            ended=np.zeros(len(self.ended), bool),
        )


def _model(table: _Table, start: Floats, details: _Details, action_names: tuple[str, ...] | None, name: str) -> MDP:
    """The model of a table. States without outcomes, and the additional state n, stay where they are."""
    n, n_actions = table.n, int(table.action.max()) + 1
    taken = table.chance > 0
    keys, choice = np.unique((table.state * n_actions + table.action)[taken], return_inverse=True)
    stays = np.setdiff1d(np.arange(n + 1), keys // n_actions)
    owner = np.append(keys // n_actions, stays)
    order = np.argsort(owner, kind="stable")

    def total(amount: np.ndarray) -> np.ndarray:
        """(N,) sums by choice; 0 for the choices that stay, which come last."""
        return np.append(np.bincount(choice, amount[taken], minlength=len(keys)), np.zeros(len(stays)))

    least, most = np.full(len(keys), np.inf), np.full(len(keys), -np.inf)
    np.minimum.at(least, choice, table.reward[taken])
    np.maximum.at(most, choice, table.reward[taken])
    moving = sparse.csr_array(
        ((table.chance * ~table.ended)[taken], (choice, table.target[taken])), shape=(len(keys), n + 1)
    )
    staying = sparse.csr_array((np.ones(len(stays)), (np.arange(len(stays)), stays)), shape=(len(stays), n + 1))
    ending = sparse.csr_array(total(table.chance * table.ended)[:, None])
    restarting = ending @ sparse.csr_array(np.append(start, 0.0)[None, :])
    mdp = MDP.from_csr(
        sparse.csr_array(sparse.vstack([moving, staying]) + restarting)[order],
        total(table.chance * table.reward)[order],
        np.searchsorted(owner[order], np.arange(n + 2)),
        start=np.append(start, 0.0),
        actions=np.append(keys % n_actions, np.zeros(len(stays), np.int64))[order],
        action_names=action_names or [str(a) for a in range(n_actions)],
        state_names=(*details.names, "end"),
        labels={label: np.append(mask, False) for label, mask in details.marks.items()},
        ends={end: total(table.chance * table.ended * mask[table.target])[order] for end, mask in details.ends.items()},
        observations=np.arange(n + 1),
        averaged=bool((least < most).any()),
        name=name,
    )
    mdp = mdp.restricted_to(reachable_from_start(mdp))
    seen = np.arange(0) if mdp.observations is None else mdp.observations
    if seen.max() < n:
        variables = {name: values[seen] for name, values in details.variables.items()}
        layout = None if details.grid is None else details.grid.of(seen)
        return replace(mdp, layout=layout, variables=variables)
    variables = {  # the additional state has no values
        name: np.append(values, "" if values.dtype.kind == "U" else np.nan)[seen]
        for name, values in details.variables.items()
    }
    return replace(mdp, variables=variables)


def _start(env: Any, n: int) -> Floats:
    """The environment's own start distribution or, if it has none, how often it starts in each state."""
    given = getattr(env.unwrapped, "initial_state_distrib", None)
    start = np.zeros(n)
    if given is not None:
        start[: len(given)] = given
        return start / start.sum()
    for seed in range(RESETS):
        first = env.reset(seed=seed)[0]
        if not isinstance(first, (int, np.integer)) or not 0 <= first < n:
            raise SourceError(
                f"{type(env.unwrapped).__name__} starts with the observation {first!r:.60}, which is not the number of a state "
                "of its table; describe it by its start and two functions: mw.explore(start, actions, outcomes), whose plans act "
                "on such observations"
            )
        start[first] += 1 / RESETS
    return start


# ---- names, labels and ends of known environments ---------------------------------------------


@dataclass(frozen=True)
class _Details:
    """What is known about the states of an environment.

    Attributes:
        names: (n,) of the states.
        marks: the labels, each an (n,) mask.
        ends: the kinds of ends, each an (n,) mask of the states in which an ended episode is of that kind.
        grid: where to draw the states.
        variables: what the states are made of, each (n,).
    """

    names: tuple[str, ...]
    marks: dict[str, np.ndarray]
    ends: dict[str, np.ndarray]
    grid: Grid | None = None
    variables: dict[str, np.ndarray] = field(default_factory=dict)


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
    names = tuple(f"s{s}" for s in range(n))
    return _Details(names, {}, {"end": np.ones(n, bool)}, variables=_decoded(inner, n))


def _decoded(inner: Any, n: int) -> dict[str, np.ndarray]:
    """The parts of an observation, if the environment has a method `decode` that gives them."""
    if not callable(getattr(inner, "decode", None)):
        return {}
    try:
        return fields_of([tuple(inner.decode(s)) for s in range(n)])
    except Exception:  # the method of an unknown environment may be about something else
        return {}


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
        variables={
            "taxi row": row,
            "taxi column": column,
            "passenger": np.array(places)[passenger],
            "destination": np.array(places)[destination],
        },
    )


# ---- making an environment --------------------------------------------------------------------


def _make(name: str, keywords: dict[str, Any], source: str) -> tuple[Any, str, int | None]:
    """The environment without its limit on steps, which is not part of the dynamics, the id that was used, and the limit."""
    try:
        import gymnasium
        from gymnasium.error import DeprecatedEnv
    except ImportError:
        raise SettingError("Gymnasium environments need Gymnasium: pip install 'manyways[gym]'") from None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about versions and wrappers
        try:
            try:
                env = gymnasium.make(name, max_episode_steps=-1, **keywords)
            except DeprecatedEnv:  # Gymnasium has removed this version, so take the newest one
                name = _newest(gymnasium, name)
                env = gymnasium.make(name, max_episode_steps=-1, **keywords)
            return env, name, gymnasium.spec(name.rpartition(":")[2]).max_episode_steps  # "module:ID"
        except Exception as error:  # environments raise any kind of error for keywords that they do not accept
            raise SourceError(f"{source}: Gymnasium cannot make it: {_reason(error, keywords)}") from None


def _reason(error: Exception, keywords: dict[str, Any]) -> str:
    """Why an environment cannot be made, in one line."""
    if isinstance(error, KeyError):
        given = next((name for name, value in keywords.items() if value == error.args[0]), None)
        if given is not None:
            known = f"; the maps are {', '.join(_map_names())}" if given == "map_name" else ""
            return f"it does not accept {given}={error.args[0]}{known}"
    return (f"{error}".strip() or type(error).__name__).splitlines()[0]


def _map_names() -> list[str]:
    from gymnasium.envs.toy_text.frozen_lake import MAPS

    return list(MAPS)


def _newest(gymnasium: Any, name: str) -> str:
    stem = name.rpartition("-v")[0]
    versions = [key for key in gymnasium.registry if key.rpartition("-v")[0] == stem]
    return max(versions, key=lambda key: int(key.rpartition("-v")[2]), default=name)


FORMATS.add(
    Format(
        "Gymnasium environments with a table of their dynamics",
        read_gym,
        names=f"{PREFIX}.+",
        settings={"terminal": rule, "end_reward": number},
        other_settings=any_value,
        takes=is_environment,
        episodes=True,
        example="gym:FrozenLake-v1",
    )
)
