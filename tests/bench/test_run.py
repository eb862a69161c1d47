"""Jobs end as rows: good ones, crashes and kills; what is done is not done again; no command outlives its limits."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from symenum.bench import run
from symenum.bench.jobs import Job
from symenum.bench.run import Limits, Progress, judge_again, run_jobs, run_limited, watches_memory
from symenum.bench.store import Store, read_rows
from symenum.bench.systems import Found, Law, Sighting

SETTINGS = {"version": "v", "max_time": 1.0, "cores": 1, "memory": 1 << 30}
LAWS = Found((Law("x1", 0, 1.0), Law("x1**3 + x1**2 + x1", 6, 0.0)), 1, "found")


class Fake:
    """A command for each job: what the job's problem tells, or `code`."""

    def __init__(self, code: str) -> None:
        self.code = code
        self.calls = 0

    def __call__(self, job: Path, result: Path) -> list[str]:
        self.calls += 1
        answer = json.dumps(asdict(replace(LAWS, seconds=0.1)))
        text = f"answer, result = {answer!r}, {str(result)!r}\n{self.code}"
        return [sys.executable, "-c", text]


GOOD = "open(result, 'w').write(answer)"


def start(folder: Path) -> Store:
    store = Store(folder)
    store.open(SETTINGS, "c")
    return store


def test_a_run_is_judged_and_kept_and_not_run_again(tmp_path: Path) -> None:
    store, fake, told = start(tmp_path), Fake(GOOD), list[Progress]()
    jobs = [Job("nguyen", name, "symenum", 0) for name in ("Nguyen-1", "Nguyen-2")]
    assert run_jobs(jobs, store, Limits(1.0), "v", on_progress=told.append, command=fake) == 2
    rows = {row.job.problem: row for row in read_rows(tmp_path)[1]}
    first, second = rows["Nguyen-1"], rows["Nguyen-2"]
    assert (first.solved, first.numeric, first.symbolic, first.judged) == (True, True, "yes", 1)
    assert first.r2 == pytest.approx(1.0)
    assert (first.found_at, second.found_at) == (0.1, None)  # at the end, where a system tells no more
    assert (second.solved, second.numeric, second.symbolic) == (False, False, "no")
    assert [(progress.done, progress.total) for progress in told] == [(1, 2), (2, 2)]
    assert told[-1].seconds_left == 0
    assert run_jobs(jobs, store, Limits(1.0), "v", command=fake) == 0
    assert fake.calls == 2


@pytest.mark.parametrize(
    ("code", "ended", "words"),
    [
        ("raise RuntimeError('broken')", "crashed", "RuntimeError: broken"),
        ("pass", "crashed", "without a result"),
        ("import time; time.sleep(60)", "out of time", ""),
        ("h = []\nwhile True: h.append(bytearray(10_000_000))", "out of memory", ""),
    ],
)
def test_a_crash_or_a_kill_is_a_row(
    tmp_path: Path, code: str, ended: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_START_SECONDS", 1.0)
    store = start(tmp_path)
    run_jobs([Job("nguyen", "Nguyen-1", "symenum", 0)], store, Limits(1.0, memory=300 << 20), "v", command=Fake(code))
    (row,) = read_rows(tmp_path)[1]
    assert row.ended == ended
    assert words in row.words
    assert not row.solved
    assert row.law is None


def test_an_interrupted_bench_keeps_what_is_done_and_goes_on(tmp_path: Path) -> None:
    store, fake = start(tmp_path), Fake(GOOD)
    jobs = [Job("nguyen", f"Nguyen-{i}", "symenum", 0) for i in range(1, 6)]

    def interrupt(progress: Progress) -> None:
        if progress.done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, store, Limits(1.0), "v", on_progress=interrupt, command=fake)
    assert len(read_rows(tmp_path)[1]) == 2
    assert run_jobs(jobs, store, Limits(1.0), "v", command=fake) == 3
    assert len(read_rows(tmp_path)[1]) == 5


