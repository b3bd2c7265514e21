"""Everything capture can say: a tagged union of facts, plus Unknown for kinds from the future.

Every field has a default, so that a log written by an older jaxscope decodes; fields a newer one
added are ignored. A field that could not be read is None, never the 0 or the empty list that would be an answer. What can be derived (causes, counts, findings) is never an event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.counters import Brought as Brought
from jaxscope.schema.counters import Called as Called
from jaxscope.schema.counters import MissesCounted as MissesCounted
from jaxscope.schema.counters import Step as Step
from jaxscope.schema.event import Event as Event
from jaxscope.schema.keys import Captured, Device, Frame, Key, Memory, OutLeaf, Sharding
from jaxscope.schema.target_events import Retargeted as Retargeted
from jaxscope.schema.target_events import TargetCompiled as TargetCompiled
from jaxscope.schema.target_events import TargetCompiling as TargetCompiling
from jaxscope.schema.target_events import TargetsWanted as TargetsWanted
from jaxscope.schema.transfers import Transferred as Transferred

SCHEMA = 1
MAIN = ("run", "record", "env")  # RunStarted.how of the process that the user started

TRACE, LOWER, COMPILE = "trace", "lower", "compile"


class RunStarted(Event, frozen=True, tag="RunStarted"):
    """A process began recording. ``how``: run, record, env, child (spawned) or fork.

    ``transfers``: whether what crosses between host and devices is counted. ``machine``, ``locked``: where it writes, and
    whether it holds a lock on its log meanwhile (log.alive). ``steps``: how many steps its parent had counted when it was forked; a forked
    process goes on counting from there.
    """

    schema: int = SCHEMA
    name: str = ""
    how: str = "run"
    argv: list[str] = []
    cwd: str = ""
    python: str = ""
    jax: str | None = None
    jaxlib: str | None = None
    jaxscope: str = ""
    parent: int | None = None
    ir: str | None = None
    transfers: bool | None = None
    machine: str | None = None
    locked: bool = False
    steps: int | None = None


class BackendSeen(Event, frozen=True, tag="BackendSeen"):
    """Written when the program itself has started its backend: recording never starts one.

    ``in_vain``: packages of accelerators that JAX tried and that found none: the backend is the CPU's, and
    nothing told JAX which one to start (JAX_PLATFORMS).
    """

    platform: str = ""
    platform_version: str | None = None
    devices: list[Device] = []
    process_count: int | None = None
    in_vain: list[str] = []


class FunctionSeen(Event, frozen=True, tag="FunctionSeen"):
    """A function met for the first time.

    ``function`` is its id: qualified name, file and first line, then the wrappers around it.
    ``form``: def, lambda, partial, method, callable, primitive. ``chain`` names every layer from the
    object given to jit to the user's function.
    """

    function: str = ""
    name: str = ""
    qualname: str = ""
    module: str | None = None
    file: str | None = None
    line: int | None = None
    form: str = "def"
    wrappers: list[str] = []
    library: bool = False
    eager: bool = False
    signature: str | None = None


class ContextSeen(Event, frozen=True, tag="ContextSeen"):
    """One set of trace-context settings, met for the first time; keys refer to it by ``context``."""

    context: str = ""
    settings: dict[str, str] = {}


class Missed(Event, frozen=True, tag="Missed"):
    """A call that left JAX's fast path, or asked for a trace ahead of time. ``call`` numbers it.

    ``entry``: call, aot (``.trace``, ``.lower``, ``.eval_shape``), transform (under grad, vmap, ...),
    nested (inside another trace). ``site`` is the user's line; ``stack`` the user frames above it,
    innermost first; ``column`` is where the expression begins on the line of ``site`` that made the call, in bytes,
    which tells two calls on one line apart. ``key`` is None where only the compiled text is known. ``cleared`` counts the times
    JAX's caches were cleared so far; ``full`` has (entries, capacity) of its bounded caches that are full,
    or nearly. ``made`` are lines of the user's that made arrays among the arguments, ``made_by`` the index
    of its line for each of ``key.arguments``, -1 where it is not known. ``into_library``: which of ``site`` (0) and
    ``stack`` (1, ...) is the outermost line that called a library or JAX, and ``library`` that one's name; of
    functions that are not the user's.
    ``main_step``: the step of the program's first process at this moment, in a process that it started.
    """

    call: int = 0
    function: str = ""
    entry: str = "call"
    site: Frame | None = None
    stack: list[Frame] = []
    key: Key | None = None
    step: int | None = None
    inside: int | None = None
    effects: list[str] | None = []
    cleared: int | None = 0
    full: dict[str, tuple[int, int]] | None = {}
    made: list[Frame] = []
    made_by: list[int] = []
    into_library: int | None = None
    library: str | None = None
    column: int | None = None
    main_step: int | None = None


class PhaseBegan(Event, frozen=True, tag="PhaseBegan"):
    """``phase`` (trace, lower or compile) began for ``call``: what is being done *now*.

    ``later``: what was traced or lowered ahead of time goes on, perhaps in a later step.
    """

    call: int = 0
    phase: str = TRACE
    later: bool = False


class Traced(Event, frozen=True, tag="Traced"):
    """The Python body ran. ``seconds`` is None for a trace inside another trace.

    Where JAX does not let us see the end of a nested trace (Degraded: nested_end), it may have raised.
    """

    call: int = 0
    seconds: float | None = None
    out_tree: str | None = None
    out: list[OutLeaf] | None = []
    captured: list[Captured] | None = []
    equations: int | None = None
    effects: list[str] | None = []


class TraceReused(Event, frozen=True, tag="TraceReused"):
    """The tracing phase found an earlier trace: the Python body did not run."""

    call: int = 0
    seconds: float | None = None


class Lowered(Event, frozen=True, tag="Lowered"):
    """StableHLO was made. ``program`` names it together with the compile options and the target.

    ``asked`` are the shardings that jit was given; ``asked_in`` and ``asked_out`` are indices into it, one for
    each flat argument and result, None where nothing was asked; all empty where nothing at all was.
    """

    call: int = 0
    seconds: float | None = None
    program: str | None = None
    module: str | None = None
    donated: list[str] | None = []  # argument paths
    num_partitions: int | None = None
    platforms: list[str] = []
    asked: list[Sharding] | None = []
    asked_in: list[int | None] | None = []
    asked_out: list[int | None] | None = []


class Compiled(Event, frozen=True, tag="Compiled"):
    """An executable is there. ``persistent_cache``: hit, miss or off; the reason where one is known.

    ``in_sharding_of``: per flat argument of the call an index into ``in_shardings``, None for one that is
    dropped; empty for one device, where there is nothing to choose.
    """

    call: int = 0
    seconds: float | None = None
    program: str | None = None
    module: str | None = None
    persistent_cache: str | None = None
    persistent_cache_reason: str | None = None
    out_shardings: list[Sharding] = []
    out_sharding_of: list[int | None] = []  # per result, an index into out_shardings
    in_shardings: list[Sharding] = []
    in_sharding_of: list[int | None] = []
    out_committed: bool | None = None
    dropped_arguments: list[int] | None = []  # flat positions XLA never reads
    memory: Memory | None = None
    cost: dict[str, float] = {}
    fingerprint: str | None = None
    devices: str | None = None


class PhaseFailed(Event, frozen=True, tag="PhaseFailed"):
    """``phase`` ended with an exception of the program's own (or of JAX)."""

    call: int = 0
    phase: str = TRACE
    seconds: float | None = None


