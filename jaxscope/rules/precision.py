"""Rules JX302 to JX306 about precision: conversions from half precision, float64, sums in half precision,
tolerances that float32 does not resolve, and numbers that become equal in float32."""

from __future__ import annotations

import ast
import re
from collections.abc import Hashable, Iterator, Sequence

from jaxscope.analysis import key_reuse, line_names
from jaxscope.analysis.avals import short_dtype
from jaxscope.analysis.jit_decorators import names_of
from jaxscope.analysis.loop_calls import root
from jaxscope.analysis.paths import root as argument
from jaxscope.analysis.programs import Texts
from jaxscope.analysis.source_lines import in_a_loop, widens
from jaxscope.analysis.stablehlo.matmuls import Product
from jaxscope.analysis.stablehlo.precision import Doubles, Upcast
from jaxscope.analysis.syntax import last_name, spans, syntax
from jaxscope.model import sources
from jaxscope.model.records import Compilation, Function, Program
from jaxscope.model.run import Run
from jaxscope.rules import arguments, recompiles
from jaxscope.rules.each_program import users
from jaxscope.rules.finding_parts import MIB, MOST, about, at_line, small
from jaxscope.rules.line_lists import on_lines
from jaxscope.rules.random_keys import functions_that_ran
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.keys import Frame
from jaxscope.schema.messages import Bytes, Count, Field, Message, Names, Percent, message

MERGED = 0.02  # share of the examined numbers that are lost in a conversion: fewer are no finding
HALF = frozenset({"bf16", "f16", "bfloat16", "float16"})
# GPUs that compute float64 at half the rate of float32 or faster, by the data sheets of their makers
FULL_DOUBLES = re.compile(r"\b(P100|V100|A100|A30|A800|H100|H200|H800|GH200|B200|GB200|MI[123]\d\d\w?)\b")
SPREADS = 3  # if at least this many lines have matrix products in a wider type, one cause is assumed
# dtype -> 2 to the number of its significant bits. If a sum of equal numbers is this many times as large as
# one of them, adding one more does not change it: half the distance to the next number is rounded to even.
STANDS_STILL = {"bfloat16": 256, "float16": 2048}
ROUNDING = 2**-24  # the largest relative error of a number that is rounded to float32
SOLVERS = frozenset({"jax", "diffrax", "optimistix", "lineax"})  # packages with relative tolerances
RELATIVE = {"cg": "tol", "gmres": "tol", "bicgstab": "tol"}  # parameters other than rtol
COMPARISONS = frozenset({"allclose", "isclose"})


