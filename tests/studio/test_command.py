"""`symenum studio`: the real server on a real port, and real searches behind it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import uvicorn
from click.testing import CliRunner

from symenum.studio.command import listen, server_config, studio_command
from symenum.studio.security import own_hosts
from symenum.studio.server import make_app
from symenum.studio.streams import MAX_STREAMS

TOKEN = "a-token-of-24-characters"
PATIENCE = 120.0  # seconds until a test gives up: the machine may be busy, and nothing here is timed


class Server:
    """A server in a thread of this process, as the command starts it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listening = listen("127.0.0.1", 0)
        self.port = listening.getsockname()[1]
        app = make_app(folder, TOKEN, own_hosts("127.0.0.1", self.port), self.port)
        self._server = uvicorn.Server(server_config(app))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [listening]})
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join()

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: bytes | dict[str, Any] | None = None) -> tuple[int, Any]:
        connection = self.connect()
        headers = {"X-Symenum-Token": TOKEN}
        if isinstance(body, dict):
            body, headers["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, json.loads(content)

    def open_stream(self, run: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = self.connect()
        connection.request("GET", f"/api/runs/{run}/events", headers={"X-Symenum-Token": TOKEN})
        return connection, connection.getresponse()

    def wait_for_a_stream(self, run: str) -> bool:
        """Whether a stream can be opened in the end: places of those that went become free."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            connection, answer = self.open_stream(run)
            status = answer.status
            answer.close()
            connection.close()
            if status == 200:
                return True
            time.sleep(0.1)
        return False

    def wait(self, run: str, fine: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first snapshot of the run for which this holds."""
        give_up = time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            _, shown = self.ask("GET", f"/api/runs/{run}")
            if fine(shown):
                return shown
            if shown["status"] in ("finished", "failed") and "report.html" in shown["files"]:
                break
            time.sleep(0.1)
        raise AssertionError(f"the run stayed {shown}")


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    servers: list[Server] = []

    def start(folder: Path) -> Server:
        folder.mkdir(exist_ok=True)
        servers.append(Server(folder))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def table() -> bytes:
    """Rows with noise: on exact ones the search ends at once."""
    random = np.random.default_rng(0)
    X = random.uniform(1, 3, (40, 2))
    lines = [f"{a},{b},{2.5 * a * a / b + noise}" for (a, b), noise in zip(X, random.normal(0, 0.02, 40), strict=True)]
    return "\n".join(["mass,<b>width</b>,force", *lines]).encode()


def start_search(server: Server, **more: Any) -> str:
    _, described = server.ask("POST", "/api/tables?name=data.csv", table())
    wish = {"table": described["table"], "target": "force", "inputs": [], "max_time": 600, **more}
    status, answer = server.ask("POST", "/api/runs", wish)
    assert status == 201, answer
    return str(answer["id"])


def is_over(shown: dict[str, Any]) -> bool:
    return shown["status"] not in ("waiting", "running")


def test_from_a_table_to_its_law_with_a_stop_a_restart_and_a_resume(serve, tmp_path) -> None:
    server = serve(tmp_path / "runs")
    run = start_search(server, parameters={"max_complexity": 20})
    server.wait(run, lambda shown: shown["status"] == "running" and shown["front"])
    assert server.ask("POST", f"/api/runs/{run}/stop")[0] == 200
    stopped = server.wait(run, is_over)
    assert stopped["status"] == "stopped"
    assert [column["label"] for column in stopped["columns"]] == ["mass", "<b>width</b>"]
    server.close()

    again = serve(tmp_path / "runs")
    assert again.ask("GET", f"/api/runs/{run}")[1]["status"] == "stopped"
    assert again.ask("POST", f"/api/runs/{run}/resume", {"max_time": 3})[1] == {"status": "waiting"}
    finished = again.wait(run, lambda shown: shown["status"] == "finished" and "report.html" in shown["files"])
    assert finished["iteration"] > stopped["iteration"]
    law = finished["front"][finished["selected"]]
    assert "mass**2" in law["text"]
    status, details = again.ask("GET", f"/api/runs/{run}/laws/{finished['selected']}")
    assert (status, details["text"]) == (200, law["text"])


def test_a_search_outlives_a_thousand_streams_a_closed_server_and_is_seen_killed(serve, tmp_path) -> None:
    server = serve(tmp_path / "runs")
    run = start_search(server)
    server.wait(run, lambda shown: shown["status"] == "running" and shown["front"])
    opened = [server.open_stream(run) for _ in range(MAX_STREAMS)]
    assert {answer.status for _, answer in opened} == {200}
    assert all(answer.readline() == b"event: snapshot\n" for _, answer in opened[:3])
    refused = 0
    for _ in range(1_000 - MAX_STREAMS):
        connection, answer = server.open_stream(run)
        refused += answer.status == 503
        connection.close()
    assert refused == 1_000 - MAX_STREAMS
    step = server.ask("GET", f"/api/runs/{run}")[1]["iteration"]
    server.wait(run, lambda shown: shown["iteration"] > step)
    for connection, _ in opened:
        connection.close()
    assert server.wait_for_a_stream(run)
    server.close()

    again = serve(tmp_path / "runs")
    assert again.wait(run, lambda shown: shown["iteration"] > step)["status"] == "running"
    process = json.loads((tmp_path / "runs" / run / "run.json").read_text())["process"]["pid"]
    os.kill(process, signal.SIGKILL)
    killed = again.wait(run, is_over)
    assert killed["status"] == "killed"
    assert killed["front"]
    assert "resume" in killed["message"]


def test_a_table_that_cannot_be_searched_is_a_message_on_its_run(serve, tmp_path) -> None:
    server = serve(tmp_path / "runs")
    _, described = server.ask("POST", "/api/tables?name=data.csv", b"x,y\n1,a\n2,b\n")
    _, answer = server.ask("POST", "/api/runs", {"table": described["table"], "target": "y", "max_time": 1})
    failed = server.wait(answer["id"], is_over)
    assert failed["status"] == "failed"
    assert "'y'" in failed["message"]


# The command itself


@pytest.fixture
def not_served(monkeypatch: pytest.MonkeyPatch) -> list[list[socket.socket]]:
    """The sockets that the command would have served."""
    seen: list[list[socket.socket]] = []

    def run(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        seen.append(sockets)
        for one in sockets:
            one.close()

    monkeypatch.setattr(uvicorn.Server, "run", run)
    return seen


def command(*arguments: str | Path) -> Any:
    return CliRunner().invoke(studio_command, [*map(str, arguments), "--no-browser"])


def test_the_address_is_printed_with_the_token_that_the_folder_keeps(not_served, tmp_path) -> None:
    first, second = (command(tmp_path / "runs", "--port", "0").stdout.split("token=")[1] for _ in range(2))
    assert first == second
    assert len(first.strip()) >= 43


def test_it_listens_on_this_machine_only(not_served, tmp_path) -> None:
    result = command(tmp_path, "--port", "0")
    assert "http://127.0.0.1:" in result.stdout
    everywhere = command(tmp_path, "--port", "0", "--host", "0.0.0.0")
    assert "whoever reaches this machine" in everywhere.stderr


def test_a_port_that_is_taken_gives_the_next_one_and_says_so(not_served, tmp_path) -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        result = command(tmp_path, "--port", port)
    assert result.exit_code == 0
    assert f"Port {port} is taken" in result.stderr
    assert f":{port}/" not in result.stdout


@pytest.mark.parametrize("token", ["short", "with spaces and ünicode"])
def test_a_poor_token_is_refused(not_served, tmp_path, token) -> None:
    result = command(tmp_path, "--token", token)
    assert result.exit_code == 2
    assert "at least 16" in result.stderr


def test_a_folder_that_cannot_be_written_is_said(not_served, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    result = command(tmp_path / "file" / "runs")
    assert result.exit_code == 2
    assert "name another" in result.stderr


def test_a_host_that_is_not_ours_is_said(not_served, tmp_path) -> None:
    result = command(tmp_path, "--host", "192.0.2.1", "--port", "0")
    assert result.exit_code == 2
    assert "--host 192.0.2.1" in result.stderr


def test_without_the_extra_the_command_says_what_to_install(not_served, tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = command(tmp_path)
    assert result.exit_code == 2
    assert "pip install 'symenum[studio]'" in result.stderr
