"""Register listeners with ``jax.monitoring`` while a recording runs, again if the program removes all of
them."""

from __future__ import annotations

from typing import Any, Protocol

from jaxscope import jax_internals
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Listeners(Protocol):
    """The callbacks of one recording.

    JAX calls ``on_duration`` at the end of a phase (trace, lowering, compilation), ``on_scalar`` at its
    beginning, and ``on_event`` for other events, such as hits of the persistent cache.
    """

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None: ...
    def on_event(self, event: str, **_: Any) -> None: ...
    def on_scalar(self, event: str, value: float | int, **_: Any) -> None: ...


def register(who: Listeners) -> None:
    """Register the callbacks of ``who`` with ``jax.monitoring``."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(who.on_duration)
    jax.monitoring.register_event_listener(who.on_event)
    if hasattr(jax.monitoring, "register_scalar_listener"):
        jax.monitoring.register_scalar_listener(who.on_scalar)


def unregister(who: Listeners) -> None:
    """Remove the callbacks of ``who`` from ``jax.monitoring``."""
    import jax

    for name, listener in (
        ("unregister_event_duration_listener", who.on_duration),
        ("unregister_event_listener", who.on_event),
        ("unregister_scalar_listener", who.on_scalar),
    ):
        try:
            getattr(jax.monitoring, name)(listener)
        except Exception:  # dropped by clear_event_listeners(), or no such function
            pass


def restore(who: Listeners, writer: Writer) -> None:
    """Register the callbacks of ``who`` again if the program called
    ``jax.monitoring.clear_event_listeners()``, and record that."""
    import jax

    if jax_internals.is_listening(who.on_duration):
        return
    try:
        jax.monitoring.unregister_scalar_listener(who.on_scalar)  # 0.10 and 0.12 forget to clear these
    except Exception:
        pass
    register(who)
    reason = "the program called jax.monitoring.clear_event_listeners(); one trace may be missing"
    writer.emit(ev.Degraded(seam="listeners", reason=reason))
