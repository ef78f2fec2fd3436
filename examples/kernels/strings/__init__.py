"""Searches, distances, encodings, numbers in text."""

from __future__ import annotations

import base64
import fnmatch
import functools
import re

import numpy as np

from kernels.table import Array, Kernel, draw, i32, ints, junk, kernel, launch, u8, zeros


def _chars(text: bytes | str) -> Array:
    """A buffer of char."""
    return u8(text.encode("latin-1") if isinstance(text, str) else text).view(np.int8)


def _table(*rows: str | bytes, width: int) -> Array:
    """Rows of chars, with zeros up to the width."""
    return _chars(
        b"".join((row.encode() if isinstance(row, str) else row).ljust(width, b"\0") for row in rows)
    )


def _lines(rows: Array, width: int) -> list[bytes]:
    """The rows of a table, each up to its first zero."""
    content = rows.tobytes()
    return [content[i : i + width].split(b"\0")[0] for i in range(0, len(content), width)]


def _places(text: bytes, pattern: bytes) -> list[int]:
    return [i for i in range(len(text)) if text.startswith(pattern, i)]


def _naive(text: Array, n: int, pattern: Array, m: int, found: Array, count: Array) -> None:
    places = _places(text.tobytes(), pattern.tobytes())
    found[: n - m + 1] = [i in places for i in range(n - m + 1)]
    count[0] += len(places)


def _kmp(rows: Array, width: int, pattern: Array, m: int, first: Array, count: Array) -> None:
    for t, row in enumerate(_lines(rows, width)):
        places = _places(row, pattern.tobytes())
        first[t] = row.find(pattern.tobytes())
        count[t] = len(places)


def _horspool(
    text: Array, n: int, pattern: Array, m: int, part: int, places: Array, comparisons: Array
) -> None:
    content, wanted = text.tobytes(), pattern.tobytes()
    for t in range(len(places)):
        begin, steps = t * part, 0
        last = min(begin + part - 1, n - m)
        places[t] = content.find(wanted, begin, last + m) if last >= begin else -1
        while begin <= last:
            steps += 1
            if begin == places[t]:
                break
            letter = content[begin + m - 1]
            begin += m - 1 - wanted[:-1].rfind(letter)
        comparisons[t] = steps


def _rabin_karp(rows: Array, width: int, pattern: Array, m: int, hashes: Array, last: Array) -> None:
    for t, row in enumerate(rows.reshape(-1, width)):
        hashes[t] = (
            int.from_bytes(bytes(m), "big")
            + sum(x * 257 ** (m - 1 - k) for k, x in enumerate(row[width - m :].tolist())) % 1000003
        )
        last[t] = row.tobytes().rfind(pattern.tobytes())


def _distances(words: Array, stride: int, query: Array, length: int, distances: Array) -> None:
    target = query.tobytes()[:length]

    @functools.cache
    def distance(a: bytes, b: bytes) -> int:
        if not a or not b:
            return len(a) + len(b)
        change = distance(a[1:], b[1:]) + (a[0] != b[0])
        return min(change, distance(a[1:], b) + 1, distance(a, b[1:]) + 1)

    distances[:] = [distance(word, target) for word in _lines(words, stride)]


def _lcs(a: Array, na: int, b: Array, nb: int, length: Array) -> None:
    @functools.cache
    def common(i: int, j: int) -> int:
        if i == na or j == nb:
            return 0
        if a[i] == b[j]:
            return 1 + common(i + 1, j + 1)
        return max(common(i + 1, j), common(i, j + 1))

    length[0] = common(0, 0)


def _encode(data: Array, n: int, out: Array) -> None:
    text = base64.b64encode(data[:n].tobytes())
    out[: len(text)] = _chars(text)


def _decode(text: Array, out: Array, length: Array, error: Array) -> None:
    groups = [text[i : i + 4].tobytes() for i in range(0, len(text), 4)]
    for i, group in enumerate(groups):
        if not re.fullmatch(rb"[A-Za-z0-9+/]{2}([A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==)", group):
            error[0] = 1
            continue
        content = base64.b64decode(group)
        out[3 * i : 3 * i + len(content)] = list(content)
        length[0] = max(length[0], 3 * i + len(content))


def _utf8(rows: Array, lengths: Array, width: int, error: Array, points: Array, last: Array) -> None:
    for t, length in enumerate(ints(lengths)):
        content = rows[t * width : t * width + length].tobytes()
        error[t] = -1
        try:
            text = content.decode()
        except UnicodeDecodeError as wrong:
            error[t] = wrong.start
            text = content[: wrong.start].decode()
        points[t] = len(text)
        last[t] = ord(text[-1]) if text else 0


def _parse(rows: Array, width: int, values: Array, ends: Array) -> None:
    for t, row in enumerate(rows.reshape(-1, width)):
        match = re.match(rb"[ \t]*([+-]?\d+)", row.tobytes())
        values[t] = max(-(2**31), min(2**31 - 1, int(match[1]))) if match else 0
        ends[t] = match.end() if match else 0


