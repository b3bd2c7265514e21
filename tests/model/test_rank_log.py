"""What is read of one rank alone, against the records of its whole run."""

import math

import msgspec
import pytest
from handwritten_runs import Log, exited, function, key, leaf, training

from jaxscope.log import counts, store
from jaxscope.model.load import load
from jaxscope.model.rank_log import Known, RankLog
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Device, Frame, Memory


def read(directory):
    log = RankLog(directory, Known())
    log.poll()
    return log, log.rank()


def rank_of_two(path, **started):
    """Begin the log of rank 1 of 2."""
    log = Log(store.create(path, name="00001", rank=1), how="run", **started)
    log.writer.process_index = 1
    log.say(ev.BackendSeen(platform="cpu", devices=[Device(i, "cpu", i) for i in (0, 1)], process_count=2))
    log.say(ev.ContextSeen(context="c1", settings={"precision": "highest"}))
    return log


def compiled(log, seen, shape, **more):
    call = log.missed(seen, key(leaf("x", shape)), **more)
    log.phase(call, "trace", 0.25)
    log.phase(call, "lower", 0.5, program=f"p{shape}")
    memory = Memory(100, 20, 0, shape, None)
    log.phase(
        call, "compile", 2.0, program=f"p{shape}", devices="0-1", persistent_cache="miss", memory=memory
    )


def test_the_figures_of_a_rank_are_those_of_its_run(tmp_path):
    directory = training(tmp_path / "run")
    run, (_, rank) = load(directory), read(directory)
    functions = run.functions.values()
    assert rank.trace_seconds == pytest.approx(math.fsum(f.trace_seconds for f in functions))
    assert rank.lower_seconds == pytest.approx(math.fsum(f.lower_seconds for f in functions))
    assert rank.compile_seconds == pytest.approx(math.fsum(f.compile_seconds for f in functions))
    assert rank.compiled == sum(f.compiled for f in functions) and rank.steps == run.main.step
    assert (rank.began_ns, rank.last_ns, rank.code) == (run.began_ns, run.last_ns, 0)
    slow = max(run.compilations.values(), key=lambda c: c.seconds)
    assert rank.slowest == (slow.site, slow.function.display_name, slow.seconds)
    assert rank.memory == 4096 + 128 + 65536 and rank.seen == []  # all devices are of one process


def test_a_compilation_is_described_as_in_the_run(tmp_path):
    log = rank_of_two(tmp_path / "r")
    step = function("main.<locals>.step", line=30)
    log.say(step)
    log.missed(step, key(leaf("x", 4)))  # compiles nothing: it has no number
    compiled(log, step, 8, step=3)
    compiled(log, step, 16, step=4, entry="aot")
    log.say(ev.ProgramText(program="p8", stage="stablehlo", blob="aa"))
    log.end()
    exited(log.run, 3)
    run, (found, rank) = load(log.run), read(log.run)
    assert found.index == 1 and rank.code == 3 and rank.state == "exited"
    for seen, c in zip(rank.seen, list(run.compilations.values())[1:], strict=True):
        assert (seen.program, seen.compilation, seen.number) == (c.program, c.id, run.number(c))
        assert (seen.name, seen.function) == ("main.step", step.function)
        assert (seen.site, seen.key, seen.step, seen.t_ns) == (c.site, c.key, c.step, c.compiled.t_ns)
        assert seen.defined == Frame(step.file, 30, "main.<locals>.step") and seen.cache == "miss"
        assert seen.processes == {0, 1} and seen.settings == {"precision": "highest"}
    assert [(s.number, s.ordered, s.stablehlo) for s in rank.seen] == [(1, True, "aa"), (2, False, None)]


def test_a_phase_that_goes_on_and_a_step_that_only_the_counts_have_are_read(tmp_path):
    log = rank_of_two(tmp_path / "r")
    step = function("step")
    log.say(step)
    cell, page, index = counts.Cells(log.writer._path.with_suffix(counts.SUFFIX)).take()
    log.say(ev.Step(index=2, cell=cell))
    call = log.missed(step, key(leaf("x", 8)))
    log.say(ev.Lowered(call=call, program="p8", num_partitions=2))
    log.say(ev.PhaseBegan(call=call, phase="compile"), after=5.0)
    found, rank = read(log.run)
    assert rank.steps == 2 and rank.phase == (
        "compile",
        Frame("/home/ann/work/train.py", 140, "main"),
        log._t(),
    )
    assert [(s.program, s.cache) for s in rank.seen] == [("p8", None)]
    page[index] = 7
    assert found.poll() and found.rank().steps == 7 and not found.poll()
    log.say(ev.Compiled(call=call, program="p8", devices="0-1", seconds=1.0))
    assert found.poll() and found.rank().phase is None and found.rank().seen[0].t_ns == log._t()


def test_lines_that_are_damaged_or_of_another_version_hide_nothing_else(tmp_path):
    log = rank_of_two(tmp_path / "r")
    step = function("step")
    log.say(step)
    compiled(log, step, 8)
    path = log.writer._path
    with path.open("ab") as f:
        f.write(b'{"kind":"Compiled","call":"one"}\n{"kind":"FromTheFuture","t_ns":1}\n\xff\xfe\n[]\n')
        f.write(b'{"kind":"Step","index":' + b"9" * 400 + b"}\n")
        f.write(b'{"kind":"Missed","call":9,"function":"f","key":{"arguments":3},"pid":1000}\n')
        f.write(b'{"kind":"Compiled","call":9,"program":"q","devices":"0-1","pid":1000}\n')
    _, rank = read(log.run)
    assert [(s.program, s.key is None) for s in rank.seen] == [("q", True), ("p8", False)]
    assert rank.steps is None


def test_every_kind_of_event_is_read_without_error(tmp_path):
    log = rank_of_two(tmp_path / "r")
    for kind in msgspec.inspect.type_info(ev.AnyEvent).types:
        log.say(kind.cls())
    found, _ = read(log.run)
    assert found._reader.damaged == 0
