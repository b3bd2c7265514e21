"""Print the text report of a run, and the summary at the end of ``jaxscope run``.

This module defines the order of the sections. It reads loaded runs and the state of their directories, and
parses no log itself.
"""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import line_times as model_times
from jaxscope.model import measured as model_measured
from jaxscope.model import payers
from jaxscope.model.causes import recompilations, recompiles
from jaxscope.model.diff import changed_programs
from jaxscope.model.load import load
from jaxscope.model.ranks import Job
from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations
from jaxscope.present.escape import escape
from jaxscope.present.failures import removed
from jaxscope.present.functions import outcome, when_and_where
from jaxscope.present.runs import compiling, ending, gaps, title
from jaxscope.present.text import Places, count, missing_accelerators, seconds
from jaxscope.report import (
    arrays,
    findings,
    function_summary,
    line_times,
    measured,
    ranks,
    sections,
    step_time,
    targets,
    targets_section,
    transfers,
    variants,
)
from jaxscope.report.console import console
from jaxscope.report.header import header
from jaxscope.report.layout import BLANK, Line, line, put

FUNCTIONS = 10  # functions that are listed
QUICK_BYTES, QUICK_COMPILATIONS = 4_000_000, 2_000  # a larger run has no findings in the summary
IN_SUMMARY = 3


def print_report(
    run: Run, *, file: TextIO | None = None, directory: RunDir | None = None, everything: bool = False
) -> None:
    """Print the text report of ``run`` to ``file``; None: to stdout. The whole text is written at once.
    ``directory`` is the directory of the run; None: unknown (see ``render``). ``everything`` (``--all``)
    shortens fewer lists."""
    stream = file or sys.stdout
    to, buffer = console(stream), io.StringIO()
    to.file = buffer  # a notebook shows each written piece separately
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
    """Print the text report of the run ``run`` to the console ``to``.

    Args:
      directory: the directory of the run; None: unknown. The report then lacks the settings of ``run --vary``
        (the values that it gave the program) and the runs with other settings.
      everything: shorten fewer lists (``--all``).
      job: all processes that were recorded together, of which ``run`` is one; the report then also compares
        them. None: ``run`` is the only one.
    """
    put(to, _page(run, directory, to.width, everything=everything, job=job))


