"""Compute whether a program that is compiled for a target fits into a device's memory, and what fills the
memory.

A compiler that runs out of memory returns an error and no program. Then the facts come from the error's
message and from the sizes of the arguments.
"""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.hlo.lexing import number
from jaxscope.analysis.machines import MACHINES
from jaxscope.analysis.programs import peak_bytes
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target

# Units are binary: 15.75G of a 16 GiB chip. libtpu (0.0.42, 0.0.50) prints the first message if it fails
# before it assigns buffers, and the second, with a list of the largest buffers, if it fails afterwards.
_TEMPORARIES = re.compile(
    r"HLO temporaries \(([\d.]+)([KMGT]?)B?\) exceeds available (?P<space>\w+)"
    r" \((?P<room>[\d.]+)(?P<scale>[KMGT]?)B?\)"
)
_USED = re.compile(r"Used ([\d.]+)([KMGT]?) of (?P<room>[\d.]+)(?P<scale>[KMGT]?) (?P<space>\w+)")
# The buffers of one operation exceed the compiler's limit for one operation, which is less than the memory.
_SCOPED = re.compile(
    r"(?:allocating on stack for (?P<operation>%[^\n]{1,4000}?)\."
    r" )?Scoped allocation with size ([\d.]+)([KMGT]?)B?"
    r" and limit (?P<room>[\d.]+)(?P<scale>[KMGT]?)B? exceeded scoped (?P<space>\w+) limit"
)
_PART = re.compile(
    r"^\s*(reserved|program|arguments|global|scoped|HLO temp|stack)\s+([\d.]+)([KMGT]?)B?\b", re.M
)
_LARGEST = re.compile(r"^\s*\d+\. Size: ([\d.]+)([KMGT]?)B?\s*$", re.M)
_FIELD = re.compile(r"^\s*(Operator|Shape|Source|XLA label|Allocation type): (.*)$", re.M)
_OP_NAME = re.compile(r'op_name="([^"]*)"')
_SOURCE = re.compile(r'source_file="([^"]*)"(?: source_line=(\d+))?')
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LARGEST = 20
KERNEL = "tpu_custom_call"  # the custom call target of Pallas kernels


class Allocation(msgspec.Struct, frozen=True):
    """One of the largest buffers that the compiler's error message lists, all buffers of one operation in
    this message, or one of the largest values of the lowered program.

    Attributes:
      bytes: bytes of the buffer on one device; if ``kind`` is ``value on all devices``, on all devices
        together.
      kind: the kind of buffer in the compiler's message; ``value`` or ``value on all devices``: a value of
        the lowered program; ``kernel`` or ``operation``: the buffers of one operation; None: not stated.
      shape: the shape as HLO writes it; None: not stated.
      operation, file, line: the operation that writes the buffer, and its source line; None: not stated.
    """

    bytes: int
    kind: str | None = None
    shape: str | None = None
    operation: str | None = None
    file: str | None = None
    line: int | None = None


class Fit(msgspec.Struct, frozen=True):
    """Whether and how a program fits into the memory of one device of the target for which it is compiled.
    All bytes are for one device.

    Attributes:
      fits: whether the program fits; None: unknown.
      used: bytes that the program needs, or only those of its temporary buffers if the compiler fails before
        it assigns buffers; None: unknown.
      capacity: bytes that the device has, stated by the compiler, else by the vendor's page; None: unknown.
      parts: the compiler's breakdown of the used bytes: name -> bytes.
      largest: the largest buffers that the compiler lists, or the largest values of the program (see
        ``with_values``); empty: neither is known, or the program fits.
      space: the compiler's name of the memory (``hbm``, ``vmem``); None: not stated.
      scoped: True if the buffers of a single operation exceed the compiler's limit for one operation. Then
        ``used`` is the bytes of these buffers, ``capacity`` is the limit, and the operation is the only entry
        of ``largest``.
    """

    fits: bool | None
    used: int | None
    capacity: int | None
    parts: dict[str, int] = {}
    largest: list[Allocation] = []
    space: str | None = None
    scoped: bool = False

    @property
    def temporaries(self) -> int | None:
        """Return the bytes of temporary buffers; None: the compiler's breakdown does not have them."""
        return next((self.parts[n] for n in ("HLO temporaries", "HLO temp") if n in self.parts), None)


def capacity_of(target: Target) -> int | None:
    """Return the bytes that a program can use on one device of ``target``, stated by the compiler, else by
    the vendor. Return None if they are unknown. A device may be a part of a chip."""
    machine = MACHINES.get(target.machine)
    if machine is not None and machine.usable is not None:
        return int(machine.usable.value)
    if machine is not None and machine.memory is not None:
        return int(machine.memory.value / machine.devices_per_chip)
    return None


def of_program(target: Target | None, peak: int | None) -> Fit:
    """Return whether and how a program, compiled without an error for ``target``, fits into the memory of one
    device.

    Args:
      target: the machine; None: unknown.
      peak: the number of bytes that the program needs on one device; None: unknown.
    """
    room = capacity_of(target) if target is not None else None
    return Fit(None if peak is None or room is None else peak <= room, peak, room)


