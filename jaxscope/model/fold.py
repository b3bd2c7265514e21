"""Build the records of a run (processes, functions, compilations, programs) from its events, one by one.

The events of several processes may come in any order. Events may be missing (after kill -9, or where a line
is damaged) or of unknown kinds. No files are read here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from jaxscope.analysis.feedback import Results
from jaxscope.analysis.keys import Facts
from jaxscope.model.interning import Shared
from jaxscope.model.intervals import MOST_SECONDS
from jaxscope.model.records import (
    Comparison,
    Compilation,
    Function,
    Lost,
    Process,
    Program,
    StaleCapture,
    StepTime,
    unseen,
)
from jaxscope.schema import events as ev
from jaxscope.schema.counters import Counted
from jaxscope.schema.keys import Key
from jaxscope.schema.targets import Target

if TYPE_CHECKING:  # importing these modules would take as long as all other imports here
    from jaxscope.analysis.hlo.instruction_lines import Located
    from jaxscope.analysis.programs import Texts

UNKNOWN_FUNCTION = "<unknown>"
_BIT = {ev.TRACE: 1, ev.LOWER: 2, ev.COMPILE: 4}


class Fold:
    """All records (processes, functions, compilations, programs) of a run so far. ``apply`` adds an event to
    them; the subclass ``Run`` adds queries. ``version`` grows with every event."""

    def __init__(self) -> None:
        self.version = 0
        self.processes: dict[str, Process] = {}  # the records by id
        self.functions: dict[str, Function] = {}
        self.compilations: dict[str, Compilation] = {}
        self.programs: dict[str, Program] = {}
        self.retargeted: dict[str, Program] = {}  # programs compiled for targets; not in ``programs``
        self.targets: list[Target] = []
        self.forced_devices: int | None = None  # number of CPU devices that jaxscope made JAX create
        # JAX's settings by (process id, context id). A context id is unique only within its process.
        self.contexts: dict[tuple[str, str], Mapping[str, str]] = {}
        self.stale: list[StaleCapture] = []
        self.lost: list[Lost] = []  # missing parts that the events name; ``Run.degraded`` has more
        self.ranks_here: int | None = None  # processes of the job in this directory; model.load sets it
        self.exited: ev.ProgramExited | None = None
        self.stderr: list[ev.StderrWatched] = []  # empty: XLA's output was not recorded
        self.warnings: list[ev.CompilerWarned] = []
        self.sources: dict[str, frozenset[str]] = {}  # checksums of the user's source files, by file name
        self.copies: dict[str, frozenset[str]] = {}  # hashes of the copies of source files, by file name
        self.cells: dict[str, str] = {}  # the text of the cells of a notebook, by their names (``In[3]``)
        self.unknown: dict[str, int] = {}  # number of events of each kind that this version does not know
        self.damaged = 0  # number of lines of the logs that are not events
        self.going_on: bool | None = None  # whether the program still runs; model.load sets it
        self.alive_ns: int | None = None  # when its heartbeat last showed it alive; model.load sets it
        # Caches, each filled by the module that is named:
        self.comparisons: dict[str, Comparison] = {}  # by compilation id; model.causes
        self.earlier: dict[str, object] = {}  # index of the keys by function id; model.key_index
        self.shared = Shared()
        self.known: dict[str, tuple[int, Any]] = {}  # see records.cached_until_changed
        self.facts: dict[int, tuple[Key, object, Facts]] = {}  # flattened keys by id(key); model.key_index
        self.causes_of_leaves: dict[tuple[int, int, str], Any] = {}  # analysis.causes
        self.lengthened: dict[tuple[str, str], tuple[object, bool]] = {}  # model.growing_args
        self.results: dict[object, tuple[tuple[object, ...], Results]] = {}  # model.predictions
        # Returns the contents of the texts of a program, which are in files; model.load sets it.
        self.texts_of: Callable[[Program], Texts] = _no_texts
        # Returns the stored text with a hash, or None; model.load sets it.
        self.stored: Callable[[str], str | None] = lambda _: None
        # Returns the user's line and the opcode of each instruction of a program, by the name of the
        # instruction; model.load sets it.
        self.instructions_of: Callable[[Program], Mapping[str, Located]] = lambda _: {}
        self.unreadable: set[str] = set()  # requested texts that are missing or damaged; model.load sets it
        self._by_log: dict[str, Process] = {}
        self._by_pid: dict[int, Process] = {}
        self._calls: dict[tuple[str, int], Compilation] = {}
        self._cells: dict[str, dict[int, Counted]] = {}  # by log
        self._open: dict[str, Compilation] = {}  # compilations with a phase in progress

    def apply(self, event: ev.AnyEvent | ev.Unknown, log: str = "") -> Compilation | None:
        """Add ``event`` to the records. Return the compilation to which it belongs; None if it belongs to
        none.

        ``log`` is the name of the log that has the event. It tells processes apart that had the same pid, one
        after the other.
        """
        self.version += 1
        handler = _HANDLERS.get(type(event))
        if handler is None or isinstance(event, ev.Unknown):
            self._without_process(event)
            return None
        self.shared.of(event)
        process = self._process(event, log)
        if isinstance(event, Counted):
            if log and event.cell is not None:
                self._cells.setdefault(log, {})[event.cell] = event
        else:
            process.ended = None  # the process had run its exit handlers early, and continues
        found: Compilation | None = handler(self, process, event)
        if found is not None:
            found.function.version += 1
        return found

    def _without_process(self, event: ev.AnyEvent | ev.Unknown) -> None:
        """Add ``event``, which belongs to no process of the program, to the records: the end of the program,
        XLA's warnings on stderr, a compilation for a target (a machine given by ``--target``), or an unknown
        kind of event."""
        if isinstance(event, ev.Unknown):
            self.unknown[event.kind] = self.unknown.get(event.kind, 0) + 1
        elif isinstance(event, ev.ProgramExited):
            self.exited = event
        elif isinstance(event, ev.StderrWatched):
            self.stderr.append(event)
        elif isinstance(event, ev.CompilerWarned):
            self.warnings.append(event)
        elif isinstance(event, (ev.TargetCompiling, ev.TargetCompiled)):
            self._target(event)

    def count(self, log: str, numbers: Sequence[int]) -> None:
        """Update the counts that grow without events (calls, steps, fast-path misses). ``numbers`` are the
        contents of the counts file of the log with the name ``log``. The field ``cell`` of an event is an
        index into ``numbers``."""
        for event in grown(self._cells.get(log, {}), numbers):
            self.apply(event, log)

    def _process(self, event: ev.Event, log: str) -> Process:
        """Return the process that wrote ``event`` into the log with the name ``log``, and update its last
        time and its JAX process index. The process is created at its first event. Without ``log``, the pid
        decides."""
        process = self._by_log.get(log) if log else self._by_pid.get(event.pid)
        if process is None or (not log and isinstance(event, ev.RunStarted) and process.started is not None):
            name = str(event.pid)
            n = 1
            while name in self.processes:
                n += 1
                name = f"{event.pid}-{n}"
            process = Process(name, event.pid, first_ns=event.t_ns)
            self.processes[name] = process
            self._by_pid[event.pid] = process
            if log:
                self._by_log[log] = process
        if event.t_ns > process.last_ns:
            process.last_ns = event.t_ns
        if event.process_index is not None:
            process.index = event.process_index
        return process

    # -- one method for each kind of event: it adds ``event``, which ``process`` wrote, to the records, and
    # -- returns the compilation to which the event belongs, if there is one

    def _started(self, process: Process, event: ev.RunStarted) -> None:
        process.started = event
        process.first_ns = event.t_ns

    def _backend(self, process: Process, event: ev.BackendSeen) -> None:
        process.backend = event

    def _function_seen(self, process: Process, event: ev.FunctionSeen) -> None:
        self._function(event.function).seen = event

    def _source(self, process: Process, event: ev.SourceSeen) -> None:
        """Add the checksum of a source file, and the hash of its copy if it was copied. A notebook cell has
        its text instead."""
        self.sources[event.file] = self.sources.get(event.file, frozenset()) | {event.sha256}
        if event.text is not None:
            self.cells[event.file] = event.text
        if event.copy is not None:
            self.copies[event.file] = self.copies.get(event.file, frozenset()) | {event.copy}

    def _context(self, process: Process, event: ev.ContextSeen) -> None:
        """Remember the settings of JAX to which cache keys refer by the id ``event.context``."""
        self.contexts[process.id, event.context] = event.settings

    def _call_missed(self, process: Process, event: ev.Missed) -> Compilation:
        """Add the call that missed JAX's C++ fast path, with its function and its cache key."""
        c = self._calls.get((process.id, event.call))
        function = self._function(event.function or UNKNOWN_FUNCTION)
        if c is None:
            c = self._new(process, event.call, function, event.t_ns)
        elif c.missed is None and c.function is not function:
            self._move(c, function)  # phases were read before the event that introduces the call
        c.missed, c.key, c.entry = event, event.key, event.entry
        c.calls_then = function.counted_calls.get(process.id)
        _now(process, c)
        return c

    def _began(self, process: Process, event: ev.PhaseBegan) -> Compilation:
        c = self._call(process, event)
        c.phase, c.phase_ns = event.phase, event.t_ns
        self._open[c.id] = c
        if event.later:
            _now(process, c)
        return c

    def _traced(self, process: Process, event: ev.Traced) -> Compilation:
        c = self._call(process, event)
        c.traced = event
        self._ended(process, c, ev.TRACE, event, reached=True)
        return c

    def _reused(self, process: Process, event: ev.TraceReused) -> Compilation:
        """Record that JAX took an earlier trace from its cache. Its seconds count, but not as a trace."""
        c = self._call(process, event)
        self._ended(process, c, ev.TRACE, event, reached=False)
        return c

    def _lowered(self, process: Process, event: ev.Lowered) -> Compilation:
        c = self._call(process, event)
        c.lowered = event
        self._ended(process, c, ev.LOWER, event, reached=True)
        if event.program:
            program = self._program(event.program, c)
            program.lowered = event
            program.module = program.module or event.module
            program.target = event.platforms[0] if event.platforms else program.target
        return c

    def _compiled(self, process: Process, event: ev.Compiled) -> Compilation:
        c = self._call(process, event)
        c.compiled = event
        c.function.persistent_cache_hits += event.persistent_cache == "hit"
        self._ended(process, c, ev.COMPILE, event, reached=True)
        if event.program:
            program = self._program(event.program, c)
            program.compiled = event
            program.module = program.module or event.module
            if program.target is None and process.backend is not None:
                program.target = process.backend.platform or None
        return c

    def _memory_read(self, process: Process, event: ev.MemoryRead) -> Compilation:
        """Add the memory that a program needs to the earlier event of its compilation."""
        c = self._call(process, event)
        if c.compiled is not None:
            before, c.compiled = c.compiled, msgspec.structs.replace(c.compiled, memory=event.memory)
            program = self.programs.get(before.program or "")
            if program is not None and program.compiled is before:
                program.compiled = c.compiled
        return c

    def _targets(self, process: Process, event: ev.TargetsWanted) -> None:
        """Add the targets (machines given by ``--target``) for which functions are also compiled."""
        self.targets += [t for t in event.targets if t not in self.targets]
        self.forced_devices = event.forced if event.forced is not None else self.forced_devices

    def _retargeted(self, process: Process, event: ev.Retargeted) -> Compilation:
        """Add the program that was lowered for a target (``--target``), or was skipped."""
        c = self._call(process, event)
        id = event.program or f"{c.id}@{event.target}"  # a program that was skipped has no id
        program = self._for_target(id)
        program.retargeted(event)
        if event.of is not None and program.of is None:
            program.of = self._program(event.of, None)
        if c not in program.compilations:
            _insert(program.compilations, c)
        return c

    def _target(self, event: ev.TargetCompiling | ev.TargetCompiled) -> None:
        """Record that the compiler for a target (``--target``) began or ended with a program."""
        self._for_target(event.program).target_event(event)

    def _for_target(self, id: str) -> Program:
        """Return the program for a target (``--target``) with this id. If there is none, create it."""
        program = self.retargeted.get(id)
        if program is None:
            program = self.retargeted[id] = Program(id)
        return program

    def _argument_fate(self, process: Process, event: ev.ArgumentFate) -> Compilation | None:
        """Record which arguments of a call were still alive after it. None if the call is unknown."""
        c = self._calls.get((process.id, event.call))
        if c is not None:
            c.fate = event
        return c

    def _failed(self, process: Process, event: ev.PhaseFailed) -> Compilation:
        c = self._call(process, event)
        c.failed = event
        self._ended(process, c, event.phase, event, reached=False)
        return c

    def _text(self, process: Process, event: ev.ProgramText) -> None:
        """Add the name of the file with a text of a program (StableHLO or HLO), and its size."""
        program = self._program(event.program, None)
        program.texts[event.stage] = event.blob
        program.text_bytes[event.stage] = event.bytes

    def _misses_counted(self, process: Process, event: ev.MissesCounted) -> None:
        """Update the number of fast-path misses of a function that have no event of their own."""
        counted = self._function(event.function).counted_misses
        counted[process.id] = max(event.count, counted.get(process.id, 0))

    def _step(self, process: Process, event: ev.Step) -> None:
        """Record that the program ended a step by ``jaxscope.step()``."""
        process.step = max(event.index, process.step or 0)
        if process.first_step is None:
            process.first_step = event.index

    def _step_timed(self, process: Process, event: ev.StepTimed) -> None:
        """Add the time at which a step ended, with the seconds of all transfers until then."""
        every = process.transfers.items()
        spent = {key: t.step_seconds for key, t in every if 0 < t.step_seconds < MOST_SECONDS}
        process.step_times.append(StepTime(event, spent))

    def _watched(self, process: Process, event: ev.Watched) -> None:
        function = self._function(event.function)
        function.watched = True
        function.step = function.step or event.step

    def _called(self, process: Process, event: ev.Called) -> None:
        """Update the number of calls of a watched function. ``process.calls`` is replaced, not changed,
        because compilations keep the old mapping."""
        counted = self._function(event.function).counted_calls
        counted[process.id] = max(event.count, counted.get(process.id, 0))
        process.calls = {**process.calls, event.function: event.count}

    def _numpy_bytes(self, process: Process, event: ev.Brought) -> None:
        """Update how many calls of a watched function passed a number of bytes in NumPy arguments. If the
        bytes could not be read, the numbers of this process become None."""
        brought = self._function(event.function).brought
        if event.lost:
            brought[process.id] = None
        elif (figures := brought.setdefault(process.id, {})) is not None:
            figures[event.bytes] = max(event.count, figures.get(event.bytes, 0))

    def _degraded(self, process: Process, event: ev.Degraded) -> None:
        lost = Lost(event.seam, event.reason)
        if lost not in self.lost:  # several processes may report the same
            self.lost.append(lost)

    def _capture_changed(self, process: Process, event: ev.CaptureChanged) -> None:
        """Add a value that a watched function read in its trace and that has changed since."""
        known = StaleCapture(self._function(event.function), process, _without_words(event))
        self.stale.append(known)

    def _capture_renewed(self, process: Process, event: ev.CaptureRenewed) -> None:
        """Record that a new trace uses the changed values that an older trace had read."""
        for stale in self.stale:
            seen = stale.changed
            if stale.process is process and (seen.function, seen.call) == (event.function, event.call):
                stale.renewed = stale.renewed or event

    def _main_thread(self, process: Process, event: ev.MainThreadSeen) -> None:
        process.main_thread = event

    def _line_times(self, process: Process, event: ev.LineTimes) -> None:
        process.line_times = event

    def _ranks_compiled(self, process: Process, event: ev.RanksCompiled) -> None:
        process.ranks_compiled.append(event)

    def _died(self, process: Process, event: ev.Died) -> None:
        process.died = event

    def _arrays(self, process: Process, event: ev.ArraysSeen) -> None:
        process.snapshots.append(event)

    def _profiled(self, process: Process, event: ev.Profiled) -> None:
        process.profiles.append(event)

    def _transferred(self, process: Process, event: ev.Transferred) -> None:
        """Replace the earlier event of the same line, direction and kind, unless that has a larger count.
        ``process.first_seconds`` keeps the seconds of the first transfer, if they are known."""
        site = event.site
        key = (event.direction, event.via, site.file if site else "", site.line if site else 0)
        before = process.transfers.get(key)
        if before is None and event.seconds and event.first_ns == event.last_ns:
            process.first_seconds[key] = event.seconds
        if before is None or event.count >= before.count:
            process.transfers[key] = event

    def _rounded(self, process: Process, event: ev.Rounded) -> None:
        process.rounded.append(event)

    def _run_ended(self, process: Process, event: ev.RunEnded) -> None:
        process.ended = event

    def _recording_stopped(self, process: Process, event: ev.RecordingStopped) -> None:
        process.stopped = event
        lost = Lost("log", f"the recording of process {process.pid} stopped: {event.reason}")
        if lost not in self.lost:
            self.lost.append(lost)

    # -- records, created on demand: the event that introduces one may be missing -----------------

    def _function(self, id: str) -> Function:
        """Return the function with this id, and increase its version. If there is none, create it with the
        names that the id contains."""
        function = self.functions.get(id)
        if function is None:
            function = self.functions[id] = Function(id, unseen(id))
        function.version += 1  # the caller has an event about this function
        return function

    def _call(self, process: Process, event: Any) -> Compilation:
        """Return the call to which ``event`` belongs. If the log does not have the call, create it with an
        unknown function."""
        c = self._calls.get((process.id, event.call))
        if c is None:
            c = self._new(process, event.call, self._function(UNKNOWN_FUNCTION), event.t_ns)
        return c

    def _new(self, process: Process, call: int, function: Function, t_ns: int) -> Compilation:
        c = Compilation(f"{process.id}.{call}", process, call, function, t_ns)
        self.compilations[c.id] = self._calls[process.id, call] = c
        _insert(function.compilations, c)
        return c

    def _move(self, c: Compilation, function: Function) -> None:
        """Assign the call ``c`` to another function, with the phases that it has completed. The placeholder
        for an unknown function is deleted when it is empty."""
        old = c.function
        old.version += 1
        old.compilations.remove(c)
        c.function = function
        _insert(function.compilations, c)
        for name, bit in (("traces", 1), ("lowerings", 2), ("compiled", 4)):
            n = int(bool(c.reached_phases & bit))
            setattr(old, name, getattr(old, name) - n)
            setattr(function, name, getattr(function, name) + n)
        old.persistent_cache_hits -= c.persistent_hit
        function.persistent_cache_hits += c.persistent_hit
        if old.id == UNKNOWN_FUNCTION and not (
            old.compilations or old.counted_misses or old.counted_calls or old.watched
        ):
            del self.functions[UNKNOWN_FUNCTION]

    def _program(self, id: str, c: Compilation | None) -> Program:
        """Return the program with this id. If there is none, create it. If ``c`` is given, it becomes one of
        the program's compilations."""
        program = self.programs.get(id)
        if program is None:
            program = self.programs[id] = Program(id)
        if c is not None and c.program != id:
            c.program = id
            _insert(program.compilations, c)
        return program

    def _ended(self, process: Process, c: Compilation, phase: str, event: Any, *, reached: bool) -> None:
        """Record the end of a phase of call ``c`` of ``process``.

        Args:
          phase: trace, lower or compile.
          event: the event of the end, with the seconds of the phase.
          reached: True: the phase ran and succeeded. False: it failed, or an earlier trace was used.
        """
        if c.phase == phase:
            c.phase = None
            self._open.pop(c.id, None)
        bit = _BIT.get(phase, 0)
        function = c.function
        if reached and not c.reached_phases & bit:
            c.reached_phases |= bit
            function.traces += bit == 1
            function.lowerings += bit == 2
            function.compiled += bit == 4
        seconds = event.seconds
        if seconds is None or not 0 <= seconds < MOST_SECONDS or not bit:
            return
        process.phases.add(event.t_ns - int(seconds * 1e9), event.t_ns)
        own = process.threads.own_seconds(event.thread, c.call, event.t_ns, seconds)
        if bit == 1:
            c.trace_seconds = (c.trace_seconds or 0.0) + own
        elif bit == 2:
            c.lower_seconds = (c.lower_seconds or 0.0) + own
        else:
            c.compile_seconds = (c.compile_seconds or 0.0) + own


