"""What user code calls: watching changes nothing but the count."""

import sys

import pytest

import jaxscope
from jaxscope.schema import events as ev

pytestmark = [pytest.mark.capture, pytest.mark.costly]


def calls(run, name):
    ids = run.functions(name)
    found = [e.count for e in run.of(ev.Called) if e.function in ids]
    return found[-1] if found else 0


INTERFACE = """
import inspect, pickle, functools
import jax, jax.numpy as jnp
WATCH
def plain(x, y=2.0):
    "The docstring."
    return x * y
@WATCHED
@functools.partial(jax.jit, static_argnames="n")
def jitted(x, n=1):
    "Doc."
    return x + n
class Model:
    @WATCHED
    @functools.partial(jax.jit, static_argnums=0)
    def method(self, x): return x * 2
    @WATCHED
    @staticmethod
    def helper(x): return x
    def __hash__(self): return 1
    def __eq__(self, other): return isinstance(other, Model)
plain = WATCHED(plain)
x = jnp.ones(3)
print(plain(x), plain(x, y=3.0), inspect.signature(plain), plain.__doc__, plain.__name__, plain.__module__)
print(inspect.isfunction(plain), callable(plain), plain.__defaults__, pickle.loads(pickle.dumps(plain)) is plain)
print(jitted(x), jitted(x, n=2), inspect.signature(jitted), jitted.__doc__, jitted.__wrapped__.__name__)
print(isinstance(jitted, jax.stages.Wrapped), jitted.lower(x).compile()(x), jitted.trace(x).jaxpr, jitted.eval_shape(x))
print(jax.export.export(jitted)(x).in_avals, jitted.clear_cache(), jitted._cache_size())
print(Model().method(x), Model().helper(x), Model.helper(x), type(Model().method).__name__)
print(jax.grad(lambda v: jitted(v).sum())(x), jax.vmap(jitted)(x), jax.jit(plain)(x), jax.jit(jitted)(x))
jitted.note = "attributes can be set"; print(jitted.note); del jitted.note; print(hasattr(jitted, "note"))
try: jitted(x, wrong=1)
except TypeError as e: print(e)
"""


@pytest.mark.costly
def test_a_watched_function_keeps_the_whole_interface(record, tmp_path, clean_env):
    bare = record(INTERFACE.replace("WATCHED", "(lambda f: f)").replace("WATCH", ""))
    watched = record(INTERFACE.replace("WATCHED", "jaxscope.watch").replace("WATCH", "import jaxscope"))
    assert watched.out == bare.out and "(x, y=2.0) The docstring. plain __main__" in bare.out
    assert (
        calls(watched, "plain") >= 2 and calls(watched, "jitted") >= 3 and calls(watched, "Model.method") >= 1
    )


@pytest.mark.long
@pytest.mark.costly
def test_library_wrappers_can_be_watched(record):
    run = record(
        """
        import jaxscope, jax, jax.numpy as jnp, equinox as eqx
        from flax import nnx
        @jaxscope.watch
        @nnx.jit
        def train(model, x): return model(x).sum()
        @jaxscope.watch(step=True)
        @eqx.filter_jit
        def step(model, x): return jax.vmap(model)(x).sum()
        model, x = nnx.Linear(4, 4, rngs=nnx.Rngs(0)), jnp.ones((2, 4))
        mlp = eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))
        for _ in range(3): train(model, x); step(mlp, x)
        print(isinstance(step, eqx.Module), step.lower(mlp, x) is not None)
        """
    )
    assert run.out == "True True\n"
    assert calls(run, "train") == 3 and calls(run, "step") == 3
    assert {e.function for e in run.of(ev.Watched)} == run.functions("train") | run.functions("step")
    # The function watched and the function compiled are one and the same in the report.
    assert run.misses("train") and run.misses("step")


def test_steps_are_the_calls_of_the_step_function_or_the_marks(record):
    code = """
        import jaxscope, jax, jax.numpy as jnp
        IMPORT
        def step(x): return x + 1
        first = jax.jit(lambda x: x * 2); first(jnp.ones(9))
        for i in range(6):
            step(jnp.ones(i // 3 + 1))
            MARK
        first(jnp.ones(10))
        """
    by_calls = record(
        code.replace("IMPORT", "@jaxscope.watch(step=True)\n        @jax.jit").replace("MARK", "")
    )
    assert [m.step for m in by_calls.misses("step")] == [1, 4]
    assert [m.step for m in by_calls.misses("<lambda>")] == [0, 6]
    by_marks = record(code.replace("IMPORT", "@jax.jit").replace("MARK", "jaxscope.step()"))
    assert [m.step for m in by_marks.misses("step")] == [None, 4]
    assert by_marks.of(ev.Step)[-1].index == 6
    first_called = record(
        """
        import jaxscope, jax, jax.numpy as jnp
        @jaxscope.watch
        @jax.jit
        def never(x): return x
        @jaxscope.watch
        @jax.jit
        def step(x): return x + 1
        for i in range(3): step(jnp.ones(i + 1))
        """
    )
    assert [m.step for m in first_called.misses("step")] == [1, 2, 3]


def test_step_function_counts_a_jitted_function_nobody_watched(record):
    run = record(
        """
        import jax, jax.numpy as jnp, jaxscope
        from jaxscope.capture import session
        session.stop()
        from jaxscope.log import store; from pathlib import Path
        session.start(store.create(Path("counted")), how="record", options=session.Options(step_function="train"))
        @jax.jit
        def train(x): return x + 1
        for i in range(20): train(jnp.ones(1))
        train(jnp.ones(2))
        session.stop()
        from jaxscope.log import reader; from jaxscope.schema import events as ev
        print([e.count for e in reader.read(store.RunDir("counted")) if isinstance(e, ev.Called)][-1])
        print(jax._src.api._post_hook_state.get_global())
        """,
        check=False,
    )
    assert run.out.split() == ["21", "None"], run.err


