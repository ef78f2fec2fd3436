"""The examples' launches and oracles, checked before a backend is checked against them.

Every oracle is numpy; here each is held against a plain Python loop over single elements, written from what
the kernel means, with numbers wrapped one at a time.
"""

import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from launches import HERE, LAUNCHES, Launch
from oracles import ORACLES, expect

KERNELS = sorted(path.stem for path in HERE.glob("*.cu"))
SIGNATURE = re.compile(r'extern "C" __global__ void (\w+)\(([^)]*)\)')
DTYPES = {"int": np.int32, "unsigned": np.uint32, "char": np.int8, "signed char": np.int8}
ONE_THREAD = {"maximum", "running_sum"}
TWO_DIMENSIONAL = {"matmul", "transpose"}


def s32(value: int) -> int:
    """The low 32 bits as a signed number."""
    return (value + 2**31) % 2**32 - 2**31


# The loops. Each changes the lists it is given.


def vecadd(a, b, c, n):
    for i in range(n):
        c[i] = s32(a[i] + b[i])


def saxpy(alpha, x, y, n):
    for i in range(n):
        y[i] = s32(alpha * x[i] + y[i])


def dot(a, b, out, n):
    for i in range(n):
        out[0] = s32(out[0] + a[i] * b[i])


def matvec(a, x, y, rows, columns):
    for row in range(rows):
        y[row] = 0
        for k in range(columns):
            y[row] = s32(y[row] + a[row * columns + k] * x[k])


def matmul(a, b, c, rows, inner, columns):
    for row in range(rows):
        for column in range(columns):
            total = sum(a[row * inner + k] * b[k * columns + column] for k in range(inner))
            c[row * columns + column] = s32(total)


def transpose(source, out, rows, columns):
    for row in range(rows):
        for column in range(columns):
            out[column * rows + row] = source[row * columns + column]


def relu(x, y, n):
    for i in range(n):
        y[i] = x[i] if x[i] > 0 else 0


def maximum(x, out, n):
    out[0] = x[0]
    for i in range(1, n):
        if x[i] > out[0]:
            out[0] = x[i]


def running_sum(x, out, n):
    for i in range(n):
        out[i] = s32(x[i] + (out[i - 1] if i else 0))


def histogram(values, counts, n, bins):
    for i in range(n):
        if 0 <= values[i] < bins:
            counts[values[i]] = s32(counts[values[i]] + 1)


def collatz(start, steps, n):
    for i in range(n):
        x, steps[i] = start[i], 0
        while x != 1:
            x = (3 * x + 1) % 2**32 if x & 1 else x >> 1
            steps[i] += 1


def gcd(a, b, out, n):
    for i in range(n):
        x, y = a[i], b[i]
        while y:
            x, y = y, x % y
        out[i] = x


def popcount(x, out, n):
    for i in range(n):
        out[i] = f"{x[i]:b}".count("1")


def string_length(text, lengths, width, rows):
    for i in range(rows):
        row = text[i * width : (i + 1) * width]
        lengths[i] = row.index(0) if 0 in row else width


def to_upper(text, out, n):
    for i in range(n):
        out[i] = text[i] - 32 if text[i] in range(97, 123) else text[i]


def piecewise(a, b, out, zeros, limit, n):
    for i in range(n):
        x = a[i]
        if x == 0:
            zeros[0] = s32(zeros[0] + 1)
        elif x < 0:
            out[i] = s32(-x) if x % 2 else s32(x + b[i])
        elif x < limit:
            out[i] = s32(x * b[i])
        else:
            out[i], b[i] = limit, s32(x - limit)


def find_first(table, where, rows, columns, key):
    for i in range(rows):
        where[i] = -1
        for k in reversed(range(columns)):
            if table[i * columns + k] == key:
                where[i] = k


def ping_pong(source, target, n, steps):
    for step in range(steps):
        before, after = (target, source) if step % 2 else (source, target)
        for i in range(n):
            after[i] = s32(before[(i + n - 1) % n] + before[(i + 1) % n])


LOOPS: dict[str, Callable[..., None]] = {
    loop.__name__: loop
    for loop in (
        vecadd, saxpy, dot, matvec, matmul, transpose, relu, maximum, running_sum, histogram, collatz, gcd,
        popcount, string_length, to_upper, piecewise, find_first, ping_pong,
    )
}  # fmt: skip


# Random arguments. Every output buffer is longer than it need be and full of random numbers, so that a write
# outside is seen, and so is one that is missing.


