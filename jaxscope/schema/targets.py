"""A target: accelerators that programs are compiled for, whether or not the accelerators are present."""

from __future__ import annotations

import msgspec


class Target(msgspec.Struct, frozen=True):
    """One target: the accelerators that a program is compiled for. Example: ``2*v5e:4x4``, two TPU slices.

    Attributes:
      name: the name, always written in the same way: ``2*v5e:4x4``.
      machine: the key of the accelerator in the catalog ``analysis.machines``: ``v5e``.
      platform: the platform for which JAX lowers: ``tpu`` or ``cuda``.
      grid: chips of one slice along each axis of the torus (TPU), or (hosts, GPUs of a host).
      slices: number of slices, which the data-center network connects; 1 for GPUs.
      devices: number of JAX devices in all slices.
    """

    name: str
    machine: str
    platform: str
    grid: tuple[int, ...]
    slices: int
    devices: int
