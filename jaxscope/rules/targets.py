"""Rule JX801: programs that do not fit into the memory of the target (another machine, which need not be
available) that they were compiled for."""

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
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame, Memory
from jaxscope.schema.messages import Bytes, Field, Message, Parts, message
from jaxscope.schema.targets import Target

CODE = "JX801"
MOST = 8  # buffers in the evidence, and as many arguments and results


@rule(CODE, "too-large-for-target", ERROR, target="v5e:1x1")
def too_large(run: Run) -> Iterator[Finding]:
    """Yield a finding for each function and target: the function's program that exceeds the memory most."""
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
    memory = p.target_compiled.memory if p.target_compiled is not None else None
    given = memory_fit.contributors(run.texts_of(p).stablehlo) or []

    def evidence(text: Message, source: Frame | None) -> Evidence:
        return Evidence(
            text, compilation=c.id if c is not None else None, program=p.id, source=source or site
        )

    def made_at(path: str | None) -> Frame | None:
        return c.made_at(path) if c is not None and path else None

    return Finding(
        code=CODE,
        severity=ERROR,
        # Without the compiler's own peak it is an upper bound.
        certainty=CERTAIN
        if p.state == EXHAUSTED or (p.target_compiled and p.target_compiled.peak_bytes is not None)
        else LIKELY,
        title=_title(p, fit, target, memory, more),
        function=f.id if f is not None else None,
        source=site,
        evidence=[
            evidence(_title(p, fit, target, memory, 0), site),
            *(evidence(text, at) for text, at in _largest(fit)),
            *(evidence(_size(g), made_at(g.path if g.of == "argument" else None)) for g in given[:MOST]),
        ],
        fix=_advice(f, fit, given),
        contexts=merging.of_target(p.target),
        subject=p.target,
    )


def _title(p: Program, fit: Fit, target: Target | None, memory: Memory | None, more: int) -> Message:
    """Return the title of the finding: how much memory the program ``p`` (or one of its operations) needs,
    and how much a device of the target has. If one of these is unknown, that ``p`` does not fit.

    Args:
      fit: whether ``p`` fits, with the bytes.
      target: the target; None: unknown.
      memory: the compiler's byte counts; None: unknown.
      more: number of other programs of the same function that do not fit either.
    """
    name = p.function.display_name if p.function is not None else p.module or "a program"
    where = p.target or "its target"
    others = None
    if more:
        others = message("and-one-more-program" if more == 1 else "and-more-programs", n=more)
    capacity: Field = None if fit.capacity is None else Bytes(fit.capacity)
    if capacity is not None and fit.space not in (None, "hbm"):
        capacity = message("bytes-of-space", bytes=capacity, space=fit.space)
    what: dict[str, Field] = {"function": name, "target": where, "others": others}
    if fit.scoped and fit.used is not None and fit.capacity is not None:
        return message(
            "beyond-scoped-limit",
            operation=fit.largest[0].operation or "one operation",
            needed=Bytes(fit.used),
            space=fit.space,
            limit=Bytes(fit.capacity),
            **what,
        )
    if fit.used is None or fit.capacity is None or fit.used <= fit.capacity:
        has = message("device-capacity", device=_device(target), capacity=capacity) if capacity else None
        return message("ran-out-of-memory", capacity=has, **what)
    return message(
        "too-large-for-target",
        needed=_needed(fit.used, fit, memory),
        excess=Bytes(fit.used - fit.capacity),
        device=_device(target),
        capacity=capacity,
        **what,
    )


def _needed(used: int, fit: Fit, memory: Memory | None) -> Field:
    """Return the text for the memory that a program needs, ``used`` bytes, with its largest parts: ``20.3 GiB
    of temporaries``, ``91.0 GiB (temporaries 90.0 GiB)``. The parts are those that the compiler's error named
    (``fit``), or else those that the compiler counted in the finished program (``memory``)."""
    if list(fit.parts) == ["HLO temporaries"]:
        return message("bytes-of-temporaries", bytes=Bytes(used))
    known = fit.parts or (memory.parts if memory is not None else {})
    parts = sorted(known.items(), key=lambda item: -item[1])
    large = [message("bytes-of-part", part=name, bytes=Bytes(n)) for name, n in parts if 20 * n > used]
    return message("bytes-in-parts", bytes=Bytes(used), parts=Parts(tuple(large))) if large else Bytes(used)


def _device(target: Target | None) -> str | Message:
    """Return what to call a device of ``target``: ``v5e chip``, ``h100 GPU``; if a chip is two devices,
    ``tpu7x device``; ``device`` if the machine is unknown."""
    machine = MACHINES.get(target.machine) if target is not None else None
    if machine is None:
        return "device"
    kind = "GPU" if machine.platform == GPU else "chip" if machine.devices_per_chip == 1 else "device"
    return message("device-of-machine", machine=machine.name, kind=kind)


def _largest(fit: Fit) -> Iterator[tuple[Message, Frame | None]]:
    for a in fit.largest[:MOST]:
        known = a.shape or a.operation
        what = message("buffer-of", what=Parts((a.shape, a.operation), between=" ")) if known else None
        at = Frame(a.file, a.line, "") if a.file and a.line else None
        yield message("largest-buffer", bytes=Bytes(a.bytes), kind=a.kind or "buffer", what=what), at


def _size(c: Contributor) -> Message:
    if c.bytes is not None:
        size = message("bytes-on-each-device", bytes=Bytes(c.bytes))
    elif c.global_bytes is not None:
        size = message("bytes-on-all-devices", bytes=Bytes(c.global_bytes))
    else:
        size = message("size-unknown")
    if c.of == "argument":
        return message("argument-size", path=c.path or "without a name", size=size)
    return message("result-size", path=c.path or "a result", size=size)


def _advice(f: Function | None, fit: Fit, contributors: Sequence[Contributor]) -> Fix:
    arguments = [c for c in contributors if c.of == "argument"]
    if fit.scoped and fit.space == "vmem":
        kib = -(-(fit.used or 0) // 1024)
        if fit.largest[0].kind == "kernel":
            words = message("fix-kernel-limit", space=fit.space, kib=str(kib))
        else:
            words = message("fix-scoped-limit", kib=str(kib))
        return Fix(words, "raise_limit", {"xla_tpu_scoped_vmem_limit_kib": kib})
    if fit.space not in (None, "hbm"):
        return Fix(message("fix-smaller-blocks", space=fit.space), "smaller_blocks")
    held = sum(c.bytes or 0 for c in arguments)
    if fit.capacity is None or 2 * held <= fit.capacity or not arguments:
        return Fix(message("fix-smaller-pieces"), "reduce_memory")
    path = max(arguments, key=lambda c: c.bytes or 0).path
    words = message(
        "fix-shard-and-donate",
        path=path or "the largest argument",
        function=f.display_name if f is not None else "the program",
    )
    return Fix(words, "shard", {"path": path} if path else {})
