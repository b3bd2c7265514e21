"""Which earlier call a miss is compared with, among hundreds."""

import random
import threading

import pytest
from handwritten_runs import Log, function, key, leaf, static

from jaxscope.analysis import levels
from jaxscope.analysis.keys import flatten
from jaxscope.log import store
from jaxscope.log.reader import Reader
from jaxscope.model import causes, key_index
from jaxscope.model.load import load
from jaxscope.model.run import Run
from jaxscope.present.causes import clause
from jaxscope.schema.causes import OLDER_CACHES
from jaxscope.schema.keys import Key

F = function("predict")


def told(run):
    model = load(run)
    [f] = model.functions.values()
    return [(c.kind, clause(c)) for c in causes.of(model, f.compilations[-1])]


def test_the_first_of_hundreds_of_shapes_is_found_when_it_comes_back_in_another_dtype(tmp_path):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    for n in range(1, causes.LOOK_BACK + 50):
        log.compiled(F, key(leaf("x", n)))
    log.compiled(F, key(leaf("x", 1, dtype="int32")))
    assert told(run) == [("dtype", "x changed from f32[1] to i32[1]")]


@pytest.mark.parametrize("names", [("fast_path", "fast_path_no_options"), OLDER_CACHES])
def test_full_caches_of_the_fast_path_have_words_also_in_logs_of_older_versions(tmp_path, names):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    log.compiled(F, key(leaf("x", 1)))
    log.missed(F, key(leaf("x", 1)), full=dict.fromkeys(names, (8192, 8192)))
    [(kind, text)] = told(run)
    assert kind == "evicted"
    assert "(fast path 8,192 of 8,192, fast path (no options) 8,192 of 8,192 entries)" in text


def test_calls_of_several_threads_are_compared_in_the_order_in_which_they_missed(tmp_path):
    log = Log(store.create(tmp_path / "run"))
    log.say(F)
    for call, size in ((2, 3), (5, 6), (7, 8), (6, 7), (4, 5), (3, 4)):  # numbered as they were entered
        log.missed(F, key(leaf("x", size)), call=call)
        for phase in ("trace", "lower", "compile"):
            log.phase(call, phase, 0.1)
    model = load(log.run)
    [f] = model.functions.values()
    assert [clause(causes.of(model, c)[0]) for c in f.compilations] == [
        "the first time this function is seen",
        *(
            f"x changed from f32[{was}] to f32[{now}]"
            for was, now in ((3, 6), (6, 8), (8, 7), (7, 5), (5, 4))
        ),
    ]


def test_thousands_of_shapes_cost_a_few_looks_each_and_not_a_look_at_every_earlier_key(tmp_path, monkeypatch):
    run = store.create(tmp_path / "run")
    log = Log(run)
    log.say(F)
    for n in range(1, 1_500):
        log.compiled(F, key(leaf("x", n)))
    looks = []
    apart = levels.differences
    monkeypatch.setattr(levels, "differences", lambda a, b: looks.append(1) or apart(a, b))
    model = load(run)
    [f] = model.functions.values()
    assert {cause.kind for c in f.compilations[1:] for cause in causes.of(model, c)} == {"shape"}
    assert len(looks) < 5 * len(f.compilations)


def test_keys_that_are_known_to_have_other_shapes_are_passed_over_without_a_change_of_the_nearest():
    chance = random.Random(7)

    def one() -> Key:
        objects = chance.choice([None, 1, 2])
        shapes = [(chance.choice([1, 2, 3]),) for _ in range(2)]
        leaves = [
            leaf(p, *s, dtype=chance.choice(["float32", "int32"])) for p, s in zip("xy", shapes, strict=True)
        ]
        return key(*leaves, static=[static("n", chance.choice([1, 2]))], function_object=objects)

    for _ in range(300):
        before, now = [one() for _ in range(12)], one()
        unlike = {n for n, k in enumerate(before) if key_index.shapes(k) != key_index.shapes(now)}
        flat = [flatten(k) for k in before]
        for level in ("trace", "lower", "compile", "fast_path"):
            assert levels.nearest(flatten(now), flat, level, unlike.__contains__) == levels.nearest(
                flatten(now), flat, level
            )


def test_the_calls_of_a_process_that_is_read_later_are_compared_with_its_own(tmp_path):
    run = store.create(tmp_path / "run")
    model = Run()
    for pid, shapes in ((1, (4, 5, 6)), (2, (7, 4, 8))):
        log = Log(run, pid=pid)  # both begin at one time: what is read later stands between what is known
        log.say(F)
        for n in shapes:
            log.compiled(F, key(leaf("x", n)))
        for name, event in Reader(run).entries():
            if f"{pid}" in {str(event.pid)}:
                model.apply(event, name)
        [f] = model.functions.values()
        for c in f.compilations:
            causes.of(model, c)
    said = {(c.process.pid, c.call): [clause(cause) for cause in causes.of(model, c)] for c in f.compilations}
    assert said[2, 2] == ["x changed from f32[7] to f32[4]"] and said[2, 3] == [
        "x changed from f32[4] to f32[8]"
    ]
    assert said[1, 3] == ["x changed from f32[5] to f32[6]"]


def test_another_thread_waits_for_the_keys_that_are_being_added(tmp_path, monkeypatch):
    log = Log(store.create(tmp_path / "run"))
    log.say(F)
    for n in (3, 4):
        log.compiled(F, key(leaf("x", n)))
    run = load(log.run)
    [f] = run.functions.values()
    (first, second), facts_of, other = f.compilations, key_index.facts_of, []

    def while_another_reads(run, c):
        if c is second and not other:
            thread = threading.Thread(target=lambda: found.append(len(key_index.of(run, first).facts)))
            other.append(thread)
            thread.start()
            thread.join(0.2)
        return facts_of(run, c)

    found = []
    monkeypatch.setattr(key_index, "facts_of", while_another_reads)
    assert len(key_index.of(run, first).facts) == 2
    other[0].join()
    assert found == [2]  # not an index that has only the first key
