"""Which results and arguments live arrays are, and as what the latest call passed them."""

from __future__ import annotations

import handwritten_runs
import msgspec
import pytest
from handwritten_runs import CWD, Log

from jaxscope.analysis.sharding_audit import disagreement
from jaxscope.log import store
from jaxscope.model import arrays, sharding_audit
from jaxscope.model.load import load
from jaxscope.present.text import Places
from jaxscope.report import function as in_full
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup
from jaxscope.schema.keys import Frame, OutLeaf, Sharding

MESH = (("data", 8, "Auto"),)


def named(spec):
    return Sharding("NamedSharding", f"{spec} on data=8", "0-7", MESH, spec, "device")


SPLIT, WHOLE = named("P('data',)"), named("P()")
STEP = handwritten_runs.function("train_step")
CALL = 140


def compiled(
    log, leaves, *, asked=(), asked_in=(), asked_out=(), takes=(), gives=(), out=(), line=CALL, **key
):
    """A call of train_step, compiled for eight devices."""
    k = handwritten_runs.key(*leaves, shardings=[handwritten_runs.ONE_CPU, SPLIT, WHOLE], **key)
    call = log.missed(STEP, k, line=line)
    log.phase(call, "trace", 0.1, out=[OutLeaf(p, (8, 4), "float32") for p in out])
    log.phase(call, "lower", 0.1, asked=list(asked), asked_in=list(asked_in), asked_out=list(asked_out))
    log.phase(
        call, "compile", 0.1, devices="0-7", in_shardings=[SPLIT, WHOLE], in_sharding_of=list(takes),
        out_shardings=[SPLIT, WHOLE], out_sharding_of=list(gives),
    )  # fmt: skip
    return call


def alive(*groups, step=1):
    found = [
        ArrayGroup(path, 1, (8, 4), "float32", 128, 128, sharding, True, "(0, 1)", Frame(f"{CWD}/train.py", line, "main"))
        for path, sharding, line in groups
    ]  # fmt: skip
    return ev.ArraysSeen(why="step", step=step, count=len(found), groups=found, shardings=[handwritten_runs.ONE_CPU, SPLIT, WHOLE], addressable="0-7")  # fmt: skip


@pytest.fixture
def run_of(tmp_path):
    def make(*doings):
        directory = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(directory)
        log.backend(8)
        log.say(STEP)
        for do in doings:
            do(log)
        log.end()
        return load(directory)

    return make


def texts(run):
    looks = arrays.snapshots(run)
    of = sharding_audit.OfArrays(run, looks)
    return {g.path: tuple(s and s.spec for s in of.of(g)) for look in looks for g in look.groups}


def test_an_array_made_on_the_line_of_a_call_is_the_result_whose_path_ends_like_its_own(run_of):
    run = run_of(
        lambda log: compiled(log, [], asked=[SPLIT, WHOLE], asked_out=[0, 1], gives=[1, 1], out=["[0]['w']", "[0]['b']"]),
        lambda log: log.say(alive(("params['w']", 2, CALL), ("params['b']", 2, CALL), ("other", 2, 7))),
    )  # fmt: skip
    assert texts(run) == {
        "params['w']": ("P('data',)", "P()"),
        "params['b']": ("P()", "P()"),
        "other": (None, None),
    }


def test_where_several_results_could_be_it_and_differ_nothing_is_reported(run_of):
    run = run_of(
        lambda log: compiled(log, [], asked=[SPLIT, WHOLE], asked_out=[0, 1], gives=[1, 1], out=["[0]", "[1]"]),
        lambda log: log.say(alive(("left", 2, CALL), ("pair[*]", 2, CALL))),
    )  # fmt: skip
    assert texts(run) == {"left": (None, "P()"), "pair[*]": (None, "P()")}


def test_a_result_with_another_sharding_is_not_it(run_of):
    run = run_of(
        lambda log: compiled(log, [], asked=[SPLIT], asked_out=[0], gives=[0], out=[""]),
        lambda log: log.say(alive(("x", 2, CALL))),
    )
    assert texts(run) == {"x": (None, None)}


