"""Integer arithmetic, scalar and packed, against the definitions of the PTX ISA (9.7.1 and 9.7.2)."""

from collections.abc import Callable, Iterator

import pytest

from ptx_cases import BLACKWELL, Case, check, number, signed

_AMOUNTS = (0, 1, 5)


def _quotient(a: int, b: int) -> int:
    """Division by zero gives all ones, as NVIDIA's GPUs do; the ISA leaves it open."""
    return -1 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return -1 if b == 0 else a - b * _quotient(a, b)


def _saturated(value: int) -> int:
    return max(-(2**31), min(2**31 - 1, value))


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "min": min,
    "max": max,
    "div": _quotient,
    "rem": _remainder,
    "mul.lo": lambda a, b: a * b,
}


def scalar_cases() -> Iterator[Case]:
    for type_ in ("s16", "u16", "s32", "u32", "s64", "u64"):
        n, w = number(type_), int(type_[1:])
        for name, function in BINARY.items():
            yield Case(
                f"{name}.{type_} {{d}}, {{a}}, {{b}}", w, (w, w), lambda a, b, n=n, f=function: f(n(a), n(b))
            )
        yield Case(f"mul.hi.{type_} {{d}}, {{a}}, {{b}}", w, (w, w), lambda a, b, n=n, w=w: n(a) * n(b) >> w)
        yield Case(f"add.{type_} {{d}}, {{a}}, -1", w, (w,), lambda a: a - 1)
        yield Case(
            f"mad.lo.{type_} {{d}}, {{a}}, {{b}}, {{c}}",
            w,
            (w, w, w),
            lambda a, b, c, n=n: n(a) * n(b) + n(c),
        )
        yield Case(
            f"mad.hi.{type_} {{d}}, {{a}}, {{b}}, {{c}}", w, (w, w, w),
            lambda a, b, c, n=n, w=w: (n(a) * n(b) >> w) + n(c),
        )  # fmt: skip
        yield Case(
            f"sad.{type_} {{d}}, {{a}}, {{b}}, {{c}}", w, (w, w, w),
            lambda a, b, c, n=n: c + (n(b) - n(a) if n(a) < n(b) else n(a) - n(b)), {2: _AMOUNTS},
        )  # fmt: skip
        if w < 64:
            yield Case(f"mul.wide.{type_} {{d}}, {{a}}, {{b}}", 2 * w, (w, w), lambda a, b, n=n: n(a) * n(b))
            yield Case(
                f"mad.wide.{type_} {{d}}, {{a}}, {{b}}, {{c}}", 2 * w, (w, w, 2 * w),
                lambda a, b, c, n=n: n(a) * n(b) + c,
            )  # fmt: skip
    for w in (16, 32, 64):
        yield Case(f"abs.s{w} {{d}}, {{a}}", w, (w,), lambda a, w=w: abs(signed(a, w)))
        yield Case(f"neg.s{w} {{d}}, {{a}}", w, (w,), lambda a: -a)


def saturating_cases() -> Iterator[Case]:
    n = number("s32")
    two, three = (32, 32), (32, 32, 32)
    yield Case("add.sat.s32 {d}, {a}, {b}", 32, two, lambda a, b: _saturated(n(a) + n(b)))
    yield Case("sub.sat.s32 {d}, {a}, {b}", 32, two, lambda a, b: _saturated(n(a) - n(b)))
    yield Case(
        "mad.hi.sat.s32 {d}, {a}, {b}, {c}", 32, three, lambda a, b, c: _saturated((n(a) * n(b) >> 32) + n(c))
    )
    yield Case(
        "mad24.hi.sat.s32 {d}, {a}, {b}, {c}", 32, three,
        lambda a, b, c: _saturated(_product24("s32", "hi", a, b) + n(c)),
    )  # fmt: skip
    for name, function in (("min", min), ("max", max)):
        yield Case(
            f"{name}.relu.s32 {{d}}, {{a}}, {{b}}", 32, two, lambda a, b, f=function: max(0, f(n(a), n(b))),
            target=BLACKWELL,
        )  # fmt: skip


