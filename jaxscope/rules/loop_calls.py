"""Rules about calls of jitted functions in a Python loop.

JX135: each iteration passes the same random key. JX204: a call is made for each row of an array, where one
call for the whole array would do. JX205: a call computes what another call in the loop computes, too.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from jaxscope.analysis import loop_calls, module_libraries
from jaxscope.analysis.avals import short_aval
from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import LoopCall
from jaxscope.analysis.paths import split, tokens
from jaxscope.analysis.source_lines import in_a_loop
from jaxscope.analysis.syntax import syntax
from jaxscope.model import sources, transfers
from jaxscope.model.records import Compilation, Function, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import value_and_gradient
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import at_line
from jaxscope.rules.random_keys import draws_in_loops
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import LIKELY, NOTE, WARNING, Evidence, Finding, Fix
from jaxscope.schema.libraries import JAX_ROOTS
from jaxscope.schema.messages import message


@rule("JX135", "one-key-for-all-steps", WARNING)
def one_key_for_all_steps(run: Run) -> Iterator[Finding]:
    yield from draws_in_loops(run)
    for f in run.functions.values():
        for c in _called(f):
            # A call may only have missed JAX's fast path: the trace is that of an earlier call.
            traced = next((o.traced for o in (c, *reversed(f.compilations)) if o.traced is not None), None)
            drawn = traced.draws if traced is not None else None
            call = _in_loop(run, f, c) if drawn else None
            if call is None or not (f.step or call.feeds_itself) or _statics_change(f, c, call):
                continue
            for path in drawn or ():
                name, below = split(path)
                passed = loop_calls.argument(call.call, f.seen.signature, name)
                if below or passed is None or not loop_calls.stays_the_same(passed, call.repeats):
                    continue
                key = ast.unparse(passed)
                words = message("fix-new-key", key=key)
                if "jax.pmap" in f.seen.wrappers:
                    words = message("fix-new-keys", key=key)
                text = message(
                    "one-key-for-all-steps", function=f.display_name, key=key, line=call.loop.lineno
                )
                yield Finding(
                    "JX135",
                    WARNING,
                    LIKELY,
                    **at_line(text, c.site, c),
                    function=f.id,
                    fix=Fix(words, "fold_in", {"name": key}),
                    path=path,
                )


def _statics_change(f: Function, c: Compilation, call: LoopCall) -> bool:
    """Return whether ``call``, a call of ``f`` in a loop, may pass another static argument in each iteration.
    ``c`` is a recorded call of ``f``, which shows the static arguments."""
    arrays = {split(leaf.path)[0] for leaf in (c.key.arguments if c.key is not None else ())}
    statics = {s.path for s in (c.key.static if c.key is not None else ()) if split(s.path)[0] == s.path}
    statics -= arrays  # parts of a pytree, such as the functions of a TrainState
    # Another value would have been compiled.
    keys = [other.key for other in f.compilations if other.key is not None]
    values = {(s.path, s.repr, s.serial, s.hash) for key in keys for s in key.static}
    statics = {name for name in statics if sum(path == name for path, *_ in values) > 1}
    passed = [loop_calls.argument(call.call, f.seen.signature, name) for name in statics]
    return any(p is not None and not loop_calls.stays_the_same(p, call.repeats) for p in passed)


def _called(f: Function) -> Iterator[Compilation]:
    """Yield the latest recorded call for each line that calls ``f``. Yield nothing if ``f`` is not a function
    of the user."""
    found = {
        c.site.place: c
        for c in (f.compilations if f.user else ())
        if c.entry == "call" and c.site is not None and c.missed is not None
    }
    yield from found.values()


def _in_loop(run: Run, f: Function, c: Compilation) -> LoopCall | None:
    """Return the call ``c`` of ``f`` in the source, with its loop; None if it is in no loop, or unknown."""
    if c.site is None or c.missed is None:
        return None
    return loop_calls.find(sources.of(run)(c.site.file), c.site.line, c.missed.column, f.seen.name)


FEWEST = 8  # calls, in one iteration of an outer loop or in one step, that are worth a finding
ROWS = frozenset({"unstack", "dynamic_slice", "gather", "slice"})  # operations that take rows of an array


@rule("JX204", "call-for-each-row", WARNING)
def call_for_each_row(run: Run) -> Iterator[Finding]:
    for finding, _ in for_each_row(run):
        yield finding


@cached_until_changed
def for_each_row(run: Run) -> list[tuple[Finding, range]]:
    """Return the findings of JX204 (a jitted function is called for each row of an array), each with the
    range of the line numbers of its loop."""
    return list(_for_each_row(run))


def _for_each_row(run: Run) -> Iterator[tuple[Finding, range]]:
    jitted = {f.seen.name for f in run.functions.values() if f.user}
    for f in run.functions.values():
        traced = [c for c in _called(f) if c.traced is not None]
        for c in traced if len(traced) == 1 and len(f.compilations) == 1 else ():
            call = _in_loop(run, f, c)
            if call is None or not _turns_alone(run, c, call, jitted):
                continue
            rows = None if call.feeds_itself else _rows(run, c, call)
            n = rows[0] if rows is not None else _calls_in_a_step(run, f, c, call)
            if n is None or n < FEWEST:
                continue
            if rows is not None:
                leaves = c.key.arguments if c.key is not None else ()
                dtype = next((leaf.dtype for leaf in leaves if leaf.shape == rows[1:]), None)
                aval = short_aval(rows, dtype)
                text = message("called-row-by-row", function=f.display_name, aval=aval, n=n)
            else:
                text = message("called-in-step", function=f.display_name, n=n)
            fix = message(
                "fix-scan-calls" if call.feeds_itself else "fix-vmap-calls", function=f.display_name
            )
            kind = "scan" if call.feeds_itself else "vmap"
            finding = Finding(
                "JX204",
                WARNING,
                LIKELY,
                **at_line(text, c.site, c),
                function=f.id,
                fix=Fix(fix, kind, {"function": f.display_name}),
            )
            yield finding, range(call.loop.lineno, (call.loop.end_lineno or call.loop.lineno) + 1)


def _turns_alone(run: Run, c: Compilation, call: LoopCall, jitted: set[str]) -> bool:
    """Return whether the body of the loop around ``call`` makes hardly any calls but ``call``, those of JAX
    and of ``jitted`` functions."""
    source = sources.of(run)(c.site.file) if c.site is not None else None
    modules = names_of(syntax(source).imports, JAX_ROOTS)
    return loop_calls.makes_no_other_calls(call, call.body, jitted, modules)


def _rows(run: Run, c: Compilation, call: LoopCall) -> tuple[int, ...] | None:
    """Return the shape of the array whose rows a loop passes to a jitted function in ``call``, one row in
    each call; ``c`` is the latest such call. None if the array is unknown, or if the whole loop runs only
    once."""
    if c.site is None or c.key is None or not _again(run, c, call):
        return None
    rows = {(leaf.shape, leaf.dtype) for leaf in c.key.arguments if leaf.shape is not None}
    first, last = call.loop.lineno, call.loop.end_lineno or call.loop.lineno
    for taken in run.functions.values():
        for t in taken.compilations if taken.seen.eager and taken.seen.name in ROWS else ():
            at, whole = t.site, t.key.arguments[:1] if t.key is not None else []
            if at is None or at.file != c.site.file or not first <= at.line <= last or not whole:
                continue
            shape = whole[0].shape or ()
            if (shape[1:], whole[0].dtype) in rows and all(isinstance(d, int) for d in shape):
                return tuple(int(d) for d in shape)
    return None


def _again(run: Run, c: Compilation, call: LoopCall) -> bool:
    """Return whether the loop around ``call`` runs several times: another loop of its function is around it,
    or a loop is around a line that leads to the call of this function. ``c`` is a recorded call of the same
    jitted function, with the call stack."""
    text, stack = sources.of(run), c.missed.stack if c.missed is not None else []
    last = call.loop.end_lineno or call.loop.lineno
    outside = [
        f for f in stack if c.site and not (f.file == c.site.file and call.loop.lineno <= f.line <= last)
    ]
    return call.outer is not None or any(in_a_loop(text(f.file), f.line) for f in outside)


def _calls_in_a_step(run: Run, f: Function, c: Compilation, call: LoopCall) -> int | None:
    """Return how often each training step calls ``f``, on average, rounded down. None if calls or steps are
    not counted, or if ``f`` may itself be the step.

    Args:
      c: a recorded call of ``f``.
      call: the same call in the source, with its loop.
    """
    calls, steps = f.counted_calls.get(c.process.id), transfers.steps(run, c.process)
    # jaxscope.step() may be called once in each epoch: then an ``f`` that feeds itself may be the step.
    steppers = [g for g in run.functions.values() if g.step and c.process.id in g.counted_calls]
    if not calls or not steps or f.step or not (steppers or (c.process.step and not call.feeds_itself)):
        return None
    return calls // steps


# Code that a function has only for evaluation: its forward pass computes other values than in training.
_EVALUATES = re.compile(
    r"train(?:ing)?\s*=\s*False|deterministic\s*=\s*True|inference|\.eval\(|use_running_average|stop_gradient"
)


@rule("JX205", "work-done-twice", WARNING)
def work_done_twice(run: Run) -> Iterator[Finding]:
    products = {
        f.id: Counter(
            {(p.dtypes, p.source.file, p.source.line): p.count for p in texts.stablehlo.products if p.source}
        )
        for _, f, texts in users(run)
        if texts.stablehlo is not None
    }
    loops: dict[tuple[str, int, int], list[tuple[Function, Compilation, LoopCall]]] = {}
    for f in run.functions.values():
        calls = list(_called(f)) if products.get(f.id) else []
        for c in calls if len(calls) == 1 else ():
            call = _in_loop(run, f, c)
            if call is not None and call.always and call.statement is not None and c.site is not None:
                at = (c.site.file, call.loop.lineno, call.loop.col_offset)
                loops.setdefault(at, []).append((f, c, call))
    for members in loops.values():
        for (f, by, does), (g, c, again) in itertools.permutations(members, 2):
            mine, theirs = products[g.id], products[f.id]
            if not mine <= theirs or mine == theirs or not _comparable(run, by, g, c):
                continue
            kept = _arrays_passed(g, c, again) if "flax.nnx.jit" in f.seen.wrappers else None
            after = _same_arguments(does, again, kept)
            if after is not None:
                yield _twice(run, f, by, g, c, again, after)
    yield from value_and_gradient.in_a_minimization(run)


def _comparable(run: Run, larger: Compilation, g: Function, c: Compilation) -> bool:
    """Return whether the call ``larger`` may compute everything that the call ``c`` of the function ``g``
    computes, such as a forward pass, and more. False if the source of ``g`` is unknown, or has code that is
    only for evaluation."""
    if larger.key is None or c.key is None:
        return False
    modes = {s.path: s.repr for s in larger.key.static}
    if any(modes.get(s.path, s.repr) != s.repr for s in c.key.static):
        return False
    if has_key(larger) and not has_key(c):  # dropout in one of them
        return False
    if _has_another_like(larger, c):
        return False
    source = sources.of(run)(g.seen.file) if g.seen.file is not None else None
    defined = [n for n in syntax(source).blocks if isinstance(n, ast.FunctionDef) and n.name == g.seen.name]
    return bool(defined) and not any(_EVALUATES.search(ast.unparse(n)) for n in defined)


_Types = dict[tuple[str, ...], tuple[object, ...]]  # steps of the path of an array -> (shape, dtype)


def _has_another_like(larger: Compilation, c: Compilation) -> bool:
    """Return whether ``larger`` has more arguments of one kind than ``c``: the parameters of two networks
    instead of one. Arguments are of one kind if their arrays have equal paths and types."""
    passed: dict[str, _Types] = {}
    for path, array in _types(c).items():
        passed.setdefault(path[0], {})[path[1:]] = array
    for kind in passed.values():
        places = _places(kind, _types(larger))
        nearest = [p for p in places if len(p) == min(map(len, places))]
        if len(nearest) > sum(other == kind for other in passed.values()):
            return True
    return False


def _types(c: Compilation) -> _Types:
    """Return {steps of the path: (shape, dtype)} for the arrays that the call ``c`` is passed."""
    leaves = c.key.arguments if c.key is not None else ()
    return {tuple(tokens(leaf.path)): (leaf.shape, leaf.dtype) for leaf in leaves}


def _places(kind: _Types, arrays: _Types) -> set[tuple[str, ...]]:
    """Return the paths, such as ``("opt", "mu")``, below which a call has exactly the arrays ``kind``, with
    equal paths and types.

    Args:
      kind: the arrays of one argument of another call: path below the argument -> (shape, dtype).
      arrays: all arrays of the call: path -> (shape, dtype).
    """
    first = next(iter(kind))
    starts = {path[: len(path) - len(first)] for path in arrays if path[len(path) - len(first) :] == first}
    return {
        start
        for start in starts
        if start
        and {p[len(start) :]: array for p, array in arrays.items() if p[: len(start)] == start} == kind
    }


def has_key(c: Compilation) -> bool:
    """Return whether an argument of the call ``c`` may be an array of random keys: its dtype is ``key<...>``,
    or it is ``uint32`` with a last dimension of 2 or 4."""
    leaves = c.key.arguments if c.key is not None else ()
    return any(
        (a.dtype or "").startswith("key<") or (a.dtype == "uint32" and (a.shape or ())[-1:] in ((2,), (4,)))
        for a in leaves
    )


def has_typed_key(c: Compilation) -> bool:
    """Return whether an argument of the call ``c`` certainly is an array of random keys, by its dtype."""
    return any((a.dtype or "").startswith("key<") for a in (c.key.arguments if c.key is not None else ()))


def _arrays_passed(f: Function, c: Compilation, call: LoopCall) -> set[str | None]:
    """Return the names of the variables that ``call`` passes to ``f`` as arrays, not as containers or
    objects: ``{"x"}`` for ``f(model, x)``. ``c`` is a recorded call of ``f``, from which the types of the
    arguments are known."""
    paths = [leaf.path for leaf in c.key.arguments] if c.key is not None else []
    passed = [loop_calls.argument(call.call, f.seen.signature, name) for name in paths]
    return {loop_calls.root(a) for a in passed if a is not None}


def _same_arguments(larger: LoopCall, smaller: LoopCall, unchanged: set[str | None] | None) -> bool | None:
    """Tell whether ``smaller`` may compute again what ``larger``, another call in the same loop, computes:
    its arguments are constants, arguments of ``larger``, or parts of these. Return False if they have the
    same values in both calls. Return True if ``larger`` comes first and changes some, but not all, of them,
    as ``params = train_step(params, batch)`` does. Else return None.

    Args:
      unchanged: if ``larger`` changes the objects that it is passed (flax nnx), the names of the variables
        whose objects it does not change; else None.
    """
    if larger.statement is None or smaller.statement is None or larger.statement == smaller.statement:
        return None
    passed = [*smaller.call.args, *(k.value for k in smaller.call.keywords)]
    given = {ast.dump(a) for a in (*larger.call.args, *(k.value for k in larger.call.keywords))}
    if not passed or not all(isinstance(a, ast.Constant) or _part_of(a, given) for a in passed):
        return None
    names = {loop_calls.root(a) for a in passed} - {None}
    first, second = sorted((larger.statement, smaller.statement))
    between = smaller.body[first + 1 : second]
    if names & (loop_calls.names_set(between) | _touched(between)):
        return None
    if smaller.statement < larger.statement:
        if names & smaller.targets or _depends(larger.call, smaller, between):
            return None
        return False
    changed = names & larger.targets | (names - unchanged if unchanged is not None else set())
    return None if changed == names else bool(changed)


def _part_of(node: ast.expr, expressions: set[str]) -> bool:
    """Return whether ``node`` is one of ``expressions`` (texts, as ``ast.dump`` writes them), or an attribute
    or an item of one. For example, ``state.params`` is an attribute of ``state``."""
    while ast.dump(node) not in expressions:
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return False
        node = node.value
    return True


def _touched(statements: Sequence[ast.AST]) -> set[str | None]:
    """Return the names of the objects of which ``statements`` call a method: ``model`` for ``model.eval()``.
    A method may change its object."""
    calls = [n for s in statements for n in ast.walk(s) if isinstance(n, ast.Call)]
    return {loop_calls.root(c.func) for c in calls if isinstance(c.func, ast.Attribute)}


def _depends(call: ast.Call, on: LoopCall, between: Sequence[ast.AST]) -> bool:
    """Return whether an argument of ``call`` is computed from a result of the call ``on``, perhaps through
    ``between``, the statements between the two calls."""
    names = set(on.targets)
    for statement in between:
        if names & loop_calls.names_read([statement]):
            names |= loop_calls.names_set([statement])
    return bool(names & loop_calls.names_read([*call.args, *(k.value for k in call.keywords)]))


def _twice(
    run: Run, f: Function, by: Compilation, g: Function, c: Compilation, call: LoopCall, after: bool
) -> Finding:
    """Return the finding that the call ``by`` of ``f`` also computes what the call ``c`` of ``g`` computes.
    ``call`` is the call ``c`` in the source; its loop contains both. ``after`` tells whether ``by`` comes
    first and updates the arguments that ``c`` gets."""
    functions = {"function": g.display_name, "other": f.display_name}
    text = sources.of(run)(f.seen.file) if f.seen.file is not None else None
    spelled = module_libraries.spelling(module_libraries.of_gradients(text, f.seen.wrappers))
    title = message(
        "work-done-twice-after" if after else "work-done-twice", line=call.loop.lineno, **functions
    )
    fix = message(
        "fix-has-aux",
        value_and_grad=spelled.value_and_grad,
        before=message("of-params-before") if after else None,
        **functions,
    )
    instead = None if after else value_and_gradient.of_gradient(g, f)
    if instead is not None:
        title = message("value-and-gradient", function=g.display_name, line=c.site, gradient=by.site)
        fix = message("fix-value-and-grad", function=g.display_name, transform=instead)
    return Finding(
        "JX205",
        NOTE if after else WARNING,
        LIKELY,
        title,
        g.id,
        c.site,
        [Evidence(title, compilation=c.id, program=c.program, source=c.site)],
        Fix(
            fix,
            "has_aux" if instead is None else "value_and_grad",
            {"function": f.display_name, "value_and_grad": instead or spelled.value_and_grad},
        ),
        seconds=value_and_gradient.seconds_at(run, c.site) if instead is not None else None,
        at_most=True,
    )
