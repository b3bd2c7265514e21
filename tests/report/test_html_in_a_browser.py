"""The HTML report in a real browser: Chromium without a network. Skipped where there is none."""

from __future__ import annotations

import browser
import pytest
import screen_runs
from test_html_report import full_of_markup

import jaxscope
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.report import html

pytestmark = [
    pytest.mark.subprocess,
    pytest.mark.xdist_group("browser"),
    pytest.mark.skipif(browser.PROGRAM is None, reason="no Chromium is installed"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    opened = browser.Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The reports of two runs: a typical one, and one in which every name is markup."""
    folder = tmp_path_factory.mktemp("reports")
    with pytest.MonkeyPatch.context() as patch:
        for name, make in (("typical", screen_runs.typical), ("markup", full_of_markup)):
            run = make(folder / name)
            patch.chdir(run.path / "src" if (run.path / "src").exists() else folder)
            sources.text.cache_clear()
            (folder / f"{name}.html").write_text("".join(html.pieces(load(run), run)), "utf-8")
    return folder


@pytest.fixture
def opened(page, files):
    """``opened(name, ...)``: the page that shows the report of that name, with nothing noted yet."""

    def show(name: str, **more):
        page.requests.clear()
        page.complaints.clear()
        page.open(files / f"{name}.html", **more)
        return page

    return show


@pytest.mark.parametrize("name", ["typical", "markup"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_loads_nothing_complains_about_nothing_and_fits_the_window(opened, name, width):
    page = opened(name, width=width)
    assert page.requests == [] and page.complaints == []
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value("document.scripts.length") == 1 and page.value("document.images.length") == 0


def test_tables_and_sources_fit_a_window_of_600_pixels(opened):
    page = opened("typical", width=600)
    page.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    boxes = "[...document.querySelectorAll('.scroll, pre.source')]"
    assert page.value(f"{boxes}.length") > 4
    # The keys side by side have a column for each compilation: they scroll.
    wide = f"{boxes}.filter(e => e.scrollWidth > e.clientWidth + 1 && !e.querySelector('.keys'))"
    assert page.value(f"{wide}.map(e => e.textContent.slice(0, 60))") == []
    # No column is squeezed to a few letters a line.
    cells = "[...document.querySelectorAll('.scroll td')].filter(e => e.textContent.length > 12)"
    assert page.value(f"Math.min(...{cells}.map(e => e.clientWidth))") > 60


def test_an_inline_script_that_is_not_the_reports_own_does_not_run(opened):
    page = opened("typical")
    page.value(
        "(() => {const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)})()"
    )
    assert page.value("window.ran === undefined")
    page.value(
        "new Promise(done => {const i = new Image(); i.src = 'http://localhost/x.png'; setTimeout(done, 50)})"
    )
    assert any("Content Security Policy" in text for text in page.complaints)


def test_buttons_keys_and_the_mouse_zoom_the_timeline_and_label_its_axis(opened):
    page = opened("typical")
    shown = "document.querySelector('svg.lane').getAttribute('viewBox')"
    assert page.value(shown) == "0 0 10000 20"
    page.click("[data-zoom=in]")
    assert page.value(shown) == "2500 0 5000 20"
    assert page.value("document.querySelector('.axis span').textContent") == "15.0 s"
    page.value("document.getElementById('timeline').focus()")
    page.press("ArrowRight")
    assert page.value(shown) == "3750 0 5000 20"
    page.press("0")
    assert page.value(shown) == "0 0 10000 20"
    x, y, width = page.value(
        "(() => {const b = document.querySelector('svg.lane').getBoundingClientRect(); return [b.x, b.y + 5, b.width]})()"
    )
    for kind, at in (("mousePressed", 0.25), ("mouseReleased", 0.5)):
        page.call("Input.dispatchMouseEvent", type=kind, x=x + width * at, y=y, button="left", clickCount=1)
    begin, _, length, _ = map(float, page.value(shown).split())
    assert begin == pytest.approx(2500, abs=30) and length == pytest.approx(2500, abs=40)


def test_in_a_notebook_the_report_works_in_a_frame_that_cannot_reach_the_notebook(page, tmp_path):
    run = jaxscope.open_run(full_of_markup(tmp_path / "run").path)
    file = tmp_path / "notebook.html"
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{run._repr_html_()}", "utf-8")
    page.requests.clear()
    page.complaints.clear()
    page.open(file)
    assert page.complaints == [] and [url for url in page.requests if url.startswith("http")] == []
    assert page.value("document.querySelector('iframe').contentDocument === null")  # another origin
    shown = "[document.querySelectorAll('svg.lane').length, document.querySelector('.controls').hidden]"
    assert page.value_in_frame(shown) == [2, False]  # its own script has run


@pytest.mark.parametrize("part", ["function", "program", "array"])
def test_a_part_of_a_run_fits_into_its_frame_and_runs_no_script(part, page, tmp_path):
    run = jaxscope.open_run(screen_runs.typical(tmp_path / "run").path)
    name = "train_step" if part != "array" else "batch['x']"
    file = tmp_path / "notebook.html"
    drawn = getattr(run, part)(name)._repr_html_()
    assert "allow-scripts" not in drawn
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{drawn}", "utf-8")
    page.requests.clear()
    page.complaints.clear()
    page.open(file)
    assert page.complaints == [] and [url for url in page.requests if url.startswith("http")] == []
    height, room, styled = page.value_in_frame(
        "[document.documentElement.scrollHeight, window.innerHeight,"
        " getComputedStyle(document.querySelector('table')).borderCollapse]"
    )
    assert height <= room and styled == "collapse", (height, room)


def test_findings_are_filtered_by_severity_and_by_words(opened):
    page = opened("typical")
    visible = "[...document.querySelectorAll('details.finding')].filter(f => !f.hidden).length"
    every = page.value(visible)
    page.click("input[data-severity=note]")
    without_notes = page.value(visible)
    assert 0 < without_notes < every
    page.value(
        "(() => {const s = document.querySelector('[data-search=finding]'); s.value = 'history'; s.dispatchEvent(new Event('input'))})()"
    )
    assert 0 < page.value(visible) < without_notes


def test_parts_open_by_click_and_by_key_and_a_link_opens_its_finding(opened):
    page = opened("typical")
    is_open = "[...document.querySelectorAll('details.function')].map(f => f.open)"
    assert page.value(is_open) == [True, False]
    page.click("details.function:nth-of-type(2) > summary")
    assert page.value(is_open) == [True, True]
    page.press("Enter")  # the summary has the focus
    assert page.value(is_open) == [True, False]
    page.value("document.querySelectorAll('details').forEach(d => { d.open = false; })")
    page.click(".answer a")
    page.value("new Promise(done => setTimeout(done, 50))")
    assert page.value("document.querySelector('details.finding').open")


def test_the_page_is_dark_where_the_reader_prefers_it(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    light = opened("typical").value(background)
    dark = opened("typical", dark=True).value(background)
    assert light == "rgb(255, 255, 255)" and dark == "rgb(18, 22, 29)"


def test_the_tab_key_reaches_the_skip_link_the_sections_and_the_timeline(opened):
    page = opened("typical")
    reached = []
    for _ in range(25):
        page.press("Tab")
        reached.append(
            page.value(
                "(e => e.className + ' ' + e.tagName + ' ' + (e.id || e.getAttribute('href') || ''))(document.activeElement)"
            )
        )
    assert reached[0].startswith("skip")
    assert any("#timeline-of-the-run" in r for r in reached) and any(
        r.endswith("DIV timeline") for r in reached
    )


def test_the_report_is_whole_without_javascript(opened, page):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        opened("typical")
        root = page.call("DOM.getDocument")["root"]["nodeId"]
        controls = page.call("DOM.querySelectorAll", nodeId=root, selector=".controls:not([hidden])")[
            "nodeIds"
        ]
        lanes = page.call("DOM.querySelectorAll", nodeId=root, selector="svg.lane")["nodeIds"]
        assert not controls and len(lanes) == 4  # no control that would do nothing
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)
