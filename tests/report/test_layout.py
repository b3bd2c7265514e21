"""Lines of a report: the text of each span is escaped."""

import io

from jaxscope.report.console import console
from jaxscope.report.layout import line, put


def test_a_line_escapes_every_span():
    page = io.StringIO()
    put(console(page), [line("a\x1b[2J", ("b\nc", "name"), right=("d\u202e", "figure"))])
    assert page.getvalue().split() == [r"a\x1b[2Jb\nc", r"d\u202e"]
