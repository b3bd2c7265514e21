"""Notice when a value that a trace captured has changed since: JAX goes on using the old value.

At each trace of a watched function, the values its code reads are remembered by weak reference. They are
compared by identity when calls return; the contents of NumPy arrays also at the ends of steps, at growing
intervals. Where jit wraps the watched function, which then sees no warm calls, both are compared at the ends
of steps.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from types import FrameType, FunctionType, MethodType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import frames, paths, shield
from jaxscope.capture.calls import signature, wrappers
from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.closures import access_path, fingerprint
from jaxscope.capture.closures.snapshots import EAGER, Read, Snapshot
from jaxscope.capture.steps.tracker import Counter
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev

MAX_INTERVAL = 31  # calls between two checks; odd, so that functions called in turn are all checked
SHARE = 1000  # a check may take 1/SHARE of the time of the calls since the last one
NEVER = 1 << 40  # calls: no check until a trace begins, which schedules one
MAX_SNAPSHOTS = 64  # of one function: one for each static self

CALL, STEP, EXIT = "call", "step", "exit"


class Guard:
    """Checks the captured values of one watched object, on the calls that its counter selects.

    Attributes:
      inside: whether the object is not jitted itself, but called by a jitted function, so that its warm
        calls are not seen.
      static: position of the argument with a separate trace for each value, such as a static self.
      snapshots: the newest trace by the id of that argument, with a reference to it.
      pending: a trace that has begun and not ended.
    """

    def __init__(self, monitor: ClosureMonitor, counter: Counter, inside: bool) -> None:
        self.monitor = monitor
        self.counter = counter
        self.function = counter.function  # its id
        self.inside = inside
        self.static: int | None = None
        self.snapshots: dict[int, tuple[Any, Snapshot]] = {}
        self.pending: Pending | None = None
        self.interval = 1
        self._looked = 0
        self._without = 0

    def look(self, args: tuple[Any, ...]) -> None:
        """Check after a call of the watched object, and schedule the next check."""
        try:
            began = time.perf_counter_ns()
            if self.pending is not None:
                shield.attempt("stale_captures", self.returned)
            snapshot = None if self.inside else self.of(args)
            if snapshot is None and not self.snapshots:
                self.counter.look_in(NEVER)
                return
            if snapshot is None:
                self._without += 1
                self.counter.look_in(1 if self._without <= EAGER else MAX_INTERVAL)
                return
            if not snapshot.reads and self.static is None:
                self.counter.look_in(NEVER)
                return
            for read in snapshot.differing() or ():
                shield.attempt("stale_captures", self.compare, snapshot, read, CALL)
            if self.counter.value >= snapshot.contents_at and snapshot.arrays:
                shield.attempt("stale_captures", self.contents, snapshot, CALL)
                snapshot.contents_later(self.counter.value)
            ended = time.perf_counter_ns()
            if snapshot.eager > 0:
                snapshot.eager -= 1
            elif (ended - began) * SHARE > began - self._looked:
                self.interval = min(MAX_INTERVAL, 2 * self.interval + 1)
            else:
                self.interval = max(1, self.interval // 2)
            self._looked = ended
            self.counter.look_in(self.interval)
        except Exception as e:
            self.counter.look_in(NEVER)
            shield.switch_off("stale_captures", f"{type(e).__name__}: {str(e)[:300]}")

    def of(self, args: tuple[Any, ...]) -> Snapshot | None:
        """Return the newest trace that serves ``args``."""
        if self.static is None:
            key = 0
        elif self.static < len(args):
            key = id(args[self.static])
        else:
            return None
        entry = self.snapshots.get(key)
        if entry is None or (self.static is not None and entry[0]() is not args[self.static]):
            return None
        return entry[1]

    def returned(self) -> None:
        """Take the snapshot of a trace after the call in which it began has returned."""
        pending = self.pending
        if pending is not None and pending.thread == threading.get_ident():
            self.take(pending, set())

    def take(self, pending: Pending, constants: set[paths.Identity]) -> None:
        """Remember the values that the trace ``pending`` read. ``constants``: the arrays it captured."""
        if self.pending is pending:
            self.pending = None
        function = pending.function()
        key, owner = 0, pending.owner
        if owner is not None:
            value = owner()
            key = id(value)
            if value is None:
                return
        if function is None:
            return
        calls = self.counter.value
        snapshot = Snapshot(function, pending.bound, pending.call, calls, constants)
        before = self.snapshots.pop(key, None)
        if before is not None and before[1].reported:
            self.monitor.emit(
                ev.CaptureRenewed(function=self.function, call=before[1].call, by=pending.call, calls=calls)
            )
        self.static = pending.static
        self.snapshots[key] = owner, snapshot
        self.interval = 1
        self.counter.look_in(1)
        if len(self.snapshots) > MAX_SNAPSHOTS:
            self.snapshots.pop(next(iter(self.snapshots)))
        if self.inside or snapshot.arrays:
            self.monitor.check_soon()

    def compare(self, snapshot: Snapshot, read: Read, seen: str) -> None:
        """Report ``read``, whose place has another object now, if that has another value."""
        function = snapshot.function()
        if function is None:
            return
        value = access_path.resolve(function, snapshot.bound, read.found.place)
        if value is access_path.MISSING:
            snapshot.drop(read)  # deleted: the next trace will raise an error
        elif not read.mark.same(value):
            self.report(snapshot, read, value, seen, "rebound")
        elif read.mark.watched:
            read.remember(value)  # an equal value: compare with this object from now on

    def report(self, snapshot: Snapshot, read: Read, value: Any, seen: str, how: str) -> None:
        """Write that ``read`` has changed to ``value``, once.

        Args:
          seen: when it was noticed: CALL, STEP or EXIT.
          how: rebound, or changed in place.
        """
        if not snapshot.drop(read):
            return
        snapshot.reported = True
        found, before, after = read.found, read.mark.text, fingerprint.shown(value)
        stack = frames.user_frames(sys._getframe(1)) if seen != EXIT else []
        self.monitor.emit(
            ev.CaptureChanged(
                function=self.function,
                name=found.name,
                where=found.where,
                how=how,
                before=before,
                after=after if after != before else f"another {after}",
                read=found.line,
                site=stack[0] if stack else None,
                seen=seen,
                call=snapshot.call,
                step=self.monitor.step(),
                calls=self.counter.value,
                certain=found.certain or read.constant,
            )
        )

    def contents(self, snapshot: Snapshot, seen: str) -> None:
        """Compare the contents of NumPy arrays."""
        snapshot.calls = self.counter.value
        for read in list(snapshot.arrays):
            value = read.ref()
            if value is not None and not read.mark.contents(value):
                self.report(snapshot, read, value, seen, "in place")

    def step_ended(self) -> bool:
        """Check what ``look`` does not see. Return whether there is anything to check at the ends of
        steps."""
        current = self._current()
        tracker = self.monitor.tracker
        if not self.inside and tracker is not None and tracker.caller is self.counter:
            return False  # its calls are the steps: ``look`` checks after each
        for snapshot in current:
            if self.inside or snapshot.calls != self.counter.value:
                self.contents(snapshot, STEP)
            if self.inside:
                snapshot.eager = max(snapshot.eager, 1)
                for read in snapshot.differing() or ():
                    self.compare(snapshot, read, STEP)
        return (self.inside and bool(current)) or any(s.arrays for s in current)

    def exit(self) -> None:
        """Check the arrays a last time, if there were calls since the last check."""
        for snapshot in self._current():
            if snapshot.calls != self.counter.value:
                self.contents(snapshot, EXIT)

    def _current(self) -> list[Snapshot]:
        return [
            s
            for owner, s in list(self.snapshots.values())
            if s.function() is not None and (owner is None or owner() is not None)
        ]


class Pending:
    """A trace of a watched function that has begun.

    Attributes:
      bound: references, by name, to arguments that stay the same from call to call.
      static: position of the argument with a trace for each value; ``owner``: a reference to its value.
    """

    def __init__(
        self, function: FunctionType, bound: dict[str, Any], static: int | None, owner: Any, call: int
    ) -> None:
        self.function = weakref.ref(function)
        self.bound = bound
        self.static, self.owner = static, owner
        self.call = call
        self.thread = threading.get_ident()


class ClosureMonitor:
    """The guards of one recording, by the function they watch."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_function = Weak()  # -> list of weak references to guards
        self.tracker: Any = None
        self._since = 0  # the step that had ended when a new snapshot was taken

    def __bool__(self) -> bool:
        return bool(self._by_function.values())

    def guard(self, watched: Any, counter: Counter) -> Guard | None:
        """Return a guard of ``watched``, whose calls ``counter`` counts; None if it contains no function of
        the user."""
        inner, positional, _ = access_path.target(watched)
        if inner is None:
            return None
        jitted = frames.is_library(type(watched).__module__) and not isinstance(watched, MethodType)
        guard = Guard(self, counter, not jitted)
        counter.look_in(1)
        known = self._by_function.get(inner)
        if known is None:
            known = []
            self._by_function.put(inner, known)
        known[:] = [k for k in known if k[0]() is not None]
        known.append((weakref.ref(guard), _reference(positional[0]) if positional else None))
        return guard

    def began(self, call: int, source: dict[str, Any], frame: FrameType | None) -> None:
        """Handle the beginning of a trace of ``source['fun']``, called at ``frame``."""
        given = source.get("fun")
        user = wrappers.user_call(given, frame.f_back) if given is not None and frame is not None else None
        if isinstance(user, jax_internals.Missing):
            return
        given = user.function if user is not None else given
        if given is None:
            return
        inner, positional, keywords = access_path.target(given)
        known = self._by_function.get(inner) if inner is not None else None
        if not known or inner is None:
            return
        code = inner.__code__
        names = code.co_varnames[: code.co_argcount]
        shift = len(positional)  # arguments that a method or a partial adds in front
        args = tuple(source.get("args") or ())
        statics = {}
        if "jit_info" in source and _directly(given) is inner and user is None:
            numbers, _ = signature.statics_of(source["jit_info"], args)
            statics = {i: args[i] for i in sorted(numbers) if shift + i < len(names)}
        bound = {**dict(zip(names, positional, strict=False)), **keywords}
        bound |= {names[shift + i]: value for i, value in statics.items()}
        refs = {name: ref for name, value in bound.items() if (ref := _reference(value)) is not None}
        objects = [i for i, v in statics.items() if type(v) not in paths.PLAIN and names[shift + i] in refs]
        static = objects[0] if objects else None
        owner = None if static is None else refs[names[shift + static]]
        for guard_ref, bound_to in known:
            guard = guard_ref()
            if guard is None or (bound_to is not None and not any(bound_to() is v for v in positional[:1])):
                continue
            guard.pending = Pending(inner, refs, static, owner, call)
            guard.counter.look_in(1)

    def traced(self, call: int, captured: Iterable[Any] = ()) -> None:
        """Handle the end of the trace of ``call``, which captured the arrays ``captured``."""
        constants = {paths.identity(c) for c in captured}
        for guard in self._guards():
            pending = guard.pending
            if pending is not None and pending.call == call:
                guard.take(pending, constants)

    def ended(self, call: int, returned: bool) -> None:
        """Handle the end of a trace that JAX does not announce: it returned or raised."""
        if self:
            (self.traced if returned else self.failed)(call)

    def failed(self, call: int) -> None:
        """Handle a trace that raised: the snapshot of the one before stays."""
        for guard in self._guards():
            if guard.pending is not None and guard.pending.call == call:
                guard.pending = None

    def _guards(self) -> Iterator[Guard]:
        for known in self._by_function.values():
            for ref, _ in list(known):
                guard = ref()
                if guard is not None:
                    yield guard

    # -- steps ----------------------------------------------------------------------------------------

    def check_soon(self) -> None:
        """Check when this step ends, then at growing intervals: there is something that calls do not
        check."""
        if self.tracker is not None:
            self._since = self.tracker.ended
            self.tracker.look_after(1)

    def step_ended(self) -> None:
        looked = [guard.step_ended() for guard in self._guards()]
        if any(looked) and self.tracker is not None:
            self.tracker.look_after(max(1, self.tracker.ended - self._since))

    def exit(self) -> None:
        """Check a last time before the recording ends."""
        for guard in self._guards():
            guard.exit()

    def step(self) -> int | None:
        """Return the step that runs now."""
        step: int | None = self.tracker.current if self.tracker is not None else None
        return step

    def emit(self, event: ev.CaptureChanged | ev.CaptureRenewed) -> None:
        self._writer.emit(event)


def _reference(value: Any) -> Any:
    """Return a function that gives ``value`` and keeps no array alive; None where that is not possible."""
    if type(value) in paths.PLAIN:
        return lambda: value
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _directly(function: Any) -> Any:
    """Return the function below partials, methods and watches, which only bind arguments or count calls."""
    while type(function) in (functools.partial, MethodType) or hasattr(type(function), access_path.WATCHED):
        if type(function) is functools.partial:
            function = function.func
        else:
            function = getattr(function, "__func__" if type(function) is MethodType else access_path.WATCHED)
    return function
