"""Codes: runs, prefixes, matches, variable lengths, packed bits, transforms before them."""

from __future__ import annotations

import functools
import heapq
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
    zeros,
)


def _runs(values: Array, n: int, symbols: Array, lengths: Array, runs: Array) -> None:
    found = [(symbol, len(list(part))) for symbol, part in itertools.groupby(ints(values[:n]))]
    put(symbols, [symbol for symbol, _ in found])
    put(lengths, [length for _, length in found])
    runs[0] = len(found)


def _expand(symbols: Array, lengths: Array, runs: int, out: Array, n: int) -> None:
    out[:n] = np.repeat(symbols[:runs], lengths[:runs])[:n]


def _code_lengths(weights: dict[int, int]) -> dict[int, int]:
    """Huffman's code lengths by symbol."""
    heap = [(weight, symbol, {symbol: 0}) for symbol, weight in weights.items()]
    heapq.heapify(heap)
    while len(heap) > 1:
        (a, tie, left), (b, _, right) = heapq.heappop(heap), heapq.heappop(heap)
        heapq.heappush(heap, (a + b, tie, {s: n + 1 for s, n in (left | right).items()}))
    return heap[0][2]


_WEIGHTS = {ord(letter): weight for letter, weight in zip("etaoins", (30, 21, 13, 8, 5, 3, 2), strict=True)}
_LENGTHS = _code_lengths(_WEIGHTS)
_SYMBOLS = sorted(_LENGTHS, key=lambda symbol: (_LENGTHS[symbol], symbol))
_COUNTS = [list(_LENGTHS.values()).count(n) for n in range(9)]
_TEXTS = (b"tea", b"toast", b"", b"notation", b"seaside".replace(b"d", b"t"), b"eeeeeeeeeeeeeee")


def _codes() -> dict[int, str]:
    """The canonical code: numbers that count up within a length and double from one length to the next."""
    codes: dict[int, str] = {}
    number, length = 0, 0
    for symbol in _SYMBOLS:
        number <<= _LENGTHS[symbol] - length
        length = _LENGTHS[symbol]
        codes[symbol] = f"{number:0{length}b}"
        number += 1
    return codes


def _stream(text: bytes) -> list[int]:
    """The text in code, the first bit lowest, in two words."""
    bits = "".join(_codes()[letter] for letter in text)
    number = int(bits[::-1] or "0", 2)
    return [number % 2**32, number >> 32]


def _huffman(
    counts: Array, symbols: Array, streams: Array, words: int, lengths: Array, out: Array, room: int
) -> None:
    """The texts that the launches encode; which one by its code."""
    for t, stream in enumerate(rows_of(streams, words)):
        text = next(text for text in _TEXTS if _stream(text) == stream and len(text) == lengths[t])
        put(out, text, at=t * room)


def _matches(text: Array, n: int, window: int, matches: Array) -> None:
    content = text.tobytes()[:n]
    for i in range(n):
        best = (0, 0)
        for distance in range(1, min(window, i) + 1):
            repeated = itertools.takewhile(
                lambda k, d=distance, i=i: content[i + k] == content[i + k - d], range(min(255, n - i))
            )
            best = max(best, (len(list(repeated)), -distance))
        matches[i] = best[0] << 16 | -best[1]


