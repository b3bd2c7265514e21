"""Collect the sizes of arguments' axes for which a function was compiled again, and propose sizes to pad to.

A size is weighted by its number of calls. If this number is unknown, a size counts once for each recorded
cache miss, because calls on the fast path record no sizes.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from jaxscope.analysis import bucketing
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.paths import common_prefix, root
from jaxscope.model import call_places, causes, growing_args, transfers
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run

FEWEST = 3  # number of different sizes from which on padding is proposed


class Varying(msgspec.Struct, frozen=True):
    """An axis of an argument that has several sizes, and the sizes to which it could be padded.

    Attributes:
      path: the path of the argument, or the common path of several arguments that have the same sizes.
      observed: {size: number of calls with it}; if ``counts`` is None, number of such calls in ``sequence``.
      choices: proposals for the sizes to pad to: one with a single size, one with two sizes, ...
      sequence: the size in each call that traced or compiled, in order of time.
      counts: for each call in ``sequence``, the number of all calls whose arguments had the same sizes, calls
        on the fast path included. Of several calls in ``sequence`` with equal sizes, the first has the number
        and the later ones have 0. None: unknown.
    """

    function: Function
    path: str
    axis: int
    observed: dict[int, int]
    choices: list[bucketing.Choice]
    sequence: tuple[int, ...] = ()
    counts: tuple[int, ...] | None = None

    @property
    def calls(self) -> int | None:
        """Return the number of all calls of ``function``, calls on the fast path included. None if ``counts``
        is None."""
        return sum(self.counts) if self.counts is not None else None


class Joint(msgspec.Struct, frozen=True):
    """A proposal to pad several axes of one argument, and its cost.

    Attributes:
      sizes: the sizes to pad to, ascending, for each axis.
      compilations: number of compilations that remain with padding, one for each padded shape.
      padding_share: fraction of all elements, over all calls, that would be padding.
    """

    sizes: list[list[int]]
    compilations: int
    padding_share: float


@cached_until_changed
def varying(run: Run) -> list[Varying]:
    """Return the axes of arguments that had at least FEWEST (3) sizes, for the user's functions that
    recompiled because a shape changed. The axes with the most sizes come first.

    Left out are axes whose size is unknown in some calls, arguments that the function itself makes longer,
    functions of which only one size varies and grows steadily from call to call, and functions that the
    program calls for each leaf of a pytree."""
    found = [v for f in run.functions.values() if f.user for v in _of_function(run, f)]
    return sorted(found, key=lambda v: (-len(v.observed), v.function.id, v.path, v.axis))


def _of_function(run: Run, f: Function) -> list[Varying]:
    """Return the entries of ``varying`` for the function ``f``."""
    every = [c for c in f.compilations if c.key is not None and not c.only_missed]
    calls = [c for c in every if c.entry == "call"]
    if not calls:  # it is only called under grad or vmap: each of these calls traces it for another size
        calls = [c for c in every if c.entry == "transform" and "traced" in c.reached]
    if any(call_places.for_each_leaf(run, c) for c in calls[-1:]):
        return []
    if not any("shape" in (causes.of(run, c)[0].kind, _other_change(run, c)) for c in calls):
        return []
    seen = grouped(((path, axis), size) for c in calls for path, axis, size in _sizes(c))
    alike: dict[tuple[int, tuple[int, ...]], list[str]] = {}
    for (path, axis), sizes in seen.items():
        if len(set(sizes)) >= FEWEST and len(sizes) == len(calls):
            alike.setdefault((axis, tuple(sizes)), []).append(path)
    found = []
    # Padding a size that grows steadily only delays the next compilation.
    if len(alike) == 1 and all(bucketing.grows_steadily(sequence) for _, sequence in alike):
        return []
    counts = _calls(f, calls) if alike else None
    own = growing_args.arguments(run, f) if alike else frozenset()
    for (axis, sequence), paths in alike.items():
        if all(root(path) in own for path in paths):
            continue
        observed: Counter[int] = Counter()
        for size, n in zip(sequence, counts or [1] * len(sequence), strict=True):
            observed[size] += n
        path = paths[0] if len(paths) == 1 else common_prefix(paths) or paths[0]
        by_size = dict(sorted(observed.items()))
        found.append(Varying(f, path, axis, by_size, bucketing.choices(by_size), sequence, counts))
    return found


def _other_change(run: Run, c: Compilation) -> str | None:
    """Return the kind (``shape``, ``dtype``, ...) of the input of call ``c`` that changed, if ``c`` was
    compiled for a function object created for this call alone (``causes.changed_input``). None if there is no
    such input."""
    found = causes.changed_input(run, c)
    return found.kind if found is not None else None


def _calls(f: Function, misses: Sequence[Compilation]) -> tuple[int, ...] | None:
    """Return, for each of ``misses`` (calls of ``f`` that missed a cache), how many calls of ``f`` in the
    same process had the same argument sizes, calls on the fast path included. Of several misses with equal
    sizes, the first gets the number and the later ones get 0. None if the numbers are unknown."""
    counts = [0] * len(misses)
    of_process: defaultdict[str, dict[tuple[tuple[str, int, int], ...], int]] = defaultdict(dict)
    for i, c in enumerate(misses):
        of_process[c.process.id].setdefault(tuple(_sizes(c)), i)
    # The numbers are known for a watched function with one size, or with other bytes for each size.
    for process, firsts in of_process.items():
        if process not in f.counted_calls:
            return None
        if len(firsts) == 1:
            counts[next(iter(firsts.values()))] = f.counted_calls[process]
            continue
        # Calls were counted by the bytes of their NumPy arguments, which must differ between the sizes.
        by_bytes = {transfers.numpy_bytes(misses[i]): i for i in firsts.values()}
        brought = f.brought.get(process)
        if not brought or len(by_bytes) < len(firsts) or not brought.keys() <= by_bytes.keys():
            return None
        for size, n in brought.items():
            counts[by_bytes[size]] = n
    return tuple(counts) if any(counts) else None


def joint(axes: Sequence[Varying]) -> list[Joint]:
    """Return proposals to pad all of ``axes``, axes of one argument, at once: the first with one size for
    each axis, the next with two sizes, and so on. An axis with fewer choices keeps its last one."""
    sequences = [v.sequence for v in axes]
    weights = axes[0].counts or [1] * len(sequences[0])
    held = sum(n * math.prod(sizes) for n, sizes in zip(weights, zip(*sequences, strict=True), strict=True))
    found = []
    for k in range(max(len(v.choices) for v in axes)):
        chosen = [v.choices[min(k, len(v.choices) - 1)].sizes for v in axes]
        padded = [
            tuple(min(b for b in to if b >= size) for to, size in zip(chosen, sizes, strict=True))
            for sizes in zip(*sequences, strict=True)
        ]
        total = sum(n * math.prod(sizes) for n, sizes in zip(weights, padded, strict=True))
        found.append(Joint(chosen, len(set(padded)), (total - held) / total if total else 0.0))
    return found


def _sizes(c: Compilation) -> list[tuple[str, int, int]]:
    """Return (path, index of the axis, size) of each axis of the arguments of ``c``, whose cache key must be
    known. Axes without a known number as size are left out."""
    assert c.key is not None
    return [
        (leaf.path, axis, size)
        for leaf in c.key.arguments
        for axis, size in enumerate(leaf.shape or ())
        if isinstance(size, int)
    ]
