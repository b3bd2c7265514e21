"""Read the result of a trace, lowering or compilation from the local variables of JAX's frames, and write it
to the log as an event ``Traced``, ``Lowered`` or ``Compiled``.

JAX announces the end of a phase (trace, lowering, compilation) after it has assigned the results to local
variables. A phase that ended with an exception has no result.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import shield, texts
from jaxscope.capture.calls import shardings, signature, statics
from jaxscope.capture.calls.in_progress import Call, Weak
from jaxscope.capture.calls.interning import Introductions
from jaxscope.capture.closures import captured_constants, differing_results, seeded_noise
from jaxscope.capture.closures.differing_results import Differing
from jaxscope.capture.closures.monitor import ClosureMonitor
from jaxscope.capture.program_memory import MemoryReading, Readings
from jaxscope.capture.rank import Rank
from jaxscope.capture.retarget import Retarget
from jaxscope.jax_internals import first_known, known, known_or_none
from jaxscope.jax_internals.devices import device_ranges
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import DifferingResult, OutLeaf
from jaxscope.schema.libraries import keeps_callbacks

Stack = dict[str, FrameType]


class Lowering:
    """A lowered program, as far as it is remembered until it is compiled, perhaps much later.

    Attributes:
      call: the call that lowered the program.
      program: the program's id; None: unknown.
      constants: the number of captured constants, which are JAX's first arguments of the program; None:
        unknown.
    """

    __slots__ = ("call", "constants", "program")

    def __init__(self, call: Call, program: str | None, constants: int | None) -> None:
        self.call, self.program, self.constants = call, program, constants


class Phases:
    """Writes the events of phases (trace, lowering, compilation) that have ended.

    Args:
      introductions: writes each function to the log when it first occurs.
      ir: which texts of the user's programs are stored: none, stats, stablehlo, hlo or all.
      monitor: checks whether values that watched functions (``jaxscope.watch``) have captured were changed.
      retarget: lowers each program for the accelerators of ``--target``; None: there are none.
    """

    def __init__(
        self,
        writer: Writer,
        introductions: Introductions,
        ir: str,
        monitor: ClosureMonitor,
        retarget: Retarget | None = None,
    ) -> None:
        self._writer = writer
        self._monitor = monitor
        self.introductions = introductions
        self.ir = ir
        self.retarget = retarget
        self.rank: Rank | None = None  # this process as a rank of a job with several processes
        self.memory = Readings(lambda call, memory: writer.emit(ev.MemoryRead(call=call, memory=memory)))
        self.traces = Weak()  # jaxpr -> the latest Call with this trace
        self.modules = Weak()  # MLIR module -> its Lowering

    def traced(self, call: Call, stack: Stack, seconds: float, *, complete: bool) -> None:
        """Write the event ``Traced`` at the end of the trace of ``call``, which took ``seconds``. Write
        ``TraceReused`` instead if JAX found the trace in its cache.

        Args:
          stack: JAX's frames by function name.
          complete: whether JAX's events of the beginning of a trace reach this process. If not, it is unknown
            whether the trace was reused, and ``Traced`` is written.
        """
        frame = jax_internals.TraceFrame.on(stack)
        jaxpr = known_or_none(frame.jaxpr) if frame is not None else None
        if jaxpr is not None:
            self.traces.put(jaxpr, call)
        if not call.retraced and complete:
            self._writer.emit(ev.TraceReused(call=call.number, seconds=seconds))
            return
        call.trace_written = True
        constants = jax_internals.const_arrays(jaxpr)
        if self._monitor:
            shield.attempt("stale_captures", self._monitor.traced, call.number, constants or ())
        tree, out = None, None
        if frame is not None and known(frame.out_avals):
            tree, out = shield.attempt("trace_results", results, frame.out_avals) or (None, None)
        captured, differing, noise = None, None, None
        drawn = captured_constants.Drawn()
        if jaxpr is not None:
            drawn = shield.attempt("keys_drawn_from", captured_constants.keys_drawn_from, jaxpr) or drawn
            differing = shield.attempt("differing_results", differing_results.find, jaxpr)
            noise = shield.attempt("seeded_noise", seeded_noise.adds_noise, jaxpr)
        paths = call.paths if call.paths is not None and len(call.paths) == drawn.of else None
        if constants is not None and frame is not None:
            captured = shield.attempt(
                "captured_constants",
                captured_constants.of_trace,
                known_or_none(frame.fun),
                constants,
                signature.is_array,
                jaxpr,
                drawn.constants,
            )
        self._writer.emit(
            ev.Traced(
                call=call.number,
                seconds=seconds,
                out_tree=tree,
                out=out,
                captured=captured,
                equations=jax_internals.equation_count(jaxpr),
                effects=effects(jaxpr),
                draws=_at(drawn.arguments, paths),
                draws_alike=_at(drawn.on_devices, paths),
                seeded_noise=noise,
                differing=None if differing is None else [_named(d, out) for d in differing],
            )
        )

    def lowered(self, call: Call, stack: Stack, seconds: float) -> None:
        """Write the event ``Lowered`` at the end of the lowering of ``call``, which took ``seconds``, and
        store the program's StableHLO, unless ``ir`` excludes it. Also lower a program of the user for each
        accelerator of ``--target``. ``stack`` has JAX's frames by function name."""
        frame = jax_internals.LoweringFrame.on(stack)
        outer_frames = [
            outer
            for kind in (jax_internals.LowererFrame, jax_internals.ResolveFrame)
            if (outer := kind.on(stack)) is not None
        ]
        module = None
        if frame is not None:
            module = known_or_none(jax_internals.LoweringResult(frame.lowering_result).mlir_module)
        donated = known_or_none(first_known(*(f.donated_invars for f in outer_frames)))
        paths = call.paths
        flags = list(donated) if donated is not None else None
        options = first_known(*(f.compiler_options_kvs for f in outer_frames))
        platforms = known_or_none(frame.platforms) if frame is not None else None
        devices = known_or_none(frame.num_devices) if frame is not None else None
        program = None
        if self.ir != "none" and module is not None and platforms and devices and known(options):
            program = shield.attempt("stablehlo", self._stablehlo, call, module, options, platforms, devices)
        self._writer.emit(
            ev.Lowered(
                call=call.number,
                seconds=seconds,
                program=program,
                module=_text(known_or_none(frame.module_name)) if frame is not None else None,
                donated=_donated(flags, paths),
                num_partitions=devices,
                platforms=[str(p) for p in platforms or ()],
                **(shield.attempt("asked_shardings", _jit_shardings, stack, paths) or _UNKNOWN_SHARDINGS),
            )
        )
        if module is not None:
            constants = known_or_none(frame.num_const_args) if frame is not None else None
            self.modules.put(module, Lowering(call, program, constants))
            resolve_frame = stack.get(jax_internals.ResolveFrame.function)
            if self.retarget is not None and call.detail and resolve_frame is not None:
                shield.attempt("retarget", self.retarget.lowered, call, resolve_frame, program)

    def compiled(self, call: Call, stack: Stack, seconds: float) -> None:
        """Write the event ``Compiled`` at the end of the compilation of ``call``, which took ``seconds``.
        Also store the HLO of a program of the user, unless ``ir`` excludes it. ``stack`` has JAX's frames by
        function name."""
        frame = jax_internals.CompileFrame.on(stack)
        executable = known_or_none(frame.xla_executable) if frame is not None else None
        self.introductions.backend(stack)
        lowering: Lowering | None = self.modules.get(
            known_or_none(frame.computation) if frame is not None else None
        )
        program = lowering.program if lowering is not None else None
        memory = cost = results = None
        if executable is not None and self.ir != "none":
            memory = MemoryReading(executable, seconds)
            cost = shield.attempt("cost", texts.cost, executable)
            if call.detail and program is not None and self.ir in ("all", "hlo"):
                shield.attempt("hlo", self._hlo, program, executable)
        outer = jax_internals.ExecutableFrame.on(stack)
        if executable is not None and outer is not None:
            results = shield.attempt("executable", _executable, outer, executable, lowering)
        callbacks = known_or_none(frame.host_callbacks) if frame is not None else None
        calls_back = None if callbacks is None else bool(callbacks)
        cache = shield.attempt("persistent_cache", persistent_cache, call.cache, seconds, calls_back)
        late = memory is not None and not memory.read
        self._writer.emit(
            ev.Compiled(
                call=call.number,
                seconds=seconds,
                program=program,
                persistent_cache=cache[0] if cache else call.cache,
                persistent_cache_reason=cache[1] if cache else None,
                memory=memory.memory if memory is not None and not late else None,
                cost=cost or {},
                **(results or {"dropped_arguments": None}),
            )
        )
        if memory is not None and late:
            self.memory.follow(call.number, memory)
        if self.rank is not None and outer is not None:
            module = _text(known_or_none(outer.name))
            shield.attempt("rank", self._of_job, call, outer, program, module, calls_back is not False)

    def _of_job(
        self,
        call: Call,
        frame: jax_internals.ExecutableFrame,
        program: str | None,
        module: str | None,
        calls_back: bool,
    ) -> None:
        """Report to ``rank`` which program ``call`` has compiled, for the comparison with those of the other
        ranks (processes of the job).

        Args:
          frame: JAX's frame that has the list of devices.
          program: the id of the program; None: unknown.
          module: the name of its module; None: unknown.
          calls_back: whether it may contain callbacks.
        """
        devices = known_or_none(frame.device_list)
        if self.rank is not None and devices is not None:
            processes = len({d.process_index for d in devices})
            self.rank.compiled(call.number, call.function, program, module, processes, calls_back=calls_back)

    def _stablehlo(self, call: Call, module: Any, options: Any, platforms: Any, devices: int) -> str | None:
        """Return the id of a program that ``call`` lowered; None if the id cannot be computed. Also store the
        program's StableHLO, unless ``ir`` excludes it or JAX itself defines the function.

        Args:
          module: the program's StableHLO as an MLIR module.
          options: the compiler options of jit.
          platforms: the platforms for which the program was lowered.
          devices: the number of devices.
        """
        text = texts.stablehlo(module)
        constants = shield.attempt("constants", texts.elided, module, text)
        if constants is None:
            return None  # programs that differ in their constants only would get the same id
        program = texts.program_id(text, options, platforms, devices, constants)
        if call.keeps_lowered and self.ir in ("all", "stablehlo"):
            self._store(program, "stablehlo", text)
        return program

    def _hlo(self, program: str, executable: Any) -> None:
        """Store the HLO of ``executable`` for the program with the id ``program``."""
        self._store(program, "hlo", texts.hlo(executable))

    def _store(self, program: str, stage: str, text: str) -> None:
        """Store ``text``, the program with the id ``program`` as ``stage`` (``stablehlo`` or ``hlo``), in a
        file beside the log, and log the event ``ProgramText``. If the text cannot be stored, log nothing."""
        stored = self._writer.put_text(text)
        if stored is not None:
            self._writer.emit(ev.ProgramText(program=program, stage=stage, blob=stored[0], bytes=stored[1]))

    def failed(self, call: Call, phase: str, seconds: float) -> None:
        """Log that an exception ended the ``phase`` (trace, lower or compile) of ``call`` after ``seconds``:
        the event ``PhaseFailed``."""
        call.trace_written = call.trace_written or phase == ev.TRACE
        if phase == ev.TRACE and self._monitor:
            shield.attempt("stale_captures", self._monitor.failed, call.number)
        self._writer.emit(ev.PhaseFailed(call=call.number, phase=phase, seconds=seconds))


