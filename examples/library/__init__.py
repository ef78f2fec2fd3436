"""The library: a kernel for each common operation on vectors and matrices of 32-bit integers.

What the kernels compute is exact, or the launch stops at an assertion that says why. Each fits the machine
`default`; how large operands may be is its memory's bound.
"""

from __future__ import annotations

from qgpu.runtime.library import bounds, plans
from qgpu.runtime.library.table import Routine, routine

_LEAST, _MOST = -(2**31), 2**31 - 1

ROUTINES: dict[str, Routine] = {
    row.name: row
    for row in (
        # Elementwise, of two.
        routine("add", "any any", "any", plans.elementwise, bounds.sums),
        routine("subtract", "any any", "any", plans.elementwise, bounds.sums),
        routine("multiply", "any any", "any", plans.elementwise, bounds.products),
        routine("floor_divide", "any any", "any", plans.elementwise, bounds.divisors),
        routine("modulo", "any any", "any", plans.elementwise, bounds.moduli),
        routine("power", "any any", "any", plans.elementwise, bounds.powers),
        routine("minimum", "any any", "any", plans.elementwise),
        routine("maximum", "any any", "any", plans.elementwise),
        routine("gcd", "any any", "any", plans.elementwise, bounds.magnitudes),
        routine("lcm", "any any", "any", plans.elementwise, bounds.products),
        routine("equal", "any any", "any", plans.elementwise),
        routine("not_equal", "any any", "any", plans.elementwise),
        routine("less", "any any", "any", plans.elementwise),
        routine("less_equal", "any any", "any", plans.elementwise),
        routine("greater", "any any", "any", plans.elementwise),
        routine("greater_equal", "any any", "any", plans.elementwise),
        routine("bit_and", "any any", "any", plans.elementwise),
        routine("bit_or", "any any", "any", plans.elementwise),
        routine("bit_xor", "any any", "any", plans.elementwise),
        routine("shift_left", "any any", "any", plans.elementwise, bounds.shifts_left),
        routine("shift_right", "any any", "any", plans.elementwise, bounds.shifts_right),
        # Elementwise, of one or three.
        routine("negate", "any", "any", plans.elementwise, bounds.magnitudes),
        routine("absolute", "any", "any", plans.elementwise, bounds.magnitudes),
        routine("sign", "any", "any", plans.elementwise),
        routine("isqrt", "any", "any", plans.elementwise, bounds.not_negative),
        routine("bit_not", "any", "any", plans.elementwise),
        routine("popcount", "any", "any", plans.elementwise),
        routine("bit_length", "any", "any", plans.elementwise),
        routine("where", "any any any", "any", plans.elementwise),
        routine("clip", "any any any", "any", plans.elementwise),
        # To one number.
        routine("sum", "any", "number", plans.folded(0), bounds.totals),
        routine("product", "any", "number", plans.serial_fold, bounds.total_product),
        routine("smallest", "any", "number", plans.folded(_MOST)),
        routine("largest", "any", "number", plans.folded(_LEAST)),
        routine("any", "any", "number", plans.folded(0)),
        routine("all", "any", "number", plans.folded(1)),
        routine("count_nonzero", "any", "number", plans.folded(0)),
        routine("argmin", "vector", "number", plans.serial_fold),
        routine("argmax", "vector", "number", plans.serial_fold),
        # Along a vector.
        routine("cumsum", "vector", "vector", plans.serial_scan, bounds.totals),
        routine("cumprod", "vector", "vector", plans.serial_scan, bounds.total_product),
        routine("cummax", "vector", "vector", plans.serial_scan),
        routine("cummin", "vector", "vector", plans.serial_scan),
        routine("diff", "vector", "vector", plans.neighbours, bounds.differences),
        # Order and place.
        routine("sort", "vector", "vector", plans.in_place),
        routine("argsort", "vector", "vector", plans.beside),
        routine("reverse", "vector", "vector", plans.reversed_line),
        routine("unique", "vector", "vector", plans.shortened),
        routine("compress", "vector vector", "vector", plans.shortened),
        routine("gather", "vector|matrix number|vector", "any", plans.gathered, bounds.places),
        routine("concatenate", "vector|matrix vector|matrix", "vector|matrix", plans.joined),
        routine("histogram", "any number", "vector", plans.binned, bounds.bins),
        routine("iota", "number number", "vector", plans.counted, bounds.sums),
        # Of matrices.
        routine("dot", "vector vector", "number", plans.folded(0), bounds.inner_products),
        routine("matvec", "matrix vector", "vector", plans.matrix_by_vector, bounds.inner_products),
        routine("vecmat", "vector matrix", "vector", plans.vector_by_matrix, bounds.inner_products),
        routine("matmul", "matrix matrix", "matrix", plans.matrix_by_matrix, bounds.inner_products),
        routine("outer", "vector vector", "matrix", plans.each_with_each, bounds.products),
        routine("transpose", "matrix", "matrix", plans.transposed),
        routine("diagonal", "matrix", "vector", plans.on_the_diagonal),
        routine("row_sums", "matrix", "vector", plans.along_rows, bounds.totals),
        routine("column_sums", "matrix", "vector", plans.along_columns, bounds.totals),
    )
}
"""Every routine, by its name."""
