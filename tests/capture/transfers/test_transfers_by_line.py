"""The line of a copy, the time of its event, and few events for many copies: without JAX."""

from __future__ import annotations

import linecache
import os
import sys
import threading

import pytest

from jaxscope.capture.transfers.by_line import MAX_ROWS, Transfers
from jaxscope.schema.transfers import TO_DEVICE, TO_HOST


class Recording:
    """A recording whose step is set by hand."""

    def __init__(self):
        self.events = []
        self.step = None
        self.marked = False
        self.transfers = Transfers(self.events.append, lambda: self.step, lambda: self.marked)

    @property
    def latest(self):
        """By (direction, via, line): the last word."""
        return {(e.direction, e.via, e.site and e.site.line): e for e in self.events}


@pytest.fixture
def recording():
    return Recording()


def test_events_follow_the_count_by_quarters_and_the_last_is_reported_at_the_end(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    for _ in range(100_000):
        recording.transfers.add(row, 1, 4, 1000)
    assert len(recording.events) < 60 and recording.events[-1].count > 79_000
    recording.transfers.flush()
    recording.transfers.flush()
    assert len(recording.events) < 60 and recording.events[-1].count == 100_000
    assert (recording.events[-1].bytes, recording.events[-1].seconds) == (400_000, 0.1)


def test_a_copy_during_another_counts_once_and_one_of_another_thread_not_at_all(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    add = recording.transfers.add
    add(row, 1, 4, 100, began=1000)
    add(row, 1, 4, 300, began=2100)  # these two are parts of the next
    add(row, 0, 0, 200, began=2500)
    add(row, 1, 4, 1000, began=2000)
    thread = threading.Thread(target=add, args=(row, 1, 4, 5000), kwargs={"began": 4000})
    thread.start()
    thread.join()
    recording.transfers.flush()
    assert recording.events[-1].seconds == pytest.approx(6600e-9)
    assert recording.events[-1].step_seconds == pytest.approx(1100e-9)


def test_two_expressions_of_a_line_are_one_row_without_a_text(recording):
    def place():
        return sys._getframe()

    rows = [recording.transfers.row(place(), TO_HOST, "float") for _ in range(3)]
    assert len({id(r) for r in rows}) == 1 and rows[0].text == "return sys._getframe()"
    here = sys._getframe
    a, b = recording.transfers.row(here(), TO_HOST, "x"), recording.transfers.row(here(0), TO_HOST, "x")
    assert a is b and a.text is None and a.site.line == sys._getframe().f_lineno - 1


def test_a_value_that_is_stored_into_an_item_is_named_with_the_item(recording):
    class Items:
        def __setitem__(self, index, value):
            self.row = recording.transfers.row(sys._getframe(1), TO_HOST, "other")

    items = Items()
    items[0] = 1.5  # kept
    assert items.row.text == "items[0] = 1.5"


def calling(file, module, inner):
    """A function of that file and module that calls ``inner``."""
    space = {"__name__": module, "inner": inner}
    exec(compile("import sys\ndef call(): return inner()", file, "exec"), space)
    return space["call"]


INSTALLED = "/usr/lib/python3/site-packages/somelib/x.py"


def test_lines_of_libraries_are_passed_over_for_the_programs_own(recording):
    def ask():
        return recording.transfers.row(sys._getframe(1), TO_HOST, "float")

    row = calling(INSTALLED, "somelib.x", calling("/lib/optax/x.py", "optax.x", ask))()
    assert row.site.file == __file__ and row.site.function.startswith("test_lines_of_libraries")


def test_with_only_installed_code_on_the_stack_it_is_the_innermost_of_it(recording):
    found = []

    def ask(_):
        row = recording.transfers.row(frame_without_callers(), TO_HOST, "float")
        found.append(row.site.file)

    def frame_without_callers():
        made = []
        space = {"__name__": "somelib.x", "made": made}
        exec(compile("import sys\ndef call(): made.append(sys._getframe())", INSTALLED, "exec"), space)
        thread = threading.Thread(target=space["call"])
        thread.start()
        thread.join()
        return made[0]

    ask(None)
    assert found == [INSTALLED]


def test_a_thread_of_pythons_own_is_nobodys_line(recording):
    found = []
    space = {"__name__": "queue_feeder", "made": found}
    code = "import sys\ndef call(): made.append(sys._getframe())"
    exec(compile(code, str(os.path.dirname(os.__file__)) + "/queue_feeder.py", "exec"), space)  # noqa: PTH120
    thread = threading.Thread(target=space["call"])
    thread.start()
    thread.join()
    assert recording.transfers.row(found[0], TO_HOST, "pickle").site is None


def test_the_line_that_calls_a_helper_is_known_while_it_is_one_line(recording):
    def ask():
        return recording.transfers.row(sys._getframe(1), TO_HOST, "float")

    helper = calling("/home/u/log.py", "log", ask)
    rows = [calling("/home/u/run.py", "run", helper)() for _ in range(2)]
    assert rows[0].site.file == "/home/u/log.py" and rows[0].callers[0].file == "/home/u/run.py"
    calling("/home/u/other.py", "other", helper)()
    assert rows[0].callers == []


def test_the_lines_that_lead_to_a_helper_are_known_as_far_as_they_are_the_same(recording):
    def ask():
        return recording.transfers.row(sys._getframe(1), TO_HOST, "float")

    def files(row):
        return [at.file.rpartition("/")[2] for at in row.callers]

    scalar = calling("/home/u/scalar.py", "scalar", ask)
    log = calling("/home/u/log.py", "log", scalar)
    row = calling("/home/u/main.py", "main", calling("/home/u/run.py", "run", log))()
    assert row.site.file == "/home/u/scalar.py" and files(row) == ["log.py", "run.py", "main.py"]
    assert calling("/home/u/other.py", "other", log)() is row and files(row) == ["log.py"]


def test_steps_are_counted_once_each_and_early_copies_belong_to_the_first_marked_step(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    recording.transfers.add(row, 1, 4, 0)
    recording.transfers.add(row, 1, 4, 0)
    recording.marked = True
    for step in (2, 2, 3, 5):
        recording.step = step
        recording.transfers.add(row, 1, 4, 0)
    recording.transfers.flush()
    e = recording.events[-1]
    assert (e.count, e.steps, e.first_step, e.last_step) == (6, 4, 1, 5)


def test_before_the_first_call_of_the_step_function_no_step_has_begun(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    recording.step = 0
    recording.transfers.add(row, 1, 4, 0)
    recording.transfers.flush()
    assert [(e.count, e.steps, e.first_step) for e in recording.events] == [(1, 0, None)]


def test_steps_that_began_to_be_counted_afterwards_are_reported_in_the_end(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    recording.transfers.add(row, 1, 4, 0)
    recording.step, recording.marked = 2, True
    recording.transfers.flush()
    assert [e.steps for e in recording.events] == [None, 1]


def test_what_is_not_known_of_one_is_not_known_of_all(recording):
    row = recording.transfers.row(sys._getframe(), TO_DEVICE, "device_put")
    recording.transfers.add(row, 1, 4, None)
    recording.transfers.add(row, 1, None, 100)
    assert (recording.events[-1].bytes, recording.events[-1].seconds) == (None, None)


def test_a_program_of_very_many_lines_is_reported_without_lines_in_the_end(recording):
    source = "import sys\n" + "\n".join("take(sys._getframe())" for _ in range(MAX_ROWS + 50))

    def take(frame):
        recording.transfers.add(recording.transfers.row(frame, TO_HOST, "float"), 1, 4, 0)

    exec(compile(source, "/somewhere/many.py", "exec"), {"take": take, "__name__": "many"})
    recording.transfers.flush()
    latest = recording.latest
    assert latest[TO_HOST, "float", None].count == 50 and len(latest) == MAX_ROWS + 1


def test_a_source_that_is_a_pipe_or_missing_is_not_opened(recording, tmp_path):
    pipe = tmp_path / "train.py"
    os.mkfifo(pipe)
    for file in (str(pipe), str(tmp_path / "gone.py"), "<stdin>"):
        space = {"__name__": "__main__"}
        exec(compile("import sys\ndef frame(): return sys._getframe()", file, "exec"), space)
        row = recording.transfers.row(space["frame"](), TO_HOST, "float")
        assert (row.site.file, row.site.line, row.text) == (file, 2, None)
    cell = "<ipython-input-3>"
    linecache.cache[cell] = (20, None, ["import sys\n", "def frame(): return sys._getframe()\n"], cell)
    space = {"__name__": "__main__"}
    exec(compile("import sys\ndef frame(): return sys._getframe()", cell, "exec"), space)
    assert recording.transfers.row(space["frame"](), TO_HOST, "float").text == "return sys._getframe()"


def test_counts_of_many_threads_add_up(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")

    def work():
        for _ in range(5000):
            recording.transfers.add(row, 1, 4, 10)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    recording.transfers.flush()
    assert (recording.events[-1].count, recording.events[-1].bytes) == (20_000, 80_000)


def test_a_forked_child_begins_at_nothing(recording):
    row = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    recording.transfers.add(row, 1, 4, 10)
    recording.transfers.forked()
    recording.transfers.flush()
    assert len(recording.events) == 1
    again = recording.transfers.row(sys._getframe(), TO_HOST, "float")
    recording.transfers.add(again, 1, 4, 10)
    assert [e.count for e in recording.events] == [1, 1]


def test_no_frame_and_so_no_array_is_kept_alive(recording):
    import weakref

    class Held:
        pass

    def copying():
        held = Held()
        ref = weakref.ref(held)
        recording.transfers.add(recording.transfers.row(sys._getframe(), TO_HOST, "float"), 1, 4, 0)
        return ref

    assert copying()() is None
