"""The rules by code, and how one is written.

A rule is a function from a run to findings. Its docstring is what ``jaxscope rule CODE`` prints: ruff's
headings, with a program that has the problem and one that has not; a test runs both.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator

import msgspec

from jaxscope.errors import UsageError
from jaxscope.model.run import Run
from jaxscope.schema.findings import ERROR, NOTE, WARNING, Finding

# A file a family; imported when rules are asked for.
FAMILIES = (
    "arguments",
    "statics",
    "functions",
    "placement",
    "contexts",
    "fast_path",
    "carried",
    "captured",
    "rates",
    "programs",
    "remats",
    "donation",
    "live",
)

_ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}

Check = Callable[[Run], Iterator[Finding]]


class Rule(msgspec.Struct, frozen=True):
    """One rule: ``JX101 changing-shape``. ``slow``: its example takes minutes, and is run when asked for."""

    code: str
    name: str
    severity: str
    check: Check
    doc: str
    slow: bool = False

    @property
    def summary(self) -> str:
        """The first sentence of what it looks for."""
        body = self.doc.partition("## What it does")[2].strip()
        return " ".join(body.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")


_rules: dict[str, Rule] = {}


def add(code: str, name: str, severity: str, check: Check, doc: str | None, *, slow: bool = False) -> None:
    """Register a rule.

    Raises:
      ValueError: the code is taken, or nothing explains the rule.
    """
    if code in _rules or not doc:
        raise ValueError(f"{code}: taken, or without a docstring")
    _rules[code] = Rule(code, name, severity, check, inspect.cleandoc(doc), slow)


def rule(code: str, name: str, severity: str, *, slow: bool = False) -> Callable[[Check], Check]:
    """``@rule("JX130", "carried-state", WARNING)`` before a function from a run to findings."""

    def decorate(check: Check) -> Check:
        add(code, name, severity, check, check.__doc__, slow=slow)
        return check

    return decorate


def rules() -> dict[str, Rule]:
    """All rules by code, in order."""
    for family in FAMILIES:
        importlib.import_module(f"jaxscope.rules.{family}")
    return dict(sorted(_rules.items()))


def find(text: str) -> Rule:
    """A rule by its code or its name.

    Raises:
      UsageError: there is none; the hint names the nearest.
    """
    known = rules()
    for r in known.values():
        if text.casefold() in (r.code.casefold(), r.name.casefold()):
            return r
    names = [n for r in known.values() for n in (r.code, r.name)]
    near = difflib.get_close_matches(text, names, 1, 0.4) or difflib.get_close_matches(
        text.upper(), names, 1, 0.4
    )
    hint = f"did you mean {near[0]}?" if near else "jaxscope rule --all lists them"
    raise UsageError(f"there is no rule {text!r}", hint=hint, slug="no-such-rule")


def findings(run: Run) -> list[Finding]:
    """What all rules find in ``run``: errors first, then by seconds."""
    return ranked(f for r in rules().values() for f in r.check(run))


def ranked(found: Iterable[Finding]) -> list[Finding]:
    """Errors first, then by seconds."""
    return sorted(found, key=lambda f: (_ORDER[f.severity], -(f.seconds or 0.0), f.code, f.title))
