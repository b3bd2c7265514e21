"""Count wrong verdicts of the gate: ways to compile late, each in a program that must fail and a correct version.

    python benchmarks/gates.py [-o FILE] [name ...]

Every mechanism makes a piece of work, ``work(odd)``. The failing program does ``work(True)`` for the first
time in step 3; its twin does the same work with everything compiled in step 1. After step 2 nothing may be
compiled. Each program runs in a process of its own (forked from one that has imported JAX), recorded and
inside a ``no_recompiles`` block: two verdicts, of the block and of ``jaxscope check``. Then all of them are
tests of one pytest session, under the mark. Whether something was really compiled late, JAX's own monitoring
events say, which are counted by the program itself.

Other processes and ``atexit`` are not part of a block, nor of a test: gates_processes.py has a program for
each, which ``jaxscope run`` records and ``jaxscope check`` judges.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import gc
import io
import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

sys.path.insert(0, str(Path(__file__).parent))
import gates_processes

AFTER, LATE, STEPS = 2, 3, 4
SHORT = (  # of the tests
    "shape", "dtype", "weak_type", "tree_keys", "static", "new_lambda", "eager_jnp", "eager_vmap_jnp", "eager_vmap_jit",
    "eager_jvp", "eager_vjp", "eager_grad", "nested_vmap", "aot_compile_later", "clear_caches", "x64", "committed",
    "donation", "thread", "asyncio_task", "pure_callback", "generator", "weakref_callback", "while_body", "jit_of_library",
)  # fmt: skip
_sizes = itertools.count(3)


def size() -> int:
    """Return a size that was not used yet, so that its programs are new."""
    return next(_sizes)


def x(n: int, *more: int, dtype: str = "float32") -> np.ndarray:
    return np.ones((n, *more), dtype)


MECHANISMS: dict[str, object] = {}
ALWAYS: set[str] = set()  # compile each time that the work is odd: their twin is odd in step 1 only


def way(make=None, *, always: bool = False):
    """Register a mechanism: ``make()`` gives ``work(odd)``."""
    if make is None:
        return functools.partial(way, always=always)
    MECHANISMS[make.__name__] = make
    if always:
        ALWAYS.add(make.__name__)
    return make


def add(name: str, make, *, always: bool = False) -> None:
    make.__name__ = name
    way(make, always=always)


# -- keys of one function ----------------------------------------------------------------------------------------


def of_key(name: str, even, odd, *, f=None, **options) -> None:
    """Call a jitted function with other arguments. ``even``, ``odd``: from two sizes to (args, kwargs)."""

    def make():
        n, m = size(), size()
        g = jax.jit(f or (lambda *a, **k: tree_util.tree_map(lambda v: v * 2, (a, k))), **options)

        def work(late):
            args, kwargs = (odd if late else even)(n, m)
            g(*args, **kwargs)

        return work

    add(name, make)


def only(*args, **kwargs):
    return args, kwargs


def cpu(i: int):
    return SingleDeviceSharding(jax.devices()[i])


def mesh(*shape: int, names=("data", "model")):
    return Mesh(np.array(jax.devices()[: int(np.prod(shape))]).reshape(shape), names[: len(shape)])


def put(v, *spec, over=None):
    return jax.device_put(v, NamedSharding(over or mesh(2, 2), P(*spec)))


of_key("shape", lambda n, m: only(x(n)), lambda n, m: only(x(m)))
of_key("rank", lambda n, m: only(x(n)), lambda n, m: only(x(n, 1)))
of_key("two_axes", lambda n, m: only(x(n, m)), lambda n, m: only(x(m, n)))
of_key("empty", lambda n, m: only(x(n)), lambda n, m: only(x(0, n)))
for kind in ("float16", "int32", "int8", "uint8", "bool", "complex64", "bfloat16"):
    of_key(
        "dtype" if kind == "float16" else f"dtype_{kind}",
        lambda n, m: only(x(n)),
        lambda n, m, kind=kind: only(x(n).astype(jnp.bfloat16 if kind == "bfloat16" else kind)),
    )
of_key("weak_type", lambda n, m: only(np.float32(1), x(n)), lambda n, m: only(1.0, x(n)))
of_key("python_int_for_float", lambda n, m: only(1.0, x(n)), lambda n, m: only(1, x(n)))
of_key("python_bool", lambda n, m: only(1, x(n)), lambda n, m: only(True, x(n)))
of_key("python_complex", lambda n, m: only(1.0, x(n)), lambda n, m: only(1j, x(n)))
of_key("tree_keys", lambda n, m: only({"a": x(n)}), lambda n, m: only({"b": x(n)}))
of_key("tree_more_keys", lambda n, m: only({"a": x(n)}), lambda n, m: only({"a": x(n), "b": x(n)}))
of_key("tree_list_for_tuple", lambda n, m: only((x(n),)), lambda n, m: only([x(n)]))
of_key("tree_longer", lambda n, m: only([x(n)]), lambda n, m: only([x(n), x(n)]))
of_key("tree_none", lambda n, m: only(x(n), None), lambda n, m: only(x(n), x(n)))
of_key("keyword", lambda n, m: only(x(n)), lambda n, m: only(v=x(n)), f=lambda v: v * 2)
of_key("default_given", lambda n, m: only(x(n)), lambda n, m: only(x(n), 2.0), f=lambda v, k=2.0: v * k)
of_key(
    "static", lambda n, m: only(x(n), 1), lambda n, m: only(x(n), 2), f=lambda v, k: v * k, static_argnums=1
)
of_key(
    "static_name",
    lambda n, m: only(x(n), k=1),
    lambda n, m: only(x(n), k=2),
    f=lambda v, k: v * k,
    static_argnames="k",
)
of_key(
    "static_type",
    lambda n, m: only(x(n), 1),
    lambda n, m: only(x(n), 1.0),
    f=lambda v, k: v * k,
    static_argnums=1,
)
of_key(
    "static_text",
    lambda n, m: only(x(n), "a"),
    lambda n, m: only(x(n), "b"),
    f=lambda v, k: v * len(k),
    static_argnums=1,
)
of_key(
    "static_function", lambda n, m: only(x(n), jnp.sin), lambda n, m: only(x(n), jnp.cos), f=lambda v, k: k(v),
    static_argnums=1,
)  # fmt: skip
of_key(
    "committed",
    lambda n, m: only(jnp.asarray(x(n))),
    lambda n, m: only(jax.device_put(x(n), jax.devices()[0])),
)
of_key(
    "device", lambda n, m: only(jax.device_put(x(n), cpu(0))), lambda n, m: only(jax.device_put(x(n), cpu(1)))
)
of_key("sharded", lambda n, m: only(put(x(4 * n, 4))), lambda n, m: only(put(x(4 * n, 4), "data")))
of_key(
    "sharded_other_axis",
    lambda n, m: only(put(x(4 * n, 4), "data")),
    lambda n, m: only(put(x(4 * n, 4), "model")),
)
of_key(
    "mesh_shape", lambda n, m: only(put(x(4 * n, 4), "data")),
    lambda n, m: only(put(x(4 * n, 4), "data", over=mesh(4, 1))),
)  # fmt: skip
of_key(
    "mesh_names", lambda n, m: only(put(x(4 * n, 4), "data")),
    lambda n, m: only(put(x(4 * n, 4), "a", over=mesh(2, 2, names=("a", "b")))),
)  # fmt: skip
of_key("prng_key", lambda n, m: only(x(n), jax.random.key(0)), lambda n, m: only(x(n), jax.random.key(0, impl="rbg")),
       f=lambda v, k: v + jax.random.uniform(k))  # fmt: skip
of_key("raw_key", lambda n, m: only(x(n), jax.random.key(0)), lambda n, m: only(x(n), jax.random.PRNGKey(0)),
       f=lambda v, k: v + jax.random.uniform(k))  # fmt: skip
of_key("scan_length", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: lax.scan(lambda c, y: (c + y, y), 0.0, v)[0])  # fmt: skip
of_key("while_body", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: lax.while_loop(lambda c: c.sum() < 9, lambda c: c + 1, v))  # fmt: skip
of_key("cond_branches", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: lax.cond(v.sum() > 0, jnp.sin, jnp.cos, v))  # fmt: skip
of_key("fori_loop", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: lax.fori_loop(0, 3, lambda i, c: c * 2, v))  # fmt: skip
of_key("switch", lambda n, m: only(x(n), 0), lambda n, m: only(x(m), 0),
       f=lambda v, i: lax.switch(i, [jnp.sin, jnp.cos], v))  # fmt: skip
of_key("lax_map", lambda n, m: only(x(n)), lambda n, m: only(x(m)), f=lambda v: lax.map(jnp.sin, v))
of_key("associative_scan", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: lax.associative_scan(jnp.add, v))  # fmt: skip
of_key("jit_of_grad", lambda n, m: only(x(n)), lambda n, m: only(x(m)), f=jax.grad(lambda v: jnp.sum(v**2)))
of_key(
    "jit_of_hessian", lambda n, m: only(x(n)), lambda n, m: only(x(m)), f=jax.hessian(lambda v: jnp.sum(v**3))
)
of_key("jit_of_vmap", lambda n, m: only(x(n, 2)), lambda n, m: only(x(m, 2)), f=jax.vmap(jnp.sum))
of_key("checkpoint", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=jax.grad(jax.checkpoint(lambda v: jnp.sum(jnp.sin(v)))))  # fmt: skip
of_key("pure_callback", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: jax.pure_callback(lambda a: np.asarray(a) * 2, jax.ShapeDtypeStruct(v.shape, v.dtype), v))  # fmt: skip
of_key("debug_callback", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: (jax.debug.callback(lambda a: None, v), v * 2)[1])  # fmt: skip
of_key("io_callback", lambda n, m: only(x(n)), lambda n, m: only(x(m)),
       f=lambda v: (io_callback(lambda a: None, None, v), v * 2)[1])  # fmt: skip
of_key("donation", lambda n, m: only(jnp.asarray(x(n))), lambda n, m: only(jnp.asarray(x(m))), f=lambda v: v * 2,
       donate_argnums=0)  # fmt: skip


@jax.custom_vjp
def doubled(v):
    return v * 2


doubled.defvjp(lambda v: (v * 2, None), lambda _, g: (g * 2,))


@jax.custom_jvp
def tripled(v):
    return v * 3


tripled.defjvp(lambda primals, tangents: (tripled(primals[0]), tangents[0] * 3))
of_key("custom_vjp", lambda n, m: only(x(n)), lambda n, m: only(x(m)), f=jax.grad(lambda v: doubled(v).sum()))
of_key("custom_jvp", lambda n, m: only(x(n)), lambda n, m: only(x(m)), f=jax.grad(lambda v: tripled(v).sum()))


# -- a plain call on data of another size, from anywhere ------------------------------------------------------------


def of_call(name: str, do, *, shape=(), jitted=None) -> None:
    """Call ``do(f, x)`` on data of another size; ``f`` is jitted once (None: ``do`` has its own)."""

    def make():
        n, m = size(), size()
        f = jax.jit(jitted or (lambda v: jnp.sum(v * 2)))
        return lambda odd: do(f, x(m if odd else n, *shape))

    add(name, make)


def in_thread(f, v):
    t = threading.Thread(target=lambda: f(v))
    t.start(), t.join()


def in_pool(f, v):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(f, v).result()


def swallowed(f, v):
    with contextlib.suppress(ValueError):
        f(v)
        raise ValueError


def dropped(f, v):
    class Holder:
        def __del__(self):
            f(v)

    Holder()


def cycle(f, v):
    class Holder:
        def __del__(self):
            f(v)

    held = Holder()
    held.me = held
    del held
    gc.collect()


def weakly(f, v):
    class Holder:
        pass

    held = Holder()
    ref = weakref.ref(held, lambda _: f(v))
    del held
    return ref


async def awaited(f, v):
    return await asyncio.get_running_loop().create_task(later(f, v))


async def later(f, v):
    await asyncio.sleep(0)
    return f(v)


def signalled(f, v):
    before = signal.signal(signal.SIGUSR1, lambda *_: f(v))
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
    signal.signal(signal.SIGUSR1, before)


class Lazy(dict):
    def __init__(self, f, v):
        self.f, self.v = f, v

    def __missing__(self, key):
        return self.f(self.v)


class Managed(contextlib.ContextDecorator):
    def __init__(self, f, v):
        self.f, self.v = f, v

    def __enter__(self):
        self.f(self.v)

    def __exit__(self, *_):
        return None


class Described:
    def __init__(self, f, v):
        self.f, self.v = f, v

    @property
    def value(self):
        return self.f(self.v)

    @functools.cached_property
    def cached(self):
        return self.f(self.v)

    def __repr__(self):
        return str(self.f(self.v))

    def __call__(self, *_):
        return self.f(self.v)

    def __iter__(self):
        yield self.f(self.v)

    def __eq__(self, other):
        return bool(self.f(self.v) is not None)

    __hash__ = None


def imported(f, v):
    import importlib.abc
    import importlib.machinery

    class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
        def find_spec(self, name, path=None, target=None):
            return importlib.machinery.ModuleSpec(name, self) if name == "made_up_module" else None

        def create_module(self, spec):
            return None

        def exec_module(self, module):
            f(v)

    sys.meta_path.insert(0, finder := Finder())
    sys.modules.pop("made_up_module", None)
    __import__("made_up_module")
    sys.meta_path.remove(finder)


SCALAR = jax.ShapeDtypeStruct((), np.float32)


@functools.cache
def on_the_host(f):
    """Make one callback for each function: JAX compiles ``pure_callback`` again for a new callback."""
    return lambda a: np.float32(f(np.asarray(a)))


of_call("plain_call", lambda f, v: f(v))
of_call("thread", in_thread)
of_call(
    "thread_target_is_jitted", lambda f, v: [t := threading.Thread(target=f, args=(v,)), t.start(), t.join()]
)
of_call("thread_pool", in_pool)
of_call("timer", lambda f, v: [t := threading.Timer(0, f, (v,)), t.start(), t.join()])
of_call("asyncio_task", lambda f, v: asyncio.run(awaited(f, v)))
of_call("asyncio_to_thread", lambda f, v: asyncio.run(asyncio.to_thread(f, v)))
of_call("generator", lambda f, v: [*(f(one) for one in [v])])
of_call("map_builtin", lambda f, v: list(map(f, [v])))
of_call("sort_key", lambda f, v: sorted([v], key=lambda one: float(f(one))))
of_call("reduce", lambda f, v: functools.reduce(lambda a, b: f(b), [v, v]))
of_call("partial_called", lambda f, v: functools.partial(f, v)())
of_call("exception_swallowed", swallowed)
of_call("finalizer", dropped)
of_call("garbage_collected", cycle)
of_call("weakref_callback", weakly)
of_call("weakref_finalize", lambda f, v: weakref.finalize(lambda: None, f, v)())
of_call("signal_handler", signalled)
of_call("import_hook", imported)
of_call("exec", lambda f, v: exec("f(v)", {"f": f, "v": v}))
of_call("eval", lambda f, v: eval("f(v)", {"f": f, "v": v}))
of_call("missing_key", lambda f, v: Lazy(f, v)["key"])
of_call("context_manager", lambda f, v: Managed(f, v).__enter__())
of_call("context_decorator", lambda f, v: Managed(f, v)(lambda: None)())
of_call("property", lambda f, v: Described(f, v).value)
of_call("cached_property", lambda f, v: Described(f, v).cached)
of_call("repr", lambda f, v: repr(Described(f, v)))
of_call("callable_object", lambda f, v: Described(f, v)())
of_call("iterator", lambda f, v: list(Described(f, v)))
of_call("equality", lambda f, v: Described(f, v) == 1)
of_call("exit_stack", lambda f, v: contextlib.ExitStack().callback(f, v) and f(v))
of_call("host_callback_compiles", lambda f, v: jax.pure_callback(on_the_host(f), SCALAR, v))
of_call("trace_only", lambda f, v: f.trace(v))
of_call("eval_shape", lambda f, v: f.eval_shape(v))
of_call("lower_only", lambda f, v: f.lower(v))
of_call("make_jaxpr", lambda f, v: jax.make_jaxpr(f)(v))
of_call("disable_jit", lambda f, v: [jax.disable_jit().__enter__, f(v)])


def summed(c, y):
    return c + y, y


# -- outside jit ----------------------------------------------------------------------------------------------------

of_call("eager_jnp", lambda f, v: jnp.sinh(v))
of_call("eager_operator", lambda f, v: jnp.asarray(v) * 2.5)
of_call("eager_index", lambda f, v: jnp.asarray(v)[1:])
of_call("eager_sum", lambda f, v: jnp.sum(v))
of_call("eager_concatenate", lambda f, v: jnp.concatenate([v, v]))
of_call("eager_where", lambda f, v: jnp.where(v > 0, v, 0))
of_call("eager_matmul", lambda f, v: jnp.dot(v, v))
of_call("eager_at_set", lambda f, v: jnp.asarray(v).at[0].set(3.0))
of_call("eager_sort", lambda f, v: jnp.sort(v))
of_call("eager_random", lambda f, v: jax.random.normal(jax.random.key(0), v.shape))
of_call("eager_nn", lambda f, v: jax.nn.softmax(v))
of_call("eager_lax", lambda f, v: lax.sin(v))
of_call("eager_linalg", lambda f, v: jnp.linalg.norm(v))
of_call("eager_fft", lambda f, v: jnp.fft.fft(v))
of_call("eager_scan", lambda f, v: lax.scan(summed, 0.0, v))
of_call("eager_vmap_jnp", lambda f, v: jax.vmap(jnp.sinh)(v))
of_call("eager_vmap_sum", lambda f, v: jax.vmap(jnp.sum)(v), shape=(3,))
of_call("eager_vmap_softmax", lambda f, v: jax.vmap(jax.nn.softmax)(v), shape=(3,))
of_call("eager_vmap_jit", lambda f, v: jax.vmap(f)(v), shape=(3,))
of_call("eager_vmap_vmap_jit", lambda f, v: jax.vmap(jax.vmap(f))(v), shape=(3, 2))
of_call("eager_vmap_grad_jit", lambda f, v: jax.vmap(jax.grad(f))(v), shape=(3,))
of_call("eager_grad", lambda f, v: jax.grad(lambda a: jnp.mean(jnp.tanh(a)))(v))
of_call("eager_grad_jit", lambda f, v: jax.grad(f)(v))
of_call("eager_value_and_grad_jit", lambda f, v: jax.value_and_grad(f)(v))
of_call("eager_jvp", lambda f, v: jax.jvp(f, (v,), (v,)))
of_call("eager_jvp_jnp", lambda f, v: jax.jvp(jnp.sinh, (v,), (v,)))
of_call("eager_vjp", lambda f, v: jax.vjp(f, v)[1](np.float32(1)))
of_call("eager_vjp_jnp", lambda f, v: jax.vjp(jnp.sinh, v)[1](v))
of_call("eager_linearize", lambda f, v: jax.linearize(f, v)[1](v))
of_call("eager_jacrev", lambda f, v: jax.jacrev(f)(v))
of_call("eager_jacfwd", lambda f, v: jax.jacfwd(f)(v))
of_call("eager_hessian", lambda f, v: jax.hessian(f)(v))
of_call("eager_checkpoint", lambda f, v: jax.grad(jax.checkpoint(f))(v))
of_call("eager_vectorize", lambda f, v: jnp.vectorize(lambda a: a * 2)(v))
of_call("nested_vmap", lambda f, v: f(v), jitted=lambda v: jax.vmap(jax.jit(lambda a: a * 2))(v).sum())
of_call("nested_jit", lambda f, v: f(v), jitted=lambda v: jax.jit(lambda a: a + 1)(v).sum())
pmapped = jax.pmap(lambda a: a * 2)
of_call("pmap", lambda f, v: pmapped(np.stack([v, v])))


@way
def shard_map():
    n, m = size(), size()
    over = mesh(2)
    f = jax.jit(jax.shard_map(lambda a: lax.psum(a, "data"), mesh=over, in_specs=P("data"), out_specs=P()))
    return lambda odd: f(x(2 * (m if odd else n)))


# -- functions made anew, ahead of time, caches, settings ------------------------------------------------------------


def of_odd(name: str, do, *, always: bool = True) -> None:
    """Call ``do(f, x)`` in place of ``f(x)``, on the same data."""

    def make():
        v = x(size())
        f = jax.jit(double)
        return lambda odd: do(f, v) if odd else f(v)

    add(name, make, always=always)


def double(v):
    return v * 2


class Model:
    def __init__(self):
        self.jitted = jax.jit(self.method)

    def method(self, v):
        return v * 5


@functools.partial(jax.jit, static_argnums=0)
def on_object(model, v):
    return v * 6


def cleared(f, v):
    jax.clear_caches()
    f(v)


def cleared_one(f, v):
    f.clear_cache()
    f(v)


def setting(name, value):
    def do(f, v):
        before = getattr(jax.config, name)
        jax.config.update(name, value)
        try:
            f(v)
        finally:
            jax.config.update(name, before)

    return do


def under(context):
    def do(f, v):
        with context():
            f(v)

    return do


of_odd("new_lambda", lambda f, v: jax.jit(lambda a: a * 2)(v))
of_odd("new_partial", lambda f, v: jax.jit(functools.partial(double))(v))
of_odd("new_closure", lambda f, v: [k := 3, jax.jit(lambda a: a * k)(v)])
of_odd("new_method", lambda f, v: Model().jitted(v))
of_odd("new_static_object", lambda f, v: on_object(Model(), v))
of_odd("new_grad", lambda f, v: jax.jit(jax.grad(lambda a: a.sum()))(v))
of_odd("new_vmap", lambda f, v: jax.jit(jax.vmap(lambda a: a * 2))(v))
of_odd("new_exec", lambda f, v: jax.jit(eval("lambda a: a * 3"))(v))
of_odd("other_options", lambda f, v: jax.jit(double, donate_argnums=0)(jnp.asarray(v)), always=False)
of_odd("out_shardings", lambda f, v: jax.jit(double, out_shardings=cpu(1))(v), always=False)
of_odd(
    "in_shardings", lambda f, v: jax.jit(double, in_shardings=NamedSharding(mesh(2, 2), P()))(v), always=False
)
of_odd("aot", lambda f, v: jax.jit(lambda a: a * 3).lower(v).compile())
of_odd("clear_caches", cleared)
of_odd("clear_cache_of_one", cleared_one)
of_odd("x64", setting("jax_enable_x64", True), always=False)
of_odd("matmul_precision", setting("jax_default_matmul_precision", "float32"), always=False)
of_odd("rank_promotion", setting("jax_numpy_rank_promotion", "raise"), always=False)
of_odd("dtype_promotion", setting("jax_numpy_dtype_promotion", "strict"), always=False)
of_odd("default_device", lambda f, v: under(lambda: jax.default_device(jax.devices()[1]))(f, v), always=False)
of_odd("mesh_around", lambda f, v: under(lambda: jax.set_mesh(mesh(2, 2)))(f, v), always=False)
of_odd("failed_after", lambda f, v: jax.jit(lambda a: a * 4)(v))


@way
def aot_compile_later():
    lowered = {odd: jax.jit(lambda v: v * 2).lower(x(size())) for odd in (False, True)}
    made = {}

    def work(odd):
        if odd not in made:
            made[odd] = lowered[odd].compile()

    return work


@way
def first_call():
    n = size()
    f, g = jax.jit(lambda v: v * 2), jax.jit(lambda v: v * 3)
    return lambda odd: (g if odd else f)(x(n))


@way
def donated_elsewhere():
    n, m = size(), size()
    f = jax.jit(lambda s, v: s + v.sum(), donate_argnums=0)
    return lambda odd: f(jnp.zeros(n), x(m + 1 if odd else m))


# -- libraries ----------------------------------------------------------------------------------------------------

with contextlib.suppress(ImportError):
    import optax

    @way
    def jit_of_library():
        n, m = size(), size()
        opt = optax.sgd(0.1)
        update = jax.jit(opt.update)

        def work(odd):
            p = {"w": x(m if odd else n)}
            update(p, opt.init(p), p)

        return work

    @way
    def optax_aot():
        n, m = size(), size()
        opt = optax.sgd(0.1)
        update = jax.jit(opt.update)
        made = {}

        def work(odd):
            p = {"w": x(m if odd else n)}
            if odd not in made:
                made[odd] = update.lower(p, opt.init(p), p).compile()

        return work

    of_call("optax_eager", lambda f, v: optax.global_norm({"w": v}))

with contextlib.suppress(ImportError):
    import equinox as eqx

    @way
    def equinox_filter_jit():
        n, m = size(), size()
        model = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
        f = eqx.filter_jit(lambda one, v: jax.vmap(one)(v).sum())
        return lambda odd: f(model, x(m if odd else n, 3))

    @way
    def equinox_jit_of_model():
        n, m = size(), size()
        model = eqx.nn.Lambda(lambda v: v * 2)
        f = eqx.filter_jit(model)
        return lambda odd: f(x(m if odd else n))

    @way
    def equinox_eager_vmap():
        n, m = size(), size()
        model = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
        return lambda odd: jax.vmap(model)(x(m if odd else n, 3))

    @way
    def equinox_filter_grad():
        n, m = size(), size()
        f = eqx.filter_jit(eqx.filter_grad(lambda v: jnp.sum(v**2)))
        return lambda odd: f(x(m if odd else n))


with contextlib.suppress(ImportError):
    import flax.linen as nn
    from flax import nnx

    def applied(do):
        def make():
            n, m = size(), size()
            model = nn.Dense(2)
            params = model.init(jax.random.key(0), x(1, 4))
            f = jax.jit(model.apply)
            made = {}

            def work(odd):
                v = x(m if odd else n, 4)
                made[odd] = made.get(odd) or do(f, params, v)

            return work

        return make

    add("linen_apply", applied(lambda f, p, v: [f(p, v)]))
    add("linen_apply_aot", applied(lambda f, p, v: [f.lower(p, v).compile()]))
    add("linen_apply_vmap", applied(lambda f, p, v: [jax.vmap(f, (None, 0))(p, v)]))

    @way
    def nnx_jit():
        n, m = size(), size()
        model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
        f = nnx.jit(lambda one, v: one(v).sum())
        return lambda odd: f(model, x(m if odd else n, 4))

    @way
    def nnx_eager():
        n, m = size(), size()
        model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
        return lambda odd: model(x(m if odd else n, 4))


with contextlib.suppress(ImportError):
    import haiku as hk

    @way
    def haiku_apply():
        n, m = size(), size()
        net = hk.without_apply_rng(hk.transform(lambda v: hk.Linear(2)(v)))
        params = net.init(jax.random.key(0), x(1, 4))
        f = jax.jit(net.apply)
        return lambda odd: f(params, x(m if odd else n, 4))


# -- one program ----------------------------------------------------------------------------------------------------


def program(name: str, *, late: bool, step) -> int:
    """Run it; how many programs JAX compiled, lowered or traced after step 2, by JAX's own events."""
    work = MECHANISMS[name]()
    heard = 0
    after = False

    def listen(event, *_, **__):
        nonlocal heard
        heard += after and event.startswith("/jax/core/compile/") and "jaxpr_trace" not in event

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        for k in range(1, STEPS + 1):
            after = k > AFTER
            work(False)
            if not late and k == 1:
                work(True)
            if k == LATE and (late or name not in ALWAYS):
                work(True)
            step()
    finally:
        with contextlib.suppress(Exception):
            jax.monitoring.unregister_event_duration_listener(listen)
    return heard


