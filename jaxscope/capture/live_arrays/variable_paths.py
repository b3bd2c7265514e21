"""Find the variable that leads to an array, and the path from the variable to the array:
``state.params['dense']['kernel']``.

The search starts at the outermost frame, whose variables live longest. It calls no code of the program, and
its result contains only texts.
"""

from __future__ import annotations

import collections
import dis
import functools
import gc
import inspect
import itertools
import queue as queues
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from types import (
    AsyncGeneratorType,
    BuiltinFunctionType,
    CodeType,
    CoroutineType,
    FrameType,
    FunctionType,
    GeneratorType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any

import numpy as np

from jaxscope import jax_internals
from jaxscope.capture import frames, paths, waiting_thread
from jaxscope.capture.attributes import MISSING, attribute, dictionary
from jaxscope.jax_internals import frame_reading
from jaxscope.schema import libraries
from jaxscope.schema.file_owner import Standing

MAX_OTHER_OBJECTS = 30_000  # objects that may be visited, and four more for each array
MAX_DEPTH = 32  # containers inside containers
SAMPLE = 64  # items of a large container that are examined: if they are plain values, it is not searched
LARGE = 1024  # items
MANY_KEYS = 64  # keys of a dict above which they are written [*], if there are too many paths
SIZED = 8  # items of the smallest container whose length is noted
MOST_SIZED = 256  # containers whose length is noted

# Before Python 3.13 ``locals()`` and ``frame.f_locals`` are the same dict, and reading a frame clears it.
# So frames of functions that use one of these names are not read there.
_EXPOSING = frozenset({"locals", "vars", "eval", "exec", "f_locals"})
_OUTPUT = re.compile(r"_[0-9]*|_oh|Out")  # names that IPython gives to the results of cells
_SUSPENDED = (GeneratorType, CoroutineType, AsyncGeneratorType)
_CACHE = type(functools.lru_cache(lambda: None))  # the class of a function with a functools.lru_cache
_ATOMS = frozenset({*paths.PLAIN, *(np.dtype(c).type for c in "?bBhHiIlLefdFD")})


# How the search reached an object: (the node of the object that refers to it, the step from there, the kind
# of the step). The step is a part of the path as text (TEXT) or a key of a dict (KEY; ONE_OF_MANY if the dict
# has many keys). The step None means "at some index". Paths become text only if they lead to an array.
Node = tuple[Any, Any, int]
TEXT, KEY, ONE_OF_MANY = range(3)


class VariablePaths:
    """Searches for paths from variables to live arrays, such as ``state.params['w']``, and keeps the paths.
    They are valid while the arrays are alive.

    Args:
      array_ids: the ids (``id()``) of the arrays to search for.
      skip: the ids of objects that are not searched; None: all objects are searched.

    Attributes:
      cut: whether the search stopped at a limit.
    """

    def __init__(self, array_ids: set[int], skip: set[int] | None = None) -> None:
        # The data of an array are entries in several dicts and not one object, because ten thousand new
        # objects would start a full garbage collection (measured: 60 ms).
        self._holder: dict[int, Node | None] = {}
        self._steps: dict[int, Any] = {}
        self._raw: dict[int, int] = {}
        self._sized: list[Node] = []  # containers
        self._lengths: list[int] = []  # the length of each container in _sized
        self._limits: dict[int, int] = {}  # by id of a deque: the largest length of the queue that has it
        self._bounded: set[int] = set()  # ids of the nodes in _sized of containers with a largest length
        self.cut = False
        self._missing = set(array_ids)
        self._seen: set[int] = set(skip or ())
        self._left = MAX_OTHER_OBJECTS + 4 * len(array_ids)
        self._functions: list[tuple[Node, Any]] = []
        # Texts of nodes, by the node's id, and of keys. There are two of each: with numbers, and with * for
        # numbers. The ids are valid because nodes live as long as this object.
        self._texts: tuple[dict[int, str], dict[int, str]] = {}, {}
        self._keys: tuple[dict[str, str], dict[str, str]] = {}, {}

    def __contains__(self, number: object) -> bool:
        """Return whether a path from a variable was found to the array whose ``id()`` is ``number``."""
        return number in self._holder

    def count(
        self, arrays: Iterable[int], most: int | None = None
    ) -> tuple[dict[str, int], list[int]] | None:
        """Count the arrays whose ``id()`` is in ``arrays`` by path. Return (path -> number of arrays, the ids
        of the arrays without a path); None if there are more than ``most`` paths.

        In the returned paths, ``*`` stands for each index or integer key: ``cache[*]``. If ``most`` is None,
        there is no limit, and ``*`` stands for each number (``['block*']['w']``) and for most keys of a dict
        with more than MANY_KEYS keys.
        """
        counts: dict[str, int] = {}
        unnamed: list[int] = []
        holder, steps, raws = self._holder, self._steps, self._raw
        short = most is None
        texts = self._texts[short]
        for number in arrays:
            if number not in holder:
                unnamed.append(number)
                continue
            node = holder[number]
            prefix = texts.get(id(node))
            if prefix is None:
                prefix = self._node_text(node, short)
            path = prefix + self._step_text(steps[number], raws.get(number, TEXT), short)
            counts[path] = counts.get(path, 0) + 1
            if most is not None and len(counts) > most:
                return None
        return counts, unnamed

    def _node_text(self, node: Node | None, short: bool) -> str:
        """Return the path from a variable to an object as text: ``state.params``.

        Args:
          node: the chain of steps to the object; None: the text is empty.
          short: whether ``*`` replaces each number, and most keys of a large dict.
        """
        texts = self._texts[short]
        unwritten: list[Node] = []
        text = ""
        while node is not None:
            known = texts.get(id(node))
            if known is not None:
                text = known
                break
            unwritten.append(node)
            node = node[0]
        for n in reversed(unwritten):
            _, step, raw = n
            text = texts[id(n)] = text + self._step_text(step, raw, short)
        return text

    def lengths(self, short: bool) -> tuple[dict[str, int], list[str]]:
        """Return (path -> number of items, the paths of the bounded containers, sorted) for the containers
        that lead to arrays and have at least SIZED items; at most MOST_SIZED containers, the largest.

        A bounded container is a ``deque(maxlen=...)``, a ``queue.Queue(maxsize=...)`` or a
        ``lru_cache(maxsize=...)``; its number of items is the largest that it can have. The numbers of
        containers with equal paths are added up. ``short``: whether ``*`` replaces each number in a path, and
        most keys of a large dict.
        """
        above: set[int] = set()
        for holder in self._holder.values():
            while holder is not None and id(holder) not in above:
                above.add(id(holder))
                holder = holder[0]
        largest = sorted(zip(self._lengths, self._sized, strict=True), key=lambda s: -s[0])
        leading = [(n, node) for n, node in largest if id(node) in above][:MOST_SIZED]
        lengths: dict[str, int] = {}
        bounded = set()
        for n, node in leading:
            path = self._node_text(node, short)
            lengths[path] = lengths.get(path, 0) + n
            if id(node) in self._bounded:
                bounded.add(path)
        return lengths, sorted(bounded)

    def _note_length(self, node: Node | None, value: Any, length: int) -> None:
        """Remember ``length``, the number of items of the container ``value``. For a bounded deque or
        lru_cache, and for the container inside a bounded queue, remember the largest possible number instead.
        Do nothing if the number is less than SIZED, or if ``node`` (the chain of steps to ``value``) is
        None."""
        most = self._limits.get(id(value))
        if issubclass(type(value), collections.deque):
            most = collections.deque.maxlen.__get__(value) or most
        elif type(value) is _CACHE:
            most = value.cache_info().maxsize
        if node is not None and (most or length) >= SIZED:
            self._sized.append(node)
            self._lengths.append(most or length)
            if most is not None:
                self._bounded.add(id(node))

    def _note_limit(self, variables: Any) -> None:
        """Remember ``maxsize`` of a ``queue.Queue`` as the largest length of the container inside the queue.
        ``variables`` has the attributes of the queue by name. Do nothing if ``maxsize`` is below 1: then the
        queue has no limit."""
        most = variables.get("maxsize") if isinstance(variables, dict) else None
        if isinstance(most, int) and most > 0:
            self._limits[id(variables.get("queue"))] = most

    def _step_text(self, step: Any, raw: int, short: bool) -> str:
        """Return one step of a path as text: ``.params``, ``['w']``, ``[*]``.

        Args:
          step: the step as text, or the key of a dict; None: any index.
          raw: the kind of ``step``: TEXT, KEY (a key) or ONE_OF_MANY (a key of a large dict).
          short: whether ``*`` replaces each number, and ``[*]`` most keys of a large dict.
        """
        if short and raw == ONE_OF_MANY and not (type(step) is str and _NUMBERED.fullmatch(step)):
            return "[*]"
        keys = self._keys[short]
        is_key = raw != TEXT and type(step) is str
        text = keys.get(step) if is_key else None
        if text is None:
            text = _step(step, raw != TEXT)
            if short:
                text = _DIGITS.sub("*", text)
            if is_key:
                keys[step] = text
        return text

    def search(self, stacks: list[list[FrameType]]) -> None:
        """Search for the arrays in this order: the local variables of the frames in ``stacks``, the global
        variables of ``__main__`` and of the frames' modules, those of the user's other modules, and what is
        inside functions. The path that is found first is kept. ``stacks`` has the frames of each thread,
        innermost first; outer frames are searched before inner ones."""
        main = sys.modules.get("__main__")
        main_globals = [main.__dict__] if main is not None else []
        if main is not None and "get_ipython" in main.__dict__:
            stacks = [_in_notebook(stack, main.__dict__) for stack in stacks]
        for stack in stacks:
            for frame in reversed(stack):
                self._walk(_locals(frame))
        searched: set[int] = set()
        for namespace in (*main_globals, *(f.f_globals for s in stacks for f in reversed(s))):
            if id(namespace) not in searched:
                searched.add(id(namespace))
                self._walk(_namespace(namespace))
        if self._missing:
            for module in _user_modules():
                if id(module.__dict__) not in searched:
                    self._walk(_namespace(module.__dict__))
        while self._missing and self._functions and self._left > 0:
            waiting, self._functions = self._functions, []
            for node, function in waiting:
                self._walk(_inside_function(function), node)

    def _walk(self, roots: Iterable[tuple[str, Any]], holder: Node | None = None) -> None:
        """Search for the arrays breadth first, starting from the values in ``roots``. If a limit ends the
        search, set ``cut``.

        Args:
          roots: (step of the path, value) pairs.
          holder: the chain of steps to the object that refers to these values; None: they are values of
            variables.
        """
        queue: collections.deque[tuple[Node | None, Any, int]] = collections.deque()
        self._enqueue(queue, holder, roots, TEXT, 0)
        while self._missing and queue:
            node, value, depth = queue.popleft()
            self._left -= 1
            if self._left < 0:
                self.cut = True
                return
            if depth >= MAX_DEPTH:
                self.cut = True
                continue
            try:
                pairs = self._children(node, value)
            except Exception:  # a dead proxy, a dict that grows while it is read: skip this object only
                continue
            kind = type(value)
            length = _length(value, kind)
            raw = TEXT
            if issubclass(kind, dict):
                raw = KEY if length is None or length <= MANY_KEYS else ONE_OF_MANY
            if issubclass(kind, queues.Queue):
                self._note_limit(dictionary(value))
            if length is not None or kind is _CACHE:
                self._note_length(node, value, length or 0)
            self._enqueue(queue, node, pairs, raw, depth + 1)

    def _enqueue(
        self,
        queue: collections.deque[tuple[Node | None, Any, int]],
        node: Node | None,
        pairs: Iterable[tuple[Any, Any]],
        raw: int,
        depth: int,
    ) -> None:
        """Go through the children of one object. Record the path of each child that is one of the arrays to
        find. Append all other children to ``queue``, except plain values (numbers, strings) and objects seen
        before.

        Args:
          queue: what is still to be searched: (node, object, depth).
          node: the chain of steps to the object; None: the children are values of variables.
          pairs: (step of the path, child) of each child.
          raw: the kind of these steps: TEXT, KEY or ONE_OF_MANY.
          depth: the number of objects on the path to the children.
        """
        missing, seen = self._missing, self._seen
        for step, child in pairs:
            number = id(child)
            if number in missing:
                missing.discard(number)
                self._holder[number] = node
                self._steps[number] = step
                if raw:
                    self._raw[number] = raw
            elif number not in seen and type(child) not in _ATOMS:
                seen.add(number)
                queue.append(((node, step, raw) if raw or step != "" else node, child, depth))

    def _children(self, node: Node | None, value: Any) -> Iterable[tuple[Any, Any]]:
        """Return (step of the path, child) for each object to which ``value`` refers; for a dict, (key,
        value). ``node`` is the chain of steps to ``value``.

        Return nothing for a module and for a large container of plain values. Return nothing for a function,
        class or generator either: it is searched after all variables (``_search_later``).
        """
        kind = type(value)
        length = _length(value, kind)
        if length is not None:
            if length > LARGE and _holds_atoms(value):
                return ()
            if issubclass(kind, dict):
                return list(dict.items(value))
            if kind is list or kind is tuple:
                return zip(itertools.repeat(None), tuple(value), strict=False)
            return paths.children(value) or ()
        if frames.root(kind.__module__) in libraries.JAX_ROOTS and not issubclass(kind, functools.partial):
            held = jax_internals.held_array(value)
            if held is not None:
                return [("", held)]
            self._search_later(node, value)  # it may be a jitted function, with one of the user's inside
            return ()
        if issubclass(kind, (*paths.CODE, functools.partial, *_SUSPENDED)):
            if not issubclass(kind, ModuleType):
                self._search_later(node, value)
            return ()
        inner = paths.children(value) or []
        inner = [*inner, *_held_in_c(value, kind, bool(inner))]
        if issubclass(kind, Mapping):
            dicts = [child for _, child in inner if type(child) is dict]
            if len(dicts) == 1:
                return [("", dicts[0])]  # a frozen dict: its private dict is left out of the path
        return inner

    def _search_later(self, node: Node | None, value: Any) -> None:
        """Remember ``value``, such as a function, to search inside it after all variables. ``node`` is the
        chain of steps to ``value``; None: nothing is remembered."""
        if node is not None:
            self._functions.append((node, value))


_DIGITS = re.compile(r"[0-9]+")
_NUMBERED = re.compile(r"[^0-9]*[0-9]+")


def _step(step: Any, raw: bool) -> str:
    """Return one step of a path as text: ``.params``, ``['w']``, and ``[*]`` for an index or an integer key.
    ``raw`` is whether ``step`` is a key of a dict. If not, ``step`` is the step as text, or None for any
    index."""
    if step is None:
        return "[*]"
    if not raw:
        return "[*]" if step[:1] == "[" and step[1:-1].isdecimal() else str(step)
    if type(step) is int:
        return "[*]"
    return f"[{step!r}]" if type(step) in _ATOMS else f"[<{type(step).__name__}>]"


def _length(value: Any, kind: type) -> int | None:
    """Return the length of ``value``, of type ``kind``, if it is a list, tuple, dict or deque; else None. No
    code of the program is called."""
    for base in (dict, list, tuple, collections.deque):
        if issubclass(kind, base):
            return base.__len__(value)
    return None


def _holds_atoms(value: Any) -> bool:
    """Return whether the first SAMPLE items of the container ``value`` are all plain values (numbers, strings
    or None)."""
    items = value.values() if issubclass(type(value), dict) else value
    return all(type(item) in _ATOMS for item, _ in zip(items, range(SAMPLE), strict=False))


def _held_in_c(value: Any, kind: type, attributes: bool) -> Iterable[tuple[Any, Any]]:
    """Return (step of the path, child) for objects to which ``value``, of type ``kind``, refers in other ways
    than by attributes: the items of an object array, the traceback of an exception, the results in an
    ``lru_cache``, ... No code of the program is called.

    For a type without a rule of its own, return the objects that the garbage collector reports
    (``gc.get_referents``), but only if ``attributes`` is False (no attributes of ``value`` were found) and
    ``value`` has no ``__dict__``.
    """
    if issubclass(kind, BaseException):
        names = ("args", "__traceback__", "__cause__", "__context__")
        return [(f".{n}", attribute(value, n, in_c=True)) for n in names]
    if kind is TracebackType:
        return [(f".<locals>.{n}", v) for n, v in _locals(value.tb_frame)] + [("", value.tb_next)]
    if kind is FrameType:
        return [(f".<locals>.{n}", v) for n, v in _locals(value)]
    if kind is _CACHE:
        results = gc.get_referents(value)
        return [(".<cache>" if type(r) is dict else ".<cache>[*]", r) for r in results if type(r) is not type]
    if issubclass(kind, threading.local):
        of_threads = [v for d in gc.get_referents(value) if type(d) is dict for v in d.values()]
        return [
            (f".{n}", v) for variables in of_threads if type(variables) is dict for n, v in variables.items()
        ]
    if issubclass(kind, np.ndarray):
        if np.ndarray.dtype.__get__(value).kind != "O":
            return ()
        items = np.ndarray.ravel(np.asarray(value))
        return () if _holds_atoms(items[:LARGE].tolist()) else [(None, v) for v in items.tolist()]
    if attributes or dictionary(value) is not None:
        return ()
    return [("", r) for r in gc.get_referents(value) if r is not kind]


def _inside_function(f: Any) -> Iterator[tuple[str, Any]]:
    """Yield (step of the path, value) for each object to which ``f`` refers: ``(".<closure>.scale", array)``.
    ``f`` is a callable, a class, a generator or a coroutine. The step may be empty, as for a wrapped
    function. Yield nothing for a class of a library."""
    kind = type(f)
    if issubclass(kind, functools.partial):
        yield from (("", f.func), (".args", f.args), (".keywords", f.keywords))
    elif issubclass(kind, MethodType):
        yield from (("", f.__self__), ("", f.__func__))
    elif issubclass(kind, BuiltinFunctionType):
        if type(f.__self__) is not ModuleType:
            yield "", f.__self__
    elif issubclass(kind, _SUSPENDED):
        prefix = next(p for p in ("gi", "cr", "ag") if hasattr(kind, f"{p}_frame"))
        frame = getattr(f, f"{prefix}_frame")
        for name, value in _locals(frame) if frame is not None else ():
            yield f".<locals>.{name}", value
        yield "", getattr(f, f"{prefix}_{'yieldfrom' if prefix == 'gi' else 'await'}")
    elif issubclass(kind, type):
        if not frames.is_library(f.__module__):
            for name, value in list(f.__dict__.items()):
                if not name.startswith("__"):
                    yield f".{name}", value
    elif issubclass(kind, FunctionType):
        yield from _inside_python_function(f)
    else:
        wrapped = attribute(f, "__wrapped__", in_c=True)
        if wrapped is not MISSING:
            yield "", wrapped


def _inside_python_function(f: FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield (step of the path, value) for the closure variables, the default values and the attributes of
    ``f``: ``(".<closure>.scale", array)``."""
    code = f.__code__
    for name, cell in zip(code.co_freevars, f.__closure__ or (), strict=False):
        try:
            yield f".<closure>.{name}", cell.cell_contents
        except ValueError:  # empty
            continue
    defaults = f.__defaults__ or ()
    last_parameters = code.co_varnames[max(0, code.co_argcount - len(defaults)) : code.co_argcount]
    for name, value in zip(last_parameters, defaults, strict=False):
        yield f".<default>.{name}", value
    for name, value in (f.__kwdefaults__ or {}).items():
        yield f".<default>.{name}", value
    for name, value in f.__dict__.items():
        yield ("" if name == "__wrapped__" else f".{name}"), value


@functools.lru_cache(256)
def _exposes(code: CodeType) -> bool:
    """Return whether ``code`` uses ``locals()``, ``vars()``, ``eval``, ``exec`` or ``f_locals``.
    ``vars(args)`` and ``model.eval()`` do not count."""
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
    """Return (name, value) of the local variables in a function's frame; empty for the frame of a module or a
    class body. Before Python 3.13, also empty if the function uses ``locals()`` or the like
    (``_exposes``)."""
    code = frame.f_code
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return []
    if frame_reading.LOCALS_ARE_A_SNAPSHOT and not _EXPOSING.isdisjoint(code.co_names) and _exposes(code):
        return []
    variables = frame.f_locals
    try:
        return [(name, variables[name]) for name in variables]
    finally:
        if frame_reading.LOCALS_ARE_A_SNAPSHOT:
            variables.clear()


def _in_notebook(stack: list[FrameType], variables: dict[str, Any]) -> list[FrameType]:
    """Return ``stack`` (frames, innermost first) without the frames outside the notebook's cell, which belong
    to the kernel. If no cell is on the stack, return all frames. ``variables`` are the global variables of
    the cells."""
    cells = [n for n, frame in enumerate(stack) if frame.f_globals is variables]
    return stack[: cells[-1] + 1] if cells else stack


def _namespace(namespace: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return (name, value) of the global variables in ``namespace``, the dict of a module: ``("model.params",
    ...)``, or ``("params", ...)`` in ``__main__``. Variables whose value is a module, and names that begin
    with ``__``, are left out. IPython's names for the results of cells come last."""
    name = namespace.get("__name__")
    prefix = f"{name}." if isinstance(name, str) and name != "__main__" else ""
    held = list(namespace.items())
    if "get_ipython" in namespace:
        held.sort(key=lambda item: _OUTPUT.fullmatch(item[0]) is not None)
    return [(prefix + n, v) for n, v in held if not n.startswith("__") and type(v) is not ModuleType]


def _user_modules() -> list[ModuleType]:
    """Return the imported modules that belong to the user's program. Modules without a file are left out."""
    modules = []
    for name, module in list(sys.modules.items()):
        # A lazy module is of another class, and reading its attributes may load it: skip it.
        if type(module) is ModuleType and not frames.is_library(name):
            file = module.__dict__.get("__file__")
            if isinstance(file, str) and not frames.is_not_users_file(file):
                modules.append(module)
    return modules


def stacks(frame: FrameType | None) -> list[list[FrameType]]:
    """Return frames, one list for each thread, innermost first. The first list has ``frame`` and its callers
    as far as they belong to the user or an installed package; it is empty if none does, or ``frame`` is None.
    Each further list has the user's frames of another thread. A thread without a frame of the user has no
    list."""
    own = [f for f in frames.walk(frame) if frames.is_user(f)]
    here = threading.get_ident()
    others = [
        [f for f in frames.walk(top) if frames.standing(f) == Standing.USER]
        for thread, top in waiting_thread.tops().items()
        if thread != here
    ]
    return [own, *filter(None, others)]
