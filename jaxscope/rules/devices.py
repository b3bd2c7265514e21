"""Rules JX509 (some devices hold much more of the live arrays than others) and JX510 (a program does not fit
into memory beside the live arrays)."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import arrays, devices, target_programs
from jaxscope.model.arrays import Group
from jaxscope.model.devices import Want
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.messages import Bytes, Percent, message

SHARE = 0.2  # share of the bytes on the fullest device: a smaller difference is not reported
FULL = 0.9  # share of a device's memory from which it is reported as nearly full


@rule("JX509", "uneven-devices", WARNING)
def uneven_devices(run: Run) -> Iterator[Finding]:
    """Yield at most one finding: the largest difference in bytes of live arrays between two devices."""
    began = _first_on_several(run)
    # At a compilation, arrays are still moved.
    settled = [s for s in arrays.of_main(run) if s.why != "miss" and (began is None or s.t_ns > began)]
    # Before the training, a state may be on one device until it is placed
    later = settled[len(settled) // 2 :]
    found = [u for s in later if (u := devices.uneven(s)) is not None]
    u = max(found, key=lambda u: u.difference, default=None)
    memory = memory_scale.of_process(run.main)
    if u is None or u.difference < max(memory_scale.WORTH_A_NOTE * memory, SHARE * u.by_device[u.fullest]):
        return
    least = u.by_device[u.emptiest]
    first = u.groups[0] if u.groups else None
    source = None if first is None else first.origin
    array = None
    if first is not None and first.device_bytes:
        array = message(
            "is-on-device", path=first.path, bytes=Bytes(first.device_bytes), device=str(u.fullest)
        )
    yield Finding(
        code="JX509",
        severity=WARNING if u.difference >= memory_scale.WORTH_A_WARNING * memory else NOTE,
        certainty=CERTAIN,
        title=message(
            "uneven-devices",
            fullest=str(u.fullest),
            most=Bytes(u.by_device[u.fullest]),
            emptiest=str(u.emptiest),
            least=message("holds-only", bytes=Bytes(least)) if least else message("holds-nothing"),
            array=array,
        ),
        source=source,
        evidence=[
            Evidence(message("device-holds", device=str(d), bytes=Bytes(n)), source=source, step=u.look.step)
            for d, n in sorted(u.by_device.items())
        ],
        fix=Fix(
            message(
                "fix-shard-over-mesh",
                path=first.path if first is not None else "each large array",
                name=first.path if first is not None else "x",
                n=len(u.by_device),
                spec=_spec(first, len(u.by_device)),
            ),
            "device_put",
            {} if first is None else {"path": first.path},
        ),
    )


def _first_on_several(run: Run) -> int | None:
    """Return the time (in ns, as ``t_ns`` of events) when a function of the user was first compiled for
    several devices: until then, the program sets up. None if there is none."""
    several = (
        c.t_ns
        for f in run.functions.values()
        for c in (f.compilations if f.user else ())
        if c.process is run.main and c.compiled is not None and {*"-,"} & {*(c.compiled.devices or "")}
    )
    return min(several, default=None)


def _spec(group: Group | None, n: int) -> str:
    """Return the PartitionSpec that splits the arrays ``group`` over ``n`` devices along their first
    dimension that is divisible by ``n``, as text: ``P(None, 'data')``."""
    sizes = (group.shape if group is not None else None) or ()
    dimension = next((d for d, size in enumerate(sizes) if isinstance(size, int) and size % n == 0), 0)
    return f"P({'None, ' * dimension}'data')"


@rule("JX510", "does-not-fit", ERROR)
def does_not_fit(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function with a program that does not fit into memory beside the live arrays,
    and a note if a device was nearly full."""
    reported = set()
    stood_in = _stood_in(run)
    for w in devices.wants(run):
        if w.fits:
            break
        # A program that ran did fit. The memory of a host can be exceeded for a while, so that only a
        # program that is larger than all of it is reported although it ran.
        if (w.ran and (not w.host or w.fits_alone)) or w.compilation.function.id in reported:
            continue
        if w.host and w.compilation.program in stood_in and w.compilation.process.died is None:
            continue
        reported.add(w.compilation.function.id)
        yield _finding(w)
    yield from _nearly_full(run)


def _stood_in(run: Run) -> set[str]:
    """Return the ids of programs of this machine that were also compiled for a target (another machine), if
    it is known whether they fit into the target's memory."""
    made = [p for p in run.retargeted.values() if p.of is not None]
    return {p.of.id for p in made if p.of is not None and target_programs.fit(run, p) is not None}


def _finding(want: Want) -> Finding:
    """Return the finding about ``want``, a program that needs too much memory: an error if it does not fit
    even without the live arrays."""
    c = want.compilation
    alone = not want.fits_alone
    if want.shared_by > 1:
        capacity = message("devices-share", devices=want.shared_by, bytes=Bytes(want.capacity))
    else:
        capacity = message("host-has" if want.host else "device-has", bytes=Bytes(want.capacity))
    beside = None if alone or not want.beside else message("beside-live-arrays", bytes=Bytes(want.beside))
    text = message(
        "does-not-fit",
        function=c.function.display_name,
        peak=Bytes(want.peak),
        beside=beside,
        capacity=capacity,
    )
    return Finding(
        code="JX510",
        severity=ERROR if alone else WARNING,
        certainty=CERTAIN if alone else LIKELY,
        title=text,
        function=c.function.id,
        source=c.site,
        evidence=[Evidence(text, compilation=c.id, program=c.program, source=c.site)],
        fix=_less_memory(want),
    )


def _less_memory(want: Want) -> Fix:
    """Return the advice for a program that needs too much memory. If its temporary arrays take at least half
    of the peak, the advice begins with them."""
    memory = want.compilation.compiled.memory if want.compilation.compiled is not None else None
    temporary = (memory.temp_bytes or 0) if memory is not None else 0
    mostly = 2 * temporary >= want.peak
    words = message("fix-less-temporary", bytes=Bytes(temporary)) if mostly else message("fix-less-memory")
    return Fix(words, "reduce_memory")


def _nearly_full(run: Run) -> Iterator[Finding]:
    """Yield a note about the device with the largest peak as a share of its memory, if that share is at least
    FULL. Yield nothing if the program ran out of memory, or if the peak of a GPU may be that of
    autotuning."""
    if arrays.of_failure(run) is not None:
        return  # the report begins with the error
    filled = [
        (m.peak / m.limit, m, s)
        for s in arrays.of_main(run)
        for m in s.memory
        if m.peak is not None and m.limit is not None and m.limit > 0
    ]
    share, m, look = max(filled, key=lambda entry: entry[0], default=(0.0, None, None))
    if m is None or m.limit is None or look is None or share < FULL:
        return
    in_use = max((d.in_use or 0) / d.limit for _, d, _ in filled if d.limit)
    needed = max((w.wanted / w.capacity for w in devices.wants(run)), default=0.0)
    # On a GPU, the allocator's peak includes buffers with which the compiler tried variants of kernels.
    if run.platform == "gpu" and max(in_use, needed) < FULL:
        return
    text = message(
        "nearly-full",
        device=str(m.device),
        share=Percent(share),
        peak=Bytes(m.peak or 0),
        limit=Bytes(m.limit),
    )
    yield Finding(
        code="JX510",
        severity=NOTE,
        certainty=CERTAIN,
        title=text,
        evidence=[Evidence(text, step=look.step)],
        fix=Fix(message("fix-nearly-full"), "reduce_memory"),
    )
