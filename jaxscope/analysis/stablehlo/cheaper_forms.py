"""Find matrix products, Fourier transforms and other costly operations that have a much cheaper form.

XLA multiplies matrices in the order of the program, and as if no matrix had a structure. It does not see that
a diagonal matrix only scales rows, that a one-hot matrix only picks rows, or that only the diagonal or a
slice of a product is used.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set

import msgspec

from jaxscope.analysis.stablehlo import broadcast_sums, powers, set_elements, types, vmapped_sums, work
from jaxscope.analysis.stablehlo.constraints import NOT_ELEMENTWISE
from jaxscope.analysis.stablehlo.flow import SAME_NUMBERS, Flow, ReachedValue
from jaxscope.analysis.stablehlo.module import (
    DIMS,
    EQUAL,
    INTEGER,
    NOT_OPERATIONS,
    SLICE_SIZES,
    ZERO,
    Module,
    Op,
)
from jaxscope.analysis.stablehlo.sources import LOOPS, Sources
from jaxscope.schema.keys import Frame

ORDER, DIAGONAL, ONE_HOT, USED = "order", "diagonal", "one-hot", "diagonal-used"
BANDED, TRIDIAGONAL = "banded", "tridiagonal-solved"
PART, POSITIONS = "part-used", "position-used"
REAL, KERNEL, CHOICE = "real-transform", "large-kernel", "drawn-by-scores"
LENGTH, FULL = "transform-length", "full-decomposition"
DOT = "stablehlo.dot_general"
SINGULAR = re.compile(r"gesdd|gesvd", re.I)  # LAPACK, cuSOLVER: singular value decompositions
SOLVES = re.compile(r"getrf|potrf", re.I)  # LAPACK, cuSOLVER: they factor the matrix of linear equations
_BOUNDS = re.compile(r"(\d+):(\d+)(?::\d+)?")  # of one dimension of a slice
FORMS = frozenset(
    {DOT, broadcast_sums.SUM, "stablehlo.fft", "stablehlo.convolution", "stablehlo.add"}
    | {"stablehlo.custom_call", powers.POWER, set_elements.SCATTER}
)
NOT_IN_LIBRARIES = frozenset({powers.POWER, set_elements.SCATTER})
BANDS = 8  # diagonals: products with more are not listed
DRAW = 100  # operations for a random number of Threefry
# A Fourier transform whose length has a prime factor of at least 100 takes 3 to 8 times as long as one whose
# length has none above 7 (measured on a CPU with JAX 0.10 and 0.12: 42,005 and 41,999 against 42,000).
PRIME, SLOWER = 100, 4
LEAST = 1 << 20  # operations that the cheaper form saves in one execution; others are not listed
SAME_PLACES = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add", "subtract", "multiply", "divide", "negate", "convert", "abs", "sqrt", "exponential", "maximum",
    )
)  # fmt: skip
MASKS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("convert", "transpose", "broadcast_in_dim", "multiply", "select", "gather"),
        *("add", "subtract", "negate", "divide"),
    )
)
SLICES = frozenset(f"stablehlo.{name}" for name in ("slice", "dynamic_slice", "gather"))
JAX_DIAGONALS = re.compile(r"(diagonal|_diag|trace)(_\d+)?")  # JAX's functions that read a diagonal
_LEFT = {name: re.compile(name + r" = \[([\d, ]*)\]") for name in ("contracting_dims", "batching_dims")}
_RIGHT = {name: re.compile(name + r" = \[[\d, ]*\] x \[([\d, ]*)\]") for name in _LEFT}
_STEPS = re.compile(r"(?:stride|lhs_dilate|rhs_dilate) = \[([\d, ]*)\]")
_OFFSET = re.compile(r"offset_dims = \[([\d, ]*)\]")
_IOTA = re.compile(r"dim = (\d+)")
_INVERSE = re.compile(r"= IR?FFT")
DEPTH = 40  # through how many operations a value is followed


class CheaperForm(msgspec.Struct, frozen=True):
    """A product of matrices, a Fourier transform or another costly operation that has a cheaper form.

    Attributes:
      kind: which cheaper form there is.
        ``order``: the product is multiplied by another matrix, and another order is cheaper.
        ``diagonal``, ``one-hot``: a factor has this structure.
        ``banded``: a factor is zero except on a few diagonals.
        ``tridiagonal-solved``: linear equations whose matrix is zero except on two or three diagonals.
        ``diagonal-used``: only the diagonal of the product is used.
        ``part-used``: only slices of the product are used.
        ``position-used``: attention for all positions of a sequence, of which only one is used and written
        into the sequence; a cache of keys and values would save the other positions.
        ``real-transform``: a complex transform of real numbers.
        ``transform-length``: Fourier transforms of padded numbers whose length has a large prime factor.
        ``full-decomposition``: a singular value decomposition with ``full_matrices=True`` whose additional
        singular vectors are not read.
        ``large-kernel``: a convolution in several dimensions, of one channel, for which Fourier transforms
        need fewer operations.
        ``drawn-by-scores``: several draws of ``jax.random.categorical`` from the same probabilities.
        ``distances``, ``sum-of-outer``: a sum that a matrix product computes faster (``broadcast_sums``).
        ``vmapped-sum``: a sum of arrays that ``vmap`` fills separately (``vmapped_sums``).
        ``costly-power``: a power that products and square roots compute faster (``powers``).
        ``set-elements``: elements of matrices that a scatter sets; a mask is faster if they are a triangle
        (``set_elements``).
      operations: number of arithmetic operations that the cheaper form replaces, in one execution. Slow
        operations count as the number of ordinary operations that take about as long.
      cheaper: arithmetic operations of one execution of the cheaper form.
      share: the share of all such operations of the line in the program's operations, from 0 to 1. If the
        user's code has loops, the share in the operations in loops; then None if they are in no loop.
      in_loop: whether the operation is in a loop of the program.
      source: the line of the user's code; None if it is unknown.
      exponent: the exponent of a ``costly-power``; None for other kinds.
    """

    kind: str
    operations: int
    cheaper: int
    share: float | None
    in_loop: bool
    source: Frame | None
    exponent: float | None = None


def find(module: Module, sources: Sources) -> list[CheaperForm]:
    """Return the operations for which a cheaper form saves at least LEAST (1,048,576) arithmetic operations
    in one execution, the costliest first. Of several with the same source line and kind, only the costliest
    is returned. Left out are powers and scatters in libraries, and operations that differentiation created,
    except powers."""
    search = _Search(module, sources)
    largest: dict[object, CheaperForm] = {}
    shares = work.Shares(module, sources)
    for index, op in enumerate(module.ops):
        times = sources.times[op.function]
        backward = sources.backward(index)
        if op.name not in FORMS or not times or (backward and op.name != powers.POWER):
            continue
        if op.name in NOT_IN_LIBRARIES and sources.in_library(index):
            continue
        try:
            forms = search.forms(index)
        except (IndexError, KeyError, ValueError):
            continue  # A damaged text has operations without types, or dimensions that do not exist.
        for kind, operations, cheaper in forms:
            if operations - cheaper < LEAST:
                continue
            share = shares.of(index, times * operations)
            share = None if share is None else min(1.0, share)
            form = CheaperForm(kind, operations, cheaper, share, sources.in_loop(index), sources.frame(index))
            if kind == powers.COSTLY:
                exponent = powers.exponent(search.flow, index)
                form = msgspec.structs.replace(form, exponent=exponent)
            known = largest.get((form.source, kind))
            if known is not None:  # for example in a loop that was unrolled: the shares of all copies count
                parts = [s for s in (known.share, share) if s is not None]
                both = min(1.0, sum(parts)) if parts else None
                larger = form if known.operations < operations else known
                form = msgspec.structs.replace(larger, share=both)
            largest[form.source, kind] = form
    return sorted(largest.values(), key=lambda f: -f.operations)


class _Product(msgspec.Struct, frozen=True):
    """The dimensions of a matrix product: the shapes of its operands, the dimensions over which it sums, and
    the batch dimensions. Of each pair, the first is the left operand's."""

    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    contracted: tuple[list[int], list[int]]
    batch: tuple[list[int], list[int]]

    def free(self, side: int) -> list[int]:
        """Return the dimensions of the left (``side`` 0) or right (1) operand that are neither contracted nor
        batch dimensions."""
        others = (*self.contracted[side], *self.batch[side])
        return [d for d in range(len(self.shapes[side])) if d not in others]

    def flops(self) -> int:
        """Return the number of multiplications and additions of the product."""
        left = math.prod(self.shapes[0])
        return 2 * left * math.prod(self.shapes[1][d] for d in self.free(1))


