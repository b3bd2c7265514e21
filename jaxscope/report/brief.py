"""The brief JSON report (``jaxscope report --format json --brief``), of at most 8 KB: a verdict, the findings
with their fixes, figures of the run, and commands to run next.

``jaxscope show`` prints single parts of the full report.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from jaxscope import __version__
from jaxscope.log.store import RunDir
from jaxscope.model import metrics, payers
from jaxscope.model import transfers as run_transfers
from jaxscope.model.causes import recompilations, recompiles
from jaxscope.model.load import state
from jaxscope.model.ranks import Job
from jaxscope.model.records import Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations
from jaxscope.present.failures import removed, uncaught
from jaxscope.present.runs import compiling, ending
from jaxscope.present.spans import plain
from jaxscope.present.text import count
from jaxscope.report import contract
from jaxscope.report.bounded import cut, first_that_fit, size
from jaxscope.report.drill import Document, escaped, finding_paths
from jaxscope.report.json_report import SCHEMA, compact
from jaxscope.report.show import Command
from jaxscope.schema.findings import ERROR, NOTE, WARNING
from jaxscope.schema.keys import Frame

MOST_BYTES = 8192
TEXT_BYTES = 400  # longer texts are cut
NAME_BYTES = 200
ARGUMENTS_BYTES = 600  # larger arguments of a fix are left out
FUNCTIONS_BYTES = 1500
COMMANDS_BYTES = 2000
FUNCTIONS = 5


class BriefRun(contract.Entry):
    """The program and how it ended.

    Attributes:
      name: the name of the run, which jaxscope's commands accept as RUN.
      program: the program and its arguments as a shell command; empty: unknown.
      state: ``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost`` (no end in
        the log).
      ending: how the program ended, in words.
      seconds: wall time of the program; null: unknown.
      devices, processes: number of devices that JAX shows to the program, and number of recorded processes.
    """

    name: str
    program: str
    state: str | None
    ending: str
    exit_code: int | None
    signal: int | None
    seconds: float | None
    jax: str | None
    platform: str | None
    devices: int
    processes: int


class Figures(contract.Entry):
    """Figures of the whole run.

    Attributes:
      compiling_seconds: wall time of tracing, lowering and compiling in the main process.
      compilations: number of compilations of all functions, with those loaded from the persistent cache.
      recompiles: number of calls that recompiled one of the user's functions.
      recompiling_seconds: the seconds of these calls, with all programs that they compiled.
      recompiles_outside_jit: number of recompiles of operations outside jit and of library functions.
      fast_path_misses: number of calls that missed JAX's fast path and compiled nothing.
      persistent_cache_hits: number of programs that JAX loaded from its persistent compilation cache instead
        of compiling them.
      programs: number of different programs.
      largest_peak_bytes: the peak memory on one device of the program that needs the most; null: unknown.
      transfers: number of copies between host and devices, and between devices; null: they were not counted.
      waiting_seconds: seconds for which these copies made the program wait; null: they were not counted.
      degraded: number of parts of jaxscope's recording that did not work, so that the report may lack
        something.
    """

    compiling_seconds: float | None
    compilations: int
    recompiles: int
    recompiling_seconds: float
    recompiles_outside_jit: int
    fast_path_misses: int
    persistent_cache_hits: int
    programs: int
    largest_peak_bytes: int | None
    transfers: int | None
    waiting_seconds: float | None
    degraded: int


class BriefFinding(contract.Entry):
    """One finding, with some of the keys that it has in ``findings`` of the JSON report.

    Attributes:
      path: the path with which ``jaxscope show RUN PATH`` prints the whole finding.
      id: an id that stays the same in later runs.
      code: the code of the rule: ``JX101``.
      severity: error, warning or note.
      certainty: certain or likely.
      function: id of the function that the finding is about; null: none.
      source: the line of the user's code that the finding is about; null: none.
      seconds: seconds lost so far; null: unknown.
      fix: what to do, in words; null: no fix is known.
      fix_kind, fix_arguments: the fix as data, for programs that apply it: ``donate`` and
        ``{"donate_argnames": ["x"]}``; ``fix_kind`` is null if no fix is known, ``fix_arguments`` if they are
        left out to save bytes.
      incomplete: the names of the fields of this entry that are shortened, or that are null only to save
        bytes.
    """

    path: str
    id: str
    code: str
    severity: str
    certainty: str
    title: str
    function: str | None
    source: Frame | None
    seconds: float | None
    fix: str | None
    fix_kind: str | None
    fix_arguments: dict[str, Any] | None
    incomplete: list[str]


class BriefFunction(contract.Entry):
    """One of the user's functions.

    Attributes:
      path: the path with which ``jaxscope show RUN PATH`` prints the whole entry.
      source: the line that defines the function.
      compilations: number of compilations.
      recompiles: number of calls that traced, lowered or compiled the function again.
      seconds: seconds of tracing, lowering and compiling.
      recompiled: why the function was recompiled, in words, for its slowest recompile; null: there was none.
    """

    path: str
    source: Frame | None
    compilations: int
    recompiles: int
    seconds: float
    recompiled: str | None


class Counts(contract.Entry):
    """The number of findings by severity.

    Attributes:
      shown: how many findings are listed in ``findings``.
    """

    error: int
    warning: int
    note: int
    shown: int


class Brief(contract.Entry):
    """What ``jaxscope report --format json --brief`` prints.

    Attributes:
      schema: the version of the format.
      jaxscope: the version of jaxscope.
      verdict: what happened and what it cost, in sentences.
      figures: figures of the whole run.
      counts: the number of findings by severity, and how many are listed.
      findings: the first findings that fit into the 8 KB of the report, usually errors first.
      functions: the user's functions that took longest to trace, lower and compile; at most 5.
      next: commands, the most useful one first.
    """

    schema: int
    jaxscope: str
    verdict: str
    run: BriefRun
    figures: Figures
    counts: Counts
    findings: list[BriefFinding]
    functions: list[BriefFunction]
    next: list[Command]


def brief(run: Run, directory: RunDir, name: str, job: Job | None = None) -> Brief:
    """Return the brief report of the run ``run``. As one line of JSON, it has at most MOST_BYTES (8192)
    bytes.

    Args:
      name: the name of the run; the commands in the report use it.
      job: all processes that were recorded together, of which ``run`` is one; None: ``run`` is the only one.
    """
    document = Document(run, directory, job)
    found = document.findings()
    severities = Counter(f.severity for f in found)
    page = Brief(
        SCHEMA,
        __version__,
        cut(" ".join(_verdict(run, found)), 2 * TEXT_BYTES),
        _run(run, directory, name),
        _figures(run),
        Counts(severities[ERROR], severities[WARNING], severities[NOTE], 0),
        [],
        [],
        [],
    )
    page.next = first_that_fit(_next(directory, name, found), COMMANDS_BYTES)
    page.functions = first_that_fit(_functions(run, document), FUNCTIONS_BYTES)
    page.findings = first_that_fit(_findings(found), MOST_BYTES - size(page) - 20, _shorter)
    page.counts.shown = len(page.findings)
    return page


def dumps(page: Brief) -> str:
    """Return the brief report ``page`` as one line of JSON with a newline."""
    return compact(page) + "\n"


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a brief report."""
    return contract.schema_of(Brief, "jaxscope brief report")


