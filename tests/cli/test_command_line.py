"""The verbs that read, from the command line."""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import time

import handwritten_runs
import pytest

from jaxscope.log import store
from jaxscope.log.store import RunDir
from jaxscope.schema import events as ev

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def run(home) -> RunDir:
    return handwritten_runs.training(home / "train-1")


def test_the_overview_teaches(jaxscope):
    code, out, err = jaxscope("--help")
    assert code == 0 and err == ""
    for verb in ("run", "report", "dump", "diff", "runs", "doctor"):
        assert f"\n  {verb} " in out and f"$ jaxscope {verb}" in out
    assert max(map(len, out.splitlines())) <= 92
    code, out, err = jaxscope()
    assert code == 2 and out == "" and "jaxscope run train.py" in err


@pytest.mark.parametrize("verb", ["report", "dump", "diff", "rule", "runs", "doctor"])
def test_every_verb_has_help_with_a_description(jaxscope, verb):
    code, out, _ = jaxscope(verb, "--help")
    assert code == 0 and f"usage: jaxscope {verb}" in out and len(out) > 200
    assert jaxscope("help", verb)[1] == out


def test_the_version_is_reported(jaxscope):
    assert jaxscope("--version")[:2] == (0, "jaxscope 0.1.0\n")


@pytest.mark.parametrize(
    ("argv", "hint"),
    [
        (["reprot"], "did you mean: jaxscope report"),
        (["doc"], "did you mean: jaxscope doctor"),
        (["train.py", "--lr", "1"], "to record it: jaxscope run train.py --lr 1"),
        (["-m", "pkg"], "to record it: jaxscope run -m pkg"),
        (["xyzzy"], "the commands are: run, launch, compile, report"),
        (["report", "--al"], "did you mean --all?"),
        (["report", "--format", "xml"], "see: jaxscope report --help"),
        (["dump"], "see: jaxscope dump --help"),
        (["report", "no-such-run"], "jaxscope runs"),
        (["report", "\x1b[31mx"], "jaxscope runs"),
    ],
)
def test_a_mistake_gets_exit_code_2_and_a_hint_on_stderr(jaxscope, run, argv, hint):
    code, out, err = jaxscope(*argv)
    assert (code, out) == (2, "")
    assert err.startswith("jaxscope: ") and hint in err and "Traceback" not in err and "\x1b" not in err


@pytest.mark.parametrize(
    ("argv", "slug"),
    [
        (["report", "--format", "json", "no-such-run"], "run-not-found"),
        (["report", "--format=json", "--brief", "no-such-run"], "run-not-found"),
        (["report", "--format", "json", "--brif"], "usage"),
        (["check", "--output-format", "json", "--no-recompiles-after", "x"], "gate-after"),
        (["show", "latest", "findings/JX999"], "no-such-path"),
        (["show"], "usage"),
        (["try", "--format", "json", "train.py"], "usage"),
    ],
)
def test_an_error_is_one_line_of_json_where_json_is_requested(jaxscope, run, argv, slug):
    code, out, err = jaxscope(*argv)
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert json.loads(err)["error"]["slug"] == slug
    assert json.loads(err).keys() == {"schema", "error"}


def test_what_follows_the_script_is_the_programs_and_requests_no_json(jaxscope):
    code, _, err = jaxscope("try", "--pach", "x", "train.py", "--format", "json")
    assert code == 2 and err.startswith("jaxscope: try: ")


def test_the_brief_report_and_show_are_commands(jaxscope, run):
    code, out, err = jaxscope("report", "--format", "json", "--brief")
    assert (code, err) == (0, "") and out.count("\n") == 1
    words = json.loads(out)["next"][0]["command"].split()[1:]
    code, out, err = jaxscope(*words)
    assert (code, err) == (0, "") and json.loads(out)["value"]["code"] == "JX103"
    assert json.loads(jaxscope("show", "latest", "run/exit_code")[1])["value"] == 0
    assert jaxscope("report", "--brief")[0] == 2
    assert json.loads(jaxscope("report", "--brief", "--schema")[1])["title"] == "jaxscope brief report"


