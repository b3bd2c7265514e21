"""Find the causes of each compilation of a run by comparing its key with the nearest earlier key.

JAX's caches live in one process, so only keys of the same process are compared.
"""

from __future__ import annotations

from jaxscope.analysis import causes
from jaxscope.analysis.keys import Facts
from jaxscope.analysis.levels import FAST_PATH, TRACE, nearest
from jaxscope.model import key_index, sources
from jaxscope.model.function_lookup import number_of
from jaxscope.model.records import Comparison, Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause
from jaxscope.schema.keys import Frame, Key

# Earlier keys to compare with, the latest first: the cost must not be quadratic in a function's keys.
LOOK_BACK = 256
LOOK_FURTHER = 32  # keys before those with the same shapes or static values
# Entries of these two kinds share caches; traces under a transform or inside another trace do not.
_DIRECT = frozenset({"call", "aot"})


def compared(run: Run, c: Compilation) -> Comparison | None:
    """Compare ``c`` with the nearest earlier key; None: its key was not recorded.

    The result for a finished call is cached, because earlier calls no longer change.
    """
    level = c.level
    known = run.comparisons.get(c.id)
    if known is not None and known.level == level:
        return known
    if c.key is None:
        return None
    facts = key_index.facts_of(run, c)
    at = _nearest(run, c, c.key, facts, level)
    if at is None:
        found = Comparison(level, facts, None, None, [causes.first(level)])
    else:
        index = key_index.of(run, c)
        before, was = index.compilations[at], index.facts[at]
        around = _circumstances(run, c, before, level)
        found = Comparison(level, facts, before, was, causes.between(was, facts, around))
    run.comparisons[c.id] = found
    return found


def of(run: Run, c: Compilation) -> list[Cause]:
    """Return the causes of ``c``, the decisive one first; never empty."""
    comparison = compared(run, c)
    if comparison is not None:
        return comparison.causes
    if not any(o.process is c.process and o.call < c.call for o in c.function.compilations):
        return [causes.first(c.level)]
    return [causes.unread_key(c.level)]


def further_back(run: Run, c: Compilation) -> int | None:
    """Return the number of the compilation that ``c`` is compared with; None if it is the one right before
    ``c``."""
    comparison = compared(run, c)
    before = comparison.nearest if comparison is not None else None
    if before is None:
        return None
    between = any(
        before.call < o.call < c.call and o.process is c.process and o.reached_phases and o.entry != "nested"
        for o in c.function.compilations
    )
    return number_of(run, before) if between else None


def recompiled(c: Compilation) -> bool:
    """Return whether ``c`` is one of its function's ``recompilations``, or would be if its trace had not
    failed."""
    if c.reached == ["fast_path"] or c.entry in ("aot", "nested"):
        return False
    caches, key, earlier, done = _served_by(c), _transform_key(c), False, 0
    for other in c.function.compilations:
        if other is c:
            break
        if not other.reached_phases or other.entry == "nested" or _served_by(other) != caches:
            continue
        if key is not None and _transform_key(other) == key:
            return False
        earlier = True
        done |= other.reached_phases
        if key is None and not _only_goes_on(c, done):
            return True
    return earlier and not _only_goes_on(c, done)


def _only_goes_on(c: Compilation, done: int) -> bool:
    """Return whether ``c`` has no phase in common with ``done``, the phases of the compilations before it.

    ``f.eval_shape(x)`` traces, ``f.lower(x)`` also lowers; the call after them does what is left, nothing
    twice.
    """
    return c.reached_phases != 0 and c.reached_phases & done == 0


def _failed_trace(c: Compilation) -> bool:
    """Return whether the trace raised an exception, so that nothing was compiled."""
    return c.failed is not None and not c.reached_phases


@cached_until_changed
def recompilations(function: Function) -> list[Compilation]:
    """Return the calls that traced or compiled again after an earlier one, in order of time.

    These are left out: explicit ``.lower()`` and ``.compile()``, calls that finish the work of these,
    traces inside another function's trace, and the first forward and backward programs of a transform.
    """
    before: dict[object, set[object]] = {}
    done: dict[object, int] = {}
    found = []
    for c in function.compilations:
        if c.reached == ["fast_path"] or c.entry == "nested":
            continue
        caches, key = _served_by(c), _transform_key(c)
        known, phases = before.setdefault(caches, set()), done.get(caches, 0)
        again = known and c.entry != "aot" and (key is None or key not in known) and not _failed_trace(c)
        if again and not _only_goes_on(c, phases):
            found.append(c)
        if c.reached_phases:
            known.add(key)
            done[caches] = phases | c.reached_phases
    return found


@cached_until_changed
def reasons(function: Function, run: Run) -> dict[str, list[tuple[Compilation, Cause]]]:
    """Return the ``recompilations`` of ``function`` with their decisive causes, by kind of cause."""
    found: dict[str, list[tuple[Compilation, Cause]]] = {}
    for c in recompilations(function):
        decisive = of(run, c)[0]
        found.setdefault(decisive.kind, []).append((c, decisive))
    return found


def _served_by(c: Compilation) -> object:
    """Return a value that is equal for compilations that share caches.

    Caches belong to a process. The recording does not name the transform: its programs have the same line,
    the same callers' lines, arguments of the same paths and ranks, and the same function object.
    """
    return (c.process.id, _transformed(c)) if c.entry == "transform" else c.process.id


