"""Rule JX138: results of a shard_map that are declared equal on all devices, but differ."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxscope.model.run import Run
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, WARNING, Finding, Fix
from jaxscope.schema.keys import DifferingResult
from jaxscope.schema.messages import Field, Names, message

_FIRST = re.compile(r"(\[[^\]]*\]|\.\w+)?")  # the first part of a path: [0] of [0]['w']
MOST = 3  # results that are named


@rule("JX138", "differs-on-devices", WARNING)
def differs_on_devices(run: Run) -> Iterator[Finding]:
    for f in run.functions.values():
        traced = [c for c in f.compilations if c.traced is not None and c.entry != "nested"] if f.user else []
        c = traced[-1] if traced else None
        differing = c.traced.differing if c is not None and c.traced is not None else None
        if c is None or not differing:
            continue
        axes = Names(tuple(repr(axis) for axis in dict.fromkeys(a for d in differing for a in d.axes)))
        results = Names(tuple(dict.fromkeys(_name(d) for d in differing)), MOST, "results")
        what: dict[str, Field] = {"result": results, "have": "has" if len(results.names) == 1 else "have"}
        text = message("differs-on-devices", function=f.display_name, axes=axes, **what)
        yield Finding(
            code="JX138",
            severity=WARNING,
            certainty=CERTAIN,
            **at_line(text, c.site, c),
            function=f.id,
            fix=Fix(message("fix-mean-over-devices", axes=axes), "psum"),
        )


def _name(d: DifferingResult) -> str:
    """Return the name of ``d`` in a message: ``result[0]``, which contains the array, for the path
    ``[0]['w']``. If the path is unknown, return the type of the array."""
    first = _FIRST.match(d.path) if d.path is not None else None
    return f"result{first[0]}" if first is not None else d.aval
