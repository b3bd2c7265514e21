"""Find the function in which a loop spends its time on operations outside jit, to jit it (JX605): a function
that a library calls again and again, or one that the loop calls itself."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Sequence

from jaxscope.analysis import jit_decorators, line_names, loop_calls, sizes_under_jit
from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import loop_from, root, takes_elements
from jaxscope.analysis.source_lines import loops_around, passes_function
from jaxscope.analysis.syntax import calls_at, last_name, syntax
from jaxscope.model import line_times, sources
from jaxscope.model.line_times import Loop
from jaxscope.model.run import Run
from jaxscope.rules import inner_loops, jit_obstacles, outside_jit
from jaxscope.schema.findings import Fix, extended
from jaxscope.schema.keys import Frame
from jaxscope.schema.libraries import JAX_ROOTS
from jaxscope.schema.messages import Message, Names, message

NEARLY_ALL = 0.9  # share of a loop's time in a function that is worth jitting instead of the iteration
FEW, SOME = 3, 0.1  # so many functions are named, each with at least this share of the loop's time
INNER = 0.3  # share of a loop's time: an inner loop that takes at least this share is named
OTHER_INNER = 0.1  # the same, if another inner loop is named already
LINES = 4  # attributes that are named


def advice(run: Run, loop: Loop) -> Fix | None:
    """Return the advice to jit the function in which most of the time of ``loop`` is spent: a function that a
    library calls, that contains the loop, or that the loop calls. None if there is none, or if jit cannot
    trace it as a whole."""
    passed = _called_by_library(run, loop)
    if passed is not None:
        function, line = passed
        return jit_passed(function, function, line)
    around = _around(run, loop)
    if around is not None:
        file, function = loop.line.file, loop.line.function
        every = loops_around(sources.of(run)(file), loop.line.line)
        return inner_loops.with_inner_loops(run, around, [Frame(file, first, function) for first, _ in every])
    fix = _of_called(run, loop)
    if fix is None or "functions" in fix.arguments:
        return fix
    loops = line_times.inner_loops(run, loop, INNER, OTHER_INNER)
    inner = loops[0] if loops else None
    if inner is not None and _defining(inner) != _defining(loop.line):
        return inner_loops.with_inner_loops(run, fix, loops)
    # The loops are around the call of the function.
    name, calling = fix.arguments.get("function"), inner or loop.line
    statement = loop_from(sources.of(run)(calling.file), calling.line)
    elements = takes_elements(statement) if statement is not None else inner is not None  # a comprehension
    if elements and isinstance(name, str) and "." not in name:
        return extended(fix, "fix-or-vmap", function=name, loop=calling)
    return fix


def _defining(at: Frame) -> str:
    """Return the qualified name of the function that contains the line ``at``, also if the line is in a
    comprehension, which is a function of its own before Python 3.12."""
    if not at.function.endswith("comp>"):
        return at.function
    return at.function.rpartition(".<locals>.")[0] or "<module>"


def _around(run: Run, loop: Loop) -> Fix | None:
    """Return the advice to jit the function that contains ``loop``, a loop whose iterations depend on each
    other. None if jit cannot trace the function unchanged, if the loop calls jitted functions, or if it ends
    early."""
    text, at = sources.of(run)(loop.line.file), loop.line
    statement = loop_calls.loop_from(text, at.line)
    if loop.calls or not isinstance(statement, ast.For) or not loop_calls.carries(statement):
        return None
    if any(isinstance(n, (ast.Break, ast.Return)) for n in ast.walk(statement)):
        return None
    if not line_names.computes_only(text, at.function) or line_names.takes_objects(text, at.function):
        return None
    fix, part = _jit_function(run, loop, at.file, at.function, []), {(at.file, at.function)}
    return None if fix is None or jit_obstacles.with_obstacles(run, fix, part, part) != fix else fix


def jit_passed(function: str, argument: str, lines: Frame | Names) -> Fix:
    """Return the advice to jit ``function``, which ``lines`` pass to a library as ``argument``, source such
    as ``self.residual``."""
    if argument.startswith("self."):
        words = message("fix-jit-passed-method", method=argument, line=lines)
    else:
        words = message("fix-jit-passed-function", function=argument, line=lines)
    return Fix(words, "jit", {"function": function})


def passed_to_library(run: Run, stack: Sequence[Frame]) -> int | None:
    """Return the position ``k`` of a function in ``stack`` that the line ``stack[k + 1]`` passes to a library
    other than JAX, which calls it; None if there is none. ``stack`` has the user's lines, innermost first."""
    text = sources.of(run)
    for k, (inner, outer) in enumerate(itertools.pairwise(stack)):
        name = inner.function.rpartition(".")[2]
        passed = name == "<lambda>" and inner.place == outer.place
        passed = passed or passes_function(text(outer.file), outer.line, name)
        if passed and not _is_for_jax(text(outer.file), outer.line, name):
            return k
    return None


