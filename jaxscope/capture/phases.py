"""The end of a phase -> Traced, Lowered, Compiled: what JAX has just made, read from its frames.

A phase ends in an ``__exit__``, after its results were assigned to locals; where the result is not
there, the phase ended in an exception of the program's.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

from jaxscope.capture import captures, frames, seams, shardings, shield, signature, statics, texts
from jaxscope.capture.calls import Call, Weak
from jaxscope.capture.devices import device_ranges
from jaxscope.capture.once import Once
from jaxscope.capture.retarget import Retarget
from jaxscope.capture.stale import Stale
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.keys import OutLeaf
from jaxscope.schema.libraries import keeps_callbacks

Stack = dict[str, FrameType]


class Lowering:
    """What is remembered of a module until it is compiled, perhaps much later."""

    __slots__ = ("call", "constants", "program")

    def __init__(self, call: Call, program: str | None, constants: int) -> None:
        self.call, self.program, self.constants = call, program, constants


class Phases:
    """Writes what the phases made. ``ir``: which texts of user functions are kept."""

    def __init__(
        self, writer: Writer, once: Once, ir: str, stale: Stale, retarget: Retarget | None = None
    ) -> None:
        self._writer = writer
        self._stale = stale
        self.once = once
        self.ir = ir
        self.retarget = retarget  # for machines that are not there
        self.traces = Weak()  # jaxpr -> Call
        self.modules = Weak()  # MLIR module -> Lowering

    def traced(self, call: Call, stack: Stack, seconds: float, *, heard: bool) -> None:
        frame = stack.get(seams.TRACE_FRAME)
        local = frames.read(frame, "jaxpr", "out_avals", "fun") if frame is not None else {}
        jaxpr = local.get("jaxpr")
        if frame is not None and jaxpr is None:
            self._failed(call, ev.TRACE, seconds)
            return
        self.traces.put(jaxpr, call)
        if frame is None:
            # Degraded (JAX before 0.10): a trace cannot be told from a trace-cache hit.
            self._writer.emit(ev.Traced(call=call.number, seconds=seconds))
            return
        if not call.retraced and heard:
            self._writer.emit(ev.TraceReused(call=call.number, seconds=seconds))
            return
        call.told = True
        if self._stale:
            shield.attempt("stale_captures", self._stale.traced, call.number, seams.const_arrays(jaxpr))
        tree, out = shield.attempt("trace_results", results, local.get("out_avals")) or (None, [])
        captured = shield.attempt(
            "captured_constants",
            captures.of_trace,
            local.get("fun"),
            seams.const_arrays(jaxpr),
            signature.is_array,
        )
        self._writer.emit(
            ev.Traced(
                call=call.number,
                seconds=seconds,
                out_tree=tree,
                out=out,
                captured=captured or [],
                equations=seams.equation_count(jaxpr),
                effects=effects(jaxpr),
            )
        )

    def lowered(self, call: Call, stack: Stack, seconds: float) -> None:
        frame = stack.get(seams.LOWER_FRAME)
        wanted = ("lowering_result", "module_name", "num_devices", "platforms", "num_const_args")
        local = frames.read(frame, *wanted) if frame is not None else {}
        module = getattr(local.get("lowering_result"), "module", None)
        if frame is not None and module is None:
            self._failed(call, ev.LOWER, seconds)
            return
        around = stack.get(seams.LOWERER_FRAME) or stack.get(seams.RESOLVE_FRAME)
        outer = frames.read(around, "donated_invars", "compiler_options_kvs") if around is not None else {}
        donated = [i for i, d in enumerate(outer.get("donated_invars") or ()) if d]
        program = None
        if self.ir != "none" and module is not None:
            program = shield.attempt("stablehlo", self._stablehlo, call, module, local, outer)
        self._writer.emit(
            ev.Lowered(
                call=call.number,
                seconds=seconds,
                program=program,
                module=_text(local.get("module_name")),
                donated=[call.paths[i] for i in donated if i < len(call.paths)],
                num_partitions=local.get("num_devices"),
                platforms=[str(p) for p in local.get("platforms") or ()],
                **(shield.attempt("asked_shardings", _asked, stack, len(call.paths)) or {}),
            )
        )
        if module is not None:
            self.modules.put(module, Lowering(call, program, int(local.get("num_const_args") or 0)))
            again = stack.get(seams.RESOLVE_FRAME)
            if self.retarget is not None and call.detail and again is not None:
                shield.attempt("retarget", self.retarget.lowered, call, again, program)

    def compiled(self, call: Call, stack: Stack, seconds: float) -> None:
        frame = stack.get(seams.COMPILE_FRAME)
        local = (
            frames.read(frame, "computation", "xla_executable", "host_callbacks") if frame is not None else {}
        )
        executable = local.get("xla_executable")
        if frame is not None and executable is None:
            self._failed(call, ev.COMPILE, seconds)
            return
        self.once.backend(stack)
        lowering: Lowering | None = self.modules.get(local.get("computation"))
        program = lowering.program if lowering is not None else None
        memory = cost = fingerprint = results = None
        if executable is not None and self.ir != "none":
            memory = shield.attempt("memory", texts.memory, executable)
            cost = shield.attempt("cost", texts.cost, executable)
            fingerprint = shield.attempt("fingerprint", texts.fingerprint, executable)
            if call.detail and program is not None and self.ir in ("all", "hlo"):
                shield.attempt("hlo", self._hlo, program, executable)
        if executable is not None and seams.EXECUTABLE_FRAME in stack:
            results = shield.attempt(
                "executable", _executable, stack[seams.EXECUTABLE_FRAME], executable, lowering
            )
        callbacks = bool(local.get("host_callbacks"))
        cache = shield.attempt("persistent_cache", persistent_cache, call.cache, seconds, callbacks)
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
                **(results or {}),
            )
        )

    def _stablehlo(self, call: Call, module: Any, local: dict[str, Any], outer: dict[str, Any]) -> str:
        text = texts.stablehlo(module)
        constants = shield.attempt("constants", texts.elided, module, text) or b""
        program = texts.program_id(
            text,
            outer.get("compiler_options_kvs"),
            local.get("platforms"),
            local.get("num_devices"),
            constants,
        )
        if call.detail and self.ir in ("all", "stablehlo"):
            self._store(program, "stablehlo", text)
        return program

    def _hlo(self, program: str, executable: Any) -> None:
        self._store(program, "hlo", texts.hlo(executable))

    def _store(self, program: str, stage: str, text: str) -> None:
        stored = self._writer.put_text(text)
        if stored is not None:
            self._writer.emit(ev.ProgramText(program=program, stage=stage, blob=stored[0], bytes=stored[1]))

    def _failed(self, call: Call, phase: str, seconds: float) -> None:
        if phase == ev.TRACE and self._stale:
            shield.attempt("stale_captures", self._stale.failed, call.number)
        self._writer.emit(ev.PhaseFailed(call=call.number, phase=phase, seconds=seconds))


def results(out_avals: Any) -> tuple[str | None, list[OutLeaf]]:
    """The returned tree and its leaves' abstract values."""
    tree, pairs = seams.out_paths(out_avals)
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


