"""Define ``watch``, ``step`` and ``snapshot``, which user code calls. These functions cost almost nothing
while no recording is active.

This module imports neither jax nor anything else that takes long to import. ``capture.announce`` calls
``_follow`` when a recording begins or ends.
"""

from __future__ import annotations

import functools
import sys
import types
import weakref
from typing import Any, TypeVar, overload

from jaxscope.capture import announce
from jaxscope.capture.warm import Call, Tick
from jaxscope.errors import to_be_read

__tracebackhide__ = to_be_read
F = TypeVar("F")

_session: Any = None  # the recording of this process
_watched: list[Any] = []  # weak references to the watched functions of this process


class _Watched(Call):
    # A proxy of the wrapped function. While a recording is active, it counts the calls, and checks whether
    # globals and closed-over values that the trace read have changed since.
    #
    # Everything but the call is forwarded to the wrapped object, ``__class__`` included, so that
    # ``isinstance(f, jax.stages.Wrapped)``, ``jax.export`` and ``inspect.signature`` give the same
    # results as without the proxy. (On JAX 0.12 a proxy without ``__class__`` fails the first two.)

    __slots__ = ("__weakref__", "_jaxscope_guard", "_jaxscope_step")

    # Without these, the attributes of the class would hide those of the function.
    __module__ = property(lambda self: self._jaxscope_function.__module__)
    __doc__ = property(lambda self: self._jaxscope_function.__doc__)

    def __init__(self, function: Any, step: bool) -> None:
        object.__setattr__(self, "_jaxscope_function", function)
        object.__setattr__(self, "_jaxscope_step", step)
        object.__setattr__(self, "_jaxscope_counter", None)
        object.__setattr__(self, "_jaxscope_guard", None)

    def _jaxscope_due(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped function and return its result. ``__call__`` has counted the call, and uses this
        method if more is to be done: end a step, check a ``no_recompiles`` block (may raise RecompileError),
        or after the call, check its NumPy arguments or the values that the function captured."""
        counter = self._jaxscope_counter
        each, looks = counter.each, counter.came_due(counter.value)
        result = self._jaxscope_function(*args, **kwargs)
        if each is not None:
            each(args, kwargs)
        if looks and self._jaxscope_guard is not None:
            self._jaxscope_guard.check(args)
        return result

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._jaxscope_function)

    @property
    def __wrapped__(self) -> Any:
        return getattr(self._jaxscope_function, "__wrapped__", self._jaxscope_function)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jaxscope_function, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._jaxscope_function, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._jaxscope_function, name)

    def __dir__(self) -> list[str]:
        return dir(self._jaxscope_function)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the bound method if the wrapped function is in the body of a class."""
        if instance is None:
            return self
        kind = type(self._jaxscope_function)
        if not hasattr(kind, "__get__"):
            return self  # a callable object in a class body is not a method
        try:
            bound = kind.__get__(self, instance, owner)  # nnx and equinox bind methods in their own way
        except TypeError:  # a __get__ written in C accepts only objects of its own type
            bound = None
        return types.MethodType(self, instance) if bound is None else bound

    def __eq__(self, other: object) -> Any:
        watched = issubclass(type(other), _Watched)  # isinstance would resolve the class of a lazy object
        function = other._jaxscope_function if watched else other  # type: ignore[attr-defined]
        return self._jaxscope_function == function

    def __hash__(self) -> int:
        return hash(self._jaxscope_function)

    def __repr__(self) -> str:
        return repr(self._jaxscope_function)

    def __str__(self) -> str:
        return str(self._jaxscope_function)

    def __reduce__(self) -> Any:
        """Return the name under which pickle finds this wrapper again, as for functions."""
        return getattr(self._jaxscope_function, "__qualname__", None) or repr(self)


class _WatchedTree(_Watched):
    # A proxy of a callable pytree, as ``eqx.filter_jit`` returns: it has the same leaves and supports tree
    # maps.

    __slots__ = ()

    # Python gives each class its own two attributes, which would hide those of the base class.
    __module__ = _Watched.__dict__["__module__"]
    __doc__ = _Watched.__dict__["__doc__"]


@functools.cache
def _tree_class() -> type[_Watched]:
    """Register ``_WatchedTree`` as a pytree class of JAX, and return the class. This imports jax."""
    from jax import tree_util

    def level(watched: _WatchedTree) -> Any:
        inner = watched._jaxscope_function
        return tree_util.tree_flatten_with_path(inner, is_leaf=lambda x: x is not inner)

    def with_keys(watched: _WatchedTree) -> Any:
        found, tree = level(watched)
        return [(path[0], child) for path, child in found], (tree, watched._jaxscope_step)

    def flatten(watched: _WatchedTree) -> Any:
        found, tree = level(watched)
        return [child for _, child in found], (tree, watched._jaxscope_step)

    def unflatten(aux: Any, children: Any) -> Any:
        tree, step = aux
        return _register(_WatchedTree(tree.unflatten(children), step), when_called=True)

    tree_util.register_pytree_with_keys(_WatchedTree, with_keys, unflatten, flatten)
    return _WatchedTree


def _class_for(function: Any) -> type[_Watched]:
    """Return the class of the wrapper that ``watch(function)`` makes. If ``function`` is a pytree (as
    ``eqx.filter_jit`` returns), the class is a pytree class, too."""
    tree_util: Any = sys.modules.get("jax.tree_util")
    if tree_util is None or tree_util.all_leaves([function]):
        return _Watched
    return _tree_class()


@overload
def watch(function: F) -> F: ...
@overload
def watch(*, step: bool = ...) -> Any: ...
def watch(function: Any = None, *, step: bool = False) -> Any:
    """Return a wrapper of ``function``. While a recording is active, jaxscope counts the wrapper's calls, and
    checks whether globals and closed-over values have changed since they were traced.

    With ``step=True``, each call is one step (an iteration of the training loop), unless the program calls
    ``jaxscope.step()``. If neither is used, the steps are the calls of one watched function: the first that
    is called more than once, else the first that is called. Reports show step numbers.

    As a decorator, write ``@watch`` or ``@watch(step=True)``. The function may be plain or jitted, a method,
    or a function under ``nnx.jit`` or ``eqx.filter_jit``. The wrapper has the attributes and methods of the
    function. A wrapper that ``watch`` made before is returned unchanged; ``step`` is then ignored.

    Raises:
      TypeError: ``function`` is not callable.
    """
    if function is None:
        return functools.partial(watch, step=step)
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_watch(function.__func__, step))
    return _watch(function, step)


