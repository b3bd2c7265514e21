"""What a baseline pins, as data. Knows neither runs nor files.

A part that is None was not known when it was written; an empty one was known to be empty.
"""

from __future__ import annotations

import msgspec

SCHEMA = 1
FLOPS, FUSIONS, MEMORY = "flops", "fusions", "memory"
TOLERANCE = {
    FLOPS: 0.05,
    FUSIONS: 0.05,
    MEMORY: 0.05,
}  # a share of the figure in the baseline; all else is exact


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a baseline: unknown keys are an error, so that a merge gone wrong is seen."""


class Collectives(Facts, frozen=True):
    """The collectives of one kind over the same axes, in one call: how many, how often they run, and
    bytes of their results on one device in all; None where one of them is not known.

    ``within`` counts them by the user's function they come from: that a function is renamed is no
    difference, but it tells which line is new.
    """

    count: int
    executions: int | None = None
    bytes: int | None = None
    within: dict[str, int] = {}


class Program(Facts, frozen=True):
    """One program of a function.

    Attributes:
      arguments: ``batch['x']: f32[64,32] P('data',)`` -> how many; numbers in paths are written ``*``. Says
        why another part is different, and is no difference by itself.
      collectives: by kind and axes, ``all-reduce over data``.
      fusions: ``total``, each kind, and ``unfused`` elementwise operations.
      memory: bytes on one device: ``argument``, ``output``, ``temp``, ``peak``.
      donation: donated arguments by their first name and what became of them: aliased, unused, offered.
      constants: bytes of captured arrays by name.
      upcasts: conversions to a wider dtype, ``bfloat16 to float32``.
      products: matrix products by operands and precision, ``f32 x f32 -> f32, DEFAULT``.
      callbacks: calls into Python by kind.
      loops: by trip count; ``?`` where it is not known.
      flops: ``matrix``: of matrix products and convolutions on one device in one call.
    """

    arguments: dict[str, int] = {}
    collectives: dict[str, Collectives] | None = None
    fusions: dict[str, int] | None = None
    memory: dict[str, int] | None = None
    donation: dict[str, dict[str, int]] | None = None
    constants: dict[str, int] | None = None
    upcasts: dict[str, int] | None = None
    products: dict[str, int] | None = None
    callbacks: dict[str, int] | None = None
    loops: dict[str, int] | None = None
    flops: dict[str, int] | None = None


class Function(Facts, frozen=True):
    """One of the user's functions: how often it was traced, lowered and compiled (from the persistent cache,
    too), the decisive causes of all but the first time (``shape of batch['x'] (trace)``), its programs in the
    order in which they were compiled."""

    traces: int = 0
    lowerings: int = 0
    compilations: int = 0
    causes: dict[str, int] = {}
    programs: list[Program] = []


class Baseline(Facts, frozen=True):
    """A whole file.

    Attributes:
      jaxscope_baseline: the version of its format.
      jax: ``0.10``; None: not recorded.
      devices: kind -> how many.
      functions: by ``file.py::qualified.name``.
      eager: operations compiled one by one outside jit, by the function that calls them.
      findings: ``JX101 train.py::step batch['x']`` -> how many.
      steps: of the main process; None: nothing counted them.
      transfers: copies between host and devices that a function's lines asked for, ``float, device_to_host``;
        None: nobody counted them.
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
