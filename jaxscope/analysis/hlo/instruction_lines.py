"""Find the line of the user's code for each instruction of a compiled program, by the name of the
instruction. A profile of a run contains these names."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.reader import read
from jaxscope.schema.keys import Frame


class Located(msgspec.Struct, frozen=True):
    """An instruction of a compiled program: its opcode and the line of the user's code (None: unknown)."""

    opcode: str
    line: Frame | None


def of(text: str, user_files: Iterable[str] = ()) -> dict[str, Located]:
    """Return the opcode and the source line of every instruction of a compiled program: name of the
    instruction -> ``Located``. ``user_files`` are files that are the user's own although they are in a
    library's directory."""
    module = read(text, user_files)
    calls = CallGraph(module, tuple({i.opcode for c in module.computations.values() for i in c.instructions}))
    attribution = Attribution(module, calls)
    return {
        i.name: Located(i.opcode, attribution.line(c, i))
        for c in module.computations.values()
        for i in c.instructions
    }
