"""A run as the facts that a baseline pins, and the way back from each fact to the record it was read from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.analysis.hlo.program import Program as Compiled
from jaxscope.analysis.programs import Texts, peak_bytes
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.check.baseline import schema
from jaxscope.check.baseline.names import Names, clean, pattern, root
from jaxscope.model import causes, transfers
from jaxscope.model.diff import programs_of
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.model.transfers import Transfer
from jaxscope.schema.findings import Cause, Finding
from jaxscope.schema.keys import Key, Sharding


class Made(msgspec.Struct):
    """One program of the run beside its facts."""

    facts: schema.Program
    program: Program
    texts: Texts


class Entry(msgspec.Struct):
    """One function of the run beside its facts."""

    facts: schema.Function
    function: Function
    programs: list[Made]
    caused: dict[str, list[tuple[Compilation, Cause]]]  # as in ``facts.causes``


class Recorded(msgspec.Struct):
    """``baseline`` is what would be written; the rest leads back, by the same names."""

    baseline: schema.Baseline
    run: Run
    names: Names
    functions: dict[str, Entry]
    eager: dict[str, dict[str, list[Compilation]]]
    findings: dict[str, list[Finding]]
    transfers: dict[str, dict[str, list[Transfer]]]


def read(run: Run, findings: Iterable[Finding], roots: Sequence[str] = ()) -> Recorded:
    """The facts of ``run``. ``roots``: directories that files are named from; none: from where the program ran.

    Where it ran is no part of a name else: the same program started in another directory has the same names.
    """
    main = run.main
    started = main.started if main is not None else None
    cwd = started.cwd if started is not None else ""
    names = Names((f for f in run.functions.values() if f.user), roots or [cwd], cwd)
    entries = {
        names.by_id[f.id]: _entry(run, f)
        for f in run.functions.values()
        if f.user and (f.traces or f.lowerings or f.compiled)
    }
    eager = _eager(run, names)
    grouped = _findings(run, names, findings)
    moved = _transfers(run, names)
    found = schema.Baseline(
        jax=minor(started.jax) if started is not None else None,
        platform=run.platform,
        devices={clean(kind): n for kind, n in sorted(Counter(d.kind for d in run.devices).items())},
        tolerance=dict(schema.TOLERANCE),
        functions={name: e.facts for name, e in entries.items()},
        eager={where: {op: len(members) for op, members in ops.items()} for where, ops in eager.items()},
        findings={key: len(members) for key, members in grouped.items()},
        steps=transfers.steps(run, main) if main is not None else None,
        transfers={
            where: {how: sum(t.count or 0 for t in members) for how, members in ways.items()}
            for where, ways in moved.items()
        }
        if transfers.counted(run)
        else None,
    )
    return Recorded(found, run, names, entries, eager, grouped, moved)


def minor(version: str | None) -> str | None:
    """``0.10`` of ``0.10.2``."""
    return None if not version else ".".join(clean(version).split(".")[:2])


def finding_key(names: Names, run: Run, f: Finding) -> str:
    """By code, function and path: what stays when lines move."""
    where = names.function(run.functions.get(f.function or ""))
    if where is None and f.source is not None:
        where = f"{names.file(f.source.file)}::{clean(f.source.function)}"
    return " ".join(filter(None, (f.code, where, pattern(f.path) if f.path else None)))


def _findings(run: Run, names: Names, findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for f in findings:
        found.setdefault(finding_key(names, run, f), []).append(f)
    return found


def _eager(run: Run, names: Names) -> dict[str, dict[str, list[Compilation]]]:
    """What the user's own lines compiled outside jit, one operation or one function of a library at a time."""
    found: dict[str, dict[str, list[Compilation]]] = {}
    for f in run.functions.values():
        for c in f.compilations if not f.user else ():
            if c.site is not None and c.reached_phases & 4 and c.entry == "call":
                where = f"{names.file(c.site.file)}::{clean(c.site.function.replace('.<locals>', ''))}"
                found.setdefault(where, {}).setdefault(clean(f.seen.name), []).append(c)
    return found


def _transfers(run: Run, names: Names) -> dict[str, dict[str, list[Transfer]]]:
    """What the user's own lines moved, where that was counted."""
    found: dict[str, dict[str, list[Transfer]]] = {}
    for t in transfers.transfers(run):
        if t.source is not None and t.count and t.kind not in transfers.NOT_ASKED:
            where = f"{names.file(t.source.file)}::{clean(t.source.function.replace('.<locals>', ''))}"
            found.setdefault(where, {}).setdefault(clean(f"{t.kind}, {t.direction}"), []).append(t)
    return found


def _entry(run: Run, f: Function) -> Entry:
    caused: dict[str, list[tuple[Compilation, Cause]]] = {}
    for c in causes.recompilations(f):
        cause = causes.of(run, c)[0]
        caused.setdefault(cause_key(cause), []).append((c, cause))
    programs = [_made(p, run.texts_of(p)) for p in programs_of(run, f)]
    found = schema.Function(
        traces=f.traces,
        lowerings=f.lowerings,
        compilations=f.compiled,
        causes={key: len(members) for key, members in caused.items()},
        programs=[m.facts for m in programs],
    )
    return Entry(found, f, programs, caused)