def passing_call(run: Run, stack: Sequence[Frame], k: int) -> tuple[str, str, str]:
    """Return (package, called, argument) for the function at the position ``k`` of ``stack`` that the line
    ``stack[k + 1]`` passes to a library: the package of the called function, empty if it is unknown; the
    called function as source, ``table.apply``; and the passed one, ``self.residual``. For a lambda that calls
    a function, this function is returned."""
    at, name = stack[k + 1], stack[k].function.rpartition(".")[2]
    found = syntax(sources.of(run)(at.file))
    package, to, argument = "", "", name
    for call in calls_at(sources.of(run)(at.file), at.line):
        passed = [*call.args, *(keyword.value for keyword in call.keywords)]
        for value in passed:
            if last_name(value) == name or (name == "<lambda>" and isinstance(value, ast.Lambda)):
                package = line_names.full_name(call.func, line_names.imported(found)).partition(".")[0]
                to, argument = ast.unparse(call.func), ast.unparse(value)
            if k and isinstance(value, ast.Lambda):
                inner = stack[k - 1].function.rpartition(".")[2]
                calls = (n.func for n in ast.walk(value) if isinstance(n, ast.Call))
                argument = next((ast.unparse(f) for f in calls if last_name(f) == inner), argument)
    return package, to, argument


def _is_for_jax(source: str | None, line: int, name: str) -> bool:
    """Return whether ``line`` passes the function ``name``, or a lambda, only to functions of JAX and to
    transforms, which call it once: ``jax.grad(lambda x: loss(x, y))(x)``, ``eqx.filter_grad(loss)``. Flax
    calls the method that ``net.apply(variables, x, method=net.encode)`` names once, too."""
    found = syntax(source)
    calls, jax = found.calls.get(line, []), names_of(found.imports, JAX_ROOTS)
    methods = [k for c in calls for k in c.keywords if k.arg == "method" and last_name(k.value) == name]
    to = [c for c in calls if any(isinstance(a, ast.Lambda) or last_name(a) == name for a in c.args)]
    return bool(methods or to) and all(root(c.func) in jax or _is_transform(c) for c in to)


def _is_transform(call: ast.Call) -> bool:
    """Return whether ``call`` calls a transform: ``jax.grad``, ``eqx.filter_grad``."""
    return (last_name(call.func) or "").removeprefix("filter_") in outside_jit.TRANSFORMS


def _called_by_library(run: Run, loop: Loop) -> tuple[str, Frame] | None:
    """Return the function that a library calls and in which most of the time of ``loop`` was spent, and the
    line that passes this function to the library, or a lambda that calls it. None if there is none."""
    seconds = Counter[tuple[str, Frame]]()
    for t in loop.times:
        k = passed_to_library(run, t.stack)
        if k is not None and t.stack[k].function.endswith("<lambda>"):
            k = k - 1 if k else None
        if k is not None:
            at = next(f for f in t.stack[k + 1 :] if not f.function.endswith("<lambda>"))
            seconds[t.stack[k].function.rpartition(".")[2], at] += round(1e9 * t.seconds)
    every = sum(t.seconds for t in loop.times)
    return next((found for found, ns in seconds.most_common(1) if 2e-9 * ns > every), None)


def _of_called(run: Run, loop: Loop) -> Fix | None:
    """Return the advice to jit the function, or the few functions, that lines of ``loop`` call, if nearly all
    of its time is spent there. None otherwise, or if jit probably cannot trace them."""
    nanoseconds, own = Counter[tuple[str, str]](), Counter[Frame]()
    lines = dict[tuple[str, str], dict[Frame, None]]()
    for t in loop.times:
        inside = (k for k, f in reversed([*enumerate(t.stack)]) if _is_line_of(loop, f))
        outer = next(inside, 0)
        below = [f for f in reversed(t.stack[:outer]) if not f.function.endswith("comp>")]
        called = next((f for f in below if not f.function.endswith("<lambda>")), below[0] if below else None)
        if called is not None:
            part = called.file, called.function
            nanoseconds[part] += round(1e9 * (t.seconds - t.blocked))
            lines.setdefault(part, {})[t.stack[outer]] = None
        else:
            own[t.stack[outer]] += round(1e9 * (t.seconds - t.blocked))
    text = sources.of(run)
    for (file, function), ns in nanoseconds.most_common(1):
        ns += sum(own[at] for at in lines[file, function])  # the second half of a gradient
        whole = function.endswith("<lambda>") or line_names.computes_only(text(file), function)
        if ns >= 1e9 * NEARLY_ALL * loop.seconds and whole:
            return _jit_function(run, loop, file, function, [*lines[file, function]])
    few = [(part, ns) for part, ns in nanoseconds.most_common(FEW) if ns >= 1e9 * SOME * loop.seconds]
    traced = all(_is_plain(text(file), function) for (file, function), _ in few)
    if len(few) < 2 or not traced or sum(ns for _, ns in few) < 1e9 * NEARLY_ALL * loop.seconds:
        return None
    names = tuple(function.replace(".<locals>", "") for (_, function), _ in few)
    how = next((h for (f, g), _ in few if (h := jit_decorators.jit_for(text(f), g)) != "jit"), "jit")
    statics = _static_in(run, [part for part, _ in few]) if how == "jit" else None
    words = message("fix-jit-functions", how=how, functions=Names(names, FEW), statics=statics)
    return Fix(words, "jit", {"functions": [*names]})


