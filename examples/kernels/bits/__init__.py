"""Bit tricks: counts, codes, permutations, packed bytes, bit fields."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from kernels.table import (
    Array,
    Kernel,
    draw,
    i32,
    ints,
    junk,
    kernel,
    launch,
    mixed,
    put,
    rows_of,
    u8,
    u32,
    u64,
)


def _popcount(values: Array, counts: Array, agree: Array) -> None:
    counts[:] = [x.bit_count() for x in ints(values)]
    agree[:] = 5


def _gray(numbers: Array, codes: Array, back: Array, changes: Array) -> None:
    put(codes, [x ^ x // 2 for x in ints(numbers)])
    back[:] = numbers
    changes[:] = [31 if x == 2**32 - 1 else (~x & (x + 1)).bit_length() - 1 for x in ints(numbers)]


def _interleave(*coordinates: int) -> int:
    """Bit k of coordinate i becomes bit k * n + i."""
    n = len(coordinates)
    return sum((x >> k & 1) << k * n + i for i, x in enumerate(coordinates) for k in range(32))


def _morton_2d(points: Array, codes: Array, neighbours: Array) -> None:
    for i, (x, y) in enumerate(rows_of(points, 2)):
        codes[i] = _interleave(x, y)
        put(neighbours, [x + 1, y], at=2 * i)


def _morton_3d(codes: Array, scale: int) -> None:
    side = round(len(codes) ** (1 / 3))
    for z, y, x in itertools.product(range(side), repeat=3):
        codes[(z * side + y) * side + x] = _interleave(z * scale, y * scale, x * scale)


def _mirror(x: int, width: int) -> int:
    return int(f"{x % 2**width:0{width}b}"[::-1], 2)


def _reverse(values: Array, wide: Array, narrow: Array, half: Array, byte: Array, swapped: Array) -> None:
    for i, x in enumerate(ints(values)):
        wide[i], narrow[i] = _mirror(x, 64), 0
        half[i], byte[i] = _mirror(x, 16), _mirror(x, 8)
        swapped[i] = int.from_bytes((x % 2**32).to_bytes(4, "little"), "big")


def _transpose_bits(rows: Array, out: Array) -> None:
    table = np.unpackbits(rows.view(np.uint8), bitorder="little").reshape(-1, 32, 32)
    out[:] = np.packbits(table.transpose(0, 2, 1), bitorder="little").view(np.uint32)


def _permute(a: Array, b: Array, selectors: Array, out: Array) -> None:
    for i, selector in enumerate(ints(selectors)):
        pool = a[i : i + 1].tobytes() + b[i : i + 1].tobytes()
        picks = ([selector >> 4 * k & 7 for k in range(4)], [1, 3, 5, 7], [selector & 3] * 4)
        put(out, [int.from_bytes(bytes(pool[p] for p in pick), "little") for pick in picks], at=3 * i)


def _funnel(words: Array, amounts: Array, out: Array) -> None:
    for i, ((low, high), n) in enumerate(zip(rows_of(words, 2), ints(amounts), strict=True)):
        both, wrapped, clamped = high << 32 | low, n % 32, min(n % 2**32, 32)
        put(out, [both << wrapped >> 32, both >> wrapped, both << clamped >> 32, both >> clamped], at=4 * i)


def _leading_zeros(values: Array, out: Array, power: Array) -> None:
    for i, x in enumerate(ints(values)):
        low = x % 2**32
        first = [(word & -word).bit_length() for word in (low, x)]
        row = [32 - low.bit_length(), 64 - x.bit_length(), *first, low.bit_length() - 1, x.bit_count() == 1]
        put(out, row, at=6 * i)
        put(power, [1 << (low - 1).bit_length() if low else 0], at=i)


def _subsets(n: int, masks: Array, counts: Array, room: int) -> None:
    for size in range(1, len(counts) + 1):
        found = sorted(sum(1 << k for k in chosen) for chosen in itertools.combinations(range(n), size))
        counts[size - 1] = len(found)
        put(masks, found[:room], at=(size - 1) * room)


def _deposit(values: Array, masks: Array, packed: Array, spread: Array) -> None:
    for i, (value, mask) in enumerate(zip(ints(values), ints(masks), strict=True)):
        places = [k for k in range(32) if mask >> k & 1]
        packed[i] = sum((value >> k & 1) << j for j, k in enumerate(places))
        spread[i] = sum((value >> j & 1) << k for j, k in enumerate(places))


def _packed(a: Array, b: Array, out: Array) -> None:
    x, y = a.view(np.uint8).astype(int), b.view(np.uint8).astype(int)
    results = (x + y, np.minimum(x + y, 255), abs(x - y), (x + y) // 2, np.maximum(x, y))
    for column, result in enumerate(results):
        out[column::5] = result.astype(np.uint8).view(np.uint32)


def _saturate(a: Array, b: Array, out: Array, narrow: Array) -> None:
    for i, (x, y) in enumerate(zip(ints(a), ints(b), strict=True)):
        wide = [x + y, x - y, x * y]
        put(out, [*(max(-(2**31), min(2**31 - 1, value)) for value in wide), max(0, min(255, x))], at=4 * i)
        narrow[i] = max(-128, min(127, x))


_PARITY_SETS = (0b1010101, 0b1100110, 0b1111000)


def _codewords() -> list[int]:
    """The 16 code words of eight bits, by nibble: those of even parity under all four checks."""
    words = [w for w in range(256) if not any((w & s).bit_count() % 2 for s in (*_PARITY_SETS, 255))]
    return sorted(words, key=lambda w: (w >> 2 & 1) | (w >> 4 & 7) << 1)


def _hamming(nibbles: Array, noise: Array, sent: Array, received: Array, state: Array) -> None:
    words = _codewords()
    for i, nibble in enumerate(ints(nibbles)):
        sent[i] = words[nibble % 16]
        heard = int(sent[i] ^ noise[i])
        distances = [(heard ^ word).bit_count() for word in words]
        state[i] = (0, 1, -1)[min(distances)]
        received[i] = 255 if min(distances) > 1 else distances.index(min(distances))


_FIELDS = ((6, False), (5, False), (5, False), (11, True), (1, False), (4, True))


def _unpack(words: Array, unpacked: Array) -> None:
    for i, word in enumerate(ints(words)):
        fields, at = [], 0
        for width, signed in _FIELDS:
            value = word >> at & (1 << width) - 1
            fields.append(value - (1 << width) if signed and value >> width - 1 else value)
            at += width
        put(unpacked, fields, at=6 * i)
        opcode, rd, rs, offset, flag, scale = fields
        put(
            words,
            [opcode | rs << 6 | rd << 11 | -offset % 2**11 << 16 | (flag ^ 1) << 27 | scale << 28],
            at=i,
        )


_EDGES = u32(0, 1, 2, 3, 2**31, 2**32 - 1, 0x12345678, 0x80000001)

_row = functools.partial(kernel, "bits")

KERNELS: tuple[Kernel, ...] = (
    _row("popcount_ways", _popcount,
        launch(1, 3, u32(0, 6, 2**32 - 1), junk(3), junk(3)),
        launch(1, 32, mixed(1, 32, np.uint32), junk(32), junk(32))),
    _row("gray_code", _gray,
        launch(1, 4, u32(0, 1, 2, 3), junk(4, np.uint32), junk(4, np.uint32), junk(4)),
        launch(1, 8, _EDGES, junk(8, np.uint32), junk(8, np.uint32), junk(8))),
    _row("morton_2d", _morton_2d,
        launch(1, 2, u32(1, 2, 3, 0), junk(2, np.uint64), junk(4, np.uint32)),
        launch(2, 8, mixed(2, 32, np.uint32), junk(16, np.uint64), junk(32, np.uint32))),
    _row("morton_3d", _morton_3d,
        launch((1, 1, 1), (2, 2, 2), junk(8, np.uint32), 1),
        launch((2, 1, 2), (2, 4, 2), junk(64, np.uint32), 341)),
    _row("bit_reverse", _reverse,
        launch(1, 6, u64(0, 1, 2**63, 0x0123456789ABCDEF, 2**32 + 5, 2**64 - 2), junk(6, np.uint64),
            junk(6, np.uint32), junk(6, np.uint16), junk(6, np.uint8), junk(6, np.uint32))),
    _row("bit_transpose", _transpose_bits, launch(2, 32, draw(3, 64, dtype=np.uint32), junk(64, np.uint32))),
    _row("ballot_transpose", _transpose_bits, launch(1, 32, mixed(4, 32, np.uint32), junk(32, np.uint32))),
    _row("byte_permute", _permute,
        launch(1, 2, u32(0x03020100, 7), u32(0x07060504, 9), u32(0x3210, 0x7654), junk(6, np.uint32)),
        launch(1, 24, draw(5, 24, dtype=np.uint32), draw(6, 24, dtype=np.uint32),
            draw(7, 24, dtype=np.uint32) & 0x7777, junk(72, np.uint32))),
    _row("funnel_shift", _funnel,
        launch(1, 8, draw(8, 16, dtype=np.uint32), i32(0, 1, 31, 32, 33, 64, 17, -1), junk(32, np.uint32))),
    _row("leading_zeros", _leading_zeros,
        launch(1, 3, u64(0, 1, 2**40), junk(18), junk(3, np.uint32)),
        launch(1, 20, mixed(9, 20, np.uint64), junk(120), junk(20, np.uint32))),
    _row("next_subset", _subsets,
        launch(1, 2, 3, junk(6, np.uint32), junk(2), 3), launch(1, 6, 7, junk(90, np.uint32), junk(6), 15)),
    _row("deposit_extract", _deposit,
        launch(1, 2, u32(5, 6), u32(0xF0, 0x111), junk(2, np.uint32), junk(2, np.uint32)),
        launch(2, 8, draw(10, 16, dtype=np.uint32), mixed(11, 16, np.uint32), junk(16, np.uint32),
            junk(16, np.uint32))),
    _row("packed_bytes", _packed,
        launch(1, 2, u32(0x01FF7F80, 5), u32(0x02FF0180, 6), junk(10, np.uint32)),
        launch(1, 32, draw(12, 32, dtype=np.uint32), draw(13, 32, dtype=np.uint32), junk(160, np.uint32))),
    _row("saturating", _saturate,
        launch(1, 2, i32(2**31 - 1, -5), i32(1, 7), junk(8), junk(2, np.int8)),
        launch(2, 16, mixed(14, 32), mixed(15, 32), junk(128), junk(32, np.int8))),
    _row("hamming_code", _hamming,
        launch(1, 3, u8([5, 6, 7]), u8([0, 8, 3]), junk(3, np.uint8), junk(3, np.uint8), junk(3, np.int8)),
        launch(1, 48, u8(range(48)), u8([0, 1, 2, 4, 8, 16, 32, 64, 128, 3, 96, 129] * 4), junk(48, np.uint8),
            junk(48, np.uint8), junk(48, np.int8))),
    _row("bit_fields", _unpack,
        launch(1, 2, u32(0, 0xFFFFFFFF), junk(12)), launch(1, 16, draw(16, 16, dtype=np.uint32), junk(96))),
)  # fmt: skip
