"""Read the attributes of the program's objects without calling its code: no property, no ``__getattr__``, no
``__getattribute__``, no metaclass.
"""

from __future__ import annotations

from types import FunctionType, GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

MISSING: Any = object()
_IN_C = (GetSetDescriptorType, MemberDescriptorType)  # the second for SimpleNamespace
_METHODS = (FunctionType, staticmethod, classmethod)


def of_class(kind: type, name: str) -> Any:
    """Return the attribute ``name`` as the class ``kind`` or one of its bases stores it, without calling
    code. Return MISSING if no class has it."""
    for holder in type.__getattribute__(kind, "__mro__"):
        space = type.__getattribute__(holder, "__dict__")
        if name in space:
            return space[name]
    return MISSING


def dictionary(value: Any) -> dict[str, Any] | None:
    """Return the ``__dict__`` of ``value``, an object that is no class and no module. Return None if there is
    none, or if the class of ``value`` defines ``__dict__`` as a property: reading it would run code of the
    program."""
    descriptor = of_class(type(value), "__dict__")
    if type(descriptor) not in _IN_C:
        return None
    try:
        attributes = descriptor.__get__(value, type(value))
    except AttributeError:
        return None
    return attributes if type(attributes) is dict else None


def attribute(value: Any, name: str, *, in_c: bool = False) -> Any:
    """Return ``value.name``, read from the object's dictionary, its slots and its class without calling code.
    For a method, this is the function in the class. Return MISSING if it is a property or is not found. If
    ``in_c`` is True, attributes that a class in C computes are read, too, such as ``args`` of an
    exception."""
    kind = type(value)
    if issubclass(kind, ModuleType):
        return ModuleType.__getattribute__(value, "__dict__").get(name, MISSING)
    if issubclass(kind, type):
        return of_class(value, name)
    found = of_class(kind, name)
    if type(found) is MemberDescriptorType or (in_c and type(found) is GetSetDescriptorType):
        try:
            return found.__get__(value, kind)
        except AttributeError:  # a slot without a value
            return MISSING
    computed = (
        found is not MISSING
        and type(found) not in _METHODS
        and of_class(type(found), "__get__") is not MISSING
    )
    if computed and of_class(type(found), "__set__") is not MISSING:
        return MISSING  # a property
    own = dictionary(value)
    if own is not None and name in own:
        return own[name]
    return MISSING if computed else found


def slots(kind: type) -> list[str]:
    """Return the names that the class ``kind`` and its bases list in ``__slots__``, bases first, as Python
    stores them (``_Kind__x`` for ``__x``). ``__dict__`` and ``__weakref__`` are not returned."""
    found: list[str] = []
    for owner in reversed(type.__getattribute__(kind, "__mro__")):
        space = type.__getattribute__(owner, "__dict__")
        names = space.get("__slots__", ())
        listed: list[Any] = [names] if isinstance(names, str) else list(names)
        if any(str(n).startswith("__") for n in listed):  # Python's name for the slot __x is _Kind__x
            listed = [n if n in space else f"_{owner.__name__.lstrip('_')}{n}" for n in listed]
        found += [n for n in listed if isinstance(n, str) and type(space.get(n)) is MemberDescriptorType]
    return found
