"""Findings as data. A finding is one problem that a rule (``JX101``) found in a recorded program.

Findings are never stored in the log. They are computed when a recording is read. ``present`` writes them as
text.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

import msgspec

from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Words, message

CERTAIN, LIKELY = "certain", "likely"
ERROR, WARNING, NOTE = "error", "warning", "note"
ADVICE = "advice"  # Fix.kind of a fix that is only a text, without data for programs


class Evidence(msgspec.Struct, frozen=True):
    """One observation that supports a finding, with the compilation, the program or the line it is about.

    Attributes:
      text: the observation, as a message or as plain text.
      compilation: id of the compilation; None: the observation is not about one.
      program: id of the program; None: the observation is not about one.
      source: the user's line; None: no line.
      step: the step of the training loop in which the observation was made; None: unknown.
      target: name of the target machine, if the finding has observations of several targets.
      setting: name of the setting of ``--vary``, if the finding has observations of several settings.
    """

    text: Words
    compilation: str | None = None
    program: str | None = None
    source: Frame | None = None
    step: int | None = None
    target: str | None = None
    setting: str | None = None


class Fix(msgspec.Struct, frozen=True):
    """The change that solves the problem of a finding.

    Attributes:
      words: one clause for the user, as a message or as plain text.
      kind: the action, for programs that read the report: ``pad``, ``donate``, ``device_put``, ... ADVICE:
        there are only words.
      arguments: the arguments of the action, as data: ``{"donate_argnames": ["x"]}``.
    """

    words: Words
    kind: str = ADVICE
    arguments: dict[str, Any] = {}


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The forms of a program that have a finding (a problem).

    A program can have several forms: the program that ran, programs compiled for other machines (targets),
    and programs compiled with other settings (``--vary``).

    Attributes:
      ran: whether the program that ran has the finding.
      targets: names of the targets whose programs have the finding.
      settings: the settings of ``--vary`` with which the program has the finding, if there are several
        settings.
      named: a short text for ``settings``, made of the values that they have in common; empty: the program
        has the finding with all settings.
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
    """A value that is equal for the same problem in different runs, targets and settings of a program.
    ``function`` is an id (None: the finding is about no function); ``subject`` distinguishes findings of the
    same rule and function."""

    code: str
    function: str | None
    subject: Hashable


SHARES = frozenset({"JX605", "JX606", "JX608"})  # rules about a measured share of the time of the program


class Finding(msgspec.Struct, frozen=True):
    """One problem in a program, as data. ``present.findings`` writes the text.

    Attributes:
      code: the code of the rule (``JX101``).
      severity: error, warning or note.
      certainty: certain or likely.
      title: one sentence, as a message or as plain text.
      function: id of the function; None: the finding is about no function.
      source: the user's line; None: no line.
      evidence: the observations that support the finding.
      fix: how to solve the problem; None: no fix is known.
      seconds: seconds lost so far; None: unknown.
      path: the argument or array, by the user's names; None: the finding is about none.
      contexts: the targets and settings for which the problem was found.
      subject: distinguishes the finding from others of the same rule and function. None: path, line and title
        distinguish it.
      at_most: whether the fix may save less than ``seconds``: other lines may need some of the programs that
        were compiled in this time (an operation that several lines apply is compiled only for the first of
        them), or the seconds are a share of the time in which a program ran.
      timed: whether measured seconds decide that the finding is reported. Another run of the same program may
        then not have it.
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
    at_most: bool = False
    timed: bool = False

    @property
    def by_chance(self) -> bool:
        """Return whether another run of the same program may not have the finding: measured seconds decide
        that a note is reported, or the finding is about a measured share of the time. Checks must have the
        same result in each run, so they leave such findings out."""
        return self.timed and (self.severity == NOTE or self.code in SHARES)

    @property
    def identity(self) -> Identity:
        """Return a value that is equal for the same problem under any target and setting. Findings of several
        targets or settings are merged into one if their identities are equal."""
        name = self.title if isinstance(self.title, str) else self.title.slug
        subject = (self.path, self.source, name) if self.subject is None else self.subject
        return Identity(self.code, self.function, subject)


def fix_of(f: Finding) -> Fix | None:
    """Return the fix of finding ``f`` as a Fix; None: there is no fix. A fix that is a plain text becomes a
    Fix of kind ADVICE."""
    return f.fix if f.fix is None or isinstance(f.fix, Fix) else Fix(f.fix)


def extended(fix: Fix | Words | None, slug: str, **more: Field) -> Fix | None:
    """Return ``fix`` with a longer text; None for None. The new text is the message template ``slug``, in
    which the old text is the field ``{fix}``, and ``more`` are the other fields."""
    if fix is None:
        return None
    known = fix if isinstance(fix, Fix) else Fix(fix)
    return msgspec.structs.replace(known, words=message(slug, fix=known.words, **more))
