"""Sizes that a jitted function cannot know are found in source."""

from __future__ import annotations

import pytest

from jaxscope.analysis import sizes_under_jit

SIZED = """
import jax.numpy as jnp
import numpy as np

def f(x):
    a = np.nonzero(x)
    b = jnp.where(x > 0, x, 0)
    c = jnp.nonzero(x, size=4)
    return jnp.unique(x[jnp.where(x > 0)])

def g(x):
    return jnp.bincount(x)
"""


@pytest.mark.parametrize(
    ("first", "last", "found"),
    [
        (5, 8, None),
        (5, 9, (9, "jnp.unique(x[jnp.where(x > 0)])", "size")),
        (11, 12, (12, "jnp.bincount(x)", "length")),
    ],
)
def test_a_call_whose_result_has_a_size_that_depends_on_values_is_found(first, last, found):
    assert sizes_under_jit.by_values(SIZED, first, last) == found
    assert sizes_under_jit.by_values(None, first, last) is None


ITEMS = """
import jax.numpy as jnp

def one_hot(i, n):
    return jnp.zeros(n).at[i].set(1.0)

def encoded(params, ids):
    return [one_hot(i, params["vocab"]) for i in ids]

def start(params):
    return jnp.zeros((2, 3)) + params["bias"]

def hidden(self, params):
    return jnp.zeros(params["size"])
"""


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("encoded", (8, "params['vocab']")),
        ("start", None),
        ("hidden", (14, "params['size']")),
        ("one_hot", None),
    ],
)
def test_an_item_of_an_argument_that_is_a_size_is_found(function, found):
    assert sizes_under_jit.item_as_size(ITEMS, function) == found


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("data[i:i + 16]", "jax.lax.dynamic_slice_in_dim(data, i, 16)"),
        ("data[i:i + n + 1]", None),
        ("data[i:j]", None),
        ("data[i]", None),
        ("data[", None),
        (None, None),
    ],
)
def test_a_slice_that_begins_at_a_value_is_written_for_jit(text, instead):
    assert sizes_under_jit.dynamic_slice(text) == instead


PARAMETERS = """
import jax, jax.numpy as jnp
from mylib import transform

def drawn(key, n, scale):
    return scale * jax.random.normal(key, (3,)) + jnp.zeros(n)

def loss(params, x, size, train, mode, act):
    if train and mode == "fast":
        x = act(x)
    return drawn(params, size, x)

def plain(x, y, steps=3, verbose=False):
    return jnp.where(x > y, x, y)

def unknown(x, y):
    return transform(x) + y

def of_object(model, x):
    return model.w @ x

def of_local(years, samples, x, k, heads):
    n = 255 * years
    z = jax.random.normal(x, shape=[n - 1, samples])
    return x.reshape(heads, x.shape[0])[:k] + jnp.linspace(0, x.sum(), len(z))

def of_value(value, n, key):
    return jnp.full((n,), value) + jnp.arange(n) + jnp.asarray(jax.random.split(key, n))
"""


@pytest.mark.parametrize(
    ("function", "names"),
    [
        ("drawn", ("n",)),
        ("loss", ("size", "train", "mode", "act")),
        ("plain", ("verbose",)),
        ("of_local", ("years", "samples", "k", "heads")),
        ("of_value", ("n",)),
        ("unknown", None),
        ("of_object", None),
        ("missing", None),
    ],
)
def test_parameters_that_stay_python_values_are_named(function, names):
    assert sizes_under_jit.python_parameters(PARAMETERS, function) == names


SPECTRUM = """
import jax.numpy as jnp
def spectrum(x, sigma):
    N = int(jnp.round(6 * sigma))
    M = int(jnp.max(x))
    window = jnp.exp(-jnp.arange(N) / sigma)
    return [x[i : i + N] * window + M for i in range(0, len(x) - N, N // 2)]
"""


def test_a_size_that_is_read_from_an_array_is_found():
    lines = SPECTRUM.splitlines()
    at = next(n for n, line in enumerate(lines, 1) if "int(jnp.round" in line)
    assert sizes_under_jit.size_from_value(SPECTRUM, at) == "N"
    assert sizes_under_jit.size_from_value(SPECTRUM, at + 1) is None
    assert sizes_under_jit.size_from_value(None, at) is None
    assert sizes_under_jit.python_parameters(SPECTRUM, "spectrum") == ()


def test_a_parameter_that_jax_differentiates_or_loops_over_is_a_function():
    source = """\
import jax
import jax.numpy as jnp

def linearize(f, s, u):
    return jax.jacrev(f, argnums=(0, 1))(jnp.array(s), jnp.array(u))

def integrate(body, x, n):
    return jax.lax.fori_loop(0, 10, body, x)
"""
    assert sizes_under_jit.python_parameters(source, "linearize") == ("f",)
    assert sizes_under_jit.python_parameters(source, "integrate") == ("body",)
