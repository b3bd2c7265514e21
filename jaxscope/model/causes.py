"""Find why calls missed JAX's caches, by comparing a call's cache key with an earlier key of the function.

The earlier key is the one that differs least. JAX's caches belong to a process, so only keys of the same
process are compared. A ``Compilation`` is a call that missed JAX's C++ fast path (the cache that runs a call
without Python code), even if it compiled nothing.
"""

from __future__ import annotations

from jaxscope.analysis import causes
from jaxscope.analysis.grouping import grouped
from jaxscope.analysis.keys import Facts
from jaxscope.analysis.levels import FAST_PATH, TRACE, nearest
from jaxscope.analysis.source_lines import creates_for_each_call
from jaxscope.model import call_places, key_index, sources
from jaxscope.model.records import Comparison, Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.schema.causes import FUNCTION, OLDER_CACHES, ArrayType, Cause, NewFunction, StaticDetail
from jaxscope.schema.findings import CERTAIN
from jaxscope.schema.keys import Frame, Key

# The key of a call is compared with so many of the latest earlier keys: the cost must not be quadratic.
LOOK_BACK = 256
LOOK_FURTHER = 32  # number of still earlier keys with the same shapes, or the same static values, to compare
# Calls of these two kinds share caches; traces under a transform or inside another trace do not.
_DIRECT = frozenset({"call", "aot"})
# Kinds of cause: an equal function, or an equal static object, was created again.
CREATED_AGAIN = frozenset({"new_function", "static_identity"})
# Kinds of cause that are a difference in what was passed, and never the consequence of a new object.
OF_INPUTS = frozenset(
    {*causes.SHAPES, "dtype", "prng", "tree", "tree_static", "static_value", "sharding", "mesh"}
)


def compared(run: Run, c: Compilation) -> Comparison | None:
    """Compare the cache key of call ``c`` with the most similar earlier key of the same function
    (``_nearest``). Return the comparison, with the causes of the cache miss; without an earlier key, the only
    cause is ``first``. If ``c`` compiles what an earlier call traced under a transform (``jax.grad``), the
    causes may be those of the earlier call. None if the key of ``c`` was not recorded."""
    level = c.level
    known = run.comparisons.get(c.id)
    if known is not None and known.level == level:
        return known
    if c.key is None:
        return None
    facts = key_index.facts_of(run, c)
    at = _nearest(run, c, c.key, facts, level)
    if at is None:
        found = Comparison(level, facts, None, None, [causes.first(level)])
    else:
        index = key_index.of(run, c)
        before, was = index.compilations[at], index.facts[at]
        around = _circumstances(run, c, before, level)
        found = Comparison(level, facts, before, was, causes.between(was, facts, around))
        retraced = _trace_since(c, before)
        if retraced is not None and (why := of(run, retraced))[0].kind not in ("first", "transform"):
            found = Comparison(level, facts, before, was, why)
    run.comparisons[c.id] = found
    return found


def compared_with(run: Run, c: Compilation) -> Compilation | None:
    """Return the earlier call with which ``c`` is compared; None if there is none, or if the key of ``c`` was
    not recorded."""
    comparison = compared(run, c)
    return comparison.nearest if comparison is not None else None


def of(run: Run, c: Compilation) -> list[Cause]:
    """Return why call ``c`` was not found in one of JAX's caches: a list of causes with the decisive one
    first. The list is never empty."""
    comparison = compared(run, c)
    if comparison is not None:
        return comparison.causes
    if not any(o.process is c.process and o.call < c.call for o in c.function.compilations):
        return [causes.first(c.level)]
    return [causes.unread_key(c.level)]


def number_if_not_previous(run: Run, c: Compilation) -> int | None:
    """Return the number of the earlier call with which ``c`` is compared (3 for ``f#3``), if another call by
    the user between the two traced, lowered or compiled the function. Otherwise return None, also if there is
    no earlier call or it has no number."""
    before = compared_with(run, c)
    if before is None:
        return None
    of_calls = traced_by(c.function, run)
    between = any(
        before.call < o.call < c.call
        and o.process is c.process
        and o.reached_phases
        and o.entry != "nested"
        and o.id not in of_calls
        for o in c.function.compilations
    )
    return run.number(before) if between else None


def created_again(run: Run, c: Compilation) -> bool:
    """Return whether ``c`` was compiled only because its function or a static argument was created again.
    False if an input (such as a shape) has certainly changed, or if the results have other paths, shapes or
    dtypes than before."""
    return reason(run, c).kind in CREATED_AGAIN and not _has_other_results(run, c)


