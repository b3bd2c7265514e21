"""The data that a baseline file keeps: functions, their programs, findings, transfers.

None in a field: it was not known when the file was written; an empty value was known to be empty.
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
      jaxscope_baseline: the version of its format.
      jax: ``0.10``; None: not recorded.
      devices: kind -> count.
      tolerance: metric -> the share by which its figures may differ.
      functions: the functions, by ``file.py::qualified.name``.
      eager: number of compilations of operations outside jit, by calling function and operation.
      findings: ``JX101 train.py::step batch['x']`` -> count.
      steps: number of steps of the main process; None: steps were not counted.
      transfers: copies between host and devices that a function's lines request, ``float, device_to_host``;
        None: they were not counted.
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
