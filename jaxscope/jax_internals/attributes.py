"""Declare the private attributes of JAX's modules that jaxscope uses.

Each declaration has the module, the name of the attribute, and the event fields that are read from this
attribute: ``Missed.full`` is the field ``full`` of the event ``Missed``.
"""

from __future__ import annotations

from jaxscope.jax_internals.base import Private

TRACE_CONTEXT = Private("jax._src.config", "trace_context", "Key.context")
TRACE_CONTEXT_NAMES = Private("jax._src.config", "trace_context_names", "Key.context")
DEFAULT_DEVICE = Private("jax._src.config", "default_device", "Key.context")
CONCRETE_MESH = Private("jax._src.mesh", "get_concrete_mesh", "Key.context")
DEBUG_NANS = Private("jax._src.config", "debug_nans", "Called.count")
DEBUG_INFS = Private("jax._src.config", "debug_infs", "Called.count")
POST_HOOK = Private("jax._src.api", "_post_hook_state", "Called.count")
TEST_LISTENER = Private("jax._src.util", "test_event_listener", "Missed.call", "Traced.call")
DURATION_LISTENERS = Private("jax._src.monitoring", "get_event_duration_listeners")
SIGNATURES = Private("jax._src.pjit", "_infer_params_cached", "Missed.cleared", "Missed.full")
FAST_PATH = Private("jax._src.pjit", "_cpp_pjit_cache_explicit_attributes", "Missed.full")
FAST_PATH_NO_OPTIONS = Private("jax._src.pjit", "_cpp_pjit_cache_fun_only", "Missed.full")
BACKENDS = Private("jax._src.xla_bridge", "_backends", "ArraysSeen.groups")
ARRAY = Private("jax._src.array", "ArrayImpl", "Transferred.count", "Missed.made")
STAGE = Private("jax._src.lax.lax", "stage_p", "Transferred.count")
CONVERT = Private("jax._src.lax.lax", "convert_element_type_p", "Transferred.count")
HOST_ARRAY = Private("jax._src.literals", "TypedNdArray", "Transferred.count")
IN_SHARDINGS = Private(
    "jax._src.interpreters.pxla", "_maybe_get_and_check_in_shardings", "Compiled.in_shardings"
)
OUT_SHARDINGS = Private(
    "jax._src.interpreters.pxla", "_maybe_get_and_check_out_shardings", "Compiled.out_shardings"
)
RECOVER_SHARDINGS = Private(
    "jax._src.interpreters.pxla",
    "maybe_recover_user_shardings",
    "Compiled.in_shardings",
    "Compiled.out_shardings",
)
INPUT_OUTPUT = Private("jax._src.interpreters.pxla", "get_prop_to_input_output", "Retargeted.program")
LOWER = Private("jax._src.pjit", "_pjit_lower", "Retargeted.program")
HIDE_FILES = Private("jax._src.source_info_util", "register_exclusion")
COMPILE_OPTIONS = Private("jax._src.interpreters.pxla", "create_compile_options", "TargetCompiled.program")
MLIR_CONTEXT = Private("jax._src.interpreters.mlir", "make_ir_context", "TargetCompiled.program")
XLA_CLIENT = Private("jax._src.lib", "xla_client", "TargetCompiled.program")
DISTRIBUTED = Private("jax._src.distributed", "global_state", "RanksCompiled.groups")
ELAPSED_TIME = Private("jax._src.dispatch", "LogElapsedTimeContextManager", "PhaseBegan.phase")

ATTRIBUTES = {name: value for name, value in list(globals().items()) if isinstance(value, Private)}
