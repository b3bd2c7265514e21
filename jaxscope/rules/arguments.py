"""Rules JX101 to JX106 and JX114: functions that recompile because the type of an array argument, the
container of the arrays, or the way to pass them (by position or by name) changes between calls."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Hashable
from itertools import pairwise

from jaxscope.analysis import bucketing, loop_calls
from jaxscope.analysis.paths import below, root
from jaxscope.model.call_places import PLACES, one_for_each_place
from jaxscope.model.records import Compilation
from jaxscope.rules.recompiles import (
    UNNAMED,
    Group,
    container,
    float_instead,
    is_deep_weak_type,
    is_none_at_times,
    of_optimizer,
    recompile_rule,
)
from jaxscope.schema.causes import ArrayType, AxisSizes, Cause, Container, StaticValue, TreeText, Value
from jaxscope.schema.findings import NOTE, WARNING, Fix
from jaxscope.schema.keys import Key
from jaxscope.schema.messages import Message, Names, message

SMALLEST = 8  # a smaller power of two may be a size by chance
ROUND = 8  # two sizes look chosen if both are multiples of it, and at least twice as large
WEAK_LEAVES = 2  # weakly typed arrays that the advice names
CALLS_A_SIZE = 10  # with this many calls for each size, the compilations are worth their time
# calls in a function that needs its padding to be a certain value: solving equations, sorted times
SOLVES = re.compile(
    r"\b(?:linalg\.(?:solve|inv|lstsq|det|slogdet|cholesky)|cholesky|cho_solve|solve_triangular)\b"
)
OF_TIMES = re.compile(r"\b(?:odeint|diffeqsolve|SaveAt|interp|searchsorted)\b")
_NUMBERS = {"int", "float", "complex"}
_TYPED = {
    "bool",
    *("bfloat16", "float16", "float32", "float64", "complex64", "complex128"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}


def _severity(group: Group) -> str:
    """Return the severity of the finding about ``group``, calls that recompiled for another shape: NOTE if no
    more shapes are expected (``_settled``), or if the number of dimensions changed and the calls are not one
    for each leaf of a pytree; else WARNING."""
    return NOTE if _settled(group) or (group.cause.kind == "rank" and not group.of_leaves) else WARNING


@recompile_rule("JX101", "changing-shape", WARNING, "shape", "rank", severity_of=_severity)
def changing_shape(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled for another shape; None if the sizes seem intended (one for
    training, one for tests), or JX114 has the advice."""
    cause = group.cause
    if group.of_leaves:
        if group.of_layers:
            words = message("fix-jit-over-layers", function=group.name, line=group.calls[-1].site)
            return Fix(words, "jit", {"function": group.name})
        return Fix(message("fix-jit-over-leaves", function=group.name), "jit", {"function": group.name})
    if group.lengthened or (
        cause.kind == "shape" and (_a_size_each(group) or _chosen(group) or _in_phases(group))
    ):
        return None  # for example a training set and a test set, each with its own program
    if cause.kind == "rank":
        path = cause.path or UNNAMED
        words = message("fix-same-rank", path=path)
        if not _differ_by_ones(cause):
            words = message("fix-same-shape", path=path)
        return Fix(words, "same_rank", {"path": cause.path})
    shapes = _shapes(group)
    seen = Counter(shapes)
    if max(len(seen), len({value for c in group.causes for value in (c.before, c.after)})) > 2:
        if _settled(group):
            return Fix(message("fix-settled-sizes"), "pad", {"path": cause.path})
        if (full := _full_batch(group)) is not None:
            words = message(
                "fix-odd-batches" if _returns_a_state(group.calls[-1]) else "fix-pad-odd-batch",
                path=cause.path or UNNAMED,
                size=_size(cause.before, full),
            )
            return Fix(words, "pad", {"path": cause.path, "sizes": full})
        if _creeps(shapes):
            words = message("fix-one-length", path=cause.path or UNNAMED, how=_padding(group))
            return Fix(words, "preallocate", {"path": cause.path})
        return Fix(message("fix-few-sizes", path=cause.path or UNNAMED), "pad", {"path": cause.path})
    before, after = _dimensions(cause.before), _dimensions(cause.after)
    if before is None or after is None or len(before) != len(after):
        return Fix(message("fix-one-size", path=cause.path or UNNAMED), "pad", {"path": cause.path})
    of_a_batch = before[:1] > after[:1] and before[1:] == after[1:]
    if of_a_batch and seen[after] <= max(1, seen[before]):
        words = message(
            "fix-odd-batch" if _returns_a_state(group.calls[-1]) else "fix-pad-odd-batch",
            path=cause.path or UNNAMED,
            size=_size(cause.before, list(before)),
        )
        return Fix(words, "pad", {"path": cause.path, "sizes": list(before)})
    # The larger size came later, the smaller one came often, or it is the size of a later axis (a length).
    larger = [max(b, a) for b, a in zip(before, after, strict=True)]
    words = message("fix-larger-size", path=cause.path or UNNAMED, size=_size(cause.after, larger))
    return Fix(words, "pad", {"path": cause.path, "sizes": larger})


