"""Device printf: the records that a kernel leaves in memory, as text on stdout."""

import numpy as np
import pytest

from codegen_runs import LINEARISED, made
from qgpu.backends.machine.description import LARGE
from qgpu.backends.machine.host import build_launch
from qgpu.backends.machine.program import Printf, Program
from qgpu.runtime.api import CompiledKernel, FaultError
from qgpu.runtime.engine import ReferenceEngine
from qgpu.runtime.launch import run
from qgpu.runtime.printf import conversion_words, printed


def test_words_of_conversions() -> None:
    assert conversion_words("%d%%%5.2u %hhx%c") == (1, 1, 1, 1)
    assert conversion_words("%ld %llu %zx %f %p") == (2, 2, 2, 2, 2)


def test_records_become_text() -> None:
    printf = Printf(0, ("x=%d ", "y=%llx\n"))
    assert printed(printf, 5, [1, 0xFFFFFFFE, 2, 0xF, 0x1]) == "x=-2 y=10000000f\n"
    assert printed(printf, 0, []) == ""


def test_what_found_no_room_is_counted() -> None:
    printf = Printf(0, ("x=%d\n",))
    assert printed(printf, 6, [1, 7, 0]) == "x=7\n[printf: 12 bytes more than its buffer has room for]\n"


PRINT = f"""
kernel @k(%n: i32) {LINEARISED[:-1]}, printf: "ring", printf.1: "%d of %lld\\n"}} {{
  array @ring: global, 64 bytes, align 4
entry:
  %t = sreg tid.x : i32
  %r = addrof @ring : ptr<global>
  %at = atomicrmw add %r, i32 4 : i32
  %end = add %at, i32 4 : i32
  %fits = icmp ule %end, i32 15 : i1
  br write
write [%fits]:
  %p = ptradd %r, %at {{scale: 4, disp: 4, signed: true}} : ptr<global>
  store i32 %p, i32 1
  %p1 = ptradd %p, i32 1 {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %p1, %t
  %p2 = ptradd %p, i32 2 {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %p2, %n
  %p3 = ptradd %p, i32 3 {{scale: 4, disp: 0, signed: true}} : ptr<global>
  store i32 %p3, i32 1
  br done
done:
  END
}}
"""


@pytest.mark.parametrize(
    ("threads", "lost"), [(2, ""), (4, "[printf: 4 bytes more than its buffer has room for]\n")]
)
def test_a_launch_gives_what_was_printed(threads: int, lost: str) -> None:
    kernel = made(PRINT.replace("END", "ret"))
    launch = build_launch(LARGE, kernel, (1, 1, 1), (threads, 1, 1), [5])
    outcome = run(launch, ReferenceEngine(LARGE), check=True)
    lines = "".join(f"{t} of {(1 << 32) + 5}\n" for t in range(min(threads, 3)))
    assert outcome.output == lines + lost


def test_text_before_a_failed_assertion(capsys: pytest.CaptureFixture[str]) -> None:
    kernel = made(PRINT.replace("END", 'trap assert {message: "n < 5"}'))
    launch = build_launch(LARGE, kernel, (1, 1, 1), (1, 1, 1), [5])
    outcome = run(launch, ReferenceEngine(LARGE))
    assert outcome.output == f"0 of {(1 << 32) + 5}\n"
    assert outcome.fault and (outcome.fault.kind, outcome.fault.message) == ("assert", "n < 5")
    compiled = CompiledKernel(Program(LARGE, (kernel,)), kernel, "reference", {})
    with pytest.raises(FaultError, match=r"assert \(n < 5\) in thread"):
        compiled[1, 1](np.int32(5))
    assert capsys.readouterr().out == outcome.output
