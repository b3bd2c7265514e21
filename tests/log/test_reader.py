"""Events back from logs that the real world has been at."""

import handwritten_runs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxscope.log import store
from jaxscope.log.reader import MOST, Reader, decode, read
from jaxscope.log.store import RunDir
from jaxscope.schema import events as ev

many = settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)


def log_of(tmp_path, data: bytes, name: str = "1-a") -> RunDir:
    run = RunDir(tmp_path)
    run.events.mkdir(exist_ok=True)
    (run.events / f"{name}.jsonl").write_bytes(data)
    return run


def line(event: ev.Event) -> bytes:
    return msgspec.json.encode(event) + b"\n"


def test_a_torn_last_line_is_left_for_later(tmp_path):
    whole = line(ev.Step(seq=1, index=1))
    torn = line(ev.Step(seq=2, index=2))
    run = log_of(tmp_path, whole + torn[:-9])
    reader = Reader(run)
    assert [e.index for e in reader.poll()] == [1]
    assert reader.poll() == []
    log_of(tmp_path, whole + torn)
    assert [e.index for e in reader.poll()] == [2]
    assert reader.damaged == 0


def test_a_damaged_line_costs_itself_only(tmp_path):
    reader = Reader(
        log_of(
            tmp_path, line(ev.Step(index=1)) + b'{"kind": "Step", "ind\xff\n\n[]\n' + line(ev.Step(index=2))
        )
    )
    assert [e.index for e in reader.poll()] == [1, 2]
    assert reader.damaged == 2


def test_an_event_on_two_lines_and_two_on_one_line_are_damaged(tmp_path):
    step = b'{"kind":"Step","index":1}'
    reader = Reader(log_of(tmp_path, b'{"kind":"Step",\n"index":1}\n' + step + step + b"\n"))
    assert (reader.poll(), reader.damaged) == ([], 3)


def test_kinds_from_a_newer_version_survive_as_they_were(tmp_path):
    [event] = read(log_of(tmp_path, b'{"kind":"Dreamt","t_ns":7,"pid":3,"of":["sheep"]}\n'))
    assert isinstance(event, ev.Unknown)
    assert (event.kind, event.t_ns, event.pid, event.raw["of"]) == ("Dreamt", 7, 3, ["sheep"])


def test_a_known_kind_with_a_field_of_the_wrong_type_is_kept_as_unknown():
    event = decode(b'{"kind":"Step","index":"seven"}')
    assert isinstance(event, ev.Unknown) and event.kind == "Step"
    assert decode(b'{"kind":"Step","index":7,"new_field":[1]}') == ev.Step(index=7)


def test_processes_are_merged_by_time_and_each_keeps_its_own_order(tmp_path):
    log_of(
        tmp_path,
        line(ev.Step(index=1, t_ns=10)) + line(ev.Step(index=2, t_ns=5)) + line(ev.Step(index=3, t_ns=30)),
        "1-a",
    )
    run = log_of(tmp_path, line(ev.Step(index=11, t_ns=7)) + line(ev.Step(index=12, t_ns=20)), "2-b")
    assert [(log, e.index) for log, e in Reader(run).entries()] == [
        ("2-b", 11), ("1-a", 1), ("1-a", 2), ("2-b", 12), ("1-a", 3),
    ]  # fmt: skip


def test_a_process_that_appears_later_is_read_too(tmp_path):
    run = log_of(tmp_path, line(ev.Step(index=1)))
    reader = Reader(run)
    assert len(reader.poll()) == 1
    log_of(tmp_path, line(ev.Step(index=2)), "2-b")
    assert [e.index for e in reader.poll()] == [2]


def test_a_directory_without_logs_is_a_run_without_events(tmp_path):
    assert list(read(RunDir(tmp_path / "none"))) == []


def test_progress_counts_up_to_the_whole(tmp_path):
    run = log_of(tmp_path, line(ev.Step(index=1)) * 50_000)
    told = []
    Reader(run).entries(lambda done, total: told.append((done, total)))
    size = next(run.events.iterdir()).stat().st_size
    assert len(told) > 1 and told[-1] == (size, size)
    assert told == sorted(told)


@many
@given(data=st.binary(max_size=400))
def test_random_bytes_raise_nothing(tmp_path, data):
    reader = Reader(log_of(tmp_path, data))
    reader.poll()
    assert reader.poll() == []


@many
@given(st.data())
def test_read_in_any_slices_a_log_says_the_same(tmp_path, data):
    whole = b"".join(line(ev.Step(seq=n, index=n)) for n in range(6)) + b'{"kind":"New"}\nnoise\n'
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=5)))
    (tmp_path / "events").mkdir(exist_ok=True)
    path = tmp_path / "events" / "1-a.jsonl"
    path.write_bytes(b"")
    reader, found = Reader(RunDir(tmp_path)), []
    for cut in [*cuts, len(whole)]:
        path.write_bytes(whole[:cut])
        found += reader.poll()
    assert [getattr(e, "index", None) for e in found] == [0, 1, 2, 3, 4, 5, None]
    assert reader.damaged == 1


below_most = st.integers(1 - MOST, MOST - 1)  # a line with a larger number is damaged
json_values = st.recursive(
    st.none() | st.booleans() | below_most | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KINDS = [t.__struct_config__.tag for t in ev.AnyEvent.__args__]


@many
@given(
    st.sampled_from(KINDS),
    st.dictionaries(
        st.sampled_from(["call", "t_ns", "key", "seconds", "site", "x"]), json_values, max_size=4
    ),
)
def test_any_object_with_a_kind_is_an_event_of_some_sort(kind, fields):
    event = decode(msgspec.json.encode({**fields, "kind": kind}))
    assert event is not None
    assert isinstance(event.t_ns, int) and isinstance(event.pid, int)


def test_a_run_written_by_hand_comes_back(tmp_path):
    run = handwritten_runs.training(tmp_path / "run")
    kinds = {type(e).__name__ for e in read(run)}
    assert {"RunStarted", "Missed", "Compiled", "ProgramText", "RunEnded", "ProgramExited"} <= kinds
    assert run.text(next(e.blob for e in read(run) if isinstance(e, ev.ProgramText))).startswith(
        "module @jit_train_step"
    )


def test_texts_that_are_no_utf8_are_written_spelled_out(tmp_path):
    run = store.create(tmp_path / "run")
    log = handwritten_runs.Log(run, argv=["train.py", "caf\udce9"])
    log.end()
    started, ended = read(run)
    assert started.argv == ["train.py", "caf\\udce9"]
    assert isinstance(ended, ev.RunEnded)
