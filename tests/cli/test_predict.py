"""`symenum predict`: the saved law on other rows, without a search."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result

from symenum import PSERegressor
from symenum.cli import main

LAW = "2*a_m*b"


def symenum(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of `symenum fit --out` with the law y = 2*a*b of a table with the columns "a (m)", b, c and y."""
    folder = tmp_path_factory.mktemp("saved")
    a, b, c = np.random.default_rng(0).uniform(1, 3, (3, 20))
    pandas.DataFrame({"a (m)": a, "b": b, "c": c, "y": 2 * a * b}).to_csv(folder / "data.csv", index=False)
    result = symenum("fit", folder / "data.csv", "--operators", "+,*", "--max-iterations", 30, "--out", folder / "out")
    assert f"\ny = {LAW}\n" in result.stdout
    return folder / "out"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Other columns than those of the fit: another order, one more, and none that the law does not need."""
    path = tmp_path / "new.csv"
    path.write_text("name,b,a (m)\nfirst,2,1.5\nsecond,0.5,4\n")
    return path


def read(text: str) -> pandas.DataFrame:
    return pandas.read_csv(io.StringIO(text))


def test_columns_are_found_by_name_and_the_law_is_a_new_column(saved: Path, table: Path) -> None:
    result = symenum("predict", saved, table)
    assert result.exit_code == 0, result.output
    frame = read(result.stdout)
    assert list(frame.columns) == ["name", "b", "a (m)", "y_predicted"]
    assert frame["y_predicted"].tolist() == [6.0, 4.0]
    assert frame["name"].tolist() == ["first", "second"]
    assert result.stderr == f"y = {LAW}\n"


@pytest.mark.parametrize("which", ["folder", "model.json", "checkpoint.json"])
def test_the_result_may_be_a_folder_a_model_or_a_checkpoint(saved: Path, table: Path, which: str) -> None:
    result = symenum("predict", saved if which == "folder" else saved / which, table, "-q")
    assert result.exit_code == 0, result.output
    assert read(result.stdout)["y_predicted"].tolist() == [6.0, 4.0]
    assert result.stderr == ""


def test_a_checkpoint_of_python_will_do(tmp_path: Path, table: Path) -> None:
    X = np.random.default_rng(0).uniform(1, 3, (20, 2))
    path = tmp_path / "checkpoint.json"
    PSERegressor(["+", "*"], max_iterations=30, checkpoint=path).fit(X, 2 * X[:, 0] * X[:, 1])
    table.write_text("x1;x2\n1,5;2\n")
    result = symenum("predict", path, table)
    assert result.exit_code == 0, result.output
    assert read(result.stdout)["y_predicted"].tolist() == [6.0]


def test_the_names_of_formulas_are_taken_where_the_table_has_them(saved: Path, table: Path) -> None:
    table.write_text("b,a_m\n2,1.5\n")
    assert read(symenum("predict", saved, table).stdout)["y_predicted"].tolist() == [6.0]


def test_the_target_tells_how_well_the_law_does(saved: Path, table: Path) -> None:
    table.write_text("b,a (m),y\n2,1.5,6\n1,1,3\n3,1,6\n")
    result = symenum("predict", saved, table)
    assert "On 3 rows with 'y': R² = 0.8333, root mean square error 0.5774." in result.stderr


def test_missing_values_leave_empty_cells_and_are_counted(saved: Path, table: Path) -> None:
    table.write_text("b,a (m)\n2,1.5\n,1\n1,1e308\n")
    result = symenum("predict", saved, table)
    assert result.exit_code == 0, result.output
    assert [line.endswith(",") for line in result.stdout.splitlines()] == [False, False, True, True]
    assert "In 2 of 3 rows" in result.stderr


def test_another_row_of_the_front_is_taken_by_index(saved: Path, table: Path) -> None:
    front = pandas.read_csv(saved / "front.csv")
    result = symenum("predict", saved, table, "--index", 0)
    assert result.stderr == f"y = {front['equation'][0]}\n"
    refused = symenum("predict", saved, table, "--index", len(front))
    assert refused.exit_code == 2
    assert f"no row {len(front)}" in refused.stderr


def test_standard_input_is_read_and_a_file_written_but_never_overwritten(saved: Path, tmp_path: Path) -> None:
    out = tmp_path / "predicted.csv"
    command = ("predict", saved, "-", "--out", out)
    first = symenum(*command, stdin="b,a (m)\n2,1.5\n")
    assert first.exit_code == 0, first.output
    assert first.stdout == ""
    nothing = symenum("predict", saved, "-", stdin="")
    assert nothing.exit_code == 2
    assert "'standard input' is empty" in nothing.stderr  # without the folder of the copy
    assert pandas.read_csv(out)["y_predicted"].tolist() == [6.0]
    again = symenum(*command, stdin="b,a (m)\n1,1\n")
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    assert symenum(*command, "--overwrite", stdin="b,a (m)\n1,1\n").exit_code == 0
    assert pandas.read_csv(out)["y_predicted"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("b,a(m)\n1,2\n", "has no column 'a (m)', which the law needs. Did you mean 'a(m)'?"),
        ("b,a (m)\n1,two\n", "Column 'a (m)' of"),
        ("b,a (m),b\n1,2,3\n", "more than one column called 'b'"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(saved: Path, table: Path, text: str, message: str) -> None:
    table.write_text(text)
    result = symenum("predict", saved, table)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.stderr.split())


def test_what_is_no_result_is_refused(tmp_path: Path, table: Path) -> None:
    missing = symenum("predict", tmp_path / "nothing", table)
    assert (missing.exit_code, "there is no" in missing.stderr) == (2, True)
    empty = symenum("predict", tmp_path, table)
    assert (empty.exit_code, "holds no result of symenum" in empty.stderr) == (2, True)
    other = symenum("predict", table, table)
    assert (other.exit_code, "cannot be read as a model" in other.stderr) == (2, True)


DATES = "date,y\n" + "".join(f"2024-01-{day:02},{3 * (day - 1)}\n" for day in range(1, 21))
KINDS = "kind,a,y\n" + "".join(f"{'abc'[i % 3]},{i + 1},{(i + 1) * (1 + i % 3 % 2)}\n" for i in range(18))
TWO = "kind,a,y\n" + "".join(f"{'ab'[i % 2]},{i + 1},{(i + 1) * (1 + i % 2)}\n" for i in range(18))


@pytest.fixture(scope="module")
def encoded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three tables that hold dates or texts, and a folder of results for each."""
    folder = tmp_path_factory.mktemp("encoded")
    for name, text in {"dates": DATES, "kinds": KINDS, "two": TWO}.items():
        (folder / f"{name}.csv").write_text(text)
        options = () if name == "dates" else ("--one-hot", "kind")
        arguments = ("--operators", "+,*", "--max-iterations", 30, "--out", folder / name)
        assert symenum("fit", folder / f"{name}.csv", *options, *arguments).exit_code == 0
    return folder


