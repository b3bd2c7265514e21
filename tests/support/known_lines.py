"""How many operations of a program have a known line of the user's code."""

from jaxscope.analysis.stablehlo import reader
from jaxscope.analysis.stablehlo.locations import NOWHERE
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS
from jaxscope.analysis.stablehlo.sources import Sources


def located_and_known(text: str) -> tuple[int, int]:
    """Return the number of operations of the StableHLO ``text`` that have a location, and how many of them
    have a known line."""
    module = reader.read(text)
    sources = Sources(module)
    located = [
        index
        for index, op in enumerate(module.ops)
        if op.name not in NOT_OPERATIONS and sources.place(index) != NOWHERE
    ]
    return len(located), sum(bool(sources.frames(index)) for index in located)
