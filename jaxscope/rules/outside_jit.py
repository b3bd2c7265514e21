"""Advice for lines that make JAX compile operations outside jit: what to jit, to create once, to pad or to
compute in NumPy (rule JX133)."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from jaxscope.analysis import growing_lists, jit_decorators, line_names, masks
from jaxscope.analysis.causes import SHAPES
from jaxscope.analysis.loop_calls import call_at, iterated, loop_from
from jaxscope.analysis.source_lines import loop_around, starred_splits
from jaxscope.model import arrays, causes, payers, sources
from jaxscope.model.arrays import Growth
from jaxscope.model.growing_args import Caused
from jaxscope.model.payers import Payer
from jaxscope.model.records import Compilation, cached_until_changed
from jaxscope.model.run import Run
from jaxscope.rules import library_calls, loop_calls, recompiles
from jaxscope.rules.line_lists import LINES, on_lines
from jaxscope.schema.causes import NewFunction
from jaxscope.schema.findings import Fix
from jaxscope.schema.keys import Frame, same_line
from jaxscope.schema.libraries import COMPUTING_ROOTS, JAX_ROOTS, LOOPS, TRACED_WHOLE, WRAPPER_ROOTS
from jaxscope.schema.messages import Field, Message, Names, message

SEVERAL = 10  # compilations of a line, or of all lines of its loop, that are worth replacing by one program
TRANSFORMS = frozenset({"vmap", "grad", "value_and_grad", "jacfwd", "jacrev", "hessian", "jvp", "vjp"})
ITERATED = "unstack"  # the operation of iterating over an array
ROWS = 4  # this many rows of an iterated array take about as long to compile as one operation
OF_SIZES = SHAPES | {"tree"}  # a list to concatenate has more arrays each time
ARGUMENTS = frozenset({"weak_type", "dtype", "tree", "committed", "sharding"})
# Libraries without JAX, which call the user's functions with NumPy arrays
PLAIN = frozenset({"scipy", "numpy"})
STEPS = frozenset({"update", "step", "init", "init_state", "evaluate"})  # methods that can be jitted
# Libraries whose objects define new functions in each run, even if the object is the same
MAKES_ANEW = frozenset({"numpyro"})
# Libraries whose functions take arrays, and no objects that jit cannot trace
OF_ARRAYS = frozenset({"blackjax"})
TRACES = frozenset({"get_trace"})  # methods that run a model's operations one by one
# The reason why the operations of a line are compiled again, as a clause
SIZES, MADE = message("because-of-sizes"), message("because-made-anew")
PARAMETERS = message("because-of-parameters")
_PARAMETERS = re.compile(r".*?\b(?:params|variables)\b")
_VECTORS = re.compile(r"['.](?:bias|scale|b|offset)'?\]?$")  # parameters without random draws
MORE_THAN_LAYERS = 5  # recompiles of one operation: the layers of one model cause fewer
MANY = 10  # recompiles because an operation's parameters change, which jit of the line would not avoid


def _of_one_cause(run: Run, repeats: list[Compilation]) -> recompiles.Group | None:
    """Return the largest group of ``repeats`` (recompiles) of one function that a library jits, and with one
    kind of cause: a change of an argument, such as its dtype. Return None if there is no such group."""
    found: dict[tuple[str, str], list[Caused]] = {}
    for c in repeats:
        cause, module = causes.of(run, c)[0], c.function.seen.module or ""
        if (
            cause.kind in ARGUMENTS
            and not c.function.seen.eager
            and module.partition(".")[0] not in JAX_ROOTS
        ):
            found.setdefault((c.function.id, cause.kind), []).append((c, cause))
    groups = [recompiles.group_of(run, members) for members in found.values()]
    return max(groups, key=lambda group: len(group.compilations), default=None)


def creates(run: Run, p: Payer) -> bool:
    """Return whether the line of ``p`` seems to create the parameters of a model: at least a quarter of its
    compilations are random draws, and all its recompiles are for other sizes."""
    for c in p.again:
        kind = causes.reason(run, c).kind
        of_size = kind == "static_value" and (c.function.seen.eager or library_calls.draws(c.function))
        if kind not in OF_SIZES and not of_size:
            return False  # the shape of a draw, or of a result, is a static value
    # jit may not help there: measured for ten models, creation took between half and 2.3 times as long with
    # jit as without (benchmarks/README.md).
    return 4 * sum(library_calls.draws(c.function) for c in p.compilations) >= len(p.compilations)


def parameters_of_one_shape(run: Run) -> float:
    """Return how many parameters of a model have one shape, on average: those with at least two axes in the
    arguments of the user's functions. Return 1 if no argument is named ``params`` or ``variables``.

    Outside jit, JAX compiles one random draw for each shape. A jitted function that creates the parameters
    compiles one for each parameter."""
    trees = dict[tuple[str, str], list[tuple[object, ...]]]()
    for c in run.compilations.values():
        for leaf in c.key.arguments if c.key is not None and c.function.user else ():
            root = _PARAMETERS.match(leaf.path or "")
            if root is not None and len(leaf.shape or ()) >= 2 and not _VECTORS.search(leaf.path or ""):
                trees.setdefault((c.id, root[0]), []).append(tuple(leaf.shape or ()))
    return max((len(shapes) / len({*shapes}) for shapes in trees.values()), default=1.0)


BARRAGE = 20  # recompiles of a line, or of a function outside jit, for a warning
RECOMPILES = "of them is a recompile", "of them are recompiles"
POWER = "integer_pow"  # the operation x ** n with a Python int n
JOINING = frozenset({"stack", "concatenate"})  # operations that join arrays
REPLICATE = frozenset({"replicate"})
MANY_ARRAYS = 500  # arrays, from which joining them in one operation takes long to compile


class Advice(NamedTuple):
    """What to do about a line that makes JAX compile operations outside jit.

    Attributes:
      reason: why the operations are compiled again; None: nothing is compiled again, or it is unknown.
      fix: the advice; None: nothing is known to help.
      seconds: the seconds of compiling that the advice saves.
    """

    reason: Message | None = None
    fix: Fix | None = None
    seconds: float = 0.0


class _Line:
    """A line that makes JAX compile operations outside jit, with what the advice depends on.

    Attributes:
      payer: the line and its compilations.
      of_jax: whether the line calls JAX, and no other library.
      repeat_seconds: the seconds of the recompiles.
      all_seconds: the seconds of all compilations; 0 if they are too few for one program to save much.
      decisive: the recompiles of whole programs (loops, library functions); all recompiles if there are none.
      created: those of ``decisive`` for which a function or object was created again.
      anew: whether ``created`` are at least half of ``decisive``.
      changing: whether the line recompiles because sizes of arrays change; False if ``anew``.
      jitted: the line's call written under jit; None: it cannot be, or is jitted already.
    """

    def __init__(self, run: Run, p: Payer, compiled: int) -> None:
        self.payer = p
        self.of_jax = p.library is None or p.library in JAX_ROOTS
        self.repeat_seconds = sum(c.seconds for c in p.again)
        again = {c.id for c in p.again}
        jitted_too = [c for c in p.compilations if c.function.seen.name in LOOPS and c.id not in again]
        most = p.seconds - sum(c.seconds for c in jitted_too)  # jit compiles each loop once, too
        self.all_seconds = most if compiled >= SEVERAL else 0.0
        self.decisive = library_calls.whole_programs(p.again)
        self.created = [c for c in self.decisive if causes.created_again(run, c)]
        self.anew = 2 * len(self.created) >= len(self.decisive) > 0
        self.changing = not self.anew and payers.sizes_change(run, p)
        of_equinox = library_calls.makes_equinox_modules(run, p.library)
        source, n = sources.of(run)(p.line.file), p.line.line
        jitted = jit_decorators.advice(source, n, p.library, of_equinox=of_equinox, column=_longest_column(p))
        # If the call is jitted already, the operations are in its arguments.
        self.jitted = jitted if jitted is not None and not _is_jitted(run, p.line, jitted) else None


def _longest_column(p: Payer) -> int | None:
    """Return the column of the expression on the line of ``p`` that took most of the seconds of compiling;
    None if unknown."""
    seconds = Counter[int]()
    for c in p.compilations:
        if c.missed is not None and c.missed.column is not None:
            seconds[c.missed.column] += round(1e9 * c.seconds)
    return next((column for column, _ in seconds.most_common(1)), None)


def what_to_do(run: Run, p: Payer, compiled: int) -> Advice:
    """Return what to do about the line ``p``, which makes JAX compile operations outside jit. ``compiled`` is
    the number of compilations of all lines of the loop in which the line is, or of the line alone if it is in
    no loop."""
    line = _Line(run, p, compiled)
    if replicates(run, p):
        fix = Fix(message("fix-place-replicas"), "device_put")
        return Advice(None, fix, sum(c.seconds for c in p.compilations))
    found = _many_arrays(run, line) or _iterated_array(run, line) or _changed_argument(run, line)
    if found is not None:
        return found
    if line.of_jax:
        return _body_or_sizes(run, line) or _jit_the_call(run, line)
    of_objects = _created_anew(run, line)
    if of_objects is not None:
        return of_objects
    return _jit_the_call(run, line) if p.library in TRACED_WHOLE else _for_library(run, line)


def replicates(run: Run, p: Payer) -> bool:
    """Return whether the line of ``p`` calls ``replicate`` of Flax, which compiles a program for each shape
    of an array."""
    return p.library == "flax" and jit_decorators.calls(sources.of(run)(p.line.file), p.line.line, REPLICATE)


def _many_arrays(run: Run, line: _Line) -> Advice | None:
    """Return the advice for a line that joins many arrays in one operation, if compiling this operation is
    most of its time. The time grows with the square of the number of arrays."""
    p = line.payer
    joined = [
        c
        for c in p.compilations
        if c.function.seen.name in JOINING and c.key is not None and len(c.key.arguments) >= MANY_ARRAYS
    ]
    if not joined or 2 * sum(c.seconds for c in joined) < p.seconds:
        return None
    call = jit_decorators.joining_call(sources.of(run)(p.line.file), p.line.line)
    largest = max(len(c.key.arguments) for c in joined if c.key is not None)
    with_numpy = message("joined-with-numpy", call=call) if call is not None else None
    words = message("fix-join-many", n=largest, call=with_numpy)
    return Advice(None, Fix(words, "numpy"), sum(c.seconds for c in joined))


def _iterated_array(run: Run, line: _Line) -> Advice | None:
    """Return the advice for a line that iterates over a JAX array, if this is most of what it compiles."""
    p = line.payer
    unstacked = [c for c in p.compilations if c.function.seen.name == ITERATED]
    if not unstacked or _is_transformed(run, p.line):
        return None
    # Under vmap, a traced function iterates, not the line. Under a gradient, NumPy cannot convert the array.
    if _calls(run, p, TRANSFORMS) and _iterated(run, p, unstacked) is None:
        return None
    if _rows(unstacked) < ROWS * (len(p.compilations) - len(unstacked)):
        return None
    fix = _instead_of_iterating(run, p, unstacked)
    return Advice(SIZES if line.changing else None, fix, sum(c.seconds for c in unstacked))


def _changed_argument(run: Run, line: _Line) -> Advice | None:
    """Return the advice for a line most of whose recompiles have one cause, a change of an argument."""
    group = _of_one_cause(run, line.payer.again)
    if group is None or 2 * len(group.compilations) < len(line.decisive):
        return None
    # Later ones may follow from the first.
    first = recompiles.group_of(run, [(group.compilations[0], group.causes[0])])
    fix = recompiles.as_passed(run, first, recompiles.advice(first))
    return Advice(message("because-of-cause", cause=first.cause), fix, line.repeat_seconds)


def _body_or_sizes(run: Run, line: _Line) -> Advice | None:
    """Return the advice for a line that compiles functions of JAX again, because it defines the body of a
    loop anew, or because sizes or parameters change."""
    p = line.payer
    if line.anew:
        where = None if p.line.function == "<module>" else p.line.function.replace(".<locals>", "")
        caller = next((c.lines[1] for c in reversed(line.created) if len(c.lines) > 1), None)
        text = sources.of(run)
        new = caller and jit_decorators.function_made_for(
            text(p.line.file), p.line.function, text(caller.file), caller.line
        )
        if where is not None and new:
            making = message("fix-jit-making-function", line=caller, parameter=new, function=where)
            return Advice(_new_bodies(line), Fix(making, "jit"), line.repeat_seconds)
        is_method = "." in p.line.function.rpartition("<locals>.")[2]
        method = message("self-static") if is_method else None
        words = message("fix-jit-around-body", function=where or message("function-around"), method=method)
        return Advice(_new_bodies(line), Fix(words, "jit"), line.repeat_seconds)
    if line.changing and not p.within:
        return Advice(SIZES, _one_size(run, p), line.repeat_seconds)
    if not p.within and _other_parameters(run, p):
        whole = _where_for_mask(run, p) or Fix(message("fix-one-size-or-numpy"), "pad")
        if sum(c.function.seen.name == POWER for c in p.again) * 2 >= len(p.again):
            whole = Fix(message("fix-exponent"), "asarray")
        return Advice(PARAMETERS, whole, line.repeat_seconds)
    return None


def _new_bodies(line: _Line) -> Message:
    """Return the reason of the recompiles of ``line``: each call of a loop or a branch of JAX, such as scan,
    gets a new function object."""
    names = (c.function.seen.name for c in line.created)
    loops = dict.fromkeys("while_loop or fori_loop" if name == "while" else name for name in names)
    return message("because-of-bodies", loops=Names(tuple(loops), 3))


def _created_anew(run: Run, line: _Line) -> Advice | None:
    """Return the advice for a line that calls a library with a new object each time, such as a solver, or
    whose library creates one in each call."""
    p = line.payer
    if not line.anew:
        return None
    if payers.repeated_by_library(run, p):
        fix, seconds = library_calls.cache_programs(run, p)
        return Advice(message("because-library-makes-anew", library=p.library), fix, seconds)
    paths = (causes.of(run, c)[0].path for c in line.created)
    objects = [path for path in paths if path is not None and path[0] != "_"]  # none that the library hides
    if not objects:
        return None
    return Advice(MADE, _make_once(run, p, line.created, objects[-1]), line.repeat_seconds)


def _jit_the_call(run: Run, line: _Line) -> Advice:
    """Return the advice to jit what the line calls, or the user's function around it."""
    p, jitted = line.payer, line.jitted
    if p.within and not line.of_jax and not (jitted is not None and jitted.checked):
        # Other sizes may be those of the layers that one call makes.
        functions = len({c.function.id for c in p.again})
        several = line.changing and len(p.again) >= MORE_THAN_LAYERS * functions
        pad = message("and-pad-arguments") if several else None
        words = message("fix-jit-through-library", how=as_in(jitted), pad=pad)
        seconds = line.repeat_seconds if several else line.all_seconds
        return Advice(SIZES if several else None, Fix(words, "jit"), seconds)
    reason = _new_bodies(line) if line.anew and not p.within else None
    return Advice(reason, Fix(_jit(run, p, jitted), "jit"), line.all_seconds)


