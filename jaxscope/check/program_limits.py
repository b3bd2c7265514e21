"""Report programs of the user's functions that exceed a limit on memory, constants or communication. The
programs were compiled in the run, or for a target (a machine that need not exist here).

If a figure is unknown, its limit cannot be checked; this is reported as a note (JX901).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis import memory_fit
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.hlo import branches
from jaxscope.analysis.hlo.collectives import Collective
from jaxscope.check.gate import Part, within
from jaxscope.check.limits import ANY, Limits
from jaxscope.check.unknown import unchecked_note
from jaxscope.log.jobs import EXHAUSTED
from jaxscope.model import metrics, target_programs
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import merging
from jaxscope.schema.findings import CERTAIN, ERROR, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame, Key, Memory, Sharding, table_entry
from jaxscope.schema.messages import Bytes, Field, Message, Parts, Words, message

COLLECTIVES, MEMORY, CONSTANTS = "JX491", "JX591", "JX592"
MOST = 3  # arguments, constants or collectives that are named in a title


class Limited(msgspec.Struct, frozen=True):
    """One program, with the figures that can be limited.

    Attributes:
      compilation: the first compilation of the program.
      name: the program's name in messages: ``train_step#2 for v5e:4x4``, where 2 is the number of the
        compilation.
      memory: the bytes of arguments, results and temporaries on one device.
      peak: peak memory in bytes on one device; None: unknown.
      target: the target for which the program was compiled; None: the devices of the run.
    """

    compilation: Compilation
    program: Program | None
    name: Words
    memory: Memory
    peak: int | None
    target: str | None = None

    def finding(
        self,
        code: str,
        title: Words,
        fix: Message,
        source: Frame | None = None,
        evidence: Sequence[Words] = (),
    ) -> Finding:
        """Return an error that says that this program exceeds a limit.

        Args:
          code: the code of the finding.
          title: the figure and the limit.
          fix: what to do.
          source: the user's line that is responsible; None: the line of the call that compiled the program.
          evidence: texts about details; empty: the title is the evidence.
        """
        c = self.compilation
        source = source or c.site
        listed = [
            Evidence(text, compilation=c.id, program=c.program if self.program is None else self.program.id,
                     source=source, step=c.step)
            for text in evidence or [title]
        ]  # fmt: skip
        contexts = merging.of_target(self.target)
        return Finding(
            code, ERROR, CERTAIN, title, c.function.id, source, listed, Fix(fix), contexts=contexts
        )

    def unknown(self, text: Message) -> Finding:
        """Return a note that a limit on this program cannot be checked; ``text`` names the unknown figure."""
        return unchecked_note(text, self.compilation)


def of_programs(run: Run, f: Function, limits: Limits, part_of_run: Part | None) -> Iterator[Finding]:
    """Yield an error for each of ``limits`` that a program of the function ``f`` exceeds, and a note for each
    that cannot be checked. Programs for targets are not checked. ``part_of_run``: the compilations of a test
    or a block of code, to check only these; None: all."""
    if not limits.of_programs:
        return
    seen: set[str] = set()
    for c in within(part_of_run, f.compilations):
        if not c.reached_phases & 4 or (c.program is not None and c.program in seen):
            continue
        program = run.programs.get(c.program or "")
        if program is not None:
            seen.add(program.id)
        memory, peak = metrics.sizes(c.compiled)
        yield from _over(run, Limited(c, program, f"{f.display_name}#{run.number(c)}", memory, peak), limits)


def of_target(run: Run, f: Function, target: str, limits: Limits) -> Iterator[Finding]:
    """Yield an error for each of ``limits`` that a program of the function ``f`` for ``target`` (``v5e:4x4``)
    exceeds, and a note for each that cannot be checked. Programs for which the compiler gave no result are
    skipped."""
    if not limits.of_programs:
        return
    for p in run.retargeted.values():
        c = p.compilations[0] if p.compilations else None
        fit = target_programs.fit(run, p) if p.target == target and p.function is f else None
        if c is None or fit is None:
            continue
        memory, peak = metrics.memory_of(p, fit)
        name = message("program-for-target", program=f"{f.display_name}#{run.number(c)}", target=target)
        limited = Limited(c, p, name, memory, peak, target)
        allowed = limits
        if p.state == EXHAUSTED:
            if limits.collectives or limits.collective_bytes:
                yield limited.unknown(message("unknown-collectives-too-large", program=limited.name))
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


# -- memory ----------------------------------------------------------------------------------------


def _memory(p: Limited, limits: Limits) -> Iterator[Finding]:
    for what, limit, figure in (
        ("temporaries", limits.temp_bytes, p.memory.temp_bytes),
        ("peak", limits.peak_bytes, p.peak),
    ):
        if limit is None:
            continue
        if figure is None:
            yield p.unknown(message("unknown-memory", program=p.name, what=what))
        elif figure > limit:
            largest = _largest(p.compilation.key)
            parts = _parts(p.memory, figure if what == "peak" else None)
            if largest:
                parts.append(message("largest-arguments", arguments=_sizes(largest)))
            title = message(
                "too-much-memory-temporaries" if what == "temporaries" else "too-much-memory-peak",
                program=p.name,
                used=Bytes(figure),
                limit=Bytes(limit),
                parts=message("in-parentheses", parts=Parts(tuple(parts))) if parts else None,
            )
            yield p.finding(MEMORY, title, message("fix-use-less-memory"))


def _sizes(named: Iterable[tuple[str, int]]) -> Parts:
    return Parts(tuple(message("bytes-of-part", part=name, bytes=Bytes(n)) for name, n in named))


def _parts(memory: Memory, peak: int | None) -> list[Field]:
    """Return the parts of a program's memory as fields of a message, largest first: ``arguments 2.0 GiB``,
    ``temporaries 1.0 GiB``. With ``peak`` (bytes), further fields explain why the peak is not the sum of the
    parts."""
    known = sorted(((n, b) for n, b in memory.parts.items() if b), key=lambda p: -p[1])
    found: list[Field] = [*_sizes(known).parts]
    if peak is None:
        return found
    if memory.alias_bytes:
        found.append(message("memory-shared", bytes=Bytes(memory.alias_bytes)))
    rest = memory_fit.undivided(memory, peak)
    if rest and rest < 0:
        found.append(message("memory-not-all-at-once"))
    elif rest:
        code = message("memory-of-code", bytes=Bytes(memory.code_bytes)) if memory.code_bytes else None
        found.append(message("memory-added", bytes=Bytes(rest), code=code))
    return found


def _largest(key: Key | None) -> list[tuple[str, int]]:
    """Return (path, bytes on one device) of at most three array arguments of the call with the cache key
    ``key``, the largest first; empty if ``key`` is None."""
    sizes = [(path, part) for path, part, _ in _on_device(key) if part] if key is not None else []
    return sorted(sizes, key=lambda s: -s[1])[:MOST]


def _on_device(key: Key, c: Compilation | None = None) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield (path, bytes, copies) for each array argument of a call. ``bytes`` are on one device; ``copies``
    is the number of devices that have the same part of the array. Either is None if unknown.

    Args:
      key: the cache key of the call, with the shapes of all arguments and the shardings of each jax.Array.
      c: the compilation of the call, which may have the shardings of the other arguments, such as NumPy
        arrays; None: they are unknown.
    """
    for i, leaf in enumerate(key.arguments):
        if leaf.shape is None or leaf.dtype is None:
            continue
        whole = [d for d in leaf.shape if isinstance(d, int)]
        known = aval_bytes(leaf.shape, leaf.dtype) is not None
        sharding = table_entry(key.shardings, leaf.sharding) or _sharding_of(c, i)
        layout = sh.layout(sharding, len(whole)) if sharding is not None and known else None
        if layout is None:
            # An argument that is no jax.Array is not on a device before the call, so it is not replicated.
            yield leaf.path, None, 1 if leaf.sharding is None and sharding is None else None
            continue
        yield leaf.path, aval_bytes(sh.shard_shape(whole, layout.parts), leaf.dtype), layout.replication


