"""`symenum fit --group` as a whole: labels that are texts, the files, and what predict and resume make of them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas
import pytest
from click.testing import CliRunner, Result

from symenum import PSERegressor
from symenum.cli import main

RATES = {"north": 0.5, "east": 0.8, "south": 1.1, "west": 1.4}
OPTIONS = ("--operators", "+,*,exp", "--max-iterations", 30, "--target", "level")


def symenum(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with a column "sample id" of texts, and the folder `out` of its fit."""
    folder = tmp_path_factory.mktemp("groups")
    t = np.random.default_rng(0).uniform(0.1, 3, 80)
    site = np.repeat(list(RATES), 20)
    level = t + 2 * np.exp(-np.array([RATES[one] for one in site]) * t)
    table = pandas.DataFrame({"t": t, "sample id": site, "level": level})
    table.to_csv(folder / "data.csv", index=False)
    result = symenum("fit", folder / "data.csv", "--group", "sample id", *OPTIONS, "--out", folder / "out")
    assert result.exit_code == 0, result.output
    return folder


def test_the_files_hold_the_law_and_the_constants_by_group(folder: Path) -> None:
    out = folder / "out"
    names = {"model.json", "front.csv", "law.txt", "law.tex", "law.py", "report.html", "constants.csv"}
    assert names <= {path.name for path in out.iterdir()}
    constants = pandas.read_csv(out / "constants.csv", index_col=0)
    assert list(constants.index) == list(RATES)
    assert sorted(constants.iloc[:, 0].abs()) == pytest.approx(sorted(RATES.values()), rel=1e-6)
    (name,) = constants.columns
    assert f"def law(t, {name}):" in (out / "law.py").read_text()  # constants of other laws are not its arguments
    assert f"sample_id west: {name} = " in (out / "report.html").read_text()


def test_other_rows_of_these_groups_are_predicted(folder: Path) -> None:
    result = symenum("predict", folder / "out", folder / "data.csv")
    frame = pandas.read_csv(io.StringIO(result.stdout))
    assert frame["level_predicted"].to_numpy() == pytest.approx(frame["level"].to_numpy(), rel=1e-6)
    model = PSERegressor.load(folder / "out")
    new = pandas.DataFrame({"t": [1.0], "sample_id": ["west"]})
    assert model.predict(new) == pytest.approx([1 + 2 * np.exp(-1.4)], rel=1e-6)


def test_a_group_that_was_not_in_the_fit_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("t,sample id\n1,north\n1,centre\n")
    result = symenum("predict", folder / "out", tmp_path / "new.csv")
    assert result.exit_code == 2
    assert "Row 2 of" in result.output
    assert "the group 'centre', which was not in the fit" in result.output
    (tmp_path / "none.csv").write_text("t,place\n1,north\n")
    assert "has no single column 'sample_id'" in symenum("predict", folder / "out", tmp_path / "none.csv").output


def test_a_search_with_groups_goes_on(folder: Path) -> None:
    before = (folder / "out" / "law.txt").read_text()
    result = symenum("resume", folder / "out", "--max-iterations", 32)
    assert result.exit_code == 0, result.output
    assert (folder / "out" / "law.txt").read_text() == before


def test_a_column_of_groups_may_be_given_by_its_number(folder: Path) -> None:
    found = symenum("fit", folder / "data.csv", "--group", 2, *OPTIONS, "-q")
    assert found.exit_code == 0, found.output
    assert "exp(" in found.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--group", "sampleid"), "--group: there is no column 'sampleid'. Did you mean 'sample id'?"),
        (("--group", "sample id", "--one-hot", "sample id"), "cannot be one of --one-hot too"),
        (("--group", "sample id", "--features", "t"), "'sample id' is not among the variables"),
        (("--group", "level"), "'level' is not among the variables"),
    ],
)
def test_columns_that_cannot_be_groups(folder: Path, options: tuple[str, ...], message: str) -> None:
    result = symenum("fit", folder / "data.csv", "--target", "level", *options)
    assert result.exit_code == 2
    assert message in result.output


def test_rows_without_a_label_are_left_out_and_labels_are_not_imputed(tmp_path: Path) -> None:
    rows = "".join(f"{t},{site},{t * rate}\n" for site, rate in RATES.items() for t in (1, 2, 3, 4))
    (tmp_path / "data.csv").write_text(f"t,site,y\n{rows}5,,7\n")
    arguments = ("fit", tmp_path / "data.csv", "--group", "site", "--max-iterations", 5)
    result = symenum(*arguments)
    assert result.exit_code == 0, result.output
    assert "row 17" in result.output
    assert "labels cannot be imputed" in symenum(*arguments, "--missing", "impute").output
