"""Compare the levels that jaxscope reports with what happened, in 92 labelled single-cause cases.

Each case warms a function up, then makes one call; independent counters (wrapped functions of JAX,
in tests/data/retrace_causes.py) say whether that call was traced, lowered, compiled, and really
compiled by XLA rather than read from the persistent cache. Here the same call is recorded.

    python benchmarks/levels.py            # prints every disagreement; exit code 1 if one is not listed
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "data"))

import retrace_causes

import jaxscope
from jaxscope.log import reader
from jaxscope.schema import events as ev

# Cases where the two cannot agree, and why.
UNSEEN = (
    "nothing is traced, lowered or compiled, and JAX announces nothing: Python is entered and finds everything "
    "in its caches. The counter counts entries of _infer_params, which cost microseconds"
)
EXPECTED = {
    "infer_params LRU evicted (2100 other traces), .trace()": UNSEEN,
    "called under grad, 2nd time": UNSEEN,
    "called inside another jit": UNSEEN,
}


def reported(events: list, name: str = "target") -> Counter:
    """Count the levels reached by calls of ``name``, by the names of JAX's counters."""
    functions = {e.function for e in events if isinstance(e, ev.FunctionSeen) and name in e.qualname}
    calls = {e.call for e in events if isinstance(e, ev.Missed) and e.function in functions}
    found: Counter = Counter()
    for e in events:
        if isinstance(e, ev.Missed) and e.call in calls and e.entry not in ("aot", "nested"):
            found["cppmiss"] += 1
        elif isinstance(e, ev.MissesCounted) and e.function in functions:
            found["cppmiss"] += e.count
        elif isinstance(e, ev.Traced) and e.call in calls:
            found["TRACE"] += 1
        elif isinstance(e, ev.Lowered) and e.call in calls:
            found["lower"] += 1
        elif isinstance(e, ev.Compiled) and e.call in calls:
            found["COMPILE"] += 1
            found["xla"] += e.persistent_cache != "hit"
    return found


def main() -> int:
    disagree = 0
    with tempfile.TemporaryDirectory() as directory, jaxscope.record(Path(directory) / "run") as run:
        follow = reader.Reader(run._directory())
        everything: list = []
        for name, case in retrace_causes.CASES:
            # The functions are introduced while they warm up: keep what was said before the call.
            start: list[int] = []
            real_clear = retrace_causes.C.clear

            def clear() -> None:
                everything.extend(follow.poll())
                start.append(len(everything))
                real_clear()

            retrace_causes.C.clear = clear
            try:
                counts, error, _ = retrace_causes.measure(case)
            finally:
                del retrace_causes.C.clear
            everything.extend(follow.poll())
            seen = reported(introductions(everything[: start[-1]]) + everything[start[-1] :])
            keys = ("TRACE", "lower", "COMPILE", "xla")
            real = {k: counts.get(k, 0) for k in keys}
            mine = {k: seen[k] for k in keys}
            # A miss under a transform is one call and several internal misses: any is one.
            real["cppmiss"], mine["cppmiss"] = bool(counts.get("cppmiss")), bool(seen["cppmiss"])
            if real != mine:
                reason = EXPECTED.get(name)
                disagree += reason is None
                print(
                    f"{name}\n   real {real}\n   seen {mine}\n   {'expected: ' + reason if reason else 'NOT EXPECTED'} {error or ''}"
                )
    print(
        f"{len(retrace_causes.CASES)} cases under JAX {retrace_causes.jax.__version__}: {disagree} unexpected disagreements"
    )
    broken = [f"{e.seam}: {e.reason}" for e in everything if isinstance(e, ev.Degraded)]
    print("degraded:", broken) if broken else None
    return 1 if disagree or broken else 0


def introductions(events: list) -> list:
    return [e for e in events if isinstance(e, ev.FunctionSeen)]


if __name__ == "__main__":
    sys.exit(main())
