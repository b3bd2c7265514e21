"""Every screen of every kind of run at two sizes, as text, beside what it looked like when it was last looked at.

``JAXSCOPE_SNAPSHOTS=write pytest tests/tui/test_screens.py`` writes what is seen now; look at the difference.
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest
from seen import screen, settled

from jaxscope.tui.actions import VIEWS
from jaxscope.tui.app import App

KEPT = Path(__file__).parents[1] / "data" / "screens"
SIZES = ((80, 24), (120, 40))


async def _walk(directory, size) -> dict[str, str]:
    app = App(directory)
    found = {}
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for key, name, _ in VIEWS:
            await pilot.press(key)
            await settled(pilot)
            found[name] = screen(app)
    return found


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
def test_screens_look_as_they_did(every_run, size, monkeypatch):
    name, directory = every_run
    monkeypatch.setenv("TERM", "xterm-256color")
    seen = asyncio.run(_walk(directory, size))
    KEPT.mkdir(exist_ok=True)
    different = []
    for view, text in seen.items():
        assert len(text.splitlines()) == size[1]
        text = text.replace(str(directory.path), "RUN")
        file = KEPT / f"{name}.{view}.{size[0]}x{size[1]}.txt"
        if os.environ.get("JAXSCOPE_SNAPSHOTS") == "write":
            file.write_text(text)
        kept = file.read_text() if file.exists() else "(never looked at)\n"
        if text != kept:
            different.append(f"--- {file.name} was\n{kept}--- is\n{text}")
    assert not different, "\n".join(different)


def test_nothing_from_the_program_reaches_the_terminal_raw(tmp_path, monkeypatch):
    """What Textual writes to the terminal holds none of the program's control characters."""
    import io

    import runs_to_see
    from rich.console import Console

    directory = runs_to_see.hostile(tmp_path / "run")

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
