"""The event of a profile by JAX's profiler: how long the instructions of compiled programs took."""

from __future__ import annotations

import msgspec

from jaxscope.schema.event import Event


class InstructionTime(msgspec.Struct, frozen=True):
    """The time that one instruction of a compiled program took while the profiler ran.

    Attributes:
      module: the name of the program's HLO module (the word after ``HloModule`` in its text).
      name: the name of the HLO instruction: ``fusion.12``.
      program: a number that distinguishes programs with the same module name in the profile; None: the
        profile has none.
      count: number of executions on all devices of the process.
      nanoseconds: time of all these executions. The time of a loop or a call includes the instructions that
        it runs.
      kernel: name of the GPU kernel, if ``name`` is a CUDA graph (``command_buffer_1``), which starts the
        kernels of many instructions; else None.
    """

    module: str
    name: str
    program: int | None = None
    count: int = 0
    nanoseconds: int = 0
    kernel: str | None = None


class Profiled(Event, frozen=True, tag="Profiled"):
    """JAX's profiler ran for some training steps of this process.

    Attributes:
      first_step, last_step: the profiled steps, both included.
      seconds: wall time from the start of the profiler to its stop; None: unknown.
      devices: number of devices of this process that executed instructions; None: the profile does not name
        devices, or could not be read.
      instructions: the times of the instructions, the slowest first; empty if the profile could not be read.
      left_out: number of further instructions that the profile has and ``instructions`` has not.
      busy_seconds: the seconds in which a device executed at least one instruction, summed over the devices;
        None: the profile does not name the device of each instruction, or could not be read.
      file: path of the profile, relative to the run directory; None: no file was written.
      cost_seconds: seconds that jaxscope used to start and stop the profiler and to read the profile; None:
        unknown.
    """

    first_step: int = 0
    last_step: int = 0
    seconds: float | None = None
    devices: int | None = None
    instructions: list[InstructionTime] = []
    left_out: int = 0
    busy_seconds: float | None = None
    file: str | None = None
    cost_seconds: float | None = None
