"""Who holds an array: ``state.params['dense']['kernel']``, found from the frames' variables.

Looks from outside in: the outermost frame's names are the ones that last. Calls no code of the
program, and holds nothing after it returns but texts.
"""

from __future__ import annotations

import collections
import dis
import functools
import inspect
import itertools
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture import frames, paths, waiting_thread
from jaxscope.jax_internals import frame_reading
from jaxscope.schema import libraries
from jaxscope.schema.file_owner import Standing

NODES_BESIDE = 30_000  # objects looked at that lead to no array, and four for each array
MAX_DEPTH = 32
SAMPLE = 64
LARGE = 1024

# Before Python 3.13 ``locals()`` and ``frame.f_locals`` are one dict: reading it would change what the
# program was given. Functions that call one of these are not read there.
_EXPOSING = frozenset({"locals", "vars", "eval", "exec", "f_locals"})
_ATOMS = frozenset({*paths.PLAIN, *(np.dtype(c).type for c in "?bBhHiIlLefdFD")})


# A place: the one around it, the step from there, and whether the step is a dict's key still to be
# spelled. None as a step is "at some index". Spelled only where an array is found.
Node = tuple[Any, Any, bool]


class Owners:
    """Paths by ``id`` of the array, for those in ``wanted``, valid while they live.

    Numbers and texts by array, no object each: ten thousand new ones would have the garbage collector go
    through all that the program has (measured: 60 ms).
    """

    def __init__(self, wanted: set[int], skip: set[int] | None = None) -> None:
        self._around: dict[int, Node | None] = {}
        self._steps: dict[int, Any] = {}
        self._raw: set[int] = set()
        self.cut = False
        self._missing = set(wanted)
        self._seen: set[int] = set(skip or ())
        self._left = NODES_BESIDE + 4 * len(wanted)
        self._functions: list[tuple[Node, Any]] = []
        # As they are, and without their numbers: by id of a node, which lives as long as we do; by key.
        self._texts: tuple[dict[int, str], dict[int, str]] = {}, {}
        self._keys: tuple[dict[str, str], dict[str, str]] = {}, {}

    def __contains__(self, number: object) -> bool:
        """Was a name found for the array of this id?"""
        return number in self._around

    def count(
        self, arrays: Iterable[int], most: int | None = None
    ) -> tuple[dict[str, int], list[int]] | None:
        """How many of ``arrays`` (ids) each path leads to, container indices as ``[*]``, and those that none does.

        None: there are more than ``most`` paths. Without a limit numbers in paths are written ``*``
        (``['block12']['w']`` and its like become ``['block*']['w']``): there are fewer.
        """
        counts: dict[str, int] = {}
        unnamed: list[int] = []
        around, steps, raws = self._around, self._steps, self._raw
        short = most is None
        texts, keys = self._texts[short], self._keys[short]
        for number in arrays:
            if number not in around:
                unnamed.append(number)
                continue
            node, step = around[number], steps[number]
            before = texts.get(id(node))
            if before is None:
                before = self._spelled(node, short)
            if number not in raws:
                path = before + _numberless(_step(step, False), short)
            elif type(step) is str:
                key = keys.get(step)
                if key is None:
                    key = keys[step] = _numberless(_step(step, True), short)
                path = before + key
            else:
                path = before + _numberless(_step(step, True), short)
            counts[path] = counts.get(path, 0) + 1
            if most is not None and len(counts) > most:
                return None
        return counts, unnamed

    def _spelled(self, node: Node | None, short: bool) -> str:
        texts, keys = self._texts[short], self._keys[short]
        ahead: list[Node] = []
        text = ""
        while node is not None:
            known = texts.get(id(node))
            if known is not None:
                text = known
                break
            ahead.append(node)
            node = node[0]
        for n in reversed(ahead):
            _, step, raw = n
            key = keys.get(step) if raw and type(step) is str else None
            if key is None:
                key = _numberless(_step(step, raw), short)
                if raw and type(step) is str:
                    keys[step] = key
            text = texts[id(n)] = text + key
        return text

    def look(self, stacks: list[list[FrameType]]) -> None:
        """Walk the frames of ``stacks`` (each innermost first), their globals, then all modules of the user."""
        for stack in stacks:
            for frame in reversed(stack):
                self._walk(_locals(frame))
        spaces: set[int] = set()
        main = sys.modules.get("__main__")
        around = [main.__dict__] if main is not None else []
        for space in (*around, *(f.f_globals for s in stacks for f in reversed(s))):
            if id(space) not in spaces:
                spaces.add(id(space))
                self._walk(_namespace(space))
        if self._missing:
            for module in _user_modules():
                if id(module.__dict__) not in spaces:
                    self._walk(_namespace(module.__dict__))
        while self._missing and self._functions and self._left > 0:
            waiting, self._functions = self._functions, []
            for node, function in waiting:
                self._walk(_inside_function(function), node)

    def _walk(self, roots: Iterable[tuple[str, Any]], around: Node | None = None) -> None:
        queue: collections.deque[tuple[Node | None, Any, int]] = collections.deque()
        missing, seen = self._missing, self._seen
        # (place, its kind of children, pairs): the roots are children of nothing
        node: Node | None = around
        pairs: Iterable[tuple[Any, Any]] | None = roots
        raw = False
        depth = 0
        while missing:
            for step, child in pairs or ():
                number = id(child)
                if number in missing:
                    missing.discard(number)
                    self._around[number] = node
                    self._steps[number] = step
                    if raw:
                        self._raw.add(number)
                elif number not in seen and type(child) not in _ATOMS:
                    seen.add(number)
                    queue.append(((node, step, raw) if raw or step != "" else node, child, depth))
            if not queue:
                return
            node, value, depth = queue.popleft()
            depth += 1
            self._left -= 1
            if self._left < 0 or depth > MAX_DEPTH:
                self.cut = True
                if self._left < 0:
                    return
                pairs = None
                continue
            kind = type(value)
            raw = kind is dict
            try:
                if raw:
                    pairs = None if len(value) > LARGE and _holds_atoms(value) else list(value.items())
                elif kind is list or kind is tuple:
                    pairs = (
                        None
                        if len(value) > LARGE and _holds_atoms(value)
                        else zip(_SOME, tuple(value), strict=False)
                    )
                else:
                    pairs = self._children(node, value, kind)
            except Exception:  # a dead proxy, a dict that grows under us: one object, not the walk
                pairs = None

    def _children(self, node: Node | None, value: Any, kind: type) -> list[tuple[str, Any]] | None:
        if issubclass(kind, (dict, list, tuple, collections.deque)):
            return None if len(value) > LARGE and _holds_atoms(value) else paths.children(value)
        if frames.root(kind.__module__) in libraries.JAX_ROOTS and not issubclass(kind, functools.partial):
            held = jax_internals.held_array(value)
            if held is not None:
                return [("", held)]
            self._later(node, value)  # a jitted function: around one of the user's
            return None
        if issubclass(kind, (*paths.CODE, functools.partial, GeneratorType)):
            if not issubclass(kind, ModuleType):
                self._later(node, value)
            return None
        inner = paths.children(value)
        if inner is None:
            inner = _slots(value, kind)
        if inner is not None and issubclass(kind, Mapping):
            kept = [child for _, child in inner if type(child) is dict]
            if len(kept) == 1:
                return [("", kept[0])]  # a frozen dict keeps one of Python's under a name of its own
        return inner

    def _later(self, node: Node | None, value: Any) -> None:
        if node is not None:
            self._functions.append((node, value))


