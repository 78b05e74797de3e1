"""A reader of plan files that was written from docs/reference/plan-file.md alone.

It uses the standard library only, not manyways, NumPy or zipfile. What it needs beyond the page would be missing there.
"""

from __future__ import annotations

import ast
import hashlib
import json
import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise
from math import log, prod
from typing import Any


@dataclass(frozen=True)
class Array:
    """The entries of an array in one list, the last index changing fastest."""

    kind: str
    shape: tuple[int, ...]
    entries: list[Any]

    def rows(self) -> list[list[Any]]:
        width = self.shape[1]
        return [self.entries[i * width : (i + 1) * width] for i in range(self.shape[0])]


def read_plan_file(content: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header, and the arrays by their names without `.npy`."""
    members = members_of(content)
    header = json.loads(members.pop("header.json").decode())
    assert header["schema"] == "manyways plans"
    assert header["version"] == 3
    return header, {name.removesuffix(".npy"): array_of(member) for name, member in members.items()}


def members_of(content: bytes) -> dict[str, bytes]:
    end = len(content) - 22
    assert content[:4] == b"PK\x03\x04"
    assert content[end : end + 4] == b"PK\x05\x06"
    count, at = _numbers("<H", content, end + 10)[0], _numbers("<I", content, end + 16)[0]
    members = {}
    for _ in range(count):
        assert content[at : at + 4] == b"PK\x01\x02"
        compression, date, crc, packed, size, *lengths = _numbers("<H4sIIIHHH", content, at + 10)
        assert compression == 8
        assert date == b"\x00\x00\x21\x00"  # midnight of 1980-01-01
        name = content[at + 46 : at + 46 + lengths[0]].decode()
        members[name] = _member(content, _numbers("<I", content, at + 42)[0], packed)
        assert len(members[name]) == size
        assert zlib.crc32(members[name]) == crc
        at += 46 + sum(lengths)
    return members


def _member(content: bytes, at: int, packed: int) -> bytes:
    assert content[at : at + 4] == b"PK\x03\x04"
    begin = at + 30 + sum(_numbers("<HH", content, at + 26))
    return zlib.decompress(content[begin : begin + packed], wbits=-15)


def array_of(member: bytes) -> Array:
    assert member[:8] == b"\x93NUMPY\x01\x00"
    begin = 10 + _numbers("<H", member, 8)[0]
    header = ast.literal_eval(member[10:begin].decode("ascii"))
    assert member[begin - 1 : begin] == b"\n"
    assert header["fortran_order"] is False
    kind, shape = header["descr"], header["shape"]
    count = prod(shape)
    if kind.startswith("<U"):
        width = 4 * int(kind[2:])
        texts = [member[begin + i * width : begin + (i + 1) * width].decode("utf-32-le") for i in range(count)]
        return Array(kind, shape, [text.rstrip("\0") for text in texts])
    code = {"<f8": "d", "<i8": "q", "<i4": "i", "|b1": "?"}[kind]
    return Array(kind, shape, list(_numbers(f"<{count}{code}", member, begin)))


def _numbers(layout: str, content: bytes, at: int) -> tuple[Any, ...]:
    return struct.unpack_from(layout, content, at)


def digest(header: dict[str, Any], arrays: dict[str, Array]) -> str:
    """What `model.digest` must be."""
    hasher = hashlib.sha256(b"manyways-mdp-1")
    for name in ("first_choice", "row_begin", "next_state", "probability", "reward", "start"):
        array = arrays[f"model/{name}"]
        code = "d" if array.kind == "<f8" else "q"
        hasher.update(struct.pack(f"<Q{len(array.entries)}{code}", len(array.entries), *(x + 0 for x in array.entries)))
    for name, number in sorted((name, number) for number, name in enumerate(header["model"]["labels"])):
        bits = arrays[f"model/label{number}"].entries
        bits = bits + [False] * (-len(bits) % 8)
        eights = [bits[i : i + 8] for i in range(0, len(bits), 8)]
        hasher.update(name.encode() + bytes(sum(bit << (7 - i) for i, bit in enumerate(eight)) for eight in eights))
    return hasher.hexdigest()


def flow_error(arrays: dict[str, Array], occupancy: list[float]) -> float:
    """How much the flow into a state differs from the flow out of it, at most."""
    begin, target, chance = (arrays[f"model/{name}"].entries for name in ("row_begin", "next_state", "probability"))
    flow = [0.0] * arrays["model/start"].shape[0]
    for choice, (first, last) in enumerate(pairwise(begin)):
        for t in range(first, last):
            flow[target[t]] += chance[t] * occupancy[choice]
    for state, (first, last) in enumerate(pairwise(arrays["model/first_choice"].entries)):
        flow[state] -= sum(occupancy[first:last])
    return max(map(abs, flow))


def divergence(p: list[float], q: list[float]) -> float:
    def entropy(shares: list[float]) -> float:
        return sum(-share * log(share) for share in shares if share > 0)

    return entropy([(a + b) / 2 for a, b in zip(p, q, strict=True)]) - (entropy(p) + entropy(q)) / 2
