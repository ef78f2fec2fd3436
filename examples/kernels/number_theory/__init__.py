"""Primes, divisors, modular arithmetic, large numbers, digits and dates."""

from __future__ import annotations

import datetime
import functools
import math

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
    u32,
    u64,
    zeros,
)


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1))


def _sieve(flags: Array, count: Array, n: int) -> None:
    flags[:n] = [_is_prime(i) for i in range(n)]
    count[0] = np.count_nonzero(flags[:n])


def _segment(first_odd: int, bits: Array) -> None:
    for word in range(len(bits)):
        numbers = [first_odd + 64 * word + 2 * k for k in range(32)]
        bits[word] = sum(1 << k for k, number in enumerate(numbers) if _is_prime(number))


def _prime_flags(numbers: Array, prime: Array, count: int | None = None) -> None:
    prime[: len(numbers)] = [_is_prime(n) for n in ints(numbers)]


def _strong_to(base: int, n: int) -> bool:
    """Whether base^d = 1 or base^(d 2^k) = -1 modulo n for a k < s, where n - 1 = d 2^s with d odd."""
    s = ((n - 1) & -(n - 1)).bit_length() - 1
    d = n - 1 >> s
    return pow(base, d, n) == 1 or any(pow(base, d << k, n) == n - 1 for k in range(s))


def _strong_bases(numbers: Array, bases: Array) -> None:
    bases[:] = [sum(1 << b for b in (2, 3) if _strong_to(b, n)) for n in ints(numbers)]


_ODD = ((2**31 - 1) ** 2, 2**61 - 1, 2**64 - 59, 2**64 - 1, 3215031751, 341550071728321, 1373653, 2047, 11)
"""Squares, primes, and strong pseudoprimes to both bases or to one."""


def _gcd(a: Array, b: Array, divisor: Array, multiple: Array) -> None:
    pairs = list(zip(ints(a), ints(b), strict=True))
    put(divisor, [math.gcd(x, y) for x, y in pairs])
    put(multiple, [math.lcm(x, y) for x, y in pairs])


def _inverses(numbers: Array, inverses: Array, m: int) -> None:
    inverses[:] = [pow(x, -1, m) if math.gcd(x, m) == 1 else 0 for x in ints(numbers)]


def _powers(bases: Array, exponents: Array, out: Array, m: int) -> None:
    put(out, [pow(x, e, m) for x, e in zip(ints(bases), ints(exponents), strict=True)])


