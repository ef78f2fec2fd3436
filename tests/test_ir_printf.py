"""printf as records in an array: what the host reads from it is what the threads printed."""

import struct

import pytest

from qgpu.backends.machine.program import Printf
from qgpu.ir import Function, parse_function, ptr, verify
from qgpu.ir.core.values import Argument
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import Linearize, LowerPrintf, PassError
from qgpu.runtime.printf import printed

KERNEL = """
kernel @f(%x: i64) {
entry:
  %t = sreg tid.x : i32
  %c = icmp sgt %t, i32 1 : i1
  printf %t {format: "%d: "}
  condbr %c, more, done
more:
  %b = trunc %t : i8
  %s = add %x, i64 1 : i64
  printf %x, %t, %s {format: "%lx %5u| %lld\\n"}
  printf {format: "100%%\\n"}
  printf %b, %t {format: "%hhd %ld\\n"}
  br done
done:
  printf %t {format: "%d: "}
  ret
}
"""


def printing(function: Function, threads: int) -> tuple[Printf, bytes]:
    """The formats of a lowered function, and the array's bytes after a launch."""
    array = function.array(function.attrs["printf"])
    function.shared.remove(array)
    function.args.append(Argument(ptr("global"), "records", len(function.args)))
    for instruction in function.instructions:
        if instruction.op == "addrof":
            instruction.replace_all_uses_with(function.args[-1])
            instruction.erase()
    data = bytearray(array.size)
    interpret(function, [0x1_8000_0000, data], block=(threads, 1, 1))
    numbers = range(1, 1 + sum(name.startswith("printf.") for name in function.attrs))
    return Printf(0, tuple(function.attrs[f"printf.{number}"] for number in numbers)), bytes(data)


def lowered(text: str, words: int) -> Function:
    function = parse_function(text)
    verify(function)
    assert LowerPrintf(words=words).run(function)
    verify(function)
    return function


def text_of(words: int, threads: int, lockstep: bool) -> str:
    function = lowered(KERNEL, words)
    if lockstep:
        Linearize().run(function)
    printf, data = printing(function, threads)
    count, *rest = struct.unpack(f"<{words}I", data)
    return printed(printf, count, rest[:count])


@pytest.mark.parametrize("lockstep", [False, True])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_records_say_what_the_threads_print(threads: int, lockstep: bool) -> None:
    output: list[str] = []
    function = parse_function(KERNEL)
    if lockstep:
        Linearize().run(function)
    interpret(function, [0x1_8000_0000], block=(threads, 1, 1), output=output.append)
    assert text_of(200, threads, lockstep) == "".join(output)
    if threads == 3:
        assert "180000000     2| 6442450945\n100%\n2 2\n" in "".join(output)


def test_records_that_do_not_fit_are_counted() -> None:
    assert text_of(1 + 2 * 3, 4, True).startswith("0: 1: 2: [printf: ")
    assert text_of(2, 1, False) == "[printf: 12 bytes more than its buffer has room for]\n"


def test_equal_formats_have_one_number() -> None:
    function = lowered(KERNEL, 64)
    assert function.attrs["printf.1"] == "%d: "
    assert "printf.4" in function.attrs and "printf.5" not in function.attrs


def test_values_have_to_be_as_many_as_conversions() -> None:
    with pytest.raises(PassError, match="takes 0 values and has 1"):
        lowered(KERNEL.replace('format: "%d: "', 'format: "none"'), 64)