def _print(values: Array, rows: Array, base: int) -> None:
    for t, value in enumerate(ints(values)):
        text = np.base_repr(value, base).lower().rjust(12)
        rows[12 * t : 12 * t + 12] = _chars("*" * 12 if len(text) > 12 else text)


def _glob(patterns: Array, texts: Array, stride: int, result: Array) -> None:
    pairs = [(p.decode(), t.decode()) for p in _lines(patterns, stride) for t in _lines(texts, stride)]
    result[:] = [fnmatch.fnmatchcase(text, pattern) for pattern, text in pairs]


def _brackets(rows: Array, width: int, depth: Array) -> None:
    for t, row in enumerate(_lines(rows, width)):
        text = re.sub(r"[^][(){}]", "", row.decode())
        depth[t] = 0
        while text and depth[t] >= 0:
            shorter = re.sub(r"\(\)|\[\]|\{\}", "", text)
            depth[t] = depth[t] + 1 if shorter != text else -1
            text = shorter
        if depth[t] > 0:
            depth[t] = _nesting(row.decode())


def _nesting(text: str) -> int:
    levels = np.cumsum([(c in "([{") - (c in ")]}") for c in text])
    return int(levels.max())


def _palindromes(text: Array, n: int, lengths: Array, longest: Array) -> None:
    content = text.tobytes()[:n]
    for centre in range(2 * n - 1):
        spans = [(i, centre + 1 - i) for i in range(n + 1) if i <= centre + 1 - i <= n]
        odd = [j - i for i, j in spans if content[i:j] == content[i:j][::-1]]
        lengths[centre] = max(odd, default=0)
    size = int(lengths.max())
    begin = next(i for i in range(n) if content[i : i + size] == content[i : i + size][::-1])
    longest[0] = max(int(longest[0]), size << 16 | 65535 - begin)


def _words(text: Array, n: int, words: Array, lines: Array, longest: Array) -> None:
    content = text.tobytes()[:n]
    words[0] += len(content.split())
    lines[0] += content.count(b"\n")
    longest[0] = max([int(longest[0]), *map(len, content.split())])


def _vigenere(text: Array, n: int, key: Array, key_length: int, direction: int, out: Array) -> None:
    used = 0
    for i, letter in enumerate(text.tobytes()[:n].decode()):
        out[i] = ord(letter)
        if letter.isalpha():
            alphabet = [chr(ord("A" if letter.isupper() else "a") + k) for k in range(26)]
            shift = direction * (int(key[used % key_length]) - ord("a"))
            out[i] = ord(alphabet[(alphabet.index(letter) + shift) % 26])
            used += 1


def _anagrams(words: Array, width: int, first: Array) -> None:
    keys = [sorted(word) for word in _lines(words, width)]
    first[:] = [keys.index(key) for key in keys]


