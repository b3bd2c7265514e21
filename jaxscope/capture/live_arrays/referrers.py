"""Find which objects refer to arrays to which no variable leads, by ``gc.get_referrers``.

The search visits every object of the program (about 50 ms per million), so it is made only for arrays that
may be a leak.
"""

from __future__ import annotations

import collections
import gc
from types import CellType, FrameType
from typing import Any

from jaxscope.capture import frames, paths
from jaxscope.capture.attributes import dictionary
from jaxscope.schema import libraries
from jaxscope.schema.arrays import CLOSURE, CONTAINER, DICT, FRAME, OBJECT, TRACE, UNSEEN, Holder

CONTAINERS = (list, tuple, set, frozenset, collections.deque)
MAX_LEVELS = 2  # levels of containers that are searched upwards; each visits all objects of the program
MAX_CONTAINERS = 20  # containers on each level that are searched further


def held_by(arrays: list[Any], ignored: Any = None) -> Holder:
    """Return what refers to ``arrays``, as data: a list, a dict, a closure, ... If objects of several kinds
    do, return the kind with the most objects.

    The result is ``Holder(UNSEEN)`` if Python's garbage collector knows no object that refers to the arrays,
    and of kind TRACE if the most frequent kind is a container inside an object of JAX. ``ignored`` is an
    object that does not count: jaxscope's own list of the arrays.
    """
    ids = {id(a) for a in arrays}
    counts: collections.Counter[Holder] = collections.Counter()
    containers: dict[Holder, Any] = {}
    for o in _referrers(arrays):
        if o is ignored:
            continue
        holder = _holder(o, ids)
        counts[holder] += 1
        if holder.kind == CONTAINER:
            containers.setdefault(holder, o)
    if not counts:
        return Holder(UNSEEN)
    most = counts.most_common(1)[0][0]
    inside = _jax_class_around(containers[most]) if most in containers else None
    return most if inside is None else Holder(TRACE, inside)


def _referrers(objects: list[Any]) -> list[Any]:
    """Return the objects that refer to at least one of ``objects``, each once. The list ``objects`` itself
    and frames of jaxscope's own code are left out."""
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


def _holder(o: Any, ids: set[int]) -> Holder:
    """Describe ``o``, an object that refers to arrays, as a Holder. If ``o`` is the ``__dict__`` of an
    object, describe this object. ``ids`` are the ``id()`` of the arrays, by which their key in a dict is
    found."""
    kind = type(o)
    if issubclass(kind, dict):
        key = next((k for k, v in list(o.items()) if id(v) in ids), None)
        owner = _owner(o) if type(key) is str else None
        if owner:
            return Holder(OBJECT, owner)
        return Holder(DICT, kind.__qualname__, repr(key) if type(key) in (str, int) else None)
    if issubclass(kind, CellType):
        return Holder(CLOSURE)
    if issubclass(kind, FrameType):
        return Holder(FRAME, o.f_code.co_qualname)
    if issubclass(kind, CONTAINERS):
        return Holder(CONTAINER, kind.__qualname__, count=len(o))
    return Holder(OBJECT, paths.kind_name(kind))


def _owner(attributes: dict[Any, Any]) -> str | None:
    """Return the class name of the object whose ``__dict__`` is ``attributes``; None if no such object is
    found."""
    for holder in gc.get_referrers(attributes):
        if dictionary(holder) is attributes:
            return paths.kind_name(type(holder))
    return None
