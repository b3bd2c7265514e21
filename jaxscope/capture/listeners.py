"""Register listeners with ``jax.monitoring`` while a recording runs. If the program removes all listeners,
register them again. Also make the listener for JAX's test events."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

from jaxscope import jax_internals
from jaxscope.capture import warm
from jaxscope.jax_internals import frame_reading
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Listeners(Protocol):
    """The callbacks of one recording for ``jax.monitoring``. JAX calls ``on_scalar`` at the beginning of a
    phase (trace, lowering, compilation) and ``on_duration`` at its end. It calls ``on_event`` for other
    events, such as a hit of the persistent cache."""

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None: ...
    def on_event(self, event: str, **_: Any) -> None: ...
    def on_scalar(self, event: str, value: float | int, **_: Any) -> None: ...


class EventHandler(Protocol):
    """The attributes and the method of a ``Probe`` that ``event_filter`` uses. The C version reads the
    attributes by these names."""

    events: Any
    previous: Any
    stepping: Any
    calls: Any
    nested: Any
    repeats: Any
    puts: Any
    handlers: dict[str, Callable[[FrameType], None]]

    def received(self, name: str, args: tuple[Any, ...], event_frame: FrameType) -> None: ...


def register(callbacks: Listeners) -> None:
    """Register the methods of ``callbacks``, the listeners of a recording, with ``jax.monitoring``."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(callbacks.on_duration)
    jax.monitoring.register_event_listener(callbacks.on_event)
    if hasattr(jax.monitoring, "register_scalar_listener"):
        jax.monitoring.register_scalar_listener(callbacks.on_scalar)


def unregister(callbacks: Listeners) -> None:
    """Remove the methods of ``callbacks``, the listeners of a recording, from ``jax.monitoring``."""
    import jax

    for name, listener in (
        ("unregister_event_duration_listener", callbacks.on_duration),
        ("unregister_event_listener", callbacks.on_event),
        ("unregister_scalar_listener", callbacks.on_scalar),
    ):
        try:
            getattr(jax.monitoring, name)(listener)
        except Exception:  # dropped by clear_event_listeners(), or no such function
            pass


def restore(callbacks: Listeners, writer: Writer) -> None:
    """Register the methods of ``callbacks``, the listeners of a recording, again if the program has called
    ``jax.monitoring.clear_event_listeners()``. Then also write an event ``Degraded`` with ``writer``, because
    one trace may be missing in the log."""
    import jax

    if jax_internals.is_listening(callbacks.on_duration):
        return
    try:
        jax.monitoring.unregister_scalar_listener(callbacks.on_scalar)  # JAX 0.10, 0.12 do not clear these
    except Exception:
        pass
    register(callbacks)
    reason = "the program called jax.monitoring.clear_event_listeners(); one trace may be missing"
    writer.emit(ev.Degraded(seam="listeners", reason=reason))


def event_filter(probe: EventHandler) -> Callable[..., None]:
    """Return the listener for JAX's test events, which JAX calls with the name of each event. The listener
    counts calls that miss the fast path again with unchanged arguments, drops events that need no work, and
    passes all others to ``probe.received``. If there is another listener (``probe.previous``), all events are
    passed."""
    if warm.EventFilter is None:
        return python_filter(probe)
    made: Callable[..., None] = warm.EventFilter(
        probe,
        (
            jax_internals.EVENT_MISS,
            jax_internals.EVENT_COPIED,
            jax_internals.EVENT_PUT,
            jax_internals.EVENT_PUT_DONE,
        ),
        (jax_internals.ImplFrame.code(), jax_internals.DeviceCopyFrame.code()),
        jax_internals.ImplFrame.locals_of("jaxpr", "args"),
        jax_internals.DeviceCopyFrame.locals_of("batch_xs", "batch_devs"),
        jax_internals.devices_in_order,
        probe.events,
    )
    return made


def python_filter(probe: EventHandler) -> Callable[..., None]:
    """Return the listener that ``event_filter`` returns if there is no C version of it (``capture.warm``)."""
    # A function with effects misses the fast path in each call, and each call sends the same events: the
    # miss, the copies of its arguments, and a beginning and an end for each array that a callback receives.
    # The listener calls hardly any other Python function. Such a call costs up to 1 us, because between two
    # events the program removes jaxscope's code from the processor's caches.
    getframe, devices_of = sys._getframe, jax_internals.devices_in_order
    events, handlers = probe.events, probe.handlers
    calls, nested, repeats = probe.calls, probe.nested, probe.repeats
    miss, copied = jax_internals.EVENT_MISS, jax_internals.EVENT_COPIED
    put, put_done = jax_internals.EVENT_PUT, jax_internals.EVENT_PUT_DONE
    call_code, copy_code = jax_internals.ImplFrame.code(), jax_internals.DeviceCopyFrame.code()
    locals_of, is_snapshot = frame_reading.locals_of, frame_reading.LOCALS_ARE_A_SNAPSHOT
    of_call = operator.itemgetter(*jax_internals.ImplFrame.locals_of("jaxpr", "args"))
    of_copy = operator.itemgetter(*jax_internals.DeviceCopyFrame.locals_of("batch_xs", "batch_devs"))

    def on_test(name: str, *args: Any) -> None:
        events.value += 1
        try:
            if probe.previous is not None:
                pass
            elif name == miss:
                frame, busy = getframe(2), calls.open or nested.waiting
                if frame.f_code is call_code and probe.stepping is None and not busy:
                    namespace = locals_of(frame)
                    jaxpr, arguments = of_call(namespace)
                    if is_snapshot:
                        namespace.clear()
                    if repeats.counted(jaxpr, arguments) is not None:
                        return
            elif name == put_done:
                if (puts := probe.puts) is not None and not puts.open:
                    return
            elif name == put:
                puts = probe.puts
                ways = puts.ways_to_callbacks if puts is not None and not puts.open else ()
                for above, function, called in ways:
                    if getframe(above).f_code is called and getframe(above + 1).f_code is function:
                        return
            elif name == copied:
                frame = getframe(2)
                if frame.f_code is copy_code and probe.puts is not None:
                    namespace = locals_of(frame)
                    arrays, devices = of_copy(namespace)
                    if is_snapshot:
                        namespace.clear()
                    if all(map(operator.eq, map(devices_of, arrays), devices)):
                        return
            elif name not in handlers:
                return
        except Exception:
            pass  # what ``received`` does fails, too, and is reported
        probe.received(name, args, getframe(1))

    return on_test
