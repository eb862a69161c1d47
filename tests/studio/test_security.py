"""Who may talk to the server, and where it reads and writes: each attack is a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from symenum.studio.security import HEADERS, inside, own_hosts, stored_token

OTHER = "http://evil.example"


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/info", "/api/runs", "/api/runs/law", "/nowhere"])
def test_without_the_token_nothing_is_answered(with_runs, path) -> None:
    answer = with_runs.get(path, token=None)
    assert answer.status == 403
    assert "token" in answer.error


def test_a_wrong_token_is_no_token(with_runs) -> None:
    assert with_runs.get("/api/runs", token="a-token-of-24-characterz").status == 403
    assert with_runs.get("/", query="token=", token=None).status == 403


def test_the_first_visit_gets_a_cookie_that_scripts_and_other_sites_do_not_get(with_runs) -> None:
    first = with_runs.get("/", query="token=a-token-of-24-characters", token=None)
    assert first.status == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    again = with_runs.get("/api/runs", token=None, headers={"cookie": cookie.split(";")[0]})
    assert again.status == 200


def test_the_token_counts_in_the_address_of_the_page_only(with_runs) -> None:
    assert with_runs.get("/api/runs", query="token=a-token-of-24-characters", token=None).status == 403


def test_a_damaged_cookie_is_none(with_runs) -> None:
    assert with_runs.get("/api/runs", token=None, headers={"cookie": 'a=b; "\x01=;'}).status == 403


@pytest.mark.parametrize(
    "path", ["/api/runs", "/api/tables", "/api/runs/law/stop", "/api/runs/law/resume", "/api/runs/law/laws/0/try"]
)
@pytest.mark.parametrize("origin", [OTHER, "null", "http://127.0.0.1:9999", "https://127.0.0.1:8765"])
def test_a_post_of_another_origin_is_refused_even_with_the_token(with_runs, path, origin) -> None:
    before = sorted(with_runs.folder.rglob("*"))
    answer = with_runs.post(path, headers={"origin": origin})
    assert answer.status == 403
    assert "another site" in answer.error
    assert sorted(with_runs.folder.rglob("*")) == before


def test_our_own_origin_may_post(with_runs) -> None:
    own = {"origin": "http://127.0.0.1:8765"}
    assert with_runs.post("/api/runs/law/stop", headers=own).json() == {"status": "finished"}


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_the_browser_calls_foreign_is_refused(with_runs, site) -> None:
    assert with_runs.get("/api/runs", headers={"sec-fetch-site": site}).status == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1", "127.0.0.1:80", "", "127.0.0.1.nip.io:8765"]
)
def test_a_foreign_host_header_is_refused(with_runs, host) -> None:
    """A name that resolves to 127.0.0.1 makes another site's page one of ours in the browser's eyes."""
    answer = with_runs.get("/api/runs", headers={"host": host})
    assert answer.status == 403
    assert "is not called" in answer.error


def test_the_names_of_this_machine_are_ours() -> None:
    assert own_hosts("127.0.0.1", 80) == {"127.0.0.1:80", "localhost:80", "[::1]:80"}
    assert "[fe80::1]:80" in own_hosts("fe80::1", 80)


def test_on_all_addresses_the_names_of_the_machine_are_ours_too(monkeypatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Lab-PC")
    monkeypatch.setattr("socket.getfqdn", lambda: "lab-pc.example.org")
    monkeypatch.setattr("socket.getaddrinfo", lambda *_: [(2, 1, 6, "", ("192.0.2.7", 0))])
    found = own_hosts("0.0.0.0", 80)
    assert {"lab-pc:80", "lab-pc.example.org:80", "192.0.2.7:80", "127.0.0.1:80"} <= found
    assert "192.0.2.7:80" not in own_hosts("127.0.0.1", 80)


@pytest.mark.parametrize(
    "name", ["..", ".", "../law", "%2e%2e", "..%2flaw", "law/../law", "a\\b", "/etc", ".studio", "no\0"]
)
@pytest.mark.parametrize("path", ["/api/runs/{}", "/api/runs/{}/stop", "/api/runs/{}/files/run.json", "/page/{}"])
def test_names_that_lead_out_of_the_folder_are_not_found(with_runs, path, name) -> None:
    method = "POST" if path.endswith("stop") else "GET"
    assert with_runs.ask(method, path.format(name)).status in (404, 405)


@pytest.mark.parametrize(
    "name", ["../../../etc/passwd", "..", "..%2f..%2fsecret.txt", "checkpoint.json", "request.json", "run.lock"]
)
def test_only_the_files_that_the_page_offers_can_be_fetched(with_runs, name) -> None:
    (with_runs.folder.parent / "secret.txt").write_text("secret")
    assert with_runs.get(f"/api/runs/law/files/{name}").status == 404


def test_a_file_that_is_a_link_is_not_followed(with_runs) -> None:
    secret = with_runs.folder.parent / "secret.txt"
    secret.write_text("secret")
    report = with_runs.folder / "law" / "report.html"
    report.unlink()
    report.symlink_to(secret)
    assert with_runs.get("/api/runs/law/files/report.html").status == 404
    shown = with_runs.get("/api/runs/law").json()
    assert shown["status"] == "unreadable"
    assert "is a link" in shown["message"]


def test_a_run_that_is_a_link_is_neither_listed_nor_opened(with_runs, tmp_path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (with_runs.folder / "law").rename(elsewhere)
    (with_runs.folder / "law").symlink_to(elsewhere)
    assert [run["id"] for run in with_runs.get("/api/runs").json()] == ["motion"]
    assert with_runs.get("/api/runs/law").status == 404
    assert with_runs.post("/api/runs/law/stop").status == 404


@pytest.mark.parametrize("name", ["stop", "log.txt", "events.jsonl"])
def test_nothing_is_written_through_a_link(with_runs, name) -> None:
    outside = with_runs.folder.parent / "outside.txt"
    file = with_runs.folder / "law" / name
    file.unlink(missing_ok=True)
    file.symlink_to(outside)
    with_runs.post("/api/runs/law/stop")
    assert "is a link" in with_runs.post("/api/runs/law/resume", {"max_time": 1}).error
    assert not outside.exists()


def test_inside_takes_names_of_entries_only(tmp_path: Path) -> None:
    assert inside(tmp_path, "a.json") == tmp_path / "a.json"
    for name in ("", ".", "..", "a/b", "/a", "a\0", "..\\a"):
        with pytest.raises(ValueError, match="is no name of an entry"):
            inside(tmp_path, name)
    (tmp_path / "link").symlink_to("/")
    with pytest.raises(ValueError, match="leads out"):
        inside(tmp_path, "link")


@pytest.mark.parametrize("path", ["/", "/page/main.js", "/api/runs", "/api/runs/law/files/model.json", "/nowhere"])
def test_every_answer_forbids_foreign_scripts_frames_and_guesses(with_runs, path) -> None:
    answer = with_runs.get(path)
    for name, value in HEADERS.items():
        assert answer.headers[name.lower()] == value
    policy = answer.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "default-src 'none'" in policy


def test_a_report_is_shown_in_a_sandbox(with_runs) -> None:
    answer = with_runs.get("/api/runs/law/files/report.html")
    assert answer.status == 200
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")


def test_other_files_are_downloads(with_runs) -> None:
    answer = with_runs.get("/api/runs/law/files/law.py")
    assert answer.headers["content-disposition"] == 'attachment; filename="law-law.py"'
    assert answer.headers["content-type"] == "application/octet-stream"


def test_the_token_is_kept_where_only_its_owner_reads(tmp_path: Path) -> None:
    path = tmp_path / ".studio" / "token"
    token = stored_token(path)
    assert len(token) >= 43  # 256 bits
    assert stored_token(path) == token
    if os.name == "posix":
        assert path.stat().st_mode & 0o777 == 0o600


def test_a_token_that_is_too_short_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("short")
    assert len(stored_token(path)) >= 43
