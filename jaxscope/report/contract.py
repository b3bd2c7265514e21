"""The types of the JSON report, schema 1. ``jaxscope report --schema`` prints their JSON Schema.

Keys are added, never renamed or removed. Units are part of the names: ``_seconds`` is wall time, ``_bytes``
without ``global_`` is on one device. What is unknown is null, never 0 and never an empty list.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from jaxscope.present import causes as in_words
from jaxscope.present.findings import evidence, fix_text, stable_id, title
from jaxscope.schema import causes, findings
from jaxscope.schema.causes import Value
from jaxscope.schema.events import Died
from jaxscope.schema.findings import Contexts, fix_of
from jaxscope.schema.keys import Frame

T = TypeVar("T", bound="Entry")


class Entry(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The base class of all entries of the report."""

    @classmethod
    def copy_of(cls: type[T], source: object, /, **more: object) -> T:
        """Return an entry whose fields have the values of the equally named attributes of ``source``.

        Args:
          more: values of the other fields.
        """
        names, read = _copied(cls, tuple(more))
        more.update(zip(names, read(source), strict=True))
        return cls(**more)


@functools.cache
def _copied(
    kind: type[Entry], given: tuple[str, ...]
) -> tuple[list[str], Callable[[object], tuple[Any, ...]]]:
    """Return the names of the fields of ``kind`` without those in ``given``, and a function that reads their
    values.

    The function takes an object and returns the values of its attributes with these names.
    """
    names = [name for name in kind.__struct_fields__ if name not in given]
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda source: tuple(getattr(source, name) for name in names)


# -- the run -------------------------------------------------------------------------------------------------


class Stop(Entry):
    """A process whose recording stopped before the process ended.

    Attributes:
      time_seconds: when it stopped, in seconds since the start of the run.
      reason: why it stopped.
    """

    pid: int
    time_seconds: float | None
    reason: str


class RemovedName(Entry):
    """A name or argument that JAX does not have any more.

    Attributes:
      instead: what to write instead; empty if nothing replaces it.
      version: the release of JAX that removed it; "never": JAX never had it.
      changelog: the release under which JAX's changelog names the removal; None: it is not in the
        changelog.
      deprecated: JAX still has it, but it does less than its replacement; ``version`` is then the release
        that deprecated it.
    """

    name: str
    instead: str
    version: str | None
    changelog: str | None
    deprecated: bool


class Death(Entry):
    """The exception that ended the program.

    Attributes:
      error: the name of its class.
      stack: the user's lines, the innermost first.
      library: the package, other than JAX, whose line made the call that failed; null: the user's line made
        it, or this is unknown.
      removed_name: the name that caused the exception, if JAX does not have that name any more.
    """

    error: str
    message: str
    stack: list[Frame]
    library: str | None
    removed_name: RemovedName | None

    @classmethod
    def of(cls, died: Died, removed: object | None) -> Death:
        """Make the entry.

        Args:
          died: the recorded exception.
          removed: the name that JAX does not have any more, if it caused the exception; else None.
        """
        return cls.copy_of(died, removed_name=None if removed is None else RemovedName.copy_of(removed))


class Device(Entry):
    """One device of JAX's default backend.

    Attributes:
      id: in JAX's numbering.
      kind: the model: ``cpu``, ``TPU v5 lite``.
      process_index: JAX's index of the process that the device belongs to.
    """

    id: int
    kind: str
    process_index: int


class Target(Entry):
    """A machine for which the programs were compiled (``run --target``).

    Attributes:
      name: ``2*v5e:4x4``.
      platform: ``tpu`` or ``cuda``.
      devices: number of devices in all slices.
      slices: number of slices (groups of TPU chips that a data-center network connects); 1 for GPUs.
    """

    name: str
    platform: str
    devices: int
    slices: int


class Missing(Entry):
    """A part of the recording that is not available.

    Attributes:
      seam: the name of the part.
      reason: why it is not available.
    """

    seam: str
    reason: str


class Phase(Entry):
    """A phase that began and whose end is not recorded, because it still runs or the program ended in it.

    Attributes:
      compilation, function: ids.
      phase: trace, lower or compile.
      time_seconds: when it began, in seconds since the start of the run.
    """

    compilation: str
    function: str
    phase: str
    time_seconds: float | None


class WallTime(Entry):
    """The seconds of a run, divided by what its main process did. The parts do not overlap, and add up to
    ``seconds``.

    Attributes:
      seconds: wall time of the program.
      before_compiling: until the first trace, lowering or compilation began: imports and set-up.
      compiling: while something was traced, lowered or compiled.
      waiting: while the program waited for values from the devices, after ``before_compiling``; null:
        unknown, and part of ``rest``.
      rest: the other seconds.
    """

    seconds: float
    before_compiling: float
    compiling: float
    waiting: float | None
    rest: float


