"""The text of machine code: one line a block, as `qgpuc --emit=machine` and `qgpu objdump` print it.

    3: @p0 !p2 all  r1 = mad x=mem[u3 + r0*4] y=1 z=r2 ; next 4, taken 1  # dot.cu:7:5

A line has the block's number, its active lanes, its destinations and its expression, the blocks that follow,
and the source line. Registers are numbered as the kernel has them: `rN` is a thread register, `uN` a uniform
register, `pN` a predicate. `mem[u3 + r0*4]` is the word at r0*4 bytes from the start of the buffer that u3
describes, checked against its bounds; `raw[...]` is unchecked. `mem.u8` is a byte, zero-extended; `mem.s16` a
half word, sign-extended.
"""

from __future__ import annotations

from collections.abc import Iterator

from qgpu.backends.machine.block import FAULTS, Block
from qgpu.backends.machine.program import HiddenBuffer, Kernel, Parameter, Preload, Program, SourceLine

_RELATIONS = ("never", "lt", "eq", "le", "gt", "ne", "ge", "always")
"""Names of the relation by cond_lt + 2 cond_eq + 4 cond_gt; that of `lex` says nothing of equal operands."""

_OPERANDS = {
    "mad": "xyz",
    "mulhi": "xyz",
    "lop3": "xyz",
    "shl": "xy",
    "shr": "xy",
    "shf": "xyz",
    "cmp": "xy",
    "inc": "xyz",
    "dec": "xyz",
    "lex": "xyz",
    "pick": "xy",
    "select": "xyz",
    "merge": "xy",
    "prmt": "xyz",
    "popc": "x",
    "clz": "x",
    "brev": "x",
    "rcp": "x",
}


def program_text(program: Program) -> str:
    """Return the text of a program: a header line for the machine, then its kernels."""
    machine = program.machine
    lines = [
        f"# machine '{machine.name}': {machine.lanes} lanes, {machine.warps} warps, "
        f"{machine.register_rows} register rows, {machine.uniform_registers} uniform registers, "
        f"{machine.rom_blocks} blocks, {machine.memory_words} words"
    ]
    return "\n\n".join(["\n".join(lines), *map(kernel_text, program.kernels)]) + "\n"


def kernel_text(kernel: Kernel) -> str:
    """Return the text of a kernel: name, resources, parameters, preloads, one line a block."""
    return "\n".join(_kernel_lines(kernel))


def _kernel_lines(kernel: Kernel) -> Iterator[str]:
    yield f"kernel {kernel.name}({', '.join(map(_parameter, kernel.parameters))})"
    yield (
        f"  # {kernel.registers} registers, {kernel.predicates} predicates, {len(kernel.blocks)} blocks, "
        f"{kernel.shared_bytes} bytes shared, {kernel.local_bytes} bytes local a thread, "
        f"warps {kernel.warp_stride} at most"
    )
    yield from (f"  buffer {_hidden(hidden)}" for hidden in kernel.hidden)
    yield from (f"  printf {number}: {text!r}" for number, text in enumerate(_formats(kernel)))
    yield from (f"  assertion in block {block}: {text!r}" for block, text in kernel.messages)
    yield from (f"  preload {_preload(preload)}" for preload in kernel.preloads)
    for kind, variants in (("flat thread block", kernel.flat), ("one thread block", kernel.single)):
        yield from (f"  {kind}: {n}: {block_text(block, kernel.warp_stride)}" for n, block in variants)
    width = len(str(len(kernel.blocks) - 1))
    for number, (block, line) in enumerate(zip(kernel.blocks, kernel.lines, strict=True)):
        text = f"{number:>{width + 2}}: {block_text(block, kernel.warp_stride)}"
        yield f"{text}  # {_place(line)}" if line.line else text


def _parameter(parameter: Parameter) -> str:
    registers = "".join(f" u{register}" for register in parameter.uniform)
    return f"{parameter.type}{'*' * parameter.pointer} {parameter.name}:{registers or ' unused'}"


def _hidden(hidden: HiddenBuffer) -> str:
    where = "unused" if hidden.uniform is None else f"u{hidden.uniform}"
    start = f", starts with {hidden.data.hex()}" if hidden.data else ""
    return f"{hidden.name}: {where}, {hidden.size} bytes{start}"


def _formats(kernel: Kernel) -> tuple[str, ...]:
    return kernel.printf.formats if kernel.printf else ()


def _preload(preload: Preload) -> str:
    where = f"u{preload.uniform}" if preload.block is None else f"block {preload.block}"
    return f"{preload.name}: {where}"


def _place(line: SourceLine) -> str:
    return f"{line.file}:{line.line}:{line.column}" if line.column else f"{line.file}:{line.line}"


def block_text(block: Block, warp_stride: int = 1) -> str:
    """Return the text of one block, without its number; rows are divided by `warp_stride`."""
    parts = [_lanes(block), _action(block, warp_stride), f"; {_flow(block)}"]
    return " ".join(part for part in parts if part)


def _lanes(block: Block) -> str:
    if not block.visit:
        return ""
    if block.scalar:
        return "scalar "
    guards = [f"@p{k}" for k in _bits(block.guard_true)] + [f"!p{k}" for k in _bits(block.guard_false)]
    return " ".join([*guards, "all" if block.all_warps else "warp0"]) + " "


def _bits(mask: int) -> list[int]:
    return [k for k in range(mask.bit_length()) if mask >> k & 1]


