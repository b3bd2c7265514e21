"""Rule JX402: arrays that XLA's partitioner gathers on every device, because it cannot convert their sharding
directly ("involuntary full rematerialization")."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import evidence
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, WARNING, Finding, Fix
from jaxscope.schema.messages import Bytes, message


@rule("JX402", "involuntary-rematerialization", WARNING)
def involuntary_rematerialization(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for r in texts.remats or ():
            text = message(
                "involuntary-rematerialization",
                function=f.display_name,
                size=message("of-size", bytes=Bytes(r.bytes)) if r.bytes is not None else None,
                change=message("from-to", before=r.before, after=r.after) if r.before and r.after else None,
            )
            yield Finding(
                code="JX402",
                severity=WARNING,
                certainty=CERTAIN if r.source is not None else LIKELY,
                title=text,
                function=f.id,
                source=r.source or p.compilations[-1].site,
                evidence=evidence(p, text, r.source or p.compilations[-1].site),
                fix=Fix(message("fix-reshard-in-steps"), "reshard_in_steps"),
                subject=(r.source, r.before, r.after, r.bytes),
            )
