"""What is concluded from a run: findings and how sure they are. All of it is data; words are made by ``present``.

Conclusions are never in the log; they are made when a run is read.
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
    """Where a finding can be seen: a compilation, a program or a line, and what is there.

    Attributes:
      text: what is there; a message, or a plain text.
      step: when.
      target, setting: of a finding for several, the machine or the setting of ``--vary`` that this is about.
    """

    text: Words
    compilation: str | None = None
    program: str | None = None
    source: Frame | None = None
    step: int | None = None
    target: str | None = None
    setting: str | None = None


class Fix(msgspec.Struct, frozen=True):
    """What to do about a finding, in one clause.

    Attributes:
      words: the clause; a message, or a plain text.
      kind: what is done, for programs that read the report: ``pad``, ``donate``, ``device_put``, ... (ADVICE: words only).
      arguments: what it is done with, as data: ``{"donate_argnames": ["x"]}``.
    """

    words: Words
    kind: str = ADVICE
    arguments: dict[str, Any] = {}


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In which forms of the program a finding was made.

    Attributes:
      ran: in the program that ran, whatever ``targets`` there are besides.
      targets: machines that are not there, for whose programs it is true.
      settings: those of ``--vary`` under which it was found, where the program was run under several.
      named: the settings as they are named to people: what they have in common; empty where it is found under all.
      in_title: the title names the targets itself.
      programs: numbers of the compilations whose programs have it, where the latest program does not.
      latest: the number of that latest one.
    """

    ran: bool = True
    targets: list[str] = []
    settings: list[str] = []
    named: list[str] = []
    in_title: bool = False
    programs: list[int] = []
    latest: int | None = None


class Identity(NamedTuple):
    """What makes two findings the same finding: the rule, the function and what it is about, in any form of the program."""

    code: str
    function: str | None
    subject: Hashable


class Finding(msgspec.Struct, frozen=True):
    """One thing worth doing something about, as data: ``present.findings`` makes the words.

    Attributes:
      code: the rule's (``JX101``).
      severity: error, warning or note.
      certainty: certain or likely.
      title: one sentence that names the thing; a message, or a plain text.
      function: id of the function it is about.
      source: the user's line to look at.
      fix: what to do.
      seconds: what it cost so far, where that is known.
      path: the argument or array it is about, by the user's names, where it is about one.
      contexts: the machines and settings it was found for.
      subject: what tells it from the other findings of its rule and function; None: its path, line and title.
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
        """Equal for what is the same finding, for whatever machine and under whatever setting."""
        name = self.title if isinstance(self.title, str) else self.title.slug
        subject = (self.path, self.source, name) if self.subject is None else self.subject
        return Identity(self.code, self.function, subject)


def fix_of(f: Finding) -> Fix | None:
    """The fix of ``f`` with its kind."""
    return f.fix if f.fix is None or isinstance(f.fix, Fix) else Fix(f.fix)


def extended(fix: Fix | Words | None, slug: str, **more: Field) -> Fix | None:
    """``fix`` in the words of the template ``slug``, whose field ``fix`` it is; None stays None."""
    if fix is None:
        return None
    known = fix if isinstance(fix, Fix) else Fix(fix)
    return msgspec.structs.replace(known, words=message(slug, fix=known.words, **more))
