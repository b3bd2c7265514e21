"""Add up where the main thread of the main process spent its time, by line of the user's code."""

from __future__ import annotations

import math
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set

import msgspec
from msgspec.structs import replace

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.line_names import module_library
from jaxscope.analysis.source_lines import depends_on_a_condition, loops_around
from jaxscope.model import payers, sources, transfers
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import CALL_WRAPPERS
from jaxscope.schema.line_times import (
    CALLING,
    COMPILING,
    COPYING,
    OPERATIONS,
    PYTHON,
    SLEEPING,
    STANDARD_LIBRARY,
    WAITING,
    LineTime,
    LineTimes,
)

# Relative time of one operation of a matrix product, of one slow operation (a sort, a power) and of one other
# operation: the extremes of what was measured on CPUs
WEIGHTS = ((1, 1, 1), (1, 50, 50), (1, 50, 1), (1, 1000, 50))
CERTAIN = 2  # if two estimates of a function's share differ by a larger factor, the share is unknown
LARGE = 50_000  # elements of the arguments of an operation outside jit that may take long
# Calls of C code, which has no frame: calls that wait for a device, and calls that read an array
_WAITS, _READS = re.compile(r"\.block_until_ready\("), re.compile(r"(?:np|onp|numpy)\.(?:as)?array\(")
# Packages that read arrays in C code, without a frame of JAX, and that hardly wait for anything else
_READERS = frozenset({"matplotlib", "numpy", "seaborn"})
_MAKE_TEXT = ("numpy", "jax")  # packages whose Python code makes text of arrays
_OTHER_WAITS = re.compile(r"\b(load\w*|save\w*|im(read|save)|fromfile|tofile|genfromtxt|memmap|pause|show)\(")
_CONVERTS = re.compile(r"[\w.]*\b(?:as)?array\(")
FEWEST = 10  # samples: the error of the seconds is then about 30 %
ERROR_S = 0.2  # the most seconds between two samples, and so the largest error of one sample
LONG_S = 2.0  # seconds: the error is then at most 10 %, also of one sample of one long call of C code
MOST = 0.8  # share of a loop's seconds that a loop inside it has, for the inner loop to be named
_Loops = list[tuple[Frame, int]]  # (first line, number of the last line) of loops, outermost first


class Spent(msgspec.Struct, frozen=True):
    """The seconds that the main thread spent at one line doing one thing, such as waiting for a device.

    Attributes:
      doing: what the thread did: ``sleeping``, or ``compiling``, ``waiting``, ... (see ``LineTime``).
      line: the user's line (its field ``function`` is the function that contains the line).
      seconds: the wall time, in seconds.
      blocked: the part of ``seconds`` in which the thread slept: it waited for a device, a lock or a file.
      samples: the number of samples of which ``seconds`` is the sum.
      callers: the user's lines that led to ``line``, innermost first; of several call stacks, those of the
        stack with the most time.
      library: the installed package whose Python code ran in the stack with the most time; None: it was code
        of the user or of the standard library, or ``doing`` is not ``python``.
    """

    doing: str
    line: Frame
    seconds: float
    blocked: float
    samples: int
    callers: list[Frame]
    library: str | None = None


def measured(run: Run) -> LineTimes | None:
    """Return the times of the main thread of the main process by line, from the moment when JAX had a
    backend. None if nothing was measured after that."""
    times = run.main.line_times if run.main is not None else None
    return times if times is not None and times.seconds else None


def share_of_run(run: Run, seconds: float) -> float:
    """Return which fraction of the time that the program ran ``seconds`` are; 0 if that time is unknown."""
    return min(1.0, seconds / run.seconds) if run.seconds else 0.0


def setup_seconds(run: Run) -> float:
    """Return how many seconds of the main thread were sampled before JAX had a backend."""
    times = run.main.line_times if run.main is not None else None
    return times.setup_seconds if times is not None else 0.0


