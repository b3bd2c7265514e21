"""All events of a log: a tagged union of facts, plus Unknown for kinds written by a newer version.

Every field has a default, so that a log of an older jaxscope decodes; fields that a newer one added are
ignored. A field that could not be read is None, never 0 or an empty list. What can be derived (causes,
counts, findings) is never an event.
"""

from __future__ import annotations

from typing import Any

import msgspec

from jaxscope.schema.arrays import ArrayGroup, DeviceMemory
from jaxscope.schema.counters import Brought as Brought
from jaxscope.schema.counters import Called as Called
from jaxscope.schema.counters import MissesCounted as MissesCounted
from jaxscope.schema.counters import Step as Step
from jaxscope.schema.counters import StepTimed as StepTimed
from jaxscope.schema.event import Event as Event
from jaxscope.schema.keys import Captured, Device, Frame, Key, Memory, OutLeaf, Sharding
from jaxscope.schema.profiles import Profiled as Profiled
from jaxscope.schema.target_events import Retargeted as Retargeted
from jaxscope.schema.target_events import TargetCompiled as TargetCompiled
from jaxscope.schema.target_events import TargetCompiling as TargetCompiling
from jaxscope.schema.target_events import TargetsWanted as TargetsWanted
from jaxscope.schema.transfers import Transferred as Transferred

SCHEMA = 1
MAIN = ("run", "record", "env")  # RunStarted.how of the process that the user started

TRACE, LOWER, COMPILE = "trace", "lower", "compile"


class RunStarted(Event, frozen=True, tag="RunStarted"):
    """A process began recording.

    Attributes:
      how: run, record, env, child (spawned) or fork.
      transfers: whether transfers between host and devices are counted.
      machine: the machine that writes the log.
      locked: whether the process holds a lock on its log while it records (log.liveness).
      steps: in a forked process, the number of steps that its parent had counted; the process continues
        from this number.
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
    """The program started its backend; recording never starts one.

    Attributes:
      in_vain: accelerator plugins that JAX tried before it used the CPU, because JAX_PLATFORMS was not set.
    """

    platform: str = ""
    platform_version: str | None = None
    devices: list[Device] = []
    process_count: int | None = None
    in_vain: list[str] = []


class FunctionSeen(Event, frozen=True, tag="FunctionSeen"):
    """A function was recorded for the first time.

    Attributes:
      function: its id: qualified name, file and first line, then the wrappers around it.
      form: def, lambda, partial, method, callable or primitive.
      wrappers: names of the layers around the user's function, outermost first.
      captures: the functions, classes and callable objects that it captures, as ``loss=l2`` (at most 8).
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
    captures: list[str] = []


class ContextSeen(Event, frozen=True, tag="ContextSeen"):
    """A new set of trace-context settings; keys refer to it by ``context``."""

    context: str = ""
    settings: dict[str, str] = {}


