"""Kernels of one PTX instruction: thread i takes element i of each source array, and writes what it gives.

A case is a line of PTX with its operands in braces, and a definition in Python that is written from the
manual's. The kernel is lowered to IR and interpreted.
"""

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from qgpu.ir import Function
from qgpu.ir.interpreter import interpret
from qgpu.ir.verifier import verify
from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx.lower import lower_module
from qgpu.toolchain.ptx.parser import parse

_REGISTERS = {1: "%p", 8: "%b", 16: "%h", 32: "%r", 64: "%l"}
_MOST_INPUTS = 256
_RANDOM_INPUTS = 32

TURING, HOPPER, BLACKWELL = "sm_75", "sm_90", "sm_100a"
OLD = "sm_75 of 6.3"
ON_HOPPER: dict[str, Any] = {"target": HOPPER}
ON_BLACKWELL: dict[str, Any] = {"target": BLACKWELL}
"""Targets: the instruction is valid from this one on. OLD is PTX before 6.4, which votes without .sync."""


def signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def number(type_: str) -> Callable[[int], int]:
    """What bits mean as a number of a type such as `s32`."""
    width = int(type_[1:])
    return (lambda value: signed(value, width)) if type_[0] == "s" else (lambda value: value % (1 << width))


def edges(width: int) -> list[int]:
    """The corners of a type, and a few numbers between them."""
    top = 1 << width
    if width == 1:
        return [0, 1]
    near = [0, 1, 2, 7, top // 2 - 1, top // 2, top // 2 + 1, top - 2, top - 1]
    return [*near, 0x0123456789ABCDEF % top, 0xFEDCBA9876543280 % top]


@dataclass(frozen=True)
class Case:
    """`text` with the operands d, a, b, c, e in braces; widths of the registers they stand for.

    `oracle` takes the sources as unsigned numbers; its result counts modulo 2^result, None where the ISA
    leaves it open. With `together`, it takes the sources of all threads and gives all results. `choices` are
    the values to try for a source, by index, instead of the edges. `target` is the oldest that has it,
    and `note` tells cases of one text apart.

    With `memory`, the text may access that many random bytes at {m}; the oracle takes them (a bytearray that
    it changes), the number of the thread and its sources, and is asked for the threads in order. `prelude`
    stands before the kernel.
    """

    text: str
    result: int
    sources: tuple[int, ...]
    oracle: Callable
    choices: dict[int, tuple[int, ...]] = field(default_factory=dict, hash=False)
    target: str = TURING
    together: bool = False
    threads: int | None = None
    note: str = ""
    memory: int = 0
    prelude: str = ""

    def __str__(self) -> str:
        return f"{self.text} {self.note}"

    def inputs(self) -> list[tuple[int, ...]]:
        """The sources of each thread: edges against each other, and random numbers."""
        rng = random.Random(self.text)
        lists = [self.choices.get(index, tuple(edges(width))) for index, width in enumerate(self.sources)]
        tuples = list(itertools.product(*lists))
        if len(tuples) > _MOST_INPUTS:
            tuples = rng.sample(tuples, _MOST_INPUTS)
        for _ in range(_RANDOM_INPUTS if self.sources else 0):
            tuples.append(
                tuple(
                    rng.choice(self.choices[index]) if index in self.choices else rng.getrandbits(width)
                    for index, width in enumerate(self.sources)
                )
            )
        if self.threads is not None:
            return [rng.choice(tuples) for _ in range(self.threads)]
        return (
            tuples
            if self.together or self.memory
            else [one for one in tuples if self.oracle(*one) is not None]
        )

    def bytes(self) -> bytearray:
        """What the memory holds at first."""
        return bytearray(random.Random(self.text).randbytes(self.memory))

    def expected(self, inputs: list[tuple[int, ...]]) -> list[int]:
        """The results of all threads; of a case with memory its bytes as well, as one number."""
        memory = self.bytes()
        if self.memory:
            results = [self.oracle(memory, thread, *values) for thread, values in enumerate(inputs)]
        else:
            results = self.oracle(inputs) if self.together else [self.oracle(*values) for values in inputs]
        return [int(result) % (1 << self.result) for result in results] + _whole(memory)


def head(target: str) -> str:
    architecture, _, version = target.partition(" of ")
    return f".version {version or '9.0'}\n.target {architecture}\n.address_size 64\n"


def kernel_text(case: Case, name: str = "k") -> str:
    """A kernel that applies the instruction to the elements of its arrays, predicates as 32-bit numbers."""
    widths = {"d": case.result} | dict(zip("abce", case.sources, strict=False))
    names = {role: f"{_REGISTERS[width]}_{role}" for role, width in widths.items()}
    roles = "dabce"
    lines = [
        f".reg .pred %q, {', '.join(f'%p_{role}' for role in roles)};",
        f".reg .b8 %b<9>, {', '.join(f'%b_{role}' for role in roles)};",
        f".reg .b16 %h<9>, {', '.join(f'%h_{role}' for role in roles)};",
        f".reg .b32 %t, %r<9>, {', '.join(f'%r_{role}' for role in roles)};",
        f".reg .b64 %at, %l<9>, {', '.join(f'%l_{role}' for role in roles)};",
        ".reg .f32 %f<9>;",
        "mov.u32 %t, %tid.x;",
    ]
    store: list[str] = []
    for role, width in widths.items():
        size = _size(width)
        address = [
            f"ld.param.u64 %at, [{name}_{role}];",
            "cvta.to.global.u64 %at, %at;",
            f"mad.wide.u32 %at, %t, {size}, %at;",
        ]
        if role == "d":
            store += [*address, f"st.global.b{8 * size} [%at], {'%r8' if width == 1 else names[role]};"]
        elif width == 1:
            lines += [*address, "ld.global.b32 %r8, [%at];", f"setp.ne.u32 {names[role]}, %r8, 0;"]
        else:
            lines += [*address, f"ld.global.b{width} {names[role]}, [%at];"]
    if case.memory:
        names["m"] = "%l_m"
        lines += [f".reg .b64 %l_m; ld.param.u64 %l_m, [{name}_m];", "cvta.to.global.u64 %l_m, %l_m;"]
    lines.append(case.text.format(**names) + ";")
    if case.result == 1:
        lines.append(f"selp.u32 %r8, 1, 0, {names['d']};")
    parameters = ", ".join(f".param .u64 {name}_{role}" for role in widths)
    if case.memory:
        parameters += f", .param .u64 {name}_m"
    body = "\n".join([*lines, *store, "ret;"])
    return f"{case.prelude}\n.visible .entry {name}({parameters})\n{{\n{body}\n}}\n"


def lower(text: str) -> Function:
    """The IR of a module of one kernel."""
    source = Source("case.ptx", text)
    (function,) = lower_module(parse(source), source).functions
    verify(function)
    return function


def packed(values: Iterable[int], size: int) -> bytearray:
    return bytearray(b"".join(value.to_bytes(size, "little") for value in values))


def unpacked(data: bytearray, size: int) -> list[int]:
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


def run(case: Case, transform: Callable[[Function], object]) -> tuple[list[int], list[int]]:
    """What the instruction gave for all inputs, and what the definition gives."""
    function = lower(head(case.target) + kernel_text(case))
    transform(function)
    inputs = case.inputs()
    columns = list(zip(*inputs, strict=True))
    sizes = [_size(width) for width in (case.result, *case.sources)]
    out = bytearray(sizes[0] * len(inputs))
    arrays = [packed(column, size) for column, size in zip(columns, sizes[1:], strict=True)]
    memory = case.bytes()
    buffers = [out, *arrays, *([memory] if case.memory else [])]
    interpret(function, buffers, (1, 1, 1), (len(inputs), 1, 1))
    return unpacked(out, sizes[0]) + _whole(memory), case.expected(inputs)


def check(case: Case, transform: Callable[[Function], object] = verify) -> None:
    """Assert that the instruction computes what its definition says, after a transformation of the IR."""
    found, expected = run(case, transform)
    assert len(expected) > 1
    inputs = [*case.inputs(), *(("memory",) if case.memory else ())]
    wrong = [
        (values, hex(have), hex(want))
        for values, have, want in zip(inputs, found, expected, strict=True)
        if have != want
    ]
    assert not wrong, f"{case.text}: sources, found, expected: {wrong[:5]}"


def _whole(memory: bytearray) -> list[int]:
    """The bytes as one number, for comparison; nothing where there are none."""
    return [int.from_bytes(memory, "little")] if memory else []


def _size(width: int) -> int:
    """Bytes of an array element."""
    return 4 if width == 1 else width // 8
