"""What a run is made of: processes, functions, compilations, programs.

Records only: the fold in model.run fills them, readers must not write to them. Frozen facts (keys,
phases) stay the events they came as.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import msgspec

from jaxscope.analysis.keys import Facts
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
    Missed,
    PhaseFailed,
    RecordingStopped,
    Retargeted,
    RunEnded,
    RunStarted,
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

P = ParamSpec("P")
T = TypeVar("T")


class Process(msgspec.Struct, eq=False):
    """One process that wrote a log. ``id`` is its pid, with a suffix where two processes had one pid."""

    id: str
    pid: int
    first_ns: int = 0
    last_ns: int = 0
    index: int | None = None  # JAX's process index
    started: RunStarted | None = None
    ended: RunEnded | None = None
    stopped: RecordingStopped | None = None  # nothing of it was recorded from then on, though it went on
    died: Died | None = None
    backend: BackendSeen | None = None
    step: int | None = None  # the latest step that ended by a mark
    first_step: int | None = None  # the first that is told to have ended so
    # Calls of watched functions that the log has told so far, in the order of the first calls. Replaced, never changed.
    calls: Mapping[str, int] = {}
    # Every timed phase, wall clock in ns: their union is the time spent compiling.
    phases: Occupied = msgspec.field(default_factory=Occupied)
    snapshots: list[ArraysSeen] = []  # its live arrays, moment by moment
    # By direction, kind, file and line: the latest word on what crossed there.
    transfers: dict[tuple[str, str, str, int], Transferred] = {}

    def compiling_seconds(self, unfinished: Sequence[tuple[int, int]] = ()) -> float:
        """Wall time during which at least one phase ran: nested phases are not counted twice."""
        return self.phases.with_spans(unfinished) / 1e9


class Compilation(msgspec.Struct, eq=False):
    """One call that left JAX's fast path, and how far it went.

    ``id`` is ``<process>.<call>``. Most are never compiled: see ``reached``.
    """

    id: str
    process: Process
    call: int
    function: Function
    t_ns: int = 0
    missed: Missed | None = None  # None: the log lost the event that introduces the call
    traced: Traced | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    failed: PhaseFailed | None = None
    fate: ArgumentFate | None = None  # what had become of its arguments when we next looked
    program: str | None = None
    phase: str | None = None  # the phase in progress
    phase_ns: int = 0  # since when
    reached_phases: int = 0  # bits: 1 traced, 2 lowered, 4 compiled
    calls_then: int | None = None  # calls of its function so far in its process, where they are counted
    # Of its process at that moment, or when the last phase of what was lowered ahead of time began:
    marks: int = 0  # steps that had ended by a mark
    calls: Mapping[str, int] = {}  # calls of watched functions
    trace_seconds: float | None = None  # also of a phase that found an earlier trace, or failed
    lower_seconds: float | None = None
    compile_seconds: float | None = None

    @property
    def key(self) -> Key | None:
        return self.missed.key if self.missed else None

    @property
    def site(self) -> Frame | None:
        return self.missed.site if self.missed else None

    def made_at(self, path: str) -> Frame | None:
        """The user's line that made the array argument ``path``; None: not known, or no jax.Array."""
        if self.missed is None or self.key is None:
            return None
        lines, made_by = self.missed.made, self.missed.made_by
        for argument, by in zip(self.key.arguments, made_by, strict=False):
            if argument.path == path:
                return lines[by] if 0 <= by < len(lines) else None
        return None

    @property
    def step(self) -> int | None:
        return self.missed.step if self.missed else None

    @property
    def entry(self) -> str:
        return self.missed.entry if self.missed else "call"

    @property
    def reached(self) -> list[str]:
        """Of traced, lowered, compiled those that happened; ``["fast_path"]`` where none was tried.

        Empty where a phase began and none ended well. Not to be changed: one list for all.
        """
        if self.reached_phases or self.phase is not None or self.failed is not None:
            return _BY_BITS[self.reached_phases]
        return _FAST_PATH

    @property
    def persistent_hit(self) -> bool:
        return self.compiled is not None and self.compiled.persistent_cache == "hit"

    @property
    def seconds(self) -> float:
        """Wall time of all its phases."""
        return (self.trace_seconds or 0.0) + (self.lower_seconds or 0.0) + (self.compile_seconds or 0.0)


class Asked(Protocol):
    """What grows with the log: a function or a whole run."""

    version: int
    known: dict[str, tuple[int, Any]]  # by question: at which version, the answer


A = TypeVar("A", bound=Asked)


def asked_once(question: Callable[Concatenate[A, P], T]) -> Callable[Concatenate[A, P], T]:
    """A view asks the same of every function at every redraw, many rules ask the same of a run: answered anew where
    it has changed.

    The answer belongs to the function (or the run): it is not to be changed. What else is asked with is always the
    same: the function's run.
    """
    name = f"{question.__module__}.{question.__qualname__}"

    @functools.wraps(question)
    def ask(function: A, /, *args: P.args, **kwargs: P.kwargs) -> T:
        version = function.version
        known = function.known.get(name)
        if known is None or known[0] != version:
            known = function.known[name] = version, question(function, *args, **kwargs)
        answer: T = known[1]
        return answer

    return ask


