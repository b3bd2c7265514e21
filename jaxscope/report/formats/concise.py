"""One line a finding, as compilers write them: ``train.py:88: JX101 what was found``."""

from __future__ import annotations

from collections.abc import Iterable

from jaxscope.report.escape import escape
from jaxscope.report.formats.placed import Placed
from jaxscope.schema.findings import CERTAIN, NOTE

TITLE = 400


def render(findings: Iterable[Placed]) -> str:
    return "".join(f"{line(p)}\n" for p in findings)


def line(p: Placed) -> str:
    return f"{where(p)}{': ' if p.file else ''}{p.finding.code} {title(p)}"


def where(p: Placed) -> str:
    """``train.py:88``; empty where nobody knows."""
    if p.file is None:
        return ""
    return escape(p.file) + (f":{p.line}" if p.line is not None else "")


def title(p: Placed) -> str:
    """What was found, with what it is not: an error, certain."""
    f = p.finding
    text = escape(f.title, TITLE)
    text = text if f.certainty == CERTAIN else f"it seems that {text}"
    return f"note: {text}" if f.severity == NOTE else text
