"""Values that are part of the key by their own ``==`` and ``hash``, and texts that stay short.

Calls the user's ``__repr__`` and ``__hash__``: what they raise costs a field.
"""

from __future__ import annotations

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
ADDRESS = seams.ADDRESS

_short = reprlib.Repr()
_short.maxtuple = _short.maxlist = _short.maxdict = _short.maxset = _short.maxfrozenset = 20
_short.maxstring = _short.maxother = _short.maxlong = MAX_REPR


def limited(text: str) -> str:
    """Long texts are cut, with a hash of the whole so that a difference still shows."""
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}… sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def shown(value: Any) -> str:
    """A value in few words, never with an address."""
    if isinstance(value, FunctionType):
        code = value.__code__
        return f"<function {value.__qualname__} at {code.co_filename}:{code.co_firstlineno}>"
    if isinstance(value, (MethodType, BuiltinFunctionType)):
        return f"<{type(value).__name__} {getattr(value, '__qualname__', '?')}>"
    if isinstance(value, type):
        return f"<class {value.__module__}.{value.__qualname__}>"
    if isinstance(value, np.ndarray):
        return f"<numpy {value.dtype}{list(value.shape)}>"
    try:
        # reprlib looks into a container a few levels and elements deep: one may hold a million.
        text = (
            _short.repr(value)
            if isinstance(value, (str, bytes, list, tuple, dict, set, frozenset))
            else repr(value)
        )
    except Exception as e:  # the user's own __repr__
        return f"<{type(value).__qualname__}; its repr raised {type(e).__name__}>"
    text = ADDRESS.sub("", str(text))
    return text if len(text) <= MAX_REPR else text[: MAX_REPR - 1] + "…"


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
        type=kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}",
        compares="identity" if by_identity else "value",
        serial=serials.of(value) if not isinstance(value, paths.PLAIN) else None,
        hash=hashed,
    )


def opaque(path: str, value: Any) -> Static:
    try:
        hashed: int | None = hash(value)
    except Exception:
        hashed = None
    return Static(
        path=path, repr="(see the fields above)", type=type(value).__qualname__, compares="value", hash=hashed
    )