def _verdict(run: Run, findings: Sequence[contract.Finding]) -> Iterator[str]:
    """Yield sentences about how the program ended, the seconds of compiling, and the first of
    ``findings``."""
    main = run.main
    died = main.died if main is not None else None
    if died is not None:
        yield f"The program died: {plain(removed(run)) or plain(uncaught(died))}."
    if not run.processes:
        yield "Nothing was recorded: the program did not import jax."
        return
    if not run.compilations:
        yield "Nothing was compiled."
    if spent := plain(compiling(run)):
        yield f"{spent}."
    first = next(iter(findings), None)
    if first is not None:
        at = f" ({first.source.file}:{first.source.line})" if first.source is not None else ""
        yield f"{count(len(findings), 'finding')}; the first: {cut(first.title, TEXT_BYTES)}{at}."
    elif run.compilations:
        yield "No problems found."


def _run(run: Run, directory: RunDir, name: str) -> BriefRun:
    started = run.main.started if run.main is not None else None
    exited = run.exited
    return BriefRun(
        name=cut(name, NAME_BYTES),
        program=cut(_program(directory), TEXT_BYTES),
        state=state(run, directory),
        ending=cut(ending(run, directory)[0], TEXT_BYTES),
        exit_code=exited.exit_code if exited is not None else None,
        signal=exited.signal if exited is not None else None,
        seconds=run.seconds,
        jax=None if started is None or started.jax is None else cut(started.jax, NAME_BYTES),
        platform=None if run.platform is None else cut(run.platform, NAME_BYTES),
        devices=len(run.devices),
        processes=len(run.processes),
    )


def _program(directory: RunDir) -> str:
    """Return the program of a run and its arguments as a shell command, without the Python interpreter:
    ``train.py --lr 0.1``. Empty if unknown."""
    return shlex.join(directory.argv or ())


