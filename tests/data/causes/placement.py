"""Where the arrays lie, under which mesh and settings the call is made, and misses of the fast path alone."""

import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Format, Layout
from jax.experimental.xla_metadata import set_xla_metadata
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

from .arguments import TrainState, image_batch, image_loss, image_params, text_batch, text_loss, text_params
from .spec import Cause, case, traced

DEVICES = jax.devices()
AUTO = Mesh(np.array(DEVICES), ("data",))  # axes are Auto: shardings stay out of the types
GRID = Mesh(np.array(DEVICES).reshape(2, 2), ("data", "model"))
EXPLICIT = jax.make_mesh((4,), ("data",), axis_types=(AxisType.Explicit,))


def on(mesh, *spec, **options):
    return NamedSharding(mesh, P(*spec), **options)


def stepper():
    @jax.jit
    def train_step(params, batch):
        traced()
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(text_loss)(params, batch))

    return train_step


def predictor():
    @jax.jit
    def predict(x):
        traced()
        return x * 2

    return predict


@case("params restored from a checkpoint are committed", Cause("committed", "lower", "params"))
def _():
    step, batch, params = stepper(), text_batch(4), text_params(layers=6)
    restored = jax.device_put(params, DEVICES[0])
    return (lambda: step(params, batch)), (lambda: step(restored, batch))


@case("only the batch is committed", Cause("committed", "lower", ("batch", "batch['ids']", "batch['mask']")))
def _():
    step, batch, params = stepper(), text_batch(4), text_params()
    placed = jax.device_put(batch, DEVICES[0])
    return (lambda: step(params, batch)), (lambda: step(params, placed))


@case("inference on the second device", Cause("device", "compile", "x"), function="predict", says=r"device|cpu:1")
def _():
    f, x = predictor(), jnp.ones(4)
    a, b = jax.device_put(x, DEVICES[0]), jax.device_put(x, DEVICES[1])
    return (lambda: f(a)), (lambda: f(b))


@case("a replica of the model on every device", Cause("device", "compile", ("params", "batch", None)), says=r"device|cpu:2")
def _():
    step, batch, params = stepper(), text_batch(4), text_params(layers=3)
    first, third = (jax.device_put((params, batch), d) for d in (DEVICES[0], DEVICES[2]))
    return (lambda: step(*first)), (lambda: step(*third))


@case("batch sharded for training, replicated for evaluation", Cause("sharding", "lower", "batch['ids']"), function="eval_step")
def _():
    @jax.jit
    def eval_step(params, batch):
        traced()
        return text_loss(params, batch)

    params = jax.device_put(text_params(), on(AUTO))
    batch = jax.device_put(text_batch(8), on(AUTO, "data"))
    other = batch | {"ids": jax.device_put(batch["ids"], on(AUTO))}
    return (lambda: eval_step(params, batch)), (lambda: eval_step(params, other))


@case("every parameter sharded over another axis", Cause("sharding", "lower", ("params", "params['blocks']")), function="eval_step")
def _():
    @jax.jit
    def eval_step(params):
        traced()
        return sum(p.sum() for p in jax.tree.leaves(params))

    params = {"blocks": [{"w": jnp.ones((8, 8)), "v": jnp.ones((8, 8))} for _ in range(3)]}
    a, b = jax.device_put(params, on(GRID, "data")), jax.device_put(params, on(GRID, "model"))
    return (lambda: eval_step(a)), (lambda: eval_step(b))


@case("sharding in the type: P() to P('data') on an explicit mesh", Cause("sharding", "trace", "x"), function="predict", says=r"@data")
def _():
    f = predictor()
    a, b = jax.device_put(jnp.ones(4), on(EXPLICIT)), jax.device_put(jnp.ones(4), on(EXPLICIT, "data"))
    return (lambda: f(a)), (lambda: f(b))


@case("a state on one device comes back on the mesh", Cause(("mesh", "sharding"), "trace", ("state", "state['w']")))
def _():
    @jax.jit
    def train_step(state):
        traced()
        return {"w": jax.lax.with_sharding_constraint(state["w"] * 2, on(AUTO, "data"))}

    held, start = {}, {"w": jnp.ones(4)}

    def first():
        held["state"] = train_step(start)

    return first, (lambda: train_step(held["state"]))


@case("arrays on a 2 x 2 mesh where a mesh of 4 was", Cause("mesh", "trace", "x"), function="predict")
def _():
    f, x = predictor(), jnp.ones(4)
    a, b = jax.device_put(x, on(AUTO, "data")), jax.device_put(x, on(GRID, ("data", "model")))
    return (lambda: f(a)), (lambda: f(b))