def _lz_pieces(pieces: list[tuple[bytes, int, int]]) -> tuple[bytes, bytes]:
    """The stream of pieces (literals, length and distance of a copy; 0 for none at the end), and its text."""
    stream, text = b"", b""
    for literals, length, distance in pieces:
        extra = (
            b""
            if len(literals) < 15
            else bytes([255] * ((len(literals) - 15) // 255) + [(len(literals) - 15) % 255])
        )
        stream += bytes([min(len(literals), 15) << 4 | (length - 4 if length else 0)]) + extra + literals
        text += literals
        if length:
            stream += bytes([distance])
            text += (text[len(text) - distance :] * length)[:length]
    return stream, text


_PIECES = (
    [(b"abcd", 6, 4), (b"x", 0, 0)],
    [(b"z", 19, 1), (b"the quick brown fox jumps", 7, 6), (b"", 4, 3)],
    [(b"only literals", 0, 0)],
)


def _lz_decode(streams: Array, room_in: int, sizes: Array, out: Array, room: int, lengths: Array) -> None:
    texts = dict(_lz_pieces(pieces) for pieces in _PIECES)
    for t, size in enumerate(ints(sizes)):
        text = texts[streams[t * room_in : t * room_in + size].tobytes()]
        put(out, text, at=t * room)
        lengths[t] = len(text)


def _varint(values: Array, columns: int, coded: Array, room: int, sizes: Array, back: Array) -> None:
    for t, row in enumerate(rows_of(values, columns)):
        code = b""
        for before, value in itertools.pairwise([0, *row]):
            delta = (value - before + 2**31) % 2**32 - 2**31
            zigzag = 2 * delta if delta >= 0 else -2 * delta - 1
            septets = [zigzag >> 7 * k & 127 for k in range(max(1, -(-zigzag.bit_length() // 7)))]
            code += bytes([*(septet | 128 for septet in septets[:-1]), septets[-1]])
        put(coded, code, at=t * room)
        sizes[t] = len(code)
    back[:] = values


def _pack(values: Array, n: int, width: int, words: Array, back: Array) -> None:
    kept = [value % 2**width for value in ints(values[:n])]
    number = sum(value << width * i for i, value in enumerate(kept))
    put(words, [int(word) | number >> 32 * k & 2**32 - 1 for k, word in enumerate(ints(words))])
    put(back, kept)


def _move_to_front(rows: Array, width: int, codes: Array) -> None:
    for t, row in enumerate(rows_of(rows, width)):
        order = list(range(16))
        for k, symbol in enumerate(row):
            codes[t * width + k] = order.index(symbol)
            order.remove(symbol)
            order.insert(0, symbol)


def _burrows_wheeler(text: Array, n: int, last: Array, primary: Array) -> None:
    content = text.tobytes()[:n]
    rotations = sorted(range(n), key=lambda i: (content[i:] + content[:i], i))
    put(last, [content[i - 1] for i in rotations])
    primary[0] = rotations.index(0)


def _rice(streams: Array, words: int, k: int, values: Array, count: int) -> None:
    for block, stream in enumerate(rows_of(streams, words)):
        bits = "".join(f"{word:064b}" for word in stream)
        for i in range(count):
            quotient, _, bits = bits.partition("0")
            values[block * count + i] = len(quotient) << k | int(bits[:k] or "0", 2)
            bits = bits[k:]


def _rice_stream(numbers: list[int], k: int, words: int) -> list[int]:
    bits = "".join("1" * (n >> k) + "0" + (f"{n % 2**k:0{k}b}" if k else "") for n in numbers)
    padded = bits.ljust(64 * words, "0")
    return [int(padded[i : i + 64], 2) for i in range(0, 64 * words, 64)]


_RICE = [5, 0, 130, 17, 3, 64, 1, 9], [77, 2, 2, 100, 31, 8, 0, 40]
_STREAMS = [_lz_pieces(pieces)[0] for pieces in _PIECES]
_BANANA = b"banana bandana cabana"

_row = functools.partial(kernel, "compression")

KERNELS: tuple[Kernel, ...] = (
    _row("run_length_encode", _runs,
        launch(1, 4, u8(b"aab"), 3, junk(3, np.uint8), junk(3), junk(1)),
        launch(1, 64, draw(1, 61, 0, 2, np.uint8), 61, junk(61, np.uint8), junk(61), junk(1))),
    _row("run_length_decode", _expand,
        launch(1, 2, u8(b"ab"), i32(2, 1), 2, junk(3, np.uint8), 3),
        launch(2, 16, draw(2, 20, dtype=np.uint8), i32(*[3, 1, 7, 2, 5] * 4), 20, junk(72, np.uint8), 72)),
    _row("huffman_decode", _huffman,
        launch(1, 1, u8(_COUNTS), u8(_SYMBOLS), u32(*_stream(b"tea")), 2, i32(3), junk(3, np.uint8), 3),
        launch(1, 6, u8(_COUNTS), u8(_SYMBOLS), u32(*itertools.chain(*map(_stream, _TEXTS))), 2,
            i32(*map(len, _TEXTS)), junk(96, np.uint8), 16)),
    _row("lz_match", _matches,
        launch(1, 4, u8(b"aaaa"), 4, 4, junk(4, np.uint32)),
        launch(2, 16, u8(_BANANA), 21, 12, junk(21, np.uint32)),
        launch(2, 32, draw(3, 60, 0, 2, np.uint8), 60, 40, junk(60, np.uint32))),
    _row("lz_decode", _lz_decode,
        launch(1, 1, u8(_STREAMS[0]), len(_STREAMS[0]), i32(len(_STREAMS[0])), junk(12, np.uint8), 12,
            junk(1)),
        launch(1, 3, u8(b"".join(stream.ljust(40) for stream in _STREAMS)), 40, i32(*map(len, _STREAMS)),
            junk(180, np.uint8), 60, junk(3))),
    _row("varint", _varint,
        launch(1, 1, i32(1, -1, 300), 3, junk(15, np.uint8), 15, junk(1), junk(3)),
        launch(1, 6, mixed(4, 36), 6, junk(180, np.uint8), 30, junk(6), junk(36))),
    _row("bit_pack", _pack,
        launch(1, 2, u32(5, 6), 2, 3, zeros(1, np.uint32), junk(2, np.uint32)),
        launch(1, 32, draw(5, 30, dtype=np.uint32), 30, 13, zeros(13, np.uint32), junk(30, np.uint32)),
        launch(1, 8, draw(6, 8, dtype=np.uint32), 8, 32, zeros(8, np.uint32), junk(8, np.uint32))),
    _row("move_to_front", _move_to_front,
        launch(1, 1, u8([2, 2, 0]), 3, junk(3, np.uint8)),
        launch(1, 6, draw(7, 72, 0, 16, np.uint8), 12, junk(72, np.uint8))),
    _row("burrows_wheeler", _burrows_wheeler,
        launch(1, 3, u8(b"aba").view(np.int8), 3, junk(3, np.int8), junk(1)),
        launch(2, 16, u8(_BANANA).view(np.int8), 21, junk(21, np.int8), junk(1))),
    _row("golomb_rice", _rice,
        launch(1, 1, u64(*_rice_stream([3, 0], 1, 1)), 1, 1, junk(2, np.uint32), 2),
        launch(2, 1, u64(*_rice_stream(_RICE[0], 2, 3), *_rice_stream(_RICE[1], 2, 3)), 3, 2, junk(16,
            np.uint32), 8)),
)  # fmt: skip
