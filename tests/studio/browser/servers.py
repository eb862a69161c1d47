"""Real servers for the tests of the page, and the tables that they are given."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

__all__ = ["Studio", "swings", "table"]

TOKEN = "token-of-the-browser-tests"
SEARCH = 60.0  # seconds of a search that a test ends itself


class Studio:
    """A server process on a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start the server; after the first time at the same port."""
        command = [sys.executable, "-m", "symenum", "studio", str(self.folder)]
        options = ["--port", str(self.port), "--no-browser", "--token", TOKEN]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = self.process.stdout.readline().split()[-1]
        self.port = urlsplit(address).port or 0

    def stop(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)
        self.process.stdout.close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def first_address(self) -> str:
        return f"{self.address}/?token={TOKEN}"

    def request(self, path: str, body: bytes | None = None) -> Any:
        """The answer as an open response; a body makes it a POST."""
        kind = "application/octet-stream" if path.startswith("/api/tables") else "application/json"
        headers = {"X-Symenum-Token": TOKEN, "Content-Type": kind}
        return urllib.request.urlopen(urllib.request.Request(self.address + path, body, headers), timeout=60)

    def ask(self, path: str, body: bytes | None = None) -> Any:
        with self.request(path, body) as answer:
            return json.load(answer)

    def search(self, name: str, table: str, **wish: Any) -> str:
        """Start a search for the last column of a CSV text; returns the run's name."""
        shown = self.ask(f"/api/tables?name={quote(name)}.csv", table.encode())
        columns = [column["name"] for column in shown["columns"]]
        default = {
            "kind": "law",
            "target": columns[-1],
            "inputs": columns[:-1],
            "operators": "koza",
            "max_time": SEARCH,
        }
        whole = {"table": shown["table"], "name": name, **default, **wish}
        return str(self.ask("/api/runs", json.dumps(whole).encode())["id"])

    def snapshots(self, run: str) -> Iterator[dict[str, Any]]:
        """The stream of a run."""
        with self.request(f"/api/runs/{quote(run)}/events") as stream:
            for line in stream:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])

    def finished(self, run: str) -> dict[str, Any]:
        """Wait for the end of a run."""
        return next(shown for shown in self.snapshots(run) if shown["status"] not in ("waiting", "running"))

    def end_all(self) -> None:
        """End the server and what it has started."""
        for run in self.ask("/api/runs"):
            if run["status"] in ("waiting", "running"):
                self.ask(f"/api/runs/{quote(run['id'])}/stop", b"{}")
                self.finished(run["id"])
        self.stop()


def table(rows: int = 60, noise: float = 0.0, seed: int = 0) -> str:
    """A CSV text: mass, speed and height with the energy 0.5·mass·speed² + 9.81·mass·height."""
    rng = np.random.default_rng(seed)
    mass, speed, height = rng.uniform(1, 5, rows), rng.uniform(0.5, 3, rows), rng.uniform(0, 10, rows)
    energy = 0.5 * mass * speed**2 + 9.81 * mass * height + rng.normal(0, noise or 1e-300, rows)
    lines = (",".join(map(repr, row)) for row in np.column_stack([mass, speed, height, energy]).tolist())
    return "\n".join(["mass,speed,height,energy", *lines, ""])


def swings() -> str:
    """A CSV text: time, place and speed of a damped swing."""
    time = np.linspace(0, 12, 240)
    place, speed = np.exp(-0.1 * time) * np.cos(time), -np.exp(-0.1 * time) * (np.sin(time) + 0.1 * np.cos(time))
    lines = (",".join(map(repr, row)) for row in np.column_stack([time, place, speed]).tolist())
    return "\n".join(["t,x,v", *lines, ""])
