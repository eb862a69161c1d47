"""How fast the studio's page is: first paint, and how smooth it stays on a front of 200 laws with 100,000 rows.

    python benchmarks/studio_page.py

Starts a server, searches a table of 100,000 rows for some seconds, puts 200 laws on the front of that run, and drives
Chromium: the pointer goes over the front, laws are chosen one after another, and the time between two frames is taken.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

TOKEN = "token-of-the-benchmark"
ROWS, LAWS, PAINTS, CHOSEN = 100_000, 200, 7, 25
FRAMES = """() => {
    window.frames_ = [];
    let last = performance.now();
    const next = (now) => {
        window.frames_.push(now - last);
        last = now;
        window.frameRequest = requestAnimationFrame(next);
    };
    window.frameRequest = requestAnimationFrame(next);
}"""


def ask(address: str, path: str, body: bytes | None = None, kind: str = "application/json") -> Any:
    headers = {"X-Symenum-Token": TOKEN, "Content-Type": kind}
    with urllib.request.urlopen(urllib.request.Request(address + path, body, headers), timeout=300) as answer:
        return json.load(answer)


def start_server(folder: Path) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "symenum", "studio", str(folder), "--port", "0", "--no-browser", "--token", TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().split()[-1].split("/?")[0]


def make_run(address: str, folder: Path, seconds: float) -> str:
    """A search on 100,000 rows whose front then gets 200 laws; returns its name."""
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (ROWS, 3))
    y = 2.5 * X[:, 0] * np.exp(-X[:, 1]) + np.sqrt(X[:, 2]) + rng.normal(0, 0.05, ROWS)
    lines = [",".join(f"{value:.6g}" for value in row) for row in np.column_stack([X, y])]
    shown = ask(address, "/api/tables?name=rows.csv", "\n".join(["a,b,c,y", *lines]).encode(), "text/csv")
    wish = {"table": shown["table"], "kind": "law", "target": "y", "inputs": ["a", "b", "c"], "max_time": seconds}
    run = str(ask(address, "/api/runs", json.dumps(wish).encode())["id"])
    while ask(address, f"/api/runs/{run}")["status"] in ("waiting", "running"):
        time.sleep(0.5)
    path = folder / run / "front.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    front = document["fronts"][0]
    pattern = front["laws"][0]
    front["laws"] = [
        {
            **pattern,
            "equation": f"{2 + k / 100}*a*exp(-b) + sqrt(c + {k / 50})/{1 + k / 100} + {k / 1000}*sin(a*b)",
            "complexity": k,
            "loss": float(np.exp(-k / 12)),
        }
        for k in range(LAWS)
    ]
    front["selected"] = LAWS // 2
    path.write_text(json.dumps(document), encoding="utf-8")
    return run


def frame_times(page: Any, action: Any) -> list[float]:
    page.evaluate(FRAMES)
    action()
    return list(page.evaluate("() => { cancelAnimationFrame(window.frameRequest); return window.frames_.slice(2); }"))


def in_words(frames: list[float]) -> str:
    frames = sorted(frames)
    slow = sum(frame > 50 for frame in frames)
    return (
        f"{len(frames)} frames, median {statistics.median(frames):.1f} ms, 95% below "
        f"{frames[int(0.95 * len(frames))]:.1f} ms, longest {frames[-1]:.0f} ms, {slow} above 50 ms"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="of the search before the page is opened")
    seconds = parser.parse_args().seconds
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium: apt-get install chromium.")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        server, address = start_server(folder)
        try:
            run = make_run(address, folder, seconds)
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                measure(browser, address, run)
                browser.close()
        finally:
            server.terminate()
            server.wait()


def measure(browser: Any, address: str, run: str) -> None:
    paints = {"list of runs": "", "run with 200 laws": f"#/runs/{run}"}
    for view, place in paints.items():
        times = []
        for _ in range(PAINTS):
            context = browser.new_context()  # an empty cache: as on the first visit
            page = context.new_page()
            page.goto(f"{address}/?token={TOKEN}{place}")
            page.wait_for_selector("article, table.laws tbody tr")
            entries = page.evaluate(
                "performance.getEntriesByType('paint').map(({name, startTime}) => [name, startTime])"
            )
            shown = page.evaluate("performance.now()")
            times.append((dict(entries)["first-contentful-paint"], shown))
            context.close()
        first, content = (statistics.median(each) for each in zip(*times, strict=True))
        print(f"{view}: first paint {first:.0f} ms, content after {content:.0f} ms (medians of {PAINTS}, empty cache)")
    page = browser.new_page(viewport={"width": 1400, "height": 900})
    page.goto(f"{address}/?token={TOKEN}#/runs/{run}")
    page.wait_for_selector(".panel figure canvas")
    hint = page.locator(".panel .hint").first.text_content()
    print(f"laws in the table: {page.locator('table.laws tbody tr').count()}; {hint}")
    box = page.locator("[aria-label^=Front] .u-over").bounding_box()

    def hover() -> None:
        for step in range(300):
            share = step / 299
            page.mouse.move(box["x"] + share * box["width"], box["y"] + share * box["height"])

    print(f"hovering over the front: {in_words(frame_times(page, hover))}")
    waits: list[float] = []

    def choose() -> None:
        page.locator(".law-button").nth(20).focus()
        for _ in range(CHOSEN):
            begun = time.perf_counter()
            page.keyboard.press("ArrowDown")
            page.wait_for_selector(".law:not([aria-busy])")
            page.wait_for_selector(".panel figure canvas")
            waits.append(1000 * (time.perf_counter() - begun))

    print(f"choosing {CHOSEN} laws: {in_words(frame_times(page, choose))}")
    print(f"from the key to the law's plots: median {statistics.median(waits):.0f} ms, longest {max(waits):.0f} ms")


if __name__ == "__main__":
    main()
