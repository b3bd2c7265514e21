"""List names and arguments that JAX no longer has, with their replacements, and find the one that caused an
exception.

Source: the changelog of JAX (CHANGELOG.md of the repository jax-ml/jax), read up to version 0.11.0, and the
releases themselves up to 0.12.0. ``benchmarks/removed_names.py`` compares the table with a changelog,
``tests/analysis/test_removed_names.py`` with the installed JAX.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from jaxscope.analysis import line_names

NEVER = "never"  # stands for a version: no release of JAX had the name


class Removed(NamedTuple):
    """One name or argument that JAX removed, or deprecated in favor of another.

    Attributes:
      name: ``jax.tree_map``, ``Array.device()``, or ``jax.numpy.clip(a_min=)`` for an argument.
      instead: what to write instead; empty if there is no replacement.
      version: the release that removed the name, or deprecated it if ``deprecated`` is True; ``NEVER`` if no
        release had the name.
      changelog: the release under which JAX's changelog lists the removal; None: it is not in the changelog.
      deprecated: True if JAX still has the name, but it does less than its replacement.
    """

    name: str
    instead: str
    version: str
    changelog: str | None
    deprecated: bool = False


class Line(NamedTuple):
    """A line of the user's code in the traceback of an exception.

    Attributes:
      source: the text of the file; None: unknown.
      line: the number of the line, counted from 1.
    """

    source: str | None
    line: int


_AT = "x.at[index].set(y), x.at[index].add(y), ..."
_CALLBACKS = "jax.pure_callback, jax.experimental.io_callback or jax.debug.callback"
_CORE = "jax.extend.core."
_SET_MESH = "jax.set_mesh"

# Moved from jax.core to jax.extend.core.
_MOVED_IN_0_10 = (
    *("AbstractToken", "TraceTag", "mapped_aval", "set_current_trace", "subjaxprs"),
    *("take_current_trace", "unmapped_aval"),
)
_MOVED_IN_0_11 = (
    *("DebugInfo", "DropVar", "Effect", "Effects", "check_jaxpr", "concrete_or_error", "find_top_trace"),
    *("gensym", "get_opaque_trace_state", "jaxprs_in_params", "new_jaxpr_eqn", "no_effects"),
    *("primal_dtype_to_tangent_dtype", "valid_jaxtype"),
)
_PALLAS = "jax.experimental.pallas."

# Name -> (what to write instead, the release that removed the name).
NAMES: dict[str, tuple[str, str]] = {
    # jax
    "jax.tree_map": ("jax.tree.map", "0.6.0"),
    "jax.tree_flatten": ("jax.tree.flatten", "0.6.0"),
    "jax.tree_leaves": ("jax.tree.leaves", "0.6.0"),
    "jax.tree_structure": ("jax.tree.structure", "0.6.0"),
    "jax.tree_transpose": ("jax.tree.transpose", "0.6.0"),
    "jax.tree_unflatten": ("jax.tree.unflatten", "0.6.0"),
    "jax.treedef_is_leaf": ("jax.tree_util.treedef_is_leaf", "0.6.0"),
    "jax.tree_multimap": ("jax.tree.map", "0.3.16"),
    "jax.tree_util.tree_multimap": ("jax.tree.map", "0.3.16"),
    "jax.tree_util.build_tree": ("jax.tree.unflatten", "0.7.0"),
    "jax.xla_computation": ("jax.jit(f).lower(...).compiler_ir('hlo')", "0.4.34"),
    "jax.clear_backends": ("jax.clear_caches", "0.4.36"),
    "jax.device_put_sharded": ("jax.device_put with a NamedSharding", "0.10.0"),
    "jax.device_put_replicated": ("jax.device_put with NamedSharding(mesh, PartitionSpec())", "0.10.0"),
    "jax.soft_pmap": ("jax.shard_map with jax.vmap", "0.3.18"),
    "jax.mask": ("", "0.3.16"),
    "jax.shapecheck": ("", "0.3.16"),
    "jax.abstract_arrays": ("jax.core.ShapedArray", "0.4.17"),
    "jax.curry": ("functools.partial", "0.4.14"),
    "jax.partial_eval": ("jax.interpreters.partial_eval", "0.4.14"),
    "jax.pxla": ("jax.interpreters.pxla", "0.4.14"),
    "jax.xla": ("jax.interpreters.xla", "0.4.14"),
    "jax.ShapedArray": ("jax.core.ShapedArray", "0.4.14"),
    "jax.linear_util": ("jax.extend.linear_util", "0.4.24"),
    "jax.prng": ("jax.extend.random", "0.4.24"),
    "jax.jaxpr_util": ("", "0.4.16"),
    "jax.util": ("", "0.8.0"),
    "jax.ad_checkpoint.checkpoint": ("jax.checkpoint", "0.10.0"),
    "jax.ad_checkpoint.remat": ("jax.remat", "0.10.0"),
    "jax.custom_derivatives.custom_jvp_call_jaxpr_p": ("", "0.8.0"),
    "jax.cloud_tpu_init": ("nothing: JAX does this by itself", "0.11.0"),
    # jax.experimental
    "jax.experimental.host_callback": (_CALLBACKS, "0.8.0"),
    "jax.experimental.maps": ("jax.shard_map, and jax.sharding.Mesh", "0.4.31"),
    "jax.experimental.PartitionSpec": ("jax.sharding.PartitionSpec", "0.4.11"),
    "jax.experimental.pjit.PartitionSpec": ("jax.sharding.PartitionSpec", "0.4.11"),
    "jax.experimental.pjit.NamedSharding": ("jax.sharding.NamedSharding", "0.4.11"),
    "jax.experimental.pjit.with_sharding_constraint": ("jax.lax.with_sharding_constraint", "0.4.24"),
    "jax.experimental.optimizers": ("jax.example_libraries.optimizers", "0.3.16"),
    "jax.experimental.stax": ("jax.example_libraries.stax", "0.3.16"),
    "jax.experimental.loops": ("jax.lax.fori_loop or jax.lax.while_loop", "0.3.16"),
    "jax.experimental.gda_serialization": ("jax.experimental.array_serialization", "0.4.11"),
    "jax.experimental.global_device_array": ("jax.make_array_from_callback", "0.4.7"),
    "jax.experimental.array_api": ("jax.numpy", "0.5.0"),
    "jax.experimental.export": ("jax.export", "0.4.36"),
    "jax.experimental.shard": ("jax.sharding.reshard, auto_axes and explicit_axes of jax.sharding", "0.7.0"),
    "jax.experimental.enable_x64": ("jax.enable_x64(True)", "0.9.0"),
    "jax.experimental.disable_x64": ("jax.enable_x64(False)", "0.9.0"),
    "jax.experimental.layout.DeviceLocalLayout": ("jax.experimental.layout.Layout", "0.7.0"),
    "jax.experimental.ann": ("jax.lax.approx_max_k and jax.lax.approx_min_k", "0.3.2"),
    "jax.experimental.custom_dce": ("", "0.10.0"),
    "jax.experimental.mutable_array": ("jax.new_ref", "0.9.0"),
    "jax.experimental.compute_on.compute_on2": ("jax.experimental.compute_on.compute_on", "0.12.0"),
    "jax.experimental.control_deps": ("", "0.12.0"),
    "jax.experimental.shard_alike": ("", "0.12.0"),
    f"{_PALLAS}dot": ("jax.numpy.dot", "0.12.0"),
    f"{_PALLAS}debug_checks_enabled": (f"{_PALLAS}enable_debug_checks.value", "0.12.0"),
    f"{_PALLAS}tpu.HOST": (f"{_PALLAS}HOST", "0.12.0"),
    f"{_PALLAS}tpu.semaphore": (f"{_PALLAS}semaphore", "0.12.0"),
    f"{_PALLAS}tpu.semaphore_read": (f"{_PALLAS}semaphore_read", "0.12.0"),
    f"{_PALLAS}tpu.semaphore_signal": (f"{_PALLAS}semaphore_signal", "0.12.0"),
    f"{_PALLAS}tpu.semaphore_wait": (f"{_PALLAS}semaphore_wait", "0.12.0"),
    "jax.experimental.si_vjp": ("", "0.8.2"),
    "jax.experimental.compilation_cache.compilation_cache.initialize_cache": (
        "jax.config.update('jax_compilation_cache_dir', ...)",
        "0.8.0",
    ),
    # jax.sharding
    "jax.sharding.PositionalSharding": ("jax.sharding.NamedSharding", "0.7.0"),
    "jax.sharding.PmapSharding": ("jax.sharding.NamedSharding", "0.10.0"),
    "jax.sharding.XLACompatibleSharding": ("jax.sharding.Sharding", "0.4.34"),
    "jax.sharding.OpShardingSharding": ("jax.sharding.NamedSharding", "0.4.12"),
    "jax.sharding.use_mesh": (_SET_MESH, "0.7.1"),
    "jax.sharding.Shard": ("x.addressable_shards, whose elements are the shards", NEVER),
    # jax.numpy, jax.scipy, jax.lax, jax.nn, jax.random, jax.ops, jax.dlpack
    "jax.numpy.DeviceArray": ("jax.Array", "0.4.14"),
    "jax.numpy.msort": ("jax.numpy.sort(a, axis=0)", "0.4.9"),
    "jax.numpy.alltrue": ("jax.numpy.all", "0.4.16"),
    "jax.numpy.sometrue": ("jax.numpy.any", "0.4.16"),
    "jax.numpy.product": ("jax.numpy.prod", "0.4.16"),
    "jax.numpy.cumproduct": ("jax.numpy.cumprod", "0.4.16"),
    "jax.numpy.in1d": ("jax.numpy.isin", "0.4.24"),
    "jax.numpy.row_stack": ("jax.numpy.vstack", "0.4.24"),
    "jax.numpy.trapz": ("jax.scipy.integrate.trapezoid", "0.4.24"),
    "jax.numpy.issubsctype": ("jax.numpy.issubdtype", "0.4.24"),
    "jax.numpy.NINF": ("-jax.numpy.inf", "0.4.24"),
    "jax.numpy.PZERO": ("0.0", "0.4.24"),
    "jax.numpy.NZERO": ("-0.0", "0.4.24"),
    "jax.numpy.round_": ("jax.numpy.round", "0.4.38"),
    "jax.numpy.fix": ("jax.numpy.trunc", "0.10.0"),
    "jax.scipy.linalg.tril": ("jax.numpy.tril", "0.4.24"),
    "jax.scipy.linalg.triu": ("jax.numpy.triu", "0.4.24"),
    "jax.scipy.linalg.polar_unitary": ("jax.scipy.linalg.polar", "0.4.3"),
    "jax.scipy.special.sph_harm": ("jax.scipy.special.sph_harm_y", "0.10.0"),
    "jax.lax.pvary": ("jax.lax.pcast(..., to='varying')", "0.10.0"),
    "jax.lax.prod": ("math.prod", "0.4.16"),
    "jax.lax.tie_in": ("nothing: it had no effect", "0.4.29"),
    "jax.lax.infeed": ("", "0.7.0"),
    "jax.lax.outfeed": ("", "0.7.0"),
    "jax.lax.zeros_like_array": ("jax.numpy.zeros_like", "0.9.0"),
    "jax.nn.normalize": ("jax.nn.standardize", "0.4.29"),
    "jax.random.shuffle": ("jax.random.permutation(..., independent=True)", "0.4.31"),
    "jax.random.KeyArray": ("jax.Array", "0.4.24"),
    "jax.random.PRNGKeyArray": ("jax.Array", "0.4.24"),
    "jax.random.default_prng_impl": ("jax.config.jax_default_prng_impl", "0.4.24"),
    "jax.random.threefry2x32_key": ("jax.random.key(seed, impl='threefry2x32')", "0.4.24"),
    "jax.random.rbg_key": ("jax.random.key(seed, impl='rbg')", "0.4.24"),
    "jax.random.unsafe_rbg_key": ("jax.random.key(seed, impl='unsafe_rbg')", "0.4.24"),
    "jax.ops.index_update": (_AT, "0.3.2"),
    "jax.ops.index_add": (_AT, "0.3.2"),
    "jax.dlpack.to_dlpack": ("x itself: other frameworks' from_dlpack takes a jax.Array", "0.7.0"),
    # jax.core, jax.interpreters, jax.lib, jax.extend, jax.stages
    "jax.core.ClosedJaxpr": (f"{_CORE}ClosedJaxpr", "0.6.0"),
    "jax.core.Jaxpr": (f"{_CORE}Jaxpr", "0.6.0"),
    "jax.core.JaxprEqn": (f"{_CORE}JaxprEqn", "0.6.0"),
    "jax.core.Literal": (f"{_CORE}Literal", "0.6.0"),
    "jax.core.Primitive": (f"{_CORE}Primitive", "0.6.0"),
    "jax.core.Token": (f"{_CORE}Token", "0.6.0"),
    "jax.core.Var": (f"{_CORE}Var", "0.6.0"),
    "jax.core.jaxpr_as_fun": (f"{_CORE}jaxpr_as_fun", "0.6.0"),
    "jax.core.raise_to_shaped": ("", "0.6.0"),
    "jax.core.get_aval": ("jax.typeof", "0.10.0"),
    "jax.core.axis_frame": ("jax.lax.axis_size", "0.7.0"),
    **{f"jax.core.{name}": (f"{_CORE}{name}", "0.10.0") for name in _MOVED_IN_0_10},
    **{f"jax.core.{name}": (f"{_CORE}{name}", "0.11.0") for name in _MOVED_IN_0_11},
    "jax.core.InconclusiveDimensionOperation": ("jax.errors.InconclusiveDimensionOperation", "0.11.0"),
    "jax.core.JaxprTypeError": ("jax.errors.JaxprTypeError", "0.11.0"),
    "jax.core.CallPrimitive": ("", "0.11.0"),
    "jax.core.is_concrete": ("", "0.11.0"),
    "jax.core.is_constant_dim": ("", "0.11.0"),
    "jax.core.trace_ctx": ("", "0.11.0"),
    "jax.core.call": ("", "0.11.0"),
    "jax.interpreters.xla.DeviceArray": ("jax.Array", "0.4.11"),
    "jax.interpreters.xla.device_put": ("jax.device_put", "0.4.11"),
    "jax.interpreters.xla.xb": ("jax.extend.backend", "0.4.36"),
    "jax.interpreters.pxla.Mesh": ("jax.sharding.Mesh", "0.4.11"),
    "jax.interpreters.pxla.PartitionSpec": ("jax.sharding.PartitionSpec", "0.4.11"),
    "jax.interpreters.pxla.ShardedDeviceArray": ("jax.Array", "0.4.14"),
    "jax.interpreters.pxla.ShardingSpec": ("jax.sharding.NamedSharding", "0.10.0"),
    "jax.interpreters.pxla.Chunked": ("jax.shard_map", "0.10.0"),
    "jax.interpreters.pxla.NoSharding": ("jax.shard_map", "0.10.0"),
    "jax.interpreters.pxla.PmapExecutable": ("", "0.10.0"),
    "jax.interpreters.pxla.MapTracer": ("", "0.10.0"),
    "jax.interpreters.pxla.MeshExecutable": ("", "0.11.0"),
    "jax.interpreters.pxla.MeshAxisName": ("", "0.11.0"),
    "jax.interpreters.pxla.ArrayMapping": ("", "0.11.0"),
    "jax.interpreters.pxla.array_mapping_to_axis_resources": ("", "0.11.0"),
    "jax.interpreters.mlir.custom_call": ("jax.ffi", "0.8.0"),
    "jax.lib.xla_bridge": ("jax.extend.backend", "0.9.0"),
    "jax.lib.xla_client": ("jax.extend", "0.9.0"),
    "jax.lib.xla_extension": ("jax.errors, jax.Array and jax.Device", "0.9.0"),
    "jax.extend.ffi": ("jax.ffi", "0.8.0"),
    "jax.stages.OutInfo": ("jax.ShapeDtypeStruct", "0.7.0"),
    # methods of arrays and other objects
    "Array.device()": ("x.devices(), or x.device without parentheses", "0.4.27"),
    "Array.device_buffer": ("x.addressable_data(0)", "0.4.27"),
    "Array.device_buffers": ("x.addressable_shards", "0.4.27"),
    "Array.broadcast": ("jax.lax.broadcast", "0.4.14"),
    "Array.broadcast_in_dim": ("jax.lax.broadcast_in_dim", "0.4.14"),
    "Array.split": ("jax.numpy.split", "0.4.14"),
    "Array.tile": ("jax.numpy.tile", "0.3.17"),
    "Array.to_py": ("numpy.asarray(x)", "0.4.1"),
    "Array.block_host_until_ready": ("x.block_until_ready()", "0.4.1"),
    "PRNGKeyArray.unsafe_raw_array": ("jax.random.key_data", "0.4.24"),
    "Compiled.compiler_ir": ("compiled.as_text()", "0.4.14"),
    # the module of this name; the object jax.config still exists
    "jax.config": ("from jax import config", "0.4.29"),
}

# (function, argument) -> (what to write instead, the release that removed the argument).
ARGUMENTS: dict[tuple[str, str], tuple[str, str]] = {
    ("jax.experimental.pjit.pjit", "in_axis_resources"): ("in_shardings", "0.4.14"),
    ("jax.experimental.pjit.pjit", "out_axis_resources"): ("out_shardings", "0.4.14"),
    ("jax.jit", "in_axis_resources"): ("in_shardings", NEVER),
    ("jax.jit", "out_axis_resources"): ("out_shardings", NEVER),
    ("jax.lax.with_sharding_constraint", "axis_resources"): ("shardings", "0.4.11"),
    ("jax.numpy.clip", "a_min"): ("min", "0.10.0"),
    ("jax.numpy.clip", "a_max"): ("max", "0.10.0"),
    ("jax.numpy.reshape", "newshape"): ("shape", "0.4.36"),
    ("jax.nn.softmax", "initial"): ("", "0.4.36"),
    ("jax.nn.log_softmax", "initial"): ("", "0.4.36"),
    ("jax.ShapeDtypeStruct", "named_shape"): ("", "0.4.34"),
    ("jax.ShapeDtypeStruct", "vma"): ("manual_axis_type", "0.10.0"),
    ("Array.clip", "a_min"): ("min", "0.10.0"),
    ("Array.clip", "a_max"): ("max", "0.10.0"),
    ("jax.numpy.percentile", "interpolation"): ("method", "0.8.0"),
    ("jax.numpy.quantile", "interpolation"): ("method", "0.8.0"),
    ("jax.checkpoint", "concrete"): ("static_argnums", "0.11.0"),
    ("jax.export.export", "lowering_platforms"): ("platforms", "0.4.36"),
    ("jax.export.symbolic_args_specs", "symbolic_scope"): ("scope", "0.4.36"),
    ("jax.export.symbolic_args_specs", "symbolic_constraints"): ("constraints", "0.4.36"),
    ("jax.experimental.shard_map.shard_map", "auto"): (
        "axis_names of jax.shard_map, the axes that are manual",
        "0.8.0",
    ),
    ("jax.shard_map", "check_rep"): ("check_vma", NEVER),
    ("jax.shard_map", "auto"): ("axis_names, the axes that are manual", NEVER),
    ("jax.scipy.linalg.solve", "sym_pos"): ("assume_a='pos'", "0.4.21"),
    ("jax.distributed.initialize", "communication"): (
        "nothing: JAX chooses how processes communicate",
        NEVER,
    ),
}

# Name -> the release under which the changelog lists the removal, if that is not the release that removed
# the name; mostly the release that deprecated it. None: the changelog does not list it.
CHANGELOG: dict[str, str | None] = {
    "jax.tree_util.build_tree": "0.6.0",
    "jax.ad_checkpoint.checkpoint": None,
    "jax.ad_checkpoint.remat": None,
    "jax.experimental.compute_on.compute_on2": None,
    "jax.experimental.control_deps": None,
    "jax.experimental.disable_x64": "0.8.0",
    "jax.experimental.enable_x64": "0.8.0",
    "jax.experimental.gda_serialization": "0.4.9",
    "jax.experimental.global_device_array": None,
    "jax.experimental.maps": "0.4.26",
    "jax.experimental.mutable_array": None,
    **{f"{_PALLAS}{name}": None for name in ("dot", "debug_checks_enabled", "tpu.HOST", "tpu.semaphore")},
    **{f"{_PALLAS}tpu.semaphore_{name}": None for name in ("read", "signal", "wait")},
    "jax.experimental.pjit.with_sharding_constraint": "0.4.16",
    "jax.experimental.shard_alike": None,
    "jax.sharding.PositionalSharding": None,
    "jax.numpy.fix": "0.9.0",
    "jax.scipy.special.sph_harm": "0.7.0",
    "jax.lax.pvary": "0.8.2",
    "jax.lax.zeros_like_array": "0.7.1",
    "jax.dlpack.to_dlpack": "0.6.0",
    "jax.core.get_aval": "0.8.2",
    **{f"jax.core.{name}": "0.8.2" for name in _MOVED_IN_0_10},
    "jax.lib.xla_bridge": "0.8.0",
    "jax.lib.xla_client": "0.8.0",
    "jax.lib.xla_extension": "0.8.0",
    "Array.to_py": "0.3.17",
    "jax.numpy.reshape(newshape=)": "0.4.28",
    "jax.checkpoint(concrete=)": None,
}

WITH_MESH = Removed("with mesh:", "with jax.set_mesh(mesh):", "0.10.1", "0.10.1", deprecated=True)

_ERRORS = {"AttributeError", "ImportError", "ModuleNotFoundError", "TypeError"}
_OF_MODULE = re.compile(r"module '(jax[\w.]*)' has no attribute '(\w+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from '(jax[\w.]*)'")
_MODULE = re.compile(r"No module named '(jax\.[\w.]+)'")
_TOMBSTONE = re.compile(r"^(jax|pl|pltpu)\.([\w.]+) (?:is|was) (?:deprecated|removed)")
_SHORT = {"jax": "jax.", "pl": _PALLAS, "pltpu": f"{_PALLAS}tpu."}
_OF_OBJECT = re.compile(
    r"(?:'[\w.]*?(ArrayImpl|PRNGKeyArray|Compiled)' object|(\w*Tracer)) has no attribute '?(\w+)'?"
)
_BUFFER = re.compile(r"^arr\.(\w+) has been deprecated")
_CALLED = re.compile(r"'[\w.]*\bDevice' object is not callable")
_ARGUMENT = re.compile(r"^(?:(\w+)\.__init__|(\w+))\(\) got an unexpected keyword argument '(\w+)'")
_NO_ARRAY = re.compile(r"interpreting argument to <function (\w+) at \w+>.* at path kwargs\['(\w+)'\]")
_NEEDS_MESH = re.compile(r"\bjax\.set_mesh\b")


def find(
    error: str, message: str, lines: Sequence[Line] = (), *, library: bool = False, jax: str | None = None
) -> Removed | None:
    """Return the removed or deprecated name of JAX that caused an exception, with its replacement. Return
    None if the exception has another cause, or if JAX removed the name only after the version ``jax``.

    An error about an unknown argument counts only if the user's line calls a function of JAX with the name in
    the error.

    Args:
      error: the name of the exception's class.
      message: the text of the exception.
      lines: the user's lines in the traceback, innermost first.
      library: True if a line of an installed package made the failing call, False if the first of ``lines``
        did.
      jax: the version of JAX that raised the exception; None: unknown.
    """
    if error in ("ValueError", "RuntimeError") and _NEEDS_MESH.search(message):
        return WITH_MESH if any(line_names.in_mesh_block(*line) for line in lines) else None
    if error not in _ERRORS:
        return None
    line = lines[0] if lines and not library else Line(None, 0)
    if given := _ARGUMENT.search(message):
        found = _argument(given[1] or given[2], given[3], line)
    elif given := _NO_ARRAY.search(message):
        found = _argument(given[1], given[2], line)
    elif _CALLED.search(message):
        known = "jaxlib" in message or line_names.calls_method(*line, "device")
        found = _name("Array.device()") if known else None
    else:
        found = _name(_named(message))
    return found if found is None or _is_past(found.version, jax) else None


def release(version: str) -> tuple[int, ...]:
    """Return the first three numbers of a version of JAX: ``0.10.2`` -> ``(0, 10, 2)``."""
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _is_past(version: str, jax: str | None) -> bool:
    """Return whether the version ``jax`` of JAX no longer has a name that the release ``version`` removed.
    True also if ``jax`` is None (unknown), or if no release had the name (NEVER)."""
    return jax is None or version == NEVER or release(version) <= release(jax)


def _named(message: str) -> str:
    """Return the full name that is missing from JAX according to an error message: ``jax.tree_map``. Return
    an empty string if the message names none."""
    if found := _OF_MODULE.search(message):
        return f"{found[1]}.{found[2]}"
    if found := _IMPORT.search(message):
        return f"{found[2]}.{found[1]}"
    if found := _MODULE.search(message):
        return found[1]
    if found := _TOMBSTONE.search(message):
        return f"{_SHORT[found[1]]}{found[2]}"
    if found := _OF_OBJECT.search(message):
        return f"{'Array' if found[1] in (None, 'ArrayImpl') else found[1]}.{found[3]}"
    if found := _BUFFER.search(message):
        return f"Array.{found[1]}"
    return ""


def _name(name: str) -> Removed | None:
    """Return the entry of ``NAMES`` for ``name``, or for a removed module that contains it:
    ``jax.lib.xla_client`` for ``jax.lib.xla_client.Shape``. Return None if neither was removed."""
    while name:
        if name in NAMES:
            return _removed(name, *NAMES[name])
        name = name.rpartition(".")[0] if name.startswith("jax.") else ""
    return None


def _argument(function: str, argument: str, line: Line) -> Removed | None:
    """Return the entry of a removed argument of a function of JAX that ``line`` calls. Return None if no such
    argument is known.

    Args:
      function: the function's name in the error, without its module: ``clip``; ``_clip`` for the method
        ``Array.clip``.
      argument: the name of the argument: ``a_min``.
      line: the line of the user's code that raised the error.
    """
    if function.startswith("_"):
        name = f"Array.{function[1:]}"
        called = [name] if line_names.calls_method(*line, function[1:]) else []
    else:
        called = line_names.called_with(*line, argument)
    known = {
        name: entry
        for (name, known), entry in ARGUMENTS.items()
        if known == argument and name.rpartition(".")[2] == function.lstrip("_")
    }
    exact = [name for name in called if name in known]
    alike = [name for name in called if name.rpartition(".")[2] == function and known]
    found = next(iter(exact), None) or (next(iter(known)) if alike else None)
    return None if found is None else _removed(f"{found}({argument}=)", *known[found])


def _removed(name: str, instead: str, version: str) -> Removed:
    """Return an entry of ``NAMES`` or ``ARGUMENTS`` as a ``Removed``."""
    return Removed(name, instead, version, CHANGELOG.get(name, None if version == NEVER else version))
