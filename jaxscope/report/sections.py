"""Report the run as a whole: how it ended, the seconds spent recompiling, what was not recorded.

Most functions yield lines, or nothing if there is nothing to report. Both the text report and the HTML report
use these functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import causes, payers
from jaxscope.model.causes import recompilations
from jaxscope.model.load import state
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import cause_count, explanations
from jaxscope.present.escape import escape
from jaxscope.present.failures import donations, uncaught
from jaxscope.present.functions import by_site, when_and_where, work
from jaxscope.present.runs import compilation_name, gaps, unfinished
from jaxscope.present.text import Places, count, function_name, listed, seconds
from jaxscope.report import function_summary
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.rules import line_times, registry
from jaxscope.schema.libraries import keeps_callbacks, no_memory

OUTSIDE = "Outside your jitted functions"
LONG = 0.1  # compilations that took a smaller share of the compile time are not named
NAMED = 4  # functions that are named together
# CACHE and EQUINOX are advice to the user: code that switches on JAX's persistent compilation cache, and a
# setting of equinox. The cache keeps programs that take at least CACHED_FROM seconds to compile (the default
# of jax_persistent_cache_min_compile_time_secs).
CACHE = 'jax.config.update("jax_compilation_cache_dir", DIRECTORY)'
EQUINOX = "the environment variable EQX_ON_ERROR=nan"
CACHED_FROM = 1.0


def death(run: Run, places: Places, *, out_of_memory: bool = False) -> Iterator[Line]:
    """Yield lines about the exception that ended the program. If the cause is a deleted array, they also name
    the call that may have donated the array.

    Args:
      places: shortens file names.
      out_of_memory: whether to yield lines about an out-of-memory error, too. The full report sets False,
        because it has a section about this error.
    """
    main = run.main
    died = main.died if main is not None else None
    if died is None or (no_memory(died.message) and not out_of_memory):
        return
    where = places.frame(died.stack[0]) if died.stack else None
    yield line(*uncaught(died), (f"  ({where})" if where else "", "path"), hang=2)
    for spans in donations(run, died.message, places):
        yield line(*spans, indent=2, hang=2)


def no_problems(run: Run) -> Line:
    """Return the line for a report without findings: ``No problems found.`` if the program is known to have
    ended without an exception, else ``No problems found so far.``"""
    died = run.main is not None and run.main.died is not None
    ended = not died and (run.exited is not None or (run.main is not None and run.main.ended is not None))
    return line("No problems found." if ended else "No problems found so far.")


def recompile_seconds(run: Run) -> Iterator[Line]:
    """Yield at most two lines with the seconds spent recompiling: one for the user's functions, by kind of
    cause (``2 shape changes, 1 static value change``), and one for operations outside jit and functions of
    libraries."""
    spent: dict[str, float] = {}
    calls: dict[str, set[str]] = {}
    for f in run.functions.values():
        for c in recompilations(f, run) if f.user else ():
            kind = causes.of(run, c)[0].kind
            spent[kind] = spent.get(kind, 0.0) + c.seconds
            calls.setdefault(kind, set()).add(causes.traced_by(f, run).get(c.id, c.id))
    if spent:
        ranking = sorted(spent.items(), key=lambda item: (-item[1], item[0]))
        several = len(ranking) > 1
        by_cause = ", ".join(
            cause_count(kind, len(calls[kind])) + (f" {seconds(t)}" if several else "") for kind, t in ranking
        )
        total = sum(spent.values())
        yield line(
            (seconds(total), "bold"), f" spent recompiling{_in_parallel(run, total)} ({by_cause})", hang=2
        )
    outside = payers.recompiled_outside(run)
    if outside:
        again = sum(c.seconds for c in outside)
        total = sum(f.compiled for f in run.functions.values() if not f.user)
        yield line(
            (seconds(again), "bold"),
            f" spent recompiling {OUTSIDE.lower()}{_in_parallel(run, again)} ({len(outside):,} of"
            f" {count(total, 'compilation')} there)",
            hang=2,
        )


def _in_parallel(run: Run, spent: float) -> str:
    """Return ``, some of it in parallel`` if ``spent`` seconds are more than the wall time in which the run
    compiled, because threads or processes compiled at the same time. Otherwise return an empty text."""
    elapsed = run.compiling_seconds
    return ", some of it in parallel" if elapsed is not None and spent > elapsed else ""


def without_advice(run: Run, places: Places) -> Iterator[Line]:
    """Yield text about each source line whose compilations took at least a tenth of the compile time although
    no finding is about it, and advice on JAX's compilation cache. Yield nothing if there is no such source
    line. ``places`` shortens file names."""
    found = without_finding(run)
    parts = [
        f"{names}: {cost}" + (f" ({where})" if (where := places.frame(entry.line)) else "")
        for entry, names, cost in found
    ]
    if parts:
        first = not any(entry.again for entry, *_ in found)
        yield BLANK
        yield line(
            (f"Long {'first ' if first else ''}compilations that no finding is about: ", "dim"),
            "; ".join(parts),
            hang=2,
        )
        for words, code in cache_advice(run):
            yield line((f"{words}: ", "dim"), code, indent=2, hang=2)


def cache_advice(run: Run) -> list[tuple[str, str]]:
    """Return advice on JAX's persistent compilation cache, each as (the benefit in words, what to write): how
    to switch the cache on, and how to avoid the error checks of Equinox, which call Python, so that JAX
    stores no program with them. Each advice needs programs that took CACHED_FROM seconds (1) to compile, and
    together at least a tenth of all seconds of tracing, lowering and compiling."""
    calls = [c for c in run.compilations.values() if c.compiled is not None and c.entry != "nested"]
    long = [c for c in calls if (c.compile_seconds or 0.0) >= CACHED_FROM]
    least = LONG * payers.total_seconds(run)
    by_library = {c.id: library for c in long if (library := _calls_python(run, c)) is not None}
    stored = sum(c.compile_seconds or 0.0 for c in long if c.id not in by_library)
    checks = sum(c.compile_seconds or 0.0 for c in long if by_library.get(c.id) == "equinox")
    off = all(c.compiled is None or c.compiled.persistent_cache == "off" for c in calls)
    found = []
    if off and stored and stored >= least:
        found.append((f"JAX's compilation cache would save up to {seconds(stored)} in the next run", CACHE))
    if checks and checks >= least:
        also = "more " if found else ""
        words = (
            f"JAX's compilation cache would save up to {seconds(checks)} {also}in the next run if equinox's"
            " error checks gave NaN instead of calling Python (JAX before 0.11 does not store programs that"
            " call Python)"
        )
        found.append((words, EQUINOX if found or not off else f"{EQUINOX}, and {CACHE}"))
    return found


def _calls_python(run: Run, c: Compilation) -> str | None:
    """Return the package that makes the program of ``c`` call Python functions on the host, so that JAX does
    not store the program in its persistent cache; empty: the user's code or JAX. None if the program makes no
    such call, its text is unknown, or this JAX stores it."""
    version = c.process.started.jax if c.process.started is not None else None
    if keeps_callbacks(version) is not False:
        return None
    read = run.stablehlo(c)
    calls = [b for b in read.callbacks if b.kind not in ("infeed", "outfeed")] if read is not None else []
    return (calls[0].library or "") if calls else None


def without_finding(run: Run) -> list[tuple[payers.Unadvised, str, str]]:
    """Return the source lines whose compilations took at least a tenth of the compile time although no
    finding is about them, the longest time first.

    Each entry is (the line with its compilations, names of the compiled functions as text, cost as text:
    ``2.1 s, 0.4 s of it recompiling``).
    """
    total = payers.total_seconds(run)
    entries = payers.unadvised(run, registry.findings(run))
    found = []
    for entry in entries:
        if entry.seconds < LONG * total or not total:
            continue
        often = Counter(map(function_name, entry.functions))
        names = [f"{name} (x{n})" if n > 1 else name for name, n in often.items()]
        if entry.largest is not None:
            names.append(function_name(entry.largest))
        if others := entry.operations - (entry.largest is not None):
            more = "more compilation" if entry.largest is not None else "compilation"
            names.append(f"{count(others, more)} {OUTSIDE.lower()}")
        again = f", {seconds(entry.again)} of it recompiling" if entry.again >= LONG * entry.seconds else ""
        cost = f"{seconds(entry.seconds)}{again}"
        found.append((entry, listed(names, NAMED), cost))
    return found


def each_step(run: Run, places: Places) -> Iterator[Line]:
    """Yield a text for each of a few loops that run operations outside jit: the least number of jitted
    programs and of such operations in one iteration. Loops with a finding (rule JX605) are left out.
    ``places`` shortens file names."""
    found = {f.subject for f in registry.findings(run)}
    steps = [s for s in payers.steps(run) if line_times.subject("JX605", s.loop) not in found]
    for n, step in enumerate(steps):
        if not n:
            yield BLANK
        yield line(
            f"Each iteration of the loop at {places.frame(step.loop)} runs"
            f" at least {count(step.programs, 'jitted program')} and"
            f" {count(step.operations, 'operation')} outside jit, most of them at"
            f" {'line' if len(step.lines) == 1 else 'lines'} {listed([*map(str, step.lines)])}.",
            hang=2,
        )


def inside_others(f: Function) -> bool:
    """Return whether ``f`` was only traced during traces of other functions. Its time is then part of the
    time of those functions."""
    return bool(f.compilations) and all(c.entry == "nested" for c in f.compilations)


def ranked(run: Run, include: Callable[[Function], bool]) -> list[Function]:
    """Return the functions of ``run`` that were called or compiled, those with the longest compilations
    first. ``include(f)`` says whether to include the function ``f``."""
    active = [
        f for f in run.functions.values() if include(f) and (f.compilations or f.calls or f.fast_path_misses)
    ]
    return sorted(active, key=lambda f: (-f.seconds, -f.compiled, f.id))


def in_progress(run: Run, directory: RunDir | None, places: Places) -> Iterator[Line]:
    """Yield lines about the traces, lowerings and compilations whose end is not recorded. ``directory`` is
    the directory of the run, which shows whether the program still runs; None: unknown. ``places`` shortens
    file names."""
    running = directory is not None and state(run, directory) == "running"
    lines = unfinished(run, places, running=running)
    if lines:
        yield BLANK
    for spans in lines:
        yield line(*spans, hang=2)


def not_yours(run: Run, places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield lines about what was compiled outside the user's functions (operations outside jit, functions of
    libraries), and which of the user's lines caused it. ``everything`` (``--all``) adds a line for each
    operation or function. ``places`` shortens file names."""
    functions = ranked(run, lambda f: not f.user)
    compilations = [c for f in functions for c in f.compilations]
    if not compilations:
        return
    kinds = Counter(f.seen.eager for f in functions)
    what = [count(kinds[True], "operation")] if kinds[True] else []
    what += [count(kinds[False], "library function")] if kinds[False] else []
    sites = by_site(compilations, places)
    shown = [f"{s} ({n:,}x, {seconds(t)})" for s, t, n in sites[: function_summary.SITES]]
    if len(sites) > len(shown):
        shown.append(count(len(sites) - len(shown), "more line"))
    yield line(
        (OUTSIDE, "title"),
        f"  {count(sum(f.compiled for f in functions), 'compilation')} of {listed(what)}",
        (f"  {listed(shown)}" if shown else "", "dim"),
        right=(seconds(sum(f.seconds for f in functions)), "bold"),
        hang=4,
    )
    yield from slowest_recompile(run, functions, places, indent=4)
    for f in functions if everything else ():
        sites = by_site(f.compilations, places)[: function_summary.SITES]
        yield line(
            function_name(f),
            (f"  {work(f)}", "dim"),
            (f"  at {', '.join(site for site, _, _ in sites)}", "dim"),
            indent=4,
            hang=4,
        )


