"""The wheel in clean environments: `make wheel-check`, or python benchmarks/install.py [--release] [INTERPRETER ...]

Builds the wheel, installs it with the pinned versions into a new environment of each Python that it finds (3.10 to
3.13, on the PATH or from pyenv), and there imports it, fits a law and runs the command line. Prints one table; exit
code 1 if anything failed. Needs an index of packages, and some GB for the torch that PyPI has.

With --release (`make release-check`) it builds what a release consists of: a source archive, and the wheel from that
archive, so that nothing is missing in it. twine reads the metadata and renders the README as PyPI would. The wheel is
tried with this Python only, where others are not named.

With --studio it tells the way from an empty environment to a law on the page: pip install "symenum[studio]", symenum
studio, a table uploaded and searched, each with its seconds. Nothing but pip needs a network.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSIONS = ("3.10", "3.11", "3.12", "3.13")
MAX_IMPORT_SECONDS = 2.0  # of `import symenum`: people wait for it at every start of the command line

IMPORT = """
import sys, time
begin = time.perf_counter()
import symenum
print(time.perf_counter() - begin, "torch" in sys.modules, symenum.__file__)
"""
FIT = """
import numpy as np
from symenum import PSERegressor
X = np.random.default_rng(0).uniform(1, 3, (40, 2))
model = PSERegressor(max_time=20, random_state=0).fit(X, X[:, 0] ** 2 / X[:, 1])
print(model.best_expression_)
"""


@dataclass(frozen=True)
class Checked:
    """What one environment has shown; `fault` is empty where all went well."""

    python: str
    torch: str = ""
    installed: float = 0.0
    imported: float = 0.0
    law: str = ""
    command: str = ""
    fault: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--release", action="store_true", help="the source archive too, and what PyPI will say of both")
    parser.add_argument("--studio", action="store_true", help="from an empty environment to a law on the studio's page")
    parser.add_argument("interpreters", nargs="*", help="default: every Python 3.10 to 3.13 that can be found")
    options = parser.parse_args()
    interpreters = options.interpreters or (
        [sys.executable] if options.release or options.studio else find_interpreters()
    )
    with tempfile.TemporaryDirectory() as folder:
        wheel = release(Path(folder)) if options.release else build(Path(folder))
        print(f"{wheel.name}, {wheel.stat().st_size / 1024:.0f} KB")
        if options.studio:
            return max(way_to_the_page(interpreter, wheel) for interpreter in interpreters)
        results = [check(interpreter, wheel) for interpreter in interpreters]
    print(f"{'Python':8} {'torch':14} {'install':>9} {'import':>9}  law of the fit | law of the command line")
    for one in results:
        seconds = f"{one.installed:7.1f} s {one.imported:7.2f} s"
        print(f"{one.python:8} {one.torch:14} {seconds}  {one.fault or f'{one.law} | {one.command}'}")
    return int(any(one.fault for one in results) or not results)


def find_interpreters() -> list[str]:
    """One interpreter of each version: on the PATH, or among pyenv's."""
    found = []
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}"), *Path.home().glob(f".pyenv/versions/{version}.*/bin/python")]
        found += [str(path) for path in candidates if path and runs(str(path), version)][:1]
    return found


def runs(path: str, version: str) -> bool:
    """Whether it is an interpreter of that version: pyenv's shims may stand for none."""
    done = subprocess.run([path, "-V"], capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.startswith(f"Python {version}.")


def build(folder: Path) -> Path:
    """The wheel of a copy of the tracked files, so that no other file of the tree gets into it."""
    source = copy_of_tracked_files(folder)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder), str(source)]
    subprocess.run(command, check=True)
    (wheel,) = folder.glob("symenum-*.whl")
    return wheel


def release(folder: Path) -> Path:
    """The wheel of a source archive, both as PyPI would take them; ends the program where it would not."""
    source, made, tools = copy_of_tracked_files(folder), folder / "dist", folder / "tools"
    subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
    python = str(tools / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "-q", "build"], check=True)
    subprocess.run([python, "-m", "build", "--outdir", str(made), str(source)], check=True, stdout=subprocess.DEVNULL)
    (archive,), (wheel,) = made.glob("symenum-*.tar.gz"), made.glob("symenum-*.whl")
    print(f"{archive.name}, {archive.stat().st_size / 1024:.0f} KB")
    if subprocess.run([python, "-m", "pip", "install", "-q", "twine"], check=False).returncode:
        print("twine cannot be installed here: metadata and README are not checked")
    elif subprocess.run([python, "-m", "twine", "check", "--strict", str(archive), str(wheel)], check=False).returncode:
        sys.exit("twine refuses the release: see above")
    return wheel


