"""Find the user's lines that cause compilations outside the user's own jitted functions.

JAX compiles operations outside jit (``jnp.add`` in plain Python code) and functions of libraries because a
line of the user calls them, directly or through a library. Such a line is called a payer: it waits for the
compilation, and it is the line to change. If a library in turn calls lines of the user, the payer is the line
that calls the library.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis import loop_calls
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.loop_calls import functions_called
from jaxscope.analysis.source_lines import (
    depends_on_a_condition,
    in_a_loop,
    loop_around,
    passes_function,
    reached_now_and_then,
    runs_as_task,
)
from jaxscope.model import causes, sources
from jaxscope.model.causes import recompilations
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.findings import Finding, slug_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import LOOPS
from jaxscope.schema.messages import Message

CODE = "JX133"  # the rule that reports such lines
UNROLLED = "JX202"  # the rule whose findings are about all compilations of a function
OPERATIONS = "JX605"  # the rule that reports loops which run operations
RESIZED_TOO = "resized-too"  # evidence about lines whose operations recompile with a function
REPLICAS = "fix-place-replicas"  # slug of the advice of a finding that JX133 and JX120 were merged into
# Operations outside jit that multiply matrices
PRODUCTS = frozenset(
    {"matmul", "dot", "dot_general", "tensordot", "vdot", "inner", "einsum", "conv_general_dilated"}
)
MOST_SIZES = 64  # number of array sizes that are compared with each other
LEAST_HALVES = 3  # times that a size is half of the size before
ALIKE = 3  # a size for which fewer operations were compiled is not compared with other sizes
MOST_LINES = 3  # lines that are named for one loop
MOST_LOOPS = 3  # loops for which a report lists what an iteration runs
_Costs = dict[tuple[object, ...], list[dict[str, float]]]  # key of a place -> the costs of programs
FEWEST_OPERATIONS = 3  # operations outside jit in one iteration: fewer are not reported
UNNAMED = "operations without a name"


class Payer(msgspec.Struct, frozen=True):
    """A line of the user's code that made JAX compile operations outside jit or functions of libraries.

    Attributes:
      library: the package that the line called for most of the compilations; None: no package but JAX, or
        unknown.
      compilations: the compilations of operations outside jit and of library functions, in order of time
        within each process.
      again: the repetitions among ``compilations``: the same line had compiled the same operation or function
        before (see ``_again``).
    """

    line: Frame
    library: str | None
    compilations: list[Compilation]
    again: list[Compilation]

    @property
    def seconds(self) -> float:
        """Return the seconds that ``compilations`` took together."""
        return sum(c.seconds for c in self.compilations)

    @property
    def names(self) -> list[str]:
        """Return the sorted names of the operations and functions that ``line`` made JAX compile, each name
        once; UNNAMED stands for those without a name."""
        functions = [c.function.seen for c in self.compilations]
        unnamed = [f.name.startswith("<unknown") or f.form == "callable" for f in functions]
        return sorted({UNNAMED if none else f.name for f, none in zip(functions, unnamed, strict=True)})

    @property
    def within(self) -> bool:
        """Return whether another line of the user requested some of ``compilations``: a line of a callback
        that ``line`` passes to a library."""
        at = self.line.place
        return any(c.site is not None and c.site.place != at for c in self.compilations)


def line_of(c: Compilation) -> Frame | None:
    """Return the user's line to which the seconds of ``c`` are assigned: the line that made the call, or if a
    library called that line (a callback), the user's line that called the library. None if unknown."""
    if c.missed is None or c.site is None:
        return None
    above, at = c.lines, c.missed.into_library or 0
    return above[at] if 0 <= at < len(above) else c.site


@cached_until_changed
def payers(run: Run) -> list[Payer]:
    """Return the user's lines that made JAX compile operations outside jit or functions of libraries. The
    line with the most seconds of compiling comes first."""
    lines: dict[tuple[str, int], tuple[Frame, list[Compilation]]] = {}
    for c in run.compilations.values():
        at = line_of(c)
        if at is None or c.function.user or c.entry not in ("call", "transform") or not c.reached_phases & 4:
            continue
        lines.setdefault(at.place, (at, []))[1].append(c)
    found = []
    for at, members in lines.values():
        library = Counter(c.missed.library for c in members if c.missed is not None).most_common(1)[0][0]
        found.append(Payer(at, library, members, _again(run, members)))
    return sorted(found, key=lambda p: (-p.seconds, p.line.file, p.line.line))


