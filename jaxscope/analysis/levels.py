"""Find which of JAX's caches is missed because of a difference between two calls, and choose the earlier call
with which a cache miss is compared.

JAX looks into four caches in turn: the C++ fast path, the trace, the lowering, the executable. A miss in one
of the last three repeats all later stages. The "level" of a difference is the first of these three that
misses because of it (trace, lower, compile), or fast_path if only the fast path misses. Measured on JAX
0.10.2 and 0.12.0.1 (``benchmarks/causes.py``): the shape is part of the trace's key, committedness only of
the lowering's, the choice among equal devices only of the executable's, the spelling of a sharding only of
the fast path's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.keys import (
    Facts,
    LeafFacts,
    differing,
    other_object,
    placed,
    same_static,
    union,
    unread,
)
from jaxscope.schema.keys import Partition, Sharding, Static

TRACE, LOWER, COMPILE, FAST_PATH = "trace", "lower", "compile", "fast_path"
LEVELS = (TRACE, LOWER, COMPILE, FAST_PATH)  # sorted by the work that a miss repeats, the most work first
ANY = "any"
UNLIKE = 2  # the distance between two different values of a fact

LEAF = {
    "shape": TRACE,
    "dtype": TRACE,
    "weak_type": TRACE,
    "memory_kind": TRACE,
    "committed": LOWER,
    "layout": LOWER,
    "type": FAST_PATH,  # only the Python type differs: the abstract values are equal
}
# The devices of the mesh that jax.set_mesh has set. The axes of that mesh are in another setting.
MESH_DEVICES = "mesh devices"
OPTIONS = {"compiler_options": COMPILE, "static_argnums": TRACE, "static_argnames": TRACE, "inline": TRACE}
STAND_IN = "jax.ShapeDtypeStruct"  # the type of an argument of an ahead-of-time lowering that is no array


def reached_level(reached: Sequence[str], phase: str | None = None) -> str:
    """Return the first stage that a call had to run because its cache missed: ``trace``, ``lower`` or
    ``compile``; ``fast_path`` if the call ran none of these stages.

    Args:
      reached: the stages that finished: ``traced``, ``lowered``, ``compiled``.
      phase: the stage that failed or is in progress: ``trace``, ``lower`` or ``compile``; None: none.
    """
    for word, level in (("traced", TRACE), ("lowered", LOWER), ("compiled", COMPILE)):
        if word in reached or phase == level:
            return level
    return FAST_PATH


def sharding_level(a: Sharding | None, b: Sharding | None) -> str:
    """Return the first of JAX's caches that misses because an argument had the sharding ``a`` and now has
    another sharding ``b``: ``trace``, ``lower`` or ``compile``; ``fast_path`` if only the fast path misses.
    None is an argument without a sharding."""
    if a is None or b is None:
        return TRACE if (a or b) and (a or b).mesh else LOWER  # type: ignore[union-attr]
    if a.mesh != b.mesh:
        return TRACE  # the abstract value contains the mesh
    explicit = any((kind or "").endswith("Explicit") for _, _, kind in a.mesh or ())
    if explicit and _arguments(a) != _arguments(b):
        return TRACE  # an array's type contains the sharding over explicit axes
    if a.kind == b.kind and _split_axes(a) == _split_axes(b) and a.mesh == b.mesh:
        if a.devices != b.devices:
            return COMPILE
        return FAST_PATH if a.spec != b.spec else LOWER
    return LOWER


def _arguments(s: Sharding) -> Partition | str | None:
    """Return the PartitionSpec of a sharding without Nones at the end, which have no effect: ``P('d')`` for
    ``P('d', None)``. Return the text of the PartitionSpec if it cannot be read, None if the sharding has
    none."""
    p = sh.partition(s)
    return s.spec if p is None else replace(p, dimensions=_split(p.dimensions))


def _split_axes(s: Sharding) -> Partition | str | None:
    """Return the PartitionSpec of a sharding without mesh axes of size 1, which split nothing, and without
    Nones at the end. Return its text if it cannot be read, None if the sharding has none."""
    p = sh.partition(s)
    if p is None:
        return s.spec
    whole = {name for name, size, _ in s.mesh or () if size == 1}
    kept = [names and tuple(n for n in names if n not in whole) for names in p.dimensions]
    return replace(p, dimensions=_split(kept))


def _split(dimensions: Sequence[tuple[str, ...] | None]) -> tuple[tuple[str, ...] | None, ...]:
    """Return ``dimensions``, as in ``Partition``, without the last dimensions that no mesh axis splits."""
    count = max((n for n, names in enumerate(dimensions, 1) if names != ()), default=0)
    return tuple(dimensions[:count])


def leaf_level(field: str, a: LeafFacts, b: LeafFacts) -> str:
    """Return the first of JAX's caches that misses because the leaves ``a`` and ``b`` of two calls differ in
    ``field`` (``shape``, ``dtype``, ``sharding``, ...): ``trace``, ``lower`` or ``compile``; ``fast_path`` if
    only the fast path misses."""
    return sharding_level(a.sharding, b.sharding) if field == "sharding" else LEAF[field]


def whole_level(name: str) -> str:
    """Return the first of JAX's caches that misses when a fact that belongs to no single argument changes:
    ``trace``, ``lower`` or ``compile``. ``name`` is the name of the fact: ``tree``, ``options.inline`` (an
    option of jit), ``context.jax_enable_x64`` (a setting of JAX), ..."""
    group, _, option = name.partition(".")
    if name == f"context.{MESH_DEVICES}":
        return COMPILE
    return OPTIONS.get(option, LOWER) if group == "options" else TRACE


def differences(before: Facts, after: Facts) -> Iterator[tuple[str, int]]:
    """Yield (level, distance) for every fact that differs between two cache keys.

    The level is the first cache that misses because of the fact: trace, lower or compile; fast_path if only
    the fast path misses. The distance is 2 (``UNLIKE``), except for static values, which may be closer
    (``_unlike``).
    """
    if before.leaves != after.leaves:
        for path in union(before.leaves, after.leaves):
            old, new = before.leaves.get(path), after.leaves.get(path)
            if old is new or old == new:
                continue
            if old is None or new is None:
                yield TRACE, UNLIKE
                continue
            for field in leaf_differences(old, new):
                yield leaf_level(field, old, new), UNLIKE
    if before.static is not after.static:
        for path in union(before.static, after.static):
            was, now = before.static.get(path), after.static.get(path)
            if was is None or now is None or not same_static(was, now):
                yield TRACE, _unlike(was, now)
    if before.nodes and after.nodes and before.nodes is not after.nodes and before.nodes != after.nodes:
        for path in union(before.nodes, after.nodes):
            # Where a leaf became None or a container, the leaf is counted already.
            leaf = (path in before.leaves) != (path in after.leaves)
            if before.nodes.get(path) != after.nodes.get(path) and not leaf:
                yield TRACE, UNLIKE
    if before.whole is not after.whole and before.whole != after.whole:
        for name in union(before.whole, after.whole):
            x, y = before.whole.get(name), after.whole.get(name)
            if x != y and not unread(name, x, y, before, after):
                yield whole_level(name), UNLIKE


def _unlike(was: Static | None, now: Static | None) -> int:
    """Return how different two unequal static values are: 0 (different objects with the same type and
    text), 1 (different types, same text or hash: ``np.int64(10)`` and ``10``) or ``UNLIKE`` (2, everything
    else)."""
    if was is None or now is None:
        return UNLIKE
    if was.type == now.type and was.repr == now.repr and other_object(was, now):
        return 0
    one_value = was.repr == now.repr or (was.hash is not None and was.hash == now.hash)
    return 1 if was.type != now.type and one_value else UNLIKE


def distance(before: Facts, after: Facts) -> dict[str, int]:
    """Count the facts that differ between two cache keys, by level: ``{"trace": 1, "lower": 0, "compile": 0,
    "fast_path": 0}`` if only the shape of one argument differs."""
    counts = dict.fromkeys(LEVELS, 0)
    for level, _ in differences(before, after):
        counts[level] += 1
    return counts


def rank(
    before: Facts, after: Facts, level: str, limit: tuple[int, int, int] | None = None
) -> tuple[int, int, int] | None:
    """Return how much an earlier key differs from the key of a cache miss: (number of differing facts whose
    level is before ``level`` in ``LEVELS``, number of other differing facts, sum of the distances of all
    differing facts). The smallest tuple belongs to the most similar key. Return None if the tuple is not
    smaller than ``limit``.

    Args:
      before, after: the earlier key and the key that missed.
      level: the level of the miss, as ``reached_level`` returns it: trace, lower, compile or fast_path.
      limit: the tuple of the most similar key so far; None: there is no such key yet.
    """
    at = LEVELS.index(level)
    earlier = later = unlikeness = 0
    if limit == (0, 0, 0):
        return None
    for missed, unlike in differences(before, after):
        if LEVELS.index(missed) < at:
            earlier += 1
        else:
            later += 1
        unlikeness += unlike
        if limit is not None and (earlier, later, unlikeness) >= limit:
            return None
    return (earlier, later, unlikeness) if limit is None or (earlier, later, unlikeness) < limit else None


def leaf_differences(old: LeafFacts, new: LeafFacts) -> list[str]:
    """Return the names of the fields whose difference between two leaves causes a miss of one of JAX's
    caches: ``shape``, ``sharding``, ... If a leaf is a ShapeDtypeStruct, only shape, dtype and weak type
    count, and the sharding if one of the two is on a mesh. Other devices do not count if ``placed_alike`` is
    True."""
    names = differing(old, new)
    if STAND_IN in (old.type, new.type):
        # Without a sharding it is lowered for one device: its abstract value then has no mesh.
        on_mesh = any(x.sharding is not None and x.sharding.mesh for x in (old, new))
        return [n for n in names if n in ("shape", "dtype", "weak_type") or (n == "sharding" and on_mesh)]
    if "sharding" in names and placed_alike(old, new):
        names.remove("sharding")
    return names


def placed_alike(old: LeafFacts, new: LeafFacts) -> bool:
    """Return whether both leaves are uncommitted arrays on one device each, but on different devices. This
    difference causes no cache miss, because JAX may move uncommitted arrays."""
    a, b = old.sharding, new.sharding
    return (
        a is not None
        and b is not None
        and old.committed is False
        and new.committed is False
        and placed(a) != placed(b)
        and a.kind == b.kind == "SingleDeviceSharding"
    )


def nearest(
    after: Facts,
    earlier: Sequence[Facts],
    level: str,
    other_shapes: Callable[[int], bool] = lambda index: False,
) -> int | None:
    """Return the index of the earlier key that differs least from ``after``; of several equally near keys,
    the latest. Keys of the same or an unknown function object are preferred to all others. Return None if
    ``earlier`` is empty.

    Args:
      after: the key that missed.
      earlier: the keys to choose from, the latest first.
      level: the level of the miss, as ``reached_level`` returns it: trace, lower, compile or fast_path.
      other_shapes: takes an index in ``earlier``; returns whether the shapes of this key are known to differ
        from those of ``after``. Such keys are skipped once a key with a single differing fact is found.
    """
    own = after.whole.get("function_object")
    for same_object in (True, False):
        best: int | None = None
        fewest: tuple[int, int, int] | None = None
        for index, key in enumerate(earlier):
            if fewest is not None and fewest <= (0, 1, UNLIKE) and other_shapes(index):
                continue  # at least one fact differs, so this key is no nearer than the one already found
            if same_object and own is not None and key.whole.get("function_object", own) != own:
                continue
            distances = rank(key, after, level, fewest)
            if distances is not None:
                best, fewest = index, distances
                if distances == (0, 0, 0):
                    break
        if best is not None:
            return best
    return None
