"""The causes of each compilation of a run: its key beside the earlier key that was nearest to serve.

JAX's caches live in one process, so only keys of the same process are compared.
"""

from __future__ import annotations

from jaxscope.analysis import causes
from jaxscope.analysis.keys import Facts, flatten
from jaxscope.analysis.levels import FAST_PATH, TRACE, nearest, reached_level
from jaxscope.model import key_index, sources
from jaxscope.model.function_lookup import number_of
from jaxscope.model.key_index import shapes
from jaxscope.model.records import Comparison, Compilation, Function, asked_once
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause
from jaxscope.schema.keys import Frame, Key

# Earlier keys looked at, the latest first: a function with thousands of keys must not cost the square of it.
LOOK_BACK = 256
LOOK_FURTHER = 32  # of the keys before those, that have the same shapes or static values
# Calls of these two kinds serve one another; what was traced under a transform or inside another trace
# is a thing of its own.
_DIRECT = frozenset({"call", "aot"})


def compared(run: Run, c: Compilation) -> Comparison | None:
    """What tells ``c`` from the nearest earlier key; None where its key was not read.

    Computed once for a finished call: what came before it does not change any more.
    """
    if c.key is None:
        return None
    level = reached_level(c.reached, c.failed.phase if c.failed is not None else c.phase)
    known = run.comparisons.get(c.id)
    if known is not None and known.level == level:
        return known
    facts = facts_of(run, c)
    before, unlike = _earlier(run, c, c.key)
    flat = [k.facts if (k := run.comparisons.get(e.id)) is not None else facts_of(run, e) for e in before]
    index = nearest(facts, flat, level, unlike)
    if index is None:
        found = Comparison(level, facts, None, None, [causes.first(level)])
    else:
        at = _circumstances(run, c, before[index], level)
        found = Comparison(level, facts, before[index], flat[index], causes.between(flat[index], facts, at))
    run.comparisons[c.id] = found
    return found


def of(run: Run, c: Compilation) -> list[Cause]:
    """The causes of ``c``, the decisive one first; never empty."""
    comparison = compared(run, c)
    if comparison is not None:
        return comparison.causes
    level = reached_level(c.reached, c.failed.phase if c.failed is not None else c.phase)
    if not any(o.process is c.process and o.call < c.call for o in c.function.compilations):
        return [causes.first(level)]
    return [causes.unread_key(level)]


def further_back(run: Run, c: Compilation) -> int | None:
    """The number of the compilation that "before" stands for, where a later one came between it and ``c``."""
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
    """Is it one of the ``recompilations`` of its function, or would be, had its trace not failed?"""
    if c.reached == ["fast_path"] or c.entry in ("aot", "nested"):
        return False
    own, key, able = _served_by(c), _same_again(c), False
    for other in c.function.compilations:
        if other is c:
            break
        if not other.reached_phases or other.entry == "nested" or _served_by(other) != own:
            continue
        if key is None:
            return True
        if _same_again(other) == key:
            return False
        able = True
    return able


def _came_to_nothing(c: Compilation) -> bool:
    """Did its trace end in an exception, so that nothing was made?"""
    return c.failed is not None and not c.reached_phases


@asked_once
def recompilations(function: Function) -> list[Compilation]:
    """The calls for which something is made once more that an earlier one could have served, in order of time.

    Not what was asked for (``.lower()``, ``.compile()``), and neither a trace that is part of another function's
    trace, nor the first programs of a transform: a forward and a backward one beside that of the function itself.
    """
    before: dict[object, set[object]] = {}
    found = []
    for c in function.compilations:
        if c.reached == ["fast_path"] or c.entry == "nested":
            continue
        known, key = before.setdefault(_served_by(c), set()), _same_again(c)
        if known and c.entry != "aot" and (key is None or key not in known) and not _came_to_nothing(c):
            found.append(c)
        if c.reached_phases:
            known.add(key)
    return found


@asked_once
def reasons(function: Function, run: Run) -> dict[str, list[tuple[Compilation, Cause]]]:
    """Its ``recompilations`` with their decisive causes, by the kind of these."""
    found: dict[str, list[tuple[Compilation, Cause]]] = {}
    for c in recompilations(function):
        decisive = of(run, c)[0]
        found.setdefault(decisive.kind, []).append((c, decisive))
    return found


def _served_by(c: Compilation) -> object:
    """Equal for compilations that can serve one another's calls, were their keys the same.

    Caches live in one process. Which transform it is the record does not have: its programs come from one line,
    called from the same lines, with arguments of the same names and ranks, for one function object.
    """
    return (c.process.id, _transformed(c)) if c.entry == "transform" else c.process.id


def _same_again(c: Compilation) -> object:
    """Equal for programs of one transform that nothing in their keys tells apart: it makes several of one call.

    None: not under a transform, where each compilation counts.
    """
    if c.entry != "transform" or c.key is None or c.missed is None:
        return None
    return (tuple(c.key.arguments), tuple(c.key.static), c.key.tree, c.key.context, c.missed.cleared)