def test_an_array_from_elsewhere_is_the_argument_whose_path_ends_like_its_own(run_of):
    leaves = [
        handwritten_runs.leaf("params['w']", 8, 4, sharding=1),
        handwritten_runs.leaf("batch", 8, 4, sharding=1),
    ]
    run = run_of(
        lambda log: compiled(log, leaves, asked=[SPLIT], asked_in=[0, None], takes=[0, 1]),
        lambda log: log.say(alive(("state.params['w']", 1, 7), ("batch", 1, 8), ("batch2", 1, 8), ("x.batch", 2, 8))),
    )  # fmt: skip
    assert texts(run) == {
        "state.params['w']": ("P('data',)", "P('data',)"),
        "batch": (None, "P()"),
        "batch2": (None, None),
        "x.batch": (None, None),  # it lies otherwise than the argument did
    }


def test_the_latest_call_says_how_the_arguments_lie_now(run_of):
    first, later = (
        handwritten_runs.leaf("w", 8, 4),
        handwritten_runs.leaf("w", 8, 4, sharding=1, committed=True),
    )

    def again(log):
        log.missed(STEP, handwritten_runs.key(later, shardings=[handwritten_runs.ONE_CPU, SPLIT]))

    run = run_of(lambda log: compiled(log, [first], takes=[0]), again)
    [f] = run.functions.values()
    c, [w] = sharding_audit.latest(run, f)
    assert c.compiled is not None and w.actual == SPLIT and disagreement(w) is None
    [before] = sharding_audit.of_compilation(run, c)
    assert before.actual == handwritten_runs.ONE_CPU and disagreement(before).kind == "moved"


def test_what_was_not_recorded_is_not_known(run_of):
    """A log of an older version: no shardings of arguments, no requested shardings."""
    run = run_of(lambda log: compiled(log, [handwritten_runs.leaf("w", 8, 4)], gives=[0], out=["[0]"]))
    [f] = run.functions.values()
    _, [w, result] = sharding_audit.latest(run, f)
    assert (w.asked, w.compiled, result.asked, result.compiled) == (None, None, None, SPLIT)
    assert disagreement(w) is None and disagreement(result) is None


def test_indices_that_lead_nowhere_are_passed_over(run_of):
    run = run_of(
        lambda log: compiled(
            log,
            [handwritten_runs.leaf("w", 8, 4, sharding=77)],
            asked=[SPLIT],
            asked_in=[9],
            asked_out=[-4, 3],
            takes=[99],
            gives=[5],
            out=["[0]"],
        )
    )
    [f] = run.functions.values()
    _, found = sharding_audit.latest(run, f)
    assert all((i.asked, i.compiled, i.actual) == (None, None, None) for i in found) and len(found) == 2


def test_one_device_that_takes_its_arguments_from_itself_is_not_at_stake(run_of):
    def one(log):
        log.compiled(STEP, handwritten_runs.key(handwritten_runs.leaf("x", 4)))
        far = handwritten_runs.key(handwritten_runs.leaf("x", 4), shardings=[handwritten_runs.TWO_CPU])
        call = log.missed(STEP, far)
        log.phase(call, "lower", 0.1)
        log.phase(call, "compile", 0.1, devices="0")

    run = run_of(one)
    near, far = run.compilations.values()
    near.compiled = msgspec.structs.replace(near.compiled, devices="0")
    assert not sharding_audit.at_stake(near) and sharding_audit.at_stake(far)
    [x] = sharding_audit.of_compilation(run, far)
    assert (x.compiled.text, x.actual.text, disagreement(x).kind) == ("cpu:0", "cpu:1", "moved")


def test_on_one_device_shardings_cannot_differ(run_of):
    one = Sharding(
        "NamedSharding", "P('model',) on model=1", "0", (("model", 1, "Auto"),), "P('model',)", "device"
    )

    def call(log, arguments_on, program_on):
        k = handwritten_runs.key(handwritten_runs.leaf("w", 8, 4, sharding=0), shardings=[arguments_on])
        number = log.missed(STEP, k)
        log.phase(number, "trace", 0.1)
        log.phase(number, "lower", 0.1, asked=[one])
        log.phase(number, "compile", 0.1, devices=program_on)

    run = run_of(
        lambda log: call(log, one, "0"), lambda log: call(log, handwritten_runs.TWO_CPU, "0"), lambda log: call(log, SPLIT, "0-7")
    )  # fmt: skip
    calls = run.functions[STEP.function].compilations
    assert [sharding_audit.on_one_device(c) for c in calls] == [True, False, False]
    assert all(sharding_audit.at_stake(c) for c in calls)
    printed = [
        bool(list(in_full.shardings(run, c.function, [(1, c)], None, Places(run), everything=False)))
        for c in calls
    ]
    assert printed == [False, True, True]
