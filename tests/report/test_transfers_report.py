"""Transfers on the page: only what is worth saying, and nothing of a program's reaches the terminal raw."""

from __future__ import annotations

import io

import pytest
from handwritten_runs import Log, copied, function, key, leaf

from jaxscope.log import store
from jaxscope.model.load import load
from jaxscope.report.text import print_report

S = 1_000_000_000


def page(log, **more):
    out = io.StringIO()
    print_report(load(log.run), file=out, **more)
    return out.getvalue()


@pytest.fixture
def log(tmp_path):
    made = Log(store.create(tmp_path / "run"), transfers=True)
    made.backend()
    return made


def test_the_lines_at_which_the_program_waits_are_shown_with_count_bytes_and_seconds(log):
    log.say(copied(views=200))
    log.say(copied(line=40, text=None, via="device_get", seconds=0.2, views=0, steps=None))
    text = " ".join(page(log).split())
    assert "Transfers reading values on the host waited 1.5 s for the devices" in text
    assert "float(loss) to the host, 200x in 200 steps, 800 B, no copy" in text
    assert "device_get to the host, 200 arrays, 800 B train.py:40" in text
    unseen = "np.asarray(x) cannot be recorded on CPU: it copies nothing, and JAX does not report it"
    assert unseen not in text and unseen in " ".join(page(log, everything=True).split())


def test_an_array_that_device_put_shards_anew_goes_through_the_host(log):
    text = "device_put(x, s)"
    log.say(copied(text=text, via="device_put", count=1, bytes=32 << 20, seconds=6.0, steps=None))
    assert "through the host, for another sharding, 1x, 32.0 MiB" in " ".join(page(log).split())


def test_a_program_that_hardly_waits_reads_one_line_of_how_much_there_was(log):
    assert "Transfers" not in page(log)
    log.say(copied(seconds=0.0004, views=200), after=20)
    assert "Transfers  200 arrays read on the host, without a copy (shared memory). No" in page(log)
    log.say(copied(line=32, seconds=0.0004, count=50, views=0), after=20)
    step = function("step")
    log.say(step)
    call = log.missed(step, key(leaf("x", 4, type="numpy.ndarray", sharding=None, committed=None)))
    log.phase(call, "compile", 1.0, devices="0")
    text = " ".join(page(log).split())
    assert "Transfers 250 transfers to the host, 200 of them without a copy (shared memory); arguments of 1 function or operation copied to devices in each call. No transfer is large or slow (--all lists all transfers)" in text  # fmt: skip
    section = text.partition(" Transfers ")[2]
    assert (
        section and "float(loss)" not in section and "float(loss)  to the host" in page(log, everything=True)
    )


def test_large_numpy_arguments_are_shown_with_their_names(log):
    step = function("step")
    log.say(step)
    big = leaf("images", 8192, 4096, type="numpy.ndarray", sharding=None, committed=None)
    call = log.missed(step, key(big))
    log.phase(call, "compile", 1.0, devices="0")
    assert "images of step  to devices, 128.0 MiB in each call  train.py:140" in page(log)


def test_what_a_program_is_called_reaches_the_terminal_escaped(log):
    log.say(copied(text="\x1b[31mfloat(x)[bold]\x07", direction="up\x1b[0m", via="\x1b]0;x\x07"))
    text = page(log)
    assert "\x1b" not in text and "\x07" not in text and "[bold]" in text
