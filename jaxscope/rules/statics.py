"""JX107 to JX109: values that are part of the key by their own equality."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import NOTE, WARNING

FEW = 2  # values of a static argument: on and off


@recompile_rule("JX107", "changing-static-value", NOTE, "static_value")
def changing_static_value(group: Group) -> str | None:
    """## What it does
    Finds functions that are traced and compiled again because a static argument has another value.

    ## Why is this bad?
    A static argument is a constant of the program: each value is a compilation of its own. For a mode with two
    values that is as it should be; for a step number or a learning rate it is one compilation a step.

    ## Example
    ```python
    import functools, jax, jax.numpy as jnp

    @functools.partial(jax.jit, static_argnames="rate")
    def update(w, rate):
        return w - rate * w

    w = jnp.ones(3)
    for step in range(3):
        w = update(w, rate=0.1 / (step + 1))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def update(w, rate):
        return w - rate * w

    w = jnp.ones(3)
    for step in range(3):
        w = update(w, rate=0.1 / (step + 1))
    ```
    """
    path = group.cause.path or "it"
    if len({value for c in group.causes for value in (c.before, c.after)}) <= FEW:
        return (
            f"nothing, if {path} is a mode of few values: each is a program of its own; else pass it as an"
            " ordinary argument instead of a static one"
        )
    return f"pass {path} as an ordinary argument: take it out of static_argnums/static_argnames"


@recompile_rule("JX108", "static-identity", WARNING, "static_identity")
def static_identity(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because a static value is a new object that looks the same
    as the one before: its class compares by identity, or its hash is not stable.

    ## Why is this bad?
    JAX asks static values for ``__hash__`` and ``__eq__``. A class without them compares by identity, so that
    every new object is a new program, however equal its content. The same holds for functions held as static
    data: an optimiser or an activation made anew.

    ## Example
    ```python
    import functools, jax, jax.numpy as jnp

    class Config:
        def __init__(self, width):
            self.width = width

    @functools.partial(jax.jit, static_argnums=1)
    def forward(x, config):
        return x * config.width

    for _ in range(3):
        forward(jnp.ones(3), Config(4))
    ```

    ## Use instead
    ```python
    import dataclasses, functools, jax, jax.numpy as jnp

    @dataclasses.dataclass(frozen=True)
    class Config:
        width: int

    @functools.partial(jax.jit, static_argnums=1)
    def forward(x, config):
        return x * config.width

    for _ in range(3):
        forward(jnp.ones(3), Config(4))
    ```
    Or make the object once, before the loop.
    """
    cause = group.cause
    path = cause.path or "it"
    if "hashes differently" in cause.text:
        return f"make the __hash__ of {path} a function of what its __eq__ compares"
    if "functions" in cause.text:
        return f"make {path} once, before the loop, and pass the same object each time"
    return f"make {path} once, or give its class __eq__ and __hash__: @dataclasses.dataclass(frozen=True)"


@recompile_rule("JX109", "changing-tree-static", WARNING, "tree_static")
def changing_tree_static(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because static data inside a pytree differs: a static field
    of an equinox module, an attribute of an nnx module, a dataclass's metadata, a node's aux data.

    ## Why is this bad?
    What a pytree node does not list among its children is part of the cache key. A counter or a rate kept there
    makes each of its values a compilation.

    ## Example
    ```python
    import dataclasses, functools, jax, jax.numpy as jnp

    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["step"])
    @dataclasses.dataclass
    class State:
        w: jax.Array
        step: int

    @jax.jit
    def update(state):
        return state.w * 2

    for i in range(3):
        update(State(jnp.ones(3), i))
    ```

    ## Use instead
    ```python
    import dataclasses, functools, jax, jax.numpy as jnp

    @functools.partial(jax.tree_util.register_dataclass, data_fields=["w", "step"], meta_fields=[])
    @dataclasses.dataclass
    class State:
        w: jax.Array
        step: int

    @jax.jit
    def update(state):
        return state.w * 2

    for i in range(3):
        update(State(jnp.ones(3), i))
    ```
    """
    return f"hold {group.cause.path or 'it'} as an array (a child of the node), or keep it the same from call to call"
