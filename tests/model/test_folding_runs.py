"""Events folded into a run: counts, levels, what is in progress, and logs that lost something."""

import sys

import handwritten_runs
import msgspec
import pytest
from handwritten_runs import Log, function, key, leaf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxscope.log import store
from jaxscope.log.reader import Reader
from jaxscope.model.causes import compared, recompilations, recompiled
from jaxscope.model.load import Tail, load, state
from jaxscope.model.records import cached_until_changed
from jaxscope.model.run import Run
from jaxscope.present.causes import values
from jaxscope.report.json_report import as_json, dumps
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Memory

F, G = function("step"), function("other", line=7)


@pytest.fixture
def directory(tmp_path):
    return store.create(tmp_path / "run")


@pytest.fixture
def log(directory):
    made = Log(directory)
    made.say(F)
    made.say(G)
    return made


def only(run: Run):
    [c] = run.compilations.values()
    return c


def test_memory_that_xla_computed_after_the_compilation_is_the_programs(directory, log):
    call = log.compiled(F, key(leaf("x", 4)), program="p")
    again = log.compiled(G, key(leaf("y", 4)), program="p", line=150)
    for number, temp in ((call, 1), (again, 2)):
        log.say(ev.MemoryRead(call=number, memory=Memory(4, 4, 0, temp, 0)))
    run = load(directory)
    assert [c.compiled.memory.temp_bytes for c in run.compilations.values()] == [1, 2]
    assert run.programs["p"].compiled.memory.temp_bytes == 2 and not any(run.lost)
    run.apply(ev.MemoryRead(call=99, memory=Memory(4, 4, 0, 3, 0)), log="")  # its Compiled is missing


def test_a_training_run_is_counted_as_it_was(tmp_path):
    run = load(handwritten_runs.training(tmp_path / "run"))
    step = run.functions[function("train_step").function]
    assert (step.traces, step.lowerings, step.compiled, step.persistent_cache_hits) == (4, 4, 4, 1)
    assert step.trace_seconds == pytest.approx(5.8)
    assert step.compile_seconds == pytest.approx(24.3)
    assert (step.calls, step.fast_path_misses, step.watched, step.step) == (381, 41, True, True)
    assert [c.step for c in recompilations(step, run)] == [2, 204, 376]
    assert (run.seconds, run.complete, run.exited.exit_code) == (134.0, True, 0)
    assert [d.id for d in run.devices] == list(range(8))
    assert run.compiling_seconds == pytest.approx(44.08)
    eager = run.functions[function("add", None, None).function]
    assert eager.seen.eager and eager.calls is None and not eager.user


def test_levels_are_distinguished(log, directory):
    def reached(*phases):
        call = log.missed(F, key(leaf("x", 1)))
        for phase in phases:
            log.phase(call, phase, 0.1)
        run = load(directory)
        return next(c.reached for c in run.compilations.values() if c.call == call)

    assert reached() == ["fast_path"]
    assert reached("reuse") == ["fast_path"]
    assert reached("trace", "lower", "compile") == ["traced", "lowered", "compiled"]
    assert reached("reuse", "lower", "compile") == ["lowered", "compiled"]
    assert reached("compile") == ["compiled"]
    assert reached("trace") == ["traced"]
    run = load(directory)
    f = run.functions[F.function]
    assert (f.traces, f.lowerings, f.compiled, f.fast_path_misses) == (2, 2, 3, 2)
    assert f.trace_seconds == pytest.approx(0.4)  # looking for an earlier trace takes time too


def test_a_persistent_cache_hit_is_compiled_and_a_hit(log, directory):
    log.compiled(F, key(leaf("x", 1)), cache="hit")
    f = load(directory).functions[F.function]
    assert (f.compiled, f.persistent_cache_hits) == (1, 1)
    assert f.compilations[0].reached[-1] == "compiled"


def test_a_failed_phase_reached_nothing(log, directory):
    call = log.missed(F, key(leaf("x", 1)))
    log.say(ev.PhaseBegan(call=call, phase="trace"))
    log.say(ev.PhaseFailed(call=call, phase="trace", seconds=0.5), after=0.5)
    c = only(load(directory))
    assert (c.reached, c.phase, c.trace_seconds, c.failed.phase) == ([], None, 0.5, "trace")
    assert c.function.traces == 0 and c.function.trace_seconds == 0.5


