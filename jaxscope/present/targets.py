"""Write facts about a program compiled for a target (a machine given with ``--target``) as text: its state,
whether it fits, bounds of its run time."""

from __future__ import annotations

from collections.abc import Sequence

from jaxscope.analysis import machines
from jaxscope.analysis.bounds import COMPUTE, MEMORY, Bound, Bounds
from jaxscope.analysis.hlo import axes
from jaxscope.analysis.memory_fit import Fit, contributors
from jaxscope.analysis.memory_fit import of_message as fit_of_message
from jaxscope.analysis.programs import Texts
from jaxscope.log.jobs import CRASHED, EXHAUSTED, FAILED, LATE, MISSING, OK
from jaxscope.model.records import Program
from jaxscope.present.escape import escape
from jaxscope.present.spans import Span
from jaxscope.present.text import brief, count, seconds, size

STATES = {OK: "compiled", EXHAUSTED: "does not fit", "skipped": "not lowered", MISSING: "no compiler"}


def state(p: Program) -> tuple[str, str]:
    """Return the state of a program compiled for a target (a machine given with ``--target``), as text and
    its style: ``("compiled in 2.4 s", "dim")``, ``("the compiler crashed: ...", "warning")``. The text is
    empty if the program does not fit and the figures are known: then ``memory_fit`` returns the text."""
    made_ = p.target_compiled
    error = escape(" ".join((made_.error or "").split()), 400) if made_ is not None else ""
    if p.state == "skipped":
        return (
            f"not lowered: {escape(p.target_lowered.skipped or '', 400) if p.target_lowered else ''}",
            "warning",
        )
    return {
        OK: (f"compiled in {seconds(made_.seconds) if made_ else '?'}", "dim"),
        EXHAUSTED: ("", "error") if fit_of_message(None, error).used else (f"does not fit: {error}", "error"),
        FAILED: (f"not compiled{_unlisted(p)}: {error}", "warning"),
        CRASHED: (f"the compiler crashed{_unlisted(p)}: {error}", "warning"),
        LATE: (error, "warning"),
        MISSING: (error, "warning"),
        "compiling": ("compiling", "dim"),
        "abandoned": ("not compiled: the compiler's process has ended", "warning"),
    }.get(p.state, (waiting(p.waits_for), "dim"))


def waiting(behind: Sequence[int]) -> str:
    """Return what a program that is to be compiled waits for: ``waiting for the compiler`` (of its own run),
    or ``waiting for 2 compilers of other runs (processes 71, 93)``. ``behind`` are the process ids of the
    running compilers of other runs; 0 or less: unknown."""
    known = ", ".join(str(n) for n in behind if n > 0)
    others = f" (process{'es' if ',' in known else ''} {known})" if known else ""
    return (
        f"waiting for {count(len(behind), 'compiler')} of other runs{others}"
        if behind
        else "waiting for the compiler"
    )


def _unlisted(p: Program) -> str:
    """Return a possible reason why ``p`` was not compiled: no page of the vendor lists a TPU slice (a group
    of chips) of this shape; the text names similar slices that are listed. Empty if this reason does not
    apply."""
    near = machines.unlisted(p.target or "")
    return (
        f" (no page lists a slice {escape(p.target or '', 40)}; near it: {', '.join(near)})" if near else ""
    )


def bounds_besides(time_bounds: Bounds) -> str:
    """Return the lower bounds of a program's run time, without the largest one: ``memory 0.4 ms, data 3.0
    ms``. Bounds of 0 are left out. Remarks may follow: why operations are not counted, and which bounds use
    hardware figures that are not from the vendor."""
    each: list[tuple[Bound | None, float | None]] = [
        (COMPUTE, time_bounds.compute),
        (MEMORY, time_bounds.memory),
    ]
    each += time_bounds.axes.items()
    uncounted = escape(time_bounds.uncounted, 120) if time_bounds.uncounted else ""
    others = ", ".join(
        f"{bound_name(n)} {short(v)}" + (f" ({uncounted})" if uncounted and n == COMPUTE else "")
        for n, v in each
        if n != time_bounds.binds and (v is None or v > 0)
    )
    if uncounted and (time_bounds.binds == COMPUTE or time_bounds.compute == 0):
        others += f"{'; ' if others else ''}compute {uncounted}"
    if time_bounds.quoted:
        names = ", ".join(map(bound_name, time_bounds.quoted))
        others += f"{'; ' if others else ''}with rates from secondary sources: {names}"
    return others