@rule("JX302", "upcast", NOTE)
def upcast(run: Run) -> Iterator[Finding]:
    """Yield findings about conversions from half precision that the user's line does not request, or one for
    each function if they spread to its matrix products."""
    seen = set[Hashable]()  # the same line in train_step and in eval_step is reported once
    for p, f, texts in users(run):
        accidental = [u for u in _upcasts(texts) if not _is_requested_here(run, u)]
        if (spread := _spread(p, f, texts, accidental) or _in_both(f, texts, accidental)) is not None:
            text, begins = spread
            if (begins.source, SPREADS) not in seen:
                seen.add((begins.source, SPREADS))
                yield _spread_finding(run, p, f, text, begins)
            continue
        for u in accidental:
            if u.bytes is None or u.bytes < max(MIB // 16, small(p)):
                continue
            subject = (u.source, u.before, u.after, u.bytes)
            if u.source is not None and subject in seen:
                continue
            seen.add(subject)
            text = message(
                "upcast", function=f.display_name, bytes=Bytes(u.bytes), before=u.before, after=u.after
            )
            fix = Fix(message("fix-cast-down"), "cast", {"dtype": u.before})
            yield Finding("JX302", NOTE, CERTAIN, **about(p, f, text, u.source), fix=fix, subject=subject)


def _upcasts(texts: Texts) -> list[Upcast]:
    """Return the conversions from half precision (bfloat16, float16) to a wider dtype in the program, without
    those that differentiation created and those whose wider values are only reduced or converted back."""
    found = texts.stablehlo.upcasts if texts.stablehlo is not None else ()
    return [u for u in found if u.before in HALF and u.wide_from is not None and not u.backward]


def _is_requested_here(run: Run, u: Upcast) -> bool:
    return u.source is not None and widens(sources.of(run)(u.source.file), u.source.line)


def _spread(
    p: Program, f: Function, texts: Texts, upcasts: Sequence[Upcast]
) -> tuple[Message, Upcast] | None:
    """Return (title, conversion) about matrix products in the program ``p`` of ``f`` that run in a wider
    dtype because an operand is converted on their line. The conversion is the first of ``upcasts`` in the
    program, where the wide values probably begin. If all conversions are on lines with such products, the
    title names the wide arguments. Return None if the products are on fewer than SPREADS lines."""
    converted = {u.source: u for u in upcasts if u.source is not None}
    wide = {short_dtype(u.after) for u in upcasts}
    products = [
        q
        for q in (texts.stablehlo.products if texts.stablehlo is not None else ())
        if q.source in converted and q.dtypes[0] in wide
    ]
    at = {q.source for q in products}
    if len(at) < SPREADS:
        return None
    before = [u for source, u in converted.items() if source not in at]
    begins = min(converted.values(), key=lambda u: u.wide_from or 0)
    weights = () if before else _matrices(p, begins.after)
    why = message("earlier-mixes", before=begins.before, after=begins.after)
    if weights:
        why = message("arguments-are-wide", paths=Names(weights, MOST), dtype=begins.after)
    text = message(
        "upcast-spreads",
        function=f.display_name,
        why=why,
        products=Count(sum(q.count for q in products), "matrix product"),
        before=begins.before,
        after=begins.after,
        lines=_numbers(products),
    )
    return text, begins


def _matrices(p: Program, dtype: str) -> tuple[str, ...]:
    """Return the arguments of ``p`` that are matrices of ``dtype``, or contain some. Optimizer states
    are left out; they are recognized by their names."""
    key = p.compilations[-1].key
    leaves = key.arguments if key is not None else ()
    wide = [leaf.path for leaf in leaves if leaf.dtype == dtype and leaf.path and len(leaf.shape or ()) > 1]
    return tuple(name for name in dict.fromkeys(map(argument, wide)) if "opt" not in name)


def _in_both(f: Function, texts: Texts, upcasts: Sequence[Upcast]) -> tuple[Message, Upcast] | None:
    """Return (title, conversion) about lines of ``f`` that multiply matrices both in half precision and in a
    wider dtype. The conversion is the largest of ``upcasts``; its own line does not count. Return None if
    there are no such lines, or if the line of the conversion is unknown."""
    begins = max(upcasts, key=lambda u: u.bytes or 0, default=None)
    found = texts.stablehlo.products if texts.stablehlo is not None else ()
    if begins is None or begins.source is None:
        return None
    half, wide = short_dtype(begins.before), short_dtype(begins.after)
    lines = {q.source for q in found if q.dtypes[:2] == (half, half)} - {None, begins.source}
    products = [q for q in found if q.source in lines and q.dtypes[:2] == (wide, wide)]
    if not products:
        return None
    text = message(
        "upcast-of-some",
        function=f.display_name,
        before=begins.before,
        after=begins.after,
        where=on_lines(_numbers(products)),
    )
    return text, begins


def _numbers(products: Sequence[Product]) -> Names:
    numbers = tuple(dict.fromkeys(str(q.source.line) for q in products if q.source is not None))
    return Names(numbers, MOST, "lines")


def _spread_finding(run: Run, p: Program, f: Function, text: Message, begins: Upcast) -> Finding:
    at = begins.source
    where = message("on-line", line=str(at.line)) if at is not None else "here"
    words = message("fix-cast-where-it-begins", wide=begins.after, dtype=begins.before, where=where)
    call = line_names.numpy_call(sources.of(run)(at.file), at.line) if at is not None else None
    if call is not None:
        words = message("fix-numpy-number", call=call, wide=begins.after, dtype=begins.before)
    why = text.fields.get("why")
    if isinstance(why, Message) and why.slug == "arguments-are-wide":
        words = message("fix-cast-arguments", dtype=begins.after, half=begins.before)
    fix = Fix(words, "cast", {"dtype": begins.before})
    severity = NOTE if run.platform == "cpu" else WARNING  # half precision is no faster on a CPU
    return Finding("JX302", severity, LIKELY, **about(p, f, text, at), fix=fix, subject=(at,))


@rule("JX303", "float64", WARNING)
def float64(run: Run) -> Iterator[Finding]:
    """Yield findings about lines that make programs compute in float64. Where float64 is fast, programs for
    which the user seems to want it are left out."""
    programs = list(users(run))
    slower = run.platform != "cpu" and not all(d.kind and FULL_DOUBLES.search(d.kind) for d in run.devices)
    mixed = any({*_floats(p)} - {"float64"} for p, _, _ in programs)
    returned = {
        group.function.id
        for group in recompiles.groups(run, ("dtype",))
        if group.came_back and arguments.dtype_of(group.cause.after) == "float64"
    }
    found = dict[Frame | str, tuple[Program, Function, Doubles, Frame | None]]()  # the largest, by line
    for p, f, texts in programs:
        doubles = texts.stablehlo.doubles if texts.stablehlo is not None else None
        if doubles is None or not doubles.operations:
            continue
        if not slower and _is_requested(p, mixed=mixed):
            continue
        if f.id in returned:
            continue  # JX102 reports it, with the reason
        source = _first_double(p, texts)
        known = found.get(source or f.id)
        if known is None or known[2].operations < doubles.operations:
            found[source or f.id] = p, f, doubles, source
    for p, f, doubles, source in found.values():
        paths = tuple(a for a in doubles.arguments if a)
        text = message(
            "float64",
            function=f.display_name,
            operations=Count(doubles.operations, "operation"),
            arguments=message("float64-arguments", paths=Names(paths, MOST)) if paths else None,
        )
        what = Names(paths, MOST) if paths else message("float64-at-this-line")
        fix = Fix(message("fix-float32", what=what), "cast", {"dtype": "float32"})
        severity = NOTE if _is_requested(p, mixed=mixed) else WARNING
        yield Finding("JX303", severity, CERTAIN, **about(p, f, text, source), fix=fix)


def _is_requested(p: Program, *, mixed: bool) -> bool:
    """Return whether the user seems to want float64 in the program ``p``: all its floating-point arguments
    are float64, or it has none and no program of the run takes other floats.

    Args:
      mixed: whether a program of the run takes floats other than float64.
    """
    floats = _floats(p)
    return floats == {"float64"} or (not floats and not mixed)


def _floats(p: Program) -> set[str]:
    """Return the dtypes of the floating-point arguments of ``p``."""
    key = p.compilations[-1].key
    return {leaf.dtype for leaf in key.arguments if leaf.dtype and "float" in leaf.dtype} if key else set()


def _first_double(p: Program, texts: Texts) -> Frame | None:
    """Return the line that makes the program ``p`` compute in float64: a line that converts another float to
    float64, else a line whose operation makes float64 values. Return the line of the call if none is known.
    ``texts`` are the analyzed texts of ``p``."""
    read, call = texts.stablehlo, p.compilations[-1].site
    if read is None or read.doubles is None:
        return call
    converted = [u.source for u in read.upcasts if u.after in ("f64", "float64") and not u.backward]
    # JAX gives the constants of a program the line of its call.
    made = [o.source for o in read.doubles.origins]
    at_call = call.place if call is not None else None
    inside = (at for at in (*converted, *made) if at is not None and at.place != at_call)
    return next(inside, call)


@rule("JX304", "half-precision-sum", WARNING)
def half_precision_sum(run: Run) -> Iterator[Finding]:
    seen: set[Frame] = set()
    for c in run.compilations.values():
        dtype = _added_in_half(c)
        if dtype is None or c.site is None or c.site in seen:
            continue
        total = _added_up(sources.of(run)(c.site.file), c.site.line)
        if total is None:
            continue
        seen.add(c.site)
        text = message("half-precision-sum", total=total, dtype=dtype, times=STANDS_STILL[dtype])
        yield Finding(
            code="JX304",
            severity=WARNING,
            certainty=LIKELY,
            **at_line(text, c.site, c),
            fix=Fix(message("fix-add-in-float32", total=total), "cast", {"dtype": "float32"}),
            subject=(c.site,),
        )


def _added_in_half(c: Compilation) -> str | None:
    """Return the dtype, ``bfloat16`` or ``float16``, if ``c`` is an addition outside jit of two arrays of
    this dtype. Return None if ``c`` is another operation, or the dtypes are others."""
    if c.function.user or c.function.seen.name not in ("add", "_add") or c.key is None:
        return None
    dtypes = [leaf.dtype for leaf in c.key.arguments]
    return next((d for d in STANDS_STILL if dtypes == [d, d]), None)


def _added_up(source: str | None, line: int) -> str | None:
    """Return the variable to which ``line``, in a loop, adds something: ``total`` for ``total = total + x``
    and for ``total += x``. Return None if the line adds to no variable, or is not in a loop."""
    if not in_a_loop(source, line):
        return None
    for n in ast.walk(syntax(source).tree):
        if isinstance(n, (ast.Assign, ast.AugAssign)) and spans(n, line):
            if isinstance(n, ast.AugAssign):
                return ast.unparse(n.target) if isinstance(n.op, ast.Add) else None
            if isinstance(n.value, ast.BinOp) and isinstance(n.value.op, ast.Add) and len(n.targets) == 1:
                target = ast.unparse(n.targets[0])
                if target in (ast.unparse(n.value.left), ast.unparse(n.value.right)):
                    return target
    return None


@rule("JX305", "tolerance-below-precision", WARNING)
def tolerance_below_precision(run: Run) -> Iterator[Finding]:
    wide = {
        file
        for p, f, texts in users(run)
        if _has_float64(p, texts)
        for file in (f.seen.file, *(c.site.file for c in p.compilations if c.site is not None))
    }
    for file, functions in functions_that_ran(run).items():
        source = sources.of(run)(file)
        found = syntax(source)
        if file in wide:
            continue
        solvers, ran = names_of(found.imports, SOLVERS), key_reuse.called_in(source, functions)
        for call in (c for c in found.all_calls() if root(c.func) in solvers):
            given = _relative_tolerance(call)
            function = key_reuse.name_around(found, call.lineno)
            if given is None or not 0 < given[1] < ROUNDING or function not in ran:
                continue
            parameter, value = given
            at = Frame(file, call.lineno, function)
            text = message("tolerance-below-precision", parameter=f"{parameter}={value:g}")
            yield Finding(
                code="JX305",
                severity=WARNING,
                certainty=LIKELY,
                **at_line(text, at),
                fix=Fix(
                    message("fix-larger-tolerance", parameter=parameter),
                    "larger_tolerance",
                    {"name": parameter},
                ),
                subject=(file, call.lineno),
            )


def _has_float64(p: Program, texts: Texts) -> bool:
    doubles = texts.stablehlo.doubles if texts.stablehlo is not None else None
    return "float64" in _floats(p) or (doubles is not None and bool(doubles.operations))


def _relative_tolerance(call: ast.Call) -> tuple[str, float] | None:
    """Return (parameter, value) of the relative tolerance that ``call`` passes as a number: ``("rtol",
    1e-9)``. Return None if it passes none, or only compares arrays (``allclose``)."""
    name = last_name(call.func)
    if name in COMPARISONS:
        return None
    wanted = RELATIVE.get(name or "", "rtol")
    for k in call.keywords:
        if k.arg == wanted and isinstance(k.value, ast.Constant) and isinstance(k.value.value, (int, float)):
            return wanted, float(k.value.value)
    return None


@rule("JX306", "numbers-merged", WARNING)
def numbers_merged(run: Run) -> Iterator[Finding]:
    """Yield a finding for each conversion of a host array to a smaller dtype that merged or changed many of
    its numbers."""
    for event in run.main.rounded if run.main is not None else ():
        if event.share < MERGED or event.site is None:
            continue
        floats = event.before.startswith("float")
        what: dict[str, Field] = {
            "before": event.before,
            "after": event.after,
            "share": Percent(event.share),
        }
        if event.argument is None:
            expression = event.text or message("an-array")
            title = message("numbers-merged" if floats else "numbers-wrapped", expression=expression, **what)
        else:
            what |= {"function": event.text, "argument": event.argument}
            title = message("argument-merged" if floats else "argument-wrapped", **what)
        yield Finding(
            code="JX306",
            severity=WARNING,
            certainty=CERTAIN,
            **at_line(title, event.site),
            fix=Fix(message("fix-subtract-before") if floats else message("fix-smaller-integers"), "dtype"),
            subject=(event.site,) if event.argument is None else (event.site, event.argument),
        )