class Draw(random.Random):
    """Random numbers and buffers of the kinds that the kernels take."""

    def size(self) -> int:
        return self.randint(1, 9)

    def number(self) -> int:
        """A signed 32-bit number of any bit length, with many small ones."""
        return s32(self.getrandbits(32)) >> self.randrange(32)

    def ints(self, n: int) -> np.ndarray:
        return np.array([self.number() for _ in range(n)], dtype=np.int32)

    def unsigned(self, n: int) -> np.ndarray:
        return self.ints(n).view(np.uint32)

    def near(self, n: int, low: int, high: int) -> np.ndarray:
        return np.array([self.randint(low, high) for _ in range(n)], dtype=np.int32)

    def bytes_of(self, n: int, alphabet: str) -> np.ndarray:
        return np.frombuffer("".join(self.choices(alphabet, k=n)).encode("latin-1"), dtype=np.int8)


def _elementwise(draw: Draw) -> list:
    n = draw.size()
    return [draw.ints(n), draw.ints(n + 2), n]


def _two_inputs(draw: Draw) -> list:
    n = draw.size()
    return [draw.ints(n), draw.ints(n), draw.ints(n + 2), n]


def _matrices(draw: Draw) -> list:
    rows, inner, columns = draw.size(), draw.size(), draw.size()
    buffers = [draw.ints(size) for size in (rows * inner, inner * columns, rows * columns + 2)]
    return [*buffers, rows, inner, columns]


def _matrix_and_vector(draw: Draw) -> list:
    rows, columns = draw.size(), draw.size()
    return [draw.ints(rows * columns), draw.ints(columns), draw.ints(rows + 2), rows, columns]


def _one_matrix(draw: Draw) -> list:
    rows, columns = draw.size(), draw.size()
    return [draw.ints(rows * columns), draw.ints(rows * columns + 2), rows, columns]


def _values_and_bins(draw: Draw) -> list:
    n, bins = draw.size(), draw.size()
    return [draw.near(n, -2, bins + 1), draw.ints(bins + 2), n, bins]


def _starts(draw: Draw) -> list:
    n = draw.size()
    return [draw.near(n, 1, 10**6).view(np.uint32), draw.ints(n + 2), n]


def _pairs(draw: Draw) -> list:
    n = draw.size()
    factors = draw.near(n, 0, 99).view(np.uint32)
    return [factors * draw.near(n, 0, 99).view(np.uint32), draw.unsigned(n), draw.unsigned(n + 2), n]


def _text_rows(draw: Draw) -> list:
    rows, width = draw.size(), draw.size()
    return [draw.bytes_of(rows * width, "ab\xff\0"), draw.ints(rows + 2), width, rows]


def _letters(draw: Draw) -> list:
    n = draw.size()
    return [draw.bytes_of(n, "`az{@AZ[\0\x80\xe1\xfa\xff"), draw.bytes_of(n + 2, "?!"), n]


def _pieces(draw: Draw) -> list:
    n = draw.size()
    return [draw.near(n, -4, 9), draw.ints(n + 2), draw.ints(n + 2), draw.ints(2), draw.randint(-1, 5), n]


def _table_and_key(draw: Draw) -> list:
    rows, columns = draw.size(), draw.size()
    return [draw.near(rows * columns, 0, 5), draw.ints(rows + 2), rows, columns, draw.randint(0, 5)]


def _cells(draw: Draw) -> list:
    n = draw.size()
    return [draw.ints(n + 2), draw.ints(n + 2), n, draw.randint(0, 5)]


DRAWS: dict[str, Callable[[Draw], list]] = {
    "collatz": _starts,
    "dot": _two_inputs,
    "find_first": _table_and_key,
    "gcd": _pairs,
    "histogram": _values_and_bins,
    "matmul": _matrices,
    "matvec": _matrix_and_vector,
    "maximum": _elementwise,
    "piecewise": _pieces,
    "ping_pong": _cells,
    "popcount": lambda draw: [draw.unsigned(5), draw.ints(7), 5],
    "relu": _elementwise,
    "running_sum": _elementwise,
    "saxpy": lambda draw: [draw.number(), *_elementwise(draw)],
    "string_length": _text_rows,
    "to_upper": _letters,
    "transpose": _one_matrix,
    "vecadd": _two_inputs,
}