def _transformed(c: Compilation) -> object:
    lines = [(f.file, f.line) for f in (c.site, *(c.missed.stack if c.missed is not None else ())) if f]
    traced = c.reached_phases & 1 or c.phase == TRACE
    # An axis more or less is another transform: vmap of what was under grad before, on the same line.
    leaves = [(leaf.path, len(leaf.shape or ())) for leaf in c.key.arguments] if c.key is not None else []
    return tuple(lines), tuple(leaves), c.key.function_object if c.key is not None else None, traced


def _earlier(run: Run, c: Compilation, key: Key) -> tuple[list[Compilation], set[int]]:
    """Those worth a look, in order of time, and which of them have other shapes than ``c``.

    The latest, and of those before the latest with the shapes, or the static values, of ``c``: in which keys
    come by the hundred, while dtypes, settings and containers do not.
    """
    its = key_index.of(run, c)
    end = its.before(c.call)
    one = its.entries == {c.entry} != {"transform"}  # by far the most
    for fits in [None] if one else _fitting(c):
        latest = its.latest(end, LOOK_BACK, fits)
        if latest:
            positions = sorted({*latest, *its.alike(key, latest[-1], LOOK_FURTHER, fits)})
            own = shapes(key)
            unlike = {n for n, at in enumerate(positions) if its.shapes[at] != own}
            return [its.compilations[at] for at in positions], unlike
    return [], set()


def _fitting(c: Compilation) -> list[key_index.Fits]:
    """What may be compared with ``c``, the best first: the next where there is none."""

    def alike(o: Compilation) -> bool:
        return o.entry == c.entry or {o.entry, c.entry} <= _DIRECT

    if c.entry == "transform":  # forward and backward programs of one function are different things
        own, paths = _transformed(c), _paths(c)
        return [
            lambda o: o.entry == c.entry and _transformed(o) == own,
            lambda o: o.entry == c.entry and _paths(o) == paths and _one_object(o, c),
            lambda o: o.entry != c.entry,
            lambda o: True,
        ]
    return [alike, lambda o: True]


def _paths(c: Compilation) -> list[str]:
    return [leaf.path for leaf in c.key.arguments] if c.key is not None else []


def _one_object(a: Compilation, b: Compilation) -> bool:
    """Are both calls of one function object? A backward program is of none."""
    return len({c.key.function_object for c in (a, b) if c.key is not None}) < 2


def facts_of(run: Run, c: Compilation) -> Facts:
    """The key of ``c``, which was read, taken apart."""
    key = c.key
    assert key is not None
    settings = run.settings(c.process, key.context)
    known = run.facts.get(id(key))  # a key that came before is the same object (model.shared)
    if known is None or known[0] is not key or known[1] is not settings:
        contexts = {key.context: settings} if key.context is not None and settings is not None else None
        known = run.facts[id(key)] = key, settings, flatten(key, contexts)
        run.shared.of(known[2])
    return known[2]


def _circumstances(run: Run, c: Compilation, before: Compilation, level: str) -> causes.Circumstances:
    seen = c.function.seen
    now, then = c.missed, before.missed
    assert now is not None and then is not None
    made = None
    if now.key is not None and then.key is not None and now.key.function_object != then.key.function_object:
        made = _made_at(run, c)
    return causes.Circumstances(
        level=level,
        entry=c.entry,
        entry_before=before.entry,
        name=seen.name,
        form=seen.form,
        qualname=seen.qualname,
        wrappers=list(seen.wrappers),
        signature=seen.signature,
        eager=seen.eager,
        cleared=max(0, (now.cleared or 0) - (then.cleared or 0)),
        full=dict(now.full or {}),
        effects=_effects(c) if level == FAST_PATH else [],
        made_at=made[0] if made is not None else None,
        made_there=made is not None and made[1],
        other_program=c.entry == before.entry == "transform" and _transformed(c) != _transformed(before),
        number_before=number_of(run, before),
    )


def _effects(c: Compilation) -> list[str]:
    """Of this call, else of the function's latest trace."""
    if c.missed is not None and c.missed.effects:
        return list(c.missed.effects)
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return list(o.traced.effects or ())
    return []


def _made_at(run: Run, c: Compilation) -> tuple[Frame, bool] | None:
    """The line at which a function object was created again, and whether that is certain.

    A lambda's or a def's own line, where nothing wraps it elsewhere; else the line that wraps it, of those
    that were running; else, of a function that is defined inside another, its definition. None: no record
    leads to a line.
    """
    seen = c.function.seen
    if not seen.file or seen.line is None:
        return None
    defined = Frame(seen.file, seen.line, seen.qualname)
    if seen.form in ("lambda", "def") and not seen.wrappers:
        return defined, True
    recorded = run.sources
    inner = "<locals>" in seen.qualname
    if (inner or seen.form == "lambda") and sources.where_defined(
        seen.file, seen.name, seen.line, recorded.get(seen.file, frozenset())
    ) is not None:
        return defined, True
    for frame in (c.site, *(c.missed.stack if c.missed is not None else ())):
        if frame is None:
            continue
        made = sources.where_called(frame.file, seen.name, frame.line, recorded.get(frame.file, frozenset()))
        if made is not None:
            return Frame(frame.file, made.line, frame.function), made.certain
    return (defined, False) if inner else None