def test_what_is_compiled_while_a_function_is_traced_counts_once(log, directory):
    outer = log.missed(F, key(leaf("x", 1)))
    log.say(ev.PhaseBegan(call=outer, phase="trace"))
    log.compiled(G, key(leaf("y", 1)), (0.5, 0.25, 2.0), inside=outer)
    log.compiled(G, key(leaf("y", 2)), (0.5, 0.25, 2.0), inside=outer)
    log.say(ev.Traced(call=outer, seconds=6.0), after=0.5)
    log.phase(outer, "lower", 0.25)
    run = load(directory)
    f, g = run.functions[F.function], run.functions[G.function]
    assert (f.trace_seconds, f.seconds, g.seconds) == pytest.approx((0.5, 0.75, 5.5))
    assert run.compiling_seconds == pytest.approx(sum(f.seconds for f in run.functions.values()))
    assert [spent for *_, spent in f.compilations[0].ended_phases()] == [6.0, 0.25]


def test_what_is_compiling_now_is_known_until_it_ends(log, directory):
    outer = log.missed(F, key(leaf("x", 1)))
    log.say(ev.PhaseBegan(call=outer, phase="trace"), after=1)
    inner = log.missed(G, key(leaf("y", 1)), inside=outer)
    log.say(ev.PhaseBegan(call=inner, phase="compile"), after=1)
    tail = Tail(directory)
    tail.poll()
    assert [(p.compilation.call, p.phase) for p in tail.run.in_progress()] == [
        (outer, "trace"),
        (inner, "compile"),
    ]
    log.say(ev.Compiled(call=inner, seconds=1.0), after=1)
    tail.poll()
    assert [p.compilation.call for p in tail.run.in_progress()] == [outer]
    log.end()
    tail.poll()
    assert tail.run.in_progress() == []


def test_nested_phases_count_once_in_the_time_of_the_run(log, directory):
    outer = log.missed(F, key(leaf("x", 1)))
    log.say(ev.PhaseBegan(call=outer, phase="trace"))
    inner = log.missed(G, None, inside=outer)
    log.phase(inner, "compile", 2.0)
    log.say(ev.Traced(call=outer, seconds=3.0), after=1.0)
    run = load(directory)
    assert run.compiling_seconds == pytest.approx(3.0)
    assert run.functions[F.function].seconds == pytest.approx(1.0)
    assert run.functions[G.function].seconds == pytest.approx(2.0)


def test_an_executable_requested_ahead_of_time_may_come_much_later(log, directory):
    early = log.missed(F, key(leaf("x", 1)), entry="aot")
    log.phase(early, "trace", 0.1)
    log.phase(early, "lower", 0.1)
    log.compiled(G, key(leaf("y", 1)))
    log.say(ev.Compiled(call=early, seconds=1.0, program="p"), after=100)
    run = load(directory)
    assert next(iter(run.compilations.values())).reached == ["traced", "lowered", "compiled"]
    assert run.programs["p"].function.id == F.function


def test_counters_say_the_latest_and_add_up_over_processes(log, directory):
    other = Log(directory, pid=1001, how="child", parent=1000)
    for one, counts in ((log, (10, 30)), (other, (5,))):
        for n in counts:
            one.say(ev.Called(function=F.function, count=n), after=0.1)
            one.say(ev.MissesCounted(function=F.function, count=n + 1))
    f = load(directory).functions[F.function]
    assert (f.calls, f.fast_path_misses) == (35, 37)


def test_calls_nobody_counts_are_unknown_and_a_watched_function_without_calls_has_none(log, directory):
    log.say(ev.Watched(function=G.function))
    run = load(directory)
    assert run.functions[F.function].calls is None
    assert run.functions[G.function].calls == 0


