"""Files under readable names, below one directory and nowhere else."""

import json

import handwritten_runs
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.errors import JaxscopeError
from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report.dump import dump
from jaxscope.schema import events as ev


def files(path):
    return sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file())


def test_texts_and_keys_are_written_under_names_one_can_read(tmp_path):
    directory = handwritten_runs.training(tmp_path / "run")
    run = load(directory)
    f = run.functions[function("train_step").function]
    made = list(dump(run, directory, [f], tmp_path / "out"))
    assert files(tmp_path / "out")[:3] == [
        "train_step.1.hlo.txt",
        "train_step.1.key.json",
        "train_step.1.stablehlo.mlir",
    ]
    assert (tmp_path / "out" / "train_step.1.hlo.txt").read_text() == "HloModule jit_train_step\n"
    record = json.loads((tmp_path / "out" / "train_step.4.key.json").read_text())
    assert record["compilation"]["causes"][0]["path"] == "batch['ids']"
    assert record["function"]["name"] == "train_step"
    assert [m.number for m in made] == [1, 2, 3, 4] and not made[0].absent
    assert made[3].absent == ["stablehlo: not captured", "hlo: not captured"]


def test_one_compilation_can_be_requested(tmp_path):
    directory = handwritten_runs.training(tmp_path / "run")
    run = load(directory)
    list(dump(run, directory, [run.functions[function("train_step").function]], tmp_path / "out", 2))
    assert {name.split(".")[1] for name in files(tmp_path / "out")} == {"2"}


@pytest.fixture
def reasons(tmp_path):
    def ask(ir="all", reach=("trace", "lower", "compile"), spoil=False, **more):
        directory = store.create(tmp_path / "run")
        log, f = Log(directory, ir=ir), function("f", **more)
        log.say(f)
        call = log.missed(f, None)
        for phase in reach:
            log.phase(call, phase, 0.1, **({} if phase == "trace" else {"program": "p"}))
        if spoil:
            log.say(ev.ProgramText(program="p", stage="hlo", blob="0" * 64))
            log.say(ev.PhaseBegan(call=call, phase="compile"))
        run = load(directory)
        [made] = dump(run, directory, list(run.functions.values()), tmp_path / "out")
        return made.absent

    return ask


def test_why_a_text_is_not_there_is_reported(reasons):
    assert reasons(ir="stablehlo") == [
        "stablehlo: not captured",
        "hlo: not kept: recorded with --ir stablehlo",
    ]


def test_a_call_that_was_never_compiled_has_no_compiled_text(reasons):
    assert reasons(reach=("trace", "lower"))[1] == "hlo: this call was not compiled"


def test_library_functions_keep_no_texts(reasons):
    assert reasons(library=True)[0].startswith("stablehlo: not kept: texts are kept for functions of yours")


def test_a_text_that_is_damaged_is_reported_and_the_rest_written(reasons, tmp_path):
    absent = reasons(reach=("trace", "lower"), spoil=True)
    assert "cannot be read" in absent[1]
    assert files(tmp_path / "out") == ["f.1.key.json"]


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/passwd", "..", "", ".", "a/b\\c", "\x1b[2J", "con\n", "x" * 500, "-rf"]
)
def test_no_function_name_leads_out_of_the_directory(tmp_path, name):
    directory = store.create(tmp_path / "run")
    log, f = Log(directory), function(name)
    log.say(f)
    log.compiled(f, key(leaf("x", 1)))
    run = load(directory)
    before = set(files(tmp_path))
    list(dump(run, directory, list(run.functions.values()), tmp_path / "deep" / "out"))
    made = set(files(tmp_path)) - before
    assert len(made) == 1
    [path] = made
    assert path.startswith("deep/out/") and path.count("/") == 2 and not path.startswith("deep/out/.")


def test_two_functions_of_one_name_do_not_overwrite_each_other(tmp_path):
    directory = store.create(tmp_path / "run")
    log = Log(directory)
    for f in (
        function("a.<locals>.f", line=1),
        function("a.f", line=2),
        function("A.f", line=2),
        function("A.f", line=None),
    ):
        log.say(f)
        log.compiled(f, key(leaf("x", 1)))
    run = load(directory)
    list(dump(run, directory, sorted(run.functions.values(), key=lambda f: f.id), tmp_path / "out"))
    found = files(tmp_path / "out")
    assert len(found) == len({f.casefold() for f in found}) == 4


def test_a_link_under_the_files_name_is_replaced_and_not_followed(tmp_path):
    directory = handwritten_runs.training(tmp_path / "run")
    run = load(directory)
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "train_step.1.hlo.txt").symlink_to(precious)
    list(dump(run, directory, [run.functions[function("train_step").function]], tmp_path / "out", 1))
    assert precious.read_text() == "mine"
    assert not (tmp_path / "out" / "train_step.1.hlo.txt").is_symlink()


def test_a_directory_that_cannot_be_made_is_an_error_with_a_hint(tmp_path):
    directory = handwritten_runs.training(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(JaxscopeError, match="cannot write to") as e:
        list(dump(load(directory), directory, [], tmp_path / "file" / "out"))
    assert "-o" in e.value.hint


def test_names_in_any_script_stay_names(tmp_path):
    from jaxscope.log.store import clean_name

    assert clean_name("schätze_größe") == "schätze_größe" and clean_name("学习步骤") == "学习步骤"
    assert clean_name("../../etc/passwd") == "etc-passwd" and clean_name("…") == "run"
    assert len(clean_name("学" * 200).encode()) <= 120
