"""Values that are part of the key by their own ``==`` and ``hash``, and texts that stay short.

Calls the user's ``__repr__`` and ``__hash__``: what they raise costs a field.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import reprlib
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from jaxscope.capture import paths, seams
from jaxscope.capture.functions import Serials
from jaxscope.schema.keys import Static

MAX_TEXT = 4000
MAX_REPR = 300
MAX_BOUND = 50  # values bound by one partial
ADDRESS = seams.ADDRESS


class _Short(reprlib.Repr):
    """Looks into a container a few levels and elements deep: one may hold a million."""

    def repr_instance(self, x: Any, level: int) -> str:
        return shown(x)


_short = _Short()
_short.maxtuple = _short.maxlist = _short.maxdict = _short.maxset = _short.maxfrozenset = 20
_short.maxstring = _short.maxother = _short.maxlong = MAX_REPR


def limited(text: str) -> str:
    """Long texts are cut, with a hash of the whole so that a difference still shows."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _is_array(value: Any) -> bool:
    kind = type(value)
    return issubclass(kind, np.ndarray) or (hasattr(kind, "aval") and hasattr(kind, "dtype"))


def shown(value: Any) -> str:
    """A value in few words, never with an address."""
    if isinstance(value, FunctionType):
        code = value.__code__
        return f"<function {value.__qualname__} at {code.co_filename}:{code.co_firstlineno}>"
    if isinstance(value, (MethodType, BuiltinFunctionType)):
        return f"<{type(value).__name__} {getattr(value, '__qualname__', '?')}>"
    if isinstance(value, type):
        return f"<class {value.__module__}.{value.__qualname__}>"
    if _is_array(value):
        return f"<{type(value).__name__} {value.dtype}{list(value.shape)}>"
    kind = type(value)
    try:
        if issubclass(kind, (bool, int, float, complex)):
            text = repr(value)
        elif issubclass(kind, (str, bytes, list, tuple, dict, set, frozenset)):
            text = _short.repr(value)
        elif dataclasses.is_dataclass(value) and getattr(kind, "__repr__", None) is not object.__repr__:
            fields = (
                f"{f.name}={shown(getattr(value, f.name))}" for f in dataclasses.fields(value) if f.repr
            )
            text = f"{kind.__qualname__}({', '.join(fields)})"
        elif getattr(kind, "__repr__", None) is object.__repr__:
            text = f"<{kind.__module__}.{kind.__qualname__}{_plain_fields(value)}>"
        elif isinstance(value, functools.partial):
            text = f"functools.partial({shown(value.func)})"
        elif not paths.walk([("", value)], _is_array, leaves=False, nodes=500).arrays:
            text = repr(value)
        else:  # its repr may print the arrays it holds, and so wait for the device
            text = f"<{kind.__module__}.{kind.__qualname__}>"
    except Exception as e:  # the user's own __repr__
        return f"<{type(value).__qualname__}; its repr raised {type(e).__name__}>"
    text = ADDRESS.sub("", str(text))
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


def _plain_fields(value: Any) -> str:
    """`` n=3 name='a'``: an object that prints as an address is known by what it holds."""
    fields = [
        f"{step[1:]}={held!r}"[:60]
        for step, held in paths.children(value) or ()
        if step.startswith(".") and type(held) in paths.PLAIN
    ]
    return "".join(f" {f}" for f in fields[:6]) + (" …" if len(fields) > 6 else "")


def parts(path: str, value: Any, serials: Serials) -> list[Static]:
    """A static value; a partial with each value it binds, so that the one that changed has a path."""
    found = [static(path, value, serials)]
    if type(value) is functools.partial:
        found += [static(f"{path}.args[{i}]", v, serials) for i, v in enumerate(value.args[:MAX_BOUND])]
        found += [
            static(f"{path}.keywords[{k!r}]", v, serials) for k, v in list(value.keywords.items())[:MAX_BOUND]
        ]
    return found


def static(path: str, value: Any, serials: Serials) -> Static:
    """A value compared by its own ``__eq__`` and ``__hash__``."""
    try:
        hashed: int | None = hash(value)
    except Exception:
        hashed = None
    kind = type(value)
    by_identity = getattr(kind, "__eq__", None) is object.__eq__ or isinstance(value, (FunctionType, type))
    return Static(
        path=path,
        repr=shown(value),
        type=paths.kind_name(kind),
        compares="identity" if by_identity else "value",
        serial=serials.of(value) if not isinstance(value, paths.PLAIN) else None,
        hash=hashed,
        unstable_hash=not by_identity and serials.equal_with_another_hash(path, value, hashed),
    )


def opaque(path: str, value: Any) -> Static:
    try:
        hashed: int | None = hash(value)
    except Exception:
        hashed = None
    return Static(
        path=path, repr="(see the fields above)", type=type(value).__qualname__, compares="value", hash=hashed
    )
