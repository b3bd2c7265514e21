"""Text in parts that each have a role: what the report, the terminal view and HTML show in colours of their
own.

Nothing is escaped here: whoever draws a span escapes its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = str | tuple[str, str]  # a text; a text and its role
# Without colour none of these is visible: where one matters, a glyph or a word is printed, too.
ROLES = (
    "dim", "bold", "title", "name", "figure", "path", "error", "warning", "note", "good", "retrace",
    "collective",
    "trace", "lower", "compile", "hit", "before", "after", "key",
)  # fmt: skip


def plain(spans: Iterable[Span]) -> str:
    """Return the text of ``spans`` without its roles."""
    return "".join(span if isinstance(span, str) else span[0] for span in spans)


def joined(parts: Sequence[Sequence[Span]], between: Span) -> list[Span]:
    """Return ``parts`` with ``between`` after each but the last; empty parts are left out."""
    spans: list[Span] = []
    for part in filter(None, parts):
        spans += [*([between] if spans else []), *part]
    return spans
