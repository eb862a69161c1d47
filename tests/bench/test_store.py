"""A folder of results: resumed, refused or mended, and never overwritten."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from symenum.bench.jobs import row_to_json
from symenum.bench.store import Store, StoreError, read_rows

from .rows import make_row

SETTINGS = {"version": "0.1.0", "max_time": 5.0, "cores": 1, "memory": 1 << 30}


def test_a_row_comes_back_as_it_was_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "new")
    store.open(SETTINGS, "first command")
    store.keep(make_row())
    store.open(SETTINGS, "second command")
    manifest, rows, broken = read_rows(tmp_path / "new")
    assert rows == [make_row()]
    assert not broken
    assert manifest["commands"] == ["first command", "second command"]
    assert store.has(make_row().job)
    assert not store.has(make_row(seed=1).job)


@pytest.mark.parametrize(("name", "value"), [("version", "0.0.9"), ("max_time", 6.0), ("cores", 2), ("memory", 1)])
def test_results_of_another_version_or_other_limits_are_refused(tmp_path: Path, name: str, value: object) -> None:
    store = Store(tmp_path)
    store.open(SETTINGS, "c")
    store.keep(make_row())
    with pytest.raises(StoreError, match=f"{name} .*--out"):
        store.open({**SETTINGS, name: value}, "c")
    assert read_rows(tmp_path)[1] == [make_row()]


def test_a_half_written_row_is_put_aside_and_run_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.open(SETTINGS, "c")
    store.keep(make_row())
    store.keep(make_row(seed=1))
    path = tmp_path / "runs" / f"{make_row().job.key}.json"
    path.write_text(row_to_json(make_row())[:40], encoding="utf-8")
    assert read_rows(tmp_path)[2] == [path.name]
    (note,) = store.open(SETTINGS, "c")
    assert "run again" in note
    assert not store.has(make_row().job)
    assert store.has(make_row(seed=1).job)
    assert path.with_suffix(".broken").exists()


def test_two_benches_cannot_write_into_one_folder(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.locked(), pytest.raises(StoreError, match="being written by process"), Store(tmp_path).locked():
        pass
    with store.locked():
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


@pytest.mark.parametrize("text", ['{"pid": 999999999, "host": "HOST"}', "", "{"])
def test_a_lock_that_a_dead_process_left_is_taken_over(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock").write_text(text.replace("HOST", socket.gethostname()), encoding="utf-8")
    with Store(tmp_path).locked():
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()


def test_a_lock_of_another_machine_is_respected(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text('{"pid": 1, "host": "elsewhere"}', encoding="utf-8")
    with pytest.raises(StoreError, match="elsewhere"), Store(tmp_path).locked():
        pass


def test_folders_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no results"):
        read_rows(tmp_path / "nowhere")
    (tmp_path / "bench.json").write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="cannot be read"):
        read_rows(tmp_path)
    (tmp_path / "bench.json").write_text("[]", encoding="utf-8")
    with pytest.raises(StoreError, match="not the description"):
        Store(tmp_path).open(SETTINGS, "c")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="is a file"):
        Store(tmp_path / "file").open(SETTINGS, "c")
    (tmp_path / "bench.json").unlink()
    (tmp_path / "runs" / "x.json").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match=r"runs but no bench\.json"):
        Store(tmp_path).open(SETTINGS, "c")