_SOME = itertools.repeat(None)


_DIGITS = re.compile(r"[0-9]+")


def _numberless(text: str, short: bool) -> str:
    return _DIGITS.sub("*", text) if short else text


def _step(step: Any, raw: bool) -> str:
    if step is None:
        return "[*]"
    if not raw:
        return "[*]" if step[:1] == "[" and step[1:-1].isdecimal() else str(step)
    if type(step) is int:
        return "[*]"
    return f"[{step!r}]" if type(step) in _ATOMS else f"[<{type(step).__name__}>]"


def _holds_atoms(value: Any) -> bool:
    """A large container of numbers or texts: not looked through one by one."""
    items = value.values() if issubclass(type(value), dict) else value
    return all(type(item) in _ATOMS for item, _ in zip(items, range(SAMPLE), strict=False))


def _slots(value: Any, kind: type) -> list[tuple[str, Any]] | None:
    found = []
    for owner in kind.__mro__:
        names = owner.__dict__.get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            member = owner.__dict__.get(name)
            if inspect.ismemberdescriptor(member):
                try:
                    found.append((f".{name}", member.__get__(value, kind)))
                except AttributeError:  # not set
                    continue
    return found or None


def _inside_function(f: Any) -> Iterator[tuple[str, Any]]:
    """What a function keeps: closure, defaults, what it wraps, what it is bound to."""
    if issubclass(type(f), functools.partial):
        yield "", f.func
        yield ".args", f.args
        yield ".keywords", f.keywords
        return
    if issubclass(type(f), MethodType):
        yield "", f.__self__
        yield "", f.__func__
        return
    if issubclass(type(f), GeneratorType):
        if f.gi_frame is not None:
            for name, value in _locals(f.gi_frame):
                yield f".<locals>.{name}", value
        return
    if issubclass(type(f), type):
        if not frames.is_library(f.__module__):
            for name, value in list(f.__dict__.items()):
                if not name.startswith("__"):
                    yield f".{name}", value
        return
    if issubclass(type(f), FunctionType):
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=False):
            try:
                yield f".<closure>.{name}", cell.cell_contents
            except ValueError:  # empty
                continue
        defaults = f.__defaults__ or ()
        for name, value in zip(_last_names(f.__code__, len(defaults)), defaults, strict=False):
            yield f".<default>.{name}", value
        for name, value in (f.__kwdefaults__ or {}).items():
            yield f".<default>.{name}", value
        for name, value in f.__dict__.items():
            yield ("" if name == "__wrapped__" else f".{name}"), value
        return
    wrapped = jax_internals.wrapped_function(f)
    if wrapped is not None:
        yield "", wrapped