def _sharding_of(c: Compilation | None, argument: int) -> Sharding | None:
    """Return the sharding that the argument with the index ``argument`` has in the program of ``c``, or else
    the sharding passed to jit for this argument (``in_shardings``). None if neither is a sharding over a
    mesh."""
    tables = []
    if c is not None and c.compiled is not None:
        tables.append((c.compiled.in_sharding_of, c.compiled.in_shardings))
    lowered = c.lowered if c is not None else None
    if lowered is not None and lowered.asked_in is not None and lowered.asked is not None:
        tables.append((lowered.asked_in, lowered.asked))
    for index, table in tables:
        found = table_entry(table, table_entry(index, argument))
        if found is not None and found.mesh is not None:
            return found
    return None


def _replicated(p: Limited, limit: int) -> Iterator[Finding]:
    """Yield an error if those arguments of the program ``p`` that other devices have copies of have more than
    ``limit`` bytes on one device; a note if this is unknown."""
    key = p.compilation.key
    if key is None:
        yield p.unknown(message("unknown-replicated-arguments", program=p.name))
        return
    arguments = list(_on_device(key, p.compilation))
    unclear = [path for path, n, copies in arguments if copies is None or (copies > 1 and n is None)]
    replicated = [
        (path, n or 0, copies) for path, n, copies in arguments if copies is not None and copies > 1
    ]
    replicated.sort(key=lambda x: -x[1])
    total = sum(n for _, n, _ in replicated)
    if total > limit:
        largest = tuple(
            message("bytes-on-devices", path=path, bytes=Bytes(n), devices=copies)
            for path, n, copies in replicated[:MOST]
        )
        title = message(
            "too-much-replicated",
            program=p.name,
            used=Bytes(total),
            limit=Bytes(limit),
            largest=Parts(largest),
        )
        yield p.finding(MEMORY, title, message("fix-shard-replicated"))
    elif unclear:
        yield p.unknown(message("unknown-replication", program=p.name, paths=", ".join(unclear[:MOST])))


