"""Measured tables: read from files outside, split by the seed, with published figures beside them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from symenum.bench.problems import MissingDataError, get_set
from symenum.bench.problems.measured import published_tables

MEASURED = ("pmlb", "real")
ROWS = 40


def write_tables(folder: Path) -> Path:
    """A folder with two tables of PMLB, one other, and published figures; y = 2·x1 - x2 in all of them."""
    (folder / "pmlb").mkdir()
    X = np.random.default_rng(3).uniform(-1, 1, (ROWS, 2))
    y = 2 * X[:, 0] - X[:, 1]
    for name in ("1_plain", "2_fri_c0_40_2"):
        lines = ["a\tb\ttarget", *(f"{a!r}\t{b!r}\t{c!r}" for a, b, c in np.column_stack([X, y]).tolist())]
        (folder / "pmlb" / f"{name}.tsv.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (folder / "pmlb" / "published.csv").write_text(
        "dataset,method,median_test_r2,median_size,median_seconds\n1_plain,Operon,0.9,40,100\n", encoding="utf-8"
    )
    record = {"columns": ["a", "b"], "target": "c", "X": X.tolist(), "y": y.tolist()}
    (folder / "real_tables.json").write_text(json.dumps({"Tea": record}), encoding="utf-8")
    return folder


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SYMENUM_DATA", str(tmp_path))
    return write_tables(tmp_path)


@pytest.mark.parametrize("name", MEASURED)
def test_without_its_files_a_set_says_what_it_needs_and_where_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SYMENUM_DATA", raising=False)
    with pytest.raises(MissingDataError, match=r"set SYMENUM_DATA.*public original: .*https://"):
        get_set(name).problems()
    monkeypatch.setenv("SYMENUM_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=r"does not exist.*https://"):
        get_set(name).problems()
    (tmp_path / "pmlb").mkdir()
    with pytest.raises(MissingDataError):
        get_set(name).problems()
    assert published_tables() == ()


@pytest.mark.usefixtures("tables")
@pytest.mark.parametrize(("name", "problem"), [("pmlb", "1_plain"), ("real", "Tea")])
def test_a_seed_holds_a_quarter_of_the_rows_out(name: str, problem: str) -> None:
    table = get_set(name).problem(problem)
    (X, y), (X_test, y_test) = table.sample(1), table.test(1)
    assert (len(y), len(y_test)) == (30, 10)
    assert len(np.unique(np.concatenate([y, y_test]))) == ROWS
    assert np.allclose(y_test, 2 * X_test[:, 0] - X_test[:, 1])
    assert np.array_equal(table.sample(1)[0], X)
    assert not np.array_equal(table.sample(2)[0], X)
    assert table.variables == ("x1", "x2")
    assert get_set(name).protocol.seeds == 3


@pytest.mark.usefixtures("tables")
def test_tables_of_friedmans_functions_are_a_group() -> None:
    assert {table.name: table.group for table in get_set("pmlb").problems()} == {  # type: ignore[attr-defined]
        "1_plain": "others",
        "2_fri_c0_40_2": "Friedman",
    }


@pytest.mark.usefixtures("tables")
def test_published_figures_are_read() -> None:
    (figure,) = published_tables()
    assert (figure.table, figure.method, figure.r2, figure.size) == ("1_plain", "Operon", 0.9, 40.0)


def test_a_table_with_a_hole_is_refused(tables: Path) -> None:
    record = {"columns": ["a"], "target": "b", "X": [[1.0], [None]], "y": [1.0, 2.0]}
    (tables / "real_tables.json").write_text(json.dumps({"Holes": record}), encoding="utf-8")
    with pytest.raises(ValueError, match="Holes: the table must hold finite numbers"):
        get_set("real").problem("Holes").sample()
