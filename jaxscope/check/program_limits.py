"""What one program takes of a device, and what it communicates, against limits: of the user's functions, as they ran
and as they were compiled for machines that are not there.

A figure that is not known is told as such (JX901), never taken for kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from jaxscope.analysis import fitting
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.programs import peak_bytes
from jaxscope.check.baseline.figures import size as mib
from jaxscope.check.gate import Part, not_known, within
from jaxscope.check.limits import ANY, Limits
from jaxscope.log.jobs import EXHAUSTED
from jaxscope.model import retargeted
from jaxscope.model.names import number_of
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.programs import name_of
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding
from jaxscope.schema.keys import Frame, Key, Memory, Sharding

COLLECTIVES, MEMORY, CONSTANTS = "JX491", "JX591", "JX592"
MOST = 3  # contributors named


def programs(run: Run, f: Function, limits: Limits, part: Part | None) -> Iterator[Finding]:
    """Each program of ``f`` once, where it has more than ``limits`` allow."""
    if not limits.of_programs:
        return
    seen: set[str] = set()
    for c in within(part, f.compilations):
        if not c.reached_phases & 4 or (c.program is not None and c.program in seen):
            continue
        program = run.programs.get(c.program or "")
        if program is not None:
            seen.add(program.id)
        memory = c.compiled.memory if c.compiled is not None else None
        peak = peak_bytes(memory) if memory is not None else None
        made = Made(c, program, c.program, f"{name_of(f)}#{number_of(run, c)}", memory, peak)
        yield from _held_to(run, made, limits)


def of_target(run: Run, f: Function, target: str, limits: Limits) -> Iterator[Finding]:
    """Each program of ``f`` for ``target`` once, where it has more than ``limits`` allow.

    Of one that does not fit the peak is what its compiler says that it would take. What was not compiled is not
    told here.
    """
    if not limits.of_programs:
        return
    for p in run.retargeted.values():
        c = p.compilations[0] if p.compilations else None
        if p.target != target or p.function is not f or c is None or p.made is None:
            continue
        fit = retargeted.fit(run, p)
        if fit is None:
            continue
        made = Made(
            c, p, p.id, f"{name_of(f)}#{number_of(run, c)} for {target}", p.made.memory, fit.used, target
        )
        allowed = limits
        if p.made.outcome == EXHAUSTED:
            made = msgspec.structs.replace(made, memory=Memory(temp_bytes=fit.temporaries))
            if limits.collectives or limits.collective_bytes:
                yield not_known(f"{made.name}: its collectives are not known, it does not fit", c)
            allowed = msgspec.structs.replace(limits, collectives={}, collective_bytes={})
        yield from _held_to(run, made, allowed)


class Made(msgspec.Struct, frozen=True):
    """One program with the figures that limits are about; ``target``: None where it is the one that ran."""

    compilation: Compilation
    program: Program | None
    id: str | None
    name: str
    memory: Memory | None
    peak: int | None
    target: str | None = None


def _held_to(run: Run, m: Made, limits: Limits) -> Iterator[Finding]:
    yield from _memory(m, limits)
    if limits.replicated_bytes is not None:
        yield from _replicated(m, limits.replicated_bytes)
    if limits.constant_bytes is not None:
        yield from _constants(run, m, limits.constant_bytes)
    if limits.collectives or limits.collective_bytes:
        yield from _communication(run, m, limits)


def _finding(
    code: str, m: Made, title: str, fix: str, source: Frame | None = None, evidence: Sequence[str] = ()
) -> Finding:
    c = m.compilation
    source = source or c.site
    return Finding(
        code, ERROR, CERTAIN, title, c.function.id, source,
        [
            Evidence(text, compilation=c.id, program=m.id, source=source, step=c.step)
            for text in evidence or [title]
        ],
        fix,
        targets=[m.target] if m.target is not None else [],
    )  # fmt: skip


def _memory(m: Made, limits: Limits) -> Iterator[Finding]:
    c, name, memory = m.compilation, m.name, m.memory
    for what, limit, figure in (
        ("temporaries", limits.temp_bytes, memory.temp_bytes if memory is not None else None),
        ("at its peak", limits.peak_bytes, m.peak),
    ):
        if limit is None:
            continue
        if figure is None:
            yield not_known(f"{name}: how many bytes it takes ({what}) is not known", c)
        elif figure > limit:
            known = memory if memory is not None else Memory()
            parts = {
                "arguments": known.argument_bytes,
                "results": known.output_bytes,
                "temporaries": known.temp_bytes,
            }
            listed = ", ".join(
                f"{n} {mib(b)}" for n, b in sorted(parts.items(), key=lambda p: -(p[1] or 0)) if b
            )
            if what != "temporaries":
                listed += _rest(known, figure)
            largest = _largest(c.key)
            most = f"the largest {', '.join(f'{path} {mib(b)}' for path, b in largest)}" if largest else ""
            whole = ", ".join(filter(None, (listed, most)))
            takes = (
                f"takes {mib(figure)} of {what}" if what == "temporaries" else f"takes {mib(figure)} {what}"
            )
            yield _finding(
                MEMORY, m, f"{name} {takes} on a device, {mib(limit)} allowed{f' ({whole})' if whole else ''}",
                "donate what is not needed after the call, shard or rematerialise (jax.checkpoint) what is largest",
            )  # fmt: skip


def _rest(memory: Memory, peak: int) -> str:
    """What the parts share, and what the compiler's own figure has beside them."""
    shared = (
        f", less {mib(memory.alias_bytes)} that arguments and results share" if memory.alias_bytes else ""
    )
    rest = fitting.undivided(memory, peak)
    if not rest:
        return shared
    if rest < 0:
        return f"{shared}, not all held at one time, as the compiler counts"
    code = f" ({mib(memory.code_bytes)} of code may be in it)" if memory.code_bytes else ""
    return f"{shared}, and {mib(rest)} that the compiler counts beside them, such as constants{code}"