class RunFacts(Entry):
    """The program as a whole.

    Attributes:
      name: the name of the run.
      argv: the program and its arguments.
      settings: the settings of ``--vary`` with which it ran.
      started: when it began: ISO 8601, UTC.
      seconds: wall time.
      complete: whether all processes were recorded to their end.
      recording_stopped: processes whose recording stopped early.
      died: the exception that ended the program.
      state: ``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost`` (no end in
        the log).
      processes: number of recorded processes.
      compiling_seconds: the part of ``seconds`` in which the main process traced, lowered or compiled.
      wall_time: all parts of ``seconds``; null: nothing was compiled, or the parts are unknown.
      targets: machines for which the programs were also compiled.
      degraded: parts of the recording that are not available.
      in_progress: phases whose end is not recorded.
    """

    name: str | None
    argv: list[str] | None
    settings: dict[str, str]
    started: str | None
    seconds: float | None
    exit_code: int | None
    signal: int | None
    complete: bool
    recording_stopped: list[Stop]
    died: Death | None
    state: str | None
    jax: str | None
    jaxlib: str | None
    python: str | None
    platform: str | None
    devices: list[Device]
    processes: int
    compiling_seconds: float | None
    wall_time: WallTime | None
    targets: list[Target]
    degraded: list[Missing]
    in_progress: list[Phase]


# -- functions and compilations ------------------------------------------------------------------------------


class Function(Entry):
    """A function that JAX traced.

    Attributes:
      id: qualified name, file and first line, then the wrappers around the function.
      form: def, lambda, partial, method, callable or primitive.
      wrappers: names of the layers around the function, outermost first.
      captures: the functions, classes and callable objects that it captures, as ``loss=l2``. Functions that
        capture different ones have different ids, even if they have the same name, file and line.
      library: whether the function is not the user's.
      eager: whether it is an operation outside jit.
      watched: whether its calls are counted.
      calls: number of calls; null: not counted.
      traces, lowerings, compilations: how often each phase ran; compilations include persistent-cache hits.
      fast_path_misses: calls that missed JAX's fast path, and traced or compiled nothing.
    """

    id: str
    name: str
    qualname: str
    module: str | None
    file: str | None
    line: int | None
    form: str
    wrappers: list[str]
    captures: list[str]
    library: bool
    eager: bool
    watched: bool
    calls: int | None
    traces: int
    lowerings: int
    compilations: int
    fast_path_misses: int
    persistent_cache_hits: int
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float


class PhaseSeconds(Entry):
    """Wall time of each phase of a call; null: the phase did not run, or its length is unknown."""

    trace: float | None
    lower: float | None
    compile: float | None


class Argument(Entry):
    """One array argument of a cache key.

    Attributes:
      path: the path in the call: ``batch['image']``.
      type: the class: ``jax.Array``, ``numpy.ndarray``, ``float``.
      weak_type: whether an operation uses the dtype of the other operand instead of this dtype.
      committed: whether the array is committed to its devices; null: it is not a jax.Array.
      memory_kind: ``device``, ``pinned_host``, ...
      layout: the order of the dimensions in memory, major to minor.
      origin: the user's line that created the array.
    """

    path: str
    type: str
    shape: list[int | str | None] | None
    dtype: str | None
    weak_type: bool | None
    sharding: str | None
    committed: bool | None
    memory_kind: str | None
    layout: str | None
    origin: Frame | None


class Static(Entry):
    """One static value of a cache key.

    Attributes:
      path: the path in the call.
      repr: the value as text.
      type: its class.
      compares: how JAX compares it: ``value`` (its own equality), ``identity`` (it has none) or ``parts`` (it
        contains an object that is compared by identity).
    """

    path: str
    repr: str
    type: str
    compares: str | None


class CacheKey(Entry):
    """The values that JAX compares to decide whether it can reuse a trace or a program.

    Attributes:
      arguments: the array arguments.
      static: the values that are compared by their own equality.
      tree: the tree definition of the arguments, as text.
      nodes: path -> type of each container in the arguments.
      call_form: ``2 positional, keywords: mask``.
      options: options of jit: name -> value.
      context: JAX's settings: name -> value; null: unknown.
      function_object: a number that is different for each function object of the process.
      missing: parts of the key that were not recorded.
    """

    arguments: list[Argument]
    static: list[Static]
    tree: str | None
    nodes: dict[str, str]
    call_form: str | None
    options: dict[str, str]
    context: dict[str, str] | None
    function_object: int | None
    missing: list[str]


class Cause(Entry):
    """Why a call was not served from a cache.

    Attributes:
      kind: ``shape``, ``static_value``, ``new_function``, ...
      level: the first cache that missed: trace, lower, compile or fast_path.
      path: the argument, or the name of the setting; null: the cause has no single path.
      before, after: the two values as text.
      certainty: certain or likely.
      text: the cause as a clause of a sentence.
      count: number of arrays with this cause; ``path`` is then the common path.
      before_value, after_value: the two values as data.
    """

    kind: str
    level: str
    path: str | None
    before: str | None
    after: str | None
    certainty: str
    text: str
    count: int
    before_value: Value | None
    after_value: Value | None

    @classmethod
    @functools.lru_cache(1024)
    def of(cls, c: causes.Cause) -> Cause:
        """Return the entry for ``c``, with its text. Callers must not change the result, because equal causes
        share it.
        """
        before, after = in_words.values(c)
        return cls.copy_of(
            c, before=before, after=after, text=in_words.clause(c), before_value=c.before, after_value=c.after
        )


