"""Find the user's line of each instruction of a compiled text by the instruction's name, which is what a
profile contains.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.hlo.reader import read
from jaxscope.schema.keys import Frame


class Located(msgspec.Struct, frozen=True):
    """An instruction and its source line.

    Attributes:
      opcode: the operation.
      line: the user's line; None: the text has none for this instruction.
    """

    opcode: str
    line: Frame | None


def of(text: str, user_files: Iterable[str] = ()) -> dict[str, Located]:
    """Return the opcode and the line of every instruction of a compiled text, by the instruction's name.

    Args:
      text: the text of the compiled module.
      user_files: files that are the user's own although they are in a library's directory.
    """
    module = read(text, user_files)
    calls = CallGraph(module, tuple({i.opcode for c in module.computations.values() for i in c.instructions}))
    attribution = Attribution(module, calls)
    return {
        i.name: Located(i.opcode, attribution.line(c, i))
        for c in module.computations.values()
        for i in c.instructions
    }
