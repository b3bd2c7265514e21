"""Findings of a run, as data; ``present`` makes their text.

Findings are never in the log; they are computed when a run is read.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec

from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Words, message

CERTAIN, LIKELY = "certain", "likely"
ERROR, WARNING, NOTE = "error", "warning", "note"
ADVICE = "advice"  # a fix that is words only


class Evidence(msgspec.Struct, frozen=True):
    """One observation that supports a finding, at a compilation, a program or a line.

    Attributes:
      text: the observation; a message, or a plain text.
      step: the step in which it was made.
      target, setting: the target, or the setting of ``--vary``, where a finding has several.
    """

    text: Words
    compilation: str | None = None
    program: str | None = None
    source: Frame | None = None
    step: int | None = None
    target: str | None = None
    setting: str | None = None


class Fix(msgspec.Struct, frozen=True):
    """The fix of a finding.

    Attributes:
      words: one clause; a message, or a plain text.
      kind: the action, for programs that read the report: ``pad``, ``donate``, ``device_put``, ... (ADVICE:
        words only).
      arguments: the arguments of the action, as data: ``{"donate_argnames": ["x"]}``.
    """

    words: Words
    kind: str = ADVICE
    arguments: dict[str, Any] = {}


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The forms of the program that have a finding.

    Attributes:
      ran: whether the program that ran has the finding.
      targets: the targets whose programs have the finding.
      settings: the settings of ``--vary`` that have the finding, if there are several settings.
      named: a short text for ``settings``, made of the values that they have in common; empty: all settings
        have the finding.
      in_title: whether the title already names the targets.
      programs: numbers of the compilations whose programs have the finding, if the latest program does not
        have it.
      latest: the number of that latest program.
    """

    ran: bool = True
    targets: list[str] = []
    settings: list[str] = []
    named: list[str] = []
    in_title: bool = False
    programs: list[int] = []
    latest: int | None = None


class Identity(NamedTuple):
    """The identity of a finding in all forms of the program: rule, function, and a value that identifies its
    subject.

    Attributes:
      code: the code of the rule.
      function: id of the function; None: the finding is about no function.
      subject: the subject of the finding, within its rule and function.
    """

    code: str
    function: str | None
    subject: Hashable


class Finding(msgspec.Struct, frozen=True):
    """One problem in a program, as data: ``present.findings`` makes the text.

    Attributes:
      code: the code of the rule (``JX101``).
      severity: error, warning or note.
      certainty: certain or likely.
      title: one sentence; a message, or a plain text.
      function: id of the function.
      source: the user's line.
      fix: how to solve it.
      seconds: seconds lost so far, if known.
      path: the argument or array, by the user's names, if there is one.
      contexts: the targets and settings for which it was found.
      subject: distinguishes it from other findings of its rule and function; None: by path, line and title.
    """

    code: str
    severity: str
    certainty: str
    title: Words
    function: str | None = None
    source: Frame | None = None
    evidence: list[Evidence] = []
    fix: Fix | Words | None = None
    seconds: float | None = None
    path: str | None = None
    contexts: Contexts = Contexts()
    subject: Hashable = None

    @property
    def identity(self) -> Identity:
        """Return the same value for the same finding under any target and setting."""
        name = self.title if isinstance(self.title, str) else self.title.slug
        subject = (self.path, self.source, name) if self.subject is None else self.subject
        return Identity(self.code, self.function, subject)


def fix_of(f: Finding) -> Fix | None:
    """Return the fix of ``f``; a plain text becomes a Fix of kind ADVICE."""
    return f.fix if f.fix is None or isinstance(f.fix, Fix) else Fix(f.fix)


def extended(fix: Fix | Words | None, slug: str, **more: Field) -> Fix | None:
    """Return ``fix`` with its words put into the template ``slug`` as the field ``fix``; None stays None."""
    if fix is None:
        return None
    known = fix if isinstance(fix, Fix) else Fix(fix)
    return msgspec.structs.replace(known, words=message(slug, fix=known.words, **more))
