"""A finding in words: its title, its fix, its evidence."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from jaxscope.present.render import short, text
from jaxscope.schema.findings import Contexts, Evidence, Finding, fix_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message, Names, Parts, message

NAMED = 3  # targets or settings named in a title


class WordedEvidence(msgspec.Struct, frozen=True):
    """One entry of ``evidence`` in a JSON report."""

    text: str
    compilation: str | None
    program: str | None
    source: Frame | None
    step: int | None
    target: str | None
    setting: str | None


class WordedFinding(msgspec.Struct, frozen=True):
    """A finding with its words: one entry of ``findings`` in a JSON report.

    Attributes:
      code, severity, certainty, function, source, seconds, path: of the finding.
      title, fix: its words.
      contexts: the machines and settings it was found for; ``targets`` and ``settings`` are those of it.
      id: equal for the same finding in another run of the program.
      fix_kind, fix_arguments: the fix as data.
    """

    code: str
    severity: str
    certainty: str
    title: str
    function: str | None
    source: Frame | None
    evidence: list[WordedEvidence]
    fix: str | None
    seconds: float | None
    path: str | None
    targets: list[str]
    settings: list[str]
    contexts: Contexts
    id: str
    subject: str
    fix_kind: str | None
    fix_arguments: dict[str, Any]


def worded(f: Finding) -> WordedFinding:
    """``f`` with its words."""
    fix, identity = fix_of(f), f.identity
    return WordedFinding(
        f.code,
        f.severity,
        f.certainty,
        title(f),
        f.function,
        f.source,
        [
            WordedEvidence(evidence(e), e.compilation, e.program, e.source, e.step, e.target, e.setting)
            for e in f.evidence
        ],
        fix_text(f),
        f.seconds,
        f.path,
        list(f.contexts.targets),
        list(f.contexts.settings),
        f.contexts,
        f"{f.code}-{hashlib.sha256(repr(identity).encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
        repr(identity.subject),
        fix.kind if fix is not None else None,
        fix.arguments if fix is not None else {},
    )


def title(f: Finding) -> str:
    """One sentence that names the thing, and for which machines and under which settings it is true."""
    return text(f.title) + _contexts(f.contexts)


def headline(f: Finding) -> str:
    """The title in short, for a table of findings."""
    return short(f.title) + _contexts(f.contexts)


def fix_text(f: Finding) -> str | None:
    """What to do, in one clause."""
    fix = fix_of(f)
    return None if fix is None else text(fix.words)


def evidence(e: Evidence) -> str:
    """What is there, and for which machine or under which setting."""
    found = text(e.text)
    if e.target is not None:
        return text(message("evidence-for-target", target=e.target, evidence=found))
    if e.setting is not None:
        return text(message("evidence-with-setting", setting=e.setting, evidence=found))
    return found


def _contexts(c: Contexts) -> str:
    parts: list[Message] = []
    if c.programs:
        programs = Names(tuple(f"#{n}" for n in c.programs))
        if c.latest is None:
            parts.append(message("in-programs", programs=programs))
        else:
            parts.append(message("in-programs-not-latest", programs=programs, latest=f"#{c.latest}"))
    if c.targets and not c.in_title:
        targets = Parts(tuple(c.targets[:NAMED])), _more(c.targets)
        named = Parts(targets, between="")
        parts.append(
            message("also-for-targets", targets=named) if c.ran else message("for-targets", targets=named)
        )
    if c.named:
        settings = Parts((Parts(tuple(c.named[:NAMED]), between="; "), _more(c.named)), between="")
        parts.append(message("with-settings", settings=settings))
    return "".join(map(text, parts))


def _more(names: list[str]) -> str:
    return f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
