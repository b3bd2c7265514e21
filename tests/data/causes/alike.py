"""Static values that look alike and are not, or the other way round: each was once explained wrongly."""

import collections
import dataclasses
import functools
from typing import Any

import equinox as eqx
import flax
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from .spec import Cause, case, traced


@case(
    "a graph definition of nnx.split as a static argument: the rate of one module",
    Cause(("static_value", "tree_static"), "trace", ("graphdef.rate", "graphdef")),
)
def _():
    class M(nnx.Module):
        def __init__(self, rngs, rate):
            self.l = nnx.Linear(2, 2, rngs=rngs)
            self.rate = rate

        def __call__(self, x):
            return self.l(x) * self.rate

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(graphdef, state, x):
        traced()
        return nnx.merge(graphdef, state)(x)

    g1, s1 = nnx.split(M(nnx.Rngs(0), 0.1))
    g2, s2 = nnx.split(M(nnx.Rngs(0), 0.5))
    return (lambda: train_step(g1, s1, jnp.ones((2, 2)))), (lambda: train_step(g2, s2, jnp.ones((2, 2))))


@case("a static mesh of the same devices in another order", Cause("static_value", "trace", "mesh"))
def _():
    @functools.partial(jax.jit, static_argnums=1)
    def train_step(x, mesh):
        traced()
        return x

    d = np.array(jax.devices())
    return (lambda: train_step(jnp.ones(2), Mesh(d, ("a",)))), (
        lambda: train_step(jnp.ones(2), Mesh(d[::-1], ("a",)))
    )


@case("a static string of 5,000 characters, the last one differs", Cause("static_value", "trace", "s"))
def _():
    @functools.partial(jax.jit, static_argnums=1)
    def train_step(x, s):
        traced()
        return x

    return (lambda: train_step(jnp.ones(2), "a" * 5000 + "x")), (
        lambda: train_step(jnp.ones(2), "a" * 5000 + "y")
    )


@case(
    "a static tuple of 1,000 numbers, the last one differs", Cause("static_value", "trace", ("s", "s[999]"))
)
def _():
    @functools.partial(jax.jit, static_argnums=1)
    def train_step(x, s):
        traced()
        return x

    return (lambda: train_step(jnp.ones(2), tuple(range(1000)))), (
        lambda: train_step(jnp.ones(2), tuple(range(999)) + (-7,))
    )


@case("a static object that compares the array it holds", Cause("static_value", "trace", "w"))
def _():
    class W:
        def __init__(self, a):
            self.a = a

        def __hash__(self):
            return hash(self.a.tobytes())

        def __eq__(self, o):
            return isinstance(o, W) and np.array_equal(self.a, o.a)

    @functools.partial(jax.jit, static_argnums=1)
    def train_step(x, w):
        traced()
        return x * w.a.sum()

    a = np.zeros(1000)
    b = a.copy()
    b[3] = 1
    return (lambda: train_step(jnp.ones(2), W(a))), (lambda: train_step(jnp.ones(2), W(b)))


@case("metadata that compares the array it holds", Cause("tree_static", "trace", "b.w"))
def _():
    class W:
        def __init__(self, a):
            self.a = a

        def __hash__(self):
            return hash(self.a.tobytes())

        def __eq__(self, o):
            return isinstance(o, W) and np.array_equal(self.a, o.a)

    @functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["w"])
    @dataclasses.dataclass
    class B:
        x: Any
        w: Any

    @jax.jit
    def train_step(b):
        traced()
        return b.x * b.w.a.sum()

    a = np.zeros(1000)
    c = a.copy()
    c[3] = 1
    return (lambda: train_step(B(jnp.ones(2), W(a)))), (lambda: train_step(B(jnp.ones(2), W(c))))


@case("a static dataclass defined a second time", Cause("static_value", "trace", "c"))
def _():
    def mk():
        @dataclasses.dataclass(frozen=True)
        class C:
            n: int

        return C

    A, B = mk(), mk()

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(c, x):
        traced()
        return x

    return (lambda: train_step(A(1), jnp.ones(1))), (lambda: train_step(B(1), jnp.ones(1)))


@case("a frozen dataclass that holds a lambda made anew", Cause("static_identity", "trace", ("c", "c.f")))
def _():
    @dataclasses.dataclass(frozen=True)
    class C:
        n: int
        f: Any

    def mk():
        return C(1, lambda x: x)

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(c, x):
        traced()
        return c.f(x)

    return (lambda: train_step(mk(), jnp.ones(1))), (lambda: train_step(mk(), jnp.ones(1)))


@case("a static bound method of another object", Cause("static_identity", "trace", "f"))
def _():
    class T:
        def m(self, x):
            return x

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(f, x):
        traced()
        return f(x)

    return (lambda: train_step(T().m, jnp.ones(1))), (lambda: train_step(T().m, jnp.ones(1)))


@case("static activation: relu, then relu6", Cause("static_value", "trace", "f"))
def _():
    @functools.partial(jax.jit, static_argnums=0)
    def train_step(f, x):
        traced()
        return f(x)

    return (lambda: train_step(jax.nn.relu, jnp.ones(1))), (lambda: train_step(jax.nn.relu6, jnp.ones(1)))


@case("a static tuple of functions, one replaced", Cause("static_value", "trace", "fs"))
def _():
    @functools.partial(jax.jit, static_argnums=0)
    def train_step(fs, x):
        traced()
        return fs[0](x)

    return (lambda: train_step((jnp.sin, jnp.cos), jnp.ones(1))), (
        lambda: train_step((jnp.sin, jnp.tan), jnp.ones(1))
    )


@case("control: a static bound method of the same object")
def _():
    class T:
        def m(self, x):
            return x

    t = T()

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(f, x):
        traced()
        return f(x)

    return (lambda: train_step(t.m, jnp.ones(1))), (lambda: train_step(t.m, jnp.ones(1)))


