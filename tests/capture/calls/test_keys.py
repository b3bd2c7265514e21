"""The cache key as data: what a person would call each argument, and everything JAX compares."""

import importlib.metadata

import pytest

from jaxscope.analysis import sharding
from jaxscope.capture.calls import shardings
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Partition

pytestmark = pytest.mark.capture


def key_of(run, name, n=0):
    return run.misses(name)[n].key


def test_arguments_go_by_parameter_name_and_tree_path(record):
    run = record(
        """
        import dataclasses, collections, jax, jax.numpy as jnp, numpy as np
        @jax.tree_util.register_dataclass
        @dataclasses.dataclass
        class State:
            params: dict
            step: jax.Array
            name: str = dataclasses.field(metadata=dict(static=True), default="s")
        Pair = collections.namedtuple("Pair", "mu nu")
        @jax.jit
        def train(state, batch, *rest, scale=1.0, **extra): return state.step
        train(State({"dense": {"kernel": jnp.ones((2, 3))}}, jnp.int32(0)), {"ids": np.ones(4, "i4")},
              Pair(1, 2.0), scale=jnp.float32(2), mask=jnp.ones(3, bool))
        """
    )
    key = key_of(run, "train")
    assert [leaf.path for leaf in key.arguments] == [
        "state.params['dense']['kernel']",
        "state.step",
        "batch['ids']",
        "rest[0].mu",
        "rest[0].nu",
        "extra['mask']",
        "scale",
    ]
    by_path = {leaf.path: leaf for leaf in key.arguments}
    kernel, ids, nu = (
        by_path["state.params['dense']['kernel']"],
        by_path["batch['ids']"],
        by_path["rest[0].nu"],
    )
    assert (kernel.type, kernel.shape, kernel.dtype, kernel.weak_type) == (
        "jax.Array",
        (2, 3),
        "float32",
        False,
    )
    assert (kernel.committed, kernel.layout) == (False, "(0, 1)") and kernel.memory_kind
    assert (ids.type, ids.dtype, ids.sharding, ids.committed) == ("numpy.ndarray", "int32", None, None)
    assert (nu.type, nu.weak_type) == ("float", True)
    assert key.call_form == "3 positional, keywords: mask, scale"
    assert key.missing == []
    settings = run.of(ev.ContextSeen)[0].settings
    assert "jax_enable_x64" in settings and "jax_default_matmul_precision" in settings


