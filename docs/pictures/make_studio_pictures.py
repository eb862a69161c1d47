"""The pictures of the studio in the guide and the README: python docs/pictures/make_studio_pictures.py

It starts a studio, searches two tables, and takes a picture of every view with the system's Chromium. Each is reduced
to 256 colours, which keeps it below 150 KB.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from scipy.integrate import solve_ivp

HERE = Path(__file__).parent
TOKEN = "token-of-the-pictures"
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}
SEARCH, MOTION = 15.0, 10.0  # seconds


def orbit_table() -> str:
    """Distance (astronomical units), mass of the star (suns), a column that says nothing, and the period in days."""
    rng = np.random.default_rng(1)
    distance, mass, noise = rng.uniform(0.05, 3, 120), rng.uniform(0.3, 2.5, 120), rng.normal(size=120)
    period = 365.25 * np.sqrt(distance**3 / mass) * (1 + 0.01 * rng.normal(size=120))
    brightness = 10 + 0.5 * noise
    return csv_text("distance,mass,brightness,period", distance, mass, brightness, period)


def swing_table() -> str:
    """Angle and speed of a pendulum in air over time."""
    time = np.linspace(0, 12, 400)
    moved = solve_ivp(
        lambda _, state: [state[1], -4 * np.sin(state[0]) - 0.15 * state[1]],
        (0, 12),
        [1.2, 0.0],
        t_eval=time,
        rtol=1e-10,
    )
    angle, speed = moved.y
    return csv_text("time,angle,speed", time, angle, speed)


def csv_text(header: str, *columns: np.ndarray) -> str:
    lines = [",".join(f"{value:.6g}" for value in row) for row in np.column_stack(columns)]
    return "\n".join([header, *lines, ""])


@contextmanager
def studio_on(folder: Path) -> Iterator[str]:
    """The address of a studio on a folder."""
    command = [sys.executable, "-m", "symenum", "studio", str(folder), "--port", "0", "--no-browser", "--token", TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1].split("/?")[0]
    finally:
        process.terminate()
        process.wait()


def search(address: str, name: str, text: str, wish: dict[str, Any]) -> str:
    """Start a search; returns the name of its run."""

    def ask(path: str, body: bytes, kind: str) -> Any:
        headers = {"X-Symenum-Token": TOKEN, "Content-Type": kind}
        with urllib.request.urlopen(urllib.request.Request(address + path, body, headers), timeout=60) as answer:
            return json.load(answer)

    table = ask(f"/api/tables?name={name}.csv", text.encode(), "application/octet-stream")["table"]
    body = json.dumps({"table": table, "name": name, **wish}).encode()
    return str(ask("/api/runs", body, "application/json")["id"])


def save(page: Any, name: str, full_page: bool = False) -> None:
    page.mouse.move(0, 0)
    image = Image.open(io.BytesIO(page.screenshot(full_page=full_page))).convert("RGB")
    path = HERE / f"studio-{name}.png"
    image.quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.relative_to(HERE.parents[1])}: {path.stat().st_size / 1024:.0f} KB")


def take_all(browser: Any, address: str) -> None:
    from playwright.sync_api import expect

    expect.set_options(timeout=60_000)
    orbits = search(
        address,
        "orbits",
        orbit_table(),
        {"kind": "law", "target": "period", "inputs": ["distance", "mass", "brightness"], "max_time": SEARCH},
    )

    def open_page(place: str, **options: Any) -> Any:
        page = browser.new_page(**options)
        page.goto(f"{address}/?token={TOKEN}")
        page.goto(f"{address}/#{place}")
        return page

    page = open_page(f"/runs/{orbits}", viewport=WIDE, color_scheme="light")
    expect(page.locator("table.laws tbody tr").nth(4)).to_be_visible()
    expect(page.locator(".panel figure canvas").first).to_be_visible()
    expect(page.locator("table.schedule tbody tr").nth(4)).to_be_visible()
    save(page, "live")
    ended = page.locator(".run-head .status")
    expect(ended).to_have_text("finished")

    swing = search(
        address,
        "pendulum",
        swing_table(),
        {"kind": "motion", "targets": ["angle", "speed"], "time": "time", "inputs": [], "max_time": MOTION},
    )
    for tab in ("Fit", "Slices", "Constants", "Parts", "Compare", "Copy"):
        page.get_by_role("tab", name=tab).click()
        if tab == "Compare":
            page.get_by_label("Compare with").select_option(index=7)  # the next larger law, as a rule
        if tab not in ("Parts", "Copy"):
            expect(page.locator(".panel figure canvas").first).to_be_visible()
        page.wait_for_timeout(600)  # plots are drawn after their canvas is there
        save(page, tab.lower(), full_page=tab == "Fit")

    for scheme, options in {"dark": {"viewport": WIDE}, "phone": {"viewport": PHONE, "has_touch": True}}.items():
        other = open_page(f"/runs/{orbits}", color_scheme="dark" if scheme == "dark" else "light", **options)
        expect(other.locator(".panel figure canvas").first).to_be_visible()
        other.wait_for_timeout(600)
        save(other, scheme)
        other.close()

    page.goto(f"{address}/#/new")
    page.set_input_files(
        "input[type=file]", {"name": "orbits.csv", "mimeType": "text/csv", "buffer": orbit_table().encode()}
    )
    expect(page.get_by_role("button", name="Start the search")).to_be_visible()
    save(page, "start", full_page=True)

    page.goto(f"{address}/#/runs/{swing}")
    expect(ended).to_have_text("finished")
    page.get_by_role("tab", name="Motion").click()
    expect(page.locator(".panel figure canvas")).to_have_count(3)
    page.wait_for_timeout(600)
    save(page, "motion")
    page.goto(f"{address}/#/")
    expect(page.get_by_role("link", name="orbits")).to_be_visible()
    save(page, "runs")


def main() -> None:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("There is no Chromium: apt-get install chromium.")
    with (
        tempfile.TemporaryDirectory() as folder,
        studio_on(Path(folder) / "searches") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        take_all(browser, address)
        browser.close()


if __name__ == "__main__":
    main()
