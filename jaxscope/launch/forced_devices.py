"""Make JAX create as many CPU devices as a target machine (``--target v5e:4x4``) has devices.

XLA's flag for this is put into the environment variable XLA_FLAGS, and not JAX's setting
``jax_num_cpu_devices``: with the flag, a program may set a number of its own, by either of the two, and gets
that number without an error (JAX 0.10 and 0.12). Child processes inherit the variable.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Set the variables in ``env`` that make JAX create ``devices`` CPU devices, and return ``devices``.
    Return None if ``env`` sets a number of CPU devices already, which is kept.

    If ``env`` selects no platform, JAX is limited to the CPU in both cases, because it would use an
    accelerator of this machine if there is one.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
