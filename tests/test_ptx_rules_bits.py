"""Bits, logic and shifts, against the definitions of the PTX ISA (sections 9.7.1 and 9.7.8)."""

from collections.abc import Iterator

import pytest

from ptx_cases import Case, check, number

_ALL = 0xFFFFFFFF
_AMOUNTS = (0, 1, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 65535, 65536, _ALL)


def _population(value: int) -> int:
    return bin(value).count("1")


def _leading_zeros(value: int, width: int) -> int:
    return next((n for n in range(width) if value >> (width - 1 - n) & 1), width)


def _highest(value: int, width: int, signed: bool) -> int:
    """bfind: searches down from the top for a bit that differs from the sign."""
    sought = 0 if signed and value >> (width - 1) else 1
    for position in range(width - 1, -1, -1):
        if value >> position & 1 == sought:
            return position
    return -1


def _nth_set(mask: int, base: int, offset: int) -> int | None:
    """fns, as the manual's loop."""
    if base > 31:
        return None
    offset = number("s32")(offset)
    if offset == 0:
        return base if mask >> base & 1 else -1
    position, count, step = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= position < 32:
        if mask >> position & 1:
            if count == 0:
                return position
            count -= 1
        position += step
    return -1


def _extracted(type_: str, a: int, b: int, c: int) -> int:
    """bfe, bit by bit."""
    width = int(type_[1:])
    msb, position, length = width - 1, b & 0xFF, c & 0xFF
    sign = 0 if type_[0] == "u" or length == 0 else a >> min(position + length - 1, msb) & 1
    result = 0
    for i in range(width):
        bit = a >> (position + i) & 1 if i < length and position + i <= msb else sign
        result |= bit << i
    return result


def _inserted(width: int, a: int, b: int, c: int, d: int) -> int:
    """bfi, bit by bit."""
    position, length = c & 0xFF, d & 0xFF
    for i in range(length):
        if position + i < width:
            b = b & ~(1 << position + i) | (a >> i & 1) << position + i
    return b


def _bit_mask(mode: str, a: int, b: int) -> int:
    """bmsk, as the manual's formulas."""
    start, length = a & 31, b & 31
    low = _ALL << start & _ALL
    high = _ALL << (start + length) & _ALL
    overflow = start + length >= 32
    if mode == "clamp":
        if a >= 32:
            low, overflow = 0, True
        overflow = overflow or b >= 32
    if overflow:
        high = 0
    elif length == 0:
        high = _ALL
    if not overflow and length == 0:
        return 0
    return low & ~high


def _extended(mode: str, type_: str, a: int, b: int) -> int:
    """szext, as the manual's formulas."""
    length = b & 31
    too_large = b >= 32 and mode == "clamp"
    mask = 0 if too_large else _ALL << length & _ALL
    negative = length and not too_large and type_ == "s32" and a >> (length - 1) & 1
    return a & ~mask | (mask if negative else 0)


def _permuted(mode: str, a: int, b: int, c: int) -> int:
    """prmt, by the manual's table of source bytes (lowest byte of the result first)."""
    table = {
        "f4e": ("0123", "1234", "2345", "3456"),
        "b4e": ("0765", "1076", "2107", "3210"),
        "rc8": ("0000", "1111", "2222", "3333"),
        "ecl": ("0123", "1123", "2223", "3333"),
        "ecr": ("0000", "0111", "0122", "0123"),
        "rc16": ("0101", "2323", "0101", "2323"),
    }
    source = [(b << 32 | a) >> 8 * i & 255 for i in range(8)]
    if mode:
        chosen = [source[int(digit)] for digit in table[mode][c & 3]]
    else:
        selectors = [c >> 4 * i & 15 for i in range(4)]
        chosen = [
            source[selector & 7] if selector < 8 else 255 * (source[selector & 7] >> 7)
            for selector in selectors
        ]
    return sum(byte << 8 * i for i, byte in enumerate(chosen))


def bit_cases() -> Iterator[Case]:
    for w in (32, 64):
        yield Case(f"popc.b{w} {{d}}, {{a}}", 32, (w,), _population)
        yield Case(f"clz.b{w} {{d}}, {{a}}", 32, (w,), lambda a, w=w: _leading_zeros(a, w))
        yield Case(
            f"brev.b{w} {{d}}, {{a}}",
            w,
            (w,),
            lambda a, w=w: sum((a >> i & 1) << w - 1 - i for i in range(w)),
        )
        positions = (0, 1, 13, w - 1, w, 255, 256, 0xFFFFFF07)
        yield Case(
            f"bfi.b{w} {{d}}, {{a}}, {{b}}, {{c}}, {{e}}", w, (w, w, 32, 32),
            lambda a, b, c, e, w=w: _inserted(w, a, b, c, e), {2: positions, 3: positions},
        )  # fmt: skip
        for sign in "su":
            t = f"{sign}{w}"
            yield Case(f"bfind.{t} {{d}}, {{a}}", 32, (w,), lambda a, w=w, s=sign == "s": _highest(a, w, s))
            yield Case(
                f"bfind.shiftamt.{t} {{d}}, {{a}}", 32, (w,),
                lambda a, w=w, s=sign == "s": w - 1 - _highest(a, w, s) if _highest(a, w, s) >= 0 else -1,
            )  # fmt: skip
            yield Case(
                f"bfe.{t} {{d}}, {{a}}, {{b}}, {{c}}", w, (w, 32, 32),
                lambda a, b, c, t=t: _extracted(t, a, b, c), {1: positions, 2: positions},
            )  # fmt: skip
    masks = (0, 1, 1 << 31, 0xAAAAAAAA, 0x80000001, 0x00FF1008, _ALL)
    offsets = (0, 1, 2, 5, 16, 32, 33, _ALL, _ALL - 1, _ALL - 4, _ALL - 31, 1 << 31)
    yield Case(
        "fns.b32 {d}, {a}, {b}, {c}",
        32,
        (32, 32, 32),
        _nth_set,
        {0: masks, 1: (0, 1, 3, 16, 30, 31), 2: offsets},
    )
    yield Case("fns.b32 {d}, {a}, 3, -2", 32, (32,), lambda a: _nth_set(a, 3, -2))
    for mode in ("clamp", "wrap"):
        yield Case(
            f"bmsk.{mode}.b32 {{d}}, {{a}}, {{b}}", 32, (32, 32), lambda a, b, m=mode: _bit_mask(m, a, b),
            {0: _AMOUNTS, 1: _AMOUNTS},
        )  # fmt: skip
        for t in ("s32", "u32"):
            yield Case(
                f"szext.{mode}.{t} {{d}}, {{a}}, {{b}}", 32, (32, 32),
                lambda a, b, m=mode, t=t: _extended(m, t, a, b), {1: _AMOUNTS},
            )  # fmt: skip
    for mode in ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        name = f"prmt.b32.{mode}" if mode else "prmt.b32"
        yield Case(
            f"{name} {{d}}, {{a}}, {{b}}, {{c}}",
            32,
            (32, 32, 32),
            lambda a, b, c, m=mode: _permuted(m, a, b, c),
        )
    yield Case("prmt.b32 {d}, {a}, {b}, 0x9B40", 32, (32, 32), lambda a, b: _permuted("", a, b, 0x9B40))