TRACES_ONLY = frozenset(
    {"trace_only", "eval_shape", "make_jaxpr"}
)  # no event tells of them: late by construction


def verdicts(name: str, late: bool, folder: Path) -> dict:
    """Those of the block and of the check, and what JAX's events say, of one program in a process of its own."""
    where = folder / f"{name}-{late}"
    told = folder / f"{name}-{late}.json"
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            signal.alarm(120)
            told.write_text(json.dumps(_recorded(name, late, where)))
            code = 0
        except BaseException as e:
            told.write_text(json.dumps({"error": f"{type(e).__name__}: {e}"[:300]}))
        finally:
            os._exit(code)
    os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)  # what it has left behind
    found = json.loads(told.read_text()) if told.exists() else {"error": "killed"}
    from jaxscope import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.command(
            ["check", str(where), "--no-recompiles-after", str(AFTER), "--output-format", "concise"]
        )
    found["check"] = code != 0
    found["words"] = (out.getvalue() + err.getvalue())[:300] if (code != 0) is not late else ""
    shutil.rmtree(where, ignore_errors=True)
    return found


def _recorded(name: str, late: bool, where: Path) -> dict:
    import jaxscope

    heard = 0
    raised = None
    with jaxscope.record(where, ir="none", arrays=False, transfers=False):
        try:
            with jaxscope.no_recompiles(after=AFTER):
                heard = program(name, late=late, step=jaxscope.step)
        except jaxscope.RecompileError as e:
            raised = str(e)[:200]
    return {"heard": heard, "block": raised is not None}