def _no_texts(_: Program) -> Texts:
    """Return empty texts, for a run of which no files are read."""
    from jaxscope.analysis.programs import NOTHING

    return NOTHING


def _without_words(event: ev.CaptureChanged) -> ev.CaptureChanged:
    """Return ``event`` in today's format. In older versions, the reader is a part of ``where`` (``global of
    helper``), and ``another`` precedes ``after`` if the old value has the same text."""
    where, _, reader = event.where.partition(" of ")
    after = event.before if event.after == f"another {event.before}" else event.after
    return msgspec.structs.replace(event, where=where, reader=event.reader or reader or None, after=after)


def _now(process: Process, c: Compilation) -> None:
    """Store in call ``c`` the numbers of steps and of calls that its ``process`` has counted so far. They
    later show in which step ``c`` was."""
    c.marks, c.calls = process.step or 0, process.calls


def _insert(compilations: list[Compilation], c: Compilation) -> None:
    """Insert the call ``c`` into ``compilations``, which is in order of time. The place may be before the
    end, because the logs of several processes are read one after the other."""
    key = (c.t_ns, c.process.pid, c.call)
    at = len(compilations)
    while at > 0:
        before = compilations[at - 1]
        if (before.t_ns, before.process.pid, before.call) <= key:
            break
        at -= 1
    compilations.insert(at, c)


