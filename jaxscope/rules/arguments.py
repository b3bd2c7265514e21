"""JX101 to JX106, JX114: array arguments and their containers that are not the same from call to call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise

from jaxscope.analysis import buckets
from jaxscope.analysis.spelling import below, root
from jaxscope.rules.recompiles import Group, container, recompile_rule
from jaxscope.schema.findings import NOTE, WARNING

PLACES = 4  # of a size each: more are no few data sets
CALLS_A_SIZE = 10  # of a size that pays
_AXES = re.compile(r"\baxis (\d+): (\d+)\b")
_AVAL = re.compile(r"\[(\d+(?:,\d+)*)\]")


FEW = "pad it to a few sizes, with a mask for what is padding (the report lists sizes to choose from)"


def _weight(group: Group) -> str:
    return NOTE if _settled(group) or _a_size_each(group) else WARNING


@recompile_rule("JX101", "changing-shape", WARNING, "shape", "rank", severity_of=_weight)
def changing_shape(group: Group) -> str | None:
    cause = group.cause
    if group.lengthened:
        return None
    if cause.kind == "rank":
        return f"pass {cause.path or 'it'} with the same number of axes in every call"
    if _a_size_each(group):
        return (
            "nothing, where each of these calls has a size of its own (a training set and a test set): a "
            "program each;"
            " else pad it to one size, with a mask for what is padding"
        )
    seen = Counter(_shapes(group))
    if max(len(seen), len({text for c in group.causes for text in (c.before, c.after)})) > 2:
        if _settled(group):
            return f"nothing, if these are the sizes that you pad to; else {FEW}"
        if _creeps(_shapes(group)):
            return (
                f"make {cause.path or 'it'} as long as it will ever be before the loop, write into it with"
                " .at[...].set or jax.lax.dynamic_update_slice, and mask what is not written yet"
            )
        return FEW
    before, after = _dimensions(cause.before), _dimensions(cause.after)
    if None in (before, after) or len(before or ()) != len(after or ()):
        return "pad it to one size, with a mask for what is padding"
    assert before is not None and after is not None
    if all(b >= a for b, a in zip(before, after, strict=True)) and seen[after] <= max(1, seen[before]):
        return "pad the odd batch to the usual size, with a mask for what is padding, or drop it"
    # The larger came later, or the smaller one came often: no sign that one of them is odd.
    larger = [str(max(b, a)) for b, a in zip(before, after, strict=True)]
    size = _folded(cause.after, larger) or f"[{','.join(larger)}]"
    return f"pad it to the larger size, {size}, in every call, with a mask for what is padding"


@recompile_rule("JX114", "lengthened-argument", WARNING, "shape")
def lengthened_argument(group: Group) -> str | None:
    if not group.lengthened:
        return None
    return (
        f"make {root(group.cause.path or 'it')} as long as it will ever be before the loop, write into it with"
        " jax.lax.dynamic_update_slice, and mask what is not written yet"
    )


def _settled(group: Group) -> bool:
    """Are they few sizes, each of many calls, and no new one for the latter half of all calls? Where calls are counted."""
    last = group.compilations[-1]
    calls, then = group.function.counted_calls.get(last.process.id), last.calls_then
    sizes = len(set(_shapes(group)))
    return (
        calls is not None and then is not None
        and sizes <= buckets.MOST and calls >= max(2 * then, CALLS_A_SIZE * sizes)
    )  # fmt: skip


def _a_size_each(group: Group) -> bool:
    """Does each of the places that call the function pass one size, and are there few of them?"""
    sizes: dict[Hashable, set[Hashable]] = {}
    path = group.cause.path
    for c in group.function.compilations:
        if c.key is None or c.entry == "nested" or c.missed is None or c.site is None:
            return False
        leaves = [(leaf.path, leaf.shape) for leaf in c.key.arguments]
        shapes = tuple(x for x in leaves if path is None or x[0] == path or below(x[0], {path}))
        lines = [(f.file, f.line) for f in (c.site, *c.missed.stack)]
        sizes.setdefault((c.process.id, c.missed.column, *lines), set()).add(shapes)
    return 1 < len(sizes) <= PLACES and all(len(shapes) == 1 for shapes in sizes.values())


def _creeps(shapes: list[tuple[int, ...]]) -> bool:
    """Does one axis, and no other, grow by as much in every call?"""
    if len({len(shape) for shape in shapes}) != 1:
        return False
    changing = [sizes for sizes in zip(*shapes, strict=True) if len(set(sizes)) > 1]
    return len(changing) == 1 and buckets.creeps(changing[0])


def _shapes(group: Group) -> list[tuple[int, ...]]:
    """Of the argument in all calls that were recorded, where it is one array."""
    return [
        tuple(n for n in leaf.shape if isinstance(n, int))
        for c in group.function.compilations
        if c.key is not None
        for leaf in c.key.arguments
        if leaf.path == group.cause.path and leaf.shape is not None
    ]


def _dimensions(aval: str | None) -> tuple[int, ...] | None:
    """``(8, 14)`` of ``f32[8,14]``, ``(14,)`` of ``axis 1: 14``; None where it is neither, or has no numbers."""
    found = _AVAL.search(aval or "")
    numbers = found[1].split(",") if found is not None else [n for _, n in _AXES.findall(aval or "")]
    return tuple(map(int, numbers)) or None


def _folded(text: str | None, sizes: list[str]) -> str | None:
    """``axis 1: 16`` for a cause of several leaves, which names the axes that differ; None for that of one."""
    axes = [axis for axis, _ in _AXES.findall(text or "")]
    return ", ".join(f"axis {axis}: {n}" for axis, n in zip(axes, sizes, strict=False)) or None


@recompile_rule("JX102", "changing-dtype", WARNING, "dtype")
def changing_dtype(group: Group) -> str:
    where = f"{group.cause.path} " if group.cause.path else "them "
    return f"give {where}one dtype in every call: x.astype(...), or 1.0 where 1 was written"


@recompile_rule("JX103", "weak-type", WARNING, "weak_type")
def weak_type(group: Group) -> str:
    return (
        f"start {group.cause.path or 'them'} as a typed array: {typed(group.cause.after, group.cause.before)}"
    )


def typed(*avals: str | None) -> str:
    """``jnp.float32(...)`` for the dtype spelled in an aval."""
    for aval in avals:
        for short, name in (("bf16", "bfloat16"), ("f16", "float16"), ("f32", "float32"), ("f64", "float64"),
                            ("i32", "int32"), ("i64", "int64"), ("u32", "uint32"), ("c64", "complex64")):  # fmt: skip
            if short in (aval or ""):
                return f"jnp.{name}(...)"
    return "jnp.asarray(x, dtype)"


@recompile_rule("JX104", "changing-key-type", WARNING, "prng")
def changing_key_type(group: Group) -> str:
    return "make all keys the same way: jax.random.key(seed), with one impl"


@recompile_rule("JX105", "changing-tree", WARNING, "tree")
def changing_tree(group: Group) -> str:
    cause = group.cause
    if cause.before and cause.after and "None" in (cause.before, cause.after):
        return f"pass an array for {cause.path} in every call, or None in every call"
    if _grows(group):
        return "keep one structure: an array of the final size in place of a collection that grows"
    return "pass the same containers with the same keys in every call"


def _grows(group: Group) -> bool:
    """Did each call bring more in one container than the one before?"""
    inside = container(group.cause)
    if len(group.compilations) < 2 or inside is None:
        return False
    counts = [
        sum(below(leaf.path, {inside}) for leaf in c.key.arguments)
        for c in group.compilations
        if c.key is not None
    ]
    return all(a < b for a, b in pairwise(counts))


@recompile_rule("JX106", "call-form", NOTE, "call_form")
def call_form(group: Group) -> str:
    return f"pass {group.cause.path or 'the arguments'} the same way in every call"
