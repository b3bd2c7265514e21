"""Find operations outside jit that mostly compute, so that jit would not make them faster."""

from __future__ import annotations

from collections import Counter

from jaxscope.model.payers import PRODUCTS
from jaxscope.model.records import cached_until_changed
from jaxscope.model.run import Run

# Operations plus bytes of a program, which a CPU core needs about 30 microseconds for: as long as a call.
SMALL = 150_000
HALF = 0.5
LONG = 20 * SMALL  # operations plus bytes of a program that takes far longer to run than to start
# Operations that take as long in a jitted function: XLA fuses them with nothing
WHOLE = PRODUCTS | frozenset(
    {"fft"}
    | {"sort", "argsort", "top_k", "solve", "inv", "det", "slogdet", "cholesky", "eigh", "eig", "svd", "lu"}
    | {"qr", "lstsq", "triangular_solve", "while", "scan"}
)

STARTED = 50e-6  # seconds to start one operation outside jit; under jax.grad and jax.vmap it takes longer
# Operations in a second on a few cores of a CPU: of matrix products, and of others (see SMALL)
PRODUCTS_RATE, RATE = 50e9, 5e9


@cached_until_changed
def saved_shares(run: Run) -> dict[tuple[str, int], float]:
    """Return {(file, line): share} for the lines with an operation outside jit that would take as long in a
    jitted function, such as a product of large matrices. The share, from 0 to 1, is the part of the time of
    the line's operations that jit would save: an estimate of the time to start them, divided by this time
    and that of the computation. Empty except on CPUs, which run some operations while the main thread
    waits."""
    computing, started = Counter[tuple[str, int]](), Counter[tuple[str, int]]()
    for c in run.compilations.values() if run.platform == "cpu" else ():
        if c.site is None or c.compiled is None or not c.function.operation:
            continue
        started[c.site.place] += 1
        name, flops = c.function.seen.name.strip("_"), c.compiled.cost.get("flops", 0.0)
        operations = flops + c.compiled.cost.get("bytes accessed", 0.0)
        if name in WHOLE and operations >= LONG:
            nanoseconds = 1e9 * (flops / PRODUCTS_RATE if name in PRODUCTS else operations / RATE)
            computing[c.site.place] += round(nanoseconds)
    return {
        place: (start := STARTED * started[place]) / (start + 1e-9 * nanoseconds)
        for place, nanoseconds in computing.items()
    }


def seconds_of_one_call(run: Run, function: tuple[str, str]) -> float:
    """Return an estimate of the seconds that one call of the user's ``function``, (file, qualified name),
    spends in operations outside jit, also in functions that it calls, if it applies each of the compiled
    operations once."""
    inside = [
        c
        for c in run.compilations.values()
        if c.compiled is not None and c.function.operation
        if any((at.file, at.function) == function for at in c.lines)
    ]
    cost = (c.compiled.cost for c in inside if c.compiled is not None)
    operations = sum(one.get("flops", 0.0) + one.get("bytes accessed", 0.0) for one in cost)
    return STARTED * len(inside) + operations / RATE


def lines(run: Run) -> set[tuple[str, int]]:
    """Return (file, line) of the lines with operations outside jit that mostly compute, so that jit would
    save less than half of their time."""
    return {place for place, share in saved_shares(run).items() if share < HALF}
