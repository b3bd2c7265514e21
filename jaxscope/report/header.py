"""Print the first lines of a report: the program, its duration, its devices and how it ended."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Iterator

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.load import state
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.text import command, count, seconds
from jaxscope.report.layout import Line, line

OTHERS = 3


def header(run: Run, directory: RunDir | None) -> Iterator[Line]:
    """Print the command, the share of time spent compiling, versions, devices and the exit status."""
    meta = directory.meta if directory is not None else {}
    words = meta.get("argv")
    main = run.main
    if not (isinstance(words, list) and all(isinstance(w, str) for w in words)):
        words = main.started.argv if main is not None and main.started is not None else []
    title = command(words) or (escape(directory.name) if directory else "a run")
    yield line((title, "bold"))
    yield from _settings(directory)
    if (spent := compiling(run)) is not None:
        yield line((spent[0], "bold"), spent[1], hang=2)
    facts = []
    started = main.started if main is not None else None
    if started is not None:
        facts.append(f"JAX {escape(started.jax or '?')}")
        facts.append(f"Python {escape(started.python or '?')}")
    devices = run.devices
    if devices:
        kinds = sorted({escape(d.kind, 40) for d in devices})
        facts.append(f"{len(devices)} x {', '.join(kinds)}")
    elif run.platform:
        facts.append(escape(run.platform, 40))
    if len(run.processes) > 1:
        facts.append(count(len(run.processes), "process", "processes"))
    how, bad = ending(run, directory)
    yield line(" · ".join([*facts, ""]), (how, "red" if bad else ""), hang=2)


def compiling(run: Run, *, shares: bool = True) -> tuple[str, str] | None:
    """Return (seconds spent compiling, of how many and in which processes) as text; None if unknown.

    Seconds of processes that run in parallel are not given as a share of the run.
    """
    total, started = run.recorded_seconds, run.started
    if total is None:
        return None
    work = "went into tracing, lowering and compiling"
    elsewhere = [s for p in started if (s := p.compiling_seconds())]
    if run.main is not None and not run.main_recorded:
        longest = f", at most {seconds(max(elsewhere))} in one" if len(elsewhere) > 1 else ""
        where = f"{count(len(started), 'process', 'processes')} that the program started"
        return (
            seconds(sum(elsewhere)),
            f" {work} in {where}{longest}; its own process recorded nothing in {seconds(total)}",
        )
    spent = run.compiling_seconds
    if spent is None:
        return None
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
    return ("at least " if open_ended else "") + seconds(spent), rest


def _settings(directory: RunDir | None) -> Iterator[Line]:
    """Print the settings (``--vary``) of this run, and how to see the runs with other settings."""
    label = store.label_of(directory) if directory is not None else ""
    if directory is None or not label:
        return
    parent = store.parent_of(directory)
    others = store.sub_runs(directory)
    if parent is not None:
        rest = f"  one of {len(store.sub_runs(parent)) + 1} runs of {escape(store.address(parent))}"
    else:
        named = ", ".join(escape(shlex.quote(store.address(sub)), 200) for sub in others[:OTHERS])
        more = f" and {len(others) - OTHERS} more" if len(others) > OTHERS else ""
        rest = f"  other runs: jaxscope report {named}{more}" if others else ""
    yield line(f"with {escape(label, 200)}", (rest, "dim"), hang=2)


def ending(run: Run, directory: RunDir | None) -> tuple[str, bool]:
    """Return how the run ended, and whether that is a failure."""
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
    """Return, after a comma, when and why the recording of a process stopped early; empty if none did."""
    if not run.stopped:
        return ""
    first = run.stopped[0]
    assert first.stopped is not None
    at = run.seconds_at(first.stopped.t_ns)
    others = "" if first is run.main else " of a process that it started"
    after = f" after {seconds(max(0.0, at))}" if at is not None else ""
    return f", the recording{others} stopped{after}: {escape(first.stopped.reason, 200)}"
