"""Force CPU devices in place of the devices of a target, in the environment of the program.

XLA_FLAGS and not ``jax_num_cpu_devices``: whatever the script sets itself, as a flag or as a setting, wins
over this flag without an error (JAX 0.10 and 0.12), and child processes inherit it.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Set ``devices`` CPU devices in ``env``. If ``env`` already sets a number, do not change it and return
    None.

    Unless the environment selects a platform, JAX is limited to the CPU; otherwise it would use a real
    accelerator.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
