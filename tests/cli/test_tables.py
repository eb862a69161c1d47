"""Files of all the shapes that people have, and a message that helps for those that cannot be used."""

import bz2
import gzip
import os
import threading

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from symenum.cli import main
from symenum.cli.messages import InputError
from symenum.cli.tables import ColumnChoice, choose_columns, read_frame
from symenum.estimator.saved_results import Encoding

GOOD = "a,b,y\n1,2,3\n2,5,4\n3,7,9\n"


def refused(symenum, *arguments):
    result = symenum("fit", *arguments)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GOOD, "data.csv"),
        (GOOD.replace(",", "\t"), "data.tsv"),
        (GOOD.replace(",", ";"), "data.csv"),
        (GOOD.replace(",", "   "), "data.txt"),
        ("  " + GOOD.replace(",", "   ").replace("\n", "\n  "), "data.dat"),
        (GOOD.replace(",", "|"), "data.csv"),
        (GOOD.replace(",", ", "), "data.csv"),
        (GOOD.replace("\n", "\r\n"), "data.csv"),
        (GOOD.rstrip("\n"), "data.csv"),
        (GOOD.replace("\n", ",\n"), "data.csv"),
        ('"a","b","y"\n1,2,3\n2,5,4\n3,7,9\n', "data.csv"),
        ("\ufeff" + GOOD, "data.csv"),
        (GOOD.encode("utf-16"), "data.csv"),
        (gzip.compress(GOOD.encode(), mtime=0), "data.csv.gz"),
        (bz2.compress(GOOD.encode()), "data.csv.bz2"),
        ("# a b y\n1 2 3\n2 5 4\n3 7 9\n", "savetxt.txt"),
        ("# made by hand\n\n" + GOOD, "data.csv"),
        ("a;b;y\n1,0;2,0;3,0\n2,0;5,0;4,0\n3,0;7,0;9,0\n", "european.csv"),
        (",a,b,y\n0,1,2,3\n1,2,5,4\n2,3,7,9\n", "with_index.csv"),
        ("a b y\n1,0 2,0 3,0\n2,0 5,0 4,0\n3,0 7,0 9,0\n", "european.txt"),
        ("a,b,y\n1,2,3\n# a remark\n2,5,4\n3,7,9 # another\n", "remarks.csv"),
        (GOOD.replace("\n", "\r"), "old_macintosh.csv"),
        ("a\tb\ty\n1,0\t2,0\t3,0\n2,0\t5,0\t4,0\n3,0\t7,0\t9,0\n", "european.tsv"),
        ('a,"b",y\n"1","2","3"\n"2","5","4"\n"3","7","9"\n', "quoted.csv"),
    ],
)
def test_tables_are_read_whatever_their_form(symenum, models, table, text, name):
    result = symenum("fit", table(text, name))
    assert result.exit_code == 0, result.output
    assert models.X.columns.tolist() == ["a", "b"]
    assert models.X.to_numpy().tolist() == [[1, 2], [2, 5], [3, 7]]
    assert models.y.tolist() == [3, 4, 9]
    assert "y = a**2 + sin(a)" in result.stdout.splitlines()


@pytest.mark.parametrize("units", ["s,m/s,K", "[s],,-", '"s","kg m",""'])
def test_a_line_of_units_below_the_header_is_left_out_and_this_is_said(symenum, models, table, units):
    result = symenum("fit", table(GOOD.replace("y\n", f"y\n{units}\n", 1)))
    assert result.exit_code == 0, result.output
    assert models.X.to_numpy().tolist() == [[1, 2], [2, 5], [3, 7]]
    assert models.y.tolist() == [3, 4, 9]
    assert "The line below the header holds units (" in result.stderr


@pytest.mark.parametrize("line", ["s,1,K", "4,m,K"])
def test_a_line_that_holds_a_number_is_no_line_of_units(symenum, table, line):
    assert "holds 1 value that is no number (row 1:" in refused(symenum, table(GOOD.replace("y\n", f"y\n{line}\n", 1)))


def test_a_first_row_above_a_column_of_text_is_no_line_of_units(symenum, table):
    message = refused(symenum, table("kind,a,y\nkind,m,K\nb,1,2\nc,2,3\nb,3,5\n"))
    assert "(row 1: 'm')" in message
    assert "units" not in message


