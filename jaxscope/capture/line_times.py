"""Measure on which lines of the user the main thread spends its time, and with what: compiling, waiting for
values, checking them for NaN, copying to devices, calling compiled functions, operations outside jit, or the
line's own Python code and calls.

C code (``jaxscope/_stacks.c``) samples the stack of the main thread, at first about 50 times a second, later
less often. A sample counts for the seconds since the sample before it. This module adds up the samples. It
writes the sums as an event ``LineTimes`` whenever the recorded time has grown by half, and at the end.

After a sample, the main thread can also run Python code of jaxscope (``look``), which takes snapshots of the
live arrays if nothing else happens.

The samples taken before JAX has a backend are added up apart. A thread requests the samples, and Python warns
when a process with several threads forks. So before JAX has a backend, a fork ends the sampling. Later, the
backend has threads of its own.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from jaxscope.capture import frames, shield
from jaxscope.capture.warm import PURE
from jaxscope.jax_internals.names import (
    AROUND,
    CALL_FRAME,
    CALLS_AHEAD_OF_TIME,
    CHECKING_FRAMES,
    COMPILING_FRAMES,
    COPYING_FRAMES,
    DESCRIBES,
    DESCRIBES_FILES,
    TEXT_FRAMES,
    WAITING_FRAMES,
)
from jaxscope.schema.file_owner import Standing
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS
from jaxscope.schema.line_times import (
    CALLING,
    CHECKING,
    COMPILING,
    COPYING,
    OPERATIONS,
    PYTHON,
    STANDARD_LIBRARY,
    WAITING,
    LineTime,
    LineTimes,
)

PERIOD_S = 0.02  # at the beginning; _stacks.c makes it longer
GROWN = 1.5
LOOK_S = 1.0  # seconds until ``look`` is first called
RETRY_S = 0.05  # seconds until the next attempt, if ``look`` could not be called
FIRST_S = 5.0  # seconds after which the times are first written
MOST_CALLERS = 6  # lines of the user that are kept of one stack
MOST = 300  # entries of one event
MOST_SETUP = 50  # entries of the time before JAX has a backend
# Settings of JAX with which each call or operation takes longer
DEBUGGING = ("jax_debug_nans", "jax_debug_infs", "jax_disable_jit")
_MAKING_TEXT = "making_text"  # of an array (``print``); in the log this is PYTHON

# What the main thread does while one of these functions of JAX runs
_FRAMES = {
    COMPILING: COMPILING_FRAMES,
    WAITING: WAITING_FRAMES,
    COPYING: COPYING_FRAMES,
    CHECKING: CHECKING_FRAMES,
    CALLING: frozenset({CALL_FRAME}),
    _MAKING_TEXT: TEXT_FRAMES,
}
# If functions of several kinds are on the stack, the first of these kinds says what the thread does
_FIRST = (CHECKING, WAITING, COPYING, CALLING, _MAKING_TEXT)


class _Place(NamedTuple):
    """What the main thread did in a sample, and on which lines.

    Attributes:
      doing: what it did: ``compiling``, ``waiting``, ``copying``, ``checking``, ``calling``, ``operations``
        or ``python``, as in ``LineTime``; empty: unknown.
      stack: the user's lines, innermost first, without those in ``traced``.
      column: the column, in bytes, of the expression that the innermost line runs; None: unknown, or
        ``doing`` is ``compiling``.
      traced: the user's lines that JAX traces, innermost first.
      library: the installed package or the standard library whose code the innermost line ran; None: neither,
        or ``doing`` is not ``python``.
    """

    doing: str
    stack: tuple[Frame, ...]
    column: int | None = None
    traced: tuple[Frame, ...] = ()
    library: str | None = None


_Sums = dict[_Place, list[float]]  # [seconds, blocked, samples]


class LineTimer:
    """Measures on which lines the main thread spends its time, for one recording.

    Args:
      emit: is called with each event.
      clock: returns the present time in seconds.
      look: is called with the running frame now and then, when the main thread runs code of the user and no
        function of JAX is on the stack. It returns after how many seconds it is to be called again; None:
        after LOOK_S. If ``look`` itself is None, nothing is called.
    """

    def __init__(
        self,
        emit: Callable[[LineTimes], None],
        clock: Callable[[], float] = time.perf_counter,
        look: Callable[[FrameType], float | None] | None = None,
    ) -> None:
        self._emit = emit
        self._look = look
        self._clock = clock
        self._began = clock()
        self._sampler: Any = None
        self._seconds = 0.0
        self._places: _Sums = {}
        self._setup_seconds, self._setup_places = 0.0, _Sums()
        self._in_setup = False
        self._due = FIRST_S
        self._lock = threading.RLock()  # any thread may fork while the main thread starts the backend

    def start(self, *, setup: bool = False) -> None:
        """Begin to sample the stack of the main thread. Do nothing if there is no C code that samples
        (``sampler``). ``setup``: JAX has no backend yet; call this method again as soon as it has one."""
        with self._lock:
            self.end_setup()
            self._sampler = sampler()
            if self._sampler is not None:
                self._in_setup = setup
                self._sampler.start(PERIOD_S)
                if self._look is not None and not setup:
                    self._sampler.call_after(LOOK_S, self._at_sample)

    def _at_sample(self) -> None:
        """Call ``look`` in the main thread, after a sample of its stack. Do not call it unless the user's
        code runs and no function of JAX or jaxscope is on the stack, because such a function may be changing
        what ``look`` reads. Also set when this method is called again."""
        frame, token, wait = sys._getframe(1), object(), None
        try:
            if self._look is not None and _runs_only_the_program(frame) and shield.enter(token):
                wait = shield.attempt("live_arrays", self._look, frame) or LOOK_S
        except Exception as e:
            if shield.of_signal_handler(e):
                raise
        finally:
            shield.leave(token)
            if self._sampler is not None:
                self._sampler.call_after(RETRY_S if wait is None else wait, self._at_sample)

    def end_setup(self) -> None:
        """End the sampling that began before JAX had a backend, and keep its samples. Do nothing if no such
        sampling is in progress. This is also called before the process forks."""
        with self._lock:
            if self._in_setup:
                sampling, self._sampler, self._in_setup = self._sampler, None, False
                self._setup_seconds += _add(sampling.take(), self._setup_places)
                sampling.stop()

    def stop(self) -> None:
        """Log the times of the lines for the last time, and stop sampling."""
        shield.attempt("line_times", self.end_setup)
        sampling, self._sampler = self._sampler, None
        if sampling is not None:
            shield.attempt("line_times", self._write, sampling)
            shield.attempt("line_times", sampling.stop)
        elif self._setup_places and not self._places:
            self._emit(self._event())

    def forked(self) -> None:
        """Stop measuring in a forked child: the thread that requests the samples exists in the parent
        only."""
        self._lock = threading.RLock()  # a thread of the parent may have held it
        sampling, self._sampler = self._sampler, None
        if sampling is not None:
            sampling.stop()

    def passed(self) -> None:
        """Log the times of the lines if the recorded time has grown by half since they were last logged; for
        the first time after FIRST_S seconds."""
        elapsed = self._clock() - self._began
        if self._sampler is not None and not self._in_setup and elapsed >= self._due:
            self._due = GROWN * elapsed
            shield.attempt("line_times", self._write, self._sampler)

    def step_ended(self, step: int) -> int:
        """Log the times of the lines at the end of the training step number ``step``, if they are due
        (``passed``). Return after how many more steps this method is to be called again."""
        self.passed()
        return max(1, step // 4)

    def _write(self, sampling: Any) -> None:
        """Add the new samples of ``sampling``, the module ``_stacks``, to the sums, and log all sums if there
        are any."""
        self._seconds += _add(sampling.take(), self._places)
        if self._places:
            self._emit(self._event())

    def _event(self) -> LineTimes:
        """Return the times of all samples so far, as an event."""
        return LineTimes(
            seconds=round(self._seconds, 6),
            lines=_lines(self._places, MOST),
            debugging=shield.attempt("debug_settings", _debugging) or [],
            setup_seconds=round(self._setup_seconds, 6),
            setup=_lines(self._setup_places, MOST_SETUP),
        )


def _add(samples: list[Any], sums: _Sums) -> float:
    """Add ``samples`` of the main thread's stack to ``sums``, and return the seconds for which they count.
    Each sample is (seconds, whether the thread slept, code object, instruction offset, code object,
    instruction offset, ...), innermost frame first."""
    stacks, whole = _Stacks(), 0.0
    for seconds, slept, *stack in samples:
        whole += seconds
        at = sums.setdefault(stacks.place(stack[::2], stack[1::2]), [0.0, 0.0, 0])
        for i, part in enumerate((seconds, seconds if slept else 0.0, 1)):
            at[i] += part
    return whole


def _lines(sums: _Sums, most: int) -> list[LineTime]:
    """Return the entries of ``sums`` that have a line of the user, as data for the log: at most ``most``,
    those with the longest times first."""
    known = [(at, parts) for at, parts in sums.items() if at.stack]
    return [
        LineTime(
            doing=at.doing,
            stack=list(at.stack),
            column=at.column,
            traced=list(at.traced),
            library=at.library,
            seconds=round(seconds, 6),
            blocked=round(blocked, 6),
            samples=int(samples),
        )
        for at, (seconds, blocked, samples) in sorted(known, key=lambda item: -item[1][0])[:most]
    ]


def _debugging() -> list[str]:
    """Return the names of the settings in DEBUGGING (``jax_debug_nans``, ...) that are on now."""
    config = getattr(sys.modules.get("jax"), "config", None)
    return [name for name in DEBUGGING if getattr(config, name, False)]


def _runs_only_the_program(frame: FrameType) -> bool:
    """Return whether ``frame`` runs code of the user, and neither ``frame`` nor a caller runs a destructor or
    a function of JAX, of a library around JAX or of jaxscope. Such functions may be called while data is
    being changed."""
    if frames.file_standing(frame.f_code.co_filename) != Standing.USER:
        return False
    return not any(
        f.f_code.co_name == "__del__" or frames.library_of(f.f_code.co_filename) is not None
        for f in frames.walk(frame)
    )


def sampler() -> Any:
    """Return the module ``_stacks``, which samples the stack of the main thread; None if it was not built, or
    if the environment variable JAXSCOPE_PURE_PYTHON is set."""
    if os.environ.get(PURE):
        return None
    try:
        return importlib.import_module("jaxscope._stacks")
    except ImportError:
        return None


class _Code(NamedTuple):
    """The properties of a code object.

    Attributes:
      standing: who owns it: the user, an installed package or a library.
      jax: whether it is a function of JAX that does work of its own. Functions that only surround others,
        such as those that flatten trees or shorten tracebacks, do not count.
      describes: whether it is a function of JAX that only describes dtypes, shapes, shardings or devices.
        While it runs because the program itself called it, no device computes.
      doing: what the thread does while this function of JAX runs (``compiling``, ``waiting``, ...); empty for
        all other functions.
    """

    standing: Standing
    jax: bool
    describes: bool
    doing: str


class _Stacks:
    """Finds out what a thread does from the functions on its stack. Each function is examined only once."""

    def __init__(self) -> None:
        self._codes: dict[int, _Code] = {}  # by id(): the samples keep the code objects alive
        self._positions: dict[tuple[int, int], tuple[int, int | None]] = {}

    def place(self, codes: list[CodeType], instructions: list[int]) -> _Place:
        """Return what a thread does and on which lines of the user. If the user has no line on its stack,
        lines of installed packages take their place. If only libraries are on the stack, the result has no
        line.

        Args:
          codes: the code objects of the frames on its stack, innermost first.
          instructions: for each frame, the offset in bytes of the instruction that it executes.
        """
        if codes and codes[0].co_filename == "<string>" and codes[0].co_varnames[:1] == ("_cls",):
            # The function that Python generates for a named tuple. Often it is the first Python code after
            # the call of a jitted function, which returns one: the time is that of the line.
            codes, instructions = codes[1:], instructions[1:]
        facts = [self._codes.get(id(code)) or self._examine(code) for code in codes]
        best = min((fact.standing for fact in facts), default=Standing.LIBRARY)
        if best == Standing.LIBRARY:
            return _Place("", ())
        users = [i for i, fact in enumerate(facts) if fact.standing == best]
        outermost = max((i for i, fact in enumerate(facts) if fact.doing == COMPILING), default=-1)

        def lines(frames_of_user: list[int]) -> tuple[Frame, ...]:
            return tuple(self._line(codes[i], instructions[i]) for i in frames_of_user[:MOST_CALLERS])

        callers = lines([i for i in users if i > outermost])
        if outermost >= 0:
            return _Place(COMPILING, callers, traced=lines([i for i in users if i < outermost]))
        above = facts[: users[0]]
        column = self._position(codes[users[0]], instructions[users[0]])[1]
        if any(fact.jax for fact in above) and not above[-1].describes:
            known = {fact.doing for fact in above}
            doing = next((d for d in _FIRST if d in known), OPERATIONS)
            package = self._reads(codes, facts) if doing == COPYING else None
            if doing == _MAKING_TEXT:  # of values that are on the host already
                package = next(filter(None, (frames.package_of(code.co_filename) for code in codes)), None)
            if package is not None:
                return _Place(PYTHON, callers, column, library=package)
            return _Place(doing, callers, column)
        library = frames.package_of(codes[users[0] - 1].co_filename) or STANDARD_LIBRARY if above else None
        return _Place(PYTHON, callers, column, library=library)

    def _reads(self, codes: list[CodeType], facts: list[_Code]) -> str | None:
        """Return the package that makes the array which JAX copies to a device (``__array__`` of a lazy
        object), if the thread runs its code. Return None if it runs only code of JAX, NumPy, Python or the
        user.

        Args:
          codes: the code objects of the frames on the stack, innermost first.
          facts: the properties of each of these code objects.
        """
        for code, fact in zip(codes, facts, strict=True):
            package = frames.package_of(code.co_filename)
            if fact.jax or fact.standing == Standing.USER:
                return None
            if package is not None and package not in JAX_ROOTS and package != "numpy":
                return package
        return None

    def _examine(self, code: CodeType) -> _Code:
        """Return the properties of ``code``, a code object, and remember them."""
        file, name = code.co_filename, code.co_name
        jax = frames.library_of(file) in JAX_ROOTS and not file.endswith(AROUND)
        describes = jax and (file.endswith(DESCRIBES_FILES) or code.co_qualname in DESCRIBES)
        doing = ""
        if jax:
            for what, names in _FRAMES.items():
                doing = what if name in names and not doing else doing
            doing = CALLING if code.co_qualname in CALLS_AHEAD_OF_TIME else doing
        standing = frames.file_standing(file)
        if file == "<string>" and code.co_qualname.startswith("__create_fn__."):
            standing = Standing.LIBRARY  # a method that dataclasses made, such as __hash__
        found = self._codes[id(code)] = _Code(standing, jax, describes, doing)
        return found

    def _line(self, code: CodeType, instruction: int) -> Frame:
        return Frame(code.co_filename, self._position(code, instruction)[0], code.co_qualname)

    def _position(self, code: CodeType, instruction: int) -> tuple[int, int | None]:
        """Return (the line, the column in bytes) of the expression to which an instruction of ``code``
        belongs. The column is None if unknown. ``instruction`` is the offset of the instruction in bytes."""
        at = id(code), instruction
        if at not in self._positions:
            found = next(itertools.islice(code.co_positions(), max(instruction, 0) // 2, None), None)
            line = found[0] if found is not None else None
            column = found[2] if found is not None and line is not None else None
            self._positions[at] = line if line is not None else code.co_firstlineno, column
        return self._positions[at]
