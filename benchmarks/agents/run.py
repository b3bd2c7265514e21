"""Follow the commands of the brief JSON report in twenty slow programs, as an agent without judgement would.

Each program is one of tests/data/findings, whose comments label the line and the remedy
(benchmarks/findings.py describes them), with ``NAME_mended.py``, the same program with the remedy applied.
The script runs

    jaxscope run -q program.py
    jaxscope report --format json --brief
    the first command of ``next`` there, which shows the first finding
    the first command of ``next`` there, which shows the call or the program that has it
    the command ``jaxscope try`` of the brief report, with the mended program as the patch

and reads nothing but their stdout. A program counts where the finding has a labelled line and its fix is
an advice that the mended program applies, and where ``try`` confirms that: the finding is gone, a figure
is better, none of the run's figures is worse, and the outputs are equal. (A figure of one program may be
worse: padding costs work in each call.) At most five commands and 20 KB may be read.

    python benchmarks/agents/run.py               # a line for each program, then the figures
    python benchmarks/agents/run.py NAME ...      # some programs; any that has a mended one
    python benchmarks/agents/run.py -o FILE.json
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import findings as labelled

from jaxscope.present import messages

MOST_COMMANDS, MOST_BYTES = 5, 20_000
# Programs that print what they compute, where the mended one prints the same.
PROGRAMS = """
    annotation_that_does_not_divide constraint_gathers diffrax_end_time_float eager_control_flow eager_shard_map
    eqx_lambda_in_each_model eqx_tokens_grow haiku_transform_each_epoch half_and_single_precision
    inner_jit_captures_table iterate_array loop_over_rows mask_in_some_batches nnx_merged_in_loop
    nnx_optimizer_each_fold rate_search_jits_each sentences_of_any_length steps_written_out vector_field_made_anew
    window_that_grows
