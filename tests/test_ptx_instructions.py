"""What PTX instructions compute: every row on the edges of its types, against formulas of the PTX ISA.

A case is a kernel of one instruction; thread i takes element i of each source array. The kernel is lowered to
IR and interpreted. Where ptxas is installed, it confirms that the cases are valid PTX.
"""

import itertools
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from qgpu.ir.interpreter import interpret
from qgpu.ir.verifier import verify
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.lower import lower_module
from qgpu.toolchain.ptx.parser import parse

HEAD = ".version 9.0\n.target sm_75\n.address_size 64\n"
REGISTERS = {1: "%p", 16: "%h", 32: "%r", 64: "%l"}


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def edges(width: int) -> list[int]:
    top = 1 << width
    if width == 1:
        return [0, 1]
    near = [0, 1, 2, 7, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1]
    return [*near, 0x0123456789ABCDEF % top, 0xFEDCBA9876543280 % top]


@dataclass(frozen=True)
class Case:
    """`text` with the operands d, a, b, c in braces; widths of the registers they stand for.

    `oracle` takes the sources as unsigned numbers; its result counts modulo 2^result, None where the ISA
    leaves it open. `choices` replaces the edges for the source of that index.
    """

    text: str
    result: int
    sources: tuple[int, ...]
    oracle: Callable[..., int | None]
    choices: tuple[int, tuple[int, ...]] | None = None

    def inputs(self) -> list[tuple[int, ...]]:
        lists = [edges(width) for width in self.sources]
        if self.choices:
            lists[self.choices[0]] = list(self.choices[1])
        return [values for values in itertools.product(*lists) if self.oracle(*values) is not None]


