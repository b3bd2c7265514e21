"""Run Python's garbage collector when no key has come for a while.

By itself it runs after a number of new objects, also while a key is handled, and looks at all that a run has
loaded each time: half a second with 100,000 compilations, of which nothing is garbage. Here it looks at new
objects only; those that are alive after several looks are excluded from it (``gc.freeze``).
"""

from __future__ import annotations

import gc

IDLE_S = 1.0  # after a key
MANY = 20_000  # new objects: a few milliseconds
TOO_MANY = 80_000  # excluded without a look, for which a key would wait
ROUNDS = 10  # of looking at the new, before what is left is looked at no more


class Collector:
    """Collect garbage in place of Python's automatic collection, until ``stop``."""

    def __init__(self) -> None:
        self._rounds = 0
        self._automatic = gc.isenabled()
        gc.disable()

    def tick(self, now: float, key_at: float) -> bool:
        """Look at new objects, if there are many and no key came lately. Return whether it did."""
        new = gc.get_count()[0]
        if new >= TOO_MANY:
            gc.freeze()
            return False
        if new < MANY or now < key_at + IDLE_S:
            return False
        gc.collect(0)
        self._rounds += 1
        if self._rounds >= ROUNDS:
            self._rounds = 0
            gc.freeze()
        return True

    def loaded(self) -> None:
        """Exclude all objects read so far from garbage collection."""
        gc.freeze()

    def stop(self) -> None:
        if self._automatic:
            gc.enable()
        gc.unfreeze()
