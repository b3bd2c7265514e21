"""What became of a call's array arguments: donated, let go, or kept by the program.

Weak references only. They are looked at when the same thread next reaches us (a miss, a step mark,
a watched call) and at exit; the event says which.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from jaxscope.schema.events import ArgumentFate

MAX_PENDING = 64


class BufferLifetimes:
    """Calls whose arguments have not been looked at yet."""

    def __init__(self, emit: Callable[[ArgumentFate], None]) -> None:
        self._emit = emit
        self._pending: list[tuple[int, int, list[tuple[str, weakref.ref[Any]]]]] = []
        self.fresh = False  # something to look at since the last look
        self.noticed: Callable[[], None] = lambda: None  # called when there is

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
        """Report the calls of this thread that are not in ``running``; at exit, all."""
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
