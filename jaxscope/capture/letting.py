"""When the program let an array go: before it could look at it once more after a call, or some time later.

What hears of an array's end is C code alone, as in capture.endings; it notes the code that ran and the instruction it
was at. Whether anything stood between the call and that instruction is read from the bytecode, when there is time.
An array that an alias, a list or an attribute held longer died elsewhere: then nobody claims that it could be donated.
"""

from __future__ import annotations

import dis
import functools
import itertools
import operator
import sys
import weakref
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope.capture import frames
from jaxscope.schema.libraries import JAX_ROOTS

MAX_FRAMES = 16
MAX_INSTRUCTIONS = 20_000

_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF", "POP_TOP")
_LOADS = (
    "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_CONST",
    "LOAD_SMALL_INT",
)  # fmt: skip
_NOTHING = ("NOP", "CACHE", "EXTENDED_ARG", "PRECALL")
# What an assignment of a call's result does, as (taken from the stack, put on it). Nothing here computes with
# what the caller's variables hold: the loads are of the places that are stored into.
_ASSIGNING = {
    **dict.fromkeys(_STORES, (1, 0)),
    **dict.fromkeys(_LOADS, (0, 1)),
    **dict.fromkeys(_NOTHING, (0, 0)),
    "LOAD_FAST_LOAD_FAST": (0, 2),
    "STORE_FAST_STORE_FAST": (2, 0),
    "STORE_FAST_LOAD_FAST": (1, 1),
    "STORE_ATTR": (2, 0),
    "STORE_SUBSCR": (3, 0),
    "BINARY_SUBSCR": (2, 1),
}
_CONSTANTS = ("LOAD_CONST", "LOAD_SMALL_INT")
_RETURNING = frozenset({*_STORES, *_LOADS, *_NOTHING, "STORE_FAST_LOAD_FAST", "UNPACK_SEQUENCE"})

Point = tuple[CodeType, int]  # an instruction


class Calling(NamedTuple):
    """A frame that waits for the call: at which instruction, and whether a library's that hands arguments on."""

    code: CodeType
    at: int
    library: bool


class Watch(NamedTuple):
    """An array and, once it is gone, where."""

    ref: weakref.ref[Any]
    end: list[Point]


def watch(value: Any) -> Watch:
    """Raises TypeError where no weak reference to ``value`` is possible."""
    end: list[Point] = []
    points = map(operator.attrgetter("f_code", "f_lasti"), map(sys._getframe, itertools.repeat(0, 1)))
    # The dead reference is ``next``'s default: one note, and nothing when called again.
    return Watch(weakref.ref(value, functools.partial(next, map(end.append, points))), end)


def waiting(frame: FrameType | None) -> list[Calling]:
    """The frames above a function of JAX's, innermost first, without JAX's own."""
    others = (f for f in frames.walk(frame) if frames.root(frames.module_of(f)) not in JAX_ROOTS)
    return [Calling(f.f_code, f.f_lasti, not frames.is_user(f)) for f in itertools.islice(others, MAX_FRAMES)]


def at_once(watched: Watch, callers: list[Calling]) -> bool:
    """Was it gone before a caller could have looked at it again? False: not, or it cannot be said."""
    if not watched.end:
        return False
    code, at = watched.end[0]
    for caller in callers:
        if caller.code is code and at in _assignment(code, caller.at):
            return True
        if not caller.library and not _returns(caller.code, caller.at):
            return False
    return False


def _after(code: CodeType, call: int) -> list[dis.Instruction]:
    known = itertools.islice(dis.get_instructions(code), MAX_INSTRUCTIONS)
    return list(itertools.islice(itertools.dropwhile(lambda i: i.offset <= call, known), 256))


@functools.lru_cache(256)
def _assignment(code: CodeType, call: int) -> frozenset[int]:
    """The call at offset ``call`` and the instructions that put its result where it belongs, and no more."""
    found = {call}
    depth = 1  # what stands on the stack since: the result, or its parts
    last = ""
    for i in _after(code, call):
        if i.opname in ("UNPACK_SEQUENCE", "UNPACK_EX"):
            n = i.arg or 0
            taken, put = 1, n if i.opname == "UNPACK_SEQUENCE" else (n & 0xFF) + (n >> 8) + 1
        elif i.opname == "LOAD_ATTR" and not (sys.version_info >= (3, 12) and (i.arg or 0) & 1):
            taken, put = 1, 1
        elif i.opname in ("COPY", "SWAP"):
            taken = put = i.arg or 0
            put += i.opname == "COPY"
        elif i.opname in _ASSIGNING:
            taken, put = _ASSIGNING[i.opname]
        else:
            break
        if taken > depth or (i.opname == "BINARY_SUBSCR" and depth == 2 and last not in _CONSTANTS):
            break  # it computes with the result and what stood there before
        found.add(i.offset)
        depth += put - taken
        if depth == 0 or (i.opname == "STORE_FAST_LOAD_FAST" and depth == 1):
            break
        last = i.opname
    return frozenset(found)


@functools.lru_cache(256)
def _returns(code: CodeType, call: int) -> bool:
    """Does the frame do nothing with the result of its call but return it?"""
    for i in _after(code, call):
        if i.opname in ("RETURN_VALUE", "RETURN_CONST"):
            return True
        if i.opname not in _RETURNING:
            return False
    return False
