"""Rule JX609: settings of JAX for debugging that are left on, and take much of the time."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator

from jaxscope.analysis.rewrap_site import syntax
from jaxscope.model import line_times, payers, sources
from jaxscope.model.line_times import Loop
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CHECKING, OPERATIONS, LineTime
from jaxscope.schema.messages import Field, Names, Percent, Seconds, message

SHARE = 0.1  # of the measured time
LINES = 3  # that are named
CHECKS = ("jax_debug_nans", "jax_debug_infs")
NO_JIT = "jax_disable_jit"


@rule("JX609", "debug-setting-left-on", WARNING)
def debug_setting_left_on(run: Run) -> Iterator[Finding]:
    measured = line_times.measured(run)
    if measured is None:
        return
    entries = line_times.entries(run)
    if checks := tuple(name for name in CHECKS if name in measured.debugging):
        times = [t for doing, t in entries if doing == CHECKING]
        if (
            run.platform == "cpu"
        ):  # the check of a jitted call waits for the computation, which is no cost of it
            called = payers.call_lines(run)
            times = [t for t in times if (t.stack[0].file, t.stack[0].line) not in called]
        yield from _finding(run, measured.seconds, times, checks)
    if NO_JIT in measured.debugging:
        yield from _finding(
            run, measured.seconds, [t for doing, t in entries if doing == OPERATIONS], (NO_JIT,)
        )


def _finding(
    run: Run, measured: float, times: list[LineTime], settings: tuple[str, ...]
) -> Iterator[Finding]:
    """Yield the finding that ``settings`` are the reason of ``times``. Yield nothing if these are less than
    SHARE of the ``measured`` seconds, or have few samples."""
    seconds = sum(t.seconds for t in times)
    if seconds < SHARE * measured or sum(t.samples for t in times) < line_times.FEWEST:
        return
    lines = Loop(times[0].stack[0], 0, False, times).lines()[:LINES]
    made = _lines_that_set(run, settings)
    fields: dict[str, Field] = {"seconds": Seconds(seconds), "share": Percent(seconds / measured)}
    without_jit = settings == (NO_JIT,)
    where = (
        message("setting-made-at", lines=Names(tuple(made), LINES, "lines"))
        if made
        else message("setting-of-environment", variable=settings[0].upper())
    )
    yield Finding(
        code="JX609",
        severity=WARNING,
        certainty=CERTAIN,
        title=message("jit-disabled", **fields)
        if without_jit
        else message("results-checked", settings=Names(settings), **fields),
        source=made[0] if made else lines[0][0],
        evidence=[
            Evidence(message("time-of-line", seconds=Seconds(spent)), source=line) for line, spent in lines
        ],
        fix=Fix(message("fix-setting-off", settings=Names(settings), where=where), "settings"),
        seconds=seconds,
        subject=settings,
        at_most=True,
        timed=True,
    )


def _lines_that_set(run: Run, settings: Collection[str]) -> list[Frame]:
    """Return the lines of the user's code that turn on one of ``settings``."""
    files = sorted({frame.file for _, t in line_times.entries(run) for frame in t.stack})
    return [
        Frame(file, line, "")
        for file in files
        for name, line in turned_on(sources.of(run)(file))
        if name in settings
    ]


def turned_on(source: str | None) -> Iterator[tuple[str, int]]:
    """Yield the settings of JAX that ``source`` turns on, each with the number of the line, as in
    ``jax.config.update("jax_debug_nans", True)``, ``jax.config.jax_debug_nans = True``,
    ``jax.debug_nans(True)`` and ``jax.disable_jit()``."""
    found = syntax(source) if source is not None else None
    for node in ast.walk(found.tree) if found is not None else ():
        if isinstance(node, ast.Assign) and _may_be_true(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute):
                    yield target.attr, node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name, values = node.func.attr, node.args
            if name == "update" and len(values) == 2 and isinstance(values[0], ast.Constant):
                if isinstance(values[0].value, str) and _may_be_true(values[1]):
                    yield values[0].value, node.lineno
            elif not values or _may_be_true(values[0]):
                yield f"jax_{name}", node.lineno


def _may_be_true(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and not value.value)