def reason(run: Run, c: Compilation) -> Cause:
    """Return the decisive cause of the cache miss of call ``c``. But if the decisive cause is that a function
    or static object was created again, and an input (such as a shape, dtype or static value) has certainly
    changed, too, return the cause for this input."""
    decisive, *others = of(run, c)
    if decisive.kind not in CREATED_AGAIN:
        return decisive
    inputs = (o for o in others if o.kind in OF_INPUTS and o.certainty == CERTAIN)
    return next(inputs, decisive)


def changed_input(run: Run, c: Compilation) -> Cause | None:
    """Return the cause for an input (shape, dtype, sharding, ...) that has certainly changed, if the function
    object of ``c`` was created for this call alone; otherwise None. None also if the arrays that changed
    their shapes have no changed axis in common."""
    decisive, found = of(run, c)[0], reason(run, c)
    # Without a common axis, they are probably the parameters of models of several sizes.
    if decisive.kind != "new_function" or found.kind not in OF_INPUTS or not _along_one_axis(of(run, c)):
        return None
    return found if _created_for_this_call(run, c, decisive) else None


def _created_for_this_call(run: Run, c: Compilation, new: Cause) -> bool:
    """Return whether the function object of ``c`` was certainly created for this call alone, such as a lambda
    in the body of the loop that calls it. ``new`` is the cause of ``c``, of kind ``new_function``."""
    line = new.detail.line if isinstance(new.detail, NewFunction) else None
    return line is not None and any(
        at.file == line.file and creates_for_each_call(sources.of(run)(at.file), line.line, at.line)
        for at in c.lines
    )


def _along_one_axis(miss_causes: list[Cause]) -> bool:
    """Return whether the arrays whose shapes changed have a changed axis in common; True if no changed shape
    is known. ``miss_causes`` are the causes why one call missed a cache."""
    shapes = [
        (cause.before.shape, cause.after.shape)
        for cause in miss_causes
        if cause.kind == "shape"
        and isinstance(cause.before, ArrayType)
        and isinstance(cause.after, ArrayType)
    ]
    axes = [
        {n for n, (a, b) in enumerate(zip(before, after, strict=False)) if a != b}
        for before, after in shapes
        if before is not None and after is not None
    ]
    return not axes or bool(set.intersection(*axes))


def _has_other_results(run: Run, c: Compilation) -> bool:
    """Return whether the results of ``c`` have other paths, shapes or dtypes than those of the earlier call
    with which ``c`` is compared; False if one of the two calls has no recorded results."""
    made, was = (_results(o) if o is not None else None for o in (c, compared_with(run, c)))
    return made is not None and was is not None and made != was


def _results(c: Compilation) -> list[tuple[object, ...]] | None:
    """Return (path, shape, dtype) of each result in the trace of ``c``; None if ``c`` has no recorded
    results."""
    out = c.traced.out if c.traced is not None else None
    return [(leaf.path, leaf.shape, leaf.dtype) for leaf in out] if out else None


def compiled_another_function(run: Run, c: Compilation) -> bool:
    """Return whether the new function object (or static object) for which ``c`` compiled is another function
    than before, as when a factory makes several functions from one definition. Then ``c`` does not count as a
    recompile.

    The sign is that each place of the program always uses the same object, or, for a function object, that
    the results have other paths, shapes or dtypes although no input has certainly changed. A static object
    counts only if it is a function, or if several static values changed."""
    cause = of(run, c)[0]
    if cause.kind == "new_function":
        other_results = reason(run, c) is cause and _has_other_results(run, c)
        return other_results or call_places.object_for_each_place(c.function)
    if cause.kind != "static_identity":
        return False
    of_functions = isinstance(cause.detail, StaticDetail) and cause.detail.why == FUNCTION
    return (of_functions or cause.count > 1) and call_places.static_for_each_place(c.function, cause.path)


def recompiled(run: Run, c: Compilation) -> bool:
    """Return whether JAX traced, lowered or compiled the function of ``c`` again for the call ``c``, or tried
    to. The exceptions of ``recompilations`` also apply, but a failed trace counts, and so does a call after
    ``.eval_shape()``; a call of ``.lower()`` or ``.compile()`` never counts. Only earlier calls are
    compared."""
    # A live report calls this for each new call, when later calls are not known yet.
    if c.only_missed or c.entry in ("aot", "nested"):
        return False
    caches, key, earlier, done = _served_by(c), _transform_key(c, _latest_trace(c)), False, 0
    trace: Compilation | None = None
    for other in c.function.compilations:
        if other is c:
            break
        before, trace = trace, _newer_trace(c, other, trace)
        if not other.reached_phases or other.entry == "nested" or _served_by(other) != caches:
            continue
        if key is not None and _transform_key(other, before) == key:
            return False
        earlier = True
        done |= other.reached_phases
        if key is None and not _runs_only_missing_phases(c, done):
            break
    return earlier and not _runs_only_missing_phases(c, done) and not compiled_another_function(run, c)