def _constants(run: Run, p: Limited, limit: int) -> Iterator[Finding]:
    lowered = run.texts_of(p.program).stablehlo if p.program is not None else None
    if lowered is None:
        yield p.unknown(message("unknown-constants", program=p.name))
        return
    found = sorted(lowered.constants, key=lambda x: -(x.bytes or 0))
    total = sum(x.bytes or 0 for x in found)
    if total > limit:
        largest = _sizes((x.name or " or ".join(x.names) or x.type, x.bytes or 0) for x in found[:MOST])
        title = message(
            "too-many-constants", program=p.name, used=Bytes(total), limit=Bytes(limit), largest=largest
        )
        yield p.finding(CONSTANTS, title, message("fix-pass-constant"), found[0].source)
    elif any(x.bytes is None for x in found):
        yield p.unknown(message("unknown-constant-size", program=p.name))


# -- communication ---------------------------------------------------------------------------------


def _communication(run: Run, p: Limited, limits: Limits) -> Iterator[Finding]:
    hlo = run.texts_of(p.program).hlo if p.program is not None else None
    if hlo is None or not hlo.instructions:
        yield p.unknown(message("unknown-collectives", program=p.name))
        return
    for key, limit in limits.collectives.items():
        yield from _too_many(p, key, limit, hlo.collectives, lambda x: 1, int)
    for key, limit in limits.collective_bytes.items():
        yield from _too_many(p, key, limit, hlo.collectives, _bytes, Bytes)


def _bytes(x: Collective) -> int | None:
    """Return an upper bound on the bytes of the results of ``x`` in one call of the program: the bytes of one
    result times the number of executions. None if either number is unknown."""
    return None if x.bytes is None or x.executions is None else x.bytes * x.executions


def _too_many(
    p: Limited,
    key: str,
    limit: int,
    collectives: Sequence[Collective],
    figure: Callable[[Collective], int | None],
    amount: Callable[[int], Field],
) -> Iterator[Finding]:
    """Yield an error if the collectives of a program exceed a limit, or a note if the limit cannot be
    checked.

    Args:
      p: the program.
      key: which collectives the limit is for: a key of ``Limits.collectives``.
      limit: the largest allowed sum of ``figure``.
      collectives: the collectives of the program.
      figure: returns what one collective adds to the sum: 1, or its bytes; None: unknown.
      amount: converts a sum to a field of a message: ``int``, or ``Bytes``.
    """
    kind, _, axis = key.partition("@")
    of_kind = [x for x in collectives if kind in (ANY, x.kind)]
    meant = [x for x in of_kind if not axis or axis in (a.partition(":")[0] for a in x.axes or ())]
    unclear = [x for x in of_kind if axis and x.axes is None] + [x for x in meant if figure(x) is None]
    known = [(x, n) for x in meant if (n := figure(x)) is not None]
    # Instructions are counted in all branches of a conditional, bytes of a call only in the largest branch.
    total = branches.largest((x.branches if figure is _bytes else (), n) for x, n in known)
    what = message(
        "collectives-meant",
        kind="collectives" if kind == ANY else kind,
        axis=message("over-axes", axes=axis) if axis else None,
    )
    if total > limit:
        largest = sorted((x for x, _ in known), key=lambda x: -(_bytes(x) or x.bytes or 0))
        described = [_described(x) for x in largest]
        title = message(
            "too-many-collective-bytes" if amount is Bytes else "too-many-collectives",
            program=p.name,
            used=amount(total),
            what=what,
            limit=amount(limit),
            largest=Parts(tuple(described[:MOST]), "; "),
        )
        yield p.finding(
            COLLECTIVES, title, message("fix-less-communication"), largest[0].source, described[:5]
        )
    elif unclear:
        yield p.unknown(
            message(
                "unmeasured-collectives",
                program=p.name,
                n=len(unclear),
                what=what,
                first=_described(unclear[0]),
            )
        )


_ORIGINS = {"asked": message("collective-written"), "inserted": message("collective-inserted")}


def _described(x: Collective) -> Message:
    times = None
    if x.executions is None:
        times = message("executions-unknown")
    elif x.executions > 1:
        times = message("executions-per-call", n=x.executions)
    return message(
        "collective",
        kind=x.kind,
        axes=message("over-axes", axes=", ".join(x.axes)) if x.axes else None,
        amount=message("of-bytes", bytes=Bytes(x.bytes)) if x.bytes is not None else None,
        times=times,
        origin=_ORIGINS.get(x.origin or ""),
    )
