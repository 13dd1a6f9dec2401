"""Two loops with sums in vector registers, written for LLVM.

Numba's own loops write each sum back. `add` adds rows of a matrix, each times a number, to a row: products with what is
mostly zero. `dots` has inner products of one row with some rows of a matrix. The order of a sum depends on its own
terms alone, on one kind of processor.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils
from numba.core.registry import cpu_target

FLOAT, INT, PLACE = ir.FloatType(), ir.IntType(64), ir.IntType(32)
LANES = 16  # floats; LLVM cuts such vectors where the processor's are shorter
HALF = LANES // 2  # floats of a vector of AVX2
FEATURES = cpu_target.target_context.codegen()._tm_features
AVX512 = "+avx512f" in FEATURES
COMPRESSES = AVX512 or "+avx2" in FEATURES
"""True if the processor compresses a vector to the lanes of a mask, which `relu_lanes` needs."""
# Columns whose sums fit into half of the registers: AVX-512 has 32 with 16 floats each, AVX2 has 16 with 8 …
REGISTERS = 256 if AVX512 else 64
# … and inner products that are made side by side, each in lanes of its own.
TOGETHER = 8 if REGISTERS == 256 else 4

Builder = Any
Value = Any
intrinsic: Any = extending.intrinsic


def _load(b: Builder, pointer: Value) -> Value:
    vector = b.load(b.bitcast(pointer, ir.VectorType(FLOAT, LANES).as_pointer()))
    vector.align = 4  # rows may begin anywhere
    return vector


def _store(b: Builder, vector: Value, pointer: Value) -> None:
    b.store(vector, b.bitcast(pointer, vector.type.as_pointer())).align = 2  # lists of units are of two bytes each


def _places(places: list[int]) -> Value:
    return ir.Constant(ir.VectorType(PLACE, len(places)), places)


def _times_plus(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """Returns x·y + z, in one instruction where the processor has one."""
    return b.fadd(b.fmul(x, y, flags=("contract",)), z, flags=("contract",))


def _row(b: Builder, array: Value, row: Value) -> Value:
    """Returns the address at which a row of a matrix begins."""
    return b.gep(array.data, [b.mul(row, b.extract_value(array.shape, 1))])


def _index(b: Builder, array: Value, at: Value) -> Value:
    number = b.load(b.gep(array.data, [at]))
    return number if number.type == INT else b.zext(number, INT)


def _adder(columns: int, chains: int) -> Callable[..., None]:
    """Returns an `add` of so many columns, in sums of every chains-th row.

    A single sum would wait for each of its additions.
    """

    @intrinsic
    def add(context, into, i, column, source, index, factor, at, end):  # type: ignore[no-untyped-def]  # noqa: PLR0913
        """Adds Σ factor[t] · source[index[t], column:], t in at … end−1, to into[i, column:]."""
        signature = types.void(into, types.int64, types.int64, source, index, factor, types.int64, types.int64)
        return signature, generate

    def generate(context: Any, b: Builder, signature: Any, arguments: Any) -> Value:
        into, source, index, factor = (
            context.make_array(signature.args[k])(context, b, arguments[k]) for k in (0, 3, 4, 5)
        )
        out = b.gep(_row(b, into, arguments[1]), [arguments[2]])
        parts = [INT(LANES * k) for k in range(columns // LANES)]
        sums = [[_load(b, b.gep(out, [part])) for part in parts]]
        sums += [[ir.Constant(sums[0][0].type, None)] * len(parts) for _ in range(chains - 1)]

        def term(at: Value, before: list[Value]) -> list[Value]:
            """Adds one more row to one of the chains."""
            undefined = ir.Constant(ir.VectorType(FLOAT, LANES), ir.Undefined)
            number = b.insert_element(undefined, b.load(b.gep(factor.data, [at])), PLACE(0))
            number = b.shuffle_vector(number, undefined, _places([0] * LANES))
            row = b.gep(_row(b, source, _index(b, index, at)), [arguments[2]])
            return [_times_plus(b, number, _load(b, b.gep(row, [p])), s) for p, s in zip(parts, before, strict=True)]

        at = arguments[6]
        # All chains as long as there is a row for each, then the first alone.
        for step in dict.fromkeys((chains, 1)):
            at, sums = _loop(b, at, arguments[7], step, sums, term)
        while len(sums) > 1:
            sums = [
                [b.fadd(x, y) for x, y in zip(*pair, strict=True)] for pair in zip(sums[::2], sums[1::2], strict=True)
            ]
        for part, total in zip(parts, sums[0], strict=True):
            _store(b, total, b.gep(out, [part]))
        return context.get_dummy_value()

    return add  # type: ignore[no-any-return]


def _loop(
    b: Builder, begin: Value, end: Value, step: int, sums: list[list[Value]], term: Callable[..., list[Value]]
) -> tuple[Value, list[list[Value]]]:
    """Goes on while `step` more rows are left; returns where it ends, and the sums."""
    before = b.block
    head, body, done = (b.append_basic_block(name) for name in ("head", "body", "done"))
    b.branch(head)
    b.position_at_end(head)
    at = _loop_variable(b, begin, before)
    carried = [[_loop_variable(b, total, before) for total in chain] for chain in sums]
    following = b.add(at, INT(step))
    b.cbranch(b.icmp_signed("<=", following, end), body, done)
    b.position_at_end(body)
    for number, chain in enumerate(carried):
        terms = term(b.add(at, INT(number)), chain) if number < step else chain
        for phi, value in zip(chain, terms, strict=True):
            phi.add_incoming(value, b.block)
    at.add_incoming(following, b.block)
    b.branch(head)
    b.position_at_end(done)
    return at, carried


def _loop_variable(b: Builder, value: Value, before: Value) -> Value:
    """Returns a variable of a loop, as it is at the beginning of each round."""
    phi = b.phi(value.type)
    phi.add_incoming(value, before)
    return phi


# A row of 16 or 32 columns has too few sums to keep the processor busy.
add_256, add_128, add_64 = (_adder(columns, 1) for columns in (256, 128, 64))
add_32, add_16 = _adder(32, 2), _adder(16, 4)


@intrinsic
def dots(context, into, values, i, source, matrix, index, at):  # type: ignore[no-untyped-def]  # noqa: PLR0913
    """Writes the inner products of source[i] with the rows index[at], …, index[at + TOGETHER − 1] of a matrix.

    They go into row i of `into` at those columns, and side by side into values[at:].
    """
    return types.void(into, values, types.int64, source, matrix, index, types.int64), _dots


def _dots(context: Any, b: Builder, signature: Any, arguments: Any) -> Value:
    into, values, source, matrix, index = (
        context.make_array(signature.args[k])(context, b, arguments[k]) for k in (0, 1, 3, 4, 5)
    )
    here, out = _row(b, source, arguments[2]), _row(b, into, arguments[2])
    columns = [_index(b, index, b.add(arguments[6], INT(k))) for k in range(TOGETHER)]
    rows = [_row(b, matrix, column) for column in columns]
    before, body, done = b.block, b.append_basic_block("body"), b.append_basic_block("done")
    b.branch(body)
    b.position_at_end(body)
    at = _loop_variable(b, INT(0), before)
    sums = [_loop_variable(b, ir.Constant(ir.VectorType(FLOAT, LANES), None), before) for _ in rows]
    part = _load(b, b.gep(here, [at]))
    products = [_times_plus(b, part, _load(b, b.gep(row, [at])), total) for row, total in zip(rows, sums, strict=True)]
    following = b.add(at, INT(LANES))
    for phi, value in zip((at, *sums), (following, *products), strict=True):
        phi.add_incoming(value, b.block)
    b.cbranch(b.icmp_signed("<", following, b.extract_value(source.shape, 1)), body, done)
    b.position_at_end(done)
    total = _lane_sums(b, products)
    _store(b, total, b.gep(values.data, [arguments[6]]))
    for number, column in enumerate(columns):
        b.store(b.extract_element(total, PLACE(number)), b.gep(out, [column]))
    return context.get_dummy_value()


def _lane_sums(b: Builder, vectors: list[Value]) -> Value:
    """Returns the sums of the lanes of each of TOGETHER vectors, as one vector."""
    width = 1
    # Two vectors become one, with half as many partial sums of each: by ones, pairs, fours in turn.
    while len(vectors) > 1:
        firsts = [lane for begin in range(0, LANES, 2 * width) for side in (0, LANES)
                  for lane in range(side + begin, side + begin + width)]  # fmt: skip
        halves = [_places([lane + more for lane in firsts]) for more in (0, width)]
        vectors = [
            b.fadd(*(b.shuffle_vector(one, other, half) for half in halves))
            for one, other in zip(vectors[::2], vectors[1::2], strict=True)
        ]
        width *= 2
    (sums,), lanes = vectors, LANES
    while lanes > TOGETHER:
        lanes //= 2
        sums = b.fadd(
            *(b.shuffle_vector(sums, sums, _places(list(range(begin, begin + lanes)))) for begin in (0, lanes))
        )
    return sums


def _apply_relu(context: Any, b: Builder, signature: Any, arguments: Any) -> tuple[Value, Value]:
    """Applies ReLU to hidden[i, column : column + LANES] in place; returns (the result, the mask of lanes that pass).

    NaN passes, too.
    """
    hidden = context.make_array(signature.args[0])(context, b, arguments[0])
    pointer = b.gep(_row(b, hidden, arguments[1]), [arguments[2]])
    vector = _load(b, pointer)
    zero = ir.Constant(vector.type, None)
    passes = b.fcmp_unordered(">", vector, zero)
    vector = b.select(passes, vector, zero)
    _store(b, vector, pointer)
    return vector, passes


@intrinsic
def relu_bits(context, hidden, i, column):  # type: ignore[no-untyped-def]
    """Applies ReLU to hidden[i, column : column + LANES] in place; returns the lanes that pass as bits.

    NaN passes, too.
    """
    return types.int64(hidden, types.int64, types.int64), _relu_bits


def _relu_bits(context: Any, b: Builder, signature: Any, arguments: Any) -> Value:
    _, passes = _apply_relu(context, b, signature, arguments)
    return b.zext(b.bitcast(passes, ir.IntType(LANES)), INT)


@intrinsic
def lowest(context, bits):  # type: ignore[no-untyped-def]
    """Returns the place of the lowest bit that is set; one is."""
    return types.int64(types.int64), lambda context, b, signature, arguments: b.cttz(arguments[0], ir.IntType(1)(1))


@intrinsic
def relu_lanes(context, hidden, i, column, unit, value, at):  # type: ignore[no-untyped-def]
    """Applies `relu_bits`, and writes the lanes that pass to unit[at:] and value[at:]; returns how many.

    Up to LANES places are written. Works where the processor `COMPRESSES` vectors.
    """
    return types.int64(hidden, types.int64, types.int64, unit, value, types.int64), _relu_lanes


def _relu_lanes(context: Any, b: Builder, signature: Any, arguments: Any) -> Value:
    unit, value = (context.make_array(signature.args[k])(context, b, arguments[k]) for k in (3, 4))
    vector, passes = _apply_relu(context, b, signature, arguments)
    width = LANES if AVX512 else HALF
    end = arguments[5]
    for begin in range(0, LANES, width):
        lanes = _places(list(range(begin, begin + width)))
        values, mask = b.shuffle_vector(vector, vector, lanes), b.shuffle_vector(passes, passes, lanes)
        order, values = (_compress_by_avx512 if AVX512 else _compress_by_avx2)(b, values, mask)
        first = b.insert_element(ir.Constant(order.type, ir.Undefined), b.trunc(arguments[2], PLACE), PLACE(0))
        first = b.add(b.shuffle_vector(first, first, _places([0] * width)), _places([begin] * width))
        numbers = ir.VectorType(unit.data.type.pointee, width)
        _store(b, b.trunc(b.add(order, first), numbers), b.gep(unit.data, [end]))
        _store(b, values, b.gep(value.data, [end]))
        end = b.add(end, b.zext(b.ctpop(b.bitcast(mask, ir.IntType(width))), INT))
    return b.sub(end, arguments[5])


def _compress_by_avx512(b: Builder, vector: Value, passes: Value) -> tuple[Value, Value]:
    """Returns the places of the lanes that pass and these lanes, one after another, by AVX-512."""
    packed = []
    for lanes, kind in ((_places(list(range(LANES))), "i32"), (vector, "f32")):
        function = ir.FunctionType(lanes.type, [lanes.type, lanes.type, passes.type])
        name = f"llvm.x86.avx512.mask.compress.v{LANES}{kind}"
        compress = cgutils.get_or_insert_function(b.module, function, name)  # type: ignore[no-untyped-call]
        packed.append(b.call(compress, [lanes, ir.Constant(lanes.type, None), passes]))
    return packed[0], packed[1]


def _compress_by_avx2(b: Builder, vector: Value, passes: Value) -> tuple[Value, Value]:
    """Returns the places of the lanes that pass and these lanes, one after another, of HALF, by AVX2."""
    masks = range(2**HALF)
    # Of each mask, the lanes that it names, then the others, which are written over.
    orders = [sorted(range(HALF), key=lambda lane: not mask >> lane & 1) for mask in masks]
    table = ir.Constant(ir.ArrayType(ir.VectorType(PLACE, HALF), len(masks)), [_places(order) for order in orders])
    known = cgutils.global_constant(b, "orders", table)  # type: ignore[no-untyped-call]
    mask = b.zext(b.bitcast(passes, ir.IntType(HALF)), INT)
    order = b.load(b.gep(known, [INT(0), mask]))
    function = ir.FunctionType(vector.type, [vector.type, order.type])
    permute = cgutils.get_or_insert_function(b.module, function, "llvm.x86.avx2.permps")  # type: ignore[no-untyped-call]
    return order, b.call(permute, [vector, order])
