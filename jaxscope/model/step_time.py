"""Divide the mean time of a training step between the user's lines.

A line can wait for values of a device, copy arrays between host and device, or compile. Only measured time is
assigned to a line. The rest of the step is Python code, dispatch, and waiting that was not recorded
(``block_until_ready``, or ``np.asarray`` on a CPU).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from jaxscope.model import payers, transfers
from jaxscope.model.intervals import MOST_SECONDS
from jaxscope.model.records import Compilation, Process, StepTime, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame
from jaxscope.schema.profiles import Profiled

WAIT, COPY, COMPILE = "wait", "copy", "compile"
LEAST_STEPS = 3  # with fewer recorded steps, there is no result
# If the parts of a step add up to more than the step by a larger fraction, they are wrong: there is no
# result.
TOLERANCE = 0.01

_Place = tuple[str, str | None, int | None]  # cause, file, line


class Spent(msgspec.Struct, frozen=True):
    """The time that one line of the user takes in a step.

    Attributes:
      cause: wait (for a value of a device), copy (to or between devices) or compile (trace, lower, compile).
      line: the line; None: unknown.
      text: the expression in the source; None: the line has several, it is unknown, or ``cause`` is compile.
      caller: the line that calls the function in which ``line`` is; None: unknown, or not needed to find the
        place.
      seconds: mean seconds in one step.
    """

    cause: str
    line: Frame | None
    text: str | None
    caller: Frame | None
    seconds: float


class StepSeconds(msgspec.Struct, frozen=True):
    """The mean time of a step of the main process, and on what it is spent.

    Attributes:
      first, last: the first and the last of the steps of which the mean is taken.
      total: number of steps that the process has counted; None: unknown.
      steps: number of steps of which the mean is taken. Steps between ``first`` and ``last`` that ran under
        the profiler are left out. Unless ``compiling`` is True, steps that compiled something are left out,
        too.
      compiling: whether steps that compiled something are included, because there are too few others.
      seconds: mean wall time of one step.
      spent: the time of each line in one step, the largest first.
      device_waits: fraction of the profiled time in which a device executed nothing, mean over the devices,
        from the latest profile that shows it; None: no profile shows it.
      profiled: the first and the last step of this profile; None: there is none.
      devices: number of devices of this profile; None: there is none.
    """

    first: int
    last: int
    total: int | None
    steps: int
    compiling: bool
    seconds: float
    spent: list[Spent]
    device_waits: float | None
    profiled: tuple[int, int] | None
    devices: int | None

    @property
    def rest(self) -> float:
        """Return the seconds of a step that no measurement assigns to a line."""
        return max(0.0, self.seconds - sum(s.seconds for s in self.spent))


class _Phase(msgspec.Struct, frozen=True):
    """A trace, lowering or compilation that did not happen inside another trace: begin and end in nanoseconds
    since the epoch, its seconds, its thread, and the call during which it ran."""

    begin: int
    end: int
    seconds: float
    thread: int
    compilation: Compilation


class _Window(msgspec.Struct, frozen=True):
    """The steps between two recorded ends of steps, ``since`` and the later ``until``. There can be several
    steps between them, because not every end is recorded."""

    since: StepTime
    until: StepTime

    @property
    def steps(self) -> int:
        return self.until.event.step - self.since.event.step

    @property
    def seconds(self) -> float:
        return (self.until.event.clock_ns - self.since.event.clock_ns) / 1e9

    def overlaps(self, begin: int, end: int) -> bool:
        """Return whether the time from ``begin`` to ``end`` (ns since the epoch) overlaps these steps."""
        return begin < self.until.event.t_ns and end > self.since.event.t_ns


@cached_until_changed
def step_seconds(run: Run) -> StepSeconds | None:
    """Return the mean time of a step of the main process, and its parts. None if steps were not counted, if
    there were fewer than LEAST_STEPS (3), or if the parts add up to more than the step.

    The mean is taken of the steps that compiled nothing, or if there are too few, of all steps but the first.
    Steps under the profiler are left out."""
    process = run.main
    if process is None:
        return None
    phases = list(_phases(run, process))
    windows = [w for w in _windows(process) if not any(w.overlaps(*span) for span in _profiler(process))]
    steady = [w for w in windows if not any(w.overlaps(p.begin, p.end) for p in phases)]
    compiling = sum(w.steps for w in steady) < LEAST_STEPS
    counted = [w for w in windows if w.since.event.step >= 1] if compiling else steady
    steps = sum(w.steps for w in counted)
    if steps < LEAST_STEPS:
        return None
    spent = [*_copies(run, process, counted, steps), *_compiling(phases, counted, steps)]
    seconds = sum(w.seconds for w in counted) / steps
    if sum(s.seconds for s in spent) > seconds * (1 + TOLERANCE):
        return None
    profile = _profile(process)
    return StepSeconds(
        first=counted[0].since.event.step + 1,
        last=counted[-1].until.event.step,
        total=transfers.steps(run, process),
        steps=steps,
        compiling=compiling,
        seconds=seconds,
        spent=sorted(spent, key=lambda s: -s.seconds),
        device_waits=None if profile is None else _waiting(profile),
        profiled=None if profile is None else (profile.first_step, profile.last_step),
        devices=None if profile is None else profile.devices,
    )


def _windows(process: Process) -> Iterator[_Window]:
    """Yield a window for each pair of successive recorded ends of steps of ``process``. Left out are pairs
    from different threads, and pairs whose steps were counted in another way (``jaxscope.step()``, or calls
    of a function) than the last recorded step."""
    times = process.step_times
    for since, until in itertools.pairwise(times):
        window = _Window(since, until)
        alike = since.event.marked == until.event.marked == times[-1].event.marked
        if alike and since.event.thread == until.event.thread and window.steps > 0 and window.seconds > 0:
            yield window


def _profiler(process: Process) -> Iterator[tuple[int, int]]:
    """Yield (begin, end) of each time in which JAX's profiler made steps of ``process`` slower, in ns since
    the epoch. The start and the stop of the profiler are included."""
    for event in process.profiles:
        took = (event.seconds or 0.0) + (event.cost_seconds or 0.0)
        yield event.t_ns - round(1e9 * min(max(0.0, took), MOST_SECONDS)), event.t_ns


def _phases(run: Run, process: Process) -> Iterator[_Phase]:
    """Yield the finished and failed traces, lowerings and compilations of ``process``, except those inside
    another trace, and those of unknown length."""
    for c in run.compilations.values():
        nested = c.entry == "nested" or (c.missed is not None and c.missed.inside is not None)
        if c.process is not process or nested:
            continue
        for phase, end, seconds in c.ended_phases():
            event = {"trace": c.traced, "lower": c.lowered, "compile": c.compiled}[phase] or c.failed
            if event is not None:
                yield _Phase(end - round(1e9 * seconds), end, seconds, event.thread, c)


def _copies(run: Run, process: Process, windows: Sequence[_Window], steps: int) -> Iterator[Spent]:
    """Yield the mean time in a step during which each line waited for values of a device or copied arrays.

    Args:
      process: the process whose steps are counted.
      windows: the steps of which the mean is taken.
      steps: the number of steps in ``windows`` together.
    """
    found: dict[_Place, list[tuple[transfers.Transfer, float]]] = {}
    known = transfers.by_key(process)
    for key, t in known.items():
        took = sum(max(0.0, w.until.copying.get(key, 0.0) - w.since.copying.get(key, 0.0)) for w in windows)
        if took:
            found.setdefault(_place(WAIT if t.direction == transfers.TO_HOST else COPY, t.source), []).append(
                (t, took)
            )
    for (cause, _, _), parts in found.items():
        texts = {t.text for t, _ in parts}
        yield Spent(
            cause=cause,
            line=parts[0][0].source,
            text=texts.pop() if len(texts) == 1 else None,
            caller=transfers.called_at(run, parts[0][0]),
            seconds=sum(took for _, took in parts) / steps,
        )


def _compiling(phases: Sequence[_Phase], windows: Sequence[_Window], steps: int) -> Iterator[Spent]:
    """Yield the mean time in a step during which each line made JAX trace, lower or compile. Compilations in
    threads other than the one that counts the steps are left out.

    Args:
      phases: the traces, lowerings and compilations of the process.
      windows: the steps of which the mean is taken.
      steps: the number of steps in ``windows`` together.
    """
    found: dict[_Place, tuple[Frame | None, float]] = {}
    for p in phases:
        if any(
            w.since.event.t_ns < p.end <= w.until.event.t_ns and w.until.event.thread == p.thread
            for w in windows
        ):
            line = payers.line_of(p.compilation)
            place = _place(COMPILE, line)
            found[place] = line, found.get(place, (line, 0.0))[1] + p.seconds
    for line, took in found.values():
        yield Spent(cause=COMPILE, line=line, text=None, caller=None, seconds=took / steps)


def _place(cause: str, line: Frame | None) -> _Place:
    return (cause, None, None) if line is None else (cause, line.file, line.line)


def _profile(process: Process) -> Profiled | None:
    """Return the latest profile of ``process`` that shows how long its devices were busy. None if there is
    none."""
    return next((event for event in reversed(process.profiles) if _waiting(event) is not None), None)


def _waiting(event: Profiled) -> float | None:
    """Return the fraction of the time of the profile ``event`` in which a device executed nothing, as the
    mean over the devices. None if unknown."""
    wall = (event.seconds or 0.0) * (event.devices or 0)
    if event.busy_seconds is None or wall <= 0 or not 0 <= event.busy_seconds <= wall:
        return None
    return 1 - event.busy_seconds / wall
