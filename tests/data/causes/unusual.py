"""Containers, nodes and placements that are legal and rarely met: each was once explained wrongly."""

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
    "a graph definition of nnx.split as an argument: the rate of one module",
    Cause("tree_static", "trace", ("graphdef.rate", "graphdef")),
)
def _():
    class M(nnx.Module):
        def __init__(self, rngs, rate):
            self.l = nnx.Linear(2, 2, rngs=rngs)
            self.rate = rate

        def __call__(self, x):
            return self.l(x) * self.rate

    @jax.jit
    def train_step(graphdef, state, x):
        traced()
        return nnx.merge(graphdef, state)(x)

    g1, s1 = nnx.split(M(nnx.Rngs(0), 0.1))
    g2, s2 = nnx.split(M(nnx.Rngs(0), 0.5))
    return (lambda: train_step(g1, s1, jnp.ones((2, 2)))), (lambda: train_step(g2, s2, jnp.ones((2, 2))))


@case(
    "equinox: the activation of an MLP inside a module", Cause("tree_static", "trace", "model.mlp.activation")
)
def _():
    class M(eqx.Module):
        mlp: eqx.nn.MLP

        def __call__(self, x):
            return self.mlp(x)

    k = jax.random.key(0)

    @eqx.filter_jit
    def train_step(model, x):
        traced()
        return model(x)

    a = M(eqx.nn.MLP(2, 2, 4, 1, activation=jax.nn.relu, key=k))
    b = M(eqx.nn.MLP(2, 2, 4, 1, activation=jax.nn.gelu, key=k))
    return (lambda: train_step(a, jnp.ones(2))), (lambda: train_step(b, jnp.ones(2)))


@case("a FrozenDict where a dict was", Cause("tree", "trace", "params"))
def _():
    @jax.jit
    def train_step(params):
        traced()
        return params["a"]["b"] * 2

    d = {"a": {"b": jnp.ones(2)}}
    return (lambda: train_step(d)), (lambda: train_step(flax.core.freeze(d)))


@case(
    "a defaultdict with another factory",
    Cause(("tree_static", "tree"), "trace", ("params.default_factory", "params")),
)
def _():
    @jax.jit
    def train_step(params):
        traced()
        return params["a"] * 2

    d = collections.defaultdict(list, {"a": jnp.ones(2)})
    e = collections.defaultdict(dict, {"a": jnp.ones(2)})
    return (lambda: train_step(d)), (lambda: train_step(e))


@case("an empty dict appears in the state", Cause("tree", "trace", "state['stats']"))
def _():
    @jax.jit
    def train_step(state):
        traced()
        return state["x"]

    return (lambda: train_step({"x": jnp.ones(2)})), (lambda: train_step({"x": jnp.ones(2), "stats": {}}))


@case("a NamedTuple class defined a second time", Cause("tree", "trace", "carry"))
def _():
    @jax.jit
    def train_step(carry):
        traced()
        return carry.h + carry.c

    def mk():
        A = collections.namedtuple("A", "h c")
        return A(jnp.ones(2), jnp.ones(2))

    keep = [mk(), mk()]
    return (lambda: train_step(keep[0])), (lambda: train_step(keep[1]))


@case("an array becomes a list of one", Cause("tree", "trace", ("p['a']", "p['a'][0]")))
def _():
    @jax.jit
    def train_step(p):
        traced()
        return jax.tree.leaves(p)[0]

    return (lambda: train_step({"a": jnp.ones(2)})), (lambda: train_step({"a": [jnp.ones(2)]}))


@case("auxiliary data in __slots__", Cause("tree_static", "trace", ("b.n", "b")))
def _():
    @jax.tree_util.register_pytree_node_class
    class B:
        __slots__ = ("x", "n")

        def __init__(self, x, n):
            self.x = x
            self.n = n

        def tree_flatten(self):
            return (self.x,), self.n

        @classmethod
        def tree_unflatten(cls, a, c):
            return cls(c[0], a)

    @jax.jit
    def train_step(b):
        traced()
        return b.x

    return (lambda: train_step(B(jnp.ones(2), 1))), (lambda: train_step(B(jnp.ones(2), 2)))


