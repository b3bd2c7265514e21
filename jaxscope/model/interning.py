"""Facts that many events have alike (an argument, a sharding, the options of jit), each kept once.

Without it a run of 100,000 compilations holds as many copies of the same few keys.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
from msgspec.structs import force_setattr

from jaxscope.analysis.keys import Facts
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

MOST = 500_000  # values; where there are more, few are alike, and those met so far are forgotten
_UNLIKE = frozenset(
    {"program", "fingerprint", "phase"}
)  # fields with a value of their own in almost each event


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """Return the fields of an event or a key that hold more than numbers."""
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
    """The values met so far, by field: ``of(event)`` puts them in the place of equal ones."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
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
        """Replace the parts of ``event`` (or of a key, or of the parts of a key) by equal objects of
        earlier events, to save memory.

        The objects must not be changed.
        """
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
                        continue  # another key with this hash: it stays what it is
                else:
                    one = values.setdefault(value, value)
            except (TypeError, ValueError, OverflowError):
                continue  # without a hash, or not to be encoded: it stays what it is
            if one is not value:
                force_setattr(event, name, one)
            else:
                self._met += 1
