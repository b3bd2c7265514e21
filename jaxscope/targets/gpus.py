"""Descriptions of GPUs, which XLA's compiler needs to compile for a GPU that this machine does not have.

The figures are those of XLA's own specifications of the cards:
https://github.com/openxla/xla/tree/main/xla/backends/gpu/target_config/specs (h100_sxm, a100_sxm_80).
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import msgspec

PLUGINS = ("jax_cuda13_plugin", "jax_cuda12_plugin")


class Card(msgspec.Struct, frozen=True):
    """Figures of one GPU.

    Attributes:
      name: the name of the card, as the driver states it.
      capability: compute capability, as (major, minor).
      multiprocessors: number of streaming multiprocessors.
      lanes: floating-point units per multiprocessor.
      clock: clock rate in GHz.
      shared: bytes of shared memory per multiprocessor.
      block: bytes of shared memory that one CUDA thread block can use.
      cache: bytes of the second-level cache.
      bandwidth: the bandwidth of the memory, bytes per second.
      memory: bytes of memory.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    lanes: int
    clock: float
    shared: int
    block: int
    cache: int
    bandwidth: int
    memory: int


CARDS = {
    "h100": Card(
        "NVIDIA H100 80GB HBM3", (9, 0), 132, 128, 1.98, 233472, 232448, 52428800, 3352320000000, 84942979072
    ),
    "a100": Card(
        "NVIDIA A100-SXM4-80GB", (8, 0), 108, 64, 1.41, 167936, 166912, 41943040, 2039040000000, 85100068864
    ),
}


def config(card: Card) -> str:
    """Return a description of the GPU ``card`` for XLA: a ``GpuTargetConfigProto`` in text form."""
    return f"""
platform_name: "CUDA"
device_description_str: "{card.name}"
dnn_version_info {{ major: 9 minor: 10 patch: 0 }}
gpu_device_info {{
  cuda_compute_capability {{ major: {card.capability[0]} minor: {card.capability[1]} }}
  core_count: {card.multiprocessors}
  fpus_per_core: {card.lanes}
  clock_rate_ghz: {card.clock}
  threads_per_warp: 32
  threads_per_block_limit: 1024
  threads_per_core_limit: 2048
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
  shared_memory_per_block: 49152
  shared_memory_per_block_optin: {card.block}
  shared_memory_per_core: {card.shared}
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  l2_cache_size: {card.cache}
  memory_bandwidth: {card.bandwidth}
  device_memory_size: {card.memory}
}}
"""


def plugin() -> str | None:
    """Return the module name of JAX's CUDA plugin: ``jax_cuda12_plugin``. None if the plugin or the nvcc
    wheel is not installed, so that no program can be compiled for GPUs."""
    found = next((name for name in PLUGINS if importlib.util.find_spec(name) is not None), None)
    return found if found is not None and tools() is not None else None


def tools() -> Path | None:
    """Return the folder of the installed nvcc wheel, which contains ptxas and libdevice; None if the wheel is
    not installed."""
    spec = importlib.util.find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        for name in ("cuda_nvcc", "cu13"):
            folder = Path(place) / name
            if (folder / "bin" / "ptxas").is_file():
                return folder
    return None


def flags(xla_flags: str) -> str:
    """Return ``xla_flags``, a value of the environment variable XLA_FLAGS, with the flags that compiling for
    an absent GPU needs: no autotuning, and the folder of ptxas. Flags in ``xla_flags`` are not overridden."""
    found = xla_flags.split()
    folder = tools()
    # Autotuning measures kernels on a GPU, which need not exist here.
    wanted = {"--xla_gpu_autotune_level": "0"}
    if folder is not None:
        wanted["--xla_gpu_cuda_data_dir"] = os.fspath(folder)
    found += [
        f"{name}={value}" for name, value in wanted.items() if not any(f.startswith(name) for f in found)
    ]
    return " ".join(found)
