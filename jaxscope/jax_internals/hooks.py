"""Connect to JAX's events and hooks, and read how full JAX's caches are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxscope.jax_internals import attributes
from jaxscope.jax_internals.base import known, known_or_none
from jaxscope.schema.causes import FAST_CACHE, PLAIN_FAST_CACHE, SIGNATURES


class Gauge(NamedTuple):
    """How full JAX's caches of call signatures, which have a limited size, are.

    Attributes:
      misses: the number of misses in the cache ``signatures`` since this cache was last cleared.
        ``jax.clear_caches()`` and ``f.clear_cache()`` both set the number to 0 (0.10.2 and 0.12.0.1).
      full: name of a cache -> (entries, capacity); only caches that are at least 90 % full.
    """

    misses: int
    full: dict[str, tuple[int, int]]


NEARLY_FULL = 0.9


def cache_gauge() -> Gauge:
    """Return how full JAX's caches of call signatures are, and how often a look-up in one of them has missed.
    Raises LookupError if the installed JAX does not have one of the caches."""
    info = attributes.SIGNATURES.needed().cache_info()
    sizes = {SIGNATURES: (info.currsize, info.maxsize)}
    for name, attribute in (
        (FAST_CACHE, attributes.FAST_PATH),
        (PLAIN_FAST_CACHE, attributes.FAST_PATH_NO_OPTIONS),
    ):
        cache = attribute.needed()
        sizes[name] = (cache.size(), cache.capacity())
    return Gauge(info.misses, {n: (s, c) for n, (s, c) in sizes.items() if c and s >= NEARLY_FULL * c})


def is_eager(function: Any) -> bool:
    """Return whether JAX itself made ``function`` to run one primitive outside jit, as in ``x + 1``. JAX
    marks such functions, and passes them to jit (``dispatch.xla_primitive_callable``)."""
    return getattr(function, "_apply_primitive", False) is True


def test_listener() -> Any:
    """Return the listener that JAX calls at events for its own tests (``jax._src.util.test_event_listener``);
    None if no listener is set, or if the installed JAX does not have such a listener."""
    return known_or_none(attributes.TEST_LISTENER.get())


def set_test_listener(listener: Any) -> None:
    """Make ``listener`` the function that JAX calls at events for its own tests; None removes it."""
    attributes.TEST_LISTENER.set(listener)


def has_test_slot() -> bool:
    """Return whether the installed JAX has ``test_event_listener``, the listener for events of JAX's own
    tests, even if none is set."""
    return known(attributes.TEST_LISTENER.get())


def coordination_client() -> Any:
    """Return the client of JAX's coordination service, through which the processes of a job exchange data;
    None if there is none. The client may not be connected before a program for several processes was
    compiled."""
    return getattr(known_or_none(attributes.DISTRIBUTED.get()), "client", None)


def is_listening(listener: Any) -> bool:
    """Return whether ``listener`` is still registered for JAX's duration events; True if that is unknown."""
    registered = attributes.DURATION_LISTENERS.get()
    return not known(registered) or listener in registered()


def on_fast_path(called: Callable[[Any], None]) -> Callable[[], None]:
    """From now on, call ``called(function)`` after each call of a jitted ``function`` on the fast path (the
    C++ cache), which costs about 0.5 us a call. Return a function that ends this. Exceptions of ``called``
    are ignored.

    This uses JAX's hook ``_post_hook_state``. A hook that is installed already is called first.

    Raises:
      LookupError: the installed JAX does not have this hook.
    """
    # JAX made the hook for ``jax_debug_nans`` and ``jax_debug_infs``. When one of these settings changes, JAX
    # replaces the hook, often by None. JAX itself changes them, for example in the derivative of ``relu`` or
    # an eager ``shard_map``. So the functions that JAX calls at a change are wrapped to install ours again.
    state, flags = attributes.POST_HOOK.needed(), _checks()
    ours: dict[Any, Any] = {}  # our hook -> the hook that it replaced and calls
    active = True

    def on_top_of(below: Any) -> Any:
        """Return a hook that calls ``below``, the hook that it replaces, and then ``called``."""

        def hook(function: Any, args: Any, kwargs: Any, outs: Any) -> None:
            if below is not None:
                below(function, args, kwargs, outs)
            if active:
                try:
                    called(function)
                except Exception:  # an error of ours must not replace the result of the program's call
                    pass

        ours[hook] = below
        return hook

    bare = on_top_of(None)  # mostly there is no other hook: then this one is installed

    def put_on(current: Any, put: Callable[[Any], None]) -> None:
        """Install jaxscope's hook with ``put`` (for one thread or for all), unless it is installed already.
        ``current`` is the hook that is installed now, which jaxscope's hook calls first; None: there is
        none."""
        if active and current not in ours:
            put(bare if current is None else on_top_of(current))

    def here() -> None:
        """Install jaxscope's hook in this thread, if JAX has set the hook, or None, for this thread alone."""
        local = state.get_local()  # in a thread where it was never set: neither None nor a function
        if local is None or callable(local):
            put_on(local, state.set_local)

    put_on(state.get_global(), state.set_global)
    here()
    undone = [
        _after_changes(flag, lambda: put_on(state.get_global(), state.set_global), here) for flag in flags
    ]

    def undo() -> None:
        nonlocal active

        active = False  # hooks stay in other threads, and only call those that they replaced
        for each in undone:
            each()
        for get, put in ((state.get_global, state.set_global), (state.get_local, state.set_local)):
            if (current := get()) in ours:
                put(ours[current])

    return undo


def _checks() -> list[Any]:
    """Return JAX's settings ``debug_nans`` and ``debug_infs``. When one of them changes, JAX calls two
    functions of the setting, which replace the hook for calls on the fast path.

    Raises:
      LookupError: the settings do not have these two functions.
    """
    found = [attributes.DEBUG_NANS.needed(), attributes.DEBUG_INFS.needed()]
    for flag in found:
        if not hasattr(flag, "_update_global_hook") or not hasattr(flag, "_update_thread_local_hook"):
            raise LookupError("the settings of JAX have no hooks for their changes")
    return found


def _after_changes(flag: Any, everywhere: Callable[[], None], here: Callable[[], None]) -> Callable[[], None]:
    """From now on, call ``everywhere`` after JAX's setting ``flag`` has changed for all threads, and ``here``
    in a thread after ``flag`` has changed for this thread alone. Return a function that ends this."""
    before = flag._update_global_hook, flag._update_thread_local_hook

    def chained(first: Any, then: Callable[[], None]) -> Callable[[Any], None]:
        def hook(value: Any) -> None:
            if first is not None:
                first(value)
            try:
                then()
            except Exception:  # the program's change of the setting has been made and must not fail
                pass

        return hook

    ours = chained(before[0], everywhere), chained(before[1], here)
    flag._update_global_hook, flag._update_thread_local_hook = ours

    def undo() -> None:
        if (flag._update_global_hook, flag._update_thread_local_hook) == ours:
            flag._update_global_hook, flag._update_thread_local_hook = before

    return undo