def _largest(key: Key | None) -> list[tuple[str, int]]:
    """The arguments that take most of a device, with their bytes there."""
    if key is None:
        return []
    sizes = [(path, part) for path, part, _ in _on_device(key) if part]
    return sorted(sizes, key=lambda s: -s[1])[:MOST]


def _on_device(key: Key, c: Compilation | None = None) -> Iterator[tuple[str, int | None, int | None]]:
    """Each array argument: its path, the bytes of it on one device, on how many devices the same part lies.

    Args:
      c: the compilation, which says where what was no jax.Array (NumPy's) is put.
    """
    for i, leaf in enumerate(key.arguments):
        if leaf.shape is None or leaf.dtype is None:
            continue
        item = _ITEM.get(leaf.dtype)
        whole = [d for d in leaf.shape if isinstance(d, int)]
        known = item is not None and len(whole) == len(leaf.shape)
        sharding = key.shardings[leaf.sharding] if _is_index(leaf.sharding, key) else None  # type: ignore[index]
        sharding = sharding or _put(c, i)
        layout = sh.layout(sharding, len(whole)) if sharding is not None and known else None
        if layout is None or item is None:
            # What is no jax.Array lies on no device before the call.
            yield leaf.path, None, 1 if leaf.sharding is None and sharding is None else None
            continue
        size = item
        for d in sh.shard_shape(whole, layout.parts):
            size *= d
        yield leaf.path, size, layout.replication


def _put(c: Compilation | None, argument: int) -> Sharding | None:
    """Where the program takes an argument, as it was compiled, else as jit was told; None: on one device."""
    if c is None:
        return None
    places = []
    if c.compiled is not None:
        places.append((c.compiled.in_sharding_of, c.compiled.in_shardings))
    if c.lowered is not None and c.lowered.asked_in is not None and c.lowered.asked is not None:
        places.append((c.lowered.asked_in, c.lowered.asked))
    for index, table in places:
        at = index[argument] if argument < len(index) else None
        if at is not None and 0 <= at < len(table) and table[at].mesh is not None:
            return table[at]
    return None


def _is_index(index: int | None, key: Key) -> bool:
    return index is not None and 0 <= index < len(key.shardings)


_ITEM = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


def _replicated(m: Made, limit: int) -> Iterator[Finding]:
    c, name = m.compilation, m.name
    if c.key is None:
        yield not_known(f"{name}: which of its arguments are replicated is not known", c)
        return
    held = list(_on_device(c.key, c))
    unclear = [path for path, size, copies in held if copies is None or (copies > 1 and size is None)]
    copied = sorted(
        ((path, size or 0, copies or 0) for path, size, copies in held if copies is not None and copies > 1),
        key=lambda x: -x[1],
    )
    total = sum(size for _, size, _ in copied)
    if total > limit:
        some = ", ".join(f"{path} {mib(size)} on {copies} devices" for path, size, copies in copied[:MOST])
        yield _finding(
            MEMORY, m, f"{name} takes {mib(total)} of replicated arguments on a device, {mib(limit)} allowed: {some}",
            "split the largest over the mesh axis it lies whole along (PartitionSpec), or allow it",
        )  # fmt: skip
    elif unclear:
        yield not_known(f"{name}: whether {', '.join(unclear[:MOST])} is replicated is not known", c)