def _again(run: Run, members: list[Compilation]) -> list[Compilation]:
    """Return the repeated ones of ``members``, the compilations that one line of the user caused.

    A compilation is repeated if JAX had compiled the same function for the same user's lines on the stack. It
    does not count if the lines run only once and no object was created again, or if it is an operation that
    does other work now. A compilation for other lines on the stack counts if ``_only_created_again``. Empty
    if compilations for arguments of another tree structure take at least as many seconds as the repeated
    ones."""
    # For lines that run only once, a library compiles one function for several inputs. A line whose arguments
    # mostly have another structure, such as the parameters of another model, does something else each time.
    # ``met``: the costs of the programs compiled so far, by function and user's lines.
    met: _Costs = {}
    elsewhere: _Costs = {}  # by function and innermost line
    found, of_another = [], 0.0
    for c in members:
        if c.missed is None or c.site is None:
            continue
        lines = [f.place for f in c.lines]
        place = (c.process.id, c.function.id, c.entry, c.missed.column, *lines)
        work = c.compiled.cost if c.compiled is not None else {}
        earlier = met.setdefault(place, [])
        another = c.function.seen.eager and _of_other_work(run, c, work, earlier)
        again = earlier and not another and (causes.created_again(run, c) or not ran_once(run, c))
        if again and not c.function.seen.eager and _gets_another_structure(run, c):
            of_another += c.seconds
        elif again or (not earlier and _only_created_again(run, c, work, elsewhere)):
            found.append(c)
        earlier.append(work)
        elsewhere.setdefault(_innermost(c), []).append(work)
    return found if sum(c.seconds for c in found) > of_another else []


def _gets_another_structure(run: Run, c: Compilation) -> bool:
    """Return whether ``c`` was compiled for a new function object or static object, with arguments whose tree
    structure differs from that of the earlier call with which ``c`` is compared."""
    kinds = [cause.kind for cause in causes.of(run, c)]
    return kinds[0] in causes.CREATED_AGAIN and "tree" in kinds


def _innermost(c: Compilation) -> tuple[object, ...]:
    """Return a key for call ``c``: its process, function, kind of call, line and column. Calls of one
    function from one line have equal keys, even if different lines led to this line."""
    site, column = c.site, c.missed.column if c.missed is not None else None
    return (c.process.id, c.function.id, c.entry, column, site and site.place)


def _only_created_again(run: Run, c: Compilation, work: dict[str, float], elsewhere: _Costs) -> bool:
    """Return whether ``c`` was compiled only because an object that its line passes to a library's function,
    or to a loop of JAX, was created again: an earlier program for the same function and line had equal costs,
    and no shape changed. False if costs are unknown.

    Args:
      work: the costs of the program of ``c`` (XLA's cost analysis: flops, bytes, ...).
      elsewhere: the costs of the earlier programs, by function and line (``_innermost``).
    """
    eager = c.function.seen.eager and c.function.seen.name not in LOOPS
    if eager or not work or work not in elsewhere.get(_innermost(c), ()):
        return False
    kinds = {cause.kind for cause in causes.of(run, c)}
    return causes.created_again(run, c) and not SHAPES.intersection(kinds)


def _of_other_work(run: Run, c: Compilation, work: dict[str, float], earlier: list[dict[str, float]]) -> bool:
    """Return whether ``c`` was compiled for a new function object or static object, without a change of
    shape, and its program has other costs than each earlier program for the same lines. False if costs are
    unknown. ``work`` and ``earlier`` have the costs of these programs (XLA's cost analysis: flops, bytes,
    ...)."""
    # Equal costs mean equal work: different constants could be arguments.
    if not work or not all(earlier) or work in earlier:
        return False
    kinds = [cause.kind for cause in causes.of(run, c)]
    return kinds[0] in causes.CREATED_AGAIN and not SHAPES.intersection(kinds)


