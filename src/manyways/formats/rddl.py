"""Models in RDDL, through pyRDDLGym (`pip install 'manyways[rddl]'`).

pyRDDLGym parses and grounds the domain, but only samples from it. Here its grounded expressions are
evaluated to distributions instead, so that the probabilities of the MDP are exact: every random term stands
for its finitely many outcomes, and the states are those that can be reached from the initial one.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import reduce
from io import StringIO
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import SettingError, SourceError, check_integer
from manyways.formats.format import FORMATS, Format, any_text, integer
from manyways.model.mdp import MDP

MOST_ACTIONS = 10_000

Value = bool | int | float
Outcomes = dict[Value, float]
"""The possible values of an expression, each with its probability."""

OPERATORS: dict[str, Callable[..., Value]] = {
    "+": lambda *terms: sum(terms),
    "*": lambda *factors: math.prod(factors),
    "-": lambda *terms: -terms[0] if len(terms) == 1 else reduce(operator.sub, terms),
    "/": operator.truediv,
    "^": lambda *terms: all(terms),
    "&": lambda *terms: all(terms),
    "|": lambda *terms: any(terms),
    "~": lambda *terms: not terms[0] if len(terms) == 1 else bool(terms[0]) != bool(terms[1]),
    "=>": lambda a, b: not a or bool(b),
    "<=>": lambda a, b: bool(a) == bool(b),
    "==": operator.eq,
    "~=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "sgn": lambda x: (x > 0) - (x < 0),
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "exp": math.exp,
    "ln": math.log,
    "sqrt": math.sqrt,
    "div": operator.floordiv,
    "mod": operator.mod,
    "fmod": operator.mod,
    "min": min,
    "max": max,
    "pow": operator.pow,
    "log": math.log,
}


def read_domain(path: Path, instance: str | None = None, most_states: int = 100_000) -> MDP:
    """The MDP of a domain file; `instance` is the path of its instance, sought beside it first."""
    if instance is None:
        raise SourceError(f"{path} is a domain; name its instance, as in {path}?instance=instance.rddl")
    beside = path.parent / instance
    return read_rddl(path, beside if beside.exists() else Path(instance), most_states)


def read_rddl(domain: Path, instance: Path, most_states: int = 100_000) -> MDP:
    """The MDP of an RDDL domain and instance whose fluents are boolean or whole numbers.

    An action is every set of at most `max-nondef-actions` action fluents that the preconditions allow.
    Where the domain's termination holds, the state is labelled `terminal` and stays as it is, without reward.
    Horizon and discount are not part of an MDP here, and ignored.
    """
    check_integer("most_states", most_states, 1)
    for path in (domain, instance):
        if not path.is_file():
            raise SourceError(f"cannot read {path}: there is no such file")
    with _errors_about(domain, instance):
        return _explore(_Grounded(domain, instance), most_states, instance.stem)


@contextmanager
def _errors_about(domain: Path, instance: Path) -> Iterator[None]:
    try:
        yield
    except (SourceError, SettingError) as error:
        raise type(error)(f"{domain} with {instance}: {error}") from None
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise SourceError(f"{domain} with {instance}: an expression cannot be evaluated: {error}") from None


def _parsed(domain: Path, instance: Path) -> tuple[Any, list[str]]:
    """pyRDDLGym's grounded model, and its conditional probability functions in an order of evaluation."""
    try:
        from pyRDDLGym.core.compiler.levels import RDDLLevelAnalysis  # pyright: ignore[reportMissingImports]
        from pyRDDLGym.core.grounder import RDDLGrounder  # pyright: ignore[reportMissingImports]
        from pyRDDLGym.core.parser.parser import RDDLParser  # pyright: ignore[reportMissingImports]
        from pyRDDLGym.core.parser.reader import RDDLReader  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise SettingError(
            "reading RDDL needs pyRDDLGym, which is not installed: pip install 'manyways[rddl]'"
        ) from None
    try:
        # The parser generator talks about its tables.
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            parser = RDDLParser(lexer=None, verbose=False)
            parser.build(debug=False)  # or it would leave a log beside its own code, and open
            tree = parser.parse(RDDLReader(str(domain), str(instance)).rddltxt)
            model = RDDLGrounder(tree).ground()
            levels = RDDLLevelAnalysis(model).compute_levels()
    except Exception as error:  # pyRDDLGym raises whatever its parts run into
        said = f"the part {error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise SourceError(f"pyRDDLGym cannot read it: {said[:300] or type(error).__name__}") from None
    return model, [name for _, names in sorted(levels.items()) for name in names]


