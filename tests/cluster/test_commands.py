"""`symenum cluster check` and `symenum bench run --cluster`: what they say; a bench has the rows that it has here."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from cluster.unreliable import Unreliable

from symenum import cluster as cluster_room
from symenum.bench import run as bench_run
from symenum.bench.jobs import BenchPlan, Job, Row
from symenum.bench.run import Limits, run_plan
from symenum.bench.store import Store, read_rows
from symenum.cli import main
from symenum.cluster import Crew, InProcess, check
from symenum.cluster.dask_executor import CONNECT_SECONDS

# A run that finds nothing: a law would be judged in one more process.
ANSWER = (
    "import json, pathlib, sys; job, result = sys.argv[1:]; seed = json.load(open(job))['job']['seed'];"
    " pathlib.Path(result).write_text(json.dumps({'laws': [], 'selected': 0, 'ended': f'{seed}', 'seconds': 0.5}))"
)


def rows_without_clocks(folder: Path) -> list[Row]:
    rows = [dataclasses.replace(row, wall=0.0, peak=0) for row in read_rows(folder)[1]]
    return sorted(rows, key=lambda row: row.job.key)


@contextmanager
def at(executor: object):  # type: ignore[no-untyped-def]
    yield executor


def checked(monkeypatch: pytest.MonkeyPatch, executor: object, *words: str) -> tuple[int, str]:
    monkeypatch.setattr(cluster_room, "connected", lambda address: at(executor), raising=False)
    found = CliRunner().invoke(main, ["cluster", "check", "a:1", *words])
    return found.exit_code, found.output


def test_check_names_the_workers_and_says_why_one_does_not_take_part(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Unreliable(2, threads=3)
    executor.identity["w1"] = {"symenum": "0.0.9"}
    executor.memory = {"w0": 3 << 30}
    code, output = checked(monkeypatch, executor, "--no-measure")
    assert code == 0
    assert "w0: 3 threads, 3.0 GiB, torch" in output
    assert "w1: does not take part: it has symenum 0.0.9" in output


def test_check_without_a_usable_worker_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Unreliable(1)
    executor.identity["w0"] = {"operators": "0"}
    code, output = checked(monkeypatch, executor)
    assert code == 1
    assert "has no worker that can be used" in output


def test_a_worker_is_measured_by_a_pass_and_by_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_INPUTS", 2)
    crew = Crew(InProcess())
    crew.gathered(1, 5.0)
    (one,) = check.measure_crew(crew)
    assert one.worker.name == "this process"
    assert one.rate > 0
    assert one.answer > 0
    assert one.bandwidth > 0


@pytest.mark.parametrize("address", ["127.0.0.1:9", "tcp://127.0.0.1:9"])
def test_an_address_where_nobody_answers_ends_with_1(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("symenum.cluster.dask_executor.connect_dask.__defaults__", (0.3,))
    assert CONNECT_SECONDS <= 10
    found = CliRunner().invoke(main, ["cluster", "check", address])
    assert found.exit_code == 1
    assert "no Dask scheduler answered at tcp://127.0.0.1:9 within 0.3 s" in found.output


@pytest.mark.parametrize("address", ["blah", "0", "-1", "tcp://host", "tcp://:8786", "tcp://host:99999"])
def test_what_is_no_address_is_refused_at_once_by_fit_too(address: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    (tmp_path / "data.csv").write_text("x,y\n" + "".join(f"{i},{2 * i}\n" for i in range(9)))
    for command in (["cluster", "check", "--", address], ["fit", str(tmp_path / "data.csv"), f"--cluster={address}"]):
        found = CliRunner().invoke(main, command)
        assert found.exit_code == 1
        assert "is no address: give one such as tcp://host:8786" in found.output
        assert "Traceback" not in found.output


def test_a_bench_on_a_cluster_keeps_the_rows_of_a_bench_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        bench_run, "worker_command", lambda job, result: [sys.executable, "-c", ANSWER, str(job), str(result)]
    )
    jobs = tuple(Job("nguyen", name, "symenum", seed) for name in ("Nguyen-1", "Nguyen-2") for seed in (0, 1))
    plan = BenchPlan(jobs, ("symenum",), ())
    limits = Limits(1.0, memory=1 << 30)
    deaths = iter([False, True])
    executor = Unreliable(3, lambda name, request: "dies" if next(deaths, False) else "fine")
    run_plan(plan, tmp_path / "there", limits, "v", "c", cluster=executor)
    assert len(executor.names) == 2
    bench_run.run_jobs(jobs, _opened(tmp_path / "here"), limits, "v", command=bench_run.worker_command)
    assert rows_without_clocks(tmp_path / "there") == rows_without_clocks(tmp_path / "here")
    assert [row.words for row in rows_without_clocks(tmp_path / "there")] == ["0", "1", "0", "1"]


def _opened(folder: Path) -> Store:
    store = Store(folder)
    store.open({"version": "v", "max_time": 1.0, "cores": 1, "memory": 1 << 30}, "c")
    return store
