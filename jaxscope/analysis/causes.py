"""Find why a call missed JAX's caches: a list of causes, the decisive one first.

The functions compare the cache keys of two calls of a function and return ``Cause`` records. A cache key is
recorded as ``Facts``, the values that JAX compares. Facts of the calls that are not in the keys are in
``Circumstances``. ``present.causes`` turns the records into words. ``analysis.levels`` chooses the earlier
call to compare with.

A "level" is the first of JAX's caches that missed: trace, lower, compile or fast_path. The facts ``whole`` of
a key, such as the function object or a configuration option, belong to no single argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.cause_grouping import folded
from jaxscope.analysis.keys import (
    BY_IDENTITY,
    SEE_FIELDS,
    Facts,
    LeafFacts,
    array_type,
    same_static,
    static_value,
    union,
    unread,
)
from jaxscope.analysis.levels import (
    COMPILE,
    FAST_PATH,
    LEVELS,
    LOWER,
    MESH_DEVICES,
    TRACE,
    leaf_differences,
    sharding_level,
    whole_level,
)
from jaxscope.analysis.paths import below, tokens
from jaxscope.analysis.pytree_diff import structure
from jaxscope.schema.causes import (
    BODY,
    FAST_CACHES,
    FUNCTION,
    NO_EQ,
    NO_FIELD,
    PARTS,
    SAME_TEXT,
    UNSTABLE_HASH,
    AheadOfTime,
    ArgumentType,
    Cause,
    Cleared,
    Commitment,
    Compared,
    Effects,
    Entry,
    FullCaches,
    FunctionObject,
    Layout,
    MemoryKind,
    MeshSetting,
    NewFunction,
    NotRecorded,
    Placement,
    Setting,
    StaticDetail,
)
from jaxscope.schema.findings import CERTAIN, LIKELY
from jaxscope.schema.keys import Frame, Sharding, Static
from jaxscope.schema.libraries import OF_FUNCTIONS

# The order in which the causes of one level are listed. A new function object or a changed setting is first,
# because the other differences are usually its consequences. A changed call form is last among those of the
# key: if the shapes differ, too, the same call form would save no compilation.
_ORDER = (
    "transform", "new_function", "options", "mesh", "config", "static_identity", "static_value",
    "tree_static", "tree", "prng", "rank", "shape", "dtype", "weak_type", "memory_kind", "committed",
    "sharding", "layout", "device", "call_form", "cleared", "evicted", "aot", "argument_kind",
    "equal_sharding", "effects", "unknown", "first",
)  # fmt: skip
_MESH_SETTING = re.compile(r"mesh|axis_env", re.IGNORECASE)
_KEYS = ("key<", "PRNGKey")
SHAPES = frozenset({"shape", "rank"})
REF_EFFECTS = frozenset({"Accum", "Read", "Write"})  # of reading and writing jax.Refs
_FUNCTIONS = ("function", "PjitFunction", "method", "builtin_function_or_method")


class Circumstances(msgspec.Struct, frozen=True):
    """Facts about a cache miss that are not in the call's cache key. "Before" means the earlier call with
    which the call that missed is compared.

    Attributes:
      level: the first cache that missed: trace, lower, compile or fast_path.
      entry, entry_before: how JAX was entered, in this call and in the call before: ``call`` (a plain call),
        ``aot`` (``.trace``, ``.lower``, ``.eval_shape``), ``transform`` (under grad, vmap, ...) or ``nested``
        (in the trace of another function).
      name, qualname: the name and the qualified name of the function.
      form: how the function object was created: ``def``, ``lambda``, ``partial``, ...
      wrappers: the wrappers around the function, the outermost first: ``jax.pmap``.
      signature: the function's parameters as text: ``(x, s=2.0)``; None: unknown.
      eager: whether the call is an operation applied outside jit.
      cleared: how often, at least, JAX's caches were cleared between the two calls.
      full: a bounded cache of JAX that is nearly full (one of ``schema.causes.CACHES``) -> (entries,
        capacity).
      effects: names of the function's effects; empty unless ``level`` is fast_path.
      other_program: whether both calls are under a transform, but probably need different programs: they are
        under different transforms, or one is the forward and one the backward program.
      created_at: the line in the user's code that created the function object again; None: unknown, or both
        calls are of one function object.
      created_there: whether the line ``created_at`` is certain.
      number_before: the number of the compilation before: 4 in ``train_step#4``; None: unknown.
      of_leaves: a cache of causes, which several misses may share: (id of the leaves before, id of the leaves
        after, level) -> (leaves before, leaves after, causes found).
    """

    level: str
    entry: str = "call"
    entry_before: str = "call"
    name: str = ""
    form: str = "def"
    qualname: str = ""
    wrappers: list[str] = []
    signature: str | None = None
    eager: bool = False
    cleared: int = 0
    full: dict[str, tuple[int, int]] = {}
    effects: list[str] = []
    other_program: bool = False
    created_at: Frame | None = None
    created_there: bool = True
    number_before: int | None = None
    of_leaves: dict[tuple[int, int, str], tuple[dict[str, LeafFacts], dict[str, LeafFacts], list[Cause]]] = {}


def first(level: str) -> Cause:
    """Return the cause of a cache miss that has no earlier call to compare with, because it is the first call
    of the function. ``level`` is the first cache that missed: trace, lower, compile or fast_path."""
    return Cause("first", level, None, None, None, CERTAIN)


def unread_key(level: str) -> Cause:
    """Return the cause of a cache miss whose cache key was not recorded, so that nothing can be compared.
    ``level`` is the first cache that missed: trace, lower, compile or fast_path."""
    return Cause("unknown", level, None, None, None, CERTAIN, detail=NotRecorded())


def between(before: Facts, after: Facts, miss: Circumstances) -> list[Cause]:
    """Return the causes of a cache miss, the decisive one first. The list is never empty.

    Args:
      before: the cache key of an earlier call.
      after: the cache key of the call that missed.
      miss: facts about the call that are not in its key, such as a transform around it. They may be causes,
        too.
    """
    if miss.entry != miss.entry_before and (
        "transform" in (miss.entry, miss.entry_before) or miss.entry == "nested"
    ):
        return [_transform(miss.level, miss.entry, miss.entry_before)]
    if miss.entry == "transform" and miss.other_program:
        return [_transform(miss.level, miss.entry, miss.entry)]
    found = differences(before, after, miss)
    explained = any(LEVELS.index(c.level) <= LEVELS.index(miss.level) for c in found)
    if miss.entry != miss.entry_before and "aot" in (miss.entry, miss.entry_before):
        level = miss.level if not explained else FAST_PATH
        found.append(_ahead_of_time(level, miss.entry_before, miss.number_before, differs=explained))
    elif not explained and miss.entry_before == "nested" and miss.entry == "call" and not miss.cleared:
        found.append(_transform(miss.level, miss.entry, miss.entry_before))
    elif not explained and miss.entry == "aot":
        found.append(_ahead_of_time(miss.level, "call", miss.number_before, differs=False))
    elif not explained:
        found.append(_unexplained(after, miss))
    if miss.level != FAST_PATH and any(_explains(c, miss) and c.kind != "unknown" for c in found):
        # A fast-path miss alone compiles nothing
        found = [c for c in found if c.level != FAST_PATH or c.kind == "aot"]
    found.sort(key=lambda c: (not _explains(c, miss), LEVELS.index(c.level), _ORDER.index(c.kind)))
    return _at_the_level(found, miss)


def differences(before: Facts, after: Facts, miss: Circumstances) -> list[Cause]:
    """Return the causes for the differences between two cache keys, which may be of any two calls; an empty
    list if the keys are equal. Differences that only follow from another difference have no cause. The same
    change of three or more leaves of one argument is one cause.

    Args:
      before, after: the two keys.
      miss: facts about the call of ``after`` that are not in its key.
    """
    found = [
        *_whole(before, after, miss),
        *(statics := _statics(before, after, miss)),
        *structure(before, after, miss.signature, statics_differ=bool(statics)),
        *_of_leaves(before, after, miss),
    ]
    if miss.wrappers[:1] == ["jax.pmap"] and any(c.kind == "static_value" for c in found):
        found = [c for c in found if c.kind != "new_function"]  # pmap wraps once for each static value
    found = _without_consequences(found, before, after)
    if miss.eager and any(
        c.kind in SHAPES for c in found
    ):  # the parameters of an operation follow from the shapes
        found = [c for c in found if c.path is not None or c.kind not in ("static_value", "new_function")]
    if not any(c.level == TRACE for c in found):
        found += _whole_statics(before, after)
    return found


def _explains(c: Cause, miss: Circumstances) -> bool:
    """Return whether the cause ``c`` can explain the miss: its level is that of the miss, or precedes it in
    ``LEVELS`` (trace, lower, compile, fast_path)."""
    return LEVELS.index(c.level) <= LEVELS.index(miss.level)


def _at_the_level(causes: list[Cause], miss: Circumstances) -> list[Cause]:
    """Return the causes of a cache miss, with the level of the first, decisive cause corrected. If the cache
    of that level was a hit, the level becomes ``miss.level`` and the cause is only LIKELY."""
    head = causes[0]
    if _explains(head, miss) and head.level != miss.level:
        # The changed fact is in the key of an earlier cache than the one that missed. That cache was a hit.
        return [msgspec.structs.replace(head, level=miss.level, certainty=LIKELY), *causes[1:]]
    return causes


# -- the call as a whole ---------------------------------------------------------------------------


def _whole(before: Facts, after: Facts, miss: Circumstances) -> list[Cause]:
    """Return the causes for facts that belong to no single argument: the function object, options of jit,
    settings of JAX."""
    found: list[Cause] = []
    if before.whole is after.whole:
        return found
    for name in union(before.whole, after.whole):
        x, y = before.whole.get(name), after.whole.get(name)
        if x == y or unread(name, x, y, before, after) or name in ("tree", "call_form"):
            continue
        group, _, item = name.partition(".")
        if name == "function_object":
            found.append(_other_operation(miss) if miss.eager else _new_function(x, y, miss))
        elif group == "options":
            if item.endswith("_argnames") and _changed(f"options.{item[:-5]}nums", before, after):
                continue  # JAX derives static_argnames from static_argnums
            found.append(Cause("options", miss.level, item, _setting(x), _setting(y), CERTAIN))
        elif group == "context":
            if item == MESH_DEVICES and _changed("context.abstract_mesh_context_manager", before, after):
                continue  # the mesh differs, too, and its cause covers the devices
            found.append(_context(whole_level(name), item, x, y))
    return found


def _other_operation(miss: Circumstances) -> Cause:
    """Return the cause of a cache miss of an operation outside jit (``x + 1``) whose parameters changed: a
    new function for an operation with a function as parameter (``scan``, ``cond``), else a changed value."""
    if miss.name not in OF_FUNCTIONS:
        return Cause("static_value", TRACE, None, None, None, LIKELY)
    return Cause("new_function", TRACE, None, None, None, LIKELY, detail=NewFunction(BODY))


def _new_function(before: str | None, after: str | None, miss: Circumstances) -> Cause:
    """Return the cause of a cache miss if the call has a new function object, created from the same
    definition. ``before`` and ``after`` are the serial numbers of the two objects as text; None: unknown."""
    a, b = (None if x is None else FunctionObject(int(x) if x.isdecimal() else None) for x in (before, after))
    detail = NewFunction(miss.form, tuple(miss.wrappers), miss.qualname, miss.created_at, miss.created_there)
    certainty = CERTAIN if miss.created_there or miss.created_at is None else LIKELY
    return Cause("new_function", TRACE, None, a, b, certainty, detail=detail)


def _context(level: str, name: str, before: str | None, after: str | None) -> Cause:
    """Return the cause of a cache miss if a setting of JAX changed: a mesh around the call, or a
    configuration option.

    Args:
      level: the first of JAX's caches whose key contains the setting: trace, lower, compile or fast_path.
      name: the name of the setting; empty if only an id of all settings together was recorded.
      before, after: the values as text; None: the setting was not set or not recorded.
    """
    a, b = _setting(before), _setting(after)
    if _MESH_SETTING.search(name):
        return Cause("mesh", level, "context", a, b, CERTAIN, detail=MeshSetting(name == MESH_DEVICES))
    if not name:  # only the ids of the settings are recorded
        return Cause("config", level, None, None, None, CERTAIN, detail=NotRecorded())
    return Cause("config", level, name, a, b, CERTAIN)


def _setting(text: str | None) -> Setting | None:
    """Convert the recorded text of an option or a setting to a value of a cause."""
    return None if text is None else Setting(text)


def _transform(level: str, entry: str, before: str) -> Cause:
    """Return the cause of a miss of a call that entered JAX in another way (``entry``) than the call before
    (``before``), such as under grad. If both are equal, the transforms differ."""
    a, b = (Entry(before), Entry(entry)) if entry != before else (None, None)
    return Cause("transform", level, None, a, b, CERTAIN)


def _ahead_of_time(level: str, before: str, number: int | None, *, differs: bool) -> Cause:
    """Return the cause that only one of two calls was compiled ahead of time. ``before`` is how the earlier
    call entered JAX, ``number`` the number of its compilation. ``differs``: the keys differ, too."""
    entries = (Entry("aot"), Entry("call")) if before == "aot" else (Entry("call"), Entry("aot"))
    return Cause("aot", level, None, *entries, CERTAIN, detail=AheadOfTime(number, differs))


def _changed(name: str, before: Facts, after: Facts) -> bool:
    """Return whether the fact ``name`` of ``Facts.whole`` differs."""
    return before.whole.get(name) != after.whole.get(name)


# -- static values ---------------------------------------------------------------------------------


def _statics(before: Facts, after: Facts, miss: Circumstances) -> list[Cause]:
    """Return the causes for static values that differ, one by one. Not included are values that JAX compares
    as a part of a whole object (``_whole_statics``)."""
    found: list[Cause] = []
    if before.static is after.static:
        return found
    # Values whose type changed: the values inside them appear and disappear as a consequence.
    retyped = {p for p, s in after.static.items() if p in before.static and before.static[p].type != s.type}
    for path in union(before.static, after.static):
        was, now = before.static.get(path), after.static.get(path)
        if (was is None or now is None) and below(path, retyped - {path}):
            continue
        if _same(was, now) or path.startswith("<") or _has_recorded_fields(was) or _has_recorded_fields(now):
            continue
        if was is not None and now is not None:
            found.append(_static(path, was, now, miss, inside=_inside(path, after)))
        elif not (path in before.leaves or path in after.leaves):  # else the leaf has a cause
            kind = "tree_static" if _inside(path, after) else "static_value"
            found.append(Cause(kind, TRACE, path, static_value(was), static_value(now), CERTAIN))
    return _fold_statics(found)


def _whole_statics(before: Facts, after: Facts) -> list[Cause]:
    """Return a list with one cause, for the first pytree node or the first data of a library's wrapper that
    is unequal in two cache keys; an empty list if there is none."""
    if before.static is after.static:
        return []
    for path in union(before.static, after.static):
        was, now = before.static.get(path), after.static.get(path)
        # The path of a wrapper's data begins with "<". JAX compares a pytree node as a whole, while jaxscope
        # records its fields one by one.
        whole = path.startswith("<") or _has_recorded_fields(now)
        if whole and was is not None and now is not None and not same_static(was, now):
            owner = path.partition(".")[0].strip("<>") if path.startswith("<") else None
            a, b = (None, None) if was.repr == SEE_FIELDS else (static_value(was), static_value(now))
            detail = StaticDetail(NO_FIELD, inside=True, owner=owner)
            return [Cause("tree_static", TRACE, None if owner else path, a, b, LIKELY, detail=detail)]
    return []


def _same(was: Static | None, now: Static | None) -> bool:
    """Return whether both values exist, and are equal for JAX."""
    return was is not None and now is not None and same_static(was, now)


def _static(path: str, was: Static, now: Static, miss: Circumstances, *, inside: bool) -> Cause:
    """Return the cause for the static value at ``path``: ``was`` in the earlier call, ``now`` in the call
    that missed. ``inside``: the value is in a pytree, no argument itself."""
    kind = "tree_static" if inside else "static_value"
    a, b = static_value(was), static_value(now)
    same_text = was.type == now.type and was.repr == now.repr
    same_object = now.serial is not None and was.serial == now.serial
    # If the trace was a hit, the two values compare equal; the fast path missed because their hashes differ.
    unstable = miss.level != TRACE and now.compares == "value"
    if unstable or now.unstable_hash or (same_text and now.compares in BY_IDENTITY and not same_object):
        reason = UNSTABLE_HASH if unstable or now.unstable_hash else _identity_reason(now)
        level = miss.level if unstable else TRACE
        return Cause("static_identity", level, path, a, b, CERTAIN, detail=StaticDetail(reason, inside))
    if same_text:
        certainty = CERTAIN if now.type in ("str", "bytes") else LIKELY
        return Cause(kind, TRACE, path, a, b, certainty, detail=StaticDetail(SAME_TEXT, inside))
    return Cause(kind, TRACE, path, a, b, CERTAIN)


def _identity_reason(now: Static) -> str:
    """Return why a static object is unequal to the earlier one although both print the same text:
    ``FUNCTION`` (functions are compared by identity), ``PARTS`` (an object inside has no ``__eq__``) or
    ``NO_EQ`` (the object itself has none)."""
    if now.type.rpartition(".")[2] in _FUNCTIONS:
        return FUNCTION
    return PARTS if now.compares == "parts" else NO_EQ


def _fold_statics(causes: list[Cause]) -> list[Cause]:
    """Merge causes for static values. Several new objects below one attribute become one cause for the
    attribute. If a static value and a value inside it both differ, only the inner cause stays."""
    paths = {c.path for c in causes if c.path}
    # A partial and a value that it binds: keep the cause for the value.
    causes = [c for c in causes if not any(below(p, {c.path}) for p in paths if c.path)]
    groups: dict[tuple[str, str], list[Cause]] = {}
    for c in causes:
        path = c.path or ""
        # An optimizer that is created again consists of many new functions.
        parent = "".join(tokens(path)[:-1]) if c.kind == "static_identity" and len(tokens(path)) > 2 else path
        groups.setdefault((c.kind, parent), []).append(c)
    folded: list[Cause] = []
    for (kind, parent), members in groups.items():
        if len(members) > 1 and kind == "static_identity":
            folded.append(msgspec.structs.replace(members[0], path=parent, count=len(members)))
        else:
            folded += members
    return folded


def _inside(path: str, facts: Facts) -> bool:
    """Return whether ``path`` or a part at its beginning is a container among the arguments: ``state`` and
    ``state.params`` if ``state`` is a dict. ``facts`` is the cache key of the call."""
    steps = tokens(path)
    return any("".join(steps[:n]) in facts.nodes for n in range(1, len(steps) + 1))


def _has_recorded_fields(s: Static | None) -> bool:
    """Return whether ``s`` is an object whose fields are recorded one by one."""
    return s is not None and s.repr == SEE_FIELDS


# -- leaves ----------------------------------------------------------------------------------------


def _of_leaves(before: Facts, after: Facts, miss: Circumstances) -> list[Cause]:
    """Return the causes of a cache miss for the array leaves that differ between two cache keys, one for
    three or more leaves of an argument with the same change. The result is stored in ``miss.of_leaves``."""
    # The same two sets of leaves are often compared: one batch of another size is passed to many functions.
    pair = id(before.leaves), id(after.leaves), miss.level
    known = miss.of_leaves.get(pair)
    if known is None:  # the stored entry refers to the leaves, so that their ids are not reused
        found = folded(_leaves(before, after, miss))
        known = miss.of_leaves[pair] = before.leaves, after.leaves, found
    return known[2]


def _leaves(before: Facts, after: Facts, miss: Circumstances) -> list[tuple[str, Cause]]:
    """Return (path of the leaf, cause) for the array leaves that differ between two cache keys. A leaf may
    have several causes, such as dtype and sharding. Leaves that are in only one key are ignored."""
    found: list[tuple[str, Cause]] = []
    for path, new in after.leaves.items():
        old = before.leaves.get(path)
        if old is None or old == new:
            continue
        fields = leaf_differences(old, new)
        if "Tracer" in (old.type, new.type):  # inside another trace a leaf has a type and no placement
            fields = [n for n in fields if n in ("shape", "dtype", "weak_type")]
        found += [(path, c) for c in _leaf(path, old, new, fields, miss)]
    return found


def _leaf(
    path: str, old: LeafFacts, new: LeafFacts, fields: Sequence[str], miss: Circumstances
) -> list[Cause]:
    """Return the causes for one array leaf: ``old`` in the earlier call, ``new`` in the call that missed.
    ``fields`` are the names of the facts that differ."""
    aval = [f for f in fields if f in ("shape", "dtype", "weak_type")]
    types = array_type(old), array_type(new)
    if "dtype" in aval and any(m in (x.dtype or "") for x in (old, new) for m in _KEYS):
        return [Cause("prng", TRACE, path, *types, CERTAIN)]
    kinds = []
    if "shape" in aval:
        kinds.append("rank" if len(old.shape or ()) != len(new.shape or ()) else "shape")
    if "dtype" in aval:
        kinds.append("dtype")
    if "weak_type" in aval and not ("dtype" in aval and _both_python(old, new)):
        kinds.append("weak_type")
    found = [Cause(kind, TRACE, path, *types, CERTAIN) for kind in kinds]
    if "memory_kind" in fields:
        memory = MemoryKind(old.memory_kind), MemoryKind(new.memory_kind)
        found.append(Cause("memory_kind", TRACE, path, *memory, CERTAIN))
    placed = old.sharding is not None and new.sharding is not None
    on_mesh = any(x.sharding is not None and x.sharding.mesh for x in (old, new))
    if (
        "sharding" in fields
        and (placed or on_mesh)
        and ("memory_kind" not in fields or _moved(old.sharding, new.sharding))
    ):
        kind, level = _sharding(old.sharding, new.sharding, miss)
        found.append(Cause(kind, level, path, _placement(old), _placement(new), CERTAIN))
    if "committed" in fields and not any(c.kind in ("mesh", "sharding") for c in found):
        found.append(Cause("committed", LOWER, path, _commitment(old), _commitment(new), CERTAIN))
    if "layout" in fields:
        found.append(Cause("layout", LOWER, path, Layout(old.layout), Layout(new.layout), CERTAIN))
    if "type" in fields and not found:
        found.append(
            Cause("argument_kind", FAST_PATH, path, ArgumentType(old.type), ArgumentType(new.type), CERTAIN)
        )
    return found


def _placement(leaf: LeafFacts) -> Placement | None:
    """Return the sharding of ``leaf`` as a value of a cause; None: unknown."""
    s = leaf.sharding
    if s is None:
        return None
    return Placement(s.kind, s.text, s.devices, s.mesh, s.spec, s.memory_kind)


def _commitment(leaf: LeafFacts) -> Commitment:
    """Return the committedness of ``leaf`` as a value of a cause."""
    return Commitment(leaf.committed, leaf.sharding.text if leaf.sharding is not None else None)


def _both_python(old: LeafFacts, new: LeafFacts) -> bool:
    """Return whether both leaves are Python numbers."""
    return {old.type, new.type} <= {"float", "int", "bool", "complex"}


def _moved(a: Sharding | None, b: Sharding | None) -> bool:
    """Return whether two shardings differ in more than the memory kind. True if one is unknown."""
    return a is None or b is None or (a.mesh, a.spec, a.devices) != (b.mesh, b.spec, b.devices)


def _sharding(a: Sharding | None, b: Sharding | None, miss: Circumstances) -> tuple[str, str]:
    """Return (kind of the cause, first of JAX's caches that misses) for two different shardings of an
    argument: ``a`` in the earlier call, ``b`` in the call that missed. ``equal_sharding``: only the fast path
    misses."""
    level = sharding_level(a, b)
    if level == TRACE and (a is None or b is None or a.mesh != b.mesh):
        return "mesh", TRACE
    if a is not None and b is not None:
        if level == COMPILE:
            return "device", COMPILE
        if miss.level == FAST_PATH and (a.devices, a.mesh) == (b.devices, b.mesh):
            # Lowering and executable were hits: JAX treats the two shardings as equal there.
            return "equal_sharding", FAST_PATH
    return "sharding", level


def _without_consequences(causes: list[Cause], before: Facts, after: Facts) -> list[Cause]:
    """Return ``causes`` without static values that appeared or disappeared only because of another
    cause: a changed container, or an argument passed by name instead of position."""
    if not any(c.kind in ("tree_static", "static_value") for c in causes):
        return causes
    trees = {c.path for c in causes if c.kind == "tree" and c.path}
    moved = {p for p in union(before.nodes, after.nodes) if (p in before.nodes) != (p in after.nodes)}
    moved = {p for p in moved if any(below(t, {p}) for t in trees)}  # a leaf inside has a cause already
    passed = any(c.kind == "call_form" for c in causes)

    def follows(c: Cause) -> bool:
        if c.kind not in ("tree_static", "static_value") or None not in (c.before, c.after):
            return False
        return passed or (c.path is not None and (c.path in trees or below(c.path, trees | moved)))

    return [c for c in causes if not follows(c)]


def _unexplained(after: Facts, miss: Circumstances) -> Cause:
    """Return the cause of a cache miss that no difference of the keys explains: effects of the function,
    cleared caches, an evicted entry, another program of a transform, or unknown. ``after`` is the key of the
    call that missed."""
    if miss.level == FAST_PATH:
        if miss.effects or any(leaf.type.endswith("Ref") for leaf in after.leaves.values()):
            names = tuple(sorted({n.partition("<")[0] for n in miss.effects}))
            effects = Effects(names, refs=bool(names) and REF_EFFECTS.issuperset(names))
            return Cause("effects", FAST_PATH, None, None, None, CERTAIN, detail=effects)
        full = {n: f for n, f in miss.full.items() if n in FAST_CACHES}
        if full:
            return _evicted(FAST_PATH, full)
        return _unknown(FAST_PATH, after)
    if miss.cleared:
        return Cause("cleared", miss.level, None, None, None, CERTAIN, detail=Cleared(miss.cleared))
    if miss.full:
        return _evicted(miss.level, miss.full)
    if (
        miss.entry == "transform"
    ):  # a transform compiles several programs for one call, with the same arguments
        return _transform(miss.level, miss.entry, miss.entry)
    return _unknown(miss.level, after, missing=tuple(sorted(after.unread)))


def _evicted(level: str, full: dict[str, tuple[int, int]]) -> Cause:
    """Return the probable cause that JAX removed the entry from one of the ``full`` caches
    (``Circumstances.full``)."""
    caches = FullCaches(tuple((name, *sizes) for name, sizes in sorted(full.items())))
    return Cause("evicted", level, None, None, None, LIKELY, detail=caches)


def _unknown(level: str, after: Facts, missing: tuple[str, ...] = ()) -> Cause:
    """Return the cause of a miss that nothing explains. ``missing`` are the parts of the key that were not
    recorded."""
    compared = Compared(len(after.leaves), len(after.static), missing)
    return Cause("unknown", level, None, None, None, CERTAIN, detail=compared)