def _product24(type_: str, part: str, a: int, b: int) -> int:
    """Bits 0 to 31 or 16 to 47 of the product of the low 24 bits."""
    n = number(f"{type_[0]}24")
    product = n(a) * n(b)
    return product if part == "lo" else signed(product >> 16, 32)


def narrow_product_cases() -> Iterator[Case]:
    for type_ in ("s32", "u32"):
        for part in ("lo", "hi"):
            yield Case(
                f"mul24.{part}.{type_} {{d}}, {{a}}, {{b}}", 32, (32, 32),
                lambda a, b, t=type_, p=part: _product24(t, p, a, b),
            )  # fmt: skip
            yield Case(
                f"mad24.{part}.{type_} {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
                lambda a, b, c, t=type_, p=part: _product24(t, p, a, b) + c,
            )  # fmt: skip


def _halves(value: int, type_: str) -> list[int]:
    n = number(f"{type_[0]}16")
    return [n(value), n(value >> 16)]


def _joined(halves: list[int]) -> int:
    return halves[0] % 65536 | halves[1] % 65536 << 16


def packed_cases() -> Iterator[Case]:
    for type_ in ("s16x2", "u16x2"):
        for name in ("add", "min", "max"):
            for relu in ("", ".relu") if type_[0] == "s" and name != "add" else ("",):

                def oracle(a: int, b: int, t=type_, f=BINARY[name], least=0 if relu else -(2**20)) -> int:
                    pairs = zip(_halves(a, t), _halves(b, t), strict=True)
                    return _joined([max(least, f(*pair)) for pair in pairs])

                yield Case(
                    f"{name}{relu}.{type_} {{d}}, {{a}}, {{b}}", 32, (32, 32), oracle, target=BLACKWELL
                )
    for left in ("s32", "u32"):
        for right in ("s32", "u32"):
            yield Case(
                f"dp4a.{left}.{right} {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
                lambda a, b, c, s=left[0], t=right[0]: c + sum(
                    number(f"{s}8")(a >> at) * number(f"{t}8")(b >> at) for at in (0, 8, 16, 24)
                ),
            )  # fmt: skip
            for half, base in (("lo", 0), ("hi", 16)):
                yield Case(
                    f"dp2a.{half}.{left}.{right} {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
                    lambda a, b, c, s=left[0], t=right[0], base=base: c + sum(
                        number(f"{s}16")(a >> 16 * i) * number(f"{t}8")(b >> base + 8 * i) for i in (0, 1)
                    ),
                )  # fmt: skip


def carry_cases() -> Iterator[Case]:
    """Chains: a first instruction that sets the flag, and those that take it, read out by the last."""
    for w in (32, 64):
        mask = (1 << w) - 1
        low = "%r1" if w == 32 else "%l1"
        for sign in "us":
            t = f"{sign}{w}"
            n = number(t)
            for first, rest, sense in (("add", "addc", 1), ("sub", "subc", -1)):
                yield Case(
                    f"{first}.cc.{t} {low}, {{a}}, {{b}}; {rest}.{t} {{d}}, {{c}}, 5", w, (w, w, w),
                    lambda a, b, c, s=sense, w=w: ((c << w | a) + s * (5 << w | b)) >> w,
                )  # fmt: skip
                yield Case(
                    f"{first}.cc.{t} {low}, {{a}}, {{b}}; {rest}.cc.{t} {low}, {{b}}, {{c}};"
                    f"{rest}.{t} {{d}}, 3, 0",
                    w, (w, w, w),
                    lambda a, b, c, s=sense, w=w: ((3 << 2 * w | b << w | a) + s * (c << w | b)) >> 2 * w,
                )  # fmt: skip
            for part in ("lo", "hi"):

                def term(a: int, b: int, n=n, part=part, w=w, mask=mask) -> int:
                    return (n(a) * n(b) >> (w if part == "hi" else 0)) & mask

                yield Case(
                    f"mad.{part}.cc.{t} {low}, {{a}}, {{b}}, {{c}}; addc.{t} {{d}}, {{a}}, 0",
                    w, (w, w, w),
                    lambda a, b, c, f=term, w=w: a + (f(a, b) + c >> w),
                )  # fmt: skip
                yield Case(
                    f"add.cc.{t} {low}, {{a}}, {{c}}; madc.{part}.cc.{t} {low}, {{a}}, {{b}}, {{c}};"
                    f"addc.{t} {{d}}, {{b}}, 0",
                    w, (w, w, w),
                    lambda a, b, c, f=term, w=w: b + (f(a, b) + c + (a + c >> w) >> w),
                )  # fmt: skip
                yield Case(
                    f"sub.cc.{t} {low}, {{a}}, {{c}}; madc.{part}.{t} {{d}}, {{a}}, {{b}}, {{c}}",
                    w, (w, w, w),
                    lambda a, b, c, f=term: f(a, b) + c + (a < c),
                )  # fmt: skip


