"""``jaxscope.no_recompiles``: raise if something compiles after training step N in a ``with`` block or in a
call of a decorated function. For this, the block is recorded, unless a recording is active already."""

from __future__ import annotations

import functools
import inspect
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from jaxscope import recorded_part
from jaxscope.errors import JaxscopeError, RecompileError, UsageError, to_be_read

if TYPE_CHECKING:
    from jaxscope.capture.session import Session
    from jaxscope.capture.steps.scope import RecordingScope
    from jaxscope.schema.findings import Finding

__tracebackhide__ = to_be_read
JX190 = "JX190"  # check.gate.CODE, which is imported late
Functions = str | Callable[..., Any] | Sequence[str | Callable[..., Any]] | None


class NoRecompiles:
    """The context manager and decorator that ``no_recompiles`` returns, with the same arguments. It can be
    used repeatedly, also nested or in several threads."""

    def __init__(self, after: int, functions: Functions) -> None:
        self._after = after
        self._functions = functions
        self._open: list[GuardedBlock] = []

    def __enter__(self) -> NoRecompiles:
        block = GuardedBlock(self._after, self._functions)
        block.begin()
        self._open.append(block)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._open:
            return
        # Each thread closes the block that it opened. A thread that opened none (an ExitStack can be closed
        # in another thread) closes the latest block.
        here = threading.get_ident()
        block = next((w for w in reversed(self._open) if w.thread == here), self._open[-1])
        self._open.remove(block)
        block.end(failed=error is not None)

    def __call__(self, function: Any) -> Any:
        """Return ``function`` wrapped, so that each call is checked like a ``with`` block.

        Raises:
          UsageError: ``function`` is a class or is not callable.
        """
        if isinstance(function, (staticmethod, classmethod)):
            return type(function)(self(function.__func__))
        if not callable(function) or isinstance(function, type):
            raise UsageError(
                f"no_recompiles needs a function, not {_kind(function)}",
                hint="use it as @jaxscope.no_recompiles(after=1), or as with"
                " jaxscope.no_recompiles(after=1): ...",
                slug="gate-function",
            )
        new_block = functools.partial(GuardedBlock, self._after, self._functions)
        if inspect.isasyncgenfunction(function):
            return _guarded_async_generator(function, new_block)
        if inspect.iscoroutinefunction(function):
            return _guarded_coroutine(function, new_block)
        if inspect.isgeneratorfunction(function):
            return _guarded_generator(function, new_block)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            block = new_block()
            with block, block.running():
                return function(*args, **kwargs)

        return call


def no_recompiles(after: Any = 1, functions: Functions = None) -> Any:
    """Return a context manager and decorator that raises if something is traced, lowered or compiled after
    training step ``after``.

    Use ``with jaxscope.no_recompiles(after=1):`` around a loop, or ``@jaxscope.no_recompiles(after=1)`` on a
    function (also on ``async`` functions and generators) to check each of its calls. Steps are counted from
    the beginning of the block or call: they are the calls of ``jaxscope.step()``, or if there are none, the
    calls of the function watched with ``step=True``, or if there are none, the calls of one other watched
    function (``jaxscope.watch``): the first that the block calls more than once, else the first that it
    calls. With ``after=0`` nothing may compile at all, and steps are not needed.

    Two kinds of code are checked: your own functions, and operations outside jit (``x + 1``) that are
    compiled or loaded from the persistent cache. Jitted functions of libraries are not checked. A call that
    only misses JAX's fast path (the C++ cache), for example because of a NumPy argument, does not count.

    Args:
      after: the last step in which something may compile.
      functions: the functions to check, by name, by shell pattern (``eval_*``) or as objects; None: all.

    Raises:
      RecompileError: something was compiled too late, or it is unknown whether it was too late, or a name in
        ``functions`` matches no function. The error is raised at the next ``jaxscope.step()``, the next call
        of a watched function or the end of the block, never inside JAX, and never instead of an exception of
        the block. Its ``findings`` have the cause and the line.
      UsageError: ``after`` is not 0, 1, 2, ..., an entry of ``functions`` is neither a name nor a function,
        or something was compiled and nothing counts the steps of the block.
      JaxscopeError: at the end of the block, it is unknown what was compiled, because the recording failed.
    """
    if callable(after) or isinstance(after, (staticmethod, classmethod)):
        return NoRecompiles(1, functions)(after)  # @jaxscope.no_recompiles without parentheses
    if isinstance(after, bool) or not isinstance(after, int) or after < 0:
        raise UsageError(
            f"no_recompiles(after={after!r}): after must be a whole number: 0, 1, 2, ...",
            hint="after=0 allows no compilation; after=1 allows those of the first step",
            slug="gate-after",
        )
    for one in _listed(functions) or ():
        if not isinstance(one, str) and not callable(one):
            raise UsageError(
                f"no_recompiles(functions=...): {one!r} is neither a name nor a function",
                hint="for example: functions=['train_step', 'eval_*']",
                slug="gate-functions",
            )
    return NoRecompiles(after, functions)