def _calls(run: Run, p: Payer, names: frozenset[str]) -> bool:
    """Return whether the line of ``p`` calls a function or a method with one of ``names``."""
    return jit_decorators.calls(sources.of(run)(p.line.file), p.line.line, names)


def _is_jitted(run: Run, line: Frame, jitted: jit_decorators.Jitted) -> bool:
    """Return whether the call of ``line`` that ``jitted`` shows under jit calls a jitted function already."""
    for c in run.compilations.values():
        if c.function.user and c.site is not None and c.missed is not None and same_line(c.site, line):
            call = call_at(sources.of(run)(line.file), line.line, c.missed.column, c.function.seen.name)
            if call is not None and jitted.jits(ast.unparse(call)):
                return True
    return False


def _is_transformed(run: Run, line: Frame) -> bool:
    """Return whether a compilation shows that the function that contains ``line`` also runs under ``grad``,
    ``vmap`` or another transform."""
    around = {
        (at.file, at.line)
        for c in run.compilations.values()
        for k, inner in enumerate(c.lines)
        if (inner.file, inner.function) == (line.file, line.function)
        for at in c.lines[k + 1 :]
    }
    return any(
        jit_decorators.calls_transformed(sources.of(run)(file), n, TRANSFORMS) for file, n in sorted(around)
    )