def _returns_a_state(c: Compilation) -> bool:
    """Return whether the call ``c`` returns an array of the type of one of its arguments, such as updated
    parameters. An evaluation does not: it should count each example. True if the results are unknown."""
    if c.traced is None or not c.traced.out or c.key is None:
        return True
    arguments = {(leaf.shape, leaf.dtype) for leaf in c.key.arguments if leaf.shape}
    return any((leaf.shape, leaf.dtype) in arguments for leaf in c.traced.out)


def _full_batch(group: Group) -> list[int] | None:
    """Return the shape from which each call of ``group`` differs, if it is the same for all calls, and each
    call has fewer rows: batches whose last one is smaller, with several sizes of the last one. Else None."""
    changes = [(_dimensions(c.before), _dimensions(c.after)) for c in group.causes]
    full = changes[0][0]
    smaller = all(
        full and after and before == full and after[1:] == full[1:] and after[0] < full[0]
        for before, after in changes
    )
    return list(full) if full and smaller else None


def _differ_by_ones(cause: Cause) -> bool:
    """Return whether the two shapes that ``cause`` compares differ only in axes of size 1: ``f32[1,8]`` and
    ``f32[8]``. If a shape is unknown, the result is True.
    """
    shapes = [
        v.shape for v in (cause.before, cause.after) if isinstance(v, ArrayType) and v.shape is not None
    ]
    return len(shapes) < 2 or len({tuple(n for n in shape if n != 1) for shape in shapes}) == 1


@recompile_rule("JX114", "lengthened-argument", WARNING, "shape")
def lengthened_argument(group: Group) -> Fix | None:
    """Return the advice for an argument that the function returns longer and gets back; else None."""
    if not group.lengthened:
        return None
    path = root(group.cause.path) if group.cause.path else None
    words = message("fix-preallocate", path=path or UNNAMED, how="jax.lax.dynamic_update_slice")
    return Fix(words, "preallocate", {"path": path})


def _padding(group: Group) -> Message:
    """Return how to keep the padding of an argument of ``group`` out of the results, from the functions that
    the file of the jitted function calls."""
    text = group.source(group.function.seen.file or "") or ""
    if SOLVES.search(text):
        return message("pad-with-identity")
    return message("pad-with-last" if OF_TIMES.search(text) else "pad-and-mask")


def _settled(group: Group) -> bool:
    """Return whether no more recompiles for new sizes of the argument are expected: it had at most 6 shapes,
    the function had at least 10 calls for each, and the last recompile of ``group`` was in the first half of
    all calls. False if calls are not counted."""
    last = group.compilations[-1]
    calls, then = group.function.counted_calls.get(last.process.id), last.calls_then
    if calls is None or then is None:
        return False
    sizes = len(set(_shapes(group)))
    return sizes <= bucketing.MOST and calls >= max(2 * then, CALLS_A_SIZE * sizes)


