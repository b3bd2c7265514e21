"""Spans: text with roles."""

from jaxscope.present.spans import ROLES, joined, plain
from jaxscope.tui.style import COMPONENTS


def test_every_role_has_a_style_in_the_terminal_view():
    assert {f"line--{role}" for role in ROLES} <= COMPONENTS


def test_spans_are_joined_without_the_empty_ones():
    spans = joined([["a", ("b", "name")], [], ["c"]], (" · ", "dim"))
    assert spans == ["a", ("b", "name"), (" · ", "dim"), "c"]
    assert plain(spans) == "ab · c"
