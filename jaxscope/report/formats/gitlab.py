"""Write findings as a code quality report of GitLab, which shows them in merge requests.

A report is a JSON list. GitLab requires ``description``, ``check_name``, ``fingerprint``, ``severity`` and
``location.path``/``location.lines.begin`` (docs.gitlab.com, Code Quality, "Implement a custom tool").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from jaxscope.present.escape import escape
from jaxscope.present.findings import fix_text
from jaxscope.report.formats.concise import title
from jaxscope.report.formats.placed import Placed, fingerprint
from jaxscope.report.json_report import dumps
from jaxscope.schema.findings import ERROR, NOTE

_SEVERITIES = {ERROR: "critical", NOTE: "info"}


def render(findings: Sequence[Placed]) -> str:
    """Return the findings as a code quality report of GitLab, in JSON. A finding without a file has the file
    ``.``, and one without a line has line 1."""
    seen: Counter[str] = Counter()
    return dumps([_entry(p, seen) for p in findings])


def _entry(p: Placed, fingerprints: Counter[str]) -> dict[str, object]:
    """Return the entry of one finding in GitLab's report. ``fingerprints`` counts the entries by fingerprint,
    and this function counts the new one."""
    # GitLab keeps one entry for each fingerprint: one that occurs again gets a number at its end.
    f, mark = p.finding, fingerprint(p)
    fingerprints[mark] += 1
    return {
        "description": title(p) + (f" ({escape(fix_text(f))})" if f.fix else ""),
        "check_name": f.code,
        "fingerprint": mark if fingerprints[mark] == 1 else f"{mark}-{fingerprints[mark]}",
        "severity": _SEVERITIES.get(f.severity, "major"),
        # GitLab ignores entries without a file or a line.
        "location": {"path": escape(p.file or "."), "lines": {"begin": p.line or 1}},
    }
