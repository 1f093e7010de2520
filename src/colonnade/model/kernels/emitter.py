"""Words on top of llvmlite's builder in which the vector loops of the kernels are written.

Vectors have `LANES` numbers: 8 with AVX-512, 4 with AVX, 2 elsewhere.
"""

from __future__ import annotations

import re

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils, config


def _target_lanes() -> int:
    """Of the processor that numba compiles for: the one that NUMBA_CPU_FEATURES describes, or this one."""
    given = config.CPU_FEATURES
    features = llvm.get_host_cpu_features() if given is None else dict.fromkeys(re.findall(r"\+([^,\s]+)", given), True)
    return 8 if features.get("avx512f") else 4 if features.get("avx") else 2


LANES = _target_lanes()
DEPTH = 2  # Vectors per number of a batch: two chains of divisions and square roots hide each other's latency.
BATCH = DEPTH * LANES

I8, I32, I64 = (ir.IntType(bits) for bits in (8, 32, 64))
_F64 = ir.DoubleType()
VECTOR = ir.VectorType(_F64, LANES)
_UNDEFINED = ir.Constant(VECTOR, ir.Undefined)
_FUSE = ("contract",)  # a * b + c may be one instruction; nothing else is relaxed, NaN and infinity keep their meaning


class Emitter:
    """A few words on top of llvmlite's builder; `b` is the builder itself."""

    def __init__(self, context, builder, signature, args):
        assert all(kind.layout == "C" for kind in signature.args if isinstance(kind, types.Array))
        self.b = builder
        self._arrays = [
            context.make_array(kind)(context, builder, arg) if isinstance(kind, types.Array) else None
            for kind, arg in zip(signature.args, args)
        ]
        self.args = [arg if array is None else array.data for array, arg in zip(self._arrays, args)]

    def size(self, k):
        """Numbers in argument k."""
        return self._arrays[k].nitems

    def width(self, k):
        """Columns of argument k, a matrix."""
        return self.b.extract_value(self._arrays[k].shape, 1)

    def at(self, base, *offsets):
        for offset in offsets:
            base = self.b.gep(base, [I64(offset) if isinstance(offset, int) else offset])
        return base

    def plus(self, a, constant):
        return self.b.add(a, I64(constant)) if constant else a

    def load(self, address):
        """LANES numbers, widened to float64 if they are float32."""
        number = address.type.pointee
        vector = ir.VectorType(number, LANES)
        loaded = self.b.load(self.b.bitcast(address, vector.as_pointer()), align=4 if number != _F64 else 8)
        return loaded if number == _F64 else self.b.fpext(loaded, VECTOR)

    def prefetch(self, address):
        """Ask for the cache line with this address."""
        pointer = I8.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [pointer, I32, I32, I32])
        ask = cgutils.get_or_insert_function(self.b.module, kind, "llvm.prefetch.p0")
        self.b.call(ask, [self.b.bitcast(address, pointer), I32(0), I32(3), I32(1)])

    def store(self, vector, address):
        self.b.store(vector, self.b.bitcast(address, VECTOR.as_pointer()), align=8)

    def lanes_below(self, count):
        """The lanes with a number below `count`, for `load_some` and `store_some`."""
        numbers = ir.Constant(ir.VectorType(I64, LANES), list(range(LANES)))
        limit = self.b.insert_element(ir.Constant(numbers.type, ir.Undefined), count, I32(0))
        return self.b.icmp_signed("<", numbers, self.shuffle(limit, [0] * LANES))

    def load_some(self, address, mask):
        """The numbers of some lanes, 0 in the others, whose memory is not touched."""
        pointer, zero = VECTOR.as_pointer(), ir.Constant(VECTOR, [0.0] * LANES)
        kind = ir.FunctionType(VECTOR, [pointer, I32, mask.type, VECTOR])
        load = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.masked.load.v{LANES}f64.p0")
        return self.b.call(load, [self.b.bitcast(address, pointer), I32(8), mask, zero])

    def store_some(self, vector, address, mask):
        pointer = VECTOR.as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [VECTOR, pointer, I32, mask.type])
        store = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.masked.store.v{LANES}f64.p0")
        self.b.call(store, [vector, self.b.bitcast(address, pointer), I32(8), mask])

    def shuffle(self, vector, lanes):
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), lanes)
        return self.b.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

    def transposed_pairs(self, addresses):
        """Two vectors: the number at each of `LANES` addresses, and the one behind it."""
        b, kind = self.b, ir.VectorType(addresses[0].type.pointee, 2)
        pairs = [b.load(b.bitcast(address, kind.as_pointer()), align=4) for address in addresses]
        even, odd = self._joined(pairs[::2]), self._joined(pairs[1::2])
        for t in range(2):
            lanes = [k for c in range(0, LANES, 2) for k in (c + t, LANES + c + t)]
            vector = b.shuffle_vector(even, odd, ir.Constant(ir.VectorType(I32, LANES), lanes))
            yield vector if kind.element == _F64 else b.fpext(vector, VECTOR)

    def _joined(self, parts):
        """One vector of several of the same length, which are a power of two."""
        while len(parts) > 1:
            size = 2 * parts[0].type.count
            lanes = ir.Constant(ir.VectorType(I32, size), list(range(size)))
            parts = [self.b.shuffle_vector(x, y, lanes) for x, y in zip(parts[::2], parts[1::2])]
        return parts[0]

    def vector(self, numbers):
        """A vector of `LANES` numbers, widened to float64 if they are float32."""
        joined = ir.Constant(ir.VectorType(numbers[0].type, LANES), ir.Undefined)
        for c, number in enumerate(numbers):
            joined = self.b.insert_element(joined, number, I32(c))
        return joined if joined.type == VECTOR else self.b.fpext(joined, VECTOR)

    def splat(self, scalar):
        return self.shuffle(self.b.insert_element(_UNDEFINED, scalar, I32(0)), [0] * LANES)

    def lane(self, vector, i):
        return self.b.extract_element(vector, I32(i))

    def total(self, vector):
        """The sum of the lanes: halves are added to each other."""
        while vector.type.count > 1:
            half = vector.type.count // 2
            low, high = (self.shuffle(vector, list(range(at, at + half))) for at in (0, half))
            vector = self.b.fadd(low, high)
        return self.lane(vector, 0)

    def as_float64(self, number):
        return number if number.type == _F64 else self.b.fpext(number, _F64)

    def as_number(self, number, base):
        """A float64 as a number of the array at `base`."""
        kind = base.type.pointee
        return number if kind == _F64 else self.b.fptrunc(number, kind)

    def plus_product(self, a, x, y):
        return self.b.fadd(a, self.b.fmul(x, y, flags=_FUSE), flags=_FUSE)

    def minus_product(self, a, x, y):
        return self.b.fsub(a, self.b.fmul(x, y, flags=_FUSE), flags=_FUSE)

    def inverse_root(self, vector):
        kind = ir.FunctionType(VECTOR, [VECTOR])
        sqrt = cgutils.get_or_insert_function(self.b.module, kind, f"llvm.sqrt.v{LANES}f64")
        return self.b.fdiv(ir.Constant(VECTOR, [1.0] * LANES), self.b.call(sqrt, [vector]))

    def number(self, base, index=None):
        """One number of every lane."""
        base = base if index is None else self.at(base, self.b.mul(index, I64(BATCH)))
        return [self.load(self.at(base, t * LANES)) for t in range(DEPTH)]

    def put(self, number, base, index):
        for t, vector in enumerate(number):
            self.store(vector, self.at(base, self.b.mul(index, I64(BATCH)), t * LANES))

    def row(self, L, q):
        """Address of row q of the packed triangles."""
        half = self.b.ashr(self.b.mul(q, self.plus(q, 1)), I64(1))
        return self.at(L, self.b.mul(half, I64(BATCH)))

    def each(self, operation, *numbers):
        return [operation(*vectors) for vectors in zip(*numbers)]

    def loop(self, start, stop, step, carried, body):
        """``for k in range(start, stop, step): carried = body(k, carried)`` with the carried values in registers."""
        b, before = self.b, self.b.block
        inside, after = b.append_basic_block("loop"), b.append_basic_block("after")
        b.cbranch(b.icmp_signed("<", start, stop), inside, after)
        b.position_at_end(inside)
        k = b.phi(I64)
        k.add_incoming(start, before)
        current = [b.phi(x.type) for x in carried]
        for phi, x in zip(current, carried):
            phi.add_incoming(x, before)
        updated = body(k, current)
        last = b.block  # another one than `inside` if the body has loops
        following = b.add(k, I64(step))
        k.add_incoming(following, last)
        for phi, x in zip(current, updated):
            phi.add_incoming(x, last)
        b.cbranch(b.icmp_signed("<", following, stop), inside, after)
        b.position_at_end(after)
        result = [b.phi(x.type) for x in carried]
        for phi, x, y in zip(result, carried, updated):
            phi.add_incoming(x, before)
            phi.add_incoming(y, last)
        return result

    def cases(self, key, bodies, default):
        """The integer that the body of this key returns, or `default`, each in blocks of its own."""
        b, done, other = self.b, self.b.append_basic_block("done"), self.b.append_basic_block("other")
        switch, found = b.switch(key, other), []
        for value, body in [*bodies.items(), (None, default)]:
            block = other if value is None else b.append_basic_block("case")
            if value is not None:
                switch.add_case(I64(value), block)
            b.position_at_end(block)
            found.append((body(), b.block))
            b.branch(done)
        b.position_at_end(done)
        result = b.phi(I64)
        for number, block in found:
            result.add_incoming(number, block)
        return result
