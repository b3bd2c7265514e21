"""Find the user's line that pays for what is compiled outside the user's own functions.

Operations outside jit and functions of libraries are compiled because a line of the user's calls them,
perhaps through a library that calls lines of the user's again: the line that enters the library is the one to
change.
"""

from __future__ import annotations

import itertools
from collections import Counter

import msgspec

from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.rewrap_site import in_a_loop
from jaxscope.model import causes, sources
from jaxscope.model.causes import recompilations
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame

CODE = "JX133"  # the rule about such lines
MOST_SIZES = 64  # compared with each other
ALIKE = 3  # operations that meet two sizes alike: it is the size of what they are given that changed
UNNAMED = "operations without a name"
MADE_ANEW = frozenset({"new_function", "static_identity"})


class Payer(msgspec.Struct, frozen=True):
    """One line of the user's, and what it made JAX compile outside the user's functions.

    Attributes:
      line: the line that enters a library, or applies the operation.
      library: the package that it calls most often; None: unknown.
      compilations: in order of time.
      again: those of an operation or a function that the same place had compiled before.
    """

    line: Frame
    library: str | None
    compilations: list[Compilation]
    again: list[Compilation]

    @property
    def seconds(self) -> float:
        return sum(c.seconds for c in self.compilations)

    @property
    def names(self) -> list[str]:
        """Return the names of what was compiled, each once, sorted."""
        functions = [c.function.seen for c in self.compilations]
        unnamed = [f.name.startswith("<unknown") or f.form == "callable" for f in functions]
        return sorted({UNNAMED if none else f.name for f, none in zip(functions, unnamed, strict=True)})

    @property
    def within(self) -> bool:
        """Return whether the library called other lines of the user's, which applied the operations."""
        at = (self.line.file, self.line.line)
        return any(c.site is not None and (c.site.file, c.site.line) != at for c in self.compilations)


def line_of(c: Compilation) -> Frame | None:
    """Return the user's line that could be changed: a library may have called the one that applied the
    operation.
    """
    if c.missed is None or c.site is None:
        return None
    above = [c.site, *c.missed.stack]
    at = c.missed.into_library or 0
    return above[at] if 0 <= at < len(above) else c.site


@cached_until_changed
def payers(run: Run) -> list[Payer]:
    """Return the lines that made JAX compile something outside the user's functions, the most expensive
    first.
    """
    lines: dict[tuple[str, int], tuple[Frame, list[Compilation]]] = {}
    for c in run.compilations.values():
        at = line_of(c)
        if at is None or c.function.user or c.entry not in ("call", "transform") or not c.reached_phases & 4:
            continue
        lines.setdefault((at.file, at.line), (at, []))[1].append(c)
    found = []
    for at, members in lines.values():
        library = Counter(c.missed.library for c in members if c.missed is not None).most_common(1)[0][0]
        found.append(Payer(at, library, members, _again(run, members)))
    return sorted(found, key=lambda p: (-p.seconds, p.line.file, p.line.line))


def _again(run: Run, members: list[Compilation]) -> list[Compilation]:
    """Return those of a function that the same lines of the user's had compiled before.

    Where these lines ran once, a library compiled it for several things in one call: only a function that the library
    makes anew is compiled again then.
    """
    met: set[tuple[object, ...]] = set()
    found = []
    for c in members:
        if c.missed is None or c.site is None:
            continue
        lines = [(f.file, f.line) for f in (c.site, *c.missed.stack)]
        place = (c.process.id, c.function.id, c.entry, c.missed.column, *lines)
        if place in met and (kind(run, c) in MADE_ANEW or not ran_once(run, c)):
            found.append(c)
        met.add(place)
    return found


def ran_once(run: Run, c: Compilation) -> bool:
    """Return whether the lines that led to ``c`` ran once: none of them, from the module's own on, is in a loop."""
    if c.missed is None or c.site is None:
        return False
    lines = [c.site, *c.missed.stack][c.missed.into_library or 0 :]
    if (
        not lines
        or lines[-1].function != "<module>"
        or len({(f.file, f.function) for f in lines}) < len(lines)
    ):
        return False
    text = sources.of(run)
    return all((source := text(f.file)) is not None and not in_a_loop(source, f.line) for f in lines)


def total_seconds(run: Run) -> float:
    """Return the seconds of all compilations that are part of no other."""
    return sum(c.seconds for c in run.compilations.values() if c.entry != "nested")


def recompiled_outside(run: Run) -> list[Compilation]:
    """Return the recompiles of operations outside jit and of libraries' functions, in no order."""
    return [c for p in payers(run) for c in p.again]


class First(msgspec.Struct, frozen=True):
    """What was compiled for the first time: a function of the user's, or ``number`` operations from one line."""

    function: Function | None
    line: Frame | None
    number: int
    seconds: float


def first_compilations(run: Run) -> list[First]:
    """Return what was compiled for the first time, the most expensive first."""
    found = []
    for f in run.functions.values():
        if f.user:
            again = {c.id for c in recompilations(f)}
            first = [c for c in f.compilations if c.id not in again and c.entry != "nested"]
            if first:
                found.append(First(f, first[0].site, len(first), sum(c.seconds for c in first)))
    for p in payers(run):
        again = {c.id for c in p.again}
        first = [c for c in p.compilations if c.id not in again]
        found.append(First(None, p.line, len(first), sum(c.seconds for c in first)))
    return sorted(found, key=lambda entry: -entry.seconds)


def kind(run: Run, c: Compilation) -> str:
    """Return the kind of the decisive cause of ``c``."""
    return causes.of(run, c)[0].kind


def sizes_change(run: Run, p: Payer) -> bool:
    """Return whether the same operations were compiled again with another size of what they are given."""
    if not any(kind(run, c) in SHAPES for c in p.again):
        return False
    met: dict[int, set[str]] = {}
    for c in p.compilations:
        for leaf in c.key.arguments if c.key is not None else ():
            for n in leaf.shape or ():
                if isinstance(n, int) and n > 1:
                    met.setdefault(n, set()).add(c.function.id)
    alike = min(ALIKE, len({c.function.id for c in p.again}))
    several = [operations for operations in met.values() if len(operations) >= alike]
    return any(2 * len(a & b) >= len(a | b) for a, b in itertools.combinations(several[:MOST_SIZES], 2))


def resized_lines(run: Run) -> set[tuple[str, int]]:
    """Return the lines at which a function of the user's was compiled again for another size."""
    return {
        (c.site.file, c.site.line)
        for f in run.functions.values()
        if f.user
        for c in recompilations(f)
        if c.site is not None and kind(run, c) in SHAPES
    }
