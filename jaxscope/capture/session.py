"""Start and stop the recording of this process; there is at most one at a time.

A Session owns the writer of the log and the probe, which listens to JAX. This module also handles the exit of
the program, forks, and the environment variables that ``jaxscope run`` sets.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec

from jaxscope import jax_internals
from jaxscope.capture import announce, frames, last_exception, notebook_cells, redaction, shield
from jaxscope.capture.calls import functions
from jaxscope.capture.closures.monitor import Guard
from jaxscope.capture.line_times import LineTimer
from jaxscope.capture.notebook_cells import CellNames
from jaxscope.capture.probe import Probe
from jaxscope.capture.rank import Rank
from jaxscope.capture.redaction import Redaction
from jaxscope.capture.retarget import Retarget
from jaxscope.capture.sampler import Sampler
from jaxscope.capture.step_profile import StepProfile, combined
from jaxscope.capture.steps import step_function
from jaxscope.capture.steps.step_function import StepFunction
from jaxscope.capture.steps.times import StepTimes
from jaxscope.capture.steps.tracker import Counter, StepTracker
from jaxscope.capture.transfers.by_line import Transfers
from jaxscope.capture.transfers.device_to_host import HostCopies
from jaxscope.capture.transfers.host_to_device import DevicePuts, StagedArrays
from jaxscope.log import secret_values
from jaxscope.log.store import RunDir
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.targets import Target

RUN_VARIABLE = "JAXSCOPE_RUN"
OPTIONS_VARIABLE = "JAXSCOPE_OPTIONS"


class Options(msgspec.Struct, frozen=True, rename="kebab"):
    """The options of a recording, named as on the command line.

    Attributes:
      ir: which texts of the user's programs are stored: none, stats, stablehlo, hlo or all.
      wrapper_libraries: further packages that are treated as libraries around JAX, like flax.
      step_function: the name of the function whose calls are counted as training steps; None: not given.
      arrays: whether snapshots of the live arrays are taken.
      transfers: whether copies between host and devices are recorded.
      line_times: whether the stack of the main thread is sampled, to measure the time of each line.
      redact: whether values, source lines and paths outside the project are removed from the recording.
      passing: ``block`` for the temporary recording of a block of the program, ``suite`` for that of a suite
        of tests. A recording of a suite ends when ``jaxscope.record()`` starts a recording. None: the
        recording is not temporary.
      targets: the accelerators for which each program of the user is lowered again.
      forced_devices: number of CPU devices that jaxscope set in the environment for the targets; None: not
        set.
      dry_run: whether the program ends as soon as the function whose calls are the steps was lowered for all
        targets.
      compare_ranks: whether, in a job with several processes (ranks), it is recorded where the main thread
        waits, and the programs of the processes are compared.
      ranks_patience: after how many seconds without progress the waiting ranks are named.
      stop_on_divergence: whether each rank waits after a compilation until all ranks of the job have compiled
        the program.
      profile: (first step, last step) during which JAX's profiler runs; None: it does not run.
    """

    ir: str = "all"
    wrapper_libraries: list[str] = []
    step_function: str | None = None
    arrays: bool = True
    transfers: bool = True
    line_times: bool = True
    redact: bool = False
    passing: str | None = None
    targets: list[Target] = []
    forced_devices: int | None = None
    dry_run: bool = False
    compare_ranks: bool = True
    ranks_patience: float = 30.0
    stop_on_divergence: bool = False
    profile: tuple[int, int] | None = None


class Session:
    """A recording of this process to the directory ``run``. It owns the writer of the log and all parts that
    observe JAX.

    Args:
      how: what began the recording: ``run`` (``jaxscope run``), ``env`` (an environment variable) or
        ``record`` (the program itself).
    """

    def __init__(self, run: RunDir, how: str, options: Options) -> None:
        self.run = run
        self.options = options
        # If there is a log already, this process was started by one that is recorded.
        self._how = "child" if how == "run" and run.logs() else how
        frames.configure(options.wrapper_libraries)
        self.writer = Writer(run, self._first, of_program=True)
        if (shell := shield.attempt("cells", notebook_cells.shell)) is not None:
            self.writer.filters.append(CellNames(shell))
        if options.redact:
            self.writer.filters.append(Redaction(redaction.project(sys.argv[0] if sys.argv else "")))
        shield.reset(self._degraded)
        self.probe = Probe(self.writer, options.ir)
        self.tracker = StepTracker(
            self.writer,
            self.probe.buffer_lifetimes,
            lambda: self.probe.look("next_call"),
            self._step_ended,
            transfers=options.transfers,
        )
        self.probe.tracker = self.probe.monitor.tracker = self.tracker
        self.sampler: Sampler | None = None
        if options.arrays:
            self.sampler = self.probe.sampler = Sampler(self.writer.emit, lambda: self.tracker.current)
        self.profile: StepProfile | None = None
        if options.profile is not None and self._how != "child":
            self.profile = StepProfile(run.path, *options.profile, self.writer.emit)
        self.transfers: Transfers | None = None
        self._copies: tuple[HostCopies, StagedArrays] | None = None
        if options.transfers:
            self.transfers, self._copies = self._count_transfers()
        self.line_times: LineTimer | None = None
        if options.line_times:
            self.line_times = self.probe.line_times = LineTimer(self._line_times, look=self._look)
        self.tracker.after_step = combined(
            StepTimes(self.tracker, self.transfers).step_ended if self._how != "child" else None,
            self.profile.step_ended if self.profile is not None else None,
            self.sampler.step_ended if self.sampler is not None else None,
            self.line_times.step_ended if self.line_times is not None else None,
        )
        self._died = False  # whether the exception that ends the program is in the log
        self.rank: Rank | None = self._compare_ranks() if options.compare_ranks else None
        self._unhook: Callable[[], None] | None = None
        # Returns the exit handler that `_watch_for_the_end` registered; None: none is registered.
        self._handler: Callable[[], object] = lambda: None
        if options.targets:
            ends_at = self._is_step if options.dry_run else None
            self.probe.phases.retarget = Retarget(self.writer, options.targets, ends_at)

    def _count_transfers(self) -> tuple[Transfers, tuple[HostCopies, StagedArrays]]:
        """Create the objects that record copies between host and devices. Return (the object that adds up the
        copies by line, (the object that counts copies to the host, the object that counts copies by
        ``jnp.asarray``))."""
        transfers = Transfers(self.writer.emit, lambda: self.tracker.current, lambda: self.tracker.marked)
        transfers.after = self.sampler.at_transfer if self.sampler is not None else None
        self.probe.puts = DevicePuts(transfers)
        # JAX sends no event for the copies that the last two objects count.
        return transfers, (HostCopies(transfers), StagedArrays(transfers, lambda: self.probe.callbacks))

    def _compare_ranks(self) -> Rank:
        """Return a new ``Rank``, which compares the programs of this process with those of the other
        processes of the job. It does nothing until the number of processes is known
        (``_several_processes``)."""
        rank = self.probe.phases.rank = Rank(
            self.run,
            self.writer,
            self.options.ranks_patience,
            holds=self.options.stop_on_divergence,
            degraded=self._degraded,
        )
        self.probe.introductions.on_job = self._several_processes
        return rank

    def begin(self) -> None:
        """Begin the recording: write the first event to the log, register the listeners with JAX, and start
        the parts that observe copies, steps and lines."""
        if self._how == "child":
            self.tracker.beside(self.run)
        self.writer.open()
        import jax

        warning = jax_internals.untested(jax.__version__)
        if warning is not None:
            self._degraded("jax_version", warning)
        for status in jax_internals.table():
            if not status.available:
                shield.switch_off(status.name, status.reason or "")
        if self.options.targets:
            wanted, forced = self.options.targets, self.options.forced_devices
            self.writer.emit(ev.TargetsWanted(targets=wanted, forced=forced))
        self.probe.install()
        if self._copies is not None:
            shield.attempt("host_copies", self._copies[0].install)
            shield.attempt("staged_arrays", self._copies[1].install)
        if self.options.step_function:
            self._unhook = shield.attempt("post_hook", self._count_steps, self.options.step_function)
        if shield.attempt("line_times", jax_internals.clients):
            self._backend_seen()
        else:
            self.probe.introductions.on_backend = self._backend_seen
            if self.line_times is not None:
                shield.attempt("line_times", functools.partial(self.line_times.start, setup=True))
        # Exit handlers run in the reverse order of their registration. JAX registered the one that releases
        # its backends when it was imported, so it runs after this one. The recording may end later still.
        atexit.register(self._leaving)

    def _look(self, frame: FrameType) -> float | None:
        """Take a snapshot of the live arrays, if one is due. The search for variables starts at ``frame``.
        Return after how many seconds to call this again; None: no snapshots are taken."""
        return self.sampler.at_sample(frame) if self.sampler is not None else None

    def _several_processes(self, index: int, count: int) -> None:
        """Start to compare this process (number ``index`` of ``count``) with the other processes of the job.
        Called when JAX's backend has devices of several processes."""
        if self.rank is not None:
            shield.attempt("rank", self.rank.begin, index, count)

    def _backend_seen(self) -> None:
        """Begin to sample the lines of the main thread for the time in which JAX has a backend; the samples
        taken before are kept apart. Called when JAX's backend exists."""
        if self.line_times is not None:
            shield.attempt("line_times", self.line_times.start)

    def _leave_job(self) -> None:
        """Stop comparing this process with the other processes of the job, if this has begun."""
        rank, self.rank, self.probe.phases.rank = self.rank, None, None
        if rank is not None:
            shield.attempt("rank", rank.leave)

    def _leaving(self) -> None:
        """Finish all that needs JAX's backends: the profile, the memory figures, the last snapshot of arrays.
        This exit handler runs before JAX releases its backends. Do nothing if the program continues although
        it has called its exit handlers (``_goes_on``)."""
        if current() is self and not _goes_on():
            self._leave_job()
            self._write_uncaught()  # JAX's exit may wait for other processes until this one is killed
            self._end_profile()
            self.probe.phases.memory.wait()
            self._last_look(leaving=True)

    def rest(self) -> None:
        """Write the counts and the event ``RunEnded`` to the log, but do not close the log. This is called
        when the program itself runs its exit handlers, perhaps long before it ends. Later events of the
        program follow ``RunEnded`` in the log."""
        self._flush()
        self.writer.emit(ev.RunEnded(how="exit"))
        self.writer.before = self._watch_for_the_end

    def _watch_for_the_end(self) -> None:
        """Register an exit handler for the real end of the program, unless one is registered. Called before
        each event that is logged after ``rest``."""
        # After Python has run the exit handlers, it removes all of them, also those registered meanwhile.
        if self._handler() is None:

            def leave() -> None:
                self._leaving()
                stop("exit")

            atexit.register(leave)
            self._handler = weakref.ref(leave)

    def _end_profile(self) -> None:
        """Stop JAX's profiler (``--profile``), if it runs. If the recording ends before the first step to be
        profiled, log an event ``Degraded``."""
        profile, self.profile = self.profile, None
        if profile is not None:
            profile.stop(self.tracker.current)
            if not profile.began:
                self._degraded("profile", f"the program ended before step {profile.first}")

    def _last_look(self, *, leaving: bool) -> None:
        """Take the last snapshot of the live arrays, unless it was taken already. ``leaving`` is whether the
        program ends too, so that an uncaught exception is examined. No snapshots are taken afterwards."""
        sampler, self.sampler = self.sampler, None
        if self.transfers is not None:
            self.transfers.after = None
        if sampler is not None:
            sampler.ended(sys._getframe(1), leaving=leaving)

    def end(self, how: str) -> None:
        """End the recording: remove the listeners, log the last counts and results, and close the log.
        ``how`` is why the recording ends: ``exit`` (the program ends) or ``stop``."""
        atexit.unregister(self._leaving)
        self._leave_job()
        self.probe.remove()
        if self._copies is not None:
            for copies in self._copies:
                shield.attempt("host_copies_end", copies.remove)
        self.tracker.after_step = None
        if self.line_times is not None:
            self.line_times.stop()
        self._end_profile()
        self._last_look(leaving=how == "exit")
        if self._unhook is not None:
            shield.attempt("post_hook", self._unhook)
        if self.probe.stepping is not None:
            self.probe.stepping.ended()
        self.writer.before = None
        self._flush()
        self.probe.look("exit")
        retarget = self.probe.phases.retarget
        if self.options.dry_run and retarget is not None and not retarget.ended:
            reason = (
                "no step was compiled, the program ran to its end: name its function with --step-function"
            )
            self._degraded("dry_run", reason)
        if how == "exit":
            self._write_uncaught()
        self.writer.emit(ev.RunEnded(how=how))
        self.writer.close()

    def _write_uncaught(self) -> None:
        """Log the event ``Died`` for the uncaught exception that ends the program, if there is one. It is
        logged only once."""
        died = None if self._died else shield.attempt("uncaught", last_exception.uncaught)
        if died is not None:
            self._died = True
            files = [frame.file for frame in died.stack]
            shield.attempt("sources", self.probe.introductions.sources, files)
            self.writer.emit(died)

    def _flush(self) -> None:
        """Wait until threads have read the memory figures of all programs, then write all counts to the
        log."""
        self.probe.phases.memory.wait()
        self.tracker.flush()
        self.probe.flush()
        if self.transfers is not None:
            shield.attempt("transfers", self.transfers.flush)

    def _is_step(self, function: str) -> bool:
        """Return whether ``function``, the id of a function, is the function whose calls are the training
        steps."""
        stepper = self.tracker.stepper
        return stepper is not None and stepper.function == function

    def forked(self) -> None:
        """Continue the recording in a forked child, with a log of its own and with counts that start at 0.
        The child has no profile, no times of lines and no comparison of processes. It takes no snapshots of
        the live arrays if JAX had started a backend in the parent."""
        self.rank = self.probe.phases.rank = None  # threads of the parent do not exist here
        self.profile = None  # the profiler runs in the parent
        self.tracker.after_step = self.sampler.step_ended if self.sampler is not None else None
        self.tracker.forked()
        self.tracker.beside(self.run)
        self.writer.forked()
        self.probe.forked()
        if self.line_times is not None:
            self.line_times.forked()
        if self.transfers is not None:
            self.transfers.forked()
            self.probe.puts = DevicePuts(self.transfers)
        if self.sampler is not None and jax_internals.clients():
            # A thread of the parent, which does not exist here, may hold the lock of its backend forever.
            self.sampler = self.probe.sampler = self.tracker.after_step = None
            if self.transfers is not None:
                self.transfers.after = None
        elif self.sampler is not None:
            self.sampler.forked()

    def snapshot(self) -> None:
        """Take a snapshot of the live arrays now. Do nothing if this recording takes no snapshots."""
        if self.sampler is not None:
            self.sampler.now(sys._getframe())

    def compile_for(self, target: Target, traced: Any) -> str | None:
        """Lower ``traced``, the result of ``f.trace``, for ``target``, another accelerator, and put the
        program into the queue of the target's compiler. Return the id of the program; None if the program
        cannot be lowered for the target or cannot run on it.

        Raises:
          OSError: the queue cannot be written.
        """
        call = self.probe.call_of(traced.jaxpr)
        token = object()
        try:
            shield.enter(token)  # events of this lowering are not the program's
            retarget = Retarget(self.writer, [target])
            platforms = (target.platform,)
            return retarget.computed(
                call, target, traced.jaxpr, lambda: traced.lower(lowering_platforms=platforms)
            )
        finally:
            shield.leave(token)

    def watch(self, function: Any, step: bool) -> tuple[Counter | None, Guard | None]:
        """Begin to count the calls of ``function``, an object wrapped by ``jaxscope.watch``, and to check the
        values that it captures. Return (the counter of its calls, the Guard that checks the values); each is
        None if it could not be set up. ``step`` is whether each call is a training step."""
        counter = shield.attempt("watch", self._watch, function, step)
        if counter is None:
            return None, None
        return counter, shield.attempt("stale_captures", self.probe.monitor.guard, function, counter)

    def _watch(self, function: Any, step: bool) -> Counter:
        """Log the event that describes ``function``, unless this was done before, and return the counter of
        its calls. ``step`` is whether each call is a training step."""
        seen = self.probe.introductions.introduce(functions.describe(jax_internals.given_to_jit(function)))
        return self.tracker.watch(seen.function, step)

    def _step_ended(self) -> None:
        """At the end of a training step, check whether the values that watched functions (``jaxscope.watch``)
        read from outside (closures, globals) were changed."""
        shield.attempt("stale_captures", self.probe.monitor.step_ended)

    def _count_steps(self, name: str) -> Callable[[], None]:
        """Count the calls of the function ``name`` as training steps (``--step-function``). Return a function
        that ends the counting."""
        counted = self.probe.stepping = StepFunction(name, self.tracker, self.probe.introductions)
        unhook = jax_internals.on_fast_path(counted.called)
        unlisten: Callable[[], None] | None = None
        if step_function.MONITORS:
            unlisten = shield.attempt("step_function", step_function.listen, counted.began)

        def undo() -> None:
            unhook()
            if unlisten is not None:
                unlisten()

        return undo

    def _first(self, forked: bool) -> ev.Event:
        """Return ``RunStarted``, the first event of the log. ``forked`` is whether this process is a forked
        child of a recorded process."""
        import jax
        import jaxlib

        from jaxscope import __version__

        return ev.RunStarted(
            name=self.run.path.name,
            how="fork" if forked else self._how,
            argv=secret_values.words([str(a) for a in getattr(sys, "orig_argv", sys.argv)]),
            cwd=str(redaction.cwd() or ""),
            python=sys.version.split()[0],
            jax=jax.__version__,
            jaxlib=getattr(jaxlib, "__version__", None),
            jaxscope=__version__,
            parent=os.getppid(),
            ir=self.options.ir,
            transfers=self.options.transfers,
            steps=self.tracker.before or None,
        )

    def _line_times(self, event: ev.LineTimes) -> None:
        """Log ``event``, the times of lines. Before it, log the checksums of the source files of these
        lines."""
        self.probe.introductions.sources(
            {frame.file for entry in (*event.lines, *event.setup) for frame in (*entry.stack, *entry.traced)}
        )
        self.writer.emit(event)

    def _degraded(self, name: str, reason: str) -> None:
        """Log an event ``Degraded``: the part ``name`` of the recording is not available, or only in part,
        for the given ``reason``."""
        self.writer.emit(ev.Degraded(seam=name, reason=reason))