def _one_size(run: Run, p: Payer) -> Fix:
    """Return the advice for the line of ``p``, which recompiles because sizes of arrays change."""
    joined = growing_lists.only_joined(sources.of(run)(p.line.file), p.line.line)
    if joined is not None:
        words = message("fix-collect-in-list", name=joined.name, value=joined.value, joined=joined.joined)
        return Fix(words, "list", {"name": joined.name})
    text = sources.of(run)(p.line.file)
    grown = next(
        (g for g in lengthened(run) if made_at(g, p) and growing_lists.extends_itself(text, g.group.path)),
        None,
    )
    path = grown.group.path if grown is not None else _lengthened_by_loop(run, p)
    if path is None:
        return _where_for_mask(run, p) or Fix(message("fix-one-size-or-numpy"), "pad")
    return Fix(message("fix-final-length", path=path), "preallocate", {"path": path})


def _lengthened_by_loop(run: Run, p: Payer) -> str | None:
    """Return the variable that a loop makes longer in each iteration, if the loop runs the line of ``p``.
    None if the source shows none."""
    text = sources.of(run)
    lines = p.again[-1].lines if p.again else ()
    return next((name for at in lines if (name := growing_lists.lengthened_by(text(at.file), at.line))), None)


def _where_for_mask(run: Run, p: Payer) -> Fix | None:
    """Return the advice to compute all elements, with ``jnp.where``, for the line of ``p``; None if it does
    not select elements with a mask."""
    whole = masks.without_selection(sources.of(run)(p.line.file), p.line.line)
    if whole is None:
        return None
    new = message("new-of-shape", array=whole.array) if whole.new else None
    ranks = message("mask-of-rank", mask=whole.mask, array=whole.array) if whole.array else None
    words = message("fix-where-for-mask", whole=whole.text, mask=whole.mask, new=new, ranks=ranks)
    return Fix(words, "where", {"expression": whole.text})


