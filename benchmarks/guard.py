"""The guard: a fixed small set of everything that must not get worse, each figure beside its floor.

    SYMENUM_DATA=../shared/data python benchmarks/guard.py [--raise] [--only NAME,…] [--json FILE]

Every figure is the better the higher it is. The floors are in floor.json; only `--raise` writes them, and it never
lowers one. Exit code 1: a figure is below its floor, was not measured, or has no floor yet; 2: it cannot start.

Each part runs in a process of its own, one after another, on two cores and without a GPU, whatever the machine has: so
figures of different machines compare. guard_parts.py holds the measurements; this file imports nothing of symenum.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
FLOORS = FOLDER / "floor.json"
CORES = 2
BUSY = 0.5  # mean load of the last minute: with nothing beside it, this machine showed 0.2 at most (uptime)
DATA = "SYMENUM_DATA"

PARTS: dict[str, tuple[str, ...]] = {
    "six": (),
    "srbench": ("srbench",),
    "fifty_dim": ("fifty_dim",),
    "chaotic": (),
    "emps": ("emps.csv",),
    "fuzz": (),
    "speed": (),
}
"""The parts, in the order in which they run, and the files below $SYMENUM_DATA that each needs."""


@dataclass(frozen=True)
class Figure:
    """A measured number. `of` is the highest value that is possible, where there is one; `words` are information."""

    value: float
    of: float | None = None
    words: str = ""


@dataclass(frozen=True)
class Floor:
    """The lowest value that is accepted is floor·(1 − tolerance_share) − tolerance; `reason` says why there is one."""

    floor: float | None = None
    tolerance: float = 0.0
    tolerance_share: float = 0.0
    reason: str = ""
    measured: str = ""

    @property
    def accepted(self) -> float | None:
        return None if self.floor is None else self.floor * (1 - self.tolerance_share) - self.tolerance


Figures = dict[str, Figure]
Floors = dict[str, Floor]
Measure = Callable[[str], Figures]


class GuardError(Exception):
    """The guard cannot start; the message says what to do."""


class PartError(Exception):
    """A part has ended without figures; the message is what it printed last."""


def read_floors(path: Path) -> Floors:
    """The floors of a file. A tolerance without a reason is refused: otherwise any figure may sink in silence."""
    try:
        floors = {name: Floor(**entry) for name, entry in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise GuardError(f"{path} cannot be read as floors: {error}") from error
    for name, floor in floors.items():
        if (floor.tolerance or floor.tolerance_share) and not floor.reason:
            raise GuardError(f"{path}: {name} has a tolerance but no reason for it: add one")
        if floor.tolerance < 0 or not 0 <= floor.tolerance_share < 1:
            raise GuardError(f"{path}: {name}: a tolerance is at least 0, a tolerance_share below 1")
    return floors


def write_floors(path: Path, floors: Floors) -> None:
    """Whole or not at all; what is a default is left out."""
    default = asdict(Floor())
    record = {
        name: {key: value for key, value in asdict(floor).items() if key == "floor" or value != default[key]}
        for name, floor in floors.items()
    }
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    temporary.replace(path)


def raised(floors: Floors, figures: Figures, measured: str) -> Floors:
    """The floors with those that a figure exceeds, or that are not set, put up to it. None goes down or away."""
    result = dict(floors)
    for name, figure in figures.items():
        old = floors.get(name, Floor())
        if math.isfinite(figure.value) and (old.floor is None or figure.value > old.floor):
            result[name] = replace(old, floor=figure.value, measured=measured)
    return result


def verdict(figure: Figure | None, floor: Floor | None) -> str | None:
    """What is wrong with a figure; None where nothing is."""
    if figure is None:
        return "NOT MEASUREMENTS"
    if floor is None or floor.accepted is None:
        return "NO FLOOR: run make guard-raise"
    if not figure.value >= floor.accepted:  # NaN, too, is below
        return "BELOW ITS FLOOR"
    return None


def compare(figures: Figures, floors: Floors) -> tuple[list[str], list[str]]:
    """The lines of the table, and one sentence for each figure that is not in order."""
    lines = [f"{'figure':24s} {'value':>8s} {'of':>5s} {'floor':>8s} {'accepted':>8s}"]
    faults = []
    for name in dict.fromkeys([*floors, *figures]):
        figure, floor = figures.get(name), floors.get(name)
        wrong = verdict(figure, floor)
        value = of = "-"
        words = ""
        if figure is not None:
            value, of, words = _number(figure.value), _number(figure.of), figure.words
        least = floor.accepted if floor else None
        lines.append(
            f"{name:24s} {value:>8s} {of:>5s} {_number(floor.floor if floor else None):>8s} {_number(least):>8s}"
            f"  {wrong or 'ok'}{'; ' if words else ''}{words}"
        )
        if wrong:
            faults.append(f"{name}: {wrong} (value {value}, accepted from {_number(least)})")
    return lines, faults


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.3f}"


def check_data(parts: Sequence[str], environment: Mapping[str, str]) -> None:
    """Missing data are an error, not a skip: a part that is left out guards nothing."""
    needed = [file for part in parts for file in PARTS[part]]
    if not needed:
        return
    root = environment.get(DATA)
    if not root:
        raise GuardError(f"set {DATA} to the folder that holds {', '.join(needed)} (here mostly ../shared/data)")
    absent = [file for file in needed if not (Path(root) / file).exists()]
    if absent:
        raise GuardError(f"{DATA} is {root}, which has no {', '.join(absent)}: set it to the folder that holds them")


def measure(part: str) -> Figures:
    """The figures of a part, from a process of its own."""
    with tempfile.TemporaryDirectory(prefix="symenum-guard-") as folder:
        result = Path(folder) / "figures.json"
        command = [sys.executable, str(FOLDER / "guard_parts.py"), part, str(result)]
        done = subprocess.run(
            command,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode or not result.exists():
            raise PartError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
        record = json.loads(result.read_text(encoding="utf-8"))
        return {name: Figure(**figure) for name, figure in record.items()}


def take_two_cores() -> None:
    """Keep this process and those that it starts on two cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


