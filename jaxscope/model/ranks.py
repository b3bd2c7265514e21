"""The processes of one job."""

from __future__ import annotations

from jaxscope.model.run import Run


def process_index(run: Run) -> int | None:
    """Return JAX's index of the process, if its backend has several processes."""
    main = run.main
    several = main is not None and main.backend is not None and (main.backend.process_count or 1) > 1
    return main.index if main is not None and several else None
