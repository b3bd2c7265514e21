"""Follow the path from a function to a value that its code reads: closure cells, globals, attributes, items.

This calls no property and no ``__getattr__`` of the program, and keeps no value alive.
"""

from __future__ import annotations

import functools
from types import FunctionType, MethodType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames
from jaxscope.capture.attributes import MISSING, attribute, of_class
from jaxscope.capture.calls import functions
from jaxscope.capture.closures import bytecode

INSIDE = "inside"  # the step to the user's function inside a wrapper
SELF = "self"  # the step to the object of a bound method
WATCHED = "_jaxscope_function"  # the attribute of a function watched by jaxscope.watch that has the function

Step = tuple[str, Any]  # (kind of the step, key): ("attribute", "lr"), ("item", 0), ("global", "scale")
Place = tuple[Step, ...]  # the path to a value, from a function


def target(function: Any) -> tuple[FunctionType | None, list[Any], dict[str, Any]]:
    """Return (the user's function inside ``function``, positional arguments, keyword arguments). The
    arguments are those that partials and methods around the user's function add to each call, such as
    ``self``. ``function`` is an object that was passed to jit.

    Return (None, [], {}) if ``function`` contains no function of the user.
    """
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for _ in range(functions.MAX_LAYERS):
        kind = type(function)
        if kind is functools.partial:
            positional = [*function.args, *positional]
            keywords = {**function.keywords, **keywords}
            function = function.func
        elif kind is MethodType:
            positional = [function.__self__, *positional]
            function = function.__func__
        elif of_class(kind, WATCHED) is not MISSING:
            function = getattr(function, WATCHED)
        elif kind is FunctionType and not frames.is_library(functions.defined_in(function)):
            return function, positional, keywords
        elif kind is FunctionType or frames.is_library(kind.__module__):
            inner = _one_inside(function)
            if inner is None:
                return None, [], {}
            function = inner
        else:
            call = of_class(kind, "__call__")
            if type(call) is not FunctionType:
                return None, [], {}
            positional = [function, *positional]
            function = call
    return None, [], {}


def _one_inside(function: Any) -> Any:
    """Return the callable inside ``function``, a function or callable object of a library; None if there is
    none. Only one wrapper is removed if possible, so that a partial between two wrappers is not skipped."""
    for inner in (getattr(function, "__wrapped__", None), jax_internals.given_to_jit(function)):
        if callable(inner) and inner is not function:
            return inner
    inner = functions.unwrap(function).function
    return None if inner is function else inner


def step(value: Any, how: str, key: Any) -> Any:
    """Return the value to which one step from ``value`` leads: ``step(config, "attribute", "lr")`` is
    ``config.lr``. Return MISSING if there is no such value, or if reading it would run code.

    Args:
      how: the kind of the step: ``attribute``, ``item``, ``inside`` (from a wrapper to the user's function in
        it), ``self`` (from a bound method to its object), ``global`` or ``closure`` (from a function to a
        variable).
      key: the name of the attribute or global, the key of the item, or the number of the closure cell. It is
        not used for ``inside`` and ``self``.
    """
    if how == bytecode.ATTRIBUTE:
        return attribute(value, key)
    if how == bytecode.ITEM:
        return item(value, key)
    if how == INSIDE:
        inner = target(value)[0]
        return MISSING if inner is None else inner
    if how == SELF:
        return value.__self__ if type(value) is MethodType else MISSING
    if type(value) is not FunctionType:
        return MISSING
    if how == bytecode.GLOBAL:
        return value.__globals__.get(key, MISSING)
    cells = value.__closure__ or ()
    try:
        return cells[key].cell_contents if key < len(cells) else MISSING
    except ValueError:  # not assigned yet
        return MISSING


def item(value: Any, key: Any) -> Any:
    """Return ``value[key]`` of a dict, list or tuple, without calling a ``__getitem__`` of a derived class.
    Return MISSING if there is no such item, or if ``value`` is of another type."""
    kind = type(value)
    try:
        if issubclass(kind, dict):
            return dict.__getitem__(value, key)
        if issubclass(kind, list):
            return list.__getitem__(value, key)
        if issubclass(kind, tuple):
            return tuple.__getitem__(value, key)
    except (KeyError, IndexError, TypeError):
        pass
    return MISSING


def resolve(function: FunctionType, bound: dict[str, Any], place: Place) -> Any:
    """Return the value to which the path ``place`` leads from ``function`` now; MISSING if it leads to none.

    Args:
      bound: name -> a function without parameters that returns the value, for the arguments of ``function``
        that stay the same from call to call, such as a static ``self``.
      place: (kind of the step, key) pairs: ``(("global", "config"), ("attribute", "lr"))`` is ``config.lr``.
    """
    value: Any = function
    for how, key in place:
        if how == bytecode.PARAMETER:
            ref = bound.get(key)
            value = ref() if ref is not None else MISSING
        else:
            value = step(value, how, key)
        if value is MISSING:
            return MISSING
    return value