class Intent(Entry):
    """The shardings of one argument or result: the requested one, the compiled one, and that of the passed
    array.

    Attributes:
      path: the path of the argument, or of the result in the returned value.
      of: argument or result.
      asked: the requested sharding; null: no request, or unknown.
      asked_by: what requests it: in_shardings, out_shardings, constraint (with_sharding_constraint) or type.
      asked_at: the line of a constraint.
      compiled: the sharding in the compiled program.
      actual: the sharding of the array that the caller passed; null for a result.
      agrees: whether all of them are equal; null: unknown.
      difference: the kind of the difference.
      reason: why they differ.
      times: how many times as much memory the array needs because of the difference.
    """

    path: str | None
    of: str
    asked: str | None
    asked_by: str | None
    asked_at: Frame | None
    compiled: str | None
    actual: str | None
    agrees: bool | None
    difference: str | None
    reason: str | None
    times: float | None


class Compilation(Entry):
    """A call that missed a cache. It was traced, lowered or compiled, or it only missed JAX's fast path.

    Attributes:
      id: ``<process>.<number of the call>``.
      function: id of the function.
      ordinal: its number among the compilations of the function, as in ``train_step#2``.
      time_seconds: when the call was recorded, in seconds since the start of the run.
      entry: call, aot (``.trace``, ``.lower``, ``.eval_shape``), transform (under grad, vmap, ...) or nested
        (inside another trace).
      inside: id of the call during whose trace this call was made.
      reached: which of traced, lowered, compiled it completed; fast_path: it only missed the fast path.
      in_progress: the phase whose end is not recorded.
      failed: the phase that raised an exception.
      persistent_cache: hit, miss or off.
      call_site: the user's line that made the call.
      stack: the user's lines above ``call_site``, innermost first.
      seconds: wall time of each phase.
      key: the cache key; null: unknown.
      compared_with: id of the earlier compilation whose cache key differs least.
      causes: why JAX could not reuse a trace or a program, the decisive cause first.
      shardings: the shardings of its arguments and results; null: they cannot differ.
      program: id of the compiled program.
    """

    id: str
    function: str
    ordinal: int | None
    process_index: int | None
    pid: int
    step: int | None
    time_seconds: float | None
    entry: str
    inside: str | None
    reached: list[str]
    in_progress: str | None
    failed: str | None
    persistent_cache: str | None
    persistent_cache_reason: str | None
    call_site: Frame | None
    stack: list[Frame]
    seconds: PhaseSeconds
    key: CacheKey | None
    compared_with: str | None
    causes: list[Cause]
    shardings: list[Intent] | None
    program: str | None


class Prediction(Entry):
    """A recompile to be expected, because a result of a function does not have the form of the argument that
    it becomes.

    Attributes:
      function: id of the function.
      after_compilation: id of the compilation that returns the result.
      argument, result: their paths.
      causes: why the next call would miss a cache.
      text: the prediction as a sentence.
      status: pending; confirmed (by a later miss); withdrawn (by a later call without a miss); null: the run
        ended before.
      confirmed_by: id of the compilation that confirmed it.
    """

    function: str
    after_compilation: str
    step: int | None
    argument: str
    result: str
    causes: list[Cause]
    text: str
    status: str | None
    confirmed_by: str | None


class Total(Entry):
    """What one cause of compilations cost at one line.

    Attributes:
      cause: the kind of the cause: ``shape``, ``first``, ...
      path: the argument or setting, if the cause has one.
      function: id of the function; null: operations outside jit and library functions.
      source: the user's line that made the calls; null: unknown.
      count: number of calls that missed a cache.
      seconds: seconds of these calls in all phases.
    """

    cause: str
    path: str | None
    function: str | None
    source: Frame | None
    count: int
    seconds: float
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float


class PayingLine(Entry):
    """A line of the user's code, and the compilations that it caused outside jit or inside libraries.

    Attributes:
      library: the package that the line calls most often; None: unknown, or the line calls only JAX.
      recompiles: number of compilations of an operation or a function that the same line had compiled
        before.
    """

    source: Frame
    library: str | None
    compilations: int
    recompiles: int
    seconds: float


class StaleCapture(Entry):
    """A value that a traced function uses without taking it as an argument, and that changed after the trace.

    Attributes:
      function: id of the function.
      name: the value's name in the code: ``scale``, ``config['lr']``, ``self.width``.
      where: closure, global or static (part of a static argument).
      how: rebound, or in place (the contents of a NumPy array).
      before, after: the values, shortened.
      read: the line that reads the value.
      after_compilation: id of the compilation that traced the function.
      seen: when the change was noticed: call, step or exit.
      seen_at: the user's line at which it was noticed.
      status: stale; ended (by a new trace, after a call that used the old value); withdrawn (by a new trace,
        before such a call).
      ended_by: id of the compilation with the new trace.
    """

    function: str
    name: str
    where: str
    how: str
    before: str | None
    after: str | None
    read: Frame | None
    after_compilation: str
    seen: str
    seen_at: Frame | None
    step: int | None
    status: str | None
    ended_by: str | None


