"""Models in PRISM, JANI and DRN, through the model checker Storm (`pip install 'manyways[storm]'`).

Storm parses the file and explores its states. The transitions come out of Storm as a UMB archive, a tar of
plain binary arrays: measured on 600,000 transitions, writing it took 0.4 s, against 1.2 s for walking over the
matrix entry by entry from Python and 0.9 s for writing DRN text alone.
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
from manyways.formats.explicit_text import read_bytes
from manyways.formats.format import FORMATS, Format, any_text
from manyways.model.mdp import MDP
from manyways.types import Bools, Floats, Ints, Sparse

PRISM, JANI, DRN = (".prism", ".nm", ".pm"), (".jani",), (".drn",)
OUT_OF_BOUNDS = "out_of_bounds"
OWN_LABELS = ("init", "deadlock", OUT_OF_BOUNDS)
"""Labels that Storm adds by itself: the first is our start, the others are only remarks."""


def read_storm(path: Path, const: str = "", reward: str | None = None) -> MDP:
    """The MDP (or Markov chain) in a `.prism`, `.nm`, `.pm`, `.jani` or `.drn` file.

    The reward of a choice is that of its state plus its own. States are named by their variables' values,
    choices by their labels. The start is uniform over Storm's initial states.

    Args:
        path: the file; its ending says which format it is in.
        const: values of the constants that the model leaves open, as in `N=3,p=0.5`.
        reward: which of the model's reward structures to use; not needed if there is only one, or none (all zero).
    """
    suffix = path.suffix.lower()
    if suffix not in (*PRISM, *JANI, *DRN):
        raise SourceError(
            f"{path}: expected a file that ends in {', '.join((*PRISM, *JANI, *DRN))}, found {suffix or 'no ending'!r}"
        )
    if suffix in DRN and const:
        raise SettingError(f"{path}: a DRN file has no constants to set, found {const!r}; leave --const out")
    if not path.is_file():
        raise SourceError(f"cannot read {path}: there is no such file")
    read_bytes(path)  # refuses what is no text, of which stormpy only complains
    stormpy = _stormpy()
    with _quiet(stormpy), _errors_about(path):
        model, hidden = _build_drn(stormpy, path) if suffix in DRN else _build(stormpy, path, const)
        kind = str(model.model_type).rpartition(".")[2]
        if kind not in ("MDP", "DTMC"):
            raise SourceError(f"{path} is a model of type {kind}; expected an MDP or a DTMC")
        first = _first_choice(model, kind)
        transitions, variables = _transitions(stormpy, model, first)
        actions, action_names = _actions(model, first)
        return MDP.from_csr(
            transitions,
            _reward(model, first, reward, path),
            first,
            start=_start(model, path),
            actions=actions,
            action_names=action_names,
            state_names=_state_names(model, [name for name in variables if name not in hidden]),
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
    """Storm writes its errors to the terminal as well as into the exception; once is enough."""
    log = stormpy.developer
    before = log.get_log_level()
    log.set_log_level(log.LogLevel.OFF)
    try:
        yield
    finally:
        log.set_log_level(before)


@contextmanager
def _errors_about(path: Path) -> Iterator[None]:
    """Storm's exceptions, in one line, as ours."""
    try:
        yield
    except (SourceError, SettingError):
        raise
    except RuntimeError as error:
        _, _, said = str(error).rpartition("Exception: ")
        raise SourceError(f"{path}: Storm cannot read it: {' '.join(said.split())}") from None


def _build(stormpy: Any, path: Path, constants: str) -> tuple[Any, set[str]]:
    """The model of a PRISM or JANI file, and the variables that are no part of a state's name."""
    hidden: set[str] = set()
    if path.suffix.lower() in JANI:
        program, _ = stormpy.parse_jani_model(path)
        # Transient variables hold no state: they are how JANI writes labels and rewards.
        for variables in (program.global_variables, *(automaton.variables for automaton in program.automata)):
            hidden |= {variable.name for variable in variables if variable.is_transient}
    else:
        program = stormpy.parse_prism_program(path, prism_compatibility=True)
    program, _ = stormpy.instantiate_constants(program, constants)
    open_ones = [constant.name for constant in program.constants if not constant.defined]
    if open_ones:
        example = ",".join(f"{name}=3" for name in open_ones)
        raise SourceError(
            f"{path} leaves {', '.join(open_ones)} open; give every constant a value, as in --const {example}"
        )
    options = stormpy.BuilderOptions()
    options.set_build_choice_labels(True)
    options.set_build_state_valuations(True)
    options.set_build_all_labels(True)
    options.set_build_all_reward_models(True)
    # Without checks, a variable that leaves its range may run over into its neighbour unseen.
    options.set_exploration_checks(True)
    try:
        return stormpy.build_model(program, options=options), hidden
    except RuntimeError as error:
        if not ("robabilities" in str(error) and "to one" in str(error)):
            raise
    # The checks forgive no rounding in sums of probabilities, which `MDP` checks itself, within reason. So only
    # the ranges are left to check, by the state that Storm then adds for whatever is out of them.
    options.set_exploration_checks(False)
    options.set_add_out_of_bounds_state(True)
    model = stormpy.build_model(program, options=options)
    if (
        OUT_OF_BOUNDS in model.labeling.get_labels()
        and _mask(model.labeling.get_states(OUT_OF_BOUNDS), model.nr_states).any()
    ):
        raise SourceError(f"{path}: a variable leaves its range; widen the range, or guard the command that does it")
    return model, hidden | {"_OutOfBoundsBit"}


