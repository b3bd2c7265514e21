"""Print the text report of a run, and the summary at the end of ``jaxscope run``.

Defines the order of the sections. Reads a Run and the state of its directory, never the log.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

from rich.console import Console

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import ledger, payers
from jaxscope.model.causes import recompilations
from jaxscope.model.diff import changed_programs
from jaxscope.model.load import load, state
from jaxscope.model.ranks import Job
from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.present.causes import cause_count, explanations
from jaxscope.present.escape import escape
from jaxscope.present.failures import donations, removed, uncaught
from jaxscope.present.failures import out_of_memory as out_of_memory_ended
from jaxscope.present.functions import by_site, circumstances, outcome, work
from jaxscope.present.runs import compilation_name, compiling, ending, gaps, unfinished
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, count, function_name, listed, missing_accelerators, seconds
from jaxscope.report import (
    arrays,
    findings,
    function_summary,
    ranks,
    targets,
    targets_section,
    transfers,
    variants,
)
from jaxscope.report.console import console
from jaxscope.report.header import header
from jaxscope.report.layout import BLANK, Line, line, put
from jaxscope.rules import registry

FUNCTIONS = 10
QUICK_BYTES, QUICK_COMPILATIONS = 4_000_000, 2_000
IN_SUMMARY = 3
LONG = 0.1  # share of all seconds: recompiles outside the user's functions are shown from it on


def print_report(
    run: Run, *, file: TextIO | None = None, directory: RunDir | None = None, everything: bool = False
) -> None:
    """Print the report of ``run`` to ``file`` (default stdout), in one write: a notebook shows each write by
    itself.
    """
    stream = file or sys.stdout
    to, buffer = console(stream), io.StringIO()
    to.file = buffer
    render(run, to, directory, everything=everything)
    stream.write(buffer.getvalue())


def render(
    run: Run,
    to: Console,
    directory: RunDir | None = None,
    *,
    everything: bool = False,
    job: Job | None = None,
) -> None:
    """Print the whole report to ``to``; with ``everything`` nothing is shortened or folded.

    ``job``: the ranks of which ``run`` is one; they are shown too.
    """
    put(to, _page(run, directory, to.width, everything=everything, job=job))


def summary(
    directory: RunDir,
    parts: Sequence[variants.Variant] | None = None,
    *,
    unseen: bool = False,
    job: Job | None = None,
) -> str:
    """Return a few lines for stderr at the end of ``jaxscope run``, coloured if stderr takes colour.

    Args:
      parts: the run and the runs inside its directory, if already read.
      unseen: the program's output is not on the terminal; then include the exception that ended it.
      job: the ranks of which the run is one.
    """
    parts = variants.of(load(directory), directory) if parts is None else parts
    to = console(sys.stderr)
    buffer = io.StringIO()
    to.file = buffer
    put(to, _summary(parts, directory, unseen=unseen, job=job))
    return buffer.getvalue()


def _page(
    run: Run, directory: RunDir | None, width: int, *, everything: bool, job: Job | None = None
) -> Iterator[Line]:
    places, parts = Places(run), variants.of(run, directory)
    if gone := _removed(run):
        yield line(*gone, hang=2)
    yield from header(run, directory)
    yield from arrays.exhausted(run, places)
    yield from _death(run, places)
    yield from _recompile_seconds(run)
    yield from _in_progress(run, directory, places)
    users = ranked(run, lambda f: f.user and (everything or not _inside_others(f)))
    found = [*ranks.findings(job), *variants.findings(parts)]
    yield from findings.section(found, places, everything=everything)
    if users and not found:
        died = run.main is not None and run.main.died is not None
        ended = not died and (run.exited is not None or (run.main is not None and run.main.ended is not None))
        yield BLANK
        yield line("No problems found." if ended else "No problems found so far.")
    if job is not None:
        yield from ranks.section(job, places)
    yield from _without_advice(run, places)
    yield from _step(run, places)
    if users:
        yield BLANK
        yield line(("Your functions, slowest first", "title"))
        shown = users if everything else users[:FUNCTIONS]
        for f in shown:
            yield from function_summary.entry(run, f, places, everything=everything)
        rest = users[len(shown) :]
        if rest:
            spent = seconds(sum(f.seconds for f in rest))
            yield line((f"and {count(len(rest), 'more function')}, {spent}: --all shows them", "dim"))
    elif run.functions:
        yield BLANK
        yield line("None of your functions was compiled.")
    else:
        yield BLANK
        yield line("Nothing was compiled in this run.")
        if not run.processes:
            yield line(_nothing_recorded(run, directory), indent=2)
    yield from targets_section.section(parts, places, width=width, everything=everything)
    yield from findings.buckets(run)
    yield from transfers.section(run, places, everything=everything)
    yield from arrays.section(run, places, everything=everything)
    folded = [*_folded(run, places, everything=everything)]
    if folded:
        yield BLANK
        yield from folded
    yield from _blind_spots(run, directory)
    yield from _next(run, directory, users)


def _death(run: Run, places: Places, *, out_of_memory: bool = False) -> Iterator[Line]:
    """Show the exception that ended the program, and for a deleted array the functions that may have donated
    it.

    Out of memory has a section of its own and is left out, unless ``out_of_memory`` is set.
    """
    main = run.main
    died = main.died if main is not None else None
    if died is None or (out_of_memory_ended(died) and not out_of_memory):
        return
    where = places.frame(died.stack[0]) if died.stack else None
    yield line(*uncaught(died), (f"  ({where})" if where else "", "path"), hang=2)
    for spans in donations(run, died.message, places):
        yield line(*spans, indent=2, hang=2)


def _removed(run: Run) -> list[Span]:
    """Return what replaces the name whose removal from JAX ended the program; empty if that is not what did."""
    return removed(run.main.died) if run.main is not None and run.main.died is not None else []


def _recompile_seconds(run: Run) -> Iterator[Line]:
    """Show the seconds spent recompiling the user's functions, by kind of cause."""
    spent: dict[str, tuple[int, float]] = {}
    again = [c for f in run.functions.values() if f.user for c in recompilations(f)]
    for e in ledger.entries(run, again):
        n, total = spent.get(e.cause, (0, 0.0))
        spent[e.cause] = n + e.count, total + e.seconds
    if spent:
        ranking = sorted(spent.items(), key=lambda item: (-item[1][1], item[0]))
        several = len(ranking) > 1
        causes = ", ".join(
            cause_count(kind, n) + (f" {seconds(t)}" if several else "") for kind, (n, t) in ranking
        )
        total = sum(t for _, t in spent.values())
        # Seconds of parallel threads and processes add up to more than the time that passed.
        elapsed = run.compiling_seconds
        parallel = ", some of it in parallel" if elapsed is not None and total > elapsed else ""
        yield line((seconds(total), "bold"), f" spent recompiling{parallel} ({causes})", hang=2)
    outside = payers.recompiled_outside(run)
    if outside:
        again_seconds = seconds(sum(c.seconds for c in outside))
        times = count(len(outside), "compilation")
        yield line(
            (again_seconds, "bold"),
            f" spent recompiling operations outside jit and functions of libraries ({times})",
            hang=2,
        )


