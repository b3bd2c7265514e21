"""Write findings as SARIF 2.1.0 (OASIS), a format that code scanning services read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from jaxscope import __version__
from jaxscope.present.escape import escape
from jaxscope.present.findings import evidence, fix_text
from jaxscope.report.formats.concise import title
from jaxscope.report.formats.placed import Placed, fingerprint, located
from jaxscope.report.json_report import dumps
from jaxscope.rules.registry import Rule
from jaxscope.schema.findings import ERROR, NOTE

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {ERROR: "error", NOTE: "note"}
RELATED = 5


def render(findings: Sequence[Placed], rules: dict[str, Rule], bases: Sequence[str] = ()) -> str:
    """Return the findings as SARIF (a JSON format for findings), with a description of each rule that has
    findings. ``rules`` maps the code of each rule (``JX120``) to the rule. File names in the evidence are
    relative to the first of the directories ``bases`` that contains the file."""
    return dumps(document(findings, rules, bases))


def document(findings: Sequence[Placed], rules: dict[str, Rule], bases: Sequence[str] = ()) -> dict[str, Any]:
    """Return the SARIF document as plain data. The parameters are those of ``render``."""
    codes = sorted({p.finding.code for p in findings})
    index = {code: n for n, code in enumerate(codes)}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "jaxscope",
                        "version": __version__,
                        "rules": [_rule(code, rules.get(code)) for code in codes],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(p, index, bases) for p in findings],
            }
        ],
    }


def _rule(code: str, rule: Rule | None) -> dict[str, Any]:
    if rule is None:
        return {"id": code}
    return {
        "id": code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary or rule.name},
        "help": {"text": rule.doc, "markdown": rule.doc},
        "defaultConfiguration": {"level": _LEVELS.get(rule.severity, "warning")},
    }


def _result(p: Placed, index: dict[str, int], bases: Sequence[str]) -> dict[str, Any]:
    """Return the entry ``results`` of one finding. ``index`` maps the code of a rule to its position in the
    list of rules. Of the first RELATED (5) observations, those with a source line become related
    locations."""
    f = p.finding
    message = title(p) + (f"\n{escape(fix_text(f))}" if f.fix else "")
    found: dict[str, Any] = {
        "ruleId": f.code,
        "ruleIndex": index[f.code],
        "level": _LEVELS.get(f.severity, "warning"),
        "message": {"text": message},
        "locations": [] if p.file is None else [_location(p.file, p.line)],
        "partialFingerprints": {"jaxscope/v1": fingerprint(p)},
        "properties": {
            "certainty": f.certainty,
            "function": f.function,
            "path": f.path,
            "seconds": f.seconds,
        },
    }
    related: list[dict[str, Any]] = []
    for e in f.evidence[:RELATED]:
        file, line = located(e.source, bases)
        if file is not None:
            words = {"text": escape(evidence(e))}
            related.append({**_location(file, line), "id": len(related), "message": words})
    if related:
        found["relatedLocations"] = related
    return found


def _location(file: str, line: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": uri(file)}}
    if line is not None:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def uri(file: str) -> str:
    """Return the name of a file as a URI: ``file:///...`` if the name is absolute, else a relative URI. Bytes
    of the name that are not UTF-8 are percent-encoded."""
    text = quote(file, errors="surrogateescape" if _escaped_bytes(file) else "surrogatepass")
    return "file://" + text if PurePath(file).is_absolute() else text


def _escaped_bytes(text: str) -> bool:
    """Return whether the file name ``text`` can be converted back to bytes. Each of its lone surrogates must
    stand for a byte that is not UTF-8, as ``os.fsdecode`` writes it."""
    return all(not 0xD800 <= ord(c) <= 0xDFFF or 0xDC80 <= ord(c) <= 0xDCFF for c in text)
