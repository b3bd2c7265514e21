"""Format the lines above and below the texts of a program, the list of its fusions, and the comparison of two
programs."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.text import Text

from jaxscope.analysis.hlo.fusions import Fusion
from jaxscope.analysis.programs import Texts
from jaxscope.log.store import RunDir
from jaxscope.model import diff
from jaxscope.model.records import Compilation, Program
from jaxscope.model.run import Run
from jaxscope.present.programs import DONATION, executions, in_short
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, seconds, size
from jaxscope.report import diff as report
from jaxscope.report.console import console
from jaxscope.report.dump import why_not
from jaxscope.tui.cells import Cell, Column, Part
from jaxscope.tui.links import Links, Place

SHOWN = 4  # names of operations in a line


def default(run: Run, function: str | None) -> Compilation | None:
    """Return the latest compilation of the function with the id ``function``. If it has none, or if
    ``function`` is None, return the compilation that the program screen shows first; None if no call was
    recorded.

    For this, functions are searched in this order: the user's before others, then the slowest first. The
    result is the latest compilation with a recorded text of the first function that has one, or if there is
    none, the latest call of the first function.
    """
    if function in run.functions and (numbered := run.numbered(run.functions[function])):
        return numbered[-1][1]
    functions = sorted(run.functions.values(), key=lambda f: (not f.user, -f.seconds, f.id))
    for f in functions:
        for c in reversed(f.compilations):
            if c.program in run.programs and run.programs[c.program or ""].texts:
                return c
    return next((f.compilations[-1] for f in functions if f.compilations), None)


def neighbor(run: Run, c: Compilation, by: int) -> Compilation | None:
    """Return the compilation ``by`` places after ``c`` among the compilations of the same function; negative:
    before ``c``. None if there is none. If ``c`` is not one of them, because it compiled nothing, return the
    latest."""
    numbered = [x for _, x in run.numbered(c.function)]
    if c not in numbered:
        return numbered[-1] if numbered else None
    at = numbered.index(c) + by
    return numbered[at] if 0 <= at < len(numbered) else None


def absent(run: Run, c: Compilation, stage: str) -> str:
    """Return a sentence that says why a text of the compilation ``c`` is missing. ``stage`` is ``stablehlo``
    or ``hlo``."""
    why = why_not(run, c, stage)
    return f"No {'HLO' if stage == 'hlo' else 'StableHLO'}: {why}."


def summary(run: Run, c: Compilation, program: Program | None, texts: Texts | None) -> list[Part]:
    """Return the line about the compilation ``c`` and its program (None: it has none), as styled text:
    ``train_step #4  7.0 s · 412 instructions · 49 fusions · ...``. ``texts`` are the analyzed texts of the
    program; None: they are not read yet."""
    parts: list[Part] = [(compilation_name(run, c), "bold"), f"  {seconds(c.seconds)}"]
    if program is None:
        return [*parts, (f"  {', '.join(c.reached) or 'unfinished'}", "dim")]
    if texts is None:
        return [*parts, ("  reading …" if program.texts else "", "dim")]
    if texts.hlo is not None and texts.hlo.module is not None:
        parts.append(f" · {count(texts.hlo.instructions, 'instruction')}")
    compiled = c.compiled or program.compiled
    short = in_short(texts, compiled.memory if compiled is not None else None)
    if short:
        parts.append(f" · {short}")
    if texts.stablehlo is not None:
        for status, donation in DONATION.items():
            found = [d for d in texts.stablehlo.donation if d.status == status]
            if found:
                total = size(sum(d.bytes or 0 for d in found))
                parts.append((f" · {len(found):,} {donation.short} ({total})", donation.style))
    return parts


def link(
    links: Links, places: Sequence[Place], stablehlo: Sequence[int], hlo: Sequence[int], shorten: Places
) -> list[Part]:
    """Return the line that shows what the compiler made from one line of the user's source: ``train.py:92 → 3
    StableHLO operations → 2 instructions``. The names of the first operations and instructions follow each
    number.

    Args:
      links: which source lines each line of the texts comes from, and the names of the operations.
      places: the source lines from which the selected line of a text comes; empty: it comes from no line of
        the user.
      stablehlo, hlo: the numbers of the lines of each text that come from ``places``.
      shorten: shortens file names.
    """
    if not places:
        return [("made by the compiler, not by a line of your code", "dim")]
    file, line = places[0]
    more = f" and {len(places) - 1} more lines" if len(places) > 1 else ""
    parts: list[Part] = [(f"{shorten.file(file)}:{line}", "bold"), more, " → "]
    ops = list(dict.fromkeys(links.stablehlo.names.get(n, "?").removeprefix("stablehlo.") for n in stablehlo))
    parts.append(f"{count(len(stablehlo), 'StableHLO operation')}" + _list(ops))
    parts.append(" → ")
    parts.append(f"{count(len(hlo), 'instruction')}" + _list([links.hlo.names.get(n, "?") for n in hlo]))
    return parts


def _list(names: Sequence[str]) -> str:
    """Return at most SHOWN ``names`` after a colon: ``": a, b, c, d and 3 more"``; empty without names."""
    if not names:
        return ""
    return ": " + ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")


def fusions(texts: Texts) -> list[Fusion]:
    """Return the fusions of a program, those that move most memory first; empty if the HLO was not read."""
    found = texts.hlo.fusions.each if texts.hlo is not None else []
    return sorted(found, key=lambda f: (-(f.moved_bytes or 0), f.name))


def fusion_columns(places: Places) -> list[Column[Fusion]]:
    def holds(f: Fusion, _: int) -> Cell:
        ranked = sorted(f.ops.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(name if n == 1 else f"{n} {name}" for name, n in ranked)

    return [
        Column("fusion", lambda f, _: [(f.name, "bold")], 24),
        Column("kind", lambda f, _: f.kind, 7),
        Column(
            "runs",
            lambda f, _: executions(f.executions),
            6,
            right=True,
            unknown="the number of iterations of a loop is unknown",
        ),
        Column(
            "moves",
            lambda f, _: size(f.moved_bytes),
            10,
            right=True,
            unknown="a size, or how often it runs, is unknown",
        ),
        Column(
            "line",
            lambda f, _: [(places.frame(f.sources[0]) or "?" if f.sources else "?", "dim")],
            20,
            wide=90,
            unknown="the compiler kept no source line for it",
        ),
        Column("holds", holds),
    ]


def fusion_id(f: Fusion) -> str:
    return f"{f.computation}\0{f.name}"


def difference(run: Run, directory: RunDir, before: Compilation, after: Compilation, width: int) -> str:
    """Return what ``jaxscope diff`` prints about the compilations ``before`` and ``after``, in lines of
    ``width`` characters. This reads the texts of both programs, so the thread that draws must not call it."""
    buffer = io.StringIO()
    found = diff.compilations(run, before, run, after)
    pair = report.Pair(run, directory, run, directory)
    report.render(found, pair, console(buffer, width=width), everything=True)
    return Text.from_ansi(buffer.getvalue()).plain
