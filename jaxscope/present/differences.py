"""Write how a figure of a program (bytes, flops, number of fusions) differs between two programs.

The texts are plain and escaped.
"""

from __future__ import annotations

from jaxscope.model import metrics
from jaxscope.model.metrics import BYTES, Difference
from jaxscope.present.escape import escape
from jaxscope.present.programs import MEMORY_PARTS
from jaxscope.present.text import count, size

LONGEST = 300  # characters of a figure's name
_NAMES = {
    **MEMORY_PARTS,
    "peak_bytes": "peak",
    "bytes_accessed": "bytes accessed",
    "matrix_flops": "flops of matrix products",
    "unfused_elementwise": "elementwise operations outside fusions",
}
_PATTERNS = {
    metrics.FUSIONS.name: "{} fusions",
    metrics.UPCASTS.name: "conversions from {}",
    metrics.PRODUCTS.name: "matrix products in {}",
    metrics.CALLBACKS.name: "calls into Python ({})",
    metrics.CONSTANTS.name: "captured array {}",
}
_FUSIONS = {"total": "fusions", "unfused": "elementwise operations outside fusions"}


def name(metric: str, d: Difference) -> str:
    """Return the name of the figure ``d`` for the reader of a report: ``temporaries``, ``loop fusions``,
    ``loops of 6 iterations``. ``metric`` is the name of the group to which the figure belongs, such as
    ``memory``."""
    if metric == metrics.FUSIONS.name and d.what in _FUSIONS:
        return _FUSIONS[d.what]
    if metric == metrics.LOOPS.name:
        return "loops of unknown length" if d.key == "?" else f"loops of {count(int(d.key), 'iteration')}"
    plain = d.what.removeprefix("stablehlo.").replace("custom_call.", "custom call ")
    return escape(_PATTERNS.get(metric, "{}").format(_NAMES.get(d.what, plain)), LONGEST)


def amount(value: float, unit: str) -> str:
    """Return ``value`` as text: ``1.5 MiB`` if ``unit`` is BYTES, else ``1,024``, or ``3.2e+12`` from a
    billion on."""
    if unit == BYTES:
        return size(value)
    return f"{value:,.0f}" if abs(value) < 1e9 else f"{value:.4g}"


def change(d: Difference) -> str:
    """Return both values of the figure ``d`` and their difference: ``1.0 MiB → 1.5 MiB (+512.0 KiB)``. The
    difference is left out if the values are not bytes and one of them is at least a million."""
    more = d.after - d.before
    sign = "+" if more > 0 else "-"
    by = (
        ""
        if d.unit != BYTES and max(abs(d.before), abs(d.after)) >= 1e6
        else f" ({sign}{amount(abs(more), d.unit)})"
    )
    return f"{amount(d.before, d.unit)} → {amount(d.after, d.unit)}{by}"


def since_baseline(metric: str, d: Difference) -> str:
    """Return how the figure ``d`` of a program changed since the baseline: ``temporaries grew from 1.0 MiB to
    1.5 MiB (+50 %)``. The percentage is left out if the earlier value is at most 9. If the earlier value is
    0: ``loop fusions: 3, none in the baseline``; if the later value is: ``loop fusions: none, 3 in the
    baseline``.

    Args:
      metric: the name of the group to which the figure belongs, such as ``memory``.
      d: the figure; its two values must differ.
    """
    if not d.before or not d.after:
        now, before = (amount(n, d.unit) if n else "none" for n in (d.after, d.before))
        return f"{name(metric, d)}: {now}, {before} in the baseline"
    share = (d.share or 0) * 100
    by = "" if d.before <= 9 else f" ({share:+,.0f} %)" if abs(share) >= 1 else f" ({share:+.1f} %)"
    before, after = amount(d.before, d.unit), amount(d.after, d.unit)
    if before == after:  # the rounded texts are equal: write the exact numbers
        before, after = f"{d.before:,.0f}", f"{d.after:,.0f}"
    return f"{name(metric, d)} {'grew' if d.after > d.before else 'fell'} from {before} to {after}{by}"
