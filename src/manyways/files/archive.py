"""Archives of manyways: a zip of arrays and one JSON header.

Nothing in it can run code: arrays are read without pickle.
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyways.errors import PlanFileError
from manyways.files.reading import open_regular
from manyways.files.zipped_arrays import DAMAGED, LARGEST, inflation, reason

HEADER = "header.json"


def pack(schema: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Header and arrays as one archive; the same content gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        _write_header(archive, schema, version, header)
        for name, array in arrays.items():
            with archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


class ArchiveInPieces:
    """Writes an archive that `unpack` reads, of arrays that are never whole in memory, and the header at the end."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1)

    def add(self, name: str, shape: tuple[int, ...], dtype: Any, pieces: Iterable[np.ndarray]) -> None:
        """Add an array from consecutive pieces of its entries, in the order of rows."""
        described = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
        with self._archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as member:
            np.lib.format.write_array_header_1_0(member, described)
            for piece in pieces:
                member.write(np.ascontiguousarray(piece, dtype=dtype).data)

    def finish(self, schema: str, version: int, header: Mapping[str, Any]) -> None:
        _write_header(self._archive, schema, version, header)
        self._archive.close()


def _write_header(archive: zipfile.ZipFile, schema: str, version: int, header: Mapping[str, Any]) -> None:
    text = json.dumps({"schema": schema, "version": version, **header}, indent=1, allow_nan=False)
    archive.writestr(_entry(HEADER), text)


def unpack(
    file: Path | BinaryIO, name: str, schema: str, versions: Collection[int]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `pack` made; `name` is what errors call the file, `versions` are those that can be read."""
    if isinstance(file, Path):
        with open_regular(file, LARGEST, PlanFileError) as opened:
            return unpack(opened, name, schema, versions)
    try:
        size = file.seek(0, 2)
        with zipfile.ZipFile(file) as archive:
            if inflated := inflation(archive.infolist(), size):
                raise PlanFileError(f"{name} {inflated}")
            if HEADER not in archive.namelist():
                raise PlanFileError(f"{name} is not a {schema} file: it has no header")
            header = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("schema") != schema:
                raise PlanFileError(f"{name} is not a {schema} file")
            if type(header.get("version")) is not int or header["version"] not in versions:
                raise PlanFileError(
                    f"{name} has version {header.get('version')!r} of the {schema} format, expected "
                    f"{' or '.join(map(str, versions))}; read it with the manyways that wrote it, or plan again"
                )
            arrays = {
                entry.filename.removesuffix(".npy"): _array(archive, entry)
                for entry in archive.infolist()
                if entry.filename != HEADER
            }
            return header, arrays
    except PlanFileError:
        raise
    except zipfile.BadZipFile:
        raise PlanFileError(f"{name} is not a {schema} file, or is truncated") from None
    except OSError as error:
        raise PlanFileError(f"cannot read {name}: {error.strerror or error}") from None
    except DAMAGED as error:
        raise PlanFileError(f"{name} is damaged: {reason(error)}") from None


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # dated 1980, so that the same content gives the same bytes
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as member, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns about escapes in damaged headers
        return np.lib.format.read_array(member, allow_pickle=False)
