"""The sbatch script of the guide under a real Slurm: one node with two slots, set up by one_node.sh (needs root).

    apt-get install -y slurm-wlm munge
    python benchmarks/slurm/try.py [--only two cancelled limit]

`two`: a search over two jobs, driver and worker in one, a second worker in the other. `cancelled`: the same, and the
second job is cancelled in the middle: the search goes on with one worker. `limit`: a job that reaches its time limit:
Slurm sends TERM, the driver ends, and its results are there; then it is submitted again and goes on. Each prints what
it found, and the script ends with 1 where something is not as it should be.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
SCRIPT = HERE / "search.sbatch"
WAIT = 240.0  # seconds for a job to end: Slurm looks once in some seconds, and Python starts slowly on a busy machine
SECONDS = 90  # of a search
CANCELLED_AFTER = 4.0  # seconds after the progress has shown both workers
LIMIT = "00:02:00"  # of the job that reaches it: TERM comes 20 to 80 s before


def command(*words: str, env: dict[str, str]) -> str:
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True, cwd=env["SYMENUM_FOLDER"]).stdout


def submit(env: dict[str, str], *words: str) -> str:
    return command("sbatch", "--parsable", *words, env=env).strip().partition(";")[0]


def state_of(job: str, env: dict[str, str]) -> str:
    found = re.search(r"JobState=(\w+)", command("scontrol", "show", "job", job, env=env))
    return found[1] if found else "gone"


def wait_for(job: str, env: dict[str, str], *, wanted: tuple[str, ...]) -> str:
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        state = state_of(job, env)
        if state in wanted:
            return state
        time.sleep(1.0)
    return state_of(job, env)


ENDED = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


def table_in(folder: Path) -> Path:
    """A noisy table, on which a search uses all of its time."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.5, 3, (80, 2))
    y = X[:, 0] * np.sin(1.3 * X[:, 1]) + 0.1 * rng.normal(size=80)
    path = folder / "table.csv"
    lines = ["a,b,y", *(",".join(f"{value:.6g}" for value in row) for row in np.column_stack([X, y]))]
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def log_of(job: str, folder: Path) -> str:
    path = folder / f"symenum-{job}.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


def two(env: dict[str, str], folder: Path, *, cancel: bool = False) -> bool:
    name = "cancelled" if cancel else "two"
    env = {**env, "SYMENUM_SCHEDULER": str(folder / f"{name}.json"), "SYMENUM_SECONDS": str(SECONDS)}
    driver = submit(env, str(SCRIPT), str(table_in(folder)), str(folder / name))
    worker = submit(env, "--dependency", f"after:{driver}", str(SCRIPT), "worker")
    wait_for(worker, env, wanted=("RUNNING", *ENDED))
    if cancel:
        end = time.monotonic() + SECONDS
        while "2 workers" not in log_of(driver, folder) and time.monotonic() < end:
            time.sleep(0.2)
        time.sleep(CANCELLED_AFTER)
        command("scancel", worker, env=env)
    state = wait_for(driver, env, wanted=ENDED)
    if not cancel:
        command("scancel", worker, env=env)
    wait_for(worker, env, wanted=ENDED)
    text = log_of(driver, folder)
    counts = [int(found) for found in re.findall(r"(\d+) workers?,", text)]
    seen = [count for count, before in zip(counts, [0, *counts], strict=False) if count != before]
    found = (folder / name / "front.csv").exists()
    print(f"{name}: {state}; workers in the progress, in turn: {seen}; results: {'yes' if found else 'NO'}", flush=True)
    return found and state == "COMPLETED" and 2 in seen and (not cancel or seen[-1] == 1)


def limit(env: dict[str, str], folder: Path) -> bool:
    env = {**env, "SYMENUM_SCHEDULER": str(folder / "limit.json"), "SYMENUM_SECONDS": "600"}
    results = folder / "limit"
    request = ("--time", LIMIT, str(SCRIPT), str(table_in(folder)), str(results))
    job = submit(env, *request)
    state = wait_for(job, env, wanted=ENDED)
    first = (results / "front.csv").exists()
    ended = re.findall(r"^(?:Ended|You ended).*$", log_of(job, folder), re.MULTILINE)
    print(f"limit: {state}; {' '.join(ended)} results: {'yes' if first else 'NO'}", flush=True)
    again = submit({**env, "SYMENUM_SECONDS": "10"}, *request)
    state = wait_for(again, env, wanted=ENDED)
    ended = re.findall(r"^(?:Ended|You ended).*$", log_of(again, folder), re.MULTILINE)
    print(f"limit, submitted again: {state}; {' '.join(ended)}", flush=True)
    return first and state == "COMPLETED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", choices=("two", "cancelled", "limit"), default=("two", "cancelled", "limit")
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="symenum-slurm-") as place:
        folder = Path(place)
        env = {**os.environ, "SLURM_CONF": str(folder / "slurm" / "slurm.conf"), "SYMENUM_FOLDER": place}
        env["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{env['PATH']}"
        set_up = ["bash", str(HERE / "one_node.sh")]
        folder.chmod(0o755)
        subprocess.run([*set_up, "start", str(folder / "slurm")], check=True)
        try:
            right = {
                "two": lambda: two(env, folder),
                "cancelled": lambda: two(env, folder, cancel=True),
                "limit": lambda: limit(env, folder),
            }
            fine = [right[name]() for name in options.only]
            if not all(fine):
                for log in sorted(folder.glob("symenum-*.log")):
                    print(f"--- {log.name}\n{log.read_text(encoding='utf-8')[-3000:]}", file=sys.stderr)
        finally:
            subprocess.run([*set_up, "stop", str(folder / "slurm")], check=False)
    raise SystemExit(not all(fine))


if __name__ == "__main__":
    main()
