"""Listen to JAX's events of calls that miss the fast path (the C++ cache), and write the event ``Missed`` for
each such call, ``PhaseBegan`` for each of its phases, and the result of each phase.

JAX announces each phase (trace, lowering, compilation) to the listeners of ``jax.monitoring``, and each miss
to a listener that JAX has for its own tests. Arguments and results are read from the local variables of JAX's
frames, which are on the stack only while these listeners run. Nothing of JAX or of the user is replaced here.
JAX sends no event for a call on the fast path, so no code of jaxscope runs in such a call.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import frames, listeners, rounding, shield, waiting_thread, warm
from jaxscope.capture.calls import functions, signature, wrappers
from jaxscope.capture.calls.buffer_lifetime import BufferLifetimes
from jaxscope.capture.calls.cache_clearings import Clearings
from jaxscope.capture.calls.in_progress import MISS_RANK, RANKS, TRACE_RANK, Call, Calls, how_entered, place
from jaxscope.capture.calls.interning import UNREADABLE, Introductions
from jaxscope.capture.calls.nested_traces import NestedTraces
from jaxscope.capture.calls.repeated_misses import RepeatedMisses
from jaxscope.capture.closures.monitor import ClosureMonitor
from jaxscope.capture.line_times import LineTimer
from jaxscope.capture.live_arrays import allocation_sites
from jaxscope.capture.phases import Lowering, Phases, Stack, effects
from jaxscope.capture.sampler import Sampler
from jaxscope.capture.steps.step_function import StepFunction
from jaxscope.capture.steps.tracker import StepTracker
from jaxscope.capture.transfers.host_to_device import DevicePuts
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame, Key
from jaxscope.schema.libraries import JAX_ROOTS, OF_FUNCTIONS

PHASES = {
    "/jax/core/compile/jaxpr_trace_duration": ev.TRACE,
    "/jax/core/compile/jaxpr_to_mlir_module_duration": ev.LOWER,
    "/jax/core/compile/backend_compile_duration": ev.COMPILE,
}
CACHE = {"/jax/compilation_cache/cache_hits": "hit", "/jax/compilation_cache/cache_misses": "miss"}


class Probe:
    """The listeners of one recording for JAX's events. ``install`` registers the listeners, ``remove``
    removes them.

    Args:
      ir: which texts of the user's programs are stored: none, stats, stablehlo, hlo or all.
    """

    def __init__(self, writer: Writer, ir: str) -> None:
        self._writer = writer
        self.tracker: StepTracker | None = None  # counts steps; its counts are written before each miss
        self.stepping: StepFunction | None = None  # counts the calls of --step-function
        self.sampler: Sampler | None = None  # takes snapshots of the live arrays
        self.line_times: LineTimer | None = None  # measures the time of each line
        self.puts: DevicePuts | None = None  # records copies to devices
        self._numbers = itertools.count(1)
        self._serials = functions.Serials()
        self.monitor = ClosureMonitor(writer)
        self.nested = NestedTraces(writer, self.monitor.ended)
        self.calls = Calls(self.nested.over)
        self.repeats = RepeatedMisses(writer)
        self._clearings = Clearings()
        self._examined: set[tuple[str, int, str]] = set()  # NumPy arguments, each with the line of the call
        self.previous: Any = None  # the test-event listener that was there before ours
        self._forwarding: Any = None  # a test-event listener of the program that calls ours
        self._passing = threading.local()
        self.handlers: dict[str, Callable[[FrameType], None]] = {
            jax_internals.EVENT_MISS: lambda frame: self._guarded("miss_event", self._missed, frame),
            jax_internals.EVENT_PUT: lambda frame: self._on_copy(DevicePuts.began, frame),
            jax_internals.EVENT_PUT_DONE: lambda frame: self._on_copy(DevicePuts.ended, frame),
            jax_internals.EVENT_COPIED: lambda frame: self._on_copy(DevicePuts.copied, frame),
            jax_internals.EVENT_TRACE: lambda frame: self._guarded("trace_event", self._tracing, frame),
            jax_internals.EVENT_LOWER: lambda _: self._guarded("listeners", listeners.restore, self, writer),
        }
        self.introductions = Introductions(writer)
        self.phases = Phases(writer, self.introductions, ir, self.monitor)
        self.buffer_lifetimes = BufferLifetimes(writer.emit)
        self._sees_traces = True  # whether the installed JAX has the function that TraceFrame describes
        self.events = warm.Tick()
        self.events.value = 0
        self.on_test = listeners.event_filter(self)  # one object: it is compared with JAX's present listener

    @property
    def callbacks(self) -> int:
        """The number of events that JAX has sent to this recording. A call on the fast path (the C++ cache)
        sends none."""
        count: int = self.events.value
        return count

    def install(self) -> None:
        """Register the listeners of this recording for JAX's events. JAX has only one place for a listener
        for its test events; the listener that was there before is remembered in ``previous``."""
        self._sees_traces = jax_internals.TraceFrame.code() is not None
        listeners.register(self)
        if jax_internals.has_test_slot():
            self.previous = jax_internals.test_listener()
            jax_internals.set_test_listener(self.on_test)

    def remove(self) -> None:
        """Remove the listeners of this recording from JAX. The listener for JAX's test events is replaced by
        the one that was there before, unless the program has installed another one meanwhile."""
        listeners.unregister(self)
        if jax_internals.has_test_slot() and jax_internals.test_listener() == self.on_test:
            jax_internals.set_test_listener(self.previous)

    # -- callbacks: each begins with the cheapest possible check -----------------------------------

    def received(self, name: str, args: tuple[Any, ...], event_frame: FrameType) -> None:
        """Handle an event that JAX sends to the listener for its own tests. Then pass the event to the
        listener ``previous``, if there is one. Do nothing if ``previous`` itself has sent the event here.

        ``on_test``, the listener of this recording, calls this method for the events that it does not handle
        itself.

        Args:
          name: the name of the event.
          args: what JAX passes with the event.
          event_frame: the frame of JAX that sends it.
        """
        if getattr(self._passing, "on", False):
            return  # the listener that we called with this event calls ours back
        handle = self.handlers.get(name)
        if handle is not None:
            handle(event_frame)
        if self.previous is not None:
            self._passing.on = True
            try:
                self.previous(name, *args)
            finally:
                self._passing.on = False

    def on_scalar(self, event: str, value: float | int, **_: Any) -> None:
        """Receive the beginning of a phase (trace, lowering, compilation) from ``jax.monitoring``. ``event``
        names the phase (other events are ignored); ``value`` is not used."""
        self.events.value += 1
        if event in PHASES:
            self._guarded("phase_starts", self._began, PHASES[event], sys._getframe(1))

    def on_duration(self, event: str, duration_secs: float, **_: Any) -> None:
        """Receive the end of a phase (trace, lowering, compilation) from ``jax.monitoring``. ``event`` names
        the phase, which took ``duration_secs``; other events are ignored."""
        self.events.value += 1
        if event in PHASES:
            self._guarded("phase_durations", self._ended, PHASES[event], duration_secs, sys._getframe(1))

    def on_event(self, event: str, **_: Any) -> None:
        """Receive from ``jax.monitoring`` an ``event`` that is not the beginning or end of a phase. Only two
        such events are used: the persistent cache has the program that JAX compiles, or does not have it."""
        self.events.value += 1
        if event in CACHE:
            self._guarded("cache_events", self._cache, CACHE[event])

    def _guarded(self, name: str, action: Callable[..., None], *args: Any) -> None:
        """Call ``action(*args)`` for the part ``name`` of the recording, by ``shield.attempt``: none of its
        exceptions reach the program. Do nothing if this thread is inside a callback of jaxscope already."""
        token = object()
        try:
            if shield.enter(token):
                if self.nested.waiting:
                    shield.attempt("nested_end", self.nested.settle, self.calls.open)
                shield.attempt(name, action, *args)
        finally:
            shield.leave(token)

    # -- one event each -----------------------------------------------------------------------------

    def _on_copy(self, handle: Callable[[DevicePuts, FrameType], None], event_frame: FrameType) -> None:
        """Pass JAX's event of a copy to ``handle``, a method of DevicePuts, if copies are recorded."""
        if self.puts is not None:
            self._guarded("device_puts", handle, self.puts, event_frame)

    def _missed(self, event_frame: FrameType) -> None:
        """Handle JAX's event that a call missed the fast path (the C++ cache). If the call missed before with
        the same trace and arguments, only count it; else begin the record of a call. ``event_frame`` is the
        frame of JAX that sends the event."""
        impl = jax_internals.nearest_frame(event_frame, (jax_internals.ImplFrame.function,))
        local = jax_internals.ImplFrame(impl) if impl is not None else None
        both = local is not None and jax_internals.known(local.jaxpr) and jax_internals.known(local.args)
        jaxpr, arguments = (local.jaxpr, local.args) if local is not None and both else (None, ())
        if jaxpr is not None:
            function = self.repeats.counted(jaxpr, arguments)
            if function is not None:
                if self.calls.open:  # an ended call's frame may have had the same address: end that call
                    self.calls.prune(jax_internals.stack_of_call(event_frame)[1])
                if self.stepping is not None:
                    self.stepping.repeated(function)
                return
        call, _ = self._call_at(event_frame, MISS_RANK)
        if jaxpr is not None and not call.retraced:
            self.repeats.note(jaxpr, arguments, call.function)

    def _tracing(self, event_frame: FrameType) -> None:
        """Handle JAX's event that a trace begins: note that its call was traced again. For a trace inside
        another trace or a transform, begin the record of a new call. Ignore traces of a scan or a cond, and
        those of a library's functions inside another trace. ``event_frame`` is the frame of JAX that sends
        the event."""
        tracer = jax_internals.nearest_frame(event_frame, jax_internals.TRACER_FRAMES)
        around = tracer.f_back if tracer is not None else None
        of_jit = around is not None and around.f_code.co_name == jax_internals.TraceFrame.function
        if around is not None and not of_jit and self._sees_traces:
            return
        self._forwarding = jax_internals.test_listener()
        stack, frame = jax_internals.stack_of_call(event_frame)
        call = self.calls.tracing(frame)
        if call is None:  # inside another trace, or under a transform: JAX announces no phase for it
            if not of_jit or around is None:
                return  # it may be the trace of a scan or a cond
            source = jax_internals.source(stack, frame)
            seen = self.introductions.describe(source["fun"]) if "fun" in source else None
            if seen is not None and (seen.library or seen.eager) and _user_call(source, frame)[1] is None:
                return  # a jnp function inside the user's trace is part of it: a model has hundreds
            call = self._begin(stack, frame, source, TRACE_RANK, nested=jax_internals.inside_trace(around))
            shield.attempt("nested_end", self.nested.begins, call, around)
        else:
            listeners.restore(self, self._writer)
        call.retraced = True
        if self.monitor:
            shield.attempt(
                "stale_captures", self.monitor.began, call.number, jax_internals.source(stack, frame), frame
            )

    def _began(self, phase: str, event_frame: FrameType) -> None:
        """Log that the ``phase`` (trace, lower or compile) of a call has begun. ``event_frame`` is the frame
        of JAX that sends this event."""
        call, _ = self._call_at(event_frame, RANKS[phase])
        later, call.later = call.later, False
        self._writer.emit(ev.PhaseBegan(call=call.number, phase=phase, later=later))

    def _ended(self, phase: str, seconds: float, event_frame: FrameType) -> None:
        """Log the result of the ``phase`` (trace, lower or compile) of a call, which took ``seconds``, or
        that an exception ended it. ``event_frame`` is the frame of JAX that sends this event."""
        call, stack = self._call_at(event_frame, RANKS[phase] + 1)
        if phase == ev.TRACE:
            self.nested.announced(call)
        if jax_internals.phase_raised(event_frame):
            self.phases.failed(call, phase, seconds)
        elif phase == ev.TRACE:
            self.phases.traced(call, stack, seconds, complete=self._receives_traces())
        elif phase == ev.LOWER:
            self.phases.lowered(call, stack, seconds)
        else:
            self.phases.compiled(call, stack, seconds)

    def _receives_traces(self) -> bool:
        """Return whether JAX's events of the beginning of traces reach this recording. If the program has
        replaced the recording's listener by one that does not call it, install it again and return False."""
        if not jax_internals.has_test_slot() or not shield.works("trace_event"):
            return False
        now = jax_internals.test_listener()
        if now == self.on_test or now is self._forwarding:
            return True
        self.previous = now
        jax_internals.set_test_listener(self.on_test)
        reason = (
            "the program replaced jaxscope's listener for JAX's test events; until jaxscope restored it, it"
            " could not distinguish a new trace from a trace that JAX found in its cache"
        )
        self._writer.emit(ev.Degraded(seam="miss_event", reason=reason))
        return False

    def _cache(self, outcome: str) -> None:
        """Record whether the persistent cache has the program that JAX is compiling on this thread.
        ``outcome`` is ``hit`` or ``miss``."""
        if self.calls.open:
            self.calls.open[-1].cache = outcome

    # -- the call an event belongs to ---------------------------------------------------------------

    def _call_at(self, event_frame: FrameType, rank: int) -> tuple[Call, Stack]:
        """Return (the call to which an event that ``event_frame`` sends belongs, JAX's frames by function
        name). If the call is new, begin its record. ``rank`` is the event's position in the order of a call's
        events (``calls.in_progress``)."""
        stack, frame = jax_internals.stack_of_call(event_frame)
        if frame is not None:
            call = self.calls.find(frame, rank)
            if call is not None:
                if rank >= MISS_RANK and call.retraced and not call.trace_written:
                    call.trace_written = True  # JAX's event of the end of the trace did not reach us
                    self._writer.emit(ev.Traced(call=call.number))
                return call, stack
            return self._begin(stack, frame, jax_internals.source(stack, frame), rank), stack
        # Ahead of time, the user calls trace, lower and compile one by one. The jaxpr, then the module, shows
        # which earlier call this one continues.
        source = jax_internals.source(stack, None)
        earlier: Call | None = self.phases.traces.get(source.get("jaxpr"))
        lowering: Lowering | None = self.phases.modules.get(source.get("module"))
        if lowering is not None:
            earlier = lowering.call
        if earlier is not None and rank > earlier.rank:
            earlier.rank, earlier.later = rank, True
            if self.tracker is not None:
                self.tracker.flush()
                self.tracker.missed(earlier.number)  # a no_recompiles block may have begun meanwhile
            self.calls.begin(earlier, event_frame)
            return earlier, stack
        call = self._begin(stack, None, source, rank, earlier=earlier)
        self.phases.traces.put(source.get("jaxpr"), call)  # for the phases that follow
        if lowering is not None:
            lowering.call = call
        return call, stack

    def _steps(self) -> dict[str, Any]:
        """Log the counts of steps. Return the fields of the event ``Missed`` for training steps: ``step``,
        the current step of this process, and ``main_step``, that of the process that the user started.

        A step is None if it is unknown. ``main_step`` is also None if the user started this process. The dict
        is empty if there is no ``tracker``.
        """
        if self.tracker is None:
            return {}
        self.tracker.flush()
        return {"step": self.tracker.current, "main_step": self.tracker.main_step}

    def _begin(
        self,
        stack: Stack,
        frame: FrameType | None,
        source: dict[str, Any],
        rank: int,
        *,
        nested: bool = False,
        earlier: Call | None = None,
    ) -> Call:
        """Begin the record of a new call: read its cache key, its function and the user's lines from JAX's
        frames, log the event ``Missed``, and return the call.

        Args:
          stack: JAX's frames by function name.
          frame: the frame of the call; None: it lowers or compiles ahead of time.
          source: what JAX's frames show of the call: function, options of jit, arguments
            (``jax_internals.source``).
          rank: the position of the call's first event in the order of a call's events
            (``calls.in_progress``).
          nested: whether the call was made inside another trace.
          earlier: an earlier call with the same trace, if this call lowers or compiles the program once more;
            else None.
        """
        outermost = frame if frame is not None else next(iter(stack.values()), None)
        self._look_at_arguments("next_event", outermost)
        self.introductions.backend(stack)

        source, user = _user_call(source, frame)
        context = shield.attempt("trace_context", self.introductions.context)
        read = shield.attempt("signature", signature.of_source, source, user, self._serials, context)
        seen = self._function(source, user, outermost, earlier) or UNREADABLE
        key = read.key if read is not None else None
        entry = how_entered(frame, nested, key)
        if entry == "call" and self.stepping is not None:
            shield.attempt("step_function", self.stepping.missed, seen)
        full = shield.attempt("cache_gauge", self._clearings.check, rank == TRACE_RANK and not nested)
        call = self._numbered(frame, seen, earlier, key, rank)
        lines = _lines(outermost, seen, call.detail)
        made = _origins(read) if call.detail and entry == "call" and read is not None else {}
        self._writer.emit(
            ev.Missed(
                call=call.number,
                function=call.function,
                entry=entry,
                **lines,
                key=key,
                **self._steps(),
                inside=self.calls.open[-1].number if self.calls.open else None,
                effects=shield.attempt("effects", effects, source.get("jaxpr")),
                cleared=self._clearings.count if full is not None else None,
                full=full,
                **made,
            )
        )
        files = [site.file for site in (lines["site"], *lines["stack"]) if site is not None]
        shield.attempt("sources", self.introductions.sources, [seen.file if call.detail else None, *files])
        if call.detail and entry == "call" and read is not None and read.narrowed:
            shield.attempt("rounding", self._examine, read, seen.name, lines["site"])
        self._notify_others(call, entry, read, source, user)
        self.calls.begin(call, outermost)
        return call

    def _examine(self, read: signature.Read, name: str, site: Frame | None) -> None:
        """Log each NumPy argument that loses information (``rounding.lost``) when JAX converts it from 64 to
        32 bits. An argument is examined once for each line.

        Args:
          read: the arguments of the call.
          name: the name of the called function.
          site: the program's line that made the call; None: unknown, nothing is examined.
        """
        if site is None:
            return
        for position, values in read.narrowed:
            leaf = read.key.arguments[position]
            place = (site.file, site.line, leaf.path)
            if place in self._examined or leaf.dtype is None:
                continue
            self._examined.add(place)
            share = rounding.lost(values, leaf.dtype)
            if share:
                before = values.dtype.name
                self._writer.emit(
                    ev.Rounded(site, name, before, after=leaf.dtype, share=share, argument=leaf.path)
                )

    def _numbered(
        self,
        frame: FrameType | None,
        event: ev.FunctionSeen,
        earlier: Call | None,
        key: Key | None,
        rank: int,
    ) -> Call:
        """Return a new ``Call`` with the next number.

        Args:
          frame: the frame of the call; None: it lowers or compiles ahead of time.
          event: the event that describes the called function.
          earlier: an earlier call with the same trace, if the new call lowers or compiles it once more; else
            None. The new call has the same function and stores the same texts.
          key: the cache key of the call; None: it could not be read.
          rank: the position of the call's first event in the order of a call's events
            (``calls.in_progress``).
        """
        number, at = next(self._numbers), place(frame)
        paths = [leaf.path for leaf in key.arguments] if key is not None else None
        if earlier is not None:
            call = Call(number, at, earlier.function, earlier.detail, paths, rank)
            call.keeps_lowered = earlier.keeps_lowered
            return call
        call = Call(number, at, event.function, not (event.library or event.eager), paths, rank)
        call.keeps_lowered = call.detail or _may_run_users_functions(event)
        return call

    def _notify_others(
        self,
        call: Call,
        entry: str,
        read: signature.Read | None,
        source: dict[str, Any],
        user: wrappers.UserCall | None,
    ) -> None:
        """Pass the new ``call`` to the other parts of the recording: those that count steps and copies, take
        snapshots of arrays, measure the times of lines, and check what became of the call's arguments.

        Args:
          entry: how the call was made: ``call``, ``nested``, ``aot`` or ``transform`` (``how_entered``).
          read: the cache key of the call; None: it could not be read.
          source: what JAX's frames show of the call: function, options of jit, arguments
            (``jax_internals.source``).
          user: the user's call, if a library's wrapper such as ``nnx.jit`` made this call; None: no wrapper
            did.
        """
        if self.tracker is not None:
            self.tracker.missed(call.number)
            if entry == "call" and read is not None:
                leaves = sum(leaf.type.startswith("numpy.") for leaf in read.key.arguments)
                passed = user.args if user is not None else source.get("args")
                keywords = user.kwargs if user is not None else source.get("kwargs")
                shield.attempt(
                    "transfers", self.tracker.numpy_arguments, call.function, (passed, keywords), leaves
                )
        if self.sampler is not None and entry == "call":
            (self.sampler.at_miss if call.detail else self.sampler.at_transfer)(sys._getframe())
        if self.line_times is not None:
            self.line_times.passed()
        if read is not None and entry != "aot":
            arguments = read.key.arguments
            self.buffer_lifetimes.expect(call.number, [(arguments[i].path, ref) for i, ref in read.refs])

    def _function(
        self,
        source: dict[str, Any],
        user: wrappers.UserCall | None,
        outermost: FrameType | None,
        earlier: Call | None,
    ) -> ev.FunctionSeen | None:
        """Return the event ``FunctionSeen`` for the function of a new call, and log it when the function
        first appears. Return None if this fails, or if ``source`` has no function and the call continues
        ``earlier``.

        Args:
          source: what JAX's frames show of the call (``jax_internals.source``).
          user: the user's call of a library's wrapper such as ``nnx.jit``, if it made the new call; else
            None.
          outermost: the frame of the call, or JAX's innermost frame; None: unknown.
          earlier: an earlier call with the same trace; None: there is none.
        """
        function = source.get("fun")
        if function is not None:
            return shield.attempt("function", self._introduced, function, user, outermost)
        if earlier is None:
            return shield.attempt("function", self._traced, source.get("jaxpr"), outermost)
        return None

    def _introduced(
        self, function: Any, user: wrappers.UserCall | None, frame: FrameType | None
    ) -> ev.FunctionSeen:
        """Return the event ``FunctionSeen`` that describes ``function``, an object passed to jit, and log it
        when the function first appears, and again when it first counts as the user's. A function of a library
        or of another installed package counts as the user's if the user passed it to jit.

        Args:
          user: the user's call of a library's wrapper such as ``nnx.jit``, if it called the jitted function:
            the event then describes the user's function; None: there is no such call.
          frame: the frame of the call of the jitted function; None: unknown.
        """
        seen = self.introductions.describe(function, user)
        if user is not None:
            self.introductions.remember_wrapper(function, seen)
        installed = not seen.library and frames.is_installed_beside(seen.file, frame)
        if (seen.library or installed) and wrappers.jitted_by_user(
            user.function if user is not None else function, frame
        ):
            return self.introductions.jitted_by_user(seen)
        # A function that an installed package itself passes to jit counts as a library's.
        return self.introductions.introduce(
            msgspec.structs.replace(seen, library=True) if installed else seen
        )

    def _traced(self, jaxpr: Any, frame: FrameType | None) -> ev.FunctionSeen:
        """Return the event ``FunctionSeen`` for the function that was traced to ``jaxpr``, and log it when
        the function first appears. ``frame``: the call's frame, None if unknown."""
        seen = self.introductions.traced(jaxpr)
        of_wrapper = seen.library and seen.module is not None and frames.root(seen.module) not in JAX_ROOTS
        if of_wrapper and wrappers.jitted_by_user(None, frame):
            return self.introductions.jitted_by_user(seen)
        return seen

    # -- for the session ------------------------------------------------------------------------------

    def look(self, occasion: str) -> None:
        """Log what became of the array arguments of calls that are over: whether they were deleted, were
        released or are still alive. ``occasion`` is ``next_call``, ``next_event`` or ``exit``."""
        self._look_at_arguments(occasion, sys._getframe())

    def _look_at_arguments(self, occasion: str, frame: FrameType | None) -> None:
        """End the calls of this thread whose frames are not among the callers of ``frame`` (None: all of
        them). Then log what became of the array arguments of calls that are over, as ``look`` does."""
        self.calls.prune(frame)
        if self.buffer_lifetimes:
            shield.attempt("argument_fates", self.buffer_lifetimes.check, occasion, self.calls.running())

    def call_of(self, jaxpr: Any) -> Call:
        """Return the recorded call to which ``jaxpr`` belongs. If there is none, log a new call for ``jaxpr``
        and return this one."""
        known: Call | None = self.phases.traces.get(jaxpr)
        if known is not None:
            return known
        call = Call(
            next(self._numbers), (0, 0), self.introductions.traced(jaxpr).function, True, None, TRACE_RANK
        )
        site = next(iter(frames.user_frames(sys._getframe())), None)
        self._writer.emit(ev.Missed(call=call.number, function=call.function, entry="aot", site=site))
        self.phases.traces.put(jaxpr, call)
        return call

    def forked(self) -> None:
        """Start anew in a forked child: its log has no functions yet, and the calls in progress are the
        parent's."""
        self.introductions = Introductions(self._writer)
        ir, retarget = self.phases.ir, self.phases.retarget
        self.phases = Phases(self._writer, self.introductions, ir, self.monitor, retarget)
        self.repeats = RepeatedMisses(self._writer)
        self.calls = Calls(self.nested.over)
        self.buffer_lifetimes.forget()

    def flush(self) -> None:
        """Log how many calls missed the fast path (the C++ cache) again with unchanged arguments. Only the
        first of them are described one by one."""
        shield.attempt("repeats", self.repeats.flush)


