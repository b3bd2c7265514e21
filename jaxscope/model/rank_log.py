"""Read the logs of one rank (process of a multi-process job) quickly, for a comparison of all ranks.

A job may have a thousand ranks. So only the fields of events that are compared are decoded, and equal texts
are decoded once. The result is one ``Rank``. This takes a tenth of the time that ``model.fold`` needs for all
records.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from jaxscope.analysis import sharding
from jaxscope.log import reader
from jaxscope.log.store import RunDir
from jaxscope.model.fold import UNKNOWN_FUNCTION, grown
from jaxscope.model.intervals import MOST_SECONDS, OwnSeconds
from jaxscope.model.load import alive_ns, state
from jaxscope.model.records import Function, unseen
from jaxscope.model.run import main_of
from jaxscope.schema import events as ev
from jaxscope.schema.counters import Counted
from jaxscope.schema.keys import Device, Frame, Key, Memory

# JAX waits at the end of a program until all ranks have reached their ends. A rank that waited longer than
# this number of nanoseconds (10 s) left early.
LEFT_EARLY_NS = 10_000_000_000
_AHEAD = "aot"
_TRACED, _LOWERED, _COMPILED = 1, 2, 4
_BIT = {ev.TRACE: _TRACED, ev.LOWER: _LOWERED, ev.COMPILE: _COMPILED}


class Seen(msgspec.Struct, frozen=True, gc=False):
    """One compilation in a rank (process of a job), of a program that runs on several processes.

    Attributes:
      program: a text that is equal in all ranks that compiled the same program: the hash of the lowered
        program, or, if that is unknown, the module name with the shapes and dtypes of the arguments.
      name, function: name and id of the function.
      compilation: id of the compilation in the recording of the rank.
      number: number of the compilation among those of the function: 2 for ``step#2``.
      site: the user's line that made the call; None: unknown.
      defined: the line at which the function is defined; None: unknown.
      key: the cache key of the call; None: not recorded.
      step: the step of the rank's training loop at the call; None: steps are not counted.
      t_ns: when the program was compiled (or lowered, if it is still being compiled), in ns since the epoch.
      processes: JAX's indices of the processes on whose devices the program runs.
      ordered: whether the program was compiled for a call in the main thread. Compilations in other threads
        or ahead of time are compared without their order.
      stablehlo, hlo: names of the files with the texts of the program; None: not recorded.
      cache: the persistent cache: hit, miss or off; None: unknown, or the compilation is not finished.
      settings: JAX's settings that are part of the cache key, by name; None: not recorded.
    """

    program: str
    name: str
    function: str
    compilation: str
    number: int | None
    site: Frame | None
    defined: Frame | None
    key: Key | None
    step: int | None
    t_ns: int
    processes: frozenset[int]
    ordered: bool
    stablehlo: str | None
    hlo: str | None
    cache: str | None
    settings: Mapping[str, str] | None = None


class Rank(msgspec.Struct, eq=False):
    """What one rank (process of the job) did so far. Times are in nanoseconds since the epoch.

    Attributes:
      number: JAX's process index, or else the rank that the launcher gave to the process.
      state: ``running``, ``exited``, ``stopped`` or ``lost`` (see ``load.state``).
      seen: the rank's compilations of programs that run on several processes, in order of time, those in
        progress last.
      began_ns, last_ns: when the recording began, and when the rank was last known to be alive.
      left_ns: when the rank's program ended or was killed; None: the program still runs, or this is unknown.
      left: whether the program came to its end by itself, and the process was still alive more than
        LEFT_EARLY_NS nanoseconds (10 s) after that end.
      code: the exit code, negative for a signal; None: unknown.
      cut: whether a signal ended the process before its program came to its end.
      died, died_at: class and line of the uncaught exception; None: there was none, or unknown.
      steps: the number of steps marked by ``jaxscope.step()``, or else of calls of the watched function with
        the most calls; None: neither is counted.
      trace_seconds, lower_seconds, compile_seconds: sums over all compilations of the rank.
      memory: bytes that the largest program of the rank needs on one device for arguments, results and
        temporaries; None: unknown.
      compiled: number of compilations.
      slowest: (user's line, name of the function, seconds) of the slowest compilation; None: there is none.
      look: the event that names the line at which the main thread is. None: there is no such event, or the
        main process recorded another event after it.
      phase: (trace, lower or compile; user's line; when it began) of the phase that is in progress, or was
        when the process was killed; None: there is none.
    """

    number: int
    directory: RunDir
    state: str
    seen: list[Seen] = []
    began_ns: int | None = None
    left_ns: int | None = None
    last_ns: int | None = None
    left: bool = False
    code: int | None = None
    cut: bool = False
    died: str | None = None
    died_at: Frame | None = None
    steps: int | None = None
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    memory: int | None = None
    compiled: int = 0
    slowest: tuple[Frame | None, str, float] | None = None
    look: ev.MainThreadSeen | None = None
    phase: tuple[str, Frame | None, int] | None = None

    @property
    def seconds(self) -> float:
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


# The fields that are decoded, by type of event. All fields of the types in _WHOLE are decoded. Of all other
# types, only the fields that every event has (time, pid, ...) are decoded. msgspec skips the other fields.
_PARTS: dict[type, tuple[str, ...]] = {
    ev.BackendSeen: ("devices", "process_count"),
    ev.Missed: ("call", "function", "entry", "site", "key", "step"),
    ev.Traced: ("call", "seconds"),
    ev.TraceReused: ("call", "seconds"),
    ev.Lowered: ("call", "seconds", "program", "num_partitions"),
    ev.Compiled: ("call", "seconds", "program", "module", "persistent_cache", "memory", "devices"),
    ev.ArraysSeen: ("why",),
}
_WHOLE = (
    ev.RunStarted, ev.FunctionSeen, ev.ContextSeen, ev.PhaseBegan, ev.MemoryRead, ev.PhaseFailed,
    ev.ProgramText, ev.Step, ev.Called, ev.Died, ev.MainThreadSeen, ev.RunEnded, ev.RecordingStopped,
    ev.ProgramExited,
)  # fmt: skip
# Fields that are equal in many events. They are left as JSON; class Known decodes each different text once.
_UNDECODED = ((ev.Missed, "key"), (ev.BackendSeen, "devices"))


def _part(kind: type) -> type:
    """Return a type that decodes the events of the event type ``kind``, but only those of their fields that
    are needed to compare ranks (processes of a job)."""
    fields = {f.name: f for f in msgspec.structs.fields(kind)}
    names = ("t_ns", "pid", "thread", "process_index", *_PARTS.get(kind, ()))
    return msgspec.defstruct(
        f"{kind.__name__}Part",
        [
            (n, msgspec.Raw, msgspec.field(default=msgspec.Raw(b"null")))
            if (kind, n) in _UNDECODED
            else (n, fields[n].type, msgspec.field(default=None if n == "site" else fields[n].default))
            for n in names
        ],
        tag_field="kind",
        tag=kind.__name__,
        frozen=True,
        gc=False,
    )


_PART_OF = {kind: kind if kind in _WHOLE else _part(kind) for kind in get_args(ev.AnyEvent)}
_decoder: reader.Decoder = msgspec.json.Decoder(functools.reduce(operator.or_, _PART_OF.values()))


class _Call(msgspec.Struct, eq=False):
    """A call that missed JAX's C++ fast path: only those fields of ``records.Compilation`` that are needed to
    compare ranks (processes of a job)."""

    call: int
    t_ns: int
    missed: bool = False  # whether the Missed event of the call has been read
    function: str = UNKNOWN_FUNCTION
    site: Frame | None = None
    key: Key | None = None
    ahead: bool = False  # whether it was lowered ahead of time
    step: int | None = None
    thread: int = 0
    phase: str | None = None
    phase_ns: int = 0
    reached: int = 0
    failed: bool = False
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0
    program: str | None = None
    lowered: Any = None
    compiled: Any = None
    memory: Memory | None = None
    number: int | None = None  # 2 for ``step#2``; RankLog.rank sets it

    @property
    def seconds(self) -> float:
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


class Known:
    """A cache of values that were decoded from JSON text. Many events and ranks (processes of a job) have
    equal texts, and each different text is decoded only once."""

    def __init__(self) -> None:
        self._keys: dict[bytes, Key | None] = {}
        self._devices: dict[bytes, tuple[tuple[int, int], ...]] = {}
        self._frames: dict[Frame, Frame] = {}

    def key(self, text: msgspec.Raw) -> Key | None:
        """Return the cache key that ``text`` encodes. None if ``text`` is JSON's null or damaged."""
        data = bytes(text)
        if data not in self._keys:
            self._keys[data] = _decoded(data, Key | None)
        return self._keys[data]

    def process_of(self, text: msgspec.Raw) -> tuple[tuple[int, int], ...]:
        """Return (id of the device, index of its process) for each device of the JSON list ``text``; empty if
        ``text`` is damaged."""
        data = bytes(text)
        if data not in self._devices:
            devices = _decoded(data, list[Device]) or []
            self._devices[data] = tuple((d.id, d.process_index) for d in devices)
        return self._devices[data]

    def frame(self, frame: Frame | None) -> Frame | None:
        """Return the ``Frame`` object (source line) to keep for ``frame``: the first equal one that was
        passed. So equal lines take memory only once. None if ``frame`` is None."""
        return frame if frame is None else self._frames.setdefault(frame, frame)


def _decoded(data: bytes, kind: Any) -> Any:
    """Return the value of type ``kind`` that the JSON text ``data`` encodes. None if ``data`` is damaged."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None


class _Process:
    """One recorded process of a rank (process of a job): the rank itself, or a child process that it started.
    Only what is needed to compare ranks is kept. Each process writes one log."""

    def __init__(self, known: Known) -> None:
        self.id = ""  # empty until an event of the process is read
        self.pid = 0
        self.first_ns = self.last_ns = 0
        self.index: int | None = None
        self.started: ev.RunStarted | None = None
        self.ended: ev.RunEnded | None = None
        self.stopped: ev.RecordingStopped | None = None
        self.exited: ev.ProgramExited | None = None
        self.died: ev.Died | None = None
        self.look: ev.MainThreadSeen | None = None
        self.process_of: tuple[tuple[int, int], ...] | None = None
        self.process_count: int | None = None
        self.step: int | None = None
        self.counted: dict[str, int] = {}  # calls of watched functions
        self.exits: list[int] = []
        self.contexts: dict[str, Mapping[str, str]] = {}
        self.calls: dict[int, _Call] = {}
        self.functions: dict[str, ev.FunctionSeen] = {}
        self.texts: dict[str, dict[str, str]] = {}  # by program: blobs by stage
        self.threads = OwnSeconds()
        self._cells: dict[int, Any] = {}
        self._known = known

    def take(self, events: Sequence[Any]) -> None:
        """Add ``events``, the next events of the log."""
        for event in events:
            handler = _HANDLERS.get(type(event))
            if handler is None:
                if isinstance(event, ev.ProgramExited):
                    self.exited = event
                continue
            t_ns = event.t_ns
            if not self.id:
                self.pid, self.first_ns, self.id = event.pid, t_ns, str(event.pid)
            if t_ns > self.last_ns:
                self.last_ns = t_ns
            if event.process_index is not None:
                self.index = event.process_index
            if self.ended is not None and type(event) not in _COUNTED:
                self.ended = None  # the process had run its exit handlers early, and continues
            handler(self, event)

    def count(self, numbers: Sequence[int]) -> bool:
        """Update the counts (steps, calls) that grow without events. ``numbers`` are the contents of the
        counts file of the process (see ``log.counts``). Return whether a count grew."""
        ahead = grown(self._cells, numbers)
        for event in ahead:
            _HANDLERS[type(event)](self, event)
        return bool(ahead)

    def _call(self, event: Any) -> _Call:
        """Return the call to which ``event`` belongs. The call is created at its first event."""
        c = self.calls.get(event.call)
        if c is None:
            c = self.calls[event.call] = _Call(event.call, event.t_ns)
        return c

    def _started(self, event: ev.RunStarted) -> None:
        self.started, self.first_ns = event, event.t_ns

    def _backend(self, event: Any) -> None:
        self.process_of, self.process_count = self._known.process_of(event.devices), event.process_count

    def _function(self, event: ev.FunctionSeen) -> None:
        self.functions[event.function] = event

    def _context(self, event: ev.ContextSeen) -> None:
        self.contexts[event.context] = event.settings

    def _missed(self, event: Any) -> None:
        c = self._call(event)
        c.missed, c.function = True, event.function or UNKNOWN_FUNCTION
        c.ahead, c.step, c.thread = event.entry == _AHEAD, event.step, event.thread
        c.site, c.key = self._known.frame(event.site), self._known.key(event.key)

    def _began(self, event: ev.PhaseBegan) -> None:
        c = self._call(event)
        c.phase, c.phase_ns = event.phase, event.t_ns

    def _traced(self, event: Any) -> None:
        self._ended(self._call(event), ev.TRACE, event, _TRACED)

    def _reused(self, event: Any) -> None:
        self._ended(self._call(event), ev.TRACE, event, 0)

    def _lowered(self, event: Any) -> None:
        c = self._call(event)
        c.lowered, c.program = event, event.program or c.program
        self._ended(c, ev.LOWER, event, _LOWERED)

    def _compiled(self, event: Any) -> None:
        c = self._call(event)
        c.compiled, c.program, c.memory = event, event.program or c.program, event.memory
        self._ended(c, ev.COMPILE, event, _COMPILED)

    def _memory(self, event: ev.MemoryRead) -> None:
        c = self._call(event)
        c.memory = event.memory if c.compiled is not None else None

    def _failed(self, event: ev.PhaseFailed) -> None:
        c = self._call(event)
        c.failed = True
        self._ended(c, event.phase, event, 0)

    def _ended(self, c: _Call, phase: str, event: Any, reached: int) -> None:
        """Record the end of the phase ``phase`` (trace, lower or compile) of call ``c``, with the seconds
        from ``event``, minus those of other calls' phases inside it. ``reached`` is the bit of the phase (1
        traced, 2 lowered, 4 compiled), or 0 if it did not succeed."""
        if c.phase == phase:
            c.phase = None
        c.reached |= reached
        seconds = event.seconds
        if seconds is None or not 0 <= seconds < MOST_SECONDS:
            return
        own = self.threads.own_seconds(event.thread, event.call, event.t_ns, seconds)
        if phase == ev.TRACE:
            c.trace_seconds += own
        elif phase == ev.LOWER:
            c.lower_seconds += own
        elif phase == ev.COMPILE:
            c.compile_seconds += own

    def _text(self, event: ev.ProgramText) -> None:
        self.texts.setdefault(event.program, {})[event.stage] = event.blob

    def _step(self, event: ev.Step) -> None:
        self.step = max(event.index, self.step or 0)
        self._cell(event)

    def _called(self, event: ev.Called) -> None:
        self.counted[event.function] = event.count
        self._cell(event)

    def _cell(self, event: ev.Step | ev.Called) -> None:
        if event.cell is not None:
            self._cells[event.cell] = event

    def _arrays(self, event: Any) -> None:
        if event.why == "exit":  # taken before JAX waits for the other ranks
            self.exits.append(event.t_ns)

    def _died(self, event: ev.Died) -> None:
        self.died = event

    def _main_thread(self, event: ev.MainThreadSeen) -> None:
        self.look = event

    def _run_ended(self, event: ev.RunEnded) -> None:
        self.ended = event

    def _stopped(self, event: ev.RecordingStopped) -> None:
        self.stopped = event

    def _other(self, event: Any) -> None:
        """Ignore an event of a kind that is not needed to compare ranks (processes of a job)."""


_READ: dict[type, Callable[[_Process, Any], None]] = {
    ev.RunStarted: _Process._started,
    ev.BackendSeen: _Process._backend,
    ev.FunctionSeen: _Process._function,
    ev.ContextSeen: _Process._context,
    ev.Missed: _Process._missed,
    ev.PhaseBegan: _Process._began,
    ev.Traced: _Process._traced,
    ev.TraceReused: _Process._reused,
    ev.Lowered: _Process._lowered,
    ev.Compiled: _Process._compiled,
    ev.MemoryRead: _Process._memory,
    ev.PhaseFailed: _Process._failed,
    ev.ProgramText: _Process._text,
    ev.Step: _Process._step,
    ev.Called: _Process._called,
    ev.ArraysSeen: _Process._arrays,
    ev.Died: _Process._died,
    ev.MainThreadSeen: _Process._main_thread,
    ev.RunEnded: _Process._run_ended,
    ev.RecordingStopped: _Process._stopped,
}
_OF_OTHERS = (ev.ProgramExited, ev.StderrWatched, ev.CompilerWarned, ev.TargetCompiling, ev.TargetCompiled)
_HANDLERS = {
    part: _READ.get(kind, _Process._other) for kind, part in _PART_OF.items() if kind not in _OF_OTHERS
}
_COUNTED = {_PART_OF[kind] for kind in get_args(Counted)}


class RankLog:
    """Reads the logs of one rank (process of a job). Each call of ``poll`` reads what is new in them.

    Args:
      known: a cache of decoded values that all ranks share.

    Attributes:
      exited: the event about the end of the rank's program; None: it still runs, or this is unknown.
    """

    def __init__(self, directory: RunDir, known: Known) -> None:
        self.directory = directory
        self.exited: ev.ProgramExited | None = None
        self._reader = reader.Reader(directory, _decoder)
        self._known = known
        self._processes: dict[str, _Process] = {}

    def poll(self) -> bool:
        """Read the new events and counts. Return whether there were any."""
        news = False
        for log, events in self._reader.pieces():
            process = self._processes.get(log)
            if process is None:
                process = self._processes[log] = _Process(self._known)
            process.take(events)
            self.exited = process.exited or self.exited
            news = news or bool(events)
        for log, numbers in self._reader.counts().items():
            if log in self._processes:
                news = self._processes[log].count(numbers) or news
        return news

    def logs(self) -> list[tuple[str, _Process]]:
        """Return (name of the log, process) for each log that has events."""
        return [(log, p) for log, p in self._processes.items() if p.id]

    @property
    def main(self) -> _Process | None:
        """Return the process of this rank that the user started, or if it was not recorded, the first of its
        child processes. None if no process was recorded."""
        return main_of([p for _, p in self.logs()], self.exited)

    @property
    def index(self) -> int | None:
        """Return ``jax.process_index()`` of the rank. None if it is unknown, or if JAX knows only one
        process."""
        main = self.main
        return main.index if main is not None and (main.process_count or 1) > 1 else None

    @property
    def last_ns(self) -> int | None:
        """Return when the rank was last known to be alive (ns since the epoch). None if the rank has no
        events."""
        return self._last_ns(state(self, self.directory))

    def _last_ns(self, how: str) -> int | None:
        """Return when the rank was last known to be alive (ns since the epoch). None if the rank has no
        events. ``how`` is the rank's state (see ``load.state``)."""
        times = [p.last_ns for _, p in self.logs()]
        if self.exited is not None:
            times.append(self.exited.t_ns)
        elif times and (alive := alive_ns(how, self.directory)) is not None:
            times.append(alive)
        return max(times, default=None)

    def rank(self) -> Rank:
        """Return what the rank (process of a job) did so far, as a Rank with the number 0. The caller must
        then set the number, because it depends on all ranks."""
        main, how = self.main, state(self, self.directory)
        rank = Rank(0, self.directory, how, last_ns=self._last_ns(how))
        processes = [p for _, p in self.logs()]
        names = _Names(processes)
        _number(processes)
        self._add_up(rank, processes, names)
        ends: list[int] = []
        if main is not None:
            rank.began_ns = main.first_ns
            rank.steps = main.step if main.step is not None else max(main.counted.values(), default=None)
            ends = [*([main.ended.t_ns] if main.ended is not None else []), *main.exits]
            if main.died is not None:
                rank.died = main.died.error
                rank.died_at = main.died.stack[0] if main.died.stack else None
            rank.seen = list(self._seen(main, names))
            rank.phase = self._phase(main)
            if main.look is not None and main.look.t_ns >= main.last_ns:
                rank.look = main.look
        elif processes:
            rank.began_ns = min((p.first_ns for p in processes if p.first_ns), default=None)
        # At the end of its program, a process waits for the other ranks.
        rank.left = bool(ends) and (rank.last_ns or 0) - min(ends) > LEFT_EARLY_NS
        if self.exited is not None:
            rank.code = -self.exited.signal if self.exited.signal is not None else self.exited.exit_code
            rank.cut = self.exited.signal is not None and not ends
            ends.append(self.exited.t_ns)
        rank.left_ns = min(ends, default=None)
        return rank

    def _add_up(self, rank: Rank, processes: Sequence[_Process], names: _Names) -> None:
        """Set the fields of ``rank`` that are sums or maxima over its ``processes``: seconds, memory, ...
        ``names`` finds a function by its id."""
        calls = [c for p in processes for c in p.calls.values()]
        rank.trace_seconds = math.fsum(c.trace_seconds for c in calls)
        rank.lower_seconds = math.fsum(c.lower_seconds for c in calls)
        rank.compile_seconds = math.fsum(c.compile_seconds for c in calls)
        rank.compiled = sum(c.reached >= _COMPILED for c in calls)
        sizes = [_bytes(c.memory) for c in calls if c.program and c.memory is not None]
        rank.memory = max((b for b in sizes if b is not None), default=None)
        slow = max(calls, key=lambda c: c.seconds, default=None)
        if slow is not None and slow.seconds > 0:
            rank.slowest = slow.site, names.of(slow).display_name, slow.seconds

    def _phase(self, main: _Process) -> tuple[str, Frame | None, int] | None:
        """Return the phase of ``main`` in progress, the latest begun: (trace, lower or compile; user's line;
        begin in ns since the epoch). None if no phase is in progress, or if the recording of ``main`` has
        ended."""
        if main.ended is not None or main.stopped is not None:
            return None
        c = max(
            (c for c in main.calls.values() if c.phase is not None), key=lambda c: c.phase_ns, default=None
        )
        if c is None or c.phase is None:
            return None
        return c.phase, c.site, c.phase_ns

    def _seen(self, main: _Process, names: _Names) -> Iterator[Seen]:
        """Yield the compilations of programs for the devices of several processes, in order of time.
        Compilations in progress come last, and only if the program is for all devices: other devices are
        unknown until the end. ``main`` is the process of the rank that the user started; ``names`` finds the
        names of functions."""
        if main.process_of is None:
            return
        of_devices = functools.partial(_processes, process_of=main.process_of)
        sets: dict[str | None, frozenset[int]] = {}
        found: list[tuple[bool, int, int, frozenset[int], _Call]] = []
        for c in main.calls.values():
            if c.compiled is not None:
                devices = c.compiled.devices or ""
                if devices not in sets:
                    sets[devices] = of_devices(devices)
                if len(sets[devices]) > 1:
                    found.append((False, c.compiled.t_ns, c.call, sets[devices], c))
            elif c.phase == ev.COMPILE and c.program and c.lowered is not None:
                # The devices are known before the end of the compilation only if the program is for all.
                every = of_devices(None)
                if c.lowered.num_partitions == len(main.process_of) and len(every) > 1:
                    found.append((True, c.lowered.t_ns, c.call, every, c))
        for *_, processes, c in sorted(found, key=lambda each: each[:3]):
            yield self._compilation(main, names, c, processes)

    def _compilation(self, main: _Process, names: _Names, c: _Call, processes: frozenset[int]) -> Seen:
        """Return the compilation ``c`` of the process ``main`` in the form that is compared between ranks.
        ``processes`` are the indices of the processes on whose devices the program runs. ``names`` finds the
        names of functions."""
        compiled, key = c.compiled, c.key
        function = names.of(c)
        texts = names.texts(c.program)
        return Seen(
            program=c.program or f"{compiled.module} {_shapes(key)}",
            name=function.display_name,
            function=function.id,
            compilation=f"{main.id}.{c.call}",
            number=c.number,
            site=c.site,
            defined=function.defined,
            key=key,
            step=c.step,
            t_ns=compiled.t_ns if compiled is not None else c.lowered.t_ns,
            processes=processes,
            ordered=not c.ahead and (not c.missed or main.started is None or c.thread == main.started.thread),
            stablehlo=texts.get("stablehlo"),
            hlo=texts.get("hlo"),
            cache=compiled.persistent_cache if compiled is not None else None,
            settings=names.settings(main, key.context) if key is not None else None,
        )


class _Names:
    """Looks up functions, program texts and settings by the ids that events have, in all logs of a rank."""

    def __init__(self, processes: Sequence[_Process]) -> None:
        self._processes = processes
        self._functions: dict[str, Function] = {}
        self._settings: dict[tuple[str, str], Mapping[str, str] | None] = {}

    def of(self, c: _Call) -> Function:
        """Return the function that call ``c`` called."""
        id = c.function
        found = self._functions.get(id)
        if found is None:
            seen = next((p.functions[id] for p in self._processes if id in p.functions), None) or unseen(id)
            found = self._functions[id] = Function(id, seen)
        return found

    def settings(self, process: _Process, context: str | None) -> Mapping[str, str] | None:
        """Return the settings of JAX that have the id ``context`` in the cache keys of ``process``. None if
        they were not recorded."""
        if context is None:
            return None
        if (process.id, context) not in self._settings:
            # If the process was forked, the events of its parent may have the settings.
            by_pid = {p.pid: p for p in self._processes}
            holder = process
            for _ in by_pid:
                parent = holder.started.parent if holder.started is not None else None
                if context in holder.contexts or parent is None:
                    break
                holder = by_pid.get(parent, holder)
            self._settings[process.id, context] = holder.contexts.get(context)
        return self._settings[process.id, context]

    def texts(self, program: str | None) -> Mapping[str, str]:
        """Return the names of the files with the texts of the program with the id ``program``, by stage:
        ``{"stablehlo": ..., "hlo": ...}``. Texts that were not recorded are left out."""
        if program is None:
            return {}
        return next((p.texts[program] for p in self._processes if program in p.texts), {})


def _number(processes: Sequence[_Process]) -> None:
    """Set ``number`` of each call in ``processes`` (all processes of one rank) that ran a phase (trace,
    lower, compile) or tried to: 2 for ``step#2``. The calls of a function are counted from 1, in order of
    time."""
    every = [(p.pid, c) for p in processes for c in p.calls.values()]
    if len(processes) > 1:
        every.sort(key=lambda each: (each[1].t_ns, each[0], each[1].call))
    counts: dict[str, int] = {}
    for _, c in every:
        if c.reached or c.phase is not None or c.failed:
            c.number = counts[c.function] = counts.get(c.function, 0) + 1


@functools.lru_cache(1024)
def _processes(devices: str | None, process_of: tuple[tuple[int, int], ...]) -> frozenset[int]:
    """Return JAX's indices of the processes to which ``devices`` belong. Ranks with the same devices get the
    same set object. A device that is not in ``process_of`` counts for process 0.

    Args:
      devices: ids of devices as ranges: ``0-3,8``; None: all devices. If unreadable, the result is empty.
      process_of: (id of a device, index of its process) for all devices.
    """
    known = dict(process_of)
    ids = known if devices is None else sharding.device_ids(devices) or ()
    return frozenset(known.get(d, 0) for d in ids)


def _shapes(key: Key | None) -> str:
    """Return the dtypes and shapes of the arguments in the cache key ``key`` as text:
    ``float32(2, 3), int32()``. Empty if ``key`` is None (unknown)."""
    return "" if key is None else ", ".join(f"{a.dtype}{a.shape}" for a in key.arguments)


def _bytes(memory: Memory | None) -> int | None:
    """Return the sum of the bytes of arguments, results and temporaries of a program, from the compiler's
    byte counts ``memory``. None if one of them is unknown."""
    parts = [getattr(memory, f"{name}_bytes", None) for name in ("argument", "output", "temp")]
    return sum(p for p in parts if p is not None) if None not in parts else None
