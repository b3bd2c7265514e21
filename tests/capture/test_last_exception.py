"""The log has the exception that ended a program, and none for a program that ended without one or by sys.exit."""

import io
import subprocess
import sys

import pytest

from jaxscope.model.deaths import donors
from jaxscope.model.load import load
from jaxscope.report.json_report import as_json
from jaxscope.report.text import print_report, summary
from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture


def test_the_call_that_donated_a_deleted_array_is_found(record):
    run = record(
        """
        import jax, jax.numpy as jnp, functools
        @functools.partial(jax.jit, donate_argnums=0)
        def update(w, g): return w - g
        def main():
            w, g = jnp.ones((4, 4)), jnp.ones((4, 4))
            update(w, g)
            print(w.sum())
        main()
        """,
        check=False,
    )
    assert run.code == 1 and "Array has been deleted" in run.err
    [died] = run.of(ev.Died)
    assert died.error == "RuntimeError" and died.stack[0].function == "main"
    [(c, path)] = donors(load(run.run), died.message)
    assert (c.function.name, path) == ("update", "w")


def test_an_end_of_its_own_will_is_no_death(record):
    assert record("import jax, sys; sys.exit(3)", check=False).of(ev.Died) == []
    assert record("import jax").of(ev.Died) == []


def test_an_exception_that_cannot_be_reported_costs_its_message_only(record):
    run = record(
        """
        import jax
        class Odd(Exception):
            def __str__(self): raise ValueError("no")
        raise Odd
        """,
        check=False,
    )
    [died] = run.of(ev.Died)
    assert (died.error, died.message) == ("Odd", "")


WORDS = "JAX has no jax.sharding.Shard: write x.addressable_shards, whose elements are the shards"


def test_the_first_line_of_summary_and_report_replaces_a_removed_name(record):
    run = record(
        """
        import jax, jax.numpy as jnp
        jax.jit(lambda x: x * 2)(jnp.ones(2))
        jax.sharding.Shard
        """,
        check=False,
    )
    out = io.StringIO()
    print_report(load(run.run), file=out)
    assert " ".join(out.getvalue().split()).startswith(f"{WORDS} ")
    found = as_json(load(run.run))["run"]["died"]["removed_name"]
    assert (found["name"], found["version"]) == ("jax.sharding.Shard", "never")
    assert " ".join(summary(run.run).split()).startswith(f"jaxscope: {WORDS} ")


def test_a_removed_name_that_is_imported_is_replaced_too(tmp_path, clean_env):
    (tmp_path / "old.py").write_text("from jax.sharding import Shard\n")
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "old.py"],
        cwd=tmp_path,
        env=clean_env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and f"jaxscope: {WORDS}\n  the program ended with" in done.stderr, done.stderr
