"""Sum, by the user's line, the times of instructions that JAX's profiler measured.

A profile gives the name of each instruction and of its HLO module. Several recorded programs may have this
module name; those with the most of the measured instructions count. An instruction is assigned to a line only
if it has the same line in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.hlo.instruction_lines import Located, kernel_key
from jaxscope.model.records import Process, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame
from jaxscope.schema.profiles import InstructionTime, Profiled

# Instructions that run other instructions, which are measured separately
CONTAINERS = frozenset({"while", "conditional", "call"})
MOST = 1 << 62  # a larger number is a damaged figure
_CONTAINER = re.compile(r"(while|conditional|call)([.-].*)?")


class Share(msgspec.Struct, frozen=True):
    """The measured time on devices of one line of the user's code, or of all instructions whose line is
    unknown (``line`` is None).

    Attributes:
      seconds: mean seconds of one step on one device.
      opcodes: the same seconds by HLO opcode of the line's instructions, the slowest first. If the opcode is
        unknown, the key is the name of the instruction or GPU kernel without its number.
    """

    line: Frame | None
    seconds: float
    opcodes: dict[str, float]


class Measured(msgspec.Struct, frozen=True):
    """The measured times of one profile, by line.

    Attributes:
      steps: number of profiled steps.
      devices: number of devices that executed instructions; None: unknown.
      seconds: mean wall time of one step; None: unknown.
      device_seconds: mean seconds in which one device executed instructions in one step. If instructions run
        at the same time, the time of each counts. If ``devices`` is None, these seconds and those of
        ``lines`` are of all devices together.
      lines: the time of each line of the user, the slowest first. Instructions without a known line are one
        entry. Loops, conditionals and calls are left out: the instructions inside them are measured, too.
    """

    process: Process
    event: Profiled
    steps: int
    devices: int | None
    seconds: float | None
    device_seconds: float
    lines: list[Share]


@cached_until_changed
def profiles(run: Run) -> list[Measured]:
    """Return the measured times of each profile of the run, in order of time."""
    found = [(p, event) for p in run.processes.values() for event in p.profiles]
    return [_measured(run, p, event) for p, event in sorted(found, key=lambda each: each[1].t_ns)]


def by_line(run: Run) -> dict[tuple[str, int], float]:
    """Return the measured seconds of one step on one device, by (file, line) of the user's code, from the
    latest profile of the main process. Empty if there is none, or if its number of devices is unknown."""
    own = [m for m in profiles(run) if m.process is run.main]
    if not own or own[-1].devices is None:
        return {}
    return {s.line.place: s.seconds for s in own[-1].lines if s.line is not None}


def _measured(run: Run, process: Process, event: Profiled) -> Measured:
    """Return the times of the profile ``event``, which ``process`` recorded, summed by line."""
    steps = min(max(1, event.last_step - event.first_step + 1), MOST)
    one = 1e9 * steps * min(max(1, event.devices or 1), MOST)
    sums: dict[tuple[str, int] | None, dict[str, int]] = {}
    frames: dict[tuple[str, int] | None, Frame | None] = {None: None}
    for times in grouped(((t.module, t.program), t) for t in event.instructions).values():
        programs = _programs(run, process, times)
        for t in times:
            opcode, line = _located(t, programs)
            if opcode in CONTAINERS or (opcode is None and _CONTAINER.fullmatch(t.name)):
                continue
            place = None if line is None else line.place
            frames.setdefault(place, line)
            kinds = sums.setdefault(place, {})
            kind = opcode or re.sub(r"[._]\d+$", "", t.kernel or t.name)
            kinds[kind] = kinds.get(kind, 0) + min(max(0, t.nanoseconds), MOST)
    lines = [
        Share(
            frames[place],
            sum(kinds.values()) / one,
            {kind: ns / one for kind, ns in sorted(kinds.items(), key=lambda item: -item[1])},
        )
        for place, kinds in sums.items()
    ]
    lines.sort(key=lambda s: -s.seconds)
    return Measured(
        process=process,
        event=event,
        steps=steps,
        devices=event.devices,
        seconds=None if event.seconds is None else event.seconds / steps,
        device_seconds=sum(s.seconds for s in lines),
        lines=lines,
    )


def _programs(run: Run, process: Process, times: Sequence[InstructionTime]) -> list[Mapping[str, Located]]:
    """Return the recorded programs that may be the profiled one, each as {instruction: its line and opcode}.
    Of the programs of ``process`` with the HLO module name of ``times`` (the measured instructions), those
    that contain the most of ``times`` are returned."""
    of_module = [
        run.instructions_of(p)
        for p in run.programs.values()
        if any(c.process is process for c in p.compilations)
        and (made := run.texts_of(p).hlo) is not None
        and made.module == times[0].module
    ]
    ranked = [(sum(_key(t) in program for t in times), program) for program in of_module]
    most = max((n for n, _ in ranked), default=0)
    return [program for n, program in ranked if n == most and n]


def _located(
    t: InstructionTime, programs: Sequence[Mapping[str, Located]]
) -> tuple[str | None, Frame | None]:
    """Return (opcode, user's line) of the measured instruction ``t``; each is None if it is unknown or
    differs between ``programs``, which may contain ``t``. A program is {instruction: its line and opcode}."""
    found = [p[_key(t)] for p in programs if _key(t) in p]
    opcodes = {each.opcode for each in found}
    lines = {None if each.line is None else each.line.place for each in found}
    return (
        opcodes.pop() if len(opcodes) == 1 else None,
        found[0].line if len(lines) == 1 else None,
    )


def _key(t: InstructionTime) -> str:
    """Return the key of the measured instruction ``t`` in the dict of a program's instructions: its name, or
    a key made from the name of its GPU kernel."""
    return t.name if t.kernel is None else kernel_key(t.kernel)