def _collatz(start: int) -> list[int]:
    run = [start]
    while run[-1] != 1:
        run.append(3 * run[-1] + 1 if run[-1] % 2 else run[-1] // 2)
    return run


def _collatz_peak(peaks: Array, best: Array, limit: int) -> None:
    runs = [_collatz(start) for start in range(1, limit + 1)]
    peaks[:limit] = [max(run) for run in runs]
    longest = max(runs, key=len)
    best[0] = (len(longest) - 1) << 32 | 2**32 - 1 - longest[0]


def _fibonacci(indices: Array, out: Array, m: int) -> None:
    def number(n: int) -> int:
        """The power of a matrix, with numpy's object arithmetic."""
        matrix, result = (
            np.array([[1, 1], [1, 0]], dtype=object),
            np.eye(2, dtype=object).astype(int).astype(object),
        )
        for bit in f"{n:b}":
            result = result.dot(result) % m
            if bit == "1":
                result = result.dot(matrix) % m
        return int(result[0, 1]) % m

    out[:] = [number(n) for n in ints(indices)]


def _arithmetic(numbers: Array, out: Array) -> None:
    for i, n in enumerate(ints(numbers)):
        divisors = [d for d in range(1, n + 1) if n % d == 0]
        primes = [d for d in divisors if _is_prime(d)]
        phi = sum(math.gcd(k, n) == 1 for k in range(1, n + 1))
        moebius = 0 if any(n % (p * p) == 0 for p in primes) else (-1) ** len(primes)
        put(out, [len(divisors), sum(divisors), phi, moebius], at=4 * i)


_NTT_PRIME = 998244353


def _ntt(values: Array, spectrum: Array, square: Array) -> None:
    a, n = ints(values), len(values)
    root = pow(3, (_NTT_PRIME - 1) // n, _NTT_PRIME)
    put(
        spectrum,
        [sum(x * pow(root, i * k, _NTT_PRIME) for i, x in enumerate(a)) % _NTT_PRIME for k in range(n)],
    )
    put(square, [sum(a[i] * a[(k - i) % n] for i in range(n)) % _NTT_PRIME for k in range(n)])


def _polynomial(coefficients: Array, degree: int, points: Array, values: Array, m: int) -> None:
    put(
        values,
        [sum(c * x**k for k, c in enumerate(ints(coefficients[: degree + 1]))) % m for x in ints(points)],
    )


def _remainders(remainders: Array, out: Array, *moduli: int) -> None:
    product = math.prod(moduli)
    for i, row in enumerate(rows_of(remainders, 3)):
        if all(0 <= a < m for a, m in zip(row, moduli, strict=True)):
            parts = [a * (product // m) * pow(product // m, -1, m) for a, m in zip(row, moduli, strict=True)]
            out[i] = sum(parts) % product
        else:
            out[i] = 0


def _roots(numbers: Array, square: Array, cube: Array) -> None:
    for i, n in enumerate(ints(numbers)):
        square[i] = math.isqrt(n)
        near = round(n ** (1 / 3))
        cube[i] = max(c for c in range(max(0, near - 2), near + 3) if c**3 <= n)


def _digits(numbers: Array, happy: Array, root: Array, reversed_: Array) -> None:
    for i, n in enumerate(ints(numbers)):
        seen, x = set(), n
        while x not in seen:
            seen.add(x)
            x = sum(int(digit) ** 2 for digit in str(x))
        happy[i] = x == 1
        root[i] = n
        while root[i] > 9:
            root[i] = sum(int(digit) for digit in str(root[i]))
        reversed_[i] = int(str(n)[::-1])


def _number(words: Array) -> int:
    return int.from_bytes(words.tobytes(), "little")


def _big_add(a: Array, b: Array, total: Array, carry: Array) -> None:
    for block in range(len(a) // 32):
        part = slice(32 * block, 32 * block + 32)
        carry[block], low = divmod(_number(a[part]) + _number(b[part]), 2**1024)
        total[part] = np.frombuffer(low.to_bytes(128, "little"), np.uint32)


def _big_multiply(a: Array, b: Array, product: Array) -> None:
    product[:] = np.frombuffer((_number(a) * _number(b)).to_bytes(64, "little"), np.uint32)


def _divide(dividends: Array, divisors: Array, quotients: Array, remainders: Array, narrow: Array) -> None:
    for i, ((low, high), divisor) in enumerate(zip(rows_of(dividends, 2), ints(divisors), strict=True)):
        quotient, remainders[i] = divmod((high % divisor << 64) + low, divisor)
        quotients[i] = quotient
        x, y = low - (low >> 63 << 64), divisor >> 1
        towards_zero = abs(x) // y * (-1 if x < 0 else 1) if y else 0
        put(narrow, [towards_zero, x - towards_zero * y if y else 0], at=2 * i)


def _smaller_factor(numbers: Array, smaller: Array) -> None:
    smaller[:] = [next(k for k in range(2, n) if n % k == 0) for n in ints(numbers)]


def _jacobi(top: Array, bottom: Array, out: Array, rows: int, columns: int) -> None:
    """The product of Legendre symbols over the denominator's prime factors, each by Euler's criterion."""
    for row, n in enumerate(ints(bottom[:rows])):
        primes = [p for p in range(2, n + 1) if _is_prime(p) for k in range(1, 12) if n % p**k == 0]
        for column, a in enumerate(ints(top[:columns])):
            symbols = [(pow(a, (p - 1) // 2, p) + 1) % p - 1 for p in primes]
            out[row * columns + column] = math.prod(symbols)


def _partitions(table: Array, n: int) -> None:
    width = len(table) // n

    @functools.cache
    def ways(total: int, largest: int) -> int:
        if total == 0:
            return 1
        return sum(ways(total - part, part) for part in range(1, min(total, largest) + 1))

    table[:] = [ways(total, largest) for largest in range(1, n + 1) for total in range(width)]


def _pascal(rows: Array, odd: Array, m: int) -> None:
    n = len(odd)
    rows[:] = [math.comb(r, k) % m for r in range(n) for k in range(n)]
    odd[:] += np.array([sum(math.comb(r, k) % 2 for k in range(r + 1)) for r in range(n)], dtype=np.int32)


def _dates(days: Array, dates: Array, weekday: Array, back: Array, n: int) -> None:
    for i, day in enumerate(ints(days[:n])):
        date = datetime.date(1970, 1, 1) + datetime.timedelta(days=day)
        dates[2 * i], dates[2 * i + 1] = date.year, date.month | date.day << 16
        weekday[i] = date.isoweekday() % 7
        back[i] = day


def _luhn(cards: Array, valid: Array, wanted: Array) -> None:
    for i, card in enumerate(ints(cards)):
        digits = f"{card:016x}"

        def total(text: str) -> int:
            doubled = "".join(str(int(d) * (2 - k % 2)) for k, d in enumerate(text))
            return sum(map(int, doubled))

        valid[i] = total(digits) % 10 == 0
        wanted[i] = next(d for d in range(10) if total(digits[:15] + str(d)) % 10 == 0)


_P64 = 2**64 - 59

_row = functools.partial(kernel, "number_theory")

KERNELS: tuple[Kernel, ...] = (
    _row("sieve_shared", _sieve,
        launch(1, 2, junk(8, np.uint8), junk(1), 8), launch(1, 32, junk(200, np.uint8), junk(1), 200)),
    _row("sieve_segment", _segment,
        launch(1, 2, 3, junk(2, np.uint32)), launch(3, 24, 8001, junk(6, np.uint32))),
    _row("miller_rabin_32", _prime_flags,
        launch(1, 3, u32(2, 9, 61), junk(3, np.uint8), 3),
        launch(2, 8, u32(0, 1, 3, 4, 7, 2047, 3481, 65537, 9080191, 1373653, 49141, 8321),
            junk(12, np.uint8), 12)),
    _row("miller_rabin_64", _strong_bases,
        launch(1, 1, u64(9), junk(1)), launch(1, 9, u64(*_ODD), junk(9))),
    _row("gcd_binary", _gcd,
        launch(1, 3, u64(12, 0, 7), u64(18, 5, 0), junk(3, np.uint64), junk(3, np.uint64)),
        launch(1, 12, mixed(1, 12, np.uint64) >> 34 << 3, mixed(2, 12, np.uint64) >> 34 << 1, junk(12,
            np.uint64),
            junk(12, np.uint64))),
    _row("extended_gcd", _inverses,
        launch(1, 3, i32(3, -3, 5), junk(3), 10), launch(1, 32, draw(3, 32), junk(32), 1000000007),
        launch(1, 32, draw(4, 32), junk(32), 30030)),
    _row("power_mod", _powers,
        launch(1, 2, u64(3, 2), u32(5, 0), junk(2, np.uint64), 7),
        launch(1, 6, draw(5, 6, dtype=np.uint64), u32(0, 1, 2, 3, 11, 21), junk(6, np.uint64), _P64)),
    _row("collatz_peak", _collatz_peak,
        launch(1, 4, junk(3, np.uint64), zeros(1, np.uint64), 3),
        launch(2, 20, junk(40, np.uint64), zeros(1, np.uint64), 40)),
    _row("fibonacci_doubling", _fibonacci,
        launch(1, 4, u32(0, 1, 2, 10), junk(4, np.uint32), 1000),
        launch(1, 16, draw(7, 16, 0, 2000, np.uint32), junk(16, np.uint32), 2**31 - 1)),
    _row("divisor_sums", _arithmetic,
        launch(1, 4, i32(1, 2, 6, 12), junk(16)), launch(1, 32, draw(8, 32, 1, 3000), junk(128))),
    _row("ntt", _ntt,
        launch(1, 32, draw(9, 64, 0, _NTT_PRIME, np.uint32), junk(64, np.uint32), junk(64, np.uint32))),
    _row("polynomial_mod", _polynomial,
        launch(1, 2, u32(1, 2, 3), 2, u32(5, 6), junk(2, np.uint32), 97),
        launch(2, 8, draw(10, 9, 0, 2**31 - 1, np.uint32), 8, draw(11, 16, 0, 2**31 - 1, np.uint32),
            junk(16, np.uint32), 2**31 - 1)),
    _row("chinese_remainder", _remainders,
        launch(1, 2, i32(2, 3, 2, 0, 0, 9), junk(2, np.int64), 3, 5, 7),
        launch(1, 8, draw(12, 24, -40, 1009), junk(8, np.int64), 1009, 65537, 30011)),
    _row("integer_roots", _roots,
        launch(1, 4, u64(0, 1, 26, 27), junk(4, np.uint32), junk(4, np.uint32)),
        launch(1, 16, np.concatenate([mixed(13, 12, np.uint64), u64(2**64 - 1, 2**63, (2**32 - 1)**2,
            2642245**3)]),
            junk(16, np.uint32), junk(16, np.uint32))),
    _row("happy_numbers", _digits,
        launch(1, 4, u32(1, 7, 4, 0), junk(4), junk(4), junk(4, np.uint64)),
        launch(1, 16, mixed(14, 16, np.uint32), junk(16), junk(16), junk(16, np.uint64))),
    _row("big_add", _big_add,
        launch(1, 32, np.full(32, 2**32 - 1, np.uint32), u32(1, *[0] * 31), junk(32, np.uint32), junk(1)),
        launch(2, 32, draw(15, 64, dtype=np.uint32) | 0xFFFFFF00, draw(16, 64, 0, 512, np.uint32),
            junk(64, np.uint32), junk(2)),
        launch(1, 32, draw(17, 32, dtype=np.uint32), ~draw(17, 32, dtype=np.uint32), junk(32, np.uint32),
            junk(1))),
    _row("big_multiply", _big_multiply,
        launch(1, 16, draw(18, 8, dtype=np.uint32), draw(19, 8, dtype=np.uint32), junk(16, np.uint32)),
        launch(1, 16, np.full(8, 2**32 - 1, np.uint32), np.full(8, 2**32 - 1, np.uint32), junk(16,
            np.uint32))),
    _row("wide_division", _divide,
        launch(1, 1, u64(100, 1), u64(7), junk(1, np.uint64), junk(1, np.uint64), junk(2, np.int64)),
        launch(1, 8, mixed(20, 16, np.uint64), mixed(21, 8, np.uint64) | 1, junk(8, np.uint64), junk(8,
            np.uint64),
            junk(16, np.int64))),
    _row("pollard_rho", _smaller_factor,
        launch(1, 2, u32(15, 49), junk(2, np.uint32)),
        launch(1, 6, u32(8051, 10403, 3 * 1299709, 7387, 899, 1681), junk(6, np.uint32))),
    _row("jacobi_symbol", _jacobi,
        launch(1, (2, 2, 1), i32(2, -1), i32(3, 9), junk(4, np.int8), 2, 2),
        launch((2, 2, 1), (4, 4, 1), draw(22, 7, -500, 500), i32(15, 21, 49, 101, 135, 1), junk(42,
            np.int8), 6, 7)),
    _row("partitions", _partitions,
        launch(1, 4, junk(8, np.uint32), 2), launch(1, 40, junk(240, np.uint32), 6)),
    _row("pascal_triangle", _pascal,
        launch(1, 4, junk(16), zeros(4), 100), launch(1, 20, junk(400), zeros(20), 1009)),
    _row("date_conversion", _dates,
        launch(1, 2, i32(0, 59), junk(4), junk(2), junk(2), 2),
        launch(2, 16, draw(23, 30, -700000, 2900000), junk(60), junk(30), junk(30), 30)),
    _row("luhn_check", _luhn,
        launch(1, 2, u64(0x4539578763621486, 0x1234567812345678), junk(2), junk(2)),
        launch(1, 8, u64(*(int(str(10**15 + 123456789 * k * k)[:16], 16) for k in range(8))), junk(8),
            junk(8))),
)  # fmt: skip
