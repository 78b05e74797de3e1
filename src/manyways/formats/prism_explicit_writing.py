"""PRISM's explicit files, written; `prism_explicit` describes and reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from manyways.arrays import Bools, Floats
from manyways.errors import OutputError
from manyways.formats.model_arrays import names_of_states
from manyways.formats.prism_explicit import WHOLE_NAME
from manyways.formats.text_tables import check_start, kept_apart, one_line, one_word, short, write_pieces
from manyways.mdp import MDP

LINES_AT_ONCE = 100_000


def write_prism_explicit(mdp: MDP, tra: Path) -> None:
    """Write `.tra`, `.lab`, `.srew`, `.trew` and, if the states have names, `.sta`; what was there before is replaced.

    A reward that all choices of a state share is written as the state's. Any other is written on each transition of its
    choice: the reader takes a reward that all transitions share as it is, so that no digit is lost in an expectation.
    """
    check_start(mdp)
    lab = _label_pieces(mdp)
    actions, names = kept_apart(mdp.action_names, one_word, "actions"), names_of_states(mdp)
    sta = None if names is None else _name_pieces(kept_apart(names, one_line, "states"))
    write_pieces(tra, _transition_pieces(mdp, actions))
    write_pieces(tra.with_suffix(".lab"), lab)
    first, rewards = mdp.first_choice[:-1], mdp.reward
    shared = np.minimum.reduceat(rewards, first) == np.maximum.reduceat(rewards, first)
    write_pieces(tra.with_suffix(".srew"), _state_reward_pieces(np.where(shared, rewards[first], 0.0)))
    write_pieces(tra.with_suffix(".trew"), _transition_reward_pieces(mdp, ~shared[mdp.choice_state] & (rewards != 0)))
    if sta is None:
        tra.with_suffix(".sta").unlink(missing_ok=True)  # that of another model would give its names to this one
    else:
        write_pieces(tra.with_suffix(".sta"), sta)


def _transition_pieces(mdp: MDP, actions: Sequence[str]) -> Iterator[str]:
    matrix = mdp.transitions
    yield f"{mdp.n_states} {mdp.n_choices} {matrix.nnz}\n"
    heads = _heads(mdp)
    for choices in _parts(mdp.n_choices):
        lengths = np.diff(matrix.indptr[choices.start : choices.stop + 1])
        inside = slice(int(matrix.indptr[choices.start]), int(matrix.indptr[choices.stop]))
        row = np.repeat(np.arange(choices.start, choices.stop), lengths).tolist()
        tails = [actions[action] for action in mdp.actions[choices].tolist()]
        yield "".join(
            [
                f"{heads[x]}{target} {weight!r} {tails[x - choices.start]}\n"
                for x, target, weight in zip(
                    row, matrix.indices[inside].tolist(), matrix.data[inside].tolist(), strict=True
                )
            ]
        )


def _transition_reward_pieces(mdp: MDP, wanted: Bools) -> Iterator[str]:
    """`wanted`: (N,) the choices whose reward is written."""
    matrix = mdp.transitions
    row = np.repeat(np.arange(mdp.n_choices), np.diff(matrix.indptr))
    chosen = np.flatnonzero(wanted[row])
    yield f"{mdp.n_states} {mdp.n_choices} {len(chosen)}\n"
    heads, rewards = _heads(mdp), mdp.reward.tolist()
    for part in _parts(len(chosen)):
        here = chosen[part]
        yield "".join(
            [
                f"{heads[x]}{target} {rewards[x]!r}\n"
                for x, target in zip(row[here].tolist(), matrix.indices[here].tolist(), strict=True)
            ]
        )


def _heads(mdp: MDP) -> list[str]:
    """(N,) `source choice `, with which each line of a choice begins."""
    rank = np.arange(mdp.n_choices) - mdp.first_choice[mdp.choice_state]
    return [f"{state} {number} " for state, number in zip(mdp.choice_state.tolist(), rank.tolist(), strict=True)]


def _parts(length: int) -> Iterator[slice]:
    for begin in range(0, length, LINES_AT_ONCE):
        yield slice(begin, min(begin + LINES_AT_ONCE, length))


def _state_reward_pieces(rewards: Floats) -> list[str]:
    states = np.flatnonzero(rewards)
    lines = [f"{s} {reward!r}\n" for s, reward in zip(states.tolist(), rewards[states].tolist(), strict=True)]
    return [f"{len(rewards)} {len(states)}\n", *lines]


def _label_pieces(mdp: MDP) -> list[str]:
    masks = {"init": mdp.start > 0} | dict(mdp.labels)
    for label in masks:
        if '"' in label or "\n" in label:
            raise OutputError(
                f"the label {short(label)!r} has a quote or a line break, which the format cannot hold; rename it"
            )
    numbers = [""] * mdp.n_states
    for number, mask in enumerate(masks.values()):
        for s in np.flatnonzero(mask).tolist():
            numbers[s] += f" {number}"
    return [
        " ".join(f'{number}="{label}"' for number, label in enumerate(masks)) + "\n",
        *[f"{s}:{text}\n" for s, text in enumerate(numbers) if text],
    ]


def _name_pieces(names: Sequence[str]) -> list[str]:
    """As variables if all names are like x=0,y=1, else as values of one variable."""
    split = [[part.partition("=") for part in name.split(",")] for name in names]
    variables = [[variable for variable, _, _ in parts] for parts in split]
    alike = all(these == variables[0] != [WHOLE_NAME] for these in variables)
    proper = all(re.fullmatch(r"[A-Za-z_]\w*", variable) for variable in variables[0])
    if alike and proper and all(re.fullmatch(r"-?[0-9]+|true|false", value) for row in split for _, _, value in row):
        title, values = ",".join(variables[0]), [",".join(value for _, _, value in parts) for parts in split]
    else:
        title, values = WHOLE_NAME, list(names)
    return [f"({title})\n", *[f"{s}:({value})\n" for s, value in enumerate(values)]]