def test_statics_options_and_context_are_part_of_it(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        class Config:
            def __init__(self, n): self.n = n
        def f(x, config, mode="fast"): return x * config.n
        j = jax.jit(f, static_argnums=1, static_argnames="mode", donate_argnums=0)
        a = Config(2)
        j(jnp.ones(3), a); j(jnp.ones(3), Config(2)); j(jnp.ones(3), a, mode="slow")
        with jax.default_matmul_precision("float32"): j(jnp.ones(3), a)
        """
    )
    keys = [m.key for m in run.misses("f")]
    first, second, third, fourth = keys
    assert [s.path for s in first.static] == ["config"] and first.static[0].compares == "identity"
    assert "0x" not in first.static[0].repr
    assert first.static[0].serial != second.static[0].serial
    assert [(s.path, s.repr) for s in third.static] == [
        ("config", "<__main__.Config n=2>"),
        ("mode", "'slow'"),
    ]
    assert first.static[0].serial == third.static[0].serial
    assert first.options["donate_argnums"] == "(0,)"
    contexts = {c.context: c.settings for c in run.of(ev.ContextSeen)}
    changed = {k for k, v in contexts[fourth.context].items() if contexts[first.context].get(k) != v}
    assert changed == {"jax_default_matmul_precision"}


def test_shardings_devices_and_memory_kinds_are_recorded_as_data(record):
    run = record(
        """
        import jax, numpy as np, jax.numpy as jnp
        from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "model"))
        f = jax.jit(lambda x, y, z: x.sum() + y.sum() + z.sum())
        put = lambda spec: jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, spec))
        f(put(P("data", None)), put(P(None, "model")), put(P()))
        f(put(P("data")), put(P(None, "model")), put(P()))
        """,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=8"},
    )
    first, second = (m.key for m in run.misses("<lambda>"))
    x, y, z = (first.shardings[leaf.sharding] for leaf in first.arguments)
    assert (x.kind, x.spec, x.devices) == ("NamedSharding", "P('data', None)", "0-7")
    assert [(n, s) for n, s, _ in x.mesh] == [("data", 4), ("model", 2)]
    assert (y.spec, z.spec) == ("P(None, 'model')", "P()")
    assert second.shardings[second.arguments[0].sharding].spec in ("P('data',)", "P('data')")
    assert [s.partition.dimensions for s in (x, y, z)] == [(("data",), ()), ((), ("model",)), ()]
    assert all(leaf.committed for leaf in first.arguments)
    compiled = run.for_calls(ev.Compiled, run.misses("<lambda>"))
    assert compiled[0].devices == "0-7" and len(compiled[0].out_sharding_of) == 1


def test_a_partition_spec_is_recorded_as_data():
    jax = pytest.importorskip("jax")
    P, types = jax.sharding.PartitionSpec, jax.sharding.AxisType
    axes = {"data": types.Explicit, "model": types.Explicit, "rest": types.Auto}
    mesh = jax.make_mesh((1, 1, 1), tuple(axes), tuple(axes.values()), devices=jax.devices()[:1])
    specs = [
        *(P(), P("data"), P(("data", "model"), None), P(None, P.UNCONSTRAINED, "model")),
        *(P(("data",)), P("data", unreduced={"model"}), P(None, reduced={"data", "model"})),
    ]
    for spec in specs:
        read = shardings.read_sharding(jax.sharding.NamedSharding(mesh, spec))
        assert read.partition == sharding.parse(read.spec), spec
    assert read.partition == Partition(((),), (), ("data", "model"))


def test_results_captured_constants_and_dropped_arguments_are_known(record):
    run = record(
        """
        import jax, jax.numpy as jnp, numpy as np
        TABLE = jnp.arange(100.)
        class Model:
            def __init__(self): self.w = jnp.ones((3, 3))
            def forward(self, x): return {"y": self.w @ x}
        def outer():
            mask = np.ones(50, "f4")
            def f(x, unused, n):
                return {"a": x + TABLE[:3].sum(), "b": [mask * n, 1.0]}
            return f
        jax.jit(outer())(jnp.ones(3), jnp.ones(7), 2.0)
        jax.jit(Model().forward)(jnp.ones(3))
        """
    )
    misses = run.misses("outer.<locals>.f")
    (traced,) = run.for_calls(ev.Traced, misses)
    assert [(o.path, o.shape, o.weak_type) for o in traced.out] == [
        ("['a']", (3,), False),
        ("['b'][0]", (50,), False),
        ("['b'][1]", (), True),
    ]
    assert {(c.name, c.where, c.bytes) for c in traced.captured} == {
        ("TABLE", "global", 400),
        ("mask", "closure", 200),
    }
    (compiled,) = run.for_calls(ev.Compiled, misses)
    assert compiled.dropped_arguments == [1]
    (method,) = run.for_calls(ev.Traced, run.misses("Model.forward"))
    assert [(c.name, c.where) for c in method.captured] == [("self.w", "attribute")]


def test_captured_constants_are_named_wherever_they_hang(record, tmp_path):
    (tmp_path / "tables.py").write_text("import numpy as np\nLOG = np.arange(64, dtype='f4')\n")
    run = record(
        """
        import jax, jax.numpy as jnp, numpy as np, tables
        class Model:
            scale = np.arange(32, dtype="f4")
            def forward(self, x): return x[:32] * self.scale
        def f(x, weights=np.arange(48, dtype="f4")): return (x[:48] * weights).sum() + (x * tables.LOG).sum()
        jax.jit(Model().forward)(jnp.ones(64))
        jax.jit(lambda x: f(x))(jnp.ones(64))
        """
    )
    named = {(c.name, c.where) for t in run.of(ev.Traced) for c in t.captured}
    assert named == {("self.scale", "attribute"), ("weights", "default"), ("tables.LOG", "global")}


@pytest.mark.parametrize(
    "caller", ["lambda x: inner(x)", "lambda x: jax.lax.cond(x[0] > 0, lambda x: inner(x), lambda x: x, x)"]
)
def test_constants_of_an_inner_jitted_function_are_named_also_in_a_branch(record, caller):
    run = record(
        f"""
        import jax, jax.numpy as jnp
        table = jnp.arange(64.0)
        @jax.jit
        def inner(x): return x * table
        jax.jit({caller})(jnp.ones(64))
        """
    )
    assert {c.name for t in run.of(ev.Traced) for c in t.captured} == {"table"}


def test_the_fate_of_arguments_is_seen_at_the_next_call(record):
    run = record(
        """
        import jaxscope, jax, jax.numpy as jnp
        @jaxscope.watch
        @jax.jit
        def update(state, batch): return state + batch
        give = jax.jit(lambda s: s + 1, donate_argnums=0)
        s, kept = jnp.ones(3), jnp.ones(3)
        s = update(s, kept)
        s = update(s, kept)
        given = jnp.ones(5)
        out = give(given)
        jaxscope.step()
        """
    )
    fates = {f.call: f for f in run.of(ev.ArgumentFate)}
    first = fates[run.misses("update")[0].call]
    assert (first.seen, first.gone, first.kept) == ("next_call", ["state"], ["batch"])
    donated = fates[run.misses("<lambda>")[0].call]
    assert donated.deleted == ["s"]


def test_hostile_reprs_hashes_and_trees_cost_a_field_not_the_recording(record):
    run = record(
        """
        import functools, jax, jax.numpy as jnp
        class Bad:
            def __repr__(self): print("asked"); raise RuntimeError("no repr")
            def __hash__(self): return 1
            def __eq__(self, other): return True
        class Long:
            def __repr__(self): return "x" * 10**6
        class Recursive:
            def __repr__(self): return repr(self)
        @jax.jit
        def hidden(v): return v + 1
        class Jaxy:
            def __init__(self): self.rate, self.inner = 0.5, Recursive()
            def __repr__(self): return str(hidden(1.0))
        f = jax.jit(lambda x, s: x, static_argnums=1)
        for s in (Bad(), Long(), Recursive(), Jaxy(), functools.partial(max, Jaxy())): f(jnp.ones(3), s)
        print(hidden(1.0), "done")
        """
    )
    assert run.out == "2.0 done\n"
    jaxy = "Jaxy(rate=0.5, inner=<__main__.Recursive>)"
    assert [m.key.static[0].repr for m in run.misses("<lambda>")] == [
        *("<__main__.Bad>", "<__main__.Long>", "<__main__.Recursive>", jaxy),
        f"functools.partial(<builtin_function_or_method max>, {jaxy})",
    ]
    assert len(run.for_calls(ev.Compiled, run.misses("hidden"))) == 1, (
        "the program's own first call compiled it"
    )


def test_new_function_objects_get_numbers_that_are_never_reused(record):
    run = record(
        """
        import jax, jax.numpy as jnp, functools
        def make(): return jax.jit(lambda x: x + 1)
        for _ in range(4): make()(jnp.ones(3))
        def base(x, n): return x * n
        for _ in range(3): jax.jit(functools.partial(base, n=2))(jnp.ones(3))
        """
    )
    assert len({m.key.function_object for m in run.misses("make.<locals>.<lambda>")}) == 4
    partials = run.misses("base")
    assert len({m.key.function_object for m in partials}) == 3
    assert {e.form for e in run.of(ev.FunctionSeen) if e.name == "base"} == {"partial"}


def test_persistent_cache_hits_and_misses_are_reported_with_the_reason(record, tmp_path):
    code = """
        import jax, jax.numpy as jnp
        jax.config.update("jax_compilation_cache_dir", CACHE)
        f = jax.jit(lambda x: x * 3)
        x = jnp.ones(4)
        f(x)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        jax.clear_caches(); f(x)
        jax.clear_caches(); f(x)
        @jax.jit
        def calls(v):
            return jax.pure_callback(lambda u: u, v, v)
        calls(x); jax.clear_caches(); calls(x)
        jax.config.update("jax_enable_compilation_cache", False)
        jax.clear_caches(); f(x)
        """.replace("CACHE", repr(str(tmp_path / "cache")))
    run = record(code)
    said = [
        (c.persistent_cache, c.persistent_cache_reason)
        for c in run.for_calls(ev.Compiled, run.misses("<lambda>"))
    ]
    assert [s[0] for s in said] == ["miss", "miss", "hit", "off"]
    assert "below jax_persistent_cache_min_compile_time_secs" in said[0][1]
    assert said[1][1] is None and "jax_enable_compilation_cache" in said[3][1]
    of_calls = [
        (c.persistent_cache, c.persistent_cache_reason)
        for c in run.for_calls(ev.Compiled, run.misses("calls"))
    ]
    version = importlib.metadata.version("jax")
    if tuple(map(int, version.split(".")[:2])) < (0, 11):
        reason = f"not stored: JAX {version} keeps no program that calls back into this process"
        assert of_calls == [("miss", reason)] * 2
    else:
        assert of_calls == [("miss", None), ("hit", None)]


@pytest.mark.long
def test_an_argument_passed_twice_is_named_twice_through_library_wrappers(record):
    run = record(
        """
        import jax, jax.numpy as jnp, equinox as eqx
        from flax import nnx
        batch = {"ids": jnp.ones(3), "mask": jnp.ones(3)}
        def with_equinox(batch, before): return batch["ids"] + before["mask"]
        def with_nnx(model, batch, before): return model(batch["ids"]) + before["mask"]
        eqx.filter_jit(with_equinox)(batch, batch)
        nnx.jit(with_nnx)(nnx.Linear(3, 3, rngs=nnx.Rngs(0)), batch, batch)
        """
    )
    twice = ["batch['ids']", "batch['mask']", "before['ids']", "before['mask']"]
    assert [leaf.path for leaf in run.misses("with_equinox")[0].key.arguments] == twice
    (miss,) = run.misses("with_nnx")
    assert sorted(leaf.path for leaf in miss.key.arguments if "model" not in leaf.path) == twice


def test_each_array_says_which_line_of_the_program_made_it(record):
    run = record(
        """
        import jax, jax.numpy as jnp, numpy as np
        def fresh(): return {"a": jnp.ones(3),
                             "b": jnp.zeros(3)}
        @jax.jit
        def step(state, batch, scale): return {k: v + batch for k, v in state.items()}
        state = fresh()
        state = step(state, np.ones(3, "f4"), 1.0)
        eager = state["a"] * 2
        state = step(state, jnp.ones(3), 1.0)
        state = step({"a": eager, "b": state["b"]}, jnp.ones(3), 1)
        """
    )
    made = [
        {leaf.path: m.made[by].line if by >= 0 else None for leaf, by in zip(m.key.arguments, m.made_by, strict=True)}
        for m in run.misses("step")
    ]  # fmt: skip
    assert made[0] == {"state['a']": 3, "state['b']": 4, "batch": None, "scale": None}
    assert made[-1] == {"state['a']": 9, "state['b']": 10, "batch": 11, "scale": None}
    assert {f.function for m in run.misses("step") for f in m.made} <= {"<module>", "fresh"}
