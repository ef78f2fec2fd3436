"""Structures passed by value on the command line: taken apart into the parts that the kernel reads."""

import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from qgpu.backends.machine.program import Kernel, Parameter
from qgpu.runtime.arguments import Argument, ArgumentError, Scalar, SpecError
from qgpu.runtime.cli import main
from qgpu.runtime.structures import Structure, parse_given, spread

PARAMETERS = (
    Parameter("a", "i32", False),
    Parameter("s.4", "i32", False),
    Parameter("s.8", "u16", False),
    Parameter("s.16", "i64", False),
    Parameter("t.0", "void", True),
    Parameter("n", "u8", False),
)
KERNEL = Kernel("k", PARAMETERS, (), (), (), registers=0, predicates=0, warp_stride=0)


def given(*specs: str) -> tuple[Argument, ...]:
    return spread(KERNEL, [parse_given(spec) for spec in specs])


def test_a_structure_becomes_its_parts() -> None:
    content = struct.pack("<iiHxxxxxxq", 1, -2, 65535, -4)
    assert given("i32:7", f"bytes:{content.hex()}", "u8:1") == (
        Scalar("i32", 7), Scalar("i32", -2), Scalar("u16", 65535), Scalar("i64", -4), Scalar("u8", 1),
    )  # fmt: skip


def test_parts_may_be_given_one_by_one() -> None:
    assert given("i32:7", "i32:1", "u16:2") == (Scalar("i32", 7), Scalar("i32", 1), Scalar("u16", 2))


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["bytes:00"], "argument 1 of kernel 'k' is a structure; parameter i32 a is wanted"),
        (["i32:1", "bytes:" + "00" * 20], "the structure has 20 bytes; 's.16' lies at 16 to 23"),
        (["i32:1", "bytes:" + "00" * 24, "bytes:" + "00" * 8], "'t.0' is a pointer"),
        (["i32:1"] * 6 + ["bytes:00"], "is a structure; parameter none is wanted"),
    ],
)
def test_structures_that_do_not_fit(specs: list[str], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        given(*specs)


@pytest.mark.parametrize("spec", ["bytes:0", "bytes:xy"])
def test_bytes_are_hexadecimal(spec: str) -> None:
    with pytest.raises(SpecError, match="hexadecimal"):
        parse_given(spec)


def test_spaces_between_bytes() -> None:
    assert parse_given("bytes:01 02") == Structure(b"\1\2")


@pytest.mark.parametrize("backend", ["ir", "reference"])
def test_the_command_takes_a_structure(tmp_path: Path, backend: str) -> None:
    source = tmp_path / "k.cu"
    source.write_text(
        "struct S { char c; int n; };\n"
        'extern "C" __global__ void k(S s, int *out) { out[threadIdx.x] = s.n * 10 + s.c; }\n'
    )
    content = struct.pack("<bxxxi", -3, 5).hex()
    command = ["run", str(source), "--grid", "1", "--block", "2", "--backend", backend]
    result = CliRunner().invoke(main, [*command, "--arg", f"bytes:{content}", "--arg", "i32[2]"])
    assert result.exit_code == 0, result.output
    assert "47,47" in result.stdout.replace(" ", "")