def _runs_only_missing_phases(c: Compilation, done: int) -> bool:
    """Return whether ``c`` ran at least one phase, and only phases that no earlier compilation of the
    function has run. ``done`` are the phases of the earlier compilations, as bits: 1 traced, 2 lowered, 4
    compiled."""
    return c.reached_phases != 0 and c.reached_phases & done == 0


@cached_until_changed
def recompilations(function: Function, run: Run) -> list[Compilation]:
    """Return the calls of ``function`` that traced, lowered or compiled it again, in order of time.

    Left out are:
    - the first compilation of another function with the same definition (``compiled_another_function``);
    - ``.lower()`` and ``.compile()``, which may compile several programs on purpose, unless a program was
      compiled again only because the function or a static argument was created again (``created_again``);
    - a call after ``.lower()`` or ``.compile()`` that runs only the phases still missing;
    - the first call after ``.eval_shape()`` or ``jax.eval_shape``, which only trace;
    - traces inside the trace of another function, and failed traces;
    - the first two programs (forward and backward) that JAX compiles for a function under ``jax.grad``."""
    before: dict[object, set[object]] = {}
    done: dict[object, int] = {}
    traces: dict[str, Compilation] = {}  # the latest trace under a transform, by process
    objects: set[object] = set()  # function objects and static objects of the calls so far
    called = set[object]()  # caches that were used for more than ``eval_shape``
    found = []
    for c in function.compilations:
        if c.only_missed or c.entry == "nested":
            continue
        new = _objects(c) - objects  # comparing keys takes long: only if there is another object
        objects |= new
        caches, key = _served_by(c), _transform_key(c, traces.get(c.process.id))
        if _traced_under_transform(c):
            traces[c.process.id] = c
        known, phases = before.setdefault(caches, set()), done.get(caches, 0)
        failed_trace = c.failed is not None and not c.reached_phases
        again = known and c.entry != "aot" and (key is None or key not in known) and not failed_trace
        again = again and caches in called
        if c.entry != "aot" or c.reached_phases & ~1:
            called.add(caches)
        if (
            again
            and not _runs_only_missing_phases(c, phases)
            and not (new and compiled_another_function(run, c))
        ) or (c.entry == "aot" and c.compiled is not None and created_again(run, c)):
            found.append(c)
        if c.reached_phases:
            known.add(key)
            done[caches] = phases | c.reached_phases
    return found


@cached_until_changed
def traced_by(function: Function, run: Run) -> dict[str, str]:
    """Return {compilation id: id of an earlier call} for the compilations of ``function`` that only compiled
    what the earlier call had traced under a transform (``jax.grad``). Both belong to one call of the user."""
    traces: dict[str, Compilation] = {}  # the latest trace under a transform, by process
    found = {}
    for c in function.compilations:
        trace = traces.get(c.process.id)
        if _traced_under_transform(c):
            traces[c.process.id] = c
        elif trace is not None and _continues(c, trace) and not _compiled_since(run, c, trace):
            found[c.id] = trace.id
    return found


def _compiled_since(run: Run, c: Compilation, trace: Compilation) -> bool:
    """Return whether the earlier call with which ``c`` is compared came after the call ``trace``, in the
    process and under the transform of ``c``. Then ``c`` belongs to a later call of the user than
    ``trace``."""
    before = compared_with(run, c)
    return (
        before is not None
        and before.process is c.process
        and before.call > trace.call
        and before.entry == c.entry
        and _transformed(before) == _transformed(c)
    )


@cached_until_changed
def recompiles(function: Function, run: Run) -> list[Compilation]:
    """Return ``recompilations`` without the calls that only compiled what another call of that list had
    traced: under ``jax.grad``, JAX compiles several programs for one call of the user. Mostly, this leaves
    one compilation for each call of the user."""
    found = recompilations(function, run)
    known, of_calls = {c.id for c in found}, traced_by(function, run)
    return [c for c in found if of_calls.get(c.id) not in known]


@cached_until_changed
def reasons(function: Function, run: Run) -> dict[str, list[tuple[Compilation, Cause]]]:
    """Return the recompilations of ``function`` with their decisive causes, by kind of the cause: ``{"shape":
    [(compilation, cause), ...], "new_function": [...]}``."""
    found = ((c, of(run, c)[0]) for c in recompilations(function, run))
    return grouped((decisive.kind, (c, decisive)) for c, decisive in found)


