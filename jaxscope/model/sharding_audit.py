"""Asked, compiled, actual: of a function's arguments and results, and of live arrays.

Joins what jit was given, what the program's text states, what the compiler says it takes and gives, and how the
caller's arrays lay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis import sharding_audit as of_one
from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.paths import tokens
from jaxscope.analysis.sharding_audit import ARGUMENT, RESULT, Intent
from jaxscope.analysis.stablehlo.values import Value
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.programs import trace_of
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.events import Compiled
from jaxscope.schema.keys import Frame, Leaf, OutLeaf, Sharding

MOST_PROGRAMS = 3  # of a function, the latest: whose arguments arrays are looked for among


def of_compilation(run: Run, c: Compilation) -> list[Intent]:
    """The arguments, then the results, of the program that was compiled for ``c``; empty where none was."""
    if c.compiled is None:
        return []
    stated = _stated(run, c, c.compiled)
    return [*_arguments(c, c.compiled, stated[0]), *_results(c, c.compiled, stated[1])]


def latest(run: Run, f: Function) -> tuple[Compilation, list[Intent]] | None:
    """Of the program compiled last for a call (else ahead of time), with the arguments as they lay in the latest
    call that told."""
    compiled = [c for c in f.compilations if c.compiled is not None]
    if not compiled:
        return None
    c = next((c for c in reversed(compiled) if c.entry == "call"), compiled[-1])
    found = of_compilation(run, c)
    after = f.compilations[f.compilations.index(c) + 1 :]
    again = [o for o in after if o.process is c.process and o.key is not None and o.entry == "call"]
    if not again or c.key is None or again[-1].key is None:
        return c, found
    key = again[-1].key
    if [leaf.path for leaf in key.arguments] != [leaf.path for leaf in c.key.arguments]:
        return c, found
    arguments = [
        msgspec.structs.replace(i, actual=_lies(leaf, key.shardings), committed=leaf.committed)
        for i, leaf in zip(found, key.arguments, strict=False)
    ]
    return c, arguments + found[len(arguments) :]


def at_stake(c: Compilation) -> bool:
    """Can anything differ: several devices, a sharding that was asked for, an argument from elsewhere?"""
    if c.compiled is None:
        return False
    if len(devices(c) or ()) > 1 or (c.lowered is not None and c.lowered.asked):
        return True
    here = c.compiled.devices
    return here is not None and c.key is not None and any(s.devices != here for s in c.key.shardings)


def devices(c: Compilation) -> tuple[int, ...] | None:
    """The devices that the program of ``c`` runs on."""
    return None if c.compiled is None else sh.device_ids(c.compiled.devices)


Stated = tuple[dict[int, Value], dict[int, Value]]


def _stated(run: Run, c: Compilation, compiled: Compiled) -> Stated:
    """What the text says, by position among the caller's arguments and among the results."""
    program = run.programs.get(c.program or "")
    if program is None or len(devices(c) or ()) < 2:
        return {}, {}  # one device: there is nothing to choose
    read = run.texts_of(program).stablehlo
    if read is None or c.key is None:
        return {}, {}
    if compiled.dropped_arguments is None:
        return {}, {}
    dropped = set(compiled.dropped_arguments)
    kept = [i for i in range(len(c.key.arguments)) if i not in dropped]
    users = [v for v in read.arguments if v.role == "user"]
    results = [v for v in read.results if v.role == "user"]
    arguments = dict(zip(kept, users, strict=True)) if len(kept) == len(users) else {}
    return arguments, dict(enumerate(results))


