"""The events of programs that jaxscope compiles for targets, which are machines that need not be present.

The union ``schema.events.AnyEvent`` contains these events, too.
"""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target


class TargetsWanted(Event, frozen=True, tag="TargetsWanted"):
    """The targets (``--target v5e:4x4``) for which jaxscope also compiles the functions of this process.

    Attributes:
      targets: the targets.
      forced: the number of CPU devices that jaxscope made JAX create, so that the program can build meshes of
        the target's size; None: jaxscope set no number, for example because the environment already did.
    """

    targets: list[Target] = []
    forced: int | None = None


class Retargeted(Event, frozen=True, tag="Retargeted"):
    """The trace of a call was lowered a second time, for a target (``--target``), to be compiled for it.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      target: name of the target.
      program: id of the program for the target: a hash of the lowered text, the compile options and the
        target. None: there is no program to compile.
      of: id of the program that JAX lowered from the same trace for the machine on which the process runs;
        None: there is none, or it is unknown.
      seconds: seconds for which the user's program waited for this second lowering; None: unknown.
      module: name of the MLIR module; None: unknown, or there is no program.
      stablehlo, stablehlo_bytes: the hash under which the run stores the lowered text, and the size of the
        text in bytes; None and 0: no text.
      partitions: number of devices that the program runs on; None: unknown, or there is no program.
      in_order: whether these devices are the first ones of the target, in the target's order; None: there is
        no program, or the log is from an older version.
      donated: paths of the arguments that the call donates.
      dropped: positions of the flat arguments that the program does not take.
      skipped: why there is no program for the target; None: there is one.
    """

    call: int = 0
    target: str = ""
    program: str | None = None
    of: str | None = None
    seconds: float | None = None
    module: str | None = None
    stablehlo: str | None = None
    stablehlo_bytes: int = 0
    partitions: int | None = None
    in_order: bool | None = None
    donated: list[str] = []
    dropped: list[int] = []
    skipped: str | None = None


class TargetCompiling(Event, frozen=True, tag="TargetCompiling"):
    """The compiler of a target (a machine given with ``--target``) began to compile a program. ``program`` is
    the id of the program, as in its Retargeted event."""

    program: str = ""
    target: str = ""


class TargetCompiled(Event, frozen=True, tag="TargetCompiled"):
    """The compiler of a target (``--target``) has compiled a program, or failed.

    Attributes:
      program: id of the program, as in its Retargeted event.
      target: name of the target.
      outcome: ok, exhausted (the program needs more memory than the target has), failed (the compiler raised
        an error, or what was to be compiled cannot be read), crashed (the compiler's process ended or did
        not start), late (a time limit was reached) or missing (no such compiler is installed).
      seconds: seconds until the compiler ended, crashed or was stopped; None: it did not run, or this is
        unknown.
      text, text_bytes: the hash under which the run stores the compiled HLO text, and its size in bytes;
        None and 0: no text.
      memory: the memory that the program needs on one device, according to the compiler; None: unknown.
      peak_bytes: peak memory on one device, in bytes; None: the compiler does not state it.
      cost: XLA's cost analysis: ``{"flops": ..., "bytes accessed": ...}``; empty: unknown.
      error: the compiler's message, how its process ended, or what to install; None: no error.
      compiler: name and version of the compiler; None: unknown.
      process_bytes: peak memory of the compiler's process up to now, for all its programs; None: unknown.
    """

    program: str = ""
    target: str = ""
    outcome: str = "ok"
    seconds: float | None = None
    text: str | None = None
    text_bytes: int = 0
    memory: Memory | None = None
    peak_bytes: int | None = None
    cost: dict[str, float] = {}
    error: str | None = None
    compiler: str | None = None
    process_bytes: int | None = None