def _transform_key(c: Compilation) -> object:
    """Return a value that is equal for programs of one transform with equal keys: one call compiles several.

    None: not under a transform, where each compilation counts.
    """
    if c.entry != "transform" or c.key is None or c.missed is None:
        return None
    return (tuple(c.key.arguments), tuple(c.key.static), c.key.tree, c.key.context, c.missed.cleared)


def _transformed(c: Compilation) -> object:
    lines = [(f.file, f.line) for f in (c.site, *(c.missed.stack if c.missed is not None else ())) if f]
    traced = c.reached_phases & 1 or c.phase == TRACE
    # Another rank means another transform: vmap on a line that had grad before.
    leaves = [(leaf.path, len(leaf.shape or ())) for leaf in c.key.arguments] if c.key is not None else []
    return tuple(lines), tuple(leaves), c.key.function_object if c.key is not None else None, traced


def _nearest(run: Run, c: Compilation, key: Key, facts: Facts, level: str) -> int | None:
    """Return the position of the nearest earlier compilation in the index; None: there is none.

    Compared are the latest, and of those before them the latest with the shapes or static values of
    ``c``: keys with different shapes or statics can be hundreds, those with different dtypes,
    settings and containers are few.
    """
    index = key_index.of(run, c)
    end, hashes = index.before(c.call), index.hashes(c.call, key)
    one_entry = index.entries == {c.entry} != {"transform"}  # by far the most common case
    positions: list[int] = []  # the latest first
    for fits in [None] if one_entry else _fitting(c):
        positions = index.latest(end, LOOK_BACK, fits)
        if positions:
            if more := index.alike(hashes, positions[-1], LOOK_FURTHER, fits):
                positions = sorted({*positions, *more}, reverse=True)
            break
    earlier = [index.facts[at] for at in positions]
    found = nearest(facts, earlier, level, lambda n: index.shapes[positions[n]] != hashes[0])
    return None if found is None else positions[found]


def _fitting(c: Compilation) -> list[key_index.Fits]:
    """Return the conditions for a compilation to compare with, the best first; the
    next if the first has no match."""

    def same_caches(o: Compilation) -> bool:
        return o.entry == c.entry or {o.entry, c.entry} <= _DIRECT

    if (
        c.entry == "transform"
    ):  # forward and backward programs of one function are not compared with each other
        transform, paths = _transformed(c), _paths(c)
        return [
            lambda o: o.entry == c.entry and _transformed(o) == transform,
            lambda o: o.entry == c.entry and _paths(o) == paths and _one_object(o, c),
            lambda o: o.entry != c.entry,
            lambda o: True,
        ]
    return [same_caches, lambda o: True]


def _paths(c: Compilation) -> list[str]:
    return [leaf.path for leaf in c.key.arguments] if c.key is not None else []


def _one_object(a: Compilation, b: Compilation) -> bool:
    """Return whether both are calls of one function object, or have none, as a backward program."""
    return len({c.key.function_object for c in (a, b) if c.key is not None}) < 2


def _circumstances(run: Run, c: Compilation, before: Compilation, level: str) -> causes.Circumstances:
    seen = c.function.seen
    now, then = c.missed, before.missed
    assert now is not None and then is not None
    created = None
    if now.key is not None and then.key is not None and now.key.function_object != then.key.function_object:
        created = _created_at(run, c)
    return causes.Circumstances(
        level=level,
        entry=c.entry,
        entry_before=before.entry,
        name=seen.name,
        form=seen.form,
        qualname=seen.qualname,
        wrappers=seen.wrappers,
        signature=seen.signature,
        eager=seen.eager,
        cleared=max(0, (now.cleared or 0) - (then.cleared or 0)),
        full=now.full or {},
        effects=_effects(c) if level == FAST_PATH else [],
        created_at=created[0] if created is not None else None,
        created_there=created is not None and created[1],
        other_program=c.entry == before.entry == "transform" and _transformed(c) != _transformed(before),
        number_before=number_of(run, before),
        of_leaves=run.causes_of_leaves,
    )


def _effects(c: Compilation) -> list[str]:
    """Return the effects of this call, else of the function's latest trace."""
    if c.missed is not None and c.missed.effects:
        return list(c.missed.effects)
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return list(o.traced.effects or ())
    return []


def _created_at(run: Run, c: Compilation) -> tuple[Frame, bool] | None:
    """Return the line at which a function object was created again, and whether that is certain.

    The line of the lambda or def if it is not wrapped; else the line on the stack that wraps it; else, for a
    function defined inside another, its definition. None: the recording does not lead to a line.
    """
    seen = c.function.seen
    if not seen.file or seen.line is None:
        return None
    defined = Frame(seen.file, seen.line, seen.qualname)
    if seen.form in ("lambda", "def") and not seen.wrappers:
        return defined, True
    inner = "<locals>" in seen.qualname
    searched = inner or seen.form == "lambda"
    if searched and sources.where_defined(run, seen.file, seen.name, seen.line) is not None:
        return defined, True
    for frame in (c.site, *(c.missed.stack if c.missed is not None else ())):
        if frame is None:
            continue
        wraps = sources.where_called(run, frame.file, seen.name, frame.line)
        if wraps is not None:
            return Frame(frame.file, wraps.line, frame.function), wraps.certain
    return (defined, False) if inner else None
