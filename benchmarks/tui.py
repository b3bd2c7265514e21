"""Measure how long the terminal view takes to its first paint, and to answer a key, under load.

    python benchmarks/tui.py [--rounds 30] [--only CASE] [-o benchmarks/tui.json]

Headless, 160x50. Cases: an idle run; 1,000 events a second arriving; 100,000 functions in the table, and
100,000 compilations of one; a program with 100 MB of HLO, from the opening of its screen to its text, and
keys while another process still reads it. A key is answered by the first frame after all the messages that it
set off have been handled; it is settled when nothing is left to be drawn, news of the run included.
No JAX: the runs are written here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]


def milliseconds(values: list[float]) -> dict[str, float]:
    values = sorted(values)
    return {
        "median": round(1e3 * statistics.median(values), 1),
        "p95": round(1e3 * values[int(0.95 * (len(values) - 1))], 1),
        "max": round(1e3 * values[-1], 1),
    }


def quiet(app) -> bool:
    """Return whether no message is waiting."""
    return all(
        pump._message_queue.empty() and not pump._next_callbacks
        for pump in (app, app.screen, *app.screen.walk_children())
        if pump.is_running
    )


def dirty(app) -> bool:
    """Return whether something waits to be drawn."""
    screen = app.screen
    return bool(
        screen._dirty_widgets
        or screen._layout_required
        or screen._scroll_required
        or screen._callbacks
        or any(w._repaint_required for w in screen._compositor.visible_widgets)
    )


async def drawn(app, *, first: bool = False) -> None:
    """Wait until the screen shows the result of a key: it takes several messages, and
    the frame after the first of them shows half of it.

    ``first``: until the first frame after those messages, where work goes on in slices and is drawn again and
    again.
    """
    calm, end = 0, time.perf_counter() + 5
    while calm < 3 and time.perf_counter() < end:
        await asyncio.sleep(0)
        calm = calm + 1 if quiet(app) and (first or not dirty(app)) else 0
        if not calm:
            await asyncio.sleep(0.001)
    frames = app.frames
    while first and dirty(app) and app.frames == frames and time.perf_counter() < end:
        await asyncio.sleep(0.001)


async def keys(app, pressed: list[str], rounds: int, until=None) -> dict[str, dict[str, float]]:
    from textual import events

    answered: list[float] = []
    settled: list[float] = []
    for n in range(rounds):
        if until is not None and answered and until():
            break
        await asyncio.sleep(0.05)
        began = time.perf_counter()
        key = pressed[n % len(pressed)]
        app.post_message(events.Key(key, key if len(key) == 1 else None))
        await drawn(app, first=True)
        answered.append(time.perf_counter() - began)
        await drawn(app)
        settled.append(time.perf_counter() - began)
    return {"answered": milliseconds(answered), "settled": milliseconds(settled)}


async def typed(app, text: str) -> dict[str, float]:
    """Type a search letter by letter, as fast as the view answers."""
    from textual import events

    took = []
    for key in ("slash", *text):
        await asyncio.sleep(0.05)
        began = time.perf_counter()
        app.post_message(events.Key(key, "/" if key == "slash" else key))
        await drawn(app, first=True)
        took.append(time.perf_counter() - began)
    return milliseconds(took)


async def opened(directory):
    """(app context, seconds to the first paint of the run)."""
    from jaxscope.tui.app import App

    began = time.perf_counter()
    app = App(directory)
    app.frames, display = 0, app._display

    def counted(*what) -> None:
        display(*what)
        app.frames += 1

    app._display = counted
    context = app.run_test(size=(160, 50))
    await context.__aenter__()
    while not (app.feed.ready and app._seen >= 0):
        await asyncio.sleep(0.002)
    await drawn(app)
    return app, context, time.perf_counter() - began


async def concluded(app, patience: float = 30.0) -> float | None:
    """Seconds until the rules have run; None: not within ``patience``."""
    began = time.perf_counter()
    while app.feed.concluded < app.feed.run.version:
        await asyncio.sleep(0.01)
        if time.perf_counter() - began > patience:
            return None
    return round(time.perf_counter() - began, 1)


def functions(path: Path, count: int, each: int):
    from handwritten_runs import Log, exited, function, key, leaf

    from jaxscope.log import store
    from jaxscope.schema import events as ev

    run = store.create(path, name="many", argv=["many.py"])
    log = Log(run)
    log.backend(8)
    for n in range(count):
        seen = function(f"function_{n}", line=n + 1)
        log.say(seen)
        log.say(ev.Called(function=seen.function, count=1))
        for m in range(each):
            log.now += 0.001
            log.compiled(seen, key(leaf("x", m + 1)), (0.0001, 0.0001, 0.0005))
    log.end()
    exited(run)
    return run


def hlo(size: int) -> str:
    line = '  %fusion.{n} = bf16[32,511,1024]{{2,1,0}} fusion(%fusion.{m}), kind=kLoop, calls=%body, metadata={{op_name="jit(train_step)/transformer/layer_{k}/mlp/dot_general" source_file="/home/ann/train.py" source_line={k}}}\n'
    parts = ["HloModule big, is_scheduled=true\n\nENTRY %main (fusion.0: bf16[32,511,1024]) -> bf16[32,511,1024] {\n  %fusion.0 = bf16[32,511,1024]{2,1,0} parameter(0)\n"]  # fmt: skip
    total, n = 0, 0
    while total < size:
        n += 1
        parts.append(line.format(n=n, m=n - 1, k=n % 400 + 1))
        total += len(parts[-1])
    return "".join([*parts, "}\n"])


def write(path: Path, per_second: int = 1_000) -> None:
    """Write a run that compiles all the time, until this process is ended."""
    from handwritten_runs import Log, function, key, leaf

    from jaxscope.log.store import RunDir
    from jaxscope.schema import events as ev

    run = RunDir(path)
    log = Log(run)
    log.backend(8)
    said, n, began = 0, 0, time.monotonic()
    while True:
        seen = function(f"function_{n // 100 % 50}", line=n // 100 % 50 + 1)
        if n // 100 < 50 and n % 100 == 0:
            log.say(seen)
        log.now += 0.01
        log.compiled(seen, key(leaf("x", n + 1)), (0.001, 0.001, 0.005))
        log.say(ev.Step(index=n + 1))
        run.heartbeat.touch()
        n += 1
        said += 8  # what these are as events
        time.sleep(max(0.0, began + said / per_second - time.monotonic()))


async def idle(rounds: int, folder: Path, scale: float) -> dict[str, object]:
    """Measure a frame when nothing happens."""
    import screen_runs

    app, context, first = await opened(screen_runs.typical(folder / "typical"))
    await concluded(app)
    latency = await keys(app, ["2", "down", "1"], rounds)
    await context.__aexit__(None, None, None)
    return {"first_paint_ms": round(1e3 * first), "key_ms": latency}


async def live(rounds: int, folder: Path, scale: float) -> dict[str, object]:
    """1,000 events a second, written by a process of its own as a program's would be."""
    from jaxscope.log import store

    run = store.create(folder / "live", name="live", argv=["live.py"])
    writer = subprocess.Popen([sys.executable, __file__, "--write", str(run.path)])
    try:
        app, context, first = await opened(run)
        await asyncio.sleep(2)
        before, began = app.feed.run.version, time.perf_counter()
        latency = await keys(app, ["2", "down", "tab", "down", "1", "down"], 4 * rounds)
        rate = (app.feed.run.version - before) / (time.perf_counter() - began)
    finally:
        writer.terminate()
        writer.wait()
    await context.__aexit__(None, None, None)
    return {"per_second": round(rate), "first_paint_ms": round(1e3 * first), "key_ms": latency}


