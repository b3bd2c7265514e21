"""What we count is what JAX's own compile log counts."""

import json
import subprocess
import sys
from collections import Counter

import pytest
from folders import PROGRAMS

from jaxscope.schema import events as ev

pytestmark = pytest.mark.capture

# pmap and haiku's transforms give jit a function of their own; JAX's log knows only that one.
NAMES_IN_LOG = {"per_device": "_fun", "pmapped": "_fun", "mapped": "_fun", "net_fn": "apply_fn"}

PROGRAM_NAMES = [
    "captured",
    "donation",
    "effects",
    pytest.param("equinox_train", marks=pytest.mark.long),
    pytest.param("haiku_train", marks=pytest.mark.long),
    pytest.param("many_kinds", marks=pytest.mark.long),
    pytest.param("nnx_train", marks=pytest.mark.long),
    pytest.param("numpyro_nuts", marks=pytest.mark.long),
    pytest.param("optax_train", marks=pytest.mark.long),
    pytest.param("pmap_and_shard_map", marks=pytest.mark.long),
    pytest.param("sharded", marks=pytest.mark.long),
]


def log_counts(program, tmp_path, env):
    out = tmp_path / "counts.json"
    subprocess.run(
        [sys.executable, str(PROGRAMS / "counting.py"), str(out), str(program)],
        check=True,
        env=env,
        capture_output=True,
        timeout=240,
    )
    return json.loads(out.read_text())


@pytest.mark.parametrize("name", PROGRAM_NAMES)
def test_every_lowering_and_compilation_of_a_real_program_is_seen_once(
    name, record_module, tmp_path, clean_env
):
    program = PROGRAMS / f"{name}.py"
    theirs = log_counts(program, tmp_path, clean_env)
    run = record_module(program)

    def of_module(kind):
        return Counter((e.module or "?").removeprefix("jit(").removesuffix(")") for e in run.of(kind))

    assert of_module(ev.Lowered) == Counter({k: v["lowerings"] for k, v in theirs.items() if v["lowerings"]})
    assert of_module(ev.Compiled) == Counter(
        {k: v["compilations"] for k, v in theirs.items() if v["compilations"]}
    )

    users = {e.function: e.name for e in run.of(ev.FunctionSeen) if not e.library and not e.eager}
    outer = {
        e.call: users[e.function]
        for e in run.of(ev.Missed)
        if e.function in users and e.entry in ("call", "aot")
    }
    traced = Counter(
        NAMES_IN_LOG.get(outer[e.call], outer[e.call]) for e in run.of(ev.Traced) if e.call in outer
    )
    for function, count in traced.items():
        assert theirs[function]["traces"] == count, function
    assert traced or name == "numpyro_nuts", "no function of the user's was seen at all"
    assert run.of(ev.RunEnded)


@pytest.mark.long
def test_the_levels_of_92_labelled_misses_agree_with_independent_counters(clean_env):
    script = PROGRAMS.parent.parent / "benchmarks" / "levels.py"
    done = subprocess.run(
        [sys.executable, str(script)], env=clean_env, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stdout
    assert "92 cases" in done.stdout
