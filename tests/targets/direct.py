"""Compile the functions of tests/programs/for_targets.py ahead of time for a topology, with JAX alone.

``direct.py TARGET FOLDER [NAME...]`` writes each function's compiled text to FOLDER/NAME.txt; the name ``sample`` is the
step of samples/train_sharded.py, from the shapes it makes. Knows nothing of what it is
compared with but the name of a TPU: ``v5e:4x4``, or ``2*v5e:4x4`` for slices. A GPU's is NAME:TOPOLOGY, the file that
describes it stands in $TARGET_CONFIG, and XLA_FLAGS in the environment.
"""

import os
import sys
from pathlib import Path

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")

import jax
import numpy as np
from jax.experimental import topologies

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
sys.path.insert(0, str(Path(__file__).parents[2] / "samples"))
import for_targets
import train_sharded


def sample(devices):
    """As ``main`` of the sample jits its step, with the shapes that it makes arrays of."""
    grid = jax.sharding.Mesh(np.array(devices).reshape(-1, 4), ("data", "model"))

    def shape(dtype, dims, *spec):
        where = jax.sharding.NamedSharding(grid, jax.sharding.PartitionSpec(*spec))
        return jax.ShapeDtypeStruct(dims, dtype, sharding=where)

    v, w, n = train_sharded.VOCABULARY, train_sharded.WIDTH, train_sharded.LAYERS
    params = {
        "embed": shape("bfloat16", (v, w), None, "model"),
        "query": shape("bfloat16", (n, w, w), None, None, "model"),
        "value": shape("bfloat16", (n, w, w), None, None, "model"),
        "up": shape("bfloat16", (n, w, 4 * w), None, None, "model"),
        "down": shape("bfloat16", (n, 4 * w, w), None, "model", None),
    }
    out = jax.tree.map(lambda p: p.sharding, params), shape("f4", ()).sharding
    step = jax.jit(train_sharded.train_step, donate_argnums=0, out_shardings=out)
    return step, (params, shape("int32", (2 * grid.devices.shape[0], train_sharded.LENGTH), "data", None))


def main(target, folder, *names):
    if "TARGET_CONFIG" in os.environ:
        name, _, topology = target.partition(":")
        config = Path(os.environ["TARGET_CONFIG"]).read_text()
        found = topologies.get_topology_desc(name, platform="cuda", target_config=config, topology=topology)
    else:
        slices, _, grid = target.rpartition("*")
        more = {"num_slices": int(slices)} if slices else {}
        found = topologies.get_topology_desc(grid, platform="tpu", **more)
    devices = found.devices
    alone = jax.sharding.SingleDeviceSharding(devices[0])
    programs = {**for_targets.build(devices), **({"sample": sample(devices)} if "sample" in names else {})}
    for name, (function, shapes) in programs.items():
        if names and name not in names:
            continue
        if name == "alone":
            shapes = tuple(jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=alone) for s in shapes)
        compiled = function.lower(*shapes).compile()
        Path(folder, f"{name}.txt").write_text(compiled.runtime_executable().hlo_modules()[0].to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
