"""Indexing with masks is found in source, and what is advised instead computes the same."""

from __future__ import annotations

import pytest

from jaxscope.analysis import masks

MASKS = """
def a(x):
    x.at[0].set(1)
    return x.at[(x > 0) & ~(x == 2)].set(0)

class B:
    def b(self, x, keys):
        return x[[k for k in keys if k > 0]], x["a" in keys], x[x is None], x[keys < 3, 0]
    def c(self, x):
        return x[x >= self.least]

import numpy as np
grid = np.linspace(-2, 2, 100)
def e(x):
    return x[abs(grid) < 1]
"""


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("a", (4, "(x > 0) & ~(x == 2)")),
        ("B.b", None),
        ("B.c", (10, "x >= self.least")),
        ("d", None),
        ("e", None),
    ],
)
def test_a_condition_as_an_index_is_found(function, found):
    assert masks.index_with_mask(MASKS, function) == found
    assert masks.index_with_mask(None, function) is None


BEFORE = "import jax.numpy as {jnp}\nm = x > 0\nn = {jnp}.isnan(y)\n"


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ("x.at[m].set(0.0)", "jnp.where(m, 0.0, x)"),
        ("x.at[x > 0].set(-x[x > 0])", "jnp.where(x > 0, -x, x)"),
        ("x.at[m].set(2 * y[m] + jnp.exp(x[m]))", "jnp.where(m, 2 * y + jnp.exp(x), x)"),
        ("x.at[m].add(y[m] - 1)", "jnp.where(m, x + (y - 1), x)"),
        ("x.at[~m].multiply(y[~m] + 1)", "jnp.where(~m, x * (y + 1), x)"),
        ("x.at[n | (x < 0)].divide(4)", None),  # n is no comparison, but its name may be anything
        ("x.at[n].max(0.5)", "jnp.where(n, jnp.maximum(x, 0.5), x)"),
        (
            "x.at[(x < 0) & (y > 0)].min(y[(x < 0) & (y > 0)])",
            "jnp.where((x < 0) & (y > 0), jnp.minimum(x, y), x)",
        ),
        ("x[m].sum()", "x.sum(where=m)"),
        ("jnp.mean(y[x > 0])", "jnp.mean(y, where=x > 0)"),
        ("jnp.any(y[m])", "jnp.any(y, where=m)"),
        ("jnp.max(y[m])", None),  # needs a value for no element
        ("table[m].sum(axis=0)", "table.sum(axis=0, where=m[:, None])"),
        ("table[x > 0].mean(0)", "table.mean(axis=0, where=(x > 0)[:, None])"),
        ("jnp.mean(table[m], axis=0)", "jnp.mean(table, axis=0, where=m[:, None])"),
        ("table[m].sum(axis=1)", None),
        ("table[m].sum(axis=0, keepdims=True)", None),
        ("x.at[0].set(1)", None),
        ("x.at[i].set(0.0)", None),
        ("x.at[m, 0].set(0.0)", None),
    ],
)
def test_what_is_written_instead_computes_the_same(written, instead):
    jnp = pytest.importorskip("jax.numpy")
    whole = masks.without_selection(f"{BEFORE.format(jnp='jnp')}z = (\n  {written}\n)\n", 5)
    assert (whole.text if whole else None) == instead
    if instead is not None:
        x, y = jnp.asarray([1.0, -2, 3, 0, -5]), jnp.asarray([0.5, 1, -1, 2, 0])
        table = jnp.arange(10.0).reshape(5, 2)
        names = {"table": table, "jnp": jnp, "x": x, "y": y, "m": x > 0, "n": jnp.isnan(y)}
        assert jnp.allclose(eval(written, names), eval(instead, names))


@pytest.mark.parametrize(
    "value", ["selected", "jnp.cumsum(x[m])", "jax.random.normal(key, n)", "y[other]", "table[0]"]
)
def test_new_values_that_may_have_the_size_of_the_selection_are_left_to_the_user(value):
    source = f"{BEFORE.format(jnp='jnp')}selected = x[m] ** 2\nx = x.at[m].set({value})\n"
    whole = masks.without_selection(source, 5)
    assert whole == masks.Replacement("jnp.where(m, new, x)", "m", "x", new=True)


def test_the_name_of_jax_numpy_is_the_files():
    source = f"{BEFORE.format(jnp='numpy')}x = x.at[m].max(0)\n"
    assert masks.without_selection(source, 4).text == "numpy.where(m, numpy.maximum(x, 0), x)"


def test_source_that_is_unknown_or_no_python_has_no_mask():
    assert masks.without_selection(None, 1) is None
    assert masks.without_selection("x.at[x > 0].set(", 1) is None
