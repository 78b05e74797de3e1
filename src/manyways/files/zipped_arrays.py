"""Arrays from zip archives of `.npy` files (`.npz`) of unknown origin.

The sizes, shapes and types that an archive claims are checked before anything is unpacked.
"""

from __future__ import annotations

import math
import warnings
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from tokenize import TokenError
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np

from manyways.errors import SourceError

LARGEST = 16 * 2**30
LARGEST_PACKED = 256 * 2**20
MOST_PACKED = 200
"""The largest ratio of unpacked to packed size. The indices of a sparse model do not compress to less than a sixth, so
its file stays far below this ratio even if its rewards are all equal; dense arrays of zeros compress to a thousandth."""
DAMAGED = (
    ValueError,
    TypeError,
    KeyError,
    EOFError,
    OSError,
    OverflowError,
    RuntimeError,
    MemoryError,
    SyntaxError,
    SystemError,
    TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""The exceptions that numpy and zipfile raise on damaged files."""


def inflation(entries: Iterable[zipfile.ZipInfo], size: int) -> str | None:
    """Why entries of a zip file of `size` bytes must not be unpacked, judged by the sizes that it claims for them; None
    if they may be."""
    claimed = sum(entry.file_size for entry in entries)
    if claimed > LARGEST:
        return f"claims {claimed:,} bytes; more than {LARGEST:,} are refused"
    if claimed > LARGEST_PACKED and claimed > MOST_PACKED * size:
        return (
            f"claims {claimed:,} bytes in a file of {size:,}, so nearly all are equal; "
            "save it without compression (np.savez), or as a sparse model"
        )
    return None


@dataclass(frozen=True)
class Member:
    """An array in a file, before it is read."""

    entry: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Npz:
    """A file of arrays, opened for reading; `name` is its name in error messages."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self.name = name
        self.size = file.seek(0, 2)
        self.archive = zipfile.ZipFile(file)
        self.members: dict[str, Member] = {}
        for entry in self.archive.infolist():
            key = entry.filename.removesuffix(".npy")
            if key in self.members:
                raise SourceError(f"{name} contains {key[:60]!r} twice; write it again with np.savez")
            self.members[key] = self._member(key, entry)

    def __enter__(self) -> Npz:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.archive.close()

    def read(self, names: Iterable[str]) -> dict[str, np.ndarray]:
        """The arrays with these names; refused if their claimed sizes are out of proportion to the file."""
        wanted = {name: self.members[name].entry for name in names}
        if inflated := inflation(wanted.values(), self.size):
            raise SourceError(f"{self.name} {inflated}")
        return {name: self._array(entry) for name, entry in wanted.items()}

    def _member(self, key: str, entry: zipfile.ZipInfo) -> Member:
        with self.archive.open(entry) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about invalid escapes in a damaged header
            if file.read(6) != np.lib.format.MAGIC_PREFIX:
                raise SourceError(f"{self.name}: {key[:60]!r} is not an array")
            version = file.read(2)
            if version == b"\x01\x00":
                shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            else:  # version 3 differs only in the names of structured columns, which are refused below
                shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        if dtype.kind not in "biufUS":  # complex numbers would lose their imaginary parts, dates their meaning
            raise SourceError(f"{self.name}: {key[:60]!r} must contain numbers or text, found {str(dtype)[:60]}")
        # Entries of zero bytes, or a zero in the shape, would fit any length along the other axes, hence max(..., *shape).
        if min(shape, default=0) < 0 or max(math.prod(shape) * max(dtype.itemsize, 1), *shape, 0) > entry.file_size:
            raise SourceError(f"{self.name}: {key[:60]!r} claims the shape {shape}, for which the file is too small")
        return Member(entry, shape, dtype)

    def _array(self, entry: zipfile.ZipInfo) -> np.ndarray:
        with self.archive.open(entry) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.lib.format.read_array(file, allow_pickle=False)


def texts(array: np.ndarray) -> list[str]:
    """The entries as text; bytes are decoded as UTF-8."""
    values = array.ravel().tolist()
    return [value.decode() if isinstance(value, bytes) else str(value) for value in values]


def reason(error: BaseException) -> str:
    """Why a damaged file cannot be read, as the end of a sentence."""
    if isinstance(error, zipfile.BadZipFile):
        return "it is not an .npz file, or is truncated or damaged"
    if isinstance(error, TokenError | SyntaxError | SystemError):
        return "the header or the text of an array is invalid"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, KeyError):
        return f"{str(error)[:60]} is missing"
    return " ".join(str(error).split())[:200] or type(error).__name__