def _goes_on() -> bool:
    """Return whether the program continues after the exit handlers that run now. This is the case if the
    program called ``atexit._run_exitfuncs()`` itself."""
    # At a real exit, Python has marked the main thread as ended before it runs the exit handlers.
    return threading.main_thread().is_alive()


_lock = threading.Lock()


def _forked() -> None:
    """Continue the recording in a forked child; called by Python after each fork."""
    global _lock
    _lock = threading.Lock()  # a thread of the parent may have held it
    session = current()
    if session is not None:
        session.forked()
        multiprocessing = sys.modules.get("multiprocessing.util")
        if multiprocessing is not None:
            # Children of multiprocessing end by os._exit, without atexit, but run finalizers that were made
            # after the fork.
            multiprocessing.register_after_fork(
                session, lambda s: multiprocessing.Finalize(None, stop, ("exit", True), exitpriority=0)
            )


def _before_fork() -> None:
    """End the sampling of lines that began before JAX had a backend, because Python warns when a process with
    several threads forks. Called by Python before each fork."""
    session = current()
    if session is not None and session.line_times is not None:
        shield.attempt("line_times", session.line_times.end_setup)


os.register_at_fork(before=_before_fork, after_in_child=_forked)  # once: such a hook cannot be removed


def current() -> Session | None:
    """Return the recording of this process; None if there is none."""
    session: Session | None = announce.current
    return session


