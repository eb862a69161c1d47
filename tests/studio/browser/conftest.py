"""Real servers and a real browser for the tests of the page. Everything is waited for; nothing sleeps."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium, why_not
from studio.browser.servers import Studio, swings, table

PATIENCE = 60_000  # milliseconds: two shared cores may be busy, and a search must load torch


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_not()
    for item in items:
        if reason and Path(__file__).parent in Path(item.path).parents:
            item.add_marker(pytest.mark.skip(reason=f"no browser: {reason}"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    # Per module: while Playwright is open, its loop counts as running, and tests elsewhere could not start their own.
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        # Root, as in most containers, cannot use Chromium's sandbox; the only pages are our own.
        options = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        opened = playwright.chromium.launch(executable_path=chromium(), args=[*options, "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    server = Studio(tmp_path_factory.mktemp("runs"))
    yield server
    server.end_all()


@pytest.fixture(scope="module")
def law_run(studio: Studio) -> str:
    """A run that has ended, with noise, so that its front has several laws."""
    run = studio.search("energy", table(noise=0.3), max_time=2.0)
    assert studio.finished(run)["status"] == "finished"
    return run


@pytest.fixture(scope="module")
def motion_run(studio: Studio) -> str:
    """Laws of motion, ended."""
    run = studio.search("swing", swings(), kind="motion", targets=["x", "v"], time="t", inputs=[], max_time=4.0)
    assert studio.finished(run)["status"] == "finished"
    return run


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page of a browser of its own, on an address; at the end no script may have failed."""
    contexts: list[Any] = []
    failures: list[str] = []

    def open_at(address: str, after: str = "", **options: Any) -> Any:
        context = browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda said: _refused_by_policy(said) and failures.append(said.text))
        page.goto(address)
        if after:
            page.goto(address.split("?")[0] + after)
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert failures == []


def _refused_by_policy(said: Any) -> bool:
    return said.type == "error" and "Content Security Policy" in said.text
