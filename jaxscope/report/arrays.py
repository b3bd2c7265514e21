"""Report live arrays, and the out-of-memory error that ended a program: as lines of text, and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from jaxscope.analysis import sharding as sh
from jaxscope.model import arrays as model
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.run import Run
from jaxscope.model.sharding_audit import OfArrays
from jaxscope.present.arrays import UNNAMED, forms, moment, placement, spread, total
from jaxscope.present.escape import escape
from jaxscope.present.failures import alive, memory_needed
from jaxscope.present.spans import Span, plain
from jaxscope.present.text import Places, count, seconds, size
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line
from jaxscope.report.shards import drawing, grid_of
from jaxscope.schema.keys import Sharding
from jaxscope.schema.libraries import no_memory

SHOWN = 8  # variables that are listed
MESSAGE_LINES = 20
LEAST = 1 << 20  # live arrays of fewer bytes together are not reported
GAP = 0.5  # if the last part of a run, this share of its time, has no snapshot, the report mentions it
SMALL = 0.01  # variables with a smaller share of the bytes are not listed one by one


def as_json(run: Run) -> contract.Arrays | None:
    """Return the entry ``arrays`` of the JSON report: all snapshots of the live arrays of ``run``, in order
    of time. Return None if no snapshot was taken."""
    snapshots = model.snapshots(run)
    intents = OfArrays(run, snapshots)
    kind = model.kind_of(run)
    return contract.Arrays([_snapshot(run, s, intents, kind) for s in snapshots]) if snapshots else None


def _snapshot(run: Run, s: Snapshot, intents: OfArrays, kind: Callable[[Group], str]) -> contract.Snapshot:
    def sums(name: Callable[[Group], str | None]) -> list[contract.ArraySum]:
        return [contract.ArraySum(m.name, m.count, m.bytes) for m in model.sums(s, name)]

    return contract.Snapshot.copy_of(
        s,
        time_seconds=run.seconds_at(s.t_ns),
        by_device=[contract.OnDevice(d, n) for d, n in sorted(s.by_device.items())],
        memory=[contract.Allocator(m.device, m.in_use, m.peak, m.limit) for m in s.memory],
        groups=[_group(g, intents) for g in s.groups],
        trees=sums(model.tree_of),
        kinds=sums(kind),
        dtypes=sums(lambda g: g.dtype),
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
    """Yield lines about the out-of-memory error of the program: its message, the memory that the failed
    program needed, and the largest live arrays. Yield nothing if there was no such error. ``places`` shortens
    file names."""
    last = model.of_failure(run)
    died = run.main.died if run.main is not None else None
    if last is not None and last.error is not None:
        error, site = last.error, last.site
    elif died is not None and no_memory(died.message):
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
    for spans in memory_needed(run, site):
        yield line(*spans, indent=2, hang=2)
    if last is not None:
        yield line(*alive(last), indent=2)
        yield from _groups(last, places, SHOWN)


def section(run: Run, places: Places, *, everything: bool = False) -> Iterator[Line]:
    """Yield the lines of the report's section on live arrays. They show one snapshot, which
    ``model.arrays.fullest`` chooses. Yield nothing if it has no arrays, or too few bytes for a section.
    ``places`` shortens file names. ``everything`` (``--all``) lists all arrays, however small."""
    snapshots = model.of_main(run)
    s = model.fullest(snapshots)
    if s is None or not s.count:
        return
    if s.known_bytes < LEAST and s.error is None and not everything:
        return
    if len(snapshots) == 1:
        which = f"{moment(s)} (1 snapshot)"
    else:
        largest = s.bytes == max(each.bytes or 0 for each in snapshots)
        most = "the largest" if largest else "nearly the largest"
        which = f"in {most} of {len(snapshots):,} snapshots ({moment(s)})"
    yield BLANK
    yield line(
        ("Live arrays", "title"),
        f"  {which}: {count(s.count, 'array')}, {total(s)}{_devices(s)}",
        hang=4,
    )
    if s.error is None or everything:
        yield from _groups(s, places, None if everything else SHOWN)
        yield from _kinds(run, s)
    if everything:
        yield from _meshes(s)
    if (last := _last_before_a_gap(run, snapshots)) is not None:
        text = (
            f"no snapshot between {seconds(last)} and the end of the program at {seconds(run.seconds)}:"
            " arrays that were created in this time may be missing here"
        )
        yield line((text, "dim"), indent=2, hang=4)
    if s.cut:
        yield line(("only part of the program's objects was searched for names of arrays", "dim"), indent=2)


def _last_before_a_gap(run: Run, snapshots: Iterable[Snapshot]) -> float | None:
    """Return the time of the last snapshot before the program's exit, in seconds since the recording began.
    None if this snapshot is in the second half of the run (GAP), or if the end of the program or the times
    are not recorded."""

    times = [run.seconds_at(s.t_ns) for s in snapshots if s.why != "exit"]
    known = [t for t in times if t is not None]
    if not known or run.seconds is None or run.exited is None or max(known) > (1 - GAP) * run.seconds:
        return None
    return max(known)


def _devices(s: Snapshot) -> str:
    """Return the end of a sentence: `` on 8 devices, 1.0 MiB to 1.2 MiB each; device 0 has 1.1 MiB of 16 GiB
    in use``. The first part is missing if fewer than two devices have arrays, the second if no device reports
    its memory."""
    used = {d: n for d, n in s.by_device.items() if n}  # devices that have arrays
    limits = [m for m in s.memory if m.in_use is not None and m.limit]
    fullest = ""
    if limits:
        most = max(limits, key=lambda m: (m.in_use or 0) / (m.limit or 1))
        peak = f", at most {size(most.peak)} so far" if most.peak else ""
        fullest = (
            f"; device {most.device} has {size(most.in_use or 0)} of {size(most.limit or 0)} in use{peak}"
        )
    if len(used) < 2:
        return fullest
    return f" on {len(used)} devices, {spread(used.values())}{fullest}"


def _kinds(run: Run, s: Snapshot) -> Iterator[Line]:
    """Yield at most two lines about the larger kinds and dtypes of arrays in a snapshot: ``by kind:
    parameters 2.0 GiB, optimizer state 4.0 GiB`` and ``by dtype: float32 5.0 GiB, bfloat16 1.0 GiB``."""
    kinds = model.sums(s, model.kind_of(run))
    dtypes = model.sums(s, lambda g: g.dtype)
    for what, sums, worth in (
        ("kind", kinds, any(m.name != model.OTHER for m in kinds)),
        ("dtype", dtypes, len(dtypes) > 1),
    ):
        large = [m for m in sums if (m.bytes or 0) >= SMALL * s.known_bytes]
        if worth and len(large) > 1:
            text = ", ".join(f"{escape(m.name or 'various', 40)} {size(m.bytes)}" for m in large)
            yield line((f"by {what}: {text}", "dim"), indent=2, hang=2)


def _groups(s: Snapshot, places: Places, limit: int | None) -> Iterator[Line]:
    """Yield a line for each variable of the program that holds arrays (``state.params``), the most bytes
    first, then lines about what is not listed and what no variable leads to.

    Args:
      limit: the largest number of variables to list, without small ones; None: list each group of arrays
        instead.
    """
    trees = model.sums(s, model.tree_of) if limit else [model.Sum(g.path, [g]) for g in s.groups]
    shown = [t for t in trees if not limit or _weight(t) >= SMALL * s.known_bytes][:limit]
    for t in shown:
        g = t.groups[0]
        name = (escape(t.name, 120), "bold") if t.name is not None else (UNNAMED, "warning")
        if len(t.groups) > 1:
            facts: list[Span] = [f"  {count(t.count, 'array')}", (f"  {_most(t)}", "dim")]
        else:
            name = (escape(g.path, 120), "bold") if g.path is not None else name
            where = f"  from {places.frame(g.origin)}" if g.origin else ""
            facts = [f"  {forms(g)}", (f"  {plain(placement(g))}", "dim"), (where, "dim")]
        yield line(name, *facts, right=size(_weight(t)), indent=2, hang=4)
    rest = trees[len(shown) :] if limit else []
    if rest:
        more, left = sum(t.count for t in rest), sum(_weight(t) for t in rest)
        yield line((f"and {count(more, 'more array')}, {size(left)}: --all shows them", "dim"), indent=2)
    unnamed = s.unnamed_share
    if unnamed:
        share = "less than 1 %" if unnamed < 0.01 else f"{unnamed:.0%}".replace("%", " %")
        yield line((f"without a variable name: {share} of the bytes", "dim"), indent=2)


def _weight(t: model.Sum) -> int:
    """Return the bytes of the arrays in ``t`` on all devices together. An array whose devices are unknown
    counts once."""
    return sum((g.all_bytes if g.all_bytes is not None else g.global_bytes) or 0 for g in t.groups)


def _most(t: model.Sum) -> str:
    """Return the largest group of arrays in ``t`` as text: ``largest: params['w'], f32[8,4]``."""
    g = max(t.groups, key=lambda g: g.all_bytes or 0)
    return f"largest: {escape(g.path, 120) if g.path is not None else UNNAMED}, {forms(g)}"


def _meshes(s: Snapshot) -> Iterator[Line]:
    """Yield a drawing for each entry of ``layouts(s)``: which device holds which slice of the array."""
    for g, sharding, shape in layouts(s):
        yield line(
            (escape(g.path, 120), "bold"),
            f"  {forms(g)}",
            (f"  {escape(sharding.text, 120)}", "dim"),
            indent=2,
            hang=4,
        )
        yield from drawing(sharding, shape)


def layouts(s: Snapshot) -> Iterator[tuple[Group, Sharding, list[int]]]:
    """Yield (group, sharding, shape) for each different sharding in the snapshot ``s`` that splits arrays and
    can be drawn; once for each number of dimensions. The group (arrays that are alike) is the first one with
    this sharding and a variable's name."""
    shown: set[tuple[str, str | None, int]] = set()
    for g in s.groups:
        shape = [d for d in g.shape or () if isinstance(d, int)]
        if g.sharding is None or g.path is None or len(shape) != len(g.shape or ()):
            continue
        layout = (g.sharding.text, g.sharding.devices, len(shape))
        split = layout not in shown and g.replication != len(sh.device_ids(g.sharding.devices) or ())
        shown.add(layout)
        if split and grid_of(g.sharding, shape) is not None:
            yield g, g.sharding, shape
