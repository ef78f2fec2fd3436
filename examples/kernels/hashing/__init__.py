"""Message digests, checksums and hash functions, and what is built on them."""

from __future__ import annotations

import binascii
import functools
import hashlib
import zlib

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
    u8,
    u32,
    u64,
    zeros,
)

_MASK = 2**32 - 1
_MASK64 = 2**64 - 1


def _messages(data: Array, count: int) -> list[bytes]:
    """The bytes of an array in `count` parts of one length."""
    content = data.tobytes()
    size = len(content) // count
    return [content[size * i : size * (i + 1)] for i in range(count)]


def _rotl(x: int, r: int, width: int = 32) -> int:
    return (x << r | x >> width - r) & ((1 << width) - 1)


def _digests(name: str, messages: list[bytes], out: Array, order: str) -> None:
    digest = b"".join(hashlib.new(name, message).digest() for message in messages)
    out[: len(digest) // 4] = np.frombuffer(digest, f"{order}u4")


def _sha256(data: Array, out: Array, length: int, count: int) -> None:
    _digests("sha256", _messages(data, count), out, ">")


def _unpad(block: bytes, order: str) -> bytes:
    """The message in a padded block of 64 bytes, given in words of the machine's order."""
    content = np.frombuffer(block, "<u4").astype(f"{order}u4").tobytes()
    end = int.from_bytes(content[56:], "big" if order == ">" else "little") // 8
    return content[:end]


def _pad(messages: list[bytes], order: str) -> Array:
    """Messages of at most 55 bytes as padded blocks of sixteen words."""
    byteorder = "big" if order == ">" else "little"
    content = b"".join(
        (message + b"\x80").ljust(56, b"\0") + (8 * len(message)).to_bytes(8, byteorder)
        for message in messages
    )
    return np.frombuffer(content, f"{order}u4").astype(np.uint32)


def _sha1(blocks: Array, out: Array) -> None:
    _digests("sha1", [_unpad(block, ">") for block in _messages(blocks, len(blocks) // 16)], out, ">")


def _md5(blocks: Array, out: Array) -> None:
    _digests("md5", [_unpad(block, "<") for block in _messages(blocks, len(blocks) // 16)], out, "<")


def _blake2s(messages: Array, out: Array, length: int) -> None:
    parts = _messages(messages, len(messages) // 16)
    _digests("blake2s", [part[:length] for part in parts], out, "<")


PRIMES32 = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
PRIMES64 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def xxh32(data: bytes, seed: int) -> int:
    """XXH32, after its specification (doc/xxhash_spec.md of xxHash)."""
    p1, p2, p3, p4, p5 = PRIMES32
    lanes = [(seed + p1 + p2) & _MASK, (seed + p2) & _MASK, seed, (seed - p1) & _MASK]
    whole = len(data) // 16 * 16
    for i in range(0, whole, 4):
        lane = int.from_bytes(data[i : i + 4], "little")
        lanes[i // 4 % 4] = _rotl((lanes[i // 4 % 4] + lane * p2) & _MASK, 13) * p1 & _MASK
    h = sum(map(_rotl, lanes, (1, 7, 12, 18))) if whole else seed + p5
    h = (h + len(data)) & _MASK
    rest = data[whole:]
    while len(rest) >= 4:
        h = _rotl((h + int.from_bytes(rest[:4], "little") * p3) & _MASK, 17) * p4 & _MASK
        rest = rest[4:]
    for byte in rest:
        h = _rotl((h + byte * p5) & _MASK, 11) * p1 & _MASK
    h = (h ^ h >> 15) * p2 & _MASK
    h = (h ^ h >> 13) * p3 & _MASK
    return h ^ h >> 16


def xxh64(data: bytes, seed: int) -> int:
    """XXH64 of a whole number of 64-bit words, after its specification."""
    p1, p2, p3, p4, p5 = PRIMES64

    def step(accumulator: int, lane: int) -> int:
        return _rotl((accumulator + lane * p2) & _MASK64, 31, 64) * p1 & _MASK64

    words = np.frombuffer(data, "<u8").tolist()
    lanes = [(seed + p1 + p2) & _MASK64, (seed + p2) & _MASK64, seed, (seed - p1) & _MASK64]
    whole = len(words) // 4 * 4
    for i, word in enumerate(words[:whole]):
        lanes[i % 4] = step(lanes[i % 4], word)
    h = seed + p5
    if whole:
        h = sum(_rotl(lane, r, 64) for lane, r in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK64
        for lane in lanes:
            h = ((h ^ step(0, lane)) * p1 + p4) & _MASK64
    h = (h + len(data)) & _MASK64
    for word in words[whole:]:
        h = (_rotl(h ^ step(0, word), 27, 64) * p1 + p4) & _MASK64
    h = (h ^ h >> 33) * p2 & _MASK64
    h = (h ^ h >> 29) * p3 & _MASK64
    return h ^ h >> 32


def murmur3_32(data: bytes, seed: int) -> int:
    """MurmurHash3_x86_32."""
    h = seed
    for i in range(0, len(data), 4):
        part = data[i : i + 4]
        k = int.from_bytes(part, "little") * 0xCC9E2D51 & _MASK
        h ^= _rotl(k, 15) * 0x1B873593 & _MASK
        if len(part) == 4:
            h = (_rotl(h, 13) * 5 + 0xE6546B64) & _MASK
    h ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & _MASK
    return h ^ h >> 16


def siphash24(data: bytes, key: tuple[int, int]) -> int:
    """SipHash-2-4 (Aumasson and Bernstein, 2012)."""
    v = [
        word ^ int.from_bytes(text, "big")
        for word, text in zip(key * 2, (b"somepseu", b"dorandom", b"lygenera", b"tedbytes"), strict=True)
    ]

    def half(a: int, b: int, s: int) -> None:
        v[a] = (v[a] + v[b]) & _MASK64
        v[b] = _rotl(v[b], s, 64) ^ v[a]

    def rounds(n: int) -> None:
        for _ in range(n):
            half(0, 1, 13)
            half(2, 3, 16)
            v[0] = _rotl(v[0], 32, 64)
            half(2, 1, 17)
            half(0, 3, 21)
            v[2] = _rotl(v[2], 32, 64)

    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) % 256])
    for i in range(0, len(padded), 8):
        word = int.from_bytes(padded[i : i + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def _xxhash32(data: Array, hashes: Array, length: int, seed: int) -> None:
    put(hashes, [xxh32(part, seed) for part in _messages(data, len(hashes))])


def _xxhash64(data: Array, hashes: Array, words: int, seed: int) -> None:
    put(hashes, [xxh64(part, seed) for part in _messages(data, len(hashes))])


def _murmur3(data: Array, hashes: Array, length: int, seed: int) -> None:
    put(hashes, [murmur3_32(part, seed) for part in _messages(data, len(hashes))])


def _siphash(data: Array, tags: Array, words: int, key0: int, key1: int) -> None:
    put(tags, [siphash24(part, (key0, key1)) for part in _messages(data, len(tags))])


def _fnv1a(text: Array, starts: Array, narrow: Array, wide: Array) -> None:
    for i, start in enumerate(ints(starts)):
        hash32, hash64 = 2166136261, 14695981039346656037
        for byte in text.tobytes()[start:].split(b"\0")[0]:
            hash32 = (hash32 ^ byte) * 16777619 & _MASK
            hash64 = (hash64 ^ byte) * 1099511628211 & _MASK64
        narrow[i], wide[i] = hash32, hash64


def _crc32(data: Array, crcs: Array, width: int, rows: int) -> None:
    put(crcs, [zlib.crc32(part) for part in _messages(data, rows)])


def _crc32_and_agreement(data: Array, crcs: Array, agree: Array, width: int) -> None:
    _crc32(data, crcs, width, len(crcs))
    agree[:] = 1


def _crc16(data: Array, crcs: Array, width: int, start: int) -> None:
    put(crcs, [binascii.crc_hqx(part, start) for part in _messages(data, len(crcs))])


def _adler32(data: Array, out: Array, n: int) -> None:
    out[0] = zlib.adler32(data[:n].tobytes())


def _fletcher16(data: Array, sums: Array, lengths: Array, width: int) -> None:
    for i, row in enumerate(data.reshape(-1, width).tolist()):
        row = row[: lengths[i]]
        first = sum(row) % 255
        second = sum((len(row) - k) * x for k, x in enumerate(row)) % 255
        sums[i] = second << 8 | first


def _pearson(key: Array, key_length: int, text: Array, width: int, out: Array) -> None:
    box, j = list(range(256)), 0
    for i in range(256):
        j = (j + box[i] + int(key[i % key_length])) % 256
        box[i], box[j] = box[j], box[i]
    for i, row in enumerate(text.reshape(-1, width).tolist()):
        out[i] = functools.reduce(lambda hashed, byte: box[hashed ^ byte], row, 0)


def _counts(words: Array, n: int, queries: Array, answers: Array, m: int) -> None:
    answers[:m] = [ints(words[:n]).count(query) for query in ints(queries[:m])]


def _bloom(keys: Array, n: int, queries: Array, hits: Array, m: int, bits: Array) -> None:
    def places(key: int) -> set[int]:
        products = [(key ^ salt) * 0x9E3779B1 & _MASK for salt in (1, 2, 3)]
        return {(product ^ product >> 15) % 256 for product in products}

    members = set().union(*map(places, ints(keys[:n])))
    put(bits, [int(word) | sum(1 << k % 32 for k in members if k // 32 == i) for i, word in enumerate(bits)])
    hits[:m] = [places(query) <= members for query in ints(queries[:m])]


def _merkle(leaves: Array, root: Array, n: int) -> None:
    level = ints(leaves[:n])
    while len(level) > 1:
        pairs = zip(level[::2], [*level[1::2], level[-1]], strict=False)
        level = [_one_at_a_time(a.to_bytes(4, "little") + b.to_bytes(4, "little")) for a, b in pairs]
    put(root, level)


def _one_at_a_time(data: bytes) -> int:
    """Bob Jenkins's one-at-a-time hash."""
    h = 0
    for byte in data:
        h = (h + byte) * 1025 & _MASK
        h ^= h >> 6
    h = h * 9 & _MASK
    return (h ^ h >> 11) * 32769 & _MASK


_TEXT = b"\0".join([b"", b"a", b"foobar", b"\xe9t\xe9", b"the quick brown fox"]) + b"\0"
_SHORT = [b"", b"abc", b"message digest", bytes(range(55))]

_row = functools.partial(kernel, "hashing")

KERNELS: tuple[Kernel, ...] = (
    _row("sha256", _sha256,
        launch(1, 1, u8(b"abc"), junk(8, np.uint32), 3, 1),
        launch(2, 2, draw(1, 180, dtype=np.uint8), junk(24, np.uint32), 60, 3)),
    _row("sha1", _sha1,
        launch(1, 1, _pad([b"abc"], ">"), junk(5, np.uint32)),
        launch(1, 4, _pad(_SHORT, ">"), junk(20, np.uint32))),
    _row("md5", _md5,
        launch(1, 1, _pad([b"abc"], "<"), junk(4, np.uint32)),
        launch(1, 4, _pad(_SHORT, "<"), junk(16, np.uint32))),
    _row("blake2s", _blake2s,
        launch(1, 4, u8(b"abc", 64).view(np.uint32), junk(8, np.uint32), 3),
        launch(2, 4, draw(2, 32, dtype=np.uint32), junk(16, np.uint32), 64)),
    _row("xxhash32", _xxhash32,
        launch(1, 1, u8(b"abc"), junk(1, np.uint32), 3, 0),
        launch(1, 4, draw(3, 156, dtype=np.uint8), junk(4, np.uint32), 39, 2654435)),
    _row("xxhash64", _xxhash64,
        launch(1, 1, u64(2**63 + 1), junk(1, np.uint64), 1, 7),
        launch(2, 3, draw(4, 42, dtype=np.uint64), junk(6, np.uint64), 7, 2**60 + 3)),
    _row("murmur3", _murmur3,
        launch(1, 1, u8(b"hello"), junk(1, np.uint32), 5, 1),
        launch(1, 4, draw(5, 28, dtype=np.uint8), junk(4, np.uint32), 7, 99),
        launch(1, 4, draw(6, 40, dtype=np.uint8), junk(4, np.uint32), 10, 0),
        launch(1, 2, draw(7, 16, dtype=np.uint8), junk(2, np.uint32), 8, 1234)),
    _row("fnv1a", _fnv1a,
        launch(1, 2, u8(b"a\0").view(np.int8), i32(0, 1), junk(2, np.uint32), junk(2, np.uint64)),
        launch(1, 5, u8(_TEXT).view(np.int8), i32(0, 1, 3, 10, 14), junk(5, np.uint32),
            junk(5, np.uint64))),
    _row("crc32_table", _crc32,
        launch(1, 1, u8(b"123456789"), junk(1, np.uint32), 9, 1),
        launch(2, 3, draw(8, 100, dtype=np.uint8), junk(5, np.uint32), 20, 5)),
    _row("crc32_bitwise", _crc32_and_agreement,
        launch(1, 1, u8(b"1"), junk(1, np.uint32), junk(1), 1),
        launch(1, 6, draw(9, 60, dtype=np.uint8), junk(6, np.uint32), junk(6), 10)),
    _row("crc16_ccitt", _crc16,
        launch(1, 1, u8(b"12"), junk(1, np.uint16), 2, 0),
        launch(1, 5, draw(10, 60, dtype=np.uint8), junk(5, np.uint16), 12, 0xFFFF)),
    _row("adler32", _adler32,
        launch(1, 2, u8(b"abc"), junk(1, np.uint32), 3),
        launch(1, 32, u8([255] * 900 + [1, 2]), junk(1, np.uint32), 902)),
    _row("fletcher16", _fletcher16,
        launch(1, 1, u8(b"ab"), junk(1, np.uint16), i32(2), 2),
        launch(4, 1, draw(11, 80, dtype=np.uint8), junk(4, np.uint16), i32(0, 20, 7, 13), 20)),
    _row("siphash", _siphash,
        launch(1, 1, u64(5), junk(1, np.uint64), 1, 3, 4),
        launch(1, 4, draw(12, 12, dtype=np.uint64), junk(4, np.uint64), 3, 2**62 + 5, 0x0F0E0D0C0B0A0908)),
    _row("pearson", _pearson,
        launch(1, 4, u8(b"key"), 3, u8(b"abcdefgh"), 2, junk(4, np.uint8)),
        launch(1, 32, draw(13, 9, dtype=np.uint8), 9, draw(14, 160, dtype=np.uint8), 5, junk(32, np.uint8))),
    _row("hash_table", _counts,
        launch(1, 2, u32(7, 7, 9), 3, u32(7, 8, 9), junk(3), 3),
        launch(1, 32, draw(15, 96, 0, 45, np.uint32) * 99991, 96, u32(*range(50)) * 99991, junk(50), 50)),
    _row("bloom_filter", _bloom,
        launch(1, 2, u32(5), 1, u32(5, 6), junk(2, np.uint8), 2, zeros(8, np.uint32)),
        launch(1, 64, mixed(16, 20, np.uint32), 20, np.concatenate([mixed(16, 20, np.uint32),
            draw(17, 40, dtype=np.uint32)]), junk(60, np.uint8), 60, zeros(8, np.uint32))),
    _row("merkle_tree", _merkle,
        launch(1, 2, u32(1, 2, 3), junk(1, np.uint32), 3, shared=12),
        launch(1, 32, draw(18, 45, dtype=np.uint32), junk(1, np.uint32), 45, shared=180)),
)  # fmt: skip
