"""JX121: settings of JAX that are part of the cache key."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import WARNING


@recompile_rule("JX121", "changing-setting", WARNING, "config")
def changing_setting(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because a setting of JAX changed between two calls:
    ``jax_enable_x64``, ``jax_default_matmul_precision``, ``jax_default_device`` and others.

    ## Why is this bad?
    Every setting that can change the program is part of the key of the trace. A call under
    ``jax.default_matmul_precision("float32")`` does not find what a call outside it left.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def square(x):
        return x @ x

    square(jnp.ones((3, 3)))
    with jax.default_matmul_precision("float32"):
        square(jnp.ones((3, 3)))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def square(x):
        return x @ x

    with jax.default_matmul_precision("float32"):
        square(jnp.ones((3, 3)))
        square(jnp.ones((3, 3)))
    ```
    Or set it once, before the first call: ``jax.config.update(...)``.
    """
    return f"set {group.cause.path} once, before the first call"