PYTEST = """
import pytest, gates, jaxscope

@pytest.mark.no_recompiles(after=gates.AFTER)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", {names!r})
def test_way(name, late):
    gates.program(name, late=late, step=jaxscope.step)
"""


def under_pytest(names: list[str], folder: Path) -> dict[str, dict[bool, bool]]:
    """Return which tests failed, in one session of its own."""
    import xml.etree.ElementTree as ET

    (folder / "test_ways.py").write_text(PYTEST.format(names=names))
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "--junitxml=out.xml"],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)}, capture_output=True, check=False,
    )  # fmt: skip
    found: dict[str, dict[bool, bool]] = {}
    for case in ET.parse(folder / "out.xml").iter("testcase"):
        name, _, late = case.get("name", "").partition("[")[2].rstrip("]").rpartition("-")
        found.setdefault(name, {})[late == "True"] = any(
            "no_recompiles" in (e.get("message") or "") for e in case
        )
    return found


def of_processes(name: str, late: bool, folder: Path) -> str | None:
    """Return why the verdict on a program that compiles in another process is wrong; None: it is right."""
    program = Path(__file__).with_name("gates_processes.py")
    jaxscope = [sys.executable, "-m", "jaxscope"]
    words = ["run", "-q", "--ir", "none", "--no-arrays", "--no-transfers", "-o", "run", "--overwrite"]
    how = {"cwd": folder, "capture_output": True, "text": True, "check": False, "timeout": 240}
    ran = subprocess.run([*jaxscope, *words, str(program), name, "late" if late else "early"], **how)
    asked = ["check", "run", "--no-recompiles-after", str(AFTER), "--output-format", "concise"]
    checked = subprocess.run([*jaxscope, *asked], **how)
    shutil.rmtree(folder / "run", ignore_errors=True)
    if ran.returncode:
        return f"{name} late={late}: the program ended with {ran.returncode}. {ran.stderr[-300:]}"
    if checked.returncode != (1 if late else 0):
        return f"check: {name} {'passes' if late else 'fails'} wrongly. {(checked.stdout + checked.stderr)[:300]}"
    return None


