"""Events of programs that are compiled for targets; a part of the union in ``events``."""

from __future__ import annotations

from jaxscope.schema.event import Event
from jaxscope.schema.keys import Memory
from jaxscope.schema.targets import Target


class TargetsWanted(Event, frozen=True, tag="TargetsWanted"):
    """The targets for which the functions of this process are compiled, in addition to its own machine.

    ``forced``: number of CPU devices created for them; None: the environment had its own setting.
    """

    targets: list[Target] = []
    forced: int | None = None


class Retargeted(Event, frozen=True, tag="Retargeted"):
    """The trace of a call was lowered again for ``target``, and queued for the target's compiler.

    Attributes:
      program: id of the lowered text, the compile options and the target. None: nothing was queued.
      of: the program of the same trace for the machine that the process runs on; None: there is none.
      seconds: seconds that the program waited for this lowering.
      stablehlo: blob of the lowered text.
      partitions: number of devices it runs on.
      in_order: whether these are the target's first devices, in its order; None: an older log.
      donated: paths of the arguments that the call donates.
      dropped: flat positions of arguments that the program does not take.
      skipped: why there is no program for the target.
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
    """A target's compiler began with a program. Written by ``targets.worker``."""

    program: str = ""
    target: str = ""


class TargetCompiled(Event, frozen=True, tag="TargetCompiled"):
    """A target's compiler ended with a program. Written by ``targets.worker``; fields: log.jobs.Result."""

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
