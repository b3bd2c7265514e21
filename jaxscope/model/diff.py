"""Compare two runs of a program, or two compilations of one function.

Functions of both runs are matched by id, or by qualified name if the file or line changed. The compiled
programs of a function are matched by id, or else in the order in which they were first compiled. Seconds are
not compared.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence

import msgspec

from jaxscope.analysis import causes as comparing
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.keys import Facts
from jaxscope.analysis.levels import TRACE
from jaxscope.model import causes, changes, key_index
from jaxscope.model.causes import recompilations, recompiles
from jaxscope.model.changes import Changes
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.model.stable_names import order
from jaxscope.schema.causes import Cause

COUNTS = ("traces", "lowerings", "compiled", "persistent_cache_hits", "fast_path_misses")


class CauseCount(msgspec.Struct, frozen=True):
    """How many recompiles of a function had the same cause in each of two runs.

    Attributes:
      kind: the kind of the cause: ``shape``, ``new_function``, ...
      path: the path of the argument, or the name of the setting; None: the cause has none.
      before, after: the number of recompiles in the first and in the second run.
    """

    kind: str
    path: str | None
    before: int
    after: int


class FunctionDiff(msgspec.Struct, frozen=True):
    """The differences of one function between two runs. ``before`` or ``after`` is None if that run does not
    have the function.

    Attributes:
      counts: the numbers that differ: {name: (before, after)}; the names are ``traces``, ``lowerings``, ...
        (COUNTS).
      causes: the causes that made the function recompile more often in one run than in the other.
      programs: the differences of the programs, one ``Changes`` for each pair of programs that differs, and
        for each program that only one run has.
    """

    before: Function | None
    after: Function | None
    counts: dict[str, tuple[int, int]]
    causes: list[CauseCount]
    programs: list[Changes]

    @property
    def function(self) -> Function:
        either = self.after or self.before
        assert either is not None
        return either

    @property
    def moved(self) -> bool:
        """Return whether the function has different ids in the two runs, because its file, line, wrappers or
        captured functions changed. It was then found in both runs by its name. False if only one run has
        it."""
        return self.before is not None and self.after is not None and self.before.id != self.after.id

    @property
    def differs(self) -> bool:
        return bool(self.before is None or self.after is None or self.counts or self.causes or self.programs)


class RunDiff(msgspec.Struct, frozen=True):
    """The differences between two runs.

    Attributes:
      facts: the properties of the runs that differ (arguments, JAX version, ...): {name: (before, after)}.
      functions: all compared functions, also equal ones; those that differ come first.
    """

    before: Run
    after: Run
    facts: dict[str, tuple[str | None, str | None]]
    functions: list[FunctionDiff]

    @property
    def differs(self) -> bool:
        return bool(self.facts) or any(f.differs for f in self.functions)


class CompilationDiff(msgspec.Struct, frozen=True):
    """The differences between two compilations.

    Attributes:
      causes: the differences of their cache keys; None: one of the keys was not recorded.
      program: the differences of their compiled programs; None: one of the programs is unknown.
      reached: the phases that each of the two completed: ``(["traced", "lowered"], ["traced"])``.
    """

    before: Compilation
    after: Compilation
    causes: list[Cause] | None
    program: Changes | None
    reached: tuple[list[str], list[str]]

    @property
    def differs(self) -> bool:
        if self.causes or self.reached[0] != self.reached[1]:
            return True
        if self.program is None:
            return self.before.program != self.after.program
        return not self.program.same


def runs(a: Run, b: Run, only: tuple[Sequence[Function], Sequence[Function]] | None = None) -> RunDiff:
    """Return the differences between run ``a`` and run ``b``. If ``only`` is given, it has the functions of
    ``a`` and those of ``b`` to compare, and the properties of the runs (arguments, JAX version) are not
    compared."""
    old, new = only or (list(a.functions.values()), list(b.functions.values()))
    found = [_function(a, x, b, y) for x, y in matched(old, new)]
    found.sort(key=lambda f: (not f.differs, not f.function.user, -_seconds(f), f.function.id))
    return RunDiff(a, b, {} if only else _facts(a, b), found)


def compilations(run_a: Run, a: Compilation, run_b: Run, b: Compilation) -> CompilationDiff:
    """Return the differences between compilation ``a`` of ``run_a`` and compilation ``b`` of ``run_b``."""
    p, q = run_a.programs.get(a.program or ""), run_b.programs.get(b.program or "")
    program = None if p is None or q is None else changes.between(run_a, p, run_b, q)
    return CompilationDiff(a, b, keys(run_a, a, run_b, b), program, (a.reached, b.reached))


def matched(
    old: Sequence[Function], new: Sequence[Function]
) -> list[tuple[Function | None, Function | None]]:
    """Return pairs (function of the first run, the same function in the second run) for the functions ``old``
    and ``new`` of the two runs. A function that only one of the runs has is paired with None; these pairs
    come last.

    Functions are the same if their ids are equal, or else their names. Several functions with one name, such
    as lambdas, are matched in their order in the source, and only if both runs have equally many."""
    pairs: list[tuple[Function | None, Function | None]] = []
    left, right = list(old), list(new)

    def named(f: Function) -> Hashable:
        return f.seen.module, f.seen.qualname, tuple(f.seen.wrappers), f.seen.library, f.seen.eager

    keys: tuple[Callable[[Function], Hashable], ...] = (
        lambda f: f.id,
        lambda f: (named(f), tuple(f.seen.captures)),
        named,
        lambda f: (f.seen.qualname, f.seen.library, f.seen.eager),
    )
    for key in keys:
        there = grouped((key(f), f) for f in sorted(right, key=order))
        here = Counter(key(f) for f in left)
        for f in sorted(left, key=order):
            k = key(f)
            # Several functions of one name, such as lambdas, are matched by their order, if both runs have
            # equally many.
            if len(there.get(k, ())) == here[k]:
                g = there[k].pop(0)
                here[k] -= 1
                left.remove(f)
                right.remove(g)
                pairs.append((f, g))
    return [*pairs, *((f, None) for f in left), *((None, g) for g in right)]


def _seconds(f: FunctionDiff) -> float:
    """Return the seconds of tracing, lowering and compiling the function, in the run that took longer."""
    return max(x.seconds for x in (f.before, f.after) if x is not None)


def _function(a: Run, x: Function | None, b: Run, y: Function | None) -> FunctionDiff:
    """Return the differences between ``x``, a function of run ``a``, and ``y``, the same function in run
    ``b``. If ``x`` or ``y`` is None, nothing is compared."""
    if x is None or y is None:
        return FunctionDiff(x, y, {}, [], [])
    counts = {n: (getattr(x, n), getattr(y, n)) for n in COUNTS}
    return FunctionDiff(
        x,
        y,
        {n: pair for n, pair in counts.items() if pair[0] != pair[1]},
        _causes(_caused(a, x), _caused(b, y)),
        _programs(a, x, b, y),
    )


def _caused(run: Run, f: Function) -> Counter[tuple[str, str | None]]:
    """Return {(kind, path) of the decisive cause: number of recompiles of ``f``}."""
    first = (causes.of(run, c)[0] for c in recompiles(f, run))
    return Counter((c.kind, c.path) for c in first)


def _causes(
    before: Counter[tuple[str, str | None]], after: Counter[tuple[str, str | None]]
) -> list[CauseCount]:
    """Return a CauseCount for each cause that has different numbers in ``before`` and ``after``, the results
    of ``_caused`` for the two runs."""
    names = dict.fromkeys([*after, *before])
    return [CauseCount(*n, before[n], after[n]) for n in names if before[n] != after[n]]


def programs_of(run: Run, f: Function) -> list[Program]:
    """Return the programs of ``f`` (compiled, or only lowered), each once, in the order in which they first
    occurred."""
    ids = dict.fromkeys(c.program for c in f.compilations if c.program is not None)
    return [run.programs[i] for i in ids if i in run.programs]


def changed_programs(run: Run, f: Function) -> tuple[int, int] | None:
    """Return the numbers of two successive compilations of ``f`` with different programs, of which the second
    one is a recompile: ``(3, 4)`` stands for ``f#3`` and ``f#4``. Of several such pairs, return the last;
    None if there is none. Compilations without a recorded program are skipped, and those that a transform
    (``jax.grad``) added to a call."""
    again = {c.id for c in recompilations(f, run)}
    numbered = [(n, c) for n, c in run.numbered(f) if c.program in run.programs and not c.continues_a_trace]
    pairs = [
        (a, b) for (a, p), (b, q) in itertools.pairwise(numbered) if p.program != q.program and q.id in again
    ]
    return pairs[-1] if pairs else None


def _programs(a: Run, x: Function, b: Run, y: Function) -> list[Changes]:
    """Return the differences between the programs of ``x``, a function of run ``a``, and of ``y``, the same
    function in run ``b``. Programs are compared in pairs: first those with equal ids, then the remaining ones
    in their order. Equal pairs are left out; programs without a partner are included."""
    old, new = programs_of(a, x), programs_of(b, y)
    there = {q.id: q for q in new}
    alike = [(p, there[p.id]) for p in old if p.id in there]
    both = {p.id for p, _ in alike}
    old, new = [p for p in old if p.id not in both], [p for p in new if p.id not in both]
    n = min(len(old), len(new))
    # Programs with the same texts are equal; the texts need not be read.
    recompiled = [changes.between(a, p, b, q) for p, q in alike if p is not q and p.texts != q.texts]
    return [
        *(found for found in recompiled if not found.same),
        *(changes.between(a, p, b, q) for p, q in zip(old[:n], new[:n], strict=True)),
        *(Changes(p.id, None) for p in old[n:]),
        *(Changes(None, q.id) for q in new[n:]),
    ]


def keys(run_a: Run, a: Compilation, run_b: Run, b: Compilation) -> list[Cause] | None:
    """Return the differences between the cache keys of compilation ``a`` of ``run_a`` and compilation ``b``
    of ``run_b`` (perhaps the same run), one Cause for each. Between two processes, ids of objects, hashes,
    and settings that only one key has are not compared. None if one of the keys was not recorded."""
    if a.key is None or b.key is None:
        return None
    before, after = key_index.facts_of(run_a, a), key_index.facts_of(run_b, b)
    if run_a is not run_b or a.process is not b.process:
        both = before.whole.keys() & after.whole.keys()  # one JAX may lack settings of the other
        before, after = _comparable(before, both), _comparable(after, both)
    seen = b.function.seen
    at = comparing.Circumstances(
        level=TRACE,
        name=seen.name,
        form=seen.form,
        qualname=seen.qualname,
        wrappers=list(seen.wrappers),
        signature=seen.signature,
        eager=seen.eager,
    )
    return comparing.differences(before, after, at)


def _comparable(facts: Facts, both: Collection[str]) -> Facts:
    """Return the flattened cache key ``facts`` without the values that have no meaning in another process:
    ids of objects, and hashes (they depend on PYTHONHASHSEED). Settings that are not in ``both``, the names
    in both keys, are also left out."""
    return Facts(
        facts.leaves,
        {p: msgspec.structs.replace(s, serial=None, hash=None) for p, s in facts.static.items()},
        {
            n: text
            for n, text in facts.whole.items()
            if n not in ("function_object", "context") and (n in both or not n.startswith("context."))
        },
        facts.nodes,
        facts.unread,
    )


def _facts(a: Run, b: Run) -> dict[str, tuple[str | None, str | None]]:
    """Return the properties in which the runs ``a`` and ``b`` differ, as {name: (value in ``a``, value in
    ``b``)}: ``{"jax": ("0.9.0", "0.10.2")}``. A value is None if it is unknown."""
    x, y = _about(a), _about(b)
    return {n: (x[n], y[n]) for n in x if x[n] != y[n]}


def _words(argv: list[str]) -> list[str]:
    """Return the command line ``argv`` of a run without the interpreter and its flags ``-B`` and ``-u``:
    ``["python", "-B", "train.py", "--lr", "1"]`` -> ``["train.py", "--lr", "1"]``."""
    # These flags do not change what the program does, and ``jaxscope run`` may have added them.
    flags = next(
        (n for n, word in enumerate(argv) if n and (word in ("-m", "-c", "-") or word[:1] != "-")), len(argv)
    )
    return [word for word in argv[1:flags] if word not in ("-B", "-u")] + argv[flags:]


def _about(run: Run) -> dict[str, str | None]:
    """Return the properties of ``run`` that are compared with those of another run: {name: value as text}. A
    value is None if it is unknown."""
    started = run.main.started if run.main is not None else None
    devices = Counter(d.kind for d in run.devices)
    ended = run.exited
    return {
        "arguments": " ".join(_words(started.argv)) if started is not None else None,
        "jax": started.jax if started is not None else None,
        "jaxlib": started.jaxlib if started is not None else None,
        "python": started.python if started is not None else None,
        "platform": run.platform,
        "devices": ", ".join(f"{n} x {kind}" for kind, n in sorted(devices.items())) or None,
        "exit_code": None if ended is None or ended.exit_code is None else str(ended.exit_code),
        "processes": str(len(run.processes)),
    }
