"""Lower a trace a second time for a target, and queue the result for the target's compiler.

The only work that the program itself waits for: what it took is in each event. No compiler runs here.
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
    """Lowers what this process compiles for each of ``targets``.

    Args:
      ends_at: whether a function is the step after whose lowering the program ends (--dry-run); None: it never does.
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

    def lowered(self, call: Call, frame: FrameType, of: str | None) -> None:
        """``call`` has just been lowered in ``frame`` (a ResolveFrame), as program ``of``."""
        for target in self.targets:
            jaxpr = jax_internals.known_or_none(jax_internals.ResolveFrame(frame).jaxpr)
            self._one(call, target, of, jaxpr, lambda t: jax_internals.lowered_again(frame, t.platform))
        if self._ends_at is not None and self._ends_at(call.function):
            self.ended = True
            raise SystemExit(0)  # as sys.exit() in the program itself: its handlers run, nothing is computed

    def computed(self, call: Call, target: Target, jaxpr: Any, lower: Callable[[], Any]) -> str | None:
        """Queue what ``lower()`` makes of ``jaxpr`` (a ``Lowered``) for ``target``. Returns the program's id."""
        return self._one(call, target, None, jaxpr, lambda _: jax_internals.retargeting_of(lower()))

    def _one(
        self,
        call: Call,
        target: Target,
        of: str | None,
        jaxpr: Any,
        lower: Callable[[Target], jax_internals.Retargeting],
    ) -> str | None:
        began = time.perf_counter()
        try:
            found = lower(target)
            reason = unfit(found, target)
        except Exception as e:  # JAX's word on why this trace is none of the platform's
            said = statics.ADDRESS.sub("", " ".join(str(e).split()))[:REASON]
            reason = f"{type(e).__name__}: {said}"
            callbacks = shield.attempt("retarget", jax_internals.callbacks_in, jaxpr)
            if callbacks:
                reason = f"it calls back into this process ({', '.join(callbacks)}): {reason}"
            self._skip(call, target, of, reason, began)
            return None
        if reason is not None:
            self._skip(call, target, of, reason, began)
            return None
        text = texts.stablehlo(found.module)
        code = io.BytesIO()
        found.module.operation.write_bytecode(code)
        program = texts.program_id(
            text,
            found.options,
            (target.name, *found.platforms),
            found.devices,
            texts.elided(found.module, text),
        )
        self._queue.put(_job(program, target, found), code.getvalue())
        stored = self._writer.put_text(text)
        paths = call.paths or []
        self._writer.emit(
            ev.Retargeted(
                call=call.number,
                target=target.name,
                program=program,
                of=of,
                seconds=time.perf_counter() - began,
                module=found.name,
                stablehlo=stored[0] if stored else None,
                stablehlo_bytes=stored[1] if stored else 0,
                partitions=found.partitions,
                in_order=found.devices is None or found.devices == list(range(found.partitions)),
                donated=[paths[i] for i in found.donated if i < len(paths)],
                dropped=found.dropped,
            )
        )
        return program

    def _skip(self, call: Call, target: Target, of: str | None, reason: str, began: float) -> None:
        seconds = time.perf_counter() - began
        self._writer.emit(
            ev.Retargeted(call=call.number, target=target.name, of=of, seconds=seconds, skipped=reason)
        )


def unfit(found: jax_internals.Retargeting, target: Target) -> str | None:
    """Why the devices of ``target`` cannot stand for the program's; None: they can."""
    if found.partitions > target.devices:
        return f"it runs on {found.partitions:,} devices, {target.name} has {target.devices:,}"
    strange = [i for i in found.devices or () if not 0 <= i < target.devices]
    if strange:
        return f"it runs on device {strange[0]}, {target.name} has {target.devices:,}"
    return None


def _job(program: str, target: Target, found: jax_internals.Retargeting) -> Job:
    import jax

    shardy = getattr(jax.config, "jax_use_shardy_partitioner", None)
    plain = {n: v for n, v in found.options if isinstance(v, (str, int, float, bool))}
    return Job(
        id=program,
        target=target,
        partitions=found.partitions,
        positions=found.devices,
        tuple_arguments=found.tuple_arguments,
        propagate_to_inputs=found.to_inputs,
        propagate_to_outputs=found.to_outputs,
        options=plain,
        shardy=shardy if isinstance(shardy, bool) else None,
    )
