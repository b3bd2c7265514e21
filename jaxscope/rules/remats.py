"""JX402: arrays that the partitioner made whole on every device because it found no way between two shardings."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules.everywhere import users
from jaxscope.rules.programs import evidence, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, WARNING, Finding


@rule("JX402", "involuntary-rematerialization", WARNING)
def involuntary_rematerialization(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arrays that go from one sharding to another in a way the partitioner does not know: it gathers the whole
    array on every device and cuts it again. XLA says so on stderr while it compiles, and nowhere else; it is
    heard under ``jaxscope run --tee-stderr`` and ``--detach``.

    ## Why is this bad?
    Every device receives and holds the whole array, however many devices there are: the memory of the step no
    longer shrinks with them, and the all-gather takes the time of the array's full size.

    ## Example
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    @jax.jit
    def project(x):
        x = jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P(("data", "model"), None)))
        return jax.lax.with_sharding_constraint(jnp.cos(x), NamedSharding(mesh, P(None, "model")))

    project(jnp.ones((64, 64)))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec as P

    mesh = jax.make_mesh((2, 2), ("data", "model"), axis_types=(jax.sharding.AxisType.Auto,) * 2)

    @jax.jit
    def project(x):
        x = jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P(("data", "model"), None)))
        x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data", "model")))
        return jax.lax.with_sharding_constraint(jnp.cos(x), NamedSharding(mesh, P(None, "model")))

    project(jnp.ones((64, 64)))
    ```
    """
    for p, f, texts in users(run):
        for r in texts.remats or ():
            size = f" of {mib(r.bytes)}" if r.bytes is not None else ""
            way = f": {r.before} cannot become {r.after} directly" if r.before and r.after else ""
            text = f"{name_of(f)}: every device is given a whole array{size}{way}"
            source = r.source or p.compilations[-1].site
            yield Finding(
                "JX402", WARNING, CERTAIN if r.source is not None else LIKELY, text, f.id, source, evidence(p, text, source),
                "reshard in two steps that move one mesh axis each, or give the operands of this line shardings that agree",
            )  # fmt: skip
