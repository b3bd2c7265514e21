"""Find loops of a probabilistic model that make a sample site in each iteration, for rule JX202. The library
applies the operations of each site on its own, and JAX compiles them for each size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis import sample_sites
from jaxscope.analysis.sample_sites import Sites
from jaxscope.analysis.stablehlo.repeats import Repeated
from jaxscope.model import payers, sources
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.schema.findings import LIKELY, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Count, message

SHARE = 0.1  # share of all seconds of compiling


def in_loops(run: Run, turns: int) -> Iterator[Finding]:
    """Yield a finding of JX202 for each loop of a model of ``sample_sites.LIBRARIES`` that makes a sample
    site in each iteration. The line that runs the model must take at least SHARE of all seconds of compiling.
    In addition, a program must have a block of operations that lines of the loop, or unknown lines, repeat at
    least ``turns`` times, or JAX must have compiled one operation on one line of the loop that often."""
    least = SHARE * payers.total_seconds(run)
    for p in payers.payers(run):
        if p.library not in sample_sites.LIBRARIES or p.seconds < least:
            continue
        times, loops = Counter[tuple[Frame, Hashable]](), dict[Frame, tuple[Sites, Compilation]]()
        for c in p.compilations:
            stacks: list[tuple[Sequence[Frame], int, Hashable]] = [
                ([r.source, *r.under] if r.source is not None else r.under, r.times, (c.id, r.first))
                for r in _repeated(run, c)
            ]
            for lines, n, what in (*stacks, (c.lines, 1, (c.function.id, *(at.place for at in c.lines)))):
                found = next(((at, s) for at in lines if (s := of_line(run, at)) is not None), None)
                if found is not None:
                    loop = Frame(found[0].file, found[1].line, found[0].function)
                    loops.setdefault(loop, (found[1], c))
                    times[loop, what] += n
        # In a program that the library made of the model, the operations may have no line of the model.
        unknown = max(_unknown_times(run, c, p.line) for c in p.compilations)
        for loop, (sites, first) in loops.items():
            if max(unknown, *(n for (at, _), n in times.items() if at == loop)) < turns:
                continue
            text = message(
                "sites-in-loop",
                function=_name(loop.function),
                library=p.library,
                compilations=Count(len(p.compilations), "compilation"),
                line=p.line,
            )
            yield Finding(
                code="JX202",
                severity=WARNING,
                certainty=LIKELY,
                title=text,
                source=loop,
                evidence=[Evidence(text, source=loop, compilation=first.id), Evidence(text, source=p.line)],
                fix=advice(sites),
                seconds=p.seconds if sites.carried is None else None,  # a scan may gain little
                at_most=True,
                subject=(loop.file, loop.line),
            )


def _name(qualified: str) -> str:
    """Return the name of the function that contains a comprehension: ``model`` for ``model.<listcomp>``."""
    named = [part for part in qualified.split(".") if not part.startswith("<")]
    return named[-1] if named else qualified


def _repeated(run: Run, c: Compilation) -> Sequence[Repeated]:
    """Return the repeated blocks of operations of the program that ``c`` compiled."""
    read = run.stablehlo(c)
    return read.repeated if read is not None else ()


def _unknown_times(run: Run, c: Compilation, line: Frame) -> int:
    """Return how often the program that ``c`` compiled repeats a block of operations for which no line of the
    user is known, or only ``line``, which calls the library. 0: never, or the program has no text."""
    read = run.stablehlo(c)
    if read is None:
        return 0
    at_call = [r.times for r in read.repeated if r.source is not None and r.source.place == line.place]
    return max([read.unknown_loop_times, *at_call])


def of_line(run: Run, at: Frame) -> Sites | None:
    """Return the loop around the line ``at`` that makes a sample site in each iteration; None: there is
    none."""
    return sample_sites.loop_of_sites(sources.of(run)(at.file), at.line)


def advice(sites: Sites) -> Fix:
    """Return the advice to make all sites of the loop ``sites`` at once, or in a scan if an iteration uses a
    variable of the iteration before."""
    if sites.carried is not None:
        return Fix(message("fix-scan-of-sites", name=sites.carried), "scan")
    return Fix(message("fix-plate"), "plate")