def test_a_first_row_of_missing_values_is_no_line_of_units(symenum, models, table):
    result = symenum("fit", table(GOOD.replace("y\n", "y\nNA,,-\n", 1)))
    assert "1 of 4 rows has missing" in result.stderr
    assert "units" not in result.stderr


def test_a_column_without_a_name_gets_one_that_no_other_has(symenum, models, table):
    result = symenum("fit", table(",x1,y\n1.5,2,3\n2.5,5,4\n7.5,7,9\n"))
    assert "Column 1 has no name: it is called x1_." in result.stderr
    assert models.X.columns.tolist() == ["x1_", "x1"]


def test_no_variable_gets_the_name_of_the_target(symenum, models, table):
    symenum("fit", table("x 1,x-1,x_1\n1,2,3\n2,5,4\n3,7,9\n"))
    assert models.X.columns.tolist() == ["x_1_", "x_1__"]


@pytest.mark.parametrize("options", [[], ["--no-header"]])
def test_without_a_header_columns_are_numbered(symenum, models, table, options):
    result = symenum("fit", table("1 2 3\n2 5 4\n3 7 9\n"), *options)
    assert models.X.columns.tolist() == ["x1", "x2"]
    assert "No header found" in result.stderr
    assert "x3 = " in result.stdout


def test_no_header_is_no_header_even_below_a_comment(symenum, models, table):
    symenum("fit", table("# a b y\n1 2 3\n2 5 4\n"), "--no-header")
    assert models.X.columns.tolist() == ["x1", "x2"]


def test_a_header_longer_than_what_is_looked_at_first(symenum, models, table):
    names = [f"column_{i}_{'x' * 300}" for i in range(400)]
    rows = [",".join(str((i * 7 + j) % 11) for i in range(400)) for j in range(3)]
    assert symenum("fit", table("\n".join([",".join(names), *rows]))).exit_code == 0
    assert models.X.shape == (3, 399)


def test_standard_input(models):
    result = CliRunner().invoke(main, ["fit", "-"], input=GOOD, obj=models)
    assert result.exit_code == 0, result.output
    assert models.y.tolist() == [3, 4, 9]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once(symenum, models, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(GOOD,))
    writer.start()
    assert symenum("fit", pipe).exit_code == 0
    writer.join()
    assert models.y.tolist() == [3, 4, 9]


def test_an_archive_that_breaks_off_is_refused(symenum, table):
    whole = gzip.compress(np.random.default_rng(0).bytes(300_000).hex().encode())
    assert "cannot be" in refused(symenum, table(whole[:1000], "data.csv.gz"))


def test_a_header_of_numbers_can_be_forced_either_way(symenum, models, table):
    path = table("1990,1991\n1,2\n3,5\n")
    symenum("fit", path)
    assert len(models.y) == 3
    symenum("fit", path, "--header")
    assert len(models.y) == 2


def test_text_beside_numbers_in_the_first_row_is_no_header(symenum, models, table):
    symenum("fit", table("Mercury,0.39,0.24\nVenus,0.72,0.62\nEarth,1,1\n"), "--drop", "x1")
    assert models.y.tolist() == [0.24, 0.62, 1]


def test_numbers_are_read_to_the_last_digit(symenum, models, table):
    values = np.random.default_rng(0).normal(size=(50, 2)) * 10.0 ** np.arange(-25, 25)[:, None]
    text = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    symenum("fit", table(text))
    assert models.X["x1"].tolist() == values[:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "features", "target"),
    [
        ([], ["a", "b"], "y"),
        (["--target", "a"], ["b", "y"], "a"),
        (["--target", "1"], ["b", "y"], "a"),
        (["--target", "-2"], ["a", "y"], "b"),
        (["--features", "b"], ["b"], "y"),
        (["--features", "b,a"], ["b", "a"], "y"),
        (["--features", "b", "--features", "a"], ["b", "a"], "y"),
        (["--drop", "b"], ["a"], "y"),
        (["--drop", "y"], ["a"], "b"),
        (["--weights", "b"], ["a"], "y"),
    ],
)
def test_columns_are_chosen(symenum, models, table, options, features, target):
    result = symenum("fit", table(GOOD), *options)
    assert models.X.columns.tolist() == features
    assert f"\n{target} = " in result.stdout
    assert (models.sample_weight is not None) == ("--weights" in options)


