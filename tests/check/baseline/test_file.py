"""The file of a baseline: sorted, the same everywhere, and whatever stands in it, no more than an error."""

import json
import os

import msgspec
import pytest
from handwritten_runs import CWD, function, key, leaf
from hypothesis import given
from hypothesis import strategies as st

from jaxscope.check.baseline import file, schema
from jaxscope.check.baseline.extract import extract
from jaxscope.model import metrics
from jaxscope.model.load import load
from jaxscope.model.records import Function
from jaxscope.model.stable_names import Names, clean, pattern, root
from jaxscope.schema import events as ev

FIGURES = st.integers(0, 1 << 50)
COUNTS = st.dictionaries(st.text(max_size=20), FIGURES, max_size=4)
MAYBE = st.none() | COUNTS
COLLECTIVES = st.builds(
    metrics.Collectives,
    count=FIGURES,
    executions=st.none() | FIGURES,
    bytes=st.none() | FIGURES,
    within=COUNTS,
)
PROGRAMS = st.builds(
    metrics.SavedMetrics,
    arguments=COUNTS,
    collectives=st.none() | st.dictionaries(st.text(max_size=9), COLLECTIVES, max_size=2),
    fusions=MAYBE,
    memory=MAYBE,
    donation=st.none() | st.dictionaries(st.text(max_size=9), COUNTS, max_size=2),
    constants=MAYBE,
    upcasts=MAYBE,
    products=MAYBE,
    callbacks=MAYBE,
    loops=MAYBE,
    flops=MAYBE,
)
FUNCTIONS = st.builds(
    schema.Function,
    traces=FIGURES,
    lowerings=FIGURES,
    compilations=FIGURES,
    causes=COUNTS,
    programs=st.lists(PROGRAMS, max_size=2),
)
BASELINES = st.builds(
    schema.Baseline,
    jaxscope_baseline=st.just(schema.SCHEMA),
    jax=st.none() | st.text(max_size=6),
    platform=st.none() | st.text(max_size=6),
    devices=COUNTS,
    tolerance=st.dictionaries(st.sampled_from(list(metrics.TOLERANCE)), st.floats(0, 10)),
    functions=st.dictionaries(st.text(max_size=20), FUNCTIONS, max_size=2),
    eager=st.dictionaries(st.text(max_size=9), COUNTS, max_size=2),
    findings=COUNTS,
    steps=st.none() | FIGURES,
    transfers=st.none() | st.dictionaries(st.text(max_size=9), COUNTS, max_size=2),
)
GOOD = schema.Baseline(jax="0.12", platform="cpu", functions={"a.py::f": schema.Function(traces=1)})


@given(BASELINES)
def test_what_is_written_is_read_again(baseline):
    text = file.dumps(baseline)
    assert file.loads(text.encode("ascii")) == baseline
    assert text.endswith("}\n") and not text.endswith("\n\n")


@given(BASELINES)
def test_the_order_in_which_things_were_found_does_not_show(baseline):
    data = msgspec.to_builtins(baseline)

    def turned(value):
        if isinstance(value, dict):
            return {k: turned(v) for k, v in reversed(value.items())}
        return [turned(v) for v in value] if isinstance(value, list) else value

    again = msgspec.convert(turned(data), schema.Baseline)
    assert file.dumps(again) == file.dumps(baseline)


