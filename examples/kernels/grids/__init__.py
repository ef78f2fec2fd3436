"""Stencils, automata and pictures on grids of one to three dimensions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from kernels.table import (
    Array,
    Kernel,
    draw,
    i16,
    i32,
    ints,
    junk,
    kernel,
    launch,
    put,
    rows_of,
    u8,
    u32,
    zeros,
)


def _stencil(values: Array, out: Array) -> None:
    out[:] = np.convolve(values.astype(np.int64), np.ones(7, dtype=np.int64), mode="valid").astype(np.int32)


def _heat(plate: Array, steps: int) -> None:
    grid = plate.reshape(12, 12).astype(np.int64)
    for _ in range(steps):
        inner = grid[1:-1, 1:-1]
        around = grid[:-2, 1:-1] + grid[2:, 1:-1] + grid[1:-1, :-2] + grid[1:-1, 2:]
        grid[1:-1, 1:-1] = inner + (around - 4 * inner) // 8
    plate[:] = grid.ravel()


def _laplace(values: Array, out: Array, nx: int, ny: int, nz: int) -> None:
    padded = np.pad(values.reshape(nz, ny, nx).astype(np.int64), 1, mode="edge")
    centre = (slice(1, -1),) * 3
    total = -6 * padded[centre]
    for axis in range(3):
        for shift in (-1, 1):
            total += np.roll(padded, shift, axis)[centre]
    put(out, ints(total.ravel()))


def _live(world: Array) -> Array:
    """The next generation on a torus of zeros and ones."""
    around = sum(np.roll(world, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) - world
    return ((around == 3) | ((around == 2) & (world == 1))).astype(world.dtype)


def _life(cells: Array, following: Array, width: int, height: int) -> None:
    following[:] = _live(cells.reshape(height, width)).ravel()


def _bitmap(rows: Array) -> Array:
    return np.unpackbits(rows.view(np.uint8), bitorder="little").reshape(-1, 32)


def _words(bitmap: Array) -> Array:
    return np.packbits(bitmap.astype(np.uint8), axis=1, bitorder="little").view(np.uint32).ravel()


def _life_bits(rows: Array, generations: int) -> None:
    world = _bitmap(rows)
    for _ in range(generations):
        world = _live(world)
    rows[:] = _words(world)


def _automaton(history: Array, generations: int, rule: int) -> None:
    table = history.reshape(generations, -1)
    for g in range(1, generations):
        old = table[g - 1]
        pattern = 4 * np.roll(old, 1) + 2 * old + np.roll(old, -1)
        table[g] = [int(f"{rule:08b}"[7 - p]) for p in pattern.tolist()]


def _filtered(image: Array, kernel_: Array) -> Array:
    """The correlation of a picture with 3 by 3 weights, its border repeated."""
    height, width = image.shape
    padded = np.pad(image.astype(np.int64), 1, mode="edge")
    parts = (
        kernel_[dy][dx] * padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)
    )
    return np.sum(list(parts), axis=0)


def _sobel(image: Array, edges: Array, width: int, height: int) -> None:
    across = np.outer([1, 2, 1], [-1, 0, 1])
    picture = image.reshape(height, width)
    size = abs(_filtered(picture, across)) + abs(_filtered(picture, across.T))
    edges[:] = np.minimum(size, 255).ravel()


def _median(image: Array, out: Array, width: int, height: int) -> None:
    picture = image.reshape(height, width)
    result = picture.copy()
    windows = np.lib.stride_tricks.sliding_window_view(picture, (3, 3))
    result[1:-1, 1:-1] = np.median(windows, axis=(2, 3))
    out[:] = result.ravel()


def _convolve(pixels: Array, weights: Array, bias: Array, out: Array, width: int, shift: int) -> None:
    channels = pixels.view(np.int8).astype(int).reshape(-1, 4)
    taps = weights.view(np.int8).astype(int).reshape(len(bias), 3, 4)
    for f, start in enumerate(ints(bias)):
        for x in range(width):
            total = start + int((channels[x : x + 3] * taps[f]).sum())
            rounded = (Fraction(total, 1 << shift) + Fraction(1, 2)) // 1
            out[f * width + x] = max(-128, min(127, int(rounded)))


def _cross(bitmap: Array, combine: Callable[..., Array]) -> Array:
    """The combination of each cell with its four neighbours, zeros outside."""
    padded = np.pad(bitmap, 1)
    height, width = bitmap.shape
    shifts = ((1, 1), (0, 1), (2, 1), (1, 0), (1, 2))
    return combine([padded[y : y + height, x : x + width] for y, x in shifts], axis=0)


def _open(rows: Array, eroded: Array, opened: Array) -> None:
    thin = _cross(_bitmap(rows), np.min)
    eroded[:] = _words(thin)
    opened[:] = _words(_cross(thin, np.max))


def _bayer(order: int) -> Array:
    """Bayer's matrix of side 2**order, by its recursive definition."""
    if order == 0:
        return np.zeros((1, 1), dtype=int)
    smaller = 4 * _bayer(order - 1)
    return np.block([[smaller, smaller + 2], [smaller + 3, smaller + 1]])


