"""What holds arrays that no variable leads to: one pass of the garbage collector over a few of them.

The pass looks at every object of the program (some 50 ms for a million), so it is made for suspects only.
"""

from __future__ import annotations

import collections
import gc
from types import CellType, FrameType
from typing import Any

from jaxscope.capture import paths

IN_C = "nothing that Python sees: a cache or an object in C++"


def held_by(arrays: list[Any]) -> str | None:
    """The kind of container that holds the most of ``arrays``: ``a list of 40``, ``a dict under 'x'``."""
    ids = {id(a) for a in arrays}
    mine = {id(arrays)}
    found: collections.Counter[str] = collections.Counter()
    for holder in gc.get_referrers(*arrays):
        if id(holder) not in mine and not issubclass(type(holder), FrameType):
            found[_said(holder, ids)] += 1
    return found.most_common(1)[0][0] if found else IN_C


def _said(holder: Any, ids: set[int]) -> str:
    kind = type(holder)
    if issubclass(kind, dict):
        key = next((k for k, v in list(holder.items()) if id(v) in ids), None)
        under = f" under {key!r}" if type(key) in (str, int) else ""
        owner = _owner(holder) if type(key) is str else None
        return f"an object of class {owner}" if owner else f"a {kind.__qualname__}{under}"
    if issubclass(kind, CellType):
        return "a variable of a closure"
    if issubclass(kind, (list, tuple, set, frozenset, collections.deque)):
        return f"a {kind.__qualname__} of {len(holder):,}"
    return f"an object of class {paths.kind_name(kind)}"


def _owner(attributes: dict[Any, Any]) -> str | None:
    """The class whose object has these attributes, where that is what the dict is."""
    for holder in gc.get_referrers(attributes):
        if getattr(type(holder), "__dictoffset__", 0) and paths._slot(holder, "__dict__") is attributes:
            return paths.kind_name(type(holder))
    return None