def bound_name(bound: Bound | None) -> str:
    """Return the name of a bound: ``compute``, ``memory``, or for collectives the mesh axes, ``data,model``;
    ``?`` for None, unknown axes."""
    return escape(bound if isinstance(bound, str) else axes.text(bound), 40)


def short(value: float | None) -> str:
    """Return ``value`` seconds as text, with a unit that fits: ``4.1 ms``, ``38 us``, ``9 ns``; ``unknown``
    for None."""
    if value is None:
        return "unknown"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * scale >= 1:
            return f"{value * scale:.3g} {unit}"
    return f"{value * 1e9:.3g} ns" if value >= 1e-9 else "<1 ns" if value > 0 else "0 s"


def least(time_bounds: Bounds) -> str:
    """Return the largest lower bound of a program's run time, and which bound it is: ``4.1 ms, compute``. The
    text is empty if no bound is known."""
    return "" if time_bounds.binds is None else f"{short(time_bounds.least)}, {bound_name(time_bounds.binds)}"


def memory_fit(program_fit: Fit) -> list[Span]:
    """Return the memory that a program needs on a device, and how much a device has: ``3.2 GiB of 15.8 GiB on
    a device``, or ``does not fit: 20.3 GiB in 15.8 GiB (temporaries 12.0 GiB)``. Empty if the needed memory
    is unknown."""
    if program_fit.used is None:
        return []
    if program_fit.fits is not False:
        room = f" of {size(program_fit.capacity)}" if program_fit.capacity is not None else ""
        return [f"{size(program_fit.used)}{room} on a device"]
    parts = ", ".join(f"{name} {size(n)}" for name, n in program_fit.parts.items() if n)
    text = f"{size(program_fit.used)} in {size(program_fit.capacity)}" + (f" ({parts})" if parts else "")
    return [("does not fit: ", "error"), text]


def largest(program_fit: Fit, texts: Texts, most: int | None) -> list[list[Span]]:
    """Return lines about what takes the most memory in a program that does not fit on a device: its largest
    buffers, then its arguments and results. Empty if the program fits, or if that is unknown.

    Args:
      program_fit: whether the program fits, and its largest buffers or values.
      texts: the parsed StableHLO and HLO of the program.
      most: the number of buffers, and of arguments and results, that are listed; None: all.
    """
    if program_fit.used is None or program_fit.fits is not False:
        return []
    lines: list[list[Span]] = []
    for a in program_fit.largest[:most]:
        where = f"  {brief(a.file.rpartition('/')[2], 60)}:{a.line}" if a.file and a.line else ""
        text = f"{size(a.bytes)}  {brief(a.shape or '', 80)}  {brief(a.operation or '', 120)}"
        lines.append([text, (where, "path")])
    for c in (contributors(texts.stablehlo) or [])[:most]:
        if c.bytes:
            lines.append([f"{size(c.bytes)}  {c.of} {brief(c.path or '?', 100)}"])
    return lines


def bounds(time_bounds: Bounds) -> list[Span]:
    """Return the lower bounds of a program's run time, the largest first: ``no call takes less than 4.1 ms
    (compute); memory 0.4 ms``. At least one bound must be known."""
    others = bounds_besides(time_bounds)
    least_text = f"{short(time_bounds.least)} ({bound_name(time_bounds.binds)})"
    return [("no call takes less than ", "dim"), least_text, (f"; {others}" if others else "", "dim")]


def cycles(n: int) -> str:
    """Return ``n``, the compiler's estimate of the cycles of one call, as text:
    ``1,200 cycles estimated by the compiler, without collectives``."""
    return f"{n:,} cycles estimated by the compiler, without collectives"
