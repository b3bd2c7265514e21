"""The end of a phase -> Traced, Lowered, Compiled: what JAX has just made, read from its frames.

A phase ends in an ``__exit__``, after its results were assigned to locals; where the result is not
there, the phase ended in an exception of the program's.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import shield, texts
from jaxscope.capture.calls import shardings, signature, statics
from jaxscope.capture.calls.in_progress import Call, Weak
from jaxscope.capture.calls.interning import Introductions
from jaxscope.capture.closures import captured_constants
from jaxscope.capture.closures.monitor import ClosureMonitor
from jaxscope.capture.retarget import Retarget
from jaxscope.jax_internals import first_known, known, known_or_none
from jaxscope.jax_internals.devices import device_ranges
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import OutLeaf
from jaxscope.schema.libraries import keeps_callbacks

Stack = dict[str, FrameType]


class Lowering:
    """What is remembered of a module until it is compiled, perhaps much later."""

    __slots__ = ("call", "constants", "program")

    def __init__(self, call: Call, program: str | None, constants: int | None) -> None:
        self.call, self.program, self.constants = call, program, constants


class Phases:
    """Writes what the phases made. ``ir``: which texts of user functions are kept."""

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
        self.retarget = retarget  # for machines that are not there
        self.traces = Weak()  # jaxpr -> Call
        self.modules = Weak()  # MLIR module -> Lowering

    def traced(self, call: Call, stack: Stack, seconds: float, *, heard: bool) -> None:
        frame = jax_internals.TraceFrame.on(stack)
        jaxpr = known_or_none(frame.jaxpr) if frame is not None else None
        if jaxpr is not None:
            self.traces.put(jaxpr, call)
        if not call.retraced and heard:
            self._writer.emit(ev.TraceReused(call=call.number, seconds=seconds))
            return
        call.trace_written = True
        constants = jax_internals.const_arrays(jaxpr)
        if self._monitor:
            shield.attempt("stale_captures", self._monitor.traced, call.number, constants or ())
        tree, out = None, None
        if frame is not None and known(frame.out_avals):
            tree, out = shield.attempt("trace_results", results, frame.out_avals) or (None, None)
        captured = None
        if constants is not None and frame is not None:
            captured = shield.attempt(
                "captured_constants",
                captured_constants.of_trace,
                known_or_none(frame.fun),
                constants,
                signature.is_array,
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
            )
        )

    def lowered(self, call: Call, stack: Stack, seconds: float) -> None:
        frame = jax_internals.LoweringFrame.on(stack)
        around = [
            found
            for kind in (jax_internals.LowererFrame, jax_internals.ResolveFrame)
            if (found := kind.on(stack)) is not None
        ]
        module = None
        if frame is not None:
            module = known_or_none(jax_internals.LoweringResult(frame.lowering_result).mlir_module)
        donated = known_or_none(first_known(*(f.donated_invars for f in around)))
        paths = call.paths
        flags = list(donated) if donated is not None else None
        options = first_known(*(f.compiler_options_kvs for f in around))
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
                **(shield.attempt("asked_shardings", _asked, stack, paths) or _NOT_ASKED),
            )
        )
        if module is not None:
            constants = known_or_none(frame.num_const_args) if frame is not None else None
            self.modules.put(module, Lowering(call, program, constants))
            again = stack.get(jax_internals.ResolveFrame.function)
            if self.retarget is not None and call.detail and again is not None:
                shield.attempt("retarget", self.retarget.lowered, call, again, program)

    def compiled(self, call: Call, stack: Stack, seconds: float) -> None:
        frame = jax_internals.CompileFrame.on(stack)
        executable = known_or_none(frame.xla_executable) if frame is not None else None
        self.introductions.backend(stack)
        lowering: Lowering | None = self.modules.get(
            known_or_none(frame.computation) if frame is not None else None
        )
        program = lowering.program if lowering is not None else None
        memory = cost = fingerprint = results = None
        if executable is not None and self.ir != "none":
            memory = shield.attempt("memory", texts.memory, executable)
            cost = shield.attempt("cost", texts.cost, executable)
            fingerprint = shield.attempt("fingerprint", texts.fingerprint, executable)
            if call.detail and program is not None and self.ir in ("all", "hlo"):
                shield.attempt("hlo", self._hlo, program, executable)
        outer = jax_internals.ExecutableFrame.on(stack)
        if executable is not None and outer is not None:
            results = shield.attempt("executable", _executable, outer, executable, lowering)
        callbacks = known_or_none(frame.host_callbacks) if frame is not None else None
        calls_back = None if callbacks is None else bool(callbacks)
        cache = shield.attempt("persistent_cache", persistent_cache, call.cache, seconds, calls_back)
        self._writer.emit(
            ev.Compiled(
                call=call.number,
                seconds=seconds,
                program=program,
                persistent_cache=cache[0] if cache else call.cache,
                persistent_cache_reason=cache[1] if cache else None,
                memory=memory,
                cost=cost or {},
                fingerprint=fingerprint,
                **(results or {"dropped_arguments": None}),
            )
        )

    def _stablehlo(self, call: Call, module: Any, options: Any, platforms: Any, devices: int) -> str | None:
        text = texts.stablehlo(module)
        constants = shield.attempt("constants", texts.elided, module, text)
        if constants is None:
            return None  # it could be taken for a program with other constants
        program = texts.program_id(text, options, platforms, devices, constants)
        if call.detail and self.ir in ("all", "stablehlo"):
            self._store(program, "stablehlo", text)
        return program

    def _hlo(self, program: str, executable: Any) -> None:
        self._store(program, "hlo", texts.hlo(executable))

    def _store(self, program: str, stage: str, text: str) -> None:
        stored = self._writer.put_text(text)
        if stored is not None:
            self._writer.emit(ev.ProgramText(program=program, stage=stage, blob=stored[0], bytes=stored[1]))

    def failed(self, call: Call, phase: str, seconds: float) -> None:
        """``phase`` was left by an exception."""
        call.trace_written = call.trace_written or phase == ev.TRACE
        if phase == ev.TRACE and self._monitor:
            shield.attempt("stale_captures", self._monitor.failed, call.number)
        self._writer.emit(ev.PhaseFailed(call=call.number, phase=phase, seconds=seconds))


def results(out_avals: Any) -> tuple[str | None, list[OutLeaf]]:
    """The returned tree and its leaves' abstract values."""
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


