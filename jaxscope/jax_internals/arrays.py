"""Read the properties of an array without reading its contents."""

from __future__ import annotations

import functools
import sys
from types import CodeType, FrameType
from typing import Any

from jaxscope.jax_internals import attributes, frames
from jaxscope.jax_internals.base import known
from jaxscope.jax_internals.objects import JittedFunction


@functools.cache
def array_class() -> Any:
    """Return the class of concrete arrays."""
    return attributes.ARRAY.needed()


@functools.cache
def staging() -> tuple[list[Any], CodeType | None, Any]:
    """Return the parts of JAX with which ``jnp.asarray`` and ``jnp.array`` put a host array on a device.

    Returns the primitives, the code that runs them outside of traces, and the class of the host arrays that
    they receive.
    """
    primitives = [attributes.STAGE.needed(), attributes.CONVERT.needed()]
    return primitives, frames.EagerFrame.code(), attributes.HOST_ARRAY.needed()


def staged_bytes(frame: FrameType) -> int | None:
    """Return the size of the host array that ``frame`` is about to pass to one of the primitives of
    ``staging``.

    None if it passes a device array, or a single number that JAX creates for itself (the 0 in ``x[0]``).
    """
    _, code, host_array = staging()
    if frame.f_code is not code:
        return None
    args = frames.EagerFrame(frame).args
    if not known(args) or type(args[0]) is not host_array or not args[0].shape:
        return None
    return int(args[0].nbytes)


def is_on(array: Any, devices: Any) -> bool:
    """Return whether ``array`` is on exactly these devices (JAX's own list of them), in this order."""
    return bool(array.sharding._internal_device_list == devices)


def committed(value: Any) -> bool | None:
    found = getattr(value, "committed", getattr(value, "_committed", None))
    return found if isinstance(found, bool) else None


def stands_for(kind: type, value: Any) -> str | None:
    """Return the type of an argument of ``.lower()``, of which JAX 0.10 and 0.12 keep only a ``MetaTy``; else
    None.

    One without a sharding was made from a ``jax.ShapeDtypeStruct`` or a NumPy array (``is_np_array``).
    """
    if kind.__qualname__ != "MetaTy":
        return None
    if getattr(value, "is_np_array", False):
        return "numpy.ndarray"
    return "jax.ShapeDtypeStruct" if getattr(value, "sharding", None) is None else "jax.Array"


def clients() -> list[Any]:
    """Return the backends that the program has started; asking JAX for its live arrays would start one."""
    if attributes.BACKENDS.module not in sys.modules:
        return []
    return list(attributes.BACKENDS.needed().values())


def makeup(array: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the properties that distinguish a live array besides its aval, in 1 us; all are hashable.

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
    """Return jaxlib's record of the stack that created an array (``frames``, innermost first); None if there
    is none."""
    return getattr(array, "traceback", None)


def buffers(array: Any) -> list[tuple[int, int]] | None:
    """Return (device, address) of each shard of this process; None if unknown without waiting.

    The shards of an array on several devices are taken from a clone of it, which shares its memory and is
    released: an array keeps the shards that were taken from itself alive. The address of an array that is
    still being computed is not read: JAX may wait for it until all programs queued before have ended, on
    CPU as well (checked on 0.10.2 and 0.12.0.1).

    Raises:
      RuntimeError: the array was deleted meanwhile, or this platform has no addresses.
    """
    if not array.is_ready():
        return None
    device = getattr(array.sharding, "_device", None)
    if device is not None:
        return [(device.id, array.unsafe_buffer_pointer())]
    # The part's sharding may be one of a mesh with this device alone.
    return [(next(iter(p.sharding.device_set)).id, p.unsafe_buffer_pointer()) for p in array.clone()._arrays]


def held_array(value: Any) -> Any:
    """Return the array inside a typed key (``_base_array``) or a Ref (``_refs``, ``_buf``); None for anything
    else."""
    for name in ("_base_array", "_refs", "_buf"):
        try:
            return object.__getattribute__(value, name)
        except AttributeError:
            continue
    return None


def given_to_jit(value: Any) -> Any:
    """Return the function that a jitted function was made of; any other value as it is."""
    function = JittedFunction(value).fun
    return function if known(function) else value


def wrapped_function(value: Any) -> Any:
    """Return the user's function in a jitted one."""
    try:
        return object.__getattribute__(value, "__wrapped__")
    except AttributeError:
        return None


def device_assignment(sharding: Any) -> Any:
    """Return the devices of a sharding in the order of their assignment; None: there is none."""
    return getattr(sharding, "_device_assignment", None)


def hlo_sharding(sharding: Any) -> Any:
    """Return XLA's form of a sharding that has one, else the sharding itself."""
    return getattr(sharding, "_hlo_sharding", sharding)


def lacks() -> str | None:
    """Return which attributes of arrays and shardings this JAX does not have, as a sentence; None: none."""
    import jax

    needed = {
        array_class(): ("_committed", "_pjrt_layout", "_arrays", "on_device_size_in_bytes"),
        jax.sharding.SingleDeviceSharding: ("_device", "_memory_kind", "_internal_device_list"),
        jax.sharding.NamedSharding: ("_internal_device_list", "_device_assignment"),
    }
    lost = [
        f"{kind.__name__}.{name}"
        for kind, names in needed.items()
        for name in names
        if not hasattr(kind, name)
    ]
    return f"there is no {', '.join(lost)}" if lost else None
