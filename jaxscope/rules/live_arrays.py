"""JX501 and JX502: arrays that pile up, and arrays kept whole on every device of a mesh."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.paths import tokens
from jaxscope.model import arrays
from jaxscope.model.arrays import Group, Growth, Snapshot
from jaxscope.model.run import Run
from jaxscope.rules.programs import mib
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding

SMALL_PER_STEP = 1024  # bytes: a list of losses is worth a note
SMALL_SAVING = 1 << 20  # bytes on each device
SMALL_SHARE = 0.05  # of what lies there
MOST_EVIDENCE = 20


@rule("JX501", "growing-arrays", WARNING)
def growing(run: Run) -> Iterator[Finding]:
    for g in arrays.growing(run):
        last, has, size = g.seen[-1]
        verb = "grows" if g.group.path else "grow"
        what = g.group.path or f"arrays held by {g.held or 'what no variable leads to'}"
        pace = f"{_each(g.arrays_per_step)} and {g.bytes_per_step:,.0f} bytes a step"
        yield Finding(
            code="JX501",
            severity=WARNING if g.bytes_per_step >= SMALL_PER_STEP else NOTE,
            certainty=CERTAIN,
            title=f"{what} {verb} by {pace}: {has:,} arrays, {size:,} bytes after step {last:,}",
            source=g.group.origin,
            evidence=[
                Evidence(f"{n:,} arrays, {b:,} bytes", source=g.group.origin, step=step)
                for step, n, b in g.seen
            ],
            fix=_fix(g),
        )


def _each(rate: float) -> str:
    text = f"{rate:.3g}"
    return f"{text} array" if text == "1" else f"{text} arrays"


def _fix(g: Growth) -> str:
    if g.group.path is None and g.held is not None and "jit cache" in g.held:
        return "pass them as arguments: each trace keeps the arrays that it took from outside"
    if g.group.path is None and g.held is not None:
        return f"let go of the results of this line: they are kept by {g.held}"
    if g.group.path is None:
        return "see what keeps the results of this line: a cycle, a cache or an object in a library"
    holder = g.group.path.partition("[*]")[0]
    if g.group.shape == ():
        return f"keep numbers in {holder}, not arrays: float(x) of the step before"
    return f"let {holder} keep a fixed number of them, or copy them to the host with jax.device_get"


@rule("JX502", "replicated-array", WARNING)
def replicated(run: Run) -> Iterator[Finding]:
    alike: dict[tuple[str, tuple[tuple[str, int], ...], str], list[_Copied]] = {}
    for tree, members in _trees(run).items():
        for g, look in members:
            if (found := _copied(g, look, [m for m, _ in members])) is not None:
                alike.setdefault((tree, found.missing, found.axis), []).append(found)
    for (tree, _, _), several in alike.items():
        if (finding := _replicated(tree, several)) is not None:
            yield finding


class _Copied(msgspec.Struct, frozen=True):
    """Arrays with copies along ``missing`` (axes and their sizes), to be split over ``axis`` in ``dimension``.

    ``like``: the largest arrays of the same tree that are split over it, the largest first.
    """

    group: Group
    look: Snapshot
    missing: tuple[tuple[str, int], ...]
    axis: str
    dimension: int
    like: list[Group]

    @property
    def held(self) -> int:
        return self.group.device_bytes or 0

    @property
    def saved(self) -> int:
        return self.held - self.held // dict(self.missing)[self.axis]


def _trees(run: Run) -> dict[str, list[tuple[Group, Snapshot]]]:
    """The named arrays by the tree they belong to, each as the fullest look that met it has it.

    Not all of the fullest look alone: what it does not meet, or has no name for, can be as large.
    """
    looks = arrays.of_main(run)
    first = arrays.fullest(looks)
    looks.sort(key=lambda s: (s is not first, -(s.bytes or 0)))
    trees: dict[str, list[tuple[Group, Snapshot]]] = {}
    met: dict[tuple[object, ...], Snapshot] = {}
    for look in looks:
        for g in look.groups:
            if g.path is not None and met.setdefault((g.path, g.shape, g.dtype), look) is look:
                trees.setdefault(_tree(g.path), []).append((g, look))
    return trees


def _replicated(tree: str, members: list[_Copied]) -> Finding | None:
    """``members`` are copied along the same axes; None: too little to tell."""
    members = sorted(members, key=lambda m: -m.held)
    first = members[0]
    held, saved = sum(m.held for m in members), sum(m.saved for m in members)
    most = max(first.look.by_device.values(), default=0)
    if saved < SMALL_SAVING or held < SMALL_SHARE * most:
        return None
    one = len(members) == 1
    count = sum(m.group.count for m in members)
    name, told = (
        (first.group.path, "") if one else (tree, f" ({count:,} arrays, the largest {first.group.path})")
    )
    axes = [repr(a) for a, _ in first.missing]
    along = f" along mesh axis {axes[0]}" if len(axes) == 1 else f", along mesh axes {_listed(axes)}"
    like = ""
    if first.like:
        more = sum(g.count for g in first.like) - 1
        others = "" if not more else f" and {more:,} more of {tree}"
        like = f" ({first.like[0].path}{others} {'are' if more else 'is'} split over {first.axis!r})"
    return Finding(
        code="JX502",
        severity=WARNING,
        certainty=LIKELY,  # copies over the data axis are what plain data parallelism is
        title=f"{name} lies {math.prod(n for _, n in first.missing):,} times{along}{like}: {mib(held)} on each device, "
        f"{mib(saved)} fewer where it is split over {first.axis!r}{told}",
        source=first.group.origin,
        evidence=[
            Evidence(
                f"{m.group.path}: {mib(m.held)} on each device, dimension {m.dimension} divides",
                source=m.group.origin,
                step=m.look.step,
            )
            for m in members[:MOST_EVIDENCE]
        ],
        fix=f"give dimension {first.dimension} of {first.group.path} the axis {first.axis!r} in its PartitionSpec"
        + (f", as {first.like[0].path} has it" if first.like else "")
        + ("" if one else ", and the others one that it divides"),
    )


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _tree(path: str) -> str:
    """What a user would call parameters or optimiser state: a variable, and the attribute of it if there is one.

    ``state.params['block0']['w']`` -> ``state.params``; ``opt_state[*].mu['w']`` -> ``opt_state``.
    """
    steps = tokens(path)
    return "".join(steps[:2] if len(steps) > 1 and steps[1].startswith(".") else steps[:1]) or path


def _copied(g: Group, look: Snapshot, tree: list[Group]) -> _Copied | None:
    """Over which axis ``g`` can be split that it holds copies along: one that others of its tree are split over, else
    the largest. None: there is no such axis, or no dimension divides."""
    shape = [d for d in g.shape or () if isinstance(d, int)]
    if g.sharding is None or g.device_bytes is None or not shape or len(shape) != len(g.shape or ()):
        return None
    found = sh.layout(g.sharding, len(shape))
    if found is None or math.prod(shape) == 0:
        return None
    missing = sh.missing_axes(g.sharding)
    like = {axis: _split_over(axis, size, tree) for axis, size in missing}
    for axis, size in sorted(missing, key=lambda a: (not like[a[0]], -a[1])):
        # One that is not split yet first: what it is split over by now is meant.
        for dimension in sorted(range(len(shape)), key=lambda d: (found.parts[d] > 1, -shape[d])):
            if shape[dimension] % (found.parts[dimension] * size) == 0:
                return _Copied(g, look, tuple(missing), axis, dimension, like[axis])
    return None


def _split_over(axis: str, size: int, tree: list[Group]) -> list[Group]:
    """Those of ``tree`` that are split over ``axis`` of that many devices, the largest first."""
    return sorted((g for g in tree if _is_split(g, axis, size)), key=lambda g: -(g.global_bytes or 0))


def _is_split(g: Group, axis: str, size: int) -> bool:
    mesh = None if g.sharding is None else sh.grid(g.sharding)
    spec = None if g.sharding is None else sh.spec_axes(g.sharding.spec)
    if mesh is None or spec is None or dict(mesh.axes).get(axis) != size:
        return False
    return any(axis in names for names in spec[0])
