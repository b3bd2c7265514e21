"""Rule JX211: products of matrices, Fourier transforms, sums and powers for which another form is cheaper."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jaxscope.analysis.programs import Texts
from jaxscope.analysis.stablehlo.broadcast_sums import DISTANCES, OUTER
from jaxscope.analysis.stablehlo.cheaper_forms import (
    BANDED,
    CHOICE,
    FULL,
    KERNEL,
    LENGTH,
    ONE_HOT,
    PART,
    POSITIONS,
    REAL,
    TRIDIAGONAL,
    CheaperForm,
)
from jaxscope.analysis.stablehlo.powers import COSTLY as POWER
from jaxscope.analysis.stablehlo.set_elements import SET
from jaxscope.analysis.stablehlo.vmapped_sums import COPIES
from jaxscope.model import line_times, sources
from jaxscope.model.records import Function, Program
from jaxscope.model.run import Run
from jaxscope.rules.each_program import FASTER, takes_time, users
from jaxscope.rules.finding_parts import about, running_share
from jaxscope.rules.registry import rule
from jaxscope.schema.findings import CERTAIN, LIKELY, NOTE, WARNING, Finding, Fix
from jaxscope.schema.messages import Message, message

# A form is reported if it needs at least this many times the operations of the cheaper form.
TIMES, TRANSFORM_TIMES = 4, 2
ERROR = 2  # one operation may take up to this many times as long as an average operation
SHARE = 0.1  # of the program's operations
# Operations of one call that another form saves; fewer take a few milliseconds at most.
LEAST = 20_000_000
_TRIANGLE = re.compile(r"\.at\[.*\b(?:triu|tril)_indices(?:_from)?\b")
_EXPONENTS = re.compile(r"(?:\*\*|power\([^,()]*,)\s*(-?\d+(?:\.\d*)?)(?![\w.])")  # x ** -1.5, power(x, 2.5)
PART_OF_RUN = 0.1  # of the measured time: a form that takes so much may save a tenth of LEAST in a call, too
MANY_CALLS = 100  # with so many calls, a slow form may save a tenth of LEAST in each of them
IN_LOOP = 10  # the least number of iterations that is assumed for a loop of the program

TITLES = {
    "order": message("product-order"),
    "diagonal": message("product-of-diagonal"),
    "one-hot": message("product-of-one-hot"),
    "banded": message("product-of-banded"),
    "tridiagonal-solved": message("solve-of-tridiagonal"),
    "diagonal-used": message("product-for-diagonal"),
    "part-used": message("product-for-part"),
    "position-used": message("positions-for-one"),
    "real-transform": message("transform-of-real"),
    "drawn-by-scores": message("categorical-of-many"),
    "large-kernel": message("convolution-with-large-kernel"),
    "transform-length": message("transform-of-prime-length"),
    "full-decomposition": message("vectors-that-are-not-read"),
    DISTANCES: message("sum-of-squared-differences"),
    OUTER: message("sum-of-three-factors"),
    COPIES: message("sum-of-vmapped-arrays"),
    SET: message("triangle-by-scatter"),
}
FIXES = {
    "order": message("fix-product-order"),
    "diagonal": message("fix-scale-rows"),
    "one-hot": message("fix-take-rows"),
    "banded": message("fix-add-diagonals"),
    "tridiagonal-solved": message("fix-tridiagonal-solve"),
    "diagonal-used": message("fix-diagonal-alone"),
    "part-used": message("fix-slice-before"),
    "position-used": message("fix-key-value-cache"),
    "real-transform": message("fix-rfft"),
    "drawn-by-scores": message("fix-choice"),
    "large-kernel": message("fix-fftconvolve"),
    "transform-length": message("fix-fast-length"),
    "full-decomposition": message("fix-full-matrices"),
    DISTANCES: message("fix-distances-by-product"),
    OUTER: message("fix-sum-as-product"),
    COPIES: message("fix-one-array-for-all"),
    SET: message("fix-triangle-by-mask"),
}


@rule("JX211", "costly-form", WARNING)
def costly_form(run: Run) -> Iterator[Finding]:
    """Yield findings about computations for which a cheaper form exists, at most one for each line and
    kind."""
    seen = set[tuple[object, str]]()
    for p, f, texts in users(run):
        for form in texts.stablehlo.cheaper_forms if texts.stablehlo is not None else ():
            # The lengths of all transforms of a convolution change together: one finding.
            same = form.source if form.source is not None and form.kind != LENGTH else f.id, form.kind
            if same in seen or not _matters(run, p, f, form) or not _is_written(run, form):
                continue
            if form.in_loop and form.kind in (PART, POSITIONS) and not _is_repeated(texts, form):
                continue
            seen.add(same)
            if form.kind == POSITIONS:
                seen.add((same[0], PART))
            written = _written_exponent(run, form)
            title = _title(f, form, written)
            line = form.source or p.compilations[-1].site
            if form.kind == LENGTH:
                forms = texts.stablehlo.cheaper_forms if texts.stablehlo is not None else ()
                placed = [a.source for a in forms if a.kind == LENGTH and a.source is not None]
                line = min(placed, key=lambda at: at.place, default=line)
            # Tensor processing units multiply matrices faster than they pick rows.
            minor = form.kind == REAL or (form.kind == ONE_HOT and run.platform == "tpu")
            saved = 1 - form.cheaper / form.operations
            share = _share(form)
            at_most = None if share is None else min(1.0, ERROR * share) * saved
            yield Finding(
                code="JX211",
                severity=NOTE if minor else WARNING,
                certainty=LIKELY if form.kind in (POSITIONS, DISTANCES, OUTER, COPIES) else CERTAIN,
                **about(p, f, title, line),
                fix=Fix(_fix(form, written), "cheaper_form", {"form": form.kind}),
                subject=(line, form.kind),
                seconds=None if at_most is None else running_share(run, f, at_most),
                at_most=True,
            )


def _written_exponent(run: Run, form: CheaperForm) -> float | None:
    """Return the exponent on the user's line that led to the power ``form``: the exponent of ``form``, or one
    more if the power is a derivative. Return None if the line has neither number, or if ``form`` is no
    power."""
    line = sources.line(run, form.source) if form.source is not None else ""
    numbers = {float(text) for text in _EXPONENTS.findall(line)}
    if form.exponent is None:
        return None
    return next((n for n in (form.exponent, form.exponent + 1) if n in numbers), None)


def _title(f: Function, form: CheaperForm, written: float | None) -> Message:
    """Return what the function ``f`` computes in a costly form, as the title of a finding. ``written`` is the
    exponent in the user's source; None if it is unknown, or the form is no power."""
    if form.exponent is not None:
        exponent = f"{form.exponent:g}"
        if written is not None and written != form.exponent:
            of = f"{written:g}"
            return message("slow-power-of-gradient", function=f.display_name, exponent=exponent, of=of)
        return message("slow-power", function=f.display_name, exponent=exponent)
    if form.kind in (DISTANCES, OUTER):
        return message("slow-form", function=f.display_name, what=TITLES[form.kind])
    if form.kind == SET:
        return message("slow-triangle", function=f.display_name, what=TITLES[form.kind])
    times = form.operations // max(1, form.cheaper)
    return message("costly-form", function=f.display_name, what=TITLES[form.kind], times=f"{times:,}")


