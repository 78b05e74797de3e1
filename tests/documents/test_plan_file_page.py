"""docs/reference/plan-file.md is complete: a reader written from it alone recomputes what real files claim."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import manyways as mw
from documents.plan_file_reader import Array, digest, divergence, flow_error, read_plan_file

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "plan-file.md").read_text()
TABLE = mw.MDP.from_transitions(
    [
        ("new", "run", "worn", 0.5, 2.0),
        ("new", "run", "new", 0.5, 2.0),
        ("worn", "run", "worn", 1.0, 1.0),
        ("worn", "mend", "new", 1.0, -1.0),
    ],
    labels={"ende\u0308": ["worn"], "a": ["new"]},
    variables={"wear": [0, 1], "load": [0.5, np.nan], "hot": [True, False], "shift": ["day", "night ü"]},
    name="table",
)


def plans_of(name: str) -> mw.PlanSet:
    if name == "rooms":
        return mw.plan(mw.room_world(9, 2), 2, 2.0)
    if name == "lake":
        pytest.importorskip("gymnasium")
        return mw.plan("gym:FrozenLake-v1", 2)
    if name == "features":
        return mw.plan(TABLE, 2, slack=0.9, behaviour=mw.Features(np.eye(2), ["new", "worn"]))
    if name == "way":
        return mw.plan(mw.room_world(9, 2), 2, longer=0.2, tradeoff=np.inf)
    return mw.plan(TABLE, 2, slack=0.9)


@pytest.fixture(scope="module", params=["rooms", "lake", "table", "features", "way"])
def plans(request):
    return plans_of(request.param)


@pytest.fixture
def read(plans, tmp_path):
    return read_plan_file(plans.save(tmp_path / "plans.mw").read_bytes())


def test_the_figures_follow_from_what_the_reader_found(read, plans):
    header, arrays = read
    assert digest(header, arrays) == header["model"]["digest"]
    reward, occupancies = arrays["model/reward"].entries, arrays["occupancies"].rows()
    for i, occupancy in enumerate(occupancies):
        assert flow_error(arrays, occupancy) < 1e-9
        if header["settings"]["criterion"]["type"] == "Average":
            value = sum(x * r for x, r in zip(occupancy, reward, strict=True))
            assert arrays["rewards"].entries[i] == pytest.approx(value, abs=1e-9)
    if header["settings"]["behaviour"]["type"] == "StateActions":
        assert arrays["distances"].rows()[0][1] == pytest.approx(divergence(*occupancies[:2]), abs=1e-9)
    assert header["settings"]["asked"] == plans.asked


def test_the_reader_finds_what_manyways_finds(read, plans):
    header, arrays = read
    assert header["model"]["name"] == plans.mdp.name
    assert header["model"]["action_names"] == list(plans.mdp.action_names)
    assert arrays["policies"].rows() == plans.policies.tolist()
    assert arrays["model/next_state"].entries == plans.mdp.transitions.indices.tolist()
    for number, name in enumerate(header["model"]["variables"]):
        found, expected = arrays[f"model/variable{number}"].entries, plans.mdp.variables[name].tolist()
        assert [x for x in found if x == x] == [x for x in expected if x == x]


def documented_arrays() -> dict[str, tuple[str, str]]:
    """The shape and the type of each array in the tables of the page, by a pattern of its name."""
    rows = re.findall(r"^\| (`[^|]*\.npy`[^|]*) \|([^|]*)\| (.*?) \|[^|]*\|$", PAGE.replace("\\|", "!"), re.M)
    found: dict[str, tuple[str, str]] = {}
    for names, shape, kind in rows:
        for name in re.findall(r"`([^`]*)\.npy`", names):
            pattern = re.escape(name).replace("<i>", r"\d+")
            found[re.sub(r"(label|end|variable)0$", r"\1\\d+", pattern)] = (shape.strip(), kind.replace("!", "|"))
    found |= {f"proof/best/{field}": found[rf"proof/\d+/{field}"] for field in ("h", "w", "y", "reference")}
    return found


def sizes(read: tuple[dict, dict[str, Array]]) -> dict[str, int]:
    arrays = read[1]
    size = {"S": arrays["model/start"].shape[0], "N": arrays["model/reward"].shape[0], "k": arrays["rewards"].shape[0]}
    steps, cells = arrays["trace/objective"].shape[0], arrays.get("model/blocked")
    rows, columns = cells.shape if cells else (0, 0)
    return size | {"T": arrays["model/probability"].shape[0], "steps": steps, "rows": rows, "columns": columns, "2": 2}


def test_every_array_has_the_shape_and_the_type_that_the_page_says(read):
    page, size = documented_arrays(), sizes(read)
    for name, array in read[1].items():
        if name.startswith(("behaviour/", "objective/", "criterion/", "method/")):
            continue
        (shape, kind), *more = [entry for pattern, entry in page.items() if re.fullmatch(pattern, name)]
        assert not more, name
        assert fits(array.shape, shape, size), (name, array.shape, shape)
        kinds = ["<i8", "<i4"] if kind == "integers" else re.findall(r"`([^`]*)`", kind)
        assert array.kind in kinds or (array.kind.startswith("<U") and "<U..." in kinds), (name, array.kind, kinds)


def fits(shape: tuple[int, ...], documented: str, size: dict[str, int]) -> bool:
    if documented == "() or (1,)":
        return shape in ((), (1,))
    words = [word.strip() for word in documented.strip("()").split(",") if word.strip()]
    size = size | {"N + 1": size["N"] + 1, "S + 1": size["S"] + 1}
    return len(words) == len(shape) and all(
        word in ("any", "m") or size[word] == found for word, found in zip(words, shape, strict=True)
    )


def keys_of(section: str) -> set[str]:
    part = re.search(rf"^##+ {re.escape(section)}\n(.*?)(?=^##)", PAGE, re.M | re.S)
    assert part is not None
    return {key for cell in re.findall(r"^\| (`[^|]*`) \|", part[1], re.M) for key in re.findall(r"`(\w+)`", cell)}


def test_every_key_of_the_header_is_in_the_page_and_the_reverse(read):
    header = read[0]
    assert set(header) == keys_of("header.json")
    for section in ("model", "settings", "result"):
        assert set(header[section]) == keys_of(section)
    assert set(header["settings"]["limits"]) == {"slack", "floor", "longer", "way", "randomised"}


def test_every_status_is_in_the_page():
    row = re.search(r"^\| `status` \| (.*) \|$", PAGE, re.M)
    assert row is not None
    assert set(re.findall(r"`(\w+)`", row[1])) == {status.name for status in mw.Status}
