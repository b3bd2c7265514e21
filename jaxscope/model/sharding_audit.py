"""Collect the requested, the compiled and the actual sharding of arguments, results and live arrays.

A sharding is requested by jit's in_shardings and out_shardings, by a constraint
(``with_sharding_constraint``) in the program's text, or by the type of a result (mesh axes of type Explicit).
The compiled sharding is the one that the compiled program has. The actual sharding is that of the array that
the caller passed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis import sharding_audit as audit
from jaxscope.analysis.avals import aval_bytes
from jaxscope.analysis.paths import tokens
from jaxscope.analysis.sharding_audit import ARGUMENT, RESULT, Intent
from jaxscope.analysis.stablehlo.values import Value
from jaxscope.model.arrays import Group, Snapshot
from jaxscope.model.programs import trace_of
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.events import Compiled
from jaxscope.schema.keys import Frame, Leaf, OutLeaf, Sharding, table_entry

MOST_PROGRAMS = 3  # live arrays are compared with the arguments of so many latest programs of a function


def of_compilation(run: Run, c: Compilation) -> list[Intent]:
    """Return an Intent for each argument and then for each result of the program that ``c`` compiled, with
    the sharding that the user requested, the compiled one, and that of the array which the caller passed.
    Empty if ``c`` compiled nothing."""
    if c.compiled is None:
        return []
    stated = _stated(run, c, c.compiled)
    return [*_arguments(c, c.compiled, stated[0]), *_results(c, c.compiled, stated[1])]


def latest(run: Run, f: Function) -> tuple[Compilation, list[Intent]] | None:
    """Return (last compilation of ``f``, an Intent for each argument and result as in ``of_compilation``).
    None if ``f`` was never compiled.

    A compilation for an ordinary call is preferred to later ones of other kinds. The actual shardings are
    those of the latest recorded ordinary call, if it has the same argument paths."""
    compiled = [c for c in f.compilations if c.compiled is not None]
    if not compiled:
        return None
    c = next((c for c in reversed(compiled) if c.entry == "call"), compiled[-1])
    intents = of_compilation(run, c)
    after = f.compilations[f.compilations.index(c) + 1 :]
    later = [o for o in after if o.process is c.process and o.key is not None and o.entry == "call"]
    if not later or c.key is None or later[-1].key is None:
        return c, intents
    key = later[-1].key
    if [leaf.path for leaf in key.arguments] != [leaf.path for leaf in c.key.arguments]:
        return c, intents
    arguments = [
        msgspec.structs.replace(i, actual=_actual(leaf, key.shardings), committed=leaf.committed)
        for i, leaf in zip(intents, key.arguments, strict=False)
    ]
    return c, arguments + intents[len(arguments) :]


def at_stake(c: Compilation) -> bool:
    """Return whether the requested, compiled and actual shardings of ``c`` can differ. They can if the
    program runs on several devices, the user requested a sharding, or an argument is on other devices than
    the program. False if ``c`` compiled nothing."""
    if c.compiled is None:
        return False
    if len(devices(c) or ()) > 1 or (c.lowered is not None and c.lowered.asked):
        return True
    here = c.compiled.devices
    return here is not None and c.key is not None and any(s.devices != here for s in c.key.shardings)


def on_one_device(c: Compilation) -> bool:
    """Return whether the program of ``c`` and all its arguments are on the same single device. False if this
    is unknown."""
    here = devices(c)
    known = c.key is not None and here is not None and len(here) == 1
    return known and c.key is not None and all(sh.device_ids(s.devices) == here for s in c.key.shardings)


def devices(c: Compilation) -> tuple[int, ...] | None:
    """Return the ids of the devices that the program of ``c`` runs on: ``(0, 1, 2, 3)``. None if unknown."""
    return None if c.compiled is None else sh.device_ids(c.compiled.devices)


Stated = tuple[dict[int, Value], dict[int, Value]]


def _stated(run: Run, c: Compilation, compiled: Compiled) -> Stated:
    """Return ({position: argument}, {position: result}) of the StableHLO of the program of ``c``. Positions
    are those in the caller's flat arguments and flat results. A dict is empty if the positions are unknown,
    or if the program runs on one device."""
    if len(devices(c) or ()) < 2:
        return {}, {}  # on one device there is no choice of a sharding
    lowered = run.stablehlo(c)
    if lowered is None or c.key is None or compiled.dropped_arguments is None:
        return {}, {}
    dropped = set(compiled.dropped_arguments)
    kept = [i for i in range(len(c.key.arguments)) if i not in dropped]
    users = [v for v in lowered.arguments if v.role == "user"]
    results = [v for v in lowered.results if v.role == "user"]
    arguments = dict(zip(kept, users, strict=True)) if len(kept) == len(users) else {}
    return arguments, dict(enumerate(results))


def _arguments(c: Compilation, compiled: Compiled, stated: dict[int, Value]) -> Iterator[Intent]:
    """Yield an Intent for each argument of ``c``, with its requested, compiled and actual sharding.
    ``compiled`` is the event of the compilation. ``stated`` has the arguments in the program's StableHLO, by
    position."""
    if c.key is None:
        return
    dropped = set(compiled.dropped_arguments or ())
    for i, leaf in enumerate(c.key.arguments):
        by: str | None = audit.IN_SHARDINGS
        at: Frame | None = None
        asked, sharding = _from_jit(c, "asked_in", i), _compiled_argument(c, compiled, i, leaf)
        if asked is None:
            asked, by, at = _constrained(stated.get(i), compiled, sharding)
        intent = Intent(
            path=leaf.path,
            of=ARGUMENT,
            shape=_sizes(leaf.shape),
            dtype=leaf.dtype,
            bytes=aval_bytes(leaf.shape, leaf.dtype),
            asked=asked,
            by=by,
            asked_at=at,
            compiled=sharding,
            actual=_actual(leaf, c.key.shardings) if c.entry == "call" else None,
            committed=leaf.committed,
            dropped=i in dropped,
        )
        one_use = i in stated and stated[i].also_without
        if by == audit.CONSTRAINT and (one_use or audit.disagreement(intent) is None):
            # A constraint that gathers or reshards the argument is about one use of the argument, as is one
            # that splits an argument which the program also uses whole. It does not request a sharding of the
            # argument itself.
            asked = asked if audit.agrees(asked, intent.compiled, intent.shape) else None
            intent = msgspec.structs.replace(
                intent, asked=asked, by=by if asked else None, asked_at=at if asked else None
            )
        yield intent


def _constrained(
    value: Value | None, compiled: Compiled, sharding: Sharding | None
) -> tuple[Sharding, str, Frame | None] | tuple[None, None, None]:
    """Return (requested sharding, CONSTRAINT, user's line) for the sharding constraint on ``value``, an
    argument or result in the program's StableHLO (None: unknown). All three are None if there is no
    constraint, or if its open dimensions (``P.UNCONSTRAINED``) permit the sharding in the compiled program.

    Args:
      compiled: the event of the program's compilation.
      sharding: the sharding of ``value`` in the compiled program; None: unknown.
    """
    if value is None or value.asked is None:
        return None, None, None
    if audit.left_open(value.asked, sharding, len(value.shape or ())):
        return None, None, None
    kind = None if sharding is None else sharding.memory_kind
    return audit.of_spec(value.asked, compiled.devices, kind), audit.CONSTRAINT, value.asked_at


def _compiled_argument(c: Compilation, compiled: Compiled, i: int, leaf: Leaf) -> Sharding | None:
    """Return the sharding that the flat argument number ``i`` of ``c`` has in the compiled program. None if
    unknown. ``compiled`` is the event of the compilation. ``leaf`` is the argument in the cache key."""
    if i < len(compiled.in_sharding_of):
        return table_entry(compiled.in_shardings, compiled.in_sharding_of[i])
    ids = sh.device_ids(compiled.devices)
    if ids is None or len(ids) != 1 or i in (compiled.dropped_arguments or ()):
        return None
    return _single(c, ids[0], leaf.memory_kind)


def _single(c: Compilation, device: int, memory_kind: str | None) -> Sharding | None:
    """Return a SingleDeviceSharding as a recorded Sharding, on the device with the id ``device`` and in its
    memory ``memory_kind`` (``pinned_host``). None if the platform of the process of ``c`` is unknown."""
    backend = c.process.backend
    if backend is None or not backend.platform:
        return None
    text = f"{backend.platform}:{device}"
    return Sharding("SingleDeviceSharding", text, str(device), None, None, memory_kind)


def _actual(leaf: Leaf, table: Sequence[Sharding]) -> Sharding | None:
    """Return the sharding of the array that the caller passed for the argument ``leaf``. None if it is
    unknown, or if the argument is not a jax.Array. ``leaf.sharding`` is an index into ``table``, the
    shardings of the cache key."""
    return table_entry(table, leaf.sharding) if leaf.type in ("jax.Array", "ArrayImpl") else None


def _results(c: Compilation, compiled: Compiled, stated: dict[int, Value]) -> Iterator[Intent]:
    """Yield an Intent for each result of ``c``, with its requested and compiled sharding. ``compiled`` is the
    event of the compilation. ``stated`` has the results in the program's StableHLO, by position. Yield
    nothing if the results are unknown."""
    traced = trace_of(c)
    out = (traced.traced.out if traced is not None and traced.traced is not None else None) or []
    shardings = [table_entry(compiled.out_shardings, i) for i in compiled.out_sharding_of]
    if len(out) != len(shardings):
        return
    stated = stated if len(stated) == len(out) else {}
    for k, (leaf, sharding) in enumerate(zip(out, shardings, strict=True)):
        by: str | None = audit.OUT_SHARDINGS
        at: Frame | None = None
        asked = _from_jit(c, "asked_out", k)
        if asked is None:
            asked, by, at = _constrained(stated.get(k), compiled, sharding)
        if asked is None and (asked := _from_type(leaf, sharding)) is not None:
            by = audit.TYPE
        yield Intent(
            path=leaf.path,
            of=RESULT,
            shape=_sizes(leaf.shape),
            dtype=leaf.dtype,
            bytes=aval_bytes(leaf.shape, leaf.dtype),
            asked=asked,
            by=by,
            asked_at=at,
            compiled=sharding,
        )


def _from_type(leaf: OutLeaf, compiled: Sharding | None) -> Sharding | None:
    """Return the sharding in the type of the result ``leaf`` (JAX's sharding in types), which counts as
    requested. None if the type has none, if not all mesh axes are of type Explicit, or if ``compiled`` is
    None. ``compiled`` is the sharding in the compiled program; it gives mesh, devices and memory kind."""
    if leaf.sharding is None or compiled is None or not compiled.mesh:
        return None
    if any(kind != "Explicit" for _, _, kind in compiled.mesh):
        return None
    spec = leaf.sharding.replace("PartitionSpec", "P")
    axes = ",".join(f"{n}={s}" for n, s, _ in compiled.mesh)
    text = f"{spec} on {axes}"
    return msgspec.structs.replace(compiled, text=text, spec=spec, partition=sh.parse(spec))


def _from_jit(c: Compilation, side: str, k: int) -> Sharding | None:
    """Return the sharding that the user requested with jit for an argument or a result of the function of
    ``c``. None if the user requested none, or if this is unknown.

    Args:
      side: ``asked_in`` (jit's in_shardings, for an argument) or ``asked_out`` (jit's out_shardings, for a
        result).
      k: the position of the flat argument or result.
    """
    if c.lowered is None:
        return None
    indices: list[int | None] = getattr(c.lowered, side) or []
    return table_entry(c.lowered.asked or (), table_entry(indices, k))


def _sizes(shape: Sequence[int | str] | None) -> tuple[int, ...] | None:
    """Return ``shape`` as a tuple of ints. None if ``shape`` is None (unknown) or has symbolic dimensions."""
    known = tuple(d for d in shape or () if isinstance(d, int) and d >= 0)
    return known if shape is not None and len(known) == len(shape) else None


Line = tuple[str, int]
Aval = tuple[tuple[int, ...] | None, str | None]


class OfArrays:
    """Finds, for live arrays, the sharding that the user requested and the sharding in the compiled program.

    An array is compared with the results of the calls at the line that created it. If this does not give both
    shardings, the array is compared with the arguments of the user's functions. A result or argument matches
    if it has the shape and dtype of the array, and no other sharding. Of several matches, only those count
    whose paths have the longest common end with the array's path. A sharding is unknown if these matches
    disagree about it.

    Args:
      looks: snapshots (lists of the live arrays) that have the arrays.
    """

    def __init__(self, run: Run, looks: Iterable[Snapshot]) -> None:
        self._results: dict[tuple[Line, Aval], list[Intent]] = {}
        self._arguments: dict[Aval, list[Intent]] = {}
        self._steps = functools.cache(tokens)  # the names and indices in a path
        groups = [g for look in looks for g in look.groups]
        lines = {g.origin.place for g in groups if g.origin is not None}
        avals = {_aval(g) for g in groups}
        for f in run.functions.values():
            if not f.user:
                continue
            compiled = [c for c in f.compilations if c.compiled is not None and c.entry == "call"]
            for c in compiled:
                if c.site is not None and (line := c.site.place) in lines:
                    for i in of_compilation(run, c):
                        if i.of == RESULT and (i.shape, i.dtype) in avals:
                            self._results.setdefault((line, (i.shape, i.dtype)), []).append(i)
            for c in compiled[-MOST_PROGRAMS:]:
                if c.key is not None and any((_sizes(a.shape), a.dtype) in avals for a in c.key.arguments):
                    for i in of_compilation(run, c):
                        if i.of == ARGUMENT and (i.shape, i.dtype) in avals:
                            self._arguments.setdefault((i.shape, i.dtype), []).append(i)

    def of(self, g: Group) -> tuple[Sharding | None, Sharding | None]:
        """Return (the sharding that the user requested, the sharding in the compiled program) for the arrays
        of ``g``. Each is None if it is unknown. The requested one is also None if the user requested none."""
        aval = _aval(g)
        asked, compiled = None, None
        if g.origin is not None:
            results = self._results.get((g.origin.place, aval), [])
            matches = [i for i in results if i.compiled is None or i.compiled == g.sharding]
            asked, compiled = self._agreed(g, matches)
        if g.path is not None and (asked is None or compiled is None):
            same = [i for i in self._arguments.get(aval, []) if i.actual and i.actual == g.sharding]
            matches = [i for i in same if self._common(g.path, i.path)]
            a, b = self._agreed(g, matches)
            asked, compiled = asked or a, compiled or b
        return asked, compiled

    def _agreed(self, g: Group, matches: Sequence[Intent]) -> tuple[Sharding | None, Sharding | None]:
        """Return (requested sharding, compiled sharding) of the best ``matches``, arguments or results that
        may be the arrays of ``g``: those whose paths have the longest common end with that of ``g``. A
        sharding that differs between the best matches is None."""
        ends = [self._common(g.path or "", i.path) for i in matches]
        best = [i for i, n in zip(matches, ends, strict=True) if n == max(ends)]
        if not best:
            return None, None
        asked = best[0].asked if all(i.asked == best[0].asked for i in best) else None
        compiled = best[0].compiled if all(i.compiled == best[0].compiled for i in best) else None
        return asked, compiled

    def _common(self, a: str, b: str) -> int:
        """Return how many names and indices the paths ``a`` and ``b`` have in common at their ends. ``[*]``
        matches any index. Example: ``state.params['w']`` and ``opt.params['w']`` -> 2."""
        n = 0
        for x, y in zip(reversed(self._steps(a)), reversed(self._steps(b)), strict=False):
            if x != y and not ("[*]" in (x, y) and x[:1] == y[:1] == "["):
                break
            n += 1
        return n


def _aval(g: Group) -> Aval:
    """Return (shape, dtype) of the arrays of ``g``; the shape is None if it is not known in numbers."""
    return _sizes(g.shape), g.dtype
