"""How long it takes to read, fold and report a job of many ranks, and how much memory: python benchmarks/ranks.py 1024 500

The logs are written by hand: each rank compiles the same programs, the last one has another program in the middle.
"""

from __future__ import annotations

import io
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from written import Log, exited, function, key, leaf

from jaxscope.log import ranks as places
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import ranks
from jaxscope.model.load import load
from jaxscope.report import text
from jaxscope.report.console import console
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Device


def write(path: Path, size: int, compilations: int) -> RunDir:
    """Write a job of ``size`` ranks with as many ``compilations`` each."""
    first = places.join(path, "j", 0, size, name="train")
    for n in range(size):
        place = first if n == 0 else places.join(path, "j", n, size, name="train")
        log = Log(place, pid=1000 + n, how="run")
        log.writer.process_index = n
        log.say(
            ev.BackendSeen(platform="cpu", devices=[Device(i, "cpu", i) for i in range(8)], process_count=8)
        )
        functions = [function(f"step{i}", line=i + 1) for i in range(20)]
        for f in functions:
            log.say(f)
        for i in range(compilations):
            call = log.missed(functions[i % 20], key(leaf("x", i), leaf("y", i, 8)), step=i)
            odd = n == size - 1 and i == compilations // 2
            program = f"{i:016x}" if not odd else "f" * 16
            log.phase(call, "trace", 0.01)
            log.phase(call, "lower", 0.01, program=program, module="jit_step")
            log.phase(call, "compile", 0.1, program=program, devices="0-7", persistent_cache="off")
        log.end()
        exited(place, pid=1000 + n, seconds=100.0)
    return RunDir(path)


def main() -> None:
    size, compilations = (int(word) for word in (sys.argv[1:] or ["1024", "500"]))
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        whole = write(Path(folder) / "job", size, compilations)
        print(
            f"{size:,} ranks with {compilations:,} compilations written in {time.perf_counter() - began:.1f} s"
        )
        log = store.rank_runs(whole)[0].bytes_on_disk()
        print(f"log of a rank {log / 1e6:.2f} MB")
        began = time.perf_counter()
        job = ranks.read(whole)
        read = time.perf_counter()
        groups, found = job.groups(), job.divergences()
        folded = time.perf_counter()
        directory = store.one_process(whole)
        to = console(io.StringIO())
        text.render(load(directory), to, directory, job=job)
        ended = time.perf_counter()
        print(f"read {read - began:.1f} s, folded {folded - read:.2f} s, reported {ended - folded:.1f} s")
        print(f"{len(groups)} groups, {len(found)} difference at position {found[0].position}")
        print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
