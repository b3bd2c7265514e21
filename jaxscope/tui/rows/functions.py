"""Format three tables: the functions, the compilations of one function, and the cache key of a call compared
with an earlier key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from jaxscope.model import diff, key_index
from jaxscope.model.causes import compared
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present.causes import explanation, explanations
from jaxscope.present.functions import known_cause, nearest_name, phases, unusual
from jaxscope.present.keys import changed, key_rows
from jaxscope.present.runs import compilation_name
from jaxscope.present.text import Places, count, function_name, seconds
from jaxscope.tui.cells import Cell, Column, Part, number_column


def used(f: Function) -> bool:
    """Return whether the table lists ``f``: at least one call of it was recorded or counted."""
    return bool(f.compilations or f.calls or f.fast_path_misses)


def functions(run: Run, starred: Collection[str]) -> list[Function]:
    """Return the functions to list. Those that the user marked (``starred``, ids) come first, then the user's
    own before others; the slowest come first."""
    found = [f for f in run.functions.values() if used(f)]
    return sorted(found, key=lambda f: (f.id not in starred, not f.user, -f.seconds, -f.compiled, f.id))


def function_columns(run: Run, starred: Collection[str], places: Places) -> list[Column[Function]]:
    def name(f: Function, _: int) -> Cell:
        star: list[Part] = [("★ ", "warning")] if f.id in starred else []
        return [*star, (function_name(f), "bold" if f.user else "dim")]

    def kind(f: Function) -> str:
        return "eager" if f.seen.eager else "library" if f.seen.library else places.function(f) or "?"

    def cause(f: Function, _: int) -> Cell:
        last = next((c for c in reversed(f.compilations) if not c.only_missed), None)
        if last is None:
            return [("fast-path misses only", "dim")]
        words = known_cause(run, last)
        return [(words, "dim" if words in ("first", "…") else "retrace")]

    calls_known = any(f.calls is not None for f in run.functions.values())
    calls: Column[Function] = number_column(
        "calls", lambda f: f.calls, lambda n: "" if n is None else f"{n:,}", 7, wide=100
    )
    return [
        Column("function", name, order=function_name),
        Column(
            "site",
            lambda f, _: [(kind(f), "dim")],
            18,
            order=kind,
            unknown="the source line of the function is unknown",
        ),
        number_column("traces", lambda f: f.traces, _number, 6),
        number_column("compiles", lambda f: f.compiled, _number, 8, wide=90),
        *([calls] if calls_known else []),
        number_column("time", lambda f: f.seconds, lambda s: [(seconds(s), "bold")], 7),
        Column("last cause", cause),
    ]


def _number(n: int) -> Cell:
    return [(f"{n:,}", "retrace" if n > 1 else "")]


class Attempt(NamedTuple):
    """One row of the table of compilations: a call of a function that missed a cache of JAX.

    Attributes:
      number: its number among the compilations of the function, from 1; None: the call missed only JAX's fast
        path (the C++ cache of jit), and nothing was compiled.
    """

    number: int | None
    compilation: Compilation


def attempts(run: Run, f: Function) -> list[Attempt]:
    """Return the compilations of ``f`` in order of time, then the first hundred calls that missed only JAX's
    fast path (the C++ cache of jit), so that nothing was compiled."""
    slow = [Attempt(None, c) for c in f.compilations if c.only_missed]
    return [*(Attempt(n, c) for n, c in run.numbered(f)), *slow[:100]]


def attempt_columns(run: Run, all_attempts: Sequence[Attempt]) -> list[Column[Attempt]]:
    """Return the columns of the table of compilations. There is a column of steps only if some steps are
    known."""
    steps_known = any(a.compilation.step is not None for a in all_attempts)

    def cause(a: Attempt, _: int) -> Cell:
        words = known_cause(run, a.compilation)
        how = unusual(a.compilation)
        style = "dim" if words in ("first", "…") else "retrace"
        return [(words, style), (f"  {how}" if how else "", "error" if a.compilation.failed else "dim")]

    return [
        Column("#", lambda a, _: f"#{a.number}" if a.number else "·", 5, order=lambda a: a.number),
        *(
            [
                Column[Attempt](
                    "step",
                    lambda a, _: "" if a.compilation.step is None else f"{a.compilation.step:,}",
                    6,
                    right=True,
                    order=lambda a: a.compilation.step,
                )
            ]
            if steps_known
            else []
        ),
        number_column("time", lambda a: a.compilation.seconds, seconds, 7),
        Column("cause", cause, order=lambda a: known_cause(run, a.compilation)),
    ]


class KeyRow(NamedTuple):
    """One row of the table that compares two cache keys: a part of a key, for example an argument.

    Attributes:
      before: its text in the earlier key; None: the earlier key has no such part, or there is no earlier key.
      now: its text in this key; None: this key has no such part.
      changed: whether the two keys differ in this part.
    """

    name: str
    before: str | None
    now: str | None
    changed: bool


def key_of(run: Run, c: Compilation, against: Compilation | None = None) -> list[KeyRow]:
    """Return the parts of the cache key of ``c`` beside those of an earlier key, changed ones first. The
    earlier key is that of the compilation ``against``, or if this is None or has no recorded key, the nearest
    (most similar) earlier key of the function. Empty if the key of ``c`` was not recorded."""
    comparison = compared(run, c)
    if comparison is None:
        return []
    now = key_rows(comparison.facts)
    was = key_rows(comparison.nearest_facts) if comparison.nearest_facts is not None else None
    if against is not None and against.key is not None:
        was = key_rows(key_index.facts_of(run, against))
    if was is None:
        return [KeyRow(name, None, text, False) for name, text in now.items()]
    names = dict.fromkeys([*now, *was])
    rows = [KeyRow(name, was.get(name), now.get(name), changed(name, was, now)) for name in names]
    # A tree is long; if it differs, the arguments show the difference better.
    return sorted(rows, key=lambda r: (not r.changed, r.name == "tree", r.name.startswith("setting ")))


def key_columns(*, compared: bool, before_title: str = "nearest earlier key") -> list[Column[KeyRow]]:
    """Return the columns of the table of a cache key. With ``compared``, an earlier key is beside it, headed
    ``before_title``."""

    def name(r: KeyRow, _: int) -> Cell:
        return [("≠ " if r.changed else "  ", "retrace"), (r.name, "retrace" if r.changed else "")]

    def before(r: KeyRow, _: int) -> Cell:
        return [(r.before if r.before is not None else "absent", "before" if r.changed else "dim")]

    def now(r: KeyRow, _: int) -> Cell:
        if compared and not r.changed:
            return [("same", "dim")]
        return [(r.now if r.now is not None else "absent", "after" if r.changed else "")]

    columns = [Column("part of the key", name)]
    if compared:
        columns.append(Column(before_title, before))
    return [*columns, Column("this key", now)]


def reasons(run: Run, c: Compilation, against: Compilation | None = None) -> list[Part]:
    """Return a text that says why ``c`` compiled, and with which earlier call it is compared: with
    ``against``, or if this is None, with the call that has the nearest (most similar) cache key. At most four
    causes are named."""
    comparison = compared(run, c)
    if against is not None:
        causes = diff.keys(run, against, run, c)
        words = [explanation(cause) for cause in causes or ()]
        otherwise = "one of the two keys was not recorded" if causes is None else "the two keys are equal"
        return [
            (f"compared with {named(run, against)}: ", "dim"),
            ("; ".join(words[:4]) or otherwise, "retrace" if words else ""),
        ]
    clauses = explanations(run, c)
    made: list[Part] = []
    if comparison is not None and comparison.nearest is not None:
        made.append((f"compared with {nearest_name(run, comparison.nearest)}: ", "dim"))
    made.append((clauses[0], "retrace" if comparison is None or comparison.nearest is not None else ""))
    for clause in clauses[1:4]:
        made += ["; ", clause]
    if len(clauses) > 4:
        made.append((f"; and {count(len(clauses) - 4, 'more cause')}", "dim"))
    return made


def named(run: Run, c: Compilation) -> str:
    """Return the name of the call ``c``: ``train_step #2``, or ``train_step, a fast-path miss`` if it missed
    only JAX's fast path (the C++ cache of jit) and compiled nothing."""
    return compilation_name(run, c) + ("" if run.number(c) else ", a fast-path miss")


