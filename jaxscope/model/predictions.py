"""Predict that a function will recompile when its own result is passed to it as an argument.

Example: ``state = step(state)``, if the returned state has another sharding, dtype or weak type than the
argument. After a compilation, the results of the call are compared with its arguments. Later calls confirm or
withdraw a prediction.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

import msgspec

from jaxscope.analysis import causes as analysis
from jaxscope.analysis.feedback import Fed, Result, Results, fed_back
from jaxscope.analysis.keys import Facts, LeafFacts, placed
from jaxscope.analysis.levels import FAST_PATH, distance
from jaxscope.analysis.paths import below, of_result
from jaxscope.model import causes, key_index
from jaxscope.model.records import Compilation, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause
from jaxscope.schema.events import Compiled, Traced
from jaxscope.schema.findings import LIKELY
from jaxscope.schema.keys import Sharding, table_entry
from jaxscope.schema.messages import Message, message

NO_RESULTS = Results()
PENDING, CONFIRMED, WITHDRAWN = "pending", "confirmed", "withdrawn"


class Prediction(msgspec.Struct, frozen=True):
    """A prediction: the function of the call ``after`` will recompile if a result of this call is passed to
    the function as an argument.

    Attributes:
      after: the call that returned the result.
      argument, result: the path of the argument, and the path of the result in the returned value.
      causes: why the next call will recompile, the decisive cause first.
      leaves: number of leaves of the argument. A tree with several leaves rarely matches a result by chance.
      status: pending, confirmed (by a later recompile) or withdrawn (a later call did not recompile for this
        reason); None: the run ended before this was known.
      confirmed_by: the later call that recompiled; None: no such call.
    """

    after: Compilation
    argument: str
    result: str
    causes: list[Cause]
    leaves: int
    status: str | None
    confirmed_by: Compilation | None = None


@cached_until_changed
def predictions(run: Run) -> list[Prediction]:
    """Return the predicted recompiles of all functions of the user, in order of time."""
    found = [p for f in run.functions.values() if f.user for c in f.compilations for p in of(run, c)]
    return sorted(found, key=lambda p: (p.after.t_ns, p.after.call))


def of(run: Run, c: Compilation) -> list[Prediction]:
    """Return the recompiles that are predicted after call ``c``: one for each argument that may get a result
    of ``c`` in the next call. Left out are arguments for which the function is already compiled. Empty also
    if ``c`` is no ordinary call or compiled nothing, or if its results are unknown."""
    if c.entry != "call" or not c.reached_phases or c.missed is None:
        return []
    results = results_of(run, c)
    comparison = causes.compared(run, c) if results.leaves else None
    if comparison is None:
        return []
    found = []
    for fed in fed_back(comparison.facts, results):
        expected = msgspec.structs.replace(comparison.facts, leaves={**comparison.facts.leaves, **fed.leaves})
        if _seen_before(run, c, expected):
            continue
        expected_causes = _causes(comparison.facts, expected)
        if expected_causes:
            status, by = _status(run, c, comparison.facts, fed)
            found.append(
                Prediction(c, fed.argument, fed.result, expected_causes, len(fed.leaves), status, by)
            )
    return found


def came_back(run: Run, c: Compilation, path: str, of: Callable[[LeafFacts], object] | None = None) -> bool:
    """Return whether the arrays at or below the argument path ``path`` whose sharding in ``c`` is new are
    results of the earlier call with which ``c`` is compared, as in ``state = f(state)``. False if no sharding
    is new, if one of these arrays differs from the result in sharding, or if one is known to come from a line
    other than those of the two calls.

    Args:
      of: returns a property of an argument leaf (an array) that is compared instead of the sharding, such as
        the dtype; the property is None if it is unknown. If ``of`` itself is None, the sharding is compared.
    """
    of = of or _placed
    comparison = causes.compared(run, c)
    if comparison is None or comparison.nearest is None or comparison.nearest_facts is None:
        return False
    now, before = comparison.facts.leaves, comparison.nearest_facts
    moved = [
        p
        for p, leaf in now.items()
        if (p == path or below(p, {path})) and p in before.leaves and of(leaf) != of(before.leaves[p])
    ]
    feds = fed_back(before, results_of(run, comparison.nearest))
    returned = {p: of(leaf) for fed in feds for p, leaf in fed.leaves.items()}
    here = {f.place for f in (c.site, comparison.nearest.site) if f is not None}
    updates = "flax.nnx.jit" in c.function.seen.wrappers  # results have no argument names
    for p in moved:
        actual, expected, origin = of(now[p]), returned.get(p), c.made_at(p)
        if updates and expected is None and origin is not None:
            expected = actual  # only the line that created the array is compared
        if actual is None or actual != expected:
            return False
        if origin is not None and origin.place not in here:
            return False
    return bool(moved)


def _placed(leaf: LeafFacts) -> tuple[object, ...] | None:
    """Return a value that is equal for equal shardings (``placed``). None if the sharding of ``leaf`` is
    unknown."""
    return placed(leaf.sharding) if leaf.sharding is not None else None


def _causes(now: Facts, expected: Facts) -> list[Cause]:
    """Return why a call with the cache key ``expected`` will recompile after a compilation for the key
    ``now``. Empty if the call would miss only the C++ fast path, because JAX then compiles nothing."""
    moved = distance(now, expected)
    level = next((name for name, n in moved.items() if n), FAST_PATH)
    if level == FAST_PATH:
        return []
    found = analysis.between(now, expected, analysis.Circumstances(level=level))
    # The user may call device_put on the result before the next call: the cause is at most likely.
    return [
        msgspec.structs.replace(c, certainty=LIKELY)
        for c in found
        if c.level != FAST_PATH and c.kind != "unknown"
    ]


def results_of(run: Run, c: Compilation) -> Results:
    """Return the leaves of the value that call ``c`` returned, with shapes, dtypes and shardings; no leaves
    if ``c`` compiled nothing, or if they are unknown. If ``c`` used the trace of an earlier call, shapes and
    dtypes are those of that call."""
    traced, compiled = c.traced, c.compiled
    if compiled is None:
        return NO_RESULTS
    if (traced is None or traced.out is None) and c.key is not None:
        key = c.key

        avals = [(x.path, x.shape, x.dtype) for x in key.arguments]

        def returned(o: Compilation) -> bool:
            if o.traced is None or not o.traced.out or o.key is None or o.key.tree != key.tree:
                return False
            return [(x.path, x.shape, x.dtype) for x in o.key.arguments] == avals

        index = key_index.of(run, c)
        found_at = index.same_shapes(key, index.before(c.call), returned)
        traced = index.compilations[found_at].traced if found_at is not None else None
    if traced is None or not traced.out:
        return NO_RESULTS
    same = (id(traced.out), id(compiled.out_sharding_of), id(compiled.out_shardings), compiled.out_committed)
    known = run.results.get(same)
    if known is None:  # the entry keeps the lists alive, so that their ids are not reused
        lists = (traced.out, compiled.out_sharding_of, compiled.out_shardings)
        known = run.results[same] = lists, _results(traced, compiled)
    return known[1]


def _results(traced: Traced, compiled: Compiled) -> Results:
    """Return the leaves of the result of a call: shapes and dtypes from ``traced``, shardings from
    ``compiled``. A sharding is None if it is unknown."""
    indices, table = compiled.out_sharding_of, compiled.out_shardings
    out = traced.out or []
    if len(indices) != len(out):
        indices = [None] * len(out)
    pairs = zip(out, indices, strict=True)
    return Results([Result(leaf, table_entry(table, at), compiled.out_committed) for leaf, at in pairs])


def _seen_before(run: Run, c: Compilation, expected: Facts) -> bool:
    """Return whether ``c`` or an earlier call of the function has compiled a program that also fits a call
    with the cache key ``expected``."""
    index = key_index.of(run, c)
    named = c.key.arguments if c.key is not None else []
    if len(named) != len(expected.leaves):
        return False
    # A call with another shape is not served. Leaves are in the order of the arguments.
    wanted = [(leaf.path, now.shape) for leaf, now in zip(named, expected.leaves.values(), strict=True)]
    for at in index.with_shapes(wanted):
        o = index.compilations[at]
        if o.call > c.call or not o.reached_phases:
            continue
        known = causes.compared(run, o)
        if known is not None and not any(
            n for level, n in distance(known.facts, expected).items() if level != FAST_PATH
        ):
            return True
    return False


def _status(run: Run, c: Compilation, facts: Facts, fed: Fed) -> tuple[str | None, Compilation | None]:
    """Return (status, call) of the prediction that the next call after ``c`` recompiles, because a result of
    ``c`` is passed to it as an argument.

    CONFIRMED: the next call got the result and recompiled; ``call`` is this call (otherwise None). WITHDRAWN:
    the next call got something else, or did not recompile. PENDING: no next call is known yet. None: the
    program ended without a known next call.

    Args:
      facts: the flattened key of ``c``.
      fed: the argument, and the result of ``c`` that is expected to be passed as this argument.
    """
    own = c.function.compilations  # in order of time
    for at in range(bisect_left(own, c.t_ns, key=lambda o: o.t_ns), len(own)):
        later = own[at]
        if later.process is not c.process or later.call <= c.call or later.entry != "call":
            continue
        comparison = causes.compared(run, later)
        if comparison is None:
            continue
        found = comparison.facts.leaves
        as_expected = [_as_expected(found.get(path), facts.leaves[path], x) for path, x in fed.leaves.items()]
        if None in as_expected and False not in as_expected:
            continue
        came_back = all(as_expected) and made_by_it(c, later, fed.leaves)
        return (CONFIRMED, later) if came_back and later.reached_phases else (WITHDRAWN, None)
    if c.calls_then is not None:
        calls = c.function.counted_calls.get(c.process.id, 0)
        if calls > c.calls_then:
            return WITHDRAWN, None
    ended = c.process.ended is not None or run.exited is not None
    return (None if ended else PENDING), None


def made_by_it(c: Compilation, later: Compilation, paths: Iterable[str]) -> bool:
    """Return whether the arguments ``paths`` of call ``later`` may be results of call ``c``: one of them was
    created at the line of ``c`` or of ``later``, or the lines of all are unknown."""
    here = {f.place for f in (c.site, later.site) if f is not None}
    # One argument suffices, because a function can also return arrays that it received.
    made = {f.place for path in paths if (f := later.made_at(path)) is not None}
    return not made or bool(made & here)


def _as_expected(actual: LeafFacts | None, before: LeafFacts, expected: LeafFacts) -> bool | None:
    """Return whether a leaf of a later call has the predicted shape, dtype and weak type. Of sharding,
    committedness and memory kind, only those that are predicted to change must be as predicted, too. None if
    one of these was not recorded.

    Args:
      actual: the leaf in the later call; None: that call has no such leaf.
      before: the leaf in the call after which the prediction was made.
      expected: the predicted leaf.
    """
    if actual is None or (actual.shape, actual.dtype, actual.weak_type) != (
        expected.shape,
        expected.dtype,
        expected.weak_type,
    ):
        return False
    fields = [
        n for n in ("sharding", "committed", "memory_kind") if getattr(before, n) != getattr(expected, n)
    ]
    if actual.type == expected.type and any(getattr(actual, n) is None for n in fields):
        return None
    return all(_placement(actual, n) == _placement(expected, n) for n in fields)


def _placement(leaf: LeafFacts, name: str) -> object:
    """Return the field ``name`` of ``leaf`` in a form to compare: equal shardings give equal values."""
    value: object = getattr(leaf, name)
    return placed(value) if isinstance(value, Sharding) else value


def sentence(p: Prediction) -> Message:
    """Return the prediction ``p`` as a message to the user.

    Example: ``if the result[0] of step is passed as state, the next call recompiles: ...``
    """
    function = p.after.function.display_name
    return message(
        "prediction", result=of_result(p.result), function=function, argument=p.argument, cause=p.causes[0]
    )
