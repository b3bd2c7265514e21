"""Find the origin of a collective: the user's program (a psum in a shard_map) or XLA's partitioner.

JAX writes the primitive at the end of ``op_name``. If it is one of JAX's collective primitives, below a
``shard_map`` or a ``pmap``, the collective was in the traced program: the user wrote it, or differentiation
added it as the transpose of another collective. If it is anything else (``dot_general``, ``reduce_sum``,
``sharding_constraint``, the name of an argument), the partitioner inserted the collective for this operation.

Both rules were checked on JAX 0.8.2, 0.10.2 and 0.12.0.1 for every collective of ``jax.lax`` under shard_map
(automatic axes too), pmap, grad, and for partitioned matmuls, sums, reshapes, rolls, constraints and output
shardings. For example, ``psum`` is ``jit(f)/shard_map/psum_invariant``, ``psum_scatter`` is
``reduce_scatter``, the sum over a contracted dimension is ``jit(f)/dot_general``. A collective that changes
the sharding of an output has no ``op_name`` at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# Names of JAX's collective primitives (jax.lax.parallel), 0.8 to 0.12.
PRIMITIVES = frozenset(
    {
        *("psum", "psum2", "psum_invariant", "pmax", "pmin", "pand", "por", "unreduced_psum"),
        *("all_gather", "all_gather_invariant", "all_gather_reduced", "pgather"),
        *("reduce_scatter", "psum_scatter", "unreduced_reduce_scatter"),
        *("all_to_all", "ragged_all_to_all", "ppermute", "pshuffle", "pbroadcast", "psend", "precv"),
    }
)
_MANUAL = re.compile(r"(?:^|[/(])(?:shard_map|pmap|xmap)(?:$|[/()])")
# The first is in the frontend attributes, the second in the backend configuration of a GPU's instruction.
_GENERATED = ('is_spmd_generated="true"', '"is_spmd_generated":true')
_SUFFIX = re.compile(r"(?:\.\d+|\.clone|\.remat)+$")


def is_manual(op_name: str) -> bool:
    """Return whether the operation with this ``op_name`` is inside a shard_map or a pmap."""
    return _MANUAL.search(op_name) is not None


def primitive(op_name: str) -> str:
    """Return the last component of an ``op_name``, the JAX primitive: ``jit(f)/shard_map/psum`` -> ``psum``.
    If several names are joined by ``;``, the first counts."""
    return op_name.partition(";")[0].rpartition("/")[2].partition("[")[0]


def is_generated(tail: str) -> bool:
    """Return whether an instruction's text states that the SPMD partitioner inserted the instruction. XLA
    writes this since JAX 0.12. ``tail`` is the part of the instruction's line after ``opcode(``."""
    return any(mark in tail for mark in _GENERATED)


def origin(
    op_name: str | None, name: str, may_be_manual: Callable[[], bool], *, generated: bool = False
) -> str | None:
    """Return the origin of a collective: ``asked`` (the user's program), ``inserted`` (XLA's SPMD
    partitioner) or None (unknown).

    Args:
      op_name: the ``op_name`` in the collective's own metadata; None: there is none.
      name: the name of the instruction; XLA names a collective of the program after its primitive
        (``psum.7``).
      may_be_manual: a function that returns whether the program may have a shard_map or a pmap; called only
        without ``op_name``.
      generated: whether the text states that the partitioner inserted the collective.
    """
    if generated:
        return "inserted"
    if op_name:
        return "asked" if primitive(op_name) in PRIMITIVES and is_manual(op_name) else "inserted"
    if _SUFFIX.sub("", name) in PRIMITIVES:
        return "asked"
    return None if may_be_manual() else "inserted"
