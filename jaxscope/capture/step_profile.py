"""Run JAX's profiler during some training steps (``--profile steps=10:12``), and log how long each
instruction took.

The profile itself stays in the run directory, where xprof can read it. The profiler starts and stops between
two steps, after all live arrays have been computed. Otherwise the profile would contain work that was queued
before the first step, and the end of the last step would be missing.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jaxscope.capture import shield
from jaxscope.log import files
from jaxscope.schema.event import Event
from jaxscope.schema.profiles import InstructionTime, Profiled

FOLDER = "profile"  # in the run directory
MOST = 20_000  # instructions in the log
FOREVER = 1 << 62
DEVICE = "/device:"  # how the name of a device's part of the profile begins
# How XLA names the CUDA graphs of a program, each of which launches the kernels of many instructions. The
# events of these kernels have the name of the graph as their instruction (JAX 0.11.2 on an H100).
CUDA_GRAPH = "command_buffer"


class StepProfile:
    """Runs JAX's profiler during the training steps from ``first``, at least 2, to ``last``.

    Args:
      folder: the run directory, in which the profile is stored.
      emit: is called with the event ``Profiled`` at the end.

    Attributes:
      began: whether the profiler was started, or an attempt to start it failed.
      next: the number of the step at whose end the profiler is started or stopped next.
    """

    def __init__(self, folder: Path, first: int, last: int, emit: Callable[[Event], None]) -> None:
        self._folder = folder / FOLDER
        self.first, self._last = first, last
        self.began = False
        self._emit = emit
        self._since: int | None = None  # monotonic ns
        self._cost = 0
        self._step = first
        self.next = first - 1

    def step_ended(self, step: int) -> int:
        """Start or stop the profiler, if this is due at the end of the training step number ``step``. Return
        after how many more steps this method is to be called again."""
        if step >= self.next:
            if not self.began and step < self._last:
                self.began = True
                self._step, self.next = step + 1, self._last
                shield.attempt("profile", self._start)
            else:
                self.next = FOREVER
                self.stop(step)
        return self.next - step

    def stop(self, step: int | None) -> None:
        """Stop the profiler, if it runs, and log how long each instruction took. ``step`` is the last step in
        the profile; None: unknown."""
        since, self._since = self._since, None
        if since is not None:
            self.next = FOREVER
            shield.attempt("profile", self._stop, since, max(self._step, step or 0))

    def _start(self) -> None:
        """Wait until all live arrays are computed, then start JAX's profiler."""
        import jax

        began = time.monotonic_ns()
        _wait()
        files.make_directory(self._folder, within=self._folder.parent)  # only its owner can read it
        jax.profiler.start_trace(str(self._folder))
        self._since = time.monotonic_ns()
        self._cost = self._since - began

    def _stop(self, since: int, step: int) -> None:
        """Stop the profiler and log the event ``Profiled``. The profiler was started at ``since`` (ns of the
        monotonic clock); ``step`` is the last step in the profile."""
        import jax

        _wait()
        ended = time.monotonic_ns()
        jax.profiler.stop_trace()  # type: ignore[no-untyped-call]
        file = max(self._folder.glob("plugins/profile/*/*.xplane.pb"), default=None)
        read = shield.attempt("profile_read", _read, file) if file is not None else None
        times, devices, busy = read or ([], None, None)
        self._emit(
            Profiled(
                first_step=self._step,
                last_step=step,
                seconds=(ended - since) / 1e9,
                devices=devices,
                instructions=times[:MOST],
                left_out=max(0, len(times) - MOST),
                busy_seconds=busy,
                file=None if file is None else file.relative_to(self._folder.parent).as_posix(),
                cost_seconds=(self._cost + time.monotonic_ns() - ended) / 1e9,
            )
        )


def _wait() -> None:
    """Wait until all live arrays are computed. Errors of computations are ignored: the program gets them when
    it uses the arrays."""
    import jax

    for array in jax.live_arrays():  # type: ignore[no-untyped-call]
        try:
            array.block_until_ready()
        except Exception:  # it was deleted meanwhile, or its computation failed
            pass