def by_loop(kernel: str, args: list | tuple) -> list[list[int]]:
    """What the plain loop makes of the array arguments."""
    lists = [arg.tolist() if isinstance(arg, np.ndarray) else arg for arg in args]
    LOOPS[kernel](*lists)
    return [values for values in lists if isinstance(values, list)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_oracle_agrees_with_a_plain_loop(kernel: str) -> None:
    draw = Draw(kernel)
    for _ in range(25):
        args = DRAWS[kernel](draw)
        assert [array.tolist() for array in expect(kernel, args)] == by_loop(kernel, args)


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.id)
def test_expectation_of_each_launch_agrees_with_a_plain_loop(launch: Launch) -> None:
    assert [array.tolist() for array in launch.expect()] == by_loop(launch.kernel, launch.args)


def test_every_kernel_has_launches_and_an_oracle() -> None:
    assert KERNELS == sorted(ORACLES) == sorted(LOOPS) == sorted({launch.kernel for launch in LAUNCHES})


def test_launch_names_are_unique_and_fit_a_command_line() -> None:
    names = [launch.id for launch in LAUNCHES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_-]+", name) for name in names)


def declared_parameters(path: Path) -> list[type[np.generic] | type[int]]:
    """The kernel's parameters in order: the element type of a pointer, `int` for a 32-bit scalar."""
    match = SIGNATURE.search(path.read_text())
    assert match and match[1] == path.stem, f"{path.name} must define a kernel of its own name"
    declarations = [re.sub(r"\bconst\b", "", text).strip() for text in match[2].split(",")]
    return [DTYPES[text.split("*")[0].strip()] if "*" in text else int for text in declarations]


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.id)
def test_arguments_are_of_the_declared_types(launch: Launch) -> None:
    kinds = [arg.dtype.type if isinstance(arg, np.ndarray) else type(arg) for arg in launch.args]
    assert kinds == declared_parameters(launch.file)
    assert all(-(2**31) <= arg < 2**31 for arg in launch.args if isinstance(arg, int))
    assert all(
        arg.ndim == 1 and not arg.flags.writeable for arg in launch.args if isinstance(arg, np.ndarray)
    )


def elements(launch: Launch) -> tuple[int, int]:
    """How many threads the kernel asks for along x and along y."""
    declaration = SIGNATURE.search(launch.file.read_text())
    assert declaration
    names = [text.split()[-1].lstrip("*") for text in declaration[2].split(",")]
    values = dict(zip(names, launch.args, strict=True))
    if launch.kernel in ONE_THREAD:
        return 1, 1
    if launch.kernel in TWO_DIMENSIONAL:
        return int(values["columns"]), int(values["rows"])
    return int(values["n"] if "n" in values else values["rows"]), 1


@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.id)
def test_launch_covers_its_elements_within_a_small_machine(launch: Launch) -> None:
    columns, rows = elements(launch)
    assert launch.grid[0] * launch.block[0] >= columns
    assert launch.grid[1] * launch.block[1] >= rows
    assert math.prod(launch.block) <= 128
    assert sum(arg.nbytes for arg in launch.args if isinstance(arg, np.ndarray)) <= 4 * 120


@pytest.mark.parametrize("kernel", KERNELS)
def test_first_launch_is_tiny(kernel: str) -> None:
    first = next(launch for launch in LAUNCHES if launch.kernel == kernel)
    assert first.threads <= 5
    assert max(elements(first)) <= 5
    assert all(arg.size <= 6 for arg in first.args if isinstance(arg, np.ndarray))


def test_every_kernel_is_launched_with_a_partly_filled_warp_and_on_several_blocks() -> None:
    blocks = {launch.kernel for launch in LAUNCHES if math.prod(launch.grid) > 1}
    assert set(KERNELS) - blocks <= {"ping_pong", "running_sum"}, (
        "only kernels of one thread block may lack it"
    )
    warps = [launch for launch in LAUNCHES if math.prod(launch.block) > 32]
    assert len({launch.kernel for launch in warps}) >= 5
    assert any(math.prod(launch.block) % 32 for launch in warps)


def test_a_launch_does_not_change_its_arguments() -> None:
    for launch in LAUNCHES:
        before = [np.copy(arg) for arg in launch.args]
        fresh = launch.fresh_args()
        for arg in fresh:
            if isinstance(arg, np.ndarray):
                arg[:] = 1
        launch.expect()
        assert all(np.array_equal(old, arg) for old, arg in zip(before, launch.args, strict=True))
