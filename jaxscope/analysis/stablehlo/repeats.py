"""Find blocks of operations that a program repeats: a Python loop that was traced, which could be a
``lax.scan``.

Operations are equal if they have the same name, attributes and types. These differences do not count, because
a loop makes them between iterations: other operands, another position of a slice, other values of constants,
other channel numbers.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import TypeAlias

import msgspec

from jaxscope.analysis import module_libraries
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.stablehlo import carries, periods, types
from jaxscope.analysis.stablehlo.module import CALLS, CONSTANTS, NOT_OPERATIONS, Module
from jaxscope.analysis.stablehlo.sources import JAX_FILES, LIBRARIES, Sources
from jaxscope.schema.keys import Frame

LEAST_TIMES = 3
HEAVY = frozenset(
    {"stablehlo.dot_general", "stablehlo.convolution", "stablehlo.dynamic_slice", "stablehlo.gather"}
)
LEAST_LENGTH = 2
FEW_TIMES = 8  # a repetition inside another one is sought if the other one has fewer iterations
LEAST_OPERATIONS = 24  # the fewest in all iterations: three slices (``q, k, v = qkv``) are no loop
MAX_LISTED = 50
SHARED = 0.8  # the share of an iteration's operations that a line must have caused to be the iteration's line
VARIES = re.compile(r"handle = \d+|index = \d+ : ui64|@[\w$.-]+")
SLICED = re.compile(r"\[[^\]]*\]")
NUMBER = re.compile(r"\d+")
GROWING_TIMES = 8  # iterations of a loop whose arrays grow: fewer may be layers of increasing widths
GROWING_SHARE = 0.2  # the least share of an iteration's operations that have a growing result
MOSTLY = 0.3  # if a larger share of the program is one loop with equal sizes, no growing loop is sought


class Repeated(msgspec.Struct, frozen=True):
    """A block of operations that the program repeats. Constants are not counted, calls are inlined.

    Attributes:
      length: number of operations in one iteration.
      times: number of iterations.
      line: the line of the program's text at which the first iteration begins.
      carried: whether the iterations have to run one after the other, because each one computes with what
        the one before computed, like the carry of a scan.
      summed: whether an iteration needs nothing of the one before except running sums (``total += f(x)``) of
        which the program reads only the last value. True only if ``carried``.
      in_loop: whether the block is already inside a loop of the program (``unroll=``).
      source: the line of the user's code that repeats the block; None: unknown.
      first, end: the operations are in ``Module.ops[first:end]``.
      backward: whether differentiation created most of the block's operations.
      under: the lines of the user's code on the stacks of most of the block's operations, outermost first.
      inner: those lines of ``under`` that create the same operations several times in one iteration, so that
        their loop is inside the loop that repeats the block.
      library: the library whose modules the body of the loop calls: ``flax.nnx``; None if it calls none, or
        this is unknown.
      heavy: whether an iteration has an operation that vmap computes better for all at once: a matrix
        product, a convolution, or a slice at a computed index.
      grows: whether arrays become longer in each iteration, for example because the loop appends to a
        sequence.
      unknown_loop: whether a library other than JAX created the operations and no line of the user is known,
        so that the loop may be the user's or the library's.
    """

    length: int
    times: int
    line: int
    carried: bool
    in_loop: bool
    source: Frame | None
    first: int
    end: int
    backward: bool = False
    under: list[Frame] = []
    inner: list[Frame] = []
    summed: bool = False
    library: str | None = None
    heavy: bool = False
    grows: bool = False
    unknown_loop: bool = False


def find(module: Module, sources: Sources) -> list[Repeated]:
    """Return the blocks of operations that the program ``module`` repeats, the largest first. Repetitions
    inside JAX's own functions are left out, and those with fewer than LEAST_OPERATIONS (24) operations in all
    iterations. ``sources`` are the lines of the user's code that cause the operations of ``module``."""
    kinds, weights = _kinds(module, sources)
    blocks = grouped(
        (op.block, index)
        for index, op in enumerate(module.ops)
        if op.name not in CONSTANTS and op.name not in NOT_OPERATIONS and sources.times[op.function]
    )
    found = _stretches(blocks.values(), kinds, weights, LEAST_TIMES)
    growing = _growing(sources, blocks.values(), weights, found)
    inside_growing = {i for iterations in growing for i in _joined(iterations)}
    repeated = inside_growing.union(*map(_joined, found))
    others = [each for each in found if not inside_growing.issuperset(_joined(each))]
    listed = [_described(sources, each, kinds, weights, repeated, grows=False) for each in others]
    listed += [_described(sources, each, kinds, weights, repeated, grows=True) for each in growing]
    return sorted(filter(None, listed), key=lambda r: (-r.length * r.times, r.line))


