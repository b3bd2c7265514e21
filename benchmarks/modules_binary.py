"""Read XLA's binary form of a compiled module (HloModuleProto), without the code of jaxscope.

``decode`` is a reader of the protobuf wire format. The numbers of the fields are those of XLA's
xla/service/hlo.proto and xla/xla_data.proto, as the descriptors in jaxlib 0.10.2 and 0.12.0.1 have them.
``Module`` has the computations and instructions, and finds which computations run. How often they run is in
``modules_runs.py``.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

# Message -> number of a field -> (its name, its type). The types: int; text; bytes, also for numbers of a fixed
# size; the name of a message. A star stands for repeated fields.
FIELDS: dict[str, dict[int, tuple[str, str]]] = {
    "HloModuleProto": {
        1: ("name", "text"),
        3: ("computations", "HloComputationProto*"),
        6: ("entry_computation_id", "int"),
        7: ("schedule", "bytes"),
        8: ("input_output_alias", "HloInputOutputAliasProto"),
        15: ("device_assignment", "DeviceAssignmentProto"),
        18: ("buffer_donor", "HloBufferDonorProto"),
        22: ("payloads", "bytes*"),
    },
    "HloComputationProto": {
        1: ("name", "text"),
        2: ("instructions", "HloInstructionProto*"),
        5: ("id", "int"),
        6: ("root_id", "int"),
    },
    "HloInstructionProto": {
        1: ("name", "text"),
        2: ("opcode", "text"),
        3: ("shape", "ShapeProto"),
        8: ("literal", "LiteralProto"),
        9: ("parameter_number", "int"),
        11: ("fusion_kind", "text"),
        13: ("tuple_index", "int"),
        26: ("channel_id", "int"),
        28: ("custom_call_target", "text"),
        35: ("id", "int"),
        36: ("operand_ids", "int*"),
        38: ("called_computation_ids", "int*"),
        40: ("sharding", "OpSharding"),
        43: ("backend_config", "bytes"),
        47: ("is_host_transfer", "int"),
        49: ("replica_groups", "ReplicaGroup*"),
        52: ("source_target_pairs", "SourceTarget*"),
        63: ("comparison_direction", "text"),
        68: ("frontend_attributes", "FrontendAttributes"),
        71: ("use_global_device_ids", "int"),
        87: ("collective_device_list", "CollectiveDeviceListProto"),
        92: ("iota_collective_device_list", "IotaReplicaGroupListProto"),
        93: ("mesh_axes_replica_group_list", "MeshAxesReplicaGroupListProto"),
        99: ("backend_config_payload", "Payload"),
    },
    "OpSharding": {
        1: ("type", "int"),
        3: ("tile_assignment_dimensions", "int*"),
        14: ("named_sharding", "bytes*"),
    },
    "Payload": {1: ("value", "bytes"), 2: ("id", "int")},
    "ShapeProto": {
        2: ("element_type", "int"),
        3: ("dimensions", "int*"),
        4: ("tuple_shapes", "ShapeProto*"),
        5: ("layout", "LayoutProto"),
    },
    "LayoutProto": {7: ("element_size_in_bits", "int"), 8: ("memory_space", "int")},
    "LiteralProto": {
        2: ("preds", "int*"),
        3: ("u8s", "bytes"),
        4: ("s32s", "int*"),
        5: ("s64s", "int*"),
        6: ("u32s", "int*"),
        7: ("u64s", "int*"),
        8: ("f32s", "bytes"),
        9: ("f64s", "bytes"),
        15: ("s8s", "bytes"),
        16: ("u16s", "bytes"),
        17: ("s16s", "bytes"),
    },
    "HloInputOutputAliasProto": {1: ("entries", "AliasEntryProto*")},
    "AliasEntryProto": {
        1: ("output_shape_index", "int*"),
        2: ("parameter_number", "int"),
        4: ("kind", "int"),
    },
    "HloBufferDonorProto": {1: ("entries", "BufferDonorEntryProto*")},
    "BufferDonorEntryProto": {1: ("parameter_number", "int")},
    "DeviceAssignmentProto": {1: ("replica_count", "int"), 2: ("computation_count", "int")},
    "ReplicaGroup": {1: ("replica_ids", "int*")},
    "SourceTarget": {1: ("source", "int"), 2: ("target", "int")},
    "FrontendAttributes": {1: ("map", "MapEntry*")},
    "MapEntry": {1: ("key", "text"), 2: ("value", "text")},
    "CollectiveDeviceListProto": {1: ("replica_groups", "ReplicaGroup*")},
    "IotaReplicaGroupListProto": {
        1: ("num_replica_groups", "int"),
        2: ("num_devices_per_group", "int"),
        3: ("iota_reshape_dims", "int*"),
        4: ("iota_transpose_perm", "int*"),
    },
    "MeshAxesReplicaGroupListProto": {1: ("mesh", "MeshProto"), 2: ("axes", "AxisRefProto*")},
    "MeshProto": {
        1: ("axes", "MeshAxis*"),
        2: ("device_ids", "int*"),
        3: ("iota_transform", "IotaTransform"),
    },
    "MeshAxis": {1: ("name", "text"), 2: ("size", "int")},
    "IotaTransform": {1: ("reshape_dims", "int*"), 2: ("transpose_perm", "int*")},
    "AxisRefProto": {1: ("mesh_axis_index", "int"), 2: ("sub_axis_info", "SubAxis")},
    "SubAxis": {1: ("pre_size", "int"), 2: ("size", "int")},
}
# PrimitiveType -> bits of an element in memory, where the layout states no other size (a smaller type takes a
# byte). 13 is a tuple.
BITS = {
    1: 8,
    **dict.fromkeys((2, 6, 21, 22, 26, 27, 30, 31), 8),
    **dict.fromkeys((3, 7, 10, 16), 16),
    **dict.fromkeys((4, 8, 11), 32),
    **dict.fromkeys((5, 9, 12, 15), 64),
    **dict.fromkeys((19, 20, 23, 24, 25, 28, 29, 32, 33, 35, 36), 8),
    18: 128,
    **dict.fromkeys((14, 17), 0),
}
SIGNED = {2: 8, 3: 16, 4: 32, 5: 64}
INTEGERS = {1: 1, **SIGNED, 6: 8, 7: 16, 8: 32, 9: 64}
# The field of a literal that has numbers of a fixed size, and how ``struct`` spells one.
FIXED = {
    **{2: ("s8s", "b"), 3: ("s16s", "h"), 6: ("u8s", "B"), 7: ("u16s", "H")},
    **{11: ("f32s", "f"), 12: ("f64s", "d")},
}
VARIABLE = {1: "preds", 4: "s32s", 5: "s64s", 8: "u32s", 9: "u64s"}
TUPLE = 13
ALIAS_KINDS = {1: "may-alias", 2: "must-alias"}
Message = dict[str, Any]


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, place
        shift += 7


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (number of the field, value) of each field of a message. A value of variable length is bytes."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        kind = key & 7
        if kind == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
        elif kind in (1, 2, 5):
            size = {1: 8, 5: 4}.get(kind, 0)
            if kind == 2:
                size, place = _varint(data, place)
            yield key >> 3, data[place : place + size]
            place += size
        else:
            raise ValueError(f"wire type {kind} at byte {place}")


def decode(message: str, data: bytes) -> Message:
    """Decode the bytes of a message. Return name of a field -> value; a field that is missing has the value
    that protobuf gives it: 0, "", b"" or [], and None if it is a message."""
    known = FIELDS[message]
    found: Message = {}
    for name, kind in known.values():
        plain: dict[str, Any] = {"int": 0, "text": "", "bytes": b""}
        found[name] = [] if kind.endswith("*") else plain.get(kind)
    for number, value in _parts(data):
        if number not in known:
            continue
        name, kind = known[number]
        base = kind.rstrip("*")
        if base == "int" and isinstance(value, bytes):  # numbers that are packed
            place = 0
            while place < len(value):
                one, place = _varint(value, place)
                found[name].append(_signed(one))
            continue
        read = _value(base, value)
        if kind.endswith("*"):
            found[name].append(read)
        else:
            found[name] = read
    return found


def _value(kind: str, value: int | bytes) -> Any:
    if isinstance(value, int):
        return _signed(value)
    if kind == "text":
        return value.decode("utf-8", "replace")
    return value if kind == "bytes" else decode(kind, value)


def shape_bytes(shape: Message) -> int:
    """Return the bytes of an array or of all members of a tuple, without padding."""
    if shape["element_type"] == TUPLE:
        return sum(shape_bytes(member) for member in shape["tuple_shapes"])
    layout = shape["layout"] or {}
    bits = layout.get("element_size_in_bits") or BITS[shape["element_type"]]
    return -(-math.prod(shape["dimensions"]) * bits // 8)


def is_number(shape: Message) -> bool:
    """Return whether ``shape`` is one number or truth value."""
    kind = shape["element_type"]
    return (kind in FIXED or kind in VARIABLE) and math.prod(shape["dimensions"]) == 1


@dataclass(eq=False)
class Instruction:
    """One instruction; ``raw`` has its fields."""

    raw: Message
    computation: Computation

    def __post_init__(self) -> None:
        self.name: str = self.raw["name"]
        self.opcode: str = self.raw["opcode"]
        self.shape: Message = self.raw["shape"]

    @cached_property
    def operands(self) -> list[Instruction]:
        return [self.computation.module.instructions[i] for i in self.raw["operand_ids"]]

    @cached_property
    def called(self) -> list[Computation]:
        return [self.computation.module.computations[i] for i in self.raw["called_computation_ids"]]

    @cached_property
    def config(self) -> Message:
        """The backend's settings, which are JSON; empty if they are not."""
        payload = self.raw["backend_config_payload"]
        data = self.raw["backend_config"] or (payload or {}).get("value") or b""
        if not data and payload is not None and self.computation.module.raw["payloads"]:
            data = self.computation.module.raw["payloads"][payload["id"]]
        try:
            found = json.loads(data)
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    @cached_property
    def attributes(self) -> dict[str, str]:
        given = self.raw["frontend_attributes"]
        return {entry["key"]: entry["value"] for entry in given["map"]} if given else {}

    @cached_property
    def constant(self) -> int | float | None:
        """The value of a constant that is one number or truth value."""
        literal, kind = self.raw["literal"], self.shape["element_type"]
        if literal is None or not is_number(self.shape):
            return None
        if kind in FIXED:
            name, letter = FIXED[kind]
            return struct.unpack(f"<{letter}", literal[name])[0] if literal[name] else None
        values = literal[VARIABLE[kind]]
        return values[0] if values else None


