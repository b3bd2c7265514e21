"""Declare what jaxscope reads of JAX under private names: local variables of JAX's functions (read from their
frames), attributes of JAX's objects, attributes of JAX's modules.

A declaration checks whether the installed JAX has the name, and reads the value. For a name that does not
exist, the value is a ``Missing``, never 0, an empty list or False.
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
    """The reason why reading a private name of JAX gave no value."""

    UNKNOWN = "this JAX has no such name"
    UNSET = "the local variable has no value yet"
    FAILED = "reading it raised an exception"

    def __bool__(self) -> bool:
        raise TypeError("a value that may be missing has no truth value: ask known() first")


def known(value: Any) -> bool:
    """Return whether ``value``, the result of reading a private name of JAX, is a value and not a
    ``Missing``."""
    return not isinstance(value, Missing)


def known_or_none(value: Any) -> Any:
    """Return ``value``, the result of reading a private name of JAX; None instead of a ``Missing``."""
    return None if isinstance(value, Missing) else value


def first_known(*values: Any) -> Any:
    """Return the first of ``values`` that is not a ``Missing``. If all are, return the last; without values,
    ``Missing.UNKNOWN``. ``values`` are one property, read in several places of JAX."""
    found: Any = Missing.UNKNOWN
    for value in values:
        if known(value):
            return value
        found = value
    return found


def private(*fills: str) -> Any:
    """Return a field of a dataclass that is read under a private name of JAX. ``fills`` are the event fields
    that stay empty if JAX does not have the name: ``Missed.key`` is the field ``key`` of the event
    ``Missed``."""
    return dataclasses.field(metadata={"fills": fills})


class _Read:
    """Base class of ``JaxFrame`` and ``JaxObject``, which declare what is read of JAX. A subclass is a
    dataclass. Each field is read from an attribute of a JAX object or a local variable of a JAX function.

    Attributes:
      names: field of the subclass -> its name in JAX.
      noun: what messages call such a name: ``attribute`` or ``local``.
    """

    names: ClassVar[dict[str, str]]
    noun: ClassVar[str] = "attribute"

    @classmethod
    def where(cls) -> str:
        """Return the full name of the function or class of JAX whose local variables or attributes are
        read."""
        raise NotImplementedError

    @classmethod
    def fills(cls, field: str) -> tuple[str, ...]:
        """Return the event fields that are filled from ``field`` of this class: ``Missed.key`` is the field
        ``key`` of the event ``Missed``. They stay empty if the installed JAX lacks the name."""
        fields = cls.__dataclass_fields__  # type: ignore[attr-defined]
        found: tuple[str, ...] = fields[field].metadata["fills"]
        return found

    @classmethod
    def _has(cls, name: str) -> bool:
        """Return whether the installed JAX has the local variable or attribute ``name`` in the declared
        function or class."""
        raise NotImplementedError

    @classmethod
    def lacks(cls, fields: list[str] | None = None) -> str | None:
        """Return a sentence that names the local variables or attributes that the installed JAX lacks; None
        if it has all. ``fields`` are the fields of this class to check; None: all."""
        names = [cls.names[f] for f in (fields if fields is not None else cls.names)]
        lost = [n for n in names if not cls._has(n)]
        return f"{cls.where()} has no {cls.noun} {', '.join(lost)}" if lost else None


class JaxFrame(_Read):
    """Declares the local variables that jaxscope reads from frames of one function of JAX. A subclass has one
    field for each variable.

    Attributes:
      module: the module that defines the function.
      function: the name of the function, by which its frames are recognized on the stack.
      owner: the class or the outer function in ``module`` that contains the function; empty: neither does.
    """

    module: ClassVar[str]
    function: ClassVar[str]
    owner: ClassVar[str] = ""
    noun: ClassVar[str] = "local"

    def __new__(cls, frame: FrameType) -> Any:
        """Read the declared local variables from ``frame``, a frame of the declared function. A field is
        ``Missing.UNSET`` if its variable has no value yet, ``Missing.UNKNOWN`` if the function has no such
        variable, and ``Missing.FAILED`` if reading the frame raised an exception."""
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
        """Return the names of the local variables in JAX that ``fields`` of this class declare."""
        return tuple(cls.names[f] for f in fields)

    @classmethod
    def on(cls: type[T], stack: dict[str, FrameType]) -> T | None:
        """Read the declared local variables from the frame of the declared function on ``stack``, a dict:
        function name -> innermost frame. Return None if the function is not on ``stack``."""
        frame = stack.get(cls.function)  # type: ignore[attr-defined]
        return cls(frame) if frame is not None else None  # type: ignore[call-arg]

    @classmethod
    def where(cls) -> str:
        """Return the full name of the declared function: ``jax._src.pjit._cpp_pjit.cache_miss``."""
        return ".".join(filter(None, (cls.module, cls.owner, cls.function)))

    @classmethod
    def code(cls) -> CodeType | None:
        """Return the code object of the declared function; None if the installed JAX does not have the
        function."""
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
        """Return the declared function; for a property, its getter. None if the declared module does not have
        the function, or if another function defines it anew in each call. Raises ImportError if the installed
        JAX does not have the module."""
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
    """Declares the attributes that jaxscope reads from objects of one class of JAX. A subclass has one field
    for each attribute.

    Attributes:
      module: the module that defines the class.
      kind: the name of the class, in which a check looks for the attributes. Several names, separated by
        spaces, if JAX renamed the class. Empty: there is no class to check.
      made_in: if ``kind`` is empty, the function of ``module`` that sets the attributes on its result. A
        check looks for their names in the code of this function.
    """

    module: ClassVar[str]
    kind: ClassVar[str]
    made_in: ClassVar[str] = ""

    def __new__(cls, value: Any) -> Any:
        """Read the declared attributes from ``value``, an object of the declared class. A field is
        ``Missing.UNKNOWN`` if ``value`` lacks the attribute, is None or is a ``Missing``, and
        ``Missing.FAILED`` if reading raised an exception."""
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
        """Return the full name of the declared class, or of the function that sets the attributes."""
        return f"{cls.module}.{cls.kind.partition(' ')[0] or cls.made_in}"

    @classmethod
    def _has(cls, name: str) -> bool:
        module = importlib.import_module(cls.module)
        if not cls.kind:
            return name in (code_of(getattr(module, cls.made_in, None)) or _NO_CODE).co_names
        return any(_gives(getattr(module, kind, None), name) for kind in cls.kind.split())


_NO_CODE = (lambda: None).__code__


def _gives(kind: Any, name: str) -> bool:
    """Return whether instances of the class ``kind`` have an attribute ``name``: the name is in the body or
    the annotations of the class, or in the code of ``__init__``."""
    assigned = getattr(getattr(kind, "__init__", None), "__code__", _NO_CODE).co_names
    return hasattr(kind, name) or name in getattr(kind, "__annotations__", ()) or name in assigned


def declared(cls: type[T]) -> type[T]:
    """Make ``cls``, the declaration of a frame or object of JAX, a dataclass (this is a class decorator).
    ``cls.names`` maps each field to the same name in JAX. If JAX's name is different, the declaring module
    changes the entry afterwards."""
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    made.names = {f.name: f.name for f in dataclasses.fields(made)}  # type: ignore[arg-type,attr-defined]
    return made


class Private:
    """Declares the private attribute ``name`` of JAX's module ``module``, usually a function or a setting.
    ``fills`` are the event fields that stay empty if JAX does not have the attribute: ``Missed.key`` is the
    field ``key`` of the event ``Missed``."""

    def __init__(self, module: str, name: str, *fills: str) -> None:
        self.module, self.name, self.fills = module, name, fills

    def get(self) -> Any:
        """Import the module and return the value of the attribute. ``Missing.UNKNOWN`` if the installed JAX
        has no such module or attribute."""
        try:
            return getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError):
            return Missing.UNKNOWN

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the attribute, which is a function of JAX, and return its result. Raises LookupError if the
        installed JAX does not have the attribute."""
        return self.needed()(*args, **kwargs)

    def needed(self) -> Any:
        """Return the value of the attribute. Raises LookupError if the installed JAX does not have the
        attribute."""
        found = self.get()
        if isinstance(found, Missing):
            raise LookupError(f"{self.module}.{self.name} is not there")
        return found

    def set(self, value: Any) -> None:
        """Assign ``value`` to the attribute in JAX's module."""
        setattr(importlib.import_module(self.module), self.name, value)

    def lacks(self) -> str | None:
        """Return a sentence if the installed JAX does not have the attribute; None if it does."""
        return None if known(self.get()) else f"{self.module}.{self.name} is not there"


def function_behind(cached: Any) -> Any:
    """Return the Python function inside ``cached``, which one of JAX's caches or another decorator
    (``__wrapped__``) has wrapped. Any other value is returned unchanged."""
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
    """Return the code object of ``function``; if a cache of JAX wraps a Python function, that of the Python
    function. None if there is none."""
    return getattr(function_behind(function), "__code__", None)


def _inner_code(code: CodeType | None, name: str) -> CodeType | None:
    """Return the code object of the function ``name`` that is defined inside the function with the code
    ``code``; None if there is none."""
    for const in code.co_consts if code is not None else ():
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    return None
