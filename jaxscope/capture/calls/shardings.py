"""Convert shardings to data: class, PartitionSpec, mesh, and devices in order. JAX's cache key includes this
order."""

from __future__ import annotations

from typing import Any

from jaxscope import jax_internals
from jaxscope.jax_internals import ADDRESS
from jaxscope.jax_internals.devices import device_ranges
from jaxscope.schema.keys import Partition, Sharding

MAX_REPR = 300  # characters of a sharding whose class has no fields in the log


class Shardings:
    """A table that has each sharding once. Events refer to a sharding by its position in ``table``. A table
    is for the arrays of one call: it knows shardings by their ``id()``, which is valid only while the arrays
    are alive."""

    def __init__(self) -> None:
        self.table: list[Sharding] = []
        self._by_id: dict[int, int] = {}  # valid while the caller holds the arrays
        self._by_fact: dict[str, int] = {}
        self._single: dict[Any, int] = {}

    def index(self, sharding: Any) -> int | None:
        """Return the position of ``sharding`` in the table, and add it if it is not there. Return None if
        ``sharding`` is None."""
        if sharding is None:
            return None
        if type(sharding).__name__ == "SingleDeviceSharding":
            # These are compared by value, because each array has an object of its own.
            known = self._single.get(sharding)
            if known is None:
                known = self._single[sharding] = self._add(sharding)
            return known
        known = self._by_id.get(id(sharding))
        if known is None:
            known = self._by_id[id(sharding)] = self._add(sharding)
        return known

    def _add(self, sharding: Any) -> int:
        """Return the position in the table of ``sharding`` as data. Add the data if nothing equal is in the
        table."""
        fact = read_sharding(sharding)
        name = repr(fact)
        known = self._by_fact.get(name)
        if known is None:
            known = self._by_fact[name] = len(self.table)
            self.table.append(fact)
        return known


def read_sharding(sharding: Any) -> Sharding:
    """Return ``sharding``, an object of JAX, as data: class, text, devices in order, mesh axes,
    PartitionSpec, memory kind. The devices are ranges of ids as text (``0-7``), empty if unknown. They are
    sorted if the sharding has no order. A sharding without a mesh or without a PartitionSpec has neither in
    the result."""
    kind = type(sharding).__name__
    memory_kind = getattr(sharding, "memory_kind", None)
    mesh = getattr(sharding, "mesh", None)
    spec = getattr(sharding, "spec", None)
    if mesh is not None and spec is not None and hasattr(mesh, "axis_names"):
        types = [str(getattr(t, "name", t)) for t in getattr(mesh, "axis_types", None) or ()]
        axes = tuple(
            (str(n), int(s), types[i] if i < len(types) else None)
            for i, (n, s) in enumerate(zip(mesh.axis_names, mesh.axis_sizes, strict=True))
        )
        try:  # the property of an AbstractMesh raises ValueError
            ids = [d.id for d in mesh.devices.flat]
        except (AttributeError, ValueError):
            ids = []
        shown = str(spec).replace("PartitionSpec", "P")
        text = f"{shown} on {','.join(f'{n}={s}' for n, s, _ in axes)}"
        return Sharding(kind, text, device_ranges(ids), axes, shown, memory_kind, _partition(spec))
    try:
        # The order of the devices is part of the key, if the sharding has an order.
        assignment = jax_internals.device_assignment(sharding)
        ids = [d.id for d in assignment or sorted(sharding.device_set, key=lambda d: d.id)]
        platform = next(iter(sharding.device_set)).platform
    except Exception:
        ids, platform = [], "?"
    devices = device_ranges(ids)
    if kind == "SingleDeviceSharding" and ids:
        return Sharding(kind, f"{platform}:{devices}", devices, None, None, memory_kind)
    detail = ADDRESS.sub("", str(jax_internals.hlo_sharding(sharding)))[:MAX_REPR]
    return Sharding(kind, f"{kind}({detail})", devices, None, None, memory_kind)


def _partition(spec: Any) -> Partition | None:
    """Return ``spec``, a PartitionSpec, as data: ``P('d', None)`` has the dimensions ``(("d",), ())``. Return
    None if ``spec`` has something else than names of mesh axes."""
    dimensions: list[tuple[str, ...] | None] = []
    for names in getattr(spec, "partitions", spec):
        if names is getattr(spec, "UNCONSTRAINED", spec):
            dimensions.append(None)
        elif names is None or isinstance(names, (str, tuple)):
            dimensions.append((names,) if isinstance(names, str) else tuple(map(str, names or ())))
        else:
            return None
    unreduced, reduced = (sorted(map(str, getattr(spec, n, None) or ())) for n in ("unreduced", "reduced"))
    kind = getattr(getattr(spec, "unreduced_kind", None), "name", None)
    return Partition(tuple(dimensions), tuple(unreduced), tuple(reduced), kind)
