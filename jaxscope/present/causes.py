"""Write the cause of a cache miss as a clause, and its two values as text.

For example ``batch['ids'] changed from i32[32,512] to i32[32,511]``. Only ``explanation``, ``explanations``,
``kind_name`` and ``cause_count`` escape names and values of the user's program. The callers of the other
functions must do this.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from jaxscope.analysis.avals import short_aval, short_dtype, type_text
from jaxscope.analysis.paths import excerpt
from jaxscope.model import causes
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.present import meshes
from jaxscope.present.escape import escape
from jaxscope.present.text import article, brief, count, line, wrapper_name
from jaxscope.schema.causes import (
    BODY,
    FAST_CACHE,
    FUNCTION,
    NO_FIELD,
    PARTS,
    PLAIN_FAST_CACHE,
    SAME_TEXT,
    UNSTABLE_HASH,
    AheadOfTime,
    ArgumentType,
    ArrayType,
    AxisSizes,
    CallForm,
    Cause,
    Cleared,
    Commitment,
    Compared,
    Container,
    Effects,
    Entry,
    FullCaches,
    FunctionObject,
    Layout,
    Leaves,
    MemoryKind,
    MeshSetting,
    NewFunction,
    NotRecorded,
    Placement,
    RecordingBegan,
    Setting,
    StaticDetail,
    StaticValue,
    TreeText,
    Value,
)
from jaxscope.schema.findings import CERTAIN
from jaxscope.schema.libraries import transformation

TEXT = 400  # characters of one explanation
ROOM = 120  # characters of one static value
_KINDS = {
    "aot": "ahead-of-time compilation",
    "cleared": "cleared cache",
    "config": "setting change",
    "effects": "effect change",
    "equal_sharding": "sharding change",
    "evicted": "cache eviction",
    "first": "first compilation",
    "new_function": "new function object",
    "options": "jit option change",
    "prng": "random key type change",
    "rank": "ndim change",
    "static_identity": "new static object",
    "tree": "tree structure change",
    "tree_static": "static data change",
    "unknown": "unknown cause",
}
FLAX_METHOD = "flax.Module."  # flax adds such a wrapper; the program does not call it
_FORMS = {
    "lambda": "a lambda was created again",
    "partial": "a functools.partial was created again",
    "method": "a bound method was created again",
    "callable": "a callable object was created again",
}
_ENTRIES = {
    "transform": "called under grad, vmap or another transform",
    "nested": "called inside another trace",
    "call": "called directly",
    "aot": "lowered ahead of time",
}


# -- values ----------------------------------------------------------------------------------------------


def values(c: Cause) -> tuple[str | None, str | None]:
    """Return the values of the cause ``c`` before and after the change, as text: ``("f32[4]", "f32[5]")``.
    None: there is no such value, because an argument was added or removed."""
    a, b = c.before, c.after
    if isinstance(a, StaticValue) and isinstance(b, StaticValue):
        return _statics(c, a, b)
    if isinstance(a, Placement) and isinstance(b, Placement):
        return _placements(a, b)
    if isinstance(a, TreeText) and isinstance(b, TreeText):
        return excerpt(a.text, b.text)
    return _value(c, a), _value(c, b)


def _value(c: Cause, value: Value | None) -> str | None:
    """Return ``value``, one of the two values of the cause ``c``, as text: ``f32[4]``; None for None."""
    match value:
        case None:
            return None
        case ArrayType():
            text = _array(c, value)
            return f"{text}, not weak" if c.kind == "weak_type" and not value.weak_type else text
        case AxisSizes(sizes):
            return ", ".join(f"axis {axis}: {size}" for axis, size in sizes)
        case Placement() | TreeText() | CallForm() | Setting():
            return value.text
        case Commitment():
            return "committed" if value.committed else "uncommitted"
        case MemoryKind():
            return value.memory_kind
        case Layout():
            return value.layout
        case ArgumentType():
            return type_text(value.type)
        case StaticValue():
            return brief(_without_folders(value.repr)[0], ROOM) + (" (static)" if c.kind == "tree" else "")
        case Container():
            return _container(value.container)
        case Leaves():
            return count(value.count, "leaf", "leaves")
        case FunctionObject():
            return f"function object with id {value.serial}"
        case Entry():
            if c.kind == "aot":
                return "ahead of time" if value.entry == "aot" else "an ordinary call"
            return _ENTRIES.get(value.entry, value.entry)


def _array(c: Cause, value: ArrayType) -> str:
    """Return ``value``, one of the two values of the cause ``c``, as text: ``f32[4]``. The weak type follows
    if it changed (``f32[] weak``), and the Python type if it differs as well (``f32[4] (numpy array)``)."""
    if value.shape is None and value.dtype is not None:
        return short_dtype(value.dtype) + (" weak" if value.weak_type and c.kind == "weak_type" else "")
    if c.kind == "tree":
        return short_aval(value.shape, value.dtype, None, None if value.dtype else value.type)
    a, b = c.before, c.after
    typed = False
    if isinstance(a, ArrayType) and isinstance(b, ArrayType) and c.kind != "prng":
        typed = a.type != b.type and (a.weak_type, a.dtype) != (b.weak_type, b.dtype)
    weak = value.weak_type if c.kind == "weak_type" else None
    text = short_aval(value.shape, value.dtype, weak)
    return f"{text} ({type_text(value.type)})" if typed and value.type else text


def _container(kind: str) -> str:
    """Return the type of a pytree node with an article: ``a dict``; ``None`` stays ``None``."""
    return kind if kind == "None" else article(kind)


def _statics(c: Cause, a: StaticValue, b: StaticValue) -> tuple[str, str]:
    """Return the static values ``a`` (earlier) and ``b`` (later) as short texts. Different classes are named:
    ``("2 (int)", "2.0 (float)")``. New objects get their numbers."""
    detail = c.detail
    if isinstance(detail, StaticDetail) and detail.why == SAME_TEXT:
        return a.repr, b.repr
    if c.kind == "static_identity":
        return _numbered(a), _numbered(b)
    p, q = _without_folders(a.repr, b.repr)
    x, y = excerpt(p, q)
    if a.type == b.type:
        return x, y
    short = x != y and not a.repr.startswith("<")
    p, q = (v.type.rpartition(".")[2] if short else v.type for v in (a, b))
    return f"{x} ({p})", f"{y} ({q})"


_DEFINED = re.compile(r"<function (\S+) at (?:[^<>]*[\\/])?([^<>\\/]*:\d+)>")


def _without_folders(*texts: str) -> tuple[str, ...]:
    """Return the texts of static values with shorter function names: ``<function loss at
    /home/me/train.py:12>`` -> ``loss (train.py:12)``. If two different texts would become equal, return all
    unchanged."""
    short = tuple(_DEFINED.sub(r"\1 (\2)", text) for text in texts)
    return short if len(set(short)) == len(set(texts)) else texts


def _numbered(value: StaticValue) -> str:
    """Return a static value as text with the number of its object, if known: ``<Config> (object with id
    2)``."""
    return brief(_without_folders(value.repr)[0], ROOM) + (
        f" (object with id {value.serial})" if value.serial is not None else ""
    )


def _placements(a: Placement, b: Placement) -> tuple[str, str]:
    """Return the shardings ``a`` and ``b`` as text: ``("P('d',) on d=8", "P() on d=8")``. If both texts are
    equal, what differs is added to them, such as the devices: ``P('d',) on d=8 devices 0-7``."""
    if a.text != b.text:
        return a.text, b.text
    if a.devices != b.devices:
        return f"{a.text} devices {a.devices}", f"{b.text} devices {b.devices}"
    pairs = [
        (name, getattr(a, field), getattr(b, field))
        for name, field in (("kind", "sharding"), ("spec", "spec"), ("mesh", "mesh"), ("memory_kind",) * 2)
    ]
    differ = [(name, p, q) for name, p, q in pairs if p != q]
    return (
        f"{a.text} ({', '.join(f'{name} {p}' for name, p, _ in differ)})",
        f"{b.text} ({', '.join(f'{name} {q}' for name, _, q in differ)})",
    )


# -- clauses ---------------------------------------------------------------------------------------------


@functools.lru_cache(2_048)  # equal causes occur in many compilations, and again in findings
def clause(c: Cause) -> str:
    """Return the cause ``c`` of a cache miss as a clause, which can follow a colon:
    ``batch['ids'] changed from i32[32,512] to i32[32,511]``."""
    return _CLAUSES.get(c.kind, _changed)(c)


def subject(c: Cause) -> str:
    """Return what changed according to the cause ``c``, as the subject of a sentence: ``batch['ids']``. For
    several arrays or static values: ``3 leaves under batch``, or ``3 leaves``. If the path is unknown: ``an
    argument``."""
    if c.count > 1:
        return f"{c.count:,} leaves under {c.path}" if c.path else f"{c.count:,} leaves"
    return c.path or "an argument"


def _from_to(c: Cause) -> str:
    """Return the change of the cause ``c`` as ``from f32[4] to f32[5]``; a value that does not exist is
    ``none``."""
    before, after = values(c)
    return f"from {before or 'none'} to {after or 'none'}"


def _changed(c: Cause) -> str:
    """Return the usual clause for a cause: ``x changed from f32[4] to f32[5]``."""
    return f"{subject(c)} changed {_from_to(c)}"


def _shape(c: Cause) -> str:
    """Return the clause for a changed shape: ``axis 0 of x changed from 64 to 29``."""
    a, b = c.before, c.after
    if not isinstance(a, AxisSizes) or not isinstance(b, AxisSizes):
        return _changed(c)
    axes = [(axis, x, y) for (axis, x), (_, y) in zip(a.sizes, b.sizes, strict=False)]
    if len(axes) == 1:
        axis, x, y = axes[0]
        return f"axis {axis} of {subject(c)} changed from {x} to {y}"
    return f"{subject(c)} changed shape: {', '.join(f'axis {axis} from {x} to {y}' for axis, x, y in axes)}"


def _dtype(c: Cause) -> str:
    """Return the clause for a changed dtype or key type: ``x changed from f32[4] to bf16[4]``."""
    return f"{subject(c)} changed dtype {_from_to(c)}" if c.count > 1 else _changed(c)


def _weak_type(c: Cause) -> str:
    """Return the clause for a changed weak type: ``x is no longer weakly typed; it changed from f32[] weak to
    f32[]``."""
    a, b = c.before, c.after
    if not isinstance(a, ArrayType) or not isinstance(b, ArrayType):
        return _changed(c)
    are = "are" if c.count > 1 else "is"
    text = f"{subject(c)} {are} {'now' if b.weak_type else 'no longer'} weakly typed"
    if c.count > 1 or (a.shape, a.dtype) != (b.shape, b.dtype):
        return text  # another cause has the change of the shape or the dtype
    return f"{text}; it changed from {_array(c, a)} to {_array(c, b)}"


def _memory_kind(c: Cause) -> str:
    """Return the clause for a changed memory kind: ``x moved from device memory to pinned_host memory``."""
    before, after = values(c)
    return f"{subject(c)} moved from {before} memory to {after} memory"


def _committed(c: Cause) -> str:
    """Return the clause for an array that is committed now, or no longer: ``x is now committed to device 0
    (it was uncommitted)``."""
    a, b = c.before, c.after
    assert isinstance(a, Commitment) and isinstance(b, Commitment)
    are = "are" if c.count > 1 else "is"
    where = b.where or ("their devices" if c.count > 1 else "its device")
    if b.committed:
        return f"{subject(c)} {are} now committed to {where}" + (
            "" if c.count > 1 else " (it was uncommitted)"
        )
    text = f"{subject(c)} {are} no longer committed to a device"
    return text + (f" (it was committed to {a.where})" if a.where else "")


def _layout(c: Cause) -> str:
    """Return the clause for a changed layout: ``the layout of x changed from (0, 1) to (1, 0) (major to
    minor)``."""
    return f"the layout of {subject(c)} changed {_from_to(c)} (major to minor)"


def _sharding(c: Cause) -> str:
    """Return the clause for a changed sharding: ``the sharding of x changed from P('d',) on d=8 to P() on
    d=8``."""
    text = f"the sharding of {subject(c)} changed {_from_to(c)}"
    return f"{text}: the same placement, written differently" if c.kind == "equal_sharding" else text


def _mesh(c: Cause) -> str:
    """Return the clause for a changed mesh: ``the mesh around the call changed from a=2 to a=4``. For the
    mesh of an argument: ``_sharding(c)``."""
    if not isinstance(c.detail, MeshSetting):
        return _sharding(c)
    what = "the device list of the mesh" if c.detail.devices else "the mesh"
    a, b = (v.text if isinstance(v, Setting) else None for v in (c.before, c.after))
    before, after = meshes.both_short(a, b)
    return f"{what} around the call changed from {before} to {after}"


def _device(c: Cause) -> str:
    """Return the clause for an argument that is now on another device."""
    before, after = values(c)
    return f"{subject(c)} moved from device {before} to device {after}"


def _argument_kind(c: Cause) -> str:
    """Return the clause for a changed Python type, from ``a numpy array`` to ``a jax.Array`` for example."""
    before, after = (article(text or "?") for text in values(c))
    return f"{subject(c)} changed from {before} to {after}, which by itself compiles nothing"


def _tree(c: Cause) -> str:
    """Return the clause for a changed container structure: ``x['mask'] (f32[4]) was added``."""
    a, b = c.before, c.after
    if isinstance(a, TreeText):
        what = f"the order of the keys of {c.path}" if a.order else "the container structure of the arguments"
        return f"{what} changed {_from_to(c)}"
    if isinstance(a, Leaves) or isinstance(b, Leaves):
        return f"{subject(c)} {'were added' if a is None else 'are no longer passed'}"
    return _came_or_went(c, subject(c)) or _changed(c)


def _came_or_went(c: Cause, name: str) -> str | None:
    """Return a clause about an argument or static value that was added or removed: ``x (f32[4]) was added``.
    None if the value existed before and after. ``name`` is its name in the clause."""
    before, after = values(c)
    if before is None and after is not None and c.before is None:
        return f"{name} ({after}) was added"
    if after is None and before is not None and c.after is None:
        return f"{name} is no longer passed (it was {before})"
    return None


def _static(c: Cause) -> str:
    """Return the clause for a changed static value: ``the static argument 'n' changed from 2 to 3``."""
    detail = c.detail
    if c.path is None and c.before is None and detail is None:
        return "the operation has other parameters (an axis, a dtype, a size)"
    if isinstance(detail, StaticDetail) and detail.why == NO_FIELD:
        what = f"that {detail.owner} compares" if detail.owner else f"of {c.path}"
        return f"static data {what} changed, but jaxscope recorded no difference in its attributes"
    what = f"the static field {c.path}" if c.kind == "tree_static" else f"the static argument '{c.path}'"
    if isinstance(detail, StaticDetail) and detail.why == SAME_TEXT and isinstance(c.after, StaticValue):
        return f"{what} changed, but its recorded text is the same: {brief(c.after.repr, ROOM)}"
    return _came_or_went(c, what) or f"{what} changed {_from_to(c)}"


def _static_identity(c: Cause) -> str:
    """Return the clause for a static value that is a new object but looks like the earlier one, and the
    reason why JAX compares it as different."""
    detail, b = c.detail, c.after
    assert isinstance(detail, StaticDetail) and isinstance(b, StaticValue)
    if c.count > 1:
        return (
            f"{c.count:,} functions in the static fields of {c.path} were created again, and JAX treats a new"
            f" function as a new value"
        )
    kind = b.type.rpartition(".")[2]
    if detail.why == UNSTABLE_HASH:
        why = f"its __hash__ returned another value, although {kind}.__eq__ says that the two are equal"
    elif detail.why == FUNCTION:
        why = "JAX treats a new function as a new value"
    elif detail.why == PARTS:
        why = "it contains a new function, or a new object whose class has no __eq__"
    else:
        why = f"{kind} defines no __eq__ and __hash__, so JAX treats a new object as a new value"
    what = f"the static field {c.path}" if detail.inside else f"the static argument '{c.path}'"
    text = _without_folders(b.repr)[0]
    if detail.why == PARTS and len(text) > ROOM:  # a named tuple of functions, such as an optimizer of optax
        return f"{what} is a new {kind} object that looks the same; {why}"
    if detail.why == FUNCTION:
        return f"{what} is a new function object, {brief(text, ROOM)}; {why}"
    return f"{what} is a new object that looks the same, {brief(text, ROOM)}; {why}"


def _call_form(c: Cause) -> str:
    """Return the clause for arguments that changed between positional and keyword."""
    before, after = values(c)
    what = f"{c.path} is" if c.path else "the same arguments are"
    return f"{what} passed in another way (before: {before}; now: {after})"


def _new_function(c: Cause) -> str:
    """Return the clause for a new function object: ``the jitted function is a new object, because a lambda
    was created again at train.py:12``."""
    made = c.detail
    if not isinstance(made, NewFunction):
        return "the jitted function is a new object"
    if made.form == BODY:
        return "its loop body or branch is a new function object"
    text = f"the jitted function is a new object, because {_function_object(made)}"
    if made.line is None:
        return text
    return f"{text} at {line(made.line)}" if made.certain else f"{text}, probably at {line(made.line)}"


def _function_object(function: NewFunction) -> str:
    """Return how a function object was created again: ``jax.grad(...) was applied again``, ``a lambda was
    created again``, ``main defined it again``."""
    outer = [w for w in function.wrappers if w != "functools.partial" and not w.startswith(FLAX_METHOD)]
    if outer:
        return f"{wrapper_name(transformation(outer[0]))}(...) was applied again"
    if function.form in _FORMS:
        return _FORMS[function.form]
    owner, mark, _ = function.qualname.rpartition(".<locals>.")
    if mark:
        return f"{owner.replace('.<locals>', '')} defined it again"
    return "it was defined or wrapped again"


def _options(c: Cause) -> str:
    """Return the clause for a changed option of jit: ``the jit option inline changed from True to False``."""
    before, after = ("not set" if text is None else text for text in values(c))
    return f"the jit option {c.path} changed from {before} to {after}"


def _config(c: Cause) -> str:
    """Return the clause for a changed setting of JAX: ``the setting jax_enable_x64 changed from False to
    True``."""
    if isinstance(c.detail, NotRecorded):
        return "a setting of JAX changed; which one was not recorded"
    before, after = ("none" if text in (None, "None", "()", "") else text for text in values(c))
    return f"the setting {c.path} changed from {before} to {after}"


def _transform(c: Cause) -> str:
    """Return the clause for a program that a transform (``jax.grad``) compiles, or for another kind of call
    than before."""
    before, after = values(c)
    if before is None:
        return "grad, vmap or another transform compiles its own program of this function"
    return f"the function is now {after}, and was {before} before"


def _aot(c: Cause) -> str:
    """Return the clause for a function that is compiled ahead of time (``.lower().compile()``), or was
    before."""
    if c.before != Entry("aot"):
        return "it is lowered ahead of time (.lower(), .trace() or .eval_shape())"
    detail = c.detail
    number = detail.number if isinstance(detail, AheadOfTime) else None
    which = f" (#{number})" if number else ""
    if isinstance(detail, AheadOfTime) and detail.differs:
        return (
            f"the program compiled ahead of time{which} is for other arguments, so this call does not use it"
        )
    return f"it was compiled ahead of time{which} and is now called as an ordinary function"


def _cleared(c: Cause) -> str:
    """Return the clause for a call after the program cleared JAX's caches, and how often it did."""
    times = c.detail.times if isinstance(c.detail, Cleared) else 1
    often = "" if times == 1 else f" {times} times"
    return (
        f"JAX's caches were cleared{often} (jax.clear_caches() or .clear_cache()) since the last call with"
        " the same kind of arguments"
    )


