"""Lets states of many libraries go, after calls of many kinds, recorded and then not, without a collector.

Prints, for each kind and state, which arrays outlive it when recorded and not otherwise: nothing, if all is
well. At last what the recording left for the collector: objects of jaxscope's own that stand in a cycle.
"""

import collections
import contextlib
import dataclasses
import functools
import gc
import sys
import typing
import weakref

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from flax.training import train_state

import jaxscope


@functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "m"], meta_fields=["fn", "names"])
@dataclasses.dataclass
class WithMeta:
    w: typing.Any
    m: typing.Any
    fn: typing.Any
    names: typing.Any


class Slots:
    __slots__ = ("__weakref__", "a", "config")

    def __init__(self, a, config):
        self.a, self.config = a, config


jax.tree_util.register_pytree_node(Slots, lambda s: ((s.a,), s.config), lambda c, kids: Slots(kids[0], c))


@jax.tree_util.register_pytree_with_keys_class
class Custom:
    def __init__(self, parts, fixed):
        self.parts, self.fixed = parts, fixed

    def tree_flatten_with_keys(self):
        return [(jax.tree_util.GetAttrKey("parts"), self.parts)], (self.fixed, ("deep", [1, {"er": 2}]))

    @classmethod
    def tree_unflatten(cls, aux, kids):
        return cls(kids[0], aux[0])


class Pair(typing.NamedTuple):
    left: typing.Any
    right: typing.Any


def ones(*shape):
    return jnp.ones(shape or (8,)) * 1.5


def apply_of(x):
    return x


def linen():
    params = nn.Dense(3).init(jax.random.key(0), jnp.ones((2, 4)))["params"]
    return train_state.TrainState.create(apply_fn=nn.Dense(3).apply, params=params, tx=optax.adam(1e-3))


def haiku():
    net = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([4, 2])(x)))
    return net.init(jax.random.key(0), jnp.ones((1, 4)))


STATES = {
    "dict": lambda: {"w": ones(), "deep": [ones(3, 2), (ones(),)]},
    "OrderedDict": lambda: collections.OrderedDict(b=ones(), a=ones(2)),
    "defaultdict": lambda: collections.defaultdict(list, x=[ones()]),
    "NamedTuple": lambda: Pair(ones(), Pair(ones(2), None)),
    "dataclass with meta fields": lambda: WithMeta(ones(), ones(2), apply_of, ("a", ["b", {"c": 1}])),
    "slots": lambda: Slots(ones(), {"config": (1, 2)}),
    "custom node": lambda: Custom({"p": ones()}, apply_of),
    "partial": lambda: jax.tree_util.Partial(apply_of, ones(), key=ones(2)),
    "linen TrainState": linen,
    "equinox": lambda: eqx.filter(eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0)), eqx.is_array),
    "haiku": haiku,
    "optax": lambda: optax.chain(optax.clip(1.0), optax.adam(1e-2)).init({"w": ones()}),
    "nnx State": lambda: nnx.state(nnx.Linear(4, 2, rngs=nnx.Rngs(0))),
}


def step(state):
    return jax.tree.map(lambda v: v * 2, state)


def leaves(state):
    return [v for v in jax.tree.leaves(state) if isinstance(v, jax.Array)]  # a step may be a number


def first_miss_and_recompile(state, _):
    f = jax.jit(step)
    for s in (state, state, jax.tree.map(lambda v: v[None], leaves(state)), (state, ones()), [state]):
        f(s)


def feedback(state, _):
    f = jax.jit(lambda s: jax.tree.map(lambda v: v * 2, s))
    for _ in range(4):
        state = f(state)


def donation(state, _):
    # Copies, which the call may have.
    f = jax.jit(lambda s: jax.tree.map(lambda v: v * 2, s), donate_argnums=0)
    given = jax.tree.map(jnp.array, state)
    for _ in range(3):
        given = f(given)


def failing_trace(state, _):
    def bad(s):
        kept = jax.tree.map(lambda v: v + 1, s)
        raise ValueError(f"mine {len(jax.tree.leaves(kept))}")

    for f in (jax.jit(bad), jax.jit(jax.vmap(bad)), jax.jit(jax.value_and_grad(bad))):
        try:
            f(state)
        except (ValueError, TypeError):  # of integers there is no derivative
            pass


def failing_call(state, _):
    def raises(v):
        raise ValueError("mine")

    def f(s):
        return jax.pure_callback(raises, jax.ShapeDtypeStruct((8,), "float32"), jax.tree.leaves(s)[0])

    for _ in range(2):
        try:
            jax.block_until_ready(jax.jit(f)(state))
        except Exception:
            pass
    deleted = ones()
    deleted.delete()
    for wrong in (lambda: jax.device_put(deleted, jax.devices()[0]), lambda: jax.jit(step)((state, deleted))):
        try:
            wrong()
        except Exception:
            pass
    try:
        jax.jit(step)((state, object()))
    except TypeError:
        pass


