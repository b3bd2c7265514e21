"""The cause of a cache miss as data, with the two values that differ.

``present.causes`` makes the words.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from jaxscope.schema.keys import Frame

# -- values ----------------------------------------------------------------------------------------------


class _Value(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="kind"):
    pass


class ArrayType(_Value, tag="array", frozen=True, gc=False):
    """An abstract value and the Python type that it was passed as. Of several leaves alike, ``shape`` is
    None."""

    shape: tuple[int | str, ...] | None
    dtype: str | None
    weak_type: bool | None = None
    type: str | None = None


class AxisSizes(_Value, tag="axis_sizes", frozen=True, gc=False):
    """The sizes of the axes that changed alike in several leaves, each with its number."""

    sizes: tuple[tuple[int, int | str], ...]


class Placement(_Value, tag="placement", frozen=True, gc=False):
    """Where an array is placed. The fields are those of ``keys.Sharding``; ``sharding``: its class."""

    sharding: str
    text: str
    devices: str | None = None
    mesh: tuple[tuple[str, int, str | None], ...] | None = None
    spec: str | None = None
    memory_kind: str | None = None


class Commitment(_Value, tag="commitment", frozen=True, gc=False):
    """Whether an array is committed to its devices; ``where``: the text of its sharding."""

    committed: bool | None
    where: str | None = None


class MemoryKind(_Value, tag="memory_kind", frozen=True, gc=False):
    memory_kind: str | None


class Layout(_Value, tag="layout", frozen=True, gc=False):
    """The order of the axes in memory, from major to minor."""

    layout: str | None


class ArgumentType(_Value, tag="type", frozen=True, gc=False):
    """The Python type of an argument."""

    type: str


class StaticValue(_Value, tag="static", frozen=True, gc=False):
    """A value that is part of the key by its own equality; ``serial``: the number of the object."""

    repr: str
    type: str
    serial: int | None = None


class Container(_Value, tag="container", frozen=True, gc=False):
    """A node of a pytree: ``dict``, ``list``, ``None``, the name of a class."""

    container: str


class Leaves(_Value, tag="leaves", frozen=True, gc=False):
    count: int


class TreeText(_Value, tag="tree", frozen=True, gc=False):
    """The whole structure of the arguments; ``order``: only the order of the keys differs."""

    text: str
    order: bool = False


class CallForm(_Value, tag="call_form", frozen=True, gc=False):
    """How the arguments were passed: ``2 positional, keywords: mask``."""

    text: str


class FunctionObject(_Value, tag="function_object", frozen=True, gc=False):
    serial: int | None


class Setting(_Value, tag="setting", frozen=True, gc=False):
    """A setting of JAX, or an option of jit, as JAX spells it."""

    text: str


class Entry(_Value, tag="entry", frozen=True, gc=False):
    """How the function was reached: call, aot, transform or nested."""

    entry: str


Value: TypeAlias = (
    ArrayType | AxisSizes | Placement | Commitment | MemoryKind | Layout | ArgumentType | StaticValue
    | Container | Leaves | TreeText | CallForm | FunctionObject | Setting | Entry
)  # fmt: skip


# -- what else is known of a cause ---------------------------------------------------------------------


class _Detail(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    pass


# Reasons why static values with the same text differ.
SAME_TEXT, NO_FIELD = "same_text", "no_field"
UNSTABLE_HASH, FUNCTION, PARTS, NO_EQ = "unstable_hash", "function", "parts", "no_eq"


class StaticDetail(_Detail, tag="static", frozen=True, gc=False):
    """Why a static value differs from another one that looks the same.

    Attributes:
      why: SAME_TEXT: the values differ, but the recorded parts of their texts are equal. NO_FIELD: no
        recorded attribute differs. UNSTABLE_HASH: the values are equal but have different hashes. FUNCTION:
        it is a function, and functions are compared by identity. PARTS: a part of it is compared by
        identity. NO_EQ: its class defines no ``__eq__`` and ``__hash__``, so it is compared by identity.
      inside: whether it is static data inside a pytree, not an argument.
      owner: the wrapper of a library that compares the value, if the value does not belong to an argument.
    """

    why: str
    inside: bool = False
    owner: str | None = None


BODY = "body"  # the form of a function that an operation outside jit runs


class NewFunction(_Detail, tag="new_function", frozen=True, gc=False):
    """How the function object was created. ``line``: where; a guess unless ``certain``."""

    form: str
    wrappers: tuple[str, ...] = ()
    qualname: str = ""
    line: Frame | None = None
    certain: bool = True


class MeshSetting(_Detail, tag="mesh_setting", frozen=True, gc=False):
    """The setting that holds the mesh around the call; ``devices``: only its list of devices."""

    devices: bool


class AheadOfTime(_Detail, tag="ahead_of_time", frozen=True, gc=False):
    """``number``: of the program compiled ahead of time, as in ``f#3``; ``differs``: it is for other
    arguments."""

    number: int | None
    differs: bool


class Cleared(_Detail, tag="cleared", frozen=True, gc=False):
    times: int


class FullCaches(_Detail, tag="full_caches", frozen=True, gc=False):
    """(name, entries, capacity) of JAX's caches that are full."""

    caches: tuple[tuple[str, int, int], ...]


class Effects(_Detail, tag="effects", frozen=True, gc=False):
    """The effects of a function: sorted names of their classes; ``refs``: all are effects of a jax.Ref."""

    names: tuple[str, ...]
    refs: bool = False


class Compared(_Detail, tag="compared", frozen=True, gc=False):
    """The numbers of arrays and statics that are equal; ``missing``: parts of the key that were not
    recorded."""

    arrays: int
    statics: int
    missing: tuple[str, ...] = ()


class NotRecorded(_Detail, tag="not_recorded", frozen=True, gc=False):
    """The key was not recorded, or an event that it refers to is lost."""


class RecordingBegan(_Detail, tag="recording_began", frozen=True, gc=False):
    """Earlier calls of the function are unknown; ``since``: where the recording began (``this block``)."""

    since: str


Detail: TypeAlias = (
    StaticDetail
    | NewFunction
    | MeshSetting
    | AheadOfTime
    | Cleared
    | FullCaches
    | Effects
    | Compared
    | NotRecorded
    | RecordingBegan
)


class Cause(msgspec.Struct, frozen=True, gc=False):
    """The cause of a cache miss.

    Attributes:
      kind: ``shape``, ``static_value``, ``new_function``, ...
      level: the cache that missed: trace, lower, compile or fast_path.
      path: the path of the argument, by the user's names; ``context`` for the mesh around the call; the
        name of the setting for ``config``; None: the cause has no single path.
      before, after: the two values; None: there is no such value.
      certainty: certain or likely.
      count: number of leaves with this cause; ``path`` is then their common path.
      detail: further data for a cause of this kind.
    """

    kind: str
    level: str
    path: str | None
    before: Value | None
    after: Value | None
    certainty: str
    count: int = 1
    detail: Detail | None = None