@case("a mesh whose axis has another name", Cause("mesh", "trace", "batch['ids']"))
def _():
    step = stepper()
    other = Mesh(np.array(DEVICES), ("batch",))
    params, mask = text_params(), jnp.ones((4, 16))
    ids = jnp.ones((4, 16), jnp.int32)
    params, mask = jax.device_put((params, mask), on(AUTO))
    a = {"ids": jax.device_put(ids, on(AUTO)), "mask": mask}
    b = {"ids": jax.device_put(ids, on(other)), "mask": mask}
    return (lambda: step(params, a)), (lambda: step(params, b))


@case("optimizer state offloaded to the host", Cause("memory_kind", "trace", ("opt_state", "opt_state['mu']")), function="update")
def _():
    @jax.jit
    def update(params, opt_state):
        traced()
        return params * 2

    default = DEVICES[0].default_memory().kind
    other = next(m.kind for m in DEVICES[0].addressable_memories() if m.kind != default)
    here, there = SingleDeviceSharding(DEVICES[0]), SingleDeviceSharding(DEVICES[0], memory_kind=other)
    params, mu = jax.device_put((jnp.ones(4), jnp.ones(4)), here)
    a, b = {"mu": mu}, {"mu": jax.device_put(mu, there)}
    return (lambda: update(params, a)), (lambda: update(params, b))


@case("a kernel in the other layout", Cause("layout", "lower", ("params['kernel']", "params")), function="apply_model")
def _():
    @jax.jit
    def apply_model(params):
        traced()
        return params["kernel"] * 2

    here = SingleDeviceSharding(DEVICES[0])
    a, b = ({"kernel": jax.device_put(jnp.ones((4, 8)), Format(Layout(order), here))} for order in ((0, 1), (1, 0)))
    return (lambda: apply_model(a)), (lambda: apply_model(b))


# --- around the call


