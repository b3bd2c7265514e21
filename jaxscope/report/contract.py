"""The types of the JSON report, schema 1. ``jaxscope report --schema`` prints their JSON Schema.

Keys are added, never renamed or removed. Units stand in the names: ``_seconds`` is wall time, ``_bytes``
without ``global_`` is on one device. What is not known is null, never 0 and never an empty list.
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
    """What all entries have in common."""

    @classmethod
    def copy_of(cls: type[T], source: object, /, **more: object) -> T:
        """Make an entry with the attributes of ``source`` that have the names of its fields, and ``more``."""
        names, read = _copied(cls, tuple(more))
        more.update(zip(names, read(source), strict=True))
        return cls(**more)


@functools.cache
def _copied(
    kind: type[Entry], given: tuple[str, ...]
) -> tuple[list[str], Callable[[object], tuple[Any, ...]]]:
    """Return the names of the fields that are not ``given``, and a function that reads their values."""
    names = [name for name in kind.__struct_fields__ if name not in given]
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda source: tuple(getattr(source, name) for name in names)


# -- the run -------------------------------------------------------------------------------------------------


class Stop(Entry):
    """A process whose recording stopped before its end."""

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
      stack: the user's lines, the innermost first.
      library: the package, other than JAX, whose line made the call that failed; None: the user's line made
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
        return cls.copy_of(died, removed_name=None if removed is None else RemovedName.copy_of(removed))


class Device(Entry):
    """One device of JAX's default backend."""

    id: int
    kind: str
    process_index: int


class Target(Entry):
    """A target that the programs were compiled for (``run --target``), without its devices."""

    name: str
    platform: str
    devices: int
    slices: int


class Missing(Entry):
    """A part of the recording that is not available."""

    seam: str
    reason: str


class Phase(Entry):
    """A phase that began and whose end is not recorded: trace, lower or compile."""

    compilation: str
    function: str
    phase: str
    time_seconds: float | None


class WallTime(Entry):
    """The seconds of a run by what its main process did. The parts do not overlap, and add up to ``seconds``.

    Attributes:
      before_compiling: until the first trace, lowering or compilation began: imports and set-up.
      waiting: since then, while the program waited for values of the devices; null: not known, and part of
        ``rest``.
    """

    seconds: float
    before_compiling: float
    compiling: float
    waiting: float | None
    rest: float


class RunFacts(Entry):
    """The program as a whole.

    ``seconds``: wall time; ``compiling_seconds``: the part of it spent tracing, lowering and compiling.
    ``wall_time``: all parts of it; null: nothing was compiled, or they are not known.
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
      captures: the functions, classes and callable objects that it captures, as ``loss=l2``. Functions that
        capture different ones have different ids, even if they have the same name, file and line.
      library: it is not the user's.
      eager: it is an operation outside jit.
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
    """Wall time of each phase; null: it did not happen."""

    trace: float | None
    lower: float | None
    compile: float | None


class Argument(Entry):
    """One array argument of a cache key. ``origin``: the user's line that made the array."""

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
    """One static value of a cache key."""

    path: str
    repr: str
    type: str
    compares: str | None


class CacheKey(Entry):
    """What JAX compares. ``missing``: parts that were not recorded."""

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
    """Why a call was not served from a cache: its kind, the first cache that misses, the argument or setting.
    ``before_value`` and ``after_value``: the values as data, whose text is in ``before`` and ``after``."""

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
        """Return ``c`` with its words. Callers must not change the result: equal causes share it."""
        before, after = in_words.values(c)
        return cls.copy_of(
            c, before=before, after=after, text=in_words.clause(c), before_value=c.before, after_value=c.after
        )


class Intent(Entry):
    """The requested sharding, the compiled one and the one the array has, of one argument or
    result.
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
    """A call that missed a cache; it was traced, lowered or compiled, or only left the fast path.

    ``ordinal``: its number among the compilations of the function, as in ``train_step#2``.
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
    """A recompile to be expected, because a result does not fit the argument it becomes."""

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
    """What one cause of recompiles cost: compilations and seconds."""

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
    """A value that a traced function read without being passed it, and that has changed since."""

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
    """A set of sizes to pad to: how many compilations are left, and the share of elements that is padding."""

    sizes: list[int]
    compilations: int
    padding_share: float


