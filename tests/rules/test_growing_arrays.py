"""JX501 on snapshots written by hand: what is said of a container that grows, and what is too little."""

from __future__ import annotations

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.log import store
from jaxscope.model import sources
from jaxscope.model.load import load
from jaxscope.present import findings as words
from jaxscope.report import contract
from jaxscope.rules import registry
from jaxscope.schema import events as ev
from jaxscope.schema.arrays import ArrayGroup, Holder
from jaxscope.schema.keys import Frame

KIB = 1 << 10
LINE = Frame(f"{handwritten_runs.CWD}/train.py", 30, "main")
COUNTS = (10, 20, 30, 40, 50, 60)


@pytest.fixture
def found(tmp_path):
    def make(size, path="kept[*]", steps=None, counts=COUNTS, **held):
        """The findings of a run in which each array has ``size`` bytes, and a snapshot is taken each second."""
        directory = store.create(tmp_path / "run", name="run", argv=[])
        log = Log(directory)
        for at, n in enumerate(counts):
            many = 1 if path == "series" else n
            kept = ArrayGroup(
                path, many, (size // 4,), "float32", size * n, size * n, None, True, "(0,)", LINE, **held
            )
            log.say(ev.ArraysSeen(why="time", step=steps and steps[at], count=many, groups=[kept]), after=1.0)
        log.end()
        return [f for f in registry.findings(load(directory)) if f.code == "JX501"]

    return make


def test_without_steps_the_title_has_the_bytes_and_the_time_and_is_no_certainty(found):
    [f] = found(64 * KIB)
    assert (
        words.sentence(f)
        == "it seems that kept grows while the program runs, to 60 arrays (3.8 MiB) after 6.0 s"
    )
    assert (f.severity, f.certainty, f.source) == ("warning", "likely", LINE)
    assert words.evidence(f.evidence[-1]) == "60 arrays, 3.8 MiB after 6.0 s"


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        (16 * KIB, COUNTS),  # 960 KiB
        (4, [1_000_000 * n for n in COUNTS]),  # a list of numbers
    ],
)
def test_without_steps_a_container_of_little_is_no_finding(found, size, counts):
    assert found(size, counts=counts) == []


def test_with_steps_a_list_of_numbers_is_a_note(found):
    [f] = found(4, steps=COUNTS)
    assert f.severity == "note" and words.title(f).endswith(
        "in each step; it has 60 arrays (240 B) after step 60"
    )


def test_without_steps_an_array_that_becomes_longer_is_called_by_its_name(found):
    [f] = found(64 * KIB, path="series")
    assert words.title(f) == "the array series grows while the program runs; it has 3.8 MiB after 6.0 s"
    assert words.fix_text(f).startswith("make series as long as it will be at the end")


@pytest.mark.parametrize(
    ("held", "words_of_holder"),
    [
        ({"holder": Holder("container", "list", count=1200)}, "a list of 1,200"),
        ({"holder": Holder("dict", "dict", "'x'")}, "a dict under 'x'"),
        ({"holder": Holder("dict", "OrderedDict")}, "a OrderedDict"),
        ({"holder": Holder("object", "train.Log")}, "an object of class train.Log"),
        ({"holder": Holder("closure")}, "a variable of a closure"),
        ({"holder": Holder("frame", "train")}, "a local variable of train"),
        ({"holder": Holder("unseen")}, "an object in C++ (such as a cache of JAX) that Python cannot list"),
        ({"held": "a list of 40"}, "a list of 40"),  # the log of an older version
    ],
)
def test_what_keeps_arrays_without_a_variable_is_in_the_title_and_the_fix(found, held, words_of_holder):
    [f] = found(64 * KIB, path=None, steps=COUNTS, **held)
    assert words.title(f).startswith(f"the set of arrays held by {words_of_holder} grows")
    assert words.fix_text(f).startswith(f"{words_of_holder} keeps the results of this line")
    assert contract.Finding.of(f).fix_arguments == {"holder": words_of_holder}


@pytest.mark.parametrize(
    "held",
    [
        {"holder": Holder("trace", "Jaxpr")},
        {"held": "what JAX keeps of a trace: a jit cache (Jaxpr)"},  # the log of an older version
    ],
)
def test_arrays_that_a_jit_cache_keeps_are_to_be_passed_as_arguments(found, held):
    [f] = found(64 * KIB, path=None, steps=COUNTS, **held)
    assert "a jit cache" in words.title(f) and contract.Finding.of(f).fix_kind == "pass_argument"


def test_a_list_with_jit_cache_in_its_class_name_is_no_cache_of_jax(found):
    [f] = found(64 * KIB, path=None, steps=COUNTS, holder=Holder("object", "train.my jit cache"))
    assert contract.Finding.of(f).fix_kind == "release"


@pytest.mark.parametrize(
    ("source", "size", "severities"),
    [
        ("kept = []\nfor x in xs:\n    kept.append(step(x))\n", 4 << 20, ["warning"]),
        ("kept = []\nfor x in xs:\n    kept.append(step(x))\n", 1 << 20, ["note"]),
        ("kept = []\nfor x in xs:\n    kept.append(step(x))\n", 64 << 10, []),
        ("kept = deque(maxlen=20)\nfor x in xs:\n    kept.append(step(x))\n", 4 << 20, []),
    ],
)
def test_one_snapshot_is_enough_if_the_source_shows_it(tmp_path, monkeypatch, source, size, severities):
    run = store.create(tmp_path / "run")
    (tmp_path / "train.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    sources.text.cache_clear()
    log = Log(run)
    step = function("step", str(tmp_path / "train.py"), 9)
    log.say(step)
    log.compiled(step, key(leaf("x", 1)), site=Frame(str(tmp_path / "train.py"), 3, "<module>"))
    kept = ArrayGroup("kept[*]", 20, (size // 4,), "float32", 20 * size, 20 * size, None, True, "(0,)", LINE)
    log.say(ev.ArraysSeen(why="time", count=20, groups=[kept]), after=1.0)
    log.end()
    found = [f for f in registry.findings(load(run)) if f.code == "JX501"]
    assert [f.severity for f in found] == severities
    assert all("the loop at train.py:2 adds arrays to kept" in words.title(f) for f in found)