def test_rows_are_judged_again_where_the_rules_have_changed(tmp_path: Path) -> None:
    store = start(tmp_path)
    run_jobs([Job("nguyen", "Nguyen-1", "symenum", 0)], store, Limits(1.0), "v", command=Fake(GOOD))
    (good,) = read_rows(tmp_path)[1]
    store.keep(replace(good, solved=False, symbolic="no"))
    assert judge_again(store, read_rows(tmp_path)[1]) == 1
    assert read_rows(tmp_path)[1] == [good]
    assert judge_again(store, read_rows(tmp_path)[1]) == 0


def test_the_law_is_found_when_it_first_stands_on_the_front(tmp_path: Path) -> None:
    law = "x1**3 + x1**2 + x1"
    early = "x1*(x1**2 + x1 + 1)"  # the law in another form, which the last front does not have
    sightings = (Sighting(0.01, "x1"), Sighting(0.03, early), Sighting(0.07, law))
    result = asdict(replace(LAWS, sightings=sightings, seconds=0.1))

    class Told(Fake):
        def __call__(self, job: Path, result_path: Path) -> list[str]:
            return python(f"open({str(result_path)!r}, 'w').write({json.dumps(result)!r})")

    store = start(tmp_path)
    jobs = [Job("nguyen", f"Nguyen-{i}", "symenum", 0) for i in (1, 2)]
    run_jobs(jobs, store, Limits(1.0), "v", command=Told(""))
    found, missed = read_rows(tmp_path)[1]
    assert (found.solved, found.found_at) == (True, 0.03)
    assert found.sightings == sightings
    assert (missed.solved, missed.found_at) == (False, None)


def test_runs_side_by_side_give_the_same_rows(tmp_path: Path) -> None:
    store = start(tmp_path)
    jobs = [Job("nguyen", f"Nguyen-{i}", "symenum", 0) for i in range(1, 5)]
    assert run_jobs(jobs, store, Limits(1.0), "v", parallel=2, command=Fake(GOOD)) == 4
    assert [row.solved for row in read_rows(tmp_path)[1]] == [True, False, False, False]


def test_runs_side_by_side_do_not_share_a_core(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()

    class Timed(Fake):
        def __call__(self, job: Path, result: Path) -> list[str]:
            place = json.loads(job.read_text(encoding="utf-8"))["first_core"]
            # The first run waits for the three others.
            others = 3 if self.calls == 0 else 0
            self.code = (
                "import time\nfrom pathlib import Path\n"
                f"log, begin = Path({str(log)!r}), time.time()\n"
                f"while len(log.read_text().splitlines()) < {others}: time.sleep(0.05)\n"
                f"with log.open('a') as lines: lines.write(f'{place} {{begin}} {{time.time()}}\\n')\n{GOOD}"
            )
            return super().__call__(job, result)

    jobs = [Job("nguyen", f"Nguyen-{i}", "symenum", 0) for i in range(1, 5)]
    limits = Limits(10.0)
    run_jobs(jobs, start(tmp_path / "out"), limits, "v", parallel=2, command=Timed(GOOD))
    runs = sorted(tuple(map(float, line.split())) for line in log.read_text().splitlines())
    assert len(runs) == 4
    for (place, _, end), (other, begin, _) in pairwise(runs):
        assert place != other or end <= begin


def test_a_real_run_of_symenum(tmp_path: Path) -> None:
    store = start(tmp_path)
    run_jobs([Job("nguyen", "Nguyen-8", "symenum", 0)], store, Limits(10.0), "v")
    (row,) = read_rows(tmp_path)[1]
    assert (row.ended, row.solved) == ("done", True), row.words
    assert row.seconds is not None
    assert row.seconds < 10
    assert row.found_at is not None
    assert 0 < row.found_at <= row.seconds
    assert row.peak > 0


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