class ProgramText(Event, frozen=True, tag="ProgramText"):
    """A text of a program is stored under ``blob``. ``stage``: stablehlo or hlo."""

    program: str = ""
    stage: str = ""
    blob: str = ""
    bytes: int = 0


class Watched(Event, frozen=True, tag="Watched"):
    """A function is being watched: its calls are counted."""

    function: str = ""
    step: bool = False


class ArgumentFate(Event, frozen=True, tag="ArgumentFate"):
    """What had become of a call's array arguments when we next looked.

    ``deleted``: donated and consumed; ``gone``: nobody holds it any more; ``kept``: alive.
    ``seen``: next_call, next_event or exit.
    """

    call: int = 0
    seen: str = ""
    deleted: list[str] = []
    gone: list[str] = []
    kept: list[str] = []


class ArraysSeen(Event, frozen=True, tag="ArraysSeen"):
    """The live arrays of this process at one moment, in groups; metadata only.

    ``why``: step (a step ended), growth, miss (no steps are known), asked, exit, exhausted (the program
    died for want of memory; ``error`` is what it was told, ``site`` the user's line that asked). ``step``
    ended last. ``addressable`` lists the devices of this process: nothing is claimed of others.
    ``host_limit``: bytes of memory this process may have, where devices of a CPU take theirs from it.
    ``parts``: further live arrays, which nothing leads to and which lie in the memory of those in the groups:
    what JAX keeps of the parts that were asked of them. ``overlap``: bytes by device that two groups' arrays
    count, where an array lies in another's memory on some of its devices and in its own on others.
    ``cut``: not everything reachable was looked at. ``cost_seconds`` is what the look took.
    """

    why: str = ""
    step: int | None = None
    count: int = 0
    shardings: list[Sharding] = []
    groups: list[ArrayGroup] = []
    addressable: str | None = None
    memory: list[DeviceMemory] = []
    host_limit: int | None = None
    cut: bool = False
    cost_seconds: float | None = None
    error: str | None = None
    site: Frame | None = None
    parts: int = 0
    overlap: dict[int, int] = {}


