"""The pairs of programs in samples/recipes: a technique badly, then well, and what is found in it.

    python benchmarks/recipes.py            # run every pair; exit code 1 if a report differs from the marks
    python benchmarks/recipes.py --write    # and write the tables of this JAX in docs/recipes.md
    python benchmarks/recipes.py shapes     # this pair alone; --write changes its row

A line of ``bad.py`` that ends in ``# JX101`` must have that finding, and no other line may have one;
``good.py`` must have none. A comment ``# jaxscope run --option bad.py`` has the command that the pair needs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jaxscope.present.text import count, size

ROOT = Path(__file__).resolve().parents[1]
RECIPES = ROOT / "samples" / "recipes"
PAGE = ROOT / "docs" / "recipes.md"
END = "<!-- end of table -->"
MINORS = ("0.10", "0.12")  # a table for each
KINDS = ("bad", "good")
CHECK_FAILED = 3  # the exit code of run --check
_MARK = re.compile(r"# ((?:JX\d{3} ?)+)$")
_CHECKED = re.compile(r"(JX\d{3}) (?:(?!JX\d{3}).)*?\.py:(\d+)\)")
_COMMAND = re.compile(r"^# jaxscope (.*) (?:bad|good)\.py$", re.MULTILINE)


def names() -> list[str]:
    """Return the recipes, in the order of the alphabet."""
    return sorted(p.name for p in RECIPES.iterdir() if (p / "bad.py").exists())


def program(name: str, kind: str) -> Path:
    return RECIPES / name / f"{kind}.py"


def marked(name: str, kind: str) -> set[tuple[str, int]]:
    """Return the (code, line) that the program's comments promise."""
    found = set()
    for n, text in enumerate(program(name, kind).read_text().splitlines(), 1):
        if match := _MARK.search(text):
            found |= {(code, n) for code in match[1].split()}
    return found


def command(name: str, kind: str) -> list[str]:
    """Return the words before the program: of its comment ``# jaxscope run --option bad.py``, or run."""
    found = _COMMAND.search(program(name, kind).read_text())
    return shlex.split(found[1]) if found else ["run"]


def record(name: str, kind: str, folder: Path) -> dict[str, Any]:
    """Run the program under jaxscope and return its JSON report.

    Its findings include those of ``run --check``.

    Raises:
      RuntimeError: the program or the report failed; one rank of a job (``launch``) may fail.
    """
    run = folder / f"{name}-{kind}"
    env = {k: v for k, v in os.environ.items() if not k.startswith("JAXSCOPE")}
    checked: list[tuple[str, str]] = []
    for words in (
        [*command(name, kind), "-q", "-o", str(run), str(program(name, kind))],
        ["report", "--format", "json", str(run)],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "jaxscope", *words], capture_output=True, text=True, cwd=folder, env=env
        )
        expected = CHECK_FAILED if "--check" in words else 0
        if done.returncode not in (0, expected) and words[0] != "launch":
            raise RuntimeError(f"{name}/{kind}.py: {done.stderr}")
        printed = " ".join((done.stdout + done.stderr).split())  # without the breaks of its lines
        checked += _CHECKED.findall(printed) if "--check" in words else []
    report: dict[str, Any] = json.loads(done.stdout)
    report["findings"] += [{"code": code, "source": {"line": int(line)}} for code, line in checked]
    return report


def found(report: dict[str, Any]) -> set[tuple[str, int | None]]:
    """Return the (code, line) of each finding."""
    return {(f["code"], f["source"]["line"] if f["source"] else None) for f in report["findings"]}


def difference(name: str, kind: str, report: dict[str, Any]) -> str:
    """Return how the findings differ from the marks; empty if they do not."""
    promised, seen = marked(name, kind), found(report)
    missing = [f"{code} at line {line} is missing" for code, line in sorted(promised - seen)]
    other = [f"{code} at line {line} is not marked" for code, line in sorted(seen - promised, key=str)]
    return "; ".join(missing + other)


def row(name: str, reports: dict[str, dict[str, Any]]) -> str:
    """Return the line of the documentation's table."""
    summary = re.match(r'"""(.*?)[.:](?=\s|")', program(name, "bad").read_text().replace("\n", " "))
    cells = [f"`{name}`", summary[1] if summary else ""]
    mistakes = {f["code"] for f in reports["bad"]["findings"]}
    for kind in KINDS:
        run, findings = reports[kind]["run"], reports[kind]["findings"]
        programs = sum(f["compilations"] for f in reports[kind]["functions"])
        codes = ", ".join(sorted({f["code"] for f in findings})) or "no finding"
        figures = [
            f"{count(programs, 'compilation')}, {run['compiling_seconds']:.1f} s",
            *in_bytes(reports[kind], mistakes),
            *waiting(reports[kind]),
        ]
        cells.append(f"{codes}; {'; '.join(figures)}")
    return f"| {' | '.join(cells)} |"


