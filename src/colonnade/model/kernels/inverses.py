"""Inverse of a symmetric positive definite matrix and solution of one system with it, in one pass.

The sweep operator on the lower triangle: after a sweep over pivot k,

    a_ij - a_ik a_kj / a_kk,     a_ik / a_kk,     -1 / a_kk

stand at (i, j), (i, k) and (k, k). After all pivots the matrix is minus its inverse. A right-hand side that is stored
as one more row becomes the solution. `BLOCK` pivots are applied at a time, so that each number of the triangle is
loaded and stored once for `BLOCK` multiplications. All loops run over whole vectors. It is written as LLVM
instructions, which compile in a fifth of the time that numba needs for the same loops.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from .emitter import I64, LANES, Emitter

BLOCK = 4  # Pivots applied at a time; 8 need more registers than there are.
PAD = 8  # Numbers in a cache line, and in the longest vector.
_ROUNDING = 1e-15  # Share of the largest diagonal entry below which a pivot is rounding.


def workspace(r: int) -> tuple[np.ndarray, np.ndarray]:
    """Zeros for `sweep`: the matrix with the right-hand side as row r, and three panels of `BLOCK` rows."""
    width = (r + 1 + PAD) // PAD * PAD
    return np.zeros((r + 2, width)), np.zeros((3 * BLOCK, width))


@intrinsic
def sweep(typing, A, panels):
    """Replace the lower triangle of A[:r] by minus the inverse and row r by the solution; returns log det A.

    A has r + 2 rows, so that two rows can be updated at a time. What stands beyond the diagonal is never used. Pivots
    that rounding has used up are replaced by rounding itself, as a slightly stronger prior would.
    """

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        A, panels = e.args
        width, number = e.width(0), ir.DoubleType()
        r = e.plus(b.sdiv(e.size(0), width), -2)
        # Row t of the block as it changes, as it was when its pivot came, and that divided by the pivot.
        panel_rows = [e.at(panels, b.mul(width, I64(k))) for k in range(3 * BLOCK)]
        current, before, scaled = (panel_rows[k : k + BLOCK] for k in range(0, 3 * BLOCK, BLOCK))
        one, zero = ir.Constant(number, 1.0), ir.Constant(number, 0.0)

        def row(i):
            return e.at(A, b.mul(i, width))

        def row_of(panel, t):
            return e.at(panel[0], b.mul(t, width))

        def over(stop, body):
            """``body(q)`` for every vector of the first `stop` columns."""
            e.loop(I64(0), stop, LANES, [], lambda q, _: body(q) or [])

        def larger(x, y):
            return b.select(b.fcmp_ordered(">", x, y), x, y)

        def copy(source, target):
            over(width, lambda q: e.store(e.load(e.at(source, q)), e.at(target, q)))

        def block(k, carried):
            rest = b.sub(r, k)
            count = b.select(b.icmp_signed("<", rest, I64(BLOCK)), rest, I64(BLOCK))

            def read(t, _):
                """Column k + t below the diagonal is the rest of row k + t."""
                c, target = b.add(k, t), row_of(current, t)
                copy(row(c), target)
                e.loop(c, e.plus(r, 1), 1, [], lambda i, _: b.store(b.load(e.at(row(i), c)), e.at(target, i)) and [])
                return []

            def pivot(t, carried):
                c, own = b.add(k, t), row_of(current, t)
                size = larger(b.load(e.at(own, c)), floor)
                inverse = b.fdiv(one, size)
                numbers = [b.load(e.at(panel_row, c)) for panel_row in current]
                factors = [b.select(b.icmp_signed("==", t, I64(s)), zero, x) for s, x in enumerate(numbers)]
                many, by = [e.splat(factor) for factor in factors], e.splat(inverse)

                def vector(q):
                    x = e.load(e.at(own, q))
                    share = b.fmul(x, by)
                    e.store(x, e.at(row_of(before, t), q))
                    e.store(share, e.at(row_of(scaled, t), q))
                    for s in range(BLOCK):
                        place = e.at(current[s], q)
                        e.store(e.minus_product(e.load(place), many[s], share), place)
                    e.store(share, e.at(own, q))

                over(width, vector)
                for s in range(BLOCK):
                    b.store(b.fmul(factors[s], inverse), e.at(current[s], c))
                b.store(b.fneg(inverse), e.at(own, c))
                return [b.fadd(carried[0], b.call(log, [size]))]

            def nothing(t, _):
                for panel in (before, scaled):
                    over(width, lambda q, panel=panel: e.store(e.splat(zero), e.at(row_of(panel, t), q)))
                return []

            def two_rows(i, _):
                """Less the products of the block; what stands in the block's own rows is overwritten."""
                rows = [row(i), row(e.plus(i, 1))]
                factors = [[e.splat(b.load(e.at(scaled[t], e.plus(i, h)))) for t in range(BLOCK)] for h in range(2)]

                def vector(q):
                    numbers = [e.load(e.at(before[t], q)) for t in range(BLOCK)]
                    for h in range(2):
                        total = e.load(e.at(rows[h], q))
                        for t in range(BLOCK):
                            total = e.minus_product(total, factors[h][t], numbers[t])
                        e.store(total, e.at(rows[h], q))

                over(e.plus(i, 2), vector)
                return []

            def write(t, _):
                c, source = b.add(k, t), row_of(current, t)
                copy(source, row(c))
                e.loop(c, e.plus(r, 1), 1, [], lambda i, _: b.store(b.load(e.at(source, i)), e.at(row(i), c)) and [])
                return []

            e.loop(I64(0), count, 1, [], read)
            carried = e.loop(I64(0), count, 1, carried, pivot)
            e.loop(count, I64(BLOCK), 1, [], nothing)
            e.loop(I64(0), e.plus(r, 1), 2, [], two_rows)
            e.loop(I64(0), count, 1, [], write)
            return carried

        log = cgutils.get_or_insert_function(b.module, ir.FunctionType(number, [number]), "llvm.log.f64")
        (largest,) = e.loop(I64(0), r, 1, [zero], lambda i, old: [larger(b.load(e.at(row(i), i)), old[0])])
        floor = b.fmul(largest, ir.Constant(number, _ROUNDING))
        return e.loop(I64(0), r, BLOCK, [zero], block)[0]

    return types.float64(A, panels), emit
