"""Findings as data. A finding is one problem that a rule (``JX101``) found in a recorded program.

Findings are never stored in the log. They are computed when a recording is read. ``present`` writes them as
text.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple, overload

import msgspec

from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Field, Message, Words, message

CERTAIN, LIKELY = "certain", "likely"
ERROR, WARNING, NOTE = "error", "warning", "note"
ADVICE = "advice"  # Fix.kind of a fix that is only a text, without data for programs


class Evidence(msgspec.Struct, frozen=True):
    """One observation that supports a finding, with the compilation, the program or the line it is about.

    Attributes:
      text: the observation, as a message or as plain text.
      compilation: id of the compilation; None: the observation is not about one.
      program: id of the program; None: the observation is not about one.
      source: the user's line; None: the observation is about no line.
      step: the step of the training loop in which the observation was made; None: unknown.
      target: the target (a machine for which the program was compiled, ``--target``), if the finding has
        observations of several; else None.
      setting: the setting (values that ``run --vary`` gave the program), if the finding has observations of
        several; else None.
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
        the fix is only known in words.
      arguments: the arguments of the action, as data: ``{"donate_argnames": ["x"]}``. A message is written
        as text in the report.
      imported: the names that the file of the finding's line imports -> their full names: ``jnp`` ->
        ``jax.numpy``. None: they are unknown.
    """

    words: Words
    kind: str = ADVICE
    arguments: dict[str, Any] = {}
    imported: dict[str, str] | None = None


class Contexts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The forms of a program that have a finding.

    Forms are the program that ran, programs compiled for other machines (targets), and programs of other
    settings (``run --vary`` runs it with several values of arguments or environment variables).

    Attributes:
      ran: whether the program that ran has the finding.
      targets: names of the targets whose programs have the finding.
      settings: the settings whose programs have the finding; empty if there is only one setting.
      named: short texts for ``settings``: the values that only these settings have in common, else their
        labels; empty: all settings have the finding.
      in_title: whether the finding's title already names the targets.
      programs: numbers of the compilations whose programs have the finding, if the latest program does not
        have it.
      latest: the number of that latest program; None: it has the finding.
    """

    ran: bool = True
    targets: list[str] = []
    settings: list[str] = []
    named: list[str] = []
    in_title: bool = False
    programs: list[int] = []
    latest: int | None = None


class Identity(NamedTuple):
    """A value that is equal for the same problem in different runs of a program, for different targets
    (``--target``) and settings (``run --vary``).

    Attributes:
      code: the code of the rule: ``JX101``.
      function: id of the function; None: the finding is about no function.
      subject: distinguishes findings of the same rule and function.
    """

    code: str
    function: str | None
    subject: Hashable


SHARES = frozenset({"JX605", "JX606", "JX608"})  # rules about a measured share of the program's time


