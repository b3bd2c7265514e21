"""Where the main thread spends its time, from logs written by hand: by line, and in which loop."""

import pytest
from handwritten_runs import CWD, Log, function, key, leaf

from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.reading import Reading
from jaxscope.log import store
from jaxscope.model import line_times
from jaxscope.model.load import load
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame
from jaxscope.schema.line_times import CALLING, COMPILING, OPERATIONS, PYTHON, SLEEPING, WAITING, LineTime

TRAIN = """\
def augment(x):
    for row in x:
        row = row * 2
    return x


def main():
    for epoch in range(3):
        for batch in batches:
            x = augment(batch)
            w = step(w, x)
            if check:
                for p in w:
                    p = p * 0.9
"""


def frame(line, name="main", file="fit.py"):
    return Frame(file, line, name)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that records a program with the given times and returns what was loaded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fit.py").write_text(TRAIN)

    def recorded(*times, seconds=10.0, called=None):
        made = store.create(tmp_path / "run")
        log = Log(made)
        if called is not None:
            log.say(function("loss"))
            log.compiled(function("loss"), key(leaf("w", 3)), site=frame(called), column=16)
        log.say(ev.LineTimes(seconds=seconds / 2, lines=[]))
        log.say(ev.LineTimes(seconds=seconds, lines=list(times)))
        log.end()
        return load(made)

    return recorded


def time(doing, seconds, *stack, samples=50, **more):
    return LineTime(doing, list(stack), seconds, samples, **more)


def test_the_times_of_a_line_are_added_up_and_an_operation_that_sleeps_waits(run):
    loaded = run(
        time(PYTHON, 2.0, frame(3, "augment"), frame(10)),
        time(PYTHON, 1.0, frame(3, "augment"), frame(12)),
        time(OPERATIONS, 2.5, frame(14), blocked=0.5),
    )
    found = [(s.doing, s.line.line, s.seconds, s.samples, s.blocked) for s in line_times.by_line(loaded)]
    assert found == [
        (PYTHON, 3, 3.0, 100, 0.0),
        (OPERATIONS, 14, 2.0, 40, 0.0),
        (WAITING, 14, 0.5, 10, 0.5),
    ]
    assert line_times.by_line(loaded)[0].callers == [frame(10)]
    assert line_times.measured(loaded).seconds == 10.0


def test_a_run_without_samples_has_no_times(tmp_path):
    made = store.create(tmp_path / "run")
    Log(made).end()
    loaded = load(made)
    assert line_times.measured(loaded) is None and line_times.by_line(loaded) == []


def test_the_lines_that_jax_traces_have_the_line_that_made_it_trace(run):
    loaded = run(
        time(COMPILING, 3.0, frame(11), traced=[frame(40, "loss")]),
        time(COMPILING, 1.0, frame(11), traced=[frame(41, "loss")]),
        time(COMPILING, 2.0, frame(11)),
    )
    traced = [(s.line.line, s.seconds, s.callers) for s in line_times.traced(loaded)]
    assert traced == [(40, 3.0, [frame(11)]), (41, 1.0, [frame(11)])]
    assert [s.seconds for s in line_times.by_line(loaded)] == [6.0]


def loops(loaded, doing, least=1.0):
    times = [t for d, t in line_times.entries(loaded) if d == doing]
    return [(loop.line.line, loop.last, loop.seconds) for loop in line_times.loops(loaded, times, least)]


def test_the_innermost_loop_that_has_most_of_the_time_is_named(run):
    times = (time(OPERATIONS, 4.0, frame(14)), time(OPERATIONS, 0.5, frame(10)))
    assert loops(run(*times), OPERATIONS) == [(13, 14, 4.0)]


def test_a_loop_whose_time_is_spread_is_named_itself(run):
    times = (time(OPERATIONS, 2.0, frame(14)), time(OPERATIONS, 2.0, frame(3, "augment"), frame(10)))
    assert loops(run(*times), OPERATIONS) == [(9, 14, 4.0)]


def test_a_loop_that_calls_jitted_functions_comes_before_loops_in_it(run):
    times = (time(OPERATIONS, 4.0, frame(14)), time(CALLING, 1.0, frame(11)))
    assert loops(run(*times), OPERATIONS) == [(9, 14, 4.0)]


def test_the_seconds_of_a_loop_are_those_in_which_the_thread_did_not_sleep(run):
    loaded = run(time(OPERATIONS, 4.0, frame(14), blocked=1.0))
    assert loops(loaded, OPERATIONS) == [(13, 14, 3.0)]
    assert loops(loaded, OPERATIONS, least=3.5) == []


def test_what_is_in_no_loop_or_in_a_file_that_cannot_be_read_is_left_out(run):
    times = (time(OPERATIONS, 4.0, frame(7)), time(OPERATIONS, 4.0, frame(3, "f", f"{CWD}/gone.py")))
    assert loops(run(*times), OPERATIONS) == []