def test_a_name_with_commas_and_a_name_that_is_a_number_can_be_chosen(symenum, models, table):
    path = table('"a,b",2,z\n1,2,3\n2,5,4\n')
    symenum("fit", path, "--features", "a,b", "--target", "2")
    assert models.X.columns.tolist() == ["a_b"]
    assert models.y.tolist() == [2, 5]


def test_names_that_formulas_cannot_use_are_changed_and_this_is_said(symenum, models, table):
    names = ["sin", "exp", "E", "pi", "lambda", "distance (AU)", "2nd", "sin_", "θ"]
    rows = "\n".join(",".join(str(i * j + i) for j in range(len(names) + 1)) for i in range(1, 4))
    result = symenum("fit", table(",".join([*names, "max speed"]) + "\n" + rows))
    assert models.X.columns.tolist() == [
        "sin__", "exp_", "E_", "pi_", "lambda_", "distance_AU", "x_2nd", "sin_", "θ",
    ]  # fmt: skip
    assert "'distance (AU)' is distance_AU" in result.stderr
    assert "max speed = " in result.stdout


def test_rows_with_missing_values_are_left_out_and_counted_or_refused_on_demand(symenum, models, table):
    path = table("a,b,y\n1,2,3\n2,,4\n3,7,inf\n4,5,6\n")
    message = refused(symenum, path, "--missing", "error")
    assert "2 of 4 rows have missing or infinite values, the first of them row 2" in message
    assert "'b', 'y'" in message
    assert "--missing drop" in message
    for options in ([], ["--drop-nan"], ["--missing", "drop"]):
        result = symenum("fit", path, *options)
        assert models.y.tolist() == [3, 6]
        assert "2 of 4 rows have missing or infinite values, the first of them row 2: left out" in result.stderr


def test_missing_cells_of_variables_are_filled_in_on_demand_but_not_those_of_the_target(symenum, models, table):
    result = symenum("fit", table("a,b,y\n1,2,3\n2,,4\n3,7,inf\n4,5,6\n"), "--missing", "impute")
    assert models.y.tolist() == [3, 4, 6]
    assert models.X["b"].tolist() == [2, 5, 5]
    assert "Column 'b': 1 missing or infinite values are filled in with its median, 5." in result.stderr
    assert "1 of 4 rows has missing or infinite values, row " in result.stderr


@pytest.mark.parametrize(
    "days", [["2024-02-28", "2024-03-01", "2024-02-27T12:00"], ["28.02.2024", "1.3.2024", "28.2.2024"]]
)
def test_dates_count_days_since_the_first_row(symenum, models, table, days):
    result = symenum("fit", table("\n".join(["when,y", *(f"{day},{i}" for i, day in enumerate(days))])))
    assert models.X["when"].tolist() == [0, 2, -0.5 if "T" in days[2] else 0]
    assert "Column 'when' holds dates: it counts the days since 2024-02-28 00:00 (the first row)." in result.stderr


def test_dates_whose_day_could_be_the_month_are_refused(symenum, table):
    assert "'when' holds text" in refused(symenum, table("when,y\n02/03/2024,1\n05/03/2024,2\n"))


COLOURS = "colour,a,y\nred,1,2\nblue,2,3\n,3,4\ngreen,4,6\nred,5,7\n"


def test_columns_of_text_become_columns_of_0_and_1_on_demand(symenum, models, table):
    path = table(COLOURS)
    assert "--one-hot colour" in refused(symenum, path)
    result = symenum("fit", path, "--one-hot", "colour")
    assert models.X.columns.tolist() == ["colour_blue", "colour_green", "colour_red", "a"]
    assert models.X["colour_red"].tolist() == [1, 0, 0, 1]  # the row without a colour is left out
    assert models.y.tolist() == [2, 3, 6, 7]
    assert "Column 'colour' becomes colour_blue, colour_green, colour_red (0 or 1)." in result.stderr
    symenum("fit", table("kind,y\n1,2\n3,3\n1,4\n"), "--one-hot", "kind")
    assert models.X.columns.tolist() == ["kind_3"]  # of two the other is what remains


