"""Define styled text as spans. A span is a text with a role, such as ``warning``; the text report, the
terminal view and HTML have colors for the roles.

Nothing is escaped here, because the code that draws a span escapes its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Span = str | tuple[str, str]  # a text; a text and its role
# Roles are invisible without colors. If a role matters, the text also has a glyph or a word for it.
ROLES = (
    "dim", "bold", "title", "name", "figure", "path", "error", "warning", "note", "good", "retrace",
    "collective",
    "trace", "lower", "compile", "hit", "before", "after", "key",
)  # fmt: skip


def plain(spans: Iterable[Span]) -> str:
    """Return the text of ``spans`` without its roles."""
    return "".join(span if isinstance(span, str) else span[0] for span in spans)


def joined(parts: Sequence[Sequence[Span]], between: Span) -> list[Span]:
    """Return the spans of all ``parts``, with ``between`` between two of them; empty parts are left out."""
    spans: list[Span] = []
    for part in filter(None, parts):
        spans += [*([between] if spans else []), *part]
    return spans
