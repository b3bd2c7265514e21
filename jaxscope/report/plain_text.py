"""Write findings as plain lines without colors and without a fixed width, for exceptions, failing tests and
logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath

from jaxscope.log import store
from jaxscope.present.escape import escape
from jaxscope.present.findings import cost, fix_text, sentence
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame

MOST = 10  # findings that are written


def render(findings: Sequence[Finding]) -> str:
    """Return the first MOST findings as text. If there are more, the last line has the number of the
    others."""
    parts = ["\n".join(lines(f)) for f in findings[:MOST]]
    if len(findings) > MOST:
        parts.append(f"and {len(findings) - MOST:,} more")
    return "\n".join(parts)


def lines(f: Finding) -> list[str]:
    """Return the lines of one finding: its code and title, its place and cost, and its fix."""
    written = [f"{f.code} {escape(sentence(f), 600)}"]
    around = ", ".join(filter(None, (place(f.source), cost(f))))
    if around:
        written.append(f"    {around}")
    if f.fix:
        written.append(f"    → {escape(fix_text(f), 300)}")
    return written


def place(frame: Frame | None) -> str | None:
    """Return a line of code as ``train.py:110 in main``. The file name is relative to the current directory
    if the file is below it. Return None if ``frame`` is None."""
    if frame is None:
        return None
    name = frame.file
    try:
        name = str(PurePath(name).relative_to(store.here()))
    except (ValueError, OSError):  # not below the current directory, or that directory was deleted
        pass
    inside = frame.function.replace(".<locals>", "")
    where = f"{escape(name, 300)}:{frame.line}"
    return where + (f" in {escape(inside, 100)}" if inside and inside != "<module>" else "")
