"""The records of a run: processes, functions, compilations, programs.

``model.fold`` fills them; readers must not change them. Keys and phases are kept as the events that brought
them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from jaxscope.analysis.keys import Facts
from jaxscope.analysis.levels import reached_level
from jaxscope.model.intervals import Occupied
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
    Lowered,
    MainThreadSeen,
    Missed,
    PhaseFailed,
    Profiled,
    RanksCompiled,
    RecordingStopped,
    Retargeted,
    RunEnded,
    RunStarted,
    StepTimed,
    TargetCompiled,
    TargetCompiling,
    Traced,
    Transferred,
)
from jaxscope.schema.keys import Frame, Key

SEEN_AT_CALL, SEEN_AT_EXIT = "call", "exit"
REACHED = {TRACE: "traced", LOWER: "lowered", COMPILE: "compiled"}
_BY_BITS = [[name for bit, name in enumerate(REACHED.values()) if bits >> bit & 1] for bits in range(8)]
_FAST_PATH = ["fast_path"]
_LEVEL_BY_BITS = [reached_level(names) for names in _BY_BITS]

P = ParamSpec("P")
T = TypeVar("T")


class StepTime(msgspec.Struct, frozen=True):
    """The end of a step, with the seconds that copies of the stepping thread had taken until then, by the key
    of ``Process.transfers``."""

    event: StepTimed
    copying: Mapping[tuple[str, str, str, int], float]


class Process(msgspec.Struct, eq=False):
    """One process that wrote a log. ``id`` is its pid, with a suffix where two processes had one pid.

    Attributes:
      first_ns, last_ns: time of the first and of the latest event.
      started, ended, stopped, died, backend: the events of that name; None: not recorded.
      profiles, step_times, snapshots, transfers, calls, phases: the records of the process so far.
    """

    id: str
    pid: int
    first_ns: int = 0
    last_ns: int = 0
    index: int | None = None  # JAX's process index
    started: RunStarted | None = None
    ended: RunEnded | None = None
    stopped: RecordingStopped | None = None  # the process continued, its recording did not
    died: Died | None = None
    backend: BackendSeen | None = None
    main_thread: MainThreadSeen | None = None  # the latest look at it
    ranks_compiled: list[RanksCompiled] = []  # where the ranks did not agree, as they published it
    step: int | None = None  # the latest step that ended by a mark
    first_step: int | None = None  # the first recorded step that ended by a mark
    # Calls so far of each watched function, in the order of the first calls. Replaced, never changed.
    calls: Mapping[str, int] = {}
    # Every timed phase, wall clock in ns: their union is the time spent compiling.
    phases: Occupied = msgspec.field(default_factory=Occupied)
    profiles: list[Profiled] = []
    step_times: list[StepTime] = []  # ends of some steps, in order of time
    snapshots: list[ArraysSeen] = []  # its live arrays, in order of time
    # By direction, kind, file and line: the latest event about the transfers there.
    transfers: dict[tuple[str, str, str, int], Transferred] = {}
    first_seconds: dict[tuple[str, str, str, int], float] = {}  # of these, of the first transfer

    def compiling_seconds(self, unfinished: Sequence[tuple[int, int]] = ()) -> float:
        """Return the wall time during which at least one phase ran: nested phases are not counted twice."""
        return self.phases.with_spans(unfinished) / 1e9


class Compilation(msgspec.Struct, eq=False):
    """One call that missed JAX's fast path, and the stages that it ran.

    ``id`` is ``<process>.<call>``. Most of these calls compile nothing: see ``reached``.

    Attributes:
      call: number of the call in its process.
      t_ns: when the call was recorded.
      traced, lowered, compiled, failed: the events of its phases; None: the phase did not run, or was
        not recorded.
      program: id of the compiled program.
      trace_seconds, lower_seconds, compile_seconds: of each phase; None: it did not run, or its length
        is unknown.
    """

    id: str
    process: Process
    call: int
    function: Function
    t_ns: int = 0
    missed: Missed | None = None  # None: the log lost the event that introduces the call
    key: Key | None = None  # of ``missed``
    entry: str = "call"  # of ``missed``
    traced: Traced | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    failed: PhaseFailed | None = None
    fate: ArgumentFate | None = None  # which of its arguments were still referenced after the call
    program: str | None = None
    phase: str | None = None  # the phase in progress
    phase_ns: int = 0  # since when
    reached_phases: int = 0  # bits: 1 traced, 2 lowered, 4 compiled
    calls_then: int | None = None  # calls of its function before it in its process; None: not counted
    # Of its process at that moment; for an ahead-of-time lowering when its last phase began:
    marks: int = 0  # steps that had ended by a mark
    calls: Mapping[str, int] = {}  # calls of watched functions
    trace_seconds: float | None = None  # also if the phase reused an earlier trace, or failed
    lower_seconds: float | None = None
    compile_seconds: float | None = None

    @property
    def site(self) -> Frame | None:
        return self.missed.site if self.missed else None

    def made_at(self, path: str) -> Frame | None:
        """Return the user's line that created the array argument ``path``; None: unknown, or not a
        jax.Array."""
        if self.missed is None or self.key is None:
            return None
        lines = self.missed.made
        for argument, index in zip(self.key.arguments, self.missed.made_by, strict=False):
            if argument.path == path:
                return lines[index] if 0 <= index < len(lines) else None
        return None

    @property
    def step(self) -> int | None:
        return self.missed.step if self.missed else None

    def ended_phases(self) -> Iterator[tuple[str, int, float]]:
        """Yield the phases that took time and have ended: name, end in ns of the log's clock, seconds."""
        for phase, event, spent in (
            ("trace", self.traced, self.trace_seconds),
            ("lower", self.lowered, self.lower_seconds),
            ("compile", self.compiled, self.compile_seconds),
        ):
            failed = self.failed if self.failed is not None and self.failed.phase == phase else None
            ended = event or failed
            if ended is not None and spent:
                yield phase, ended.t_ns, spent

    @property
    def reached(self) -> list[str]:
        """Return which of traced, lowered, compiled the call completed; ``["fast_path"]`` if it began none
        of them.

        Empty if a phase began and none succeeded. Callers must not change the list: all compilations share
        it.
        """
        if self.reached_phases or self.phase is not None or self.failed is not None:
            return _BY_BITS[self.reached_phases]
        return _FAST_PATH

    @property
    def level(self) -> str:
        """Return the first cache that missed: trace, lower, compile or fast_path."""
        phase = self.failed.phase if self.failed is not None else self.phase
        return _LEVEL_BY_BITS[self.reached_phases] if phase is None else reached_level(self.reached, phase)

    @property
    def persistent_hit(self) -> bool:
        return self.compiled is not None and self.compiled.persistent_cache == "hit"

    @property
    def seconds(self) -> float:
        """Return the wall time of all its phases."""
        return (self.trace_seconds or 0.0) + (self.lower_seconds or 0.0) + (self.compile_seconds or 0.0)


