"""Kernels assembled by hand, for tests of what runs machine code before and without code generation."""

from dataclasses import replace

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import SMALL, MachineDescription
from qgpu.backends.machine.program import Kernel, Parameter, Preload, Program, SourceLine

EXISTS = 1
"""guard_true of a block for the threads that exist."""


def lines(count: int, file: str = "k.cu") -> tuple[SourceLine, ...]:
    """A source line a block: block n comes from line n + 1."""
    return tuple(SourceLine(file, number + 1, 1) for number in range(count))


def kernel(
    name: str,
    blocks: list[Block],
    parameters: list[Parameter],
    preloads: list[Preload],
    registers: int = 4,
    machine: MachineDescription = SMALL,
) -> Kernel:
    """A kernel of blocks whose register numbers are rows of a machine with `registers` registers a thread."""
    stride = machine.warp_stride(registers)
    return Kernel(
        name, tuple(parameters), tuple(preloads), tuple(blocks), lines(len(blocks)), registers, 8, stride
    )


def each(guard_true: int = EXISTS, guard_false: int = 0, **fields: int | str) -> Block:
    """A block that every thread under the guard visits."""
    return Block(visit=1, all_warps=1, guard_true=guard_true, guard_false=guard_false, **fields)  # pyright: ignore


def scalar(**fields: int | str) -> Block:
    """A block of one visit."""
    return Block(visit=1, scalar=1, **fields)  # pyright: ignore


def row(machine: MachineDescription, register: int, registers: int = 4) -> int:
    """The row of warp 0 of a thread register."""
    return register * machine.warp_stride(registers)


def vecadd(machine: MachineDescription = SMALL) -> Kernel:
    """c[i] = a[i] + b[i] for i = ctaid.x * ntid.x + tid.x below n, over a grid in x."""
    tid, i, sum_ = (row(machine, register) for register in range(3))
    a, b, c, n, ntid, ctaid, left = range(1, 8)
    index = {"a": i, "a_thread": 1, "a_to_i4": 1, "check": 1, "c_to_d": 1}
    word = {"m_to_x": 1, "one_to_y": 1, "wr_reg": 1, "dest": sum_}
    inside = EXISTS | 2
    blocks = [
        each(a=ctaid, a_uniform=1, a_to_x=1, c=ntid, c_to_y=1, b=tid, b_thread=1, b_to_z=1,
             wr_reg=1, dest=i, next=1),
        each(op="cmp", cond_lt=1, signed=1, a=i, a_thread=1, a_to_x=1, c=n, c_to_y=1,
             wr_pred=1, dest_pred=1, next=2),
        each(inside, **index, c=a, **word, next=3),
        each(inside, **index, c=b, **word, b=sum_, b_thread=1, b_to_z=1, next=4),
        each(inside, **index, c=c, b=sum_, b_thread=1, b_to_z=1, wr_mem=1, next=5),
        scalar(a=left, a_uniform=1, a_to_x=1, one_to_y=1, imm=1, imm_to_z=1, wr_uni=1, dest=left,
               branch_any=1, taken=6, next_exit=1),
        scalar(a=ctaid, a_uniform=1, a_to_x=1, one_to_y=1, imm=1, imm_to_z=1, wr_uni=1, dest=ctaid, next=0),
        each(0, wr_reg=1, dest=tid, next_exit=1),
    ]  # fmt: skip
    parameters = [Parameter(name, "i32", True, (u,)) for name, u in (("a", a), ("b", b), ("c", c))]
    parameters.append(Parameter("n", "i32", False, (n,)))
    preloads = [
        Preload("tid.x", block=7),
        Preload("ntid.x", uniform=ntid),
        Preload("ctaid.x", uniform=ctaid),
        Preload("-nctaid.x", uniform=left),
    ]
    return kernel("_Z6vecaddPKiS0_Pii", blocks, parameters, preloads, machine=machine)