_Iterations: TypeAlias = list[list[int]]  # of a repeated block: the indices of each iteration's operations


def _joined(iterations: _Iterations) -> list[int]:
    return [i for iteration in iterations for i in iteration]


def _described(
    sources: Sources,
    iterations: _Iterations,
    kinds: Sequence[int],
    weights: Sequence[int],
    repeated: set[int],
    *,
    grows: bool,
) -> Repeated | None:
    """Return the facts about the repeated block ``iterations``. Return None if it is from JAX's own code.

    Args:
      kinds, weights: what ``_kinds`` returns.
      repeated: the indices of the operations in any repeated block.
      grows: whether arrays become longer in each iteration.
    """
    ops, inside = sources.module.ops, _joined(iterations)
    first, second = iterations[:2]
    unknown_loop = _is_libraries(sources, first)
    if not unknown_loop and _is_jax_own(sources, first):
        return None
    source, under = _source(sources, second, inside, repeated), _under(sources, second)
    carried, summed = carries.between(sources.module, iterations)
    return Repeated(
        length=sum(weights[i] for i in first),
        times=len(iterations),
        line=ops[inside[0]].line,
        carried=carried,
        summed=summed,
        in_loop=sources.in_loop(inside[0]),
        source=source,
        first=inside[0],
        end=inside[-1] + 1,
        backward=2 * sum(sources.backward(i) is True for i in second) > len(second),
        under=under,
        inner=[line for line in under if _repeats_within(sources, kinds, second, line)],
        library=_library(sources, second, source) if source is not None else None,
        heavy=any(ops[i].name in HEAVY for i in first),
        grows=grows,
        unknown_loop=unknown_loop,
    )


def _stretches(
    blocks: Iterable[Sequence[int]], kinds: Sequence[int], weights: Sequence[int], times: int
) -> list[_Iterations]:
    """Return the parts of ``blocks`` that repeat, the largest first. If a part has few iterations, such as
    three layers, the repeating parts of each iteration (such as its heads) are returned, too.

    Args:
      blocks: for each block of operations, their indices.
      kinds: a number for each operation of the module. Operations that count as equal have equal numbers.
      weights: for each operation of the module, how many operations it stands for.
      times: the least number of repetitions.
    """
    found: list[_Iterations] = []
    for members in blocks:
        if len(members) < times or sum(weights[i] for i in members) < LEAST_OPERATIONS:
            continue
        for stretch in periods.find([kinds[i] for i in members], times):
            starts = range(stretch.start, stretch.end, stretch.period)
            iterations = [[*members[k : k + stretch.period]] for k in starts]
            length = sum(weights[i] for i in iterations[0])
            if length >= LEAST_LENGTH and length * stretch.times >= LEAST_OPERATIONS:
                found.append(iterations)
            if stretch.times < FEW_TIMES:
                found += _stretches(iterations, kinds, weights, FEW_TIMES)
    found.sort(key=lambda iterations: -sum(weights[i] for i in _joined(iterations)))
    return found[:MAX_LISTED]


def _growing(
    sources: Sources, blocks: Collection[Sequence[int]], weights: Sequence[int], found: Sequence[_Iterations]
) -> list[_Iterations]:
    """Return the parts of ``blocks`` that repeat if sizes do not count, and whose arrays grow in each
    iteration. Empty if the program is small, or if one of the parts ``found``, which repeat with equal sizes,
    is much of it (MOSTLY). The other arguments are those of ``_stretches``."""
    total, largest = sum(map(len, blocks)), max((len(_joined(each)) for each in found), default=0)
    if total < LEAST_OPERATIONS * GROWING_TIMES or largest >= MOSTLY * total:
        return []
    module = sources.module
    alike, _ = _kinds(module, sources, sizes=False)
    return [each for each in _stretches(blocks, alike, weights, GROWING_TIMES) if _grows(module, each)]


