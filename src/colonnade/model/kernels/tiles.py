"""The four vector loops of the kernel, written as LLVM instructions.

A compiler that sees ``for i: for j: G[i, j] += x[i] * x[j]`` keeps G in memory and spends most of its time moving
it. The way to the machine's limit is a tile of G that stays in registers while all rows of X stream past, and plain
numba loops do not give that. So the inner loops are emitted here, instruction by instruction, for vectors of `LANES`
numbers (8 with AVX-512, 4 with AVX, 2 elsewhere); everything around them is ordinary numba in `column_kernels.py`.

Each function is a numba intrinsic on C-contiguous float64 buffers:

- ``gather(U, i, scale, X, k, r)``: row k of X becomes ``scale * U[i]``;
- ``head(X, s, R, j, width, ...)``, ``tail(...)``: rows ``j : j + LANES`` of the upper Cholesky factor R of
  ``X'X + diag(penalty)``, for the columns of one tile. A head tile holds the diagonal, a tail tile lies to its right;
- ``backward(R, T, j, r, y, z)``: entries ``j : j + LANES`` of z in ``R z = y``;
- ``prefetch(U, i, r)``: asks for row i of U ahead of its use.

Every number is the same sum in the same order whatever tile it falls into, so that a column solved alone and the
same column solved in a group of thousands agree to the last bit. All numbers in the buffers must be finite: what
stands beyond column r is multiplied by zero.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _host_lanes() -> int:
    features = llvm.get_host_cpu_features()
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


LANES = _host_lanes()
TILE_VECTORS = (
    3  # a tile is LANES rows x (3 LANES) columns: 12 accumulators of 16 registers with AVX, 24 of 32 with AVX-512
)

_I1, _I8, _I32, _I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
_F64 = ir.DoubleType()
_VECTOR = ir.VectorType(_F64, LANES)
_UNDEFINED = ir.Constant(_VECTOR, ir.Undefined)
_FUSE = ("contract",)  # a * b + c may be one instruction; nothing else is relaxed, NaN and infinity keep their meaning


class _Emitter:
    """A few words on top of llvmlite's builder; `b` is the builder itself."""

    def __init__(self, context, builder, signature, args):
        assert all(kind.layout == "C" for kind in signature.args if isinstance(kind, types.Array))
        self.b = builder
        self.args = [
            context.make_array(kind)(context, builder, arg).data if isinstance(kind, types.Array) else arg
            for kind, arg in zip(signature.args, args)
        ]

    def at(self, base, *offsets):
        for offset in offsets:
            base = self.b.gep(base, [_I64(offset) if isinstance(offset, int) else offset])
        return base

    def plus(self, a, constant):
        return self.b.add(a, _I64(constant)) if constant else a

    def load(self, address):
        """LANES numbers, widened to float64 if they are float32."""
        number = address.type.pointee
        vector = ir.VectorType(number, LANES)
        loaded = self.b.load(self.b.bitcast(address, vector.as_pointer()), align=4 if number != _F64 else 8)
        return loaded if number == _F64 else self.b.fpext(loaded, _VECTOR)

    def store(self, vector, address):
        self.b.store(vector, self.b.bitcast(address, _VECTOR.as_pointer()), align=8)

    def shuffle(self, vector, lanes):
        mask = ir.Constant(ir.VectorType(_I32, len(lanes)), lanes)
        return self.b.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

    def splat(self, scalar):
        return self.shuffle(self.b.insert_element(_UNDEFINED, scalar, _I32(0)), [0] * LANES)

    def lane(self, vector, i):
        return self.b.extract_element(vector, _I32(i))

    def plus_product(self, a, x, y):
        return self.b.fadd(a, self.b.fmul(x, y, flags=_FUSE), flags=_FUSE)

    def minus_product(self, a, x, y):
        return self.b.fsub(a, self.b.fmul(x, y, flags=_FUSE), flags=_FUSE)

    def sqrt(self, vector):
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        return self.b.call(cgutils.get_or_insert_function(self.b.module, kind, f"llvm.sqrt.v{LANES}f64"), [vector])

    def total(self, vector):
        """Sum of the lanes, by halving."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (
                self.shuffle(vector, list(range(half))),
                self.shuffle(vector, list(range(half, 2 * half))),
            )
            vector = self.b.fadd(low, high)
        return self.lane(vector, 0)

    def loop(self, start, stop, step, carried, body):
        """``for k in range(start, stop, step): carried = body(k, carried)`` with the carried values in registers."""
        b, before = self.b, self.b.block
        inside, after = b.append_basic_block("loop"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), inside, after)
        b.position_at_end(inside)
        k = b.phi(_I64)
        k.add_incoming(start, before)
        current = [b.phi(x.type) for x in carried]
        for phi, x in zip(current, carried):
            phi.add_incoming(x, before)
        updated = body(k, current)
        following = b.add(k, _I64(step))
        k.add_incoming(following, inside)
        for phi, x in zip(current, updated):
            phi.add_incoming(x, inside)
        b.cbranch(b.icmp_signed("<", following, stop), inside, after)
        b.position_at_end(after)
        result = [b.phi(x.type) for x in carried]
        for phi, first, last in zip(result, carried, updated):
            phi.add_incoming(first, before)
            phi.add_incoming(last, inside)
        return result


def _add_products(e, tile, data, stride, count, j, v, operation):
    """tile[i][t] += or -= sum over k < count of data[k, j + i] * data[k, v + t * LANES :]; tile is flat."""
    n_vectors = len(tile) // LANES

    def body(k, tile):
        row = e.at(data, e.b.mul(k, stride))
        left, right = e.at(row, j), e.at(row, v)
        vectors = [e.load(e.at(right, t * LANES)) for t in range(n_vectors)]
        result = []
        for i in range(LANES):
            factor = e.splat(e.b.load(e.at(left, i)))
            result += [operation(tile[i * n_vectors + t], factor, vectors[t]) for t in range(n_vectors)]
        return result

    return e.loop(_I64(0), count, 1, tile, body)


def _eliminate(e, tile, i, multipliers):
    """Subtract row i of the tile from its later rows, as one step of Gaussian elimination."""
    n_vectors = len(tile) // LANES
    for k in range(i + 1, LANES):
        factor = multipliers(k)
        for t in range(n_vectors):
            tile[k * n_vectors + t] = e.minus_product(tile[k * n_vectors + t], factor, tile[i * n_vectors + t])


def _factor_diagonal(e, tile, diagonal, j, r, steps, share):
    """Eliminate within a head tile; returns the scale of every row and whether all pivots are large enough.

    The pivots p_i follow one another through a division only; their square roots are taken together at the end.
    """
    b, n_vectors = e.b, len(tile) // LANES
    sound, inverses = _I1(1), _UNDEFINED
    for i in range(LANES):
        row = tile[i * n_vectors]
        pivot = e.lane(row, i)
        least = b.fmul(share, diagonal[i])
        beyond = b.icmp_signed(">=", e.plus(j, i), r)
        sound = b.and_(sound, b.or_(b.fcmp_ordered(">", pivot, least), beyond))
        inverse = b.fdiv(_F64(1.0), pivot)
        inverses = b.insert_element(inverses, inverse, _I32(i))
        multipliers = b.fmul(row, e.splat(inverse))
        e.store(multipliers, steps[i])
        _eliminate(e, tile, i, lambda k, m=multipliers: e.shuffle(m, [k] * LANES))
    roots = e.sqrt(inverses)
    return [e.shuffle(roots, [i] * LANES) for i in range(LANES)], sound


def _make_tile(n_vectors: int, is_head: bool):
    def emit(context, builder, signature, args):
        e = _Emitter(context, builder, signature, args)
        X, s, R, T, stride, penalty, j, v, r, share = e.args
        b = builder
        tile = [ir.Constant(_VECTOR, [0.0] * LANES)] * (LANES * n_vectors)
        if is_head:
            for i in range(LANES):
                tile[i * n_vectors] = b.insert_element(tile[i * n_vectors], b.load(e.at(penalty, j, i)), _I32(i))
        tile = _add_products(e, tile, X, stride, s, j, v, e.plus_product)
        diagonal = [e.lane(tile[i * n_vectors], i) for i in range(LANES)] if is_head else None
        tile = _add_products(e, tile, R, stride, j, j, v, e.minus_product)
        # T[j + i] remembers step i for the tail tiles: LANES multipliers, then 1 / sqrt(pivot) LANES times.
        steps = [e.at(T, b.mul(e.plus(j, i), _I64(2 * LANES))) for i in range(LANES)]
        if is_head:
            scales, sound = _factor_diagonal(e, tile, diagonal, j, r, steps, share)
            for step, scale in zip(steps, scales):
                e.store(scale, e.at(step, LANES))
        else:
            sound = _I1(1)
            for i, step in enumerate(steps):
                _eliminate(e, tile, i, lambda k, step=step: e.splat(b.load(e.at(step, k))))
            scales = [e.load(e.at(step, LANES)) for step in steps]
        for i in range(LANES):
            row = e.at(R, b.mul(e.plus(j, i), stride), v)
            for t in range(n_vectors):
                e.store(b.fmul(tile[i * n_vectors + t], scales[i]), e.at(row, t * LANES))
        return b.zext(sound, _I64)

    @intrinsic
    def tile(typing, X, s, R, T, stride, penalty, j, v, r, share):
        whole, real = types.int64, types.float64
        return whole(X, whole, R, T, whole, penalty, whole, whole, whole, real), emit

    return tile


head1, head2, head3 = (_make_tile(k, True) for k in (1, 2, 3))
tail1, tail2, tail3 = (_make_tile(k, False) for k in (1, 2, 3))


@intrinsic
def backward(typing, R, T, stride, j, r, y, z):
    """z[j : j + LANES] from rows j : j + LANES of R z = R[:, y]; z holds the later entries, and zeros from r on."""

    def emit(context, builder, signature, args):
        e = _Emitter(context, builder, signature, args)
        R, T, stride, j, r, y, z = e.args
        b = builder
        rows = [e.at(R, b.mul(e.plus(j, i), stride)) for i in range(LANES)]
        zero = ir.Constant(_VECTOR, [0.0] * LANES)

        def body(k, sums):
            later = e.load(e.at(z, k))
            return [e.plus_product(sums[i], e.load(e.at(rows[i], k)), later) for i in range(LANES)]

        sums = e.loop(e.plus(j, LANES), r, LANES, [zero] * LANES, body)
        found = [None] * LANES
        for i in reversed(range(LANES)):
            value = b.fsub(b.load(e.at(rows[i], y)), e.total(sums[i]))
            for k in range(i + 1, LANES):
                value = e.minus_product(value, b.load(e.at(rows[i], j, k)), found[k])
            value = b.fmul(value, b.load(e.at(T, b.mul(e.plus(j, i), _I64(2 * LANES)), LANES)))
            found[i] = b.select(b.icmp_signed("<", e.plus(j, i), r), value, _F64(0.0))
            b.store(found[i], e.at(z, j, i))
        return context.get_dummy_value()

    whole = types.int64
    return types.void(R, T, whole, whole, whole, whole, z), emit


@intrinsic
def gather(typing, U, i, scale, X, k, stride, r):
    """X[k, :r] = scale * U[i]; reads and writes whole vectors, that is up to LANES - 1 numbers beyond r."""

    def emit(context, builder, signature, args):
        e = _Emitter(context, builder, signature, args)
        U, i, scale, X, k, stride, r = e.args
        source, target = e.at(U, builder.mul(i, r)), e.at(X, builder.mul(k, stride))
        scales = e.splat(scale)

        def body(q, _):
            e.store(builder.fmul(e.load(e.at(source, q)), scales), e.at(target, q))
            return []

        e.loop(_I64(0), r, LANES, [], body)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(U, whole, types.float64, X, whole, whole, whole), emit


@intrinsic
def prefetch(typing, U, i, r):
    """Ask the memory for row i of U, to be used soon."""

    def emit(context, builder, signature, args):
        e = _Emitter(context, builder, signature, args)
        U, i, r = e.args
        pointer = _I8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, _I32, _I32, _I32])
        ask = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        source = e.at(U, builder.mul(i, r))

        def body(q, _):
            builder.call(ask, [builder.bitcast(e.at(source, q), pointer), _I32(0), _I32(3), _I32(1)])
            return []

        e.loop(_I64(0), r, 8, [], body)
        return context.get_dummy_value()

    whole = types.int64
    return types.void(U, whole, whole), emit
