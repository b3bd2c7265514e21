"""JX115 to JX120: arguments that lie elsewhere than in the call before."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.causes import Cause, Placement
from jaxscope.schema.findings import WARNING, Fix
from jaxscope.schema.messages import message


def kept(name: str, path: str, cause: Cause) -> Fix:
    """Return the advice about ``path``, a result of ``name`` with another sharding than the argument.

    It does not suggest ``in_shardings``, because JAX raises an error if an array is committed to another
    sharding.
    """
    was, now = (value if isinstance(value, Placement) else None for value in (cause.before, cause.after))
    arguments = {"path": path, "sharding": None if now is None else now.spec or now.text}
    if cause.kind == "mesh":  # where it was may be no place for the result
        returned = now.text if now is not None else "on the mesh"
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
def changing_mesh(group: Group) -> Fix:
    if group.cause.path == "context":
        return Fix(message("fix-same-mesh-around"), "set_mesh")
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    path = group.cause.path
    return Fix(message("fix-same-mesh", path=path or "them"), "device_put", {"path": path})
