"""Read the properties of an array (sharding, address, where it was created) without reading its contents.
Also read the function inside a jitted function."""

from __future__ import annotations

import functools
import operator
import sys
from types import CodeType, FrameType
from typing import Any

from jaxscope.jax_internals import attributes, frames
from jaxscope.jax_internals.base import known
from jaxscope.jax_internals.objects import JittedFunction

DEPTH = 8  # frames of JAX between jnp.array and the primitive that it runs


@functools.cache
def array_class() -> Any:
    """Return JAX's class of concrete arrays, ``ArrayImpl``."""
    return attributes.ARRAY.needed()


@functools.cache
def staging() -> tuple[list[Any], CodeType | None, Any]:
    """Return the parts of JAX with which ``jnp.asarray`` and ``jnp.array`` copy a host array to a device:
    (primitives, code, class).

    The primitives are ``stage_p`` and ``convert_element_type_p``. The code is the code object of the function
    that runs primitives outside of traces; None if the installed JAX does not have this function. The class
    is that of the host arrays that the primitives get.
    """
    primitives = [attributes.STAGE.needed(), attributes.CONVERT.needed()]
    return primitives, frames.EagerFrame.code(), attributes.HOST_ARRAY.needed()


def staged_bytes(frame: FrameType) -> int | None:
    """Return the bytes of the host array that ``jnp.asarray`` or ``jnp.array`` is about to copy to a device
    at ``frame``. None if ``frame`` makes no such copy, or copies a single number."""
    _, code, host_array = staging()
    if frame.f_code is not code:
        return None
    args = frames.EagerFrame(frame).args
    # JAX itself creates single numbers, such as the 0 in ``x[0]``.
    if not known(args) or type(args[0]) is not host_array or not args[0].shape:
        return None
    return int(args[0].nbytes)


def staged_source(frame: FrameType) -> tuple[Any, str] | None:
    """Return (object, dtype) for the copy of a host array at ``frame``, for which ``staged_bytes`` has
    returned a number: the object that the program passed to ``jnp.asarray`` or ``jnp.array``, and the dtype
    to which JAX has converted it. None if the object is unknown."""
    code, args = frames.NumpyArrayFrame.code(), frames.EagerFrame(frame).args
    above: FrameType | None = frame
    for _ in range(DEPTH):
        above = above.f_back if above is not None else None
        if above is not None and above.f_code is code and known(args):
            found = frames.NumpyArrayFrame(above).object
            return (found, str(args[0].dtype)) if known(found) else None
    return None


# Returns the devices of an array as JAX's internal list of devices. Two such lists are equal if they have the
# same devices in the same order. An attrgetter is faster than a Python function, and this runs often.
devices_in_order = operator.attrgetter("sharding._internal_device_list")


def committed(value: Any) -> bool | None:
    """Return whether ``value`` is committed to its devices, so that JAX does not move it by itself. None if
    ``value`` is no JAX array."""
    found = getattr(value, "committed", getattr(value, "_committed", None))
    return found if isinstance(found, bool) else None


def stands_for(kind: type, value: Any) -> str | None:
    """Return the name of the type that an argument of ``f.lower()`` probably had before JAX replaced the
    argument by ``value``: ``numpy.ndarray``, ``jax.ShapeDtypeStruct`` or ``jax.Array``. None if ``value`` is
    no such replacement. ``kind`` is the type of ``value``."""
    if kind.__qualname__ != "MetaTy":  # the class of these objects in JAX 0.10 and 0.12
        return None
    if getattr(value, "is_np_array", False):
        return "numpy.ndarray"
    return "jax.ShapeDtypeStruct" if getattr(value, "sharding", None) is None else "jax.Array"


def clients() -> list[Any]:
    """Return the clients of the JAX backends (CPU, GPU, TPU) that the program has started; empty if none.
    Unlike ``jax.live_arrays()``, this starts no backend."""
    if attributes.BACKENDS.module not in sys.modules:
        return []
    return list(attributes.BACKENDS.needed().values())


def grouping_key(array: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return (sharding, placement, committed, stack, layout) of a live array, all hashable. A snapshot of the
    live arrays has one entry for arrays whose last four values, and avals, are equal.

    The placement is (device, memory kind) for a SingleDeviceSharding, else the sharding. The stack is
    jaxlib's record of where the array was created (``made_at``). Two layouts are equal if the public
    ``format.layout`` of their arrays is. Stack and layout are None if the installed JAX does not have them.
    """
    sharding = array.sharding
    try:  # each array on one device has a sharding object of its own
        place = sharding._device, sharding._memory_kind
    except AttributeError:
        place = sharding
    try:
        return sharding, place, array._committed, array.traceback, array._pjrt_layout
    except AttributeError:
        return sharding, place, array._committed, made_at(array), getattr(array, "_pjrt_layout", None)


def made_at(array: Any) -> Any:
    """Return jaxlib's record of the Python stack that created ``array``, whose ``frames`` are innermost
    first; None if there is no record."""
    return getattr(array, "traceback", None)


def buffers(array: Any) -> list[tuple[int, int]] | None:
    """Return (device id, address) of each shard of ``array`` in this process; None if ``array`` is still
    being computed.

    Raises:
      RuntimeError: the array was deleted meanwhile, or this platform has no addresses.
    """
    # Reading the addresses of an array that is being computed may wait until all programs queued earlier have
    # ended, also on CPU (checked on 0.10.2 and 0.12.0.1).
    if not array.is_ready():
        return None
    device = getattr(array.sharding, "_device", None)
    if device is not None:
        return [(device.id, array.unsafe_buffer_pointer())]
    # An array keeps its shards alive once they were read. So they are read from a clone, which shares the
    # memory. A shard may have a sharding without ``_device``: that of a mesh with one device.
    return [(next(iter(p.sharding.device_set)).id, p.unsafe_buffer_pointer()) for p in array.clone()._arrays]


def held_array(value: Any) -> Any:
    """Return the array inside a typed PRNG key (``_base_array``) or a Ref (``_refs``, ``_buf``); None for any
    other value."""
    for name in ("_base_array", "_refs", "_buf"):
        try:
            return object.__getattribute__(value, name)
        except AttributeError:
            continue
    return None


def given_to_jit(value: Any) -> Any:
    """Return the function that was passed to jit if ``value`` is a jitted function, else ``value``."""
    function = JittedFunction(value).fun
    return function if known(function) else value


def device_assignment(sharding: Any) -> Any:
    """Return the devices of a sharding in the order of its shards; None if the sharding has no such list."""
    return getattr(sharding, "_device_assignment", None)


def hlo_sharding(sharding: Any) -> Any:
    """Return the XLA sharding inside a GSPMDSharding. Return any other sharding unchanged."""
    return getattr(sharding, "_hlo_sharding", sharding)


def lacks() -> str | None:
    """Return a sentence that names the attributes of arrays and shardings that jaxscope needs but the
    installed JAX does not have; None if JAX has all of them."""
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
