"""Arrays in HDF5 files: written a piece at a time, whole or not at all, and read in slices from files of unknown origin.

An HDF5 file can refer to other files, and claim arrays far larger than itself. So every array is checked before anything
of it is read: it must lie in the file itself, contain numbers or bytes, and have a size that is in proportion to the space
that it takes there.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyways.errors import SettingError, SourceError
from manyways.files.reading import open_regular
from manyways.files.writing import atomic
from manyways.files.zipped_arrays import DAMAGED, LARGEST_PACKED, MOST_PACKED, reason

LARGEST_FILE = 2**50
BUFFERED = 65_536
"""Entries of a growing array that are collected before they are written, which is also the size of its chunks."""


def the_h5py() -> Any:
    """The module; a SettingError says how to install it if it is missing."""
    try:
        import h5py
    except ImportError:
        raise SettingError("HDF5 files need h5py: pip install 'manyways[hdf5]'") from None
    return h5py


class ArrayFile:
    """An HDF5 file of arrays, opened for reading in slices; close it, or use it in a `with` statement."""

    def __init__(self, path: Path) -> None:
        h5py = the_h5py()
        self.name = str(path)
        open_regular(path, LARGEST_FILE).close()
        with _explained(self.name):
            self._file = h5py.File(path, "r", locking=False)  # files are replaced, never changed
        try:
            with _explained(self.name):
                self._datasets = {name: self._checked(h5py, name) for name in self._file}
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> ArrayFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def __contains__(self, name: str) -> bool:
        return name in self._datasets

    def names(self) -> list[str]:
        return list(self._datasets)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._of(name).shape

    def dtype(self, name: str) -> np.dtype[Any]:
        return self._of(name).dtype

    def claimed(self) -> int:
        """The bytes of all arrays."""
        return sum(math.prod(dataset.shape) * dataset.dtype.itemsize for dataset in self._datasets.values())

    def read(self, name: str, begin: int = 0, end: int | None = None) -> np.ndarray:
        """The entries begin:end of an array along its first axis; all of them by default."""
        with _explained(self.name):
            return np.asarray(self._of(name)[begin:end])

    def _of(self, name: str) -> Any:
        if name not in self._datasets:
            raise SourceError(f"{self.name} has no array {name!r}, which a model needs")
        return self._datasets[name]

    def _checked(self, h5py: Any, name: str) -> Any:
        shown = repr(name[:60])
        if not isinstance(self._file.get(name, getlink=True), h5py.HardLink):
            raise SourceError(f"{self.name}: {shown} is a link to something else, expected an array")
        dataset = self._file[name]
        if not isinstance(dataset, h5py.Dataset):
            raise SourceError(f"{self.name}: {shown} is a group, expected an array")
        if dataset.is_virtual or dataset.external:
            raise SourceError(f"{self.name}: {shown} lies in another file, expected an array in this one")
        if dataset.dtype.kind not in "biufS" or dataset.dtype.hasobject or dataset.shape is None:
            raise SourceError(f"{self.name}: {shown} must contain numbers, found {str(dataset.dtype)[:60]}")
        if dataset.ndim == 0:
            raise SourceError(f"{self.name}: {shown} is a single value, expected an array")
        claimed, stored = math.prod(dataset.shape) * max(dataset.dtype.itemsize, 1), dataset.id.get_storage_size()
        if claimed > stored and (dataset.compression is None or claimed > max(LARGEST_PACKED, MOST_PACKED * stored)):
            raise SourceError(
                f"{self.name}: {shown} claims {claimed:,} bytes, of which the file holds {stored:,}; it is incomplete"
            )
        return dataset


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what HDF5 raises on damaged files into a sentence."""
    try:
        yield
    except SourceError:
        raise
    except DAMAGED as error:
        why = "it is not an HDF5 file, or is truncated or damaged" if type(error) is OSError else reason(error)
        raise SourceError(f"{name} cannot be read: {why}") from None


# ---- writing ------------------------------------------------------------------------------------


class ArrayWriter:
    """Writes arrays, each a piece at a time, to a file that `writing_arrays` opened."""

    def __init__(self, file: Any, sink: _Sink) -> None:
        self._file, self._sink = file, sink
        self._columns: dict[str, _Column] = {}

    def append(self, name: str, values: np.ndarray) -> None:
        """Add entries to the end of an array along its first axis."""
        column = self._columns.setdefault(name, _Column(self._file, name))
        column.append(np.asarray(values))
        self._sink.check()

    def length(self, name: str) -> int:
        """How many entries an array has so far."""
        return self._columns[name].length if name in self._columns else 0

    def finish(self) -> None:
        for column in self._columns.values():
            column.finish()
            self._sink.check()


@contextmanager
def writing_arrays(path: Path) -> Iterator[ArrayWriter]:
    """A file of arrays that takes the place of `path` when the block ends without an exception."""
    h5py = the_h5py()
    with atomic(path) as file:
        sink = _Sink(file)
        try:
            with h5py.File(sink, "w", libver="v110") as opened:
                writer = ArrayWriter(opened, sink)
                yield writer
                writer.finish()
        except BaseException as error:
            # An error of the file itself comes first: others may be due to it.
            raise sink.error if sink.error is not None else error from None
        sink.check()


class _Column:
    """An array that grows. One that fits into the buffer is written as a whole, without the overhead of chunks."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name, self._dataset = file, name, None
        self._waiting: list[np.ndarray] = []
        self._count = self.length = 0

    def append(self, values: np.ndarray) -> None:
        self._waiting.append(values)
        self._count += len(values)
        self.length += len(values)
        if self._count >= BUFFERED and len(self._waiting) > 1:
            self._flush()

    def finish(self) -> None:
        if self._dataset is None:
            self._file.create_dataset(self._name, data=self._taken())
        elif self._count:
            self._flush()

    def _flush(self) -> None:
        values = self._taken()
        if self._dataset is None:
            rest = values.shape[1:]
            chunk = max(BUFFERED // max(math.prod(rest), 1), 1)
            self._dataset = self._file.create_dataset(
                self._name, (0, *rest), values.dtype, maxshape=(None, *rest), chunks=(chunk, *rest)
            )
        self._dataset.resize(self.length, axis=0)
        self._dataset[self.length - len(values) :] = values

    def _taken(self) -> np.ndarray:
        values = self._waiting[0] if len(self._waiting) == 1 else np.concatenate(self._waiting)
        self._waiting, self._count = [], 0
        return values


class _Sink(io.RawIOBase):
    """The file that HDF5 writes to. HDF5 cannot be interrupted in the middle of a write, so an error is kept until `check`
    raises it, and what is written after it is dropped."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.error = file, None

    def check(self) -> None:
        if self.error is not None:
            raise self.error

    def write(self, data: Any) -> int:
        if self.error is None:
            try:
                self._file.write(data)
            except BaseException as error:
                self.error = error
        return len(data)

    def readinto(self, buffer: Any) -> int:
        self.flush()
        view = memoryview(buffer).cast("B")
        with suppress(OSError):
            found = os.pread(self._file.fileno(), len(view), self._file.tell())
            view[: len(found)] = found
            self._file.seek(len(found), os.SEEK_CUR)
        return len(view)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def truncate(self, size: int | None = None) -> int:
        self.flush()
        return self._file.truncate(size)

    def flush(self) -> None:
        if self.error is None:
            try:
                self._file.flush()
            except BaseException as error:
                self.error = error

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
