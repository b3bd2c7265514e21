"""The events in the logs of a run, one type for each kind of event.

``AnyEvent`` is the union of all types. An event of a kind that this version does not know is read as
``Unknown``. Every field has a default, so that the log of an older jaxscope can be decoded. Fields that a
newer version added are ignored. A field that could not be read is usually None, not 0 or an empty list.
Causes of recompiles and findings are not events, because they can be derived from events.
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
from jaxscope.schema.keys import Captured, Device, DifferingResult, Frame, Key, Memory, OutLeaf, Sharding
from jaxscope.schema.line_times import LineTimes as LineTimes
from jaxscope.schema.profiles import Profiled as Profiled
from jaxscope.schema.target_events import Retargeted as Retargeted
from jaxscope.schema.target_events import TargetCompiled as TargetCompiled
from jaxscope.schema.target_events import TargetCompiling as TargetCompiling
from jaxscope.schema.target_events import TargetsWanted as TargetsWanted
from jaxscope.schema.transfers import Rounded as Rounded
from jaxscope.schema.transfers import Transferred as Transferred

SCHEMA = 1
MAIN = ("run", "record", "env")  # values of RunStarted.how for the process that the user started

TRACE, LOWER, COMPILE = "trace", "lower", "compile"


class RunStarted(Event, frozen=True, tag="RunStarted"):
    """A process began recording.

    Attributes:
      schema: version of the format of the log.
      name: name of the run directory.
      how: what started the recording: run (``jaxscope run``), record (``jaxscope.record()``), env (the
        environment variable JAXSCOPE=record), child (a process that the program spawned) or fork.
      argv, cwd: command line (with secrets removed) and working directory.
      python, jax, jaxlib, jaxscope: versions.
      parent: id of the parent process.
      ir: which texts of compiled programs are stored: all, stablehlo, hlo, stats (no text, only figures of
        the compiler) or none.
      transfers: whether copies between host and devices are counted; None: unknown.
      machine: id of the machine that writes the log.
      locked: whether the process holds a lock on its log while it records. The lock shows readers that the
        process is alive.
      steps: in a forked process, the number of steps that its parent had counted; the process continues to
        count from there. None: not forked, or none were counted.
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
    """The program initialized JAX's backend. jaxscope never initializes it.

    Attributes:
      platform, platform_version: name and version of the backend's platform: ``cpu``, ``tpu``, ``gpu``.
      devices: the devices of all processes.
      process_count: number of processes of the JAX program.
      in_vain: accelerator plugins that JAX tried without success before it used the CPU, because
        JAX_PLATFORMS was not set.
    """

    platform: str = ""
    platform_version: str | None = None
    devices: list[Device] = []
    process_count: int | None = None
    in_vain: list[str] = []


