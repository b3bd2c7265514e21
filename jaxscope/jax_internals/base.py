"""Declare as data what jaxscope reads of JAX under private names: local variables of its frames, fields of
its objects, attributes of its modules.

A declaration has two uses: to check whether the installed JAX has the name, and to read its value. A read
gives a value or a ``Missing``, never 0, an empty list or False for a name that does not exist.
"""

from __future__ import annotations

import dataclasses
import enum
import gc
import importlib
from types import CodeType, FrameType
from typing import Any, ClassVar, TypeVar

from jaxscope.jax_internals.frame_reading import has_local, read

T = TypeVar("T")


class Missing(enum.Enum):
    """The reason why a read gave no value."""

    UNKNOWN = "this JAX has no such name"
    UNSET = "the local variable has no value yet"
    FAILED = "reading it raised an exception"

    def __bool__(self) -> bool:
        raise TypeError("a value that may be missing has no truth value: ask known() first")


def known(value: Any) -> bool:
    """Return whether ``value``, the result of a read, is a value and not a ``Missing``."""
    return not isinstance(value, Missing)


def known_or_none(value: Any) -> Any:
    """Return ``value``, the result of a read, or None where it is a ``Missing``."""
    return None if isinstance(value, Missing) else value


def first_known(*values: Any) -> Any:
    """Return the first of ``values`` that is not a ``Missing``, else the last ``Missing``.

    The arguments are the same datum, read in several places.
    """
    found: Any = Missing.UNKNOWN
    for value in values:
        if known(value):
            return value
        found = value
    return found


def private(*fills: str, optional: bool = False) -> Any:
    """Declare a field of a dataclass that is read from JAX.

    Args:
      fills: the fields of log events that stay empty if JAX does not have it, such as ``Missed.key``.
      optional: whether some supported versions of JAX lack it and no field stays empty then.
    """
    return dataclasses.field(metadata={"fills": fills, "optional": optional})


class _Read:
    """Base of the declarations. A subclass is a dataclass whose fields are read from JAX.

    Attributes:
      names: maps each field to its name in JAX.
      noun: what the names are, for messages: ``attribute`` or ``local``.
    """

    names: ClassVar[dict[str, str]]
    noun: ClassVar[str] = "attribute"

    @classmethod
    def where(cls) -> str:
        """Return the full name of the function or class in JAX that the fields are read from."""
        raise NotImplementedError

    @classmethod
    def fills(cls, field: str) -> tuple[str, ...]:
        """Return the fields of log events (``Missed.key``) that are read from ``field`` and stay empty if JAX
        does not have it."""
        fields = cls.__dataclass_fields__  # type: ignore[attr-defined]
        found: tuple[str, ...] = fields[field].metadata["fills"]
        return found

    @classmethod
    def required(cls) -> list[str]:
        """Return the fields that every supported version of JAX has."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return [f.name for f in fields if not f.metadata["optional"]]

    @classmethod
    def _has(cls, name: str) -> bool:
        """Return whether the installed JAX has ``name`` there. ``name`` is JAX's name of a field."""
        raise NotImplementedError

    @classmethod
    def lacks(cls, fields: list[str] | None = None) -> str | None:
        """Return a sentence that names those of ``fields`` that the installed JAX does not have; None if it
        has all of them.

        Args:
          fields: the fields to check; None: all fields that are not optional.
        """
        names = [cls.names[f] for f in (fields if fields is not None else cls.required())]
        lost = [n for n in names if not cls._has(n)]
        return f"{cls.where()} has no {cls.noun} {', '.join(lost)}" if lost else None


