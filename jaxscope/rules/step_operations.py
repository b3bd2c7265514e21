"""Rule JX605: each iteration of a loop runs operations outside jit."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.rewrap_site import depends_on_a_condition, loop_around
from jaxscope.model import payers, sources, transfers
from jaxscope.model.payers import Step
from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Count, Names, Seconds, message

# Seconds that the host needs for an operation outside jit, or more. On CPUs of 2020 to 2024 with JAX 0.10.2
# and 0.12.0.1, jnp.cos(x) took 10 us, x + 1 25 to 50 us, x[3] 150 to 200 us.
EACH_S = 10e-6
FEWEST = 100  # iterations
# Shares of the time of the loop, and of the run, that are worth a note; share of the run for a warning
OF_LOOP, OF_RUN, MUCH = 0.01, 0.002, 0.05


@rule("JX605", "operations-in-each-step", WARNING)
def operations_in_each_step(run: Run) -> Iterator[Finding]:
    total = run.seconds
    for step in payers.steps(run):
        counted = _once_in_each_iteration(run, step)
        times = counted.count if counted is not None else None
        if counted is None or times is None or times < FEWEST or not total:
            continue
        seconds = times * step.operations * EACH_S
        if seconds < OF_LOOP * counted.span or seconds < OF_RUN * total:
            continue
        line = Frame(step.loop.file, step.lines[0], "")
        text = message(
            "operations-in-each-iteration",
            loop=step.loop,
            operations=Count(step.operations, "operation"),
            lines=Names(tuple(map(str, step.lines)), len(step.lines)),
            n=times,
            seconds=Seconds(seconds),
        )
        cost = message("cost-of-an-operation")
        yield Finding(
            code="JX605",
            severity=WARNING if seconds >= MUCH * total else NOTE,
            certainty=LIKELY,
            title=text,
            source=line,
            evidence=[Evidence(cost, source=Frame(step.loop.file, n, "")) for n in step.lines],
            fix=Fix(message("fix-jit-iteration"), "jit"),
            seconds=seconds,
            subject=subject(step),
            timed=True,
        )


def subject(step: Step) -> tuple[str, Frame]:
    """Return what distinguishes the finding about ``step`` from others: its ``Finding.subject``."""
    return "operations", step.loop


def _once_in_each_iteration(run: Run, step: Step) -> Transfer | None:
    """Return the copies to the host of a line that copies once in each iteration of the loop of ``step``. So
    it is known how often the loop was repeated, in all its executions together. None: there is no such line.
    """
    source = sources.of(run)(step.loop.file)
    found = [
        t
        for t in transfers.transfers(run)
        if t.direction == transfers.TO_HOST
        and t.kind not in transfers.NOT_ASKED
        and t.count
        and t.source is not None
        and t.source.file == step.loop.file
        and loop_around(source, t.source.line) == (step.loop.line, step.last)
        and not depends_on_a_condition(source, t.source.line)
    ]
    return max(found, key=lambda t: t.count or 0, default=None)