def cause_key(cause: Cause) -> str:
    """``shape of batch['x'] (trace)``. Without values: a loss is another number in every run."""
    return f"{cause.kind}{f' of {clean(cause.path)}' if cause.path else ''} ({cause.level})"


def _made(p: Program, texts: Texts) -> Made:
    hlo = texts.hlo if texts.hlo is not None and texts.hlo.instructions else None
    mlir = texts.stablehlo
    key = next((c.key for c in p.compilations if c.key is not None), None)
    found = schema.Program(
        arguments={} if key is None else _arguments(key),
        collectives=None if hlo is None else _collectives(hlo.collectives),
        fusions=None if hlo is None else _fusions(hlo),
        memory=_memory(p),
        donation=None if mlir is None else _donation(mlir),
        constants=None if mlir is None else _constants(mlir),
        upcasts=None if mlir is None else _counted((f"{u.before} to {u.after}", u.count) for u in mlir.upcasts),
        products=None if mlir is None else _counted((f"{x.operands}, {x.precision}", x.count) for x in mlir.products),
        callbacks=None if mlir is None else _counted((callback_key(c.kind, c.in_loop), c.count) for c in mlir.callbacks),
        loops=None if hlo is None else _counted(("?" if x.trip_count is None else str(x.trip_count), 1) for x in hlo.loops),
        flops=None if hlo is None or hlo.matrix_flops is None else {"matrix": hlo.matrix_flops},
    )  # fmt: skip
    return Made(found, p, texts)


def _counted(things: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for name, n in things:
        found[clean(name)] += n
    return dict(found)


def callback_key(kind: str | None, in_loop: bool) -> str:
    return (kind or "callback") + (" in a loop" if in_loop else "")


def _arguments(key: Key) -> dict[str, int]:
    def text(index: int | None) -> str:
        s = key.shardings[index] if index is not None and 0 <= index < len(key.shardings) else None
        return "" if s is None else _sharding(s)

    return _counted(
        (
            f"{pattern(leaf.path)}: {short_aval(leaf.shape, leaf.dtype, leaf.weak_type)}{text(leaf.sharding)}",
            1,
        )
        for leaf in key.arguments
    )


def _sharding(s: Sharding) -> str:
    return f" {s.spec}" if s.spec else ""


def collective_key(c: Collective) -> str:
    """``all-gather over data, model``; the size of its groups where their axes are not known."""
    if c.axes is None:
        return f"{c.kind} over {f'groups of {c.group_size}' if c.group_size else 'unknown axes'}"
    return f"{c.kind} over {', '.join(map(clean, c.axes)) or 'no axis'}"


def _collectives(found: Sequence[Collective]) -> dict[str, schema.Collectives]:
    groups: dict[str, list[Collective]] = {}
    for c in found:
        groups.setdefault(collective_key(c), []).append(c)
    return {
        key: schema.Collectives(
            count=len(members),
            executions=_sum(c.executions for c in members),
            bytes=_sum(c.bytes for c in members),
            within=_counted((within(c), 1) for c in members),
        )
        for key, members in groups.items()
    }


def within(c: Collective) -> str:
    """The user's function a collective comes from."""
    return clean(c.source.function.replace(".<locals>", "")) if c.source is not None else "?"


def _sum(figures: Iterable[int | None]) -> int | None:
    total = 0
    for n in figures:
        if n is None:
            return None
        total += n
    return total


def _fusions(hlo: Compiled) -> dict[str, int]:
    return {"total": hlo.fusions.total, **hlo.fusions.by_kind, "unfused": hlo.unfused_elementwise}


def _memory(p: Program) -> dict[str, int] | None:
    memory = p.compiled.memory if p.compiled is not None else None
    if memory is None:
        return None
    known = {
        "argument": memory.argument_bytes,
        "output": memory.output_bytes,
        "temp": memory.temp_bytes,
        "peak": peak_bytes(memory),
    }
    return {name: n for name, n in known.items() if n is not None}


def _donation(mlir: Reading) -> dict[str, dict[str, int]]:
    """What was donated; what only could have been is no fact of the program."""
    found: dict[str, Counter[str]] = {}
    for d in mlir.donation:
        if d.status != "possible":
            found.setdefault(root(d.path or "?"), Counter())[d.status or "offered"] += 1
    return {name: dict(counts) for name, counts in found.items()}


def _constants(mlir: Reading) -> dict[str, int]:
    # One number in every place is stored once, however it is written.
    return _counted((constant_key(c.name, c.type), c.bytes or 0) for c in mlir.constants if not c.splat)


def constant_key(name: str | None, type: str) -> str:
    return name or f"unnamed {type}"