def setup(run: Run) -> list[Spent]:
    """Return how long the main thread did each thing at each of the user's lines before JAX had a backend,
    from the end of ``import jax`` on, the longest time first. Empty if nothing was measured."""
    found: dict[tuple[str, str, int], list[LineTime]] = {}
    for entry in run.main.line_times.setup if run.main is not None and run.main.line_times else ():
        doing = SLEEPING if entry.doing == PYTHON and 2 * entry.blocked > entry.seconds else entry.doing
        if doing == OPERATIONS:  # there is no device yet that could run one
            doing, entry = PYTHON, replace(entry, library="jax")
        if entry.stack:
            found.setdefault((doing, *entry.stack[0].place), []).append(entry)
    return sorted((_sum(doing, members) for (doing, *_), members in found.items()), key=lambda s: -s.seconds)


@cached_until_changed
def by_line(run: Run) -> list[Spent]:
    """Return how long the main thread did each thing (waiting, compiling, ...) at each of the user's lines,
    the longest time first. Empty if nothing was measured."""
    found = grouped(((doing, *entry.stack[0].place), entry) for doing, entry in entries(run))
    spent = [_sum(doing, members) for (doing, _, _), members in found.items()]
    return sorted(spent, key=lambda s: -s.seconds)


@cached_until_changed
def entries(run: Run) -> list[tuple[str, LineTime]]:
    """Return the times of the main thread since JAX had a backend, each as (what the thread did, the time):
    ``("waiting", LineTime(...))``. Empty if nothing was measured. If the thread slept in an operation outside
    jit or in Python code, the sleep is an entry of its own: ``waiting`` if it was for a device, else
    ``sleeping``."""
    times = measured(run)
    if times is None:
        return []
    calls = _Calls(run)
    read = {t.source.place for t in transfers.waits(run) if t.source is not None}
    found: list[tuple[str, LineTime]] = []
    for t in times.lines:
        if not t.stack:
            continue
        doing, place = calls.doing(t), t.stack[0].place
        operates = doing == OPERATIONS and (t.doing == OPERATIONS or place in calls.lines_of_operations)
        # On a CPU, what sleeps while it makes an array waits for results of earlier calls: nothing is copied.
        waits = operates or (doing == COPYING and run.platform == "cpu")
        if t.blocked and (waits or doing == PYTHON):
            waits = waits or place in read or _seems_to_wait(run, t)
            found += _without_sleep(t, doing, WAITING if waits else SLEEPING)
        else:
            found.append((doing, t))
    return found


class _Calls:
    """The calls of compiled functions and the operations outside jit of a run. They are recognized by their
    place: JAX compiled something there.

    Attributes:
      lines_of_operations: the lines, (file, number), with operations outside jit whose column is known.
    """

    def __init__(self, run: Run) -> None:
        self._at: dict[tuple[str, int, int], str] = {}  # (file, line, column) -> OPERATIONS or CALLING
        places = {OPERATIONS: set[tuple[str, int]](), CALLING: set[tuple[str, int]]()}
        for c in run.compilations.values():
            if c.site is None or c.missed is None or c.missed.column is None:
                continue
            doing = OPERATIONS if c.function.operation else CALLING
            places[doing].add(c.site.place)
            if c.entry == "call":
                self._at.setdefault((*c.site.place, c.missed.column), doing)
        self.lines_of_operations = {at[:2] for at, doing in self._at.items() if doing == OPERATIONS}
        self._only_operations = places[OPERATIONS] - places[CALLING]

    def doing(self, t: LineTime) -> str:
        """Return what the thread did in the time ``t``: ``operations`` or ``calling`` if JAX compiled
        something at its place, else ``t.doing``."""
        if t.doing not in (PYTHON, OPERATIONS, CALLING) or t.column is None:
            return t.doing
        place = t.stack[0].place
        compiled = self._at.get((*place, t.column))
        # A wrapper around jit, such as nnx.jit, runs code of its own in each call. Another library that calls
        # the jitted function, such as scipy.optimize.minimize, computes by itself.
        # JAX jits some of its own functions, such as those that draw random numbers.
        wrapped = compiled == CALLING and t.library in CALL_WRAPPERS
        if compiled is not None and (t.library is None or wrapped):
            return compiled
        if t.doing == CALLING and place in self._only_operations:
            return OPERATIONS  # functions that JAX itself jits, which transforms call at other places
        return t.doing


