"""The class Run: the records of a run, and queries about its processes, times and compilations.

The run directory is read by ``model.load``. The causes of recompiles are found by ``model.causes``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from jaxscope.model.fold import Fold
from jaxscope.model.intervals import MOST_SECONDS
from jaxscope.model.records import Compilation, Function, InProgress, Lost, Process, cached_until_changed
from jaxscope.model.xla_warnings import WarningsByProgram
from jaxscope.schema.events import MAIN, ProgramExited, RunStarted
from jaxscope.schema.keys import Device

if TYPE_CHECKING:  # importing this module would take as long as all other imports here
    from jaxscope.analysis.stablehlo.reading import Reading


class Run(Fold):
    """The records of a run, and queries about them. ``for event in log: run.apply(event)`` fills it."""

    def __init__(self) -> None:
        super().__init__()
        self.overheard = WarningsByProgram(self)
        # Returns whether the program defines a function whose name matches a pattern, compiled or not. This
        # is known only in the process of the program.
        self.defined: Callable[[str], bool] = lambda pattern: False

    @property
    def degraded(self) -> list[Lost]:
        """Return the missing parts of the recording, with reasons. They include missing warnings of XLA, and
        processes of the job that recorded to other directories."""
        return [*self.lost, *self.overheard.lost(), *self._other_ranks()]

    def _other_ranks(self) -> Iterator[Lost]:
        """Yield one Lost entry (a missing part of the recording) if the job has more processes than recorded
        into the job's directory. Outside of a job's directory, only the main process counts as recorded."""
        backend = self.main.backend if self.main is not None else None
        count, here = backend.process_count if backend is not None else None, self.ranks_here
        if count is not None and here is not None and count > here:
            reason = (
                f"{count - here:,} of the job's {count:,} processes did not record to this directory."
                " If they recorded to other directories, join these: jaxscope runs merge DIR... -o JOB"
            )
            yield Lost("ranks", reason)

    @property
    def main(self) -> Process | None:
        """Return the process that the user started, or, if it was not recorded, the first of its child
        processes. None if no process was recorded."""
        return main_of(list(self.processes.values()), self.exited)

    def logs(self) -> list[tuple[str, Process]]:
        """Return (name of the log, process that wrote it) for each log of the run."""
        return list(self._by_log.items())

    @property
    def started(self) -> list[Process]:
        """Return the recorded processes that the program started, for example the workers of a pool."""
        own = self.main if self.main_recorded else None
        return [p for p in self.processes.values() if p is not own and p.started is not None]

    @property
    def main_recorded(self) -> bool:
        """Return whether the process that the user started was recorded. False if nothing was recorded, or if
        only its child processes imported JAX; ``main`` is then one of these."""
        pid = self.exited.program_pid if self.exited is not None else None
        return self.main is not None and (not pid or self.main.pid == pid)

    @property
    @cached_until_changed
    def began_ns(self) -> int | None:
        """Return when the recording began (ns since the epoch). Return None if nothing was recorded."""
        main = self.main
        if main is not None:
            return main.first_ns
        return min((p.first_ns for p in self.processes.values() if p.first_ns), default=None)

    @property
    def program_began_ns(self) -> int | None:
        """Return when the program began (ns since the epoch). The recording began later, when the program
        imported JAX. If the duration of the program is unknown, return when the recording began; None if
        nothing was recorded."""
        began, exited = self.began_ns, self.exited
        if began is None or exited is None or exited.seconds is None:
            return began
        return min(began, exited.t_ns - round(1e9 * min(max(0.0, exited.seconds), MOST_SECONDS)))

    @property
    def last_ns(self) -> int | None:
        """Return when the program was last known to be alive (ns since the epoch): the time of the latest
        event, or of a later heartbeat. None if nothing was recorded."""
        times = [p.last_ns for p in self.processes.values()]
        if self.exited is not None:
            times.append(self.exited.t_ns)
        elif times and self.alive_ns is not None:
            times.append(self.alive_ns)  # a long compilation writes no events until it ends
        return max(times, default=None)

    @property
    def seconds(self) -> float | None:
        """Return the seconds that the program ran. If they were not recorded, return the seconds from the
        begin of the recording until ``last_ns``. None if nothing was recorded."""
        if self.exited is not None and self.exited.seconds is not None:
            return max(0.0, self.exited.seconds)
        begin, end = self.began_ns, self.last_ns
        return None if begin is None or end is None else max(0, end - begin) / 1e9

    @property
    def compiling_seconds(self) -> float | None:
        """Return the seconds during which the main process traced, lowered or compiled, including phases that
        still last (``lasting``). None if nothing was recorded."""
        main, last = self.main, self.last_ns
        if main is None or last is None:
            return None
        return main.compiling_seconds(
            [(p.since_ns, last) for p in self.lasting() if p.compilation.process is main]
        )

    @property
    def recorded_seconds(self) -> float | None:
        """Return the seconds for which the main process was recorded: those from the begin of the recording
        until it stopped early, or if it did not, ``seconds``. None if unknown."""
        main, begin = self.main, self.began_ns
        if main is None or main.stopped is None or begin is None:
            return self.seconds
        return max(0, main.stopped.t_ns - begin) / 1e9

    @property
    def stopped(self) -> list[Process]:
        """Return the processes whose recording stopped before they ended, the earliest stop first."""
        found = [p for p in self.processes.values() if p.stopped is not None]
        return sorted(found, key=lambda p: p.stopped.t_ns if p.stopped is not None else 0)

    @property
    def complete(self) -> bool:
        """Return whether the main process closed its log and no recording stopped early. If no process was
        recorded, return whether the program is known to have ended without a signal."""
        main = self.main
        if self.stopped:
            return False
        if main is not None:
            return main.ended is not None
        return self.exited is not None and self.exited.signal is None

    @property
    def devices(self) -> list[Device]:
        """Return the devices that any process of the run saw, sorted by id."""
        found = {d.id: d for p in self.processes.values() if p.backend for d in p.backend.devices}
        return [found[i] for i in sorted(found)]

    @property
    def platform(self) -> str | None:
        """Return the platform of JAX's backend: ``cpu``, ``gpu`` or ``tpu``. Return None if it is unknown."""
        main = self.main
        backends = [p.backend for p in ([main] if main else []) + list(self.processes.values()) if p.backend]
        return backends[0].platform or None if backends else None

    def seconds_at(self, t_ns: int) -> float | None:
        """Return the time ``t_ns`` (ns since the epoch) as seconds since the recording began. Return None if
        nothing was recorded."""
        begin = self.began_ns
        return None if begin is None else (t_ns - begin) / 1e9

    def settings(self, process: Process, context: str | None) -> Mapping[str, str] | None:
        """Return the settings of JAX that are part of a cache key, as {name: value as text}. None if they
        were not recorded.

        Args:
          process: the process that recorded the key.
          context: the field ``Key.context`` of the key, an id for the settings; None: the key has no id.
        """
        if context is None:
            return None
        seen: set[str] = set()
        while process.id not in seen:
            seen.add(process.id)
            found = self.contexts.get((process.id, context))
            if found is not None:
                return found
            # A forked child refers to events that its parent wrote before the fork.
            parent = process.started.parent if process.started else None
            process = self._by_pid.get(parent, process) if parent is not None else process
        return None

    def compilation(self, process: Process, call: int) -> Compilation | None:
        """Return the call with the number ``call`` in ``process``. Return None if it is not in the log."""
        return self._calls.get((process.id, call))

    def stablehlo(self, c: Compilation) -> Reading | None:
        """Return what the StableHLO of the program of the call ``c`` says. Return None if it is unknown."""
        program = self.programs.get(c.program or "")
        return self.texts_of(program).stablehlo if program is not None else None

    def in_progress(self) -> list[InProgress]:
        """Return the phases (trace, lower, compile) that have begun and not ended, the earliest first. Such a
        phase still runs, or the program was killed during it, or the log lacks its end. Processes whose
        recording has ended are left out."""
        found = [
            InProgress(c, c.phase, c.phase_ns)
            for c in list(self._open.values())
            if c.phase is not None and c.process.ended is None and c.process.stopped is None
        ]
        return sorted(found, key=lambda p: (p.since_ns, p.compilation.id))

    def lasting(self) -> list[InProgress]:
        """Return the phases of ``in_progress`` if the program was killed by a signal or may still run: they
        count as lasting until ``last_ns``. Otherwise return an empty list."""
        # If the program ended by itself, the log lacks the ends of these phases, perhaps long before the end.
        killed = self.exited is not None and self.exited.signal is not None
        lasts = self.exited is None and self.going_on is not False
        return self.in_progress() if killed or lasts else []

    def numbered(self, function: Function) -> list[tuple[int, Compilation]]:
        """Return (number, call) for the calls of ``function`` that traced, lowered or compiled, or tried to.
        The first number is 1. ``train_step#4`` stands for the call with the number 4."""
        return _numbered(function)

    def number(self, c: Compilation) -> int | None:
        """Return the number of call ``c``: 4 for ``train_step#4``. None if ``c`` only missed JAX's C++ fast
        path."""
        return _numbers(c.function).get(c.id)


