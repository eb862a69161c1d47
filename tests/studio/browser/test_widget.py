"""The widget in a real browser, on a page that does what a notebook does with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsers import why_not

from symenum import PSERegressor
from symenum.studio.widget import _look, widget_module

if why_not():
    pytest.skip(f"no browser: {why_not()}", allow_module_level=True)

from playwright.sync_api import expect

NOTEBOOK = """<!doctype html><html lang="en"><title>notebook</title>
<body data-jp-theme-light="false"><div id="cell"></div>
<script>window.define = () => {}; window.define.amd = {};</script>
<script type="module">
import widget from "/widget.js";
const listeners = new Set();
const values = {};
const model = {
  get: (name) => values[name], on: (_, call) => listeners.add(call), off: (_, call) => listeners.delete(call),
};
window.show = (snapshot) => { values.snapshot = snapshot; listeners.forEach((call) => call()); };
window.end = await widget.render({ model, el: document.getElementById("cell") });
window.ready = true;
</script>"""


def test_the_widget_shows_a_run_and_asks_nobody(open_page: Callable[..., Any], browser: Any, tmp_path: Path) -> None:
    X = np.random.default_rng(0).uniform(1, 3, (40, 2))
    y = X[:, 0] * X[:, 1] + np.random.default_rng(1).normal(0, 0.1, 40)
    model = PSERegressor(max_iterations=2, max_time=None, random_state=0, run_dir=tmp_path / "run").fit(X, y)
    shown = _look(tmp_path / "run")
    page = open_page("about:blank")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.route("http://notebook.test/", lambda route: route.fulfill(body=NOTEBOOK, content_type="text/html"))
    module = widget_module()
    page.route(
        "http://notebook.test/widget.js", lambda route: route.fulfill(body=module, content_type="text/javascript")
    )
    page.goto("http://notebook.test/")
    page.wait_for_function("window.ready")
    page.evaluate(
        "show", {"status": "waiting", "name": "run", "message": "The search has not begun: call fit.", "front": []}
    )
    expect(page.get_by_text("has not begun")).to_be_visible()
    few = {**shown, "status": "running", "front": shown["front"][:2], "selected": 1}
    page.evaluate("show", few)
    rows = page.locator("table.laws tbody tr")
    expect(rows).to_have_count(2)
    page.evaluate("show", shown)
    expect(rows).to_have_count(len(model.equations_))
    expect(page.locator(".formula math")).to_be_visible()
    expect(page.locator(".chart canvas")).to_be_visible()
    rows.first.click()
    expect(page.get_by_role("heading", name="The law of size")).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).fontVariantNumeric") == "normal"
    page.evaluate("end()")
    expect(rows).to_have_count(0)
    assert {url.split(":")[0] for url in asked if not url.startswith("http://notebook.test/")} <= {
        "blob",
        "data",
        "about",
    }
