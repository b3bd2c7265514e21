"""Write what is shown, or the run, as files into the current directory; no file is overwritten."""

from __future__ import annotations

from pathlib import Path

from jaxscope.log import files
from jaxscope.log.store import RunDir, clean_name


def free(directory: RunDir, ending: str) -> Path:
    """Return an unused path such as ``train-20260102.overview.txt``, numbered if that file exists."""
    stem = clean_name(directory.path.name)
    path = Path(f"{stem}.{ending}").absolute()
    name, dot, suffix = ending.rpartition(".")
    n = 1
    while path.exists() or path.is_symlink():
        n += 1
        path = Path(f"{stem}.{name}-{n}{dot}{suffix}").absolute()
    return path


def report(directory: RunDir, path: Path) -> None:
    """Write what ``jaxscope report --format json`` prints. Loads the run: call it in a worker."""
    from jaxscope.model.load import load
    from jaxscope.report.json_report import pieces

    files.write(path, pieces(load(directory), directory), mode=files.SHARED)


def programs(directory: RunDir, function: str, number: int, out: Path) -> list[str]:
    """Write the files of one compilation as ``jaxscope dump`` does. Return their paths; empty if none."""
    from jaxscope.model.load import load
    from jaxscope.report.dump import dump

    run = load(directory)
    found = run.functions.get(function)
    written = list(dump(run, directory, [found], out, number)) if found is not None else []
    return [str(file) for w in written for file in w.files]


def ranks(directory: RunDir) -> str | None:
    """Return the report's lines about the ranks of the job that ``directory`` is a part of, and where they differ.

    None: it is no job. Reads all ranks: call it in a worker.
    """
    from jaxscope.model import ranks as model
    from jaxscope.model.load import load
    from jaxscope.present import findings as words
    from jaxscope.present.escape import escape
    from jaxscope.present.text import Places
    from jaxscope.report import ranks as report

    whole = model.job_of(directory)
    if whole is None:
        return None
    job = model.read(whole)
    lines = [f"{f.code} {escape(words.sentence(f))}" for f in report.findings(job)]
    section = report.section(job, Places(load(directory)))
    return "\n".join([*lines, *(" " * each.indent + each.text.plain for each in section)]).strip()
