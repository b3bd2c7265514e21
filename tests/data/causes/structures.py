"""How the arguments are put together: containers, keys, None, and the static data that registered nodes carry."""

import collections
import dataclasses
from typing import Any, Callable, NamedTuple

import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from .arguments import text_batch, text_loss, text_params
from .spec import Cause, case, traced


@case("the loader adds a mask to the batch", Cause("tree", "trace", ("batch['mask']", "batch")), says=r"mask")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return params["embed"][batch["ids"]].mean() + jnp.sum(batch.get("mask", 0))

    params, full = text_params(), text_batch(4)
    bare = {"ids": full["ids"]}
    return (lambda: train_step(params, bare)), (lambda: train_step(params, full))


@case("the test batch has no labels", Cause("tree", "trace", ("batch['labels']", "batch")), function="eval_step", says=r"labels")
def _():
    @jax.jit
    def eval_step(batch):
        traced()
        return sum(v.sum() for v in batch.values())

    a = {"inputs": jnp.ones(4), "labels": jnp.ones(4)}
    b = {"inputs": jnp.ones(4)}
    return (lambda: eval_step(a)), (lambda: eval_step(b))


@case("a bias is removed from a head deep in the params", Cause("tree", "trace", ("params['head']['bias']", "params['head']")), function="apply_model", says=r"bias|head")
def _():
    @jax.jit
    def apply_model(params, x):
        traced()
        y = x @ params["head"]["kernel"]
        return y + params["head"].get("bias", 0)

    x = jnp.ones((2, 3))
    a = {"body": {"kernel": jnp.ones(3)}, "head": {"kernel": jnp.ones((3, 2)), "bias": jnp.ones(2)}}
    b = a | {"head": {"kernel": jnp.ones((3, 2))}}
    return (lambda: apply_model(a, x)), (lambda: apply_model(b, x))


@case("recurrent state: None first, then an array", Cause("tree", "trace", "carry"), function="rnn_step", says=r"None|tree|structure")
def _():
    @jax.jit
    def rnn_step(params, carry, x):
        traced()
        return jnp.tanh(x * params if carry is None else x * params + carry)

    params, x = jnp.ones(4), jnp.ones(4)
    held = {}

    def first():
        held["carry"] = rnn_step(params, None, x)

    return first, (lambda: rnn_step(params, held["carry"], x))


@case("an optional mask given as None by keyword", Cause("tree", "trace", "mask"), function="attend", says=r"None|mask")
def _():
    @jax.jit
    def attend(q, k, mask):
        traced()
        scores = q @ k.T
        return scores if mask is None else scores * mask

    q = k = jnp.ones((4, 4))
    mask = jnp.ones((4, 4))
    return (lambda: attend(q, k, mask=mask)), (lambda: attend(q, k, mask=None))


@case("a history list that grows", Cause("tree", "trace", ("history", "history[3]")), function="extrapolate", says=r"list|length|tree")
def _():
    @jax.jit
    def extrapolate(history):
        traced()
        return sum(history) / len(history)

    x = jnp.ones(4)
    a, b = [x, x, x], [x, x, x, x]
    return (lambda: extrapolate(a)), (lambda: extrapolate(b))


@case("hidden state: a tuple at first, a list after the checkpoint", Cause("tree", "trace", "hidden"), function="lstm_step", says=r"tuple|list")
def _():
    @jax.jit
    def lstm_step(params, hidden):
        traced()
        return (hidden[0] * params, hidden[1] + params)

    params, h = jnp.ones(4), jnp.ones(4)
    a, b = (h, h), [h, h]
    return (lambda: lstm_step(params, a)), (lambda: lstm_step(params, b))


@case("OrderedDict filled in another order", Cause("tree", "trace", "batch"), says=r"order|tree|key")
def _():
    @jax.jit
    def train_step(batch):
        traced()
        return batch["a"] * batch["b"]

    x = jnp.ones(4)
    a, b = collections.OrderedDict(a=x, b=x), collections.OrderedDict(b=x, a=x)
    return (lambda: train_step(a)), (lambda: train_step(b))


class Carry(NamedTuple):
    h: Any
    c: Any


@case("a NamedTuple where a plain tuple was", Cause("tree", "trace", "carry"), function="lstm_step", says=r"Carry|namedtuple|tuple")
def _():
    @jax.jit
    def lstm_step(carry):
        traced()
        return carry[0] * carry[1]

    x = jnp.ones(4)
    a, b = (x, x), Carry(x, x)
    return (lambda: lstm_step(a)), (lambda: lstm_step(b))


@dataclasses.dataclass
class Batch:
    ids: Any
    mask: Any
    split: str