@case("auxiliary data that no attribute holds", Cause("tree_static", "trace", "b"))
def _():
    @jax.tree_util.register_pytree_node_class
    class B:
        def __init__(self, x, n):
            self.x = x
            self.n = n

        def tree_flatten(self):
            return (self.x,), ("v", self.n * 10)

        @classmethod
        def tree_unflatten(cls, a, c):
            return cls(c[0], a[1] // 10)

    @jax.jit
    def train_step(b):
        traced()
        return b.x

    return (lambda: train_step(B(jnp.ones(2), 1))), (lambda: train_step(B(jnp.ones(2), 2)))


@case("tree_util.Partial: a bound number of another type", Cause("dtype", "trace", "f.keywords['n']"))
def _():
    def g(x, n):
        return x * n

    @jax.jit
    def train_step(f, x):
        traced()
        return f(x)

    Pt = jax.tree_util.Partial
    return (lambda: train_step(Pt(g, n=2), jnp.ones(2))), (lambda: train_step(Pt(g, n=2.0), jnp.ones(2)))


@case("tree_util.Partial of another function", Cause("tree_static", "trace", ("f.func", "f")))
def _():
    def g(x):
        return x

    def h(x):
        return x * 2

    @jax.jit
    def train_step(f, x):
        traced()
        return f(x)

    Pt = jax.tree_util.Partial
    return (lambda: train_step(Pt(g), jnp.ones(2))), (lambda: train_step(Pt(h), jnp.ones(2)))


@case("sharded over an axis of size 1, then not", Cause("equal_sharding", "fast_path", "x"))
def _():
    m = Mesh(np.array(jax.devices()).reshape(4, 1), ("a", "one"))

    @jax.jit
    def train_step(x):
        traced()
        return x * 2

    a = jax.device_put(jnp.ones(4), NamedSharding(m, P("one")))
    b = jax.device_put(jnp.ones(4), NamedSharding(m, P()))
    return (lambda: train_step(a)), (lambda: train_step(b))


@case("three keys where two were", Cause("shape", "trace", "key"))
def _():
    @jax.jit
    def train_step(key):
        traced()
        return key

    k = jax.random.key(0)
    return (lambda: train_step(jax.random.split(k, 2))), (lambda: train_step(jax.random.split(k, 3)))


@case("a batch of keys where one was", Cause("rank", "trace", "key"))
def _():
    @jax.jit
    def train_step(key):
        traced()
        return key

    k = jax.random.key(0)
    return (lambda: train_step(k)), (lambda: train_step(jax.random.split(k)))


@case("one array of a class that is registered without keys", Cause("shape", "trace", "b.x"))
def _():
    @jax.tree_util.register_pytree_node_class
    class B:
        def __init__(self, x, y):
            self.x = x
            self.y = y

        def tree_flatten(self):
            return (self.x, self.y), None

        @classmethod
        def tree_unflatten(cls, a, c):
            return cls(*c)

    @jax.jit
    def train_step(b):
        traced()
        return b.x.sum()

    return (lambda: train_step(B(jnp.ones(2), jnp.ones(2)))), (
        lambda: train_step(B(jnp.ones(3), jnp.ones(2)))
    )


@case(
    "metadata below a class that is registered without keys",
    Cause("tree_static", "trace", "b.inner['c'].mode"),
)
def _():
    @functools.partial(jax.tree_util.register_dataclass, data_fields=["x"], meta_fields=["mode"])
    @dataclasses.dataclass
    class C:
        x: Any
        mode: str

    @jax.tree_util.register_pytree_node_class
    class B:
        def __init__(self, x, inner):
            self.x = x
            self.inner = inner

        def tree_flatten(self):
            return (self.x, self.inner), None

        @classmethod
        def tree_unflatten(cls, a, c):
            return cls(*c)

    @jax.jit
    def train_step(b):
        traced()
        return b.x.sum()

    return (lambda: train_step(B(jnp.ones(2), {"c": C(jnp.ones(1), "a")}))), (
        lambda: train_step(B(jnp.ones(2), {"c": C(jnp.ones(1), "b")}))
    )


@case("a dataclass of the state defined a second time", Cause("tree", "trace", "s"))
def _():
    def mk():
        @flax.struct.dataclass
        class S:
            x: Any

        return S

    A, B = mk(), mk()

    @jax.jit
    def train_step(s):
        traced()
        return s.x

    return (lambda: train_step(A(jnp.ones(2)))), (lambda: train_step(B(jnp.ones(2))))


@case(
    "nnx: one layer more in a list",
    Cause(
        "tree", "trace", ("model.layers[2]", "model.layers", "model.layers[2].kernel", "model.layers[2].bias")
    ),
)
def _():
    class M(nnx.Module):
        def __init__(s, n, rngs):
            s.layers = nnx.List([nnx.Linear(2, 2, rngs=rngs) for _ in range(n)])

        def __call__(s, x):
            for layer in s.layers:
                x = layer(x)
            return x

    @nnx.jit
    def train_step(model, x):
        traced()
        return model(x)

    a, b = M(2, nnx.Rngs(0)), M(3, nnx.Rngs(0))
    return (lambda: train_step(a, jnp.ones(2))), (lambda: train_step(b, jnp.ones(2)))


@case("pmap: a static argument", Cause("static_value", "trace", "n"))
def _():
    @functools.partial(jax.pmap, static_broadcasted_argnums=1)
    def train_step(x, n):
        traced()
        return x * n

    return (lambda: train_step(jnp.ones((4, 2)), 2)), (lambda: train_step(jnp.ones((4, 2)), 3))


@case("called inside another jitted function, then directly", Cause("transform", "lower", None))
def _():
    @jax.jit
    def train_step(x):
        traced()
        return x * 2

    @jax.jit
    def outer(x):
        return train_step(x) + 1

    return (lambda: outer(jnp.ones(2))), (lambda: train_step(jnp.ones(2)))


@case("a static field: a tuple, then None", Cause("tree_static", "trace", "s.dims"))
def _():
    @flax.struct.dataclass
    class S:
        x: Any
        dims: Any = flax.struct.field(pytree_node=False)

    @jax.jit
    def train_step(s):
        traced()
        return s.x

    return (lambda: train_step(S(jnp.ones(2), (1, 2)))), (lambda: train_step(S(jnp.ones(2), None)))


@case(
    "a node that holds no arrays appears in a dict",
    Cause(("tree", "tree_static"), "trace", ("d['cfg']", "d['cfg'].mode")),
)
def _():
    @functools.partial(jax.tree_util.register_dataclass, data_fields=[], meta_fields=["mode"])
    @dataclasses.dataclass
    class C:
        mode: str

    @jax.jit
    def train_step(d):
        traced()
        return d["x"]

    return (lambda: train_step({"x": jnp.ones(2)})), (lambda: train_step({"x": jnp.ones(2), "cfg": C("a")}))
