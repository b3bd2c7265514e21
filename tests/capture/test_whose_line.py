"""Whose line a compilation is put down to: the user's, wherever Python's own modules or packages run the
work."""

import linecache

import pytest

from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

# Each case compiles for a length of its own, and marks the line that is to be named with it: "# 5".
PROGRAM = """
    import asyncio, concurrent.futures, contextlib, dataclasses, functools, os, sys, threading, time, unittest
    import jax.numpy as jnp
    import numpy as np

    folder = os.path.join(os.getcwd(), "site-packages", "plots_of_somebody")
    os.makedirs(folder)
    with open(os.path.join(folder, "__init__.py"), "w") as f:
        f.write("import jax.numpy as jnp\\ndef draw(x):\\n    return jnp.flip(x)\\n")
        f.write("def each(f, x):\\n    return f(x)\\n")
        f.write("import dataclasses\\n@dataclasses.dataclass\\nclass Plot:\\n    x: object\\n")
        f.write("    def __post_init__(self):\\n        self.drawn = jnp.flip(self.x)\\n")
    sys.path.append(os.path.dirname(folder))
    import plots_of_somebody

    def work(n):
        return jnp.flip(np.ones(n, "float32"))

    @contextlib.contextmanager
    def setting():
        yield

    class Tests(unittest.TestCase):
        @setting()
        def test_one(self):
            jnp.flip(np.ones(5, "float32"))  # 5

        def test_two(self):
            jnp.flip(np.ones(6, "float32"))  # 6

    unittest.main(exit=False, argv=["tests"])

    plots_of_somebody.draw(np.ones(7, "float32"))  # 7
    plots_of_somebody.each(lambda x: jnp.flip(x), np.ones(8, "float32"))  # 8

    def started():
        thread = threading.Thread(target=jnp.flip, args=(np.ones(9, "float32"),))
        thread.start(), thread.join()  # 9

    started()
    thread = threading.Thread(target=lambda: jnp.flip(np.ones(10, "float32")))  # 10
    thread.start()
    thread.join()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pool.submit(jnp.flip, np.ones(11, "float32")).result()  # 11
        list(pool.map(jnp.flip, [np.ones(12, "float32")]))  # 12

    def looped():
        loop = asyncio.new_event_loop()
        loop.call_soon(functools.partial(jnp.flip, np.ones(13, "float32")))
        loop.call_soon(loop.stop)
        loop.run_forever()  # 13
        loop.close()

    looped()

    @dataclasses.dataclass
    class Config:
        rates: object = dataclasses.field(default_factory=functools.partial(jnp.flip, np.ones(14, "float32")))

    Config()  # 14
    plots_of_somebody.Plot(np.ones(16, "float32"))  # 16
    forgotten = threading.Timer(0.1, jnp.flip, (np.ones(15, "float32"),))
    forgotten.start()
    time.sleep(1)
"""


@pytest.fixture(scope="module")
def misses(record_module):
    return record_module(PROGRAM).of(ev.Missed)


@pytest.fixture(scope="module")
def lines(misses):
    """Length -> the user's lines of what was compiled for it, the innermost first."""
    found = {}
    for miss in misses:
        for leaf in miss.key.arguments:
            if leaf.shape:
                found[leaf.shape[0]] = [f for f in (miss.site, *miss.stack) if f is not None]
    return found


CASES = {
    5: "a test under a decorator that contextlib makes",
    6: "a test that unittest runs",
    7: "a package that is installed",
    8: "a function that an installed package calls",
    9: "a thread that is waited for",
    10: "a function that runs in a thread",
    11: "a result that is waited for",
    12: "one of several results that are waited for",
    13: "an event loop",
    14: "the __init__ of a dataclass",
    16: "the __init__ of a dataclass of an installed package",
}


@pytest.mark.parametrize("length", CASES, ids=CASES.values())
def test_the_users_line_is_named(lines, length):
    assert lines[length], "no line is named"
    site = lines[length][0]
    assert linecache.getline(site.file, site.line).rstrip().endswith(f"# {length}")


def test_the_package_behind_a_generated_method_is_named(misses):
    made = [m for m in misses if any(leaf.shape == (16,) for leaf in m.key.arguments)]
    assert {m.library for m in made} == {"plots_of_somebody"}


def test_of_a_thread_that_nobody_waits_for_no_line_is_named(lines):
    assert lines[15] == []


def test_no_line_of_python_or_of_a_package_is_the_users(lines):
    files = {f.file.rpartition("/")[2] for found in lines.values() for f in found}
    assert files == {"program1.py", "<string>"}  # the latter is what started the program


JITTED = """
    import os, sys
    import equinox as eqx, jax, jax.numpy as jnp

    folder = os.path.join(os.getcwd(), "site-packages", "solver_of_somebody")
    os.makedirs(folder)
    with open(os.path.join(folder, "__init__.py"), "w") as f:
        f.write(
            "import equinox, jax\\n"
            "@equinox.filter_jit\\n"
            "def solve(x): return x * 3\\n"
            "class Solver:\\n"
            "    def __init__(self): self.update = jax.jit(self._update)\\n"
            "    def _update(self, x): return x * 2\\n"
            "    def run(self, x): return self.update(x)\\n"
        )
    sys.path.append(os.path.dirname(folder))
    from solver_of_somebody import Solver, solve

    x = jnp.ones(3)
    -x, x @ x
    Solver().run(x)
    jax.jit(Solver().run)(x)
    jax.vmap(solve)(x)
    jax.vmap(eqx.filter_jit(lambda x: jnp.cos(x)))(x)
    jax.jit(jax.nn.gelu)(x)
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.sharding.PartitionSpec("i")
    jax.shard_map(lambda a: jnp.sin(a), mesh=mesh, in_specs=spec, out_specs=spec)(x)  # outside jit
"""


@pytest.fixture(scope="module")
def jitted(record_module):
    return record_module(JITTED)


def test_the_users_functions_are_those_that_the_user_gave_to_jit(jitted):
    users = {f.qualname for f in jitted.of(ev.FunctionSeen) if not f.library and not f.eager}
    assert users == {"Solver.run", "gelu", "<lambda>"}


def test_what_a_shard_map_outside_jit_compiles_is_put_down_to_the_line_that_calls_it(jitted):
    unknown = [m for m in jitted.of(ev.Missed) if m.into_library and m.library == "jax"]
    assert unknown
    for m in unknown:
        at = [m.site, *m.stack][m.into_library]
        assert linecache.getline(at.file, at.line).rstrip().endswith("# outside jit")