def results(out_avals: Any) -> tuple[str | None, list[OutLeaf]]:
    """Return (the pytree of a trace's results as text, the leaves of the results as data). ``out_avals`` is
    JAX's FlatTree of the results, from the frame of the trace."""
    tree, pairs = jax_internals.out_paths(out_avals)
    leaves = []
    for path, aval in pairs:
        weak = getattr(aval, "weak_type", None)
        explicit = getattr(aval, "sharding", None)
        axes = getattr(getattr(explicit, "mesh", None), "axis_names", None)
        space = getattr(aval, "memory_space", None)
        leaves.append(
            OutLeaf(
                path=path,
                shape=signature.dimensions(getattr(aval, "shape", None)),
                dtype=_text(signature.dtype_name(aval.dtype)) if hasattr(aval, "dtype") else None,
                weak_type=weak if isinstance(weak, bool) else None,
                memory_kind=None if space is None else str(getattr(space, "name", space)).lower(),
                sharding=str(getattr(explicit, "spec", None)) if axes else None,
            )
        )
    return statics.limited(statics.ADDRESS.sub("", tree)), leaves


_UNKNOWN_SHARDINGS: dict[str, Any] = {"asked": None, "asked_in": None, "asked_out": None}


def _jit_shardings(stack: Stack, paths: list[str] | None) -> dict[str, Any]:
    """Return the fields of the event ``Lowered`` for the shardings that jit was given (``in_shardings``,
    ``out_shardings``). All are None if unknown. If jit was given none, the result is ``{"asked": []}``.

    ``asked`` lists the shardings, each once. ``asked_in`` and ``asked_out`` have, for each flat argument and
    result, the position of its sharding in ``asked``; None: jit was given no sharding for it. ``asked_in`` is
    None if ``paths`` is None or does not have one path for each sharding.

    Args:
      stack: JAX's frames by function name.
      paths: the paths of the flat arguments; None: unknown.
    """
    both = jax_internals.asked_shardings(stack)
    if both is None:
        return _UNKNOWN_SHARDINGS
    if not any(s is not None for side in both for s in side):
        return {"asked": []}
    table = shardings.Shardings()
    inputs, outputs = ([table.index(s) for s in side] for side in both)
    return {
        "asked": table.table,
        # If their number differs from that of the arguments (one sharding may be for several arrays), it is
        # unknown which belongs to which.
        "asked_in": inputs if paths is not None and len(inputs) == len(paths) else None,
        "asked_out": outputs,
    }