@pytest.mark.parametrize(
    ("library", "doing", "named"),
    [(None, CALLING, None), ("flax", CALLING, None), ("scipy", PYTHON, "scipy"), ("python", PYTHON, None)],
)
def test_a_library_that_calls_a_jitted_function_computes_by_itself(run, library, doing, named):
    """JAX compiled ``loss`` at the line of ``minimize(loss, w)``, where SciPy runs for most of the time."""
    loaded = run(time(PYTHON, 2.0, frame(11), column=16, library=library), called=11)
    assert [(s.doing, s.library) for s in line_times.by_line(loaded)] == [(doing, named)]


@pytest.mark.parametrize(
    ("line", "library", "doing"),
    [
        ("plt.plot(losses)", "matplotlib", WAITING),  # it reads the array in C code
        ("np.mean(loss)", "numpy", WAITING),
        ("plt.pause(0.1)", "matplotlib", SLEEPING),
        ("x = np.load(file)", "numpy", SLEEPING),
        ("frame = pd.read_csv(file)", "pandas", SLEEPING),
        ("queue.get()", "python", SLEEPING),
    ],
)
def test_a_package_that_reads_an_array_waits_for_its_values(run, tmp_path, line, library, doing):
    (tmp_path / "draw.py").write_text(f"{line}\n")
    loaded = run(time(PYTHON, 3.0, frame(1, file="draw.py"), blocked=2.5, library=library))
    found = {d: t.seconds for d, t in line_times.entries(loaded)}
    assert found == {doing: 2.5, PYTHON: 0.5}


LOOP = """\
def main():
    for batch in batches:
        w = step(w, batch)
        for part in batch:
            x = part * 2
        loss = error(w, batch)
        print(float(loss))
    final = error(w, test)
    print(float(final))
    best = score(w)
    print(float(best))
"""


@pytest.fixture
def of_two(tmp_path, monkeypatch):
    """A function that records a program with three jitted functions, of which ``step`` needs the operations
    ``work`` and the others 1,000, and returns {function: its running seconds}."""
    monkeypatch.chdir(tmp_path)

    def seconds(*times, work=(3000, 0, 0), source=LOOP):
        (tmp_path / "fit.py").write_text(source)
        made = store.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}")
        log = Log(made)
        for name, line in [("step", 3), ("error", 6), ("error", 8), ("score", 10)]:
            log.say(function(name))
            log.compiled(function(name), key(leaf("w", line)), site=frame(line), program=name)
        log.say(ev.LineTimes(seconds=10.0, lines=list(times)))
        log.end()
        loaded = load(made)
        loaded.texts_of = lambda p: Texts(
            None, Reading(work=work if p.function.name == "step" else (1000, 0, 0))
        )
        return {f.seen.name: line_times.running_seconds(loaded, f) for f in loaded.functions.values()}

    return seconds


def test_a_wait_in_a_loop_is_divided_by_the_operations_of_the_functions_that_the_loop_calls(of_two):
    assert of_two(time(WAITING, 8.0, frame(7))) == {"step": 6.0, "error": 2.0, "score": None}


def test_a_wait_is_not_divided_if_the_operations_of_a_function_are_unknown(of_two):
    found = of_two(time(WAITING, 8.0, frame(7)), work=None)
    assert (found["step"], found["error"]) == (None, None)


def test_a_wait_is_not_divided_if_the_kinds_of_operations_differ(of_two):
    """Matrix products take less time for each operation than sorts."""
    found = of_two(time(WAITING, 8.0, frame(7)), work=(0, 500, 0))
    assert (found["step"], found["error"]) == (None, None)


def test_a_wait_is_not_divided_if_a_function_is_called_only_now_and_then(of_two):
    sometimes = "        if now:\n            x = 2\n            loss ="
    source = LOOP.replace("        for part in batch:\n            x = part * 2\n        loss =", sometimes)
    found = of_two(time(WAITING, 8.0, frame(7)), source=source)
    assert (found["step"], found["error"]) == (None, None)


def test_a_wait_after_a_call_is_for_its_results_if_the_program_waited_before_the_call(of_two):
    found = of_two(time(WAITING, 3.0, frame(9)), time(WAITING, 2.0, frame(11)))
    assert found["score"] == pytest.approx(2.0)
    assert of_two(time(WAITING, 2.0, frame(11)))["score"] is None  # or for the results of error


def test_the_inner_loop_with_most_of_the_time_is_named(run):
    loaded = run(time(OPERATIONS, 3.0, frame(14)), time(OPERATIONS, 1.0, frame(10)))
    times = [t for d, t in line_times.entries(loaded) if d == OPERATIONS]
    outer = line_times.Loop(frame(9), 14, True, times)
    assert line_times.inner_loops(loaded, outer, 0.5, 0.1) == [frame(13)]
    assert line_times.inner_loops(loaded, line_times.Loop(frame(13), 14, True, times[:1]), 0.5, 0.1) == []