async def rows(path: Path, count: int, each: int, rounds: int) -> dict[str, object]:
    """Measure keys on ``count`` functions; with ``each``, on the compilations of one."""
    app, context, first = await opened(functions(path, count, each))
    await drawn(app)
    await app.action_show("functions")
    await asyncio.sleep(1)
    table = app.screen.functions if each == 0 else app.screen.attempts
    table.focus()
    busy = await keys(app, ["down", "G", "g", "pagedown"], rounds)
    waited = await concluded(app)
    await drawn(app)
    calm = await keys(app, ["down", "G", "g", "pagedown"], rounds)
    began = time.perf_counter()
    letters = await typed(app, "99")
    while table._filtering is not None:
        await asyncio.sleep(0.002)
    await drawn(app)
    filtered = time.perf_counter() - began
    await app.action_back()
    await drawn(app)
    began = time.perf_counter()
    table.action_sort()
    await drawn(app)
    found = {
        "rows": table.line_count, "first_paint_ms": round(1e3 * first), "key_ms": calm, "key_ms_while_rules_run": busy,
        "rules_s": waited, "letter_ms": letters, "filter_ms": round(1e3 * filtered), "sort_ms": round(1e3 * (time.perf_counter() - began)),
    }  # fmt: skip
    await context.__aexit__(None, None, None)
    return found


