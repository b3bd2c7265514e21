"""``--help`` at the width of the terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.cli import VERBS, command
from jaxscope.cli.help import filled

EXAMPLES = """\
examples:
  jaxscope report                          the latest run
  jaxscope report train-20260102-0304      a run by name (or the beginning of it), or its directory
  jaxscope report --format json -o run.json

Options before the script are jaxscope's, everything after it is the program's: python -O -m jaxscope.
"""


def test_a_second_column_without_room_goes_below_in_every_line_alike():
    assert filled(EXAMPLES, 60) == [
        "examples:",
        "  jaxscope report",
        "      the latest run",
        "  jaxscope report train-20260102-0304",
        "      a run by name (or the beginning of it), or its",
        "      directory",
        "  jaxscope report --format json -o run.json",
        "",
        "Options before the script are jaxscope's, everything after",
        "it is the program's: python -O -m jaxscope.",
    ]
    assert filled(EXAMPLES, 100)[:4] == EXAMPLES.splitlines()[:4]


def test_a_narrow_first_column_keeps_its_place_and_the_second_hangs_beside_it():
    assert filled("  dtype[shape]  f32[8,128]   or bf16[4096,1024]@data,model of a mesh", 50) == [
        "  dtype[shape]  f32[8,128]   or",
        "                bf16[4096,1024]@data,model of a",
        "                mesh",
    ]


@given(st.text(st.sampled_from("ab -:\n[]"), max_size=200), st.integers(30, 120))
def test_no_word_is_lost_and_no_line_too_long_that_could_be_shorter(text, width):
    lines = filled(text, width)
    assert " ".join(lines).split() == text.split()
    for line in lines:
        assert len(line) <= width or line.startswith(" ") or " " not in line.strip()


@pytest.mark.parametrize("verb", [verb for group in VERBS.values() for verb, _, _ in group])
@pytest.mark.parametrize("width", [80, 160])
def test_every_help_fits_but_for_commands_to_copy_and_keeps_its_options_whole(
    capsys, monkeypatch, verb, width
):
    monkeypatch.setenv("COLUMNS", str(width))
    assert command([verb, "--help"]) == 0
    out = capsys.readouterr().out
    long = [line for line in out.splitlines() if len(line) > width]
    assert all(line.startswith("  jaxscope ") and "   " not in line.strip() for line in long), long
    assert not [line for line in out.splitlines() if line.endswith("-") and not line.endswith(" -")]


def test_the_list_of_rules_is_wrapped_in_a_terminal_and_one_line_each_in_a_pipe():
    from jaxscope.cli.rule import listed
    from jaxscope.rules import registry

    for rule in registry.rules().values():
        assert len(listed(rule, None)) == 1 and rule.summary in listed(rule, None)[0]
        for width in (40, 80, 120):
            lines = listed(rule, width)
            assert width < 80 or all(len(line) <= width for line in lines)
            assert "".join(lines).replace(" ", "") == listed(rule, None)[0].replace(" ", "")
