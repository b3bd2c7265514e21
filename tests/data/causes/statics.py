"""Static arguments: another value, and equal values that JAX cannot see to be equal."""

import dataclasses
import enum
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .spec import NEW, Cause, case, traced


def model(*static, name="apply_model"):
    """A jitted function of one array and one static argument called ``static[0]``."""

    def apply_model(x, mode):
        traced()
        return x * 2

    def apply_window(x, window):
        traced()
        return x.reshape(-1)[: window[0]] * window[1]

    def apply_cfg(x, cfg):
        traced()
        return x * 2

    def apply_act(x, act):
        traced()
        return act(x)

    def apply_n(x, n):
        traced()
        return x * int(n)

    made = {"mode": apply_model, "window": apply_window, "cfg": apply_cfg, "act": apply_act, "n": apply_n}[static[0]]
    return jax.jit(made, static_argnames=static[0])


class Mode(enum.Enum):
    TRAIN = 1
    EVAL = 2


@dataclasses.dataclass(frozen=True)
class Config:
    depth: int = 2
    dropout: float = 0.1


@dataclasses.dataclass(eq=False)
class Loose:
    depth: int = 2


class Sizes(NamedTuple):
    hidden: int
    heads: int


class Plain:
    """A schedule as people write it: no __eq__, no __hash__."""

    def __init__(self, decay):
        self.decay = decay

    def __call__(self, x):
        return x * self.decay


class ById:
    """Equal by content, hashed by identity: breaks the promise that equal objects have equal hashes."""

    def __init__(self, words):
        self.words = words

    def __eq__(self, other):
        return isinstance(other, ById) and self.words == other.words

    def __hash__(self):
        return id(self)


def doubling():
    return lambda x: x * 2


def static(name, argument, before, after, *causes, function, says=None):
    """``before`` and ``after`` are called for a value each time."""

    @case(name, *causes, function=function, says=says)
    def _():
        f, x, kept = model(argument), jnp.ones((2, 2)), []

        def call(value):
            kept.append(value)  # alive, so that no address is used twice
            return f(x, **{argument: value})

        return (lambda: call(before())), (lambda: call(after()))


static("static string: train, then eval", "mode", lambda: "train", lambda: "eval", Cause("static_value", "trace", "mode"), function="apply_model", says=r"eval")
static("static tuple: the window size", "window", lambda: (3, 3), lambda: (3, 5), Cause("static_value", "trace", ("window", "window[1]")), function="apply_window", says=r"\(3, 5\)")
static("static enum", "mode", lambda: Mode.TRAIN, lambda: Mode.EVAL, Cause("static_value", "trace", "mode"), function="apply_model", says=r"EVAL")
static("static dtype", "mode", lambda: jnp.float32, lambda: jnp.bfloat16, Cause("static_value", "trace", "mode"), function="apply_model", says=r"bfloat16|bf16")
static("static frozen dataclass: one field", "cfg", lambda: Config(), lambda: Config(dropout=0.0), Cause("static_value", "trace", ("cfg.dropout", "cfg")), function="apply_cfg", says=r"dropout=0\.0")
static("static NamedTuple: one field", "cfg", lambda: Sizes(8, 2), lambda: Sizes(8, 4), Cause("static_value", "trace", ("cfg.heads", "cfg")), function="apply_cfg", says=r"heads=4")
static("static None where a string was", "mode", lambda: "same", lambda: None, Cause("static_value", "trace", "mode"), function="apply_model", says=r"None")
static("static activation: relu, then gelu", "act", lambda: jax.nn.relu, lambda: jax.nn.gelu, Cause("static_value", "trace", "act"), function="apply_act", says=r"gelu")
static("static int that counts up", "n", lambda: 10, lambda: 11, Cause("static_value", "trace", "n"), function="apply_n", says=r"11")
static("static bool of NumPy", "mode", lambda: True, lambda: np.True_, Cause("static_value", "trace", "mode"), function="apply_model", says=r"np|numpy|bool_|type")
static("static size: len() first, then an entry of a NumPy array", "n", lambda: 8, lambda: np.int64(8), Cause("static_value", "trace", "n"), function="apply_n", says=r"np|numpy|int64|type")
static("static config without __eq__, made in every epoch", "cfg", Loose, Loose, Cause("static_identity", "trace", "cfg"), function="apply_cfg")
static("static object without __eq__, called in the function", "act", lambda: Plain(0.9), lambda: Plain(0.9), Cause("static_identity", "trace", "act"), function="apply_act")
static("static lambda, made anew", "act", doubling, doubling, Cause("static_identity", "trace", "act"), function="apply_act")
static("static functools.partial, made anew", "act", lambda: partial(jnp.clip, max=1.0), lambda: partial(jnp.clip, max=1.0), Cause("static_identity", "trace", "act"), function="apply_act")
static("static with a hash by identity", "cfg", lambda: ById(["a"]), lambda: ById(["a"]), Cause("static_identity", "trace" if NEW else "fast_path", "cfg"), function="apply_cfg")
static("static object as an element of a tuple", "cfg", lambda: (1, Plain(0.9)), lambda: (1, Plain(0.9)), Cause("static_identity", "trace", ("cfg[1]", "cfg")), function="apply_cfg")


class Scaler:
    """Equal where their scale is equal: a good static self."""

    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        return isinstance(other, Scaler) and self.scale == other.scale

    def __hash__(self):
        return hash(self.scale)

    @partial(jax.jit, static_argnums=0)
    def rescale(self, x):
        traced()
        return x * self.scale


@case("static self that compares by value: another scale", Cause("static_value", "trace", ("self.scale", "self")), function="rescale", says=r"Scaler|static|scale")
def _():
    x = jnp.ones(3)
    return (lambda: Scaler(2.0).rescale(x)), (lambda: Scaler(3.0).rescale(x))


@case("two static arguments at once", Cause("static_value", "trace", "mode"), Cause("static_value", "trace", "depth"), function="unrolled", says=(r"eval", r"\b3\b"))
def _():
    @partial(jax.jit, static_argnames=("mode", "depth"))
    def unrolled(x, mode, depth):
        traced()
        return x * depth

    x = jnp.ones(3)
    return (lambda: unrolled(x, mode="train", depth=2)), (lambda: unrolled(x, mode="eval", depth=3))