def _read(file: Path) -> tuple[list[InstructionTime], int | None, float | None]:
    """Add up the events of the profile in ``file``, a ``.xplane.pb`` file of JAX's profiler. Return (the time
    of each instruction, the number of devices, the seconds in which the devices ran instructions), as
    ``_sums`` does."""
    import jax

    with warnings.catch_warnings():  # of nanobind, about its own types
        warnings.simplefilter("ignore")
        return _sums(jax.profiler.ProfileData.from_file(str(file)))


def _sums(profile: Any) -> tuple[list[InstructionTime], int | None, float | None]:
    """Add up the events of ``profile``, a ``jax.profiler.ProfileData``. Return (the time of each instruction,
    added up over its runs on all devices, slowest first; the number of devices; the seconds in which the
    devices ran instructions, added up over the devices). The number and the seconds are None if unknown."""
    found: dict[bool, dict[tuple[str, int | None, str, str | None], list[int]]] = {False: {}, True: {}}
    spans: dict[bool, dict[object, list[tuple[int, int]]]] = {False: {}, True: {}}
    for plane in profile.planes:
        own = plane.name.startswith(DEVICE)
        for event in (event for line in plane.lines for event in line.events):
            stats: dict[str, Any] = dict(event.stats)
            name, module = stats.get("hlo_op"), stats.get("hlo_module")
            if not isinstance(name, str) or not isinstance(module, str):
                continue
            program = stats.get("program_id")
            kernel = event.name if own and name.startswith(CUDA_GRAPH) else None
            key = module, program if isinstance(program, int) else None, name, kernel
            sums = found[own].setdefault(key, [0, 0])
            sums[0] += 1
            sums[1] += int(event.duration_ns)
            device = plane.name if own else stats.get("device_ordinal")
            begin = int(event.start_ns)
            spans[own].setdefault(device, []).append((begin, begin + int(event.duration_ns)))
    own = bool(found[True])  # on a GPU: the host's event of an instruction is only its launch
    times = [
        InstructionTime(module, name, program, count, ns, kernel)
        for (module, program, name, kernel), (count, ns) in found[own].items()
    ]
    times.sort(key=lambda t: (-t.nanoseconds, t.module, t.name, t.kernel or ""))
    if not spans[own] or None in spans[own]:
        return times, len(spans[own].keys() - {None}) or None, None
    return times, len(spans[own]), sum(map(_union, spans[own].values())) / 1e9


def _union(spans: list[tuple[int, int]]) -> int:
    """Return for how many ns at least one instruction ran. ``spans`` has (begin, end) of each instruction in
    ns, in any order. Spans may overlap."""
    total = end = 0
    for begin, until in sorted(spans):
        total += max(0, until - max(begin, end))
        end = max(end, until)
    return total


def combined(*functions: Callable[[int], int] | None) -> Callable[[int], int] | None:
    """Return one function that calls each of ``functions`` when it is due. A None among ``functions`` is
    ignored; return None if all are None.

    Each of ``functions``, and also the returned function, is called with the number of a training step that
    has ended. It returns after how many more steps it is to be called again.
    """
    each = [ended for ended in functions if ended is not None]
    return _Several(each).step_ended if len(each) > 1 else next(iter(each), None)


class _Several:
    """Calls several functions (``each``) at the ends of training steps, each when it is due. Each function
    takes the number of the step, and returns after how many more steps it is to be called again."""

    def __init__(self, each: Sequence[Callable[[int], int]]) -> None:
        self._due = dict.fromkeys(each, 0)

    def step_ended(self, step: int) -> int:
        """Call those functions that are due at the end of the step number ``step``. Return after how many
        more steps the next function is due."""
        for ended, due in self._due.items():
            if step >= due:
                self._due[ended] = step + ended(step)
        return min(self._due.values()) - step
