"""Rules about work that several devices repeat: JX512 (a whole program, because all its arguments are
replicated) and JX515 (some matrix products of a program)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from jaxscope.analysis import repeated_products
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.paths import root
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.sharding_audit import ARGUMENT, Intent, parts
from jaxscope.model import sharding_audit
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import about, evidence, mesh_axes, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import Field, Message, Names, Parts, Percent, message

HERE, REASON = message("repeated-product-here"), message("repeated-reason-here")
LINES = 3  # the most lines that a finding names
GATHERED = 0.4  # share of a program's flops: a product of two gathered arrays takes less
SHARE = 0.1  # share of the flops of the largest program: a smaller program may run on every device


@rule("JX512", "replicated-computation", WARNING)
def replicated_computation(run: Run) -> Iterator[Finding]:
    """Yield a finding for each large program that all its devices run in full, because all arguments are
    replicated."""
    programs = [(p, f, texts, _products(texts)) for p, f, texts in users(run) if p.target_lowered is None]
    most = max((n for *_, n in programs), default=0)
    for p, f, texts, n in programs:
        c = p.compilations[-1]
        if not n or n < SHARE * most or not takes_time(run, p, f, n):
            continue
        arguments = _replicated(sharding_audit.of_compilation(run, c))
        if arguments is None or _differs_by_device(texts):
            continue
        devices = len(sharding_audit.devices(c) or ())
        text = message("replicated-computation", function=f.display_name, devices=devices)
        yield Finding(
            code="JX512",
            severity=WARNING if n == most else NOTE,
            certainty=LIKELY,
            **about(p, f, text, c.site),
            fix=_shard(arguments, f.display_name, devices),
            subject=(),
        )


@rule("JX515", "repeated-products", WARNING)
def repeated(run: Run) -> Iterator[Finding]:
    """Yield findings about programs in which several devices compute the same parts of matrix products. Small
    and short programs, and those that JX512 reports, are left out."""
    every = list(users(run))
    most = max((_products(texts) for *_, texts in every), default=0)
    for p, f, texts in every:
        c, n, work = p.compilations[-1], _products(texts), repeated_products.find(texts)
        if n and n >= SHARE * most and (found := _gathered(run, p, f, texts)) and takes_time(run, p, f, n):
            yield found
            continue
        if work is None or n < SHARE * most or not takes_time(run, p, f, n):
            continue
        if p.target_lowered is None and _replicated(sharding_audit.of_compilation(run, c)) is not None:
            continue  # JX512
        why, fix = _reason(work) or (None, None)
        text = message(
            "repeated-products",
            function=f.display_name,
            devices=work.devices,
            share=Percent(1 - work.needed / work.flops),
            lines=Parts(tuple(work.lines[:LINES]), between=" and "),
            why=why,
        )
        at = work.constraint.source if work.constraint is not None else work.rows_taken or work.lines[0]
        yield Finding(
            code="JX515",
            severity=WARNING if fix is not None and 2 * n >= most else NOTE,
            certainty=LIKELY,
            title=text,
            function=f.id,
            source=at,
            evidence=[
                *(() if at in work.lines else evidence(p, REASON, at)),
                *(e for line in work.lines for e in evidence(p, text if line == at else HERE, line)),
            ],
            fix=fix or Fix(message("fix-look-at-shardings", function=f.display_name), "look_at_shardings"),
            subject=work.axes,
            seconds=running_share(run, f, 1 - work.needed / work.flops),
            at_most=True,
        )


def _gathered(run: Run, p: Program, f: Function, texts: Texts) -> Finding | None:
    """Return the finding about the products that all devices of the program ``p`` compute alike from arrays
    that an all-gather has collected; None if they are few."""
    hlo = texts.hlo
    work = hlo.gathered_work if hlo is not None else None
    if hlo is None or work is None or work.flops < GATHERED * work.all_flops or not hlo.num_partitions:
        return None
    line = next((c.source for c in hlo.collectives if (c.computation, c.name) == work.gather), None)
    if line is None:
        return None
    share = work.flops / work.all_flops
    text = message(
        "products-of-gathered",
        function=f.display_name,
        devices=hlo.num_partitions,
        share=Percent(share),
        line=line,
    )
    return Finding(
        code="JX515",
        severity=WARNING,
        certainty=LIKELY,
        **about(p, f, text, line),
        fix=Fix(message("fix-gather-results"), "gather_results"),
        subject=("gathered",),
        seconds=running_share(run, f, share * (1 - 1 / hlo.num_partitions)),
        at_most=True,
    )


def _reason(work: repeated_products.Repeated) -> tuple[Message, Fix] | None:
    """Return (why several devices compute the same products, the advice); None if no reason is known."""
    axes, along = list(work.axes), mesh_axes(work.axes)
    if work.constraint is not None:
        names = Names(tuple(map(repr, axes)))
        why = message("repeated-by-constraint", constraint=work.constraint.asked.text, axes=along)
        return why, Fix(message("fix-unconstrained", axes=names), "loosen_constraint", {"axes": axes})
    if work.rows_taken is not None:
        line = work.rows_taken
        split = repr(axes[0] if len(axes) == 1 else work.axes)
        why = message("repeated-after-rows", line=line, axes=along)
        return why, Fix(message("fix-split-rows", line=line, axes=split), "split_rows", {"axes": axes})
    if axes:
        why = message("repeated-along-axes", axes=along)
        return why, Fix(message("fix-use-axis", axes=along), "use_axis", {"axes": axes})
    return None


def _shard(arguments: Sequence[Intent], function: str, devices: int) -> Fix:
    """Return the advice to split the batch, one of the arguments ``arguments`` of ``function``, over the
    devices. ``devices`` is their number."""
    batch = _batch(arguments)
    name, size = batch if batch is not None else ("batch", devices)
    uneven = message("uneven-batch", devices=devices, size=size) if size % devices else None
    what: Field = name if batch is not None and "batch" in name else message("its-batch")
    if batch is not None and "batch" not in name:
        what = message("probably-its-batch", path=name)
    words = message("fix-shard-batch", what=what, path=name, function=function, uneven=uneven)
    return Fix(words, "shard", {"path": batch[0] if batch is not None else None})


def _batch(arguments: Sequence[Intent]) -> tuple[str, int] | None:
    """Return (name, length of the first axis) of the argument that is probably the batch: ``("batch", 64)``.
    All arrays in that argument have a first axis of the same length. Of several such arguments, return that
    with the longest first axis; None if there is none."""
    axes: dict[str, set[int]] = {}
    for i in arguments:
        axes.setdefault(root(i.path), set()).add(i.shape[0] if i.shape else 0)
    found = [(min(sizes), name) for name, sizes in axes.items() if len(sizes) == 1]
    size, name = max(found, default=(0, ""))
    return (name, size) if size else None


def _products(texts: Texts) -> int:
    """Return a lower bound on the operations of matrix products and convolutions that one device executes in
    a call of the program; 0 if unknown."""
    return (texts.hlo.matrix_flops_at_least or 0) if texts.hlo is not None else 0


def _replicated(intents: Sequence[Intent]) -> list[Intent] | None:
    """Return the arguments among ``intents`` (arguments and results with their shardings) that are no
    scalars, if each of several devices has all arguments and results of the program as a whole. Else, or if
    there are no such arguments, return None."""
    known = [i for i in intents if not i.dropped]
    for i in known:
        cut = parts(i.compiled, len(i.shape or ())) if i.compiled is not None else None
        ids = sh.device_ids(i.compiled.devices) if i.compiled is not None else None
        if cut is None or math.prod(cut) != 1 or ids is None or len(ids) < 2:
            return None
    return [i for i in known if i.of == ARGUMENT and i.shape] or None


def _differs_by_device(texts: Texts) -> bool:
    """Return whether a program with replicated arguments may compute something else on each device. True if
    one of its analyzed ``texts`` is missing."""
    lowered, compiled = texts.stablehlo, texts.hlo
    return lowered is None or compiled is None or bool(lowered.shardings) or bool(compiled.collectives)
