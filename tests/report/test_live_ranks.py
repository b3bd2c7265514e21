"""The lines about a running job whose ranks differ or wait, on logs written by hand."""

import pytest
from handwritten_runs import T0, Log, exited, function, key, leaf

from jaxscope.log import ranks as places
from jaxscope.log.store import RunDir
from jaxscope.model import ranks
from jaxscope.model.load import load
from jaxscope.present.text import Places
from jaxscope.report import live_ranks
from jaxscope.report.ranks import findings as all_findings
from jaxscope.report.ranks import of_ranks
from jaxscope.report.ranks import section as in_report
from jaxscope.rules import registry as rules
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Device, Frame


class Job:
    """Four ranks that record, and the time on the clock of the one that compares them."""

    def __init__(self, path, size=4):
        self.now = 0.0
        self.logs = []
        for n in range(size):
            place = places.join(path, "j", n, size, name="train")
            log = Log(place, pid=1000 + n, how="run")
            log.writer.process_index = n
            devices = [Device(i, "cpu", i) for i in range(size)]
            log.say(ev.BackendSeen(platform="cpu", devices=devices, process_count=size))
            self.logs.append(log)
        self.comparison = live_ranks.Comparison(RunDir(path), clock=lambda: T0 + int(self.now * 1e9))

    def compiles(self, program, ranks=None, *, ends=True, step=None, line=20, cache=None):
        """Write that ``ranks`` (all of them) compile ``program``, or begin to."""
        for n in range(len(self.logs)) if ranks is None else ranks:
            log = self.logs[n]
            log.now = self.now
            seen = function(program.rstrip("0123456789"), line=line)
            log.say(seen)
            call = log.missed(seen, key(leaf("x", 8)), step=step)
            log.phase(call, "lower", 0.1, program=program, num_partitions=len(self.logs))
            if ends:
                devices = f"0-{len(self.logs) - 1}"
                log.phase(call, "compile", 0.1, program=program, devices=devices, persistent_cache=cache)
            else:
                log.say(ev.PhaseBegan(call=call, phase="compile"))

    def waits(self, ranks, line, since, *, blocked=True):
        """Write that the main threads of ``ranks`` have waited at ``line`` since that time."""
        for n in ranks:
            self.logs[n].now = self.now
            look = ev.MainThreadSeen(
                blocked=blocked,
                since_ns=T0 + int(since * 1e9),
                stack=[Frame("/home/ann/work/train.py", line, "main")],
            )
            self.logs[n].say(look)

    def lines(self, seconds):
        """Return what is printed within that time, by a look each half second."""
        end, found = self.now + seconds, []
        while self.now < end:
            self.now += 0.5
            found += [(round(self.now, 1), line) for line in self.comparison.poll()]
        return found


@pytest.fixture
def job(tmp_path):
    return Job(tmp_path / "j")


def test_another_program_is_named_before_it_has_been_compiled(job):
    job.compiles("a")
    job.compiles("b", [0, 1, 3], ends=False)
    job.compiles("c", [2], ends=False)
    ((at, line),) = job.lines(10)
    assert (
        at <= 1 and "JX850 rank 2 compiled c at train.py:140 after a at train.py:140, but the others" in line
    )
    assert job.comparison.diverged == line


def test_most_ranks_decide_who_differs_though_the_odd_one_comes_second(job):
    job.compiles("c", [1])
    job.compiles("b", [0])
    assert job.lines(1) == []
    job.compiles("b", [2, 3])
    ((_, line),) = job.lines(9)
    assert "rank 1 compiled c" in line


def test_two_ranks_that_hang_in_their_first_programs_are_named_though_the_others_never_come(job):
    job.compiles("b", [0], ends=False)
    job.compiles("c", [1], ends=False)
    ((at, line),) = job.lines(10)
    assert at <= 3 and "rank 1 compiled c" in line


def test_a_rank_that_is_late_is_no_difference(job):
    job.compiles("a")
    job.compiles("b", [0, 1, 3])
    assert job.lines(20) == []
    job.compiles("b", [2])
    assert job.lines(20) == [] and job.comparison.diverged is None


def test_ranks_that_start_one_after_the_other_are_no_difference(job):
    job.compiles("a", [2])
    assert job.lines(20) == []
    job.compiles("a", [0, 1, 3])
    assert job.lines(20) == []


def test_one_program_more_is_named_within_5_seconds_as_likely_and_taken_back_if_the_others_follow(job):
    job.compiles("a")
    job.compiles("b", [2])
    ((at, line),) = job.lines(10)
    assert at <= 5 and "JX851 it seems that rank 2 compiled b at train.py:140 after a" in line
    assert job.comparison.diverged is None, "the others may be late: nothing is stopped"
    job.compiles("b", [0, 1, 3])
    ((_, line),) = job.lines(2)
    assert (
        line
        == "jaxscope: ranks 0, 1, 3 compiled b at train.py:140 meanwhile: there is no difference any more"
    )


def test_one_program_more_is_certain_once_the_others_count_further_steps(job):
    job.compiles("a", step=0)
    job.compiles("b", [2], step=1)
    for n in (0, 1, 3):
        job.logs[n].say(ev.Step(index=5))
    ((_, line),) = job.lines(10)
    assert "JX851 rank 2 compiled b" in line and job.comparison.diverged == line


