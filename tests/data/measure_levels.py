"""Measure which levels each case of retrace_causes.py reaches, and keep the answer in retrace_levels.json.

    python tests/data/measure_levels.py           # adds or replaces the entry of the JAX it runs under
    python tests/data/measure_levels.py --check   # compares with the entry that is there; exit code 1 if it differs

One entry per JAX version: {case: {"cppmiss", "infer", "TRACE", "lower", "COMPILE", "xla", "error", "note"}}. The counts
are those of the last call of the case alone; `error` is what that call raised, `note` says STALE where it returned an old value.
"""

import json
import sys
from pathlib import Path

import retrace_causes

PATH = Path(__file__).with_name("retrace_levels.json")


def measure():
    levels = {}
    for name, case in retrace_causes.CASES:
        counts, error, note = retrace_causes.measure(case)
        assert name not in levels, f"two cases are called {name!r}"
        levels[name] = {key: counts.get(key, 0) for key in retrace_causes.COLS} | {"error": error, "note": note}
    return levels


def main():
    version = retrace_causes.jax.__version__
    known = json.loads(PATH.read_text()) if PATH.exists() else {}
    levels = measure()
    if "--check" in sys.argv[1:]:
        before = known.get(version, {})
        different = [name for name in {**before, **levels} if before.get(name) != levels.get(name)]
        for name in different:
            print(f"{name}: {before.get(name)} -> {levels.get(name)}")
        sys.exit(bool(different))
    known[version] = levels
    lines = (
        f" {json.dumps(v)}: {{\n"
        + ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        + "\n }"
        for v, rows in sorted(known.items())
    )
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(levels)} cases measured under JAX {version}")


if __name__ == "__main__":
    main()