class GuardedBlock:
    """One ``no_recompiles`` block, from its beginning to its end. ``after`` is the last training step in
    which something may compile. ``functions`` are the functions to check, by name, by shell pattern or as
    objects; None: all.

    A ``with`` statement of the user calls ``begin`` and ``end``. A decorated function uses two context
    managers: this object around the whole call, and ``running`` around the parts that are checked, in which
    the function itself runs.
    """

    def __init__(self, after: int, functions: Functions) -> None:
        self._after = after
        self._functions = functions
        self.thread = threading.get_ident()
        self._pid = os.getpid()
        self._session: Session | None = None
        self._block: RecordingScope | None = None
        self._raised: set[str] = set()  # compilations for which an error was raised already
        self._failed: list[str] = []  # parts of the recording that had failed before

    def begin(self) -> None:
        """Open the ``no_recompiles`` block, so that compilations are checked from now on. If no recording is
        active, begin one in a temporary directory."""
        self._start()
        self._enter()

    def end(self, *, failed: bool) -> None:
        """Close the ``no_recompiles`` block and check it. ``failed``: an exception ends the block, so nothing
        is checked and this exception is not replaced.

        Raises:
          RecompileError: there are errors (``_findings``).
          UsageError: something was compiled, and nothing counts the steps.
          JaxscopeError: the recording failed, so that it is unknown what was compiled.
        """
        self._leave()
        self._finish(failed=failed)

    def __enter__(self) -> None:
        """Begin a recording if none is active. Compilations are checked only inside ``running``."""
        self._start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._finish(failed=error is not None)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Open the ``no_recompiles`` block until the ``with`` statement ends: only what is compiled inside is
        checked."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    # -- the recording --------------------------------------------------------------------------------

    def _start(self) -> None:
        """Join the active recording, or begin a recording, and create the block, which is not open yet."""
        from jaxscope.capture.steps.scope import RecordingScope

        self._session = _OwnRecording.join()
        self._failed = recorded_part.failed()
        self._block = RecordingScope(self._session.tracker, self._alarm)

    def _enter(self) -> None:
        """Open the block: what this thread and asyncio task compile from now on belongs to the block."""
        from jaxscope.capture.steps.scope import around

        assert self._session is not None and self._block is not None
        around.set((*around.get(), self._block))
        self._session.tracker.open(self._block)

    def _leave(self) -> None:
        """Close the block until ``_enter`` opens it again."""
        from jaxscope.capture.steps.scope import around

        if self._session is None or self._block is None or os.getpid() != self._pid:
            return  # in a forked child the block is the parent's
        around.set(tuple(b for b in around.get() if b is not self._block))
        self._session.tracker.close(self._block)

    def _finish(self, *, failed: bool) -> None:
        """Check the block, unless an exception ended it (``failed``), and leave the recording. Raise the
        errors that ``end`` lists."""
        if self._session is None or os.getpid() != self._pid:
            return
        session, self._session = self._session, None
        try:
            if not failed:
                self._raise_for(self._findings(session), session, at_end=True)
        finally:
            if self._block is not None:
                self._block.alarm = None  # breaks the reference cycle with this object
            _OwnRecording.leave(session)

    # -- the verdict ----------------------------------------------------------------------------------

    def _alarm(self) -> bool:
        """Raise RecompileError if a compilation was too late and not reported yet. Return False if the caller
        has to try again later, because nothing can be checked now, for example inside a call of JAX; else
        True."""
        if (
            threading.get_ident() != self.thread
            or self._session is None
            or self._block is None
            or _inside_jax()
        ):
            return False  # inside JAX, the exception would pass through JAX
        if not self._block.runs_here or (self._after and not self._block.settled):
            return False
        try:
            found = self._findings(self._session)
        except JaxscopeError:
            return True  # at the end of the block it may be known how steps are counted
        late = [f for f in found if f.code == JX190 and not self._raised.issuperset(_seen_in(f))]
        self._raise_for(late, self._session)
        return True

    def _findings(self, session: Session) -> list[Finding]:
        """Return the errors about compilations in this block that were, or may have been, after training step
        ``after``, and about names of functions that do not exist. ``session`` is the recording that contains
        the block.

        Raises:
          UsageError: something was compiled, and nothing counts the steps.
        """
        from jaxscope.check import gate
        from jaxscope.schema.findings import ERROR
        from jaxscope.schema.steps import single_number

        assert self._block is not None
        names = _names(self._functions)
        steps = [single_number(step, self._after) for step in self._block.steps().values()]
        allowed = not steps or (self._after and all(s is not None and s <= self._after for s in steps))
        if allowed and not names:
            return []
        run, part = recorded_part.read(session, self._block)
        since = "this block" if session.options.passing == "block" else None
        found = gate.of_part(run, self._after, names, part, since)
        return [f for f in found if f.severity == ERROR]

    def _raise_for(self, findings: Sequence[Finding], session: Session, *, at_end: bool = False) -> None:
        """Raise the error for ``findings``; do nothing if there are none. ``at_end``: the block ends.

        Raises:
          RecompileError: there are findings.
          JaxscopeError: there are none at the end of the block, but the recording ``session`` may lack
            compilations.
        """
        from jaxscope.report import plain_text

        if findings:
            for f in findings:
                self._raised.update(_seen_in(f))
            raise RecompileError(plain_text.render(findings), findings)
        blind = recorded_part.why_unreliable(session, self._failed) if at_end else None
        if blind:
            raise JaxscopeError(
                f"no_recompiles: cannot find out whether anything was compiled: {blind}",
                hint="jaxscope doctor shows what can be recorded here",
                slug="gate-blind",
            )


