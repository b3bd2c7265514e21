"""Facts that many events have alike (an argument, a sharding, the options of jit), each kept once.

Without it a run of 100,000 compilations holds as many copies of the same few keys.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jaxscope.schema import events as ev
from jaxscope.schema.keys import Key

MOST = 500_000  # values; where there are more, few are alike, and those met so far are forgotten
_UNLIKE = frozenset({"program", "fingerprint", "phase"})  # fields with a value of their own in almost each event


def _fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields of an event or a key that hold more than numbers."""
    plain = {f.name for f in msgspec.structs.fields(ev.Event)} | _UNLIKE
    return tuple(
        f.name
        for f in msgspec.structs.fields(kind)
        if f.name not in plain and f.type not in (int, float, bool, int | None, float | None, bool | None)
    )


_FIELDS = {
    kind: _fields(kind)
    for kind in (ev.Missed, ev.Traced, ev.Lowered, ev.Compiled, ev.ArgumentFate, Key)
}  # fmt: skip


class Shared:
    """The values met so far, by field: ``of(event)`` puts them in the place of equal ones."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Any, Any]] = {}
        self._size = 0

    def of(self, event: Any) -> None:
        """Replace the parts of ``event`` (a fact nobody changes) by equal ones that were met before."""
        names = _FIELDS.get(type(event))
        if names is None:
            return
        if self._size > MOST:
            self._known, self._size = {}, 0
        for name in names:
            value = getattr(event, name)
            if value is not None and (one := self._one(name, value)) is not value:
                msgspec.structs.force_setattr(event, name, one)

    def _one(self, field: str, value: Any) -> Any:
        known = self._known.get(field)
        if known is None:
            known = self._known[field] = {}
        token = value
        if isinstance(value, list):
            for n, item in enumerate(value):
                value[n] = self._item(field, item)
            token = tuple(map(id, value))  # of items that are kept here
        elif isinstance(value, dict):
            token = tuple(value.items())
        elif isinstance(value, Key):
            self.of(value)
            token = tuple([id(getattr(value, name)) for name in _FIELDS[Key]]), value.function_object
        found = known.setdefault(token, value)
        self._size += found is value
        return found

    def _item(self, field: str, item: Any) -> Any:
        name = field + "[]"
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = {}
        found = known.setdefault(item, item)
        self._size += found is item
        return found
