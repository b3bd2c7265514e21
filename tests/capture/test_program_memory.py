"""The memory of a program is read beside the program, written once, and nothing is left when the recording ends."""

import _thread
import gc
import threading
import types
import weakref

import pytest

from jaxscope.capture import program_memory
from jaxscope.capture.program_memory import MemoryReading, Readings

SIZES = dict.fromkeys(("argument", "output", "alias", "temp", "generated_code"), 8)


class Executable:
    """Has figures when ``go`` is set; ``readers`` are the threads that asked for them."""

    def __init__(self) -> None:
        self.go, self.readers = threading.Event(), []

    def get_compiled_memory_stats(self):
        self.readers.append(threading.get_ident())
        assert self.go.wait(10)
        return types.SimpleNamespace(**{f"{k}_size_in_bytes": v for k, v in SIZES.items()})


@pytest.fixture
def written():
    return []


@pytest.fixture
def readings(written):
    return Readings(lambda call, memory: written.append((call, memory.temp_bytes)))


def test_figures_that_are_not_ready_are_written_when_xla_has_them(readings, written):
    executable = Executable()
    reading = MemoryReading(executable, 5.0)
    readings.follow(3, reading)
    assert not reading.ended and written == []
    executable.go.set()
    readings.wait()
    assert written == [(3, 8)] and executable.readers != [threading.get_ident()]


def test_figures_that_are_ready_before_anybody_follows_are_written_once(readings, written):
    executable = Executable()
    executable.go.set()
    reading = MemoryReading(executable, 5.0)
    reading.wait()
    assert reading.read and reading.memory.output_bytes == 8
    readings.follow(4, reading)
    readings.wait()
    assert written == [(4, 8)]


def test_a_small_program_is_read_at_once(readings):
    executable = Executable()
    executable.go.set()
    assert MemoryReading(executable, 0.01).memory.temp_bytes == 8
    assert executable.readers == [threading.get_ident()]


def test_where_no_thread_can_be_started_the_caller_reads(monkeypatch):
    def refuse(*_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(program_memory.shield, "start_thread", refuse)
    executable = Executable()
    executable.go.set()
    reading = MemoryReading(executable, 5.0)
    assert reading.ended and reading.memory.temp_bytes == 8


def test_a_failure_of_xla_ends_the_reading_without_figures(readings, written):
    reading = MemoryReading(object(), 5.0)  # it has no such method
    readings.follow(1, reading)
    readings.wait()
    assert reading.ended and reading.memory is None and written == []


def test_no_executable_outlives_its_reading(readings):
    executable = Executable()
    gone = weakref.ref(executable)
    readings.follow(1, MemoryReading(executable, 5.0))
    executable.go.set()
    readings.wait()
    del executable
    for _ in range(1000):  # the thread itself may end a moment later
        gc.collect()
        if gone() is None:
            return
        threading.Event().wait(0.01)
    pytest.fail("the executable is still referred to")


def test_at_most_two_executables_are_read_while_the_program_goes_on(readings, written):
    slow = [Executable(), Executable(), Executable()]
    for i, executable in enumerate(slow[:2]):
        readings.follow(i, MemoryReading(executable, 5.0))
    third = MemoryReading(slow[2], 5.0)
    followed = threading.Event()

    def follow() -> None:
        readings.follow(2, third)
        followed.set()

    _thread.start_new_thread(follow, ())
    assert not followed.wait(0.05)
    slow[2].go.set()
    assert followed.wait(10) and written == [(2, 8)]
    for executable in slow[:2]:
        executable.go.set()
    readings.wait()
    assert sorted(written) == [(0, 8), (1, 8), (2, 8)]
