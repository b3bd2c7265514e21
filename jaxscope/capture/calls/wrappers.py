"""Find the user's function and arguments in the frames of library wrappers around jit, such as ``nnx.jit``.

``nnx.jit`` and ``eqx.filter_jit`` take the user's arguments apart and pass the parts to a jitted function of
their own. In JAX's cache key these parts are called ``args[0][1]...`` or are whole graph definitions. The
frame of the wrapper, a few frames further out on the stack, has the user's own arguments. The array leaves
are the same objects in both calls, so that each leaf can be named by its path in the user's arguments.

To support a further library, add one entry to ADAPTERS.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, NamedTuple

from jaxscope import jax_internals
from jaxscope.capture import frames, paths
from jaxscope.capture.calls import functions
from jaxscope.jax_internals import Missing, frame_reading
from jaxscope.schema.libraries import JAX_ROOTS, OWN_ROOT


class JitOptions(NamedTuple):
    """The options of jit that determine which arguments are static and how arguments are named.

    Attributes:
      fun_signature: the signature of the function; None: unknown.
    """

    fun_signature: inspect.Signature | None
    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()


class UserCall(NamedTuple):
    """A call of a library's wrapper around jit, such as ``nnx.jit``, as the user wrote it.

    Attributes:
      function: the user's function.
      args, kwargs: the arguments that the user passed.
      signature: the signature of the function; None: unknown.
      wrapper: the name of the wrapper: ``flax.nnx.jit``.
      options_are_its_own: whether the wrapper chose the options of jit, not the user.
      flattened: the options that name the static arguments, for a wrapper that passes the leaves of ``args``
        and ``kwargs`` to jit in their order (``jax.pmap``). None for all other wrappers.
    """

    function: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    signature: inspect.Signature | None
    wrapper: str
    options_are_its_own: bool = False
    flattened: JitOptions | None = None


def _nnx(frame: FrameType) -> UserCall | None:
    """Return the call of ``nnx.jit`` that ``frame``, a frame of its wrapper, runs; None if the frame cannot
    be read."""
    local = frame_reading.read(frame, ("self", "args", "kwargs"))
    if len(local) != 3:
        return None
    function = getattr(local["self"], "fun", None)
    return UserCall(
        function, tuple(local["args"]), dict(local["kwargs"]), _signature(function), "flax.nnx.jit"
    )


def _filter_jit(frame: FrameType) -> UserCall | None:
    """Return the call of ``eqx.filter_jit`` that ``frame``, a frame of its wrapper, runs; None if the frame
    cannot be read."""
    local = frame_reading.read(frame, ("jit_wrapper", "args", "kwargs"))
    if len(local) != 3:
        return None
    wrapper = local["jit_wrapper"]
    function = wrapper.__wrapped__
    return UserCall(
        function,
        tuple(local["args"]),
        dict(local["kwargs"]),
        getattr(wrapper, "_signature", None),
        "equinox.filter_jit",
        options_are_its_own=True,
    )


def _pmap(frame: FrameType) -> UserCall | None:
    """Return the call of ``jax.pmap`` that ``frame``, a frame of its wrapper, runs; None if the frame cannot
    be read."""
    found = jax_internals.pmap_call(frame)
    if found is None:
        return None
    function, args, kwargs, static = found
    signature = _signature(function)
    return UserCall(
        function,
        tuple(args),
        dict(kwargs),
        signature,
        "jax.pmap",
        flattened=JitOptions(signature, tuple(static)),
    )


def _signature(function: Any) -> inspect.Signature | None:
    """Return the signature of a function; None if Python cannot determine it."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


class _Adapter(NamedTuple):
    """How to read the user's call of a library's wrapper around jit.

    Attributes:
      module: the module of the function that the wrapper jits.
      function: a part of this function's qualified name.
      endings: how the qualified names of the wrapper's own functions end.
      read: reads a frame of one of these.
    """

    module: str
    function: str
    endings: tuple[str, ...]
    read: Callable[[FrameType], UserCall | None]


ADAPTERS = (
    _Adapter(
        "flax.nnx.transforms.compilation",
        "Jit",
        ("JitWrapped.__call__", "JitPartialWrapped.__call__", "JitWrapped.lower", "JitWrapped.trace"),
        _nnx,
    ),
    _Adapter("equinox._jit", "_filter_jit_cache", ("_call",), _filter_jit),
    _Adapter(jax_internals.PmapFrame.module, "_fun", ("pmap.<locals>.wrapped",), _pmap),
)
MAX_COMPARED = 100_000  # values of one key that are examined
MAX_FRAMES = 12  # how many frames are searched for the wrapper's frame, from the frame of the call outward


def jitted_by_user(function: object, frame: FrameType | None) -> bool:
    """Return whether the user passed ``function`` to jit, and not the library that defines ``function``: the
    user's code (or, if none is on the stack, an installed package's) calls the jitted function, and the
    library has not jitted ``function`` where it is defined (``is_jitted_where_defined``). A call from no
    Python line (``atexit``) counts as the user's.

    Args:
      function: the function; None: unknown, because the call is under a transform.
      frame: the frame of the call.
    """
    strict = frames.root(_made_by(function)[0]) in JAX_ROOTS  # if JAX calls it, JAX has jitted it
    own = frames.users(frames.walk(frame))  # lines of an installed package if there is none of the user
    for f in frames.walk(frame.f_back if frame is not None else None):
        module = frames.module_of(f)
        root = frames.root(module)
        if function is None:  # under a transform only the wrapper's frame has the function
            function = _library_function(_wrapper_call(f, module))
        if module in _BETWEEN or root in _AROUND or root in sys.stdlib_module_names:
            continue
        if jax_internals.in_jax(f) and not strict:
            continue
        if f not in own:
            return False
        break
    return function is None or not functions.is_jitted_where_defined(function)


