"""Rule JX309: arrays of shape [N, 1] that are combined with arrays of shape [N]."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxscope.model import sources
from jaxscope.model.run import Run
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import about
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import message

# A line with one of these changes the shapes on purpose.
_INTENDED = re.compile(r"\bNone\b|newaxis|expand_dims|reshape")


@rule("JX309", "unequal-ranks", WARNING)
def unequal_ranks(run: Run) -> Iterator[Finding]:
    """Yield a finding for each line that combines an array of shape [N, 1] with one of shape [N], if the
    [N, N] values are only added up."""
    seen = set[Frame]()
    for p, f, texts in users(run):
        for one in texts.stablehlo.unequal_ranks if texts.stablehlo is not None else ():
            if one.source in seen or _INTENDED.search(sources.line(run, one.source)):
                continue
            seen.add(one.source)
            text = message("unequal-ranks", function=f.display_name, n=one.size)
            yield Finding(
                code="JX309",
                severity=WARNING,
                certainty=LIKELY,
                **about(p, f, text, one.source),
                fix=Fix(message("fix-equal-ranks", n=one.size), "rank", {"size": one.size}),
                subject=(one.source,),
            )