def _fix(form: CheaperForm, written: float | None) -> Message:
    """Return the advice which other form to use. ``written`` is the exponent in the user's source; None if it
    is unknown, or the form is no power."""
    if form.exponent is None:
        return FIXES[form.kind]
    if written is None:
        return message("fix-power", exponent=f"{form.exponent:g}", more=f"{form.exponent + 1:g}")
    if written % 1 == 0:
        return message("fix-integer-exponent", exponent=f"{written:.0f}", written=f"{written:.1f}")
    whole, root = (written - 0.5, "jnp.sqrt(x)") if written > 0 else (written + 0.5, "jax.lax.rsqrt(x)")
    product = {0.0: root, 1.0: f"x * {root}", -1.0: f"{root} / x"}.get(whole)
    if product is None:
        product = f"x ** {whole:.0f} * {root}" if whole > 0 else f"{root} / x ** {-whole:.0f}"
    return message("fix-square-root", product=product, written=f"{written:g}")


def _share(form: CheaperForm) -> float | None:
    """Return the share of the program's operations that ``form`` needs; None if unknown. Return 1, the
    largest possible share, for a banded or tridiagonal matrix in a loop, and for the copies of a ``vmap`` if
    the program has loops."""
    # XLA factors an unchanging matrix before the loop, but form.share counts this work in each iteration.
    if form.share is None and form.kind == COPIES:
        return 1.0  # the loop that fills the copies takes at most the rest
    return 1.0 if form.in_loop and form.kind in (BANDED, TRIDIAGONAL) else form.share


