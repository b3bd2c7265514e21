"""The records of a run: processes, functions, compilations, programs.

``model.fold`` fills them from the events of the log; other modules must not change them. Much of their
content is kept as the events themselves (``schema.events``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from jaxscope.analysis.keys import Facts
from jaxscope.analysis.levels import reached_level
from jaxscope.model.intervals import MOST_SECONDS, OwnSeconds, UnionOfSpans
from jaxscope.schema import function_ids
from jaxscope.schema.causes import Cause
from jaxscope.schema.events import (
    COMPILE,
    LOWER,
    TRACE,
    ArgumentFate,
    ArraysSeen,
    BackendSeen,
    CaptureChanged,
    CaptureRenewed,
    Compiled,
    Died,
    FunctionSeen,
    LineTimes,
    Lowered,
    MainThreadSeen,
    Missed,
    PhaseFailed,
    Profiled,
    RanksCompiled,
    RecordingStopped,
    Retargeted,
    Rounded,
    RunEnded,
    RunStarted,
    StepTimed,
    TargetCompiled,
    TargetCompiling,
    Traced,
    Transferred,
)
from jaxscope.schema.keys import Frame, Key, table_entry
from jaxscope.schema.libraries import JAX_ROOTS
from jaxscope.schema.messages import Words, message

SEEN_AT_CALL, SEEN_AT_EXIT = "call", "exit"
REACHED = {TRACE: "traced", LOWER: "lowered", COMPILE: "compiled"}
_BY_BITS = [[name for bit, name in enumerate(REACHED.values()) if bits >> bit & 1] for bits in range(8)]
_FAST_PATH = ["fast_path"]
_LEVEL_BY_BITS = [reached_level(names) for names in _BY_BITS]

P = ParamSpec("P")
T = TypeVar("T")


class StepTime(msgspec.Struct, frozen=True):
    """The recorded end of a training step, and how long transfers (copies between host and devices) had taken
    until then.

    Attributes:
      copying: the seconds that the transfers of each line had taken since the recording began, by the keys of
        ``Process.transfers``. Only transfers of the thread that ends the steps count.
    """

    event: StepTimed
    copying: Mapping[tuple[str, str, str, int], float]


class Process(msgspec.Struct, eq=False):
    """One process of the recorded program, which wrote a log of its own.

    Attributes:
      id: the process id as text, with a suffix (``812-2``) if two processes had the same one.
      pid: the process id.
      first_ns, last_ns: time of the first and of the latest event, in nanoseconds since the epoch.
      index: ``jax.process_index()``; None: unknown.
      started, ended, stopped, died, backend: the events RunStarted, RunEnded, RecordingStopped, Died and
        BackendSeen of the process; None: not recorded. ``ended`` is also None if other events followed.
      main_thread: the latest event about the line at which the main thread is; None: there is none.
      line_times: the latest event about the lines at which the main thread spends its time; None: there is
        none.
      ranks_compiled: the events about ranks of the job that compiled different programs.
      step, first_step: number of the latest and of the first recorded step whose end the program marked
        (``jaxscope.step()``); None: no marks.
      calls: {id of a watched function: number of its calls so far}, in the order of the first calls. (The
        calls of a watched function are counted.) The mapping is replaced by a new one, never changed.
      phases: the times of all traces, lowerings and compilations. Their union is the time spent compiling.
      threads: the same times by thread.
      profiles: the profiles that the process recorded.
      step_times: ends of some steps, in order of time.
      snapshots: the recorded lists of its live arrays, in order of time.
      transfers: the latest event about the transfers (copies between host and devices) of each line, by
        (direction, kind, file, line).
      rounded: the conversions of host arrays to a smaller dtype that made different numbers equal, or changed
        them; at most one for each line and argument.
      first_seconds: seconds of the first transfer of each line, if known, by the keys of ``transfers``.
    """

    id: str
    pid: int
    first_ns: int = 0
    last_ns: int = 0
    index: int | None = None
    started: RunStarted | None = None
    ended: RunEnded | None = None
    stopped: RecordingStopped | None = None
    died: Died | None = None
    backend: BackendSeen | None = None
    main_thread: MainThreadSeen | None = None
    line_times: LineTimes | None = None
    ranks_compiled: list[RanksCompiled] = []
    step: int | None = None
    first_step: int | None = None
    calls: Mapping[str, int] = {}
    phases: UnionOfSpans = msgspec.field(default_factory=UnionOfSpans)
    threads: OwnSeconds = msgspec.field(default_factory=OwnSeconds)
    profiles: list[Profiled] = []
    step_times: list[StepTime] = []
    snapshots: list[ArraysSeen] = []
    transfers: dict[tuple[str, str, str, int], Transferred] = {}
    rounded: list[Rounded] = []
    first_seconds: dict[tuple[str, str, str, int], float] = {}

    def compiling_seconds(self, unfinished: Sequence[tuple[int, int]] = ()) -> float:
        """Return the seconds during which the process traced, lowered or compiled. Nested phases count once.
        ``unfinished`` are (begin, end) of phases that have no recorded end, in nanoseconds since the
        epoch."""
        return self.phases.with_spans(unfinished) / 1e9


class Compilation(msgspec.Struct, eq=False):
    """A call that missed JAX's C++ fast path, or requested a trace ahead of time, and the phases (trace,
    lower, compile) that it ran.

    Many of these calls compile nothing: see ``reached``.

    Attributes:
      id: ``<process id>.<number of the call>``.
      call: number of the call in its process.
      t_ns: when the call was recorded, in nanoseconds since the epoch.
      missed: the event of the call; None: it is missing in the log.
      key: the cache key of the call; None: not recorded.
      entry: the kind of call: call (an ordinary call), aot (``.trace``, ``.lower``, ``.eval_shape``),
        transform (under grad, vmap, ...) or nested (inside another trace).
      traced, lowered, compiled: the events of the phases that succeeded; None: the phase did not run or did
        not succeed, or was not recorded.
      failed: the event of the phase that failed; None: no phase failed, or this was not recorded.
      fate: the event about which arguments were still alive after the call; None: not recorded.
      program: id of the lowered or compiled program; None: unknown, or nothing was lowered.
      phase, phase_ns: the phase in progress and when it began; None: none is in progress.
      reached_phases: the phases that succeeded, as bits: 1 traced, 2 lowered, 4 compiled.
      calls_then: number of calls of the function in the process until this one, included; None: not counted.
      marks: number of calls of ``jaxscope.step()``, which mark the ends of steps, before this call. For an
        ahead-of-time lowering: before its last phase.
      calls: {id of a watched function: number of its calls until this call, included}.
      trace_seconds, lower_seconds, compile_seconds: seconds of each phase, even if it failed or used an
        earlier trace; None: the phase did not run, or its length is unknown. Phases of other calls inside it
        do not count: an operation that is compiled while a function is traced has its own seconds.
    """

    id: str
    process: Process
    call: int
    function: Function
    t_ns: int = 0
    missed: Missed | None = None
    key: Key | None = None
    entry: str = "call"
    traced: Traced | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    failed: PhaseFailed | None = None
    fate: ArgumentFate | None = None
    program: str | None = None
    phase: str | None = None
    phase_ns: int = 0
    reached_phases: int = 0
    calls_then: int | None = None
    marks: int = 0
    calls: Mapping[str, int] = {}
    trace_seconds: float | None = None
    lower_seconds: float | None = None
    compile_seconds: float | None = None

    @property
    def site(self) -> Frame | None:
        """Return the user's line that made the call, or if no line of the user is on the stack, a line of an
        installed package. None if unknown."""
        return self.missed.site if self.missed else None

    @property
    def lines(self) -> list[Frame]:
        """Return the user's lines on the stack of the call, innermost (``site``) first. Empty if none were
        recorded."""
        frames = [self.missed.site, *self.missed.stack] if self.missed is not None else []
        return [at for at in frames if at is not None]

    def made_at(self, path: str) -> Frame | None:
        """Return the user's line that created the array passed as argument ``path``. None if the line is
        unknown, if the argument is not a jax.Array, or if the call is no ordinary call of a user's
        function."""
        if self.missed is None or self.key is None:
            return None
        lines = self.missed.made
        for argument, index in zip(self.key.arguments, self.missed.made_by, strict=False):
            if argument.path == path:
                return table_entry(lines, index)
        return None

    @property
    def step(self) -> int | None:
        """Return the training step of the call as recorded. None if steps were not counted (``model.steps``
        has more)."""
        return self.missed.step if self.missed else None

    def ended_phases(self) -> Iterator[tuple[str, int, float]]:
        """Yield (phase, end in ns since the epoch, seconds) of each phase that has ended or failed, if its
        seconds are known, positive and below MOST_SECONDS (more is a damaged number). The seconds include
        phases of other calls that ran inside the phase."""
        for phase, event in (("trace", self.traced), ("lower", self.lowered), ("compile", self.compiled)):
            failed = self.failed if self.failed is not None and self.failed.phase == phase else None
            ended = event or failed
            if ended is not None and ended.seconds is not None and 0 < ended.seconds < MOST_SECONDS:
                yield phase, ended.t_ns, ended.seconds

    @property
    def reached(self) -> list[str]:
        """Return the phases that the call completed: ``["traced", "lowered", "compiled"]`` or some of them.
        If there are none, the list is empty if a phase is in progress or failed, and otherwise
        ``["fast_path"]``. All compilations share the list: callers must not change it."""
        if self.reached_phases or self.phase is not None or self.failed is not None:
            return _BY_BITS[self.reached_phases]
        return _FAST_PATH

    @property
    def only_missed(self) -> bool:
        """Return whether the call missed JAX's C++ fast path, but traced, lowered and compiled nothing."""
        return self.reached is _FAST_PATH

    @property
    def level(self) -> str:
        """Return the first of JAX's caches in which the call was not found: trace, lower, compile or
        fast_path."""
        phase = self.failed.phase if self.failed is not None else self.phase
        return _LEVEL_BY_BITS[self.reached_phases] if phase is None else reached_level(self.reached, phase)

    @property
    def continues_a_trace(self) -> bool:
        """Return whether the call is under a transform (``jax.grad``) and completed no trace. Mostly, it then
        compiled what another ``Compilation`` of its function had traced."""
        return self.entry == "transform" and not self.reached_phases & 1

    @property
    def persistent_hit(self) -> bool:
        """Return whether the program was loaded from JAX's persistent compilation cache."""
        return self.compiled is not None and self.compiled.persistent_cache == "hit"

    @property
    def seconds(self) -> float:
        """Return the seconds that all phases of the call took, without the phases of other calls that ran
        inside them."""
        return (self.trace_seconds or 0.0) + (self.lower_seconds or 0.0) + (self.compile_seconds or 0.0)


