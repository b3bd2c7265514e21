"""Lines of a report: the text of each span is escaped."""

import io

from jaxscope.report.console import console
from jaxscope.report.layout import line, put


def test_a_line_escapes_every_span():
    page = io.StringIO()
    put(console(page), [line("a\x1b[2J", ("b\nc", "name"), right=("d\u202e", "figure"))])
    assert page.getvalue().split() == [r"a\x1b[2Jb\nc", r"d\u202e"]


def test_a_sign_and_a_number_of_a_line_do_not_stand_alone_at_the_end_of_a_line():
    page = io.StringIO()
    to = console(page, width=20)
    put(to, [line("arguments 1 B aaaa - 9 B"), line("a lambda at In[4], line 3")])
    assert [x.rstrip() for x in page.getvalue().splitlines()] == [
        "arguments 1 B aaaa",
        "- 9 B",
        "a lambda at In[4],",
        "line 3",
    ]


def test_a_command_to_copy_is_not_wrapped():
    page = io.StringIO()
    command = "jaxscope report /home/somebody/runs/a_long_name_of_a_run --function train_step"
    put(console(page, width=40), [line(command, indent=4)._replace(whole=True)])
    assert page.getvalue() == f"    {command}\n"
