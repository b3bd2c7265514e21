"""Names of the packages that are not the user's code: JAX, and libraries between JAX and the user.

A search for the user's line on a stack skips the frames of these packages. A frame of the running program is
recognized by its module, a source location in a compiled text by its file name.
"""

from __future__ import annotations

import re

JAX_ROOTS = frozenset({"jax", "jaxlib"})
# Packages that decorate the user's functions and run them unchanged
DECORATOR_ROOTS = frozenset({"jaxtyping", "beartype", "typeguard", "chex"})
# Packages that compute with the user's functions (a loss, a model). A function that they return counts as
# theirs, not as the user's.
COMPUTING_ROOTS = frozenset(
    {"numpyro", "blackjax", "optimistix", "diffrax", "lineax", "jaxopt", "distrax", "optax", "numpy", "scipy"}
)
# The packages above, and others between JAX and the user. The option wrapper-libraries in [tool.jaxscope]
# adds more. Jitted functions of such a package are not the user's functions.
WRAPPER_ROOTS = frozenset(
    {
        *DECORATOR_ROOTS,
        *COMPUTING_ROOTS,  # numpy, too: np.mean(x) calls x.mean()
        *("flax", "equinox", "haiku", "keras", "orbax", "functools", "contextlib", "clu", "treescope"),
    }
)
# Packages whose wrapper around a jitted function runs Python code of the package and of JAX in each call
CALL_WRAPPERS = WRAPPER_ROOTS - COMPUTING_ROOTS
# Functions of these packages can be jitted as a whole: ``jax.jit(net.init)``. A sampler or a solver that
# loops in Python cannot.
TRACED_WHOLE = JAX_ROOTS | frozenset({"flax", "haiku", "equinox", "optax", "distrax"})
# Packages whose functions call a function of the user again and again: solvers, DataFrame.apply, searches
CALLING_BACK = frozenset(
    {"numpy", "scipy", "pandas", "sklearn", "emcee", "dynesty", "lmfit", "nlopt", "cma", "optuna"}
)
OWN_ROOT = "jaxscope"
# JAX's operations whose parameters are functions: the bodies of loops and branches
OF_FUNCTIONS = frozenset(
    {
        "while", "scan", "cond", "shard_map", "custom_jvp_call", "custom_vjp_call", "custom_linear_solve",
        "remat",
    }
)  # fmt: skip


def transformation(wrapper: str) -> str:
    """Return the name of the transformation (such as ``jax.grad``) that returned the function ``wrapper``.
    Only names of Haiku change, because a transformation of Haiku returns two functions:
    ``haiku.transform.init`` -> ``haiku.transform``."""
    return wrapper.removesuffix(".init").removesuffix(".apply") if wrapper.startswith("haiku.") else wrapper


# Prefixes of the wrappers around jit whose calls cannot be counted from outside. Measured on JAX 0.10 and
# 0.12: the hook for calls on the fast path runs for only some of the calls that these wrappers make.
UNHEARD = ("flax.", "equinox.")

# The first JAX whose persistent cache stores programs with Python callbacks. Measured on JAX 0.10.2 and
# 0.12.0.1 with pure_callback, io_callback and debug.print.
CALLBACKS_KEPT_SINCE = (0, 11)

# On CPU: INTERNAL: Error dispatching computation: Out of memory allocating 20000000000000 bytes.
_NO_MEMORY = re.compile(r"RESOURCE_EXHAUSTED|INTERNAL: [^\n]{0,200}Out of memory")


def no_memory(message: str) -> bool:
    """Return whether the error message ``message`` begins like XLA's error for exhausted memory."""
    return _NO_MEMORY.match(message) is not None


def keeps_callbacks(version: str | None) -> bool | None:
    """Return whether the JAX of the version ``version`` (``0.10.2``) stores programs with Python callbacks in
    its persistent compilation cache. Return None if ``version`` is None or cannot be parsed."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(p.isdecimal() for p in parts):
        return None
    return (int(parts[0]), int(parts[1])) >= CALLBACKS_KEPT_SINCE


LOOPS = frozenset({"scan", "while"})  # names of JAX's loops that are compiled outside jit
# The axis of the mesh on which ``replicate`` of Flax puts copies of arrays
REPLICATE_AXIS = "_device_put_sharded"