def _without_advice(run: Run, places: Places) -> Iterator[Line]:
    """Show the lines that took a tenth of all compile time or more and that no finding is about: needed once."""
    total = payers.total_seconds(run)
    entries = payers.unadvised(run, registry.findings(run))
    shown = [entry for entry in entries if entry.seconds >= LONG * total > 0]
    if shown:
        parts = []
        for entry in shown:
            names = [function_name(f) for f in entry.functions]
            if entry.operations:
                names.append(count(entry.operations, "operation outside jit", "operations outside jit"))
            again = f", {seconds(entry.again)} of it again" if entry.again >= LONG * entry.seconds else ""
            where = places.frame(entry.line)
            parts.append(
                f"{listed(names)} {seconds(entry.seconds)}, {100 * entry.seconds / total:.0f} %{again}"
                + (f" ({where})" if where else "")
            )
        yield BLANK
        yield line(
            ("First compilations (not recompiles) that took a tenth of all compile time or more: ", "dim"),
            "; ".join(parts),
            hang=2,
        )


def _step(run: Run, places: Places) -> Iterator[Line]:
    """Show what each turn of the training loop runs, where operations outside jit are part of it."""
    step = payers.step(run)
    if step is not None and step.operations:
        yield BLANK
        yield line(
            f"A step, the loop at {places.frame(step.loop)}, is {count(len(step.programs), 'program')} and at least "
            f"{count(step.operations, 'eager operation')}.",
            hang=2,
        )


def _inside_others(f: Function) -> bool:
    """Return whether ``f`` was only ever traced as a part of other functions' programs."""
    return bool(f.compilations) and all(c.entry == "nested" for c in f.compilations)


def ranked(run: Run, wanted: Callable[[Function], bool]) -> list[Function]:
    """Return the ``wanted`` functions that have any activity, the slowest first."""
    active = [
        f for f in run.functions.values() if wanted(f) and (f.compilations or f.calls or f.fast_path_misses)
    ]
    return sorted(active, key=lambda f: (-f.seconds, -f.compiled, f.id))