class Other(NamedTuple):
    """An entry of the list of compilations with which another one can be compared. ``name`` is its displayed
    name. If ``compilation`` is None, the entry stands for the nearest (most similar) earlier cache key."""

    compilation: Compilation | None
    name: str


def others(run: Run, c: Compilation, *, same: bool) -> list[Other]:
    """Return the compilations with which ``c`` can be compared: those of the same function, latest first, and
    then those of the user's other functions, unless ``same`` is set."""
    own = [x for _, x in reversed(run.numbered(c.function))]
    rest = (
        []
        if same
        else [
            x
            for f in run.functions.values()
            if f.user and f is not c.function
            for _, x in reversed(run.numbered(f))
        ]
    )
    return [Other(x, named(run, x)) for x in [*own, *rest] if x is not c]


def other_columns(run: Run) -> list[Column[Other]]:
    def cause(o: Other, _: int) -> Cell:
        return "" if o.compilation is None else known_cause(run, o.compilation)

    def step(o: Other, _: int) -> Cell:
        n = o.compilation.step if o.compilation is not None else None
        return "" if n is None else f"step {n:,}"

    return [
        Column("compilation", lambda o, _: [(o.name, "bold")]),
        Column("when", step, 12),
        Column("cause", cause),
        Column(
            "time",
            lambda o, _: seconds(o.compilation.seconds) if o.compilation is not None else "",
            8,
            right=True,
        ),
    ]


def where(c: Compilation, places: Places) -> str:
    """Return the line of the call ``c``, its step and the seconds of its phases, as far as known:
    ``train.py:88 in main · step 376 · trace 0.20 s``. ``places`` shortens file names."""
    parts = []
    if site := places.inside(c.site):
        parts.append(site)
    if c.step is not None:
        parts.append(f"step {c.step:,}")
    return " · ".join([*parts, *phases(c)])
