"""The function itself: made anew, jitted with other options, forgotten, compiled ahead of time, transformed."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as P

from .arguments import text_batch, text_loss, text_params
from .spec import Cause, case, traced

REMADE = r"re-?defin|new function|made anew"


@case("a lambda jitted inside the loop", Cause("new_function", "trace", None), function="<lambda>", says=REMADE + "|lambda")
def _():
    x = jnp.ones(4)

    def call():
        return jax.jit(lambda v: (traced(), v * 2)[1])(x)

    return call, call


@case("a step defined inside the epoch", Cause("new_function", "trace", None), says=REMADE)
def _():
    params, batch = text_params(), text_batch(4)

    def epoch():
        @jax.jit
        def train_step(params, batch):
            traced()
            return jax.grad(text_loss)(params, batch)

        return train_step(params, batch)

    return epoch, epoch


def make_train_step(rate):
    def train_step(params, batch):
        traced()
        return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(text_loss)(params, batch))

    return jax.jit(train_step)


@case("a factory called again in every epoch", Cause("new_function", "trace", None), function="make_train_step.<locals>.train_step", says=REMADE)
def _():
    params, batch = text_params(), text_batch(4)

    def epoch():
        return make_train_step(0.1)(params, batch)

    return epoch, epoch


@case("jit(partial(...)) in every epoch", Cause("new_function", "trace", None), says=REMADE + "|partial")
def _():
    def train_step(rate, params, batch):
        traced()
        return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(text_loss)(params, batch))

    params, batch = text_params(), text_batch(4)

    def epoch():
        return jax.jit(functools.partial(train_step, 0.1))(params, batch)

    return epoch, epoch


@case("jit(partial(...)) with another bound value", Cause("new_function", "trace", None), says=REMADE + "|partial")
def _():
    def train_step(params, batch, rate):
        traced()
        return jax.tree.map(lambda p, g: p - rate * g, params, jax.grad(text_loss)(params, batch))

    params, batch, rates = text_params(), text_batch(4), iter([0.3, 0.2, 0.1, 0.05])

    def epoch():
        return jax.jit(functools.partial(train_step, rate=next(rates)))(params, batch)

    return epoch, epoch


@case("jit(grad(f)) in every step", Cause("new_function", "trace", None), function="energy", says=REMADE + "|grad|transform")
def _():
    def energy(positions):
        traced()
        return (positions**2).sum()

    x = jnp.ones((4, 3))

    def force():
        return jax.jit(jax.grad(energy))(x)

    return force, force


@case("jit(vmap(f)) in every step", Cause("new_function", "trace", None), function="features", says=REMADE + "|vmap|transform")
def _():
    def features(row):
        traced()
        return jnp.tanh(row) * 2

    x = jnp.ones((4, 3))

    def call():
        return jax.jit(jax.vmap(features))(x)

    return call, call


@case("jit(value_and_grad(f)) in a fit function called twice", Cause("new_function", "trace", None), function="objective", says=REMADE + "|grad|transform")
def _():
    def objective(theta, data):
        traced()
        return ((theta - data) ** 2).mean()

    data = jnp.ones(4)

    def fit():
        step = jax.jit(jax.value_and_grad(objective))
        theta = jnp.zeros(4)
        for _ in range(3):
            value, grad = step(theta, data)
            theta = theta - 0.1 * grad
        return theta

    return fit, fit


@case("jit(shard_map(f)) in every step", Cause("new_function", "trace", None), function="reduce_shards", says=REMADE + "|shard_map|transform")
def _():
    mesh = Mesh(np.array(jax.devices()), ("data",))

    def reduce_shards(x):
        traced()
        return jax.lax.psum(x, "data")

    x = jnp.ones(4)

    def call():
        return jax.jit(jax.shard_map(reduce_shards, mesh=mesh, in_specs=P("data"), out_specs=P()))(x)

    return call, call


@case("jit(obj.method), a new object each time", Cause("new_function", "trace", None), function="Solver.solve", says=REMADE + "|method")
def _():
    class Solver:
        def solve(self, x):
            traced()
            return x * 2

    x = jnp.ones(3)

    def call():
        return jax.jit(Solver().solve)(x)

    return call, call


@case("a callable object jitted anew", Cause("new_function", "trace", None), function="Model", says=REMADE + "|object|call")
def _():
    class Model:
        def __call__(self, x):
            traced()
            return x * 2

    x, kept = jnp.ones(3), []

    def call():
        kept.append(Model())
        return jax.jit(kept[-1])(x)

    return call, call


@case("the function was collected and defined again", Cause(("cleared", "new_function"), "trace", None), function="build.<locals>.predict", says=REMADE + "|clear|collect")
def _():
    def build():
        def predict(x):
            traced()
            return x * 2

        return jax.jit(predict)

    x = jnp.ones(3)

    def call():
        f = build()
        f(x)
        del f
        gc.collect()

    return call, call


@case("the same step, once with donation", Cause("options", "lower", (None, "donate_argnums", "donate_argnames")), says=r"donat|option")
def _():
    def train_step(params, batch):
        traced()
        return jax.tree.map(lambda p: p * 0.9, params), text_loss(params, batch)

    plain, donating = jax.jit(train_step), jax.jit(train_step, donate_argnums=0)
    batch, params, given = text_batch(4), text_params(), text_params()
    return (lambda: plain(params, batch)), (lambda: donating(given, batch))


@case("the same function with out_shardings", Cause("options", "lower", (None, "out_shardings")), function="project", says=r"out_shard|option")
def _():
    mesh = jax.make_mesh((4,), ("data",))

    def project(x):
        traced()
        return x * 2

    x = jax.device_put(jnp.ones(8), jax.NamedSharding(mesh, P("data")))
    a, b = jax.jit(project), jax.jit(project, out_shardings=jax.NamedSharding(mesh, P()))
    return (lambda: a(x)), (lambda: b(x))


@case("the same function with other compiler options", Cause("options", "compile", (None, "compiler_options")), function="project", says=r"compiler_options|option")
def _():
    def project(x):
        traced()
        return x * 2

    x = jnp.ones(8)
    a, b = jax.jit(project), jax.jit(project, compiler_options={"xla_embed_ir_in_executable": True})
    return (lambda: a(x)), (lambda: b(x))


@case("clear_caches() between two epochs", Cause("cleared", "trace", None), says=r"clear")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return jax.grad(text_loss)(params, batch)

    params, batch = text_params(), text_batch(4)

    def epoch():
        jax.clear_caches()
        return train_step(params, batch)

    return (lambda: train_step(params, batch)), epoch


@case("train_step.clear_cache()", Cause("cleared", "trace", None), says=r"clear")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return jax.grad(text_loss)(params, batch)

    params, batch = text_params(), text_batch(4)

    def epoch():
        train_step.clear_cache()
        return train_step(params, batch)

    return (lambda: train_step(params, batch)), epoch


@case("compiled ahead of time, then called as usual", Cause("aot", "fast_path", None), function="serve", warm=1)
def _():
    @jax.jit
    def serve(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch = text_params(), text_batch(4)
    return (lambda: serve.lower(params, batch).compile()), (lambda: serve(params, batch))


@case("compiled ahead of time for another batch size", Cause("shape", "trace", ("batch", "batch['ids']", "batch['mask']")), function="serve", warm=1, says=r"\[3,16\]")
def _():
    @jax.jit
    def serve(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch, other = text_params(), text_batch(4), text_batch(3)
    return (lambda: serve.lower(params, batch).compile()), (lambda: serve(params, other))


@case("compiled ahead of time for an unsharded batch, called with a sharded one", Cause(("mesh", "sharding"), "trace", ("batch", "batch['ids']", "batch['mask']")), function="serve", warm=1)
def _():
    @jax.jit
    def serve(params, batch):
        traced()
        return text_loss(params, batch)

    mesh = Mesh(np.array(jax.devices()), ("data",))
    params, batch = text_params(), text_batch(8)
    abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), batch)
    sharded = jax.device_put(batch, jax.NamedSharding(mesh, P("data")))
    return (lambda: serve.lower(params, abstract).compile()), (lambda: serve(params, sharded))


@case("called under grad after it was called as it is", Cause("transform", "lower", None), function="kernel_fn")
def _():
    @jax.jit
    def kernel_fn(x):
        traced()
        return jnp.sin(x) * 2

    x = jnp.ones(4)
    return (lambda: kernel_fn(x)), (lambda: jax.grad(lambda v: kernel_fn(v).sum())(x))


@case("called under vmap after it was called as it is", Cause("transform", "lower", None), function="kernel_fn")
def _():
    @jax.jit
    def kernel_fn(x):
        traced()
        return jnp.sin(x) * 2

    x, rows = jnp.ones(4), jnp.ones((3, 4))
    return (lambda: kernel_fn(x)), (lambda: jax.vmap(kernel_fn)(rows))


@case("under vmap, a longer row", Cause(("shape", "transform"), "trace", ("x", "args[0]", None)), function="kernel_fn", says=r"\[5\]")
def _():
    @jax.jit
    def kernel_fn(x):
        traced()
        return jnp.sin(x) * 2

    a, b = jnp.ones((3, 4)), jnp.ones((3, 5))
    return (lambda: jax.vmap(kernel_fn)(a)), (lambda: jax.vmap(kernel_fn)(b))


@case("jit(vmap(f)), a smaller batch", Cause("shape", "trace", ("row", "args[0]")), function="features", says=r"\[3,3\]")
def _():
    def features(row):
        traced()
        return jnp.tanh(row) * 2

    batched, full, last = jax.jit(jax.vmap(features)), jnp.ones((4, 3)), jnp.ones((3, 3))
    return (lambda: batched(full)), (lambda: batched(last))


@case("jit(grad(f)), a smaller batch", Cause("shape", "trace", "data"), function="objective", says=r"\[3\]")
def _():
    def objective(theta, data):
        traced()
        return ((theta - data) ** 2).mean()

    step, theta, full, last = jax.jit(jax.grad(objective)), jnp.float32(0), jnp.ones(4), jnp.ones(3)
    return (lambda: step(theta, full)), (lambda: step(theta, last))


ANY_OPERAND = (None, "a", "x", "args[0]", "arr", "operand", "arrays")


@case("eager cumsum of a longer array", Cause("shape", "trace", ANY_OPERAND), function="cumsum", eager=True, says=r"\[10\]")
def _():
    a, b = jnp.ones(9), jnp.ones(10)
    return (lambda: jnp.cumsum(a)), (lambda: jnp.cumsum(b))


@case("eager sort of another dtype", Cause("dtype", "trace", ANY_OPERAND), function="sort", eager=True, says=r"i32|int32")
def _():
    a, b = jnp.ones(11), jnp.ones(11, jnp.int32)
    return (lambda: jnp.sort(a)), (lambda: jnp.sort(b))


@case("an eager primitive at a new shape", Cause("shape", "trace", ANY_OPERAND), function="tanh", eager=True, says=r"\[13\]")
def _():
    a, b = jnp.asarray(np.ones(12, "float32")), jnp.asarray(np.ones(13, "float32"))
    return (lambda: jax.lax.tanh(a)), (lambda: jax.lax.tanh(b))