class _Grounded:
    """A grounded model: its fluents, its actions, and what follows from a state and an action."""

    def __init__(self, domain: Path, instance: Path) -> None:
        model, order = _parsed(domain, instance)
        self.fluents = list(model.state_fluents)
        self.next_names = [model.next_state[name] for name in self.fluents]
        self.ranges = dict(model.variable_ranges)
        self.constants: dict[str, Value] = dict(model.non_fluents)
        self.initial = tuple(self._value(name, value) for name, value in model.state_fluents.items())
        if model.observ_fluents:
            raise SourceError("the domain has observation fluents; expected one whose state is seen")
        for name in self.fluents:
            if self.ranges[name] not in ("bool", "int"):
                raise SourceError(f"state fluent {_shown(name)} is of type {self.ranges[name]}; expected bool or int")
        self.actions = self._all_actions(dict(model.action_fluents), model.max_allowed_actions)
        self.reward = _Memo("reward", model.reward, self)
        self.plan = self._plan({name: _Memo(name, model.cpfs[name][1], self) for name in order})
        self.preconditions = [_Memo("a precondition", test, self) for test in model.preconditions]
        self.terminations = [_Memo("the termination", test, self) for test in model.terminations]

    def _all_actions(self, fluents: dict[str, Value], most: int) -> list[tuple[str, dict[str, Value]]]:
        for name in fluents:
            if self.ranges[name] != "bool":
                raise SourceError(f"action fluent {_shown(name)} is of type {self.ranges[name]}; expected bool")
        most = min(int(most), len(fluents))
        count = sum(math.comb(len(fluents), k) for k in range(most + 1))
        if count > MOST_ACTIONS:
            raise SourceError(
                f"{most} of {len(fluents)} action fluents at once make {count:,} actions, expected at most "
                f"{MOST_ACTIONS:,}; lower max-nondef-actions in the instance"
            )
        return [
            ("+".join(map(_shown, chosen)) or "noop", fluents | {name: not fluents[name] for name in chosen})
            for k in range(most + 1)
            for chosen in combinations(fluents, k)
        ]

    def _plan(self, cpfs: dict[str, _Memo]) -> list[tuple[_Memo, tuple[str, ...]]]:
        """The functions in an order of evaluation, each with the names whose values are still needed after it.

        Every intermediate fluent comes right before its first use and is forgotten after its last: of n machines
        that each fail in two steps, the outcomes are then 2^n at most, not 4^n.
        """
        order: dict[str, _Memo] = {}

        def visit(name: str) -> None:
            if name in cpfs and name not in order:
                for parent in cpfs[name].parents:
                    visit(parent)
                order[name] = cpfs[name]

        for name in (*self.next_names, *self.reward.parents):
            visit(name)
        needed = [set(self.next_names) | set(self.reward.parents)]
        for cpf in reversed(order.values()):
            needed.append(needed[-1] | set(cpf.parents))
        done = list(order)
        return [
            (cpf, tuple(name for name in done[: i + 1] if name in needed[len(done) - 1 - i]))
            for i, cpf in enumerate(order.values())
        ]

    def _value(self, name: str, value: Value) -> Value:
        """The value as its fluent's type has it; 2.0 is the whole number 2."""
        kind = self.ranges.get(name)
        if kind == "bool":
            return bool(value)
        if kind == "int":
            if value != int(value):
                raise SourceError(f"{_shown(name)} is a whole number, found the value {value}")
            return int(value)
        return value

    def values(self, state: tuple[Value, ...]) -> dict[str, Value]:
        return dict(zip(self.fluents, state, strict=True))

    def holds(self, tests: list[_Memo], known: Mapping[str, Value]) -> Iterator[bool]:
        """Whether each test holds; one that depends on chance is an error."""
        for test in tests:
            outcomes = test(known)
            if len(outcomes) > 1:
                raise SourceError(f"{test.name} depends on chance")
            yield bool(next(iter(outcomes)))

    def step(self, known: dict[str, Value], most: int) -> tuple[dict[tuple[Value, ...], float], float]:
        """The distribution of the next state and the expected reward, from the values of state and action."""
        worlds: dict[tuple[Value, ...], float] = {(): 1.0}
        names: tuple[str, ...] = ()
        values = dict(known)  # one for all worlds, each of which overwrites what the last one put in: copies are slow
        for cpf, kept in self.plan:
            after: dict[tuple[Value, ...], float] = {}
            for world, weight in worlds.items():
                values.update(zip(names, world, strict=True))
                for value, probability in cpf(values).items():
                    values[cpf.name] = self._value(cpf.name, value)
                    key = tuple(map(values.__getitem__, kept))
                    after[key] = after.get(key, 0.0) + weight * probability
            worlds, names = after, kept
            if len(worlds) > most:
                raise SourceError(f"one action has more than {most:,} outcomes; the model is too large to enumerate")
        successors: dict[tuple[Value, ...], float] = {}
        reward = 0.0
        for world, weight in worlds.items():
            values.update(zip(names, world, strict=True))
            state = tuple(map(values.__getitem__, self.next_names))
            successors[state] = successors.get(state, 0.0) + weight
            reward += weight * sum(value * p for value, p in self.reward(values).items())
        return successors, reward