def _rounded_average(a: int, b: int) -> int:
    return (a + b + 1 if a + b >= 0 else a + b) >> 1


VIDEO: dict[str, Callable[[int, int], int]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": _rounded_average,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}
ORDERS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


def _by_field(count: int, left: str, right: str, step: Callable[[int, int], int]) -> Callable[..., list[int]]:
    """The results of a step on all fields of two words."""
    w = 32 // count
    m, n = number(f"{left[0]}{w}"), number(f"{right[0]}{w}")
    return lambda a, b: [step(m(a >> i * w), n(b >> i * w)) for i in range(count)]


def _merged(results: list[int], limits: tuple[int, int] | None = None) -> int:
    w = 32 // len(results)
    if limits:
        results = [max(limits[0], min(limits[1], result)) for result in results]
    return sum(result % (1 << w) << i * w for i, result in enumerate(results))


def video_cases() -> Iterator[Case]:
    sources = [(left, right) for left in ("s32", "u32") for right in ("s32", "u32")]
    three = (32, 32, 32)
    for count in (2, 4):
        w = 32 // count
        ranges = {"s32": (-(1 << w - 1), (1 << w - 1) - 1), "u32": (0, (1 << w) - 1)}
        for name, step in VIDEO.items():
            for left, right in sources:
                f = _by_field(count, left, right, step)
                d = "s32" if name == "vsub" else left
                operands = f"{d}.{left}.{right}"
                yield Case(
                    f"{name}{count}.{operands} {{d}}, {{a}}, {{b}}, {{c}}", 32, three,
                    lambda a, b, c, f=f: _merged(f(a, b)),
                )  # fmt: skip
                yield Case(
                    f"{name}{count}.{operands}.sat {{d}}, {{a}}, {{b}}, {{c}}", 32, three,
                    lambda a, b, c, f=f, limits=ranges[d]: _merged(f(a, b), limits),
                )  # fmt: skip
                yield Case(
                    f"{name}{count}.{operands}.add {{d}}, {{a}}, {{b}}, {{c}}", 32, three,
                    lambda a, b, c, f=f: c + sum(f(a, b)),
                )  # fmt: skip
        for (name, order), (left, right) in zip(ORDERS.items(), [*sources, *sources], strict=False):
            f = _by_field(count, left, right, order)
            yield Case(
                f"vset{count}.{left}.{right}.{name} {{d}}, {{a}}, {{b}}, {{c}}", 32, three,
                lambda a, b, c, f=f: _merged(f(a, b)),
            )  # fmt: skip
            yield Case(
                f"vset{count}.{left}.{right}.{name}.add {{d}}, {{a}}, {{b}}, {{c}}", 32, three,
                lambda a, b, c, f=f: c + sum(f(a, b)),
            )  # fmt: skip


CASES = [
    *scalar_cases(),
    *saturating_cases(),
    *narrow_product_cases(),
    *packed_cases(),
    *video_cases(),
    *carry_cases(),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_arithmetic(case: Case) -> None:
    check(case)
