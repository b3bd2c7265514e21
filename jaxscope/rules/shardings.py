"""Rules JX503 (a sharding in the compiled program differs from the one that the user requested, for example
with ``out_shardings``), JX504 (a dimension is not divisible by the mesh axes) and JX508 (each call moves an
argument to another sharding)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeVar

from jaxscope.analysis import placement_errors
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.paths import below, of_result, root
from jaxscope.analysis.sharding_audit import (
    ARGUMENT,
    CONSTRAINT,
    MOVED,
    NOT_AS_ASKED,
    RESULT,
    Disagreement,
    Intent,
    disagreement,
    of_spec,
    on_one_device,
    parts,
    spelled,
)
from jaxscope.model import causes, sharding_audit
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import MIB, MOST, about, and_more
from jaxscope.rules.placement import place_for_pmap
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, ERROR, LIKELY, NOTE, WARNING, Evidence, Finding, Fix, extended
from jaxscope.schema.keys import Frame, Partition, Sharding, same_line
from jaxscope.schema.messages import Bytes, Count, Field, Message, Names, Parts, Words, message

R = TypeVar("R", bound=placement_errors.Refusal)
Differing = tuple[Intent, Disagreement]


def disagreeing(run: Run, kind: str) -> Iterator[tuple[Function, Compilation, list[Differing]]]:
    """Yield (function, its latest compilation, differences) for each of the user's functions whose requested,
    compiled and actual shardings differ in the way ``kind``.

    A difference is a pair: the array with its shardings, and what differs. The pair of the largest array is
    first.

    Args:
      kind: ``not_as_asked``: the compiled sharding is not the requested one; ``moved``: each call moves the
        argument to another sharding.
    """
    for f in run.functions.values():
        if not f.user or not any(sharding_audit.at_stake(c) for c in f.compilations):
            continue
        found = sharding_audit.latest(run, f)
        if found is None:
            continue
        differing = [(i, d) for i in found[1] if (d := disagreement(i)) is not None and d.kind == kind]
        if differing:
            yield f, found[0], sorted(differing, key=lambda pair: -(pair[0].bytes or 0))


@rule("JX503", "not-as-asked", WARNING)
def not_as_asked(run: Run) -> Iterator[Finding]:
    """Yield findings about arguments and results whose compiled sharding is not the requested one, and about
    JAX's error for a wrong sharding."""
    yield from _died_of_mismatch(run)
    for f, c, every in disagreeing(run, NOT_AS_ASKED):
        # An argument that the program pads is reported by JX504 instead.
        unmet = [(i, d) for i, d in every if i.of == RESULT or _pad(i, d.wanted) is None]
        groups: dict[tuple[object, ...], list[Differing]] = {}
        for i, d in unmet:
            rank = len(i.shape or ())
            key = (i.of, *map(repr, (spelled(d.wanted, rank), spelled(d.got, rank), d.reason)), d.times)
            groups.setdefault(key, []).append((i, d))
        for members in groups.values():
            yield _not_as_asked(run, f, c, members)


def _not_as_asked(run: Run, f: Function, c: Compilation, members: Sequence[Differing]) -> Finding:
    """Return the finding about ``members``, arguments or results of ``f`` with the same requested and the
    same compiled sharding, which differ. ``c`` is the compilation of ``f``."""
    i, d = members[0]
    rank = len(i.shape or ())
    lost = [_lost(i, d) for i, d in members]
    known = sum(n or 0 for n in lost)
    more = and_more(len(members))
    by_caller = i.of == ARGUMENT and i.by == CONSTRAINT
    reason = message("other-sharding-reason", reason=d.reason) if d.reason is not None else None
    common: dict[str, Field] = {
        "function": f.display_name,
        "value": _value(i),
        "more": more,
        "wanted": spelled(d.wanted, rank),
        "times": _times_the_memory(d, rank),
    }
    if by_caller:
        text = message("constrained-argument", got=_placed(d.got, rank), **common)
        fix = _before_the_call(run, f, c, i, d, more)
    else:
        text = message("other-sharding-than-requested", got=spelled(d.got, rank), reason=reason, **common)
        fix = _pad(i, d.wanted) or Fix(message("fix-request-what-is-given"), "match_shardings")
    more_bytes = message("more-bytes-on-each-device", finding=text, bytes=Bytes(known))
    seen = more_bytes if known and None not in lost else text
    source = i.asked_at or c.site
    return Finding(
        code="JX503",
        severity=WARNING if known >= MIB or None in lost else NOTE,
        certainty=CERTAIN,
        title=text,
        function=f.id,
        source=source,
        evidence=[Evidence(seen, compilation=c.id, program=c.program, source=source)],
        fix=fix,
        subject=(i.of, i.path, source),
    )


