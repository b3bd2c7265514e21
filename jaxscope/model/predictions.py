"""Recompiles that are still to come: results of a function that will not fit when they are fed back.

Made from each compilation; what the next calls show confirms or withdraws it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from jaxscope.analysis import causes as analysis
from jaxscope.analysis.feedback import Fed, Result, Results, fed_back
from jaxscope.analysis.keys import Facts, placed
from jaxscope.analysis.levels import FAST_PATH, distance
from jaxscope.analysis.paths import below
from jaxscope.model import causes, key_index
from jaxscope.model.records import Compilation, asked_once
from jaxscope.model.run import Run
from jaxscope.schema.causes import Cause
from jaxscope.schema.events import Compiled, Traced
from jaxscope.schema.findings import LIKELY
from jaxscope.schema.messages import Message, message

NO_RESULTS = Results()
PENDING, CONFIRMED, WITHDRAWN = "pending", "confirmed", "withdrawn"


class Prediction(msgspec.Struct, frozen=True):
    """The call after ``after`` will miss, for ``causes``, if the result ``result`` becomes ``argument`` again.

    Attributes:
      leaves: of the argument; one array alone may be fed back or not, a tree of them hardly by chance.
      status: pending; confirmed by the next miss; withdrawn, a later call did without; None: the run ended
        and nobody could see.
      confirmed_by: the compilation that confirmed it.
    """

    after: Compilation
    argument: str
    result: str
    causes: list[Cause]
    leaves: int
    status: str | None
    confirmed_by: Compilation | None = None


@asked_once
def predictions(run: Run) -> list[Prediction]:
    """Of all user functions, in order of time."""
    found: list[Prediction] = []
    for f in run.functions.values():
        if f.user:
            for c in f.compilations:
                found += of(run, c)
    return sorted(found, key=lambda p: (p.after.t_ns, p.after.call))


def of(run: Run, c: Compilation) -> list[Prediction]:
    """What is to be expected after ``c``; empty where its results fit, or are not known."""
    if c.entry != "call" or not c.reached_phases or c.missed is None:
        return []
    comparison = causes.compared(run, c)
    results = results_of(run, c)
    if comparison is None or not results.leaves:
        return []
    found = []
    for fed in fed_back(comparison.facts, results):
        expected = msgspec.structs.replace(comparison.facts, leaves={**comparison.facts.leaves, **fed.leaves})
        if _seen_before(run, c, expected):
            continue
        told = _causes(comparison.facts, expected)
        if told:
            status, by = _status(run, c, fed, told)
            found.append(Prediction(c, fed.argument, fed.result, told, len(fed.leaves), status, by))
    return found


def came_back(run: Run, c: Compilation, path: str) -> bool:
    """Is what ``c`` was passed at or below ``path``, and lies elsewhere than before, a result of the function?

    True where all of it lies as the compilation it is compared with returned it, and no other line made it.
    """
    comparison = causes.compared(run, c)
    if comparison is None or comparison.nearest is None or comparison.nearest_facts is None:
        return False
    now, before = comparison.facts.leaves, comparison.nearest_facts
    moved = [
        p
        for p, leaf in now.items()
        if (p == path or below(p, {path}))
        and p in before.leaves
        and leaf.sharding != before.leaves[p].sharding
    ]
    feds = fed_back(before, results_of(run, comparison.nearest))
    returned = {p: leaf.sharding for fed in feds for p, leaf in fed.leaves.items()}
    here = {(f.file, f.line) for f in (c.site, comparison.nearest.site) if f is not None}
    for p in moved:
        came, expected, made = now[p].sharding, returned.get(p), c.made_at(p)
        if came is None or expected is None or placed(came) != placed(expected):
            return False
        if made is not None and (made.file, made.line) not in here:
            return False
    return bool(moved)


def _causes(now: Facts, expected: Facts) -> list[Cause]:
    """Why a call with ``expected`` would miss after ``now``; nothing where it would only leave the fast path."""
    moved = distance(now, expected)
    level = next((name for name, n in moved.items() if n), FAST_PATH)
    if level == FAST_PATH:
        return []
    found = analysis.between(now, expected, analysis.Circumstances(level=level))
    # A sharding may come back by way of the user's own device_put: likely is the most that can be said.
    return [
        msgspec.structs.replace(c, certainty=LIKELY)
        for c in found
        if c.level != FAST_PATH and c.kind != "unknown"
    ]


def results_of(run: Run, c: Compilation) -> Results:
    """The leaves of what ``c`` returned; from an earlier trace where it was reused."""
    traced = c.traced
    if (traced is None or not traced.out) and c.key is not None:
        key = c.key

        def returned(o: Compilation) -> bool:
            return (
                o.traced is not None and bool(o.traced.out) and o.key is not None and o.key.tree == key.tree
                and [(x.path, x.shape, x.dtype) for x in o.key.arguments] == [(x.path, x.shape, x.dtype) for x in key.arguments]
            )  # fmt: skip

        its = key_index.of(run, c)
        found_at = its.same_shapes(key, its.before(c.call), returned)
        traced = its.compilations[found_at].traced if found_at is not None else None
    if traced is None or c.compiled is None:
        return NO_RESULTS
    made = c.compiled
    same = (id(traced.out), id(made.out_sharding_of), id(made.out_shardings), made.out_committed)
    known = run.results.get(same)
    if known is None:  # lists that are kept here are never mistaken for others
        parts = (traced.out, made.out_sharding_of, made.out_shardings)
        known = run.results[same] = parts, _results(traced, made)
    return known[1]


def _results(traced: Traced, compiled: Compiled) -> Results:
    of, table = compiled.out_sharding_of, compiled.out_shardings
    out = traced.out or []
    if len(of) != len(out):
        of = [None] * len(out)
    found = []
    for leaf, index in zip(out, of, strict=True):
        sharding = table[index] if index is not None and 0 <= index < len(table) else None
        found.append(Result(leaf, sharding, compiled.out_committed))
    return Results(found)


def _seen_before(run: Run, c: Compilation, expected: Facts) -> bool:
    """Would a call like that find what an earlier one left?"""
    its = key_index.of(run, c)
    named = c.key.arguments if c.key is not None else []
    if len(named) != len(expected.leaves):
        return False
    # What differs in a shape is no call like that. Leaves stand in the order of the arguments.
    wanted = [(leaf.path, now.shape) for leaf, now in zip(named, expected.leaves.values(), strict=True)]
    for at in its.with_shapes(wanted):
        o = its.compilations[at]
        if o.call > c.call or not o.reached_phases:
            continue
        known = causes.compared(run, o)
        if known is not None and not any(
            n for level, n in distance(known.facts, expected).items() if level != FAST_PATH
        ):
            return True
    return False


def _status(
    run: Run, c: Compilation, fed: Fed, told: Sequence[Cause]
) -> tuple[str | None, Compilation | None]:
    own = c.function.compilations  # in order of time
    for at in range(bisect_left(own, c.t_ns, key=lambda o: o.t_ns), len(own)):
        later = own[at]
        if later.process is not c.process or later.call <= c.call or later.entry != "call":
            continue
        comparison = causes.compared(run, later)
        if comparison is None:
            continue
        came_back = all(_as_expected(comparison.facts, path, fed) for path in fed.leaves)
        came_back = came_back and made_by_it(c, later, fed.leaves)
        return (CONFIRMED, later) if came_back and later.reached_phases else (WITHDRAWN, None)
    if c.calls_then is not None:
        calls = c.function.counted_calls.get(c.process.id, 0)
        if calls > c.calls_then:
            return WITHDRAWN, None
    ended = c.process.ended is not None or run.exited is not None
    return (None if ended else PENDING), None


def made_by_it(c: Compilation, later: Compilation, paths: Iterable[str]) -> bool:
    """Are the arguments ``paths`` of ``later`` the results of ``c`` themselves? True where no line says otherwise.

    jaxlib keeps with each array the stack that made it: a result has the line of its call. Leaves that
    are passed through have an older one.
    """
    here = {(f.file, f.line) for f in (c.site, later.site) if f is not None}
    made = {(f.file, f.line) for path in paths if (f := later.made_at(path)) is not None}
    return not made or bool(made & here)


def _as_expected(facts: Facts, path: str, fed: Fed) -> bool:
    """Did the leaf come as the result was: what it is and where it lies?"""
    found, expected = facts.leaves.get(path), fed.leaves[path]
    return found is not None and (found.shape, found.dtype, found.weak_type) == (
        expected.shape,
        expected.dtype,
        expected.weak_type,
    )


def sentence(p: Prediction) -> Message:
    """``if its result [0] is passed as state again, the next call recompiles: state.count changed from ...``"""
    result = f" {p.result}" if p.result else ""
    return message("prediction", result=result, argument=p.argument, cause=p.causes[0])
