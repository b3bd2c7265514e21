"""Find functions that a few places of the program call, each with a value of its own: one line always passes
the training set, another line the test set. To compile such a function once for each place is unavoidable."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Hashable, Sequence

from jaxscope.analysis import loop_calls
from jaxscope.analysis.loop_calls import maps_over_leaves
from jaxscope.analysis.paths import below, root
from jaxscope.analysis.syntax import COMPREHENSIONS
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.keys import Key

PLACES = 4  # the most lines that call a function, each with a value of its own


def one_for_each_place(f: Function, value_of: Callable[[Key], Hashable], *, callers: bool = True) -> bool:
    """Return whether 2 to PLACES places of the program call ``f``, and each place passes one value in all its
    recorded calls: one line the training set, another line the test set. Two places may pass the same value.

    A place is a call in the source, in one process. The levels of a recursion are several places, but PLACES
    counts them once. False if the key or the line of a call is unknown.

    Args:
      value_of: takes the cache key of a call, and returns the value to compare.
      callers: whether one call in the source is several places if functions on different lines lead to it.
    """
    values, places = dict[Hashable, Hashable](), set[Hashable]()
    for c in f.compilations:
        if c.continues_a_trace or c.entry == "nested":
            continue  # traced for another call: inside a function that is jitted, too, or under a transform
        if c.key is None or c.missed is None or c.site is None:
            return False
        lines = [at.place for at in (c.lines if callers else (c.site,))]
        value = value_of(c.key)
        places.add((c.process.id, c.missed.column, frozenset(lines)))
        if values.setdefault((c.process.id, c.missed.column, *lines), value) != value or len(places) > PLACES:
            return False
    return len(values) > 1


def object_for_each_place(f: Function) -> bool:
    """Return whether a few lines call ``f``, and each line always calls the same function object, as with
    update functions that a factory made for two optimizers. For a bound method, one line that is reached from
    two callers counts as two lines. False if JAX compiled one program for two function objects, or if a
    function object is unknown."""
    if any(c.key is None or c.key.function_object is None for c in f.compilations):
        return False
    compiled = {(c.key.function_object, c.program) for c in f.compilations if c.key is not None and c.program}
    # Two objects with one program compute the same.
    if len(compiled) > len({program for _, program in compiled}):
        return False
    return one_for_each_place(f, lambda key: key.function_object, callers=f.seen.form == "method")


def for_each_leaf(run: Run, c: Compilation) -> bool:
    """Return whether the program makes the call ``c`` for each leaf of a pytree: by ``jax.tree.map``
    (directly, through a lambda or through a function of the program), or in a loop over the layers of a model
    (``for_each_layer``)."""
    if c.site is None or c.missed is None:
        return False
    text = sources.of(run)
    if maps_over_leaves(text(c.site.file), c.site.line, c.missed.column):
        return True
    above = c.missed.stack[0] if c.missed.stack else None
    name = c.site.function.rpartition(".")[2]
    if above is not None and maps_over_leaves(text(above.file), above.line, None, name):
        return True
    return for_each_layer(run, c)


def for_each_layer(run: Run, c: Compilation) -> bool:
    """Return whether the call ``c`` is in a loop or comprehension over the layers of a model: ``[read(w) for
    w in weights]``. The loop must go through leaves by name (``goes_through_leaves``), or the shapes of one
    argument, in all calls at this place, must look like those of layers (``_of_layers``), and another
    function must have been called with arrays of all these shapes in one argument."""
    if c.site is None or c.missed is None or c.key is None:
        return False
    source, column = sources.of(run)(c.site.file), c.missed.column
    called = loop_calls.find(source, c.site.line, column, c.function.seen.name)
    if called is None or not isinstance(called.loop, (ast.For, *COMPREHENSIONS)):
        return False
    if loop_calls.goes_through_leaves(source, c.site.line):
        return True
    over = called.loop.generators if not isinstance(called.loop, ast.For) else [called.loop]
    targets = loop_calls.names_set([generator.target for generator in over])
    here = [
        {leaf.path: leaf.shape for leaf in other.key.arguments if leaf.shape is not None}
        for other in c.function.compilations
        if other.key is not None and other.missed is not None
        if other.site == c.site and other.missed.column == column
    ]
    for path in here[0] if here else ():
        passed = loop_calls.argument(called.call, c.function.seen.signature, root(path))
        if passed is None or not targets & loop_calls.names_read([passed]):
            continue
        shapes = list(dict.fromkeys(shapes[path] for shapes in here if path in shapes))
        if _of_layers(shapes) and _passed_together(run, c.function, shapes):
            return True
    return False


def _of_layers(shapes: Sequence[tuple[int | str, ...]]) -> bool:
    """Return whether ``shapes``, all different, may be those of the layers of a model: their ranks differ, or
    the last axis of each is as long as the first axis of the next (at least three shapes). False if the first
    axes of all shapes are equally long, or their last axes, or if one shape is that of a scalar."""
    if any(len({shape[axis] for shape in shapes if shape}) < 2 for axis in (0, -1)) or not all(shapes):
        return False  # a batch of images and their labels, or a scalar beside an array
    if len({len(shape) for shape in shapes}) > 1:
        return True
    return len(shapes) > 2 and all(len(a) > 1 and a[-1] == b[0] for a, b in itertools.pairwise(shapes))


def _passed_together(run: Run, f: Function, shapes: Sequence[tuple[int | str, ...]]) -> bool:
    """Return whether a function other than ``f`` was called with arrays of all these ``shapes`` in one
    argument, such as the parameters of a model."""
    for c in run.compilations.values():
        if c.function is f or c.key is None:
            continue
        together: dict[str, set[tuple[int | str, ...]]] = {}
        for leaf in c.key.arguments:
            if leaf.shape is not None:
                together.setdefault(root(leaf.path), set()).add(leaf.shape)
        if any(found.issuperset(shapes) for found in together.values()):
            return True
    return False


def static_for_each_place(f: Function, path: str | None) -> bool:
    """Return whether a few places call ``f``, and each place passes the same static values, at or below the
    argument path ``path``, in all its recorded calls. If ``path`` is None, only the number of places decides.
    See ``one_for_each_place``."""

    def value_at(key: Key) -> Hashable:
        found = (s for s in key.static if path is not None and (s.path == path or below(s.path, {path})))
        return tuple((s.path, s.type, s.repr, s.serial, s.hash) for s in found)

    return one_for_each_place(f, value_at)
