"""Lower a traced function a second time for a target (another accelerator than that of this process), and put
the result into the queue of the target's compiler.

The program waits for this lowering; the event ``Retargeted`` has its seconds. The target's compiler runs in
another process.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from jaxscope import jax_internals
from jaxscope.capture import shield, texts
from jaxscope.capture.calls import statics
from jaxscope.capture.calls.in_progress import Call
from jaxscope.log.jobs import Job, Queue
from jaxscope.log.writer import Writer
from jaxscope.schema import events as ev
from jaxscope.schema.targets import Target

REASON = 600  # characters
OURS = str(Path(__file__).parents[1]) + os.sep


class Retarget:
    """Lowers programs of this process for each of ``targets`` (``--target``): accelerators other than the one
    on which the process runs.

    Args:
      ends_at: for ``--dry-run``: is called with the id of a function at the end of ``lowered``, and returns
        whether the program is to end now. None: the program does not end early.

    Attributes:
      ended: whether ``lowered`` has ended the program.
    """

    def __init__(
        self, writer: Writer, targets: Sequence[Target], ends_at: Callable[[str], bool] | None = None
    ) -> None:
        self._writer = writer
        self._queue = Queue(writer.run)
        self.targets = list(targets)
        self._ends_at = ends_at
        self.ended = False
        shield.attempt("hide_frames", jax_internals.hide_frames, OURS)

    def lowered(self, call: Call, frame: FrameType, original: str | None) -> None:
        """Lower the program of ``call`` for all targets (``--target``, other accelerators), after JAX has
        lowered it for the platform of this process. For each target, put the result into the queue of the
        target's compiler, or log why this is not possible.

        Args:
          frame: the frame of JAX's ``_resolve_and_lower`` in which JAX has lowered the program.
          original: the id of the program that JAX has lowered; None: unknown.

        Raises:
          SystemExit: for ``--dry-run``, if ``ends_at`` returns True for the function of ``call``.
        """
        for target in self.targets:
            jaxpr = jax_internals.known_or_none(jax_internals.ResolveFrame(frame).jaxpr)
            self._one(call, target, original, jaxpr, lambda t: jax_internals.lowered_again(frame, t.platform))
        if self._ends_at is not None and self._ends_at(call.function):
            self.ended = True
            raise SystemExit(0)  # like sys.exit() in the program: exit handlers run, nothing is computed

    def computed(self, call: Call, target: Target, jaxpr: Any, lower: Callable[[], Any]) -> str | None:
        """Lower a program for ``target``, another accelerator, and put the result into the queue of the
        target's compiler. Return the id of the program; None if the program cannot be lowered for the target
        or cannot run on it.

        Args:
          call: the call to which the program belongs.
          jaxpr: the result of the trace.
          lower: lowers the program for the target, and returns JAX's object ``Lowered``.
        """
        return self._one(call, target, None, jaxpr, lambda _: jax_internals.retargeting_of(lower()))

    def _one(
        self,
        call: Call,
        target: Target,
        original: str | None,
        jaxpr: Any,
        lower: Callable[[Target], jax_internals.Retargeting],
    ) -> str | None:
        """Lower a program for ``target``, another accelerator, put the result into the queue of the target's
        compiler, and log the event ``Retargeted``. Return the program's id. If the program cannot be lowered
        or cannot run on the target, log the reason and return None.

        Args:
          call: the call to which the program belongs.
          original: the id of the program as lowered for this process's own platform; None: unknown.
          jaxpr: the result of the trace.
          lower: lowers the program for a target.
        """
        began = time.perf_counter()
        try:
            lowering = lower(target)
            reason = unfit(lowering, target)
        except Exception as e:  # JAX cannot lower this trace for the platform
            reason = _why_not_lowered(e, jaxpr)
        if reason is not None:
            seconds = time.perf_counter() - began
            self._writer.emit(
                ev.Retargeted(
                    call=call.number, target=target.name, of=original, seconds=seconds, skipped=reason
                )
            )
            return None
        return self._queued(call, target, original, lowering, began)

    def _queued(
        self,
        call: Call,
        target: Target,
        original: str | None,
        lowering: jax_internals.Retargeting,
        began: float,
    ) -> str:
        """Put ``lowering``, the program of ``call`` lowered for ``target``, into the queue of the target's
        compiler, and log the event ``Retargeted``. Return the program's id.

        Args:
          original: the id of the program as lowered for this process's own platform; None: unknown.
          began: when the lowering began, by ``time.perf_counter``.
        """
        text = texts.stablehlo(lowering.module)
        code = io.BytesIO()
        lowering.module.operation.write_bytecode(code)
        program = texts.program_id(
            text,
            lowering.options,
            (target.name, *lowering.platforms),
            lowering.devices,
            texts.elided(lowering.module, text),
        )
        self._queue.put(_job(program, target, lowering), code.getvalue())
        stored = self._writer.put_text(text)
        paths = call.paths or []
        self._writer.emit(
            ev.Retargeted(
                call=call.number,
                target=target.name,
                program=program,
                of=original,
                seconds=time.perf_counter() - began,
                module=lowering.name,
                stablehlo=stored[0] if stored else None,
                stablehlo_bytes=stored[1] if stored else 0,
                partitions=lowering.partitions,
                in_order=lowering.devices is None or lowering.devices == list(range(lowering.partitions)),
                donated=[paths[i] for i in lowering.donated if i < len(paths)],
                dropped=lowering.dropped,
            )
        )
        return program


def unfit(lowering: jax_internals.Retargeting, target: Target) -> str | None:
    """Return as text why the program ``lowering`` cannot run on the accelerator ``target``: it needs more
    devices than ``target`` has, or a device with a number that ``target`` does not have. Return None if the
    program can run there."""
    if lowering.partitions > target.devices:
        return f"it runs on {lowering.partitions:,} devices, {target.name} has {target.devices:,}"
    outside = [i for i in lowering.devices or () if not 0 <= i < target.devices]
    if outside:
        return f"it runs on device {outside[0]}, {target.name} has {target.devices:,}"
    return None


def _job(program: str, target: Target, lowering: jax_internals.Retargeting) -> Job:
    """Return what the compiler of ``target`` needs to compile ``lowering``: the program's devices, its
    options and its id, which is ``program``. Options that are not text, numbers or booleans are left out."""
    import jax

    shardy = getattr(jax.config, "jax_use_shardy_partitioner", None)
    plain = {n: v for n, v in lowering.options if isinstance(v, (str, int, float, bool))}
    return Job(
        id=program,
        target=target,
        partitions=lowering.partitions,
        positions=lowering.devices,
        tuple_arguments=lowering.tuple_arguments,
        propagate_to_inputs=lowering.to_inputs,
        propagate_to_outputs=lowering.to_outputs,
        options=plain,
        shardy=shardy if isinstance(shardy, bool) else None,
    )


def _why_not_lowered(error: Exception, jaxpr: Any) -> str:
    """Return as text why JAX could not lower ``jaxpr`` for another platform: the ``error``, after the names
    of the callbacks in the program, if there are any."""
    message = statics.ADDRESS.sub("", " ".join(str(error).split()))[:REASON]
    reason = f"{type(error).__name__}: {message}"
    callbacks = shield.attempt("retarget", jax_internals.callbacks_in, jaxpr)
    return f"it calls back into this process ({', '.join(callbacks)}): {reason}" if callbacks else reason
