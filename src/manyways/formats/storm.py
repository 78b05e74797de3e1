"""Models in the languages of PRISM and JANI, through the model checker Storm (`pip install 'manyways[storm]'`).

Storm parses the file and explores its states. It hands over the transitions as a UMB archive, a tar of plain binary
arrays. Measured on 600,000 transitions, reading the matrix entry by entry from Python took 3 times as long, and writing
DRN text alone more than twice as long.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy import sparse

from manyways.errors import SettingError, SourceError
from manyways.files import read_text
from manyways.formats.format import FORMATS, Format, any_text
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse

PRISM, JANI = (".prism", ".nm", ".pm"), (".jani",)
LARGEST_PROGRAM = 256 * 2**20
OUT_OF_BOUNDS = "out_of_bounds"
OWN_LABELS = ("init", "deadlock", OUT_OF_BOUNDS)
"""Labels that Storm adds by itself: the first marks the start, the others are not kept."""


def read_storm(path: Path, const: str = "", reward: str | None = None) -> MDP:
    """The MDP or Markov chain in a `.prism`, `.nm`, `.pm` or `.jani` file.

    The reward of a choice is its state's reward plus its own. States are named by the values of their variables,
    choices by their labels. The start is uniform over Storm's initial states.

    Args:
        path: the file; its ending determines the language.
        const: values of the constants that the model leaves undefined, as in `N=3,p=0.5`.
        reward: the reward structure to use; not needed if there is at most one. Without any, all rewards are zero.
    """
    # stormpy reads the file by its path and fails unclearly on files that are not text, and pipes would block it.
    read_text(path, LARGEST_PROGRAM, "expected a model in the language of PRISM or JANI")
    stormpy = _stormpy()
    with _quiet(stormpy), _errors_about(path):
        model, hidden = _build(stormpy, path, const)
        kind = str(model.model_type).rpartition(".")[2]
        if kind not in ("MDP", "DTMC"):
            raise SourceError(f"{path} is a model of type {kind}, expected an MDP or a DTMC")
        first = _first_choice(model, kind)
        transitions, variables = _transitions(stormpy, model, first)
        actions, action_names = _actions(model, first)
        columns = _state_variables(model, [name for name in variables if name not in hidden])
        return MDP.from_csr(
            transitions,
            _reward(model, first, reward, path),
            first,
            start=_start(model, path),
            actions=actions,
            action_names=action_names,
            state_names=_state_names(columns),
            variables=columns,
            labels={
                name: _mask(model.labeling.get_states(name), model.nr_states)
                for name in sorted(model.labeling.get_labels())
                if name not in OWN_LABELS
            },
            name=path.stem,
        )


def _stormpy() -> Any:
    try:
        import stormpy  # pyright: ignore[reportMissingImports]
        import stormpy.io  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise SettingError(
            "reading models in PRISM's language or JANI needs stormpy, which is not installed: pip install 'manyways[storm]'"
        ) from None
    if not hasattr(stormpy.io, "export_to_umb"):
        raise SettingError(
            "reading models in PRISM's language or JANI needs stormpy 2.0 or later, an earlier one is installed: "
            "pip install 'manyways[storm]'"
        )
    return stormpy


@contextmanager
def _quiet(stormpy: Any) -> Iterator[None]:
    """Keep Storm from also printing the errors that it raises."""
    log = stormpy.developer
    before = log.get_log_level()
    log.set_log_level(log.LogLevel.OFF)
    try:
        yield
    finally:
        log.set_log_level(before)


@contextmanager
def _errors_about(path: Path) -> Iterator[None]:
    """Turn exceptions of Storm into a `SourceError` with one line."""
    try:
        yield
    except (SourceError, SettingError):
        raise
    except RuntimeError as error:
        _, _, message = str(error).rpartition("Exception: ")
        raise SourceError(f"{path}: Storm cannot read it: {' '.join(message.split())}") from None


def _example(kind: Any) -> str:
    """A value for a constant of a type of Storm's."""
    return "true" if kind.is_boolean else "0.5" if kind.is_rational else "3"


