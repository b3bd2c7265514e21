"""Rules about rematerialization: JX402 (arrays that XLA's partitioner gathers on every device, because it
cannot convert their sharding directly) and JX513 (scans that keep much for the gradient)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from jaxscope.analysis.stablehlo.residuals import FEWEST_ARRAYS, Residuals
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import Bytes, Message, Percent, message

MUCH = 1 / 192  # share of the memory of a device that a scan keeps for the gradient
_OF_MODULES = re.compile(r"\b(nn|nnx|hk|linen|haiku)\.scan\b")
MOST = 0.5  # share of the temporary memory of the program


@rule("JX402", "involuntary-rematerialization", WARNING)
def involuntary_rematerialization(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for r in texts.remats or ():
            text = message(
                "involuntary-rematerialization",
                function=f.display_name,
                size=message("of-size", bytes=Bytes(r.bytes)) if r.bytes is not None else None,
                change=message("from-to", before=r.before, after=r.after) if r.before and r.after else None,
            )
            yield Finding(
                code="JX402",
                severity=WARNING,
                certainty=CERTAIN if r.source is not None else LIKELY,
                **about(p, f, text, r.source or p.compilations[-1].site),
                fix=Fix(message("fix-reshard-in-steps"), "reshard_in_steps"),
                subject=(r.source, r.before, r.after, r.bytes),
            )


def _segments(iterations: int) -> int:
    """Return the best number of segments for a scan of ``iterations``: the divisor of ``iterations`` nearest
    to their square root, or the rounded square root if no divisor is near."""
    root = math.sqrt(iterations)
    divisors = [n for n in range(1, iterations + 1) if iterations % n == 0]
    nearest = min(divisors, key=lambda n: abs(math.log(n / root)))
    return nearest if root / 2 <= nearest <= 2 * root else round(root)


def _checkpoint(run: Run, r: Residuals) -> Message:
    """Return the advice for a scan that keeps the arrays ``r`` for the gradient: to put ``jax.checkpoint``
    around its body, or to split the scan into segments if there are few arrays."""
    if r.arrays >= FEWEST_ARRAYS:
        scan, checkpoint = _spelled(run, r)
        return message("fix-checkpoint", scan=scan, checkpoint=checkpoint)
    segments = _segments(r.iterations)
    return message("fix-checkpoint-segments", iterations=r.iterations, segments=segments)


def _spelled(run: Run, r: Residuals) -> tuple[str, str]:
    """Return the functions for a scan and for rematerialization that the file with the scan of ``r`` uses:
    ``nn.scan`` and ``nn.remat`` for modules of Flax linen."""
    text = (sources.of(run)(r.source.file) if r.source is not None else None) or ""
    line = sources.line(run, r.source) if r.source is not None else ""
    own = _OF_MODULES.search(text) if "lax.scan" not in line else None
    return (own[0], f"{own[1]}.remat") if own is not None else ("jax.lax.scan", "jax.checkpoint")


@rule("JX513", "scan-residuals", NOTE)
def scan_residuals(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        compiled = p.compilations[-1].compiled
        temporary = (
            compiled.memory.temp_bytes if compiled is not None and compiled.memory is not None else None
        )
        read = texts.stablehlo
        if read is None or not temporary:
            continue
        for r in read.residuals:
            on_each = r.bytes / max(1, read.num_partitions or 1)
            if on_each < MUCH * memory_scale.of_program(run, p) or on_each < MOST * temporary:
                continue
            text = message(
                "scan-residuals",
                function=f.display_name,
                iterations=r.iterations,
                bytes=Bytes(on_each),
                share=Percent(min(1.0, on_each / temporary)),
            )
            source = r.source or p.compilations[-1].site
            yield Finding(
                code="JX513",
                severity=NOTE,
                certainty=LIKELY,
                **about(p, f, text, source),
                fix=Fix(_checkpoint(run, r), "checkpoint"),
                subject=(source,),
            )