def _at(positions: frozenset[int] | None, paths: list[str] | None) -> list[str] | None:
    """Return the paths of the arguments at ``positions``; None if the positions or the paths are unknown."""
    if positions is None or paths is None:
        return None
    return [paths[n] for n in sorted(positions)]


def _named(d: Differing, out: list[OutLeaf] | None) -> DifferingResult:
    """Return ``d``, a result that differs between devices, as data for the log. The path of the result comes
    from ``out``, the leaves of all results; it is None if unknown."""
    known = out is not None and d.result is not None and d.result < len(out)
    return DifferingResult(out[d.result].path if known else None, d.aval, d.axes)  # type: ignore[index]


def _donated(flags: list[bool] | None, paths: list[str] | None) -> list[str] | None:
    """Return the paths of the donated arguments, in the order of the arguments; None if they are unknown.

    Args:
      flags: for each flat argument whether it is donated; None: unknown.
      paths: the path of each flat argument; None: unknown.
    """
    if flags is None:
        return None
    positions = [i for i, flag in enumerate(flags) if flag]
    if paths is None:
        return None if positions else []
    return [paths[i] for i in positions if i < len(paths)]


def _executable(
    frame: jax_internals.ExecutableFrame, executable: Any, lowering: Lowering | None
) -> dict[str, Any]:
    """Return the fields of the event ``Compiled`` that describe ``executable``, the compiled program: its
    module's name, the shardings of the arguments and results, the devices, the dropped arguments.

    Args:
      frame: JAX's frame that has created the executable.
      lowering: what is remembered of the lowering of the program; None: unknown.
    """
    in_table, out_table = shardings.Shardings(), shardings.Shardings()
    constants = lowering.constants if lowering is not None else None
    outputs = shield.attempt("recover_shardings", jax_internals.recovered_out_shardings, executable, frame)
    inputs = shield.attempt(
        "in_shardings", jax_internals.in_shardings_by_position, executable, frame, constants
    )
    devices = known_or_none(frame.device_list)
    return {
        "in_sharding_of": [in_table.index(s) for s in inputs or ()],
        "in_shardings": in_table.table,
        "module": _text(known_or_none(frame.name)),
        "out_sharding_of": [out_table.index(s) for s in outputs or ()],
        "out_shardings": out_table.table,
        "out_committed": known_or_none(frame.committed),
        "dropped_arguments": jax_internals.dropped_arguments(frame, constants),
        "devices": device_ranges([d.id for d in devices]) if devices is not None else None,
    }


