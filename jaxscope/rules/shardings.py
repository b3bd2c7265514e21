"""JX503, JX504, JX508: shardings that are not what was asked for, splits that do not come out even, arguments
that lie elsewhere than the program takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from jaxscope.analysis import placement_errors
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.sharding_audit import (
    MOVED,
    NOT_AS_ASKED,
    RESULT,
    Disagreement,
    Intent,
    disagreement,
    of_spec,
    parts,
    spelled,
)
from jaxscope.model import sharding_audit
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import MIB, evidence, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding
from jaxscope.schema.keys import Frame, Sharding

R = TypeVar("R", bound=placement_errors.Refusal)
Told = tuple[Intent, Disagreement]


def differing(run: Run, kind: str) -> Iterator[tuple[Function, Compilation, list[Told]]]:
    """The user's functions with what disagrees so in their latest program, the largest first."""
    for f in run.functions.values():
        if not f.user or not any(sharding_audit.at_stake(c) for c in f.compilations):
            continue
        found = sharding_audit.latest(run, f)
        if found is None:
            continue
        told = [(i, d) for i in found[1] if (d := disagreement(i)) is not None and d.kind == kind]
        if told:
            yield f, found[0], sorted(told, key=lambda pair: -(pair[0].bytes or 0))


@rule("JX503", "not-as-asked", WARNING)
def not_as_asked(run: Run) -> Iterator[Finding]:
    yield from _died_of_mismatch(run)
    for f, c, every in differing(run, NOT_AS_ASKED):
        # An argument that is padded inside instead: JX504.
        told = [(i, d) for i, d in every if i.of == RESULT or _pad(i, d.wanted) is None]
        groups: dict[tuple[object, ...], list[Told]] = {}
        for i, d in told:
            rank = len(i.shape or ())
            key = (i.of, spelled(d.wanted, rank), spelled(d.got, rank), d.reason, d.times)
            groups.setdefault(key, []).append((i, d))
        for members in groups.values():
            i, d = members[0]
            rank = len(i.shape or ())
            lost = [_lost(i, d) for i, d in members]
            known = sum(n or 0 for n in lost)
            more = f" and {len(members) - 1} more" if len(members) > 1 else ""
            reason = f": {d.reason}" if d.reason else ""
            times = f"; {d.times:,} times the memory" if d.times is not None and d.times > 1 else ""
            verb = "are" if more else "is"
            text = (
                f"{_name(f, i)}{more} {verb} asked for as {spelled(d.wanted, rank)}, got {spelled(d.got, rank)}"
                f"{reason}{times}"
            )
            source = i.asked_at or c.site
            extra = f" ({known:,} bytes more on each device)" if known and None not in lost else ""
            yield Finding(
                code="JX503",
                severity=WARNING if known >= MIB or None in lost else NOTE,
                certainty=CERTAIN,
                title=text,
                function=f.id,
                source=source,
                evidence=[Evidence(text + extra, compilation=c.id, program=c.program, source=source)],
                fix=_pad(i, d.wanted) or "ask for what the program gives, or constrain what it is made of too",
            )  # fmt: skip


def _died_of_mismatch(run: Run) -> Iterator[Finding]:
    found = refused(run, placement_errors.Mismatch)
    if found is None:
        return
    said, source, words = found
    lies = said.got if said.got.startswith("on ") else f"as {said.got}"
    yield Finding(
        "JX503",
        ERROR,
        CERTAIN,
        f"the program died of it: an argument {said.aval} is asked for as {said.wanted}, and lies {lies}",
        None,
        source,
        [Evidence(words, source=source)],
        "jax.device_put it to the sharding that in_shardings asks for, before the call",
    )


def _name(f: Function, i: Intent) -> str:
    what = f"result {i.path}".rstrip() if i.of == RESULT else i.path
    return f"{what} of {name_of(f)}, {short_aval(i.shape, i.dtype)},"


