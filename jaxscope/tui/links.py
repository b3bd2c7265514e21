"""Link the lines of a program's StableHLO and HLO texts with the lines of the user's source from which they
come.

With the links, the three panes of the program screen scroll together.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.hlo import reader as hlo_reader
from jaxscope.analysis.hlo.attribution import Attribution
from jaxscope.analysis.hlo.calls import CallGraph
from jaxscope.analysis.programs import MAX_ANALYSED
from jaxscope.analysis.stablehlo import reader as stablehlo_reader
from jaxscope.analysis.stablehlo.module import NOT_OPERATIONS
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.log.store import RunDir
from jaxscope.schema.keys import Frame

_NAME = re.compile(r"[ \t]*+(?:ROOT )?%?([^\s=(){},%]++) = ")

PIECE = 4_000  # lines that are sent at a time by another process: unpickling them takes a few milliseconds
Place = tuple[str, int]  # file, 1-based line


class Stage(msgspec.Struct):
    """The links of one program text (StableHLO or HLO) to the user's source. Lines of the text are counted
    from 0.

    Attributes:
      places: line of the text -> the source lines from which it comes, as (file, line from 1). Lines of the
        text that come from no source line, and parameters and constants of HLO, are no keys.
      names: line of the text -> the name of its StableHLO operation or HLO instruction.
    """

    places: dict[int, list[Place]] = {}
    names: dict[int, str] = {}

    def lines(self) -> dict[Place, list[int]]:
        """Return a dict: source line -> the lines of the text that come from it, in ascending order."""
        return grouped((place, line) for line, places in self.places.items() for place in places)

    def files(self) -> Counter[str]:
        """Return the number of links to each source file."""
        return Counter(file for places in self.places.values() for file, _ in places)


class Links(msgspec.Struct):
    """The links of both texts of one program to the user's source."""

    stablehlo: Stage
    hlo: Stage


NONE = Links(Stage(), Stage())


def of_run(directory: RunDir, hlo: str | None, stablehlo: str | None) -> Links:
    """Return which lines of a program's StableHLO and HLO texts come from which lines of the user's source.
    ``hlo`` and ``stablehlo`` are the hashes of the texts in the run ``directory``; None: there is no such
    text. A text that is missing, unreadable or too large has no links."""
    texts = []
    for blob in (hlo, stablehlo):
        try:
            data = directory.data(blob, MAX_ANALYSED) if blob else b""
            texts.append(data.decode("utf-8", "backslashreplace"))
        except Exception:  # damaged or deleted: the other text is still read
            texts.append("")
    return of_texts(*texts)


def in_pieces(directory: RunDir, hlo: str | None, stablehlo: str | None) -> Iterator[tuple[str, Stage]]:
    """Yield what ``of_run`` returns in pieces of at most PIECE lines: (``stablehlo`` or ``hlo``, links of
    these lines). Use ``joined`` to merge them."""
    found = of_run(directory, hlo, stablehlo)
    for name in ("stablehlo", "hlo"):
        stage: Stage = getattr(found, name)
        for at in range(0, len(stage.names), PIECE):
            lines = list(itertools.islice(stage.names, at, at + PIECE))
            places = {line: stage.places[line] for line in lines if line in stage.places}
            yield name, Stage(places, {line: stage.names[line] for line in lines})


def joined(pieces: Iterable[tuple[str, Stage]]) -> Links:
    """Return the pieces that ``in_pieces`` yielded as one object."""
    found = Links(Stage(), Stage())
    for name, piece in pieces:
        stage = found.hlo if name == "hlo" else found.stablehlo
        stage.places.update(piece.places)
        stage.names.update(piece.names)
    return found


def of_texts(hlo: str, stablehlo: str) -> Links:
    """Return which lines of the program texts ``hlo`` and ``stablehlo`` come from which source lines. A text
    that cannot be parsed has no links; no exception is raised."""
    return Links(_safely(_stablehlo, stablehlo), _safely(_hlo, hlo))


def _safely(work: Callable[[str], Stage], text: str) -> Stage:
    """Return ``work(text)``, or no links if the text is empty or ``work`` raises an exception."""
    try:
        return work(text) if text else Stage()
    except Exception:  # without links the panes do not scroll together, but the texts can be read
        return Stage()


def _hlo(text: str) -> Stage:
    """Return the links of an HLO text; an instruction has at most one source line."""
    module = hlo_reader.read(text)
    attribution = Attribution(module, CallGraph(module))
    lines = text.split("\n")
    stage = Stage()
    for computation in module.computations.values():
        at = computation.line  # the heading's number from 1, which is that of the next line from 0
        for instruction in computation.instructions:
            while at < len(lines):
                found = _NAME.match(lines[at])
                at += 1
                if found and found[1] == instruction.name:
                    break
            else:
                break
            frame: Frame | None = attribution.line(computation, instruction)
            if frame is not None and instruction.opcode not in ("parameter", "constant"):
                stage.places[at - 1] = [(frame.file, frame.line)]
            stage.names[at - 1] = instruction.name
    return stage


def _stablehlo(text: str) -> Stage:
    """Return the links of a StableHLO text; an operation may come from several source lines."""
    module = stablehlo_reader.read(text)
    sources = Sources(module)
    stage = Stage()
    for index, op in enumerate(module.ops):
        if op.name in NOT_OPERATIONS:
            continue
        stage.names[op.line - 1] = op.name
        places = list(dict.fromkeys((f.file, f.line) for f in sources.frames(index)))
        if places:
            stage.places[op.line - 1] = places
    return stage
