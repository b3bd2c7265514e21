"""What is shown, or the run behind it, as files in the current directory; nothing there is written over."""

from __future__ import annotations

from pathlib import Path

from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name


def free(directory: RunDir, ending: str) -> Path:
    """``train-20260102.overview.txt``, or with a number where that is there already."""
    stem = clean_name(directory.path.name)
    path = Path(f"{stem}.{ending}").absolute()
    name, dot, suffix = ending.rpartition(".")
    n = 1
    while path.exists() or path.is_symlink():
        n += 1
        path = Path(f"{stem}.{name}-{n}{dot}{suffix}").absolute()
    return path


def report(directory: RunDir, path: Path) -> None:
    """What ``jaxscope report --format json`` prints. Reads the run anew: for a process of its own."""
    from jaxscope.model.load import load
    from jaxscope.report.json_report import pieces

    files.write(path, pieces(load(directory), directory), mode=files.SHARED)


def programs(directory: RunDir, function: str, number: int, out: Path) -> list[str]:
    """What ``jaxscope dump`` writes of one compilation; the files, or why there are none."""
    from jaxscope.model.load import load
    from jaxscope.report.dump import dump

    run = load(directory)
    found = run.functions.get(function)
    written = list(dump(run, directory, [found], out, number)) if found is not None else []
    return [str(file) for w in written for file in w.files]