class Degraded(Event, frozen=True, tag="Degraded"):
    """A part of the recording is not available, and why. Written once a part."""

    seam: str = ""
    reason: str = ""


class Died(Event, frozen=True, tag="Died"):
    """An exception that nobody caught ended the program. ``stack``: the user's frames, innermost first."""

    error: str = ""
    message: str = ""
    stack: list[Frame] = []


class RunEnded(Event, frozen=True, tag="RunEnded"):
    """The process stopped recording in an orderly way. ``how``: exit or stop."""

    how: str = "exit"


class RecordingStopped(Event, frozen=True, tag="RecordingStopped"):
    """Nothing of this process is recorded any more, though it goes on: its files cannot be written, or are too large."""

    reason: str = ""


class ProgramExited(Event, frozen=True, tag="ProgramExited"):
    """Written by the keeper: the program's end as the operating system saw it."""

    program_pid: int = 0
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None


class CaptureChanged(Event, frozen=True, tag="CaptureChanged"):
    """What a trace of a watched function read from outside is another value now, and JAX did not trace again.

    Attributes:
      call: the trace that took it in.
      name: as the code spells it (``scale``, ``config['lr']``, ``self.width``).
      where: closure, global or static (of a static argument), with "of g" where a function g that is called
        reads it.
      how: rebound, or in place (the contents of a NumPy array).
      before, after: the values in few words.
      read: the line that reads it.
      site: the user's line at which it was seen: the call that was served with the old value, where ``seen`` is
        call; else the end of a step. None at exit.
      seen: call, step or exit.
      calls: of the function so far.
      certain: every run of the function comes past the line, or the array is a constant of the trace.
    """

    function: str = ""
    call: int = 0
    name: str = ""
    where: str = ""
    how: str = ""
    before: str | None = None
    after: str | None = None
    read: Frame | None = None
    site: Frame | None = None
    seen: str = ""
    step: int | None = None
    calls: int | None = None
    certain: bool = False


class CaptureRenewed(Event, frozen=True, tag="CaptureRenewed"):
    """Trace ``by`` of a watched function took in anew what had changed since trace ``call``."""

    function: str = ""
    call: int = 0
    by: int = 0
    calls: int | None = None


class StderrWatched(Event, frozen=True, tag="StderrWatched"):
    """Written by whoever passes the program's stderr on: from now on it hears what XLA prints there.

    ``muted``: the setting that keeps XLA from printing warnings, where the environment has one.
    """

    muted: str | None = None


class CompilerWarned(Event, frozen=True, tag="CompilerWarned"):
    """A warning that XLA printed on stderr, as printed. ``t_ns``: when, by its own stamp where it has one.

    ``program_pid``: the process that printed it, where its thread was still there to be asked.
    """

    text: str = ""
    program_pid: int | None = None


class SourceSeen(Event, frozen=True, tag="SourceSeen"):
    """A file of the user's that a function or a call stands in: ``sha256`` of its content, in hexadecimal.

    Written once a file. A reader elsewhere shows lines of a file only where its content is this one.
    """

    file: str = ""
    sha256: str = ""


class Unknown(msgspec.Struct, frozen=True):
    """An event of a kind this version does not know, kept as it was; a long one without its contents."""

    kind: str
    raw: dict[str, Any]

    @property
    def t_ns(self) -> int:
        t = self.raw.get("t_ns", 0)
        return t if isinstance(t, int) else 0

    @property
    def pid(self) -> int:
        p = self.raw.get("pid", 0)
        return p if isinstance(p, int) else 0


AnyEvent = (
    RunStarted | BackendSeen | FunctionSeen | ContextSeen | Missed | PhaseBegan | Traced | TraceReused
    | Lowered | Compiled | PhaseFailed | ProgramText | MissesCounted | Step | Watched | Called | Brought
    | ArgumentFate | Degraded | Died | RunEnded | ProgramExited | CaptureChanged | CaptureRenewed | ArraysSeen
    | StderrWatched | CompilerWarned | RecordingStopped | Transferred | TargetsWanted | Retargeted | TargetCompiling
    | TargetCompiled | SourceSeen
)  # fmt: skip
