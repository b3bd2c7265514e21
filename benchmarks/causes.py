"""Count how often jaxscope names the true cause of a miss: its kind, its level, the path of what changed.

Labelled cases (tests/data/causes): each warms a function up and makes one call of which kind, level and path
are known from its construction, or that hits the cache and has no cause. Side by side, in the same run, JAX's
own explainer (``jax_explain_cache_misses``) on fresh function objects, read generously: a pattern a case says
what would count.

    python benchmarks/causes.py                 # a table, each miss with what was reported; exit code 1 if one is wrong
    python benchmarks/causes.py -o FILE.json    # the figures, and what was reported for each case
    python benchmarks/causes.py --verify        # the labels' levels against independent counters, nothing recorded
    python benchmarks/causes.py --names         # tests/data/causes/names.txt is made with it
    python benchmarks/causes.py --only TEXT     # cases whose name holds TEXT
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "data"))

import jax
from causes import CASES, counted, level
from causes.judge import Verdict, allowed, explained, judge, wanted
from causes.recorded import explain, file_of, record

PARTS = ("kind", "level", "path", "right")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--verify", action="store_true", help="check the labels' levels by independent counters"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name holds TEXT")
    parser.add_argument("-v", "--verbose", action="store_true", help="say what was said of every case")
    parser.add_argument("--names", action="store_true", help="print the names of the cases")
    options = parser.parse_args()
    cases = [c for c in CASES if options.only in c.name]
    if options.names:
        print("\n".join(c.name for c in cases if not c.slow))
        return 0
    if options.verify:
        return verify(cases)
    with tempfile.TemporaryDirectory() as directory:
        recorded = record(cases, Path(directory) / "run")
    logs = explain(cases)
    verdicts = {c.name: judge(c, recorded[c.name].compilations, file_of(c)) for c in cases}
    named = {c.name: explained(c, logs.get(c.name, "")) for c in cases}
    for case in cases:
        error, verdict = recorded[case.name].error, verdicts[case.name]
        if error is not None:
            verdicts[case.name] = Verdict(said=f"the program failed: {error}")
        wrong = not verdicts[case.name].right
        if wrong or options.verbose or not verdict.line:
            print(f"{headline(case, verdicts[case.name])}  {case.name}")
            print(f"     true: {wanted(case)}")
            print(f"     said: {verdicts[case.name].said or '-'}")
    figures = summary(cases, verdicts, named)
    show(figures)
    if options.out:
        figures["by_case"] = {
            c.name: {
                "true": wanted(c),
                **{
                    part: getattr(verdicts[c.name], part)
                    for part in (*PARTS, "line", "unknown", "extra", "said")
                },
                "explainer": named[c.name],
            }
            for c in cases
        }
        here = (
            str(Path(__file__).resolve().parents[1]) + "/"
        )  # figures are committed: they name no machine's folders
        text = re.sub(r"/[\w./-]*?/site-packages/", "site-packages/", json.dumps(figures, indent=1))
        options.out.write_text(text.replace(here, "") + "\n")
    return 0 if all(v.right for v in verdicts.values()) else 1


def headline(case: object, verdict: Verdict) -> str:
    if verdict.right:
        return "ok  " if verdict.line else "LINE"
    if verdict.unknown:
        return "UNKNOWN"
    return "FALSE" if not case.causes else "MISS"


def summary(cases: list, verdicts: dict, named: dict) -> dict:
    rows: dict[str, dict[str, int]] = {}
    for case in cases:
        kind = case.causes[0].kind if case.causes else "control"
        groups = [kind if isinstance(kind, str) else kind[0]]
        if case.causes:
            groups += [
                "all misses",
                "fast path alone" if case.causes[0].level == "fast_path" else "trace, lower or compile",
            ]
        verdict = verdicts[case.name]
        for group in groups:
            row = rows.setdefault(
                group, dict.fromkeys(("cases", *PARTS, "line", "unknown", "explainer", "explainer_silent"), 0)
            )
            row["cases"] += 1
            for part in (*PARTS, "line", "unknown"):
                row[part] += bool(getattr(verdict, part))
            # JAX is right about a control when it says nothing.
            row["explainer"] += named[case.name] is None if not case.causes else bool(named[case.name])
            row["explainer_silent"] += named[case.name] is None
    last = ("trace, lower or compile", "fast path alone", "all misses", "control")
    order = sorted(rows, key=lambda name: (last.index(name) if name in last else -1, -rows[name]["cases"]))
    return {
        "jax": jax.__version__,
        "python": sys.version.split()[0],
        "cases": len(cases),
        "by_kind": {name: rows[name] for name in order},
        "extra_causes": sum(v.extra for v in verdicts.values()),
    }


def show(figures: dict) -> None:
    print(f"\nJAX {figures['jax']}, Python {figures['python']}: right of how many\n")
    print(
        f"{'':26}{'cases':>6} |{'kind':>6}{'level':>6}{'path':>6}{'all 3':>6}{'line':>6}{'unknown':>8} | {'JAX explains':>12}{'silent':>8}"
    )
    for name, row in figures["by_kind"].items():
        if name == "trace, lower or compile":
            print("-" * 100)
        print(
            f"{name:26}{row['cases']:6} |{row['kind']:6}{row['level']:6}{row['path']:6}{row['right']:6}{row['line']:6}"
            f"{row['unknown']:8} | {row['explainer']:12}{row['explainer_silent']:8}"
        )
    print(f"\n{figures['extra_causes']} causes were listed beyond those of the label")


def verify(cases: list) -> int:
    """Count the measured calls that do not miss at the level of their label."""
    wrong = 0
    for case in cases:
        counts = counted(case)
        real = level(counts, case.eager)
        label = case.causes[0].level if case.causes else None
        if not allowed(label, real):
            wrong += 1
            print(f"{case.name}: label {label}, real {real} {counts}")
    print(f"{len(cases)} labels under JAX {jax.__version__}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
