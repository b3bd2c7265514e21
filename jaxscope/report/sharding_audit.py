"""Report the shardings of each argument and result of a program, as lines of text and as JSON: the requested
sharding (for example by ``out_shardings``), the one in the compiled program, and the one of the array that
was passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.cells import cell_len

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.paths import of_result
from jaxscope.analysis.sharding_audit import (
    CONSTRAINT,
    MOVED,
    RESULT,
    TYPE,
    Disagreement,
    Intent,
    device,
    disagreement,
    on_one_device,
    same,
    spelled,
)
from jaxscope.model import sharding_audit as model
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present import render
from jaxscope.present.escape import escape
from jaxscope.present.text import Places
from jaxscope.report import contract
from jaxscope.report.layout import Line, aligned, filled_cells, line
from jaxscope.schema.messages import Words

SMALL = 12  # with more rows, only those with a difference are shown
BY = {CONSTRAINT: "constrained", TYPE: "typed"}


def as_json(run: Run, c: Compilation) -> list[contract.Intent] | None:
    """Return the requested, the compiled and the actual sharding of each argument and result of the
    compilation ``c``, for its entry in the JSON report. Return None if ``c`` compiled nothing, or if the
    shardings cannot differ: all arrays are on one device, and no sharding is requested."""
    if not model.at_stake(c):
        return None
    return [_entry(i, disagreement(i)) for i in model.of_compilation(run, c)]


def _entry(i: Intent, difference: Disagreement | None) -> contract.Intent:
    agrees: bool | None = False
    if difference is None:
        rank = len(i.shape or ())
        pairs = [(a, b) for a, b in ((i.asked, i.compiled), (i.compiled, i.actual)) if a and b]
        equal = [same(a, b, rank) for a, b in pairs]
        agrees = None if not equal or None in equal else all(equal)
    return contract.Intent.copy_of(
        i,
        asked=None if i.asked is None else i.asked.text,
        asked_by=i.by,
        compiled=None if i.compiled is None else i.compiled.text,
        actual=None if i.actual is None else i.actual.text,
        agrees=agrees,
        difference=None if difference is None else difference.kind,
        reason=None if difference is None else render.text(difference.reason) or None,
        times=None if difference is None else difference.times,
    )


def section(intents: Sequence[Intent], places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield a table with the requested, the compiled and the actual sharding of each argument and result.
    Those whose shardings differ come first, each with the reason; a long table has only these.

    Args:
      intents: the shardings of each argument and result. Left out are those with neither a requested nor a
        compiled sharding, and arguments that the program does not take.
      places: shortens file names.
      everything: list all rows (``--all``).
    """
    audited = [(i, disagreement(i)) for i in intents if not i.dropped and (i.asked or i.compiled)]
    shown = (
        audited if everything or len(audited) <= SMALL else [pair for pair in audited if pair[1] is not None]
    )
    shown = sorted(shown, key=lambda pair: pair[1] is None)
    rows = [_row(i) for i, _ in shown]
    heads = ("", "", "requested", "compiled", "passed as" if any(r[4] for r in rows) else "")
    if not everything and _alike(rows) and all(d is None for _, d in shown):
        heads = ("", "", "", "requested, compiled and passed alike", "")
        rows = [(name, aval, "", compiled, "") for name, aval, _, compiled, _ in rows]
    widths = [max((cell_len(r[k]) for r in (heads, *rows)), default=0) for k in range(len(heads))]
    if rows:
        yield line((f"    {aligned(heads, widths)}", "dim"))._replace(cells=filled_cells(heads, widths))
    for (i, d), row in zip(shown, rows, strict=True):
        style = "warning" if d else "dim"
        yield line((aligned(row, widths), style), indent=4, hang=2)._replace(cells=filled_cells(row, widths))
        if d is not None:
            site = places.frame(i.asked_at)
            by = f"{BY[i.by]} at {site}: " if i.by in BY and site and d.kind != MOVED else ""
            reason = "moved in every call that passes it this way" if d.kind == MOVED else why(d)
            text = f"{by}{escape(reason, 200)}"
            yield line((text, "warning"), indent=6, hang=2)._replace(cells=("", text))
    left = len(audited) - len(shown)
    if left:
        yield line((f"and {left:,} more where all agree: --all shows them", "dim"), indent=4)


def _alike(rows: Sequence[tuple[str, str, str, str, str]]) -> bool:
    """Return whether one column is enough: each row has a compiled sharding, and its requested and actual
    shardings are empty or equal to the compiled one; at least one of them is not empty. Rows: (name, type,
    requested, compiled, actual)."""
    return all(r[3] and {*r[2:]} <= {"", r[3]} for r in rows) and any(r[2] or r[4] for r in rows)


def _row(i: Intent) -> tuple[str, str, str, str, str]:
    rank = len(i.shape or ())
    name = i.path or "the result"
    if i.of == RESULT and i.path:
        name = of_result(i.path)
    asked, compiled = ("" if s is None else _written(spelled(s, rank)) for s in (i.asked, i.compiled))
    actual = ""
    if i.actual is not None:
        actual = _written(device(i.actual) if on_one_device(i.actual) else spelled(i.actual, rank))
    return escape(name, 60), short_aval(i.shape, i.dtype), asked, compiled, actual


def _written(words: Words) -> str:
    return escape(render.text(words), 60)


def why(difference: Disagreement) -> str:
    """Return why two shardings of an argument or result differ, and what the difference costs: ``17 is not
    divisible by 8; 8 times the memory``."""
    parts = [render.text(difference.reason)] if difference.reason is not None else []
    if difference.times is not None and difference.times > 1:
        parts.append(f"{difference.times:,} times the memory")
    return "; ".join(parts) or "differs from the request"
