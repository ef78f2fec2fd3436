"""NVRTC's log as diagnostics: places, notes, and words that fit a compiler without a host."""

from qgpu.toolchain.cuda.log import parse_log, plain_lines
from qgpu.toolchain.diagnostics import render

LOG = """\
k.cu(4): error: no instance of overloaded function "f" matches the argument list
            argument types are: (int)
  \t  x = f(1);
  \t      ^
          detected during instantiation of "T g(T) [with T=int]" at line 9

k.cu(2): warning #177-D: variable "x" was declared but never referenced
  int x = 3;
      ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

inc(1)/k.cu(7): error: out of place

1 error detected in the compilation of "k.cu".
"""


def test_places_and_notes() -> None:
    first, second, third = parse_log(LOG)
    assert (first.severity, first.file, first.line, first.column) == ("error", "k.cu", 4, 8)
    assert [note.message for note in first.notes] == [
        "argument types are: (int)",
        'detected during instantiation of "T g(T) [with T=int]" at line 9',
    ]
    assert render([second]).split("\n") == [
        'k.cu:2:5: warning: variable "x" was declared but never referenced',
        "int x = 3;",
        "    ^",
    ]
    assert (third.file, third.line, third.column, third.source_line) == ("inc(1)/k.cu", 7, 0, None)


def test_missing_header_says_which_headers_there_are() -> None:
    log = 'k.cu(1): catastrophic error: could not open source file "vector" (no directories)\n'
    (found,) = parse_log(log)
    assert (found.severity, found.message) == ("error", "'vector' file not found")
    assert "-I" in found.notes[0].message


def test_lines_without_a_place() -> None:
    log = "Command-line error: invalid macro definition: 1=1\n\nCompilation terminated.\n"
    assert parse_log(log) == ()
    assert plain_lines(log) == ["Command-line error: invalid macro definition: 1=1"]