class Missed(Event, frozen=True, tag="Missed"):
    """A call that left JAX's fast path, or requested a trace ahead of time.

    Attributes:
      call: its number in the process.
      entry: call, aot (``.trace``, ``.lower``, ``.eval_shape``), transform (under grad, vmap, ...) or
        nested (inside another trace).
      site: the user's line that made the call.
      stack: the user's frames above ``site``, innermost first.
      column: where the expression begins on the line of ``site``, in bytes.
      key: the cache key; None: only the compiled text is known.
      inside: the call during whose trace this one was made.
      cleared: how often JAX's caches were cleared so far.
      full: (entries, capacity) of the bounded caches that are nearly full.
      made: the user's lines that created arrays among the arguments.
      made_by: for each of ``key.arguments`` an index into ``made``, -1 if unknown.
      into_library: if the function is not the user's, the outermost line that called a library or JAX: 0
        for ``site``, 1 and more for ``stack``.
      library: the name of that library.
      main_step: in a process that the program started, the step of the program's first process.
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
    """``phase`` (trace, lower or compile) of ``call`` began.

    Attributes:
      later: whether the call was traced or lowered ahead of time, perhaps in an earlier step.
    """

    call: int = 0
    phase: str = TRACE
    later: bool = False


class Traced(Event, frozen=True, tag="Traced"):
    """The Python body of a function was traced. ``seconds`` is None for a trace inside another trace.

    If the ends of nested traces are unknown (Degraded: nested_end), a nested trace may have raised instead.

    Attributes:
      call: number of the call in its process.
      out_tree: the tree definition of the result, as text.
      out: the leaves of the result; None: unknown.
      captured: arrays from outside that became constants; None: unknown.
      equations: number of equations of the jaxpr; None: unknown.
      effects: names of the jaxpr's effects; None: unknown.
      draws: paths of the arguments that are random keys and from which the function draws without combining
        them with another argument; None: unknown.
      draws_alike: paths of the keys that a shard_map uses unsplit, so that all devices draw equal numbers,
        and combines with arrays that it splits; None: unknown.
    """

    call: int = 0
    seconds: float | None = None
    out_tree: str | None = None
    out: list[OutLeaf] | None = []
    captured: list[Captured] | None = []
    equations: int | None = None
    effects: list[str] | None = []
    draws: list[str] | None = None
    draws_alike: list[str] | None = None


class TraceReused(Event, frozen=True, tag="TraceReused"):
    """The tracing phase used an earlier trace: the Python body did not run."""

    call: int = 0
    seconds: float | None = None


class Lowered(Event, frozen=True, tag="Lowered"):
    """A function was lowered to StableHLO.

    Attributes:
      program: id of the text together with the compile options and the target.
      donated: paths of the donated arguments.
      asked: the shardings in jit's in_shardings and out_shardings; empty: there are none.
      asked_in, asked_out: for each flat argument and result an index into ``asked``; None: no sharding was
        requested.
    """

    call: int = 0
    seconds: float | None = None
    program: str | None = None
    module: str | None = None
    donated: list[str] | None = []
    num_partitions: int | None = None
    platforms: list[str] = []
    asked: list[Sharding] | None = []
    asked_in: list[int | None] | None = []
    asked_out: list[int | None] | None = []


class Compiled(Event, frozen=True, tag="Compiled"):
    """A program was compiled, or loaded from the persistent cache.

    Attributes:
      persistent_cache: hit, miss or off; ``persistent_cache_reason``: why, if known.
      out_sharding_of: for each result an index into ``out_shardings``.
      in_sharding_of: for each flat argument an index into ``in_shardings``, None for a dropped argument;
        empty for a program on one device.
      dropped_arguments: flat positions of arguments that XLA never reads.
    """

    call: int = 0
    seconds: float | None = None
    program: str | None = None
    module: str | None = None
    persistent_cache: str | None = None
    persistent_cache_reason: str | None = None
    out_shardings: list[Sharding] = []
    out_sharding_of: list[int | None] = []
    in_shardings: list[Sharding] = []
    in_sharding_of: list[int | None] = []
    out_committed: bool | None = None
    dropped_arguments: list[int] | None = []
    memory: Memory | None = None
    cost: dict[str, float] = {}
    fingerprint: str | None = None
    devices: str | None = None


class MemoryRead(Event, frozen=True, tag="MemoryRead"):
    """The memory of the program that ``call`` compiled, where it was not known yet
    when Compiled was written.
    """

    call: int = 0
    memory: Memory | None = None


class PhaseFailed(Event, frozen=True, tag="PhaseFailed"):
    """``phase`` ended with an exception of the program or of JAX.

    Attributes:
      call: number of the call in its process.
      phase: trace, lower or compile.
      seconds: seconds until the exception; None: unknown.
    """

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
    """A function is watched: its calls are counted. ``step``: its calls are the steps."""

    function: str = ""
    step: bool = False


class ArgumentFate(Event, frozen=True, tag="ArgumentFate"):
    """What became of a call's array arguments, by path.

    Attributes:
      seen: when it was checked: next_call, next_event or exit.
      deleted: paths of arguments that were donated and deleted.
      gone: paths of arguments to which nothing refers any more.
      kept: paths of arguments that are still alive.
    """

    call: int = 0
    seen: str = ""
    deleted: list[str] = []
    gone: list[str] = []
    kept: list[str] = []


class ArraysSeen(Event, frozen=True, tag="ArraysSeen"):
    """A snapshot of the live arrays of this process, in groups; metadata only.

    Attributes:
      why: step (a step ended), growth (there are more arrays), miss and time (at a compilation, at a
        transfer, where no steps are known), asked (requested by the user), exit, or exhausted (memory ran
        out: ``error`` is the message, ``site`` the user's line).
      step: the step that ended last.
      addressable: the devices of this process; other devices are unknown.
      host_limit: bytes of memory that this process may use, if its devices are CPU devices.
      cut: whether the search for names stopped at a limit.
      cost_seconds: seconds that the snapshot took.
      parts: number of further live arrays without a name that use the memory of arrays in the groups:
        shards that JAX keeps.
      overlap: bytes, by device, that two groups both count, because an array shares the memory of another
        array on some devices only.
      lengths: the number of items of each container that leads to arrays, by path. For the paths in the
        list ``bounded``, it is the largest number that the container may have (``deque(maxlen=...)``,
        ``lru_cache(maxsize=...)``).
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
    lengths: dict[str, int] = {}
    bounded: list[str] = []


class Degraded(Event, frozen=True, tag="Degraded"):
    """A part of the recording is not available, and why. Written once for each part."""

    seam: str = ""
    reason: str = ""


class Died(Event, frozen=True, tag="Died"):
    """An uncaught exception ended the program.

    Attributes:
      error: name of its class.
      stack: the user's frames, innermost first.
      library: the package, other than JAX, whose line made the call that failed; None: the user's line made
        it, or this is unknown.
    """

    error: str = ""
    message: str = ""
    stack: list[Frame] = []
    library: str | None = None


class RunEnded(Event, frozen=True, tag="RunEnded"):
    """The process stopped recording in an orderly way. ``how``: exit or stop."""

    how: str = "exit"


class RecordingStopped(Event, frozen=True, tag="RecordingStopped"):
    """The recording of a process stopped, though the process goes on: its files are
    too large or cannot be written."""

    reason: str = ""


class ProgramExited(Event, frozen=True, tag="ProgramExited"):
    """The end of the program as the operating system reports it. Written by the keeper.

    Attributes:
      program_pid: the process id of the program's first process.
      exit_code, signal: one of the two is set; both None: unknown.
      seconds: wall time from its start to its end.
    """

    program_pid: int = 0
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None


class CaptureChanged(Event, frozen=True, tag="CaptureChanged"):
    """A value that the trace of a watched function captured has changed since, and JAX did not trace again.

    Attributes:
      call: the call that traced.
      name: the name of the value as it is in the code (``scale``, ``config['lr']``, ``self.width``).
      where: closure, global or static (of a static argument); "of g" is added
        where a called function g reads it.
      how: rebound, or in place (the contents of a NumPy array).
      before, after: the values, shortened.
      read: the line that reads it.
      site: the user's line at which it was noticed: the call that used the old value if ``seen`` is call, or
        the end of a step. None at exit.
      seen: when it was noticed: call, step or exit.
      calls: number of calls of the function so far.
      certain: whether every run of the function executes the line that reads it, or the array is a constant
        of the trace.
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
    """Trace ``by`` of a watched function captured the values that had changed since trace ``call``."""

    function: str = ""
    call: int = 0
    by: int = 0
    calls: int | None = None


class StderrWatched(Event, frozen=True, tag="StderrWatched"):
    """From now on XLA's warnings on the program's stderr are recorded.

    Attributes:
      muted: the environment variable that keeps XLA from printing warnings, if it is set.
    """

    muted: str | None = None


class CompilerWarned(Event, frozen=True, tag="CompilerWarned"):
    """A warning that XLA printed on stderr. ``t_ns`` is the time in its own stamp, if it has one.

    Attributes:
      program_pid: the process that printed it; None if its thread had ended.
    """

    text: str = ""
    program_pid: int | None = None


class MainThreadSeen(Event, frozen=True, tag="MainThreadSeen"):
    """Where the main thread of a process of a job is, while nothing else is recorded.

    Attributes:
      blocked: whether the thread waits: it has not run since ``since_ns``. False: it runs (again).
      stack: the user's frames, innermost first.
    """

    blocked: bool = False
    since_ns: int = 0
    stack: list[Frame] = []


class RankGroup(msgspec.Struct, frozen=True):
    """Ranks that compiled the same. ``program`` None: nothing at that position yet; ``function``: its id."""

    ranks: list[int] = []
    program: str | None = None
    function: str | None = None


class RanksCompiled(Event, frozen=True, tag="RanksCompiled"):
    """What the ranks of the job had compiled, as they published it; written by rank 0 where they do not
    agree.

    Attributes:
      position: the position among the programs for the devices of all processes, from 0.
      left: the ranks that had left the program.
    """

    position: int = 0
    groups: list[RankGroup] = []
    left: list[int] = []


class SourceSeen(Event, frozen=True, tag="SourceSeen"):
    """A source file of the user, written once.

    Attributes:
      sha256: checksum of its content, in hexadecimal. On another machine, lines of a file are shown only if
        its content has this checksum.
      text: the source of a notebook cell, which is in no file; None: the source is in a file, or is left
        out.
    """

    file: str = ""
    sha256: str = ""
    text: str | None = None


class Unknown(msgspec.Struct, frozen=True):
    """An event of a kind that this version does not know, unchanged; a long one without its contents."""

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
    RunStarted
    | BackendSeen
    | FunctionSeen
    | ContextSeen
    | Missed
    | PhaseBegan
    | Traced
    | TraceReused
    | Lowered
    | Compiled
    | MemoryRead
    | PhaseFailed
    | ProgramText
    | MissesCounted
    | Step
    | StepTimed
    | Watched
    | Called
    | Brought
    | ArgumentFate
    | Degraded
    | Died
    | RunEnded
    | ProgramExited
    | CaptureChanged
    | CaptureRenewed
    | ArraysSeen
    | StderrWatched
    | CompilerWarned
    | RecordingStopped
    | Transferred
    | TargetsWanted
    | Retargeted
    | TargetCompiling
    | TargetCompiled
    | SourceSeen
    | MainThreadSeen
    | RanksCompiled
    | Profiled
)
