"""Packages whose frames stand between the user and JAX: their lines are nobody's to blame.

Capture tells them by the module of a live frame, the reading wing by the file name in a text.
"""

from __future__ import annotations

import re

JAX_ROOTS = frozenset({"jax", "jaxlib"})
# They decorate what the user wrote, and run it as it is.
DECORATOR_ROOTS = frozenset({"jaxtyping", "beartype", "typeguard", "chex"})
# Extended by wrapper-libraries in [tool.jaxscope]. A package's own jit-compiled functions are called
# its library functions.
WRAPPER_ROOTS = frozenset(
    {
        *DECORATOR_ROOTS,
        *("flax", "equinox", "haiku", "optax", "keras", "orbax", "functools", "contextlib"),
        *("numpy", "scipy"),  # np.mean(x) calls x.mean()
        *("numpyro", "blackjax", "optimistix", "diffrax", "lineax", "jaxopt", "distrax", "clu", "treescope"),
    }
)
# Of these, what a line calls can be traced as a whole: ``jax.jit(net.init)``. A sampler or a solver that
# loops in Python cannot, or not without knowing its insides.
TRACED_WHOLE = JAX_ROOTS | frozenset({"flax", "haiku", "equinox", "optax", "distrax"})
OWN_ROOT = "jaxscope"

# Measured on JAX 0.10 and 0.12: the fast-path hook fires for some of the calls these wrappers make, not for all.
UNHEARD = ("flax.", "equinox.")

# Measured on JAX 0.10.2 and 0.12.0.1: pure_callback, io_callback and debug.print; the change came with 0.11.
CALLBACKS_KEPT_SINCE = (0, 11)

# The CPU's own words: INTERNAL: Error dispatching computation: Out of memory allocating 20000000000000 bytes.
_NO_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|INTERNAL: [^\n]{0,200}Out of memory")


def no_memory(message: str) -> bool:
    """Is that what XLA says when memory runs out?"""
    return _NO_MEMORY.match(message) is not None


def keeps_callbacks(version: str | None) -> bool | None:
    """Does this JAX keep programs that call back into Python in its persistent cache? None: not known."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    return (int(parts[0]), int(parts[1])) >= CALLBACKS_KEPT_SINCE
