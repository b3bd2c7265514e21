"""Write facts about a function and about its compilations as text."""

from __future__ import annotations

from collections.abc import Sequence

from jaxscope.analysis.levels import COMPILE, FAST_PATH, LOWER, TRACE
from jaxscope.model import causes, payers
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations
from jaxscope.present.runs import compilation_name, verb
from jaxscope.present.text import Places, count, seconds

FEW = 9  # fast-path misses: each costs far less than a millisecond
UNKNOWN_YET = "…"  # in place of a cause that is not known yet
_ENTRIES = {"aot": "ahead of time", "transform": "under a transform", "nested": "inside another trace"}


def work(f: Function) -> str:
    """Return how often and how long the function ``f`` was traced, lowered and compiled: ``traced 4x in 2.1 s
    · lowered 4x in 0.40 s · compiled 4x in 25.6 s · 381 calls``; ``never compiled`` if there is nothing to
    count.

    The text also has the loads from the persistent cache, the failures, and the calls that missed only JAX's
    fast path (the C++ cache of jit), if these are more than FEW.
    """
    parts = []
    for word, times, spent in (
        ("traced", f.traces, f.trace_seconds),
        ("lowered", f.lowerings, f.lower_seconds),
        ("compiled", f.compiled, f.compile_seconds),
    ):
        if times:
            parts.append(f"{word} {times:,}x" + (f" in {seconds(spent)}" if spent else ""))
    if f.persistent_cache_hits:
        parts[-1] += f" ({f.persistent_cache_hits:,} from the persistent cache)"
    failed = sum(c.failed is not None for c in f.compilations)
    if failed:
        parts.append(count(failed, "failure"))
    if f.fast_path_misses > FEW:
        parts.append(count(f.fast_path_misses, "fast-path miss", "fast-path misses"))
    if f.calls is not None:
        parts.append(count(f.calls, "call"))
    return " · ".join(parts) or "never compiled"


def outcome(f: Function) -> str:
    """Return how often the function ``f`` was traced, compiled and called: ``4 traces, 4 compilations, 381
    calls``. If it was neither traced nor compiled and its calls are not counted, return ``work(f)``, such as
    ``never compiled``."""
    parts = []
    if f.traces:
        parts.append(count(f.traces, "trace"))
    if f.compiled:
        parts.append(count(f.compiled, "compilation"))
    if f.persistent_cache_hits:
        parts.append(f"{f.persistent_cache_hits:,} from the persistent cache")
    if f.calls is not None:
        parts.append(count(f.calls, "call"))
    return ", ".join(parts) or work(f)


def when_and_where(c: Compilation, places: Places) -> str:
    """Return when and where the call ``c`` happened, and how long it took to trace, lower and compile: ``step
    376, 7.0 s, train.py:88``. If the call was unusual, the text says so (see ``unusual``): ``lowered, not
    traced``. ``places`` shortens file names."""
    parts = [] if c.step is None else [f"step {c.step:,}" if c.step else "before the first step"]
    how = unusual(c)
    if how:
        parts.append(how)
    spent = c.seconds
    if spent:
        parts.append(seconds(spent))
    site = places.frame(c.site)
    if site:
        parts.append(site)
    return ", ".join(parts)


def unusual(c: Compilation) -> str:
    """Return what is unusual about the call ``c``: how it was called, which phases it reached, or that its
    program came from the persistent cache. Example: ``lowered, not traced``. Empty if nothing is unusual."""
    parts = []
    if c.entry in _ENTRIES:
        parts.append(_ENTRIES[c.entry])
    reached = c.reached
    if c.only_missed:
        parts.append("fast-path miss")
    elif c.failed is not None and "compiled" not in reached:
        parts.append(f"{verb(c.failed.phase)} failed")
    elif not reached:
        parts.append("unfinished")
    elif "traced" not in reached:
        parts.append("compiled, not traced" if reached == ["compiled"] else "lowered, not traced")
    elif "compiled" not in reached and c.entry != "nested":
        parts.append("unfinished" if c.phase is not None else "not compiled")
    if c.persistent_hit:
        parts.append("from the persistent cache")
    return ", ".join(parts)


def in_a_line(run: Run, c: Compilation, places: Places, *, cause: bool) -> str:
    """Return the name of the call ``c``, its step (if known), its seconds and its line: ``train_step #2, step
    31, 3.7 s (train.py:88)``. With ``cause``, also its decisive cause: ``train_step #2, step 31, 3.7 s:
    batch['x'] changed from f32[64] to f32[29] (train.py:88)``. ``places`` shortens file names."""
    step = "" if c.step is None else f", step {c.step:,}"
    where = places.frame(c.site)
    why = f": {explanations(run, c)[0]}" if cause else ""
    return f"{compilation_name(run, c)}{step}, {seconds(c.seconds)}{why}" + (f" ({where})" if where else "")


MISSED = {
    TRACE: "missed the trace cache",
    LOWER: "missed the lowering cache",
    COMPILE: "missed the executable cache",
    FAST_PATH: "missed only the fast path",
}  # by the first cache that missed (``analysis.levels.LEVELS``)


def by_site(compilations: Sequence[Compilation], places: Places) -> list[tuple[str, float, int]]:
    """Return (line, seconds, number of calls) for each user's line whose calls compiled something:
    ``("train.py:88", 7.0, 2)``. The most seconds come first. Unknown lines are one entry, ``an unknown
    line``.

    Args:
      compilations: the calls; those that compiled nothing are left out.
      places: shortens file names.
    """
    spent: dict[str, tuple[float, int]] = {}
    for c in compilations:
        if c.reached_phases & 4:
            site = places.frame(payers.line_of(c)) or "an unknown line"
            before, n = spent.get(site, (0.0, 0))
            spent[site] = before + c.seconds, n + 1
    return sorted(((s, t, n) for s, (t, n) in spent.items()), key=lambda e: (-e[1], e[0]))


def phases(c: Compilation) -> list[str]:
    """Return the phases of the call ``c`` whose duration is known: ``["trace 0.20 s", "lower 41 ms"]``."""
    each = ("trace", c.trace_seconds), ("lower", c.lower_seconds), ("compile", c.compile_seconds)
    return [f"{phase} {seconds(spent)}" for phase, spent in each if spent is not None]


def nearest_name(run: Run, nearest: Compilation) -> str:
    """Return a name for ``nearest``, the earlier call with which a call is compared: ``#2``, its number among
    the compilations of the function; ``an earlier fast-path miss`` if it has no number."""
    n = run.number(nearest)
    return f"#{n}" if n else "an earlier fast-path miss"


def known_cause(run: Run, c: Compilation) -> str:
    """Return the decisive cause of the cache miss of ``c`` in a few words: ``shape batch['ids']``. Return
    UNKNOWN_YET (``…``) if jaxscope has not yet compared the cache key of ``c`` with earlier keys: this
    function does not start a comparison."""
    if c.key is not None and c.id not in run.comparisons:
        return UNKNOWN_YET
    cause = causes.of(run, c)[0]
    kind = cause.kind.replace("_", " ")
    return f"{kind} {cause.path}" if cause.path else kind