@dataclass(eq=False)
class Computation:
    """One computation; ``raw`` has its fields, ``users`` the readers of each of its instructions."""

    raw: Message
    module: Module
    instructions: list[Instruction] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name: str = self.raw["name"]
        self.instructions = [Instruction(i, self) for i in self.raw["instructions"]]

    @cached_property
    def root(self) -> Instruction:
        return self.module.instructions[self.raw["root_id"]]

    @cached_property
    def users(self) -> dict[Instruction, list[Instruction]]:
        found: dict[Instruction, list[Instruction]] = {i: [] for i in self.instructions}
        for instruction in self.instructions:
            for operand in instruction.operands:
                found[operand].append(instruction)
        return found


# Only these run the computation that they name. The others name a function of single elements.
CALLS = ("fusion", "while", "conditional", "call", "async-start")


class Module:
    """A compiled module.

    Args:
      data: the bytes of the HloModuleProto.
      positions: number of devices of the mesh, where the module does not state it.
    """

    def __init__(self, data: bytes, positions: int = 1) -> None:
        self.raw = decode("HloModuleProto", data)
        self.computations = {c["id"]: Computation(c, self) for c in self.raw["computations"]}
        self.instructions = {i.raw["id"]: i for c in self.computations.values() for i in c.instructions}
        self.entry = self.computations[self.raw["entry_computation_id"]]
        assigned = self.raw["device_assignment"] or {}
        self.replicas = assigned.get("replica_count") or 1
        self.partitions = assigned.get("computation_count") or positions

    @cached_property
    def running(self) -> list[Computation]:
        """The entry computation and all that it calls, directly or not."""
        seen, waiting = {self.entry: None}, [self.entry]
        while waiting:
            for instruction in waiting.pop().instructions:
                for called in instruction.called if instruction.opcode in CALLS else ():
                    if called not in seen:
                        seen[called] = None
                        waiting.append(called)
        return list(seen)

    @cached_property
    def fused(self) -> set[Computation]:
        """The computations inside of fusions."""
        return self._below("fusion")

    @cached_property
    def asynchronous(self) -> set[Computation]:
        """The computations that an ``async-start`` runs."""
        return self._below("async-start")

    def _below(self, opcode: str) -> set[Computation]:
        found: set[Computation] = set()
        waiting = [
            called
            for computation in self.running
            for i in computation.instructions
            if i.opcode == opcode
            for called in i.called
        ]
        while waiting:
            computation = waiting.pop()
            if computation not in found:
                found.add(computation)
                waiting += [c for i in computation.instructions if i.opcode in CALLS for c in i.called]
        return found

    @cached_property
    def callers(self) -> dict[Computation, list[Instruction]]:
        """The instructions that call each computation."""
        found: dict[Computation, list[Instruction]] = {}
        for computation in self.running:
            for instruction in computation.instructions:
                for called in instruction.called if instruction.opcode in CALLS else ():
                    found.setdefault(called, []).append(instruction)
        return found

    def all(self, *opcodes: str) -> Iterator[Instruction]:
        """Yield the instructions with these opcodes in computations that run."""
        for computation in self.running:
            yield from (i for i in computation.instructions if i.opcode in opcodes)

    def printed(self) -> list[Computation]:
        """Return the computations that the text prints. It writes ``async-start`` of a computation with one
        operation as ``OPERATION-start`` and leaves the computation out."""
        hidden = {
            called
            for c in self.computations.values()
            for i in c.instructions
            if i.opcode == "async-start"
            for called in i.called
            if all(i.opcode == "parameter" or i is called.root for i in called.instructions)
        }
        return [c for c in self.computations.values() if c not in hidden]