def start(run: RunDir, *, how: str, options: Options | None = None) -> Session:
    """Begin a recording to the directory ``run``, and return it. If a recording is in progress already, begin
    none and return the one in progress. This imports jax.

    Args:
      how: what begins the recording: ``run`` (``jaxscope run``), ``env`` (an environment variable) or
        ``record`` (the program itself).
      options: None means the default options.
    """
    import jax  # noqa: F401  before the lock: a thread that imports jax has jax's import lock in our hook

    with _lock:
        active = current()
        if active is not None:
            return active
        session = Session(run, how, options or Options())
        session.begin()
        atexit.register(stop, "exit")
        announce.notify(session)
    return session


def stop(how: str = "stop", certain: bool = False) -> None:
    """End the recording of this process, if there is one.

    A program may run its exit handlers long before its end (``atexit._run_exitfuncs()``). Then the counts are
    written to the log, and the recording continues.

    Args:
      how: why the recording ends: ``exit`` (the program ends) or ``stop``.
      certain: whether it is certain that the process ends now. If not, this is checked for ``exit``.
    """
    with _lock:
        session = current()
        if session is None:
            return
        if how == "exit" and not certain and _goes_on():
            session.rest()
            return
        shield.attempt("stale_captures", session.probe.monitor.exit)  # before watched functions are detached
        announce.notify(None)
    session.end(how)
    if how != "exit":
        atexit.unregister(stop)


def start_from_environment(how: str = "run") -> Session | None:
    """Begin and return the recording that ``jaxscope run`` requests by environment variables. Return None if
    they request none. If the options in them cannot be read, say so on stderr and use the default options.
    ``how`` is what begins the recording: ``run`` (``jaxscope run``) or ``env`` (an environment variable)."""
    where = os.environ.get(RUN_VARIABLE)
    if not where:
        return None
    try:
        options = msgspec.convert(json.loads(os.environ.get(OPTIONS_VARIABLE) or "{}"), Options, strict=False)
    except (ValueError, msgspec.MsgspecError) as e:
        sys.stderr.write(f"jaxscope: {OPTIONS_VARIABLE} cannot be read ({e}); the defaults are used\n")
        options = Options()
    return start(RunDir(where), how=how, options=options)
