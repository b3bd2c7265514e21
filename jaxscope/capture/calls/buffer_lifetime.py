"""Record what became of a call's array arguments: deleted (donated), released, or kept by the program.

Only weak references to the arrays are kept. The arrays are checked at exit, or at the next event of the
thread that made the call: another call that misses JAX's fast path (the C++ cache), the end of a step, or a
call of a function wrapped by ``jaxscope.watch``. The event ``ArgumentFate`` has the result and the occasion
of the check.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

from jaxscope.schema.events import ArgumentFate

MAX_PENDING = 64  # calls that wait for a check; if there are more, the oldest is dropped


class BufferLifetimes:
    """Finds out whether the array arguments of calls were deleted (donated) or released, or are still alive.
    ``bool()`` of this object is True while there are calls to check.

    Args:
      emit: is called with the event ``ArgumentFate`` of each call that was checked.

    Attributes:
      fresh: whether a call was added since the last check.
      noticed: is called, without arguments, when a call is added.
    """

    def __init__(self, emit: Callable[[ArgumentFate], None]) -> None:
        self._emit = emit
        self._pending: list[tuple[int, int, list[tuple[str, weakref.ref[Any]]]]] = []
        self.fresh = False
        self.noticed: Callable[[], None] = lambda: None

    def __bool__(self) -> bool:
        return bool(self._pending)

    def expect(self, call: int, refs: list[tuple[str, weakref.ref[Any]]]) -> None:
        """Add the call number ``call``, so that ``check`` examines its array arguments. ``refs`` has (path of
        the argument, weak reference to the array) of each; if it is empty, the call is not added. If more
        than MAX_PENDING calls wait for a check, the oldest is dropped unchecked."""
        if refs:
            self._pending.append((call, threading.get_ident(), refs))
            self.fresh = True
            self.noticed()
            if len(self._pending) > MAX_PENDING:
                self._pending.pop(0)

    def forget(self) -> None:
        """Discard all calls added so far: their arguments are not checked."""
        self._pending = []

    def check(self, occasion: str, running: set[int]) -> None:
        """Check the array arguments of the calls of this thread that are over; at exit, of all calls. Each
        call is checked once: its event ``ArgumentFate`` tells which arrays were deleted, released, or are
        still alive, and which the call got at several paths.

        Args:
          occasion: why this check happens now, for the event: ``next_call`` (a call of a watched function, or
            ``jaxscope.step()``), ``next_event`` (a call that missed the fast path) or ``exit``.
          running: the numbers of the calls in progress.
        """
        here = threading.get_ident()
        self.fresh = False
        waiting, self._pending = self._pending, []
        for call, thread, refs in waiting:
            if occasion != "exit" and (thread != here or call in running):
                self._pending.append((call, thread, refs))
                continue
            deleted, gone, kept = [], [], []
            # ``weakref.ref(array)`` is the same object each time, so equal ids mean that an array was passed
            # twice.
            passed = Counter(id(ref) for _, ref in refs)
            several = {a: n for n, a in enumerate(a for a, times in passed.items() if times > 1)}
            twice = [(path, several[id(ref)]) for path, ref in refs if id(ref) in several]
            for path, ref in refs:
                value = ref()
                if value is None:
                    gone.append(path)
                elif value.is_deleted():
                    deleted.append(path)
                else:
                    kept.append(path)
                del value
            self._emit(
                ArgumentFate(
                    call=call,
                    seen=occasion,
                    deleted=deleted,
                    gone=gone,
                    kept=kept,
                    twice=[path for path, _ in twice],
                    twice_arrays=[number for _, number in twice],
                )
            )
