"""Find the draws of random numbers in a program: equal draws that it contains several times, and draws from a
key that is the same for all elements of a ``vmap`` or in all iterations of a loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

import msgspec

from jaxscope.analysis.stablehlo import flow, types, work
from jaxscope.analysis.stablehlo.module import CALLS, Module
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

# JAX's functions that draw from a key, their first argument. A lowered program may have several copies:
# ``_normal``, ``_normal_1``, ...
DRAWS = frozenset(
    {"_normal", "_uniform", "_bernoulli", "_randint", "_truncated_normal", "_gumbel", "_exponential"}
    | {"_laplace", "_gamma", "_beta", "_cauchy", "_dirichlet", "_poisson", "_logistic", "_rademacher"}
)
_NUMBER = re.compile(r"_\d+$")
DEPTH = 60  # how many operations or calls a key is followed through
WORDS = frozenset({2, 4})  # the number of words in a key: 2 for Threefry, 4 for RBG


class SharedDraws(msgspec.Struct, frozen=True):
    """The random draws of one line of the user's code that give the same numbers for all elements of a
    ``vmap``.

    Attributes:
      functions: the functions of ``jax.random`` that draw, by their names in the program: ``_normal``.
      source: the line; None: unknown.
      in_loop: whether some of the draws are in a loop, so that one call of the program draws several times.
    """

    functions: tuple[str, ...]
    source: Frame | None
    in_loop: bool = False


class LoopDraws(msgspec.Struct, frozen=True):
    """The random draws of one line of the user's code that give the same numbers in each iteration of a loop
    of the program.

    Attributes:
      functions: the functions of ``jax.random`` that draw, by their names in the program: ``_normal``.
      source: the line; None: unknown.
      loop: the line of the user's code with the loop.
    """

    functions: tuple[str, ...]
    source: Frame | None
    loop: Frame


class RepeatedDraws(msgspec.Struct, frozen=True):
    """The draws of random numbers in a program.

    Attributes:
      draws: how many draws the program contains, once all calls are inlined.
      different: the number of different combinations of shape, dtype and distribution among them.
      source: the line of the user's code that causes most of the draws; None: unknown.
    """

    draws: int
    different: int
    source: Frame | None


def repeated(module: Module, sources: Sources) -> RepeatedDraws | None:
    """Return how many random draws a program has, if several have the same shape, dtype and distribution;
    else None."""
    callees: Counter[str] = Counter()
    lines: Counter[Frame] = Counter()
    for index, _ in _draws(module, sources):
        op = module.ops[index]
        times = sources.times[op.function]
        callees[str(op.callee)] += times
        for line in sources.frames(index):
            lines[line] += times
    draws = callees.total()
    if draws == len(callees):
        return None
    return RepeatedDraws(draws, len(callees), lines.most_common(1)[0][0] if lines else None)


def _draws(module: Module, sources: Sources) -> Iterator[tuple[int, str]]:
    """Yield (index of the operation, function of ``jax.random``) for each call that draws random numbers."""
    for index, op in enumerate(module.ops):
        if op.name not in CALLS or op.callee is None or not op.inputs or not sources.times[op.function]:
            continue
        if module.functions[op.function].name.startswith(tuple(DRAWS)):
            continue  # jax.random.normal draws uniform numbers first
        name = _NUMBER.sub("", op.callee)
        if name in DRAWS:
            yield index, name


def shared(module: Module, sources: Sources) -> list[SharedDraws]:
    """Return the draws under ``vmap`` from a key that is the same for all elements, grouped by line of the
    user's code."""
    found: dict[Frame | None, dict[str, None]] = {}
    looped: set[Frame | None] = set()
    under = _under_vmap(sources)
    for index, name in _draws(module, sources):
        op = module.ops[index]
        key = types.tensor(op.inputs[0])
        if key.dtype != "uint32" or key.shape is None or len(key.shape) != 1:
            continue
        if key.shape[0] in WORDS and (under[op.function] or "vmap(" in (sources.place(index).name or "")):
            found.setdefault(sources.frame(index), {})[name] = None
            looped.update([sources.frame(index)] if sources.in_loop(index) else [])
    return [SharedDraws(tuple(names), source, source in looped) for source, names in found.items()]