def _seems_to_wait(run: Run, t: LineTime) -> bool:
    """Return whether the thread waited for a device while it slept in the time ``t``: the source calls
    ``block_until_ready`` there, or it reads an array and calls nothing else that waits."""
    # jax.block_until_ready(step(next(batches))): next() waits for something else.
    call = sources.rest_of_line(run, t.stack[0], t.column)
    if _WAITS.search(call) or _READS.match(call):
        return True
    return t.library in _READERS and not _OTHER_WAITS.search(sources.line(run, t.stack[0]))


def _without_sleep(t: LineTime, doing: str, asleep: str) -> Iterator[tuple[str, LineTime]]:
    """Yield (``asleep``, the part of ``t`` in which the thread slept), and (``doing``, the rest) if the rest
    has samples."""
    samples = round(t.blocked / t.seconds * t.samples) if t.seconds else t.samples
    yield asleep, replace(t, seconds=t.blocked, samples=samples)
    if samples != t.samples:
        yield doing, replace(t, seconds=t.seconds - t.blocked, blocked=0.0, samples=t.samples - samples)


@cached_until_changed
def converting(run: Run) -> dict[tuple[str, int, int], tuple[float, int]]:
    """Return {(file, line, column in bytes): (seconds, number of samples)} of the calls of ``jnp.array`` and
    ``jnp.asarray`` in the main thread, before and after JAX had a backend. The seconds do not contain
    sleep."""
    times = run.main.line_times if run.main is not None else None
    every = [t for doing, t in entries(run) if doing == COPYING]
    every += [t for t in times.setup if t.doing == COPYING and t.stack] if times is not None else []
    found = dict[tuple[str, int, int], tuple[float, int]]()
    for t in every:
        text = sources.rest_of_line(run, t.stack[0], t.column)
        if t.column is None or not _CONVERTS.match(text):
            continue
        call = (*t.stack[0].place, t.column)
        seconds, samples = found.get(call, (0.0, 0))
        found[call] = seconds + t.seconds - t.blocked, samples + t.samples
    return found


def text_seconds(run: Run, at: Frame) -> float | None:
    """Return the seconds that the main thread spent on making text of arrays at the line ``at``, which prints
    or formats arrays. None if nothing was measured, or if there are too few samples."""
    return sure_seconds(
        [t for doing, t in entries(run) if makes_text(doing, t) and t.stack[0].place == at.place]
    )


def makes_text(doing: str, t: LineTime) -> bool:
    """Return whether, at a line that prints or formats arrays, the main thread made their text in the time
    ``t``: it ran Python code of NumPy or JAX. ``doing`` is what the thread did according to ``entries``."""
    return doing == PYTHON and t.library in _MAKE_TEXT


def seconds_at(
    run: Run, lines: Collection[tuple[str, int]], what: Collection[str] = (OPERATIONS, WAITING)
) -> float | None:
    """Return the seconds that the main thread spent on ``what`` (operations outside jit and waiting for
    values) at one of ``lines``, (file, number), or in a function called there. None if nothing was measured,
    or if there are too few samples."""
    found = [t for doing, t in entries(run) if doing in what and any(f.place in lines for f in t.stack)]
    return sure_seconds(found)


def seconds_in_loop(run: Run, stack: Sequence[Frame]) -> float | None:
    """Return the seconds that the main thread spent on operations outside jit and on waiting for values in
    one loop: the innermost loop around the first line of ``stack`` (user's frames, innermost first) that is
    in a loop. None if there is no loop, if nothing was measured, or if there are too few samples."""
    around = next((list(_around(run, [frame])) for frame in stack if list(_around(run, [frame]))), [])
    inside = [
        t
        for doing, t in entries(run)
        if around and doing in (OPERATIONS, WAITING) and around[-1] in _around(run, t.stack)
    ]
    return sure_seconds(inside)