async def many_functions(rounds: int, folder: Path, scale: float) -> dict[str, object]:
    return await rows(folder / "functions", int(100_000 * scale), 0, rounds)


async def many_compilations(rounds: int, folder: Path, scale: float) -> dict[str, object]:
    return await rows(folder / "compilations", 10, int(10_000 * scale), rounds)


async def large(rounds: int, folder: Path, scale: float) -> dict[str, object]:
    """100 MB of HLO."""
    from handwritten_runs import Log, function, key, leaf

    from jaxscope.log import store

    text = hlo(int(100e6 * scale))
    run = store.create(folder / "large", name="large", argv=["large.py"])
    log = Log(run)
    log.backend(8)
    seen = function("train_step")
    log.say(seen)
    log.compiled(seen, key(leaf("x", 8)), program="p", texts={"hlo": text})
    log.end()
    size = len(text)
    del text
    app, context, first = await opened(run)
    began = time.perf_counter()

    def there() -> bool:
        return bool(getattr(app.screen, "stages", None) and app.screen.stages["hlo"].line_count)

    opening = await keys(app, ["3", "down", "tab"], rounds, there)
    while not there():
        await asyncio.sleep(0.005)
    await drawn(app)
    shown = time.perf_counter() - began
    view = app.screen.stages["hlo"]
    view.focus()
    busy = await keys(app, ["down", "G", "g", "pagedown"], rounds)
    began = time.perf_counter()
    letters = await typed(app, "layer_399")
    while view._search is not None:
        await asyncio.sleep(0.002)
    searched = time.perf_counter() - began
    began = time.perf_counter()
    view.search("nowhere to be found")
    while view._search is not None:
        await asyncio.sleep(0.002)
    nothing = time.perf_counter() - began
    await app.action_back()
    while not app.screen.links.hlo.places:
        await asyncio.sleep(0.05)
    calm = await keys(app, ["down", "G", "g", "pagedown"], rounds)
    await context.__aexit__(None, None, None)
    return {
        "bytes": size, "lines": view.line_count, "first_paint_ms": round(1e3 * first), "text_shown_ms": round(1e3 * shown),
        "key_ms_while_it_is_opened": opening, "key_ms_while_it_is_read": busy, "key_ms": calm, "letter_ms": letters, "search_ms": round(1e3 * searched), "search_for_nothing_ms": round(1e3 * nothing),
    }  # fmt: skip


CASES = {
    "idle": idle,
    "events": live,
    "functions": many_functions,
    "compilations": many_compilations,
    "hlo": large,
}


async def measure(rounds: int, folder: Path, scale: float, only: list[str]) -> dict[str, object]:
    os.chdir(folder)
    found: dict[str, object] = {}
    for name in only or CASES:
        found[name] = await CASES[name](rounds, folder, scale)
        print(name, found[name], file=sys.stderr)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rounds", type=int, default=30)
    options.add_argument(
        "--scale", type=float, default=1.0, help="of the large cases, to try this script out"
    )
    options.add_argument("--only", action="append", choices=CASES, default=[])
    options.add_argument("-o", "--out", type=Path)
    options.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.write:
        write(given.write)
    out = given.out.absolute() if given.out else None
    import textual

    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(measure(given.rounds, Path(folder), given.scale, given.only))
    text = json.dumps({"python": sys.version.split()[0], "textual": textual.__version__, **found}, indent=2)
    print(text)
    if out:
        out.write_text(text + "\n")


if __name__ == "__main__":
    main()
