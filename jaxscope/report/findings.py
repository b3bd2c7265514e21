"""Report findings, and the sizes to which inputs can be padded, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxscope.analysis.grouping import grouped
from jaxscope.model import observed_sizes
from jaxscope.model.run import Run
from jaxscope.present.escape import escape
from jaxscope.present.findings import cost, fix_text, mark, place, sentence
from jaxscope.present.text import Places, count, function_name, listed
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.schema.findings import ERROR, WARNING, Finding

SHOWN = 8  # findings that are listed
LONGEST = 1_200  # characters of a title or a fix; longer ones are cut


def section(findings: Sequence[Finding], places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield the lines of the report's section on findings, in the given order: the first SHOWN, or all with
    ``everything`` (``--all``). Yield nothing if there are no findings. ``places`` shortens file names."""
    if not findings:
        return
    shown = findings if everything else findings[:SHOWN]
    yield BLANK
    lost = ""
    if any(f.seconds for f in shown):
        lost = "; on the right: the time lost"
        if any(f.seconds and f.at_most for f in shown):
            lost += "; up to: the advice saves at most this"
    yield line(("Findings", "title"), (f"  (▲ warning, · note{lost})", "dim"))
    for f in shown:
        yield from entry(f, places)
    rest = len(findings) - len(shown)
    if rest:
        yield line((f"and {count(rest, 'more finding')}: --all shows them", "dim"), indent=2)


def entry(f: Finding, places: Places) -> Iterator[Line]:
    """Yield one or two lines about a finding: what was found, where and what it costs, then how to fix it (if
    a fix is known). ``places`` shortens file names."""
    steps = [e.step for e in f.evidence if e.step is not None]
    when = f"step {steps[0]:,}" if len(f.evidence) == len(steps) == 1 else ""
    words = sentence(f)
    where = ", ".join(filter(None, (when, place(f, places))))
    yield line(
        mark(f),
        (f" {f.code}", "name"),
        f"  {escape(words, LONGEST)}",
        (f"  ({where})" if where else "", "path"),
        right=(cost(f), "figure") if f.seconds else None,
        indent=2,
        hang=9,
    )
    if f.fix:
        yield line(("→ ", "good"), escape(fix_text(f), LONGEST), indent=11, hang=2)


def in_summary(findings: Sequence[Finding], places: Places) -> Iterator[Line]:
    """Yield at most two lines about findings, for the end of ``jaxscope run``: one with the
    number of errors and the first error, one with the number of warnings. A line is left out if its number is
    0; notes are not counted. ``places`` shortens file names."""
    errors = [f for f in findings if f.severity == ERROR]
    warnings = sum(f.severity == WARNING for f in findings)
    if errors:
        first, more = errors[0], len(errors) - 1
        where = places.frame(first.source)
        yield line(
            mark(first),
            (f" {count(len(errors), 'error')}: {first.code}", "error"),
            f"  {escape(sentence(first), 300)}",
            (f"  ({where})" if where else "", "dim"),
            f"; and {more:,} more" if more else "",
            indent=2,
            hang=4,
        )
    if warnings:
        yield line((f"▲ {count(warnings, 'warning')}", "warning"), ", see jaxscope report", indent=2)


def buckets(run: Run) -> Iterator[Line]:
    """Yield lines that propose sizes to which the user can pad inputs. Each argument with several sizes has a
    heading and several proposals, from few to many sizes. A proposal has the sizes for all these axes of the
    argument, the number of compilations that remain, and the share of padding."""
    together = grouped(((v.function.id, v.path), v) for v in observed_sizes.varying(run))
    for axes in together.values():
        first, several = axes[0], sorted(axes, key=lambda v: v.axis)
        named = f"axis {first.axis}" if len(axes) == 1 else f"axes {listed([str(v.axis) for v in several])}"
        ranges = [
            f"{count(len(v.observed), 'size')} from {min(v.observed):,} to {max(v.observed):,}"
            for v in several
        ]
        observed = listed(ranges) if len({*ranges}) > 1 else ranges[0] + " each" * (len(ranges) > 1)
        yield BLANK
        yield line(
            ("Sizes to pad to", "title"),
            f"  {named} of {escape(first.path)} in {function_name(first.function)}: {observed}",
            hang=4,
        )
        yield line((_weights(several), "dim"), indent=4, hang=2)
        for j in observed_sizes.joint(several):
            yield line(
                f"{count(j.compilations, 'compilation'):>15}  {j.padding_share:>4.0%} padding  ",
                (" x ".join(", ".join(f"{s:,}" for s in of) for of in j.sizes), "bold"),
                indent=2,
                hang=4,
            )


def _weights(axes: Sequence[observed_sizes.Varying]) -> str:
    """Return a line about how the shares of padding were computed: over how many calls, or over the
    compilations if calls were not counted. ``axes`` are the axes of one argument."""
    calls = axes[0].calls
    if calls is not None:
        return f"padding over {count(calls, 'call')}"
    return "the number of calls with each size is unknown: each compilation counts as one"