def of_message(target: Target | None, message: str) -> Fit:
    """Return the memory figures of a program whose compilation failed for lack of memory; ``fits`` is False.
    The bytes that the program needs and the largest buffers are read from the error. So are the bytes that a
    device has; if they are not in the error, they are those of ``capacity_of``.

    Args:
      target: the machine for which the program was compiled; None: unknown.
      message: the text of the compiler's error.
    """
    scoped = _SCOPED.search(message)
    if scoped is not None:
        return _of_one_operation(scoped)
    early = _TEMPORARIES.search(message)
    used = _USED.search(message) or early
    room = capacity_of(target) if target is not None else None
    if used is not None:
        room = _bytes(used["room"], used["scale"])
    return Fit(
        fits=False,
        used=_bytes(used[1], used[2]) if used else None,
        capacity=room,
        parts={m[1]: _bytes(m[2], m[3]) for m in _PART.finditer(message)}
        or ({"HLO temporaries": _bytes(early[1], early[2])} if early else {}),
        largest=_allocations(message),
        space=used["space"].lower() if used is not None else None,
    )


def _of_one_operation(match: re.Match[str]) -> Fit:
    """Return the facts about a program of which one operation exceeds the compiler's limit for one operation.
    ``match`` is the match of ``_SCOPED`` in the error."""
    used, text = _bytes(match[2], match[3]), match["operation"] or ""
    name = _OP_NAME.search(text)
    called = name[1] if name else text.partition(" = ")[0].strip("% ")
    source = _SOURCE.search(text)
    operation = Allocation(
        bytes=used,
        kind="kernel" if KERNEL in text else "operation",
        operation=called or None,
        file=source[1] if source else None,
        line=number(source[2]) if source else None,
    )
    room = _bytes(match["room"], match["scale"])
    return Fit(False, used, room, largest=[operation], space=match["space"].lower(), scoped=True)


def _allocations(message: str) -> list[Allocation]:
    """Return the buffers that the compiler's error lists, at most ``LARGEST`` (20), in the order of the
    error."""
    starts = list(_LARGEST.finditer(message))[:LARGEST]
    found = []
    for i, m in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(message)
        fields = {f[1]: f[2].strip() for f in _FIELD.finditer(message, m.end(), end)}
        operator = fields.get("Operator", "")
        name, source = _OP_NAME.search(operator), _SOURCE.search(operator)
        found.append(
            Allocation(
                bytes=_bytes(m[1], m[2]),
                kind=fields.get("Allocation type"),
                shape=fields.get("Shape"),
                operation=name[1] if name else fields.get("XLA label"),
                file=source[1] if source else None,
                line=number(source[2]) if source else None,
            )
        )
    return found


def _bytes(number: str, unit: str) -> int:
    """Convert a size of the compiler's error to bytes: ``1536`` for ``("1.5", "K")``. Return 0 if it cannot
    be read."""
    try:
        return int(float(number) * _SCALE[unit])
    except (ValueError, OverflowError):
        return 0


def with_values(fit: Fit, lowered: Reading | None) -> Fit:
    """Return ``fit``, completed: if the program does not fit and the compiler named no buffer, ``largest`` of
    the result has the largest values of the lowered program.

    Values are not buffers: the compiler's layout may pad them, and several values may share one buffer.

    Args:
      fit: whether the program fits.
      lowered: the contents of the program's StableHLO; None: unknown.
    """
    if fit.fits is not False or fit.largest or lowered is None:
        return fit
    kind = "value" if lowered.num_partitions == 1 else "value on all devices"
    values = [
        Allocation(
            bytes=v.bytes,
            kind=kind,
            shape=v.shape,
            operation=v.operation,
            file=v.source.file if v.source is not None else None,
            line=v.source.line if v.source is not None else None,
        )
        for v in lowered.large
    ]
    return msgspec.structs.replace(fit, largest=values)


class Contributor(msgspec.Struct, frozen=True):
    """An argument or a result of the user's function, and the memory that it needs.

    Attributes:
      of: ``argument`` or ``output``.
      path: the name in the user's code: ``state.params['w']``; None: unknown.
      bytes: bytes on one device; None: unknown, as the compiler decides how to split the value.
      global_bytes: bytes of the whole array; None: unknown.
    """

    of: str
    path: str | None
    bytes: int | None
    global_bytes: int | None


def contributors(lowered: Reading | None) -> list[Contributor] | None:
    """Return the arguments and results of the user's function with the memory that they need, those with the
    most bytes on one device first, then those of unknown size. Return None if the program's StableHLO
    (``lowered``) is unknown."""
    if lowered is None:
        return None
    values = [("argument", v) for v in lowered.arguments] + [("output", v) for v in lowered.results]
    alone = lowered.num_partitions == 1
    found = [
        Contributor(of, v.name, v.device_bytes if alone or v.sharding is not None else None, v.bytes)
        for of, v in values
        if v.role == "user"
    ]
    return sorted(found, key=lambda c: (c.bytes is None, -(c.bytes or c.global_bytes or 0)))


def peak_of(memory: Memory | None, compiler_peak: int | None) -> int | None:
    """Return the peak bytes of a program on one device: ``compiler_peak``, or if it is None, the sum of the
    sizes in ``memory`` (see ``programs.peak_bytes``). Return None if neither is known."""
    if compiler_peak is not None or memory is None:
        return compiler_peak
    return peak_bytes(memory)


def undivided(memory: Memory | None, peak: int | None) -> int | None:
    """Return the compiler's peak minus (arguments + results + temporaries - aliased bytes), in bytes on one
    device. Return None if one of these is unknown. The difference may be negative.

    XLA's peak_memory_in_bytes includes constants, but the sizes do not. What else the difference contains is
    not documented.

    Args:
      memory: XLA's sizes of arguments, results, temporaries and aliases; None: unknown.
      peak: the compiler's peak in bytes; None: unknown.
    """
    # A captured f32[1024,1024] makes the peak exactly 4 MiB more than arguments and results (CPU, JAX 0.10.2
    # and 0.12.0.1).
    divided = peak_bytes(memory) if memory is not None else None
    return None if divided is None or peak is None else peak - divided
