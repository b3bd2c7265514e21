"""Compare the keys of random arguments with what JAX does with them, through each wrapper of jit.

Arguments are random trees of containers (dicts, named tuples, dataclasses with static fields, modules of
equinox, flax and penzai, Partials, optimizer states) around numbers, arrays, strings and functions. In the body of the
jitted function each value is a tracer or is not, and the body runs if and only if JAX traces it:

- the arguments that the recorded key names are exactly the tracers;
- where one value is exchanged and the function is traced again, each cause names this value, or a container
  whose data compare as a whole, although all ordinary numbers get other values in the same call;
- where it is not traced again, nothing is recorded but a miss of the fast path.

    python benchmarks/keys.py                       # 300 trees, a line for each disagreement, the figures
    python benchmarks/keys.py --trees 20 --seed 7   # fewer, others
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("KERAS_BACKEND", "jax")

import equinox as eqx
import flax.struct
import haiku as hk
import jax
import jax.numpy as jnp
import keras
import numpy as np
import optax
from flax import nnx
from penzai import pz

import jaxscope
from jaxscope.log.store import RunDir
from jaxscope.model import causes
from jaxscope.model.load import load
from jaxscope.model.records import Compilation

Values = dict[str, Any]  # by path


# -- containers ----------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    first: Any
    second: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Meta:
    data: Any
    mode: Any = dataclasses.field(metadata={"static": True})


@flax.struct.dataclass
class Struct:
    data: Any
    mode: Any = flax.struct.field(pytree_node=False)


class Module(eqx.Module):
    data: Any
    mode: Any = eqx.field(static=True)


class Keyless:
    """Registered without key paths: JAX numbers its children."""

    def __init__(self, data: Any, mode: Any) -> None:
        self.data = data
        self.mode = mode


class Keyed(Keyless):
    pass


jax.tree_util.register_pytree_node(
    Keyless, lambda v: ((v.data,), v.mode), lambda mode, c: Keyless(c[0], mode)
)
jax.tree_util.register_pytree_with_keys(
    Keyed,
    lambda v: (((jax.tree_util.GetAttrKey("data"), v.data),), v.mode),
    lambda mode, c: Keyed(c[0], mode),
)


@pz.pytree_dataclass
class Block(pz.Struct):
    data: Any
    mode: Any = dataclasses.field(metadata={"pytree_node": False})


class Layer(nnx.Module):
    def __init__(self, data: Any, mode: Any) -> None:
        self.data = nnx.Param(data)
        self.mode = mode


def plus(*values: Any) -> Any:
    return values


def minus(*values: Any) -> Any:
    return values


class Kind(NamedTuple):
    """A container: ``build`` makes it of its parts, each of which has a step in the path and a role.

    A part is a tree of its own (``any``), an array (``array``), or a value that is not traced (``static``).
    """

    name: str
    build: Callable[..., Any]
    parts: tuple[tuple[str, str], ...]  # (step, role)
    get: Callable[[Any, int], Any]  # the part of a container by its number


def _attributes(name: str, build: Callable[..., Any], roles: str = "any static") -> Kind:
    names = ("data", "mode")
    parts = tuple((f".{n}", role) for n, role in zip(names, roles.split(), strict=True))
    return Kind(name, build, parts, lambda v, i: getattr(v, names[i]))


def _items(name: str, build: Callable[..., Any], *keys: Any) -> Kind:
    parts = tuple((f"[{key!r}]", "any") for key in keys)
    return Kind(name, build, parts, lambda v, i: v[keys[i]])


EVERYWHERE = [
    _items("dict", lambda a, b: {"b": b, "a": a}, "a", "b"),
    _items("dict of numbers", lambda a, b: {2: a, 1: b}, 2, 1),
    _items("ordered dict", lambda a, b: collections.OrderedDict(z=a, y=b), "z", "y"),
    _items("default dict", lambda a: collections.defaultdict(list, q=a), "q"),
    _items("list", lambda a, b: [a, b], 0, 1),
    _items("tuple", lambda a, b: (a, None, b), 0, 2),
    Kind("named tuple", Pair, ((".first", "any"), (".second", "any")), lambda v, i: v[i]),
    _attributes("registered dataclass", Meta),
    _attributes("flax dataclass", Struct),
    _attributes("equinox module", Module),
    _attributes("penzai struct", Block),
    _attributes("keyless node", Keyless),
    _attributes("keyed node", Keyed),
    Kind(
        "Partial",
        lambda f, a, b: jax.tree_util.Partial(f, a, key=b),
        ((".func", "function"), (".args[0]", "any"), (".keywords['key']", "any")),
        lambda v, i: (v.func, *v.args, *v.keywords.values())[i],
    ),
    Kind(
        "optimizer state",
        lambda a, b: optax.ScaleByAdamState(count=a, mu={"w": b}, nu=optax.EmptyState()),
        ((".count", "array"), (".mu['w']", "array")),
        lambda v, i: v.mu["w"] if i else v.count,
    ),
]
OF_NNX = [
    _attributes("nnx module", Layer, "array static"),
    Kind(
        "nnx list",
        lambda a, b: nnx.List([Layer(a, 1), Layer(b, 2)]),
        (("[0].data", "array"), ("[1].data", "array")),
        lambda v, i: v[i].data,
    ),
]


# -- values --------------------------------------------------------------------------------------------------

# Few different values, so that an ordinary number is often equal to a static one.
STATIC: list[list[Any]] = [
    [1, 2, 3],
    [0.5, 0.25, 1.0],
    [True, False],
    ["a", "b", "c"],
    [(1, "a"), (2, "a")],
    [None, 1],
]
FUNCTIONS = [plus, minus, jnp.tanh, jax.nn.relu]
ORDINARY: list[Callable[[float], Any]] = [
    float, int, bool, complex, np.float32, lambda v: np.full(3, v, "float32"), lambda v: jnp.full((2,), v),
    lambda v: np.full((2, 2), v, "int32"), lambda v: jnp.float32(v),
]  # fmt: skip
ARRAYS = ORDINARY[5:]
PYTHON = (float, int, bool, complex)


class Atom(NamedTuple):
    """A value in a tree: where it is, and the values that it can have.

    ``first`` and ``like`` are of one abstract value where it is an ordinary number; ``other`` is exchanged for
    ``first`` to make JAX trace again, if the value is in the key.
    """

    path: str
    first: Any
    like: Any
    other: Any


class Tree(NamedTuple):
    """A random argument: how it is made of values by path, its atoms, and how they are read from it."""

    build: Callable[[Values], Any]
    atoms: list[Atom]
    read: Callable[[Any], Iterator[tuple[str, Any]]]


def _static(rng: random.Random, path: str) -> Atom:
    values = rng.choice(STATIC)
    return Atom(path, values[0], values[0], values[1])


def _function(rng: random.Random, path: str) -> Atom:
    first, other = rng.sample(FUNCTIONS, 2)
    return Atom(path, first, first, other)


def _ordinary(rng: random.Random, path: str, kinds: list[Callable[[float], Any]], scalars: bool) -> Atom:
    """Return an array or a number; ``scalars``: numbers of Python are traced, too."""
    kind = rng.choice(kinds)
    other = np.ones(5, "float32") if kind is not float or rng.random() < 0.5 else 2
    return Atom(path, kind(1), kind(0 if scalars or kind not in PYTHON else 1), other)


def tree(rng: random.Random, path: str, role: str, kinds: list[Kind], depth: int, strings: bool) -> Tree:
    """Return a random tree; ``strings``: what is no array is not traced, and may stand in the place of one."""
    if role == "any" and depth and rng.random() < 0.75:
        kind = rng.choice(kinds)
        below = [tree(rng, path + step, of, kinds, depth - 1, strings) for step, of in kind.parts]

        def read(value: Any) -> Iterator[tuple[str, Any]]:
            for i, part in enumerate(below):
                yield from part.read(kind.get(value, i))

        atoms = [atom for part in below for atom in part.atoms]
        return Tree(lambda values: kind.build(*(part.build(values) for part in below)), atoms, read)
    if role == "static" or (role == "any" and strings and rng.random() < 0.25):
        atom = _static(rng, path)
        if role == "any" and not isinstance(atom.first, str):
            atom = Atom(path, "a", "a", "b")
    elif role == "function":
        atom = _function(rng, path)
    else:
        atom = _ordinary(rng, path, ARRAYS if role == "array" else ORDINARY, not strings)
    return Tree(lambda values: values[path], [atom], lambda value: iter([(path, value)]))


# -- wrappers ------------------------------------------------------------------------------------------------

Body = Callable[[Any, Any], Any]  # of an array and the argument under study


class Wrapper(NamedTuple):
    """A way to jit: ``wrap`` returns what is called with the array and the argument."""

    name: str
    wrap: Callable[[Body], Callable[[Any, Any], Any]]
    kinds: list[Kind]
    strings: bool = False
    array: str = "x"  # path of the array
    parameters: tuple[str, ...] = ()  # paths of further arrays that it passes


def _haiku(body: Body) -> Callable[[Any, Any], Any]:
    net = hk.transform(lambda x, given: body(x, given) + hk.Linear(1)(x[None]).sum())
    weights = {"linear": {"w": np.ones((3, 1), "float32"), "b": np.ones(1, "float32")}}

    def apply(params: Any, x: Any, given: Any) -> Any:
        return net.apply(params, None, x, given)

    apply.__qualname__ = apply.__name__ = body.__name__
    jitted = jax.jit(apply)
    return lambda x, given: jitted(weights, x, given)


def _keras(body: Body) -> Callable[[Any, Any], Any]:
    layer = keras.layers.Dense(1)
    layer.build((None, 3))
    weights = [np.ones((3, 1), "float32"), np.ones(1, "float32")]

    def apply(weights: Any, x: Any, given: Any) -> Any:
        result, _ = layer.stateless_call(weights, [], x[None])
        return body(x, given) + result.sum()

    apply.__qualname__ = apply.__name__ = body.__name__
    jitted = jax.jit(apply)
    return lambda x, given: jitted(weights, x, given)


def _optax(body: Body) -> Callable[[Any, Any], Any]:
    def update(updates: Any, state: Any, params: Any = None, *, given: Any) -> Any:
        return jax.tree.map(lambda u: u * body(params, given), updates), state

    transform = optax.chain(optax.scale(1.0), optax.GradientTransformationExtraArgs(lambda p: (), update))
    state = transform.init(np.ones(3, "float32"))

    def step(x: Any, given: Any) -> Any:
        return transform.update(x, state, x, given=given)

    step.__qualname__ = step.__name__ = body.__name__
    return jax.jit(step)


def _method(body: Body) -> Callable[[Any, Any], Any]:
    def method(self: Any, x: Any, given: Any) -> Any:
        return body(x, given) + self.w.sum()

    method.__qualname__ = method.__name__ = body.__name__
    jitted = eqx.filter_jit(method)

    class Model(eqx.Module):
        w: Any
        method = jitted

    model = Model(np.ones(2, "float32"))
    return lambda x, given: model.method(x, given)


def _keyword(jit: Callable[[Body], Any]) -> Callable[[Body], Callable[[Any, Any], Any]]:
    def wrap(body: Body) -> Callable[[Any, Any], Any]:
        jitted = jit(body)
        return lambda x, given: jitted(x, given=given)

    return wrap


def _named(transform: Callable[[Body], Any]) -> Callable[[Body], Any]:
    """Return ``transform``, whose result has the name of the body."""

    def wrap(body: Body) -> Any:
        changed = transform(body)

        @functools.wraps(body)
        def named(x: Any, given: Any) -> Any:
            return changed(x, given)

        return named

    return wrap


NNX = [*EVERYWHERE, *OF_NNX]
WRAPPERS = [
    Wrapper("jax.jit", jax.jit, EVERYWHERE),
    Wrapper("jax.jit, a keyword", _keyword(jax.jit), EVERYWHERE),
    Wrapper("jax.jit of value_and_grad", lambda b: jax.jit(_named(jax.value_and_grad)(b)), EVERYWHERE),
    Wrapper("jax.jit of functools.partial", lambda b: jax.jit(functools.partial(b)), EVERYWHERE),
    Wrapper("jax.jit of checkpoint", lambda b: jax.jit(_named(jax.checkpoint)(b)), EVERYWHERE),
    Wrapper("nnx.jit", nnx.jit, NNX),
    Wrapper("nnx.jit, a keyword", _keyword(nnx.jit), NNX),
    Wrapper("nnx.jit of nnx.value_and_grad", lambda b: nnx.jit(_named(nnx.value_and_grad)(b)), NNX),
    Wrapper("eqx.filter_jit", eqx.filter_jit, EVERYWHERE, strings=True),
    Wrapper("eqx.filter_jit, a keyword", _keyword(eqx.filter_jit), EVERYWHERE, strings=True),
    Wrapper("eqx.filter_jit of a method", _method, EVERYWHERE, strings=True, parameters=("self.w",)),
    Wrapper("eqx.filter_jit of filter_value_and_grad", lambda b: eqx.filter_jit(_named(eqx.filter_value_and_grad)(b)), EVERYWHERE, strings=True),
    Wrapper("haiku", _haiku, EVERYWHERE, parameters=("params['linear']['w']", "params['linear']['b']")),
    Wrapper("keras", _keras, EVERYWHERE, parameters=("weights[0]", "weights[1]")),
    Wrapper("optax", _optax, EVERYWHERE),
]  # fmt: skip


# -- a program, and its recording ----------------------------------------------------------------------------


class Exchange(NamedTuple):
    """A call in which one value was exchanged: of which case, whether JAX traced it again, its step."""

    case: str
    wrapper: Wrapper
    path: str
    traced: bool
    step: int


class Case(NamedTuple):
    """The first call of a function: the paths of its tracers."""

    name: str
    wrapper: Wrapper
    tracers: set[str]


def program(rng: random.Random, trees: int) -> tuple[list[Case], list[Exchange]]:
    """Call ``trees`` random trees through the wrappers in turn; ``jaxscope.step`` after each call."""
    cases: list[Case] = []
    exchanges: list[Exchange] = []
    step = 0
    for n in range(trees):
        wrapper = WRAPPERS[n % len(WRAPPERS)]
        argument = tree(rng, "given", "any", wrapper.kinds, 3, wrapper.strings)
        bodies: list[set[str]] = []

        def body(x: Any, given: Any, argument: Tree = argument, bodies: list[set[str]] = bodies) -> Any:
            found = {p for p, value in argument.read(given) if isinstance(_value(value), jax.core.Tracer)}
            bodies.append(found)
            return x.sum()

        body.__qualname__ = body.__name__ = f"case_{n}"
        called = wrapper.wrap(_two(body))
        x = np.ones(3, "float32")
        first, like = ({a.path: getattr(a, of) for a in argument.atoms} for of in ("first", "like"))
        for values, path in [
            (first, None),
            (first, None),
            (like, "nothing but ordinary numbers"),
            *(({**like, atom.path: atom.other}, atom.path) for atom in argument.atoms),
        ]:
            before = len(bodies)
            called(x, argument.build(values))
            jaxscope.step()
            step += 1
            if path is not None:
                exchanges.append(Exchange(body.__name__, wrapper, path, len(bodies) > before, step))
        cases.append(Case(body.__name__, wrapper, bodies[0]))
    return cases, exchanges


def _two(body: Callable[..., Any]) -> Body:
    """Return ``body`` as a function of two arguments, under its name."""

    def run(x: Any, given: Any) -> Any:
        return body(x, given)

    run.__qualname__ = run.__name__ = body.__name__
    return run


def _value(value: Any) -> Any:
    return value.get_value() if isinstance(value, nnx.Variable) else value


def disagreements(run: RunDir, cases: list[Case], exchanges: list[Exchange]) -> Iterator[str]:
    """Yield what the recorded keys and causes have that JAX did not do."""
    model = load(run)
    found: dict[str, list[Compilation]] = {}
    for c in model.compilations.values():
        found.setdefault(c.function.seen.name, []).append(c)
    for case in cases:
        yield from _of_key(case, found.get(case.name, []))
    for e in exchanges:
        at = [c for c in found.get(e.case, []) if c.step == e.step and c.reached != ["fast_path"]]
        where = f"{e.wrapper.name}: {e.case}: {e.path}"
        if bool(at) != e.traced:
            yield f"{where}: traced: {e.traced}, recorded: {[c.reached for c in at]}"
        elif at:
            wrong = [c for c in causes.of(model, at[0]) if not _names(c.path, e.path)]
            if wrong:
                yield f"{where}: {[(c.kind, c.path) for c in causes.of(model, at[0])]}"


def _of_key(case: Case, compilations: list[Compilation]) -> Iterator[str]:
    key = compilations[0].key if compilations else None
    if key is None:
        yield f"{case.wrapper.name}: {case.name}: no key"
        return
    named = [leaf.path for leaf in key.arguments]
    wanted = case.tracers | {case.wrapper.array, *case.wrapper.parameters}
    if len(named) != len(set(named)) or not wanted <= set(named):
        yield f"{case.wrapper.name}: {case.name}: tracers {sorted(wanted)}, named {sorted(named)}"
    both = {s.path for s in key.static} & set(named)
    if both:
        yield f"{case.wrapper.name}: {case.name}: both static and ordinary: {sorted(both)}"


def _names(named: str | None, path: str) -> bool:
    """Return whether a cause at ``named`` is about ``path``: about it, a part of it, or a value that holds it."""
    return named is not None and (
        named.startswith(path) or path.startswith(named + ".") or path.startswith(named + "[")
    )


def record(trees: int, seed: int, where: Path) -> tuple[list[Case], list[Exchange], list[str]]:
    """Return the cases, the exchanges, and the disagreements of a recording of ``trees`` random trees."""
    with jaxscope.record(where, ir="none") as run:
        cases, exchanges = program(random.Random(seed), trees)
    return cases, exchanges, [*disagreements(RunDir(run.path), cases, exchanges)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trees", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        cases, exchanges, wrong = record(options.trees, options.seed, Path(directory) / "run")
    print("\n".join(wrong))
    traced = sum(e.traced for e in exchanges)
    print(
        f"JAX {jax.__version__}: {len(cases)} trees, {len(exchanges)} exchanges, {traced} traced again, {len(wrong)} wrong"
    )
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