def ran_once(run: Run, c: Compilation) -> bool:
    """Return whether the line ``line_of(c)`` and the lines that led to it run only once in the program: the
    outermost line is at the top level of a module, no line is in a loop, in a recursive function or in a task
    of an event loop, and no line passes the function of the next line to another function, such as ``map``.
    False if the lines or their source are unknown."""
    if c.missed is None or c.site is None:
        return False
    lines = c.lines[c.missed.into_library or 0 :]
    if (
        not lines
        or lines[-1].function != "<module>"
        or len({(f.file, f.function) for f in lines}) < len(lines)
    ):
        return False
    text = sources.of(run)
    if not all((source := text(f.file)) is not None and not in_a_loop(source, f.line) for f in lines):
        return False
    return not any(
        passes_function(text(outer.file), outer.line, name)
        or runs_as_task(text(inner.file), inner.line, name, text(outer.file), outer.line)
        for inner, outer in itertools.pairwise(lines)
        for name in [inner.function.rpartition(".")[2]]
    )


def repeated_by_library(run: Run, p: Payer) -> bool:
    """Return whether a library compiled its own functions again and again within one call by the line of
    ``p``: all compilations of the functions in ``p.again`` have the same user's lines on the stack, and these
    lines run only once."""
    functions = {c.function.id for c in p.again}
    calls = [c for c in p.compilations if c.function.id in functions]
    ways = {tuple(f.place for f in c.lines) for c in calls}
    return bool(calls) and len(ways) == 1 and all(ran_once(run, c) for c in calls)


def total_seconds(run: Run) -> float:
    """Return the seconds of tracing, lowering and compiling in the whole run, summed over all processes,
    without traces inside other traces."""
    # The outer trace includes the time of a nested one.
    return sum(c.seconds for c in run.compilations.values() if c.entry != "nested")


def recompiled_outside(run: Run) -> list[Compilation]:
    """Return all recompiles of operations outside jit and of library functions in the run, in no particular
    order."""
    return [c for p in payers(run) for c in p.again]


class LoopBody(msgspec.Struct, frozen=True):
    """What one iteration of a loop in the user's code runs.

    Attributes:
      loop: the first line of the loop.
      last: the number of the loop's last line.
      programs: the least number of jitted programs that each iteration runs: the user's jitted functions that
        it calls. Functions that are called at the same place count once, and so does a function that is
        called at several places. Programs that a transform such as grad makes of such a function are not
        counted.
      operations: the least number of operations outside jit that each iteration runs. Operations that JAX had
        compiled before the loop are not counted.
      lines: up to MOST_LINES lines of ``loop``'s file that lead to most of these operations.
    """

    loop: Frame
    last: int
    programs: int
    operations: int
    lines: list[int]


def steps(run: Run) -> list[LoopBody]:
    """Return what each iteration of the program's loops runs, for at most MOST_LOOPS (3) loops that call a
    jitted function of the user and run at least FEWEST_OPERATIONS (3) operations outside jit. Calls that only
    some iterations reach are left out. The loop whose functions took longest to compile comes first."""
    text = sources.of(run)
    costs: Counter[tuple[str, int, int]] = Counter()
    called: dict[tuple[str, int, int], dict[tuple[int, int | None], set[str]]] = {}  # functions by place
    for f in run.functions.values():
        for c in f.compilations if f.user else ():
            if c.site is not None and c.entry == "call":
                lines = loop_around(text(c.site.file), c.site.line)
                at = text(c.site.file), c.site.line
                if lines is not None and not reached_now_and_then(*at) and not depends_on_a_condition(*at):
                    costs[c.site.file, *lines] += round(1e9 * c.seconds)
                    place = c.site.line, c.missed.column if c.missed is not None else None
                    called.setdefault((c.site.file, *lines), {}).setdefault(place, set()).add(f.id)
    found = []
    for file, first, last in (loop for loop, _ in costs.most_common()):
        operations = _operations_in(run, file, first, last)
        if len(operations) >= FEWEST_OPERATIONS:
            programs = {frozenset(functions) for functions in called[file, first, last].values()}
            by_line = Counter(operations.values())
            most = [line for line, n in by_line.most_common(MOST_LINES) if n > 1] or [*by_line][:MOST_LINES]
            found.append(LoopBody(Frame(file, first, ""), last, len(programs), len(operations), sorted(most)))
    return found[:MOST_LOOPS]


