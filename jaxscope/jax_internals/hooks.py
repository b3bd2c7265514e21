"""Connect to JAX's events and hooks, and read the fill levels of its caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import known, known_or_none


class Gauge(NamedTuple):
    """The state of JAX's bounded caches of call signatures.

    ``misses`` is the number of misses since the caches were last cleared: ``jax.clear_caches()`` and
    ``f.clear_cache()`` both set it to 0 (0.10.2 and 0.12.0.1). ``full`` has (entries, capacity) of each
    cache that is at least NEARLY_FULL.
    """

    misses: int
    full: dict[str, tuple[int, int]]


NEARLY_FULL = 0.9


def cache_gauge() -> Gauge:
    """Return how full the caches are; takes about 1 us."""
    info = attributes.SIGNATURES.needed().cache_info()
    sizes = {"signatures": (info.currsize, info.maxsize)}
    for name, attribute in (
        ("fast path", attributes.FAST_PATH),
        ("fast path (no options)", attributes.FAST_PATH_NO_OPTIONS),
    ):
        cache = attribute.needed()
        sizes[name] = (cache.size(), cache.capacity())
    return Gauge(info.misses, {n: (s, c) for n, (s, c) in sizes.items() if c and s >= NEARLY_FULL * c})


def is_eager(function: Any) -> bool:
    """Return whether it is a primitive applied outside jit, which ``dispatch.xla_primitive_callable``
    marks."""
    return getattr(function, "_apply_primitive", False) is True


def test_listener() -> Any:
    return known_or_none(attributes.TEST_LISTENER.get())


def set_test_listener(listener: Any) -> None:
    attributes.TEST_LISTENER.set(listener)


def has_test_slot() -> bool:
    return known(attributes.TEST_LISTENER.get())


def coordination_client() -> Any:
    """Return the client of JAX's coordination service; None if there is none, or JAX has disconnected.

    Call it only after a program for several processes has been compiled: the client is connected then.
    """
    return getattr(known_or_none(attributes.DISTRIBUTED.get()), "client", None)


def is_listening(listener: Any) -> bool:
    """Return whether ``listener`` is still registered for durations; True if this JAX does not show that."""
    registered = attributes.DURATION_LISTENERS.get()
    return not known(registered) or listener in registered()


def on_fast_path(called: Callable[[Any], None]) -> Callable[[], None]:
    """Call ``called(function)`` after each fast-path call of a jitted function, about 0.5 us a call.

    ``_post_hook_state`` exists for ``jax_debug_nans`` and ``jax_debug_infs``; a hook already there is
    chained. Whenever one of the two settings changes, JAX puts the hook it needs itself in our place, often
    None: also where it sets them aside for itself, as in the derivative of ``relu`` or an eager
    ``shard_map``. So their own hooks are chained as well, and ours put on top again, in the thread where it
    happened. Returns how to undo it.

    Raises:
      LookupError: this JAX does not have this hook.
    """
    state, flags = attributes.POST_HOOK.needed(), _checks()
    ours: dict[Any, Any] = {}  # hook -> the one below it
    over = True

    def on_top_of(below: Any) -> Any:
        def hook(function: Any, args: Any, kwargs: Any, outs: Any) -> None:
            if below is not None:
                below(function, args, kwargs, outs)
            if over:
                try:
                    called(function)
                except Exception:  # whatever it is, the program's result is whole
                    pass

        ours[hook] = below
        return hook

    bare = on_top_of(None)  # as it is most of the time: one for all

    def put_on(current: Any, put: Callable[[Any], None]) -> None:
        if over and current not in ours:
            put(bare if current is None else on_top_of(current))

    def here() -> None:
        local = state.get_local()  # neither None nor a hook in a thread where it was never set
        if local is None or callable(local):
            put_on(local, state.set_local)

    put_on(state.get_global(), state.set_global)
    here()
    undone = [
        _after_changes(flag, lambda: put_on(state.get_global(), state.set_global), here) for flag in flags
    ]

    def undo() -> None:
        nonlocal over
        over = False  # in other threads it stays, and does nothing
        for each in undone:
            each()
        for get, put in ((state.get_global, state.set_global), (state.get_local, state.set_local)):
            if (current := get()) in ours:
                put(ours[current])

    return undo


def _checks() -> list[Any]:
    """Return the settings whose changes set the hook."""
    found = [attributes.DEBUG_NANS.needed(), attributes.DEBUG_INFS.needed()]
    for flag in found:
        if not hasattr(flag, "_update_global_hook") or not hasattr(flag, "_update_thread_local_hook"):
            raise LookupError("the settings of JAX have no hooks for their changes")
    return found


def _after_changes(flag: Any, everywhere: Callable[[], None], here: Callable[[], None]) -> Callable[[], None]:
    """Call ``everywhere`` or ``here`` after JAX's own hook when ``flag`` changes for all threads or for one.

    Returns a function that undoes this.
    """
    before = flag._update_global_hook, flag._update_thread_local_hook

    def chained(first: Any, then: Callable[[], None]) -> Callable[[Any], None]:
        def hook(value: Any) -> None:
            if first is not None:
                first(value)
            try:
                then()
            except Exception:  # the setting is set, whatever it is
                pass

        return hook

    ours = chained(before[0], everywhere), chained(before[1], here)
    flag._update_global_hook, flag._update_thread_local_hook = ours

    def undo() -> None:
        if (flag._update_global_hook, flag._update_thread_local_hook) == ours:
            flag._update_global_hook, flag._update_thread_local_hook = before

    return undo