class _OwnRecording:
    """The temporary recording of ``no_recompiles`` blocks, which is used if no other recording is active. The
    first block begins the recording, and the last open block ends it."""

    _lock = threading.Lock()
    _session: Session | None = None
    _blocks = 0

    @classmethod
    def join(cls) -> Session:
        """Return the active recording, for use by a ``no_recompiles`` block. If there is none, begin one in a
        temporary directory.

        Raises:
          LogError: the directory cannot be created.
        """
        from jaxscope.capture import session
        from jaxscope.log import store

        with cls._lock:
            active = session.current()
            if active is not None:
                cls._blocks += active is cls._session
                return active
            folder = Path(tempfile.mkdtemp(prefix="jaxscope-"))
            try:
                run = store.create(folder / "block", name="block", how="no_recompiles", argv=list(sys.argv))
                options = session.Options(
                    ir="none", arrays=False, transfers=False, line_times=False, passing="block"
                )
                begun = session.start(run, how="record", options=options)
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise
            cls._session, cls._blocks = begun, 1
            return begun

    @classmethod
    def leave(cls, session: Session) -> None:
        """Report the end of a ``no_recompiles`` block in ``session``. After the last open block, end the
        recording and remove its directory. Do nothing if ``join`` did not begin ``session``."""
        from jaxscope.capture import session as sessions

        with cls._lock:
            if session is not cls._session:
                return
            cls._blocks -= 1
            if cls._blocks:
                return
            cls._session = None
        if sessions.current() is session:
            sessions.stop("stop")
        shutil.rmtree(session.run.path.parent, ignore_errors=True)


