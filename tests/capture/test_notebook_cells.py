"""The names of a notebook's cells in events and texts."""

import linecache
import sys
from types import SimpleNamespace

import pytest

from jaxscope.capture.notebook_cells import CellNames, display, notebook, shell, text
from jaxscope.capture.redaction import Redaction
from jaxscope.schema import events as ev
from jaxscope.schema.keys import Frame

FIRST, SECOND = "/tmp/ipykernel_7/2459163477.py", "/tmp/ipykernel_7/1.py"


class Shell:
    """Knows two cells, as IPython's shell does."""

    class compile:
        @staticmethod
        def format_code_name(name):
            return {FIRST: ("Cell", "In[3]"), "<ipython-input-4-0a1b>": ("Cell", "In[4]")}.get(name)


def test_lines_of_cells_and_ids_of_their_functions_have_the_numbers_of_the_cells():
    cells = CellNames(Shell)
    event = ev.Missed(function=f"step@{FIRST}:2", site=Frame("<ipython-input-4-0a1b>", 5, "f"))
    written = cells.event(event)
    assert written["function"] == "step@In[3]:2" and written["site"]["file"] == "In[4]"
    assert cells.text(f'loc("{FIRST}":2:4)') == 'loc("In[3]":2:4)'


def test_a_cell_that_is_unknown_keeps_its_name():
    assert CellNames(Shell).text(SECOND) == SECOND and CellNames(object()).text(FIRST) == FIRST


def test_a_program_without_a_notebook_has_no_shell():
    assert shell() is None


@pytest.mark.parametrize("running, name", [(True, "notebook"), (False, None)])
def test_marimo_runs_a_notebook_only_where_it_says_so(monkeypatch, running, name):
    shown = []
    marimo = SimpleNamespace(running_in_notebook=lambda: running, output=SimpleNamespace(append=shown.append))
    monkeypatch.setitem(sys.modules, "marimo", marimo)
    assert notebook() == name
    if running:
        display("a report")
        assert shown == ["a report"]


def test_the_text_of_a_cell_is_recorded_and_left_out_by_redaction():
    linecache.cache[SECOND] = (9, None, ["a = 1\n", "b = 2\n"], SECOND)
    try:
        assert text(SECOND) == "a = 1\nb = 2\n" and text("/no/such.py") is None
    finally:
        del linecache.cache[SECOND]
    assert Redaction([]).event(ev.SourceSeen(file="In[3]", sha256="0", text="secret = 1"))["text"] is None
