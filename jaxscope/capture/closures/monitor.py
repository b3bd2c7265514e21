"""Whether what a watched function's trace took in from outside has been changed since: JAX would not notice.

At each trace of a watched function, what its code reads is remembered by weak reference. When calls return, it
is compared by identity; the contents of NumPy arrays ever more rarely, at the ends of steps too. Where jit is
around the watched function and its calls do not come by, both at the ends of steps.
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

RARELY = 31  # calls between two looks, at most; odd, so that functions called in turn all have theirs
SHARE = 1000  # a look may take one part in so many of the time of the calls since the last
NOTHING_YET = 1 << 40  # calls: until a trace begins, which asks for a look
MAX_SNAPSHOTS = 64  # of one function: a static self each

CALL, STEP, EXIT = "call", "step", "exit"


class Guard:
    """Looks after one watched object, on calls that its counter says.

    Attributes:
      inside: it is not itself jitted, jit is around it: its warm calls do not come by.
      static: the argument that tells traces apart, such as a static self.
      snapshots: the newest trace by the id of that argument, with a reference to it.
      pending: a trace that has begun.
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
        """After a call of the watched object."""
        try:
            began = time.perf_counter_ns()
            if self.pending is not None:
                shield.attempt("stale_captures", self.returned)
            snapshot = None if self.inside else self.of(args)
            if snapshot is None and not self.snapshots:
                self.counter.look_in(NOTHING_YET)
                return
            if snapshot is None:
                self._without += 1
                self.counter.look_in(1 if self._without <= EAGER else RARELY)
                return
            if not snapshot.reads and self.static is None:
                self.counter.look_in(NOTHING_YET)
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
                self.interval = min(RARELY, 2 * self.interval + 1)
            else:
                self.interval = max(1, self.interval // 2)
            self._looked = ended
            self.counter.look_in(self.interval)
        except Exception as e:
            self.counter.look_in(NOTHING_YET)
            shield.switch_off("stale_captures", f"{type(e).__name__}: {str(e)[:300]}")

    def of(self, args: tuple[Any, ...]) -> Snapshot | None:
        """The newest trace that serves ``args``."""
        if self.static is None:
            key = 0
        elif self.static < len(args):
            key = id(args[self.static])
        else:
            return None
        found = self.snapshots.get(key)
        if found is None or (self.static is not None and found[0]() is not args[self.static]):
            return None
        return found[1]

    def returned(self) -> None:
        """The call in which a trace began is over: as the trace left things, they are to stay."""
        pending = self.pending
        if pending is not None and pending.thread == threading.get_ident():
            self.take(pending, set())

    def take(self, pending: Pending, constants: set[paths.Identity]) -> None:
        if self.pending is pending:
            self.pending = None
        function = pending.function()
        key, owner = 0, pending.owner
        if owner is not None:
            held = owner()
            key = id(held)
            if held is None:
                return
        if function is None:
            return
        calls = self.counter.value
        snapshot = Snapshot(function, pending.bound, pending.call, calls, constants)
        before = self.snapshots.pop(key, None)
        if before is not None and before[1].told:
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
            self.monitor.soon()

    def compare(self, snapshot: Snapshot, read: Read, seen: str) -> None:
        """Another object stands where ``read`` was found: is it another value?"""
        function = snapshot.function()
        if function is None:
            return
        value = access_path.resolve(function, snapshot.bound, read.found.place)
        if value is access_path.MISSING:
            snapshot.drop(read)  # deleted: what is traced next will say so itself
        elif not read.mark.same(value):
            self.tell(snapshot, read, value, seen, "rebound")
        elif read.mark.watched:
            read.remember(value)  # an equal value: from now on it is this one

    def tell(self, snapshot: Snapshot, read: Read, value: Any, seen: str, how: str) -> None:
        if not snapshot.drop(read):
            return
        snapshot.told = True
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
        """Compare what NumPy arrays hold."""
        snapshot.calls = self.counter.value
        for read in list(snapshot.arrays):
            value = read.ref()
            if value is not None and not read.mark.contents(value):
                self.tell(snapshot, read, value, seen, "in place")

    def step_ended(self) -> bool:
        """Look at what arrays hold, and at what calls do not come by to see. False: there is neither."""
        current = self._current()
        tracker = self.monitor.tracker
        if not self.inside and tracker is not None and tracker.caller is self.counter:
            return False  # its calls are the steps, and are looked after
        for snapshot in current:
            if self.inside or snapshot.calls != self.counter.value:
                self.contents(snapshot, STEP)
            if self.inside:
                snapshot.eager = max(snapshot.eager, 1)
                for read in snapshot.differing() or ():
                    self.compare(snapshot, read, STEP)
        return (self.inside and bool(current)) or any(s.arrays for s in current)

    def exit(self) -> None:
        """The last look: at arrays that calls may have been served from since the one before."""
        for snapshot in self._current():
            if snapshot.calls != self.counter.value:
                self.contents(snapshot, EXIT)

    def _current(self) -> list[Snapshot]:
        found = list(self.snapshots.values())
        return [
            s for owner, s in found if s.function() is not None and (owner is None or owner() is not None)
        ]


class Pending:
    """A trace of a watched function that has begun."""

    def __init__(
        self, function: FunctionType, bound: dict[str, Any], static: int | None, owner: Any, call: int
    ) -> None:
        self.function = weakref.ref(function)
        self.bound = bound  # references to arguments that stay, by name
        self.static, self.owner = static, owner  # the one that tells traces apart, and a reference to it
        self.call = call
        self.thread = threading.get_ident()


class ClosureMonitor:
    """The guards of one recording, by the function they watch."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._by_function = Weak()  # -> list of weak references to guards
        self.tracker: Any = None
        self._since = 0  # the step that had ended when something new was taken in

    def __bool__(self) -> bool:
        return bool(self._by_function.values())

    def guard(self, watched: Any, counter: Counter) -> Guard | None:
        """Who looks after ``watched``, whose calls ``counter`` counts; None where no user's function is in it."""
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
        """A trace of ``source['fun']``, called at ``frame``, is about to run its body."""
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
        shift = len(positional)  # what a method or a partial puts in front
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

    def traced(self, call: int, taken: Iterable[Any] = ()) -> None:
        """The trace of ``call`` has ended well; ``taken`` are the arrays it took in, where they are known."""
        constants = {paths.identity(c) for c in taken}
        for guard in self._guards():
            pending = guard.pending
            if pending is not None and pending.call == call:
                guard.take(pending, constants)

    def ended(self, call: int, returned: bool) -> None:
        """A trace that JAX announces no end of has ended."""
        if self:
            (self.traced if returned else self.failed)(call)

    def failed(self, call: int) -> None:
        """It raised: what was traced before is still what runs."""
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

    def soon(self) -> None:
        """There is something new that calls do not come by to see: look when this step ends, then ever more rarely."""
        if self.tracker is not None:
            self._since = self.tracker.ended
            self.tracker.look_after(1)

    def step_ended(self) -> None:
        looked = [guard.step_ended() for guard in self._guards()]
        if any(looked) and self.tracker is not None:
            self.tracker.look_after(max(1, self.tracker.ended - self._since))

    def exit(self) -> None:
        """The recording is about to end."""
        for guard in self._guards():
            guard.exit()

    def step(self) -> int | None:
        found: int | None = self.tracker.current if self.tracker is not None else None
        return found

    def emit(self, event: ev.CaptureChanged | ev.CaptureRenewed) -> None:
        self._writer.emit(event)


def _reference(value: Any) -> Any:
    """A reference that keeps no array alive; None where there can be none."""
    if type(value) in paths.PLAIN:
        return lambda: value
    try:
        return weakref.ref(value)
    except TypeError:
        return None


def _directly(function: Any) -> Any:
    """What was given to jit, without what binds arguments: its static arguments are the user's own."""
    while type(function) in (functools.partial, MethodType) or hasattr(type(function), access_path.WATCHED):
        if type(function) is functools.partial:
            function = function.func
        else:
            function = getattr(function, "__func__" if type(function) is MethodType else access_path.WATCHED)
    return function