class JaxFrame(_Read):
    """Declares the local variables that jaxscope reads from frames of one function of JAX.

    Attributes:
      module: the module that defines the function.
      function: the function's name, which its frames have on the stack too.
      owner: the class or the outer function of ``module`` that defines the function; empty: the module does.
    """

    module: ClassVar[str]
    function: ClassVar[str]
    owner: ClassVar[str] = ""
    noun: ClassVar[str] = "local"

    def __new__(cls, frame: FrameType) -> Any:
        """Read the fields from ``frame``, a frame of this function.

        A field is ``Missing.UNSET`` if its variable has no value yet, and ``Missing.UNKNOWN`` if the function
        has no such variable.
        """
        self = object.__new__(cls)
        try:
            values = read(frame, cls.names.values())
            lost: Missing | None = None
        except Exception:
            values, lost = {}, Missing.FAILED
        for field, name in cls.names.items():
            if name in values:
                self.__dict__[field] = values[name]
            else:
                there = has_local(frame.f_code, name)
                self.__dict__[field] = lost or (Missing.UNSET if there else Missing.UNKNOWN)
        return self

    @classmethod
    def locals_of(cls, *fields: str) -> tuple[str, ...]:
        """Return the names that ``fields`` have as local variables in JAX, to pass to ``take_two``."""
        return tuple(cls.names[f] for f in fields)

    @classmethod
    def on(cls: type[T], stack: dict[str, FrameType]) -> T | None:
        """Read the innermost frame of this function on ``stack``; return None if there is none.

        Args:
          stack: maps function names to their innermost frames (``stack.Stack``).
        """
        frame = stack.get(cls.function)  # type: ignore[attr-defined]
        return cls(frame) if frame is not None else None  # type: ignore[call-arg]

    @classmethod
    def where(cls) -> str:
        """Return the full name of the function: ``jax._src.pjit._cpp_pjit.cache_miss``."""
        return ".".join(filter(None, (cls.module, cls.owner, cls.function)))

    @classmethod
    def code(cls) -> CodeType | None:
        """Return the code object of the function; None if the installed JAX does not have the function."""
        try:
            module = importlib.import_module(cls.module)
        except ImportError:
            return None
        owner = getattr(module, cls.owner, None) if cls.owner else None
        if owner is not None and not isinstance(owner, type):
            return _inner_code(code_of(owner), cls.function)
        return code_of(cls.python_function())

    @classmethod
    def python_function(cls) -> Any:
        """Return the Python function; None if it cannot be looked up.

        It cannot if the installed JAX does not have it, or if it is defined inside another function, which
        makes a new one in each call.
        """
        found: Any = importlib.import_module(cls.module)
        if not cls.owner:
            return function_behind(getattr(found, cls.function, None))
        owner = getattr(found, cls.owner, None)
        method = owner.__dict__.get(cls.function) if isinstance(owner, type) else None
        return function_behind(getattr(method, "fget", None) or getattr(method, "__func__", method))

    @classmethod
    def _has(cls, name: str) -> bool:
        code = cls.code()
        return code is not None and has_local(code, name)

    @classmethod
    def lacks(cls, fields: list[str] | None = None) -> str | None:
        return f"{cls.where()} is not there" if cls.code() is None else super().lacks(fields)


class JaxObject(_Read):
    """Declares the attributes that jaxscope reads from objects of one class of JAX.

    Attributes:
      module: the module that defines the class.
      kind: the name of the class, where the attributes are looked for in a check; several names, separated by
        spaces, if JAX renamed the class.
      made_in: the function of ``module`` that sets the attributes on its result, where there is no class to
        check (``kind`` is empty).
    """

    module: ClassVar[str]
    kind: ClassVar[str]
    made_in: ClassVar[str] = ""

    def __new__(cls, value: Any) -> Any:
        """Read the fields from ``value``, an object of this class.

        A field that the object lacks is ``Missing.UNKNOWN``. If ``value`` is itself a ``Missing`` or None,
        all fields are.
        """
        self = object.__new__(cls)
        for field, name in cls.names.items():
            try:
                found = Missing.UNKNOWN if isinstance(value, Missing) else getattr(value, name)
            except AttributeError:
                found = Missing.UNKNOWN
            except Exception:
                found = Missing.FAILED
            self.__dict__[field] = found
        return self

    @classmethod
    def where(cls) -> str:
        """Return the full name of the class, or of the function that sets the attributes."""
        return f"{cls.module}.{cls.kind.partition(' ')[0] or cls.made_in}"

    @classmethod
    def _has(cls, name: str) -> bool:
        module = importlib.import_module(cls.module)
        if not cls.kind:
            return name in (code_of(getattr(module, cls.made_in, None)) or _NO_CODE).co_names
        return any(_gives(getattr(module, kind, None), name) for kind in cls.kind.split())