def _in_progress(run: Run, directory: RunDir | None, places: Places) -> Iterator[Line]:
    running = directory is not None and state(run, directory) == "running"
    lines = unfinished(run, places, running=running)
    if lines:
        yield BLANK
    for spans in lines:
        yield line(*spans, hang=2)


def _folded(run: Run, places: Places, *, everything: bool) -> Iterator[Line]:
    """Show library-internal and eager compilations: one line per group; with ``everything`` one per function."""
    for title, what, wanted in (
        ("Eager operations", "operations", lambda f: f.seen.eager),
        ("Inside libraries", "functions", lambda f: f.seen.library and not f.seen.eager),
    ):
        functions = ranked(run, wanted)
        compilations = [c for f in functions for c in f.compilations]
        compiled = sum(f.compiled for f in functions)
        if not compilations:
            continue
        spent = sum(f.seconds for f in functions)
        sites = by_site(compilations, places)
        most = ", ".join(f"{s} ({n:,}x, {seconds(t)})" for s, t, n in sites[: function_summary.SITES])
        more = (
            f" and {count(len(sites) - function_summary.SITES, 'more line')}"
            if len(sites) > function_summary.SITES
            else ""
        )
        yield line(
            (title, "bold"),
            f"  {count(compiled, 'compilation')}"
            + (f" of {len(functions):,} {what}" if len(functions) > 1 else ""),
            (f"  {most}{more}" if most else "", "dim"),
            right=(seconds(spent), "bold"),
            hang=4,
        )
        yield from _slowest_recompile(run, functions, places, indent=4)
        if everything:
            for f in functions:
                yield line(
                    function_name(f),
                    (f"  {work(f)}", "dim"),
                    (
                        f"  at {', '.join(s for s, _, _ in by_site(f.compilations, places)[: function_summary.SITES])}",
                        "dim",
                    ),
                    indent=4,
                    hang=4,
                )


def _slowest_recompile(run: Run, functions: list[Function], places: Places, *, indent: int) -> Iterator[Line]:
    """Show the slowest recompile of ``functions``, none of them the user's, if it took a share of LONG or
    more.

    The sum in the report's head counts the same ones: where a library compiles an operation once for each of its
    layers, none of these is a recompile.
    """
    least = LONG * payers.total_seconds(run)
    ids = {f.id for f in functions}
    slow = [c for c in payers.recompiled_outside(run) if c.function.id in ids and c.seconds >= least > 0]
    if not slow:
        return
    c = max(slow, key=lambda c: c.seconds)
    more = (
        f"; {len(slow) - 1:,} more of these recompiles took a tenth of all compile time or longer"
        if len(slow) > 1
        else ""
    )
    yield line(
        ("costliest recompile outside your functions: ", "warning"),
        (compilation_name(run, c), "name"),
        f"  {explanations(run, c)[0]}",
        (f"  ({circumstances(c, places)}){more}", "dim"),
        indent=indent,
        hang=2,
    )


def _nothing_recorded(run: Run, directory: RunDir | None) -> str:
    if directory is not None and not directory.events.is_dir():
        return f"The run is incomplete: it has no {escape(directory.events.name)}/ directory."
    if run.exited is not None and run.exited.exit_code:
        return "No process recorded anything: did the program fail before it imported jax?"
    return "No process recorded anything: did the program import jax?"


def _blind_spots(run: Run, directory: RunDir | None) -> Iterator[Line]:
    schema = directory.meta.get("schema", store.SCHEMA) if directory is not None else store.SCHEMA
    other_schema = schema != store.SCHEMA
    if not (run.degraded or run.unknown or run.damaged or run.unreadable or other_schema):
        return
    yield BLANK
    if other_schema:
        yield line(
            ("Not understood  ", "warning"),
            f"the run has schema {escape(str(schema), 40)}, this jaxscope reads schema {store.SCHEMA}: some of it"
            " may be misread",
            hang=4,
        )
    for spans in gaps(run):
        yield line(*spans, hang=4)
    if any(lost.seam != "stderr" for lost in run.degraded):
        yield line(("what this affects: jaxscope doctor", "dim"), indent=4)


def _next(run: Run, directory: RunDir | None, users: list[Function]) -> Iterator[Line]:
    """Show commands that lead on from this report."""
    name = which(directory, latest="")
    commands = []
    again = next((f for f in users if recompilations(f)), None)
    if again is not None:
        commands.append((f"jaxscope report{name} --function {quoted(again)}", "its cache keys, compared"))
    top = next((f for f in users if any(c.program in run.programs for c in f.compilations)), None)
    if top is not None and any(p.texts for p in run.programs.values()):
        commands.append((f"jaxscope dump{name or ' latest'} {quoted(top)} -o DIR", "its programs as text"))
    for f in users:
        if (numbers := changed_programs(run, f)) is not None:
            first = shlex.quote(f"{shlex.split(name)[0] if name else 'latest'}:{f.display_name}#{numbers[0]}")
            commands.append((f"jaxscope diff {escape(first)} '#{numbers[1]}'", "how its program changed"))
            break
    if commands:
        yield BLANK
    width = max((len(c) for c, _ in commands), default=0)
    for command, what in commands:
        yield line(command.ljust(width), (f"   {what}", "dim"), hang=4)


