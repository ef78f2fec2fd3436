"""Files in the style of textbooks and samples, with host code, templates and macros, run unchanged.

Results are computed here in Python, on the host's numbers.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from qgpu.runtime import compile
from qgpu.toolchain.cuda import COMPILERS

SAMPLES = Path(__file__).parent / "samples"
RANDOM = np.random.default_rng(5)


@dataclass(frozen=True)
class Launch:
    """A launch of a sample: `wanted` has the arrays that it must leave, by the numbers of their arguments."""

    file: str
    kernel: str | None
    sizes: tuple[Any, ...]
    arguments: Sequence[Any]
    wanted: dict[int, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}:{self.kernel or ''}"


def ints(count: int, low: int = -50, high: int = 50, dtype: str = "i4") -> np.ndarray:
    return RANDOM.integers(low, high, count).astype(dtype)


def zeros(count: int, dtype: str = "i4") -> np.ndarray:
    return np.zeros(count, dtype)


def matmul(n: int) -> Launch:
    a, b = ints(n * n), ints(n * n)
    product = (a.reshape(n, n) @ b.reshape(n, n)).ravel()
    return Launch("tiled_matmul", None, ((2, 2), (4, 4)), [a, b, zeros(n * n), n], {2: product})


def block_sums() -> Launch:
    a = ints(56)
    sums = [a[:32].sum(), a[32:].sum()]
    return Launch("reduction_shared", None, (2, 32, 128), [a, zeros(2), 56], {1: sums})


def unrolled(kernel: str, oracle: Callable[[np.ndarray], Any]) -> Launch:
    a = ints(32)
    return Launch("reduction_template", kernel, (1, 16), [a, zeros(1)], {1: [oracle(a)]})


def exclusive_scan() -> Launch:
    a = ints(32)
    return Launch("scan_blelloch", None, (1, 16, 136), [zeros(32), a, 32], {0: np.cumsum(a) - a})


def histogram() -> Launch:
    data = ints(100, 0, 256, "u1")
    bins = np.bincount(data % 8, minlength=8)
    return Launch("histogram", "histogram_kernel", (2, 16), [data, zeros(8, "u4"), 100], {1: bins})


def convolution() -> Launch:
    a = ints(20)
    return Launch("constant_convolution", None, (1, 32), [a, zeros(20), 20],
                  {1: np.convolve(a, [1, 2, 3, 2, 1], "same")})  # fmt: skip


def tiles() -> Launch:
    lanes = [8 + 3] * 64
    return Launch("cooperative_tiles", None, (1, 64, 256), [zeros(69)], {0: [2016, *[120] * 4, *lanes]})


def transpose(kernel: str, transposed: bool) -> Launch:
    a = ints(256)
    square = a.reshape(16, 16)
    wanted = (square.T if transposed else square).ravel()
    return Launch("transpose", kernel, ((2, 2), (8, 2)), [zeros(256), a], {0: wanted})


def life() -> Launch:
    world = RANDOM.integers(0, 2, (8, 8)).astype("u1")
    n = sum(np.roll(world, (y - 1, x - 1), (0, 1)) for y, x in np.ndindex(3, 3) if (y, x) != (1, 1))
    after = ((n == 3) | ((world == 1) & (n == 2))).astype("u1")
    return Launch("game_of_life", "life::step", ((1, 2), (8, 4)), [8, 8, world.ravel(), zeros(64, "u1")],
                  {3: after.ravel()})  # fmt: skip


def sorted_step() -> Launch:
    a = ints(64)
    pairs = a.reshape(16, 2, 2)
    wanted = np.concatenate([np.sort(p[i])[:: (1, -1)[i]] for p in pairs for i in (0, 1)])
    return Launch("bitonic_sort", None, (2, 32), [a, 1, 2], {0: wanted})


def stencil() -> Launch:
    grid = ints(64, 0, 100).reshape(8, 8)
    padded = np.pad(grid, 1)
    total = padded[:-2, 1:-1] + padded[2:, 1:-1] + padded[1:-1, :-2] + padded[1:-1, 2:]
    return Launch("stencil_2d", None, ((2, 2), (4, 4)), [grid.ravel(), zeros(64)], {1: (total // 4).ravel()})


def mandelbrot() -> Launch:
    def escape(px: int, py: int) -> int:
        cx, cy = -8192 + px * 12288 // 8, -4096 + py * 8192 // 8
        x = y = n = 0
        while n < 16 and (x * x >> 12) + (y * y >> 12) <= 16384:
            x, y, n = (x * x >> 12) - (y * y >> 12) + cx, (2 * x * y >> 12) + cy, n + 1
        return n

    image = [escape(x, y) for y in range(8) for x in range(8)]
    return Launch("mandelbrot_fixed", "mandelbrot<16>", ((2, 2), (4, 4)), [zeros(64, "u1"), 8, 8], {0: image})


def atomics() -> Launch:
    a = ints(20, 0, 100)
    start = np.array([-1, 1000, 0, 0], "i4")
    wanted = [a.max(), a.min(), reduce(lambda x, y: x ^ y, a.tolist()), (a % 3).sum()]
    return Launch("atomics_queue", "maxima", (1, 32), [a, start, 20], {1: wanted})


def search() -> Launch:
    text = b'xab"{ab{ab"{'
    found = [int(text[i : i + 4] == b'ab"{') for i in range(len(text))]
    return Launch("string_search", None, (1, 32), [np.frombuffer(text, "i1").copy(), len(text), zeros(12)],
                  {2: found})  # fmt: skip


def pascal() -> Launch:
    row = [1] + [0] * 15
    for _ in range(11):
        row = [(a + b) % 97 for a, b in zip([0, *row[:-1]], row, strict=True)]
    return Launch("pascal_dynamic", None, (1, 16, 64), [zeros(16, "u4"), 12], {0: row})


def monte_carlo() -> Launch:
    def count(state: int) -> int:
        inside, points = 0, []
        for _ in range(8):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            points.append(state >> 33 & 0xFF)
        for x, y in zip(points[::2], points[1::2], strict=True):
            inside += x * x + y * y < 0x10000
        return inside

    return Launch("random_lcg", "monte_carlo", (1, 8), [12345, 4, zeros(8)],
                  {2: [count(12345 + i) for i in range(8)]})  # fmt: skip


def overlaps() -> Launch:
    lows, widths = ints(8, 0, 6), ints(8, 0, 9)
    highs = lows + widths
    both = np.minimum.outer(highs, highs) - np.maximum.outer(lows, lows)
    totals = np.maximum(both, 0).sum(1)
    inside = (lows <= 5) & (highs > 5)
    return Launch("operators_and_unions", None, (1, 32), [lows, highs, zeros(8), 8],
                  {2: np.where(inside, totals, 2**31 - 1)})  # fmt: skip


A, B = ints(100), ints(100)
S = ints(64, 0, 1000)
WORDS = RANDOM.integers(0, 2**32, 8).astype("u4")
PIXELS = ints(32, 0, 256, "u1")
QUADS = PIXELS.reshape(8, 4).astype("u4")
X = ints(8, 0, 1000)
FOUR = np.array([1, -2, 300, 4], "i4")
ROWS, COLUMNS, DATA = np.array([0, 2, 3, 3, 5], "i4"), np.array([0, 2, 1, 0, 3], "i4"), ints(5, dtype="i8")

LAUNCHES = [
    Launch("vector_add", None, (4, 32), [A, B, zeros(100), 100], {2: A + B}),
    Launch("saxpy_grid_stride", None, (2, 16), [50, 3, A[:50], B[:50]], {3: 3 * A[:50] + B[:50]}),
    matmul(8),
    block_sums(),
    unrolled("reduceUnrolled<16, int, Sum>", np.sum),
    unrolled("reduceUnrolled<16u, int, Maximum>", lambda a: max(a[:16].max(), a[16:].max())),
    Launch("warp_shuffle_sum", None, (1, 64), [S, zeros(1), 64], {1: [S.sum()]}),
    exclusive_scan(),
    histogram(),
    Launch("histogram", "saturate_kernel", (1, 8), [np.arange(8, dtype="u4"), 5],
           {0: [0, 1, 2, 3, 4, 5, 5, 5]}),
    convolution(),
    Launch("cooperative_reduce", None, (1, 32), [S[:32], zeros(4)], {1: S[:32].reshape(4, 8).sum(1)}),
    tiles(),
    transpose("copy", False),
    transpose("transposeNoBankConflicts", True),
    life(),
    Launch("overloads_and_namespaces", "left::shift", (1, 4), [FOUR, 3], {0: FOUR << 3}),
    Launch("overloads_and_namespaces", "right::shift", (1, 4), [FOUR, 1], {0: FOUR >> 1}),
    Launch("overloads_and_namespaces", "hidden", (1, 4), [FOUR], {0: ~FOUR}),
    Launch("overloads_and_namespaces", "_Z5scalePxx", (1, 4), [FOUR.astype("i8"), 2**33],
           {0: FOUR.astype("i8") * 2**33}),
    Launch("overloads_and_namespaces", "fill<short>", (1, 4), [zeros(4, "i2"), 9], {0: [9] * 4}),
    Launch("overloads_and_namespaces", "fill<unsigned long long>", (1, 4), [zeros(4, "u8"), 2**40],
           {0: [2**40] * 4}),
    Launch("macros_and_kernels", "square", (1, 32), [A[:10], zeros(10), 10], {1: A[:10] ** 2}),
    Launch("macros_and_kernels", "clamp", (1, 32), [A[:10], zeros(10), 10], {1: A[:10].clip(0, 9)}),
    Launch("fixed_point", None, (1, 8), [X, zeros(8), 8], {1: (X * X >> 8) + (768 * X >> 8) + 256}),
    sorted_step(),
    Launch("bfs_frontier", None, (1, 32),
           [np.array([0, 2, 3, 4, 4], "i4"), np.array([1, 2, 3, 3], "i4"),
            np.array([0, 2**31 - 1, 2**31 - 1, 2**31 - 1], "i4"), 4, 0, zeros(1)],
           {2: [0, 1, 1, 2**31 - 1], 5: [1]}),
    Launch("spmv_csr", None, (1, 32), [4, COLUMNS, ROWS, DATA, np.array([1, 2, 3, 4], "i8"), zeros(4, "i8")],
           {5: [DATA[0] + 3 * DATA[1], 2 * DATA[2], 0, DATA[3] + 4 * DATA[4]]}),
    stencil(),
    mandelbrot(),
    atomics(),
    Launch("vector_types", "add4", (1, 4), [A[:16], B[:16], zeros(16), 4], {2: A[:16] + B[:16]}),
    Launch("vector_types", "pack", (1, 8), [PIXELS, zeros(8, "u4"), 8],
           {1: QUADS @ np.array([77, 151, 28, 0], "u4") >> 8}),
    Launch("vector_types", "dots", (1, 8), [A[:16], 3, 5, zeros(8)], {3: A[:16].reshape(8, 2) @ [3, 5]}),
    Launch("lambda_transform", "transform<Affine>", (1, 32), [A[:20], zeros(20), 20, 2, 1],
           {1: 2 * A[:20] + 1}),
    Launch("lambda_transform", "pipeline", (1, 32), [A[:20], zeros(20), 20], {1: 2 * A[:20] + 20}),
    search(),
    pascal(),
    Launch("prefix_warp", "scan<int, 32>", (1, 32), [S[:32], zeros(32)], {1: np.cumsum(S[:32])}),
    Launch("prefix_warp", "kernels::scan<unsigned short, 32>", (1, 32),
           [S[:32].astype("u2"), zeros(32, "u2")], {1: np.cumsum(S[:32]).astype("u2")}),
    monte_carlo(),
    Launch("random_lcg", "bytes", (1, 8), [WORDS, zeros(8)], {1: (WORDS & 255) + (WORDS >> 24)}),
    Launch("multi_file_main", "gpu::increment", (4, 8), [A[:32], 5],
           {0: A[:32] + 5 + np.tile([1, 10, 100, 1000], 8)}),
    overlaps(),
]  # fmt: skip


@pytest.mark.parametrize("launch", LAUNCHES, ids=str)
def test_a_sample_runs_unchanged(launch: Launch) -> None:
    run(launch)


def run(launch: Launch) -> None:
    kernel = compile(SAMPLES / f"{launch.file}.cu", launch.kernel, machine="large", backend="vector")
    arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in launch.arguments]
    kernel[launch.sizes](*arguments)
    for number, values in launch.wanted.items():
        assert arguments[number].tolist() == np.asarray(values).tolist()


@pytest.mark.parametrize(("name", "program"), [("clang", "clang++"), ("nvcc", "nvcc")])
@pytest.mark.parametrize("launch", LAUNCHES[::9], ids=str)
def test_other_compilers_give_the_same_results(
    launch: Launch, name: str, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    monkeypatch.setitem(COMPILERS, "auto", COMPILERS[name])
    run(launch)


def test_every_sample_runs() -> None:
    files = {path.stem for path in SAMPLES.glob("*.cu")}
    assert files == {launch.file for launch in LAUNCHES}
    assert len(files) == 30
