"""Compare the programs of one function with those in a baseline (the saved figures of an earlier run), figure
by figure.

There is one check for each kind of figure (memory, collectives, fusions, ...). Each check takes a program in
the baseline and its counterpart in the run. It returns the figures that became worse, with the responsible
line, and texts about the figures that became better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from jaxscope.check.baseline import schema
from jaxscope.check.baseline.extract import FunctionEntry
from jaxscope.check.baseline.pairing import SHOWN, Pair, note
from jaxscope.model import metrics
from jaxscope.model.metrics import TOLERANCE, Collectives, Difference, Metric
from jaxscope.model.stable_names import clean, root
from jaxscope.present import differences
from jaxscope.schema.findings import Evidence, Finding
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Message, Parts, Words, message

NOT_KNOWN, IMPROVED, COMPILATIONS = "JX901", "JX711", "JX701"
# Several regressions that the same changed argument explains are one finding: the first in this order is its
# title, the others are its evidence. If shapes changed, all figures in bytes change, so counts come first.
ORDER = ("JX702", "JX705", "JX706", "JX708", "JX707", "JX709", "JX704", "JX713", "JX703")
ORDER_RESIZED = ("JX709", "JX704", "JX713", "JX702", "JX705", "JX706", "JX708", "JX707", "JX703")


class Regression(NamedTuple):
    """A figure of one program that is worse than in the baseline.

    Attributes:
      title: the figure and how it changed, as a message.
      source: the user's line that causes the change; None: unknown.
      evidence: texts about all figures that changed with this one.
      advice: what to do.
    """

    code: str
    title: Words
    source: Frame | None
    evidence: Sequence[Words]
    advice: Words


Result = tuple[list[Regression], Sequence[Words]]  # what became worse, and texts about what became better


def compare(baseline: schema.Baseline, entry: FunctionEntry, paired: Iterable[Pair]) -> Iterator[Finding]:
    """Yield an error for each figure of the programs of one function (``entry``) that is worse than in the
    baseline, and notes about figures that are better (in programs whose arguments have the same shapes) or
    unknown. ``paired`` are the programs with a counterpart in the baseline. Of ``baseline``, only the
    tolerances are read.

    Figures that became worse in programs with the same changed arguments share one error.
    """
    tolerance = {**TOLERANCE, **baseline.tolerance}
    improved: list[Message] = []
    unknown: list[Message] = []
    explained: dict[tuple[object, ...], list[tuple[Pair, Regression]]] = {}
    for pair in paired:
        for part, check in CHECKS.items():
            if getattr(pair.old, part) is None:
                continue
            if getattr(pair.new, part) is None:
                unknown.append(message("metric-of-program", metric=part, program=pair.label))
                continue
            regressions, improvements = check(pair, tolerance.get(part, 0.0))
            if pair.changed:
                explained.setdefault(tuple(pair.changed), []).extend((pair, r) for r in regressions)
            else:
                yield from (pair.finding(*r) for r in regressions)
            improved += [
                message("baseline-program", program=pair.label, title=text, change=None)
                for text in improvements
                if not pair.resized
            ]
    yield from (_with_one_reason(found) for found in explained.values() if found)
    f = entry.function
    if unknown:
        text = message("metrics-not-recorded", metrics=Parts(tuple(unknown)))
        yield note(NOT_KNOWN, text, message("fix-record-programs"), f)
    if improved:
        better = message("baseline-improved", figures=Parts(tuple(improved[:SHOWN]), "; "))
        yield note(IMPROVED, better, message("fix-save-improvement"), f)


def _with_one_reason(regressions: list[tuple[Pair, Regression]]) -> Finding:
    """Return one error for ``regressions``, figures that became worse in programs with the same changed
    arguments. The most important figure becomes the title; the others become evidence."""
    order = ORDER_RESIZED if regressions[0][0].resized else ORDER
    (pair, first), *rest = sorted(regressions, key=lambda item: order.index(item[1].code))
    if not rest:
        return pair.finding(*first)
    finding = pair.finding(*first._replace(advice=pair.changed[0].advice))
    others = [
        Evidence(
            message("baseline-other", code=r.code, program=p.label, title=r.title),
            program=p.entry.program.id,
            source=r.source,
        )
        for p, r in rest
    ]
    more = message("one-more-figure") if len(rest) == 1 else message("more-figures", n=len(rest))
    title = message("baseline-more-figures", title=finding.title, more=more)
    return msgspec.structs.replace(finding, title=title, evidence=[*finding.evidence, *others])


def without_counterpart(entry: FunctionEntry, unmatched: list[Pair]) -> Finding | None:
    """Return an error about the programs of a function for whose arguments the baseline has no program; None
    if ``unmatched`` is empty.

    Args:
      entry: the function.
      unmatched: these programs, each with a program of the baseline, to show how the arguments differ.
    """
    if not unmatched:
        return None
    first = unmatched[0]
    advice = first.changed[0].advice if first.changed else message("fix-same-arguments")
    finding = first.finding(COMPILATIONS, "", None, [""], advice)
    return msgspec.structs.replace(
        finding,
        title=message(
            "baseline-new-arguments",
            function=entry.function.display_name,
            programs=message("number-of-programs", n=len(unmatched)) if len(unmatched) > 1 else None,
            change=message("baseline-change", change=first.changed[0].words) if first.changed else None,
        ),
        evidence=[
            msgspec.structs.replace(
                finding.evidence[0],
                text=message(
                    "baseline-no-counterpart",
                    program=p.label,
                    changes=Parts(tuple(change.words for change in p.changed[:SHOWN]), "; "),
                ),
                program=p.entry.program.id,
            )
            for p in unmatched[:SHOWN]
        ],
    )


# -- metrics with one number for each name ---------------------------------------------------------


def _sorted(metric: Metric, pair: Pair, tolerance: float = 0.0) -> tuple[list[Difference], list[Difference]]:
    """Return (figures of ``metric`` that grew, figures that shrank) from the baseline to the run. ``total``
    comes first, ``peak_bytes`` last, and the others by their relative change, the largest first. Changes up
    to ``tolerance``, a share of the old figure, are omitted."""

    def rank(d: Difference) -> tuple[Any, ...]:
        return d.what != "total", d.what == "peak_bytes", -abs(d.share or float("inf")), d.what

    found = sorted(metric.compare(pair.old, pair.new, tolerance) or (), key=rank)
    return [d for d in found if d.after > d.before], [d for d in found if d.after < d.before]


def _together(
    metric: Metric, code: str, advice: Message, per_device: bool = False, shown: int = 1
) -> Callable[..., Result]:
    """Return a check of the figures of ``metric`` in one program. If at least one figure grew, the check
    returns one regression with ``code`` and ``advice`` for all that changed; else texts about those that
    fell.

    Args:
      per_device: whether the title says that the figures are memory per device.
      shown: the largest number of figures in the title.
    """

    def check(pair: Pair, tolerance: float) -> Result:
        grew, fell = _sorted(metric, pair, tolerance)
        texts = [differences.since_baseline(metric.name, d) for d in (*grew, *fell)]
        if grew:
            parts = [t for d, t in zip(grew, texts, strict=False) if d.what != "peak_bytes"] or texts
            figures = Parts(tuple(parts[:shown]))
            title = message("memory-per-device" if per_device else "figures", figures=figures)
            return [Regression(code, title, None, texts, advice)], []
        # Fewer fusions of one kind are better only if there are fewer fusions in all.
        return [], [
            t for d, t in zip(fell, texts, strict=True) if metric is not metrics.FUSIONS or d.what == "total"
        ]

    return check


def _each(
    metric: Metric, code: str, advice: Message, items: str, key: Callable[[Any], str]
) -> Callable[..., Result]:
    """Return a check of the figures of ``metric`` in one program. It returns a regression with ``code`` and
    ``advice`` for each figure that grew.

    Args:
      items: the attribute of the parsed StableHLO that lists what ``metric`` counts, for example ``upcasts``.
        The user's line comes from this list.
      key: takes an entry of this list and returns the name of the figure that counts it.
    """

    def check(pair: Pair, tolerance: float) -> Result:
        grew, fell = _sorted(metric, pair, tolerance)
        regressions = []
        for d in grew:
            text = differences.since_baseline(metric.name, d)
            regressions.append(
                Regression(code, text, _first_source(pair, items, key, d.what), [text], advice)
            )
        return regressions, [differences.since_baseline(metric.name, d) for d in fell]

    return check


def _first_source(pair: Pair, items: str, key: Callable[[Any], str], name: str) -> Frame | None:
    """Return the first user's line of an entry of the list ``items`` whose figure is ``name``; None: unknown.
    ``items`` and ``key`` are arguments of ``_each``."""
    lowered = pair.entry.texts.stablehlo
    found = [
        x for x in (getattr(lowered, items) if lowered is not None else ()) if key(x) == name and x.source
    ]
    # A conversion that differentiation (jax.grad) made has the line of the forward conversion: prefer others.
    first = min(found, key=lambda x: getattr(x, "backward", None) is True, default=None)
    return first.source if first is not None else None


def _products(pair: Pair, _: float) -> Result:
    """Return a regression if there are more matrix products of one kind (dtypes and precision) and fewer of
    another, or if a kind is new in a program that had matrix products. More products of a known kind only
    mean a larger program."""
    grew, fell = _sorted(metrics.PRODUCTS, pair)
    changed = [d for d in grew if fell or not d.before]
    if not changed or (not fell and not pair.old.products):
        return [], []
    texts = [differences.since_baseline("products", d) for d in (*changed, *fell)]
    title = message("figures", figures=Parts((texts[0], *texts[len(changed) :][:1]), "; "))
    source = _first_source(pair, "products", metrics.product_key, changed[0].what)
    return [Regression("JX707", title, source, texts, message("fix-restore-precision"))], []


def _loops(pair: Pair, _: float) -> Result:
    """Return a regression for any change in the number of loops. Fewer loops are not better, because loops
    may have been unrolled."""
    grew, fell = _sorted(metrics.LOOPS, pair)
    if not grew and not fell:
        return [], []
    texts = [differences.since_baseline("loops", d) for d in (*grew, *fell)]
    title, source = message("figures", figures=Parts(tuple(texts[:2]))), None
    lowered = pair.entry.texts.stablehlo
    repeated = (
        next((r for r in lowered.repeated if r.source is not None), None) if lowered is not None else None
    )
    if repeated is not None and sum((pair.new.loops or {}).values()) < sum((pair.old.loops or {}).values()):
        source = repeated.source
        unrolled = message("loops-unrolled", loops=title, length=repeated.length, times=repeated.times)
        return [Regression("JX709", unrolled, source, texts, message("fix-keep-scan"))], []
    return [Regression("JX709", title, source, texts, message("fix-keep-scan"))], []


# -- collectives and donation ----------------------------------------------------------------------


def _collectives(pair: Pair, _: float) -> Result:
    """Return a regression for each kind and mesh axes of collectives of which the number, the executions per
    call or the bytes grew or became unknown, even if another of these figures fell."""
    before, after = pair.old.collectives or {}, pair.new.collectives or {}
    regressions, improvements = [], []
    none = Collectives(0, 0, 0)
    for key in dict.fromkeys([*after, *before]):
        old, new = before.get(key, none), after.get(key, none)
        texts: list[Words] = []
        worse = new.count > old.count
        for what, unit, x, y in (
            ("executions per call", metrics.COUNT, old.executions, new.executions),
            ("size", metrics.BYTES, old.bytes, new.bytes),
        ):
            if x is not None and y is None:
                amount = differences.amount(x, unit)
                texts.append(message("figure-unknown-now", figure=what, before=amount))
                worse = True
            elif x is not None and y is not None and x != y:
                texts.append(differences.since_baseline("", Difference(what, x, y, unit)))
                worse = worse or y > x
        if new.count != old.count:
            texts.insert(0, _number(key, old, new))
        if not texts:
            continue
        if not worse:
            improvements.append(_title(key, old, new, texts[0]))
            continue
        source, function = _new_collective(pair, key, old, new)
        named: Words = key
        if function is not None:
            named = message("collective-in-function", collective=key, function=function)
        title = _title(named, old, new, texts[0])
        regressions.append(Regression("JX702", title, source, texts, message("fix-find-collective")))
    return regressions, improvements


def _number(name: Words, old: Collectives, new: Collectives) -> Message:
    return message("number-in-baseline", now=new.count, what=name, before=old.count)


def _title(name: Words, old: Collectives, new: Collectives, change: Words) -> Message:
    if new.count != old.count:
        return _number(name, old, new)
    return message("change-of", what=name, change=change)


def _new_collective(
    pair: Pair, key: str, old: Collectives, new: Collectives
) -> tuple[Frame | None, str | None]:
    """Return (the line of a collective that the baseline does not have, the user's function with this line).
    Either is None if unknown.

    This is the last collective called ``key`` in functions with more of them than in the baseline, because
    new ones are usually last in the HLO text. If no function has more, return (the line of the first
    collective called ``key``, None).

    Args:
      pair: the program in the baseline and the program in the run.
      key: the kind and the mesh axes of the collective: ``all-reduce over data``.
      old, new: the figures of ``key`` in the baseline and in the run.
    """
    hlo = pair.entry.texts.hlo
    found = [c for c in hlo.collectives if metrics.collective_key(c) == key] if hlo is not None else []
    located = [c for c in found if c.source is not None]
    more = {name for name, n in new.within.items() if n > old.within.get(name, 0)}
    blamed = [c for c in located if metrics.source_function(c) in more]
    if blamed:
        return blamed[-1].source, metrics.source_function(blamed[-1])
    return located[0].source if located else None, None


def _donation(pair: Pair, _: float) -> Result:
    """Return a regression for each argument of which fewer arrays are donated and (as far as known) reused
    than in the baseline, or more arrays are donated in vain."""
    before, after = pair.old.donation or {}, pair.new.donation or {}
    regressions: list[Regression] = []
    improvements: list[Message] = []
    lowered = pair.entry.texts.stablehlo
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name, {}), after.get(name, {})
        was, now = (sum(n for status, n in x.items() if status != "unused") for x in (old, new))
        unused_before, unused = old.get("unused", 0), new.get("unused", 0)
        if was <= now and unused <= unused_before:
            if was < now or unused < unused_before:
                improvements.append(message("arrays-donated", now=now, argument=name, before=was))
            continue
        idle = [
            d
            for d in (lowered.donation if lowered is not None else ())
            if root(d.path or "?") == name and d.status in ("possible", "unused")
        ]
        if now < was and not new:
            were = message("one-array-was") if was == 1 else message("arrays-were", n=was)
            text = message("no-longer-donated", argument=name, before=were)
        elif now < was:
            text = message("fewer-donated", now=now, argument=name, before=was)
        else:
            arrays = Count(unused, "array")
            text = message("donated-in-vain", arrays=arrays, argument=name, before=unused_before)
        wasted = sum(d.device_bytes or 0 for d in idle)
        title = text
        if wasted:
            title = message("wasted-per-device", text=text, bytes=Bytes(wasted))
        evidence = [
            message(
                "donation-status",
                path=clean(d.path or "?"),
                status=d.status,
                reason=message("donation-reason", reason=d.reason) if d.reason else None,
            )
            for d in idle
        ]
        advice = message("fix-donate-argument", argument=repr(name))
        regressions.append(Regression("JX705", title, None, evidence or [text], advice))
    return regressions, improvements


# Field of SavedMetrics -> the function that compares it.
CHECKS: dict[str, Callable[[Pair, float], Result]] = {
    "collectives": _collectives,
    "donation": _donation,
    "constants": _each(
        metrics.CONSTANTS, "JX706", message("fix-pass-constant"), "constants", metrics.constant_key
    ),
    "callbacks": _each(
        metrics.CALLBACKS, "JX708", message("fix-no-callback"), "callbacks", metrics.callback_key
    ),
    "upcasts": _each(
        metrics.UPCASTS,
        "JX707",
        message("fix-cast-down"),
        "upcasts",
        metrics.upcast_key,
    ),
    "products": _products,
    "loops": _loops,
    "flops": _together(metrics.WORK, "JX713", message("fix-shard-operands")),
    "fusions": _together(metrics.FUSIONS, "JX703", message("fix-compare-fusions")),
    "memory": _together(metrics.MEMORY, "JX704", message("fix-find-memory"), per_device=True, shown=2),
}
