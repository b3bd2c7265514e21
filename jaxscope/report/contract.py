"""The types of the JSON report, schema 1. ``jaxscope report --schema`` prints their JSON Schema.

Later versions add keys, but never rename or remove one. The end of a key is its unit: ``_seconds`` is wall
time. ``_bytes`` is on one device, or with ``global_`` the whole array; exceptions are stated at the field. An
unknown value is null if its field can be null.
"""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import msgspec

from jaxscope.present import causes as in_words
from jaxscope.present.findings import evidence, fix_text, stable_id, subject, title
from jaxscope.present.render import text
from jaxscope.schema import causes, findings
from jaxscope.schema.causes import Value
from jaxscope.schema.events import Died
from jaxscope.schema.findings import Contexts, fix_of
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Message

T = TypeVar("T", bound="Entry")


class Entry(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The base class of the objects in the JSON report. The keys of an object are the fields of its class."""

    @classmethod
    def copy_of(cls: type[T], source: object, /, **more: object) -> T:
        """Return an entry of this class. A field that is in ``more`` has the value that it has there; any
        other field has the value of the attribute of ``source`` with the same name."""
        copied = {name: getattr(source, name) for name in cls.__struct_fields__ if name not in more}
        return cls(**copied, **more)


# -- the run -------------------------------------------------------------------------------------------------


class Stop(Entry):
    """A process whose recording stopped before the process ended.

    Attributes:
      time_seconds: when its recording stopped, in seconds since the recording of the program began.
      reason: why its recording stopped.
    """

    pid: int
    time_seconds: float | None
    reason: str


class RemovedName(Entry):
    """A name or argument that the user's program used, and that this version of JAX does not have or has
    deprecated.

    Attributes:
      name: the name: ``jax.tree_map``.
      instead: what to write in its place; empty if nothing replaces it.
      version: the release of JAX that removed the name, or if ``deprecated`` is true, the one that deprecated
        it; "never": JAX never had the name.
      changelog: the release under which JAX's changelog names the removal; null: it is not in the changelog.
      deprecated: true if JAX still has the name, but the name does less than its replacement.
    """

    name: str
    instead: str
    version: str | None
    changelog: str | None
    deprecated: bool


class Death(Entry):
    """The exception that ended the program.

    Attributes:
      error: the name of the exception's class.
      stack: the user's lines on the stack, the innermost first.
      library: the package, other than JAX, whose code raised the exception or made the failed call into JAX;
        null: the user's code did, or this is unknown.
      removed_name: the name that caused the exception, if this version of JAX does not have or has deprecated
        it; else null.
    """

    error: str
    message: str
    stack: list[Frame]
    library: str | None
    removed_name: RemovedName | None

    @classmethod
    def of(cls, died: Died, removed: object | None) -> Death:
        """Return the entry for ``died``, the event about the exception that ended the program. ``removed`` is
        an object with the fields of RemovedName, if a name that JAX does not have or has deprecated caused
        the exception; else None."""
        return cls.copy_of(died, removed_name=None if removed is None else RemovedName.copy_of(removed))


class Device(Entry):
    """One device that JAX shows to the program, of this process or of another.

    Attributes:
      id: the number of the device in JAX.
      kind: the model: ``cpu``, ``TPU v5 lite``.
      process_index: JAX's index of the process that the device belongs to.
    """

    id: int
    kind: str
    process_index: int


class Target(Entry):
    """A machine for which the programs were also compiled (``run --target``). The machine need not be
    present.

    Attributes:
      name: ``2*v5e:4x4`` (two slices of 4 by 4 TPU chips).
      platform: ``tpu`` or ``cuda``.
      devices: number of devices in all slices.
      slices: number of slices (groups of TPU chips that a data-center network connects); 1 for GPUs.
    """

    name: str
    platform: str
    devices: int
    slices: int


class Missing(Entry):
    """A part of jaxscope's recording that did not work in this run, so that the report may lack something.

    Attributes:
      seam: jaxscope's name for the part: ``listeners``, ``step_function``, ...
      reason: why it did not work.
    """

    seam: str
    reason: str


class Phase(Entry):
    """A trace, lowering or compilation whose end is not recorded, because it still runs, the program ended
    during it, or the log lacks its end.

    Attributes:
      compilation, function: the id of the call during which the phase began, and the id of its function.
      phase: trace, lower or compile.
      time_seconds: when the phase began, in seconds since the recording of the program began.
    """

    compilation: str
    function: str
    phase: str
    time_seconds: float | None


class WallTime(Entry):
    """The wall time of a run, divided into parts by what its main process did. The parts do not overlap, and
    their sum is ``seconds``.

    Attributes:
      seconds: wall time of the program.
      before_compiling: seconds until the first trace, lowering or compilation began: imports and set-up.
      compiling: seconds in which JAX traced, lowered or compiled something.
      waiting: seconds in which the program waited for the devices, as far as measured; null: unknown, these
        seconds are then part of ``rest``.
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
      name: the name of the run; null: unknown.
      argv: the program and its arguments; null: unknown.
      settings: the values that ``run --vary`` gave the program: name of an option or environment variable ->
        value.
      started: when the recording of the program began: ISO 8601, UTC.
      seconds: wall time of the program; up to its last sign of life if its end is not recorded.
      exit_code, signal: the exit code of the program, or the number of the signal that ended it; null: the
        other key has the end, or it is unknown.
      complete: true if the main process ended its recording in an orderly way and no recording stopped early.
        If no process was recorded: true if the program is known to have ended without a signal.
      recording_stopped: processes whose recording stopped early.
      died: the exception that ended the program; null: none was recorded.
      state: ``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost`` (no end in
        the log); null: unknown.
      processes: number of recorded processes of the program.
      compiling_seconds: the part of ``seconds`` in which the main process traced, lowered or compiled.
      wall_time: ``seconds``, divided into parts; null: nothing was compiled, or the parts are unknown.
      targets: targets (machines given with ``--target``) for which the programs were also compiled.
      degraded: parts of jaxscope's recording that did not work.
      in_progress: traces, lowerings and compilations whose end is not recorded.
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
    """A function of the user or of a library, or an operation that the program applied outside jit.

    Attributes:
      id: made from the qualified name, the file and first line, ``wrappers`` and what the function captures.
      form: the kind of function: def, lambda, partial, method, callable (an object with ``__call__``) or
        primitive.
      wrappers: names of the transformations around the function, such as ``jax.grad``, outermost first.
      captures: the functions, classes and callable objects that the function takes from its closure or gets
        from a partial or a method's object, as ``loss=l2``.
      library: true if the function belongs to a library; false if it belongs to the user, or if ``eager`` is
        true.
      eager: true if it is an operation that the program applied outside jit, such as ``jnp.add``.
      watched: true if jaxscope counts the calls of the function.
      calls: number of calls; null: not counted.
      traces, lowerings, compilations: how often each phase succeeded; ``compilations`` includes programs
        loaded from the persistent cache.
      fast_path_misses: calls that JAX's fast path (in C++) did not accept, and for which nothing had to be
        traced or compiled.
      trace_seconds, lower_seconds, compile_seconds: sums over all recorded calls, without what other
        functions traced or compiled inside these phases.
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
    """The wall time of the trace, lowering and compilation of one call, in seconds, without what other calls
    traced or compiled inside these phases. null: the phase did not run, or its time is unknown."""

    trace: float | None
    lower: float | None
    compile: float | None


class Argument(Entry):
    """One array or number among the arguments of a jitted call.

    Attributes:
      path: the array's path in the call: ``batch['image']``.
      type: the class: ``jax.Array``, ``numpy.ndarray``, ``float``.
      shape: the size of each dimension; a symbolic size is a text. null: unknown.
      weak_type: true if the array is weakly typed: an operation uses the dtype of its other operand; null:
        unknown.
      committed: true if the array is committed to its devices; null: it is not a jax.Array, or this is
        unknown.
      memory_kind: ``device``, ``pinned_host``, ...
      layout: the order of the dimensions in memory, major to minor: ``(1, 0)``; null: unknown.
      origin: the user's line that created the array; null: unknown.
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
    """One static value of a jitted call, such as a static argument.

    Attributes:
      path: the value's path in the call.
      repr: the value as text, shortened.
      type: the value's class.
      compares: how JAX compares the value: ``value`` (with ``__eq__`` of its class), ``identity`` (it is a
        function or a bound method, or its class defines no ``__eq__``) or ``parts`` (it contains an object
        that JAX compares by identity); null: unknown.
    """

    path: str
    repr: str
    type: str
    compares: str | None


class CacheKey(Entry):
    """The values that JAX compares to decide whether it can reuse a trace or a program.

    Attributes:
      arguments: the array arguments.
      static: the static values, such as static arguments.
      tree: the tree definition (PyTreeDef) of the arguments, as text.
      nodes: path of a container in the arguments -> its type.
      call_form: how the arguments were passed: ``2 positional, keywords: mask``.
      options: options of jit that differ from their defaults: name -> value.
      context: JAX's settings at the time of the call: name -> value; null: unknown.
      function_object: a number that identifies the function object in its process; null: unknown.
      missing: names of the parts of the key that jaxscope could not read with this version of JAX.
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
    """One reason why JAX could not reuse an earlier trace or program for a call.

    Attributes:
      kind: what differs: ``shape``, ``static_value``, ``new_function``, ...
      level: the first of JAX's caches that missed: trace, lower, compile, or fast_path (the cache in C++ that
        makes repeated calls quick).
      path: the argument that differs, or the name of the setting or option; ``context``: the mesh around the
        call; null: the cause has no single path.
      before, after: the value in the earlier call and in the call that missed, as text; null: there is none.
      certainty: certain or likely.
      text: the cause as a clause of a sentence.
      count: number of arrays or static values with this cause; if there are several, ``path`` is the
        beginning that their paths have in common.
      before_value, after_value: the same two values as data.
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
        """Return the entry of the JSON report for the cause ``c``, with its text. Equal causes may share one
        cached entry, so do not change the result."""
        before, after = in_words.values(c)
        return cls.copy_of(
            c, before=before, after=after, text=in_words.clause(c), before_value=c.before, after_value=c.after
        )


