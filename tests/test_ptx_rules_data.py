"""Comparisons, selections, moves and conversions, against the PTX ISA (sections 9.7.6 and 9.7.9)."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from ptx_cases import Case, check, number, signed

ORDERS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = ORDERS | {
    new: ORDERS[old] for new, old in zip(("lo", "ls", "hi", "hs"), list(ORDERS)[2:], strict=True)
}
COMBINE: dict[str, Callable[[bool, bool], bool]] = {
    "and": lambda p, q: p and q,
    "or": lambda p, q: p or q,
    "xor": lambda p, q: p != q,
}


def comparison_cases() -> Iterator[Case]:
    for w in (16, 32, 64):
        for sign, orders in (("b", ("eq", "ne")), ("s", ORDERS), ("u", UNSIGNED)):
            n = number(f"{sign}{w}")
            for name in orders:
                holds = UNSIGNED[name]
                yield Case(
                    f"setp.{name}.{sign}{w} {{d}}, {{a}}, {{b}}", 1, (w, w),
                    lambda a, b, f=holds, n=n: f(n(a), n(b)),
                )  # fmt: skip
                yield Case(
                    f"set.{name}.u32.{sign}{w} {{d}}, {{a}}, {{b}}", 32, (w, w),
                    lambda a, b, f=holds, n=n: -f(n(a), n(b)),
                )  # fmt: skip
    s = number("s32")
    for name, combine in COMBINE.items():
        yield Case(
            f"setp.lt.{name}.s32 {{d}}|%q, {{a}}, {{b}}, {{c}}", 1, (32, 32, 1),
            lambda a, b, c, f=combine: f(s(a) < s(b), bool(c)),
        )  # fmt: skip
        yield Case(
            f"setp.lt.{name}.s32 %q|{{d}}, {{a}}, {{b}}, !{{c}}", 1, (32, 32, 1),
            lambda a, b, c, f=combine: f(not s(a) < s(b), not c),
        )  # fmt: skip
        yield Case(
            f"set.ge.{name}.s32.u64 {{d}}, {{a}}, {{b}}, !{{c}}", 32, (64, 64, 1),
            lambda a, b, c, f=combine: -f(a >= b, not c),
        )  # fmt: skip
    yield Case("setp.ne.u32 _|{d}, {a}, {b}", 1, (32, 32), lambda a, b: a == b)
    yield Case("setp.ne.u32 {d}|_, {a}, {b}", 1, (32, 32), lambda a, b: a != b)
    yield Case(
        "set.eq.f32.s32 %f1, {a}, {b}; mov.b32 {d}, %f1", 32, (32, 32), lambda a, b: 0x3F800000 * (a == b)
    )


def selection_cases() -> Iterator[Case]:
    for w in (16, 32, 64):
        for sign in "bsu":
            yield Case(f"selp.{sign}{w} {{d}}, {{a}}, 77, {{b}}", w, (w, 1), lambda a, p: a if p else 77)
            yield Case(
                f"slct.{sign}{w}.s32 {{d}}, {{a}}, {{b}}, {{c}}", w, (w, w, 32),
                lambda a, b, c: a if signed(c, 32) >= 0 else b,
            )  # fmt: skip
    yield Case("selp.b32 {d}, {a}, {b}, !{c}", 32, (32, 32, 1), lambda a, b, p: b if p else a)


def _limits(type_: str) -> tuple[int, int]:
    width = int(type_[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if type_[0] == "s" else (0, (1 << width) - 1)


def _loses(to: str, from_: str) -> bool:
    """Whether there are numbers of one type that the other has not; only then there is `.sat`."""
    (least, most), (lowest, highest) = _limits(to), _limits(from_)
    return lowest < least or highest > most


def _converted(to: str, from_: str, value: int, saturate: bool) -> int:
    exact = number(from_)(value)
    least, most = _limits(to)
    return max(least, min(most, exact)) if saturate else number(to)(exact)


def conversion_cases() -> Iterator[Case]:
    types = [f"{sign}{width}" for sign in "su" for width in (8, 16, 32, 64)]
    for to, from_ in itertools.product(types, types):
        wide_to, wide_from = max(int(to[1:]), 16), max(int(from_[1:]), 16)
        for saturate in (False, True) if _loses(to, from_) else (False,):
            yield Case(
                f"cvt{'.sat' if saturate else ''}.{to}.{from_} {{d}}, {{a}}", wide_to, (wide_from,),
                lambda a, to=to, from_=from_, s=saturate: _converted(to, from_, a, s),
            )  # fmt: skip
    yield Case("cvt.s8.s8 {d}, {a}", 32, (32,), number("s8"))
    yield Case("cvt.u8.s32 {d}, {a}", 8, (32,), lambda a: a)
    yield Case("cvt.s64.s8 {d}, {a}", 64, (8,), number("s8"))
    for field in ("u16", "s16"):
        yield Case(
            f"cvt.pack.sat.{field}.s32 {{d}}, {{a}}, {{b}}", 32, (32, 32),
            lambda a, b, t=field: _clamped(t, a) << 16 | _clamped(t, b),
        )  # fmt: skip
    for field in ("u2", "s2", "u4", "s4", "u8", "s8"):
        w = int(field[1:])
        yield Case(
            f"cvt.pack.sat.{field}.s32.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
            lambda a, b, c, t=field, w=w: c << 2 * w | _clamped(t, a) << w | _clamped(t, b),
        )  # fmt: skip


def _clamped(field: str, value: int) -> int:
    return _converted(field, "s32", value, True) % (1 << int(field[1:]))


def move_cases() -> Iterator[Case]:
    for w in (16, 32, 64):
        for sign in "bsu":
            yield Case(f"mov.{sign}{w} {{d}}, {{a}}", w, (w,), lambda a: a)
    yield Case("mov.b32 %f1, {a}; mov.f32 %f2, %f1; mov.b32 {d}, %f2", 32, (32,), lambda a: a)
    yield Case("mov.f32 %f1, 1.5; mov.b32 {d}, %f1", 32, (32,), lambda a: 0x3FC00000)
    yield Case("mov.f32 %f1, 0f3F800000; mov.b32 {d}, %f1", 32, (32,), lambda a: 0x3F800000)
    yield Case("mov.pred {d}, {a}", 1, (1,), lambda a: a)
    yield Case("mov.pred {d}, !{a}", 1, (1,), lambda a: not a)
    yield Case("mov.b32 {d}, {{ {a}, {b} }}", 32, (16, 16), lambda a, b: a | b << 16)
    yield Case("mov.b64 {d}, {{ {a}, {b} }}", 64, (32, 32), lambda a, b: a | b << 32)
    yield Case(
        "mov.b64 {d}, {{ {a}, {b}, {c}, {e} }}",
        64,
        (16,) * 4,
        lambda a, b, c, e: a | b << 16 | c << 32 | e << 48,
    )
    yield Case(
        "mov.b32 {d}, {{ {a}, {b}, {c}, {e} }}",
        32,
        (8,) * 4,
        lambda a, b, c, e: a | b << 8 | c << 16 | e << 24,
    )
    yield Case("mov.b16 {d}, {{ {a}, {b} }}", 16, (8, 8), lambda a, b: a | b << 8)
    yield Case("mov.b16 {{ %b1, {d} }}, {a}", 8, (16,), lambda a: a >> 8)
    yield Case("mov.b32 {{ %b1, %b2, {d}, %b3 }}, {a}", 8, (32,), lambda a: a >> 16)
    yield Case("mov.b64 {{ %r8, {d} }}, {a}", 32, (64,), lambda a: a >> 32)
    yield Case("mov.b64 {{ {d}, _ }}, {a}", 32, (64,), lambda a: a)
    yield Case("mov.b64 {{ {d}, %h1, %h2, %h3 }}, {a}", 16, (64,), lambda a: a)
    yield Case("mov.b32 {{ %h1, {d} }}, {a}", 16, (32,), lambda a: a >> 16)
    yield Case("mov.v2.u32 {{ %r1, {d} }}, {{ {a}, {b} }}", 32, (32, 32), lambda a, b: b)


CASES = [*comparison_cases(), *selection_cases(), *conversion_cases(), *move_cases()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_data(case: Case) -> None:
    check(case)
