"""Write the findings of ``jaxscope check`` as JSON, and whether the check failed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from jaxscope import __version__
from jaxscope.report import contract
from jaxscope.report.formats.placed import Placed
from jaxscope.report.json_report import SCHEMA, dumps


def render(findings: Sequence[Placed], *, run: str | None, failed: bool) -> str:
    """Return the findings of ``jaxscope check`` as JSON, with the name of the run (``run``) and whether the
    check failed (``failed``). A finding has the keys of the JSON report except ``sub_run``, and ``place``:
    ``{"file": "train.py", "line": 88}``, null if the file is unknown."""
    entries: list[dict[str, Any]] = []
    for p in findings:
        entry = msgspec.to_builtins(contract.Finding.of(p.finding))
        del entry["sub_run"]
        entries.append({**entry, "place": None if p.file is None else {"file": p.file, "line": p.line}})
    return dumps(
        {
            "schema": SCHEMA,
            "jaxscope": __version__,
            "run": {"name": run},
            "failed": failed,
            "findings": entries,
        }
    )
