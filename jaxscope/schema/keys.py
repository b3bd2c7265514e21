"""The cache key of one call as data: the values that JAX compares to decide whether it traces or compiles
again."""

from __future__ import annotations

import msgspec


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A line of Python: absolute file name as the code object has it, 1-based line, qualified name."""

    file: str
    line: int
    function: str


class Sharding(msgspec.Struct, frozen=True, gc=False):
    """The sharding of an array.

    Attributes:
      kind: the class: SingleDeviceSharding, NamedSharding, GSPMDSharding, ...
      text: for messages, without addresses.
      devices: ids in mesh order as ranges (``"0-7"``, ``"3,1,0,2"``).
      mesh: (axis, size, axis type) of each axis.
      spec: the PartitionSpec as JAX prints it: ``P('d',)`` and ``P('d', None)`` differ.
    """

    kind: str
    text: str
    devices: str | None = None
    mesh: tuple[tuple[str, int, str | None], ...] | None = None
    spec: str | None = None
    memory_kind: str | None = None


class Leaf(msgspec.Struct, frozen=True, gc=False):
    """One array-like argument leaf. ``sharding`` is an index into ``Key.shardings``.

    Attributes:
      path: the path in the call: ``batch['image']``.
      type: the class name: ``jax.Array``, ``numpy.ndarray``, ``float``.
      shape: the shape; None: unknown. A dimension without a size is text.
      weak_type: whether an operation uses the dtype of the other operand instead of this dtype.
      committed: whether the array is committed to its devices; None for a value that is not a
        jax.Array.
      memory_kind: ``device``, ``pinned_host``, ...
      layout: major to minor, as JAX prints it.
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
    """A value that is compared by its own equality, not by shape and dtype.

    Attributes:
      compares: ``"value"``, ``"identity"`` (no ``__eq__`` of its own) or ``"parts"`` (it contains such an
        object).
      serial: number of the object in its process (for a container, of its newest part that is compared by
        identity); None: unknown.
      hash: the result of ``hash(value)``.
      unstable_hash: whether the value, or a part of it, is equal to the value in the call before but has
        another hash.
    """

    path: str
    repr: str
    type: str
    compares: str | None = None
    serial: int | None = None
    hash: int | None = None
    unstable_hash: bool = False


class Key(msgspec.Struct, frozen=True, gc=False):
    """All values that JAX's caches compare for one call.

    Attributes:
      arguments: the array-like leaves, in JAX's order.
      static: values that are compared by their own equality.
      tree: the tree definition of the arguments, as text.
    """

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
    """One result of a trace: its path in the returned tree and its abstract value.

    Attributes:
      path: the path in the result: ``[0]['w']``; empty for the result itself.
      shape, dtype, weak_type: the abstract value; None: unknown.
      memory_kind: the memory kind of the result, where the trace names one.
    """

    path: str
    shape: tuple[int | str, ...] | None = None
    dtype: str | None = None
    weak_type: bool | None = None
    memory_kind: str | None = None
    sharding: str | None = None  # sharding-in-types, where the mesh is explicit


class Captured(msgspec.Struct, frozen=True, gc=False):
    """An array that a trace captured. If ``name`` is None, no variable with this array was found.

    Attributes:
      draws: whether the trace draws random numbers from this array and from no argument; None: unknown.
    """

    name: str | None
    where: str | None  # "closure", "global", "attribute", None
    shape: tuple[int, ...] | None
    dtype: str | None
    bytes: int | None
    draws: bool | None = None


class Device(msgspec.Struct, frozen=True, gc=False):
    """One device of the run.

    Attributes:
      id: in JAX's numbering.
      kind: the model: ``cpu``, ``TPU v5 lite``.
      process_index: JAX's index of the process that the device belongs to.
    """

    id: int
    kind: str
    process_index: int


class Memory(msgspec.Struct, frozen=True, gc=False):
    """Bytes on one device, as the compiler states them.

    Attributes:
      argument_bytes, output_bytes, temp_bytes: arguments, results and temporaries; None: not stated.
      alias_bytes: the part of the arguments whose memory the results use.
      code_bytes: the program itself.
    """

    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    code_bytes: int | None = None
