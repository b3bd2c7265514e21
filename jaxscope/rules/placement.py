"""Rules JX115 to JX120: functions that recompile because an argument has another sharding, device, layout or
memory than in an earlier call."""

from __future__ import annotations

from jaxscope.analysis.paths import root
from jaxscope.model.call_places import one_for_each_place
from jaxscope.model.records import Function
from jaxscope.rules.recompiles import UNNAMED, Group, recompile_rule
from jaxscope.schema.causes import Cause, Placement, Setting
from jaxscope.schema.findings import WARNING, Fix
from jaxscope.schema.libraries import REPLICATE_AXIS
from jaxscope.schema.messages import Names, message

PMAP, NNX_JIT = "jax.pmap", "flax.nnx.jit"  # names of wrappers
OF_A_MESH = "Mesh('"  # the beginning of a mesh's text, if the mesh has axes


def kept(function: Function, path: str | None, cause: Cause) -> Fix:
    """Return the advice for ``function``, which returns an array (such as a training state) with another
    sharding than it received. The next call gets that array and recompiles.

    Args:
      path: the path of the argument; None: unknown.
      cause: the change of its sharding.
    """
    # The advice is not in_shardings: JAX raises an error for an array that is committed to another sharding.
    was, now = (value if isinstance(value, Placement) else None for value in (cause.before, cause.after))
    if (for_pmap := _for_pmap(function, path, cause)) is not None:
        return for_pmap
    name = function.display_name
    arguments = {"path": path, "sharding": None if now is None else now.spec or now.text}
    if NNX_JIT in function.seen.wrappers and now is not None and now.spec == "P()":
        top = root(path) if path is not None else None
        words = message("fix-place-object", function=name, path=top or UNNAMED, sharding=now.text)
        return Fix(words, "device_put", {**arguments, "path": top})
    at = path or UNNAMED
    if cause.kind == "mesh":  # the old placement may not suit the result
        returned = now.text if now is not None else "the mesh"
        if now is not None and now.spec == "P()" and path is not None and path == root(path):
            words = message("fix-replicate-first", function=name, path=path, sharding=returned)
            return Fix(words, "device_put", arguments)
        return Fix(
            message("fix-place-on-mesh", function=name, path=at, sharding=returned), "device_put", arguments
        )
    words = message(
        "fix-keep-sharding",
        function=name,
        leaves=message("these-leaves") if cause.count > 1 else None,
        path=at,
        passed=None if was is None else message("the-sharding", sharding=was.text),
        returned=None if now is None else message("the-sharding", sharding=now.text),
    )
    return Fix(words, "out_shardings", arguments)


def _for_pmap(function: Function, path: str | None, cause: Cause) -> Fix | None:
    """Return the advice to place the whole argument that contains ``path`` like a result of ``jax.pmap`` that
    ``function`` later gets, with the sharding ``cause.after``. Return None if there is no such sharding, or
    if ``place_for_pmap`` returns None."""
    was, now = cause.before, cause.after
    if isinstance(was, Placement) and any(axis == REPLICATE_AXIS for axis, *_ in was.mesh or ()):
        return Fix(message("fix-place-replicas"), "device_put")
    return place_for_pmap(function, path, now.mesh, now.spec) if isinstance(now, Placement) else None


def _one_axis_name(group: Group) -> Fix | None:
    """Return the advice to give the axis of all ``jax.pmap`` one name, if the array that changed came from
    two of them with different names, according to the source of the line that calls the function. None
    otherwise."""
    site = group.calls[-1].site
    both = [v.mesh for v in (group.cause.before, group.cause.after) if isinstance(v, Placement) and v.mesh]
    names = tuple(dict.fromkeys(axis[0] for mesh in both for axis in mesh))
    if site is None or PMAP not in group.function.seen.wrappers or len(both) != 2 or len(names) != 2:
        return None
    lines = [line for line in (group.source(site.file) or "").splitlines() if "pmap" in line]
    if not all(any(f'"{name}"' in line or f"'{name}'" in line for line in lines) for name in names):
        return None
    path = root(group.cause.path) if group.cause.path is not None else UNNAMED
    given = Names(tuple(f"axis_name={name!r}" for name in names))
    words = message("fix-one-axis-name", path=path, names=given)
    return Fix(words, "axis_name", {"path": path, "names": list(names)})