def _action(block: Block, stride: int) -> str:
    if not block.visit:
        return ""
    if block.trap:
        return f"trap {FAULTS[block.imm] if block.imm < len(FAULTS) else block.imm}"
    operands = _Operands(block, stride)
    expression = " ".join([_operation(block), *operands.texts()])
    destinations = ", ".join(_destinations(block, operands))
    return f"{destinations} = {expression}" if destinations else expression


def _operation(block: Block) -> str:
    if block.op == "lop3":
        return f"lop3[{block.lut:#04x}]"
    sign = ".s" if block.signed else ".u"
    relation = _RELATIONS[block.cond_lt + 2 * block.cond_eq + 4 * block.cond_gt]
    suffixes = {
        **dict.fromkeys(("cmp", "inc", "dec", "lex", "pick"), f".{relation}{sign}"),
        **dict.fromkeys(("shr", "mulhi"), sign),
        "merge": _width(block),
    }
    return block.op + suffixes.get(block.op, "")


def _width(block: Block) -> str:
    return ".8" if block.width8 else ".16" if block.width16 else ""


def _destinations(block: Block, operands: _Operands) -> Iterator[str]:
    if block.wr_reg:
        yield operands.register(block.dest, thread=True)
    if block.wr_uni:
        yield f"u{block.dest}" + ("[lane]" if block.dest_lane else "")
    if block.wr_pred:
        yield f"p{block.dest_pred}"
    if block.wr_bound:
        yield f"bound{block.dest_pred}"
    if block.wr_mem:
        yield operands.memory
    if block.wr_mem2:
        yield operands.second


def _flow(block: Block) -> str:
    step = "falls to" if block.fall else "next"
    following = "exit" if block.next_exit else f"{step} {block.next}"
    if block.skip_idle:
        return f"{following}, idle {block.taken}"
    return f"{following}, taken {block.taken}" if block.branch_any else following


class _Operands:
    """The texts of a block's operands."""

    def __init__(self, block: Block, stride: int) -> None:
        self.block = block
        self.stride = stride
        self.a = self.register(block.a, bool(block.a_thread))
        self.b = self.register(block.b, bool(block.b_thread))
        self.c = f"u{block.c}"
        self.imm = _number(block.imm)
        self.e = f"u{block.e}"
        self.memory = self._memory()
        self.second = self._second()

    def register(self, number: int, thread: bool) -> str:
        """The name of a register: `r3`, `u3`, or the row where it is not that of a warp 0."""
        if not thread:
            return f"u{number}"
        return f"row{number}" if number % self.stride else f"r{number // self.stride}"

    def texts(self) -> Iterator[str]:
        """The operands that the operation reads, as `x=r1`; those without a source are left out."""
        values = {"x": self._x(), "y": self._y(), "z": self._z()}
        for operand in _OPERANDS[self.block.op]:
            if values[operand]:
                yield f"{operand}={values[operand]}"
        used = self.block.wr_mem or any(value.startswith("mem") for value in values.values())
        if self.block.check and not used:
            yield f"checking {self.memory}"
        if self.block.check2 and not (self.block.wr_mem2 or self.block.m2_to_z):
            yield f"checking {self.second}"

    def _memory(self) -> str:
        block = self.block
        index = f"unsigned {self.a}" if block.i_unsigned else self.a
        offset = (
            (block.a_to_i, index),
            (block.a_to_i4, f"{index}*4"),
            (block.lane_to_i4, "lane*4"),
            (block.e_to_j, self.e),
            (block.e_to_j4, f"{self.e}*4"),
            (block.imm_to_j, self.imm),
        )
        terms = [text for given, text in offset if given]
        base = self.a if block.a_to_d else self.c
        if block.a_to_d or block.c_to_d:
            terms.insert(0, base)
        name = "mem" if block.check else "raw"
        return f"{name}[{' + '.join(terms) or '0'}]"

    def _second(self) -> str:
        block = self.block
        unscaled, scaled = f"{self.a}", f"{self.a}*4"
        offset = (
            (block.i_to_k and block.a_to_i, unscaled),
            (block.i_to_k and block.a_to_i4, scaled),
            (block.i_to_k and block.lane_to_i4, "lane*4"),
            (block.imm_to_k, self.imm),
        )
        terms = [self.e] if block.e_to_d2 else []
        terms += [text for given, text in offset if given]
        name = "mem2" if block.check2 else "raw2"
        return f"{name}[{' + '.join(terms) or '0'}]"

    def _x(self) -> str:
        block = self.block
        extended = f".{'s' if block.m_signed else 'u'}{_width(block)[1:]}["
        sub = self.memory.replace("[", extended, 1)
        routes = ((block.a_to_x, self.a), (block.imm_to_x, self.imm), (block.m_to_x, self.memory))
        return _chosen(*routes, (block.m_sub_to_x, sub))

    def _y(self) -> str:
        block = self.block
        constants = ((block.one_to_y, "1"), (block.ones_to_y, "-1"), (block.imm_to_y, self.imm))
        return _chosen(
            (block.b_to_y, self.b), (block.c_to_y, self.c), (block.m_to_y, self.memory), *constants
        )

    def _z(self) -> str:
        block = self.block
        accumulator = self.register(block.dest, thread=True)
        return _chosen(
            (block.b_to_z, self.b),
            (block.c_to_z, self.c),
            (block.m2_to_z, self.second),
            (block.dest_to_z, accumulator),
            (block.imm_to_z, self.imm),
        )


def _chosen(*routes: tuple[int, str]) -> str:
    return next((text for given, text in routes if given), "")


def _number(value: int) -> str:
    """A small number in decimal, signed; another in hexadecimal."""
    signed = value - (1 << 32) if value >> 31 else value
    return str(signed) if abs(signed) < 1 << 16 else f"{value:#x}"