def transforms(state, _):
    def f(s):
        return sum(jnp.sum(v) for v in jax.tree.leaves(s))

    jax.grad(jax.jit(f))([v.astype("float32") for v in leaves(state)])
    jax.jit(f).lower(state).compile()
    jax.eval_shape(jax.jit(f), state)
    jax.make_jaxpr(jax.jit(f))(state)


def captured(state, _):
    held = leaves(state)
    jax.jit(lambda x: [x + v.sum() for v in held])(ones())


def watched(state, recorded):
    outside = leaves(state)
    mark = jaxscope.watch(step=True) if recorded else lambda f: f
    f = mark(jax.jit(lambda s: jax.tree.map(lambda v: v * 2 + outside[0].ravel()[0], s)))
    for s in (state, state, [state], state):
        f(s)
        if recorded:
            jaxscope.step()


def looks(state, recorded):
    held = {"under": [state]}
    for leaf in leaves(state):
        np.asarray(leaf), leaf.addressable_shards, str(leaf)
        if leaf.size == 1:
            float(leaf.ravel()[0])
    if recorded:
        jaxscope.snapshot()
        jaxscope.step()
    jax.device_put(state, jax.devices()[1])
    jax.device_get(state)
    if recorded:
        jaxscope.snapshot()
    del held


def guarded(state, recorded):
    f = jax.jit(step)
    f(state)
    for given in (state, [state], (state,)):
        try:
            with jaxscope.no_recompiles(after=0) if recorded else contextlib.nullcontext():
                f(given)
        except jaxscope.RecompileError:
            pass


KINDS = (
    first_miss_and_recompile, feedback, donation, failing_trace, failing_call, transforms, captured, watched,
    looks, guarded,
)  # fmt: skip


def left(make, kind, recorded):
    """Which of the state's arrays outlive it."""
    state = make()
    arrays = [weakref.ref(a) for a in leaves(state)]
    with contextlib.redirect_stderr(None):
        kind(state, recorded)
    del state
    return [i for i, a in enumerate(arrays) if a() is not None]


def wrapped_by_a_library(kind, recorded):
    if kind == "nnx.jit":
        model = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        arrays = [weakref.ref(a) for a in jax.tree.leaves(nnx.state(model))]
        f = nnx.jit(lambda m, v: m(v))
    else:
        model = eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))
        arrays = [weakref.ref(a) for a in jax.tree.leaves(eqx.filter(model, eqx.is_array))]
        f = eqx.filter_jit(lambda m, v: jax.vmap(m)(v))
    for n in (2, 3, 3):
        x = ones(n, 4)
        arrays.append(weakref.ref(x))
        f(model, x)
        del x
    if recorded:
        jaxscope.snapshot()
    del model, f
    return [i for i, a in enumerate(arrays) if a() is not None]


def everything(recorded):
    found = {}
    for kind in KINDS:
        for name, make in STATES.items():
            found[kind.__name__, name] = left(make, kind, recorded)
    for kind in ("nnx.jit", "eqx.filter_jit"):
        found[kind] = wrapped_by_a_library(kind, recorded)
    return found


gc.disable()
ours = everything(True)
jaxscope_folder = jaxscope.__path__[0]


def of_ours(thing):
    """Text for a function, frame, generator or object of jaxscope's; None for anything else."""
    code = (
        getattr(thing, "__code__", None) or getattr(thing, "f_code", None) or getattr(thing, "gi_code", None)
    )
    file = getattr(code, "co_filename", "")
    if isinstance(file, str) and file.startswith(jaxscope_folder):
        return f"{type(thing).__name__} {code.co_qualname}"
    return f"{type(thing).__qualname__}" if type(thing).__module__.startswith("jaxscope.") else None


gc.set_debug(gc.DEBUG_SAVEALL)
gc.collect()
cycles = sorted({text for thing in gc.garbage if (text := of_ours(thing))})
gc.set_debug(0)
gc.garbage.clear()
from jaxscope.capture import session  # noqa: E402

session.stop()
without = everything(False)
for what, alive in ours.items():
    if alive != without[what]:
        print("kept alive:", what, alive, "without:", without[what])
print("cycles:", cycles)
print(
    len(ours),
    "cases,",
    sum(map(bool, without.values())),
    "of them with arrays that outlive their state anyway",
    file=sys.stderr,
)
