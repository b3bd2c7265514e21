"""JX402: arrays that the partitioner made whole on every device because it found no way between two shardings."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.programs import evidence, mib, name_of
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, WARNING, Finding


@rule("JX402", "involuntary-rematerialization", WARNING)
def involuntary_rematerialization(run: Run) -> Iterator[Finding]:
    for p, f, texts in users(run):
        for r in texts.remats or ():
            size = f" of {mib(r.bytes)}" if r.bytes is not None else ""
            way = f": {r.before} cannot become {r.after} directly" if r.before and r.after else ""
            text = f"{name_of(f)}: every device is given a whole array{size}{way}"
            source = r.source or p.compilations[-1].site
            yield Finding(
                "JX402", WARNING, CERTAIN if r.source is not None else LIKELY, text, f.id, source, evidence(p, text, source),
                "reshard in two steps that move one mesh axis each, or give the operands of this line shardings that agree",
            )  # fmt: skip