def _is_repeated(texts: Texts, form: CheaperForm) -> bool:
    """Return whether the compiled program computes the product ``form`` at least IN_LOOP times, so that XLA
    has not moved it out of its loop. False if unknown."""
    if texts.hlo is None or form.source is None:
        return False
    # XLA moves a product of unchanging operands before the loop.
    flops = [line.flops or 0 for line in texts.hlo.flops_by_line if line.source.place == form.source.place]
    if form.kind == POSITIONS:
        flops = [texts.hlo.matrix_flops_at_least or 0]
    return max(flops, default=0) >= IN_LOOP * form.operations


def _is_written(run: Run, form: CheaperForm) -> bool:
    """Return whether the user's line has what the advice is about: ``fft``, ``svd``, ``convolve``, a power or
    a triangle that is set. True for forms of all other kinds."""
    # Other functions of JAX use Fourier transforms, too, and fftconvolve does not compute a correlation.
    names = {
        REAL: ("fft",),
        KERNEL: ("convolve",),
        LENGTH: ("fft",),
        FULL: ("svd",),
        POWER: ("**", "pow"),
    }.get(form.kind, ())
    line = sources.line(run, form.source) if form.source is not None else ""
    if form.kind == SET:
        return _TRIANGLE.search(line) is not None
    return not names or any(name in line for name in names)


def _takes_a_large_part(run: Run, f: Function, share: float | None) -> bool:
    """Return whether ``share`` of the seconds spent on calls of ``f`` is at least PART_OF_RUN of the measured
    time of the program. False if ``share`` or the times are unknown."""
    measured = line_times.measured(run)
    spent = running_share(run, f, share) if share is not None else None
    return measured is not None and spent is not None and spent >= PART_OF_RUN * measured.seconds


def _matters(run: Run, p: Program, f: Function, form: CheaperForm) -> bool:
    """Return whether the cheaper form of ``form`` saves enough operations for a finding, and calls of the
    program ``p`` of ``f`` take enough time."""
    faster = 1 if run.platform == "cpu" else FASTER
    if form.kind in (CHOICE, POWER) and faster > 1:
        return False
    times = TRANSFORM_TIMES if form.kind == REAL else TIMES
    saved, least = form.operations - form.cheaper, faster * (LEAST // IN_LOOP if form.in_loop else LEAST)
    if (
        form.kind in (DISTANCES, OUTER, POWER, SET)
        and not form.in_loop
        and ((f.calls or 0) * saved >= MANY_CALLS * least or _takes_a_large_part(run, f, _share(form)))
    ):
        least //= IN_LOOP
    if form.operations < times * form.cheaper or saved < least or (_share(form) or 1.0) < SHARE:
        return False
    return takes_time(run, p, f, IN_LOOP * saved if form.in_loop else saved)
