"""Write figures of a run by training step, such as compile seconds and memory, to a file, to TensorBoard or
to Weights & Biases (``--metrics``).

A step in which nothing was traced, lowered or compiled and that has no snapshot of the live arrays is left
out.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import io
import os
from collections.abc import Iterator
from typing import Any

from jaxscope.errors import JaxscopeError
from jaxscope.model.run import Run
from jaxscope.report import scalars

TENSORBOARD, WANDB = "tensorboard:", "wandb"
PREFIX = "jaxscope/"
PROJECT = "jaxscope"  # in Weights & Biases, if WANDB_PROJECT does not name another


def is_file(where: str) -> bool:
    """Return whether ``where``, the value of the option ``--metrics``, names a file, not a dashboard."""
    return where != WANDB and not where.startswith(TENSORBOARD)


def require(where: str) -> None:
    """Raise an error unless the package that writes to ``where`` (``tensorboard:DIRECTORY`` or ``wandb``) is
    installed. The package is not imported. A file needs no package.

    Raises:
      JaxscopeError: the package is not installed, or ``tensorboard:`` names no directory.
    """
    if is_file(where):
        return
    if where == TENSORBOARD:
        raise JaxscopeError(
            "tensorboard: needs a directory",
            hint="for example: tensorboard:runs/exp1",
            slug="metrics-directory",
        )
    package, extra = ("wandb", "wandb") if where == WANDB else ("tensorboardX", "tensorboard")
    if importlib.util.find_spec(package) is None:
        hint = f"pip install 'jaxscope[{extra}]'"
        raise JaxscopeError(
            f"--metrics {where} needs the package {package}", hint=hint, slug="metrics-missing"
        )


def text(run: Run, where: str) -> Iterator[str]:
    """Yield the figures of each step as pieces of text for the metrics file ``where``. The format is CSV if
    the name of the file ends with ``.csv``, else JSON lines."""
    return csv_lines(run) if where.lower().endswith(".csv") else scalars.lines(run)


def csv_lines(run: Run) -> Iterator[str]:
    """Yield the figures of each step as one CSV text: first the names of the columns, then a line for each
    step. An unknown number is an empty cell."""
    rows = list(_flat(run))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]) if rows else _NAMES, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    yield buffer.getvalue()


def write(run: Run, name: str, where: str) -> None:
    """Write the figures of each step of ``run`` to a dashboard.

    Args:
      name: the name of the run in Weights & Biases.
      where: the dashboard: ``tensorboard:DIRECTORY`` or ``wandb``.

    Raises:
      JaxscopeError: the package is not installed, or ``tensorboard:`` names no directory.
      OSError: the directory cannot be written.
    """
    require(where)
    if where == WANDB:
        _wandb(run, name)
    else:
        _tensorboard(run, where.removeprefix(TENSORBOARD))


_NAMES = [name for name in scalars.Row.__struct_fields__ if name != "recompiles_by_cause"]


def _flat(run: Run) -> Iterator[dict[str, float | None]]:
    """Yield each of ``scalars.rows`` as a dict: name of a figure -> number, or None if it is unknown. All
    dicts have the same names; ``recompiles/shape`` is the number of recompiles with the cause ``shape``."""
    rows = scalars.rows(run)
    # Dashboards need flat dicts: the number of recompiles of each cause is a figure, ``recompiles/shape``.
    causes = sorted({cause for row in rows for cause in row.recompiles_by_cause})
    for row in rows:
        found = {name: getattr(row, name) for name in _NAMES}
        yield found | {f"recompiles/{cause}": row.recompiles_by_cause.get(cause, 0) for cause in causes}


def _tensorboard(run: Run, directory: str) -> None:
    """Write the figures of each step as a TensorBoard event file to ``directory``. Figures from before the
    first counted step are written as step 0."""
    began = (run.began_ns or 0) / 1e9
    writer: Any = importlib.import_module("tensorboardX").SummaryWriter(directory)
    try:
        for row in _flat(run):
            step, seconds = row.pop("step"), row.pop("time_seconds") or 0.0
            for name, value in row.items():
                if value is not None:
                    writer.add_scalar(PREFIX + name, value, int(step or 0), walltime=began + seconds)
    finally:
        writer.close()


def _wandb(run: Run, name: str) -> None:
    """Log the figures of each step as a run of Weights & Biases with the name ``name``. In its charts, the
    horizontal axis is the step of the program."""
    project = os.environ.get("WANDB_PROJECT", PROJECT)
    logged: Any = importlib.import_module("wandb").init(project=project, name=name, job_type="jaxscope")
    try:
        logged.define_metric(f"{PREFIX}step")
        logged.define_metric(f"{PREFIX}*", step_metric=f"{PREFIX}step")
        for row in _flat(run):
            logged.log({PREFIX + key: value for key, value in row.items() if value is not None})
    finally:
        logged.finish()