class _Memo:
    """An expression's distribution, remembered by the values of the fluents in it, which are usually few."""

    def __init__(self, name: str, expression: Any, model: _Grounded) -> None:
        self.name = name
        self.expression = expression
        self.parents = sorted(_names(expression) - set(model.constants))
        self.constants = model.constants
        self.known: dict[tuple[Value, ...], Outcomes] = {}

    def __call__(self, values: Mapping[str, Value]) -> Outcomes:
        try:
            key = tuple(map(values.__getitem__, self.parents))
        except KeyError as error:
            raise SourceError(f"{_shown(self.name)} needs {error}, which is not known before the action") from None
        found = self.known.get(key)
        if found is None:
            try:
                found = _outcomes(self.expression, {**self.constants, **values})
            except SourceError as error:
                raise SourceError(f"in {_shown(self.name)}: {error}") from None
            self.known[key] = found
        return found


def _names(expression: Any) -> set[str]:
    kind, name = expression.etype
    if kind == "constant":
        return set()
    if kind == "pvar":
        return {name}
    return set().union(*(_names(part) for part in expression.args))


def _outcomes(expression: Any, values: Mapping[str, Value]) -> Outcomes:
    """The distribution of an expression. Random terms in different places are independent of each other."""
    kind, name = expression.etype
    if kind == "constant":
        return {expression.args: 1.0}
    if kind == "pvar":
        return {values[name]: 1.0}
    if kind == "control" and name == "if":
        condition, then, otherwise = expression.args
        return _mixed((_outcomes(then if c else otherwise, values), p) for c, p in _outcomes(condition, values).items())
    parts = [_outcomes(part, values).items() for part in expression.args]
    if kind == "randomvar":
        if name in ("KronDelta", "DiracDelta"):
            return dict(parts[0])
        if name == "Bernoulli":
            return _mixed((_bernoulli(chance), p) for chance, p in parts[0])
        raise SourceError(f"{name} has no finite distribution known here; expected Bernoulli or KronDelta")
    rule = (OPERATORS if kind in ("arithmetic", "boolean", "relational") else FUNCTIONS).get(name)
    if rule is None:
        raise SourceError(f"{kind} {name!r} is not supported; known functions are {', '.join(FUNCTIONS)}")
    return _mixed(
        ({rule(*(value for value, _ in chosen)): 1.0}, math.prod(p for _, p in chosen)) for chosen in product(*parts)
    )


def _bernoulli(chance: Value) -> Outcomes:
    if not 0 <= chance <= 1:
        raise SourceError(f"Bernoulli needs a probability from 0 to 1, found {chance}")
    return {value: p for value, p in ((True, float(chance)), (False, 1 - float(chance))) if p > 0}


def _mixed(parts: Any) -> Outcomes:
    total: Outcomes = {}
    for outcomes, weight in parts:
        for value, p in outcomes.items():
            total[value] = total.get(value, 0.0) + weight * p
    return total


def _shown(name: str) -> str:
    """`at___r1__c2'` as RDDL writes it: `at(r1,c2)'`."""
    base, separator, objects = name.rstrip("'").partition("___")
    return base + (f"({objects.replace('__', ',')})" if separator else "") + "'" * name.endswith("'")


def _explore(model: _Grounded, most_states: int, name: str) -> MDP:
    """Breadth first from the initial state over all allowed actions."""
    number = {model.initial: 0}
    waiting = deque([model.initial])
    first, actions, rewards, terminal = [0], [], [], []
    begin, targets, weights = [0], [], []
    while waiting:
        state = waiting.popleft()
        known = model.values(state)
        terminal.append(any(model.holds(model.terminations, known)))
        for index, (_, action) in enumerate(model.actions[:1] if terminal[-1] else model.actions):
            values = known | action
            if terminal[-1]:
                successors, reward = {state: 1.0}, 0.0
            elif all(model.holds(model.preconditions, values)):
                successors, reward = model.step(values, most_states)
            else:
                continue
            for successor, probability in successors.items():
                if successor not in number:
                    number[successor] = len(number)
                    waiting.append(successor)
                targets.append(number[successor])
                weights.append(probability)
            begin.append(len(targets))
            actions.append(index)
            rewards.append(reward)
        if len(actions) == first[-1]:
            raise SourceError(f"no action is allowed in state {_state_name(model, state)}; mend the preconditions")
        if len(number) > most_states:
            raise SourceError(
                f"the model is too large to enumerate: {len(number):,} states are reachable from the first "
                f"{len(first):,} alone, expected at most {most_states:,}; raise most_states, or take a smaller instance"
            )
        first.append(len(actions))
    return MDP.from_csr(
        sparse.csr_array((weights, targets, begin), shape=(len(actions), len(number))),
        rewards,
        first,
        actions=actions,
        action_names=[action for action, _ in model.actions],
        state_names=[_state_name(model, state) for state in number],
        labels={"terminal": np.array(terminal)} if any(terminal) else {},
        name=name,
    )


def _state_name(model: _Grounded, state: tuple[Value, ...]) -> str:
    return ",".join(f"{_shown(name)}={str(value).lower()}" for name, value in zip(model.fluents, state, strict=True))


FORMATS.add(
    Format(
        "RDDL domains, through pyRDDLGym",
        read_domain,
        endings=(".rddl",),
        settings={"instance": any_text, "most_states": integer},
        example="domain.rddl?instance=instance.rddl",
    )
)
