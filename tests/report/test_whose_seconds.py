"""The first lines of a report and the summary: which processes compiled, and what the rules call an error."""

import hashlib
import io

import pytest
from handwritten_runs import Log, exited, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import text
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

F = function("train_step")


@pytest.fixture
def run(tmp_path):
    return store.create(tmp_path / "run")


def worker(run, pid, seconds, sizes=(1,)):
    log = Log(run, pid, 1.0, how="spawn", parent=1000)
    log.say(F)
    for n in sizes:
        log.compiled(F, key(leaf("x", n)), (0.0, 0.0, seconds))
    log.end()


def page(run):
    to = io.StringIO()
    text.print_report(load(run), file=to, directory=run)
    return " ".join(to.getvalue().split())


def summary(run):
    return " ".join(text.summary(run).split())


def test_where_only_workers_recorded_it_says_so_and_nothing_of_a_log_that_was_not_closed(run):
    worker(run, 2000, 3.0)
    Log(run, 2001, 1.5, how="spawn", parent=1000).say(F)
    exited(run, seconds=20.0)
    said = "3.0 s went into tracing, lowering and compiling in 2 processes that the program started; its own process recorded nothing in 20.0 s"  # fmt: skip
    assert said in page(run) and said in summary(run)
    assert "log not closed" not in page(run) and "main process" not in page(run)


def test_what_workers_compiled_stands_beside_the_main_process(run):
    main = Log(run)
    main.say(F)
    main.end()
    worker(run, 2000, 3.0)
    worker(run, 2001, 4.0)
    exited(run, seconds=20.0)
    said = "0 s of 20.0 s (0 %) went into tracing, lowering and compiling in the main process, and 7.0 s in 2 other processes (at most 4.0 s in one)"  # fmt: skip
    assert said in page(run) and said.replace(" (0 %)", "") in summary(run)


def test_one_process_needs_no_name(run):
    log = Log(run)
    log.say(F)
    log.compiled(F, key(leaf("x", 1)), (0.0, 0.0, 3.0))
    log.end()
    exited(run, seconds=20.0)
    assert "3.0 s of 20.0 s (15 %) went into tracing, lowering and compiling JAX" in page(run)


def test_the_summary_names_the_first_error_and_counts_the_others(run):
    log = Log(run)
    log.say(F)
    log.say(ev.Watched(function=F.function))
    call = log.compiled(F, key(leaf("x", 1)))
    for name in ("TEMP", "TABLE"):
        log.say(
            ev.CaptureChanged(function=F.function, call=call, name=name, how="value", before="1", after="2", seen="call")
        )  # fmt: skip
    log.end()
    exited(run)
    assert "✖ 2 errors: JX131 it seems that train_step computes with an old value of T" in summary(run)
    assert "; and 1 more" in summary(run)


def test_a_summary_without_errors_has_none(run):
    log = Log(run)
    log.say(F)
    for n in (1, 2):
        log.compiled(F, key(leaf("x", n)))
    log.end()
    exited(run)
    assert "error:" not in summary(run) and "1 warning, see jaxscope report" in summary(run)


def test_a_function_that_is_only_part_of_other_programs_has_no_row(run):
    inner = function("layer_norm", line=60)
    log = Log(run)
    log.say(F)
    log.say(inner)
    outer = log.missed(F, key(leaf("x", 4)))
    log.phase(log.missed(inner, key(leaf("x", 4)), entry="nested", inside=outer), "trace", 0.1)
    log.phase(outer, "trace", 0.2)
    log.phase(outer, "compile", 3.0)
    log.end()
    assert "train_step" in page(run) and "layer_norm" not in page(run)
    assert "train_step" in summary(run) and "layer_norm" not in summary(run)
    to = io.StringIO()
    text.print_report(load(run), file=to, directory=run, everything=True)
    assert "layer_norm" in to.getvalue()


def test_a_function_that_is_jitted_twice_has_the_name_of_jit(run):
    log = Log(run)
    loss = function("loss", wrappers=["jax.value_and_grad", "jaxlib.PjitFunction"])
    log.say(loss)
    log.compiled(loss, key(leaf("x", 1)))
    log.end()
    assert "loss train.py:88 jax.value_and_grad jax.jit" in page(run)


LOOP = """
for x in data:
    y = step(x) - 1
"""


@pytest.mark.parametrize(
    ("columns", "programs"), [((8, 8), "1 jitted program and"), ((8, 20), "2 jitted programs and")]
)
def test_a_call_of_one_function_or_another_is_one_program_of_a_step(tmp_path, run, columns, programs):
    program = tmp_path / "train.py"
    program.write_text(LOOP)
    log = Log(run)
    log.say(ev.SourceSeen(file=str(program), sha256=hashlib.sha256(LOOP.encode()).hexdigest()))
    site = Frame(str(program), 3, "<module>")
    for operation in ("sub", "mul", "add"):
        eager = function(operation, None, None, eager=True, form="primitive")
        log.say(eager)
        log.compiled(eager, key(leaf("x", 1)), site=site, column=8)
    for name, column in zip(("fast_step", "slow_step"), columns, strict=True):
        step = function(name)
        log.say(step)
        log.compiled(step, key(leaf("x", 1)), site=site, column=column)
    log.end()
    assert f"runs at least {programs} 3 operations outside jit" in page(run)


def test_a_long_fix_is_not_cut(tmp_path, run):
    program = tmp_path / "train.py"
    program.write_text("import sim\nx = sim.draw(key, 4)\n")
    log = Log(run)
    at = {"site": Frame(str(program), 2, "<module>"), "into_library": 0, "library": "sim"}
    for n in range(10):
        module = "jax.random" if n < 5 else "jax.numpy"
        op = function(f"f{n}", None, None, library=True, module=module)
        log.say(op)
        log.compiled(op, key(leaf("x", 1)), (0.0, 0.0, 1.0), **at)
    log.end()
    assert page(run).count("If JAX then raises an error while it traces the function, undo the change") == 1
