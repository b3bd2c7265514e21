"""A compilation's results beside its arguments: what the next call will be like if they are fed back.

Pure. A result feeds an argument where both have the same tree of leaves and the same shapes; what then
differs (dtype, weak type, sharding, committedness, memory kind) is what will miss.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import msgspec

from jaxscope.analysis.keys import Facts, LeafFacts
from jaxscope.analysis.paths import split, tokens
from jaxscope.schema.keys import OutLeaf, Sharding

_PYTHON = frozenset({"int", "float", "bool", "complex"})


class Result(msgspec.Struct, frozen=True):
    """One leaf of what a compiled function returns, with where it will lie."""

    leaf: OutLeaf
    sharding: Sharding | None
    committed: bool | None


class Results:
    """The leaves of what a compiled function returns; ``subtrees`` is made when it is needed, once."""

    def __init__(self, leaves: Sequence[Result] = ()) -> None:
        self.leaves = tuple(leaves)

    @functools.cached_property
    def subtrees(self) -> dict[str, dict[str, Result]]:
        """By path of the node: its leaves by the path below it. Larger subtrees first."""
        return _subtrees(self.leaves)

    @functools.cached_property
    def kinds(self) -> frozenset[tuple[object, str | None]]:
        """The shapes and dtypes among the leaves."""
        return frozenset((r.leaf.shape, r.leaf.dtype) for r in self.leaves)


class Fed(msgspec.Struct, frozen=True):
    """Argument ``argument`` is what the results under ``result`` become in the next call."""

    argument: str
    result: str
    leaves: dict[str, LeafFacts]  # the argument's leaves as they will be


def fed_back(facts: Facts, results: Results) -> list[Fed]:
    """Which arguments the results can become, and their leaves then.

    Every argument takes the first result subtree of its structure that no argument before it took; a lone
    Python scalar (a learning rate, a temperature) only the result at its own position.
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
                continue  # a learning rate is no loss
            if any(prefix.startswith(t) or t.startswith(prefix) for t in taken):
                continue
            if returned.keys() == leaves.keys() and _plausible(leaves, returned):
                taken.add(prefix)
                fed = {name + s: _as_argument(leaves[s], returned[s]) for s in leaves}
                found.append(Fed(name, prefix, fed))
                break
    return found


def same_leaves(leaves: Mapping[str, LeafFacts], results: Results) -> bool:
    """Is there a subtree of the results whose leaves are these, in shape and dtype? ``leaves``: by the path below."""
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
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        steps = tokens(result.leaf.path)
        for n in range(min(len(steps), 3) + 1):  # what is fed back is rarely deeper than (state, (aux, ...))
            found.setdefault("".join(steps[:n]), {})["".join(steps[n:])] = result
    return dict(sorted(found.items(), key=lambda item: len(tokens(item[0]))))


def _plausible(leaves: dict[str, LeafFacts], below: dict[str, Result]) -> bool:
    """The same shapes; for a single leaf also the same dtype: a loss is no counter, a cast no step.

    Of several, most are as integer or as floating as before: normalised images are no images again.
    """
    if any(leaves[s].shape != below[s].leaf.shape for s in leaves):
        return False
    if len(leaves) == 1:
        return all(leaves[s].dtype == below[s].leaf.dtype for s in leaves)
    kept = sum(_whole(leaves[s].dtype) == _whole(below[s].leaf.dtype) for s in leaves)
    return 2 * kept > len(leaves)


def _whole(dtype: str | None) -> bool:
    return (dtype or "").startswith(("int", "uint", "bool"))


def _as_argument(before: LeafFacts, result: Result) -> LeafFacts:
    """The result as the argument it becomes; what is not known stays as it was."""
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