def test_validation_rows_are_encoded_like_those_of_the_search(symenum, models, table):
    rows = "colour,when,y\nred,2024-01-01,2\nblue,2024-01-03,3\ngreen,2024-01-02,5\n"
    other = table("colour,when,y\nblue,2024-01-11,2\nblue,2024-01-13,3\n", "other.csv")
    symenum("fit", table(rows), "--one-hot", "colour", "--validation", other)
    X, y, _ = models.validation
    assert X.columns.tolist() == models.X.columns.tolist()
    assert X["when"].tolist() == [10, 12]
    assert X["colour_blue"].tolist() == [1, 1]
    assert y.tolist() == [2, 3]


@pytest.mark.parametrize(
    "record",
    [
        3,
        {},
        {"dates": 3, "categories": {}},
        {"dates": {"a": 3}, "categories": {}},
        {"dates": {"a": "soon"}, "categories": {}},
        {"dates": {}, "categories": {"a": [1]}},
    ],
)
def test_an_encoding_that_is_none_is_refused(record):
    with pytest.raises(ValueError, match="no encoding of a table"):
        Encoding.read(record)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--one-hot", "y"], "--one-hot: 'y' is no variable"),
        (["--one-hot", "color"], "Did you mean 'colour'?"),
        (["--one-hot", "colour", "--drop", "colour"], "'colour' is no variable"),
    ],
)
def test_one_hot_of_what_is_no_variable_is_refused(symenum, table, options, message):
    assert message in refused(symenum, table(COLOURS), *options)


@pytest.mark.parametrize("header", ["colour,colour_red,y", "colour_red,colour,y"])
def test_one_hot_never_takes_the_name_of_another_column(symenum, table, header):
    order = (lambda text, number: f"{text},{number}") if header.startswith("colour,") else (lambda t, n: f"{n},{t}")
    rows = "\n".join([header, *(f"{order('red' if i % 2 else 'blue', i)},{i * i}" for i in range(6))])
    message = refused(symenum, table(rows), "--one-hot", "colour")
    assert "--one-hot colour: 'data.csv' has a column 'colour_red' already" in message


def test_one_hot_of_names_is_refused(symenum, table):
    rows = "\n".join(["name,y", *(f"n{i},{i}" for i in range(30))])
    assert "30 different values" in refused(symenum, table(rows), "--one-hot", "name")


ERRORS = "x,dx,dy,y\n1,0.1,0.2,2\n2,0.1,0.2,4\n3,0.2,0.4,6\n"


def test_columns_of_errors_are_no_variables_and_reach_the_estimator(symenum, models, table):
    result = symenum("fit", table(ERRORS), "--y-error", "dy", "--x-error", "x=dx")
    assert models.X.columns.tolist() == ["x"]
    assert models.errors["y_error"].tolist() == [0.2, 0.2, 0.4]
    assert models.errors["x_error"]["x"].tolist() == [0.1, 0.1, 0.2]
    assert "Chi-square 19 on 3 rows: 0.5 for each degree of freedom" in result.stdout
    assert "The loss is the mean squared error, rows weighted by 1/error², in squared units of y." in result.stdout
    symenum("fit", table(ERRORS), "--y-error", "0.5", "--features", "x")
    assert models.errors["y_error"].tolist() == [0.5, 0.5, 0.5]
    assert "x_error" not in models.errors
    without = symenum("fit", table(ERRORS)).stdout
    assert "Chi-square" not in without
    assert "weighted" not in without
    other_loss = symenum("fit", table(ERRORS), "--y-error", "dy", "--loss", "mae").stdout
    assert "The loss is a mean over the rows, weighted by 1/error²." in other_loss


def test_errors_of_rows_that_are_left_out_or_held_out_go_with_them(symenum, models, table):
    rows = "\n".join(["x,dy,y", *(f"{i},{i + 1},{i * i if i != 4 else ''}" for i in range(10))])
    symenum("fit", table(rows), "--y-error", "dy", "--validation-fraction", "0.3", "--seed", "1")
    assert len(models.errors["y_error"]) == len(models.y) == 6
    assert (models.errors["y_error"] == models.X["x"] + 1).all()


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (ERRORS, ["--y-error", "dz"], "--y-error: there is no column 'dz'"),
        (ERRORS, ["--y-error", "-1"], "must be a number above 0, not -1"),
        (ERRORS, ["--y-error", "nan"], "must be a number above 0"),
        (ERRORS, ["--y-error", "y", "--target", "y"], "cannot be both the target and an error"),
        (ERRORS, ["--x-error", "x=dx"], "needs --y-error too"),
        (ERRORS, ["--y-error", "dy", "--x-error", "x"], "such as x=x_error"),
        (ERRORS, ["--y-error", "dy", "--x-error", "dx=0.1", "--drop", "dx"], "'dx' is no variable"),
        (ERRORS.replace("0.4", "0"), ["--y-error", "dy"], "The errors 'dy' of 'data.csv' must be above 0; row 3 has 0"),
        (ERRORS.replace("0.4", "no"), ["--y-error", "dy"], "'dy' holds 1 value that is no number"),
    ],
)
def test_errors_that_are_none_are_refused_with_the_reason(symenum, table, rows, options, message):
    assert message in refused(symenum, table(rows), *options)


