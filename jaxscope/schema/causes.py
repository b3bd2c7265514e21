"""The cause of a miss in one of JAX's caches (trace, lowering, executable, C++ fast path), as data.

A cause is found by comparing the cache key of a call with the cache key of an earlier call of the same
function. The value types here hold the part of the key that changed, before and after the change.
``present.causes`` writes a cause as a sentence.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from jaxscope.schema.keys import Frame

# -- values ----------------------------------------------------------------------------------------------


class _Value(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True, tag_field="kind"):
    """The base class of ``Cause.before`` and ``Cause.after``: a part of a call's cache key, before or after
    the change that made the call miss JAX's caches."""


class ArrayType(_Value, tag="array", frozen=True, gc=False):
    """The abstract value of an array argument.

    Attributes:
      shape: the shape; None: unknown, or the cause is about several arrays, perhaps of different shapes.
      dtype: the dtype; None: unknown.
      weak_type: whether the value is weakly typed; None: unknown, or the cause is not about it.
      type: the Python type that was passed: ``jax.Array``, ``numpy.ndarray``, ``float``; None: unknown, or
        the cause is about several arrays.
    """

    shape: tuple[int | str, ...] | None
    dtype: str | None
    weak_type: bool | None = None
    type: str | None = None


class AxisSizes(_Value, tag="axis_sizes", frozen=True, gc=False):
    """The sizes of the axes that changed, if the shapes of several array arguments changed in the same way.
    ``sizes`` has (index of the axis, size of the axis): ``((0, 8),)`` before a change from ``[8,128]`` to
    ``[4,128]``. Axes that stayed the same are left out."""

    sizes: tuple[tuple[int, int | str], ...]


class Placement(_Value, tag="placement", frozen=True, gc=False):
    """The sharding of an array argument, before or after the change that made a call miss JAX's caches.

    Attributes:
      sharding: the class of the sharding: ``NamedSharding``, ``SingleDeviceSharding``, ...
      text: a short text for messages: ``P('d',) on d=8``.
      devices: ids of the devices in mesh order, as ranges: ``"0-3,8"``; None or empty: unknown.
      mesh: (name, size, axis type) of each axis of the mesh; None: there is no mesh.
      spec: the PartitionSpec as JAX prints it; None: there is none.
      memory_kind: ``device``, ``pinned_host``, ...; None: unknown.
    """

    sharding: str
    text: str
    devices: str | None = None
    mesh: tuple[tuple[str, int, str | None], ...] | None = None
    spec: str | None = None
    memory_kind: str | None = None


class Commitment(_Value, tag="commitment", frozen=True, gc=False):
    """Whether an array argument is committed to its devices.

    Attributes:
      committed: whether the array is committed; None: unknown.
      where: the array's sharding as text; None: unknown, or the cause is about several arrays.
    """

    committed: bool | None
    where: str | None = None


class MemoryKind(_Value, tag="memory_kind", frozen=True, gc=False):
    """The kind of memory of an array argument: ``device`` or ``pinned_host``; None: unknown."""

    memory_kind: str | None


class Layout(_Value, tag="layout", frozen=True, gc=False):
    """The order of an array's axes in memory: ``(1, 0)``; None: unknown."""

    layout: str | None


class ArgumentType(_Value, tag="type", frozen=True, gc=False):
    """The Python type of an argument: ``numpy.ndarray``, ``float``."""

    type: str


class StaticValue(_Value, tag="static", frozen=True, gc=False):
    """A static argument, or static data in a pytree. JAX compares it by ``__eq__``.

    Attributes:
      repr: the value as text, shortened.
      type: the name of the value's class.
      serial: a number that identifies the object within its process; None: unknown, or the value is a plain
        one, such as a number or string.
    """

    repr: str
    type: str
    serial: int | None = None


class Container(_Value, tag="container", frozen=True, gc=False):
    """The type of a node of a pytree of arguments: ``dict``, ``None``, or the name of a class."""

    container: str


class Leaves(_Value, tag="leaves", frozen=True, gc=False):
    """The number of leaves (arrays) below a path of the arguments that only one of the two compared calls
    has: the earlier call if ``Cause.before`` has this object, the later call if ``Cause.after`` has it."""

    count: int


class TreeText(_Value, tag="tree", frozen=True, gc=False):
    """The tree definition of all arguments (``PyTreeDef``) as text.

    Attributes:
      text: the tree definition; if ``order`` is True, only the keys of one container: ``'x', 'y'``.
      order: whether only the order of the keys of one container changed.
    """

    text: str
    order: bool = False


class CallForm(_Value, tag="call_form", frozen=True, gc=False):
    """Which arguments were passed by position and which by keyword: ``2 positional, keywords: mask``."""

    text: str


class FunctionObject(_Value, tag="function_object", frozen=True, gc=False):
    """The function object given to jit. ``serial`` is a number that identifies the object in its process;
    None: unknown."""

    serial: int | None


class Setting(_Value, tag="setting", frozen=True, gc=False):
    """A setting of JAX (``jax.config``) or an option of ``jax.jit``, as JAX prints it."""

    text: str


class Entry(_Value, tag="entry", frozen=True, gc=False):
    """How the function was called: call (an ordinary call), aot (``.trace``, ``.lower``, ``.eval_shape``),
    transform (under grad, vmap, ...) or nested (inside another trace)."""

    entry: str


Value: TypeAlias = (
    ArrayType | AxisSizes | Placement | Commitment | MemoryKind | Layout | ArgumentType | StaticValue
    | Container | Leaves | TreeText | CallForm | FunctionObject | Setting | Entry
)  # fmt: skip


# -- further data of a cause -------------------------------------------------------------------------------


