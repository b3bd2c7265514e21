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
        e.partition("<")[0]
        for c in group.compilations
        if c.missed is not None
        for e in c.missed.effects or ()
    }
    found |= {
        e.partition("<")[0] for c in group.function.compilations if c.traced for e in c.traced.effects or ()
    }
    return bool(found) and found <= REF_EFFECTS


@rule("JX123", "mixed-argument-kinds", NOTE)
def mixed_argument_kinds(run: Run) -> Iterator[Finding]:
    yield from _found(
        run, "JX123", "argument_kind", "pass {path} as a jax.Array in every call: jnp.asarray(x)"
    )


@rule("JX124", "respelled-sharding", NOTE)
def respelled_sharding(run: Run) -> Iterator[Finding]:
    yield from _found(
        run, "JX124", "equal_sharding", "make the sharding of {path} once and use that object everywhere", 1
    )


@rule("JX125", "effects", NOTE)
def effects(run: Run) -> Iterator[Finding]:
    yield from _found(
        run, "JX125", "effects", "take debug prints and callbacks out of functions that are called often"
    )


@rule("JX126", "full-cache", WARNING, slow=True)
def full_cache(run: Run) -> Iterator[Finding]:
    for group in groups(run, ("evicted",), fast_path=True):
        what = "pushed out of JAX's fast-path cache"
        fix = "make fewer signatures: fewer shapes, one kind of array for each argument, functions made once"
        yield finding(run, "JX126", WARNING, group, fix, what)