""".split()  # fmt: skip  # noqa: SIM905


@dataclass
class Outcome:
    """What following the commands in one program led to."""

    name: str
    code: str = ""
    line: int | None = None
    fix: str = ""
    verdict: str = ""
    commands: int = 0
    bytes: int = 0
    wrong: list[str] = field(default_factory=list)


class Shell:
    """Runs commands in a directory, and counts them and what they print."""

    def __init__(self, folder: Path, outcome: Outcome) -> None:
        self._folder, self._outcome = folder, outcome
        self._env = {k: v for k, v in os.environ.items() if not k.startswith(("JAXSCOPE", "GIT_"))}
        self._env |= {"JAX_PLATFORMS": "cpu", "MPLBACKEND": "agg"}

    def __call__(self, command: str, codes: tuple[int, ...] = (0,)) -> str:
        """Return stdout.

        Raises:
          RuntimeError: the exit code is none of ``codes``.
        """
        words = [sys.executable, "-m", *shlex.split(command)]
        done = subprocess.run(
            words, cwd=self._folder, env=self._env, capture_output=True, text=True, check=False
        )
        self._outcome.commands += 1
        if done.returncode not in codes:
            raise RuntimeError(f"{command}: exit code {done.returncode}: {done.stderr[-1500:]}")
        if not command.startswith("jaxscope run "):  # its output is the program's
            self._outcome.bytes += len(done.stdout.encode())
        return done.stdout


def follow(program: Path, folder: Path) -> Outcome:
    """Follow the commands for ``program`` in the new directory ``folder``."""
    outcome = Outcome(program.stem)
    slow = program.read_text("utf-8")
    mended = program.with_name(f"{program.stem}_mended.py").read_text("utf-8")
    repository(folder, slow, mended)
    shell = Shell(folder, outcome)
    try:
        shell("jaxscope run -q program.py")
        brief = json.loads(shell("jaxscope report --format json --brief"))
        first = json.loads(shell(brief["next"][0]["command"]))
        finding = first["value"]
        if first["next"][0]["command"].startswith("jaxscope show "):
            json.loads(shell(first["next"][0]["command"]))
        attempt = next(n["command"] for n in brief["next"] if n["command"].startswith("jaxscope try "))
        tried = json.loads(shell(attempt.replace("FIX.diff", "../fix.diff"), (0, 1, 3, 4)))
    except (RuntimeError, ValueError, KeyError, IndexError, StopIteration) as e:
        outcome.wrong.append(f"{type(e).__name__}: {e}")
        return outcome
    judge(outcome, finding, tried, slow, mended)
    return outcome


def repository(folder: Path, slow: str, mended: str) -> None:
    """Make a repository with the slow program, and beside it the patch that mends it."""
    folder.mkdir()
    (folder / "program.py").write_text(slow, "utf-8")
    lines = slow.splitlines(keepends=True), mended.splitlines(keepends=True)
    patch = "".join(difflib.unified_diff(*lines, "a/program.py", "b/program.py"))
    (folder.parent / "fix.diff").write_text(patch, "utf-8")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "slow"]):
        name = ["-c", "user.name=benchmark", "-c", "user.email=benchmark@example.org"]
        subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


def judge(outcome: Outcome, finding: dict[str, Any], tried: dict[str, Any], slow: str, mended: str) -> None:
    """Compare what was found with the labels of the program and the advice that the fixed one applies."""
    source, fix = finding["source"] or {}, finding["fix"] or ""
    outcome.code, outcome.line, outcome.fix = finding["code"], source.get("line"), fix
    outcome.verdict = tried["verdict"]
    known, _ = labelled.labels(slow)
    must = [label for label in known if label.must]
    text = f"{finding['title']} -> {fix}"
    fitting = [
        label
        for label in [label for label in must if label.first] or must
        if (not label.codes or finding["code"] in label.codes)
        and label.line == outcome.line
        and re.search(label.pattern, text)
    ]
    if not fitting:
        outcome.wrong.append(f"{finding['code']} at line {outcome.line} is not the labelled finding")
    if not any(re.search(pattern(slug), fix) for slug in labelled.applied(mended)):
        outcome.wrong.append(f"the mended program applies another remedy than: {fix}")
    worse = [f["name"] for f in tried["facts"] if f["function"] is None and f["verdict"] == "worse"]
    better = [f["name"] for f in tried["facts"] if f["verdict"] == "better"]
    if worse or not better or not tried["outputs"]["equal"]:
        outcome.wrong.append(f"try: {tried['verdict']}: worse {worse}, better {better}, {tried['outputs']}")
    if outcome.code not in {f["code"] for f in tried["findings_gone"]}:
        outcome.wrong.append(f"try: {outcome.code} is still found")
    if outcome.commands > MOST_COMMANDS or outcome.bytes > MOST_BYTES:
        outcome.wrong.append(f"{outcome.commands} commands, {outcome.bytes:,} bytes")


def pattern(slug: str) -> str:
    """Return a regular expression for the texts of a message."""
    parts = re.split(r"\{[^}]*\}", messages.TEMPLATES[slug])
    return ".*".join(map(re.escape, parts))


def show(o: Outcome) -> None:
    state = "ok   " if not o.wrong else "WRONG"
    print(
        f"{state} {o.name}: {o.code} line {o.line}, {o.commands} commands, {o.bytes:,} bytes, {o.verdict}",
        flush=True,
    )
    for line in o.wrong:
        print(f"        {line}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs (default: the twenty)")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write the figures as JSON")
    options = parser.parse_args()
    outcomes = []
    for name in options.names or PROGRAMS:
        with tempfile.TemporaryDirectory() as temporary:
            outcomes.append(follow(labelled.PROGRAMS / f"{name}.py", Path(temporary) / "project"))
        show(outcomes[-1])
    figures = {
        "jax": version("jax"),
        "programs": len(outcomes),
        "right": sum(not o.wrong for o in outcomes),
        "most_commands": max(o.commands for o in outcomes),
        "most_bytes": max(o.bytes for o in outcomes),
        "bytes": sum(o.bytes for o in outcomes) // len(outcomes),
        "wrong": {o.name: o.wrong for o in outcomes if o.wrong},
    }
    print(json.dumps(figures, indent=1))
    if options.out:
        options.out.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 1 if figures["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
