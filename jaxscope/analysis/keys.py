"""A cache key as flat facts, and when two of its facts are the same to JAX."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, overload

import msgspec

from jaxscope.schema.causes import ArrayType, StaticValue
from jaxscope.schema.keys import Key, Sharding, Static

Contexts = Mapping[str, Mapping[str, str]]


class LeafFacts(NamedTuple):
    """A Leaf without its path, its sharding looked up: two of them compare by meaning."""

    type: str
    shape: tuple[int | str, ...] | None
    dtype: str | None
    weak_type: bool | None
    sharding: Sharding | None
    committed: bool | None
    memory_kind: str | None
    layout: str | None


LEAF_FIELDS = LeafFacts._fields
# Facts that only a jax.Array has: where its type changed, their coming and going says nothing more.
_OF_ARRAYS = frozenset({"sharding", "committed", "memory_kind", "layout"})


BY_IDENTITY = ("identity", "parts")
SEE_FIELDS = "(see the fields above)"  # what capture writes for the whole beside its parts


class Facts(msgspec.Struct, frozen=True):
    """A key taken apart. ``whole`` holds what belongs to no single argument, by field name."""

    leaves: dict[str, LeafFacts]
    static: dict[str, Static]
    whole: dict[str, str]
    nodes: dict[str, str]  # containers by path; empty where they were not recorded
    unread: frozenset[str]  # parts that could not be read on this JAX: never a difference


def flatten(key: Key, contexts: Contexts | None = None) -> Facts:
    """Take ``key`` apart; ``contexts`` gives the settings behind its context id."""
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
    """What a leaf is, without where it is placed."""
    return ArrayType(leaf.shape, leaf.dtype, leaf.weak_type, leaf.type)


@overload
def static_value(item: Static) -> StaticValue: ...
@overload
def static_value(item: None) -> None: ...
def static_value(item: Static | None) -> StaticValue | None:
    """A static value as a cause names it."""
    return None if item is None else StaticValue(item.repr, item.type, item.serial)


def same_static(a: Static, b: Static) -> bool:
    """Does JAX take the one for the other, as far as the record tells?

    By value: text, type and hash (a text may be cut, the hash tells). By identity: the serial, and whatever
    the one object holds by now; of a method, which is one of an object's, the text too.
    """
    by_identity = a.compares == b.compares == "identity" and a.type == b.type != "method"
    if by_identity and None not in (a.serial, b.serial):
        return a.serial == b.serial
    if a.repr != b.repr or a.type != b.type or other_object(a, b):
        return False
    return None in (a.hash, b.hash) or a.hash == b.hash


def other_object(a: Static, b: Static) -> bool:
    """Compared by identity, they or a part of them, and known to be two objects."""
    return a.compares in BY_IDENTITY and None not in (a.serial, b.serial) and a.serial != b.serial


def differing(old: LeafFacts, new: LeafFacts) -> list[str]:
    """The fields that are not the same in two leaves, without those that follow from another."""
    names = []
    for name, a, b in zip(LEAF_FIELDS, old, new, strict=True):
        if a == b:
            continue
        if name in _OF_ARRAYS and old.type != new.type and (a is None or b is None):
            if name in ("committed", "sharding") and (old.committed or new.committed):
                names.append(name)  # placed on purpose: that, not the type, is part of the key
            continue
        if name == "layout" and (a is None or b is None or _rank(old) != _rank(new)):
            continue  # a deleted array has none; one entry an axis says nothing beyond the rank
        if isinstance(a, Sharding) and isinstance(b, Sharding) and placed(a) == placed(b):
            continue  # the memory kind is a fact of its own
        names.append(name)
    if "committed" in names and "type" in names and "numpy.ndarray" in (old.type, new.type):
        names.remove("type")  # a NumPy array counts as an uncommitted jax.Array
    return names


def placed(s: Sharding) -> tuple[object, ...]:
    """What tells where an array lies, without its memory kind."""
    mesh = None if s.mesh is None else tuple(tuple(axis) for axis in s.mesh)
    # The text matters only for kinds whose placement is not spelled out in fields.
    return (s.kind, s.devices, mesh, s.spec, None if s.devices is not None else s.text)


def _rank(leaf: LeafFacts) -> int | None:
    return None if leaf.shape is None else len(leaf.shape)


def unread(name: str, x: str | None, y: str | None, before: Facts, after: Facts) -> bool:
    """Is the difference only that one of the keys lacks a part that was not read?"""
    part = name.partition(".")[0]
    if part in before.unread or part in after.unread:
        return True
    if part == "context":  # comparable where both sides are settings, or both bare ids
        return _context_form(before) != _context_form(after)
    # A single option may come and go; of the rest, None means that it was not read.
    return (x is None or y is None) and part != "options"


def _context_form(facts: Facts) -> str | None:
    if "context" in facts.whole:
        return "id"
    return "settings" if any(name.startswith("context.") for name in facts.whole) else None


def union(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """All names of both, those of ``after`` first."""
    return [*after, *(p for p in before if p not in after)]


def _free(path: str, taken: Mapping[str, object], seen: dict[str, int]) -> str:
    """``path``, or with a number behind it where two leaves go by one name."""
    if path not in taken:
        return path
    n = seen.get(path, 1) + 1
    while f"{path} ({n})" in taken:
        n += 1
    seen[path] = n
    return f"{path} ({n})"