def _quick_to_check(parts: Sequence[variants.Variant]) -> bool:
    """Return whether all rules run in a second or two: the shell prompt waits for the summary."""
    texts = sum(sum(p.text_bytes.values()) for part in parts for p in part.run.programs.values())
    compilations = sum(len(part.run.compilations) for part in parts)
    return texts <= QUICK_BYTES and compilations <= QUICK_COMPILATIONS


def _summary(
    parts: Sequence[variants.Variant], directory: RunDir, *, unseen: bool, job: Job | None = None
) -> Iterator[Line]:
    run = parts[0].run
    places = Places(run)
    spent = compiling(run, shares=False) or ["?", " went into tracing, lowering and compiling"]
    users = ranked(run, lambda f: f.user)
    others = ranked(run, lambda f: not f.user)
    again = sum(len(recompilations(f)) for f in users)
    outside = len(payers.recompiled_outside(run))
    compiled = sum(f.compiled for f in users) + sum(f.compiled for f in others)
    how, bad = ending(run, directory)
    if gone := _removed(run):
        yield line(("jaxscope: ", "bold"), *gone, hang=2)
    yield line(
        ("jaxscope: ", "bold"),
        *spent,
        f"; {count(compiled, 'compilation')}, ",
        (f"{count(again, 'recompile')} of your functions", "warning" if again else ""),
        (f", {outside:,} outside your functions" if outside else "", "warning"),
        (f"; {how}", "error") if bad else "",
        hang=2,
    )
    if unseen:
        yield from (Line(entry.text, 2, 4) for entry in _death(run, places, out_of_memory=True))
    yield from (
        Line(entry.text, 2, entry.hang)
        for entry in _in_progress(run, directory, places)
        if entry is not BLANK
    )
    of_run = variants.findings(parts) if _quick_to_check(parts) else []
    yield from findings.in_summary([*ranks.findings(job), *of_run], places)
    for f in users[:IN_SUMMARY]:
        yield from _function_in_summary(run, f, places)
    yield from _slowest_recompile(run, others, places, indent=2)
    for part in parts:
        yield from targets.in_summary(part.run, IN_SUMMARY if len(parts) == 1 else 1, part.label)
    yield from targets_section.failed(parts)
    if len(parts) > 1:
        yield line((f"{len(parts)} runs: the report compares them", "dim"), indent=2)
    if run.main is not None and run.main.backend is not None and run.main.backend.in_vain:
        yield line((missing_accelerators(run.main.backend.in_vain), "dim"), indent=2, hang=2)
    for spans in gaps(run)[:3]:
        yield line(*spans, indent=2, hang=2)
    yield line(("full report: ", "dim"), f"jaxscope report{which(directory) or ' latest'}", indent=2)


def _function_in_summary(run: Run, f: Function, places: Places) -> Iterator[Line]:
    site = places.function(f)
    yield line(
        (function_name(f), "bold"),
        (f"  {site}" if site else "", "dim"),
        f"  {outcome(f)}",
        right=seconds(f.seconds),
        indent=2,
        hang=4,
    )
    recs = recompilations(f)
    if recs:
        c = max(recs, key=lambda c: c.seconds)
        yield line(
            ("costliest recompile: " if len(recs) > 1 else "recompiled: ", "warning"),
            explanations(run, c)[0],
            (f"  ({circumstances(c, places)})", "dim"),
            indent=6,
            hang=2,
        )


def which(directory: RunDir | None, *, latest: str | None = None) -> str:
    """Return the name of this run for a command line, with a space before it; empty if the directory is
    unknown.

    ``latest``, if given, is returned for the newest run.
    """
    if directory is None:
        return ""
    home = store.here() / store.runs_home()
    if directory.path.parent != home:
        return " " + _shell(store.address(directory))
    if latest is not None and store.all_runs(home)[-1:] and store.all_runs(home)[-1].path == directory.path:
        return latest
    return " " + _shell(directory.path.name)


def quoted(f: Function) -> str:
    """Return the function's name quoted for the shell."""
    return _shell(f.display_name)


def _shell(word: str) -> str:
    return shlex.quote(escape(word))
