"""Make JAX create as many CPU devices as a target machine (``--target v5e:4x4``) has devices.

XLA's flag for this is put into the environment variable XLA_FLAGS, and ``jax_num_cpu_devices`` is not used:
if the program itself sets a number, as a flag or as a setting, its number is used without an error (JAX 0.10
and 0.12). Child processes inherit the variable.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Set the variables in ``env`` that make JAX create ``devices`` CPU devices, and return ``devices``. If
    ``env`` already sets a number of CPU devices, change nothing and return None. If ``env`` does not select a
    platform, JAX is limited to the CPU; otherwise JAX would use an accelerator."""
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
