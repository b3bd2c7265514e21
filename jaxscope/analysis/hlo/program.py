"""Analyse one compiled text: all figures of a program that the report shows from its HLO.

``analyse`` never raises: what could not be read is in ``problems`` and its place is None or empty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from jaxscope.analysis.hlo import aliases, branches, collectives, cost, cycles, fusions, loops, traffic
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.frames import Frames
from jaxscope.analysis.hlo.lexing import attributes, number
from jaxscope.analysis.hlo.module import Module, Problem
from jaxscope.analysis.hlo.reader import read


class Program(msgspec.Struct, frozen=True):
    """The contents of one compiled program.

    Attributes:
      module: the name after ``HloModule``.
      instructions: in the whole text; 0 of a text that could not be read.
      scheduled: the order of the text is the order of execution.
      mesh: the axes that ``collectives[].axes`` speak of: as given, else as printed in the text.
      wire_by_axes: bytes that one device sends in one call, by axes joined with a comma; ``?`` where
        the axes are not known.
      flops: the flops of dots and convolutions in one call on one device (module ``cost``); None: the text
        was not read.
      flops_by_type: a lower bound of the same by HLO element type of the operands; ``bf16 x f32`` where
        they differ.
      flops_unknown: why ``flops`` is not exact, where the text was read.
      flops_by_line: the flops of the same by the user's line; those without a line are in none.
      moved_bytes: bytes that one call surely moves between memory and cores (module ``traffic``).
      cycles: of one call, as a TPU's compiler estimates them (module ``cycles``); None: it does not.
      wrapped_elementwise: fusions that hold a single elementwise operation.
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
    wrapped_elementwise: int
    custom_calls: dict[str, int]
    collectives: list[collectives.Collective]
    loops: list[loops.Loop]
    memory: aliases.Memory
    wire_by_axes: dict[str, branches.Bounds]
    flops: branches.Bounds | None
    problems: list[Problem]
    cycles: branches.Bounds | None = None
    flops_by_type: dict[str, int] | None = None
    flops_unknown: str | None = None
    moved_bytes: int | None = None
    flops_by_line: list[cost.LineFlops] = []

    # Under these names the figures are in the JSON report: exact, or None; then their bounds.

    @property
    def wire_bytes_by_axes(self) -> dict[str, int | None]:
        return {axes: found.exact for axes, found in self.wire_by_axes.items()}

    @property
    def wire_bytes_at_least_by_axes(self) -> dict[str, int]:
        return {axes: found.least for axes, found in self.wire_by_axes.items()}

    @property
    def wire_bytes_at_most_by_axes(self) -> dict[str, int | None]:
        return {axes: found.most for axes, found in self.wire_by_axes.items()}

    @property
    def matrix_flops(self) -> int | None:
        return self.flops.exact if self.flops is not None else None

    @property
    def matrix_flops_at_least(self) -> int | None:
        return self.flops.least if self.flops is not None else None

    @property
    def matrix_flops_at_most(self) -> int | None:
        return self.flops.most if self.flops is not None else None

    @property
    def estimated_cycles(self) -> int | None:
        return self.cycles.exact if self.cycles is not None else None

    @property
    def estimated_cycles_at_least(self) -> int | None:
        return self.cycles.least if self.cycles is not None else None


def analyse(
    text: str, *, mesh: Sequence[tuple[str, int]] | None = None, user_files: Iterable[str] = ()
) -> Program:
    """Analyse the compiled text of one program.

    Args:
      text: ``compiled.as_text()`` of JAX 0.8 to 0.12, or a file of ``--xla_dump_to``.
      mesh: (axis, size) in mesh order; groups are positions in ``mesh.devices.flat``.
      user_files: files that are the user's own although they are in a library's directory.
    """
    try:
        module = read(text, user_files)
    except Exception as error:  # the last resort: a text must never end its reader
        return _nothing(f"the text could not be read: {type(error).__name__}: {error}")
    try:
        return of_module(module, mesh)
    except Exception as error:
        return _nothing(f"the module could not be analysed: {type(error).__name__}: {error}", module)


def of_module(module: Module, mesh: Sequence[tuple[str, int]] | None = None) -> Program:
    """Analyse a module that has been read."""
    problems = list(module.problems)
    header = attributes(module.header)
    replicas, partitions = number(header.get("replica_count")), number(header.get("num_partitions"))
    if module.name is not None:  # XLA leaves out what is one
        replicas, partitions = replicas or 1, partitions or 1
    graph = CallGraph(module, (*collectives.BEGINS, *cost.CUSTOM_CALLS, *cost.WORK))
    attribution = Attribution(module, graph)
    found_loops, executions = loops.find(graph)
    for name in sorted(graph.circular)[:1]:
        problems.append(
            Problem(
                module.computations[name].line, f"computation {name} calls itself, directly or through others"
            )
        )
    paths = branches.paths(graph)
    devices = collectives.Devices(replicas or 0, partitions or 0)
    axes = [(str(name), int(size)) for name, size in mesh] if mesh else None
    reading = collectives.Collectives(graph, attribution, executions, paths, devices, axes)
    found_collectives = reading.read()
    if reading.too_many_ids:
        problems.append(Problem(1, "too many devices in this module's groups: some groups were not read"))
    found_fusions = fusions.read(graph, attribution, executions)
    alone = fusions.alone(graph, found_fusions)
    counted = cost.total_flops(graph, executions, paths)
    return Program(
        module=module.name,
        num_partitions=partitions,
        replica_count=replicas,
        scheduled="is_scheduled=true" in module.header,
        mesh=[(name, size) for name, size in reading.mesh] if reading.mesh else None,
        instructions=module.instruction_count,
        computations=len(module.computations),
        fusions=found_fusions,
        unfused_elementwise=alone.unfused,
        wrapped_elementwise=alone.wrapped,
        custom_calls=fusions.custom_calls(graph),
        collectives=found_collectives,
        wire_by_axes=collectives.wire_by_axes(found_collectives),
        loops=found_loops,
        memory=aliases.read(module),
        flops=counted.bounds,
        problems=problems,
        cycles=cycles.total(graph, executions, paths),
        flops_by_type=counted.least,
        flops_unknown=counted.unknown,
        moved_bytes=traffic.Traffic(graph, executions).total(),
        flops_by_line=cost.by_line(graph, attribution, executions, paths),
    )


def _nothing(reason: str, module: Module | None = None) -> Program:
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
        wrapped_elementwise=0,
        custom_calls={},
        collectives=[],
        wire_by_axes={},
        loops=[],
        memory=aliases.Memory([], [], [], [], None, None, None),
        flops=None,
        problems=[*empty.problems, Problem(1, reason[:200])],
    )
