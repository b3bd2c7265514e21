"""JX110 to JX113: another function object, other options, caches emptied, an executable not used."""

from __future__ import annotations

from jaxscope.rules.recompiles import Group, recompile_rule
from jaxscope.schema.findings import NOTE, WARNING

TAKEN = "what it takes from around it becomes an argument"


@recompile_rule("JX110", "new-function-object", WARNING, "new_function")
def new_function_object(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because jit was given another function object: a lambda or
    a def inside a loop, a ``functools.partial``, a bound method, ``jax.grad(f)`` or another wrapper made anew.

    ## Why is this bad?
    The cache belongs to the function object. ``jax.jit(f)`` again for the same ``f`` finds it; a lambda, a
    partial, a bound method or a transformed function is a new object each time it is written down.

    ## Example
    ```python
    import functools, jax, jax.numpy as jnp

    def scaled(scale, x):
        return scale * x

    for _ in range(3):
        jax.jit(functools.partial(scaled, 2.0))(jnp.ones(3))
    ```

    ## Use instead
    ```python
    import functools, jax, jax.numpy as jnp

    def scaled(scale, x):
        return scale * x

    doubled = jax.jit(functools.partial(scaled, 2.0))
    for _ in range(3):
        doubled(jnp.ones(3))
    ```
    """
    seen = group.function.seen
    form = "partial" if "functools.partial" in seen.wrappers and seen.form == "partial" else seen.form
    if form == "method":
        return (
            "jit the bound method once, in __init__, and keep it: self.step = jax.jit(self.step); and "
            "make its object once,"
            " before the loop"
        )
    if form == "partial":
        return "make the partial and its jit once, before the loop, or pass the bound value as an argument"
    if form == "lambda":
        return f"define the function once, at module level, and jit it there; {TAKEN}"
    if seen.wrappers and "<locals>" in seen.qualname:
        outside = f"apply {seen.wrappers[0]} to it, once, outside what defines it anew"
        return f"define the function, and {outside}; {TAKEN}"
    if seen.wrappers:
        return f"apply {seen.wrappers[0]} once, before the loop, and keep what it returns"
    return f"define and jit the function once, outside the function or loop that defines it anew; {TAKEN}"


@recompile_rule("JX111", "changing-options", NOTE, "options")
def changing_options(group: Group) -> str:
    """## What it does
    Finds functions that are lowered or compiled again because they are jitted with other options: another donation,
    other shardings, other compiler options.

    ## Why is this bad?
    Each set of options is a program of its own. That is as it should be where both are meant.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    def update(w):
        return w * 2

    jax.jit(update)(jnp.ones(3))
    jax.jit(update, donate_argnums=0)(jnp.ones(3))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    def update(w):
        return w * 2

    jitted = jax.jit(update, donate_argnums=0)
    jitted(jnp.ones(3))
    jitted(jnp.ones(3))
    ```
    """
    return "jit it once with one set of options, and call that everywhere"


@recompile_rule("JX112", "cleared-caches", WARNING, "cleared")
def cleared_caches(group: Group) -> str:
    """## What it does
    Finds functions that are traced and compiled again because JAX's caches were cleared.

    ## Why is this bad?
    ``jax.clear_caches()`` and ``f.clear_cache()`` throw away what was compiled, of every function.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    double(jnp.ones(3))
    jax.clear_caches()
    double(jnp.ones(3))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    double(jnp.ones(3))
    double(jnp.ones(3))
    ```
    """
    return "do not call jax.clear_caches() or .clear_cache() between calls that are to be fast"


@recompile_rule("JX113", "unused-ahead-of-time", WARNING, "aot")
def unused_ahead_of_time(group: Group) -> str | None:
    """## What it does
    Finds functions that were compiled ahead of time with ``.lower(...).compile()`` and are then called as ordinary
    functions with other arguments, so that they are compiled once more.

    ## Why is this bad?
    What is compiled ahead of time serves calls with exactly those shapes, dtypes and shardings.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    double.eval_shape(jnp.ones(3))
    double(jnp.ones(3))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    double(jnp.ones(3))
    double(jnp.ones(3))
    ```
    """
    if all(c.entry == "aot" for c in group.compilations):
        return None
    return "call the object that .lower(...).compile() returned, or lower with the arguments of the real call"