def test_call_numbers_of_two_processes_stay_apart(log, directory):
    other = Log(directory, pid=1001, how="child", parent=1000)
    log.compiled(F, key(leaf("x", 1)))
    other.compiled(F, key(leaf("x", 2)))
    run = load(directory)
    assert set(run.compilations) == {"1000.1", "1001.1"}
    assert recompilations(run.functions[F.function], run) == []  # caches are not shared: each compiled once
    assert run.main.pid == 1000


def test_a_recycled_process_id_is_another_process(directory):
    first = Log(directory)
    first.say(F)
    first.compiled(F, key(leaf("x", 1)))
    first.end()
    second = Log(directory, at=60, how="child")
    second.compiled(F, key(leaf("x", 2)))
    assert set(load(directory).compilations) == {"1000.1", "1000-2.1"}
    run = Run()
    for event in Reader(directory).poll():  # without the logs' names the start of a process tells
        run.apply(event)
    assert set(run.compilations) == {"1000.1", "1000-2.1"}


def test_a_forked_child_knows_the_settings_its_parent_wrote(log, directory):
    log.say(ev.ContextSeen(context="c1", settings={"jax_enable_x64": "True"}))
    child = Log(directory, pid=1001, how="fork", parent=1000)
    child.compiled(F, key(leaf("x", 1)))
    run = load(directory)
    assert run.settings(run.processes["1001"], "c1") == {"jax_enable_x64": "True"}
    assert run.settings(run.processes["1001"], "c9") is None


def test_a_call_whose_introduction_is_lost_is_kept_and_found_its_place_later(directory):
    log = Log(directory)
    log.say(ev.Compiled(call=7, seconds=2.0, persistent_cache="hit"))
    run = load(directory)
    assert only(run).function.id == "<unknown>" and only(run).reached == ["compiled"]
    log.call = 6
    log.missed(F, key(leaf("x", 1)))
    run = load(directory)
    assert only(run).function.id == F.function and "<unknown>" not in run.functions
    f = run.functions[F.function]
    assert (f.compiled, f.compile_seconds, f.persistent_cache_hits) == (1, 2.0, 1)


def test_a_function_never_introduced_goes_by_its_id(directory):
    Log(directory).compiled(F, None)
    assert load(directory).functions[F.function].seen.qualname == "step"


def test_kinds_of_the_future_are_counted(directory):
    run = Run()
    run.apply(ev.Unknown("Dreamt", {}))
    run.apply(ev.Unknown("Dreamt", {}))
    assert run.unknown == {"Dreamt": 2} and run.version == 2


def test_the_same_degradation_is_reported_once(log, directory):
    other = Log(directory, pid=1001, how="child")
    for one in (log, other):
        one.say(ev.Degraded(seam="call_frame", reason="renamed"))
    assert len(load(directory).degraded) == 1


def test_a_program_compiled_twice_is_one_program(log, directory):
    for n in (1, 2):
        log.compiled(F, key(leaf("x", n)), program="p1")
    program = load(directory).programs["p1"]
    assert [c.call for c in program.compilations] == [1, 2] and program.target == "cpu"


def test_each_compilation_is_compared_with_the_nearest_earlier_key(log, directory):
    wide = [leaf("a", 8), leaf("b", 8)]
    log.compiled(F, key(*wide))
    log.compiled(F, key(leaf("a", 9), leaf("b", 9)))
    log.compiled(F, key(leaf("a", 8), leaf("b", 7)))
    run = load(directory)
    first, second, third = run.functions[F.function].compilations
    assert compared(run, first).nearest is None
    assert compared(run, second).nearest is first
    assert compared(run, third).nearest is first
    assert [(c.kind, c.path, *values(c)) for c in compared(run, third).causes] == [
        ("shape", "b", "f32[8]", "f32[7]")
    ]
    assert [recompiled(run, c) for c in (first, second, third)] == [False, True, True]


def test_how_a_run_stands_is_reported(log, directory):
    run = load(directory)
    assert state(run, directory) == "lost"  # the clock of these logs is long ago
    directory.heartbeat.touch()
    assert state(run, directory) == "running"
    log.end()
    directory.heartbeat.unlink()
    assert state(load(directory), directory) == "stopped"
    handwritten_runs.exited(directory, 3)
    run = load(directory)
    assert (state(run, directory), run.exited.exit_code, run.complete) == ("exited", 3, True)