def _lost(i: Intent, d: Disagreement) -> int | None:
    """Bytes on each device beyond those asked for."""
    rank = len(i.shape or ())
    wanted, got = parts(d.wanted, rank), parts(d.got, rank)
    if i.bytes is None or wanted is None or got is None or 0 in (*wanted, *got):
        return None
    return max(0, i.bytes // math.prod(got) - i.bytes // math.prod(wanted))


def _pad(i: Intent, wanted: Sharding) -> str | None:
    """What to pad to, where a dimension does not divide."""
    cut = parts(wanted, len(i.shape or ()))
    for k, (size, n) in enumerate(zip(i.shape or (), cut or (), strict=False)):
        if n and size % n:
            return f"pad dimension {k} from {size:,} to {-(-size // n) * n:,}, or do not split it"
    return None


def refused(run: Run, kind: type[R]) -> tuple[R, Frame | None, str] | None:
    """What JAX refused when the program died of it, at which line, in which words."""
    died = run.main.died if run.main is not None else None
    found = placement_errors.read(died.message) if died is not None else None
    if died is None or not isinstance(found, kind):
        return None
    return found, died.stack[0] if died.stack else None, died.message[:300]


@rule("JX504", "uneven-split", WARNING)
def uneven_split(run: Run) -> Iterator[Finding]:
    yield from _died_of_it(run)
    for p, f, texts in users(run):
        for u in texts.stablehlo.uneven if texts.stablehlo is not None else ():
            if u.of == RESULT:
                continue  # dropped, not padded: JX503
            size, n, k = u.shape[u.dimension], u.parts, u.dimension
            asked = spelled(of_spec(u.asked, None))
            text = (
                f"{short_aval(u.shape, u.dtype)} in {name_of(f)} is asked to be split as {asked}: dimension {k} of "
                f"{size:,} is not divisible by {n:,}, {u.padded - size:,} of {u.padded:,} are padding"
            )
            source = u.source or p.compilations[-1].site
            yield Finding(
                "JX504",
                WARNING if 20 * (u.padded - size) >= u.padded else NOTE,
                LIKELY,
                text,
                f.id,
                source,
                evidence(p, text, source),
                f"make dimension {k} a multiple of {n:,}: {u.padded:,}, with a mask for what is padding",
            )


def _died_of_it(run: Run) -> Iterator[Finding]:
    found = refused(run, placement_errors.Indivisible)
    if found is None:
        return
    said, source, words = found
    k, n, size = said.dimension, said.parts, said.size
    of = f" of {said.path}" if said.path else ""
    text = f"dimension {k}{of} is to be split {n:,} ways, and {size:,} is not divisible by {n:,}"
    yield Finding(
        "JX504",
        ERROR,
        CERTAIN,
        f"the program died of it: {text}",
        None,
        source,
        [Evidence(words, source=source)],
        f"make dimension {k} a multiple of {n:,}: {-(-size // n) * n:,}, with a mask for what is padding, or drop the rest",
    )


@rule("JX508", "moved-argument", WARNING)
def moved_argument(run: Run) -> Iterator[Finding]:
    yield from _died_apart(run)
    for f, (c, told) in moved(run):
        held = sum(i.bytes or 0 for i, _ in told)
        i, d = told[0]
        rank = len(i.shape or ())
        more = f" and {len(told) - 1} more" if len(told) > 1 else ""
        text = (
            f"{name_of(f)} takes {i.path}{more} ({mib(held)}) {_as(d.wanted, rank)}, and it lies "
            f"{_as(d.got, rank)}: moved in every such call"
        )
        yield Finding(
            "JX508",
            WARNING,
            LIKELY,  # calls on the fast path are not seen: it may have been the only one
            text,
            f.id,
            c.site,
            [Evidence(text, compilation=c.id, program=c.program, source=c.site)],
            f"jax.device_put {i.path} once, before the first call, to the sharding that {name_of(f)} takes it with",
        )


def moved(run: Run) -> Iterator[tuple[Function, tuple[Compilation, list[Told]]]]:
    """Functions that are passed at least 1 MiB in other places than they take it in."""
    for f, c, told in differing(run, MOVED):
        if sum(i.bytes or 0 for i, _ in told) >= MIB and f.calls != 1:
            yield f, (c, told)


def _died_apart(run: Run) -> Iterator[Finding]:
    found = refused(run, placement_errors.Apart)
    if found is None:
        return
    said, source, words = found
    told = ", ".join(f"{what} on {_devices(ids)}" for what, ids in said.places[:4])
    first = said.places[0][0]
    yield Finding(
        "JX508",
        ERROR,
        CERTAIN,
        f"the program died of it: one call, and its arrays lie apart: {told}",
        None,
        source,
        [Evidence(words, source=source)],
        f"jax.device_put {first} to where the others lie",
    )


def _devices(ids: str) -> str:
    numbers = [t for t in ids.replace(" ", "").split(",") if t]
    return f"device {numbers[0]}" if len(numbers) == 1 else f"{len(numbers):,} devices"


def _as(s: Sharding, rank: int) -> str:
    """``on cpu:0``, ``as P('data') over 8 devices``."""
    text = spelled(s, rank)
    ids: Sequence[int] = sh.device_ids(s.devices) or ()
    on = f" over {len(ids)} devices" if len(ids) > 1 else ""
    return text if text.startswith("on ") else f"as {text}{on}"
