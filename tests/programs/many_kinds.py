"""Every way to compile something, once each."""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from imported_first import TABLE, at_import
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

with warnings.catch_warnings():  # the old name still works, and programs still use it
    warnings.simplefilter("ignore", DeprecationWarning)
    from jax.experimental.pjit import pjit

mesh = Mesh(np.array(jax.devices()[:2]), ("i",))


@jax.jit
def plain(x):
    return jnp.sin(x) * 2


def pjitted(x):
    return x + 3


@jax.jit
def inner(x):
    return x * x


@jax.jit
def outer(x):
    return inner(x) + inner(x + 1)


def per_device(x):
    return x * 4


def shard(x):
    return jax.lax.psum(x, "i")


def quadratic(x):
    return (x**2).sum()


def row(x):
    return x / x.sum()


def ahead(x):
    return x - 5


def scaled(scale, x):
    return x * scale


class Model:
    def __init__(self, factor):
        self.factor = factor

    def forward(self, x):
        return x * self.factor


@partial(jax.jit, static_argnums=1)
def power(x, n):
    return x**n


def report(name, value):
    print(f"{name:12} {np.asarray(value).sum():.4f}")


def main():
    x = jnp.arange(1.0, 5.0)
    report("at import", at_import(x) + TABLE)
    report("jit", plain(x))
    report("pjit", pjit(pjitted)(x))
    report("nested", outer(x))
    report("pmap", jax.pmap(per_device)(x.reshape(2, 2)))
    report("shard_map", jax.jit(jax.shard_map(shard, mesh=mesh, in_specs=P("i"), out_specs=P()))(x))
    report("jit of grad", jax.jit(jax.grad(quadratic))(x))
    report("jit of vmap", jax.jit(jax.vmap(row))(x.reshape(2, 2)))
    report("eager", (x + 1) @ x)
    compiled = jax.jit(ahead).lower(x).compile()
    report("aot", compiled(x) + compiled(x))
    report("norm", jnp.linalg.norm(x))
    report("cumsum", jnp.cumsum(x))
    report("partial", jax.jit(partial(scaled, 3.0))(x))
    report("method", jax.jit(Model(7.0).forward)(x))
    report("static", power(x, 2) + power(x, 3))
    report("lambda", jax.jit(lambda v: v[::-1] * 2)(x))
    report("grad of jit", jax.grad(lambda v: plain(v).sum())(x))
    report("vmap of jit", jax.vmap(plain)(x.reshape(2, 2)))


if __name__ == "__main__":
    main()
