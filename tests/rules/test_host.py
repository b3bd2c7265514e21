"""When waiting for the device is a finding, and when it is not."""

from __future__ import annotations

import handwritten_runs
import pytest
from handwritten_runs import ONE_CPU, TWO_CPU, Log, copied, function, key, leaf

from jaxscope.log import store
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.rules.registry import findings
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

S = 1_000_000_000
F = function("train_step")


@pytest.fixture
def log(tmp_path):
    made = Log(store.create(tmp_path / "run"), transfers=True)
    made.say(F)
    return made


def found(log, code):
    return [f for f in findings(load(log.run)) if f.code == code]


def test_a_copy_in_each_step_is_reported_with_line_count_and_seconds(log):
    log.say(ev.Step(index=200))
    log.say(copied())
    [f] = found(log, "JX601")
    assert (
        words.title(f)
        == "float(loss) waits for the device and copies to the host in each of 200 steps; this took 1.3 s in total;"
        " with the advice, the program can save at most 0.70 s of this"
    )
    assert (f.certainty, f.seconds, f.source.line) == ("certain", pytest.approx(0.7), 31)
    assert (
        words.evidence(f.evidence[0])
        == "200 times, 800 bytes in total; the program waited for 65% of the time between the first copy and the last one"
    )


def test_the_kinds_of_copies_of_one_line_are_one_figure(log):
    log.say(ev.Step(index=200))
    printed = {"text": 'f"{loss} {params}"', "last_ns": handwritten_runs.T0 + 2 * S}
    log.say(copied(via="format", seconds=0.2, checks=20, **printed))
    log.say(copied(via="print", seconds=1.0, count=1600, steps=200, last_step=200, checks=160, **printed))
    [f] = found(log, "JX601")
    assert words.title(f) == (
        'f"{loss} {params}" waits for the device and copies to the host 9 times in each of 200 steps; this took 1.2 s in'
        " total; with the advice, the program can save at most 0.80 s of this"
    )
    assert f.seconds == pytest.approx(0.8)
    log.say(copied(via="item", text="loss.item()", seconds=0.1))
    assert words.title(found(log, "JX601")[0]).startswith(
        'the line with f"{loss} {params}" and loss.item() waits for the device and copies to the host 10 times'
    )


@pytest.mark.parametrize(("looks", "gap"), [({"checks": 20}, 1), ({"checks": 20, "ahead": 1}, 0), ({}, 0)])
def test_a_device_that_had_no_work_after_each_wait_may_have_waited_for_the_host(log, looks, gap):
    log.say(ev.Step(index=200))
    log.say(copied(**looks))
    [f] = found(log, "JX601")
    assert [words.evidence(e) for e in f.evidence[1:]] == gap * [
        "after each wait the device has no work until the next call: at most 35% of the time, 4 ms per step"
    ]


def test_the_first_wait_ends_before_the_time_that_shares_are_of(log):
    log.say(ev.Step(index=200))
    log.say(copied(count=1, steps=1, seconds=0.5, last_ns=handwritten_runs.T0))
    log.say(copied(seconds=1.3, checks=9))
    [f] = found(log, "JX601")
    assert "waited for 40% of the time" in words.evidence(f.evidence[0])
    assert "at most 60% of the time, 6 ms per step" in words.evidence(f.evidence[1])


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, 0.7),
        ({"seconds": 0.6}, 0.6),  # the waits themselves are the smaller part
        ({"bytes": 200 << 20}, 1.3),  # much of the wait may be the copy
        ({"bytes": None}, 1.3),
        ({"bytes": 200 << 20, "views": 200}, 0.7),
    ],
)
def test_a_wait_costs_what_the_change_saves(log, more, seconds):
    log.say(ev.Step(index=200))
    log.say(copied(**more))
    [f] = found(log, "JX601")
    assert f.seconds == pytest.approx(seconds)
    assert ("with the advice" in words.title(f)) == (seconds == 0.7)


def test_what_other_lines_wait_is_not_saved_by_a_change_of_one(log):
    log.say(ev.Step(index=200))
    log.say(copied())
    log.say(copied(40, seconds=0.5, text="float(norm)"))
    log.say(
        copied(
            41,
            seconds=0.4,
            text="float(after)",
            first_ns=handwritten_runs.T0 + int(2e9),
            last_ns=handwritten_runs.T0 + int(4e9),
        )
    )
    first, *_ = (f for f in found(log, "JX601") if f.source.line == 31)
    assert first.seconds == pytest.approx(0.2)


