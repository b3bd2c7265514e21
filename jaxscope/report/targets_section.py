"""Report the programs of each function side by side: one for each target (a machine compiled for) and for
each setting (values with which ``run --vary`` ran the program)."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from jaxscope.log import store
from jaxscope.log.jobs import CRASHED, LATE, OK
from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.runs import ending
from jaxscope.present.text import Places, count, seconds
from jaxscope.report import comparison_table
from jaxscope.report.function_summary import heading
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.targets import devices, program_lines
from jaxscope.report.variants import Column, Variant, by_function

WIDTH = 80


def section(
    variants: Sequence[Variant], places: Places, *, width: int = WIDTH, everything: bool = False
) -> Iterator[Line]:
    """Yield the lines of the report's section on targets (machines to compile for, ``v5e:4x4``) and settings
    (values that ``run --vary`` gave the program): the programs of each function, side by side. Yield nothing
    if there are no targets and only one run.

    Args:
      variants: the run, then its sub-runs (the same program with other settings or numbers of devices).
      places: shortens file names.
      width: the width of tables in characters.
      everything: list all known buffers of programs that do not fit (``--all``).
    """
    targets = list(dict.fromkeys(t.name for v in variants for t in v.run.targets))
    elsewhere = bool(targets) or any(v.run.retargeted for v in variants)
    if not elsewhere and len(variants) < 2:
        return
    yield BLANK
    title = f"Compiled for {', '.join(escape(t, 40) for t in targets)}" if elsewhere else "Side by side"
    labels = list(dict.fromkeys(v.label for v in variants if v.label))
    names = ", ".join(dict.fromkeys(escape(name, 60) for v in variants for name in v.settings))
    under = (
        escape(labels[0], 80) if len(labels) == 1 else f"{len(labels)} settings of {names}" if labels else ""
    )
    yield line(
        (title, "title"),
        (
            "  with the target's own compiler; nothing ran on it"
            if elsewhere
            else "  compiled for the devices the program ran on",
            "dim",
        ),
        (f"; {under}" if under else "", "dim"),
        hang=2,
    )
    yield from {row.text.plain: row for v in variants for row in devices(v.run)}.values()
    yield from failed(variants)
    found = by_function(variants)
    if not found:
        yield line(f"none of your functions was {'lowered for it' if elsewhere else 'compiled'}", indent=2)
    marked = False
    for f, columns in found:
        for row in _function(f, columns, places, width, everything=everything):
            marked = marked or comparison_table.MARK in row.text.plain
            yield row
    yield from _unfinished(variants)
    yield from _notes([v.run for v in variants], marked=marked)


def _function(
    f: Function, columns: Sequence[Column], places: Places, width: int, *, everything: bool
) -> Iterator[Line]:
    """Yield the lines about one function: a table if there are several ``columns``, then for each target the
    lines that do not fit into a table, such as errors."""
    yield line(*heading(f, places))
    several = len(columns) > 1
    if several:
        yield from comparison_table.table(columns, width)
    for c in columns:
        if c.target is not None and not (several and c.program.state == OK):
            label = c.variant.label
            yield from program_lines(c.variant.run, c.program, label=label, everything=everything)


def of_function(f: Function, variants: Sequence[Variant], width: int) -> Iterator[Line]:
    """Yield a table with the programs of the function ``f`` side by side: one column for each target (a
    machine to compile for) and each setting (values that ``run --vary`` gave the program). Yield nothing if
    there is only one program.

    Args:
      variants: the run, then its sub-runs (the same program with other settings or numbers of devices).
      width: the width of the table in characters.
    """
    columns = next((columns for g, columns in by_function(variants) if g.id == f.id), [])
    rows = list(comparison_table.table(columns, width)) if len(columns) > 1 else []
    if rows:
        yield BLANK
        yield line(("Side by side", "title"))
        yield from rows
    if any(comparison_table.MARK in each.text.plain for each in rows):
        yield line((comparison_table.LEGEND, "dim"), indent=2, hang=2)


def failed(variants: Sequence[Variant]) -> Iterator[Line]:
    """Yield a line for each of several runs that failed. ``variants`` are the run, then its sub-runs (the
    same program with other settings or numbers of devices)."""
    if len(variants) < 2:
        return
    for v in variants:
        how, bad = ending(v.run, v.directory)
        if bad and v.directory is not None:
            where = escape(shlex.quote(store.address(v.directory)))
            yield line(
                (f"{escape(v.label or v.directory.name, 80)}: {how}", "warning"),
                (f"  jaxscope report {where}", "dim"),
                indent=2,
                hang=2,
            )


def _unfinished(variants: Sequence[Variant]) -> Iterator[Line]:
    """Yield a line with the command that compiles the missing programs for targets (machines to compile for):
    those whose compiler crashed, timed out or ended."""
    n = sum(p.state in (CRASHED, LATE, "abandoned") for v in variants for p in v.run.retargeted.values())
    directory = variants[0].directory
    if n and directory is not None:
        where = escape(shlex.quote(store.address(directory)))
        yield line(
            (f"{count(n, 'program')} not compiled for a target. To compile again:", "warning"),
            f" jaxscope compile --rest {where}",
            indent=2,
            hang=2,
        )


def _notes(runs: Sequence[Run], *, marked: bool) -> Iterator[Line]:
    """Yield the explanation of the mark in the table (if it has one, ``marked``), and remarks about compiling
    for targets."""
    if marked:
        yield line((comparison_table.LEGEND, "dim"), indent=2, hang=2)
    if any(t.platform == "cuda" for run in runs for t in run.targets):
        yield line(
            ("nothing is autotuned without a GPU: matrix kernels may differ from those of a real run", "dim"),
            indent=2,
            hang=2,
        )
    waited = [
        p.target_lowered.seconds
        for run in runs
        for p in run.retargeted.values()
        if p.target_lowered is not None and p.target_lowered.seconds
    ]
    if waited:
        yield line(
            (
                f"lowering for targets delayed the program by {seconds(sum(waited))}"
                f" ({count(len(waited), 'lowering')})",
                "dim",
            ),
            indent=2,
        )
