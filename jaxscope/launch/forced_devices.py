"""Make JAX create as many CPU devices as a target machine (``--target v5e:4x4``) has devices.

This is done by XLA's flag in the environment variable XLA_FLAGS, not by JAX's setting
``jax_num_cpu_devices``. With the flag, a program may set another number, by either of the two, and gets that
number without an error (JAX 0.10 and 0.12). Child processes inherit the variable.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Set the variables in ``env`` that make JAX create ``devices`` CPU devices, and return ``devices``. If
    ``env`` already sets a number of CPU devices, keep that number and return None.

    If ``env`` selects no platform, JAX is limited to the CPU in both cases, because otherwise it would use an
    accelerator of this machine.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