_NOT_ASKED: dict[str, Any] = {"asked": None, "asked_in": None, "asked_out": None}


def _asked(stack: Stack, paths: list[str] | None) -> dict[str, Any]:
    """The fields of Lowered with what jit was given: empty lists where that is nothing, None where not known."""
    found = jax_internals.asked_shardings(stack)
    if found is None:
        return _NOT_ASKED
    if not any(s is not None for side in found for s in side):
        return {"asked": []}
    table = shardings.Shardings()
    asked_in, asked_out = ([table.index(s) for s in side] for side in found)
    return {
        "asked": table.table,
        # Another number (values that stand for several arrays): which is which is not known.
        "asked_in": asked_in if paths is not None and len(asked_in) == len(paths) else None,
        "asked_out": asked_out,
    }


def _donated(flags: list[bool] | None, paths: list[str] | None) -> list[str] | None:
    """Paths of the donated arguments; None: not known."""
    if flags is None:
        return None
    positions = [i for i, flag in enumerate(flags) if flag]
    if paths is None:
        return None if positions else []
    return [paths[i] for i in positions if i < len(paths)]


def _executable(
    frame: jax_internals.ExecutableFrame, executable: Any, lowering: Lowering | None
) -> dict[str, Any]:
    table, taken = shardings.Shardings(), shardings.Shardings()
    constants = lowering.constants if lowering is not None else None
    returned = shield.attempt("recover_shardings", jax_internals.recovered_out_shardings, executable, frame)
    given = shield.attempt(
        "in_shardings", jax_internals.in_shardings_by_position, executable, frame, constants
    )
    devices = known_or_none(frame.device_list)
    return {
        "in_sharding_of": [taken.index(s) for s in given or ()],
        "in_shardings": taken.table,
        "module": _text(known_or_none(frame.name)),
        "out_sharding_of": [table.index(s) for s in returned or ()],
        "out_shardings": table.table,
        "out_committed": known_or_none(frame.committed),
        "dropped_arguments": jax_internals.dropped_arguments(frame, constants),
        "devices": device_ranges([d.id for d in devices]) if devices is not None else None,
    }


def persistent_cache(
    seen: str | None, seconds: float, callbacks: bool | None
) -> tuple[str | None, str | None]:
    """What the persistent cache did and why, from its event and JAX's settings.

    ``seen`` is what its event said in this compilation. JAX 0.10 sends
    ``compile_requests_use_cache`` even where no directory is set, so the settings come first.
    """
    import jax

    config: Any = jax.config
    if not config.jax_enable_compilation_cache:
        return "off", "jax_enable_compilation_cache is False"
    if not config.jax_compilation_cache_dir:
        return "off", "jax_compilation_cache_dir is not set"
    if seen == "hit":
        return "hit", None
    if callbacks is None and not keeps_callbacks(jax.__version__):
        return "miss", None  # it may call back into this process
    if callbacks and not keeps_callbacks(jax.__version__):
        return "miss", f"not stored: JAX {jax.__version__} keeps no program that calls back into this process"
    least = float(config.jax_persistent_cache_min_compile_time_secs)
    if seconds < least:
        limit = f"jax_persistent_cache_min_compile_time_secs={least:g}"
        return "miss", f"not stored: compiled in {seconds:.2f} s, below {limit}"
    return "miss", None


def effects(jaxpr: Any) -> list[str] | None:
    """Names of a trace's effects, without addresses; None: not known."""
    found = known_or_none(jax_internals.Jaxpr(jaxpr).effects)
    if found is None:
        return None
    return sorted(
        {type(e).__name__ if "object at" in str(e) else statics.ADDRESS.sub("", str(e)) for e in found}
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
