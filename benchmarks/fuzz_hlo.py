"""Damage compiled texts for a while and analyze what is left: no analysis may raise or hang.

    python benchmarks/fuzz_hlo.py [--seconds 600] [--seed N] [FILE ...]

Without files the modules of tests/data/hlo. Prints how many texts, the slowest of them per character, and
writes the text of a failure to fuzz_hlo.failed.txt.
"""

from __future__ import annotations

import argparse
import gzip
import random
import sys
import time
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "analysis" / "hlo")]
from hlo_damage import DAMAGE, damaged  # noqa: E402

from jaxscope.analysis.hlo import graph  # noqa: E402
from jaxscope.analysis.hlo.program import analyze  # noqa: E402
from jaxscope.analysis.programs import Texts  # noqa: E402
from jaxscope.report.programs import texts_json  # noqa: E402

FOREIGN = [
    "module @jit_f attributes {mhlo.num_partitions = 8 : i32} {\n  func.func public @main(%arg0: tensor<4xf32>) {\n",
    "{ lambda ; a:f32[4]. let b:f32[4] = sin a in (b,) }\n",
    "Traceback (most recent call last):\n  File \"m.py\", line 3, in <module>\nKeyError: '%a = f32[] add('\n",
    "digraph G {\n  a -> b;\n}\n",
    "%0 = add i32 %a, %b, !dbg !7\n",
]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--seconds", type=float, default=600)
    options.add_argument("--seed", type=int, default=None)
    given = options.parse_args()
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(1 << 32)
    chance = random.Random(seed)
    paths = given.files or sorted((ROOT / "tests" / "data" / "hlo").glob("*.hlo.txt.gz"))
    texts = [gzip.decompress(p.read_bytes()).decode() if p.suffix == ".gz" else p.read_text() for p in paths]
    print(f"seed {seed}, {len(texts)} texts")
    end = time.monotonic() + given.seconds
    count, slowest = 0, (0.0, "")
    while time.monotonic() < end:
        kinds = [chance.choice(sorted(DAMAGE)) for _ in range(chance.randint(1, 3))]
        text = chance.choice(texts)
        if chance.random() < 0.1:
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(FOREIGN) * chance.randint(1, 50) + text[at:]
        for kind in kinds:
            text = damaged(text, kind, chance)
        began = time.perf_counter()
        try:
            program = analyze(text, mesh=[("data", 4), ("model", 2)] if chance.random() < 0.5 else None)
            msgspec.json.encode(texts_json(Texts(program, None)))
            graph.of(text)
            failed = [p.text for p in program.problems if "could not be" in p.text]  # the last resort
        except Exception as error:
            failed = [f"{type(error).__name__}: {error}"]
        seconds = time.perf_counter() - began
        if failed or seconds > 60:
            Path("fuzz_hlo.failed.txt").write_text(text, errors="surrogatepass")
            print(f"FAILED after {count} texts, {seconds:.1f} s, damage {kinds}: {failed}")
            return 1
        count += 1
        slowest = max(
            slowest, (seconds / (len(text) + 1000), f"{seconds:.2f} s for {len(text)} characters, {kinds}")
        )
    print(f"{count} texts, none raised; the slowest: {slowest[1]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
