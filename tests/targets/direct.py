"""Compile the functions of tests/programs/for_targets.py ahead of time for a topology, with JAX alone.

``direct.py TARGET FOLDER [NAME...]`` writes each function's compiled text to FOLDER/NAME.txt. Knows nothing of what it is
compared with but the name of a TPU: ``v5e:4x4``, or ``2*v5e:4x4`` for slices. A GPU's is NAME:TOPOLOGY, the file that
describes it stands in $TARGET_CONFIG, and XLA_FLAGS in the environment.
"""

import os
import sys
from pathlib import Path

os.environ.update(JAX_PLATFORMS="cpu", TPU_SKIP_MDS_QUERY="1", ALLOW_MULTIPLE_LIBTPU_LOAD="1")

import jax
from jax.experimental import topologies

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))
import for_targets


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
    for name, (function, shapes) in for_targets.build(devices).items():
        if names and name not in names:
            continue
        if name == "alone":
            shapes = tuple(jax.ShapeDtypeStruct(s.shape, s.dtype, sharding=alone) for s in shapes)
        compiled = function.lower(*shapes).compile()
        Path(folder, f"{name}.txt").write_text(compiled.runtime_executable().hlo_modules()[0].to_string())


if __name__ == "__main__":
    main(*sys.argv[1:])