def _asked(stack: Stack, arguments: int) -> dict[str, Any]:
    """The fields of Lowered that say what jit was given; empty where that is nothing."""
    found = seams.asked_shardings(stack)
    if found is None or not any(s is not None for side in found for s in side):
        return {}
    table = shardings.Shardings()
    asked_in, asked_out = ([table.index(s) for s in side] for side in found)
    # Other numbers (values that stand for several arrays): which is which cannot be told.
    return {
        "asked": table.table,
        "asked_in": asked_in if len(asked_in) == arguments else [],
        "asked_out": asked_out,
    }


def _executable(frame: FrameType, executable: Any, lowering: Lowering | None) -> dict[str, Any]:
    local = frames.read(
        frame, "name", "in_shardings", "out_shardings", "global_in_avals", "global_out_avals", "kept_var_idx",
        "device_list", "committed", "ordered_effects", "intermediate_shardings", "context_mesh", "all_args_info",
    )  # fmt: skip
    table = shardings.Shardings()
    found = shield.attempt("recover_shardings", seams.recovered_out_shardings, executable, local)
    # Flat positions count captured constants first: they are not the caller's arguments.
    constants = lowering.constants if lowering is not None else 0
    avals = getattr(local.get("all_args_info"), "in_avals", None)
    kept = local.get("kept_var_idx")
    dropped = []
    if avals is not None and kept is not None:
        dropped = [i - constants for i in range(constants, len(avals)) if i not in kept]
    devices = local.get("device_list")
    taken = shardings.Shardings()
    taken_as: list[int | None] = []
    if avals is not None and kept is not None and devices is not None and len(devices) > 1:
        of_kept = shield.attempt("in_shardings", seams.executable_in_shardings, executable, local)
        by_position = dict(zip(sorted(kept), of_kept or (), strict=False))
        if of_kept is not None and len(of_kept) == len(kept):
            taken_as = [taken.index(by_position.get(i)) for i in range(constants, len(avals))]
    return {
        "in_sharding_of": taken_as,
        "in_shardings": taken.table,
        "module": _text(local.get("name")),
        "out_sharding_of": [table.index(s) for s in found or ()],
        "out_shardings": table.table,
        "out_committed": local.get("committed"),
        "dropped_arguments": dropped,
        "devices": device_ranges([d.id for d in devices]) if devices is not None else None,
    }


def persistent_cache(seen: str | None, seconds: float, callbacks: bool) -> tuple[str | None, str | None]:
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
    if callbacks and not keeps_callbacks(jax.__version__):
        return "miss", f"not stored: JAX {jax.__version__} keeps no program that calls back into this process"
    least = float(config.jax_persistent_cache_min_compile_time_secs)
    if seconds < least:
        limit = f"jax_persistent_cache_min_compile_time_secs={least:g}"
        return "miss", f"not stored: compiled in {seconds:.2f} s, below {limit}"
    return "miss", None


def effects(jaxpr: Any) -> list[str]:
    """Names of a trace's effects, without addresses."""
    found = getattr(jaxpr, "effects", None) or ()
    return sorted(
        {type(e).__name__ if "object at" in str(e) else statics.ADDRESS.sub("", str(e)) for e in found}
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
