"""Detect that a value which a trace has captured was changed afterwards: JAX goes on using the old value.

At each trace of a watched function (``jaxscope.watch``), the values that its code reads from outside are
remembered, most of them by weak reference. After calls of the function, the variables are checked: they may
refer to other objects now. At growing intervals, the contents of NumPy arrays are compared, too, after calls
or at the ends of training steps.

If a jitted function calls the watched function, no Python runs when JAX executes the compiled program. Then
jaxscope does not see the calls, and all checks are made at the ends of steps.
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
from jaxscope.capture.attributes import MISSING
from jaxscope.capture.calls import signature, wrappers
from jaxscope.capture.calls.in_progress import Weak
from jaxscope.capture.closures import access_path, fingerprint
from jaxscope.capture.closures.snapshots import EAGER, Read, Snapshot
from jaxscope.capture.steps.tracker import Counter
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev

MAX_INTERVAL = 31  # calls between two checks; odd, so that functions called in turn are all checked
SHARE = 1000  # a check may take 1/SHARE of the time of the calls since the last one
NEVER = 1 << 40  # calls until the next check; the beginning of a trace schedules an earlier one
MAX_SNAPSHOTS = 64  # snapshots of one function: there is one for each value of a static self

CALL, STEP, EXIT = "call", "step", "exit"  # the occasion of a check


class Guard:
    """Checks whether the values that a watched function (``jaxscope.watch``) read from outside during its
    trace (closures, globals) have changed since. A check is made after some of the function's calls.

    Args:
      monitor: the monitor of the recording, which writes the events.
      counter: counts the calls of the watched function, and determines after which of them a check is made.

    Attributes:
      function: the id of the watched function.
      inside: True if the watched function is not jitted itself but is called by a jitted function. jaxscope
        does not see its calls then, because no Python runs when JAX executes the compiled program.
      static: position of an argument whose object decides which trace is used, such as a static ``self``;
        None: there is no such argument.
      snapshots: what the traces read: ``id()`` of a value of the argument at ``static`` -> (reference to this
        value, Snapshot of the newest trace for it). If ``static`` is None, the only key is 0.
      pending: a trace that has begun and not ended; None: there is none.
      interval: the present number of calls between two checks.
    """

    def __init__(self, monitor: ClosureMonitor, counter: Counter, inside: bool) -> None:
        self.monitor = monitor
        self.counter = counter
        self.function = counter.function
        self.inside = inside
        self.static: int | None = None
        self.snapshots: dict[int, tuple[Any, Snapshot]] = {}
        self.pending: Pending | None = None
        self.interval = 1
        self._looked = 0
        self._without = 0

    def check(self, args: tuple[Any, ...]) -> None:
        """Check whether the values that the watched function (``jaxscope.watch``) read from outside during
        its trace have changed, and decide after how many calls to check next. This is called after a call of
        the function with the positional arguments ``args``."""
        try:
            began = time.perf_counter_ns()
            if self.pending is not None:
                shield.attempt("stale_captures", self.call_returned)
            snapshot = None if self.inside else self.newest(args)
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
                shield.attempt("stale_captures", self.compare_contents, snapshot, CALL)
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

    def newest(self, args: tuple[Any, ...]) -> Snapshot | None:
        """Return the values (a Snapshot) that the newest trace for the positional arguments ``args`` read: if
        ``static`` is an argument's position, the newest trace with the same object there. None if there was
        no such trace."""
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

    def call_returned(self) -> None:
        """Finish the trace that this thread has begun, now that its call has returned: remember the values
        that it read. Do nothing if there is no such trace, or in another thread."""
        pending = self.pending
        if pending is not None and pending.thread == threading.get_ident():
            self.trace_finished(pending, set())

    def trace_finished(self, pending: Pending, constants: set[paths.Identity]) -> None:
        """Remember, in a Snapshot, the values that the finished trace ``pending`` read. If a change was
        reported after the trace before (``CaptureChanged``), log ``CaptureRenewed``: the function now uses
        the present values. ``constants`` identifies the arrays that the trace captured as constants
        (``paths.identity``)."""
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
        if self.inside or snapshot.arrays:  # calls are not seen, or contents change without a call
            self.monitor.check_soon()

    def compare(self, snapshot: Snapshot, read: Read, occasion: str) -> None:
        """Compare one value that the trace read with the present value of its variable, and report a change.
        If the variable was deleted, the value is not checked any more.

        Args:
          snapshot: all values that the trace read.
          read: the value to compare.
          occasion: CALL, STEP or EXIT.
        """
        function = snapshot.function()
        if function is None:
            return
        value = access_path.resolve(function, snapshot.bound, read.found.place)
        if value is MISSING:
            snapshot.drop(read)  # the variable was deleted: the next trace will raise an error
        elif not read.mark.same(value):
            self.report(snapshot, read, value, occasion, "rebound")
        elif read.mark.watched:
            read.remember(value)  # another object with an equal value: compare with this one from now on

    def report(self, snapshot: Snapshot, read: Read, value: Any, occasion: str, how: str) -> None:
        """Log the event ``CaptureChanged``: a captured value is different now. From then on, this value is
        not checked.

        Args:
          snapshot: the values that the trace read.
          read: the value that has changed.
          value: the present value.
          occasion: CALL, STEP or EXIT.
          how: ``rebound`` (the variable has another object) or ``in place`` (the contents of the array
            changed).
        """
        if not snapshot.drop(read):
            return
        snapshot.reported = True
        found, before, after = read.found, read.mark.text, fingerprint.shown(value)
        stack = frames.user_frames(sys._getframe(1)) if occasion != EXIT else []
        self.monitor.emit(
            ev.CaptureChanged(
                function=self.function,
                name=found.name,
                where=found.where,
                reader=found.reader,
                how=how,
                before=before,
                after=after,
                read=found.line,
                site=stack[0] if stack else None,
                seen=occasion,
                call=snapshot.call,
                step=self.monitor.step(),
                calls=self.counter.value,
                certain=found.certain or read.constant,
            )
        )

    def compare_contents(self, snapshot: Snapshot, occasion: str) -> None:
        """Compare the contents of the NumPy arrays that a trace read with their contents at the trace, and
        report changes. ``snapshot`` has the values that the trace read. ``occasion`` is CALL,
        STEP or EXIT."""
        snapshot.calls = self.counter.value
        for read in list(snapshot.arrays):
            value = read.ref()
            if value is not None and not read.mark.contents(value):
                self.report(snapshot, read, value, occasion, "in place")

    def step_ended(self) -> bool:
        """At the end of a training step, make the checks that are not made after calls. Return whether a
        later end of a step needs another check."""
        current = self._current()
        tracker = self.monitor.tracker
        if not self.inside and tracker is not None and tracker.caller is self.counter:
            return False  # its calls are the steps, and ``check`` runs after each call
        for snapshot in current:
            if self.inside or snapshot.calls != self.counter.value:
                self.compare_contents(snapshot, STEP)
            if self.inside:
                snapshot.eager = max(snapshot.eager, 1)
                for read in snapshot.differing() or ():
                    self.compare(snapshot, read, STEP)
        return (self.inside and bool(current)) or any(s.arrays for s in current)

    def exit(self) -> None:
        """At the end of the recording, compare the contents of the captured NumPy arrays, if there were calls
        since the last comparison."""
        for snapshot in self._current():
            if snapshot.calls != self.counter.value:
                self.compare_contents(snapshot, EXIT)

    def _current(self) -> list[Snapshot]:
        """Return the Snapshots (the values that one trace read) whose function and static argument are still
        alive."""
        return [
            s
            for owner, s in list(self.snapshots.values())
            if s.function() is not None and (owner is None or owner() is not None)
        ]


class Pending:
    """A trace, of a function wrapped by ``jaxscope.watch``, that has begun and not ended.

    Args:
      function: the user's function.
      bound: name -> a function that returns the value, for arguments that stay the same from call to call.
      static: position of an argument whose object decides which trace is used, such as a static ``self``;
        None: there is no such argument.
      owner: a function that returns the value of the argument at ``static``; None if ``static`` is None.
      call: the number of the call in which the trace began.
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
    """Checks whether values that functions read from outside (closures, globals) have changed since the
    trace. Only functions wrapped by ``jaxscope.watch`` are checked, each by one Guard. ``bool()`` of this
    object is True if there is such a function.

    Attributes:
      tracker: the StepTracker, which counts training steps; None: steps are not counted.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_function = Weak()  # function -> [(weak reference to a Guard, reference to a method's self)]
        self.tracker: Any = None
        self._since = 0  # the number of steps that had ended at the newest snapshot

    def __bool__(self) -> bool:
        return bool(self._by_function.values())

    def guard(self, watched: Any, counter: Counter) -> Guard | None:
        """Return a new Guard, which checks the values that the user's function inside ``watched`` captures.
        ``watched`` is an object wrapped by ``jaxscope.watch``, and ``counter`` counts its calls. Return None
        if there is no function of the user in ``watched``. The monitor keeps only a weak reference to the
        Guard."""
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
        """Note in each Guard of the traced function that the trace of the call number ``call`` begins
        (``Guard.pending``). Do nothing if the function is not watched (``jaxscope.watch``).

        Args:
          source: the function, options of jit and arguments of the call, as read from JAX's frames
            (``jax_internals.source``).
          frame: the frame of the call; None: unknown.
        """
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
        """At the end of a trace, remember the values that it read, so that they are checked later. ``call``
        is the number of the call that was traced. ``captured`` has the arrays that the trace captured as
        constants."""
        constants = {paths.identity(c) for c in captured}
        for guard in self._guards():
            pending = guard.pending
            if pending is not None and pending.call == call:
                guard.trace_finished(pending, constants)

    def ended(self, call: int, returned: bool) -> None:
        """Call ``traced`` (if ``returned``) or ``failed`` at the end of a trace that JAX does not announce,
        such as one inside another trace. ``call`` is the number of the call that was traced. ``returned`` is
        False if the trace raised an exception."""
        if self:
            (self.traced if returned else self.failed)(call)

    def failed(self, call: int) -> None:
        """Discard the pending trace of the call number ``call``, because it raised an exception. The values
        that the trace before it read are still checked."""
        for guard in self._guards():
            if guard.pending is not None and guard.pending.call == call:
                guard.pending = None

    def _guards(self) -> Iterator[Guard]:
        """Yield the Guard of each watched function (``jaxscope.watch``) that is still alive."""
        for known in self._by_function.values():
            for ref, _ in list(known):
                guard = ref()
                if guard is not None:
                    yield guard

    # -- steps ----------------------------------------------------------------------------------------

    def check_soon(self) -> None:
        """Let all Guards check, at the end of this step and at the ends of later steps at growing intervals,
        whether the values that their functions captured have changed. Do nothing if steps are not counted."""
        if self.tracker is not None:
            self._since = self.tracker.ended
            self.tracker.look_after(1)

    def step_ended(self) -> None:
        """At the end of a training step, check whether the values that the watched functions
        (``jaxscope.watch``) captured have changed, and schedule the next check."""
        looked = [guard.step_ended() for guard in self._guards()]
        if any(looked) and self.tracker is not None:
            self.tracker.look_after(max(1, self.tracker.ended - self._since))

    def exit(self) -> None:
        """Compare once more the NumPy arrays that the watched functions (``jaxscope.watch``) captured, before
        the recording ends. Functions that were not called since the last comparison are left out."""
        for guard in self._guards():
            guard.exit()

    def step(self) -> int | None:
        """Return the number of the current training step; None if steps are not counted."""
        step: int | None = self.tracker.current if self.tracker is not None else None
        return step

    def emit(self, event: ev.CaptureChanged | ev.CaptureRenewed) -> None:
        self._writer.emit(event)


def _reference(value: Any) -> Any:
    """Return a function that returns ``value`` and keeps no array alive: for a number or a string a plain
    function, else a weak reference, which returns None after the death of ``value``. Return None if ``value``
    cannot have weak references."""
    if type(value) in paths.PLAIN:
        return lambda: value
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _directly(function: Any) -> Any:
    """Return the function inside the partials, bound methods and wrappers of ``jaxscope.watch`` around
    ``function``. Other wrappers are not removed."""
    while type(function) in (functools.partial, MethodType) or hasattr(type(function), access_path.WATCHED):
        if type(function) is functools.partial:
            function = function.func
        else:
            function = getattr(function, "__func__" if type(function) is MethodType else access_path.WATCHED)
    return function
