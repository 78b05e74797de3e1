"""The store of rows, and output folders that cannot be used."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from small_studies import kept_rows

import manyways as mw
from manyways.errors import OutputError
from manyways.studies.store import FILE, Store


def test_other_settings_in_an_old_folder_are_named(tmp_path):
    mw.paper("tradeoff", out=tmp_path, workers=1, trials=1, values=[1.0])
    before = kept_rows(tmp_path)
    with pytest.raises(OutputError, match=r"other settings \(trials: 1 there, 2 here\).* choose another output folder"):
        mw.paper("tradeoff", out=tmp_path, workers=1, trials=2, values=[1.0])
    assert kept_rows(tmp_path) == before


def test_two_runs_on_one_folder(tmp_path):
    with Store(tmp_path), pytest.raises(OutputError, match="another run is using it"):
        Store(tmp_path)
    Store(tmp_path).__exit__()


def add_large_rows(store: Store) -> None:
    for number in range(1000):
        store.add("s", str(number), {"error": None, "routes": "x" * 4000})


def test_a_disk_that_fills_up(tmp_path):
    with Store(tmp_path) as store:
        store.add("s", "first", {"error": None})
        store._file.execute("PRAGMA max_page_count = 10")  # SQLite then reports what it does on a full disk
        with pytest.raises(OutputError, match=r"the disk is full; the rows written so far are kept: make room"):
            add_large_rows(store)
        written = store.rows("s").keys()
    with Store(tmp_path) as store:
        assert store.rows("s").keys() == written >= {"first"}


def test_a_real_disk_that_fills_up(tmp_path):
    """On a file system of 256 KiB, if the tests are allowed to mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        with Store(disk) as store, pytest.raises(OutputError, match="the disk is full"):
            add_large_rows(store)
        with Store(disk) as store:
            assert len(store.rows("s")) > 10
    finally:
        subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("folder", ["/proc/nowhere", __file__])
def test_a_folder_that_cannot_be_made(folder):
    with pytest.raises(OutputError, match="cannot make the folder"):
        Store(Path(folder))


def test_a_file_that_is_not_a_file_of_rows(tmp_path):
    (tmp_path / FILE).write_bytes(b"not a database at all " * 100)
    with pytest.raises(OutputError, match="damaged or not a file of rows"):
        Store(tmp_path)
