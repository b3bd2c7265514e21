"""Rule JX207: ``jax.checkpoint`` around a whole differentiated function, which saves no memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxscope.analysis import jit_decorators, line_names
from jaxscope.analysis.syntax import last_name, syntax
from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules.each_program import takes_time, users
from jaxscope.rules.finding_parts import about, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Percent, message

WHOLE = 0.9  # share of the forward pass that one checkpoint computes again, if it covers all of it
# JAX puts one before the operations that a checkpoint computes again
BARRIER = "stablehlo.optimization_barrier"
CHECKPOINTS = frozenset({"checkpoint", "remat", "filter_checkpoint"})
DIFFERENTIATE = line_names.GRADIENTS | {"vjp", "filter_vjp"}


@rule("JX207", "whole-checkpoint", WARNING)
def whole_checkpoint(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        again = texts.hlo.recomputed if texts.hlo is not None else None
        if again is None or texts.stablehlo is None or not takes_time(run, p, f, again.all_flops):
            continue
        # Several checkpoints one after the other have several barriers: only the values of one are kept.
        if texts.stablehlo.op_counts.get(BARRIER) != 1 or not again.forward_flops:
            continue
        if again.flops < WHOLE * again.forward_flops:
            continue
        line = _line(run, again.stack) or p.compilations[-1].site
        share = Percent(again.flops / again.all_flops)
        text = message("whole-checkpoint", function=f.display_name, share=share)
        yield Finding(
            code="JX207",
            severity=WARNING,
            certainty=LIKELY,
            **about(p, f, text, line),
            fix=Fix(message("fix-checkpoint-parts"), "checkpoint_parts"),
            seconds=running_share(run, f, again.flops / again.all_flops),
            at_most=True,
        )


def _line(run: Run, stack: Sequence[Frame]) -> Frame | None:
    """Return the user's line to name for a checkpoint; None if ``stack`` is empty. ``stack`` has the lines
    that lead to the checkpoint, innermost first."""
    text = sources.of(run)
    named: list[tuple[str, int]] = []
    for file in dict.fromkeys(f.file for f in stack):
        source = text(file)
        found = syntax(source)
        called = [c for c in found.all_calls() if last_name(c.func) in CHECKPOINTS]
        decorators = [d for n in found.functions() for d in n.decorator_list]
        decorators = [d for d in decorators if last_name(d) in CHECKPOINTS]
        named += [(file, n.lineno) for n in (*called, *decorators)]
    # The only line with a checkpoint; else the first line that differentiates; else the innermost line.
    if len(named) == 1:
        [(file, line)] = named
        function = next((f.function for f in stack if f.place == (file, line)), "")
        return Frame(file=file, line=line, function=function)
    for frame in stack:
        if jit_decorators.calls(text(frame.file), frame.line, DIFFERENTIATE):
            return frame
    return stack[0] if stack else None