def test_a_killed_run_is_not_complete(log, directory):
    handwritten_runs.exited(directory, None, signal=9)
    assert not load(directory).complete


def test_a_program_that_never_recorded_has_an_end_and_nothing_else(directory):
    handwritten_runs.exited(directory, 1)
    run = load(directory)
    assert (run.processes, run.main, run.seconds, run.complete) == ({}, None, 134.0, True)


def lines_to_fold(calls: int) -> int:
    """How many lines of Python it takes to fold a run of so many compilations."""
    seen = [function(f"f{n}") for n in range(100)]
    k = key(leaf("x", 4), leaf("y", 4))
    run = Run()
    events: list[ev.Event] = [ev.RunStarted(pid=1), *seen]
    for n in range(calls):
        events.append(ev.Missed(call=n, function=seen[n % 100].function, key=k, t_ns=n, pid=1))
        for phase, made in (("trace", ev.Traced), ("lower", ev.Lowered), ("compile", ev.Compiled)):
            events += [
                ev.PhaseBegan(call=n, phase=phase, t_ns=n, pid=1),
                made(call=n, seconds=0.1, t_ns=n, pid=1),
            ]
    lines = 0

    def count(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        for event in events:
            run.apply(event)
    finally:
        sys.settrace(before)
    assert len(run.compilations) == calls
    return lines


def test_an_event_takes_no_longer_to_fold_in_a_long_run_than_in_a_short_one():
    first, second, third = (lines_to_fold(n) for n in (200, 400, 600))
    assert third - second < 1.01 * (second - first)


def facts(run: Run) -> dict:
    """What must not depend on the order in which logs were read."""
    found = as_json(run)
    for part in ("functions", "compilations", "programs"):
        found[part] = sorted(found[part], key=lambda item: item["id"])
    return found


def test_any_prefix_of_a_log_folds_and_reads(tmp_path):
    entries = Reader(handwritten_runs.training(tmp_path / "run")).entries()
    run = Run()
    for n, (log, event) in enumerate(entries):
        run.apply(event, log)
        if n % 20 == 0 or n > len(entries) - 10:
            assert dumps(as_json(run))


calls = st.integers(0, 3)
names = st.sampled_from(["f", "g", "", "<unknown>"])
figures = st.none() | st.floats(-1, 1e12) | st.just(float("inf"))
keys = st.none() | st.sampled_from([key(leaf("x", 1)), key(leaf("x", 2)), key(leaf("y", 1), context="c9")])
stamp = {"t_ns": st.integers(0, 2**63), "pid": st.integers(0, 2), "process_index": st.none() | st.just(0)}
some_events = st.one_of(
    st.builds(
        ev.RunStarted,
        how=st.sampled_from(["run", "fork", "x"]),
        parent=st.none() | st.integers(0, 2),
        **stamp,
    ),
    st.builds(
        ev.FunctionSeen,
        function=names,
        name=names,
        qualname=names,
        library=st.booleans(),
        eager=st.booleans(),
        **stamp,
    ),
    st.builds(ev.ContextSeen, context=st.just("c1"), settings=st.just({"a": "b"}), **stamp),
    st.builds(
        ev.Missed,
        call=calls,
        function=names,
        key=keys,
        inside=st.none() | calls,
        step=st.none() | calls,
        **stamp,
    ),
    st.builds(ev.PhaseBegan, call=calls, phase=st.sampled_from(["trace", "lower", "compile", "?"]), **stamp),
    st.builds(ev.Traced, call=calls, seconds=figures, **stamp),
    st.builds(ev.TraceReused, call=calls, seconds=figures, **stamp),
    st.builds(ev.Lowered, call=calls, seconds=figures, program=st.none() | st.sampled_from("pq"), **stamp),
    st.builds(
        ev.Compiled,
        call=calls,
        seconds=figures,
        program=st.none() | st.sampled_from("pq"),
        persistent_cache=st.sampled_from([None, "hit"]),
        **stamp,
    ),
    st.builds(ev.PhaseFailed, call=calls, phase=st.sampled_from(["trace", "?"]), seconds=figures, **stamp),
    st.builds(
        ev.ProgramText, program=st.sampled_from("pq"), stage=st.just("hlo"), blob=st.just("0" * 64), **stamp
    ),
    st.builds(ev.MissesCounted, function=names, count=calls, **stamp),
    st.builds(ev.Called, function=names, count=calls, **stamp),
    st.builds(ev.Watched, function=names, **stamp),
    st.builds(ev.Degraded, seam=names, reason=names, **stamp),
    st.builds(ev.RunEnded, **stamp),
    st.builds(
        ev.ProgramExited, program_pid=st.integers(0, 2), exit_code=st.none() | calls, seconds=figures, **stamp
    ),
    st.builds(ev.Unknown, kind=st.just("New"), raw=st.just({})),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(some_events, max_size=25))
def test_events_in_any_order_fold_and_the_result_can_be_read(events):
    run = Run()
    for event in events:
        run.apply(event)
    assert run.version == len(events)
    assert dumps(as_json(run))
    assert sum(f.compiled for f in run.functions.values()) == sum(
        bool(c.reached_phases & 4) for c in run.compilations.values()
    )
    for f in run.functions.values():
        assert all(c.function is f for c in f.compilations)
        assert f.persistent_cache_hits <= sum(1 for e in events if isinstance(e, ev.Compiled))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_order_of_processes_does_not_matter(data):
    logs = []
    for pid in (1, 2, 3):
        events = data.draw(st.lists(some_events, max_size=8))
        start = ev.RunStarted(how="run" if pid == 1 else "child", t_ns=pid)
        own = [
            e
            for e in events
            if not isinstance(e, (ev.RunStarted, ev.ProgramExited, ev.Unknown, ev.FunctionSeen, ev.Degraded))
        ]
        own = [
            msgspec.structs.replace(e, pid=pid, t_ns=10 * n + pid, process_index=None)
            for n, e in enumerate(own, 1)
        ]
        # Two processes that make the same program tell the same of it.
        own = [
            msgspec.structs.replace(e, program=f"{e.program}{pid}") if getattr(e, "program", None) else e
            for e in own
        ]
        logs.append([msgspec.structs.replace(start, pid=pid), *own])

    def folded(order):
        run = Run()
        for i in order:
            for event in logs[i]:
                run.apply(event, f"log{i}")
        return facts(run)

    assert folded([0, 1, 2]) == folded([2, 0, 1]) == folded([1, 2, 0])


def test_counts_that_grow_between_events_are_as_new_as_the_last_look(log, directory):
    cell, page, index = log.writer.cell()
    log.say(ev.Called(function=F.function, count=3, cell=cell))
    log.say(ev.MissesCounted(function=G.function, count=1, cell=10_000))  # nowhere: a damaged number
    log.say(ev.Step(index=2, cell=-5))
    tail = Tail(directory)
    tail.poll()
    page[index] = 40
    assert (tail.run.functions[F.function].calls, tail.run.functions[G.function].fast_path_misses) == (3, 1)
    before = tail.run.version
    tail.poll()
    assert tail.run.functions[F.function].calls == 40 and tail.run.version > before, "views redraw"
    page[index] = 7  # a thread that came late stores what is no longer true
    tail.poll()
    assert tail.run.functions[F.function].calls == 40
    assert [p.step for p in tail.run.processes.values()] == [2]


def test_what_was_computed_of_a_function_is_computed_again_after_a_new_event_of_it(log, directory):
    run, asked = Run(), []

    @cached_until_changed
    def compiled(f):
        asked.append(f.id)
        return f.compiled

    for m in (1, 2, 2):
        log.compiled(F, key(leaf("x", m)))
    for name, event in Reader(directory).entries():
        run.apply(event, name)
        for f in run.functions.values():
            compiled(f), compiled(f)
            assert compiled(f) == f.compiled
            assert [c for _, c in run.numbered(f)] == [c for c in f.compilations if not c.only_missed]
    assert asked.count(F.function) > 3 > asked.count(G.function) > 0