class _Detail(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """The base class of ``Cause.detail``: data that only causes of a certain kind have."""


# Reasons why static values with the same text differ.
SAME_TEXT, NO_FIELD = "same_text", "no_field"
UNSTABLE_HASH, FUNCTION, PARTS, NO_EQ = "unstable_hash", "function", "parts", "no_eq"


class StaticDetail(_Detail, tag="static", frozen=True, gc=False):
    """Why JAX treats a static value as different from an earlier value that looks the same.

    Attributes:
      why: SAME_TEXT: the values differ, but their recorded texts are equal. NO_FIELD: no recorded attribute
        differs. UNSTABLE_HASH: the values are equal, but their hashes differ. FUNCTION: the value is a
        function; functions are compared by identity. PARTS: a part of the value is compared by identity.
        NO_EQ: the class of the value defines no ``__eq__`` and ``__hash__``, so the value is compared by
        identity.
      inside: True if the value is static data inside an argument (a pytree) or added by a library; False if
        it is a static argument itself.
      owner: the library whose wrapper of jit adds the value to the cache key: ``flax`` for ``nnx.jit``. None:
        no library does.
    """

    why: str
    inside: bool = False
    owner: str | None = None


# NewFunction.form of a loop body or a branch: the function argument of an operation outside jit (lax.scan)
BODY = "body"


class NewFunction(_Detail, tag="new_function", frozen=True, gc=False):
    """The cause is a new function object given to jit. JAX has no trace for it, even if its code is the same.

    Attributes:
      form: what the object is: def, lambda, partial, method, callable (an object with ``__call__``),
        primitive, or BODY (a loop body or a branch).
      wrappers: names of the layers around the user's function, outermost first: ``("jax.grad",)``.
      qualname: the qualified name of the user's function.
      line: the user's line that created the object; None: unknown.
      certain: False if ``line`` is a guess.
    """

    form: str
    wrappers: tuple[str, ...] = ()
    qualname: str = ""
    line: Frame | None = None
    certain: bool = True


class MeshSetting(_Detail, tag="mesh_setting", frozen=True, gc=False):
    """The cause is a change of the mesh that was set around the call (``jax.set_mesh``). ``devices`` is True
    if only the mesh's list of devices changed."""

    devices: bool


class AheadOfTime(_Detail, tag="ahead_of_time", frozen=True, gc=False):
    """The cause is that the function was both called and compiled ahead of time (``.lower``, ``.compile``).
    JAX shares no programs between calls and compilations ahead of time, so it compiled twice.

    Attributes:
      number: number of the earlier compilation, counted for this function: 3 for ``f#3``; None: unknown.
      differs: whether the program that was compiled ahead of time expects other arguments than those of the
        call.
    """

    number: int | None
    differs: bool


class Cleared(_Detail, tag="cleared", frozen=True, gc=False):
    """The cause is that JAX's caches were cleared (``jax.clear_caches``) between the two compared calls, at
    least ``times`` times."""

    times: int


# JAX's bounded caches. Logs of older versions have the names in the second line.
SIGNATURES, FAST_CACHE, PLAIN_FAST_CACHE = CACHES = "signatures", "fast_path", "fast_path_no_options"
OLDER_CACHES = {"fast path": FAST_CACHE, "fast path (no options)": PLAIN_FAST_CACHE}
FAST_CACHES = frozenset({FAST_CACHE, PLAIN_FAST_CACHE})


class FullCaches(_Detail, tag="full_caches", frozen=True, gc=False):
    """The probable cause is that JAX removed the entry from a cache of limited size, because the cache was
    full. ``caches`` has (one of ``CACHES``, number of entries, capacity) of each cache that is nearly
    full."""

    caches: tuple[tuple[str, int, int], ...]


class Effects(_Detail, tag="effects", frozen=True, gc=False):
    """The call missed JAX's C++ fast path because the function's jaxpr has effects. JAX never uses the fast
    path then.

    Attributes:
      names: the names of the effects, sorted (``Debug``, ``IO``, ``Write``); empty: not recorded.
      refs: whether all these effects come from reading or writing a ``jax.Ref``.
    """

    names: tuple[str, ...]
    refs: bool = False


class Compared(_Detail, tag="compared", frozen=True, gc=False):
    """The cause is unknown: all recorded parts of the cache key are equal to those of the earlier call's key.

    Attributes:
      arrays, statics: number of arrays and of static values in the key.
      missing: names of the parts of the key that could not be recorded; always empty if the call missed the
        fast path only.
    """

    arrays: int
    statics: int
    missing: tuple[str, ...] = ()


class NotRecorded(_Detail, tag="not_recorded", frozen=True, gc=False):
    """The cause is unknown: the cache key was not recorded. Or the cause is a change of a setting of JAX, but
    the event with the settings is lost, so that it is unknown which setting changed."""


class RecordingBegan(_Detail, tag="recording_began", frozen=True, gc=False):
    """The cause is unknown, because the call is the first recorded call of its function. The function may
    have been compiled before the recording began. ``since`` says in words, for a message, where the
    recording began: ``this block`` (a ``with`` block)."""

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
    """The cause of a miss in one of JAX's caches.

    Attributes:
      kind: what differs from the earlier call: ``shape``, ``static_value``, ``new_function``, ...
      level: the cache in which the call was not found: trace, lower, compile or fast_path.
      path: the path of the argument in the user's names (``batch['ids']``); the word ``context`` if the mesh
        around the call changed; the name of the setting or option if ``kind`` is ``config`` or ``options``;
        None: the cause has no single path.
      before, after: the value in the earlier call, and the value in the call that missed; None: there is no
        such value.
      certainty: certain or likely.
      count: number of leaves (arrays or static values) with this cause; if there are several, ``path`` is the
        beginning that their paths have in common.
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
