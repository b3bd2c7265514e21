"""Run JAX's profiler during some steps (``--profile steps=10:12``), and log how long each instruction took.

The profile itself stays in the run directory for xprof. It begins and ends between two steps, when all live
arrays are computed: what was queued before would count as the first step's, and the end would be cut off.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jaxscope.capture import shield
from jaxscope.log import files
from jaxscope.schema.event import Event
from jaxscope.schema.profiles import InstructionTime, Profiled

FOLDER = "profile"  # in the run directory
MOST = 20_000  # instructions in the log
FOREVER = 1 << 62
DEVICE = "/device:"


class StepProfile:
    """Profile the steps from ``first`` to ``last``; ``first`` is at least 2.

    Attributes:
      began: whether the profiler was started, or failed to.
      next: the number of the step at whose end there is something to do.
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
        """Start or stop the profiler, if that is due at the end of ``step``. Return after how many steps to
        call again."""
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
        """Stop the profiler, if it runs, at the end of ``step``, and log what it measured."""
        since, self._since = self._since, None
        if since is not None:
            self.next = FOREVER
            shield.attempt("profile", self._stop, since, max(self._step, step or 0))

    def _start(self) -> None:
        import jax

        began = time.monotonic_ns()
        _wait()
        files.make_directory(self._folder, within=self._folder.parent)  # only its owner can read it
        jax.profiler.start_trace(str(self._folder))
        self._since = time.monotonic_ns()
        self._cost = self._since - began

    def _stop(self, since: int, step: int) -> None:
        import jax

        _wait()
        ended = time.monotonic_ns()
        jax.profiler.stop_trace()  # type: ignore[no-untyped-call]
        file = max(self._folder.glob("plugins/profile/*/*.xplane.pb"), default=None)
        read = shield.attempt("profile_read", _read, file) if file is not None else None
        times, devices = read or ([], None)
        self._emit(
            Profiled(
                first_step=self._step,
                last_step=step,
                seconds=(ended - since) / 1e9,
                devices=devices,
                instructions=times[:MOST],
                left_out=max(0, len(times) - MOST),
                file=None if file is None else file.relative_to(self._folder.parent).as_posix(),
                cost_seconds=(self._cost + time.monotonic_ns() - ended) / 1e9,
            )
        )


def _wait() -> None:
    """Wait until all live arrays are computed. What failed to compute raises in the program itself."""
    import jax

    for array in jax.live_arrays():  # type: ignore[no-untyped-call]
        try:
            array.block_until_ready()
        except Exception:  # it was deleted meanwhile, or its computation failed
            pass


def _read(file: Path) -> tuple[list[InstructionTime], int | None]:
    """Return how long each instruction took, the slowest first, and the number of devices.

    On a GPU the host's events of an instruction are its launch: only those of devices count there.
    """
    import jax

    with warnings.catch_warnings():  # of nanobind, about its own types
        warnings.simplefilter("ignore")
        return _sums(jax.profiler.ProfileData.from_file(str(file)))


def _sums(profile: Any) -> tuple[list[InstructionTime], int | None]:
    found: dict[bool, dict[tuple[str, int | None, str], list[int]]] = {False: {}, True: {}}
    devices: dict[bool, set[object]] = {False: set(), True: set()}
    for plane in profile.planes:
        own = plane.name.startswith(DEVICE)
        for event in (event for line in plane.lines for event in line.events):
            stats: dict[str, Any] = dict(event.stats)
            name, module = stats.get("hlo_op"), stats.get("hlo_module")
            if not isinstance(name, str) or not isinstance(module, str):
                continue
            program = stats.get("program_id")
            key = module, program if isinstance(program, int) else None, name
            sums = found[own].setdefault(key, [0, 0])
            sums[0] += 1
            sums[1] += int(event.duration_ns)
            devices[own].add(plane.name if own else stats.get("device_ordinal"))
    own = bool(found[True])
    times = [
        InstructionTime(module, name, program, count, ns)
        for (module, program, name), (count, ns) in found[own].items()
    ]
    known = devices[own] - {None}
    return sorted(times, key=lambda t: (-t.nanoseconds, t.module, t.name)), len(known) or None


def first_of(profile: StepProfile | None, others: Callable[[int], int] | None) -> Callable[[int], int] | None:
    """Return one function to call at the ends of steps for both, each only at the steps that it asked for."""
    if profile is None or others is None:
        return others if profile is None else profile.step_ended
    return _Both(profile, others).step_ended


class _Both:
    def __init__(self, profile: StepProfile, others: Callable[[int], int]) -> None:
        self._profile, self._others = profile, others
        self._due = 0

    def step_ended(self, step: int) -> int:
        after = self._profile.step_ended(step)
        if step >= self._due:
            self._due = step + self._others(step)
        return min(after, self._due - step)