class Padding(Entry):
    """A set of sizes to which inputs can be padded.

    Attributes:
      sizes: the sizes, ascending.
      compilations: number of compilations that remain.
      padding_share: the share of all elements that is padding.
    """

    sizes: list[int]
    compilations: int
    padding_share: float


class Bucket(Entry):
    """An axis of an argument that had several sizes, and sizes to which it can be padded.

    Attributes:
      function: id of the function.
      path: the argument.
      axis: the axis, from 0.
      observed: [size, number of calls] of each size; if calls were not counted, number of compilations.
      calls: number of calls; null: not counted.
      choices: sets of sizes to pad to.
    """

    function: str
    path: str
    axis: int
    observed: list[tuple[int, int]]
    calls: int | None
    choices: list[Padding]


# -- programs ------------------------------------------------------------------------------------------------


class Problem(Entry):
    """A line of a program's text that could not be parsed.

    Attributes:
      stage: hlo or stablehlo.
      line: the number of the line.
      text: the line, shortened, and what is wrong with it.
    """

    stage: str
    line: int
    text: str


class Fusion(Entry):
    """One fusion of the compiled program.

    Attributes:
      kind: XLA's kind of fusion: ``loop``, ``input``, ``output``, ``custom``.
      ops: opcode -> number of instructions in the fusion.
      bytes_in, bytes_out: bytes of its operands and of its result in one execution.
      executions: how often it runs in one call of the program; null: unknown.
      sources: the user's lines of its instructions, the most frequent first.
    """

    name: str
    kind: str
    ops: dict[str, int]
    bytes_in: int | None
    bytes_out: int | None
    executions: int | None
    sources: list[Frame]


class Fusions(Entry):
    """The fusions of a program.

    Attributes:
      total: number of fusions that are not inside another fusion.
      by_kind: kind -> number of these fusions.
      nested: number of fusions inside another fusion.
      each: (``list`` in JSON) the fusions that are not inside another.
    """

    total: int
    by_kind: dict[str, int]
    nested: int
    each: list[Fusion] = msgspec.field(name="list")


class Collective(Entry):
    """One collective of a compiled program.

    Attributes:
      kind: ``all-reduce``, ``all-gather``, ...
      is_async: (``async`` in JSON) whether it is split into a start and a done.
      overlap: whether anything computes between start and done; null: unknown.
      bytes: bytes of the result on one device (of a reduce-scatter, the part that stays on the device).
      operand_bytes: bytes of the operands on one device.
      wire_bytes: bytes that a device sends in one execution.
      executions: how often it runs in one call; null: unknown. In a branch of a conditional, an upper bound.
      executions_at_least: a lower bound.
      conditional: the conditional that has it in a branch; null: none.
      axes: the mesh axes over which it communicates; null: unknown, or its groups are not mesh axes.
      group_size, groups: number of devices in a group, and number of groups.
      origin: asked (written in the program), inserted (by the partitioner) or null (unknown).
      weight: the parameter that an all-gather gathers, as with fully sharded parameters.
      constraint: the sharding constraint of the user that makes the communication necessary.
      constrained_at: the line of that constraint.
      source_certainty: certain: the compiler kept the line; likely: it is the line of a neighbouring
        instruction.
      axes_around: if the groups are not mesh axes, the axes that contain them.
      transfer: for a send or recv between slices, the collective of which it is a part.
    """

    kind: str
    name: str
    is_async: bool = msgspec.field(name="async")
    overlap: bool | None
    bytes: int | None
    operand_bytes: int | None
    wire_bytes: int | None
    executions: int | None
    executions_at_least: int | None
    conditional: str | None
    axes: list[str] | None
    group_size: int | None
    groups: int | None
    origin: str | None
    weight: str | None
    constraint: str | None
    constrained_at: Frame | None
    source: Frame | None
    source_certainty: str | None
    axes_around: list[str] | None
    transfer: str | None


class Loop(Entry):
    """A loop of the compiled program.

    Attributes:
      trip_count: the number of iterations; null: unknown.
    """

    name: str
    trip_count: int | None


class Upcast(Entry):
    """Conversions of one line from a dtype to a wider one.

    Attributes:
      before, after: the dtypes.
      count: number of conversions in the program; those in the body of a loop count once.
      bytes: bytes of all their results.
    """

    before: str
    after: str
    count: int
    bytes: int | None
    source: Frame | None


class Callback(Entry):
    """Calls from the program into Python.

    Attributes:
      kind: JAX's name of the primitive, or infeed or outfeed.
      count: number of such calls in the program; those in the body of a loop count once.
      ordered: whether they keep their order; null: unknown.
      in_loop: whether they run in every iteration of a loop.
      bytes_to_host, bytes_from_host: bytes of one call.
    """

    kind: str | None
    count: int
    ordered: bool | None
    in_loop: bool
    bytes_to_host: int | None
    bytes_from_host: int | None
    source: Frame | None