def _dither(grey: Array, bitmap: Array) -> None:
    picture = grey.reshape(-1, 32)
    thresholds = np.tile(_bayer(3), (len(picture) // 8 + 1, 4))[: len(picture)]
    bitmap[:] = _words(picture > 4 * thresholds + 2)


def _diffuse(pictures: Array, out: Array, width: int, height: int) -> None:
    for base in range(0, len(pictures), width * height):
        sixteenths: dict[tuple[int, int], int] = {}
        for y in range(height):
            for x in range(width):
                carried = sixteenths.get((y, x), 0)
                value = int(pictures[base + y * width + x]) + int(Fraction(carried, 16))
                white = value >= 128
                out[base + y * width + x] = white
                for dy, dx, weight in ((0, 1, 7), (1, -1, 3), (1, 0, 5), (1, 1, 1)):
                    place = (y + dy, x + dx)
                    sixteenths[place] = sixteenths.get(place, 0) + weight * (value - 255 * white)


def _colours(pixels: Array, ycc: Array, rgb565: Array, back: Array) -> None:
    rgb = pixels.view(np.uint8).reshape(-1, 4)[:, :3].astype(int)
    weights = np.array([[66, 129, 25], [-38, -74, 112], [112, -94, -18]])
    luma = (rgb @ weights.T + 128) // 256
    ycc.reshape(-1, 4)[:, :3] = luma + np.array([16, 128, 128])
    ycc[3::4] = pixels >> 24
    rgb565[:] = rgb[:, 0] // 8 * 2048 + rgb[:, 1] // 4 * 32 + rgb[:, 2] // 8
    inverse = np.array([[298, 0, 409], [298, -100, -208], [298, 516, 0]])
    back.reshape(-1, 4)[:, :3] = ((luma @ inverse.T + 128) // 256).clip(0, 255)
    back[3::4] = 255


def _mandelbrot(counts: Array, width: int, left: int, top: int, step: int, limit: int) -> None:
    for i in range(len(counts)):
        cx, cy = left + i % width * step, top + i // width * step
        x = y = n = 0
        while n < limit and x * x // 4096 + y * y // 4096 <= 4 * 4096:
            x, y = x * x // 4096 - y * y // 4096 + cx, 2 * x * y // 4096 + cy
            n += 1
        counts[i] = n


def _lines(lines: Array, bitmap: Array, pixels: Array) -> None:
    """Of each column (or row, where the line is steep) the cell nearest to the line; no launch has a tie."""
    for t, (x0, y0, x1, y1) in enumerate(rows_of(lines, 4)):
        length = max(abs(x1 - x0), abs(y1 - y0))
        pixels[t] = length + 1
        for k in range(length + 1):
            share = Fraction(k, length) if length else Fraction(0)
            bitmap[round(y0 + share * (y1 - y0))] |= np.uint32(1 << round(x0 + share * (x1 - x0)))


def _integral(
    image: Array, table: Array, width: int, height: int, boxes: Array, sums: Array, count: int
) -> None:
    picture = image.reshape(height, width).astype(np.int64)
    table[:] = picture.cumsum(axis=0).cumsum(axis=1).ravel()
    sums[:count] = [picture[y0 : y1 + 1, x0 : x1 + 1].sum() for x0, y0, x1, y1 in rows_of(boxes, 4)]


def _regions(colour: Array, region: Array, width: int, height: int) -> None:
    region[:] = -1
    for start in range(width * height):
        if region[start] >= 0:
            continue
        todo = [start]
        while todo:
            i = todo.pop()
            region[i] = start
            x, y = i % width, i // width
            near = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)]
            cells = [b * width + a for a, b in near if 0 <= a < width and 0 <= b < height]
            todo += [j for j in cells if colour[j] == colour[i] and region[j] < 0]


def _resize(image: Array, in_width: int, in_height: int, out: Array, width: int, height: int) -> None:
    picture = rows_of(image, in_width)
    for y in range(height):
        for x in range(width):
            x0, fx = divmod(x * (in_width - 1) * 256 // max(width - 1, 1), 256)
            y0, fy = divmod(y * (in_height - 1) * 256 // max(height - 1, 1), 256)
            total = 32768
            for dy, wy in ((0, 256 - fy), (1, fy)):
                for dx, wx in ((0, 256 - fx), (1, fx)):
                    row = picture[min(y0 + dy, in_height - 1)]
                    total += row[min(x0 + dx, in_width - 1)] * wx * wy
            out[y * width + x] = total // 65536


_LINES = i16(
    *(0, 0, 31, 15), *(31, 2, 4, 13), *(5, 15, 5, 1), *(7, 7, 7, 7),
    *(20, 0, 14, 15), *(0, 9, 30, 9), *(2, 14, 12, 4), *(28, 13, 25, 0),
)  # fmt: skip
_BOXES = u8([0, 0, 0, 0, 0, 0, 12, 9, 3, 2, 7, 8, 5, 5, 5, 9])

_row = functools.partial(kernel, "grids")

KERNELS: tuple[Kernel, ...] = (
    _row("stencil_1d", _stencil,
        launch(1, 32, draw(1, 38, -9, 10), junk(32)), launch(3, 32, draw(2, 102), junk(96))),
    _row("heat_2d", _heat,
        launch(1, (12, 12, 1), draw(3, 144, 0, 1000), 1),
        launch(1, (12, 12, 1), draw(4, 144, -9999, 10000), 6)),
    _row("laplace_3d", _laplace,
        launch(1, (2, 2, 2), i32(*range(8)), junk(8), 2, 2, 2),
        launch((2, 2, 2), (4, 2, 2), draw(5, 84), junk(84), 7, 4, 3)),
    _row("game_of_life", _life,
        launch(1, (3, 3, 1), u8([0, 1, 0, 0, 1, 0, 0, 1, 0]), junk(9, np.uint8), 3, 3),
        launch((2, 2, 1), (8, 4, 1), draw(6, 91, 0, 2, np.uint8), junk(91, np.uint8), 13, 7)),
    _row("life_bits", _life_bits,
        launch(1, 4, u32(7, 0, 1, 6), 1), launch(1, 32, draw(7, 32, dtype=np.uint32), 5)),
    _row("elementary_automaton", _automaton,
        launch(1, 4, u8([0, 1, 0, 0], 8), 2, 90), launch(1, 40, u8([0] * 39 + [1], 400), 10, 110)),
    _row("sobel", _sobel,
        launch(1, (2, 2, 1), u8([1, 2, 3, 50]), junk(4, np.uint8), 2, 2),
        launch((2, 2, 1), (8, 4, 1), draw(8, 84, 0, 90, np.uint8), junk(84, np.uint8), 12, 7)),
    _row("median_filter", _median,
        launch(1, (3, 3, 1), u8([9, 1, 8, 2, 7, 3, 6, 4, 5]), junk(9, np.uint8), 3, 3),
        launch(2, (12, 4, 1), draw(9, 84, dtype=np.uint8), junk(84, np.uint8), 12, 7)),
    _row("convolution_dp4a", _convolve,
        launch(1, 2, draw(10, 4), draw(11, 3), i32(100), junk(2, np.int8), 2, 8),
        launch(4, 16, draw(12, 18), draw(13, 12), i32(0, -5000, 5000, 77), junk(64, np.int8), 16, 9)),
    _row("dilate_erode", _open,
        launch(1, 32, draw(14, 32, dtype=np.uint32) | draw(15, 32, dtype=np.uint32) | draw(16, 32,
            dtype=np.uint32),
            junk(32, np.uint32), junk(32, np.uint32))),
    _row("dither", _dither,
        launch(1, 32, draw(17, 32, dtype=np.uint8), junk(1, np.uint32)),
        launch(6, 32, draw(18, 192, dtype=np.uint8), junk(6, np.uint32))),
    _row("error_diffusion", _diffuse,
        launch(1, 1, u8([100, 130, 90, 200]), junk(4, np.uint8), 2, 2),
        launch(1, 3, draw(19, 180, dtype=np.uint8), junk(180, np.uint8), 12, 5)),
    _row("color_convert", _colours,
        launch(1, 2, u32(0x090000FF, 0x011EC80A), junk(8, np.uint8), junk(2, np.uint16), junk(8,
            np.uint8)),
        launch(2, 16, draw(20, 32, dtype=np.uint32), junk(128, np.uint8), junk(32, np.uint16), junk(128,
            np.uint8))),
    _row("mandelbrot_fixed", _mandelbrot,
        launch(1, (2, 2, 1), junk(4, np.uint8), 2, -4096, -2048, 2048, 5),
        launch((2, 2, 1), (8, 4, 1), junk(128, np.uint8), 16, -8500, -4700, 700, 20)),
    _row("bresenham", _lines,
        launch(1, 1, i16(0, 0, 3, 1), zeros(2, np.uint32), junk(1)),
        launch(1, 8, _LINES, zeros(16, np.uint32), junk(8))),
    _row("integral_image", _integral,
        launch(1, 2, u8([1, 2, 3, 4]), junk(4, np.uint32), 2, 2, u8([0, 0, 1, 1]), junk(1, np.uint32), 1),
        launch(1, 16, draw(21, 130, dtype=np.uint8), junk(130, np.uint32), 13, 10, _BOXES, junk(4,
            np.uint32), 4)),
    _row("flood_fill", _regions,
        launch(1, 4, u8([1, 1, 0, 1]), junk(4), 2, 2),
        launch(1, 128, draw(22, 117, 0, 2, np.uint8), junk(117), 13, 9)),
    _row("resize_bilinear", _resize,
        launch(1, (3, 1, 1), u8([0, 100]), 2, 1, junk(3, np.uint8), 3, 1),
        launch((2, 2, 1), (8, 4, 1), draw(23, 35, dtype=np.uint8), 7, 5, junk(96, np.uint8), 12, 8)),
)  # fmt: skip
