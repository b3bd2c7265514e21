"""Declare the frames of JAX whose local variables jaxscope reads, one dataclass each.

The names were read in the sources of JAX 0.10.2 and 0.12.0.1 and are tested on both. When a jitted call is
traced, lowered and compiled, these frames are on the stack, innermost first::

    jit:   _trace_for_jit < _infer_params < cache_miss < api_boundary < caller
           _pjit_call_impl_python < _run_python_pjit < cache_miss < ...
           _cached_lowering_to_hlo < lower_sharding_computation < _pjit_lower < _resolve_and_lower < ...
           _cached_compilation < from_hlo < MeshComputation.compile < _pjit_call_impl_python < ...
    under grad, vmap:   _pjit_call_impl_python < call_impl_cache_miss < _pjit_call_impl < ...
    ahead of time:      _trace_for_jit < _infer_params < jit_trace;  _pjit_lower < ... < Traced.lower;
                        _cached_compilation < from_hlo < ... < Lowered.compile

When a phase (trace, lowering, compilation) is over, JAX announces it with an event. The frame's local
variables have the results of the phase by then.

In the declarations, ``private("Missed.key")`` means: the field ``key`` of the event ``Missed`` in a recording
is read from this variable.
"""

from __future__ import annotations

from typing import Any

from jaxscope.jax_internals.base import JaxFrame, declared, private

PJIT = "jax._src.pjit"
PXLA = "jax._src.interpreters.pxla"
KEY = "Missed.key"


@declared
class CallFrame(JaxFrame):
    """The frame of a call of a jitted function that missed JAX's fast path: JAX's C++ code had no executable
    for the call and called Python."""

    module, owner, function = PJIT, "_cpp_pjit", "cache_miss"
    fun: Any = private(KEY, "Missed.function")
    jit_info: Any = private(KEY)
    args: Any = private(KEY, "Missed.entry")
    kwargs: Any = private(KEY)


@declared
class AheadOfTimeFrame(JaxFrame):
    """The frame of a call of ``f.trace``, ``f.lower`` or ``f.eval_shape`` of a jitted function."""

    module, function = PJIT, "jit_trace"
    jit_func: Any = private(KEY, "Missed.function")
    args: Any = private(KEY)
    kwargs: Any = private(KEY)


@declared
class TransformFrame(JaxFrame):
    """The frame of a jitted call that grad, vmap or another transform intercepted. The frame has the jaxpr of
    the function, but not the Python function."""

    module, owner, function = PJIT, "_pjit_call_impl", "call_impl_cache_miss"
    jaxpr: Any = private("Missed.inside")


@declared
class TraceFrame(JaxFrame):
    """The frame of JAX's ``_trace_for_jit``, which traces one jitted function. ``elapsed_time_ctx`` is the
    context manager that times the trace. Only the frame refers to this object, so both are freed together."""

    module, function = PJIT, "_trace_for_jit"
    fun: Any = private("Traced.captured", KEY, "Missed.function")
    jit_info: Any = private(KEY)
    args: Any = private(KEY, "Missed.entry")
    kwargs: Any = private(KEY)
    jaxpr: Any = private("Traced.captured", "Traced.equations", "Traced.effects")
    out_avals: Any = private("Traced.out", "Traced.out_tree")
    elapsed_time_ctx: Any = private("PhaseFailed.phase")


TraceFrame.names["jit_info"] = "ji"


@declared
class ImplFrame(JaxFrame):
    """The frame of JAX's ``_pjit_call_impl_python``, which runs a call for which JAX's C++ code has no
    executable: it lowers and compiles the program."""

    module, function = PJIT, "_pjit_call_impl_python"
    args: Any = private(KEY)
    jaxpr: Any = private("Missed.effects", "MissesCounted.count")
    in_shardings: Any = private("Lowered.asked", "Lowered.asked_in")
    out_shardings: Any = private("Lowered.asked", "Lowered.asked_out")


@declared
class LowerAheadOfTimeFrame(JaxFrame):
    """The frame of ``Traced.lower``, which lowers a program without a call. ``lo`` is the traced program."""

    module, owner, function = "jax._src.stages", "Traced", "lower"
    lo: Any = private("Lowered.asked", "Lowered.asked_in", "Lowered.asked_out")


@declared
class ResolveFrame(JaxFrame):
    """The frame of JAX's ``_resolve_and_lower``. This function takes missing shardings from the arguments of
    the call, and passes all shardings to ``_pjit_lower``."""

    module, function = PJIT, "_resolve_and_lower"
    args: Any = private(KEY)
    jaxpr: Any = private("Missed.function", "Retargeted.program")
    in_shardings: Any = private("Retargeted.program")
    out_shardings: Any = private("Retargeted.program")
    in_layouts: Any = private("Retargeted.program")
    out_layouts: Any = private("Retargeted.program")
    donated_invars: Any = private("Lowered.donated", "Retargeted.program")
    ctx_mesh: Any = private("Retargeted.program")
    name: Any = private("Retargeted.program")
    keep_unused: Any = private("Retargeted.program")
    inline: Any = private("Retargeted.program")
    compiler_options_kvs: Any = private("Lowered.program", "Retargeted.program")
    lowering_parameters: Any = private("Retargeted.program")


