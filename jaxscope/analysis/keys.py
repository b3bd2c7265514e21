"""Two cache keys side by side: a key as flat facts, what differs, and which earlier key is nearest.

Differences only. Why a difference made JAX trace or compile again is the business of causes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from jaxscope.analysis.avals import short_aval, short_shape, type_text
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


class Facts(msgspec.Struct, frozen=True):
    """A key taken apart. ``whole`` holds what belongs to no single argument, by field name."""

    leaves: dict[str, LeafFacts]
    static: dict[str, Static]
    whole: dict[str, str]
    unread: frozenset[str]  # parts that could not be read on this JAX: never a difference


class Difference(msgspec.Struct, frozen=True):
    """One fact that is not the same in two keys of one function.

    Attributes:
      path: the argument leaf or static argument; None: the call as a whole.
      field: a field of Leaf, or ``leaf`` (the leaf itself came or went), ``static``, ``tree``,
        ``call_form``, ``options.<name>``, ``context.<setting>``, ``function_object``.
      before, after: as text; None where there was nothing.
    """

    path: str | None
    field: str
    before: str | None
    after: str | None


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
    return Facts(leaves, static, whole, frozenset(key.missing))


def facts(key: Key, contexts: Contexts | None = None) -> dict[tuple[str | None, str], Any]:
    """Every fact of a key by (path, field)."""
    flat = flatten(key, contexts)
    found: dict[tuple[str | None, str], Any] = {}
    for path, leaf in flat.leaves.items():
        found.update(((path, name), value) for name, value in zip(LEAF_FIELDS, leaf, strict=True))
    found.update(((path, "static"), item) for path, item in flat.static.items())
    found.update(((None, name), value) for name, value in flat.whole.items())
    return found


def difference(before: Key, after: Key, contexts: Contexts | None = None) -> list[Difference]:
    """What is not the same in two keys, arguments first, in the order of the call."""
    return compare(flatten(before, contexts), flatten(after, contexts))


def compare(before: Facts, after: Facts) -> list[Difference]:
    """``difference`` for keys that are flat already."""
    found: list[Difference] = []
    for path in _paths(before.leaves, after.leaves):
        old, new = before.leaves.get(path), after.leaves.get(path)
        if old == new:
            continue
        if old is None or new is None:
            found.append(Difference(path, "leaf", _leaf_text(old), _leaf_text(new)))
            continue
        for name in _differing(old, new):
            a, b = getattr(old, name), getattr(new, name)
            if name == "committed":
                found.append(Difference(path, name, str(bool(a)), str(bool(b))))
            elif name == "sharding":
                found.append(Difference(path, name, *_sharding_texts(a, b)))
            else:
                found.append(Difference(path, name, _text(name, a), _text(name, b)))
    for path in _paths(before.static, after.static):
        was, now = before.static.get(path), after.static.get(path)
        if was is None or now is None or not same_static(was, now):
            found.append(Difference(path, "static", *_static_texts(was, now)))
    for name in _paths(before.whole, after.whole):
        x, y = before.whole.get(name), after.whole.get(name)
        if x != y and not _unknown(name, x, y, before, after):
            mark = "#" if name == "function_object" else ""
            found.append(Difference(None, name, _marked(mark, x), _marked(mark, y)))
    return found


def nearest(key: Key, earlier: Sequence[Key], contexts: Contexts | None = None) -> int | None:
    """Index of the earlier key with the fewest differing facts, the latest of equals; None: no keys."""
    return nearest_facts(flatten(key, contexts), [flatten(k, contexts) for k in earlier])


def nearest_facts(key: Facts, earlier: Sequence[Facts]) -> int | None:
    """``nearest`` for keys that are flat already."""
    best: int | None = None
    fewest = -1
    for index in range(len(earlier) - 1, -1, -1):
        count = _count(earlier[index], key, fewest)
        if best is None or count < fewest:
            best, fewest = index, count
            if count == 0:
                break
    return best


def same_static(a: Static, b: Static) -> bool:
    """Does JAX take the one for the other, as far as the record tells?

    By value: text, type and hash (a text may be cut, the hash tells). By identity: the serial too.
    """
    if a.repr != b.repr or a.type != b.type:
        return False
    if a.compares == "identity" and None not in (a.serial, b.serial):
        return a.serial == b.serial
    return None in (a.hash, b.hash) or a.hash == b.hash


def _count(before: Facts, after: Facts, give_up: int) -> int:
    """Number of differing facts; any number of at least ``give_up`` once that is reached (if >= 0)."""
    count = 0
    if before.leaves != after.leaves:
        for path in _paths(before.leaves, after.leaves):
            old, new = before.leaves.get(path), after.leaves.get(path)
            if old == new:
                continue
            count += 1 if old is None or new is None else len(_differing(old, new))
            if 0 <= give_up <= count:
                return count
    for path in _paths(before.static, after.static):
        was, now = before.static.get(path), after.static.get(path)
        count += was is None or now is None or not same_static(was, now)
    if before.whole != after.whole:
        for name in _paths(before.whole, after.whole):
            x, y = before.whole.get(name), after.whole.get(name)
            count += x != y and not _unknown(name, x, y, before, after)
    return count


def _differing(old: LeafFacts, new: LeafFacts) -> list[str]:
    names = []
    for name, a, b in zip(LEAF_FIELDS, old, new, strict=True):
        if a == b:
            continue
        if name in _OF_ARRAYS and old.type != new.type and (a is None or b is None):
            if name in ("committed", "sharding") and (old.committed or new.committed):
                names.append(name)  # placed on purpose: that, not the type, is part of the key
            continue
        if name == "layout" and _rank(old) != _rank(new):
            continue  # a layout has one entry an axis: it says nothing beyond the rank
        if isinstance(a, Sharding) and isinstance(b, Sharding) and _placed(a) == _placed(b):
            continue  # the memory kind is a fact of its own
        names.append(name)
    if "committed" in names and "type" in names and "numpy.ndarray" in (old.type, new.type):
        names.remove("type")  # a NumPy array counts as an uncommitted jax.Array
    return names


def _placed(s: Sharding) -> tuple[object, ...]:
    mesh = None if s.mesh is None else tuple(tuple(axis) for axis in s.mesh)
    # The text matters only for kinds whose placement is not spelled out in fields.
    return (s.kind, s.devices, mesh, s.spec, None if s.devices is not None else s.text)


def _rank(leaf: LeafFacts) -> int | None:
    return None if leaf.shape is None else len(leaf.shape)


def _unknown(name: str, x: str | None, y: str | None, before: Facts, after: Facts) -> bool:
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


def _text(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if name == "shape":
        return short_shape(value)
    return type_text(value) if name == "type" else str(value)


def _leaf_text(leaf: LeafFacts | None) -> str | None:
    return (
        None
        if leaf is None
        else short_aval(leaf.shape, leaf.dtype, leaf.weak_type, None if leaf.dtype else leaf.type)
    )


def _sharding_texts(before: Sharding | None, after: Sharding | None) -> tuple[str | None, str | None]:
    """Texts for people; where they would be equal, what tells the two apart is added."""
    if before is None or after is None or before.text != after.text:
        return (before.text if before else None), (after.text if after else None)
    told: list[tuple[str, str]] = []
    for name in ("kind", "spec", "devices", "mesh"):
        a, b = getattr(before, name), getattr(after, name)
        if a != b:
            told.append((f"{name} {a}", f"{name} {b}"))
    first, second = (", ".join(side) for side in zip(*told, strict=True)) if told else ("", "")
    return f"{before.text} ({first})", f"{after.text} ({second})"


def _static_texts(before: Static | None, after: Static | None) -> tuple[str | None, str | None]:
    if before is None or after is None:
        return (before.repr if before else None), (after.repr if after else None)
    if before.type != after.type:
        return f"{before.repr} ({before.type})", f"{after.repr} ({after.type})"
    if before.repr != after.repr:
        return before.repr, after.repr
    if None not in (before.serial, after.serial) and before.serial != after.serial:
        return f"{before.repr} (object #{before.serial})", f"{after.repr} (object #{after.serial})"
    return f"{before.repr} (hash {before.hash})", f"{after.repr} (hash {after.hash})"


def _marked(mark: str, value: str | None) -> str | None:
    return None if value is None else mark + value


def _paths(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
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
