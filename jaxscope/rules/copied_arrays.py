"""Rule JX607: a loop writes into a large array outside jit. Each write copies the whole array."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.loop_calls import LONGEST, root
from jaxscope.analysis.source_lines import loop_around
from jaxscope.analysis.syntax import calls_from
from jaxscope.model import line_times as model
from jaxscope.model import sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.messages import Bytes, message

WRITES = frozenset(
    {"scatter", "scatter-add", "scatter_add", "scatter-mul", "scatter_mul", "dynamic_update_slice"}
)
METHODS = frozenset({"set", "add", "multiply", "mul", "divide", "power", "min", "max", "apply"})  # of x.at[i]
SMALLEST = 1 / 16384  # share of a device's memory: a smaller array is not reported
PARTS = 20  # the array must be at least this many times as large as the part that is written


@rule("JX607", "array-copied-for-each-write", WARNING)
def array_copied_for_each_write(run: Run) -> Iterator[Finding]:
    seen: set[Frame] = set()
    for c in run.compilations.values():
        whole = _written(c)
        device = memory_scale.of_process(c.process)
        if whole is None or c.site is None or whole < SMALLEST * device or c.site in seen:
            continue
        loop = _loop(run, c)
        name, text = _write(sources.of(run)(c.site.file), c.site.line)
        if loop is None or name is None:
            continue
        seen.add(c.site)
        title = message("array-copied-for-each-write", expression=text, bytes=Bytes(whole), loop=loop)
        yield Finding(
            code="JX607",
            severity=WARNING if whole >= memory_scale.WORTH_A_NOTE * device else NOTE,
            certainty=LIKELY,
            **at_line(title, c.site, c),
            fix=Fix(message("fix-write-in-jit", name=name), "jit", {"name": name}),
            subject=(c.site,),
        )


def _written(c: Compilation) -> int | None:
    """Return the bytes of the array into which ``c``, an operation outside jit, writes. Return None if ``c``
    is another operation, or if it writes more than a small part of the array (1 / PARTS)."""
    leaves = c.key.arguments if c.key is not None else []
    if c.function.user or c.function.seen.name not in WRITES or c.entry != "call" or len(leaves) < 2:
        return None
    whole = aval_bytes(leaves[0].shape, leaves[0].dtype)
    part = max((aval_bytes(leaf.shape, leaf.dtype) or 0 for leaf in leaves[1:]), default=0)
    return whole if whole is not None and whole >= PARTS * part else None


def _loop(run: Run, c: Compilation) -> Frame | None:
    """Return the first line of the innermost loop that repeats the operation ``c``; None if no loop is
    known."""
    stacks = [c.lines, *(t.stack for _, t in model.entries(run) if t.stack and same_line(t.stack[0], c.site))]
    for at in itertools.chain.from_iterable(stacks):
        lines = loop_around(sources.of(run)(at.file), at.line)
        if lines is not None:
            return Frame(at.file, lines[0], at.function)
    return None


def _write(source: str | None, line: int) -> tuple[str | None, str]:
    """Return (array, expression) of a write on ``line``: ``("x", "x.at[i].set(y)")``. The array is None if
    its expression does not begin with a variable. Return (None, "") if there is no write."""
    for call in calls_from(source, line):
        method = call.func
        if not isinstance(method, ast.Attribute) or method.attr not in METHODS:
            continue
        item = method.value
        if (
            isinstance(item, ast.Subscript)
            and isinstance(item.value, ast.Attribute)
            and item.value.attr == "at"
        ):
            text = ast.unparse(call)
            short = text if len(text) <= LONGEST else f"{ast.unparse(item.value)}[…].{method.attr}(…)"
            return ast.unparse(item.value.value) if root(item.value) else None, short
    return None, ""
