"""Rule JX213: parameters that a training step does not change, although it computes their gradients."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules import memory_scale
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import Bytes, Names, message

NAMED = 3  # parameters that a finding names


@rule("JX213", "frozen-parameters", WARNING)
def frozen_parameters(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        frozen = texts.stablehlo.frozen if texts.stablehlo is not None else None
        device = memory_scale.of_program(run, p)
        if frozen is None or frozen.moments < memory_scale.WORTH_A_NOTE * device:
            continue
        much = frozen.moments >= memory_scale.WORTH_A_WARNING * device
        text = message(
            "frozen-parameters",
            function=f.display_name,
            paths=Names(frozen.paths, NAMED, "arrays"),
            bytes=Bytes(frozen.bytes),
            moments=Bytes(frozen.moments),
        )
        site = p.compilations[-1].site
        yield Finding(
            code="JX213",
            severity=WARNING if much else NOTE,
            certainty=LIKELY,
            **about(p, f, text, site),
            fix=Fix(message("fix-train-some"), "partition", {"paths": list(frozen.paths)}),
        )