def test_an_error_that_is_missing_costs_its_row(symenum, models, table):
    symenum("fit", table(ERRORS.replace("0.4", "")), "--y-error", "dy")
    assert models.y.tolist() == [2, 4]


def test_text_columns_are_named_with_what_to_type(symenum, table):
    message = refused(symenum, table("planet,moon,a,y\nEarth,Moon,1,2\nMars,Phobos,2,3\n"))
    assert "'planet' holds text (row 1: 'Earth')" in message
    assert "--drop planet,moon" in message


def test_a_few_bad_values_in_a_column_of_numbers_are_counted(symenum, table):
    message = refused(symenum, table("a,y\n1,2\n2,3\nthree,4\n5,6\n7,8\n"))
    assert "'a' holds 1 value that is no number (row 3: 'three')" in message


def test_a_target_of_text_is_another_matter(symenum, table):
    message = refused(symenum, table("a,planet\n1,Earth\n2,Mars\n"))
    assert "choose another column with --target" in message


def test_missing_file_suggests_the_nearest(symenum, table, tmp_path):
    table(GOOD, "orbits.csv")
    assert "Did you mean 'orbits.csv'?" in refused(symenum, tmp_path / "orbit.csv")
    assert "no folder" in refused(symenum, tmp_path / "nowhere" / "orbit.csv")


def test_folder_instead_of_a_file(symenum, tmp_path):
    assert "is a folder" in refused(symenum, tmp_path)


@pytest.mark.parametrize("content", ["", "\n\n  \n"])
def test_empty_file(symenum, table, content):
    assert "is empty" in refused(symenum, table(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,y\n", "has a header and no rows: the columns are a, b, y"),
        ("a,b,y\n1,2,3\n", "1 row to learn from"),
        ("# nothing\n", "only comments"),
        ("a,y\n1,3\n2,3\n3,3\n", "is 3 in all 3 rows: there is nothing to explain"),
        ("a,a,y\n1,2,3\n2,3,4\n", "more than one column called 'a'"),
        ("y\n1\n2\n", "no column left for a variable"),
        ("a,b\n1,2,3\n4,5,6\n", "the header names 2 columns (a, b), but the rows have 3 values"),
        ("a,b,y\n1,2,3\n4,5,6\n7,8,9,10\n", "cannot be cut into columns: Expected 3 fields in line 4, saw 4"),
        ("a,b,y\n1,,3\n4,,6\n", "Column 'b' of 'data.csv' has no finite value: leave out with --drop b"),
        ("a,b,y\n1,2,3\n1,2,4\n1,2,5\n", "Every variable of 'data.csv' has one value in all 3 rows"),
        ("a,b,y\nu,v,3\nw,v,4\n", "--one-hot a,b"),
        (b"PK\x03\x04rest", "save the sheet as CSV"),
        (b"\x00\x01\x02\x03", "binary"),
        ('{"a": {"0": 1.5, "1": 2.5}, "y": {"0": 1, "1": 2}}', "is JSON, not a text table: save it as CSV"),
        ('[{"a": 1.5, "y": 1}, {"a": 2.5, "y": 2}]', "is JSON, not a text table: save it as CSV"),
        (b"PAR1 and so on PAR1", "Parquet"),
        ("a,when,y\n1,1/2/2020,3\n2,1/3/2020,4\n", "'when' holds text"),
    ],
)
def test_files_that_cannot_be_used_are_refused_with_the_reason(symenum, table, content, message):
    assert message in refused(symenum, table(content))


def test_parquet_without_pyarrow_says_what_to_install(symenum, table, monkeypatch):
    import pandas

    def missing(path):
        raise ImportError("no engine")

    monkeypatch.setattr(pandas, "read_parquet", missing)
    assert "pip install pyarrow" in refused(symenum, table(b"PAR1...", "data.parquet"))


