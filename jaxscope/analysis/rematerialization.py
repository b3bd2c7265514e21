"""Parse XLA's warnings of involuntary full rematerialization: the array, its sharding before and after, and
the line of the user's code.

XLA's partitioner prints such a warning if it can change an array's sharding only by first copying the whole
array to every device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from jaxscope.analysis.hlo import reader, shapes, shardings
from jaxscope.analysis.hlo.attribution import Attribution, frame_id, op_name
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.module import Instruction, Module
from jaxscope.analysis.stablehlo.shardings import partition_spec
from jaxscope.schema.keys import Frame

MAX_TEXT = 600
_FOR = re.compile(r" for HLO operation:? ")
_INSTRUCTION = re.compile(r"%?([^\s=]{1,400}) = (\([^\n]*?\)|\S+) ([\w-]{1,60})\(")
# If there are several ways to partition an operation, XLA tries each in a temporary module whose parameters
# have this name (EvaluatePartitionCost in spmd_partitioner_util.h). Such warnings are ignored: a transformer
# step of JAX 0.12 had one and no gather of that array. The rematerialization that happens has a warning of
# its own.
_TRIAL = re.compile(r"%?fake_parameter\.\d+\b")
_ENDS = (". As the last resort", ". You probably want")


class Remat(msgspec.Struct, frozen=True):
    """One array that XLA replicates on every device to change its sharding.

    Attributes:
      name: the instruction in the warning, which the compiled program rarely contains; None: not found.
      before, after: the array's two shardings, over the axes of the mesh (``P('data', None)``) or as XLA
        prints them; None: not found.
      bytes: bytes of the global array, which every device gets, with the padding of uneven shards; None:
        unknown.
      source: the Python line, the user's own if one is known; None: unknown.
      text: the warning, shortened.
    """

    name: str | None
    before: str | None
    after: str | None
    bytes: int | None
    source: Frame | None
    text: str


def find(
    warnings: Sequence[str], hlo_text: str | None, mesh: Sequence[tuple[str, int]] | None
) -> list[Remat]:
    """Parse XLA's warnings of involuntary full rematerialization, and return each different one once.
    Warnings about partitions that XLA tried and did not use are ignored.

    Args:
      warnings: the texts of the warnings.
      hlo_text: the text of the compiled program, which gives the lines for the frame ids in the warnings;
        None: unknown.
      mesh: (axis, size) of the mesh, which gives the axes of a sharding; None: unknown.
    """
    warnings = [text for text in warnings if not _of_a_trial(text)]
    module: Module | None = None
    if warnings and hlo_text is not None:
        try:
            module = reader.read(hlo_text)
        except Exception:  # a hostile text: the warning is still useful without a line
            module = None
    found = []
    for text in warnings:
        try:
            found.append(_read(text, module, mesh))
        except Exception:
            found.append(Remat(None, None, None, None, None, text[:MAX_TEXT]))
    return list(dict.fromkeys(found))


def _of_a_trial(text: str) -> bool:
    """Return whether the warning is about a partition that XLA only tried (see ``_TRIAL``)."""
    line = _FOR.split(text, 1)[-1]
    return _TRIAL.match(line) is not None or "(%fake_parameter." in line


def _read(text: str, module: Module | None, mesh: Sequence[tuple[str, int]] | None) -> Remat:
    """Parse one warning. The arguments are those of ``find``, with the parsed program."""
    name = before = after = source = size = None
    head = _FOR.split(text, 1)
    _, began, pair = head[0].partition("from sharding ")
    first, _, second = pair.partition(" to ")
    second = second.removesuffix(" efficiently").partition(" without doing")[0]
    old, new = shardings.read(first, mesh), shardings.read(second, mesh)
    if began and second:
        before, after = _spelled(first, old), _spelled(second, new)
    line = head[1] if len(head) > 1 else ""
    for end in _ENDS:
        line = line.partition(end)[0]
    cut = _INSTRUCTION.match(line)
    if cut is not None:
        name = cut[1]
        instruction = Instruction(False, name, cut[2], cut[3], line[cut.end() :])
        size = _whole(cut[2], old)
        source = None if module is None else _source(instruction, module)
    return Remat(name, before, after, size, source, _shortened(text))


def _spelled(text: str, read: shardings.ParsedSharding) -> str:
    """Return a sharding over the axes of the mesh: ``P('data', None)``. ``text`` is the sharding in the
    warning, ``read`` the same parsed. Return ``text``, shortened, if the axes are unknown."""
    return partition_spec(read.dimensions) or text[:MAX_TEXT]


def _whole(shape: str, sharding: shardings.ParsedSharding) -> int | None:
    """Return the bytes of a whole array, from its sharding and the HLO shape of the part on one device; None
    if unknown."""
    parsed = shapes.parse(shape)
    one = shapes.total_bytes(parsed)
    if one is None or sharding.tiles is None or not isinstance(parsed, shapes.Array):
        return None
    for n in sharding.tiles:
        one *= n
    return one


def _source(instruction: Instruction, module: Module) -> Frame | None:
    """Return the Python line for an instruction that a warning prints: the line of its ``stack_frame_id``,
    else the line of the instructions in ``module`` with the same op_name, if they all have one line. None if
    unknown."""
    frame = frame_id(instruction)
    if frame is not None and (found := module.frames.attributed_frame(frame)) is not None:
        return found
    name = op_name(instruction)
    if name is None:
        return None
    attribution = Attribution(module, CallGraph(module, ()))
    lines = {
        attribution.own(i) for c in module.computations.values() for i in c.instructions if op_name(i) == name
    } - {None}
    return lines.pop() if len(lines) == 1 else None


def _shortened(text: str) -> str:
    """Return a warning with at most MAX_TEXT (600) characters, without the advice at its end."""

    for end in _ENDS:
        text = text.partition(end)[0]
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
