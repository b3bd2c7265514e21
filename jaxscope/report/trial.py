"""Report what ``jaxscope try`` finds: the figures of a program before and after a change of its source, as
lines of text and as JSON."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from jaxscope import __version__
from jaxscope.model import diff, facts
from jaxscope.model.facts import BETTER, EQUAL, MIXED, WORSE, Fact
from jaxscope.model.run import Run
from jaxscope.present import differences
from jaxscope.present.findings import title
from jaxscope.present.text import Places, count, function_name
from jaxscope.report import contract
from jaxscope.report.bounded import cut
from jaxscope.report.json_report import SCHEMA
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.show import Command
from jaxscope.schema.findings import Finding

LINE_BYTES = 300  # longer lines of output are cut
FAILED, DIFFERS = "failed", "outputs differ"
EXIT_CODES = {BETTER: 0, WORSE: 1, DIFFERS: 1, FAILED: 1, EQUAL: 3, MIXED: 4}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf)\b")
_ROLES = {BETTER: "good", WORSE: "error", EQUAL: "dim"}
_NAMES = {
    "recompiles": "recompiles of your functions",
    "recompiles_outside_jit": "recompiles outside your jitted functions",
    "fast_path_misses": "calls off JAX's fast path",
    "transfers_to_host": "copies to the host",
    "transfers_to_devices": "copies to devices",
    "bytes_to_host": "bytes copied to the host",
    "bytes_to_devices": "bytes copied to devices",
    "peak_bytes": "peak memory",
    "least_seconds": "least time of a call",
}


class Side(NamedTuple):
    """The run (a recording of the program) before the change of its source, or the run after it.

    Attributes:
      label: what the report calls the run.
      name: the run's name, for commands.
      findings: the findings of the run. They were computed while the source files were those of this run,
        because some rules read them.
      output: what the program printed on stdout.
    """

    label: str
    name: str
    run: Run
    findings: Sequence[Finding]
    exit_code: int
    output: str


class OneFact(contract.Entry):
    """One figure, such as the number of recompiles, before and after the change.

    Attributes:
      name: the name of the figure.
      function: the name of the function to which the figure belongs; null: it belongs to the whole run.
      target: the target (a machine given with ``--target``) of the program to which the figure belongs; null:
        none.
      unit: count, bytes, flops or seconds.
      verdict: better, worse or equal: what the change did to the figure. A difference of at most 5 % in
        memory, operations or least time counts as equal.
    """

    name: str
    function: str | None
    target: str | None
    unit: str
    before: float
    after: float
    verdict: str


class FirstDifference(contract.Entry):
    """The first line in which the outputs of the program before and after the change differ by more than the
    tolerance.

    Attributes:
      line: the number of the line, from 1.
      before, after: the line in the output before and after the change, perhaps shortened; null: that output
        has fewer lines.
    """

    line: int
    before: str | None
    after: str | None


class Outputs(contract.Entry):
    """A comparison of what the program printed on stdout before the change and after it.

    Attributes:
      equal: true if the outputs have equal lines, apart from white space and from numbers that differ by at
        most ``tolerance``.
      identical: true if the outputs are equal in every character.
      tolerance: the largest relative difference of two numbers that counts as equal: 0.01 is 1 %.
      largest_difference: the largest relative difference of two numbers at the same place; null: something
        else than numbers and white space differs, or a difference is not finite.
    """

    equal: bool
    identical: bool
    tolerance: float
    largest_difference: float | None
    first_difference: FirstDifference | None


class OneFinding(contract.Entry):
    """A finding that disappeared with the change, or that is new after it.

    Attributes:
      line: the user's line: ``train.py:31``; null: unknown.
    """

    code: str
    function: str | None
    title: str
    line: str | None = None


class OneSide(contract.Entry):
    """The run (a recording of the program) before the change of its source, or the run after it.

    Attributes:
      label: what the report calls the run.
      run: the run's name, for commands.
    """

    label: str
    run: str
    exit_code: int


class Trial(contract.Entry):
    """What ``jaxscope try --format json`` prints: a comparison of the program before and after a change of
    its source.

    Attributes:
      verdict: better (also if only the program before the change failed), worse, equal or mixed (some figures
        are better, some worse); ``failed``: the changed program failed; ``outputs differ``: it prints
        something else.
      outputs: the comparison of what the program printed before and after the change.
      facts: the figures of the whole run, then those of the user's functions that both runs have. Without
        ``--all``, a figure of a function is listed only if it is better or worse.
      facts_equal: number of figures that are not listed.
      findings_gone, findings_new: findings that only the run before the change has, and those that only the
        run after it has.
      findings_left: number of findings that both runs have.
      next: useful commands.
    """

    schema: int
    jaxscope: str
    verdict: str
    before: OneSide
    after: OneSide
    outputs: Outputs
    facts: list[OneFact]
    facts_equal: int
    findings_gone: list[OneFinding]
    findings_new: list[OneFinding]
    findings_left: int
    next: list[Command]


class Compared(NamedTuple):
    """The comparison of a program before and after a change, as JSON and as objects for the text report.

    Attributes:
      page: the comparison as it is written in JSON.
      facts: the figures in ``page``, as objects.
      after: the run after the change.
    """

    page: Trial
    facts: list[Fact]
    after: Side


def compare(before: Side, after: Side, tolerance: float, *, everything: bool = False) -> Compared:
    """Compare the figures, findings and outputs of a program before and after a change of its source.
    ``tolerance`` is the largest relative difference at which two numbers in the outputs count as equal.
    ``everything`` (``--all``) lists all figures of functions, also those with the verdict ``equal``."""
    found = facts.facts(diff.runs(before.run, after.run))
    shown = [f for f in found if everything or f.function is None or f.verdict != EQUAL]
    outputs = compare_outputs(before.output, after.output, tolerance)
    gone, new = _only(before, after), _only(after, before)
    page = Trial(
        SCHEMA,
        __version__,
        _verdict(before, after, found, outputs),
        OneSide(before.label, before.name, before.exit_code),
        OneSide(after.label, after.name, after.exit_code),
        outputs,
        [_fact(f) for f in shown],
        len(found) - len(shown),
        [_finding(before.run, f) for f in gone],
        [_finding(after.run, f) for f in new],
        len(after.findings) - len(new),
        [
            Command(f"jaxscope diff {before.name} {after.name}", "what changed in each program"),
            Command(f"jaxscope report --format json --brief {after.name}", "what is left to improve"),
        ],
    )
    return Compared(page, shown, after)


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of what ``jaxscope try --format json`` prints."""
    return contract.schema_of(Trial, "jaxscope try")