def logic_cases() -> Iterator[Case]:
    for w in (1, 16, 32, 64):
        t = "pred" if w == 1 else f"b{w}"
        yield Case(f"and.{t} {{d}}, {{a}}, {{b}}", w, (w, w), lambda a, b: a & b)
        yield Case(f"or.{t} {{d}}, {{a}}, {{b}}", w, (w, w), lambda a, b: a | b)
        yield Case(f"xor.{t} {{d}}, {{a}}, {{b}}", w, (w, w), lambda a, b: a ^ b)
        yield Case(f"not.{t} {{d}}, {{a}}", w, (w,), lambda a: ~a)
        if w > 1:
            yield Case(f"cnot.{t} {{d}}, {{a}}", w, (w,), lambda a: a == 0)
            yield Case(
                f"shl.{t} {{d}}, {{a}}, {{b}}", w, (w, 32), lambda a, b: a << min(b, 64), {1: _AMOUNTS}
            )
            yield Case(f"shl.{t} {{d}}, {{a}}, 3", w, (w,), lambda a: a << 3)
            yield Case(f"shl.{t} {{d}}, {{a}}, 200", w, (w,), lambda a: 0)
            for sign in "bsu":
                n = number(f"{sign}{w}")
                yield Case(
                    f"shr.{sign}{w} {{d}}, {{a}}, {{b}}",
                    w,
                    (w, 32),
                    lambda a, b, n=n: n(a) >> min(b, 64),
                    {1: _AMOUNTS},
                )
                yield Case(f"shr.{sign}{w} {{d}}, {{a}}, 5", w, (w,), lambda a, n=n: n(a) >> 5)
    yield Case("and.pred {d}, !{a}, {b}", 1, (1, 1), lambda a, b: not a and b)
    yield Case("not.pred {d}, !{a}", 1, (1,), lambda a: a)


def _by_table(table: int, a: int, b: int, c: int) -> int:
    return sum((table >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32))


def table_cases() -> Iterator[Case]:
    for table in (0x00, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1B, 0xFF):
        yield Case(
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table}", 32, (32, 32, 32),
            lambda a, b, c, t=table: _by_table(t, a, b, c),
        )  # fmt: skip
    small: dict[int, tuple[int, ...]] = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
    yield Case(
        "lop3.or.b32 %r1|{d}, {a}, {b}, {c}, 0x1A, {e}", 1, (32, 32, 32, 1),
        lambda a, b, c, q: _by_table(0x1A, a, b, c) != 0 or q, small,
    )  # fmt: skip
    yield Case(
        "lop3.and.b32 _|{d}, {a}, {b}, {c}, 0x1A, !{e}", 1, (32, 32, 32, 1),
        lambda a, b, c, q: _by_table(0x1A, a, b, c) != 0 and not q, small,
    )  # fmt: skip
    yield Case(
        "setp.ne.u32 %q, {a}, 0; lop3.and.b32 {d}|%q, {a}, {b}, {c}, 0x1A, %q", 32, (32, 32, 32),
        lambda a, b, c: _by_table(0x1A, a, b, c),
    )  # fmt: skip


def funnel_cases() -> Iterator[Case]:
    for mode, limit in (("wrap", lambda n: n & 31), ("clamp", lambda n: min(n, 32))):
        yield Case(
            f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
            lambda a, b, c, n=limit: (b << 32 | a) << n(c) >> 32, {2: _AMOUNTS},
        )  # fmt: skip
        yield Case(
            f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
            lambda a, b, c, n=limit: (b << 32 | a) >> n(c), {2: _AMOUNTS},
        )  # fmt: skip
        for amount in (0, 9, 32, 40):
            yield Case(
                f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {amount}", 32, (32, 32),
                lambda a, b, n=limit, c=amount: (b << 32 | a) << n(c) >> 32,
            )  # fmt: skip


CASES = [*bit_cases(), *logic_cases(), *table_cases(), *funnel_cases()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_bits(case: Case) -> None:
    check(case)
