"""Every benchmark script can be loaded and explains its options, and every constant that it replaces exists."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
SCRIPTS = sorted(path for path in (*FOLDER.glob("*.py"), *(FOLDER / "trust").glob("*.py")))

# In a process of its own: the scripts import each other by their bare names, which are also names of test folders.
PROBE = """
import contextlib, importlib.util, inspect, io, json, sys, traceback

def fault_of(path):
    spec = importlib.util.spec_from_file_location(path.split("/")[-1].removesuffix(".py").strip("_"), path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        if error.name == "triton":
            return None
        raise
    for owner, name in getattr(module, "PATCHED", ()):
        if not hasattr(owner, name):
            return f"{owner.__name__} has no {name}"
    main = getattr(module, "main", None)
    parameters = inspect.signature(main).parameters.values() if main else ()
    if main is None or any(parameter.default is parameter.empty for parameter in parameters):
        return None  # a part of another script
    sys.argv, shown = [path, "--help"], io.StringIO()
    try:
        with contextlib.redirect_stdout(shown):
            main()
    except SystemExit as ended:
        return None if not ended.code and "usage:" in shown.getvalue() else f"--help ended with {ended.code}"
    return "--help does not end it"

faults = {}
for path in sys.argv[1:]:
    try:
        faults[path] = fault_of(path)
    except Exception:
        faults[path] = traceback.format_exc()
print(json.dumps(faults))
"""


@pytest.fixture(scope="module")
def faults() -> dict[str, str | None]:
    folders = [str(FOLDER), str(FOLDER / "trust"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *map(str, SCRIPTS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(FOLDER)))
def test_a_script_loads_explains_its_options_and_replaces_what_exists(
    path: Path, faults: dict[str, str | None]
) -> None:
    assert faults[str(path)] is None
