"""Collect the values that a function reads besides its arguments: closure cells, globals, attributes.

If the function calls other functions of the user, these are searched too. Library functions, arrays and plain
values are not searched.
"""

from __future__ import annotations

import sys
import weakref
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from jaxscope.capture import frames, paths
from jaxscope.capture.attributes import MISSING, attribute, dictionary, of_class
from jaxscope.capture.calls import functions
from jaxscope.capture.closures import bytecode
from jaxscope.capture.closures.access_path import (
    INSIDE,
    SELF,
    WATCHED,
    Place,
    Step,
    item,
    step,
    target,
)
from jaxscope.schema.keys import Frame

MAX_FUNCTIONS = 100
MAX_FOUND = 300
MAX_CHILDREN = 64  # items of one container
MAX_DEPTH = 3  # containers inside containers

Variable = tuple[Place, str, str, Any]  # (path, name, where: closure, global or static, value)
_STDLIB = sys.stdlib_module_names


class Found(NamedTuple):
    """A value that a traced function reads and that is not passed to it as a traced argument.

    Attributes:
      place: the path to the value from the traced function.
      name: the expression in the code, such as ``config['lr']``.
      where: the kind of the variable with which ``name`` begins: ``closure``, ``global`` or ``static`` (an
        argument that stays the same from call to call).
      reader: the function that reads the value, if the traced function calls it (``helper``). None: the
        traced function reads it, or the value is ``static``.
      value: the present value.
      line: a line that reads the value, if possible one that every run of the traced function executes.
      certain: whether it is known that every run of the traced function reads the value in that line. False
        for a line of a function that it calls, and for an item or attribute of an object that the code reads
        as a whole.
    """

    place: Place
    name: str
    where: str
    reader: str | None
    value: Any
    line: Frame
    certain: bool


