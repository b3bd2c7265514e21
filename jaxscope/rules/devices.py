"""JX509 and JX510: devices that hold unequal shares, programs that do not fit beside what is alive."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model import arrays, devices, target_programs
from jaxscope.model.devices import Want
from jaxscope.model.run import Run
from jaxscope.rules.programs import MIB, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding

SHARE = 0.2  # of what the fullest device holds
FULL = 0.9  # of a device's memory


@rule("JX509", "uneven-devices", WARNING)
def uneven_devices(run: Run) -> Iterator[Finding]:
    settled = [s for s in arrays.of_main(run) if s.why != "miss"]  # before a compilation: still on the way
    found = [u for s in settled if (u := devices.uneven(s)) is not None]
    u = max(found, key=lambda u: u.difference, default=None)
    if u is None or u.difference < MIB or u.difference < SHARE * u.by_device[u.fullest]:
        return
    first = u.groups[0] if u.groups else None
    low = u.by_device[u.emptiest]
    text = f"device {u.fullest} holds {mib(u.by_device[u.fullest])}, device {u.emptiest} {mib(low)}"
    named = "" if first is None else f": {first.path} ({mib(first.device_bytes or 0)}) lies there"
    source = None if first is None else first.origin
    yield Finding(
        code="JX509",
        severity=WARNING,
        certainty=CERTAIN,
        title=text + named,
        source=source,
        evidence=[
            Evidence(f"device {d}: {n:,} bytes", source=source, step=u.look.step)
            for d, n in sorted(u.by_device.items())
        ],
        fix=f"spread {first.path if first is not None else 'them'} over the mesh: jax.device_put(x, "
        "NamedSharding(mesh, P(...)))",
    )


@rule("JX510", "does-not-fit", ERROR)
def does_not_fit(run: Run) -> Iterator[Finding]:
    told = set()
    stood_in = _stood_in(run)
    for w in devices.wants(run):
        if w.fits:
            break
        # One that ran has fitted; memory of the host can have been lent out twice.
        if (w.ran and (not w.host or w.fits_alone)) or w.compilation.function.id in told:
            continue
        if w.host and w.compilation.program in stood_in and w.compilation.process.died is None:
            continue
        told.add(w.compilation.function.id)
        yield _finding(w)
    yield from _nearly_full(run)


def _stood_in(run: Run) -> set[str]:
    """Programs of which it is known how they fit into the machine that they are meant for."""
    made = [p for p in run.retargeted.values() if p.of is not None]
    return {p.of.id for p in made if p.of is not None and target_programs.fit(run, p) is not None}


def _finding(w: Want) -> Finding:
    c = w.compilation
    alone = not w.fits_alone
    beside = "" if alone or not w.beside else f", beside {mib(w.beside)} that are alive"
    whose = "a device has" if not w.host else "the host has"
    if w.shared_by > 1:
        whose = f"{w.shared_by} devices of this host share"
    text = f"{name_of(c.function)} wants {mib(w.peak)} on each device{beside}: {whose} {mib(w.capacity)}"
    return Finding(
        code="JX510",
        severity=ERROR if alone else WARNING,
        certainty=CERTAIN if alone else LIKELY,
        title=text,
        function=c.function.id,
        source=c.site,
        evidence=[Evidence(text, compilation=c.id, program=c.program, source=c.site)],
        fix="split its largest arrays over more devices, donate what it replaces, or make it work in smaller pieces",
    )


def _nearly_full(run: Run) -> Iterator[Finding]:
    said = [
        (m.peak / m.limit, m, s)
        for s in arrays.of_main(run)
        for m in s.memory
        if m.peak is not None and m.limit is not None and m.limit > 0
    ]
    share, m, look = max(said, key=lambda entry: entry[0], default=(0.0, None, None))
    if m is None or look is None or share < FULL:
        return
    text = f"device {m.device} was {share:.0%} full: {mib(m.peak or 0)} of {mib(m.limit or 0)}"
    text = text.replace("% full", " % full")
    yield Finding(
        code="JX510",
        severity=NOTE,
        certainty=CERTAIN,
        title=text,
        evidence=[Evidence(text, step=look.step)],
        fix="a larger batch will not fit: see which arrays take the most, jaxscope report --all",
    )