class RepeatedBlock(Entry):
    """The same operations, written several times, as in an unrolled loop.

    Attributes:
      length: number of operations.
      times: how often they are written.
      carried: whether each repetition uses a result of the one before.
      in_loop: whether they are inside a loop.
    """

    length: int
    times: int
    carried: bool
    in_loop: bool
    source: Frame | None


class Donation(Entry):
    """Whether the memory of an argument is reused for a result.

    Attributes:
      path: the argument.
      bytes, device_bytes: bytes of the whole array, and of its part on one device.
      status: aliased (reused), unused (donated without effect) or possible (not donated, though a result
        would fit); null: donated, with unknown effect.
      reason: why it is not reused, or what reuse needs.
      output: the result that uses the memory or could use it.
    """

    path: str | None
    bytes: int | None
    device_bytes: int | None
    status: str | None
    reason: str | None
    output: str | None


class Constant(Entry):
    """An array that the function captured.

    Attributes:
      name: the variable; null: unknown.
      bytes: bytes of the whole array.
      source: the line of its first use.
    """

    name: str | None
    bytes: int | None
    shape: list[int | None] | None
    dtype: str | None
    source: Frame | None


class Rematerialization(Entry):
    """An array that XLA's partitioner copies to all devices as a whole, to change its sharding.

    XLA warns of this as involuntary full rematerialization.

    Attributes:
      name: the instruction.
      before, after: (``from`` and ``to`` in JSON) the two shardings.
      bytes: bytes of the whole array, which every device then has.
      source: the user's line.
      text: the warning, shortened.
    """

    name: str | None
    before: str | None = msgspec.field(name="from")
    after: str | None = msgspec.field(name="to")
    bytes: int | None
    source: Frame | None
    text: str


class Contributor(Entry):
    """An argument or a result, and its share of the memory.

    Attributes:
      path: the user's name of it.
      of: argument or output.
      bytes, global_bytes: bytes on one device, and of the whole array.
    """

    path: str | None
    of: str
    bytes: int | None
    global_bytes: int | None


class Buffer(Entry):
    """One of the largest buffers that a target's compiler lists, or, if it lists none, one of the largest
    values.

    Attributes:
      bytes: bytes on one device; for ``value on all devices``, on all devices together.
      kind: the compiler's kind of buffer; ``value`` or ``value on all devices``: a value of the lowered
        program.
      shape: as HLO writes it: ``f32[8,128]{1,0}``.
      operation: the operation that writes it.
      source: the line, as ``file`` and ``line``.
    """

    bytes: int | None
    kind: str | None
    shape: str | None
    operation: str | None
    source: dict[str, Any] | None


class Memory(Entry):
    """Memory of one program on one device.

    Attributes:
      argument_bytes, output_bytes, temp_bytes: arguments, results and temporaries.
      alias_bytes: the part of the arguments whose memory the results reuse.
      code_bytes: the program itself.
      capacity_bytes: memory of the device.
      by_path: arguments and results by the user's names, largest first.
      fits: whether the program fits into a target; null: it was not compiled for a target, or unknown. The
        same is true of the following keys.
      used_bytes: bytes that the program needs.
      parts: the compiler's breakdown of ``used_bytes``: name -> bytes.
      largest: the largest buffers.
    """

    argument_bytes: int | None = None
    output_bytes: int | None = None
    alias_bytes: int | None = None
    temp_bytes: int | None = None
    code_bytes: int | None = None
    peak_bytes: int | None = None
    capacity_bytes: int | None = None
    by_path: list[Contributor] | None = None
    fits: bool | None = None
    used_bytes: int | None = None
    parts: dict[str, int] | None = None
    largest: list[Buffer] | None = None


class Bounds(Entry):
    """Lower bounds on the time of one call on a target, computed from the target's peak rates.

    Attributes:
      compute_seconds: time of the matrix products.
      memory_seconds: time of reading and writing memory.
      axes_seconds: time of the collectives: mesh axes joined with a comma -> seconds.
      least_seconds: the largest of these bounds.
      binds: the name of the largest bound: compute, memory or mesh axes.
      quoted: the names of bounds whose rate comes from a secondary source that quotes the vendor.
    """

    compute_seconds: float | None
    memory_seconds: float | None
    axes_seconds: dict[str, float | None]
    least_seconds: float | None
    binds: str | None
    quoted: list[str]