def place_for_pmap(
    function: Function,
    path: str | None,
    mesh: tuple[tuple[str, int, str | None], ...] | None,
    spec: str | None,
) -> Fix | None:
    """Return the advice to give the whole argument of ``function`` that contains ``path`` (None: unknown) the
    sharding that results of ``jax.pmap`` have: ``spec`` over ``mesh`` (a tuple for each axis, which begins
    with its name). Return None if ``function`` is not under pmap, or if the mesh is unknown or has other axes
    than one whose name is an identifier."""
    if PMAP not in function.seen.wrappers or mesh is None or len(mesh) != 1 or not mesh[0][0].isidentifier():
        return None
    top, axis = root(path) if path is not None else None, mesh[0][0]
    words = message("fix-place-for-pmap", path=top or UNNAMED, axis=axis)
    if axis.startswith("_"):  # JAX made the name, because the program gives pmap none
        words = message("fix-pass-through-pmap", path=top or UNNAMED)
    return Fix(words, "device_put", {"path": top, "sharding": spec})


@recompile_rule("JX115", "changing-sharding", WARNING, "sharding")
def changing_sharding(group: Group) -> Fix:
    if group.came_back:
        return kept(group.function, group.cause.path, group.cause)
    path = group.cause.path
    return Fix(message("fix-same-sharding", path=path or UNNAMED), "device_put", {"path": path})


@recompile_rule("JX116", "changing-commitment", WARNING, "committed")
def changing_commitment(group: Group) -> Fix:
    path = group.cause.path
    if path is not None and NNX_JIT in group.function.seen.wrappers:
        return Fix(message("fix-commit-object", path=root(path)), "device_put", {"path": root(path)})
    return Fix(message("fix-same-commitment", path=path or UNNAMED), "device_put", {"path": path})


@recompile_rule("JX117", "changing-device", WARNING, "device")
def changing_device(group: Group) -> Fix:
    return Fix(message("fix-shard-over-devices"), "shard", {"path": group.cause.path})


@recompile_rule("JX118", "changing-layout", WARNING, "layout")
def changing_layout(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-layout", path=path or UNNAMED), "device_put", {"path": path})


@recompile_rule("JX119", "changing-memory-kind", WARNING, "memory_kind")
def changing_memory_kind(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-memory-kind", path=path or UNNAMED), "device_put", {"path": path})


@recompile_rule("JX120", "changing-mesh", WARNING, "mesh")
def changing_mesh(group: Group) -> Fix | None:
    """Return the advice for calls that recompiled for another mesh; None if each line that calls the function
    has its own mesh."""
    if group.cause.path == "context":
        if all(_between_meshes(c) for c in group.causes) and one_for_each_place(
            group.function, lambda k: k.context
        ):
            return None  # each place uses its own mesh: each mesh needs its own program
        return Fix(message("fix-same-mesh-around"), "set_mesh")
    one_name = _one_axis_name(group)
    if one_name is not None:
        return one_name
    if group.came_back:
        return kept(group.function, group.cause.path, group.cause)
    path = group.cause.path
    for_pmap = _for_pmap(group.function, path, group.cause) if path is not None else None
    if for_pmap is not None and len(group.compilations) == 1:
        return for_pmap
    path = root(path) if path is not None else None
    both = (group.cause.before, group.cause.after)
    specs = {s.spec for s in both if isinstance(s, Placement) and s.mesh and s.spec}
    sharding = f"NamedSharding(mesh, {specs.pop()})" if len(specs) == 1 else "sharding"
    words = message("fix-same-mesh", path=path or "the array", function=group.name, sharding=sharding)
    return Fix(words, "device_put", {"path": path})


def _between_meshes(cause: Cause) -> bool:
    """Return whether the two calls that ``cause`` compares were both made inside a mesh context
    (``jax.set_mesh``)."""
    meshes = [value for value in (cause.before, cause.after) if isinstance(value, Setting)]
    return len(meshes) == 2 and all(OF_A_MESH in mesh.text for mesh in meshes)
