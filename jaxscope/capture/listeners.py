"""JAX's public monitoring listeners of one recording: there while it runs, also where the program drops all of them."""

from __future__ import annotations

from typing import Any, Protocol

from jaxscope import jax_internals
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev


class Hears(Protocol):
    """Who is told: of a phase's end, of what happened, of a phase's beginning."""

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None: ...
    def on_event(self, event: str, **_: Any) -> None: ...
    def on_scalar(self, event: str, value: float | int, **_: Any) -> None: ...


def register(who: Hears) -> None:
    """Listen."""
    import jax

    jax.monitoring.register_event_duration_secs_listener(who.on_duration)
    jax.monitoring.register_event_listener(who.on_event)
    if hasattr(jax.monitoring, "register_scalar_listener"):
        jax.monitoring.register_scalar_listener(who.on_scalar)


def unregister(who: Hears) -> None:
    """Listen no more."""
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


def come_back(who: Hears, writer: Writer) -> None:
    """``jax.monitoring.clear_event_listeners()`` drops ours with all others: listen again, and say so."""
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
