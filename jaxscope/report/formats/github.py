"""Write findings as workflow commands of GitHub Actions, which become annotations on the lines of a pull
request.

Example: ``::error file=train.py,line=88,title=JX101 changing-shape::text``. In the text, ``%``, CR and LF are
written as ``%25``, ``%0D`` and ``%0A``. In properties such as ``title``, ``:`` and ``,`` are written as
``%3A`` and ``%2C``, too (actions/toolkit, command.ts).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jaxscope.present.escape import escape
from jaxscope.present.findings import fix_text
from jaxscope.report.formats.concise import seen, title
from jaxscope.report.formats.placed import Placed
from jaxscope.schema.findings import ERROR, NOTE

_COMMANDS = {ERROR: "error", NOTE: "notice"}
EVIDENCE = 5


def render(findings: Iterable[Placed], names: Mapping[str, str] | None = None) -> str:
    """Return a text with a workflow command for each finding, which GitHub Actions shows as an annotation.
    ``names`` maps the code of a rule to its name, for the titles of the annotations."""
    return "".join(f"{annotation(p, (names or {}).get(p.finding.code, ''))}\n" for p in findings)


def annotation(p: Placed, name: str = "") -> str:
    f = p.finding
    properties = {
        "file": p.file,
        "line": p.line,
        "title": f"{f.code} {name}".strip(),
    }
    given = ",".join(f"{k}={_property(escape(v))}" for k, v in properties.items() if v is not None)
    texts = [title(p)]
    texts += [escape(text, 300) for text in seen(p)[:EVIDENCE]]
    texts += [escape(fix_text(f), 300)] if f.fix else []
    return f"::{_COMMANDS.get(f.severity, 'warning')} {given}::{_data(chr(10).join(texts))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
