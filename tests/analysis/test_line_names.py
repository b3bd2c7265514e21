"""What a line of the source says about the functions and variables that it names."""

import math
import textwrap

import pytest

from jaxscope.analysis import line_names


def test_variables_that_a_function_captures_are_those_that_the_code_around_it_sets_anew():
    source = textwrap.dedent("""
        scale = 2
        for i in range(8):
            decay = 0.9 ** i
            def loss(theta):
                return solve(lambda y, t: -decay * t * theta * scale * jnp.tanh(y))
            @jax.jit
            def other(x, n=3):
                y = x + i
                return y * n * decay
    """)
    assert line_names.captured(source, 6) == ["decay", "theta"]
    assert line_names.captured(source, 7) == ["i", "decay"]
    assert line_names.captured(source, 5) == ["decay"]
    assert line_names.captured(source, 2) == line_names.captured(None, 6) == []


def test_a_function_that_a_loop_defines_again_is_found_on_the_lines_that_name_it():
    source = textwrap.dedent("""
        for i in range(8):
            decay = 0.9 ** i
            def loss(theta):
                return decay * theta
            theta = theta - jax.grad(loss)(theta)
        print(loss(theta))
    """)
    assert line_names.defined_in_loop(source, 6) == ("loss", ("decay",))
    assert line_names.defined_in_loop(source, 7) is line_names.defined_in_loop(source, 3) is None


def test_a_function_that_the_function_around_a_line_defines_is_found():
    source = textwrap.dedent("""
        def sample(n, keys):
            def one(key):
                return jax.random.normal(key, (n,))
            return jax.vmap(one)(keys)
        def other(keys):
            return jax.vmap(sample)(keys)
    """)
    assert line_names.defined_beside(source, 5) == ("one", "sample", ("n",))
    assert line_names.defined_beside(source, 7) is line_names.defined_beside(None, 5) is None


def test_a_call_of_numpy_on_a_line_is_quoted_and_a_call_of_jax_is_not():
    source = "import numpy as np\nimport jax.numpy as jnp\ny = x / np.sqrt(dim)\nz = jnp.sqrt(x)\n"
    assert line_names.numpy_call(source, 3) == "np.sqrt(dim)"
    assert line_names.numpy_call(source, 4) is None
    assert line_names.numpy_call(None, 3) is None


@pytest.mark.parametrize(
    ("decorator", "size"),
    [
        ("functools.lru_cache(maxsize=2)", 2),
        ("lru_cache(3)", 3),
        ("lru_cache", 128),
        ("lru_cache(typed=True)", 128),
        ("lru_cache(maxsize=None)", math.inf),
        ("functools.cache", math.inf),
        ("lru_cache(maxsize=SIZE)", None),
        ("jax.jit", None),
    ],
)
def test_the_size_of_the_cache_around_a_function(decorator, size):
    made = line_names.function(f"@{decorator}\ndef make(n):\n    return n\n", "make")
    assert line_names.cache_size(made) == size


def test_a_function_is_not_guessed_where_two_have_its_name():
    source = "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\n"
    assert line_names.function(source, "f") is None
    assert line_names.function(None, "f") is None


def test_attributes_that_a_method_assigns():
    source = "class A:\n    def f(self, x):\n        self.n += 1\n        self.a, y = g(self.b)\n        return y\n"
    assert set(line_names.attributes_set(source, "A.f")) == {"self.n", "self.a"}
    assert line_names.attributes_set(source, "A.g") == ()


@pytest.mark.parametrize(
    ("body", "line", "found"),
    [
        ("if self.f is None:\n        def f(x): ...\n        self.f = f", 3, True),
        ("if self.f is not None:\n        return self.f\n    def f(x): ...", 4, True),
        ("if self.log:\n        print(1)\n    def f(x): ...", 4, False),
        ("if n > 3:\n        def f(x): ...", 3, False),
        ("def f(x): ...", 2, False),
    ],
)
def test_a_method_that_defines_a_function_only_if_its_object_has_none(body, line, found):
    made = line_names.function(f"def make(self, n):\n    {body}\n", "make")
    assert line_names.defines_if_unset(made, line) is found


def test_methods_of_several_classes_are_told_apart():
    source = "class A:\n    def f(self): pass\nclass B:\n    def f(self): pass\ndef g(): pass\ndef h():\n    def g(): pass\n"
    assert [line_names.function(source, name).lineno for name in ("A.f", "B.f")] == [2, 4]
    assert [line_names.function(source, name) for name in ("f", "g", "C.f")] == [None] * 3


@pytest.mark.parametrize(
    ("body", "old"),
    [("self.a = 1\n        self.b = self.a", False), ("self.a = self.a * 2", True), ("self.n += 1", True)],
)
def test_a_method_that_reads_an_attribute_before_it_assigns_it_needs_the_old_value(body, old):
    assert line_names.reads_old_values(f"class A:\n    def f(self):\n        {body}\n", "A.f") is old


METHODS = """
import jax.numpy as jnp
import numpy as np
from scipy.linalg import cholesky

class Filter:
    def step(self, y, seen):
        rows = []
        rows.append(self.mean)
        self.history.append(self.mean)
        seen.append(y)
        both = jnp.append(y, y)
        unit = np.linalg.inv([[2.0]])
        root = cholesky(self.covariance, lower=True)
        return both, np.linalg.solve(root, y)
"""


def test_what_a_method_changes_besides_its_own_lists_is_named():
    assert line_names.containers_changed(METHODS, "Filter.step") == ("self.history", "seen")
    assert line_names.containers_changed(METHODS, "Filter.reset") == ()


@pytest.mark.parametrize(("more", "found"), [("", (3, "slope", "jax.grad(loss)")), ("loss(1.0)\n", None)])
def test_a_function_that_is_only_used_for_its_gradient_is_found(more, found):
    source = f"def loss(w):\n    return w**2\nslope = jax.grad(loss)\nslope(2.0)\n{more}"
    assert line_names.only_transformed(source, "loss") == found
    assert line_names.only_transformed(None, "loss") is None