def _operations_in(run: Run, file: str, first: int, last: int) -> dict[tuple[object, ...], int]:
    """Return the operations outside jit that each iteration of the loop on the lines ``first`` to ``last`` of
    ``file`` runs: {(operation, place that applies it): line of ``file`` that leads to this place}. Jitted
    functions of JAX count as operations. Missing are operations that only some iterations reach, and
    operations that JAX first compiled outside the loop and the functions that the loop calls."""
    source = sources.of(run)(file)
    inside = [(first, last), *functions_called(source, first, last)]
    found = dict[tuple[object, ...], int]()
    for p in payers(run):
        for c in p.compilations:
            if c.site is None or c.missed is None or not c.function.operation:
                continue  # a call of a library runs a whole program
            lines = [at.line for at in c.lines if at.file == file]
            if not any(a <= line <= b for a, b in inside for line in lines):
                continue
            own = [line for line in lines if first <= line <= last]
            if not any(reached_now_and_then(source, n) or depends_on_a_condition(source, n) for n in own):
                at = [line for line in lines if any(a <= line <= b for a, b in inside)]
                found[c.function.id, c.site.file, c.site.line, c.missed.column] = at[-1]
    return found


class Unadvised(msgspec.Struct, frozen=True):
    """The compilations that one line caused and for which no finding (problem that a rule found) has advice.

    Either all are compilations of the user's functions, or all are of operations outside jit and of library
    functions.

    Attributes:
      line: the user's line; None: unknown.
      functions: the user's functions that were compiled, each once.
      operations: the number of compilations outside the user's functions; 0 if ``functions`` is not empty.
      seconds: seconds of these compilations.
      again: the part of ``seconds`` that recompiles took.
      largest: the function of a library whose compilation took at least half of ``seconds``; None: there is
        none.
    """

    line: Frame | None
    functions: list[Function]
    operations: int
    seconds: float
    again: float
    largest: Function | None = None


def unadvised(run: Run, findings: Iterable[Finding]) -> list[Unadvised]:
    """Return the compilations that none of ``findings`` (problems that rules found in the run) is about, by
    line, the most expensive line first. Of a user's function with a finding, only the recompiles are left
    out, unless the finding is about all its compilations."""
    advised = set[str]()  # functions
    lines = set[tuple[str, int]]()
    named = set[str]()  # compilations that a finding about lines names
    unrolled = set[str]()  # functions and programs with a finding about all their compilations
    for finding in findings:
        if finding.function is not None and finding.code == UNROLLED:
            unrolled.update((finding.function, *(e.program for e in finding.evidence if e.program)))
        if finding.function is not None and finding.seconds:
            advised.add(finding.function)
        of_lines = finding.code in (CODE, OPERATIONS) or slug_of(finding) == REPLICAS
        if of_lines or (finding.code == UNROLLED and finding.function is None):
            sources = (finding.source, *(e.source for e in finding.evidence))
            lines.update(line.place for line in sources if line is not None)
            named.update(e.compilation for e in finding.evidence if e.compilation is not None)
        for e in finding.evidence:
            if isinstance(e.text, Message) and e.text.slug == RESIZED_TOO and e.source is not None:
                lines.add(e.source.place)
    parts: dict[tuple[bool, tuple[str, int] | None], list[Unadvised]] = {}
    for f in run.functions.values():
        if f.user and f.id not in unrolled:
            for part in _of_function(run, f, advised=f.id in advised):
                parts.setdefault((True, _place(part.line)), []).append(part)
    for p in payers(run):
        left = [c for c in p.compilations if c.function.id not in unrolled and c.program not in unrolled]
        if left and _place(p.line) not in lines and named.isdisjoint(c.id for c in p.compilations):
            again = sum(c.seconds for c in p.again if c in left)
            seconds, most = sum(c.seconds for c in left), max(left, key=lambda c: c.seconds)
            largest = most.function if 2 * most.seconds >= seconds and not most.function.operation else None
            part = Unadvised(p.line, [], len(left), seconds, again, largest)
            parts.setdefault((False, _place(p.line)), []).append(part)
    merged = [
        Unadvised(
            line=entries[0].line,
            functions=[f for part in entries for f in part.functions],
            operations=sum(part.operations for part in entries),
            seconds=sum(part.seconds for part in entries),
            again=sum(part.again for part in entries),
            largest=entries[0].largest if len(entries) == 1 else None,
        )
        for entries in parts.values()
    ]
    return sorted(merged, key=lambda entry: -entry.seconds)


