"""The order of findings: what costs most is first, and a report shows all of a few."""

from jaxscope.report import findings
from jaxscope.rules import registry
from jaxscope.schema.findings import CERTAIN, ERROR, NOTE, WARNING, Finding
from jaxscope.schema.messages import Bytes, message


def of(code, severity=WARNING, seconds=None, size=None):
    title = code if size is None else message("replicated-bytes", path="x", bytes=Bytes(size), dimension=0)
    return Finding(code, severity, CERTAIN, title, seconds=seconds)


def test_errors_are_first_then_seconds_then_severity_and_bytes():
    found = [
        of("few_bytes", NOTE, size=1e6),
        of("many_bytes", NOTE, size=1e9),
        of("unknown_cost"),
        of("cheap", seconds=0.1),
        of("costly_note", NOTE, seconds=9.0),
        of("error", ERROR),
    ]
    assert [f.code for f in registry.in_order(found)] == [
        "error", "costly_note", "cheap", "unknown_cost", "many_bytes", "few_bytes",
    ]  # fmt: skip


def test_a_report_hides_none_of_eight_findings():
    found = [of(f"JX{n}", NOTE) for n in range(9)]

    def shown(few):
        return [line.text.plain for line in findings.section(few, places=NoPlaces())]

    assert not any("more finding" in text for text in shown(found[:8]))
    assert shown(found)[-1] == "and 1 more finding: --all shows them"


class NoPlaces:
    def frame(self, frame):
        return None
