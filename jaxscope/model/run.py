"""A run, to be asked: what was compiled, by which process, how it ended, what is in progress.

Knows nothing of files, terminals or causes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from jaxscope.model.fold import Fold
from jaxscope.model.records import Compilation, Function, InProgress, Lost, Process, asked_once
from jaxscope.model.xla_warnings import Overheard
from jaxscope.schema.events import MAIN
from jaxscope.schema.keys import Device


class Run(Fold):
    """``for event in log: run.apply(event)``, then ask."""

    def __init__(self) -> None:
        super().__init__()
        self.overheard = Overheard(self)
        # Has the program a function that a name or pattern means, whether it was compiled or not? Only a program that
        # still runs can be asked.
        self.defined: Callable[[str], bool] = lambda pattern: False

    @property
    def degraded(self) -> list[Lost]:
        """What is not available, and why: as the recording says, and what nobody could hear."""
        return [*self.lost, *self.overheard.lost()]

    @property
    def main(self) -> Process | None:
        """The process the user started: the one the keeper names, else the first that is no child."""
        recorded = [p for p in self.processes.values() if p.started is not None]
        if self.exited is not None and self.exited.program_pid:
            named = [p for p in recorded if p.pid == self.exited.program_pid]
            if named:  # several where the program replaced itself (exec): the last one ended it
                return max(named, key=lambda p: (p.first_ns, p.id))
        first = [p for p in recorded if p.started is not None and p.started.how in MAIN] or recorded
        return min(first, key=lambda p: (p.first_ns, p.id), default=None)

    def logs(self) -> list[tuple[str, Process]]:
        """The processes with the names of their logs."""
        return list(self._by_log.items())

    @property
    def started(self) -> list[Process]:
        """The processes beside the program's own that recorded something: its pool's workers, say."""
        own = self.main if self.main_recorded else None
        return [p for p in self.processes.values() if p is not own and p.started is not None]

    @property
    def main_recorded(self) -> bool:
        """Is ``main`` the program's own process? Not where only processes that it started imported JAX."""
        pid = self.exited.program_pid if self.exited is not None else None
        return self.main is not None and (not pid or self.main.pid == pid)

    @property
    def began_ns(self) -> int | None:
        """Wall clock at which recording began; None: nothing was recorded."""
        main = self.main
        if main is not None:
            return main.first_ns
        return min((p.first_ns for p in self.processes.values() if p.first_ns), default=None)

    @property
    def last_ns(self) -> int | None:
        times = [p.last_ns for p in self.processes.values()]
        if self.exited is not None:
            times.append(self.exited.t_ns)
        elif times and self.alive_ns is not None:
            times.append(self.alive_ns)  # a long compilation says nothing until it ends
        return max(times, default=None)

    @property
    def seconds(self) -> float | None:
        """Wall time from the start to the program's end, or to the latest event there is."""
        if self.exited is not None and self.exited.seconds is not None:
            return self.exited.seconds
        begin, end = self.began_ns, self.last_ns
        return None if begin is None or end is None else max(0, end - begin) / 1e9

    @property
    def compiling_seconds(self) -> float | None:
        """Wall time the main process spent tracing, lowering and compiling, with what is in progress."""
        main, last = self.main, self.last_ns
        if main is None or last is None:
            return None
        return main.compiling_seconds(
            [(p.since_ns, last) for p in self.lasting() if p.compilation.process is main]
        )

    @property
    def recorded_seconds(self) -> float | None:
        """Wall time until nothing of the main process was recorded any more; without such a moment as ``seconds``."""
        main, begin = self.main, self.began_ns
        if main is None or main.stopped is None or begin is None:
            return self.seconds
        return max(0, main.stopped.t_ns - begin) / 1e9

    @property
    def stopped(self) -> list[Process]:
        """The processes that went on when nothing of them was recorded any more, the first to stop first."""
        found = [p for p in self.processes.values() if p.stopped is not None]
        return sorted(found, key=lambda p: p.stopped.t_ns if p.stopped is not None else 0)

    @property
    def complete(self) -> bool:
        """Did the main process end its log in an orderly way, and was every process recorded to its end?"""
        main = self.main
        if self.stopped:
            return False
        if main is not None:
            return main.ended is not None
        return self.exited is not None and self.exited.signal is None

    @property
    def devices(self) -> list[Device]:
        found = {d.id: d for p in self.processes.values() if p.backend for d in p.backend.devices}
        return [found[i] for i in sorted(found)]

    @property
    def platform(self) -> str | None:
        main = self.main
        backends = [p.backend for p in ([main] if main else []) + list(self.processes.values()) if p.backend]
        return backends[0].platform or None if backends else None

    def seconds_at(self, t_ns: int) -> float | None:
        """``t_ns`` as seconds since the run began."""
        begin = self.began_ns
        return None if begin is None else (t_ns - begin) / 1e9

    def settings(self, process: Process, context: str | None) -> Mapping[str, str] | None:
        """The trace-context settings behind a key's ``context``; None: not recorded."""
        if context is None:
            return None
        seen: set[str] = set()
        while process.id not in seen:
            seen.add(process.id)
            found = self.contexts.get((process.id, context))
            if found is not None:
                return found
            # A forked child refers to what its parent had said before the fork.
            parent = process.started.parent if process.started else None
            process = self._by_pid.get(parent, process) if parent is not None else process
        return None

    def compilation(self, process: Process, call: int) -> Compilation | None:
        """The call numbered ``call`` in the log of ``process``."""
        return self._calls.get((process.id, call))

    def in_progress(self) -> list[InProgress]:
        """What is being traced, lowered or compiled, or was when its process died; outermost first."""
        found = [
            InProgress(c, c.phase, c.phase_ns)
            for c in list(self._open.values())
            if c.phase is not None and c.process.ended is None and c.process.stopped is None
        ]
        return sorted(found, key=lambda p: (p.since_ns, p.compilation.id))

    def lasting(self) -> list[InProgress]:
        """Those of ``in_progress`` of which it is known how long they took: they go on, or the program was killed in
        them. Else the log was cut short, and the phase may have ended long before the program."""
        killed = self.exited is not None and self.exited.signal is not None
        lasts = self.exited is None and self.going_on is not False
        return self.in_progress() if killed or lasts else []

    def numbered(self, function: Function) -> list[tuple[int, Compilation]]:
        """The calls of ``function`` that traced, lowered or compiled (or tried to), counted from 1.

        The number is what people say: ``train_step#4``.
        """
        return _numbered(function)

    def number(self, c: Compilation) -> int | None:
        """Its number among those; None for a call that only left the fast path."""
        return _numbers(c.function).get(c.id)


@asked_once
def _numbered(function: Function) -> list[tuple[int, Compilation]]:
    return list(enumerate((c for c in function.compilations if c.reached != ["fast_path"]), 1))


@asked_once
def _numbers(function: Function) -> dict[str, int]:
    return {c.id: n for n, c in _numbered(function)}
