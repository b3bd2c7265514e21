"""Find operations outside jit that mostly compute, so that jit would not make them faster."""

from __future__ import annotations

from jaxscope.model.records import Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.libraries import JAX_ROOTS

# Operations plus bytes of a program, which a CPU core needs about 30 microseconds for: as long as a call.
SMALL = 150_000
LONG = 20 * SMALL  # operations plus bytes of a program that takes far longer to run than to start
# Operations that take as long in a jitted function: XLA fuses them with nothing
WHOLE = frozenset(
    {"matmul", "dot", "dot_general", "tensordot", "vdot", "inner", "einsum", "conv_general_dilated", "fft"}
    | {"sort", "argsort", "top_k", "solve", "inv", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "lu"}
    | {"qr", "lstsq", "triangular_solve", "while", "scan"}
)


def eager(f: Function) -> bool:
    """Return whether ``f`` is an operation outside jit: a primitive, or a function that JAX itself jits
    (``jnp.cumsum``)."""
    if f.seen.eager:
        return True
    module = (f.seen.module or "").partition(".")[0]
    return f.seen.library and module in JAX_ROOTS


@cached_until_changed
def lines(run: Run) -> set[tuple[str, int]]:
    """Return (file, line) of the lines with an operation outside jit that would take as long in a jitted
    function, such as a product of large matrices. Empty except on CPUs, which run some operations while the
    main thread waits."""
    if run.platform != "cpu":
        return set()
    return {
        c.site.place
        for c in run.compilations.values()
        if c.site is not None and c.compiled is not None and eager(c.function)
        if c.function.seen.name.strip("_") in WHOLE
        if c.compiled.cost.get("flops", 0) + c.compiled.cost.get("bytes accessed", 0) >= LONG
    }
