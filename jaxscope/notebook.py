"""The cell magic ``%%jaxscope``, which records a cell of a notebook. Use ``%load_ext jaxscope`` once, then
``%%jaxscope`` as the first line of the cell."""

from __future__ import annotations

import argparse
import ast
import re
import shlex
import sys
from types import FrameType
from typing import Any

from jaxscope.capture.notebook_cells import display
from jaxscope.recording import record


def load_ipython_extension(shell: Any) -> None:
    """Register the cell magic ``%%jaxscope`` in IPython's ``shell``. IPython calls this at ``%load_ext
    jaxscope``."""

    def jaxscope(line: str, cell: str) -> Any:
        return run_cell(shell, line, cell)

    jaxscope.__doc__ = _parser().format_help()
    shell.register_magic_function(jaxscope, "cell", "jaxscope")


def run_cell(shell: Any, line: str, cell: str) -> Any:
    """Run and record a cell of a notebook, and show the report below the cell, if the recording started.
    Return the value of the cell's last statement; None if this statement is no expression. If the options are
    invalid or ask for help, print a text and return None without running the cell.

    Args:
      shell: IPython's shell object.
      line: the options after ``%%jaxscope``.
      cell: the source of the cell without its first line.

    Raises:
      Exception: any exception that the cell raises, after the report.
    """
    try:
        options = _parser().parse_args(shlex.split(line))
    except SystemExit:  # argparse has printed the help, or an error message
        return None
    # An empty line stands for the line with the options, so that the line numbers are those of the cell.
    source = "\n" + shell.transform_cell(cell)
    name = shell.compile.cache(source, _number(shell), raw_code=cell)
    tree = shell.transform_ast(ast.parse(source, name))
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    recording = record(options.output, name=options.name)
    try:
        with recording:
            exec(shell.compile(tree, name, "exec"), shell.user_ns)
            if last is not None:
                value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
    finally:
        _show(recording, as_text=options.text)
    return value


def _number(shell: Any) -> int:
    """Return the number of the cell that runs now: 3 for ``In[3]``. If functions of several cells are on the
    stack, the outermost frame decides. ``shell`` is IPython's shell object."""
    frame: FrameType | None = sys._getframe()
    number: int = shell.execution_count
    while frame is not None:
        _, cell = shell.compile.format_code_name(frame.f_code.co_filename) or ("", "")
        if found := re.fullmatch(r"In\[(\d+)\]", cell):
            number = int(found[1])
        frame = frame.f_back
    return number


def _show(recording: Any, *, as_text: bool) -> None:
    """Show the report of ``recording`` below the cell, as text or as HTML. Show nothing if the recording did
    not start."""
    if recording.is_empty:
        return
    if as_text:
        recording.report(file=sys.stdout)
    else:
        display(recording)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="%%jaxscope", description="Record this cell and show the report below it."
    )
    parser.add_argument("--text", action="store_true", help="show the report as text")
    parser.add_argument("--name", help="what the run is called; it is then kept below .jaxscope/runs")
    parser.add_argument("-o", "--output", metavar="DIR", help="the run directory; default: a temporary one")
    return parser
