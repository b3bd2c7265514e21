"""Make JAX create as many CPU devices as a target machine (``--target v5e:4x4``) has devices.

jaxscope sets a flag in the environment variable XLA_FLAGS, which child processes inherit, and not JAX's
setting ``jax_num_cpu_devices``. The program can then still set another number by this flag or this setting,
without an error (JAX 0.10 and 0.12).
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def set_cpu_devices(env: dict[str, str], devices: int) -> int | None:
    """Set variables in ``env`` that make JAX create ``devices`` CPU devices, and return ``devices``. If
    ``env`` already sets a number of CPU devices, keep it and return None. In both cases, if ``env`` selects
    no platform, limit JAX to the CPU, so that no accelerator of this machine is used."""
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
