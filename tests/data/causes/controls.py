"""Calls that hit the cache although something about them is new: no cause may be reported."""

import dataclasses
import threading
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training.train_state import TrainState
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

from .arguments import image_batch, text_batch, text_loss, text_params
from .placement import AUTO, DEVICES, predictor, stepper
from .spec import case, traced
from .statics import Config, model
from .structures import Batch, Net, linen_step
from .wrapped import Stack, X, eqx_step, nnx_trainer, tower


def same(name, before, after, function="predict"):
    @case(f"control: {name}", function=function)
    def _():
        f = predictor()
        a, b = before(), after()
        return (lambda: f(a)), (lambda: f(b))


same("an equal array", lambda: jnp.ones(4), lambda: jnp.zeros(4))
same("another Python float", lambda: 1.0, lambda: 2.0)
same("NumPy float64 where float32 was, x64 off", lambda: np.ones(4, "float32"), lambda: np.ones(4))
same("NumPy int64 where int32 was, x64 off", lambda: np.ones(4, "int32"), lambda: np.ones(4, "int64"))
same("an equal mesh made anew", lambda: jax.device_put(jnp.ones(4), NamedSharding(AUTO, P("data"))), lambda: jax.device_put(jnp.ones(4), NamedSharding(Mesh(np.array(DEVICES), ("data",)), P("data"))))
same("an equal NamedSharding made anew", lambda: jax.device_put(jnp.ones(4), NamedSharding(AUTO, P("data"))), lambda: jax.device_put(jnp.ones(4), NamedSharding(AUTO, P("data"))))


def around(name, context):
    @case(f"control: {name}", function="predict")
    def _():
        f, x = predictor(), jnp.ones(4)

        def measured():
            with context():
                return f(x)

        return (lambda: f(x)), measured


around("debug_nans around the call", lambda: jax.debug_nans(True))
around("log_compiles around the call", lambda: jax.log_compiles(True))
around("a named_scope around the call", lambda: jax.named_scope("evaluation"))
around("transfer_guard around the call", lambda: jax.transfer_guard("allow"))
around("another default_prng_impl", lambda: jax.default_prng_impl("rbg"))