def _before_the_call(
    run: Run, f: Function, c: Compilation, i: Intent, d: Disagreement, more: Message | None
) -> Fix:
    """Return the advice to shard an argument before the call: where the jitted function that made it returns
    it, else with ``jax.device_put``.

    Args:
      f, c: the function that constrains the argument, and its compilation.
      i, d: the argument with its shardings, and what differs.
      more: a message with the number of other arguments that need the same; None: there are none.
    """
    made = c.made_at(i.path)
    makers = [
        g
        for g in run.functions.values()
        if g.user
        and g is not f
        and any(o.entry == "call" and same_line(o.site, made) for o in g.compilations)
    ]
    sharding = spelled(d.wanted, len(i.shape or ()))
    passed: dict[str, Field] = {"path": i.path, "more": more, "sharding": sharding}
    if len(makers) != 1:
        words = message("fix-put-as-constrained", **passed)
        return Fix(words, "device_put", {"path": i.path, "sharding": sharding})
    maker = makers[0].display_name
    words = message("fix-return-as-constrained", maker=maker, **passed)
    return Fix(words, "out_shardings", {"function": maker, "path": i.path, "sharding": sharding})


def _died_of_mismatch(run: Run) -> Iterator[Finding]:
    """Yield a finding if the program ended because an array had another sharding than required."""
    found = refused(run, placement_errors.Mismatch)
    if found is None:
        return
    refusal, source, words = found
    got, wanted = _required(refusal.got), _required(refusal.wanted)
    title = message(
        "failed-on-other-device" if isinstance(refusal.got, int) else "failed-with-other-sharding",
        aval=refusal.aval,
        got=got,
        wanted=wanted,
    )
    fix = Fix(message("fix-put-as-required"), "device_put", {"sharding": wanted})
    yield Finding("JX503", ERROR, CERTAIN, title, None, source, [Evidence(words, source=source)], fix)


def _required(sharding: str | int) -> Words:
    """Return ``sharding``, part of an error of JAX, as text for a message. An int is the id of a device."""
    if isinstance(sharding, str):
        return sharding
    return message("on-named-device", device=message("one-device", number=str(sharding)))


def _value(intent: Intent) -> Message:
    aval = short_aval(intent.shape, intent.dtype)
    if intent.of != RESULT:
        return message("the-argument", path=intent.path, aval=aval)
    return message("the-result", path=of_result(intent.path), aval=aval)