class FunctionSeen(Event, frozen=True, tag="FunctionSeen"):
    """A function was recorded for the first time. Later events refer to it by its id.

    Attributes:
      function: the id: usually qualified name, file and first line, then the wrappers around the function.
      name, qualname, module: names of the function in Python.
      file, line: where the function is defined; None: unknown.
      form: def, lambda, partial, method, callable (an object with ``__call__``) or primitive.
      wrappers: names of the layers around the user's function, outermost first: ``["jax.grad"]``.
      library: whether the function belongs to JAX or a library, not to the user; False if ``eager`` is True.
      eager: whether it is an operation that runs outside jit (``jnp.add`` in plain Python code).
      signature: the parameters as text; None: unknown.
      captures: the functions, classes and callable objects that the function takes from its closure or gets
        from a partial or a method's object, as ``loss=l2`` (at most 8).
      captured_code: names and lines of the functions in these values, and of those in the closures of these
        functions, as a text of limited length; empty if there are none.
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
    captured_code: str = ""  # functions that are otherwise alike are sorted by this text


class ContextSeen(Event, frozen=True, tag="ContextSeen"):
    """The settings of JAX that are part of its cache keys (precision, x64, mesh, ...) have values that no
    earlier ContextSeen event of the process has.

    Attributes:
      context: an id of these values. The keys of later calls refer to it (``Key.context``).
      settings: name of a setting -> value as text.
    """

    context: str = ""
    settings: dict[str, str] = {}


class Missed(Event, frozen=True, tag="Missed"):
    """A call that missed JAX's C++ fast path, so that Python code of JAX ran. Or a trace, a lowering or a
    compilation that the program requested ahead of time.

    Attributes:
      call: number of the call in its process. The events of its trace, lowering and compilation have the same
        number.
      function: id of the function.
      entry: call (an ordinary call), aot (ahead of time: ``.trace``, ``.lower``, ``.eval_shape``), transform
        (under grad, vmap, ...) or nested (inside another trace).
      site: the user's line that made the call, or if there is none, a line of an installed package; None:
        unknown.
      stack: the user's frames that led to ``site``, innermost first, at most 11; frames of installed packages
        if ``site`` is in one.
      column: where the expression of the call begins on the line of ``site``, in bytes; None: unknown.
      key: the cache key; None: it could not be read.
      step: the step of the training loop; None: steps are not counted.
      inside: number of the call during whose trace this call was made; None: not inside a trace.
      effects: names of the effects of the function's jaxpr; None: unknown.
      cleared: how often jaxscope had found JAX's caches cleared by then; None: unknown.
      full: (number of entries, capacity) of JAX's bounded caches that are nearly full, by name of the cache
        (``schema.causes.CACHES``). None: unknown.
      made: the user's lines that created arrays among the arguments, for an ordinary call of a function of
        the user; else empty.
      made_by: for each of ``key.arguments``, the index in ``made`` of the line that created the array; -1:
        unknown. Empty: unknown for all.
      into_library: position of the user's line that called a library which then called JAX (the outermost of
        several): 0 is ``site``, n is ``stack[n - 1]``. If no line did, 0. None: the function is the user's
        own, or could not be read.
      library: the name of that library, or of the installed package that ``site`` called; None: neither, or
        the function is the user's own.
      main_step: in a process that the program started, the step of the program's first process; else None.
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
    """JAX began to trace, lower or compile.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      phase: trace, lower or compile.
      later: True if the phase does not run during the Python call that traced the function: ``.lower()`` or
        ``.compile()`` of a trace made ahead of time, perhaps in an earlier step.
    """

    call: int = 0
    phase: str = TRACE
    later: bool = False


