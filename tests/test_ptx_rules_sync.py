"""Barriers, fences and what has no effect here (PTX ISA 9.0, section 9.7.13)."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ptx_cases import BLACKWELL, HOPPER, Case, check, head, lower
from qgpu.ir.interpreter import Fault, interpret
from qgpu.toolchain.diagnostics import DiagnosticError

_THREADS = 64
_SHARED = ".shared .b32 v[64]; mov.u32 %r1, v; shl.b32 %r2, %t, 2; add.u32 %r2, %r1, %r2;"
_END = "\nmov.u32 %r1, 0"
_MIRRORED = "sub.u32 %r3, 63, %t; shl.b32 %r3, %r3, 2; add.u32 %r3, %r1, %r3;"

Inputs = Sequence[tuple[int, ...]]


def barrier_cases() -> Iterator[Case]:
    """Each thread reads what its mirror image in the block has written before the barrier."""
    barriers = (
        "bar.sync 0", "bar.sync 1", "bar.cta.sync 15", "bar.sync 2, 64", "mov.u32 %r4, 3; bar.sync %r4",
        "mov.u32 %r4, 64; bar.sync 1, %r4", "barrier.sync 0", "barrier.sync 1, 64",
        "barrier.cta.sync.aligned 0", "barrier.cta.sync.aligned 0, 64", "barrier.sync.aligned 3",
        "bar.red.or.pred %q, 0, %q", "bar.red.popc.u32 %r4, 0, %q",
    )  # fmt: skip
    for barrier in barriers:
        yield Case(
            f"{{{{ {_SHARED} {_MIRRORED} setp.eq.u32 %q, %t, 0; st.shared.u32 [%r2], {{a}};"
            f"{barrier}; ld.shared.u32 {{d}}, [%r3]; }}}}{_END}",
            32, (32,), lambda inputs: [a for (a,) in reversed(inputs)], together=True, threads=_THREADS,
        )  # fmt: skip


def arrival_cases() -> Iterator[Case]:
    """The second warp writes and goes on; the first waits for both, and reads."""
    for arrive, wait in (
        ("bar.arrive", "bar.sync"),
        ("bar.cta.arrive", "bar.cta.sync"),
        ("barrier.arrive", "barrier.sync"),
        ("barrier.cta.arrive.aligned", "barrier.cta.sync.aligned"),
    ):
        yield Case(
            f"{{{{ {_SHARED} {_MIRRORED} setp.ge.u32 %q, %t, 32; mov.u32 {{d}}, {{a}};"
            f"@%q st.shared.u32 [%r2], {{a}}; @%q {arrive} 1, 64;"
            f"@!%q {wait} 1, 64; @!%q ld.shared.u32 {{d}}, [%r3]; }}}}{_END}",
            32, (32,), lambda inputs: [*(a for (a,) in reversed(inputs[32:])), *(a for (a,) in inputs[32:])],
            together=True, threads=_THREADS,
        )  # fmt: skip


def reduction_cases() -> Iterator[Case]:
    for opcode in ("bar.red", "bar.cta.red", "barrier.red", "barrier.cta.red"):
        for aligned in ("", ".aligned") if opcode.startswith("barrier") else ("",):
            for values in ((0,), (1,), (0, 1)):
                more: dict[str, Any] = {
                    "together": True,
                    "threads": _THREADS,
                    "choices": {0: values},
                    "note": str(values),
                }

                def count(inputs: Inputs) -> list[int]:
                    return [sum(a for (a,) in inputs)] * len(inputs)

                def every(inputs: Inputs) -> list[int]:
                    return [all(a for (a,) in inputs)] * len(inputs)

                def none(inputs: Inputs) -> list[int]:
                    return [any(not a for (a,) in inputs)] * len(inputs)

                yield Case(f"{opcode}.popc{aligned}.u32 {{d}}, 0, {{a}}", 32, (1,), count, **more)
                yield Case(f"{opcode}.and{aligned}.pred {{d}}, 1, {{a}}", 1, (1,), every, **more)
                yield Case(f"{opcode}.or{aligned}.pred {{d}}, 0, !{{a}}", 1, (1,), none, **more)


def idle_cases() -> Iterator[Case]:
    """Instructions that change neither registers nor memory."""
    lines = (
        "bar.warp.sync 0xffffffff", "bar.warp.sync %r1", "membar.cta", "membar.gl", "membar.sys",
        "membar.proxy.alias", "fence.sc.gpu", "fence.acq_rel.cta", "fence.acquire.cluster",
        "fence.release.sys", "fence.cluster", "fence.proxy.alias", "fence.proxy.async",
        "fence.proxy.async.global", "fence.proxy.async.shared::cta",
        "fence.mbarrier_init.release.cluster", "fence.acquire.sync_restrict::shared::cluster.cluster",
        "fence.release.sync_restrict::shared::cta.cluster", "nanosleep.u32 100", "nanosleep.u32 %r1",
        "pmevent 7", "pmevent.mask 7", "griddepcontrol.wait", "griddepcontrol.launch_dependents",
        "setmaxnreg.inc.sync.aligned.u32 64",
    )  # fmt: skip
    for line in lines:
        yield Case(f"mov.u32 %r1, -1; {line}; mov.b32 {{d}}, {{a}}", 32, (32,), lambda a: a, target=BLACKWELL)


CASES = [*barrier_cases(), *arrival_cases(), *reduction_cases(), *idle_cases()]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_sync(case: Case) -> None:
    check(case)


def _kernel(body: str) -> str:
    registers = ".reg .pred %p<4>; .reg .b32 %r<4>; .reg .b64 %l<4>;"
    return f"{head(HOPPER)}.visible .entry k()\n{{\n{registers}\n{body}\nret;\n}}\n"


@pytest.mark.parametrize("text", ["trap;", "brkpt;"])
def test_a_trap_or_breakpoint_stops_the_launch(text: str) -> None:
    with pytest.raises(Fault, match="trap"):
        interpret(lower(_kernel(text)), [])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bar.sync 16;", "a thread block has barriers 0 to 15"),
        ("bar.sync 1, 33;", "the number of threads at a barrier is a multiple of 32"),
        ("bar.arrive 1, 0;", "the number of threads at a barrier is a multiple of 32"),
        ("mov.u32 %r1, %tid.x; bar.sync %r1;", "the number of a barrier has to be a constant"),
        ("mov.u32 %r1, %ntid.x; bar.sync 1, %r1;", "the number of threads at a barrier has to be a constant"),
        (
            "bar.red.popc.u32 %r1, 1, 64, %p1;",
            "unsupported instruction 'bar.red.popc.u32': a barrier that counts threads cannot combine their "
            "values; use the whole thread block",
        ),
    ],
)
def test_barriers_that_are_refused(text: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        lower(_kernel(text))
    assert [found.message for found in caught.value.diagnostics] == [message]
