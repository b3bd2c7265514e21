"""Keep equal parts of many events (an argument, a sharding, the options of jit) only once, to save memory.

Without this module, a run of 100,000 compilations would have as many copies of the same few cache keys.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from jaxscope.analysis.keys import Facts
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

MOST = 500_000  # the most values that are kept; with more, few are equal, and the table is emptied
# Fields that are not shared, because their values differ in almost all events
_UNLIKE = frozenset({"program", "phase"})


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the names of the fields of ``kind`` (an event type, Key or Facts) whose equal values are kept
    only once. Left out are fields with numbers, the fields that all events have, and _UNLIKE."""
    plain = {f.name for f in msgspec.structs.fields(ev.Event)} | _UNLIKE
    return tuple(
        f.name
        for f in msgspec.structs.fields(kind)
        if f.name not in plain and f.type not in (int, float, bool, int | None, float | None, bool | None)
    )


_FIELDS = {
    kind: _fields(kind)
    for kind in (ev.Missed, ev.Traced, ev.Lowered, ev.Compiled, ev.ArgumentFate, Key, Facts)
}


class Shared:
    """A table of values that occurred in events, to keep equal values only once. ``of`` replaces the values
    of an event by equal objects of earlier events."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        """Empty the table, at the beginning and when it has become too large."""
        names = dict.fromkeys(name for fields in _FIELDS.values() for name in fields)
        # By field: its values, and the items of its lists.
        known: dict[str, tuple[dict[Any, Any], dict[Any, Any]]] = {name: ({}, {}) for name in names}
        self._tables = {
            kind: (attrgetter(*fields), [(name, *known[name]) for name in fields])
            for kind, fields in _FIELDS.items()
        }
        self._nothing: dict[type, Any] = {list: [], dict: {}}
        self._met = 0

    def of(self, event: Any) -> None:
        """Replace the field values of ``event`` in place by equal objects of earlier events. ``event`` is an
        event, a Key or the Facts of a key; objects of other types stay unchanged. Nobody may change the
        values afterwards."""
        table = self._tables.get(type(event))
        if table is None:
            return
        if self._met > MOST:
            self._forget()
            table = self._tables[type(event)]
        read, fields = table
        empty = self._nothing
        for (name, values, items), value in zip(fields, read(event), strict=True):
            if not value:
                if (nothing := empty.get(type(value))) is not None:
                    force_setattr(event, name, nothing)
                continue
            kind = type(value)
            try:
                if kind is list:
                    one = values.get(tuple(value))
                    if one is None:
                        value[:] = [items.setdefault(item, item) for item in value]
                        one = values.setdefault(tuple(value), value)
                elif kind is dict:
                    one = values.setdefault(tuple(value.items()), value)
                elif kind is Key:
                    token = hash(msgspec.msgpack.encode(value))
                    if (one := values.get(token)) is None:
                        self.of(value)
                        one = values[token] = value
                    elif one != value:
                        continue  # a different key with the same hash: it is not shared
                else:
                    one = values.setdefault(value, value)
            except (TypeError, ValueError, OverflowError):
                continue  # the value has no hash, or cannot be encoded: it is not shared
            if one is not value:
                force_setattr(event, name, one)
            else:
                self._met += 1
