"""A file is whole or as it was; the cache computes again what it cannot read."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest

from symenum.core.files import cached_numbers, key_of, write_whole


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "law.txt"
    write_whole(path, "old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["law.txt"]


def test_a_folder_in_the_place_of_the_file_is_named_alone(tmp_path: Path) -> None:
    (tmp_path / "law").mkdir()
    with pytest.raises(IsADirectoryError) as raised:
        write_whole(tmp_path / "law", "new")
    assert str(raised.value).endswith(f"'{tmp_path / 'law'}'")  # without " -> None"


def test_threads_that_write_one_file_leave_one_of_their_contents_whole(tmp_path: Path) -> None:
    path = tmp_path / "law.txt"
    contents = [str(digit) * 100_000 for digit in range(8)]
    failed: list[BaseException] = []

    def write(content: str) -> None:
        try:
            for _ in range(5):
                write_whole(path, content)
        except BaseException as error:  # seen by the test, not by the thread's hook
            failed.append(error)

    threads = [threading.Thread(target=write, args=[content]) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert path.read_text() in contents
    assert [entry.name for entry in tmp_path.iterdir()] == ["law.txt"]


def test_numbers_come_back_from_the_cache_and_are_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SYMENUM_CACHE", str(tmp_path))
    calls: list[int] = []

    def compute() -> np.ndarray:
        calls.append(1)
        return np.array([3, 1, 4], dtype=np.int64)

    key = key_of("a", 1)
    for _ in range(3):
        assert cached_numbers(key, compute, lambda found: len(found) == 3).tolist() == [3, 1, 4]
    assert len(calls) == 1
    assert np.load(tmp_path / f"{key}.npy").tolist() == [3, 1, 4]  # a file that NumPy reads
