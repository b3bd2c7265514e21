"""The rules by code, and how one is written.

A rule is a function from a run to findings. Its page, ``pages/CODE.md``, is what ``jaxscope rule
CODE`` and the documentation site show: ruff's headings, with a program that has the problem and one
that does not; a test runs both.
"""

from __future__ import annotations

import difflib
import importlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from jaxscope.errors import UsageError
from jaxscope.model.records import cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import root_cause
from jaxscope.schema.findings import ERROR, NOTE, WARNING, Finding
from jaxscope.schema.messages import Bytes, Message

PAGES = Path(__file__).parent / "pages"
# A file a family; imported when rules are asked for.
MODULES = (
    "arguments",
    "statics",
    "functions",
    "placement",
    "contexts",
    "fast_path",
    "carried_state",
    "stale_captures",
    "many_compilations",
    "programs",
    "loop_calls",
    "remats",
    "donation",
    "live_arrays",
    "transfers",
    "shardings",
    "devices",
    "targets",
    "ranks",
    "checks",
)

_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}

Check = Callable[[Run], Iterator[Finding]]


class Rule(msgspec.Struct, frozen=True):
    """One rule: ``JX101 changing-shape``.

    Attributes:
      check: yields the findings of a run.
      slow: whether its example takes minutes; tests run such an example only on request.
      needs_limit: whether it needs a limit that the user sets; the test of its page reads the limit from
        the page.
      needs_comparison: whether the run has to be compared with something: a baseline, a target, another
        run.
      target: the machine for which its example is compiled (``run --target``).
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
        """Return the rule's page in Markdown, without the heading.

        The page says what the rule finds and why this is bad, and has a program with the problem and one
        without.
        """
        page = PAGES / f"{self.code}.md"
        return page.read_text("utf-8").partition("\n\n")[2].strip()

    @property
    def summary(self) -> str:
        """The first sentence of what it looks for."""
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
    """Register a rule. Its page is ``pages/CODE.md``.

    Raises:
      ValueError: the code is taken.
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
    needs_limit: bool = False,
    target: str | None = None,
) -> Callable[[Check], Check]:
    """Register a rule: ``@rule("JX130", "carried-state", WARNING)`` before a function from a run to
    findings.
    """

    def decorate(check: Check) -> Check:
        add(code, name, severity, check, slow=slow, needs_limit=needs_limit, target=target)
        return check

    return decorate


def declare(code: str, name: str, severity: str, *, needs_limit: bool = False) -> None:
    """Register a code with its page, but without a function: a run alone does not have findings with this
    code.

    Args:
      needs_limit: whether the code needs a limit; if not, the run has to be compared with something.

    Raises:
      ValueError: the code is taken.
    """
    add(code, name, severity, _nothing, needs_limit=needs_limit, needs_comparison=not needs_limit)


def _nothing(run: Run) -> Iterator[Finding]:
    yield from ()


def rules() -> dict[str, Rule]:
    """Return all rules by code, in order."""
    for family in MODULES:
        importlib.import_module(f"jaxscope.rules.{family}")
    return dict(sorted(_rules.items()))


def find(text: str) -> Rule:
    """Return a rule by its code or its name.

    Raises:
      UsageError: no rule matches; the hint lists the rules.
    """
    for r in rules().values():
        if text.casefold() in (r.code.casefold(), r.name.casefold()):
            return r
    raise UsageError(f"there is no rule {text!r}", hint=nearest(text), slug="no-such-rule")


def nearest(text: str) -> str:
    """Return a hint with the rule that ``text`` may have meant.

    For a code, the hint has the rules of its family, because similar numbers have nothing in common. For a
    name, it has the most similar name; the beginning of the name counts as much as all other letters.
    """
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
    """Return what all rules that need no limit find in ``run``, in the order of ``in_order``."""
    found = (f for r in rules().values() if not r.needs_limit for f in r.check(run))
    return in_order(root_cause.with_what_follows(run, found))


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Errors first; then what cost seconds, the most first; then by severity and by bytes."""
    ordered = [list(equal) for _, equal in itertools.groupby(sorted(found, key=_rank), key=_rank)]
    for equal in ordered:
        if len(equal) > 1:
            equal.sort(key=lambda f: repr(f.title))
    return list(itertools.chain.from_iterable(ordered))


def _rank(f: Finding) -> tuple[object, ...]:
    at = f.source
    place = (at.file, at.line) if at is not None else ("", 0)
    return (f.severity != ERROR, -(f.seconds or 0.0), weight(f), -_bytes(f), f.code, *place, f.path or "")


def _bytes(f: Finding) -> float:
    """Return the largest number of bytes in the title; 0: there is none."""
    fields = f.title.fields.values() if isinstance(f.title, Message) else ()
    return max((v.bytes for v in fields if isinstance(v, Bytes)), default=0.0)


def weight(f: Finding) -> int:
    """Less is more severe."""
    return _ORDER[f.severity]