def _inside_jax() -> bool:
    """Return whether a frame of JAX is on the stack, so that an exception raised now would pass through
    JAX."""
    from jaxscope import jax_internals
    from jaxscope.capture import frames

    return any(jax_internals.in_jax(f) for f in frames.walk(sys._getframe(1)))


def _guarded_async_generator(function: Any, new_block: Callable[[], GuardedBlock]) -> Any:
    """Return ``function``, an async generator function, wrapped so that each call is checked. ``new_block``
    makes the ``GuardedBlock`` of a call. What the consumer of the values compiles is not checked."""

    @functools.wraps(function)
    async def call_async_generator(*args: Any, **kwargs: Any) -> Any:
        block = new_block()
        with block:
            inner = function(*args, **kwargs)
            go, value = inner.asend, None
            try:
                while True:
                    try:
                        with block.running():
                            made = await go(value)
                    except StopAsyncIteration:
                        return
                    try:
                        go, value = inner.asend, (yield made)
                    except GeneratorExit:
                        raise
                    except BaseException as e:
                        go, value = inner.athrow, e
            finally:
                await inner.aclose()

    return call_async_generator


def _guarded_coroutine(function: Any, new_block: Callable[[], GuardedBlock]) -> Any:
    """Return ``function``, an ``async`` function, wrapped so that each call is checked. ``new_block`` makes
    the ``GuardedBlock`` of a call."""

    @functools.wraps(function)
    async def call_coroutine(*args: Any, **kwargs: Any) -> Any:
        block = new_block()
        with block, block.running():
            return await function(*args, **kwargs)

    return call_coroutine


def _guarded_generator(function: Any, new_block: Callable[[], GuardedBlock]) -> Any:
    """Return ``function``, a generator function, wrapped so that each call is checked (``_driven``).
    ``new_block`` makes the ``GuardedBlock`` of a call."""

    @functools.wraps(function)
    def call_generator(*args: Any, **kwargs: Any) -> Any:
        block = new_block()
        with block:
            return (yield from _driven(block, function(*args, **kwargs)))

    return call_generator


def _driven(block: GuardedBlock, inner: Any) -> Any:
    """Yield the values of the generator ``inner``, pass sent values and exceptions to it, and return its
    return value, as ``yield from inner`` does. ``block`` is open only while ``inner`` runs: what
    the consumer of the values compiles is not checked."""
    send, value = inner.send, None
    while True:
        try:
            with block.running():
                made = send(value)
        except StopIteration as e:
            return e.value
        try:
            send, value = inner.send, (yield made)
        except GeneratorExit:
            inner.close()
            raise
        except BaseException as e:
            send, value = inner.throw, e


def _seen_in(f: Finding) -> set[str]:
    """Return the ids of the compilations that the finding ``f`` is about."""
    return {e.compilation for e in f.evidence if e.compilation is not None}


def _listed(functions: Functions) -> Sequence[str | Callable[..., Any]] | None:
    """Return ``functions``, an argument of ``no_recompiles``, as a list. None (all functions) stays None."""
    if functions is None:
        return None
    return [functions] if isinstance(functions, str) or callable(functions) else list(functions)


def _names(functions: Functions) -> list[str] | None:
    """Return the functions to check as texts: names and shell patterns unchanged, function objects as the ids
    under which they are recorded. None (all functions) stays None."""
    from jaxscope.capture.calls import functions as described

    listed = _listed(functions)
    if listed is None:
        return None
    return [f if isinstance(f, str) else described.describe(getattr(f, "_fun", f)).function for f in listed]


def _kind(value: object) -> str:
    """Return what ``value`` is, for a message: ``the class Model`` for a class, else the name of its type
    (``int``)."""
    return f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
