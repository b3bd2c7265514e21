"""The data in a baseline file: functions, their programs, findings, transfers.

A field that is None was unknown when the file was written. An empty field was known to be empty.
"""

from __future__ import annotations

from jaxscope.model.metrics import Saved, SavedMetrics

SCHEMA = 1


class Function(Saved, frozen=True):
    """One of the user's functions.

    Attributes:
      traces, lowerings, compilations: how often each phase ran, including programs loaded from the
        persistent cache.
      causes: the decisive causes of all but the first compilation, ``shape of batch['x'] (trace)`` -> count.
      programs: the programs, in the order in which they were compiled.
    """

    traces: int = 0
    lowerings: int = 0
    compilations: int = 0
    causes: dict[str, int] = {}
    programs: list[SavedMetrics] = []


class Baseline(Saved, frozen=True):
    """The contents of a baseline file.

    Attributes:
      jaxscope_baseline: the version of the file format.
      jax: JAX's minor version, ``0.10``; None: not recorded.
      platform: ``cpu``, ``gpu`` or ``tpu``.
      devices: kind -> count.
      tolerance: metric -> the share by which its figures may differ: ``"memory": 0.05``.
      functions: the functions, by ``file.py::qualified.name``.
      eager: number of compilations of operations outside jit, by calling function, then by operation.
      findings: ``JX101 train.py::step batch['x']`` -> count.
      steps: number of steps of the main process; None: steps were not counted.
      transfers: number of copies between host and devices, by the function that requests them, then by kind
        and direction: ``float, device_to_host``; None: they were not counted.
    """

    jaxscope_baseline: int = SCHEMA
    jax: str | None = None
    platform: str | None = None
    devices: dict[str, int] = {}
    tolerance: dict[str, float] = {}
    functions: dict[str, Function] = {}
    eager: dict[str, dict[str, int]] = {}
    findings: dict[str, int] = {}
    steps: int | None = None
    transfers: dict[str, dict[str, int]] | None = None
