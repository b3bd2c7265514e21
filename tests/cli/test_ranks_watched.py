"""What runs beside the program of a rank: it compares the ranks, and ends the program where they differ."""

import shutil
import subprocess
import sys
import threading

import pytest
from handwritten_runs import Log, exited

from jaxscope.cli import live
from jaxscope.log import ranks


@pytest.fixture
def places(tmp_path):
    """The places of three ranks, of which the last was killed."""
    found = [ranks.join(tmp_path / "j", "j", n, 3, name="train") for n in range(3)]
    for n, place in enumerate(found):
        Log(place, pid=1000 + n, how="run").writer.process_index = n
    exited(found[2], None, pid=1002, seconds=1.0, signal=9)
    return found


def watched(place, rank, capsys, *, most_ranks=None):
    """Watch until the end of a program that has ended. Return what is printed."""
    ended = threading.Event()
    ended.set()
    live.compare_ranks(place, rank, None, holds=True, most_ranks=most_ranks)(ended, 0)
    return capsys.readouterr().err


def test_rank_0_prints_and_the_others_do_not(places, capsys):
    assert "JX853 rank 2 ended first, by signal 9" in watched(places[0], 0, capsys)
    assert watched(places[1], 1, capsys) == ""


@pytest.mark.subprocess
@pytest.mark.parametrize(("rank", "imported"), [(0, True), (1, False)])
def test_only_rank_0_imports_what_compares_and_nothing_imports_the_readers_of_texts(places, rank, imported):
    code = (
        "import sys, threading; from jaxscope.cli import live; from jaxscope.log.store import RunDir\n"
        "ended = threading.Event(); ended.set()\n"
        f"live.compare_ranks(RunDir({str(places[rank].path)!r}), {rank}, None, holds=False, most_ranks=None)(ended, 0)\n"
        "print('jaxscope.report.live_ranks' in sys.modules, 'jaxscope.analysis.programs' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{imported} False\n"


def test_a_job_of_more_ranks_is_compared_on_request_only(places, capsys):
    assert watched(places[0], 0, capsys, most_ranks=2) == ""
    assert watched(places[0], 0, capsys, most_ranks=3) != ""


@pytest.mark.parametrize(("most", "compared"), [(2, False), (3, True)])
def test_ranks_that_come_after_rank_0_has_started_count_too(tmp_path, capsys, most, compared):
    first = ranks.join(tmp_path / "j", "j", 0, 3, name="train")
    Log(first, pid=1000, how="run").writer.process_index = 0

    class Ended(threading.Event):
        def wait(self, timeout=None):
            for n in (1, 2):
                place = ranks.join(tmp_path / "j", "j", n, 3, name="train")
                Log(place, pid=1000 + n, how="run").writer.process_index = n
            exited(place, None, pid=1002, seconds=1.0, signal=9)
            return True

    live.compare_ranks(first, 0, None, holds=False, most_ranks=most)(Ended(), 0)
    assert ("JX853 rank 2" in capsys.readouterr().err) is compared


def test_a_directory_that_has_vanished_ends_the_watch_without_a_word(places, capsys):
    shutil.rmtree(places[0].path.parent.parent)
    assert watched(places[0], 0, capsys) == ""


@pytest.mark.subprocess
def test_the_program_of_each_rank_is_ended_once_the_job_is_known_to_differ(places, monkeypatch):
    monkeypatch.setattr(live, "END_S", 0.2)
    ignores = "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", ignores], stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        ended = threading.Event()
        watch = threading.Thread(target=live.stop_on_divergence(places[1]), args=(ended, program.pid))
        watch.start()
        assert program.poll() is None
        ranks.write_diverged(ranks.whole_of(places[0]), "rank 2 differs")
        watch.join(20)
        assert program.wait(20) == -9
