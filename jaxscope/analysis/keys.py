"""Split a recorded cache key of a call into facts, and compare facts as JAX does. A cache key has the values
that JAX compares to decide whether to compile again. There is one fact for each array leaf, static value and
setting."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, overload

import msgspec

from jaxscope.schema.causes import ArrayType, StaticValue
from jaxscope.schema.keys import Key, Sharding, Static, table_entry

Contexts = Mapping[str, Mapping[str, str]]


class LeafFacts(NamedTuple):
    """What a cache key records about one array-like leaf of a call's arguments: a ``schema.keys.Leaf``
    without the path, and with the sharding itself instead of its index.

    Attributes:
      type: the class of the Python object: ``jax.Array``, ``numpy.ndarray``, ``float``.
      shape, dtype, weak_type: the abstract value; None: unknown.
      sharding, committed, memory_kind, layout: where and how the array is stored; None: unknown, or no
        jax.Array.
    """

    type: str
    shape: tuple[int | str, ...] | None
    dtype: str | None
    weak_type: bool | None
    sharding: Sharding | None
    committed: bool | None
    memory_kind: str | None
    layout: str | None


LEAF_FIELDS = LeafFacts._fields
# Facts that only a jax.Array has. If the Python type of a leaf changed, they appear or disappear with it.
_OF_ARRAYS = frozenset({"sharding", "committed", "memory_kind", "layout"})


BY_IDENTITY = ("identity", "parts")
SEE_FIELDS = "(see the fields above)"  # the recorded text of an object whose fields are recorded one by one


class Facts(msgspec.Struct, frozen=True):
    """A recorded cache key of a call, split into facts.

    Attributes:
      leaves: path -> array-like leaf of the arguments.
      static: path -> static value.
      whole: name -> fact that belongs to no single argument: ``tree`` (the text of the pytree), ``call_form``
        (what is passed by position and by keyword), ``function_object`` (a serial number), ``options.inline``
        (an option of jit), ``context.jax_enable_x64`` (a setting of JAX), ``context`` (the id of all
        settings, if they are unknown).
      nodes: path of a container -> its kind (dict, list, ...); empty: there are no containers, or they were
        not recorded.
      unread: names of the parts of the key that could not be read with this version of JAX. They never count
        as a difference.
    """

    leaves: dict[str, LeafFacts]
    static: dict[str, Static]
    whole: dict[str, str]
    nodes: dict[str, str]
    unread: frozenset[str]


def flatten(key: Key, contexts: Contexts | None = None) -> Facts:
    """Return the facts of a recorded cache key. If several leaves (or several static values) have the same
    path, the later paths get a number: ``x (2)``.

    Args:
      key: the recorded key. It has one id for all settings of JAX together, not the settings.
      contexts: id -> (name of a setting of JAX -> value). If the id of the key is in ``contexts``, there is
        one fact for each setting. Otherwise the id is the only fact about settings.
    """
    leaves: dict[str, LeafFacts] = {}
    seen: dict[str, int] = {}
    for leaf in key.arguments:
        leaves[_free(leaf.path, leaves, seen)] = LeafFacts(
            leaf.type,
            leaf.shape,
            leaf.dtype,
            leaf.weak_type,
            table_entry(key.shardings, leaf.sharding),
            leaf.committed,
            leaf.memory_kind,
            leaf.layout,
        )
    static: dict[str, Static] = {}
    seen = {}
    for item in key.static:
        static[_free(item.path, static, seen)] = item
    whole: dict[str, str] = {}
    if key.tree is not None:
        whole["tree"] = key.tree
    if key.call_form is not None:
        whole["call_form"] = key.call_form
    if key.function_object is not None:
        whole["function_object"] = str(key.function_object)
    whole.update((f"options.{name}", value) for name, value in key.options.items())
    if key.context is not None:
        settings = (contexts or {}).get(key.context)
        if settings is None:
            whole["context"] = key.context
        else:
            whole.update((f"context.{name}", value) for name, value in settings.items())
    return Facts(leaves, static, whole, key.nodes, frozenset(key.missing))


def array_type(leaf: LeafFacts) -> ArrayType:
    """Return the abstract value (shape, dtype, weak type) and the Python type of a leaf."""
    return ArrayType(leaf.shape, leaf.dtype, leaf.weak_type, leaf.type)


@overload
def static_value(item: Static) -> StaticValue: ...
@overload
def static_value(item: None) -> None: ...
def static_value(item: Static | None) -> StaticValue | None:
    """Convert a static argument of the recording to the form that a ``Cause`` of a cache miss has: text, type
    and serial number. Return None for None."""
    return None if item is None else StaticValue(item.repr, item.type, item.serial)


def same_static(a: Static, b: Static) -> bool:
    """Return whether JAX treats two static values as equal, as far as the recording shows. Their texts, types
    and hashes must be equal, and their serial numbers if JAX compares the values, or parts of them, by
    identity. Unknown serial numbers and hashes are not compared.

    For two objects of one type that JAX compares by identity as a whole, except bound methods, known serial
    numbers alone decide.
    """
    by_identity = a.compares == b.compares == "identity" and a.type == b.type != "method"
    if by_identity and None not in (a.serial, b.serial):
        return a.serial == b.serial
    if a.repr != b.repr or a.type != b.type or other_object(a, b):
        return False
    return None in (a.hash, b.hash) or a.hash == b.hash


def other_object(a: Static, b: Static) -> bool:
    """Return whether two static values are known to be unequal although their texts may be equal: JAX
    compares the values, or parts of them, by identity, and their serial numbers differ."""
    return a.compares in BY_IDENTITY and None not in (a.serial, b.serial) and a.serial != b.serial


def differing(old: LeafFacts, new: LeafFacts) -> list[str]:
    """Return the names of the fields of ``LeafFacts`` that differ between two leaves. A field that differs
    only because of another field is left out: the layout if the rank differs, the sharding if only its memory
    kind differs."""
    names = []
    for name, a, b in zip(LEAF_FIELDS, old, new, strict=True):
        if a == b:
            continue
        if name in _OF_ARRAYS and old.type != new.type and (a is None or b is None):
            if name in ("committed", "sharding") and (old.committed or new.committed):
                names.append(name)  # a committed placement is part of the key, the type is not
            continue
        if name == "layout" and (a is None or b is None or _rank(old) != _rank(new)):
            continue  # a deleted array has no layout; with another rank the layout follows from it
        if isinstance(a, Sharding) and isinstance(b, Sharding) and placed(a) == placed(b):
            continue  # the memory kind is a separate fact
        names.append(name)
    if "committed" in names and "type" in names and "numpy.ndarray" in (old.type, new.type):
        names.remove("type")  # a NumPy array counts as an uncommitted jax.Array
    return names


def placed(s: Sharding) -> tuple[object, ...]:
    """Return a tuple that tells on which devices an array is, and how it is split. Equal tuples mean equal
    placements. The memory kind is not in the tuple."""
    # The text matters only for kinds whose placement is not in the other fields.
    return (s.kind, s.devices, s.mesh, s.spec, None if s.devices is not None else s.text)


def _rank(leaf: LeafFacts) -> int | None:
    return None if leaf.shape is None else len(leaf.shape)


def unread(name: str, x: str | None, y: str | None, before: Facts, after: Facts) -> bool:
    """Return whether a fact differs between two cache keys only because it could not be read for one of them.
    Such a difference does not cause a cache miss.

    Args:
      name: the name of the fact: ``tree``, ``options.inline``, ...
      x, y: the fact in the key ``before`` and in the key ``after``; None: the key does not have the fact.
    """
    part = name.partition(".")[0]
    if part in before.unread or part in after.unread:
        return True
    if part == "context":  # comparable if both sides have settings, or both only ids
        return _context_form(before) != _context_form(after)
    # An option may be missing; for the other facts None means that they were not read.
    return (x is None or y is None) and part != "options"


def _context_form(facts: Facts) -> str | None:
    """Return ``settings`` if the facts have each setting of JAX, ``id`` if they have only the id of all
    settings, None if they have neither."""
    if "context" in facts.whole:
        return "id"
    return "settings" if any(name.startswith("context.") for name in facts.whole) else None


def union(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return the names that are in at least one of the mappings: those of ``after`` in their order, then
    those that only ``before`` has."""
    return [*after, *(p for p in before if p not in after)]


def _free(path: str, taken: Mapping[str, object], last_numbers: dict[str, int]) -> str:
    """Return ``path`` if it is no key of ``taken``. Otherwise append the next free number: ``x (2)``.
    ``last_numbers`` has the last number that was appended to each path, and is updated."""
    if path not in taken:
        return path
    n = last_numbers.get(path, 1) + 1
    while f"{path} ({n})" in taken:
        n += 1
    last_numbers[path] = n
    return f"{path} ({n})"
