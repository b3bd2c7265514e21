"""Report the program itself, in the first lines: its command, duration, devices, and how it ended."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.runs import compiling, ending, not_compiling, title
from jaxscope.present.text import count
from jaxscope.report.layout import Line, line

OTHERS = 3


def header(run: Run, directory: RunDir | None) -> Iterator[Line]:
    """Yield the first lines of a report: the command, the values of ``run --vary``, the seconds spent
    compiling and on other things, versions, devices, and how the program ended. ``directory`` is the
    directory of the run; None: unknown."""
    yield line((title(run, directory), "name"))
    yield from _settings(directory)
    if spent := compiling(run):
        yield line(*spent, hang=2)
        if other := not_compiling(run):
            yield line(*other, hang=2)
    facts = []
    started = run.main.started if run.main is not None else None
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
    yield line(" · ".join([*facts, ""]), (how, "error" if bad else ""), hang=2)


def _settings(directory: RunDir | None) -> Iterator[Line]:
    """Yield a line with the values that ``run --vary`` gave the program, and with the other runs of the same
    command. Yield nothing if the run was not made with ``--vary``."""
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
