"""Comments that leave findings out: which lines they cover, in sources as people and formatters write them."""

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.ignores import find


def covered(source):
    """{line: codes} of every line that a comment covers."""
    return {
        line: comment.codes for comment in find(source) for line in range(comment.first, comment.last + 1)
    }


def test_a_comment_covers_its_line_with_its_codes():
    assert covered("x = step(x)  # jaxscope: ignore[JX101, jx302]\ny = 1\n") == {1: ("JX101", "JX302")}


def test_a_bare_comment_covers_everything_on_its_line():
    assert covered("a = 1\nx = step(x)  # jaxscope: ignore\n") == {2: None}


def test_other_comments_may_stand_beside_it():
    assert covered("x = f(x)  # noqa: E501 # jaxscope:ignore [JX1]  because\n") == {1: ("JX1",)}


def test_a_word_that_only_begins_like_it_is_none():
    assert find("x = 1  # jaxscope: ignored[JX101]\ny = 2  # jaxscope: ignore-all\n") == []


def test_a_string_that_reads_like_one_is_none():
    assert find('x = "# jaxscope: ignore[JX101]"\n') == []


def test_at_the_end_of_a_call_over_several_lines_it_covers_the_call():
    source = "a = 0\nx = step(\n    state,\n    batch,\n)  # jaxscope: ignore[JX101]\nb = 0\n"
    assert sorted(covered(source)) == [2, 3, 4, 5]


def test_at_the_beginning_of_a_call_over_several_lines_too():
    assert sorted(covered("x = step(  # jaxscope: ignore[JX101]\n    state,\n)\n")) == [1, 2, 3]


def test_in_the_middle_it_covers_its_own_line():
    assert sorted(covered("x = step(\n    f(a),  # jaxscope: ignore[JX101]\n    g(b),\n)\n")) == [2]


def test_on_a_def_it_covers_the_decorators_whose_line_is_the_functions():
    source = "@functools.partial(\n    jax.jit,\n)\n@watch\ndef step(x):  # jaxscope: ignore[JX704]\n    return x\n"
    assert sorted(covered(source)) == [1, 2, 3, 4, 5]


def test_on_a_loop_it_covers_the_head_and_not_the_body():
    assert sorted(covered("for x in y:  # jaxscope: ignore\n    step(x)\n    step(x)\n")) == [1]


def test_a_line_of_its_own_covers_itself_only():
    assert sorted(covered("a = 1\n# jaxscope: ignore[JX101]\nstep(a)\n")) == [2]


def test_brackets_that_are_not_closed_still_name_their_codes():
    assert covered("step(a)  # jaxscope: ignore[JX101\n") == {1: ("JX101",)}


def test_brackets_with_nothing_in_them_cover_nothing():
    assert covered("step(a)  # jaxscope: ignore[]\n") == {1: ()}


def test_what_is_no_python_is_read_line_by_line():
    source = "x = step(1)  # jaxscope: ignore[JX101]\ny = (\nz = step(2)  # jaxscope: ignore[JX102]\n'''\n"
    assert covered(source) == {1: ("JX101",), 3: ("JX102",)}


def test_a_null_byte_is_no_python():
    assert covered("]nsr]\x00c  # jaxscope: ignore[JX101]\n") == {1: ("JX101",)}


@given(st.text(alphabet="ab ()[]{}:=#\n\t'\"\\@\x00é jaxscope:ignore[JX101]", max_size=200))
def test_no_text_makes_it_fail(source):
    for comment in find(source):
        assert 1 <= comment.first <= comment.line <= comment.last
