"""Rules JX501 (live arrays whose number or size grows from step to step) and JX502 (arrays that are
replicated over a mesh axis). Both read the snapshots of live arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import msgspec

from jaxscope.analysis import growing_lists
from jaxscope.analysis import sharding as sh
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.paths import root
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.model import arrays, sources
from jaxscope.model.arrays import Group, Growth, Snapshot
from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.eager_compilations import compiled_for_each_length
from jaxscope.rules.finding_parts import at_line, mesh_axes
from jaxscope.rules.registry import rule
from jaxscope.schema.arrays import TRACE
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.messages import Bytes, Count, Message, Seconds, message

SMALL = 1024  # bytes per step, or of one array: with fewer, as for a list of losses, it is a note
SMALL_CONTAINER = 1 << 20  # bytes of all arrays that a container keeps, if steps are not counted
SMALL_SHARE = 0.05  # share of the bytes of live arrays on the device: less is not reported
MOST_EVIDENCE = 20
_OF_FLAX = re.compile(r"\._(?:parent_ref|variables)\b")  # the parameters that a module of Flax is creating
FEWEST_APPENDED = 16  # the fewest arrays in a growing list, if only one snapshot and the source show it


@rule("JX501", "growing-arrays", WARNING)
def growing_arrays(run: Run) -> Iterator[Finding]:
    """Yield findings about live arrays that become more or longer, and about lists that a loop only adds
    to."""
    reported = set[str]()
    for g in arrays.growing(run):
        reported.add(root(g.path or ""))
        longer = not g.more_arrays
        small = g.more_bytes < SMALL * (1 if g.in_steps or longer else g.more_arrays)
        if (longer and small) or (not g.in_steps and (small or g.seen[-1][2] < SMALL_CONTAINER)):
            continue
        if (longer and compiled_for_each_length(run, g)) or _is_limited(run, g):
            continue  # JX133 has the same advice; or the program limits the length
        if not g.in_steps and (_is_of_one_call(run, g) or _OF_FLAX.search(g.path or "")):
            continue
        yield Finding(
            code="JX501",
            severity=NOTE if small else WARNING,
            certainty=CERTAIN if g.in_steps else LIKELY,
            title=_title(g, longer),
            source=g.group.origin,
            evidence=[_seen(g, *seen) for seen in g.seen],
            fix=_fix(g, longer),
            subject=(g.path, g.held or g.holder, g.group.origin),
        )

    yield from _appended(run, reported)


def _is_of_one_call(run: Run, g: Growth) -> bool:
    """Return whether the arrays of ``g`` seem to be parts of one result: their line is in no loop, and JAX
    still compiled for this line when they had grown."""
    at = g.group.origin
    if at is None or in_a_loop(sources.of(run)(at.file), at.line):
        return False
    compiled = [run.seconds_at(c.t_ns) for c in run.compilations.values() if same_line(c.site, at)]
    return max((t for t in compiled if t is not None), default=0.0) >= g.seen[-1][0]


def _is_limited(run: Run, g: Growth) -> bool:
    """Return whether a file of the user limits the length of the container of ``g``, which then stops
    growing."""
    name = (g.path or "").partition("[")[0].rpartition(".")[2]
    files = [file for file in run.sources if STANDING(file) == Standing.USER]
    text = sources.of(run)
    return bool(name) and any(growing_lists.is_limited(text(file), name) for file in (*files, *run.cells))


def _appended(run: Run, reported: Collection[str]) -> Iterator[Finding]:
    """Yield findings about lists that have many arrays in one snapshot, and that a loop in the source only
    adds to. ``reported`` are the names of variables that are left out."""
    lists: dict[str, list[Group]] = {}  # in the snapshot in which a list has the most bytes
    for snapshot in arrays.of_main(run):
        here: dict[str, list[Group]] = {}
        for g in snapshot.groups:
            name = (g.path or "").partition("[*]")[0]
            steps = name.split(".")
            known = name in reported or name == g.path
            if not known and len(steps) <= 2 and all(s.isidentifier() for s in steps):
                here.setdefault(name, []).append(g)
        for name, groups in here.items():
            if _on_device(groups) > _on_device(lists.get(name, ())):
                lists[name] = groups
    memory = memory_scale.of_process(run.main)
    for name, groups in lists.items():
        count, size = sum(g.count for g in groups), _on_device(groups)
        found = _added_to(run, name) if size >= memory_scale.WORTH_A_NOTE * memory else None
        if found is None or count < FEWEST_APPENDED:
            continue
        loop, line = found
        text = message(
            "appended-in-loop", container=name, line=loop, count=Count(count, "array"), bytes=Bytes(size)
        )
        yield Finding(
            code="JX501",
            severity=WARNING if size >= memory_scale.WORTH_A_WARNING * memory else NOTE,
            certainty=LIKELY,
            **at_line(text, line),
            fix=Fix(message("fix-keep-fewer", container=name), "keep_fewer", {"container": name}),
            subject=(name, line),
        )


def _on_device(groups: Iterable[Group]) -> int:
    return sum(g.device_bytes or g.global_bytes or 0 for g in groups)


def _added_to(run: Run, name: str) -> tuple[Frame, Frame] | None:
    """Return (loop, line that appends) of a loop that calls a jitted function of the user and only adds to
    the list ``name``. Return None if no such loop is found in the source."""
    calls: dict[str, set[int]] = {}
    for f in run.functions.values():
        for c in f.compilations if f.user else ():
            for at in c.lines:
                calls.setdefault(at.file, set()).add(at.line)
    for file, lines in calls.items():
        find = growing_lists.find_attribute if "." in name else growing_lists.find
        found = find(sources.of(run)(file), name, lines)
        if found is not None:
            return Frame(file, found[0], ""), Frame(file, found[1], "")
    return None


def _title(g: Growth, longer: bool) -> Message:
    """Return the title of the finding about ``g``; ``longer``: it is one array that becomes longer."""
    at, has, size = g.seen[-1]
    more, path = Bytes(g.more_bytes), g.group.path
    if longer and g.in_steps:
        return message("growing-array", path=path, more_bytes=more, bytes=Bytes(size), step=int(at))
    if longer:
        return message("growing-array-by-time", path=path, bytes=Bytes(size), seconds=Seconds(at))
    what: dict[str, Any] = {"arrays": _growing(g), "count": Count(has, "array"), "bytes": Bytes(size)}
    if g.in_steps:
        new = Count(g.more_arrays, "array")
        return message("growing-arrays", **what, more=new, more_bytes=more, step=int(at))
    return message("growing-arrays-by-time", **what, seconds=Seconds(at))


def _seen(g: Growth, position: float, count: int, size: int) -> Evidence:
    """Return the evidence from one snapshot of the live arrays about the growing arrays ``g``.

    Args:
      position: the step of the snapshot; the seconds since the start of the run if steps are not counted.
      count, size: the number and the bytes of the arrays at that time, over all devices.
    """
    what: dict[str, Any] = {"count": Count(count, "array"), "bytes": Bytes(size)}
    if g.in_steps:
        return Evidence(message("arrays-of-bytes", **what), source=g.group.origin, step=int(position))
    return Evidence(message("arrays-at-time", **what, seconds=Seconds(position)), source=g.group.origin)


def _growing(g: Growth) -> Message:
    """Return a message that names what holds the growing arrays ``g``."""
    if g.path is not None:
        inside = _below_items(g.group.path or "") if "[*]" in (g.group.path or "") else ""
        arrays_inside = message("arrays-inside", path=inside) if inside else None
        return message("path-grows", path=_container(g.path), inside=arrays_inside)
    holder = arrays.held_by(g)
    return message("held-arrays-grow", holder=holder) if holder else message("unreferenced-arrays-grow")


def _fix(g: Growth, longer: bool) -> Fix:
    if g.path is None:
        if g.holder is not None and g.holder.kind == TRACE:
            return Fix(message("fix-pass-captured-arrays"), "pass_argument")
        holder = arrays.held_by(g)
        if holder is None:
            return Fix(message("fix-find-references"), "release")
        return Fix(message("fix-release", holder=holder), "release", {"holder": holder})
    if longer:
        path = g.group.path
        return Fix(message("fix-final-length", path=path), "preallocate", {"path": path})
    container = _container(g.path)
    if "__traceback__" in (g.group.path or ""):
        return Fix(message("fix-keep-error-text", container=container), "release", {"container": container})
    if container.endswith(".<cache>"):
        function = container.removesuffix(".<cache>")
        return Fix(message("fix-bound-cache", function=function), "keep_fewer", {"container": function})
    if g.group.shape == ():
        return Fix(message("fix-keep-numbers", container=container), "keep_numbers", {"container": container})
    return Fix(message("fix-keep-fewer", container=container), "keep_fewer", {"container": container})


@rule("JX502", "replicated-array", WARNING)
def replicated_array(run: Run) -> Iterator[Finding]:
    """Yield a finding for each variable with large arrays that are replicated over a mesh axis and could be
    sharded over it."""
    alike: dict[tuple[str, tuple[tuple[str, int], ...], str], list[_Copied]] = {}
    for tree, members in _trees(run).items():
        for g, look in members:
            if (found := _copied(g, look, [m for m, _ in members])) is not None:
                alike.setdefault((tree, found.missing, found.axis), []).append(found)
    groups = grouped((tuple(axes), (tree, several)) for (tree, *axes), several in alike.items())
    for trees in groups.values():
        saved = {tree: sum(m.saved for m in several) for tree, several in trees}
        largest = max(saved, key=lambda tree: saved[tree])
        for tree, several in trees:
            # Parameters and an optimizer's copies of them may be worth a finding together only.
            together = sum(saved.values()) if tree == largest else saved[tree]
            if (finding := _replicated(run, tree, several, together)) is not None:
                yield finding


class _Copied(msgspec.Struct, frozen=True):
    """Arrays of one name that have copies on several devices, and how to shard them instead.

    Attributes:
      look: the snapshot of the live arrays that has these arrays.
      missing: the mesh axes along which they are replicated, as (axis, size).
      axis: the axis of ``missing`` to shard over.
      dimension: the dimension to shard.
      like: arrays of the same tree (such as ``params``) that are sharded over ``axis`` already, the largest
        first.
    """

    group: Group
    look: Snapshot
    missing: tuple[tuple[str, int], ...]
    axis: str
    dimension: int
    like: list[Group]

    @property
    def held(self) -> int:
        """Return the bytes of these arrays on one device."""
        return self.group.device_bytes or 0

    @property
    def saved(self) -> int:
        """Return the bytes on one device that sharding saves."""
        return self.held - self.held // dict(self.missing)[self.axis]


def _trees(run: Run) -> dict[str, list[tuple[Group, Snapshot]]]:
    """Return {tree: its arrays, each with a snapshot that has it}. The tree of ``params['w']`` is ``params``.
    Arrays without a name are left out. The snapshot is ``arrays.fullest`` if it has the array, else the one
    with the most bytes that has it."""
    looks = arrays.of_main(run)
    first = arrays.fullest(looks)
    looks.sort(key=lambda s: (s is not first, -(s.bytes or 0)))
    trees: dict[str, list[tuple[Group, Snapshot]]] = {}
    met: dict[tuple[object, ...], Snapshot] = {}
    for look in looks:
        for g in look.groups:
            if g.path is not None and met.setdefault((g.path, g.shape, g.dtype), look) is look:
                trees.setdefault(arrays.tree_of(g) or g.path, []).append((g, look))
    return trees


def _replicated(run: Run, tree: str, members: list[_Copied], together: int) -> Finding | None:
    """Return a finding about ``members``, arrays of one tree (such as ``params``) that are replicated along
    the same mesh axes. None if ``together``, the bytes that sharding them (and perhaps other trees) saves on
    each device, is too little, or if the arrays are a small share of the live arrays on a device."""
    members = sorted(members, key=lambda m: -m.held)
    first = members[0]
    held, saved = sum(m.held for m in members), sum(m.saved for m in members)
    most = max(first.look.by_device.values(), default=0)
    memory = memory_scale.of_process(run.main)
    if together < memory_scale.WORTH_A_NOTE * memory or held < SMALL_SHARE * most:
        return None
    # If no array of the tree is sharded, it is plain data parallelism.
    mistaken = bool(first.like) and saved >= memory_scale.WORTH_A_WARNING * memory
    path, count = _called(tree, first.group), sum(m.group.count for m in members)
    group = message("tree-arrays", count=Count(count, "array"), largest=path)
    one = len(members) == 1 and (isinstance(path, str) or path.slug == "array-in")
    axes = tuple(axis for axis, _ in first.missing)
    return Finding(
        code="JX502",
        severity=WARNING if mistaken else NOTE,
        certainty=LIKELY,
        title=message(
            "replicated-array",
            path=path if one else tree,
            copies=math.prod(n for _, n in first.missing),
            axes=mesh_axes(axes),
            like=_like(tree, first),
            held=Bytes(held),
            saved=Bytes(saved),
            axis=first.axis,
            arrays=None if one else group,
        ),
        source=first.group.origin,
        evidence=[
            Evidence(
                message(
                    "replicated-bytes",
                    path=_called(tree, m.group),
                    bytes=Bytes(m.held),
                    dimension=m.dimension,
                ),
                source=m.group.origin,
                step=m.look.step,
            )
            for m in members[:MOST_EVIDENCE]
        ],
        fix=_shard(run, tree, first, others=len(members) > 1, saved=saved),
        subject=(tree, first.missing, first.axis),
    )


def _shard(run: Run, tree: str, first: _Copied, *, others: bool, saved: int) -> Fix:
    """Return the advice to shard replicated arrays of ``tree``, of which ``first`` are the largest.
    ``others``: whether there are other arrays; ``saved``: the bytes that this saves on each device."""
    if _is_one_replica(run, first.group):
        return Fix(message("fix-one-replica", tree=tree), "device_get", {"path": first.group.path})
    words = message(
        "fix-shard-dimension",
        dimension=first.dimension,
        path=_called(tree, first.group),
        axis=first.axis,
        spec=_spec(first.group, first.dimension, first.axis),
        like=message("shard-like", path=first.like[0].path) if first.like else None,
        others=message("shard-the-others") if others else None,
        price=Bytes(saved),
    )
    arguments = {"path": first.group.path, "dimension": first.dimension, "axis": first.axis}
    return Fix(words, "shard", arguments)


def _is_one_replica(run: Run, g: Group) -> bool:
    """Return whether the arrays ``g`` are one replica of arrays of ``jax.pmap``: their line takes the first
    element along the axis of the devices."""
    text = sources.line(run, g.origin) if g.origin is not None else ""
    by_pmap = any("jax.pmap" in f.seen.wrappers for f in run.functions.values())
    return by_pmap and ("[0]" in text or "unreplicate(" in text)


def _called(tree: str, g: Group) -> str | Message:
    """Return the name of the arrays ``g`` of the variable ``tree`` in a message: their path. If the path
    stands for all items of a container (``[*]``), return the part below the items (``mu['w'] in
    state.opt_state``) or the shape (``the f32[512,512] arrays of params``)."""
    path = g.path or tree
    if "[*]" not in path:
        return path
    if inside := _below_items(path):
        return message("array-in", path=inside, container=_container(path))
    return message("arrays-of-shape", aval=short_aval(g.shape, g.dtype), tree=tree)


def _container(path: str) -> str:
    """Return the path of the container whose items ``path`` stands for: ``log`` for ``log[*].loss``. A path
    without ``[*]`` is returned unchanged."""
    return path.partition("[*]")[0]


def _below_items(path: str) -> str:
    """Return the part of ``path`` below the items of a container: ``loss`` for ``log[*].loss``."""
    return path.rpartition("[*]")[2].removeprefix(".")


def _like(tree: str, copied: _Copied) -> Message | None:
    """Return a clause that names the arrays of ``tree`` (such as ``params``) that are already sharded over
    the mesh axis ``copied.axis``. None if there are no such arrays."""
    if not copied.like:
        return None
    more = sum(g.count for g in copied.like) - 1
    path, axis = copied.like[0].path, copied.axis
    if not more:
        return message("one-is-sharded", path=path, axis=axis)
    return message("several-are-sharded", path=path, more=Count(more, "other array"), tree=tree, axis=axis)


def _copied(g: Group, look: Snapshot, tree: list[Group]) -> _Copied | None:
    """Return how to shard the replicated arrays ``g`` of the snapshot ``look``; None if this is impossible or
    unknown. An axis over which other arrays of ``tree`` (such as ``params``) are sharded is preferred, and
    the dimension along which an array of the same shape is sharded, such as the weight of a gradient."""
    shape = [d for d in g.shape or () if isinstance(d, int)]
    if g.sharding is None or g.device_bytes is None or not shape or len(shape) != len(g.shape or ()):
        return None
    found = sh.layout(g.sharding, len(shape))
    if found is None or math.prod(shape) == 0:
        return None
    missing = sh.missing_axes(g.sharding)
    like = {axis: _split_over(axis, size, tree) for axis, size in missing}
    for axis, size in sorted(missing, key=lambda a: (not like[a[0]], -a[1])):
        alike = [o for o in _split_over(axis, size, look.groups) if o.shape == g.shape]
        along = {_dimension(o, axis): o for o in reversed(alike)}

        def order(d: int, along: Collection[int | None] = along) -> tuple[bool, bool, int]:
            # First the dimensions that are not sharded yet: those that are sharded are so on purpose.
            return found.parts[d] > 1, d not in along, -shape[d]

        for dimension in sorted(range(len(shape)), key=order):
            if shape[dimension] % (found.parts[dimension] * size) == 0:
                same = like[axis] or ([along[dimension]] if dimension in along else [])
                return _Copied(g, look, tuple(missing), axis, dimension, same)
    return None


def _dimension(g: Group, axis: str) -> int | None:
    """Return the dimension of ``g`` that is sharded over the mesh axis ``axis``; None: none, or unknown."""
    spec = sh.split_axes(g.sharding) if g.sharding is not None else None
    return next((d for d, names in enumerate(spec[0] if spec is not None else ()) if axis in names), None)


def _spec(g: Group, dimension: int, axis: str) -> str:
    """Return the PartitionSpec of ``g`` with ``axis`` at ``dimension``, too, as source: ``PartitionSpec('x',
    None)``."""
    known = sh.split_axes(g.sharding) if g.sharding is not None else None
    names = [*(known[0] if known is not None else ()), *[()] * len(g.shape or ())][: len(g.shape or ())]
    names[dimension] = (*names[dimension], axis)
    parts = (repr(n[0] if len(n) == 1 else n) if n else "None" for n in names)
    return f"PartitionSpec({', '.join(parts)})"


def _split_over(axis: str, size: int, tree: list[Group]) -> list[Group]:
    """Return the arrays of ``tree`` (such as ``params``) that are sharded over the mesh axis ``axis`` of size
    ``size``, the largest first."""
    return sorted((g for g in tree if _is_split(g, axis, size)), key=lambda g: -(g.global_bytes or 0))


def _is_split(g: Group, axis: str, size: int) -> bool:
    """Return whether ``g`` is sharded over ``axis`` of a mesh in which this axis has the size ``size``."""
    mesh = None if g.sharding is None else sh.grid(g.sharding)
    spec = None if g.sharding is None else sh.split_axes(g.sharding)
    if mesh is None or spec is None or dict(mesh.axes).get(axis) != size:
        return False
    return any(axis in names for names in spec[0])