_ROMAN = (
    ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"),
    ("", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"),
    ("", "C", "CC", "CCC", "CD", "D", "DC", "DCC", "DCCC", "CM"),
    ("", "M", "MM", "MMM"),
)


def _roman(numbers: Array, texts: Array, back: Array) -> None:
    for t, n in enumerate(ints(numbers)):
        text = "".join(_ROMAN[k][int(digit)] for k, digit in reversed(list(enumerate(str(n)[::-1]))))
        texts[16 * t : 16 * t + 16] = _table(text, width=16)
        back[t] = n


_DNA = _chars("".join("acgt"[k] for k in ints(draw(1, 120, 0, 4))))
_PROSE = "The quick brown fox\njumps over  the lazy dog,\nwhile 2 GPUs hum a tune.\n"
_UTF8 = (
    "aé€😀".encode(), b"\xc0\x80", b"ab\xe0\x80\x80", b"\xed\xa0\x80", "\ud7ff\uffff".encode(),
    b"\xf4\x90\x80\x80", "\U0010ffff".encode(), b"x\xe2\x82", b"", b"\x80",
)  # fmt: skip
_NUMBERS = ("42", "-17x", "  +9 ", "", "abc", "2147483648", "-99999999999", "\t-2147483648", "- 5", "007")

_row = functools.partial(kernel, "strings")

KERNELS: tuple[Kernel, ...] = (
    _row("search_naive", _naive,
        launch(1, 4, _chars("aaba"), 4, _chars("a"), 1, junk(4, np.uint8), zeros(1)),
        launch(4, 32, _DNA, 120, _chars("ac"), 2, junk(120, np.uint8), i32(5))),
    _row("search_kmp", _kmp,
        launch(1, 2, _table("abab", "aba", width=4), 4, _chars("ab"), 2, junk(2), junk(2)),
        launch(1, 4, _table("aabaabaab", "abaabaabaab", "aaaaabaaba", "bbb", width=12), 12,
            _chars("aabaab"), 6,
            junk(4), junk(4))),
    _row("search_horspool", _horspool,
        launch(1, 1, u8(b"hello"), 5, u8(b"lo"), 2, 5, junk(1), junk(1)),
        launch(1, 4, u8(_PROSE.encode()), 71, u8(b"um"), 2, 18, junk(4), junk(4)),
        launch(1, 3, _DNA.view(np.uint8), 120, u8(b"acga"), 4, 40, junk(3), junk(3))),
    _row("search_rabin_karp", _rabin_karp,
        launch(1, 1, u8(b"abcab"), 5, u8(b"ab"), 2, junk(1, np.uint32), junk(1)),
        launch(1, 4, _DNA.view(np.uint8), 30, u8(b"ga"), 2, junk(4, np.uint32), junk(4))),
    _row("edit_distance", _distances,
        launch(1, 2, _table("ab", "", width=2), 2, _chars("b"), 1, junk(2)),
        launch(2, 3, _table("kitten", "sitting", "mitten", "", "knitting", "abcdefghij", width=10), 10,
            _chars("sitten"), 6, junk(6))),
    _row("lcs_wavefront", _lcs,
        launch(1, 3, _chars("abc"), 3, _chars("ac"), 2, junk(1)),
        launch(1, 32, _DNA[:30].copy(), 30, _DNA[40:68].copy(), 28, junk(1))),
    _row("base64_encode", _encode,
        launch(1, 2, u8(b"GPU!"), 4, junk(8, np.int8)),
        launch(2, 16, draw(2, 77, dtype=np.uint8), 77, junk(104, np.int8))),
    _row("base64_decode", _decode,
        launch(1, 2, _chars("R1BVIQ=="), junk(6, np.uint8), zeros(1), zeros(1)),
        launch(1, 8, _chars("aGVs+G8/d29ybA==QU!DQQ=BQUI=AAAA"), junk(24, np.uint8), zeros(1), zeros(1))),
    _row("utf8_validate", _utf8,
        launch(1, 1, u8("é".encode()), i32(2), 2, junk(1), junk(1), junk(1, np.uint32)),
        launch(1, 10, u8(b"".join(text.ljust(12, b"?") for text in _UTF8)), i32(*map(len, _UTF8)), 12,
            junk(10),
            junk(10), junk(10, np.uint32))),
    _row("parse_integers", _parse,
        launch(1, 2, _table("7", "-3", width=3), 3, junk(2), junk(2)),
        launch(1, 10, _table(*_NUMBERS, width=14), 14, junk(10), junk(10))),
    _row("print_integers", _print,
        launch(1, 2, i32(0, -12), junk(24, np.int8), 10),
        launch(1, 8, i32(1, -(2**31), 2**31 - 1, 99, -4096, 10, 65535, -7), junk(96, np.int8), 10),
        launch(1, 4, i32(5, 255, 4095, -1024), junk(48, np.int8), 2)),
    _row("glob_match", _glob,
        launch(1, (2, 1, 1), _table("a*", width=4), _table("abc", "b", width=4), 4, junk(2, np.uint8)),
        launch(1, (5, 6, 1), _table("*", "a?c*", "*b*b*", "", "abc", "*?x", width=8),
            _table("abc", "abbbx", "", "aacx", "bab", width=8), 8, junk(30, np.uint8))),
    _row("brackets", _brackets,
        launch(1, 2, _table("()", "(]", width=3), 3, junk(2)),
        launch(1, 6, _table("{[()()]}x()", "(((", "", "a[b{c}d]", "())", "([)]", width=12), 12, junk(6))),
    _row("palindromes", _palindromes,
        launch(1, 5, _chars("aba"), 3, junk(5), zeros(1, np.uint32)),
        launch(2, 32, _chars("xabccbay-level-abababa-noonx"), 28, junk(55), zeros(1, np.uint32))),
    _row("word_count", _words,
        launch(1, 2, _chars("a bc"), 4, zeros(1), zeros(1), zeros(1)),
        launch(2, 16, _chars(_PROSE), len(_PROSE), i32(100), zeros(1), zeros(1))),
    _row("vigenere", _vigenere,
        launch(1, 32, _chars("Ab!"), 3, _chars("bc"), 2, 1, junk(3, np.int8)),
        launch(1, 64, _chars(_PROSE[:60]), 60, _chars("lemon"), 5, -1, junk(60, np.int8))),
    _row("anagrams", _anagrams,
        launch(1, 3, _table("ab", "c", "ba", width=2), 2, junk(3)),
        launch(1, 8, _table("listen", "stone", "silent", "notes", "zzy", "onset", "tinsel", "yzz", width=6),
            6,
            junk(8))),
    _row("roman_numerals", _roman,
        launch(1, 2, i32(4, 9), junk(32, np.int8), junk(2)),
        launch(1, 8, i32(1994, 3888, 1, 2024, 444, 999, 3999, 40), junk(128, np.int8), junk(8))),
)  # fmt: skip
