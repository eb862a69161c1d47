"""A command cannot outlive its limits, whatever it does."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from symenum.bench.limits import run_limited, watches_memory

LARGE = 1 << 34


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_a_good_command_is_done() -> None:
    ending = run_limited(python("print('hello')"), seconds=30, memory=LARGE)
    assert ending.how == "done"
    assert 0 < ending.seconds < 30


def test_a_crash_keeps_its_last_words() -> None:
    ending = run_limited(python("raise ValueError('so be it')"), seconds=30, memory=LARGE)
    assert ending.how == "crashed"
    assert ending.words.endswith("ValueError: so be it")


def test_one_that_ignores_its_limit_and_all_signals_is_killed() -> None:
    code = (
        "import signal, time\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM): signal.signal(s, signal.SIG_IGN)\n"
        "while True: time.sleep(0.1)"
    )
    begin = time.monotonic()
    ending = run_limited(python(code), seconds=1.0, memory=LARGE)
    assert ending.how == "out of time"
    assert time.monotonic() - begin < 4


@pytest.mark.skipif(not watches_memory(), reason="the memory of processes cannot be seen here")
def test_one_that_eats_memory_is_killed() -> None:
    code = "import time\nhoard = []\nwhile True:\n    hoard.append(bytearray(10_000_000)); time.sleep(0.01)"
    ending = run_limited(python(code), seconds=30, memory=200 << 20)
    assert ending.how == "out of memory"
    assert ending.peak < 1 << 30


@pytest.mark.skipif(not watches_memory(), reason="the memory of processes cannot be seen here")
def test_memory_of_children_counts_and_they_die_too(tmp_path: Path) -> None:
    child = (
        "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); b = bytearray(3 * 10**8); time.sleep(60)"
    )
    mark = tmp_path / "pid"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}, {str(mark)!r}])"
    ending = run_limited(python(code), seconds=30, memory=200 << 20)
    assert ending.how == "out of memory"
    time.sleep(0.5)
    status = Path("/proc") / mark.read_text() / "status"
    # Killed, it may stay as a zombie where nothing collects orphans (containers).
    assert not status.exists() or "State:\tZ" in status.read_text()


def test_it_can_be_stopped_from_outside() -> None:
    ending = run_limited(python("import time; time.sleep(60)"), seconds=60, memory=LARGE, stop=lambda: True)
    assert ending.how == "stopped"
    assert ending.seconds < 5