class Texts(Entry):
    """The contents of a program's StableHLO and HLO.

    ``matrix_flops``, ``estimated_cycles`` and ``wire_bytes_by_axes`` are null if they are not exact. Keys
    with ``_at_least`` are lower bounds, with the smallest branch of each conditional and without unknown
    parts (custom kernels, loops whose number of iterations is unknown). Keys with ``_at_most`` are upper
    bounds, with the largest branch of each conditional.

    Attributes:
      num_partitions: number of devices that the program runs on.
      problems: lines that could not be parsed.
      instructions: number of HLO instructions.
      mesh: [axis, size] of each mesh axis.
      unfused_elementwise: number of elementwise instructions outside fusions.
      custom_calls: target -> number of calls.
      wire_bytes_by_axes: mesh axes joined with a comma -> bytes that one device sends in one call.
      matrix_flops: operations of matrix products and convolutions on one device in one call.
      repeated_blocks: operations that are written several times.
      op_counts: StableHLO operation -> number.
      remats: arrays that the partitioner copies to all devices.
      flops, bytes_accessed: XLA's own estimates.
      estimated_cycles: cycles of one call, estimated by a TPU's compiler.
    """

    num_partitions: int | None
    problems: list[Problem] | None
    instructions: int | None
    mesh: list[tuple[str, int]] | None
    fusions: Fusions | None
    unfused_elementwise: int | None
    custom_calls: dict[str, int] | None
    collectives: list[Collective] | None
    wire_bytes_by_axes: dict[str, int | None] | None
    wire_bytes_at_least_by_axes: dict[str, int] | None
    wire_bytes_at_most_by_axes: dict[str, int | None] | None
    loops: list[Loop] | None
    matrix_flops: float | None
    matrix_flops_at_least: float | None
    matrix_flops_at_most: float | None
    upcasts: list[Upcast] | None
    callbacks: list[Callback] | None
    repeated_blocks: list[RepeatedBlock] | None
    donation: list[Donation] | None
    constants: list[Constant] | None
    op_counts: dict[str, int] | None
    memory: Memory | None
    remats: list[Rematerialization] | None
    flops: float | None
    bytes_accessed: float | None
    bounds: Bounds | None
    estimated_cycles: int | None
    estimated_cycles_at_least: int | None


class Program(Texts):
    """One compiled program. The fields from ``state`` on are only set for a program for a target.

    Attributes:
      of: for a program for a target, id of the program of the same call that ran.
      stablehlo, hlo: the names under which the texts are stored in the run.
      target: the target; null: the program ran.
      compilations: ids of the calls that compiled it.
      state: skipped, waiting, compiling, abandoned, or the compiler's outcome (``ok``, ``exhausted``, ...).
      error: the compiler's message.
      skipped: why the program was not compiled for the target.
      compiler: the version of the compiler.
      waited_seconds: how long the user's program waited for the lowering.
      compiler_process_bytes: memory of the compiler's process.
    """

    id: str
    of: str | None
    function: str | None
    module: str | None
    stablehlo: str | None
    hlo: str | None
    target: str | None
    compilations: list[str]
    state: str | None = None
    error: str | None = None
    skipped: str | None = None
    compiler: str | None = None
    compile_seconds: float | None = None
    waited_seconds: float | None = None
    compiler_process_bytes: int | None = None


# -- arrays and transfers ------------------------------------------------------------------------------------


class OnDevice(Entry):
    """Bytes of live arrays on one device."""

    device: int
    bytes: int


class Allocator(Entry):
    """The memory of a device, as its allocator reports it."""

    device: int
    in_use_bytes: int | None
    peak_bytes: int | None
    limit_bytes: int | None


class ArrayGroup(Entry):
    """Live arrays with one name, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to them, with ``[*]`` for indices of lists; null: none was found.
      shared: how many of them use the memory of other arrays.
      global_bytes: bytes of all of them, without copies on other devices.
      device_bytes: their bytes on each device that has them.
      sharding, spec: the sharding as text, and its PartitionSpec.
      replication: number of devices that have the same part of an array.
      padding_bytes: bytes allocated for padding, on all devices.
      origin: the user's line that created them.
      asked, compiled: the sharding that was requested for them, and that of the program which returns or
        takes them.
    """

    path: str | None
    count: int
    shared: int | None
    shape: list[int] | None
    dtype: str | None
    global_bytes: int | None
    device_bytes: int | None
    sharding: str | None
    spec: str | None
    memory_kind: str | None
    replication: float | None
    padding_bytes: int | None
    committed: bool | None
    origin: Frame | None
    layout: str | None
    asked: str | None
    compiled: str | None


class ArraySum(Entry):
    """Live arrays of one variable, kind or dtype.

    Attributes:
      name: the variable (``state.params``), the kind (parameters, optimizer state, batch, other) or the
        dtype; null: unknown.
      bytes: bytes on all devices of the process; null: unknown.
    """

    name: str | None
    count: int
    bytes: int | None


class Snapshot(Entry):
    """The live arrays at one moment.

    Attributes:
      time_seconds: when the snapshot was taken, in seconds since the start of the run.
      count: number of arrays.
      parts: number of further arrays that use the memory of these arrays, and to which no variable leads.
      bytes: bytes on all devices of this process; a buffer that several arrays share counts once.
      by_device: bytes on each device.
      memory: what each device's allocator reports.
      groups: the arrays by name, shape, dtype and sharding.
      trees: the arrays by variable.
      kinds: the arrays by kind: parameters, optimizer state, batch, other.
      dtypes: the arrays by dtype.
    """

    time_seconds: float | None
    step: int | None
    count: int
    parts: int | None
    bytes: int | None
    by_device: list[OnDevice]
    memory: list[Allocator]
    groups: list[ArrayGroup]
    trees: list[ArraySum]
    kinds: list[ArraySum]
    dtypes: list[ArraySum]