Group = tuple[int, ...]


def positions(collective: Instruction) -> list[Group] | None:
    """Return the groups of a collective as positions in the list of devices, or the pairs (source, target) of
    a permute. None: the binary form states none (a send or recv)."""
    raw, module = collective.raw, collective.computation.module
    kind = collective.opcode.removesuffix("-start")
    if kind in ("send", "recv"):
        return None
    if kind == "collective-permute":
        pairs = [(p["source"], p["target"]) for p in raw["source_target_pairs"]]
        return [
            (r * module.partitions + a, r * module.partitions + b)
            for r in range(module.replicas)
            for a, b in pairs
        ]
    stated = list(_stated(raw))
    replicas, partitions = range(module.replicas), range(module.partitions)
    if raw["use_global_device_ids"]:
        return stated or [tuple(range(module.replicas * module.partitions))]
    width = module.partitions
    if raw["channel_id"] and kind in ("all-to-all", "collective-broadcast", "ragged-all-to-all"):
        return [tuple(r * width + p for p in g) for g in stated or [tuple(partitions)] for r in replicas]
    stated = stated or [tuple(replicas)]
    if raw["channel_id"]:
        return [tuple(r * width + p for r in g for p in partitions) for g in stated]
    return [tuple(r * width + p for r in g) for g in stated for p in partitions]


