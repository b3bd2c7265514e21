"""Format the overview: what is being compiled, seconds spent waiting for devices, the latest compilations,
and recompilations by step."""

from __future__ import annotations

from typing import NamedTuple

from jaxscope.model import line_times as times_of_lines
from jaxscope.model.causes import recompilations, recompiles
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.step_time import step_seconds
from jaxscope.model.steps import Steps
from jaxscope.model.transfers import steps as steps_of
from jaxscope.model.transfers import waits
from jaxscope.present import line_times as words_of_lines
from jaxscope.present.findings import headline, mark
from jaxscope.present.functions import known_cause
from jaxscope.present.runs import compilation_name, compiling, unfinished, verb
from jaxscope.present.steps import in_short, worth_showing
from jaxscope.present.text import Places, count, function_name, seconds
from jaxscope.present.transfers import is_long_wait, name, waiting
from jaxscope.schema.findings import Finding
from jaxscope.schema.line_times import COMPILING
from jaxscope.schema.steps import Either
from jaxscope.tui.cells import Column, Part
from jaxscope.tui.rows.findings import COST

LATEST = 50  # compilations that are listed


def now(run: Run, places: Places, *, running: bool) -> list[Part]:
    """Return a text that says what is being compiled (or was when the program ended) and for how long. If
    nothing is, return the total time spent compiling.

    Args:
      places: shortens file names.
      running: whether the program still runs.
    """
    lines = unfinished(run, places, running=running)
    if not lines:
        return compiling(run)
    outermost = function_name(run.in_progress()[0].compilation.function)
    inside: list[Part] = [(f", inside {outermost}", "dim")] if len(lines) > 1 else []
    return [*lines[-1], *inside]  # the innermost phase is the one that is running


def waited(run: Run, places: Places) -> list[Part]:
    """Return how long the program waited for values from the devices, and the line with the longest wait.
    Empty if the waits are a small part of the run. ``places`` shortens file names."""
    found = waits(run)
    total = sum(t.blocked_seconds or 0.0 for t in found)
    if not is_long_wait(run, total):
        return []
    most = found[0]
    share = f", {seconds(most.blocked_seconds)} of it in " if len(found) > 1 else ", in "
    times = f" {most.count:,}x" if most.count is not None else ""
    where = places.frame(most.source)
    return [*waiting(total), share, (name(most), "name"), times, (f"  {where}" if where else "", "path")]


def step_time(run: Run, places: Places) -> list[Part]:
    """Return how long a training step takes, and which line of the user's code takes most of it. Empty if
    this is unknown or not worth showing (``present.steps.worth_showing``). ``places`` shortens file names."""
    found = step_seconds(run)
    return in_short(found, places) if found is not None and worth_showing(found) else []


def line_times(run: Run, places: Places) -> list[Part]:
    """Return the line of the user's code on which the main thread spent most time, apart from compiling.
    Empty if no line takes much, or if the times were not measured. ``places`` shortens file names."""
    times = times_of_lines.measured(run)
    if times is None:
        return []
    found = [s for s in times_of_lines.by_line(run) if s.doing != COMPILING]
    worth = words_of_lines.worth_showing(found, times)
    return words_of_lines.in_short(worth[0], times, places) if worth else []


class Event(NamedTuple):
    """A row of the table of the latest compilations.

    Attributes:
      id: the id of the compilation.
      at: seconds since the run began.
      text: name, seconds and cause of the compilation, as styled text.
    """

    id: str
    at: float | None
    compilation: Compilation
    text: list[Part]


def latest(run: Run) -> list[Event]:
    """Return the last LATEST compilations of the user's functions, the latest first."""
    found = [
        c for f in run.functions.values() if f.user for c in f.compilations[-LATEST:] if not c.only_missed
    ]
    found.sort(key=lambda c: c.t_ns, reverse=True)
    made = []
    for c in found[:LATEST]:
        text: list[Part] = [(compilation_name(run, c), "name"), " "]
        if c.failed is not None:
            text.append((f"✖ {verb(c.failed.phase)} failed", "error"))
        elif c.phase is not None:
            text.append((f"{verb(c.phase)} …", "good"))
        else:
            text.append(f"{seconds(c.seconds)}  ")
            kind = known_cause(run, c)
            text.append((kind, "dim" if kind == "first" else "retrace"))
        made.append(Event(c.id, run.seconds_at(c.t_ns), c, text))
    return made


EVENT_COLUMNS: list[Column[Event]] = [
    Column("at", lambda e, _: seconds(e.at), 8, right=True),
    Column("latest", lambda e, _: e.text),
]

FINDING_COLUMNS: list[Column[Finding]] = [
    Column("code", lambda f, _: [mark(f), f" {f.code}"], 7, order=lambda f: f.code),
    Column("finding", lambda f, _: headline(f)),
    COST,
]


def finding_id(f: Finding) -> str:
    return repr(f.identity)


def last_step(run: Run) -> int:
    """Return the number of training steps that the main process has counted so far: by ``jaxscope.step()``,
    or by calls of a watched function. 0 if it counts none."""
    return (steps_of(run, run.main) or 0) if run.main is not None else 0


def steps(run: Run, width: int) -> list[list[Part]]:
    """Draw the training steps of the main process: a heading, and a line of at most ``width`` characters,
    each for one or several steps. A digit is the number of recompiles of the user's functions (``+``: more
    than 9), ``█`` is a first compilation, ``·`` neither. The line is left out if ``width`` is less than 12.

    The program must count steps (``last_step``).
    """
    main, last = run.main, last_step(run)
    per = -(-(last + 1) // max(1, width - 2))
    each = f"per {count(per, 'step')}" if per > 1 else "by step"
    made: list[list[Part]] = [[(f" recompiles {each}, 0 to {last:,}  █ first compilation", "dim")]]
    if width < 12:
        return made
    again, first = [0] * (last // per + 1), [False] * (last // per + 1)
    found = Steps(run)
    for f in run.functions.values():
        again_ids = {c.id for c in recompilations(f, run)} if f.user else set()
        calls = {c.id for c in recompiles(f, run)} if f.user else set()
        for c in f.compilations if f.user else ():
            step = found.of(c)
            at = step.least if isinstance(step, Either) else step
            if at is None or c.process is not main or not 0 <= at <= last:
                continue
            again[at // per] += c.id in calls
            first[at // per] |= c.id not in again_ids and c.compiled is not None
    made.append([" "])
    for n, new in zip(again, first, strict=True):
        made[1].append(
            (str(n) if n < 10 else "+", "retrace") if n else ("█", "compile") if new else ("·", "dim")
        )
    return made
