"""Read the arguments and results of a lowered program: names, types, shardings, and the part of each on one
device.

The names in the text are those of the function that was passed to jit. If that function is a library's
wrapper, the caller's paths are more useful. They come from the cache key that jaxscope recorded, and have the
same order.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from jaxscope.analysis.stablehlo import lexing, shardings, types
from jaxscope.analysis.stablehlo.module import Argument, Function, Result
from jaxscope.schema.keys import Frame

TILES = re.compile(r"devices=\[([\d,]+)\]")
SIZE = re.compile(r"(.*?)(?::\(\d+\)(\d{1,9}))?")


class Value(msgspec.Struct, frozen=True):
    """An argument or a result of a lowered program.

    Attributes:
      index: the position among the arguments or among the results.
      name: the path in the user's names: ``state.params['w']``; None: unknown.
      type: the MLIR type as text: ``tensor<4xf32>``.
      shape, dtype, bytes: those of the global value; None: unknown.
      device_shape, device_bytes: those of the part on one device; without a sharding, those of the whole
        value; None: unknown.
      sharding: the sharding in the text; None: there is none.
      memory_kind: the memory kind in the text; None: there is none.
      role: user, token (of an ordered effect), constant (an array that the function closed over, which JAX
        passes as an argument) or dimension (of a symbolic shape).
      asked: the sharding that a sharding constraint inside the program requests for this value; None if there
        is no such constraint.
      asked_at: the line of that constraint in the user's code.
      also_without: whether the program also uses the argument without that constraint.
    """

    index: int
    name: str | None
    type: str
    shape: tuple[int | None, ...] | None
    dtype: str | None
    bytes: int | None
    device_shape: tuple[int | None, ...] | None
    device_bytes: int | None
    sharding: shardings.Spec | None = None
    memory_kind: str | None = None
    role: str = "user"
    asked: shardings.Spec | None = None
    asked_at: Frame | None = None
    also_without: bool = False


def arguments(
    main: Function,
    meshes: Mapping[str, shardings.Mesh],
    paths: Sequence[str] = (),
    dropped: Collection[int] = (),
) -> tuple[Value, ...]:
    """Return the arguments of a lowered program. Their names are the caller's paths if there is one for each
    argument of the user, else the names in the text.

    Args:
      meshes: name of a mesh in the module -> the mesh.
      paths: the paths of all the caller's arguments, in order.
      dropped: positions in ``paths`` of the arguments that the program does not take.
    """
    found = [_value(i, a.name, a, meshes) for i, a in enumerate(main.arguments)]
    kept = [p for i, p in enumerate(paths) if i not in dropped]
    users = [v.index for v in found if v.role == "user"]
    if kept and len(kept) == len(users):
        for index, path in zip(users, kept, strict=True):
            found[index] = msgspec.structs.replace(found[index], name=path)
    return tuple(found)


def results(main: Function, meshes: Mapping[str, shardings.Mesh]) -> tuple[Value, ...]:
    """Return the results of a lowered program, in order, with the names that JAX writes into the text
    (``jax.result_info``). ``meshes``: name of a mesh in the module -> the mesh."""
    return tuple(
        _value(i, lexing.unquote(r.attributes.get("jax.result_info", "")) or None, r, meshes)
        for i, r in enumerate(main.results)
    )


def _value(
    index: int, name: str | None, value: Argument | Result, meshes: Mapping[str, shardings.Mesh]
) -> Value:
    """Describe the argument or result ``value`` with the position ``index``. ``name`` is its path."""
    t = types.tensor(value.type)
    kind = value.attributes.get("mhlo.memory_kind")
    sharding = shardings.of_attributes(value.attributes, meshes)
    part = device_shape(t.shape, sharding)
    size: int | None = None
    if part is not None and t.bytes is not None and t.elements is not None:
        size = math.prod(d or 0 for d in part)  # none of them is None, because t.elements is known
        if t.elements:
            size = -(-t.bytes * size // t.elements)
    return Value(
        index=index,
        name=name,
        type=value.type,
        shape=t.shape,
        dtype=t.dtype,
        bytes=t.bytes,
        device_shape=part,
        device_bytes=size,
        sharding=sharding,
        memory_kind=None if kind is None else lexing.unquote(kind),
        role=_role(value.attributes),
    )


def _role(attributes: Mapping[str, str]) -> str:
    """Return the role of an argument or result with these attributes (``Value.role``)."""
    if "jax.token" in attributes:
        return "token"
    if "jax.const" in attributes:
        return "constant"
    return "dimension" if attributes.get("jax.global_constant", '""') != '""' else "user"


def device_shape(
    shape: tuple[int | None, ...] | None, sharding: shardings.Spec | None
) -> tuple[int | None, ...] | None:
    """Return the shape of the part of an array on one device, from the shape of the whole array and its
    sharding. If the sharding splits a dimension unevenly, the size is rounded up. Return the whole shape if
    ``sharding`` is None, and None if the sharding cannot be read."""
    if shape is None or sharding is None:
        return shape
    cut = parts(sharding, len(shape))
    if cut is None:
        return None
    return tuple(None if d is None else -(-d // n) for d, n in zip(shape, cut, strict=True))


def parts(sharding: shardings.Spec, rank: int) -> list[int] | None:
    """Return into how many parts a sharding splits each dimension of an array with ``rank`` dimensions.
    ``P('data', None)`` on a mesh with 4 devices along ``data`` gives ``[4, 1]``. Return None if the sharding
    cannot be read, or does not fit ``rank``."""
    if sharding.dimensions is None:
        if found := TILES.search(sharding.text):
            tiles = [int(n) for n in found[1].split(",") if n and len(n) < 10]
            return tiles[:rank] if len(tiles) >= rank and 0 not in tiles else None
        whole = "replicated" in sharding.text or "maximal" in sharding.text
        return [1] * rank if whole else None
    if len(sharding.dimensions) > rank:
        return None
    sizes = dict(sharding.mesh or ())
    cut = [1] * rank
    for k, axes in enumerate(sharding.dimensions):
        for axis in axes:
            found = SIZE.fullmatch(axis)
            size = int(found[2]) if found and found[2] else sizes.get(axis)
            if not size:
                return None
            cut[k] *= size
    return cut
