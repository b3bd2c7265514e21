"""The first lines of a report and the summary: which processes compiled, and what the rules call an error."""

import io

import pytest
from written import Log, exited, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report import text
from jaxscope.schema import events as ev

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
    to = io.StringIO()
    text.print_report(load(run), file=to, directory=run, everything=True)
    assert "layer_norm" in to.getvalue()