def _objects(c: Compilation) -> set[object]:
    """Return {(id of the process, number of the object)} for the function object and the static objects in
    the cache key of ``c``."""
    if c.key is None:
        return set()
    numbers = {c.key.function_object, *(s.serial for s in c.key.static)} - {None}
    return {(c.process.id, n) for n in numbers}


def _served_by(c: Compilation) -> object:
    """Return a value that is equal for two calls of one function if JAX searches the same cache for both. The
    value differs between processes, and between transforms (grad, vmap, ...)."""
    return (c.process.id, _transformed(c)) if c.entry == "transform" else c.process.id


def _transform_key(c: Compilation, trace: Compilation | None) -> object:
    """Return the parts of the cache key of ``c``, a call under a transform, that decide whether ``c`` is a
    recompile. If an earlier call that JAX searched for in the same cache (``_served_by``) has equal parts,
    ``c`` is no recompile. None if ``c`` is not under a transform, or if its key was not recorded.

    Args:
      trace: the latest call before ``c`` that traced the function under a transform; None: there is none.
    """
    if c.entry != "transform" or c.key is None or c.missed is None:
        return None
    # The key of ``c`` has no static arguments: programs of different traces may have equal keys.
    of = trace.call if trace is not None and _continues(c, trace) else None
    k = c.key
    return (tuple(k.arguments), tuple(k.static), k.tree, k.context, k.function_object, c.missed.cleared, of)


def _traced_under_transform(c: Compilation) -> bool:
    return c.entry == "transform" and bool(c.reached_phases & 1)


def _continues(c: Compilation, trace: Compilation) -> bool:
    """Return whether ``c`` probably compiled what the call ``trace`` traced: ``c`` is under a transform
    (grad, vmap, ...), traced nothing itself, and its lines on the stack are among those of ``trace``."""
    if c.entry != "transform" or _traced_under_transform(c):
        return False
    lines, around = ({f.place for f in o.lines} for o in (c, trace))
    return bool(lines) and lines <= around


def _newer_trace(c: Compilation, other: Compilation, trace: Compilation | None) -> Compilation | None:
    """Return ``other`` if it is in the process of ``c`` and traced its function under a transform (grad,
    vmap, ...). Otherwise return ``trace``."""
    return other if other.process is c.process and _traced_under_transform(other) else trace


def _latest_trace(c: Compilation) -> Compilation | None:
    """Return the latest call of the function of ``c`` before the call ``c``, in the same process, that traced
    it under a transform (grad, vmap, ...). None if there is no such call, or if ``c`` is not under a
    transform."""
    trace: Compilation | None = None
    for other in c.function.compilations if c.entry == "transform" else ():
        if other is c:
            break
        trace = _newer_trace(c, other, trace)
    return trace


def _trace_since(c: Compilation, before: Compilation) -> Compilation | None:
    """Return the call that traced what ``c`` compiles under a transform (``jax.grad``). ``before`` is the
    call with which ``c`` is compared. None if ``c`` compiles no earlier trace, if this trace is older than
    ``before``, or if ``before`` is not under a transform."""
    trace = _latest_trace(c)
    if trace is None or trace.call < before.call or before.entry != c.entry or not _continues(c, trace):
        return None
    return trace


def _transformed(c: Compilation) -> object:
    """Return a value that differs between calls of one function under different transforms (``grad``,
    ``vmap``). The recording does not name the transform. So the value has the lines on the stack, the paths
    and ranks of the arguments, and whether the call traced. For a function that is not the user's it has
    the function object, too: JAX itself creates new ones for operations outside jit."""
    lines = [f.place for f in c.lines]
    traced = c.reached_phases & 1 or c.phase == TRACE
    # Another rank means another transform: vmap on a line that had grad before.
    leaves = [(leaf.path, len(leaf.shape or ())) for leaf in c.key.arguments] if c.key is not None else []
    made = c.key.function_object if c.key is not None and not c.function.user else None
    return tuple(lines), tuple(leaves), made, traced