def _verdict(before: Side, after: Side, figures: Sequence[Fact], outputs: Outputs) -> str:
    if after.exit_code:
        return FAILED
    if before.exit_code:
        return BETTER  # only the first program failed, so its figures are incomplete
    return facts.verdict(figures) if outputs.equal else DIFFERS


def _fact(f: Fact) -> OneFact:
    d = f.figure
    function = None if f.function is None else f.function.display_name
    return OneFact(d.what, function, f.target, d.unit, d.before, d.after, f.verdict)


def _identity(run: Run, f: Finding) -> tuple[str, str | None, str | None]:
    """Return (code of the rule, name of the function, argument) of a finding. The tuple is equal before and
    after a change of the source, because it has no line numbers."""
    function = run.functions.get(f.function or "")
    return f.code, None if function is None else function.name, f.path


def _only(side: Side, other: Side) -> list[Finding]:
    """Return the findings of ``side`` that ``other`` does not have. Lines do not matter (``_identity``)."""
    there = Counter(_identity(other.run, f) for f in other.findings)
    found = []
    for f in side.findings:
        key = _identity(side.run, f)
        if there[key]:
            there[key] -= 1
        else:
            found.append(f)
    return found


def _finding(run: Run, f: Finding) -> OneFinding:
    function = run.functions.get(f.function or "")
    name = None if function is None else function.display_name
    return OneFinding(f.code, name, cut(title(f), LINE_BYTES), Places(run).frame(f.source))