class Arrays(Entry):
    """All snapshots of the live arrays, in order of time."""

    snapshots: list[Snapshot]


class Transfer(Entry):
    """All copies of one line in one direction, between host and devices or between devices.

    Attributes:
      direction: device_to_host, host_to_device or device_to_device.
      kind: what copies: float, item, np.asarray, device_get, device_put, ...
      count: number of copies; null: not counted, and ``bytes`` are those of one call.
      blocked_seconds: how long the program waited in all of them, also for the computation of the values.
      steps: number of steps with such a copy; null: steps are not counted.
      source: the user's line.
      caller: the line that called the function of ``source``; null: several lines, or none of the user's.
      expression: the expression in the source.
      views: how many of them copied nothing, because host and device share the memory.
      function: id of the jitted function, if its arguments were copied.
      paths: these arguments.
    """

    direction: str
    kind: str
    count: int | None
    bytes: int | None
    blocked_seconds: float | None
    steps: int | None
    source: Frame | None
    caller: Frame | None
    expression: str | None
    views: int | None
    function: str | None
    paths: list[str]
    pid: int


# -- measured ------------------------------------------------------------------------------------------------


class MeasuredLine(Entry):
    """The measured time of one line.

    Attributes:
      source: the line; null: unknown.
      seconds: seconds in one step on one device, on average.
      opcodes: HLO opcode -> the part of these seconds.
    """

    source: Frame | None
    seconds: float
    opcodes: dict[str, float]


class Profile(Entry):
    """The measurements of JAX's profiler during some steps (``--profile``), by line.

    Attributes:
      devices: number of devices that executed instructions; null: unknown, and the seconds are those of all
        devices together.
      step_seconds: wall time of one step, on average.
      device_seconds: time for which one device executed operations in one step, on average.
      file: the profile, relative to the run directory.
      left_out: number of instructions that were not recorded.
    """

    pid: int
    first_step: int
    last_step: int
    devices: int | None
    step_seconds: float | None
    device_seconds: float
    file: str | None
    left_out: int
    lines: list[MeasuredLine]


class StepLine(Entry):
    """The part of a step's time that one line takes.

    Attributes:
      cause: wait (for a value from a device), copy (to or between devices) or compile (trace, lower,
        compile).
      source: the line; null: unknown.
      expression: the expression in the source; null: several, or unknown.
      caller: the line that calls the function of ``source``, if that is a helper which several lines call;
        else null.
      seconds: seconds in one step, on average.
    """

    cause: str
    source: Frame | None
    expression: str | None
    caller: Frame | None
    seconds: float


class StepTime(Entry):
    """The mean time of a step of the main process, and where it goes. All seconds are of one step.

    Attributes:
      first_step, last_step: the first and the last step that are counted here.
      steps: how many steps are counted. Steps that compiled, or ran under the profiler, are left out.
      includes_compiling: true: steps that compiled are included, because too few others are left.
      lines: the lines that take time, the most expensive first.
      rest_seconds: Python code, dispatch, and waiting that was not recorded.
      device_waits_share: share of ``profiled_steps`` in which a device executed nothing, mean over the
        devices; null: there is no profile.
      profiled_steps: first and last step of the profile.
    """

    first_step: int
    last_step: int
    steps: int
    includes_compiling: bool
    seconds: float
    lines: list[StepLine]
    rest_seconds: float
    device_waits_share: float | None
    profiled_steps: list[int] | None


# -- findings ------------------------------------------------------------------------------------------------


class Evidence(Entry):
    """One observation that supports a finding.

    Attributes:
      text: the observation.
      compilation, program: ids.
      source: the user's line.
      target, setting: the target, or the setting of ``--vary``, for which it was observed, if there are
        several.
    """

    text: str
    compilation: str | None
    program: str | None
    source: Frame | None
    step: int | None
    target: str | None
    setting: str | None


class Finding(Entry):
    """A mistake, or something that costs time or memory, and what to do about it.

    Attributes:
      code: the code of the rule: ``JX101``.
      severity: error, warning or note.
      certainty: certain or likely.
      function: id of the function.
      fix: what to do, in words.
      seconds: seconds lost so far; null: unknown.
      path: the argument or array.
      targets: the targets whose programs have the finding.
      settings: the settings of ``--vary`` that have the finding.
      contexts: all forms of the program that have the finding.
      id: an id that stays the same in later runs.
      subject: what the finding is about, within its rule and function.
      fix_kind: what to do, for programs: ``pad``, ``donate``, ``device_put``, ...; ``advice``: in words only.
      fix_arguments: the arguments of ``fix_kind``.
      sub_run: the run to which the ids belong, as a position in ``sub_runs``; null: the run itself.
    """

    code: str
    severity: str
    certainty: str
    title: str
    function: str | None
    source: Frame | None
    evidence: list[Evidence]
    fix: str | None
    seconds: float | None
    path: str | None
    targets: list[str]
    settings: list[str]
    contexts: Contexts
    id: str
    subject: str
    fix_kind: str | None
    fix_arguments: dict[str, Any]
    sub_run: int | None = None

    @classmethod
    def of(cls, f: findings.Finding, sub_run: int | None = None) -> Finding:
        """Return the entry for the finding ``f``, with its texts."""
        fix = fix_of(f)
        return cls.copy_of(
            f,
            title=title(f),
            evidence=[Evidence.copy_of(e, text=evidence(e)) for e in f.evidence],
            fix=fix_text(f),
            targets=list(f.contexts.targets),
            settings=list(f.contexts.settings),
            id=stable_id(f),
            subject=repr(f.identity.subject),
            fix_kind=fix.kind if fix is not None else None,
            fix_arguments=fix.arguments if fix is not None else {},
            sub_run=sub_run,
        )


