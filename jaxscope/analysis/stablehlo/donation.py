"""Find the inputs that were donated, whether outputs reuse their memory, and the inputs that could be
donated.

JAX matches donated arguments, in order, with outputs whose part on one device has the same shape, dtype and
memory kind. A matched argument gets the attribute ``tf.aliasing_output``. If the sharding or layout of the
output is left to XLA, or only the number of elements is equal, the argument gets ``jax.buffer_donor``, and
XLA decides whether to reuse it. If a partitioned program states no sharding for an output, every other
donated argument gets this attribute too. The remaining donations are dropped with a warning, and the text
does not show them. (``_set_up_aliases`` in the lowering of JAX 0.10 and 0.12.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.stablehlo.module import Argument, Module
from jaxscope.analysis.stablehlo.values import Value

MAX_COMPARED = 100  # the most outputs of one type that are examined to find a reason
ALIAS, DONOR = "tf.aliasing_output", "jax.buffer_donor"


class Donation(msgspec.Struct, frozen=True):
    """One input that is donated, or could be.

    Attributes:
      path: the path of the argument; None: unknown.
      status: aliased (donated and reused), unused (donated and not reused) or possible (not donated, and an
        output could reuse it); None if it is donated and it is unknown whether its memory is reused.
      reason: why the input's memory is not reused, or the condition under which it is; None if neither is
        known.
      argument: the position among the program's arguments; None if JAX dropped the argument.
      type: the MLIR type as text; None if JAX dropped the argument.
      bytes, device_bytes: bytes of the global array and of its part on one device; None: unknown.
      output: the name of the result that reuses the input's memory or could reuse it; None: there is none, or
        it is unknown.
    """

    path: str | None
    status: str | None
    reason: str | None
    argument: int | None
    type: str | None
    bytes: int | None
    device_bytes: int | None
    output: str | None = None


def find(
    module: Module,
    arguments: Sequence[Value],
    results: Sequence[Value],
    donated: Collection[str] | None = None,
    unread: Collection[str] = (),
    aliased: Collection[int] | None = None,
) -> list[Donation]:
    """Return the arguments of a module that were donated or could be donated, in order, and then the donated
    arguments that the program does not take. Other arguments are left out. Arguments that could be donated
    are left out, too, if JAX leaves the reuse of a donated argument to XLA.

    Args:
      arguments, results: the arguments and the results of the program in ``module``.
      donated: paths of the arguments that the call donated; None: unknown.
      unread: paths of the arguments that JAX dropped because the program never reads them.
      aliased: positions of the arguments that share a buffer with an output in the compiled program; None:
        unknown.
    """
    main = module.main()
    if main is None:
        return []
    taken = {t: i for i, a in enumerate(main.arguments) if (t := _target(a)) is not None}
    offered = any(DONOR in a.attributes for a in main.arguments)
    outputs = _Outputs(results, {t: arguments[i] for t, i in taken.items()})
    partitioned = not module.attributes.get("mhlo.num_partitions", "1 ").startswith("1 ")
    found: list[Donation] = []
    for value in arguments:
        if value.role != "user":
            continue
        argument = main.arguments[value.index]
        target = _target(argument)
        if target is not None:
            found.append(_aliased(value, results, target, aliased))
        elif DONOR in argument.attributes:
            found.append(_offered(value, outputs, aliased))
        elif donated is not None and value.name in donated:
            found.append(_donation(value, "unused", unusable(value, outputs)))
        elif not offered:  # an output that XLA may give to a donated argument is not free
            output = outputs.take(value)
            if output is not None:
                sure = not partitioned or output.sharding is not None
                reason = None if sure else "if XLA shards the output like the argument"
                found.append(_donation(value, "possible", reason, output))
    for path in sorted(set(donated or ()) - {v.name for v in arguments if v.name}):
        never = path in unread
        reason = "the program never reads it" if never else None
        found.append(Donation(path, "unused" if never else None, reason, None, None, None, None))
    return found


class _Outputs:
    """The results of a program, grouped by type to find one that could reuse the memory of a donated
    argument.

    Attributes:
      taken: position of a result -> the argument whose memory the result reuses by JAX's decision.
      by_type: (shape, dtype) -> the results of this type, the last first.
      by_shape: shape -> the results of this shape, the last first.
      free: type on one device -> the results that no argument is assigned to, the last first.
    """

    def __init__(self, results: Sequence[Value], taken: Mapping[int, Value]) -> None:
        self.taken = taken
        self.by_type: dict[object, list[Value]] = {}
        self.by_shape: dict[object, list[Value]] = {}
        self.free: dict[object, list[Value]] = {}
        for result in reversed(results):  # pop() then returns the first result first
            if result.role != "user" or result.shape is None:
                continue
            self.by_type.setdefault((result.shape, result.dtype), []).append(result)
            self.by_shape.setdefault(result.shape, []).append(result)
            if result.index not in taken:
                self.free.setdefault(_slot(result, result.sharding is None), []).append(result)

    def take(self, value: Value) -> Value | None:
        """Remove and return the first output with a sharding that could reuse the memory of the argument
        ``value``, else the first one without a sharding, which is compared by its global shape. Return None
        if there is none."""
        for whole in (False, True):
            waiting = self.free.get(_slot(value, whole))
            if waiting:
                return waiting.pop()
        return None


def _slot(value: Value, whole: bool) -> object:
    """Return a value's key in ``_Outputs.free``: its shape (on one device, or as a ``whole``), dtype and
    memory kind."""
    shape = value.shape if whole else value.device_shape
    return (whole, None if shape is None or None in shape else shape, value.dtype, value.memory_kind)


def unusable(value: Value, outputs: _Outputs) -> str | None:
    """Return why none of ``outputs`` can reuse the memory of the donated argument ``value``, as a clause for
    a message: ``no output is f32[8]``. Return None if no reason is known."""
    whole = outputs.by_type.get((value.shape, value.dtype), [])[:MAX_COMPARED]
    if not whole:
        shaped = outputs.by_shape.get(value.shape, [])[:MAX_COMPARED]
        dtypes = ", ".join(sorted({r.dtype or "?" for r in shaped}))
        return f"no output is {_type_text(value)}" + (
            f"; the outputs of this shape have the dtype {dtypes}" if shaped else ""
        )
    alike = [r for r in whole if r.device_shape == value.device_shape]
    if not alike:
        here = value.sharding.text if value.sharding else "unsharded"
        there = ", ".join(sorted({r.sharding.text if r.sharding else "unsharded" for r in whole}))
        return f"the argument has the sharding {here}, and the output {_type_text(value)} has {there}"
    kinds = {r.memory_kind for r in alike if r.memory_kind}
    if value.memory_kind and kinds and value.memory_kind not in kinds:
        there = ", ".join(sorted(kinds))
        return f"it is in the memory {value.memory_kind}, the output {_type_text(value)} in {there}"
    others = [outputs.taken[r.index] for r in alike if r.index in outputs.taken]
    if len(others) < len(alike):
        return None
    names = ", ".join(v.name or f"argument {v.index}" for v in others[::-1][:3])
    many = "" if len(others) <= 3 else "..."
    if len(alike) == 1:
        return f"the output {_type_text(value)} already reuses the memory of {names}"
    return f"each output {_type_text(value)} already reuses the memory of another argument: {names}{many}"


def _target(argument: Argument) -> int | None:
    """Return the position of the result that JAX matched with a donated argument, or None if there is
    none."""
    text = argument.attributes.get(ALIAS, "").partition(" ")[0]
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _type_text(value: Value) -> str:
    """Write the type of a value: ``f32[8,?]``; ``?`` is an unknown size."""
    shape = None if value.shape is None else tuple("?" if d is None else d for d in value.shape)
    return short_aval(shape, value.dtype)


def _aliased(
    value: Value, results: Sequence[Value], target: int, aliased: Collection[int] | None
) -> Donation:
    """Describe the argument ``value`` that JAX matched with result number ``target``. ``aliased`` is as in
    ``find``."""
    output = results[target] if target < len(results) else None
    if aliased is None or value.index in aliased:
        return _donation(value, "aliased", None, output)
    return _donation(value, "unused", "XLA did not reuse it", output)


def _offered(value: Value, outputs: _Outputs, aliased: Collection[int] | None) -> Donation:
    """Describe the donated argument ``value`` if JAX leaves to XLA whether its memory is reused. ``aliased``
    is as in ``find``."""
    alike = outputs.by_type.get((value.shape, value.dtype), [])[:MAX_COMPARED]
    same = [r for r in alike if r.index not in outputs.taken]
    if aliased is not None and value.index in aliased:
        return _donation(value, "aliased", None, same[0] if len(same) == 1 else None)
    if not same:
        reason = f"no output is {_type_text(value)}"
    elif any(r.sharding is None for r in same):
        reason = "XLA chooses the output's sharding"
    else:
        reason = "the output has another sharding or layout"
    if aliased is not None:
        return _donation(value, "unused", f"XLA did not reuse it, because {reason}")
    return _donation(value, None, reason if same else f"{reason}; XLA may still reuse it for another one")


def _donation(value: Value, status: str | None, reason: str | None, output: Value | None = None) -> Donation:
    """Return the ``Donation`` of the argument ``value``. ``output`` is the result that reuses its memory, or
    could."""
    name = None if output is None else output.name or f"output {output.index}"
    return Donation(
        value.name, status, reason, value.index, value.type, value.bytes, value.device_bytes, name
    )
