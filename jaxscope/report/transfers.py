"""Report copies between host and devices: the large and slow ones as lines of text, all of them as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxscope.model import transfers as model
from jaxscope.model.run import Run
from jaxscope.model.transfers import BETWEEN, TO_DEVICE, TO_HOST, Transfer
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, count, seconds, size
from jaxscope.present.transfers import is_long_wait, name, waiting
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line

SHOWN = 6
LARGE = 64 << 20  # bytes; copies of one line are shown if their sum is at least this

DIRECTIONS = {TO_HOST: "to the host", TO_DEVICE: "to devices", BETWEEN: "between devices"}
RESHARDED = "through the host, for another sharding"


def as_json(run: Run) -> list[contract.Transfer] | None:
    """Return the entry ``transfers`` of the JSON report: all copies between host and devices, or between
    devices. Return None if copies were not counted."""
    return [_entry(t) for t in model.transfers(run)] if model.counted(run) else None


def _entry(t: Transfer) -> contract.Transfer:
    function = None if t.function is None else t.function.id
    return contract.Transfer.copy_of(
        t, expression=t.text, function=function, paths=list(t.paths), pid=t.process.pid
    )


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield text about the source lines at which the main process waited long for copies or copied many
    bytes. If there are none, yield the number of copies instead, unless it is 0. ``everything`` (``--all``)
    lists all source lines that copy. ``places`` shortens file names."""
    found = [t for t in model.transfers(run) if t.process is run.main]
    shown = [t for t in found if is_long_wait(run, t.blocked_seconds or 0.0) or (t.bytes or 0) >= LARGE]
    shown = found if everything else shown[:SHOWN]
    if not shown:
        counts = "; ".join(_in_short(found))
        if counts:
            yield BLANK
            left = (". No transfer is large or slow (--all lists all transfers)", "dim")
            yield line(("Transfers", "title"), f"  {counts}", left, hang=4)
        return
    waited = sum(t.blocked_seconds or 0.0 for t in found if t.direction == TO_HOST)
    total = ["  ", *waiting(waited)] if waited else []
    yield BLANK
    yield line(("Transfers", "title"), *total, hang=4)
    for t in shown:
        caller = model.called_at(run, t)
        where = places.frame(t.source)
        if where and caller is not None:
            where += f", called at {places.frame(caller)}"
        yield line(
            (name(t), "name"),
            f"  {_facts(t)}",
            (f"  {where}" if where else "", "dim"),
            right=(seconds(t.blocked_seconds), "bold") if t.blocked_seconds else None,
            indent=2,
            hang=4,
        )
    if everything and run.platform == "cpu" and any(t.direction == TO_HOST for t in found):
        yield line(
            ("np.asarray(x) cannot be recorded on CPU: it copies nothing, and JAX does not report it", "dim"),
            indent=2,
            hang=2,
        )


def _in_short(all_transfers: Sequence[Transfer]) -> Iterator[str]:
    """Yield texts about the copies in each direction (to the host, to devices, between devices): how many
    there were, how many of them copied no bytes, and of how many functions the arguments are copied in each
    call."""
    for direction, words in DIRECTIONS.items():
        transfers = [t for t in all_transfers if t.direction == direction]
        times = sum(t.count or 0 for t in transfers)
        views = sum(t.views or 0 for t in transfers)
        called = {t.function.id for t in transfers if t.count is None and t.function is not None}
        if times and times == views:
            yield f"{count(times, 'array')} read on the host, without a copy (shared memory)"
        elif times:
            among = f", {views:,} of them without a copy (shared memory)" if views else ""
            yield f"{count(times, 'transfer')} {words}{among}"
        if called:
            of = count(len(called), "function or operation", "functions and operations")
            yield f"arguments of {of} copied {words} in each call"


def _facts(t: Transfer) -> str:
    """Return the direction, number and bytes of the copies ``t`` as text:
    ``to the host, 40x in 40 steps, 160 B``."""
    # JAX copies the array to the host, and from there to its new shards
    resharded = t.direction == TO_HOST and t.kind == "device_put"
    parts = [RESHARDED if resharded else DIRECTIONS.get(t.direction, escape(t.direction))]
    if t.count is None:
        parts.append("in each call" if t.bytes is None else f"{size(t.bytes)} in each call")
    else:
        # One call of device_get copies several arrays.
        times = (count(t.count, "array") if t.kind == "device_get" else f"{t.count:,}x") + (
            f" in {count(t.steps, 'step')}" if t.steps else ""
        )
        parts += [times] if t.bytes is None else [times, size(t.bytes)]
    if t.views:
        parts.append("no copy" if t.views == t.count else f"{t.views:,} without a copy")
    return ", ".join(parts)