def test_the_skill_names_only_commands_and_options_that_exist(jaxscope):
    code, page, err = jaxscope("skill")
    assert (code, err) == (0, "") and page.startswith("---\nname: jaxscope\n")
    assert len(page) < 6000
    commands = re.findall(r"\bjaxscope ((?!try\b)[a-z]+)((?: (?!#)[^\n`]+)?)", page.partition("\n# ")[2])
    assert {verb for verb, _ in commands} >= {"run", "report", "show", "rule"}
    for verb, words in commands:
        page = jaxscope(verb, "--help")[1]
        assert page.startswith(f"usage: jaxscope {verb}"), verb
        for option in re.findall(r"(?<= )--?[a-z-]+", words.partition(".py")[0]):
            assert option in page, (verb, option)


def test_the_report_goes_to_stdout(jaxscope, run):
    code, out, err = jaxscope("report")
    assert (code, err) == (0, "")
    assert "train_step  train.py:88" in out and "jaxscope report --function train_step" in out
    assert jaxscope("report", "train-1")[1] == out
    assert jaxscope("report", "latest")[1] == out


def test_the_report_as_json_is_the_contract(jaxscope, run, tmp_path):
    code, out, _ = jaxscope("report", "--format", "json")
    assert code == 0 and json.loads(out)["schema"] == 1
    assert jaxscope("report", "--format", "json", "-o", "r.json") == (0, "", "")
    assert (tmp_path / "r.json").read_text() == out
    assert (
        json.loads(jaxscope("report", str(run.path), "--format", "json", "-o", "-")[1])["run"]["name"]
        == "train"
    )


def test_the_report_can_go_to_a_file(jaxscope, run, tmp_path):
    assert jaxscope("report", "-o", "r.txt") == (0, "", "")
    assert "→ pad batch['ids'] to the larger size" in (tmp_path / "r.txt").read_text(encoding="utf-8")
    code, _, err = jaxscope("report", "-o", "no/such/r.txt")
    assert code == 2 and "cannot write" in err


def test_one_function_can_be_requested(jaxscope, run):
    code, out, _ = jaxscope("report", "--function", "train_step")
    assert code == 0 and "compared with #3: batch['ids']" in out
    code, out, err = jaxscope("report", "--function", "trian_step")
    assert (code, out) == (2, "") and "did you mean train_step" in err


def test_a_run_that_does_not_exist_says_how_to_record_one(jaxscope):
    code, _, err = jaxscope("report")
    assert code == 2 and "record one: jaxscope run train.py" in err


def test_dump_writes_files_and_says_which(jaxscope, run, tmp_path):
    code, out, err = jaxscope("dump", "latest", "train_step#1", "-o", "out")
    assert code == 0 and err == ""
    assert out.splitlines() == [f"out/train_step.1.{e}" for e in ("stablehlo.mlir", "hlo.txt", "key.json")]
    code, out, err = jaxscope("dump", "-o", "out2")
    assert code == 0 and len(out.splitlines()) == len(list((tmp_path / "out2").iterdir()))
    assert (
        "no hlo: not captured (15 compilations)" in err
        and "23 compilations of library functions and operations outside jit not written" in err
    )
    assert "jaxscope dump latest train_step -o out" in jaxscope("dump", "train_step", "-o", "out")[2]


def test_the_list_of_runs_says_what_each_was(jaxscope, run, home):
    killed = store.create(home / "killed-1", argv=["other.py", "\x1b[31m"])
    handwritten_runs.exited(killed, None, signal=9, seconds=3)
    code, out, err = jaxscope("runs")
    assert (code, err) == (0, "") and "\x1b" not in out
    head, first, second = out.splitlines()
    assert head.split()[:2] == ["RUN", "WHEN"]
    assert (
        "train-1" in first
        and "2 min 14 s" in first
        and " 40 " in first
        and "exit code 0" in first
        and "train.py --epochs 3" in first
    )
    assert "killed-1" in second and "ended by SIGKILL" in second
    assert jaxscope("runs", "list")[1] == out


def test_no_runs_is_no_error(jaxscope):
    code, out, err = jaxscope("runs")
    assert (code, out) == (0, "") and "record one" in err


