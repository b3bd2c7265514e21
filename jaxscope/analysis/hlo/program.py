"""Analyze the HLO of one compiled program: compute all figures that the report shows from it.

``analyze`` never raises. A part that cannot be read is listed in ``problems``, and its figures are None or
empty.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis.hlo import (
    aliases,
    batched_branches,
    branches,
    collectives,
    cost,
    cycles,
    fusions,
    gathered_work,
    loops,
    recomputed,
    traffic,
)
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.axes import Axes
from jaxscope.analysis.hlo.axes import text as axes_text
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.frames import Frames
from jaxscope.analysis.hlo.lexing import attributes, number
from jaxscope.analysis.hlo.module import Module, Problem
from jaxscope.analysis.hlo.reader import read


class Program(msgspec.Struct, frozen=True):
    """The figures of one compiled program. All bytes and flops are for one device.

    Attributes:
      module: the name after ``HloModule``; None: the text has none.
      num_partitions, replica_count: the numbers in the module's header, 1 if it does not state them; None if
        the text has no header or could not be analyzed.
      scheduled: whether the order of the text is the order of execution.
      mesh: (axis, size) of the mesh to which the axes of the collectives refer: the one that was passed, else
        the one that the text prints; None if there is neither.
      instructions, computations: their number in the whole text; 0: the text could not be read.
      unfused_elementwise: number of elementwise operations outside of fusions, without scalars.
      custom_calls: target of a custom call -> number of such instructions that run, not of executions.
      memory: the inputs and outputs, and which outputs reuse the memory of inputs.
      wire_by_axes: mesh axes -> lower and upper bound of the bytes that one device sends along them in one
        call.
      flops: lower and upper bound of the flops of dots and convolutions in one call (module ``cost``); None:
        the text was not analyzed.
      problems: what could not be read or analyzed.
      cycles: the TPU compiler's estimate of the cycles of one call (module ``cycles``); None: there is none.
      flops_by_type: HLO element type of the operands -> lower bound of the flops; ``bf16 x f32`` if the two
        operands differ in type. None: the text was not analyzed.
      flops_unknown: why ``flops`` is not exact; None if it is exact, or if the text was not analyzed.
      moved_bytes: bytes that one call certainly moves between memory and cores (module ``traffic``); None:
        unknown.
      flops_by_line: the flops of each Python line that has matrix products or custom calls.
      recomputed: matrix products that ``jax.checkpoint`` computes again; None: there are none, they are
        unknown, or they are in a differentiated loop (``recomputed.find``).
      gathered_work: matrix products that all devices compute alike from arrays that an all-gather of the
        user's program collects; None: there are none, or they are unknown.
      batched_branches: selections that may be conditionals under ``vmap``; None: there are none.
    """

    module: str | None
    num_partitions: int | None
    replica_count: int | None
    scheduled: bool
    mesh: list[tuple[str, int]] | None
    instructions: int
    computations: int
    fusions: fusions.Fusions
    unfused_elementwise: int
    custom_calls: dict[str, int]
    collectives: list[collectives.Collective]
    loops: list[loops.Loop]
    memory: aliases.Memory
    wire_by_axes: dict[Axes, branches.Bounds]
    flops: branches.Bounds | None
    problems: list[Problem]
    cycles: branches.Bounds | None = None
    flops_by_type: dict[str, int] | None = None
    flops_unknown: str | None = None
    moved_bytes: int | None = None
    flops_by_line: list[cost.LineFlops] = []
    batched_branches: batched_branches.BatchedBranches | None = None
    recomputed: recomputed.Recomputed | None = None
    gathered_work: gathered_work.GatheredWork | None = None

    # The JSON report has these names. The first of each group is the exact figure, or None; then the bounds.

    @property
    def wire_bytes_by_axes(self) -> dict[str, int | None]:
        """Mesh axes as text -> bytes that one device sends in one call; None: only bounds are known."""
        return {axes_text(over): found.exact for over, found in self.wire_by_axes.items()}

    @property
    def wire_bytes_at_least_by_axes(self) -> dict[str, int]:
        return {axes_text(over): found.least for over, found in self.wire_by_axes.items()}

    @property
    def wire_bytes_at_most_by_axes(self) -> dict[str, int | None]:
        return {axes_text(over): found.most for over, found in self.wire_by_axes.items()}

    @property
    def matrix_flops(self) -> int | None:
        """The flops of one call; None: unknown, or only bounds are known."""
        return self.flops.exact if self.flops is not None else None

    @property
    def matrix_flops_at_least(self) -> int | None:
        return self.flops.least if self.flops is not None else None

    @property
    def matrix_flops_at_most(self) -> int | None:
        return self.flops.most if self.flops is not None else None

    @property
    def estimated_cycles(self) -> int | None:
        """The estimated cycles of one call; None: unknown, or only bounds are known."""
        return self.cycles.exact if self.cycles is not None else None

    @property
    def estimated_cycles_at_least(self) -> int | None:
        return self.cycles.least if self.cycles is not None else None


def analyze(
    text: str,
    *,
    mesh: Sequence[tuple[str, int]] | None = None,
    user_files: Iterable[str] = (),
    whole: Collection[int] = (),
) -> Program:
    """Analyze the compiled text of one program. Never raises.

    Args:
      text: ``compiled.as_text()`` of JAX 0.8 to 0.12, or a file of ``--xla_dump_to``.
      mesh: (axis, size) in mesh order, to name the axes of collectives. The text refers to a device by its
        index in ``mesh.devices.flat``. If ``mesh`` is None, the mesh that the text prints is used, if any.
      user_files: files that are the user's own although they are in a library's directory.
      whole: positions of arguments that each device has as a whole, although the HLO does not say so.
    """
    try:
        module = read(text, user_files)
    except Exception as error:  # the last resort: a text must never end its reader
        return _nothing(f"the text could not be read: {type(error).__name__}: {error}")
    try:
        return of_module(module, mesh, whole)
    except Exception as error:
        return _nothing(f"the module could not be analyzed: {type(error).__name__}: {error}", module)


def of_module(
    module: Module, mesh: Sequence[tuple[str, int]] | None = None, whole: Collection[int] = ()
) -> Program:
    """Return all figures of the program in a parsed module.

    Args:
      module: the parsed text.
      mesh: (axis, size) in mesh order, to name the axes of collectives. If ``mesh`` is None, the mesh that
        the text prints is used, if any.
      whole: positions of arguments that each device has as a whole, although the HLO does not say so.
    """
    header = attributes(module.header)
    replicas, partitions = number(header.get("replica_count")), number(header.get("num_partitions"))
    if module.name is not None:  # XLA does not print a number that is 1
        replicas, partitions = replicas or 1, partitions or 1
    graph = CallGraph(module, (*collectives.BEGINS, *cost.CUSTOM_CALLS, *cost.WORK))
    attribution = Attribution(module, graph)
    found_loops, executions = loops.find(graph)
    paths = branches.paths(graph)
    devices = collectives.Devices(replicas or 0, partitions or 0)
    axes = [(str(name), int(size)) for name, size in mesh] if mesh else None
    reading = collectives.Collectives(graph, attribution, executions, paths, devices, axes)
    found_collectives = reading.read()
    found_fusions = fusions.read(graph, attribution, executions)
    counted = cost.total_flops(graph, executions, paths)
    count, gathers = partitions or 1, collectives.asked_gathers(found_collectives)
    shared = None
    if count > 1 and replicas == 1:
        shared = gathered_work.find(graph, executions, count, gathers, whole)
    return Program(
        module=module.name,
        num_partitions=partitions,
        replica_count=replicas,
        scheduled="is_scheduled=true" in module.header,
        mesh=[(name, size) for name, size in reading.mesh] if reading.mesh else None,
        instructions=module.instruction_count,
        computations=len(module.computations),
        fusions=found_fusions,
        unfused_elementwise=fusions.count_unfused(graph),
        custom_calls=fusions.custom_calls(graph),
        collectives=found_collectives,
        wire_by_axes=collectives.wire_by_axes(found_collectives),
        loops=found_loops,
        memory=aliases.read(module),
        flops=counted.bounds,
        problems=[*module.problems, *_problems(graph, reading)],
        cycles=cycles.total(graph, executions, paths),
        flops_by_type=counted.least,
        flops_unknown=counted.unknown,
        moved_bytes=traffic.Traffic(graph, executions).total(),
        flops_by_line=cost.by_line(graph, attribution, executions, paths),
        batched_branches=batched_branches.find(module, graph, attribution, executions),
        recomputed=recomputed.find(graph, module.frames, executions),
        gathered_work=shared,
    )


def _problems(graph: CallGraph, reading: collectives.Collectives) -> Iterator[Problem]:
    """Yield one problem if computations call each other in a circle, and one if ``reading``, which has read
    its collectives, has left out groups."""
    for name in sorted(graph.circular)[:1]:
        line = graph.module.computations[name].line
        yield Problem(line, f"computation {name} calls itself, directly or through others")
    if reading.too_many_ids:
        yield Problem(1, "the collectives list too many devices: some groups were not read")


def _nothing(reason: str, module: Module | None = None) -> Program:
    """Return a program without figures, with ``reason`` as a problem. ``module`` is the parsed text; None:
    the text could not be parsed."""
    empty = module or Module(None, "", Frames({}), {}, [], False)
    return Program(
        module=empty.name,
        num_partitions=None,
        replica_count=None,
        scheduled=False,
        mesh=None,
        instructions=empty.instruction_count,
        computations=len(empty.computations),
        fusions=fusions.Fusions(0, {}, 0, {}, []),
        unfused_elementwise=0,
        custom_calls={},
        collectives=[],
        wire_by_axes={},
        loops=[],
        memory=aliases.Memory([], [], [], [], None, None, None),
        flops=None,
        problems=[*empty.problems, Problem(1, reason[:200])],
    )
