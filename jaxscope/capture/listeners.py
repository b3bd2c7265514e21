"""Register listeners with ``jax.monitoring`` while a recording runs. If the program removes all listeners,
register them again."""

from __future__ import annotations

from typing import Any, Protocol

from jaxscope import jax_internals
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Listeners(Protocol):
    """The callbacks of one recording for ``jax.monitoring``. JAX calls ``on_scalar`` at the beginning of a
    phase (trace, lowering, compilation) and ``on_duration`` at its end. It calls ``on_event`` for other
    events, such as a hit of the persistent cache."""

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None: ...
    def on_event(self, event: str, **_: Any) -> None: ...
    def on_scalar(self, event: str, value: float | int, **_: Any) -> None: ...


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
    """Register the methods of ``callbacks`` again if the program called
    ``jax.monitoring.clear_event_listeners()``. Also write an event ``Degraded`` by ``writer`` then, because
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
