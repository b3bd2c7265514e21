"""What holds arrays that no variable leads to: one pass of the garbage collector over a few of them.

The pass looks at every object of the program (some 50 ms for a million), so it is made for suspects only.
"""

from __future__ import annotations

import collections
import gc
from types import CellType, FrameType
from typing import Any

from jaxscope.capture import frames, paths
from jaxscope.schema import libraries

CONTAINERS = (list, tuple, set, frozenset, collections.deque)
CLIMB = 2  # from a container to what it stands in: a pass each
MOST = 20
TRACED = "what JAX keeps of a trace: a jit cache"
IN_C = "nothing that Python sees: a cache or an object in C++"


def held_by(arrays: list[Any], ours: Any = None) -> str | None:
    """The kind of container that holds the most of ``arrays``: ``a list of 40``, ``a dict under 'x'``.

    ``ours``: a list that the look itself has put them in.
    """
    ids = {id(a) for a in arrays}
    found: collections.Counter[str] = collections.Counter()
    containers: dict[str, Any] = {}
    for holder in _referrers(arrays):
        if holder is ours:
            continue
        said = _said(holder, ids)
        found[said] += 1
        if issubclass(type(holder), CONTAINERS):
            containers.setdefault(said, holder)
    if not found:
        return IN_C
    most = found.most_common(1)[0][0]
    inside = _of_jax(containers[most]) if most in containers else None
    return most if inside is None else f"{TRACED} ({inside})"


def _referrers(objects: list[Any]) -> list[Any]:
    asked = tuple(objects)  # itself a holder to Python 3.13, which copies it
    found = gc.get_referrers(*asked)
    return [o for o in found if o is not objects and o is not asked and not issubclass(type(o), FrameType)]


def _of_jax(container: Any) -> str | None:
    """The class of JAX's in which the container stands, itself or in another; None: it is nothing of JAX's."""
    level = [container]
    for _ in range(CLIMB):
        above = _referrers(level)
        for o in above:
            if frames.root(type(o).__module__) in libraries.JAX_ROOTS:
                return type(o).__qualname__
        level = [o for o in above if issubclass(type(o), CONTAINERS)][:MOST]
        if not level:
            return None
    return None


def _said(holder: Any, ids: set[int]) -> str:
    kind = type(holder)
    if issubclass(kind, dict):
        key = next((k for k, v in list(holder.items()) if id(v) in ids), None)
        under = f" under {key!r}" if type(key) in (str, int) else ""
        owner = _owner(holder) if type(key) is str else None
        return f"an object of class {owner}" if owner else f"a {kind.__qualname__}{under}"
    if issubclass(kind, CellType):
        return "a variable of a closure"
    if issubclass(kind, CONTAINERS):
        return f"a {kind.__qualname__} of {len(holder):,}"
    return f"an object of class {paths.kind_name(kind)}"


def _owner(attributes: dict[Any, Any]) -> str | None:
    """The class whose object has these attributes, where that is what the dict is."""
    for holder in gc.get_referrers(attributes):
        if getattr(type(holder), "__dictoffset__", 0) and paths._slot(holder, "__dict__") is attributes:
            return paths.kind_name(type(holder))
    return None