@pytest.mark.parametrize("which", ["folder", "checkpoint.json"])
@pytest.mark.parametrize("name", ["dates", "kinds", "two"])
def test_the_table_of_the_fit_itself_is_predicted_with_its_dates_and_texts(
    encoded: Path, name: str, which: str
) -> None:
    saved = encoded / name if which == "folder" else encoded / name / which
    result = symenum("predict", saved, encoded / f"{name}.csv")
    assert result.exit_code == 0, result.output
    frame = read(result.stdout)
    assert list(frame.columns) == [*read((encoded / f"{name}.csv").read_text()).columns, "y_predicted"]
    assert np.allclose(frame["y_predicted"], frame["y"])


@pytest.mark.parametrize("name", ["dates", "kinds", "two"])
@pytest.mark.parametrize("which", ["model.json", "checkpoint.json"])
def test_a_model_that_was_loaded_and_saved_again_predicts_dates_and_texts_as_before(
    encoded: Path, tmp_path: Path, name: str, which: str
) -> None:
    PSERegressor.load(encoded / name / which).save(tmp_path / "again")
    before, after = (
        symenum("predict", saved, encoded / f"{name}.csv") for saved in (encoded / name, tmp_path / "again")
    )
    assert after.exit_code == 0, after.output
    assert after.stdout == before.stdout


def test_dates_of_another_table_count_from_the_day_of_the_fit(encoded: Path, table: Path) -> None:
    table.write_text("date\n2024-02-10\n1.2.2024\n")
    assert "holds '1.2.2024' in row 2, which is no date" in symenum("predict", encoded / "dates", table).stderr
    table.write_text("date\n2024-02-10\n\n2024-01-03\n")
    assert read(symenum("predict", encoded / "dates", table).stdout)["y_predicted"].tolist() == [120.0, 6.0]
    table.write_text("date\n5\n")
    assert "'5' in row 1, which is no date" in symenum("predict", encoded / "dates", table).stderr


@pytest.mark.parametrize("name", ["kinds", "two"])
def test_a_text_that_the_search_has_not_seen_is_refused(encoded: Path, table: Path, name: str) -> None:
    table.write_text("kind,a\na,1\nnew,1\n")
    result = symenum("predict", encoded / name, table)
    assert result.exit_code == 2
    assert "Column 'kind'" in result.stderr
    assert "holds 'new' in row 2, and the rows of the search had only a, b" in result.stderr


def test_a_column_of_texts_that_is_missing_is_called_what_the_file_calls_it(encoded: Path, table: Path) -> None:
    table.write_text("kin,a\na,1\n")
    assert "has no column 'kind', which the law needs. Did you mean 'kin'?" in (
        symenum("predict", encoded / "kinds", table).stderr
    )


def test_a_model_with_a_damaged_encoding_is_refused(encoded: Path, tmp_path: Path, table: Path) -> None:
    text = (encoded / "dates" / "model.json").read_text()
    damaged = tmp_path / "model.json"
    damaged.write_text(text.replace("2024-01-01T00:00:00", "once upon"))
    result = symenum("predict", damaged, table)
    assert result.exit_code == 2
    assert "is damaged" in result.stderr


def test_a_table_that_has_the_columns_of_0_and_1_already_will_do(encoded: Path, table: Path) -> None:
    table.write_text("kind_b,a\n1,3\n0,3\n")
    result = symenum("predict", encoded / "two", table)
    assert result.exit_code == 0, result.output
    assert read(result.stdout)["y_predicted"].tolist() == pytest.approx([6.0, 3.0])
