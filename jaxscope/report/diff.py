"""Two runs or two compilations beside one another, as a page and as JSON.

Owns the order of the page and the words for what changed. What changed is model.diff's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import Console

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.changes import Changed, Changes, Entry, Figure, Item
from jaxscope.model.diff import CompilationDiff, FunctionDiff, RunDiff
from jaxscope.model.names import number_of
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.report import phrases
from jaxscope.report.escape import escape
from jaxscope.report.header import cut_short
from jaxscope.report.lines import BLANK, Line, line, put
from jaxscope.report.phrases import Places, count, function_name, seconds, size

SHOWN = 6  # lines of one part of a program
FUNCTIONS = 12
PARTS = {
    "ops": "operations",
    "instructions": "instructions",
    "fusions": "fusions",
    "fusions_by_line": "fusions",
    "collectives": "collectives",
    "loops": "loops",
    "memory": "memory",
    "cost": "work",
    "donation": "donation",
    "constants": "constants",
    "remats": "made whole",
}
COUNTED = {
    "traces": "traces", "lowerings": "lowerings", "compiled": "compilations",
    "persistent_cache_hits": "persistent-cache hits", "fast_path_misses": "fast-path misses",
}  # fmt: skip


class Pair(NamedTuple):
    """Both runs and where they lie."""

    before: Run
    before_at: RunDir
    after: Run
    after_at: RunDir


def render(found: RunDiff | CompilationDiff, pair: Pair, to: Console, *, everything: bool = False) -> None:
    """The whole page."""
    page = (
        _compilations(found, pair, everything=everything)
        if isinstance(found, CompilationDiff)
        else _runs(found, pair, everything=everything)
    )
    put(to, page)


def _runs(found: RunDiff, pair: Pair, *, everything: bool) -> Iterator[Line]:
    places = _Both(pair)
    before, after = _names(pair)
    yield line(("- ", "red"), (escape(before), "bold"), _cost_of(pair.before), hang=2)
    yield line(("+ ", "green"), (escape(after), "bold"), _cost_of(pair.after), hang=2)
    for name, (x, y) in found.facts.items():
        yield line(f"{name.replace('_', ' ')}: ", _arrow(_text(x), _text(y)), indent=2, hang=4)
    differing = [f for f in found.functions if f.differs]
    mine = [f for f in differing if everything or f.function.user]
    for f in mine if everything else mine[:FUNCTIONS]:
        yield BLANK
        yield from _function(f, places, everything=everything)
    left = len(mine) - FUNCTIONS
    if left > 0 and not everything:
        yield BLANK
        yield line((f"and {count(left, 'more function')} that differ: --all shows them", "dim"))
    folded = len(differing) - len(mine)
    same = sum(not f.differs for f in found.functions)
    yield BLANK
    if not differing:
        yield line(f"No difference in {count(same, 'function')}.")
    else:
        rest = [f"{count(same, 'function')} without a difference"] if same else []
        if folded:
            rest.append(
                f"{count(folded, 'library-internal or eager function')} that differ: --all shows them"
            )
        if rest:
            yield line((", ".join(rest), "dim"))


def _cost_of(run: Run) -> str:
    compiled = sum(f.compiled for f in run.functions.values())
    return f"  {count(compiled, 'compilation')}, {seconds(run.compiling_seconds)} of {seconds(run.seconds)} tracing, lowering and compiling{cut_short(run)}"


def _function(f: FunctionDiff, places: _Both, *, everything: bool) -> Iterator[Line]:
    site = places.of(f.after is not None).function(f.function)
    spent = _arrow(
        *(seconds(x.seconds) if x is not None else "not there" for x in (f.before, f.after)),
    )
    yield line(
        (function_name(f.function), "bold"),
        (f"  {site}" if site else "", "dim"),
        right=(spent, "bold"),
        hang=2,
    )
    if f.before is None or f.after is None:
        only, word = (f.after, "after") if f.before is None else (f.before, "before")
        assert only is not None
        yield line(f"only {word}: {count(only.compiled, 'compilation')}", indent=4)
        return
    if f.moved and (was := places.of(False).function(f.before)) != site:
        yield line((f"was {was}", "dim"), indent=4)
    for name, (x, y) in f.counts.items():
        yield line(f"{COUNTED[name]}: ", _arrow(f"{x:,}", f"{y:,}"), indent=4)
    for c in f.causes:
        where = f" of {escape(c.path, 80)}" if c.path else ""
        yield line(
            "compiled again for ", (c.kind, "bold"), f"{where}: ", _arrow(f"{c.before}x", f"{c.after}x"),
            indent=4, hang=2,
        )  # fmt: skip
    shown = f.programs if everything else f.programs[:3]
    for n, p in enumerate(shown, 1):
        mark = f"program {n} of {len(f.programs)} that differ: " if len(f.programs) > 1 else "its program: "
        yield from _program(p, places, mark, everything=everything)
    if len(f.programs) > len(shown):
        yield line(
            (f"and {count(len(f.programs) - len(shown), 'more program')}: --all shows them", "dim"), indent=4
        )


def _names(pair: Pair) -> tuple[str, str]:
    """What the sides are called: by their settings where they are runs of one program under several."""
    sides = pair.before_at, pair.after_at
    labels = [store.label_of(at) for at in sides]
    homes = {(store.parent_of(at) or at).path.absolute() for at in sides}
    if len(homes) == 1 and all(labels) and labels[0] != labels[1]:
        return labels[0], labels[1]
    one, other = (store.address(at) if store.parent_of(at) is not None else at.path.name for at in sides)
    return one, other


def _compilations(found: CompilationDiff, pair: Pair, *, everything: bool) -> Iterator[Line]:
    places, (before, after) = _Both(pair), _names(pair)
    for mark, style, run, name, c in (
        ("- ", "red", pair.before, before, found.before),
        ("+ ", "green", pair.after, after, found.after),
    ):
        n = number_of(run, c)
        facts = [
            name if pair.before is not pair.after else "",
            places.of(run is pair.after).frame(c.site),
        ]
        facts += [None if c.step is None else f"step {c.step:,}", seconds(c.seconds)]
        yield line(
            (mark, style), (f"{function_name(c.function)}#{n}", "bold"),
            (f"  {', '.join(escape(f, 160) for f in facts if f)}", "dim"), hang=2,
        )  # fmt: skip
    spent = _spent(found)
    if spent:
        yield line(", ".join(spent), indent=2, hang=2)
    if found.reached[0] != found.reached[1]:
        yield line(_arrow(*(", ".join(r) or "unfinished" for r in found.reached)), indent=2)
    yield BLANK
    if found.causes is None:
        yield line("Cache keys: one of the two was not recorded.")
    elif not found.causes:
        yield line("Cache keys: the same.")
    else:
        yield line(("What differs in the cache key", "underline"))
        for cause in found.causes if everything else found.causes[: 2 * SHOWN]:
            yield line(phrases.cause(cause), indent=2, hang=2)
        if len(found.causes) > 2 * SHOWN and not everything:
            yield line((f"and {len(found.causes) - 2 * SHOWN:,} more: --all shows them", "dim"), indent=2)
    yield BLANK
    if found.program is None:
        yield line("Programs: one of the two is not known.")
    else:
        yield from _program(found.program, places, "The program: ", everything=everything, indent=0)


def _spent(found: CompilationDiff) -> list[str]:
    parts = []
    for word in ("trace", "lower", "compile"):
        x, y = (getattr(c, f"{word}_seconds") for c in (found.before, found.after))
        if x is not None or y is not None:
            parts.append(f"{word} {_arrow(*('-' if s is None else seconds(s) for s in (x, y)))}")
    return parts


def _program(p: Changes, places: _Both, mark: str, *, everything: bool, indent: int = 4) -> Iterator[Line]:
    if p.before is None or p.after is None:
        word = "after" if p.before is None else "before"
        yield line(mark, f"only {word}: {escape(p.before or p.after or '', 12)}", indent=indent)
        return
    if p.same:
        yield line(mark, f"the same ({escape(p.before, 12)}).", indent=indent)
        return
    if p.before == p.after:
        yield line(mark, ("the same StableHLO, compiled to something else", "bold"), indent=indent, hang=2)
    else:
        ids = f"  {escape(p.before, 12)} → {escape(p.after, 12)}"
        yield line(mark, ("another one", "bold"), (ids, "dim"), indent=indent)
    told = False
    unknown = []
    by_line = bool(p.fusions_by_line)
    for name, found in p.parts.items():
        if found is None:
            if name != "remats":  # the report of the run says where nobody heard of them
                unknown.append(PARTS[name])
            continue
        if not found or (name == "fusions_by_line" and not p.fusions):
            continue
        told = True
        lines = [_difference(name, d, places) for d in found]
        shown = lines if everything else lines[:SHOWN]
        title = f"{PARTS[name]} by line" if name == "fusions_by_line" and by_line else PARTS[name]
        yield line((title, "underline"), indent=indent + 2)
        for text in shown:
            yield line(text, indent=indent + 4, hang=2)
        if len(lines) > len(shown):
            yield line((f"and {len(lines) - len(shown):,} more: --all shows them", "dim"), indent=indent + 4)
    if unknown:
        names = ", ".join(dict.fromkeys(unknown))
        yield line((f"not known of both: {names}", "dim"), indent=indent + 2, hang=2)
    if not told:
        yield line("nothing else that is compared differs", indent=indent + 2)


def _difference(part: str, d: Figure | Changed | Entry, places: _Both) -> str:
    if isinstance(d, Figure):
        return _figure(part, d)
    if isinstance(d, Changed):
        return _changed(d, places)
    sizes = dict.fromkeys(size(n) for n in (d.bytes_before, d.bytes_after) if n is not None)
    much = f" ({' → '.join(sizes)})" if sizes else ""
    was, now = (None if t is None else escape(t, 160) for t in (d.before, d.after))
    said = (
        f"+ {now}" if was is None else f"- {was}" if now is None else now if was == now else f"{was} → {now}"
    )
    return f"{escape(d.name, 80)}: {said}{much}"


def _figure(part: str, d: Figure) -> str:
    assert d.before is not None and d.after is not None
    name = d.what.removesuffix("_bytes").replace("_", " ")
    if part == "ops":
        name = escape(d.what.removeprefix("stablehlo."), 60)
    elif part == "loops":
        name = f"loops of {d.what.partition('.')[2]} turns"
    elif d.what in ("instructions", "total"):
        name = "in all"
    name = escape(name, 80)
    if d.what.endswith("_bytes") or d.what == "bytes_accessed":
        change = d.after - d.before
        return f"{name}: {size(d.before)} → {size(d.after)} ({'+' if change > 0 else '-'}{size(abs(change))})"
    if abs(max(d.before, d.after)) >= 1e6:
        return f"{name}: {d.before:.4g} → {d.after:.4g}"
    return f"{name}: {d.before:,.0f} → {d.after:,.0f} ({d.after - d.before:+,.0f})"


def _changed(d: Changed, places: _Both) -> str:
    """``train.py:31: +1 all-gather over data, 32.0 MiB x 4``."""
    item = d.after or d.before
    assert item is not None
    where = places.of(d.after is not None).frame(item.source) or "no line"
    if d.before is None or d.after is None:
        sign = "+" if d.before is None else "-"
        return f"{where}: {sign}{d.count} {_item(item)}"
    times = f"{d.count} x " if d.count > 1 else ""
    return f"{where}: {times}{_item(d.before)} → {_item(d.after, d.before)}"


def _item(i: Item, unlike: Item | None = None) -> str:
    """In words; of ``unlike`` what it has in common is left out."""
    if i.axes is None and i.bytes is None and i.executions is None:
        return escape(i.kind, 40)
    parts = []
    if unlike is None or (unlike.kind, unlike.axes) != (i.kind, i.axes):
        over = "" if i.axes is None else " over " + (", ".join(escape(a, 40) for a in i.axes) or "nobody")
        parts.append(f"{escape(i.kind, 40)}{over}")
    times = "" if i.executions == 1 else f" x {'?' if i.executions is None else f'{i.executions:,}'}"
    parts.append(f"{'? B' if i.bytes is None else size(i.bytes)}{times}")
    if i.origin is not None and (unlike is None or unlike.origin != i.origin):
        parts.append(i.origin)
    return ", ".join(parts)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _text(value: str | None) -> str:
    return "?" if value is None else escape(value, 120)


class _Both:
    """File names of both sides, as short as they stay clear."""

    def __init__(self, pair: Pair) -> None:
        self._before = Places(pair.before)
        self._after = self._before if pair.before is pair.after else Places(pair.after)

    def of(self, after: bool) -> Places:
        return self._after if after else self._before


# -- JSON --------------------------------------------------------------------------------------------------


def as_json(found: RunDiff | CompilationDiff, pair: Pair) -> dict[str, Any]:
    """For ``json.dumps``: ``functions`` of two runs, or ``compilation``; the other is null."""
    from jaxscope import __version__

    told: dict[str, Any] = dict.fromkeys(("run", "functions", "compilation"))
    if isinstance(found, CompilationDiff):
        told["compilation"] = _compilation_json(found, pair)
    else:
        told["run"] = {n: {"before": x, "after": y} for n, (x, y) in found.facts.items()}
        told["functions"] = [_function_json(f) for f in found.functions]
    return {
        "schema": 1,
        "jaxscope": __version__,
        "before": _run_json(pair.before, pair.before_at),
        "after": _run_json(pair.after, pair.after_at),
        "differs": found.differs,
        **told,
    }


def _run_json(run: Run, at: RunDir) -> dict[str, Any]:
    return {
        "run": at.path.name,
        "settings": dict(at.settings),
        "seconds": run.seconds,
        "compiling_seconds": run.compiling_seconds,
    }


def _function_json(f: FunctionDiff) -> dict[str, Any]:
    return {
        "name": f.function.name,
        "differs": f.differs,
        "before": _seconds_json(f.before),
        "after": _seconds_json(f.after),
        "counts": {n: {"before": x, "after": y} for n, (x, y) in f.counts.items()},
        "causes": [{"kind": c.kind, "path": c.path, "before": c.before, "after": c.after} for c in f.causes],
        "programs": [changes_json(p) for p in f.programs],
    }


def _seconds_json(f: Function | None) -> dict[str, Any] | None:
    if f is None:
        return None
    return {
        "id": f.id, "file": f.seen.file, "line": f.seen.line, "compilations": f.compiled,
        "trace_seconds": f.trace_seconds, "lower_seconds": f.lower_seconds, "compile_seconds": f.compile_seconds,
    }  # fmt: skip


def _compilation_json(found: CompilationDiff, pair: Pair) -> dict[str, Any]:
    from jaxscope.report.machine import cause_json

    def side(run: Run, c: Compilation) -> dict[str, Any]:
        return {
            "id": c.id, "function": c.function.id, "ordinal": number_of(run, c), "step": c.step, "reached": c.reached,
            "seconds": {"trace": c.trace_seconds, "lower": c.lower_seconds, "compile": c.compile_seconds},
            "persistent_cache": c.compiled.persistent_cache if c.compiled is not None else None,
        }  # fmt: skip

    return {
        "before": side(pair.before, found.before),
        "after": side(pair.after, found.after),
        "causes": None if found.causes is None else [cause_json(c) for c in found.causes],
        "program": None if found.program is None else changes_json(found.program),
    }


def changes_json(p: Changes) -> dict[str, Any]:
    """One program beside another; a part is null where one of the two is not known, ``[]`` where they agree."""
    return {
        "before": p.before,
        "after": p.after,
        "same": p.same,
        **{name: None if found is None else _list_json(found) for name, found in p.parts.items()},
    }


def _list_json(found: Sequence[Figure | Changed | Entry]) -> list[dict[str, Any]]:
    import msgspec

    return [msgspec.to_builtins(d) for d in found]
