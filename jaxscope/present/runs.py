"""Write facts about a whole run as text: its command, its time, what is in progress, how it ended, what was
not recorded. A run is the recording of a program."""

from __future__ import annotations

import signal

from jaxscope.log.store import RunDir
from jaxscope.model import line_times
from jaxscope.model.load import state
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.wall_time import wall_time
from jaxscope.present.spans import Span
from jaxscope.present.text import Places, brief, command, count, function_name, seconds
from jaxscope.schema.line_times import SLEEPING

# Shares of the run's time. If the time that was not spent compiling is at least LEAST_OTHER, it is divided by
# what it was spent on, without parts below LEAST_PART.
LEAST_OTHER, LEAST_PART = 0.1, 0.005
_VERBS = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}


def title(run: Run, directory: RunDir | None) -> str:
    """Return the user's command without the interpreter: ``train.py --epochs 3``. If the command is unknown,
    return the name of the run's ``directory``, or ``a run`` if ``directory`` is None."""
    words = directory.argv if directory is not None else None
    if words is None:
        main = run.main
        words = main.started.argv if main is not None and main.started is not None else []
    return command(words) or (directory.name if directory is not None else "a run")


def compilation_name(run: Run, c: Compilation) -> str:
    """Return the name of the call ``c``: ``train_step #4`` for the fourth compilation of this function. A
    call that missed only JAX's fast path (the C++ cache of jit) compiled nothing and has no number:
    ``train_step``."""
    n = run.number(c)
    return function_name(c.function) + (f" #{n}" if n else "")


def verb(phase: str) -> str:
    """Return the word for a ``phase`` in progress: ``tracing`` for ``trace``. An unknown phase is returned
    unchanged."""
    return _VERBS.get(phase, phase)


def compiling(run: Run, *, shares: bool = True) -> list[Span]:
    """Return how much of the run's time went into tracing, lowering and compiling: ``28.1 s of 2 min 14 s (21
    %) went into tracing, lowering and compiling``. Empty if that is unknown.

    The seconds are those of the main process; those of recorded processes that the program started follow. If
    only such processes were recorded, the text has their seconds alone.

    Args:
      shares: whether the text may have a percentage.
    """
    total, started = run.recorded_seconds, run.started
    if total is None:
        return []
    work = "went into tracing, lowering and compiling"
    elsewhere = [s for p in started if (s := p.compiling_seconds())]
    if run.main is not None and not run.main_recorded:
        longest = f", at most {seconds(max(elsewhere))} in one" if len(elsewhere) > 1 else ""
        where = f"{count(len(started), 'process', 'processes')} that the program started"
        own = f"; its own process recorded nothing in {seconds(total)}"
        return [(seconds(sum(elsewhere)), "figure"), f" {work} in {where}{longest}{own}"]
    spent = run.compiling_seconds
    if spent is None:
        return []
    open_ended = bool(run.in_progress()) and not run.lasting()  # only the start of a phase is known
    shares = shares and not open_ended
    share = f" ({100 * spent / total:.0f} %)" if shares and total > 0 and spent <= total else ""
    cut = run.main is not None and run.main.stopped is not None
    rest = f" of {seconds(total)}{' that were recorded' if cut else ''}{share} {work}"
    rest += " in the main process" if started else ""
    if elsewhere:
        others = count(len(elsewhere), "other process", "other processes")
        rest += f", and {seconds(sum(elsewhere))} in {others}"
        rest += f" (at most {seconds(max(elsewhere))} in one)" if len(elsewhere) > 1 else ""
    return [(("at least " if open_ended else "") + seconds(spent), "figure"), rest]


def not_compiling(run: Run) -> list[Span]:
    """Return on what the run spent the time in which it did not compile: ``The other 6.3 s: 2.6 s until the
    first compilation (imports, set-up), 3.7 s for everything else``. Empty if this is unknown or too little
    to show."""
    t = wall_time(run)
    if t is None or t.seconds - t.compiling < LEAST_OTHER * t.seconds:
        return []
    named = (
        (t.before_compiling, "until the first compilation (imports, set-up)"),
        (t.waiting or 0.0, "waiting for the devices"),
        (min(t.rest, _asleep(run)), "sleeping or waiting for a lock, a file or a device"),
    )
    parts = [f"{seconds(spent)} {what}" for spent, what in named if spent >= LEAST_PART * t.seconds]
    if not parts:
        return []
    shown = sum(spent for spent, _ in named if spent >= LEAST_PART * t.seconds)
    other = t.seconds - t.compiling
    parts.append(f"{seconds(other - shown)} for everything else")
    return [f"The other {seconds(other)}: {', '.join(parts)}"]


