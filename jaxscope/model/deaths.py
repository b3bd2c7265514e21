"""Why the program ended with an exception: for a deleted array, which call had been given it to reuse."""

from __future__ import annotations

import re

from jaxscope.analysis.avals import short_aval
from jaxscope.model.records import Compilation
from jaxscope.model.run import Run

# "Array has been deleted with shape=float32[4,4]." and "... buffer has been deleted or donated."
_DELETED = re.compile(r"deleted (?:with shape=(\w+)\[([\d,]*)\]|or donated)", re.IGNORECASE)
MOST = 3


def donors(run: Run, message: str) -> list[tuple[Compilation, str]]:
    """(call, argument path) of the donated arguments that the deleted array can have been, the latest first.

    Empty where ``message`` does not speak of a deleted array. Matched by shape and dtype, as JAX's message
    has nothing else.
    """
    match = _DELETED.search(message)
    if match is None:
        return []
    dtype, shape = match.group(1), match.group(2)
    found: dict[tuple[str, str], Compilation] = {}
    for c in sorted(run.compilations.values(), key=lambda c: c.t_ns):
        if c.key is None or c.lowered is None or c.entry != "call":
            continue
        donated = set(c.lowered.donated)
        for leaf in c.key.arguments:
            spelled = ",".join(map(str, leaf.shape or ()))
            if leaf.path in donated and (dtype is None or (leaf.dtype, spelled) == (dtype, shape)):
                found[c.function.id, leaf.path] = c
    ranked = sorted(found.items(), key=lambda item: -item[1].t_ns)
    return [(c, path) for (_, path), c in ranked][:MOST]


def aval(c: Compilation, path: str) -> str:
    """How the argument is spelled: ``f32[4,4]``."""
    leaf = next(leaf for leaf in c.key.arguments if leaf.path == path) if c.key is not None else None
    return "?" if leaf is None else short_aval(leaf.shape, leaf.dtype)
