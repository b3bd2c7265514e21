"""Python's collector of cycles, held back while somebody waits.

It runs on its own after so many new objects, in whatever a key has set off just then, and looks at what a run
has loaded again and again: half a second with 100,000 compilations, of which nothing is garbage. Here it runs
when no key has come for a while, over what is new; what outlives that is put out of its sight.
"""

from __future__ import annotations

import gc

IDLE_S = 1.0  # after a key
MANY = 20_000  # new objects: a few milliseconds
TOO_MANY = 80_000  # put out of sight without a look, for which a key would wait
ROUNDS = 10  # of looking at the new, before what is left is looked at no more


class Collector:
    """Collect garbage in place of Python's automatic collection, until ``stop``."""

    def __init__(self) -> None:
        self._rounds = 0
        self._automatic = gc.isenabled()
        gc.disable()

    def tick(self, now: float, key_at: float) -> bool:
        """Look at what is new, where there is much of it and nobody waits. Says whether it did."""
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
