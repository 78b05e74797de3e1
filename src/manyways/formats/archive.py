"""Our own files: a zip of arrays and one JSON header, written whole or not at all.

Nothing in it can run code: arrays are read without pickle. A file is written under a temporary name
beside its place and then renamed, so a reader never sees half a file.
"""

from __future__ import annotations

import io
import json
import os
import tempfile
import warnings
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyways.errors import OutputError, PlanFileError
from manyways.formats.npz import DAMAGED, inflation, reason

HEADER = "header.json"


def check_writable(path: Path) -> None:
    """Find out before the work whether its result can be written to `path`."""
    if "\0" in str(path):
        raise OutputError(f"cannot write {str(path)!r}: there can be no such file")
    try:
        if path.is_dir():
            raise OutputError(f"cannot write {path}: it is a folder")
        folder = path.parent
        if not folder.is_dir():
            raise OutputError(f"cannot write {path}: there is no folder {folder}")
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(f"cannot write {path}: {error.strerror}") from None


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under a temporary name and rename it into place."""
    check_writable(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)  # mkstemp makes private files; this one is for sharing
        os.replace(temporary, path)
    except BaseException as error:  # an interrupt, too, must leave nothing half-written
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise OutputError(f"cannot write {path}: {error.strerror}") from None
        raise


def pack(schema: str, version: int, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> bytes:
    """Header and arrays as one archive; the same content gives the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        text = json.dumps({"schema": schema, "version": version, **header}, indent=1, allow_nan=False)
        archive.writestr(_entry(HEADER), text)
        for name, array in arrays.items():
            with archive.open(_entry(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
    return buffer.getvalue()


def unpack(file: Path | BinaryIO, name: str, schema: str, version: int) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `pack` made, or say in one sentence why that is not possible; `name` is what errors call it."""
    try:
        if isinstance(file, Path) and not file.exists():
            raise PlanFileError(f"there is no file {name}")
        if isinstance(file, Path) and not file.is_file():
            what = "a folder" if file.is_dir() else "no regular file"
            raise PlanFileError(f"{name} is {what}, expected a {schema} file")
        size = file.stat().st_size if isinstance(file, Path) else file.seek(0, 2)
        with zipfile.ZipFile(file) as archive:
            if inflated := inflation(archive.infolist(), size):
                raise PlanFileError(f"{name} {inflated}")
            if HEADER not in archive.namelist():
                raise PlanFileError(f"{name} is not a {schema} file: it has no header")
            header = json.loads(archive.read(HEADER))
            if not isinstance(header, dict) or header.get("schema") != schema:
                raise PlanFileError(f"{name} is not a {schema} file")
            if header.get("version") != version:
                raise PlanFileError(
                    f"{name} has version {header.get('version')!r} of the {schema} format, this program reads version {version}; "
                    "use the manyways that wrote it, or plan again"
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
    entry = zipfile.ZipInfo(name)  # dated 1980: the time of writing is nobody's content
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(entry) as member, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what Python thinks of a header's escapes
        return np.lib.format.read_array(member, allow_pickle=False)