def _of_function(run: Run, f: Function, *, advised: bool) -> Iterator[Unadvised]:
    """Yield the compilations of the user's function ``f``, without traces inside other traces, one entry for
    each line that called it. With ``advised``, the recompiles of ``f`` are left out: a finding (a problem
    that a rule found) is about these."""
    again = {c.id: c.seconds for c in recompilations(f, run)}
    left = [c for c in f.compilations if c.entry != "nested" and (c.id not in again or not advised)]
    lines = grouped((_place(c.site), c) for c in left)
    for calls in lines.values():
        repeated = sum(again.get(c.id, 0.0) for c in calls)
        yield Unadvised(calls[0].site, [f], 0, sum(c.seconds for c in calls), repeated)


def _place(line: Frame | None) -> tuple[str, int] | None:
    return line.place if line is not None else None


def sizes_change(run: Run, p: Payer) -> bool:
    """Return whether the operations that the line of ``p`` runs were probably compiled again because array
    sizes changed: most of them were compiled first for one size, and only then for another. False if the
    sizes halve again and again, as in a recursion."""
    if _over_leaves(run, p) or of_layers(run, p):
        return False
    # Several sizes alone do not prove it, because one call can have arrays of several sizes.
    if not any(causes.reason(run, c).kind in SHAPES for c in p.again):
        return False
    met: dict[int, dict[str, int]] = {}  # size -> operation -> time
    again, of_arrays = {c.id for c in p.again}, set[str]()
    for c in p.compilations:
        for leaf in c.key.arguments if c.key is not None else ():
            for n in leaf.shape or ():
                if isinstance(n, int) and n > 1:
                    met.setdefault(n, {}).setdefault(c.function.id, c.t_ns)
                    of_arrays.update((c.function.id,) if c.id in again else ())
    alike = min(ALIKE, len(of_arrays))
    common = {n: operations for n, operations in met.items() if len(operations) >= alike}
    if _halves(list(common)):
        return False
    several = list(common.values())
    return any(_one_after_the_other(a, b) for a, b in itertools.combinations(several[:MOST_SIZES], 2))


def _over_leaves(run: Run, p: Payer) -> bool:
    """Return whether the line of ``p``, or a line that leads to it, goes through the parts of a model or the
    leaves of a pytree, or calls an optimizer of JAX that does: these have several sizes, which do not
    change."""
    lines = p.compilations[0].lines
    text = sources.of(run)
    missed = p.compilations[0].missed
    inside = missed.stack[: missed.into_library or 0] if missed is not None else []
    if any("/jax/example_libraries/" in at.file for at in inside):
        return True
    if any(loop_calls.maps_over_leaves(text(at.file), at.line, None) for at in lines):
        return True
    looped = next((at for at in lines if loop_around(text(at.file), at.line, comprehensions=True)), None)
    return looped is not None and loop_calls.goes_through_leaves(text(looped.file), looped.line)


def of_layers(run: Run, p: Payer) -> bool:
    """Return whether the operations that the line of ``p`` compiled again probably belong to layers of other
    widths, which do not change: other lines lead to most of them, each size follows from the one before, or
    a loop over layers leads to them and the weights of the layers differ."""
    text, again = sources.of(run), {c.id for c in p.again}
    seen, elsewhere = set[tuple[object, ...]](), 0
    for c in p.compilations:
        reached = (c.function.seen.name, *(at.place for at in c.lines))
        elsewhere += c.id in again and reached not in seen
        seen.add(reached)
    if 2 * elsewhere > len(again):
        return True
    layers = (loop_calls.goes_through_layers(text(at.file), at.line) for at in p.compilations[0].lines)
    alike = (q for q in payers(run) if (q.line.file, q.line.function) == (p.line.file, p.line.function))
    return _each_size_follows(p) or (any(layers) and _weights_differ(alike))


_PLACES = frozenset({"stage"})  # operations that put a NumPy array, such as a weight, on a device