def facts() -> dict[str, str]:
    """Commit, date, machine, and how busy it is."""
    commit = subprocess.run(
        ["git", "-C", str(FOLDER), "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{models[0] if models else platform.machine()}, {CORES} of {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "python": platform.python_version(),
    }


def run(
    parts: Sequence[str],
    path: Path,
    *,
    raising: bool,
    json_path: Path | None,
    measuring: Measure,
    known: Mapping[str, str],
) -> int:
    """Measure the parts, print the table, put the floors up if that is asked for; gives back the exit code."""
    floors = read_floors(path)
    figures: Figures = {}
    failed = []
    begin = time.monotonic()
    for number, part in enumerate(parts, 1):
        print(f"[{number}/{len(parts)}] {part} …", end="", flush=True)
        start = time.monotonic()
        try:
            figures |= measuring(part)
        except PartError as error:
            failed.append(f"{part}: FAILED, see above")
            print(f" FAILED after {time.monotonic() - start:.0f} s\n{error}", flush=True)
        else:
            print(f" {time.monotonic() - start:.0f} s", flush=True)
    seconds = time.monotonic() - begin
    if raising:
        measured = f"{known['date']}, commit {known['commit']}, {known['machine']}"
        before, floors = floors, raised(floors, figures, measured)
        write_floors(path, floors)
        for name, floor in floors.items():
            old = before.get(name, Floor()).floor
            if floor.floor != old:
                print(f"raised: {name} from {_number(old)} to {_number(floor.floor)}")
    of_parts = {name: floor for name, floor in floors.items() if name.partition("/")[0] in parts}
    lines, below = compare(figures, of_parts)
    faults = [*failed, *below]
    print()
    print("\n".join(lines))
    print(f"\n{known['commit']}, {known['date']}, {known['machine']}, load {known['load']} before, {seconds:.0f} s")
    if json_path is not None:
        record = {**known, "seconds": round(seconds, 1), "figures": {n: asdict(f) for n, f in figures.items()}}
        json_path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    for fault in faults:
        print(f"guard: {fault}", file=sys.stderr)
    if not faults:
        print(f"guard: all {len(lines) - 1} figures reach their floors")
    return 1 if faults else 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--raise", dest="raising", action="store_true", help="put floors up to what is measured")
    parser.add_argument("--only", metavar="NAME,…", help=f"only these parts of {', '.join(PARTS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    options = parser.parse_args(arguments)
    parts = list(dict.fromkeys(options.only.split(","))) if options.only else list(PARTS)
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        parser.error(f"--only: there is no part {', '.join(unknown)}; known: {', '.join(PARTS)}")
    try:
        check_data(parts, os.environ)
        known = facts()
        if known["load"] != "unknown" and float(known["load"]) > BUSY:
            print(f"The machine is busy (load {known['load']}): what is found in a limited time can be too low.")
        take_two_cores()
        return run(parts, FLOORS, raising=options.raising, json_path=options.json, measuring=measure, known=known)
    except GuardError as error:
        print(f"guard: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
