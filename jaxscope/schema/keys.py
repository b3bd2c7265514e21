"""The cache key of a call as data: the values that JAX compares to decide whether to trace or compile again.

Also the smaller types that keys and other events use: Frame, Sharding, Device, Memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec

T = TypeVar("T")


def table_entry(table: Sequence[T], index: int | None) -> T | None:
    """Return ``table[index]``. None if ``index`` is None, or if a damaged recording has no such entry."""
    return table[index] if index is not None and 0 <= index < len(table) else None


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A line of Python code, such as a line of a stack trace.

    Attributes:
      file: name of the file as Python's code object has it, usually absolute; ``<stdin>`` or similar for code
        without a file.
      line: number of the line, from 1.
      function: qualified name of the function that contains the line.
    """

    file: str
    line: int
    function: str

    @property
    def place(self) -> tuple[str, int]:
        """Return (file, line). Two frames with the same place are on the same line, whatever the name of the
        function."""
        return self.file, self.line


def same_line(a: Frame | None, b: Frame | None) -> bool:
    """Return whether ``a`` and ``b`` are the same line of the same file. False if one of them is None."""
    return a is not None and b is not None and a.place == b.place


class Partition(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A PartitionSpec as data.

    Attributes:
      dimensions: for each dimension of the array, the mesh axes that split it, the major axis first. None in
        place of the axes: the compiler may choose them (``UNCONSTRAINED``).
      unreduced, reduced: the mesh axes that the PartitionSpec names with these keywords.
      unreduced_kind: how the values are still to be combined over ``unreduced``: sum, max or min; None: there
        are no such axes, or this version of JAX only knows sums.
    """

    dimensions: tuple[tuple[str, ...] | None, ...] = ()
    unreduced: tuple[str, ...] = ()
    reduced: tuple[str, ...] = ()
    unreduced_kind: str | None = None


class Sharding(msgspec.Struct, frozen=True, gc=False):
    """The sharding of an array.

    Attributes:
      kind: the class: SingleDeviceSharding, NamedSharding, GSPMDSharding, ...
      text: a short text for messages: ``P('d',) on d=8``, ``tpu:0``.
      devices: ids of the devices in mesh order, as ranges: ``"0-3,8"``, ``"3,1,0,2"``; None or empty:
        unknown.
      mesh: (name, size, axis type) of each axis of the mesh; None: there is no mesh. An axis type is None if
        this version of JAX has no axis types.
      spec: the PartitionSpec as JAX prints it: ``P('d',)`` and ``P('d', None)`` differ. None: there is none.
      memory_kind: ``device``, ``pinned_host``, ...; None: unknown.
      partition: the PartitionSpec as data; None: there is none, or the log is of an older version.
    """

    kind: str
    text: str
    devices: str | None = None
    mesh: tuple[tuple[str, int, str | None], ...] | None = None
    spec: str | None = None
    memory_kind: str | None = None
    partition: Partition | None = None


class Leaf(msgspec.Struct, frozen=True, gc=False):
    """One leaf of the arguments of a call: an array, or a Python number that jit converts to an array.

    Attributes:
      path: the path in the call: ``batch['image']``.
      type: the class name: ``jax.Array``, ``numpy.ndarray``, ``float``.
      shape: the shape; None: unknown. A symbolic dimension is text.
      dtype: the dtype as text; None: unknown.
      weak_type: whether the value is weakly typed (an operation uses the dtype of its other operand, as for a
        Python number); None: unknown.
      sharding: an index into the list of shardings of the cache key (``Key.shardings``); None: the value has
        no sharding.
      committed: whether the array is committed to its devices; None: unknown, or the value is not a
        jax.Array.
      memory_kind: ``device``, ``pinned_host``, ...; None: unknown.
      layout: the order of the axes in memory, from major to minor, as text: ``(1, 0)``; None: unknown.
    """

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
    """A value in a cache key that JAX compares by the value's own ``__eq__``, not by shape and dtype: a
    static argument, or static data in a pytree.

    Attributes:
      path: the path in the call: ``config``, ``model.activation``.
      repr: the value as text, shortened.
      type: the name of the value's class.
      compares: how the value is compared: ``"value"``; ``"identity"`` (a function, a bound method, or an
        object whose class defines no ``__eq__``); ``"parts"`` (it contains an object that is compared by
        identity). None: unknown.
      serial: a number that identifies the object in its process; for a container or bound method, the number
        of its newest part that is compared by identity. None: unknown, or the value is a plain one, such as a
        number or string.
      hash: the result of ``hash(value)``; None: unknown.
      unstable_hash: whether the value, or a part of it, is equal to the value in the call before, but has
        another hash.
      defined: the first line of the value, if it is a Python function. None: the value is no Python function
        or was redacted, or the log is of an older version.
    """

    path: str
    repr: str
    type: str
    compares: str | None = None
    serial: int | None = None
    hash: int | None = None
    unstable_hash: bool = False
    defined: Frame | None = None


class Key(msgspec.Struct, frozen=True, gc=False):
    """All values that JAX's caches compare for one call.

    Attributes:
      arguments: the array-like leaves of the arguments, in JAX's order.
      static: the static arguments, static data in pytrees, and values that a partial binds.
      tree: the tree definition of the arguments, as text; None: unknown.
      nodes: the containers of the arguments by path: ``dict``, ``list``, ``None``, or the name of a class.
      call_form: which arguments were passed by position and which by keyword: ``2 positional, keywords:
        mask``.
      options: those options of jit that differ from the defaults, by name, as text.
      context: the id of the settings of JAX at the time of the call; the ContextSeen event with this id has
        the settings. None: unknown.
      shardings: the shardings to which the leaves refer (``Leaf.sharding``).
      function_object: a number that identifies the function object in its process; None: unknown.
      missing: names of the parts of the key that could not be read with this version of JAX.
    """

    arguments: list[Leaf] = []
    static: list[Static] = []
    tree: str | None = None
    nodes: dict[str, str] = {}
    call_form: str | None = None
    options: dict[str, str] = {}
    context: str | None = None
    shardings: list[Sharding] = []
    function_object: int | None = None
    missing: list[str] = []


class DifferingResult(msgspec.Struct, frozen=True, gc=False):
    """A result of a shard_map that is declared equal on all devices along some mesh axes, but differs along
    them.

    Attributes:
      path: the path in the result of the jitted function: ``[0]['w']``; None: the jitted function does not
        return this result of the shard_map unchanged.
      aval: shape and dtype of the whole result of the shard_map, over all devices: ``float32[3]``.
      axes: names of the mesh axes along which the result is declared equal but differs.
    """

    path: str | None
    aval: str
    axes: list[str]


class OutLeaf(msgspec.Struct, frozen=True, gc=False):
    """One leaf of the result of a traced function.

    Attributes:
      path: the path in the returned pytree: ``[0]['w']``; empty if the result is a single array.
      shape, dtype, weak_type: the abstract value; None: unknown.
      memory_kind: the memory kind of the result; None: the trace names none.
      sharding: the PartitionSpec in the type of the result, as text; None: the type has no mesh. JAX decides
        the sharding while tracing only if the axes of the mesh are of type Explicit.
    """

    path: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None
    weak_type: bool | None = None
    memory_kind: str | None = None
    sharding: str | None = None


class Captured(msgspec.Struct, frozen=True, gc=False):
    """An array from outside a traced function that became a constant of the trace.

    Attributes:
      name: the variable that has the array; None: no such variable was found.
      where: how the function reads the variable: closure, global, default (of a parameter), partial (bound by
        functools.partial) or attribute (of a method's self); None: unknown.
      shape, dtype, bytes: shape, dtype and size in bytes of the array; None: unknown.
      draws: whether the array is a random key, from which the function draws random numbers without combining
        the key with an argument; None: unknown.
    """

    name: str | None
    where: str | None
    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int | None
    draws: bool | None = None


class Device(msgspec.Struct, frozen=True, gc=False):
    """One device of a JAX program.

    Attributes:
      id: JAX's id of the device.
      kind: the model: ``cpu``, ``TPU v5 lite``.
      process_index: JAX's index of the process that the device belongs to.
    """

    id: int
    kind: str
    process_index: int


class Memory(msgspec.Struct, frozen=True, gc=False):
    """Bytes that a compiled program needs on one device, as the compiler states them; None: not stated.

    Attributes:
      argument_bytes, output_bytes, temp_bytes: bytes of the arguments, results and temporaries.
      alias_bytes: bytes of the arguments whose memory the results reuse (donation).
      code_bytes: bytes of the program's code.
    """

    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    code_bytes: int | None = None

    @property
    def parts(self) -> dict[str, int]:
        """Return the bytes of the arguments, results and temporaries, by name: ``{"arguments": 4096,
        "results": 1024}``. A part whose size is unknown is left out."""
        parts = {
            "arguments": self.argument_bytes,
            "results": self.output_bytes,
            "temporaries": self.temp_bytes,
        }
        return {name: size for name, size in parts.items() if size is not None}
