"""Every screen of every kind of run at two sizes, as text and as an SVG in its colors, beside what it looked
like when it was last looked at.

``JAXSCOPE_SNAPSHOTS=write pytest tests/tui/test_screens.py`` writes what is seen now; look at the difference.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest
import screen_runs
import zstandard
from rich.color import ColorSystem
from screens import screen, segments, settled, svg

from jaxscope.tui.actions import VIEWS
from jaxscope.tui.app import App

pytestmark = pytest.mark.subprocess  # the whole view

KEPT = Path(__file__).parents[1] / "data" / "screens"
WRITE = os.environ.get("JAXSCOPE_SNAPSHOTS") == "write"
SIZES = ((80, 24), (120, 40))


async def _walk(directory, *sizes) -> list[dict[str, tuple[str, str, list]]]:
    """Return what each screen looks like, by its name, at each of ``sizes``; the app starts once."""
    app, seen = App(directory), []
    async with app.run_test(size=sizes[0]) as pilot:
        await settled(pilot)
        for size in sizes:
            await pilot.resize_terminal(*size)
            found = {}
            for key, name, _ in VIEWS:
                await pilot.press(key)
                await settled(pilot)
                found[name] = screen(app), svg(app), segments(app)
            seen.append(found)
    return seen


def kept_images(file: Path) -> dict[str, str]:
    return json.loads(zstandard.decompress(file.read_bytes())) if file.exists() else {}


def same_images(name: str, images: dict[str, str], aside: Path) -> list[str]:
    """What differs from the images kept of ``name``; both are left in ``aside`` to be looked at."""
    file = KEPT / f"{name}.svg.zst"
    if WRITE:
        file.write_bytes(zstandard.ZstdCompressor(19).compress(json.dumps(images).encode()))
    kept = kept_images(file)
    different = []
    for view, image in images.items():
        if image != kept.get(view):
            for which, text in (("was", kept.get(view, "")), ("is", image)):
                (aside / f"{name}.{view}.{which}.svg").write_text(text)
            different.append(f"colors of {name}.{view}: see {aside}")
    return different


def test_screens_look_as_they_did(every_run, monkeypatch, tmp_path):
    name, directory = every_run
    monkeypatch.setenv("TERM", "xterm-256color")
    different = []
    for size, seen in zip(SIZES, asyncio.run(_walk(directory, *SIZES)), strict=True):
        images = {}
        for view, (text, image, _) in seen.items():
            assert len(text.splitlines()) == size[1]
            text = text.replace(str(directory.path), "RUN")
            images[view] = image.replace(str(directory.path), "RUN")
            file = KEPT / f"{name}.{view}.{size[0]}x{size[1]}.txt"
            if WRITE:
                file.write_text(text)
            kept = file.read_text() if file.exists() else "(never looked at)\n"
            if text != kept:
                different.append(f"--- {file.name} was\n{kept}--- is\n{text}")
        different += same_images(f"{name}.{size[0]}x{size[1]}", images, tmp_path)
    assert not different, "\n".join(different)


# What is pressed before each is looked at, one after the other: the machines a program was compiled for.
MACHINES = {
    "skipped": ["3", "t"], "compiled": ["comma"], "compiling": ["t"], "waiting": ["t"], "crashed": ["t"],
    "exhausted": ["t"], "collectives": ["4"], "collectives_compiled": ["t", "t"], "beside": ["T"],
}  # fmt: skip


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", ["elsewhere", "elsewhere_hostile"])
def test_a_program_as_other_machines_have_it_looks_as_it_did(made, name, size, monkeypatch, tmp_path):
    monkeypatch.setenv("TERM", "xterm-256color")
    _look(made(name), name, size, MACHINES, tmp_path)


@pytest.mark.subprocess
@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_the_ranks_of_a_job_look_as_they_did(size, monkeypatch, tmp_path):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAXSCOPE_HOME", raising=False)
    looks = {"groups": ["R"], "second": ["down"], "rank": ["enter"], "back": ["escape"], "figures": ["tab"]}
    _look(screen_runs.of_ranks(tmp_path / ".jaxscope" / "runs" / "train"), "ranks", size, looks, tmp_path)


def _look(directory, name, size, looks, aside):
    """Press the keys of each look, one after the other, and compare what is seen with what is kept."""

    async def walk() -> dict[str, tuple[str, str]]:
        app, found = App(directory), {}
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            for look, keys in looks.items():
                for key in keys:
                    await pilot.press(key)
                    await settled(pilot)
                found[look] = screen(app), svg(app)
        return found

    seen, different = asyncio.run(walk()), []
    at = f"{name}.{size[0]}x{size[1]}"
    for look, (text, _) in seen.items():
        text = text.replace(str(directory.path), "RUN")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
        file = KEPT / f"{name}.{look}.{size[0]}x{size[1]}.txt"
        if WRITE:
            file.write_text(text)
        if text != (file.read_text() if file.exists() else ""):
            different.append(f"--- {file.name} is\n{text}")
    different += same_images(at, {look: image for look, (_, image) in seen.items()}, aside)
    assert not different, "\n".join(different)


@pytest.mark.parametrize("how", ["light", "no-color"])
def test_in_other_colors_the_same_is_reported(typical, how, monkeypatch, tmp_path):
    monkeypatch.setenv(*{"light": ("COLORFGBG", "0;15"), "no-color": ("NO_COLOR", "1")}[how])
    [seen] = asyncio.run(_walk(typical, (120, 40)))
    for view, (text, image, _) in seen.items():
        assert text == (KEPT / f"typical.{view}.120x40.txt").read_text()
        if how == "no-color":
            assert all(c[1:3] == c[3:5] == c[5:7] for c in re.findall(r'fill="(#\w{6})"', image))
    assert not same_images(f"typical.{how}.120x40", {v: image for v, (_, image, _) in seen.items()}, tmp_path)


@pytest.mark.parametrize("background", ["15;0", "0;15"], ids=["dark", "light"])
def test_sixteen_colors_leave_no_text_in_the_color_it_stands_on(typical, background, monkeypatch):
    monkeypatch.setenv("COLORFGBG", background)
    [seen] = asyncio.run(_walk(typical, (80, 24)))
    for view, (_, _, lines) in seen.items():
        for line in lines:
            for text, style in line:
                if text.strip(" ━─│▁▂▃▄▅▆▇█"):  # a scroll bar's end is drawn with both
                    fore, behind = (c.downgrade(ColorSystem.STANDARD) for c in (style.color, style.bgcolor))
                    assert fore != behind, f"{view}: {text!r} in {style}"


def test_nothing_from_the_program_reaches_the_terminal_raw(tmp_path, monkeypatch):
    """What Textual writes to the terminal holds none of the program's control characters."""
    import io

    import screen_runs
    from rich.console import Console

    directory = screen_runs.hostile(tmp_path / "run")

    async def strips() -> str:
        app = App(directory)
        drawn = []
        async with app.run_test(size=(120, 40)) as pilot:
            await settled(pilot)
            for key, _, _ in VIEWS:
                await pilot.press(key)
                await settled(pilot)
                for _ in range(3):
                    drawn += [strip.text for strip in app.screen._compositor.render_strips()]
                    drawn.append(str(app.screen.focused.border_title) if app.screen.focused else "")
                    await pilot.press("tab", "down")
        return "\n".join(drawn)

    text = asyncio.run(strips())
    assert "owned" in text  # it is shown, escaped
    assert "[bold red]evil" in text  # and markup is text
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert Console(file=io.StringIO())  # rich is there: this is what it would have interpreted
