"""Compare each test with its baseline file (saved figures of what the test compiles), write these files, and
remove the files of tests that no longer exist.

This module does not import pytest.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from jaxscope.errors import NotAsPinned, UsageError, to_be_read

if TYPE_CHECKING:
    from jaxscope.model.run import Run

__tracebackhide__ = to_be_read
FOLDER = "jaxscope-baselines"
NONE, NEW, ALL, TRIM = "none", "new", "all", "trim"
_BLOCK = "@"  # in a file name, separates the test from the name of a block in it


class Baselines:
    """The baseline files (saved figures of what each test compiles) in one folder.

    Args:
      update: what to do with the files: none (compare), new (write missing files), all (write every file),
        trim (compare, and remove the files of tests that no longer exist).
      root: the directory to which names of source files in the baselines are relative.

    Raises:
      BaselineError: ``update`` is not none, and the environment variable CI is set (not to 0 or false).
    """

    def __init__(self, folder: Path, update: str, root: Path) -> None:
        from jaxscope.check.baseline import file

        if update != NONE:
            file.permitted(os.environ)
        self.folder = folder
        self._update = update
        self._root = root

    def check(self, run: Run, test: str, name: str | None = None) -> None:
        """Compare what the test with the pytest id ``test`` compiled with its baseline file, or write this
        file, depending on ``update``. ``run`` has only what the block ``name`` of the test compiled; None:
        the test has only one such block.

        Raises:
          NotAsPinned: the run differs from the baseline.
          BaselineError: the baseline is missing, or it cannot be read or written.
          UsageError: none of the user's functions was compiled, so there is nothing to compare.
        """
        from jaxscope.check.baseline import comparison, file, update
        from jaxscope.check.selection import Filter, selection
        from jaxscope.report import plain_text

        path = self.folder / f"{_stem(test)}{f'{_BLOCK}{_stem(name)}' if name else ''}.json"
        if not any(f.user and f.compiled for f in run.functions.values()):
            raise UsageError(
                "none of your functions was compiled, so there is nothing to compare",
                hint="compile it in the block: jax.jit(f).lower(...).compile()",
                slug="pin-nothing",
            )
        everything = Filter(selection())
        now = comparison.extract_run(run, everything, [str(self._root)])
        if self._update == ALL or (self._update == NEW and not path.exists()):
            old = file.read(path) if file.looks_like_one(path) and path.exists() else None
            file.write(path, update.updated(old, now.baseline), os.environ)
            return
        if not path.exists():
            raise file.BaselineError(
                f"there is no baseline at {path}",
                hint=f"write it, review it and commit it: pytest --jaxscope-update=new {shlex.quote(test)}",
                slug="baseline-missing",
            )
        wrong = comparison.failing(comparison.findings(file.read(path), now, everything), strict=False)
        if wrong:
            raise NotAsPinned(f"differs from {path.name}\n{plain_text.render(wrong)}")

    def trim(self, tests: Iterable[str]) -> list[Path]:
        """Remove all baseline files except those of ``tests``, the pytest ids of all existing tests. Return
        the removed files. Unless the option ``update`` is trim, nothing is removed and the list is empty."""
        if self._update != TRIM:
            return []
        kept = {_stem(test) for test in tests}
        unused = [p for p in sorted(self.folder.glob("*.json")) if p.stem.partition(_BLOCK)[0] not in kept]
        for path in unused:
            path.unlink(missing_ok=True)
        return unused


def _stem(text: str) -> str:
    """Return a file name, without extension, for ``text``, the id of a test or the name of a block:
    ``test_train.py::test_step`` gives ``test_train.py.test_step``. If more than ``::`` and ``/`` has to be
    changed, the name ends with a hash of ``text``."""
    from jaxscope.log.store import clean_name

    plain = text.replace("::", ".").replace("/", ".")
    name = clean_name(plain).replace(_BLOCK, "-")
    if name == plain:
        return name
    return f"{name}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:8]}"
