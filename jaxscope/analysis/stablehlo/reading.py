"""Analyze the StableHLO text of a lowered program: ``analyze`` calls all other modules of this package."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from jaxscope.analysis.stablehlo import (
    accumulations,
    argument_work,
    branch_work,
    callbacks,
    cheaper_forms,
    constants,
    constraints,
    donation,
    frozen_updates,
    jacobians,
    large_values,
    matmuls,
    out_of_bounds,
    partial_sorts,
    precision,
    random_draws,
    reader,
    repeats,
    residuals,
    row_gradients,
    shardings,
    stacked_results,
    unequal_ranks,
    unread_work,
    values,
    work,
)
from jaxscope.analysis.stablehlo.module import CONSTANTS, NOT_OPERATIONS, Module, Op, Problem
from jaxscope.analysis.stablehlo.sources import Sources
from jaxscope.schema.file_owner import STANDING, Standing
from jaxscope.schema.keys import Captured

_ROTATIONS = re.compile(r"\[(13, 15, 26, 6|17, 29, 16, 24)\]")  # constants of Threefry, of a key's type


class Reading(msgspec.Struct, frozen=True):
    """The contents of a program's StableHLO.

    Attributes:
      module: the name of the module: ``jit_step``.
      num_partitions: the number in the module's attributes; None: unknown.
      printed: number of operations in the text, without returns.
      work: three numbers of arithmetic operations of one call: of matrix products and convolutions, of
        operations that take long for each element, and of all others. None if the user's code has loops,
        whose iterations are not counted, or if the text has no operations.
      op_counts: operation -> how often it occurs, with called functions inlined and loop bodies counted once.
      arguments, results: the arguments and the results of the program.
      meshes: the meshes that the text defines.
      shardings: the shardings stated inside the program.
      sharding_constraints: the sharding constraints with a known line and size.
      uneven: sharding constraints that split a dimension into unequal parts.
      repeated: blocks of operations that the text repeats, as a traced Python loop does.
      unknown_loop_times: the most iterations of a repeated block for which it is unknown whether the user's
        code or a library repeats it; 0: there is none.
      constants: arrays that the traced function closed over.
      doubles: where the program uses 64-bit floating point; None if it does not.
      upcasts: conversions to wider floating-point types.
      callbacks: calls into Python on the host, infeeds and outfeeds.
      products: matrix products and convolutions.
      accumulated: all-reduces in loops that only add up their results.
      residuals: scans that keep values of all iterations for the gradient.
      large: the largest values that XLA has to store in memory.
      argument_work: the number of arithmetic operations, grouped by the arguments on which their results
        depend.
      branch_work: work before a conditional that only one of its branches uses.
      jacobians: Jacobians of ``jax.jacrev`` and ``jax.jacfwd``.
      shifted: gradients that the program estimates by finite differences.
      cheaper_forms: products of matrices, Fourier transforms and other operations that have a cheaper form.
      out_of_bounds: constant indices that are out of bounds.
      unequal_ranks: arrays of shape [N, 1] that are combined with arrays of shape [N], and then added up.
      partial_sorts: sorts of which only few elements are used, or only their positions.
      frozen: parameters to which the program adds zeros; None: none were found.
      captures_key: whether the program has a constant of the type of a random key (or, in JAX 0.12, an
        argument for such a constant).
      row_gradients: steps of gradient descent for whole tables of which few rows are used.
      stacked: arrays that a scan stacks and of which the program reads little.
      unread_work: work in bodies of loops whose results are read for few iterations.
      repeated_draws: random draws, if several have the same shape, dtype and distribution; else None.
      loop_draws: random draws in a loop from a key that is the same in all iterations.
      shared_draws: random draws under ``vmap`` from one key for all elements.
      donation: donated arguments and arguments that could be donated.
      problems: what could not be read: lines, locations, the main function.
    """

    module: str | None = None
    num_partitions: int | None = None
    printed: int = 0
    work: tuple[int, int, int] | None = None
    op_counts: dict[str, int] = {}
    arguments: tuple[values.Value, ...] = ()
    results: tuple[values.Value, ...] = ()
    meshes: tuple[shardings.Mesh, ...] = ()
    shardings: tuple[shardings.Mark, ...] = ()
    sharding_constraints: tuple[constraints.Constraint, ...] = ()
    uneven: tuple[constraints.Uneven, ...] = ()
    repeated: tuple[repeats.Repeated, ...] = ()
    unknown_loop_times: int = 0
    constants: tuple[constants.Constant, ...] = ()
    doubles: precision.Doubles | None = None
    upcasts: tuple[precision.Upcast, ...] = ()
    callbacks: tuple[callbacks.Callback, ...] = ()
    products: tuple[matmuls.Product, ...] = ()
    accumulated: tuple[accumulations.Accumulated, ...] = ()
    residuals: tuple[residuals.Residuals, ...] = ()
    large: tuple[large_values.LargeValue, ...] = ()
    argument_work: tuple[argument_work.ArgumentWork, ...] = ()
    branch_work: tuple[branch_work.BranchWork, ...] = ()
    shifted: tuple[jacobians.Shifted, ...] = ()
    jacobians: tuple[jacobians.Jacobian, ...] = ()
    cheaper_forms: tuple[cheaper_forms.CheaperForm, ...] = ()
    out_of_bounds: tuple[out_of_bounds.OutOfBounds, ...] = ()
    unequal_ranks: tuple[unequal_ranks.UnequalRanks, ...] = ()
    partial_sorts: tuple[partial_sorts.PartialSort, ...] = ()
    frozen: frozen_updates.FrozenUpdates | None = None
    captures_key: bool = False
    row_gradients: tuple[row_gradients.RowGradient, ...] = ()
    stacked: tuple[stacked_results.StackedResult, ...] = ()
    unread_work: tuple[unread_work.UnreadWork, ...] = ()
    repeated_draws: random_draws.RepeatedDraws | None = None
    shared_draws: tuple[random_draws.SharedDraws, ...] = ()
    loop_draws: tuple[random_draws.LoopDraws, ...] = ()
    donation: tuple[donation.Donation, ...] = ()
    problems: tuple[Problem, ...] = ()


# field of ``Reading`` -> the function that finds its items in a module
_FINDERS: dict[str, Callable[[Module, Sources], Iterable[Any]]] = {
    "upcasts": precision.upcasts,
    "callbacks": callbacks.find,
    "products": matmuls.find,
    "accumulated": accumulations.find,
    "residuals": residuals.find,
    "large": large_values.find,
    "branch_work": branch_work.find,
    "jacobians": jacobians.find,
    "shifted": jacobians.shifted,
    "cheaper_forms": cheaper_forms.find,
    "out_of_bounds": out_of_bounds.find,
    "unequal_ranks": unequal_ranks.find,
    "partial_sorts": partial_sorts.find,
    "row_gradients": row_gradients.find,
    "stacked": stacked_results.find,
    "unread_work": unread_work.find,
    "shared_draws": random_draws.shared,
    "loop_draws": random_draws.in_loops,
}


def analyze(
    text: str,
    *,
    captured: Sequence[Captured] = (),
    paths: Sequence[str] = (),
    dropped: Collection[int] = (),
    donated: Collection[str] | None = None,
    aliased: Collection[int] | None = None,
    standing: Callable[[str], Standing] = STANDING,
) -> Reading:
    """Analyze the StableHLO text of a program. Lines that cannot be read are listed in ``problems``; some
    damaged texts raise an exception such as IndexError.

    Args:
      captured: arrays that the traced function closed over, which give the constants their names.
      paths: the paths of all the caller's arguments, in order.
      dropped: positions in ``paths`` of the arguments that the program does not take.
      donated: paths of the donated arguments; None: unknown.
      aliased: numbers of the program's parameters whose memory a result reuses in the compiled program; None:
        unknown.
      standing: the function that returns the owner of a file by its name: the user, an installed package or a
        library.
    """
    module = reader.read(text)
    sources = Sources(module, standing)
    known = shardings.meshes(module)
    main = module.main()
    arguments = () if main is None else values.arguments(main, known, paths, dropped)
    results = () if main is None else values.results(main, known)
    requests = constraints.Constraints(module, sources, known)
    arguments = constraints.attach(arguments, requests.arguments, requests.also_without)
    results = constraints.attach(results, requests.results)
    unread = {paths[i] for i in dropped if 0 <= i < len(paths)}
    operations = [op for op in module.ops if op.name not in NOT_OPERATIONS]
    repeated = repeats.find(module, sources)
    return Reading(
        module=module.name,
        num_partitions=_number(module.attributes.get("mhlo.num_partitions")),
        printed=len(operations),
        work=work.Shares(module, sources).kinds(module),
        op_counts=_op_counts(operations, sources),
        arguments=arguments,
        results=results,
        meshes=tuple(known.values()),
        shardings=tuple(shardings.marks(module, sources, known)),
        sharding_constraints=tuple(requests.listed()),
        uneven=tuple(requests.uneven()),
        repeated=tuple(r for r in repeated if not r.unknown_loop),
        unknown_loop_times=max((r.times for r in repeated if r.unknown_loop), default=0),
        constants=tuple(constants.find(module, sources, captured)),
        doubles=precision.doubles(module, sources),
        repeated_draws=random_draws.repeated(module, sources),
        argument_work=tuple(argument_work.find(module, sources, arguments)),
        frozen=frozen_updates.find(module, arguments, results),
        captures_key=_captures_key(module, arguments),
        donation=tuple(donation.find(module, arguments, results, donated, unread, aliased)),
        problems=tuple(_problems(module, sources)),
        **{field: tuple(find(module, sources)) for field, find in _FINDERS.items()},
    )


def _op_counts(operations: Sequence[Op], sources: Sources) -> dict[str, int]:
    """Return how often each of ``operations`` occurs in the program, by name, the most frequent first. The
    operations of a function that is called twice count twice."""
    counts: Counter[str] = Counter()
    for op in operations:
        if times := sources.times[op.function]:
            counts[op.name] += times
    return dict(counts.most_common())


def _captures_key(module: Module, arguments: Sequence[values.Value]) -> bool:
    """Return whether the program has a constant of the type of a random key or, in JAX 0.12, an argument for
    such a constant. Threefry's own constants do not count."""
    return any(
        _is_key(op.outputs) and not _ROTATIONS.search(op.detail) for op in module.ops if op.name in CONSTANTS
    ) or any(a.role == "constant" and _is_key((a.type,)) for a in arguments)


def _problems(module: Module, sources: Sources) -> Iterator[Problem]:
    """Yield the parts of the module that could not be read: lines, a missing ``@main``, and at most 20
    locations."""
    yield from module.problems
    if module.main() is None and module.ops:
        yield Problem(1, "no function @main: arguments, results and donation are unknown")
    for op in module.ops:
        if op.name not in NOT_OPERATIONS:
            sources.locations.place(op.location)  # adds the location to ``unread`` if it cannot be read
    for text in sorted(sources.locations.unread)[:20]:
        yield Problem(0, f"a location that could not be read: {text[:80]}")


def _is_key(types: Sequence[str]) -> bool:
    """Return whether ``types`` is one type, that of the data of a random key: two or four ``ui32``."""
    return len(types) == 1 and types[0] in ("tensor<2xui32>", "tensor<4xui32>")


def _number(text: str | None) -> int | None:
    """Return the integer at the beginning of an attribute's text: 8 for ``8 : i32``. Return None if there is
    none."""
    digits = (text or "").partition(" ")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