jax.tree_util.register_dataclass(Batch, data_fields=["ids", "mask"], meta_fields=["split"])


@case("metadata field of a registered dataclass", Cause("tree_static", "trace", "batch.split"), says=r"split|valid.*train|train.*valid")
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return text_loss(params, {"ids": batch.ids, "mask": batch.mask})

    params, arrays = text_params(), text_batch(4)
    a, b = Batch(**arrays, split="train"), Batch(**arrays, split="valid")
    return (lambda: train_step(params, a)), (lambda: train_step(params, b))


@case("metadata of a dataclass inside a dict of the state", Cause("tree_static", "trace", "state['data'].split"), says=r"split|valid.*train|train.*valid")
def _():
    @jax.jit
    def train_step(state):
        traced()
        return text_loss(state["params"], {"ids": state["data"].ids, "mask": state["data"].mask})

    params, arrays = text_params(), text_batch(4)
    a = {"params": params, "data": Batch(**arrays, split="train")}
    b = {"params": params, "data": Batch(**arrays, split="valid")}
    return (lambda: train_step(a)), (lambda: train_step(b))


@flax.struct.dataclass
class Policy:
    params: Any
    horizon: int = flax.struct.field(pytree_node=False)
    act: Callable = flax.struct.field(pytree_node=False, default=jnp.tanh)


@case("pytree_node=False field of a flax dataclass", Cause("tree_static", "trace", "policy.horizon"), function="rollout", says=r"horizon|\b10\b.*\b11\b|\b11\b.*\b10\b")
def _():
    @jax.jit
    def rollout(policy, obs):
        traced()
        return policy.params * obs * policy.horizon

    obs = jnp.ones(4)
    a = Policy(jnp.ones(4), horizon=10)
    b = a.replace(horizon=11)
    return (lambda: rollout(a, obs)), (lambda: rollout(b, obs))


@case("a lambda in a static field, made anew", Cause("static_identity", "trace", "policy.act"), function="rollout")
def _():
    @jax.jit
    def rollout(policy, obs):
        traced()
        return policy.act(policy.params * obs)

    obs, params = jnp.ones(4), jnp.ones(4)

    def policy():
        return Policy(params, horizon=10, act=lambda x: x * 2)

    return (lambda: rollout(policy(), obs)), (lambda: rollout(policy(), obs))


class Net(nn.Module):
    width: int = 4

    @nn.compact
    def __call__(self, x):
        return nn.Dense(self.width)(x)


def linen_state(net, optimizer, params):
    return TrainState.create(apply_fn=net.apply, params=params, tx=optimizer)


def linen_step():
    @jax.jit
    def train_step(state, x):
        traced()
        grads = jax.grad(lambda p: state.apply_fn(p, x).mean())(state.params)
        return state.apply_gradients(grads=grads)

    return train_step


@case("TrainState with an optimizer made anew", Cause("static_identity", "trace", ("state.tx", "state.tx.init", "state.tx.update")))
def _():
    step, net, x = linen_step(), Net(), jnp.ones((2, 3))
    params = net.init(jax.random.key(0), x)
    return (lambda: step(linen_state(net, optax.sgd(0.1), params), x)), (lambda: step(linen_state(net, optax.sgd(0.1), params), x))


@case("TrainState of another model object: apply_fn is its bound method", Cause("static_identity", "trace", "state.apply_fn"))
def _():
    step, x, optimizer = linen_step(), jnp.ones((2, 3)), optax.sgd(0.1)
    params = Net().init(jax.random.key(0), x)
    return (lambda: step(linen_state(Net(), optimizer, params), x)), (lambda: step(linen_state(Net(), optimizer, params), x))


@case("TrainState: apply_fn of another model", Cause("tree_static", "trace", "state.apply_fn"), says=r"apply_fn|width")
def _():
    step, x, optimizer = linen_step(), jnp.ones((2, 3)), optax.sgd(0.1)
    params = Net().init(jax.random.key(0), x)
    a = linen_state(Net(), optimizer, params)
    b = a.replace(apply_fn=lambda p, x: 2 * Net().apply(p, x))
    return (lambda: step(a, x)), (lambda: step(b, x))


@jax.tree_util.register_pytree_node_class
class Graph:
    """Arrays as children, the number of nodes as auxiliary data."""

    def __init__(self, nodes, senders, n_node):
        self.nodes, self.senders, self.n_node = nodes, senders, n_node

    def tree_flatten(self):
        return (self.nodes, self.senders), (self.n_node,)

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, *aux)