def _figures(run: Run) -> Figures:
    functions = run.functions.values()
    again = [c for f in functions if f.user for c in recompilations(f, run)]
    peaks = [metrics.sizes(p.compiled)[1] for p in run.programs.values()]
    transfers = None if not run_transfers.counted(run) else run_transfers.transfers(run)
    return Figures(
        compiling_seconds=run.compiling_seconds,
        compilations=sum(f.compiled for f in functions),
        recompiles=sum(len(recompiles(f, run)) for f in functions if f.user),
        recompiling_seconds=sum(c.seconds for c in again),
        recompiles_outside_jit=len(payers.recompiled_outside(run)),
        fast_path_misses=sum(f.fast_path_misses for f in functions),
        persistent_cache_hits=sum(f.persistent_cache_hits for f in functions),
        programs=len(run.programs),
        largest_peak_bytes=max((n for n in peaks if n is not None), default=None),
        transfers=None if transfers is None else sum(t.count or 0 for t in transfers),
        waiting_seconds=None if transfers is None else sum(t.blocked_seconds or 0.0 for t in transfers),
        degraded=len(run.degraded),
    )


def _findings(findings: Sequence[contract.Finding]) -> Iterator[BriefFinding]:
    """Yield an entry for each finding, in order. Long texts are cut, and large arguments of a fix are left
    out."""
    for f, path in zip(findings, finding_paths(findings), strict=True):
        incomplete: list[str] = []

        def text(name: str, f: contract.Finding = f, incomplete: list[str] = incomplete) -> Any:
            whole = getattr(f, name)
            short = None if whole is None else cut(whole, TEXT_BYTES)
            if short != whole:
                incomplete.append(name)
            return short

        title, fix, function = text("title"), text("fix"), text("function")
        arguments: dict[str, Any] | None = f.fix_arguments
        if size(arguments) > ARGUMENTS_BYTES:
            arguments = None
            incomplete.append("fix_arguments")
        yield BriefFinding(
            path, f.id, f.code, f.severity, f.certainty, title, function, f.source, f.seconds, fix,
            f.fix_kind, arguments, incomplete,
        )  # fmt: skip


def _shorter(f: BriefFinding) -> BriefFinding:
    """Return a copy of the finding ``f`` that takes fewer bytes: the title is cut, and the source line, the
    function, the fix and its arguments are null."""
    return msgspec.structs.replace(
        f,
        title=cut(f.title, NAME_BYTES),
        function=None,
        source=None,
        fix=None,
        fix_arguments=None,
        incomplete=["title", "function", "source", "fix", "fix_arguments"],
    )


def _functions(run: Run, document: Document) -> Iterator[BriefFunction]:
    """Yield an entry for each of the user's FUNCTIONS (5) functions that took longest to trace, lower and
    compile. ``document`` is the full report, to which the paths in the entries lead."""
    active = [f for f in run.functions.values() if f.user and f.compilations]
    for f in sorted(active, key=lambda f: (-f.seconds, f.id))[:FUNCTIONS]:
        again = recompilations(f, run)
        worst = max(again, key=lambda c: c.seconds, default=None)
        yield BriefFunction(
            path=f"functions/{escaped(document.function_name(f))}",
            source=_defined(f),
            compilations=f.compiled,
            recompiles=len(recompiles(f, run)),
            seconds=f.seconds,
            recompiled=None if worst is None else cut(explanations(run, worst)[0], NAME_BYTES),
        )


def _defined(f: Function) -> Frame | None:
    return None if f.seen.file is None or f.seen.line is None else Frame(f.seen.file, f.seen.line, f.name)


def _next(directory: RunDir, name: str, findings: Sequence[contract.Finding]) -> Iterator[Command]:
    """Yield commands to run next: they print the first three findings, the lists of findings and functions,
    and try a patch. ``name`` is the name of the run."""
    for f, path in list(zip(findings, finding_paths(findings), strict=True))[:3]:
        where = f"{f.code}, {cut(f.title, NAME_BYTES)}"
        yield Command(f"jaxscope show {name} {path}", where)
    if len(findings) > 1:
        yield Command(f"jaxscope show {name} findings", "all findings")
    yield Command(f"jaxscope show {name} functions", "all functions; add a path to go on")
    program = _program(directory)
    if findings and program and not program.startswith("-"):
        yield Command(
            f"jaxscope try --format json --patch FIX.diff {program}",
            "whether a patch helps: the program before and after it",
        )