class Bucket(Entry):
    """An axis of an argument that had several sizes.

    ``observed``: [size, number of calls or compilations] of each size. ``calls``: null if compilations are
      counted.
    """

    function: str
    path: str
    axis: int
    observed: list[tuple[int, int]]
    calls: int | None
    choices: list[Padding]


# -- programs ------------------------------------------------------------------------------------------------


class Problem(Entry):
    """A line of a program's text that could not be read. ``stage``: hlo or stablehlo."""

    stage: str
    line: int
    text: str


class Fusion(Entry):
    """One fusion of the compiled program; bytes of one execution."""

    name: str
    kind: str
    ops: dict[str, int]
    bytes_in: int | None
    bytes_out: int | None
    executions: int | None
    sources: list[Frame]


class Fusions(Entry):
    """The fusions of a program; ``nested``: those inside another."""

    total: int
    by_kind: dict[str, int]
    nested: int
    each: list[Fusion] = msgspec.field(name="list")


class Collective(Entry):
    """One collective.

    ``bytes``: bytes of its result on one device (of a reduce-scatter, the part that stays on the device).
      ``operand_bytes``: bytes of its operands on one device. ``wire_bytes``: bytes that a device sends in
      one execution. ``source_certainty``: ``certain`` if the compiler kept the line, ``likely`` if it is
      the line of a neighbouring instruction. ``transfer``: for a send or recv between slices, the
      collective of which it is a part. ``axes_around``: if the groups are not mesh axes, the axes that
      contain them. ``conditional``: the conditional that has it in a branch; ``executions`` is then an
      upper bound.
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
    """A loop of the compiled program; ``trip_count``: null where it is not known."""

    name: str
    trip_count: int | None


class Upcast(Entry):
    """Conversions to a wider type; bytes of the results."""

    before: str
    after: str
    count: int
    bytes: int | None
    source: Frame | None


class Callback(Entry):
    """Calls from the program into Python; bytes of one call."""

    kind: str | None
    count: int
    ordered: bool | None
    in_loop: bool
    bytes_to_host: int | None
    bytes_from_host: int | None
    source: Frame | None


class RepeatedBlock(Entry):
    """The same ``length`` operations, written out ``times`` times."""

    length: int
    times: int
    carried: bool
    in_loop: bool
    source: Frame | None


class Donation(Entry):
    """An argument's memory: aliased, unused (donated without effect) or possible (not
    donated, and a result would fit).
    """

    path: str | None
    bytes: int | None
    device_bytes: int | None
    status: str | None
    reason: str | None
    output: str | None


class Constant(Entry):
    """An array that the function captured; whole array."""

    name: str | None
    bytes: int | None
    shape: list[int | None] | None
    dtype: str | None
    source: Frame | None


class Rematerialization(Entry):
    """An operation that the compiler computes again to save memory."""

    name: str | None
    before: str | None = msgspec.field(name="from")
    after: str | None = msgspec.field(name="to")
    bytes: int | None
    source: Frame | None
    text: str


class Contributor(Entry):
    """An argument or a result by the user's name. ``of``: argument or output."""

    path: str | None
    of: str
    bytes: int | None
    global_bytes: int | None


class Buffer(Entry):
    """One of the largest buffers that the compiler named; where it named none, one of the largest values of
    the lowered program (``kind``: value, or value on all devices).
    """

    bytes: int | None
    kind: str | None
    shape: str | None
    operation: str | None
    source: dict[str, Any] | None


class Memory(Entry):
    """Memory of one program on one device. From ``fits`` on: of a target, null for the machine that ran."""

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
    """The least time that one call can take on the target, by what limits it."""

    compute_seconds: float | None
    memory_seconds: float | None
    axes_seconds: dict[str, float | None]
    least_seconds: float | None
    binds: str | None
    quoted: list[str]


