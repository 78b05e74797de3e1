"""Every number and every array of a plan file, changed one at a time: refused on loading, caught by `verify`, or listed
in docs/verification.md as not covered."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import manyways as mw
from manyways.formats.text_maps import world_from_text

DOCUMENT = Path(__file__).parents[2] / "docs" / "verification.md"
SOUND: dict[str, bytes] = {}
MODEL = world_from_text("S..#.\n..#..\n....G", "small")


@pytest.fixture(scope="module")
def content() -> bytes:
    plans = mw.plan(MODEL, 3, 8.0)
    assert mw.verify(MODEL, plans).ok
    SOUND["content"] = plans.to_bytes()
    return SOUND["content"]


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


def outcome(content: bytes) -> str:
    try:
        plans = mw.PlanSet.from_bytes(content, "tampered")
    except mw.PlanFileError:
        return "refused"
    if plans.to_bytes() == SOUND["content"]:
        return "harmless"  # such as a certain transition of probability 1.000001, which becomes 1
    return "accepted" if mw.verify(MODEL, plans).ok else "caught"


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


def test_every_entry_of_the_header(content):
    header, arrays = parts(content)
    assert outcome(packed(header, arrays)) == "harmless"  # packing alone does no damage
    passed = [
        path
        for path, value in leaves(header)
        if outcome(packed(put(header, path, changed_leaf(value)), arrays)) == "accepted" and is_covered(path)
    ]
    assert passed == []


def test_every_array(content):
    """One entry of each changed by 1e-6 of its size, or by one unit in integers; the largest and the first one."""
    header, arrays = parts(content)
    passed = []
    for name, array in arrays.items():
        for at in {0, int(np.argmax(np.abs(array.astype(float))))} if array.size else ():
            wrong = array.copy()
            if array.dtype.kind == "f":
                wrong.flat[at] += 1e-6 * max(abs(float(wrong.flat[at])), 1.0)
            elif array.dtype.kind == "b":
                wrong.flat[at] = not wrong.flat[at]
            else:
                wrong.flat[at] += 1
            key = name.removesuffix(".npy")
            if outcome(packed(header, arrays | {name: wrong})) == "accepted" and is_covered(key):
                passed.append((key, at))
    assert passed == []


def test_exact_numbers_changed_in_the_ninth_digit(content):
    """Deterministic policies and the model are exact."""
    header, arrays = parts(content)
    for name in ("policies.npy", "model/probability.npy", "model/reward.npy", "model/start.npy"):
        wrong = arrays[name].copy()
        wrong.flat[int(np.argmax(np.abs(wrong)))] *= 1 + 1e-9
        assert outcome(packed(header, arrays | {name: wrong})) != "accepted", name


def test_what_is_listed_as_not_covered_is_really_not(content):
    """A pattern that matches nothing, or only what is caught, has no place in the table."""
    header, arrays = parts(content)
    names = [path for path, _ in leaves(header)] + [name.removesuffix(".npy") for name in arrays]
    for pattern in uncovered():
        assert any(re.fullmatch(pattern.replace("*", ".*"), name) for name in names), pattern