@given(st.binary(max_size=300) | st.text(max_size=300).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_no_bytes_are_more_than_an_error_that_says_what_to_do(data):
    with pytest.raises(file.BaselineError) as caught:
        file.loads(data)
    assert caught.value.hint


@given(BASELINES, st.data())
def test_a_damaged_file_is_an_error_or_still_a_baseline(baseline, data):
    text = bytearray(file.dumps(baseline).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(file.loads(bytes(text)), schema.Baseline)
    except file.BaselineError as e:
        assert e.hint and e.slug


def test_one_fact_stands_on_one_line():
    assert file.dumps(GOOD).splitlines() == [
        "{",
        ' "functions": {',
        '  "a.py::f": {',
        '   "traces": 1',
        "  }",
        " },",
        ' "jax": "0.12",',
        ' "jaxscope_baseline": 1,',
        ' "platform": "cpu"',
        "}",
    ]


@pytest.mark.parametrize(
    ("change", "slug", "said"),
    [
        (lambda d: d.update(jaxscope_baseline=2), "baseline-version", "version 2 of the format"),
        (lambda d: d.update(jaxscope_baseline=0), "baseline-version", "version 0 of the format"),
        (lambda d: d.update(jaxscope_baseline="1"), "baseline-damaged", "jaxscope_baseline"),
        (lambda d: d.pop("jaxscope_baseline"), "baseline-foreign", "not a baseline"),
        (lambda d: d.update(surprise=1), "baseline-damaged", "surprise"),
        (lambda d: d["functions"]["a.py::f"].update(traces=-1), "baseline-damaged", "traces is -1"),
        (lambda d: d["functions"]["a.py::f"].update(traces=1 << 80), "baseline-damaged", "traces"),
        (lambda d: d["functions"]["a.py::f"].update(traces=1.5), "baseline-damaged", "traces"),
        (lambda d: d["functions"]["a.py::f"].update(traces=True), "baseline-damaged", "traces"),
        (lambda d: d.update(tolerance={"memroy": 0.1}), "baseline-tolerance", "memroy"),
        (lambda d: d.update(tolerance={"memory": -0.1}), "baseline-tolerance", "-0.1"),
        (lambda d: d.update(tolerance={"memory": 1e9}), "baseline-tolerance", "1000000000"),
        (lambda d: d.update(functions=[]), "baseline-damaged", "functions"),
    ],
)
def test_what_cannot_be_is_refused_by_name(change, slug, said):
    data = json.loads(file.dumps(GOOD))
    change(data)
    with pytest.raises(file.BaselineError) as caught:
        file.loads(json.dumps(data).encode())
    assert caught.value.slug == slug
    assert said in caught.value.message
    assert (
        "--update-baseline" in caught.value.hint
        or "known" in caught.value.hint
        or "share" in caught.value.hint
    )


def test_a_merge_that_was_not_finished_is_called_that():
    text = file.dumps(GOOD).replace(' "platform"', '<<<<<<< HEAD\n "platform"')
    with pytest.raises(file.BaselineError, match="merge"):
        file.loads(text.encode())


def test_lists_in_lists_without_end_are_an_error():
    with pytest.raises(file.BaselineError):
        file.loads(b'{"jaxscope_baseline":1,"functions":' + b"[" * 200_000)


def test_a_file_that_is_none_or_too_large_is_not_read(tmp_path, monkeypatch):
    for path in (tmp_path / "absent.json", tmp_path, tmp_path / "a\0b"):
        with pytest.raises(file.BaselineError):
            file.read(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(file.BaselineError, match="is not a file"):
        file.read(tmp_path / "pipe")
    monkeypatch.setattr(file, "MAX_BYTES", 100)
    (tmp_path / "large.json").write_text(file.dumps(GOOD))
    with pytest.raises(file.BaselineError, match="larger than"):
        file.read(tmp_path / "large.json")


@pytest.mark.parametrize(
    ("value", "refused"), [("true", True), ("1", True), ("false", False), ("", False), (None, False)]
)
def test_in_ci_nothing_is_written(tmp_path, value, refused):
    environ = {} if value is None else {"CI": value}
    path = tmp_path / "sub" / file.NAME
    if refused:
        with pytest.raises(file.BaselineError, match="not updated in CI"):
            file.write(path, GOOD, environ)
        assert not path.exists()
    else:
        file.write(path, GOOD, environ)
        assert file.read(path) == GOOD
        assert [p.name for p in path.parent.iterdir()] == [file.NAME]


def test_a_directory_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(file.BaselineError, match="cannot write"):
        file.write(tmp_path / "taken" / file.NAME, GOOD, {})


# -- names that are the same elsewhere -----------------------------------------------------------------------


def names(*seen, roots=(CWD,)):
    return list(Names([Function(s.function, s) for s in seen], roots).by_id.values())


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"{CWD}/train.py", "train.py::f"),
        (f"{CWD}/pkg/model.py", "pkg/model.py::f"),
        ("/venv/lib/python3.12/site-packages/mylib/layers.py", "mylib/layers.py::f"),
        ("/somewhere/else/model.py", "model.py::f"),
        ("C:\\work\\model.py", "model.py::f"),
        ("../up/model.py", "model.py::f"),
        ("<string>", "<string>::f"),
        (None, "?::f"),
    ],
)
def test_a_function_is_named_without_the_place_of_the_checkout(path, name):
    assert names(function("f", path)) == [name]


@pytest.mark.parametrize(
    ("cwd", "path"),
    [
        (CWD, "train.py"),
        (f"{CWD}/sub", "../train.py"),
        ("/tmp", f"{CWD}/train.py"),
        ("/tmp", f"/tmp/..{CWD}/train.py"),
    ],
)
def test_a_name_does_not_depend_on_the_directory_that_the_program_was_started_in(cwd, path):
    seen = function("f", path)
    assert list(Names([Function(seen.function, seen)], (CWD,), cwd).by_id.values()) == ["train.py::f"]


