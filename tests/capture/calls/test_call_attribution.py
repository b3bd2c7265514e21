"""Which call, which function and which program an event belongs to, where that is easily mistaken."""

import pytest

from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture


def test_functions_on_one_line_and_functions_without_a_file_are_distinguished(record):
    run = record(
        """
        import jax
        f, g = jax.jit(lambda x: x + 1), jax.jit(lambda x: x * 2)
        f(1.0), g(1.0)
        for body in ("x + 3", "x * 4"):
            space = {}
            exec(f"def made(x): return {body}", space)
            jax.jit(space["made"])(1.0)
        """
    )
    for name in ("<lambda>", "made"):
        seen = [e for e in run.of(ev.FunctionSeen) if e.name == name]
        assert len(seen) == len({e.function for e in seen}) == 2
        assert {m.function for m in run.misses(name)} == {e.function for e in seen}


def test_programs_that_differ_in_a_constant_too_large_to_print_are_two(record):
    run = record(
        """
        import jax, numpy as np
        def make(c): return jax.jit(lambda x: x + c)
        big = np.arange(1000.0, dtype="f4")
        for c in (big, big * 2, big): make(c)(1.0)
        """
    )
    one, other, again = (e.program for e in run.for_calls(ev.Lowered, run.misses("make.<locals>.<lambda>")))
    assert one == again != other
    (text,) = {e.blob for e in run.of(ev.ProgramText) if e.stage == "stablehlo" and e.program in (one, other)}
    assert "__elided__" in run.run.text(text)


def test_a_counted_miss_that_lowers_after_all_is_a_call_of_its_own(record):
    """The frame of the last call that was described may have had its address."""
    run = record(
        """
        import jax, jax.numpy as jnp
        @jax.jit
        def noisy(x):
            jax.debug.callback(lambda v: None, x)
            return x * 2
        there, here = (jax.device_put(jnp.ones(3), d) for d in jax.devices())
        for _ in range(12): noisy(there)
        noisy(here)
        jax.effects_barrier()
        """,
        env={"XLA_FLAGS": "--xla_force_host_platform_device_count=2"},
    )
    misses = run.misses("noisy")
    assert run.of(ev.MissesCounted)[-1].count >= 5
    places = {m.call: m.key.shardings[0].devices for m in misses}
    compiled = [places[e.call] for e in run.for_calls(ev.Compiled, misses)]
    assert len(compiled) == 2 and compiled[0] != compiled[1]


def test_a_listener_of_the_programs_in_the_test_slot_is_called_and_costs_one_trace(record):
    run = record(
        """
        import jax
        from jax._src import util
        heard = []
        util.test_event_listener = lambda name, *args: heard.append(name)
        f = jax.jit(lambda x: x + 1)
        f(1.0); f(1)
        print(heard.count("trace_to_jaxpr"))
        """,
        check=False,
    )
    assert int(run.out) >= 2
    (said,) = [e for e in run.of(ev.Degraded) if e.seam == "miss_event"]
    assert "replaced jaxscope's listener" in said.reason
    assert len(run.for_calls(ev.Traced, run.misses("<lambda>"))) == 2


def test_a_ctrl_c_in_our_callback_is_the_programs_and_we_go_on(record):
    run = record(
        """
        import jax
        from jaxscope.capture import shield
        real = shield.enter
        def enter(token):
            real(token)
            raise KeyboardInterrupt
        shield.enter = enter
        try: jax.jit(lambda x: x + 1)(1.0)
        except KeyboardInterrupt: print("interrupted")
        shield.enter = real
        @jax.jit
        def after(x): return x * 2
        after(1.0)
        """
    )
    assert run.out == "interrupted\n"
    assert len(run.for_calls(ev.Compiled, run.misses("after"))) == 1


@pytest.mark.parametrize("when", ["before", "while"])
def test_debug_nans_works_while_and_after_steps_are_counted(when, record):
    code = """
        import jax, jax.numpy as jnp
        from jaxscope.capture import session
        from jaxscope.log import store
        from pathlib import Path
        session.stop()
        zero, one = jnp.zeros(()), jnp.ones(())
        @jax.jit
        def train(x): return x / x
        def nan():
            try: train(zero); return "missed"
            except FloatingPointError: return "found"
        BEFORE
        session.start(store.create(Path("r")), how="record", options=session.Options(step_function="train"))
        WHILE
        train(one); print(nan())
        session.stop()
        train(one); print(nan())
        jax.config.update("jax_debug_nans", False)
        print(nan())
        """
    on = 'jax.config.update("jax_debug_nans", True)'
    code = code.replace("BEFORE", on if when == "before" else "").replace(
        "WHILE", on if when == "while" else ""
    )
    done = record(code, check=False)
    said = done.out.split()
    assert [word for word in said if word in ("found", "missed")] == ["found", "found", "missed"], done.err


def test_a_lazy_object_is_not_loaded_because_we_look(record):
    run = record(
        """
        import jax, equinox as eqx
        class Lazy:
            @property
            def __class__(self):
                print("loaded"); return type(self)
            def __getattr__(self, name):
                if name.startswith("__jax"): raise AttributeError
                print("loaded", name); raise AttributeError(name)
        @jax.jit
        def plain(x): return x + 1
        def by_wrapper(x, lazy): return x + 1
        lazy = Lazy()
        from jaxscope.capture import paths
        from jaxscope.capture.calls import statics
        from jaxscope.capture.calls import signature
        paths.walk([("lazy", {"a": lazy})], signature.is_array); statics.shown(lazy); statics.shown((lazy,))
        """
    )
    assert run.out == ""


def test_a_function_in_a_librarys_wrapper_is_the_users_under_a_transform(record):
    """It had the line of equinox's own function, ``single  _jit.py:43``."""
    pytest.importorskip("equinox")
    run = record(
        """
        import equinox as eqx, jax, jax.numpy as jnp
        from flax import nnx
        @eqx.filter_jit
        def single(x): return x + 1
        @nnx.jit
        def plain(x): return x * 2
        for f in (single, plain):
            jax.vmap(f)(jnp.ones(3))
            jax.grad(f)(1.0)
            f(jnp.ones(4))
        """
    )
    for name, wrapper in (("single", "equinox.filter_jit"), ("plain", "flax.nnx.jit")):
        (seen,) = [e for e in run.of(ev.FunctionSeen) if e.name == name]
        assert seen.file.endswith("program1.py") and seen.wrappers == [wrapper] and not seen.library
        assert {m.entry for m in run.misses(name)} == {"transform", "call"}
