"""The advice to stack a list before a scan is given only where the source does not show an array."""

import textwrap

import pytest

from jaxscope.analysis.array_names import holds_array

FILE = """
import jax
import jax.numpy as jnp
import numpy as np

obs = jnp.ones((9, 4))
rows = [jnp.ones(4) for _ in range(9)]

def forward(w, xs):
    h = w
    for x in xs:
        h = h + x
    return h
"""


def answer(calls: str, old: str = "", new: str = "") -> "bool | None":
    assert old in FILE
    source = textwrap.dedent(FILE.replace(old, new) if old else FILE) + calls
    return holds_array(source, source.splitlines().index("    for x in xs:") + 1, "xs")


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("forward(1.0, obs)", True),
        ("forward(1.0, xs=obs[:5])", True),
        ("forward(1.0, 2 * obs)", True),
        ("forward(1.0, np.zeros((9, 4)).astype('float32'))", True),
        ("jax.grad(forward)(1.0, obs)", True),
        ("step = jax.jit(jax.grad(forward))\nstep(1.0, obs)", True),
        ("forward(1.0, rows)", False),
        ("forward(1.0, [obs, obs])", False),
        ("forward(1.0, obs)\nforward(1.0, rows)", None),
        ("forward(1.0, load())", None),
        ("forward(1.0, jnp.array_split(obs, 3))", None),
        ("", None),
    ],
)
def test_a_parameter_is_what_the_calls_pass(calls, expected):
    assert answer(calls) is expected


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        ("h = w * xs.shape[0]", True),
        ("h = w + xs[:, 0]", True),
        ("xs = jnp.asarray(xs)", True),
        ("xs = [*xs]", False),
        ("xs, h = w", None),
        ("h = w + xs[0]", None),
    ],
)
def test_what_a_function_does_with_a_variable_shows_what_it_is(first, expected):
    assert answer("", "h = w", first) is expected


def test_calls_that_pass_on_each_others_parameters_end():
    assert (
        answer("def again(xs):\n    forward(1.0, xs)\n\ndef other(xs):\n    again(xs)\n\nother(obs)") is True
    )
    assert answer("def again(xs):\n    again(xs)\n    forward(1.0, xs)") is None


def test_a_file_that_is_not_python_tells_nothing():
    assert holds_array("for x in xs: (", 1, "xs") is None
    assert holds_array(None, 1, "xs") is None
