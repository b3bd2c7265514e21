"""What JAX keeps under private names, declared as data: locals of its frames, fields of its objects,
attributes of its modules.

Each declaration serves the check (does this JAX have it?) and the read. A read gives a value or a
``Missing``: what is missing never becomes 0, an empty list or False.
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
    """Return whether the read gave a value."""
    return not isinstance(value, Missing)


def known_or_none(value: Any) -> Any:
    """Return the value, or None where the read gave none."""
    return None if isinstance(value, Missing) else value


def first_known(*values: Any) -> Any:
    """Return the first of several readings of one thing that gave a value, else the last ``Missing``."""
    found: Any = Missing.UNKNOWN
    for value in values:
        if known(value):
            return value
        found = value
    return found


def private(*fills: str, optional: bool = False) -> Any:
    """Declare a field that is read from JAX.

    Args:
      fills: the fields of the log that cannot be filled without it, as ``Event.field``.
      optional: whether some supported versions of JAX do not have it, and nothing is lost then.
    """
    return dataclasses.field(metadata={"fills": fills, "optional": optional})


class _Read:
    """A dataclass whose fields are read from JAX, each under its name in ``names``.

    Attributes:
      names: JAX's name of each field.
    """

    names: ClassVar[dict[str, str]]
    noun: ClassVar[str] = "attribute"

    @classmethod
    def where(cls) -> str:
        raise NotImplementedError

    @classmethod
    def fills(cls, field: str) -> tuple[str, ...]:
        """Return the fields of the log that are lost without ``field``."""
        fields = cls.__dataclass_fields__  # type: ignore[attr-defined]
        found: tuple[str, ...] = fields[field].metadata["fills"]
        return found

    @classmethod
    def required(cls) -> list[str]:
        """Return the fields that every supported JAX has."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return [f.name for f in fields if not f.metadata["optional"]]

    @classmethod
    def _has(cls, name: str) -> bool:
        raise NotImplementedError

    @classmethod
    def lacks(cls, fields: list[str] | None = None) -> str | None:
        """Return which of ``fields`` (all that are required) this JAX does not have, as a sentence; None:
        none."""
        names = [cls.names[f] for f in (fields if fields is not None else cls.required())]
        lost = [n for n in names if not cls._has(n)]
        return f"{cls.where()} has no {cls.noun} {', '.join(lost)}" if lost else None


class JaxFrame(_Read):
    """Declares the local variables that jaxscope reads from frames of one function of JAX.

    Attributes:
      module, function: where the function is defined; ``function`` is also its name on the stack.
      owner: the class or the function of ``module`` that defines it; empty: the module itself.
    """

    module: ClassVar[str]
    function: ClassVar[str]
    owner: ClassVar[str] = ""
    noun: ClassVar[str] = "local"

    def __new__(cls, frame: FrameType) -> Any:
        """Read the fields from a frame of this function."""
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
        """Return the names of the local variables that ``fields`` are read from, for ``take_two``."""
        return tuple(cls.names[f] for f in fields)

    @classmethod
    def on(cls: type[T], stack: dict[str, FrameType]) -> T | None:
        """Read the innermost frame of this function on ``stack``; None: there is none."""
        frame = stack.get(cls.function)  # type: ignore[attr-defined]
        return cls(frame) if frame is not None else None  # type: ignore[call-arg]

    @classmethod
    def where(cls) -> str:
        """Return the full name of the function."""
        return ".".join(filter(None, (cls.module, cls.owner, cls.function)))

    @classmethod
    def code(cls) -> CodeType | None:
        """Return the code of the function; None: this JAX does not have it."""
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
        """Return the function itself; None: this JAX does not have it, or another function defines it
        anew."""
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
      module, kind: the class, which is checked; it has several names if JAX renamed it.
      made_in: if ``kind`` is empty, the function of ``module`` that gives the instances these attributes.
    """

    module: ClassVar[str]
    kind: ClassVar[str]
    made_in: ClassVar[str] = ""

    def __new__(cls, value: Any) -> Any:
        """Read the fields from an object; all are unknown of a ``Missing`` and of None."""
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
        """Return the full name of the class."""
        return f"{cls.module}.{cls.kind.partition(' ')[0] or cls.made_in}"

    @classmethod
    def _has(cls, name: str) -> bool:
        module = importlib.import_module(cls.module)
        if not cls.kind:
            return name in (code_of(getattr(module, cls.made_in, None)) or _NO_CODE).co_names
        return any(_gives(getattr(module, kind, None), name) for kind in cls.kind.split())


_NO_CODE = (lambda: None).__code__


def _gives(kind: Any, name: str) -> bool:
    """Return whether instances of ``kind`` have an attribute of this name."""
    assigned = getattr(getattr(kind, "__init__", None), "__code__", _NO_CODE).co_names
    return hasattr(kind, name) or name in getattr(kind, "__annotations__", ()) or name in assigned


def declared(cls: type[T]) -> type[T]:
    """Make a dataclass of a declaration; its fields go by their own names in JAX."""
    made = dataclasses.dataclass(init=False, repr=False, eq=False)(cls)
    made.names = {f.name: f.name for f in dataclasses.fields(made)}  # type: ignore[arg-type,attr-defined]
    return made


class Private:
    """Declares an attribute of one of JAX's modules.

    Args:
      module, name: the module, and the name in it. ``name`` may contain a class:
        ``UnloadedMeshExecutable.from_hlo``.
      fills: the fields of the log that cannot be filled without it, as ``Event.field``.
      optional: not every supported JAX has it.
    """

    def __init__(self, module: str, name: str, *fills: str, optional: bool = False) -> None:
        self.module, self.name, self.fills, self.optional = module, name, fills, optional

    def get(self) -> Any:
        """Return its value, else ``Missing.UNKNOWN``. Imports the module."""
        try:
            return getattr(importlib.import_module(self.module), self.name)
        except (ImportError, AttributeError):
            return Missing.UNKNOWN

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it.

        Raises:
          LookupError: this JAX does not have it.
        """
        return self.needed()(*args, **kwargs)

    def needed(self) -> Any:
        """Return the value of the attribute.

        Raises:
          LookupError: this JAX does not have it.
        """
        found = self.get()
        if isinstance(found, Missing):
            raise LookupError(f"{self.module}.{self.name} is not there")
        return found

    def set(self, value: Any) -> None:
        """Give the attribute another value."""
        setattr(importlib.import_module(self.module), self.name, value)

    def lacks(self) -> str | None:
        """Return that this JAX does not have it, as a sentence; None: it has."""
        there = self.optional or known(self.get())
        return None if there else f"{self.module}.{self.name} is not there"


def function_behind(cached: Any) -> Any:
    """Return the Python function behind one of JAX's caches; any other value as it is."""
    function = getattr(cached, "__wrapped__", cached)
    if not hasattr(function, "__code__"):
        # JAX's weakref_lru_cache is a C++ object without __wrapped__; the garbage collector knows
        # the function in it, beside the key function and the explainer (both defined elsewhere).
        for held in gc.get_referents(function):
            code = getattr(held, "__code__", None)
            if isinstance(code, CodeType) and code.co_name not in ("trace_context", "<lambda>", "_ignore"):
                return held
    return function


def code_of(function: Any) -> CodeType | None:
    """Return the code of a function of JAX, also behind its caches; None: there is none."""
    return getattr(function_behind(function), "__code__", None)


def _inner_code(code: CodeType | None, name: str) -> CodeType | None:
    """Return the code of the function ``name`` that ``code`` defines."""
    for const in code.co_consts if code is not None else ():
        if isinstance(const, CodeType) and const.co_name == name:
            return const
    return None
