"""Cholesky factors of `BATCH` matrices side by side, one in each vector lane, written as LLVM instructions.

Number (q, p), p <= q, of the matrix in lane c stands at ``L[(q (q + 1) / 2 + p) BATCH + c]``, and a vector of
right-hand sides has ``y[i BATCH + c]``. Each function is a numba intrinsic on C-contiguous float64 buffers:

- ``factor(L, inverse, n)``: Cholesky factors below the diagonals, which stay, and 1 / sqrt(pivot) in `inverse`;
- ``forward(L, inverse, n, y)``, ``backward(L, inverse, n, y)``: substitution in place;
- ``extremes(L, inverse, n, found)``: what the pivots tell about the condition.

The order n is even. No lane depends on what the others hold.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .emitter import DEPTH, I64, LANES, VECTOR, Emitter


def _less_products(e, numbers, lefts, rights, stop):
    """numbers[a, b] - sum over k < stop of lefts[a][k] rights[b][k], for addresses of rows; `numbers` is flat."""

    def body(k, flat):
        x, y = ([e.number(row, k) for row in rows] for rows in (lefts, rights))
        factors = [(p, q) for left in x for right in y for p, q in zip(left, right)]
        return [e.minus_product(total, *pair) for total, pair in zip(flat, factors)]

    flat = e.loop(I64(0), stop, 1, [vector for number in numbers for vector in number], body)
    return [flat[k : k + DEPTH] for k in range(0, len(flat), DEPTH)]


@intrinsic
def factor(typing, L, inverse, n):
    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        L, inverse, n = e.args
        times = b.fmul

        def rows_of(j):
            return [e.row(L, j), e.row(L, e.plus(j, 1))]

        def pair_of_rows(j, _):
            lower = rows_of(j)
            after = e.plus(j, 1)

            def pair_of_columns(i, _):
                upper, following = rows_of(i), e.plus(i, 1)
                tile = [e.number(row, at) for row in lower for at in (i, following)]
                tile = _less_products(e, tile, lower, upper, i)
                scales, between = [e.number(inverse, at) for at in (i, following)], e.number(upper[1], i)
                for a, row in enumerate(lower):
                    first = e.each(times, tile[2 * a], scales[0])
                    second = e.each(e.minus_product, tile[2 * a + 1], first, between)
                    e.put(first, row, i)
                    e.put(e.each(times, second, scales[1]), row, following)
                return []

            e.loop(I64(0), j, 2, [], pair_of_columns)
            tile = [e.number(lower[0], j), e.number(lower[1], j), e.number(lower[1], after)]
            first, below, second = _less_triangle(e, tile, lower, j)
            first = e.each(e.inverse_root, first)
            below = e.each(times, below, first)
            second = e.each(e.inverse_root, e.each(e.minus_product, second, below, below))
            for number, base, at in ((first, inverse, j), (below, lower[1], j), (second, inverse, after)):
                e.put(number, base, at)
            return []

        e.loop(I64(0), n, 2, [], pair_of_rows)
        return context.get_dummy_value()

    return types.void(L, inverse, types.int64), emit


def _less_triangle(e, numbers, rows, stop):
    """The same for the products (0, 0), (1, 0) and (1, 1) of two rows."""

    def body(k, flat):
        x, y = (e.number(row, k) for row in rows)
        pairs = [*zip(x, x), *zip(y, x), *zip(y, y)]
        return [e.minus_product(total, *pair) for total, pair in zip(flat, pairs)]

    flat = e.loop(I64(0), stop, 1, [vector for number in numbers for vector in number], body)
    return [flat[k : k + DEPTH] for k in range(0, len(flat), DEPTH)]


@intrinsic
def forward(typing, L, inverse, n, y):
    """y becomes the solution x of R'x = y, where R' is the factor."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        L, inverse, n, y = e.args

        def body(i, _):
            rows, after = [e.row(L, i), e.row(L, e.plus(i, 1))], e.plus(i, 1)
            first, second = _less_products(e, [e.number(y, i), e.number(y, after)], rows, [y], i)
            first = e.each(b.fmul, first, e.number(inverse, i))
            second = e.each(e.minus_product, second, e.number(rows[1], i), first)
            e.put(first, y, i)
            e.put(e.each(b.fmul, second, e.number(inverse, after)), y, after)
            return []

        e.loop(I64(0), n, 2, [], body)
        return context.get_dummy_value()

    return types.void(L, inverse, types.int64, y), emit


@intrinsic
def backward(typing, L, inverse, n, y):
    """y becomes the solution x of R x = y."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        L, inverse, n, y = e.args

        def body(done, _):
            i = b.sub(b.sub(n, done), I64(2))
            rows, after = [e.row(L, i), e.row(L, e.plus(i, 1))], e.plus(i, 1)
            second = e.each(b.fmul, e.number(y, after), e.number(inverse, after))
            first = e.each(e.minus_product, e.number(y, i), e.number(rows[1], i), second)
            first = e.each(b.fmul, first, e.number(inverse, i))
            e.put(first, y, i)
            e.put(second, y, after)

            def update(k, _):
                value = e.each(e.minus_product, e.number(y, k), e.number(rows[1], k), second)
                e.put(e.each(e.minus_product, value, e.number(rows[0], k), first), y, k)
                return []

            e.loop(I64(0), i, 1, [], update)
            return []

        e.loop(I64(0), n, 2, [], body)
        return context.get_dummy_value()

    return types.void(L, inverse, types.int64, y), emit


@intrinsic
def extremes(typing, L, inverse, n, found):
    """Of every lane: the largest diagonal / pivot, the largest and the smallest 1 / sqrt(pivot), in rows of `found`.

    A pivot that is not positive makes all later ones NaN, and then the largest are NaN too or infinite.
    """

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        L, inverse, n, found = e.args

        def larger(x, y):
            return b.select(b.fcmp_unordered(">", x, y), x, y)

        def smaller(x, y):
            return b.select(b.fcmp_ordered("<", x, y), x, y)

        def body(i, flat):
            root = e.number(inverse, i)
            share = e.each(b.fmul, e.each(b.fmul, e.number(e.row(L, i), i), root), root)
            kinds = (larger, share), (larger, root), (smaller, root)
            kept = [flat[k : k + DEPTH] for k in range(0, len(flat), DEPTH)]
            return [x for (operation, new), old in zip(kinds, kept) for x in e.each(operation, new, old)]

        zero, one = (ir.Constant(VECTOR, [x] * LANES) for x in (0.0, float("inf")))
        flat = e.loop(I64(0), n, 1, [zero] * (2 * DEPTH) + [one] * DEPTH, body)
        for k in range(3):
            e.put(flat[k * DEPTH : (k + 1) * DEPTH], found, I64(k))
        return context.get_dummy_value()

    return types.void(L, inverse, types.int64, found), emit
