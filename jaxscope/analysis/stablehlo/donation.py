"""Which inputs were offered for reuse, what the lowering made of it, and which could have been.

JAX matches donated arguments with outputs of the same shape and dtype (and memory kind) in order:
a pair becomes ``tf.aliasing_output``. Where the output's sharding or layout is left to XLA, or only the
number of elements is the same, the argument becomes ``jax.buffer_donor`` and XLA decides. What is left is
dropped with a warning, and the text does not show that it was ever donated. (Seen in the lowering of JAX
0.10 and 0.12.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.stablehlo import lexing, shardings, types
from jaxscope.analysis.stablehlo.module import Argument, Module, Result

ALIAS, DONOR, TOKEN, CONST = "tf.aliasing_output", "jax.buffer_donor", "jax.token", "jax.const"


class Donation(msgspec.Struct, frozen=True):
    """One input. ``status``: aliased, unused (donated in vain), possible (not donated, and an output could
    have taken it); None: offered to XLA, whose answer is not known here. ``argument``: its position
    in the program, None where JAX dropped it. ``output``: the result that took it or could."""

    path: str | None
    status: str | None
    reason: str | None
    argument: int | None
    type: str | None
    bytes: int | None
    output: str | None = None


class _Side(msgspec.Struct, frozen=True):
    """An argument or a result, as far as donation looks at it."""

    index: int
    name: str | None
    tensor: types.Tensor
    sharding: shardings.Spec | None
    memory_kind: str | None


def find(
    module: Module,
    meshes: Mapping[str, shardings.Mesh],
    donated: Collection[str] | None = None,
    dropped: Collection[str] = (),
    aliased: Collection[int] | None = None,
) -> list[Donation]:
    """``donated``: paths of the arguments that the call donated, where the recording knows them;
    ``dropped``: of those that JAX left out, being never read; ``aliased``: positions of the arguments
    that share a buffer with an output in the compiled program. In order of the arguments; those with
    nothing to say are left out.
    """
    main = module.main()
    if main is None:
        return []
    arguments = [_side(i, a.name, a, meshes) for i, a in enumerate(main.arguments)]
    results = [
        _side(i, lexing.unquote(r.attributes.get("jax.result_info", "")) or None, r, meshes)
        for i, r in enumerate(main.results)
    ]
    taken = {t: i for i, a in enumerate(main.arguments) if (t := _target(a)) is not None}
    offered = any(DONOR in a.attributes for a in main.arguments)
    free = [r for r in results if r.index not in taken and TOKEN not in main.results[r.index].attributes]
    partitioned = lexing.unquote(module.attributes.get("mhlo.num_partitions", "1")).partition(" ")[0] != "1"
    found: list[Donation] = []
    names = set()
    for side in arguments:
        argument = main.arguments[side.index]
        names.add(side.name)
        if TOKEN in argument.attributes or CONST in argument.attributes:
            continue
        target = _target(argument)
        if target is not None:
            found.append(_aliased(side, results, target, aliased))
        elif DONOR in argument.attributes:
            found.append(_offered(side, free, aliased))
        elif donated is not None and side.name in donated:
            reason = unusable(side, results, {t: arguments[i] for t, i in taken.items()})
            found.append(_donation(side, "unused", reason))
        elif not offered:  # what a donor may take is not free
            output = _match(side, free, partitioned)
            if output is not None:
                free = [r for r in free if r.index != output.index]
                sure = not partitioned or shardings.same(side.sharding, output.sharding)
                reason = None if sure else "if XLA shards the output like the argument"
                found.append(_donation(side, "possible", reason, output))
    for path in sorted(set(donated or ()) - {n for n in names if n}):
        reason = "the program never reads it" if path in dropped else None
        found.append(Donation(path, "unused" if path in dropped else None, reason, None, None, None))
    return found


def unusable(side: _Side, results: Sequence[_Side], taken: Mapping[int, _Side]) -> str | None:
    """Why no output took a donated argument."""
    same = [r for r in results if _kind(r) == _kind(side)]
    if any(r.memory_kind != side.memory_kind for r in same if r.memory_kind and side.memory_kind):
        return f"the outputs of {_spell(side)} are in another memory than {side.memory_kind}"
    if same:
        others = [taken[r.index].name or f"argument {taken[r.index].index}" for r in same if r.index in taken]
        if len(others) == len(same):
            count = "the output" if len(same) == 1 else f"all {len(same)} outputs"
            return f"{count} of {_spell(side)} reuses {', '.join(others[:3])}" + ("..." if others[3:] else "")
        return None
    shaped = [r for r in results if r.tensor.shape == side.tensor.shape and r.tensor.shape is not None]
    if shaped:
        dtypes = ", ".join(sorted({r.tensor.dtype or "?" for r in shaped}))
        return f"no output is {_spell(side)}: those of that shape are {dtypes}"
    return f"no output is {_spell(side)}"


def _side(
    index: int, name: str | None, value: Argument | Result, meshes: Mapping[str, shardings.Mesh]
) -> _Side:
    kind = value.attributes.get("mhlo.memory_kind")
    return _Side(
        index,
        name,
        types.tensor(value.type),
        shardings.of_attributes(value.attributes, meshes),
        None if kind is None else lexing.unquote(kind),
    )


def _target(argument: Argument) -> int | None:
    text = argument.attributes.get(ALIAS, "").partition(" ")[0]
    return int(text) if text.isdigit() and len(text) < 10 else None


def _kind(side: _Side) -> tuple[object, object]:
    return side.tensor.shape, side.tensor.dtype


def _spell(side: _Side) -> str:
    return short_aval(tuple("?" if d is None else d for d in side.tensor.shape or ()), side.tensor.dtype)


def _match(side: _Side, free: Sequence[_Side], partitioned: bool) -> _Side | None:
    for output in free:
        if _kind(output) != _kind(side) or side.tensor.shape is None:
            continue
        if output.memory_kind != side.memory_kind:
            continue
        if partitioned and shardings.same(side.sharding, output.sharding) is False:
            continue
        return output
    return None


def _aliased(side: _Side, results: Sequence[_Side], target: int, aliased: Collection[int] | None) -> Donation:
    output = results[target] if target < len(results) else None
    if aliased is None or side.index in aliased:
        return _donation(side, "aliased", None, output)
    reason = "XLA did not reuse it"
    if output is not None and shardings.same(side.sharding, output.sharding) is False:
        assert side.sharding is not None and output.sharding is not None
        reason = f"its sharding {side.sharding.text} is not the output's, {output.sharding.text}"
    return _donation(side, "unused", reason, output)


def _offered(side: _Side, free: Sequence[_Side], aliased: Collection[int] | None) -> Donation:
    same = [r for r in free if _kind(r) == _kind(side)]
    if aliased is not None and side.index in aliased:
        return _donation(side, "aliased", None, same[0] if len(same) == 1 else None)
    if same:
        reason = "the output's sharding or layout is left to XLA"
    else:
        reason = f"no output is {_spell(side)}: XLA may still use it for another"
    return _donation(side, None if aliased is None else "unused", reason)


def _donation(side: _Side, status: str | None, reason: str | None, output: _Side | None = None) -> Donation:
    name = None if output is None else output.name or f"output {output.index}"
    return Donation(side.name, status, reason, side.index, side.tensor.text, side.tensor.bytes, name)
