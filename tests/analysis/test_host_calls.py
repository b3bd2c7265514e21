"""Which calls of NumPy and SciPy fail in a jitted function."""

import pytest

from jaxscope.analysis import host_calls

HEAD = """
import jax, jax.numpy as jnp
import numpy as np
import scipy.stats
from scipy.linalg import cholesky

"""
METHODS = (
    HEAD
    + """
class Filter:
    def step(self, y, seen):
        unit = np.linalg.inv([[2.0]])
        root = cholesky(self.covariance, lower=True)
        return np.linalg.solve(root, y)
"""
)


def called(source, name="f"):
    return [call.called for call in host_calls.find(source, name)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return np.log(x)", ["np.log"]),
        ("y = x * 2\n    for z in y:\n        w = np.concatenate([z, z])", ["np.concatenate"]),
        ("y, (a, *b) = g(x)\n    return np.abs(b[0].T) + np.abs(a)", ["np.abs"]),
        ("self.y = jnp.ones(3)\n    return np.sum(self.y)", ["np.sum"]),
        ("return scipy.stats.norm.pdf(x)", ["scipy.stats.norm.pdf"]),
        ("return jnp.log(x) + np.pi", []),
        ("return np.zeros(len(x)) + np.log(x.shape[0]) + np.eye(x.ndim)", []),
        ("return np.log(2.0) + np.random.normal(x)", []),
        ("return np.log(n) + np.sqrt(K)", []),
        ("return jax.pure_callback(lambda v: np.log(v), x)", []),
    ],
)
def test_calls_that_get_a_traced_array_are_found(body, found):
    assert called(HEAD + f"def f(self, x, n: int):\n    {body}\n") == found


def test_each_function_has_its_first_line_and_what_to_write_instead():
    lines = METHODS.splitlines()
    at = lines.index("        root = cholesky(self.covariance, lower=True)") + 1
    assert host_calls.find(METHODS, "Filter.step") == [
        (at, "cholesky", "jax.scipy.linalg.cholesky"),
        (at + 1, "np.linalg.solve", "jax.numpy.linalg.solve"),
    ]
    assert host_calls.find(None, "step") == [] and host_calls.find(METHODS, "Filter.reset") == []


def test_of_a_loop_only_its_lines_count_and_no_conversions():
    source = HEAD + (
        "x = jnp.ones(3)\n"
        "a = np.exp(x)\n"
        "for t in range(9):\n"
        "    x = x + np.log(x)\n"
        "    seen.append(np.asarray(x))\n"
        "b = np.abs(x)\n"
    )
    first = source.splitlines().index("for t in range(9):") + 1
    assert [call.called for call in host_calls.on_lines(source, first, first + 2)] == ["np.log"]
