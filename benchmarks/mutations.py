"""Count which changes to a training step ``jaxscope check`` reports.

Small changes to a training step on eight devices are each recorded in a process of their own and compared
with the baseline of the unchanged step; so is the unchanged step, many times.

    python benchmarks/mutations.py                 # a table; exit code 1 if a change is missed or a clean run fails
    python benchmarks/mutations.py --clean 10      # how often the unchanged step is recorded and checked
    python benchmarks/mutations.py --only TEXT     # changes whose name holds TEXT
    python benchmarks/mutations.py -o FILE.json    # what was reported for each change
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "programs"))

from changes_of_step import CHANGES, DEVICES, PROGRAM, Change, names_it

import jaxscope


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clean", type=int, default=10, metavar="N", help="unchanged runs (default: 10)")
    parser.add_argument("--only", default="", metavar="TEXT", help="changes whose name holds TEXT")
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write what was said as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), options)


def measure(folder: Path, options: argparse.Namespace) -> int:
    began = time.monotonic()
    baseline = folder / "first" / "baseline.json"  # beside the program: files are named from there
    record(folder / "first", PROGRAM.read_text())
    check(folder / "first", baseline, "--update-baseline")
    clean = []
    for n in range(options.clean):
        where = folder / f"clean{n}"
        record(where, PROGRAM.read_text())
        code, found = check(where, baseline, "--strict")
        clean.append({"exit_code": code, "findings": [f["title"] for f in found]})
        print(f"{'ok' if code == 0 and not found else 'FAILED'}  unchanged, {n + 1}")
    said = []
    for n, change in enumerate(c for c in CHANGES if options.only in c.name):
        where = folder / f"change{n}"
        record(where, change.source())
        code, found = check(where, baseline)
        said.append(judge(change, code, found))
        print(f"{'ok' if said[-1]['named'] else 'MISSED'}  {change.name}")
        for f in said[-1]["findings"]:
            print(f"      {f}")
    named = sum(s["named"] for s in said)
    passed = sum(c["exit_code"] == 0 and not c["findings"] for c in clean)
    print(
        f"\n{named} of {len(said)} changes named, {passed} of {len(clean)} unchanged runs without a finding"
    )
    if options.out is not None:
        figures = {
            "jaxscope": jaxscope.__version__,
            "jax": jax_version(),
            "changes": len(said),
            "named": named,
            "unchanged": len(clean),
            "passed": passed,
            "seconds": round(time.monotonic() - began),
            "each": said,
        }
        options.out.write_text(json.dumps(figures, indent=1) + "\n")
    return 0 if named == len(said) and passed == len(clean) else 1


def record(where: Path, source: str) -> None:
    """Run the program under ``jaxscope run`` in ``where``."""
    where.mkdir()
    (where / "step.py").write_text(source)
    call(where, "run", "-q", "-o", "recorded", "step.py", ok=(0,))


def check(where: Path, baseline: Path, *options: str) -> tuple[int, list[dict[str, Any]]]:
    done = call(where, "check", "recorded", "--baseline", str(baseline), "--output-format", "json", *options)
    return done.returncode, json.loads(done.stdout)["findings"]


def call(where: Path, *words: str, ok: tuple[int, ...] = (0, 1)) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "CI" and not k.startswith("JAXSCOPE")}
    done = subprocess.run(
        [sys.executable, "-m", "jaxscope", *words],
        cwd=where,
        env={**env, **DEVICES},
        capture_output=True,
        text=True,
    )
    if done.returncode not in ok:
        raise SystemExit(f"jaxscope {words[0]} in {where} ended with {done.returncode}:\n{done.stderr}")
    return done


def judge(change: Change, code: int, found: list[dict[str, Any]]) -> dict[str, Any]:
    named = [f for f in found if f["severity"] != "note" and names_it(change, f)]
    return {
        "change": change.name,
        "wanted": change.code,
        "named": bool(named) and code == 1,
        "findings": [f"{f['code']} {f['title']}" for f in found],
    }


def jax_version() -> str:
    done = subprocess.run(
        [sys.executable, "-c", "import jax; print(jax.__version__)"], capture_output=True, text=True
    )
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
