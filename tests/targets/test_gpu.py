"""With JAX's CUDA plugin and nvcc installed: a run on CPU devices gives the GPU program that compiling for it gives.

Where they are not installed these tests say so and are skipped: pip install 'jaxscope[gpu]'.
"""

import subprocess
import sys

import pytest
from beside import PROGRAM, directly, made_of

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.targets import gpus

pytestmark = pytest.mark.capture
needs_plugin = pytest.mark.skipif(
    gpus.plugin() is None,
    reason="no GPU compiler is installed, nothing can be compiled for a GPU: pip install 'jaxscope[gpu]'",
)


@needs_plugin
@pytest.mark.usefixtures("one_compiler")
@pytest.mark.parametrize("target, topology, devices", [("h100:8", "1x1x8", 8), ("a100:2x8", "1x2x8", 16)])
def test_a_run_on_cpu_devices_gives_the_program_that_compiling_for_the_gpus_gives(
    tmp_path, clean_env, target, topology, devices
):
    where = tmp_path / "run"
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", "run", "-q", "--out", str(where), "--target", target, "--wait-targets",
         str(PROGRAM)],
        env=clean_env, cwd=tmp_path, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    directory = store.RunDir(where)
    ours = {p.function.seen.name: p for p in load(directory).retargeted.values()}
    assert set(ours) == {"train_step", "reduce_rows", "experts", "pipeline", "alone"} and {
        p.state for p in ours.values()
    } == {"ok"}
    name = target.partition(":")[0]
    config = tmp_path / "card.txtpb"
    config.write_text(gpus.config(gpus.CARDS[name]))
    env = {**clean_env, "TARGET_CONFIG": str(config), "XLA_FLAGS": gpus.flags("")}
    for function, text in directly(f"{name}:{topology}", tmp_path, env).items():
        assert made_of(directory.text(ours[function].texts["hlo"]), devices) == made_of(text, devices)


def test_flags_that_the_user_gave_are_not_given_again():
    assert gpus.flags("--xla_gpu_autotune_level=2 --xla_x").split()[:2] == [
        "--xla_gpu_autotune_level=2",
        "--xla_x",
    ]
    assert gpus.flags("--xla_gpu_autotune_level=2").count("autotune") == 1
    assert "--xla_gpu_autotune_level=0" in gpus.flags("")


@pytest.mark.parametrize("name", gpus.CARDS)
def test_each_card_in_the_catalog_is_described_to_the_compiler(name):
    from jaxscope.analysis import machines

    card, machine = gpus.CARDS[name], machines.MACHINES[name]
    assert f"device_memory_size: {card.memory}" in gpus.config(card)
    assert card.memory == machine.usable.value
    assert abs(card.bandwidth / machine.hbm.value - 1) < 0.01
