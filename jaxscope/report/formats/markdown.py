r"""Write findings as GitHub-flavored Markdown: a table, and below it the evidence and fix of each finding,
folded.

The text is for a comment on a pull request and for ``$GITHUB_STEP_SUMMARY``. Its first line is an HTML
comment, by which a workflow finds the comment that it wrote earlier. All texts from the user's program are
code spans, in which no character is markup, a link or a mention (CommonMark 0.31, section 6.1; GFM tables
additionally need ``\|``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from jaxscope.present.escape import escape
from jaxscope.present.findings import cost, fix_text
from jaxscope.present.text import count
from jaxscope.report.formats.concise import seen, title, where
from jaxscope.report.formats.placed import Placed
from jaxscope.schema.findings import ERROR, NOTE

MARKER = "<!-- jaxscope check -->"
EVIDENCE = 8
MOST = 50  # findings in the table
LONGEST = 60_000  # characters: a comment on GitHub has at most 65,536
_SIGNS = {ERROR: "❌", NOTE: "📝"}


def render(findings: Sequence[Placed], *, run: str, failed: bool) -> str:
    """Return the findings as Markdown: a heading that says whether the check failed (``failed``), the name of
    the run (``run``), a table of the first MOST findings, and below it their evidence and fixes, as far as
    they fit into LONGEST characters."""
    notes = sum(p.finding.severity == NOTE for p in findings)
    parts = [count(len(findings) - notes, "finding")] if len(findings) > notes else ["no findings"]
    parts += [count(notes, "note")] if notes else []
    lines = [MARKER, f"### jaxscope check {'failed' if failed else 'passed'}: {', '.join(parts)}", ""]
    lines += [f"Run {code(run)}.", ""]
    if findings:
        lines += ["| | finding | cost | line |", "|---|---|---|---|"]
        lines += [_row(p) for p in findings[:MOST]]
        lines.append("")
    room = LONGEST - sum(len(line) + 1 for line in lines)
    shown = 0
    for p in findings[:MOST]:
        details = _details(p)
        room -= sum(len(line) + 1 for line in details)
        if room < 0:
            break
        lines += details
        shown += 1
    if shown < len(findings):
        rest = count(len(findings) - shown, "finding")
        lines += [f"{rest} without details here: see `jaxscope check`.", ""]
    return "\n".join(lines)


def code(text: str) -> str:
    """Return ``text``, shortened and escaped, as a Markdown code span on one line. Nothing in ``text`` can
    end the span."""
    inside = escape(text, 400)
    fence = "`" * (max((len(run) for run in re.findall("`+", inside)), default=0) + 1)
    pad = " " if inside.startswith("`") or inside.endswith("`") or not inside.strip() else ""
    return f"{fence}{pad}{inside or ' '}{pad}{fence}"


def _cell(text: str) -> str:
    return code(text).replace("|", "\\|")


def _row(p: Placed) -> str:
    f = p.finding
    line = _cell(where(p)) if p.file is not None else ""
    return f"| {_SIGNS.get(f.severity, '⚠️')} {f.code} | {_cell(title(p))} | {cost(f)} | {line} |"


def _details(p: Placed) -> list[str]:
    """Return the lines with the evidence and the fix of a finding, folded (``<details>``). Return an empty
    list if it has neither."""
    fix = fix_text(p.finding)
    items = [f"- {code(text)}" for text in seen(p)[:EVIDENCE]]
    items += [f"- fix: {code(fix)}"] if fix else []
    if not items:
        return []
    place = f" {p.file}:{p.line}" if p.file is not None and p.line is not None else ""
    summary = escape(f"{p.finding.code}{place}", 200)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;"), ("#", "&#35;")):
        summary = summary.replace(character, entity)
    return [f"<details><summary>{summary}</summary>", "", *items, "", "</details>", ""]