def _build(stormpy: Any, path: Path, constants: str) -> tuple[Any, set[str]]:
    """The model of a PRISM or JANI file, and the variables that are not shown in the names of states."""
    hidden: set[str] = set()
    if path.suffix.lower() in JANI:
        program, _ = stormpy.parse_jani_model(path)
        # Transient variables are not part of the state: JANI uses them for labels and rewards.
        for variables in (program.global_variables, *(automaton.variables for automaton in program.automata)):
            hidden |= {variable.name for variable in variables if variable.is_transient}
    else:
        program = stormpy.parse_prism_program(path, prism_compatibility=True)
    program, _ = stormpy.instantiate_constants(program, constants)
    undefined = [constant for constant in program.constants if not constant.defined]
    if undefined:
        names = ", ".join(constant.name for constant in undefined)
        example = ",".join(f"{constant.name}={_example(constant.type)}" for constant in undefined)
        raise SourceError(
            f"{path} does not define {names}; give every constant a value, as in {path.name}?const={example}"
        )
    options = stormpy.BuilderOptions()
    options.set_build_choice_labels(True)
    options.set_build_state_valuations(True)
    options.set_build_all_labels(True)
    options.set_build_all_reward_models(True)
    # Without these checks, a variable that leaves its range may silently change another variable.
    options.set_exploration_checks(True)
    try:
        return stormpy.build_model(program, options=options), hidden
    except RuntimeError as error:
        if not ("robabilities" in str(error) and "to one" in str(error)):
            raise
    # These checks also refuse sums of probabilities with rounding errors, which `MDP` checks with a tolerance. Only the
    # ranges remain to be checked, by the state that Storm adds for values outside them.
    options.set_exploration_checks(False)
    options.set_add_out_of_bounds_state(True)
    model = stormpy.build_model(program, options=options)
    if (
        OUT_OF_BOUNDS in model.labeling.get_labels()
        and _mask(model.labeling.get_states(OUT_OF_BOUNDS), model.nr_states).any()
    ):
        raise SourceError(f"{path}: a variable leaves its range; widen the range, or add a guard to the command")
    return model, hidden | {"_OutOfBoundsBit"}


def _first_choice(model: Any, kind: str) -> Ints:
    """(S + 1,) where each state's choices begin; a Markov chain has one choice in each state."""
    if kind == "DTMC":
        return np.arange(model.nr_states + 1, dtype=np.int64)
    return np.array(model.nondeterministic_choice_indices, dtype=np.int64)


def _transitions(stormpy: Any, model: Any, first: Ints) -> tuple[Sparse, list[str]]:
    """(N, S) CSR, and the names of the state variables in Storm's order (the Python API has only a set of them)."""
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    with TemporaryDirectory(prefix="manyways-") as folder:
        file = Path(folder) / "model.umb"
        stormpy.io.export_to_umb(model, file, options=options)
        with tarfile.open(file) as archive:
            n_choices = int(first[-1])
            target = _array(archive, "branch-to-target.bin", "<u8")
            # UMB omits trivial arrays: one branch for each choice, with probability one.
            begin = _array(archive, "choice-to-branches.bin", "<u8", np.arange(n_choices + 1))
            probability = _array(archive, "branch-to-probability.bin", "<f8", np.ones(len(target)))
            member = archive.extractfile("index.json")
            index = json.load(member) if member else {}
    matrix = sparse.csr_array(
        (probability, target.astype(np.int64), begin.astype(np.int64)), shape=(n_choices, model.nr_states)
    )
    classes = index.get("valuations", {}).get("states", {}).get("classes", [])
    # With several classes, not every state has every variable, so there are no common names.
    variables = classes[0]["variables"] if len(classes) == 1 else []
    return matrix, [variable["name"] for variable in variables if "name" in variable]


def _array(archive: tarfile.TarFile, name: str, dtype: str, default: np.ndarray | None = None) -> np.ndarray:
    if default is not None and name not in archive.getnames():
        return default
    member = archive.extractfile(name)
    return np.frombuffer(member.read() if member else b"", dtype=dtype)


