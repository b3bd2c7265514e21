"""Findings with their file and line, for other programs. File names are relative to directories that the
caller gives, such as that in which the check runs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec

from jaxscope.schema import function_ids
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame


class Placed(msgspec.Struct, frozen=True):
    """A finding with its file and line. Its texts are not escaped yet.

    Attributes:
      finding: the finding.
      file: the name of the file, with ``/`` between directories; relative if one of the directories given to
        ``place`` contains the file. None: the finding has no source line, or the code is not from a file.
      line: the line, counted from 1; None: unknown.
    """

    finding: Finding
    file: str | None
    line: int | None


def place(findings: Iterable[Finding], bases: Sequence[str] = ()) -> list[Placed]:
    """Return each finding with its line and its file name. The name is relative to the first of the
    directories ``bases`` that contains the file."""
    return [Placed(f, *located(f.source, bases)) for f in findings]


def located(source: Frame | None, bases: Sequence[str]) -> tuple[str | None, int | None]:
    """Return (name of the file, line) of a source line, as in ``Placed``. Both are None if ``source`` is None
    or its code is not from a file."""
    if source is None or not source.file or source.file.startswith("<"):
        return None, None
    return relative(source.file, bases), source.line if source.line > 0 else None


def relative(file: str, bases: Sequence[str]) -> str:
    """Return the name of a file relative to the first directory in ``bases`` that contains it, or unchanged
    if none does. The name has ``/`` between directories."""
    path = PurePath(file)
    for base in bases:
        if base and path.is_absolute() and path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.as_posix()


def fingerprint(p: Placed) -> str:
    """Return a text by which other tools recognize the finding in a later run: a hash of the rule's code, the
    file, the function and the argument, without line numbers."""
    f = p.finding
    name = function_ids.read(f.function or "").qualname
    parts = (f.code, p.file or "", f.source.function if f.source is not None else "", name, f.path or "")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
