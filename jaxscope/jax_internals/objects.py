"""Declare the private attributes that jaxscope reads from JAX's objects, one dataclass for each class of JAX.
A field has the value that was read, or a ``Missing`` with the reason why it could not be read."""

from __future__ import annotations

from typing import Any

from jaxscope.jax_internals.base import JaxObject, declared, private

KEY = "Missed.key"


@declared
class JitInfo(JaxObject):
    """The options that were passed to ``jax.jit``, as JAX keeps them."""

    module, kind = "jax._src.pjit", "PjitInfo"
    fun_sourceinfo: Any = private(KEY)
    fun_signature: Any = private(KEY)
    static_argnums: Any = private(KEY)
    static_argnames: Any = private(KEY)
    donate_argnums: Any = private(KEY)
    donate_argnames: Any = private(KEY)
    compiler_options_kvs: Any = private(KEY)
    device: Any = private(KEY)
    backend: Any = private(KEY)
    keep_unused: Any = private(KEY)
    use_resource_env: Any = private(KEY)
    inline: Any = private(KEY)
    in_shardings_leaves: Any = private(KEY)
    out_shardings_leaves: Any = private(KEY)
    in_layouts_leaves: Any = private(KEY)
    out_layouts_leaves: Any = private(KEY)


@declared
class JittedFunction(JaxObject):
    """The object that ``jax.jit`` returns. ``fun`` is the function that was passed to ``jax.jit``."""

    module, kind, made_in = "jax._src.pjit", "", "_cpp_pjit"
    fun: Any = private(KEY, "Missed.function")
    jit_info: Any = private(KEY)


JittedFunction.names = {"fun": "_fun", "jit_info": "_jit_info"}


@declared
class TracedFunction(JaxObject):
    """The object that ``f.trace`` returns for a jitted ``f``."""

    module, kind = "jax._src.stages", "Traced"
    params: Any = private("Lowered.asked", "Lowered.asked_in", "Lowered.asked_out")


TracedFunction.names = {"params": "_params"}


@declared
class Jaxpr(JaxObject):
    """The result of a trace, a jaxpr. ``consts`` are the arrays that the traced function captured."""

    module, kind = "jax._src.core", "Jaxpr ClosedJaxpr"  # 0.12, 0.10
    consts: Any = private("Traced.captured")
    effects: Any = private("Traced.effects", "Missed.effects")
    eqns: Any = private("Traced.equations")
    debug_info: Any = private("Missed.function")


@declared
class DebugInfo(JaxObject):
    """The name and file of a traced function, and the names of its arguments."""

    module, kind = "jax._src.linear_util", "DebugInfo"
    func_src_info: Any = private("Missed.function")
    arg_names: Any = private(KEY)


@declared
class LoweringResult(JaxObject):
    """The result of a lowering. ``mlir_module`` is its StableHLO module."""

    module, kind = "jax._src.interpreters.mlir", "LoweringResult"
    mlir_module: Any = private("Lowered.program")


LoweringResult.names = {"mlir_module": "module"}


@declared
class ArgumentsInfo(JaxObject):
    """The avals of all arguments of a program, including those that XLA drops. JAX passes this object to
    ``UnloadedMeshExecutable.from_hlo``."""

    module, kind = "jax._src.interpreters.pxla", "AllArgsInfo"
    in_avals: Any = private("Compiled.dropped_arguments", "Compiled.in_shardings")


@declared
class Computation(JaxObject):
    """A lowered program: the StableHLO module and the other inputs of its compilation."""

    module, kind = "jax._src.interpreters.pxla", "MeshComputation"
    name: Any = private("Retargeted.module")
    const_args: Any = private("Retargeted.donated", "Retargeted.dropped")
    donated_invars: Any = private("Retargeted.donated")
    platforms: Any = private("Retargeted.program")
    compiler_options_kvs: Any = private("Retargeted.program")
    device_list: Any = private("Retargeted.program")
    compile_args: Any = private("Retargeted.program")


Computation.names = {
    "name": "_name",
    "const_args": "const_args",
    "donated_invars": "_donated_invars",
    "platforms": "_platforms",
    "compiler_options_kvs": "_compiler_options_kvs",
    "device_list": "_device_list",
    "compile_args": "compile_args",
}


@declared
class LoweredFunction(JaxObject):
    """The object that ``f.lower`` returns for a jitted ``f``."""

    module, kind = "jax._src.stages", "Lowered"
    lowering: Any = private("Retargeted.program")


LoweredFunction.names = {"lowering": "_lowering"}

OBJECTS: tuple[type[JaxObject], ...] = (
    JitInfo,
    JittedFunction,
    TracedFunction,
    Jaxpr,
    DebugInfo,
    LoweringResult,
    ArgumentsInfo,
    Computation,
    LoweredFunction,
)