def sure_seconds(times: Sequence[LineTime]) -> float | None:
    """Return the sum of the seconds of ``times``. None if the sum may be wrong by much: if it has fewer than
    FEWEST samples, and is less than LONG_S and less than 2 * ERROR_S for each sample."""
    # A call of C code that waits is one sample, however long.
    seconds, samples = sum(t.seconds for t in times), sum(t.samples for t in times)
    exact = seconds >= LONG_S or (samples > 0 and seconds >= 2 * ERROR_S * samples)
    return seconds if samples >= FEWEST or exact else None


def running_seconds(run: Run, function: Function) -> float | None:
    """Return the seconds that the main thread spent in calls of the jitted ``function`` and on waiting for
    its values. None if nothing was measured, or if there are too few samples. None also if waits that may be
    for other functions, and cannot be divided, took longer.

    A wait counts if no other jitted function of the user can be its reason. Of a wait in a loop that also
    calls other jitted functions, a part counts (``_parts_in_loops``)."""
    calls = [c for c in payers.user_calls(run) if c.site is not None]
    large = [c for c in run.compilations.values() if not c.function.user and _is_large(c)]
    stacks = [c.lines for c in calls if c.function is function]
    lines = {stack[0].place for stack in stacks}
    others = [c.lines for c in calls if c.function is not function]
    others += [c.lines for c in large]
    others += [t.stack for doing, t in entries(run) if doing == CALLING and t.stack[0].place not in lines]
    is_own = _recognizes_waits(run, stacks, others)
    times = [
        t
        for doing, t in entries(run)
        if (doing == CALLING and t.stack[0].place in lines) or (doing == WAITING and is_own(t))
    ]
    parts, unknown = _parts_in_loops(run, function, [*calls, *large], is_own)
    shared = {stack[0].place for stack in others} & lines  # lines that also call other functions
    unknown += sum(t.seconds for t in times if t.stack[0].place in shared)
    times = [*(t for t in times if t.stack[0].place not in shared), *parts]
    return sure_seconds(times) if unknown <= sum(t.seconds for t in times) else None


def _recognizes_waits(
    run: Run, stacks: Sequence[Sequence[Frame]], others: Sequence[Sequence[Frame]]
) -> Callable[[LineTime], bool]:
    """Return a function that says whether a wait is for the results of one jitted function. It is if it is in
    a loop that calls no other jitted function, or if it is on one of the lines after a call that
    ``_own_lines`` returns.

    Args:
      stacks: the user's lines that led to each call of the jitted function, innermost first.
      others: the same for the calls of other jitted functions.
    """
    loops = {loop for stack in stacks for loop in _around(run, stack)}
    loops -= {loop for stack in others for loop in _around(run, stack)}
    lines_of_others = grouped(((f.file, f.function), f.line) for stack in others for f in stack)
    own_lines: dict[tuple[str, str], list[range]] = {}  # by the Python function: (file, name)
    for stack in stacks:
        for depth, f in enumerate(stack):
            name = f.file, f.function
            lines = _own_lines(run, stack[depth:], set(lines_of_others.get(name, ())))
            own_lines.setdefault(name, []).append(lines)

    def is_own(wait: LineTime) -> bool:
        after = any(f.line in lines for f in wait.stack for lines in own_lines.get((f.file, f.function), ()))
        return after or not loops.isdisjoint(_around(run, wait.stack))

    return is_own


def _is_large(c: Compilation) -> bool:
    """Return whether the call ``c`` gets arrays with at least LARGE elements together."""
    shapes = [leaf.shape or () for leaf in (c.key.arguments if c.key is not None else ())]
    return sum(math.prod(n for n in shape if isinstance(n, int)) for shape in shapes) >= LARGE


