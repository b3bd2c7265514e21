"""Run Python's garbage collector only when the user has not pressed a key for a while.

By default, Python collects after a number of new objects, even while a key is handled. A collection then
examines all objects of the loaded run; with 100,000 compilations this takes half a second and finds nothing.
Here a collection examines new objects only. Objects that survive several collections are excluded from later
ones (``gc.freeze``).
"""

from __future__ import annotations

import gc

IDLE_S = 1.0  # after a key, no collection
MANY = 20_000  # new objects that start a collection of a few milliseconds
TOO_MANY = 80_000  # if there are more new objects, exclude them: a collection would delay keys
ROUNDS = 10  # collections after which the surviving objects are excluded


class Collector:
    """Replaces Python's automatic garbage collection by collections in ``tick``. ``stop`` restores the
    automatic one."""

    def __init__(self) -> None:
        self._rounds = 0
        self._automatic = gc.isenabled()
        gc.disable()

    def tick(self, now: float, key_at: float) -> bool:
        """Run a garbage collection of new objects if there are at least MANY and no key was pressed for
        IDLE_S seconds. Return whether one ran. With TOO_MANY new objects, or after ROUNDS collections,
        exclude all objects from later ones. ``now`` and ``key_at`` (the time of the last key) are seconds of
        the same clock."""
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
        """Exclude all existing objects from garbage collection, because the run just read stays in use."""
        gc.freeze()

    def stop(self) -> None:
        if self._automatic:
            gc.enable()
        gc.unfreeze()