class _Walk:
    """Collects the values that a function, and the functions of the user that it calls, read besides their
    arguments.

    Args:
      function: the function.
      bound: name -> a function that returns the value, for arguments of ``function`` that stay the same from
        call to call, such as ``self``. These values are collected, too.
    """

    def __init__(self, function: FunctionType, bound: dict[str, Any]) -> None:
        self.found: dict[Place, Found] = {}
        self.written: set[Place] = set()
        self.attributes: set[str] = set()
        self.seen: set[tuple[int, Place | None]] = set()
        self.queue: list[tuple[FunctionType, Place, dict[str, Variable]]] = []
        arguments: dict[str, Variable] = {
            n: (((bytecode.PARAMETER, n),), n, "static", value)
            for n, ref in bound.items()
            if (value := ref()) is not None
        }
        self.whole: list[tuple[Found, int]] = []
        self.root = function
        self.queue.append((function, (), arguments))

    def run(self) -> list[Found]:
        """Return the values that the function, or a function of the user that it calls, reads. A value is
        left out if the code of these functions assigns to it by the same path."""
        while self.queue and len(self.seen) < MAX_FUNCTIONS:
            function, place, bound = self.queue.pop(0)
            self._function(function, place, bound)
        while self.whole and len(self.found) < MAX_FOUND:  # all attribute names in the code are known by now
            found, depth = self.whole.pop(0)
            self._children(found, depth)
        return [f for place, f in self.found.items() if not self._is_written(place)]

    def _is_written(self, place: Place) -> bool:
        """Return whether the searched code assigns to the value at the path ``place``, or to an object on the
        way to it."""
        return any(place[:n] in self.written for n in range(1, len(place) + 1))

    def _function(self, function: FunctionType, place: Place, bound: dict[str, Variable]) -> None:
        """Collect the values that ``function`` reads.

        Args:
          place: the path to ``function`` from the traced function.
          bound: parameter of ``function`` -> its value (a Variable), for parameters with a known value, such
            as ``self``.
        """
        receiver = next(iter(bound.values()))[0] if bound else None
        if (id(function), receiver) in self.seen:
            return
        self.seen.add((id(function), receiver))
        code = function.__code__
        reads = reads_of(function)
        self.attributes |= reads.attributes
        inner = None if function is self.root else function.__name__
        for name in reads.written:
            variable = self._variable(function, place, bound, name)
            if variable is not None:
                self.written.add((*variable[0], *name.steps))
        for name, (line, straight) in reads.read.items():
            variable = self._variable(function, place, bound, name)
            if variable is not None:
                at = Frame(code.co_filename, line, code.co_qualname)
                reader = None if variable[2] == "static" else inner
                self._read(variable, name.steps, reader, at, straight and function is self.root)

    def _variable(
        self, function: FunctionType, place: Place, bound: dict[str, Variable], name: bytecode.Name
    ) -> Variable | None:
        """Return the variable with which an expression begins: ``config`` for ``config.lr``. Return None if
        it has no value, or if it is an argument that may be different in each call.

        Args:
          function: the function whose code has the expression.
          place: the path to ``function`` from the traced function.
          bound: parameter -> variable, for the parameters of ``function`` with a known value.
          name: the expression.
        """
        if name.kind == bytecode.PARAMETER:
            return bound.get(name.name)
        key: Any = name.name
        if name.kind == bytecode.CLOSURE:
            if name.name not in function.__code__.co_freevars:
                return None
            key = function.__code__.co_freevars.index(name.name)
        value = step(function, name.kind, key)
        return None if value is MISSING else ((*place, (name.kind, key)), name.name, name.kind, value)

    def _read(
        self,
        variable: Variable,
        steps: tuple[tuple[str, object], ...],
        reader: str | None,
        at: Frame,
        certain: bool,
    ) -> None:
        """Follow an expression such as ``config.lr`` step by step from ``variable``, its first name, and
        collect the value to which it leads. If a step cannot be followed, such as a property, collect the
        value before this step. For a method of the user, collect what its code reads. A method of a dict,
        list or set that may change it, such as ``update``, counts as an assignment to the container. Collect
        nothing of a library's module.

        Args:
          variable: the variable and its value.
          steps: (attribute or item, key) pairs.
          reader: the function that reads the value, as in ``Found.reader``.
          at: the line that reads the value.
          certain: whether every run of the traced function executes that line.
        """
        place, name, where, value = variable
        for how, key in steps:
            if _ends_here(value):
                break
            kind = type(value)
            if issubclass(kind, ModuleType) and not _belongs_to_user(attribute(value, "__name__")):
                return  # numpy.pi, jax.numpy.sum
            containers = (dict, list, set)
            if how == bytecode.ATTRIBUTE and issubclass(kind, containers) and hasattr(kind, str(key)):
                if key not in bytecode.READING:
                    self.written.add(place)
                break
            following = step(value, how, key)
            if following is MISSING:
                break  # a property or a method written in C: it may read anything of the value
            if type(following) is FunctionType and following is of_class(kind, str(key)):
                if not _is_users(following):
                    break  # a library's method may read anything of the value
                self._call(following, (*place, (how, key)), (place, name, where, value))
                return
            place = (*place, (how, key))
            name += f".{key}" if how == bytecode.ATTRIBUTE else f"[{key!r}]"
            value = following
        self._collect(Found(place, name, where, reader, value, at, certain), 0)

    def _call(self, function: FunctionType, place: Place, receiver: Variable) -> None:
        """Queue ``function``, a method that the code calls, so that what it reads is collected too. ``place``
        is its path from the traced function; ``receiver`` is the value of its parameter ``self``."""
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        self.queue.append((function, place, {names[0]: receiver} if names else {}))

    def _collect(self, captured: Found, depth: int) -> None:
        """Collect the value ``captured``, unless it is a bound method, a class inside a container, or of a
        kind that programs do not change (``_is_code``). If it is a function, method or callable object of the
        user, also collect what its code reads. ``depth`` is the number of containers around the value."""
        value, kind = captured.value, type(captured.value)
        if captured.place in self.found or _is_code(value):
            return
        if kind is FunctionType:
            self.found[captured.place] = captured
            self.queue.append((value, captured.place, {}))
            return
        if kind is MethodType:
            self._follow_method(captured)
            return
        if _may_wrap_a_function(value):
            inner, positional, _ = target(value)
            if inner is not None and not positional:
                self.queue.append((inner, (*captured.place, (INSIDE, None)), {}))
        call = of_class(kind, "__call__") if _belongs_to_user(kind.__module__) else MISSING
        if type(call) is FunctionType and _is_users(call):
            here = (captured.place, captured.name, captured.where, value)
            self._call(call, (*captured.place, (bytecode.ATTRIBUTE, "__call__")), here)
        if depth and isinstance(value, type):
            return
        self.found[captured.place] = captured
        if not _ends_here(value) and depth < MAX_DEPTH:
            self.whole.append((captured, depth))

    def _follow_method(self, captured: Found) -> None:
        """Collect what the code of ``captured``, a bound method, reads, if the user defines the method."""
        method = captured.value
        if type(method.__func__) is FunctionType and _is_users(method.__func__):
            owner = (*captured.place, (SELF, None))
            receiver = (owner, captured.name, captured.where, method.__self__)
            self._call(method.__func__, (*captured.place, (INSIDE, None)), receiver)

    def _children(self, captured: Found, depth: int) -> None:
        """Collect the parts of ``captured``, an object that the code reads as a whole: the items of a
        container, else the attributes whose names occur in the code; at most MAX_CHILDREN. Collect also what
        functions among the parts read. ``depth`` is the number of containers around ``captured``."""
        value = captured.value
        kind = type(value)
        pairs: list[tuple[Step, str, Any]] = []
        if issubclass(kind, dict):
            keys = [k for k in list(dict.keys(value)) if type(k) in paths.PLAIN]
            pairs = [((bytecode.ITEM, k), f"[{k!r}]", item(value, k)) for k in keys[:MAX_CHILDREN]]
        elif issubclass(kind, (list, tuple)):
            count = min(MAX_CHILDREN, len(value))
            pairs = [((bytecode.ITEM, i), f"[{i}]", item(value, i)) for i in range(count)]
        else:
            own = dictionary(value) or {}
            names = [n for n in list(own) if n in self.attributes]
            pairs = [((bytecode.ATTRIBUTE, n), f".{n}", own[n]) for n in names[:MAX_CHILDREN]]
        for further, text, child in pairs:
            if child is not MISSING and len(self.found) < MAX_FOUND:
                child_of = captured._replace(
                    place=(*captured.place, further), name=captured.name + text, value=child, certain=False
                )
                self._collect(child_of, depth + 1)
        while self.queue and len(self.seen) < MAX_FUNCTIONS:
            self._function(*self.queue.pop(0))


