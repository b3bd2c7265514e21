"""The cache key of one call as data: what JAX looked at to decide whether it had seen the call before.

Owns the shape of a key; must not know how a key is read from a process or compared with another.
"""

from __future__ import annotations

import msgspec


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A line of Python: absolute file name as the code object has it, 1-based line, qualified name."""

    file: str
    line: int
    function: str


class Sharding(msgspec.Struct, frozen=True, gc=False):
    """How an array lies on devices.

    ``devices`` lists ids in mesh order as ranges (``"0-7"``, ``"3,1,0,2"``); ``mesh`` is
    ``[[axis, size, axis_type], ...]``; ``spec`` is the PartitionSpec as JAX spells it, so that
    ``P('d',)`` and ``P('d', None)`` stay apart.
    """

    kind: str  # the class: SingleDeviceSharding, NamedSharding, GSPMDSharding, ...
    text: str  # for people, without addresses
    devices: str | None = None
    mesh: list[tuple[str, int, str | None]] | None = None
    spec: str | None = None
    memory_kind: str | None = None


class Leaf(msgspec.Struct, frozen=True, gc=False):
    """One array-like argument leaf. ``sharding`` is an index into ``Key.shardings``."""

    path: str
    type: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None
    weak_type: bool | None = None
    sharding: int | None = None
    committed: bool | None = None
    memory_kind: str | None = None
    layout: str | None = None


class Static(msgspec.Struct, frozen=True, gc=False):
    """A value that is part of the key by its own equality, not by shape.

    ``compares`` is ``"value"``, ``"identity"`` (no ``__eq__`` of its own) or ``"parts"`` (it holds such);
    ``serial`` numbers the object within the process where it can be told apart from every earlier one
    (of a container the newest such part), ``hash`` is what ``hash(value)`` returned. ``unstable_hash``:
    it, or a part of it, compared equal to the value that stood here before, which had another hash.
    """

    path: str
    repr: str
    type: str
    compares: str | None = None
    serial: int | None = None
    hash: int | None = None
    unstable_hash: bool = False


class Key(msgspec.Struct, frozen=True, gc=False):
    """Everything JAX's caches compare for one call."""

    arguments: list[Leaf] = []
    static: list[Static] = []
    tree: str | None = None
    nodes: dict[str, str] = {}  # containers by path: dict, list, None, a class; static data is in ``static``
    call_form: str | None = None  # "2 positional, keywords: mask"
    options: dict[str, str] = {}
    context: str | None = None  # id of a ContextSeen event
    shardings: list[Sharding] = []
    function_object: int | None = None  # serial of the function object
    missing: list[str] = []  # parts that could not be read on this JAX


class OutLeaf(msgspec.Struct, frozen=True, gc=False):
    """One result of a trace: its path in the returned tree and its abstract value."""

    path: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None
    weak_type: bool | None = None
    memory_kind: str | None = None
    sharding: str | None = None  # sharding-in-types, where the mesh is explicit


class Captured(msgspec.Struct, frozen=True, gc=False):
    """An array the traced function took in without being passed it. ``name`` None: not found."""

    name: str | None
    where: str | None  # "closure", "global", "attribute", None
    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int | None


class Device(msgspec.Struct, frozen=True, gc=False):
    id: int
    kind: str
    process_index: int


class Memory(msgspec.Struct, frozen=True, gc=False):
    """Bytes on one device, as the compiler states them."""

    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    code_bytes: int | None = None
