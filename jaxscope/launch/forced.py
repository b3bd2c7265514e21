"""CPU devices in the place of a machine that is not there: what the program's environment says to JAX.

XLA_FLAGS and not ``jax_num_cpu_devices``: whatever the script sets itself, as a flag or as a setting, wins over
this flag without an error (JAX 0.10 and 0.12), and child processes inherit it.
"""

from __future__ import annotations

import importlib.metadata

FLAG = "--xla_force_host_platform_device_count"
SETTING = "JAX_NUM_CPU_DEVICES"
# XLA ends a process whose devices do not all come to a collective within 40 s of the first ("Termination timeout for
# all reduce"): hundreds of devices on a few busy cores are later than that without anything being wrong.
PATIENCE = "--xla_cpu_collective_call_terminate_timeout_seconds"
PATIENCE_S = 1200


def force(env: dict[str, str], devices: int) -> int | None:
    """Ask for ``devices`` CPU devices in ``env``. None, and nothing changed, where it asks for a number already.

    JAX is kept to the CPU unless the environment says otherwise: it would take a real accelerator first.
    """
    env.setdefault("JAX_PLATFORMS", "cpu")
    if FLAG in env.get("XLA_FLAGS", "") or env.get(SETTING):
        return None
    flags = [env.get("XLA_FLAGS", ""), f"{FLAG}={devices}"]
    if PATIENCE not in flags[0] and _has_patience():
        flags.append(f"{PATIENCE}={PATIENCE_S}")
    env["XLA_FLAGS"] = " ".join(flags).strip()
    return devices


def _has_patience() -> bool:
    """Does this jaxlib know that flag? One that does not would end the process: read in those of 0.10 to 0.12."""
    try:
        major, minor = importlib.metadata.version("jaxlib").split(".")[:2]
        return (int(major), int(minor)) >= (0, 10)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return False