def _make_once(run: Run, p: Payer, created: Sequence[Compilation], path: str) -> Fix:
    """Return the advice to create the object ``path``, which the line of ``p`` passes to a library, only
    once. ``created`` are the recompiles for which the object was created again."""
    given_to = library_calls.package_of(created, p.library)
    details = (causes.of(run, c)[0].detail for c in reversed(created))
    made = next((d.line for d in details if isinstance(d, NewFunction) and d.line is not None), None)
    at = message("that-line-creates", line=made) if made is not None else None
    words = message("fix-make-object-once", path=path, made=at, library=given_to)
    return Fix(words, "make_once", {"path": path})


def _other_parameters(run: Run, p: Payer) -> bool:
    """Return whether the line of ``p`` runs one or two operations that recompile at least MANY times because
    their parameters change: the shape in ``jnp.zeros(n)``, the width in ``jnp.pad(x, n)``."""
    changed = [c for c in p.again if causes.reason(run, c).kind == "static_value"]
    operations = {c.function.seen.name for c in p.again}
    return len(changed) >= MANY and 2 * len(changed) >= len(p.again) and len(operations) <= 2


def _instead_of_iterating(run: Run, p: Payer, unstacked: Sequence[Compilation]) -> Fix:
    """Return the advice for the line of ``p``, which iterates over a JAX array. ``unstacked`` are the
    operations that split the array into rows."""
    by = Counter(c.missed.library for c in unstacked if c.missed is not None).most_common(1)[0][0]
    if by is not None and by not in JAX_ROOTS:
        return Fix(message("fix-give-numpy", library=by), "numpy")
    splits = starred_splits(sources.of(run)(p.line.file))
    if p.line.line in splits:
        key, first, others, number = splits[p.line.line]
        same = tuple(str(n) for n in splits if n != p.line.line)
        alike = message("same-on-lines", where=on_lines(Names(same, LINES, "lines"))) if same else None
        words = message("fix-split-twice", key=key, first=first, others=others, n=number, same=alike)
        return Fix(words, "split_key")
    # np.asarray fails on typed keys, which JAX takes apart as the numbers that they consist of.
    if any(loop_calls.has_key(c) for c in unstacked) and _has_typed_keys(run):
        return Fix(message("fix-iterate-keys"), "fold_in")
    over = _iterated(run, p, unstacked)
    words = message("fix-iterate-numpy", array=over) if over else message("fix-iterate-numpy-arrays")
    return Fix(words, "numpy")


