"""Formulas, names of columns and files that try to run code: refused, or harmless."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from click import ClickException

from symenum import PSERegressor
from symenum.cli.outputs import read_model
from symenum.estimator.table_labels import read_labels
from symenum.expressions import parse

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 3, (30, 2))

FORMULAS = [
    "__import__('os').system('touch exploded')",
    "open('exploded', 'w')",
    "x.__class__.__base__.__subclasses__()",
    "(lambda: x)()",
    "[x for x in y]",
    "exec('x')",
    "eval(x)",
    "x; import os",
    "x if y else z",
    "f'{x}'",
    "x := 1",
    "sin.__globals__",
    "\\input{/etc/passwd}",
    "9" * 400,
    "(" * 100_000,
    "-" * 100_000 + "x",
    "x**" * 50_000 + "x",
    "x" * 200_000,
]
NAMES = [
    "__import__('os').system('touch exploded')",
    "x); import os; (",
    "x;system(1);y",
    '"); exit(1); //',
    "\\write18{touch exploded}",
    "\n\nimport os\n",
    "lambda",
    "__class__",
    "{0.__class__}",
]


@pytest.mark.parametrize("text", FORMULAS, ids=range(len(FORMULAS)))
def test_formulas_that_are_code_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"cannot read the expression|characters, more than"):
        parse(text)


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_names_of_columns_are_never_code(name: str, tmp_path: Path) -> None:
    frame = pandas.DataFrame(X, columns=[name, "other"])
    y = 2 * X[:, 0] + X[:, 1]
    model = PSERegressor(max_time=None, max_iterations=2, random_state=0).fit(frame, y)
    assert all(called.isidentifier() for called in model.variable_names_)
    assert parse(str(model.best_expression_)) == model.best_expression_
    np.testing.assert_allclose(model.predict(frame), y)
    model.sympy(), model.latex(), model.export("c")
    done = subprocess.run(
        [sys.executable, "-c", str(model.export("python"))], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("equation", FORMULAS[:8], ids=range(8))
def test_models_that_are_code_are_refused(equation: str, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    entry = {"equation": equation, "complexity": 1, "loss": 1.0, "score": 0.0, "reward": 0.5}
    document = {
        "format": "symenum model", "version": 1, "source": "", "rows": 3, "target": "y", "settings": {}, "selected": 0,
        "variables": [{"name": "x", "column": "x"}], "front": [entry], "stop_reason": "", "interrupted": False,
    }  # fmt: skip
    path.write_text(json.dumps(document))
    with pytest.raises(ClickException, match="damaged"):
        read_model(path)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "null", '{"format": "symenum labels", "version": 1, "target": 3}'])
def test_files_that_are_something_else_are_refused(text: str, tmp_path: Path) -> None:
    for name in ("model.json", "checkpoint.labels.json"):
        (tmp_path / name).write_text(text)
    with pytest.raises(ClickException):
        read_model(tmp_path / "model.json")
    with pytest.raises(ValueError, match=r"cannot be read|does not belong|damaged"):
        read_labels(tmp_path / "checkpoint.json")
