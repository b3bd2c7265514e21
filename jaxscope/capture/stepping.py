"""``--step-function NAME``: the calls of a jitted function that nobody watched, counted as steps.

Calls on JAX's fast path come through its post hook, the others are misses. Owns the one counter for
both, and says when it cannot count rather than count half.
"""

from __future__ import annotations

from typing import Any

from jaxscope.capture import shield
from jaxscope.capture.calls import Weak
from jaxscope.capture.once import Once
from jaxscope.capture.steps import Counter, Tally
from jaxscope.schema.events import FunctionSeen

# Measured on JAX 0.10 and 0.12: the hook fires for some of the calls these wrappers make, not for all.
UNHEARD = ("flax.", "equinox.")


class StepFunction:
    """Counts the calls of the function called ``name``, unless a watched function counts the steps."""

    def __init__(self, name: str, tally: Tally, once: Once) -> None:
        self._name = name
        self._tally = tally
        self._once = once
        self._own: Counter | None = None
        self._jitted = Weak()
        self._given_up = False

    def missed(self, seen: FunctionSeen) -> None:
        """A call of ``seen`` left the fast path."""
        if self._name in (seen.name, seen.qualname):
            self._count(seen)

    def repeated(self, function: str) -> None:
        """The same, for a miss that was only counted; ``function`` is its id."""
        if self._own is not None and self._own.function == function:
            self._own.add()

    def called(self, jitted: Any) -> None:
        """``jitted`` was called on the fast path."""
        known: bool | None = self._jitted.get(jitted)
        if known is None:
            known = self._name in (getattr(jitted, "__name__", None), getattr(jitted, "__qualname__", None))
            self._jitted.put(jitted, known)
        if known:
            if self._own is not None and self._tally.stepper is self._own:
                self._own.add()
            elif self._own is None:
                self._count(self._once.describe(getattr(jitted, "_fun", jitted)))

    def ended(self) -> None:
        """Say so where no such function was seen."""
        if self._own is None and self._tally.stepper is None and not self._given_up:
            shield.switch_off(
                "step_function", f"no call of a jitted function named {self._name!r} was counted"
            )

    def _count(self, seen: FunctionSeen) -> None:
        if self._given_up or self._tally.stepper is not self._own:
            return  # or a watched function counts the steps
        if seen.library or any(w.startswith(UNHEARD) for w in seen.wrappers):
            self._given_up = True
            shield.switch_off(
                "step_function",
                f"the calls of {seen.name} through a library's wrapper cannot be counted from outside: "
                "put @jaxscope.watch(step=True) on it",
            )
            return
        if self._own is None:
            self._once.introduce(seen)
            self._own = self._tally.watch(seen.function, True)
        self._own.add()