class _Started(Protocol):
    """The fields of a process that the function ``main_of`` reads."""

    id: str
    pid: int
    first_ns: int
    started: RunStarted | None


P = TypeVar("P", bound=_Started)


def main_of(processes: Sequence[P], exited: ProgramExited | None) -> P | None:
    """Return the process that the user started. If it was not recorded, return the first one of its child
    processes; None if no process was recorded.

    Args:
      processes: all recorded processes.
      exited: the event about the end of the program, which has the process id; None: not recorded. The result
        is then the first process that no other process started.
    """
    recorded = [p for p in processes if p.started is not None]
    if exited is not None and exited.program_pid:
        named = [p for p in recorded if p.pid == exited.program_pid]
        if named:  # several if the program replaced itself (exec): the last one is the program's end
            return max(named, key=lambda p: (p.first_ns, p.id))
    first = [p for p in recorded if p.started is not None and p.started.how in MAIN] or recorded
    return min(first, key=lambda p: (p.first_ns, p.id), default=None)


@cached_until_changed
def _numbered(function: Function) -> list[tuple[int, Compilation]]:
    """Return the result of ``Run.numbered``."""
    return list(enumerate((c for c in function.compilations if not c.only_missed), 1))


@cached_until_changed
def _numbers(function: Function) -> dict[str, int]:
    """Return {id of a call: its number} for the calls in ``Run.numbered``."""
    return {c.id: n for n, c in _numbered(function)}
