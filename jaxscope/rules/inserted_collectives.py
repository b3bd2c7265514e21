"""Rule JX401: collectives that the user's code does not request and XLA's partitioner inserts."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis import jit_decorators
from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.sharding_audit import RESULT
from jaxscope.model import sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import of_compiled
from jaxscope.rules.finding_parts import MIB, evidence, mesh_axes
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Field, Names, Parts, Percent, message

SCANNED = 64 << 10  # bytes of an argument that is gathered for a scan: from here on it is reported
FLOPS_PER_BYTE = 64  # a smaller argument is reported if the program has this many FLOPs for each of its bytes


@rule("JX401", "inserted-communication", WARNING)
def inserted_communication(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, functools.partial(_inserted, run))


def _inserted(run: Run, p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    """Yield (value, finding) for the all-gathers and all-to-alls that XLA inserted into the program ``p`` of
    ``f``, not for parameters, and that are large or for a scan: one pair for each constraint or line.
    Findings of two programs with equal values are equal."""
    lines: dict[tuple[Hashable, ...], list[Collective]] = {}
    constrained: dict[tuple[Hashable, ...], list[Collective]] = {}
    dropped = _dropped(texts)
    for c in texts.hlo.collectives if texts.hlo is not None else ():
        if c.kind == "all-gather" and c.bytes in dropped:  # rule JX503 reports the cause
            continue
        if c.origin == "inserted" and c.kind in ("all-gather", "all-to-all") and c.weight is None:
            if c.constrained_at is not None:
                constrained.setdefault((c.constrained_at, c.constraint, c.kind), []).append(c)
            else:
                lines.setdefault((c.kind, c.source, tuple(c.axes or ())), []).append(c)
    for same, several in (*constrained.items(), *lines.items()):
        large = [
            c
            for c in several
            if (c.bytes or 0) * (c.executions or 1) >= MIB or _gathers_for_a_scan(run, p, c, texts)
        ]
        if not large:
            continue
        if large[0].constrained_at is not None:
            # All collectives of the constraint belong to the finding, also small ones.
            yield same, _of_constraint(p, f, several)
            continue
        c = large[0]
        text = message("inserted-collectives", function=f.display_name, **_collectives(large))
        fix = Fix(message("fix-match-shardings"), "match_shardings")
        if c.kind == "all-gather" and c.axes and c.source is not None and _scans(run, c.source):
            axes = repr(tuple(c.axes) if len(c.axes) > 1 else c.axes[0])
            fix = Fix(message("fix-shard-other-axis", axes=axes), "shard_other_axis", {"axes": list(c.axes)})
            if _gathers_for_a_scan(run, p, c, texts):
                text = message(
                    "scan-on-all-devices",
                    function=f.display_name,
                    **_on_devices(c, texts),
                    axes=mesh_axes(c.axes),
                    **_sizes(large),
                )
        found = evidence(p, text, c.source)
        yield same, Finding("JX401", WARNING, c.source_certainty or CERTAIN, text, f.id, c.source, found, fix)


def _gathers_for_a_scan(run: Run, p: Program, c: Collective, texts: Texts) -> bool:
    """Return whether the collective ``c`` of the program ``p`` gathers a whole argument for a scan over its
    sharded axis. False if the argument is small and the program computes little. ``texts`` are the analyzed
    texts of ``p``."""
    if c.kind != "all-gather" or c.source is None or c.bytes is None or not _scans(run, c.source):
        return False
    flops = (texts.hlo.matrix_flops_at_least if texts.hlo is not None else None) or 0
    if c.bytes < SCANNED and flops < FLOPS_PER_BYTE * c.bytes:
        return False
    key = p.compilations[-1].key
    return key is not None and any(aval_bytes(leaf.shape, leaf.dtype) == c.bytes for leaf in key.arguments)


def _on_devices(c: Collective, texts: Texts) -> dict[str, Field]:
    """Return two fields of a message about the collective ``c``: ``devices``, the devices that it connects
    (``each of the 8 devices``), and ``repeated``, the share of the work that all but one of them repeat (7/8;
    None: unknown)."""
    sizes = dict(texts.hlo.mesh or ()) if texts.hlo is not None else {}
    n = math.prod(sizes.get(axis, 0) for axis in c.axes or ())
    if not n:
        return {"devices": message("each-device"), "repeated": None}
    repeated = message("work-repeated", share=Percent(1 - 1 / n))
    return {"devices": message("each-of-devices", n=n), "repeated": repeated}


def _scans(run: Run, line: Frame) -> bool:
    """Return whether ``line`` calls ``jax.lax.scan``, which goes over the first axis of its inputs."""
    return jit_decorators.calls(sources.of(run)(line.file), line.line, frozenset({"scan"}))


def _dropped(texts: Texts) -> set[int]:
    """Return the sizes in bytes of those results of a program for which JAX drops the requested sharding,
    because a dimension is not divisible by the mesh axes. Each result is in the set with its size with
    padding and without."""
    found = texts.stablehlo.uneven if texts.stablehlo is not None else ()
    results = [u for u in found if u.of == RESULT and u.bytes is not None]
    whole = {u.bytes * u.padded // u.shape[u.dimension] for u in results if u.bytes and u.shape[u.dimension]}
    return whole | {u.bytes for u in results if u.bytes}


def _axes(collectives: Sequence[Collective]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(axis for c in collectives for axis in c.axes or ()))


def _collectives(collectives: Sequence[Collective]) -> dict[str, Field]:
    """Return fields of a message about ``collectives``: their number, mesh axes and bytes."""
    axes = _axes(collectives)
    return {
        "collectives": Count(len(collectives), collectives[0].kind),
        "axes": message("over-axes", axes=mesh_axes(axes)) if axes else None,
        **_sizes(collectives),
    }


def _sizes(collectives: Sequence[Collective]) -> dict[str, Field]:
    """Return the field of a message that lists the bytes of ``collectives``."""
    several = Counter((c.bytes or 0, c.executions or 1) for c in collectives)
    sizes = [
        message(
            "collective-size",
            count=message("count-of", n=n) if len(collectives) > 1 else None,
            bytes=Bytes(bytes),
            times=message("collective-times", n=times) if times > 1 else None,
        )
        for (bytes, times), n in several.items()
    ]
    return {"sizes": Parts(tuple(sizes), between=", ")}


def _of_constraint(p: Program, f: Function, collectives: Sequence[Collective]) -> Finding:
    """Return a finding about ``collectives`` in the program ``p`` of the function ``f``. All of them are
    caused by one ``with_sharding_constraint`` of the user."""
    c = collectives[0]
    text = message(
        "constraint-collectives",
        function=f.display_name,
        constraint=c.constraint,
        **_collectives(collectives),
    )
    compiled_at = dict.fromkeys(o.source for o in collectives if o.source not in (None, c.constrained_at))
    listed = [
        e for at in compiled_at for e in evidence(p, message("collective-here", kind=c.kind, line=at), at)
    ]
    axes = _axes(collectives)
    if c.kind != "all-gather":
        fix = Fix(message("fix-constrain-as-before"), "remove_constraint")
    else:
        kept = message("fix-keep-axes", axes=Names(axes)) if axes else message("fix-keep-array-sharded")
        fix = Fix(kept, "remove_constraint", {"keep_axes": list(axes)})
    return Finding(
        "JX401",
        WARNING,
        CERTAIN,
        text,
        f.id,
        c.constrained_at,
        [*evidence(p, text, c.constrained_at), *listed],
        fix,
    )