def _arguments(c: Compilation, compiled: Compiled, stated: dict[int, Value]) -> Iterator[Intent]:
    if c.key is None:
        return
    dropped = set(compiled.dropped_arguments or ())
    for i, leaf in enumerate(c.key.arguments):
        by: str | None = None
        at: Frame | None = None
        asked = _listed(c, "asked_in", i)
        if asked is not None:
            by = of_one.IN_SHARDINGS
        elif i in stated:
            asked, by, at = _constrained(stated[i], compiled, _taken(c, compiled, i, leaf))
        found = Intent(
            path=leaf.path,
            of=ARGUMENT,
            shape=_sizes(leaf.shape),
            dtype=leaf.dtype,
            bytes=aval_bytes(leaf.shape, leaf.dtype),
            asked=asked,
            by=by,
            asked_at=at,
            compiled=_taken(c, compiled, i, leaf),
            actual=_lies(leaf, c.key.shardings) if c.entry == "call" else None,
            committed=leaf.committed,
            dropped=i in dropped,
        )
        if by == of_one.CONSTRAINT and of_one.disagreement(found) is None:
            # Gathered or turned around inside: a use of the argument, not what it is to be.
            asked = asked if of_one.agrees(asked, found.compiled, found.shape) else None
            found = msgspec.structs.replace(
                found, asked=asked, by=by if asked else None, asked_at=at if asked else None
            )
        yield found


def _constrained(
    value: Value, compiled: Compiled, made: Sharding | None
) -> tuple[Sharding, str, Frame | None] | tuple[None, None, None]:
    """What a constraint on this very value asks, how that is called, and its line."""
    rank = len(value.shape or ())
    if value.asked is None or of_one.left_open(value.asked, made, rank):
        return None, None, None
    kind = None if made is None else made.memory_kind
    return of_one.of_spec(value.asked, compiled.devices, kind), of_one.CONSTRAINT, value.asked_at


def _taken(c: Compilation, compiled: Compiled, i: int, leaf: Leaf) -> Sharding | None:
    """What the program takes an argument as."""
    if i < len(compiled.in_sharding_of):
        return _at(compiled.in_shardings, compiled.in_sharding_of[i])
    ids = sh.device_ids(compiled.devices)
    if ids is None or len(ids) != 1 or i in (compiled.dropped_arguments or ()):
        return None
    return _single(c, ids[0], leaf.memory_kind)


def _single(c: Compilation, device: int, memory_kind: str | None) -> Sharding | None:
    backend = c.process.backend
    if backend is None or not backend.platform:
        return None
    text = f"{backend.platform}:{device}"
    return Sharding("SingleDeviceSharding", text, str(device), None, None, memory_kind)


def _lies(leaf: Leaf, table: Sequence[Sharding]) -> Sharding | None:
    """Where the caller's array lay; None of anything but a jax.Array."""
    return _at(table, leaf.sharding) if leaf.type in ("jax.Array", "ArrayImpl") else None


def _results(c: Compilation, compiled: Compiled, stated: dict[int, Value]) -> Iterator[Intent]:
    traced = trace_of(c)
    out = (traced.traced.out if traced is not None and traced.traced is not None else None) or []
    shardings = [_at(compiled.out_shardings, i) for i in compiled.out_sharding_of]
    if len(out) != len(shardings):
        return
    stated = stated if len(stated) == len(out) else {}
    for k, (leaf, found) in enumerate(zip(out, shardings, strict=True)):
        by: str | None = None
        at: Frame | None = None
        asked = _listed(c, "asked_out", k)
        if asked is not None:
            by = of_one.OUT_SHARDINGS
        elif k in stated:
            asked, by, at = _constrained(stated[k], compiled, found)
        if asked is None and (asked := _typed(leaf, found)) is not None:
            by = of_one.TYPE
        yield Intent(
            path=leaf.path,
            of=RESULT,
            shape=_sizes(leaf.shape),
            dtype=leaf.dtype,
            bytes=aval_bytes(leaf.shape, leaf.dtype),
            asked=asked,
            by=by,
            asked_at=at,
            compiled=found,
        )


def _typed(leaf: OutLeaf, found: Sharding | None) -> Sharding | None:
    """Explicit sharding: the type says it. On a mesh of other axes the type's says nothing."""
    if leaf.sharding is None or found is None or not found.mesh:
        return None
    if any(kind != "Explicit" for _, _, kind in found.mesh):
        return None
    text = leaf.sharding.replace("PartitionSpec", "P")
    axes = ",".join(f"{n}={s}" for n, s, _ in found.mesh)
    return Sharding(
        "NamedSharding", f"{text} on {axes}", found.devices, found.mesh, text, found.memory_kind
    )  # fmt: skip


