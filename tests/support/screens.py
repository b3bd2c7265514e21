"""What a person sees: the screen of an app under test as text and in its colors, and waiting until it stands still."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable
from xml.sax.saxutils import escape

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style

from jaxscope.tui.app import App
from jaxscope.tui.lineview import LineView
from jaxscope.tui.screens.frame import View
from jaxscope.tui.screens.program import READING

SOON_S = 0.011  # more than SETTLE_S of the app, less than a tick
LOOK_S = 0.002


def screen(app: App) -> str:
    """The whole screen as text, without the spaces at line ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


def segments(app: App) -> list[list[tuple[str, Style]]]:
    """(text, style) of every line, neighbors of one style together; no style without colors."""
    made = []
    for strip in app.screen._compositor.render_strips():
        line: list[tuple[str, Style]] = []
        for text, style, _ in strip:
            style = (style or Style()).without_color + Style(
                color=style and style.color, bgcolor=style and style.bgcolor
            )
            style = Style(
                **{n: getattr(style, n) for n in ("color", "bgcolor", "bold", "underline", "reverse")}
            )
            if line and line[-1][1] == style:
                line[-1] = (line[-1][0] + text, style)
            else:
                line.append((text, style))
        made.append(line)
    return made


def svg(app: App) -> str:
    """The screen in its colors, as small as can be: a rectangle for a background, a text for a run of one style."""
    lines = segments(app)
    width = max(sum(cell_len(text) for text, _ in line) for line in lines)
    area: Counter[str] = Counter()
    for line in lines:
        for text, style in line:
            area[_color(style.bgcolor, "#000000")] += cell_len(text)
    back = area.most_common(1)[0][0]
    made = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {8 * width} {16 * len(lines)}">',
        "<style>text{font:13.3px monospace}.b{font-weight:bold}.u{text-decoration:underline}</style>",
        f'<rect width="100%" height="100%" fill="{back}"/>',
    ]
    for y, line in enumerate(lines):
        x = 0
        for text, style in line:
            fore, behind = _color(style.color, "#ffffff"), _color(style.bgcolor, back)
            if style.reverse:
                fore, behind = behind, fore
            if behind != back:
                made.append(
                    f'<rect x="{8 * x}" y="{16 * y}" width="{8 * cell_len(text)}" height="16" fill="{behind}"/>'
                )
            kind = " ".join(letter for letter, on in (("b", style.bold), ("u", style.underline)) if on)
            look = f' class="{kind}" fill="{fore}"' if kind else f' fill="{fore}"'
            for word in re.finditer(r"\S+(?: \S+)*", text):  # fonts do not agree on how wide a space is
                at, size = x + cell_len(text[: word.start()]), cell_len(word.group())
                made.append(
                    f'<text x="{8 * at}" y="{16 * y + 12}" textLength="{8 * size}"{look}>{escape(word.group())}</text>'
                )
            x += cell_len(text)
    return "\n".join([*made, "</svg>\n"])


def _color(color: Color | None, otherwise: str) -> str:
    return otherwise if color is None or color.is_default else color.get_truecolor().hex


async def idle(min_sleep: float = 0.0, max_sleep: float = 1.0) -> None:
    """Wait until no callback of the event loop is ready and none is due within SOON_S.

    In place of Textual's ``wait_for_idle``, which looks every 20 ms whether the process still uses its processor.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + max_sleep
    while (now := loop.time()) < end:
        await asyncio.sleep(0)
        if not loop._ready:
            due = min((h.when() for h in loop._scheduled if not h.cancelled()), default=end)
            if due > now + SOON_S:
                return
            await asyncio.sleep(max(0.0, due - now))


async def until(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Wait until ``condition`` holds, and fail if it does not within ``seconds``."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "what was waited for did not happen"
        await asyncio.sleep(LOOK_S)


async def settled(pilot) -> None:
    """Wait until the run is read, the rules have run, and the screen shows it."""
    app = pilot.app

    def concluded() -> bool:
        feeds = [app.feed, *app.feed.sub_feeds]
        through = all(feed.ready and feed.concluded == feed.run.version for feed in feeds)
        return through and len(app.feed._joined) == len(feeds) and app._seen == app.feed.version

    def shown() -> bool:
        view = app.screen
        if not isinstance(view, View):
            return all(w.is_finished for w in app.workers)
        panes = list(view.query(LineView)) if view.complete else []
        return (
            view.complete
            and (not panes or app.focused is not None)
            and all(w.is_finished for w in app.workers)
            and not any(w.empty == READING for w in panes)
        )

    await until(lambda: app._exit or concluded())
    await pilot.pause()
    await until(lambda: app._exit or shown())
    if isinstance(app.screen, View):
        app.screen.renew()
    await pilot.pause()