class Function(msgspec.Struct, eq=False):
    """A function as capture met it, and every call of it that left the fast path, in order of time.

    Seconds are sums over its own calls; what was traced or compiled inside another function's trace
    counts for both (``Process.compiling_seconds`` counts it once).
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
    counted_misses: dict[str, int] = {}  # process id -> fast-path misses that were counted only
    counted_calls: dict[str, int] = {}  # process id -> calls, where watched
    brought: dict[str, dict[int, int] | None] = {}  # process id -> calls by bytes (Brought); None: not known
    version: int = 0  # grows with every event that speaks of it
    known: dict[str, tuple[int, Any]] = {}  # what was asked of it, by question: at which version, the answer

    @property
    def name(self) -> str:
        return self.seen.qualname or self.seen.name or self.id

    @property
    def user(self) -> bool:
        """Is it the user's own: neither a library's nor an eager operation?"""
        return not (self.seen.library or self.seen.eager)

    @property
    def calls(self) -> int | None:
        """Calls so far; None where nobody counts them."""
        return sum(self.counted_calls.values()) if self.counted_calls or self.watched else None

    @property
    @asked_once
    def fast_path_misses(self) -> int:
        """Calls that left the fast path and needed nothing new."""
        told = sum(c.reached == ["fast_path"] for c in self.compilations)
        return told + sum(self.counted_misses.values())

    # Summed exactly, so that the order in which logs were read does not show in the last digit.

    @property
    @asked_once
    def trace_seconds(self) -> float:
        return math.fsum(c.trace_seconds or 0.0 for c in self.compilations)

    @property
    @asked_once
    def lower_seconds(self) -> float:
        return math.fsum(c.lower_seconds or 0.0 for c in self.compilations)

    @property
    @asked_once
    def compile_seconds(self) -> float:
        return math.fsum(c.compile_seconds or 0.0 for c in self.compilations)

    @property
    def seconds(self) -> float:
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


class StaleCapture(msgspec.Struct, eq=False):
    """A value that a trace of a watched function keeps, and that is another one by now.

    Attributes:
      changed: what was seen.
      renewed: the function was traced again with what is there now; None: not that anybody saw.
    """

    function: Function
    process: Process
    changed: CaptureChanged
    renewed: CaptureRenewed | None = None

    @property
    def served(self) -> bool | None:
        """Was a call served with the old value? None: nobody could see."""
        if self.changed.seen == SEEN_AT_CALL:
            return True
        if self.renewed is None:
            return None
        before, after = self.changed.calls, self.renewed.calls
        # The call that is traced anew is counted before it is traced.
        return None if before is None or after is None else after - before > 1

    @property
    def status(self) -> str:
        """``stale``, ``ended`` by a new trace, or ``withdrawn``: traced anew before any call was seen served."""
        if self.renewed is None:
            return "stale"
        return "ended" if self.served else "withdrawn"


class Program(msgspec.Struct, eq=False):
    """One compiled program. The same program compiled twice is one program, two compilations."""

    id: str
    module: str | None = None
    lowered: Lowered | None = None
    compiled: Compiled | None = None
    target: str | None = None
    texts: dict[str, str] = {}  # stage -> blob
    text_bytes: dict[str, int] = {}
    compilations: list[Compilation] = []  # in order of time

    # Of a program lowered for a machine that is not there (Fold.retargeted) only:
    of: Program | None = None  # the same lowering for the machine it ran on
    asked: Retargeted | None = None
    made: TargetCompiled | None = None
    compiling: bool = False
    abandoned: bool = False  # it waits for a process that has ended (log.jobs.Queue.abandoned)
    behind: tuple[
        int, ...
    ] = ()  # processes that compile for other runs, while it waits for them (Queue.behind)

    @property
    def state(self) -> str:
        """Of a retargeted program: skipped, waiting, compiling, abandoned, or what came of it (log.jobs.Result.outcome)."""
        if self.made is not None:
            return self.made.outcome
        if self.asked is not None and self.asked.skipped is not None:
            return "skipped"
        if self.abandoned:
            return "abandoned"
        return "compiling" if self.compiling else "waiting"

    def retargeted(self, event: Retargeted) -> None:
        """It was lowered for a machine that is not there, or skipped."""
        self.target = event.target
        self.module = self.module or event.module
        self.asked = self.asked or event
        if event.stablehlo is not None:
            self.texts["stablehlo"] = event.stablehlo
            self.text_bytes["stablehlo"] = event.stablehlo_bytes

    def heard_of(self, event: TargetCompiling | TargetCompiled) -> None:
        """Its compiler began, or has ended."""
        self.target = self.target or event.target or None
        if isinstance(event, TargetCompiling):
            self.compiling = True
            return
        if self.made is not None and self.made.t_ns > event.t_ns:
            return  # it was asked for again, and that answer was read first
        self.made = event
        if event.text is not None:
            self.texts["hlo"] = event.text
            self.text_bytes["hlo"] = event.text_bytes

    @property
    def function(self) -> Function | None:
        """The function it was first compiled for."""
        return self.compilations[0].function if self.compilations else None

    @property
    def called(self) -> bool:
        """Was it compiled for a call? What ``.lower().compile()`` gave may be called, too: nobody sees that."""
        return any(c.entry != "aot" for c in self.compilations)


class Comparison(msgspec.Struct, frozen=True):
    """A compilation's key beside the nearest earlier key of its function in the same process."""

    level: str  # the first cache that missed
    facts: Facts
    nearest: Compilation | None  # None: there is no earlier key
    nearest_facts: Facts | None
    causes: list[Cause]  # the decisive one first, at least one


class InProgress(msgspec.Struct, frozen=True):
    """A phase that began and of which no end is recorded."""

    compilation: Compilation
    phase: str
    since_ns: int


class Lost(msgspec.Struct, frozen=True):
    """A part of the recording that is not available, and why."""

    seam: str
    reason: str