def _last_names(code: CodeType, count: int) -> tuple[str, ...]:
    """The last ``count`` positional parameters."""
    return code.co_varnames[max(0, code.co_argcount - count) : code.co_argcount]


@functools.lru_cache(256)
def _exposes(code: CodeType) -> bool:
    """Does the function ask for its variables as a dict? ``vars(args)`` and ``model.eval()`` do not."""
    names = ""
    for op in dis.get_instructions(code):
        if op.opname in ("PRECALL", "PUSH_NULL", "CACHE"):
            continue
        if names == "vars" and op.opname.startswith("CALL") and op.arg == 0:
            return True
        names = op.argval if op.opname in ("LOAD_GLOBAL", "LOAD_NAME") else ""
        if names in ("locals", "eval", "exec") or (op.argval == "f_locals" and "ATTR" in op.opname):
            return True
    return False


def _locals(frame: FrameType) -> list[tuple[str, Any]]:
    """The variables of a function's frame; a module's are its globals and looked at as such."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return []
    if frame_reading.LOCALS_ARE_A_SNAPSHOT and not _EXPOSING.isdisjoint(code.co_names) and _exposes(code):
        return []
    there = frame.f_locals
    try:
        return [(name, there[name]) for name in there]
    finally:
        if frame_reading.LOCALS_ARE_A_SNAPSHOT:
            there.clear()


def _namespace(space: dict[str, Any]) -> list[tuple[str, Any]]:
    """A module's variables, under the module's name unless it is the program itself."""
    name = space.get("__name__")
    prefix = f"{name}." if isinstance(name, str) and name != "__main__" else ""
    return [
        (prefix + n, v)
        for n, v in list(space.items())
        if not n.startswith("__") and type(v) is not ModuleType
    ]


def _user_modules() -> list[ModuleType]:
    found = []
    for name, module in list(sys.modules.items()):
        # A lazy module's class may load it when it is asked: its dict is had without.
        if type(module) is ModuleType and not frames.is_library(name):
            file = module.__dict__.get("__file__")
            if isinstance(file, str) and not frames.is_library_file(file):
                found.append(module)
    return found


def stacks(frame: FrameType | None) -> list[list[FrameType]]:
    """The user's frames: those above ``frame``, then those of other threads; innermost first."""
    own = [f for f in frames.walk(frame) if frames.is_user(f)]
    here = threading.get_ident()
    others = [
        [f for f in frames.walk(top) if frames.standing(f) == Standing.USER]
        for thread, top in waiting_thread.tops().items()
        if thread != here
    ]
    return [own, *filter(None, others)]