def _lost(intent: Intent, difference: Disagreement) -> int | None:
    """Return how many more bytes of an array (``intent``) each device holds with the compiled sharding than
    with the requested one; 0 if not more, None if unknown. ``difference`` has both shardings."""
    rank = len(intent.shape or ())
    wanted, got = parts(difference.wanted, rank), parts(difference.got, rank)
    if intent.bytes is None or wanted is None or got is None or 0 in (*wanted, *got):
        return None
    return max(0, intent.bytes // math.prod(got) - intent.bytes // math.prod(wanted))


def _times_the_memory(difference: Disagreement, rank: int) -> Message | None:
    """Return a clause with the factor by which each device holds more memory with the compiled sharding than
    with the requested one (``difference`` has both). ``rank`` is the number of dimensions of the array.
    Return None if no device holds more, or if this is unknown."""
    n, got = difference.times, parts(difference.got, rank)
    if n is None or n <= 1:
        return None
    return message("times-the-memory" if got is None or math.prod(got) > 1 else "whole-on-each-device", n=n)


def _pad(intent: Intent, requested: Sharding) -> Fix | None:
    """Return the advice to pad the array of ``intent``, if one of its dimensions is not divisible by the
    number of parts that the sharding ``requested`` asks for; None if all are divisible."""
    cut = parts(requested, len(intent.shape or ()))
    for k, (size, n) in enumerate(zip(intent.shape or (), cut or (), strict=False)):
        if n and size % n:
            padded = -(-size // n) * n
            fields: dict[str, Field] = {"dimension": k, "size": size, "padded": padded}
            other = _other_dimension(intent, requested, k, n)
            words = message("fix-pad-or-replicate", **fields)
            if other is not None:
                j, sharding = other
                words = message(
                    "fix-pad-or-shard-other",
                    **fields,
                    other=j,
                    divisible=(intent.shape or ())[j],
                    parts=n,
                    sharding=sharding,
                )
            return Fix(words, "pad", {"dimension": k, "size": padded})
    return None


def _other_dimension(intent: Intent, requested: Sharding, k: int, n: int) -> tuple[int, str] | None:
    """Return another dimension of an array (``intent``) to shard, and the sharding as text: ``(1, "P(None,
    'data')")`` instead of ``P('data')``. Return None if no other dimension fits, or if the mesh axes are
    unknown. ``n`` is the number of parts into which the sharding ``requested`` splits dimension ``k``."""
    shape, named = intent.shape or (), sh.split_axes(requested)
    if named is None:
        return None
    axes = [*named[0], *[()] * (len(shape) - len(named[0]))]
    free = [j for j, size in enumerate(shape) if not axes[j] and size % n == 0 and size > n]
    if not free:
        return None
    j = max(free, key=lambda j: shape[j])
    axes[j], axes[k] = axes[k], ()
    return j, sh.written(Partition(tuple(axes)))


def refused(run: Run, kind: type[R]) -> tuple[R, Frame | None, str] | None:
    """Return (parsed error, user's line, the first 300 characters of JAX's message) if the program ended with
    an error of JAX about a sharding, and this error is of the class ``kind``; the line is None if it is
    unknown. Return None if no such error ended the program."""
    died = run.main.died if run.main is not None else None
    found = placement_errors.read(died.message) if died is not None else None
    if died is None or not isinstance(found, kind):
        return None
    return found, died.stack[0] if died.stack else None, died.message[:300]


@rule("JX504", "uneven-split", WARNING)
def uneven_split(run: Run) -> Iterator[Finding]:
    yield from _died_of_uneven_split(run)
    for p, f, texts in users(run):
        for u in texts.stablehlo.uneven if texts.stablehlo is not None else ():
            if u.of == RESULT:
                continue  # JAX drops the sharding of a result instead of padding: JX503 reports that
            size, n, k = u.shape[u.dimension], u.parts, u.dimension
            text = message(
                "uneven-split",
                function=f.display_name,
                aval=short_aval(u.shape, u.dtype),
                wanted=spelled(of_spec(u.asked, None)),
                dimension=k,
                size=size,
                parts=n,
                padding=u.padded - size,
                padded=u.padded,
            )
            source = u.source or p.compilations[-1].site
            yield Finding(
                code="JX504",
                severity=WARNING if 20 * (u.padded - size) >= u.padded else NOTE,
                certainty=LIKELY,
                **about(p, f, text, source),
                fix=Fix(
                    message("fix-pad-with-mask", dimension=k, padded=u.padded, parts=n),
                    "pad",
                    {"dimension": k, "size": u.padded},
                ),
                subject=(source, u.shape, k),
            )


def _died_of_uneven_split(run: Run) -> Iterator[Finding]:
    """Yield a finding if the program ended because a dimension was not divisible."""
    found = refused(run, placement_errors.Indivisible)
    if found is None:
        return
    refusal, source, words = found
    k, n, size = refusal.dimension, refusal.parts, refusal.size
    padded = -(-size // n) * n
    path = message("of-path", path=refusal.path) if refusal.path else None
    title = message("failed-not-divisible", dimension=k, path=path, size=size, parts=n)
    fix = Fix(
        message("fix-pad-or-drop", dimension=k, padded=padded, parts=n),
        "pad",
        {"dimension": k, "size": padded},
    )
    yield Finding("JX504", ERROR, CERTAIN, title, None, source, [Evidence(words, source=source)], fix)


@rule("JX508", "moved-argument", WARNING)
def moved_argument(run: Run) -> Iterator[Finding]:
    """Yield findings about large arguments that each call moves, and about JAX's error for arrays on
    different devices."""
    yield from _died_apart(run)
    for f, (c, every) in moved(run):
        # Another finding advises to place an argument that made the function recompile.
        found = [(i, d) for i, d in every if not _recompiled_for(run, c, i.path)]
        if not found:
            continue
        i, d = found[0]
        rank = len(i.shape or ())
        text = message(
            "moved-arguments" if len(found) > 1 else "moved-argument",
            path=i.path,
            more=and_more(len(found)),
            bytes=Bytes(sum(i.bytes or 0 for i, _ in found)),
            got=_placed(d.got, rank),
            function=f.display_name,
            wanted=_placed(d.wanted, rank),
        )
        fix: Fix | None = place_for_pmap(f, i.path, d.wanted.mesh, d.wanted.spec)
        if fix is None:
            words = message("fix-put-before-the-calls", path=i.path, function=f.display_name)
            fix = Fix(words, "device_put", {"path": i.path})
        others = tuple(dict.fromkeys(root(j.path) for j, _ in found if root(j.path) != root(i.path)))
        if others:
            fix = extended(fix, "fix-same-for", paths=Names(others, MOST))
        yield Finding(
            code="JX508",
            severity=WARNING,
            certainty=LIKELY,  # calls on the fast path are not recorded: this call may have been the only one
            title=text,
            function=f.id,
            source=c.site,
            evidence=[Evidence(text, compilation=c.id, program=c.program, source=c.site)],
            fix=fix,
        )


def _recompiled_for(run: Run, c: Compilation, path: str) -> bool:
    """Return whether ``c`` was compiled because the argument ``path`` was on other devices, sharded otherwise
    or committed otherwise than in an earlier call."""
    cause = causes.of(run, c)[0]
    of = cause.path if cause.kind in ("sharding", "mesh", "committed", "device") else None
    return of is not None and (path == of or below(path, {of}))


def moved(run: Run) -> Iterator[tuple[Function, tuple[Compilation, list[Differing]]]]:
    """Yield (function, (compilation, differences)) for functions whose calls move arguments of at least 1 MiB
    in all to the shardings that the program requires. A function that was called only once is left out."""
    for f, c, found in disagreeing(run, MOVED):
        if sum(i.bytes or 0 for i, _ in found) >= MIB and f.calls != 1:
            yield f, (c, found)


def _died_apart(run: Run) -> Iterator[Finding]:
    """Yield a finding if the program ended because arrays were on different devices."""
    found = refused(run, placement_errors.Apart)
    if found is None:
        return
    refusal, source, words = found
    places = [message("on-place", what=what, place=_devices(ids)) for what, ids in refusal.places[:4]]
    first = refusal.places[0][0]
    title = message("failed-on-several-devices", places=Parts(tuple(places)))
    fix = Fix(message("fix-put-with-the-others", what=first), "device_put", {"path": first})
    yield Finding("JX508", ERROR, CERTAIN, title, None, source, [Evidence(words, source=source)], fix)


def _devices(ids: str) -> Field:
    numbers = [t for t in ids.replace(" ", "").split(",") if t]
    return message("one-device", number=numbers[0]) if len(numbers) == 1 else Count(len(numbers), "device")


def _placed(s: Sharding, rank: int) -> Field:
    """Return the placement of an array with ``rank`` dimensions as text: ``on cpu:0``, ``as P('data') over 8
    devices``. ``s`` is its sharding."""
    text = spelled(s, rank)
    if on_one_device(s):
        return text
    ids = sh.device_ids(s.devices) or ()
    over = message("over-devices", devices=Count(len(ids), "device")) if len(ids) > 1 else None
    return message("as-sharding", sharding=text, over=over)