@cached_until_changed
def _has_typed_keys(run: Run) -> bool:
    """Return whether a call of the run has a typed key (``jax.random.key``) as an argument."""
    return any(loop_calls.has_typed_key(c) for c in run.compilations.values())


def _jit(run: Run, p: Payer, jitted: jit_decorators.Jitted | None) -> Message:
    """Return advice on what to jit for the line of ``p``: the function ``jitted`` that the line calls; if it
    is None, all that the line computes."""
    source, n = sources.of(run)(p.line.file), p.line.line
    if jitted is None and (passed := jit_decorators.new_function_passed(source, n)) is not None:
        return message("fix-jit-with-definition", name=passed[0], outer=passed[1])
    method = _method_of_model(run, p) if jitted is None else None
    if method is not None:
        return method
    if jitted is None:
        here = message("this-line")
        return message(
            "fix-jit-around" if not p.within else "fix-jit-around-call", lines=here, inside=_inside(p)
        )
    new = line_names.defined_in_loop(source, n)
    beside = line_names.defined_beside(source, n)
    if new is None and beside is not None and not jitted.checked:
        name, outer, captured = beside
        also = _as_arguments(captured)
        return message("fix-jit-local-function", name=name, outer=outer, captured=also, how=as_in(jitted))
    if new is None:
        repeated = loop_around(source, n) is not None
        before = message("before-the-loop") if repeated and not jitted.checked else None
        return message("fix-jit-this-call", before=before, how=as_in(jitted))
    name, captured = new
    also = _as_arguments(captured)
    return message("fix-jit-new-function", name=name, captured=also, how=as_in(jitted))