def _nearest(run: Run, c: Compilation, key: Key, facts: Facts, level: str) -> int | None:
    """Return the position, in the index ``key_index.of(run, c)``, of the earlier key that differs least from
    ``key``, the key of ``c``. None if there is no earlier key. Compared are the latest keys, and older ones
    with the same shapes or static values. Keys of the same kind of call are preferred, and of these the keys
    of the same function object.

    Args:
      facts: the flattened form of ``key``.
      level: the cache that did not have the call: trace, lower, compile or fast_path.
    """
    index = key_index.of(run, c)
    end, hashes = index.before(c.call), index.hashes(c.call, key)
    one_entry = index.entries == {c.entry} != {"transform"}  # by far the most common case
    positions: list[int] = []  # the latest first
    for fits in [None] if one_entry else _fitting(c):
        positions = index.latest(end, LOOK_BACK, fits)
        if positions:
            if more := index.alike(hashes, positions[-1], LOOK_FURTHER, fits):
                positions = sorted({*positions, *more}, reverse=True)
            break
    earlier = [index.facts[at] for at in positions]
    found = nearest(facts, earlier, level, lambda n: index.shapes[positions[n]] != hashes[0])
    return None if found is None else positions[found]


def _fitting(c: Compilation) -> list[key_index.Fits]:
    """Return conditions for the earlier compilations with which ``c`` may be compared, the preferred
    condition first. The caller uses the first condition that an earlier compilation fulfills. The last
    condition accepts every compilation."""

    def same_caches(o: Compilation) -> bool:
        return o.entry == c.entry or {o.entry, c.entry} <= _DIRECT

    if (
        c.entry == "transform"
    ):  # forward and backward programs of one function are not compared with each other
        transform, paths = _transformed(c), _paths(c)
        return [
            lambda o: o.entry == c.entry and _transformed(o) == transform,
            lambda o: o.entry == c.entry and _paths(o) == paths and _one_object(o, c),
            lambda o: o.entry != c.entry,
            lambda o: True,
        ]
    return [same_caches, lambda o: True]


def _paths(c: Compilation) -> list[str]:
    return [leaf.path for leaf in c.key.arguments] if c.key is not None else []


def _one_object(a: Compilation, b: Compilation) -> bool:
    """Return whether ``a`` and ``b`` called the same function object. The result is also True if a cache key
    was not recorded."""
    return len({c.key.function_object for c in (a, b) if c.key is not None}) < 2


def _circumstances(run: Run, c: Compilation, before: Compilation, level: str) -> causes.Circumstances:
    """Return facts that help to explain the miss of ``c`` but are not in its cache key, such as the
    function's wrappers. ``before`` is the earlier call with which ``c`` is compared. ``level`` is the cache
    that did not have ``c``: trace, lower, compile or fast_path."""
    seen = c.function.seen
    now, then = c.missed, before.missed
    assert now is not None and then is not None
    created = None
    if now.key is not None and then.key is not None and now.key.function_object != then.key.function_object:
        created = _created_at(run, c)
    return causes.Circumstances(
        level=level,
        entry=c.entry,
        entry_before=before.entry,
        name=seen.name,
        form=seen.form,
        qualname=seen.qualname,
        wrappers=seen.wrappers,
        signature=seen.signature,
        eager=seen.eager,
        cleared=max(0, (now.cleared or 0) - (then.cleared or 0)),
        full={OLDER_CACHES.get(name, name): sizes for name, sizes in (now.full or {}).items()},
        effects=_effects(c) if level == FAST_PATH else [],
        created_at=created[0] if created is not None else None,
        created_there=created is not None and created[1],
        other_program=c.entry == before.entry == "transform" and _transformed(c) != _transformed(before),
        number_before=run.number(before),
        of_leaves=run.causes_of_leaves,
    )


def _effects(c: Compilation) -> list[str]:
    """Return the names of the effects of the jaxpr that ``c`` runs; if the log does not have them, those of
    the latest earlier trace of the function. JAX runs no function with effects on its fast path."""
    if c.missed is not None and c.missed.effects:
        return list(c.missed.effects)
    for o in reversed(c.function.compilations):
        if o.process is c.process and o.call < c.call and o.traced is not None:
            return list(o.traced.effects or ())
    return []


def _created_at(run: Run, c: Compilation) -> tuple[Frame, bool] | None:
    """Return (user's line that created the function object of ``c``, whether that is certain): the line of
    its definition, or the line on the stack that wraps it (``jax.grad(f)``). None if unknown."""
    seen, defined = c.function.seen, c.function.defined
    if defined is None:
        return None
    if seen.form in ("lambda", "def") and not seen.wrappers:
        return defined, True
    inner = "<locals>" in seen.qualname
    searched = inner or seen.form == "lambda"
    if searched and sources.where_defined(run, defined.file, seen.name, defined.line) is not None:
        return defined, True
    for frame in c.lines:
        wraps = sources.where_called(run, frame.file, seen.name, frame.line)
        if wraps is not None:
            return Frame(frame.file, wraps.line, frame.function), wraps.certain
    return (defined, False) if inner else None