class Finding(msgspec.Struct, frozen=True):
    """One problem in a program, as data. ``present.findings`` writes the text.

    Attributes:
      code: the code of the rule (``JX101``).
      severity: error, warning or note.
      certainty: certain or likely.
      title: one sentence, as a message or as plain text.
      function: id of the function; None: the finding is about no function.
      source: the user's line; None: the finding is about no line.
      evidence: the observations that support the finding.
      fix: how to solve the problem; None: no fix is known.
      seconds: seconds lost so far; None: unknown.
      path: the argument or array, by the user's names; None: the finding is about none.
      contexts: the targets (machines, ``--target``) and settings (values of ``run --vary``) whose programs
        have the finding.
      subject: a value that differs between findings of the same rule and function; None: path, line and the
        template of the title do.
      at_most: whether ``seconds`` is only an upper limit: the fix may save less.
      timed: whether the finding is reported because of measured seconds. Another run of the same program may
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
    # ``at_most``: other lines may need some of the programs that were compiled in this time (an operation
    # that several lines apply is compiled for the first of them only), or the seconds are a share of the run.
    at_most: bool = False
    timed: bool = False

    @property
    def by_chance(self) -> bool:
        """Return whether another run of the same program may lack the finding by chance: it is reported
        because of measured seconds (``timed``), and is a note or about a measured share of the time. Checks
        ignore such findings."""
        return self.timed and (self.severity == NOTE or self.code in SHARES)

    @property
    def identity(self) -> Identity:
        """Return a value that is equal for the same problem with any target (``--target``) and setting (``run
        --vary``). Findings with equal identities are merged into one."""
        name = self.title if isinstance(self.title, str) else self.title.slug
        subject = (self.path, self.source, name) if self.subject is None else self.subject
        return Identity(self.code, self.function, subject)


def fix_of(f: Finding) -> Fix | None:
    """Return the fix of finding ``f`` as a Fix, or None if there is no fix. A fix that is only a text becomes
    a Fix of kind ADVICE."""
    return f.fix if f.fix is None or isinstance(f.fix, Fix) else Fix(f.fix)


def slug_of(f: Finding) -> str | None:
    """Return the name of the message template for the fix of finding ``f``: ``fix-read-less``. None if there
    is no fix, or if the fix is plain text."""
    fix = fix_of(f)
    return fix.words.slug if fix is not None and isinstance(fix.words, Message) else None


def slugs_of(fix: Fix) -> Iterator[str]:
    """Yield the names of the templates of ``fix``: that of the whole text, then those of its parts."""
    words: object = fix.words
    while isinstance(words, Message):
        yield words.slug
        words = words.fields.get("fix")


def field_of(fix: Fix, slug: str, name: str) -> Field:
    """Return the value of the field ``name`` of the template ``slug`` in the text of ``fix``. None if the
    text is not made with this template."""
    words: object = fix.words
    while isinstance(words, Message):
        if words.slug == slug:
            return words.fields.get(name)
        words = words.fields.get("fix")
    return None


def with_field(fix: Fix, slug: str, **fields: Field) -> Fix:
    """Return ``fix`` with other values for these ``fields`` of the template ``slug`` in its text, if the text
    is made with this template."""

    def replaced(words: Field) -> Field:
        if not isinstance(words, Message):
            return words
        if words.slug == slug:
            return msgspec.structs.replace(words, fields={**words.fields, **fields})
        if "fix" not in words.fields:
            return words
        return msgspec.structs.replace(words, fields={**words.fields, "fix": replaced(words.fields["fix"])})

    words = replaced(fix.words)
    return msgspec.structs.replace(fix, words=words) if isinstance(words, Message) else fix


def merged(
    findings: Sequence[Finding],
    first: Finding,
    others: Sequence[Finding],
    *,
    titles: bool = False,
    **changes: object,
) -> list[Finding]:
    """Return ``findings`` with ``others``, some of them, merged into another one, ``first``: it gets their
    evidence and seconds, too, and the values ``changes`` of its fields. If ``titles`` is True, the titles of
    ``others`` become evidence."""
    titled = [(Evidence(f.title, source=f.source), *f.evidence) if titles else f.evidence for f in others]
    evidence = [*first.evidence, *itertools.chain.from_iterable(titled)]
    seconds = sum(f.seconds or 0.0 for f in (first, *others))
    together = msgspec.structs.replace(first, **{"evidence": evidence, "seconds": seconds, **changes})
    return [together if f is first else f for f in findings if f not in others]


@overload
def extended(fix: None, slug: str, **more: Field) -> None: ...
@overload
def extended(fix: Fix | Words, slug: str, **more: Field) -> Fix: ...
def extended(fix: Fix | Words | None, slug: str, **more: Field) -> Fix | None:
    """Return a copy of ``fix`` with a longer text, the message template ``slug``. The template contains the
    old text in its field ``fix``; ``more`` are the values of its other fields. A fix that is only a text
    becomes a Fix of kind ADVICE. Return None if ``fix`` is None."""
    if fix is None:
        return None
    known = fix if isinstance(fix, Fix) else Fix(fix)
    return msgspec.structs.replace(known, words=message(slug, fix=known.words, **more))