def _ends_here(value: Any) -> bool:
    """Return whether ``value`` is an array, a number or a string, whose parts are not searched."""
    kind = type(value)
    return (
        kind in paths.PLAIN
        or issubclass(kind, (np.ndarray, np.generic, np.dtype))
        or paths.is_jax_array(value)
    )


def _is_users(function: FunctionType) -> bool:
    """Return whether ``function`` is not defined in JAX, in a library around JAX such as flax, or in Python's
    standard library."""
    return _belongs_to_user(functions.defined_in(function))


def _belongs_to_user(module: object) -> bool:
    """Return whether the module named ``module`` is not part of JAX, of a library around JAX such as flax, or
    of Python's standard library."""
    return module == "__main__" or not (frames.is_library(module) or frames.root(module) in _STDLIB)


def _may_wrap_a_function(value: Any) -> bool:
    """Return whether ``value`` is a callable object of a library, such as a jitted function or a partial, or
    a function wrapped by ``jaxscope.watch``."""
    kind = type(value)
    if of_class(kind, WATCHED) is not MISSING:
        return True
    callable_ = of_class(kind, "__call__") is not MISSING
    return frames.is_library(kind.__module__) and callable_ and not _ends_here(value)


def _is_code(value: Any) -> bool:
    """Return whether ``value`` is a module, a function or class of a library or of Python, a function written
    in C, or a ufunc of NumPy. These values are not collected, because programs do not change them."""
    kind = type(value)
    if kind in (ModuleType, BuiltinFunctionType, MethodDescriptorType) or issubclass(kind, ModuleType):
        return True
    if kind is FunctionType:
        return not _is_users(value)
    if issubclass(kind, type):
        return not _belongs_to_user(value.__module__)
    return kind.__module__ == "numpy" and kind.__name__ == "ufunc"


_known: weakref.WeakKeyDictionary[Any, bytecode.Reads] = weakref.WeakKeyDictionary()


def reads_of(function: FunctionType) -> bytecode.Reads:
    """Return the names that the code of ``function`` reads and assigns, from a cache by code object."""
    code = function.__code__
    reads = _known.get(code)
    if reads is None:
        reads = _known[code] = bytecode.of_code(code)
    return reads


def values_read(function: FunctionType, bound: dict[str, Any]) -> list[Found]:
    """Return the values that ``function``, or a function of the user that it calls, reads and that are not
    its arguments. A value is left out if the code of these functions assigns to it by the same path.

    Args:
      bound: name -> a function that returns the value, for arguments that stay the same from call to call: a
        static ``self``, values bound by a partial. If the code reads these values, they are in the result.
    """
    return _Walk(function, bound).run()