def _asleep(run: Run) -> float:
    """Return the seconds in which the main thread slept in Python code for an unknown reason; 0 if this was
    not measured."""
    return sum(s.seconds for s in line_times.by_line(run) if s.doing == SLEEPING)


def unfinished(run: Run, places: Places, *, running: bool) -> list[list[Span]]:
    """Return a line for each phase (trace, lower, compile) without a recorded end, with the outermost first:
    ``In progress: compiling train_step #4 for 3.2 s  (train.py:88)``.

    Args:
      places: shortens file names.
      running: whether the program still runs.
    """
    lasting = bool(run.lasting())
    ended = "Unfinished when it ended: " if lasting else "Unfinished where its log ends: "
    lines: list[list[Span]] = []
    for p in run.in_progress():
        spent = seconds(max(0, (run.last_ns or p.since_ns) - p.since_ns) / 1e9)
        site = places.frame(p.compilation.site)
        lines.append(
            [
                ("In progress: ", "good") if running else (ended, "error"),
                f"{verb(p.phase)} ",
                (compilation_name(run, p.compilation), "name"),
                f" for {spent}" if lasting else "",
                (f"  ({site})" if site else "", "path"),
            ]
        )
    return lines


def ending(run: Run, directory: RunDir | None) -> tuple[str, bool]:
    """Return (how the run ended, whether that needs attention): ``("exit code 1", True)``. The second value
    is True after a signal or a nonzero exit code, if the end was not recorded although the program has ended,
    or if the recording stopped early. ``directory`` is the run's directory; if it is None, it is unknown
    whether the program still runs."""
    where = state(run, directory) if directory is not None else "stopped" if run.complete else "unknown"
    cut = cut_short(run)
    if run.exited is not None:
        code = run.exited.exit_code
        if run.exited.signal is not None:
            try:
                name = signal.Signals(run.exited.signal).name
            except ValueError:
                name = f"signal {run.exited.signal}"
            return f"ended by {name}{cut}", True
        orderly = run.complete or not run.main_recorded
        closed = "" if orderly or cut else ", its log not closed"
        return f"exit code {'?' if code is None else code}{closed}{cut}", bool(code or cut)
    how, bad = {
        "running": ("still running", False),
        "stopped": ("recording complete", False),
        "lost": ("no end recorded: killed?", True),
    }.get(where, ("no end recorded", False))
    return ("recording not complete" if cut and where == "stopped" else how) + cut, bad or bool(cut)


def cut_short(run: Run) -> str:
    """Return when and why the recording of a process stopped before the program's end: ``, the recording
    stopped after 3.2 s: ...``. The caller appends the text to another one. Empty if no recording stopped
    early; of several, the first stop is named."""
    if not run.stopped:
        return ""
    first = run.stopped[0]
    assert first.stopped is not None
    at = run.seconds_at(first.stopped.t_ns)
    others = "" if first is run.main else " of a process that it started"
    after = f" after {seconds(max(0.0, at))}" if at is not None else ""
    return f", the recording{others} stopped{after}: {brief(first.stopped.reason, 200)}"


def gaps(run: Run) -> list[list[Span]]:
    """Return a line for each part of the run that was not recorded, could not be read, or is from a newer
    jaxscope. Empty if there is none."""
    lines: list[list[Span]] = [
        [("Not recorded  ", "warning"), f"{brief(lost.seam, 60)}: {brief(lost.reason, 300)}"]
        for lost in run.degraded
    ]
    if run.unknown:
        kinds = ", ".join(brief(k, 40) for k in sorted(run.unknown)[:5])
        events = count(sum(run.unknown.values()), "event")
        lines.append([("Not understood  ", "warning"), f"{events} of a newer jaxscope: {kinds}"])
    if run.damaged:
        damaged = f"{count(run.damaged, 'line')} of the log could not be read"
        lines.append([("Damaged  ", "warning"), damaged])
    if run.unreadable:
        texts = (
            f"{count(len(run.unreadable), 'program text')} could not be read:"
            f" this report lacks what they contain"
        )
        lines.append([("Damaged  ", "warning"), texts])
    return lines