def measure(names: list[str], folder: Path, *, tests: bool = True) -> dict:
    """Count the verdicts on ``names``, and list the wrong ones."""
    wrong: list[str] = []
    unlike: list[str] = []  # what JAX's events say is not what the mechanism should do
    counted = 0
    by_test = under_pytest([n for n in names if n in MECHANISMS], folder) if tests else {}
    for i, name in enumerate(names):
        sys.stderr.write(f"\r{i + 1}/{len(names)} {name:40}")
        for late in (False, True):
            if name in gates_processes.MECHANISMS:
                counted += 1
                wrong += filter(None, [of_processes(name, late, folder)])
                continue
            found = verdicts(name, late, folder)
            if "error" in found:
                unlike.append(f"{name} late={late}: {found['error']}")
                continue
            if not found["block"] and bool(found["heard"]) is not late and name not in TRACES_ONLY:
                unlike.append(f"{name} late={late}: {found['heard']} events after step {AFTER}")
            judged = {"block": found["block"], "check": found["check"]}
            if late in by_test.get(name, {}):
                judged["pytest"] = by_test[name][late]
            counted += len(judged)
            wrong += [
                f"{who}: {name} {'passes' if late else 'fails'} wrongly. {found['words']}"
                for who, failed in judged.items()
                if failed is not late
            ]
    return {"mechanisms": len(names), "verdicts": counted, "wrong": wrong, "mechanisms_that_differ": unlike}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--short", action="store_true", help="those that the tests run")
    parser.add_argument("--no-pytest", action="store_true")
    args = parser.parse_args()
    names = args.names or (list(SHORT) if args.short else [*MECHANISMS, *gates_processes.MECHANISMS])
    began = time.time()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(names, Path(folder), tests=not args.no_pytest)
    found |= {
        "jax": jax.__version__,
        "python": platform.python_version(),
        "seconds": round(time.time() - began),
    }
    text = json.dumps(found, indent=1)
    print(text)
    if args.output:
        args.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
