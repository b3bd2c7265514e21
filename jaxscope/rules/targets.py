"""JX801: programs that do not fit into the machine they were compiled for, which is not there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxscope.analysis import memory_fit
from jaxscope.analysis.machines import GPU, MACHINES
from jaxscope.analysis.memory_fit import Contributor, Fit
from jaxscope.log.jobs import EXHAUSTED
from jaxscope.model import target_programs
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import merging
from jaxscope.rules.programs import name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, Evidence, Finding
from jaxscope.schema.keys import Frame, Memory
from jaxscope.schema.targets import Target

CODE = "JX801"
MOST = 8  # buffers, and arguments and results, that are named
_BY_LETTER = "aefhilmnorsx"  # an h100, a v5e: letters whose names begin with a vowel


@rule(CODE, "too-large-for-target", ERROR, target="v5e:1x1")
def too_large(run: Run) -> Iterator[Finding]:
    worst: dict[tuple[str, str], list[tuple[float, Program, Fit]]] = {}
    for p in run.retargeted.values():
        fit = target_programs.fit(run, p)
        if fit is not None and fit.fits is False:
            who = p.function.id if p.function is not None else p.id
            share = (fit.used or 0) / fit.capacity if fit.capacity else 0.0
            worst.setdefault((who, p.target or ""), []).append((share, p, fit))
    for several in worst.values():
        _, p, fit = max(several, key=lambda one: one[0])
        yield _finding(run, p, fit, len(several) - 1)


def _finding(run: Run, p: Program, fit: Fit, more: int) -> Finding:
    f, c = p.function, p.compilations[-1] if p.compilations else None
    target, site = target_programs.target_of(run, p), c.site if c is not None else None
    memory = p.made.memory if p.made is not None else None
    name, where = name_of(f) if f is not None else p.module or "a program", p.target or "its target"
    text = f"{name} does not fit into {where}: {_figures(fit, target, memory)}"
    given = memory_fit.contributors(run.texts_of(p).stablehlo) or []
    again = f" (and {more} more of its programs {'does' if more == 1 else 'do'} not)" if more else ""
    call = c.id if c is not None else None
    return Finding(
        code=CODE,
        severity=ERROR,
        # Without the compiler's own peak it is an upper bound.
        certainty=CERTAIN if p.state == EXHAUSTED or (p.made and p.made.peak_bytes is not None) else LIKELY,
        title=text + again,
        function=f.id if f is not None else None,
        source=site,
        evidence=[
            Evidence(text, compilation=call, program=p.id, source=site),
            *(Evidence(told, compilation=call, program=p.id, source=at or site) for told, at in _largest(fit)),
            *(
                Evidence(told, compilation=call, program=p.id, source=(c.made_at(path) if c and path else None) or site)
                for told, path in map(_told, given[:MOST])
            ),
        ],
        fix=_advice(f, fit, given),
        contexts=merging.of_target(p.target),
    )  # fmt: skip


def _figures(fit: Fit, target: Target | None, memory: Memory | None) -> str:
    """``20.3 GiB of temporaries in 15.75 GiB of a v5e chip``."""
    room = f"{gib(fit.capacity)} of {device(target)}" if fit.capacity is not None else device(target)
    if fit.space not in (None, "hbm"):
        room += f"'s {fit.space}"
    if fit.used is None:
        return f"its compiler ran out of memory for {room}"
    if list(fit.parts) == ["HLO temporaries"]:
        return f"{gib(fit.used)} of temporaries in {room}"
    parts = fit.parts or _parts(memory)
    listed = ", ".join(
        f"{n} {gib(b)}" for n, b in sorted(parts.items(), key=lambda x: -x[1]) if 20 * b > fit.used
    )
    return f"{gib(fit.used)} in {room}{f' ({listed})' if listed else ''}"


def _parts(memory: Memory | None) -> dict[str, int]:
    if memory is None:
        return {}
    parts = {
        "arguments": memory.argument_bytes,
        "results": memory.output_bytes,
        "temporaries": memory.temp_bytes,
    }
    return {name: size for name, size in parts.items() if size is not None}


def device(target: Target | None) -> str:
    """``a v5e chip``; a chip of two devices is none: ``a tpu7x device``."""
    machine = MACHINES.get(target.machine) if target is not None else None
    if machine is None:
        return "a device"
    word = "GPU" if machine.platform == GPU else "chip" if machine.devices_per_chip == 1 else "device"
    return f"{'an' if machine.name[0] in _BY_LETTER else 'a'} {machine.name} {word}"


def gib(n: int) -> str:
    """``15.75 GiB``, ``64 MiB``: two digits, as capacities are told."""
    value, units = float(n), ("B", "KiB", "MiB", "GiB", "TiB")
    for unit in units:
        if value < 1024 or unit == units[-1]:
            break
        value /= 1024
    return f"{value:,.2f}".rstrip("0").rstrip(".") + f" {unit}"


def _largest(fit: Fit) -> Iterator[tuple[str, Frame | None]]:
    for a in fit.largest[:MOST]:
        what = " ".join(filter(None, (a.shape, a.operation)))
        at = Frame(a.file, a.line, "") if a.file and a.line else None
        yield f"{gib(a.bytes)} {a.kind or 'buffer'}{f': {what}' if what else ''}", at


def _told(c: Contributor) -> tuple[str, str | None]:
    if c.bytes is not None:
        size = f"{gib(c.bytes)} on each device"
    elif c.global_bytes is not None:
        size = f"{gib(c.global_bytes)} on all devices together"
    else:
        size = "of a size that is not known"
    if c.of == "argument":
        return f"argument {c.path or 'without a name'}: {size}", c.path
    return f"{c.path or 'a result'}: {size}", None


def _advice(f: Function | None, fit: Fit, given: Sequence[Contributor]) -> str:
    taken = [c for c in given if c.of == "argument"]
    held = sum(c.bytes or 0 for c in taken)
    if fit.space not in (None, "hbm"):
        return "make the blocks smaller that its kernel keeps there"
    if fit.capacity is None or 2 * held <= fit.capacity or not taken:
        return (
            "make it work in smaller pieces (jax.lax.map with batch_size=, a scan over microbatches), keep less for the "
            "backward pass (jax.checkpoint), or split its arrays over more devices"
        )
    first = max(taken, key=lambda c: c.bytes or 0)
    return (
        f"split {first.path or 'its largest argument'} over the mesh (PartitionSpec), or over more devices; donate what "
        f"{name_of(f) if f is not None else 'it'} replaces"
    )
