"""The parts of a program beside those of a baseline: communication, donation, constants, callbacks, precision, loops,
work, fusions, memory.

Each part has a function from what was and what is to findings for what is worse, with the line it comes from, and
words for what is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from jaxscope.check.baseline import schema
from jaxscope.check.baseline.extract import callback_key, collective_key, constant_key, within
from jaxscope.check.baseline.figures import Drift, better, drifts, size, worse
from jaxscope.check.baseline.names import clean, root
from jaxscope.check.baseline.pairing import Pair
from jaxscope.check.baseline.schema import FLOPS, FUSIONS, MEMORY
from jaxscope.schema.findings import Finding
from jaxscope.schema.keys import Frame

_NAMES = {"argument": "arguments", "output": "results", "temp": "temporaries", "peak": "peak"}

Result = tuple[list[Finding], list[str]]


def _communication(
    pair: Pair, before: dict[str, schema.Collectives], after: dict[str, schema.Collectives], _: Mapping[str, float]
) -> Result:  # fmt: skip
    found: list[Finding] = []
    good: list[str] = []
    none = schema.Collectives(0, 0, 0)
    for key in dict.fromkeys([*after, *before]):
        old, new = before.get(key, none), after.get(key, none)
        figures = [
            Drift(what, x, y, y > x)
            for what, x, y in (
                ("executed in a call", old.executions, new.executions),
                ("bytes", old.bytes, new.bytes),
            )
            if x is not None and y is not None and x != y
        ]
        known = [d.text("bytes" if d.name == "bytes" else "") for d in figures]
        lost = [
            f"{what} unknown now, {x:,} in the baseline"
            for what, x, y in (
                ("executions in a call", old.executions, new.executions),
                ("bytes", old.bytes, new.bytes),
            )
            if x is not None and y is None
        ]
        known += lost
        if new.count == old.count and not known:
            continue
        was = f"{old.count:,} in the baseline"
        if new.count > old.count or lost or worse(figures):
            line, where = _source_of(pair, key, old, new)
            inside = f" in {where}" if where else ""
            counted = f"{new.count:,} {key}{inside}, {was}"
            title = counted if new.count != old.count else f"{key}{inside}: {known[0]}"
            found.append(
                pair.finding(
                    "JX702", title, line, [counted, *known],
                    "see where it comes from with jaxscope report; give the operands of that line shardings that agree",
                )
            )  # fmt: skip
        else:
            good.append(f"{new.count:,} {key}, {was}" if new.count != old.count else f"{key}: {known[0]}")
    return found, good


def _source_of(
    pair: Pair, key: str, old: schema.Collectives, new: schema.Collectives
) -> tuple[Frame | None, str | None]:
    """The line of a collective that is new, and its function: the first of a function that has more than before."""
    hlo = pair.made.texts.hlo
    members = [c for c in hlo.collectives if collective_key(c) == key] if hlo is not None else []
    more = {name for name, n in new.within.items() if n > old.within.get(name, 0)}
    blamed = [c for c in members if within(c) in more and c.source is not None]
    if blamed:
        # Those that were there before come first in the text more often than not.
        chosen = blamed[-1]
        return chosen.source, within(chosen)
    return next((c.source for c in members if c.source is not None), None), None


def _fusions(pair: Pair, before: dict[str, int], after: dict[str, int], share: Mapping[str, float]) -> Result:
    found = drifts(before, after, share[FUSIONS])
    bad = worse(found)
    if bad:
        named = {"total": "fusions", "unfused": "elementwise operations left alone"}
        told = [Drift(named.get(d.name, f"{d.name} fusions"), d.before, d.after, True).text() for d in bad]
        first = [t for d, t in zip(bad, told, strict=True) if d.name == "total"] or told
        return [
            pair.finding(
                "JX703", first[0], None, told, "jaxscope diff of both runs says which lines they are of"
            )
        ], []
    # Fewer fusions are fewer kernels where nothing is left out of them.
    return [], [d.text() for d in better(found) if d.name == "total"]


def _flops(pair: Pair, before: dict[str, int], after: dict[str, int], share: Mapping[str, float]) -> Result:
    found = drifts(before, after, share[FLOPS])
    named = [
        msgspec.structs.replace(d, name="floating-point operations of matrix products on a device:")
        for d in found
    ]
    told = [d.text() for d in named]
    if not worse(found):
        return [], told
    advice = "see that what they take is split over the mesh as it was"
    return [pair.finding("JX713", told[0], None, told, advice)], []


def _memory(pair: Pair, before: dict[str, int], after: dict[str, int], share: Mapping[str, float]) -> Result:
    both = [n for n in before if n in after]
    found = drifts({n: before[n] for n in both}, {n: after[n] for n in both}, share[MEMORY])
    bad = worse(found)
    told = [Drift(_NAMES.get(d.name, d.name), d.before, d.after, d.worse).text("bytes") for d in found]
    if bad:
        # The part that grew most says more than the peak it is part of.
        shown = [t for d, t in zip(found, told, strict=True) if d.worse and d.name != "peak"] or told
        return [
            pair.finding("JX704", f"memory on a device: {', '.join(shown[:2])}", None, told, "jaxscope report says what takes it")
        ], []  # fmt: skip
    return [], told[:2]


def _donation(
    pair: Pair, before: dict[str, dict[str, int]], after: dict[str, dict[str, int]], _: Mapping[str, float]
) -> Result:
    found: list[Finding] = []
    good: list[str] = []
    mlir = pair.made.texts.stablehlo
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, {}), after.get(name, {})
        was, now = (sum(n for s, n in x.items() if s != "unused") for x in (old, new))
        lost, vain = was - now, new.get("unused", 0) - old.get("unused", 0)
        if lost <= 0 and vain <= 0:
            if lost < 0 or vain < 0:
                good.append(f"{now:,} arrays of {name} are donated, {was:,} in the baseline")
            continue
        mine = [d for d in mlir.donation if root(d.path or "?") == name] if mlir is not None else []
        idle = [d for d in mine if d.status in ("possible", "unused")]
        told = [f"{clean(d.path or '?')}: {d.status}" + (f", {d.reason}" if d.reason else "") for d in idle]
        wasted = sum(d.device_bytes or 0 for d in idle)
        text = f"{now:,} of the donated arrays of {name} are reused, {was:,} in the baseline"
        if lost > 0 and not new:
            text = f"{name} is no longer donated: {was:,} {'array was' if was == 1 else 'arrays were'} reused in the baseline"
        elif vain > 0 >= lost:
            text = f"{new['unused']:,} arrays of {name} are donated in vain, {old.get('unused', 0):,} in the baseline"
        more = f" ({size(wasted)} more on a device)" if wasted else ""
        found.append(
            pair.finding(
                "JX705",
                text + more,
                None,
                told or [text],
                f"donate_argnames={name!r} in its jit, and return it with the same shape and dtype",
            )
        )
    return found, good  # fmt: skip


def _constants(pair: Pair, before: dict[str, int], after: dict[str, int], _: Mapping[str, float]) -> Result:
    found = drifts(before, after)
    mlir = pair.made.texts.stablehlo
    bad: list[Finding] = []
    for d in worse(found):
        source = next(
            (
                c.source
                for c in (mlir.constants if mlir is not None else ())
                if clean(constant_key(c.name, c.type)) == d.name and c.source is not None
            ),
            None,
        )
        text = (
            f"the array {d.name} ({size(d.after)}) is part of the program, and was not in the baseline"
            if not d.before
            else f"captured array {d.text('bytes')}"
        )
        bad.append(pair.finding("JX706", text, source, [text], "pass it as an argument"))
    return bad, [d.text("bytes") for d in better(found)]


def _upcasts(pair: Pair, before: dict[str, int], after: dict[str, int], _: Mapping[str, float]) -> Result:
    found = drifts(before, after)
    mlir = pair.made.texts.stablehlo
    bad = []
    for d in worse(found):
        mine = [u for u in mlir.upcasts if f"{u.before} to {u.after}" == d.name] if mlir is not None else []
        source = next((u.source for u in sorted(mine, key=lambda u: u.backward is True) if u.source), None)
        text = f"conversions from {d.name}: {d.after:,}, {d.before:,} in the baseline"
        bad.append(
            pair.finding(
                "JX707", text, source, [text], "cast the other operand down where the wider type is not meant"
            )
        )
    return bad, [f"conversions from {d.text()}" for d in better(found)]  # fmt: skip


def _products(pair: Pair, before: dict[str, int], after: dict[str, int], _: Mapping[str, float]) -> Result:
    """More of the same is a larger program; another precision, or a shift between two, is told."""
    found = drifts(before, after)
    grown, gone = worse(found), better(found)
    changed = [d for d in grown if gone or not d.before]
    if not changed or (not gone and not before):
        return [], []
    mlir = pair.made.texts.stablehlo
    source = next(
        (
            p.source
            for p in (mlir.products if mlir is not None else ())
            if f"{p.operands}, {p.precision}" == changed[0].name and p.source is not None
        ),
        None,
    )
    told = [d.text() for d in (*changed, *gone)]
    text = f"matrix products in {told[0]}" + (f"; in {told[len(changed)]}" if gone else "")
    return [pair.finding("JX707", text, source, told, "set precision and dtypes as they were")], []


def _callbacks(pair: Pair, before: dict[str, int], after: dict[str, int], _: Mapping[str, float]) -> Result:
    found = drifts(before, after)
    mlir = pair.made.texts.stablehlo
    bad = []
    for d in worse(found):
        calls = mlir.callbacks if mlir is not None else ()
        source = next(
            (c.source for c in calls if callback_key(c.kind, c.in_loop) == d.name and c.source), None
        )
        text = f"calls back into Python ({d.name}) {d.after:,}x in a call, {d.before:,}x in the baseline"
        bad.append(pair.finding("JX708", text, source, [text], "return the value and look at it outside"))
    return bad, [f"callbacks: {d.text()}" for d in better(found)]


def _loops(pair: Pair, before: dict[str, int], after: dict[str, int], _: Mapping[str, float]) -> Result:
    """Neither more nor fewer turns are better by themselves: fewer loops may be loops written out."""
    found = drifts(before, after)
    if not found:
        return [], []
    told = [
        f"{d.after:,} {'loop' if d.after == 1 else 'loops'} of {d.name} turns, {d.before:,} in the baseline"
        for d in found
    ]
    title, source = ", ".join(told[:2]), None
    mlir = pair.made.texts.stablehlo
    repeated = next((r for r in mlir.repeated if r.source is not None), None) if mlir is not None else None
    if repeated is not None and sum(after.values()) < sum(before.values()):
        source = repeated.source
        title += f"; a block of {repeated.length} operations stands {repeated.times} times: written out"
    return [pair.finding("JX709", title, source, told, "keep the turns in jax.lax.scan")], []


PARTS: dict[str, Callable[..., Result]] = {
    "collectives": _communication,
    "donation": _donation,
    "constants": _constants,
    "callbacks": _callbacks,
    "upcasts": _upcasts,
    "products": _products,
    "loops": _loops,
    "flops": _flops,
    "fusions": _fusions,
    "memory": _memory,
}