class Traced(Event, frozen=True, tag="Traced"):
    """The Python body of a function was traced. If the trace raised an exception, the log has PhaseFailed
    instead.

    JAX does not announce the end of a trace inside another trace, or under grad or vmap. Of such a trace
    only ``call`` is known: ``out``, ``captured`` and ``effects`` are then empty, not None. If the log has a
    Degraded event for ``nested_end``, such a trace has this event even if it raised an exception.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      seconds: seconds of tracing; None: unknown, as for a trace inside another trace.
      out_tree: the tree definition of the result, as text.
      out: the leaves of the result; None: unknown.
      captured: arrays from outside the function that became constants of the trace, the largest first, at
        most 200; None: unknown.
      equations: number of equations of the jaxpr, without those of inner jaxprs; None: unknown.
      effects: names of the jaxpr's effects; None: unknown.
      draws: paths of arguments that are random keys, from which the function draws random numbers without
        combining the key with another argument; None: unknown.
      draws_alike: paths of random keys from which every device draws the same numbers, because a shard_map
        passes the key unsplit to all devices. The shard_map combines the numbers with arrays that it splits.
        None: unknown.
      seeded_noise: whether the function draws the same random numbers in each call, from a seed that is
        written in its code, and combines them element by element with values that depend on its arguments;
        None: unknown.
      differing: results of a shard_map that are declared equal along some mesh axes, but differ along them;
        None: unknown.
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
    seeded_noise: bool | None = None
    differing: list[DifferingResult] | None = None


class TraceReused(Event, frozen=True, tag="TraceReused"):
    """JAX took an earlier trace from its cache: the Python body of the function did not run again.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      seconds: seconds that JAX took to find the earlier trace; None: unknown.
    """

    call: int = 0
    seconds: float | None = None


class Lowered(Event, frozen=True, tag="Lowered"):
    """A function was lowered to StableHLO.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      seconds: seconds of lowering.
      program: id of the program: a hash of the StableHLO text (without source locations), the compile
        options, the platforms and the number of devices. None: unknown, or texts are not read (``ir`` of
        RunStarted is none).
      module: name of the MLIR module: ``jit_train_step``; None: unknown.
      donated: paths of the donated arguments; None: unknown.
      num_partitions: number of devices that the program runs on; None: unknown.
      platforms: the platforms for which the program is lowered: ``["tpu"]``.
      asked: the different shardings that the user gave to jit as in_shardings and out_shardings; empty: there
        are none; None: unknown.
      asked_in, asked_out: for each flat argument, and for each flat result, an index into ``asked``, or None
        if the user gave no sharding for it. Empty if ``asked`` is empty. None instead of a list: unknown.
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
    """A program was compiled, or loaded from JAX's persistent compilation cache.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      seconds: seconds of compilation, or of loading.
      program: id of the program, as in the Lowered event of the call; None: unknown.
      module: name of the HLO module: ``jit_train_step``; None: unknown.
      persistent_cache: hit, miss or off; None: unknown.
      persistent_cache_reason: why the cache is off, or why the program was not stored; None: unknown, or
        there is no special reason.
      out_shardings, out_sharding_of: the different shardings of the results; for each flat result an index
        into this list. Empty: unknown, or no results.
      in_shardings, in_sharding_of: the different shardings of the arguments; for each flat argument an index
        into this list (None for a dropped argument). Empty: unknown, or the program runs on one device.
      out_committed: whether the results are committed to their devices; None: unknown.
      dropped_arguments: positions of the flat arguments that JAX does not pass to the program, because the
        program does not use them; None: unknown.
      memory: the memory that the program needs, according to the compiler; None: unknown, or a later
        MemoryRead event has it.
      cost: XLA's cost analysis: ``{"flops": ..., "bytes accessed": ...}``; empty: unknown.
      devices: ids of the devices that the program runs on, as ranges: ``"0-3,8"``; None: unknown.
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
    devices: str | None = None


class MemoryRead(Event, frozen=True, tag="MemoryRead"):
    """The memory that a compiled program needs. This event is written if the memory was not known yet when
    the Compiled event was written. Both events have the same ``call``, the number of the call that compiled
    the program."""

    call: int = 0
    memory: Memory | None = None


class PhaseFailed(Event, frozen=True, tag="PhaseFailed"):
    """A trace, lowering or compilation ended with an exception of the program or of JAX.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      phase: trace, lower or compile.
      seconds: seconds until the exception; None: unknown.
    """

    call: int = 0
    phase: str = TRACE
    seconds: float | None = None


class ProgramText(Event, frozen=True, tag="ProgramText"):
    """A text of a program was stored as a file in the run directory.

    Attributes:
      program: id of the program, as in its Lowered event.
      stage: stablehlo (the lowered text) or hlo (the compiled text).
      blob: the hash of the text, which names the file: ``blobs/<hash>.zst``.
      bytes: size of the text in bytes.
    """

    program: str = ""
    stage: str = ""
    blob: str = ""
    bytes: int = 0


class Watched(Event, frozen=True, tag="Watched"):
    """A function is watched, which means that its calls are counted.

    Attributes:
      function: id of the function.
      step: whether each call counts as a step of the training loop (``@jaxscope.watch(step=True)``,
        ``--step-function``).
    """

    function: str = ""
    step: bool = False


class ArgumentFate(Event, frozen=True, tag="ArgumentFate"):
    """Which array arguments of a call were still alive some time after the call. Reports use this event to
    find arguments that could be donated.

    Attributes:
      call: number of the call in its process; all events about one call have the same number.
      seen: when the arguments were checked: next_call (at a later call of a watched function or of
        ``jaxscope.step()``), next_event (at a later call that missed the fast path) or exit.
      deleted: paths of arguments that were deleted, as donation does.
      gone: paths of arguments that were released, because nothing refers to them any more.
      kept: paths of arguments that are still alive.
      twice: paths of arguments whose array the call also got at another path; None: unknown.
      twice_arrays: for each path in ``twice`` a number; equal numbers mean the same array. None: unknown.
    """

    call: int = 0
    seen: str = ""
    deleted: list[str] = []
    gone: list[str] = []
    kept: list[str] = []
    twice: list[str] | None = None
    twice_arrays: list[int] | None = None


class ArraysSeen(Event, frozen=True, tag="ArraysSeen"):
    """A snapshot: a list of all live ``jax.Array`` objects of this process, in groups (metadata only, no
    contents).

    Attributes:
      why: the occasion: step (a step ended), growth (there are more arrays), asked (requested by the user),
        exit (the recording ends) or exhausted (memory ran out). If steps are not counted, also miss (a call
        of the user's function missed JAX's fast path) and time (some time after the last snapshot: at a
        transfer, at a call of a library's function that missed the fast path, or at a sample of the stack).
      step: the step that ended last, 0 if none has; None: steps are not counted.
      count: number of live arrays in ``groups``.
      shardings: the shardings to which the groups refer.
      groups: the arrays, grouped by path (without one: by the line that created them) and by properties
        (shape, dtype, sharding, ...), the largest group first. If there are too many groups, the smallest
        are merged.
      addressable: ids of the devices of this process, as ranges: ``"0-3,8"``.
      memory: the figures of the allocator of each device that reports them.
      host_limit: bytes of host memory that this process may use, if JAX's CPU backend is initialized; None:
        the backend is not initialized, or there is no known limit.
      cut: whether the search for variables that lead to the arrays stopped at a limit.
      cost_seconds: CPU time that the snapshot took, in seconds, without garbage collections.
      error: the error message, if memory ran out; else None.
      site: the user's line at which memory ran out; None: memory did not run out, or the line is unknown.
      parts: number of further live arrays that no variable refers to, and whose memory counts with another
        array; they are in no group.
      overlap: device id -> bytes that are counted twice, because two arrays share memory on this device, but
        not on all devices.
      lengths: path of a container -> its number of items, for the largest containers that lead to arrays. If
        the path is in ``bounded``, it is the largest number of items that the container may have
        (``deque(maxlen=...)``, ``lru_cache(maxsize=...)``).
      bounded: the paths in ``lengths`` of containers with a largest number of items.
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
    """jaxscope could not record something in this process. The event is written once for each such thing.

    Attributes:
      seam: jaxscope's name for what is missing: ``listeners``, ``step_function``, ...
      reason: why it could not be recorded.
    """

    seam: str = ""
    reason: str = ""


class Died(Event, frozen=True, tag="Died"):
    """An uncaught exception ended the program.

    Attributes:
      error: the name of the exception's class.
      message: the text of the exception, shortened; empty if it cannot be read.
      stack: the user's frames, innermost first, at most 12; if there are none, frames of installed packages.
      library: the package whose code raised the exception. If JAX or Python's standard library raised it, the
        package that called JAX or the standard library. None: the user's code raised it or called them, or
        this is unknown.
    """

    error: str = ""
    message: str = ""
    stack: list[Frame] = []
    library: str | None = None


class RunEnded(Event, frozen=True, tag="RunEnded"):
    """The process stopped recording in an orderly way. ``how`` is exit (the process ended) or stop (the
    program ended the recording). Events may follow if a program itself ran its exit handlers before its
    end."""

    how: str = "exit"


class RecordingStopped(Event, frozen=True, tag="RecordingStopped"):
    """The recording of a process stopped, but the process continues. ``reason`` says why: the files of the
    recording are too large, or cannot be written."""

    reason: str = ""


class ProgramExited(Event, frozen=True, tag="ProgramExited"):
    """The end of the program as the operating system reports it, written by the process that waits for it.

    Attributes:
      program_pid: the process id of the program's first process.
      exit_code, signal: the exit code, or the number of the signal that ended the program. The other one is
        None. Both are None if the end is unknown.
      seconds: wall time from the start of the program to its end.
    """

    program_pid: int = 0
    exit_code: int | None = None
    signal: int | None = None
    seconds: float | None = None


class CaptureChanged(Event, frozen=True, tag="CaptureChanged"):
    """A value that a watched function (``@jaxscope.watch``) read during its trace has changed since. The
    compiled function still uses the old value, because the value (a closure variable, a global, an attribute
    of a static argument) is not part of JAX's cache key.

    Attributes:
      function: id of the function.
      call: number, in its process, of the call that traced the function.
      name: the value as the code writes it (``scale``, ``config['lr']``, ``self.width``).
      where: closure, global or static (an attribute of a static argument). In logs of older versions, `` of
        g`` follows if ``reader`` is g.
      how: rebound (the name refers to another object), or in place (the contents of a NumPy array changed).
      before, after: the value at the trace and now, as text, shortened. The texts may be equal, although the
        values differ. In logs of older versions, ``another`` then precedes the text in ``after``.
      read: the line that reads the value.
      site: the user's line at which jaxscope noticed the change: a call that used the old value if ``seen``
        is call, or the end of a step. None at exit.
      seen: when jaxscope noticed the change: call, step or exit.
      step: the training step at that time; None: steps are not counted.
      calls: number of calls of the function so far; None: unknown.
      certain: True if the function certainly used the value: each execution of the function reaches the line
        that reads it, or the array is a constant of the trace.
      reader: the function that reads the value, if the watched function calls it. None: the watched function
        itself, a value that is ``static``, or unknown.
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
    reader: str | None = None


class CaptureRenewed(Event, frozen=True, tag="CaptureRenewed"):
    """A watched function (``@jaxscope.watch``) was traced again, and now uses the new value of an earlier
    CaptureChanged event.

    Attributes:
      function: id of the function.
      call: number, in its process, of the call that made the old trace.
      by: number of the call that made the new trace.
      calls: number of calls of the function so far.
    """

    function: str = ""
    call: int = 0
    by: int = 0
    calls: int | None = None


class StderrWatched(Event, frozen=True, tag="StderrWatched"):
    """jaxscope began to record the warnings that XLA prints on the program's stderr: only those about
    involuntary rematerialization.

    Attributes:
      muted: the environment variable that keeps XLA from printing warnings: ``TF_CPP_MIN_LOG_LEVEL=2``; None:
        none does.
    """

    muted: str | None = None


class CompilerWarned(Event, frozen=True, tag="CompilerWarned"):
    """A warning about involuntary rematerialization that XLA printed on stderr. ``t_ns`` is the time that the
    warning states, or if that is not plausible, the time at which jaxscope read it.

    Attributes:
      text: the line that XLA printed, from its time stamp on.
      program_pid: the process that printed the warning; None: unknown, because the thread that printed it has
        ended.
    """

    text: str = ""
    program_pid: int | None = None


class MainThreadSeen(Event, frozen=True, tag="MainThreadSeen"):
    """Whether the main thread waits or runs, in one process of a job with several processes. The event is
    written when the thread has waited for a while, when it runs again after that, and when it runs for a
    while without any other event.

    Attributes:
      blocked: whether the thread waits; False: it runs.
      since_ns: a time in nanoseconds since the epoch. If the thread waits: when the wait began. If it runs
        again: when this was seen. If it runs without other events: when the last event was seen.
      stack: the user's frames, innermost first; empty if the thread has just begun to run again.
    """

    blocked: bool = False
    since_ns: int = 0
    stack: list[Frame] = []


class RankGroup(msgspec.Struct, frozen=True):
    """Some ranks (processes of a job) that compiled the same program at one position of their sequences of
    programs.

    Attributes:
      ranks: the numbers of these ranks.
      program: id of the program, or if it has callbacks or no known id, a checksum of its module's name.
        None: these ranks have not compiled a program at this position yet. Empty: unknown.
      function: id of the function that was compiled, perhaps shortened; None, empty: as for ``program``.
    """

    ranks: list[int] = []
    program: str | None = None
    function: str | None = None


class RanksCompiled(Event, frozen=True, tag="RanksCompiled"):
    """The ranks (processes of a job) disagree: they compiled different programs, some are far behind, or only
    some have ended. Rank 0 writes this event.

    Only programs that run on the devices of all processes are compared, in the order in which each rank
    compiled them.

    Attributes:
      position: the position at which the ranks disagree, in the sequence of programs of each rank, from 0.
      groups: the ranks, grouped by the program that they compiled at this position.
      left: the ranks whose Python program had ended by then.
    """

    position: int = 0
    groups: list[RankGroup] = []
    left: list[int] = []


class SourceSeen(Event, frozen=True, tag="SourceSeen"):
    """A source file, or a cell of a notebook, with a line that other events of the process refer to. Each
    process writes the event once for each file.

    Attributes:
      file: name of the file, or of the notebook cell.
      sha256: checksum of the file's content, in hexadecimal.
      text: the source of a notebook cell; None: the source is in a file, or was left out by ``--redact``.
      copy: the hash of the copy of the file in the run directory, ``blobs/<copy>.zst``, in which what looks
        like a secret is replaced by ``<left out>``. None: there is no copy, because the file is a library's
        or too long, or because of ``--redact``.
    """

    file: str = ""
    sha256: str = ""
    text: str | None = None
    copy: str | None = None


class Unknown(msgspec.Struct, frozen=True):
    """An event whose kind this version of jaxscope does not know, or whose fields it cannot read. ``raw`` is
    the decoded JSON object. For a very long line in the log, ``raw`` has at most the time and the process
    id."""

    kind: str
    raw: dict[str, Any]

    @property
    def t_ns(self) -> int:
        """Return when the event was written, in nanoseconds since the epoch; 0 if unknown."""
        t = self.raw.get("t_ns", 0)
        return t if isinstance(t, int) else 0

    @property
    def pid(self) -> int:
        """Return the id of the process that wrote the event; 0 if unknown."""
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
    | Rounded
    | Transferred
    | TargetsWanted
    | Retargeted
    | TargetCompiling
    | TargetCompiled
    | SourceSeen
    | MainThreadSeen
    | LineTimes
    | RanksCompiled
    | Profiled
)
