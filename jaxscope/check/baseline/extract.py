"""Extract from a run the figures that a baseline file keeps, and the records of the run that these figures
come from. Findings refer to these records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.programs import Texts
from jaxscope.check.baseline import schema
from jaxscope.model import causes, metrics, transfers
from jaxscope.model.diff import programs_of
from jaxscope.model.metrics import ProgramMetrics
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.model.stable_names import Names, clean, pattern
from jaxscope.model.transfers import Transfer
from jaxscope.schema.causes import Cause
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame


class ProgramEntry(msgspec.Struct):
    """One program to compare with a baseline: its figures (``metrics``), its record in the run (``program``),
    and its parsed StableHLO and HLO (``texts``)."""

    metrics: ProgramMetrics
    program: Program
    texts: Texts


class FunctionEntry(msgspec.Struct):
    """One function to compare with a baseline: its figures, and the records that they come from.

    Attributes:
      saved: the figures as a baseline file keeps them.
      programs: the function's programs (compiled, or only lowered), in the order in which they first
        occurred.
      recompiles: cause as in ``saved.causes`` (``shape of batch['x'] (trace)``) -> the recompiles with this
        cause, as (compilation, cause).
    """

    saved: schema.Function
    function: Function
    programs: list[ProgramEntry]
    recompiles: dict[str, list[tuple[Compilation, Cause]]]


class Extracted(msgspec.Struct):
    """The figures of a run that a baseline file keeps, and the records that they come from.

    Attributes:
      baseline: the figures as a baseline file keeps them.
      run: the run.
      names: gives each of the user's functions in the run a name that stays the same when lines move:
        ``train.py::step``.
      functions: name (``train.py::step``) -> function.
      eager: name of the calling function -> operation outside jit or library function -> its compilations.
      findings: key in a baseline file (``JX101 train.py::step batch['x']``) -> findings of the rules with
        this key.
      transfers: name of the function that requests copies -> kind and direction (``float, device_to_host``)
        -> the copies.
    """

    baseline: schema.Baseline
    run: Run
    names: Names
    functions: dict[str, FunctionEntry]
    eager: dict[str, dict[str, list[Compilation]]]
    findings: dict[str, list[Finding]]
    transfers: dict[str, dict[str, list[Transfer]]]


def extract(run: Run, findings: Iterable[Finding], roots: Sequence[str] = ()) -> Extracted:
    """Return what a baseline file keeps of ``run`` and of ``findings`` (findings of the rules), with the
    records that the figures come from. Findings that depend on measured seconds (``Finding.by_chance``) are
    omitted. File names become relative to the directories ``roots``; empty: to the directory in which the
    program ran."""
    main = run.main
    started = main.started if main is not None else None
    cwd = started.cwd if started is not None else ""
    names = Names((f for f in run.functions.values() if f.user), roots or [cwd], cwd)
    entries = {
        names.by_id[f.id]: _function(run, f)
        for f in run.functions.values()
        if f.user and (f.traces or f.lowerings or f.compiled)
    }
    eager = _eager(run, names)
    by_key = grouped((finding_key(names, run, f), f) for f in findings if not f.by_chance)
    moved = _transfers(run, names)
    copies = {
        where: {kind: sum(t.count or 0 for t in members) for kind, members in kinds.items()}
        for where, kinds in moved.items()
    }
    baseline = schema.Baseline(
        jax=minor(started.jax) if started is not None else None,
        platform=run.platform,
        devices={clean(kind): n for kind, n in sorted(Counter(d.kind for d in run.devices).items())},
        tolerance=dict(metrics.TOLERANCE),
        functions={name: e.saved for name, e in entries.items()},
        eager={where: {op: len(members) for op, members in ops.items()} for where, ops in eager.items()},
        findings={key: len(members) for key, members in by_key.items()},
        steps=transfers.steps(run, main) if main is not None else None,
        transfers=copies if transfers.counted(run) else None,
    )
    return Extracted(baseline, run, names, entries, eager, by_key, moved)


def minor(version: str | None) -> str | None:
    """Return the first two numbers of a version: ``0.10.2`` -> ``0.10``. None if ``version`` is None or
    empty."""
    return None if not version else ".".join(clean(version).split(".")[:2])


def finding_key(names: Names, run: Run, f: Finding) -> str:
    """Return the key of the finding ``f`` in a baseline file: ``JX101 train.py::step batch['x']``. Its parts
    are the code, the user's function (or else the function that contains the line of ``f``), and the
    argument. Parts that ``f`` does not have are left out. The key stays the same when lines move."""
    where = names.function(run.functions.get(f.function or ""))
    if where is None and f.source is not None:
        where = f"{names.file(f.source.file)}::{clean(f.source.function)}"
    return " ".join(filter(None, (f.code, where, pattern(f.path) if f.path else None)))


def cause_key(cause: Cause) -> str:
    """Return the key of the cause of a recompile in a baseline file: ``shape of batch['x'] (trace)``. The
    word in parentheses is the first of JAX's caches that missed. The key has no values such as shapes."""
    return f"{cause.kind}{f' of {clean(cause.path)}' if cause.path else ''} ({cause.level})"


def _caller(names: Names, site: Frame) -> str:
    return f"{names.file(site.file)}::{clean(site.function.replace('.<locals>', ''))}"


def _eager(run: Run, names: Names) -> dict[str, dict[str, list[Compilation]]]:
    """Return what the user's lines compiled outside jit (operations and library functions): name of the
    calling function (``train.py::main``) -> name of the operation -> its compilations."""
    found: dict[str, dict[str, list[Compilation]]] = {}
    for f in run.functions.values():
        for c in f.compilations if not f.user else ():
            if c.site is not None and c.reached_phases & 4 and c.entry == "call":
                found.setdefault(_caller(names, c.site), {}).setdefault(clean(f.seen.name), []).append(c)
    return found


def _transfers(run: Run, names: Names) -> dict[str, dict[str, list[Transfer]]]:
    """Return the copies between host and devices that the user's lines requested: name of the requesting
    function (``train.py::main``) -> kind and direction (``float, device_to_host``) -> copies. Copies without
    a count, and copies that no expression of the user requests, are skipped."""
    found: dict[str, dict[str, list[Transfer]]] = {}
    for t in transfers.transfers(run):
        if t.source is not None and t.count and t.kind not in transfers.NOT_ASKED:
            kinds = found.setdefault(_caller(names, t.source), {})
            kinds.setdefault(clean(f"{t.kind}, {t.direction}"), []).append(t)
    return found


def _function(run: Run, f: Function) -> FunctionEntry:
    recompiles: dict[str, list[tuple[Compilation, Cause]]] = {}
    for c in causes.recompiles(f, run):
        cause = causes.of(run, c)[0]
        recompiles.setdefault(cause_key(cause), []).append((c, cause))
    programs = [ProgramEntry(metrics.of(run, p), p, run.texts_of(p)) for p in programs_of(run, f)]
    saved = schema.Function(
        traces=f.traces,
        lowerings=f.lowerings,
        compilations=f.compiled,
        causes={key: len(members) for key, members in recompiles.items()},
        programs=[p.metrics.saved for p in programs],
    )
    return FunctionEntry(saved, f, programs, recompiles)
