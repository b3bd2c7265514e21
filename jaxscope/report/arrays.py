"""Print and serialize snapshots of the live arrays, and what an out-of-memory error is due to."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.programs import peak_bytes
from jaxscope.model import arrays as model
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run
from jaxscope.model.sharding_audit import OfArrays
from jaxscope.present.escape import escape
from jaxscope.present.text import Places, count, function_name, size
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.shards import drawing
from jaxscope.schema.events import COMPILE, Died
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import no_memory

SHOWN = 8
MESSAGE_LINES = 20
SMALL = 0.01  # of the bytes: groups below are counted together
UNKNOWN = "?"


def as_json(run: Run) -> contract.Arrays | None:
    """Return the ``arrays`` entry; None if no snapshot was taken."""
    snapshots = model.snapshots(run)
    intents = OfArrays(run, snapshots)
    return contract.Arrays([_snapshot(run, s, intents) for s in snapshots]) if snapshots else None


def _snapshot(run: Run, s: Snapshot, intents: OfArrays) -> contract.Snapshot:
    return contract.Snapshot.copy_of(
        s,
        time_seconds=run.seconds_at(s.t_ns),
        by_device=[contract.OnDevice(d, n) for d, n in sorted(s.by_device.items())],
        memory=[contract.Allocator(m.device, m.in_use, m.peak, m.limit) for m in s.memory],
        groups=[_group(g, intents) for g in s.groups],
    )


def _group(g: Group, intents: OfArrays) -> contract.ArrayGroup:
    asked, compiled = intents.of(g)
    return contract.ArrayGroup.copy_of(
        g,
        shared=g.shared or None,
        shape=None if g.shape is None else list(g.shape),
        sharding=None if g.sharding is None else g.sharding.text,
        spec=None if g.sharding is None else g.sharding.spec,
        asked=None if asked is None else asked.text,
        compiled=None if compiled is None else compiled.text,
    )


def exhausted(run: Run, places: Places) -> Iterator[Line]:
    """Print the out-of-memory error that ended the program, its memory table and the largest live arrays."""
    last = next((s for s in reversed(model.of_main(run)) if s.error is not None), None)
    died = run.main.died if run.main is not None else None
    if last is not None and last.error is not None:
        error, site = last.error, last.site
    elif died is not None and out_of_memory(died):
        error, site = died.message, died.stack[0] if died.stack else None
    else:
        return
    where = places.frame(site)
    first, *more = error.strip().splitlines() or [""]
    yield BLANK
    yield line(
        ("Out of memory", "error"),
        f"  {escape(first, 300)}",
        (f"  ({where})" if where else "", "dim"),
        hang=2,
    )
    # A compiler's own message lists the largest buffers, one per line.
    for text in more[:MESSAGE_LINES]:
        if text.strip():
            yield line((escape(text, 200), "dim"), indent=2, hang=2)
    yield from wanted(run, site)
    if last is not None:
        yield line("Live arrays at that time:", indent=2)
        yield from _groups(last, places, SHOWN)


def out_of_memory(died: Died) -> bool:
    """Return whether the program ended because memory ran out (see ``exhausted``)."""
    return no_memory(died.message)


def wanted(run: Run, site: Frame | None) -> Iterator[Line]:
    """Print the compiler's memory table of the program that ran out of memory, in bytes per device.

    That is the program compiled last at ``site``. If compiling itself failed there, the previous compilation of
    the function is shown; if nothing was compiled at ``site``, the program with the highest peak.
    """
    compiled = [
        c
        for c in run.compilations.values()
        if c.process is run.main and c.compiled is not None and c.compiled.memory is not None
    ]
    here = [c for c in compiled if c.site and site and (c.site.file, c.site.line) == (site.file, site.line)]
    failed = [
        c
        for c in run.compilations.values()
        if c.process is run.main and c.failed is not None and c.failed.phase == COMPILE
        and c.site and site and (c.site.file, c.site.line) == (site.file, site.line)
    ]  # fmt: skip
    last = max(here, key=lambda c: c.t_ns, default=None)
    broken = max(failed, key=lambda c: c.t_ns, default=None)
    which = " (compiled last at this line) needs"
    if broken is not None and (last is None or last.t_ns < broken.t_ns):
        before = [c for c in compiled if c.function is broken.function and c.t_ns < broken.t_ns]
        last = max(before, key=lambda c: c.t_ns, default=None)
        which = " was being compiled and has not run" + (
            "; its previous compilation needs" if last is not None else ""
        )
        if last is None:
            yield line((function_name(broken.function), "bold"), which, indent=2)
            return
    elif last is None:
        which = ", the largest program of the run, needs"
        last = max(compiled, key=_peak, default=None)
    found = last.compiled if last is not None else None
    if last is None or found is None or found.memory is None:
        return
    m = found.memory
    parts = [
        f"{word} {size(n)}"
        for word, n in (
            ("arguments", m.argument_bytes),
            ("results", m.output_bytes),
            ("aliased", m.alias_bytes),
            ("temporary", m.temp_bytes),
            ("code", m.code_bytes),
        )
        if n is not None
    ]
    yield line(
        (function_name(last.function), "bold"),
        f"{which} on each device: {', '.join(parts)}",
        indent=2,
        hang=2,
    )


def _peak(c: Compilation) -> int:
    memory = c.compiled.memory if c.compiled is not None else None
    return (peak_bytes(memory) or 0) if memory is not None else 0


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Print the snapshot with the most bytes, or nearly the most."""
    snapshots = model.of_main(run)
    s = model.fullest(snapshots)
    if s is None or not s.count:
        return
    when = {"exit": "at the end", "asked": "at jaxscope.snapshot()", "exhausted": "when memory ran out"}.get(
        s.why
    )
    if when is None:
        when = (
            f"after step {s.step:,}"
            if s.step
            else "before the first step"
            if s.step == 0
            else "before a compilation"
        )
    most = "the largest" if s.bytes == max(each.bytes or 0 for each in snapshots) else "nearly the largest"
    yield BLANK
    yield line(
        ("Live arrays", "title"),
        f"  {when}, {most} of {count(len(snapshots), 'snapshot')}: {count(s.count, 'array')},"
        f" {size(s.bytes)}{_devices(s)}",
        hang=4,
    )
    if s.error is None or everything:
        yield from _groups(s, places, None if everything else SHOWN)
    if everything:
        yield from _meshes(s)
    if s.cut:
        yield line(("only part of the program's objects was searched for names of arrays", "dim"), indent=2)


