"""A warning belongs to the program that was being compiled when it was printed, or to none."""

import msgspec
import pytest
from handwritten_runs import T0, Log, function, key, leaf

from jaxscope.log import store
from jaxscope.log.writer import Writer
from jaxscope.model.load import load
from jaxscope.report.json_report import as_json
from jaxscope.schema import events as ev

TEXT = (
    "W1121 14:14:54.218164    6213 spmd_partitioner.cc:656] [SPMD] Involuntary full rematerialization. The compiler "
    "cannot go from sharding {devices=[4,1]<=[4]} to {devices=[1,4]<=[4]} efficiently for HLO operation "
    '%cos.1 = f32[8,32]{1,0} copy(%sin.0), metadata={op_name="jit(NAME)/cos" stack_frame_id=4}. As the last resort'
)


class Machine:
    """A run whose programs are compiled at known seconds, and the warnings on stderr."""

    def __init__(self, path):
        self.run = store.create(path)
        self.steps = {}

    def process(self, pid, programs, partitions=4):
        """``programs``: (name, second at which compiling begins, seconds, persistent cache)."""
        log = Log(self.run, pid)
        for name, at, seconds, *cache in programs:
            seen = function(name)
            log.now = at
            log.say(seen)
            call = log.missed(seen, key(leaf("x", 3)))
            log.say(
                ev.Lowered(
                    call=call, seconds=0.0, program=name, module=f"jit_{name}", num_partitions=partitions
                )
            )
            log.phase(call, "compile", seconds, program=name, persistent_cache=(cache or ["off"])[0])
        log.end()

    def heard(self, *warnings, muted=None):
        """``warnings``: (second, function named, pid)."""
        first = ev.StderrWatched(muted=muted, t_ns=T0)
        writer = Writer(self.run, lambda _: first)
        writer.open()
        for at, name, pid in warnings:
            text = TEXT.replace("NAME", name)
            writer.emit(ev.CompilerWarned(t_ns=T0 + int(at * 1e9), text=text, program_pid=pid))
        writer.close()

    def remats(self):
        found = as_json(load(self.run), self.run)
        return {p["id"]: None if p["remats"] is None else len(p["remats"]) for p in found["programs"]}, found[
            "run"
        ]["degraded"]


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path / "run")


def test_it_belongs_to_what_was_being_compiled(machine):
    machine.process(100, [("first", 1, 2), ("second", 5, 2)])
    machine.heard((6, "second", None))
    assert machine.remats() == ({"first": 0, "second": 1}, [])


def test_of_two_processes_it_is_the_one_that_printed_it(machine):
    machine.process(100, [("first", 1, 4)])
    machine.process(200, [("second", 1, 4)])
    machine.heard((2, "elsewhere", 200))
    assert machine.remats() == ({"first": 0, "second": 1}, [])


def test_of_two_at_the_same_time_it_is_the_one_whose_name_it_says(machine):
    machine.process(100, [("first", 1, 4)])
    machine.process(200, [("second", 1, 4)])
    machine.heard((2, "first", None))
    assert machine.remats() == ({"first": 1, "second": 0}, [])


def test_where_it_could_be_either_it_is_nobodys_and_that_is_reported(machine):
    machine.process(100, [("first", 1, 4)])
    machine.process(200, [("second", 1, 4)])
    machine.heard((2, "elsewhere", None), (30, "first", None))
    remats, degraded = machine.remats()
    assert remats == {"first": 0, "second": 0}
    assert [d["seam"] for d in degraded] == ["stderr"]
    assert degraded[0]["reason"].startswith("2 of XLA's warnings")


def test_a_warning_read_a_little_late_is_still_the_programs(machine):
    machine.process(100, [("first", 1, 2)])
    machine.heard((3.4, "first", None))
    assert machine.remats() == ({"first": 1}, [])


def test_said_twice_it_is_one_rematerialisation(machine):
    machine.process(100, [("first", 1, 2), ("first", 5, 2)])
    machine.heard((2, "first", None), (6, "first", None))
    assert machine.remats() == ({"first": 1}, [])


def test_where_nobody_listened_it_is_not_known_and_reported_once(machine):
    machine.process(100, [("first", 1, 2), ("second", 5, 2)])
    remats, degraded = machine.remats()
    assert remats == {"first": None, "second": None}
    assert [d["seam"] for d in degraded] == ["stderr"]
    assert "--tee-stderr" in degraded[0]["reason"]


def test_programs_of_one_partition_have_nothing_to_say(machine):
    machine.process(100, [("first", 1, 2)], partitions=1)
    assert machine.remats() == ({"first": None}, [])


def test_a_silenced_compiler_is_not_a_compiler_without_warnings(machine):
    machine.process(100, [("first", 1, 2)])
    machine.heard(muted="TF_CPP_MIN_LOG_LEVEL=3")
    remats, degraded = machine.remats()
    assert remats == {"first": None}
    assert "TF_CPP_MIN_LOG_LEVEL=3" in degraded[0]["reason"]


def test_what_came_out_of_the_persistent_cache_was_compiled_where_nobody_listened(machine):
    machine.process(100, [("first", 1, 2, "hit")])
    machine.heard()
    assert machine.remats()[0] == {"first": None}


def test_a_warning_that_arrives_before_the_program_is_placed_when_it_does(tmp_path):
    machine = Machine(tmp_path / "run")
    machine.heard((2, "first", None))
    run = load(machine.run)
    assert [lost.seam for lost in run.degraded] == ["stderr"]
    machine.process(100, [("first", 1, 2)])
    for event in [
        e for e in _events(machine.run) if not isinstance(e, (ev.StderrWatched, ev.CompilerWarned))
    ]:
        run.apply(event)
    assert run.degraded == []
    assert len(run.overheard.of(run.programs["first"])) == 1


def _events(run):
    from jaxscope.log.reader import read

    return list(read(run))


def test_older_logs_do_not_know_the_two_events():
    decoded = msgspec.json.decode(b'{"kind":"StderrWatched"}', type=ev.AnyEvent)
    assert decoded.muted is None


def test_a_compilation_whose_end_was_written_late_has_its_warning_all_the_same(machine):
    """The end is written when the texts have been read: compiled from 1 s to 1.2 s, said at 1.5 s."""
    log = Log(machine.run, 100)
    log.now = 1.0
    seen = function("busy")
    log.say(seen)
    call = log.missed(seen, key(leaf("x", 3)))
    log.say(ev.Lowered(call=call, seconds=0.0, program="busy", module="jit_busy", num_partitions=4))
    log.say(ev.PhaseBegan(call=call, phase="compile"))
    log.say(ev.Compiled(call=call, seconds=0.2, program="busy", persistent_cache="off"), after=0.5)
    log.end()
    machine.heard((1.1, "busy", None))
    assert machine.remats() == ({"busy": 1}, [])
