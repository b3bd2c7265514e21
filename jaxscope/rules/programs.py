"""JX202 to JX401: what the user's functions became: loops written out, precision, host calls, communication."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.repeats import Repeated
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import of_compiled, users
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import keeps_callbacks
from jaxscope.schema.messages import Words

TURNS = 8  # of a loop written out
TURN = 3  # operations in one turn
MIB = 1 << 20
MOST = 3  # functions named in one title
SHOWN = 5  # blocks


def name_of(f: Function) -> str:
    return f.name.replace(".<locals>", "")


def mib(n: int) -> str:
    """``1.5 MiB``; ``12 KiB`` below a tenth, ``3.2 GiB`` and ``1.0 TiB`` where it is more."""
    if n >= 1024 * MIB:
        return f"{n / (MIB << 20):,.1f} TiB" if n >= MIB << 20 else f"{n / (MIB << 10):,.1f} GiB"
    return f"{n / MIB:,.1f} MiB" if n >= MIB / 10 else f"{n / 1024:,.0f} KiB"


def evidence(p: Program, text: Words, source: Frame | None) -> list[Evidence]:
    c: Compilation = p.compilations[-1]
    return [Evidence(text, compilation=c.id, program=p.id, source=source)]


@rule("JX202", "unrolled-loop", WARNING)
def unrolled_loop(run: Run) -> Iterator[Finding]:
    # A loop is written out in the forward and in the backward pass, and by each function that holds it: told once.
    lines: dict[Hashable, list[tuple[Program, Function, Repeated]]] = {}
    for p, f, texts in users(run):
        found = [
            r
            for r in (texts.stablehlo.repeated if texts.stablehlo is not None else ())
            if r.times >= TURNS and r.length >= TURN and not r.in_loop and r.carried
        ]
        for r in found:
            lines.setdefault(_line(r, found) or (f.id, r.line), []).append((p, f, r))
    for several in lines.values():
        several.sort(key=lambda one: -one[2].length * one[2].times)
        (p, f, r), rest = several[0], several[1:]
        text = _repeated(f, r)
        names = list(dict.fromkeys(name_of(other) for _, other, _ in several))
        blocks = "another block" if len(rest) == 1 else f"{len(rest):,} other blocks"
        where = f" in {', '.join(names[:MOST])}" + (", ..." if len(names) > MOST else "")
        also = f" ({blocks} of this line{where if len(names) > 1 else ''}, too)" if rest else ""
        yield Finding(
            "JX202", WARNING, LIKELY, f"{text}{also}: a loop that was written out", f.id, r.source,
            [e for q, g, other in several[:SHOWN] for e in evidence(q, _repeated(g, other), other.source)],
            "stack the parameters of the turns and use jax.lax.scan (flax: nnx.scan, nn.scan)",
        )  # fmt: skip


def _line(r: Repeated, others: Sequence[Repeated]) -> tuple[str, int] | None:
    """Of the loop: what differentiation made belongs to the line of the forward pass that it was made from."""
    own = _innermost(r)
    if not r.backward:
        return own
    lines = [_innermost(o) for o in sorted(others, key=lambda o: abs(o.times - r.times)) if not o.backward]
    return next((line for line in lines if line == own or line in r.under), own)


def _innermost(r: Repeated) -> tuple[str, int] | None:
    """The line that repeats it; of a body that is one line itself that line, from wherever it is called."""
    if r.source is None:
        return None
    own = r.source.file, r.source.line
    return r.under[-1] if own in r.under else own


def _repeated(f: Function, r: Repeated) -> str:
    return f"a block of {r.length} operations stands {r.times} times in {name_of(f)}"


@rule("JX301", "host-callback", NOTE)
def host_callback(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for c in texts.stablehlo.callbacks if texts.stablehlo is not None else ():
            if c.in_branch:  # a check that fails, a print every so many steps: not in each call
                continue
            often = f"{c.count} times" if c.count > 1 else "once"
            text = f"{name_of(f)} calls back into Python {often} in each call" + (
                ", and in every turn of a loop" if c.in_loop else ""
            )
            yield Finding(
                "JX301", NOTE, CERTAIN, text, f.id, c.source, evidence(p, text + _not_kept(p), c.source),
                "return the value and look at it outside, or call back every so many steps under lax.cond",
            )  # fmt: skip


def _not_kept(p: Program) -> str:
    """What the persistent cache of the JAX that compiled it does with such a program, where it matters."""
    c: Compilation = p.compilations[-1]
    version = c.process.started.jax if c.process.started is not None else None
    on = c.compiled is not None and c.compiled.persistent_cache in ("hit", "miss")
    if not on or keeps_callbacks(version) is not False:
        return ""
    return f"; JAX {version} does not keep it in the persistent cache"


@rule("JX302", "upcast", NOTE)
def upcast(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for u in texts.stablehlo.upcasts if texts.stablehlo is not None else ():
            half = u.before in ("bf16", "f16", "bfloat16", "float16")
            if not half or u.backward or u.bytes is None or u.bytes < MIB // 16:
                continue
            text = f"{name_of(f)} converts {mib(u.bytes)} from {u.before} to {u.after}"
            yield Finding(
                "JX302", NOTE, CERTAIN, text, f.id, u.source, evidence(p, text, u.source),
                "cast the other operand down (x.astype(y.dtype)) where the wider type is not meant",
            )  # fmt: skip


@rule("JX303", "float64", WARNING)
def float64(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        doubles = texts.stablehlo.doubles if texts.stablehlo is not None else None
        if doubles is None or not doubles.operations:
            continue
        source = (
            next((o.source for o in doubles.origins if o.source is not None), None) or p.compilations[-1].site
        )
        taken = [a for a in doubles.arguments if a]
        text = f"{name_of(f)} computes in float64 ({doubles.operations} operations)"
        text += f", which comes in with {', '.join(taken[:3])}" if taken else ""
        yield Finding(
            "JX303", WARNING, CERTAIN, text, f.id, source, evidence(p, text, source),
            "make the arrays float32 where they are made, or leave jax_enable_x64 off",
        )  # fmt: skip


@rule("JX401", "inserted-communication", WARNING)
def inserted_communication(run: Run) -> Iterator[Finding]:
    yield from of_compiled(run, _inserted)


def _inserted(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    lines: dict[tuple[Hashable, ...], list[Collective]] = {}
    asked: dict[tuple[Hashable, ...], list[Collective]] = {}
    for c in texts.hlo.collectives if texts.hlo is not None else ():
        if c.origin == "inserted" and c.kind in ("all-gather", "all-to-all") and c.weight is None:
            if c.constrained_at is not None:
                asked.setdefault((c.constrained_at, c.constraint, c.kind), []).append(c)
            else:
                lines.setdefault((c.kind, c.source, tuple(c.axes or ())), []).append(c)
    for same, several in (*asked.items(), *lines.items()):
        large = [c for c in several if (c.bytes or 0) * (c.executions or 1) >= MIB]
        if not large:
            continue
        c = large[0]
        if c.constrained_at is not None:
            large = several  # a step on the way to the constraint belongs to it, however small
        over = dict.fromkeys(axis for c in large for axis in c.axes or ())
        axes = f" over {', '.join(over)}" if over else ""
        sizes = Counter((c.bytes or 0, c.executions or 1) for c in large)
        told = [
            (f"{n:,} of " if len(large) > 1 else "") + mib(bytes) + (f", {times} times" if times > 1 else "")
            for (bytes, times), n in sizes.items()
        ]
        what = f"an {c.kind}" if len(large) == 1 else f"{len(large):,} {c.kind}s"
        sizes_of = f"{what}{axes}{':' if len(large) > 1 else ' of'} {', '.join(told)} a call"
        if c.constrained_at is not None:
            yield same, _constrained(p, f, large, sizes_of)
            continue
        text = f"{name_of(f)}: the partitioner inserted {sizes_of}"
        yield same, Finding(
            "JX401", WARNING, CERTAIN, text, f.id, c.source, evidence(p, text, c.source),
            "give the operands of this line shardings that agree (with_sharding_constraint, in_shardings)",
        )  # fmt: skip


def _constrained(p: Program, f: Function, found: Sequence[Collective], sizes: str) -> Finding:
    """What the user's own sharding constraint makes the partitioner send."""
    c = found[0]
    text = f"{name_of(f)}: the sharding constraint of this line, {c.constraint}, takes {sizes}"
    compiled_at = dict.fromkeys(o.source for o in found if o.source not in (None, c.constrained_at))
    listed = [
        e for at in compiled_at for e in evidence(p, f"the compiled program has an {c.kind} of it here", at)
    ]
    if c.kind == "all-gather":
        over = ", ".join(dict.fromkeys(axis for o in found for axis in o.axes or ()))
        kept = over or "the axes it is split over"
        fix = f"remove this sharding constraint, or keep the array split over {kept} in it"
    else:
        fix = "remove this sharding constraint, or split the array in it as it is split before"
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
