"""Print the machines for which jaxscope can compile programs even if they are not present (``jaxscope
targets``), as lines of text and as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jaxscope.analysis.machines import Figure, Machine
from jaxscope.present.text import size
from jaxscope.report.layout import Line, line

UNITS = ("", "K", "M", "G", "T", "P")


def machine_json(m: Machine) -> dict[str, Any]:
    """Return the facts about the machine ``m`` as plain data for ``jaxscope targets --format json``. Memory,
    peak rates and bandwidths each come with the page that states them (``_figure``), or are None if no page
    does."""
    return {
        "name": m.name,
        "title": m.title,
        "platform": m.platform,
        "devices_per_chip": m.devices_per_chip,
        "chips_most": m.most,
        "targets": [f"{m.name}:{g}" for g in m.grids],
        "memory_bytes": _figure(m.memory),
        "usable_bytes_of_a_device": _figure(m.usable),
        "flops_per_second": {dtype: _figure(f) for dtype, f in m.flops.items()},
        "memory_bytes_per_second": _figure(m.hbm),
        "links": m.links,
        "link_bytes_per_second": _figure(m.link),
        "network_bytes_per_second": _figure(m.network),
    }


def _figure(f: Figure | None) -> dict[str, Any] | None:
    """Return a figure and its source as plain data: ``{"value": 1.6e10, "source": URL, "derived": None,
    "quoted": None}``. None gives None."""
    return (
        None
        if f is None
        else {"value": f.value, "source": f.source, "derived": f.derived, "quoted": f.quoted}
    )


def machine_lines(machines: Sequence[Machine], *, sources: bool = False) -> Iterator[Line]:
    """Yield the lines of ``jaxscope targets``: for each machine its name, memory, peak rates and possible
    topologies. With ``sources``, also yield the page that states each figure."""
    for m in machines:
        peaks = ", ".join(f"{dtype} {_rate(f, 'flop/s')}" for dtype, f in m.flops.items())
        per = "" if m.devices_per_chip == 1 else f", {m.devices_per_chip} devices a chip"
        most = "" if m.most is None else f", at most {m.most:,} chips a slice"
        yield line((m.name, "bold"), f"  {m.title}{per}{most}")
        yield line(
            f"memory {_memory(m)} · bandwidth {_rate(m.hbm, 'B/s')} · {peaks or 'peak rates not stated'}",
            indent=4,
            hang=4,
        )
        links = f"{m.links} links per chip" if m.links else "NVLink"
        speed = "speed not stated" if m.link is None else f"{_rate(m.link, 'B/s')} each way"
        network = "speed not stated" if m.network is None else f"{_rate(m.network, 'B/s')} per chip"
        yield line(f"{links}, {speed} · network {network}", indent=4, hang=4)
        yield line((" ".join(f"{m.name}:{g}" for g in m.grids), "dim"), indent=4, hang=4)
        if sources:
            yield from _sources(m)


def _memory(m: Machine) -> str:
    """Return the memory of a chip (by the vendor's page) and of a device (by the compiler) as text: ``16 GiB,
    15.7 GiB of a device usable``."""
    stated = size(m.memory.value) if m.memory else "not stated"
    if m.usable is None:
        return stated
    usable = f"{size(m.usable.value)} of a device usable"
    # The vendor's page may round down: then the compiler's figure comes first.
    if m.memory is not None and m.usable.value * m.devices_per_chip > m.memory.value:
        return f"{usable}, as its compiler says ({stated} on the vendor's page)"
    return f"{stated}, {usable}"


def _rate(f: Figure | None, unit: str) -> str:
    """Return a rate as text: 197e12 with the unit ``flop/s`` gives ``197 Tflop/s``. None gives
    ``not stated``."""
    if f is None:
        return "not stated"
    value, step = f.value, 0
    while value >= 1000 and step < len(UNITS) - 1:
        value, step = value / 1000, step + 1
    return f"{value:.4g} {UNITS[step]}{unit}"


def _sources(m: Machine) -> Iterator[Line]:
    named = [
        ("memory", m.memory),
        ("usable", m.usable),
        *m.flops.items(),
        ("bandwidth", m.hbm),
        ("link", m.link),
        ("network", m.network),
    ]
    for name, f in named:
        if f is not None:
            how = f" ({f.derived})" if f.derived else ""
            how += f", as quoted by {f.quoted}" if f.quoted else ""
            yield line((f"{name}: {f.source}{how}", "dim"), indent=6, hang=4)