def test_nothing_is_ahead_of_ranks_that_compile_at_this_moment(job):
    job.compiles("a")
    job.compiles("b", [2])
    job.compiles("b", [0, 1, 3], ends=False)
    assert job.lines(20) == []


def test_of_two_ranks_the_first_may_have_the_program_more(tmp_path):
    job = Job(tmp_path / "j", size=2)
    job.compiles("a")
    job.compiles("b", [0])
    ((_, line),) = job.lines(10)
    assert "it seems that rank 0 compiled b" in line


def test_a_rank_that_leaves_while_most_go_on_is_named_and_one_that_leaves_last_is_not(job):
    job.compiles("a")
    job.logs[2].now = job.now
    job.logs[2].end()
    for _ in range(6):
        job.now += 1
        job.compiles(f"b{_}", [0, 1, 3])
    ((_, line),) = job.lines(1)
    assert "JX853 rank 2 ended first, without a recorded error" in line


def test_a_rank_that_was_killed_is_named_at_once(job):
    job.compiles("a")
    exited(job.logs[2].run, None, pid=1002, seconds=3.0, signal=9)
    ((at, line),) = job.lines(3)
    assert at <= 1 and "JX853 rank 2 ended first, by signal 9" in line


def test_ranks_that_all_fail_in_the_same_way_are_no_difference(job):
    job.compiles("a")
    exited(job.logs[2].run, 1, pid=1002, seconds=3.0)
    assert job.lines(1) == []
    for n in (0, 1, 3):
        exited(job.logs[n].run, 1, pid=1000 + n, seconds=3.1)
    assert job.lines(10) == []


def test_a_rank_that_fails_alone_is_named(job):
    job.compiles("a")
    exited(job.logs[2].run, 1, pid=1002, seconds=3.0)
    ((_, line),) = job.lines(5)
    assert "JX853 rank 2 ended first, with exit code 1" in line


def test_ranks_without_progress_are_named_with_their_lines_and_the_one_that_is_missing_first(job):
    job.compiles("a", step=0)
    job.now = 12
    job.waits([0, 1, 3], 63, 2.0)
    job.waits([2], 57, 2.5)
    found = job.lines(30)
    ((at, line),) = found
    assert 31 < at < 34
    assert (
        line.startswith("jaxscope: no progress for 30.") and "; ranks 0, 1, 3 waiting at train.py:63" in line
    )
    assert ": rank 2 waiting at train.py:57 (for 2" in line and "last program a at train.py:140" in line


def test_one_rank_that_runs_while_the_others_wait_is_named_and_again_after_progress_only(job):
    job.compiles("a", step=0)
    job.now = 30
    job.waits([0, 1, 3], 63, 2.0)
    job.waits([2], 57, 2.5, blocked=False)
    ((_, line),) = job.lines(60)
    assert "rank 2 running at train.py:57" in line
    job.waits([0, 1, 2, 3], 63, 90, blocked=False)
    assert job.lines(10) == []
    job.waits([0, 1, 3], 63, job.now)
    assert len(job.lines(60)) == 1


def test_ranks_that_all_wait_at_one_line_are_in_a_long_step(job):
    job.compiles("a", step=0)
    job.now = 12
    job.waits([0, 1, 2, 3], 63, 2.0)
    assert job.lines(120) == []
    job.now = 400
    assert len(job.lines(2)) == 1


def test_a_rank_that_compiles_while_the_others_wait_is_named_with_its_function(job):
    job.compiles("a")
    job.compiles("b", [2], ends=False)
    job.now = 11
    job.waits([0, 1, 3], 63, 1.0)
    (_, ahead), (_, line) = job.lines(60)
    assert "it seems that rank 2 compiled b" in ahead
    assert "rank 2 compiling at train.py:140 (for " in line


def test_ranks_that_share_no_directory_are_compared_by_what_rank_0_recorded(tmp_path):
    job = Job(tmp_path / "j", size=1)
    groups = [
        ev.RankGroup([0, 1, 3], "b", "step@/w/train.py:20"),
        ev.RankGroup([2], "c", "run.<locals>.other@/w/train.py:30"),
    ]
    job.logs[0].say(ev.RanksCompiled(position=1, groups=groups))
    ((_, line),) = job.lines(3)
    assert line == (
        "jaxscope: JX850 rank 2 compiled run.other at train.py:30, but ranks 0, 1, 3 compiled step at train.py:20"
    )
    assert job.comparison.diverged == line
    ahead = [ev.RankGroup([0, 1, 2], None, None), ev.RankGroup([3], "c", "step@/w/train.py:20")]
    job.logs[0].say(ev.RanksCompiled(position=2, groups=ahead))
    job.logs[0].say(ev.RanksCompiled(position=2, groups=[ev.RankGroup([0, 1, 2, 3])], left=[1]))
    more, left = (line for _, line in job.lines(3))
    assert "JX851 it seems that rank 3 compiled step at train.py:20; ranks 0-2 did not" in more
    assert "JX853 it seems that rank 1 left the program" in left