class Asked(Protocol):
    """A record that changes as the log grows: a function or a whole run."""

    version: int
    known: dict[str, tuple[int, Any]]  # cached results by name: (version, result)


A = TypeVar("A", bound=Asked)


def cached_until_changed(compute: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
    """Cache the result of ``compute`` in its first argument until that record's version changes.

    Views need the same results at every redraw, and several rules need them. Callers must not change the
    result. The other arguments (the run) must be the same in every call: they are not part of the cache's
    key.
    """
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
    """A function as recorded, and its calls that missed the fast path, in order of time.

    Seconds are sums over its own calls; phases inside another function's trace count for both functions
    (``Process.compiling_seconds`` counts them once).

    Attributes:
      seen: its names, file and line.
      compilations: in order of time, with calls that compiled nothing.
      watched: whether its calls are counted.
      traces, lowerings: how often each phase ran.
    """

    id: str
    seen: FunctionSeen
    compilations: list[Compilation] = []
    watched: bool = False
    step: bool = False  # the function whose calls are steps
    traces: int = 0
    lowerings: int = 0
    compiled: int = 0  # with persistent-cache hits
    persistent_cache_hits: int = 0
    counted_misses: dict[str, int] = {}  # process id -> fast-path misses without an event of their own
    counted_calls: dict[str, int] = {}  # process id -> calls, where watched
    brought: dict[str, dict[int, int] | None] = {}  # process id -> calls by bytes (Brought); None: not known
    version: int = 0  # grows with every event about it
    known: dict[str, tuple[int, Any]] = {}  # see cached_until_changed

    @property
    def name(self) -> str:
        return self.seen.qualname or self.seen.name or self.id

    @property
    def display_name(self) -> str:
        """Return the name without ``<locals>``: ``main.loss`` for a function defined inside main."""
        return self.name.replace(".<locals>", "")

    @property
    def user(self) -> bool:
        """Return whether it is the user's own function: not a library's, and not an eager operation."""
        return not (self.seen.library or self.seen.eager)

    @property
    def calls(self) -> int | None:
        """Return the number of calls so far; None: they are not counted."""
        return sum(self.counted_calls.values()) if self.counted_calls or self.watched else None

    @property
    @cached_until_changed
    def fast_path_misses(self) -> int:
        """Return the number of calls that missed the fast path and traced or compiled nothing."""
        recorded = sum(c.reached == ["fast_path"] for c in self.compilations)
        return recorded + sum(self.counted_misses.values())

    # Summed exactly, so that the order in which logs were read does not show in the last digit.

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
    """Return what the id of a function says, where the event that introduces it is missing."""
    name = function.partition("@")[0]
    return FunctionSeen(function=function, name=name.rpartition(".")[2] or name, qualname=name)


class StaleCapture(msgspec.Struct, eq=False):
    """A value that a watched function captured when it was traced, and that changed afterwards.

    Attributes:
      changed: the event that reports the change.
      renewed: the event of a new trace with the new value; None: no new trace was recorded.
    """

    function: Function
    process: Process
    changed: CaptureChanged
    renewed: CaptureRenewed | None = None

    @property
    def served(self) -> bool | None:
        """Return whether a call used the old value; None: unknown."""
        if self.changed.seen == SEEN_AT_CALL:
            return True
        if self.renewed is None:
            return None
        before, after = self.changed.calls, self.renewed.calls
        # The call that traces again is counted before its trace.
        return None if before is None or after is None else after - before > 1

    @property
    def status(self) -> str:
        """Return ``stale``, ``ended`` (by a new trace), or ``withdrawn`` (a new trace before any call used
        it)."""
        if self.renewed is None:
            return "stale"
        return "ended" if self.served else "withdrawn"


class Program(msgspec.Struct, eq=False):
    """One compiled program. If the same program is compiled twice, it is one program with two compilations.

    Attributes:
      lowered, compiled: the events of the first compilation that has them.
      target: the name of the target; None: the program ran here.
      texts, text_bytes: the stored texts by stage, and their sizes.
    """

    id: str
    module: str | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    target: str | None = None
    texts: dict[str, str] = {}  # stage -> blob
    text_bytes: dict[str, int] = {}
    compilations: list[Compilation] = []  # in order of time

    # Only of a program lowered for a target (Fold.retargeted):
    of: Program | None = None  # the same function lowered for the machine it ran on
    asked: Retargeted | None = None
    made: TargetCompiled | None = None
    compiling: bool = False
    abandoned: bool = False  # it waits for a process that has ended (log.jobs.Queue.abandoned)
    behind: tuple[int, ...] = ()  # the other runs' compiler processes that it waits for (Queue.behind)

    @property
    def state(self) -> str:
        """Return the state of a retargeted program: skipped, waiting, compiling, abandoned, or its outcome.

        The possible outcomes are those of ``log.jobs.Result.outcome``.
        """
        if self.made is not None:
            return self.made.outcome
        if self.asked is not None and self.asked.skipped is not None:
            return "skipped"
        if self.abandoned:
            return "abandoned"
        return "compiling" if self.compiling else "waiting"

    def retargeted(self, event: Retargeted) -> None:
        """Record that the program was lowered for a target, or skipped."""
        self.target = event.target
        self.module = self.module or event.module
        self.asked = self.asked or event
        if event.stablehlo is not None:
            self.texts["stablehlo"] = event.stablehlo
            self.text_bytes["stablehlo"] = event.stablehlo_bytes

    def target_event(self, event: TargetCompiling | TargetCompiled) -> None:
        """Record that the target's compiler began or ended."""
        self.target = self.target or event.target or None
        if isinstance(event, TargetCompiling):
            self.compiling = True
            return
        if self.made is not None and self.made.t_ns > event.t_ns:
            return  # it was compiled again, and that later result was read first
        self.made = event
        if event.text is not None:
            self.texts["hlo"] = event.text
            self.text_bytes["hlo"] = event.text_bytes

    @property
    def function(self) -> Function | None:
        """Return the function it was first compiled for."""
        return self.compilations[0].function if self.compilations else None

    @property
    def called(self) -> bool:
        """Return whether it was compiled for a call. Calls of a ``.lower().compile()`` result are not
        recorded."""
        return any(c.entry != "aot" for c in self.compilations)


class Comparison(msgspec.Struct, frozen=True):
    """A compilation's key compared with the nearest earlier key of its function in the same process.

    Attributes:
      facts: the facts of the compilation's key.
      nearest_facts: the facts of the nearest earlier key; None: there is none.
    """

    level: str  # the first cache that missed
    facts: Facts
    nearest: Compilation | None  # None: there is no earlier key
    nearest_facts: Facts | None
    causes: list[Cause]  # the decisive one first, at least one


class InProgress(msgspec.Struct, frozen=True):
    """A phase that began and has no recorded end.

    Attributes:
      phase: trace, lower or compile.
      since_ns: time of its begin event.
    """

    compilation: Compilation
    phase: str
    since_ns: int


class Lost(msgspec.Struct, frozen=True):
    """A part of the recording that is not available, and why."""

    seam: str
    reason: str