def _static_in(run: Run, functions: Sequence[tuple[str, str]]) -> Message | None:
    """Return a clause with the arguments of ``functions``, (file, function) of each, that jit must get as
    static; None if there are none."""
    static = {
        function: sizes_under_jit.python_parameters(sources.of(run)(file), function)
        for file, function in functions
    }
    if None in static.values():
        return message("python-values-static")
    of_each = [
        message("static-of", names=Names(names, LINES), function=function.replace(".<locals>", ""))
        for function, names in static.items()
        if names
    ]
    return message("named-static", names=Names(tuple(of_each)), new=None) if of_each else None


def _is_plain(source: str | None, function: str) -> bool:
    """Return whether ``function`` is no method and no lambda, and jit can probably trace it as a whole."""
    computes = line_names.computes_only(source, function) and not line_names.takes_objects(source, function)
    return computes and "." not in function.replace(".<locals>", "") and not function.endswith(">")


def _is_line_of(loop: Loop, f: Frame) -> bool:
    """Return whether ``f`` is a line of ``loop`` itself, or of a comprehension or lambda in it."""
    inside = f.file == loop.line.file and loop.line.line <= f.line <= loop.last
    return inside and (f.function == loop.line.function or f.function.endswith(">"))


def of_python(run: Run, file: str, function: str) -> Message | None:
    """Return a clause with the arguments of ``function`` in ``file`` that jit must get as static, or, if they
    are unknown, with the kinds of such arguments. None if there are none."""
    names = sizes_under_jit.python_parameters(sources.of(run)(file), function)
    if names is None:
        return message("python-values-static")
    if not names:
        return None
    made = sizes_under_jit.object_created_for(sources.of(run)(file), function, names)
    new = message("static-but-new", parameter=made[0], outer=made[1]) if made is not None else None
    return message("named-static", names=Names(names, LINES), new=new)


def part_of_method(run: Run, file: str, function: str, how: str) -> Fix | None:
    """Return the advice to move the computation of the method ``function`` of ``file``, which assigns to
    attributes, into a new function and to apply ``how`` (``jit``) to that. None if it assigns to none."""
    text, name = sources.of(run)(file), function.replace(".<locals>", "")
    written = line_names.attributes_set(text, function)
    names = Names(written, LINES)
    if not written:
        return None
    if line_names.reads_old_values(text, function):
        words = message("fix-jit-part-of-method", function=name, how=how, names=names)
    else:
        words = message("fix-jit-results-of-method", function=name, how=how, names=names)
    return Fix(words, "jit", {"function": name})


def as_a_whole(run: Run, file: str, function: str, calls: str | None = None) -> Fix | None:
    """Return the advice to jit ``function`` of ``file`` as a whole, or its computation if it is a method that
    assigns to attributes. None if it is another method or a lambda."""
    name = function.replace(".<locals>", "")
    of_method = part_of_method(run, file, function, "jit")
    if of_method is not None:
        return of_method
    if "." in function.rpartition(".<locals>.")[2] or name.endswith("<lambda>"):
        return None
    how = jit_decorators.jit_for(sources.of(run)(file), function)
    statics = of_python(run, file, function) if how == "jit" else None
    made = line_names.only_transformed(sources.of(run)(file), function)
    if made is not None and how == "jit":
        line, variable, made_by = made
        at = Frame(file, line, "")
        words = message(
            "fix-jit-transformed",
            variable=variable,
            expression=made_by,
            line=at,
            function=name,
            statics=statics,
        )
        return Fix(words, "jit", {"function": name})
    called = message("which-calls", function=calls.replace(".<locals>", "")) if calls is not None else None
    words = message("fix-jit-step-function", function=name, how=how, calls=called, statics=statics)
    return Fix(words, "jit", {"function": name})


def _jit_function(run: Run, loop: Loop, file: str, function: str, lines: Sequence[Frame]) -> Fix | None:
    """Return the advice to jit ``function`` of ``file``, which ``lines`` of ``loop`` call. None if it is
    unclear how."""
    whole = as_a_whole(run, file, function)
    if whole is not None:
        return whole
    text, name = sources.of(run), function.replace(".<locals>", "")
    if not lines:
        return None
    at = lines[0]
    if loop.calls and jit_decorators.calls(text(at.file), at.line, frozenset({name.rpartition(".")[2]})):
        return None  # a method that may belong into a function that is jitted already
    jitted = (
        jit_decorators.advice(text(at.file), at.line, None) if len({f.place for f in lines}) == 1 else None
    )
    if jitted is None or jitted.checked:
        return None
    return Fix(message("fix-jit-call-at", line=at, how=outside_jit.as_in(jitted)), "jit")
