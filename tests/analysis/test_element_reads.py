"""Which variable's elements does a loop read one at a time? The source alone decides."""

import textwrap

import pytest

from jaxscope.analysis import element_reads

SOURCE = textwrap.dedent(
    """
    def shown(x):
        return 1 if x > 0 else 0
    rows = [[float(grid[i, j]) for j in range(9)] for i in range(9)]
    for k, (x, y) in enumerate(zip(xs, self.ys)):
        a = int(y[0]) + float(x)
        total.append(shown(grid[k]))
    for v in values:
        if -v < limit: break
    for step in range(9):
        state = update(state)
        losses.append(loss)
        read(state[step], losses[step], fixed[0], f(grid[step]), done)
    for k in range(9): n = shown(grid[k])
    for t, i in enumerate(order):
        update(table[i])
    for position in positions:
        for i, atom in enumerate(position):
            x, y = atom
            file.write(f"{i + 1} {x:.3f} {y} {len(atom)}")
    for i in range(9):
        print(f"{names[i]} {grid[i]}")
    """
)


@pytest.mark.parametrize(
    ("line", "text", "name"),
    [
        (4, "float(grid[i, j])", "grid"),
        (6, "y[0]", "self.ys"),
        (6, "float(x)", "xs"),
        (9, "-v < limit", "values"),
        (20, 'f"{i + 1} {x:.3f} {y} {len(atom)}"', "position"),
    ],
)
def test_an_index_of_the_loop_or_the_iterated_variable_names_the_array(line, text, name):
    assert element_reads.variable(SOURCE, line, text, None) == name


@pytest.mark.parametrize(
    "text", ["state[step]", "losses[step]", "fixed[0]", "f(grid[step])", "done", None, "if ("]
)
def test_changing_variables_and_results_of_calls_are_no_elements(text):
    assert element_reads.variable(SOURCE, 13, text, None) is None


def test_of_several_items_in_an_f_string_it_is_unknown_which_one_is_read():
    assert element_reads.variable(SOURCE, 22, 'f"{names[i]} {grid[i]}"', None) is None
    assert element_reads.variable(SOURCE, 22, 'f"{i} {grid[i]}"', None) == "grid"


def test_an_int_of_an_item_is_its_index():
    assert element_reads.variable(SOURCE, 16, "table[i]", None, "int") == "order"
    assert element_reads.variable(SOURCE, 16, "table[i]", None, "float") == "table"


def test_a_parameter_is_looked_up_in_the_call_of_its_function():
    assert element_reads.variable(SOURCE, 3, "x > 0", (SOURCE, 14)) == "grid"
    assert element_reads.variable(SOURCE, 3, "x > 0", None) is None
    assert element_reads.variable(SOURCE, 3, "x > 0", (SOURCE, 12)) is None
    assert element_reads.variable(None, 3, "x > 0", None) is None


ARCHIVE = """
import numpy as np
data = np.load("fields.npz")
scale = data["scale"]
rows = np.load("rows.npy")
def batch(name, i):
    return data[name][i] / scale
def row(i):
    return rows[i]
"""


@pytest.mark.parametrize(("line", "archive"), [(7, "data"), (4, "data"), (9, None), (5, None)])
def test_an_array_that_is_read_from_an_archive_is_found(line, archive):
    assert element_reads.reads_archive(ARCHIVE, line) == archive
    assert element_reads.reads_archive(None, line) is None


GENERATED = """
import jax.numpy as jnp
from data import load

def rows(n):
    for i in jnp.arange(n):
        yield i

def make(n):
    return rows(n)

def train(data, given):
    made = make(9)
    numbers = jnp.arange(9)
    loaded = load()
    for a, b, c, d in zip(made, numbers, loaded, given):
        data[a], data[b], data[c], data[d]
"""


def test_only_what_the_source_shows_to_be_an_array_counts_as_one():
    names = ("made", "numbers", "loaded", "given")
    assert [element_reads.is_no_generator(GENERATED, 17, name) for name in names] == [
        False,
        True,
        False,
        False,
    ]
    assert [element_reads.generator(GENERATED, 17, name) for name in names] == ["rows", None, None, None]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("k.at[rows, columns].add(e)", (("rows", "columns"), True)),
        ("k.at[self.index].add(e)", (("self.index",), False)),
        ("k.at[known].add(e)", None),
        ("g(k)[self.index]", None),
        ("k[2:, 0] + k[1]", None),
    ],
)
def test_a_list_that_is_an_index_is_told_from_an_array(line, found):
    source = f"rows = tuple(a)\ncolumns = [1, 2]\nknown = np.array(rows)\ndef f(k, e):\n    return {line}\n"
    assert element_reads.lists_as_index(source, 5) == found


def test_a_call_of_asarray_gets_a_list_unless_it_shows_another_thing():
    source = (
        "actions, rewards = zip(*batch)\nx = jnp.asarray(actions), jnp.array([a, b]), jnp.array([[a], [b]])\n"
    )
    found = [element_reads.list_in_call(source, 2, column) for column in (4, 26, 45, 0)]
    assert found == [("jnp.asarray(actions)", "actions"), ("jnp.array([a, b])", "[a, b]"), None, None]
    assert element_reads.list_in_call("y = jnp.array(image)\n", 1, 4) is None
