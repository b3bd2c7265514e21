"""JX123 to JX126: calls that compile nothing and yet are slow, because they leave JAX's fast path."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis.wording import REF_EFFECTS
from jaxscope.model.run import Run
from jaxscope.rules.recompiles import Group, finding, groups
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import NOTE, WARNING, Finding

FEW = 2  # such calls are no news: the first call with each kind of argument is one


def _found(run: Run, code: str, kind: str, fix: str, few: int = FEW) -> Iterator[Finding]:
    for group in groups(run, (kind,), fast_path=True):
        n = group.function.fast_path_misses
        if n > few and not (kind == "effects" and _of_refs(group)):
            what = f"off JAX's fast path in {n:,} calls"
            yield finding(run, code, NOTE, group, fix.format(path=group.cause.path or "them"), what)


def _of_refs(group: Group) -> bool:
    """Are its effects those of jax.Refs alone? They work like that, and there is nothing to take out."""
    found = {
        e.partition("<")[0] for c in group.compilations if c.missed is not None for e in c.missed.effects
    }
    found |= {e.partition("<")[0] for c in group.function.compilations if c.traced for e in c.traced.effects}
    return bool(found) and found <= REF_EFFECTS


@rule("JX123", "mixed-argument-kinds", NOTE)
def mixed_argument_kinds(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds functions that are called with a NumPy array in one call and a jax.Array in another, in many ways.

    ## Why is this bad?
    Nothing is compiled, but each new combination of kinds goes through Python once, and a NumPy array is copied
    to the device in every call.

    ## Example
    ```python
    import itertools, jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def add(a, b, c):
        return a + b + c

    for a, b, c in itertools.product((np.ones(3, "float32"), jnp.ones(3)), repeat=3):
        add(a, b, c)
    ```

    ## Use instead
    ```python
    import itertools, jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def add(a, b, c):
        return a + b + c

    for a, b, c in itertools.product((np.ones(3, "float32"), jnp.ones(3)), repeat=3):
        add(jnp.asarray(a), jnp.asarray(b), jnp.asarray(c))
    ```
    """
    yield from _found(
        run, "JX123", "argument_kind", "pass {path} as a jax.Array in every call: jnp.asarray(x)"
    )


@rule("JX124", "respelled-sharding", NOTE)
def respelled_sharding(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds functions whose arguments have equal shardings that are spelled differently: ``P('d')`` and
    ``P('d', None)``.

    ## Why is this bad?
    Nothing is compiled, but the fast path compares the spelling: each new one goes through Python.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((len(jax.devices()),), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    @jax.jit
    def double(x):
        return x * 2

    for spec in P("data"), P("data", None), P("data", None, None), P(("data",), None, None):
        double(jax.device_put(jnp.ones((8, 2, 2)), NamedSharding(mesh, spec)))
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

    for _ in range(4):
        double(jax.device_put(jnp.ones((8, 2, 2)), by_data))
    ```
    """
    yield from _found(
        run, "JX124", "equal_sharding", "make the sharding of {path} once and use that object everywhere", 1
    )


@rule("JX125", "effects", NOTE)
def effects(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds functions with ``jax.debug.print``, ``jax.debug.callback`` or ordered callbacks: every call of them goes
    through Python. (So does that of a function of ``jax.Ref``, by design.)

    ## Why is this bad?
    Nothing is compiled again, but such a call costs some hundred microseconds where the fast path costs a few.
    That matters for functions that are called often and do little.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        jax.debug.callback(lambda v: None, x)
        return x * 2

    for _ in range(5):
        double(jnp.ones(3))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def double(x):
        return x * 2

    for _ in range(5):
        double(jnp.ones(3))
    ```
    """
    yield from _found(
        run, "JX125", "effects", "take debug prints and callbacks out of functions that are called often"
    )


@rule("JX126", "full-cache", WARNING, slow=True)
def full_cache(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds functions that were pushed out of JAX's fast-path cache, which has room for 8,192 signatures of all
    functions together.

    ## Why is this bad?
    Once it is full, calls that were fast go through Python again, silently and for good. Many shapes, many
    function objects, or arguments that are NumPy arrays in some calls and jax arrays in others fill it.

    ## Example
    ```python
    import itertools, jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def double(x):
        return x * 2

    @jax.jit
    def total(*xs):
        return sum(xs)

    x = jnp.ones(3)
    double(x)
    for kinds in itertools.product((np.float32(1), jnp.float32(1)), repeat=13):
        total(*kinds)
    double(x)
    ```

    ## Use instead
    ```python
    import itertools, jax, jax.numpy as jnp, numpy as np

    @jax.jit
    def double(x):
        return x * 2

    @jax.jit
    def total(*xs):
        return sum(xs)

    x = jnp.ones(3)
    double(x)
    for kinds in itertools.product((np.float32(1), jnp.float32(1)), repeat=13):
        total(*map(jnp.asarray, kinds))
    double(x)
    ```
    """
    for group in groups(run, ("evicted",), fast_path=True):
        what = "pushed out of JAX's fast-path cache"
        fix = "make fewer signatures: fewer shapes, one kind of array for each argument, functions made once"
        yield finding(run, "JX126", WARNING, group, fix, what)