def slowest_recompile(run: Run, functions: list[Function], places: Places, *, indent: int) -> Iterator[Line]:
    """Yield a line about the slowest recompile of ``functions``, if it took at least a tenth of the compile
    time. A recompile is a compilation of what the same source line had compiled before.

    Args:
      functions: functions that are not the user's: operations outside jit, functions of libraries.
      places: shortens file names.
      indent: the number of spaces before the line.
    """
    least = LONG * payers.total_seconds(run)
    ids = {f.id for f in functions}
    slow = [c for c in payers.recompiled_outside(run) if c.function.id in ids and c.seconds >= least > 0]
    if not slow:
        return
    c = max(slow, key=lambda c: c.seconds)
    yield line(
        ("costliest recompile outside your jitted functions: ", "warning"),
        (compilation_name(run, c), "name"),
        f"  {explanations(run, c)[0]}",
        (f"  ({when_and_where(c, places)})", "dim"),
        indent=indent,
        hang=2,
    )


def nothing_recorded(run: Run, directory: RunDir | None) -> str:
    """Return a sentence about why no process recorded anything. ``directory`` is the directory of the run;
    None: unknown."""
    if directory is not None and not directory.events.is_dir():
        return f"The run is incomplete: it has no {escape(directory.events.name)}/ directory."
    if run.exited is not None and run.exited.exit_code:
        return "No process recorded anything: did the program fail before it imported jax?"
    return "No process recorded anything: did the program import jax?"


def blind_spots(run: Run, directory: RunDir | None) -> Iterator[Line]:
    """Yield lines about what the report may lack: parts of the recording that did not work, and logs that
    could not be read. Yield nothing if everything is complete. ``directory`` is the directory of the run;
    None: unknown."""
    schema = directory.meta.get("schema", store.SCHEMA) if directory is not None else store.SCHEMA
    other_schema = schema != store.SCHEMA
    if not (run.degraded or run.unknown or run.damaged or run.unreadable or other_schema):
        return
    yield BLANK
    if other_schema:
        yield line(
            ("Not understood  ", "warning"),
            f"the run has schema {escape(str(schema), 40)}, but this jaxscope reads schema {store.SCHEMA}:"
            " some of it may be misread",
            hang=4,
        )
    for spans in gaps(run):
        yield line(*spans, hang=4)
    if any(lost.seam not in ("stderr", "ranks") for lost in run.degraded):
        yield line(("run jaxscope doctor to see what this affects", "dim"), indent=4)