def _stated(raw: Message) -> Iterable[Group]:
    """Return the groups that a collective states, in one of four forms."""
    if (meshed := raw["mesh_axes_replica_group_list"]) is not None:
        return _mesh_groups(meshed)
    if (iota := raw["iota_collective_device_list"]) is not None:
        flat = _transposed(iota["iota_reshape_dims"], iota["iota_transpose_perm"])
        size = iota["num_devices_per_group"]
        return [tuple(flat[i : i + size]) for i in range(0, len(flat), size)]
    listed = raw["collective_device_list"]
    groups = listed["replica_groups"] if listed is not None else raw["replica_groups"]
    return [tuple(g["replica_ids"]) for g in groups if g["replica_ids"]]


def _transposed(sizes: list[int], order: list[int]) -> list[int]:
    """Return the numbers from 0 in an array of these sizes, after its dimensions were put in ``order``."""
    order = order or list(range(len(sizes)))
    found = []
    for place in product(*(range(sizes[axis]) for axis in order)):
        at = dict(zip(order, place, strict=True))
        number = 0
        for axis, size in enumerate(sizes):
            number = number * size + at[axis]
        found.append(number)
    return found


def _mesh_groups(meshed: Message) -> list[Group]:
    """Return the groups along axes, or parts of axes, of a mesh: devices of one group differ in these."""
    mesh = meshed["mesh"]
    sizes = [axis["size"] for axis in mesh["axes"]]
    total = math.prod(sizes)
    devices = mesh["device_ids"] or list(range(total))
    if (iota := mesh["iota_transform"]) is not None:
        devices = _transposed(iota["reshape_dims"], iota["transpose_perm"])
    groups: dict[tuple[object, ...], list[tuple[tuple[int, ...], int]]] = {}
    for position, place in enumerate(product(*map(range, sizes))):
        outside, inside = list(place), []
        for used in meshed["axes"]:
            axis, part = used["mesh_axis_index"], used["sub_axis_info"]
            before, size = (part["pre_size"], part["size"]) if part is not None else (1, sizes[axis])
            behind = sizes[axis] // (before * size)
            digit = place[axis] // behind % size
            inside.append(digit)
            outside[axis] -= digit * behind
        groups.setdefault(tuple(outside), []).append((tuple(inside), devices[position]))
    return [tuple(device for _, device in sorted(members)) for members in groups.values()]
