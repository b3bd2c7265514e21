"""The list of all rules by code, and the decorators that add a rule to it.

A rule is a function from a run to findings. Its page, ``pages/CODE.md``, is what ``jaxscope rule
CODE`` and the documentation site show. The page has the headings that ruff's rule pages have, a program with
the problem and one without; a test runs both.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from jaxscope.analysis import line_names
from jaxscope.analysis.syntax import syntax
from jaxscope.errors import UsageError
from jaxscope.model import sources
from jaxscope.model.records import cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import root_cause
from jaxscope.schema.findings import ERROR, NOTE, WARNING, Finding, fix_of
from jaxscope.schema.messages import Bytes, Message, Percent

PAGES = Path(__file__).parent / "pages"
# The modules of this package that define rules; ``rules()`` imports them.
MODULES = (
    "arguments",
    "statics",
    "functions",
    "placement",
    "contexts",
    "fast_path",
    "carried_state",
    "stale_captures",
    "random_keys",
    "ignored_results",
    "eager_compilations",
    "recompile_rate",
    "unrolled_loops",
    "batched_branches",
    "recomputed",
    "repeated_work",
    "no_result",
    "host_callbacks",
    "partial_sorts",
    "cheaper_forms",
    "jacobians",
    "precision",
    "padded_indices",
    "out_of_bounds",
    "unequal_ranks",
    "inserted_collectives",
    "loop_calls",
    "remats",
    "accumulated_sums",
    "donation",
    "possible_donation",
    "unused_results",
    "frozen_parameters",
    "row_gradients",
    "live_arrays",
    "temporaries",
    "transfers",
    "element_reads",
    "line_times",
    "debug_settings",
    "copied_arrays",
    "shardings",
    "replicated_work",
    "differing_results",
    "devices",
    "targets",
    "ranks",
    "checks",
)

_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}
LITTLE = 0.01  # share of the run's time: a note that costs less comes after warnings of unknown cost
# Rules about wrong numbers (old values of variables, random numbers that repeat): a mistake is worse than a
# slow program.
WRONG_NUMBERS = frozenset(
    {"JX131", "JX134", "JX135", "JX137", "JX138", "JX140", "JX304", "JX306", "JX307", "JX308", "JX309"}
)

Check = Callable[[Run], Iterator[Finding]]


class Rule(msgspec.Struct, frozen=True):
    """One rule, for example ``JX101 changing-shape``. ``check`` yields its findings in a run.

    Attributes:
      code: the code, ``JX101``. Its first digit is that of the family.
      name: the name, ``changing-shape``.
      severity: error, warning or note: that of most of its findings.
      slow: whether the program on its page takes minutes; tests run such a program only on request.
      needs_limit: whether it needs a limit that the user sets; the test of its page reads the limit from the
        page.
      needs_comparison: whether the run has to be compared with something: a baseline, a target, another run.
      target: the target for which the program on its page is compiled (``run --target``).
      recompiles: whether the rule explains why functions were compiled again.
    """

    code: str
    name: str
    severity: str
    check: Check
    slow: bool = False
    needs_limit: bool = False
    needs_comparison: bool = False
    target: str | None = None
    recompiles: bool = False

    @property
    def doc(self) -> str:
        """Return the rule's page in Markdown, without the heading. The page explains what the rule finds and
        why this is bad, and has a program with the problem and one without."""
        page = PAGES / f"{self.code}.md"
        return page.read_text("utf-8").partition("\n\n")[2].strip()

    @property
    def summary(self) -> str:
        """Return the first sentence of the page's section "What it does", without the period."""
        body = self.doc.partition("## What it does")[2].strip()
        return " ".join(body.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


_rules: dict[str, Rule] = {}


def add(
    code: str,
    name: str,
    severity: str,
    check: Check,
    *,
    slow: bool = False,
    needs_limit: bool = False,
    needs_comparison: bool = False,
    target: str | None = None,
    recompiles: bool = False,
) -> None:
    """Add a rule to the list of all rules. The arguments are the attributes of ``Rule`` with these names.

    Raises:
      ValueError: another rule has this code.
    """
    if code in _rules:
        raise ValueError(f"two rules have the code {code}")
    _rules[code] = Rule(code, name, severity, check, slow, needs_limit, needs_comparison, target, recompiles)


def rule(
    code: str,
    name: str,
    severity: str,
    *,
    slow: bool = False,
    target: str | None = None,
) -> Callable[[Check], Check]:
    """Return a decorator for a function that takes a run and yields findings. It adds the function to the
    list of rules: ``@rule("JX130", "carried-state", WARNING)``. The arguments are the attributes of ``Rule``
    with these names."""

    def decorate(check: Check) -> Check:
        add(code, name, severity, check, slow=slow, target=target)
        return check

    return decorate


def declare(code: str, name: str, severity: str, *, needs_limit: bool = False) -> None:
    """Register a rule that has a code (``JX190``), a name and a page of documentation, but no function that
    checks a run. Its findings come from the package ``check``, or from ``rules.ranks``. Without
    ``needs_limit``, the rule is added with ``needs_comparison``.

    Raises:
      ValueError: another rule has this code.
    """
    add(code, name, severity, _nothing, needs_limit=needs_limit, needs_comparison=not needs_limit)


def _nothing(run: Run) -> Iterator[Finding]:
    yield from ()


def rules() -> dict[str, Rule]:
    """Import all rules, and return them as code -> rule, in order of the codes."""
    for family in MODULES:
        importlib.import_module(f"jaxscope.rules.{family}")
    return dict(sorted(_rules.items()))


def find(text: str) -> Rule:
    """Return the rule whose code or name is ``text``, in upper or lower case: ``JX101`` or
    ``changing-shape``.

    Raises:
      UsageError: no rule has this code or name; the hint names similar rules, or how to list all rules.
    """
    for r in rules().values():
        if text.casefold() in (r.code.casefold(), r.name.casefold()):
            return r
    raise UsageError(f"there is no rule {text!r}", hint=nearest(text), slug="no-such-rule")


def nearest(text: str) -> str:
    """Return a hint for a user who wrote ``text``, which is no rule: ``did you mean changing-shape?``, the
    rules whose codes begin alike, or how to list all rules."""
    known, low = rules(), text.strip()[:80].casefold()
    number = re.fullmatch(r"[a-z]{1,3}-?(\d{1,9})", low)
    if number is not None:
        for n in range(len(number[1]), 0, -1):
            there = [code for code in known if code.startswith(f"JX{number[1][:n]}")]
            if there:
                if len(there) == 1:
                    return f"did you mean {there[0]}?"
                return f"of JX{number[1][:n]} there are {', '.join(there)}; jaxscope rule lists all"
        families = sorted({f"{code[:3]}xx" for code in known})
        return f"there are {', '.join(families)}: jaxscope rule lists them"

    def likeness(name: str) -> float:
        same = next(
            (n for n, (a, b) in enumerate(zip(low, name, strict=False)) if a != b), min(len(low), len(name))
        )
        return difflib.SequenceMatcher(None, low, name).ratio() + same / max(len(low), len(name), 1)

    best = max((r.name for r in known.values()), key=likeness)
    return f"did you mean {best}?" if likeness(best) > 0.8 else "jaxscope rule lists them"


@cached_until_changed
def findings(run: Run) -> list[Finding]:
    """Return the findings of all rules in ``run``, except rules that need a limit, in the order of reports
    (``in_order``). Findings with one root cause are merged."""
    return of_one_run(run, (f for r in rules().values() if not r.needs_limit for f in r.check(run)))


def of_one_run(run: Run, all_findings: Iterable[Finding]) -> list[Finding]:
    """Return ``all_findings``, the findings of all rules in ``run``, in the order of reports (``in_order``).
    Findings with one root cause are merged."""
    merged = root_cause.with_what_follows(run, all_findings)
    return in_order((_with_imports(run, f) for f in merged), least_seconds(run))


def _with_imports(run: Run, f: Finding) -> Finding:
    """Return the finding ``f`` with the imports of its file, by whose names its fix is written. Return it
    unchanged if it has no fix or no line, or if these names are unknown, as in a cell of a notebook."""
    fix, file = fix_of(f), "" if f.source is None else f.source.file
    if fix is None or not file.endswith(".py"):
        return f
    imported = line_names.imported(syntax(sources.of(run)(file)))
    if not imported or "*" in imported:
        return f
    return msgspec.structs.replace(f, fix=msgspec.structs.replace(fix, imported=imported))


def least_seconds(run: Run) -> float:
    """Return the fewest seconds of a note that count for its place in the order of reports."""
    return LITTLE * (run.seconds or 0.0)


def in_order(unordered: Iterable[Finding], least: float = 0.0) -> list[Finding]:
    """Return the findings ``unordered`` in the order of reports: errors first, then warnings that the program
    computes wrong numbers, then the findings that cost the most seconds. Findings with equal seconds are
    ordered by severity, then by the share of the program, then by bytes. The seconds of a note do not count
    if they are fewer than ``least``."""
    rank = functools.partial(_rank, least=least)
    ordered = [list(equal) for _, equal in itertools.groupby(sorted(unordered, key=rank), key=rank)]
    for equal in ordered:
        if len(equal) > 1:
            equal.sort(key=lambda f: repr(f.title))
    return list(itertools.chain.from_iterable(ordered))


def _rank(f: Finding, least: float) -> tuple[object, ...]:
    at = f.source
    place = at.place if at is not None else ("", 0)
    wrong = f.code in WRONG_NUMBERS and f.severity == WARNING
    spent = f.seconds or 0.0
    seconds = 0.0 if f.severity == NOTE and spent < least else -spent
    return (
        f.severity != ERROR,
        not wrong,
        seconds,
        severity_order(f),
        -_share(f),
        -_bytes(f),
        f.code,
        *place,
        f.path or "",
    )


def _share(f: Finding) -> float:
    """Return the largest share that the title of the finding ``f`` names; 0 if there is none."""
    waiting: list[object] = [f.title]
    largest = 0.0
    while waiting:
        field = waiting.pop()
        if isinstance(field, Message):
            waiting += field.fields.values()
        elif isinstance(field, Percent):
            largest = max(largest, field.share)
    return largest


def _bytes(f: Finding) -> float:
    """Return the largest number of bytes among the fields of the title of the finding ``f``, by which
    findings are ordered; 0 if there is none."""
    fields = f.title.fields.values() if isinstance(f.title, Message) else ()
    return max((v.bytes for v in fields if isinstance(v, Bytes)), default=0.0)


def severity_order(f: Finding) -> int:
    """Return a number for the severity of the finding ``f``, to sort by: 0 error, 1 warning, 2 note."""
    return _ORDER[f.severity]