def copy_of_tracked_files(folder: Path) -> Path:
    source = folder / "source"
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    return source


def check(interpreter: str, wheel: Path) -> Checked:
    """Install and try; the environment is gone afterwards."""
    version = output([interpreter, "-c", "import platform; print(platform.python_version())"])
    with tempfile.TemporaryDirectory() as folder:
        python = str(Path(folder) / "venv" / "bin" / "python")
        try:
            output([interpreter, "-m", "venv", str(Path(folder) / "venv")])
            begin = time.perf_counter()
            output([python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)], folder)
            installed = time.perf_counter() - begin
            torch = output([python, "-c", "import torch; print(torch.__version__)"], folder)
            # Once before, so that the byte code is there, as it is from the second use on.
            output([python, "-c", IMPORT], folder)
            seconds, heavy, place = output([python, "-c", IMPORT], folder).split()
            law = output([python, "-c", FIT], folder)
            shown = output([str(Path(python).with_name("symenum")), "--version"], folder)
            command = output([str(Path(python).with_name("symenum")), "fit", "--example", "planets", "-q"], folder)
        except subprocess.CalledProcessError as error:
            words = (error.stderr or error.stdout or "").strip().splitlines()
            return Checked(version, fault=f"failed: {words[-1] if words else error}")
    fault = ""
    if float(seconds) > MAX_IMPORT_SECONDS:
        fault = f"import symenum took {float(seconds):.2f} s"
    elif heavy == "True":
        fault = "import symenum imported torch"
    elif not place.startswith(folder):
        fault = f"symenum came from {place}"
    elif shown != f"symenum {wheel.name.split('-')[1]}":
        fault = f"{wheel.name} says it is {shown}"
    elif law != "x1**2/x2":
        fault = f"the fit found {law}"
    return Checked(version, torch, installed, float(seconds), law, command, fault)


def way_to_the_page(interpreter: str, wheel: Path) -> int:
    """Install with the extra, start the studio, and search a table; prints the seconds of each. 0 if all went well."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()

        def told(what: str) -> None:
            print(f"{time.perf_counter() - begin:7.1f} s  {what}")

        place = Path(folder)
        output([interpreter, "-m", "venv", str(place / "venv")])
        told("python -m venv")
        pip = [str(place / "venv" / "bin" / "python"), "-m", "pip", "install", "-q"]
        output([*pip, "-c", str(ROOT / "constraints.txt"), f"{wheel}[studio]"], folder)
        told('pip install "symenum[studio]"')
        command = [str(place / "venv" / "bin" / "symenum"), "studio", "runs", "--port", "0", "--no-browser"]
        with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                address, _, token = server.stdout.readline().split(" ")[-1].strip().partition("/?token=")
                law = law_on_the_page(address, token, told)
            finally:
                server.terminate()
    print(f"the law on the page: {law}")
    return 0 if law == "x**2/z" else 1


def law_on_the_page(address: str, token: str, told: Any) -> str:
    """The law that the studio at this address finds for a table of its own."""

    def ask(path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        headers = {"X-Symenum-Token": token, "Content-Type": kind}
        with urllib.request.urlopen(urllib.request.Request(f"{address}{path}", body, headers)) as answer:
            content: bytes = answer.read()
            return content

    page = ask("/").decode()
    assert "<script" in page
    told("the page is there")
    rows = [f"{x / 8!r},{z / 4!r},{(x / 8) ** 2 / (z / 4)!r}" for x in range(7, 21) for z in range(5, 15)]
    uploaded = json.loads(ask("/api/tables?name=my.csv", "\n".join(["x,z,y", *rows]).encode(), "text/csv"))
    wish = {"table": uploaded["table"], "target": "y", "inputs": ["x", "z"], "max_time": 20}
    run = json.loads(ask("/api/runs", json.dumps(wish).encode()))["id"]
    told("a table uploaded and its search started")
    while True:
        shown = json.loads(ask(f"/api/runs/{run}"))
        if shown["status"] not in ("waiting", "running"):
            break
        time.sleep(0.2)
    told(f"the search is {shown['status']} {shown['message']}")
    return str(shown["front"][shown["selected"]]["text"]) if shown["front"] else ""


def output(command: list[str], folder: str | None = None) -> str:
    """What a command prints; run where no source tree lies, so that the installed package is what is tried."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
