"""Find the arguments that get a function's own result in the next call, like ``state`` in
``state = step(state, batch)``.

A subtree of the result matches an argument if both have the same tree of leaves, the same shapes and similar
dtypes. If a leaf of the subtree differs from the argument's leaf in dtype, weak type, sharding, committedness
or memory kind, the next call will miss one of JAX's caches.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from jaxscope.analysis.keys import Facts, LeafFacts
from jaxscope.analysis.paths import below as is_below
from jaxscope.analysis.paths import split, tokens
from jaxscope.schema.keys import OutLeaf, Sharding

_PYTHON = frozenset({"int", "float", "bool", "complex"})


class Result(msgspec.Struct, frozen=True):
    """One leaf of a compiled function's result, with its sharding.

    Attributes:
      leaf: the path and the abstract value (shape, dtype, weak type) of the leaf.
      sharding: the sharding of the array; None: unknown.
      committed: whether the array is committed to its devices; None: unknown.
    """

    leaf: OutLeaf
    sharding: Sharding | None
    committed: bool | None


class Results:
    """The leaves of a compiled function's result, which are compared with the arguments of its next call.
    ``subtrees`` and ``kinds`` are computed once, when they are first read."""

    def __init__(self, leaves: Sequence[Result] = ()) -> None:
        self.leaves = tuple(leaves)

    @functools.cached_property
    def subtrees(self) -> dict[str, dict[str, Result]]:
        """Return the subtrees of the result: path of the subtree -> (rest of the path of each leaf in it ->
        leaf). A path has at most three steps. The subtrees with the shortest paths are first, beginning with
        ``""``, the whole result."""
        return _subtrees(self.leaves)

    @functools.cached_property
    def kinds(self) -> frozenset[tuple[object, str | None]]:
        """Return the (shape, dtype) pairs that occur among the leaves."""
        return frozenset((r.leaf.shape, r.leaf.dtype) for r in self.leaves)


class Fed(msgspec.Struct, frozen=True):
    """An argument that may get a subtree of the function's own result in the next call.

    Attributes:
      argument: the name of the argument.
      result: the path of the subtree in the result; empty for the whole result.
      leaves: path in the call -> leaf of the argument, as it will be in the next call.
    """

    argument: str
    result: str
    leaves: dict[str, LeafFacts]


def fed_back(facts: Facts, results: Results) -> list[Fed]:
    """Return the arguments of a compiled call that may get subtrees of the call's result in the next call:
    subtrees with the argument's structure and shapes, and similar dtypes.

    The arguments are examined in order. Each gets the first matching subtree that does not overlap the
    subtree of an earlier argument. An argument that is a single Python scalar (a learning rate) gets only the
    result at its own position.

    Args:
      facts: the cache key of the compiled call.
      results: the leaves of the call's result.
    """
    arguments: dict[str, dict[str, LeafFacts]] = {}
    for path, leaf in facts.leaves.items():
        name, below = split(path)
        arguments.setdefault(name, {})[below] = leaf
    subtrees = results.subtrees
    leaf_paths = {r.leaf.path for r in results.leaves}
    taken: set[str] = set()
    found: list[Fed] = []
    for position, (name, leaves) in enumerate(arguments.items()):
        scalar = len(leaves) == 1 and all(leaf.type in _PYTHON for leaf in leaves.values())
        for prefix, returned in subtrees.items():
            if scalar and prefix != (f"[{position}]" if position or "" not in leaf_paths else ""):
                continue  # a loss is not the next learning rate
            if prefix in taken or is_below(prefix, taken) or any(is_below(t, {prefix}) for t in taken):
                continue
            if returned.keys() == leaves.keys() and _plausible(leaves, returned):
                taken.add(prefix)
                fed = {name + s: _as_argument(leaves[s], returned[s]) for s in leaves}
                found.append(Fed(name, prefix, fed))
                break
    return found


def same_leaves(leaves: Mapping[str, LeafFacts], results: Results) -> bool:
    """Return whether a subtree of an earlier call's result has the leaves of an argument: the same paths,
    shapes and dtypes.

    Args:
      leaves: path below the argument -> leaf.
      results: the leaves of the earlier call's result.
    """
    if any((leaf.shape, leaf.dtype) not in results.kinds for leaf in leaves.values()):
        return False
    return any(
        below.keys() == leaves.keys()
        and all(
            (leaf.shape, leaf.dtype) == (below[s].leaf.shape, below[s].leaf.dtype)
            for s, leaf in leaves.items()
        )
        for below in results.subtrees.values()
    )


def _subtrees(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    """Return the value of ``Results.subtrees``."""
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        steps = tokens(result.leaf.path)
        for n in range(min(len(steps), 3) + 1):  # a state that is passed back is rarely at a greater depth
            found.setdefault("".join(steps[:n]), {})["".join(steps[n:])] = result
    return dict(sorted(found.items(), key=lambda item: len(tokens(item[0]))))


def _plausible(leaves: dict[str, LeafFacts], below: dict[str, Result]) -> bool:
    """Return whether a subtree of the result may be an argument of the next call. All shapes must be equal. A
    single leaf must have the same dtype. Of several leaves, more than half must be integer or bool in both
    calls, or in neither.

    Args:
      leaves: the argument's leaves in this call, by path below the argument.
      below: the leaves of the subtree, by the same paths.
    """
    if any(leaves[s].shape != below[s].leaf.shape for s in leaves):
        return False
    if len(leaves) == 1:
        return all(leaves[s].dtype == below[s].leaf.dtype for s in leaves)
    # A function from integer images to normalized images does not get its result as the next images.
    kept = sum(_is_integer(leaves[s].dtype) == _is_integer(below[s].leaf.dtype) for s in leaves)
    return 2 * kept > len(leaves)


def _is_integer(dtype: str | None) -> bool:
    """Return whether a dtype is integer or bool."""
    return (dtype or "").startswith(("int", "uint", "bool"))


def _as_argument(before: LeafFacts, result: Result) -> LeafFacts:
    """Return how the argument's leaf ``before`` will be in the next call, if the leaf ``result`` of this
    call's result is passed. Facts that ``result`` does not have come from ``before``."""
    weak = result.leaf.weak_type
    committed = result.committed
    sharding = result.sharding if result.sharding is not None else before.sharding
    kind = result.sharding.memory_kind if result.sharding is not None else before.memory_kind
    was_array = before.type == "jax.Array"
    return LeafFacts(
        "jax.Array",
        result.leaf.shape,
        result.leaf.dtype,
        before.weak_type if weak is None else weak,
        sharding,
        (before.committed if was_array else None) if committed is None else committed,
        kind if was_array or kind is not None else before.memory_kind,
        before.layout,
    )
