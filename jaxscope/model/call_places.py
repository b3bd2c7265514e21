"""Find functions that a few places of the program call, each with a value of its own: one line always passes
the training set, another line the test set. To compile such a function once for each place is unavoidable."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from jaxscope.analysis.loop_calls import maps_over_leaves
from jaxscope.analysis.paths import below
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function
from jaxscope.model.run import Run
from jaxscope.schema.keys import Key

PLACES = 4  # the most lines that call a function, each with a value of its own


def one_for_each_place(f: Function, value_of: Callable[[Key], Hashable], *, callers: bool = True) -> bool:
    """Return whether each place in the program (a line with its callers) that calls ``f`` passes always the
    same value, and there are few such places. For example, one line passes a training set and another line a
    test set. Recompiles for such values are not avoidable.

    Args:
      value_of: returns the value to compare from the cache key of a call.
      callers: whether the same line with other callers is another place.
    """
    values: dict[Hashable, Hashable] = {}
    for c in f.compilations:
        if c.goes_on or c.entry == "nested":
            continue  # traced for another call: inside a function that is jitted, too, or under a transform
        if c.key is None or c.missed is None or c.site is None:
            return False
        lines = [(at.file, at.line) for at in (c.site, *(c.missed.stack if callers else ()))]
        value = value_of(c.key)
        if values.setdefault((c.process.id, c.missed.column, *lines), value) != value or len(values) > PLACES:
            return False
    return len(values) > 1


def object_for_each_place(f: Function) -> bool:
    """Return whether only a few lines call ``f``, each line always calls the same function object, and the
    objects compute different things. Example: a factory made an update function for each of two optimizers,
    and each function is called at a line of its own. If True, no line creates the function again in each
    call.

    For a bound method, the lines that led to the call count, too. For example, two lines fit two trainers,
    and both trainers call their own method at the same line of ``fit``. False if two objects were compiled to
    one program, because they then compute the same.
    """
    if any(c.key is None or c.key.function_object is None for c in f.compilations):
        return False
    compiled = {(c.key.function_object, c.program) for c in f.compilations if c.key is not None and c.program}
    if len(compiled) > len({program for _, program in compiled}):
        return False
    return one_for_each_place(f, lambda key: key.function_object, callers=f.seen.form == "method")


def for_each_leaf(run: Run, c: Compilation) -> bool:
    """Return whether ``jax.tree.map`` made the call ``c``, directly, through a lambda or through a function
    of the program. Then there is a call for each leaf of a pytree, and the leaves may differ in shape."""
    if c.site is None or c.missed is None:
        return False
    text = sources.of(run)
    if maps_over_leaves(text(c.site.file), c.site.line, c.missed.column):
        return True
    above = c.missed.stack[0] if c.missed.stack else None
    name = c.site.function.rpartition(".")[2]
    return above is not None and maps_over_leaves(text(above.file), above.line, None, name)


def static_for_each_place(f: Function, path: str | None) -> bool:
    """Return whether only a few places call ``f``, and each place always passes the same static value at the
    argument path ``path``: for example, two models, each with its own optimizer. If ``path`` is None, no
    value is compared, so that only the number of places decides."""

    def value_at(key: Key) -> Hashable:
        found = (s for s in key.static if path is not None and (s.path == path or below(s.path, {path})))
        return tuple((s.path, s.type, s.repr, s.serial, s.hash) for s in found)

    return one_for_each_place(f, value_at)
