"""Which line makes a function object anew."""

import textwrap

from hypothesis import given
from hypothesis import strategies as st

from jaxscope.analysis.makers import maker_line

SOURCE = textwrap.dedent("""
    import functools, jax

    def scaled(scale, x):
        return scale * x

    warm = jax.jit(scaled)

    def train(xs):
        for x in xs:
            step = jax.jit(functools.partial(scaled, 2.0))
            step(x)

    class Trainer:
        def fit(self, x):
            return jax.jit(jax.grad(self.loss))(x)
    """)


def test_the_wrapping_in_the_function_of_the_call_comes_first():
    assert maker_line(SOURCE, "scaled", 12) == 11
    assert maker_line(SOURCE, "loss", 16) == 16


def test_elsewhere_the_last_one_before_the_call_is_taken():
    assert maker_line(SOURCE, "scaled", 8) == 7


def test_a_function_that_nothing_wraps_has_no_such_line():
    assert maker_line(SOURCE, "other", 8) is None


def test_what_is_no_python_has_none_either():
    assert maker_line("def (", "f", 1) is None
    assert maker_line("\0", "f", 1) is None


@given(st.text(max_size=200))
def test_no_text_is_too_odd(source):
    maker_line(source, "f", 1)
