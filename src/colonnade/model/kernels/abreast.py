"""Sums of products of `LANES` columns side by side, one column in each vector lane, written as LLVM instructions.

A tile of `tiles.py` belongs to one column. Its last vectors are cut where the rank is no multiple of `LANES`, and each
of its numbers is moved into a lane by itself. Here the rows are transposed while they are gathered, so that no
number is computed in vain and the sums are in their lanes already. This is faster as long as the rank is small.

Row k of X holds the r numbers of a row of U and the value there, in every lane: ``X[k, q, lane]``. Two numba intrinsics
on C-contiguous buffers:

- ``gather_abreast(U, rows, firsts, sizes, begin, count, nothing, X)``: rows of U, zeros behind the last of a lane;
- ``add_products(X, count, is_first, L, lane)``: X'X, added to the lanes of L from `lane` on (`lanes.py`).

Every number is the same sum in the same order as in a tile.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .emitter import BATCH, I64, LANES, VECTOR, Emitter

CHUNK = 16  # Rows that are gathered before they are multiplied: with rank 24 they fill two thirds of an L1 cache.
_AHEAD = 2  # Rows of U that are asked for before they are copied, of every lane.
_TILE = 4 if LANES == 8 else 3  # 16 sums of the 32 registers of AVX-512, or 9 of 16.


@intrinsic
def gather_abreast(typing, U, rows, values, firsts, sizes, begin, count, nothing, X):
    """X[k, :, c] = the row of U and the value of entry firsts[c] + begin + k, or zeros from entry sizes[c] on."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        U, rows, values, firsts, sizes, begin, count, nothing, X = e.args
        r = e.width(0)
        lanes = [(b.load(e.at(firsts, c)), b.load(e.at(sizes, c))) for c in range(LANES)]

        def smaller(x, y):
            return b.select(b.icmp_signed("<", x, y), x, y)

        def row_at(first, k):
            number = b.load(e.at(rows, b.add(first, k)))
            return e.at(U, b.mul(b.sext(number, I64) if number.type != I64 else number, r))

        def body(done, _):
            k = b.add(begin, done)
            sources, soon, sides = [], [], []
            for first, size in lanes:
                last, has_more = e.plus(size, -1), b.icmp_signed("<", k, size)
                sources.append(b.select(has_more, row_at(first, smaller(k, last)), nothing))
                soon.append(row_at(first, smaller(e.plus(k, _AHEAD), last)))
                value = b.load(e.at(values, b.add(first, smaller(k, last))))
                sides.append(b.select(has_more, value, ir.Constant(value.type, 0.0)))
            target = e.at(X, b.mul(b.mul(done, e.plus(r, 1)), I64(LANES)))

            def look(q, _):
                for address in soon:
                    e.prefetch(e.at(address, q))
                return []

            def move(q, _):
                q = smaller(q, e.plus(r, -2))  # The last two numbers of an odd rank overlap the ones before.
                for t, vector in enumerate(e.transposed_pairs([e.at(source, q) for source in sources])):
                    e.store(vector, e.at(target, b.mul(q, I64(LANES)), t * LANES))
                return []

            e.loop(I64(0), r, 8, [], look)
            e.loop(I64(0), r, 2, [], move)
            e.store(e.vector(sides), e.at(target, b.mul(r, I64(LANES))))
            return []

        e.loop(I64(0), count, 1, [], body)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(U, rows, values, firsts, sizes, whole, whole, nothing, X), emit


@intrinsic
def ask_for(typing, numbers, start, stop):
    """Let the numbers from `start` to `stop` be brought into the cache."""

    def emit(context, builder, signature, args):
        e = Emitter(context, builder, signature, args)
        numbers, start, stop = e.args
        line = 64 // (signature.args[0].dtype.bitwidth // 8)

        def body(k, _):
            e.prefetch(e.at(numbers, k))
            return []

        e.loop(start, stop, line, [], body)
        e.prefetch(e.at(numbers, e.plus(stop, -1)))
        return context.get_dummy_value()

    whole = types.int64
    return types.void(numbers, whole, whole), emit


@intrinsic
def add_products(typing, X, count, is_first, L, lane):
    """Add the sums of products of the first `count` rows of X; the first time, to zero."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        X, count, is_first, L, lane = e.args
        n, zero = e.width(0), ir.Constant(VECTOR, [0.0] * LANES)
        is_first = b.icmp_signed("!=", is_first, I64(0))

        def tile(i, j, places):
            """Numbers (i + p, j + q) for (p, q) in `places`."""

            def body(k, sums):
                row = e.at(X, b.mul(b.mul(k, n), I64(LANES)))

                def vectors(start, wanted):
                    return {p: e.load(e.at(row, b.mul(e.plus(start, p), I64(LANES)))) for p in sorted(wanted)}

                lefts, rights = vectors(i, {p for p, _ in places}), vectors(j, {q for _, q in places})
                return [e.plus_product(total, lefts[p], rights[q]) for total, (p, q) in zip(sums, places)]

            at = [e.at(e.row(L, e.plus(i, p)), b.mul(e.plus(j, q), I64(BATCH)), lane) for p, q in places]
            sums = e.loop(I64(0), count, 1, [b.select(is_first, zero, e.load(one)) for one in at], body)
            for vector, address in zip(sums, at):
                e.store(vector, address)

        def rows_from(i, height):
            def left_of_the_diagonal(j, _):
                tile(i, j, [(p, q) for p in range(height) for q in range(_TILE)])
                return []

            e.loop(I64(0), i, _TILE, [], left_of_the_diagonal)
            tile(i, i, [(p, q) for p in range(height) for q in range(p + 1)])
            return []

        rest = b.srem(n, I64(_TILE))
        whole = b.sub(n, rest)
        e.loop(I64(0), whole, _TILE, [], lambda i, _: rows_from(i, _TILE))

        def last_rows(height):
            rows_from(whole, height)
            return I64(0)

        e.cases(rest, {k: lambda k=k: last_rows(k) for k in range(1, _TILE)}, lambda: I64(0))
        return context.get_dummy_value()

    whole = types.int64
    return types.void(X, whole, whole, L, whole), emit