def _parts_in_loops(
    run: Run, function: Function, calls: Sequence[Compilation], is_own: Callable[[LineTime], bool]
) -> tuple[list[LineTime], float]:
    """Return (times, seconds) for waits in loops that call ``function`` and other jitted functions: the parts
    of these waits that are probably for ``function``, and the seconds of waits that cannot be divided.

    A wait is divided by the arithmetic operations of the programs that the loop calls.

    Args:
      calls: the recorded calls of the user's jitted functions, and of operations outside jit on large arrays,
        which count like jitted functions.
      is_own: whether all of a wait is for the results of ``function``; such waits are skipped.
    """
    parts, unknown = [], 0.0
    shares: dict[tuple[Frame, int], float | None] = {}
    called = [(c, list(_around(run, reversed(c.lines)))) for c in calls]
    with_calls = {loop for _, around in called for loop in around}
    mine = {loop for c, around in called if c.function is function for loop in around}
    for doing, t in entries(run):
        if doing != WAITING or is_own(t):
            continue
        loop = next(
            (one for one in reversed(list(_around(run, reversed(t.stack)))) if one in with_calls), None
        )
        if loop is None or loop not in mine:
            continue
        if loop not in shares:
            shares[loop] = _share_in_loop(run, function, loop, called)
        share = shares[loop]
        if share is None:
            unknown += t.seconds
        else:
            parts.append(replace(t, seconds=share * t.seconds, samples=t.samples))
    return parts, unknown


def _share_in_loop(
    run: Run, function: Function, loop: tuple[Frame, int], called: Sequence[tuple[Compilation, _Loops]]
) -> float | None:
    """Return the fraction (0 to 1) of the arithmetic work of ``loop`` that ``function`` does; of the
    estimates with WEIGHTS, the highest. None if it is unknown, if the estimates differ much (CERTAIN), or if
    a call is in an inner loop or depends on a condition.

    Args:
      called: the calls to compare, each with the loops around it, outermost first.
    """
    work: dict[tuple[str, tuple[str, int]], tuple[int, int, int]] = {}
    for c, around in called:
        if loop not in around:
            continue
        lowered = run.stablehlo(c)
        if around[-1] != loop or lowered is None or lowered.work is None or c.site is None:
            return None
        if depends_on_a_condition(sources.of(run)(c.site.file), c.site.line):
            return None  # it is not called in each iteration
        call = c.function.id, c.site.place
        work[call] = max(lowered.work, work.get(call, (0, 0, 0)), key=sum)  # of programs for several sizes
    shares = []
    for weights in WEIGHTS:
        each = {call: sum(map(operator.mul, kinds, weights)) for call, kinds in work.items()}
        own = sum(n for (name, _), n in each.items() if name == function.id)
        shares.append(own / sum(each.values()) if any(each.values()) else 0.0)
    return max(shares) if 0 < max(shares) <= CERTAIN * min(shares) else None


def _own_lines(run: Run, stack: Sequence[Frame], others: Set[int]) -> range:
    """Return the lines from a call of a jitted function to the next call of another one, in the Python
    function that contains both: a wait on these lines is for the results of the call. The range is empty if
    the program may still wait there for an earlier call of another function; it has no end if ``others`` is
    empty.

    Args:
      stack: the line of the call, and the lines above it in the call stack.
      others: the lines of the same Python function that call other jitted functions.
    """
    at = stack[0]
    if not others:
        return range(at.line, sys.maxsize)
    text = sources.of(run)(at.file)
    looped = loops_around(text, at.line)
    if at.line in others or any(first <= line <= last for first, last in looped for line in others):
        return range(0)
    before = max((line for line in others if line < at.line), default=None)
    if before is None:
        if next(_around(run, stack[1:]), None) is not None:
            return range(0)  # the calls of the iteration before may be the reason
    elif not any(before <= f.line < at.line for f in _waits_in(run, at)):
        return range(0)
    return range(at.line, min((line for line in others if line > at.line), default=sys.maxsize))


