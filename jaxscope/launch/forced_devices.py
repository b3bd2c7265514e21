"""CPU devices in the place of a machine that is not there: what the program's environment says to JAX.

XLA_FLAGS and not ``jax_num_cpu_devices``: whatever the script sets itself, as a flag or as a setting, wins over
this flag without an error (JAX 0.10 and 0.12), and child processes inherit it.
"""

from __future__ import annotations

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"


def force(env: dict[str, str], devices: int) -> int | None:
    """Ask for ``devices`` CPU devices in ``env``. None, and nothing changed, where it asks for a number already.

    JAX is kept to the CPU unless the environment says otherwise: it would take a real accelerator first.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    env["XLA_FLAGS"] = f"{env.get('XLA_FLAGS', '')} {FLAG}={devices}".strip()
    return devices
