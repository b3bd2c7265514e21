"""How long it takes to read, fold and report a job of many ranks, and how much memory: python benchmarks/ranks.py 1024 500

With a third word, ``live``, the job is followed as rank 0's watcher does: the first look reads all logs, the following ones
find nothing new. With ``published`` the ranks publish their programs, which takes a value each of at most 2 KB.

The logs are written by hand: each rank compiles the same programs, the last one has another program in the middle.
"""

from __future__ import annotations

import io
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from handwritten_runs import Log, exited, function, key, leaf

from jaxscope import jax_internals
from jaxscope.capture.peers import PER_RANK_S, ROUND_S, Peers
from jaxscope.cli.progress import reading
from jaxscope.log import ranks as places
from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.model import ranks
from jaxscope.model.load import load
from jaxscope.report import text
from jaxscope.report.console import console
from jaxscope.report.live_ranks import Comparison
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
            ev.BackendSeen(
                platform="cpu", devices=[Device(i, "cpu", i) for i in range(size)], process_count=size
            )
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
            log.phase(call, "compile", 0.1, program=program, devices=f"0-{size - 1}", persistent_cache="off")
        log.end()
        exited(place, pid=1000 + n, seconds=100.0)
    return RunDir(path)


def live(whole: RunDir) -> None:
    """Print what each look at the ranks of a job costs, and what it finds."""
    comparison = Comparison(whole)
    for _ in range(4):
        began, cpu = time.perf_counter(), time.thread_time()
        lines = comparison.poll()
        print(
            f"look {time.perf_counter() - began:.2f} s, {time.thread_time() - cpu:.2f} s of CPU, lines {lines}"
        )
        time.sleep(1)
    print(f"memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


def published(size: int, compilations: int) -> None:
    """Print what one round of rank 0 costs where each rank publishes its programs, without the network."""
    values: dict[str, str] = {}

    class Client:
        def key_value_set(self, key: str, value: str, allow_overwrite: bool) -> None:
            values[key] = value

        def key_value_dir_get(self, prefix: str) -> list[tuple[str, str]]:
            return list(values.items())

    client = Client()
    jax_internals.coordination_client = lambda: client
    ranks_ = [Peers(None, n, size) for n in range(size)]  # type: ignore[arg-type]
    for n, peers in enumerate(ranks_):
        peers._own = [(f"{i:064x}", f"step{i}@/home/ann/work/train.py:{i}") for i in range(compilations)]
        if n:
            peers._round(0)
    for _ in range(2):
        cpu = time.thread_time()
        ranks_[0]._round(0)
        print(f"round {time.thread_time() - cpu:.2f} s of CPU, every {max(ROUND_S, PER_RANK_S * size):.1f} s")
    sizes = [len(k) + len(v) for k, v in values.items()]
    print(f"{max(sizes):,} bytes for a rank, {sum(sizes) / 1e6:.2f} MB for rank 0 in each round")


def cpu() -> float:
    """Return the seconds of CPU of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    words = sys.argv[1:] or ["1024", "500"]
    size, compilations = int(words[0]), int(words[1])
    if words[2:] == ["published"]:
        published(size, compilations)
        return
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        whole = write(Path(folder) / "job", size, compilations)
        print(
            f"{size:,} ranks with {compilations:,} compilations written in {time.perf_counter() - began:.1f} s"
        )
        log = store.rank_runs(whole)[0].bytes_on_disk()
        print(f"log of a rank {log / 1e6:.2f} MB")
        if words[2:] == ["live"]:
            live(whole)
            return
        began, used = time.perf_counter(), cpu()
        with reading("ranks"):  # as the command does
            job = ranks.read(whole)
        read, used_to_read = time.perf_counter(), cpu() - used
        groups, found = job.groups(), job.divergences()
        folded, used_to_fold = time.perf_counter(), cpu() - used - used_to_read
        directory = store.one_process(whole)
        to = console(io.StringIO())
        text.render(load(directory), to, directory, job=job)
        ended = time.perf_counter()
        print(f"read {read - began:.1f} s, folded {folded - read:.2f} s, reported {ended - folded:.1f} s")
        print(f"CPU of all processes: read {used_to_read:.1f} s, folded {used_to_fold:.1f} s")
        print(f"{len(groups)} groups, {len(found)} difference at position {found[0].position}")
        of_processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        own, child = (resource.getrusage(who).ru_maxrss / 1e6 for who in of_processes)
        print(f"memory {own:.2f} GB, and {child:.2f} GB in each of {os.cpu_count()} processes that read")


if __name__ == "__main__":
    main()
