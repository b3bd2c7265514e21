"""Sizes that one axis of an argument took, for functions that were compiled for several: what to pad to.

A size counts once for each recorded miss with it: what took the fast path left no trace of its sizes.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from jaxscope.analysis import buckets
from jaxscope.analysis.spelling import common_prefix
from jaxscope.model import causes
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run

FEWEST = 3  # sizes; with two there is nothing to choose


class Varying(msgspec.Struct, frozen=True):
    """One axis of an argument (or of several that vary alike, by their common path) and what to pad it to."""

    function: Function
    path: str
    axis: int
    observed: dict[int, int]
    choices: list[buckets.Choice]


def varying(run: Run) -> list[Varying]:
    """Of every user function the axes whose size made it compile again, the most compilations first."""
    found = [v for f in run.functions.values() if f.user for v in _of_function(run, f)]
    return sorted(found, key=lambda v: (-len(v.observed), v.function.id, v.path, v.axis))


def _of_function(run: Run, f: Function) -> list[Varying]:
    calls = [
        c for c in f.compilations if c.key is not None and c.entry == "call" and c.reached != ["fast_path"]
    ]
    if not any(cause.kind == "shape" for c in calls for cause in causes.of(run, c)[:1]):
        return []
    seen: dict[tuple[str, int], list[int]] = {}
    for c in calls:
        for path, axis, size in _sizes(c):
            seen.setdefault((path, axis), []).append(size)
    alike: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for (path, axis), sizes in seen.items():
        if len(set(sizes)) >= FEWEST and len(sizes) == len(calls):
            alike.setdefault((axis, tuple(sizes)), []).append(path)
    found = []
    for (axis, sequence), paths in alike.items():
        observed = dict(sorted(Counter(sequence).items()))
        path = paths[0] if len(paths) == 1 else common_prefix(paths) or paths[0]
        found.append(Varying(f, path, axis, observed, buckets.choices(observed)))
    return found


def _sizes(c: Compilation) -> list[tuple[str, int, int]]:
    assert c.key is not None
    return [
        (leaf.path, axis, size)
        for leaf in c.key.arguments
        for axis, size in enumerate(leaf.shape or ())
        if isinstance(size, int)
    ]