def test_a_view_is_not_called_a_copy(log):
    log.say(ev.Step(index=200))
    log.say(copied(views=200))
    [f] = found(log, "JX601")
    assert "waits for the device in each of 200 steps" in words.title(f)
    assert "on this backend the host reads the array without a copy" in words.evidence(f.evidence[0])


def test_a_line_that_is_reached_from_a_later_step_on_counts_the_steps_since(log):
    log.say(ev.Step(index=500))
    log.say(copied(count=400, steps=395, first_step=101, last_step=500))
    assert "in 395 of 400 steps" in words.title(found(log, "JX601")[0])


@pytest.mark.parametrize(
    "harmless",
    [
        {"count": 4, "steps": 4},  # every fiftieth step
        {"steps": 120},  # not in every step
        {"waits": 3},  # what is there already: of the previous iteration
        {"seconds": None},  # not known
        {"via": "constant"},
        {"via": "argument"},
        {"site": None},
        {"direction": "host_to_device"},
    ],
)
def test_what_does_not_hold_the_program_up_is_no_finding(log, harmless):
    log.say(ev.Step(index=200))
    log.say(copied(**harmless))
    assert found(log, "JX601") == []


def test_a_short_wait_in_each_step_is_a_note_with_its_count_per_step(log):
    log.say(ev.Step(index=200))
    log.say(copied(seconds=0.03, count=400, waits=400, steps=200))
    [f] = found(log, "JX601")
    assert f.severity == "note"
    assert "2 times in each of 200 steps; this took 30 ms in total" in words.title(f)


def test_a_phase_that_waits_in_each_of_its_steps_is_found(log):
    log.say(ev.Step(index=500))
    log.say(copied(count=100, steps=100, first_step=301, last_step=400))
    [f] = found(log, "JX601")
    assert "in each of 100 steps (steps 301 to 400)" in words.title(f) and f.severity == "warning"


def test_a_loop_inside_a_step_that_waits_is_found(log):
    log.say(ev.Step(index=500))
    log.say(copied(count=90, steps=3, last_step=450, close=87, seconds=0.01))
    [f] = found(log, "JX601")
    assert "reads" not in words.title(f) and "87 times" in words.title(f) and f.certainty == "likely"


def test_a_read_that_leaves_the_device_busy_is_no_finding(log):
    log.say(ev.Step(index=200))
    log.say(copied(checks=9, ahead=8))
    assert found(log, "JX601") == []


def test_the_line_that_calls_a_helper_stands_beside_the_helpers(log):
    log.say(ev.Step(index=200))
    log.say(copied(caller=Frame("/home/u/proj/run.py", 80, "main")))
    assert "float(loss) (train.py:31, called at run.py:80) waits for the device and copies" in words.title(
        found(log, "JX601")[0]
    )


def test_a_loop_that_calls_a_helper_through_another_helper_is_named(log, tmp_path, monkeypatch):
    text = "def scalar(v): return float(v)\ndef log(v): return scalar(v)\nfor x in xs:\n    log(step(x))\n"
    monkeypatch.setattr(sources, "of", lambda run: lambda file: text)
    at = [Frame("/home/u/proj/train.py", n, "f") for n in (1, 2, 4)]
    log.say(ev.Step(index=200))
    log.say(copied(1, site=at[0], caller=at[1], above=at[2:]))
    assert "float(loss) (train.py:1, called at train.py:4) waits" in words.title(found(log, "JX601")[0])


def test_a_read_in_each_step_that_takes_no_time_on_a_cpu_is_a_note(log):
    log.say(ev.Step(index=200))
    log.say(copied(waits=0, views=200, seconds=0.004))
    [f] = found(log, "JX601")
    assert f.severity == "note" and "in each of 200 steps; this took 4 ms in total" in words.title(f)


LOOP = """
for batch in data:
    w, loss = train_step(w, batch)
    losses.append(loss.item())
for loss in losses:
    print(loss.item())
"""


