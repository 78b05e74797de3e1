"""Every number and every array of a plan file, changed one at a time: refused on loading, caught by `verify`, or listed
in docs/verification.md as not covered."""

from __future__ import annotations

import io
import json
import re
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyways as mw
from manyways.formats.text_maps import world_from_text

DOCUMENT = Path(__file__).parents[2] / "docs" / "verification.md"
SMALL = world_from_text("S..#.\n..#..\n....G", "small")


@dataclass(frozen=True)
class Sound:
    """A file in order, and the model that it was planned for, read from elsewhere."""

    model: mw.MDP
    content: bytes


def by_tradeoff() -> mw.PlanSet:
    return mw.plan(SMALL, 3, 8.0)


def within_limits() -> mw.PlanSet:
    first = mw.plan(SMALL, 2, slack=0.3)
    return mw.plan(SMALL, 3, slack=0.2, longer=0.4, avoid=first.policies[1:])


def of_an_environment() -> mw.PlanSet:
    return mw.plan("gym:FrozenLake-v1", 2, slack=0.2)


@pytest.fixture(scope="module", params=[by_tradeoff, within_limits, of_an_environment])
def sound(request) -> Sound:
    plans = request.param()
    model = SMALL if plans.mdp.source is None else mw.read(plans.mdp.source)
    assert mw.verify(model, plans).ok
    return Sound(model, plans.to_bytes())


def parts(content: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".npy")]
        header = json.loads(archive.read("header.json"))
        return header, {name: np.load(io.BytesIO(archive.read(name))) for name in names}


def packed(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("header.json", json.dumps(header))
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(name, member.getvalue())
    return buffer.getvalue()


def outcome(sound: Sound, content: bytes) -> str:
    try:
        plans = mw.PlanSet.from_bytes(content, "tampered")
    except mw.PlanFileError:
        return "refused"
    if plans.to_bytes() == sound.content:
        return "harmless"  # such as a certain transition of probability 1.000001, which becomes 1
    return "accepted" if mw.verify(sound.model, plans).ok else "caught"


def uncovered() -> list[str]:
    """The patterns in the table of docs/verification.md of what is not covered."""
    table = DOCUMENT.read_text().partition("## Not covered")[2]
    return re.findall(r"^\| `([^`]+)`", table, re.MULTILINE)


def is_covered(name: str) -> bool:
    return not any(re.fullmatch(pattern.replace("*", ".*"), name) for pattern in uncovered())


def leaves(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """All entries of the header that are not lists or objects, by their path."""
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in leaves(item, f"{path}.{key}" if path else key)]
    if isinstance(value, list):
        return [leaf for i, item in enumerate(value) for leaf in leaves(item, f"{path}[{i}]")]
    return [(path, value)]


def changed_leaf(value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * (1 + 1e-6) if value else 1e-6
    return value + "x"


def put(header: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    copy = json.loads(json.dumps(header))
    place: Any = copy
    keys = [int(part[1:-1]) if part.startswith("[") else part for part in re.findall(r"\[\d+\]|[^.\[\]]+", path)]
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    return copy


def test_every_entry_of_the_header(sound):
    header, arrays = parts(sound.content)
    assert outcome(sound, packed(header, arrays)) == "harmless"  # packing alone does no damage
    passed = [
        path
        for path, value in leaves(header)
        if outcome(sound, packed(put(header, path, changed_leaf(value)), arrays)) == "accepted" and is_covered(path)
    ]
    assert passed == []


def places(array: np.ndarray) -> set[int]:
    """The first, the largest and the smallest entry that is not zero."""
    size = np.abs(array.astype(float)).ravel()
    return {0, int(np.argmax(size)), int(np.argmin(np.where(size > 0, size, np.inf)))} if array.size else set()


def changed_entry(array: np.ndarray, at: int) -> np.ndarray:
    """With one entry changed by a millionth of it, by a millionth if it is zero, or by one unit in integers."""
    wrong = array.copy()
    if array.dtype.kind == "f":
        wrong.flat[at] = wrong.flat[at] * (1 + 1e-6) or 1e-6
    elif array.dtype.kind == "b":
        wrong.flat[at] = not wrong.flat[at]
    else:
        wrong.flat[at] += 1
    return wrong


def is_noticeable(name: str, array: np.ndarray, wrong: np.ndarray) -> bool:
    """Whether a change is larger than the tolerance, which docs/verification.md states for these arrays."""
    if name not in ("occupancies", "distances", "rewards"):
        return True
    return float(np.abs(wrong - array).max()) > 1e-9 * max(float(np.abs(array).max()), 1.0)


def test_every_array(sound):
    header, arrays = parts(sound.content)
    passed = []
    for name, array in arrays.items():
        for at in places(array):
            key, wrong = name.removesuffix(".npy"), changed_entry(array, at)
            if not is_covered(key) or not is_noticeable(key, array, wrong):
                continue
            if outcome(sound, packed(header, arrays | {name: wrong})) == "accepted":
                passed.append((key, at))
    assert passed == []


def test_exact_numbers_changed_in_the_ninth_digit(sound):
    """Deterministic policies and the model are exact."""
    header, arrays = parts(sound.content)
    for name in ("policies.npy", "model/probability.npy", "model/reward.npy", "model/start.npy"):
        wrong = arrays[name].copy()
        wrong.flat[int(np.argmax(np.abs(wrong)))] *= 1 + 1e-9
        assert outcome(sound, packed(header, arrays | {name: wrong})) != "accepted", name


def test_what_is_listed_as_not_covered_is_in_a_file():
    names: set[str] = set()
    for make in (by_tradeoff, within_limits, of_an_environment):
        header, arrays = parts(make().to_bytes())
        names |= {path for path, _ in leaves(header)} | {name.removesuffix(".npy") for name in arrays}
    for pattern in uncovered():
        assert any(re.fullmatch(pattern.replace("*", ".*"), name) for name in names), pattern


@pytest.mark.parametrize("wrong", [{"longer": 0.39}, {"way": 1.0001}, {"floor": 1.0001}, {"slack": 0.19}])
def test_limits_that_promise_more_than_is_true(wrong):
    plans = within_limits()
    ((name, value),) = wrong.items()
    if name in ("way", "floor"):
        value = value * getattr(plans.limits, name)
    claimed = replace(plans, limits=replace(plans.limits, **{name: value}))
    assert not mw.verify(SMALL, claimed).ok


def test_names_that_mean_something_else():
    """Left for right would be the same numbers."""
    plans, names = by_tradeoff(), SMALL.action_names
    swapped = replace(SMALL, action_names=(names[1], names[0], *names[2:]))
    assert [check.name for check in mw.verify(swapped, plans).failed] == ["names and ends"]
    assert [check.name for check in mw.verify(SMALL, replace(plans, mdp=swapped)).failed] == ["names and ends"]
    nameless = replace(SMALL, action_names=tuple(f"a{i}" for i in range(len(names))), layout=None)
    assert mw.verify(nameless, plans).ok, "a model without names agrees with every other"


def test_actions_may_be_numbered_in_another_order():
    """As in a file of another format. What is preferred about actions follows their names."""
    names = SMALL.action_names
    turned = replace(SMALL, actions=len(names) - 1 - SMALL.actions, action_names=names[::-1])
    plans = mw.plan(SMALL, 2, slack=0.1, objective=mw.Representative(mw.Preferences(over=(mw.Actions(),))))
    assert mw.verify(turned, plans).ok