def _each_size_follows(p: Payer) -> bool:
    """Return whether at least half of the new sizes that the line of ``p`` compiled for, after the first one,
    come in one operand of a product with an earlier new size: the weights of layers have the shapes (32, 64),
    (64, 96) and (96, 128), while batches of other sizes are (64, 8), (29, 8) and (17, 8)."""
    known, introduced, following, first_layer = set[int](), list[int](), 0, True
    for c in p.compilations:
        name = c.function.seen.name.strip("_")
        if name not in PRODUCTS and name not in _PLACES:
            continue
        shapes = [leaf.shape or () for leaf in (c.key.arguments if c.key is not None else ())]
        arrays = [{n for n in shape if isinstance(n, int) and n > 1} for shape in shapes]
        for array in () if first_layer else arrays:
            new = array - known
            following += len(new) if not array.isdisjoint(introduced) else 0
            introduced += new
            known |= new
        known.update(*arrays)
        first_layer = first_layer and name in _PLACES
    return len(introduced) > 1 and 2 * following >= len(introduced) - 1


def _weights_differ(lines: Iterable[Payer]) -> bool:
    """Return whether most matrix products that ``lines`` compiled again have operands of other shapes on both
    sides. If only the sizes of the data change, the shapes of the weights stay the same. Vectors do not
    count."""
    same, compared = 0, 0
    for p in lines:
        shapes: dict[str, tuple[set[object], set[object]]] = {}
        for c in p.compilations:
            name, operands = c.function.seen.name.strip("_"), c.key.arguments if c.key is not None else ()
            if name not in PRODUCTS or len(operands) != 2:
                continue
            known = shapes.setdefault(name, (set(), set()))
            matrices = [leaf.shape if len(leaf.shape or ()) > 1 else None for leaf in operands]
            if known[0]:
                compared += 1
                same += any(m is not None and m in k for m, k in zip(matrices, known, strict=True))
            for m, k in zip(matrices, known, strict=True):
                k.add(m)
    return compared > 2 * same


def _halves(sizes: Sequence[int]) -> bool:
    """Return whether ``sizes``, in the order of their first compilations, become half as large again and
    again: at least LEAST_HALVES times, and in at least half of all changes. Such sizes come from a recursion
    within one call, such as a wavelet transform or ``jax.lax.associative_scan``."""
    halved = sum(abs(2 * b - a) <= 1 for a, b in itertools.pairwise(sizes))
    return bool(halved >= LEAST_HALVES and 2 * halved >= len(sizes) - 1)


def _one_after_the_other(a: dict[str, int], b: dict[str, int]) -> bool:
    """Return whether at least half of the operations in ``a`` and ``b`` are in both, and all operations in
    both were compiled for one size before any of them for the other size. ``a`` and ``b`` are {operation:
    time of its first compilation}, for one size each."""
    both = a.keys() & b.keys()
    if 2 * len(both) < len(a.keys() | b.keys()):
        return False
    times = [[size[operation] for operation in both] for size in (a, b)]
    return max(times[0]) < min(times[1]) or max(times[1]) < min(times[0])


def takes_numbers(run: Run, function: str) -> bool:
    """Return whether calls of the user's jitted function with the name ``function`` had Python numbers as
    arguments that are not static, in whose place it can get arrays."""
    leaves = (
        leaf
        for c in user_calls(run)
        if c.function.seen.name == function and c.key is not None
        for leaf in c.key.arguments
    )
    return any(leaf.type in ("int", "float") for leaf in leaves)


@cached_until_changed
def user_calls(run: Run) -> list[Compilation]:
    """Return the calls of jitted functions of the user that missed the C++ fast path."""
    return [c for c in run.compilations.values() if c.function.user and c.entry == "call"]


@cached_until_changed
def call_lines(run: Run) -> set[tuple[str, int]]:
    """Return the lines of ``user_calls``, as (file, line)."""
    return {c.site.place for c in user_calls(run) if c.site is not None}


def resized_lines(run: Run) -> dict[tuple[str, int], list[Compilation]]:
    """Return {(file, line): recompiles} for the lines that called a function of the user with arrays of
    another shape, so that JAX compiled the function again."""
    found = dict[tuple[str, int], list[Compilation]]()
    for f in run.functions.values():
        for c in recompilations(f, run) if f.user else ():
            if c.site is not None and causes.of(run, c)[0].kind in SHAPES:
                found.setdefault(c.site.place, []).append(c)
    return found
