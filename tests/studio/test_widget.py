"""The widget without a browser: what it consists of, and that it follows a fit."""

from __future__ import annotations

import json
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from symenum import PSERegressor
from symenum.studio import watch
from symenum.studio.widget import _widget_class, widget_module

anywidget = pytest.importorskip("anywidget")
WAIT = 60.0  # seconds, on a machine that others use too


def until(widget: Any, holds: Any) -> dict[str, Any]:
    """Wait for a snapshot."""
    there = threading.Event()

    def look(_: object = None) -> None:
        if holds(widget.snapshot):
            there.set()

    widget.observe(look, names="snapshot")
    look()
    assert there.wait(WAIT), widget.snapshot
    return dict(widget.snapshot)


def small() -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).uniform(1, 3, (40, 2))
    return X, X[:, 0] * X[:, 1] + 2.5


def test_a_model_is_followed_through_two_fits() -> None:
    model = PSERegressor(max_iterations=2, max_time=None, random_state=0)
    widget = watch(model)
    assert widget.snapshot["status"] == "waiting"
    X, y = small()
    model.fit(X, y)
    shown = until(widget, lambda now: now["status"] == "finished")
    assert shown["front"][shown["selected"]]["latex"]
    model.fit(X, 3 * y)
    again = until(widget, lambda now: now["status"] == "finished" and now["created"] != shown["created"])
    assert again["front"] != shown["front"]
    widget.close()


def test_a_folder_of_a_run_can_be_watched(tmp_path: Path) -> None:
    PSERegressor(max_iterations=1, max_time=None, random_state=0, run_dir=tmp_path / "run").fit(*small())
    widget = watch(tmp_path / "run")
    assert widget.snapshot["status"] == "finished"
    assert widget.snapshot["front"]
    widget.close()


def test_the_temporary_folder_goes_with_the_widget() -> None:
    model = PSERegressor(max_iterations=1, max_time=None, random_state=0)
    widget = watch(model)
    folder = model.run_dir.path
    assert folder.parent.is_dir()
    (thread,) = (one for one in threading.enumerate() if one.name == f"symenum watch {folder}")
    widget.close()
    thread.join(WAIT)
    assert not folder.parent.exists()


def test_the_module_stands_alone() -> None:
    module = widget_module()
    assert not re.search(r'(from|import) \\?"\.', module)
    assert not re.search(r"import[^;]{0,40}https?://", module)
    assert not re.search(r"url\(\\?[\"']?https?://", module)


def test_modules_come_behind_those_that_they_import() -> None:
    seen: list[str] = []
    modules = json.loads(widget_module().split("\n")[0].removeprefix("const MODULES = ").removesuffix(";"))
    for name, source in modules:
        assert set(re.findall(r'"symenum:([^"]+)"', source)) <= set(seen), name
        seen.append(name)
    assert seen[-1] == "widget.js"


def test_other_things_are_refused_in_words() -> None:
    with pytest.raises(TypeError, match="run must be a model"):
        watch(3)


def test_without_anywidget_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    _widget_class.cache_clear()
    monkeypatch.setitem(sys.modules, "anywidget", None)
    with pytest.raises(ImportError, match=r"symenum\[studio\]"):
        watch("somewhere")