@declared
class LowererFrame(JaxFrame):
    """The frame of JAX's ``_pjit_lower``, which lowers a program. Its usual caller ``_resolve_and_lower`` has
    variables with the same values."""

    module, function = PJIT, "_pjit_lower"
    jaxpr: Any = private("Missed.function")
    donated_invars: Any = private("Lowered.donated")
    compiler_options_kvs: Any = private("Lowered.program")


@declared
class LoweringFrame(JaxFrame):
    """The frame of JAX's ``_cached_lowering_to_hlo``, which converts a jaxpr to StableHLO."""

    module, function = PXLA, "_cached_lowering_to_hlo"
    lowering_result: Any = private("Lowered.program")
    module_name: Any = private("Lowered.module")
    num_devices: Any = private("Lowered.num_partitions", "Lowered.program")
    platforms: Any = private("Lowered.platforms", "Lowered.program")
    num_const_args: Any = private("Compiled.dropped_arguments", "Compiled.in_sharding_of")
    backend: Any = private("BackendSeen.platform")


@declared
class CompileFrame(JaxFrame):
    """The frame of JAX's ``_cached_compilation``, which compiles StableHLO to an executable."""

    module, function = PXLA, "_cached_compilation"
    computation: Any = private("Compiled.program", "Compiled.dropped_arguments")
    xla_executable: Any = private("Compiled.memory", "Compiled.cost")
    host_callbacks: Any = private("Compiled.persistent_cache_reason")
    backend: Any = private("BackendSeen.platform")


@declared
class ExecutableFrame(JaxFrame):
    """The frame of JAX's ``UnloadedMeshExecutable.from_hlo``, which wraps a new executable together with the
    shardings of its arguments and results."""

    module, owner, function = PXLA, "UnloadedMeshExecutable", "from_hlo"
    hlo: Any = private("Missed.function")
    name: Any = private("Compiled.module")
    in_shardings: Any = private("Compiled.in_shardings", "Compiled.out_shardings")
    out_shardings: Any = private("Compiled.out_shardings")
    global_in_avals: Any = private("Compiled.in_shardings", "Compiled.out_shardings")
    global_out_avals: Any = private("Compiled.out_shardings")
    kept_var_idx: Any = private("Compiled.dropped_arguments", "Compiled.in_shardings")
    device_list: Any = private("Compiled.devices", "Compiled.in_shardings", "Compiled.out_shardings")
    committed: Any = private("Compiled.out_committed")
    ordered_effects: Any = private("Compiled.in_shardings", "Compiled.out_shardings")
    intermediate_shardings: Any = private("Compiled.in_shardings", "Compiled.out_shardings")
    context_mesh: Any = private("Compiled.in_shardings", "Compiled.out_shardings")
    all_args_info: Any = private("Compiled.dropped_arguments", "Compiled.in_shardings")
    backend: Any = private("BackendSeen.platform")


@declared
class DevicePutFrame(JaxFrame):
    """The frame of JAX's ``batched_device_put``, which copies the shards of one array to their devices
    if they are not there already."""

    module, function = PXLA, "batched_device_put"
    aval: Any = private("Transferred.bytes")
    xs: Any = private("Transferred.bytes")
    devices: Any = private("Transferred.bytes")


@declared
class EagerFrame(JaxFrame):
    """The frame of JAX's ``EvalTrace.process_primitive``, which runs one primitive outside of any trace."""

    module, owner, function = "jax._src.core", "EvalTrace", "process_primitive"
    args: Any = private("Transferred.count")


@declared
class NumpyArrayFrame(JaxFrame):
    """The frame of ``jnp.array``, which ``jnp.asarray`` calls, too. ``object`` is what the program passed,
    before JAX converts its dtype."""

    module, function = "jax._src.numpy.array_constructors", "array"
    object: Any = private("Rounded.share")


@declared
class DeviceCopyFrame(JaxFrame):
    """The frame of JAX's ``_array_shard_arg``, which copies array arguments to the devices that the call
    needs. The sharding of the arrays stays the same."""

    module, function = "jax._src.array", "_array_shard_arg"
    batch_xs: Any = private("Transferred.bytes")
    batch_devs: Any = private("Transferred.bytes")


@declared
class ValueFrame(JaxFrame):
    """The frame of JAX's ``ArrayImpl._value``, which copies an array to the host. ``i`` is the index of the
    shard, if JAX copies shard by shard."""

    module, owner, function = "jax._src.array", "ArrayImpl", "_value"
    i: Any = private("Transferred.count")
    self: Any = private("Transferred.bytes")


@declared
class PmapFrame(JaxFrame):
    """The frame of a call of a function that ``jax.pmap`` returned. ``infer_params`` is a function whose
    closure leads to the user's function."""

    module, owner, function = "jax._src.pmap", "pmap", "wrapped"
    args: Any = private(KEY)
    kwargs: Any = private(KEY)
    infer_params: Any = private(KEY, "Missed.function")


# ``jaxscope doctor --probe`` and tests/jax_internals/test_renamed.py check each of these declarations.
FRAMES: tuple[type[JaxFrame], ...] = tuple(JaxFrame.__subclasses__())


def call_frames() -> tuple[str, ...]:
    """Return the names of JAX's functions whose frame on the stack shows a call of a jitted function."""
    return CallFrame.function, TransformFrame.function, AheadOfTimeFrame.function
