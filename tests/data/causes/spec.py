"""What a labelled case is: a few calls that warm a function up, one call that is measured, and why that call misses.

The label is what is true by construction, in the words of the report contract. A label may allow several
answers where the contract leaves the choice: the first is the one we would give.
"""

import os
from typing import Any, Callable, NamedTuple

# What is compiled does not matter here, that it is does: half the time of a compilation is saved.
os.environ.setdefault(
    "XLA_FLAGS",
    "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true",
)
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import retrace_causes

NEW = tuple(int(part) for part in jax.__version__.split(".")[:2]) >= (0, 11)  # cases that differ by version state both

Words = str | tuple[str | None, ...] | None


class Cause(NamedTuple):
    """One true cause. A tuple lists the accepted answers, the preferred one first."""

    kind: Words
    level: Words
    path: Words = None
    before: str | None = None  # what its ``before`` has to contain, where the case is about which key it is compared with


class Case(NamedTuple):
    """``make()`` returns (warm-up, measured call) on fresh function objects; no ``causes``: the call hits the cache."""

    name: str
    make: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]
    causes: tuple[Cause, ...]
    function: str  # a part of the qualified name of the function that is missed
    says: tuple[str, ...]  # patterns that all have to be in the log of JAX's explainer for it to be called right
    warm: int = 2  # how often the warm-up runs
    eager: bool = False  # an operation outside jit: nobody counts its traces
    slow: bool = False  # only in the benchmark
    persistent: str | None = None  # what the compilation must say of the persistent cache


CASES: list[Case] = []

# What counts as naming the true cause where a case does not say: generous, letter case is ignored.
GENEROUS = {
    "shape": (r"shape|\[[\d,]*\].*\[[\d,]*\]",),
    "rank": (r"shape|rank|ndim|\[[\d,]*\].*\[[\d,]*\]",),
    "dtype": (r"dtype|(bool|[fiu]\d+|bf16|float\d\d|int\d+)\[.*(bool|[fiu]\d+|bf16|float\d\d|int\d+)\[",),
    "weak_type": (r"weak",),
    "static_value": (r"static",),
    "static_identity": (r"identity|__eq__|__hash__|unhashable",),
    "tree": (r"tree|structure|keys|length|tuple|list",),
    "tree_static": (r"static|metadata|aux",),
    "call_form": (r"positional|keyword|kwarg|keys|length|number of arguments|number of args",),
    "new_function": (r"re-?defin|re-?creat|new function|new object|made anew|partial|method|lambda",),
    "options": (r"donat|option|out_shardings|in_shardings",),
    "sharding": (r"shard|P\(|@|Auto|Explicit",),
    "committed": (r"commit",),
    "layout": (r"layout|major",),
    "device": (r"device|cpu:",),
    "memory_kind": (r"memory|host|<",),
    "mesh": (r"mesh|Auto|Explicit",),
    "config": (r"config|context|jax_",),
    "prng": (r"key<|key|prng|u?int32\[2\]",),
    "cleared": (r"clear|evict|collected|weakref",),
    "aot": (r"ahead|aot|lower\(|\.compile\(",),
    "argument_kind": (r"numpy|np\.",),
    "equal_sharding": (r"shard|P\(",),
    "effects": (r"effect|callback|debug",),
    "transform": (r"grad|vmap|transform|tracer|jvp|batch",),
    "first": (r"never seen",),
}


def generous(cause: Cause) -> tuple[str, ...]:
    kinds = (cause.kind,) if isinstance(cause.kind, str) else cause.kind
    return ("|".join(pattern for kind in kinds for pattern in GENEROUS[kind]),)


def case(name: str, *causes: Cause, function: str = "train_step", says: str | tuple[str, ...] | None = None, **options):
    """Put ``make`` in the list. No causes: a control, which hits the cache and has nothing to be explained."""

    def add(make):
        wanted = (says,) if isinstance(says, str) else says
        if wanted is None and causes:
            wanted = generous(causes[0])
        CASES.append(Case(name, make, causes, function, wanted or (), **options))
        return make

    return add


def traced() -> None:
    """Called in the body of a function under study: it runs when the body is really traced again."""
    retrace_causes.C["TRACE"] += 1


# The counters of retrace_causes are functions put in the place of JAX's own. They are taken out again, so that neither
# jaxscope nor JAX's explainer sees a frame of theirs, and put back where something is counted.
COUNTERS = [
    (module, name, getattr(module, name))
    for module, names in (
        (retrace_causes._pjit, ("_infer_params", "_trace_for_jit", "_infer_params_impl")),
        (retrace_causes._mlir, ("lower_jaxpr_to_module",)),
        (retrace_causes._comp, ("compile_or_get_cached", "backend_compile_and_load")),
    )
    for name in names
    if getattr(getattr(module, name, None), "__code__", None) and getattr(module, name).__code__.co_filename == retrace_causes.__file__
]


def count(really: bool) -> None:
    for module, name, counter in COUNTERS:
        setattr(module, name, counter if really else counter.__wrapped__)


count(False)


def counted(case: Case) -> dict[str, int]:
    """What independent counters, wrapped around functions inside JAX, see of the measured call."""
    counts = retrace_causes.C
    name, retrace_causes.NAME = retrace_causes.NAME, case.function.rpartition(".")[2]
    count(True)
    try:
        warm, measured = case.make()
        for _ in range(case.warm):
            warm()
        jax.effects_barrier()
        counts.clear()
        try:
            measured()
        except Exception:  # a control may end in an error of JAX
            if case.causes:
                raise
        return dict(counts)
    finally:
        count(False)
        retrace_causes.NAME = name


def level(counts: dict[str, int], eager: bool = False) -> str | None:
    """The first of JAX's caches that did not have it; None: all was found on the fast path."""
    if counts.get("infer" if eager else "TRACE"):
        return "trace"
    if counts.get("lower"):
        return "lower"
    if counts.get("COMPILE"):
        return "compile"
    return "fast_path" if counts.get("cppmiss") else None
