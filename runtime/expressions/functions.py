"""What functions and operators are called, and which routines of the library they are.

A function may be several routines, by the shapes of its operands: `sum(M, 0)` is another than `sum(x)`. An
entry is one of them; the first whose shapes fit is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from qgpu.runtime.library import ROUTINES

_DIMENSIONS = {"number": (0,), "vector": (1,), "matrix": (2,), "any": (0, 1, 2)}


@dataclass(frozen=True)
class Function:
    """One meaning of a function.

    Attributes:
        routine: of the library.
        order: which operand is which argument of the routine, where that is not the order written.
        axis: the number that a last argument, `axis`, has to be, or None where there is none.
        sorted: whether the routine is given its operand sorted.
    """

    routine: str
    order: tuple[int, ...] = ()
    axis: int | None = None
    sorted: bool = False

    @property
    def takes(self) -> tuple[str, ...]:
        """Shapes of its operands, in the order written."""
        takes = ROUTINES[self.routine].takes
        return takes if not self.order else tuple(takes[self.order.index(i)] for i in range(len(takes)))

    def arranged(self, operands: Sequence[object]) -> list[object]:
        """The operands in the routine's order."""
        return [operands[i] for i in self.order] if self.order else list(operands)


def allows(kind: str, dimensions: int) -> bool:
    """Whether something of so many dimensions is of a kind, as `Routine.takes` writes it."""
    return any(dimensions in _DIMENSIONS[one] for one in kind.split("|"))


OPERATORS: dict[str, tuple[Function, ...]] = {
    "+": (Function("add"),),
    "-": (Function("subtract"),),
    "*": (Function("multiply"),),
    "//": (Function("floor_divide"),),
    "%": (Function("modulo"),),
    "**": (Function("power"),),
    "@": (Function("dot"), Function("matvec"), Function("vecmat"), Function("matmul")),
    "==": (Function("equal"),),
    "!=": (Function("not_equal"),),
    "<": (Function("less"),),
    "<=": (Function("less_equal"),),
    ">": (Function("greater"),),
    ">=": (Function("greater_equal"),),
    "&": (Function("bit_and"),),
    "|": (Function("bit_or"),),
    "^": (Function("bit_xor"),),
    "<<": (Function("shift_left"),),
    ">>": (Function("shift_right"),),
    "unary -": (Function("negate"),),
    "unary ~": (Function("bit_not"),),
}
"""Operators; those before one operand have `unary` before their sign."""

FUNCTIONS: dict[str, tuple[Function, ...]] = {
    "sum": (Function("sum"), Function("column_sums", axis=0), Function("row_sums", axis=1)),
    "prod": (Function("product"),),
    "min": (Function("smallest"), Function("minimum")),
    "max": (Function("largest"), Function("maximum")),
    "argmin": (Function("argmin"),),
    "argmax": (Function("argmax"),),
    "any": (Function("any"),),
    "all": (Function("all"),),
    "count_nonzero": (Function("count_nonzero"),),
    "abs": (Function("absolute"),),
    "sign": (Function("sign"),),
    "isqrt": (Function("isqrt"),),
    "pow": (Function("power"),),
    "gcd": (Function("gcd"),),
    "lcm": (Function("lcm"),),
    "popcount": (Function("popcount"),),
    "bit_length": (Function("bit_length"),),
    "where": (Function("where"),),
    "clip": (Function("clip"),),
    "cumsum": (Function("cumsum"),),
    "cumprod": (Function("cumprod"),),
    "cummax": (Function("cummax"),),
    "cummin": (Function("cummin"),),
    "diff": (Function("diff"),),
    "sort": (Function("sort"),),
    "argsort": (Function("argsort"),),
    "reverse": (Function("reverse"),),
    "unique": (Function("unique", sorted=True),),
    "compress": (Function("compress", order=(1, 0)),),
    "concatenate": (Function("concatenate"),),
    "histogram": (Function("histogram"),),
    "dot": OPERATORS["@"],
    "matmul": OPERATORS["@"],
    "outer": (Function("outer"),),
    "transpose": (Function("transpose"),),
    "diagonal": (Function("diagonal"),),
    "range": (Function("iota"),),
    "len": (),
}
"""Functions. `range` and `len` are evaluated by `evaluate`, which says how."""

ALIASES = {
    "T": "transpose",
    "arange": "range",
    "bincount": "histogram",
    "concat": "concatenate",
    "cumulative_sum": "cumsum",
    "diag": "diagonal",
    "flip": "reverse",
    "maximum": "max",
    "minimum": "min",
    "mod": "%",
    "product": "prod",
    "size": "len",
    "sorted": "sort",
}
"""Other names by which functions are known."""

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
"""Operators whose results are masks: 1 where they hold, else 0."""

COMBINATIONS = ("&", "|", "^")
"""Operators that make masks of masks."""

SAME = ("array", "int", "list", "matrix", "tuple")
"""Functions of Python's and numpy's that change nothing here."""

INSTEAD = {
    "average": "sum(x) // len(x) is the mean, rounded down",
    "mean": "sum(x) // len(x) is the mean, rounded down",
    "print": "the value of the last line is the result",
    "median": "sort(x)[len(x) // 2] is the upper median",
    "sqrt": "isqrt(x) is the square root, rounded down",
    "round": "numbers are whole",
    "float": "numbers are whole",
    "zeros": "range(n) * 0 has n zeros",
    "ones": "range(n) * 0 + 1 has n ones",
    "filter": "compress(mask, x) keeps the elements where the mask is not 0",
    "factorial": "prod(range(1, n + 1))",
}
"""What to write for what there is not."""