@pytest.mark.parametrize(("line", "noted"), [(4, True), (6, False)])
def test_a_short_read_in_the_loop_of_a_jitted_function_is_a_note_without_steps(
    log, tmp_path, monkeypatch, line, noted
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(LOOP)
    here = {"file": str(tmp_path / "loop.py"), "function": "<module>"}
    log.compiled(F, key(leaf("w", 4)), (0.1, 0.1, 0.1), site=Frame(line=3, **here))
    log.say(copied(steps=None, waits=0, views=200, seconds=0.004, site=Frame(line=line, **here)))
    reads = found(log, "JX601")
    assert [f.severity for f in reads] == ["note"] * noted
    for f in reads:
        assert "200 times in the loop that calls train_step" in words.title(f)


EPOCHS = """
for epoch in range(9):
    for batch in data:
        {inner}
    w, loss = train_step(w, batch)
    print(float(loss))
"""


@pytest.mark.parametrize(("inner", "noted"), [("train_step(w, batch)", False), ("log(batch)", True)])
def test_a_read_beside_an_inner_loop_is_rare_only_if_that_loop_calls_the_function(
    log, tmp_path, monkeypatch, inner, noted
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(EPOCHS.format(inner=inner))
    here = {"file": str(tmp_path / "loop.py"), "function": "<module>"}
    for line in (5,) if noted else (4, 5):
        log.compiled(F, key(leaf("w", line)), (0.1, 0.1, 0.1), site=Frame(line=line, **here))
    log.say(copied(steps=None, waits=0, views=200, seconds=0.004, site=Frame(line=6, **here)))
    assert bool(found(log, "JX601")) is noted


RARELY = """
for epoch in range(9):
    for batch in data:
        w, loss = train_step(w, batch)
        {read}
    {after}
"""


@pytest.mark.parametrize(
    ("read", "after", "line", "remedy"),
    [
        ("if n % 50 == 0: print(float(loss))", "", 5, True),
        ("if time() > due:\n            due = time() + 5; print(float(loss))", "", 6, True),
        ("", "print(float(loss))", 6, True),
        ("print(float(loss))", "", 5, False),
        ("if process_index() == 0: print(float(loss))", "", 5, False),
        ("if float(loss) > best: best = loss", "", 5, False),
    ],
)
def test_a_read_now_and_then_is_no_finding_without_steps(
    log, tmp_path, monkeypatch, read, after, line, remedy
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(RARELY.format(read=read, after=after))
    log.say(copied(steps=None, first_step=None, site=Frame(str(tmp_path / "loop.py"), line, "<module>")))
    assert bool(found(log, "JX601")) is not remedy


KEPT = """
kept = None
for batch in data:
    w, loss = train_step(w, batch)
    if kept is not None:
        log({read})
    {after}
"""


@pytest.mark.parametrize(
    ("read", "after", "remedy"),
    [
        ("float(kept)", "kept = loss", True),
        ("kept.item()", "kept, n = loss, 1", False),  # not known
        ("float(loss)", "kept = loss", False),
        ("float(kept)", "kept = train_step(w, batch)[1]", False),
    ],
)
def test_the_value_of_the_step_before_is_no_finding(log, tmp_path, monkeypatch, read, after, remedy):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(KEPT.format(read=read, after=after))
    log.say(ev.Step(index=200))
    log.say(copied(site=Frame(str(tmp_path / "loop.py"), 6, "<module>"), text=read))
    assert bool(found(log, "JX601")) is not remedy


def test_without_steps_a_line_that_keeps_the_program_waiting_is_likely(log):
    log.say(copied(steps=None, first_step=None))
    [f] = found(log, "JX601")
    assert (
        words.title(f)
        == "float(loss) waits for the device and copies to the host 200 times; this took 1.3 s in total;"
        " with the advice, the program can save at most 0.70 s of this"
    )
    assert f.certainty == "likely"


@pytest.mark.parametrize("rarely", [{"count": 19, "waits": 19}, {"seconds": 0.3}])
def test_without_steps_it_takes_more_to_be_reported(log, rarely):
    log.say(copied(steps=None, first_step=None, **rarely))
    assert found(log, "JX601") == []


@pytest.mark.parametrize(
    ("via", "text", "title", "fix"),
    [
        ("bool", "loss > best", "loss > best", "jax.lax.cond"),
        (
            "bool",
            "state.step % 100 == 0",
            "state.step % 100 == 0",
            "count the iterations in a Python variable",
        ),
        ("print", None, "printing", "keep the values in a list, and print or show them after the loop"),
        ("item", "loss.item()", "loss.item()", "in the next iteration"),
        ("np.asarray", None, "np.asarray()", "in the next iteration"),
    ],
)
def test_the_remedy_is_one_for_what_was_done(log, via, text, title, fix):
    log.say(ev.Step(index=200))
    log.say(copied(via=via, text=text))
    [f] = found(log, "JX601")
    assert words.title(f).startswith(title) and fix in words.fix_text(f)


ACTS = """
for n in range(200):
    action = int(policy(w, seen))
    seen = world.step(action)
"""
SEARCHES = """
for n in range(200):
    width = float(measured(w, x))
    x = x + 0.1 * width
"""


@pytest.mark.parametrize(
    ("program", "advice"),
    [
        (ACTS, "world.step needs this value before the program can go on"),
        (SEARCHES, "the variable x of the next iteration depends on this value"),
    ],
)
def test_a_value_that_the_next_iteration_needs_cannot_be_read_later(
    log, tmp_path, monkeypatch, program, advice
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop.py").write_text(program)
    log.say(ev.Step(index=200))
    log.say(copied(site=Frame(str(tmp_path / "loop.py"), 3, "<module>"), text="int(policy(w, seen))"))
    [f] = found(log, "JX601")
    assert words.fix_text(f).startswith(advice)


MIB = 1 << 20


@pytest.mark.parametrize(
    ("made", "advice"),
    [
        ("jnp.arange(50)", "before the loop: rows = jax.device_get(rows). Its elements"),
        ("numbers()", "Before you call numbers, copy this array to the host"),
        ("load()", "before the loop: rows = jax.device_get(rows). If rows is an iterator over an array"),
    ],
)
def test_only_an_array_is_copied_as_a_whole(log, tmp_path, monkeypatch, made, advice):
    program = tmp_path / "train.py"
    program.write_text(
        "import jax.numpy as jnp\ndef numbers():\n    for i in jnp.arange(50):\n        yield i\n"
        f"rows = {made}\nfor row in rows:\n    float(row)\n"
    )
    monkeypatch.setattr(sources, "of", lambda run: lambda file: program.read_text())
    log.say(copied(7, 5000, text="float(row)", site=Frame(str(program), 7, "<module>"), steps=None))
    [f] = found(log, "JX603")
    assert advice in words.fix_text(f)


def test_large_data_that_goes_to_the_device_again_and_again_is_reported(log):
    put = {"direction": "host_to_device", "via": "device_put", "text": "jax.device_put(batch)"}
    log.say(copied(count=10, bytes=160 * MIB, **put))
    [f] = found(log, "JX602")
    assert (
        words.title(f)
        == "jax.device_put(batch) copies arrays from the host to the device: 10 times, 160.0 MiB in total"
    )
    assert f.severity == "warning"


def test_a_batch_that_jnp_asarray_copies_is_a_large_transfer_too(log):
    put = {"direction": "host_to_device", "via": "jnp.asarray", "text": "jnp.asarray(batch)"}
    log.say(copied(count=10, bytes=160 * MIB, **put))
    [f] = found(log, "JX602")
    assert (
        words.title(f)
        == "jnp.asarray(batch) copies arrays from the host to the device: 10 times, 160.0 MiB in total"
    )


@pytest.mark.parametrize(
    "less",
    [
        {"count": 3},
        {"bytes": 79 * MIB},
        {"bytes": None},
        {"direction": "device_to_device"},
        {"direction": "device_to_host", "views": 10},
        {"via": "constant"},
    ],
)
def test_what_moves_once_or_little_or_not_at_all_is_no_large_transfer(log, less):
    log.say(copied(**{"count": 10, "bytes": 160 * MIB, "direction": "host_to_device", "via": "x", **less}))
    assert found(log, "JX602") == []


def test_on_cpu_a_large_transfer_is_only_a_note(log):
    log.backend()
    log.say(copied(count=10, bytes=160 * MIB, via="device_get"))
    assert [f.severity for f in found(log, "JX602")] == ["note"]


def test_numpy_arguments_of_a_watched_function_may_be_large_transfers(log):
    log.say(ev.Watched(function=F.function))
    big = leaf("images", 4096, 1024, type="numpy.ndarray", sharding=None, committed=None)
    call = log.missed(F, key(big))
    log.phase(call, "compile", 1.0, devices="0")
    log.say(ev.Called(function=F.function, count=50))
    [f] = found(log, "JX602")
    assert (
        words.title(f)
        == "passing images to train_step copies arrays from the host to the device: 50 times, 800.0 MiB in total"
    )
    assert f.function == F.function


@pytest.mark.parametrize(
    ("program", "reported"),
    [
        ("for images in data:\n    w = train_step(images)\n", True),
        ("for i in data:\n    if i % 50 == 0:\n        w = train_step(images)\n", False),
        ("w = train_step(images)\n", False),
    ],
)
def test_numpy_arguments_in_a_loop_are_large_transfers_where_calls_are_not_counted(
    log, tmp_path, monkeypatch, program, reported
):
    lines = program.splitlines()
    (tmp_path / "loop.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    sources.text.cache_clear()
    site = Frame(str(tmp_path / "loop.py"), len(lines), "main")
    for size in (4096, 2048):  # the last batch is smaller: one finding
        big = leaf("images", size, 1024, type="numpy.ndarray", sharding=None, committed=None)
        call = log.missed(F, key(big), site=site)
        log.phase(call, "compile", 1.0, devices="0")
    titles = [words.title(f) for f in found(log, "JX602")]
    assert titles == reported * [
        "passing images to train_step copies 16.0 MiB to the device in each iteration of a loop"
    ]


@pytest.mark.parametrize(
    ("program", "reported"), [("x = sim.run(9)\n", 0), ("for i in range(9): sim.run(i)\n", 1)]
)
def test_values_that_a_library_reads_in_its_own_loop_are_no_finding(
    log, tmp_path, monkeypatch, program, reported
):
    (tmp_path / "once.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    sources.text.cache_clear()
    log.say(copied(text="sim.run(9)", steps=None, site=Frame(str(tmp_path / "once.py"), 1, "<module>")))
    assert len(found(log, "JX601")) == reported


def test_an_argument_from_another_device_is_reported_by_name(log):
    log.say(ev.Watched(function=F.function))
    call = log.missed(F, key(leaf("w", 16), leaf("u", 1 << 16, sharding=1), shardings=[ONE_CPU, TWO_CPU]))
    log.phase(call, "compile", 1.0, devices="0")
    log.say(ev.Called(function=F.function, count=50))
    [f] = found(log, "JX511")
    assert words.title(f) == (
        "u of train_step is not on the devices of its program; JAX copies 13,107,200 bytes in 50 copies"
    )
    assert words.evidence(f.evidence[0]) == "u: cpu:1; the program runs on devices 0"


def test_a_key_on_another_device_is_no_finding(log):
    log.say(ev.Watched(function=F.function))
    call = log.missed(F, key(leaf("w", 16), leaf("key", 2, sharding=1), shardings=[ONE_CPU, TWO_CPU]))
    log.phase(call, "compile", 1.0, devices="0")
    log.say(ev.Called(function=F.function, count=50))
    assert found(log, "JX511") == []


def test_a_tree_that_is_moved_by_one_call_alone_is_no_finding(log):
    log.say(ev.Watched(function=F.function))
    leaves = [leaf(f"state[{n}]", 16, sharding=1) for n in range(20)]
    call = log.missed(F, key(leaf("w", 16), *leaves, shardings=[ONE_CPU, TWO_CPU]))
    log.phase(call, "compile", 1.0, devices="0")
    log.say(ev.Called(function=F.function, count=1))
    log.say(copied(140, 20, direction="device_to_device", via="argument", text="train_step(w)"))
    assert found(log, "JX511") == []


@pytest.mark.parametrize("compiled", [True, False])
def test_an_argument_that_the_program_does_not_read_is_not_copied(log, compiled):
    log.say(ev.Watched(function=F.function))
    elsewhere = leaf("u", 16, sharding=1), leaf("n", 1 << 22, type="numpy.ndarray", sharding=None)
    for first in (True, False)[: 2 - compiled]:
        call = log.missed(F, key(leaf("w", 16), *elsewhere, shardings=[ONE_CPU, TWO_CPU]))
        if first:
            log.phase(call, "compile", 1.0, devices="0", dropped_arguments=[1, 2])
    log.say(ev.Called(function=F.function, count=50))
    assert not {f.code for f in findings(load(log.run))} & {"JX511", "JX602"}


@pytest.mark.parametrize("size, code", [(1 << 15, "JX511"), (1 << 20, "JX508")])
def test_an_array_from_elsewhere_is_reported_by_one_rule_alone(log, size, code):
    log.say(ev.Watched(function=F.function))
    elsewhere = leaf("u", size, sharding=1, committed=False)
    call = log.missed(F, key(leaf("w", 16), elsewhere, shardings=[ONE_CPU, TWO_CPU]))
    log.phase(call, "compile", 1.0, devices="0", in_shardings=[ONE_CPU], in_sharding_of=[0, 0])
    log.say(ev.Called(function=F.function, count=50))
    assert {f.code for f in findings(load(log.run))} & {"JX508", "JX511"} == {code}


def test_the_same_arrays_from_another_line_are_not_reported_twice(log):
    log.say(ev.Watched(function=F.function))
    elsewhere = leaf("u", 1 << 20, sharding=1, committed=False)
    call = log.missed(F, key(leaf("w", 16), elsewhere, shardings=[ONE_CPU, TWO_CPU]), line=31)
    log.phase(call, "compile", 1.0, devices="0", in_shardings=[ONE_CPU], in_sharding_of=[0, 0])
    log.say(ev.Called(function=F.function, count=50))
    for line, count in ((31, 8), (40, 8), (50, 9)):
        log.say(copied(line, direction="device_to_device", via="argument", count=count, steps=None))
    assert [f.source.line for f in found(log, "JX511")] == [50]
