"""Report one function in the list of functions: its cost, and a line for each cause of its recompiles."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import causes, line_times
from jaxscope.model.causes import recompilations
from jaxscope.model.function_lookup import has_twin
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanation, explanations, first_and_more
from jaxscope.present.escape import escape
from jaxscope.present.functions import by_site, when_and_where, work
from jaxscope.present.programs import in_short, memory_of, peak_bytes_of
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, count, function_name, seconds, wrapper_name
from jaxscope.report.layout import Line, line
from jaxscope.schema.line_times import CALLING, WAITING

GROUPS = 5  # groups of recompiles shown per function
DIFFERENCES = 3  # lines per group
SITES = 3
LONG = 0.1  # calls with a smaller share of the measured time are not mentioned


def heading(f: Function, places: Places) -> tuple[Span, Span]:
    """Return the name of the function ``f`` and the line that defines it (empty: unknown), as pieces of text.
    ``places`` shortens file names."""
    site = places.function(f)
    return (function_name(f), "bold"), (f"  {site}" if site else "", "dim")


def entry(run: Run, f: Function, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield the lines about one function in the list of functions: its name and seconds, how often it was
    called and compiled, its largest program, and its recompiles. ``places`` shortens file names.
    ``everything`` (``--all``) lists all groups of recompiles, and all causes of the latest recompile in
    each."""
    around = [wrapper_name(w) for w in f.seen.wrappers]
    if f.seen.captures and has_twin(run, f):
        around += [f"({escape(', '.join(f.seen.captures), 60)})"]
    yield line(
        *heading(f, places),
        (f"  {' '.join(around)}" if around else "", "dim"),
        right=(seconds(f.seconds), "bold"),
        hang=2,
    )
    yield line(work(f), indent=4)
    yield from _running(run, f)
    yield from _largest_program(run, f)
    groups = _grouped(run, f)
    shown = groups if everything else groups[:GROUPS]
    for group in sorted(shown, key=lambda g: (g[0].t_ns, g[0].call)):
        yield from _recompiles(run, group, places, everything=everything)
    if len(groups) > len(shown):
        rest = [c for g in groups[len(shown) :] for c in g]
        more = count(_calls(run, rest), "more recompile")
        yield line(
            (f"and {more}, {seconds(sum(c.seconds for c in rest))}", "dim"),
            indent=4,
        )


def _running(run: Run, f: Function) -> Iterator[Line]:
    """Yield a line with the time of the calls of ``f`` and of the waits for their results, if ``f`` is the
    user's and this is known to be at least the share LONG of the measured time."""
    measured = line_times.measured(run)
    if measured is None or not f.user:
        return
    spent = sum(s.seconds for s in line_times.by_line(run) if s.doing in (CALLING, WAITING))
    running = line_times.running_seconds(run, f) if spent >= LONG * measured.seconds else None
    if running is not None and running >= LONG * measured.seconds:
        share = f"{100 * running / measured.seconds:.0f} % of the sampled time"
        yield line(f"calls and waits for their results: about {seconds(running)}, {share}", indent=4)


def _largest_program(run: Run, f: Function) -> Iterator[Line]:
    """Yield a line about the program of ``f`` that takes the most memory. If ``f`` has several programs, the
    line names the compilation that made it."""
    by_program = {c.program: c for c in f.compilations if c.program in run.programs}
    # Programs that were only compiled ahead of time count if there are no others.
    called = [c for c in by_program.values() if run.programs[c.program or ""].called] or [
        *by_program.values()
    ]
    if not called:
        return
    # Programs with unknown memory come last. Of programs with equal memory, the latest is chosen.
    largest = max(called, key=lambda c: (-1 if (n := peak_bytes_of(c)) is None else n, c.t_ns))
    texts = run.texts_of(run.programs[largest.program or ""])
    summary = in_short(texts, memory_of(largest))
    if texts.hlo is not None and texts.hlo.instructions and summary:
        which = f" (compilation #{run.number(largest)})" if len(by_program) > 1 else ""
        yield line((summary + which, "dim"), indent=4)


def _recompiles(run: Run, group: list[Compilation], places: Places, *, everything: bool) -> Iterator[Line]:
    """Yield the lines about a group of recompiles with the same kinds of causes: the decisive cause of the
    latest recompile, then its other causes."""
    numbers = {id(c): n for n, c in run.numbered(group[0].function)}
    last = group[-1]
    clauses = explanations(run, last)
    if len({*map(explanation, (causes.of(run, c)[0] for c in group))}) > 1:
        clauses[0] = f"most recently: {clauses[0]}"
    if not everything:
        clauses = first_and_more(clauses, DIFFERENCES)
    if len(group) == 1:
        mark = f"#{numbers[id(last)]}"
        around = when_and_where(last, places)
    else:
        calls = _calls(run, group)
        mark = f"{f'{calls:,}x ' if calls > 1 else ''}#{numbers[id(group[0])]}…#{numbers[id(last)]}"
        sites = [s for s, _, _ in by_site(group, places)] or [places.frame(last.site) or "?"]
        more = f" and {count(len(sites) - 1, 'more line')}" if len(sites) > 1 else ""
        steps = [c.step for c in group if c.step is not None]
        when = f"steps {min(steps):,} to {max(steps):,}, " if steps else ""
        around = f"{when}{seconds(sum(c.seconds for c in group))} together, {sites[0]}{more}"
    hang = len(mark) + 2
    yield line((mark, "warning"), "  ", clauses[0], (f"  ({around})", "dim"), indent=4, hang=hang)
    for clause in clauses[1:]:
        yield line(clause, indent=4 + hang, hang=2)


def _calls(run: Run, group: list[Compilation]) -> int:
    """Return how many calls led to the compilations ``group`` of one function. A call under a transform
    (``jax.grad``) may lead to several."""
    of_calls = causes.traced_by(group[0].function, run)
    return len({of_calls.get(c.id, c.id) for c in group})


def _grouped(run: Run, f: Function) -> list[list[Compilation]]:
    """Return the recompiles of a function in groups with equal kinds of causes, arguments and phases, so that
    each group is printed once. The group with the most seconds comes first."""
    groups: dict[object, list[Compilation]] = {}
    of_calls, keys = causes.traced_by(f, run), dict[str, object]()
    # A call under a transform (``jax.grad``) may compile several programs: all are in the group of its trace.
    for c in recompilations(f, run):
        where = tuple(
            (cause.kind, cause.detail if cause.kind == "unknown" else cause.path)
            for cause in causes.of(run, c)
        )
        keys[c.id] = keys.get(of_calls.get(c.id, ""), (where, tuple(c.reached)))
        groups.setdefault(keys[c.id], []).append(c)
    return sorted(groups.values(), key=lambda g: (-sum(c.seconds for c in g), g[0].t_ns))
