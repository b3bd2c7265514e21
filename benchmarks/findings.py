"""Count whether the findings in small programs of the usual kinds are true, useful and complete.

Each program of tests/data/findings is run under ``jaxscope run``, and its findings are compared with the
labels that stand in it as comments. ``NAME_mended.py`` is the same program without the problem. On a line of
the program:

    # must: JX101            a finding of this code has to name this line
    # must: JX133|JX110 first ~ asarray    one of these codes, the first finding, with this pattern in title
    or advice # may: JX506             true and worth knowing, and not wanted

The mended program says which advice it applies, by the slugs of ``present.messages``; each advice of the case on a line
with ``must`` has to be one of them, and the mended program may have no finding that the case has not:

    # applies: fix-odd-batch, fix-jit-this-call

Before the first import, ``# may: JX506, JX502 note`` holds for all lines (``note``: of that severity alone),
and ``# never: PATTERN`` is what no title and no advice may contain. Every other finding counts as false or
trivial, so a program without ``must`` and ``may`` has to be silent. A program whose libraries are not
installed is skipped.

    python benchmarks/findings.py                  # a table, each disagreement, the figures
    python benchmarks/findings.py -o FILE.json     # the figures as JSON
    python benchmarks/findings.py --runs DIR       # keep the recordings in DIR; read again those that are there
    python benchmarks/findings.py NAME ...         # programs whose name begins with one of these
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from jaxscope.log.store import RunDir
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules import registry
from jaxscope.schema.findings import Finding, fix_of
from jaxscope.schema.messages import Message, Words

PROGRAMS = Path(__file__).resolve().parents[1] / "tests" / "data" / "findings"
LIBRARIES = PROGRAMS / "site-packages"  # stand-ins for installed libraries
# Parts of titles that name several lines
SEVERAL = frozenset(
    {
        "lines-of-a-loop", "lines-of-a-loop-and-functions", "lines-of-a-function", "lines-of-a-callback", "from-lines",
        "operations-in-loop", "python-in-loop",
    }
)  # fmt: skip
_APPLIES = re.compile(r"^# applies: (.*)$", re.MULTILINE)
_MARK = re.compile(r"(must|may|never): ([^#]*)")


@dataclass
class Label:
    """What is true of a program: ``line`` 0 stands for every line, ``codes`` empty for every code."""

    line: int
    codes: frozenset[str]
    must: bool = True
    first: bool = False
    note: bool = False
    pattern: str = ""

    def fits(self, f: Finding) -> bool:
        return (
            (not self.codes or f.code in self.codes)
            and (not self.line or self.line in lines_of(f))
            and (not self.note or f.severity == "note")
            and re.search(self.pattern, text_of(f)) is not None
        )


@dataclass
class Verdict:
    """Of one program: how many wanted findings it has and had to have, and how many findings are true."""

    name: str
    found: int = 0
    wanted: int = 0
    true: int = 0
    said: int = 0
    first: bool | None = None  # is its largest avoidable cost the first finding? None: it has none
    wrong: list[str] = field(default_factory=list)


def lines_of(f: Finding) -> set[int]:
    """Return the line that a finding names; all its lines if it is about several lines of a loop, of which
    the first is the one that took longest in this run."""
    several = bool(SEVERAL & slugs(f.title))
    named = [f.source, *(e.source for e in f.evidence if several)]
    return {at.line for at in named if at is not None}


def text_of(f: Finding) -> str:
    return f"{words.title(f)} -> {words.fix_text(f) or ''}"


def labels(source: str) -> tuple[list[Label], list[str]]:
    """Return what the comments of a program say of it: its labels, and patterns that must not occur."""
    found, never = [], []
    for n, line in enumerate(source.splitlines(), 1):
        code, _, comment = line.partition("#")
        at = n if code.strip() else 0
        for kind, text in _MARK.findall(comment):
            if kind == "never":
                never.append(text.strip())
                continue
            for part in re.split(r", (?:must: |may: )?(?=JX|\*)", text.strip()):
                rule, _, pattern = part.partition(" ~ ")
                codes, *words_after = rule.split()
                wanted = frozenset() if codes == "*" else frozenset(codes.split("|"))
                options = {"first": "first" in words_after, "note": "note" in words_after}
                found.append(Label(at, wanted, kind == "must", pattern=pattern.strip(), **options))
    return found, never


def slugs(words: Words) -> set[str]:
    """Return the slugs of a message and of the messages in it."""
    if not isinstance(words, Message):
        return set()
    return {words.slug}.union(
        *(slugs(value) for value in words.fields.values() if isinstance(value, Message))
    )


def applied(source: str) -> set[str]:
    """Return the slugs of the advice that a fixed program applies."""
    return {slug.strip() for line in _APPLIES.findall(source) for slug in line.split(",")}


def of_the_mending(
    case: list[Finding], known: list[Label], mended: list[Finding], source: str
) -> Iterator[str]:
    """Yield what is wrong with a pair of programs: advice that is not applied, a finding that only the fixed one has."""
    advice = applied(source)
    for f in case:
        fix = fix_of(f)
        wanted = any(label.must and label.fits(f) for label in known)
        if wanted and fix is not None and not slugs(fix.words) & advice:
            yield f"advice that the mended program does not apply: {' '.join(sorted(slugs(fix.words)))}"
    had = {f.code for f in case if not any(label.must and label.fits(f) for label in known)}
    allowed, _ = labels(source)
    for f in mended:
        if f.code not in had and not any(label.fits(f) for label in allowed):
            yield f"the mended program has a finding of its own: {f.code}"


def missing_libraries(source: str) -> list[str]:
    """Return the packages that a program imports and that are not installed here."""
    names = {
        (node.module if isinstance(node, ast.ImportFrom) else alias.name) or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for alias in node.names
    }
    roots = {name.partition(".")[0] for name in names} - {p.stem for p in LIBRARIES.glob("*.py")}
    return sorted(root for root in roots if root and importlib.util.find_spec(root) is None)


def record(program: Path, to: Path) -> str:
    """Record ``program`` in the directory ``to``, unless that is there. Returns the end of its error, if it failed."""
    if to.exists():
        return ""
    command = [sys.executable, "-m", "jaxscope", "run", "-o", str(to), str(program)]
    env = {**os.environ, "JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, cwd=to.parent, check=False)
    if not done.returncode:
        return ""
    shutil.rmtree(to, ignore_errors=True)
    return done.stderr[-2000:]


def findings_of(run: Path) -> list[Finding]:
    """Return the findings of the run in directory ``run``."""
    return [*registry.findings(load(RunDir(run)))]


def judge_mending(mended: Path, runs: Path) -> list[str]:
    """Return what is wrong with the recorded pair of ``mended`` and its case; empty where the case is not recorded."""
    case = mended.with_name(mended.name.replace("_mended.py", ".py"))
    if not (runs / case.stem).exists():
        return []
    known, _ = labels(case.read_text("utf-8"))
    pair = [findings_of(runs / p.stem) for p in (case, mended)]
    return [*of_the_mending(pair[0], known, pair[1], mended.read_text("utf-8"))]


def judge(program: Path, run: Path) -> Verdict:
    """Compare the findings of a recorded run with the labels of its program."""
    known, never = labels(program.read_text("utf-8"))
    found = findings_of(run)
    verdict = Verdict(program.stem, said=len(found))
    must = [label for label in known if label.must]
    left, verdict.wanted = list(found), len(must)
    for label in must:
        fitting = next((f for f in left if label.fits(f)), None)
        if fitting is None:
            verdict.wrong.append(f"missing: {'|'.join(sorted(label.codes)) or '*'} at line {label.line}")
            continue
        left.remove(fitting)
        verdict.found += 1
    for f in found:
        at = f"{f.code} at line {f.source.line if f.source else '?'}: {text_of(f)[:200]}"
        forbidden = next((pattern for pattern in never if re.search(pattern, text_of(f))), None)
        if forbidden is not None:
            verdict.wrong.append(f"must not be said ({forbidden}): {at}")
        elif (f in left and not any(label.fits(f) for label in known if not label.must)) or (
            f.source is None and f in left
        ):
            verdict.wrong.append(f"false or trivial: {at}")
        else:
            verdict.true += 1
    if must:
        largest = [label for label in must if label.first] or must
        verdict.first = bool(found) and any(label.fits(found[0]) for label in largest)
        if not verdict.first:
            verdict.wrong.append(f"first: {found[0].code if found else 'nothing'}")
    return verdict


def show(v: Verdict) -> None:
    print(
        f"{'ok   ' if not v.wrong else 'WRONG'} {v.name}: {v.found}/{v.wanted} found, {v.said} said",
        flush=True,
    )
    for line in v.wrong:
        print(f"        {line}", flush=True)


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of programs (default: all)")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="keep the recordings, and use those there")
    parser.add_argument("--jobs", type=int, default=1, help="programs run at a time (default 1)")
    options = parser.parse_args()
    chosen = [p for p in sorted(PROGRAMS.glob("*.py")) if p.stem.startswith(tuple(options.names) or ("",))]
    skipped = {p.stem: missing for p in chosen if (missing := missing_libraries(p.read_text("utf-8")))}
    chosen = [p for p in chosen if p.stem not in skipped]
    with tempfile.TemporaryDirectory() as temporary:
        runs = (options.runs or Path(temporary)).resolve()
        runs.mkdir(parents=True, exist_ok=True)
        verdicts: list[Verdict] = []
        with ThreadPoolExecutor(options.jobs) as pool:
            failures = pool.map(lambda p: record(p, runs / p.stem), chosen)
            for program, failure in zip(chosen, failures, strict=True):
                verdicts.append(
                    Verdict(program.stem, wrong=[f"failed: {failure}"])
                    if failure
                    else judge(program, runs / program.stem)
                )
                if not failure and program.stem.endswith("_mended"):
                    verdicts[-1].wrong += judge_mending(program, runs)
                show(verdicts[-1])
    with_cost = [v for v in verdicts if v.first is not None]
    figures = {
        "jax": version("jax"),
        "programs": len(verdicts),
        "skipped": skipped,
        "recall": share(sum(v.found for v in verdicts), sum(v.wanted for v in verdicts)),
        "precision": share(sum(v.true for v in verdicts), sum(v.said for v in verdicts)),
        "largest_cost_first": share(sum(v.first is True for v in with_cost), len(with_cost)),
        "found": sum(v.found for v in verdicts),
        "wanted": sum(v.wanted for v in verdicts),
        "true": sum(v.true for v in verdicts),
        "findings": sum(v.said for v in verdicts),
        "wrong": {v.name: v.wrong for v in verdicts if v.wrong},
    }
    print(json.dumps({k: v for k, v in figures.items() if k != "wrong"}, indent=1))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
