"""Flatten a cache key into facts, and compare facts as JAX does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, overload

import msgspec

from jaxscope.schema.causes import ArrayType, StaticValue
from jaxscope.schema.keys import Key, Sharding, Static

Contexts = Mapping[str, Mapping[str, str]]


class LeafFacts(NamedTuple):
    """A Leaf without its path and with its sharding in place of an index, so that two of them can be
    compared.
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
# Facts that only a jax.Array has: if the type changed, they appear or disappear as a consequence.
_OF_ARRAYS = frozenset({"sharding", "committed", "memory_kind", "layout"})


BY_IDENTITY = ("identity", "parts")
SEE_FIELDS = "(see the fields above)"  # capture's text for a whole whose parts are recorded


class Facts(msgspec.Struct, frozen=True):
    """The facts of a key. ``whole`` has the facts that belong to no single argument, by field name."""

    leaves: dict[str, LeafFacts]
    static: dict[str, Static]
    whole: dict[str, str]
    nodes: dict[str, str]  # containers by path; empty where they were not recorded
    unread: frozenset[str]  # parts that could not be read on this JAX: never a difference


def flatten(key: Key, contexts: Contexts | None = None) -> Facts:
    """Return the facts of ``key``; ``contexts`` has the settings by context id."""
    leaves: dict[str, LeafFacts] = {}
    seen: dict[str, int] = {}
    for leaf in key.arguments:
        index = leaf.sharding
        sharding = key.shardings[index] if index is not None and 0 <= index < len(key.shardings) else None
        leaves[_free(leaf.path, leaves, seen)] = LeafFacts(
            leaf.type,
            leaf.shape,
            leaf.dtype,
            leaf.weak_type,
            sharding,
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
    """Return the type of a leaf, without its placement."""
    return ArrayType(leaf.shape, leaf.dtype, leaf.weak_type, leaf.type)


@overload
def static_value(item: Static) -> StaticValue: ...
@overload
def static_value(item: None) -> None: ...
def static_value(item: Static | None) -> StaticValue | None:
    """Return a static value as a cause stores it."""
    return None if item is None else StaticValue(item.repr, item.type, item.serial)


def same_static(a: Static, b: Static) -> bool:
    """Return whether JAX treats the two static values as equal, as far as the recording shows.

    Values that are compared by value are equal if their text, type and hash are equal (the text may be
    truncated, the hash is not). Values that are compared by identity are equal if their serial number is
    equal, whatever the contents are; for methods, the text must be equal, too.
    """
    by_identity = a.compares == b.compares == "identity" and a.type == b.type != "method"
    if by_identity and None not in (a.serial, b.serial):
        return a.serial == b.serial
    if a.repr != b.repr or a.type != b.type or other_object(a, b):
        return False
    return None in (a.hash, b.hash) or a.hash == b.hash


def other_object(a: Static, b: Static) -> bool:
    """Return whether they, or parts of them, are compared by identity and are known to be two objects."""
    return a.compares in BY_IDENTITY and None not in (a.serial, b.serial) and a.serial != b.serial


def differing(old: LeafFacts, new: LeafFacts) -> list[str]:
    """Return the fields that differ between two leaves, without those that follow from another field."""
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
    """Return what determines an array's placement, without its memory kind."""
    # The text matters only for kinds whose placement is not in the other fields.
    return (s.kind, s.devices, s.mesh, s.spec, None if s.devices is not None else s.text)


def _rank(leaf: LeafFacts) -> int | None:
    return None if leaf.shape is None else len(leaf.shape)


def unread(name: str, x: str | None, y: str | None, before: Facts, after: Facts) -> bool:
    """Return whether the fact differs only because one key has a part that could not be read."""
    part = name.partition(".")[0]
    if part in before.unread or part in after.unread:
        return True
    if part == "context":  # comparable if both sides have settings, or both only ids
        return _context_form(before) != _context_form(after)
    # An option may be missing; for the other facts None means that they were not read.
    return (x is None or y is None) and part != "options"


def _context_form(facts: Facts) -> str | None:
    if "context" in facts.whole:
        return "id"
    return "settings" if any(name.startswith("context.") for name in facts.whole) else None


def union(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """Return all names of both, those of ``after`` first."""
    return [*after, *(p for p in before if p not in after)]


def _free(path: str, taken: Mapping[str, object], seen: dict[str, int]) -> str:
    """Return ``path``, with a number appended if another leaf has the same path."""
    if path not in taken:
        return path
    n = seen.get(path, 1) + 1
    while f"{path} ({n})" in taken:
        n += 1
    seen[path] = n
    return f"{path} ({n})"