def _constants(run: Run, m: Made, limit: int) -> Iterator[Finding]:
    c, name = m.compilation, m.name
    texts = run.texts_of(m.program) if m.program is not None else None
    if texts is None or texts.stablehlo is None:
        yield not_known(
            f"{name}: what it took in from outside is not known, its text was not kept (--ir all)", c
        )
        return
    found = sorted(texts.stablehlo.constants, key=lambda x: -(x.bytes or 0))
    total = sum(x.bytes or 0 for x in found)
    if total > limit:
        some = ", ".join(
            f"{x.name or ' or '.join(x.names) or x.type} {mib(x.bytes or 0)}" for x in found[:MOST]
        )
        yield _finding(
            CONSTANTS, m, f"{name} took in {mib(total)} of constants, {mib(limit)} allowed: {some}",
            "pass it as an argument", found[0].source,
        )  # fmt: skip
    elif any(x.bytes is None for x in found):
        yield not_known(f"{name}: the size of a constant is not known", c)


def _communication(run: Run, m: Made, limits: Limits) -> Iterator[Finding]:
    c, name = m.compilation, m.name
    texts = run.texts_of(m.program) if m.program is not None else None
    if texts is None or texts.hlo is None or not texts.hlo.instructions:
        yield not_known(
            f"{name}: its collectives are not known, its compiled text was not kept (--ir all)", c
        )
        return
    for key, limit in limits.collectives.items():
        yield from _held(m, key, limit, texts.hlo.collectives, lambda x: 1, str)
    for key, limit in limits.collective_bytes.items():
        yield from _held(m, key, limit, texts.hlo.collectives, _bytes, mib)


def _bytes(x: Collective) -> int | None:
    return None if x.bytes is None or x.executions is None else x.bytes * x.executions


def _held(
    m: Made,
    key: str,
    limit: int,
    collectives: Sequence[Collective],
    figure: Callable[[Collective], int | None],
    spell: Callable[[int], str],
) -> Iterator[Finding]:
    c, name = m.compilation, m.name
    kind, _, axis = key.partition("@")
    alike = [x for x in collectives if kind in (ANY, x.kind)]
    meant = [x for x in alike if not axis or (x.axes is not None and any(_axis(a) == axis for a in x.axes))]
    unclear = [x for x in alike if axis and x.axes is None]
    known = [(x, n) for x in meant if (n := figure(x)) is not None]
    unclear += [x for x in meant if figure(x) is None]
    total = sum(n for _, n in known)
    what = f"{'collectives' if kind == ANY else kind}{f' over {axis}' if axis else ''}"
    if total > limit:
        most = sorted(known, key=lambda k: -(_bytes(k[0]) or k[0].bytes or 0))
        told = [_told(x) for x, _ in most]
        unit = " in a call" if spell is mib else ""
        yield _finding(
            COLLECTIVES, m,
            f"{name}: {spell(total)} of {what}{unit}, {spell(limit)} allowed; the largest: {'; '.join(told[:MOST])}"
            if spell is mib else
            f"{name} has {spell(total)} {what}, {spell(limit)} allowed; the largest: {'; '.join(told[:MOST])}",
            "give the operands of this line shardings that agree, or allow it",
            most[0][0].source, told[:5],
        )  # fmt: skip
    elif unclear:
        yield not_known(f"{name}: {len(unclear):,} of its {what} cannot be measured: {_told(unclear[0])}", c)


def _axis(text: str) -> str:
    """``data`` for the sub-axis ``data:(1)2``."""
    return text.partition(":")[0]


def _told(x: Collective) -> str:
    axes = f" over {', '.join(x.axes)}" if x.axes else ""
    size = f" of {mib(x.bytes)}" if x.bytes is not None else ""
    times = f", {x.executions:,} times a call" if x.executions is not None and x.executions > 1 else ""
    times = ", how often is not known" if x.executions is None else times
    asked = {"asked": ", asked for", "inserted": ", inserted by the partitioner"}.get(x.origin or "", "")
    return f"{x.kind}{axes}{size}{times}{asked}"