def vecadd_flat(machine: MachineDescription = SMALL) -> Kernel:
    """vecadd in as few tokens as the machine allows.

    Blocks fall to the next one; a load, an addition and a store are one block. Where the thread block has one
    dimension, the bound of predicate 1 says in one token which threads are inside; where the grid is one
    thread block, nothing counts it.
    """
    tid, i = row(machine, 0), row(machine, 1)
    a, b, c, n, ntid, ctaid, left, negative = range(1, 9)
    index = {"a": i, "a_thread": 1, "a_to_i4": 1}
    inside = EXISTS | 2
    load = each(inside, **index, c=a, c_to_d=1, check=1, m_to_x=1, one_to_y=1, wr_reg=1,
                dest=row(machine, 2), next=3, fall=1, skip_idle=1, taken=4)  # fmt: skip
    blocks = [
        each(a=ctaid, a_uniform=1, a_to_x=1, c=ntid, c_to_y=1, b=tid, b_thread=1, b_to_z=1,
             wr_reg=1, dest=i, next=1, fall=1),
        each(op="cmp", cond_lt=1, signed=1, a=i, a_thread=1, a_to_x=1, c=n, c_to_y=1,
             wr_pred=1, dest_pred=1, next=2, fall=1),
        load,
        each(inside, **index, c=b, c_to_d=1, check=1, m_to_x=1, one_to_y=1, b=row(machine, 2), b_thread=1,
             b_to_z=1, e=c, e_to_d2=1, i_to_k=1, check2=1, wr_mem2=1, next=4, fall=1),
        scalar(a=left, a_uniform=1, a_to_x=1, one_to_y=1, imm=1, imm_to_z=1, wr_uni=1, dest=left,
               branch_any=1, taken=5, next_exit=1),
        scalar(a=ctaid, a_uniform=1, a_to_x=1, one_to_y=1, imm=1, imm_to_z=1, wr_uni=1, dest=ctaid, next=0),
        each(0, wr_reg=1, dest=tid, next_exit=1),
    ]  # fmt: skip
    bound = scalar(a=ctaid, a_uniform=1, a_to_x=1, c=negative, c_to_y=1, b=n, b_uniform=1, b_to_z=1,
                   wr_bound=1, dest_pred=1, next=2, fall=1)  # fmt: skip
    parameters = [Parameter(name, "i32", True, (u,)) for name, u in (("a", a), ("b", b), ("c", c))]
    parameters.append(Parameter("n", "i32", False, (n,)))
    preloads = [Preload("tid.x", block=6)]
    uniforms = (("ntid.x", ntid), ("ctaid.x", ctaid), ("-nctaid.x", left), ("-ntid.x", negative))
    preloads += [Preload(name, uniform=u) for name, u in uniforms]
    found = kernel("vecadd_flat", blocks, parameters, preloads, machine=machine)
    return replace(found, flat=((1, bound),), single=((4, Block(next_exit=1)),))


def triangle(machine: MachineDescription = SMALL) -> Kernel:
    """out[tid] = tid + (tid - 1) + ... + 1, by a loop that each thread leaves when it is done."""
    tid, total, left = (row(machine, register) for register in range(3))
    out = 1
    looping = EXISTS | 2
    blocks = [
        each(wr_reg=1, dest=total, next=1),
        each(b=tid, b_thread=1, b_to_z=1, wr_reg=1, dest=left, next=2),
        each(op="cmp", cond_lt=1, cond_gt=1, a=left, a_thread=1, a_to_x=1, wr_pred=1, dest_pred=1,
             branch_any=1, taken=3, next=5),
        each(looping, a=left, a_thread=1, a_to_x=1, one_to_y=1, b=total, b_thread=1, b_to_z=1,
             wr_reg=1, dest=total, next=4),
        each(looping, a=left, a_thread=1, a_to_x=1, one_to_y=1, imm=0xFFFFFFFF, imm_to_z=1,
             wr_reg=1, dest=left, next=2),
        each(a=tid, a_thread=1, a_to_i4=1, check=1, c=out, c_to_d=1, b=total, b_thread=1, b_to_z=1,
             wr_mem=1, next_exit=1),
        each(0, wr_reg=1, dest=tid, next_exit=1),
    ]  # fmt: skip
    return kernel(
        "triangle",
        blocks,
        [Parameter("out", "u32", True, (out,))],
        [Preload("tid.x", block=6)],
        machine=machine,
    )


def one_access(machine: MachineDescription = SMALL, **fields: int | str) -> Kernel:
    """A kernel of one block; row 0 is tid.x, u1 the descriptor of the only buffer, u2 a scalar."""
    blocks = [each(**{"next_exit": 1, **fields}), each(0, wr_reg=1, dest=0, next_exit=1)]
    parameters = [Parameter("buffer", "i32", True, (1,)), Parameter("value", "i32", False, (2,))]
    return kernel("access", blocks, parameters, [Preload("tid.x", block=1)], machine=machine)


def program(*kernels: Kernel, machine: MachineDescription = SMALL) -> Program:
    """A program of kernels."""
    return Program(machine, kernels, "k.cu")
