"""Count the calls of the function of ``--step-function NAME`` as training steps.

Three kinds of calls are counted in three ways. Calls of a jitted function on JAX's fast path (the C++ cache)
are counted by JAX's post hook, other calls of a jitted function by the events that JAX sends for them, and
calls of a plain Python function by ``sys.monitoring`` (from Python 3.12 on). If some calls cannot be counted,
the log has the reason instead of a number that is too small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames, shield
from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.calls.interning import Introductions
from jaxscope.capture.steps.tracker import Counter, StepTracker
from jaxscope.schema import function_ids, libraries
from jaxscope.schema.events import FunctionSeen


class StepFunction:
    """Counts the calls of one function as training steps. Nothing is counted if the calls of a function
    wrapped by ``jaxscope.watch`` are the steps already.

    Args:
      name: the name or the qualified name of the function. If several functions have it, only the one that
        is called first counts.
      tracker: counts the training steps of the recording.
      introductions: writes each function to the log when it first occurs.
    """

    def __init__(self, name: str, tracker: StepTracker, introductions: Introductions) -> None:
        self._name = name
        self._tracker = tracker
        self._introductions = introductions
        self._own: Counter | None = None
        self._jitted = Weak()
        self._given_up = False

    def missed(self, event: FunctionSeen) -> None:
        """Count a call that missed the fast path (the C++ cache), if the called function has the name of the
        step function. ``event`` describes the called function. If it is a library's function or wrapped by a
        library, its calls cannot all be counted: the reason is reported, and counting ends. A repeated miss
        with unchanged arguments is passed to ``repeated`` instead."""
        if self._name in (event.name, event.qualname):
            self._count(event)

    def repeated(self, function: str) -> None:
        """Count a call of the step function that missed the fast path (the C++ cache) again with unchanged
        arguments. ``function`` is the id of the called function; calls of other functions are ignored."""
        if self._own is not None and self._own.function == function:
            self._own.add()

    def called(self, jitted: Any) -> None:
        """Count a call of the jitted function ``jitted`` on JAX's fast path (the C++ cache), if it is the
        step function."""
        known: bool | None = self._jitted.get(jitted)
        if known is None:
            known = self._name in (getattr(jitted, "__name__", None), getattr(jitted, "__qualname__", None))
            if known and self._own is not None:
                seen = self._introductions.describe(jax_internals.given_to_jit(jitted))
                known = seen.function == self._own.function
            self._jitted.put(jitted, known)
        if known:
            if self._own is not None and self._tracker.stepper is self._own:
                self._own.add()
            elif self._own is None:
                self._count(self._introductions.describe(jax_internals.given_to_jit(jitted)))

    def began(self, code: CodeType) -> bool:
        """Count a call of a plain Python function with the code ``code``, if it has the name of the step
        function and JAX is not on the stack. Return False if it has another name: then this method need not
        be called again for this code."""
        if self._name not in (code.co_name, code.co_qualname):
            return False
        if any(jax_internals.in_jax(f) for f in frames.walk(sys._getframe(1))):
            return True  # a jitted function that is traced; JAX's events count its calls
        self._count(
            FunctionSeen(
                function=function_ids.written(code.co_qualname, code.co_filename, code.co_firstlineno),
                name=code.co_name,
                qualname=code.co_qualname,
                file=code.co_filename,
                line=code.co_firstlineno,
            )
        )
        return True

    def ended(self) -> None:
        """Report, at the end of the recording, that no call of the step function was counted. Do nothing if
        calls were counted, if the calls of a watched function are the steps, or if the reason was reported
        before."""
        if self._own is None and self._tracker.stepper is None and not self._given_up:
            shield.switch_off(
                "step_function", f"no call of a function named {self._name!r} was counted{_JITTED_ONLY}"
            )

    def _count(self, event: FunctionSeen) -> None:
        """Count a call of the function that ``event`` describes, if it is the step function. If some of its
        calls cannot be counted from outside, because it is a library's function or a library wraps it, report
        this and stop counting. Do nothing if a watched function (``jaxscope.watch``) counts the steps."""
        if self._given_up or self._tracker.stepper is not self._own:
            return  # a watched function counts the steps
        if self._own is not None and self._own.function != event.function:
            return  # another function of this name counts the steps
        if event.library or any(w.startswith(libraries.UNHEARD) for w in event.wrappers):
            self._given_up = True
            shield.switch_off(
                "step_function",
                f"the calls of {event.name} through a library's wrapper cannot all be counted:"
                " write @jaxscope.watch(step=True) above the function",
            )
            return
        if self._own is None:
            self._introductions.introduce(event)
            self._own = self._tracker.watch(event.function, True)
            self._own.rings = False
        self._own.add()


MONITORS = sys.version_info >= (3, 12)
_JITTED_ONLY = (
    ""
    if MONITORS
    else "; a plain function is counted from Python 3.12 on, or with @jaxscope.watch(step=True)"
)
_TOOLS = (3, 4)  # the tool numbers that sys.monitoring does not suggest for a purpose


def listen(began: Callable[[CodeType], bool]) -> Callable[[], None]:
    """From now on, call ``began`` with the code of each Python function that begins to run in any thread. If
    ``began`` returns False or fails, it is not called again for this code, and further calls of the function
    cost no time. Return a function that ends this.

    Raises:
      RuntimeError: other tools use all tool numbers of ``sys.monitoring``, or Python has no
        ``sys.monitoring``.
    """
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        raise RuntimeError("sys.monitoring came with Python 3.12")
    tool = next((n for n in _TOOLS if monitoring.get_tool(n) is None), None)
    if tool is None:
        raise RuntimeError("other tools use all numbers of sys.monitoring that jaxscope may use")

    def on_start(code: CodeType, offset: int) -> Any:
        return None if shield.attempt("step_function", began, code) else monitoring.DISABLE

    monitoring.use_tool_id(tool, "jaxscope")
    monitoring.register_callback(tool, monitoring.events.PY_START, on_start)
    monitoring.set_events(tool, monitoring.events.PY_START)

    def undo() -> None:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.PY_START, None)
        monitoring.free_tool_id(tool)

    return undo