def _chosen(group: Group) -> bool:
    """Return whether the user seems to have chosen the shapes of the argument that made the calls in
    ``group`` recompile. There must be 2 to 6 shapes whose changing axes are powers of two from 8 on, or 2
    shapes whose changing axes are multiples of 8 from 16 on, or of 100. Of two shapes, the later must be
    larger."""
    shapes = list(dict.fromkeys(_shapes(group) or _sizes_of_axes(group)))
    if not 2 <= len(shapes) <= bucketing.MOST or len({len(shape) for shape in shapes}) > 1:
        return False
    changing = [sizes for sizes in zip(*shapes, strict=True) if len(set(sizes)) > 1]
    powers = all(n >= SMALLEST and n & (n - 1) == 0 for sizes in changing for n in sizes)
    if len(shapes) > 2:
        return powers
    all_sizes = [n for sizes in changing for n in sizes]
    chosen = powers or any(
        all(n >= least and n % step == 0 for n in all_sizes)
        for least, step in ((2 * ROUND, ROUND), (100, 100))
    )
    # A smaller later size may be that of an odd last batch.
    return chosen and all(a < b for a, b in changing)


def _sizes_of_axes(group: Group) -> list[tuple[int, ...]]:
    """Return the sizes before and after each recompile of ``group``, if the same axes of several arrays
    changed: ``[(14,), (15,)]`` if axis 1 changed from 14 to 15. The list is empty for other changes; an entry
    with an unknown size is left out."""
    values = [v for c in group.causes for v in (c.before, c.after) if isinstance(v, AxisSizes)]
    return [sizes for v in values if (sizes := _dimensions(v)) is not None]


def _in_phases(group: Group) -> bool:
    """Return whether an inner loop passes one size of the changed argument, and only an outer loop changes
    the argument. The source of the latest call in ``group`` decides. False for more than PLACES shapes, for
    ``next(batches)`` (a call or an attribute), or if the source does not show such loops."""
    c, path = group.calls[-1], group.cause.path
    if c.site is None or c.missed is None or path is None or len(set(_shapes(group))) > PLACES:
        return False
    f = group.function.seen
    found = loop_calls.find(group.source(c.site.file), c.site.line, c.missed.column, f.name)
    passed = loop_calls.argument(found.call, f.signature, root(path)) if found is not None else None
    if found is None or passed is None or found.outer is None:
        return False
    if any(isinstance(n, (ast.Call, ast.Attribute)) for n in ast.walk(passed)):
        return False  # it may be another value in each iteration: next(batches)
    return not loop_calls.names_read([passed]) & loop_calls.names_set(found.repeats)


def _a_size_each(group: Group) -> bool:
    """Return whether a few lines call the function of ``group``, each always with the same shapes of the
    changed argument (of all arguments, if its path is unknown)."""
    path = group.cause.path

    def sizes(key: Key) -> Hashable:
        leaves = [(leaf.path, leaf.shape) for leaf in key.arguments]
        return tuple(x for x in leaves if path is None or x[0] == path or below(x[0], {path}))

    return one_for_each_place(group.function, sizes)


def _creeps(shapes: list[tuple[int, ...]]) -> bool:
    """Return whether exactly one axis differs between ``shapes``, those of an argument in successive calls,
    and grows by a fixed amount, with few restarts (``bucketing.grows_steadily``):
    ``[(8, 1), (8, 2), (8, 3), (8, 4)]``."""
    if len({len(shape) for shape in shapes}) != 1:
        return False
    changing = [sizes for sizes in zip(*shapes, strict=True) if len(set(sizes)) > 1]
    return len(changing) == 1 and bucketing.grows_steadily(changing[0])


def _shapes(group: Group) -> list[tuple[int, ...]]:
    """Return the shape of the argument that made the calls in ``group`` recompile, without symbolic
    dimensions, for each recorded call of the function. A call is left out if this argument is a container of
    arrays or has an unknown shape."""
    return [
        tuple(n for n in leaf.shape if isinstance(n, int))
        for c in group.function.compilations
        if c.key is not None
        for leaf in c.key.arguments
        if leaf.path == group.cause.path and leaf.shape is not None
    ]


def _dimensions(value: Value | None) -> tuple[int, ...] | None:
    """Return the sizes in ``value``, the type of an argument before or after the change that caused a
    recompile: ``(8, 14)`` for ``f32[8,14]``, ``(14,)`` for ``axis 1: 14``. None if ``value`` has no sizes, or
    a size is not known."""
    sizes: tuple[int | str, ...] = ()
    if isinstance(value, ArrayType):
        sizes = value.shape or ()
    elif isinstance(value, AxisSizes):
        sizes = tuple(n for _, n in value.sizes)
    known = tuple(n for n in sizes if isinstance(n, int))
    return known if known and len(known) == len(sizes) else None


