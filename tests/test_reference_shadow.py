"""Shared memory that nothing has written: what is a fault, where, and what is none, on both executors.

The kernels are assembled by hand. Each begins with R0 = thread, and writes R2 to the argument at the end.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

import machine_kernels
from machine_kernels import EXISTS, each, scalar
from qgpu.backends.machine.block import Block
from qgpu.backends.machine.description import SMALL
from qgpu.backends.machine.follow import UNINITIALISED
from qgpu.backends.machine.host import Launch, build_launch
from qgpu.backends.machine.program import Kernel, Parameter, Preload, SharedArray
from qgpu.backends.reference.run import run_launch
from qgpu.backends.reference.vector import Result, run_blocks
from qgpu.runtime.engine import Progress, ReferenceEngine
from qgpu.runtime.launch import run as run_tokens
from qgpu.runtime.results import fault_diagnostic

OUT, SHARED, LOCAL, LEFT, ZERO, EIGHT = 1, 2, 3, 4, 5, 6
STRIDE = SMALL.warp_stride(4)
R0, R1, R2, FRAME = (STRIDE * number for number in range(4))
P1, P2 = 2, 4
"""Guard bits of predicates 1 and 2."""

AND, OR = 0xC0, 0xFC
IN_SHARED = {"c": SHARED, "c_to_d": 1, "check": 1}
AT_THREAD = {"a": R0, "a_thread": 1, "a_to_i4": 1, **IN_SHARED}
VALUE_R0 = {"b": R0, "b_thread": 1, "b_to_z": 1}
BYTE = {"a": R0, "a_thread": 1, "a_to_i": 1, "width8": 1, **IN_SHARED}


def load(words: int, dest: int = R2, **fields: int | str) -> Block:
    """dest = shared[thread + words]"""
    place = {**AT_THREAD, "imm": 4 * words, "imm_to_j": 1, "m_to_x": 1, "one_to_y": 1}
    return each(**{**place, "wr_reg": 1, "dest": dest, **fields})  # pyright: ignore


STORE = each(**AT_THREAD, **VALUE_R0, wr_mem=1)
STORE_BYTE = each(**BYTE, m_to_x=1, b=R0, b_thread=1, b_to_y=1, op="merge", wr_mem=1)
LOAD_BYTE = each(**BYTE, m_sub_to_x=1, one_to_y=1, wr_reg=1, dest=R2)
CLEAR = each(imm=0, imm_to_z=1, wr_reg=1, dest=R2)
OF_R2 = {"a": R2, "a_thread": 1, "a_to_x": 1}
TO_R2 = {"wr_reg": 1, "dest": R2}
FRAME_WORD = {"a": FRAME, "a_thread": 1, "a_to_i4": 1, "c": LOCAL, "c_to_d": 1, "check": 1}
ADD = each(**IN_SHARED, m_to_x=1, one_to_y=1, imm=1, imm_to_z=1, wr_mem=1)


def kernel(*body: Block) -> Kernel:
    """A kernel that runs `body`, then writes R2 to the argument, for each thread block of the grid."""
    out = {"a": R0, "a_thread": 1, "a_to_i4": 1, "b": R2, "b_thread": 1, "b_to_z": 1}
    program = [*body, each(**out, c=OUT, c_to_d=1, check=1, wr_mem=1)]
    blocks = [replace(block, next=number + 1) for number, block in enumerate(program)]
    end = len(blocks)
    left = {"a": LEFT, "a_uniform": 1, "a_to_x": 1, "one_to_y": 1, "imm": 0xFFFFFFFF, "imm_to_z": 1}
    blocks.append(scalar(**left, wr_uni=1, dest=LEFT, branch_any=1, taken=0, next_exit=1))
    blocks += [each(guard_true=0, wr_reg=1, dest=row, next_exit=1) for row in (R0, FRAME)]
    preloads = [Preload("tid.x", block=end + 1), Preload("frame", block=end + 2)]
    uniforms = {"shared": SHARED, "local": LOCAL, "nctaid.total": LEFT, "zero": ZERO, "const:8": EIGHT}
    preloads += [Preload(name, uniform=number) for name, number in uniforms.items()]
    made = machine_kernels.kernel("k", blocks, [Parameter("out", "i32", True, (OUT,))], preloads)
    arrays = (SharedArray("first", 0, 16), SharedArray("second", 16, 16))
    return replace(made, shared_bytes=32, shared_arrays=arrays, local_bytes=4, thread_block_end=end)


def run(launch: Launch) -> Result:
    """What the executor of blocks makes of a launch, which is what the reference makes of it."""
    result, trace = run_blocks(launch, 2000), run_launch(launch, 2000)
    assert (result.fault, result.tokens) == (trace.fault, len(trace.generated))
    assert result.memory.tolist() == list(trace.memory)
    return result


def launch(made: Kernel, grid: int = 1) -> Launch:
    return build_launch(SMALL, made, (grid, 1, 1), (4, 1, 1), [bytes(16)])


UNKNOWN = load(1, wr_reg=0, wr_pred=1, dest_pred=1)
"""Predicate 1 of thread 3 comes from memory that nothing wrote; it is 0, and 1 in the others."""

CLEAN = {
    "written before": [STORE, load(0)],
    "read and not needed": [STORE, load(1), CLEAR],
    "an and with 0": [
        STORE,
        load(1),
        each(**OF_R2, **TO_R2, op="lop3", lut=AND, imm=0, imm_to_y=1),
    ],
    "an or with all bits set": [
        STORE,
        load(1),
        each(**OF_R2, **TO_R2, op="lop3", lut=OR, ones_to_y=1),
    ],
    "0 times it": [STORE, load(1), each(**OF_R2, **TO_R2, imm=0, imm_to_y=1)],
    "the other one is selected": [
        STORE,
        load(1),
        each(**OF_R2, **TO_R2, op="select", b=R0, b_thread=1, b_to_y=1, imm=0, imm_to_z=1),
    ],
    "a condition and another that decides": [
        STORE,
        load(1, op="cmp", cond_gt=1, one_to_y=0),
        each(**OF_R2, **TO_R2, op="lop3", lut=OR, imm=1, imm_to_y=1),
    ],
    "a condition that selects between two alike": [
        STORE,
        load(1, op="cmp", cond_gt=1, one_to_y=0, dest=R1),
        each(imm=7, imm_to_z=1, wr_reg=1, dest=R2),
        each(**OF_R2, **TO_R2, op="select", imm=7, imm_to_y=1, b=R1, b_thread=1, b_to_z=1),
    ],
    "a longer comparison that its high words decide": [
        STORE,
        load(1, op="cmp", cond_gt=1, one_to_y=0, dest=R1),
        each(op="lex", cond_lt=1, imm=1, imm_to_x=1, ones_to_y=1, b=R1, b_thread=1, b_to_z=1, **TO_R2),
    ],
    "or, one condition after another": [
        STORE,
        UNKNOWN,
        each(guard_true=EXISTS, guard_false=P1, imm=1, imm_to_z=1, wr_pred=1, dest_pred=1),
        each(guard_true=EXISTS | P1, imm=5, imm_to_z=1, **TO_R2),
    ],
    "and, one condition after another, by way of a register": [
        STORE,
        UNKNOWN,
        each(guard_true=EXISTS | P1, **TO_R2),
        each(guard_true=EXISTS | P1, **OF_R2, one_to_y=1, wr_pred=1, dest_pred=1),
        each(guard_true=EXISTS, guard_false=P1, imm=5, imm_to_z=1, **TO_R2),
        each(guard_true=EXISTS | P1, imm=9, imm_to_z=1, **TO_R2),
    ],
    "two ways to one value": [
        STORE,
        UNKNOWN,
        each(guard_true=EXISTS | P1, imm=5, imm_to_z=1, **TO_R2),
        each(guard_true=EXISTS, guard_false=P1, imm=5, imm_to_z=1, **TO_R2),
    ],
    "what only a lane does that does not run": [
        STORE,
        UNKNOWN,
        each(guard_true=EXISTS | P1, imm=5, imm_to_z=1, **TO_R2),
        each(guard_true=EXISTS | P1, **OF_R2, one_to_y=1, imm=1, imm_to_z=1, **TO_R2),
        CLEAR,
    ],
    "a guard that is off already": [
        STORE,
        each(wr_pred=1, dest_pred=1),
        load(1, wr_reg=0, wr_pred=1, dest_pred=2),
        each(guard_true=EXISTS | P1 | P2, **TO_R2),
        CLEAR,
    ],
    "a byte of its own": [STORE_BYTE, LOAD_BYTE],
    "four bytes": [STORE_BYTE, load(0, guard_true=EXISTS, a_to_i4=0, a=0, a_thread=0)],
    "kept in local memory and not needed": [
        STORE,
        load(1),
        each(**FRAME_WORD, b=R2, b_thread=1, b_to_z=1, wr_mem=1),
        CLEAR,
    ],
}


@pytest.mark.parametrize("name", CLEAN)
def test_what_is_no_fault(name: str) -> None:
    assert run(launch(kernel(*CLEAN[name]), grid=2)).fault is None


FAULTS = {
    "leaves the thread block": ([STORE, load(1)], 3, 1, "4 bytes at offset 0 of 'second'"),
    "nothing was written": ([load(1)], 0, 0, "4 bytes at offset 4 of 'first'"),
    "is computed with": ([STORE, load(4), each(**OF_R2, **TO_R2, one_to_y=1)], 0, 1, "offset 0 of 'second'"),
    "guards": (
        [
            STORE,
            load(1, wr_reg=0, wr_pred=1, dest_pred=1),
            each(guard_true=EXISTS | P1, imm=5, imm_to_z=1, **TO_R2),
        ],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "guards where it must not hold": (
        [
            STORE,
            load(1, wr_reg=0, wr_pred=1, dest_pred=1),
            each(guard_true=EXISTS, guard_false=P1, imm=5, imm_to_z=1, **TO_R2),
        ],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "branches": ([STORE, load(1, branch_any=1, taken=2)], 3, 1, "4 bytes at offset 0 of 'second'"),
    "guards a store": (
        [STORE, UNKNOWN, replace(STORE, guard_true=EXISTS | P1)],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "guards a trap": (
        [STORE, UNKNOWN, each(guard_true=EXISTS, guard_false=P1 | P2, trap=1, imm=3)],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "guards one way to another value": (
        [
            STORE,
            UNKNOWN,
            each(guard_true=EXISTS | P1, imm=5, imm_to_z=1, **TO_R2),
            each(guard_true=EXISTS, guard_false=P1, imm=6, imm_to_z=1, **TO_R2),
        ],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "is an index": (
        [STORE, load(1), each(a=R2, a_thread=1, a_to_i4=1, **IN_SHARED, m_to_x=1, one_to_y=1, **TO_R2)],
        3,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "the other bytes of a word": (
        [each(**{**BYTE, "a_to_i": 0, "a_to_i4": 1}, m_to_x=1, op="merge", wr_mem=1), load(0)],
        0,
        1,
        "4 bytes at offset 0 of 'first'",
    ),
    "a byte beside another": (
        [
            each(**{**BYTE, "a_to_i": 0, "a_to_i4": 1}, m_to_x=1, op="merge", wr_mem=1),
            replace(LOAD_BYTE, imm=1, imm_to_j=1),
        ],
        0,
        1,
        "1 bytes at offset 1 of 'first'",
    ),
    "an atomic operation": ([ADD, CLEAR], 0, 0, "4 bytes at offset 0 of 'first'"),
    "by way of shared memory": (
        [STORE, load(4), each(**AT_THREAD, b=R2, b_thread=1, b_to_z=1, wr_mem=1), load(0)],
        0,
        3,
        "4 bytes at offset 0 of 'first'",
    ),
    "by way of local memory": (
        [
            STORE,
            load(4),
            each(**FRAME_WORD, b=R2, b_thread=1, b_to_z=1, wr_mem=1),
            CLEAR,
            each(**FRAME_WORD, **TO_R2, m_to_x=1, one_to_y=1),
        ],
        0,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
    "by way of a uniform register": (
        [
            scalar(**IN_SHARED, m_to_x=1, one_to_y=1, wr_uni=1, dest=ZERO),
            each(a=ZERO, a_uniform=1, a_to_x=1, one_to_y=1, **TO_R2),
        ],
        0,
        0,
        "4 bytes at offset 0 of 'first'",
    ),
    "the second access": (
        [
            STORE,
            each(a=R0, a_thread=1, a_to_i4=1, i_to_k=1, e=SHARED, e_to_d2=1, check2=1, m2_to_z=1, **TO_R2),
        ][1:],
        0,
        0,
        "4 bytes at offset 0 of 'first'",
    ),
    "the accumulator": (
        [STORE, load(4), each(dest_to_z=1, imm=1, imm_to_x=1, one_to_y=1, **TO_R2)],
        0,
        1,
        "4 bytes at offset 0 of 'second'",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_is_a_fault(name: str) -> None:
    body, thread, block, text = FAULTS[name]
    fault = run(launch(kernel(*body))).fault
    assert fault is not None
    assert (fault.kind, fault.thread, fault.machine_block) == (UNINITIALISED, (thread, 0, 0), block)
    assert text in fault.message and fault.line.line == block + 1


def test_each_thread_block_begins_anew() -> None:
    """The first thread block writes, and the second one does not."""
    first = {"a": LEFT, "a_uniform": 1, "a_to_x": 1, "imm": 1, "imm_to_y": 1, "op": "cmp", "cond_gt": 1}
    made = kernel(each(**first, wr_pred=1, dest_pred=1), replace(STORE, guard_true=EXISTS | P1), load(0))
    assert run(launch(made, grid=1)).fault is not None
    fault = run(launch(made, grid=2)).fault
    assert fault is not None and (fault.thread, fault.machine_block) == ((0, 0, 0), 2)
    assert run(launch(replace(made, thread_block_end=None), grid=2)).fault is None


class Model:
    """An engine as a model is one: it sees tokens and nothing else."""

    layers = 3

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        self._machine = ReferenceEngine(SMALL)

    def feed(self, tokens: Sequence[int], progress: Progress | None = None) -> int:
        return self._machine.feed(tokens, progress)


class FastModel(Model):
    """One that goes on by itself."""

    def generate(self, token: int, most: int, ends: Collection[int]) -> list[int]:
        tokens: list[int] = []
        while len(tokens) < most and token not in ends:
            token = self.feed((token,))
            tokens.append(token)
        return tokens


@pytest.mark.parametrize("name", FAULTS)
def test_engines(name: str) -> None:
    """The reference reports the fault, and --check does; a model alone runs to the end."""
    sent = launch(kernel(*FAULTS[name][0]))
    wanted = run(sent)
    models = (run_tokens(sent, model, check=True) for model in (Model(), FastModel()))
    for outcome in (run_tokens(sent, ReferenceEngine(SMALL)), *models):
        assert (outcome.fault, outcome.tokens, outcome.buffers) == (wanted.fault, wanted.tokens, (None,))
    alone = run_tokens(sent, Model())
    assert alone.fault is None or alone.fault.kind != UNINITIALISED


def test_what_a_fault_says() -> None:
    fault = run(launch(kernel(load(1)))).fault
    assert fault is not None
    text = str(fault_diagnostic(fault))
    meaning = "uninitialised: a read of shared or local memory that was never written"
    assert f"k.cu:1:1: error: {meaning}: 4 bytes at offset 4 of 'first', not all written" in text
    assert "in thread (0, 0, 0) of block (0, 0, 0)" in text
