"""Write findings as JUnit XML, so that CI servers show them as test results.

Each finding is a test case. If there are no findings, the file has one test case that passed.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape as xml
from xml.sax.saxutils import quoteattr

from jaxscope.present.escape import escape
from jaxscope.present.findings import fix_text
from jaxscope.report.formats.concise import seen, title, where
from jaxscope.report.formats.placed import Placed
from jaxscope.schema.findings import NOTE

SUITE = "jaxscope check"


def render(findings: Sequence[Placed]) -> str:
    """Return the findings as JUnit XML in ASCII. Errors and warnings are failed test cases; notes are passed
    ones."""
    failed = sum(p.finding.severity != NOTE for p in findings)
    counts = f'tests="{max(1, len(findings))}" failures="{failed}" errors="0" skipped="0"'
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="jaxscope" {counts}>',
        f' <testsuite name="{SUITE}" {counts}>',
    ]
    lines += [line for p in findings for line in _case(p)]
    if not findings:
        lines.append(f'  <testcase classname="jaxscope" name="{SUITE}"/>')
    lines += [" </testsuite>", "</testsuites>", ""]
    # Other characters become XML references, so that the encoding of the file does not matter.
    return "\n".join(lines).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _case(p: Placed) -> list[str]:
    f = p.finding
    head = {"classname": escape(p.file or "jaxscope"), "name": f"{f.code} {title(p)}"}
    if p.file is not None:
        head["file"] = escape(p.file)
    if p.line is not None:
        head["line"] = str(p.line)
    attributes = " ".join(f"{k}={quoteattr(v)}" for k, v in head.items())
    body = [where(p), *map(escape, seen(p)), escape(fix_text(f) or "")]
    text = xml("\n".join(line for line in body if line))
    if f.severity == NOTE:
        return [f"  <testcase {attributes}>", f"   <system-out>{text}</system-out>", "  </testcase>"]
    message = quoteattr(title(p))
    return [
        f"  <testcase {attributes}>",
        f"   <failure type={quoteattr(f.code)} message={message}>{text}</failure>",
        "  </testcase>",
    ]
