"""Decide how many bytes of memory are worth a finding. The limit is a share of the memory of one device.

If the size of a device's memory is unknown, as on a CPU, the memory of the smallest accelerator in
``analysis.machines`` is assumed.
"""

from __future__ import annotations

from jaxscope.analysis import memory_fit
from jaxscope.model import devices, target_programs
from jaxscope.model.records import Process, Program
from jaxscope.model.run import Run

WORTH_A_NOTE = 1 / 1024  # share of a device's memory: fewer unneeded bytes are not reported
WORTH_A_WARNING = 1 / 256
ASSUMED = 16 << 30  # bytes of memory of a TPU v5e


def of_process(process: Process | None) -> int:
    """Return the bytes of memory of the smallest device of ``process``; ``ASSUMED`` if no device states a
    limit."""
    stated = devices.capacities(process) if process is not None else {}
    return min(stated.values(), default=ASSUMED)


def of_program(run: Run, p: Program) -> int:
    """Return the bytes of memory of one device that ``p`` runs on, or was compiled for; ``ASSUMED`` if that
    is unknown."""
    if p.target_lowered is None:  # no target
        return devices.stated_capacity(p.compilations[-1]) or ASSUMED
    target = target_programs.target_of(run, p)
    usable = memory_fit.capacity_of(target) if target is not None else None
    return usable if usable is not None else ASSUMED
