"""List the transfers (copies of arrays) between host and devices by the user's line.

Most transfers are recorded. But JAX sends no event if a call of a jitted function on one device copies NumPy
arguments, or arrays of another device, to that device. For these transfers, the bytes are computed here from
the cache key of the call, and the number from the number of calls, if that is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.analysis.sums import known_sum
from jaxscope.model import sources
from jaxscope.model.intervals import MOST_SECONDS
from jaxscope.model.records import Compilation, Function, Process, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.events import Transferred
from jaxscope.schema.keys import Frame, Leaf, table_entry
from jaxscope.schema.transfers import BETWEEN as BETWEEN
from jaxscope.schema.transfers import TO_DEVICE as TO_DEVICE
from jaxscope.schema.transfers import TO_HOST as TO_HOST

ARGUMENT = "argument"
# Kinds of transfers that no expression of the user requests: constants and arguments of a program, and the
# option jax_debug_nans.
NOT_ASKED = ("constant", "debug_nans", ARGUMENT)


class Transfer(msgspec.Struct, frozen=True):
    """All transfers of one direction and kind that one line of the user, or the same arguments of one jitted
    function, caused in one process. A field that is None is unknown.

    Attributes:
      direction: TO_HOST, TO_DEVICE or BETWEEN (devices).
      kind: the function that caused the transfers (``float``, ``np.asarray``, ``device_put``), or ARGUMENT
        for arguments of a jitted call.
      source: the user's line; for ARGUMENT, that of the first recorded call.
      text: the expression in the source.
      count: number of transfers; None: not counted.
      bytes: bytes of all these transfers, or of one call's transfers if ``count`` is None. None: unknown.
      views: number of transfers that copied nothing, because host and device share the memory.
      waits: number of transfers that took longer than 0.1 ms.
      blocked_seconds: seconds that the program was blocked in all these transfers.
      first_seconds: the part of ``blocked_seconds`` in the first transfer, which ended at ``first_ns``; 0 if
        unknown.
      steps, first_step, last_step: number of steps with such a transfer, the first and the last such step.
      close_waits: number of the transfers in ``waits`` that took more than a fifth of the time since the
        previous transfer.
      checks: number of the transfers in ``waits`` after which jaxscope checked whether the device still had
        work.
      ahead: number of these checks that found work: the program had queued later work before it waited.
      caller: the user's line that called the function of ``source``; None: several lines, or unknown.
      above: the user's lines that led to the call of the function of ``caller``, innermost first, as far as
        they are the same for all transfers; at most two.
      first_ns, last_ns: time of the first and of the last transfer, in nanoseconds since the epoch; for
        ARGUMENT, of the recorded calls.
      function, paths: for arguments of a jitted call, the function and the paths of the arguments.
    """

    process: Process
    direction: str
    kind: str
    source: Frame | None
    text: str | None = None
    count: int | None = None
    bytes: int | None = None
    views: int | None = None
    waits: int | None = None
    blocked_seconds: float | None = None
    first_seconds: float = 0.0
    steps: int | None = None
    first_step: int | None = None
    last_step: int | None = None
    close_waits: int = 0
    checks: int = 0
    ahead: int = 0
    caller: Frame | None = None
    above: tuple[Frame, ...] = ()
    first_ns: int = 0
    last_ns: int = 0
    function: Function | None = None
    paths: tuple[str, ...] = ()

    @property
    def bytes_each(self) -> float | None:
        """Return the mean bytes of one transfer; if ``count`` is None, ``bytes``. None if unknown."""
        if self.bytes is None or self.count is None:
            return self.bytes
        return self.bytes / self.count if self.count else None

    @property
    def share(self) -> float | None:
        """Return the fraction of ``span`` (the time from the first to the last transfer) in which the program
        was blocked. None if unknown, or if ``span`` is 0."""
        if self.blocked_since is None or self.span <= 0:
            return None
        return min(1.0, self.blocked_since / self.span)

    @property
    def span(self) -> float:
        """Return the seconds from the end of the first transfer to the end of the last one."""
        return (self.last_ns - self.first_ns) / 1e9

    @property
    def blocked_since(self) -> float | None:
        """Return the seconds that the program was blocked, without those of the first transfer. None if
        unknown."""
        return None if self.blocked_seconds is None else max(0.0, self.blocked_seconds - self.first_seconds)


def counted(run: Run) -> bool:
    """Return whether transfers were recorded in this run."""
    return any(p.started is not None and p.started.transfers for p in run.processes.values())


def transfers(run: Run) -> list[Transfer]:
    """Return all transfers (copies between host and devices) of the run. Transfers that blocked the program
    longest come first. Empty if transfers were not recorded."""
    if not counted(run):
        return []
    found = [_seen(p, e, key) for p in run.processes.values() for key, e in p.transfers.items()]
    for f in run.functions.values():
        found += _by_calls(f)
    return sorted(
        found,
        key=lambda t: (
            -(t.blocked_seconds or 0.0),
            -(t.bytes or 0),
            t.direction,
            t.kind,
            t.source.file if t.source else "",
            t.source.line if t.source else 0,
        ),
    )


def summed(members: Sequence[Transfer]) -> Transfer:
    """Return the sum of ``members``, transfers of several kinds that one line caused in one direction and one
    process, as one Transfer. Its kind and its text are those of the member that blocked the program longest.
    ``steps`` is the largest number of one member, not a sum."""
    first = max(members, key=lambda t: t.blocked_seconds or 0.0)
    if len(members) == 1:
        return first
    return msgspec.structs.replace(
        first,
        count=known_sum(t.count for t in members),
        bytes=known_sum(t.bytes for t in members),
        views=known_sum(t.views for t in members),
        waits=known_sum(t.waits for t in members),
        blocked_seconds=known_sum(t.blocked_seconds for t in members),
        first_seconds=sum(t.first_seconds for t in members),
        steps=max((t.steps for t in members if t.steps is not None), default=None),
        first_step=min((t.first_step for t in members if t.first_step is not None), default=None),
        last_step=max((t.last_step for t in members if t.last_step is not None), default=None),
        close_waits=sum(t.close_waits for t in members),
        checks=sum(t.checks for t in members),
        ahead=sum(t.ahead for t in members),
        caller=first.caller if len({t.caller for t in members}) == 1 else None,
        above=first.above if len({(t.caller, t.above) for t in members}) == 1 else (),
        first_ns=min(t.first_ns for t in members),
        last_ns=max(t.last_ns for t in members),
    )


def called_at(run: Run, t: Transfer) -> Frame | None:
    """Return the user's line that a report should show as the one from which the function of ``t.source`` was
    called, directly or through other functions. This is the innermost of ``t.caller`` and ``t.above`` that is
    in a loop; only ``t.caller`` is considered if ``t.source`` itself is in a loop. If none is in a loop,
    return ``t.caller`` if it is in another file than ``t.source``. None otherwise, or if the caller is
    unknown."""
    at, source, text = t.caller, t.source, sources.of(run)
    if at is None or source is None or at.place == source.place:
        return None
    inside = source
    for outer in (at, *t.above):
        if in_a_loop(text(outer.file), outer.line):
            return outer
        if in_a_loop(text(inside.file), inside.line):
            break
        inside = outer
    return at if at.file != source.file else None


def waits(run: Run) -> list[Transfer]:
    """Return the recorded transfers to the host that blocked the main process, one entry for each line and
    kind, the longest total first. Empty if there are none, or no main process."""
    seen = list(by_key(run.main).values()) if run.main is not None else []
    waited = [t for t in seen if t.direction == TO_HOST and t.blocked_seconds]
    return sorted(waited, key=lambda t: -(t.blocked_seconds or 0.0))


def by_key(process: Process) -> dict[tuple[str, str, str, int], Transfer]:
    """Return the recorded transfers of ``process``, by the keys (direction, kind, file, line)."""
    return {key: _seen(process, e, key) for key, e in process.transfers.items()}


def steps(run: Run, process: Process) -> int | None:
    """Return the number of training steps that ``process`` has counted so far: marks of ``jaxscope.step()``,
    or else calls of the function watched with ``step=True``, or else of the watched function that was called
    first. Return None if steps were not counted."""
    if process.step is not None:
        return process.step
    counted = [run.functions[f] for f in process.calls]  # in the order of their first calls
    if not counted:
        return None
    stepper = next((f for f in counted if f.step), counted[0])
    return stepper.counted_calls[process.id]


def _seen(process: Process, e: Transferred, key: tuple[str, str, str, int]) -> Transfer:
    """Return ``e``, the event about the transfers of one direction and kind at one line of ``process``, as a
    Transfer. ``key`` is its key in ``process.transfers``: (direction, kind, file, line)."""
    return Transfer(
        process=process,
        direction=e.direction,
        kind=e.via,
        source=e.site,
        text=e.text,
        count=e.count,
        bytes=e.bytes,
        views=e.views,
        waits=e.waits,
        blocked_seconds=e.seconds if e.seconds is not None and 0 <= e.seconds < MOST_SECONDS else None,
        first_seconds=process.first_seconds.get(key, 0.0),
        steps=e.steps,
        first_step=e.first_step,
        last_step=e.last_step,
        close_waits=e.close,
        checks=e.checks,
        ahead=e.ahead,
        caller=e.caller,
        above=tuple(e.above),
        first_ns=e.first_ns,
        last_ns=e.last_ns,
    )


class _Moved(msgspec.Struct, frozen=True):
    """The arguments that a call with a certain cache key copies to the only device of its program.

    Attributes:
      direction: TO_DEVICE (NumPy arguments) or BETWEEN (arrays of another device).
      bytes: bytes of all these arguments together.
      paths: the paths of the arguments.
    """

    direction: str
    bytes: int
    paths: tuple[str, ...]


@cached_until_changed
def _by_calls(f: Function) -> list[Transfer]:
    """Return the transfers of arguments that the calls of ``f`` on one device caused, computed from the cache
    keys of the calls. (JAX sends no event for these transfers.)"""
    found: list[Transfer] = []
    for process in {c.process.id: c.process for c in f.compilations}.values():
        calls = [c for c in f.compilations if c.process is process and c.entry == "call"]
        keyed = [(c, _moved(c)) for c in calls if c.key is not None]
        for direction in (TO_DEVICE, BETWEEN):
            found += _of_function(f, process, direction, calls, keyed)
    return found


def _of_function(
    f: Function,
    process: Process,
    direction: str,
    misses: list[Compilation],
    keyed: list[tuple[Compilation, list[_Moved]]],
) -> Iterator[Transfer]:
    """Yield the transfers of arguments of ``f`` in one process and one direction: all in one entry if the
    bytes of each call were counted, else one entry for each different set of copied arguments.

    Args:
      direction: TO_DEVICE (NumPy arguments) or BETWEEN (arrays of another device).
      misses: the calls of ``f`` in the process that missed the C++ fast path.
      keyed: (call, arguments that it copies) for each call in ``misses`` whose cache key was recorded.
    """
    first: dict[_Moved, Compilation] = {}
    moving = 0
    for c, all_moved in keyed:
        for m in all_moved:
            if m.direction == direction:
                moving += 1
                first.setdefault(m, c)
    by_bytes = f.brought.get(process.id)
    if (
        by_bytes
        and first
        and direction == TO_DEVICE
        and f.watched
        and all(len(devices_of_program(c) or ()) == 1 for c in misses)
    ):
        # The calls may pass different numbers of bytes.
        copying = sum(n for size, n in by_bytes.items() if size)
        total = sum(size * n for size, n in by_bytes.items())
        yield _argument(f, direction, list(first.items()), copying, total)
        return
    # A call with other arguments misses the fast path: if all misses have one kind, all calls have it.
    calls = f.counted_calls.get(process.id) if f.watched else None
    exact = calls is not None and len(first) == 1 and moving == len(misses)
    for m, c in first.items():
        count = calls if exact else None
        yield _argument(f, direction, [(m, c)], count, m.bytes * count if count is not None else m.bytes)


def _argument(
    f: Function, direction: str, moved: list[tuple[_Moved, Compilation]], count: int | None, total: int
) -> Transfer:
    """Return the transfers of arguments of ``f`` in a ``direction`` (TO_DEVICE or BETWEEN) as one Transfer.

    Args:
      moved: (copied arguments, the first call that copied them) for each different set of copied arguments.
      count: the number of calls; None: unknown.
      total: the bytes of all these calls, or of one call if ``count`` is None.
    """
    begun = min((c for _, c in moved), key=lambda c: c.t_ns)
    return Transfer(
        process=begun.process,
        direction=direction,
        kind=ARGUMENT,
        source=begun.site,
        count=count,
        bytes=total,
        steps=count if f.step else None,
        function=f,
        paths=tuple(dict.fromkeys(path for m, _ in moved for path in m.paths)),
        first_ns=begun.t_ns,
        last_ns=max(c.t_ns for _, c in moved),
    )


def numpy_bytes(c: Compilation) -> int | None:
    """Return the bytes of NumPy arguments that call ``c`` copies to the only device of its program; 0 if the
    program has several devices. None if unknown."""
    if c.key is None or devices_of_program(c) is None:
        return None
    return sum(m.bytes for m in _moved(c) if m.direction == TO_DEVICE)


def _moved(c: Compilation) -> list[_Moved]:
    """Return the arguments that call ``c`` copies to the device of its program, one entry for each direction.
    The list is empty if nothing is copied, if the program has several devices, or if this is unknown."""
    target = devices_of_program(c)
    if target is None or len(target) != 1 or c.key is None:
        return []
    sums: dict[str, tuple[int, list[str]]] = {}
    for leaf in arguments_read(c):
        direction = _way(c, leaf, target)
        size = aval_bytes(leaf.shape, leaf.dtype, packed=False)
        if direction is not None and size:
            total, paths = sums.setdefault(direction, (0, []))
            paths.append(leaf.path)
            sums[direction] = total + size, paths
    return [_Moved(way, total, tuple(paths)) for way, (total, paths) in sums.items()]


def arguments_read(c: Compilation) -> list[Leaf]:
    """Return the arguments of call ``c`` that its program reads. JAX does not copy the other arguments. Empty
    if the cache key of ``c`` was not recorded."""
    if c.key is None:
        return []
    if c.compiled is not None:
        dropped = set(c.compiled.dropped_arguments or ())
    else:  # the program was found in a cache
        others = [o.compiled for o in c.function.compilations if o.compiled is not None]
        dropped = {i for compiled in others for i in compiled.dropped_arguments or ()}
    return [leaf for i, leaf in enumerate(c.key.arguments) if i not in dropped]


def _way(c: Compilation, leaf: Leaf, target: tuple[int, ...]) -> str | None:
    """Return the direction in which the call ``c`` copies the argument ``leaf`` to the devices ``target``
    (ids) of its program: TO_DEVICE or BETWEEN (devices). None if the argument is not copied."""
    if leaf.type.startswith("numpy."):
        return TO_DEVICE
    here = devices_of(c, leaf)
    if leaf.type == "jax.Array" and here is not None and here != target:
        return BETWEEN
    return None


def devices_of(c: Compilation, leaf: Leaf) -> tuple[int, ...] | None:
    """Return the ids of the devices that hold ``leaf``, an argument of call ``c``. None if they are unknown,
    or if ``leaf`` is on no device, as a NumPy array is."""
    sharding = table_entry(c.key.shardings, leaf.sharding) if c.key is not None else None
    return sh.device_ids(sharding.devices) if sharding is not None else None


def devices_of_program(c: Compilation) -> tuple[int, ...] | None:
    """Return the ids of the devices of the program that the call ``c`` ran. None if unknown."""
    if c.compiled is not None:
        return sh.device_ids(c.compiled.devices)
    # The program was found in a cache. If all programs of the function run on the same devices, so does it.
    known = {
        sh.device_ids(o.compiled.devices)
        for o in c.function.compilations
        if o.compiled is not None and o.process is c.process
    }
    return next(iter(known)) if len(known) == 1 else None