def test_ranks_that_published_two_programs_of_one_function_compiled_another_program_for_it(tmp_path):
    job = Job(tmp_path / "j", size=1)
    groups = [ev.RankGroup([n], str(n), "step@/w/train.py:20") for n in (0, 1)]
    job.logs[0].say(ev.RanksCompiled(position=1, groups=groups))
    ((_, line),) = job.lines(3)
    assert line == "jaxscope: JX850 rank 1 and rank 0 compiled different programs for step at train.py:20"


def test_what_ranks_published_is_reported_only_where_not_all_of_their_logs_are_there(job):
    job.compiles("a", [0, 1, 2])
    job.compiles("b", [3])
    groups = [ev.RankGroup([0, 1, 2], "a", "step@/w/t.py:20"), ev.RankGroup([3], "b", "step@/w/t.py:20")]
    job.logs[0].say(ev.RanksCompiled(position=0, groups=groups))
    job.logs[0].end()
    whole = RunDir(job.logs[0].run.path.parent.parent)
    merged, run = ranks.read(whole), load(job.logs[0].run)
    found = all_findings(merged, rules.findings(run))
    assert [f.code for f in found] == ["JX850"] and found == of_ranks(merged)
    fewer = ranks.Job(whole, merged.ranks[:3], 4)
    assert [f.code for f in all_findings(fewer, rules.findings(run))] == ["JX850"] and not of_ranks(fewer)


@pytest.mark.parametrize(("of", "shown"), [(4, True), (2, False)])
def test_the_report_of_a_rank_says_that_others_did_not_record_beside_it(tmp_path, of, shown):
    """Which of them ended first is known only with their directories."""
    job = Job(tmp_path / "j", size=2)
    devices = [Device(i, "cpu", i) for i in range(of)]
    job.logs[0].say(ev.BackendSeen(platform="cpu", devices=devices, process_count=of))
    lost = load(job.logs[0].run).degraded
    assert [(each.seam, each.reason[:60]) for each in lost] == [
        ("ranks", "2 of the job's 4 processes did not record to this directory.")
    ] * shown


def test_a_rank_held_with_a_program_of_its_own_differs_once_all_others_have_waited(tmp_path):
    job = Job(tmp_path / "j")
    job.comparison._holds = True
    job.compiles("a")
    job.compiles("b", [2])
    job.now = 12
    job.waits([0, 1, 3], 63, 1.0)
    lines = job.lines(30)
    assert "JX851 rank 2 compiled b" in next(line for _, line in lines if line == job.comparison.diverged)


def test_programs_that_all_ranks_have_compiled_are_agreed(job):
    job.compiles("a")
    job.compiles("b", [0, 1, 3])
    job.compiles("c", [2])
    job.comparison._holds = True
    job.comparison.poll()
    assert job.comparison.agreed == {f"0000{n}": [1] for n in range(4)}


def section(job):
    """Return the lines of the report about the ranks of the job."""
    whole = job.logs[0].run.path.parent.parent
    read = ranks.read(RunDir(whole))
    places = Places(load(job.logs[0].run))
    return [each.text.plain for each in in_report(read, places)]


def test_the_report_of_a_job_that_was_killed_shows_where_its_ranks_waited(job):
    job.compiles("a")
    job.now = 12
    job.waits([0, 1, 3], 63, 2.0)
    job.waits([2], 57, 4.0)
    for n, log in enumerate(job.logs):
        exited(log.run, None, pid=1000 + n, seconds=50.0, signal=15)
    lines = section(job)
    assert [line.partition(" (for ")[0] for line in lines if "waiting" in line] == [
        "rank 2 waiting at train.py:57",
        "ranks 0, 1, 3 waiting at train.py:63",
    ]


def test_a_program_that_some_ranks_load_from_the_cache_and_others_compile_is_named(job):
    job.compiles("a", [0, 1, 3], cache="hit")
    job.compiles("a", [2], cache="miss")
    assert "persistent cache: a was loaded by ranks 0, 1, 3 and compiled by rank 2" in section(job)
    assert not any("cache" in line for line in section(Job(job.logs[0].run.path.parents[2] / "k")))


def test_of_many_ranks_only_those_whose_logs_have_grown_are_read_at_each_look(tmp_path, monkeypatch):
    job = Job(tmp_path / "j", size=ranks.FEW + 4)
    job.compiles("a")
    job.lines(ranks.IN_TURN)
    read = []
    before = ranks.Following._read
    monkeypatch.setattr(
        ranks.Following, "_read", lambda self, place: read.append(place.path.name) or before(self, place)
    )
    job.lines(0.5)
    assert len(read) == (ranks.FEW + 4) / ranks.IN_TURN
    job.compiles("b", but := [n for n in range(ranks.FEW + 4) if n != 7])
    job.compiles("c", [7])
    ((_, line),) = job.lines(3)
    assert "rank 7 compiled c" in line and len(but) == ranks.FEW + 3
    job.lines(ranks.IN_TURN / 2)
    assert {f"{n:05}" for n in range(ranks.FEW + 4)} == set(read), "each in turn"