class Intent(Entry):
    """The shardings of one argument or result of a compiled program: the requested one, the compiled one, and
    the sharding of the array that the caller passed.

    Attributes:
      path: the path of the argument, or of the result in the returned value.
      of: argument or result.
      asked: the requested sharding; null: none was requested, or this is unknown.
      asked_by: how it was requested: in_shardings, out_shardings, constraint (with_sharding_constraint) or
        type (explicit sharding); null: nothing was requested.
      asked_at: the user's line with the with_sharding_constraint; null: none, or unknown.
      compiled: the sharding in the compiled program.
      actual: the sharding of the array that the caller passed; null: unknown, the caller passed no jax.Array,
        or the entry is about a result.
      agrees: true if ``compiled`` equals ``asked`` and ``actual``, as far as they are known; null: unknown.
      difference: ``not_as_asked``: ``compiled`` differs from ``asked``. For an argument with a sharding
        constraint, this counts only if the program splits the array into at most half as many parts as
        requested. ``moved``: ``actual`` differs from ``compiled``, so each call copies the array. null:
        neither is known to be so.
      reason: why the two shardings of ``difference`` differ; null: unknown, or there is no difference.
      times: how many times as many bytes one device holds as with the requested sharding, rounded down and at
        least 1: 4 if the array was to be split into 4 parts and is replicated. null: unknown, or
        ``difference`` is not ``not_as_asked``.
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
    """A call of a jitted function for which JAX traced, lowered or compiled something, or which only missed
    JAX's fast path (the cache in C++ that makes repeated calls quick).

    Attributes:
      id: ``<process>.<number of the call>``.
      function: id of the function.
      ordinal: the number of this compilation, counted for the function: 2 in ``train_step#2``; null: the call
        only missed the fast path.
      process_index: ``jax.process_index()`` of the process that made the call; null: unknown.
      step: the step of the training loop in which the call was made; null: steps are not counted.
      time_seconds: when the call was recorded, in seconds since the recording of the program began.
      entry: how the function was called: call, aot (``.trace``, ``.lower``, ``.eval_shape``), transform
        (under grad, vmap, ...) or nested (while another function was traced).
      inside: id of the call during whose trace this call was made; null: it was not made during a trace.
      reached: the phases that succeeded: traced, lowered, compiled; fast_path alone: the call only missed the
        fast path. Empty: a phase began, and none succeeded.
      in_progress: the phase that began and whose end is not recorded; null: none.
      failed: the phase that raised an exception; null: none.
      persistent_cache: whether the program was in JAX's persistent compilation cache: hit, miss or off; null:
        nothing was compiled, or this is unknown.
      persistent_cache_reason: why the cache is off, or why the program was not stored in it; null: unknown,
        or there is no special reason.
      call_site: the user's line that made the call; null: unknown.
      stack: the user's lines that led to ``call_site``, innermost first.
      seconds: wall time of each phase.
      key: the values that JAX compares to find a trace or a program that it can reuse; null: unknown.
      compared_with: id of the earlier call of the function, in the same process, whose ``key`` differs least
        from this one; null: there is none, or ``key`` is null.
      causes: why JAX could not reuse a trace or a program, the decisive cause first.
      shardings: the shardings of the arguments and results; null: nothing was compiled, or, as far as known,
        all arrays are on one device and no sharding is requested.
      program: id of the compiled program; null: unknown, or nothing was lowered.
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
    """A recompile that jaxscope expects, because a function gets its own result as an argument:
    ``state = step(state)``. The result has another type or sharding than the argument had, so the next call
    will probably miss one of JAX's caches.

    Attributes:
      function: id of the function.
      after_compilation: id of the compilation that returned the result.
      step: the step of this compilation; null: steps are not counted.
      argument, result: the path of the argument, and the path of the result in the returned value.
      causes: why the next call would miss a cache, the decisive cause first.
      text: the prediction as a sentence.
      status: pending (not known yet); confirmed (a later call recompiled); withdrawn (a later call did not
        recompile for this reason); null: the program ended before this was known.
      confirmed_by: id of the compilation that confirmed the prediction; null: none.
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
    """A group of calls for which JAX traced, lowered or compiled something: how many they are, and their
    seconds. The calls of one group have the same cause, function and source line. Traces inside other traces
    are left out.

    Attributes:
      cause: the kind of the cause: ``shape``, ``static_value``, ..., or ``first`` (the first call of a
        function).
      path: the argument or setting that differed; null: the cause has none, or ``function`` is null.
      function: id of the called function; null: operations outside jit and library functions, all together.
      source: the user's line that made the calls; null: unknown.
      count: number of these calls. A call that compiled several programs counts once.
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
    """A line of the user's code that made JAX compile operations outside jit or functions of libraries.

    Attributes:
      source: the line.
      library: the package that the line called for most of the compilations; null: no package but JAX, or
        unknown.
      compilations: number of compilations of such operations and functions.
      recompiles: how many of ``compilations`` compiled something again that the same line had compiled
        before.
      seconds: seconds of tracing, lowering and compiling for ``compilations``.
    """

    source: Frame
    library: str | None
    compilations: int
    recompiles: int
    seconds: float


