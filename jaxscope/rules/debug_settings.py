"""Rule JX609: JAX's settings for debugging that are left on and take much of the time."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from jaxscope.analysis import jit_decorators
from jaxscope.analysis.syntax import syntax
from jaxscope.model import line_times, payers, sources
from jaxscope.model.line_times import Loop
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CHECKING, OPERATIONS, LineTime
from jaxscope.schema.messages import Field, Names, Percent, Seconds, message

SHARE = 0.1  # of the measured time
LINES = 3  # lines that are named
CHECKS = ("jax_debug_nans", "jax_debug_infs")
NO_JIT = "jax_disable_jit"


@rule("JX609", "debug-setting-left-on", WARNING)
def debug_setting_left_on(run: Run) -> Iterator[Finding]:
    measured = line_times.measured(run)
    if measured is None:
        return
    entries = line_times.entries(run)
    if checks := [name for name in CHECKS if name in measured.debugging]:
        # At a jitted call, the check mostly waits for a computation that the program would wait for later.
        times = [t for doing, t in entries if doing == CHECKING and not _is_jitted_call(run, t)]
        yield from _finding(run, measured.seconds, times, checks)
    if NO_JIT in measured.debugging:
        times = [t for doing, t in entries if doing == OPERATIONS]
        yield from _finding(run, measured.seconds, times, [NO_JIT])


def _is_jitted_call(run: Run, t: LineTime) -> bool:
    """Return whether the line where ``t`` was measured seems to call a jitted function of the user."""
    at = t.stack[0]
    if at.place in payers.call_lines(run):
        return True
    jitted = frozenset(f.seen.name.rpartition(".")[2] for f in run.functions.values() if f.user)
    return jit_decorators.calls(sources.of(run)(at.file), at.line, jitted)


def _finding(run: Run, measured: float, times: list[LineTime], settings: Sequence[str]) -> Iterator[Finding]:
    """Yield the finding that the debugging ``settings`` cost the time in ``times``. Yield nothing if this
    time is less than SHARE of ``measured``, the measured seconds of the run, or has too few samples."""
    loop = Loop(times[0].stack[0], 0, False, times) if times else None
    if loop is None or loop.seconds < SHARE * measured or loop.samples < line_times.FEWEST:
        return
    lines, made = loop.lines()[:LINES], _lines_that_set(run, settings)
    share = Percent(line_times.share_of_run(run, loop.seconds))
    fields: dict[str, Field] = {"seconds": Seconds(loop.seconds), "share": share}
    missing = [name for name in settings if name not in made]
    if missing:
        where = message("setting-of-environment", variable=missing[0].upper())
    else:
        where = message("setting-made-at", lines=Names(tuple(made.values()), LINES, "lines"))
    which = Names(tuple(settings))
    without_jit = settings == [NO_JIT]
    yield Finding(
        code="JX609",
        severity=WARNING,
        certainty=LIKELY,
        title=message("jit-disabled", **fields)
        if without_jit
        else message("results-checked", settings=which, **fields),
        source=next(iter(made.values()), lines[0][0]),
        evidence=[
            Evidence(message("time-of-line", seconds=Seconds(spent)), source=line) for line, spent in lines
        ],
        fix=Fix(message("fix-setting-off", settings=which, where=where), "settings"),
        seconds=loop.seconds,
        subject=tuple(settings),
        at_most=True,
        timed=True,
    )


def _lines_that_set(run: Run, settings: Collection[str]) -> dict[str, Frame]:
    """Return {setting: the first line found in the user's code that turns it on} for ``settings``."""
    sampled = {frame.file for _, t in line_times.entries(run) for frame in t.stack}
    found: dict[str, Frame] = {}
    for file in sorted(sampled | run.sources.keys()):
        for name, line in turned_on(sources.of(run)(file)):
            if name in settings:
                found.setdefault(name, Frame(file, line, ""))
    return found


def turned_on(source: str | None) -> Iterator[tuple[str, int]]:
    """Yield (setting, line number) for each setting of JAX that ``source`` turns on, with ``jax.config``,
    ``os.environ`` or a function: ``jax.debug_nans(True)``. Some pairs are no settings: ``jax.devices()``
    gives ``jax_devices``."""
    for node in ast.walk(syntax(source).tree):
        if isinstance(node, ast.Assign) and _may_be_true(node.value):
            for target in node.targets:
                if isinstance(target, ast.Attribute) and ast.unparse(target.value).endswith("config"):
                    yield target.attr, node.lineno
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value).endswith("environ"):
                    yield _text(target.slice).lower(), node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner, name = ast.unparse(node.func.value), node.func.attr
            values = [*node.args, *(k.value for k in node.keywords)]
            sets = len(values) == 2 and _may_be_true(values[1])
            if sets and name == "update" and owner.endswith("config"):
                yield _text(values[0]), node.lineno
            elif sets and name == "setdefault" and owner.endswith("environ"):
                yield _text(values[0]).lower(), node.lineno
            elif owner == "jax" and (not values or _may_be_true(values[0])):
                yield f"jax_{name}", node.lineno


def _text(value: ast.expr) -> str:
    """Return the value of the string constant ``value``; an empty string if ``value`` is another
    expression."""
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def _may_be_true(value: ast.expr) -> bool:
    return not (isinstance(value, ast.Constant) and value.value in (False, None, "", "0", "false", "False"))