def test_a_run_is_removed_by_its_whole_name_only(jaxscope, run):
    code, out, err = jaxscope("runs", "rm", "train-")
    assert code == 2 and run.path.exists() and "train-1" in err
    code, out, _ = jaxscope("runs", "rm", "train-1")
    assert code == 0 and not run.path.exists() and "removed" in out


def test_an_ambiguous_name_removes_nothing(jaxscope, home):
    for n in (1, 2):
        store.create(home / f"t-{n}", name="t")
    assert jaxscope("runs", "rm", "t")[0] == 2
    assert len(store.all_runs()) == 2


def test_old_runs_are_cleared_and_what_still_goes_on_stays(jaxscope, home):
    runs = []
    for n in range(5):
        made = store.create(home / f"r{n}", name=f"r{n}")
        (made.path / "meta.json").write_text(
            json.dumps({"name": f"r{n}", "started": time.time() - (9.5 - n) * 86_400})
        )
        runs.append(made)
    runs[0].heartbeat.touch()
    assert jaxscope("runs", "gc", "--keep", "2", "--dry-run")[1].split() == [
        str(runs[n].path) for n in (1, 2)
    ]
    assert len(store.all_runs()) == 5
    assert jaxscope("runs", "gc", "--older-than", "8")[0] == 0
    assert [r.path.name for r in store.all_runs()] == ["r0", "r2", "r3", "r4"]
    assert "3 kept" in jaxscope("runs", "gc", "--keep", "2")[2]
    code, out, err = jaxscope("runs", "gc")
    assert (code, out) == (0, "") and "0 runs would be removed" in err and len(store.all_runs()) == 3
    assert jaxscope("runs", "gc", "--keep", "-1")[0] == 2


def broken(monkeypatch, error):
    def handle(args: argparse.Namespace) -> int:
        raise error

    from jaxscope.cli import report

    monkeypatch.setattr(report, "handle", handle)


def test_ctrl_c_is_quiet(jaxscope, monkeypatch):
    broken(monkeypatch, KeyboardInterrupt())
    assert jaxscope("report") == (130, "", "")


@pytest.mark.subprocess
def test_a_reader_that_goes_away_is_no_error(run):
    code = "import sys; from jaxscope.cli import main; main(sys.argv[1:])"
    shell = f'"{sys.executable}" -c "{code}" report --format json | head -c 10; echo " ${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True)
    assert done.stderr == "" and done.stdout.split()[-1] in ("0", "1", "141")