def _size(value: Value | None, sizes: list[int]) -> str:
    """Return ``sizes`` as text: ``16 on axis 1`` if ``value`` has the sizes of single axes, else ``[8,16]``.
    ``value`` is the type of the argument from which the sizes were taken."""
    if isinstance(value, AxisSizes):
        return ", ".join(f"{n} on axis {axis}" for (axis, _), n in zip(value.sizes, sizes, strict=True))
    return f"[{','.join(map(str, sizes))}]"


@recompile_rule("JX102", "changing-dtype", WARNING, "dtype")
def changing_dtype(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled for another dtype; None if each calling line has its own
    precision."""
    path = group.cause.path
    if _a_precision_each(group):
        return None  # for example a model in bfloat16 and one in float32
    if group.came_back and path is not None:
        words = message("fix-return-same-dtype", path=root(path), function=group.name)
        return Fix(words, "astype", {"path": path})
    values = [v for v in (group.cause.before, group.cause.after) if isinstance(v, ArrayType)]
    scalar = any(v.shape == () for v in values)
    number = message("or-write-a-float", new=float_instead(group, 1)) if scalar else None
    dtype = _wider(dtype_of(group.cause.before), dtype_of(group.cause.after))
    to = repr(dtype) if dtype is not None else "..."
    words = message("fix-one-dtype", path=path or UNNAMED, dtype=to, number=number)
    return Fix(words, "astype", {"path": path})


def _wider(a: str | None, b: str | None) -> str | None:
    """Return that of two dtypes that has more bits, or of an integer and a floating-point number the latter.
    Return None for other dtypes of two kinds."""
    kinds = [(re.sub(r"\d+", "", name), int(re.sub(r"\D+", "", name) or 0)) for name in (a or "", b or "")]
    (kind, bits), (other, others) = kinds
    if kind in ("int", "uint") and "float" in other:
        return b
    if other in ("int", "uint") and "float" in kind:
        return a
    alike = kind == other or {kind, other} == {"float", "bfloat"}
    return (a if bits >= others else b) if alike and bits else None


def _a_precision_each(group: Group) -> bool:
    """Return whether a few lines call the function of ``group``, each always with the same floating-point
    dtypes. There must be several such sets of dtypes, and every floating-point argument must have another
    dtype in each."""

    def floats(key: Key) -> tuple[tuple[str, str | None], ...]:
        return tuple((leaf.path, leaf.dtype) for leaf in key.arguments if "float" in (leaf.dtype or ""))

    if not one_for_each_place(group.function, floats):
        return False
    keys = {floats(c.key) for c in group.function.compilations if c.key is not None}
    dtypes = [dict(key) for key in keys]
    return len(keys) > 1 and all(
        len({d.get(path) for d in dtypes}) == len(keys) for path in set().union(*dtypes)
    )


@recompile_rule("JX103", "weak-type", WARNING, "weak_type")
def weak_type(group: Group) -> Fix:
    path, dtype = group.cause.path, dtype_of(group.cause.after, group.cause.before)
    equinox = any(w.startswith("equinox.") for w in group.function.seen.wrappers)
    convert = (
        "jnp.asarray(x, x.dtype) if eqx.is_array(x) else x"
        if equinox
        else "jnp.asarray(x, jnp.result_type(x))"
    )
    if path is not None and is_deep_weak_type(group.cause):
        changed = _weak_leaves(group)
        weak = tuple(leaf for leaf in changed if below(leaf, {path}))
        parameters = [leaf for leaf in changed if root(leaf) == root(path)]
        kept = (leaf for leaf in changed if any(of_optimizer(leaf, parameter) for parameter in parameters))
        copies = tuple(dict.fromkeys(map(root, kept)))
        then = message("then-create-copies", copies=Names(copies)) if copies else None
        leaves = message("weak-leaves", paths=Names(weak, WEAK_LEAVES)) if weak else None
        words = message("fix-typed-leaves", root=root(path), leaves=leaves, convert=convert, copies=then)
        return Fix(words, "typed_array", {"path": path, "dtype": dtype})
    words = message("fix-typed-array", path=path or UNNAMED, typed=typed(path, dtype))
    return Fix(words, "typed_array", {"path": path, "dtype": dtype})


def _weak_leaves(group: Group) -> tuple[str, ...]:
    """Return the paths of the arrays that were weakly typed in some, but not in all, of the recorded calls of
    the function of ``group``."""
    found: dict[str, set[bool]] = {}
    for c in group.function.compilations:
        for leaf in c.key.arguments if c.key is not None else ():
            if leaf.path:
                found.setdefault(leaf.path, set()).add(bool(leaf.weak_type))
    return tuple(name for name, weak in found.items() if len(weak) > 1)


def dtype_of(*values: Value | None) -> str | None:
    """Return the dtype of the first value that is an array with a known dtype; None if there is none."""
    return next((v.dtype for v in values if isinstance(v, ArrayType) and v.dtype is not None), None)


def typed(path: str | None, dtype: str | None) -> str:
    """Return code that converts the value at ``path`` (None: ``x``) to an array of ``dtype``:
    ``jnp.asarray(step, 'int32')``. For None and for a dtype that is not in ``_TYPED``, such as that of random
    keys, the text has ``dtype`` in its place."""
    return f"jnp.asarray({path or 'x'}, {repr(dtype) if dtype in _TYPED else 'dtype'})"


@recompile_rule("JX104", "changing-key-type", WARNING, "prng")
def changing_key_type(group: Group) -> Fix:
    return Fix(message("fix-one-key-type"), "random_key", {"path": group.cause.path})


@recompile_rule("JX105", "changing-tree", WARNING, "tree")
def changing_tree(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled because a pytree changed its structure; None if each
    calling line has its own structure."""
    cause = group.cause
    if (number := _number_or_array(cause)) is not None:
        return number
    if _reordered(cause):
        return Fix(message("fix-same-order", path=cause.path), "same_tree", {"path": cause.path})
    if is_none_at_times(cause):
        return Fix(message("fix-none-or-array", path=cause.path), "same_tree", {"path": cause.path})
    if _grows(group):
        return Fix(message("fix-growing-tree"), "preallocate", {"path": container(cause)})
    if one_for_each_place(group.function, lambda key: tuple(leaf.path for leaf in key.arguments)):
        return None  # for example the parameters of two models
    added_or_removed = {c.path for c in group.causes if c.count == 1 and None in (c.before, c.after)}
    if cause.path is not None and added_or_removed == {c.path for c in group.causes} == {cause.path}:
        return Fix(message("fix-always-or-never", path=cause.path), "same_tree", {"path": cause.path})
    return Fix(message("fix-same-tree"), "same_tree", {"path": cause.path})


def _reordered(cause: Cause) -> bool:
    """Return whether the two calls that ``cause`` compares differ only in the order of a container's keys."""
    before, after = cause.before, cause.after
    if isinstance(before, TreeText):
        return before.order
    if not isinstance(before, Container) or not isinstance(after, Container):
        return False
    one, other = (c.container.partition(" ") for c in (before, after))
    return (
        bool(one[2])
        and one[0] == other[0]
        and sorted(one[2].strip("[]").split(", ")) == sorted(other[2].strip("[]").split(", "))
    )


def _number_or_array(cause: Cause) -> Fix | None:
    """Return the advice to always pass an array, if an argument is a Python number in one of the two calls
    that ``cause`` compares, and an array without dimensions in the other; else None."""
    before, after = cause.before, cause.after
    if isinstance(before, ArrayType) and isinstance(after, StaticValue):
        before, after = after, before
    if cause.path is None or not isinstance(after, ArrayType) or after.shape != ():
        return None
    if not isinstance(before, StaticValue) or before.type not in _NUMBERS:
        return None
    dtype = dtype_of(after)
    words = message("fix-number-as-array", path=cause.path, typed=typed(cause.path, dtype))
    return Fix(words, "typed_array", {"path": cause.path, "dtype": dtype})


def _grows(group: Group) -> bool:
    """Return whether a container, such as a list, had more arrays in each recompile of ``group`` than in the
    recompile before. False for a single recompile, or if the latest was not for a new array."""
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
def call_form(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-call-form", path=path or "the arguments"), "same_call_form", {"path": path})
