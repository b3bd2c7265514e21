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
    """## What it does
    Finds functions that are lowered and compiled again because an argument is sharded otherwise.

    ## Why is this bad?
    How the arguments lie on the devices is part of the program: the partitioner decides by it what is
    communicated.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def double(x):
        return x * 2

    x = jnp.ones(8)
    double(jax.device_put(x, NamedSharding(mesh, P("data"))))
    double(jax.device_put(x, NamedSharding(mesh, P())))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    by_data = NamedSharding(mesh, P("data"))

    @jax.jit
    def double(x):
        return x * 2

    x = jnp.ones(8)
    double(jax.device_put(x, by_data))
    double(jax.device_put(x, by_data))
    ```
    """
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    return f"jax.device_put {group.cause.path or 'them'} to one and the same sharding before every call"


@recompile_rule("JX116", "changing-commitment", WARNING, "committed")
def changing_commitment(group: Group) -> str:
    """## What it does
    Finds functions that are lowered and compiled again because an argument is committed to its device in one
    call and not in another.

    ## Why is this bad?
    An array that ``jax.device_put`` was given a device for, and what is computed from it, is committed: it may
    not be moved. ``jnp.ones(3)`` is not. To the lowering that is a difference, though the array lies on the same
    device.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    double(jnp.ones(3))
    double(jax.device_put(jnp.ones(3), jax.devices()[0]))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    device = jax.devices()[0]
    double(jax.device_put(jnp.ones(3), device))
    double(jax.device_put(jnp.ones(3), device))
    ```
    """
    return f"jax.device_put {group.cause.path or 'them'} before the first call too, or nowhere"


@recompile_rule("JX117", "changing-device", WARNING, "device")
def changing_device(group: Group) -> str:
    """## What it does
    Finds functions that are compiled again for another device of the same kind.

    ## Why is this bad?
    An executable belongs to its devices. A program that is sent round-robin to eight devices is compiled eight
    times.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    for device in jax.devices()[:2]:
        double(jax.device_put(jnp.ones(3), device))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((2,), ("data",), devices=jax.devices()[:2], axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def double(x):
        return x * 2

    double(jax.device_put(jnp.ones((2, 3)), NamedSharding(mesh, P("data"))))
    ```
    """
    return "run it once over all devices with a sharded array (NamedSharding) instead of once a device"


@recompile_rule("JX118", "changing-layout", WARNING, "layout")
def changing_layout(group: Group) -> str:
    """## What it does
    Finds functions that are lowered and compiled again because an argument has another layout in memory.

    ## Why is this bad?
    The order of the axes in memory, as set by ``jax.device_put`` with a ``Format``, is part of the lowering.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.experimental.layout import Format, Layout

    @jax.jit
    def double(x):
        return x * 2

    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for order in (0, 1), (1, 0):
        double(jax.device_put(jnp.ones((3, 4)), Format(Layout(order), here)))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.experimental.layout import Format, Layout

    @jax.jit
    def double(x):
        return x * 2

    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    for order in (0, 1), (0, 1):
        double(jax.device_put(jnp.ones((3, 4)), Format(Layout(order), here)))
    ```
    """
    return f"jax.device_put {group.cause.path or 'them'} to one Format before the first call"


@recompile_rule("JX119", "changing-memory-kind", WARNING, "memory_kind")
def changing_memory_kind(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because an argument lies in another memory: on the device
    in one call, in pinned host memory in another.

    ## Why is this bad?
    The memory kind is part of the abstract value.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import SingleDeviceSharding

    @jax.jit
    def double(x):
        return x * 2

    device = jax.devices()[0]
    kinds = [m.kind for m in device.addressable_memories()]
    for kind in kinds[:2]:
        double(jax.device_put(jnp.ones(3), SingleDeviceSharding(device, memory_kind=kind)))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import SingleDeviceSharding

    @jax.jit
    def double(x):
        return x * 2

    device = jax.devices()[0]
    kinds = [m.kind for m in device.addressable_memories()]
    for kind in kinds[:2]:
        x = jax.device_put(jnp.ones(3), SingleDeviceSharding(device, memory_kind=kind))
        double(jax.device_put(x, SingleDeviceSharding(device, memory_kind=kinds[0])))
    ```
    """
    return f"move {group.cause.path or 'them'} to one memory kind with jax.device_put before the call"


@recompile_rule("JX120", "changing-mesh", WARNING, "mesh")
def changing_mesh(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because an argument lies on another mesh, or because the
    call stands under another mesh (``jax.set_mesh``, ``with mesh:``).

    ## Why is this bad?
    The mesh is part of the abstract value and of the context that JAX traces in. The usual case is a state that
    starts on one device and comes back sharded over the mesh; or a warm-up outside the ``with mesh:`` block.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def step(state):
        return jax.lax.with_sharding_constraint(state * 2, NamedSharding(mesh, P("data")))

    state = jnp.ones(8)
    for _ in range(3):
        state = step(state)
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def step(state):
        return jax.lax.with_sharding_constraint(state * 2, NamedSharding(mesh, P("data")))

    state = jax.device_put(jnp.ones(8), NamedSharding(mesh, P("data")))
    for _ in range(3):
        state = step(state)
    ```
    """
    if group.cause.path == "context":
        return "make every call of it under the same mesh: one jax.set_mesh(mesh) around all of them"
    if group.came_back:
        return kept(group.name, group.cause.path or "it", group.cause)
    return f"jax.device_put {group.cause.path or 'them'} to one mesh, with one sharding, before every call"
