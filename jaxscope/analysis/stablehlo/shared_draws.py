"""Find random draws under ``vmap`` from a key that is the same for all elements."""

from __future__ import annotations

import re

import msgspec

from jaxscope.analysis.stablehlo import types
from jaxscope.analysis.stablehlo.module import CALLS, Module
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.keys import Frame

# JAX's functions that draw from a key, their first argument. A lowered program may have several copies:
# ``_normal``, ``_normal_1``, ...
DRAWS = frozenset(
    {"_normal", "_uniform", "_bernoulli", "_randint", "_truncated_normal", "_gumbel", "_exponential"}
    | {"_laplace", "_gamma", "_beta", "_cauchy", "_dirichlet", "_poisson", "_logistic", "_rademacher"}
)
_NUMBER = re.compile(r"_\d+$")
WORDS = frozenset({2, 4})  # the number of words in a key: 2 for Threefry, 4 for RBG


class SharedDraws(msgspec.Struct, frozen=True):
    """The random draws of one line of the user's code that give the same numbers for all elements of a
    ``vmap``.

    Attributes:
      functions: the functions of ``jax.random`` that draw, by their names in the program: ``_normal``.
      source: the line; None: unknown.
      in_loop: whether some of the draws are in a loop, so that one call of the program draws several times.
    """

    functions: tuple[str, ...]
    source: Frame | None
    in_loop: bool = False


def find(module: Module, sources: Sources) -> list[SharedDraws]:
    found: dict[Frame | None, dict[str, None]] = {}
    looped: set[Frame | None] = set()
    under = _under_vmap(sources)
    for index, op in enumerate(module.ops):
        if op.name not in CALLS or op.callee is None or not op.inputs or not sources.times[op.function]:
            continue
        if module.functions[op.function].name.startswith(tuple(DRAWS)):
            continue  # jax.random.normal draws uniform numbers first
        name = _NUMBER.sub("", op.callee)
        key = types.tensor(op.inputs[0]) if name in DRAWS else None
        if key is None or key.dtype != "uint32" or key.shape is None or len(key.shape) != 1:
            continue
        if key.shape[0] in WORDS and (under[op.function] or "vmap(" in (sources.place(index).name or "")):
            found.setdefault(sources.frame(index), {})[name] = None
            looped.update([sources.frame(index)] if sources.in_loop(index) else [])
    return [SharedDraws(tuple(names), source, source in looped) for source, names in found.items()]


def _under_vmap(sources: Sources) -> list[bool]:
    """Return for each function of the module whether all calls of it are under ``vmap``. The body of a scan
    under ``vmap`` is such a function: the names of its own operations do not show the ``vmap``."""
    under = [False] * len(sources.called)
    for f in sources.order:
        under[f] = bool(sources.called[f]) and all(
            under[sources.module.ops[call].function] or "vmap(" in (sources.place(call).name or "")
            for call in sources.called[f]
        )
    return under