def test_parquet_is_read_where_there_is_a_reader(symenum, models, table, monkeypatch):
    import pandas

    monkeypatch.setattr(pandas, "read_parquet", lambda path: pandas.DataFrame({"a": [1, 2], "y": [True, False]}))
    assert symenum("fit", table(b"PAR1...", "data.parquet")).exit_code == 0
    assert models.y.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "why"], "there is no column 'why'. Did you mean 'y'?"),
        (["--target", "Y"], "Did you mean 'y'?"),
        (["--target", "9"], "no column number 9: columns are counted from 1 to 3"),
        (["--target", "0"], "counted from 1"),
        (["--features", "a,c"], "--features: there is no column 'c'"),
        (["--drop", "c"], "--drop: there is no column 'c'"),
        (["--features", "a,y"], "the target and cannot be one of --features"),
        (["--drop", "a,b"], "no column left for a variable"),
        (["--drop", "a,b,y"], "leaves no column"),
        (["--weights", "w"], "--weights: there is no column 'w'"),
        (["--weights", "y"], "both the target and the weights"),
        (["--delimiter", "::"], "--delimiter must be one character"),
    ],
)
def test_columns_that_are_not_there(symenum, table, options, message):
    assert message in refused(symenum, table(GOOD), *options)


def test_weights_must_not_be_negative_nor_all_zero(symenum, table):
    assert "row 2 has -1" in refused(symenum, table("a,w,y\n1,1,2\n2,-1,3\n3,1,4\n"), "--weights", "w")
    constant = refused(symenum, table("a,w,y\n1,0,2\n2,1,3\n3,1,3\n"), "--weights", "w")
    assert "is 3 in all 2 rows" in constant
    assert "above zero in at least 2 rows" in refused(symenum, table("a,w,y\n1,0,2\n2,1,3\n"), "--weights", "w")


def test_two_hundred_variables(symenum, models, table):
    values = np.random.default_rng(0).normal(size=(20, 201))
    text = "\n".join([",".join(f"v{i}" for i in range(201)), *(",".join(map(repr, row)) for row in values.tolist())])
    assert symenum("fit", table(text)).exit_code == 0
    assert models.X.shape == (20, 200)


def test_two_hundred_thousand_rows_with_a_letter_of_another_encoding_at_the_end(symenum, models, table):
    text = "x,y,unit\n" + "0.5,0.25,m\n1.5,2.25,m\n" * 100_000 + "2,4,µm\n"
    assert symenum("fit", table(text.encode("latin-1")), "--target", "y", "--drop", "unit").exit_code == 0
    assert len(models.y) == 200_001


cells = st.one_of(
    st.integers(-5, 5).map(str),
    st.floats().map(repr),
    st.sampled_from(["", "NA", "1,5", '"', "#", "a b", "True", "2020-01-01", "x", "y", "\ufeff", "1e999", "0x10", "µ"]),
    st.text(max_size=3),
)
tables = st.tuples(
    st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=5),
    st.sampled_from([",", ";", "\t", " ", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16", "latin-1"]),
).map(lambda drawn: drawn[2].join(drawn[1].join(row) for row in drawn[0]).encode(drawn[3], errors="replace"))


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.one_of(tables, st.binary(max_size=60)), st.sampled_from([[], ["--drop-nan"], ["--no-header"], ["--header"]]))
def test_no_file_whatever_is_in_it_ends_in_a_traceback(symenum, table, content, options):
    result = symenum("fit", table(content), *options)  # raises what the command does not catch
    assert result.exit_code in (0, 2)
    assert (" = " in result.stdout) == (result.exit_code == 0)


EUROPEAN = "a;b;y\n1,5;2.143,88;3\n2,5;1.001,5;4\n3,25;900;5,5\n4;12.000;7\n"
ENGLISH = "a;b;y\n1.5;2,143.88;3\n2.5;1,001.5;4\n3.25;900;5.5\n4;12,000;7\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (EUROPEAN, "a decimal comma and a point between thousands"),
        (ENGLISH, "a decimal point and a comma between thousands"),
    ],
    ids=["points", "commas"],
)
def test_signs_between_thousands_are_read(tmp_path, text, words):
    path = tmp_path / "table.csv"
    path.write_text(text)
    notes = []
    frame = read_frame(path, notes.append)
    assert frame["b"].tolist() == [2143.88, 1001.5, 900, 12000]
    assert frame["a"].tolist() == [1.5, 2.5, 3.25, 4]
    assert any(words in note for note in notes)