def _waits_in(run: Run, at: Frame) -> Iterator[Frame]:
    """Yield the lines of the Python function of ``at`` at which the program waited for values."""
    for doing, t in entries(run):
        if doing == WAITING:
            yield from (f for f in t.stack if (f.file, f.function) == (at.file, at.function))


def _around(run: Run, stack: Iterable[Frame], *, comprehensions: bool = False) -> Iterator[tuple[Frame, int]]:
    """Yield the loops around each line of ``stack`` in turn, outermost first, as (first line, number of the
    last line). If ``comprehensions`` is True, comprehensions count as loops."""
    text = sources.of(run)
    for frame in stack:
        for first, last in loops_around(text(frame.file), frame.line, comprehensions=comprehensions):
            yield Frame(frame.file, first, frame.function), last


def in_loop(run: Run, stack: Iterable[Frame]) -> bool:
    """Return whether a loop or a comprehension is around one of the lines ``stack``."""
    return next(_around(run, stack, comprehensions=True), None) is not None


class Loop(msgspec.Struct, frozen=True):
    """A loop of the user's code, and times of the main thread while it ran.

    Attributes:
      line: the first line of the loop (its field ``function`` is the function that contains the loop).
      last: the number of the last line of the loop.
      calls: whether the loop calls jitted functions of the user.
      times: the times in the loop and in the functions that it calls.
    """

    line: Frame
    last: int
    calls: bool
    times: list[LineTime]

    @property
    def seconds(self) -> float:
        """Return the sum of the seconds in which the thread did not sleep."""
        return sum(t.seconds - t.blocked for t in self.times)

    @property
    def samples(self) -> int:
        return sum(t.samples for t in self.times)

    def lines(self, *, own: bool = False) -> list[tuple[Frame, float]]:
        """Return the lines where the time was spent, each with its seconds without sleep, the longest first.
        If ``own`` is True, return the lines of the loop itself, with the time of the functions that they
        call."""
        first, found = self.line, dict[tuple[str, int], tuple[Frame, float]]()
        for t in self.times:
            at = t.stack[0]
            if own:
                inside = (f for f in reversed(t.stack) if first.line <= f.line <= self.last)
                at = next((f for f in inside if (f.file, f.function) == (first.file, first.function)), at)
            _, before = found.get(at.place, (at, 0.0))
            found[at.place] = at, before + t.seconds - t.blocked
        return sorted(found.values(), key=lambda item: -item[1])


def loops(run: Run, times: list[LineTime], least: float) -> list[Loop]:
    """Return the loops in which the main thread spent at least ``least`` seconds of ``times`` (without
    sleep).

    If a loop inside another loop, or in a function that the other loop calls, has at least the fraction MOST
    of its seconds, only the inner loop is returned. If some of the loops around a time call jitted functions,
    the remaining loops around this time are ignored. So are loops in methods of a module class, if a loop is
    around their call."""
    calls = _with_calls(run)
    nested = [(list(_around(run, reversed(t.stack))), t) for t in times]
    nested = [([loop for loop in around if loop in calls] or around, t) for around, t in nested]
    # Of a module (Flax, Equinox), the whole call is to be jitted, not an iteration over its layers.
    nested = [
        ([one for one in around if not _is_of_module(run, one[0])] or around, t) for around, t in nested
    ]
    found: dict[tuple[Frame, int], list[LineTime]] = {}  # several loops may call the function of one loop
    for loop in _innermost(nested, 0, least):
        found.setdefault((loop.line, loop.last), []).extend(loop.times)
    return [Loop(line, last, (line, last) in calls, inside) for (line, last), inside in found.items()]


def _is_of_module(run: Run, at: Frame) -> bool:
    """Return whether the line ``at`` is in a method of a module class (``flax.linen.Module``)."""
    return module_library(sources.of(run)(at.file), at.function) is not None


