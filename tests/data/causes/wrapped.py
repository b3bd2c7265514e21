"""Through the wrappers people use: nnx.jit, eqx.filter_jit, haiku, trainer classes, decorators."""

import functools
from typing import Any, Callable

import equinox as eqx
import haiku as hk
import jax
import jax.numpy as jnp
import optax
from flax import nnx

from .spec import Cause, case, traced

# --- flax.nnx


class Block(nnx.Module):
    def __init__(self, width, rate, rngs):
        self.linear = nnx.Linear(width, width, kernel_init=nnx.initializers.ones, rngs=rngs)
        self.dropout = nnx.Dropout(rate, rngs=rngs)
        self.act = jnp.tanh

    def __call__(self, x):
        return self.dropout(self.act(self.linear(x)))


class Stack(nnx.Module):
    def __init__(self, rngs):
        self.layers = nnx.List([Block(4, 0.1, rngs) for _ in range(2)])
        self.head = nnx.Linear(4, 2, kernel_init=nnx.initializers.ones, rngs=rngs)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def nnx_loss(model, x, y):
    traced()
    return ((model(x) - y) ** 2).mean()


def nnx_trainer():
    @nnx.jit
    def train_step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(nnx_loss)(model, x, y)
        optimizer.update(model, grads)
        return loss

    model = Stack(nnx.Rngs(0))
    return train_step, model, nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param)


X, Y = jnp.ones((8, 4)), jnp.ones((8, 2))


@case("nnx: a layer's dropout is switched off", Cause("tree_static", "trace", "model.layers[1].dropout.deterministic"), says=r"deterministic")
def _():
    step, model, optimizer = nnx_trainer()

    def measured():
        return step(model, optimizer, X, Y)

    def switch():
        step(model, optimizer, X, Y)
        model.layers[1].dropout.deterministic = False

    def evaluate():
        model.layers[1].dropout.deterministic = True
        return measured()

    return switch, evaluate


@case("nnx: model.eval()", Cause("tree_static", "trace", ("model.layers[0].dropout.deterministic", "model.layers[1].dropout.deterministic", "model.layers", "model")), function="eval_step", says=r"deterministic")
def _():
    @nnx.jit
    def eval_step(model, x):
        traced()
        return model(x)

    model = Stack(nnx.Rngs(0))
    model.train()

    def evaluate():
        model.eval()
        return eval_step(model, X)

    return (lambda: eval_step(model, X)), evaluate


@case("nnx: the rate of one layer is scheduled", Cause("tree_static", "trace", "model.layers[0].dropout.rate"), function="eval_step", says=r"rate.*0\.2")
def _():
    @nnx.jit
    def eval_step(model, x):
        traced()
        return model(x)

    model = Stack(nnx.Rngs(0))

    def later():
        model.layers[0].dropout.rate = 0.2
        return eval_step(model, X)

    return (lambda: eval_step(model, X)), later


@case("nnx: last partial batch", Cause("shape", "trace", ("x", "y")), says=r"f32\[5,4\]|float32\[5,4\]")
def _():
    step, model, optimizer = nnx_trainer()
    return (lambda: step(model, optimizer, X, Y)), (lambda: step(model, optimizer, X[:5], Y[:5]))


@case("nnx: an activation made anew when the model is rebuilt", Cause("static_identity", "trace", "model.act"), function="forward")
def _():
    @nnx.jit
    def forward(model, x):
        traced()
        return model(x)

    def build():
        model = Block(4, 0.1, nnx.Rngs(0))
        model.act = lambda x: x * 2
        return model

    return (lambda: forward(build(), X)), (lambda: forward(build(), X))


@case("nnx: parameters cast to bfloat16", Cause("dtype", "trace", ("model", "model.layers")), function="eval_step", says=r"bf16|bfloat16")
def _():
    @nnx.jit
    def eval_step(model, x):
        traced()
        return model(x)

    model = Stack(nnx.Rngs(0))
    model.eval()

    def low():
        state = nnx.state(model, nnx.Param)
        nnx.update(model, jax.tree.map(lambda p: p.astype(jnp.bfloat16), state))
        return eval_step(model, X)

    return (lambda: eval_step(model, X)), low


@case("nnx: an optimizer made anew in every epoch", Cause("static_identity", "trace", ("optimizer.tx", "optimizer.tx.init", "optimizer.tx.update")))
def _():
    step, model, _ = nnx_trainer()

    def epoch():
        return step(model, nnx.Optimizer(model, optax.sgd(1e-2), wrt=nnx.Param), X, Y)

    return epoch, epoch


