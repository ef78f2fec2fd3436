"""Arguments: what each text says, and which are refused with which words."""

from pathlib import Path

import numpy as np
import pytest

from qgpu.backends.machine.block import Block
from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.runtime.arguments import (
    Argument,
    ArgumentError,
    Buffer,
    Scalar,
    SpecError,
    argument_values,
    check_arguments,
    launch_argument,
    parse_argument,
    updated,
)

KERNEL = Kernel(
    "k",
    (Parameter("p", "i32", True), Parameter("n", "u32", False), Parameter("any", "void", True)),
    (),
    (Block(next_exit=1),),
    (),
    0,
    1,
    1,
)


@pytest.mark.parametrize(
    ("spec", "kind", "values"),
    [
        ("i32:5", "i32", 5),
        ("i8:-128", "i8", -128),
        ("u64:0xffffffffffffffff", "u64", 2**64 - 1),
        ("i64:-9223372036854775808", "i64", -(2**63)),
        ("i32[]:1,-2, 3", "i32", [1, -2, 3]),
        ("u8[]:255", "u8", [255]),
        ("i32[]:", "i32", []),
        ("i16[3]", "i16", [0, 0, 0]),
        ("i16[0]", "i16", []),
    ],
)
def test_texts_of_arguments(spec: str, kind: str, values: int | list[int]) -> None:
    argument = parse_argument(spec)
    assert (argument.type, argument_values(argument)) == (kind, values)


@pytest.mark.parametrize(
    "spec",
    ["", "5", "i32", "f32:1", "i32:", "i32:x", "i32:1.5", "i32[]", "i32[]:1,,2", "i32[]:1,", "i32[4]:1",
     "i32[x]", "i32[-1]", "i32[99999999999999999999]", "i32[²]", "i32]:5", "i32[:5"],
)  # fmt: skip
def test_texts_that_are_none(spec: str) -> None:
    with pytest.raises(SpecError):
        parse_argument(spec)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("u8:256", "256 is out of range for u8: 0 to 255"),
        ("i32:2147483648", "for i32: -2147483648 to 2147483647"),
        ("u32[]:0,-1", "-1 is out of range for u32"),
        ("i32[]:@no/such.npy", "cannot read 'no/such.npy': No such file or directory"),
    ],
)
def test_values_out_of_range(spec: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        parse_argument(spec)


def test_npy_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, np.arange(6, dtype="<i4").reshape(2, 3))
    assert argument_values(parse_argument(f"i32[]:@{path}")) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(ArgumentError, match="holds int32 values, not i64"):
        parse_argument(f"i64[]:@{path}")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ArgumentError, match=r"is not a \.npy file"):
        parse_argument(f"i32[]:@{path}")
    np.savez(tmp_path / "b.npz", np.arange(3))
    with pytest.raises(ArgumentError, match=r"not a \.npy file of one array"):
        parse_argument(f"i32[]:@{tmp_path / 'b.npz'}")
    np.save(path, np.array([{}]))
    with pytest.raises(ArgumentError, match=r"is not a \.npy file"):
        parse_argument(f"i32[]:@{path}")


def arguments(*specs: str) -> list[Argument]:
    return [parse_argument(spec) for spec in specs]


def test_arguments_fit_by_width() -> None:
    check_arguments(KERNEL, arguments("i32[]:1", "u32:5", "u8[]:1"))
    check_arguments(KERNEL, arguments("u32[]:1", "i32:-5", "i64[]:1"))


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["i32[]:1", "i32:1"], r"takes 3 arguments \(i32\* p, u32 n, void\* any\); 2 are given"),
        (["i64[]:1", "i32:1", "i8[2]"], r"argument 1 of kernel 'k' is i64\[1\]; parameter i32\* p is wanted"),
        (["i32[]:1", "i16:1", "i8[2]"], "argument 2 of kernel 'k' is i16; parameter u32 n is wanted"),
        (["i32[]:1", "i32[1]", "i8[2]"], r"argument 2 of kernel 'k' is i32\[1\]; parameter u32 n is wanted"),
        (["i32[]:1", "i32:1", "i8:2"], r"argument 3 of kernel 'k' is i8; parameter void\* any is wanted"),
    ],
)
def test_arguments_that_do_not_fit(specs: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        check_arguments(KERNEL, arguments(*specs))


def test_bytes_there_and_back() -> None:
    buffer = parse_argument("i16[]:1,-2")
    assert launch_argument(buffer) == b"\x01\x00\xfe\xff"
    assert launch_argument(Scalar("i32", -5)) == -5
    assert argument_values(updated(buffer, b"\xff\x7f\x00\x80")) == [32767, -32768]
    assert updated(Scalar("i32", 5), None) == Scalar("i32", 5)
    assert isinstance(updated(buffer, None), Buffer)