def persistent_cache(
    outcome: str | None, seconds: float, callbacks: bool | None
) -> tuple[str | None, str | None]:
    """Return what JAX's persistent compilation cache did in a compilation: (``hit``, ``miss`` or ``off``; the
    reason why the cache is off or did not store the program). The reason is None if there is none or it is
    unknown.

    Args:
      outcome: ``hit`` or ``miss``, as JAX announced it during this compilation; None: JAX announced nothing.
      seconds: how long the compilation took.
      callbacks: whether the program calls back into this process; None: unknown.
    """
    import jax

    config: Any = jax.config  # first: JAX 0.10 announces the use of the cache even if no directory is set
    if not config.jax_enable_compilation_cache:
        return "off", "jax_enable_compilation_cache is False"
    if not config.jax_compilation_cache_dir:
        return "off", "jax_compilation_cache_dir is not set"
    if outcome == "hit":
        return "hit", None
    if callbacks is not False and not keeps_callbacks(jax.__version__):
        reason = f"not stored: JAX {jax.__version__} keeps no program that calls back into this process"
        return "miss", reason if callbacks else None  # None: it may call back
    least = float(config.jax_persistent_cache_min_compile_time_secs)
    if seconds < least:
        limit = f"jax_persistent_cache_min_compile_time_secs={least:g}"
        return "miss", f"not stored: compiled in {seconds:.2f} s, below {limit}"
    return "miss", None


def effects(jaxpr: Any) -> list[str] | None:
    """Return the names of the effects of ``jaxpr`` as sorted text without memory addresses; None if they are
    unknown."""
    values = known_or_none(jax_internals.Jaxpr(jaxpr).effects)
    if values is None:
        return None
    return sorted(
        {type(e).__name__ if "object at" in str(e) else statics.ADDRESS.sub("", str(e)) for e in values}
    )


def _text(value: object) -> str | None:
    """Return ``value`` if it is a string, else None."""
    return value if isinstance(value, str) else None