@case("nnx.jit of a function defined in the loop", Cause("new_function", "trace", None), function="forward", says=r"re-?defin|new function|made anew")
def _():
    model = Stack(nnx.Rngs(0))

    def epoch():
        @nnx.jit
        def forward(model, x):
            traced()
            return model(x)

        return forward(model, X)

    return epoch, epoch


@case("nnx.jit with a static argument", Cause("static_value", "trace", "reduction"), function="score", says=r"sum")
def _():
    @functools.partial(nnx.jit, static_argnames="reduction")
    def score(model, x, reduction):
        traced()
        return getattr(model(x), reduction)()

    model = Stack(nnx.Rngs(0))
    return (lambda: score(model, X, reduction="mean")), (lambda: score(model, X, reduction="sum"))


# --- equinox


class Layer(eqx.Module):
    weight: jax.Array
    scale: float = eqx.field(static=True)
    act: Callable
    dropout: eqx.nn.Dropout

    def __call__(self, x, key=None):
        return self.dropout(self.act(self.weight @ x) * self.scale, key=key)


class Tower(eqx.Module):
    layers: list
    bias: Any = None

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x if self.bias is None else x + self.bias


def tower(scale=1.0, act=jnp.tanh, inference=True, bias=None):
    return Tower([Layer(jnp.ones((4, 4)), s, act, eqx.nn.Dropout(0.1, inference=inference)) for s in (1.0, scale)], bias)


def eqx_step():
    @eqx.filter_jit
    def make_step(model, x, key=None, l2=False):
        traced()
        penalty = sum((layer.weight**2).sum() for layer in model.layers) if l2 else 0.0
        return eqx.filter_grad(lambda m: jax.vmap(m)(x).mean() + penalty)(model)

    return make_step


@case("equinox: a flag that filter_jit takes as static", Cause("static_value", "trace", "l2"), function="make_step", says=r"l2|\bTrue\b.*\bFalse\b|\bFalse\b.*\bTrue\b")
def _():
    step, model = eqx_step(), tower()
    return (lambda: step(model, X, l2=False)), (lambda: step(model, X, l2=True))


@case("equinox: static field of one layer", Cause("tree_static", "trace", "model.layers[1].scale"), function="make_step", says=r"scale")
def _():
    step, a, b = eqx_step(), tower(), tower(scale=2.0)
    return (lambda: step(a, X)), (lambda: step(b, X))


@case("equinox: inference switched on one dropout", Cause(("tree_static", "static_value"), "trace", ("model.layers[1].dropout.inference", "model.layers[0].dropout.inference", "model.layers", "model")), function="forward", says=r"inference")
def _():
    @eqx.filter_jit
    def forward(model, x, key):
        traced()
        return jax.vmap(lambda v: model.layers[1](v, key=key))(x)

    a, key = tower(inference=False), jax.random.key(0)
    b = eqx.tree_at(lambda m: m.layers[1].dropout.inference, a, True)
    return (lambda: forward(a, X, key)), (lambda: forward(b, X, key))


@case("equinox: a lambda as activation, the model built anew", Cause("static_identity", "trace", ("model.layers[0].act", "model.layers[1].act", "model.layers", "model")), function="make_step")
def _():
    step = eqx_step()

    def fresh():
        return step(tower(act=lambda x: x * 2), X)

    return fresh, fresh


@case("equinox: a field that is jitted anew", Cause("static_identity", "trace", "model.forward"), function="make_step")
def _():
    class Wrapper(eqx.Module):
        weight: jax.Array
        forward: Callable

    @eqx.filter_jit
    def make_step(model, x):
        traced()
        return model.forward(model.weight * x)

    def build():
        return Wrapper(jnp.ones(3), jax.jit(lambda v: v * 2))

    x = jnp.ones(3)
    return (lambda: make_step(build(), x)), (lambda: make_step(build(), x))


@case("equinox: a bias appears where None was", Cause("tree", "trace", "model.bias"), function="make_step", says=r"bias|None")
def _():
    step, a, b = eqx_step(), tower(), tower(bias=jnp.ones(4))
    return (lambda: step(a, X)), (lambda: step(b, X))


@case("equinox: last partial batch", Cause("shape", "trace", "x"), function="make_step", says=r"f32\[5,4\]|float32\[5,4\]")
def _():
    step, model, short = eqx_step(), tower(), X[:5]
    return (lambda: step(model, X)), (lambda: step(model, short))


