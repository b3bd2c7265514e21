"""JX505 to JX507: memory that a program holds twice, or holds for nothing."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from jaxscope.analysis.programs import Texts
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.everywhere import of_compiled, users
from jaxscope.rules.programs import MIB, evidence, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding


@rule("JX505", "unused-donation", WARNING)
def unused_donation(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arguments that were donated in vain: no result could take their memory.

    ## Why is this bad?
    The argument is deleted all the same, and the memory is held twice while the program runs.

    ## Example
    ```python
    import functools, jax, jax.numpy as jnp

    @functools.partial(jax.jit, donate_argnums=0)
    def narrow(x):
        return x.astype("bfloat16")

    narrow(jnp.ones((4, 4)))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def narrow(x):
        return x.astype("bfloat16")

    narrow(jnp.ones((4, 4)))
    ```
    """
    yield from of_compiled(run, _unused)


def _unused(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    unused = (
        [d for d in texts.stablehlo.donation if d.status == "unused"] if texts.stablehlo is not None else []
    )
    if not unused:
        return
    first = max(unused, key=lambda d: d.bytes or 0)
    more = f" and {len(unused) - 1} more" if len(unused) > 1 else ""
    held = sum(d.bytes or 0 for d in unused)
    why = f": {first.reason}" if first.reason else ""
    text = f"{name_of(f)}: {first.path or 'an argument'}{more} ({mib(held)}) was donated in vain{why}"
    found = Finding(
        "JX505", WARNING, CERTAIN, text, f.id, p.compilations[-1].site,
        evidence(p, text, p.compilations[-1].site),
        "do not donate it, or return a result of its shape, dtype and sharding",
    )  # fmt: skip
    yield first.path, found


@rule("JX506", "possible-donation", NOTE)
def possible_donation(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arguments of at least 1 MiB that nothing held any more when we next looked (at the next event, or at the
    end), and that no other call was seen to keep, while a result of the same shape and dtype was given new memory.
    Whether the program read one once more after the call, under its own name or another, nobody saw: that is yours
    to know, as what is donated is deleted by the call.

    ## Why is this bad?
    Donated, the argument's memory would have become the result's: parameters and optimiser state would be held
    once instead of twice.

    ## Example
    ```python
    import jax, jax.numpy as jnp

    @jax.jit
    def update(w):
        return w * 0.9

    w = jnp.ones((1024, 512))
    for _ in range(2):
        w = update(w)
    ```

    ## Use instead
    ```python
    import functools, jax, jax.numpy as jnp

    @functools.partial(jax.jit, donate_argnums=0)
    def update(w):
        return w * 0.9

    w = jnp.ones((1024, 512))
    for _ in range(2):
        w = update(w)
    ```
    """
    yield from of_compiled(run, _possible)


def _possible(p: Program, f: Function, texts: Texts) -> Iterator[tuple[Hashable, Finding]]:
    gone = {path: c.fate.seen for c in p.compilations if c.fate is not None for path in c.fate.gone}
    kept = {path for c in f.compilations if c.fate is not None for path in c.fate.kept}
    free = [
        d
        for d in (texts.stablehlo.donation if texts.stablehlo is not None else ())
        if d.status == "possible" and d.path in gone.keys() - kept
    ]
    held = sum(d.bytes or 0 for d in free)
    if held < MIB:
        return
    first = max(free, key=lambda d: d.bytes or 0)
    more = f" and {len(free) - 1} more" if len(free) > 1 else ""
    when = "at the end" if gone[first.path or ""] == "exit" else "soon after the call"
    text = f"{name_of(f)}: {first.path}{more} ({mib(held)}) may be donated: nothing held it any more {when}"
    name = (first.path or "x").partition("[")[0].partition(".")[0]
    found = Finding(
        "JX506", NOTE, LIKELY, text, f.id, p.compilations[-1].site,
        evidence(p, text, p.compilations[-1].site),
        f"jit it with donate_argnames={name!r}, if nothing reads {name} after the call, under another name either:"
        " the call deletes it",
    )  # fmt: skip
    yield first.path, found


@rule("JX507", "captured-constant", WARNING)
def captured_constant(run: Run) -> Iterator[Finding]:
    """## What it does
    Finds arrays of at least 1 MiB that a function takes in from around it instead of being passed them.

    ## Why is this bad?
    They become part of the program: it takes longer to lower and to compile, every compilation holds a copy,
    and a new value is not seen.

    ## Example
    ```python
    import jax, jax.numpy as jnp, numpy as np

    TABLE = np.random.default_rng(0).normal(size=(1024, 512)).astype("float32")

    @jax.jit
    def look_up(i):
        return jnp.asarray(TABLE)[i]

    look_up(jnp.arange(3))
    ```

    ## Use instead
    ```python
    import jax, jax.numpy as jnp, numpy as np

    TABLE = np.random.default_rng(0).normal(size=(1024, 512)).astype("float32")

    @jax.jit
    def look_up(table, i):
        return table[i]

    look_up(jnp.asarray(TABLE), jnp.arange(3))
    ```
    """
    for p, f, texts in users(run):
        for c in texts.stablehlo.constants if texts.stablehlo is not None else ():
            if c.splat or c.bytes is None or c.bytes < MIB:
                continue
            what = c.name or (f"one of {', '.join(c.names)}" if c.names else "an array without a name")
            text = f"{name_of(f)} holds {what} ({mib(c.bytes)}) as a constant"
            source = c.source or p.compilations[-1].site
            yield Finding(
                "JX507", WARNING, CERTAIN, text, f.id, source, evidence(p, text, source),
                f"pass {c.name or 'it'} as an argument",
            )  # fmt: skip