_CACHES = {FAST_CACHE: "fast path", PLAIN_FAST_CACHE: "fast path (no options)"}


def _evicted(c: Cause) -> str:
    """Return the clause for a program that JAX probably removed from a full cache."""
    full = c.detail.caches if isinstance(c.detail, FullCaches) else ()
    which = ", ".join(f"{_CACHES.get(name, name)} {size:,} of {room:,}" for name, size, room in full)
    return f"no part of the key changed; the program was probably evicted from a full cache ({which} entries)"


# The name of an effect in a jaxpr -> what in the user's function has it.
_EFFECTS = {
    **dict.fromkeys(("Debug", "OrderedDebug"), "debug prints or debug callbacks"),
    **dict.fromkeys(("IO", "OrderedIO"), "io_callback calls"),
    **dict.fromkeys(("Accum", "Read", "Write"), "jax.Refs"),
}


def _effects(c: Cause) -> str:
    """Return the clause for a function whose effects (debug prints, for example) keep it off JAX's fast
    path."""
    detail = c.detail if isinstance(c.detail, Effects) else Effects(())
    if detail.refs:
        return "its jax.Refs keep this function off the fast path, by design; nothing was compiled"
    known = dict.fromkeys(_EFFECTS.get(name, f"effects of type {name}") for name in detail.names)
    what = " and ".join(known) or "effects, such as callbacks and debug prints,"
    return f"its {what} keep this function off the fast path; nothing was compiled"