def summary(
    directory: RunDir,
    parts: Sequence[variants.Variant] | None = None,
    *,
    unseen: bool = False,
    job: Job | None = None,
) -> str:
    """Return the few lines that ``jaxscope run`` prints to stderr at its end, in color if stderr supports it.

    Args:
      directory: the directory of the run.
      parts: the run, then its sub-runs (the same program with other settings or numbers of devices); None:
        load them.
      unseen: true if the terminal did not show the program's output; the lines then include the exception
        that ended the program.
      job: all processes that were recorded together; the lines then also compare them. None: there is only
        one.
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
    """Yield the lines of the text report in the order of its sections. ``width`` is the width of the page in
    characters; the other parameters are those of ``render``."""
    places, parts = Places(run), variants.of(run, directory)
    if gone := removed(run):
        yield line(*gone, hang=2)
    yield from header(run, directory)
    yield from arrays.exhausted(run, places)
    yield from sections.death(run, places)
    yield from sections.recompile_seconds(run)
    yield from sections.in_progress(run, directory, places)
    users = sections.ranked(run, lambda f: f.user and (everything or not sections.inside_others(f)))
    found = ranks.findings(job, variants.findings(parts))
    yield from findings.section(found, places, everything=everything)
    if run.compilations and not found:
        yield BLANK
        yield sections.no_problems(run)
    if job is not None:
        yield from ranks.section(job, places)
    yield from sections.without_advice(run, places)
    yield from sections.each_step(run, places)
    yield BLANK
    if users:
        yield from _functions(run, users, places, everything=everything)
    elif run.functions:
        yield line("None of your own functions is jitted.")
    else:
        yield line("Nothing was compiled in this run.")
        if not run.processes:
            yield line(sections.nothing_recorded(run, directory), indent=2)
    yield from targets_section.section(parts, places, width=width, everything=everything)
    yield from findings.buckets(run)
    yield from step_time.section(run, places, everything=everything)
    yield from line_times.section(run, places, everything=everything)
    yield from measured.section(run, places, everything=everything)
    yield from transfers.section(run, places, everything=everything)
    yield from arrays.section(run, places, everything=everything)
    folded = [*sections.not_yours(run, places, everything=everything)]
    if folded:
        yield BLANK
        yield from folded
    yield from sections.blind_spots(run, directory)
    yield from _next(run, directory, users, width)


def _functions(run: Run, users: list[Function], places: Places, *, everything: bool) -> Iterator[Line]:
    yield line(("Your functions, slowest first", "title"))
    shown = users if everything else users[:FUNCTIONS]
    for f in shown:
        yield from function_summary.entry(run, f, places, everything=everything)
    rest = users[len(shown) :]
    if rest:
        spent = seconds(sum(f.seconds for f in rest))
        yield line((f"and {count(len(rest), 'more function')}, {spent}: --all shows them", "dim"))


def _slow_inside(run: Run, users: list[Function]) -> Function | None:
    """Return the function among ``users`` that runs at least half of the time of the main thread, if the
    run has no profile that shows which of its lines take this time. None if there is none."""
    times = model_times.measured(run)
    if times is None or model_measured.profiles(run):
        return None
    spent = ((model_times.running_seconds(run, f) or 0.0, f) for f in users)
    return next((f for seconds, f in spent if 2 * seconds >= times.seconds), None)


def _next(run: Run, directory: RunDir | None, users: list[Function], width: int) -> Iterator[Line]:
    """Yield lines with commands that are useful after this report, each with what it prints.

    Args:
      users: the user's functions, slowest first.
      width: the width of the page in characters. A command and its explanation are on one
        line if that is possible for all commands.
    """
    name = which(directory, latest="")
    commands = []
    again = next((f for f in users if recompilations(f, run)), None)
    if again is not None:
        commands.append(
            (
                f"jaxscope report{name} --function {quoted(again)}",
                f"cache keys of {escape(again.display_name)}, compared",
            )
        )
    top = next((f for f in users if any(c.program in run.programs for c in f.compilations)), None)
    if top is not None and any(p.texts for p in run.programs.values()):
        commands.append(
            (
                f"jaxscope dump{name or ' latest'} {quoted(top)} -o DIR",
                f"programs of {escape(top.display_name)} as text",
            )
        )
    if (slow := _slow_inside(run, users)) is not None:
        commands.append(
            (
                f"jaxscope run --step-function {quoted(slow)} --profile steps=2:4 {title(run, directory)}",
                f"which lines take the time of {escape(slow.display_name)}",
            )
        )
    for f in users:
        if (numbers := changed_programs(run, f)) is not None:
            first = shlex.quote(f"{shlex.split(name)[0] if name else 'latest'}:{f.display_name}#{numbers[0]}")
            commands.append(
                (
                    f"jaxscope diff {escape(first)} '#{numbers[1]}'",
                    f"how the program of {escape(f.display_name)} changed",
                )
            )
            break
    if commands:
        yield BLANK
    longest = max((len(c) for c, _ in commands), default=0)
    beside = all(longest + 3 + len(what) <= width for _, what in commands)
    for command, what in commands:
        if beside:
            yield line(command.ljust(longest), (f"   {what}", "dim"))
        else:
            yield line((f"{what}:", "dim"))
            yield line(command, indent=4)._replace(whole=True)


def _quick_to_check(parts: Sequence[variants.Variant]) -> bool:
    """Return whether the run with its sub-runs (``parts``) is so small that the rules probably need less than
    about two seconds. The summary of a larger run has no findings."""
    texts = sum(sum(p.text_bytes.values()) for part in parts for p in part.run.programs.values())
    compilations = sum(len(part.run.compilations) for part in parts)
    return texts <= QUICK_BYTES and compilations <= QUICK_COMPILATIONS


def _summary(
    parts: Sequence[variants.Variant], directory: RunDir, *, unseen: bool, job: Job | None = None
) -> Iterator[Line]:
    """Yield the lines that ``jaxscope run`` prints at its end. The parameters are those of ``summary``."""
    run = parts[0].run
    places = Places(run)
    users = sections.ranked(run, lambda f: f.user)
    others = sections.ranked(run, lambda f: not f.user)
    if gone := removed(run):
        yield line(("jaxscope: ", "bold"), *gone, hang=2)
    yield _totals(run, directory, users, others)
    if unseen:
        yield from (Line(entry.text, 2, 4) for entry in sections.death(run, places, out_of_memory=True))
    yield from (
        Line(entry.text, 2, entry.hang)
        for entry in sections.in_progress(run, directory, places)
        if entry is not BLANK
    )
    quick = _quick_to_check(parts)
    of_run = variants.findings(parts) if quick else []
    yield from findings.in_summary(ranks.findings(job, of_run), places)
    shown = [f for f in users if not sections.inside_others(f)]
    for f in shown[:IN_SUMMARY]:
        yield from _function_in_summary(run, f, places)
    yield from sections.slowest_recompile(run, others, places, indent=2)
    for part in parts:
        yield from targets.in_summary(part.run, IN_SUMMARY if len(parts) == 1 else 1, part.label)
    yield from targets_section.failed(parts)
    if len(parts) > 1:
        yield line((f"{len(parts)} runs: the report compares them", "dim"), indent=2)
    if run.main is not None and run.main.backend is not None and run.main.backend.in_vain:
        yield line((missing_accelerators(run.main.backend.in_vain), "dim"), indent=2, hang=2)
    for spans in gaps(run)[:3]:
        yield line(*spans, indent=2, hang=2)
    title = "full report: " if quick else "full report, with the findings of this large run: "
    yield line((title, "dim"), f"jaxscope report{which(directory) or ' latest'}", indent=2)


def _totals(run: Run, directory: RunDir, users: Sequence[Function], others: Sequence[Function]) -> Line:
    """Return the first line of the summary: the seconds of compiling, the number of compilations of the
    user's functions (``users``) and of ``others``, and how the run ended if that is an error."""
    spent = compiling(run, shares=False) or ["?", " went into tracing, lowering and compiling"]
    again = sum(len(recompiles(f, run)) for f in users)
    outside = len(payers.recompiled_outside(run))
    own, other = sum(f.compiled for f in users), sum(f.compiled for f in others)
    how, bad = ending(run, directory)
    return line(
        ("jaxscope: ", "bold"),
        *spent,
        f"; {count(own, 'compilation')} of your functions",
        (f" ({count(again, 'recompile')})" if again else "", "warning"),
        f", {count(other, 'other')}" if other else "",
        (f" ({count(outside, 'recompile')})" if outside else "", "warning"),
        (f"; {how}", "error") if bad else "",
        hang=2,
    )


