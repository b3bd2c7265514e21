"""A text is cut at its line breaks wherever they stand, in whatever letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.tui import lines
from jaxscope.tui.lines import Lines

LETTERS = st.sampled_from(["a", "\n", "é", "…", "🙂", "\udc80", "\x85", "\u2028"])


@pytest.fixture(autouse=True)
def small_slices(monkeypatch):
    monkeypatch.setattr(lines, "_SLICE", 5)


@given(st.text(LETTERS, max_size=40))
def test_lines_are_those_between_line_breaks(text):
    wanted = text.split("\n")
    if text.endswith("\n"):
        wanted.pop()
    found = Lines(text)
    assert [found[n] for n in range(len(found))] == (wanted if text else [])
    assert found.longest >= max(map(len, wanted), default=0)


@given(st.text(LETTERS, max_size=40), st.sampled_from(["a", "é", "🙂"]))
def test_a_search_finds_every_line_that_has_it(text, needle):
    found = Lines(text)
    hits = [n for some in found.search(needle) for n in some]
    assert hits == [n for n in range(len(found)) if needle in found[n]]