def _unknown(c: Cause) -> str:
    """Return the clause for an unknown cause, with the compared parts of the key."""
    if not isinstance(c.detail, Compared):
        return "its cache key was not recorded"
    compared = [count(c.detail.arrays, "array argument")] if c.detail.arrays else []
    compared += [count(c.detail.statics, "static value")] if c.detail.statics else []
    compared += [
        "containers",
        "jit options",
        "settings",
        "the function object",
        "whether caches were cleared",
    ]
    text = f"nothing that was recorded differs from the nearest earlier call (compared: {', '.join(compared)}"
    return text + (f"; not recorded: {', '.join(c.detail.missing)})" if c.detail.missing else ")")


def _first(c: Cause) -> str:
    """Return the clause for the first recorded compilation of a function."""
    if isinstance(c.detail, RecordingBegan):
        since = c.detail.since
        return f"earlier compilations of this function are unknown, because the recording began with {since}"
    return "the first time this function is seen"


_CLAUSES: dict[str, Callable[[Cause], str]] = {
    "shape": _shape,
    "dtype": _dtype,
    "prng": _dtype,
    "weak_type": _weak_type,
    "memory_kind": _memory_kind,
    "committed": _committed,
    "layout": _layout,
    "sharding": _sharding,
    "equal_sharding": _sharding,
    "mesh": _mesh,
    "device": _device,
    "argument_kind": _argument_kind,
    "tree": _tree,
    "static_value": _static,
    "tree_static": _static,
    "static_identity": _static_identity,
    "call_form": _call_form,
    "new_function": _new_function,
    "options": _options,
    "config": _config,
    "transform": _transform,
    "aot": _aot,
    "cleared": _cleared,
    "evicted": _evicted,
    "effects": _effects,
    "unknown": _unknown,
    "first": _first,
}

