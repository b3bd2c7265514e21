"""The types of the data in a baseline file: the figures of a run about functions, programs, findings and
transfers.

None means that a figure was unknown when the file was written. An empty field means that there was nothing to
count.
"""

from __future__ import annotations

from jaxscope.model.metrics import Saved, SavedMetrics

SCHEMA = 1


class Function(Saved, frozen=True):
    """The figures of one of the user's functions.

    Attributes:
      traces, lowerings, compilations: how often each phase succeeded; ``compilations`` includes programs
        loaded from the persistent cache.
      causes: main cause of a recompile (``shape of batch['x'] (trace)``) -> number of recompiles with this
        cause.
      programs: the figures of the function's programs (compiled, or only lowered), in the order in which they
        first occurred.
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
      devices: kind of device -> number of devices.
      tolerance: kind of figure -> the share by which such figures may differ: ``"memory": 0.05`` is 5 %.
      functions: name (``file.py::qualified.name``) -> function.
      eager: name of the calling function -> operation outside jit or library function -> number of its
        compilations.
      findings: key of a finding (``JX101 train.py::step batch['x']``) -> number of findings with this key.
      steps: number of steps of the main process; None: steps were not counted.
      transfers: name of the function that requests copies between host and devices -> kind and direction
        (``float, device_to_host``) -> number of copies. None: copies were not counted.
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
