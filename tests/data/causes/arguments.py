"""What the arrays are: shape, rank, dtype, weak type, PRNG keys; alone, two at once, and beside which earlier call."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .spec import Cause, case, traced

VOCAB, WIDTH = 40, 8


def text_batch(rows, length=16):
    return {"ids": jnp.ones((rows, length), jnp.int32), "mask": jnp.ones((rows, length), jnp.float32)}


def image_batch(rows, **other):
    return {"image": jnp.ones((rows, 8, 8, 1)), "label": jnp.zeros(rows, jnp.int32)} | other


def text_params(layers=1):
    return {"embed": jnp.ones((VOCAB, WIDTH))} | {
        f"block{i}": {"kernel": jnp.ones((WIDTH, WIDTH)), "bias": jnp.zeros(WIDTH)} for i in range(layers)
    }


def text_loss(params, batch):
    x = params["embed"][batch["ids"]]
    for name in sorted(n for n in params if n.startswith("block")):
        x = jnp.tanh(x @ params[name]["kernel"] + params[name]["bias"])
    return (x.mean(-1) * batch["mask"]).sum()


def image_predict(params, image):
    return image.reshape(image.shape[0], -1) @ params["w"]


def image_params():
    return {"w": jnp.ones((64, 10))}


def image_loss(params, batch):
    logits = image_predict(params, batch["image"] / 255)
    return optax.softmax_cross_entropy(logits, jax.nn.one_hot(batch["label"], 10)).mean()


def text_trainer():
    """(state, step): an optax chain over a small text model, as in a thousand training scripts."""
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    @jax.jit
    def train_step(params, opt_state, batch):
        traced()
        loss, grads = jax.value_and_grad(text_loss)(params, batch)
        updates, opt_state = optimizer.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    params = text_params()
    return (params, optimizer.init(params)), train_step


BATCH = ("batch", "batch['ids']", "batch['mask']")


@case("last partial batch of a dict, optax chain", Cause("shape", "trace", BATCH), says=r"i32\[29,16\].*i32\[32,16\]|i32\[32,16\].*i32\[29,16\]")
def _():
    state, step = text_trainer()
    full, last = text_batch(32), text_batch(29)
    return (lambda: step(*state, full)), (lambda: step(*state, last))


@case("one array of the batch has one token more", Cause("shape", "trace", "batch['ids']"), says=r"i32\[4,17\]")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return params["embed"][batch["ids"]].mean() * batch["weight"].sum()

    params = text_params()
    weight = jnp.ones(4)
    a, b = ({"ids": jnp.ones((4, n), jnp.int32), "weight": weight} for n in (16, 17))
    return (lambda: train_step(params, a)), (lambda: train_step(params, b))


@case("a KV cache that grows in every layer", Cause("shape", "trace", "cache"), function="decode", says=r"f32\[2,9,8\]")
def _():
    @jax.jit
    def decode(cache, token):
        traced()
        return sum((layer["k"] * layer["v"]).sum() for layer in cache) + token

    def cache(length):
        return [{"k": jnp.ones((2, length, WIDTH)), "v": jnp.ones((2, length, WIDTH))} for _ in range(6)]

    token = jnp.ones(2)
    short, long = cache(8), cache(9)
    return (lambda: decode(short, token)), (lambda: decode(long, token))


@case("an image without its channel axis", Cause("rank", "trace", "images"), function="predict", says=r"f32\[4,28,28\]")
def _():
    @jax.jit
    def predict(params, images):
        traced()
        return images.mean() * params["w"]

    params = image_params()
    a, b = jnp.ones((4, 28, 28, 1)), jnp.ones((4, 28, 28))
    return (lambda: predict(params, a)), (lambda: predict(params, b))


@case("images as uint8 from one loader, float32 from another", Cause("dtype", "trace", "batch['image']"), says=r"u(int)?8\[")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return jax.grad(image_loss)(params, batch)

    params = image_params()
    a = image_batch(4)
    b = a | {"image": jnp.ones((4, 8, 8, 1), jnp.uint8)}
    return (lambda: train_step(params, a)), (lambda: train_step(params, b))


@case("the whole params tree switched to bfloat16", Cause("dtype", "trace", "params"), function="eval_step", says=r"bf16|bfloat16")
def _():
    @jax.jit
    def eval_step(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch = text_params(layers=20), text_batch(4)
    low = jax.tree.map(lambda p: p.astype(jnp.bfloat16), params)
    return (lambda: eval_step(params, batch)), (lambda: eval_step(low, batch))


@case("one block of the params switched to bfloat16", Cause("dtype", "trace", ("params['block2']", "params['block2']['kernel']", "params['block2']['bias']")), function="eval_step", says=r"bf16|bfloat16")
def _():
    @jax.jit
    def eval_step(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch = text_params(layers=4), text_batch(4)
    low = params | {"block2": jax.tree.map(lambda p: p.astype(jnp.bfloat16), params["block2"])}
    return (lambda: eval_step(params, batch)), (lambda: eval_step(low, batch))


@case("a float64 array made under x64", Cause("dtype", "trace", "targets"), function="fit", says=r"f64|float64")
def _():
    @jax.jit
    def fit(inputs, targets):
        traced()
        return jax.lax.convert_element_type(targets, jnp.float32) + inputs

    inputs, targets = jnp.ones(4), jnp.ones(4)
    with jax.enable_x64(True):
        wide = jnp.ones(4, jnp.float64)
    return (lambda: fit(inputs, targets)), (lambda: fit(inputs, wide))


@case("a fraction of an epoch where its number was", Cause("dtype", "trace", "epoch"), function="schedule", says=r"(int|i32|float|f32).*(float|f32|int|i32)")
def _():
    @jax.jit
    def schedule(epoch):
        traced()
        return 0.5 * (1 + jnp.cos(epoch / 10))

    return (lambda: schedule(3)), (lambda: schedule(3.5))


class TrainState(NamedTuple):
    step: object
    params: object
    opt_state: object


@case("train state whose step starts as a Python int", Cause("weak_type", "trace", "state.step"), says=r"weak")
def _():
    optimizer = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def train_step(state, batch):
        traced()
        grads = jax.grad(image_loss)(state.params, batch)
        updates, opt_state = optimizer.update(grads, state.opt_state)
        return TrainState(jnp.int32(1) + state.step, optax.apply_updates(state.params, updates), opt_state)

    params, batch = image_params(), image_batch(4)
    start = TrainState(0, params, optimizer.init(params))
    held = {}

    def first():
        held["state"] = train_step(start, batch)

    return first, (lambda: train_step(held["state"], batch))


@case("a dynamic loss scale that starts as 1.0", Cause("weak_type", "trace", "state['scale']"), says=r"weak")
def _():
    @jax.jit
    def train_step(state, batch):
        traced()
        grads = jax.grad(image_loss)(state["params"], batch)
        finite = jnp.isfinite(grads["w"]).all()
        return {"params": grads, "scale": jnp.where(finite, state["scale"] * jnp.float32(2), jnp.float32(1))}

    batch, held = image_batch(4), {}

    def first():
        held["state"] = train_step({"params": image_params(), "scale": 1.0}, batch)

    return first, (lambda: train_step(held["state"], batch))


@case("learning rate: Python float, then a NumPy scalar from a schedule", Cause("weak_type", "trace", "lr"), says=r"weak")
def _():
    @jax.jit
    def train_step(params, batch, lr):
        traced()
        return jax.tree.map(lambda p, g: p - lr * g, params, jax.grad(image_loss)(params, batch))

    params, batch = image_params(), image_batch(4)
    rate = np.float64(1e-3) * np.cos(0.1)
    return (lambda: train_step(params, batch, 1e-3)), (lambda: train_step(params, batch, rate))


@case("temperature: jnp.float32(0.7), then jnp.asarray(0.7)", Cause("weak_type", "trace", "temperature"), function="sample", says=r"weak")
def _():
    @jax.jit
    def sample(logits, temperature):
        traced()
        return jax.nn.softmax(logits / temperature)

    logits, strong, weak = jnp.ones(5), jnp.float32(0.7), jnp.asarray(0.7)
    return (lambda: sample(logits, strong)), (lambda: sample(logits, weak))


@case("a typed key where a raw one was", Cause("prng", "trace", "key"), function="sample")
def _():
    @jax.jit
    def sample(key, logits):
        traced()
        return jax.random.categorical(key, logits)

    logits, raw, typed = jnp.ones(5), jax.random.PRNGKey(0), jax.random.key(0)
    return (lambda: sample(raw, logits)), (lambda: sample(typed, logits))


@case("a key of another implementation inside a dict of rngs", Cause("prng", "trace", "rngs['dropout']"), function="sample")
def _():
    @jax.jit
    def sample(rngs, x):
        traced()
        return x * jax.random.bernoulli(rngs["dropout"], 0.5, x.shape)

    x = jnp.ones(5)
    a = {"params": jax.random.key(0), "dropout": jax.random.key(1)}
    b = a | {"dropout": jax.random.key(1, impl="rbg")}
    return (lambda: sample(a, x)), (lambda: sample(b, x))


@case("the last batch is smaller, and evaluation begins", Cause("shape", "trace", BATCH), Cause("static_value", "trace", "train"), function="run_epoch", says=(r"\[29,16\]", r"train|static"))
def _():
    from functools import partial

    @partial(jax.jit, static_argnames="train")
    def run_epoch(params, batch, train):
        traced()
        return jax.grad(text_loss)(params, batch) if train else text_loss(params, batch)

    params, full, last = text_params(), text_batch(32), text_batch(29)
    return (lambda: run_epoch(params, full, train=True)), (lambda: run_epoch(params, last, train=False))


@case("another shape, and committed besides", Cause("shape", "trace", "x"), Cause("committed", ("lower", "trace"), "x"), function="predict", says=(r"f32\[9\]",))
def _():
    @jax.jit
    def predict(x):
        traced()
        return x * 2

    a, b = jnp.ones(8), jax.device_put(jnp.ones(9), jax.devices()[0])
    return (lambda: predict(a)), (lambda: predict(b))


@case("another dtype, on another device", Cause("dtype", "trace", "x"), Cause("device", ("compile", "trace"), "x"), function="predict", says=(r"bf16|bfloat16",))
def _():
    @jax.jit
    def predict(x):
        traced()
        return x * 2

    a = jax.device_put(jnp.ones(8), jax.devices()[0])
    b = jax.device_put(jnp.ones(8, jnp.bfloat16), jax.devices()[1])
    return (lambda: predict(a)), (lambda: predict(b))


@case("nearest is the training call, not the later evaluation", Cause("shape", "trace", "x", before="[32,16]"), function="apply_model", says=r"f32\[32,17\].*f32\[32,16\]|f32\[32,16\].*f32\[32,17\]", warm=1)
def _():
    from functools import partial

    @partial(jax.jit, static_argnames=("train", "mode"))
    def apply_model(x, y, train, mode):
        traced()
        return (x.sum() + y.sum()) * (2 if train else 1)

    x, y, z = jnp.ones((32, 16)), jnp.ones(32, jnp.int32), jnp.ones((32, 17))
    small = jnp.ones((8, 16), jnp.bfloat16), jnp.ones(8, jnp.int32)

    def warm():
        apply_model(x, y, train=True, mode="fit")
        apply_model(*small, train=False, mode="score")

    return warm, (lambda: apply_model(z, y, train=True, mode="fit"))


@case("nearest is the first bucket, not the latest", Cause("shape", "trace", ("tokens", "batch"), before="[4,64]"), function="encode", says=r"i32\[4,65\].*i32\[4,64\]|i32\[4,64\].*i32\[4,65\]", warm=1)
def _():
    @jax.jit
    def encode(params, tokens, positions):
        traced()
        return params["embed"][tokens].mean() + positions.sum()

    params, positions = text_params(), jnp.ones(64)
    first, odd = jnp.ones((4, 64), jnp.int32), jnp.ones((4, 65), jnp.int32)

    def warm():
        encode(params, first, positions)
        encode(params, jnp.ones((2, 128), jnp.int16), jnp.ones(128))

    return warm, (lambda: encode(params, odd, positions))


@case("shape, after an earlier call under another precision", Cause("shape", "trace", "x"), function="project", says=r"f32\[8\].*f32\[4\]|f32\[4\].*f32\[8\]", warm=1)
def _():
    @jax.jit
    def project(x, w):
        traced()
        return x * w

    x3, x4, x8, w = jnp.ones(3), jnp.ones(4), jnp.ones(8), jnp.float32(1)

    def warm():
        with jax.default_matmul_precision("float32"):
            project(x3, w)
        project(x4, w)

    return warm, (lambda: project(x8, w))


@case("static flag, after an earlier call under a mesh", Cause("static_value", "trace", "train"), function="project", says=r"static|train", warm=1)
def _():
    from functools import partial

    @partial(jax.jit, static_argnames="train")
    def project(x, train):
        traced()
        return x * (2 if train else 3)

    x, mesh = jnp.ones(4), jax.make_mesh((4,), ("data",))

    def warm():
        with jax.set_mesh(mesh):
            project(x, train=True)
        project(x, train=True)

    return warm, (lambda: project(x, train=False))
