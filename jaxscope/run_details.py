"""Define the objects that ``run.function(name)``, ``run.program(name)`` and ``run.array(name)`` return: a
function, program, array or sharding of a recorded run.

``print`` shows an object as in the text report; a notebook shows it below the cell as in the HTML report.
"""

from __future__ import annotations

import difflib
import io
from collections.abc import Iterable, Iterator

from jaxscope.errors import UsageError
from jaxscope.model import arrays as snapshots
from jaxscope.model.arrays import Group
from jaxscope.model.function_lookup import find_compilations, find_functions
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.present.arrays import forms, placement
from jaxscope.present.programs import memory_of
from jaxscope.present.runs import compilation_name
from jaxscope.present.spans import plain
from jaxscope.present.text import Places, function_name, size
from jaxscope.report import compiled_program, function_summary, shards
from jaxscope.report.console import console
from jaxscope.report.html.markup import Html
from jaxscope.report.layout import Line, line, put
from jaxscope.schema.keys import Sharding

WIDTH = 100  # columns of the text
TALL = 560  # pixels of the frame of a function or a program
# Height of the frame of an array, in pixels: LOW, and ROW for each row of devices, at most MOST_ROWS rows.
LOW, ROW, MOST_ROWS = 140, 34, 10


class _Detail:
    """Base class of the objects that show one part of a run as text and as HTML. A notebook shows the HTML in
    a frame with the title ``name`` and the height ``height`` in pixels."""

    name: str
    height: int = TALL

    def _lines(self) -> Iterable[Line]:
        """Return this part of the text report."""
        raise NotImplementedError

    def _body(self) -> Html:
        """Return this part of the HTML report."""
        raise NotImplementedError

    def __repr__(self) -> str:
        buffer = io.StringIO()
        put(console(buffer, width=WIDTH, color=False), self._lines())
        return buffer.getvalue().strip("\n")

    def _repr_html_(self) -> str:
        """Return this part of the HTML report, which a notebook shows below the cell."""
        from jaxscope.report import html

        return html.frame_of(self._body(), self.name, self.height)


class FunctionDetail(_Detail):
    """A function of a run: how often it was called and compiled, its largest program, the time of its calls,
    and its recompiles. A notebook also shows cache keys and shardings. ``record`` has its names, seconds and
    compilations."""

    def __init__(self, run: Run, record: Function) -> None:
        self._run, self.record = run, record
        self.name = function_name(record)

    def _lines(self) -> Iterable[Line]:
        return function_summary.entry(self._run, self.record, Places(self._run))

    def _body(self) -> Html:
        from jaxscope.report.html import functions

        return functions.entry(self._run, self.record, Places(self._run), open_=True, everything=False)


class ProgramDetail(_Detail):
    """The compiled program of one compilation: memory, source lines with costs, collectives. ``record`` has
    its module, texts and memory. ``compilation`` is the compilation that the user named; other compilations
    may have the same program."""

    def __init__(self, run: Run, record: Program, compilation: Compilation) -> None:
        self._run, self.record, self.compilation = run, record, compilation
        self.name = compilation_name(run, compilation)

    def _lines(self) -> Iterator[Line]:
        memory = memory_of(self.compilation)
        yield line((self.name, "bold"))
        yield from compiled_program.section(self._run.texts_of(self.record), memory, Places(self._run))

    def _body(self) -> Html:
        from jaxscope.report.html import programs

        places = Places(self._run)
        return programs.entry(
            self._run, self.record.id, [self.compilation], places, open_=True, everything=False
        )


class ShardingDetail(_Detail):
    """The sharding of an array: which slice of the array each device holds. ``record`` has the mesh, the
    PartitionSpec and the devices."""

    def __init__(self, group: Group, record: Sharding) -> None:
        self._group, self.record = group, record
        self._shape = [d for d in group.shape or () if isinstance(d, int)]
        self.name = record.text
        grid = shards.grid_of(record, self._shape)
        self.height = LOW + ROW * min(MOST_ROWS, len(grid.rows) if grid is not None else 0)

    def _lines(self) -> Iterator[Line]:
        yield line(*placement(self._group))
        yield from shards.drawing(self.record, self._shape)

    def _body(self) -> Html:
        from jaxscope.report.html import arrays, markup

        return arrays.mesh(self._group, self.record, self._shape) or markup.lines(self._lines())


class ArrayDetail(_Detail):
    """A live array, or several with the same variable, shape, dtype and sharding, in the snapshot of live
    arrays that the report shows. ``record`` has their path, shape, dtype and bytes."""

    def __init__(self, run: Run, record: Group) -> None:
        self._run, self.record = run, record
        self.name = record.path or ""
        self.height = LOW if self.sharding is None else self.sharding.height + ROW

    @property
    def sharding(self) -> ShardingDetail | None:
        """Return the sharding of the array; None if it was not recorded."""
        sharding = self.record.sharding
        return None if sharding is None else ShardingDetail(self.record, sharding)

    def _lines(self) -> Iterator[Line]:
        yield line((self.name, "bold"), f"  {forms(self.record)}")
        yield line((plain(placement(self.record)), "dim"), indent=2)
        yield from self._more()

    def _more(self) -> Iterator[Line]:
        """Yield a line with the bytes on all devices and the line that created the array, if known."""
        g = self.record
        bytes = None if g.all_bytes is None else f"{size(g.all_bytes)} on all devices"
        made = Places(self._run).frame(g.origin)
        facts = [fact for fact in (bytes, made and f"created at {made}") if fact]
        if facts:
            yield line((", ".join(facts), "dim"), indent=2)

    def _body(self) -> Html:
        from jaxscope.report.html import arrays, markup

        sharding = self.sharding
        drawn = arrays.mesh(self.record, sharding.record, sharding._shape) if sharding is not None else None
        if drawn is None:
            return markup.lines(self._lines())
        return markup.joined([drawn, markup.lines(self._more())])


def function(run: Run, name: str) -> FunctionDetail:
    """Return the function called ``name``, as ``Opened.function`` does.

    Raises:
      UsageError: no function matches; the hint lists similar names.
    """
    return FunctionDetail(run, find_functions(run, name)[0])


def program(run: Run, name: str) -> ProgramDetail:
    """Return the compiled program called ``name`` (``train_step``, ``train_step#2``), as ``Opened.program``
    does.

    Raises:
      UsageError: there is no such function or number, or this compilation has no recorded program.
    """
    functions, number = find_compilations(run, name)
    for f in functions:
        for n, c in reversed(run.numbered(f)):
            if c.program in run.programs and number in (None, n):
                return ProgramDetail(run, run.programs[c.program or ""], c)
    raise UsageError(f"{name} compiled no program that was recorded", slug="no-such-program")


def array(run: Run, name: str) -> ArrayDetail:
    """Return the live array that the variable ``name`` refers to, such as ``state['w']``, as ``Opened.array``
    does.

    Raises:
      UsageError: no array has this name; the hint lists similar names, or some names.
    """
    snapshot = snapshots.fullest(snapshots.of_main(run))
    groups = [] if snapshot is None else [g for g in snapshot.groups if g.path is not None]
    for g in groups:
        if g.path == name.strip():
            return ArrayDetail(run, g)
    paths = [g.path or "" for g in groups]
    near = difflib.get_close_matches(name, paths, 3, 0.4)
    hint = f"arrays: {', '.join(paths[:6])}" if paths else None
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    raise UsageError(f"no live array is named {name!r}", hint=hint, slug="array-not-found")
