"""Packages whose frames are skipped when a line of the user is looked for: JAX and libraries between it and
the user.

Capture recognises them by the module of a live frame, analysis by the file name in a text.
"""

from __future__ import annotations

import re

JAX_ROOTS = frozenset({"jax", "jaxlib"})
# They decorate the user's functions, and run them unchanged.
DECORATOR_ROOTS = frozenset({"jaxtyping", "beartype", "typeguard", "chex"})
# They compute with the functions of the user that they are given: what they return is a function of theirs.
COMPUTING_ROOTS = frozenset(
    {"numpyro", "blackjax", "optimistix", "diffrax", "lineax", "jaxopt", "distrax", "optax", "numpy", "scipy"}
)
# Extended by wrapper-libraries in [tool.jaxscope]. Jit-compiled functions of such a package are library
# functions.
WRAPPER_ROOTS = frozenset(
    {
        *DECORATOR_ROOTS,
        *COMPUTING_ROOTS,  # numpy, too: np.mean(x) calls x.mean()
        *("flax", "equinox", "haiku", "keras", "orbax", "functools", "contextlib", "clu", "treescope"),
    }
)
# Functions of these packages can be jitted as a whole: ``jax.jit(net.init)``. A sampler or a solver that
# loops in Python cannot.
TRACED_WHOLE = JAX_ROOTS | frozenset({"flax", "haiku", "equinox", "optax", "distrax"})
OWN_ROOT = "jaxscope"


def transformation(wrapper: str) -> str:
    """Return ``haiku.transform`` for the two functions that it returns, ``haiku.transform.init`` and
    ``haiku.transform.apply``; any other name of a wrapper as it is."""
    return wrapper.removesuffix(".init").removesuffix(".apply")


# Measured on JAX 0.10 and 0.12: the fast-path hook fires for some of the calls these wrappers make, not for
# all.
UNHEARD = ("flax.", "equinox.")

# Measured on JAX 0.10.2 and 0.12.0.1: pure_callback, io_callback and debug.print; the change came with 0.11.
CALLBACKS_KEPT_SINCE = (0, 11)

# On CPU: INTERNAL: Error dispatching computation: Out of memory allocating 20000000000000 bytes.
_NO_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|INTERNAL: [^\n]{0,200}Out of memory")


def no_memory(message: str) -> bool:
    """Return whether ``message`` is XLA's error for exhausted memory."""
    return _NO_MEMORY.match(message) is not None


def keeps_callbacks(version: str | None) -> bool | None:
    """Return whether this JAX stores programs with Python callbacks in its persistent cache; None if
    unknown."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    return (int(parts[0]), int(parts[1])) >= CALLBACKS_KEPT_SINCE