@case("equinox: a weight in bfloat16", Cause("dtype", "trace", "model.layers[1].weight"), function="make_step", says=r"bf16|bfloat16")
def _():
    step, a = eqx_step(), tower()
    b = eqx.tree_at(lambda m: m.layers[1].weight, a, jnp.ones((4, 4), jnp.bfloat16))
    return (lambda: step(a, X)), (lambda: step(b, X))


@case("equinox: filter_jit of a lambda in the loop", Cause("new_function", "trace", None), function="<lambda>", says=r"re-?defin|new function|made anew|lambda")
def _():
    model = tower()

    def score():
        return eqx.filter_jit(lambda m, x: (traced(), jax.vmap(m)(x).mean())[1])(model, X)

    return score, score


@case("equinox: a filter_jit method of a module", Cause("tree_static", "trace", "self.power"), function="evaluate", says=r"power")
def _():
    class Poly(eqx.Module):
        weight: jax.Array
        power: int = eqx.field(static=True)

        @eqx.filter_jit
        def evaluate(self, x):
            traced()
            return self.weight * x**self.power

    a, b, x = Poly(jnp.ones(3), 2), Poly(jnp.ones(3), 3), jnp.ones(3)
    return (lambda: a.evaluate(x)), (lambda: b.evaluate(x))


@case("equinox: a Python float where an array was", Cause(("tree", "static_value", "tree_static"), "trace", "lr"), function="update_params", says=r"lr|float")
def _():
    @eqx.filter_jit
    def update_params(params, lr):
        traced()
        return params * lr

    params, rate = jnp.ones(3), jnp.float32(0.1)
    return (lambda: update_params(params, rate)), (lambda: update_params(params, 0.1))


@case("equinox: a learning rate as a Python float that decays", Cause("static_value", "trace", "lr"), function="update_params", says=r"0\.05")
def _():
    @eqx.filter_jit
    def update_params(params, lr):
        traced()
        return params * lr

    params = jnp.ones(3)
    return (lambda: update_params(params, 0.1)), (lambda: update_params(params, 0.05))


@case("pmap: a longer sequence on every device", Cause("shape", "trace", "tokens"), function="pmap_step", says=r"\[\d,17\]|\[17\]")
def _():
    def pmap_step(params, tokens):
        traced()
        return params * tokens.sum()

    step, n = jax.pmap(pmap_step, in_axes=(None, 0)), jax.local_device_count()
    params, a, b = jnp.float32(1), jnp.ones((n, 16)), jnp.ones((n, 17))
    return (lambda: step(params, a)), (lambda: step(params, b))


# --- haiku


def haiku_net():
    def forward(x, is_training):
        traced()
        x = hk.Linear(2)(x)
        return hk.dropout(hk.next_rng_key(), 0.1, x) if is_training else x

    net = hk.transform(forward)
    return net, net.init(jax.random.PRNGKey(0), X, False)


@case("haiku: is_training of a jitted apply", Cause("static_value", "trace", ("is_training", "kwargs['is_training']")), function="forward", says=r"is_training")
def _():
    net, params = haiku_net()
    apply, rng = jax.jit(net.apply, static_argnames="is_training"), jax.random.PRNGKey(1)
    return (lambda: apply(params, rng, X, is_training=True)), (lambda: apply(params, rng, X, is_training=False))


@case("haiku: a smaller evaluation batch", Cause("shape", "trace", "batch['x']"), function="update", says=r"f32\[5,4\]|float32\[5,4\]")
def _():
    net, params = haiku_net()

    @jax.jit
    def update(params, rng, batch):
        return jax.grad(lambda p: net.apply(p, rng, batch["x"], True).mean())(params)

    rng, short = jax.random.PRNGKey(1), {"x": X[:5]}
    return (lambda: update(params, rng, {"x": X})), (lambda: update(params, rng, short))


@case("haiku: params of another width", Cause("shape", "trace", ("params['mlp/~/linear_0']['w']", "params['mlp/~/linear_0']['b']", "params")), function="update", says=r"\[4,6\]")
def _():
    @jax.jit
    def update(params, x):
        traced()
        return jax.nn.relu(x @ params["mlp/~/linear_0"]["w"] + params["mlp/~/linear_0"]["b"]).sum()

    def params(width):
        return {"mlp/~/linear_0": {"w": jnp.ones((4, width)), "b": jnp.ones(width)}}

    a, b = params(8), params(6)
    return (lambda: update(a, X)), (lambda: update(b, X))


