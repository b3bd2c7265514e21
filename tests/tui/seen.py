"""What a person sees: the screen of an app under test as text, and waiting until it stands still."""

from __future__ import annotations

import asyncio

from jaxscope.tui.app import App
from jaxscope.tui.lineview import LineView
from jaxscope.tui.screens.frame import View


def screen(app: App) -> str:
    """The whole screen as text, without the spaces at line ends."""
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips) + "\n"


async def settled(pilot) -> None:
    """Until the run is read, the rules have run, and the screen shows it."""
    app = pilot.app
    for _ in range(1200):
        if app.feed.ready and app.feed.concluded == app.feed.run.version and app._seen == app.feed.version:
            break
        await asyncio.sleep(0.02)
    for _ in range(500):
        await pilot.pause()
        busy = [app.screen] if isinstance(app.screen, View) and not app.screen.complete else []
        busy += (
            [app.screen]
            if isinstance(app.screen, View) and app.screen.query(LineView) and app.focused is None
            else []
        )
        busy += [w for w in app.workers if not w.is_finished] or [
            w for w in app.screen.query("*") if w.loading
        ]
        if not busy:
            break
        await asyncio.sleep(0.02)
    if isinstance(app.screen, View):
        app.screen.renew()
    await pilot.pause()
    await pilot.pause()
