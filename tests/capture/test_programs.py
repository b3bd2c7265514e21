"""Programs in their libraries' own style: blame lands on the user's function and line."""

from pathlib import Path

import pytest
from folders import PROGRAMS

from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture


def line_of(program: Path, text: str) -> int:
    return next(i for i, line in enumerate(program.read_text().splitlines(), 1) if text in line)


@pytest.mark.parametrize(
    ("program", "function", "wrappers", "paths"),
    [
        ("nnx_train", "train_step", ["flax.nnx.jit"], {"model.linear.bias"}),
        (
            "equinox_train",
            "make_step",
            ["equinox.filter_jit"],
            {"model.layers[0].weight", "opt_state[0].count"},
        ),
        ("optax_train", None, [], set()),
        ("haiku_train", "update", [], {"state.params['mlp/~/linear_0']['w']", "state.opt_state[0].count"}),
    ],
)
def test_the_users_function_its_arguments_and_its_line_are_shown(
    program, function, wrappers, paths, record_module
):
    path = PROGRAMS / f"{program}.py"
    run = record_module(path)
    users = [e for e in run.of(ev.FunctionSeen) if not e.library and not e.eager]
    # predict = jax.jit(network.apply): what the user gives to jit is the user's, wherever it is defined
    assert users and all(e.file == str(path) or e.name == "apply_fn" for e in users)
    for miss in run.of(ev.Missed):
        if miss.function in {u.function for u in users}:
            assert miss.site is not None and miss.site.file == str(path)
    if function:
        seen = next(e for e in users if e.name == function)
        assert seen.wrappers == wrappers
        assert seen.line <= line_of(path, f"def {function}(") <= seen.line + 3
        found = {leaf.path for leaf in run.misses(function)[0].key.arguments}
        assert paths <= found, found


def test_static_fields_under_a_wrapper_are_named_not_dumped(record_module):
    run = record_module(PROGRAMS / "equinox_train.py")
    steps = run.misses("make_step")
    values = [{s.path: s.repr for s in m.key.static}["l2"] for m in steps]
    assert values == ["False", "True"]
    assert all(len(s.repr) <= 300 and " at 0x" not in s.repr for m in steps for s in m.key.static)


@pytest.mark.long
def test_a_numpyro_sampler_records_at_the_users_line(record_module):
    run = record_module(PROGRAMS / "numpyro_nuts.py")
    sites = {m.site.file for m in run.of(ev.Missed) if m.site}
    assert sites == {str(PROGRAMS / "numpyro_nuts.py")}


def test_transforms_around_a_function_are_its_wrappers(record_module):
    run = record_module(PROGRAMS / "many_kinds.py")
    wrappers = {e.name: e.wrappers for e in run.of(ev.FunctionSeen) if not e.library and not e.eager}
    assert wrappers["quadratic"] == ["jax.grad"] and wrappers["row"] == ["jax.vmap"]
    assert wrappers["per_device"] == ["jax.pmap"] and wrappers["scaled"] == ["functools.partial"]
    entries = {m.entry for name in wrappers for m in run.misses(name)}
    assert entries == {"call", "aot", "nested", "transform"}


def test_work_ahead_of_time_is_one_story_from_trace_to_executable(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        def ahead(x): return x - 1
        lowered = jax.jit(ahead).lower(jax.ShapeDtypeStruct((3,), "float32"))
        compiled = lowered.compile()
        print(compiled(jnp.ones(3)))
        """
    )
    (miss,) = run.misses("ahead")
    assert miss.entry == "aot" and miss.key.arguments[0].type == "jax.ShapeDtypeStruct"
    for kind in (ev.Traced, ev.Lowered, ev.Compiled):
        assert len(run.for_calls(kind, [miss])) == 1, kind


def test_what_is_compiling_now_is_on_disk_before_it_ends(record):
    run = record(
        """
        import os, jax, jax.numpy as jnp
        def body(x):
            os._exit(7)  # as sudden as kill -9
        jax.jit(body)(jnp.ones(3))
        """,
        check=False,
    )
    assert run.code == 7
    (miss,) = run.misses("body")
    assert [p.phase for p in run.for_calls(ev.PhaseBegan, [miss])] == ["trace"]
    assert not run.for_calls(ev.Traced, [miss]) and not run.of(ev.RunEnded)


def test_a_phase_that_raises_is_called_failed(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        def bad(x): raise ValueError("mine")
        try: jax.jit(bad)(jnp.ones(3))
        except ValueError: pass
        """
    )
    (miss,) = run.misses("bad")
    assert [f.phase for f in run.for_calls(ev.PhaseFailed, [miss])] == ["trace"]


@pytest.mark.parametrize(
    ("ir", "stages"), [("all", {"stablehlo", "hlo"}), ("hlo", {"hlo"}), ("stats", set()), ("none", set())]
)
def test_ir_decides_which_texts_of_user_functions_are_kept(ir, stages, record):
    run = record(
        """
        import jax, jax.numpy as jnp
        big = jnp.ones(100_000)
        def f(x): return (x * big).sum()
        jax.jit(f)(jnp.ones(100_000)); jnp.linalg.norm(jnp.ones(9))
        """,
        ir=ir,
    )
    texts = {t.stage: run.run.text(t.blob) for t in run.of(ev.ProgramText)}
    assert set(texts) == stages
    (compiled,) = run.for_calls(ev.Compiled, run.misses("f"))
    later = run.for_calls(ev.MemoryRead, run.misses("f"))  # of what took long to compile
    assert (compiled.memory is None and not later) == (ir == "none")
    if "stablehlo" in texts:
        assert "loc(" in texts["stablehlo"] and len(texts["stablehlo"]) < 20_000, "constants are elided"
    if "hlo" in texts:
        assert texts["hlo"].startswith("HloModule")


def test_the_same_program_compiled_twice_is_one_program(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        x = jnp.ones(3)
        for _ in range(2):
            def f(x): return jnp.sin(x) + 1
            jax.jit(f)(x)
        def f(x): return jnp.sin(x) + 2
        jax.jit(f)(x)
        """
    )
    programs = [c.program for c in run.for_calls(ev.Compiled, run.misses("f"))]
    assert len(programs) == 3 and programs[0] == programs[1] != programs[2]


def test_a_library_the_user_names_is_not_blamed(record, tmp_path):
    (tmp_path / "mylib.py").write_text("def call(f, x):\n    return f(x)\n")
    code = """
        import mylib, jax, jax.numpy as jnp
        f = jax.jit(lambda x: x + 1)
        mylib.call(f, jnp.ones(3))
        """
    plain, named = record(code), record(code, wrapper_libraries=["mylib"])
    assert plain.misses("<lambda>")[0].site.file.endswith("mylib.py")
    assert named.misses("<lambda>")[0].site.file.endswith("program2.py")
