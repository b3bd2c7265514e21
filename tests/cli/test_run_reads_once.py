"""What ``jaxscope run`` says and checks at a program's end comes from one reading of its log."""

from collections import Counter

import msgspec
import pytest
from handwritten_runs import Log, function, key, leaf

from jaxscope.cli import run as command
from jaxscope.launch.program_events import Ended
from jaxscope.log import reader, store
from jaxscope.model import load
from jaxscope.rules import registry

ENDED = Ended(pid=1, exit_code=0, signal=None, seconds=1.0)


@pytest.fixture
def directory(home, tmp_path):
    run = store.create(tmp_path / "run", argv=["train.py"])
    log = Log(run)
    step = function("step")
    log.say(step)
    for n in range(40):
        log.compiled(step, key(leaf("x", n + 1)))
    log.end()
    return run


@pytest.fixture
def decoded(monkeypatch):
    """How often each line of a log was decoded."""
    found = Counter()

    class Counting:
        def decode_lines(self, text):
            found.update(text.splitlines())
            return decoder.decode_lines(text)

        def decode(self, line):
            found[line] += 1
            return decoder.decode(line)

    decoder = reader._decoder
    monkeypatch.setattr(reader, "_decoder", Counting())
    return found


def test_a_log_is_decoded_once_and_each_rule_asked_once_for_the_summary_and_the_check(
    directory, decoded, monkeypatch, capsys
):
    asked = Counter()

    def counting(rule):
        def check(run):
            asked[rule.code] += 1
            return rule.check(run)

        return msgspec.structs.replace(rule, check=check)

    rules = {code: counting(rule) for code, rule in registry.rules().items()}
    monkeypatch.setattr(registry, "rules", lambda: rules)
    read = command._read(directory)
    command._report(directory, ENDED, read)
    assert command._checked(directory, ENDED, {}, read) == command.CHECK_FAILED
    said = capsys.readouterr().err
    assert "40 compilations" in said and "JX101" in said
    lines = sum(path.read_bytes().count(b"\n") for path in directory.logs())
    assert decoded.total() == lines and set(decoded.values()) == {1}
    assert asked and set(asked.values()) == {1}


def test_a_run_in_which_nothing_was_recorded_is_not_folded(home, tmp_path, monkeypatch, capsys):
    run = store.create(tmp_path / "run", argv=["train.py"])
    monkeypatch.setattr(load, "load", lambda *_: pytest.fail("read"))
    command._report(run, ENDED, command._read(run))
    assert "nothing was recorded" in capsys.readouterr().err