_HANDLERS: dict[type, Callable[..., Any]] = {
    ev.RunStarted: Fold._started,
    ev.BackendSeen: Fold._backend,
    ev.FunctionSeen: Fold._function_seen,
    ev.ContextSeen: Fold._context,
    ev.Missed: Fold._call_missed,
    ev.PhaseBegan: Fold._began,
    ev.Traced: Fold._traced,
    ev.TraceReused: Fold._reused,
    ev.Lowered: Fold._lowered,
    ev.Compiled: Fold._compiled,
    ev.PhaseFailed: Fold._failed,
    ev.ProgramText: Fold._text,
    ev.MissesCounted: Fold._misses_counted,
    ev.Step: Fold._step,
    ev.StepTimed: Fold._step_timed,
    ev.Watched: Fold._watched,
    ev.Called: Fold._called,
    ev.Brought: Fold._numpy_bytes,
    ev.ArgumentFate: Fold._argument_fate,
    ev.MemoryRead: Fold._memory_read,
    ev.CaptureChanged: Fold._capture_changed,
    ev.CaptureRenewed: Fold._capture_renewed,
    ev.ArraysSeen: Fold._arrays,
    ev.Transferred: Fold._transferred,
    ev.Rounded: Fold._rounded,
    ev.Degraded: Fold._degraded,
    ev.Died: Fold._died,
    ev.RunEnded: Fold._run_ended,
    ev.RecordingStopped: Fold._recording_stopped,
    ev.TargetsWanted: Fold._targets,
    ev.Retargeted: Fold._retargeted,
    ev.SourceSeen: Fold._source,
    ev.MainThreadSeen: Fold._main_thread,
    ev.LineTimes: Fold._line_times,
    ev.RanksCompiled: Fold._ranks_compiled,
    ev.Profiled: Fold._profiled,
}


def grown(cells: Mapping[int, Counted], numbers: Sequence[int]) -> list[Counted]:
    """Return the events of the counters that are larger in ``numbers``, the contents of a counts file, with
    the new count.

    ``cells`` has the latest event of each counter, by the index of the counter in ``numbers``.
    """
    found = []
    for cell, event in cells.items():
        field = "index" if isinstance(event, ev.Step) else "count"
        if 0 <= cell < len(numbers) and numbers[cell] > getattr(event, field):
            found.append(msgspec.structs.replace(event, **{field: numbers[cell]}))
    return found
