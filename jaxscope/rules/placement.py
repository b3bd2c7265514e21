"""JX115 to JX120: arguments that lie elsewhere than in the call before."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import WARNING, Cause


def kept(name: str, path: str, cause: Cause) -> str:
    """What to do about ``path``, a result of ``name`` that comes back with another sharding than it went in with.

    ``in_shardings`` is no remedy: JAX raises where an array is committed to another sharding.
    """
    was, now = (f" {text}" if text else "" for text in (cause.before, cause.after))
    if cause.kind == "mesh":  # where it lay may be no place for the result
        return (
            f"jax.device_put {path} to the sharding that {name} returns it with,{now or ' on the mesh'}, before "
            f"the first call; or to another of that mesh, and jit {name} with the same one in out_shardings="
        )
    return (
        f"jit {name} with out_shardings= that return {path} as it is passed{was and ','}{was}; or jax.device_put "
        f"it to the sharding that it comes back with{now and ','}{now}, before the first call"
    )


@recompile_rule("JX115", "changing-sharding", WARNING, "sharding")
def changing_sharding(group: Group) -> str:
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    return f"jax.device_put {group.cause.path or 'them'} to one and the same sharding before every call"


@recompile_rule("JX116", "changing-commitment", WARNING, "committed")
def changing_commitment(group: Group) -> str:
    return f"jax.device_put {group.cause.path or 'them'} before the first call too, or nowhere"


@recompile_rule("JX117", "changing-device", WARNING, "device")
def changing_device(group: Group) -> str:
    return "run it once over all devices with a sharded array (NamedSharding) instead of once a device"


@recompile_rule("JX118", "changing-layout", WARNING, "layout")
def changing_layout(group: Group) -> str:
    return f"jax.device_put {group.cause.path or 'them'} to one Format before the first call"


@recompile_rule("JX119", "changing-memory-kind", WARNING, "memory_kind")
def changing_memory_kind(group: Group) -> str:
    return f"move {group.cause.path or 'them'} to one memory kind with jax.device_put before the call"


@recompile_rule("JX120", "changing-mesh", WARNING, "mesh")
def changing_mesh(group: Group) -> str:
    if group.cause.path == "context":
        return "make every call of it under the same mesh: one jax.set_mesh(mesh) around all of them"
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    return f"jax.device_put {group.cause.path or 'them'} to one mesh, with one sharding, before every call"
