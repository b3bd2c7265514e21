"""EVERY private name of JAX, each as a named behaviour with its evidence.

A seam that is missing on this JAX costs the fields it gives, never the recording: ``table`` says
which are there and why not, ``jaxscope doctor`` prints it, and the log carries it as Degraded.

Evidence: read in the sources of JAX 0.10.2 and 0.12.0.1 and checked by tests on both. The shape of
a miss, innermost frame first, is::

    jit:   _trace_for_jit < _infer_params < cache_miss < api_boundary < caller
           _pjit_call_impl_python < _run_python_pjit < cache_miss < ...
           _cached_lowering_to_hlo < lower_sharding_computation < _pjit_lower < _resolve_and_lower < ...
           _cached_compilation < from_hlo < MeshComputation.compile < _pjit_call_impl_python < ...
    under grad, vmap:   _pjit_call_impl_python < call_impl_cache_miss < _pjit_call_impl < ...
    ahead of time:      _trace_for_jit < _infer_params < jit_trace;  _pjit_lower < ... < Traced.lower;
                        _cached_compilation < from_hlo < ... < Lowered.compile
"""

from jaxscope.capture.seams.arrays import array_class as array_class
from jaxscope.capture.seams.arrays import buffers as buffers
from jaxscope.capture.seams.arrays import clients as clients
from jaxscope.capture.seams.arrays import committed as committed
from jaxscope.capture.seams.arrays import held_array as held_array
from jaxscope.capture.seams.arrays import is_on as is_on
from jaxscope.capture.seams.arrays import made_at as made_at
from jaxscope.capture.seams.arrays import makeup as makeup
from jaxscope.capture.seams.arrays import stands_for as stands_for
from jaxscope.capture.seams.arrays import wrapped_function as wrapped_function
from jaxscope.capture.seams.hooks import NEARLY_FULL as NEARLY_FULL
from jaxscope.capture.seams.hooks import Gauge as Gauge
from jaxscope.capture.seams.hooks import cache_gauge as cache_gauge
from jaxscope.capture.seams.hooks import has_test_slot as has_test_slot
from jaxscope.capture.seams.hooks import is_eager as is_eager
from jaxscope.capture.seams.hooks import is_listening as is_listening
from jaxscope.capture.seams.hooks import on_fast_path as on_fast_path
from jaxscope.capture.seams.hooks import set_test_listener as set_test_listener
from jaxscope.capture.seams.hooks import test_listener as test_listener
from jaxscope.capture.seams.names import ADDRESS as ADDRESS
from jaxscope.capture.seams.names import AOT_FRAME as AOT_FRAME
from jaxscope.capture.seams.names import ARGUMENT as ARGUMENT
from jaxscope.capture.seams.names import CALL_FRAMES as CALL_FRAMES
from jaxscope.capture.seams.names import CALLBACK as CALLBACK
from jaxscope.capture.seams.names import CALLBACK_FRAMES as CALLBACK_FRAMES
from jaxscope.capture.seams.names import COMPILE_FRAME as COMPILE_FRAME
from jaxscope.capture.seams.names import CONSTANT as CONSTANT
from jaxscope.capture.seams.names import COPY_FRAME as COPY_FRAME
from jaxscope.capture.seams.names import COPY_METHODS as COPY_METHODS
from jaxscope.capture.seams.names import ENTRANCES as ENTRANCES
from jaxscope.capture.seams.names import EVENT_COPIED as EVENT_COPIED
from jaxscope.capture.seams.names import EVENT_LOWER as EVENT_LOWER
from jaxscope.capture.seams.names import EVENT_MISS as EVENT_MISS
from jaxscope.capture.seams.names import EVENT_PUT as EVENT_PUT
from jaxscope.capture.seams.names import EVENT_PUT_DONE as EVENT_PUT_DONE
from jaxscope.capture.seams.names import EVENT_TRACE as EVENT_TRACE
from jaxscope.capture.seams.names import EXECUTABLE_FRAME as EXECUTABLE_FRAME
from jaxscope.capture.seams.names import IMPL_FRAME as IMPL_FRAME
from jaxscope.capture.seams.names import ITEM as ITEM
from jaxscope.capture.seams.names import LOWER_FRAME as LOWER_FRAME
from jaxscope.capture.seams.names import LOWERER_FRAME as LOWERER_FRAME
from jaxscope.capture.seams.names import PUT_EVENTS as PUT_EVENTS
from jaxscope.capture.seams.names import PUT_FRAME as PUT_FRAME
from jaxscope.capture.seams.names import RESOLVE_FRAME as RESOLVE_FRAME
from jaxscope.capture.seams.names import TRACE_FRAME as TRACE_FRAME
from jaxscope.capture.seams.names import TRACE_GUARD as TRACE_GUARD
from jaxscope.capture.seams.names import TRACER_FRAMES as TRACER_FRAMES
from jaxscope.capture.seams.names import TRANSFER_FRAMES as TRANSFER_FRAMES
from jaxscope.capture.seams.names import TRANSFORM_FRAME as TRANSFORM_FRAME
from jaxscope.capture.seams.names import VALUE_FRAME as VALUE_FRAME
from jaxscope.capture.seams.names import jax_module as jax_module
from jaxscope.capture.seams.path import context_settings as context_settings
from jaxscope.capture.seams.path import held_by_trace as held_by_trace
from jaxscope.capture.seams.path import in_jax as in_jax
from jaxscope.capture.seams.path import inside_trace as inside_trace
from jaxscope.capture.seams.path import stack_of_call as stack_of_call
from jaxscope.capture.seams.path import up as up
from jaxscope.capture.seams.programs import asked_shardings as asked_shardings
from jaxscope.capture.seams.programs import const_arrays as const_arrays
from jaxscope.capture.seams.programs import debug_info as debug_info
from jaxscope.capture.seams.programs import equation_count as equation_count
from jaxscope.capture.seams.programs import executable_in_shardings as executable_in_shardings
from jaxscope.capture.seams.programs import function_source as function_source
from jaxscope.capture.seams.programs import is_trace_of as is_trace_of
from jaxscope.capture.seams.programs import out_paths as out_paths
from jaxscope.capture.seams.programs import recovered_out_shardings as recovered_out_shardings
from jaxscope.capture.seams.retargets import CALLBACKS as CALLBACKS
from jaxscope.capture.seams.retargets import Retargeting as Retargeting
from jaxscope.capture.seams.retargets import callbacks_in as callbacks_in
from jaxscope.capture.seams.retargets import hide_frames as hide_frames
from jaxscope.capture.seams.retargets import lowered_again as lowered_again
from jaxscope.capture.seams.retargets import lowering_of as lowering_of
from jaxscope.capture.seams.retargets import retargeting as retargeting
from jaxscope.capture.seams.table import SEAMS as SEAMS
from jaxscope.capture.seams.table import TESTED as TESTED
from jaxscope.capture.seams.table import Seam as Seam
from jaxscope.capture.seams.table import Status as Status
from jaxscope.capture.seams.table import table as table
from jaxscope.capture.seams.table import untested as untested