def compare_outputs(before: str, after: str, tolerance: float) -> Outputs:
    """Compare line by line what a program printed before a change and after it. Lines count as equal if their
    words are equal and their numbers differ by at most ``tolerance``, relative to the larger one."""
    if before == after:
        return Outputs(True, True, tolerance, 0.0, None)
    largest: float | None = 0.0
    first = None
    equal = True
    for n, (x, y) in enumerate(zip_longest(before.splitlines(), after.splitlines()), 1):
        if x == y:
            continue
        by = None if x is None or y is None else _largest_difference(x, y)
        largest = None if by is None or largest is None else max(by, largest)
        within = by is not None and by <= tolerance
        if first is None and not within:
            first = FirstDifference(n, *(None if s is None else cut(s, LINE_BYTES) for s in (x, y)))
        equal = equal and within
    return Outputs(equal, False, tolerance, largest, first)


def _largest_difference(x: str, y: str) -> float | None:
    """Return the largest relative difference of two numbers at the same place in the lines ``x`` and ``y``:
    2.0 and 2.5 -> 0.2. None if anything but numbers and white space differs, or a difference is not
    finite."""
    if _NUMBER.sub("0", x).split() != _NUMBER.sub("0", y).split():
        return None
    largest = 0.0
    for a, b in zip(map(float, _NUMBER.findall(x)), map(float, _NUMBER.findall(y)), strict=True):
        if a == b or (a != a and b != b):
            continue
        share = abs(a - b) / max(abs(a), abs(b))
        if not share < float("inf"):
            return None
        largest = max(largest, share)
    return largest


# -- text -------------------------------------------------------------------------------------------------


def lines(comparison: Compared) -> Iterator[Line]:
    """Yield the text report of ``jaxscope try``: the verdict, how the outputs differ, the figures, the
    findings that are gone or new, and commands to run next."""
    page = comparison.page
    role = {BETTER: "good", EQUAL: "bold"}.get(page.verdict, "error")
    yield line((page.verdict, role), f": {page.before.label} → {page.after.label}", hang=2)
    for side in (page.before, page.after):
        if side.exit_code:
            yield line((f"exit code {side.exit_code} ", "error"), f"with {side.label}", indent=2, hang=2)
    yield line(*_outputs(page.outputs), indent=2, hang=4)
    yield BLANK
    for f in comparison.facts:
        yield line((f"{f.verdict:<7}", _ROLES[f.verdict]), f"{_name(f)}: {_values(f)}", indent=2, hang=9)
    if page.facts_equal:
        rest = count(page.facts_equal, "more figure")
        yield line((f"equal  {rest} of functions: --all shows them", "dim"), indent=2)
    for mark, style, findings in (("-", "good", page.findings_gone), ("+", "error", page.findings_new)):
        if findings:
            yield BLANK
        for finding in findings:
            at = f" ({finding.line})" if finding.line is not None else ""
            yield line((f"{mark} {finding.code}", style), f"  {finding.title}{at}", indent=2, hang=4)
    yield BLANK
    for command in page.next:
        yield line(command.command, (f"   {command.shows}", "dim"), hang=4)


def _outputs(o: Outputs) -> Iterator[Any]:
    """Yield pieces of a line that says whether and where the outputs differ."""
    if o.identical:
        yield "the outputs are equal"
    elif o.equal:
        share = f"{o.largest_difference:.1e}"
        yield f"the outputs are equal but for numbers that differ by at most {share} of their value"
    else:
        yield ("the outputs differ", "error")
        if o.first_difference is not None:
            d = o.first_difference
            texts = ["nothing" if t is None else repr(t) for t in (d.before, d.after)]
            yield f" first in line {d.line:,}: {texts[0]} → {texts[1]}"
        if o.largest_difference is not None:
            yield f" (numbers by up to {o.largest_difference:.1e} of their value; --tolerance allows more)"


def _name(f: Fact) -> str:
    name = _NAMES.get(f.figure.what) or differences.name(f.part, f.figure)
    target = f" for {f.target}" if f.target is not None else ""
    return name if f.function is None else f"{function_name(f.function)}, {name}{target}"


def _values(f: Fact) -> str:
    d = f.figure
    if d.unit == facts.SECONDS:
        return f"{d.before:.3g} s → {d.after:.3g} s" if d.before != d.after else f"{d.before:.3g} s"
    return differences.change(d) if d.before != d.after else differences.amount(d.after, d.unit)
