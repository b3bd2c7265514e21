"""Nothing that a program is called reaches the terminal as control."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.present.escape import as_printed, escape

HOSTILE = {
    "\x1b[31m": r"\x1b[31m",
    "a\rb": r"a\rb",
    "a\nb\tc": r"a\nb\tc",
    "\x07": r"\x07",
    "\x9b31m": r"\x9b31m",
    "\x7f": r"\x7f",
    "\u202egpj.exe": r"\u202egpj.exe",
    "\u2066x\u2069": r"\u2066x\u2069",
    "\u2028": r"\u2028",
    "\udcff": r"\udcff",
    "\U000e0041": r"\U000e0041",
    "\u200b\ufeff": r"\u200b\ufeff",
}


@pytest.mark.parametrize(("text", "shown"), HOSTILE.items())
def test_control_characters_show_as_what_they_are(text, shown):
    assert escape(text) == shown


@given(st.text(alphabet=st.characters(), max_size=200))
def test_what_comes_out_is_printable_on_one_line(text):
    out = escape(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in out)
    assert escape(out) == out
    out.encode("utf-8")


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S"]), max_size=50))
def test_what_can_be_read_stays_as_it_is(text):
    assert escape(text) == text


def test_spaces_and_brackets_stay():
    assert escape("state.params['dense'] [bold]") == "state.params['dense'] [bold]"


@given(st.text(max_size=40), st.integers(1, 50))
def test_a_limit_is_kept_before_escaping_and_shows(text, limit):
    out = escape(text, limit)
    assert (out == escape(text)) if len(text) <= limit else out.endswith("…")


def test_what_is_no_text_is_spelled():
    assert escape(3) == "3"


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("10%\r 50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("abc\b\bX", "aX"),
        ("\b\b", ""),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b[", "\x1b["),  # an unfinished one stays, and is escaped when drawn
    ],
)
def test_output_reads_as_a_terminal_would_have_shown_it(raw, seen):
    assert as_printed(raw) == seen