def test_functions_of_one_name_are_numbered_by_their_lines():
    a, b = function("f.<locals>.<lambda>", line=30), function("f.<locals>.<lambda>", line=4)
    by_id = Names([Function(s.function, s) for s in (a, b)], (CWD,)).by_id
    assert by_id == {b.function: "train.py::f.<lambda>", a.function: "train.py::f.<lambda> #2"}


def test_what_wraps_a_function_is_part_of_its_name():
    assert names(function("f", wrappers=["flax.nnx.jit"])) == ["train.py::f (flax.nnx.jit)"]


def test_what_a_function_captures_is_part_of_its_name_where_another_has_the_same():
    alone = function("make.<locals>.update", function="1", captures=["loss=l1"])
    other = function("make.<locals>.update", function="2", captures=["loss=l2"])
    assert names(alone) == ["train.py::make.update"]
    by_id = Names([Function(s.function, s) for s in (other, alone)], (CWD,)).by_id
    assert by_id == {"1": "train.py::make.update [loss=l1]", "2": "train.py::make.update [loss=l2]"}


def test_functions_that_capture_others_of_one_name_are_numbered_by_the_places_of_these():
    seen = [
        function(
            "make.<locals>.update",
            function=f"{n} | captures {digest}",
            captures=["loss=<lambda>"],
            captured_code=f"<lambda>@{CWD}/train.py:{place}()",
        )
        for n, digest, place in ((1, "bb", "100:4"), (1, "cc", "9:30"), (1, "aa", "9:4"))
    ]
    by_id = Names([Function(s.function, s) for s in seen], (CWD,)).by_id
    assert [by_id[s.function][-4:] for s in seen] == ["] #3", "] #2", "da>]"]


FACTORY = """
import sys
import jax, jax.numpy as jnp

def make(loss):
    @jax.jit
    def step(w, x):
        return w - 0.1 * jax.grad(loss)(w, x)
    return step

steps = [
    make(lambda w, x: jnp.sum((x @ w) ** 2)), make(lambda w, x: jnp.sum(jnp.abs(x @ w))),
    make(lambda w, x: jnp.sum(jnp.cosh(x @ w))),
    make(lambda w, x: jnp.sum(jnp.tanh(x @ w))),
    make(lambda w, x: jnp.sum(jnp.sin(x @ w))),
]
for n in map(int, sys.argv[1:]):
    steps[n](jnp.ones(n + 1), jnp.ones((2, n + 1)))
"""


@pytest.mark.capture
def test_the_numbers_of_functions_do_not_depend_on_the_order_of_calls_or_on_lines_above(record):
    def named(run):
        functions = extract(run, []).baseline.functions
        return {name: next(iter(f.programs[0].arguments)) for name, f in functions.items()}

    before = named(load(record(FACTORY, *"01234").run))
    step = f"{next(iter(before)).partition('::')[0]}::make.step [loss=<lambda>]"
    assert before == {f"{step} #{n}" if n > 1 else step: f"w: f32[{n}]" for n in range(1, 6)}
    after = named(load(record(f"# one line more\n{FACTORY}", *"42301").run))
    assert [*after.values()] == ["w: f32[5]", "w: f32[3]", "w: f32[4]", "w: f32[1]", "w: f32[2]"]
    assert {name.partition("::")[2]: w for name, w in after.items()} == {
        name.partition("::")[2]: w for name, w in before.items()
    }


def test_addresses_numbers_and_control_characters_do_not_get_in():
    assert clean("<object at 0x7f12ab34cd>\x1b[31m\n") == "<object at 0x>\\u001b[31m\\u000a"
    assert pattern("state.params['layer12'][3]") == "state.params['layer*'][*]"
    assert root("state.params['a']") == "state" and root("[0].x") == "[0].x"
    assert len(clean("x" * 1000)) == 300


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_name_gives_a_line_of_text(name, path):
    for text in names(ev.FunctionSeen(function="id", name=name, qualname=name, file=path)):
        assert text.isprintable()
    assert clean(name).isprintable() and pattern(path).isprintable() and root(path).isprintable()


def test_nothing_of_the_machine_or_the_moment_is_in_the_file(making):
    k = key(leaf("x", 8), function_object=7)
    read = making.read((k, "aa", "HloModule jit_step\n", None))
    text = file.dumps(read.baseline)
    for hidden in (CWD, "/home", "main-run", "0x", "2026", "seconds", "aa11", "1000"):
        assert hidden not in text