def _build_drn(stormpy: Any, path: Path) -> tuple[Any, set[str]]:
    options = stormpy.io.DirectEncodingParserOptions()
    options.build_choice_labeling = True
    return stormpy.build_model_from_drn(path, options=options), set()


def _first_choice(model: Any, kind: str) -> Ints:
    """(S + 1,) where each state's choices begin; a chain has one choice in each state."""
    if kind == "DTMC":
        return np.arange(model.nr_states + 1, dtype=np.int64)
    return np.array(model.nondeterministic_choice_indices, dtype=np.int64)


def _transitions(stormpy: Any, model: Any, first: Ints) -> tuple[Sparse, list[str]]:
    """(N, S) CSR, and the names of the state variables in Storm's order (its Python API has only a set of them)."""
    options = stormpy.io.UmbExportOptions()
    options.compression = stormpy.io.CompressionMode.NO_COMPRESSION
    with TemporaryDirectory(prefix="manyways-") as folder:
        file = Path(folder) / "model.umb"
        stormpy.io.export_to_umb(model, file, options=options)
        with tarfile.open(file) as archive:
            n_choices = int(first[-1])
            target = _array(archive, "branch-to-target.bin", "<u8")
            # UMB leaves out what is trivial: one branch for each choice, and then its probability of one.
            begin = _array(archive, "choice-to-branches.bin", "<u8", np.arange(n_choices + 1))
            probability = _array(archive, "branch-to-probability.bin", "<f8", np.ones(len(target)))
            member = archive.extractfile("index.json")
            index = json.load(member) if member else {}
    matrix = sparse.csr_array(
        (probability, target.astype(np.int64), begin.astype(np.int64)), shape=(n_choices, model.nr_states)
    )
    classes = index.get("valuations", {}).get("states", {}).get("classes", [])
    # Several classes would mean that not every state has every variable; then there are no common names.
    variables = classes[0]["variables"] if len(classes) == 1 else []
    return matrix, [variable["name"] for variable in variables if "name" in variable]


def _array(archive: tarfile.TarFile, name: str, dtype: str, default: np.ndarray | None = None) -> np.ndarray:
    if default is not None and name not in archive.getnames():
        return default
    member = archive.extractfile(name)
    return np.frombuffer(member.read() if member else b"", dtype=dtype)


def _reward(model: Any, first: Ints, wanted: str | None, path: Path) -> Floats:
    """(N,) state reward plus choice reward of the reward structure asked for."""
    total = np.zeros(int(first[-1]))
    found = model.reward_models
    shown = ", ".join(repr(name) for name in sorted(found)) or "none"
    if wanted is None and len(found) > 1:
        raise SettingError(f"{path} has several reward structures, {shown}; say which one to use, as in --reward NAME")
    if wanted is not None and wanted not in found:
        raise SettingError(f"{path} has no reward structure {wanted!r}; it has {shown}")
    if not found:
        return total
    rewards = found[next(iter(found)) if wanted is None else wanted]
    # PRISM's rewards of single transitions are refused by Storm, JANI's come as their expectation.
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
        raise SourceError(f"{path} has no initial state; label at least one state 'init'")
    start = np.zeros(model.nr_states)
    start[initial] = 1 / len(initial)
    return start


def _actions(model: Any, first: Ints) -> tuple[Ints, list[str]]:
    """(N,) action indices with their names: the choice's labels, else `a` and its rank in its state."""
    n_choices = int(first[-1])
    action = np.arange(n_choices) - np.repeat(first[:-1], np.diff(first))
    labels = sorted(model.choice_labeling.get_labels()) if model.has_choice_labeling() else []
    # Labels are told apart by a number for each set of them; Python sees each different set only once.
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


def _state_names(model: Any, order: Sequence[str]) -> list[str] | None:
    """(S,) such as `x=0,y=1`; none for models without variables."""
    if not model.has_state_valuations() or not order:
        return None
    values = model.state_valuations
    variables = {variable.name: variable for variable in values.get_all_variables()}
    columns = []
    for name in order:
        column = [_shown(value) for value in values.get_values_states(variables[name])]
        # The place of a JANI automaton that has only one says nothing.
        if not (name.startswith("_loc_") and len(set(column)) == 1):
            columns.append([f"{name}={value}" for value in column])
    return [",".join(parts) for parts in zip(*columns, strict=True)] or None


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
        example="robot.prism?const=N=3&reward=steps",
    )
)