class Asked(Protocol):
    """A record, a Function or a whole Run, that caches results computed from it.

    Attributes:
      version: a number that changes whenever the record changes.
      known: the cached results, as {name of the computation: (version of the record, result)}.
    """

    version: int
    known: dict[str, tuple[int, Any]]


A = TypeVar("A", bound=Asked)


def cached_until_changed(compute: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
    """Decorate ``compute``, a function whose first argument is a Function or a Run, so that its result is
    cached in that argument until the ``version`` of the argument changes. Callers must not change the result.
    Further arguments must be the same in every call: they are not part of the cache's key."""
    name = f"{compute.__module__}.{compute.__qualname__}"

    @functools.wraps(compute)
    def cached(record: A, /, *args: P.args, **kwargs: P.kwargs) -> T:
        version = record.version
        known = record.known.get(name)
        if known is None or known[0] != version:
            known = record.known[name] = version, compute(record, *args, **kwargs)
        result: T = known[1]
        return result

    return cached


class Function(msgspec.Struct, eq=False):
    """A function of the program, and its recorded calls (see ``Compilation``).

    Its seconds are sums over these calls. What is compiled inside the trace of another function counts for
    the compiled function alone.

    Attributes:
      id: the id in the log: usually qualified name, file and first line, then the wrappers around it.
      seen: the event that describes the function: names, file, line.
      compilations: its recorded calls, in order of time, even if they compiled nothing.
      watched: whether jaxscope counts all calls of the function.
      step: whether its calls count as steps of the training loop.
      traces, lowerings, compiled: how often each phase succeeded. ``compiled`` includes loads from the
        persistent cache.
      persistent_cache_hits: number of loads from JAX's persistent compilation cache.
      counted_misses: {process id: number of fast-path misses without an event (``MissesCounted``)}.
      counted_calls: number of calls, by process id, if the function is watched.
      brought: for each process id {bytes of the NumPy arguments of a call: number of such calls}; None:
        unknown.
      version: a number that grows with every event about the function.
      known: cached results (see ``cached_until_changed``).
    """

    id: str
    seen: FunctionSeen
    compilations: list[Compilation] = []
    watched: bool = False
    step: bool = False
    traces: int = 0
    lowerings: int = 0
    compiled: int = 0
    persistent_cache_hits: int = 0
    counted_misses: dict[str, int] = {}
    counted_calls: dict[str, int] = {}
    brought: dict[str, dict[int, int] | None] = {}
    version: int = 0
    known: dict[str, tuple[int, Any]] = {}

    @property
    def name(self) -> str:
        """Return the qualified name of the function; if it is unknown, the plain name or the id."""
        return self.seen.qualname or self.seen.name or self.id

    @property
    def display_name(self) -> str:
        """Return the name without ``<locals>``: ``main.loss`` for a function defined inside main."""
        return self.name.replace(".<locals>", "")

    @property
    def defined(self) -> Frame | None:
        """Return the line that defines the function; None if it is unknown."""
        seen = self.seen
        return Frame(seen.file, seen.line, seen.qualname) if seen.file and seen.line is not None else None

    @property
    def user(self) -> bool:
        """Return whether this is the user's own function: not of a library, not an operation outside jit."""
        return not (self.seen.library or self.seen.eager)

    @property
    def operation(self) -> bool:
        """Return whether this is an operation outside jit: a primitive, or a function that JAX itself jits
        (``jnp.cumsum``)."""
        module = (self.seen.module or "").partition(".")[0]
        return self.seen.eager or (self.seen.library and module in JAX_ROOTS)

    @property
    def calls(self) -> int | None:
        """Return the number of calls of the function so far. Return None if they are not counted."""
        return sum(self.counted_calls.values()) if self.counted_calls or self.watched else None

    @property
    @cached_until_changed
    def fast_path_misses(self) -> int:
        """Return the number of calls that missed JAX's C++ fast path but traced and compiled nothing."""
        recorded = sum(c.only_missed for c in self.compilations)
        return recorded + sum(self.counted_misses.values())

    # math.fsum sums exactly, so that the order in which logs were read does not change the last digit.

    @property
    @cached_until_changed
    def trace_seconds(self) -> float:
        return math.fsum(c.trace_seconds or 0.0 for c in self.compilations)

    @property
    @cached_until_changed
    def lower_seconds(self) -> float:
        return math.fsum(c.lower_seconds or 0.0 for c in self.compilations)

    @property
    @cached_until_changed
    def compile_seconds(self) -> float:
        return math.fsum(c.compile_seconds or 0.0 for c in self.compilations)

    @property
    def seconds(self) -> float:
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


def unseen(function: str) -> FunctionSeen:
    """Return a FunctionSeen event for a function that no event in the log describes, with only the names in
    the id ``function``: ``step`` and ``main.step`` for ``main.step@train.py:12``."""
    known = function_ids.read(function)
    return FunctionSeen(function=function, name=known.name, qualname=known.qualname)


class StaleCapture(msgspec.Struct, eq=False):
    """A value that a watched function (``@jaxscope.watch``) read when it was traced, and that changed
    afterwards.

    JAX does not trace again in this case and goes on using the old value.

    Attributes:
      changed: the event that reports the change.
      renewed: the event of a new trace with the new value; None: no new trace was recorded.
    """

    function: Function
    process: Process
    changed: CaptureChanged
    renewed: CaptureRenewed | None = None

    @property
    def where(self) -> Words:
        """Return where the value was found, for a message: ``closure``, or ``global of helper`` if the
        function ``helper``, which the watched function calls, reads it."""
        where, reader = self.changed.where, self.changed.reader
        return message("read-by-another", where=where, reader=reader) if reader is not None else where

    @property
    def after(self) -> Words | None:
        """Return the new value for a message: ``2.0``, or ``another list`` if its text is the same as that of
        the old value. None if the new value is unknown."""
        after = self.changed.after
        same_text = after is not None and after == self.changed.before
        return message("another-value", value=after) if same_text else after

    @property
    def served(self) -> bool | None:
        """Return whether a call used the old value after the value had changed. None if unknown."""
        if self.changed.seen == SEEN_AT_CALL:
            return True
        if self.renewed is None:
            return None
        before, after = self.changed.calls, self.renewed.calls
        # The call that traces again is counted before its trace.
        return None if before is None or after is None else after - before > 1

    @property
    def status(self) -> str:
        """Return ``stale`` (the function still uses the old value), ``ended`` (it used the old value until a
        new trace) or ``withdrawn`` (it is not known to have used the old value before a new trace)."""
        if self.renewed is None:
            return "stale"
        return "ended" if self.served else "withdrawn"


class Program(msgspec.Struct, eq=False):
    """A program that was lowered, and mostly compiled, perhaps several times.

    The attributes after ``compilations`` are only for programs for a target (a machine given by
    ``--target``). Such programs are in ``Run.retargeted``.

    Attributes:
      id: the id in its events; for a program for a target that was skipped, the call and the target.
      module: name of the module: ``jit_train_step``; None: unknown.
      lowered, compiled: the latest events about its lowering and compilation; None: not recorded.
      target: the platform that it is lowered for (``tpu``), or the name of its target.
      texts: names of the files with its texts, by stage: ``stablehlo``, ``hlo``.
      text_bytes: sizes of these texts, by stage.
      compilations: the calls that lowered or compiled it, in order of time.
      of: the program from the same trace for the machine on which the process ran; None: none, or unknown.
      target_lowered: the event about its lowering for the target.
      target_compiled: the event about its compilation for the target; None: it is not finished.
      compiling: whether the target's compiler has begun.
      abandoned: whether the program will never be compiled, because the process that should compile it has
        ended.
      waits_for: ids of processes that compile for other runs. The program waits for them.
    """

    id: str
    module: str | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    target: str | None = None
    texts: dict[str, str] = {}
    text_bytes: dict[str, int] = {}
    compilations: list[Compilation] = []

    of: Program | None = None
    target_lowered: Retargeted | None = None
    target_compiled: TargetCompiled | None = None
    compiling: bool = False
    abandoned: bool = False
    waits_for: tuple[int, ...] = ()

    @property
    def state(self) -> str:
        """Return the state of a program for a target: skipped, waiting, compiling or abandoned. When its
        compilation has ended, return how: ok, exhausted (it does not fit into the memory), failed, crashed,
        late or missing (the compiler is not installed)."""
        if self.target_compiled is not None:
            return self.target_compiled.outcome
        if self.target_lowered is not None and self.target_lowered.skipped is not None:
            return "skipped"
        if self.abandoned:
            return "abandoned"
        return "compiling" if self.compiling else "waiting"

    def retargeted(self, event: Retargeted) -> None:
        """Record ``event``: the program was lowered for a target (``--target``), or was skipped."""
        self.target = event.target
        self.module = self.module or event.module
        self.target_lowered = self.target_lowered or event
        if event.stablehlo is not None:
            self.texts["stablehlo"] = event.stablehlo
            self.text_bytes["stablehlo"] = event.stablehlo_bytes

    def target_event(self, event: TargetCompiling | TargetCompiled) -> None:
        """Record ``event``: the compiler for a target (``--target``) began or ended compiling the program."""
        self.target = self.target or event.target or None
        if isinstance(event, TargetCompiling):
            self.compiling = True
            return
        if self.target_compiled is not None and self.target_compiled.t_ns > event.t_ns:
            return  # this is an older result: the program was compiled again, and that event was read first
        self.target_compiled = event
        if event.text is not None:
            self.texts["hlo"] = event.text
            self.text_bytes["hlo"] = event.text_bytes

    @property
    def function(self) -> Function | None:
        """Return the function whose call first lowered or compiled the program. Return None if no such call
        is known."""
        return self.compilations[0].function if self.compilations else None

    @property
    def called(self) -> bool:
        """Return whether a call that was not ahead of time (``.lower()``) lowered or compiled the program. A
        program without such a call may also run: ``f.lower(x).compile()(x)``."""
        return any(c.entry != "aot" for c in self.compilations)


class Comparison(msgspec.Struct, frozen=True):
    """The comparison of a call's cache key with an earlier key of the same function in the same process: the
    most similar one.

    Attributes:
      level: the first cache in which the call was not found: trace, lower, compile or fast_path.
      facts: the key of the call in flattened form.
      nearest: the call with the earlier key; None: there is no earlier key.
      nearest_facts: the earlier key in flattened form; None: there is none.
      causes: why the call missed, the decisive cause first, at least one.
    """

    level: str
    facts: Facts
    nearest: Compilation | None
    nearest_facts: Facts | None
    causes: list[Cause]


class InProgress(msgspec.Struct, frozen=True):
    """A phase (trace, lower or compile) of a call that began, at ``since_ns`` (ns since the epoch), and has
    no recorded end."""

    compilation: Compilation
    phase: str
    since_ns: int


class Lost(msgspec.Struct, frozen=True):
    """A part of the recording that is not available. ``seam`` is the name of the part: ``listeners``,
    ``stderr``, ``log``, ``ranks``, ...; ``reason`` says why it is not available."""

    seam: str
    reason: str
