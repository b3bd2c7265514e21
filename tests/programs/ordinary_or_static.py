"""Calls through wrappers of jit whose arguments differ in one value: does JAX trace again, and what does the
key say?

For each case three calls: with a first value, with a second one, and with the second one and a larger array,
which is traced in any case. Prints as JSON whether the second call was traced, by the name of the jitted
function.
"""

import functools
import json

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

traced = {}
bodies = 0


def case(name, wrap, values, body=lambda x, given: x.sum(), reshape=lambda x: x):
    """``values``: two of them, or functions that make them."""

    def run(x, given):
        global bodies
        bodies += 1
        return body(x, given)

    run.__name__ = run.__qualname__ = name
    jitted = wrap(run)
    counts = []
    for size, value in ((3, values[0]), (3, values[1]), (4, values[1])):
        before = bodies
        value = value() if callable(value) else value
        jitted(reshape(np.ones(size, "float32")), value)
        counts.append(bodies - before)
    assert counts[0] and counts[2], (name, counts)
    traced[name] = counts[1] > 0


class Rated(nnx.Module):
    def __init__(self, rate):
        self.kernel = nnx.Param(jnp.ones(3))
        self.rate = rate


class Field(eqx.Module):
    kernel: jax.Array
    rate: float = eqx.field(static=True)


class Ordinary(eqx.Module):
    kernel: jax.Array
    rate: float


class Config:
    """Compares by identity: what it holds is no part of a key."""

    def __init__(self):
        self.rate = 1.0

    def at(self, rate):
        self.rate = rate
        return self


class Equal:
    """Compares by what it holds."""

    def __init__(self, rate):
        self.rate = rate

    def __eq__(self, other):
        return type(other) is Equal and self.rate == other.rate

    def __hash__(self):
        return hash(self.rate)


def rated(rate, module):
    return lambda: module(jnp.ones(3), rate)


def by_name(jitted):
    return lambda x, given: jitted(x, given=given)


# flax.nnx
case("nnx_float", nnx.jit, (0.1, 0.2))
case("nnx_int", nnx.jit, (1, 2))
case("nnx_float_then_int", nnx.jit, (0.5, 2))
case("nnx_keyword", lambda f: by_name(nnx.jit(f)), (0.1, 0.2))
case("nnx_in_a_dict", nnx.jit, ({"rate": 0.1, "none": None}, {"rate": 0.2, "none": None}))
case("nnx_in_a_list_beside_a_module", nnx.jit, (lambda: [Rated(5), 5], lambda: [Rated(5), 6]))
case("nnx_attribute", nnx.jit, (lambda: Rated(1.0), lambda: Rated(2.0)))
case("nnx_python_number_in_a_variable", nnx.jit, (lambda: nnx.Param(1.0), lambda: nnx.Param(2.0)))
case("nnx_static", functools.partial(nnx.jit, static_argnums=1), (1, 2))
case("nnx_static_name", functools.partial(nnx.jit, static_argnames="given"), ("a", "b"))
held = Config()
case("nnx_held_by_an_attribute", nnx.jit, (lambda: Rated(held.at(1.0)), lambda: Rated(held.at(2.0))))
case("nnx_equal_attribute", nnx.jit, (lambda: Rated(Equal(1.0)), lambda: Rated(Equal(2.0))))

# equinox
case("eqx_float", eqx.filter_jit, (0.1, 0.2))
case("eqx_string", eqx.filter_jit, ("a", "b"))
case("eqx_numpy_scalar", eqx.filter_jit, (np.float32(0.1), np.float32(0.2)))
case("eqx_in_a_dict", eqx.filter_jit, ({"rate": 0.1}, {"rate": 0.2}))
case("eqx_static_field", eqx.filter_jit, (rated(1.0, Field), rated(2.0, Field)))
case("eqx_field", eqx.filter_jit, (rated(1.0, Ordinary), rated(2.0, Ordinary)))
own = Config()
case("eqx_held_by_an_object", eqx.filter_jit, (lambda: own.at(1.0), lambda: own.at(2.0)))
case("eqx_equal_object", eqx.filter_jit, (lambda: Equal(1.0), lambda: Equal(2.0)))

# jax.pmap
one = {"reshape": lambda x: x[None]}
broadcast = functools.partial(jax.pmap, in_axes=(0, None))
case("pmap_float", broadcast, (0.1, 0.2), **one)
case("pmap_in_a_dict", broadcast, ({"rate": 0.1}, {"rate": 0.2}), **one)
case("pmap_static", functools.partial(jax.pmap, static_broadcasted_argnums=1), (1, 2), **one)

# jax.jit itself: Partial, haiku, optax, static data of a node
PLUS = lambda a, b: a + b
case(
    "partial_bound",
    jax.jit,
    (lambda: jax.tree_util.Partial(PLUS, 0.1), lambda: jax.tree_util.Partial(PLUS, 0.2)),
)
case("partial_function", jax.jit, (lambda: jax.tree_util.Partial(PLUS), lambda: jax.tree_util.Partial(max)))
case("jit_float", jax.jit, (0.1, 0.2))
case("jit_static", functools.partial(jax.jit, static_argnums=1), (1, 2))
case("jit_static_name", functools.partial(jax.jit, static_argnames="given"), (1.0, 2.0))
case("jit_static_field", jax.jit, (rated(1.0, Field), rated(2.0, Field)))
case("jit_field", jax.jit, (rated(1.0, Ordinary), rated(2.0, Ordinary)))
net = hk.transform(lambda x, rate: hk.Linear(1)(x[None]) * rate)
params = net.init(jax.random.key(0), jnp.ones(1), 1.0)
case("haiku_float", jax.jit, (0.1, 0.2), body=lambda x, v: net.apply(params, None, x[:1], v).sum())
sgd = optax.inject_hyperparams(optax.sgd)
case("optax_state", jax.jit, (lambda: sgd(0.1).init(jnp.ones(3)), lambda: sgd(0.2).init(jnp.ones(3))))

print(json.dumps(traced))
