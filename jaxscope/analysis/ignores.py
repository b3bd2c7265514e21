"""Parse ``# jaxscope: ignore[JX101]`` comments, which suppress findings: the codes of the findings and the
lines to which a comment applies.

A comment applies to its own line. On the first or the last line of a statement with several lines, the
comment applies to all lines of the statement. The decorators of a def and its ``def`` line count as one
statement, because JAX reports the line of the first decorator as the function's line. A comment behind any
of the decorators applies to all of these lines.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator

import msgspec

_COMMENT = re.compile(r"#\s*+jaxscope:\s*+ignore(?![\w-])(\s*+\[([^\]\n]*+)\]?)?", re.IGNORECASE)
_BLANK = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})
MAX_CODES = 50


class Ignore(msgspec.Struct, frozen=True):
    """One ``# jaxscope: ignore`` comment, which suppresses findings.

    Attributes:
      line: the line of the comment.
      codes: the codes of the findings that the comment names: ``JX101``; None: all codes; empty: no code
        could be read.
      first, last: the first and the last line to which the comment applies.
    """

    line: int
    codes: tuple[str, ...] | None
    first: int
    last: int


def find(source: str) -> list[Ignore]:
    """Return the ``# jaxscope: ignore`` comments of a Python text, in order of lines. Never raises. From the
    first statement on that Python cannot read, a comment applies only to its own line."""
    found: list[Ignore] = []
    reached = 0
    try:
        if "\0" in source:  # no Python; and CPython 3.13's tokenizer leaves an exception behind (SystemError)
            raise ValueError
        for statement in _statements(source):
            found += statement.ignores()
            reached = statement.last
    except (
        tokenize.TokenError,
        SyntaxError,
        ValueError,
        RecursionError,
    ):  # IndentationError is a SyntaxError
        for number, text in enumerate(source.split("\n"), 1):
            if number > reached and (codes := _codes(text)) is not _NONE:
                found.append(Ignore(number, codes, number, number))
    return found


class _Nothing(tuple[str, ...]):
    pass


_NONE = _Nothing()  # the line has no such comment; None stands for a comment without codes


def _codes(text: str) -> tuple[str, ...] | None:
    """Return the codes in a ``# jaxscope: ignore[JX101]`` comment on a line of source. Return None if the
    comment has no brackets and so applies to all codes; empty for ``ignore[]``. Return ``_NONE`` if the line
    has no such comment."""
    match = _COMMENT.search(text)
    if match is None:
        return _NONE
    if match[1] is None:
        return None
    return tuple(c.strip().upper() for c in match[2].split(",")[:MAX_CODES] if c.strip())


class _Statement:
    """The lines of one statement of Python source, and the comments on these lines."""

    def __init__(self) -> None:
        self.edges: set[int] = set()  # first and last lines of its logical lines
        self.comments: list[tuple[int, str]] = []
        self.first = self.last = 0

    def ignores(self) -> Iterator[Ignore]:
        """Yield the ``# jaxscope: ignore`` comments of the statement."""
        for line, text in self.comments:
            codes = _codes(text)
            if codes is _NONE:
                continue
            whole = line in self.edges
            yield Ignore(
                line,
                codes,
                self.first if whole and self.first else line,
                self.last if whole and self.first else line,
            )


def _statements(source: str) -> Iterator[_Statement]:
    """Yield the statements of ``source`` in order, and at the end the comments behind the last one.
    Decorators and their ``def`` line are one statement."""
    current, begin, decorator = _Statement(), 0, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            current.comments.append((token.start[0], token.string))
        elif token.type == tokenize.NEWLINE:
            current.edges |= {begin, token.start[0]}
            current.first = current.first or begin
            current.last = token.start[0]
            begin = 0
            if not decorator:
                yield current
                current = _Statement()
        elif token.type == tokenize.ENDMARKER:
            yield current
        elif token.type not in _BLANK and not begin:
            begin = token.start[0]
            decorator = token.string == "@"
