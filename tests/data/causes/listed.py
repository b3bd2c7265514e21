"""Labels for the measured misses of ``retrace_causes``. Their functions share one definition, ``mk.<locals>.target``,
as the closures of a factory do: what one of them has seen does not count for another.

``None`` labels a call that hits the cache, or that no one can see (see LEFT_OUT).
"""

import retrace_causes

from .spec import CASES, NEW, Case, Cause, generous

X = "a[0]"
REMADE = Cause("new_function", "trace", None)
CLEARED = Cause("cleared", "trace", None)

LABELS = {
    "control: same args": None,
    "shape (last partial batch)": Cause("shape", "trace", X),
    "rank": Cause("rank", "trace", X),
    "dtype f32->bf16": Cause("dtype", "trace", X),
    "weak_type strong->weak array": Cause("weak_type", "trace", X),
    "array f32[] -> python float": Cause("weak_type", "trace", X),
    "python float -> python int": Cause("dtype", "trace", X),
    "python int -> bool": Cause("dtype", "trace", X),
    "python float value 1.0->2.0 (traced)": None,
    "np.float32 scalar -> python float": Cause("weak_type", "trace", X),
    "jax f32[] -> np.float32 scalar": Cause("argument_kind", "fast_path", X),
    "jax array -> np.ndarray same aval": Cause("argument_kind", "fast_path", X),
    "np f32 -> np f64 (x64 off)": None,
    "static value 3 -> 4": Cause("static_value", "trace", "a[1]"),
    "static equal-hash new tuple": None,
    "static arg identity hash, new obj": Cause("static_identity", "trace", "a[1]"),
    "static arg eq but unstable hash": Cause("static_identity", "trace" if NEW else "fast_path", "a[1]"),
    "static arg 1 -> 1.0 (== and same hash!)": Cause("static_value", "trace", "a[1]"),
    "static arg True -> 1": Cause("static_value", "trace", "a[1]"),
    "static arg unhashable (list)": None,
    "pytree list -> tuple": Cause("tree", "trace", X),
    "pytree list length +1": Cause("tree", "trace", (X, "a[0][1]")),
    "dict key order (plain dict)": None,
    "OrderedDict key order": Cause("tree", "trace", X),
    "dict new key": Cause("tree", "trace", ("a[0]['b']", X)),
    "None -> array": Cause("tree", "trace", "a[1]"),
    "pytree aux data changes (step int)": Cause("tree_static", "trace", ("a[0].step", X)),
    "pytree aux data id-eq object": Cause("static_identity", "trace", ("a[0].step", X)),
    "typed key -> raw uint32 key": Cause("prng", "trace", X),
    "PRNG impl threefry -> rbg": Cause("prng", "trace", X),
    "uncommitted -> committed same device": Cause("committed", "lower", X),
    "committed dev0 -> dev1": Cause("device", "compile", X),
    "NamedSharding P(d) -> P()": Cause("sharding", "lower", X),
    "P(d) -> P(d,None) same placement": Cause("equal_sharding", "fast_path", X),
    "1-dev NamedSharding vs SingleDevice": Cause(("mesh", "sharding"), "trace", X),
    "new equal Mesh object": None,
    "mesh axis renamed, same placement": Cause("mesh", "trace", X),
    "memory kind device -> host": Cause("memory_kind", "trace", X),
    "layout (major_to_minor) differs": Cause("layout", "lower", X),
    "kwargs vs positional": Cause("call_form", "trace", (None, "x")),
    "kwargs order": None,
    "default arg omitted vs explicit": Cause("call_form", "trace", (None, "s")),
    "static_argname positional -> keyword": Cause("call_form", "trace", (None, "n")),
    "new lambda/def each iteration": REMADE,
    "jax.jit(same f) again in loop": None,
    "jax.jit(same f, donate) again in loop": None,
    "jax.jit(same f, static_argnums) in loop": None,
    "same f, other jit options (donate)": Cause("options", "lower", (None, "donate_argnums")),
    "same f, other jit options (out_shardings)": Cause("options", "lower", (None, "out_shardings")),
    "same f, compiler_options differ": Cause("options", "compile", (None, "compiler_options")),
    "functools.partial re-made each call": REMADE,
    "jax.jit(obj.method) re-made, same obj": REMADE,
    "jax.jit(obj.method), new equal object": REMADE,
    "@jit method static self, new object": Cause("static_identity", "trace", "self"),
    "STALE: static self attribute mutated": None,
    "STALE: closure python value changed": None,
    "STALE: closure jnp array rebound": None,
    "STALE: np closure mutated in place": None,
    "f garbage-collected, re-created": Cause(("cleared", "new_function"), "trace", None),
    "jax.clear_caches()": CLEARED,
    "f.clear_cache()": CLEARED,
    "AOT lower().compile() then call": Cause("aot", "fast_path", None),
    "eval_shape(f.jit) then call": Cause(("aot", "first"), "lower", None),
    "call from a new thread": None,
    "ctx: enable_x64 (f32 arg)": Cause("config", "trace", "jax_enable_x64"),
    "ctx: default_matmul_precision": Cause("config", "trace", "jax_default_matmul_precision"),
    "ctx: debug_nans": None,
    "ctx: numpy_rank_promotion": Cause("config", "trace", "jax_numpy_rank_promotion"),
    "ctx: numpy_dtype_promotion": Cause("config", "trace", "jax_numpy_dtype_promotion"),
    "ctx: default_device(dev1), uncommitted": Cause("config", "trace", "jax_default_device"),
    "ctx: default_prng_impl": None,
    "ctx: log_compiles": None,
    "ctx: with mesh:": Cause("mesh", "trace", "context"),
    "ctx: jax.set_mesh": Cause("mesh", "trace", "context"),
    "ctx: named_scope": None,
    "ctx: transfer_guard(log)": None,
    "ctx: checking_leaks": None,
    "ctx: explain_cache_misses": None,
    "called under grad (tracer args)": Cause("transform", "lower", None),
    "called under vmap": Cause("transform", "lower", None),
    "FEEDBACK: weak-typed init, s=f(s) step 2": Cause("weak_type", "trace", X),
    "FEEDBACK: uncommitted init, sharded out, step 2": Cause(("mesh", "sharding"), "trace", X),
    "FEEDBACK: numpy init -> jax out, step 2": Cause("argument_kind", "fast_path", X),
    "debug.print inside (effects), 3rd call": Cause("effects", "fast_path", None),
    "pure_callback inside, 3rd call": None,
    "C++ LRU cache evicted (capacity shrunk to 1)": None,
    "jax Ref (mutable array) argument, 3rd call": Cause("effects", "fast_path", None),
    "compiled persistent-cache hit after clear_caches": CLEARED,
}

LEFT_OUT = {
    "infer_params LRU evicted (2100 other traces), .trace()": "only a cache of microseconds is missed, and JAX announces nothing",
    "called under grad, 2nd time": "the same",
    "called inside another jit": "the same",
    "donated arg already deleted (error)": "the call ends in an error, not in a miss",
}


def _listed():
    for name, make in retrace_causes.CASES:
        if name in LEFT_OUT:
            continue
        cause = LABELS[name]
        CASES.append(
            Case(
                f"listed: {name}",
                make,
                (cause,) if cause else (),
                "target",
                generous(cause) if cause else (),
                persistent="hit" if name.startswith("compiled persistent-cache hit") else None,
            )
        )


_listed()