def _user_call(
    source: dict[str, Any], frame: FrameType | None
) -> tuple[dict[str, Any], wrappers.UserCall | None]:
    """Return (``source``, the user's call of a library's wrapper such as ``nnx.jit`` that made the call at
    ``frame``). The second is None if no wrapper made the call. If the wrapper's frame cannot be read, return
    ({}, None).

    ``source`` is what JAX's frames show of the call: function, options of jit, arguments
    (``jax_internals.source``).
    """
    function = source.get("fun")
    if frame is None or function is None:
        return source, None
    user = shield.attempt("wrapper_frames", wrappers.user_call, function, frame.f_back)
    # Missing: the function in ``source`` is the wrapper's, not the user's.
    return ({}, None) if isinstance(user, jax_internals.Missing) else (source, user)


def _origins(read: signature.Read) -> dict[str, Any]:
    """Return the fields of ``Missed`` for the lines that created the arrays in a call's arguments: ``made``
    (the lines) and ``made_by`` (for each argument the index of its line; -1: unknown). Return an empty dict
    if the lines cannot be read. ``read`` has the arrays."""
    found = shield.attempt("array_origin", allocation_sites.lines_of, read.refs, len(read.key.arguments))
    return {"made": found[0], "made_by": found[1]} if found else {}


def _may_run_users_functions(event: ev.FunctionSeen) -> bool:
    """Return whether ``event`` describes a function that may compute with the user's functions: a function of
    a library other than JAX, such as a solver, or a loop or branch outside jit."""
    if event.eager:
        return event.name in OF_FUNCTIONS
    return event.library and (event.module or "").partition(".")[0] not in JAX_ROOTS


def _lines(outermost: FrameType | None, event: ev.FunctionSeen, detail: bool) -> dict[str, Any]:
    """Return the fields of the event ``Missed`` for the lines of the program that made a call: site, stack,
    column, library and into_library.

    Args:
      outermost: the frame of the call, or JAX's innermost frame if the call has no frame.
      event: the event that describes the called function.
      detail: whether the called function is the user's own. If so, or if the function could not be read,
        ``library`` and ``into_library`` are None.
    """
    above = frames.users(frames.walk(outermost))
    stack = [frames.location(f) for f in above]
    if not stack:
        stack = shield.attempt("waiting_threads", waiting_thread.user_frames, outermost) or []
    entrance: tuple[int | None, str | None] = (None, None)
    if not detail and event.name != UNREADABLE.name:  # else it is unknown whose function it is
        entrance = frames.into_library(outermost, jax_internals.CALLBACK_FRAMES)
    return {
        "site": stack[0] if stack else None,
        "stack": stack[1:],
        "into_library": entrance[0],
        "library": entrance[1],
        "column": shield.attempt("call_column", frames.column, above[0]) if above else None,
    }