def test_a_number_with_a_point_elsewhere_is_no_thousand(tmp_path):
    """1.25 beside 2.143 is a decimal point; with a decimal comma in other cells the file says two things."""
    path = tmp_path / "table.csv"
    path.write_text("a;b\n1.25;2.143\n0.5;3.001\n")
    assert read_frame(path, str)["b"].tolist() == [2.143, 3.001]
    path.write_text("a;b;y\n1,5;2.143,88;3\n2,5;1.25;4\n3,25;900;5,5\n")
    frame = read_frame(path, str)
    with pytest.raises(
        InputError, match=r"decimal comma \(row 1 of 'a': '1,5'\) and .* point \(row 2 of 'b': '1.25'\)"
    ):
        choose_columns(frame, ColumnChoice(), str, "the table")


def test_a_target_that_is_mostly_missing_is_never_to_be_dropped(symenum, table):
    result = symenum("fit", table("a,y\n1,2\n2,\n3,\n4,\n5,3\n"))
    assert "the target 'y' is missing in most of them. Another column is chosen with --target." in result.stderr
    assert "--drop" not in result.stderr
    message = refused(symenum, table("a,y\n1,\n2,\n"))
    assert "The target 'y' of 'data.csv' has no finite value: choose another column with --target." in message


def test_of_a_one_hot_column_that_is_mostly_missing_the_column_of_the_file_is_to_be_dropped(symenum, table):
    rows = "kind,a,y\n" + "".join(f"{'abc'[i] if i < 3 else ''},{i},{i * i}\n" for i in range(9))
    assert "--drop kind?" in symenum("fit", table(rows), "--one-hot", "kind").stderr


@pytest.mark.parametrize(
    ("cells", "what", "number"),
    [
        (("1%", "2.5 %", "3%"), "numbers with a percent sign", "1 instead of '1%'"),
        (("$1.5", "$2", "$3"), "amounts of money", "1.5 instead of '$1.5'"),
        (("2", '"1,001.5"', "3"), "numbers with commas between thousands", "1001.5 instead of '1,001.5'"),
        (("5 kg", "6 kg", "7 kg"), "numbers with units", "5 instead of '5 kg'"),
    ],
)
def test_numbers_that_read_as_text_are_no_categories(symenum, table, cells, what, number):
    message = refused(symenum, table("a,y\n" + "".join(f"{cell},{i}\n" for i, cell in enumerate(cells))))
    assert f"Column 'a' holds {what}" in message
    assert f"Write plain numbers, {number}" in message
    assert "--one-hot" not in message


def test_several_columns_of_text_are_told_in_whole_sentences(symenum, table):
    message = refused(symenum, table("a,b,y\nx,u,1\ny,v,2\nz,w,3\n"))
    assert "Column 'a' holds text (row 1: 'x'); column 'b' holds text (row 1: 'u') in 'data.csv'." in message


def test_a_dash_alone_is_a_missing_value(symenum, models, table):
    result = symenum("fit", table("a,y\n1,2\n-,3\n3,5\n-4,6\n"))
    assert "1 of 4 rows has missing or infinite values, row " in result.stderr
    assert models.X["a"].tolist() == [1, 3, -4]


def test_a_single_column_whose_name_has_a_space_stays_whole(symenum, table):
    assert "the target is 'E (J)'" in refused(symenum, table("E (J)\n1\n2\n3\n"))


def test_few_rows_constant_columns_and_equal_columns_are_told(symenum, table):
    result = symenum("fit", table("a,g,b,y\n1,9.81,1,2\n2,9.81,2,3\n3,9.81,3,5\n"))
    assert "There are only 3 rows: so few that many laws fit them." in result.stderr
    assert "The same in all rows: 'g' is 9.81. The rows cannot tell how 'y' depends on it." in result.stderr
    assert "Equal in all rows: 'b' equals 'a'. Laws may hold either of them" in result.stderr
    usual = symenum("fit", table("a,b,y\n1,3,2\n2,2,3\n3,1,5\n4,5,9\n"))
    assert "rows" not in usual.stderr.lower()
