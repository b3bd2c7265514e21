"""Twenty-one single causes on which JAX's own explainer was tried first, with the patterns used then."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding as NS, PartitionSpec as P

from .spec import Cause, case, traced

MESH = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
TYPED = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Explicit,))


def made():
    def tree_twice(*args, **kwargs):
        traced()
        return jax.tree.map(lambda x: x * 2, (args, kwargs))

    return jax.jit(tree_twice)


def ones(*shape):
    return np.ones(shape, np.float32)


def put(sharding):
    return jax.device_put(ones(4), sharding)


def pair(name, cause, before, after, says):
    """``before`` and ``after`` are (args, kwargs), or functions of the jitted function."""

    @case(f"explainer: {name}", cause, function="tree_twice", says=says)
    def _():
        f = made()
        return (lambda: before(f)), (lambda: after(f))


def under_mesh(f):
    with jax.set_mesh(MESH):
        return f(ones(4))


def other_context_first(f):
    with jax.default_matmul_precision("float32"):
        f(ones(3))
    f(ones(4))


DEV = jax.devices()
pair("shape", Cause("shape", "trace", "args[0]"), lambda f: f(ones(4)), lambda f: f(ones(8)), r"f32\[8\].*f32\[4\]|f32\[4\].*f32\[8\]")
pair("shape, after an earlier call in another context", Cause("shape", "trace", "args[0]"), other_context_first, lambda f: f(ones(8)), r"f32\[8\].*f32\[4\]|f32\[4\].*f32\[8\]")
pair("dtype", Cause("dtype", "trace", "args[0]"), lambda f: f(ones(4)), lambda f: f(ones(4).astype(np.int32)), r"i32\[4\].*f32\[4\]|f32\[4\].*i32\[4\]")
pair("weak type", Cause("weak_type", "trace", "args[0]"), lambda f: f(1.0), lambda f: f(jnp.float32(1.0)), r"weak_type=False.*weak_type=True|weak_type=True.*weak_type=False")
pair("a new key in a dict", Cause("tree", "trace", ("args[0]['b']", "args[0]")), lambda f: f({"a": 1.0}), lambda f: f({"a": 1.0, "b": 1.0}), r"'b'")
pair("keyword against positional", Cause("call_form", "trace", (None, "x", "kwargs['x']", "args[0]")), lambda f: f(1.0), lambda f: f(x=1.0), r"key|length")
pair("another device", Cause("device", "compile", "args[0]"), lambda f: f(put(DEV[0])), lambda f: f(put(DEV[1])), r"device|cpu:1")
pair("committed, then uncommitted", Cause("committed", "lower", "args[0]"), lambda f: f(put(DEV[0])), lambda f: f(ones(4)), r"commit")
pair("P() to P('d') on an auto mesh", Cause("sharding", "lower", "args[0]"), lambda f: f(put(NS(MESH, P()))), lambda f: f(put(NS(MESH, P("d")))), r"P\(|shard|@d")
pair("memory kind", Cause("memory_kind", "trace", "args[0]"), lambda f: f(put(NS(MESH, P("d")))), lambda f: f(put(NS(MESH, P("d"), memory_kind=next(m.kind for m in DEV[0].addressable_memories() if m.kind != DEV[0].default_memory().kind)))), r"host")
pair("P() to P('d') on an explicit mesh", Cause("sharding", "trace", "args[0]"), lambda f: f(put(NS(TYPED, P()))), lambda f: f(put(NS(TYPED, P("d")))), r"@d")
pair("set_mesh around the call", Cause("mesh", "trace", "context"), lambda f: f(ones(4)), under_mesh, r"mesh")
pair("clear_caches", Cause("cleared", "trace", None), lambda f: f(ones(4)), lambda f: (jax.clear_caches(), f(ones(4))), r"clear")


@case("explainer: static value", Cause("static_value", "trace", "n"), function="scaled", says=r"val=3.*val=2|val=2.*val=3|\b2\b.*\b3\b|\b3\b.*\b2\b")
def _():
    def scaled(x, n):
        traced()
        return x * n

    g = jax.jit(scaled, static_argnums=1)
    return (lambda: g(1.0, 2)), (lambda: g(1.0, 3))


@case("explainer: lambda made anew", Cause("new_function", "trace", None), function="<lambda>", says=r"re-defined")
def _():
    def call():
        return jax.jit(lambda x: (traced(), x + 1)[1])(ones(4))

    return call, call


@case("explainer: functools.partial made anew", Cause("new_function", "trace", None), function="product", says=r"partial")
def _():
    def product(a, x):
        traced()
        return a * x

    def call():
        return jax.jit(functools.partial(product, 2.0))(ones(4))

    return call, call


@case("explainer: bound method jitted again", Cause("new_function", "trace", None), function="add_one", says=r"method")
def _():
    class Owner:
        def add_one(self, x):
            traced()
            return x + 1

    owner = Owner()

    def call():
        return jax.jit(owner.add_one)(ones(4))

    return call, call


@case("explainer: jit(grad(f)) wrapped again", Cause("new_function", "trace", None), function="squared", says=r"grad|transform|wrapp")
def _():
    def squared(x):
        traced()
        return x**2

    def call():
        return jax.jit(jax.grad(squared))(1.0)

    return call, call


@case("explainer: static object hashed by identity", Cause("static_identity", "trace", "c"), function="ignoring", says=r"identity|hash|__eq__")
def _():
    class Options:
        pass

    def ignoring(x, c):
        traced()
        return x

    h, kept = jax.jit(ignoring, static_argnums=1), []

    def call():
        kept.append(Options())
        return h(1.0, kept[-1])

    return call, call


@case("explainer: an eager jnp operation at a new shape", Cause("shape", "trace", (None, "a", "args[0]")), function="cumprod", eager=True, says=r"6")
def _():
    a, b = jnp.ones(5), jnp.ones(6)
    return (lambda: jnp.cumprod(a)), (lambda: jnp.cumprod(b))


@case("explainer: shape, of a function that is also a loop body", Cause("shape", "trace", "x"), function="increment", says=r"f32\[9\].*f32\[7\]|f32\[7\].*f32\[9\]")
def _():
    def increment(x):
        traced()
        return x + 1

    jitted = jax.jit(increment)

    def warm():
        jax.lax.while_loop(lambda c: (c < 3).all(), increment, jnp.zeros(2))
        jitted(ones(7))

    return warm, (lambda: jitted(ones(9)))