def _wrapper_call(frame: FrameType, module: str) -> UserCall | None:
    """Return the user's call if ``frame`` is that of a known library wrapper such as ``nnx.jit`` and can be
    read; else None. ``module`` is the module of the frame's code."""
    for owner, _, endings, adapter in ADAPTERS:
        if module == owner and frame.f_code.co_qualname.endswith(endings):
            return adapter(frame)
    return None


def _library_function(call: UserCall | None) -> object:
    """Return the function of ``call`` if an installed package or a library defines it; else None, also if
    ``call`` is None."""
    code = getattr(functions.unwrap(call.function).function, "__code__", None) if call is not None else None
    return call.function if call is not None and code and frames.is_not_users_file(code.co_filename) else None


# Modules and packages with frames between the line that calls and the call: decorators, wrappers.
_BETWEEN = frozenset({*jax_internals.AROUND_CALLS, *(a.module for a in ADAPTERS)})
_AROUND = frozenset({OWN_ROOT, "jaxtyping", "beartype", "typeguard"})


def _made_by(function: object) -> tuple[str, str]:
    """Return (module, qualified name) of the code of ``function``, or of its class if it has no code. JAX's
    ``api_boundary`` around ``function`` is skipped."""
    while functions.defined_in(function) == jax_internals.TRIMS_TRACEBACKS:
        function = getattr(function, "__wrapped__", None)  # JAX's api_boundary, which only trims tracebacks
    # Not ``__module__`` and ``__qualname__``, which ``functools.wraps`` replaces.
    code = getattr(function, "__code__", None)
    if code is None:
        return type(function).__module__, type(function).__qualname__
    return functions.defined_in(function), code.co_qualname


def user_call(function: object, frame: FrameType | None) -> UserCall | Missing | None:
    """Return the user's call of a known library wrapper such as ``nnx.jit``, if this wrapper called
    ``jit(function)`` at ``frame``.

    Return None if no such wrapper made the call or ``frame`` is None, and a ``Missing`` if the frame of the
    wrapper cannot be read.
    """
    module, qualname = _made_by(function)
    for owner, part, endings, adapter in ADAPTERS:
        if module != owner or part not in qualname:
            continue
        for _, f in zip(range(MAX_FRAMES), frames.walk(frame), strict=False):
            if frames.is_user(f):
                return None  # frames above belong to another call
            if frames.module_of(f) == owner and f.f_code.co_qualname.endswith(endings):
                return adapter(f) or Missing.UNKNOWN
    return None


class Compared:
    """The values that JAX compares when it looks up a call in its cache: the static arguments, the static
    data of the arguments' tree, and the values inside both. ``value in compared`` tells whether ``value`` is
    one of them.

    Args:
      tree: the PyTreeDef of the arguments.
      static: the static arguments.
    """

    def __init__(self, tree: Any, static: Iterable[Any]) -> None:
        self._objects: dict[int, Any] = {}  # by id(), which is valid because this refers to the objects
        self._plain: set[tuple[type, Any]] = set()
        self.cut = False  # whether there are more values than are examined
        left: list[Any] = [tree, *static]
        while left:
            value = left.pop()
            kind = type(value)
            if kind in paths.PLAIN:
                self._plain.add((kind, value))
            elif id(value) not in self._objects:
                self._objects[id(value)] = value
                left += _compared_with(value)
            if len(self._objects) + len(self._plain) > MAX_COMPARED:
                self.cut = True
                break

    def __contains__(self, value: Any) -> bool:
        """Return whether ``value`` is a part of JAX's cache key. Numbers and strings are looked up by type
        and value, other objects by identity. If the key has more than MAX_COMPARED values, return True for
        any value."""
        if self.cut:
            return True
        kind = type(value)
        return (kind, value) in self._plain if kind in paths.PLAIN else id(value) in self._objects

    def without_contents(self, value: Any) -> bool:
        """Return whether ``value`` is a part of JAX's cache key that JAX compares without its contents, such
        as a function. False for a number or a string."""
        return id(value) in self._objects and _whole(value)


def _compared_with(value: Any) -> list[Any]:
    """Return the values inside ``value`` that JAX compares when it compares ``value``: the children and the
    static data of a PyTreeDef, the items of a container, the attributes of an object. Empty if JAX compares
    ``value`` without its contents (``_whole``)."""
    kind = type(value)
    if kind.__name__ == "PyTreeDef" and kind.__module__.partition(".")[0] == "jaxlib":
        data = value.node_data()
        return [*value.children(), *(data[1:] if data is not None else ())]
    if _whole(value):
        return []
    if issubclass(kind, (set, frozenset)):
        return list((set if issubclass(kind, set) else frozenset).__iter__(value))
    return [held for _, held in paths.children(value) or ()]


def _whole(value: Any) -> bool:
    """Return whether JAX compares ``value`` without its contents: a number, a string, a function, a class, a
    module, or an object of the program whose class defines and inherits no ``__eq__``."""
    kind = type(value)
    if issubclass(kind, (*paths.PLAIN, *paths.CODE)):
        return True
    # An object of a library, such as a flax module, is searched.
    return getattr(kind, "__eq__", None) is object.__eq__ and not frames.is_library(kind.__module__)