def _listed(c: Compilation, side: str, k: int) -> Sharding | None:
    """What jit was given for the k-th argument or result."""
    if c.lowered is None:
        return None
    indices: list[int | None] = getattr(c.lowered, side) or []
    return _at(c.lowered.asked or (), indices[k]) if k < len(indices) else None


def _at(table: Sequence[Sharding], index: int | None) -> Sharding | None:
    return table[index] if index is not None and 0 <= index < len(table) else None


def _sizes(shape: Sequence[int | str] | None) -> tuple[int, ...] | None:
    known = tuple(d for d in shape or () if isinstance(d, int) and d >= 0)
    return known if shape is not None and len(known) == len(shape) else None


Line = tuple[str, int]
Aval = tuple[tuple[int, ...] | None, str | None]


class OfArrays:
    """What was asked of live arrays and what their program made them.

    An array made on the line of a call is a result of that call, where shape, dtype and sharding say so, told from
    others by the end of its path; any other array is looked for among the arguments of the user's functions, by the
    end of its path too. Where several could be it and differ, nothing is said.
    """

    def __init__(self, run: Run, looks: Iterable[Snapshot]) -> None:
        self._results: dict[tuple[Line, Aval], list[Intent]] = {}
        self._arguments: dict[Aval, list[Intent]] = {}
        self._tokens: dict[str, list[str]] = {}
        groups = [g for look in looks for g in look.groups]
        lines = {(g.origin.file, g.origin.line) for g in groups if g.origin is not None}
        avals = {_aval(g) for g in groups}
        for f in run.functions.values():
            if not f.user:
                continue
            compiled = [c for c in f.compilations if c.compiled is not None and c.entry == "call"]
            for c in compiled:
                if c.site is not None and (line := (c.site.file, c.site.line)) in lines:
                    for i in of_compilation(run, c):
                        if i.of == RESULT and (i.shape, i.dtype) in avals:
                            self._results.setdefault((line, (i.shape, i.dtype)), []).append(i)
            for c in compiled[-MOST_PROGRAMS:]:
                if c.key is not None and any((_sizes(a.shape), a.dtype) in avals for a in c.key.arguments):
                    for i in of_compilation(run, c):
                        if i.of == ARGUMENT and (i.shape, i.dtype) in avals:
                            self._arguments.setdefault((i.shape, i.dtype), []).append(i)

    def of(self, g: Group) -> tuple[Sharding | None, Sharding | None]:
        """(asked, compiled) of a group's arrays; None where it is not known or nothing was asked."""
        aval = _aval(g)
        asked, compiled = None, None
        if g.origin is not None:
            made = self._results.get(((g.origin.file, g.origin.line), aval), [])
            found = [i for i in made if i.compiled is None or i.compiled == g.sharding]
            asked, compiled = self._agreed(g, found)
        if g.path is not None and (asked is None or compiled is None):
            taken = [
                i for i in self._arguments.get(aval, []) if i.actual is not None and i.actual == g.sharding
            ]
            near = [i for i in taken if self._common(g.path, i.path)]
            a, b = self._agreed(g, near)
            asked, compiled = asked or a, compiled or b
        return asked, compiled

    def _agreed(self, g: Group, found: Sequence[Intent]) -> tuple[Sharding | None, Sharding | None]:
        """What all say whose path ends most like the group's."""
        ends = [self._common(g.path or "", i.path) for i in found]
        best = [i for i, n in zip(found, ends, strict=True) if n == max(ends)]
        if not best:
            return None, None
        asked = best[0].asked if all(i.asked == best[0].asked for i in best) else None
        compiled = best[0].compiled if all(i.compiled == best[0].compiled for i in best) else None
        return asked, compiled

    def _common(self, a: str, b: str) -> int:
        """How many steps two paths have in common at their ends; ``[*]`` is any index."""
        n = 0
        for x, y in zip(reversed(self._steps(a)), reversed(self._steps(b)), strict=False):
            if x != y and not ("[*]" in (x, y) and x[:1] == y[:1] == "["):
                break
            n += 1
        return n

    def _steps(self, path: str) -> list[str]:
        known = self._tokens.get(path)
        if known is None:
            known = self._tokens[path] = tokens(path)
        return known


def _aval(g: Group) -> Aval:
    return _sizes(g.shape), g.dtype