def _reward(model: Any, first: Ints, wanted: str | None, path: Path) -> Floats:
    """(N,) state reward plus choice reward of the wanted reward structure."""
    total = np.zeros(int(first[-1]))
    found = model.reward_models
    shown = ", ".join(repr(name) for name in sorted(found)) or "none"
    if wanted is None and len(found) > 1:
        raise SettingError(
            f"{path} has {len(found)} reward structures, {shown}; choose one, as in {path.name}?reward={sorted(found)[0]}"
        )
    if wanted is not None and wanted not in found:
        raise SettingError(f"{path} has no reward structure {wanted!r}; it has {shown}")
    if not found:
        return total
    rewards = found[next(iter(found)) if wanted is None else wanted]
    # Storm refuses PRISM's rewards of single transitions, and takes the expectation of JANI's.
    if rewards.has_transition_rewards:
        raise SourceError(f"{path} has rewards of single transitions; give states or choices their expected reward")
    if rewards.has_state_rewards:
        total += np.repeat(np.array(rewards.state_rewards, dtype=np.float64), np.diff(first))
    if rewards.has_state_action_rewards:
        total += np.array(rewards.state_action_rewards, dtype=np.float64)
    return total


def _start(model: Any, path: Path) -> Floats:
    """(S,) uniform over the initial states."""
    initial = list(model.initial_states)
    if not initial:
        raise SourceError(f"{path} has no initial state; define at least one")
    start = np.zeros(model.nr_states)
    start[initial] = 1 / len(initial)
    return start


def _actions(model: Any, first: Ints) -> tuple[Ints, list[str]]:
    """(N,) action indices, and the names of the actions: the labels of the choice, or `a` and its rank in its state."""
    n_choices = int(first[-1])
    action = np.arange(n_choices) - np.repeat(first[:-1], np.diff(first))
    labels = sorted(model.choice_labeling.get_labels()) if model.has_choice_labeling() else []
    # Each distinct set of labels gets a number, so that Python handles each set once, not each choice.
    kind, sets = np.zeros(n_choices, dtype=np.int64), [()]
    for label in labels:
        marked = _mask(model.choice_labeling.get_choices(label), n_choices)
        different, again = np.unique(kind[marked], return_inverse=True)
        kind[marked] = len(sets) + again
        sets += [(*sets[k], label) for k in different]
    plain = kind == 0
    n_ranks = int(action[plain].max(initial=-1)) + 1
    names = [f"a{rank}" for rank in range(n_ranks)] + ["+".join(chosen) for chosen in sets[1:]]
    action[~plain] = n_ranks - 1 + kind[~plain]
    used, action = np.unique(action, return_inverse=True)
    return action, [names[i] for i in used]


def _state_variables(model: Any, order: Sequence[str]) -> dict[str, np.ndarray]:
    """By name, (S,) the values of the state variables; empty for models without variables."""
    if not model.has_state_valuations() or not order:
        return {}
    values = model.state_valuations
    variables = {variable.name: variable for variable in values.get_all_variables()}
    columns = {name: np.array(list(values.get_values_states(variables[name]))) for name in order}
    # The location of a JANI automaton with a single location carries no information.
    return {
        name: column if column.dtype.kind in "bif" else column.astype(np.str_)
        for name, column in columns.items()
        if not (name.startswith("_loc_") and (column == column[0]).all())
    }


def _state_names(columns: dict[str, np.ndarray]) -> list[str] | None:
    """(S,) names such as `x=0,y=1`; None for models without variables."""
    parts = [[f"{name}={_shown(value)}" for value in column.tolist()] for name, column in columns.items()]
    return [",".join(of_state) for of_state in zip(*parts, strict=True)] or None


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mask(members: Any, size: int) -> Bools:
    mask = np.zeros(size, bool)
    mask[list(members)] = True
    return mask


FORMATS.add(
    Format(
        "models in the languages of PRISM and JANI, through stormpy",
        read_storm,
        endings=(*PRISM, *JANI),
        settings={"const": any_text, "reward": any_text},
        costs=True,
        example="robot.prism?const=N=3&reward=steps",
    )
)