def in_loops(module: Module, sources: Sources) -> list[LoopDraws]:
    """Return the draws in loops of the user's code whose key is the same in all iterations, grouped by line
    and loop. The key is followed through the program to values from outside the loop."""
    values, found = flow.Flow(module), dict[tuple[Frame | None, Frame], dict[str, None]]()
    insides: dict[int, set[int]] = {}
    random = work.of_threefry(module, sources)
    for index, name in _draws(module, sources):
        loop = _loop_around(module, sources, index)
        line = sources.own(loop).frame if loop is not None else None
        if loop is None or line is None or module.ops[loop].function in random:
            continue
        if sources.in_library(loop):
            continue  # in the loop of a sampler, the density must stay the same
        if loop not in insides:
            insides[loop] = _inside(module, loop)
        if _is_same(values, flow.ReachedValue(index), 0, insides[loop], {}, DEPTH):
            found.setdefault((sources.frame(index), line), {})[name] = None
    return [LoopDraws(tuple(names), source, loop) for (source, loop), names in found.items()]


def _loop_around(module: Module, sources: Sources, index: int) -> int | None:
    """Return the innermost loop around the operation at ``index``. The loop may be around the only call of
    the function that contains the operation. Return None if no loop is found."""
    for _ in range(DEPTH):
        parent = module.ops[index].parent
        while parent is not None:
            if module.ops[parent].name in LOOPS:
                return parent
            parent = module.ops[parent].parent
        calls = sources.called[module.ops[index].function]
        if len(calls) != 1:
            return None
        [index] = calls
    return None


def _inside(module: Module, loop: int) -> set[int]:
    """Return the operations inside ``loop`` and in all functions that these operations call."""
    inside, functions = set[int](), set[int]()
    function = module.functions[module.ops[loop].function]
    left = [range(function.first, function.end)]
    while left:
        for k in left.pop():
            op = module.ops[k]
            if op.function == module.ops[loop].function and op.parent != loop and op.parent not in inside:
                continue
            inside.add(k)
            callee = module.callee(op)
            if callee is not None and callee not in functions:
                functions.add(callee)
                left.append(range(module.functions[callee].first, module.functions[callee].end))
    return inside


def _is_same(
    values: flow.Flow,
    reader: flow.ReachedValue,
    k: int,
    inside: set[int],
    known: dict[flow.ReachedValue, bool],
    depth: int,
) -> bool:
    """Return whether operand ``k`` of the operation ``reader`` has the same value in all iterations of a
    loop: it comes from outside of the loop, or is computed only from such values. Return False if this is
    unknown. ``inside`` has the operations in the loop, ``known`` the answers so far. At most ``depth``
    operations are followed."""
    if values.is_argument(reader, k):
        return True
    made = values.maker(reader, k)
    if made is None or depth == 0:
        return False
    if made.at not in inside:
        return True
    if made not in known:
        op = values.module.ops[made.at]
        known[made] = False  # until the answer is known: a value does not depend on itself
        complete = len(op.operands) == len(op.inputs) and op.name not in LOOPS
        known[made] = complete and all(
            _is_same(values, made, n, inside, known, depth - 1) for n in range(len(op.inputs))
        )
    return known[made]


def _under_vmap(sources: Sources) -> list[bool]:
    """Return for each function of the module whether all calls of it are under ``vmap``. The body of a scan
    under ``vmap`` is such a function: the names of its own operations do not show the ``vmap``."""
    under = [False] * len(sources.called)
    for f in sources.order:
        under[f] = bool(sources.called[f]) and all(
            under[sources.module.ops[call].function] or "vmap(" in (sources.place(call).name or "")
            for call in sources.called[f]
        )
    return under
