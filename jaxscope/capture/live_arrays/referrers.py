"""Find which objects refer to arrays to which no variable leads, by ``gc.get_referrers``, and describe these
objects as text.

The search visits every object of the program (about 50 ms per million), so it is made only for arrays that
may be a leak.
"""

from __future__ import annotations

import collections
import gc
from types import CellType, FrameType
from typing import Any

from jaxscope.capture import frames, paths
from jaxscope.schema import libraries

CONTAINERS = (list, tuple, set, frozenset, collections.deque)
MAX_LEVELS = 2  # levels of containers that are searched upwards; each visits all objects of the program
MAX_CONTAINERS = 20  # containers on each level that are searched further
TRACED = "what JAX keeps of a trace: a jit cache"
IN_C = "nothing that Python sees: a cache or an object in C++"


def held_by(arrays: list[Any], ignored: Any = None) -> str | None:
    """Describe what most often refers to one of ``arrays``: ``a list of 40``, ``a dict under 'x'``, a jit
    cache. If Python sees no object that refers to them, the description names a cache or an object in C++.

    ``ignored`` is an object that does not count: jaxscope's own list of the arrays.
    """
    ids = {id(a) for a in arrays}
    counts: collections.Counter[str] = collections.Counter()
    containers: dict[str, Any] = {}
    for holder in _referrers(arrays):
        if holder is ignored:
            continue
        description = _description(holder, ids)
        counts[description] += 1
        if issubclass(type(holder), CONTAINERS):
            containers.setdefault(description, holder)
    if not counts:
        return IN_C
    most = counts.most_common(1)[0][0]
    inside = _jax_class_around(containers[most]) if most in containers else None
    return most if inside is None else f"{TRACED} ({inside})"


def _referrers(objects: list[Any]) -> list[Any]:
    """Return the objects that refer to one of ``objects``, except the list ``objects`` itself and jaxscope's
    own frames."""
    arguments = tuple(objects)  # Python 3.13 reports the tuple of arguments as a referrer too
    ours = (id(objects), id(arguments))
    referrers = gc.get_referrers(*arguments)
    return [o for o in referrers if id(o) not in ours and not _is_our_frame(o)]


def _is_our_frame(o: Any) -> bool:
    """Return whether ``o`` is a frame that runs code of jaxscope."""
    return issubclass(type(o), FrameType) and frames.root(o.f_globals.get("__name__")) == "jaxscope"


def _jax_class_around(container: Any) -> str | None:
    """Return the class name of an object of JAX that refers to ``container``, directly or through another
    container. Return None if none is found."""
    level = [container]
    for _ in range(MAX_LEVELS):
        above = _referrers(level)
        for o in above:
            if frames.root(type(o).__module__) in libraries.JAX_ROOTS:  # JAX made the container
                return type(o).__qualname__
        level = [o for o in above if issubclass(type(o), CONTAINERS)][:MAX_CONTAINERS]
        if not level:
            return None
    return None


def _description(holder: Any, ids: set[int]) -> str:
    """Describe ``holder``, an object that refers to arrays: ``a list of 40``, ``an object of class Trainer``,
    ``a dict under 'x'``. ``ids`` (the ``id()`` of each array) is needed to find the key in a dict."""
    kind = type(holder)
    if issubclass(kind, dict):
        key = next((k for k, v in list(holder.items()) if id(v) in ids), None)
        under = f" under {key!r}" if type(key) in (str, int) else ""
        owner = _owner(holder) if type(key) is str else None
        return f"an object of class {owner}" if owner else f"a {kind.__qualname__}{under}"
    if issubclass(kind, CellType):
        return "a variable of a closure"
    if issubclass(kind, FrameType):
        return f"a local variable of {holder.f_code.co_qualname}"
    if issubclass(kind, CONTAINERS):
        return f"a {kind.__qualname__} of {len(holder):,}"
    return f"an object of class {paths.kind_name(kind)}"


def _owner(attributes: dict[Any, Any]) -> str | None:
    """Return the class name of the object whose ``__dict__`` is ``attributes``; None if no such object is
    found."""
    for holder in gc.get_referrers(attributes):
        if getattr(type(holder), "__dictoffset__", 0) and paths.slot(holder, "__dict__") is attributes:
            return paths.kind_name(type(holder))
    return None
