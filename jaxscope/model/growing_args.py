"""Find arguments that a function makes longer itself, and that therefore make it recompile in each call.

Example: ``tokens = jax.jit(append)(tokens, token)``. The result of each call is longer than the argument
``tokens``, and is passed to the next call.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from jaxscope.analysis.feedback import same_leaves
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.keys import Facts, LeafFacts
from jaxscope.analysis.paths import root, split
from jaxscope.model import causes, key_index, predictions
from jaxscope.model.records import Comparison, Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause

LOOK_BACK = 32  # number of the latest earlier compilations whose results are compared
LATEST = 5  # number of the latest recompiles that are examined

Caused = tuple[Compilation, Cause]  # a call that missed a cache, and why


def arguments(run: Run, f: Function) -> frozenset[str]:
    """Return the names of the arguments of ``f`` that ``f`` itself makes longer from call to call."""
    resized = causes.reasons(f, run).get("shape", [])
    found = grouped((root(cause.path), (c, cause)) for c, cause in resized if cause.path is not None)
    return frozenset(name for name, misses in found.items() if mostly(run, misses))


def mostly(run: Run, misses: Sequence[Caused]) -> bool:
    """Return whether the function itself lengthened the argument in more than half of the latest recompiles
    (at most LATEST). ``misses`` are recompiles of one function, in order of time: (call, its cause of kind
    ``shape``)."""
    # If so, the advice is to allocate the argument with its final size, not to pad it to a few sizes.
    latest = misses[-LATEST:]
    half = (len(latest) + 1) // 2
    others = (1 for c, cause in latest if not by_itself(run, c, cause))
    return sum(itertools.islice(others, half)) < half


def by_itself(run: Run, c: Compilation, cause: Cause) -> bool:
    """Return whether the argument of ``c`` whose shape changed is (a part of) the result of one of the last
    LOOK_BACK compiled calls of the same function, longer than the argument of that call. ``cause`` is the
    change of the shape. Arrays are recognized by tree, shapes and dtypes. False if another line is known to
    have created the argument."""
    comparison = causes.compared(run, c)
    if cause.kind != "shape" or cause.path is None or comparison is None:
        return False
    known = run.lengthened.get((c.id, cause.path))
    if known is None or known[0] is not comparison:
        found = _by_itself(run, c, comparison, root(cause.path))
        known = run.lengthened[c.id, cause.path] = comparison, found
    return known[1]


def _by_itself(run: Run, c: Compilation, comparison: Comparison, name: str) -> bool:
    """Return whether the argument ``name`` of ``c`` is the lengthened result of an earlier call (see
    ``by_itself``). ``comparison`` has the flattened cache key of ``c``."""
    now = _argument(comparison.facts, name)
    index = key_index.of(run, c)
    for at in index.latest(index.before(c.call), LOOK_BACK, _ran_a_phase):
        before = index.compilations[at]
        results = predictions.results_of(run, before)
        if not results.leaves or not same_leaves(now, results):
            continue
        known = causes.compared(run, before)
        if known is not None and _longer(_argument(known.facts, name), now):
            return predictions.made_by_it(before, c, [name + s for s in now])
    return False


def _ran_a_phase(c: Compilation) -> bool:
    """Return whether ``c`` is an ordinary call that traced, lowered or compiled."""
    return c.entry == "call" and bool(c.reached_phases)


def _argument(facts: Facts, name: str) -> dict[str, LeafFacts]:
    """Return the leaves of the argument ``name`` in a flattened cache key, ``facts``, by their path below the
    argument: ``{"['w']": leaf, ...}``."""
    return {below: leaf for p, leaf in facts.leaves.items() for at, below in [split(p)] if at == name}


def _longer(before: dict[str, LeafFacts], now: dict[str, LeafFacts]) -> bool:
    """Return whether an argument became longer between two calls: at least one dimension became longer, and
    none became shorter. ``before`` and ``now`` are the leaves of the argument in these calls, as {path below
    the argument: leaf}. False if paths or ranks differ, or a shape is unknown."""
    if before.keys() != now.keys():
        return False
    pairs = []
    for s, leaf in now.items():
        old, new = before[s].shape, leaf.shape
        if old is None or new is None or len(old) != len(new):
            return False
        pairs += [(a, b) for a, b in zip(old, new, strict=True) if isinstance(a, int) and isinstance(b, int)]
    return all(a <= b for a, b in pairs) and any(a < b for a, b in pairs)
