"""Specialised kernels compute what they did in launches with the numbers they were specialised for."""

import pytest

from ir_random_kernels import SITES, random_kernel
from qgpu.ir import parse_function, print_function
from qgpu.ir.interpreter import interpret
from qgpu.ir.passes import PASSES, PassManager, Simplify, Specialise, parse_pipeline
from qgpu.ir.passes.errors import PassError


@pytest.mark.parametrize("seed", range(10))
def test_a_specialised_kernel_does_the_same_in_its_launches(seed: int) -> None:
    function = random_kernel(seed, size=3)
    special = parse_function(print_function(function))
    PassManager([Specialise({"n": 5, "ntid.x": 3}), Simplify()]).run(special)
    assert not special.args[2].uses
    outcomes = []
    for candidate in (function, special):
        rows = bytearray(3 * SITES * 4)
        interpret(candidate, [bytearray(range(12)), rows, 5], block=(3, 1, 1))
        outcomes.append(bytes(rows))
    assert outcomes[0] == outcomes[1]


KERNEL = """
kernel @k(%p: ptr<global>, %n: i8) {
entry:
  store i8 %p, %n
  ret
}
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("specialise{m=1}", "no 'm' to specialise"),
        ("specialise{p=1}", "'p' of kernel 'k' is a buffer"),
        ("specialise{n=256}", "256 does not fit 'n'"),
        ("specialise{n=-129}", "-129 does not fit 'n'"),
        ("specialise{ntid.x=0}", "0 does not fit 'ntid.x'"),
        ("specialise{tid.x=0}", "no 'tid.x' to specialise"),
    ],
)
def test_what_cannot_be_specialised_is_refused(text: str, message: str) -> None:
    with pytest.raises(PassError, match=message):
        PassManager(parse_pipeline(text, PASSES)).run(parse_function(KERNEL))


def test_numbers_of_either_sign_fit() -> None:
    for number in (-128, 255):
        function = parse_function(KERNEL)
        assert parse_pipeline(f"specialise{{n={number}}}", PASSES)[0].run(function)
        assert f"store i8 %p, i8 {number if number < 128 else -1}" in str(function)
