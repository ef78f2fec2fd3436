"""SHA-256 of one block (FIPS 180-4) as a straight line of IR: a kernel of more than 3,000 instructions."""

from __future__ import annotations

from math import isqrt

_WORD = 0xFFFFFFFF


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found


def _cube_root(number: int) -> int:
    low, high = 0, number
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**3 <= number else (low, middle - 1)
    return low


ROUNDS = [_cube_root(prime << 96) & _WORD for prime in _primes(64)]
START = [isqrt(prime << 64) & _WORD for prime in _primes(8)]


class _Text:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def add(self, text: str, kind: str = "i32") -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text} : {kind}")
        return name

    def sum(self, *terms: str) -> str:
        first, *rest = terms
        for term in rest:
            first = self.add(f"add {first}, {term}")
        return first

    def xor(self, *terms: str) -> str:
        first, *rest = terms
        for term in rest:
            first = self.add(f"xor {first}, {term}")
        return first

    def rotated(self, value: str, by: int) -> str:
        right, left = self.shifted(value, by), self.add(f"shl {value}, {number(32 - by)}")
        return self.add(f"or {right}, {left}")

    def shifted(self, value: str, by: int) -> str:
        return self.add(f"lshr {value}, {number(by)}")

    def pointer(self, base: str, index: int) -> str:
        return self.add(f"ptradd {base}, i32 {index} {{scale: 4, disp: 0, signed: true}}", "ptr<global>")


def number(value: int) -> str:
    """A constant of 32 bits."""
    value &= _WORD
    return f"i32 {value - (value >> 31 << 32)}"


def sha256_kernel() -> str:
    """The text of a linearised kernel (message of 16 words, digest of 8 words), for one thread."""
    text = _Text()
    schedule = [text.add(f"load i32 {text.pointer('%message', i)}") for i in range(16)]
    for i in range(16, 64):
        a, b = schedule[i - 15], schedule[i - 2]
        low = text.xor(text.rotated(a, 7), text.rotated(a, 18), text.shifted(a, 3))
        high = text.xor(text.rotated(b, 17), text.rotated(b, 19), text.shifted(b, 10))
        schedule.append(text.sum(schedule[i - 16], low, schedule[i - 7], high))
    start = [number(value) for value in START]
    a, b, c, d, e, f, g, h = start
    for constant, word in zip(ROUNDS, schedule, strict=True):
        mixed = text.xor(text.rotated(e, 6), text.rotated(e, 11), text.rotated(e, 25))
        others = text.add(f"and {text.add(f'xor {e}, i32 -1')}, {g}")
        chosen = text.xor(text.add(f"and {e}, {f}"), others)
        first = text.sum(h, mixed, chosen, number(constant), word)
        spread = text.xor(text.rotated(a, 2), text.rotated(a, 13), text.rotated(a, 22))
        pairs = (text.add(f"and {x}, {y}") for x, y in ((a, b), (a, c), (b, c)))
        second = text.sum(spread, text.xor(*pairs))
        a, b, c, d, e, f, g, h = text.sum(first, second), a, b, c, text.sum(d, first), e, f, g
    for i, (value, initial) in enumerate(zip((a, b, c, d, e, f, g, h), start, strict=True)):
        total = text.sum(value, initial)
        text.lines.append(f"  store i32 {text.pointer('%digest', i)}, {total}")
    body = "\n".join(text.lines)
    head = "kernel @sha256(%message: ptr<global>, %digest: ptr<global>) attributes {linearised: true}"
    return f"{head} {{\nentry:\n{body}\n  ret\n}}\n"
