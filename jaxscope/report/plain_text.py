"""A finding as a few plain lines: for an exception's message, a failing test, a line of a log.

No colours and no width: what prints them decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from jaxscope.log import store
from jaxscope.present.figures import seconds
from jaxscope.present.findings import fix_text
from jaxscope.present.findings import title as title_of
from jaxscope.report.escape import escape
from jaxscope.schema.findings import CERTAIN, Finding
from jaxscope.schema.keys import Frame

MOST = 10  # findings told in full


def told(found: Sequence[Finding]) -> str:
    """All of ``found``, each in :func:`lines`, one below the other."""
    parts = ["\n".join(lines(f)) for f in found[:MOST]]
    if len(found) > MOST:
        parts.append(f"and {len(found) - MOST:,} more")
    return "\n".join(parts)


def lines(f: Finding) -> list[str]:
    """What, then where and what it cost, then what to do."""
    title = escape(title_of(f), 600)
    said = [f"{f.code} {title if f.certainty == CERTAIN else f'it seems that {title}'}"]
    around = ", ".join(filter(None, (place(f.source), seconds(f.seconds) if f.seconds else None)))
    if around:
        said.append(f"    {around}")
    if f.fix:
        said.append(f"    → {escape(fix_text(f), 300)}")
    return said


def place(frame: Frame | None) -> str | None:
    """``train.py:110 in main``: from the current directory where it lies below it."""
    if frame is None:
        return None
    name = frame.file
    try:
        name = str(PurePath(name).relative_to(store.here()))
    except (ValueError, OSError):  # elsewhere, or the directory is gone
        pass
    inside = frame.function.replace(".<locals>", "")
    where = f"{escape(name, 300)}:{frame.line}"
    return where + (f" in {escape(inside, 100)}" if inside and inside != "<module>" else "")
