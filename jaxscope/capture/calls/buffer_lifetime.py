"""Record what became of a call's array arguments: deleted (donated), released, or kept by the program.

Only weak references are kept. They are checked at the next event of the same thread (a miss, a step mark, a
watched call) or at exit; the event has the reason.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from jaxscope.schema.events import ArgumentFate

MAX_PENDING = 64


class BufferLifetimes:
    """Calls whose arguments have not been checked yet."""

    def __init__(self, emit: Callable[[ArgumentFate], None]) -> None:
        self._emit = emit
        self._pending: list[tuple[int, int, list[tuple[str, weakref.ref[Any]]]]] = []
        self.fresh = False  # a call was added since the last check
        self.noticed: Callable[[], None] = lambda: None  # called when one is added

    def __bool__(self) -> bool:
        return bool(self._pending)

    def expect(self, call: int, refs: list[tuple[str, weakref.ref[Any]]]) -> None:
        if refs:
            self._pending.append((call, threading.get_ident(), refs))
            self.fresh = True
            self.noticed()
            if len(self._pending) > MAX_PENDING:
                self._pending.pop(0)

    def forget(self) -> None:
        self._pending = []

    def look(self, seen: str, running: set[int]) -> None:
        """Write the arguments' fates for this thread's calls that are not in ``running``; at exit, for all
        calls."""
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
