"""A run inside a notebook: `watch` follows a folder of a run with the same modules as the studio's page.

    model = PSERegressor()
    watch(model)  # the last line of a cell shows it; it follows every `fit` of the model from now on

An anywidget is one module without files beside it. So the page's modules travel inside it as text and become modules
again in the browser. Nothing is fetched from anywhere.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

from symenum.run_directory.layout import RunPlace

__all__ = ["watch", "widget_module"]

_PAGE = Path(__file__).parent / "page"
_LOOK_EVERY = 0.5  # seconds between two looks at the folder, as on the page
_IMPORT = re.compile(r'(?P<start>\bfrom |\bimport )"(?P<path>\.[^"]+)"')
_STYLES = ("vendor/uplot/uPlot.min.css", "style.css")
# KaTeX asks whether a module loader is about (notebooks have one) and would hand itself to that instead of to us.
_PLAIN_SCRIPT = "const define = undefined, module = undefined, exports = undefined;\n"
_LOADER = """
const addresses = new Map();
for (const [name, source] of MODULES) {
  const text = source.replace(/"symenum:([^"]+)"/g, (_, other) => JSON.stringify(addresses.get(other)));
  addresses.set(name, URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
}
const loaded = import(addresses.get("widget.js"));
export default {
  async render({ model, el }) {
    const { showWidget } = await loaded;
    return showWidget(model, el, STYLE);
  },
};
"""


def watch(run: Any) -> Any:
    """A widget that shows a run while it goes on: of a model, from its next `fit` on, or of a folder.

    Parameters
    ----------
    run : PSERegressor, ODERegressor or path
        A model without a `run_dir` gets one in a temporary folder that goes with the widget.

    Returns
    -------
    anywidget.AnyWidget
        `snapshot` is what it shows, as the studio's server would answer; `close()` ends it.
    """
    from symenum.estimator.persistence import run_place  # brings torch, which `symenum studio --help` need not wait for

    widget_class = _widget_class()
    temporary = None
    if isinstance(run, (str, PathLike)):
        folder = Path(run)
    elif not hasattr(run, "run_dir"):
        kind = type(run).__name__
        raise TypeError(f"run must be a model with a run_dir, such as PSERegressor, or a folder, not {kind}.")
    elif (place := run_place(run.run_dir)) is not None:
        folder = place.path
    else:
        temporary = Path(tempfile.mkdtemp(prefix="symenum-"))
        folder = temporary / "run"
        run.set_params(run_dir=RunPlace(folder, results=False))  # another fit may take the same folder
    widget = widget_class(snapshot=_look(folder))
    end = weakref.finalize(widget, _remove, temporary)  # at the latest when Python ends
    threading.Thread(
        target=_follow, args=(folder, weakref.ref(widget), end), name=f"symenum watch {folder}", daemon=True
    ).start()
    return widget


def _remove(temporary: Path | None) -> None:
    if temporary is not None:
        shutil.rmtree(temporary, ignore_errors=True)


def _follow(folder: Path, reference: weakref.ref[Any], end: Callable[[], object]) -> None:
    """Renew the widget until it is closed or nobody holds it."""
    clock = threading.Event()  # never set: it only measures time
    while not clock.wait(_LOOK_EVERY):
        shown = _look(folder)
        widget = reference()
        if widget is None:
            return
        if widget.comm is None:  # closed
            end()
            return
        if shown != widget.snapshot:
            widget.snapshot = shown
        del widget  # or it would be held while we wait


def _look(folder: Path) -> dict[str, Any]:
    """The run as it stands now, in plain values."""
    from symenum.run_directory import RunReader
    from symenum.studio.answers import plain
    from symenum.studio.snapshots import snapshot

    if not folder.is_dir():
        return {"status": "waiting", "name": folder.name, "message": "The search has not begun: call fit.", "front": []}
    shown: dict[str, Any] = plain(snapshot(RunReader(folder).read()))
    return shown


@lru_cache(maxsize=1)
def _widget_class() -> Any:
    try:
        import anywidget
        import traitlets
    except ImportError as error:
        raise ImportError("watch needs the package anywidget: pip install 'symenum[studio]'.") from error

    class StudioWidget(anywidget.AnyWidget):  # type: ignore[misc]
        _esm = widget_module()
        snapshot = traitlets.Dict().tag(sync=True)

    return StudioWidget


@lru_cache(maxsize=1)
def widget_module() -> str:
    """The widget as one JavaScript module: the page's modules and styles as text, and what loads them."""
    modules: dict[str, str] = {}
    _collect("widget.js", modules)
    style = "\n".join((_PAGE / name).read_text(encoding="utf-8") for name in _STYLES)
    style = re.sub(r"^body \{", ".widget {", style.replace(":root", ":host"), flags=re.MULTILINE)
    known = f"const MODULES = {json.dumps(list(modules.items()))};\nconst STYLE = {json.dumps(style)};"
    return f"{known}\n{_LOADER}"


def _collect(name: str, modules: dict[str, str]) -> None:
    """Add a module of the page behind all those that it imports, which it then names as "symenum:NAME"."""
    if name in modules:
        return
    source = (_PAGE / name).read_text(encoding="utf-8")
    if name.startswith("vendor/katex/"):
        modules[name] = _PLAIN_SCRIPT + source
        return

    def named(found: re.Match[str]) -> str:
        other = ((_PAGE / name).parent / found["path"]).resolve().relative_to(_PAGE.resolve()).as_posix()
        _collect(other, modules)
        return f'{found["start"]}"symenum:{other}"'

    modules[name] = _IMPORT.sub(named, source)  # the imports are in by then
