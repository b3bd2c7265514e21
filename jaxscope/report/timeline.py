"""Write a run as a timeline in the Trace Event Format, which Perfetto (ui.perfetto.dev) and chrome://tracing
can show.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Every recorded
process is a process of the timeline. Its tracks are the phases (trace, lower, compile) of each call, the
training steps, the waits for copies by line, and the bytes of live arrays. Times are microseconds since the
first process began.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from jaxscope.log import reader
from jaxscope.log.store import RunDir
from jaxscope.model import arrays
from jaxscope.model.causes import recompiled
from jaxscope.model.records import Compilation, Process
from jaxscope.model.run import Run
from jaxscope.present.causes import explanations
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, function_name
from jaxscope.report.json_report import compact
from jaxscope.schema import events as ev

Json = dict[str, Any]
STEPS_TRACK, WAITS_TRACK, PHASES_TRACK = 1, 100, 1000  # ids of the first track of each kind
# A phase that ends up to so much later than the phase around it is shortened to end with it
TOUCHING_NS = 20_000
LONGEST_NS = 1 << 62


class Recorded(NamedTuple):
    """One recording in the timeline: a run, or what one rank (process) of a run with several ranks recorded.

    Attributes:
      rank: the number of the rank; None: the run has only one process.
    """

    run: Run
    directory: RunDir
    rank: int | None = None


class Slice(NamedTuple):
    """One bar on a track of the timeline.

    Attributes:
      begin, end: the times at which the bar begins and ends, in ns.
      category: the kind of bar, by which the viewer can filter.
      args: facts that the viewer shows when the user selects the bar.
    """

    begin: int
    end: int
    name: str
    category: str
    args: Json


def pieces(recorded: Sequence[Recorded]) -> Iterator[str]:
    """Yield the parts of the text of the timeline file. ``recorded`` is the run, or what each of its ranks
    (processes) recorded."""
    began = [r.run.began_ns for r in recorded if r.run.began_ns is not None]
    zero = min(began, default=0)
    yield '{"displayTimeUnit":"ms","traceEvents":[\n'
    comma = ""
    for event in _events(recorded, zero):
        yield f"{comma}{compact(event)}"
        comma = ",\n"
    yield "\n]}\n"


def _events(recorded: Sequence[Recorded], zero: int) -> Iterator[Json]:
    """Yield the events of the timeline as plain data. ``zero`` is the time that becomes 0, in ns since the
    epoch."""
    number = 0
    for part in recorded:
        counted = _counted(part)
        places = Places(part.run)
        for process in part.run.processes.values():
            number += 1
            yield from _named(number, "process_name", {"name": _process_name(part, process)})
            yield from _named(number, "process_sort_index", {"sort_index": number})
            found = [
                *_tracks(PHASES_TRACK, "phases", _phases(part.run, process, places)),
                *_tracks(STEPS_TRACK, "steps", _steps(counted.steps.get(process.id, []))),
            ]
            for n, (line, waits) in enumerate(_waits(counted.transfers.get(process.id, []), places).items()):
                found += _tracks(WAITS_TRACK + n, f"waits at {line}", waits)
            for thread, name, slices in found:
                yield from _named(number, "thread_name", {"name": name}, thread)
                yield from _named(number, "thread_sort_index", {"sort_index": thread}, thread)
                for s in slices:
                    yield {
                        "ph": "X", "name": s.name, "cat": s.category, "pid": number, "tid": thread,
                        "ts": _us(s.begin - zero), "dur": _us(s.end - s.begin), "args": s.args,
                    }  # fmt: skip
            for snapshot in process.snapshots:
                size = arrays.read(process, snapshot).bytes
                if size is not None:
                    yield {
                        "ph": "C", "name": "live arrays", "pid": number, "tid": 0,
                        "ts": _us(snapshot.t_ns - zero), "args": {"bytes": size},
                    }  # fmt: skip


def _named(process: int, event: str, args: Json, thread: int = 0) -> Iterator[Json]:
    yield {"ph": "M", "name": event, "pid": process, "tid": thread, "ts": 0, "args": args}


def _us(ns: int) -> float:
    return round(min(max(ns, -LONGEST_NS), LONGEST_NS) / 1000, 3)


def _process_name(recording: Recorded, process: Process) -> str:
    rank = "" if recording.rank is None else f"rank {recording.rank}: "
    main = " " if process is recording.run.main else " child "
    return escape(f"{rank}{recording.directory.name}{main}(pid {process.pid})", 200)


class _Counted(NamedTuple):
    """The steps and copies of a run over time. They are read from the log, because a loaded run has only the
    totals.

    Attributes:
      steps: process id -> list of (time in ns, number of steps so far), in order of time.
      transfers: process id -> logged events about copies that took time, in order of time.
    """

    steps: dict[str, list[tuple[int, int]]]
    transfers: dict[str, list[ev.Transferred]]


def _counted(recording: Recorded) -> _Counted:
    """Read from the logs of a recording the steps of each process, and the transfers for which it waited. If
    a process has no marked steps, the calls of its step function count as steps, or else those of the first
    watched function."""
    processes = {log: process.id for log, process in recording.run.logs()}
    marks: dict[str, list[tuple[int, int]]] = {}
    calls: dict[str, dict[str, list[tuple[int, int]]]] = {}
    transfers: dict[str, list[ev.Transferred]] = {}
    for log, event in reader.Reader(recording.directory).stream():
        process = processes.get(log)
        if process is None:
            continue
        if isinstance(event, ev.Step):
            marks.setdefault(process, []).append((event.t_ns, event.index))
        elif isinstance(event, ev.Called):
            calls.setdefault(process, {}).setdefault(event.function, []).append((event.t_ns, event.count))
        elif isinstance(event, ev.Transferred) and event.seconds:
            transfers.setdefault(process, []).append(event)
    steppers = [f.id for f in recording.run.functions.values() if f.step]
    for process, by_function in calls.items():
        if process not in marks:
            chosen = next((f for f in steppers if f in by_function), next(iter(by_function)))
            marks[process] = by_function[chosen]
    return _Counted(marks, transfers)


def _steps(counted: Sequence[tuple[int, int]]) -> Iterator[Slice]:
    """Yield a bar for each training step but the first. If the end of a step has no recorded time, one bar
    covers several steps. ``counted`` has (time in ns, number of steps so far), in order of time."""
    for (begin, before), (end, after) in itertools.pairwise(counted):
        if after > before and end > begin:
            name = f"step {after:,}" if after == before + 1 else f"steps {before + 1:,} to {after:,}"
            yield Slice(begin, end, name, "step", {"steps": after - before})


def _waits(transfers: Iterable[ev.Transferred], places: Places) -> dict[str, list[Slice]]:
    """Return bars for the time that the program waited for copies, as {source line: its bars}. ``transfers``
    has the log entries about copies, in order of time."""
    slices: dict[str, list[Slice]] = {}
    before: dict[object, ev.Transferred] = {}
    for e in transfers:
        key = e.direction, e.via, e.site
        last = before.get(key)
        # An entry has the sum of all waits so far: one bar stands for all waits since the entry before it. It
        # is as long as these waits, and ends with the last of them.
        spent = (e.seconds or 0.0) - ((last.seconds or 0.0) if last is not None else 0.0)
        count = e.count - (last.count if last is not None else 0)
        end = e.last_ns or e.t_ns
        begin = max(end - int(min(spent, 1e9) * 1e9), last.last_ns if last is not None else e.first_ns)
        before[key] = e
        if spent > 0 and begin < end:
            line = places.frame(e.site) or "an unknown line"
            args = {"copies": count, "seconds": spent, "direction": e.direction}
            slices.setdefault(line, []).append(Slice(begin, end, escape(e.via or "copy", 80), "wait", args))
    return slices


def _phases(run: Run, process: Process, places: Places) -> Iterator[Slice]:
    """Yield a bar for each trace, lowering and compilation of ``process``, also for those whose end is not
    recorded."""
    opened = {p.compilation.id: p for p in run.in_progress()}
    for c in run.compilations.values():
        if c.process is not process:
            continue
        args = _about(run, c, places)
        name = function_name(c.function)
        for phase, t_ns, spent in c.ended_phases():
            shown = "load" if phase == "compile" and c.persistent_hit else phase
            yield Slice(t_ns - int(min(spent, 1e9) * 1e9), t_ns, f"{shown} {name}", phase, args)
        if c.id in opened and run.last_ns is not None:
            p = opened[c.id]
            yield Slice(
                p.since_ns, max(run.last_ns, p.since_ns), f"{p.phase} {name} (not ended)", p.phase, args
            )


def _about(run: Run, c: Compilation, places: Places) -> Json:
    args: Json = {"function": function_name(c.function), "line": places.frame(c.site), "step": c.step}
    number = run.number(c)
    if number is not None:
        args["compilation"] = number
    if c.function.user and recompiled(run, c):
        args["recompiled"] = escape(explanations(run, c)[0], 300)
    return {key: value for key, value in args.items() if value is not None}


def _tracks(first: int, name: str, bars: Iterable[Slice]) -> list[tuple[int, str, list[Slice]]]:
    """Distribute bars over tracks, so that two bars on a track do not overlap unless one is inside the other.
    A bar may be shortened a little for this. Return (id, name, bars) of each track.

    Args:
      first: the id of the first track; the others have the next ids.
      name: the name of the first track: ``phases``. The others are ``phases 2``, ``phases 3``, ...
    """
    tracks: list[tuple[int, str, list[Slice]]] = []
    open_ends: list[list[int]] = []  # of each track, the ends of the slices that are open, the innermost last
    for s in sorted(bars, key=lambda s: (s.begin, -s.end)):
        for n, ends in enumerate([*open_ends, None]):
            if ends is None:
                ends = []
                open_ends.append(ends)
                tracks.append((first + n, name if not n else f"{name} {n + 1}", []))
            while ends and ends[-1] <= s.begin:
                ends.pop()
            if not ends or s.end <= ends[-1] + TOUCHING_NS:
                end = min(s.end, ends[-1]) if ends else s.end
                ends.append(end)
                tracks[n][2].append(s._replace(end=end))
                break
    return tracks