@case("evaluation under set_mesh", Cause("mesh", "trace", "context"), function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def measured():
        with jax.set_mesh(AUTO):
            return f(x)

    return (lambda: f(x)), measured


@case("training under a mesh, then a call outside it", Cause("mesh", "trace", "context"), function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def warm():
        with jax.set_mesh(AUTO):
            f(x)

    return warm, (lambda: f(x))


@case("with mesh: around the call", Cause("mesh", "trace", "context"), function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def measured():
        with GRID:
            return f(x)

    return (lambda: f(x)), measured


def in_turn(name, level, first, second, around):
    """One call under each of two meshes."""

    @case(name, Cause("mesh", level, "context"), function="predict")
    def _():
        f, x = predictor(), jnp.ones(4)

        def under(mesh):
            with around(mesh):
                return f(x)

        return (lambda: under(first)), (lambda: under(second))


HALVES = [Mesh(np.array(DEVICES[n : n + 2]), ("data",)) for n in (0, 2)]
BACKWARDS = Mesh(np.array(DEVICES[::-1]), ("data",))
in_turn("set_mesh with the devices in another order", "compile", AUTO, BACKWARDS, jax.set_mesh)
in_turn("set_mesh on the other half of the devices", "compile", *HALVES, jax.set_mesh)
in_turn("with mesh: the devices in another order", "trace", AUTO, BACKWARDS, lambda mesh: mesh)


@case("set_xla_metadata with another value", Cause("config", "trace", "xla_metadata_context_manager"), function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def tagged(value):
        with set_xla_metadata(tag=value):
            return f(x)

    return (lambda: tagged("warm")), (lambda: tagged("measured"))


def setting(name, path, context, function="predict", **options):
    @case(name, Cause("config", "trace", path), function=function, says=path.removeprefix("jax_"), **options)
    def _():
        f, x = predictor(), jnp.ones(4)

        def measured():
            with context():
                return f(x)

        return (lambda: f(x)), measured


class updated:
    """A global setting changed by jax.config.update, and put back."""

    def __init__(self, name, value):
        self.name, self.value = name, value

    def __enter__(self):
        self.before = getattr(jax.config, self.name)
        jax.config.update(self.name, self.value)

    def __exit__(self, *error):
        jax.config.update(self.name, self.before)


setting("matmul precision as a context", "jax_default_matmul_precision", lambda: jax.default_matmul_precision("float32"))
setting("matmul precision by jax.config.update", "jax_default_matmul_precision", lambda: updated("jax_default_matmul_precision", "bfloat16"))
setting("x64 switched on by jax.config.update", "jax_enable_x64", lambda: updated("jax_enable_x64", True))
setting("rank promotion raises in a test", "jax_numpy_rank_promotion", lambda: jax.numpy_rank_promotion("raise"))
setting("strict dtype promotion", "jax_numpy_dtype_promotion", lambda: jax.numpy_dtype_promotion("strict"))
setting("another default device", "jax_default_device", lambda: jax.default_device(DEVICES[1]))
setting("threefry_partitionable switched", "jax_threefry_partitionable", lambda: updated("jax_threefry_partitionable", not jax.config.jax_threefry_partitionable))


@case("a step under another precision, after many shapes", Cause("config", "trace", "jax_default_matmul_precision"), function="predict", says="default_matmul_precision", warm=1)
def _():
    f, sizes = predictor(), [jnp.ones(n) for n in (3, 4, 5)]

    def warm():
        for x in sizes:
            f(x)

    def measured():
        with jax.default_matmul_precision("highest"):
            return f(sizes[0])

    return warm, measured


# --- the fast path alone


@case("a batch straight from NumPy", Cause("argument_kind", "fast_path", ("batch", "batch['ids']", "batch['mask']")))
def _():
    step, params, batch = stepper(), text_params(), text_batch(4)
    numpy = jax.tree.map(np.asarray, batch)
    return (lambda: step(params, batch)), (lambda: step(params, numpy))


@case("one NumPy array in a batch of jax.Arrays", Cause("argument_kind", "fast_path", "batch['mask']"))
def _():
    step, params, batch = stepper(), text_params(), text_batch(4)
    mixed = batch | {"mask": np.ones((4, 16), np.float32)}
    return (lambda: step(params, batch)), (lambda: step(params, mixed))


@case("a NumPy scalar where a jax.Array was", Cause("argument_kind", "fast_path", "lr"), function="update")
def _():
    @jax.jit
    def update(params, lr):
        traced()
        return params * lr

    params, rate = jnp.ones(4), jnp.float32(0.1)
    return (lambda: update(params, rate)), (lambda: update(params, np.float32(0.1)))


@case("a train state that starts as NumPy", Cause("argument_kind", "fast_path", ("state", "state.params", "state.params['w']")))
def _():
    @jax.jit
    def train_step(state, batch):
        traced()
        grads = jax.grad(image_loss)(state.params, batch)
        return TrainState(state.step + 1, grads, ())

    batch, held = image_batch(4), {}
    start = TrainState(jnp.int32(0), jax.tree.map(np.asarray, image_params()), ())

    def first():
        held["state"] = train_step(start, batch)

    return first, (lambda: train_step(held["state"], batch))


@case("the same placement spelled P('data', None)", Cause("equal_sharding", "fast_path", "batch['ids']"), function="eval_step")
def _():
    @jax.jit
    def eval_step(params, batch):
        traced()
        return text_loss(params, batch)

    params = jax.device_put(text_params(), on(AUTO))
    batch = jax.device_put(text_batch(8), on(AUTO, "data"))
    other = batch | {"ids": jax.device_put(batch["ids"], on(AUTO, "data", None))}
    return (lambda: eval_step(params, batch)), (lambda: eval_step(params, other))


@case("debug.print in the step", Cause("effects", "fast_path", None))
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        loss = text_loss(params, batch)
        jax.debug.callback(lambda value: None, loss)
        return loss

    params, batch = text_params(), text_batch(4)
    return (lambda: train_step(params, batch)), (lambda: train_step(params, batch))


@case("an ordered io_callback in the step", Cause("effects", "fast_path", None))
def _():
    @jax.jit
    def train_step(x):
        traced()
        jax.experimental.io_callback(lambda value: None, None, x.sum(), ordered=True)
        return x * 2

    x = jnp.ones(4)
    return (lambda: train_step(x)), (lambda: train_step(x))


# --- the persistent cache


def cached(name, cause, measured_call, function="predict", says=None, **options):
    @case(name, cause, function=function, says=says, warm=1, **options)
    def _():
        f, directory = predictor(), tempfile.mkdtemp(prefix="cache")
        settings = {"jax_compilation_cache_dir": directory, "jax_persistent_cache_min_compile_time_secs": 0, "jax_persistent_cache_min_entry_size_bytes": -1}

        def under(call):
            before = {name: getattr(jax.config, name) for name in settings}
            for name, value in settings.items():
                jax.config.update(name, value)
            try:
                call()
            finally:
                for name, value in before.items():
                    jax.config.update(name, value)
                jax.experimental.compilation_cache.compilation_cache.reset_cache()

        x, y = jnp.ones(17), jnp.ones(19)
        return (lambda: under(lambda: (jax.clear_caches(), f(x)))), (lambda: under(lambda: measured_call(f, x, y)))


def after_clearing(f, x, y):
    jax.clear_caches()
    f(x)


cached("caches cleared, found in the persistent cache", Cause("cleared", "trace", None), after_clearing, says=r"clear", persistent="hit")
cached("a new shape, not in the persistent cache", Cause("shape", "trace", "x"), lambda f, x, y: f(y), says=r"\[19\]", persistent="miss")
