"""Record what became of a call's array arguments: deleted (donated), released, or kept by the program.

Only weak references to the arrays are kept. They are checked at the next event of the same thread (a call
that misses the fast path, the end of a step, a watched call), or at exit. The event ``ArgumentFate`` has the
occasion.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from jaxscope.schema.events import ArgumentFate

MAX_PENDING = 64


class BufferLifetimes:
    """The calls whose arguments have not been checked yet. It is true if there are any.

    Attributes:
      fresh: whether a call was added since the last check.
      noticed: is called when a call is added.
    """

    def __init__(self, emit: Callable[[ArgumentFate], None]) -> None:
        self._emit = emit
        self._pending: list[tuple[int, int, list[tuple[str, weakref.ref[Any]]]]] = []
        self.fresh = False
        self.noticed: Callable[[], None] = lambda: None

    def __bool__(self) -> bool:
        return bool(self._pending)

    def expect(self, call: int, refs: list[tuple[str, weakref.ref[Any]]]) -> None:
        """Check the arguments of the call number ``call`` later. ``refs`` are pairs (path, weak reference to
        the array)."""
        if refs:
            self._pending.append((call, threading.get_ident(), refs))
            self.fresh = True
            self.noticed()
            if len(self._pending) > MAX_PENDING:
                self._pending.pop(0)

    def forget(self) -> None:
        """Check none of the calls added so far."""
        self._pending = []

    def look(self, seen: str, running: set[int]) -> None:
        """Write what became of the arguments of this thread's calls, except those in progress; at exit, of
        all threads' calls.

        Args:
          seen: the occasion: next_call, next_event or exit.
          running: the numbers of the calls in progress.
        """
        here = threading.get_ident()
        self.fresh = False
        waiting, self._pending = self._pending, []
        for call, thread, refs in waiting:
            if seen != "exit" and (thread != here or call in running):
                self._pending.append((call, thread, refs))
                continue
            deleted, gone, kept = [], [], []
            for path, ref in refs:
                value = ref()
                if value is None:
                    gone.append(path)
                elif value.is_deleted():
                    deleted.append(path)
                else:
                    kept.append(path)
                del value
            self._emit(ArgumentFate(call=call, seen=seen, deleted=deleted, gone=gone, kept=kept))