class StaleCapture(Entry):
    """A value that a watched function uses, that is not part of JAX's cache key, and that the program changed
    after the function was traced.

    Attributes:
      function: id of the function.
      name: the value's name in the code: ``scale``, ``config['lr']``, ``self.width``.
      where: where the function finds the value: closure, global or static (part of a static argument).
        ``closure of g``: the function calls ``g``, and ``g`` reads the value.
      how: how the program changed the value: rebound (a new object), or in place (the contents of a NumPy
        array).
      before, after: the value at the trace, and the value when jaxscope noticed the change, as shortened
        text.
      read: the line of the function that reads the value.
      after_compilation: id of the compilation that traced the function with the old value.
      seen: when jaxscope noticed the change: call (of the function), step (of the training loop) or exit.
      seen_at: the user's line at which jaxscope noticed the change; null at exit.
      step: the step in which jaxscope noticed the change; null: steps are not counted.
      status: stale (the function still uses the old value); ended (a call used the old value, then a new
        trace replaced it); withdrawn (a new trace replaced it, and no call is known to have used it).
      ended_by: id of the compilation with the new trace; null: none.
      variable: closure, global or static, as in ``where``.
      reader: the function that reads the value (``g`` in ``where``), if the watched function calls it; null:
        the watched function itself, or unknown.
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
    variable: str
    reader: str | None


class Padding(Entry):
    """A proposal: sizes to which the user can pad inputs, so that JAX compiles fewer programs.

    Attributes:
      sizes: the sizes, ascending; an input is padded to the smallest size that is not below its own.
      compilations: number of compilations that the function needs with padding.
      padding_share: the share of padding in all elements of the padded inputs, from 0 to 1.
    """

    sizes: list[int]
    compilations: int
    padding_share: float


class Bucket(Entry):
    """An axis of an argument that had at least three sizes and made the function recompile, and proposals for
    sizes to which the user can pad it.

    Attributes:
      function: id of the function.
      path: the argument, or the beginning that the paths of several such arguments have in common.
      axis: the axis, from 0.
      observed: [size, number of calls with this size] for each size. If calls were not counted: [size, number
        of calls with this size that traced or compiled].
      calls: number of the calls in ``observed``; null: not counted.
      choices: the proposals, of which the user can take one.
    """

    function: str
    path: str
    axis: int
    observed: list[tuple[int, int]]
    calls: int | None
    choices: list[Padding]


# -- programs ------------------------------------------------------------------------------------------------


class Problem(Entry):
    """A part of the StableHLO or HLO of a program, mostly a line, that jaxscope could not parse.

    Attributes:
      stage: hlo or stablehlo.
      line: the number of the line, from 1; 0: unknown. 1 also if the problem is on no single line.
      text: what is wrong, often with a part of the line.
    """

    stage: str
    line: int
    text: str


class Fusion(Entry):
    """One fusion of the compiled program.

    Attributes:
      name: the name of the instruction in the HLO.
      kind: XLA's kind of fusion: ``loop``, ``input``, ``output``, ``custom``.
      ops: opcode -> number of instructions with this opcode in the fusion, without parameters.
      bytes_in, bytes_out: bytes of the fusion's operands, and of its result, on one device in one execution;
        null: unknown.
      executions: how often the fusion runs in one call of the program, at most; null: unknown.
      sources: the user's lines of its instructions, the most frequent first; at most eight.
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
      by_kind: kind -> number of fusions of this kind that are not inside another fusion.
      nested: number of fusions inside another fusion.
      each: (``list`` in JSON) the fusions that are not inside another fusion.
    """

    total: int
    by_kind: dict[str, int]
    nested: int
    each: list[Fusion] = msgspec.field(name="list")


class Collective(Entry):
    """One collective of a compiled program.

    Attributes:
      kind: ``all-reduce``, ``all-gather``, ...
      name: the name of the instruction in the HLO.
      is_async: (``async`` in JSON) true if two instructions form the collective, a start and a done.
      overlap: true if the device computes something between start and done; false: it does not, or ``async``
        is false; null: unknown.
      bytes: bytes of the result on one device (of a reduce-scatter, the part that stays on the device).
      operand_bytes: bytes of the operands on one device.
      wire_bytes: bytes that one device sends in one execution; null: unknown.
      executions: how often the collective runs in one call of the program; if a branch of a conditional
        contains it, how often at most. null: unknown.
      executions_at_least: how often the collective certainly runs in one call; null: unknown.
      conditional: the innermost conditional instruction with a branch that contains the collective, as
        ``computation/name``; null: none.
      axes: the mesh axes, or parts of them (``data:(1)2``), over which the collective communicates; null:
        unknown, or the groups of devices that communicate do not follow mesh axes; empty: each group has one
        device.
      group_size, groups: number of devices in each group that communicates, and number of groups; null:
        unknown, or a permute. ``group_size`` is also null if the groups differ in size.
      origin: asked (the user's program contains the collective), inserted (by the partitioner), or null
        (unknown).
      weight: the parameter that this all-gather collects from the devices for a matrix product, as in fully
        sharded training (FSDP); null: it collects none, or unknown.
      constraint: the user's sharding constraint that made the compiler insert the collective; null: none.
      constrained_at: the line of that constraint.
      source_certainty: certain: the compiler kept the source line; likely: ``source`` is the line of a
        neighboring instruction; null: unknown.
      axes_around: if ``axes`` is null because the groups do not follow mesh axes, the mesh axes along which
        the devices of a group differ; else null.
      transfer: for a send or recv between slices (groups of TPU chips), the kind of collective to which it
        belongs; else null.
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
      trip_count: the number of iterations in one execution of the loop; null: unknown.
    """

    name: str
    trip_count: int | None


class Upcast(Entry):
    """The conversions of arrays from one floating-point dtype to a wider one (bfloat16 to float32) that one
    line of the user's code causes in a program.

    Attributes:
      before, after: the dtype and the wider dtype.
      count: number of conversions in the program; one in the body of a loop counts once.
      bytes: bytes of the results of all these conversions; null: unknown.
    """

    before: str
    after: str
    count: int
    bytes: int | None
    source: Frame | None


class Callback(Entry):
    """A place at which a compiled program calls Python (``jax.debug.print``, ``pure_callback``), or an infeed
    or outfeed.

    Attributes:
      kind: JAX's name of the primitive, or infeed or outfeed; null: unknown.
      count: how often the program contains the call; a call in the body of a loop counts once.
      ordered: true if JAX keeps the order of this call and of other ordered calls; null: unknown.
      in_loop: true if the call is inside a loop of the program.
      bytes_to_host, bytes_from_host: bytes that one call copies to the host, and from the host; null:
        unknown.
    """

    kind: str | None
    count: int
    ordered: bool | None
    in_loop: bool
    bytes_to_host: int | None
    bytes_from_host: int | None
    source: Frame | None


class RepeatedBlock(Entry):
    """A sequence of operations that a program contains several times, for example once for each iteration of
    a Python loop that was traced.

    Attributes:
      length: number of operations in the sequence.
      times: how often the program contains the sequence.
      carried: true if each repetition uses a result of the repetition before it.
      in_loop: true if the repetitions are inside a loop of the program.
      grows: true if the arrays become longer in each repetition.
    """

    length: int
    times: int
    carried: bool
    in_loop: bool
    grows: bool
    source: Frame | None


class Donation(Entry):
    """One argument that is donated, or could be, and whether the program reuses its memory for a result.

    Attributes:
      path: the argument.
      bytes, device_bytes: bytes of the whole array, and of its part on one device.
      status: aliased (donated, and a result uses the memory), unused (donated, but no result uses the memory)
        or possible (not donated, but a result could use the memory); null: donated, and whether a result uses
        the memory is unknown.
      reason: why the memory is not reused, or what has to change so that it is reused; null: unknown, or it
        is reused.
      output: the result that uses the argument's memory or could use it; null: none, or unknown.
    """

    path: str | None
    bytes: int | None
    device_bytes: int | None
    status: str | None
    reason: str | None
    output: str | None


class Constant(Entry):
    """A constant array of a program: mostly an array that the traced function captured, for example from its
    closure.

    Attributes:
      name: the variable that held the array; null: unknown.
      bytes: bytes of the whole array.
      source: the user's line that first uses the array; null: unknown.
    """

    name: str | None
    bytes: int | None
    shape: list[int | None] | None
    dtype: str | None
    source: Frame | None


class Rematerialization(Entry):
    """An array that XLA's partitioner copies as a whole to every device, in order to change the array's
    sharding. XLA prints the warning "involuntary full rematerialization".

    Attributes:
      name: the HLO instruction whose result is the array.
      before, after: (``from`` and ``to`` in JSON) the shardings before and after the change.
      bytes: bytes of the whole array; every device then holds all of them.
      source: the user's line that created the instruction.
      text: the warning, shortened.
    """

    name: str | None
    before: str | None = msgspec.field(name="from")
    after: str | None = msgspec.field(name="to")
    bytes: int | None
    source: Frame | None
    text: str


class Contributor(Entry):
    """An argument or a result of a program, and how much of the program's memory it takes.

    Attributes:
      path: the argument or result by the user's names: ``state.params['w']``.
      of: argument or output.
      bytes, global_bytes: bytes on one device, and of the whole array.
    """

    path: str | None
    of: str
    bytes: int | None
    global_bytes: int | None


class Buffer(Entry):
    """One of the largest buffers of a program that was compiled for a target (a machine given with
    ``--target``). If the compiler lists no buffers, it is one of the largest values of the program.

    Attributes:
      bytes: bytes on one device; for ``value on all devices``, on all devices together.
      kind: the compiler's kind of buffer; ``kernel`` or ``operation``: all buffers of one operation;
        ``value`` or ``value on all devices``: a value of the lowered program.
      shape: as HLO writes it: ``f32[8,128]{1,0}``.
      operation: the operation that writes the buffer; null: unknown.
      source: the user's line, as an object with ``file`` and ``line`` (``function`` is null); null: unknown.
    """

    bytes: int | None
    kind: str | None
    shape: str | None
    operation: str | None
    source: dict[str, Any] | None


class Memory(Entry):
    """The memory that one program needs on one device, in bytes.

    Attributes:
      argument_bytes, output_bytes, temp_bytes: bytes of the arguments, of the results, and of temporary
        buffers.
      alias_bytes: bytes of the arguments whose memory the results reuse.
      code_bytes: bytes of the program itself.
      peak_bytes: arguments, results and temporary buffers, less ``alias_bytes``, or for a target the peak
        that the compiler states; null: unknown.
      capacity_bytes: memory of the device; null: unknown. If a single operation needs too much, the
        compiler's limit for one operation.
      by_path: arguments and results by the user's names, largest first.
      fits: true if the program fits into the memory of the target (a machine given with ``--target``) for
        which it was compiled; null: unknown, or it was not compiled for a target.
      used_bytes: bytes that the program needs on the target. If the compiler failed early, only those of its
        temporary buffers, or of a single operation that needs too much. null: unknown, or not for a target.
      parts: the compiler's breakdown of ``used_bytes``: name -> bytes; empty: none is known. null: unknown,
        or not for a target.
      largest: if the program does not fit, its largest buffers; else empty. null as for ``parts``.
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
    """Lower bounds on the time of one call of a program on a target (a machine that the program was compiled
    for), from the machine's peak rates.

    Attributes:
      compute_seconds: time of the matrix products and convolutions; null: unknown.
      memory_seconds: time of moving bytes from and to the device's memory; null: unknown.
      axes_seconds: time of the collectives: mesh axes joined with a comma (``?``: unknown axes) -> seconds;
        null: unknown.
      least_seconds: the largest of these bounds: a call takes at least this time; null: all are unknown.
      binds: the name of the largest bound: compute, memory or mesh axes; null: all are unknown.
      quoted: the names of the bounds whose peak rate could not be read on the vendor's page, but was read on
        a page that quotes the vendor.
    """

    compute_seconds: float | None
    memory_seconds: float | None
    axes_seconds: dict[str, float | None]
    least_seconds: float | None
    binds: str | None
    quoted: list[str]


class Texts(Entry):
    """What the StableHLO and the HLO of a program contain. A field is null if the text that it comes from was
    not recorded.

    Keys with ``_at_least`` are lower bounds, keys with ``_at_most`` upper bounds. If the exact figure is not
    known, ``matrix_flops``, ``estimated_cycles`` or an entry of ``wire_bytes_by_axes`` is null.

    Attributes:
      num_partitions: number of devices that the program runs on; null: unknown.
      problems: lines that could not be parsed.
      instructions: number of HLO instructions.
      mesh: [axis, size] of each mesh axis.
      unfused_elementwise: number of elementwise instructions outside fusions, without scalars.
      custom_calls: name of the called function -> number of such calls in the program.
      wire_bytes_by_axes: mesh axes joined with a comma (``?``: unknown axes) -> bytes that one device sends
        in one call.
      matrix_flops: operations of matrix products and convolutions on one device in one call.
      repeated_blocks: sequences of operations that the program contains several times.
      op_counts: name of a StableHLO operation -> how often the program contains it.
      remats: arrays that the partitioner copies to all devices to change their sharding.
      flops, bytes_accessed: XLA's own estimates for one call.
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
    """One lowered program, mostly compiled too, either for this machine or for a target (a machine given with
    ``--target``, which need not be present). If it is for this machine, the fields from ``state`` on are
    null.

    Attributes:
      of: if the program is for a target, the id of the program for this machine that was compiled in the same
        call; else null.
      function: id of the function from which the program was made; null: unknown.
      stablehlo, hlo: the hashes under which the run directory keeps the StableHLO and the HLO; null: not
        kept.
      target: the name of the target; if the program is for this machine, the platform: ``cpu``; null:
        unknown.
      compilations: ids of the calls that lowered or compiled the program.
      state: how far the compilation for the target is: skipped, waiting, compiling, abandoned (the process
        that compiled has ended), or the compiler's outcome (``ok``, ``exhausted``, ...).
      error: the compiler's error message; null: there was no error.
      skipped: why the program was not compiled for the target; null: it was not skipped.
      compiler: the version of the compiler.
      compile_seconds: seconds that compiling for the target took.
      waited_seconds: seconds for which the user's program waited while this program was lowered for the
        target.
      compiler_process_bytes: the most bytes of memory that the compiler's process used.
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
    """The bytes of all live arrays on the device with the number ``device``."""

    device: int
    bytes: int


class Allocator(Entry):
    """The memory of a device as its allocator reports it: the bytes in use, the most bytes in use so far, and
    the limit. null: the allocator does not report the figure."""

    device: int
    in_use_bytes: int | None
    peak_bytes: int | None
    limit_bytes: int | None


class ArrayGroup(Entry):
    """The live arrays of a snapshot that have the same variable, shape, dtype and sharding.

    Attributes:
      path: the variable that leads to the arrays, with ``[*]`` instead of the positions in lists:
        ``params['layers'][*]``; null: no variable was found.
      shared: how many of these arrays use the memory of other arrays in the snapshot; null: none.
      global_bytes: bytes of all these arrays; an array with copies on several devices counts once.
      device_bytes: bytes that all these arrays, also those in ``shared``, take on each device that has a part
        of them.
      sharding, spec: the sharding as text, and its PartitionSpec.
      replication: number of devices that have the same part of an array.
      padding_bytes: bytes allocated for padding, on all devices.
      origin: the user's line that created the arrays; null: unknown, or several lines.
      asked, compiled: the sharding that the program requested for the arrays, and the one in the compiled
        program that returns or takes them; null: unknown.
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
    """The number and the bytes of the live arrays of one variable, of one kind, or with one dtype.

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
      time_seconds: when it was taken, in seconds since the recording of the program began.
      step: the step of the training loop that ended last, 0 if none has; null: steps are not counted.
      count: number of arrays in ``groups``.
      parts: number of further live arrays, in no group: no variable leads to them, and they use the memory of
        arrays in the groups.
      bytes: bytes on all devices of this process; memory that several arrays share counts once. null:
        unknown.
      by_device: bytes on each device.
      memory: what each device's allocator reports.
      groups: the arrays, grouped by variable, shape, dtype and sharding.
      trees: the sums of the arrays by variable.
      kinds: the sums of the arrays by kind: parameters, optimizer state, batch, other.
      dtypes: the sums of the arrays by dtype.
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
    """All copies in one direction that one line of code made with one function, in one process: between host
    and devices, or between devices.

    Attributes:
      direction: device_to_host, host_to_device or device_to_device.
      kind: the function that copies: float, item, np.asarray, device_get, device_put, ..., or ``argument``: a
        call of a jitted function copies its arguments; ``constant``, ``debug_nans``: JAX itself copies.
      count: number of copies; null: not counted.
      bytes: bytes of all these copies, or of those of one call if ``count`` is null; null: unknown.
      blocked_seconds: seconds for which these copies made the program wait, including the time until the
        values were computed; null: unknown.
      steps: number of steps of the training loop with such a copy; null: unknown.
      source: the user's line; null: unknown.
      caller: the user's line that called the function of ``source``; null: several lines did, or unknown.
      expression: the copied expression in the source; null: unknown, or the line has several.
      views: how many of ``count`` copied no bytes, because host and device share the memory; null: unknown.
      function: if a call of a jitted function copied its arguments, the id of this function; else null.
      paths: the paths of these arguments; empty if ``function`` is null.
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
    """The time that the devices spent on the HLO instructions of one source line, as JAX's profiler measured
    it.

    Attributes:
      source: the line; null: unknown.
      seconds: mean seconds of one step of the training loop, on one device.
      opcodes: the parts of ``seconds`` by kind of instruction: HLO opcode -> seconds. If the opcode is
        unknown, the key is the name of the instruction or GPU kernel.
    """

    source: Frame | None
    seconds: float
    opcodes: dict[str, float]


class Profile(Entry):
    """What JAX's profiler measured during some steps of the training loop (``--profile``), for each source
    line.

    Attributes:
      devices: number of devices that executed instructions; null: unknown. ``device_seconds`` and the seconds
        in ``lines`` are then sums over all devices, not those of one device.
      step_seconds: mean wall time of one step; null: unknown.
      device_seconds: mean seconds for which one device executed instructions in one step. If two instructions
        run at the same time, both times count.
      file: the profile's file, relative to the run directory; null: none was written.
      left_out: number of further instructions, the fastest ones, which jaxscope did not record.
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


class LineTime(Entry):
    """The wall time that the main thread spent at one line of the user's code with one activity.

    Attributes:
      doing: the activity. ``compiling``: JAX traces, lowers or compiles. ``waiting``: for values of devices.
        ``copying``: to devices. ``checking``: results for NaN or infinity. ``operations``: operations outside
        jit and other code of JAX. ``calling``: a jitted function that was compiled before. ``python``: other
        Python code, of the user or of libraries. ``sleeping``: the same as ``python``, while the thread waits
        for a lock, a file or a device.
      share: ``seconds`` divided by the measured seconds.
      samples: number of samples that hit the line. The error of ``seconds`` is about ``seconds /
        sqrt(samples)``.
      blocked_seconds: the part of ``seconds`` in which the thread slept: it waited for a device, a lock or a
        file.
      callers: the user's lines that called the function of ``source``, innermost first; of several different
        stacks, the one with the most time.
      library: the installed package whose Python code ran in the stack with the most time; null: none, or
        ``doing`` is not ``python``.
    """

    doing: str
    source: Frame
    seconds: float
    share: float
    samples: int
    blocked_seconds: float
    callers: list[Frame]
    library: str | None = None


class LineTimes(Entry):
    """The lines at which the main thread of the main process spent its time, measured by samples of its
    stack.

    Attributes:
      seconds: the wall time that was measured since JAX had a backend. The sum over ``lines`` is smaller if
        the thread also ran code that no line of the user had called, or if there were too many lines to
        record.
      lines: the lines of the user's code, the longest time first.
      traced: the lines of functions that JAX traced, with the seconds of tracing, the longest time first;
        their ``callers`` begin with the line that made JAX trace. The same seconds also count in ``lines``,
        for that line.
      setup_seconds: the wall time that was measured before JAX had a backend, from the end of ``import jax``
        on; it is not part of ``seconds``. 0: nothing was measured then, for example because the program
        forked.
      setup: the lines at which the thread spent ``setup_seconds``, the longest time first.
    """

    seconds: float
    lines: list[LineTime]
    traced: list[LineTime]
    setup_seconds: float
    setup: list[LineTime]


class StepLine(Entry):
    """The time that one source line takes in a step of the training loop, for one of three causes.

    Attributes:
      cause: wait (for a value from a device), copy (to or between devices) or compile (trace, lower,
        compile).
      source: the line; null: unknown.
      expression: the expression in the source; null: unknown, the line has several, or ``cause`` is compile.
      caller: the line that calls the function of ``source``, if that line is in another file or in a loop;
        else null.
      seconds: mean seconds in one step.
    """

    cause: str
    source: Frame | None
    expression: str | None
    caller: Frame | None
    seconds: float


class StepTime(Entry):
    """The mean wall time of one step of the training loop in the main process, divided by source line. All
    seconds are those of one step.

    Attributes:
      first_step, last_step: the first and the last of the steps whose mean is taken.
      steps: number of steps whose mean is taken. Steps under the profiler are left out.
      includes_compiling: true if the mean includes steps that compiled something, because there are too few
        other steps.
      lines: the lines that take time, the most expensive first.
      rest_seconds: the time that no measurement assigns to a line: Python code, dispatch, and waiting that
        was not recorded.
      device_waits_share: the share of the time of ``profiled_steps`` in which a device executed nothing, from
        0 to 1; the mean over the devices. null: JAX's profiler did not measure this.
      profiled_steps: the first and the last step of the profile that gives ``device_waits_share``; null:
        there is none.
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
      text: the observation as a sentence.
      compilation, program: the ids of the compilation and of the program in which it was observed.
      source: the line of the user's code where it was observed; null: none.
      target, setting: the target (a machine given with ``--target``) or the setting (values that ``run
        --vary`` gave the program) for which it was observed, if the finding has observations of several; else
        null.
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
      function: id of the function; null: the finding is about no function.
      fix: what to do, in words; null: no fix is known.
      seconds: seconds lost so far; null: unknown.
      at_most: true if the fix may save less than ``seconds``: other lines of code need some of the programs
        that were compiled in this time, or the seconds are a share of the time in which a program ran.
      timed: true if the finding is reported because of measured seconds. Another run of the same program may
        then not have it.
      path: the argument or array that the finding is about; null: it is about none.
      targets: names of the targets (machines compiled for) whose programs have the finding.
      settings: names of the settings (values that ``run --vary`` gave the program) with which the program has
        the finding; empty if there is only one setting.
      contexts: which forms of the program have the finding: the program that ran, programs for targets,
        programs with other settings of ``run --vary``.
      id: an id that stays the same in later runs.
      subject: what the finding is about, as text; it distinguishes several findings of one rule in one
        function.
      fix_kind: the action of the fix, for programs that apply it: ``pad``, ``donate``, ``device_put``, ...;
        ``advice``: the fix is only known in words; null: no fix is known.
      fix_arguments: the arguments of ``fix_kind``: ``{"donate_argnames": ["x"]}``.
      sub_run: the run to which the ids in this entry belong: its position in the report's list ``sub_runs``;
        null: they belong to the run of the report.
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
    at_most: bool
    timed: bool
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
        """Return the entry of the JSON report for the finding ``f``, with its title, evidence and fix as
        text. ``sub_run`` is the run to which the ids in ``f`` belong: its position in the report's list
        ``sub_runs``. None: they belong to the run of the report."""
        fix = fix_of(f)
        return cls.copy_of(
            f,
            title=title(f),
            evidence=[Evidence.copy_of(e, text=evidence(e)) for e in f.evidence],
            fix=fix_text(f),
            targets=list(f.contexts.targets),
            settings=list(f.contexts.settings),
            id=stable_id(f),
            subject=subject(f),
            fix_kind=fix.kind if fix is not None else None,
            fix_arguments=_as_text(fix.arguments) if fix is not None else {},
            sub_run=sub_run,
        )


def _as_text(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return ``arguments``, those of a fix, with each message as text."""
    return {n: text(v) if isinstance(v, Message) else v for n, v in arguments.items()}


# -- comparisons ---------------------------------------------------------------------------------------------


class OverAxes(Entry):
    """The sum of a program's collectives that communicate over the same mesh axes.

    Attributes:
      axes: the mesh axes; null: unknown; empty: each group of devices has one device.
      count: number of collective instructions.
      executions: how often these instructions run in one call of the program, all together, at most; null:
        unknown.
      wire_bytes: bytes that one device sends for them in one call, at most; null: unknown.
    """

    axes: list[str] | None
    count: int
    executions: int | None
    wire_bytes: int | None


class Fit(Entry):
    """Whether a program fits into the memory of a device.

    Attributes:
      used_bytes: bytes that the program needs on one device. If the compiler failed early, only those of its
        temporary buffers, or of a single operation that needs too much. null: unknown.
      capacity_bytes: memory of the device, or if a single operation needs too much, the compiler's limit for
        one operation; null: unknown, or the program was not compiled for a target.
      fits: whether the program fits; null: unknown, or the program was not compiled for a target (a machine
        given with ``--target``).
    """

    used_bytes: int | None
    capacity_bytes: int | None
    fits: bool | None


class Column(Entry):
    """One column of a comparison: the program of a function for one target (a machine to compile for,
    ``v5e:4x4``), or with one setting (values that ``run --vary`` gave the program).

    Attributes:
      sub_run: the run that has the program: its position in the report's list ``sub_runs``; null: the run of
        the report.
      settings: the setting: name of an option or environment variable -> value.
      target: the name of the target; null: the program is for the devices of this machine.
      program: id of the program.
      state: how far the compilation for the target is (``state`` of ``Program``); ``ok`` if ``target`` is
        null.
      fusions: number of fusions; null: unknown.
      collectives: the sums of the collectives, one for each set of mesh axes; null: unknown.
      estimated_cycles: cycles of one call, estimated by a TPU's compiler.
      compile_seconds: seconds that compiling for the target took; null: unknown, or not for a target.
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
    """The programs of one function side by side: one column for each target (a machine to compile for,
    ``v5e:4x4``) and each setting (values that ``run --vary`` gave the program)."""

    function: str
    columns: list[Column]


class SlowestCompilation(Entry):
    """The compilation that took longest in one rank (process) of a multi-process program.

    Attributes:
      site: the user's line that called the function; null: unknown.
      function: the name of the function.
    """

    site: Frame | None
    function: str
    seconds: float


class Rank(Entry):
    """One process (rank) of a program that runs in several processes.

    Attributes:
      rank: the number of the process.
      directory: the name of the directory in which the process was recorded.
      state: ``exited``, ``stopped`` (an orderly end, exit code unknown), ``running`` or ``lost`` (no end in
        the log).
      steps: number of steps of the training loop; null: not counted.
      compilations: number of compilations.
      shared_programs: names of the programs that run on devices of several processes, in the order in which
        this process compiled them. Equal programs of different processes have equal names.
      program_memory_bytes: the memory that the largest program needs on one device; null: unknown.
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
    """The processes (ranks) of a program that runs in several processes.

    Attributes:
      size: number of processes; null: unknown.
      missing: numbers of the processes that recorded nothing.
      groups: groups of processes that compiled equal programs, each as a list of their numbers. Several
        groups mean that the processes compiled different programs, or the same in another order.
      ranks: the recorded processes.
    """

    size: int | None
    missing: list[int]
    groups: list[list[int]]
    ranks: list[Rank]


class Report(Entry):
    """The whole JSON report of a run.

    Attributes:
      schema: the version of the format.
      jaxscope: the version of jaxscope.
      ledger: the calls for which JAX traced, lowered or compiled something: number and seconds for each
        cause, function and source line.
      outside_jit: the user's lines that made JAX compile operations outside jit or functions of libraries.
      stale_captures: values that watched functions use, that are not part of JAX's cache key, and that
        changed after the trace.
      buckets: sizes to which inputs of varying size can be padded.
      arrays: snapshots of the live arrays; null: none was taken.
      transfers: copies between host and devices, and between devices; null: they were not counted.
      profiles: measurements of JAX's profiler.
      step_time: what takes the time of a training step, by line; null: unknown.
      line_times: where the main thread spent its time, by line; null: not measured.
      sub_runs: the reports of the other runs of the same program: with other settings (``--vary``), or on
        other numbers of devices.
      comparisons: the programs of each function side by side, for several settings (``run --vary``) or
        targets (``run --target``).
      ranks: the processes of a program that runs in several processes; null: there is only one.
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
    line_times: LineTimes | None
    findings: list[Finding]
    sub_runs: list[Report]
    comparisons: list[Comparison]
    ranks: Ranks | None


def schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a report."""
    return schema_of(Report, "jaxscope report")


def schema_of(kind: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``kind``, the type of a JSON object that jaxscope writes.
    ``title`` is the title of the schema."""
    found: dict[str, Any] = msgspec.json.schema(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **found}
