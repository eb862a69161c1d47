"""The browser of the tests: the system's Chromium, driven by Playwright. Without one the tests are skipped."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

__all__ = ["chromium", "why_not"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium() -> str | None:
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


def why_not() -> str | None:
    """Why no browser can be driven here, and what to do; None where one can."""
    if find_spec("playwright") is None:
        return "Playwright is not installed: pip install playwright"
    if chromium() is None:
        return "there is no Chromium: apt-get install chromium"
    return None
