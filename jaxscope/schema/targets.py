"""A target: an accelerator that programs are compiled for, whether or not it is present."""

from __future__ import annotations

import msgspec


class Target(msgspec.Struct, frozen=True):
    """One target, e.g. ``2*v5e:4x4``.

    Attributes:
      name: as people write it, in its normal form.
      machine: its entry in the catalogue of machines.
      platform: what JAX lowers for: ``tpu`` or ``cuda``.
      grid: chips of one slice along each axis of the torus (TPU), or (hosts, GPUs of a host).
      slices: joined by the data-center network; 1 for GPUs.
      devices: of all slices, as JAX counts them.
    """

    name: str
    machine: str
    platform: str
    grid: tuple[int, ...]
    slices: int
    devices: int
