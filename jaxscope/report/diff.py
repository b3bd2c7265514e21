"""Report what differs between two runs (recordings of programs) or between two compilations, as lines of text
and as JSON (``jaxscope diff``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
from rich.console import Console

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model.changes import Changed, Changes, Entry, Item
from jaxscope.model.diff import CompilationDiff, FunctionDiff, RunDiff
from jaxscope.model.metrics import Difference
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.present import differences
from jaxscope.present.causes import explanation, kind_name
from jaxscope.present.escape import escape
from jaxscope.present.runs import compiling, cut_short
from jaxscope.present.text import Places, count, function_name, seconds, size
from jaxscope.report import contract
from jaxscope.report.layout import BLANK, Line, line, put

SHOWN = 6  # differences in one part of a program
FUNCTIONS, PROGRAMS = 12, 3
PARTS = {
    "ops": "operations",
    "instructions": "instructions",
    "fusions": "fusions",
    "fusions_by_line": "fusions by line",
    "collectives": "collectives",
    "loops": "loops",
    "memory": "memory",
    "cost": "work",
    "donation": "donation",
    "constants": "constants",
    "remats": "rematerialization",
    "upcasts": "conversions to wider types",
    "products": "matrix products",
    "callbacks": "callbacks",
}
COUNTS = {
    "traces": "traces",
    "lowerings": "lowerings",
    "compiled": "compilations",
    "persistent_cache_hits": "persistent-cache hits",
    "fast_path_misses": "fast-path misses",
}


class Pair(NamedTuple):
    """Two runs to compare, ``before`` and ``after``, and their directories ``before_at`` and ``after_at``."""

    before: Run
    before_at: RunDir
    after: Run
    after_at: RunDir


def render(diff: RunDiff | CompilationDiff, pair: Pair, to: Console, *, everything: bool = False) -> None:
    """Print to the console ``to`` what ``diff`` has: how two runs, or two compilations, differ. ``pair`` has
    the two runs, or those that contain the compilations. ``everything`` (``--all``) prints all
    differences."""
    page = _Page(pair, everything)
    put(to, page.compilations(diff) if isinstance(diff, CompilationDiff) else page.runs(diff))


class _Page:
    """Turns the differences of two runs, or of two compilations, into lines of text.

    Args:
      pair: the two runs (for compilations, those that contain them), and their directories.
      everything: print all differences (``--all``).
    """

    def __init__(self, pair: Pair, everything: bool) -> None:
        self._pair = pair
        self._everything = everything
        self._before = Places(pair.before)
        self._after = self._before if pair.before is pair.after else Places(pair.after)

    def _places(self, *, after: bool) -> Places:
        """Return the object that shortens the file names of the run after, or with ``after=False`` of the run
        before."""
        return self._after if after else self._before

    def _shown(self, items: Sequence[Any], most: int) -> Sequence[Any]:
        return items if self._everything else items[:most]

    def runs(self, diff: RunDiff) -> Iterator[Line]:
        """Yield the lines about how two runs differ: first facts of the runs, then each function that
        differs."""
        sides = self._pair.before, self._pair.after
        for mark, style, name, run in zip("-+", ("error", "good"), self._names(), sides, strict=True):
            compiled = sum(f.compiled for f in run.functions.values())
            cost = f"  {count(compiled, 'compilation')}; "
            spent = compiling(run, shares=False) or ["seconds unknown"]
            yield line((f"{mark} ", style), (name, "name"), cost, *spent, cut_short(run), hang=2)
        for fact, values in diff.facts.items():
            texts = ["?" if v is None else escape(v, 120) for v in values]
            yield line(f"{fact.replace('_', ' ')}: ", _arrow(*texts), indent=2, hang=4)
        differing = [f for f in diff.functions if f.differs]
        users = [f for f in differing if self._everything or f.function.user]
        shown = self._shown(users, FUNCTIONS)
        for f in shown:
            yield BLANK
            yield from self._function(f)
        if len(users) > len(shown):
            yield BLANK
            more = count(len(users) - len(shown), "more function")
            yield line((f"and {more} with differences: --all shows them", "dim"))
        folded, same = len(differing) - len(users), sum(not f.differs for f in diff.functions)
        yield BLANK
        if not differing:
            yield line(f"No difference in {count(same, 'function')}.")
            return
        rest = [f"{count(same, 'function')} without a difference"] if same else []
        if folded:
            internal = count(folded, "library-internal or eager function")
            rest.append(f"{internal} with differences: --all shows them")
        if rest:
            yield line((", ".join(rest), "dim"))

    def _names(self) -> tuple[str, str]:
        """Return the names of the runs before and after. If one ``jaxscope run --vary`` made both runs, their
        names are the values that it gave the program (``MESH=4x4``)."""
        sides = self._pair.before_at, self._pair.after_at
        before, after = (store.label_of(at) for at in sides)
        homes = {(store.parent_of(at) or at).path.absolute() for at in sides}
        if len(homes) == 1 and before and after and before != after:
            return before, after
        one, other = (store.address(at) if store.parent_of(at) is not None else at.path.name for at in sides)
        return one, other

    def _function(self, f: FunctionDiff) -> Iterator[Line]:
        """Yield the lines about how one function differs: its seconds, counts, causes of recompiles, and
        programs."""
        site = self._places(after=f.after is not None).function(f.function)
        spent = _arrow(*(seconds(x.seconds) if x is not None else "absent" for x in (f.before, f.after)))
        name = (function_name(f.function), "bold")
        yield line(name, (f"  {site}" if site else "", "dim"), right=(spent, "bold"), hang=2)
        if f.before is None or f.after is None:
            side = "after" if f.before is None else "before"
            yield line(f"only {side}: {count(f.function.compiled, 'compilation')}", indent=4)
            return
        if f.moved and (was := self._before.function(f.before)) != site:
            yield line((f"was {was}", "dim"), indent=4)
        for field, (x, y) in f.counts.items():
            yield line(f"{COUNTS[field]}: ", _arrow(f"{x:,}", f"{y:,}"), indent=4)
        for c in f.causes:
            where = f" of {escape(c.path, 80)}" if c.path else ""
            times = _arrow(f"{c.before}x", f"{c.after}x")
            yield line((kind_name(c.kind), "bold"), f"{where}: recompiled ", times, indent=4, hang=2)
        shown = self._shown(f.programs, PROGRAMS)
        for n, p in enumerate(shown, 1):
            position = f" {n} of {len(f.programs)} with differences" if len(f.programs) > 1 else ""
            yield from self._program(p, f"program{position}: ", indent=4)
        if len(f.programs) > len(shown):
            more = count(len(f.programs) - len(shown), "more program")
            yield line((f"and {more}: --all shows them", "dim"), indent=4)

    def compilations(self, diff: CompilationDiff) -> Iterator[Line]:
        """Yield the lines about how two compilations differ: seconds, cache keys and programs."""
        names = self._names() if self._pair.before is not self._pair.after else ("", "")
        for mark, style, run, name, c in (
            ("- ", "error", self._pair.before, names[0], diff.before),
            ("+ ", "good", self._pair.after, names[1], diff.after),
        ):
            facts = [
                name,
                self._places(after=run is self._pair.after).frame(c.site),
                None if c.step is None else f"step {c.step:,}",
                seconds(c.seconds),
            ]
            title = (f"{function_name(c.function)}#{run.number(c)}", "bold")
            about = (f"  {', '.join(escape(f, 160) for f in facts if f)}", "dim")
            yield line((mark, style), title, about, hang=2)
        spent = []
        for phase in ("trace", "lower", "compile"):
            both = [getattr(c, f"{phase}_seconds") for c in (diff.before, diff.after)]
            if both != [None, None]:
                spent.append(f"{phase} {_arrow(*('-' if s is None else seconds(s) for s in both))}")
        if spent:
            yield line(", ".join(spent), indent=2, hang=2)
        if diff.reached[0] != diff.reached[1]:
            yield line(_arrow(*(", ".join(r) or "unfinished" for r in diff.reached)), indent=2)
        yield BLANK
        if not diff.causes:
            text = "one of the two was not recorded" if diff.causes is None else "the same"
            yield line(f"Cache keys: {text}.")
        else:
            yield line(("What differs in the cache key", "title"))
            shown = self._shown(diff.causes, 2 * SHOWN)
            for cause in shown:
                yield line(explanation(cause), indent=2, hang=2)
            if len(diff.causes) > len(shown):
                yield line((f"and {len(diff.causes) - len(shown):,} more: --all shows them", "dim"), indent=2)
        yield BLANK
        if diff.program is None:
            yield line("Programs: one of the two is unknown.")
        else:
            yield from self._program(diff.program, "Program: ", indent=0)

    def _program(self, p: Changes, title: str, indent: int) -> Iterator[Line]:
        """Yield the lines about how two programs differ: ``title``, then a heading and the differences for
        each part that differs, such as collectives or memory."""
        if p.before is None or p.after is None:
            side = "after" if p.before is None else "before"
            yield line(title, f"only {side}: {escape(p.before or p.after or '', 12)}", indent=indent)
            return
        if p.same:
            yield line(title, f"the same ({escape(p.before, 12)}).", indent=indent)
            return
        if p.before == p.after:
            yield line(title, ("same StableHLO, compiled differently", "bold"), indent=indent, hang=2)
        else:
            ids = f"  {escape(p.before, 12)} → {escape(p.after, 12)}"
            yield line(title, ("changed", "bold"), (ids, "dim"), indent=indent)
        # Unknown rematerialization is left out here: the report of a run states it.
        unknown = [PARTS[name] for name, found in p.parts.items() if found is None and name != "remats"]
        differing = _differing(p)
        for name, found in differing.items():
            yield line((PARTS[name], "title"), indent=indent + 2)
            shown = self._shown(found, SHOWN)
            for d in shown:
                yield line(self._difference(name, d), indent=indent + 4, hang=2)
            if len(found) > len(shown):
                more = f"and {len(found) - len(shown):,} more: --all shows them"
                yield line((more, "dim"), indent=indent + 4)
        if unknown:
            names = ", ".join(name for name in unknown if name != PARTS["fusions_by_line"])
            yield line((f"unknown in one of the two: {names}", "dim"), indent=indent + 2, hang=2)
        if not differing:
            yield line("no difference in anything that is compared", indent=indent + 2)

    def _difference(self, metric: str, d: Difference | Changed | Entry) -> str:
        """Return one difference ``d`` of two programs as text:
        ``temporaries: 1.0 MiB → 1.5 MiB (+512.0 KiB)``. ``metric`` is the name of the part of the programs,
        such as ``memory``."""
        if isinstance(d, Difference):
            return f"{differences.name(metric, d)}: {differences.change(d)}"
        if isinstance(d, Changed):
            return self._changed(d)
        sizes = dict.fromkeys(size(n) for n in (d.bytes_before, d.bytes_after) if n is not None)
        was, now = (None if t is None else escape(t, 160) for t in (d.before, d.after))
        text = f"+ {now}" if was is None else f"- {was}" if now is None else _arrow(was, now)
        return f"{escape(d.name, 80)}: {text}" + (f" ({' → '.join(sizes)})" if sizes else "")

    def _changed(self, d: Changed) -> str:
        """Return a text about equal collectives or fusions of one source line that were added, removed or
        changed: ``train.py:31: +1 all-gather over data, 32.0 MiB x 4``."""
        item = d.after or d.before
        assert item is not None
        where = self._places(after=d.after is not None).frame(item.source) or "unknown line"
        if d.before is None or d.after is None:
            return f"{where}: {'+' if d.before is None else '-'}{d.count} {_item(item)}"
        times = f"{d.count} x " if d.count > 1 else ""
        return f"{where}: {times}{_item(d.before)} → {_item(d.after, d.before)}"


def _differing(p: Changes) -> dict[str, Sequence[Difference | Changed | Entry]]:
    """Return the parts in which two programs differ: {name of the part (``collectives``): its
    differences}."""
    parts: dict[str, Any] = dict(p.parts)
    # The part ``fusions`` also has the figure unfused_elementwise: print it once.
    parts["instructions"] = [d for d in p.instructions or () if d.what != "unfused_elementwise"]
    if not p.fusions:
        parts["fusions_by_line"] = None
    return {name: found for name, found in parts.items() if found}


def _item(i: Item, unlike: Item | None = None) -> str:
    """Return the collective or fusion ``i`` as text: ``all-gather over data, 32.0 MiB x 4``. If ``unlike`` is
    given, the text lacks the kind and axes, and the origin, where ``unlike`` has the same."""
    if i.axes is None and i.bytes is None and i.executions is None:
        return escape(i.kind, 40)
    parts = []
    if unlike is None or (unlike.kind, unlike.axes) != (i.kind, i.axes):
        over = "" if i.axes is None else f" over {', '.join(escape(a, 40) for a in i.axes) or 'no axis'}"
        parts.append(f"{escape(i.kind, 40)}{over}")
    times = "" if i.executions == 1 else f" x {'?' if i.executions is None else f'{i.executions:,}'}"
    parts.append(f"{'? B' if i.bytes is None else size(i.bytes)}{times}")
    if i.origin is not None and (unlike is None or unlike.origin != i.origin):
        parts.append(i.origin)
    return ", ".join(parts)


def _arrow(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


# -- JSON --------------------------------------------------------------------------------------------------


def as_json(diff: RunDiff | CompilationDiff, pair: Pair) -> dict[str, Any]:
    """Return the differences between two runs, or two compilations, as plain data for JSON. For two
    compilations, the keys ``run`` (facts of the runs) and ``functions`` are None; for two runs,
    ``compilation`` is None. ``pair`` has the two runs (or those that contain the compilations) and their
    directories."""
    from jaxscope import __version__

    parts: dict[str, Any] = dict.fromkeys(("run", "functions", "compilation"))
    if isinstance(diff, CompilationDiff):
        parts["compilation"] = _compilation_json(diff, pair)
    else:
        parts["run"] = {n: {"before": x, "after": y} for n, (x, y) in diff.facts.items()}
        parts["functions"] = [_function_json(f) for f in diff.functions]
    return {
        "schema": 1,
        "jaxscope": __version__,
        "before": _run_json(pair.before, pair.before_at),
        "after": _run_json(pair.after, pair.after_at),
        "differs": diff.differs,
        **parts,
    }


def _run_json(run: Run, directory: RunDir) -> dict[str, Any]:
    return {
        "run": directory.path.name,
        "settings": dict(directory.settings),
        "seconds": run.seconds,
        "compiling_seconds": run.compiling_seconds,
    }


def _function_json(f: FunctionDiff) -> dict[str, Any]:
    return {
        "name": f.function.name,
        "differs": f.differs,
        "before": _side_json(f.before),
        "after": _side_json(f.after),
        "counts": {n: {"before": x, "after": y} for n, (x, y) in f.counts.items()},
        "causes": msgspec.to_builtins(f.causes),
        "programs": [changes_json(p) for p in f.programs],
    }


def _side_json(f: Function | None) -> dict[str, Any] | None:
    """Return the id, line, compilations and seconds of a function in one of the two runs. None if that run
    does not have the function."""
    if f is None:
        return None
    spent = {name: getattr(f, name) for name in ("trace_seconds", "lower_seconds", "compile_seconds")}
    return {"id": f.id, "file": f.seen.file, "line": f.seen.line, "compilations": f.compiled, **spent}


def _compilation_json(diff: CompilationDiff, pair: Pair) -> dict[str, Any]:
    """Return the differences between two compilations as plain data: both sides, the causes, and the
    programs. ``causes`` is None if one of the cache keys was not recorded, ``program`` if one of the programs
    is unknown."""

    def side(run: Run, c: Compilation) -> dict[str, Any]:
        return {
            "id": c.id,
            "function": c.function.id,
            "ordinal": run.number(c),
            "step": c.step,
            "reached": c.reached,
            "seconds": {"trace": c.trace_seconds, "lower": c.lower_seconds, "compile": c.compile_seconds},
            "persistent_cache": c.compiled.persistent_cache if c.compiled is not None else None,
        }

    return {
        "before": side(pair.before, diff.before),
        "after": side(pair.after, diff.after),
        "causes": None if diff.causes is None else [contract.Cause.of(c) for c in diff.causes],
        "program": None if diff.program is None else changes_json(diff.program),
    }


def changes_json(p: Changes) -> dict[str, Any]:
    """Return the differences between two programs as plain data for JSON: name of a part (``collectives``) ->
    list of its differences, or None if the part is unknown for one of the programs. Further keys are
    ``before`` and ``after`` (the ids of the programs) and ``same``."""
    return {"before": p.before, "after": p.after, "same": p.same, **msgspec.to_builtins(p.parts)}