def _function_in_summary(run: Run, f: Function, places: Places) -> Iterator[Line]:
    name = function_summary.heading(f, places)
    yield line(*name, f"  {outcome(f)}", right=seconds(f.seconds), indent=2, hang=4)
    recs = recompilations(f, run)
    if recs:
        c = max(recs, key=lambda c: c.seconds)
        yield line(
            ("costliest recompile: " if len(recs) > 1 else "recompiled: ", "warning"),
            explanations(run, c)[0],
            (f"  ({when_and_where(c, places)})", "dim"),
            indent=6,
            hang=2,
        )


def which(directory: RunDir | None, *, latest: str | None = None) -> str:
    """Return a space and the argument that names the run in a jaxscope command: `` train-2``. Return an empty
    text if ``directory``, the directory of the run, is None.

    Args:
      latest: what to return for the newest run, which commands use if they get no argument; None: its name,
        as for other runs.
    """
    if directory is None:
        return ""
    home = store.here() / store.runs_home()
    if directory.path.parent != home:
        return " " + _shell(store.address(directory))
    if latest is not None and [run.path for run in store.all_runs(home)[-1:]] == [directory.path]:
        return latest
    return " " + _shell(directory.path.name)


def quoted(f: Function) -> str:
    """Return the name of the function ``f``, quoted for the shell."""
    return _shell(f.display_name)


def _shell(word: str) -> str:
    return shlex.quote(escape(word))
