"""The log has the exception that ended a program, and none for a program that ended without one or by sys.exit."""

import io
import subprocess
import sys

import pytest

from jaxscope.log.store import RunDir
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


@pytest.mark.subprocess
def test_the_exception_is_in_the_log_before_jax_waits_at_its_exit_where_the_process_may_be_killed(
    tmp_path, clean_env
):
    killed = "import atexit, os\natexit.register(os.kill, os.getpid(), 9)\n"  # after what is registered later
    (tmp_path / "p.py").write_text(f"{killed}import jax\njax.numpy.ones(3)\nraise ValueError\n")
    argv = [sys.executable, "-m", "jaxscope", "run", "-q", "--no-tui", "-o", "run", "p.py"]
    assert subprocess.run(argv, cwd=tmp_path, env=clean_env, stderr=subprocess.DEVNULL).returncode == -9
    main = load(RunDir(tmp_path / "run")).main
    assert main.died.error == "ValueError" and main.ended is None


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


SHARD = "JAX has no jax.sharding.Shard: write x.addressable_shards, whose elements are the shards"
WITH_MESH = "with mesh: sets no mesh for this call (deprecated in JAX 0.10.1): write with jax.set_mesh(mesh):"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("jax.sharding.Shard", SHARD),
        (
            "x.device()",
            "Array.device() was removed in JAX 0.4.27: write x.devices(), or x.device without parentheses",
        ),
        (
            """
        from jax.experimental.pjit import pjit
        pjit(lambda x: x, in_axis_resources=None)
            """,
            "jax.experimental.pjit.pjit(in_axis_resources=) was removed in JAX 0.4.14: write in_shardings",
        ),
        (
            "jax.distributed.initialize('localhost:1', 1, 0, communication='nccl')",
            "JAX has no jax.distributed.initialize(communication=): write nothing: JAX chooses how processes"
            " communicate",
        ),
        (
            """
        from jax.sharding import Mesh, PartitionSpec as P
        def main():
            return jax.shard_map(lambda x: x + 1, in_specs=P("data"), out_specs=P("data"))(x)
        mesh = Mesh(jax.devices(), "data")
        with mesh:
            main()
            """,
            WITH_MESH,
        ),
        (
            """
        from jax.sharding import Mesh, PartitionSpec as P
        with Mesh(jax.devices(), "data"):
            jax.device_put(x, P("data"))
            """,
            WITH_MESH,
        ),
    ],
    ids=["shard", "device", "pjit", "distributed", "with-mesh-shard_map", "with-mesh-device_put"],
)
def test_the_first_line_of_summary_and_report_replaces_what_jax_does_not_have(record, body, words):
    """With a program that compiled before, whose source may be read because it is in the run's project."""
    run = record(
        f"""
        import jax, jax.numpy as jnp
        x = jnp.ones(2)
        jax.jit(lambda x: x * 2)(x)
        {body.strip()}
        """,
        check=False,
    )
    assert run.code == 1, run.err
    out = io.StringIO()
    print_report(load(run.run), file=out)
    assert " ".join(out.getvalue().split()).startswith(f"{words} ")
    found = as_json(load(run.run))["run"]["died"]["removed_name"]
    assert f"{found['name']}" in words and found["deprecated"] == (words == WITH_MESH)
    assert " ".join(summary(run.run).split()).startswith(f"jaxscope: {words} ")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("from jax.sharding import Shard", SHARD),
        (
            "import jax\njax.jit(print, in_axis_resources=None)",
            "JAX has no jax.jit(in_axis_resources=): write in_shardings",
        ),
    ],
)
def test_what_ends_a_program_before_anything_is_compiled_is_replaced_too(program, words, tmp_path, clean_env):
    (tmp_path / "old.py").write_text(f"{program}\n")
    (tmp_path / "elsewhere").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", str(tmp_path / "old.py")],
        cwd=tmp_path / "elsewhere",  # its source is known by the checksum in the run
        env=clean_env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1 and f"jaxscope: {words}\n  the program ended with" in done.stderr, done.stderr
