"""Warnings of involuntary rematerialisation, as XLA prints them, read: which array, from how to how, whose line.

The partitioner found no way between two shardings but to give every device the whole array. Knows nothing
of where the text was heard.
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
# Where several ways to partition an operation are possible, XLA tries each in a module thrown away, whose
# parameters are called this (EvaluatePartitionCost in spmd_partitioner_util.h). A transformer step of JAX 0.12
# was warned of, and had no gather of that array: what is really done is warned of under its own name.
_TRIAL = re.compile(r"%?fake_parameter\.\d+\b")
_ENDS = (". As the last resort", ". You probably want")


class Remat(msgspec.Struct, frozen=True):
    """One array that is made whole on every device.

    Attributes:
      name: the instruction in the program as it was then; rarely there in the final text.
      before, after: shardings over the axes of the mesh (``P('data', None)``), else as XLA spells them.
      bytes: of the whole array, which every device then holds; with the padding of uneven shards.
      source: the user's line.
      text: the warning, shortened.
    """

    name: str | None
    before: str | None
    after: str | None
    bytes: int | None
    source: Frame | None
    text: str


def find(heard: Sequence[str], hlo_text: str | None, mesh: Sequence[tuple[str, int]] | None) -> list[Remat]:
    """Each warning once, those of mere trials left out.

    ``hlo_text``: the compiled program's, whose tables the frame ids refer to.
    """
    heard = [text for text in heard if not _of_a_trial(text)]
    module: Module | None = None
    if heard and hlo_text is not None:
        try:
            module = reader.read(hlo_text)
        except Exception:  # a hostile text: the warning itself still says something
            module = None
    found = []
    for text in heard:
        try:
            found.append(_read(text, module, mesh))
        except Exception:
            found.append(Remat(None, None, None, None, None, text[:MAX_TEXT]))
    return list(dict.fromkeys(found))


def _of_a_trial(text: str) -> bool:
    line = _FOR.split(text, 1)[-1]
    return _TRIAL.match(line) is not None or "(%fake_parameter." in line


def _read(text: str, module: Module | None, mesh: Sequence[tuple[str, int]] | None) -> Remat:
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
        made = Instruction(False, name, cut[2], cut[3], line[cut.end() :])
        size = _whole(cut[2], old)
        source = None if module is None else _source(made, module)
    return Remat(name, before, after, size, source, _shortened(text))


def _spelled(text: str, read: shardings.Spelled) -> str:
    return partition_spec(read.dimensions) or text[:MAX_TEXT]


def _whole(shape: str, sharding: shardings.Spelled) -> int | None:
    """Bytes of the array of which ``shape`` is one device's shard."""
    parsed = shapes.parse(shape)
    one = shapes.total_bytes(parsed)
    if one is None or sharding.tiles is None or not isinstance(parsed, shapes.Array):
        return None
    for n in sharding.tiles:
        one *= n
    return one


def _source(made: Instruction, module: Module) -> Frame | None:
    """By the frame id; where there is none, the line of all instructions with the same op_name, if it is one."""
    frame = frame_id(made)
    if frame is not None and (found := module.frames.blamed(frame)) is not None:
        return found
    name = op_name(made)
    if name is None:
        return None
    attribution = Attribution(module, CallGraph(module, ()))
    lines = {
        attribution.own(i) for c in module.computations.values() for i in c.instructions if op_name(i) == name
    } - {None}
    return lines.pop() if len(lines) == 1 else None


def _shortened(text: str) -> str:
    """Without the advice at the end, which is the same in every warning."""
    for end in _ENDS:
        text = text.partition(end)[0]
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