def _grows(module: Module, iterations: _Iterations) -> bool:
    """Return whether at least GROWING_SHARE (a fifth) of an iteration's operations have a result that becomes
    longer in each iteration (``_has_growing_result``)."""
    same = zip(*iterations, strict=True)  # each operation in all iterations
    changing = sum(_has_growing_result([module.ops[i].outputs for i in each]) for each in same)
    return changing >= GROWING_SHARE * len(iterations[0])


def _has_growing_result(outputs: Sequence[Sequence[str]]) -> bool:
    """Return whether a result becomes longer (in a backward pass, shorter) from iteration to iteration, along
    one dimension and always by the same number of elements. ``outputs`` has the types of the results in each
    iteration."""
    for results in zip(*outputs, strict=False):
        shapes = [types.tensor(text).shape or () for text in results]
        for sizes in zip(*shapes, strict=False):
            known = [n for n in sizes if n is not None]
            steps = {b - a for a, b in itertools.pairwise(known)}
            if len(known) == len(outputs) and len(steps) == 1 and 0 not in steps:
                return True
    return False


def _is_libraries(sources: Sources, iteration: Sequence[int]) -> bool:
    """Return whether no operation of an iteration has a line of the user, and a library other than JAX
    created at least one of them. ``iteration`` has their indices."""
    return all(sources.own(i).frame is None for i in iteration) and any(
        LIBRARIES.search(frame.file) and not JAX_FILES.search(frame.file)
        for i in iteration
        for frame in sources.own(i).folded
    )


def _is_jax_own(sources: Sources, iteration: Sequence[int]) -> bool:
    """Return whether a repeated block of operations comes from JAX's own code: no operation has a frame of
    the user, or all operations belong to one expression and none is a call. False if there are no locations.
    ``iteration`` has the indices of one iteration's operations."""
    ops = sources.module.ops
    if not any(ops[i].location for i in iteration):
        return False
    if all(sources.own(i).frame is None for i in iteration):
        return True
    spans = {sources.place(i).span for i in iteration}
    return len(spans) == 1 and "" not in spans and not any(ops[i].name in CALLS for i in iteration)


def _kinds(module: Module, sources: Sources, *, sizes: bool = True) -> tuple[list[int], list[int]]:
    """Return (numbers, weights), two lists with one item for each operation of the module. Equal operations
    have equal numbers. If ``sizes`` is False, operations that differ only in sizes count as equal.

    The weight is how many operations the operation stands for: itself and those in its regions; for a call
    those in the called function; 0 for a constant or a return.
    """
    numbers: dict[object, int] = {}
    bodies: dict[str, tuple[object, int]] = {}
    kinds, weights = [0] * len(module.ops), [1] * len(module.ops)
    inside: dict[int, list[int]] = {}
    # Called functions before their callers, and regions before their operation, to compare these, too.
    for f in reversed(sources.order):
        function = module.functions[f]
        top: list[int] = []
        for index in range(function.end - 1, function.first - 1, -1):
            op = module.ops[index]
            detail = op.detail
            if op.name.endswith("slice"):
                detail = SLICED.sub("", detail)
            if "@" in detail or " = " in detail:
                detail = VARIES.sub("", detail)
            region = inside.pop(index, [])
            callee = bodies.get(op.callee or "") if op.name in CALLS else None
            if op.name in CONSTANTS:
                detail, weights[index] = "", 0
            elif op.name in NOT_OPERATIONS:
                weights[index] = 0
            elif callee is not None:
                weights[index] = min(callee[1], 10**9)
            else:
                weights[index] = min(1 + sum(weights[i] for i in region), 10**9)
            inputs, outputs = op.inputs, op.outputs
            if not sizes:
                detail = NUMBER.sub("", detail)
                inputs, outputs = (tuple(NUMBER.sub("", text) for text in t) for t in (inputs, outputs))
            key = (
                op.name,
                detail,
                inputs,
                outputs,
                callee and callee[0],
                tuple(kinds[i] for i in region),
            )
            kinds[index] = numbers.setdefault(key, len(numbers))
            (top if op.parent is None else inside.setdefault(op.parent, [])).append(index)
        body = numbers.setdefault(tuple(kinds[i] for i in top), len(numbers))
        bodies[function.name] = (body, sum(weights[i] for i in top))
    return kinds, weights