def test_step_function_counts_a_plain_function_where_python_tells_of_its_calls(record):
    run = record(
        """
        import jax, numpy as np, jaxscope
        from jaxscope.capture import session
        from jaxscope.log import reader, store; from jaxscope.schema import events as ev
        from pathlib import Path
        session.stop()
        @jax.jit
        def inner(x): return x + 1
        class Trainer:
            def fit(self, x): return inner(x)
        def helper(): pass
        session.start(store.create(Path("counted")), how="record", options=session.Options(step_function="Trainer.fit"))
        for n in (1, 1, 2): Trainer().fit(np.ones(n)); helper()
        session.stop()
        for e in reader.read(store.RunDir("counted")):
            if isinstance(e, ev.Missed): print(e.step)
            if isinstance(e, ev.Degraded): print(e.reason)
        """,
        check=False,
    )
    if sys.version_info >= (3, 12):
        assert run.out.split() == ["1", "3"], run.err
    else:
        assert (
            "a plain function is counted from Python 3.12 on, or with @jaxscope.watch(step=True)" in run.out
        )


def test_watching_something_that_cannot_be_called_is_a_clear_error():
    import jaxscope

    with pytest.raises(TypeError, match="needs a function, not int"):
        jaxscope.watch(3)


def test_without_a_recording_step_and_watch_do_nothing():
    import jaxscope

    jaxscope.step()
    assert jaxscope.watch(len)([1, 2]) == 2


@pytest.mark.long
def test_calls_that_cannot_be_counted_from_outside_are_reported_to_be_so(record):
    """Half a count would number the steps wrongly."""
    code = """
        import jax, jax.numpy as jnp, jaxscope, equinox as eqx
        from jaxscope.capture import session
        from jaxscope.log import reader, store; from jaxscope.schema import events as ev
        from pathlib import Path
        session.stop()
        DEFINE
        def step(x): return x + 1
        session.start(store.create(Path("run")), how="record", options=session.Options(step_function="NAME"))
        for i in range(6): step(jnp.ones(1 + i // 4))
        session.stop()
        events = list(reader.read(store.RunDir("run")))
        print([e.count for e in events if isinstance(e, ev.Called)][-1:],
              [e.reason for e in events if isinstance(e, ev.Degraded)])
        import shutil; shutil.rmtree("run")
        """

    def said(define, name="step"):
        run = record(code.replace("DEFINE", define).replace("NAME", name), check=False)
        return run.out + run.err

    assert said("@jax.jit") == "[6] []\n"
    assert said("@jaxscope.watch(step=True)\n        @jax.jit") == "[6] []\n", "counted once"
    wrapped = said("@eqx.filter_jit")
    assert wrapped.startswith("[] [") and "watch(step=True)" in wrapped
    assert "no call of a function named 'nosuch'" in said("@jax.jit", "nosuch")


TREES = """
import jax, jax.numpy as jnp, equinox as eqx, functools
class Net(eqx.Module):
    w: jax.Array
    n: int = eqx.field(static=True)
    def __call__(self, x): return self.w * x * self.n
    @WATCHED
    @eqx.filter_jit
    def method(self, x): return self(x).sum()
net = Net(jnp.arange(3.0), 2)
@WATCHED
@eqx.filter_jit
def f(x): return x + 1
g = WATCHED(eqx.filter_jit(net))
part = WATCHED(jax.tree_util.Partial(lambda a, b: a + b, jnp.ones(2)))
for it in (f, g, part, WATCHED(net), WATCHED(eqx.filter_jit(functools.partial(lambda a, b: a, jnp.ones(4))))):
    print([getattr(v, "shape", v) for v in jax.tree.leaves(it)], [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(it)])
print(isinstance(f, eqx.Module), isinstance(g, eqx.Module), eqx.tree_equal(g.__wrapped__, net), f == f, hash(f) == hash(f))
double = jax.tree.map(lambda v: v * 2, g)
print(double(1.0), g(1.0), isinstance(double, eqx.Module), net.method(1.0), part(jnp.ones(2)))
takes = eqx.filter_jit(lambda fn, x: fn(x))
print(takes(g, 2.0), takes(double, 2.0), takes._cached._cache_size())
dynamic, static = eqx.partition(g, eqx.is_array)
print(eqx.combine(dynamic, static)(3.0), jax.tree.structure(g) == jax.tree.structure(double))
print(g.lower(1.0) is not None, repr(f), jax.grad(lambda m: m(1.0).sum())(WATCHED(net)).w)
"""


@pytest.mark.long
@pytest.mark.costly
def test_a_watched_pytree_is_the_same_pytree(record):
    bare = record(TREES.replace("WATCHED", "(lambda f: f)"))
    watched = record(
        TREES.replace("WATCHED", "jaxscope.watch").replace("import jax,", "import jaxscope, jax,")
    )
    assert watched.out == bare.out and "[(3,)]" in bare.out
    assert calls(watched, "Net.method") == 1 and calls(watched, "f") == 0
    alone = record(
        "import jaxscope; f = jaxscope.watch(len); import jax; print(jax.tree.leaves([f]) == [len])"
    )
    assert alone.out == "True\n"


def test_what_only_the_pytest_fixture_has_says_so():
    with pytest.raises(
        AttributeError, match=r"no attribute 'pinned'; the pytest fixture has it: def test_it\(jaxscope\)"
    ):
        jaxscope.pinned
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense'$"):
        jaxscope.nonsense