# What a finding is about: the memory of one program, the arrays on a device, what devices send, what is copied.
PROGRAM = {"JX303", "JX505", "JX506", "JX510", "JX591"}
ARRAYS = {"JX501", "JX502", "JX503", "JX508", "JX509"}
SENT, COPIED = {"JX401", "JX402"}, {"JX602"}


def in_bytes(report: dict[str, Any], codes: set[str]) -> Iterator[str]:
    """Yield the figures in bytes of a run, for a pair about ``codes``."""
    programs = report["programs"]
    if codes & PROGRAM:
        peaks = [p["memory"]["peak_bytes"] or 0 for p in programs if p["memory"] is not None]
        yield f"program {size(max(peaks, default=0))}"
    if codes & ARRAYS and report["arrays"] is not None:
        snapshots = report["arrays"]["snapshots"]
        yield f"arrays {size(max((d['bytes'] for s in snapshots for d in s['by_device']), default=0))} on a device"
    if codes & SENT:
        sent = [sum(c["bytes"] or 0 for c in p["collectives"] or ()) for p in programs]
        yield f"collectives {size(max(sent, default=0))} a call"
    if codes & COPIED:
        copies = [t["bytes"] or 0 for t in report["transfers"] if t["direction"] == "host_to_device"]
        yield f"copied {size(sum(copies))}"


def waiting(report: dict[str, Any]) -> Iterator[str]:
    """Yield which share of its steps the device waited, of a program that was run with ``--profile``."""
    step = report["step_time"]
    if step is not None and step["device_waits_share"] is not None:
        yield f"the device waits {100 * step['device_waits_share']:.0f} % of a step"


def by_setting(name: str, kind: str, report: dict[str, Any]) -> Iterator[str]:
    """Yield a row for each setting of ``--vary``: the bytes of a program on a device, and what it sends.

    The program is the one that the settings change most in its memory.
    """

    def used(function: dict[str, Any]) -> list[int]:
        return [c["memory"]["used_bytes"] for c in function["columns"]]

    spread = {id(f): max(used(f)) - min(used(f)) for f in report["comparisons"]}
    for c in max(report["comparisons"], key=lambda f: spread[id(f)])["columns"] if spread else ():
        setting = " ".join(f"{n}={value}" for n, value in c["settings"].items())
        sent = [
            f"{o['executions']}x over {' and '.join(o['axes'])}, {size(o['wire_bytes'])}"
            for o in c["collectives"]
        ]
        where = f"`{name}/{kind}.py` | `{setting}`"
        yield f"| {where} | {size(c['memory']['used_bytes'])} | {'; '.join(sent) or 'none'} |"


HEADS = {
    "table": "| recipe | the mistake | bad.py | good.py |\n|---|---|---|---|",
    "settings": "| program | setting | program on a device | collectives of a call |\n|---|---|---|---|",
}


def begin(minor: str, which: str = "table") -> str:
    """Return the comment that a table of one JAX begins with: ``table``, or that of the ``settings``."""
    return f"<!-- {which} {minor} -->"


def table_of(minor: str, which: str = "table") -> list[str]:
    """Return the rows of a table of one JAX in the documentation."""
    table = PAGE.read_text().partition(begin(minor, which))[2].partition(END)[0]
    return [line for line in table.splitlines() if line.startswith("| `")]


def write(name: str, lines: list[str], which: str = "table") -> None:
    """Put the rows of ``name`` into a table of the installed JAX; the rows of the other pairs stay."""
    minor = ".".join(version("jax").split(".")[:2])
    kept: dict[str, list[str]] = {}
    for line in table_of(minor, which):
        kept.setdefault(line.split("`")[1].partition("/")[0], []).append(line)
    head, _, rest = PAGE.read_text().partition(begin(minor, which))
    tail = rest.partition(END)[2]
    rows = [r for name, rows in sorted((kept | {name: lines}).items()) if name in names() for r in rows]
    table = [f"Measured with JAX {version('jax')}.\n", HEADS[which], *rows]
    PAGE.write_text(f"{head}{begin(minor, which)}\n" + "\n".join(table) + f"\n{END}{tail}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("only", nargs="*", metavar="NAME")
    parser.add_argument("--write", action="store_true", help="write the table of docs/recipes.md")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only or names():
            reports = {kind: record(name, kind, Path(folder)) for kind in KINDS}
            for kind, report in reports.items():
                why = difference(name, kind, report)
                wrong += bool(why)
                print(f"{name}/{kind}: {why or 'as marked'}", flush=True)
            if args.write:
                write(name, [row(name, reports)])
                write(name, [r for k in KINDS for r in by_setting(name, k, reports[k])], "settings")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
