"""The causes of each compilation of a run: its key beside the earlier key that was nearest to serve.

JAX's caches live in one process, so only keys of the same process are compared.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from pathlib import PurePath

from jaxscope.analysis import causes
from jaxscope.analysis.keys import Facts, flatten
from jaxscope.analysis.levels import FAST_PATH, nearest, reached_level
from jaxscope.model import sources
from jaxscope.model.names import number_of
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.findings import Cause

# Earlier keys looked at, the latest first: a function with thousands of keys must not cost the square of it.
LOOK_BACK = 256
LOOK_AT = 2_048  # and how far back those are looked for: else all of 100,000 would cost the square of it
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
    earlier = _earlier(c)
    flat = [k.facts if (k := run.comparisons.get(e.id)) is not None else facts_of(run, e) for e in earlier]
    index = nearest(facts, flat, level)
    if index is None:
        found = Comparison(level, facts, None, None, [causes.first(level)])
    else:
        at = _circumstances(run, c, earlier[index], level)
        found = Comparison(level, facts, earlier[index], flat[index], causes.between(flat[index], facts, at))
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


def recompiled(c: Compilation) -> bool:
    """Did the same process trace, lower or compile this function for another call before?"""
    if c.reached == ["fast_path"]:
        return False
    for other in c.function.compilations:
        if other is c:
            return False
        if other.process is c.process and other.reached_phases:
            return True
    return False


def recompilations(function: Function) -> list[Compilation]:
    """``recompiled`` for a whole function, in order of time."""
    before: set[str] = set()
    found = []
    for c in function.compilations:
        if c.reached == ["fast_path"]:
            continue
        if c.process.id in before:
            found.append(c)
        if c.reached_phases:
            before.add(c.process.id)
    return found


def _earlier(c: Compilation) -> list[Compilation]:
    own = c.function.compilations  # in order of time
    at = bisect_right(own, c.t_ns, key=lambda o: o.t_ns)
    before = own[max(0, at - LOOK_AT) : at]
    found = [o for o in before if o.process is c.process and o.call < c.call and o.key is not None]
    alike = [o for o in found if o.entry == c.entry or {o.entry, c.entry} <= _DIRECT]
    if c.entry == "transform":  # forward and backward programs of one function are different things
        alike = [o for o in alike if _paths(o) == _paths(c) and _one_object(o, c)]
        alike = alike or [o for o in found if o.entry != c.entry]
    return _worth_a_look(alike or found, c)


def _worth_a_look(earlier: list[Compilation], c: Compilation) -> list[Compilation]:
    """The latest, and of those before the latest with the shapes, or the static values, of ``c``: in which
    keys come by the hundred, while dtypes, settings and containers do not."""
    latest, older = earlier[-LOOK_BACK:], earlier[:-LOOK_BACK]
    if not older or c.key is None:
        return latest
    found: dict[int, Compilation] = {}
    for name, fields in (("arguments", ("path", "shape")), ("static", ("path", "repr", "hash"))):
        told = attrgetter(*fields)
        wanted = list(map(told, getattr(c.key, name)))
        matching = [o for o in older if o.key is not None and list(map(told, getattr(o.key, name))) == wanted]
        found.update((o.call, o) for o in matching[-LOOK_FURTHER:])
    return [*(found[call] for call in sorted(found)), *latest]


def _paths(c: Compilation) -> list[str]:
    return [leaf.path for leaf in c.key.arguments] if c.key is not None else []


def _one_object(a: Compilation, b: Compilation) -> bool:
    """May both be calls of one function object?"""
    numbers = {c.key.function_object for c in (a, b) if c.key is not None} - {None}
    return len(numbers) < 2


def facts_of(run: Run, c: Compilation) -> Facts:
    """The key of ``c``, which was read, taken apart."""
    key = c.key
    assert key is not None
    settings = run.settings(c.process, key.context)
    contexts = {key.context: settings} if key.context is not None and settings is not None else None
    return flatten(key, contexts)


def _circumstances(run: Run, c: Compilation, before: Compilation, level: str) -> causes.Circumstances:
    seen = c.function.seen
    now, then = c.missed, before.missed
    assert now is not None and then is not None
    made = None
    if now.key is not None and then.key is not None and now.key.function_object != then.key.function_object:
        made = _made_at(c)
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
        cleared=max(0, now.cleared - then.cleared),
        full=dict(now.full),
        effects=_effects(c) if level == FAST_PATH else [],
        made_at=made,
        number_before=number_of(run, before),
    )


def _effects(c: Compilation) -> list[str]:
    """Of this call, else of the function's latest trace."""
    if c.missed is not None and c.missed.effects:
        return list(c.missed.effects)
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return list(o.traced.effects)
    return []


def _made_at(c: Compilation) -> str | None:
    """``train.py:12``: where a lambda or a def stands, else the line that wraps the function."""
    seen = c.function.seen
    if not seen.file or seen.line is None:
        return None
    if seen.form in ("lambda", "def") and not seen.wrappers:
        return f"{PurePath(seen.file).name}:{seen.line}"
    for frame in ([c.site] if c.site is not None else []) + list(
        c.missed.stack if c.missed is not None else []
    ):
        line = sources.maker_line(frame.file, seen.name, frame.line)
        if line is not None:
            return f"{PurePath(frame.file).name}:{line}"
    return None
