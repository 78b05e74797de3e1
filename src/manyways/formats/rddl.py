"""Models in RDDL, through pyRDDLGym (`pip install 'manyways[rddl]'`).

pyRDDLGym parses and grounds the domain, but can only sample from it. This module evaluates the grounded expressions to
distributions instead, so that the probabilities of the MDP are exact: every random term has finitely many outcomes, and
the states are those that can be reached from the initial one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import reduce
from io import StringIO
from itertools import combinations, product
from pathlib import Path
from typing import Any

from manyways.errors import ModelError, SettingError, SourceError, check_integer
from manyways.files import read_text
from manyways.formats.exploration import explore
from manyways.formats.format import FORMATS, Format, any_text, integer
from manyways.model.mdp import MDP

MOST_ACTIONS = 10_000
LARGEST_TEXT = 64 * 2**20
TERMINAL = "terminal"

Value = bool | int | float
State = tuple[Value, ...]
"""The values of the state fluents."""
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
    """The MDP of a domain file; `instance` is the path of its instance, relative to the domain or the current folder."""
    if instance is None:
        read_text(path, LARGEST_TEXT, "expected RDDL")  # reports a file that cannot be read before the missing setting
        raise SourceError(f"{path} is a domain; name its instance, as in {path.name}?instance=instance.rddl")
    beside = path.parent / instance
    return read_rddl(path, beside if beside.exists() else Path(instance), most_states)


def read_rddl(domain: Path, instance: Path, most_states: int = 100_000) -> MDP:
    """The MDP of an RDDL domain and instance whose fluents are booleans or integers.

    An action is a set of at most `max-nondef-actions` action fluents that the preconditions allow. A state in which the
    termination condition of the domain holds has the label `terminal` and one action, which stays there without reward.
    Horizon and discount are not part of the MDP and are ignored.

    Args:
        domain: the domain file.
        instance: the file with the instance and its non-fluents.
        most_states: raise a `SourceError` if more states can be reached.
    """
    check_integer("most_states", most_states, 1)
    for path in (domain, instance):  # pyRDDLGym reads them by their paths
        read_text(path, LARGEST_TEXT, "expected RDDL")
    with _errors_about(domain, instance):
        model = _Grounded(domain, instance)
        mdp = explore(
            model.initial,
            model.allowed,
            lambda state, action: model.outcomes(state, action, most_states),
            most_states=most_states,
            labels={TERMINAL: model.is_terminal},
            name=instance.stem,
            state_name=model.state_name,
            first_actions=model.actions,
            variables=list(map(_shown, model.fluents)),
        )
    return mdp if mdp.labels[TERMINAL].any() else replace(mdp, labels={})


@contextmanager
def _errors_about(domain: Path, instance: Path) -> Iterator[None]:
    """Put the names of the files before messages, and turn all errors but wrong settings into a `SourceError`."""
    try:
        yield
    except SettingError as error:
        raise SettingError(f"{domain} with {instance}: {error}") from None
    except (SourceError, ModelError) as error:
        raise SourceError(f"{domain} with {instance}: {error}") from None
    except (ZeroDivisionError, OverflowError, ValueError) as error:
        raise SourceError(f"{domain} with {instance}: an expression cannot be evaluated: {error}") from None


def _parsed(domain: Path, instance: Path) -> tuple[Any, list[str]]:
    """pyRDDLGym's grounded model, and the names of its conditional probability functions in an order of evaluation."""
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
        # The parser generator prints messages about its tables.
        with redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            parser = RDDLParser(lexer=None, verbose=False)
            parser.build(debug=False)  # otherwise it leaves an open log file in its own folder
            tree = parser.parse(RDDLReader(str(domain), str(instance)).rddltxt)
            model = RDDLGrounder(tree).ground()
            levels = RDDLLevelAnalysis(model).compute_levels()
    except Exception as error:  # pyRDDLGym has no error class of its own for invalid files
        message = f"the part {error} is missing" if isinstance(error, KeyError) else " ".join(str(error).split())
        raise SourceError(f"pyRDDLGym cannot read it: {message[:300] or type(error).__name__}") from None
    return model, [name for _, names in sorted(levels.items()) for name in names]


@dataclass(frozen=True, eq=False)
class _Action:
    """A set of action fluents; `values` are those of all action fluents."""

    name: str
    values: dict[str, Value]

    def __str__(self) -> str:
        return self.name


