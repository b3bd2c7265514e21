"""Noise that is the same in each call, because the seed is in the code: what counts as such noise."""

import pytest

from jaxscope.capture.closures import seeded_noise

jax = pytest.importorskip("jax")
pytestmark = pytest.mark.capture


def noise(x):
    return x + jax.random.normal(jax.random.key(42), x.shape)


def raw_key_in_an_inner_function(x):
    return jax.jit(lambda x: x * jax.random.bernoulli(jax.random.PRNGKey(1), 0.8, x.shape))(x) @ x.T


def second_layer(x):
    keys = jax.random.split(jax.random.key(0))
    h = x @ jax.random.normal(keys[0], (4, 4))
    return jax.numpy.where(jax.random.bernoulli(keys[1], 0.5, h.shape), h, 0.0)


def scanned(x):
    return jax.lax.scan(lambda c, row: (c, noise(row)), 0, x)


def of_a_step(x):
    return x + jax.random.normal(jax.random.fold_in(jax.random.key(0), x[0, 0].astype(int)), x.shape)


def of_an_argument(x):
    return x + jax.random.normal(jax.random.wrap_key_data(x[0, :2].astype("uint32")), x.shape)


def projection(x):
    return x @ jax.random.normal(jax.random.key(0), (4, 4)) + jax.random.normal(jax.random.key(1), (4,))


def trained_from_the_same_parameters(x):
    w = jax.random.normal(jax.random.key(0), (4, 4))
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).sum())(w)


def captured(x):
    return x + jax.random.normal(KEY, x.shape)


KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (noise, True),
        (raw_key_in_an_inner_function, True),
        (second_layer, True),
        (scanned, True),
        (of_a_step, False),
        (of_an_argument, False),
        (projection, False),
        (trained_from_the_same_parameters, False),
        (captured, False),
    ],
)
def test_only_numbers_that_disturb_the_values_of_arguments_are_noise(function, found):
    assert seeded_noise.adds_noise(jax.make_jaxpr(function)(jax.numpy.ones((5, 4)))) is found