def _method_of_model(run: Run, p: Payer) -> Message | None:
    """Return the advice to jit the method that contains the line of ``p``, if it is a method of a module of
    Equinox or nnx, whose arguments can be modules. None otherwise."""
    name = p.line.function
    library = line_names.module_library(sources.of(run)(p.line.file), name)
    if library not in ("equinox", "flax.nnx"):
        return None
    how, function = jit_decorators.MODULES[library.partition(".")[0]], name.replace(".<locals>", "")
    return message("fix-jit-step-function", function=function, how=how, calls=None, statics=None)


def _as_arguments(captured: Sequence[str]) -> Message | None:
    arguments = "an argument" if len(captured) == 1 else "arguments"
    return (
        message("with-as-arguments", names=Names(tuple(captured)), arguments=arguments) if captured else None
    )


def _iterated(run: Run, p: Payer, unstacked: Sequence[Compilation]) -> str | None:
    """Return the expression over which the line of ``p`` iterates, as source (``keys``); None: unknown, or
    several. ``unstacked`` are the operations that split the array into rows."""
    columns = {c.missed.column for c in unstacked if c.missed is not None}
    return iterated(sources.of(run)(p.line.file), p.line.line, columns.pop()) if len(columns) == 1 else None


def lengthened(run: Run) -> list[Growth]:
    """Return the arrays that became longer from snapshot to snapshot of the live arrays."""
    return [g for g in arrays.growing(run) if not g.more_arrays]


def made_at(g: Growth, p: Payer) -> bool:
    """Return whether the growing arrays ``g`` were created at the line of ``p``."""
    return same_line(g.group.origin, p.line)


def _rows(unstacked: Sequence[Compilation]) -> int:
    """Return the total number of rows of the arrays that the operations ``unstacked`` split into rows."""
    shapes = [leaf.shape for c in unstacked for leaf in (c.key.arguments if c.key is not None else ())]
    return sum(shape[0] for shape in shapes if shape and isinstance(shape[0], int))


def _inside(p: Payer) -> Message | None:
    """Return a clause with the function of the user that contains the line of ``p``; None if the line is not
    in a function."""
    name = ".".join(part for part in p.line.function.split(".") if not part.startswith("<"))
    return message("inside-function", function=name) if name else None


def as_in(jitted: jit_decorators.Jitted | None) -> Message | None:
    """Return a clause that shows the line's call, ``jitted``, under jit: ``: jitted = jax.jit(f)``, or for
    ``check_grads`` the whole call. Return None if ``jitted`` is None, because the line has no such call."""
    if jitted is None:
        return None
    if jitted.checked:
        return message("as-in", call=jitted.call)
    given = "static_arg" in jitted.function
    statics = message("and-more-statics" if given else "with-statics") if jitted.statics_unknown else None
    return message("jitted-once", function=jitted.function, statics=statics)


def _like_earlier_ones(run: Run, p: Payer) -> list[Compilation]:
    """Return those compilations of ``p`` that repeat earlier work: the line had compiled the same operations
    before, for a function of the same name. If the operations are unknown, each recompile counts."""
    seen: set[tuple[str, frozenset[tuple[str, int]]]] = set()
    found = []
    for c in p.compilations:
        read = run.stablehlo(c)
        if read is None:
            found += [c] if c in p.again else []
            continue
        kind = c.function.display_name, frozenset(read.op_counts.items())
        found += [c] if kind in seen else []
        seen.add(kind)
    return found


def _called_back(p: Payer) -> str | None:
    """Return the name of the user's function that a library calls back from the line of ``p``; of several,
    the function in which most operations are compiled. None if there is none."""
    functions = Counter[str]()
    for c in p.compilations:
        at = c.missed.into_library if c.missed is not None else None
        if at and c.missed is not None and c.site is not None:
            functions[c.lines[at - 1].function] += 1
    name = functions.most_common(1)[0][0] if functions else None
    return name.replace(".<locals>", "") if name is not None else None


