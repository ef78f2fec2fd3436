"""Block and stream ciphers, for their arithmetic alone."""

from __future__ import annotations

import functools
import itertools

import numpy as np

from kernels.table import Array, Kernel, draw, ints, junk, kernel, launch, put, rows_of, u8, u32

_MASK = 2**32 - 1


def _rotl(x: int, n: int) -> int:
    return (x << n | x >> 32 - n) & _MASK


def chacha20_block(key: bytes, counter: int, nonce: bytes) -> bytes:
    """The block function of RFC 8439, section 2.3."""
    start = np.frombuffer(b"expand 32-byte k" + key + counter.to_bytes(4, "little") + nonce, "<u4").tolist()
    x = list(start)
    columns = [(i, i + 4, i + 8, i + 12) for i in range(4)]
    diagonals = [(i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4) for i in range(4)]
    for _ in range(10):
        for a, b, c, d in columns + diagonals:
            for (p, q, r), n in zip(((a, b, d), (c, d, b)) * 2, (16, 12, 8, 7), strict=True):
                x[p] = (x[p] + x[q]) & _MASK
                x[r] = _rotl(x[r] ^ x[p], n)
    return np.array([(a + b) & _MASK for a, b in zip(x, start, strict=True)], dtype="<u4").tobytes()


def _chacha20(key: Array, nonce: Array, counter: int, data: Array, words: int) -> None:
    blocks = range(-(-words // 16))
    stream = b"".join(chacha20_block(key.tobytes(), (counter + k) & _MASK, nonce.tobytes()) for k in blocks)
    data[:words] ^= np.frombuffer(stream, np.uint32)[:words]


def xtea_encipher(block: list[int], key: list[int]) -> list[int]:
    """One block of XTEA with 64 rounds (Needham and Wheeler, 1997)."""
    total, halves = 0, list(block)
    for i in range(64):
        if i % 2:
            total = (total + 0x9E3779B9) & _MASK
        other = halves[1 - i % 2]
        index = total >> 11 & 3 if i % 2 else total & 3
        mixed = ((other << 4 & _MASK ^ other >> 5) + other) & _MASK
        halves[i % 2] = (halves[i % 2] + (mixed ^ (total + key[index]) & _MASK)) & _MASK
    return halves


def _xtea(plain: Array, key: Array, cipher: Array, back: Array) -> None:
    put(cipher, itertools.chain(*(xtea_encipher(block, ints(key)) for block in rows_of(plain, 2))))
    back[:] = plain


def _field_product(a: int, b: int) -> int:
    """In GF(2^8) modulo x^8 + x^4 + x^3 + x + 1: the product of polynomials, reduced."""
    product = functools.reduce(lambda x, y: x ^ y, (a << k for k in range(8) if b >> k & 1), 0)
    for k in range(14, 7, -1):
        if product >> k & 1:
            product ^= 0x11B << k - 8
    return product


def _substitute(x: int) -> int:
    inverse = next((y for y in range(256) if _field_product(x, y) == 1), 0)
    bits = [inverse >> k & 1 for k in range(8)]
    parities = [sum(bits[(k - j) % 8] for j in range(5)) % 2 for k in range(8)]
    return sum(bit << k for k, bit in enumerate(parities)) ^ 0x63


def _aes(sbox: Array, columns: Array, mixed: Array) -> None:
    sbox[:] = [_substitute(x) for x in range(256)]
    for t, column in enumerate(rows_of(columns, 4)):
        s = [int(sbox[x]) for x in column]
        for row in range(4):
            terms = [_field_product((2, 3, 1, 1)[k], s[(row + k) % 4]) for k in range(4)]
            mixed[4 * t + row] = functools.reduce(lambda x, y: x ^ y, terms)


def _rc4(keys: Array, key_length: int, stream: Array, length: int) -> None:
    for block, key in enumerate(rows_of(keys, key_length)):
        state, j = list(range(256)), 0
        for i in range(256):
            j = (j + state[i] + key[i % key_length]) % 256
            state[i], state[j] = state[j], state[i]
        j = 0
        for k in range(1, length + 1):
            j = (j + state[k]) % 256
            state[k], state[j] = state[j], state[k]
            stream[block * length + k - 1] = state[(state[k] + state[j]) % 256]


def speck64_96(block: list[int], key: list[int]) -> list[int]:
    """One block, low word first, under a key of three words (Beaulieu et al., 2013)."""

    def step(x: int, y: int, k: int) -> tuple[int, int]:
        x = ((_rotl(x, 24) + y) & _MASK) ^ k
        return x, _rotl(y, 3) ^ x

    round_key, later = key[0], [key[1], key[2]]
    y, x = block
    for i in range(26):
        x, y = step(x, y, round_key)
        fresh, round_key = step(later.pop(0), round_key, i)
        later.append(fresh)
    return [y, x]


def _speck(plain: Array, keys: Array, cipher: Array) -> None:
    pairs = zip(rows_of(plain, 2), rows_of(keys, 3), strict=True)
    put(cipher, itertools.chain(*(speck64_96(block, key) for block, key in pairs)))


_row = functools.partial(kernel, "ciphers")

KERNELS: tuple[Kernel, ...] = (
    _row("chacha20", _chacha20,
        launch(1, 1, u8(range(32)).view(np.uint32), u32(0x09000000, 0x4A000000, 0), 1, u32(*[0] * 16), 16),
        launch(2, 2, draw(1, 8, dtype=np.uint32), draw(2, 3, dtype=np.uint32), 2**32 - 2, draw(3, 60,
            dtype=np.uint32),
            60)),
    _row("xtea", _xtea,
        launch(1, 1, u32(0x41424344, 0x45464748), u32(1, 2, 3, 4), junk(2, np.uint32), junk(2, np.uint32)),
        launch(1, 8, draw(4, 16, dtype=np.uint32), draw(5, 4, dtype=np.uint32), junk(16, np.uint32),
            junk(16, np.uint32))),
    _row("aes_sbox", _aes,
        launch(1, 32, junk(256, np.uint8), draw(6, 128, dtype=np.uint8), junk(128, np.uint8))),
    _row("rc4", _rc4,
        launch(1, 4, u8(b"Key"), 3, junk(8, np.uint8), 8),
        launch(2, 32, draw(7, 14, dtype=np.uint8), 7, junk(60, np.uint8), 30)),
    _row("speck", _speck,
        launch(1, 1, u32(0x736E6165, 0x74614620), u32(0x03020100, 0x0B0A0908, 0x13121110), junk(2,
            np.uint32)),
        launch(2, 4, draw(8, 16, dtype=np.uint32), draw(9, 24, dtype=np.uint32), junk(16, np.uint32))),
)  # fmt: skip
