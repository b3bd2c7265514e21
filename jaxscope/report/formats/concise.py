"""Write one line for each finding, as compilers do: ``train.py:88: JX101 what was found``."""

from __future__ import annotations

from collections.abc import Iterable

from jaxscope.present.escape import escape
from jaxscope.present.findings import evidence, sentence
from jaxscope.present.findings import title as title_of
from jaxscope.report.formats.placed import Placed
from jaxscope.schema.findings import NOTE

TITLE = 400


def render(findings: Iterable[Placed]) -> str:
    return "".join(f"{line(p)}\n" for p in findings)


def line(p: Placed) -> str:
    """Return the line for a finding: ``train.py:88: JX101 step recompiled``; without the place if the file is
    unknown."""
    return f"{where(p)}{': ' if p.file else ''}{headline(p)}"


def headline(p: Placed) -> str:
    """Return the code and the title of a finding: ``JX101 step recompiled``; for a note ``JX101 note: step
    recompiled``."""
    return f"{p.finding.code} {'note: ' if p.finding.severity == NOTE else ''}{title(p)}"


def where(p: Placed) -> str:
    """Return the place of a finding as ``train.py:88``. If the line is unknown, return only the file; if the
    file is unknown, an empty text."""
    if p.file is None:
        return ""
    return escape(p.file) + (f":{p.line}" if p.line is not None else "")


def seen(p: Placed) -> list[str]:
    """Return the observations that support a finding as texts, each only once, without those that the title
    contains. Control characters are not escaped."""
    found = title_of(p.finding)
    return list(
        dict.fromkeys(text for e in p.finding.evidence if (text := evidence(e)) and text not in found)
    )


def title(p: Placed) -> str:
    """Return the title of a finding, shortened and escaped. If the finding is not certain, the title begins
    with ``it seems that``."""
    return escape(sentence(p.finding), TITLE)
