"""The page in a real browser, on a real server with real searches."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browsers import why_not
from studio.browser.servers import Studio, swings, table

if why_not():
    pytest.skip(f"no browser: {why_not()}", allow_module_level=True)

from playwright.sync_api import expect

AXE = Path(__file__).parent / "vendor" / "axe-core" / "axe.min.js"
TABS = ("Fit", "Slices", "Constants", "Parts", "Alternatives", "Compare", "Copy")
Open = Callable[..., Any]


def drop(page: Any, name: str, content: str) -> None:
    """Drop a file on the page, as a mouse would; it waits until there is a place to drop it."""
    script = """(place, [name, content]) => {
        const data = new DataTransfer();
        data.items.add(new File([content], name));
        place.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }"""
    page.locator(".drop").evaluate(script, [name, content])


def choose(page: Any, name: str, content: bytes) -> None:
    page.set_input_files("input[type=file]", {"name": name, "mimeType": "text/csv", "buffer": content})


def status(page: Any) -> Any:
    return page.locator(".run-head .status")


def laws(page: Any) -> Any:
    return page.locator("table.laws tbody tr")


def test_from_a_dropped_file_to_the_copied_latex(studio: Studio, open_page: Open) -> None:
    page = open_page(studio.first_address, permissions=["clipboard-read", "clipboard-write"])
    assert "token" not in page.url
    page.get_by_role("navigation").get_by_role("link", name="New search").click()
    drop(page, "falling.csv", table())
    expect(page.get_by_role("region", name="First rows").get_by_role("row")).to_have_count(9)
    expect(page.get_by_label("Column to explain")).to_have_value("3")
    page.get_by_label("Time in seconds").fill("20")
    page.get_by_role("button", name="Start the search").click()
    expect(page.get_by_role("heading", name="falling")).to_be_visible()
    expect(status(page)).to_have_text("finished")
    expect(page.locator(".formula .katex").first).to_be_visible()
    page.get_by_role("tab", name="Copy").click()
    page.get_by_role("button", name="Copy LaTeX").click()
    expect(page.get_by_role("button", name="Copied ✓")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert r"\mathrm{mass}" in copied
    assert r"\mathrm{height}" in copied
    with page.expect_download() as download:
        page.get_by_role("link", name="model.json").click()
    assert download.value.suggested_filename.endswith("model.json")


def test_a_live_run_grows_before_the_eyes(studio: Studio, open_page: Open) -> None:
    run = studio.search("live", table(200, noise=0.5, seed=1))
    page = open_page(studio.first_address, f"#/runs/{run}")
    expect(status(page)).to_have_text("running")
    expect(laws(page).first).to_be_visible()
    count = "document.querySelectorAll('table.schedule tbody tr').length"
    moves, facts = page.evaluate(f"[{count}, document.querySelector('.facts').textContent]")
    page.wait_for_function(f"moves => {count} > moves + 2", arg=moves)
    expect(page.locator(".facts")).not_to_have_text(facts)
    expect(page.get_by_role("img", name="Front of")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("left")
    page.get_by_role("button", name="Stop").click()
    expect(status(page)).to_have_text("stopped")


def test_stop_reload_resume(studio: Studio, open_page: Open) -> None:
    run = studio.search("again", table(100, noise=0.5, seed=2))
    page = open_page(studio.first_address, f"#/runs/{run}")
    expect(laws(page).first).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(status(page)).to_have_text("stopped")
    marked = page.locator("table.laws tr.marked .katex-mathml").text_content()
    page.reload()
    expect(status(page)).to_have_text("stopped")
    expect(page.locator("table.laws tr.marked .katex-mathml")).to_have_text(marked)
    page.get_by_label("seconds more").fill("1")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    expect(status(page)).to_have_text("finished")


def test_a_killed_run_is_attached(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    data = tmp_path / "table.csv"
    data.write_text(table(100, noise=0.5, seed=3), encoding="utf-8")
    command = [sys.executable, "-m", "symenum", "fit", str(data), "--target", "energy", "--max-time", "60"]
    process = subprocess.Popen(
        [*command, "--out", str(studio.folder / "elsewhere")], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    try:
        page = open_page(studio.first_address)
        page.get_by_role("link", name="elsewhere").click()
        expect(status(page)).to_have_text("running")
        expect(laws(page).nth(3)).to_be_visible()
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    expect(status(page)).to_have_text("ended without a word")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.reload()
    expect(status(page)).to_have_text("ended without a word")
    expect(page.locator(".formula .katex").first).to_be_visible()


def test_two_tabs_see_the_same_run_and_each_its_own_law(studio: Studio, open_page: Open) -> None:
    run = studio.search("tabs", table(100, noise=0.5, seed=4))
    one = open_page(studio.first_address, f"#/runs/{run}")
    two = one.context.new_page()
    two.goto(f"{studio.address}/#/runs/{run}")
    for page in (one, two):
        expect(laws(page).nth(2)).to_be_visible()
    one.get_by_role("button", name="Stop").click()
    for page in (one, two):
        expect(status(page)).to_have_text("stopped")
    laws(one).nth(0).click()
    laws(two).nth(1).click()
    expect(laws(one).nth(0)).to_have_class("seen")
    expect(laws(two).nth(1)).to_have_class("seen")
    expect(laws(one).nth(1)).not_to_have_class("seen")


HOSTILE = (
    "<script>window.hacked=1</script>",
    "{{constructor.constructor('window.hacked=1')()}}",
    "\"quoted\" 'name' onmouseover=window.hacked=1",
    "long" * 2500,
    "<img src=x onerror=window.hacked=1>",
)


def test_hostile_names_are_shown_as_text(studio: Studio, open_page: Open) -> None:
    header = ",".join('"' + name.replace('"', '""') + '"' for name in HOSTILE)
    rows = "".join(
        f"{i},{(i * 7) % 13},{(i * 5) % 11},{(i * 3) % 7},{2 * i + 3 * ((i * 7) % 13)}\n" for i in range(1, 60)
    )
    page = open_page(studio.first_address, "#/new")
    drop(page, "<b onclick=alert(1)>{{7*7}}.csv", f"{header}\n{rows}")
    first = page.get_by_role("region", name="First rows")
    expect(first).to_contain_text("<script>window.hacked=1</script>")
    expect(first).to_contain_text("{{constructor.constructor(")
    page.get_by_label("Time in seconds").fill("3")
    page.get_by_role("button", name="Start the search").click()
    expect(status(page)).to_have_text("finished")
    expect(page.locator("h1")).to_contain_text("<b onclick=alert(1)>{{7*7}}")
    expect(page.locator(".subtitle")).to_contain_text("<img src=x onerror=window.hacked=1>")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tabpanel")).not_to_contain_text("Computing")
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main b").count() == 0
    assert no_sideways_scroll(page)


def test_a_column_of_text_becomes_columns_of_0_and_1(studio: Studio, open_page: Open) -> None:
    rows = "".join(f"{'ab'[i % 2]},{i},{2 * i + (i % 2) * 5}\n" for i in range(1, 40))
    page = open_page(studio.first_address, "#/new")
    drop(page, "kinds.csv", f"kind,x,y\n{rows}")
    page.get_by_label("Time in seconds").fill("10")
    page.get_by_role("group", name="Texts as columns of 0 and 1").get_by_label("kind").check()
    page.get_by_role("button", name="Start the search").click()
    expect(status(page)).to_have_text("finished")
    expect(page.locator("table.laws tr.marked")).to_contain_text("kind")


def tab_to(page: Any, selector: str) -> None:
    """Press Tab until an element that matches has the focus."""
    for _ in range(150):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"Tab does not reach {selector}")


def test_keyboard_only(studio: Studio, open_page: Open, tmp_path: Path) -> None:
    data = tmp_path / "keys.csv"
    data.write_text(table(), encoding="utf-8")
    page = open_page(studio.first_address, permissions=["clipboard-read", "clipboard-write"])
    page.on("filechooser", lambda chooser: chooser.set_files(data))  # from the start: the browser must know of it early
    tab_to(page, "#nav-new")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="New search")).to_be_visible()
    tab_to(page, "input[type=file]")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Start the search")).to_be_visible()
    tab_to(page, "input[type=number]")
    page.keyboard.press("Control+A")
    page.keyboard.type("20")
    tab_to(page, "button[type=submit]")
    page.keyboard.press("Enter")
    expect(status(page)).to_have_text("finished")
    expect(page.get_by_role("tab", name="Fit")).to_be_visible()
    tab_to(page, ".law-button")
    page.keyboard.press("Home")
    expect(laws(page).first).to_have_class("seen")
    page.keyboard.press("ArrowDown")
    expect(laws(page).nth(1)).to_have_class("seen")
    page.keyboard.press("End")
    expect(page.locator(".law[aria-busy]")).to_have_count(0)
    tab_to(page, "[role=tab]")
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("tab", name="Copy")).to_be_focused()
    tab_to(page, ".code button")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Copied ✓")).to_be_visible()
    assert "mass" in page.evaluate("navigator.clipboard.readText()")


def no_sideways_scroll(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"))


def each_view(page: Any, studio: Studio, law_run: str, motion_run: str) -> Any:
    """Go through all views of the page; yields the name of each when it is there."""
    page.goto(f"{studio.address}/#/")
    expect(page.get_by_role("link", name=law_run)).to_be_visible()
    yield "runs"
    page.goto(f"{studio.address}/#/new")
    choose(page, "energy.csv", table().encode())
    expect(page.get_by_role("button", name="Start the search")).to_be_visible()
    for summary in page.locator("summary").all():
        if summary.is_visible():
            summary.click()
    yield "new search"
    page.get_by_text("Laws of motion: how").click()
    yield "new search for laws of motion"
    page.goto(f"{studio.address}/#/runs/{law_run}")
    for tab in TABS:
        page.get_by_role("tab", name=tab).click()
        if tab == "Compare":
            page.get_by_label("Compare with").select_option(index=1)
            expect(page.locator(".panel figure canvas").first).to_be_visible()
        elif tab in TABS[:3]:
            expect(page.locator(".panel figure canvas").first).to_be_visible()
        yield tab
    page.goto(f"{studio.address}/#/runs/{motion_run}")
    page.get_by_role("tab", name="Motion").click()
    expect(page.locator(".panel figure canvas")).to_have_count(3)
    yield "motion"
    page.goto(f"{studio.address}/#/runs/no-such-run")
    expect(page.get_by_role("alert")).to_be_visible()
    yield "no such run"


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious(
    studio: Studio, open_page: Open, law_run: str, motion_run: str, colours: str
) -> None:
    page = open_page(studio.first_address, color_scheme=colours)
    source = AXE.read_text(encoding="utf-8")
    page.evaluate(source)
    found = []
    for view in each_view(page, studio, law_run, motion_run):
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        for violation in result["violations"]:
            if violation["impact"] in ("serious", "critical"):
                found.append((view, violation["id"], [node["html"][:120] for node in violation["nodes"][:3]]))
    assert found == []


def test_a_phone_needs_no_sideways_scroll(studio: Studio, open_page: Open, law_run: str, motion_run: str) -> None:
    page = open_page(studio.first_address, viewport={"width": 360, "height": 740}, has_touch=True)
    wide = [view for view in each_view(page, studio, law_run, motion_run) if not no_sideways_scroll(page)]
    assert wide == []


def test_the_page_survives_a_restart_of_the_server(open_page: Open, tmp_path: Path) -> None:
    server = Studio(tmp_path)
    try:
        run = server.search("survivor", table(100, noise=0.5, seed=5))
        page = open_page(server.first_address, f"#/runs/{run}")
        expect(laws(page).first).to_be_visible()
        server.stop()
        expect(page.locator("#connection")).to_contain_text("does not answer")
        server.start()
        expect(page.locator("#connection")).to_be_hidden()
        expect(status(page)).to_have_text("running")
        page.get_by_role("button", name="Stop").click()
        expect(status(page)).to_have_text("stopped")
    finally:
        server.end_all()


BAD_FILES = {
    "empty.csv": b"",
    "binary.csv": bytes(range(256)) * 40,
    "one.csv": b"a\n1\n2\n3\n",
    "text.csv": b"hello world, this is no table",
    "broken.xlsx": b"PK\x03\x04 broken",
    "broken.parquet": b"PAR1 broken PAR1",
}


def test_bad_files_are_answered_with_what_to_do(studio: Studio, open_page: Open) -> None:
    page = open_page(studio.first_address, "#/new")
    said = {}
    for name, content in BAD_FILES.items():
        choose(page, name, content)
        expect(page.get_by_text("Reading")).to_have_count(0)
        expect(page.get_by_role("alert")).to_be_visible()
        said[name] = page.get_by_role("alert").text_content()
        assert page.get_by_role("button", name="Start the search").count() == 0
    assert all(len(text) > 20 for text in said.values()), said
    choose(page, "good.csv", table().encode())
    expect(page.get_by_role("button", name="Start the search")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_sliders_show_the_loss_and_fit_again_brings_it_back(studio: Studio, open_page: Open, law_run: str) -> None:
    page = open_page(studio.first_address, f"#/runs/{law_run}")
    page.get_by_role("tab", name="Constants").click()
    before = page.locator(".trial-loss").text_content()
    page.get_by_label("Constant 1, value").fill("20")
    page.get_by_label("Constant 1, value").press("Enter")
    expect(page.locator(".trial-change")).to_contain_text("times that of the law")
    page.get_by_role("button", name="Fit again").click()
    # As good as the law, or better: the law's constants may be rounded.
    expect(page.locator(".trial-change")).to_have_text(re.compile(r"^$|^0\.\d+ times that of the law$"))
    page.get_by_role("button", name="Back to the law").click()
    expect(page.locator(".trial-loss")).to_have_text(before)


def test_hovering_over_the_front_gives_the_law_and_axes_can_be_even(
    studio: Studio, open_page: Open, law_run: str
) -> None:
    page = open_page(studio.first_address, f"#/runs/{law_run}")
    plot = page.get_by_role("img", name="Front of")
    area = plot.locator(".u-over")
    expect(area).to_be_visible()
    box = area.bounding_box()
    # The marked law has a ring; its place is asked of the rows' numbers, not of pixels: the whole width is swept.
    for step in range(40):
        for height in (0.1, 0.5, 0.9):
            page.mouse.move(box["x"] + box["width"] * step / 39, box["y"] + box["height"] * height)
            if plot.locator(".tip").is_visible():
                break
        else:
            continue
        break
    expect(plot.locator(".tip .katex")).to_be_visible()
    expect(plot.locator(".tip")).to_contain_text("loss")
    page.get_by_label("log loss").uncheck()
    page.get_by_label("log complexity").check()
    expect(plot.locator("canvas")).to_be_visible()


def test_an_unknown_run_and_a_run_of_another_version_say_what_to_do(studio: Studio, open_page: Open) -> None:
    strange = studio.folder / "from-the-future"
    strange.mkdir(exist_ok=True)
    (strange / "run.json").write_text('{"format": "symenum run", "version": 999}', encoding="utf-8")
    page = open_page(studio.first_address)
    card = page.locator("article", has_text="from-the-future")
    expect(card).to_contain_text("cannot be read")
    expect(card).not_to_contain_text("rows")
    page.goto(f"{studio.address}/#/runs/from-the-future")
    expect(page.locator(".message")).to_contain_text("version 999")
    expect(page.locator(".run-left")).to_be_hidden()
    expect(page.locator("section.law")).to_be_hidden()
    page.goto(f"{studio.address}/#/runs/nobody")
    expect(page.get_by_role("alert")).to_contain_text("no run")
    expect(page.locator(".run-left")).to_be_hidden()


RECORD_TEXTS = """
window.drawn = [];
const fillText = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
    window.drawn.push(text);
    return fillText.call(this, text, ...place);
};
"""


def test_every_power_of_ten_on_an_axis_is_labelled(studio: Studio, open_page: Open, law_run: str) -> None:
    wide = studio.folder / "wide-front"
    shutil.copytree(studio.folder / law_run, wide)
    front = json.loads((wide / "front.json").read_text(encoding="utf-8"))
    laws_of_front = front["fronts"][0]["laws"]
    for place, law in enumerate(laws_of_front):
        law["loss"] = 3.0 * 10 ** (-11 * place / (len(laws_of_front) - 1))
    (wide / "front.json").write_text(json.dumps(front), encoding="utf-8")
    page = open_page(studio.first_address)
    page.add_init_script(RECORD_TEXTS)
    page.goto(f"{studio.address}/#/runs/wide-front")
    page.reload()
    expect(laws(page).nth(1)).to_be_visible()
    expect(page.get_by_role("img", name="Front of").locator("canvas")).to_be_visible()
    page.wait_for_function("window.drawn.some(text => /^10[⁻⁰¹²³⁴-⁹]/.test(text))")
    powers = {text for text in page.evaluate("window.drawn") if re.match("10[⁻⁰¹²³⁴-⁹]", text)}
    assert len(powers) >= 3
    assert all(re.fullmatch("10⁻?[⁰¹²³⁴-⁹]+", text) for text in powers), powers


def test_laws_of_second_order_are_called_accelerations(studio: Studio, open_page: Open) -> None:
    wish = {"kind": "motion", "targets": ["x"], "time": "t", "inputs": [], "max_time": 2.0, "parameters": {"order": 2}}
    run = studio.search("acceleration", swings(), **wish)
    assert studio.finished(run)["status"] == "finished"
    page = open_page(studio.first_address, f"#/runs/{run}")
    expect(page.get_by_role("group", name="State").get_by_role("button")).to_have_text("d²x/dt²")


def test_nothing_is_asked_of_other_servers(studio: Studio, open_page: Open, law_run: str) -> None:
    page = open_page(studio.first_address)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{studio.address}/#/runs/{law_run}")
    page.reload()
    expect(page.locator(".panel figure canvas").first).to_be_visible()
    assert asked
    assert all(url.startswith((studio.address, "blob:", "data:")) for url in asked)
    assert os.sep not in page.title()