_NO_CODE = (lambda: None).__code__


def _gives(kind: Any, name: str) -> bool:
    """Return whether instances of the class ``kind`` have an attribute ``name``: from the class body, its
    annotations, or an assignment in ``__init__``."""
    assigned = getattr(getattr(kind, "__init__", None), "__code__", _NO_CODE).co_names
    return hasattr(kind, name) or name in getattr(kind, "__annotations__", ()) or name in assigned


def declared(cls: type[T]) -> type[T]:
    """Make ``cls``, a declaration, a dataclass. Each field gets its own name as its name in JAX.

    A field that is called otherwise in JAX is renamed in ``names`` after this.
    """
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    made.names = {f.name: f.name for f in dataclasses.fields(made)}  # type: ignore[arg-type,attr-defined]
    return made


class Private:
    """Declares a private attribute of one of JAX's modules, usually a function or a setting.

    Args:
      module: the module's full name.
      name: the attribute's name in the module.
      fills: the fields of log events that stay empty if JAX does not have it, such as ``Missed.key``.
      optional: whether some supported versions of JAX lack it.
    """

    def __init__(self, module: str, name: str, *fills: str, optional: bool = False) -> None:
        self.module, self.name, self.fills, self.optional = module, name, fills, optional

    def get(self) -> Any:
        """Import the module and return the attribute's value; ``Missing.UNKNOWN`` if there is no such module
        or name."""
        try:
            return getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError):
            return Missing.UNKNOWN

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the attribute, a function, and return its result.

        Raises:
          LookupError: the installed JAX does not have it.
        """
        return self.needed()(*args, **kwargs)

    def needed(self) -> Any:
        """Return the attribute's value.

        Raises:
          LookupError: the installed JAX does not have it.
        """
        found = self.get()
        if isinstance(found, Missing):
            raise LookupError(f"{self.module}.{self.name} is not there")
        return found

    def set(self, value: Any) -> None:
        """Assign ``value`` to the attribute in JAX's module."""
        setattr(importlib.import_module(self.module), self.name, value)

    def lacks(self) -> str | None:
        """Return a sentence that the installed JAX does not have the attribute; None if it has it, or if the
        attribute is optional."""
        there = self.optional or known(self.get())
        return None if there else f"{self.module}.{self.name} is not there"


def function_behind(cached: Any) -> Any:
    """Return the Python function that ``cached``, a function wrapped by one of JAX's caches, calls; any other
    value as it is."""
    function = getattr(cached, "__wrapped__", cached)
    if not hasattr(function, "__code__"):
        # JAX's weakref_lru_cache is a C++ object without __wrapped__. The garbage collector lists the
        # functions that it refers to: the cached one, and the two helpers whose names are excluded here.
        for held in gc.get_referents(function):
            code = getattr(held, "__code__", None)
            if isinstance(code, CodeType) and code.co_name not in ("trace_context", "<lambda>", "_ignore"):
                return held
    return function


def code_of(function: Any) -> CodeType | None:
    """Return the code object of ``function``, also if one of JAX's caches wraps it; None if it has none."""
    return getattr(function_behind(function), "__code__", None)


def _inner_code(code: CodeType | None, name: str) -> CodeType | None:
    """Return the code object of the nested function ``name`` in the code of its outer function; None if there
    is none."""
    for const in code.co_consts if code is not None else ():
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    return None
