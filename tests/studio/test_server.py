"""The server's answers on runs that are alive, finished, killed, copied, of another version, or incomplete."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from starlette.requests import ClientDisconnect
from studio.asking import Studio, events

from symenum.run_directory import RunLock
from symenum.studio.answers import RequestError
from symenum.studio.streams import Streams


def law_text(studio: Studio, run: str = "law") -> str:
    shown = studio.get(f"/api/runs/{run}").json()
    return shown["front"][shown["selected"]]["text"]


def test_the_page_and_its_files_are_served(studio) -> None:
    page = studio.get("/")
    assert page.headers["content-type"].startswith("text/html")
    script = studio.get("/page/main.js")
    assert script.headers["content-type"].startswith("text/javascript")
    assert studio.get("/page/vendor/katex/katex.min.css").headers["content-type"].startswith("text/css")
    assert studio.get("/page/none.js").status == 404
    assert studio.get("/page/vendor").status == 404


def test_info_has_what_a_form_needs(studio) -> None:
    info = studio.get("/api/info").json()
    assert {"koza", "arithmetic"} <= set(info["operator_sets"])
    assert {"sin", "+"} & {operator["name"] for operator in info["operators"]} or info["operators"]
    assert info["defaults"]["operators"] in info["operator_sets"]
    assert info["limits"]["columns"] > 0


def test_a_folder_without_runs_is_an_empty_list(studio) -> None:
    assert studio.get("/api/runs").json() == []


def test_other_folders_are_no_runs(studio) -> None:
    (studio.folder / "photos").mkdir()
    (studio.folder / "notes.txt").write_text("mine")
    assert studio.get("/api/runs").json() == []


def test_a_folder_that_cannot_be_read_is_said(studio, monkeypatch) -> None:
    def refuse(parent: Path) -> list[Path]:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("symenum.studio.runs.sorted_runs", refuse)
    answer = studio.get("/api/runs")
    assert answer.status == 503
    assert "change its rights" in answer.error


def test_runs_are_listed_with_their_best_law(with_runs) -> None:
    runs = {run["id"]: run for run in with_runs.get("/api/runs").json()}
    assert runs["law"]["status"] == runs["motion"]["status"] == "finished"
    assert (runs["law"]["kind"], runs["motion"]["kind"]) == ("law", "motion")
    assert runs["law"]["rows"] == 60
    assert "x1**2/x2" in runs["law"]["best"]["text"]
    assert "\\frac" in runs["law"]["best"]["latex"]


def test_a_snapshot_has_what_the_contract_says(with_runs) -> None:
    shown = with_runs.get("/api/runs/law").json()
    names = "id name kind status message target columns rows settings created elapsed time_left scored rate iteration"
    names += " move front selected schedule confidence alternatives refused files version"
    assert set(names.split()) <= set(shown)
    assert [law["index"] for law in shown["front"]] == list(range(len(shown["front"])))
    assert shown["time_left"] is None
    assert all(set(move) == {"move", "turns", "seconds", "gain"} for move in shown["schedule"])
    assert {"model.json", "report.html", "front.csv", "law.py", "law.tex"} <= set(shown["files"])
    motion = with_runs.get("/api/runs/motion").json()
    assert [state["name"] for state in motion["states"]] == ["x1", "x2"]
    assert "front" not in motion


def test_a_law_in_full(with_runs) -> None:
    index = with_runs.get("/api/runs/law").json()["selected"]
    law = with_runs.get(f"/api/runs/law/laws/{index}").json()
    assert law["text"] == law_text(with_runs)
    assert {"latex", "sympy", "python", "numpy", "c"} == set(law["code"])
    (constant,) = law["constants"]
    assert constant["low"] < constant["value"] < constant["high"]
    assert constant["value"] == pytest.approx(2.5, abs=0.01)
    assert 0 < constant["error"] < 0.01
    shares = {part["text"]: part["share"] for part in law["parts"]}
    assert set(shares) == {"x1**2", "1/x2"}
    assert all(0 < share <= 1 for share in shares.values())
    assert law["r2"] > 0.999


def test_the_loss_without_a_term_is_that_of_the_rest(with_runs, change_json) -> None:
    front = with_runs.folder / "law" / "front.json"
    document = json.loads(front.read_text())
    document["fronts"][0]["laws"] = [
        {"equation": "2.5*x1**2/x2 + 0.25", "complexity": 5, "loss": 1.0, "score": 0.0, "reward": 0.5}
    ]
    document["fronts"][0]["selected"] = 0
    front.write_text(json.dumps(document))
    with_offset = with_runs.get("/api/runs/law/laws/0").json()
    offset = next(part for part in with_offset["parts"] if part["text"] == "0.25")
    assert offset["how"] == "taken out"
    tried = with_runs.post("/api/runs/law/laws/0/try", {"constants": [2.5, 0.0], "fit": False}).json()
    assert offset["loss_without"] == pytest.approx(tried["loss"])


def test_constants_are_tried_and_fitted_again(with_runs) -> None:
    index = with_runs.get("/api/runs/law").json()["selected"]
    path = f"/api/runs/law/laws/{index}/try"
    moved = with_runs.post(path, {"constants": [3.0], "fit": False}).json()
    assert moved["constants"] == [3.0]
    assert moved["text"].startswith("3")
    fitted = with_runs.post(path, {"constants": [3.0], "fit": True}).json()
    assert fitted["loss"] < moved["loss"] / 100
    assert fitted["constants"] == [pytest.approx(2.5, abs=0.01)]


@pytest.mark.parametrize(
    "body",
    [{"constants": []}, {"constants": [1, 2]}, {"constants": ["1"]}, {"constants": 1}, {"constants": [True]}, {}],
)
def test_constants_that_do_not_fit_the_law_are_refused(with_runs, body) -> None:
    index = with_runs.get("/api/runs/law").json()["selected"]
    assert with_runs.post(f"/api/runs/law/laws/{index}/try", body).status == 422


def test_plots_are_thinned_and_agree_with_the_law(with_runs) -> None:
    index = with_runs.get("/api/runs/law").json()["selected"]
    plots = with_runs.get(f"/api/runs/law/laws/{index}/plots", query="points=20").json()
    assert (plots["rows"], plots["rows_shown"]) == (60, len(plots["parity"]["y"]))
    assert plots["rows_shown"] <= 20
    y, predicted = np.array(plots["parity"]["y"]), np.array(plots["parity"]["predicted"])
    assert np.allclose(plots["residual"]["residual"], y - predicted)
    assert np.abs(y - predicted).max() < 0.1
    assert {one["column"] for one in plots["slices"]} == {"x1", "x2"}
    surface = plots["surface"]
    assert (len(surface["z"]), len(surface["z"][0])) == (len(surface["y"]), len(surface["x"]))
    assert surface["z"][0][0] == pytest.approx(2.5 * surface["x"][0] ** 2 / surface["y"][0], rel=0.01)
    moved = with_runs.get(f"/api/runs/law/laws/{index}/plots", query="points=20&constants=5").json()
    assert np.allclose(moved["parity"]["predicted"], 2 * predicted, rtol=0.01)
    assert moved["parity"]["y"] == plots["parity"]["y"]


@pytest.mark.parametrize("query", ["points=0", "points=x", "points=99999999", "constants=a", "constants=1,2,3"])
def test_a_wrong_wish_for_plots_is_refused_in_words(with_runs, query) -> None:
    assert with_runs.get("/api/runs/law/laws/0/plots", query=query).status == 422


def test_motion_has_laws_of_each_state_and_their_motion(with_runs) -> None:
    states = with_runs.get("/api/runs/motion").json()["states"]
    second = states[1]
    query = "state=x2"
    law = with_runs.get(f"/api/runs/motion/laws/{second['selected']}", query=query).json()
    assert law["text"] == second["front"][second["selected"]]["text"]
    plots = with_runs.get(f"/api/runs/motion/laws/{second['selected']}/plots", query=query).json()
    assert [line["state"] for line in plots["time"]] == ["x1", "x2"]
    line = plots["time"][0]
    assert np.abs(np.array(line["measured"]) - np.array(line["simulated"])).max() < 0.2
    assert plots["phase"]["x_state"] == "x1"
    assert with_runs.get("/api/runs/motion/laws/0", query="state=z").status == 404


def test_constants_of_motion_are_tried_and_fitted_again(with_runs) -> None:
    front = with_runs.folder / "motion" / "front.json"
    document = json.loads(front.read_text())
    law = {"equation": "-3.9*x1 + 0.05*x2", "complexity": 5, "loss": 1.0, "score": 0.0, "reward": 0.5}
    document["fronts"][1].update(laws=[law], selected=0)
    front.write_text(json.dumps(document))
    shown = with_runs.get("/api/runs/motion/laws/0", query="state=x2").json()
    values = [constant["value"] for constant in shown["constants"]]
    assert sorted(values) == [0.05, 3.9]  # as people write it: 0.05*x2 - 3.9*x1
    moved, fitted = (
        with_runs.post("/api/runs/motion/laws/0/try", {"constants": values, "fit": fit}, query="state=x2").json()
        for fit in (False, True)
    )
    assert fitted["loss"] < moved["loss"] / 10
    assert sorted(fitted["constants"]) == pytest.approx([0.0, 4.0], abs=0.05)
    assert all(0 < constant["error"] < 0.5 for constant in shown["constants"])


def test_a_law_that_is_not_on_the_front_is_not_found(with_runs) -> None:
    answer = with_runs.get("/api/runs/law/laws/999")
    assert answer.status == 404
    assert "on the front any more" in answer.error


@pytest.mark.parametrize("path", ["/api/runs/none", "/api/runs/none/events", "/api/runs/none/laws/0"])
def test_a_run_that_is_not_there_is_not_found(studio, path) -> None:
    assert studio.get(path).status == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"target": "y"}, "table"),
        ({"table": "no"}, "choose the file again"),
        ({"kind": "magic"}, "kind"),
        ({"target": ""}, "target"),
        ({"target": "y", "inputs": "x"}, "inputs"),
        ({"target": "y", "inputs": ["y"]}, "cannot be one of the inputs"),
        ({"target": "y", "operators": ["nothing"]}, "operators"),
        ({"target": "y", "max_time": -1}, "max_time"),
        ({"target": "y", "max_time": 1e9}, "max_time"),
        ({"target": "y", "random_state": "a"}, "random_state"),
        ({"target": "y", "parameters": {"callbacks": 1}}, "callbacks"),
        ({"target": "y", "parameters": {"run_dir": "/tmp"}}, "run_dir"),
        ({"target": "y", "parameters": {"checkpoint": "/tmp/x"}}, "checkpoint"),
        ({"target": "y", "parameters": {"max_complexity": -3}}, "max_complexity"),
        ({"target": "y", "parameters": []}, "parameters"),
        ({"kind": "motion"}, "targets"),
        ({"kind": "motion", "targets": ["y"]}, "time"),
        ({"kind": "motion", "targets": ["y"], "time": "x", "parameters": {"bad": 1}}, "bad"),
    ],
)
def test_a_wrong_wish_for_a_search_is_refused_before_anything_starts(studio, body, said) -> None:
    table = studio.upload(b"x,y\n1,2\n2,3\n").json()["table"]
    answer = studio.post("/api/runs", body if "table" in body or said == "table" else {"table": table, **body})
    assert answer.status in (404, 422)
    assert said in answer.error
    assert studio.get("/api/runs").json() == []


def test_requests_that_are_no_json_are_refused(studio) -> None:
    headers = {"content-type": "application/json"}
    assert studio.post("/api/runs", body=b"{", headers=headers).status == 400
    assert studio.post("/api/runs", body=b"[]", headers=headers).status == 422
    assert studio.post("/api/runs", body=b"[" * 100_000, headers=headers).status == 400
    assert studio.post("/api/runs", body=b"{}", headers={"content-type": "text/plain"}).status == 415
    large = studio.post("/api/runs", body=(b" " * (1 << 20) for _ in range(100)), headers=headers)
    assert large.status == 413
    assert large.chunks_taken <= 5


def test_a_search_that_ends_before_it_begins_says_why(studio, monkeypatch) -> None:
    def refuse(command: list[str], **streams: object) -> subprocess.Popen[bytes]:
        child = subprocess_popen(["python3", "-c", "print('No column is called so.')"], **streams)
        child.wait()
        return child

    subprocess_popen = subprocess.Popen
    monkeypatch.setattr("symenum.studio.runs.subprocess.Popen", refuse)
    table = studio.upload(b"x,y\n1,2\n2,3\n").json()["table"]
    run = studio.post("/api/runs", {"table": table, "target": "y", "max_time": 1}).json()["id"]
    shown = studio.get(f"/api/runs/{run}").json()
    assert shown["status"] == "failed"
    assert "No column is called so." in shown["message"]


# Runs that are alive, killed, copied


def test_a_run_whose_lock_is_held_is_alive_also_for_a_server_that_did_not_start_it(with_runs) -> None:
    folder = with_runs.folder / "law"
    without_its_end(folder)
    lock = RunLock(folder)
    lock.acquire()
    try:
        assert with_runs.get("/api/runs/law").json()["status"] == "running"
        restarted = Studio(with_runs.folder)
        assert restarted.get("/api/runs/law").json()["status"] == "running"
        assert restarted.post("/api/runs/law/stop").json() == {"status": "running"}
        assert (folder / "stop").exists()
        assert restarted.post("/api/runs/law/resume", {"max_time": 1}).status == 409
    finally:
        lock.release()


def without_its_end(folder: Path) -> None:
    lines = (folder / "events.jsonl").read_text().splitlines()
    (folder / "events.jsonl").write_text("".join(f"{line}\n" for line in lines if '"event": "end"' not in line))


def test_a_killed_run_is_shown_with_all_that_it_found(with_runs) -> None:
    before = law_text(with_runs)
    without_its_end(with_runs.folder / "law")
    fresh = Studio(with_runs.folder)
    shown = fresh.get("/api/runs/law").json()
    assert shown["status"] == "killed"
    assert "resume" in shown["message"]
    assert law_text(fresh) == before
    assert fresh.get(f"/api/runs/law/laws/{shown['selected']}/plots").status == 200


def test_a_copy_of_a_run_is_the_run(with_runs) -> None:
    shutil.copytree(with_runs.folder / "law", with_runs.folder / "from a colleague")
    assert law_text(with_runs, "from a colleague") == law_text(with_runs)
    index = with_runs.get("/api/runs/law").json()["selected"]
    there, here = (with_runs.get(f"/api/runs/{run}/laws/{index}").json() for run in ("from a colleague", "law"))
    assert there == here


def test_resume_goes_on_in_the_same_folder(with_runs, monkeypatch) -> None:
    started: list[list[str]] = []

    class Child:
        def __init__(self, command: list[str], **streams: object) -> None:
            started.append(command)

        def poll(self) -> None:
            return None

        def wait(self) -> int:
            return 0

    monkeypatch.setattr("symenum.studio.runs.subprocess.Popen", Child)
    assert with_runs.post("/api/runs/law/resume", {"max_time": 7}).json() == {"status": "waiting"}
    assert started[0][1:] == ["-m", "symenum", "resume", str(with_runs.folder / "law"), "--max-time", "7.0"]
    assert with_runs.get("/api/runs/law").json()["status"] == "waiting"
    assert with_runs.post("/api/runs/law/resume", {"max_time": 7}).status == 409
    assert "laws of motion" in with_runs.post("/api/runs/motion/resume", {"max_time": 7}).error


# Runs of another version, or with a part that is missing


def test_a_run_of_another_version_says_what_to_do(with_runs, change_json) -> None:
    change_json(with_runs.folder / "law" / "run.json", version=99, symenum="9.9")
    shown = with_runs.get("/api/runs/law").json()
    assert shown["status"] == "unreadable"
    assert "open it with the symenum that wrote it" in shown["message"]
    assert with_runs.get("/api/runs/law/laws/0").error == shown["message"]
    assert {run["id"]: run["status"] for run in with_runs.get("/api/runs").json()}["motion"] == "finished"


@pytest.mark.parametrize(
    ("missing", "status", "said"),
    [
        ("run.json", "unreadable", "There is no 'run.json' here"),
        ("front.json", "finished", "'front.json' is missing"),
        ("events.jsonl", "killed", "'events.jsonl' is missing"),
    ],
)
def test_a_run_with_a_missing_part_says_which(with_runs, missing, status, said) -> None:
    (with_runs.folder / "law" / missing).unlink()
    shown = with_runs.get("/api/runs/law").json()
    assert shown["status"] == status
    assert said in shown["message"]


def test_without_its_rows_a_law_cannot_be_plotted_and_this_is_said(with_runs) -> None:
    for file in (with_runs.folder / "law").glob("*.npz"):
        file.unlink()
    assert law_text(with_runs)
    answer = with_runs.get("/api/runs/law/laws/0/plots")
    assert answer.status == 409
    assert "copy that file, too" in answer.error


def test_without_its_checkpoint_a_run_cannot_go_on_and_this_is_said(with_runs) -> None:
    (with_runs.folder / "law" / "checkpoint.json").unlink()
    answer = with_runs.post("/api/runs/law/resume", {"max_time": 1})
    assert answer.status == 409
    assert "no checkpoint.json" in answer.error


@pytest.mark.parametrize("name", ["run.json", "front.json"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"format": "other"}', b"[" * 100_000])
def test_a_damaged_file_is_said_and_never_a_failure(with_runs, name, content) -> None:
    (with_runs.folder / "law" / name).write_bytes(content)
    shown = with_runs.get("/api/runs/law").json()
    assert shown["status"] == "unreadable"
    assert f"'{name}'" in shown["message"]


@pytest.mark.parametrize("equation", ["__import__('os').system('id')", "own_operator(x1)", "x1 +", "unknown + 1"])
def test_a_law_that_is_none_is_shown_as_text_and_never_run(with_runs, equation) -> None:
    front = with_runs.folder / "law" / "front.json"
    document = json.loads(front.read_text())
    document["fronts"][0]["laws"][0]["equation"] = equation
    front.write_text(json.dumps(document))
    assert with_runs.get("/api/runs/law").json()["front"][0]["text"] == equation
    assert with_runs.get("/api/runs/law/laws/0").status == 409


# Streams of events


def test_a_stream_begins_with_a_snapshot_and_tells_news_only(with_runs) -> None:
    streams = Streams()
    reads = 0

    def read() -> dict[str, object]:
        nonlocal reads
        reads += 1
        if reads == 4:
            streams.close()
        return {"version": 1 if reads < 3 else 2, "elapsed": reads, "law": "x" if reads < 3 else "y"}

    found = asyncio.run(events(streams.events(read), 10))
    assert [message.splitlines()[:2] for message in found] == [
        ["event: snapshot", "id: 1"],
        ["event: snapshot", "id: 2"],
    ]
    assert reads == 4


def test_a_thousand_streams_are_refused_beyond_a_bound_and_free_their_place() -> None:
    streams = Streams(most=5)

    async def gone() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: object) -> None:
        raise OSError("the client is gone")

    async def look() -> int:
        opened = [streams.answer(lambda: {"version": 1}) for _ in range(5)]
        refused = 0
        for _ in range(1_000):
            try:
                streams.answer(lambda: {"version": 1})
            except RequestError as error:
                refused += error.status == 503
        for answer in opened:  # clients that were gone before the first event
            with contextlib.suppress(OSError, ClientDisconnect):
                await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, gone, send)
        assert [streams.answer(lambda: {"version": 1}) for _ in range(5)]
        return refused

    assert asyncio.run(look()) == 1_000


def test_a_stream_of_a_run_that_is_removed_says_so_and_ends() -> None:
    def read() -> dict[str, object]:
        raise RequestError(404, "There is no such run.")

    found = asyncio.run(events(Streams().events(read), 10))
    assert found == ['event: gone\nid: 0\ndata: {"error":"There is no such run."}\n\n']
