"""The vector loops over entries, written as LLVM instructions: rows gathered, and their sums of products.

A compiler that sees ``for i: for j: G[i, j] += x[i] * x[j]`` keeps G in memory and spends most of its time moving
it. The way to the machine's limit is a tile of G that stays in registers while all rows of X stream past, and plain
numba loops do not give that. So the inner loops are emitted here, instruction by instruction; everything around them is
ordinary numba. Each function is a numba intrinsic on C-contiguous float64 buffers:

- ``gather(U, rows, first, s, X)``: row k of X becomes ``U[rows[first + k]]``, for k < s;
- ``head(X, s, L, j, v, lane)``, ``tail(...)``, ``corner(...)``: one tile of X'X, put into a lane of L (`lanes.py`);
- ``add_rows(X, rows, first, count, factors, total)``: a weighted sum of rows;
- ``take_off(X, rows, first, count, Z, j, offset, values, result)``: values less the products of rows with one vector.

Every number is the same sum in the same order whatever tile or lane it falls into, so that a column solved alone and
the same column solved beside thousands agree to the last bit.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .emitter import BATCH, I64, LANES, VECTOR, Emitter

ROWS_AHEAD = 6  # Rows of U that are asked for before they are copied.
UNROLLED = 6  # Vectors up to which the copy of a row is straight code, without a loop.
FAR_AHEAD = 16  # Likewise, where each row is used once: 8 to 32 take the same time.
TOGETHER = 8  # Vectors of a sum of rows that are kept in registers.


def _make_gram(widths: tuple[int, ...], is_head: bool):
    """Tiles of LANES rows below each other, of so many vectors; a head lies on the diagonal, where rows meet columns.

    Three vectors in all are 12 accumulators of 16 registers with AVX, 24 of 32 with AVX-512.
    """
    # Row and first column of every accumulator within the tile.
    places = [
        (h * LANES + i, (h + t) * LANES) for h, width in enumerate(widths) for i in range(LANES) for t in range(width)
    ]

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        X, s, L, j, v, lane = e.args
        stride = e.width(0)

        def body(k, tile):
            row = e.at(X, b.mul(k, stride))
            left, right = e.at(row, j), e.at(row, v)
            vectors = {c: e.load(e.at(right, c)) for c in sorted({c for _, c in places})}
            factors = {i: e.splat(b.load(e.at(left, i))) for i in sorted({i for i, _ in places})}
            return [e.plus_product(total, factors[i], vectors[c]) for total, (i, c) in zip(tile, places)]

        zero = ir.Constant(VECTOR, [0.0] * LANES)
        tile = e.loop(I64(0), s, 1, [zero] * len(places), body)
        columns = [e.at(e.row(L, e.plus(v, c)), b.mul(j, I64(BATCH)), lane) for c in range((widths[0]) * LANES)]
        for vector, (i, first) in zip(tile, places):
            for c in range(max(0, i - first) if is_head else 0, LANES):
                b.store(e.lane(vector, c), e.at(columns[first + c], i * BATCH))
        return context.get_dummy_value()

    @intrinsic
    def gram(typing, X, s, L, j, v, lane):
        whole = types.int64
        return types.void(X, whole, L, whole, whole, whole), emit

    return gram


head1, head2, head3, corner = (_make_gram(widths, True) for widths in ((1,), (2,), (3,), (2, 1)))
tail1, tail2, tail3 = (_make_gram((width,), False) for width in (1, 2, 3))


@intrinsic
def gather(typing, U, rows, first, s, X):
    """X[k, :r] = U[rows[first + k]] for k < s; returns the largest of these rows.

    Reads and writes whole vectors, that is up to LANES - 1 numbers beyond r; U has as many numbers. Rows so close to
    its end that this would reach past it get other numbers, and the caller has to copy them.
    """

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        U, rows, first, s, X = e.args
        r, stride, end = e.width(0), e.width(4), b.sub(e.size(1), I64(1))
        n_vectors = b.sdiv(e.plus(r, LANES - 1), I64(LANES))
        last = b.sdiv(b.sub(e.size(0), b.mul(n_vectors, I64(LANES))), r)

        def smaller(x, y):
            return b.select(b.icmp_signed("<", x, y), x, y)

        def row_at(place):
            number = b.load(e.at(rows, place))
            return b.sext(number, I64) if number.type != I64 else number

        def copy(count):
            def body(k, largest):
                i, ahead = row_at(b.add(first, k)), row_at(smaller(b.add(first, e.plus(k, ROWS_AHEAD)), end))
                source, soon = e.at(U, b.mul(smaller(i, last), r)), e.at(U, b.mul(ahead, r))
                target = e.at(X, b.mul(k, stride))

                def move(q, _):
                    e.store(e.load(e.at(source, q)), e.at(target, q))
                    return []

                def look(q, _):
                    e.prefetch(e.at(soon, q))
                    return []

                if count:
                    for q in range(0, count * LANES, 8):
                        look(q, [])
                    for q in range(count):
                        move(q * LANES, [])
                else:
                    e.loop(I64(0), r, 8, [], look)
                    e.loop(I64(0), r, LANES, [], move)
                return [b.select(b.icmp_signed(">", i, largest[0]), i, largest[0])]

            return e.loop(I64(0), s, 1, [I64(-1)], body)[0]

        return e.cases(n_vectors, {k: lambda k=k: copy(k) for k in range(1, UNROLLED + 1)}, lambda: copy(0))

    whole = types.int64
    return whole(U, rows, whole, whole, X), emit


@intrinsic
def add_rows(typing, X, rows, first, count, factors, total):
    """total += sum over k < count of factors[k] X[rows[first + k]], one row after the other."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        X, rows, first, count, factors, total = e.args
        width = e.width(0)
        n_vectors = b.sdiv(e.plus(width, LANES - 1), I64(LANES))

        def add(n, v, result):
            """For n vectors from column v on; the last may be cut."""
            mask = e.lanes_below(b.sub(width, e.plus(v, (n - 1) * LANES)))

            def read(base):
                whole = [e.load(e.at(base, t * LANES)) for t in range(n - 1)]
                return [*whole, e.load_some(e.at(base, (n - 1) * LANES), mask)]

            def body(k, sums):
                row = b.load(e.at(rows, b.add(first, k)))
                row = b.sext(row, I64) if row.type != I64 else row
                factor = e.splat(b.load(e.at(factors, k)))
                numbers = read(e.at(X, b.mul(row, width), v))
                return [e.plus_product(old, factor, new) for old, new in zip(sums, numbers)]

            target = e.at(total, v)
            sums = e.loop(I64(0), count, 1, read(target), body)
            for t, vector in enumerate(sums[:-1]):
                e.store(vector, e.at(target, t * LANES))
            e.store_some(sums[-1], e.at(target, (n - 1) * LANES), mask)
            return result

        rest = b.srem(b.sub(n_vectors, I64(1)), I64(TOGETHER))  # one less than the vectors of the last chunk
        before = b.mul(b.sub(b.sub(n_vectors, I64(1)), rest), I64(LANES))
        e.loop(I64(0), before, TOGETHER * LANES, [], lambda v, carried: add(TOGETHER, v, carried))
        e.cases(rest, {k: lambda k=k: add(k + 1, before, I64(0)) for k in range(TOGETHER)}, lambda: I64(0))
        return context.get_dummy_value()

    whole = types.int64
    return types.void(X, rows, whole, whole, factors, total), emit