# -- causes of a compilation ---------------------------------------------------------------------------


def cause_count(kind: str, n: int) -> str:
    """Return ``n`` causes of the kind ``kind`` as text: ``2 shape changes``, ``1 new function object``."""
    return count(n, kind_name(kind))


def kind_name(kind: str) -> str:
    """Return the name of the causes of this ``kind``: ``shape change``, ``new function object``. It is
    escaped."""
    return _KINDS.get(kind) or f"{escape(kind.replace('_', ' '), 40)} change"


def explanation(c: Cause) -> str:
    """Return the cause ``c`` of a cache miss as an escaped clause: ``x changed from f32[4] to f32[5]``. If
    the cause is only likely, the clause begins with "it seems that"."""
    text = escape(clause(c), TEXT)
    return text if c.certainty == CERTAIN else f"it seems that {text}"


def explanations(run: Run, c: Compilation) -> list[str]:
    """Return the causes of the cache miss of the call ``c`` as escaped clauses, the decisive one first; never
    empty."""
    return [explanation(cause) for cause in causes.of(run, c)]


def first_and_more(lines: Sequence[str], limit: int) -> list[str]:
    """Return at most ``limit`` lines of ``lines``, which are causes as text. If there are more, the last line
    counts the missing ones: ``and 3 more causes``."""
    if len(lines) <= limit:
        return list(lines)
    return [*lines[: limit - 1], f"and {len(lines) - limit + 1} more causes"]
