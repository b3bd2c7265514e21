"""Which line makes a function object anew."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.rewrap_site import Makers


def where_called(source, name, site):
    return Makers(source).where_called(name, site)


def where_defined(source, name, begins):
    return Makers(source).where_defined(name, begins)


SOURCE = textwrap.dedent("""
    import functools, jax

    def scaled(scale, x):
        return scale * x

    def train(xs):
        for x in xs:
            step = jax.jit(functools.partial(scaled, 2.0))
            step(x)

    class Trainer:
        def fit(self, x):
            return jax.jit(jax.grad(self.loss))(x)

    def check_one(n):
        @jax.jit
        @jax.value_and_grad
        def run(x):
            return (x * n).sum()
        return run(1.0)

    def check_two():
        vag = jax.value_and_grad(run)
        return run

    def other(x):
        a = jax.jit(jax.vmap(scaled))
        b = jax.jit(jax.grad(scaled))
        return a(x), b(x)

    def inner(w):
        return jax.jit(jax.grad(lambda w: scaled(2.0, w)))(w)

    def calls(xs):
        f = jax.jit(functools.partial(lambda s, x: scaled(s, x), 2.0))
        return f(xs), jax.jit(len)(scaled)
    """)


def at(text):
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def test_what_is_wrapped_in_the_call_itself_is_certain():
    assert where_called(SOURCE, "loss", at("self.loss")) == (at("self.loss"), True)


def test_the_only_one_in_the_function_of_the_call_is_likely():
    assert where_called(SOURCE, "scaled", at("step(x)")) == (at("partial(scaled"), False)


def test_of_two_in_one_function_none_is_named():
    assert where_called(SOURCE, "scaled", at("return a(x)")) is None


def test_a_line_of_a_function_that_was_not_running_is_never_named():
    assert where_called(SOURCE, "run", at("return run(1.0)")) is None
    assert where_called(SOURCE, "scaled", at("self.loss")) is None


def test_a_lambda_that_mentions_the_function_does_not_wrap_it():
    assert where_called(SOURCE, "scaled", at("return f(xs)")) is None


def test_a_decorated_function_is_made_where_it_is_defined():
    begins = at("    @jax.jit")
    assert where_defined(SOURCE, "run", begins) == (begins, True)
    assert where_defined(SOURCE, "run", begins + 2) is None
    assert where_defined(SOURCE, "scaled", at("def scaled")) is None


def test_a_wrapped_lambda_is_made_where_it_stands():
    begins = at("jax.grad(lambda")
    assert where_defined(SOURCE, "<lambda>", begins) == (begins, True)


def test_a_function_that_nothing_wraps_has_no_such_line():
    assert where_called(SOURCE, "unknown", 8) is None


@pytest.mark.parametrize("source", ["def (", "\0"])
def test_what_is_no_python_has_none_either(source):
    assert where_called(source, "f", 1) is None
    assert where_defined(source, "f", 1) is None


@given(st.text(max_size=200))
def test_no_text_is_too_odd(source):
    where_called(source, "f", 1)
    where_defined(source, "f", 1)
