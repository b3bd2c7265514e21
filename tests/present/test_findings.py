"""What a finding is about, as text."""

import pytest

from jaxscope.present import findings
from jaxscope.report import contract
from jaxscope.schema.arrays import Holder
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, message

LINE = Frame("/home/ann/work/train.py", 12, "main.<locals>.<lambda>")


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (None, "train.py:12 · exit-code"),  # the line and the title's template
        ("params", "params"),
        (("list", LINE.file, 7), "list · train.py · 7"),
        (("list", "/home/ann/other/data.py", 7), "list · /home/ann/other/data.py · 7"),
        ((LINE, (8, 4), 1), "train.py:12 · 8 · 4 · 1"),
        ((None, frozenset({"b", "a"})), "a · b"),
        ((Holder("container", "list", count=3), LINE), "container · list · 3 · train.py:12"),
        ((message("arrays-of-bytes", count="2 arrays", bytes=Bytes(4096)),), "2 arrays, 4.0 KiB"),
        ((), ""),
    ],
)
def test_the_subject_in_the_json_report_is_plain_text(subject, text):
    f = Finding("JX999", "note", "certain", message("exit-code"), source=LINE, subject=subject)
    assert findings.subject(f) == text


def test_the_argument_is_part_of_the_subject():
    f = Finding("JX101", "note", "certain", "train_step recompiled", source=LINE, path="batch['x']")
    assert contract.Finding.of(f).subject == "batch['x'] · train.py:12 · train_step recompiled"