@case("auxiliary data of a graph class: its number of nodes", Cause("tree_static", "trace", ("graph.n_node", "graph")), function="message_passing", says=r"n_node|\b7\b")
def _():
    @jax.jit
    def message_passing(graph):
        traced()
        return jax.ops.segment_sum(graph.nodes, graph.senders, num_segments=graph.n_node)

    nodes, senders = jnp.ones((8, 2)), jnp.zeros(8, jnp.int32)
    a, b = Graph(nodes, senders, 6), Graph(nodes, senders, 7)
    return (lambda: message_passing(a)), (lambda: message_passing(b))


class Vocabulary:
    """Compared by identity, as every class is that does not say otherwise."""

    def __init__(self, size):
        self.size = size


@flax.struct.dataclass
class Tokens:
    ids: Any
    vocabulary: Vocabulary = flax.struct.field(pytree_node=False)


@case("an object without __eq__ as metadata, made for every batch", Cause("static_identity", "trace", "tokens.vocabulary"), function="embed")
def _():
    @jax.jit
    def embed(tokens):
        traced()
        return jax.nn.one_hot(tokens.ids, tokens.vocabulary.size)

    ids = jnp.ones(4, jnp.int32)
    return (lambda: embed(Tokens(ids, Vocabulary(9)))), (lambda: embed(Tokens(ids, Vocabulary(9))))


@case("call form: batch by keyword", Cause("call_form", "trace", (None, "batch")))
def _():
    @jax.jit
    def train_step(params, batch):
        traced()
        return text_loss(params, batch)

    params, batch = text_params(), text_batch(4)
    return (lambda: train_step(params, batch)), (lambda: train_step(params, batch=batch))


@case("call form: a default spelled out", Cause("call_form", "trace", (None, "scale")))
def _():
    @jax.jit
    def train_step(params, batch, scale=1.0):
        traced()
        return text_loss(params, batch) * scale

    params, batch = text_params(), text_batch(4)
    return (lambda: train_step(params, batch)), (lambda: train_step(params, batch, 1.0))


@case("call form: a static default spelled out", Cause("call_form", "trace", (None, "train")))
def _():
    from functools import partial

    @partial(jax.jit, static_argnames="train")
    def train_step(params, batch, train=True):
        traced()
        return text_loss(params, batch) if train else 0.0

    params, batch = text_params(), text_batch(4)
    return (lambda: train_step(params, batch)), (lambda: train_step(params, batch, train=True))


@case("call form: a static argument by position", Cause("call_form", "trace", (None, "train")))
def _():
    from functools import partial

    @partial(jax.jit, static_argnames="train")
    def train_step(params, batch, train):
        traced()
        return text_loss(params, batch) if train else 0.0

    params, batch = text_params(), text_batch(4)
    return (lambda: train_step(params, batch, train=True)), (lambda: train_step(params, batch, True))


@flax.struct.dataclass
class EnvState:
    obs: Any
    time: Any
    done: Any
    info: dict


def env_step():
    @jax.jit
    def env_step(state, action):
        traced()
        obs = state.obs + action
        info = state.info | {"truncation": jnp.float32(0)}
        return EnvState(obs, state.time + jnp.float32(0.02), obs.sum() > 9, info)

    return env_step


def env_case(name, cause, says, **start):
    @case(name, cause, function="env_step", says=says)
    def _():
        step, action, held = env_step(), jnp.ones(3), {}
        full = dict(obs=jnp.zeros(3), time=jnp.float32(0), done=jnp.bool_(False), info={"truncation": jnp.float32(0)})

        def first():
            held["state"] = step(EnvState(**full | start), action)

        return first, (lambda: step(held["state"], action))


env_case("environment: the clock starts as 0.0", Cause("weak_type", "trace", "state.time"), r"weak", time=0.0)
env_case("environment: done starts as a float", Cause("dtype", "trace", "state.done"), r"bool", done=jnp.float32(0))
env_case("environment: info gains a key in the first step", Cause("tree", "trace", ("state.info['truncation']", "state.info")), r"truncation", info={})


@case("optax: an injected hyperparameter set by hand", Cause("weak_type", "trace", ("opt_state.hyperparams['learning_rate']",)), says=r"weak")
def _():
    optimizer = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)

    @jax.jit
    def train_step(params, opt_state, x):
        traced()
        updates, opt_state = optimizer.update(params * x, opt_state)
        return optax.apply_updates(params, updates), opt_state

    params, x = jnp.ones(3), jnp.ones(3)
    opt_state = optimizer.init(params)

    def lowered():
        opt_state.hyperparams["learning_rate"] = 0.01
        return train_step(params, opt_state, x)

    return (lambda: train_step(params, opt_state, x)), lowered
