"""Every instruction of the PTX ISA, one line or more for each: parsed, and printed as it is written."""

import re
from pathlib import Path

import pytest

from qgpu.toolchain.diagnostics import Source
from qgpu.toolchain.ptx import ast
from qgpu.toolchain.ptx.parser import parse
from qgpu.toolchain.ptx.printer import instruction_text

FILES = sorted((Path(__file__).parent / "ptx" / "isa").glob("*.ptx"))
# The table of contents of PTX ISA 9.1, section 9.7, and what later versions add.
OPCODES = """
    abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt brx
    call clusterlaunchcontrol.query_cancel clusterlaunchcontrol.try_cancel clz cnot copysign cos cp.async
    cp.async.bulk cp.async.bulk.commit_group cp.async.bulk.prefetch cp.async.bulk.prefetch.tensor
    cp.async.bulk.tensor cp.async.bulk.wait_group cp.async.commit_group cp.async.mbarrier.arrive
    cp.async.wait_all cp.async.wait_group cp.reduce.async.bulk cp.reduce.async.bulk.tensor createpolicy cvt
    cvt.pack cvta discard div dp2a dp4a elect.sync ex2 exit fence fma fns getctarank griddepcontrol isspacep
    istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match.sync max mbarrier.arrive mbarrier.arrive_drop
    mbarrier.complete_tx mbarrier.expect_tx mbarrier.init mbarrier.inval mbarrier.pending_count
    mbarrier.test_wait mbarrier.try_wait membar min mma mma.sp mov movmatrix mul mul24
    multimem.cp.async.bulk multimem.cp.reduce.async.bulk multimem.ld_reduce multimem.red multimem.st nanosleep
    neg not or pmevent popc prefetch prefetchu prmt rcp red red.async redux.sync rem ret rsqrt sad selp set
    setmaxnreg setp shf shfl.sync shl shr sin slct sqrt st st.async st.bulk stackrestore stacksave stmatrix
    sub subc suld suq sured sust szext tanh tcgen05.alloc tcgen05.commit tcgen05.cp tcgen05.dealloc
    tcgen05.fence tcgen05.ld tcgen05.ld.red tcgen05.mma tcgen05.mma.sp tcgen05.mma.ws tcgen05.mma.ws.sp
    tcgen05.relinquish_alloc_permit tcgen05.shift tcgen05.st tcgen05.wait tensormap.cp_fenceproxy
    tensormap.replace testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad
    vmax vmax2 vmax4 vmin vmin2 vmin4 vote.sync vset vset2 vset4 vshl vshr vsub vsub2 vsub4
    wgmma.commit_group wgmma.fence wgmma.mma_async wgmma.mma_async.sp wgmma.wait_group wmma.load wmma.mma
    wmma.store xor
"""
FEWEST_ROWS = 540


def instructions(path: Path) -> list[tuple[str, ast.Instruction]]:
    """The instructions of a file's kernels, each with its line."""
    text = path.read_text()
    lines = text.split("\n")
    return [
        (lines[statement.position.line - 1].strip(), statement)
        for entry in parse(Source(path.name, text)).entries
        for statement in entry.body.statements
        if isinstance(statement, ast.Instruction)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_instructions_print_as_they_are_written(path: Path) -> None:
    assert [f"{instruction_text(found)};" for _, found in instructions(path)] == [
        line for line, _ in instructions(path)
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_line_is_left_out(path: Path) -> None:
    body = path.read_text().split("\n{\n")[-1]
    lines = [line.strip() for line in body.split("\n") if line.startswith("\t")]
    written = [line for line in lines if not line.startswith((".", "//"))]
    assert [line for line, _ in instructions(path)] == written


def test_every_opcode_has_a_row() -> None:
    """A dot in the list stands for other modifiers between: `mma.sp` is found in `mma.x.sp`."""
    found = [statement for path in FILES for _, statement in instructions(path)]
    assert len(found) >= FEWEST_ROWS
    names = [statement.name.replace("::", ".") for statement in found]
    patterns = {opcode: re.compile(opcode.replace(".", r"\b.*\.") + r"(\.|$)") for opcode in OPCODES.split()}
    assert [opcode for opcode, row in patterns.items() if not any(map(row.match, names))] == []


def test_parts_of_a_tensor_copy() -> None:
    (found,) = (
        statement
        for _, statement in instructions(Path(__file__).parent / "ptx" / "isa" / "asynchronous_copy.ptx")
        if "3d" in statement.modifiers
    )
    assert found.modifiers[-3:] == ("mbarrier::complete_tx::bytes", "multicast::cluster", "L2::cache_hint")
    target, tensor, barrier, mask, policy = found.operands
    assert isinstance(tensor, ast.Memory)
    assert [str(index) for index in tensor.indices] == ["{%r2, 0, %r4}"]
    assert [str(part) for part in (target, tensor.base, barrier, mask, policy)] == [
        "[%r1]", "%rd1", "[%r5]", "%h1", "%rd2",
    ]  # fmt: skip
