"""[tool.jaxscope] and JAXSCOPE_*."""

import pytest

from jaxscope.cli import config
from jaxscope.errors import UsageError


@pytest.fixture
def write(tmp_path):
    def make(text: str) -> config.Config:
        (tmp_path / "pyproject.toml").write_text(text)
        (tmp_path / "src").mkdir(exist_ok=True)
        return config.load(tmp_path / "src")

    return make


def test_values_come_from_the_nearest_pyproject(write):
    found = write(
        '[tool.jaxscope]\nwrapper-libraries = ["mylib"]\n[tool.jaxscope.run]\nir = "stats"\nlive = true\n'
    )
    assert found.get("", "wrapper-libraries", environ={}) == ["mylib"]
    assert found.get("run", "ir", environ={}) == "stats"
    assert found.get("run", "live", environ={}) is True
    assert found.get("run", "quiet", environ={}) is None
    assert found.get("run", "quiet", default=False, environ={}) is False


def test_the_command_line_comes_before_the_environment_before_pyproject(write):
    found = write('[tool.jaxscope.run]\nir = "stats"\n')
    environ = {"JAXSCOPE_IR": "hlo", "JAXSCOPE_STEP_FUNCTION": "train"}
    assert found.get("run", "ir", "none", environ=environ) == "none"
    assert found.get("run", "ir", environ=environ) == "hlo"
    assert found.get("run", "ir", default="all", environ={}) == "stats"
    assert found.get("run", "step-function", environ=environ) == "train"
    assert found.get("run", "live", False, environ={"JAXSCOPE_LIVE": "1"}) is False


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "[tool.jaxscope]\nwrapper-librarys = []",
            "no option 'wrapper-librarys'",
            "did you mean wrapper-libraries?",
        ),
        (
            "[tool.jaxscope.run]\nstep-funktion = 'x'",
            r"\[tool.jaxscope.run\] has no option 'step-funktion'",
            "step-function",
        ),
        ("[tool.jaxscope.rum]\nlive = true", "no option 'rum'", "did you mean run?"),
        ("[tool.jaxscope]\nir = 'all'", "no option 'ir'", "ir belongs into [tool.jaxscope.run]"),
        ("[tool.jaxscope.run]\nzzzz = 1", "no option 'zzzz'", "the options are: out, name"),
        ("[tool.jaxscope.run]\nlive = 'yes'", "is not true or false", "live = true"),
        ("[tool.jaxscope.run]\nir = 'hlos'", "ir = 'hlos'", "did you mean 'hlo'? it is one of none, stats"),
        ("[tool.jaxscope]\nwrapper-libraries = [1]", "is not a list of texts", '["mylib"]'),
        ("[tool.jaxscope]\nrun = 3", "is a table of options", None),
        ("[tool]\njaxscope = 3", "not a table", None),
        ("[tool.jaxscope", "cannot be read", None),
    ],
)
def test_a_mistake_is_named_with_its_nearest_neighbor(write, text, message, hint):
    with pytest.raises(UsageError, match=message) as e:
        write(text)
    assert hint is None or hint in e.value.hint


def test_without_a_table_of_ours_the_defaults_hold(write, tmp_path):
    assert write("[project]\nname = 'x'").path is None
    assert write("tool = 3").path is None
    assert write("[tool.ruff]\nx = 1").get("run", "ir", default="all", environ={}) == "all"


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("yes", True), ("OFF", False), ("", False), ("0", False)]
)
def test_truth_in_the_environment(write, text, value):
    assert write("").get("run", "live", environ={"JAXSCOPE_LIVE": text}) is value


def test_nonsense_in_the_environment_is_an_error(write):
    for variable, key, text in (("JAXSCOPE_LIVE", "live", "perhaps"), ("JAXSCOPE_IR", "ir", "everything")):
        with pytest.raises(UsageError, match=variable):
            write("").get("run", key, environ={variable: text})
    assert write("").get("", "wrapper-libraries", environ={"JAXSCOPE_WRAPPER_LIBRARIES": "a, b,"}) == [
        "a",
        "b",
    ]


def test_looking_at_arrays_is_switched_off_by_option_environment_or_file(tmp_path, monkeypatch):
    from jaxscope.cli import options

    parser = options.parser()
    ours, program = options.split(["--no-arrays", "train.py", "--arrays"], parser)
    assert (ours, program) == (["--no-arrays"], ["train.py", "--arrays"])
    assert parser.parse_args(ours).arrays is False and parser.parse_args([]).arrays is None
    found = config.load(tmp_path)
    assert found.get("run", "arrays", environ={"JAXSCOPE_ARRAYS": "no"}) is False
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.run]\narrays = false\n")
    assert config.load(tmp_path).get("run", "arrays", environ={}) is False


def test_counting_transfers_is_switched_off_by_option_environment_or_file(tmp_path):
    from jaxscope.cli import options

    parser = options.parser()
    assert parser.parse_args(["--no-transfers"]).transfers is False
    assert parser.parse_args(["--transfers"]).transfers is True and parser.parse_args([]).transfers is None
    found = config.load(tmp_path)
    assert found.get("run", "transfers", environ={"JAXSCOPE_TRANSFERS": "off"}) is False
    (tmp_path / "pyproject.toml").write_text("[tool.jaxscope.run]\ntransfers = false\n")
    assert config.load(tmp_path).get("run", "transfers", environ={}) is False


def test_keys_of_the_view_are_given_by_id_with_dots_or_in_quotes(write):
    found = write(
        '[tool.jaxscope.keys]\nfind = "ctrl+f,/"\nfunctions.star = "b"\n"export.text" = "f8"\n'
        '[tool.jaxscope.keys.pane]\nzoom = "^z"\n'
    )
    assert found.values["keys"] == {
        "find": "ctrl+f,/",
        "functions.star": "b",
        "export.text": "f8",
        "pane.zoom": "^z",
    }


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('functions.sta = "b"', "did you mean functions.star?"),
        ("find = 3", "is not a text"),
        ('find = "j"', "line.down"),
        ('find = ""', "for example"),
    ],
)
def test_keys_that_cannot_be_are_an_error_that_says_what_can(write, line, said):
    with pytest.raises(UsageError) as e:
        write(f"[tool.jaxscope.keys]\n{line}\n")
    assert "pyproject.toml: [tool.jaxscope.keys]" in e.value.message
    assert said in str(e.value)


def test_reading_keys_loads_no_terminal_library(tmp_path, clean_env):
    import subprocess
    import sys

    (tmp_path / "pyproject.toml").write_text('[tool.jaxscope.keys]\nfind = "f9"\n')
    code = "import sys; from jaxscope.cli import config; config.load(); print([m for m in sys.modules if m.split('.')[0] in ('textual', 'rich')])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=clean_env, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
