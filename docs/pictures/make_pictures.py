"""The pictures of the README, from its own example: python docs/pictures/make_pictures.py

front.png is drawn by `plot_front`. report.png is the top of the page that `model.report` writes, photographed by a
Chromium without a window, if there is one on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib
import numpy as np

from symenum import PSERegressor, plot_front

FOLDER = Path(__file__).parent
WINDOW = "1100,1170"  # pixels: the law, the three plots and the front


def main() -> None:
    matplotlib.use("Agg")
    X = np.random.default_rng(0).uniform(1, 3, (60, 3))
    y = 2.5 * X[:, 0] * np.exp(-X[:, 1]) + np.sqrt(X[:, 2])
    model = PSERegressor(max_time=60, random_state=0).fit(X, y)
    plot_front(model).figure.savefig(FOLDER / "front.png", dpi=110)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("report.png needs a Chromium on the PATH; front.png is written")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        model.report(page)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WINDOW}"]
        subprocess.run([browser, *options, f"--screenshot={FOLDER / 'report.png'}", page.as_uri()], check=True)


if __name__ == "__main__":
    main()
