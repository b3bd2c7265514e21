"""Which parts of a function's result the source of a program reads."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.result_uses import named, of_calls, parts_read, steps

LEAVES = ("[0]", "[1]['x']", "[1]['loss']")


def read(source, line=1, column=None, name="f"):
    """{leaf: what is read of it}; None: the source does not decide it."""
    uses = of_calls(dedent(source), line, column, name)
    return None if uses is None else {leaf: parts_read(steps(leaf), uses.paths) for leaf in LEAVES}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("state, record = f(x)\nprint(record['loss'])", (None, None, "all")),
        ("state, record = f(x)\nprint(state, record['x'][-1], record['loss'].mean())", ("all", "element", "all")),
        ("_, record = f(x)\nx = record['x'][-1, 0]", (None, "element", None)),
        ("state, record = f(x)\nfor i in range(3):\n    print(record['x'][i])", (None, "all", None)),
        ("out = f(x)\nprint(out[0])", ("all", None, None)),
        ("out = f(x)\nplot(out)", ("all", "all", "all")),
        ("losses = f(x)[1]['loss']\nprint(losses)", (None, None, "all")),
        ("f(x)", (None, None, None)),
        ("out = jax.block_until_ready(f(x))\nprint(out[1]['x'][0])", (None, "element", None)),
        ("self.out = f(x)", ("all", "all", "all")),
        ("def main():\n    a, b = f(x)\n    return b", (None, "all", "all")),
        ("a, b = f(x)\nc = b\nprint(c['loss'])", (None, None, "all")),
        ("a, *rest = f(x)", ("all", "all", "all")),
        ("a, b = f(x)\na += 1", ("all", None, None)),
        ("a, b = f(x)\n(y, z) = f(b['x'])\nprint(z['loss'])", (None, "all", "all")),
        ("a, b = f(x)\ndef later():\n    return b['loss']", (None, None, "all")),
        ("a, b = f(x)\nlog.append(b)", (None, "all", "all")),
        ("a, b = f(x)\nb['x'][key]", (None, "all", None)),
    ],
)  # fmt: skip
def test_a_part_is_read_if_later_code_mentions_it(source, expected):
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "f(x)" in text)
    assert read(source, line) == dict(zip(LEAVES, expected, strict=True))


@pytest.mark.parametrize(
    "source",
    [
        "a, b = f(x)\nprint(locals())",
        "a, b = f(x)\ng = jax.vmap(f)",
        "a, b = f(x)\nruns = {'f': f}",
        "a, b = f(x",
    ],
)
def test_a_function_or_variable_that_may_be_read_elsewhere_is_undecided(source):
    assert read(source) is None


def test_fields_of_a_named_tuple_may_be_read_by_position():
    uses = of_calls("x, v = f(s)\nprint(v)", 1, None, "f")
    assert parts_read(steps(".velocity"), uses.paths) == "all"
    uses = of_calls("out = f(s)\nprint(out.position)", 1, None, "f")
    assert parts_read(steps(".velocity"), uses.paths) is None


def test_an_array_is_named_by_the_variable_that_has_it():
    uses = of_calls("state, record = f(x)", 1, None, "f")
    assert named(steps("[1]['x']"), uses.names) == "record['x']"
    assert named(steps("[2]"), uses.names) == "result[2]"


def test_a_variable_that_is_a_part_of_itself_ends():
    assert read("x = f(x)\nwhile x:\n    x = x[0]") == dict.fromkeys(LEAVES, "all")


@given(st.text(max_size=40))
def test_any_path_is_split_into_its_steps_or_not_at_all(path):
    found = steps(path)
    assert found is None or "".join(found) == path