@case("haiku: transformed and jitted in every epoch", Cause("new_function", "trace", None), function="forward", says=r"re-?defin|new function|made anew")
def _():
    rng = jax.random.PRNGKey(1)

    def epoch():
        net, params = haiku_net()
        return jax.jit(net.apply, static_argnums=3)(params, rng, X, False)

    return epoch, epoch


# --- a trainer class, as in keras


class Trainer:
    """compile() makes the step, fit() runs it; nothing of it is registered with JAX."""

    def __init__(self, width=4):
        self.params = {"dense": {"kernel": jnp.ones((4, width)), "bias": jnp.zeros(width)}}
        self.compile()

    def compile(self):
        self.train_function = jax.jit(self.train_step)

    def train_step(self, params, batch):
        traced()
        x, y = batch
        loss = lambda p: ((x @ p["dense"]["kernel"] + p["dense"]["bias"] - y) ** 2).mean()  # noqa: E731
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    def fit(self, batches):
        for batch in batches:
            self.params = self.train_function(self.params, batch)


@case("trainer: the last batch of fit()", Cause("shape", "trace", ("batch", "batch[0]", "batch[1]")), says=r"f32\[5,4\]|float32\[5,4\]")
def _():
    trainer, y = Trainer(), jnp.ones((8, 4))
    full, last = (X, y), (X[:5], y[:5])
    return (lambda: trainer.fit([full, full])), (lambda: trainer.fit([last]))


@case("trainer: compile() again before every fit()", Cause("new_function", "trace", None), says=r"re-?defin|new function|made anew|method")
def _():
    trainer, y = Trainer(), jnp.ones((8, 4))

    def epoch():
        trainer.compile()
        trainer.fit([(X, y)])

    return epoch, epoch


class StaticTrainer(Trainer):
    def compile(self):
        pass

    @functools.partial(jax.jit, static_argnums=0)
    def train_step(self, params, batch):
        traced()
        x, y = batch
        return jax.tree.map(lambda p: p * (x.mean() + y.mean()), params)

    def fit(self, batches):
        for batch in batches:
            self.params = self.train_step(self.params, batch)


@case("trainer: static self, a new trainer for every fold", Cause("static_identity", "trace", "self"))
def _():
    y, kept = jnp.ones((8, 4)), []

    def fold():
        kept.append(StaticTrainer())
        kept[-1].fit([(X, y)])

    return fold, fold


def timed(f):
    """A decorator as every project has one."""

    @functools.wraps(f)
    def inner(*args, **kwargs):
        return f(*args, **kwargs)

    return inner


@case("a decorated step: weak-typed metric in the state", Cause("weak_type", "trace", "state['loss']"), says=r"weak")
def _():
    @timed
    @jax.jit
    def train_step(state, x):
        traced()
        return {"w": state["w"] * 0.9, "loss": (state["w"] * x).mean() + jnp.float32(state["loss"])}

    held = {"state": None}
    x = jnp.ones(4)

    def first():
        held["state"] = train_step({"w": jnp.ones(4), "loss": 0.0}, x)

    return first, (lambda: train_step(held["state"], x))


@case("a method jitted at class level through a decorator", Cause("static_value", "trace", "steps"), function="rollout", says=r"\b5\b")
def _():
    class Agent:
        def __init__(self):
            self.gain = 0.5

        @timed
        @functools.partial(jax.jit, static_argnums=(0,), static_argnames=("steps",))
        def rollout(self, obs, steps):
            traced()
            return obs * self.gain * steps

    agent, obs = Agent(), jnp.ones(3)
    return (lambda: agent.rollout(obs, steps=4)), (lambda: agent.rollout(obs, steps=5))


@case("a staticmethod of a trainer: dtype of the labels", Cause("dtype", "trace", "batch['label']"), function="loss_fn", says=r"i32|int32")
def _():
    class Task:
        @staticmethod
        @jax.jit
        def loss_fn(params, batch):
            traced()
            return (params * batch["image"]).sum() - batch["label"].sum()

    image = jnp.ones(4)
    a, b = {"image": image, "label": jnp.ones(4)}, {"image": image, "label": jnp.ones(4, jnp.int32)}
    return (lambda: Task.loss_fn(image, a)), (lambda: Task.loss_fn(image, b))
