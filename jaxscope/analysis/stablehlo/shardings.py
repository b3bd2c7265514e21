"""Read the meshes and shardings of a lowered program. Shardy's attributes are parsed; GSPMD's strings stay
text.

Shardy's format is ``#sdy.sharding<@mesh, [{"data"}, {}, {"x":(1)2, ?}], replicated={"y"}>``: one pair of
braces for each dimension, ``?`` where the partitioner may add axes, ``"x":(1)2`` for a part of an axis.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from jaxscope.analysis.stablehlo import lexing
from jaxscope.analysis.stablehlo.module import Module, Op
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

AXIS = re.compile(r'"([^"\\]*)"=(\d{1,9})')
IDS = re.compile(r"device_ids=\[([\d, ]*)\]")
USED = re.compile(r'"([^"\\]*)"(:\(\d+\)\d+)?')
GROUP = re.compile(r"(\w+)=\{([^{}]*)\}")
# An argument of the program, and the axes that split its dimensions
_ARGUMENT = re.compile(r"%arg(\d+): [^%]*?sdy\.sharding = #sdy\.sharding<@[\w.]+, \[([^\]]*)\]")
# Operation or target of a custom call -> the kind of sharding that it states (Mark.kind).
KINDS = {
    "sdy.sharding_constraint": "constraint",
    "sdy.reshard": "reshard",
    "sdy.manual_computation": "manual",
    "Sharding": "constraint",
    "SPMDFullToShardShape": "manual",
    "SPMDShardToFullShape": "manual",
    "annotate_device_placement": "placement",
    "LayoutConstraint": "layout",
}
MAX_LISTED = 500


class Mesh(msgspec.Struct, frozen=True):
    """A mesh that the text of a lowered program defines: its name without ``@``, (axis, size) of each axis,
    and the device ids (None: 0, 1, 2, ...)."""

    name: str
    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] | None = None


class Spec(msgspec.Struct, frozen=True):
    """A sharding as the text of a lowered program states it.

    Attributes:
      text: the sharding as JAX prints it, ``P('data', None)``, else the text itself.
      mesh: (axis, size) of each axis; None: unknown.
      dimensions: for each dimension the mesh axes that split it; None if the text is a GSPMD string, which is
        not parsed.
      open: whether the partitioner may split the value further.
      groups: (name, axes) of further groups of axes: ``replicated``, ``unreduced``.
      order: the devices along the mesh, each as a position in the program's device order; None: 0, 1, 2, ...
    """

    text: str
    mesh: tuple[tuple[str, int], ...] | None = None
    dimensions: tuple[tuple[str, ...], ...] | None = None
    open: bool = False
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    order: tuple[int, ...] | None = None


class Mark(msgspec.Struct, frozen=True):
    """A sharding that one line of the user's code states inside a program, once or several times.

    Attributes:
      kind: constraint, reshard, manual (shard_map), placement (memory kind) or layout.
      text: the sharding; for ``manual`` the manual axes; for ``placement`` the memory kind. Empty: it could
        not be read.
      count: how often the line states this sharding.
      source: the line; None: unknown.
    """

    kind: str
    text: str
    count: int
    source: Frame | None


def meshes(module: Module) -> dict[str, Mesh]:
    """Return the meshes that the text of a module defines: name without ``@`` -> mesh."""
    found: dict[str, Mesh] = {}
    for symbol, line in module.symbols.items():
        if line.startswith("sdy.mesh") and symbol.startswith("@"):
            body = line.partition(" = <")[2]
            end = body.find("]")
            axes = tuple((n, int(s)) for n, s in AXIS.findall(body[: end + 1]))
            ids = IDS.search(body)
            order = (
                None if ids is None else tuple(int(i) for i in ids[1].split(",") if len(i) < 10 and i.strip())
            )
            found[symbol[1:]] = Mesh(symbol[1:], axes, order)
    return found


def spec(text: str, meshes: Mapping[str, Mesh]) -> Spec:
    """Parse the text of a sharding in a lowered program: ``#sdy.sharding<...>``, ``<@mesh, [...]>`` or a
    GSPMD string in quotes, which stays text. ``meshes``: name -> mesh of the module."""
    at = text.find("<")
    if text.startswith('"') or at < 0:
        return Spec(lexing.unquote(text))
    end = lexing.closing(text, at)
    pieces = lexing.split(text[at + 1 : end if end > 0 else len(text)])
    axes: tuple[tuple[str, int], ...] | None = None
    dimensions: tuple[tuple[str, ...], ...] | None = None
    groups: list[tuple[str, tuple[str, ...]]] = []
    order: tuple[int, ...] | None = None
    free = False
    for piece in pieces:
        if piece.startswith("@"):
            mesh = meshes.get(lexing.unquote(piece[1:]))
            axes, order = (None, None) if mesh is None else (mesh.axes, mesh.device_ids)
        elif piece.startswith("mesh<"):
            axes = tuple((n, int(s)) for n, s in AXIS.findall(piece))
        elif piece.startswith("["):
            inner = lexing.split(piece[1:-1])
            dimensions = tuple(tuple(a + b for a, b in USED.findall(d)) for d in inner)
            free = any("?" in lexing.STRING.sub("", d) for d in inner)
        elif found := GROUP.fullmatch(piece):
            groups.append((found[1], tuple(a + b for a, b in USED.findall(found[2]))))
    unreduced = dict(groups).get("unreduced", ())
    return Spec(partition_spec(dimensions, unreduced) or text, axes, dimensions, free, tuple(groups), order)


def partition_spec(
    dimensions: tuple[tuple[str, ...], ...] | None, unreduced: tuple[str, ...] = ()
) -> str | None:
    """Write a sharding as JAX prints it: for each dimension the mesh axes that split it, and the axes over
    which the values are still to be summed. ``(("data",), (), ("x", "y"))`` -> ``P('data', None, ('x',
    'y'))``; ``((),), ("x",)`` -> ``P(None, unreduced={'x'})``. Return None if ``dimensions`` is None."""
    if dimensions is None:
        return None
    parts = ["None" if not d else repr(d[0]) if len(d) == 1 else repr(d) for d in dimensions]
    if unreduced:
        parts.append(f"unreduced={{{', '.join(map(repr, unreduced))}}}")
    return f"P({', '.join(parts)})"


def of_attributes(attributes: Mapping[str, str], meshes: Mapping[str, Mesh]) -> Spec | None:
    """Return the sharding in the ``attributes`` (name -> text) of a program's argument or result, or None if
    it has no sharding. ``meshes``: name -> mesh of the module."""
    text = attributes.get("sdy.sharding") or attributes.get("mhlo.sharding")
    return None if text is None else spec(text, meshes)


def marks(module: Module, sources: Sources, meshes: Mapping[str, Mesh]) -> list[Mark]:
    """Return the shardings that operations of the program state, in the order of the text; at most MAX_LISTED
    (500). Equal shardings of one line are one item. ``meshes``: name -> mesh of the module."""
    found: dict[tuple[str, str, Frame | None], int] = {}
    for index, op in enumerate(module.ops):
        kind = kind_of(op)
        times = sources.times[op.function]
        if kind is None or not times:
            continue
        key = (kind, _text(op, kind, meshes), sources.frame(index))
        found[key] = found.get(key, 0) + times
    return [Mark(k, t, n, f) for (k, t, f), n in found.items()][:MAX_LISTED]


def kind_of(op: Op) -> str | None:
    """Return the kind of sharding that an operation states (``Mark.kind``), or None if it states none."""
    return KINDS.get(op.name) or (KINDS.get(op.callee or "") if "custom_call" in op.name else None)


def stated(op: Op, meshes: Mapping[str, Mesh]) -> Spec | None:
    """Return the sharding that a ``sharding_constraint`` or ``reshard`` operation requests. Return None if
    the sharding cannot be read. ``meshes``: name -> mesh of the module."""
    if op.name.startswith("sdy."):
        at = op.detail.find("<")
        return spec(op.detail[at:], meshes) if at >= 0 else None
    return of_attributes(lexing.dictionary(op.detail), meshes)


def _text(op: Op, kind: str, meshes: Mapping[str, Mesh]) -> str:
    """Return the text that ``Mark.text`` has for ``op``, which states a sharding of this ``kind``.
    ``meshes``: name -> mesh of the module."""
    if op.name.startswith("sdy.") and kind == "manual":
        axes = re.search(r"manual_axes=\{([^{}]*)\}", op.detail)
        return "" if axes is None else ", ".join(a + b for a, b in USED.findall(axes[1]))
    if kind == "placement":
        inner = lexing.attributes(lexing.dictionary(op.detail).get("mhlo.frontend_attributes", ""))
        return lexing.unquote(inner.get("_xla_buffer_placement", ""))
    found = stated(op, meshes)
    return "" if found is None else found.text


def unsplit_arguments(text: str) -> set[int]:
    """Return the positions of the arguments that each device has as a whole, from the StableHLO ``text`` of a
    program. An argument without a sharding in Shardy's format is not among them."""
    begin = text.find("@main(")
    line = text[begin : text.find("\n", begin)] if begin >= 0 else ""
    return {int(n) for n, axes in _ARGUMENT.findall(line) if '"' not in axes}