def _devices(s: Snapshot) -> str:
    """Return `` on 8 devices, 1.0 MiB to 1.2 MiB each``, with the fullest allocator."""
    used = {d: n for d, n in s.by_device.items() if n}
    limits = [m for m in s.memory if m.in_use is not None and m.limit]
    fullest = ""
    if limits:
        most = max(limits, key=lambda m: (m.in_use or 0) / (m.limit or 1))
        fullest = f"; device {most.device} has {size(most.in_use or 0)} of {size(most.limit or 0)} in use"
    if len(used) < 2:
        return fullest
    low, high = size(min(used.values())), size(max(used.values()))
    each = f"{low} each" if low == high else f"{low} to {high} each"
    return f" on {len(used)} devices, {each}{fullest}"


def _groups(s: Snapshot, places: Places, limit: int | None) -> Iterator[Line]:
    total = sum(g.global_bytes or 0 for g in s.groups)
    shown = [g for g in s.groups if (g.global_bytes or 0) >= SMALL * total][:limit] if limit else s.groups
    for g in shown:
        yield line(
            (
                escape(g.path, 120) if g.path is not None else "unnamed",
                "bold" if g.path is not None else "warning",
            ),
            f"  {_form(g)}",
            (f"  {_placed(g)}", "dim"),
            (f"  {places.frame(g.origin)}" if g.origin else "", "dim"),
            right=size(g.global_bytes),
            indent=2,
            hang=4,
        )
    rest = [g for g in s.groups if not any(g is one for one in shown)]
    if rest:
        left = sum(g.global_bytes or 0 for g in rest)
        yield line(
            (f"and {count(sum(g.count for g in rest), 'more array')}, {size(left)}: --all shows them", "dim"),
            indent=2,
        )
    unnamed = s.unnamed_share
    if unnamed:
        share = "less than 1 %" if unnamed < 0.01 else f"{unnamed:.0%}".replace("%", " %")
        yield line((f"unnamed: {share} of the bytes", "dim"), indent=2)


def _meshes(s: Snapshot) -> Iterator[Line]:
    """Print which device holds which slice, once per layout, for the largest array with that layout."""
    shown: set[tuple[str, str | None, int]] = set()
    for g in s.groups:
        shape = [d for d in g.shape or () if isinstance(d, int)]
        if g.sharding is None or g.path is None or len(shape) != len(g.shape or ()):
            continue
        layout = (g.sharding.text, g.sharding.devices, len(shape))
        drawn = (
            []
            if layout in shown or g.replication == len(sh.device_ids(g.sharding.devices) or ())
            else [*drawing(g.sharding, shape)]
        )
        shown.add(layout)
        if drawn:
            yield line(
                (escape(g.path, 120), "bold"),
                f"  {_form(g)}",
                (f"  {escape(g.sharding.text, 120)}", "dim"),
                indent=2,
                hang=4,
            )
            yield from drawn


def _form(g: Group) -> str:
    """Return ``float32[512,512]``, ``12x bfloat16[8]``."""
    shape = "" if g.shape is None else f"[{','.join(map(str, g.shape))}]"
    form = f"{escape(g.dtype, 40)}{shape}" if g.dtype is not None else "various"
    return form if g.count == 1 else f"{g.count:,}x {form}"


def _placed(g: Group) -> str:
    """Return ``P('data', None) on data=4,model=2, 2 copies, 12 KiB of padding``."""
    parts = [UNKNOWN if g.sharding is None else escape(g.sharding.text, 120)]
    if g.memory_kind not in (None, "device", "unpinned_host"):
        parts.append(escape(g.memory_kind, 40))
    if g.replication is not None and g.replication > 1:
        parts.append(f"{g.replication} copies")
    if g.padding_bytes:
        parts.append(f"{size(g.padding_bytes)} of padding")
    if g.shared:
        which = "" if g.shared == g.count else f"{g.shared:,} of them "
        parts.append(f"{which}sharing memory with other arrays")
    if g.shape is not None and g.layout not in (None, str(tuple(range(len(g.shape))))):
        parts.append(f"layout {escape(g.layout, 40)}")
    return ", ".join(parts)
