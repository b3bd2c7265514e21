"""Write a paragraph for each finding: its source line with a mark (``^^^^``) below the code, its evidence,
and its fix.

The source line is read from the file as it is now. It is left out if the file cannot be read, has become
shorter, or has an empty line there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from jaxscope.analysis.paths import root
from jaxscope.model import sources
from jaxscope.present.escape import escape
from jaxscope.present.findings import cost, fix_text
from jaxscope.report.formats.concise import headline, seen, where
from jaxscope.report.formats.placed import Placed
from jaxscope.schema import function_ids
from jaxscope.schema.findings import Finding

WIDEST = 160  # longer source lines are cut
EVIDENCE = 8


def render(findings: Iterable[Placed], text: Callable[[str], str | None] = sources.text) -> str:
    """Return a text with a paragraph for each finding. ``text`` returns the contents of the file with the
    given name; None if the file cannot be read."""
    return "\n".join("".join(f"{line}\n" for line in entry(p, text)) for p in findings)


def entry(p: Placed, text: Callable[[str], str | None]) -> list[str]:
    """Return the lines of the paragraph about one finding. ``text`` is the parameter of ``render``."""
    f = p.finding
    spent = f" [{cost(f)}]" if f.seconds else ""
    lines = [f"{headline(p)}{spent}"]
    margin = " " * len(str(p.line or ""))
    if p.file is not None:
        lines.append(f"{margin}--> {where(p)}")
    lines += _excerpt(p, text, margin)
    lines += [f"{margin} = {escape(text, 300)}" for text in seen(p)[:EVIDENCE]]
    if f.fix:
        lines.append(f"{margin} = help: {escape(fix_text(f), 300)}")
    return lines


def _excerpt(p: Placed, text: Callable[[str], str | None], margin: str) -> list[str]:
    """Return three lines that show the finding's source line with a mark below it. Empty if the source line
    cannot be read. ``margin`` has the spaces before ``|``."""
    source = p.finding.source
    if source is None or p.line is None:
        return []
    body = text(source.file)
    found = body.split("\n")[p.line - 1 : p.line] if body is not None else []
    if not found or not found[0].strip():
        return []
    code = escape(found[0].expandtabs(4).rstrip(), WIDEST)
    start, length = _mark(code, p.finding)
    return [
        f"{margin} |",
        f"{p.line} | {code}",
        f"{margin} | {' ' * start}{'^' * length}",
    ]


def _mark(code: str, f: Finding) -> tuple[int, int]:
    """Return (column, length) of the mark (``^^^^``) below the source line ``code``: below the name of the
    finding's function or, if ``code`` does not contain it, of its argument; else below the whole code."""
    for name in (function_ids.read(f.function or "").name, root(f.path or "")):
        found = re.search(rf"\b{re.escape(name)}\b", code) if name.isidentifier() else None
        if found is not None:
            return found.start(), len(name)
    bare = code.lstrip()
    return len(code) - len(bare), max(1, len(bare.partition("  #")[0].rstrip()))
