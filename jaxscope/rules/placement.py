"""Rules JX115 to JX120: functions that recompile because an argument has another sharding, device, layout or
memory than in an earlier call."""

from __future__ import annotations

from jaxscope.model.call_places import one_for_each_place
from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.causes import Cause, Placement, Setting
from jaxscope.schema.findings import WARNING, Fix
from jaxscope.schema.messages import message

OF_A_MESH = "Mesh('"  # the beginning of a mesh's text, if the mesh has axes


def kept(name: str, path: str, cause: Cause) -> Fix:
    """Return the advice for the argument ``path`` that is a result of the same function (``name``), and that
    the function returned with another sharding (``cause``) than it was passed: how to keep the sharding.

    The advice is not ``in_shardings``, because JAX raises an error if an array is committed to another
    sharding.
    """
    was, now = (value if isinstance(value, Placement) else None for value in (cause.before, cause.after))
    arguments = {"path": path, "sharding": None if now is None else now.spec or now.text}
    if cause.kind == "mesh":  # the old placement may not suit the result
        returned = now.text if now is not None else "the mesh"
        return Fix(
            message("fix-place-on-mesh", function=name, path=path, sharding=returned), "device_put", arguments
        )
    words = message(
        "fix-keep-sharding",
        function=name,
        path=path,
        passed=None if was is None else message("the-sharding", sharding=was.text),
        returned=None if now is None else message("the-sharding", sharding=now.text),
    )
    return Fix(words, "out_shardings", arguments)


@recompile_rule("JX115", "changing-sharding", WARNING, "sharding")
def changing_sharding(group: Group) -> Fix:
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    path = group.cause.path
    return Fix(message("fix-same-sharding", path=path or "them"), "device_put", {"path": path})


@recompile_rule("JX116", "changing-commitment", WARNING, "committed")
def changing_commitment(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-commitment", path=path or "them"), "device_put", {"path": path})


@recompile_rule("JX117", "changing-device", WARNING, "device")
def changing_device(group: Group) -> Fix:
    return Fix(message("fix-shard-over-devices"), "shard", {"path": group.cause.path})


@recompile_rule("JX118", "changing-layout", WARNING, "layout")
def changing_layout(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-layout", path=path or "them"), "device_put", {"path": path})


@recompile_rule("JX119", "changing-memory-kind", WARNING, "memory_kind")
def changing_memory_kind(group: Group) -> Fix:
    path = group.cause.path
    return Fix(message("fix-same-memory-kind", path=path or "them"), "device_put", {"path": path})


@recompile_rule("JX120", "changing-mesh", WARNING, "mesh")
def changing_mesh(group: Group) -> Fix | None:
    if group.cause.path == "context":
        if all(_between_meshes(c) for c in group.causes) and one_for_each_place(
            group.function, lambda k: k.context
        ):
            return None  # each place uses its own mesh: each mesh needs its own program
        return Fix(message("fix-same-mesh-around"), "set_mesh")
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    path = group.cause.path
    return Fix(message("fix-same-mesh", path=path or "them"), "device_put", {"path": path})


def _between_meshes(cause: Cause) -> bool:
    """Return whether the two calls that ``cause`` compares were both made inside a mesh context
    (``jax.set_mesh``), with different meshes. False if one call was made outside."""
    meshes = [value for value in (cause.before, cause.after) if isinstance(value, Setting)]
    return len(meshes) == 2 and all(OF_A_MESH in mesh.text for mesh in meshes)
