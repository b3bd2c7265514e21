"""Advice that is followed to the letter: the finding is gone, the program still runs, and nothing new is
found.

All programs run in one recorded process, and once more as the advice has them in another.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap

import pytest

from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry

pytestmark = [pytest.mark.capture, pytest.mark.costly, pytest.mark.long]

RUNNER = """
import runpy
from pathlib import Path
for program in sorted(Path(__file__).parent.glob("p_*.py")):
    runpy.run_path(str(program), run_name="__main__")
"""

# Name: code of the finding, program, and how the advice's words become the program: (what is written, what of
# it is replaced). "{jitted}" is what the advice says after "as in".
PROGRAMS = {
    "haiku_init": (
        "JX133",
        """
        import haiku as hk, jax, jax.numpy as jnp

        def net(x, training):
            x = jax.nn.relu(hk.Linear(7)(x))
            if training:
                x = hk.dropout(hk.next_rng_key(), 0.2, x)
            return hk.Linear(2)(hk.BatchNorm(True, True, 0.9)(x, training))

        f = hk.transform_with_state(net)
        params, state = f.init(jax.random.PRNGKey(0), jnp.ones((4, 6)), True)
        """,
        "f.init(",
        "{jitted}(",
    ),
    "haiku_init_by_name": (
        "JX133",
        """
        import haiku as hk, jax, jax.numpy as jnp

        def net(x, mode):
            x = jax.nn.gelu(hk.Linear(9)(x) * 2 - 1) if mode == "train" else x
            return hk.Linear(3)(hk.LayerNorm(-1, True, True)(x))

        f = hk.transform(net)
        params = f.init(jax.random.PRNGKey(0), jnp.ones((4, 5)), mode="train")
        """,
        "f.init(",
        "{jitted}(",
    ),
    "linen_init": (
        "JX133",
        """
        import flax.linen as nn, jax, jax.numpy as jnp

        class Net(nn.Module):
            @nn.compact
            def __call__(self, x, train):
                x = nn.BatchNorm(use_running_average=not train)(nn.Dense(11)(x))
                return nn.Dense(3)(nn.LayerNorm()(jnp.tanh(x) * 3 - x))

        net = Net()
        variables = net.init(jax.random.key(0), jnp.ones((4, 13)), train=True)
        """,
        "net.init(",
        "{jitted}(",
    ),
    "package_that_reads": (
        "JX133",
        """
        import os, sys
        import jax.numpy as jnp, numpy as np

        sys.path.append(os.path.join(os.path.dirname(__file__), "site-packages"))
        import plots_of_somebody as plots

        x = jnp.ones(29)
        plots.draw(x)
        """,
        "plots.draw(x)",
        "plots.draw(np.asarray(x))",
    ),
    "mutable_self": (
        "JX108",
        """
        import functools, jax, jax.numpy as jnp

        class Trainer:
            def __init__(self):
                self.w = jnp.ones((5, 5))
                self.rate = 0.1

            def fit(self, data):
                for x in data:
                    self.w = self.apply(self.w, x, self.rate)
                    self.rate *= 0.9

            @functools.partial(jax.jit, static_argnums=0)
            def apply(self, w, g, rate):
                return w - rate * g

        for _ in range(2):
            Trainer().fit([jnp.ones((5, 5))] * 3)
        """,
        None,
        """
        import functools, jax, jax.numpy as jnp

        @jax.jit
        def apply(w, g, rate):
            return w - rate * g

        class Trainer:
            def __init__(self):
                self.w = jnp.ones((5, 5))
                self.rate = 0.1

            def fit(self, data):
                for x in data:
                    self.w = apply(self.w, x, self.rate)
                    self.rate *= 0.9

        for _ in range(2):
            Trainer().fit([jnp.ones((5, 5))] * 3)
        """,
    ),
    "object_that_never_changes": (
        "JX108",
        """
        import functools, jax, jax.numpy as jnp

        class Config:
            def __init__(self, width):
                self.width = width

        @functools.partial(jax.jit, static_argnums=1)
        def forward(x, config):
            return x * config.width

        for _ in range(3):
            forward(jnp.ones(17), Config(4))
        """,
        None,
        """
        import dataclasses, functools, jax, jax.numpy as jnp

        @dataclasses.dataclass(frozen=True)
        class Config:
            width: int

        @functools.partial(jax.jit, static_argnums=1)
        def forward(x, config):
            return x * config.width

        for _ in range(3):
            forward(jnp.ones(17), Config(4))
        """,
    ),
    "new_function": (
        "JX110",
        """
        import jax, jax.numpy as jnp

        def check_one(n):
            @jax.jit
            @jax.value_and_grad
            def run(x):
                return (x * n).sum()
            return run(jnp.ones(19))

        def check_two():
            @jax.jit
            def run(x):
                return x
            vag = jax.value_and_grad(run)
            return run

        for n in range(3):
            check_one(n)
        """,
        None,
        """
        import jax, jax.numpy as jnp

        @jax.jit
        @jax.value_and_grad
        def run(x, n):
            return (x * n).sum()

        for n in range(3):
            run(jnp.ones(19), n)
        """,
    ),
    "ordinary_number_through_nnx": (
        "JX101",
        """
        import numpy as np
        from flax import nnx

        @nnx.jit
        def step(model, x, rate):
            return (model.kernel[...] * rate).sum() + x.sum()

        model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
        for i, n in enumerate((8, 8, 8, 3)):
            step(model, np.ones(n, "float32"), 0.1 / (i + 1))
        """,
        "np.ones(n",
        "np.ones(8",
    ),
}
# Nothing is to be changed in these.
QUIET = {
    "refs": """
        import jax, jax.numpy as jnp

        @jax.jit
        def step(ref, x):
            ref[...] = ref[...] * 0.9 + x.mean()
            return x.sum()

        r, x = jax.new_ref(jnp.ones((28, 28))), jnp.ones(28)
        for _ in range(6):
            step(r, x)
        """,
    "check_that_never_fails": """
        import equinox as eqx, jax, jax.numpy as jnp

        @jax.jit
        def f(x):
            return jnp.sqrt(eqx.error_if(x, x < 0, "negative"))

        for _ in range(3):
            f(jnp.float32(2))
        """,
}
WORDS = {
    "haiku_init": "jitted = jax.jit(f.init, static_argnums=2)",
    "haiku_init_by_name": "jitted = jax.jit(f.init, static_argnames='mode')",
    "linen_init": "jitted = jax.jit(net.init, static_argnames='train')",
    "package_that_reads": "if plots_of_somebody only reads the arrays, pass NumPy arrays (np.asarray)",
    "mutable_self": "move apply out of the class, and remove its parameter self. Pass the values that it reads from self as arguments instead",
    "object_that_never_changes": "a @dataclasses.dataclass(frozen=True) with fields instead of __init__",
    "new_function": "define the function once, outside the function or loop that defines it again, and apply jax.value_and_grad and jit",
    "ordinary_number_through_nnx": "or pad x to [8] like the other batches",
}


def recorded(folder, env, programs):
    """The findings by program, after all of them ran in one process."""
    package = folder / "site-packages" / "plots_of_somebody"
    package.mkdir(parents=True)
    for name, text in programs.items():
        (folder / f"p_{name}.py").write_text(textwrap.dedent(text))
    (folder / "run_all.py").write_text(RUNNER)
    (package / "__init__.py").write_text("def draw(x):\n    return [x[n:] * 2 for n in range(1, 25)]\n")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--ir", "stablehlo", "-o", "recorded", "run_all.py"],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    found = {name: [] for name in programs}
    for f in registry.findings(load(RunDir(folder / "recorded"))):
        name = f.source.file.rpartition("/p_")[2].removesuffix(".py") if f.source else "?"
        found.setdefault(name, []).append(f)
    return found


@pytest.fixture(scope="module")
def found(made_once, clean_env):
    """(findings of the programs, of the programs as the advice has them), by program."""

    def make(folder):
        programs = {name: p[1] for name, p in PROGRAMS.items()}
        before = recorded(folder / "before", clean_env, {**programs, **QUIET})
        after = {}
        for name, (code, program, written, instead) in PROGRAMS.items():
            fix = next((words.fix_text(f) for f in before[name] if f.code == code), "")
            jitted = re.search(r"jitted = (.*?\))(?:, and| \(with)", fix)
            if written is None:
                after[name] = instead
            else:
                after[name] = program.replace(written, instead.format(jitted=jitted[1] if jitted else "?"))
        return before, recorded(folder / "after", clean_env, after)

    return made_once("literal advice", make)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_is_advised_in_these_words(found, name):
    code = PROGRAMS[name][0]
    assert [f.code for f in found[0][name]] == [code]
    assert WORDS[name] in words.fix_text(found[0][name][0])


@pytest.mark.parametrize("name", QUIET)
def test_where_there_is_nothing_to_change_nothing_is_found(found, name):
    assert [words.title(f) for f in found[0][name]] == []


@pytest.mark.parametrize("name", PROGRAMS)
def test_where_the_advice_is_followed_nothing_is_found(found, name):
    assert [words.title(f) for f in found[1][name]] == []


def test_the_line_named_is_one_that_ran(found):
    [f] = found[0]["new_function"]
    assert "jax.value_and_grad(...) was applied again at p_new_function.py:5" in words.title(f)