# -- comparisons ---------------------------------------------------------------------------------------------


class OverAxes(Entry):
    """The collectives of one program over some mesh axes.

    Attributes:
      axes: the axes; null: unknown.
      count: number of instructions.
      executions: how often they run in one call; null: unknown.
      wire_bytes: bytes that one device sends in one call; null: unknown.
    """

    axes: list[str] | None
    count: int
    executions: int | None
    wire_bytes: int | None


class Fit(Entry):
    """Whether a program fits into the memory of a device.

    Attributes:
      used_bytes: bytes that the program needs on one device.
      capacity_bytes: memory of the device.
      fits: null: unknown, or the program was not compiled for a target.
    """

    used_bytes: int | None
    capacity_bytes: int | None
    fits: bool | None


class Column(Entry):
    """The program of one function with one setting or for one target.

    Attributes:
      sub_run: the run that has the program, as a position in ``sub_runs``; null: the run itself.
      settings: the settings of ``--vary``.
      target: the target; null: the devices that the program ran on.
      program: id of the program.
      fusions: number of fusions.
      collectives: the collectives by mesh axes.
      estimated_cycles: cycles of one call, estimated by a TPU's compiler.
      compile_seconds: time that compiling for the target took.
    """

    sub_run: int | None
    settings: dict[str, str]
    target: str | None
    program: str
    state: str | None
    fusions: int | None
    collectives: list[OverAxes] | None
    memory: Fit
    bounds: Bounds | None
    estimated_cycles: int | None
    compile_seconds: float | None


class Comparison(Entry):
    """The programs of one function with several settings or for several targets."""

    function: str
    columns: list[Column]


class SlowestCompilation(Entry):
    """The compilation of a rank that took longest.

    Attributes:
      site: the line that called the function.
    """

    site: Frame | None
    function: str
    seconds: float


class Rank(Entry):
    """One process of a job.

    Attributes:
      rank: its number.
      directory: the name of its run directory.
      state: ``exited``, ``stopped``, ``running`` or ``lost``.
      steps: number of steps; null: not counted.
      compilations: number of compilations.
      shared_programs: names of the programs that run on devices of several processes, in the order of
        compilation. Equal programs of different ranks have the same name.
      program_memory_bytes: memory on one device of the program that needs the most.
    """

    rank: int
    directory: str
    state: str
    exit_code: int | None
    signal: int | None
    steps: int | None
    compilations: int
    shared_programs: list[str]
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float
    program_memory_bytes: int | None
    slowest: SlowestCompilation | None


class Ranks(Entry):
    """The processes of a job.

    Attributes:
      size: number of processes; null: unknown.
      missing: numbers of the processes that recorded nothing.
      groups: numbers of the processes that compiled the same shared programs, one list for each group.
      ranks: the recorded processes.
    """

    size: int | None
    missing: list[int]
    groups: list[list[int]]
    ranks: list[Rank]


class Report(Entry):
    """The whole report.

    Attributes:
      schema: the version of the format.
      jaxscope: the version of jaxscope.
      ledger: what each cause of compilations cost.
      outside_jit: the user's lines that compile outside jit or in libraries.
      stale_captures: values that traced functions use, and that have changed since.
      buckets: sizes to which inputs can be padded.
      arrays: snapshots of the live arrays; null: none was taken.
      transfers: copies between host and devices; null: they were not counted.
      profiles: measurements of JAX's profiler.
      step_time: where the time of a step goes; null: unknown.
      sub_runs: runs of the same program with other settings, or on other numbers of devices.
      comparisons: the programs of each function side by side, for several settings or targets.
      ranks: the processes of the job; null: it has only one process.
    """

    schema: int
    jaxscope: str
    run: RunFacts
    functions: list[Function]
    compilations: list[Compilation]
    programs: list[Program]
    predictions: list[Prediction]
    ledger: list[Total]
    outside_jit: list[PayingLine]
    stale_captures: list[StaleCapture]
    buckets: list[Bucket]
    arrays: Arrays | None
    transfers: list[Transfer] | None
    profiles: list[Profile]
    step_time: StepTime | None
    findings: list[Finding]
    sub_runs: list[Report]
    comparisons: list[Comparison]
    ranks: Ranks | None


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a report."""
    found: dict[str, Any] = msgspec.json.schema(Report)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "jaxscope report", **found}
