"""Report programs that exceed a limit on memory, constants or communication: of the user's functions, as they
ran and as
they were compiled for a target.

A figure that is unknown is reported as such (JX901), never taken for allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import msgspec

from jaxscope.analysis import memory_fit
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.check.gate import Part, within
from jaxscope.check.limits import ANY, Limits
from jaxscope.check.unknown import not_known
from jaxscope.log.jobs import EXHAUSTED
from jaxscope.model import metrics, target_programs
from jaxscope.model.function_lookup import number_of
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.present.text import size
from jaxscope.rules import merging
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding
from jaxscope.schema.keys import Frame, Key, Memory, Sharding

COLLECTIVES, MEMORY, CONSTANTS = "JX491", "JX591", "JX592"
MOST = 3  # contributors named


class Limited(msgspec.Struct, frozen=True):
    """One program and the figures that limits are about.

    Attributes:
      program: None where it was not recorded.
      name: ``train_step#2 for v5e:4x4``.
      peak: bytes on one device.
      target: None for the program that ran.
    """

    compilation: Compilation
    program: Program | None
    name: str
    memory: Memory
    peak: int | None
    target: str | None = None

    def finding(
        self,
        code: str,
        title: str,
        fix: str,
        source: Frame | None = None,
        evidence: Sequence[str] = (),
    ) -> Finding:
        c = self.compilation
        source = source or c.site
        listed = [
            Evidence(text, compilation=c.id, program=c.program if self.program is None else self.program.id,
                     source=source, step=c.step)
            for text in evidence or [title]
        ]  # fmt: skip
        contexts = merging.of_target(self.target)
        return Finding(code, ERROR, CERTAIN, title, c.function.id, source, listed, fix, contexts=contexts)

    def unknown(self, what: str) -> Finding:
        return not_known(f"{self.name}: {what}", self.compilation)


def of_programs(run: Run, f: Function, limits: Limits, part: Part | None) -> Iterator[Finding]:
    """Report each program of ``f`` that exceeds ``limits``, once."""
    if not limits.of_programs:
        return
    seen: set[str] = set()
    for c in within(part, f.compilations):
        if not c.reached_phases & 4 or (c.program is not None and c.program in seen):
            continue
        program = run.programs.get(c.program or "")
        if program is not None:
            seen.add(program.id)
        memory, peak = metrics.sizes(c.compiled)
        yield from _over(
            run, Limited(c, program, f"{f.display_name}#{number_of(run, c)}", memory, peak), limits
        )


def of_target(run: Run, f: Function, target: str, limits: Limits) -> Iterator[Finding]:
    """Report each program of ``f`` for ``target`` that exceeds ``limits``, once.

    The peak of one that does not fit is what its compiler states. Programs that were not compiled are not
    reported.
    """
    if not limits.of_programs:
        return
    for p in run.retargeted.values():
        c = p.compilations[0] if p.compilations else None
        fit = target_programs.fit(run, p) if p.target == target and p.function is f else None
        if c is None or fit is None:
            continue
        memory, peak = metrics.memory_of(p, fit)
        limited = Limited(c, p, f"{f.display_name}#{number_of(run, c)} for {target}", memory, peak, target)
        allowed = limits
        if p.state == EXHAUSTED:
            if limits.collectives or limits.collective_bytes:
                yield limited.unknown("its collectives are unknown, because it does not fit")
            allowed = msgspec.structs.replace(limits, collectives={}, collective_bytes={})
        yield from _over(run, limited, allowed)


def _over(run: Run, limited: Limited, limits: Limits) -> Iterator[Finding]:
    yield from _memory(limited, limits)
    if limits.replicated_bytes is not None:
        yield from _replicated(limited, limits.replicated_bytes)
    if limits.constant_bytes is not None:
        yield from _constants(run, limited, limits.constant_bytes)
    if limits.collectives or limits.collective_bytes:
        yield from _communication(run, limited, limits)


# -- memory ---------------------------------------------------------------------------------------------------


def _memory(p: Limited, limits: Limits) -> Iterator[Finding]:
    for what, limit, figure in (
        ("temporaries", limits.temp_bytes, p.memory.temp_bytes),
        ("peak", limits.peak_bytes, p.peak),
    ):
        if limit is None:
            continue
        if figure is None:
            yield p.unknown(f"its memory ({what}) is unknown")
        elif figure > limit:
            used = (
                f"{size(figure)} of temporaries" if what == "temporaries" else f"{size(figure)} at its peak"
            )
            parts = _parts(p.memory, figure if what == "peak" else None)
            largest = ", ".join(f"{path} {size(n)}" for path, n in _largest(p.compilation.key))
            listed = ", ".join(filter(None, (parts, f"the largest {largest}" if largest else "")))
            yield p.finding(
                MEMORY,
                f"{p.name} uses {used} per device, {size(limit)} allowed{f' ({listed})' if listed else ''}",
                "donate what is not needed after the call, shard or rematerialize (jax.checkpoint) what is largest",
            )


def _parts(memory: Memory, peak: int | None) -> str:
    """Write the parts of the memory, largest first; with ``peak``, also what reduces or adds to their sum."""
    parts = {
        "arguments": memory.argument_bytes,
        "results": memory.output_bytes,
        "temporaries": memory.temp_bytes,
    }
    known = sorted(((n, b) for n, b in parts.items() if b), key=lambda p: -p[1])
    text = ", ".join(f"{n} {size(b)}" for n, b in known)
    if peak is None:
        return text
    if memory.alias_bytes:
        text += f", minus {size(memory.alias_bytes)} that arguments and results share"
    rest = memory_fit.undivided(memory, peak)
    if not rest:
        return text
    if rest < 0:
        return f"{text}, not all at the same time"
    code = f" ({size(memory.code_bytes)} of code may be included)" if memory.code_bytes else ""
    return f"{text}, and {size(rest)} that the compiler adds, such as constants{code}"


def _largest(key: Key | None) -> list[tuple[str, int]]:
    """Return the arguments with the most bytes on one device, and these bytes."""
    sizes = [(path, part) for path, part, _ in _on_device(key) if part] if key is not None else []
    return sorted(sizes, key=lambda s: -s[1])[:MOST]


def _on_device(key: Key, c: Compilation | None = None) -> Iterator[tuple[str, int | None, int | None]]:
    """Iterate over the array arguments: path, bytes on one device, number of devices that hold the same part.

    Args:
      c: the compilation, which has the sharding of arguments that are no jax.Array (NumPy's).
    """
    for i, leaf in enumerate(key.arguments):
        if leaf.shape is None or leaf.dtype is None:
            continue
        itemsize = _ITEMSIZE.get(leaf.dtype)
        whole = [d for d in leaf.shape if isinstance(d, int)]
        known = itemsize is not None and len(whole) == len(leaf.shape)
        index = leaf.sharding
        sharding = key.shardings[index] if index is not None and 0 <= index < len(key.shardings) else None
        sharding = sharding or _sharding_of(c, i)
        layout = sh.layout(sharding, len(whole)) if sharding is not None and known else None
        if layout is None or itemsize is None:
            # What is no jax.Array is on no device before the call.
            yield leaf.path, None, 1 if leaf.sharding is None and sharding is None else None
            continue
        yield leaf.path, itemsize * math.prod(sh.shard_shape(whole, layout.parts)), layout.replication


def _sharding_of(c: Compilation | None, argument: int) -> Sharding | None:
    """Return the sharding of an argument as compiled, else as passed to jit; None: on one device."""
    tables = []
    if c is not None and c.compiled is not None:
        tables.append((c.compiled.in_sharding_of, c.compiled.in_shardings))
    lowered = c.lowered if c is not None else None
    if lowered is not None and lowered.asked_in is not None and lowered.asked is not None:
        tables.append((lowered.asked_in, lowered.asked))
    for index, table in tables:
        at = index[argument] if argument < len(index) else None
        if at is not None and 0 <= at < len(table) and table[at].mesh is not None:
            return table[at]
    return None


_ITEMSIZE = {
    **dict.fromkeys(("bool", "int8", "uint8", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"), 1),
    **dict.fromkeys(("int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "float64", "complex64"), 8),
    "complex128": 16,
}


def _replicated(p: Limited, limit: int) -> Iterator[Finding]:
    key = p.compilation.key
    if key is None:
        yield p.unknown("which of its arguments are replicated is unknown")
        return
    arguments = list(_on_device(key, p.compilation))
    unclear = [path for path, n, copies in arguments if copies is None or (copies > 1 and n is None)]
    replicated = [
        (path, n or 0, copies) for path, n, copies in arguments if copies is not None and copies > 1
    ]
    replicated.sort(key=lambda x: -x[1])
    total = sum(n for _, n, _ in replicated)
    if total > limit:
        some = ", ".join(f"{path} {size(n)} on {copies} devices" for path, n, copies in replicated[:MOST])
        yield p.finding(
            MEMORY,
            f"{p.name} uses {size(total)} of replicated arguments per device, {size(limit)} allowed: {some}",
            "shard the largest over the mesh axis along which it is replicated (PartitionSpec), or allow more",
        )
    elif unclear:
        yield p.unknown(f"whether {', '.join(unclear[:MOST])} is replicated is unknown")


def _constants(run: Run, p: Limited, limit: int) -> Iterator[Finding]:
    lowered = run.texts_of(p.program).stablehlo if p.program is not None else None
    if lowered is None:
        yield p.unknown("its constants are unknown, because its text was not kept (--ir all)")
        return
    found = sorted(lowered.constants, key=lambda x: -(x.bytes or 0))
    total = sum(x.bytes or 0 for x in found)
    if total > limit:
        some = ", ".join(
            f"{x.name or ' or '.join(x.names) or x.type} {size(x.bytes or 0)}" for x in found[:MOST]
        )
        title = f"{p.name} captured {size(total)} of constants, {size(limit)} allowed: {some}"
        yield p.finding(CONSTANTS, title, "pass it as an argument", found[0].source)
    elif any(x.bytes is None for x in found):
        yield p.unknown("the size of a constant is unknown")


# -- communication --------------------------------------------------------------------------------------------


def _communication(run: Run, p: Limited, limits: Limits) -> Iterator[Finding]:
    hlo = run.texts_of(p.program).hlo if p.program is not None else None
    if hlo is None or not hlo.instructions:
        yield p.unknown("its collectives are unknown, because its compiled text was not kept (--ir all)")
        return
    for key, limit in limits.collectives.items():
        yield from _too_many(p, key, limit, hlo.collectives, lambda x: 1, "{total} {what}", str)
    for key, limit in limits.collective_bytes.items():
        yield from _too_many(p, key, limit, hlo.collectives, _bytes, "{total} of {what} per call", size)


def _bytes(x: Collective) -> int | None:
    return None if x.bytes is None or x.executions is None else x.bytes * x.executions


def _too_many(
    p: Limited,
    key: str,
    limit: int,
    collectives: Sequence[Collective],
    figure: Callable[[Collective], int | None],
    text: str,
    spell: Callable[[int], str],
) -> Iterator[Finding]:
    """Report that the ``figure`` of the collectives meant by ``key`` (``kind@axis``) adds up to more than
    ``limit``.
    """
    kind, _, axis = key.partition("@")
    of_kind = [x for x in collectives if kind in (ANY, x.kind)]
    meant = [x for x in of_kind if not axis or axis in (a.partition(":")[0] for a in x.axes or ())]
    unclear = [x for x in of_kind if axis and x.axes is None] + [x for x in meant if figure(x) is None]
    known = [(x, n) for x in meant if (n := figure(x)) is not None]
    total = sum(n for _, n in known)
    what = f"{'collectives' if kind == ANY else kind}{f' over {axis}' if axis else ''}"
    if total > limit:
        largest = sorted((x for x, _ in known), key=lambda x: -(_bytes(x) or x.bytes or 0))
        described = [_described(x) for x in largest]
        amount = text.format(total=spell(total), what=what)
        yield p.finding(
            COLLECTIVES,
            f"{p.name} has {amount}, {spell(limit)} allowed; the largest: {'; '.join(described[:MOST])}",
            "use the same sharding for all operands of this line, or allow more",
            largest[0].source,
            described[:5],
        )
    elif unclear:
        yield p.unknown(f"{len(unclear):,} of its {what} cannot be measured: {_described(unclear[0])}")


def _described(x: Collective) -> str:
    axes = f" over {', '.join(x.axes)}" if x.axes else ""
    amount = f" of {size(x.bytes)}" if x.bytes is not None else ""
    times = f", {x.executions:,} times per call" if x.executions is not None and x.executions > 1 else ""
    times = ", executions unknown" if x.executions is None else times
    origin = {"asked": ", written in the program", "inserted": ", inserted by the partitioner"}
    return f"{x.kind}{axes}{amount}{times}{origin.get(x.origin or '', '')}"