def _watch(function: Any, step: bool) -> Any:
    """Return a wrapper of ``function``, as ``watch`` does. Raises TypeError if it cannot be called."""
    if not callable(function):
        raise TypeError(f"jaxscope.watch needs a function, not {type(function).__name__}")
    if issubclass(type(function), _Watched):
        return function
    return _register(_class_for(function)(function, step))


def _register(watched: _Watched, *, when_called: bool = False) -> Any:
    """Let the active recording, and each later one, count the calls of the wrapper ``watched``. Return
    ``watched``. With ``when_called``, the active recording learns of the wrapper only at its first call."""
    _watched.append(weakref.ref(watched, _watched.remove))
    if when_called and _session is not None:
        # A tree map over a callable pytree makes dozens of watched functions, and calls none of them.
        object.__setattr__(watched, "_jaxscope_counter", _FirstCall(watched))
    else:
        _attach(watched)
    return watched


class _FirstCall(Tick):
    """A placeholder for the counter of the wrapper ``watched``, because many wrappers are never called. The
    first call of the wrapper replaces the placeholder by a real counter."""

    each = None

    def __init__(self, watched: _Watched) -> None:
        self.watched = weakref.ref(watched)
        self.value = self.due = self.index = 0
        self.cells = [0]

    def came_due(self, value: int) -> bool:
        """Replace this placeholder by a real counter, and let that counter count the first call. Return
        whether the values that the function captured have to be checked after this call."""
        watched = self.watched()
        if watched is not None:
            _attach(watched)
            if watched._jaxscope_counter is not None:
                return bool(watched._jaxscope_counter.add())
        return False


def step() -> None:
    """Mark the end of a step, an iteration of the training loop. Call this function at the end of the
    loop's body, so that reports show in which step a compilation took place. Without a recording, nothing
    happens.

    Raises:
      RecompileError: in a ``no_recompiles`` block, something was compiled too late.
    """
    if _session is not None:
        _session.tracker.mark()


def snapshot() -> None:
    """Record which JAX arrays are alive now, with their shapes and devices and the variables that refer to
    them. Nothing happens without a recording, or if the recording has the option ``arrays=False``."""
    if _session is not None:
        _session.snapshot()


def _attach(watched: _Watched) -> None:
    """Let the active recording count the calls of the wrapper ``watched`` and check the values that its
    function captured. Without a recording, the wrapper only calls its function from now on."""
    counter = guard = None
    if _session is not None:
        counter, guard = _session.watch(watched._jaxscope_function, watched._jaxscope_step)
    object.__setattr__(watched, "_jaxscope_guard", guard)
    object.__setattr__(watched, "_jaxscope_counter", counter)


def _follow(session: Any) -> None:
    """Make ``session`` the active recording, which then counts the calls of all functions wrapped by
    ``jaxscope.watch``. None: the recording has ended, so stop counting."""
    global _session
    _session = session
    for ref in list(_watched):
        watched = ref()
        if watched is not None:
            _attach(watched)


announce.subscribe(_follow)