def _source(
    sources: Sources, iteration: Sequence[int], inside: Sequence[int], repeated: set[int]
) -> Frame | None:
    """Return the line of the user's code that repeats a block of operations, in the body of the Python loop.
    Return None if no operation has a frame of the user.

    Args:
      iteration: the indices of one iteration's operations.
      inside: the indices of all iterations' operations.
      repeated: the indices of the operations in any repeated block.
    """
    chains = [c for i in iteration if (c := _chain(sources, i))]
    if not chains:
        return None
    shared: list[Frame] = []
    while True:
        level = len(shared)
        here = Counter(c[level] for c in chains if len(c) > level)
        if not here:
            break
        frame, count = here.most_common(1)[0]
        if count < SHARED * len(chains):
            break
        shared.append(frame)
        chains = [c for c in chains if len(c) > level and c[level] == frame]
    below = [c[len(shared)] for c in chains if len(c) > len(shared)]
    # If the innermost shared frame also causes other operations, it is a call of the function with the loop.
    if shared and (not below or not _elsewhere(sources, shared, set(below), inside, repeated)):
        return shared[-1]
    if not below:
        return shared[-1] if shared else None
    where, _ = Counter((f.file, f.function) for f in below).most_common(1)[0]
    return min((f for f in below if (f.file, f.function) == where), key=lambda f: f.line)


def _chain(sources: Sources, index: int) -> tuple[Frame, ...]:
    """Return the frames of the user on the stack of operation ``index`` in ``Module.ops``, outermost first;
    empty if there are none."""
    found = sources.own(index)
    return () if found.frame is None else (found.frame, *found.callers)[::-1]


def _under(sources: Sources, iteration: Sequence[int]) -> list[Frame]:
    """Return the lines of the user's code that are on the stacks of most operations of an iteration,
    outermost first. ``iteration`` has the indices of these operations."""
    chains = [c for i in iteration if (c := _chain(sources, i))]
    depths: dict[Frame, list[int]] = {}
    for chain in chains:
        for line, depth in {f: depth for depth, f in enumerate(chain)}.items():
            depths.setdefault(line, []).append(depth)
    common = [line for line, found in depths.items() if len(found) >= SHARED * len(chains)]
    return sorted(common, key=lambda line: sum(depths[line]) / len(depths[line]))


def _repeats_within(sources: Sources, kinds: Sequence[int], iteration: Sequence[int], line: Frame) -> bool:
    """Return whether the operations that ``line`` caused in one iteration are a repetition themselves: the
    line is in an inner loop. ``iteration`` has the indices of the iteration's operations, ``kinds`` a number
    for each operation of the module, equal for equal operations."""
    caused = [kinds[i] for i in iteration if line in _chain(sources, i)]
    longest = max(periods.find(caused, 2), key=lambda s: s.length, default=None)
    return longest is not None and longest.length >= SHARED * len(caused)


def _library(sources: Sources, iteration: Sequence[int], source: Frame) -> str | None:
    """Return the library whose modules the body of a loop calls most often, or None if it calls no library's
    module. ``iteration`` has the indices of one iteration's operations, ``source`` is a line of the loop's
    body."""
    found: Counter[str] = Counter()
    for i in iteration:
        frames = sources.place(i).frames
        body = [n for n, f in enumerate(frames) if (f.file, f.function) == (source.file, source.function)]
        library = module_libraries.nearest(frames[: body[0]][::-1]) if body else None
        if library is not None:
            found[library] += 1
    return found.most_common(1)[0][0] if found else None


def _elsewhere(
    sources: Sources, shared: list[Frame], below: set[Frame], inside: Sequence[int], repeated: set[int]
) -> bool:
    """Return whether the innermost of the ``shared`` frames also causes operations outside of a repeated
    block. Operations whose next frame is in ``below`` do not count as outside.

    Args:
      shared: the frames that the operations of the block share, outermost first.
      below: the next inner frames of these operations.
      inside: the indices of all iterations' operations.
      repeated: the indices of the operations in any repeated block.
    """
    ops = sources.module.ops
    here = ops[inside[0]]
    function = sources.module.functions[here.function]
    level = len(shared)
    for index in range(function.first, function.end):
        op = ops[index]
        if op.block != here.block or index in repeated or op.name in CONSTANTS or op.name in NOT_OPERATIONS:
            continue
        chain = _chain(sources, index)
        # The last iteration of a backward pass may differ a little from the others.
        if list(chain[:level]) == shared and (len(chain) <= level or chain[level] not in below):
            return True
    return False
