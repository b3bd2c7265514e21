"""Make JAX create as many CPU devices as a target machine (``--target v5e:4x4``) has devices.

The flag is set in the environment variable XLA_FLAGS, not by ``jax_num_cpu_devices``: a number that the
program sets itself, as a flag or as a setting, overrides this flag without an error (JAX 0.10 and 0.12), and
child processes inherit it.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Set the variables in ``env`` that make JAX create ``devices`` CPU devices.

    If ``env`` does not select a platform, JAX is limited to the CPU; otherwise it would use an accelerator.

    Returns:
      ``devices``, or None if ``env`` already sets a number of CPU devices, which is not changed.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