def _method_called(run: Run, p: Payer) -> tuple[Field, Field]:
    """Return the object and the method that the line of ``p`` calls, as source: ``solver`` and
    ``solver.run``. If they are unknown, or the object is no variable, return the messages ``the object`` and
    ``its method``. Of several calls, that with the most recompiles counts."""
    columns = Counter(c.missed.column for c in p.again if c.missed is not None)
    column = columns.most_common(1)[0][0] if columns else None
    call = call_at(sources.of(run)(p.line.file), p.line.line, column, "")
    if call is None or not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return message("the-object"), message("its-method")
    return call.func.value.id, ast.unparse(call.func)


def _for_library(run: Run, line: _Line) -> Advice:
    """Return the advice for a line that calls a library that jit cannot trace as a whole."""
    p, reason = line.payer, SIZES if line.changing else None
    if p.library in MAKES_ANEW and _calls(run, p, TRACES):
        fix = Fix(message("fix-trace-draws"), "jit")
        return Advice(reason, fix, line.all_seconds or line.repeat_seconds)
    if p.library in MAKES_ANEW and (line.anew or line.changing):
        return _new_runs(run, line)
    called = _called_back(p) if p.library in PLAIN else None
    if called is not None:
        pad = message("and-pad-inside") if line.changing else None
        words = message("fix-jit-called-back", library=p.library, function=called, pad=pad)
        return Advice(reason, Fix(words, "jit"), line.repeat_seconds if p.again else line.all_seconds)
    if line.changing and p.library in COMPUTING_ROOTS:
        words = message("fix-one-size-for-library", library=p.library)
        return Advice(SIZES, Fix(words, "pad"), line.repeat_seconds)
    of_method = message("fix-jit-method", how=as_in(line.jitted), library=p.library)
    if p.library in COMPUTING_ROOTS and _calls(run, p, STEPS):
        return Advice(MADE if line.anew else None, Fix(of_method, "jit"), line.all_seconds)
    source, n = sources.of(run)(p.line.file), p.line.line
    calls_function = line.jitted is not None and jit_decorators.calls_function_of(source, n, p.library or "")
    if calls_function and (line.anew or p.library in OF_ARRAYS) and _can_be_jitted(run, line):
        return Advice(None, Fix(of_method, "jit"), line.all_seconds)
    if line.anew:
        object, call = _method_called(run, p)
        words = message("fix-make-once", object=object, call=call, library=p.library)
        return Advice(MADE, Fix(words, "make_once"), line.repeat_seconds)
    if p.library in WRAPPER_ROOTS:
        return Advice()
    if not library_calls.computes(run, p.library):
        words = message("fix-numpy-or-jit", library=p.library)
        if isinstance(loop_from(source, n), ast.For):  # the loop goes through an object of the library
            words = message("fix-numpy-for-loop", library=p.library)
        return Advice(None, Fix(words, "numpy"), line.all_seconds)
    return Advice(None, Fix(of_method, "jit"), line.all_seconds) if _can_be_jitted(run, line) else Advice()


def _new_runs(run: Run, line: _Line) -> Advice:
    """Return the advice for a line that starts a library's run again and again. In each run, the library
    defines new functions, even if its object is the same."""
    p = line.payer
    seconds = line.repeat_seconds
    if not line.changing:
        seconds = sum(c.seconds for c in _like_earlier_ones(run, p))
    if not seconds:
        return Advice()  # each call runs another model
    padded = message("fix-pad-first") if payers.sizes_change(run, p) else None
    words = message("fix-jit-around-run", first=padded, library=p.library)
    return Advice(SIZES if line.changing else MADE, Fix(words, "jit"), seconds)


def _can_be_jitted(run: Run, line: _Line) -> bool:
    """Return whether jit may be able to trace the function of a library that the line calls."""
    p = line.payer
    # Else the line creates an object of the library, or computes an attribute of one.
    calls = jit_decorators.calls_a_function(sources.of(run)(p.line.file), p.line.line)
    if not calls or library_calls.jits_itself(p):
        return False
    reads = line.jitted is not None and library_calls.reads_values(run, p.line, line.jitted)
    return not reads  # jit cannot trace a function that reads values