def inner_loops(run: Run, loop: Loop, share: float, other: float) -> list[Frame]:
    """Return the first lines of the loops and comprehensions inside ``loop``, or inside functions that it
    calls, that took most of its seconds. The first one is the longest, and has at least the fraction
    ``share`` of these seconds. Each other one has at least the fraction ``other``, and is neither inside nor
    around an earlier one. Empty if none has ``share``."""
    seconds: dict[Frame, float] = {}
    nested: dict[Frame, set[Frame]] = {}
    for t in loop.times:
        around = list(_around(run, reversed(t.stack), comprehensions=True))
        for line, last in reversed(around):  # innermost first
            if (line.place, last) == (loop.line.place, loop.last):
                break
            seconds[line] = seconds.get(line, 0.0) + t.seconds - t.blocked
            nested.setdefault(line, set()).update(at for at, _ in around)
    found: list[Frame] = []
    for line in sorted(seconds, key=lambda line: -seconds[line]):
        enough = seconds[line] >= (other if found else share) * loop.seconds
        if enough and nested[line].isdisjoint(found):
            found.append(line)
        elif not found:
            break
    return found


def innermost_loops(run: Run, loop: Loop, share: float) -> list[Frame]:
    """Return the first lines of the innermost loops and comprehensions in which the times of ``loop`` were
    spent, in the loop itself or in functions that it calls. Only those with at least the fraction ``share``
    of its seconds; the longest comes first."""
    seconds = Counter[Frame]()
    for t in loop.times:
        around = list(_around(run, reversed(t.stack), comprehensions=True))
        seconds[around[-1][0]] += round(1e9 * (t.seconds - t.blocked))
    return [line for line, ns in seconds.most_common() if ns >= 1e9 * share * loop.seconds]


def _with_calls(run: Run) -> set[tuple[Frame, int]]:
    """Return the loops that call jitted functions of the user, each as (first line, number of the last
    line)."""
    stacks = [t.stack for doing, t in entries(run) if doing == CALLING]
    stacks += [c.lines for c in payers.user_calls(run) if c.site is not None]
    return {loop for stack in stacks for loop in _around(run, stack)}


def _innermost(nested: list[tuple[_Loops, LineTime]], depth: int, least: float) -> Iterator[Loop]:
    """Yield the loops at ``depth`` (0: the outermost loops) with at least ``least`` seconds. If a loop inside
    such a loop has at least ``least`` and the fraction MOST of its seconds, yield only the inner loop.
    ``nested`` has (the loops around a time, outermost first; the time)."""
    members = grouped((around[depth], (around, t)) for around, t in nested if len(around) > depth)
    for (line, last), inside in members.items():
        loop = Loop(line, last, False, [t for _, t in inside])
        if loop.seconds >= least:
            yield from list(_innermost(inside, depth + 1, max(least, MOST * loop.seconds))) or [loop]


def traced(run: Run) -> list[Spent]:
    """Return the seconds in which JAX traced each line of the user, the longest time first. The first of
    ``callers`` is the line whose call made JAX trace."""
    tracing = (entry for doing, entry in entries(run) if doing == COMPILING and entry.traced)
    found = grouped((entry.traced[0].place, entry) for entry in tracing)
    spent = []
    for members in found.values():
        most = max(members, key=lambda entry: entry.seconds)
        total = _sum(COMPILING, members)
        spent.append(replace(total, line=most.traced[0], callers=most.stack))
    return sorted(spent, key=lambda s: -s.seconds)


def _sum(doing: str, members: list[LineTime]) -> Spent:
    """Return the sum of the times ``members``, in which the main thread did ``doing``. ``line``, ``callers``
    and ``library`` of the sum are those of the longest time."""
    most = max(members, key=lambda entry: entry.seconds)
    return Spent(
        doing=doing,
        line=most.stack[0],
        seconds=sum(entry.seconds for entry in members),
        blocked=sum(entry.blocked for entry in members),
        samples=sum(entry.samples for entry in members),
        callers=most.stack[1:],
        library=most.library if doing == PYTHON and most.library != STANDARD_LIBRARY else None,
    )