@pytest.mark.subprocess
def test_reading_imports_neither_jax_nor_the_writing_wing(run):
    code = (
        "import sys; from jaxscope.cli import command; code = command(['report']); command(['dump', '-o', 'out'])\n"
        "bad = [m for m in sys.modules if m.split('.')[0] in ('jax', 'jaxlib', 'numpy', 'textual', 'networkx')\n"
        "       or m.startswith(('jaxscope.capture', 'jaxscope.launch'))]\n"
        "sys.exit(code or (str(bad) if bad else 0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.subprocess
def test_run_loads_nothing_that_reads_a_run_before_the_program_starts(tmp_path):
    (tmp_path / "program.py").write_text("")
    code = (
        "import sys\n"
        "from jaxscope.launch import runner\n"
        "def started(*_, **__):\n"
        "    print(*(m for m in sys.modules if m.startswith(('jaxscope.model', 'jaxscope.analysis', 'jaxscope.rules'))))\n"
        "    sys.exit(0)\n"
        "runner.run = started\n"
        "from jaxscope.cli import command\n"
        "command(['run', '-o', 'out', 'program.py'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "\n", done.stdout + done.stderr


def test_doctor_says_how_to_keep_jax_from_looking_for_an_accelerator_that_is_not_there(jaxscope, monkeypatch):
    from jaxscope.cli import doctor

    monkeypatch.setattr(
        doctor.importlib.util, "find_spec", lambda name, *_: object() if name == "libtpu" else None
    )
    monkeypatch.setattr(doctor, "DEVICE_FILES", ((), ("no such device",)))
    monkeypatch.setattr(doctor, "_parts_of_jax", list)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert "libtpu is installed, but this machine has no such accelerator" in " ".join(
        jaxscope("doctor")[1].split()
    )
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert "no such accelerator" not in jaxscope("doctor")[1]
    monkeypatch.delenv("JAX_PLATFORMS")
    monkeypatch.setattr(doctor, "DEVICE_FILES", ((), ("null",)))  # a device file that is there
    assert doctor.plugins_without_device({}) == []


def test_doctor_prints_every_seam_with_its_reason(jaxscope, monkeypatch):
    from types import SimpleNamespace

    from jaxscope.cli import doctor

    rows = [
        SimpleNamespace(
            name="miss_event", gives="calls that miss the fast path", available=True, reason=None
        ),
        SimpleNamespace(
            name="call_frame", gives="arguments by name", available=False, reason="renamed\x1b[2J"
        ),
    ]
    versions = {"jax": ("0.12.0.1", ""), "jaxlib": ("0.12.0", "")}
    monkeypatch.setattr(doctor, "_version", versions.get)
    monkeypatch.setattr(doctor, "_parts_of_jax", lambda: rows)
    code, out, _ = jaxscope("doctor")
    assert code == 1
    flowing = " ".join(out.split())
    assert "ok miss_event calls that miss the fast path" in flowing
    assert r"missing call_frame cannot be recorded: arguments by name. Reason: renamed\x1b[2J" in flowing
    monkeypatch.setattr(doctor, "_parts_of_jax", lambda: rows[:1])
    code, out, _ = jaxscope("doctor")
    assert code == 0 and "Everything can be recorded" in out


def test_doctor_survives_a_jax_that_cannot_be_imported(jaxscope, monkeypatch):
    from jaxscope.cli import doctor

    monkeypatch.setattr(doctor, "_version", lambda package: (None, "cannot be imported: ImportError: no"))
    code, out, _ = jaxscope("doctor")
    assert code == 1 and "cannot be imported" in out


@pytest.mark.parametrize(
    ("jax", "said"),
    [("0.10.0", None), ("0.12.0.1", None), ("0.9.1", "older"), ("0.13.0", "newer"), ("x", None)],
)
def test_a_jax_outside_the_tested_ones_is_mentioned(jax, said):
    from jaxscope.jax_internals import untested

    found = untested(jax)
    assert (found is None) if said is None else said in found


def test_doctor_looks_for_a_writable_place_and_leaves_nothing(tmp_path):
    from jaxscope.cli.doctor import unwritable

    assert unwritable(tmp_path / "a" / "b") is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    assert unwritable(tmp_path / "file" / "runs") is not None


def test_progress_shows_on_a_terminal_only_and_cleans_up(monkeypatch):
    from jaxscope.cli import progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "AFTER_S", -1)
    monkeypatch.setattr(progress, "EVERY_S", -1)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.reading("reading x") as tell:
        tell(1 << 19, 1 << 20)
    assert "reading x: 50 % of 1 MiB" in stream.getvalue() and stream.getvalue().endswith(progress.CLEAR)
    monkeypatch.setenv("CI", "true")
    with progress.reading("reading x") as tell:
        assert tell is None


def test_a_rule_is_explained_by_code_or_name_and_a_wrong_one_gets_the_nearest(jaxscope):
    for word in ("JX101", "jx101", "changing-shape"):
        code, page, _ = jaxscope("rule", word)
        assert code == 0 and page.startswith("# JX101 changing-shape (warning)") and "## Use instead" in page
    assert "JX130  carried-state" in jaxscope("rule")[1]
    assert jaxscope("rule", "--all")[1].count("## Why is this bad?") > 20
    code, _, err = jaxscope("rule", "JX011")
    assert code == 2 and "there are JX1xx, JX2xx" in err


def test_clearing_without_a_rule_removes_nothing_and_says_how(jaxscope, home):
    for n in range(22):
        store.create(home / f"r{n:02}", name="r")
    code, out, err = jaxscope("runs", "gc")
    assert code == 0 and len(out.split()) == 2 and len(store.all_runs()) == 22
    assert "2 runs would be removed" in err and "jaxscope runs gc --keep 20" in err
    assert jaxscope("runs", "gc", "--keep", "20")[0] == 0 and len(store.all_runs()) == 20


@pytest.mark.subprocess
def test_a_full_disk_is_a_message(run, home):
    if not os.path.exists("/dev/full"):  # noqa: PTH110
        pytest.skip("no /dev/full on this system")
    for words in (["report"], ["report", "--format", "json"], ["runs"]):
        with open("/dev/full", "w") as full:  # noqa: PTH123
            done = subprocess.run(
                [sys.executable, "-m", "jaxscope", *words], stdout=full, stderr=subprocess.PIPE, text=True
            )
        message = "the output cannot be written: No space left on device"
        assert done.returncode == 2
        if "json" in words:
            error = {"slug": "unwritable", "message": message, "hint": None}
            assert json.loads(done.stderr) == {"schema": 1, "error": error}
        else:
            assert done.stderr == f"jaxscope: {message} [unwritable]\n"


def test_a_message_names_us_once(jaxscope):
    assert jaxscope("dump")[2].startswith("jaxscope: dump: the following arguments are required")


def test_nothing_far_away_is_suggested(jaxscope, run):
    assert "did you mean" not in jaxscope("runs", "rm", "nosuch")[2]
    assert "did you mean train-1" in jaxscope("runs", "rm", "trian-1")[2]


def test_the_list_of_runs_fits_a_narrow_terminal(jaxscope, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    _, out, _ = jaxscope("runs")
    first, *rest = out.splitlines()
    assert first == "train-1" and max(map(len, rest)) <= 60
    said = " ".join(out.split())
    assert "40 compiled" in said and "exit code 0" in said and "train.py --epochs 3" in said


def test_a_run_in_which_nothing_was_recorded_is_not_the_latest(jaxscope, run, home):
    empty = store.create(home / "empty-1")
    handwritten_runs.exited(empty, 0, seconds=1)
    code, out, err = jaxscope("report")
    assert code == 0 and "train_step" in out
    assert err == "empty-1 is newer but recorded nothing (the program did not import jax); showing train-1\n"
    assert jaxscope("report", "train-1")[2] == "" and "train_step" not in jaxscope("report", "empty-1")[1]
    run.remove()
    assert "empty-1" in store.find("latest").path.name


def test_a_function_that_is_being_compiled_says_for_how_long(jaxscope, home):
    made = store.create(home / "slow-1")
    log = handwritten_runs.Log(made)
    step = handwritten_runs.function("slow_step")
    log.say(step)
    call = log.missed(step, handwritten_runs.key(handwritten_runs.leaf("x", 3)))
    log.phase(call, "trace", 0.5)
    log.say(ev.PhaseBegan(call=call, phase=ev.LOWER))
    log.say(ev.Step(index=1), after=90.0)
    out = jaxscope("report", "--function", "slow_step")[1]
    assert "unfinished · lowering for 90.0 s" in out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("--lr 0.1 train.py", "train.py --lr 0.1"),
        ("--lr=0.1 train.py --epochs 3", "train.py --lr=0.1 --epochs 3"),
        ("--name one --lr 0.1 train.py", "--name one train.py --lr 0.1"),
    ],
)
def test_an_option_of_the_program_before_the_script_is_answered_with_the_command_that_was_meant(
    jaxscope, tmp_path, words, meant
):
    (tmp_path / "train.py").write_text("print('started')")
    code, out, err = jaxscope("run", *words.split())
    assert (code, out) == (2, "") and "unrecognized arguments: --lr" in err
    assert f"the program's options come after the script: jaxscope run {meant}\n" in err
    assert not (tmp_path / "home").exists()


def test_a_misspelled_option_of_jaxscope_is_no_option_of_the_program(jaxscope, tmp_path):
    (tmp_path / "train.py").write_text("print('started')")
    code, out, err = jaxscope("run", "--quite", "train.py")
    assert (code, out) == (2, "") and "did you mean --quiet?" in err and "after the script" not in err


@pytest.mark.parametrize(("word", "command"), [("watch", "view"), ("record", "run"), ("repotr", "report")])
def test_another_word_for_a_command_leads_to_the_command(jaxscope, word, command):
    code, _, err = jaxscope(word)
    assert code == 2 and f"did you mean: jaxscope {command}\n" in err
