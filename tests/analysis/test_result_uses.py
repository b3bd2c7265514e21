"""Which parts of a function's result the source of a program reads."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.result_uses import named, of_calls, rows_read, steps

LEAVES = ("[0]", "[1]['x']", "[1]['loss']")
ROWS = 100  # of each array


def read(source, line=1, column=None, name="f"):
    """{leaf: how many of its rows are read}; None: the source does not decide it."""
    uses = of_calls(dedent(source), line, column, name)
    return None if uses is None else {leaf: rows_read(steps(leaf), uses.paths, ROWS) for leaf in LEAVES}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("state, record = f(x)\nprint(record['loss'])", (0, 0, ROWS)),
        ("state, record = f(x)\nprint(state, record['x'][-1], record['loss'].mean())", (ROWS, 1, ROWS)),
        ("_, record = f(x)\nx = record['x'][-1, 0]", (0, 1, 0)),
        ("state, record = f(x)\nfor i in range(3):\n    print(record['x'][i])", (0, ROWS, 0)),
        ("out = f(x)\nprint(out[0])", (ROWS, 0, 0)),
        ("out = f(x)\nplot(out)", (ROWS, ROWS, ROWS)),
        ("losses = f(x)[1]['loss']\nprint(losses)", (0, 0, ROWS)),
        ("f(x)", (0, 0, 0)),
        ("out = jax.block_until_ready(f(x))\nprint(out[1]['x'][0])", (0, 1, 0)),
        ("self.out = f(x)", (ROWS, ROWS, ROWS)),
        ("def main():\n    a, b = f(x)\n    return b", (0, ROWS, ROWS)),
        ("a, b = f(x)\nc = b\nprint(c['loss'])", (0, 0, ROWS)),
        ("a, *rest = f(x)", (ROWS, ROWS, ROWS)),
        ("a, b = f(x)\na += 1", (ROWS, 0, 0)),
        ("a, b = f(x)\n(y, z) = f(b['x'])\nprint(z['loss'])", (0, ROWS, ROWS)),
        ("a, b = f(x)\ndef later():\n    return b['loss']", (0, 0, ROWS)),
        ("a, b = f(x)\nlog.append(b)", (0, ROWS, ROWS)),
        ("a, b = f(x)\nb['x'][key]", (0, ROWS, 0)),
        ("_, record = f(x)\nplot(record['x'][::10, 0])", (0, 10, 0)),
        ("_, record = f(x)\nplot(record['x'][-5:], record['x'][0])", (0, 6, 0)),
        ("EVERY = 25\n_, record = f(x)\nplot(record['x'][::EVERY])", (0, 4, 0)),
        ("EVERY = 25\nEVERY = 5\n_, record = f(x)\nplot(record['x'][::EVERY])", (0, ROWS, 0)),
        ("_, record = f(x)\nplot(record['x'][::every])", (0, ROWS, 0)),
        ("out = f(x)\nprint(out[-1]['x'])", (ROWS, ROWS, 0)),
        ("a, b = f(x)[:2]\nprint(b)", (ROWS, ROWS, ROWS)),
        ("out = f(x)\nprint(out[1:])", (ROWS, ROWS, ROWS)),
        ("n = 5\ndef first(n):\n    _, b = f(x)\n    return b['x'][:n]", (0, ROWS, 0)),
        ("from config import n\ndef g():\n    n = 1\n_, b = f(x)\nplot(b['x'][:n])", (0, ROWS, 0)),
        ("class Data:\n    _, b = f(x)", (ROWS, ROWS, ROWS)),
        ("_, record = f(x)\nplot(record['x'][::0], record['loss'][:])", (0, ROWS, ROWS)),
        ("_, record = f(x)\nplot(record['x'][None], record['loss'][1.5:])", (0, ROWS, ROWS)),
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
    assert rows_read(steps(".velocity"), uses.paths, ROWS) == ROWS
    uses = of_calls("out = f(s)\nprint(out.position)", 1, None, "f")
    leaves = [steps(".velocity"), steps(".position")]
    assert rows_read(steps(".velocity"), uses.paths, ROWS, leaves) == 0


def test_a_method_or_property_of_the_result_reads_everything():
    uses = of_calls("out = f(s)\nprint(out.energy().std(), out._replace(mass=1))", 1, None, "f")
    assert rows_read(steps(".velocity"), uses.paths, ROWS, [steps(".velocity"), steps(".position")]) == ROWS


def test_an_array_is_named_by_the_variable_that_has_it():
    uses = of_calls("state, record = f(x)", 1, None, "f")
    assert named(steps("[1]['x']"), uses.names) == "record['x']"
    assert named(steps("[2]"), uses.names) == "result[2]"


def test_a_variable_that_is_a_part_of_itself_ends():
    assert read("x = f(x)\nwhile x:\n    x = x[0]") == dict.fromkeys(LEAVES, ROWS)


@given(st.text(max_size=40))
def test_any_path_is_split_into_its_steps_or_not_at_all(path):
    found = steps(path)
    assert found is None or "".join(found) == path
