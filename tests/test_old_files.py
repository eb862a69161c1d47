"""Files that symenum 0.1 has written (tests/old_files, made by its last commit): read, or refused with what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from symenum import PSERegressor, __version__
from symenum.bench.store import Store, StoreError, read_rows
from symenum.cli import main
from symenum.cli.messages import InputError
from symenum.cli.outputs import read_model
from symenum.expressions import parse

OLD = Path(__file__).parent / "old_files"


def test_a_model_of_0_1_is_read() -> None:
    model = read_model(OLD / "cli_0.1" / "model.json")
    assert model.law.expression == parse("2*x + 1")
    assert [law.loss for law in model.laws] == [9.76, 0.0]
    assert model.settings["token_generator"] == "gp"


def test_a_model_of_a_later_format_is_refused_with_its_version_and_what_to_do(tmp_path: Path) -> None:
    document = json.loads((OLD / "cli_0.1" / "model.json").read_text(encoding="utf-8"))
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**document, "version": 7, "symenum": "0.9.3"}), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"symenum 0\.9\.3 with version 7 of the format.*run symenum fit again"
    ) as caught:
        read_model(path)
    assert f"this is symenum {__version__}" in str(caught.value)


def test_a_checkpoint_of_0_1_is_refused_with_its_version_and_what_to_do() -> None:
    path = OLD / "checkpoint_0.1.json"
    with pytest.raises(ValueError, match=r"written by symenum 0\.1 \(version 2 of the format\)") as caught:
        PSERegressor.resume(path)
    words = str(caught.value)
    assert f"this is symenum {__version__}" in words
    assert 'start anew and give the laws under "front" in the file as guesses' in words


def test_what_the_refusal_says_can_be_done() -> None:
    document = json.loads((OLD / "checkpoint_0.1.json").read_text(encoding="utf-8"))
    laws = [entry["expression"] for entry in document["front"]["entries"]]
    assert len(laws) == 4
    assert all(str(parse(law)) == law for law in laws)


def test_a_later_checkpoint_is_refused_with_the_version_that_it_names(tmp_path: Path) -> None:
    document = json.loads((OLD / "checkpoint_0.1.json").read_text(encoding="utf-8"))
    path = tmp_path / "checkpoint.json"
    path.write_text(json.dumps({**document, "version": 99, "symenum": "0.9.3"}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"written by symenum 0\.9\.3 \(version 99 of the format\)"):
        PSERegressor.resume(path)


def test_a_checkpoint_says_which_symenum_has_written_it(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    PSERegressor(max_iterations=1, checkpoint=path).fit([[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0])
    assert json.loads(path.read_text(encoding="utf-8"))["symenum"] == __version__


def test_symenum_resume_refuses_a_folder_of_0_1_in_one_message(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(OLD / "cli_0.1", folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    result = CliRunner().invoke(main, ["resume", str(folder)])
    assert result.exit_code == 2
    assert "written by symenum 0.1" in result.output
    assert "start anew" in result.output
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_symenum_fit_takes_the_checkpoint_of_0_1_for_its_own_and_writes_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.json"
    shutil.copy(OLD / "checkpoint_0.1.json", path)
    model = PSERegressor(max_iterations=1, max_time=None, random_state=0, checkpoint=path)
    model.fit([[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0])
    assert PSERegressor.resume(path, max_iterations=2).n_iter_ == 2


def test_a_bench_of_0_1_is_reported_but_not_continued(tmp_path: Path) -> None:
    settings = {"version": "0.1.0", "max_time": 5.0, "cores": 1, "memory": 1 << 30}
    Store(tmp_path).open(settings, "symenum bench run nguyen")
    assert read_rows(tmp_path)[0]["version"] == "0.1.0"
    with pytest.raises(StoreError, match=rf"version 0\.1\.0 \(now {__version__}\): choose another folder"):
        Store(tmp_path).open({**settings, "version": __version__}, "symenum bench run nguyen")
