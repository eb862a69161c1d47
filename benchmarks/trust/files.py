"""Damaged and hostile files: a checkpoint, its data, a saved model and a table, each with random changes.

A changed file is opened as users would open it, and must be read or refused with an error that names it: no other
error, no hang, no code that runs. Some of the checkpoints that are read go on with their search for a few steps.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from click import ClickException
from fuzzed import raise_timeout
from tables import TABLES

from symenum import PSERegressor
from symenum.cli.tables import read_frame

__all__ = ["add_arguments", "main"]

_HANG_SECONDS = 20  # after which the reading of a file counts as hanging: most take a few milliseconds
_RESUMED = 10  # one in so many checkpoints that are read goes on with its search
_TRAP = "exploded"  # the file that code in the texts below would make
_ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 10**30, 1e308, -1e308, 5e-324, "", "nan", "inf", "x9", "1e999", [], {}, [[]]),
    *("(" * 5000, "9" * 5000, "x**x**x**x", "log(-1)", "1/0", "../../etc/passwd", "\x00", "\ud83d", "a" * 100_000),
    *(f"__import__('os').system('touch {_TRAP}')", f"open('{_TRAP}','w')", {"not kept": "f"}, ["x1"] * 2000),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first file")


def main(options: argparse.Namespace) -> int:
    counts: Counter[str] = Counter()
    slowest = 0.0
    signal.signal(signal.SIGALRM, raise_timeout)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        originals = _originals(Path(folder))
        for number in range(options.first, options.first + options.count):
            rng = random.Random(number)
            kind = rng.choice(list(originals))
            path, open_file = originals[kind]
            whole = path.read_bytes()
            path.write_bytes(_changed(whole, path.suffix == ".json", rng))
            begin = time.monotonic()
            answer = _answer(path, open_file, rng)
            slowest = max(slowest, time.monotonic() - begin)
            path.write_bytes(whole)
            if answer not in ("read", "refused", "resumed"):
                print(f"{number}: {kind}: {answer}", flush=True)
                answer = "fault"
            counts[answer] += 1
        exploded = Path(_TRAP).exists() or any(Path(folder).rglob(_TRAP))
    read, resumed, refused = counts["read"] + counts["resumed"], counts["resumed"], counts["refused"]
    print("| files | read | of these resumed | refused | faults | code that ran | slowest |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    print(f"| {options.count} | {read} | {resumed} | {refused} | {counts['fault']} | {exploded:d} | {slowest:.2f} s |")
    return 1 if counts["fault"] or exploded else 0


Opening = Callable[[random.Random], str]


def _originals(folder: Path) -> dict[str, tuple[Path, Opening]]:
    """The files as they should be, by kind, and how each is opened; the answer is "read" or "resumed"."""
    table = TABLES["60 rows x 2"]()
    checkpoint, saved, sheet = folder / "run" / "checkpoint.json", folder / "saved", folder / "table.csv"
    model = PSERegressor(max_time=None, max_iterations=8, random_state=0, checkpoint=checkpoint)
    model.fit(table.X, table.y).save(saved)
    np.savetxt(sheet, np.column_stack([table.X, table.y]), delimiter=",", header="a,b,y", comments="")
    (data,) = checkpoint.parent.glob("*.npz")

    def open_checkpoint(rng: random.Random) -> str:
        _use(PSERegressor.load(checkpoint), table.X)
        if rng.randrange(_RESUMED):
            return "read"
        copy = folder / "resumed.json"  # the search writes its own
        copy.write_bytes(checkpoint.read_bytes())
        PSERegressor.resume(copy, table.X, table.y, max_time=0.3, max_iterations=None)
        return "resumed"

    def open_saved(rng: random.Random) -> str:
        _use(PSERegressor.load(saved), table.X)
        return "read"

    def open_sheet(rng: random.Random) -> str:
        read_frame(sheet, lambda note: None)
        return "read"

    return {
        "checkpoint": (checkpoint, open_checkpoint),
        "data of a checkpoint": (data, open_checkpoint),
        "model": (saved / "model.json", open_saved),
        "table": (sheet, open_sheet),
    }


def _use(model: PSERegressor, X: np.ndarray) -> None:
    """What users do with a model that was loaded; a law may have become infinite, and a column may be gone."""
    str(model)
    if model.n_features_in_ == X.shape[1] and not hasattr(model, "feature_names_in_"):
        model.predict(X)


def _answer(path: Path, open_file: Opening, rng: random.Random) -> str:
    """How the file was taken: "read", "resumed", "refused", or what went wrong."""
    signal.alarm(_HANG_SECONDS)
    try:
        return open_file(rng)
    except (ValueError, ClickException) as error:
        text = error.message if isinstance(error, ClickException) else str(error)
        if type(error) is not ValueError and not isinstance(error, ClickException):
            return f"{type(error).__name__}: {text}"
        return "refused" if text.strip() else "a refusal without a word"
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {where.filename}:{where.lineno}: {error!s:.200}"
    finally:
        signal.alarm(0)


def _changed(whole: bytes, is_json: bool, rng: random.Random) -> bytes:
    """The file with one to three changes: of its bytes, or of the values in it."""
    if is_json and rng.random() < 0.7:
        document = json.loads(whole)
        for _ in range(rng.randint(1, 3)):
            _change_value(document, rng)
        return json.dumps(document).encode("utf-8", "surrogatepass")
    for _ in range(rng.randint(1, 3)):
        whole = _change_bytes(whole, rng)
    return whole


def _change_value(document: Any, rng: random.Random) -> None:
    """Go down to a random place of the document and put something else there, or take it out."""
    while True:
        keys = list(document) if isinstance(document, dict) else list(range(len(document)))
        if not keys:
            return
        key = rng.choice(keys)
        inner = document[key]
        if isinstance(inner, (dict, list)) and inner and rng.random() < 0.9:
            document = inner
            continue
        way = rng.randrange(4)
        if way == 0:
            del document[key]
        elif way == 1 and isinstance(inner, (int, float)):
            document[key] = rng.choice([-inner, inner * 1e30, inner + 1, inner / 3])
        elif way == 2:
            document[key] = document[rng.choice(keys)]
        else:
            document[key] = rng.choice(_ODD)
        return


def _change_bytes(whole: bytes, rng: random.Random) -> bytes:
    """Another byte, a piece less, a piece twice, bytes of chance, or the end cut off."""
    at = rng.randrange(len(whole) + 1)
    end = min(len(whole), at + rng.randint(1, 40))
    return rng.choice(
        [
            whole[:at] + bytes([rng.randrange(256)]) + whole[at + 1 :],
            whole[:at] + whole[end:],
            whole[:end] + whole[at:],
            whole[:at] + rng.randbytes(end - at) + whole[end:],
            whole[:at],
        ]
    )
