"""The syntax of a source file."""

from jaxscope.analysis import syntax


def test_a_source_with_an_invalid_escape_is_read_without_a_warning(recwarn):
    assert syntax.parsed("x = '\\i'") is not None and not recwarn.list
