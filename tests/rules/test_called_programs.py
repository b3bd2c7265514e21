"""Findings and figures of a function are those of programs that ran: not of what was only compiled ahead of time."""

import gzip
import io
from pathlib import Path

import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report.text import print_report
from jaxscope.rules import merging
from jaxscope.schema.keys import Memory

DATA = Path(__file__).parents[1] / "data" / "hlo"
SHARDED, PLAIN = "tf6_scan_fsdp_remat__cpu_jax0102", "zero_nested_loops__cpu_jax0102"
F = function("train_step")


def texts(name):
    return {
        stage: gzip.decompress(next(DATA.glob(f"{name}.{stage}.*gz")).read_bytes()).decode()
        for stage in ("hlo", "stablehlo")
    }


@pytest.fixture
def written(tmp_path):
    """A run of ``train_step``: (text, bytes of temporaries, how it was entered), one after the other."""

    def write(*programs):
        run = store.create(tmp_path / f"run{len(list(tmp_path.iterdir()))}")
        log = Log(run)
        log.say(F)
        for n, (name, temporary, entry) in enumerate(programs, 1):
            call = log.compiled(F, key(leaf("x", n)), program=f"p{n}", texts=texts(name), entry=entry)
            memory = None if temporary is None else Memory(0, 0, 0, temporary, None)
            log.phase(call, "compile", 0.1, program=f"p{n}", memory=memory)
        log.end()
        return load(run)

    return write


def inserted(run):
    return [f for f in merging.findings(run) if f.code == "JX401"]


def page(run):
    to = io.StringIO()
    print_report(run, file=to)
    return " ".join(to.getvalue().split())


def test_what_was_only_compiled_ahead_of_time_is_no_evidence_where_a_program_was_called(written):
    alone = {words.title(f) for f in inserted(written((SHARDED, 1, "call")))}
    run = written((SHARDED, 1, "call"), (PLAIN, 1, "aot"))
    assert {words.title(f) for f in inserted(run)} == alone != set()
    assert {e.program for f in inserted(run) for e in f.evidence} == {"p1"}
    assert not inserted(written((PLAIN, 1, "call"), (SHARDED, 1, "aot")))


def test_where_nothing_was_called_what_was_compiled_ahead_of_time_is_looked_at(written):
    assert inserted(written((SHARDED, 1, "aot")))


def test_what_the_latest_program_has_not_is_reported_of_those_that_have_it(written):
    found = inserted(written((SHARDED, 1, "call"), (PLAIN, 1, "call")))
    assert found and all(
        words.title(f).endswith(" (in compilation #1, but not in the latest, #2)") for f in found
    )


def test_what_several_programs_have_is_reported_once_and_names_none(written):
    once = inserted(written((SHARDED, 1, "call")))
    twice = inserted(written((SHARDED, 1, "call"), (SHARDED, 1, "call")))
    assert [words.title(f) for f in twice] == [words.title(f) for f in once]


def test_the_memory_of_a_function_is_that_of_its_largest_program_and_says_of_which(written):
    assert "peak memory 15.3 MiB per device (compilation #1)" in page(
        written((PLAIN, 16_000_000, "call"), (PLAIN, 800, "call"))
    )
    assert "peak memory 15.3 MiB per device (compilation #2)" in page(
        written((PLAIN, 800, "call"), (PLAIN, 16_000_000, "call"))
    )


def test_what_was_only_compiled_ahead_of_time_is_not_the_peak_of_a_function_that_was_called(written):
    assert "peak memory 800 B per device (compilation #1)" in page(
        written((PLAIN, 800, "call"), (PLAIN, 16_000_000, "aot"))
    )


def test_the_memory_of_one_program_needs_no_number(written):
    said = page(written((PLAIN, 800, "call")))
    assert "peak memory 800 B per device" in said and "#1)" not in said


def test_a_program_of_unknown_memory_is_not_the_largest(written):
    assert "peak memory 800 B per device (compilation #1)" in page(
        written((PLAIN, 800, "call"), (PLAIN, None, "call"))
    )