@case("control: the same mesh context entered again", function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def call():
        with Mesh(np.array(DEVICES), ("data",)):
            return f(x)

    return call, call


@case("control: set_mesh of an equal mesh again", function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def call():
        with jax.set_mesh(Mesh(np.array(DEVICES), ("data",))):
            return f(x)

    return call, call


@case("control: keywords in another order", function="attend")
def _():
    @jax.jit
    def attend(q, k):
        traced()
        return q * k

    x = jnp.ones(4)
    return (lambda: attend(q=x, k=x)), (lambda: attend(k=x, q=x))


@case("control: equal frozen dataclass as static argument", function="apply_cfg")
def _():
    f, x = model("cfg"), jnp.ones((2, 2))
    return (lambda: f(x, cfg=Config(3))), (lambda: f(x, cfg=Config(3)))


@case("control: equal tuple as static argument", function="apply_window")
def _():
    f, x = model("window"), jnp.ones((2, 2))
    return (lambda: f(x, window=tuple([1, 2]))), (lambda: f(x, window=tuple([1, 2])))


@case("control: jax.jit of the same function again", function="train_step")
def _():
    def train_step(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch = text_params(), text_batch(4)
    return (lambda: jax.jit(train_step)(params, batch)), (lambda: jax.jit(train_step)(params, batch))


@case("control: back to the full batch after the short one", function="train_step")
def _():
    step, params, full, short = stepper(), text_params(), text_batch(4), text_batch(3)

    def epoch():
        step(params, full)
        step(params, short)

    return epoch, (lambda: step(params, full))


@case("control: a carry that is stable from the start", function="train_step")
def _():
    optimizer = optax.adam(1e-3)

    @partial(jax.jit, donate_argnums=(0, 1))
    def train_step(params, opt_state, batch):
        traced()
        updates, opt_state = optimizer.update(jax.grad(text_loss)(params, batch), opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    batch, held = text_batch(4), {}
    held["params"] = text_params()
    held["opt"] = optimizer.init(held["params"])

    def step():
        held["params"], held["opt"] = train_step(held["params"], held["opt"], batch)

    return step, step


@case("control: an equal dataclass with metadata made anew", function="train_step")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return text_loss(params, {"ids": batch.ids, "mask": batch.mask})

    params, arrays = text_params(), text_batch(4)
    return (lambda: train_step(params, Batch(**arrays, split="train"))), (lambda: train_step(params, Batch(**arrays, split="train")))


@case("control: TrainState made anew from the same model and optimizer", function="train_step")
def _():
    step, net, x, optimizer = linen_step(), Net(), jnp.ones((2, 3)), optax.sgd(0.1)
    params = net.init(jax.random.key(0), x)

    def call():
        return step(TrainState.create(apply_fn=net.apply, params=params, tx=optimizer).replace(step=jnp.int32(0)), x)

    return call, call


@case("control: nnx, one more step of the same model", function="train_step")
def _():
    step, model, optimizer = nnx_trainer()
    y = jnp.ones((8, 2))
    return (lambda: step(model, optimizer, X, y)), (lambda: step(model, optimizer, X, y))


@case("control: nnx, an equal model built anew", function="forward")
def _():
    @nnx.jit
    def forward(model, x):
        traced()
        return model(x)

    return (lambda: forward(Stack(nnx.Rngs(0)), X)), (lambda: forward(Stack(nnx.Rngs(0)), X))


@case("control: equinox, an equal module built anew", function="make_step")
def _():
    step = eqx_step()
    return (lambda: step(tower(), X)), (lambda: step(tower(), X))


@case("control: equinox, filter_jit of the same function again", function="score_tower")
def _():
    def score_tower(m, x):
        traced()
        return jax.vmap(m)(x).mean()

    a = tower()
    return (lambda: eqx.filter_jit(score_tower)(a, X)), (lambda: eqx.filter_jit(score_tower)(a, X))


@case("control: jax.tree_util.Partial made anew over the same function", function="apply_loss")
def _():
    @jax.jit
    def apply_loss(loss, x):
        traced()
        return loss(x)

    def squared(scale, x):
        return (scale * x**2).sum()

    x, scale = jnp.ones(4), jnp.float32(2)
    return (lambda: apply_loss(jax.tree_util.Partial(squared, scale), x)), (lambda: apply_loss(jax.tree_util.Partial(squared, scale), x))


@case("control: a call from another thread", function="predict")
def _():
    f, x = predictor(), jnp.ones(4)

    def measured():
        thread = threading.Thread(target=f, args=(x,))
        thread.start()
        thread.join()

    return (lambda: f(x)), measured


@case("control: a closure value was changed, JAX does not look", function="predict_closed")
def _():
    held = {"scale": 2.0}

    @jax.jit
    def predict_closed(x):
        traced()
        return x * held["scale"]

    x = jnp.ones(4)

    def measured():
        held["scale"] = 3.0
        return predict_closed(x)

    return (lambda: predict_closed(x)), measured


@case("control: dict batch with its keys in another order", function="train_step")
def _():
    step, params, batch = stepper(), text_params(), text_batch(4)
    other = {name: batch[name] for name in reversed(list(batch))}
    return (lambda: step(params, batch)), (lambda: step(params, other))


@case("control: a pure_callback does not keep a function off the fast path", function="predict_host")
def _():
    @jax.jit
    def predict_host(x):
        traced()
        return jax.pure_callback(lambda v: np.asarray(v), x, x)

    x = jnp.ones(4)
    return (lambda: predict_host(x)), (lambda: predict_host(x))


@case("control: an image batch of the same shape", function="train_step")
def _():
    @jax.jit
    def train_step(batch):
        traced()
        return batch["image"].mean()

    a, b = image_batch(4), image_batch(4)
    return (lambda: train_step(a)), (lambda: train_step(b))


@dataclasses.dataclass(frozen=True)
class Window:
    size: int


@case("control: a static default passed as another equal object", function="smooth")
def _():
    @partial(jax.jit, static_argnames="window")
    def smooth(x, *, window):
        traced()
        return x * window.size

    x = jnp.ones(4)
    return (lambda: smooth(x, window=Window(3))), (lambda: smooth(x, window=Window(3)))
