"""Where JAX announces what it does, and gauges of its caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxscope.capture.seams.names import jax_module


class Gauge(NamedTuple):
    """JAX's bounded caches of call signatures at this moment.

    ``misses`` counts since the caches were last cleared: ``jax.clear_caches()`` and ``f.clear_cache()``
    both set it to 0 (0.10.2 and 0.12.0.1). ``full`` has (entries, capacity) of those at least NEARLY_FULL.
    """

    misses: int
    full: dict[str, tuple[int, int]]


NEARLY_FULL = 0.9


def cache_gauge() -> Gauge:
    """How full the caches are; about 1 us."""
    pjit = jax_module("jax._src.pjit")
    info = pjit._infer_params_cached.cache_info()
    sizes = {"signatures": (info.currsize, info.maxsize)}
    for name, attribute in (
        ("fast path", "_cpp_pjit_cache_explicit_attributes"),
        ("fast path (no options)", "_cpp_pjit_cache_fun_only"),
    ):
        cache = getattr(pjit, attribute, None)
        if cache is not None:
            sizes[name] = (cache.size(), cache.capacity())
    return Gauge(info.misses, {n: (s, c) for n, (s, c) in sizes.items() if c and s >= NEARLY_FULL * c})


def is_eager(function: Any) -> bool:
    """A primitive applied outside jit: ``dispatch.xla_primitive_callable`` marks its function."""
    return getattr(function, "_apply_primitive", False) is True


def test_listener() -> Any:
    return getattr(jax_module("jax._src.util"), "test_event_listener", None)


def set_test_listener(listener: Any) -> None:
    jax_module("jax._src.util").test_event_listener = listener


def has_test_slot() -> bool:
    return hasattr(jax_module("jax._src.util"), "test_event_listener")


def is_listening(listener: Any) -> bool:
    """Is ``listener`` still told of durations? True where this JAX cannot say."""
    known = getattr(jax_module("jax._src.monitoring"), "get_event_duration_listeners", None)
    return known is None or listener in known()


def on_fast_path(called: Callable[[Any], None]) -> Callable[[], None]:
    """``called(function)`` after each fast-path call of a jitted function, about 0.5 us a call.

    ``_post_hook_state`` exists for ``jax_debug_nans``; a hook already there is chained. Returns how to
    undo it.

    Raises:
      AttributeError: no such hook on this JAX.
    """
    state = jax_module("jax._src.api")._post_hook_state
    previous = state.get_global()

    def hook(function: Any, args: Any, kwargs: Any, outs: Any) -> None:
        if previous is not None:
            previous(function, args, kwargs, outs)
        try:
            called(function)
        except Exception:  # whatever it is, the program's result is whole
            pass

    state.set_global(hook)

    def undo() -> None:
        if state.get_global() is hook:  # else jax_debug_nans has put its own in, and keeps it
            state.set_global(previous)

    return undo
