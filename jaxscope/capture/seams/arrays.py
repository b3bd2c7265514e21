"""What an array is made of, without a look at its contents."""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any

from jaxscope.capture.seams.names import jax_module


@functools.cache
def array_class() -> Any:
    """The class of concrete arrays."""
    return jax_module("jax._src.array").ArrayImpl


def is_on(array: Any, devices: Any) -> bool:
    """Does ``array`` lie on just these devices (JAX's own list of them), in this order?"""
    return bool(array.sharding._internal_device_list == devices)


def committed(value: Any) -> bool | None:
    found = getattr(value, "committed", getattr(value, "_committed", None))
    return found if isinstance(found, bool) else None


def stands_for(kind: type, value: Any) -> str | None:
    """The type of what was given to ``.lower()``, where JAX 0.10 and 0.12 keep but a ``MetaTy`` of it; else None.

    One without a sharding was made from a ``jax.ShapeDtypeStruct`` or a NumPy array (``is_np_array``).
    """
    if kind.__qualname__ != "MetaTy":
        return None
    if getattr(value, "is_np_array", False):
        return "numpy.ndarray"
    return "jax.ShapeDtypeStruct" if getattr(value, "sharding", None) is None else "jax.Array"


def clients() -> list[Any]:
    """The backends that the program has started; asking JAX for its live arrays would start one."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return list(getattr(bridge, "_backends", {}).values())


def makeup(array: Any) -> tuple[Any, Any, Any, Any, Any]:
    """What tells one live array from another besides its aval, in 1 us; all of it hashable.

    Returns (sharding, its place, committed, stack, layout). The place is (device, memory kind) where there
    is one device, because such arrays have a sharding object each, else the sharding. The stack that made
    the array is jaxlib's record: ``frames``, innermost first. The layout compares like ``format.layout``.
    What this JAX has not is None.
    """
    sharding = array.sharding
    try:
        place = sharding._device, sharding._memory_kind
    except AttributeError:
        place = sharding
    try:
        return sharding, place, array._committed, array.traceback, array._pjrt_layout
    except AttributeError:
        return sharding, place, array._committed, made_at(array), getattr(array, "_pjrt_layout", None)


def made_at(array: Any) -> Any:
    """jaxlib's record of the stack that made an array: ``frames``, innermost first; None where there is none."""
    return getattr(array, "traceback", None)


def shard_views(arrays: list[Any]) -> set[int]:
    """Ids of the arrays that ``addressable_shards`` of others made: they are alive, and share their memory.

    JAX caches the list in an array's ``__dict__``; each Shard has its array in ``data``. The garbage
    collector is asked for the dicts: asking the arrays would give each one.
    """
    found: set[int] = set()
    for held in gc.get_referents(*arrays):
        if type(held) is dict:
            found.update(id(shard.data) for shard in held.get("addressable_shards", ()))
    return found


def held_array(value: Any) -> Any:
    """What a typed key (``_base_array``) or a Ref (``_refs``, ``_buf``) stands for; None for anything else."""
    for name in ("_base_array", "_refs", "_buf"):
        try:
            return object.__getattribute__(value, name)
        except AttributeError:
            continue
    return None


def wrapped_function(value: Any) -> Any:
    """The user's function in a jitted one."""
    try:
        return object.__getattribute__(value, "__wrapped__")
    except AttributeError:
        return None