class Texts(Entry):
    """The contents of the program's StableHLO and HLO.

    ``matrix_flops``, ``estimated_cycles``, ``wire_bytes_by_axes``: null if they are not exact.
      ``_at_least``: a lower bound, with the smallest branch of each conditional and without unknown parts
      (the work of custom kernels, loops whose number of iterations is unknown). ``_at_most``: an upper
      bound, with the largest branch of each conditional.
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
    """One program.

    ``of``: if this program was compiled for a target, the program of the same call that ran. The fields
      from ``state`` on are only set for a program for a target.
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
    """What the device's allocator reported."""

    device: int
    in_use_bytes: int | None
    peak_bytes: int | None
    limit_bytes: int | None


class ArrayGroup(Entry):
    """Live arrays of one name, shape, dtype and sharding; list indices in the name are ``[*]``."""

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
    """Live arrays of one variable (``state.params``), kind (parameters, optimizer state, batch, other) or
    dtype; ``name`` is null where it is unknown."""

    name: str | None
    count: int
    bytes: int | None


class Snapshot(Entry):
    """The live arrays at one moment. ``bytes``, also of its sums: on all devices of
    this process, each buffer once."""

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
    """All looks at the live arrays, in order of time."""

    snapshots: list[Snapshot]


class Transfer(Entry):
    """Transfers at one line. ``blocked_seconds``: how long the program waited there; ``caller``: the line
    that called the function of ``source``, where it is always the same."""

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
    """The measured time of one line in one step on one device, on average. ``source``: null: the line is
    not known.

    ``opcodes``: these seconds by HLO opcode.
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
    """What one line takes of a step.

    Attributes:
      cause: wait (for a value of a device), copy (to or between devices) or compile (trace, lower, compile).
      source: null: the line is not known.
      expression: in the source; null: several, or not known.
      caller: the line that calls the helper which ``source`` is in; null: not of interest.
    """

    cause: str
    source: Frame | None
    expression: str | None
    caller: Frame | None
    seconds: float


class StepTime(Entry):
    """The mean time of a step of the main process, and where it goes. Seconds are of one step.

    Attributes:
      steps: how many were counted, from ``first_step`` to ``last_step``.
      includes_compiling: of too few steps nothing was compiled; else those that compiled are left out.
      rest_seconds: Python code, dispatch, and waiting that was not recorded.
      device_waits_share: share of ``profiled_steps`` (first, last) in which a device executed nothing, mean
        over the devices; null: no profile shows it.
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
    """Where a finding can be seen."""

    text: str
    compilation: str | None
    program: str | None
    source: Frame | None
    step: int | None
    target: str | None
    setting: str | None


class Finding(Entry):
    """A mistake, or something that costs time or memory, and what to do about it.

    ``severity``: error, warning or note; ``certainty``: certain or likely.
    ``sub_run``: the run to which its ids belong, as a position in ``sub_runs``; null: the run itself."""

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
        """Return ``f`` with its words."""
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
    """The collectives of one program over some mesh axes."""

    axes: list[str] | None
    count: int
    executions: int | None
    wire_bytes: int | None


class Fit(Entry):
    """Whether a program fits; bytes on one device."""

    used_bytes: int | None
    capacity_bytes: int | None
    fits: bool | None


class Column(Entry):
    """One function's program under one setting or for one target."""

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
    """One function's programs side by side."""

    function: str
    columns: list[Column]


class SlowestCompilation(Entry):
    """The most expensive compilation of a rank; ``site``: the line that called it."""

    site: Frame | None
    function: str
    seconds: float


class Rank(Entry):
    """One process of a job.

    ``shared_programs``: the programs that run on several processes, in the order of compilation.
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
    """The processes of a job; ``groups``: their numbers, by equal programs; ``missing``: recorded nothing."""

    size: int | None
    missing: list[int]
    groups: list[list[int]]
    ranks: list[Rank]


class Report(Entry):
    """The whole document.

    ``sub_runs``: runs of the same program with other settings, or on other numbers of devices.
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
