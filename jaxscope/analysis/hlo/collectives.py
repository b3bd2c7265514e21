"""List the collectives of a module: kind, bytes, groups of devices, mesh axes, executions, origin and source
line.

One collective may be several instructions:

- a start/done pair, also ``async-start`` of a computation that contains the collective;
- on TPU a chain of fusions, each with a copy of the collective inside (module ``async_chains``);
- a TPU fusion that slices the result of an all-reduce, which is a reduce-scatter. Its bytes are those of any
  reduce-scatter: the result on one device.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

import msgspec

from jaxscope.analysis.hlo import axes, branches, groups, shapes
from jaxscope.analysis.hlo.async_chains import Chains
from jaxscope.analysis.hlo.attribution import Attribution, op_name
from jaxscope.analysis.hlo.axes import Axes
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.fsdp_gathers import Gathered, Weights
from jaxscope.analysis.hlo.lexing import backend_config, instruction_attributes, operands
from jaxscope.analysis.hlo.module import Computation, Instruction, Module
from jaxscope.analysis.hlo.origin import is_generated, is_manual, origin
from jaxscope.analysis.hlo.schedule import Schedule
from jaxscope.analysis.hlo.wire_bytes import wire_bytes
from jaxscope.schema.collectives import KINDS
from jaxscope.schema.findings import CERTAIN, LIKELY
from jaxscope.schema.keys import Frame

# In the groups of these collectives the numbers are partitions. In the groups of all others they are replicas
# (XLA's CollectiveOpGroupMode).
_PARTITION_IDS = frozenset({"all-to-all", "collective-permute", "collective-broadcast", "ragged-all-to-all"})
_PASSES = frozenset({"bitcast", "copy", "reshape", "convert", "transpose", "get-tuple-element"})
_MEGASCALE = "_xla_megascale"
_TARGET = re.compile(r"_xla_megascale_target=\"?([\d,:x{}>\-]++)")
_TRANSFER = re.compile(r"_xla_megascale_transfer_type=\"?([A-Z_]++)")
_PAIRS = re.compile(r"_xla_send_recv_source_target_pairs=\"?(\{(?:\{[\d,\s]*+\},?\s*+)++\})")
# The most positions in all groups of one module together: enough for 117 different groupings of 8,960 chips.
MAX_IDS = 1 << 20
MAX_READERS = 1_000


class Collective(msgspec.Struct, frozen=True, gc=False, rename={"is_async": "async"}):
    """One logical collective of a compiled program.

    Attributes:
      kind: one of KINDS: ``all-gather``, ``all-reduce``, ...
      name, computation: the names of the collective instruction (of several, the first) and of its
        computation.
      is_async: whether the collective has a start and a done.
      overlap: whether anything computes between start and done; False: nothing does, or the collective is not
        asynchronous; None if the schedule does not show it.
      bytes: bytes of the result on one device (the sum over a tuple); None: unknown.
      operand_bytes: bytes of the operands on one device; None: unknown.
      wire_bytes: bytes that one device sends in one execution; None: unknown.
      executions: executions in one call of the program, an upper bound if the collective is in a branch of a
        conditional; None if a trip count is unknown.
      branches: the branches of conditionals that contain the collective, from the outermost to the innermost.
      axes: the mesh axes (or parts of axes) along which the groups run: ``data``, ``data:(1)2``. None: the
        mesh or the groups are unknown, or the groups do not run along axes. ``[]``: each group is a single
        device.
      axes_around: the mesh axes along which the members of a group differ, if the groups do not run along
        axes (``axis_index_groups``). Else None, and always for a send or recv.
      group_size: members of a group; None for a permute, for groups of different size, and if unknown.
      groups: number of groups; None for a permute, and if unknown.
      syntax: the syntax in which the text states the groups: explicit, iota, mesh, pairs; None: unknown.
      origin: ``asked`` (by the user's program), ``inserted`` (by the SPMD partitioner) or None (unknown).
      op_name: JAX's name of the operation: ``jit(f)/dot_general``; None: the HLO has none.
      source: the Python line, if possible the user's; None: unknown.
      source_certainty: how certain ``source`` is: CERTAIN from the instruction's own metadata, LIKELY from
        its neighbors or its caller. None if ``source`` is None.
      transfer: for a send or recv between TPU slices, the kind of collective that the transfer is a part of,
        if the text states it; else None.
      weight: the argument of the program that this all-gather collects, if it is a fully sharded parameter
        (module ``fsdp_gathers``); else None.
      gathered: the argument that this all-gather collects for a matrix product, if it is unknown whether the
        product's other operand is split over the same axes; else None.
      constraint: the user's sharding constraint for which the partitioner inserted the collective, as JAX
        prints it; None if there is no such constraint, or if the StableHLO of the program is unknown.
      constrained_at: the line of the constraint; None if ``constraint`` is None.
    """

    kind: str
    name: str
    computation: str
    is_async: bool
    overlap: bool | None
    bytes: int | None
    operand_bytes: int | None
    wire_bytes: int | None
    executions: int | None
    axes: list[str] | None
    group_size: int | None
    groups: int | None
    syntax: str | None
    origin: str | None
    op_name: str | None
    source: Frame | None
    source_certainty: str | None = None
    axes_around: list[str] | None = None
    transfer: str | None = None
    weight: str | None = None
    gathered: Gathered | None = None
    constraint: str | None = None
    constrained_at: Frame | None = None
    branches: branches.Path = ()

    @property
    def conditional(self) -> str | None:
        """The innermost conditional (``computation/name``) that has the collective in one of its branches.
        None if the collective is in no conditional."""
        return self.branches[-1].conditional if self.branches else None

    @property
    def over(self) -> Axes:
        """The mesh axes (``axes``) as a tuple, which is a key of ``wire_by_axes``; None: unknown."""
        return None if self.axes is None else tuple(self.axes)

    @property
    def sent_bytes(self) -> int | None:
        """The largest number of bytes that one device sends for the collective in one call of the program.
        None if it is unknown."""
        return (
            None if self.executions is None or self.wire_bytes is None else self.executions * self.wire_bytes
        )

    @property
    def executions_at_least(self) -> int | None:
        """The least number of executions in one call of the program, which is 0 inside a conditional. None if
        it is unknown."""
        return 0 if self.branches else self.executions


class Devices(NamedTuple):
    """The number of replicas and of partitions for which a module is compiled; 0: unknown."""

    replicas: int
    partitions: int


class _Participants(NamedTuple):
    """The devices that take part in a collective.

    Attributes:
      members: the groups of devices, or the (source, target) pairs of a transfer; None: unknown.
      axes: the mesh axes along which the groups run; None: unknown, or the groups do not run along axes.
      syntax: the format in which the text states the groups; None: unknown.
      around: the mesh axes along which members of a group differ, if the groups do not run along axes; else
        None.
    """

    members: list[groups.Group] | None
    axes: list[str] | None
    syntax: str | None
    around: list[str] | None = None


# Opcode of a collective, or of the start of an asynchronous one -> the kind of the collective.
BEGINS = {opcode: kind for kind in KINDS for opcode in (kind, f"{kind}-start")}


def collective_instructions(graph: CallGraph) -> list[tuple[Computation, Instruction, str]]:
    """Return (computation, instruction, kind) of all collective instructions that run, except transfers with
    the host. Of an asynchronous pair, only the start is in the result. ``graph`` must be created with
    ``also=BEGINS``."""
    found = [(c, i, BEGINS[i.opcode]) for c, i in graph.all(*BEGINS)]
    return [each for each in found if not _is_host_transfer(each[2], each[1])]


def _is_host_transfer(kind: str, instruction: Instruction) -> bool:
    """Return whether a send or recv exchanges data with the host, and so is no collective. A transfer between
    TPU slices is a collective. ``kind`` is the kind of the instruction: ``send``, ``all-gather``, ..."""
    tail = instruction.tail
    return kind in ("send", "recv") and "is_host_transfer=true" in tail and _MEGASCALE not in tail


class Collectives:
    """Read the collectives of one module.

    Args:
      graph: the calls of the module; created with ``also=BEGINS``.
      attribution: the lines of the module's instructions.
      executions: name of a computation -> how often it runs in one call; None: unknown.
      paths: name of a computation -> the branches of conditionals that contain it.
      devices: for how many devices the module is compiled.
      mesh: (axis, size) of the program's mesh; None: use the mesh that the text prints, if any.

    Attributes:
      mesh: the mesh that is used; None: unknown.
      too_many_ids: whether some groups were not read, because the groups of the module have more than MAX_IDS
        members.
    """

    def __init__(
        self,
        graph: CallGraph,
        attribution: Attribution,
        executions: dict[str, int | None],
        paths: Mapping[str, branches.Path],
        devices: Devices,
        mesh: axes.Mesh | None,
    ) -> None:
        self._graph = graph
        self._module: Module = graph.module
        self._attribution = attribution
        self._executions = executions
        self._paths = paths
        self._devices = devices
        self._raw = collective_instructions(graph)
        self._chains = Chains(graph, ((c, i) for c, i, _ in self._raw))
        self._scheduled = "is_scheduled=true" in self._module.header
        self._schedules: dict[str, Schedule] = {}
        self._cache: dict[tuple[str, str, bool, bool, bool], _Participants] = {}
        self._left = MAX_IDS
        self._asks: bool | None = None
        self.too_many_ids = False
        self.mesh = mesh or self._printed_mesh()
        self._weights = Weights(graph, self.mesh, self._axes_of, self._chains.end_of)

    def read(self) -> list[Collective]:
        """Return the collectives that run, in the order of the text. An asynchronous pair and a chain of
        fusions are one collective each."""
        found = [self._collective(*one) for one in self._raw if not self._chains.continues(*one[:2])]
        data = self._weights.multiplied_with_themselves
        return [_not_of(data, c) for c in found] if data else found

    def _printed_mesh(self) -> axes.Mesh | None:
        """Return (axis, size) of each axis of the first mesh in the text that has the user's axis names and
        the module's number of devices. If this number is unknown, any mesh with the user's names counts.
        Return None if there is no such mesh. JAX 0.12 prints meshes in ``replica_groups``."""
        total = self._devices.replicas * self._devices.partitions
        for _, instruction, _ in self._raw:
            if "=mesh[" in instruction.tail:
                found = groups.parse(instruction_attributes(instruction.tail).get("replica_groups", ""))
                if found and found.mesh and (not total or total == math.prod(size for _, size in found.mesh)):
                    return found.mesh
        return None

    def _collective(self, computation: Computation, instruction: Instruction, kind: str) -> Collective:
        """Return the collective that ``instruction`` of ``computation`` performs. ``kind``: which one it is,
        such as ``all-reduce``."""
        attributes = instruction_attributes(instruction.tail)
        who = self._participants(kind, instruction, attributes)
        operand_bytes = self._operand_bytes(computation, instruction)
        size, members = shapes.result_bytes(instruction.opcode, instruction.shape), _group_size(who.members)
        if (
            kind == "all-reduce"
            and computation.name in self._graph.fused
            and _is_scattered(computation, instruction)
        ):
            kind, size = "reduce-scatter", size // members if size is not None and members else None
        moves = who.members is None or any(len(set(m)) > 1 for m in who.members)
        transfer = _transfer(instruction) if kind in ("send", "recv") else None
        sent = wire_bytes(kind, size, members, moves=moves, transfer=transfer)
        start, start_in = self._start(computation, instruction)
        name = op_name(instruction)
        permutes = who.syntax == "pairs"
        source, guessed = self._attribution.near(computation, instruction)
        gathered = self._weights.of(computation, instruction, who.axes) if kind == "all-gather" else None
        return Collective(
            kind=kind,
            name=instruction.name,
            computation=computation.name,
            is_async=start is not None,
            overlap=False if start is None else self._overlap(start_in, start, instruction),
            bytes=size,
            operand_bytes=operand_bytes,
            wire_bytes=sent,
            executions=self._executions.get(computation.name),
            axes=who.axes,
            group_size=None if permutes else members,
            groups=None if permutes or who.members is None else len(who.members),
            syntax=who.syntax,
            origin=origin(
                name, instruction.name, self._may_be_manual, generated=is_generated(instruction.tail)
            ),
            op_name=name,
            source=source,
            source_certainty=None if source is None else LIKELY if guessed else CERTAIN,
            axes_around=who.around,
            transfer=transfer,
            weight=gathered.argument if gathered is not None and gathered.shown else None,
            gathered=gathered if gathered is not None and not gathered.shown else None,
            branches=self._paths.get(computation.name, ()),
        )

    def _start(
        self, computation: Computation, instruction: Instruction
    ) -> tuple[Instruction | None, Computation]:
        """Return (instruction, computation that contains it) of the start of an asynchronous collective: an
        ``all-gather-start``, a ``send``, an ``async-start``, a fusion, ... For a collective that is not
        asynchronous, return (None, ``computation``)."""
        if instruction.opcode.endswith("-start") or instruction.opcode in ("send", "recv"):
            return instruction, computation
        if (chained := self._chains.start_of(computation, instruction)) is not None:
            return chained[1], chained[0]
        for call in self._graph.callers.get(computation.name, ()):
            if call.instruction.opcode.endswith("-start"):
                return call.instruction, call.caller
        return None, computation

    def _overlap(self, computation: Computation, start: Instruction, collective: Instruction) -> bool | None:
        """Return whether anything computes while a collective runs, between its start and its done; None:
        unknown. ``start`` is the instruction that starts ``collective``, and ``computation`` contains
        ``start``."""
        if not self._scheduled:
            return None
        chained = start.opcode == "fusion"
        if chained and self._chains.computes(collective):
            return True
        config = backend_config(start.tail).get("collective_backend_config")
        if isinstance(config, dict) and config.get("is_sync") is True:
            return False
        if computation.name not in self._schedules:
            self._schedules[computation.name] = Schedule(computation)
        end = self._chains.end_of(collective) if chained else None
        return self._schedules[computation.name].overlapped(start, end[1] if end is not None else None)

    def _participants(self, kind: str, instruction: Instruction, attributes: dict[str, str]) -> _Participants:
        """Return the devices that take part in a collective of this kind. ``attributes`` are the attributes
        of its instruction. The result is stored for all collectives with the same groups."""
        text = attributes.get("source_target_pairs")
        if kind in ("send", "recv"):
            return self._between_slices(instruction)
        channel, everywhere = "channel_id" in attributes, attributes.get("use_global_device_ids") == "true"
        key = (
            "pairs" if text is not None else "groups",
            text if text is not None else attributes.get("replica_groups", ""),
            channel,
            everywhere,
            kind in _PARTITION_IDS,
        )
        if key not in self._cache:
            found = groups.pairs(text) if text is not None else groups.parse(key[1])
            members = None
            if found is not None and self._left > 0:
                members = groups.positions(
                    found,
                    replicas=self._devices.replicas,
                    partitions=self._devices.partitions,
                    has_channel=channel,
                    global_ids=everywhere,
                    partition_ids=key[4],
                )
                if text is not None and not found.members:
                    members = []  # a permute without pairs moves nothing
                self._left -= sum(map(len, members or ()))
            elif found is not None:
                self.too_many_ids = True
            along = around = None
            if members is not None and self.mesh is not None:
                along = (axes.of_pairs if text is not None else axes.of_groups)(members, self.mesh)
                around = axes.around(members, self.mesh) if along is None else None
            self._cache[key] = _Participants(members, along, found.syntax if found else None, around)
        return self._cache[key]

    def _axes_of(self, instruction: Instruction) -> list[str] | None:
        """Return the mesh axes of a collective; None: they are unknown, or the instruction is no
        collective."""
        kind = BEGINS.get(instruction.opcode)
        if kind is None:
            return None
        return self._participants(kind, instruction, instruction_attributes(instruction.tail)).axes

    def _between_slices(self, instruction: Instruction) -> _Participants:
        """Return the devices of a send or recv. The text has them as pairs (source, target), or in an
        attribute that libtpu adds for transfers between TPU slices, as pairs or groups. All fields are None
        if it has neither."""
        found = _PAIRS.search(instruction.tail)
        if found:
            pairs = groups.pairs(found[1])
            members = pairs.members if pairs else None
            along = axes.of_pairs(members, self.mesh) if members is not None and self.mesh else None
            return _Participants(members, along, "pairs")
        # The header of a module for several slices states the devices of one slice. Positions are numbered
        # slice by slice.
        here, target = self._devices.partitions * self._devices.replicas, _TARGET.search(instruction.tail)
        between = groups.between_slices(target[1].rstrip(","), here) if target and here else None
        if between is None:
            return _Participants(None, None, None)
        along = None
        if self.mesh is not None:
            of = axes.of_pairs if between.syntax == "pairs" else axes.of_groups
            along = of(between.members, self.mesh)
        return _Participants(between.members, along, between.syntax)

    def _operand_bytes(self, computation: Computation, instruction: Instruction) -> int | None:
        """Return the bytes of all operands on one device, without padding; None if one size is unknown."""
        total = 0
        for name in operands(instruction.tail):
            operand = computation.find(name)
            size = None if operand is None else shapes.text_bytes(operand.shape)
            if size is None:
                return None
            total += size
        return total

    def _may_be_manual(self) -> bool:
        """Return whether the program may contain a shard_map or a pmap, in which the user writes collectives.
        True also if the text has no names of JAX operations."""
        if self._asks is None:
            instructions = (i for c in self._module.computations.values() for i in c.instructions)
            if self._module.mentions_maps:
                self._asks = any("map" in i.tail and is_manual(op_name(i) or "") for i in instructions)
            else:
                self._asks = not any("op_name=" in i.tail for i in instructions)
        return self._asks


def _transfer(instruction: Instruction) -> str | None:
    """Return the kind of collective (``all-reduce``, ...) to which a send or recv between TPU slices belongs.
    Return None if the text of the instruction names no kind."""
    found = _TRANSFER.search(instruction.tail)
    kind = found[1].lower().replace("_", "-") if found else None
    return "collective-permute" if kind == "one-to-one" else kind if kind in KINDS else None


def _not_of(arguments: Collection[str], c: Collective) -> Collective:
    """Return ``c``, without ``weight`` and ``gathered`` if it gathers one of ``arguments``, which are no
    weights."""
    if c.weight in arguments or (c.gathered is not None and c.gathered.argument in arguments):
        return msgspec.structs.replace(c, weight=None, gathered=None)
    return c


def _is_scattered(body: Computation, reduced: Instruction) -> bool:
    """Return whether a TPU fusion with the all-reduce ``reduced`` is a reduce-scatter: the fusion's
    computation ``body`` uses only slices of the all-reduce's result, or is named ``all-reduce-scatter``."""
    if body.name.startswith("all-reduce-scatter"):
        return True
    waiting, seen, sliced = [reduced.name], {reduced.name}, False
    while waiting and len(seen) < MAX_READERS:
        for reader in body.readers(waiting.pop()):
            if reader.opcode == "dynamic-slice":
                sliced = True
            elif reader.opcode not in _PASSES:
                return False
            elif reader.name not in seen:
                seen.add(reader.name)
                waiting.append(reader.name)
    return sliced and not waiting


def asked_gathers(collectives: Iterable[Collective]) -> set[tuple[str, str]]:
    """Return (computation, name) of the all-gathers among ``collectives`` that the user's program asks for,
    without those that collect a fully sharded parameter (``weight``)."""
    return {
        (c.computation, c.name)
        for c in collectives
        if c.kind == "all-gather" and c.origin == "asked" and c.weight is None
    }


def wire_by_axes(collectives: Iterable[Collective]) -> dict[Axes, branches.Bounds]:
    """Return the bytes that one device sends in collectives in one call of the program: mesh axes -> lower
    and upper bound. If an amount is unknown, it counts as 0 in the lower bound, and there is no upper
    bound."""
    rows: dict[Axes, list[tuple[branches.Path, int | None]]] = {}
    for c in collectives:
        rows.setdefault(c.over, []).append((c.branches, c.sent_bytes))
    return {key: branches.bounds_of(several) for key, several in rows.items()}


def _group_size(members: list[groups.Group] | None) -> int | None:
    """Return the number of members of each group. Return None if the groups are unknown or of different
    size."""
    sizes = {len(m) for m in members} if members else set()
    return sizes.pop() if len(sizes) == 1 else None