class _Grounded:
    """A grounded model: its fluents, its actions, and the outcomes of an action in a state."""

    def __init__(self, domain: Path, instance: Path) -> None:
        model, order = _parsed(domain, instance)
        self.fluents = list(model.state_fluents)
        self.next_names = [model.next_state[name] for name in self.fluents]
        self.ranges = dict(model.variable_ranges)
        self.constants: dict[str, Value] = dict(model.non_fluents)
        self.initial = tuple(self._value(name, value) for name, value in model.state_fluents.items())
        if model.observ_fluents:
            raise SourceError("the domain has observation fluents; expected one with a fully observed state")
        for name in self.fluents:
            if self.ranges[name] not in ("bool", "int"):
                raise SourceError(f"state fluent {_shown(name)} is of type {self.ranges[name]}; expected bool or int")
        self.actions = self._all_actions(dict(model.action_fluents), model.max_allowed_actions)
        self.reward = _Memo("reward", model.reward, self)
        self.plan = self._plan({name: _Memo(name, model.cpfs[name][1], self) for name in order})
        self.preconditions = [_Memo("a precondition", test, self) for test in model.preconditions]
        self.terminations = [_Memo("the termination", test, self) for test in model.terminations]

    def _all_actions(self, fluents: dict[str, Value], most: int) -> list[_Action]:
        for name in fluents:
            if self.ranges[name] != "bool":
                raise SourceError(f"action fluent {_shown(name)} is of type {self.ranges[name]}; expected bool")
        most = min(int(most), len(fluents))
        count = sum(math.comb(len(fluents), k) for k in range(most + 1))
        if count > MOST_ACTIONS:
            raise SourceError(
                f"sets of at most {most} of {len(fluents)} action fluents make {count:,} actions, expected at most "
                f"{MOST_ACTIONS:,}; lower max-nondef-actions in the instance"
            )
        return [
            _Action("+".join(map(_shown, chosen)) or "noop", fluents | {name: not fluents[name] for name in chosen})
            for k in range(most + 1)
            for chosen in combinations(fluents, k)
        ]

    def _plan(self, cpfs: dict[str, _Memo]) -> list[tuple[_Memo, tuple[str, ...]]]:
        """The functions in an order of evaluation, each with the names whose values are still needed after it.

        Every intermediate fluent is evaluated right before its first use and dropped after its last. For n machines that
        each fail in two steps, there are then at most 2^n combinations of values at any time, not 4^n.
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
        """The value in the type of its fluent; 2.0 becomes the integer 2."""
        kind = self.ranges.get(name)
        if kind == "bool":
            return bool(value)
        if kind == "int":
            if value != int(value):
                raise SourceError(f"{_shown(name)} must be an integer, found the value {value}")
            return int(value)
        return value

    def state_name(self, state: State) -> str:
        values = zip(self.fluents, state, strict=True)
        return ",".join(f"{_shown(name)}={str(value).lower()}" for name, value in values)

    def is_terminal(self, state: State) -> bool:
        return any(self._hold(self.terminations, self._values(state)))

    def allowed(self, state: State) -> list[_Action]:
        """The actions whose preconditions hold; in a terminal state only the first one."""
        if self.is_terminal(state):
            return self.actions[:1]
        values = self._values(state)
        found = [action for action in self.actions if all(self._hold(self.preconditions, values | action.values))]
        if not found:
            raise SourceError(f"no action is allowed in state {self.state_name(state)}; change the preconditions")
        return found

    def outcomes(self, state: State, action: _Action, most: int) -> Iterator[tuple[float, State, float]]:
        """(probability, next state, expected reward) for each combination of values that the reward can depend on."""
        if self.is_terminal(state):
            yield 1.0, state, 0.0
            return
        values = self._values(state) | action.values  # one dictionary for all worlds, because copies are slow
        worlds: dict[tuple[Value, ...], float] = {(): 1.0}
        names: tuple[str, ...] = ()
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
        for world, weight in worlds.items():
            values.update(zip(names, world, strict=True))
            reward = sum(value * p for value, p in self.reward(values).items())
            yield weight, tuple(map(values.__getitem__, self.next_names)), reward

    def _values(self, state: State) -> dict[str, Value]:
        return dict(zip(self.fluents, state, strict=True))

    def _hold(self, tests: list[_Memo], known: Mapping[str, Value]) -> Iterator[bool]:
        """Whether each test holds; a test that depends on chance is an error."""
        for test in tests:
            outcomes = test(known)
            if len(outcomes) > 1:
                raise SourceError(f"{test.name} depends on chance")
            yield bool(next(iter(outcomes)))


class _Memo:
    """The distribution of an expression, stored by the values of the fluents in it, of which there are usually few."""

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
            raise SourceError(f"{_shown(self.name)} depends on {error}, which is not known before the action") from None
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
    """The distribution of an expression. All random terms in it are independent."""
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
        raise SourceError(f"the distribution {name} is not supported; expected Bernoulli, KronDelta or DiracDelta")
    rule = (OPERATORS if kind in ("arithmetic", "boolean", "relational") else FUNCTIONS).get(name)
    if rule is None:
        raise SourceError(f"{kind} {name!r} is not supported; supported functions are {', '.join(FUNCTIONS)}")
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


FORMATS.add(
    Format(
        "RDDL domains, through pyRDDLGym",
        read_domain,
        endings=(".rddl",),
        settings={"instance": any_text, "most_states": integer},
        example="domain.rddl?instance=instance.rddl",
    )
)