class _Mask(msgspec.Struct, frozen=True):
    """The places where a matrix may be other than zero.

    Attributes:
      dimensions: one dimension, along which only one element may be other than zero (one-hot), or the two
        dimensions of a diagonal or banded matrix.
      ones: whether all these elements are 1.
      offsets: the diagonals, each as its second index minus its first; 0: the main diagonal.
    """

    dimensions: frozenset[int]
    ones: bool
    offsets: frozenset[int] = frozenset({0})

    @property
    def is_diagonal(self) -> bool:
        """Whether only elements on the main diagonal may be other than zero."""
        return len(self.dimensions) == 2 and self.offsets == {0}


class _Search:
    """Finds the cheaper forms of each operation of a module. ``copies`` has the numbers of equal operations
    (``_copies``)."""

    def __init__(self, module: Module, sources: Sources) -> None:
        self.ops = module.ops
        self.sources = sources
        self.flow = Flow(module)
        self.copies = _copies(module)
        self._masks: dict[tuple[int, tuple[int, ...]], _Mask | None] = {}
        self._read: dict[tuple[int, int], int | None] = {}  # (user, operand) -> elements
        self._diagonal: dict[tuple[int, int], bool] = {}

    def _readers(self, index: int) -> list[int]:
        """Return the operations that read the result at ``index``, each once."""
        return list(dict.fromkeys(self.flow.users.get(index, ())))

    def forms(self, index: int) -> list[tuple[str, int, int]]:
        """Return (kind, operations, operations of the cheaper form) for each cheaper form of the operation at
        ``index``."""
        op = self.ops[index]
        if op.name == "stablehlo.convolution":
            return _by_transform(op)
        if op.name == "stablehlo.add":
            return self._categorical(index)
        if op.name == "stablehlo.custom_call":
            return self._singular(index) if SINGULAR.search(op.callee or "") else self._tridiagonal(index)
        if op.name == broadcast_sums.SUM:
            return broadcast_sums.find(self.flow, self.sources, index) or vmapped_sums.find(self.flow, index)
        if op.name == powers.POWER:
            return powers.find(self.flow, index)
        if op.name == set_elements.SCATTER:
            return set_elements.find(self.flow, index)
        if op.name != DOT:
            return self._transform(index)
        if distances := broadcast_sums.find(self.flow, self.sources, index):
            return distances
        p = _product(op)
        if p is None or all(self.flow.constant(self.flow.operand(ReachedValue(index), k)) for k in (0, 1)):
            return []  # XLA computes products of constants when it compiles.
        found = []
        structure = self._structured(index, p)
        if structure is not None:
            kind, each = structure
            found.append((kind, p.flops(), each * (types.tensor(op.outputs[0]).elements or 0)))
        elif self.copies[index] == 1:  # XLA computes equal products once.
            # XLA moves constant products out of loops.
            found += [] if self.sources.in_loop(index) else self._order(index, p)
            found += [] if found else self._diagonal_used(index, p)
            found += [] if found else self._part_used(index, p)
        return found

    def _categorical(self, index: int) -> list[tuple[str, int, int]]:
        """Return [(kind, operations, operations of the cheaper form)] if the addition at ``index`` belongs to
        a call of ``jax.random.categorical``, or to an argmax of Gumbel numbers and scores, that draws several
        numbers from the same probabilities; else an empty list. Under vmap, each element may have its own."""
        op = self.ops[index]
        shape = [n or 0 for n in types.tensor(op.outputs[0]).shape or ()]
        users = [self.ops[user].callee or "" for user in self.flow.users.get(index, ())]
        if len(shape) < 2 or len(users) != 1 or not users[0].startswith("argmax"):
            return []
        for side in (0, 1):
            drawn, scores = (self.flow.operand(ReachedValue(index), k) for k in (side, 1 - side))
            called = [self.ops[call].callee or "" for call in drawn.calls[:1]] if drawn is not None else []
            if scores is None or not any(name.startswith("_gumbel") for name in called):
                continue
            draws = math.prod(n for d, n in enumerate(shape[:-1]) if self.flow.spreads(scores, d))
            rows, choices = math.prod(shape[:-1]) // max(1, draws), shape[-1]
            if draws < 2 or (rows > 1 and "vmap(" not in (self.sources.place(index).name or "")):
                continue
            # JAX draws a number for each choice of each draw. One number for each draw, which is searched in
            # the sums of the probabilities, is enough.
            search = draws * (DRAW + math.ceil(math.log2(choices + 1))) + 3 * choices
            return [(CHOICE, DRAW * math.prod(shape), rows * search)]
        return []

    def _singular(self, index: int) -> list[tuple[str, int, int]]:
        """Return [(FULL, operations, operations with ``full_matrices=False``)] for the singular value
        decomposition at ``index``; empty unless ``full_matrices=False`` would save work. It saves work if the
        matrix is not square, and the program reads only the singular vectors that this option computes, too.
        Numbers: Golub and Van Loan, Matrix Computations, section 8.6 (R-SVD)."""
        op = self.ops[index]
        shape = [n or 0 for n in types.tensor(op.inputs[0]).shape or ()]
        short, long = sorted(shape[-2:])
        square = next((o for o in op.outputs if types.tensor(o).shape == (*shape[:-2], long, long)), None)
        if square is None or short == long:
            return []
        read, left, seen = 0, [*self._readers(index)], set[int]()
        while left:
            user = left.pop()
            one = self.ops[user]
            if user in seen or square not in one.inputs:
                continue
            seen.add(user)
            if one.name in NOT_OPERATIONS:
                after = self.flow.after(user)
                if after is None:
                    return []
                left += [reader for reader, _ in after]
            elif one.name == "stablehlo.select":  # JAX's NaN if the decomposition failed
                left += self._readers(user)
            elif one.name == "stablehlo.slice" and _first(one, -1 if shape[-2] == long else -2, short):
                read += types.tensor(one.outputs[0]).elements or 0
            else:
                return []
        count = math.prod(shape[:-2])
        thin, full = 6 * long * short**2 + 20 * short**3, 4 * long**2 * short + 22 * short**3
        return [] if read > math.prod(shape) else [(FULL, count * full, count * thin)]

    def _lengthy(self, index: int) -> list[tuple[str, int, int]]:
        """Return [(LENGTH, operations, operations with another length)] for the Fourier transform at
        ``index``; empty unless its length has a prime factor of at least PRIME (100) and can be changed. It
        can if the program pads numbers to this length and transforms them back, as for a convolution."""
        op = self.ops[index]
        lengths = work.sizes(work.LENGTHS, op.detail)
        if not lengths or max(map(_largest_factor, lengths)) < PRIME:
            return []
        shape, forward, back, padded = tuple(lengths), 0, 0, 0
        for o in self.ops:
            times = self.sources.times[o.function]
            if o.name == "stablehlo.fft" and work.sizes(work.LENGTHS, o.detail) == lengths:
                inverse = _INVERSE.search(o.detail) is not None
                forward, back = forward + times * (not inverse), back + times * inverse
            elif o.name == "stablehlo.pad" and o.inputs[:1] != o.outputs:
                padded += times * ((types.tensor(o.outputs[0]).shape or ())[-len(shape) :] == shape)
        # A signal that is not padded may be periodic: its length is given.
        whole = work.operations(op)
        return [(LENGTH, SLOWER * whole, whole)] if back and padded >= forward > 0 else []

    def _transform(self, index: int) -> list[tuple[str, int, int]]:
        """Return [(kind, operations, operations of the cheaper form)] for the Fourier transform at ``index``;
        else an empty list. The kind is LENGTH (see ``_lengthy``), or REAL if the input is real and the
        program only uses real parts of inverse transforms."""
        op = self.ops[index]
        if found := self._lengthy(index):
            return found
        made = self.flow.operand(ReachedValue(index), 0) if "type = FFT" in op.detail else None
        if made is None or self.ops[made.at].name != "stablehlo.convert":
            return []
        before = types.tensor(self.ops[made.at].inputs[0]).dtype or ""
        whole = work.operations(op)
        return [] if before.startswith("complex") or not self.real_back else [(REAL, whole, whole // 2)]

    @functools.cached_property
    def real_back(self) -> bool:
        """Whether the program only uses the real parts of its complex inverse Fourier transforms, or has
        none."""
        inverse = [i for i, op in enumerate(self.ops) if op.name == "stablehlo.fft" and "= IFFT" in op.detail]
        return all(self._only_real(index) for index in inverse)

    def _only_real(self, index: int) -> bool:
        """Return whether the program only uses the real part of the result at ``index``."""
        left, seen = [(user, index) for user in self._readers(index)], set[tuple[int, int]]()
        while left:
            user, operand = left.pop()
            op, further = self.ops[user], None
            if (user, operand) in seen:
                continue
            seen.add((user, operand))
            if op.name in NOT_OPERATIONS:
                further = self.flow.after(user)
            elif self.flow.module.callee(op) is not None:
                further = self.flow.inside(user, operand)
            elif op.name == "stablehlo.real":
                continue
            if not further:
                return False
            left += further
        return True

    def _tridiagonal(self, index: int) -> list[tuple[str, int, int]]:
        """Return [(TRIDIAGONAL, operations, operations of a tridiagonal solver)] if the operation at
        ``index`` factors a matrix of linear equations that is zero except on two or three diagonals next to
        each other; else an empty list. The operations are those for one right side. In a loop, the operations
        that factor the matrix are not counted, because XLA moves them before the loop."""
        op = self.ops[index]
        mask = (
            self._mask(self.flow.operand(ReachedValue(index), 0), DEPTH)
            if SOLVES.search(op.callee or "")
            else None
        )
        if mask is None or len(mask.dimensions) != 2 or not 1 < len(mask.offsets) <= 3 or mask.ones:
            return []
        n = max((n or 0 for n in types.tensor(op.inputs[0]).shape or ()), default=0)
        if max(map(abs, mask.offsets)) != 1 or (types.tensor(op.inputs[0]).elements or 0) != n * n:
            return []
        factors = 0 if self.sources.in_loop(index) else 2 * n**3 // 3
        return [(TRIDIAGONAL, 2 * n**2 + factors, 10 * n)]

    def _structured(self, index: int, p: _Product) -> tuple[str, int] | None:
        """Return (kind, operations for each element of the result) if the matrix product at ``index`` has a
        cheaper form because one factor is known to be a diagonal, banded or one-hot matrix; else None."""
        for side in (0, 1):
            made = self.flow.operand(ReachedValue(index), side)
            mask = self._mask(made, DEPTH) if made is not None else None
            if mask is None or len(p.contracted[side]) != 1 or p.contracted[side][0] not in mask.dimensions:
                continue
            if len(mask.dimensions) == 1:
                return None if p.batch[0] else (ONE_HOT, 1)
            name, sizes = self.sources.place(index).name or "", {p.shapes[side][d] for d in mask.dimensions}
            if mask.ones or len(sizes) != 1 or mask.dimensions.intersection(p.batch[side]):
                continue  # the identity with which jax.jacfwd begins, or the matrix H of a Kalman filter
            if "vmap(" in name and "jvp(" in name:
                return None
            if mask.offsets == {0}:
                return DIAGONAL, 1
            return (BANDED, 2 * len(mask.offsets)) if len(mask.offsets) <= BANDS else None
        return None

    def _order(self, index: int, p: _Product) -> list[tuple[str, int, int]]:
        """Return [(ORDER, operations, operations of the cheaper order)] for the matrix product ``p`` at
        ``index``; empty unless another order is cheaper, such as ``A @ (B @ C)`` for ``(A @ B) @ C``. Only
        matrix products may use the result."""
        left: list[object] = [("left", d) for d in range(len(p.shapes[0]))]
        right: list[object] = [("right", d) for d in range(len(p.shapes[1]))]
        for of_left, of_right in (*zip(*p.contracted, strict=True), *zip(*p.batch, strict=True)):
            right[of_right] = left[of_left]
        size = dict(zip([*left, *right], [*p.shapes[0], *p.shapes[1]], strict=True))
        result = [left[d] for d in p.batch[0]] + [left[d] for d in p.free(0)] + [right[d] for d in p.free(1)]
        summed = {left[d] for d in p.contracted[0]}
        before, after = p.flops(), 0
        users = self._through_transposes(index)
        for user, operand, order in users or ():
            q = _product(self.ops[user])
            if q is None or self._loop(user) != self._loop(index):
                return []
            side = self.ops[user].operands.index(operand)
            third: list[object] = [(user, d) for d in range(len(q.shapes[1 - side]))]
            size |= dict(zip(third, q.shapes[1 - side], strict=True))
            for mine, its in (
                *zip(q.contracted[side], q.contracted[1 - side], strict=True),
                *zip(q.batch[side], q.batch[1 - side], strict=True),
            ):
                third[its] = result[order[mine]]
            sums = summed | {result[order[d]] for d in q.contracted[side]}
            before += q.flops()
            after += min(_in_turn(third, a, b, sums, size) for a, b in ((left, right), (right, left)))
        return [(ORDER, before, after)] if users and after < before else []

    def _diagonal_used(self, index: int, p: _Product) -> list[tuple[str, int, int]]:
        """Return [(USED, operations, operations for the diagonal)] if the program reads only the diagonal of
        the matrix product ``p`` at ``index``; else an empty list."""
        if len(p.free(0)) != 1 or len(p.free(1)) != 1 or not self._only_diagonal(index, DEPTH):
            return []
        if p.batch[0] and "vmap(" not in (self.sources.place(index).name or ""):
            return []  # jnp.diagonal of a batch is that of its first two dimensions.
        return [(USED, p.flops(), p.flops() // max(p.shapes[side][p.free(side)[0]] for side in (0, 1)))]

    def _part_used(self, index: int, p: _Product) -> list[tuple[str, int, int]]:
        """Return [(PART, operations, operations for the part)] if the program reads only slices of the matrix
        product ``p`` at ``index``; else an empty list. For attention of which one position is read, add
        POSITIONS, whose operations are those of all matrix products of the program."""
        summed = math.prod(p.shapes[0][d] for d in p.contracted[0])
        if summed == 1 or self.sources.own(index).frame is None:
            # XLA moves products that do not change out of loops, and fuses outer products with the slice.
            # The factors of a product in a function of a library are not the user's to slice.
            return []
        if self.sources.in_loop(index) and all(self._is_outside(index, k) for k in (0, 1)):
            return []
        read = self._elements_read(index, self._readers(index), DEPTH)
        elements = types.tensor(self.ops[index].outputs[0]).elements
        if not read or not elements or read >= elements:
            return []
        found = [(PART, p.flops(), p.flops() * read // elements)]
        length = elements // read
        is_position = elements % read == 0 and length in self._causal and self._at_changing_index(index)
        if is_position and (self.sources.in_loop(index) or self._writes_sequence(length)):
            flops = sum(q.flops() for op in self.ops if (q := _product(op)) is not None)
            found.append((POSITIONS, flops, flops * read // elements))
        return found

    def _is_outside(self, index: int, k: int) -> bool:
        """Return whether operand ``k`` of the operation at ``index`` is computed outside of all loops, or is
        an argument of the program. Conversions, transposes, reshapes and broadcasts inside a loop do not
        count."""
        made = self.flow.operand(ReachedValue(index), k)
        for _ in range(DEPTH):
            if made is None or not self.sources.in_loop(made.at):
                break
            if self.ops[made.at].name not in SAME_NUMBERS:
                return False
            index, k = made.at, 0
            made = self.flow.operand(made, 0)
        return made is not None or self.flow.is_argument(ReachedValue(index), k)

    @functools.cached_property
    def _causal(self) -> set[int]:
        """The lengths n of sequences with causal attention: the program has a product of n positions with n
        positions, and a triangle of n x n elements, made from two indices or a constant, that selects the
        earlier positions."""
        scores, triangles = set[int](), set[int]()
        for index, op in enumerate(self.ops):
            p = _product(op)
            if p is not None and p.batch[0] and len(p.free(0)) == len(p.free(1)) == 1:
                sizes = {p.shapes[side][p.free(side)[0]] for side in (0, 1)}
                scores |= sizes if len(sizes) == 1 else set()
            shape = types.tensor(op.outputs[0]).shape if op.outputs else None
            if not shape or len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] is None:
                continue
            if op.name == "stablehlo.constant" and op.outputs[0].endswith("xi1>"):
                triangles.add(shape[-1])
            elif op.name == "stablehlo.compare" and not EQUAL.search(op.detail):
                sides = [self._counted(self.flow.operand(ReachedValue(index), k), DEPTH) for k in (0, 1)]
                if sides[0] is not None and sides[1] is not None and sides[0][0] != sides[1][0]:
                    triangles.add(shape[-1])
        return scores & triangles

    def _writes_sequence(self, length: int) -> bool:
        """Return whether the program returns an integer array, such as tokens, with a dimension of size
        ``length`` and the type of an argument, and returns no other array with such a dimension, such as keys
        and values."""
        main = self.flow.module.main()
        results = [types.tensor(r.type) for r in main.results] if main is not None else []
        passed = [types.tensor(a.type) for a in main.arguments] if main is not None else []
        of_length = [t for t in results if length in (t.shape or ())]
        integers = [t for t in of_length if "int" in (t.dtype or "")]
        return bool(integers) and len(integers) == len(of_length) and any(t in passed for t in integers)

    def _at_changing_index(self, index: int) -> bool:
        """Return whether the program uses the result at ``index`` only in slices that begin at a computed
        index, which is the same for all rows: ``logits[:, t]``."""
        found, seen = set[str](), set[tuple[int, int]]()
        left = [(user, index) for user in self._readers(index)]
        while left:
            user, operand = left.pop()
            op = self.ops[user]
            if (user, operand) in seen:
                continue
            seen.add((user, operand))
            if op.name in SLICES:
                found.add(op.name)
            elif op.name in NOT_OPERATIONS:
                left += self.flow.after(user) or ()
            elif self.flow.module.callee(op) is not None:
                left += self.flow.inside(user, operand) or ()
            else:
                left += [(further, user) for further in self._readers(user)]
        return found == {"stablehlo.dynamic_slice"}

    def _elements_read(self, operand: int, users: Sequence[int], depth: int) -> int | None:
        """Return an upper bound of the number of elements of the value ``operand`` (as in ``Op.operands``)
        that all operations in ``users`` together read: they take slices of the value, or slices of
        elementwise results of it. Return None if they may read all elements, or if they read none."""
        total = 0
        for user in users if depth > 0 else ():
            if (user, operand) not in self._read:
                self._read[user, operand] = self._read_by(user, operand, depth)
            read = self._read[user, operand]
            if read is None:
                return None
            total += read
        return total or None

    def _read_by(self, user: int, operand: int, depth: int) -> int | None:
        """Return how many elements of ``operand`` the operation ``user`` reads; see ``_elements_read``."""
        op = self.ops[user]
        if op.name in NOT_OPERATIONS or self.flow.module.callee(op) is not None:
            ends = op.name in NOT_OPERATIONS
            further = self.flow.after(user) if ends else self.flow.inside(user, operand)
            total = 0
            for reader, value in further or ():
                read = self._elements_read(value, [reader], depth - 1)
                if read is None:
                    return None
                total += read
            return total or None
        result = types.tensor(op.outputs[0]) if len(op.outputs) == 1 else None
        if result is None or self._loop(user) != self._loop(operand if operand >= 0 else user):
            return None  # A loop reads another part in each iteration.
        if op.name in SLICES and op.operands[0] == operand:
            return result.elements if op.name != "stablehlo.gather" or _takes_rows(op) else None
        if _same_elements(op) or self._elementwise(op, result):
            return self._elements_read(user, self._readers(user), depth - 1)
        return None

    def _elementwise(self, op: Op, result: types.Tensor) -> bool:
        """Return whether each element of the result of ``op`` depends on one element of each operand."""
        same = all(types.tensor(text).shape == result.shape for text in op.inputs)
        return same and op.name.partition(".")[2] not in NOT_ELEMENTWISE

    def _only_diagonal(self, index: int, depth: int) -> bool:
        """Return whether the program reads only the diagonal of the result at ``index``."""
        users = self._readers(index)
        return bool(users) and all(self._reads_diagonal(user, index, depth) for user in users)

    def _reads_diagonal(self, user: int, operand: int, depth: int) -> bool:
        """Return whether the operation ``user`` reads only the diagonal of ``operand``. The answer is
        stored."""
        known = self._diagonal.get((user, operand))
        if known is None:
            known = self._diagonal[user, operand] = self._reads_the_diagonal(user, operand, depth)
        return known

    def _reads_the_diagonal(self, user: int, operand: int, depth: int) -> bool:
        """Return whether the operation ``user`` reads only the diagonal of its operand ``operand``, after at
        most ``depth`` operations in a chain. False if this is not certain. ``_reads_diagonal`` stores the
        answer for both numbers."""
        op = self.ops[user]
        if depth == 0:
            return False
        callee = self.flow.module.callee(op)
        if op.name in NOT_OPERATIONS or callee is not None:
            if callee is not None and self._is_jax_diagonal(op, callee):
                return True
            further = self.flow.after(user) if callee is None else self.flow.inside(user, operand)
            return bool(further) and all(self._reads_diagonal(u, o, depth - 1) for u, o in further or ())
        if op.name == "stablehlo.select":
            if len(op.operands) != 3 or op.operands[1] != operand or op.operands[2] == operand:
                return False  # The program uses the elements off the diagonal.
            mask = self._mask(self.flow.operand(ReachedValue(user), 0), DEPTH)
            return mask is not None and mask.is_diagonal
        return op.name in SAME_PLACES and self._only_diagonal(user, depth - 1)

    def _is_jax_diagonal(self, op: Op, callee: int) -> bool:
        """Return whether ``op`` calls JAX's function for the diagonal or the trace of a matrix."""
        shapes = [types.tensor(text).shape or () for text in (*op.inputs, *op.outputs)]
        if (
            len(shapes) != 2
            or len(shapes[0]) <= len(shapes[1])
            or not JAX_DIAGONALS.fullmatch(op.callee or "")
        ):
            return False
        f = self.flow.module.functions[callee]
        inside = range(f.first, f.end)
        return all(self.sources.own(i).frame is None for i in inside) and self._is_main_diagonal(
            inside, DEPTH
        )

    def _is_main_diagonal(self, inside: range, depth: int) -> bool:
        """Return whether the function with the operations ``inside``, or a function that it calls, compares
        two indices for equality, and so selects the main diagonal. False for a diagonal with an offset."""
        for index in inside if depth > 0 else ():
            op, callee = self.ops[index], self.flow.module.callee(self.ops[index])
            if op.name == "stablehlo.compare" and EQUAL.search(op.detail):
                mask = self._compared(ReachedValue(index))
                return mask is not None and mask.is_diagonal
            f = self.flow.module.functions[callee] if callee is not None else None
            if f is not None and self._is_main_diagonal(range(f.first, f.end), depth - 1):
                return True
        return False

    def _through_transposes(self, index: int) -> list[tuple[int, int, list[int]]] | None:
        """Return the matrix products that use the result at ``index``, directly or transposed, as (operation,
        operand, order): dimension k of the operand is dimension ``order[k]`` of the result. Return None if an
        operation of another kind uses the result, or if none does."""
        found, left = [], [(index, list(range(len(types.tensor(self.ops[index].outputs[0]).shape or ()))))]
        while left:
            value, order = left.pop()
            users = self.flow.users.get(value, [])
            for user in users:
                op = self.ops[user]
                if op.name == "stablehlo.transpose":
                    left.append((user, [order[d] for d in work.sizes(DIMS, op.detail)]))
                elif op.name == DOT and len(op.operands) == 2 and op.operands.count(value) == 1:
                    found.append((user, value, order))
                else:
                    return None
            if not users:
                return None
        return found

    def _loop(self, index: int) -> int | None:
        """Return the index of the innermost loop around the operation at ``index``, in the same function, or
        None if there is none."""
        parent = self.ops[index].parent
        while parent is not None and self.ops[parent].name not in LOOPS:
            parent = self.ops[parent].parent
        return parent

    def _mask(self, value: ReachedValue | None, depth: int) -> _Mask | None:
        """Return where ``value`` may be other than zero, if it is known to be a diagonal, banded or one-hot
        matrix; else None. At most ``depth`` operations are followed."""
        if value is None or depth == 0:
            return None
        if value not in self._masks:
            self._masks[value] = self._new_mask(value, depth)
        return self._masks[value]

    def _new_mask(self, value: ReachedValue, depth: int) -> _Mask | None:
        """Return what ``_mask`` returns, without its memory: from the comparison of indices that made
        ``value``, or from the masks of the operands of another operation."""
        op = self.ops[value.at]
        if op.name == "stablehlo.compare":
            return self._compared(value) if EQUAL.search(op.detail) else None
        if op.name not in MASKS:
            return None
        mask = self._mask(self.flow.operand(value, 0), depth - 1)
        if op.name in ("stablehlo.multiply", "stablehlo.add", "stablehlo.subtract"):
            return _combined(op, mask, self._mask(self.flow.operand(value, 1), depth - 1))
        if mask is None or op.name == "stablehlo.convert":
            return mask
        if op.name in ("stablehlo.select", "stablehlo.negate", "stablehlo.divide"):
            zero_elsewhere = op.name != "stablehlo.select" or self._is_zero(self.flow.operand(value, 2))
            is_matrix = zero_elsewhere and len(mask.dimensions) == 2
            return msgspec.structs.replace(mask, ones=False) if is_matrix else None
        if op.name == "stablehlo.gather":  # rows of the identity matrix
            rows = mask.ones and mask.is_diagonal and "collapsed_slice_dims = [0]" in op.detail
            return _Mask(frozenset(work.sizes(_OFFSET, op.detail)), True) if rows else None
        dimensions = work.sizes(DIMS, op.detail)
        if op.name == "stablehlo.transpose":
            return _transposed(mask, dimensions)
        # A broadcast: dimension d of the operand is dimensions[d] of the result.
        if max(mask.dimensions) >= len(dimensions):
            return None
        moved = frozenset(dimensions[d] for d in mask.dimensions)
        spread = any(self.flow.spreads(value, d) for d in moved)
        return msgspec.structs.replace(mask, dimensions=moved) if not spread else None

    def _compared(self, value: ReachedValue) -> _Mask | None:
        """Return where ``value``, the result of an ``==`` of two arrays, may be other than zero: on a
        diagonal if the arrays are two different indices, one-hot if they are an index and numbers that are
        equal along the dimension of this index. Return None for other arrays."""
        sides = [self.flow.operand(value, k) for k in (0, 1)]
        counts = [self._counted(side, DEPTH) for side in sides]
        if counts[0] is not None and counts[1] is not None:
            (first, less), (second, more) = sorted([counts[0], counts[1]])
            if first == second:
                return None
            return _Mask(frozenset({first, second}), True, frozenset({less - more}))
        for counted, other in zip(counts, sides[::-1], strict=True):
            if counted is not None and other is not None and self.flow.spreads(other, counted[0]):
                return _Mask(frozenset({counted[0]}), True)
        return None

    def _counted(self, value: ReachedValue | None, depth: int) -> tuple[int, int] | None:
        """Return (dimension, n) if ``value`` is n, n + 1, n + 2, ... along that dimension; else None."""
        op = self.ops[value.at] if value is not None else None
        if value is None or op is None or depth == 0:
            return None
        if op.name == "stablehlo.iota":
            found = _IOTA.search(op.detail)
            return (int(found[1]), 0) if found is not None else None
        if op.name == "stablehlo.add":
            sides = [self.flow.operand(value, k) for k in (0, 1)]
            for side, other in (sides, sides[::-1]):
                n = self._number(other)
                inner = self._counted(side, depth - 1) if n is not None else None
                if n is not None and inner is not None:
                    return inner[0], inner[1] + n
            return None
        if op.name not in ("stablehlo.broadcast_in_dim", "stablehlo.convert"):
            return None
        inner = self._counted(self.flow.operand(value, 0), depth - 1)
        if inner is None or op.name == "stablehlo.convert":
            return inner
        at, (along, n) = work.sizes(DIMS, op.detail), inner
        return (at[along], n) if along < len(at) and not self.flow.spreads(value, at[along]) else None

    def _is_zero(self, value: ReachedValue | None) -> bool:
        """Return whether ``value`` is a constant with only zeros."""
        constant = self.flow.constant(value)
        return constant is not None and ZERO.search(constant.detail) is not None

    def _number(self, value: ReachedValue | None) -> int | None:
        """Return the integer that every element of ``value`` equals, or None if ``value`` is not such a
        constant."""
        constant = self.flow.constant(value)
        found = INTEGER.search(constant.detail) if constant is not None else None
        return int(found[1]) if found is not None else None


def _largest_factor(n: int) -> int:
    """Return the largest prime factor of ``n``; 1 if ``n`` is less than 2."""
    largest, factor = 1, 2
    while factor * factor <= n:
        while n % factor == 0:
            largest, n = factor, n // factor
        factor += 1
    return max(largest, n)


def _same_elements(op: Op) -> bool:
    """Return whether ``op`` transposes an array, or only adds or removes dimensions of size 1."""
    if op.name != "stablehlo.reshape":
        return op.name == "stablehlo.transpose"
    before, after = (types.tensor(text).shape or () for text in (op.inputs[0], op.outputs[0]))
    return [n for n in before if n != 1] == [n for n in after if n != 1]


def _combined(op: Op, first: _Mask | None, second: _Mask | None) -> _Mask | None:
    """Return where the result of ``op``, a product, sum or difference, may be other than zero: a diagonal or
    banded matrix, or None. ``first`` and ``second`` are the masks of its operands."""
    matrices = [m for m in (first, second) if m is not None and len(m.dimensions) == 2]
    if op.name == "stablehlo.multiply":
        return msgspec.structs.replace(matrices[0], ones=False) if matrices else None
    if len(matrices) < 2 or matrices[0].dimensions != matrices[1].dimensions:
        return None
    return _Mask(matrices[0].dimensions, False, matrices[0].offsets | matrices[1].offsets)


def _transposed(mask: _Mask, order: Sequence[int]) -> _Mask:
    """Return the mask of a transposed array. Dimension k of the result is dimension ``order[k]`` of the
    operand, whose mask is ``mask``."""
    dimensions = [k for d in sorted(mask.dimensions) for k, before in enumerate(order) if before == d]
    in_order = dimensions == sorted(dimensions)
    offsets = mask.offsets if in_order else frozenset(-n for n in mask.offsets)
    return _Mask(frozenset(dimensions), mask.ones, offsets)


def _takes_rows(op: Op) -> bool:
    """Return whether a gather takes the whole last dimension of its operand at each index."""
    shape, sizes = types.tensor(op.inputs[0]).shape, work.sizes(SLICE_SIZES, op.detail)
    return bool(shape and sizes) and len(sizes) > 1 and sizes[-1] == (shape or (None,))[-1]


def _copies(module: Module) -> list[int]:
    """Return for each operation how many operations of the same region compute the same value, itself
    included. XLA computes the value once. For an operation that contains a region the number is 1."""
    numbers: list[int] = []
    known: dict[object, int] = {}
    parents = {op.parent for op in module.ops}
    for index, op in enumerate(module.ops):
        operands = tuple(numbers[o] if 0 <= o < index else o for o in op.operands)
        whole = len(operands) == len(op.inputs) and index not in parents
        key = (op.block, op.function, op.name, op.detail, operands, op.inputs, op.outputs) if whole else index
        numbers.append(known.setdefault(key, index))
    counts = Counter(numbers)
    return [counts[number] for number in numbers]


def _in_turn(
    first: Sequence[object],
    second: Sequence[object],
    third: Sequence[object],
    summed: Set[object],
    size: Mapping[object, int],
) -> int:
    """Return the flops of multiplying ``first`` by ``second``, and the result by ``third``. Each array is a
    list of keys of its dimensions; ``size`` has the size of each key. The dimensions in ``summed`` are added
    up as soon as no other array has them."""
    both = {*first, *second}
    left = both - (summed - set(third))
    return 2 * math.prod(size[d] for d in both) + 2 * math.prod(size[d] for d in left.union(third))


def _by_transform(op: Op) -> list[tuple[str, int, int]]:
    """Return [(KERNEL, operations, operations with Fourier transforms)] for a convolution of one channel in
    several dimensions, without strides and dilations; else an empty list."""
    found = work.convolution(op)
    if found is None:
        return []
    array, kernel = found
    spatial = [name for name in kernel if name.isdigit()]
    steps = [n for numbers in _STEPS.findall(op.detail) for n in numbers.split(",")]
    if kernel["o"] != 1 or kernel.get("i") != 1 or len(spatial) < 2 or any(n.strip() != "1" for n in steps):
        return []
    # Three transforms of real numbers: of the input, of the kernel, and back.
    n = math.prod(array[name] + kernel[name] - 1 for name in spatial)
    whole = array["b"] * 3 * 5 * n * math.ceil(math.log2(n + 1)) // 2
    return [(KERNEL, work.operations(op), whole)]


def _product(op: Op) -> _Product | None:
    """Return the dimensions of the matrix product ``op``. Return None if ``op`` is not a matrix product, or
    if a size is unknown."""
    shapes = [types.tensor(text).shape for text in op.inputs]
    if op.name != DOT or len(shapes) != 2:
        return None
    known = [tuple(n for n in shape or () if n is not None) for shape in shapes]
    dimensions = [
        (work.sizes(_LEFT[name], op.detail), work.sizes(_RIGHT[name], op.detail))
        for name in ("contracting_dims", "batching_dims")
    ]
    p = _Product((known[0], known[1]), *dimensions)
    for side in (0, 1):
        used = [*p.contracted[side], *p.batch[side]]
        if (
            shapes[side] is None
            or len(known[side]) != len(shapes[side] or ())
            or max(used, default=0) >= len(known[side])
        ):
            return None
    return p


def _first(op: Op, dimension: int, n: int) -> bool:
    """Return whether the slice ``op`` reads only indices below ``n`` of ``dimension`` (-1: the last one)."""
    bounds = _BOUNDS.findall(op.detail)
    return len(bounds) >= -dimension and int(bounds[dimension][1]) <= n
