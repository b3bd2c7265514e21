"""Each compilation beside its function's nearest earlier key. Only differences; causes come later.

JAX's caches live in one process, so only keys of the same process are compared.
"""

from __future__ import annotations

from jaxscope.analysis.keys import Facts, compare, flatten, nearest_facts
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run

# Distinct earlier keys looked at, the latest first: a function with thousands of keys must not cost
# the square of it.
LOOK_BACK = 256


def compared(run: Run, c: Compilation) -> Comparison | None:
    """What tells ``c`` from the nearest earlier key; None where its key was not read.

    Computed once: what came before a call does not change any more.
    """
    known = run.comparisons.get(c.id)
    if known is not None:
        return known
    if c.key is None:
        return None
    facts = _facts(run, c)
    earlier = _earlier(c)
    flat = [
        known.facts if (known := run.comparisons.get(e.id)) is not None else _facts(run, e) for e in earlier
    ]
    index = nearest_facts(facts, flat)
    if index is None:
        found = Comparison(facts, None, None, [])
    else:
        found = Comparison(facts, earlier[index], flat[index], compare(flat[index], facts))
    run.comparisons[c.id] = found
    return found


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
    found = [
        o for o in c.function.compilations if o.process is c.process and o.call < c.call and o.key is not None
    ]
    return found[-LOOK_BACK:]


def _facts(run: Run, c: Compilation) -> Facts:
    key = c.key
    assert key is not None
    settings = run.settings(c.process, key.context)
    contexts = {key.context: settings} if key.context is not None and settings is not None else None
    return flatten(key, contexts)
