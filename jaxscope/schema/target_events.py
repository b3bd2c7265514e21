"""What is said of programs for machines that are not there; a part of the union in ``events``."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target


class TargetsWanted(Event, frozen=True, tag="TargetsWanted"):
    """What this process is compiled for besides its own machine.

    ``forced``: how many CPU devices it was given for that; None: the environment had its own setting.
    """

    targets: list[Target] = []
    forced: int | None = None


class Retargeted(Event, frozen=True, tag="Retargeted"):
    """A call's trace was lowered once more, for ``target``, and handed to a compiler of ours.

    Attributes:
      program: of the lowered text, the compile options and the target. None: nothing was handed over.
      of: the program of the same lowering for the machine the process runs on; None: there is none.
      seconds: that the process itself waited for it.
      stablehlo: blob of the lowered text.
      partitions: devices it runs on.
      in_order: are those the first ones of the target, in its order? None: an older log.
      donated: paths of the arguments the call donates.
      dropped: flat positions of arguments that the program does not take.
      skipped: why there is no such program.
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
    """Written by the compiler's keeper: it has begun with a retargeted program."""

    program: str = ""
    target: str = ""


class TargetCompiled(Event, frozen=True, tag="TargetCompiled"):
    """Written by the compiler's keeper: what became of a retargeted program. Fields: log.jobs.Result."""

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
