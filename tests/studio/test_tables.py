"""Uploads: what a table is, what is refused, and that no file can fill disk or memory."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile

import pandas
import pytest
from studio.asking import Studio

from symenum.studio.tables import Limits

SMALL = Limits(upload_bytes=100_000, unpacked_bytes=1_000_000, columns=50, cells=10_000)


@pytest.fixture
def small(tmp_path):
    (tmp_path / "runs").mkdir()
    return Studio(tmp_path / "runs", SMALL)


def uploads(studio) -> list:
    folder = studio.folder / ".studio" / "tables"
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_a_table_is_described(studio) -> None:
    text = "day,name,flat,gone,x,y\n2024-01-01,a,3,,1,2.5\n2024-01-02,b,3,,,1.5\n2024-01-04,b,3,,4,0.5\n"
    shown = studio.upload(text.encode(), "my table.csv").json()
    assert (shown["name"], shown["rows"], shown["suggested_target"]) == ("my table.csv", 3, "y")
    kinds = {column["name"]: column["kind"] for column in shown["columns"]}
    assert kinds == {"day": "date", "name": "text", "flat": "constant", "gone": "empty", "x": "number", "y": "number"}
    x = shown["columns"][4]
    assert (x["missing"], x["min"], x["max"], x["distinct"]) == (1, 1.0, 4.0, 2)
    assert x["warning"] == "1 cell is missing: rows without a value are left out."
    day = shown["columns"][0]
    assert (day["min"], day["max"]) == ("2024-01-01", "2024-01-04")
    assert shown["preview"][1] == ["2024-01-02", "b", "3", "", "", "1.5"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\n\n\n", ""),
        (b"x\n1\n2\n", "one column"),
        (bytes(range(256)) * 20, ""),
        (b"\x7fELF\x02\x01\x01" + bytes(300), ""),
        (b"PK\x03\x04 no archive", "workbook"),
        (b"PAR1 no parquet PAR1", "Parquet"),
        (b"\xd0\xcf\x11\xe0" + bytes(100), "before 2007"),
        (b'a,b\n"1,2\n', ""),
    ],
    ids=[
        "empty",
        "blank",
        "one column",
        "binary",
        "program",
        "no workbook",
        "no parquet",
        "old workbook",
        "open quote",
    ],
)
def test_a_file_that_is_no_table_is_refused_in_words(studio, content, said) -> None:
    answer = studio.upload(content)
    assert answer.status == 422
    assert said in answer.error
    assert "Traceback" not in answer.error
    assert str(studio.folder) not in answer.error


def test_text_may_become_columns_where_it_is_of_a_few_kinds(studio) -> None:
    rows = [f"{'abc'[i % 3]},name {i},{'x' if i == 7 else i},one,{i}" for i in range(30)]
    shown = studio.upload("\n".join(["kind,name,odd,same,y", *rows]).encode()).json()
    columns = {column["name"]: column for column in shown["columns"]}
    assert [name for name, column in columns.items() if column.get("one_hot")] == ["kind"]
    assert columns["kind"]["warning"] == "Text: a column of 0 and 1 for each kind, if ticked."
    assert columns["name"]["warning"] == "Text: it is left out."
    assert columns["odd"]["warning"] == "1 cell is no number: correct it, or leave the column out."


def test_times_of_a_column_are_shown_to_the_minute(studio) -> None:
    shown = studio.upload(b"t,y\n2024-01-01T08:30,1\n2024-01-01T09:45,2\n2024-01-02T00:00,3\n").json()
    assert (shown["columns"][0]["min"], shown["columns"][0]["max"]) == ("2024-01-01 08:30", "2024-01-02")


@pytest.mark.parametrize("content", [b"a,b,c,d\n1,2\n3,4\n", b"a,b\n1,2\n" * 2000 + b"1,2,3\n"])
def test_messages_on_the_page_name_no_option_of_the_command_line(studio, content) -> None:
    answer = studio.upload(content)
    assert answer.status == 422
    assert "--" not in answer.error
    assert answer.error.endswith(".")
    assert not answer.error.endswith("..")


def test_uploads_together_are_bounded_and_the_oldest_go_first(tmp_path) -> None:
    studio = Studio(tmp_path, Limits(kept_bytes=1000))
    text = b"a,b\n" + b"1,2\n" * 100
    keys = [studio.upload(text, f"{i}.csv").json()["table"] for i in range(6)]
    assert {path.name for path in uploads(studio)} == {*keys[-3:]}  # two of 404 bytes, and the one that came last


def test_ten_thousand_columns_are_refused_in_words(studio) -> None:
    header = ",".join(f"c{i}" for i in range(10_000))
    answer = studio.upload(f"{header}\n{','.join(['1'] * 10_000)}\n{','.join(['2'] * 10_000)}\n".encode())
    assert answer.status == 413
    assert "10,000 columns" in answer.error
    assert "symenum fit" in answer.error


def test_mixed_encodings_are_read_with_a_warning(studio) -> None:
    content = "größe,ort,y\n1,Köln,2\n".encode() + "3,Köln,4\n".encode("latin-1")
    shown = studio.upload(content).json()
    assert shown["rows"] == 2
    assert any("not in UTF-8 throughout" in text for text in shown["warnings"])


def test_utf_16_is_read(studio) -> None:
    shown = studio.upload("größe,y\n1,2\n3,4\n".encode("utf-16")).json()
    assert [column["name"] for column in shown["columns"]] == ["größe", "y"]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "{{7*7}}", "'; DROP", "x" * 10_000, "\u202eabc"])
def test_names_from_data_stay_text(studio, name) -> None:
    frame = pandas.DataFrame({name: [1.0, 2.0, 3.0], "y": [1.0, 4.0, 9.0]})
    answer = studio.upload(frame.to_csv(index=False).encode())
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json()["columns"][0]["name"] == name


def test_a_hostile_file_name_is_a_name_only(studio) -> None:
    shown = studio.upload(b"x,y\n1,2\n2,3\n", "..%2F..%2Fetc%2F%3Cb%3E.csv").json()
    assert shown["name"] == "../../etc/<b>.csv"
    (folder,) = uploads(studio)
    assert sorted(path.name for path in folder.iterdir()) == ["name", "table.csv"]


def test_an_upload_that_declares_5_gb_is_refused_before_it_comes(studio) -> None:
    answer = studio.upload(iter([b"x,y\n"] * 10), headers={"content-length": str(5 << 30)})
    assert answer.status == 413
    assert answer.chunks_taken == 0
    assert "256 MB" in answer.error
    assert uploads(studio) == []


def test_an_upload_without_a_length_is_counted_as_it_comes(small) -> None:
    endless = (b"1,2\n" * 4_000 for _ in range(350_000))  # 5.6 GB, if somebody took it
    answer = small.upload(endless)
    assert answer.status == 413
    assert answer.chunks_taken <= 8
    assert uploads(small) == []


@pytest.mark.parametrize("length", ["-1", "many", "1e3"])
def test_a_length_that_is_no_number_is_refused(studio, length) -> None:
    assert studio.upload(b"x,y\n1,2\n", headers={"content-length": length}).status == 413


def workbook(frame: pandas.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.to_excel(file, index=False)
    return file.getvalue()


def test_a_workbook_is_read(studio) -> None:
    frame = pandas.DataFrame({"x": [1, 2, 3], "day": pandas.to_datetime(["2024-01-01"] * 3), "y": [0.5, 1.5, 2.5]})
    shown = studio.upload(workbook(frame), "book.xlsx").json()
    assert [column["kind"] for column in shown["columns"]] == ["number", "date", "number"]


def test_a_zip_bomb_in_a_workbook_is_refused(small) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(20_000_000))
    answer = small.upload(bomb.getvalue(), "book.xlsx")
    assert answer.status == 413
    assert "unpacks to" in answer.error


def test_a_zip_bomb_that_lies_about_its_size_is_refused(small) -> None:
    """The directory says a few bytes; what comes out is more."""
    plain = workbook(pandas.DataFrame({"x": [1], "y": [2]}))
    bomb = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(plain)) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry in source.infolist():
            content = source.read(entry)
            archive.writestr(entry.filename, bytes(20_000_000) if "sheet1" in entry.filename else content)
    lying = bomb.getvalue().replace(struct.pack("<I", 20_000_000), struct.pack("<I", 100))
    answer = small.upload(lying, "book.xlsx")
    assert answer.status in (413, 422)
    assert "workbook" in answer.error


def test_a_sheet_with_too_many_cells_is_refused(small) -> None:
    frame = pandas.DataFrame({f"c{i}": range(300) for i in range(40)})
    answer = small.upload(workbook(frame), "book.xlsx")
    assert answer.status == 413
    assert "too many cells" in answer.error


def test_a_packed_text_is_read_and_a_packed_bomb_refused(small) -> None:
    assert small.upload(gzip.compress(b"x,y\n1,2\n2,3\n"), "table.csv.gz").json()["rows"] == 2
    answer = small.upload(gzip.compress(bytes(20_000_000)), "table.csv.gz")
    assert answer.status == 413
    assert "unpacks to more" in answer.error
    assert small.upload(b"\x1f\x8bno", "table.csv.gz").status == 422


def test_a_parquet_file_is_read_and_a_large_one_refused(small) -> None:
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    pandas.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}).to_parquet(file)
    assert small.upload(file.getvalue(), "table.parquet").json()["rows"] == 2
    large = io.BytesIO()
    pandas.DataFrame({"x": [0.0] * 20_000, "y": [1.0] * 20_000}).to_parquet(large)
    assert small.upload(large.getvalue(), "table.parquet").status == 413


def test_old_uploads_go(studio, monkeypatch) -> None:
    monkeypatch.setattr("symenum.studio.tables._KEPT", 3)
    keys = [studio.upload(b"x,y\n1,2\n2,3\n").json()["table"] for _ in range(6)]
    assert len(uploads(studio)) == 4
    answer = studio.post("/api/runs", {"table": keys[0], "target": "y", "max_time": 1})
    assert answer.status == 404
    assert "choose the file again" in answer.error


def test_a_disk_that_is_full_is_said(studio, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.mkdir", full)
    answer = studio.upload(b"x,y\n1,2\n")
    assert answer.status == 503
    assert "No space left" in answer.error
