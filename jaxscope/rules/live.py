"""JX501 and JX502: arrays that pile up, and arrays kept whole on every device of a mesh."""

from __future__ import annotations

import math
from collections.abc import Iterator

from jaxscope.analysis import sharding as sh
from jaxscope.analysis.spelling import tokens
from jaxscope.model import arrays
from jaxscope.model.arrays import Group, Growth
from jaxscope.model.run import Run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Evidence, Finding

SMALL_PER_STEP = 1024  # bytes: a list of losses is worth a note
SMALL_SAVING = 1 << 20  # bytes on each device
SMALL_SHARE = 0.05  # of what lies there
MOST_EVIDENCE = 20


@rule("JX501", "growing-arrays", WARNING)
def growing(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arrays that become more from step to step, at every look there was, and where the program holds them.

    ## Why is this bad?
    What is appended in every step is never freed: the device's memory fills until an allocation fails, hours into the
    run. A list of losses is the usual case. It holds little, but every entry is a buffer of its own.

    ## Example
    ```python
    import jax, jax.numpy as jnp, jaxscope

    @jax.jit
    def train_step(w):
        return w * 0.9, (w ** 2).mean()

    w, losses = jnp.ones((64, 64)), []
    for i in range(40):
        w, loss = train_step(w)
        losses.append(loss)
        jaxscope.step()
        if i % 8 == 0:
            jaxscope.snapshot()
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp, jaxscope

    @jax.jit
    def train_step(w):
        return w * 0.9, (w ** 2).mean()

    w, losses, pending = jnp.ones((64, 64)), [], None
    for i in range(40):
        w, loss = train_step(w)
        if pending is not None:
            losses.append(float(pending))  # of the step before: it is there, nobody waits
        pending = loss
        jaxscope.step()
        if i % 8 == 0:
            jaxscope.snapshot()
    ```
    """
    for g in arrays.growing(run):
        last, has, size = g.seen[-1]
        verb = "grows" if g.group.path else "grow"
        what = g.group.path or f"arrays held by {g.held or 'what no variable leads to'}"
        pace = f"{_each(g.arrays_per_step)} and {g.bytes_per_step:,.0f} bytes a step"
        yield Finding(
            code="JX501",
            severity=WARNING if g.bytes_per_step >= SMALL_PER_STEP else NOTE,
            certainty=CERTAIN,
            title=f"{what} {verb} by {pace}: {has:,} arrays, {size:,} bytes after step {last:,}",
            source=g.group.origin,
            evidence=[
                Evidence(f"{n:,} arrays, {b:,} bytes", source=g.group.origin, step=step)
                for step, n, b in g.seen
            ],
            fix=_fix(g),
        )


def _each(rate: float) -> str:
    text = f"{rate:.3g}"
    return f"{text} array" if text == "1" else f"{text} arrays"


def _fix(g: Growth) -> str:
    if g.group.path is None and g.held is not None and "jit cache" in g.held:
        return "pass them as arguments: each trace keeps the arrays that it took from outside"
    if g.group.path is None and g.held is not None:
        return f"let go of the results of this line: they are kept by {g.held}"
    if g.group.path is None:
        return "see what keeps the results of this line: a cycle, a cache or an object in a library"
    holder = g.group.path.partition("[*]")[0]
    if g.group.shape == ():
        return f"keep numbers in {holder}, not arrays: float(x) of the step before"
    return f"let {holder} keep a fixed number of them, or copy them to the host with jax.device_get"


@rule("JX502", "replicated-array", WARNING)
def replicated(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arrays that lie whole on every device along a mesh axis that one of their dimensions could be split over.
    Those of one tree (``params``, ``state.opt_state``) are told together, where they take at least 1 MiB and a
    twentieth of what lies on a device.

    ## Why is this bad?
    Copies of parameters or optimiser state take the memory that a larger model or batch needs. An array that was
    meant to be split and is not (a dimension that does not divide, a spec with a missing axis) looks just the same.

    ## Example
    ```python
    import jax, numpy as np, jaxscope
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(-1), ("data",))
    table = jax.device_put(np.ones((1024, 512), "float32"), NamedSharding(mesh, P()))
    jaxscope.snapshot()
    ```

    ## Use instead
    ```python
    import jax, numpy as np, jaxscope
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

    mesh = Mesh(np.array(jax.devices()).reshape(-1), ("data",))
    table = jax.device_put(np.ones((1024, 512), "float32"), NamedSharding(mesh, P("data")))
    jaxscope.snapshot()
    ```
    """
    s = arrays.fullest(arrays.of_main(run))
    if s is None:
        return
    most = max(s.by_device.values(), default=0)
    alike: dict[tuple[str, str, int], list[tuple[Group, int]]] = {}
    for g in s.groups:
        found = _split(g)
        if found is not None and g.device_bytes is not None and g.path is not None:
            axis, size, dimension = found
            alike.setdefault((_tree(g.path), axis, size), []).append((g, dimension))
    for (tree, axis, size), members in alike.items():
        held = sum(g.device_bytes or 0 for g, _ in members)
        saved = sum((g.device_bytes or 0) - (g.device_bytes or 0) // size for g, _ in members)
        if saved < SMALL_SAVING or held < SMALL_SHARE * most:
            continue
        largest, dimension = max(members, key=lambda m: m[0].device_bytes or 0)
        count = sum(g.count for g, _ in members)
        one = len(members) == 1
        name, told = (largest.path, "") if one else (tree, f" ({count:,} arrays, the largest {largest.path})")
        text = f"{held:,} bytes on each device, {saved:,} fewer where it is split over {axis!r}"
        yield Finding(
            code="JX502",
            severity=WARNING,
            certainty=LIKELY,  # copies over the data axis are what plain data parallelism is
            title=f"{name} lies {size} times along mesh axis {axis!r}: {text}{told}",
            source=largest.origin,
            evidence=[
                Evidence(
                    f"{g.path}: {g.device_bytes:,} bytes on each device, dimension {d} divides",
                    source=g.origin,
                    step=s.step,
                )
                for g, d in sorted(members, key=lambda m: -(m[0].device_bytes or 0))[:MOST_EVIDENCE]
            ],
            fix=f"give dimension {dimension} of {largest.path} the axis {axis!r} in its PartitionSpec"
            + ("" if one else ", and the others one that it divides"),
        )


def _tree(path: str) -> str:
    """What a user would call parameters or optimiser state: a variable, and the attribute of it if there is one.

    ``state.params['block0']['w']`` -> ``state.params``; ``opt_state[*].mu['w']`` -> ``opt_state``.
    """
    steps = tokens(path)
    return "".join(steps[:2] if len(steps) > 1 and steps[1].startswith(".") else steps[:1]) or path


def _split(g: Group) -> tuple[str, int, int] | None:
    """The largest axis the group holds copies along, its size, and the dimension it divides; None: none."""
    shape = [d for d in g.shape or () if isinstance(d, int)]
    if g.sharding is None or not shape or len(shape) != len(g.shape or ()):
        return None
    found = sh.layout(g.sharding, len(shape))
    if found is None or math.prod(shape) == 0:
        return None
    for axis, size in sorted(sh.missing_axes(g.sharding), key=lambda a: -a[1]):
        for dimension in sorted(range(len(shape)), key=lambda d: -shape[d]):
            if shape[dimension] % (found.parts[dimension] * size) == 0:
                return axis, size, dimension
    return None
