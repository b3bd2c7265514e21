"""Find the user's line that pays for what is compiled outside the user's own functions.

Operations outside jit and functions of libraries are compiled because a line of the user's
calls them, perhaps through a library that calls lines of the user's again: the line that enters
the library is the one to change.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.rewrap_site import in_a_loop, loop_around, reached_now_and_then
from jaxscope.model import causes, sources
from jaxscope.model.causes import recompilations
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame

CODE = "JX133"  # the rule about such lines
MOST_SIZES = 64  # compared with each other
ALIKE = 3  # operations that meet two sizes alike: it is the size of what they are given that changed
UNNAMED = "operations without a name"
MADE_ANEW = frozenset({"new_function", "static_identity"})


class Payer(msgspec.Struct, frozen=True):
    """One line of the user's code, and the compilations that it caused outside of the user's functions.

    Attributes:
      line: the line that enters a library, or applies the operation.
      library: the package that it calls most often; None: unknown.
      compilations: in order of time.
      again: the compilations of an operation or a function that the same line had compiled before.
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

    Where these lines ran once, a library compiled it for several things in one call: only a function that the
    library makes anew is compiled again then. The body of a loop that is another one each time (the step of
    another optimizer) is not compiled again: its program does other work.
    """
    met: dict[tuple[object, ...], list[dict[str, float]]] = {}  # the work of the programs by place
    found = []
    for c in members:
        if c.missed is None or c.site is None:
            continue
        lines = [(f.file, f.line) for f in (c.site, *c.missed.stack)]
        place = (c.process.id, c.function.id, c.entry, c.missed.column, *lines)
        work = c.compiled.cost if c.compiled is not None else {}
        earlier = met.setdefault(place, [])
        another = c.function.seen.eager and _of_other_work(run, c, work, earlier)
        if earlier and not another and (kind(run, c) in MADE_ANEW or not ran_once(run, c)):
            found.append(c)
        earlier.append(work)
    return found


def _of_other_work(run: Run, c: Compilation, work: dict[str, float], earlier: list[dict[str, float]]) -> bool:
    """Return whether ``c``, whose function is new, does other work than each of the ``earlier`` programs, on
    arrays of the same sizes.

    Programs that differ in numbers alone do the same work: these numbers could be arguments.
    """
    if not work or not all(earlier) or work in earlier:
        return False
    kinds = [cause.kind for cause in causes.of(run, c)]
    return kinds[0] in MADE_ANEW and not SHAPES.intersection(kinds)


def ran_once(run: Run, c: Compilation) -> bool:
    """Return whether the lines that led to ``c`` ran once: none of them, from the
    module's own on, is in a loop.
    """
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


class Step(msgspec.Struct, frozen=True):
    """One iteration of the loop that calls the user's most expensive function.

    Attributes:
      loop: its first line.
      programs: number of the user's functions that each iteration calls; those that one call of the source
        runs in different executions of the loop count once.
      operations: number of operations that were compiled outside jit for its lines; others may have been
        compiled before.
    """

    loop: Frame
    programs: int
    operations: int


def step(run: Run) -> Step | None:
    """Return what each iteration of the program's loop runs; None: no loop calls a user's function."""
    text = sources.of(run)
    costs: Counter[tuple[str, int, int]] = Counter()
    called: dict[tuple[str, int, int], dict[tuple[int, int | None], set[str]]] = {}  # functions by place
    for f in run.functions.values():
        for c in f.compilations if f.user else ():
            if c.site is not None and c.entry == "call":
                lines = loop_around(text(c.site.file), c.site.line)
                if lines is not None and not reached_now_and_then(text(c.site.file), c.site.line):
                    costs[c.site.file, *lines] += round(1e9 * c.seconds)
                    place = c.site.line, c.missed.column if c.missed is not None else None
                    called.setdefault((c.site.file, *lines), {}).setdefault(place, set()).add(f.id)
    if not costs:
        return None
    file, first, last = found = costs.most_common(1)[0][0]
    operations = {
        (c.function.id, c.site.file, c.site.line, c.missed.column)
        for p in payers(run)
        if p.line.file == file and first <= p.line.line <= last
        for c in p.compilations
        if c.site is not None and c.missed is not None and not reached_now_and_then(text(file), p.line.line)
    }
    programs = {frozenset(functions) for functions in called[found].values()}
    return Step(Frame(file, first, ""), len(programs), len(operations))


class Unadvised(msgspec.Struct, frozen=True):
    """The compilations of one line about which there is no finding: of the user's functions, or outside them.

    Attributes:
      functions: the user's functions that were compiled, each once.
      operations: the number of compilations outside the user's functions; 0 where ``functions`` has some.
      again: the part of ``seconds`` that recompiles took.
    """

    line: Frame | None
    functions: list[Function]
    operations: int
    seconds: float
    again: float


def unadvised(run: Run, found: Iterable[Finding]) -> list[Unadvised]:
    """Return by line what was compiled for the first time, and again where ``found`` has no
    advice, the most expensive first.
    """
    advised = set[str]()  # functions
    lines = set[tuple[str, int]]()
    for finding in found:
        if finding.function is not None and finding.seconds:
            advised.add(finding.function)
        if finding.code == CODE and finding.source is not None:
            lines.add((finding.source.file, finding.source.line))
    parts: dict[tuple[bool, tuple[str, int] | None], list[Unadvised]] = {}
    for f in run.functions.values():
        if f.user:
            for part in _of_function(f, advised=f.id in advised):
                parts.setdefault((True, _place(part.line)), []).append(part)
    for p in payers(run):
        if _place(p.line) not in lines:
            again = sum(c.seconds for c in p.again)
            part = Unadvised(p.line, [], len(p.compilations), p.seconds, again)
            parts.setdefault((False, _place(p.line)), []).append(part)
    merged = [
        Unadvised(
            line=of[0].line,
            functions=[f for part in of for f in part.functions],
            operations=sum(part.operations for part in of),
            seconds=sum(part.seconds for part in of),
            again=sum(part.again for part in of),
        )
        for of in parts.values()
    ]
    return sorted(merged, key=lambda entry: -entry.seconds)


def _of_function(f: Function, *, advised: bool) -> Iterator[Unadvised]:
    """Yield by line what compiling ``f`` took; ``advised``: findings are about its
    recompiles, which are left out.
    """
    again = {c.id: c.seconds for c in recompilations(f)}
    lines: dict[tuple[str, int] | None, list[Compilation]] = {}
    for c in f.compilations:
        if c.entry != "nested" and (c.id not in again or not advised):
            lines.setdefault(_place(c.site), []).append(c)
    for of in lines.values():
        repeated = sum(again.get(c.id, 0.0) for c in of)
        yield Unadvised(of[0].site, [f], 0, sum(c.seconds for c in of), repeated)


def _place(line: Frame | None) -> tuple[str, int] | None:
    return (line.file, line.line) if line is not None else None


def kind(run: Run, c: Compilation) -> str:
    """Return the kind of the decisive cause of ``c``."""
    return causes.of(run, c)[0].kind


def sizes_change(run: Run, p: Payer) -> bool:
    """Return whether the same operations were compiled again because the sizes of their arguments changed.

    All compilations with one size must come before all with another size, because one call can have arrays
    of several sizes.
    """
    if not any(kind(run, c) in SHAPES for c in p.again):
        return False
    met: dict[int, dict[str, int]] = {}  # size -> operation -> time
    for c in p.compilations:
        for leaf in c.key.arguments if c.key is not None else ():
            for n in leaf.shape or ():
                if isinstance(n, int) and n > 1:
                    met.setdefault(n, {}).setdefault(c.function.id, c.t_ns)
    alike = min(ALIKE, len({c.function.id for c in p.again}))
    several = [operations for operations in met.values() if len(operations) >= alike]
    return any(_one_after_the_other(a, b) for a, b in itertools.combinations(several[:MOST_SIZES], 2))


def _one_after_the_other(a: dict[str, int], b: dict[str, int]) -> bool:
    """Return whether most operations of two sizes are the same, those of the one size before those of the
    other.
    """
    both = a.keys() & b.keys()
    if 2 * len(both) < len(a.keys() | b.keys()):
        return False
    times = [[of[operation] for operation in both] for of in (a, b)]
    return max(times[0]) < min(times[1]) or max(times[1]) < min(times[0])


def resized_lines(run: Run) -> set[tuple[str, int]]:
    """Return the lines at which a function of the user's was compiled again for another size."""
    return {
        (c.site.file, c.site.line)
        for f in run.functions.values()
        if f.user
        for c in recompilations(f)
        if c.site is not None and kind(run, c) in SHAPES
    }