@intrinsic
def take_off(typing, X, rows, first, count, Z, j, offset, values, result):
    """result[k] = values[k] - (offset + Z[j]'X[rows[k]]) for first <= k < first + count."""

    def emit(context, builder, signature, args):
        e, b = Emitter(context, builder, signature, args), builder
        X, rows, first, count, Z, j, offset, values, result = e.args
        width, end = e.width(0), b.sub(e.size(1), I64(1))
        n_vectors = b.sdiv(e.plus(width, LANES - 1), I64(LANES))
        z = e.at(Z, b.mul(j, width))

        def row_at(place):
            number = b.load(e.at(rows, place))
            return e.at(X, b.mul(b.sext(number, I64) if number.type != I64 else number, width))

        def subtract(product):
            """From all values, with product(row)."""

            def body(k, _):
                ahead = e.plus(k, FAR_AHEAD)
                soon = row_at(b.select(b.icmp_signed("<", ahead, end), ahead, end))

                def look(q, _):
                    e.prefetch(e.at(soon, q))
                    return []

                e.loop(I64(0), width, 8, [], look)
                fitted = b.fadd(offset, e.total(product(row_at(k))))
                b.store(e.as_number(b.fsub(e.as_float64(b.load(e.at(values, k))), fitted), result), e.at(result, k))
                return []

            e.loop(first, b.add(first, count), 1, [], body)
            return I64(0)

        def in_registers(n):
            """For n vectors; the last one may be cut."""
            mask = e.lanes_below(b.sub(width, I64((n - 1) * LANES)))

            def read(base):
                whole = [e.load(e.at(base, t * LANES)) for t in range(n - 1)]
                return [*whole, e.load_some(e.at(base, (n - 1) * LANES), mask)]

            factors = read(z)

            def product(row):
                total = ir.Constant(VECTOR, [0.0] * LANES)
                for factor, number in zip(factors, read(row)):
                    total = e.plus_product(total, factor, number)
                return total

            return subtract(product)

        def by_a_loop():
            def product(row):
                def add(v, sums):
                    mask = e.lanes_below(b.sub(width, v))
                    return [e.plus_product(sums[0], e.load_some(e.at(z, v), mask), e.load_some(e.at(row, v), mask))]

                return e.loop(I64(0), width, LANES, [ir.Constant(VECTOR, [0.0] * LANES)], add)[0]

            return subtract(product)

        e.cases(n_vectors, {n: lambda n=n: in_registers(n) for n in range(1, UNROLLED + 1)}, by_a_loop)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(X, rows, whole, whole, Z, whole, types.float64, values, result), emit
