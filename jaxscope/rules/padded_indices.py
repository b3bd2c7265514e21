"""Rule JX307: an index of -1, which should be left out, changes or reads the last row."""

from __future__ import annotations

from collections.abc import Iterator

from jaxscope.analysis import padded_indices
from jaxscope.model.run import Run
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.random_keys import found_where_run
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import message


@rule("JX307", "padding-in-last-row", WARNING)
def padding_in_last_row(run: Run) -> Iterator[Finding]:
    """Yield a finding for each use of indices that the program pads with -1, if JAX takes -1 for the last
    row."""
    for file, one in found_where_run(run, padded_indices.find):
        reads = one.method in padded_indices.READS
        text = message(
            "padding-read-from-last-row" if reads else "padding-in-last-row",
            mode=one.mode,
            name=one.name,
            padded=str(one.padded),
        )
        fix = Fix(message("fix-pad-out-of-range", name=one.name), "pad", {"name": one.name})
        if one.method != "take":
            fix = Fix(message("fix-no-negative-indices", name=one.name), "pad", {"name": one.name})
        yield Finding(
            code="JX307",
            severity=WARNING,
            certainty=LIKELY,
            **at_line(text, Frame(file, one.line, one.function)),
            fix=fix,
            subject=(file, one.function, one.name, one.method),
        )
