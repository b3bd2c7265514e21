"""What crossed between host and devices, in a report: the lines worth saying, and all of them as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxscope.model import transfers as model
from jaxscope.model.run import Run
from jaxscope.model.transfers import BETWEEN, TO_DEVICE, TO_HOST, Transfer
from jaxscope.present.figures import count, seconds, size
from jaxscope.report import contract
from jaxscope.report.escape import escape
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.phrases import Places, function_name

SHOWN = 6
LONG_S, LONG_SHARE = 0.05, 0.01  # waiting that is worth a word, of the run
LARGE = 64 << 20  # bytes in all

WAYS = {TO_HOST: "to the host", TO_DEVICE: "to devices", BETWEEN: "between devices"}


def as_json(run: Run) -> list[contract.Transfer] | None:
    """The ``transfers`` entry; None where nobody counted."""
    return [_entry(t) for t in model.transfers(run)] if model.counted(run) else None


def _entry(t: Transfer) -> contract.Transfer:
    function = None if t.function is None else t.function.id
    return contract.Transfer.copy_of(
        t, expression=t.text, function=function, paths=list(t.paths), pid=t.process.pid
    )


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """The lines at which the program waited longest, or moved most; one line in all where neither was much."""
    found = [t for t in model.transfers(run) if t.process is run.main]
    limit = min(LONG_S, LONG_SHARE * (run.seconds or 0.0))
    shown = [t for t in found if (t.blocked_seconds or 0.0) > limit or (t.bytes or 0) >= LARGE]
    shown = found if everything else shown[:SHOWN]
    if not shown:
        said = "; ".join(_in_short(found))
        if said:
            yield BLANK
            left = ("; none large or waited for long: --all shows them", "dim")
            yield line(("Transfers", "underline"), f"  {said}", left, hang=4)
        return
    waited = sum(t.blocked_seconds or 0.0 for t in found if t.direction == TO_HOST)
    said = f"  the program stood waiting {seconds(waited)} for values from the devices" if waited else ""
    yield BLANK
    yield line(("Transfers", "underline"), said, hang=4)
    for t in shown:
        where = places.frame(t.source)
        yield line(
            (escape(t.text or _kind(t), 80), "bold"),
            f"  {_facts(t)}",
            (f"  {where}" if where else "", "dim"),
            right=(seconds(t.blocked_seconds), "bold") if t.blocked_seconds else None,
            indent=2,
            hang=4,
        )
    if run.platform == "cpu" and any(t.direction == TO_HOST for t in found):
        yield line(
            ("on CPU np.asarray(x) is a view that nobody announces: not among them", "dim"), indent=2, hang=2
        )


def _in_short(found: Sequence[Transfer]) -> Iterator[str]:
    """A clause a direction: how often, as far as that was counted."""
    for way, words in WAYS.items():
        mine = [t for t in found if t.direction == way]
        times = sum(t.count or 0 for t in mine)
        views = sum(t.views or 0 for t in mine)
        called = {t.function.id for t in mine if t.count is None and t.function is not None}
        if times and times == views:
            yield f"{count(times, 'view')} {words}, no copies"
        elif times:
            among = f", {count(views, 'view')} among them" if views else ""
            yield f"{count(times, 'copy', 'copies')} {words}{among}"
        if called:
            yield f"arguments {words} in each call of {count(len(called), 'function')}"


def _kind(t: Transfer) -> str:
    if t.function is not None:
        paths = ", ".join(t.paths[:3]) + (", ..." if len(t.paths) > 3 else "")
        return f"{paths} of {function_name(t.function)}"
    return t.kind


def _facts(t: Transfer) -> str:
    parts = [WAYS.get(t.direction, escape(t.direction))]
    if t.count is None:
        parts.append("in each call" if t.bytes is None else f"{size(t.bytes)} in each call")
    else:
        # One call of device_get copies many.
        times = (count(t.count, "array") if t.kind == "device_get" else f"{t.count:,}x") + (
            f" in {count(t.steps, 'step')}" if t.steps else ""
        )
        parts += [times] if t.bytes is None else [times, size(t.bytes)]
    if t.views:
        parts.append("views, no copies" if t.views == t.count else f"{count(t.views, 'view')} among them")
    return ", ".join(parts)