def integer_cases() -> Iterator[Case]:
    for width in (16, 32, 64):
        two = (width, width)
        for sign in "su":

            def n(value: int, sign: str = sign, width: int = width) -> int:
                return signed(value, width) if sign == "s" else value

            def quotient(a: int, b: int, n: Callable[[int], int] = n) -> int | None:
                a, b = n(a), n(b)
                return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

            def remainder(a: int, b: int, n: Callable = n, quotient: Callable = quotient) -> int | None:
                q = quotient(a, b)
                return None if q is None else n(a) - n(b) * q

            type_ = f"{sign}{width}"
            yield Case(f"add.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a + b)
            yield Case(f"sub.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a - b)
            yield Case(f"mul.lo.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a * b)
            yield Case(
                f"mul.hi.{type_} {{d}}, {{a}}, {{b}}",
                width,
                two,
                lambda a, b, n=n, w=width: (n(a) * n(b)) >> w,
            )
            yield Case(f"min.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b, n=n: min(n(a), n(b)))
            yield Case(f"max.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b, n=n: max(n(a), n(b)))
            yield Case(f"div.{type_} {{d}}, {{a}}, {{b}}", width, two, quotient)
            yield Case(f"rem.{type_} {{d}}, {{a}}, {{b}}", width, two, remainder)
            yield Case(
                f"mad.lo.{type_} {{d}}, {{a}}, {{b}}, {{c}}", width, (*two, width), lambda a, b, c: a * b + c,
                (2, (0, 1, (1 << width) - 5)),
            )  # fmt: skip
            yield Case(
                f"shr.{type_} {{d}}, {{a}}, {{b}}", width, (width, 32), lambda a, b, n=n: n(a) >> min(b, 64),
                (1, (0, 1, width - 1, width, width + 1, 65535, 65536, 2**32 - 1)),
            )  # fmt: skip
            yield Case(f"add.{type_} {{d}}, {{a}}, -1", width, (width,), lambda a: a - 1)
            if width < 64:
                yield Case(
                    f"mul.wide.{type_} {{d}}, {{a}}, {{b}}", 2 * width, two, lambda a, b, n=n: n(a) * n(b)
                )
                yield Case(
                    f"mad.wide.{type_} {{d}}, {{a}}, -3, {{b}}", 2 * width, (width, 2 * width),
                    lambda a, b, n=n, m=1 << width: n(a) * n(-3 % m) + b,
                )  # fmt: skip
        yield Case(f"abs.s{width} {{d}}, {{a}}", width, (width,), lambda a, w=width: abs(signed(a, w)))
        yield Case(f"neg.s{width} {{d}}, {{a}}", width, (width,), lambda a: -a)
        yield Case(
            f"shl.b{width} {{d}}, {{a}}, {{b}}", width, (width, 32), lambda a, b: a << min(b, 64),
            (1, (0, 1, width - 1, width, width + 1, 65535, 65536, 2**32 - 1)),
        )  # fmt: skip
        yield Case(f"shl.b{width} {{d}}, {{a}}, 3", width, (width,), lambda a: a << 3)
        yield Case(f"shl.b{width} {{d}}, {{a}}, 200", width, (width,), lambda a: 0)
        yield Case(f"shr.b{width} {{d}}, {{a}}, 5", width, (width,), lambda a: a >> 5)


def composed_cases() -> Iterator[Case]:
    """Instructions that become several of the IR's."""
    amounts = (2, (0, 1, 7, 31, 32, 33, 63, 2**31, 2**32 - 1))
    for mode, limit in [("wrap", lambda n: n & 31), ("clamp", lambda n: min(n, 32))]:
        yield Case(
            f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
            lambda a, b, c, n=limit: (b << 32 | a) << n(c) >> 32, amounts,
        )  # fmt: skip
        yield Case(
            f"shf.r.{mode}.b32 {{d}}, {{a}}, {{b}}, {{c}}", 32, (32, 32, 32),
            lambda a, b, c, n=limit: (b << 32 | a) >> n(c), amounts,
        )  # fmt: skip
        for amount in (0, 9, 32, 40):
            yield Case(
                f"shf.l.{mode}.b32 {{d}}, {{a}}, {{b}}, {amount}", 32, (32, 32),
                lambda a, b, n=limit, c=amount: (b << 32 | a) << n(c) >> 32,
            )  # fmt: skip
    for width in (32, 64):
        yield Case(f"clz.b{width} {{d}}, {{a}}", 32, (width,), lambda a, w=width: w - a.bit_length())
    for width in (16, 32, 64):
        yield Case(
            f"sad.u{width} {{d}}, {{a}}, {{b}}, {{c}}", width, (width, width, width),
            lambda a, b, c: c + abs(a - b), (2, (0, 5)),
        )  # fmt: skip
        yield Case(
            f"sad.s{width} {{d}}, {{a}}, {{b}}, {{c}}", width, (width, width, width),
            lambda a, b, c, w=width: c + abs(signed(a, w) - signed(b, w)), (2, (0, 5)),
        )  # fmt: skip


def logic_cases() -> Iterator[Case]:
    for width in (1, 16, 32, 64):
        type_ = "pred" if width == 1 else f"b{width}"
        two = (width, width)
        yield Case(f"and.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a & b)
        yield Case(f"or.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a | b)
        yield Case(f"xor.{type_} {{d}}, {{a}}, {{b}}", width, two, lambda a, b: a ^ b)
        yield Case(f"not.{type_} {{d}}, {{a}}", width, (width,), lambda a: ~a)
        yield Case(f"mov.{type_} {{d}}, {{a}}", width, (width,), lambda a: a)
        if width >= 32:
            yield Case(f"popc.b{width} {{d}}, {{a}}", 32, (width,), lambda a: a.bit_count())
        if width > 1:
            yield Case(
                f"selp.{type_} {{d}}, {{a}}, 77, {{b}}", width, (width, 1), lambda a, p: a if p else 77
            )
    for table in (0x00, 0x80, 0xFE, 0x96, 0xE8, 0xCA, 0x1B, 0xFF):
        yield Case(
            f"lop3.b32 {{d}}, {{a}}, {{b}}, {{c}}, {table}", 32, (32, 32, 32),
            lambda a, b, c, t=table: sum(
                (t >> (4 * (a >> i & 1) + 2 * (b >> i & 1) + (c >> i & 1)) & 1) << i for i in range(32)
            ),
            (2, (0, 0x0F0F1234, 2**32 - 1)),
        )  # fmt: skip


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
    for width in (16, 32, 64):
        for name in ("eq", "ne"):
            yield Case(
                f"setp.{name}.b{width} {{d}}, {{a}}, {{b}}", 1, (width, width),
                lambda a, b, f=ORDERS[name]: f(a, b),
            )  # fmt: skip
        for name, order in ORDERS.items():
            yield Case(
                f"setp.{name}.s{width} {{d}}, {{a}}, {{b}}", 1, (width, width),
                lambda a, b, f=order, w=width: f(signed(a, w), signed(b, w)),
            )  # fmt: skip
        for name, order in UNSIGNED.items():
            yield Case(f"setp.{name}.u{width} {{d}}, {{a}}, {{b}}", 1, (width, width), order)
    for name, combine in COMBINE.items():
        lines = f"setp.lt.{name}.s32 {{d}}|%q, {{a}}, {{b}}, {{c}}"
        yield Case(lines, 1, (32, 32, 1),
                   lambda a, b, c, f=combine: f(signed(a, 32) < signed(b, 32), bool(c)))  # fmt: skip
        yield Case(f"setp.lt.{name}.s32 %q|{{d}}, {{a}}, {{b}}, !{{c}}", 1, (32, 32, 1),
                   lambda a, b, c, f=combine: f(not signed(a, 32) < signed(b, 32), not c))  # fmt: skip


def conversion_cases() -> Iterator[Case]:
    types = [(sign, width) for sign in "su" for width in (8, 16, 32, 64)]
    for (to_sign, to), (from_sign, from_) in itertools.product(types, types):

        def convert(value: int, to_sign=to_sign, to=to, from_sign=from_sign, from_=from_) -> int:
            low = signed(value, from_) if from_sign == "s" else value % (1 << from_)
            return signed(low, to) if to_sign == "s" else low % (1 << to)

        text = f"cvt.{to_sign}{to}.{from_sign}{from_} {{d}}, {{a}}"
        yield Case(text, max(to, 16), (max(from_, 16),), convert)
        if to == from_ == 8:
            yield Case(text, 32, (32,), convert)
    yield Case("mov.b32 {d}, {{ {a}, {b} }}", 32, (16, 16), lambda a, b: a | b << 16)
    yield Case("mov.b64 {d}, {{ {a}, {b} }}", 64, (32, 32), lambda a, b: a | b << 32)
    yield Case("mov.b64 {{ %r8, {d} }}, {a}", 32, (64,), lambda a: a >> 32)
    yield Case("mov.b64 {{ {d}, %h1, %h2, %h3 }}, {a}", 16, (64,), lambda a: a)
    yield Case("mov.b32 {{ %h1, {d} }}, {a}", 16, (32,), lambda a: a >> 16)


CASES = [*integer_cases(), *composed_cases(), *logic_cases(), *comparison_cases(), *conversion_cases()]


def kernel_text(case: Case, name: str = "k") -> str:
    """A kernel that applies the instruction to the elements of its arrays, predicates as 32-bit numbers."""
    widths = {"d": case.result} | dict(zip("abc", case.sources, strict=False))
    names = {role: f"{REGISTERS[width]}_{role}" for role, width in widths.items()}
    lines = [
        f".reg .pred %q, {', '.join(f'%p_{role}' for role in 'dabc')};",
        f".reg .b16 %h<4>, {', '.join(f'%h_{role}' for role in 'dabc')};",
        f".reg .b32 %t, %r<9>, {', '.join(f'%r_{role}' for role in 'dabc')};",
        f".reg .b64 %at, {', '.join(f'%l_{role}' for role in 'dabc')};",
        "mov.u32 %t, %tid.x;",
    ]
    store: list[str] = []
    for role, width in widths.items():
        size = max(width, 32) if width == 1 else width
        address = [
            f"ld.param.u64 %at, [{name}_{role}];",
            "cvta.to.global.u64 %at, %at;",
            f"mad.wide.u32 %at, %t, {size // 8}, %at;",
        ]
        if role == "d":
            store += [*address, f"st.global.b{size} [%at], {'%r8' if width == 1 else names[role]};"]
        elif width == 1:
            lines += [*address, "ld.global.b32 %r8, [%at];", f"setp.ne.u32 {names[role]}, %r8, 0;"]
        else:
            lines += [*address, f"ld.global.b{size} {names[role]}, [%at];"]
    lines.append(case.text.format(**names) + ";")
    if case.result == 1:
        lines.append(f"selp.u32 %r8, 1, 0, {names['d']};")
    parameters = ", ".join(f".param .u64 {name}_{role}" for role in widths)
    body = "\n".join([*lines, *store, "ret;"])
    return f".visible .entry {name}({parameters})\n{{\n{body}\n}}\n"


def run(case: Case) -> tuple[list[int], list[int]]:
    """What the instruction gave for all inputs, and what the formula gives."""
    source = Source("case.ptx", HEAD + kernel_text(case))
    (function,) = lower_module(parse(source), source).functions
    verify(function)
    inputs = case.inputs()
    columns = list(zip(*inputs, strict=True))
    sizes = [4 if width == 1 else width // 8 for width in (case.result, *case.sources)]
    out = bytearray(sizes[0] * len(inputs))
    arrays = [
        bytearray(b"".join(value.to_bytes(size, "little") for value in column))
        for column, size in zip(columns, sizes[1:], strict=True)
    ]
    interpret(function, [out, *arrays], (1, 1, 1), (len(inputs), 1, 1))
    found = [int.from_bytes(out[at : at + sizes[0]], "little") for at in range(0, len(out), sizes[0])]
    return found, [int(case.oracle(*values) or 0) % (1 << case.result) for values in inputs]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.text}-{case.result}")
def test_instruction(case: Case) -> None:
    found, expected = run(case)
    assert len(expected) > 1
    assert found == expected


@pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas judges whether the PTX is valid")
def test_ptxas_accepts_all_cases(tmp_path: Path) -> None:
    file = tmp_path / "cases.ptx"
    file.write_text(HEAD + "\n".join(kernel_text(case, f"k{n}") for n, case in enumerate(CASES)))
    command = ["ptxas", "-O0", "-arch=sm_75", "-o", str(tmp_path / "out"), str(file)]
    assert subprocess.run(command, capture_output=True, text=True).stderr == ""
